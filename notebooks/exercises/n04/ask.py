"""Exercises of notebook 04, attention. The answers stand beside it, in `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import gap, largest_weight, listed, reaches, row_sums, spread
from course_exercises.n04 import probes

# ---------------------------------------------------------------- 4.1 a row by hand

ROW = Exercise(
    kind="number", tolerance=5.2e-3, signature="a list of four numbers: the weights on not, dull, but, moving",
    mistakes=(
        Mistake("scores", lambda case: f"{listed(case.answer)}: these are the scores.", "They still have to go through "
                "softmax: e to the power of each, then divide by their sum."),
        Mistake("no-exponential", lambda case: f"{listed(case.answer)} are the scores divided by the sum of their sizes.",
                "Weights must not be negative; take e to the power of each score first."),
        Mistake("not-divided", lambda case: f"your numbers sum to {case.answer.sum():.3f}.", "Weights sum to one: divide "
                "each exponential by the sum of all four."),
        Mistake("scaled", lambda case: f"the weight on 'dull' is {case.answer[1]:.3f}: the scores were divided by √3.",
                "These scores aren't scaled. Section 6 of notebook 04 does that, and says why."),
        Mistake("wrong-sign", lambda case: f"'moving' gets {case.answer[3]:.3f} and 'dull' {case.answer[1]:.3f}: a sign was "
                "lost.", "(-2) times (-1) is +2, so 'bland' looks for 'dull'."),
        Mistake("dull-row", lambda case: f"the weight on 'dull' is {case.answer[1]:.3f}: that is the row of 'dull' from the "
                "table.", "'bland' has -2 where 'dull' has -1, so its scores are twice as large."),
    ),
    properties=(
        Property(lambda case: abs(case.answer.sum() - 1) > 0.02, lambda case: "the four numbers sum to "
                 f"{case.answer.sum():.3f}.", "Weights sum to one."),
        Property(lambda case: abs(case.answer[0] - case.answer[2]) > 2e-3, lambda case: "the weights on 'not' and 'but' are "
                 f"{case.answer[0]:.3f} and {case.answer[2]:.3f}.", "'not' and 'but' have the same score, so they get the "
                 "same weight."),
        Property(lambda case: case.answer[1] <= case.answer[0] + 1e-6, lambda case: f"'dull' gets {case.answer[1]:.3f} and "
                 f"'not' {case.answer[0]:.3f}.", "'bland' is most like 'dull', so 'dull' has the highest score and the "
                 "largest weight."),
        Property(lambda case: not 6.5 < case.answer[1] / case.answer[0] < 8.5, lambda case: "the weights on 'dull' and "
                 f"'not' are {case.answer[1]:.3f} and {case.answer[0]:.3f}.", "Their scores differ by 2, so one must be e² "
                 "times the other."),
        Property(lambda case: abs(case.answer[3] - 0.0142) > 5e-3, lambda case: f"'moving' gets {case.answer[3]:.3f}.",
                 "Its score is the lowest, -2, and e⁻² is small but not 0: divide it by the same sum as the others."),
    ),
    hints=(
        "Four dot products first: only the first of the three numbers of 'bland' is not zero.",
        "The scores are 0, 2, 0 and -2. Now e to the power of each, and their sum.",
        "e² = 7.389 and e⁻² = 0.135; with two ones the sum is 9.524.",
    ),
)

# ---------------------------------------------------------------- 4.2 scaled dot-product attention

FUNCTIONS = ("course_utils.attention.scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention",
             "torch.nn.functional.multi_head_attention_forward")           # what 4.2, 4.3 and 4.5 ask for


def _sums(case: Case, dim: int) -> torch.Tensor:
    return case.weights.sum(dim=dim)


def _weights_off(case: Case) -> str:
    at = tuple((case.weights - case.right["weights"]).abs().eq(gap(case, "weights")).nonzero()[0].tolist())
    place = f"weights[{', '.join(str(i) for i in at)}]"
    return (f"{place} is {case.weights[at]:.3f}, expected {case.right['weights'][at]:.3f}; no other weight is "
            "further off.")


def _context_off(case: Case) -> float:
    """How far the context is from weights @ value, with the learner's own weights."""
    return (case.weights @ case.inputs[2].double() - case.context).abs().max().item()


