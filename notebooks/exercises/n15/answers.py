"""The course's answers to the exercises of notebook 15, and what each known mistake would write."""

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 15.1

LOGITS = torch.tensor([6.0, 2.0, 0.0])


def softened_by_hand():
    # divided by 2: 3, 1, 0; their exponentials 20.09, 2.72, 1 sum to 23.81
    return [0.844, 0.114, 0.042]


HAND = Answers(
    softened_by_hand,
    mutants={
        "not-softened": lambda: LOGITS.softmax(dim=0),
        "multiplied": lambda: (LOGITS * 2).softmax(dim=0),
        "divided-afterwards": lambda: LOGITS.softmax(dim=0) / 2,
        "softened-twice": lambda: (LOGITS.softmax(dim=0) / 2).softmax(dim=0),
        "exponentials": lambda: (LOGITS / 2).exp(),
        "divided-only": lambda: LOGITS / 2,
        "in-per-cent": lambda: 100 * (LOGITS / 2).softmax(dim=0),
        "no-exponential": lambda: LOGITS / LOGITS.sum(),
    },
)

# ---------------------------------------------------------------- 15.2


def distillation_loss(student_logits, teacher_logits, labels, temperature, alpha):
    teacher = (teacher_logits.detach() / temperature).softmax(dim=-1)      # (batch, classes)
    log_student = (student_logits / temperature).log_softmax(dim=-1)
    soft = temperature**2 * F.kl_div(log_student, teacher, reduction="batchmean")
    labelled = labels != -100
    hard = F.cross_entropy(student_logits[labelled], labels[labelled]) if labelled.any() else 0.0
    return alpha * soft + (1 - alpha) * hard


def _kl(log_student, teacher):
    return F.kl_div(log_student, teacher, reduction="batchmean")


def _hard(student, labels):
    return F.cross_entropy(student[labels != -100], labels[labels != -100]) if (labels != -100).any() else student.sum() * 0


def _rows_where(kept):
    """The mean of KL over the rows that `kept(labels)` keeps; 0 without any."""
    return lambda student, teacher, labels: (
        _kl(student[kept(labels)], teacher[kept(labels)]) if kept(labels).any() else student.sum() * 0)


def _loss(teacher_at=lambda t: t, student_at=lambda t: t, hard_at=lambda t: 1, factor=lambda t: t**2,
          hard_factor=lambda t: 1, divergence=lambda student, teacher, labels: _kl(student, teacher),
          weight=lambda alpha: alpha, hard=_hard, teacher=lambda logits: logits.detach(), student=lambda logits: logits,
          dim=-1):
    """The distillation loss with one of its parts changed."""
    def answer(student_logits, teacher_logits, labels, temperature, alpha):
        student_logits, teacher_logits = student(student_logits), teacher(teacher_logits)
        soft = divergence((student_logits / student_at(temperature)).log_softmax(dim=dim),
                          (teacher_logits / teacher_at(temperature)).softmax(dim=dim), labels)
        return (weight(alpha) * factor(temperature) * soft
                + (1 - weight(alpha)) * hard_factor(temperature) * hard(student_logits / hard_at(temperature), labels))
    return answer


def _labels_in_targets(student_logits, teacher_logits, labels, temperature, alpha):
    """One KL against the teacher's rows with the labels mixed in; a row without a label keeps the teacher's."""
    soft = (teacher_logits.detach() / temperature).softmax(dim=-1)
    marked = alpha * soft + (1 - alpha) * F.one_hot(labels.clamp(min=0), soft.shape[-1])
    targets = torch.where((labels != -100)[:, None], marked, soft)
    return temperature**2 * _kl((student_logits / temperature).log_softmax(dim=-1), targets)


