"""The course's trained classifier to write for: its answer, where it looks, and what happens without a word or a head.

Does: put a model's weights and words into a piece, whose script runs the whole model at every keystroke. Does not: train, or
run models that `classifier_data` refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from matplotlib.colors import to_hex

from course_utils.classifier import Explanation, ReviewClassifier
from course_utils.figures import NEGATIVE, POSITIVE, WEIGHT_MAP, ink_on
from course_utils.interactive.classifier_data import model_data
from course_utils.interactive.drawing import INK, LINE, bar, cut, label, picture, shown
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
    (name, text, what to look at), as buttons, which also switch all heads on. parts: what is shown beside the answer, any of
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
    name, likely = classifier.label_names[1], seen.probabilities[classifier.label_names[1]]
    words = [token.text for token in seen.tokens]
    if not words:
        return f"A classifier to write for. No words yet: {seen.label}, probability of '{name}' {likely:.3f}."
    unknown = [word for word in words if word not in classifier.tokenizer.ids]
    most = int(seen.weights.argmax())
    return shown(
        f"A classifier to write for, here with {len(words)} tokens: {cut(' '.join(words), 300)} It says {seen.label}, "
        f"probability of '{name}' {likely:.3f}. Largest pooling weight: '{cut(words[most], 40)}' "
        f"{float(seen.weights[most]):.3f}. "
        + (f"{len(unknown)} unknown: {cut(', '.join(unknown), 100)}." if unknown else "No unknown words.")
    )


def strip_picture(seen: Explanation, classifier: ReviewClassifier, width: int = 760) -> str:
    """The answer and the words coloured by pooling weight, as an SVG picture; of a long text the first 40 tokens."""
    names, likely = classifier.label_names, seen.probabilities[classifier.label_names[1]]
    boxes, x, y = [], 8, 56
    top = max([float(weight) for weight in seen.weights] + [0.1])
    for token, weight in list(zip(seen.tokens, seen.weights.tolist()))[:40]:
        word = cut(shown(token.text), 20)
        wide = 16 + 9 * max(len(word), 4)
        if x + wide > width - 8:
            x, y = 8, y + 52
        known, fill = token.text in classifier.tokenizer.ids, to_hex(WEIGHT_MAP(weight / top))
        middle = {"text_anchor": "middle", "fill": ink_on(fill)}
        boxes += [bar(x, y, wide - 4, 44, fill, rx=4, stroke=LINE, stroke_dasharray=None if known else "4 3"),
                  label(x + wide / 2 - 2, y + 18, word, 16, **middle),
                  label(x + wide / 2 - 2, y + 37, f"{weight:.2f}", 13, **middle)]
        x += wide
    more = f" (the first 40 of {len(seen.tokens)} tokens)" if len(seen.tokens) > 40 else ""
    words = f"{seen.label}, probability of ‘{names[1]}’ {likely:.3f}. Words and their pooling weights{more}"
    said = POSITIVE if seen.label == names[1] else NEGATIVE
    return picture(width, y + 52, bar(8, 12, 6, 28, said), label(22, 32, words, 16), *boxes)


def answers_picture(texts: Sequence[str], likely: Sequence[float], names: Sequence[str], width: int = 760) -> str:
    """For each text its beginning, and the probability of the second label as a bar from one half; SVG."""
    parts = [label(8, 24, f"Probability of ‘{names[1]}’, all heads on", 16)]
    for i, (text, value) in enumerate(zip(texts, likely)):
        y, left, wide = 40 + 26 * i, 490, 200
        parts += [label(8, y + 14, cut(shown(text), 60)), bar(left, y, wide, 18, "none", stroke=LINE),
                  bar(left + wide * min(value, 0.5), y, wide * abs(value - 0.5), 18, POSITIVE if value > 0.5 else NEGATIVE),
                  bar(left + wide / 2 - 1, y, 2, 18, INK), label(left + wide + 10, y + 14, f"{value:.3f}")]
    return picture(width, 48 + 26 * len(texts), *parts)
