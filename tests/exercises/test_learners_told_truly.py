"""A message shows what's wrong and not what's right; types are read before they're lost; a path and an index can tell."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from judged import answers, assert_right, assert_told
from learners_answers import right

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.compare import readings
from course_utils.exercises.definitions import Case, Exercise, Property
from course_utils.exercises.judge import _by_property, judge

# ---------------------------------------------------------------- the case that a message is about


def changed_in(row: int, part: int, number: str, change):
    """The right results, but one part of them is changed from a row on."""
    def answer(*inputs):
        parts = [one.clone() for one in right(number)(*inputs)]
        parts[part][row:] = change(parts[part], *inputs)[row:]
        return tuple(parts)
    return answer


def query_of_the_first_sentence(query, keys, states, mask, v):
    return right("16.2")(query[:1].expand(len(query), -1), keys, states, mask, v)


def last_column_left_out(weights, gold):
    return right("16.5")(weights[:, :-1], gold)


def clamped(scores):
    return right("0.2")(scores.clamp(-80, 80))


@answers("number, answer, name, said", [
    ("16.2", query_of_the_first_sentence, "", "the weights of sentence"),
    ("17.2", changed_in(1, 1, "17.2", lambda asked, ids: ids[:, :-1]), "", "row 1, counted from 0, reads"),
    ("13.1", changed_in(1, 1, "13.1", lambda targets, ids: ids[:, :-1]), "", "counted from 0, your inputs are"),
    ("16.5", last_column_left_out, "", "your rate is"), ("0.2", clamped, "", "one of your numbers is"),
])
def test_a_message_is_about_something_that_is_wrong(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)
    text = judge(find_exercise(number), answers_to(number), answer, seed).text
    for ending in (". ", ", and its targets", " and is asked"):
        before, expected, after = text.partition(", expected ")
        assert not expected or not before.endswith(after.partition(ending)[0]), text


def test_a_property_shows_the_worst_of_the_cases_that_are_wrong():
    exercise = Exercise(signature="f(x) -> y", mistakes=(), hints=(), properties=(
        Property(lambda case: True, lambda case: f"yours is {case.answer.item():g}.", ""),))
    cases = [Case((), {"": torch.tensor(got)}, {"": torch.tensor(1.0)}) for got in (1.0, 1.5, 4.0, 1.2)]
    assert _by_property(exercise, cases, [case.answer for case in cases]).startswith("yours is 4.")


def test_a_known_mistake_shows_the_worst_case_that_it_can_speak_of():
    said = judge(find_exercise("3.1"), answers_to("3.1"), answers_to("3.1").mutants["by-place"]).text
    assert "occurs three times" in said

# ---------------------------------------------------------------- types, before a conversion loses them


def masked(mask):
    """17.2 with another mask(n)."""
    return lambda ids: (ids[:, :-1], ids[:, 1:], mask(ids.shape[1] - 1))


def nested(n, kind=bool, rows=list):
    return rows(rows(kind(j <= i) for j in range(n)) for i in range(n))


@answers("number, answer", [
    ("17.2", masked(lambda n: np.tri(n).astype(bool))), ("17.2", masked(nested)),
    ("17.2", masked(lambda n: nested(n, rows=tuple))), ("17.2", masked(lambda n: nested(n, kind=np.bool_))),
    ("17.2", masked(lambda n: [np.arange(n) <= i for i in range(n)])),
    ("17.2", masked(lambda n: list(torch.ones(n, n).tril() > 0))),
    ("13.1", lambda ids: torch.stack([ids[:, :-1], ids[:, 1:]])), ("13.1", lambda ids: np.stack([ids[:, :-1], ids[:, 1:]])),
    ("13.1", lambda ids: (ids[:, :-1].tolist(), ids[:, 1:].numpy())),
    ("15.1", "84.4 %, 11.4 %, 4.2 %"), ("15.1", "84,4 %; 11,4 %; 4,2 %"), ("15.1", [[0.844], [0.114], [0.042]]),
    ("15.1", torch.tensor([[0.844, 0.114, 0.042]])), ("16.1", np.array([[0.56], [0.26], [0.18]])),
])
def test_what_is_right_in_another_type_or_form_counts(number, answer, seed):
    assert_right(number, answer, seed)


@answers("number, answer, name, said", [
    ("17.2", masked(np.tri), "", "yours holds numbers, of type float64"),
    ("17.2", masked(lambda n: nested(n, kind=int)), "", "yours holds numbers, of type int64"),
    ("17.2", masked(lambda n: torch.ones(n, n).tril()), "", "yours holds numbers, of type float32"),
    ("13.1", lambda ids: (ids[:, :-1].float(), ids[:, 1:]), "", "your inputs are of type float32"),
    ("13.1", lambda ids: (ids[:, :-1], ids[:, 1:].numpy().astype(float)), "", "your targets are of type float64"),
    ("14.1", lambda *inputs: right("14.1")(*inputs).double().tolist(), "", "your ids are of type float64"),
    ("13.5", lambda *inputs: np.bool_(True), "", "expected a number of tokens, got True"),
])
def test_a_wrong_type_is_called_what_it_is(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@pytest.mark.parametrize("written, numbers", [
    ("84.4 %, 11.4 %", [0.844, 0.114]), ("12 %,5 %", [0.12, 0.05]), ("[84,4 %; 11,4 %]", [0.844, 0.114]), ("80 %", 0.8),
    ("84.4\u202f%", 0.844), ("1 / 2, 1 / 4", [0.5, 0.25]), ("3 / 4", 0.75),
])
def test_a_space_before_a_per_cent_sign_or_around_a_slash_is_read(written, numbers):
    assert pytest.approx(numbers) in readings(written)

# ---------------------------------------------------------------- paths, indices, counts


def greedy(end=(3,), choose=lambda logits: int(logits.argmax())):
    def answer(step, state, max_len):
        last, ids = 2, []
        while len(ids) < max_len:
            logits, state = step(last, state)
            last = choose(logits)
            if last in end:
                break
            ids.append(last)
        return ids
    return answer


def cached(ends_too=(), choose=lambda log_p: int(log_p.argmax())):
    def answer(step, begin, end, max_len):
        last, words = begin, []
        while len(words) < max_len:
            last = choose(step(last, len(words)))
            if last in (end, *ends_too):
                break
            words.append(last)
        return words
    return answer


def drawn(logits):
    return int(torch.multinomial(logits.softmax(-1), 1))


def precision(grams, runs=lambda tokens, n: max(0, len(tokens) - n + 1), count=list.count):
    """The precision with other n-grams, grams(tokens, n), another number of runs, or another way to count in a reference."""
    def answer(translations, references, n):
        pairs = [(grams(ours, n), grams(theirs, n)) for ours, theirs in zip(translations, references)]
        hits = sum(min(own.count(gram), count(wanted, gram)) for own, wanted in pairs for gram in set(own))
        possible = sum(runs(tokens, n) for tokens in translations)
        return hits / possible if possible else 0.0
    return answer


def tuples(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def in_the_text(translations, references, n):
    hits = sum(min(own.count(gram), " ".join(theirs).count(gram)) for ours, theirs in zip(translations, references)
               for own in [[" ".join(gram) for gram in tuples(ours, n)]] for gram in set(own))
    return hits / max(1, sum(len(tuples(ours, n)) for ours in translations))


def skipping_letters(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        ends = [end for end in range(len(word), start, -1) if "##" * bool(pieces) + word[start:end] in vocabulary]
        pieces += ["##" * bool(pieces) + word[start : ends[0]]] if ends else []
        start = ends[0] if ends else start + 1
    return pieces or ["[UNK]"]


def scored(score):
    return lambda log_p, lengths, alpha: int(score(log_p, lengths, alpha).argmax())


@answers("number, answer, name, said", [
    ("16.4", greedy(choose=drawn), "", "doesn't sample"), ("17.5", cached(choose=drawn), "", "doesn't sample"),
    ("16.4", greedy(end=(0, 3)), "ends-at-padding", "Only END"),
    ("17.5", cached(ends_too=(0,)), "ends-at-zero", "Only `end`"),
    ("17.6", precision(tuples, lambda tokens, n: len(tokens) - n + 1), "fewer-than-none", "max(0, …)"),
    ("17.6", precision(lambda tokens, n: ["".join(gram) for gram in tuples(tokens, n)]), "glued", "Keep the words apart"),
    ("17.6", in_the_text, "searched-in-the-text", "Compare whole words"),
    ("14.2", skipping_letters, "", "no letter may be skipped"),
    ("17.4", scored(lambda log_p, n, alpha: log_p / ((4 + n) / 6) ** alpha), "end-not-counted", "<eos> is counted"),
    ("17.4", scored(lambda log_p, n, alpha: log_p / ((5 + n) / 6**alpha)), "no-alpha", "or only the 6 has it"),
    ("17.4", scored(lambda log_p, n, alpha: log_p / ((5 + n) / 6)), "no-alpha", "it's missing, or only"),
    ("17.4", scored(lambda log_p, n, alpha: log_p - ((5 + n) / 6) ** alpha), "subtracted", "You subtract the penalty"),
])
def test_a_path_a_count_or_an_index_gives_a_mistake_away(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


OTHER_PENALTIES = {
    "a word more": lambda n, alpha: ((6 + n) / 6) ** alpha, "two words fewer": lambda n, alpha: ((3 + n) / 6) ** alpha,
    "divided by 5": lambda n, alpha: ((6 + n) / 5) ** alpha if alpha else 1 / n, "its logarithm": lambda n, alpha:
    (((5 + n) / 6) ** alpha).log1p(), "half of alpha": lambda n, alpha: ((5 + n) / 6) ** (alpha / 2),
    "twice alpha": lambda n, alpha: ((5 + n) / 6) ** (2 * alpha), "0.6 for alpha": lambda n, alpha: ((5 + n) / 6) ** 0.6,
    "both to the power": lambda n, alpha: (5**alpha + n**alpha) / 6**alpha,
}


@pytest.mark.parametrize("how", OTHER_PENALTIES)
def test_another_penalty_is_refused_on_any_seed_without_a_name(how):
    for seed in range(25):
        verdict = judge(find_exercise("17.4"), answers_to("17.4"),
                        scored(lambda log_p, n, alpha: log_p / OTHER_PENALTIES[how](n.double(), alpha)), seed)
        assert verdict.state == "wrong" and verdict.names == (), (seed, verdict.text)


@pytest.mark.parametrize("number", ["16.4", "17.5", "17.6"])
def test_the_right_path_and_the_right_count_count(number):
    answer = {"16.4": greedy(), "17.5": cached(), "17.6": precision(tuples)}[number]
    for seed in (0, 3, 7):
        assert_right(number, answer, seed)


def test_the_check_of_an_adapter_loads_no_compiler():
    code = """
import sys
import torch
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

def unfilled(weight, rank):
    return torch.Tensor(rank, weight.shape[1]), torch.empty(weight.shape[0], rank)

print(judge(find_exercise("14.6"), answers_to("14.6"), unfilled).text)
print([name for name in sys.modules if name.startswith("torch._inductor")])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "NaN or infinite. torch.empty holds whatever was in memory" in out[0] and out[-1] == "[]"
