"""Exercises of notebook 01, raw text. The answers stand beside it, in `answers`."""

import math
import re

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n01 import probes

# ---------------------------------------------------------------- 1.1 from brackets to spans

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


def _lengths(case: Case) -> str:
    return (f"your text has {len(case.text)} characters, {case.text.count('[')} of them '['; without the "
            f"brackets it has {len(case.right['text'])}.")


def _counts(case: Case) -> str:
    got, right = len(case.spans.split()), len(case.right["spans"].split())
    return (f"you return {got} {'span' if got == 1 else 'spans'}, and {right} "
            f"{'passage is' if right == 1 else 'passages are'} marked.")


def _spans_first(case: Case) -> str:
    return f"you return the spans ({case.spans.replace(' ', ', ')}) first and then the text."


MARKED = Exercise(
    observe=probes.observe_marked, probes=probes.marked_probes,
    signature="read_marked(marked, a text such as 'not [dull]') -> text without brackets, list of (start, end)",
    mistakes=(
        Mistake("counted-with-brackets", _wrong_span, "You counted characters in the marked text. In the text that you "
                "return, every bracket further left is gone: the first span moves by 1, the second by 3, and so on."),
        Mistake("brackets-included", _wrong_span, "The span runs from bracket to bracket in the marked text. It must "
                "contain the evidence alone, and count in the text without brackets."),
        Mistake("first-bracket-only", _wrong_span, "Each span was moved by one. That is right for the first; further on "
                "more brackets are gone, two for each earlier span."),
        Mistake("opening-only", _wrong_span, "Only the opening brackets were counted as gone. Each earlier span had a "
                "closing one as well."),
        Mistake("end-inclusive", _wrong_span, "The end is the last character of the span. Here `end` is the first character "
                "after it (notebook 01, section 3), so that text[start:end] cuts the words out."),
        Mistake("length-for-end", _wrong_span, "The second number is the length. It has to be the end: start plus length."),
        Mistake("found-again", _wrong_span, "The words are right, but their position isn't. A search finds the first "
                "occurrence, and the marked one comes later. Count instead of searching."),
        Mistake("from-first-to-last", _counts, "One span runs from the first '[' to the last ']'. In a regular expression "
                "`.*` takes as much as it can; `.*?` stops at the next ']'."),
        Mistake("text-with-brackets", _lengths, "The spans are right, for a text without brackets. The text that you return "
                "still has them, so the two do not belong together."),
        Mistake("nothing-removed", _lengths, "Your spans fit your text, but the brackets are still in it. They aren't part "
                "of the review: take them out, and count without them."),
        Mistake("swapped", _spans_first, "The text comes first, then the list of spans: return text, spans."),
    ),
    properties=(
        Property(lambda case: case.swapped != 0, _spans_first, "The text comes first, then the list of spans; and look "
                 "at the spans once more."),
        Property(lambda case: re.search(r"\[[^]]*\n", case.text) and "[" not in case.right["text"], lambda case:
                 "a marked passage that spans a line break is still in your text, with its brackets.",
                 "Look for '[' and ']' themselves. In a regular expression, `.` doesn't match a line break unless you pass "
                 "re.DOTALL."),
        Property(lambda case: "[" in case.text or "]" in case.text, lambda case:
                 f"{sum(case.text.count(sign) for sign in '[]')} brackets are still in your text.",
                 "The text must be the review as it was before it was marked."),
        Property(lambda case: case.text != case.right["text"], lambda case: _first_difference(case.text, case.right["text"]),
                 "Only the brackets go; every other character stays: capitals, digits, punctuation, and two spaces in a "
                 "row."),
        Property(lambda case: len(case.spans.split()) != len(case.right["spans"].split()), _counts,
                 "Each pair of brackets gives one span, and a text without brackets gives an empty list."),
        Property(lambda case: sorted(case.spans.split()) == sorted(case.right["spans"].split())
                 and case.spans != case.right["spans"], lambda case: "your spans are right, but their order is "
                 f"{case.spans.replace(' ', ', ')}.", "Give them in the order of the text, from left to right: `mark` "
                 "relies on it."),
        Property(_elsewhere, lambda case: "your span number {} is {}, and the marked one is "
                 "{}.".format(_first_wrong(case)[0] + 1, *_first_wrong(case)[1:]), "Both cut out the same words. Count "
                 "from the beginning of the text without brackets, and let each pair of brackets give its own span."),
        Property(lambda case: case.spans != case.right["spans"], _wrong_span, "`start` and `end` count in the text without "
                 "brackets, and `end` is the first character after the span."),
    ),
    hints=(
        "Walk through the marked text one character at a time, and build the text without brackets as you go.",
        "At a '[' and at a ']', how long is the text that you have built so far?",
        "At '[' keep start = len(text); at ']' append (start, len(text)); any other character goes to the text.",
    ),
)