LOSS = Answers(
    distillation_loss,
    mutants={
        "student-not-softened": _loss(student_at=lambda t: 1),
        "teacher-not-softened": _loss(teacher_at=lambda t: 1),
        "no-t-squared": _loss(factor=lambda t: 1),
        "t-once": _loss(factor=lambda t: t),
        "divided-by-t-squared": _loss(factor=lambda t: 1 / t**2),
        "t-squared-on-both": _loss(hard_factor=lambda t: t**2),
        "labels-softened": _loss(hard_at=lambda t: t),
        "labels-in-targets": _labels_in_targets,
        "other-way-round": _loss(divergence=lambda student, teacher, labels: _kl(teacher.log(), student.exp())),
        "no-logarithm": _loss(divergence=lambda student, teacher, labels: _kl(student.exp(), teacher)),
        "two-logarithms": _loss(divergence=lambda student, teacher, labels: _kl(student, teacher.log())),
        "over-the-batch": _loss(dim=0),
        "over-classes-too": _loss(
            divergence=lambda student, teacher, labels: F.kl_div(student, teacher, reduction="none").mean()),
        "summed": _loss(divergence=lambda student, teacher, labels: F.kl_div(student, teacher, reduction="sum")),
        "alpha-exchanged": _loss(weight=lambda alpha: 1 - alpha),
        "teacher-moves": _loss(teacher=lambda logits: logits),
        "cut-off": _loss(student=lambda logits: logits.detach()),
        "class-zero-for-none": _loss(hard=lambda student, labels: F.cross_entropy(student, labels.clamp(min=0))),
        "divided-by-all": _loss(
            hard=lambda student, labels: F.cross_entropy(student, labels, reduction="sum") / len(labels)),
        "two-softmaxes": _loss(hard=lambda student, labels: _hard(student.softmax(dim=-1), labels)),
        "class-zero-left-out": _loss(hard=lambda student, labels: _hard(student, labels.masked_fill(labels == 0, -100))),
        "labelled-rows-only": _loss(divergence=_rows_where(lambda labels: labels != -100)),
        "unlabelled-rows-only": _loss(divergence=_rows_where(lambda labels: labels == -100)),
        "teachers-first-choice": _loss(divergence=lambda student, teacher, labels: F.nll_loss(student, teacher.argmax(-1))),
        "entropy-not-taken-off": _loss(divergence=lambda student, teacher, labels: -(teacher * student).sum(-1).mean()),
    },
)

# ---------------------------------------------------------------- 15.3


def calibration_error(confidence, right, bins):
    error = 0.0
    for k in range(bins):
        inside = (confidence > k / bins) & (confidence <= (k + 1) / bins)  # (examples,)
        if inside.any():
            gap = (confidence[inside].mean() - right[inside].float().mean()).abs()
            error = error + inside.float().mean() * gap                    # weighted by the proportion of the examples
    return error


def _parts(confidence, right, bins):
    """Of each bin: how many examples, their mean confidence, the proportion that's right, and the bin's middle."""
    place = (confidence * bins).ceil().long().sub(1).clamp(0, bins - 1)
    counts = torch.zeros(bins).index_add_(0, place, torch.ones(len(place)))
    sums = [torch.zeros(bins).index_add_(0, place, values.float()) for values in (confidence, right)]
    return counts, *(total / counts for total in sums), (torch.arange(bins) + 0.5) / bins


def _error(summarise):
    """`summarise(counts, confidence, accuracy, middle)` of the bins that aren't empty."""
    def answer(confidence, right, bins):
        parts = _parts(confidence, right, bins)
        kept = parts[0] > 0
        return summarise(*(part[kept] for part in parts))
    return answer


def _with_empty_bins(confidence, right, bins):
    counts, confidence, accuracy, _ = _parts(confidence, right, bins)
    return (counts / counts.sum() * (confidence - accuracy).abs()).sum()   # 0 / 0 where a bin is empty


def _equally_full(cut):
    """Bins that `cut(sorted values, bins)` makes, torch.chunk or torch.tensor_split; some may be empty."""
    def answer(confidence, right, bins):
        order = confidence.argsort()
        return sum(part.sum().abs() for part in cut((confidence - right.float())[order], bins)) / len(order)
    return answer


