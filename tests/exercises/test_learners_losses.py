"""What an answer hands on, what its loss can train, and a very small probability: in every exercise where they matter."""

import pytest
import torch
from judged import answers, assert_right, assert_told
from learners_answers import right
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises
from course_utils.exercises.judge import judge

# ---------------------------------------------------------------- losses, with one of their parts changed


def ln_p(logits):
    return logits.log_softmax(-1)


def of_the_next_token(log=ln_p, before=lambda logits: logits, after=lambda loss: loss):
    def answer(logits, token_ids, pad_id):
        each = -log(before(logits)[:, :-1]).gather(-1, token_ids[:, 1:, None])[..., 0]
        return after(each[token_ids[:, 1:] != pad_id].mean())
    return answer


def of_hidden_words(log=ln_p, before=lambda logits: logits, after=lambda loss: loss):
    def answer(logits, token_ids, chosen):
        each = -log(before(logits)).gather(-1, token_ids[..., None])[..., 0]
        return after(each[chosen].mean()) if chosen.any() else 0
    return answer


def of_labels(log=ln_p, before=lambda logits: logits, after=lambda loss: loss):
    def answer(logits, labels):
        return after(-log(before(logits))[torch.arange(len(labels)), labels].mean()), logits.softmax(-1)
    return answer


def of_a_translation(log=ln_p, before=lambda logits: logits, after=lambda loss: loss, mask=lambda mask: mask,
                     call=lambda model, source_ids, mask, read: model(source_ids, mask, read)):
    def answer(model, source_ids, source_mask, target_ids):
        logits, asked = call(model, source_ids, mask(source_mask), target_ids[:, :-1]), target_ids[:, 1:]
        each = -log(before(logits)).gather(-1, asked[..., None])[..., 0]
        return after(each[asked != 0].mean())
    return answer


def smoothed(log=ln_p, before=lambda logits: logits, after=lambda loss: loss):
    def answer(logits, targets, smoothing, pad_id):
        log_p = log(before(logits))
        each = -(1 - smoothing) * log_p.gather(-1, targets[..., None])[..., 0] - smoothing * log_p.mean(-1)
        return after(each[targets != pad_id].mean())
    return answer


def distilled(labels=ln_p, divergence=lambda q, softened: F.kl_div(ln_p(softened), q, reduction="batchmean"),
              teacher=torch.detach, after=lambda loss: loss, before=lambda logits: logits):
    def answer(student_logits, teacher_logits, labels_given, temperature, alpha):
        student, q = before(student_logits), (teacher(teacher_logits) / temperature).softmax(-1)
        soft, labelled = temperature**2 * divergence(q, student / temperature), labels_given != -100
        hard = F.nll_loss(labels(student[labelled]), labels_given[labelled]) if labelled.any() else 0.0
        return after(alpha * soft + (1 - alpha) * hard)
    return answer


LOSSES = {"13.2": of_the_next_token, "14.3": of_hidden_words, "8.3": of_labels, "16.3": of_a_translation, "17.3": smoothed}
UNSAFE = {
    "the logarithm of a softmax": lambda logits: logits.softmax(-1).log(),
    "a small number added": lambda logits: (logits.softmax(-1) + 1e-9).log(),
    "a smaller number added": lambda logits: (logits.softmax(-1) + 1e-30).log(),
    "a probability clamped": lambda logits: logits.softmax(-1).clamp(min=1e-12).log(),
    "a logarithm clamped": lambda logits: ln_p(logits).clamp(min=-80),
    "exp, then a sum": lambda logits: logits - logits.exp().sum(-1, keepdim=True).log(),
}
CUT_OFF = {"item": {"after": lambda loss: loss.item()}, "detached": {"before": torch.detach},
           "NumPy": {"before": lambda logits: torch.from_numpy(logits.detach().numpy())},
           "data": {"before": lambda logits: logits.data}}


@pytest.mark.parametrize("number", LOSSES)
@pytest.mark.parametrize("how", UNSAFE)
def test_a_loss_meets_a_very_small_probability(number, how):
    verdict = judge(find_exercise(number), answers_to(number), LOSSES[number](UNSAFE[how]), 3)
    assert verdict.state == "wrong" and "log_softmax" in verdict.text, verdict.text


@pytest.mark.parametrize("number", LOSSES)
@pytest.mark.parametrize("how", CUT_OFF)
def test_a_loss_without_a_gradient_is_refused(number, how):
    verdict = judge(find_exercise(number), answers_to(number), LOSSES[number](**CUT_OFF[how]), 3)
    assert verdict.names == ("cut" if number == "8.3" else "cut-off",), verdict.text
    assert "detach()" in verdict.text


@pytest.mark.parametrize("number", LOSSES)
def test_the_loss_itself_counts(number):
    for seed in (0, 3, 7):
        assert_right(number, LOSSES[number](), seed)


@pytest.mark.parametrize("number", ["13.2", "14.3", "15.2", "16.3", "17.3"])
def test_a_loss_says_in_its_text_that_gradients_flow(number):
    assert "radients" in find_exercise(number).question and "flow" in find_exercise(number).question
    assert "finite" in find_exercise(number).question


