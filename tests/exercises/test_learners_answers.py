"""Answers as learners write them, each with what it has to be told: the mistake's name if it has one, and some words."""

import math

import numpy as np
import pytest
import torch
from learners_answers import (
    after_softmax,
    by_embedding,
    by_exp,
    by_logsumexp,
    by_one_hot,
    coder,
    context_as_array,
    context_made_anew,
    counted_without_overlaps,
    divided_again,
    divided_by_heads,
    epoch,
    from_minus_zero,
    head_by_head,
    heads_by_exp,
    heads_filled_with,
    ids_in_a_counter,
    nan_to_num,
    of_the_stripped_text,
    places_compared,
    pooled,
    review_by_review,
    right,
    rolled_rows,
    softmax_of_softmax,
    softmax_over_all,
    step_first,
    ties_in_small_letters,
    values_of_a_dict,
    with_every_second,
    without_last_mark,
    words_in_a_dict,
    zero_scores_hidden,
    zeros_at_once,
)
from learners_later_answers import (
    DeepCopies,
    FrozenEmbedding,
    NoDefault,
    OffsetAtFirst,
    StackAsSequential,
    StackOfNaN,
    StackWithMask,
    an_empty_word,
    by_complex_numbers,
    by_pairs,
    compared,
    each_seed_a_review,
    found_among_the_first,
    gated,
    holm_again_and_again,
    left_as,
    less_than_the_budget,
    masked_once,
    mean_of_the_rest,
    named_in_the_loop,
    neighbours_exchanged,
    nothing_of_no_layers,
    one_layer_as_it_is,
    one_token_is_all,
    padding_first,
    rows,
    sorted_by_noise,
    two_models_apart,
    two_standard_errors,
    variance_kept_above,
)

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