def _small(number) -> str:
    """A weight with three decimals, or as a power of ten where these would show 0.000."""
    return f"{number:.3f}" if number >= 5e-4 else f"{number:.0e}"


SCALED = Exercise(
    probes=probes.attention_probes, observe=probes.observe_scaled, forbidden=FUNCTIONS,
    signature="scaled_attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value)) -> context (..., "
    "query, d_value), weights (..., query, key)",
    not_finite={
        "inf": "exp of a large score overflows: subtract the largest score of each row first, or call softmax.",
        "NaN": "exp of a large score overflows, and infinity divided by infinity is NaN; a row whose exps are all rounded "
        "to 0 gives 0 / 0. Subtract the largest score of each row first, or call softmax."},
    mistakes=(
        Mistake("softmax-over-queries", lambda case: f"your rows sum to {spread(_sums(case, -1))}, your columns to "
                f"{spread(_sums(case, -2))}.", "The softmax runs over the queries. Each query distributes its "
                "attention over the keys, so it must run over the last dimension."),
        Mistake("no-scaling", lambda case: f"your largest weight is {case.weights.max():.3f}, with scaling it is "
                f"{case.right['weights'].max():.3f}.", "The scores are not divided by √d_k, so the rows are too sharp "
                "(notebook 04, section 6)."),
        Mistake("divided-by-d_k", largest_weight, "The scores are divided by d_k itself. Their standard deviation is its "
                "root: divide by √d_k."),
        Mistake("scaled-by-values", largest_weight, "You took the root of the width of the values. Dot products are made of "
                "queries and keys: use query.shape[-1]."),
        Mistake("scaled-by-length", largest_weight, "You took the root of the number of keys. Large scores come from the "
                "width: use query.shape[-1]."),
        Mistake("scaled-after-softmax", row_sums, "You divide after the softmax. Divide the scores instead, before "
                "it."),
        Mistake("multiplied", largest_weight, "The scores are multiplied by √d_k; they must be divided."),
        Mistake("no-softmax", lambda case: f"your weights go from {spread(case.weights)}.", "These are scores. Weights are "
                "positive and sum to one in each row: softmax is missing."),
        Mistake("hard", lambda case: f"{int((case.weights == 1).sum())} of your weights are exactly 1.",
                "The best key takes everything. That cannot be trained (section 2); use softmax."),
        Mistake("keys-for-values", lambda case: f"your context is {case.context.shape[-1]} wide, as the keys are.",
                "You multiplied the weights by the keys. The context is a mean of the values."),
        Mistake("swapped", lambda case: f"you return shapes {tuple(case.context.shape)} and {tuple(case.weights.shape)}.",
                "Context and weights are in the wrong order: return context, weights."),
    ),
    properties=(
        Property(lambda case: (case.weights < -1e-6).any(), lambda case: f"{int((case.weights < 0).sum())} of your weights "
                 "are negative.", "Weights come out of a softmax and are positive."),
        Property(lambda case: (_sums(case, -1) - 1).abs().max() > 1e-3, row_sums, "Each query's weights sum to one. Print "
                 "weights.sum(dim=-1) after each step: right after a softmax over the last dimension it is one."),
        Property(lambda case: _context_off(case) > 1e-3, lambda case: "your context is not the mean of the values with your "
                 f"own weights: it differs by up to {_context_off(case):.3f}.", "context = weights @ value, with nothing in "
                 "between."),
        Property(lambda case: gap(case, "weights") > 1e-4, _weights_off, "The rows sum to one, but their scores "
                 "aren't query · key / √d_k."),
        *reaches("query", "key", "value"),
    ),
    hints=(
        "Three steps, in this order: scores, weights, context. Print the shape after each.",
        "The keys have to be transposed for the product: key.transpose(-2, -1). Then divide by math.sqrt(query.shape[-1]).",
        "scores.softmax(dim=-1) gives the weights; weights @ value gives the context; return both.",
    ),
)

