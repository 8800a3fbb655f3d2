"""Solutions of the exercises of notebook 01, accepted variants, and the answers that known mistakes give."""

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import torch

from course_utils.baselines import naive_bayes
from course_utils.exercises.definitions import Answers


def words(text):
    """As in the notebook."""
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text.lower())


# ---------------------------------------------------------------- 1.1


def read_marked(marked):
    text, spans = "", []
    for character in marked:
        if character == "[":
            start = len(text)                       # counted in the text without brackets
        elif character == "]":
            spans.append((start, len(text)))        # the first character that no longer belongs
        else:
            text += character
    return text, spans


def _reader(move=None, brackets=False, pattern=r"\[(.*?)\]", swap=False):
    """Read brackets by a regular expression; `move(i, match, text)` makes the span of match number i."""
    def read(marked):
        clean = marked.replace("[", "").replace("]", "")
        text = marked if brackets else clean
        spans = [(move or _right)(i, match, clean) for i, match in enumerate(re.finditer(pattern, marked, re.DOTALL))]
        return (spans, text) if swap else (text, spans)
    return read


def _right(i, match, text):
    return match.start(1) - 2 * i - 1, match.end(1) - 2 * i - 1


def _first_to_last(marked):
    text, spans = read_marked(marked)
    return text, [(spans[0][0], spans[-1][1])] if spans else []


def _found(i, match, text):
    return text.find(match[1]), text.find(match[1]) + len(match[1])


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


MARKED = Answers(
    read_marked,
    variants={"expression": _reader(), "parts, as an array": _by_parts, "one after the other": _one_after_the_other,
              "recursion": _from_head_to_tail, "places counted": _places_counted,
              "array": lambda marked: (read_marked(marked)[0], np.array(read_marked(marked)[1]))},
    mutants={
        "counted-with-brackets": _reader(lambda i, m, text: m.span(1)),
        "brackets-included": _reader(lambda i, m, text: m.span()),
        "first-bracket-only": _reader(lambda i, m, text: (m.start(1) - 1, m.end(1) - 1)),
        "opening-only": _reader(lambda i, m, text: (m.start(1) - i - 1, m.end(1) - i - 1)),
        "end-inclusive": _reader(lambda i, m, text: (_right(i, m, text)[0], _right(i, m, text)[1] - 1)),
        "length-for-end": _reader(lambda i, m, text: (_right(i, m, text)[0], len(m[1]))),
        "found-again": _reader(_found),
        "from-first-to-last": _first_to_last,
        "text-with-brackets": _reader(brackets=True),
        "nothing-removed": _reader(lambda i, m, text: m.span(1), brackets=True),
        "swapped": _reader(swap=True),
    },
)

# ---------------------------------------------------------------- 1.2


def how_many():
    # one standard error is 0.01, so 0.01 ** 2 = 0.9 * 0.1 / n
    return 900


HOW_MANY = Answers(
    how_many,
    variants={"computed": lambda: 0.9 * 0.1 / 0.01 ** 2, "as a text": lambda: "900", "in a list": lambda: torch.tensor(900)},
    mutants={"one-error": lambda: 225, "doubled": lambda: 56.25, "no-root": lambda: 9, "root-only-above": lambda: 30,
             "one-half": lambda: 2500, "no-wrong-ones": lambda: 9000, "points": lambda: 0.09,
             "rounded-up": lambda: math.ceil(0.9 * 0.1 / 0.01 ** 2)},
)

# ---------------------------------------------------------------- 1.3


def review_log_odds(texts, labels, text):
    counts = {0: Counter(), 1: Counter()}
    for review, label in zip(texts, labels):
        counts[label].update(review.split())
    vocabulary = set(counts[0]) | set(counts[1])
    size = {label: counts[label].total() + len(vocabulary) for label in (0, 1)}     # each word seen once more
    log_odds = math.log(sum(labels) / (len(labels) - sum(labels)))                  # the prior
    for word in text.split():
        if word in vocabulary:
            log_odds += math.log((counts[1][word] + 1) / size[1]) - math.log((counts[0][word] + 1) / size[0])
    return log_odds


