"""Exercises and quiz of notebook 01, raw text."""

import html
import math
import re
import unicodedata
from collections import Counter

import numpy as np
import torch

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import drawn, two_results, what

OPINIONS = ["dull", "moving", "clumsy", "witty", "bland", "tender", "shallow", "gripping", "stale", "graceful"]


def words(text):
    """The words and punctuation of a text, as in the notebook."""
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text.lower())

# ---------------------------------------------------------------- 1.1 from brackets to spans

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


def _reader(move=None, brackets=False, pattern=r"\[(.*?)\]", swap=False, flags=re.DOTALL):
    """Read brackets by a regular expression; `move(i, match, text)` makes the span of match number i."""
    def read(marked):
        clean = marked.replace("[", "").replace("]", "")
        text = marked if brackets else clean
        spans = [(move or _right)(i, match, clean) for i, match in enumerate(re.finditer(pattern, marked, flags))]
        return (spans, text) if swap else (text, spans)
    return read


def _right(i, match, text):
    return match.start(1) - 2 * i - 1, match.end(1) - 2 * i - 1


def _in_words(i, match, text):
    start, end = _right(i, match, text)
    return len(text[:start].split()), len(text[:end].split())


def _first_to_last(marked):
    text, spans = read_marked(marked)
    return text, [(spans[0][0], spans[-1][1])] if spans else []


def _found(i, match, text):
    return text.find(match[1]), text.find(match[1]) + len(match[1])


def marked_probes(generator: torch.Generator) -> list[tuple]:
    """Texts with brackets: a marked word that stands before, between and after without; three marks; no mark at all.

    Then capitals, digits, accents, two spaces, a new line, marks side by side and one that ends the text; no text; and a
    mark that runs over a line break; spaces at the beginning and a new line at the end.
    """
    a, b, c, d = drawn(generator, OPINIONS, 4)
    return [(f"Called {a} and {b}, it is [not] {a} nor {b} but [{b}]; never {b} before.",),
            (f"[{c}] at first, then [{a} and {d}]; so [I] left.",), (f"A {d} film, {b} to the end.",),
            (f"[NEVER]  {a.upper()}?\n7/10 - café, [{b.capitalize()} & 100 % {c}][{d}]: [{a}]",), ("",),
            (f"It is [not {a},\nnor {b}] to the end.",), (f"  Then {c}, [{d}].\n",)]


def observe_marked(function, marked):
    """The text, and the spans as a text such as '4-8 13-19'."""
    output = function(marked)
    if output is None:
        return None
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        raise TypeError(f"expected a text and a list of spans, got {what(output)}")
    swapped = isinstance(output[1], str) and not isinstance(output[0], str)
    text, spans = reversed(output) if swapped else output
    if not isinstance(text, str):
        raise TypeError(f"expected a str as the text, got {what(text)}")
    try:
        spans = list(spans)
        written = " ".join(f"{_whole(start)}-{_whole(end)}" for start, end in spans)
    except (TypeError, ValueError):
        raise TypeError(f"expected a list of pairs of whole numbers as the spans, got {what(spans)}") from None
    return {"text": text, "spans": written, "swapped": swapped}


def _whole(number) -> int:
    """A whole number as an int, whatever its type; ValueError for a fraction."""
    if int(number) != float(number):
        raise ValueError(f"{number} is no whole number")
    return int(number)


def _one_number(output, asked: str) -> float:
    """A number however it comes: tensor, array, text, Decimal, a list of one; else TypeError that says what was asked."""
    value = output
    for _ in range(10):                                 # a list may hold itself
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"expected {asked}, got {what(output)}") from None


def _as_pairs(spans: str) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, end in re.findall(r"(-?\d+)-(-?\d+)", spans)]


def _first_wrong(case: Case) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Number, from 0, of the first span that is not right, the span, and the right one."""
    got, right = _as_pairs(case.spans), _as_pairs(case.right["spans"])
    i = next(i for i, (one, other) in enumerate(zip(got, right)) if one != other)
    return i, got[i], right[i]


def _elsewhere(case: Case) -> bool:
    """Whether the first wrong span cuts out the marked words, but from another place."""
    if case.spans == case.right["spans"]:
        return False
    _, (start, end), (first, last) = _first_wrong(case)
    return case.text[start:end] == case.right["text"][first:last]


def _wrong_span(case: Case) -> str:
    """The first span that is not right, what it cuts out of the learner's own text, and what was marked there."""
    i, (start, end), (first, last) = _first_wrong(case)
    return (f"your span number {i + 1} is ({start}, {end}), which cuts {case.text[start:end]!r} out of your "
            f"text; the marked words are {case.right['text'][first:last]!r}.")


def _first_difference(got: str, right: str) -> str:
    place = next((i for i, (one, other) in enumerate(zip(got, right)) if one != other), min(len(got), len(right)))
    return (f"from character {place} on your text reads {got[place : place + 20]!r}, expected "
            f"{right[place : place + 20]!r}.")


def _over_lines(case: Case) -> bool:
    """Whether a marked passage spans a line break."""
    return re.search(r"\[[^]]*\n", case.inputs[0]) is not None


def _lengths(case: Case) -> str:
    return (f"your text has {len(case.text)} characters, {case.text.count('[')} of them '['; without the "
            f"brackets it has {len(case.right['text'])}.")


def _counts(case: Case) -> str:
    got, right = len(case.spans.split()), len(case.right["spans"].split())
    return (f"you return {got} {'span' if got == 1 else 'spans'}, and {right} "
            f"{'passage is' if right == 1 else 'passages are'} marked.")


def _spans_first(case: Case) -> str:
    return f"you return the spans ({case.spans.replace(' ', ', ')}) first and then the text."


