"""Other right answers to the exercises of notebook 01, which a check must accept."""

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from course_exercises.n01.answers import _reader, _without, read_marked, without_leaks, words


def _by_parts(marked):
    parts = re.split(r"[\[\]]", marked)
    ends = np.cumsum([len(part) for part in parts])
    return "".join(parts), [[ends[i - 1], ends[i]] for i in range(1, len(parts), 2)]


def _one_after_the_other(marked):
    spans = []
    while "[" in marked:
        start = marked.index("[")
        marked = marked.replace("[", "", 1)
        end = marked.index("]")
        marked = marked.replace("]", "", 1)
        spans.append((start, end))
    return [marked, torch.tensor(spans)]


def _from_head_to_tail(marked, done=0):
    if "[" not in marked:
        return marked, ()
    head, _, rest = marked.partition("[")
    inside, _, tail = rest.partition("]")
    start = done + len(head)
    text, spans = _from_head_to_tail(tail, start + len(inside))
    return head + inside + text, ((start, start + len(inside)), *spans)


def _places_counted(marked):
    """How many characters other than brackets stand before each place; the spans as a generator."""
    before = np.cumsum([0] + [sign not in "[]" for sign in marked])
    ends = zip(np.flatnonzero([sign == "[" for sign in marked]), np.flatnonzero([sign == "]" for sign in marked]))
    return marked.translate(str.maketrans("", "", "[]")), (before[[first, last]] for first, last in ends)


def _product(texts, labels, text):
    positive = " ".join(review for review, label in zip(texts, labels) if label == 1).split()
    negative = " ".join(review for review, label in zip(texts, labels) if not label).split()
    size = len(set(positive + negative))
    odds = Fraction(labels.count(1), labels.count(0))
    for word in text.split():
        if word in positive or word in negative:
            odds *= Fraction((positive.count(word) + 1) * (len(negative) + size),
                             (negative.count(word) + 1) * (len(positive) + size))
    return math.log(odds.numerator) - math.log(odds.denominator)


def _arrays(texts, labels, text):
    vocabulary = sorted({word for review in texts for word in review.split()})
    C = np.array([[review.split().count(word) for word in vocabulary] for review in texts])
    y = np.array(labels)
    N = np.stack([C[y == 0].sum(axis=0), C[y == 1].sum(axis=0)]) + 1
    log_p = np.log(N / N.sum(axis=1, keepdims=True))
    row = np.array([text.split().count(word) for word in vocabulary])
    return row @ (log_p[1] - log_p[0]) + np.log(y.mean() / (1 - y.mean()))


def _library(texts, labels, text):
    counter = CountVectorizer(tokenizer=str.split, token_pattern=None, lowercase=False)
    logs = make_pipeline(counter, MultinomialNB()).fit(texts, labels).predict_log_proba([text])[0]
    return logs[1] - logs[0]


def _tensors(texts, labels, text):
    index = {word: i for i, word in enumerate(dict.fromkeys(" ".join(texts).split()))}
    counts = torch.ones(2, len(index))
    for review, label in zip(texts, labels):
        for word in review.split():
            counts[label, index[word]] += 1
    logs = (counts / counts.sum(dim=1, keepdim=True)).log()
    share = torch.tensor(labels).float().mean()
    return sum((logs[1, index[word]] - logs[0, index[word]] for word in text.split() if word in index), torch.logit(share))


def _classes(texts, labels, text):
    """Both classes at once, as posterior probabilities; a tensor with one number."""
    vocabulary = list(dict.fromkeys(word for review in texts for word in review.split()))
    X = torch.tensor([[review.split().count(word) for word in vocabulary] for review in [*texts, text]]).double()
    Y = torch.nn.functional.one_hot(torch.tensor(labels)).double()
    counts = Y.T @ X[:-1] + 1
    scores = (counts / counts.sum(dim=1, keepdim=True)).log() @ X[-1:].T + Y.mean(dim=0)[:, None].log()
    return scores.log_softmax(dim=0).diff(dim=0)


def _two_loops(train, test):
    kept = []
    for text in train:
        leak = False
        for other in test:
            if sorted(words(text)) == sorted(words(other)):
                leak = True
        if not leak:
            kept.append(text)
    return kept


def _as_a_set(train, test):
    bags = {frozenset(Counter(words(text)).items()) for text in test}
    return {text for text in train if frozenset(Counter(words(text)).items()) not in bags}


VARIANTS = {
    "1.1": {"expression": _reader(), "parts, as an array": _by_parts, "one after the other": _one_after_the_other,
            "recursion": _from_head_to_tail, "places counted": _places_counted,
            "array": lambda marked: (read_marked(marked)[0], np.array(read_marked(marked)[1]))},
    "1.2": {"computed": lambda: 0.9 * 0.1 / 0.01 ** 2, "as a text": lambda: "900", "in a list": lambda: torch.tensor(900)},
    "1.3": {"product": _product, "arrays": _arrays, "library": _library, "tensors": _tensors, "classes": _classes},
    "1.4": {"counters": _without(lambda text: Counter(words(text))), "two loops": _two_loops, "set": _as_a_set,
            "generator": lambda train, test: (text for text in without_leaks(train, test)),
            "array": lambda train, test: np.array(without_leaks(train, test)),
            "joined": lambda train, test: tuple(_without(lambda text: " ".join(sorted(words(text))))(train, test))},
}
