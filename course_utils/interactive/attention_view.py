"""Attention to touch: pick a token and see what it attends to, in every layer and head, in any model or any tensors.

Does: one view, or two side by side on one scale. Does not: compute attention for models that return none, renormalise, or
import transformers. The weights of Hugging Face's models come from `attention_hugging_face`, words and pairs of texts from
`attention_words`, checks and pages from `attention_data`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from course_utils.figures.text import count, display_token, one_line
from course_utils.files import write_text
from course_utils.heatmaps.views import describe_view, make_view, nice_limit
from course_utils.interactive.attention_data import Kind, Side, make_kind, make_pooling, matched, side_data
from course_utils.interactive.attention_hugging_face import from_hugging_face
from course_utils.interactive.attention_still import Row, still_picture
from course_utils.interactive.attention_words import (
    Labels,
    bare,
    by_words,
    joined,
    pooled_by_words,
    words_at,
    words_by_marks,
)
from course_utils.interactive.piece import Piece


def from_tensors(tokens: object, attentions: object, key_tokens: object, attention_mask: object, pooling: object,
                 layers: Sequence[int] | None, check_rows: bool, by_word: bool) -> Side:
    """Labels and weights as they are given. Raises ValueError where they don't fit."""
    kind = make_kind("attention", attentions, tokens, key_tokens, attention_mask=attention_mask, wanted=layers,
                     check_rows=check_rows)
    side = Side([kind], make_pooling(pooling, kind, attention_mask, check_rows))
    if not by_word:
        return side
    return _by_word(side, *(Labels(labels, words_by_marks(labels)) for labels in (kind.queries, kind.keys)))


def _by_word(side: Side, rows: Labels, columns: Labels) -> Side:
    """The same side with the tokens of a word as one."""
    pooling = None if side.pooling is None else pooled_by_words(side.pooling, columns)
    return replace(side, kinds=[by_words(side.kinds[0], rows, columns)], pooling=pooling)


def from_classifier(model: object, text: object, layers: Sequence[int] | None, check_rows: bool, by_word: bool) -> Side:
    """A `ReviewClassifier` on one text. Raises ValueError for a text without tokens and a model without attention."""
    if isinstance(text, tuple):
        raise ValueError("a ReviewClassifier reads one text; two texts at once, (first, second), are for a model of Hugging "
                         "Face that was trained on pairs")
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}; expected one text, a string")
    told = model.explain(text)
    tokens = [getattr(token, "text", token) for token in told.tokens]
    if not tokens:
        raise ValueError(f"the text {text!r} has no tokens; give one with at least one word")
    if not len(told.attentions):
        raise ValueError("the model has no attention layer; expected a model with num_layers=1 or more")
    kind = make_kind("attention", told.attentions, tokens, wanted=layers, check_rows=check_rows)
    side = Side([kind], make_pooling(told.weights, kind, None, check_rows), told.label, told.probabilities[told.label])
    if not by_word:
        return side
    labels = Labels(tokens, _words(model.tokenizer, told.tokens, text))
    return _by_word(side, labels, labels)


def _words(tokenizer: object, tokens: list, text: str) -> list[tuple[int, str]]:
    """The words of a course tokenizer's tokens: '##' continues one; byte pairs never reach beyond a match of its pattern."""
    pattern = getattr(tokenizer, "pattern", None)
    begins = set() if pattern is None else {match.start() for match in pattern.finditer(text)}
    if hasattr(tokenizer, "merges"):
        starts = [token.start in begins and (i == 0 or token.start != tokens[i - 1].start) for i, token in enumerate(tokens)]
        return words_at(starts, lambda start, end: bare(text[tokens[start].start:tokens[end - 1].end]))
    starts = [not token.text.startswith("##") for token in tokens]
    return words_at(starts, lambda start, end: joined([token.text for token in tokens[start:end]]))


FORMS = ("attention_view(model, text) for the course's ReviewClassifier, attention_view(model, tokenizer, text) for a model "
         "of Hugging Face, or attention_view(tokens, attentions) for plain tensors")
STILL_TOKENS, SAVED_TOKENS = 24, 60  # rows and columns of the still picture, and of the picture that save_svg writes
MEAN = "mean"
SCRIPTS = ("coded", "choice", "attention_numbers", "attention_map")