DIVERGENCES = {
    "kl_div of the logarithm of a softmax": lambda q, z: F.kl_div(z.softmax(-1).log(), q, reduction="batchmean"),
    "a small number in both": lambda q, z: (q * ((q + 1e-9) / (z.softmax(-1) + 1e-9)).log()).sum(-1).mean(),
    "a small number in one": lambda q, z: (q * (q.log() - (z.softmax(-1) + 1e-9).log())).sum(-1).mean(),
    "a quotient": lambda q, z: (q * (q / z.softmax(-1)).log()).sum(-1).mean(),
}


@pytest.mark.parametrize("seed", [0, 3, 7])
@pytest.mark.parametrize("how", [*DIVERGENCES, *UNSAFE])
def test_both_parts_of_the_distillation_loss_meet_a_very_small_probability(how, seed):
    answer = distilled(divergence=DIVERGENCES[how]) if how in DIVERGENCES else distilled(labels=UNSAFE[how])
    verdict = judge(find_exercise("15.2"), answers_to("15.2"), answer, seed)
    assert verdict.state == "wrong" and "Take log_softmax of the logits" in verdict.text, verdict.text


# ---------------------------------------------------------------- what's handed on, and to whom it belongs


def source_and_mask_exchanged(model, source_ids, mask, read):
    return model(mask, source_ids, read)


def read_and_mask_exchanged(model, source_ids, mask, read):
    return model(source_ids, read, mask)


def mask_of_the_target(model, source_ids, mask, read):
    return model(source_ids, read != 0, read)


def share_right(mask):
    """The proportion that's right, as 8.5 asks for it, with the model given mask(batch)."""
    def answer(model, several):
        was_training = model.training
        model.eval()
        with torch.no_grad():
            hits = sum((model(batch.token_ids, mask(batch)).logits.argmax(-1) == batch.labels).sum() for batch in several)
        model.train(was_training)
        return hits / sum(len(batch.labels) for batch in several)
    return answer


@answers("number, answer, name, said", [
    ("16.3", of_a_translation(mask=torch.logical_not), "source-mask-inverted", "the wrong way round"),
    ("16.3", of_a_translation(mask=lambda mask: None), "source-padding-read", "it got no mask, or one of ones"),
    ("16.3", of_a_translation(mask=torch.ones_like), "source-padding-read", "it got no mask, or one of ones"),
    ("16.3", of_a_translation(call=source_and_mask_exchanged), "", "model was given source_ids"),
    ("16.3", of_a_translation(call=read_and_mask_exchanged), "", "model was given words to read"),
    ("16.3", of_a_translation(call=mask_of_the_target), "", "both are (batch, source)"),
    ("8.5", share_right(lambda batch: ~batch.attention_mask), "", "got a mask that isn't the batch's"),
    ("8.5", share_right(lambda batch: torch.ones_like(batch.attention_mask)), "", "got a mask that isn't the batch's"),
    ("15.2", distilled(teacher=lambda logits: logits.detach_()), "", "Your function changes `teacher_logits`"),
    ("15.2", distilled(before=lambda logits: logits.detach_()), "", "Your function changes `student_logits`"),
])
def test_what_an_answer_hands_on_is_looked_at(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer", [
    ("16.3", of_a_translation(mask=torch.Tensor.float)), ("8.5", share_right(lambda batch: batch.attention_mask)),
    ("15.2", distilled()), ("15.2", distilled(teacher=lambda logits: logits.data)),
    ("15.2", distilled(teacher=lambda logits: logits.clone().detach_())),
    ("15.2", distilled(divergence=lambda q, z: (q * (q.log() - ln_p(z))).sum(-1).mean())),
])
def test_another_way_to_hand_it_on_counts(number, answer, seed):
    assert_right(number, answer, seed)


# ---------------------------------------------------------------- numbers that aren't finite


@answers("number, answer, name, said", [
    ("15.5", lambda *inputs: (torch.inf, *right("15.5")(*inputs)[1:]), "",
     "Your threshold is infinite. A search that begins"),
    ("15.5", lambda *inputs: (-torch.inf, *right("15.5")(*inputs)[1:]), "",
     "Your threshold is minus infinity. That lets in"),
    ("15.5", lambda *inputs: (*right("15.5")(*inputs)[:2], torch.nan), "", "Your test_risk is NaN. Where no test example"),
    ("17.3", lambda *inputs: -torch.inf * right("17.3")(*inputs), "", "Your loss is minus infinity. The logarithm of"),
    ("16.2", lambda *inputs: tuple(part * torch.inf for part in right("16.2")(*inputs)), "", "are infinite. exp of a large"),
    ("13.3", lambda p, bound: p.log() * torch.inf, "", "minus infinity. -inf hides a token"),
])
def test_each_thing_that_is_not_finite_has_a_text_of_its_own(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@pytest.mark.parametrize("exercise", list_exercises(), ids=lambda exercise: exercise.id)
def test_the_texts_are_of_kinds_that_exist(exercise):
    for key, text in exercise.not_finite.items():
        assert key.rpartition(" ")[2] in ("NaN", "inf", "-inf") and text[-1] in ".?", key
