"""Large and very low numbers, sums that rounding leaves too small, links as one number, what's left changed behind."""

import math

import pytest
import torch
from judged import answers, assert_right, assert_told
from learners_answers import right
from test_learners_losses import (
    distilled,
    of_a_translation,
    of_hidden_words,
    of_labels,
    of_the_next_token,
    smoothed,
)
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

# ---------------------------------------------------------------- a softmax by hand


def no_maximum(scores):
    return scores.exp()


def maximum_of_all(scores):
    return (scores - scores[scores.isfinite()].max()).exp()


def maximum_of_each_row(scores):
    return (scores - scores.amax(dim=-1, keepdim=True)).exp()


def share(exps):
    return exps / exps.sum(dim=-1, keepdim=True)


def added(exp, fill=-math.inf):
    """16.2 with weights by hand."""
    def answer(query, keys, states, mask, v):
        weights = share(exp(((query[:, None] + keys).tanh() @ v).masked_fill(~mask, fill)))
        return (weights[:, None] @ states)[:, 0], weights
    return answer


def added_times_mask(query, keys, states, mask, v):
    weights = share(((query[:, None] + keys).tanh() @ v).exp() * mask)
    return (weights[:, None] @ states)[:, 0], weights


def crossed(exp, fill=-math.inf):
    """17.1 with weights by hand."""
    def answer(x, memory, W_q, W_k, W_v, source_mask):
        scores = (x @ W_q) @ (memory @ W_k).mT / W_q.shape[1] ** 0.5
        weights = share(exp(scores.masked_fill(~source_mask[:, None], fill)))
        return weights @ (memory @ W_v), weights
    return answer


def crossed_times_mask(x, memory, W_q, W_k, W_v, source_mask):
    weights = share(((x @ W_q) @ (memory @ W_k).mT / W_q.shape[1] ** 0.5).exp() * source_mask[:, None])
    return weights @ (memory @ W_v), weights


def cached(exp):
    """13.4 with weights by hand."""
    def answer(query, key, value, past_keys, past_values, rotate):
        past = past_keys.shape[-2]
        keys, values = torch.cat([past_keys, rotate(key, past)], -2), torch.cat([past_values, value], -2)
        return share(exp(rotate(query, past) @ keys.mT / query.shape[-1] ** 0.5)) @ values, keys, values
    return answer


BY_HAND = {"16.2": added, "17.1": crossed, "13.4": cached}


@pytest.mark.parametrize("seed", [0, 3, 11])
@pytest.mark.parametrize("number", BY_HAND)
def test_weights_by_hand_need_the_maximum_of_each_row(number, seed):
    for exp in (no_maximum, maximum_of_all):
        assert_told(number, BY_HAND[number](exp), seed, "", "each row's own maximum")
    assert_right(number, BY_HAND[number](maximum_of_each_row), seed)


@answers("number, answer, name, said", [
    ("16.2", added_times_mask, "", "each row's own maximum"), ("17.1", crossed_times_mask, "", "each row's own maximum"),
    *((number, BY_HAND[number](maximum_of_each_row, fill), "", "a modest number")
      for number in ("16.2", "17.1") for fill in (-10.0, -100.0, -1000.0)),
])
def test_a_mask_hides_at_any_scores(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", [(number, BY_HAND[number](maximum_of_each_row, fill))
                            for number in ("16.2", "17.1") for fill in (-1e4, -1e9, torch.finfo(torch.float32).min)])
def test_a_very_low_number_hides_too(number, answer, seed):
    assert_right(number, answer, seed)


def ln_by_hand(of):
    """The logarithm of a softmax, as scores minus the logarithm of a sum, with `of(logits)` subtracted before exp."""
    def log(logits):
        lower = logits - of(logits)
        return lower - lower.exp().sum(-1, keepdim=True).log()
    return log


def one_for_all(logits):
    return logits.max()


def one_for_each_row(logits):
    return logits.amax(dim=-1, keepdim=True)


LOSSES = {"13.2": of_the_next_token, "14.3": of_hidden_words, "8.3": of_labels, "16.3": of_a_translation, "17.3": smoothed}


@pytest.mark.parametrize("seed", [0, 3, 11])
@pytest.mark.parametrize("number", LOSSES)
def test_a_loss_by_hand_needs_the_maximum_of_each_row(number, seed):
    verdict = judge(find_exercise(number), answers_to(number), LOSSES[number](ln_by_hand(one_for_all)), seed)
    assert verdict.state == "wrong" and verdict.names == (), verdict.text
    assert "log_softmax" in verdict.text and "each row" in verdict.text, verdict.text
    assert_right(number, LOSSES[number](ln_by_hand(one_for_each_row)), seed)