def _put_into(place):
    """Bins by the number that `place(confidence, bins)` gives each prediction."""
    def answer(confidence, right, bins):
        gaps = torch.zeros(bins + 2).index_add_(0, place(confidence, bins), confidence - right.float())
        return gaps.abs().sum() / len(right)
    return answer


def _between_quantiles(confidence, bins):
    return torch.bucketize(confidence, confidence.quantile(torch.linspace(0, 1, bins + 1))[1:-1])


def _in_masks(inside, first=0.0):
    """Bins from `first` to 1, each of those that `inside(confidence, low, high)` puts into it: some may be in none."""
    def answer(confidence, right, bins):
        edges = torch.linspace(first, 1, bins + 1)
        masks = (inside(confidence, low, high) for low, high in zip(edges[:-1], edges[1:]))
        return sum(((confidence - right.float()) * mask).sum().abs() for mask in masks) / len(confidence)
    return answer


def _in_range(low, high):
    """Bins between two numbers that `low(confidence)` and `high(confidence)` give."""
    def answer(confidence, right, bins):
        start, end = low(confidence), high(confidence)
        place = ((confidence - start) / max(end - start, 1e-9) * bins).long().clamp(0, bins - 1)
        return torch.zeros(bins).index_add_(0, place, confidence - right.float()).abs().sum() / len(place)
    return answer


ECE = Answers(
    calibration_error,
    mutants={
        "bins-not-weighted": _error(lambda n, c, a, m: (c - a).abs().mean()),
        "gaps-added-up": _error(lambda n, c, a, m: (c - a).abs().sum()),
        "empty-bins-counted": lambda confidence, right, bins: _error(
            lambda n, c, a, m: (c - a).abs().sum() / bins)(confidence, right, bins),
        "empty-bins": _with_empty_bins,
        "signs-kept": _error(lambda n, c, a, m: (n / n.sum() * (c - a)).sum()),
        "signs-kept-accuracy-first": _error(lambda n, c, a, m: (n / n.sum() * (a - c)).sum()),
        "one-bin": _error(lambda n, c, a, m: (n / n.sum() * (a - c)).sum().abs()),
        "squared": _error(lambda n, c, a, m: (n / n.sum() * (c - a) ** 2).sum()),
        "worst-bin": _error(lambda n, c, a, m: (c - a).abs().max()),
        "middle-of-the-bin": _error(lambda n, c, a, m: (n / n.sum() * (m - a).abs()).sum()),
        "each-for-itself": lambda confidence, right, bins: (confidence - right.float()).abs().mean(),
        "not-divided": _error(lambda n, c, a, m: (n * (c - a).abs()).sum()),
        "equally-full-bins": _equally_full(torch.chunk),
        "equally-full-by-tensor-split": _equally_full(torch.tensor_split),
        "between-quantiles": _put_into(_between_quantiles),
        "one-bin-too-few": lambda confidence, right, bins: calibration_error(confidence, right, bins - 1),
        "from-the-lowest": _in_range(min, max),             # what np.histogram does if it isn't told otherwise
        "from-a-half": _in_range(lambda confidence: 0.5, lambda confidence: 1.0),
        "low-ones-lost": _in_masks(lambda c, low, high: (c > low) & (c <= high), first=0.5),
        "closed-below": _in_masks(lambda c, low, high: (c >= low) & ((c < high) | (high == 1))),
        "sure-ones-lost": _in_masks(lambda c, low, high: (c >= low) & (c < high)),
        "sure-ones-alone": _put_into(lambda c, bins: torch.bucketize(c, torch.linspace(0, 1, bins + 1), right=True)),
        "edges-counted-twice": _in_masks(lambda c, low, high: (c >= low) & (c <= high)),
        "edges-lost": _in_masks(lambda c, low, high: (c > low) & (c < high)),
        "always-ten-bins": lambda confidence, right, bins: calibration_error(confidence, right, 10),
        "in-points": lambda confidence, right, bins: 100 * calibration_error(confidence, right, bins),
    },
)

