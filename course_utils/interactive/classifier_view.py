"""The course's trained classifier to write for: its answer, where it looks, and what happens without a word or a head.

Does: put a model's weights and words into a piece, whose script runs the whole model at every keystroke. Does not: train, or
run models that `classifier_data` refuses.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import product

from matplotlib.colors import to_hex

from course_utils.classifier import Explanation, ReviewClassifier
from course_utils.figures import NEGATIVE, POSITIVE, WEIGHT_MAP, ink_on
from course_utils.interactive.classifier_data import model_data
from course_utils.interactive.piece import Piece

PARTS = ("strip", "occlusion", "map", "heads")
REMOVALS = ("delete", "unk")
SCRIPTS = ("classifier_model", "classifier_parts")


def classifier_view(
    classifier: ReviewClassifier, text: str | None = None, *, examples: Sequence[Sequence[str]] = (),
    parts: Sequence[str] = PARTS, head: tuple[int, int] = (0, 0), how: str = "delete",
) -> Piece:
    """A box to write a review in, and what the model makes of it at every keystroke, in the browser itself.

    text: the review to begin with; by default the first of the examples. examples: prepared sentences, (name, text) or
    (name, text, what to look at), as buttons. parts: what is shown beside the answer, any of
        "strip" the words with their pooling weights, unknown words hatched; click a word to change it, two to swap them;
        "occlusion" what each word adds to the probability of the second label: `explain.occlusion` with target 1, where
        how="delete" leaves the word out and how="unk" puts `<unk>` in its place;
        "map" the weights of one head, first those of `head`, (layer, head); "heads" a switch for each head, as `HeadGates`.
    The weights are 16-bit floats: for the course's models probabilities are within 0.001 of Python's. The piece takes about
    350 kB, nearly all of it word vectors. Raises TypeError or ValueError for other parts, and for a model that the script
    can't run: it runs two classes, pre-norm, rotary or no positions, attention or mean pooling, and `WordTokenizer`.
    """
    prepared = [_example(example) for example in examples]
    text = text if text is not None else prepared[0]["text"] if prepared else ""
    if not isinstance(text, str):
        raise TypeError(f"text is a {type(text).__name__}; expected one review, a string")
    wrong = sorted(set(parts) - set(PARTS)) if not isinstance(parts, str) else [parts]
    if wrong:
        raise ValueError(f"parts={parts!r}; expected a list of any of {', '.join(PARTS)}")
    if how not in REMOVALS:
        raise ValueError(f"how={how!r}; use 'delete' or 'unk'")
    model = model_data(classifier)
    data = {"model": model, "text": text, "examples": prepared, "parts": [part for part in PARTS if part in parts],
            "head": checked_head(head, model), "how": how}
    seen = classifier.explain(text)
    still, alt = strip_picture(seen, classifier), described(seen, classifier)
    return Piece("classifier_view", data, still=still, alt=alt, scripts=SCRIPTS)


def checked_head(head: Sequence[int], model: dict) -> list[int]:
    """(layer, head) as a list. Raises ValueError for a head that the model hasn't."""
    there = list(product(range(model["config"]["num_layers"]), range(model["config"]["num_heads"])))
    if tuple(head) not in there:
        raise ValueError(f"head={head!r}; expected (layer, head), one of {', '.join(map(str, there))}")
    return [int(number) for number in head]


def _example(example: Sequence[str]) -> dict[str, str]:
    """(name, text) or (name, text, what to look at) as the script wants it."""
    fine = not isinstance(example, str) and len(example) in (2, 3) and all(isinstance(part, str) for part in example)
    if not fine:
        raise ValueError(f"an example is {example!r}; expected (name, text) or (name, text, what to look at), all strings")
    return {"name": example[0], "text": example[1], "look": example[2] if len(example) == 3 else ""}


def described(seen: Explanation, classifier: ReviewClassifier) -> str:
    """A text and the model's answer in words, for those who don't see the piece."""
    label, likely = classifier.label_names[1], seen.probabilities[classifier.label_names[1]]
    words = [token.text for token in seen.tokens]
    if not words:
        return f"A classifier to write for. No words yet: {seen.label}, probability of '{label}' {likely:.3f}."
    unknown = [word for word in words if word not in classifier.tokenizer.ids]
    most = int(seen.weights.argmax())
    return _drawable(
        f"A classifier to write for, here with {len(words)} tokens: {_cut(' '.join(words), 300)} It says {seen.label}, "
        f"probability of '{label}' {likely:.3f}. Largest pooling weight: '{_cut(words[most], 40)}' "
        f"{float(seen.weights[most]):.3f}. "
        + (f"{len(unknown)} unknown: {_cut(', '.join(unknown), 100)}." if unknown else "No unknown words.")
    )


def strip_picture(seen: Explanation, classifier: ReviewClassifier, width: int = 760) -> str:
    """The answer and the words coloured by pooling weight, as an SVG picture; of a long text the first 40 tokens."""
    names, likely = classifier.label_names, seen.probabilities[classifier.label_names[1]]
    boxes, x, y = [], 8, 56
    top = max([float(weight) for weight in seen.weights] + [0.1])
    for token, weight in list(zip(seen.tokens, seen.weights.tolist()))[:40]:
        shown = _cut(token.text, 20)
        wide = 16 + 9 * max(len(shown), 4)
        if x + wide > width - 8:
            x, y = 8, y + 52
        boxes.append(_box(shown, weight, weight / top, token.text in classifier.tokenizer.ids, x, y, wide))
        x += wide
    more = f" (the first 40 of {len(seen.tokens)} tokens)" if len(seen.tokens) > 40 else ""
    words = f"{seen.label}, probability of ‘{names[1]}’ {likely:.3f}. Words and their pooling weights{more}"
    height = y + 52
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="16" text-anchor="middle">'
            f'<rect width="{width}" height="{height}" fill="#fff"/>'
            f'<rect x="8" y="12" width="6" height="28" fill="{POSITIVE if seen.label == names[1] else NEGATIVE}"/>'
            f'<text x="22" y="32" text-anchor="start" fill="#1a1a1a">{html.escape(_drawable(words))}</text>'
            f'{"".join(boxes)}</svg>')


def _box(word: str, weight: float, share: float, known: bool, x: int, y: int, wide: int) -> str:
    """One token of the picture; a dashed frame for an unknown one."""
    fill, middle = to_hex(WEIGHT_MAP(share)), f"{x + wide / 2 - 2:g}"
    frame = "" if known else ' stroke-dasharray="4 3"'
    return (f'<rect x="{x}" y="{y}" width="{wide - 4}" height="44" rx="4" fill="{fill}" stroke="#888"{frame}/>'
            f'<text x="{middle}" y="{y + 18}" fill="{ink_on(fill)}">{html.escape(_drawable(word))}</text>'
            f'<text x="{middle}" y="{y + 37}" fill="{ink_on(fill)}" font-size="13">{weight:.2f}</text>')


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _drawable(text: str) -> str:
    """Without what XML doesn't allow."""
    return "".join(c if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff" else "\ufffd" for c in text)
