"""Gates of heads to switch: what a trained classifier says of stored reviews without some of its heads.

Does: put a model's weights, the word vectors of these reviews alone, and the reviews into a piece, whose script runs the
model. Does not: train, measure accuracy on a test set, or run models that `classifier_data` refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

from course_utils.classifier import ReviewClassifier
from course_utils.interactive.classifier_data import model_data
from course_utils.interactive.classifier_view import SCRIPTS, answers_picture, checked_head
from course_utils.interactive.drawing import cut, shown
from course_utils.interactive.piece import Piece

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