MARKED = ask(
    "1.1", read_marked,
    observe=observe_marked,
    probes=marked_probes,
    signature="read_marked(marked, a text such as 'not [dull]') -> text without brackets, list of (start, end)",
    mistakes={
        "counted-with-brackets": M(_reader(lambda i, m, text: m.span(1)), _wrong_span, "You counted characters in the "
                                   "marked text. In the text that you return, every bracket further left is gone: the "
                                   "first span moves by 1, the second by 3, and so on."),
        "brackets-included": M(_reader(lambda i, m, text: m.span()), _wrong_span, "The span runs from bracket to bracket "
                               "in the marked text. It must contain the evidence alone, and count in the text without "
                               "brackets."),
        "first-bracket-only": M(_reader(lambda i, m, text: (m.start(1) - 1, m.end(1) - 1)),
                                _wrong_span, "Each span was moved by one. That is right for the first; further on more "
                                "brackets are gone, two for each earlier span."),
        "opening-only": M(_reader(lambda i, m, text: (m.start(1) - i - 1, m.end(1) - i - 1)),
                          _wrong_span, "Only the opening brackets were counted as gone. Each earlier span had a closing "
                          "one as well."),
        "end-inclusive": M(_reader(lambda i, m, text: (_right(i, m, text)[0], _right(i, m, text)[1] - 1)),
                           _wrong_span, "The end is the last character of the span. Here `end` is the first character "
                           "after it (section 2), so that text[start:end] cuts the words out."),
        "length-for-end": M(_reader(lambda i, m, text: (_right(i, m, text)[0], len(m[1]))),
                            _wrong_span, "The second number is the length. It has to be the end: start plus length."),
        "found-again": M(_reader(_found), _wrong_span, "The words are right, but their position isn't. A search finds the "
                         "first occurrence, and the marked one comes later. Count instead of searching."),
        "from-first-to-last": M(_first_to_last, _counts, "One span runs from the first '[' to the last ']'. In a regular "
                                "expression `.*` takes as much as it can; `.*?` stops at the next ']'."),
        "text-with-brackets": M(_reader(brackets=True), _lengths, "The spans are right, for a text without brackets. The "
                                "text that you return still has them, so the two do not belong together."),
        "nothing-removed": M(_reader(lambda i, m, text: m.span(1), brackets=True), _lengths, "Your spans fit your text, "
                             "but the brackets are still in it. They aren't part of the review: take them out, and count "
                             "without them."),
        "one-line-alone": M(_reader(flags=0), _counts, "The passage that spans a line break has no span. In a regular "
                            "expression `.` doesn't match a line break: pass re.S."),
        "swapped": M(_reader(swap=True), _spans_first, "The text comes first, then the list of spans: return text, spans."),
        "words-counted": M(_reader(_in_words), _wrong_span, "You counted words. Spans count characters, spaces and "
                           "punctuation included (section 2)."),
    },
    rules=(
        R(lambda case: case.swapped != 0, _spans_first, "The text comes first, then the list of spans; and look at the "
          "spans once more."),
        R(lambda case: re.search(r"\[[^]]*\n", case.text) and "[" not in case.right["text"],
          lambda case: "a marked passage that spans a line break is still in your text, with its brackets.",
          "Look for '[' and ']' themselves. In a regular expression, `.` doesn't match a line break: pass re.S."),
        R(lambda case: "[" in case.text or "]" in case.text,
          lambda case: f"{sum(case.text.count(sign) for sign in '[]')} brackets are still in your text.",
          "The text must be the review as it was before it was marked."),
        R(lambda case: case.text != case.right["text"],
          lambda case: _first_difference(case.text, case.right["text"]), "Only the brackets go; every other character "
          "stays: capitals, digits, punctuation, and two spaces in a row."),
        R(lambda case: not case.spans and case.right["spans"] and not _over_lines(case), _counts, "Brackets that are taken "
          "out first can't be found any more: note where each one is while you take it out."),
        R(lambda case: not case.spans and _over_lines(case), _counts, "The passage that spans a line break has no span. In "
          "a regular expression `.` doesn't match a line break: pass re.S."),
        R(lambda case: len(case.spans.split()) != len(case.right["spans"].split()), _counts, "Each pair of brackets gives "
          "one span, and a text without brackets gives an empty list."),
        R(lambda case: sorted(case.spans.split()) == sorted(case.right["spans"].split())
          and case.spans != case.right["spans"],
          lambda case: "your spans are right, but their order is " f"{case.spans.replace(' ', ', ')}.", "Give them in the "
          "order of the text, from left to right: `mark` relies on it."),
        R(_elsewhere,
          lambda case: "your span number {} is {}, and the marked one is {}.".format(_first_wrong(case)[0] + 1,
                                                                                      *_first_wrong(case)[1:]),
          "Both cut out the same words. Count from the beginning of the text without brackets, and let each pair of "
          "brackets give its own span."),
        R(lambda case: case.spans != case.right["spans"], _wrong_span, "`start` and `end` count in the text without "
          "brackets, and `end` is the first character after the span."),
    ),
    hints=(
        "Walk through the marked text one character at a time, and build the text without brackets as you go.",
        "At a '[' and at a ']', how long is the text that you have built so far?",
        "At '[' keep start = len(text); at ']' append (start, len(text)); any other character goes to the text.",
    ),
)

# ---------------------------------------------------------------- 1.2 how many reviews

def how_many_reviews():
    # one standard error is 0.01, so 0.01 ** 2 = 0.9 * 0.1 / n
    return 900


def _yours(case: Case) -> float:
    return case.answer.item()


def _points(number: float) -> str:
    return "1 point" if f"{number:.4g}" == "1" else f"{number:.4g} points"


def _error_of(case: Case) -> str:
    """The standard error that the learner's number of reviews gives."""
    count = _yours(case)
    if not 0 < count < math.inf:
        return f"{count:g} can't be a number of reviews."
    return f"with {count:g} reviews two standard errors are {_points(200 * math.sqrt(0.09 / count))}, not 2."


HOW_MANY = ask(
    "1.2", how_many_reviews,
    kind="number",
    tolerance=2e-4,
    signature="one number: how many reviews",
    mistakes={
        "one-error": M(lambda: 225, _error_of, "That makes one standard error 2 points. It should be half of that, and "
                       "half the error takes four times as many reviews."),
        "doubled": M(lambda: 56.25, _error_of, "That makes one standard error 4 points. Two of them should be 2 points, so "
                     "one is half of that."),
        "two-not-squared": M(lambda: 450, _error_of, "You get that if 0.02 is squared and the 2 before the root isn't. "
                             "Halve first: one standard error is 0.01."),
        "halved-twice": M(lambda: 3600, _error_of, "The 2 counts twice. Once 2 points are halved, 0.01 is one standard "
                          "error; don't multiply the root by 2 as well."),
        "halved-twice-no-root": M(lambda: 36, _error_of, "The 2 counts twice, and 0.01 isn't squared. One standard error is "
                                  "0.01: square both sides of that."),
        "no-root": M(lambda: 9, _error_of, "That is the solution of p (1 − p) / n = 0.01. The formula has a root: square "
                     "the 0.01 first."),
        "root-only-above": M(lambda: 30, _error_of, "That is 0.3, the root of p (1 − p), divided by 0.01. But the root "
                             "covers n as well, so √n is 30."),
        "one-half": M(lambda: 2500, _error_of, "That is the number for p = 0.5, as in section 5. Here p is 0.9."),
        "no-wrong-ones": M(lambda: 9000, _error_of, "You get that with p in place of p (1 − p). The proportion of wrong "
                           "answers is a factor as well."),
        "rounded-up": M(lambda: math.ceil(0.9 * 0.1 / 0.01 ** 2), _error_of, "On paper it is 900 exactly. 0.9 * 0.1 / 0.01 "
                        "** 2 comes out a hair above that in floating-point numbers, and rounding up then adds a review.",
                        convention=True),
        "points": M(lambda: 0.09, _error_of, "You get that with an error of 1. A point is a hundredth (section 5): one "
                    "point is 0.01."),
    },
    rules=(
        R(lambda case: not 0 < _yours(case) < math.inf, _error_of, "Count the reviews that the test must have."),
        R(lambda case: _yours(case) < 900, _error_of, "The test is too small: solve the formula for n."),
        R(lambda case: _yours(case) > 900, _error_of, "That is more than it takes: solve the formula for n."),
    ),
    hints=(
        "How large should one standard error be, as a fraction and not in points?",
        "Square both sides of the formula: 0.01² = p (1 − p) / n.",
        "p (1 − p) is 0.9 times 0.1, and 0.01² is 0.0001.",
    ),
)

