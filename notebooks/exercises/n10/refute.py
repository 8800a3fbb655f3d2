"""Exercise 10.5 of notebook 10: a role is tested against a control, with its known mistakes."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import listed


def _lead_probes(generator: torch.Generator) -> list[tuple]:
    """Five seeds of four heads over 12 reviews, 4 of them without a target; 3 seeds of 2 heads over 9; one head alone;
    the head with the larger mean has the smaller lower end."""
    def probe(seeds, heads, count, without, z, lead):
        spread, level = torch.rand(2, seeds, heads, 1, generator=generator)
        scores = (0.1 + 0.5 * spread) * torch.rand(seeds, heads, count, generator=generator) + lead * level
        control = 0.1 + 0.2 * torch.rand(count, generator=generator)
        for tensor in (scores, control):
            tensor[..., torch.arange(0, 2 * without, 2)] = torch.nan
        return scores, control, z

    control = torch.tensor([0.1, 0.2, 0.1, 0.15, 0.1, 0.2])
    unsteady, steady = torch.tensor([0.9, 0.0, 0.8, -0.1, 0.9, 0.1]), torch.tensor([0.3, 0.32, 0.28, 0.3, 0.31, 0.29])
    leads = torch.stack([torch.stack([unsteady, steady]), torch.stack([steady - 0.1, unsteady])])      # (seed, head, review)
    return [probe(5, 4, 12, 4, 2.5, 0.3), probe(3, 2, 9, 2, 3.6, 0.1), probe(1, 1, 6, 0, 1.0, 0.6),
            (leads + control, control, 2.0)]


def _ends(case: Case) -> str:
    return f"you give {listed(case.answer)}, expected {listed(case.expected)}."


def _sizes(case: Case) -> str:
    seeds = case.inputs[0].shape[0]
    return f"with {seeds} seeds your shape is {tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}."


def _counting(case: Case) -> str:
    scores = case.inputs[0]
    return f"{_ends(case)[:-1]}; {int((~scores[0, 0].isnan()).sum())} of {scores.shape[-1]} reviews have a target."


LOWER_END = Exercise(
    probes=_lead_probes, tolerance=1e-4,
    signature="best_lower_end(scores (seed, head, review), control (review,), z) -> (seed,)",
    not_finite={
        "NaN": "Reviews without a target are NaN, and one NaN makes a mean NaN: take the columns that are numbers. The "
        "spread of a single number is NaN, too.",
        "-inf": "You divide by 0 reviews, or take the largest of nothing. Every head has some that count: "
        "~control.isnan()."},
    mistakes=(
        Mistake("nan-as-zero", _counting, "Reviews without a target were counted as zeros. They say nothing about the "
                "role: leave them out of the mean, the spread and the count."),
        Mistake("all-counted", _counting, "You took the root of the number of all reviews. Only those with a target "
                "count, so the standard error is larger."),
        Mistake("no-control", _ends, "The scores were tested against zero, and any head has weights above zero. Subtract "
                "what a blind head gets on the same review."),
        Mistake("control-averaged", _ends, "The control's mean was subtracted, not its score on each review. Where a "
                "review is easy for the blind head, it is easy for all: subtract review by review."),
        Mistake("ratio", _ends, "The scores were divided by the control. The lead is a difference."),
        Mistake("only-mean", _ends, "This is the mean lead itself. A few lucky reviews can produce one: subtract z standard "
                "errors before you believe it."),
        Mistake("spread", _ends, "You subtracted the spread of the reviews, not the standard error of their mean. Divide "
                "the standard deviation by the root of the number of reviews."),
        Mistake("by-number", _ends, "The standard deviation was divided by the number of reviews. The error of a mean "
                "shrinks with the root of that number."),
        Mistake("variance", _ends, "The variance was used in place of its root, the standard deviation."),
        Mistake("upper", _ends, "This is the upper end. That a head could be as good as that doesn't show that it has "
                "the role: subtract z standard errors."),
        Mistake("other-factor", _ends, "1.96 was used in place of `z`. With many tests that is too small a factor, and "
                "luck passes for a role."),
        Mistake("with-n", _ends, "The standard deviation was computed with n in the denominator. Use n − 1, "
                "as .std() does.", convention=True),
        Mistake("worst-head", _ends, "This is the smallest lower end. A role needs one head that has it: take the "
                "largest."),
        Mistake("heads-averaged", _ends, "The heads were averaged first. One head with the role would vanish among the "
                "others: test each, then take the best."),
        Mistake("best-mean-first", _ends, "The head with the largest mean lead was chosen first. A head with a smaller but "
                "steadier lead can have the larger lower end: compute every head's, then take the largest."),
        Mistake("best-of-each-review", _ends, "The best head was chosen separately for each review. Some head is always "
                "lucky; the same head has to lead over all reviews."),
        Mistake("size-of-lead", _ends, "You used the size of the lead without its sign. A head that avoids the targets "
                "would get the role."),
        Mistake("heads-kept", _sizes, "There's a number for each head. Take the largest for each seed."),
        Mistake("seeds-averaged", _sizes, "The seeds were averaged. A role that holds on three of five would pass or "
                "fail as a whole: keep them apart."),
        Mistake("decided", lambda case: f"you return {listed(case.answer)}, expected {listed(case.expected)}.", "These are "
                "verdicts, 1 or 0. Return the lower ends themselves, so that you see how close each came."),
    ),
    properties=(
        Property(lambda case: case.answer.shape != case.expected.shape, _sizes, "Return one number for each seed."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _ends, "Take one seed and one head, and "
                 "write down the number of reviews with a target, the mean lead, the standard deviation and the "
                 "standard error."),
    ),
    hints=(
        "Which reviews count? ~control.isnan() is a mask over the last dimension, the same for all seeds and heads.",
        "lead = scores[..., counted] − control[counted] is (seed, head, review); its mean and .std() run over dim=-1.",
        "The lower end is mean − z · std / √n with n = counted.sum(); the best head is .amax(dim=-1).",
    ),
)
