"""The course's trained classifier to write for (`classifier_view`), and what it says of stored reviews without some of its
heads (`gates_view`).

Does: put a model's weights, as 16-bit floats in the order that `classifier_model.js` reads them, and its words into a piece,
whose script runs the whole model at every keystroke. Does not: train, or run models that the script can't.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from itertools import product
from numbers import Integral

import numpy as np
from matplotlib.colors import to_hex
from torch import Tensor
from torch.nn import functional as F

from course_utils.attention_maps import HeadGates
from course_utils.classifier import ClassifierConfig, Explanation, ReviewClassifier
from course_utils.figures import NEGATIVE, POSITIVE, WEIGHT_MAP, ink_on
from course_utils.heatmaps.views import describe_view, make_view
from course_utils.interactive.attention_still import still_picture
from course_utils.interactive.drawing import INK, LINE, SOFT, bar, cut, label, picture, shown, stacked
from course_utils.interactive.piece import Piece
from course_utils.tokenization import WordTokenizer
from course_utils.training.plain_text import PLAIN, PlainWords, page_rules

MOST_BYTES = 1_000_000                                                     # of weights in one page, before base64


def model_data(classifier: ReviewClassifier, texts: Iterable[str] | None = None) -> dict:
    """What `classifierModel` needs: config, words, and all weights in base64. With `texts` only the words in these.

    For a model that reads plain texts also their rules (see `training.plain_text`). A weight is off by one part in 2,048 at
    most; for the course's models that moves a probability by less than 0.001.
    Raises TypeError for anything but a ReviewClassifier, ValueError for a model that the script can't run.
    """
    _check(classifier)
    config, words = classifier.model.config, classifier.tokenizer.vocabulary
    if texts is not None:
        used = {token.text for text in texts for token in classifier.tokenizer.tokenize(text)}
        words = words[:2] + [word for word in words[2:] if word in used]
    weights = _rounded(classifier, words)
    if weights.nbytes > MOST_BYTES:
        raise ValueError(f"the model's weights would take {weights.nbytes:,} bytes in the page; at most {MOST_BYTES:,} do. "
                         "Use a model with fewer words or a smaller d_model")
    block = classifier.model.encoder.blocks[0]
    rules = {"plain": page_rules()} if classifier.tokenizer.texts == PLAIN else {}
    kept = ("d_model", "num_heads", "d_ff", "num_layers", "max_len", "positions", "pooling", "embedding_scale", "unk_id")
    return {
        "config": {**{name: getattr(config, name) for name in kept}, "eps": block.attention_norm.eps,
                   "base": getattr(classifier.model.positions, "base", 10000.0)},
        **rules, "words": words, "labels": classifier.label_names, "weights": base64.b64encode(weights.tobytes()).decode(),
    }


def decoded(data: dict) -> np.ndarray:
    """The weights that a page gets, in one row, float32."""
    return np.frombuffer(base64.b64decode(data["weights"]), dtype="<f2").astype(np.float32)


def weight_names(config: ClassifierConfig) -> list[str]:
    """The parameters in the order in which `classifier_model.js` reads them; a linear layer's weight before its bias."""
    layers = [f"attention.{which}_projection" for which in ("query", "key", "value", "output")]
    layers += ["feed_forward.expand", "feed_forward.contract", "attention_norm", "feed_forward_norm"]
    modules = [f"encoder.blocks.{i}.{layer}" for i in range(config.num_layers) for layer in layers] + ["encoder.norm"]
    pooling = ["pooling.query"] if config.pooling == "attention" else []
    both = [f"{module}.{kind}" for module in modules for kind in ("weight", "bias")]
    return ["embedding.weight", *both, *pooling, "output.weight", "output.bias"]