# ---------------------------------------------------------------- 4.3 repair: the mask

def _on_masked(case: Case) -> torch.Tensor:
    """The largest weight that a key got which the mask forbids."""
    forbidden = ~case.inputs[3].expand(case.weights.shape)
    return case.weights[forbidden].nan_to_num().abs().max()


def _on_allowed(case: Case) -> torch.Tensor:
    """The largest weight that a key got which the mask allows."""
    return case.weights[case.inputs[3].expand(case.weights.shape)].nan_to_num().abs().max()


def _largest_score(case: Case) -> float:
    query, key = case.inputs[:2]
    return (query @ key.mT / query.shape[-1] ** 0.5).max().item()


def _forbidden_weight(case: Case) -> str:
    return f"a forbidden key still gets a weight of {_on_masked(case):.3f}."


MASKED = Exercise(
    given="mask-after-softmax", probes=probes.masked_probes, observe=probes.observe_masked, forbidden=FUNCTIONS,
    signature="masked_attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value), mask, True = may "
    "attend) -> context (..., query, d_value), weights (..., query, key)",
    not_finite={
        "inf": "exp of a large score overflows: call softmax, or subtract the largest score of each row first.",
        "-inf": "-inf belongs on the scores of forbidden keys, before the softmax; a weight is never below 0.",
        "NaN": "0 times -inf gives that. So does dividing a row by its sum after the softmax: where a forbidden score is "
        "far above the allowed ones, their weights have all come out as 0. A row of nothing but -inf does too. Put -inf on "
        "the forbidden scores with masked_fill, before the softmax: where the mask is False, and not where a score is 0."},
    mistakes=(
        Mistake("mask-after-softmax", largest_weight, "The mask is applied after the softmax: forbidden keys are "
                "already counted in the sum. Put it on the scores, before."),
        Mistake("filled-with-zero", _forbidden_weight, "Its score is 0, and e⁰ = 1 isn't small. Fill with -inf."),
        Mistake("filled-with-minus-one", _forbidden_weight, "Its score is low, but not low enough. Fill with -inf, or with "
                "a number like -1e9."),
        Mistake("inverted", lambda case: f"a forbidden key gets a weight of {_on_masked(case):.3f}, and the allowed ones "
                f"get {_on_allowed(case):.3f} at most.", "The mask is the wrong way round: here True means may attend, so "
                "fill where it is False."),
        Mistake("ignored", lambda case: f"a forbidden key gets a weight of {_on_masked(case):.3f}.",
                "The mask has no effect. If you used masked_fill: it returns a new tensor, so keep what it returns."),
        Mistake("no-scaling", lambda case: "forbidden keys get nothing, which is right, but your largest weight is "
                f"{case.weights.max():.3f}, expected {case.right['weights'].max():.3f}.", "A division by √d_k is missing."),
        Mistake("inverted-after-softmax", lambda case: f"your rows sum to {spread(_sums(case, -1))}, and a forbidden key "
                f"gets {_on_masked(case):.3f}.", "The mask is applied after the softmax, and the wrong way round as well."),
    ),
    properties=(
        Property(lambda case: _on_masked(case) > 0, lambda case: "a forbidden key gets a weight of "
                 f"{_small(_on_masked(case))} where the largest of all scores is {_largest_score(case):.1f}.",
                 "Where the mask is False the weight must be exactly 0: put -inf on the score, before the softmax. A number "
                 "such as -100 is low enough only where the other scores lie far above it."),
        Property(lambda case: _sums(case, -1).min() < 1e-5, row_sums, "Nothing is left for the allowed keys where a "
                 "forbidden one scores far above them: the softmax gave it all. Put -inf on the forbidden scores before the "
                 "softmax; what comes after it can't bring the rest back."),
        Property(lambda case: (_sums(case, -1) - 1).abs().max() > 1e-3, row_sums, "Each query's weights sum to one, over "
                 "the keys it may look at."),
        Property(lambda case: _context_off(case) > 1e-3, lambda case: "your context is not weights @ value: it differs by "
                 f"up to {_context_off(case):.3f}.", "Compute the context with the masked weights that you return."),
        Property(lambda case: gap(case, "weights") > 1e-4, _weights_off, "Forbidden keys get nothing and rows sum to one, "
                 "but the scores are not query · key / √d_k."),
        *reaches("query", "key", "value"),
    ),
    hints=(
        "Print weights.sum(dim=-1). What should each row sum to?",
        "What fraction of the weight went to forbidden keys before they were set to zero? Which step must prevent it?",
        "scores = scores.masked_fill(~mask, -math.inf), and only then the softmax.",
    ),
)

