"""Answers to the exercises of notebook 13 as learners write them, each with what it has to be told."""

import math

import pytest
import torch
from learners_answers import right
from learners_continuing import (
    all_the_same,
    as_in_a_library,
    backwards_in_numpy,
    batch_first,
    batch_first_padding_too,
    both_real,
    by_class_weights,
    by_quantile,
    by_the_course,
    counted_to_the_last,
    each_of,
    from_below,
    in_plain_python,
    larger_and_larger,
    last_token_again,
    log_of_probability,
    loss_and_count,
    masked_mean,
    nll_straight_in,
    one_cut_too_few,
    one_long_text,
    one_pair_short,
    one_softmax_for_all,
    only_those_kept,
    pairs_in_one_tensor,
    rows_of_targets,
    smoothed,
    straight_in,
    straight_in_whole,
    sum_for_each_text,
    taken_until_above,
    taken_while_it_fits,
    text_by_text,
    text_by_text_with_answers,
    up_to_its_length,
    viewed,
    weighted_row_means,
    well_known_lines,
    without_the_first,
)
from learners_continuing_steps import (
    all_rotated_at_the_end,
    all_up_to_the_end,
    bits,
    cached_before_rotating,
    causal,
    everything_before,
    heads_merged,
    last_eight,
    no_cache_yet,
    one_more,
    past_and_new_apart,
    raw,
    reach,
    same_probabilities,
    scaled_by,
    size_of_the_object,
    stacked,
    step,
    token_left_out,
    triangle,
    triangle_at_the_right,
    up_to_the_second,
    without_modulo,
    written_backwards,
)
from torch.nn import functional as F

from course_utils import language_model
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