def _rounded(classifier: ReviewClassifier, words: list[str]) -> np.ndarray:
    """All weights in one row of 16-bit floats, the embedding's rows for `words` only."""
    state: dict[str, Tensor] = classifier.model.state_dict()
    names = weight_names(classifier.model.config)
    if sorted(names) != sorted(state):
        raise ValueError(f"the model has other weights than a SelfAttentionClassifier: {sorted(set(names) ^ set(state))}")
    rows = [classifier.tokenizer.ids[word] for word in words]
    parts = [state[name][rows] if name == "embedding.weight" else state[name] for name in names]
    if classifier.temperature != 1:                     # the script knows none, so the output layer is divided by it
        parts = [part / classifier.temperature if name.startswith("output.") else part for name, part in zip(names, parts)]
    every = np.concatenate([part.detach().cpu().float().numpy().ravel() for part in parts])
    if not np.all(np.abs(every) < 65504):                                  # NaN isn't either
        raise ValueError("a weight of the model is NaN or above 65,504, where 16-bit floats end; train it again")
    return every.astype("<f2")


def _check(classifier: ReviewClassifier) -> None:
    """Raises TypeError or ValueError for what classifier_model.js does not implement."""
    if not isinstance(classifier, ReviewClassifier):
        raise TypeError(f"classifier is a {type(classifier).__name__}; expected a ReviewClassifier, such as trained_model()")
    config, tokenizer = classifier.model.config, classifier.tokenizer
    wanted = {"positions": ("rotary", "none"), "norm_first": (True,), "num_classes": (2,), "unk_id": (1,)}
    for name, allowed in wanted.items():
        if getattr(config, name) not in allowed:
            raise ValueError(f"the model has {name}={getattr(config, name)!r}; in the browser it runs with "
                             f"{' or '.join(f'{name}={value!r}' for value in allowed)} only")
    if type(tokenizer) not in (WordTokenizer, PlainWords) or tokenizer.pattern != type(tokenizer).pattern:
        raise ValueError(f"the tokenizer is a {type(tokenizer).__name__}; in the browser only the course's WordTokenizer "
                         "runs")
    if any(block.feed_forward.activation is not F.gelu for block in classifier.model.encoder.blocks):
        raise ValueError("the feed-forward layers don't use gelu; in the browser they must")


STANDARD = ("strip", "occlusion", "map", "heads")
PARTS = (*STANDARD, "positions", "words")
MOST_IN_A_MAP = 16                                                         # tokens in a map of the still picture
REMOVALS = ("delete", "unk")
SCRIPTS = ("classifier_model", "classifier_parts")


