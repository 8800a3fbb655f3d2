"""The course's answers to the exercises of notebook 01, and what each known mistake would write."""

import math
import re
from collections import Counter

import numpy as np

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


MARKED = Answers(
    read_marked,
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
    log_odds = math.log(sum(labels) / (len(labels) - sum(labels)))                  # the log prior odds
    for word in text.split():
        if word in vocabulary:
            log_odds += math.log((counts[1][word] + 1) / size[1]) - math.log((counts[0][word] + 1) / size[0])
    return log_odds


def _bayes(add=1, grow="both", prior="reviews", sign=1, odds=False, once=False, repeats=True, unknown=False,
           cut=str.split):
    """Naive Bayes with one or more things changed."""
    def log_odds(texts, labels, text):
        counts = {0: Counter(), 1: Counter()}
        for review, label in zip(texts, labels):
            counts[label].update(set(cut(review)) if once else cut(review))
        both = set(counts[0]) | set(counts[1])
        total = {label: counts[label].total() + {"both": len(both), "own": len(counts[label]), "one": 1, "none": 0}[grow]
                 for label in (0, 1)}
        score = {"reviews": math.log(sum(labels) / (len(labels) - sum(labels))), "none": 0.0,
                 "words": math.log(counts[1].total() / counts[0].total())}[prior]
        for word in cut(text) if repeats else sorted(set(cut(text))):
            if word in both or unknown:
                with np.errstate(divide="ignore", invalid="ignore"):
                    score += np.log((counts[1][word] + add) / total[1]) - np.log((counts[0][word] + add) / total[0])
        score = sign * float(score)
        with np.errstate(over="ignore"):
            return float(np.exp(score)) if odds else score
    return log_odds


BAYES = Answers(
    review_log_odds,
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
        "cut-by-words": _bayes(cut=words),
        "punctuation-dropped": _bayes(cut=lambda text: re.findall(r"\w+", text.lower())),
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


LEAKS = Answers(
    without_leaks,
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

ANSWERS = (MARKED, HOW_MANY, BAYES, LEAKS)