def _bayes(add=1, grow="both", prior="reviews", sign=1, odds=False, once=False, repeats=True, unknown=False):
    """Naive Bayes with one or more things changed."""
    def log_odds(texts, labels, text):
        counts = {0: Counter(), 1: Counter()}
        for review, label in zip(texts, labels):
            counts[label].update(set(review.split()) if once else review.split())
        both = set(counts[0]) | set(counts[1])
        total = {label: counts[label].total() + {"both": len(both), "own": len(counts[label]), "one": 1, "none": 0}[grow]
                 for label in (0, 1)}
        score = {"reviews": math.log(sum(labels) / (len(labels) - sum(labels))), "none": 0.0,
                 "words": math.log(counts[1].total() / counts[0].total())}[prior]
        for word in text.split() if repeats else sorted(set(text.split())):
            if word in both or unknown:
                with np.errstate(divide="ignore", invalid="ignore"):
                    score += np.log((counts[1][word] + add) / total[1]) - np.log((counts[0][word] + add) / total[0])
        score = sign * float(score)
        with np.errstate(over="ignore"):
            return float(np.exp(score)) if odds else score
    return log_odds


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
    logs = naive_bayes().fit(texts, labels).predict_log_proba([text])[0]
    return logs[1] - logs[0]


def _tensors(texts, labels, text):
    index = {word: i for i, word in enumerate(dict.fromkeys(" ".join(texts).split()))}
    counts = torch.ones(2, len(index))
    for review, label in zip(texts, labels):
        for word in words(review):
            counts[label, index[word]] += 1
    logs = (counts / counts.sum(dim=1, keepdim=True)).log()
    share = torch.tensor(labels).float().mean()
    return sum((logs[1, index[word]] - logs[0, index[word]] for word in words(text) if word in index), torch.logit(share))


def _classes(texts, labels, text):
    """Both classes at once, as posterior probabilities; a tensor with one number."""
    vocabulary = list(dict.fromkeys(word for review in texts for word in review.split()))
    X = torch.tensor([[review.split().count(word) for word in vocabulary] for review in [*texts, text]]).double()
    Y = torch.nn.functional.one_hot(torch.tensor(labels)).double()
    counts = Y.T @ X[:-1] + 1
    scores = (counts / counts.sum(dim=1, keepdim=True)).log() @ X[-1:].T + Y.mean(dim=0)[:, None].log()
    return scores.log_softmax(dim=0).diff(dim=0)


BAYES = Answers(
    review_log_odds,
    variants={"product": _product, "arrays": _arrays, "library": _library, "tensors": _tensors, "classes": _classes},
    mutants={
        "no-smoothing": _bayes(add=0, grow="none"),
        "total-not-raised": _bayes(grow="none"),
        "total-plus-one": _bayes(grow="one"),
        "own-vocabulary": _bayes(grow="own"),
        "no-prior": _bayes(prior="none"),
        "prior-of-words": _bayes(prior="words"),
        "upside-down": _bayes(sign=-1),
        "odds": _bayes(odds=True),
        "once-per-review": _bayes(once=True),
        "repeats-ignored": _bayes(repeats=False),
        "unknown-counted": _bayes(unknown=True),
    },
)

# ---------------------------------------------------------------- 1.4


def without_leaks(train, test):
    seen = {tuple(sorted(words(text))) for text in test}            # the order is forgotten, the counts are kept
    return [text for text in train if tuple(sorted(words(text))) not in seen]


def _without(view, keep=False, side=0):
    def without(train, test):
        given, other = (train, test) if side == 0 else (test, train)
        seen = [view(text) for text in other]
        return [text for text in given if (view(text) in seen) == keep]
    return without


def _in_loop(train, test):
    seen = [Counter(words(text)) for text in test]
    kept = list(train)
    for text in kept:
        if Counter(words(text)) in seen:
            kept.remove(text)
    return kept


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


LEAKS = Answers(
    without_leaks,
    variants={"counters": _without(lambda text: Counter(words(text))), "two loops": _two_loops, "set": _as_a_set,
              "generator": lambda train, test: (text for text in without_leaks(train, test)),
              "array": lambda train, test: np.array(without_leaks(train, test)),
              "joined": lambda train, test: tuple(_without(lambda text: " ".join(sorted(words(text))))(train, test))},
    mutants={
        "copies-only": _without(lambda text: " ".join(words(text))),
        "letter-by-letter": _without(lambda text: text),
        "cut-at-spaces": _without(lambda text: sorted(text.lower().split())),
        "capitals": _without(lambda text: sorted(re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text))),
        "set-of-words": _without(lambda text: set(words(text))),
        "letters": _without(lambda text: sorted(text.lower())),
        "inverted": _without(lambda text: sorted(words(text)), keep=True),
        "wrong-side": _without(lambda text: sorted(words(text)), side=1),
        "removed-in-loop": _in_loop,
    },
)

ANSWERS = {"1.1": MARKED, "1.2": HOW_MANY, "1.3": BAYES, "1.4": LEAKS}