WRONG = [  # exercise, answer, the mistake's name if it has one, what the message must say
    ("13.1", rows_of_targets, "inputs-whole", "The last token has no successor here"),
    ("13.1", pairs_in_one_tensor, "", "End with `return inputs, targets`"),
    ("13.1", last_token_again, "", "The shape of your inputs"),
    ("13.1", one_long_text, "", "The shape of your inputs is (20,), expected (3, 6)"),
    ("13.1", one_pair_short, "", "The inputs had the shapes token_ids (1, 2)"),
    ("13.1", lambda ids: (ids, ids.clone()), "not-shifted-whole", "would learn to copy"),
    ("13.1", lambda ids: (ids[:, :-1], ids[:, 1:, None]), "", "The shape of your targets is (3, 6, 1)"),
    ("13.1", lambda ids: (ids[:, :-1], ids[:, 1:].flip(1)), "", "the token that follows it in the text"),
    ("13.1", lambda ids: (ids[:, :-1], ids[:, :-1] + 1), "", "the token that follows it in the text"),
    ("13.2", as_in_a_library(), "padding-counted", "padding follows padding"),
    ("13.2", as_in_a_library(0), "pad-is-zero", "where `pad_id` is 3"),
    ("13.2", straight_in, "not-transposed", "has 4 entries, one for each position, and the vocabulary has 7"),
    ("13.2", straight_in_whole, "", "has 5 entries"), ("13.2", nll_straight_in, "not-transposed", "transpose(1, 2)"),
    ("13.2", one_cut_too_few, "", "Expected target size [3, 4], got [3, 5]"),
    ("13.2", viewed, "", "Use .reshape(...) instead"),
    ("13.2", masked_mean, "padding-in-the-divisor", "by the number of answers that count"),
    ("13.2", sum_for_each_text, "", "Is it a mean"), ("13.2", one_softmax_for_all, "", "over the vocabulary?"),
    ("13.2", both_real, "", "as a separator"), ("13.2", up_to_its_length, "", "as a separator"),
    ("13.2", log_of_probability(), "", "is infinite. If it's NaN, you divide 0 by 0"),
    ("13.2", log_of_probability(1e-9), "", "puts an upper limit on the loss"),
    ("13.2", text_by_text, "row-means", "You average each text first, and then the texts"),
    ("13.2", text_by_text_with_answers, "row-means-of-some", "You average each text first"),
    ("13.2", batch_first, "position-means", "over the batch first"),
    ("13.2", batch_first_padding_too, "padding-counted", "padding follows padding"),
    ("13.2", lambda logits, ids, pad_id: right("13.2")(logits, ids, pad_id) / len(ids), "", "mean"),
    ("13.2", smoothed, "", "costs nothing"), ("13.2", without_the_first, "", "which answers count"),
    ("13.2", in_plain_python, "cut-off", "the loss is right"),
    ("13.2", loss_and_count, "", "one number, the mean loss; got 2"),
    ("13.2", by_the_course, "", "Expected the steps written out"),
    ("13.2", lambda logits, ids, pad_id: each_of(logits, ids), "", "The shape of your loss is (3, 4), expected ()"),
    ("13.2", lambda logits, ids, pad_id: F.cross_entropy(logits[:, -2], ids[:, -1], ignore_index=pad_id),
     "only-the-last", "at every position"),
    ("13.3", taken_while_it_fits, "cut-early-unless-exact", "You cut one token early"),
    ("13.3", well_known_lines(shifted=False), "cut-early-unless-exact", "what came before a token"),
    ("13.3", well_known_lines(clone=False), "", "Your function changes `probabilities`"),
    ("13.3", counted_to_the_last(0), "cut-early", "one token early"),
    ("13.3", counted_to_the_last(2), "one-too-many", "one token late"),
    ("13.3", by_quantile, "", "more than needed"), ("13.3", only_those_kept, "", "The shape of your result is (3,)"),
    ("13.3", lambda probabilities, p: language_model.sampling_probabilities(probabilities.log(), top_p=p), "",
     "Expected the steps written out"),
    ("13.3", lambda probabilities, p: right("13.3")(probabilities, p).round(decimals=2), "", "rounded to two decimals"),
    ("13.3", all_the_same, "", "no longer in proportion"),
    ("13.3", lambda probabilities, p: right("13.3")(probabilities, p).sort(descending=True)[0].flip(0), "",
     "does each number go back to the id it came from"),
    ("13.3", lambda probabilities, p: right("13.3")(probabilities, 0.9 * p), "", "These don't reach p"),
    ("13.4", raw, "no-positions", "a cache without positions"),
    ("13.4", step(offset=lambda past_keys: 0), "no-positions", "a cache without positions"),
    ("13.4", all_rotated_at_the_end, "", "The cached keys stay as they are"),
    ("13.4", step(offset=len), "", "your new key is at position 2. Its position is the number of tokens before it"),
    ("13.4", step(offset=lambda past_keys: past_keys.shape[1]), "", "your new key is at position 3"),
    ("13.4", step(query_offset=lambda past_keys: 0), "query-without-position", "every distance is wrong"),
    ("13.4", step(dim=0), "joined-along-the-batch", "dimension 0, counted from 0, and stops"),
    ("13.4", step(dim=1), "joined-along-the-heads", "dimension 1, counted from 0, and stops"),
    ("13.4", step(dim=-1), "joined-along-the-width", "dimension 3, counted from 0, and stops"),
    ("13.4", stacked, "", "stack expects each tensor to be equal size"),
    ("13.4", step(query_offset=lambda past_keys: past_keys.shape[2] + 1), "", "The cache is right"),
    ("13.4", scaled_by(lambda query: query.shape[-1]), "", "divided by √d_head"),
    ("13.4", scaled_by(lambda query: (query.shape[1] * query.shape[-1]) ** 0.5), "", "divided by √d_head"),
    ("13.4", step(attend=causal), "only-the-first-seen", "no mask is needed"),
    ("13.4", step(attend=triangle), "only-the-first-seen", "no mask is needed"),
    ("13.4", step(attend=last_eight), "", "does the query see all keys"),
    ("13.4", cached_before_rotating, "unrotated-key-returned", "the query met a rotated key"),
    ("13.4", heads_merged, "", "The shape of your context is (2, 1, 12), expected (2, 3, 1, 4)"),
    ("13.4", lambda *inputs: right("13.4")(*inputs)[0], "", "End with `return context, keys, values`"),
    ("13.5", reach(without_modulo), "", "expected ids from 0 to"),
    ("13.5", reach(all_up_to_the_end), "all-positions", "one change is still there"),
    ("13.5", reach(token_left_out), "left-out", "instead of changing it"),
    ("13.5", reach(one_more, same_probabilities), "", "Compare the logits"),
    ("13.5", up_to_the_second, "", "up to the beginning of the text"),
    ("13.5", reach(one_more, result=lambda back: back - 1), "distance", "looks 1 token back, not 0"),
    ("13.5", lambda logits_of, ids, vocab_size: ids.shape[1], "", "Its logits never change"),
    ("13.6", lambda loss, n, text: loss / math.log(2), "per-token", "which doesn't compare tokenizers"),
    ("13.6", lambda loss, n, text: loss * n / len(text.encode()), "nats", "You return the nats for each byte"),
    ("13.6", lambda loss, n, text: loss * n / math.log(10) / len(text.encode()), "", "so the bits are wrong"),
    ("13.6", bits(lambda text: len(text.split())), "", "the bytes are miscounted"),
    ("13.6", bits(lambda text: len(text.encode("utf-8-sig"))), "", "bytes are miscounted"),
    ("13.6", bits(len), "per-character", "takes two bytes"), ("13.6", bits(size_of_the_object), "", "miscounted"),
    ("13.6", bits(lambda text: len(text.strip().encode())), "", "It would be right for 34 bytes"),
    ("13.6", lambda loss, n, text: loss / math.log(2) / len(text), "mean-per-character", "the cost of a single token"),
    ("13.6", lambda loss, n, text: 8 * right("13.6")(loss, n, text), "", "so the bits are wrong"),
    ("13.6", lambda loss, n, text: round(right("13.6")(loss, n, text), 2), "", "rounded to two decimals"),
    ("13.6", lambda loss, n, text: language_model.bits_per_byte(loss * n, [text]), "", "Expected the steps written out"),
]
ANOTHER_CONVENTION = [  # exercise, answer, its name
    ("13.3", taken_until_above, "one-too-many-if-exact"), ("13.3", well_known_lines(), "one-too-many-if-exact"),
    ("13.3", from_below, "ties-higher-id"), ("13.3", backwards_in_numpy, "ties-higher-id"),
]
RIGHT = [  # exercise, answer
    ("13.1", lambda ids: [ids[..., :-1].tolist(), ids[..., 1:].tolist()]), ("13.2", by_class_weights),
    ("13.2", weighted_row_means), ("13.3", counted_to_the_last(1)), ("13.4", step(attend=triangle_at_the_right)),
    ("13.4", written_backwards),
    ("13.3", larger_and_larger), ("13.4", step()), ("13.4", past_and_new_apart), ("13.4", no_cache_yet),
    ("13.5", reach(one_more)), ("13.5", reach(one_more, torch.allclose)), ("13.5", everything_before),
    ("13.6", lambda loss, n, text: math.log2(math.exp(loss)) * n / len(text.encode())),
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


@pytest.mark.parametrize("number, answer, name", ANOTHER_CONVENTION, ids=list(map(label, ANOTHER_CONVENTION)))
@pytest.mark.parametrize("seed", [0, 11])
def test_an_answer_by_another_convention_is_told_so(number, answer, name, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert (verdict.state, verdict.names) == ("other", (name,)), verdict.text


@pytest.mark.parametrize("number, answer", RIGHT, ids=[f"{i}-{label(case)}" for i, case in enumerate(RIGHT)])
@pytest.mark.parametrize("seed", [0, 11])
def test_an_unusual_answer_that_is_right_counts(number, answer, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "right", verdict.text