WRONG = [  # exercise, answer, the named mistake ("" for none), what the message must say
    ("1.1", of_the_stripped_text, "", "every other character stays"),
    ("1.3", lambda *inputs: right("1.3")(*inputs) / math.log(10), "", "Only the log prior odds are left"),
    ("2.2", lambda train, texts, n: right("2.2")(train, texts, max(n - 1, 1)), "", "fewer than min_freq times"),
    ("2.4", lambda rows, pad_id: (right("2.4")(rows, pad_id)[0], (right("2.4")(rows, pad_id)[0] != pad_id).cummax(1)[0]),
     "", "sums to the length"),
    ("2.6", words_in_a_dict, "", "every occurrence of a pair"),
    ("2.6", lambda *inputs: ("".join(right("2.6")(*inputs)[0]), right("2.6")(*inputs)[1]), "", "two pieces as the pair"),
    ("3.1", lambda ids, upstream, size: right("3.1")(ids, upstream, size) / len(ids), "", "gets the upstream row"),
    ("3.4", step_first("step", "clear", "backward"), "", "backward() before step()"),
    ("3.4", step_first("clear", "step", "backward"), "cleared-between", "it came before backward"),
    ("4.3", zero_scores_hidden, "", "not where a score is 0"),
    ("5.2", lambda x: right("5.2")(x.flip(1)), "", "head 0 first"),
    ("5.4", divided_by_heads, "", "softmax of query"),
    ("5.4", lambda x, *rest: (right("5.4")(x, *rest)[0] * rest[-1][..., None], right("5.4")(x, *rest)[1]), "",
     "Only keys are masked"),
    ("6.1", lambda first, count, d: right("6.1")(first, max(count - first, 1), d), "", "shape"),
    ("7.2", variance_kept_above, "", "under the root"), ("7.4", masked_once, "", "in every layer"),
    ("8.1", pooled(softmax_over_all), "", "right after a softmax over the last dimension it is one"),
    ("9.1", lambda values, n: (np.median(values) + 0.001, right("9.1")(values, n)[1]), "", "Add up the accuracies"),
    ("9.3", two_standard_errors, "", "multiply by 1.96"), ("9.4", neighbours_exchanged, "", "every order must be possible"),
    ("10.3", mean_of_the_rest, "", "The rest is the sum"), ("11.1", found_among_the_first, "", "divide by the rank"),
    ("11.1", lambda scores, evidence: right("11.1")(scores[::-1], evidence), "", "Write .flip(0)"),
    ("11.2", lambda score, tokens: [score(tokens) - score(" ".join(tokens[:i])) for i in range(len(tokens))], "",
     "score takes a list of tokens"),
    ("11.3", lambda score, tokens, values, shares: right("11.3")(score, tokens, values, [s for s in shares if s]), "",
     "a share of 0"),
    ("11.5", lambda attentions: right("11.5")(attentions) * 2, "", "Each row must sum to one"),
    ("12.2", each_seed_a_review, "", "Print the three variances separately"),
    ("12.3", lambda p, level: [i for i, kept in enumerate(right("12.3")(p, level)) if kept], "", "shape"),
    ("12.4", lambda *sizes: (right("12.4")(*sizes)[0] + 0.5, right("12.4")(*sizes)[1]), "", "A width is a whole number"),
    ("2.2", ties_in_small_letters, "ties-without-capitals", "every capital before the small letters"),
    ("2.2", ids_in_a_counter, "unknown-is-padding", "a Counter gives 0"),
    ("2.2", lambda train, texts, n: right("2.2")(train, [text.lower() for text in texts], n), "", "it is the capitals"),
    ("2.3", coder(encode=without_last_mark), "", "the last of a text too"),
    ("2.3", coder(without_last_mark, without_last_mark), "", "the last of a text too"),
    ("2.3", coder(str.split, str.split), "", "tokens, and gets"),
    ("2.3", coder(back=lambda text: text.replace(" ,", ",")), "", "with a space between every two"),
    ("2.4", from_minus_zero, "", "[-0:] means all places"),
    ("2.6", counted_without_overlaps, "overlaps-once", "two pairs of neighbours"),
    ("3.4", epoch(torch.ones_like), "", "a mask that isn't the batch's"),
    ("3.4", epoch(torch.logical_not), "", "a mask that isn't the batch's"),
    ("3.4", epoch(size=lambda labels: 0), "", "You divide by 0 here"),
    ("4.3", divided_again, "", "Nothing is left for the allowed keys"),
    ("4.5", context_made_anew, "", "a new torch.tensor(…)"),
    ("4.5", context_as_array, "", "No gradient comes through NumPy"),
    ("5.4", heads_filled_with(-10.0), "", "A number such as -100 isn't low enough"),
    ("5.4", heads_by_exp, "", "exp of a large score overflows"),
    ("6.1", rows(lambda first, count: torch.linspace(first, first + count, count)), "", "linspace takes different steps"),
    ("6.1", rows(speeds=lambda d: 10_000 ** -torch.linspace(0, 1, d // 2)), "", "stop before 1"),
    ("6.3", NoDefault, "", "forward(self, x, offset=0)"), ("6.3", OffsetAtFirst, "", "forward(self, x, offset=0)"),
    ("7.2", lambda x, w, b, eps: right("7.2")(x, w, b, 1e-5), "", "the eps that you are given has no effect here"),
    ("7.2", lambda x, w, b, eps: right("7.2")(x, w, b, 1e-3), "", "close to those of eps = 0.001"),
    ("7.4", nothing_of_no_layers, "", "With no layers at all"),
    ("7.4", named_in_the_loop, "", "gets a value only inside a loop"),
    ("7.5", StackWithMask, "", "Your class can't be used the way the exercise describes"),
    ("7.5", StackOfNaN, "", "numbers in your output are NaN"),
    ("8.1", pooled(softmax_of_softmax), "", "right after a softmax over the last dimension it is one"),
    ("8.1", pooled(after_softmax), "", "Nothing is left for the real words"),
    ("8.1", pooled(by_exp), "", "exp of a large score, which overflows"),
    ("9.2", 0.73, "logarithm-of-tf", "1 + ln 2"), ("9.2", 0.445, "other-review", "'not dull but moving'"),
    ("9.2", 0.771, "not-smoothed", "one is added"), ("9.2", 0.8, "other-logarithm", "the natural one"),
    ("9.3", compared(lambda a, b: a.astype("uint8") - b.astype("uint8")), "", "In uint8 there is no -1"),
    ("9.3", compared(lambda a, b: a ^ b), "", "have lost their sign"),
    ("9.3", compared(lambda a, b: a & ~b), "", "only the second has right count as -1"),
    ("9.4", padding_first, "", "at the end and the padding before them"),
    ("10.4", gated(torch.relu), "", "This one is negative"), ("10.4", gated(torch.tanh), "", "0.762 times what it found"),
    ("11.2", one_token_is_all, "", "the list is empty"), ("11.2", an_empty_word, "", "the list is empty"),
    ("11.3", left_as(lambda tokens, left: [tokens[i] for i in left[::-1]]), "order-lost-upwards", "keep the order"),
    ("11.3", left_as(lambda tokens, left: list(dict.fromkeys(tokens[i] for i in sorted(left)))), "repeats-lost", "set()"),
    ("11.5", one_layer_as_it_is, "", "With a single one"),
    ("12.2", two_models_apart, "unpaired-means", "subtract review by review first"),
    ("12.4", less_than_the_budget, "", "the next width fits as well"),
]
RIGHT = [  # exercise, answer
    ("2.4", lambda rows, pad_id: (right("2.4")(rows, pad_id)[0], right("2.4")(rows, pad_id)[1].to_sparse())),
    ("4.5", zeros_at_once), ("7.5", DeepCopies), ("1.4", lambda train, test: sorted(right("1.4")(train, test))),
    ("2.2", values_of_a_dict), ("2.4", rolled_rows), ("2.6", with_every_second), ("3.1", by_embedding),
    ("3.2", review_by_review), ("4.2", by_logsumexp), ("4.4", places_compared), ("4.5", nan_to_num), ("5.4", head_by_head),
    ("6.3", FrozenEmbedding), ("6.4", by_complex_numbers), ("7.5", StackAsSequential), ("8.3", by_one_hot),
    ("9.4", sorted_by_noise), ("11.1", by_pairs), ("12.3", holm_again_and_again),
]


def label(case) -> str:
    return f"{case[0]}-{getattr(case[1], '__name__', case[1])}"


@pytest.mark.parametrize("number, answer, name, said", WRONG, ids=[f"{i}-{label(case)}" for i, case in enumerate(WRONG)])
@pytest.mark.parametrize("seed", [0, 11])
def test_a_wrong_answer_is_told_what_is_wrong_with_it(number, answer, name, said, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "wrong", verdict.text
    assert said.lower() in verdict.text.lower(), verdict.text
    assert verdict.names == ((name,) if name else ()), verdict.text


@pytest.mark.parametrize("number, answer", RIGHT, ids=[f"{i}-{label(case)}" for i, case in enumerate(RIGHT)])
@pytest.mark.parametrize("seed", [0, 11])
def test_an_unusual_answer_that_is_right_counts(number, answer, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "right", verdict.text