@pytest.mark.parametrize("seed", [0, 3, 11])
def test_both_parts_of_the_distillation_loss_need_the_maximum_of_each_row(seed):
    def divergence(log):
        return lambda q, z: F.kl_div(log(z), q, reduction="batchmean")
    for answer in (distilled(labels=ln_by_hand(one_for_all)), distilled(divergence=divergence(ln_by_hand(one_for_all)))):
        assert_told("15.2", answer, seed, "", "each row's own maximum")
    log = ln_by_hand(one_for_each_row)
    assert_right("15.2", distilled(labels=log, divergence=divergence(log)), seed)


def fitted(log):
    """15.4 with the loss by hand."""
    def answer(validation_logits, validation_labels, test_logits, test_labels, candidates):
        def loss(logits, labels, t):
            return -log(logits / t)[torch.arange(len(labels)), labels].mean().item()
        best = min(candidates, key=lambda t: loss(validation_logits, validation_labels, t))
        return best, loss(test_logits, test_labels, best)
    return answer


@answers("number, answer, name, said", [
    ("15.4", fitted(lambda z: z.softmax(-1).log()), "", "cross_entropy on the logits, or log_softmax"),
    ("15.4", fitted(lambda z: (z.softmax(-1) + 1e-9).log()), "", "puts an upper limit"),
    ("15.4", fitted(lambda z: z.softmax(-1).clamp(min=1e-12).log()), "", "puts an upper limit"),
    ("15.4", fitted(ln_by_hand(one_for_all)), "", "log"), ("15.4", fitted(lambda z: share(z.exp()).log()), "", "log"),
    ("13.6", lambda loss, n, text: math.log2(math.exp(loss * n)) / len(text.encode()), "", "no float holds"),
    ("13.6", lambda loss, n, text: -math.log2(math.exp(-loss * n)) / len(text.encode()), "", "no float holds"),
    ("13.6", lambda loss, n, text: torch.tensor(loss * n).exp().log2() / len(text.encode()), "", "no float holds"),
    ("17.4", lambda log_p, lengths, alpha: int((log_p / ((5 + lengths) / 6) ** alpha).exp().argmax()), "",
     "e to the power of so low a score"),
    ("17.4", lambda log_p, lengths, alpha: int((log_p.double() / ((5 + lengths) / 6) ** alpha).exp().argmax()), "",
     "e to the power of so low a score"),
])
def test_a_number_too_large_or_too_small_for_a_float_is_noticed(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", [
    ("15.4", fitted(lambda z: z.log_softmax(-1))), ("15.4", fitted(ln_by_hand(one_for_each_row))),
    ("13.6", lambda loss, n, text: loss * n * math.log2(math.e) / len(text.encode())),
    ("13.6", lambda loss, n, text: math.log2(math.exp(loss)) * n / len(text.encode())),
])
def test_a_safe_way_counts(number, answer, seed):
    assert_right(number, answer, seed)


# ---------------------------------------------------------------- rounding and tolerances


def first_to_reach(places):
    """13.3 that keeps the tokens up to the first place where the running sum is p or more."""
    def answer(probabilities, p):
        ordered, ids = probabilities.sort(descending=True, stable=True)
        kept, last = torch.zeros_like(probabilities), places(ordered.cumsum(0) >= p)
        kept[ids[: int(last) + 1]] = ordered[: int(last) + 1]
        return kept / kept.sum()
    return answer


def told_apart(equal):
    """13.5 with another comparison."""
    def answer(logits_of, token_ids, vocab_size):
        before, furthest = logits_of(token_ids)[:, -1], 0
        for back in range(1, token_ids.shape[1] + 1):
            changed = token_ids.clone()
            changed[:, -back] = (changed[:, -back] + 1) % vocab_size
            if not equal(logits_of(changed)[:, -1], before):
                furthest = back
        return furthest
    return answer


def rounded(digits):
    """15.5 with its threshold rounded, before anybody is answered."""
    def answer(validation_confidence, validation_right, test_confidence, test_right, risk):
        exact = right("15.5")(validation_confidence, validation_right, test_confidence, test_right, risk)[0]
        threshold = round(float(exact), digits)
        answered = test_confidence >= threshold
        wrong = (~test_right[answered]).double().mean() if answered.any() else 0.0
        return threshold, answered.double().mean(), wrong
    return answer