def classifier_view(
    classifier: ReviewClassifier, text: str | None = None, *, examples: Sequence[Sequence[str]] = (),
    parts: Sequence[str] = STANDARD, head: tuple[int, int] = (0, 0), how: str = "delete", covered: Sequence[str] = (),
    still: Sequence[str] = (), without: str = "",
) -> Piece:
    """A box to write a review in, and what the model makes of it at every keystroke, in the browser itself.

    text: the review to begin with; by default the first of the examples. examples: prepared sentences, (name, text) or
    (name, text, what to look at), as buttons, which also switch all heads on. parts: what is shown beside the answer, any of
        "strip" the words with their pooling weights, unknown words hatched; click a word to change it, two to swap them;
        "occlusion" what each word adds to the probability of the second label: `explain.occlusion` with target 1, where
        how="delete" leaves the word out and how="unk" puts `<unk>` in its place;
        "map" the weights of one head, first those of `head`, (layer, head); "heads" a switch for each head, as `HeadGates`;
        "positions" a switch without which queries and keys aren't turned, for a model with rotary positions;
        "words" the words to click, where neither "strip" nor "occlusion" puts numbers under them.
    covered: the names of examples whose map waits until it's asked for, however they are changed, so that it can be guessed.
    still: texts whose answers and maps of `head` are the still picture, side by side, in place of the words of `text`.
    without: a text that the still picture shows once more below these, with its answers with and without `head`.
    The weights are 16-bit floats: for the course's models probabilities are within 0.001 of Python's. The piece takes about
    350 kB, nearly all of it word vectors. Raises TypeError or ValueError for other parts, and for a model that the script
    can't run: it runs two classes, pre-norm, rotary or no positions, attention or mean pooling, and `WordTokenizer`.
    """
    prepared = [_example(example) for example in examples]
    if isinstance(covered, str) or not set(covered) <= {example["name"] for example in prepared}:
        raise ValueError(f"covered={covered!r}; expected a list of names of examples")
    for example in prepared:
        example.update({"covered": True} if example["name"] in covered else {})
    text = text if text is not None else prepared[0]["text"] if prepared else ""
    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}; expected one review, a string")
    wrong = sorted(set(parts) - set(PARTS)) if not isinstance(parts, str) else [parts]
    if wrong:
        raise ValueError(f"parts={parts!r}; expected a list of any of {', '.join(PARTS)}")
    if how not in REMOVALS:
        raise ValueError(f"how={how!r}; use 'delete' or 'unk'")
    model = model_data(classifier)
    if "positions" in parts and model["config"]["positions"] != "rotary":
        raise ValueError(f"parts={parts!r}; the model has positions={model['config']['positions']!r}, so there are none to "
                         "switch off")
    data = {"model": model, "text": text, "examples": prepared, "parts": [part for part in PARTS if part in parts],
            "head": checked_head(head, model), "how": how}
    if isinstance(still, str) or not all(isinstance(one, str) for one in still):
        raise ValueError(f"still={still!r}; expected a list of texts")
    if without and not still:
        raise ValueError(f"without={without!r} stands below the texts of `still`, and there are none")
    seen = classifier.explain(text)
    weights = "strip" in parts or "words" not in parts
    drawn, alt = strip_picture(seen, classifier, weights=weights), described(seen, classifier, weights)
    if still:
        drawn, alt = maps_picture([classifier.explain(one) for one in still], classifier, data["head"], alt)
    if without:
        below, told = without_picture(without, classifier, data["head"])
        drawn, alt = stacked(drawn, below), f"{alt} {told}"
    return Piece("classifier_view", data, still=drawn, alt=alt, scripts=SCRIPTS)


def checked_head(head: Sequence[int], model: dict) -> list[int]:
    """(layer, head) as a list. Raises ValueError for a head that the model hasn't."""
    there = list(product(range(model["config"]["num_layers"]), range(model["config"]["num_heads"])))
    if tuple(head) not in there:
        raise ValueError(f"head={head!r}; expected (layer, head), one of {', '.join(map(str, there))}")
    return [int(number) for number in head]


def _example(example: Sequence[str]) -> dict:
    """(name, text) or (name, text, what to look at) as the script wants it."""
    fine = not isinstance(example, str) and len(example) in (2, 3) and all(isinstance(part, str) for part in example)
    if not fine:
        raise ValueError(f"an example is {example!r}; expected (name, text) or (name, text, what to look at), all strings")
    return {"name": example[0], "text": example[1], "look": example[2] if len(example) == 3 else ""}


def described(seen: Explanation, classifier: ReviewClassifier, weights: bool = True) -> str:
    """A text and the model's answer in words, for those who don't see the piece; with `weights`, the largest one too."""
    name, likely = classifier.label_names[1], seen.probabilities[classifier.label_names[1]]
    words = [token.text for token in seen.tokens]
    if not words:
        return f"A classifier to write for. No words yet: {seen.label}, probability of '{name}' {likely:.3f}."
    unknown = [word for word in words if word not in classifier.tokenizer.ids]
    most = int(seen.weights.argmax())
    return shown(
        f"A classifier to write for, here with {len(words)} tokens: {cut(' '.join(words), 300)} It says {seen.label}, "
        f"probability of '{name}' {likely:.3f}. "
        + (f"Largest pooling weight: '{cut(words[most], 40)}' {float(seen.weights[most]):.3f}. " if weights else "")
        + (f"{len(unknown)} unknown: {cut(', '.join(unknown), 100)}." if unknown else "No unknown words.")
    )