# ---------------------------------------------------------------- 1.2 how many reviews

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


HOW_MANY = Exercise(
    kind="number", tolerance=2e-4, signature="one number: how many reviews",
    mistakes=(
        Mistake("one-error", _error_of, "That makes one standard error 2 points. It should be half of that, and half the "
                "error takes four times as many reviews."),
        Mistake("doubled", _error_of, "That makes one standard error 4 points. Two of them should be 2 points, so one is "
                "half of that."),
        Mistake("no-root", _error_of, "That is the solution of p (1 − p) / n = 0.01. The formula has a root: square the "
                "0.01 first."),
        Mistake("root-only-above", _error_of, "That is 0.3, the root of p (1 − p), divided by 0.01. But the root covers n "
                "as well, so √n is 30."),
        Mistake("one-half", _error_of, "That is the number for p = 0.5, as in notebook 01, section 7. Here p is 0.9."),
        Mistake("no-wrong-ones", _error_of, "You get that with p in place of p (1 − p). The proportion of wrong answers is "
                "a factor as well."),
        Mistake("rounded-up", _error_of, "On paper it is 900 exactly. 0.9 * 0.1 / 0.01 ** 2 comes out a hair above that in "
                "floating-point numbers, and rounding up then adds a review.", convention=True),
        Mistake("points", _error_of, "You get that with an error of 1. A point is a hundredth (notebook 01, section 7): one "
                "point is 0.01."),
    ),
    properties=(
        Property(lambda case: not 0 < _yours(case) < math.inf, _error_of, "Count the reviews that the test must have."),
        Property(lambda case: _yours(case) < 900, _error_of, "The test is too small: solve the formula for n."),
        Property(lambda case: _yours(case) > 900, _error_of, "That is more than it takes: solve the formula for n."),
    ),
    hints=(
        "How large should one standard error be, as a fraction and not in points?",
        "Square both sides of the formula: 0.01² = p (1 − p) / n.",
        "p (1 − p) is 0.9 times 0.1, and 0.01² is 0.0001.",
    ),
)

# ---------------------------------------------------------------- 1.3 naive Bayes

def _said(case: Case, name: str = "text") -> str:
    got, right = case.got[name], case.right[name]
    written = repr(case.inputs[2])
    words = {"text": written, "no words": "a text without words", "1,500 words": f"{probes.one_sided(*case.inputs[:2])!r} "
        f"1,500 times", "twice": f"{written} written twice"}[name]
    return (f"after training on {len(case.inputs[0])} reviews, {words} gets {got.item():+.3f} from you, expected "
            f"{right.item():+.3f}.")


def _prior(case: Case) -> str:
    positive = sum(case.inputs[1])
    return f"{positive} of these reviews are positive and {len(case.inputs[1]) - positive} negative"


def _gap(case: Case, one: str, other: str) -> float:
    return (case.got[one] - case.got[other]).item()


def _not_finite(case: Case) -> str:
    count = sum(not torch.isfinite(value).all() for value in case.got.values())
    return f"{count} of {len(case.got)} log odds are not finite numbers."


def _unheard(case: Case) -> str:
    return f"the word 'unheard', which no training review has, moves your log odds by {_gap(case, 'unknown', 'text'):+.3f}."


