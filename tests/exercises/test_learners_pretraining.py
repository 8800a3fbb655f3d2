"""Answers to the exercises of notebook 14 as learners write them, each with what it has to be told."""

import math

import learners_pretraining as asked
import learners_tuning as tuned
import torch
from judged import answers, assert_right, assert_told
from learners_answers import right
from torch.nn import functional as F

from course_utils import pretraining

WRONG = [  # exercise, answer, the mistake's name if it has one, what the message must say
    ("14.1", asked.hidden(swap=lambda fate: fate < 0.9), "swapped-below-nine-tenths", "overwrite the first"),
    ("14.1", asked.hidden(lambda fate: fate <= 0.8, lambda fate: (fate > 0.8) & (fate < 0.9)), "",
     "A fate of 0.8 is no longer below 0.8"),
    ("14.1", asked.hidden(swap=lambda fate: (fate >= 0.8) & (fate <= 0.9)), "", "A fate of 0.9 is no longer below 0.9"),
    ("14.1", asked.hidden(fates=lambda fate: 1 - fate), "", "Below 0.8 a chosen token becomes the mask"),
    ("14.1", asked.hidden(fates=torch.rand_like), "", "`fate` and `others` hold them"),
    ("14.1", asked.second_coin, "", "another one in a second call"),
    ("14.1", asked.hidden(mask=lambda mask_id: 103), "", "your mask is 103, expected 4"),
    ("14.1", asked.hidden(mask=lambda mask_id: 1), "", "Use `mask_id`"),
    ("14.1", asked.hidden(others=lambda ids, others: ids.roll(1, dims=1)), "", "at the same position in `others`"),
    ("14.1", asked.hidden(after=lambda inputs, chosen: inputs.masked_fill(~chosen, -100)), "", "-100 marks labels"),
    ("14.1", asked.hidden(after=lambda inputs, chosen: inputs[chosen]), "", "The shape of your result"),
    ("14.1", asked.hidden(after=lambda inputs, chosen: print(inputs)), "", "It returns None"),
    ("14.1", asked.by_arithmetic(torch.Tensor.float), "", "Expected ids, which are whole numbers"),
    ("14.1", asked.another_name, "", "Your function changes `token_ids`"),
    ("14.1", asked.by_rank, "", "From 0.8 to below 0.9 it becomes"),
    ("14.1", asked.others_in_order, "", "at the same position in `others`"),
    ("14.1", asked.swapped_everywhere, "", "tokens that aren't chosen"),
    ("14.1", asked.without_parentheses, "", "& binds more tightly than <"),
    ("14.1", asked.with_and, "", "write &, | and ~"), ("14.1", asked.with_labels, "", "You return two results"),
    ("14.1", lambda ids, chosen, fate, others, mask_id: pretraining.mask_tokens(ids, chosen, mask_id, 90).inputs, "",
     "another one in a second call"),
    ("14.1", asked.chained, "", "inputs[chosen] is a copy"),
    ("14.2", asked.cut(looked_up=lambda start, part: part), "", "Look up each piece just as you return it"),
    ("14.2", asked.cut(last=lambda size: size - 1), "", "range() leaves out its last number"),
    ("14.2", asked.cut(first=lambda start: start + 2), "", "down to a single letter"),
    ("14.2", asked.cut(returned=lambda start, part: "##" + part), "", "Your '##film' isn't in the vocabulary"),
    ("14.2", asked.cut(returned=lambda start, part: part), "signs-looked-up-and-lost", "returned without '##'"),
    ("14.2", asked.cut(step=lambda start, part: start + len(part) + 2 * (start > 0)), "signs-counted",
     "Letters are missing"),
    ("14.2", asked.either_kind, "", "Your '##film' isn't in the vocabulary"),
    ("14.2", asked.fewest, "", "and they're fewer"), ("14.2", asked.longest_first, "longest-anywhere", "wherever it is"),
    ("14.2", asked.at_most_two, "", "and they're fewer"),
    ("14.2", asked.longest_of_any_kind, "", "Look at your '##moved'"),
    ("14.2", asked.rest_as_a_new_word, "", "So only the first piece is looked up without"),
    ("14.2", asked.instead_of_unknown(lambda word: None), "", "got None, though 'film' gives one"),
    ("14.2", asked.instead_of_unknown(lambda word: "[UNK]"), "", "Return a list, such as ['[UNK]']"),
    ("14.2", asked.instead_of_unknown(lambda word: []), "nothing-for-unknown", "The word disappears"),
    ("14.2", asked.instead_of_unknown(lambda word: ["movi"]), "", "The longest pieces are movi, and then no piece"),
    ("14.2", lambda word, vocabulary: " ".join(right("14.2")(word, vocabulary)), "", "such as ['film', '##s']"),
    ("14.2", asked.used_up, "", "Your function changes `vocabulary`"),
    ("14.2", lambda word, vocabulary: pretraining.word_pieces.longest_pieces(word, vocabulary) or ["[UNK]"], "",
     "Expected the steps written out"),
    ("14.3", asked.zero_if_nothing(F.cross_entropy, lambda: None), "", "Expected 0 where nothing is chosen, got None"),
    ("14.3", lambda logits, ids, chosen: F.cross_entropy(logits[chosen], ids[chosen]), "", "a mean over no numbers is NaN"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(
        logits.flatten(0, 1), ids.masked_fill(chosen, -100).flatten())),
     "only-the-visible-kept", "keep the positions where"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(logits.transpose(1, 2), ids)),
     "all-positions-but-none", "but then all positions count"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(
        (logits * chosen[..., None]).transpose(1, 2), ids)), "visible-as-zero-logits-but-none", "still count"),
    ("14.3", asked.zero_if_nothing(F.nll_loss), "nll-of-logits", "isn't a logarithm of a probability yet"),
    ("14.3", asked.zero_if_nothing(lambda logits, ids: -logits.log_softmax(-1)[:, ids].mean()),
     "every-position-with-every-token", "the right tokens of all of them"),
    ("14.3", lambda *inputs: "the loss", "", "expected one tensor as the mean loss"),
    ("14.3", lambda *inputs: {"loss": F.cross_entropy(inputs[0].flatten(0, 1), inputs[1].flatten())}, "", "a dictionary"),
    ("14.3", asked.softmax_over(1), "softmax-over-positions", "runs over the positions"),
    ("14.3", asked.softmax_over(0), "softmax-over-the-batch", "runs over the batch"),
    ("14.3", asked.log_with(), "", "is infinite"), ("14.3", asked.log_with(1e-9), "", "an upper limit on the loss"),
    ("14.3", asked.zero_if_nothing(lambda logits, ids: F.cross_entropy(logits, ids).exp()), "", "the perplexity"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(
        logits.transpose(1, 2), ids * chosen, ignore_index=0)), "token-zero-left-out", "0 is an ordinary id here"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(logits, ids.masked_fill(~chosen, -100))),
     "", "Expected the vocabulary in dimension 1"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(
        logits.reshape(len(logits), logits.shape[-1], -1), ids.masked_fill(~chosen, -100))), "reshaped", "other rows"),
    ("14.3", asked.over_whole_texts(lambda logits, ids, chosen: F.cross_entropy(
        logits.flatten(0, 1), ids.masked_fill(~chosen, -1).flatten())), "", "ignore_index=-1"),
    ("14.3", asked.over_whole_texts(asked.one_position_at_a_time), "position-means", "at each position first"),
    ("14.3", asked.over_whole_texts(asked.marked_in_place), "", "Your function changes `token_ids`"),
    ("14.3", asked.zero_if_nothing(lambda logits, ids: F.cross_entropy(logits, ids, reduction="none")), "",
     "The shape of your loss is (4,), expected ()"),
    ("14.3", lambda logits, ids, chosen: right("14.3")(logits.detach(), ids, chosen), "cut-off", "cuts the loss off"),
    ("14.4", tuned.before_the_layer, "pre-norm", "with gain and shift taken off again, your first vector has the mean"),
    ("14.4", tuned.normed_before_both, "", "has just been normalised"),
    ("14.4", tuned.half(norm=tuned.mean_square_only), "", "the mean should be 0"),
    ("14.4", tuned.half(norm=tuned.over_dimensions(-2, -1)), "norm-over-the-text", "takes each vector for itself"),
    ("14.4", tuned.half(norm=tuned.over_dimensions(-2)), "", "has just been normalised"),
    ("14.4", tuned.half(norm=lambda y, gain, shift, eps: tuned.normed(y, shift, gain, eps)), "gain-and-shift-exchanged",
     "have changed places"),
    ("14.4", tuned.half(norm=lambda y, gain, shift, eps: tuned.normed(y, None, None, eps)), "gain-and-shift-left-out",
     "add `shift`"),
    ("14.4", tuned.half(norm=lambda y, gain, shift, eps: tuned.normed(y, gain, shift, 1e-12)), "eps-of-the-paper", "1e-12"),
    ("14.4", tuned.half(activation=lambda inner: inner * torch.sigmoid(1.702 * inner)), "gelu-by-sigmoid", "another GELU"),
    ("14.4", tuned.half(made=F.gelu), "gelu-twice", "after the second linear layer"),
    ("14.4", tuned.half(made=lambda y: F.dropout(y, 0.1)), "", "Is there a dropout"),
    ("14.4", tuned.half(bias=False), "second-bias-left-out", "`contract_bias` isn't added"),
    ("14.4", tuned.added_in_place, "", "Your function changes `x`"),
    ("14.5", tuned.pooled(tuned.first_few), "first-vectors", "Padding can stand in front"),
    ("14.5", tuned.pooled(tuned.all_but_the_first), "without-the-first", "[CLS] counts"),
    ("14.5", tuned.pooled(lambda x, real: (x * real[..., None]).sum(1) / real.sum()), "one-divisor-for-all", "whole batch"),
    ("14.5", tuned.pooled(lambda x, real: torch.tanh(tuned.real_mean(x, real))), "tanh-of-the-mean", "tanh"),
    ("14.5", tuned.pooled(lambda x, real: F.normalize(tuned.real_mean(x, real), dim=-1)), "unit-length", "length 1"),
    ("14.5", tuned.pooled(tuned.middle_value), "", "a mean over the positions"),
    ("14.5", tuned.pooled(after=lambda logits: logits.softmax(0)), "softmax-over-the-batch", "over the texts"),
    ("14.5", tuned.pooled(after=torch.sigmoid), "", "and nothing else"),
    ("14.5", tuned.pooled(after=lambda logits: logits.argmax(-1)), "", "The shape of your result is (4,)"),
    ("14.5", tuned.pooled(tuned.padding_at_minus_infinity), "", "for scores in front of a softmax"),
    ("14.5", tuned.encoder_without_mask, "no-mask-for-the-encoder", "Give it the mask, too"),
    ("14.5", tuned.mask_made_of_ids, "the-encoder's-mask-from-the-ids", "Which id is padding"),
    ("14.5", tuned.both_masks_made_of_ids, "mask-from-the-ids", "Which id is padding"),
    ("14.5", tuned.mask_upside_down, "padding-for-the-encoder", "True means a real token"),
    ("14.5", tuned.no_mask_anywhere, "no-mask-at-all", "Both need the mask"),
    ("14.5", lambda encoder, ids, mask, weight, bias: encoder(ids, mask[0]), "", "both are (batch, seq_len)"),
    ("14.6", tuned.start(up=lambda *shape: 1e-3 * torch.randn(shape)), "both-random", "One of the two must start at 0"),
    ("14.6", tuned.start(down=tuned.only_one_row), "all-rows-equal", "it has rank 1, expected 3"),
    ("14.6", tuned.start(torch.zeros, torch.ones), "all-rows-equal", "columns of up start equal"),
    ("14.6", tuned.start(down=lambda *shape: torch.randint(-1, 2, shape)), "", "got whole numbers (torch.int64)"),
    ("14.6", tuned.start(up=lambda *shape: torch.full(shape, math.nan)), "", "15 of 15 NaN or infinite"),
    ("14.6", lambda weight, rank: right("14.6")(weight, rank)[::-1], "up-first", "return down first"),
    ("14.6", lambda weight, rank: right("14.6")(weight, 8), "", "down is (rank, d_in) and up (d_out, rank)"),
    ("14.6", tuned.start(up=lambda d_out, rank: torch.zeros(d_out)), "", "a matrix as up, (d_out, rank), got a tensor of"),
    ("14.6", tuned.start(up=lambda d_out, rank: 0.0), "", "a matrix as up, (d_out, rank), got a single number"),
    ("14.6", tuned.layers_of_weights, "", "got a layer (Linear): return its weight"),
    ("14.6", tuned.taken_off_the_weight, "", "Your function changes `weight`"),
    ("14.6", tuned.with_the_weight, "", "got 3 results"),
    ("14.6", lambda weight, rank: dict(zip(("down", "up"), right("14.6")(weight, rank))), "",
     "a dictionary with the keys 'down', 'up'"),
]
RIGHT = [  # exercise, answer
    ("14.1", asked.place_by_place), ("14.1", asked.as_lists), ("14.1", asked.selected_in_numpy), ("14.1", asked.by_bucket),
    ("14.1", asked.WithACall()), ("14.1", asked.by_arithmetic()),
    ("14.2", asked.by_pattern), ("14.2", asked.by_tree), ("14.2", asked.one_after_the_other), ("14.2", asked.cut()),
    ("14.3", asked.zero_if_nothing(F.cross_entropy)), ("14.3", asked.by_labels), ("14.3", asked.by_one_hot),
    ("14.3", asked.without_nan), ("14.3", asked.in_float64), ("14.3", asked.from_a_distribution),
    ("14.4", tuned.with_layers), ("14.4", tuned.word_by_word), ("14.4", tuned.in_numpy), ("14.4", tuned.half()),
    ("14.4", tuned.half(activation=tuned.by_normal_distribution)),
    ("14.5", tuned.logits_first), ("14.5", tuned.nothing_for_padding), ("14.5", tuned.by_a_layer),
    ("14.5", tuned.as_attention), ("14.5", tuned.added_up_by_text), ("14.5", tuned.masked_array),
    ("14.5", tuned.padding_set_to_zero), ("14.5", tuned.words_alone),
    ("14.6", tuned.start(up=lambda *shape: torch.full(shape, 0.0))), ("14.6", tuned.start(down=torch.eye)),
    ("14.6", tuned.row_after_row), ("14.6", tuned.singular_vectors), ("14.6", tuned.cancelling),
]


@answers("number, answer, name, said", WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", RIGHT)
def test_an_unusual_answer_that_is_right_counts(number, answer, seed):
    assert_right(number, answer, seed)