def strip_picture(seen: Explanation, classifier: ReviewClassifier, width: int = 760, weights: bool = True) -> str:
    """The answer and the words, with `weights` coloured by pooling weight, as an SVG; of a long text the first 40 tokens."""
    names, likely = classifier.label_names, seen.probabilities[classifier.label_names[1]]
    boxes, x, y = [], 8, 56
    top = max([float(weight) for weight in seen.weights] + [0.1])
    for token, weight in list(zip(seen.tokens, seen.weights.tolist()))[:40]:
        word = cut(shown(token.text), 20)
        wide = 16 + 9 * max(len(word), 4)
        if x + wide > width - 8:
            x, y = 8, y + 52
        known, fill = token.text in classifier.tokenizer.ids, to_hex(WEIGHT_MAP(weight / top)) if weights else "#ffffff"
        middle = {"text_anchor": "middle", "fill": ink_on(fill)}
        boxes += [bar(x, y, wide - 4, 44, fill, rx=4, stroke=LINE, stroke_dasharray=None if known else "4 3"),
                  label(x + wide / 2 - 2, y + (18 if weights else 28), word, 16, **middle)]
        boxes += [label(x + wide / 2 - 2, y + 37, f"{weight:.2f}", 13, **middle)] if weights else []
        x += wide
    more = f" (the first 40 of {len(seen.tokens)} tokens)" if len(seen.tokens) > 40 else ""
    below = "Words and their pooling weights" if weights else "Its words"
    words = f"{seen.label}, probability of ‘{names[1]}’ {likely:.3f}. {below}{more}"
    said = POSITIVE if seen.label == names[1] else NEGATIVE
    return picture(width, y + 52, bar(8, 12, 6, 28, said), label(22, 32, words, 16), *boxes)


def maps_picture(
    seen: Sequence[Explanation], classifier: ReviewClassifier, head: Sequence[int], alt: str,
) -> tuple[str, str]:
    """For each text the answer and one head's weights, side by side, as an SVG; and `alt` with the same in words."""
    name, (layer, number), views, titles, told = classifier.label_names[1], head, [], [], []
    for one in seen:
        words, likely = [token.text for token in one.tokens], f"{one.probabilities[name]:.3f}"
        view = make_view(one.attentions[layer][number].numpy(), words, None, None, "weights", None, MOST_IN_A_MAP, True)
        views.append(view)
        titles.append(f"{one.label}, {likely}: {cut(' '.join(words), 40)}")
        shown_in_words = describe_view(view, (len(words), len(words)), "weights", 0, 1, [])
        told.append(f"‘{cut(' '.join(words), 300)}’ is {one.label}, {likely}. {shown_in_words}")
    note = (f"Above each map the answer, with the probability of ‘{name}’. A row is a word that looks around; the darker a "
            f"box, the more it takes from that word. The maps are those of head {layer}.{number}.")
    drawn = still_picture(views, [None] * len(views), titles, 1.0, note)
    return drawn, f"{alt} In the still picture, with the maps of head {layer}.{number}: {' '.join(told)}"


def without_picture(text: str, classifier: ReviewClassifier, head: Sequence[int]) -> tuple[str, str]:
    """A text with one head's weights, and its answers with and without that head, as an SVG; and the same in words."""
    name, (layer, number) = classifier.label_names[1], head
    gates = HeadGates(classifier.model).gates
    gates[layer, number] = 0
    seen = classifier.explain(text)
    with HeadGates(classifier.model, gates):
        shut = classifier.explain(text)
    words = [token.text for token in seen.tokens]
    view = make_view(seen.attentions[layer][number].numpy(), words, None, None, "weights", None, MOST_IN_A_MAP, True)
    answers = [(f"{which} head {layer}.{number}: {one.label}", one.probabilities[name])
               for which, one in (("with", seen), ("without", shut))]
    drawn = still_picture([view], [None], [cut(" ".join(words), 40)], 1.0, "")
    bars = []
    for i, (words_of_it, value) in enumerate(answers):
        y, left, wide = 80 + 40 * i, 670, 150
        bars += [label(left - 12, y + 15, words_of_it, 14, text_anchor="end"), bar(left, y, wide, 20, "none", stroke=LINE),
                 bar(left, y, wide * value, 20, POSITIVE if value > 0.5 else NEGATIVE),
                 label(left + wide + 8, y + 15, f"{value:.3f}", 14)]
    bars.append(label(670, 66, f"probability of ‘{name}’", 12, fill=SOFT))
    told = "; ".join(f"{said}, {value:.3f}" for said, value in answers)
    return drawn.replace("</svg>", f"{''.join(bars)}</svg>"), f"Below, ‘{' '.join(words)}’ {told}."