# ---------------------------------------------------------------- 15.4


def temperature_and_loss(validation_logits, validation_labels, test_logits, test_labels, candidates):
    losses = [F.cross_entropy(validation_logits / t, validation_labels).item() for t in candidates]
    best = candidates[losses.index(min(losses))]
    return best, F.cross_entropy(test_logits / best, test_labels)


def _calibration_error(logits, labels):
    """In ten bins."""
    confidence, predicted = logits.softmax(-1).max(-1)
    return calibration_error(confidence, predicted == labels, 10)


def _fitted(choose=None, apply=lambda logits, t: logits / t, fit_on=lambda validation, test: validation,
            score=lambda validation, test: test, used=lambda best, candidates: best,
            told=lambda best, candidates: best, order=lambda temperature, loss: (temperature, loss)):
    """Fitting with one of its parts changed; `choose(logits, labels)` is what's lowest at the best temperature."""
    choose = choose or F.cross_entropy

    def answer(validation_logits, validation_labels, test_logits, test_labels, candidates):
        validation, test = (validation_logits, validation_labels), (test_logits, test_labels)
        logits, labels = fit_on(validation, test)
        best = min(candidates, key=lambda t: float(choose(apply(logits, t), labels)))
        logits, labels = score(validation, test)
        return order(told(best, candidates), F.cross_entropy(apply(logits, used(best, candidates)), labels))
    return answer


def _together(validation, test):
    return torch.cat([validation[0], test[0]]), torch.cat([validation[1], test[1]])


def _softened_again(validation_logits, validation_labels, test_logits, test_labels, candidates):
    losses = []
    for t in candidates:
        validation_logits = validation_logits / t       # which have been divided by the candidates before
        losses.append(F.cross_entropy(validation_logits, validation_labels).item())
    best = candidates[losses.index(min(losses))]
    return best, F.cross_entropy(test_logits / best, test_labels)


FIT = Answers(
    temperature_and_loss,
    mutants={
        "fitted-on-test": _fitted(fit_on=lambda validation, test: test),
        "fitted-on-both": _fitted(fit_on=_together),
        "by-accuracy": _fitted(lambda logits, labels: -(logits.argmax(-1) == labels).float().mean()),
        "highest-loss": _fitted(lambda logits, labels: -F.cross_entropy(logits, labels)),
        "multiplied": _fitted(apply=lambda logits, t: logits * t),
        "divided-afterwards": _fitted(apply=lambda logits, t: logits.softmax(-1) / t),
        "probabilities-as-logits": _fitted(apply=lambda logits, t: (logits / t).softmax(-1)),
        "not-used": _fitted(used=lambda best, candidates: 1.0),
        "softened-again": _softened_again,
        "test-loss-of-the-last": _fitted(used=lambda best, candidates: candidates[-1]),
        "loss-of-validation": _fitted(score=lambda validation, test: validation),
        "place-for-temperature": _fitted(told=lambda best, candidates: candidates.index(best)),
        "loss-first": _fitted(order=lambda temperature, loss: (loss, temperature)),
        "by-calibration-error": _fitted(_calibration_error),
        "surest": _fitted(lambda logits, labels: -logits.softmax(-1).amax(-1).mean()),
    },
)

# ---------------------------------------------------------------- 15.5


def answer_or_not(validation_confidence, validation_right, test_confidence, test_right, risk):
    threshold = min(t for t in validation_confidence.tolist()
                    if (~validation_right[validation_confidence >= t]).double().mean() <= risk)
    answered = test_confidence >= threshold                                # (examples,)
    wrong = (~test_right[answered]).double().mean() if answered.any() else 0.0
    return threshold, answered.double().mean(), wrong