# ---------------------------------------------------------------- 1.3 naive Bayes

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
           cut=str.split, then=lambda score: score):
    """Naive Bayes with one or more things changed; `then` is what it makes of the log odds."""
    def log_odds(texts, labels, text):
        counts = {0: Counter(), 1: Counter()}
        for review, label in zip(texts, labels):
            counts[label].update(set(cut(review)) if once else cut(review))
        both = set(counts[0]) | set(counts[1])
        total = {label: counts[label].total() + {"both": len(both), "own": len(counts[label]), "one": 1, "none": 0}[grow]
                 for label in (0, 1)}
        score = {"reviews": math.log(sum(labels) / (len(labels) - sum(labels))), "none": 0.0,
                 "words": math.log(counts[1].total() / counts[0].total()),
                 "no log": sum(labels) / (len(labels) - sum(labels)),
                 "inverted": math.log((len(labels) - sum(labels)) / sum(labels)),
                 "proportion": math.log(sum(labels) / len(labels))}[prior]
        for word in cut(text) if repeats else sorted(set(cut(text))):
            if word in both or unknown:
                with np.errstate(divide="ignore", invalid="ignore"):
                    score += np.log((counts[1][word] + add) / total[1]) - np.log((counts[0][word] + add) / total[0])
        score = sign * float(score)
        with np.errstate(over="ignore"):
            return float(np.exp(score)) if odds else float(then(score))
    return log_odds


TINY = (["moving", "slow but moving", "dull", "slow not moving"], [1, 1, 0, 0])        # those of section 4


def bayes_probes(generator: torch.Generator) -> list[tuple]:
    """The four reviews of section 4; one with repeats, more positive reviews, words of one class; the reverse; and commas.

    Cut at spaces, a word with a comma is another word, and so is one with a capital.
    """
    a, b, c, d, e, f, _ = drawn(generator, OPINIONS, 7)
    extra = int(torch.randint(1, 3, (1,), generator=generator))
    texts = [f"{a} {a} {b}", f"{f} {a} {f}", f"{a} {c}", f"{b} {d} {a}", f"{c} {f}", e] + [f"{e} {a}"] * extra
    labels = [1, 0, 1, 1, 0, 1] + [1] * extra
    return [(*TINY, "not dull but moving"), (texts, labels, f"{c} {f} {f} {d}"),
            ([*texts, f"{b} {e} {f}", f"{f} {e}"], [1 - label for label in labels] + [1, 0], f"{a} {f} {b} {a}"),
            ([f"{a}, {b}. {a.capitalize()}", f"{a} {c}, {a},", f"{b} {c}", f"{c}, {a}!"], [1, 0, 1, 0],
             f"{a}, {b} {c} {a}")]


def one_sided(texts: list[str], labels: list[int]) -> str:
    """The word that tells most: that of the largest odds, either way, among the words of some training reviews."""
    counts = {label: Counter(" ".join(text for text, one in zip(texts, labels) if one == label).split()) for label in (0, 1)}
    return max(sorted(counts[0] + counts[1]), key=lambda word: abs(math.log((counts[1][word] + 1) / (counts[0][word] + 1))))

TOO_SMALL = "So many small factors multiply to 0, or to infinity: add logarithms, one for each word, instead of multiplying"


OVERFLOWS = ("math.exp has no room for that. What is asked for is the sum of logarithms itself: return it, neither the odds "
             "nor a probability")


def observe_bayes(function, texts, labels, text):
    """The log odds of the text; its words turned round; with an unknown word; written twice; of no words; of 1,500 words."""
    asked = {"text": text, "turned round": " ".join(reversed(text.split())), "unknown": f"{text} unheard",
             "twice": f"{text} {text}", "no words": "",
             "1,500 words": " ".join([one_sided(texts, labels)] * 1500)}
    found = {}
    for name, each in asked.items():
        try:
            output = function(texts, labels, each)
        except Exception as error:
            if name == "1,500 words":
                why = OVERFLOWS if str(error) == "math range error" else TOO_SMALL
                raise TypeError("expected a number for a text of 1,500 words as well; there it stops with "
                    f"{type(error).__name__}: {error}. {why}") from None
            if each:
                raise
            raise TypeError("expected the prior alone for the text '', which has no words; there it stops with "
                f"{type(error).__name__}: {error}") from None
        if output is None and name == "text":
            return None
        found[name] = _one_number(output, f"one number for the text {each[:60]!r}")
    return found


def _said(case: Case, name: str = "text") -> str:
    got, right = case.got[name], case.right[name]
    written = repr(case.inputs[2])
    words = {"text": written, "no words": "a text without words", "1,500 words": f"{one_sided(*case.inputs[:2])!r} "
        f"1,500 times", "twice": f"{written} written twice"}[name]
    trained = "the four reviews of section 4" if case.inputs[0] == TINY[0] else f"{len(case.inputs[0])} other reviews"
    return (f"after training on {trained}, {words} gets {got.item():+.3f} from you, expected "
            f"{right.item():+.3f}.")


def _prior(case: Case) -> str:
    positive = sum(case.inputs[1])
    return f"{positive} of these reviews are positive and {len(case.inputs[1]) - positive} negative"


def _gap(case: Case, one: str, other: str) -> float:
    return (case.got[one] - case.got[other]).item()


def _not_finite(case: Case) -> str:
    count = sum(not torch.isfinite(value).all() for value in case.got.values())
    if count == 0:
        raise LookupError("all are finite here: speak of another case")
    return f"{count} of {len(case.got)} log odds {'is not a finite number' if count == 1 else 'are not finite numbers'}."


def _unheard(case: Case) -> str:
    return f"the word 'unheard', which no training review has, moves your log odds by {_gap(case, 'unknown', 'text'):+.3f}."