BAYES = Exercise(
    observe=probes.observe_bayes, probes=probes.bayes_probes,
    signature="review_log_odds(texts (list of n texts), labels (list of n, 1 = positive), text) -> one number, above zero = "
    "positive",
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), f"{probes.TOO_SMALL}. The logarithm of 0 isn't finite either: smooth "
                             "every count by one."),
    mistakes=(
        Mistake("no-smoothing", _not_finite, "A word that never occurs in one class has probability 0, and ln 0 is not "
                "finite. Add-one smoothing is there for that (notebook 01, section 8)."),
        Mistake("total-not-raised", _said, "One was added to each count, but not to the totals. Every word of the "
                "vocabulary got one more, so each total grows by the size of the vocabulary."),
        Mistake("total-plus-one", _said, "The totals grew by 1 only. Each word of the vocabulary was counted once more, so "
                "a total grows by the number of different words."),
        Mistake("own-vocabulary", _said, "Each total grew by the number of different words of its own class. The vocabulary "
                "is that of both classes together: 7 + 4 and 6 + 4 in notebook 01, section 8."),
        Mistake("no-prior", lambda case: f"{_said(case)} For a text without words you give {case.got['no words']:+.3f}, "
                f"though {_prior(case)}.", "The prior odds are missing: add the logarithm of positive over negative ones."),
        Mistake("prior-of-words", lambda case: f"{_said(case, 'no words')} {_prior(case)}.", "Yours is the ratio of the "
                "numbers of words. The prior odds count reviews, positive over negative."),
        Mistake("upside-down", _said, "Your sign is the other way round: negative over positive. Above zero must mean "
                "positive, so divide by the negative class."),
        Mistake("odds", _said, "These are the odds themselves. Take the logarithm, or add logarithms from the beginning."),
        Mistake("once-per-review", _said, "A word that occurs twice in a training review was counted once. The table in "
                "notebook 01, section 8, counts every occurrence."),
        Mistake("repeats-ignored", lambda case: _said(case, "twice"), "Each different word of the text gave its factor "
                "once. A word that occurs twice should give it twice."),
        Mistake("unknown-counted", _unheard, "Skip words that occur in no training review: they aren't in the vocabulary."),
        Mistake("cut-by-words", _said, "Your texts were cut by `words`, or something like it, which splits off commas and "
                "full stops. That works as well, but it isn't what was asked: text.split() leaves them attached, so "
                "'dull' and 'dull,' are two words.", convention=True),
        Mistake("punctuation-dropped", _said, "Your texts lost their commas and full stops. That works as well, but "
                "it isn't what was asked: text.split() leaves them attached, so 'dull' and 'dull,' are two words.",
                convention=True),
    ),
    properties=(
        Property(lambda case: abs(_gap(case, "text", "turned round")) > 1e-4, lambda case: "the same words in the other "
                 f"order move your log odds by {_gap(case, 'turned round', 'text'):+.3f}.", "A product does not depend on "
                 "the order of its factors; yours does."),
        Property(lambda case: abs(_gap(case, "unknown", "text")) > 1e-4, _unheard, "Skip words that occur in no training "
                 "review."),
        Property(lambda case: (case.got["no words"] - case.right["no words"]).abs() > 1e-4, lambda case:
                 f"{_said(case, 'no words')} {_prior(case).capitalize()}.", "Only the log prior odds are left there, ln of "
                 "positive over negative reviews."),
        Property(lambda case: abs(_gap(case, "twice", "no words") - 2 * _gap(case, "text", "no words")) > 1e-3, lambda case:
                 f"the words of {case.inputs[2]!r} add {_gap(case, 'text', 'no words'):+.3f}, written twice "
                 f"{_gap(case, 'twice', 'no words'):+.3f}.", "Each occurrence of a word adds its log-likelihood ratio, so "
                 "twice the text adds twice as much."),
        Property(lambda case: (case.text - case.right["text"]).abs() < 1e-4
                 and (case.got["1,500 words"] - case.right["1,500 words"]).abs() > 1e-2, lambda case:
                 _said(case, "1,500 words"), f"Short texts are right. {probes.TOO_SMALL}."),
        Property(lambda case: (case.text - case.right["text"]).abs() > 1e-4, _said, "Prior odds, order, repeats and unknown "
                 "words are as they should be, so look at the numbers of the single words: (count + 1) / (total + size of "
                 "the vocabulary), in each class."),
    ),
    hints=(
        "Try the six reviews of notebook 01, section 8: 'not dull but moving' must give ln(160000/131769), about +0.194.",
        "Two Counters, one for each class. The vocabulary is all words in either; each total grows by its size.",
        "For each word of the text that is in the vocabulary add ln of its probability in the positive class, and subtract "
        "ln of that in the negative class.",
        "Begin the sum with ln(number of positive reviews / number of negative reviews).",
    ),
)