def answers_picture(texts: Sequence[str], likely: Sequence[float], names: Sequence[str], width: int = 760) -> str:
    """For each text its beginning, and the probability of the second label as a bar from one half; SVG."""
    parts = [label(8, 24, f"Probability of ‘{names[1]}’, all heads on", 16)]
    for i, (text, value) in enumerate(zip(texts, likely)):
        y, left, wide = 40 + 26 * i, 490, 200
        parts += [label(8, y + 14, cut(shown(text), 60)), bar(left, y, wide, 18, "none", stroke=LINE),
                  bar(left + wide * min(value, 0.5), y, wide * abs(value - 0.5), 18, POSITIVE if value > 0.5 else NEGATIVE),
                  bar(left + wide / 2 - 1, y, 2, 18, INK), label(left + wide + 10, y + 14, f"{value:.3f}")]
    return picture(width, 48 + 26 * len(texts), *parts)


MOST = 40                                                                  # reviews in one piece


def gates_view(
    classifier: ReviewClassifier, texts: Sequence[str], labels: Sequence[int] | None = None, *,
    names: Sequence[str] | None = None, head: tuple[int, int] = (0, 0),
) -> Piece:
    """A switch for each head; probabilities, pooling weights and maps of the stored texts follow at once, in the browser.

    texts: one to forty reviews. labels: which label each really has, 0 or 1, to count how many are right. names: a word for
    each review, such as its kind; right answers are counted for each name that occurs more than once. head: whose map is
    shown first, (layer, head). A shut head adds nothing to its layer, as with `attention_maps.HeadGates`.
    Only the word vectors of these texts are in the page: about 90 kB in all for the course's models.
    Raises TypeError or ValueError for other arguments, and for a model that the script can't run (see `classifier_view`).
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"texts={cut(repr(texts), 60)}; expected a list of reviews, each a string")
    texts = list(texts)
    if not 1 <= len(texts) <= MOST:
        raise ValueError(f"{len(texts)} texts; expected 1 to {MOST}")
    for what, given in (("labels", labels), ("names", names)):
        if given is not None and len(given) != len(texts):
            raise ValueError(f"{len(given)} {what} for {len(texts)} texts; give one for each, or none at all")
    wrong = [label for label in ([] if labels is None else labels) if not isinstance(label, Integral) or label not in (0, 1)]
    if wrong:
        raise ValueError(f"labels hold {wrong[0]!r}; expected 0 for {classifier.label_names[0]}, 1 for "
                         f"{classifier.label_names[1]}")
    model = model_data(classifier, texts)
    labels = [None] * len(texts) if labels is None else [int(label) for label in labels]
    names = [""] * len(texts) if names is None else names
    reviews = [{"text": text, "label": label, "name": str(name)} for text, label, name in zip(texts, labels, names)]
    likely = [round(value, 3) for value in classifier.predict(texts)[1][:, 1].tolist()]
    data = {"model": model, "reviews": reviews, "head": checked_head(head, model)}
    heads = model["config"]["num_layers"] * model["config"]["num_heads"]
    alt = (f"Gates of {heads} heads to switch, and {len(texts)} reviews. "
           f"All heads on, probability of '{model['labels'][1]}': "
           + "; ".join(f"'{cut(shown(text), 60)}' {value:.3f}" for text, value in zip(texts, likely)) + ".")
    return Piece("gates_view", data, still=answers_picture(texts, likely, model["labels"]), alt=alt, scripts=SCRIPTS)