BAYES = ask(
    "1.3", review_log_odds,
    observe=observe_bayes,
    probes=bayes_probes,
    signature="review_log_odds(texts (list of n texts), labels (list of n, 1 = positive), text) -> one number, above zero "
    "= positive",
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), f"{TOO_SMALL}. The logarithm of 0 isn't finite either: smooth every "
                             "count by one."),
    mistakes={
        "no-smoothing": M(_bayes(add=0, grow="none"), _not_finite, "A word that never occurs in one class has probability "
                          "0, and ln 0 is not finite. Add-one smoothing is there for that (section 4)."),
        "total-not-raised": M(_bayes(grow="none"), _said, "One was added to each count, but not to the totals. Every word "
                              "of the vocabulary got one more, so each total grows by the size of the vocabulary."),
        "total-plus-one": M(_bayes(grow="one"), _said, "The totals grew by 1 only. Each word of the vocabulary was counted "
                            "once more, so a total grows by the number of different words."),
        "own-vocabulary": M(_bayes(grow="own"), _said, "Each total grew by the number of different words of its own class. "
                            "The vocabulary is that of both classes together: in section 4 both totals grew by 5, though "
                            "'dull' is in one class alone."),
        "no-prior": M(_bayes(prior="none"),
                      lambda case: f"{_said(case)} For a text without words you give "
                      f"{case.got['no words']:+.3f}, though {_prior(case)}.",
                      "The prior odds are missing: add the logarithm of positive over negative ones."),
        "prior-of-words": M(_bayes(prior="words"),
                            lambda case: f"{_said(case, 'no words')} {_prior(case)}.", "Yours is the ratio of the numbers "
                            "of words. The prior odds count reviews, positive over negative."),
        "prior-without-logarithm": M(_bayes(prior="no log"), lambda case: f"{_said(case, 'no words')} {_prior(case)}.",
                                     "You add the prior odds themselves. Add their logarithm, like everything else here."),
        "prior-upside-down": M(_bayes(prior="inverted"), lambda case: f"{_said(case, 'no words')} {_prior(case)}.", "Your "
                               "prior odds are negative over positive. They are positive over negative ones."),
        "prior-probability": M(_bayes(prior="proportion"), lambda case: f"{_said(case, 'no words')} {_prior(case)}.",
                               "Yours is the logarithm of the proportion of positive reviews. Odds divide by the number of "
                               "negative ones, not by all."),
        "probability": M(_bayes(then=lambda score: 1 / (1 + np.exp(-score))), _said, "Those are probabilities, the sigmoid "
                         "of the log odds. Return the log odds themselves, which are above zero for 'positive'."),
        "label": M(_bayes(then=lambda score: score > 0), _said, "That is the label, 1 or 0. Return the log odds, from which "
                   "it follows and which also say how sure the counter is."),
        "base-two": M(_bayes(then=lambda score: score / math.log(2)), _said, "You took logarithms with base 2. Take natural "
                      "ones: math.log with one argument."),
        "upside-down": M(_bayes(sign=-1), _said, "Your sign is the other way round: negative over positive. Above zero "
                         "must mean positive, so divide by the negative class."),
        "odds": M(_bayes(odds=True), _said, "These are the odds themselves. Take the logarithm, or add logarithms from the "
                  "beginning."),
        "once-per-review": M(_bayes(once=True), _said, "A word that occurs twice in a training review was counted once. "
                             "The table in section 4 counts every occurrence."),
        "repeats-ignored": M(_bayes(repeats=False), lambda case: _said(case, "twice"), "Each different word of the text "
                             "gave its factor once. A word that occurs twice should give it twice."),
        "unknown-counted": M(_bayes(unknown=True), _unheard, "Skip words that occur in no training review: they aren't in "
                             "the vocabulary."),
        "lower-case": M(_bayes(cut=lambda text: text.lower().split()), _said, "Your texts were put into lower case. That "
                        "works as well, but it isn't what was asked: text.split() leaves capitals, so 'Dull' and 'dull' are "
                        "two words.", convention=True),
        "cut-by-words": M(_bayes(cut=words), _said, "Your texts were cut by `words`, or something like it, which splits "
                          "off commas and full stops. That works as well, but it isn't what was asked: text.split() leaves "
                          "them attached, so 'dull' and 'dull,' are two words.",
                          convention=True),
        "punctuation-dropped": M(_bayes(cut=lambda text: re.findall(r"\w+", text.lower())), _said, "Your texts lost their "
                                 "commas and full stops. That works as well, but it isn't what was asked: text.split() "
                                 "leaves them attached, so 'dull' and 'dull,' are two words.",
                                 convention=True),
    },
    rules=(
        R(lambda case: abs(_gap(case, "text", "turned round")) > 1e-4,
          lambda case: "the same words in the other order move your log odds by "
          f"{_gap(case, 'turned round', 'text'):+.3f}.",
          "A product does not depend on the order of its factors; yours does."),
        R(lambda case: all((case.got[name] - case.right[name].exp()).abs() < 1e-4 for name in ("text", "no words")), _said,
          "These are the odds themselves. Take the logarithm, or add logarithms from the beginning."),
        R(lambda case: abs(_gap(case, "unknown", "text")) > 1e-4, _unheard, "Skip words that occur in no training review."),
        R(lambda case: (case.got["no words"] - case.right["no words"]).abs() > 1e-4,
          lambda case: f"{_said(case, 'no words')} {_prior(case).capitalize()}.", "Only the log prior odds are left there, "
          "ln of positive over negative reviews."),
        R(lambda case: abs(_gap(case, "twice", "no words") - 2 * _gap(case, "text", "no words")) > 1e-3,
          lambda case: f"the words of {case.inputs[2]!r} add {_gap(case, 'text', 'no words'):+.3f}, written twice "
          f"{_gap(case, 'twice', 'no words'):+.3f}.",
          "Each occurrence of a word adds its log-likelihood ratio, so twice the text adds twice as much."),
        R(lambda case: (case.text - case.right["text"]).abs() < 1e-4
          and (case.got["1,500 words"] - case.right["1,500 words"]).abs() > 1e-2,
          lambda case: _said(case, "1,500 words"), f"Short texts are right. {TOO_SMALL}."),
        R(lambda case: (case.text - case.right["text"]).abs() > 1e-4, _said, "Prior odds, order, repeats and unknown words "
          "are as they should be, so look at the numbers of the single words: (count + 1) / (total + size of the "
          "vocabulary), in each class."),
    ),
    hints=(
        "Try the four reviews of section 4: 'not dull but moving' must give ln(3/4), about −0.288.",
        "Two Counters, one for each class. The vocabulary is all words in either; each total grows by its size.",
        "For each word of the text that is in the vocabulary add ln of its probability in the positive class, and subtract "
        "ln of that in the negative class.",
        "Begin the sum with ln(number of positive reviews / number of negative reviews).",
    ),
)

# ---------------------------------------------------------------- 1.4 repair: twins and copies in both splits

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


def leak_probes(generator: torch.Generator) -> list[tuple]:
    """Training and test texts: copies, in other capitals and spaces too, twins, and near misses that may stay.

    In the second case two training texts are twins of each other and of no test: both may stay. Then no test, no training,
    and other words of the same letters.
    """
    a, b, c, d, e, f = drawn(generator, OPINIONS, 6)
    test = [f"{a.capitalize()}, not {b}.", f"It was {c} but {d}!", f"{e} {e} film", "No star here", f"A {f} end"]
    train = [f"{e} film film", f"{b.capitalize()}, not {a}.", f"It  was {c}  but {d.upper()}!", f"It was {d} but {c}!",
             f"A {f} end, {a}", f"It was {c}!", "No arts here", f"film {e} {e}", f"It was {c}, but {d}!", f"A {f} end"]
    order = [4, *torch.randperm(4, generator=generator).tolist()]     # the test of the exact copy: once last, once first
    late = [*reversed(train), f"film {e} film"]
    late = [late[i] for i in torch.randperm(len(late), generator=generator).tolist()]   # no answer without looking at them
    return [(train, test), (late, [test[i] for i in order]), (train[:3], []), ([], test),
            (["Is land here", f"{a} film"], ["Island here", f"film, {a}"])]


def observe_leaks(function, train, test):
    """How often each training text stands in the answer, and how many other texts do."""
    output = function(train, test)
    if output is None:
        return None
    if isinstance(output, (str, dict)) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected a list of texts, got {what(output)}")
    output = list(output)
    if not all(isinstance(text, str) for text in output):
        raise TypeError("expected a list of texts, got a list that holds "
            f"{what(next(t for t in output if not isinstance(t, str)))}")
    counts = Counter(output)
    return {"kept": torch.tensor([counts[text] for text in train]),
            "others": sum(counts[text] for text in counts if text not in train)}


def _leaks(case: Case) -> str:
    """How many leaks the learner keeps, with the first of them and its counterpart."""
    train, test = case.inputs
    left = [text for text, kept, right in zip(train, case.kept, case.right["kept"]) if kept and not right]
    if not left:
        return _lost(case)
    other = next(text for text in test if sorted(words(text)) == sorted(words(left[0])))
    return (f"{len(left)} of {int(case.kept.sum())} texts that you keep are leaks: {left[0]!r} stays, though the "
            f"test split has {other!r}.")


def _lost(case: Case) -> str:
    train, _ = case.inputs
    gone = [text for text, kept, right in zip(train, case.kept, case.right["kept"]) if right and not kept]
    if not gone:
        return _leaks(case)
    return f"{len(gone)} {'text is' if len(gone) == 1 else 'texts are'} gone that may stay, such as {gone[0]!r}."