def _with_threshold(allowed=lambda errors, risk: errors <= risk, pick=min, choose_on=lambda validation, test: validation,
                    errors=lambda right, kept: (~right[kept]).double().mean(), answers=lambda confidence, t: confidence >= t,
                    score_on=lambda validation, test: test,
                    told=lambda t, coverage, wrong: (t, coverage, wrong)):
    """The choice with one of its parts changed."""
    def answer(validation_confidence, validation_right, test_confidence, test_right, risk):
        validation, test = (validation_confidence, validation_right), (test_confidence, test_right)
        confidence, right = choose_on(validation, test)
        fitting = [t for t in confidence.tolist() if allowed(errors(right, confidence >= t), risk)]
        threshold = pick(fitting or [confidence.max().item()])
        confidence, right = score_on(validation, test)
        answered = answers(confidence, threshold)
        wrong = errors(right, answered) if answered.any() else torch.zeros(())
        return told(threshold, answered.double().mean(), wrong)
    return answer


def _first_violation(validation_confidence, validation_right, test_confidence, test_right, risk):
    order = validation_confidence.argsort(descending=True)
    wrong = (~validation_right[order]).double().cumsum(0) / torch.arange(1, len(order) + 1)
    stop = int((wrong > risk).nonzero()[0]) if (wrong > risk).any() else len(order)
    threshold = validation_confidence[order][max(stop, 1) - 1].item()
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (~test_right[answered]).double().mean() if answered.any() else 0.0


def _ties_split(validation_confidence, validation_right, test_confidence, test_right, risk):
    order = validation_confidence.argsort(descending=True)
    wrong = (~validation_right[order]).double().cumsum(0) / torch.arange(1, len(order) + 1)
    threshold = validation_confidence[order][(wrong <= risk).nonzero().max()].item()   # perhaps amid equal ones
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (~test_right[answered]).double().mean() if answered.any() else 0.0


def _strictly_above(validation_confidence, validation_right, test_confidence, test_right, risk):
    def errors(confidence, right, t):
        return (~right[confidence > t]).double().mean() if (confidence > t).any() else torch.zeros(())
    threshold = min(t for t in validation_confidence.tolist() if errors(validation_confidence, validation_right, t) <= risk)
    return threshold, (test_confidence > threshold).double().mean(), errors(test_confidence, test_right, threshold)


def _strictly_above_in_the_choice(validation_confidence, validation_right, test_confidence, test_right, risk):
    threshold = _strictly_above(validation_confidence, validation_right, test_confidence, test_right, risk)[0]
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (~test_right[answered]).double().mean() if answered.any() else 0.0


ABSTAIN = Answers(
    answer_or_not,
    mutants={
        "threshold-from-test": _with_threshold(choose_on=lambda validation, test: test),
        "first-violation": _first_violation,
        "ties-split": _ties_split,
        "divided-by-all": _with_threshold(errors=lambda right, kept: (~right & kept).double().mean()),
        "highest-threshold": _with_threshold(pick=max),
        "least-sure-answered": _with_threshold(answers=lambda confidence, t: confidence <= t),
        "strictly-above-on-both": _strictly_above,
        "strictly-above-in-the-choice": _strictly_above_in_the_choice,
        "coverage-last": _with_threshold(told=lambda t, coverage, wrong: (t, wrong, coverage)),
        "coverage-first": _with_threshold(told=lambda t, coverage, wrong: (coverage, t, wrong)),
        "strictly-above": _with_threshold(answers=lambda confidence, t: confidence > t),
        "less-than-the-risk": _with_threshold(allowed=lambda errors, risk: errors < risk),
        "one-minus-the-risk": _with_threshold(told=lambda t, coverage, wrong: (t, coverage, 1 - wrong)),
        "not-answered": _with_threshold(told=lambda t, coverage, wrong: (t, 1 - coverage, wrong)),
        "validation-scores": _with_threshold(score_on=lambda validation, test: validation),
        "risk-as-threshold": lambda vc, vr, tc, tr, risk: (
            1 - risk, (tc >= 1 - risk).double().mean(),
            (~tr[tc >= 1 - risk]).double().mean() if (tc >= 1 - risk).any() else 0.0),
    },
)

ANSWERS = (HAND, LOSS, ECE, FIT, ABSTAIN)
