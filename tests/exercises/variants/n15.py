"""Other right answers to the exercises of notebook 15, which a check must accept."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def _loss_by_loops(student_logits, teacher_logits, labels, temperature, alpha):
    soft, hard, labelled = 0.0, 0.0, 0
    for student, teacher, label in zip(student_logits, teacher_logits.tolist(), labels.tolist()):
        total = sum(math.exp(z / temperature) for z in teacher)
        log_p = (student / temperature).log_softmax(0)
        for i, z in enumerate(teacher):
            q = math.exp(z / temperature) / total
            soft = soft + q * (math.log(q) - log_p[i])
        if label >= 0:
            hard, labelled = hard - student.log_softmax(0)[label], labelled + 1
    return alpha * temperature**2 * soft / len(labels) + (1 - alpha) * hard / max(1, labelled)


def _loss_by_entropies(student_logits, teacher_logits, labels, temperature, alpha):
    """The cross-entropy with probabilities, less the teacher's entropy."""
    with torch.no_grad():
        q = F.softmax(teacher_logits / temperature, dim=1)
        entropy = torch.distributions.Categorical(probs=q).entropy().mean()
    soft = F.cross_entropy(student_logits / temperature, q) - entropy
    hard = F.cross_entropy(student_logits, labels, ignore_index=-100).nan_to_num(0.0)
    return alpha * soft * temperature * temperature + (1 - alpha) * hard


def _loss_by_layers(student_logits, teacher_logits, labels, temperature, alpha):
    target = F.log_softmax(teacher_logits.detach() / temperature, dim=-1)
    soft = nn.KLDivLoss(reduction="sum", log_target=True)(F.log_softmax(student_logits / temperature, dim=-1), target)
    known = labels.ge(0)
    each = nn.CrossEntropyLoss(reduction="none")(student_logits, labels.clamp(min=0)) * known
    return alpha * temperature**2 * soft / len(labels) + (1 - alpha) * each.sum() / known.sum().clamp(min=1)


def _loss_on_copies(student_logits, teacher_logits, labels, temperature, alpha):
    """What is changed in place is a copy."""
    student, teacher = student_logits.clone(), teacher_logits.detach().clone()
    student /= temperature
    teacher /= temperature
    soft = F.kl_div(student.log_softmax(-1), teacher.softmax(-1), reduction="batchmean")
    hard = F.cross_entropy(student_logits, labels, reduction="sum") / (labels != -100).sum().clamp(min=1)
    return alpha * temperature**2 * soft + (1 - alpha) * hard


def _error_by_lists(confidence, right, bins):
    inside = [[] for _ in range(bins)]
    for c, hit in zip(confidence.tolist(), right.tolist()):
        inside[math.ceil(c * bins) - 1].append((c, hit))
    return sum(abs(sum(c - hit for c, hit in one)) for one in inside) / len(confidence)


def _error_in_numpy(confidence, right, bins):
    confidence, right = confidence.double().numpy(), right.numpy()
    place = np.clip(np.digitize(confidence, np.linspace(0, 1, bins + 1), right=True) - 1, 0, bins - 1)
    gaps = [np.abs(confidence[place == k].mean() - right[place == k].mean()) * (place == k).mean() for k in np.unique(place)]
    return float(np.sum(gaps))


def _error_by_sums(confidence, right, bins):
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gaps = torch.zeros(bins).index_add_(0, place, confidence - right.float())
    return gaps.abs().sum() / len(place)


def _fitted_by_hand(validation_logits, validation_labels, test_logits, test_labels, candidates):
    def loss(logits, labels, t):
        rows = (logits / t).log_softmax(-1)
        return -rows[torch.arange(len(labels)), labels].mean()
    best, lowest = None, math.inf
    for t in candidates:
        if loss(validation_logits, validation_labels, t) < lowest:
            best, lowest = t, loss(validation_logits, validation_labels, t)
    return best, loss(test_logits, test_labels, best).item()


def _fitted_at_once(validation_logits, validation_labels, test_logits, test_labels, candidates):
    grid = torch.tensor(candidates)
    warm = validation_logits[None] / grid[:, None, None]                   # (candidate, examples, classes)
    losses = F.cross_entropy(warm.transpose(1, 2), validation_labels.expand(len(grid), -1), reduction="none").mean(dim=1)
    best = grid[losses.argmin()]
    return [best, F.nll_loss(F.log_softmax(test_logits / best, -1), test_labels)]


def _fitted_by_key(validation_logits, validation_labels, test_logits, test_labels, candidates):
    best = min(candidates, key=lambda t: float(F.cross_entropy(validation_logits.double() / t, validation_labels)))
    return torch.tensor([best, F.cross_entropy(test_logits.double() / best, test_labels)])


def _silent_by_sorting(validation_confidence, validation_right, test_confidence, test_right, risk):
    order = validation_confidence.argsort(descending=True)
    wrong = (~validation_right[order]).double().cumsum(0) / torch.arange(1, len(order) + 1)
    ordered = validation_confidence[order]
    last = torch.cat([ordered[1:] < ordered[:-1], torch.tensor([True])])   # of those that share a confidence
    threshold = ordered[last & (wrong <= risk)].min()
    answered = test_confidence >= threshold
    return threshold, answered.float().mean(), (answered & ~test_right).sum() / answered.sum().clamp(min=1)


def _silent_by_loops(validation_confidence, validation_right, test_confidence, test_right, risk):
    best = None
    for t in sorted(validation_confidence.tolist()):
        answered = [hit for c, hit in zip(validation_confidence.tolist(), validation_right.tolist()) if c >= t]
        if answered.count(False) <= risk * len(answered):
            best = t
            break
    answered = [hit for c, hit in zip(test_confidence.tolist(), test_right.tolist()) if c >= best]
    return best, len(answered) / len(test_right), answered.count(False) / max(1, len(answered))


def _silent_in_numpy(validation_confidence, validation_right, test_confidence, test_right, risk):
    confidence, right = validation_confidence.numpy(), validation_right.numpy()
    threshold = min(t for t in confidence if 1 - right[confidence >= t].mean() <= risk + 1e-12)
    kept = test_confidence.numpy() >= threshold
    found = 1 - test_right.numpy()[kept].mean() if kept.any() else 0
    return {"threshold": threshold, "coverage": kept.mean(), "test_risk": found}


VARIANTS = {
    "15.1": {"exact": lambda: (torch.tensor([6.0, 2.0, 0.0]) / 2).softmax(dim=0), "two decimals": lambda: [0.84, 0.11, 0.04],
             "a tuple": lambda: (0.8438, 0.1142, 0.042), "a text": lambda: "0.844, 0.114, 0.042"},
    "15.2": {"loops": _loss_by_loops, "entropies": _loss_by_entropies, "layers": _loss_by_layers,
             "on copies": _loss_on_copies},
    "15.3": {"lists": _error_by_lists, "numpy": _error_in_numpy, "sums": _error_by_sums},
    "15.4": {"by hand": _fitted_by_hand, "at once": _fitted_at_once, "by key": _fitted_by_key},
    "15.5": {"sorting": _silent_by_sorting, "loops": _silent_by_loops, "numpy": _silent_in_numpy},
}