LEAKS = ask(
    "1.4", without_leaks,
    given="copies-only",
    observe=observe_leaks,
    probes=leak_probes,
    signature="without_leaks(train (list of texts), test (list of texts)) -> list of the training texts that may stay",
    mistakes={
        "copies-only": M(_without(lambda text: " ".join(words(text))), _leaks, "Words in the same order are found, also in "
                         "capitals and with other spaces. A twin has them in a different order. What do the two "
                         "halves of a pair still share?"),
        "letter-by-letter": M(_without(lambda text: text), _leaks, "Only texts that are equal in every character are "
                              "found; different capitals, spaces or order hide a leak."),
        "cut-at-spaces": M(_without(lambda text: sorted(text.lower().split())), _leaks, "Cut at spaces, a comma or full "
                           "stop sticks to its word, and in the twin it sticks to a different one. `words` splits it off."),
        "capitals": M(_without(lambda text: sorted(re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text))),
                      _leaks, "Order does not matter any more, but 'Dull' and 'dull' count as two words."),
        "set-of-words": M(_without(lambda text: set(words(text))), _lost, "A set forgets how often a word occurs. Here "
                          "each word must occur equally often."),
        "letters": M(_without(lambda text: sorted(text.lower())),
                     lambda case: f"{_leaks(case)} {_lost(case) if _lost(case) != _leaks(case) else ''}".strip(),
                     "You sorted characters: spaces count, and 'star' and 'arts' are the same. Sort words."),
        "inverted": M(_without(lambda text: sorted(words(text)), keep=True), _leaks, "You return the leaks and drop the "
                      "rest. Keep the others."),
        "wrong-side": M(_without(lambda text: sorted(words(text)), side=1),
                        lambda case: f"texts in your list that are not in training: {int(case.others)}.",
                        "You cleaned the test split. Leave the test split alone, and remove texts from training."),
        "removed-in-loop": M(_in_loop, _leaks, "Each leak that you keep comes right after one that you removed. Removing "
                             "from the list that a loop runs through makes the loop skip the next item; build a new list."),
    },
    rules=(
        R(lambda case: case.others > 0,
          lambda case: "texts in your list that training does not contain: " f"{int(case.others)}.", "Return training "
          "texts, unchanged."),
        R(lambda case: (case.kept > 1).any(),
          lambda case: f"one training text is {int(case.kept.max())} times " "in your list.", "It should be there once; "
          "look at what your loops run over."),
        R(lambda case: ((case.kept > 0) & (case.right["kept"] == 0)).any(), _leaks, "Two texts leak if `words` gives the "
          "same words and punctuation, each equally often, in any order."),
        R(lambda case: ((case.kept == 0) & (case.right["kept"] > 0)).any(), _lost, "No test review has the same words and "
          "punctuation, each equally often."),
    ),
    hints=(
        "Try it on train = ['not moving but dull'], test = ['not dull but moving']. What do the two texts share?",
        "What can you make of a list of words that does not depend on their order, and still counts them?",
        "tuple(sorted(words(text))) in place of \" \".join(words(text)), in both lines.",
    ),
)

# ---------------------------------------------------------------- 1.5 repair five kinds of damage

def repair(text):
    try:
        text = text.encode("latin-1").decode("utf-8")               # first: later steps would spoil its characters
    except UnicodeError:
        pass                                                        # this repair doesn't apply
    text = re.sub(r"<br\s*/?>", " ", text)
    text = unicodedata.normalize("NFC", text)
    for typographic, plain in (("‘", "'"), ("’", "'"), ("“", '"'), ("”", '"')):
        text = text.replace(typographic, plain)
    return " ".join(text.split())


def _mojibake(text: str) -> str:
    return text.encode("utf-8").decode("latin-1")


def repair_probes(generator: torch.Generator) -> list[tuple]:
    """Each kind of damage alone; none, in texts that look like it; several at once; no text.

    'à' in mojibake ends in a no-break space, which is lost if white space is repaired first. One text is mojibake that
    hides an accent of its own. The last two have mojibake beside a sign that isn't in Latin-1, so it stays.
    """
    a, b, c, d = drawn(generator, OPINIONS, 4)
    texts = [_mojibake(f"A naïve café, {a}. Voilà"), _mojibake(f"Zoë's Übermut: {b}, {c}."),
             f"It's {a}.<br /><br />And {b}<br>to the end<br/>",
             f"  Two  spaces,\ta tab,\n a line and a\u00a0no-break space: {c} ",
             unicodedata.normalize("NFD", f"René's naïve café was {d}."), f"“Not {a}”, she said, ‘but {b}’; it’s {c}.",
             f"A HEALTHY café, 100 % {b}, with a coup d'œil: I <3 it > the book &quot;too&quot; 👍 ½…",
             f"A plain café, {d}.", f"Ã is a letter, and © a sign: {d}.",
             _mojibake(f"It’s a “{c}”  café<br />in Zürich"), "", a,
             _mojibake(f"A cafe\u0301, {b}."), f"It’s the {_mojibake('café')}, {a}.",
             f"It cost €4 in the {_mojibake('café')}."]
    return [(text,) for text in texts]


def observe_repair(function, text):
    """The text, which has to be a str. Raises TypeError that names a healthy text at which an answer stops."""
    try:
        output = function(text)
    except UnicodeError as error:
        raise TypeError(f"expected a text for {text[:30]!r}, which isn't mojibake; there it stops with "
                        f"{type(error).__name__}. Catch UnicodeError, which covers encoding and decoding") from None
    if output is not None and not isinstance(output, str):
        raise TypeError(f"expected a str, got {what(output)}")
    return output if output is None else {"text": output}


QUOTED = str.maketrans("‘’“”", "''\"\"")


def _others(text):
    """All repairs but that of mojibake."""
    text = unicodedata.normalize("NFC", re.sub(r"<br\s*/?>", " ", text))
    return " ".join(text.translate(QUOTED).split())


def _last(text):
    return _undone(_others(text))


def _undone(text):
    """Mojibake undone where that can be."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _quotes_first(text):
    text = unicodedata.normalize("NFC", re.sub(r"<br\s*/?>", " ", _undone(text.translate(QUOTED))))
    return " ".join(text.split())


def _tags_last(text):
    text = unicodedata.normalize("NFC", _undone(text)).translate(QUOTED)
    return re.sub(r"<br\s*/?>", " ", " ".join(text.split()))


def _form_first(text):
    text = re.sub(r"<br\s*/?>", " ", _undone(unicodedata.normalize("NFC", text)))
    return " ".join(text.translate(QUOTED).split())


def _stopped(text):
    """Where mojibake can't be undone, the text as it came."""
    try:
        text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
    return repair(text)


def _without_accents(text):
    return "".join(sign for sign in unicodedata.normalize("NFD", repair(text)) if not unicodedata.combining(sign))


def _quoted(text: str) -> bool:
    return any(sign in text for sign in "‘’“”")


def _split(text: str) -> bool:
    return unicodedata.normalize("NFC", text) != text


def _untidy(text: str) -> bool:
    return " ".join(text.split()) != text


def _reads(case: Case) -> str:
    return f"for {case.inputs[0]!r}, {_first_difference(case.text, case.right['text'])}"


UNDONE, TAG, FORM = ('text.encode("latin-1").decode("utf-8")', r're.sub(r"<br\s*/?>", " ", text)',
                     'unicodedata.normalize("NFC", text)')
SINGLE, QUOTES, SPACES = ("(\"‘\", \"'\"), (\"’\", \"'\"), ", "text.replace(typographic, plain)", '" ".join(text.split())')