@answers("number, answer, name, said", [
    ("13.3", first_to_reach(lambda reached: reached.nonzero()[0]), "", "the running sum never reaches p"),
    ("13.3", first_to_reach(lambda reached: reached.tolist().index(True)), "", "the running sum never reaches p"),
    ("13.3", first_to_reach(lambda reached: reached.int().argmax()), "", "the running sum never reaches p"),
    ("13.5", told_apart(lambda a, b: torch.allclose(a, b, atol=0.01)), "", "however small"),
    ("13.5", told_apart(lambda a, b: (a - b).abs().max() < 1e-3), "", "however small"),
    ("15.5", rounded(2), "", "a rounded one"), ("15.5", rounded(3), "", "a rounded one"),
])
def test_rounding_and_tolerances_are_noticed(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", [
    ("13.3", first_to_reach(lambda reached: (~reached).sum())), ("13.5", told_apart(torch.equal)),
    ("13.5", told_apart(torch.allclose)), ("15.5", rounded(7)),
])
def test_an_exact_way_counts(number, answer, seed):
    assert_right(number, answer, seed)


# ---------------------------------------------------------------- links as one thing


def linked(code):
    """16.5 with links as something else than pairs: `code(source, target, sources, targets)`."""
    def answer(weights, gold):
        sizes = weights.shape[1], len(weights) - 1
        found = {code(s, t, *sizes) for t, s in enumerate(weights[:-1].argmax(dim=1).tolist())}
        known = {code(s, t, *sizes) for s, t in gold.tolist()}
        return 1 - 2 * len(found & known) / (len(found) + len(known))
    return answer


@answers("number, answer, name, said", [
    ("16.5", linked(code), "", "Two different links count as the same") for code in (
        lambda s, t, sources, targets: f"{s}{t}", lambda s, t, sources, targets: str(t) + str(s),
        lambda s, t, sources, targets: s * sources + t, lambda s, t, sources, targets: 10 * s + t,
        lambda s, t, sources, targets: 10 * t + s, lambda s, t, sources, targets: s + t)
])
def test_links_that_look_alike_are_two(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", [("16.5", linked(code)) for code in (
    lambda s, t, sources, targets: f"{s}-{t}", lambda s, t, sources, targets: s * targets + t,
    lambda s, t, sources, targets: t * sources + s, lambda s, t, sources, targets: (s, t))])
def test_links_that_stay_apart_count(number, answer, seed):
    assert_right(number, answer, seed)


# ---------------------------------------------------------------- what's left changed behind


def in_place(number, place):
    """The right answer, which also changes an input through .data, without changing any result."""
    def answer(*inputs):
        result = right(number)(*inputs)
        inputs[place].data -= inputs[place].data.mean() + 1
        return result
    return answer


@answers("number, answer, name, said", [
    (number, in_place(number, place), "", "Your function changes") for number, place in (
        ("13.2", 0), ("14.3", 0), ("8.3", 0), ("17.3", 0), ("15.2", 0), ("15.2", 1), ("8.1", 0), ("8.1", 1), ("4.5", 0),
        ("15.4", 0), ("16.2", 0), ("17.1", 0), ("13.4", 0), ("13.3", 0))
])
def test_an_input_that_is_changed_past_autograd_is_noticed(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


def partly_detached(probabilities, logarithms):
    """15.2 with KL by hand, its two parts of the teacher each detached or not."""
    def answer(student_logits, teacher_logits, labels, temperature, alpha):
        teacher, log_student = teacher_logits / temperature, (student_logits / temperature).log_softmax(-1)
        soft = (probabilities(teacher.softmax(-1)) * (logarithms(teacher.log_softmax(-1)) - log_student)).sum(-1).mean()
        hard = F.cross_entropy(student_logits, labels) if (labels != -100).any() else 0.0
        return alpha * temperature**2 * soft + (1 - alpha) * hard
    return answer


def as_it_is(part):
    return part


@answers("number, answer, name, said", [
    ("15.2", partly_detached(torch.detach, as_it_is), "", "goes on to the teacher's logits"),
    ("15.2", partly_detached(as_it_is, torch.detach), "teacher-moves", "reaches the teacher's logits"),
    ("15.2", partly_detached(as_it_is, as_it_is), "teacher-moves", "reaches the teacher's logits"),
])
def test_no_part_of_the_teacher_is_reached(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", [("15.2", partly_detached(torch.detach, torch.detach))])
def test_both_parts_of_the_teacher_detached_count(number, answer, seed):
    assert_right(number, answer, seed)


def left_in_evaluation(model, source_ids, source_mask, target_ids):
    model.eval()
    return right("16.3")(model, source_ids, source_mask, target_ids)


def put_back_into_training(model, source_ids, source_mask, target_ids):
    loss = left_in_evaluation(model, source_ids, source_mask, target_ids)
    model.train()
    return loss


@pytest.mark.parametrize("seed", [0, 3, 11])
def test_a_model_stays_in_training(seed):
    assert_told("16.3", left_in_evaluation, seed, "", "training mode")
    assert_right("16.3", put_back_into_training, seed)
