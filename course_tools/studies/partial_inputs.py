"""What a part of a text gives away: a linear model that sees only its length, its first word, its punctuation and so on.

Does: `VIEWS`, each a function from a text to the words that the model may see, and the model's answers, on a test split or
by cross-validation. Does not: say what's too much; that depends on how many texts there are.

A part that shouldn't decide and does is a leak in the data (Gururangan et al. 2018, https://aclanthology.org/N18-2017).
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline

NEGATORS = set("not no never nobody nothing none neither nor without hardly cannot".split())
SMALL_WORDS = NEGATORS | set(
    "i me my we us our you your he his him she her it its they them their this that these those there a an the and but or "
    "yet so though although despite even if as than for to of in on at by with from all more less most".split())


def words(text: str) -> list[str]:
    """The words in lower case, without punctuation; an apostrophe inside a word stays."""
    return re.findall(r"\w+(?:'\w+)*", text.lower())


def is_negator(word: str) -> bool:
    """Whether a word negates: one of NEGATORS, or with n't."""
    return word in NEGATORS or word.endswith("n't")


def length_steps(text: str) -> str:
    """One token for each length, a tenth longer than the last, that a text reaches: a linear model can use its length."""
    count, steps = len(words(text)), sorted({round(1.1**step) for step in range(80)})
    return " ".join(f"from{step}" for step in steps if count >= step)


VIEWS: dict[str, Callable[[str], str]] = {
    "all words": lambda text: " ".join(words(text)),
    "length": length_steps,
    "first word": lambda text: words(text)[0],
    "last word": lambda text: words(text)[-1],
    "punctuation": lambda text: " ".join([f"ends{text[-1:] * (not text[-1].isalnum())}", *re.findall(r"[^\w\s']", text)]),
    "small words": lambda text: " ".join(["_", *(word for word in words(text) if word in SMALL_WORDS or is_negator(word))]),
}


def model() -> Pipeline:
    """TF-IDF of the words that a view shows, and logistic regression."""
    return make_pipeline(TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True), LogisticRegression(max_iter=1000))


def right_on_test(
    train: Sequence[str], train_labels: Sequence[int], test: Sequence[str], test_labels: Sequence[int],
    view: Callable[[str], str],
) -> np.ndarray:
    """Which test texts are right if the model sees `view` of each text: (test texts,) of 0 and 1."""
    fitted = model().fit([view(text) for text in train], train_labels)
    return (fitted.predict([view(text) for text in test]) == np.asarray(test_labels)).astype(float)


def right_by_folds(
    texts: Sequence[str], labels: Sequence[int], groups: Sequence, view: Callable[[str], str], seed: int = 0,
) -> np.ndarray:
    """The same by ten-fold cross-validation: (texts,) of 0 and 1. Texts of one group are never separated."""
    folds = StratifiedGroupKFold(10, shuffle=True, random_state=seed)
    predicted = cross_val_predict(model(), [view(text) for text in texts], np.asarray(labels), groups=groups, cv=folds)
    return (predicted == np.asarray(labels)).astype(float)