REPAIR = ask(
    "1.5", repair, probes=repair_probes, observe=observe_repair,
    signature="repair(text) -> the text without the five kinds of damage",
    mistakes={
        "mojibake-kept": M({UNDONE: "text"}, _reads, "The mojibake is still there. Turn the characters back into Latin-1 "
                           "bytes with encode, and read these as UTF-8 with decode."),
        "mojibake-made": M({UNDONE: 'text.encode("utf-8").decode("latin-1")'}, _reads, "That's how mojibake is made: "
                           "written as UTF-8, read as Latin-1. Undo it the other way round."),
        "ignored": M({UNDONE: 'text.encode("latin-1", "ignore").decode("utf-8", "ignore")'}, _reads, "With "
                     "errors=\"ignore\" whatever doesn't fit is left out, and a healthy text loses letters. Let the error "
                     "be raised, and leave that text as it is."),
        "replaced": M({UNDONE: 'text.encode("latin-1", "replace").decode("utf-8", "replace")'}, _reads, "With "
                      "errors=\"replace\" a healthy text gets question marks for letters. Let the error be raised, and "
                      "leave that text as it is."),
        "one-letter": M({UNDONE: 'text.replace("Ã©", "é")'}, _reads, "You replace 'Ã©'. Every letter with an accent has a "
                        "pair like that; encode and decode undo all of them."),
        "windows": M({UNDONE: 'text.encode("cp1252").decode("utf-8")'}, _reads, "You undo an error with cp1252, Windows' "
                     "encoding, from which the well-known 'â€™' comes. It differs from Latin-1 in 27 characters, and here "
                     "the damage was done with Latin-1.", convention=True),
        "the-rest-skipped": M(_stopped, _reads, "Where mojibake can't be undone you return the text at once, and the other "
                              "repairs never run. `pass` goes on to them."),
        "mojibake-last": M(_last, _reads, "Mojibake has to come first: 'à' turns into 'Ã' and a no-break space, which the "
                           "repair of white space spoils, and quotes are hidden in it."),
        "quotes-first": M(_quotes_first, _reads, "Mojibake has to come first: quotes are hidden in it, and come out only "
                          "after you replaced the others."),
        "quotes-twice": M(lambda text: repair(text.translate(QUOTED)), _reads, "Mojibake is undone where the *whole* text "
                          "can be read that way. With a ’ in it this one can't; you replaced ’ before you tried."),
        "word-by-word": M(lambda text: repair(" ".join(map(_undone, text.split(" ")))), _reads, "You undo mojibake word by "
                          "word. That repairs more, but rule 1 asks for texts that can be read that way as a *whole*.",
                          convention=True),
        "form-first": M(_form_first, _reads, "Mojibake has to come first: an accent of its own can be hidden in it, and "
                        "comes out only after NFC."),
        "tags-last": M(_tags_last, _reads, "White space comes last: a <br> became a space after you had tidied."),
        "spaces-first": M(lambda text: repair(" ".join(text.split())), _reads, "White space can't come first: in mojibake, "
                          "'à' is 'Ã' and a no-break space, and without the right second byte it can't be undone."),
        "tags-kept": M({TAG: "text"}, _reads, "The line breaks of the web page are still there: <br>, <br/> or <br />."),
        "tags-joined": M({TAG: r're.sub(r"<br\s*/?>", "", text)'}, _reads, "You leave the tag out, and the words on its two "
                         "sides become one. Put a space in its place."),
        "one-spelling": M({TAG: 'text.replace("<br />", " ")'}, _reads, "The tag has three spellings: <br />, <br/> and "
                          "<br>."),
        "everything-in-brackets": M({TAG: 're.sub("<[^>]*>", " ", text)'}, _reads, "You remove whatever stands between < "
                                    "and >. In 'I <3 it > the book' somebody wrote that. Remove <br> alone."),
        "greedy": M({TAG: 're.sub("<.*>", " ", text)'}, _reads, "`.*` takes as much as it can, from the first < to the last "
                    ">, with all the text between. Look for <br> in its three spellings alone."),
        "greedy-tag": M({TAG: 're.sub("<br.*>", " ", text)'}, _reads, "`.*` takes as much as it can, from the first <br to "
                        "the last >, with all the text between. Between br and > there may be white space and one /."),
        "unescaped": M(lambda text: repair(html.unescape(text)), _reads, "You also decode &quot;. It's damage as well, but "
                       "here it should stay as it is."),
        "not-composed": M({FORM: "text"}, _reads, "A letter and its accent are still two characters: "
                          "unicodedata.normalize(\"NFC\", text) makes one of them."),
        "decomposed": M({FORM: 'unicodedata.normalize("NFD", text)'}, _reads, "NFD takes letter and accent apart. NFC puts "
                        "them together."),
        "compatible": M({FORM: 'unicodedata.normalize("NFKC", text)'}, _reads, "NFKC also rewrites characters that look "
                        "different, ½ as 1⁄2 and … as three dots. Use NFC, which changes nothing that you can see."),
        "accents-dropped": M(_without_accents, _reads, "You drop accents. 'resume' and 'résumé' are two words; put each "
                             "accent and its letter together instead."),
        "only-ascii": M(lambda text: repair(text).encode("ascii", "ignore").decode("ascii"), _reads, "Whatever isn't ASCII "
                        "is gone: accents, emoji, other alphabets. Keep them."),
        "quotes-kept": M({QUOTES: "text"}, _reads, "Typographic quotes are still there: ‘ and ’ become ', “ and ” "
                         "become \"."),
        "quotes-dropped": M({QUOTES: 'text.replace(typographic, "")'}, _reads, "You leave the quotes out, and 'it’s' "
                            "becomes 'its', another word. Put the plain ones in their place."),
        "double-alone": M(lambda text: repair(text.replace("‘", "\0").replace("’", "\1")).replace("\0", "‘").replace(
            "\1", "’"), _reads, "You replace “ and ”. ‘ and ’ need it more, since ’ is also the apostrophe of 'isn’t'."),
        "spaces-kept": M({SPACES: "text"}, _reads, "White space is as it was. \" \".join(text.split()) makes one space of "
                         "each run, and none at the ends."),
        "ends-alone": M({SPACES: "text.strip()"}, _reads, "strip() looks at the two ends alone. The runs of white space in "
                        "between stay."),
        "plain-spaces-alone": M({SPACES: 're.sub(" +", " ", text).strip(" ")'}, _reads, "You looked for the space bar's "
                                "space. Tabs, line breaks and no-break spaces are white space too; text.split() knows "
                                "them."),
        "lower-case": M(lambda text: repair(text).lower(), _reads, "Capitals are the writer's: 'US' isn't 'us'. Leave "
                        "them."),
    },
    rules=(
        R(lambda case: "<br" in case.text, _reads, "A line break of a web page is still there."),
        R(lambda case: _quoted(case.text) and _quoted(case.inputs[0]), _reads, "Typographic quotes are still there."),
        R(lambda case: _quoted(case.text), _reads, "Mojibake has to come first: quotes are hidden in it."),
        R(lambda case: _split(case.text) and _split(case.inputs[0]), _reads, "An accent is still a character of its own: "
          "unicodedata.normalize(\"NFC\", text)."),
        R(lambda case: _split(case.text), _reads, "Mojibake has to come before NFC: an accent of its own can be hidden in "
          "it."),
        R(lambda case: _untidy(case.text) and _untidy(case.inputs[0]), _reads, "White space is left in runs, or at an end."),
        R(lambda case: any(sign in case.right["text"] and sign not in case.text for sign in "Ãâ"), _reads, "That 'Ã' should "
          "stay. Mojibake is undone where the *whole* text can be read that way; this one can't, so leave its letters."),
        R(lambda case: len("".join(case.text.split())) < len("".join(case.right["text"].split())), _reads, "Characters of "
          "the text are gone. Of what stands between < and >, remove <br> alone, in its three spellings."),
        R(lambda case: _untidy(case.text), _reads, "White space is left in runs, or at an end: a <br> became a space after "
          "you had tidied."),
        R(lambda case: any(sign in case.text and sign not in case.right["text"] for sign in "Ãâ"), _reads, "There's "
          "mojibake left. Undo it first, for the whole text, and leave a text alone where that raises a UnicodeError."),
        R(lambda case: case.text != case.right["text"], _reads, "Nothing but the five kinds of damage may change."),
    ),
    hints=(
        "One step after the other, and look at the text between them. In which order? 'à' in mojibake is 'Ã' and a no-break "
        "space.",
        "try: text = text.encode(\"latin-1\").decode(\"utf-8\"), and except UnicodeError: pass.",
        r're.sub(r"<br\s*/?>", " ", text) finds all three spellings; text.replace changes a quote.',
        "After mojibake, tags, NFC and quotes: return \" \".join(text.split()).",
    ),
)