class AttentionView(Piece):
    """What `attention_view` makes. `side` is what it shows first, for comparing it with another view."""

    def __init__(self, data: dict, sides: list[Side], check_rows: bool, *, still: str, alt: str):
        super().__init__("attention_view", data, still=still, alt=alt, scripts=SCRIPTS)
        self.sides, self.side, self.check_rows = sides, sides[0], check_rows

    def save_svg(self, path: str | Path, layer: int | None = None, head: int | str | None = None, token: int | None = None,
                 kind: str | None = None) -> None:
        """Write a picture of one head and one token: the token's weights over the text, and the head's map.

        Args:
            path: a file name that ends in .svg. The picture needs no other file, and holds its alternative text.
            layer, head, token: a layer's number, a head's or 'mean', the position of a query; what the view shows first
                where they aren't given. For another layer, head or kind, that's the query with the largest weight there. Of
                two views side by side, these are the first's; the second shows its partner of the token.
            kind: which attention, where a view has several: such as 'cross-attention' or 'first → second'.

        Raises:
            ValueError: for another ending, and for a layer, head, token or kind that isn't there. It says which are.
        """
        path = Path(path)
        if path.suffix != ".svg":
            raise ValueError(f"path={str(path)!r}; expected a name that ends in .svg")
        kinds = [one.name for one in self.side.kinds]
        if kind is not None and kind not in kinds:
            raise ValueError(f"kind={kind!r}; expected one of {kinds}")
        which = 0 if kind is None else kinds.index(kind)
        start = dict(self.data["start"])
        if which or layer is not None or head is not None:
            del start["token"]
        shown = self.side.kinds[which]
        if layer is None and start["layer"] not in shown.layers:
            layer = next(iter(shown.layers))
        layer = start["layer"] if layer is None else layer
        if head is None and layer in shown.layers:
            head = start["head"] if start["head"] == MEAN or start["head"] < len(shown.layers[layer]) else 0
        layer, head, token = _picked(shown, layer, head, start.get("token") if token is None else token)
        partners = [token, *(matched(shown.queries, side.kinds[which].queries)[token] for side in self.sides[1:])]
        words = _in_words(self.sides, self.data["names"], self.data["title"], layer, head,
                          [one if one >= 0 else None for one in partners], float(self.data["scale"]), self.check_rows, which,
                          True)
        write_text(path, words["still"] + "\n")