# ---------------------------------------------------------------- 4.4 two masks in one

def _allowed(case: Case) -> tuple[int, int]:
    return int((case.answer != 0).sum()), int(case.expected.sum())


def _first_wrong(case: Case) -> str:
    got, right = case.answer, case.expected
    b, _, i, j = (got != right).nonzero()[0].tolist()
    rule = "comes later" if not right[b, 0, i, j] else "came before or is itself, and is real"
    if not case.inputs[0][b, j]:
        rule = "is padding"
    seen = "allows" if got[b, 0, i, j] else "forbids"
    return f"in review {b} your mask {seen} query {i} to look at key {j}, which {rule}."


def _count(case: Case) -> str:
    got, right = _allowed(case)
    return f"{got} pairs are allowed, expected {right}."


def _count_and_place(case: Case) -> str:
    return f"{_count(case)} {_first_wrong(case)}"


BOTH_MASKS = Exercise(
    probes=probes.mask_probes,
    signature="decoder_mask(attention_mask (batch, key), True = real word; query_len) -> mask (batch, 1, query, key), "
    "boolean",
    mistakes=(
        Mistake("or", _count_and_place, "The two masks are joined with 'or'. A pair must be allowed by both: use &."),
        Mistake("only-causal", lambda case: _first_wrong(case), "The padding has no effect; only the triangle is there."),
        Mistake("only-padding", lambda case: _first_wrong(case), "Every query sees all real keys; the triangle is missing."),
        Mistake("without-itself", _count_and_place, "The triangle leaves out the diagonal, so the first word has no key at "
                "all. A word may look at itself."),
        Mistake("upper", _count_and_place, "The triangle is the upper one: words see what comes later and not what came "
                "before. Use tril."),
        Mistake("inverted", _count_and_place, "The mask says who may *not* attend. Here True means may attend."),
        Mistake("queries-masked", lambda case: _first_wrong(case), "The padding is masked on the queries (rows). It "
                "must be masked on the keys (columns): attention_mask[:, None, None, :]."),
        Mistake("top-left", lambda case: f"with {case.inputs[1]} queries and {case.inputs[0].shape[1]} keys: "
                f"{_first_wrong(case)}", "The triangle is aligned at the top left. The queries are the last positions, so "
                "query i may see keys up to i + key_len - query_len."),
        Mistake("one-too-many", _count_and_place, "The triangle reaches one key too far: each word sees the next one."),
        Mistake("additive", lambda case: f"{int(case.answer.isinf().sum())} entries are -inf and "
                f"{int((case.answer == 0).sum())} are 0.", "That is a mask to be added to the scores, and it allows the "
                "right pairs. The exercise asks for a boolean mask: True where yours has 0."),
    ),
    properties=(
        Property(lambda case: ((case.answer != 0) & (case.answer != 1)).any(), lambda case: "your mask contains numbers "
                 f"other than 0 and 1, such as {case.answer[(case.answer != 0) & (case.answer != 1)][0]:.3g}.",
                 "It must be boolean: True = may attend."),
        Property(lambda case: (case.answer != case.expected).any(), lambda case: _first_wrong(case),
                 "Write down by hand which keys this query may see, and compare."),
    ),
    hints=(
        "Build the two masks separately, look at both, and join them at the end. Which one depends on the review?",
        "causal_mask(query_len, key_len) is (query, key). attention_mask[:, None, None, :] is (batch, 1, 1, key). "
        "Broadcasting does the rest.",
        "causal & padding: both must allow a pair.",
    ),
)