# ---------------------------------------------------------------- 1.4 repair: twins and copies in both splits

def _words(text: str) -> tuple:
    return tuple(sorted(re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text.lower())))


def _leaks(case: Case) -> str:
    """How many leaks the learner keeps, with the first of them and its counterpart."""
    train, test = case.inputs
    left = [text for text, kept, right in zip(train, case.kept, case.right["kept"]) if kept and not right]
    if not left:
        return _lost(case)
    other = next(text for text in test if _words(text) == _words(left[0]))
    return (f"{len(left)} of {int(case.kept.sum())} texts that you keep are leaks: {left[0]!r} stays, though the "
            f"test split has {other!r}.")


def _lost(case: Case) -> str:
    train, _ = case.inputs
    gone = [text for text, kept, right in zip(train, case.kept, case.right["kept"]) if right and not kept]
    if not gone:
        return _leaks(case)
    return f"{len(gone)} {'text is' if len(gone) == 1 else 'texts are'} gone that may stay, such as {gone[0]!r}."


LEAKS = Exercise(
    given="copies-only", observe=probes.observe_leaks, probes=probes.leak_probes,
    signature="without_leaks(train (list of texts), test (list of texts)) -> list of the training texts that may stay",
    mistakes=(
        Mistake("copies-only", _leaks, "Words in the same order are found, also in capitals and with other spaces. A twin "
                "has them in a different order. How did notebook 01, section 6, find reviews that share all "
                "their words?"),
        Mistake("letter-by-letter", _leaks, "Only texts that are equal in every character are found; different capitals, "
                "spaces or order hide a leak."),
        Mistake("cut-at-spaces", _leaks, "Cut at spaces, a comma or full stop sticks to its word, and in the twin it sticks "
                "to a different one. `words` splits it off."),
        Mistake("capitals", _leaks, "Order does not matter any more, but 'Dull' and 'dull' count as two words."),
        Mistake("set-of-words", _lost, "A set forgets how often a word occurs. Here each word must occur equally often."),
        Mistake("letters", lambda case: f"{_leaks(case)} {_lost(case) if _lost(case) != _leaks(case) else ''}".strip(),
                "You sorted characters: spaces count, and 'star' and 'arts' are the same. Sort words."),
        Mistake("inverted", _leaks, "You return the leaks and drop the rest. Keep the others."),
        Mistake("wrong-side", lambda case: f"texts in your list that are not in training: {int(case.others)}.",
                "You cleaned the test split. Leave the test split alone, and remove texts from training."),
        Mistake("removed-in-loop", _leaks, "Each leak that you keep comes right after one that you removed. Removing from "
                "the list that a loop runs through makes the loop skip the next item; build a new list."),
    ),
    properties=(
        Property(lambda case: case.others > 0, lambda case: "texts in your list that training does not contain: "
                 f"{int(case.others)}.", "Return training texts, unchanged."),
        Property(lambda case: (case.kept > 1).any(), lambda case: f"one training text is {int(case.kept.max())} times "
                 "in your list.", "It should be there once; look at what your loops run over."),
        Property(lambda case: ((case.kept > 0) & (case.right["kept"] == 0)).any(), _leaks, "Two texts leak if `words` gives "
                 "the same words and punctuation, each equally often, in any order."),
        Property(lambda case: ((case.kept == 0) & (case.right["kept"] > 0)).any(), _lost, "No test review has the same "
                 "words and punctuation, each equally often."),
    ),
    hints=(
        "Try it on train = ['not moving but dull'], test = ['not dull but moving']. What do the two texts share?",
        "What can you make of a list of words that does not depend on their order, and still counts them?",
        "tuple(sorted(words(text))) in place of \" \".join(words(text)), in both lines.",
    ),
)

EXERCISES = (MARKED, HOW_MANY, BAYES, LEAKS)