def attention_view(*what, compare=None, names=None, title: str | None = None, target: str | None = None, key_tokens=None,
                   attention_mask=None, pooling=None, layers=None, layer: int | None = None, head: int | str = 0,
                   token: int | None = None, vmax: float | None = None, max_tokens: int = 40, check_rows: bool = True,
                   by: str = "token") -> AttentionView:
    """Show attention as a piece of HTML to touch: a token's row over the text, every head's map, pooling.

        attention_view(model, text)                   a ReviewClassifier: all layers and heads, pooling, predicted label
        attention_view(model, tokenizer, text)        any encoder, decoder or encoder-decoder of Hugging Face that returns
                                                      its attention weights (load it with attn_implementation="eager")
        attention_view(model, tokenizer, (first, second))        two texts that such a model reads at once
        attention_view(tokens, attentions)            plain weights: (layers, heads, query, key), (heads, query, key),
                                                      (query, key), or a list with one (heads, query, key) for each layer
        attention_view(model, text, compare=other)    two views side by side on one scale

    A model of Hugging Face gives its own answer: the label of a text with its probability; the probability of each class by
    itself where the classes don't exclude each other; none if it doesn't classify a text. Its layers keep their numbers,
    also where only some of them attend. Of two texts the view has a switch: everything, or only what the tokens of one text
    give to those of the other. An encoder-decoder with two vocabularies needs two tokenizers: attention_view(model,
    (source_tokenizer, target_tokenizer), text).

    `view.save_svg(path, layer=…, head=…, token=…)` writes one head and one token as a picture.

    Args:
        compare: what the second view shows. Another text (for the same model), another model (for the same text), or any
            other attention_view(...), whatever it was made from. Picking a token picks its partner in the other text: the
            nth 'the' for the nth 'the', or the token in the same position where texts of one length differ in words.
        names: names for the two views, such as ("trained", "untrained").
        title: a line above the view.
        target: for an encoder-decoder, the text that its decoder reads; without one, the text that it writes by itself,
            greedily (a classifier's decoder reads the text itself).
        key_tokens, attention_mask, pooling: for plain tensors. Labels of the keys where they aren't the queries; (key,) True
            for real tokens, the others are left out; (key,) the weights of attention pooling.
        layers: numbers of the layers to show, counted from 0; all by default.
        layer, head, token: what is picked at first: a layer, a head or 'mean', the position of a query. By default the
            first layer and head, and the query with the largest weight there. The alternative text begins with the row of
            a `token` that is given.
        vmax: upper end of the colour scale; by default a round number just above the largest weight of all.
        max_tokens: longer texts begin with head, tail and a 'rest' column, which keeps each row's sum; the pages for the
            middle, and for all tokens, are a click away.
        check_rows: False for weights whose rows needn't sum to one.
        by: 'token', or 'word' for one row and one column a word: the weights of a word's keys are added up, those of its
            queries averaged, so that rows keep their sum. The tokenizer says which tokens make up a word; in plain tensors
            their marks do: '##ing' continues a word, 'Ġthe', '▁the' and ' the' begin one.

    Weights are kept to three decimals (larger numbers than 1 to three digits). The page needs no network and no library.

    Raises:
        ValueError: for other arguments; labels of the wrong number, NaN, rows that don't sum to one, weights on padding;
            a model that returns no attentions, a text longer than it reads, one tokenizer for two vocabularies, two texts
            for a model that reads one; views that can't be compared. The message says what to do.
    """
    form = _form(what)
    given = {"target": target, "key_tokens": key_tokens, "attention_mask": attention_mask, "pooling": pooling}
    allowed = {"tensors": ("key_tokens", "attention_mask", "pooling"), "hugging face": ("target",)}.get(form, ())
    for name, value in given.items():
        if value is not None and name not in allowed:
            meant = "an encoder-decoder" if name == "target" else "plain tensors"
            raise ValueError(f"{name}= is for {meant}; leave it out here")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 5:
        raise ValueError(f"max_tokens={max_tokens!r}; expected a whole number from 5")
    if by not in ("token", "word"):
        raise ValueError(f"by={by!r}; expected 'token' or 'word'")

    def read(*parts) -> Side:
        if form == "classifier":
            return from_classifier(*parts, layers, check_rows, by == "word")
        if form == "hugging face":
            return from_hugging_face(*parts, target, layers, check_rows, by == "word")
        return from_tensors(*parts, key_tokens, attention_mask, pooling, layers, check_rows, by == "word")

    sides, names = [read(*what)], list(names) if names is not None and not isinstance(names, str) else names
    if compare is not None:
        sides.append(_other(compare, form, what, read))
        names = _names(names, compare)
    elif names is not None:
        raise ValueError("names= is for two views; without compare= give title=")
    return _assemble(sides, names or [""], title, layer, head, token, vmax, max_tokens, check_rows)


def _form(what: tuple) -> str:
    """Which of the three ways to call it this is. Raises ValueError for any other."""
    got = ", ".join(type(part).__name__ for part in what)
    if len(what) == 2 and hasattr(what[0], "explain"):
        return "classifier"
    if len(what) == 3 and hasattr(what[0], "config") and (callable(what[1]) or isinstance(what[1], (tuple, list))):
        return "hugging face"
    hint = ""
    if what and hasattr(what[0], "run_encoder"):
        hint = "; a model needs its vocabulary: ReviewClassifier(model, tokenizer)"
    elif len(what) == 2 and hasattr(what[0], "config"):
        hint = "; a model of Hugging Face needs its tokenizer: attention_view(model, tokenizer, text)"
    elif len(what) == 2 and isinstance(what[0], str):
        hint = "; tokens are a list: split the text first, as the tokenizer does"
    elif len(what) == 2 and isinstance(what[0], Iterable) and not isinstance(what[1], str):
        return "tensors"
    raise ValueError(f"attention_view({got}); expected {FORMS}{hint}")