# ---------------------------------------------------------------- 4.5 repair: a query with no key

def _bad(case: Case, name: str) -> int:
    return int((~torch.isfinite(case.got[name])).sum())


def _empty_row(case: Case) -> torch.Tensor:
    """The weights of the first query without a key, in the head where they are largest."""
    mask = case.inputs[3]
    batch, _, query = (~mask.any(-1)).nonzero()[0].tolist()
    rows = case.weights[batch, :, query]
    return rows[rows.abs().sum(-1).argmax()]


NO_KEY = Exercise(
    given="nan", probes=probes.no_key_probes, observe=probes.observe_with_gradient, forbidden=FUNCTIONS,
    signature="safe_attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value), mask, True = may "
    "attend) -> context (..., query, d_value), weights (..., query, key)",
    not_finite={
        "inf": "exp of a large score overflows. Call softmax, which takes care of that.",
        "-inf": "-inf belongs on scores, before a softmax, and a weight is never below 0. Fill with a large negative "
        "number, and call softmax.",
        "NaN": "A softmax over nothing but -inf gives that, and so does exp of a large score, which overflows. Fill with a "
        "large negative number, and call softmax."},
    mistakes=(
        Mistake("nan", lambda case: f"{_bad(case, 'weights')} of {case.weights.numel()} weights and {_bad(case, 'context')} "
                f"of {case.context.numel()} numbers of the context are unusable.",
                "They are NaN. A row of -inf has no "
                "largest number; its softmax is 0 divided by 0."),
        Mistake("uniform", lambda case: "the query without a key gives each forbidden key a weight of "
                f"{_empty_row(case)[0]:.3f}.", "With one large negative number everywhere, softmax sees equal scores. Set "
                "the forbidden weights to zero afterwards."),
    ),
    properties=(
        Property(lambda case: _bad(case, "gradient"), lambda case: f"{_bad(case, 'gradient')} numbers of the gradient are "
                 "not finite.", "The outputs may look right; training would still break."),
        Property(lambda case: _empty_row(case).abs().max() > 1e-6, lambda case: "the query without a key has weights that "
                 f"sum to {_empty_row(case).sum():.3f}.", "It has nothing to look at: all its weights must be 0."),
        Property(lambda case: (case.weights - case.right["weights"]).abs().max() > 1e-4, lambda case:
                 "the queries that have keys changed as well: their weights differ by up to "
                 f"{(case.weights - case.right['weights']).abs().max():.3f}.", "Only the row without a key needs care. "
                 "Softmax subtracts a row's largest score before exp; without that, exp of a large score overflows, "
                 "and exp of a very low one is 0."),
        Property(lambda case: gap(case, "context") > 1e-3, lambda case: "your weights are right, but your context is off by "
                 f"up to {gap(case, 'context'):.3f}.", "Compute the context from the weights that you return, after fixing "
                 "them."),
        Property(lambda case: gap(case, "gradient") > 1e-3, lambda case: "weights and context are right, but the gradient "
                 f"at the queries is off by up to {gap(case, 'gradient'):.3f}.", "Something cuts it on its way back or "
                 "changes it: look for detach(), no_grad() or .data."),
    ),
    hints=(
        "What does softmax give for a row of -inf? Try torch.full((3,), -math.inf).softmax(dim=0).",
        "Use torch.finfo(scores.dtype).min in place of -inf: then nothing is undefined. What does that row contain now?",
        "weights = weights.masked_fill(~mask, 0.0) after the softmax.",
    ),
)