# ---------------------------------------------------------------- 1.6 precision and recall

def precision_recall(truth, says):
    hits = sum(is_so == 1 and said == 1 for is_so, said in zip(truth, says))
    called = sum(says)                                              # hits and false alarms
    positive = sum(truth)                                           # hits and misses
    precision = hits / called if called > 0 else 0.0
    recall = hits / positive if positive > 0 else 0.0
    return precision, recall


def precision_probes(generator: torch.Generator) -> list[tuple]:
    """Labels and answers with every cell of the table different and none empty, in random order; then never 'positive', no
    positive review, all positive, one review."""
    def drawn_cells(hits: int, misses: int, alarms: int, others: int) -> tuple:
        pairs = [(1, 1)] * hits + [(1, 0)] * misses + [(0, 1)] * alarms + [(0, 0)] * others
        shuffled = [pairs[i] for i in torch.randperm(len(pairs), generator=generator).tolist()]
        return [one for one, _ in shuffled], [said for _, said in shuffled]

    return [drawn_cells(5, 2, 1, 4), drawn_cells(2, 7, 3, 1), drawn_cells(1, 2, 6, 3), ([1, 0, 1], [0, 0, 0]),
            ([0, 0, 0, 0], [0, 1, 0, 1]), ([1, 1, 1], [1, 0, 1]), ([1], [1])]


def observe_precision(function, truth, says):
    """Both numbers. Raises TypeError that names the case in which something is divided by 0."""
    try:
        output = function(truth, says)
    except ZeroDivisionError:
        none = "says 'positive'" if not sum(says) else "is positive"
        raise TypeError(f"expected 0 where none of {len(truth)} reviews {none}; there it divides by 0") from None
    if output is None:
        return None
    precision, recall = two_results(output, "precision", "recall")
    return {"precision": precision, "recall": recall}


def _table_of(case: Case) -> tuple[int, int, int, int]:
    """Hits, misses, false alarms, rightly left out."""
    cells = Counter(zip(*case.inputs))
    return cells[1, 1], cells[1, 0], cells[0, 1], cells[0, 0]


def _both(case: Case) -> str:
    hits, misses, alarms, others = _table_of(case)
    return (f"with hits {hits}, misses {misses}, false alarms {alarms}, rightly left out {others} you give "
            f"{case.precision.item():.3f} and {case.recall.item():.3f}, expected {case.right['precision'].item():.3f} and "
            f"{case.right['recall'].item():.3f}.")


HITS, PRECISION, RECALL = ("is_so == 1 and said == 1", "hits / called if called > 0 else 0.0",
                           "hits / positive if positive > 0 else 0.0")