def _other(compare: object, form: str, what: tuple, read) -> Side:
    """The side to compare with: of another view, of the same model on another text, or of another model on this text."""
    if isinstance(compare, AttentionView):
        return compare.side
    if form != "tensors" and isinstance(compare, (str, tuple)):
        return read(*what[:-1], compare)
    if form == "classifier" and hasattr(compare, "explain"):
        return read(compare, what[1])
    if form == "hugging face" and hasattr(compare, "config"):
        return read(compare, *what[1:])
    wanted = "attention_view(tokens, attentions)"
    if form != "tensors":
        wanted = "another text, another model of the same sort, or any attention_view(...)"
    raise ValueError(f"compare= is of type {type(compare).__name__}; expected {wanted}")


def _names(names: list | str | None, compare: object) -> list[str]:
    """The names of the two sides. Raises ValueError for another number."""
    if names is None:
        what = " text" if isinstance(compare, (str, tuple)) else " view" if isinstance(compare, AttentionView) else " model"
        return [f"first{what}", f"second{what}"]
    if isinstance(names, str) or len(names) != 2:
        raise ValueError(f"names={names!r}; expected two, such as ('trained', 'untrained')")
    return [one_line(name, 60) for name in names]


def _assemble(sides: list[Side], names: list[str], title: str | None, layer: int | None, head: int | str, token: int | None,
              vmax: float | None, max_tokens: int, check_rows: bool) -> AttentionView:
    """Check what is asked for, and make the piece: data, still picture and words."""
    first = sides[0].kinds[0]
    if len({tuple(kind.name for kind in side.kinds) for side in sides}) > 1:
        told = " and ".join(", ".join(kind.name for kind in side.kinds) for side in sides)
        raise ValueError(f"the views show different kinds of attention ({told}); compare views of one kind, "
                         "such as two encoders")
    chosen = token
    layer, head, token = _picked(first, layer, head, token)
    if vmax is None:
        vmax = nice_limit(round(max(side.largest for side in sides), 6))
    if isinstance(vmax, bool) or not isinstance(vmax, (int, float)) or not 0 < vmax < float("inf"):
        raise ValueError(f"vmax={vmax!r}; expected a number above 0, the upper end of the scale")
    heading = one_line(title) if title else ""
    data = {"title": heading, "names": names, "scale": vmax, "start": {"layer": layer, "head": head, "token": token},
            "sides": [side_data(side, max_tokens) for side in sides], "match": []}
    if len(sides) == 2:
        data["match"] = [{"queries": matched(one.queries, two.queries), "keys": matched(one.keys, two.keys)}
                         for one, two in zip(sides[0].kinds, sides[1].kinds, strict=True)]
    partner = data["match"][0]["queries"][chosen] if data["match"] and chosen is not None else -1
    rows = [chosen, partner if partner >= 0 else None]
    return AttentionView(data, sides, check_rows,
                         **_in_words(sides, names, heading, layer, head, rows, float(vmax), check_rows))


def _picked(kind: Kind, layer: int | None, head: int | str, token: int | None) -> tuple[int, int | str, int]:
    """The layer, the head and the token that are asked for; where none is, the first layer and its largest weight's query.

    Raises ValueError for one that isn't there.
    """
    layer = next(iter(kind.layers)) if layer is None else layer
    if layer not in kind.layers:
        raise ValueError(f"layer={layer!r}; expected one of {list(kind.layers)}")
    heads = len(kind.layers[layer])
    if head != MEAN and (not isinstance(head, int) or isinstance(head, bool) or not 0 <= head < heads):
        raise ValueError(f"head={head!r}; expected a number from 0 to {heads - 1}, or 'mean'")
    matrix = _matrix(kind, layer, head)
    if token is None:  # rounded: what is equal but for the last bits is the same on every machine
        token = int(np.unravel_index(matrix.round(6).argmax(), matrix.shape)[0])
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < len(kind.queries):
        raise ValueError(f"token={token!r}; expected the position of a query, from 0 to {len(kind.queries) - 1}")
    return layer, head, token


def _sizes(kinds: list[Kind]) -> str:
    """'2 layers of 4 heads', of several kinds 'Encoder: 2 layers of 4 heads; decoder: 3 layers of 4 heads'."""
    told, whole = [], [kind for kind in kinds if not kind.note]
    for kind in whole:
        heads = sorted({len(weights) for weights in kind.layers.values()})
        told.append(f"{kind.name}: " * (len(whole) > 1) + f"{count(len(kind.layers), 'layer', 'layers')} of "
                    f"{' or '.join(map(str, heads))} {'head' if heads == [1] else 'heads'}")
    told += [f"to switch to: {' and '.join(kind.name for kind in kinds if kind.note)}"] * (len(whole) < len(kinds))
    text = "; ".join(told)
    return text[:1].upper() + text[1:]


