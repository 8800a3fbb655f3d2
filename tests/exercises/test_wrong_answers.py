"""Wrong answers as learners write them, on nobody's list: each is refused, with a message that is true of it."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score
from torch.nn import functional as F
from unlisted_answers import (
    RIGHT,
    LastRowsMissing,
    StackCut,
    StackSqueezed,
    TableCut,
    adapter_by_class,
    at_its_bar,
    both,
    changed,
    course_heads,
    exps_and_a_little,
    filled,
    ids_by_length,
    library_heads,
    library_masked,
    log_and_a_little,
    log_of_a_product,
    log_of_softmax,
    mean_without_gradient,
    naive_softmax,
    never_quite_zero,
    nonzero_ids,
    norm_by_module,
    on,
    padded_with,
    pooled_by_hand,
    queries_by_class,
    queries_by_course,
    queries_by_library,
    sdpa,
    shared_out_again,
    softmax_in_place,
    spans_at_the_next_character,
    spans_of_letters_only,
    spans_of_one_line,
    statistics_without_gradient,
    swallowing,
    two_means,
    two_words_exchanged,
    weights_cut_off,
    widths_up_to,
    words_glued,
)
from variants import variants_of

from course_utils import attention, explain, positional_encoding, results
from course_utils import transformer_blocks as blocks
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

CALLED = [                                              # the function that is asked for, called
    ("4.2", lambda q, k, v: (sdpa(q, k, v), RIGHT["4.2"](q, k, v)[1])), ("4.2", swallowing),
    ("4.2", lambda q, k, v: tuple(attention.scaled_dot_product_attention(q, k, v))), ("4.3", library_masked),
    ("4.3", lambda q, k, v, m: tuple(attention.scaled_dot_product_attention(q, k, v, m))),
    ("4.5", lambda q, k, v, m: tuple(attention.scaled_dot_product_attention(q, k, v, m))),
    ("5.4", library_heads), ("5.4", course_heads),
    ("6.1", lambda first, count, d: positional_encoding.sinusoidal_table(first + count, d)[first:]),
    ("6.1", lambda first, count, d: positional_encoding.SinusoidalPositions(d)(torch.zeros(count, d), offset=first)),
    ("6.4", lambda x, offset: positional_encoding.RotaryPositions(x.shape[-1])(x, offset)),
    ("7.2", lambda x, w, b, eps: F.layer_norm(x, w.shape, w, b, eps)), ("7.2", norm_by_module),
    ("7.2", lambda x, w, b, eps: torch.layer_norm(x, w.shape, w, b, eps)), ("7.2", blocks.layer_norm),
    ("8.1", queries_by_library), ("8.1", queries_by_course), ("8.1", queries_by_class),
    ("9.1", results.interval), ("11.1", lambda scores, evidence: average_precision_score(evidence, scores)),
    ("11.5", lambda attentions: explain.rollout([layer[None] for layer in attentions])[0]),
    ("14.6", adapter_by_class),
]


def largest_of_all(query, key, value):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = (scores - scores.max()).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ value, weights


def guarded_sum(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-9)
    return weights @ value, weights


def table_of_512(first, count, d_model):
    return RIGHT["6.1"](0, 512, d_model)[first : first + count]


def padding_after_softmax(queries, x, attention_mask):
    weights = (queries @ x.mT / x.shape[-1] ** 0.5).softmax(-1) * attention_mask[:, None]
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    return (weights @ x).flatten(1), weights


def least_one_token(score, tokens, importances, shares):
    return RIGHT["11.3"](score, tokens, importances, [max(share, 1 / len(tokens)) for share in shares])


def both_best_epochs(validation, test):
    return (test * (validation == validation.max(axis=2, keepdims=True))).sum(axis=2).mean(axis=1)


WRONG = [  # exercise, answer, what the message must say
    ("1.1", spans_at_the_next_character, "you return 3 spans, and 4 passages are marked"),
    ("1.1", spans_of_letters_only, "every other character stays"),
    ("1.1", on("1.1", lambda marked: (marked.replace("  ", " "),)), "two spaces in a row"),
    ("1.1", on("1.1", lambda marked: (marked.lower(),)), "capitals"),
    ("1.1", on("1.1", lambda marked: (marked.replace("\n", " "),)), "every other character stays"),
    ("1.1", on("1.1", lambda marked: (marked.encode("ascii", "ignore").decode(),)), "every other character stays"),
    ("1.1", lambda marked: RIGHT["1.1"](marked) if marked else None, "returns None"),
    ("1.4", lambda train, test: RIGHT["1.4"](train, test) if test else [], "may stay"),
    ("1.4", lambda train, test: RIGHT["1.4"](train, test)[:-1], "may stay"),
    ("2.2", lambda *inputs: [row for row in RIGHT["2.2"](*inputs) if row], "expected one list of ids for each"),
    ("2.2", ids_by_length, "expected"),
    ("2.2", on("2.2", lambda train, texts, n: ([text.lower() for text in train], texts, n)), "it is the capitals"),
    ("2.4", changed("2.4", lambda pair: (pair[0].float(), pair[1])), "expected whole numbers as token_ids"),
    ("2.4", changed("2.4", both(torch.squeeze)), "shape"),
    ("2.4", on("2.4", lambda rows, pad_id: ([row[-4:] for row in rows], pad_id)), "shape"),
    ("2.6", lambda pieces, times: answers_to("2.6").reference([w for w in pieces if len(w) > 1], times), "merging"),
    ("3.1", changed("3.1", torch.squeeze), "shape"),
    ("3.1", changed("3.1", lambda gradient: gradient.clamp(-10, 10)), "once"),
    ("3.2", padded_with(-10.0), "the max half of review"), ("3.2", padded_with(-100.0), "the max half of review"),
    ("3.2", changed("3.2", torch.squeeze), "shape"), ("3.2", changed("3.2", torch.detach), "no gradient reaches `x`"),
    ("3.2", lambda x, mask: RIGHT["3.2"](x.detach(), mask), "no gradient reaches `x`"),
    ("3.5", lambda v, d, f: RIGHT["3.5"](torch.atleast_2d(v), d, f), "shape"),
    ("4.2", changed("4.2", both(torch.squeeze)), "shape"),
    ("4.2", lambda q, k, v: RIGHT["4.2"](q.detach(), k, v), "no gradient reaches `query`"),
    ("4.2", weights_cut_off, "the numbers are right, but no gradient reaches `query`"),
    ("4.2", changed("4.2", both(torch.detach)), "no gradient reaches `query`"),
    ("4.2", changed("4.2", lambda pair: (pair[0].clamp(-5, 5), pair[1])), "your context is not the mean of the values"),
    ("4.2", changed("4.2", lambda pair: pair[0]), "expected two results, context and weights"),
    ("4.2", changed("4.2", lambda pair: (pair[0], None)), "expected a tensor as weights, got None"),
    ("4.3", filled("4.3", -10.0), "a forbidden key gets a weight"), ("4.3", filled("4.3", -80.0), "a forbidden key gets a"),
    ("4.3", filled("4.3", -100.0), "a forbidden key gets a weight"),
    ("4.3", lambda q, k, v, m: RIGHT["4.3"](q, k.detach(), v, m), "no gradient reaches `key`"),
    ("4.3", changed("4.3", both(torch.squeeze)), "shape"),
    ("4.4", changed("4.4", torch.squeeze), "shape"),
    ("4.4", lambda real, n: RIGHT["4.4"](real, n).repeat(1, 2, 1, 1), "shape"),
    ("4.5", softmax_in_place, "changes a tensor in place"),
    ("4.5", lambda *inputs: RIGHT["4.5"](inputs[0].detach(), *inputs[1:]), "expected a context through which a gradient"),
    ("5.1", changed("5.1", torch.squeeze), "shape"), ("5.1", changed("5.1", torch.detach), "no gradient reaches `x`"),
    ("5.1", lambda x, n: RIGHT["5.1"](x.data, n), "no gradient reaches `x`"),
    ("5.2", changed("5.2", torch.squeeze), "shape"), ("5.2", changed("5.2", torch.detach), "no gradient reaches `x`"),
    ("5.2", changed("5.2", lambda x: x.clamp(-3, 3)), "which occurs nowhere in x"),
    ("5.4", filled("5.4", -10.0), "a padded key gets"), ("5.4", filled("5.4", -80.0), "a padded key gets"),
    ("5.4", lambda x, *rest: RIGHT["5.4"](x, rest[0].detach(), *rest[1:]), "no gradient reaches `W_q`"),
    ("5.4", changed("5.4", lambda pair: (pair[0], pair[1].mean(1))), "shape"),
    ("6.1", changed("6.1", torch.squeeze), "shape"), ("6.1", changed("6.1", lambda rows: rows.round(decimals=2)), "."),
    ("6.3", TableCut, "no gradient reaches `x`"), ("6.3", LastRowsMissing, "the result"),
    ("6.4", changed("6.4", torch.squeeze), "shape"), ("6.4", changed("6.4", torch.detach), "no gradient reaches `x`"),
    ("6.4", changed("6.4", torch.tanh), "A turned vector keeps its length"),
    ("7.2", lambda x, *rest: RIGHT["7.2"](x.detach(), *rest), "no gradient reaches `x`"),
    ("7.2", mean_without_gradient, "no gradient reaches `x`"),
    ("7.2", lambda x, w, b, eps: RIGHT["7.2"](x, w, b, 1e-5), "variance"),
    ("7.2", changed("7.2", torch.squeeze), "shape"),
    ("7.4", lambda x, *rest: RIGHT["7.4"](x.detach(), *rest), "no gradient reaches `x`"),
    ("7.4", changed("7.4", lambda x: x.squeeze(0)), "shape"),
    ("7.5", StackCut, "no gradient reaches `x`"), ("7.5", StackSqueezed, "expected"),
    ("8.1", filled("8.1", -10.0), "a padding position gets"), ("8.1", filled("8.1", -80.0), "a padding position"),
    ("8.1", changed("8.1", both(torch.squeeze)), "shape"),
    ("8.1", lambda q, x, m: RIGHT["8.1"](q, x.detach(), m), "gradient for x"),
    ("8.3", changed("8.3", lambda pair: (pair[0], pair[1].squeeze())), "shape"),
    ("8.3", changed("8.3", lambda pair: (pair[0].clamp(max=10), pair[1])), "your loss is 10.0000"),
    ("9.1", lambda values, n: (np.mean(values), np.mean(values) / n), "the mean is right"),
    ("9.3", changed("9.3", lambda pair: (pair[0], pair[1] + 0.01)), "the difference is right"),
    ("10.2", changed("10.2", torch.squeeze), "shape"), ("10.3", changed("10.3", torch.squeeze), "shape"),
    ("10.3", changed("10.3", lambda w: w.clamp(max=0.5)), "expected"),
    ("10.4", lambda c, g: RIGHT["10.4"](c, g.detach()), "no gradient reaches `gates`"),
    ("10.4", lambda c, g: RIGHT["10.4"](c, g.clamp(0, 1)), "out["), ("10.4", changed("10.4", torch.squeeze), "shape"),
    ("11.1", lambda s, e: RIGHT["11.1"](s, e) if len(s) > 1 else 0.0, "No order could be better"),
    ("11.1", lambda s, e: max(RIGHT["11.1"](s, e), 0.5), "you give 0.5000"),
    ("11.3", lambda *inputs: 0.0 if len(inputs[1]) < 2 else RIGHT["11.3"](*inputs), "you give 0.0000"),
    ("12.1", changed("12.1", np.squeeze), "."), ("12.3", lambda p, level: [False] * len(p), "gets False, expected True"),
    ("12.3", lambda p, level: RIGHT["12.3"](p, level) if len(p) > 1 else [p[0] < level / 2], "gets False, expected True"),
    ("1.1", spans_of_one_line, "re.DOTALL"), ("1.3", log_of_a_product, "add logarithms"), ("1.4", words_glued, "may stay"),
    ("3.2", pooled_by_hand(lambda x, mask: x - 1e9 * (1 - mask.float()), lambda largest, mask: largest * mask.any(1)),
     "the max half of review"),
    ("3.2", pooled_by_hand(lambda x, mask: x.masked_fill(~mask, -1e4),
                           lambda largest, mask: largest.masked_fill(largest == -1e4, 0)), "the max half of review"),
    ("4.2", naive_softmax, "exp of a large score overflows"), ("4.3", shared_out_again, "dividing a row by its sum"),
    ("4.3", never_quite_zero, "exactly 0"), ("4.5", exps_and_a_little, "overflows"),
    ("7.2", two_means, "."), ("7.2", statistics_without_gradient, "part of the way back is missing"),
    ("8.3", log_of_softmax, "rounded to 0"), ("8.3", log_and_a_little, "upper limit"),
    ("9.4", nonzero_ids, "."), ("9.4", two_words_exchanged, "every order must be possible"),
    ("12.3", at_its_bar, "exactly at its bar"), ("12.4", widths_up_to(1500), "end of a range"),
    ("12.4", lambda v, d, budget: (max(2, RIGHT["12.4"](v, d, budget)[0]), RIGHT["12.4"](v, d, budget)[1]), "you return 2"),
    ("4.2", largest_of_all, "largest score of each row"), ("4.5", guarded_sum, "weights differ"),
    ("6.1", table_of_512, "(0, 6), expected (2, 6)"), ("8.1", padding_after_softmax, "sum to 0.000"),
    ("11.3", least_one_token, "shares 0.0"), ("12.1", both_best_epochs, "above every test accuracy"),
]


def label(case) -> str:
    return f"{case[0]}-{getattr(case[1], '__name__', 'class')}"


@pytest.mark.parametrize("number, answer, words", WRONG, ids=[f"{i}-{label(case)}" for i, case in enumerate(WRONG)])
@pytest.mark.parametrize("seed", [0, 11])
def test_a_wrong_answer_of_nobodys_list_is_refused_with_true_words(number, answer, words, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "wrong", verdict.text
    assert words.lower() in verdict.text.lower(), verdict.text
    assert verdict.names == (), f"named {verdict.names}: {verdict.text}"


@pytest.mark.parametrize("number, answer", CALLED, ids=[f"{i}-{label(case)}" for i, case in enumerate(CALLED)])
def test_the_function_that_is_asked_for_may_not_be_called_instead(number, answer):
    verdict = judge(find_exercise(number), answers_to(number), answer)
    assert verdict.state == "wrong" and "xpected the steps written out, but your function calls" in verdict.text
    assert any(name in verdict.text for name in find_exercise(number).forbidden)


def test_a_function_of_ones_own_may_have_the_forbidden_name():
    def layer_norm(x, weight, bias, eps):
        return RIGHT["7.2"](x, weight, bias, eps)

    assert judge(find_exercise("7.2"), answers_to("7.2"), lambda *inputs: layer_norm(*inputs)).state == "right"


@pytest.mark.parametrize("number", [number for number in RIGHT if find_exercise(number).forbidden])
def test_what_an_exercise_forbids_exists(number):
    import pkgutil

    for name in find_exercise(number).forbidden:
        assert callable(pkgutil.resolve_name(name)), name


def test_a_buffer_for_each_row_of_a_table_is_as_good_as_one_for_all():
    assert judge(find_exercise("6.3"), answers_to("6.3"), variants_of("6.3")["row by row"]).state == "right"


@pytest.mark.parametrize("number", ["4.2", "5.1", "5.2", "6.4", "7.2"])
def test_a_result_as_lists_or_an_array_counts_even_where_gradients_are_asked_for(number):
    def lists(part):
        return tuple(lists(one) for one in part) if isinstance(part, tuple) else part.detach().tolist()

    assert judge(find_exercise(number), answers_to(number), changed(number, lists)).state == "right"