PRECISION_RECALL = ask(
    "1.6", precision_recall, probes=precision_probes, observe=observe_precision,
    signature="precision_recall(truth (list of n labels), says (list of n labels)) -> precision, recall",
    not_finite=dict.fromkeys(("NaN", "inf"), "Something was divided by 0: no review is called positive, or none is. Return "
                             "0 there."),
    mistakes={
        "swapped": M({"precision, recall": "recall, precision"}, _both, "It's the other way round: precision divides by "
                     "what was *called* positive, recall by what *is*; and precision comes first."),
        "accuracy": M(lambda truth, says: (sum(t == s for t, s in zip(truth, says)) / len(truth),) * 2, _both, "That is "
                      "the accuracy, twice. Both numbers look at hits alone, and divide by a column or by a row."),
        "accuracy-as-precision": M({PRECISION: "sum(t == s for t, s in zip(truth, says)) / len(truth)"}, _both, "Your "
                                   "precision is the accuracy: all right answers, divided by all reviews. Divide the hits "
                                   "by the number of reviews that are called positive."),
        "accuracy-as-recall": M({RECALL: "sum(t == s for t, s in zip(truth, says)) / len(truth)"}, _both, "Your recall is "
                                "the accuracy: all right answers, divided by all reviews. Divide the hits by the number of "
                                "reviews that are positive."),
        "right-ones": M({HITS: "is_so == said"}, _both, "You counted all right answers. A hit is a review that is positive "
                        "*and* is called positive."),
        "of-all": M({PRECISION: "hits / len(truth)", RECALL: "hits / len(truth)"}, _both, "You divide by the number of all "
                    "reviews. Precision divides by those called positive, recall by those that are."),
        "precision-twice": M({RECALL: PRECISION}, _both, "Your recall is the precision once more. It divides by the number "
                             "of reviews that are positive."),
        "recall-twice": M({PRECISION: RECALL}, _both, "Your precision is the recall once more. It divides by the number of "
                          "reviews that are called positive."),
        "negative-class": M(lambda truth, says: precision_recall([1 - t for t in truth], [1 - s for s in says]), _both,
                            "Those are the numbers of the negative class. A hit has 1 in both lists."),
        "mistakes-counted": M(lambda truth, says: tuple(1 - one for one in precision_recall(truth, says)), _both, "Those "
                              "are the parts that went wrong: false alarms in the column, misses in the row. Hits belong "
                              "above the line."),
        "specificity": M({RECALL: "sum(t == s == 0 for t, s in zip(truth, says)) / max(truth.count(0), 1)"}, _both, "Your "
                         "recall is that of the negative reviews, the *specificity*. Take the row 'is positive'."),
        "per-cent": M({PRECISION: f"100 * ({PRECISION})", RECALL: f"100 * ({RECALL})"}, _both, "Yours are per cent. Both "
                      "are fractions, from 0 to 1."),
        "one-where-empty": M({PRECISION: "hits / called if called > 0 else 1.0", RECALL: "hits / positive if positive > 0 "
                              "else 1.0"}, _both, "Where nothing is called positive, or nothing is, you return 1. "
                             "Some programs do; here it's 0.", convention=True),
        "one-where-none-called": M({PRECISION: "hits / called if called > 0 else 1.0"}, _both, "Where nothing is called "
                                   "positive, you return a precision of 1. Some programs do; here 0/0 counts as 0.",
                                   convention=True),
        "one-where-none-positive": M({RECALL: "hits / positive if positive > 0 else 1.0"}, _both, "Where no review is "
                                     "positive, you return a recall of 1. Some programs do; here 0/0 counts as 0.",
                                     convention=True),
    },
    rules=(
        R(lambda case: not 0 <= min(case.precision.item(), case.recall.item())
          <= max(case.precision.item(), case.recall.item()) <= 1, _both, "Both are fractions, from 0 to 1."),
        R(lambda case: (case.recall - case.right["recall"]).abs() < 1e-4, _both, "The recall is right. Precision divides "
          "the hits by the number of reviews that are called positive."),
        R(lambda case: (case.precision - case.right["precision"]).abs() < 1e-4, _both, "The precision is right. Recall "
          "divides the hits by the number of reviews that are positive."),
        R(lambda case: True, _both, "Count the hits first: reviews with 1 in both lists."),
    ),
    hints=(
        "Go through both lists together, with zip, and count the reviews that have a 1 in both: the hits.",
        "sum(says) is how many were called positive, sum(truth) how many are.",
        "precision = hits / sum(says), and recall = hits / sum(truth); 0 where that sum is 0.",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: two-points
  taught: "01"
  question: Two programs score 0.52 and 0.54, each on 500 reviews. Is the second one better?
  options:
    - text: "Yes: it gets ten more reviews right."
      remark: Ten reviews out of 500 aren't many. If the two made their mistakes independently, the difference would
        have a standard error of about 0.032.
    - text: "No: a gap of two points is only chance."
      remark: That claims as much as 'yes'. The second may well be better; these numbers don't show it.
    - text: You can't tell from these numbers.
      right: true
      remark: "Compare them review by review: on how many is only the first right, and on how many only the second? 20
        to 30 decides nothing, 0 to 10 does."
- name: word-pairs
  taught: "01"
  question: A colleague adds pairs of neighbouring words to the counter. 'not dull but moving' then has the pairs
    not-dull, dull-but, but-moving. Can the counter now tell it from its twin, 'not moving but dull'?
  options:
    - text: Only if it has met some of these pairs in training.
      right: true
      remark: The pairs differ, but only a pair that occurred in training carries a number, and each is rare. Where
        the deciding words are ten words apart, no pair of neighbours contains both.
    - text: Yes, always, because the two texts have different pairs.
      remark: The twin does have other pairs (not-moving, moving-but, but-dull). But a pair that never occurred in
        training tells the counter nothing.
    - text: "No: it counts, and counting loses the order."
      remark: The two texts have different pairs, so their rows of counts differ. A bag of single words can't do that.
- name: evidence-and-names
  taught: "01"
  question: A word counter is trained and tested on the evidence alone. On the distant reviews it scores near one half. What
    follows?
  options:
    - text: The labels of the distant reviews can't be derived from their texts.
      remark: They can, from the whole text. The counter saw a part of it.
    - text: Not much, because in one review out of six the names that decide are missing, and a counter ignores how
        words are joined.
      right: true
      remark: Who said what decides there, and evidence contains no names. And even where it contains everything, a
        bag of its words loses which belongs to which.
    - text: The evidence spans of these reviews must have been shifted by mistake.
      remark: Shifted spans would cut words in the middle. These contain whole opinions and remarks.
- name: far-below
  taught: "01"
  question: Your model scores 0.08 on a balanced test split. What do you do first?
  options:
    - text: Train longer, because a model this weak has hardly begun to learn.
      remark: A score so far from one half means that the program knows something and uses it the wrong way. More
        training won't change that.
    - text: Look for swapped labels, or for near-copies in training with the other label.
      right: true
      remark: Chance doesn't give 0.08. The model knows something and uses it the wrong way round; the extra on leaks
        produces such a score with twins. The third cause is in section 5, where the set reverses what the model relies on.
    - text: Flip its answers and report 0.92, which is what the model is really worth.
      remark: That may report a leak as a success. First find out why it is wrong so reliably.
- name: shifted-span
  taught: "01"
  question: In 'not dull but moving' the span of 'moving' is (13, 19). What does text[13:18] give?
  options:
    - text: movin
      right: true
      remark: Characters 13 to 17. The end is the first character after the span.
    - text: moving
      remark: The end doesn't belong to the span, so 18 leaves out character 18, the g.
    - text: movin with a space before it
      remark: The space is character 12, because counting begins at 0.
- name: two-products
  taught: "00"
  question: "`C` has shape (6, 4), `w` has shape (4,). What are the shapes of `C @ w` and of `C * w`?"
  options:
    - text: (4,) and (6, 4)
      remark: (4,) would be one number for each word. `C @ w` sums over the words and keeps the reviews.
    - text: (6,), and `C * w` raises an error
      remark: "`C * w` lines up the last dimensions, 4 and 4, and repeats `w` for each row. There is no error."
    - text: (6,) and (6, 4)
      right: true
      remark: The product with @ sums over the words and leaves one score for each review; the row sums of `C * w` are
        the same scores.
- name: always-positive
  taught: "01"
  question: A test split has 300 positive and 100 negative reviews. A program calls every review positive. What are its
    precision and its recall?
  options:
    - text: 1 and 0.75
      remark: It's the other way round. Recall asks about the 300 positive reviews, and it finds all of them.
    - text: 0.75 and 1
      right: true
      remark: It calls 400 reviews positive, and 300 of them are. It misses none. Its accuracy is 0.75 as well, without
        having read a word.
    - text: 0.75 and 0.75
      remark: That would be right if it missed a quarter of the positive reviews. It misses none.
- name: not-prefix
  taught: "01"
  question: NOT_ is written before each word between a negation and the next punctuation. Which words of 'not slow, but never
    dull and moving' get it?
  options:
    - text: slow and dull
      remark: Those are the words that are meant. But the rule doesn't look at meaning; it goes on to the next punctuation.
    - text: slow, but, never, dull, and, moving
      remark: The comma ends it after 'slow'. It begins again after 'never'.
    - text: slow, dull, and, moving
      right: true
      remark: After 'never' no punctuation comes, so 'moving' is turned round as well, and nobody meant that.
"""

WARM_UP = """
- name: one-for-each-word
  taught: "00"
  question: "`x` has the shape (4, 3): four words with three features each. Which line gives one number for each word?"
  options:
    - text: "`x.sum(dim=0)`"
      remark: The dimension that you name disappears. That leaves three numbers, one for each feature.
    - text: "`x.sum(dim=1)`"
      right: true
      remark: The features are added up and disappear; four numbers are left.
    - text: "`x.sum()`"
      remark: Without a dim everything is added up, to a single number.
- name: half-as-likely
  taught: "00"
  question: A model gives the true class a probability of 0.25 in place of 0.5. What happens to its cross-entropy loss?
  options:
    - text: It grows by ln 2, about 0.69.
      right: true
      remark: −ln 0.25 is −ln 0.5 plus ln 2. Logarithms turn a factor into something to add, and you'll need that here.
    - text: It doubles, whatever it was before.
      remark: From 0.69 to 1.39, it does here. But from 0.25 to 0.125 it grows by ln 2 as well, and that isn't twice as much.
    - text: It grows by 0.25.
      remark: The loss is minus the logarithm of the probability, not the probability itself.
- name: twin-vector
  taught: "00"
  question: Two sentences have the same four words in another order. With the attention of 00, section 7, how do the two
    vectors of 'dull' differ?
  options:
    - text: They are opposite, as the sentences are.
      remark: The vector of 'dull' is a weighted mean of the vectors of all four words, and these are the same.
    - text: By a little, depending on the neighbours of 'dull'.
      remark: Neighbours have no say there. Each word is compared with every other, wherever it stands.
    - text: Not at all.
      right: true
      remark: The same words are compared and mixed, so the order is lost. In this notebook you'll meet a program that
        loses it too.
"""