# ---------------------------------------------------------------- 4.6 design a head

DULL, BUT, MOVING = range(3)                            # the rows that are asked for; 'not' may look where it likes


def _row(case: Case, row: int) -> str:
    """The weights of one word, in words."""
    word = ("dull", "but", "moving")[row]
    return f"'{word}' gives not, dull, but and moving {listed(case.weights[row], '.2f')}."


def _home(case: Case) -> str:
    return f"the contexts of dull, but and moving are {listed(case.context[:, 0], '.2f')}."


DESIGN = Exercise(
    probes=probes.design_probes, observe=probes.observe_design, tolerance=0.05,
    signature="design_head() -> W_q (3, d_k), W_k (3, d_k), W_v (3, 1)",
    mistakes=(
        Mistake("finds-its-like", lambda case: _row(case, DULL), "It finds itself, since minus times minus is plus. To find "
                "the opposite opinion, flip the sign in the query or in the key, but not in both."),
        Mistake("silent-but", lambda case: _row(case, BUT), "That is an equal weight for every word: the scores of 'but' "
                "are all the same. It needs a query of its own, in a column that the opinions don't use."),
        Mistake("but-seeks-one", lambda case: _row(case, BUT), "It finds one opinion only. A score that comes from the "
                "opinion is plus for one and minus for the other. Which score could the two share?"),
        Mistake("but-seeks-the-rest", lambda case: _row(case, BUT), "The sign is flipped: the words to leave out have the "
                "high scores. Push them down."),
        Mistake("not-left-in", lambda case: _row(case, BUT), "'not' gets as much as the opinions: its score is the same as "
                "theirs, and a score of zero isn't a weight of zero. Push it down too."),
        Mistake("but-left-in", lambda case: _row(case, BUT), "'but' keeps as much for itself as it gives each opinion: its "
                "own key has the score of theirs. Push it down too."),
        Mistake("home-turned", _home, "The weights are right, but the signs of the contexts are flipped: a word takes "
                "home the opinion that it finds, so W_v takes the opinion as it is."),
        Mistake("home-empty", _home, "The weights are right, but the values that they average contain no opinion. W_v has "
                "one row for each number of a word; opinion is the first."),
    ),
    properties=(
        Property(lambda case: (case.weights[DULL, 3] - 1).abs() > 0.05, lambda case: _row(case, DULL), "It should give "
                 "'moving' all but 0.05. If 'moving' comes first already, multiply W_q or W_k; if it doesn't, work out the "
                 "four scores of 'dull' on paper."),
        Property(lambda case: (case.weights[MOVING, 1] - 1).abs() > 0.05, lambda case: _row(case, MOVING), "It should give "
                 "'dull' all but 0.05. If 'dull' comes first already, multiply W_q or W_k; if it doesn't, work out the four "
                 "scores of 'moving' on paper."),
        Property(lambda case: (case.weights[BUT, [1, 3]] - 0.5).abs().max() > 0.05, lambda case: _row(case, BUT), "It "
                 "should give 'dull' and 'moving' one half each: the same score for both, and a much lower one for 'not' "
                 "and 'but'."),
        Property(lambda case: (case.context - case.right["context"]).abs().max() > 0.05, _home, "The weights are right. The "
                 "context is weights @ (x @ W_v), and the opinions found are 1, 0 and -1: which column of x holds them?"),
    ),
    hints=(
        "You need two kinds of query, so two columns will do: one for the opinions, one for 'but'. Start with the "
        "opinions alone.",
        "For 'but': two scores of 0, and two far below 0. Which words must have a negative key in its column?",
        "W_q = [[6, 0], [0, 0], [0, 6]]. The first column of W_k holds -1 for opinion, the second -1 for negates and "
        "contrasts.",
    ),
)

EXERCISES = (ROW, SCALED, MASKED, BOTH_MASKS, NO_KEY, DESIGN)