def _largest(weights: np.ndarray, tokens: list[str]) -> str:
    """The three largest weights in words; equal but for the last bits, the first comes first on every machine."""
    order = np.argsort(-weights.round(6), kind="stable")[:3]
    return "largest " + "; ".join(f"'{display_token(tokens[k], 30)}' ({k}) {weights[k]:.3f}" for k in order)


def _row(kind: Kind, weights: np.ndarray, query: int) -> str:
    """What the query that was picked attends to, in words: its largest weights, and what the others add up to."""
    row = weights[query]
    order = [k for k in np.argsort(-row.round(6), kind="stable")[:3] if row[k] >= 5e-4]
    told = [f"'{display_token(kind.keys[k], 30)}' (key {k}) {row[k]:.3f}" for k in order]
    rest = f"; all other keys together {max(0.0, row.sum() - row[order].sum()):.3f}" * (len(row) > len(order) > 0)
    return (f"The picked row, '{display_token(kind.queries[query], 30)}' (query {query}), attends to "
            f"{'; '.join(told) or 'no key'}{rest}. ")


def _matrix(kind: Kind, layer: int, head: int | str) -> np.ndarray:
    """The (query, key) weights of a head, or of the mean of a layer's heads."""
    return kind.layers[layer].mean(axis=0) if head == MEAN else kind.layers[layer][head]


def _in_words(sides: list[Side], names: list[str], heading: str, layer: int, head: int | str,
              picked_rows: list[int | None], vmax: float, check_rows: bool, which: int = 0,
              saved: bool = False) -> dict[str, str]:
    """The still picture of the head that is picked at first, and the alternative text.

    `picked_rows`: for each side, the query that the caller picked, whose row comes first in the text; None for none.
    `which` is the kind of attention; a `saved` picture shows the picked rows and holds its alternative text.
    """
    most = SAVED_TOKENS if saved else STILL_TOKENS
    views, pooled, titles, shown_rows = [], [], [], []
    words = [f"{heading}: " if heading else "", "" if saved else "Attention to touch. "]
    for side, name, row_picked in zip(sides, names, picked_rows):
        kind = side.kinds[which]
        number = layer if layer in kind.layers else next(iter(kind.layers))
        picked = head if head == MEAN or head < len(kind.layers[number]) else 0
        keys = None if kind.one_text else kind.keys
        matrix, whole = _matrix(kind, number, picked), check_rows and not kind.note
        view = make_view(matrix, kind.queries, keys, None, "weights", None, most, whole, 2e-2)
        place = f"layer {number}, {'mean of the heads' if picked == MEAN else f'head {picked}'}"
        answer = f" {side.answer}." if side.answer else ""
        words.append(f"{name[:1].upper() + name[1:]}: " if name else "")
        reading = "" if row_picked is None else _row(kind, matrix, row_picked)
        about = f"{kind.name[:1].upper() + kind.name[1:]}, {place}" if which else place[:1].upper() + place[1:]
        words.append(f"{_sizes(side.kinds)}.{answer} {about}: {reading}"
                     f"{describe_view(view, (len(kind.queries), len(kind.keys)), 'weights', 0.0, vmax, [])} ")
        row = None
        if side.pooling is not None and not which:
            row = make_view(side.pooling[None], ["pooling"], kind.keys, None, "weights", None, most, check_rows,
                            2e-2)
            words.append(f"Pooling weights: {_largest(side.pooling, kind.keys)}. ")
        pooled.append(row)
        views.append(view)
        shown_rows.append(None if row_picked is None
                          else Row(row_picked, kind.queries, kind.keys, matrix[row_picked], kind.one_text))
        titles.append(" · ".join(filter(None, [name, kind.name if len(side.kinds) > 1 else "", place])))
    part = sides[0].kinds[which].note
    words.append(part)
    note = f"Attention weight, from white (0) to dark purple ({vmax:g}). {' '.join([part, *views[0].notes]).strip()}"
    alt = "".join(words).strip()
    more = {"picked": shown_rows, "alt": alt} if saved else {}
    return {"still": still_picture(views, pooled, titles, vmax, one_line(note, 400), **more), "alt": alt}
