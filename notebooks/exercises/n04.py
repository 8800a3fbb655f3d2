"""Exercises and quiz of notebook 04, attention."""

import math

import torch
from torch import nn

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import (
    gap,
    gradients_of,
    listed,
    no_module,
    not_contiguous,
    one_tensor,
    put_back,
    reached,
    reaches,
    spread,
    two_results,
    what,
)

# ---------------------------------------------------------------- 4.1 a row by hand

SCORES = torch.tensor([0.0, 2.0, 0.0, -2.0])


def row_by_hand():
    # scores 0, 2, 0, -2; their exponentials 1, 7.389, 1, 0.135 sum to 9.524
    return [0.105, 0.776, 0.105, 0.014]


ROW = ask(
    "4.1", row_by_hand, kind="number", tolerance=5.2e-3,
    signature="a list of four numbers: the weights on not, dull, but, moving",
    numbers=dict(all=lambda case: listed(case.answer), sum=lambda case: case.answer.sum()),
    mistakes={
        "scores": M(lambda: SCORES, "{all}: these are the scores.", "They still have to go through softmax: e to the power "
                    "of each, then divide by their sum."),
        "no-exponential": M(lambda: SCORES / SCORES.abs().sum(), "{all} are the scores divided by the sum of their sizes.",
                            "Weights must not be negative; take e to the power of each score first."),
        "not-divided": M(lambda: SCORES.exp(), "your numbers sum to {sum:.3f}.", "Weights sum to one: divide each "
                         "exponential by the sum of all four."),
        "scaled": M(lambda: (SCORES / math.sqrt(3)).softmax(dim=0), "the weight on 'dull' is {answer[1]:.3f}: the scores "
                    "were divided by √3.", "A query here is one number, the opinion: d_k is 1, and there's nothing to "
                    "divide by."),
        "wrong-sign": M(lambda: (-SCORES).softmax(dim=0), "'moving' gets {answer[3]:.3f} and 'dull' {answer[1]:.3f}: a sign "
                        "was lost.", "(-2) times (-1) is +2, so 'bland' looks for 'dull'."),
        "one-for-two": M(lambda: torch.tensor([0.0, 2.0, 0.0, -1.0]).softmax(dim=0), "'moving' gets {answer[3]:.3f}: "
                         "0.368 is e⁻¹.", "(-2) times 1 is -2, so 'moving' needs e⁻², which is 0.135; the sum changes too."),
        "dull-row": M(lambda: (SCORES / 2).softmax(dim=0), "the weight on 'dull' is {answer[1]:.3f}: that is the row of "
                      "'dull' from the table.", "'bland' has -2 where 'dull' has -1, so its scores are twice as large."),
    },
    rules=(
        R(lambda case: abs(case.answer.sum() - 1) > 0.02, "the four numbers sum to {sum:.3f}.", "Weights sum to one."),
        R(lambda case: abs(case.answer[0] - case.answer[2]) > 2e-3, "the weights on 'not' and 'but' are {answer[0]:.3f} and "
          "{answer[2]:.3f}.", "'not' and 'but' have the same score, so they get the same weight."),
        R(lambda case: case.answer[1] <= case.answer[0] + 1e-6, "'dull' gets {answer[1]:.3f} and 'not' {answer[0]:.3f}.",
          "'bland' is most like 'dull', so 'dull' has the highest score and the largest weight."),
        R(lambda case: not 6.5 < case.answer[1] / case.answer[0] < 8.5, "the weights on 'dull' and 'not' are "
          "{answer[1]:.3f} and {answer[0]:.3f}.", "Their scores differ by 2, so one must be e² times the other."),
        R(lambda case: case.answer[3] - 0.0142 > 5e-3, "'moving' gets {answer[3]:.3f}, which is too large.", "Its score is "
          "the lowest, -2. Divide e⁻² by the same sum as the others, and keep three decimals."),
        R(lambda case: case.answer[3] - 0.0142 < -5e-3, "'moving' gets {answer[3]:.3f}.", "Its score is the lowest, -2, "
          "and e⁻² is small but not 0: divide it by the same sum as the others."),
    ),
    hints=(
        "Four dot products first: only the first of the three numbers of 'bland' is not zero.",
        "The scores are 0, 2, 0 and -2. Now e to the power of each, and their sum.",
        "e² = 7.389 and e⁻² = 0.135; with two ones the sum is 9.524.",
    ),
)

# ---------------------------------------------------------------- 4.2 scaled dot-product attention

LIBRARY = ("course_utils.attention.scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention",
           "torch.nn.functional.multi_head_attention_forward")             # what 4.2, 4.3 and 4.5 ask for


def scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    weights = scores.softmax(dim=-1)                                       # each row sums to one
    return weights @ value, weights


def attention_probes(generator: torch.Generator) -> list[tuple]:
    """(query (2, 3, 4, 6), key (2, 3, 5, 6), value (2, 3, 5, 7)); without leading dimensions; every dimension one; then
    in float64, not in order in memory, with large values; then scores near 160, where exp overflows, and -160 in one."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    double = (draw(1, 2, 3, 4).double(), draw(1, 2, 4, 4).double(), 100 * draw(1, 2, 4, 3).double())
    return [(draw(2, 3, 4, 6), draw(2, 3, 5, 6), draw(2, 3, 5, 7)), (draw(3, 8), draw(5, 8), draw(5, 2)),
            (draw(1, 1, 1, 1), draw(1, 1, 1, 1), draw(1, 1, 1, 1)), not_contiguous(double),
            (*_with_scores(160.0, generator, other=-1.0), draw(4, 3))]


def _with_scores(size: float, generator: torch.Generator, other: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries (2, 2) and keys (4, 2) whose scores, divided by the root of 2, lie close to `size`; those of the second query
    to `other` times as much."""
    query = torch.tensor([[4.0, 1.0], [4.0 * other, -1.0]])
    key = torch.stack([torch.full((4,), 2**0.5 * size / 4), torch.rand(4, generator=generator)], dim=-1)
    return query, key


def observe_scaled(function, query, key, value):
    """Context and weights, and whether gradients reach what they should (with a single key none reaches the query)."""
    output = function(query, key, value)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    names = {0: "query", 1: "key", 2: "value"} if key.shape[-2] > 1 else {2: "value"}
    return {"context": context, "weights": weights, **reached(function, output, (query, key, value), names)}


def _context(case: Case) -> torch.Tensor:
    """The context that belongs to the learner's own weights."""
    return case.weights @ case.inputs[2].double()


def _context_off(case: Case) -> float:
    return (_context(case) - case.context).abs().max().item()


def _weights_off(case: Case) -> str:
    at = tuple((case.weights - case.right["weights"]).abs().eq(gap(case, "weights")).nonzero()[0].tolist())
    place = f"weights[{', '.join(str(i) for i in at)}]"
    return (f"{place} is {case.weights[at]:.3f}, expected {case.right['weights'][at]:.3f}; no other weight is "
            "further off.")


def _rows_off(case: Case) -> bool:
    return (case.weights.sum(dim=-1) - 1).abs().max() > 1e-3


ROOT, SOFTMAX = "math.sqrt(query.shape[-1])", "scores.softmax(dim=-1)"
ROWS, LARGEST = "your rows sum to {rows}.", "your largest weight is {max:.3f}, expected {right:.3f}."
NUMBERS = dict(
    rows=lambda case: spread(case.weights.sum(dim=-1)), columns=lambda case: spread(case.weights.sum(dim=-2)),
    max=lambda case: case.weights.max(), right=lambda case: case.right["weights"].max(),
    weights=lambda case: spread(case.weights), ones=lambda case: int((case.weights == 1).sum()),
    negative=lambda case: int((case.weights < 0).sum()), width=lambda case: case.context.shape[-1], off=_context_off,
    shapes=lambda case: f"{tuple(case.context.shape)} and {tuple(case.weights.shape)}")

SCALED = ask(
    "4.2", scaled_attention, probes=attention_probes, observe=observe_scaled, forbidden=LIBRARY, numbers=NUMBERS,
    follows={"context": _context},
    signature="scaled_attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value)) -> context (..., "
    "query, d_value), weights (..., query, key)",
    not_finite={
        "inf": "exp of a large score overflows: subtract the largest score of each row first, or call softmax.",
        "NaN": "exp of a large score overflows, and infinity divided by infinity is NaN; a row whose exps are all rounded "
        "to 0 gives 0 / 0. Subtract the largest score of each row first, or call softmax."},
    mistakes={
        "softmax-over-queries": M({"dim=-1": "dim=-2"}, "your rows sum to {rows}, your columns to {columns}.", "The softmax "
                                  "runs over the queries. Each query distributes its attention over the keys, so it must "
                                  "run over the last dimension."),
        "softmax-over-dimension-1": M({"dim=-1": "dim=1"}, "your rows sum to {rows} in a stack of texts.", "Dimension 1 is "
                                      "the last one of a single text, and another of a stack. dim=-1 is the last in both."),
        "no-scaling": M({ROOT: "1"}, "", "The scores are not divided by √d_k (notebook 04, section 2)."),
        "divided-by-d_k": M({ROOT: "query.shape[-1]"}, "", "You divided by d_k, not by √d_k: the standard deviation of a "
                            "score is √d_k (notebook 04, section 4)."),
        "scaled-by-values": M({ROOT: "math.sqrt(value.shape[-1])"}, "", "Dot products are made of queries and keys."),
        "scaled-by-length": M({ROOT: "math.sqrt(key.shape[-2])"}, "", "Large scores come from the width, not from the "
                              "number of keys."),
        "multiplied": M({ROOT: f"1 / {ROOT}"}),
        "scaled-after-softmax": M({ROOT: "1", SOFTMAX: f"{SOFTMAX} / {ROOT}"}, ROWS, "You divide after the softmax. Divide "
                                  "the scores instead, before it."),
        "no-softmax": M({SOFTMAX: "scores"}, "your weights go from {weights}.", "These are scores. Weights are positive and "
                        "sum to one in each row: softmax is missing."),
        "hard": M({SOFTMAX: "torch.eye(key.shape[-2], dtype=key.dtype)[scores.argmax(dim=-1)]"}, "{ones} of your weights "
                  "are exactly 1.", "The best key takes everything, so no gradient reaches query and key (notebook 04, "
                  "section 1). Use softmax."),
        "keys-for-values": M({"weights @ value": "weights @ key"}, "your context is {width} wide, as the keys are.", "You "
                             "multiplied the weights by the keys. The context is a mean of the values."),
        "swapped": M({"return weights @ value, weights": "return weights, weights @ value"}, "you return shapes {shapes}.",
                     "Context and weights are in the wrong order: return context, weights."),
    },
    rules=(
        R(lambda case: (case.weights < -1e-6).any(), "{negative} of your weights are negative.", "Weights come out of a "
          "softmax and are positive."),
        R(_rows_off, ROWS, "Each query's weights sum to one. Print weights.sum(dim=-1) after each step: right after a "
          "softmax over the last dimension it is one."),
        R(lambda case: _context_off(case) > 1e-3, "your context is not the mean of the values with your own weights: it "
          "differs by up to {off:.3f}.", "context = weights @ value, with nothing in between."),
        R(lambda case: gap(case, "weights") > 1e-4, _weights_off, "The rows sum to one, but their scores aren't query · key "
          "/ √d_k."),
        *reaches("query", "key", "value"),
    ),
    hints=(
        "Three steps, in this order: scores, weights, context. Print the shape after each.",
        "The keys have to be transposed for the product: key.transpose(-2, -1). Then divide by math.sqrt(query.shape[-1]).",
        "scores.softmax(dim=-1) gives the weights; weights @ value gives the context; return both.",
    ),
)

# ---------------------------------------------------------------- 4.3 repair: the mask

def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~mask, -math.inf)                          # before the softmax
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def masked_probes(generator: torch.Generator) -> list[tuple]:
    """Attention inputs and a mask (2, 1, 4, 5) that leaves each query two keys or more, never all, and not the same ones.

    Then all scores low; one key allowed of two; a square mask, the causal one; a query whose scores are exactly 0; a
    forbidden key far above the others.
    """
    query, key, value = attention_probes(generator)[0]
    mask = torch.rand(2, 1, 4, 5, generator=generator) < 0.5
    mask[..., 0, :2] = mask[..., 1, 1:3] = mask[..., 2, 2:4] = mask[..., 3, 3:] = True
    mask[..., 0, 4] = mask[..., 1, 0] = mask[..., 2, 0] = mask[..., 3, 0] = False
    low_query, low_key = query.clone(), key.clone()
    low_query[..., 0], low_key[..., 0] = 19.0, -20.0       # all scores near -155: a small negative number is no mask
    one = [torch.randn(1, 1, length, 1, generator=generator) for length in (1, 2, 2)]
    high_query, high_key = _with_scores(5.0, generator)
    high_key[2] *= 40                                      # a forbidden key, some 195 above the allowed ones
    high = high_query, high_key, torch.randn(4, 3, generator=generator), torch.tensor([[True, True, False, True]])
    idle = query[0, 0] * torch.tensor([[1.0], [0.0], [1.0], [1.0]]), key[0, 0], value[0, 0], mask[0, 0]
    causal = query, key[..., :4, :], value[..., :4, :], torch.ones(4, 4, dtype=torch.bool).tril()
    return [(query, key, value, mask), (low_query, low_key, value, mask), (*one, torch.tensor([[[[False, True]]]])), causal,
            idle, high]


def observe_masked(function, query, key, value, mask):
    """Context and weights, and whether gradients reach what they should (with a single key none reaches the query)."""
    output = function(query, key, value, mask)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    names = {0: "query", 1: "key", 2: "value"} if mask.sum(dim=-1).max() > 1 else {2: "value"}
    hidden = float((weights[~mask.expand(weights.shape)] != 0).any()) if weights.dim() == query.dim() else 0.0
    return {"context": context, "weights": weights, "weights on forbidden keys": hidden,
            **reached(function, output, (query, key, value, mask), names)}


def _largest(case: Case, on: bool) -> torch.Tensor:
    """The largest weight among the keys that the mask allows, or forbids."""
    return case.weights[case.inputs[3].expand(case.weights.shape) == on].nan_to_num().abs().max()


def _small(number) -> str:
    """A weight with three decimals, or as a power of ten where these would show 0.000."""
    return f"{number:.3f}" if number >= 5e-4 else f"{number:.0e}"


def _largest_score(case: Case) -> torch.Tensor:
    return (case.inputs[0] @ case.inputs[1].mT / case.inputs[0].shape[-1] ** 0.5).max()


FILLING = "scores = scores.masked_fill(~mask, -math.inf)"
FORBIDDEN = "a forbidden key still gets a weight of {forbidden:.3f}."

MASKED = ask(
    "4.3", masked_attention, given="mask-after-softmax", probes=masked_probes, observe=observe_masked, forbidden=LIBRARY,
    follows={"context": _context},
    signature="masked_attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value), mask, True = may "
    "attend) -> context (..., query, d_value), weights (..., query, key)",
    not_finite={
        "inf": "exp of a large score overflows: call softmax, or subtract the largest score of each row first.",
        "-inf": "-inf belongs on the scores of forbidden keys, before the softmax; a weight is never below 0.",
        "NaN": "0 times -inf gives that. So does dividing a row by its sum after the softmax: where a forbidden score is "
        "far above the allowed ones, their weights have all come out as 0. A row of nothing but -inf does too. Put -inf on "
        "the forbidden scores with masked_fill, before the softmax: where the mask is False, and not where a score is 0."},
    numbers=NUMBERS | dict(
        forbidden=lambda case: _largest(case, on=False), allowed=lambda case: _largest(case, on=True),
        little=lambda case: _small(_largest(case, on=False)),
        score=_largest_score, unusable=lambda case: int(case.weights.isnan().sum()),
        count=lambda case: case.weights.numel()),
    mistakes={
        "mask-after-softmax": M({FILLING: "", SOFTMAX: f"{SOFTMAX}.masked_fill(~mask, 0.0)"}, LARGEST, "The mask is applied "
                                "after the softmax: forbidden keys are already counted in the sum. Put it on the scores, "
                                "before."),
        "filled-with-zero": M({"-math.inf": "0.0"}, FORBIDDEN, "Its score is 0 or nearly 0, and e⁰ = 1 isn't small. Fill "
            "with "
                              "-inf, or with -1e9 (if you typed -1e-9: that's almost 0)."),
        "filled-with-minus-one": M({"-math.inf": "-1.0"}, FORBIDDEN, "Its score is low, but not low enough. Fill with -inf, "
                                   "or with a number like -1e9."),
        "mask-added": M({FILLING: "scores = scores + mask"}, FORBIDDEN, "You add the mask to the scores: True counts as 1 "
                        "and False as 0, so a forbidden key loses only a factor of e. Fill its score with -inf."),
        "inverted": M({"~mask": "mask"}, "a forbidden key gets a weight of {forbidden:.3f}, and the allowed ones get "
                      "{allowed:.3f} at most.", "The mask is the wrong way round: here True means may attend, so fill where "
                      "it is False."),
        "ignored": M({FILLING: ""}, "a forbidden key gets a weight of {forbidden:.3f}.", "The mask has no effect. If you "
                     "used masked_fill: it returns a new tensor, so keep what it returns."),
        "no-scaling": M({ROOT: "1"}, "forbidden keys get nothing, which is right, but your largest weight is {max:.3f}, "
                        "expected {right:.3f}.", "A division by √d_k is missing."),
        "inverted-after-softmax": M({FILLING: "", SOFTMAX: f"{SOFTMAX}.masked_fill(mask, 0.0)"}, "your rows sum to {rows}, "
                                    "and a forbidden key gets {forbidden:.3f}.", "The mask is applied after the softmax, "
                                    "and the wrong way round as well."),
        "first-review-for-all": M({"~mask": "~mask.reshape(-1, *mask.shape[-2:])[0]"}, FORBIDDEN, "You use the mask of the "
                                  "first review for the whole batch. Each has its own: mask broadcasts to the scores as it "
                                  "is."),
        "square-transposed": M({"~mask": "~(mask.mT if mask.shape[-2] == mask.shape[-1] else mask)"}, "with a square causal "
                               "mask a forbidden key gets a weight of {forbidden:.3f}.", "You transpose the mask, so that "
                               "words see what comes after them. It is (query, key), as the scores are."),
        "unmasked-returned": M({"return weights @ value, weights": "return weights @ value, (query @ key.mT / "
                                "math.sqrt(query.shape[-1])).softmax(dim=-1)"}, "your context is right, but in the weights "
                               "that you return a forbidden key has {forbidden:.3f}.", "You return those from before the "
                               "mask. Return the weights that made the context."),
        "exps-masked": M({FILLING: "", SOFTMAX: "scores.exp() * mask / (scores.exp() * mask).sum(dim=-1, keepdim=True)"},
                         "{unusable} of your {count} weights are NaN where the largest of all scores is {score:.1f}.",
                         "You take exp of each score yourself: below -104 it is rounded to 0, and 0 / 0 is NaN; above 88 it "
                         "is infinite. Put -inf on the forbidden scores and call softmax, which subtracts the largest score "
                         "first."),
    },
    rules=(
        R(lambda case: _largest(case, on=False) > 1e-3 and _largest_score(case).abs() < 50, FORBIDDEN, "Where the mask is "
          "False the weight must be exactly 0, for every query of every review: put -inf on these scores, before the "
          "softmax."),
        R(lambda case: _largest(case, on=False) > 0, "a forbidden key gets a weight of {little} where the largest of all "
          "scores is {score:.1f}.", "Where the mask is False the weight must be exactly 0: put -inf on the score, before "
          "the softmax. A number such as -100 is low enough only where the other scores lie far above it."),
        R(lambda case: case.weights.sum(dim=-1).min() < 1e-5, ROWS, "Nothing is left for the allowed keys where a forbidden "
          "one scores far above them: the softmax gave it all. Put -inf on the forbidden scores before the softmax; what "
          "comes after it can't bring the rest back."),
        R(_rows_off, ROWS, "Each query's weights sum to one, over the keys it may look at."),
        R(lambda case: _context_off(case) > 1e-3, "your context is not weights @ value: it differs by up to {off:.3f}.",
          "Compute the context with the masked weights that you return."),
        R(lambda case: gap(case, "weights") > 1e-4, _weights_off, "Forbidden keys get nothing and rows sum to one, but the "
          "scores are not query · key / √d_k."),
        *reaches("query", "key", "value"),
    ),
    hints=(
        "Print weights.sum(dim=-1). What should each row sum to?",
        "What fraction of the weight went to forbidden keys before they were set to zero? Which step must prevent it?",
        "scores = scores.masked_fill(~mask, -math.inf), and only then the softmax.",
    ),
)

# ---------------------------------------------------------------- 4.4 two masks in one

def decoder_mask(attention_mask, query_len):
    key_len = attention_mask.shape[1]
    causal = torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)   # (query, key)
    return causal & attention_mask[:, None, None, :]                                      # (batch, 1, query, key)


def mask_probes(generator: torch.Generator) -> list[tuple]:
    """Ragged attention masks: as many queries as keys, fewer queries than keys, one drawn with gaps; sizes of one."""
    square = torch.arange(6) < torch.tensor([[6], [4], [1]])               # (batch, key)
    left = torch.tensor([[False, False, True, True, True], [True, True, True, True, False]])
    drawn = torch.rand(4, 9, generator=generator) < 0.7
    few = int(torch.randint(1, 4, (), generator=generator))
    return [(square, 6), (left, 3), (torch.ones(2, 4, dtype=torch.bool), 4), (drawn, few),
            (torch.tensor([[True]]), 1), (torch.tensor([[True, False, True]]), 1)]


def _first_wrong(case: Case) -> str:
    got, right = case.answer, case.expected
    b, _, i, j = (got != right).nonzero()[0].tolist()
    rule = "comes later" if not right[b, 0, i, j] else "came before or is itself, and is real"
    if not case.inputs[0][b, j]:
        rule = "is padding"
    seen = "allows" if got[b, 0, i, j] else "forbids"
    return f"in review {b} your mask {seen} query {i} to look at key {j}, which {rule}."


def _neither(case: Case) -> torch.Tensor:
    return case.answer[(case.answer != 0) & (case.answer != 1)]


def _shifted_by_length(attention_mask, query_len):
    key_len, real = attention_mask.shape[1], attention_mask.sum(dim=1)[:, None, None, None]    # (batch, 1, 1, 1)
    causal = torch.arange(key_len) <= torch.arange(query_len)[:, None] + real - query_len      # (batch, 1, query, key)
    return causal & attention_mask[:, None, None, :]


JOINED, PADDING, CAUSAL = ("causal & attention_mask[:, None, None, :]", "attention_mask[:, None, None, :]",
                           "torch.ones(query_len, key_len, dtype=torch.bool)")
COUNT = "{allowed} pairs are allowed, expected {right}: {first}"

BOTH_MASKS = ask(
    "4.4", decoder_mask, probes=mask_probes,
    signature="decoder_mask(attention_mask (batch, key), True = real word; query_len) -> mask (batch, 1, query, key), "
    "boolean",
    numbers=dict(first=_first_wrong, allowed=lambda case: int((case.answer != 0).sum()),
                 right=lambda case: int(case.expected.sum()), keys=lambda case: case.inputs[0].shape[1],
                 infinite=lambda case: int(case.answer.isinf().sum()), zero=lambda case: int((case.answer == 0).sum()),
                 other=lambda case: _neither(case)[0]),
    mistakes={
        "or": M({JOINED: f"causal | {PADDING}"}, COUNT, "The two masks are joined with 'or'. A pair must be allowed by "
                "both: use &."),
        "only-causal": M({JOINED: "causal.expand(len(attention_mask), 1, query_len, key_len)"}, "{first}", "The padding has "
                         "no effect; only the triangle is there."),
        "only-padding": M({JOINED: f"{PADDING}.expand(-1, 1, query_len, key_len)"}, "{first}", "Every query sees all real "
                          "keys; the triangle is missing."),
        "without-itself": M({"key_len - query_len": "key_len - query_len - 1"}, COUNT, "The triangle leaves out the "
                            "diagonal, so the first word has no key at all. A word may look at itself."),
        "upper": M({f"{CAUSAL}.tril(key_len - query_len)": f"{CAUSAL}.triu(key_len - query_len)"}, COUNT, "The triangle is "
                   "the upper one: words see what comes later and not what came before. Use tril."),
        "inverted": M({JOINED: f"~({JOINED})"}, COUNT, "The mask says who may *not* attend. Here True means may attend."),
        "queries-masked": M({PADDING: "attention_mask[:, None, -query_len:, None]"}, "{first}", "The padding is masked on "
                            "the queries (rows). It must be masked on the keys (columns): attention_mask[:, None, None, "
                            ":]."),
        "queries-masked-too": M({JOINED: f"{JOINED} & attention_mask[:, None, -query_len:, None]"}, "{first}", "This query "
                                "is padding itself, and you mask queries as well. Only keys are masked: a query without any "
                                "key gives no numbers (exercise 4.5)."),
        "shifted-by-length": M(_shifted_by_length, "{first}", "You count from the end of each review's real words. The "
                               "queries are the last positions of the batch, padding included: the shift is key_len - "
                               "query_len in every review."),
        "top-left": M({"key_len - query_len": "0"}, "with {inputs[1]} queries and {keys} keys: {first}", "The triangle is "
                      "aligned at the top left. The queries are the last positions, so query i may see keys up to i + "
                      "key_len - query_len."),
        "one-too-many": M({"key_len - query_len": "key_len - query_len + 1"}, COUNT, "The triangle reaches one key too far: "
                          "each word sees the next one."),
        "additive": M({JOINED: f"torch.zeros(()).masked_fill(~({JOINED}), -math.inf)"}, "{infinite} entries are -inf and "
                      "{zero} are 0.", "That is a mask to be added to the scores, and it allows the right pairs. The "
                      "exercise asks for a boolean mask: True where yours has 0."),
    },
    rules=(
        R(lambda case: len(_neither(case)), "your mask contains numbers other than 0 and 1, such as {other:.3g}.", "It must "
          "be boolean: True = may attend."),
        R(lambda case: (case.answer != case.expected).any(), "{first}", "Write down by hand which keys this query may see, "
          "and compare."),
    ),
    hints=(
        "Build the two masks separately, look at both, and join them at the end. Which one depends on the review?",
        "causal_mask(query_len, key_len) is (query, key). attention_mask[:, None, None, :] is (batch, 1, 1, key). "
        "Broadcasting does the rest.",
        "causal & padding: both must allow a pair.",
    ),
)

# ---------------------------------------------------------------- 4.5 repair: a query with no key

def safe_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)      # not -inf: no 0 divided by 0
    weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)               # the row without a key: zeros
    return weights @ value, weights


def no_key_probes(generator: torch.Generator) -> list[tuple]:
    """One query without a key; an empty review, whose mask (2, 1, 1, 5) is that of its padding; one key, forbidden; a
    forbidden key that scores far above the allowed ones; scores far above zero, and far below."""
    (query, key, value, mask), *_, high = masked_probes(generator)
    mask = mask.clone()
    mask[0, 0, 2] = False                                                  # this query has no key at all
    some = torch.tensor([[True, True, False, True], [False] * 4])
    one = [torch.randn(1, 1, 1, 1, generator=generator) for _ in range(3)]
    return [(query, key, value, mask), (query, key, value, (torch.arange(5) < torch.tensor([[3], [0]]))[:, None, None, :]),
            (*one, torch.zeros(1, 1, 1, 1, dtype=torch.bool)), tuple(part[None, None] for part in high), *(
            tuple(part[None, None] for part in (*_with_scores(size, generator), value[0, 0, :4, :3], some))
            for size in (160.0, -160.0))]


def observe_with_gradient(function, query, key, value, mask):
    """Context and weights, and the gradients that arrive at queries, keys and values."""
    given = (query, key, value)
    leaves = [part.clone().requires_grad_() for part in given]
    output = function(*leaves, mask)
    for part, leaf in zip(given, leaves):
        put_back(part, leaf)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    asked = "expected a context through which a gradient can flow back to queries, keys and values"
    if not isinstance(output[0], (torch.Tensor, list, tuple)):
        raise ValueError(f"{asked}; got {what(output[0])}. No gradient comes through NumPy: return tensors")
    if not context.requires_grad and mask.any():        # without any key the context is zeros, whatever the queries are
        raise ValueError(f"{asked}; yours is cut off from them, as by detach(), .data, no_grad() or a new torch.tensor(…)")
    return {"context": context, "weights": weights, **dict(zip(GRADIENTS, gradients_of(context.square(), leaves)))}


GRADIENTS = [f"gradient of the {part}" for part in ("queries", "keys", "values")]


def _broken(case: Case) -> str | None:
    """The gradient with the most numbers that aren't finite, and how many of them; None if all are finite."""
    worst = max(GRADIENTS, key=lambda part: _bad(case, part))
    return f"{_bad(case, worst)} numbers of the {worst} are NaN or infinite" if _bad(case, worst) else None


def _furthest(case: Case) -> tuple[float, str]:
    """How far off a gradient is, at most, and which."""
    return max((gap(case, part), part) for part in GRADIENTS)


def _bad(case: Case, name: str) -> int:
    return int((~torch.isfinite(case.got[name])).sum())


def _empty_row(case: Case) -> torch.Tensor:
    """The weights of the first query without a key, in the head where they are largest."""
    batch, _, query = (~case.inputs[3].any(-1)).nonzero()[0].tolist()
    rows = case.weights[batch, :, query]
    return rows[rows.abs().sum(-1).argmax()]


def _repaired_at_the_end(query, key, value, mask):
    context, weights = masked_attention(query, key, value, mask)
    return context.nan_to_num(), weights.nan_to_num()


EQUAL = "the query without a key gives each forbidden key a weight of {first:.3f}."
ZERO = ("With one large negative number everywhere, softmax sees equal scores. Set the forbidden weights to zero "
        "afterwards.")

NO_KEY = ask(
    "4.5", safe_attention, given="nan", probes=no_key_probes, observe=observe_with_gradient, forbidden=LIBRARY,
    signature="safe_attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value), mask, True = may "
    "attend) -> context (..., query, d_value), weights (..., query, key)",
    not_finite={
        "inf": "exp of a large score overflows. Call softmax, which takes care of that.",
        "-inf": "-inf belongs on scores, before a softmax, and a weight is never below 0. Fill with a large negative "
        "number, and call softmax.",
        "NaN": "A softmax over nothing but -inf gives that, and so does exp of a large score, which overflows. Fill with a "
        "large negative number, and call softmax."},
    numbers=dict(
        bad=lambda case: f"{_bad(case, 'weights')} of {case.weights.numel()} weights and {_bad(case, 'context')} of "
        f"{case.context.numel()} numbers of the context", broken=_broken, gradient=lambda case: _furthest(case)[1],
        gradient_off=lambda case: _furthest(case)[0],
        first=lambda case: _empty_row(case)[0], sum=lambda case: _empty_row(case).sum(),
        **{f"{part}_off": lambda case, part=part: gap(case, part) for part in ("weights", "context")}),
    mistakes={
        "nan": M(masked_attention, "{bad} are unusable.", "They are NaN. A row of -inf has no largest number; its softmax "
                 "is 0 divided by 0."),
        "uniform": M({"torch.finfo(scores.dtype).min": "-1e9", f"{SOFTMAX}.masked_fill(~mask, 0.0)": SOFTMAX}, EQUAL, ZERO),
        "uniform-added": M({"scores.masked_fill(~mask, torch.finfo(scores.dtype).min)":
                            "scores + torch.zeros(mask.shape).masked_fill(~mask, -1e9)",
                            f"{SOFTMAX}.masked_fill(~mask, 0.0)": SOFTMAX}, EQUAL,
                           "The large negative number is added to every score of that query, and softmax sees equal scores "
                           "again. Set the forbidden weights to zero afterwards."),
        "repaired-at-the-end": M(_repaired_at_the_end, "weights and context are right, but {broken}.", "The zeros come "
                                 "after the product. On the way back the values' gradient is weightsᵀ times the "
                                 "context's, and 0 "
                                 "times NaN is NaN. Mend the weights before they meet the values, or let no NaN arise."),
    },
    rules=(
        R(_broken, "{broken}.", "The outputs may look right; training would still break."),
        R(lambda case: _empty_row(case).abs().max() > 1e-6, "the query without a key has weights that sum to {sum:.3f}.",
          "It has nothing to look at: all its weights must be 0."),
        R(lambda case: gap(case, "weights") > 1e-4, "the queries that have keys changed as well: their weights differ by up "
          "to {weights_off:.3f}.", "Only the row without a key needs care. Softmax subtracts a row's largest score before "
          "exp; without that, exp of a large score overflows, and exp of a very low one is 0."),
        R(lambda case: gap(case, "context") > 1e-3, "your weights are right, but your context is off by up to "
          "{context_off:.3f}.", "Compute the context from the weights that you return, after fixing them."),
        R(lambda case: _furthest(case)[0] > 1e-3, "weights and context are right, but the {gradient} is off by up to "
          "{gradient_off:.3f}.", "Something cuts it on its way back or changes it: look for detach(), no_grad() or "
          ".data."),
    ),
    hints=(
        "What does softmax give for a row of -inf? Try torch.full((3,), -math.inf).softmax(dim=0).",
        "Use torch.finfo(scores.dtype).min in place of -inf: then nothing is undefined. What does that row contain now?",
        "weights = weights.masked_fill(~mask, 0.0) after the softmax.",
    ),
)

# ---------------------------------------------------------------- 4.6 design a head

DULL, BUT, MOVING = range(3)                            # the rows that are asked for; 'not' may look where it likes


def design_head():
    # first column: each opinion seeks the opposite one; second: 'but' pushes 'not' and itself down
    W_q = torch.tensor([[6.0, 0.0], [0.0, 0.0], [0.0, 6.0]])
    W_k = torch.tensor([[-1.0, 0.0], [0.0, -1.0], [0.0, -1.0]])
    W_v = torch.tensor([[1.0], [0.0], [0.0]])
    return W_q, W_k, W_v


def _design(opinion=-1.0, but=(0.0, -1.0, -1.0), home=(1.0, 0.0, 0.0)):
    """`but` is what opinion, 'not' and 'but' are found by when 'but' asks; large numbers, for clear weights."""
    def design():
        W_q = 40 * torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
        return W_q, torch.tensor([[opinion, but[0]], [0.0, but[1]], [0.0, but[2]]]), torch.tensor(home)[:, None]
    return design


def observe_design(function):
    """Weights and context of 'dull', 'but' and 'moving' with the matrices that the function returns."""
    output = function()
    if output is None:
        return None
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"one tensor, {tuple(output.shape)}" if isinstance(output, torch.Tensor) else what(output)
        raise TypeError(f"expected three matrices, W_q, W_k and W_v, got {got}. End with `return W_q, W_k, W_v`")
    W_q, W_k, W_v = (one_tensor(part, name).double() for part, name in zip(output, ("W_q", "W_k", "W_v")))
    for matrix, name, columns in ((W_q, "W_q", "d_k"), (W_k, "W_k", "d_k"), (W_v, "W_v", "1")):
        if matrix.dim() != 2 or len(matrix) != 3 or (name == "W_v" and matrix.shape[1] != 1):
            raise ValueError(f"expected {name} of shape (3, {columns}), one row for each number of a word, got "
                             f"{tuple(matrix.shape)}")
    if W_q.shape != W_k.shape:
        raise ValueError(f"expected W_q and W_k with the same number of columns, got {tuple(W_q.shape)} and "
                         f"{tuple(W_k.shape)}: a query and a key must have a dot product")
    x = torch.tensor([[0, 1, 0], [-1, 0, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)   # not dull but moving
    weights = ((x @ W_q) @ (x @ W_k).T / W_q.shape[1] ** 0.5).softmax(dim=-1)
    return {"weights": weights[1:], "context": (weights @ x @ W_v)[1:]}


DULL_GIVES, BUT_GIVES, MOVING_GIVES = (f"'{word}' gives not, dull, but and moving {{{word}}}." for word in
                                       ("dull", "but", "moving"))
HOME = "the contexts of dull, but and moving are {home}."

DESIGN = ask(
    "4.6", design_head, probes=lambda generator: [()], observe=observe_design, tolerance=0.05,   # the notebook's four words
    signature="design_head() -> W_q (3, d_k), W_k (3, d_k), W_v (3, 1)",
    numbers=dict(home=lambda case: listed(case.context[:, 0], ".2f"),
                 **{word: lambda case, row=row: listed(case.weights[row], ".2f") for row, word in
                    enumerate(("dull", "but", "moving"))}),
    mistakes={
        "finds-its-like": M(_design(opinion=1.0), DULL_GIVES, "It finds itself, since minus times minus is plus. To find "
                            "the opposite opinion, flip the sign in the query or in the key, but not in both."),
        "silent-but": M(_design(but=(0.0, 0.0, 0.0)), BUT_GIVES, "That is an equal weight for every word: the scores of "
                        "'but' are all the same. It needs a query of its own, in a column that the opinions don't use."),
        "but-seeks-one": M(_design(but=(1.0, 0.0, 0.0)), BUT_GIVES, "It finds one opinion only. A score that comes from the "
                           "opinion is plus for one and minus for the other. Which score could the two share?"),
        "but-seeks-the-rest": M(_design(but=(0.0, 1.0, 1.0)), BUT_GIVES, "The sign is flipped: the words to leave out have "
                                "the high scores. Push them down."),
        "not-left-in": M(_design(but=(0.0, 0.0, -1.0)), BUT_GIVES, "'not' gets as much as the opinions: its score is the "
                         "same as theirs, and a score of zero isn't a weight of zero. Push it down too."),
        "but-left-in": M(_design(but=(0.0, -1.0, 0.0)), BUT_GIVES, "'but' keeps as much for itself as it gives each "
                         "opinion: its own key has the score of theirs. Push it down too."),
        "home-turned": M(_design(home=(-1.0, 0.0, 0.0)), HOME, "The weights are right, but the signs of the contexts are "
                         "flipped: a word takes home the opinion that it finds, so W_v takes the opinion as it is."),
        "home-empty": M(_design(home=(0.0, 1.0, 0.0)), HOME, "The weights are right, but the values that they average "
                        "contain no opinion. W_v has one row for each number of a word; opinion is the first."),
    },
    rules=(
        R(lambda case: (case.weights[DULL, 3] - 1).abs() > 0.05, DULL_GIVES, "It should give 'moving' all but 0.05. If "
          "'moving' comes first already, multiply W_q or W_k; if it doesn't, work out the four scores of 'dull' on paper."),
        R(lambda case: (case.weights[MOVING, 1] - 1).abs() > 0.05, MOVING_GIVES, "It should give 'dull' all but 0.05. If "
          "'dull' comes first already, multiply W_q or W_k; if it doesn't, work out the four scores of 'moving' on paper."),
        R(lambda case: (case.weights[BUT, [1, 3]] - 0.5).abs().max() > 0.05, BUT_GIVES, "It should give 'dull' and 'moving' "
          "one half each: the same score for both, and a much lower one for 'not' and 'but'."),
        R(lambda case: gap(case, "context") > 0.05, HOME, "The weights are right. The context is weights @ (x @ W_v), and "
          "the opinions found are 1, 0 and -1: which column of x holds them?"),
    ),
    hints=(
        "You need two kinds of query, so two columns will do: one for the opinions, one for 'but'. Start with the "
        "opinions alone.",
        "For 'but': two scores of 0, and two far below 0. Which words must have a negative key in its column?",
        "W_q = [[6, 0], [0, 0], [0, 6]]. The first column of W_k holds -1 for opinion, the second -1 for negates and "
        "contrasts.",
    ),
)

# ---------------------------------------------------------------- 4.7 a head as a module

class Head(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k)
        self.W_k = nn.Linear(d_model, d_k)
        self.W_v = nn.Linear(d_model, d_k)

    def forward(self, x, mask):                                            # (batch, seq_len, d_model)
        return attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)


def attention(query, key, value, mask=None, dim=-1, root=None, fill=-math.inf):
    scores = query @ key.transpose(-2, -1) / math.sqrt(root or query.shape[-1])   # (batch, query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, fill)
    weights = scores.softmax(dim=dim)
    return weights @ value, weights


LAYERS = ("W_q", "W_k", "W_v")


def head_probes(generator: torch.Generator) -> list[tuple]:
    """Sizes of the head, a batch of vectors, a mask: ragged padding (batch, 1, key); one word; then a triangle."""
    ragged = torch.arange(5) < torch.tensor([[5], [3], [2]])               # (batch, key)
    return [(6, 4, torch.randn(3, 5, 6, generator=generator), ragged[:, None, :]),
            (3, 5, torch.randn(2, 1, 3, generator=generator), torch.ones(2, 1, 1, dtype=torch.bool)),
            (4, 2, torch.randn(2, 4, 4, generator=generator), torch.ones(4, 4, dtype=torch.bool).tril())]


def observe_head(answer, d_model, d_k, x, mask):
    """The names of the parameters and how many numbers they have; context and weights with weights filled in, and what two
    calls differ by; how many numbers a gradient reaches."""
    try:
        head = answer(d_model, d_k)
    except AttributeError as error:
        if "before Module.__init__() call" not in str(error):
            raise
        raise TypeError("expected `super().__init__()` as the first line of __init__: it prepares the place where the "
                        "module keeps its layers, and you assign one before") from None
    if not isinstance(head, nn.Module):
        return no_module(head)
    named = dict(head.named_parameters())
    found = {"names": ", ".join(sorted(named)), "parameters": sum(parameter.numel() for parameter in named.values())}
    filled = torch.Generator().manual_seed(d_model)
    with torch.no_grad():
        for name in (f"{layer}.{part}" for layer in LAYERS for part in ("weight", "bias")):
            numbers = torch.randn(named[name].shape if name in named else (d_k,), generator=filled)
            if name in named:
                named[name].copy_(numbers)
    output = head(x, mask)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    if context.requires_grad and named:
        gradients = torch.autograd.grad(context.square().sum(), list(named.values()), allow_unused=True)
        reached_numbers = sum(g.numel() for g in gradients if g is not None)
    else:
        reached_numbers = 0
    return {**found, "context": context.detach(), "weights": weights.detach(), "trained": reached_numbers}


def _head(layers=None, forward=None):
    """A head with other layers, `layers(self, d_model, d_k)`, or another `forward(self, x, mask)`."""
    class Made(nn.Module):
        def __init__(self, d_model, d_k):
            super().__init__()
            for name in LAYERS:
                setattr(self, name, nn.Linear(d_model, d_k))
            if layers:
                layers(self, d_model, d_k)

        def forward(self, x, mask):
            if forward:
                return forward(self, x, mask)
            return attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)

    return Made


class _HeadInAList(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.layers = [nn.Linear(d_model, d_k) for _ in LAYERS]

    def forward(self, x, mask):
        return attention(*(layer(x) for layer in self.layers), mask)


class _HeadOfOne(nn.Module):
    def __init__(self, d_model, d_k):
        super().__init__()
        self.W_q = self.W_k = self.W_v = nn.Linear(d_model, d_k)

    def forward(self, x, mask):
        return attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)


def _without_bias(self, d_model, d_k):
    for name in LAYERS:
        setattr(self, name, nn.Linear(d_model, d_k, bias=False))


def _hidden(case: Case) -> torch.Tensor:
    """The largest weight on a key that the mask forbids."""
    return case.weights[~case.inputs[3].expand(case.weights.shape)].nan_to_num().abs().max()


HAS = "head.parameters() finds {parameters:.0f} numbers, expected {expected_parameters:.0f}."
FIRST = "with weights filled in, the first word of the first text gives its keys {first}, expected {right_first}."
TAKES = "with weights filled in, the context of the first word is [{home}], expected [{right_home}]."

HEAD = ask(
    "4.7", Head, probes=head_probes, observe=observe_head,
    signature="Head(d_model, d_k) -> a module that maps x (batch, seq_len, d_model) and a mask, True = may attend, to "
        "context "
    "(batch, seq_len, d_k) and weights (batch, query, key)",
    numbers=dict(parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
                 names=lambda case: case.names or "nothing", trained=lambda case: case.trained,
                 expected_trained=lambda case: case.right["trained"], rows=lambda case: spread(case.weights.sum(dim=-1)),
                 columns=lambda case: spread(case.weights.sum(dim=-2)), hidden=_hidden,
                 first=lambda case: listed(case.weights[0, 0]), right_first=lambda case: listed(case.right["weights"][0, 0]),
                 home=lambda case: listed(case.context[0, 0]), right_home=lambda case: listed(case.right["context"][0, 0]),
                 shape=lambda case: tuple(case.context.shape), expected_shape=lambda case:
                     tuple(case.right["context"].shape),
                 shapes=lambda case: f"{tuple(case.context.shape)} and {tuple(case.weights.shape)}"),
    not_finite={"NaN": "Every query here has a key it may look at. 0 times -inf gives NaN, and so does a row in which all "
                "keys are hidden: fill where the mask is False, and nowhere else."},
    mistakes={
        "in-a-list": M(_HeadInAList, HAS, "PyTorch finds a layer that __init__ makes an attribute, such as self.W_q. It "
                       "finds none in a plain list, nor one made in forward, so no optimizer would train them."),
        "one-layer-for-all": M(_HeadOfOne, HAS, "One layer serves as all three. Then a word is found by what it looks for "
                               "(section 3): make three."),
        "no-bias": M(_head(_without_bias), HAS, "The biases are missing: d_k numbers in each layer, which nn.Linear has "
                     "unless it's told not to."),
        "mask-ignored": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), self.W_v(x), None)),
                          "a forbidden key gets a weight of {hidden:.3f}.", "The mask has no effect: give it to attention "
                          "as "
                          "well, mask=mask."),
        "mask-inverted": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), self.W_v(x), ~mask,
            fill=-1e9)),
                           "a forbidden key gets a weight of {hidden:.3f}.", "The mask is the wrong way round: True means "
                           "may "
                           "attend, and attention wants it as it comes."),
        "filled-with-zero": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), self.W_v(x), mask,
            fill=0.0)),
                              "a forbidden key gets a weight of {hidden:.3f}.", "Its score is 0, and e⁰ = 1 isn't small: "
                              "fill "
                              "with -inf (section 5)."),
        "no-scaling": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), self.W_v(x), mask, root=1)),
            FIRST,
                        "The scores aren't divided by √d_k."),
        "scaled-by-the-model": M(_head(forward=lambda self, x, mask: attention(
            self.W_q(x), self.W_k(x), self.W_v(x), mask, root=x.shape[-1])), FIRST, "The scores are divided by √d_model. A "
            "score is a sum of d_k products: divide by √d_k."),
        "softmax-over-queries": M(_head(forward=lambda self, x, mask: attention(
            self.W_q(x), self.W_k(x), self.W_v(x), mask, dim=-2, fill=-1e9)), "your rows sum to {rows}, your columns to "
            "{columns}.", "The softmax runs over the queries. It must run over the keys, the last dimension."),
        "x-handed-over": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), x, mask)), "your context "
            "has "
                           "the shape {shape}, expected {expected_shape}.", "You average the rows of x. What is handed "
                           "over is "
                           "the value, self.W_v(x)."),
        "keys-handed-over": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), self.W_k(x), mask)),
            TAKES,
                              "The weights are right, but you average the keys. The context is the mean of the values."),
        "query-and-key-swapped": M(_head(forward=lambda self, x, mask: attention(
            self.W_k(x), self.W_q(x), self.W_v(x), mask)), FIRST, "W_q and W_k have changed places: the query asks, the "
            "key is found."),
        "swapped": M(_head(forward=lambda self, x, mask: attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)[::-1]),
                     "you return shapes {shapes}.", "Context and weights are in the wrong order: return what attention "
                     "gives, context first."),
        "cut-off": M(_head(forward=lambda self, x, mask: attention(self.W_q(x).detach(), self.W_k(x), self.W_v(x), mask)),
                     "a gradient reaches {trained:.0f} of {expected_trained:.0f} numbers.", "Something cuts it off, such as "
                     "detach(), .data or no_grad(), so not all of the matrices are trained."),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], HAS, "There are three layers, each "
          "nn.Linear(d_model, d_k), with its bias."),
        R(lambda case: case.names != case.right["names"], "the parameters of your module are {names}.", "Call the three "
            "layers "
          "self.W_q, self.W_k and self.W_v: later cells look for these names."),
        R(lambda case: _hidden(case) > 0 if (~case.inputs[3]).any() else False, "a forbidden key gets a weight of "
            "{hidden:.3f}.",
          "Where the mask is False the weight must be exactly 0 (section 5)."),
        R(lambda case: (case.weights.sum(dim=-1) - 1).abs().max() > 1e-3, "your rows sum to {rows}.", "Each word's weights "
            "sum "
          "to one, over the keys that it may look at."),
        R(lambda case: gap(case, "weights") > 1e-4, FIRST, "Queries are self.W_q(x), keys self.W_k(x), and attention does "
            "the "
          "rest."),
        R(lambda case: gap(case, "context") > 1e-4, TAKES, "The weights are right. The context is weights @ self.W_v(x)."),
        R(lambda case: case.trained != case.right["trained"], "a gradient reaches {trained:.0f} of {expected_trained:.0f} "
          "numbers.", "Something cuts it off: detach(), .data, no_grad(), item(), NumPy."),
    ),
    hints=(
        "It has the form of 03's Bag: super().__init__(), then the layers; forward uses them.",
        "self.W_q = nn.Linear(d_model, d_k), and two more like it. In forward, self.W_q(x) are the queries.",
        "return attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: row-below-one
  taught: "04"
  question: A row of attention weights for four words is 0.4, 0.3, 0.2, 0.0. What happened?
  options:
    - text: Nothing unusual; attention weights needn't sum to one.
      remark: They do, in every row that has a key. Softmax takes care of that, unless something is done to the weights
        afterwards.
    - text: A mask was applied after the softmax.
      right: true
      remark: Softmax gives rows that sum to one; then something was taken away.
    - text: The scores weren't divided by √d_k before the softmax.
      remark: That changes how sharp a row is, not its sum.
- name: who-asks
  taught: "04"
  question: "'dull' should find 'not'. Which two must agree?"
  options:
    - text: The query of 'dull' and the key of 'not'.
      right: true
      remark: The word that looks uses its query; the word that is found uses its key.
    - text: The query of 'not' and the key of 'dull'.
      remark: That lets 'not' find 'dull'.
    - text: The key of 'not' and the value of 'not'.
      remark: These two never meet. The value is handed over, not compared.
- name: double-width
  taught: "04"
  question: You double d_k from 64 to 128, with random weights and no scaling. What happens to the standard deviation of
    the scores?
  options:
    - text: It doubles, as the width does.
      remark: The variance doubles. The standard deviation is its root.
    - text: It stays the same, because the weights are random.
      remark: It does once you divide by √d_k. Without that, a longer sum of random products spreads further.
    - text: It grows by a factor of √2.
      right: true
      remark: Variances add up, so the variance doubles and its root grows by √2.
- name: padding-moves
  taught: "04"
  question: A review is padded from 20 to 50 tokens, and its logits change in the second decimal. Where do you look
    first?
  options:
    - text: At the learning rate, which doesn't suit long batches.
      remark: It only acts in training, and it doesn't know how long the padding is.
    - text: At √d_k, which has to grow with the number of tokens.
      remark: d_k is the width of a query. It has nothing to do with the length of the text.
    - text: At the key mask, and at the mean over words.
      right: true
      remark: Padding has got in, as a key (section 5) or in the mean (notebook 03).
- name: same-ids
  taught: "02"
  question: Two reviews with opposite labels have been turned into the same ids. Can attention tell them apart?
  options:
    - text: No, because the same ids give the same vectors everywhere.
      right: true
      remark: The same function of the same input is the same.
    - text: Yes, because it looks at the context of every word.
      remark: "The context is the same as well: the same words around the same words."
    - text: Only with a causal mask, which shows the order of the words.
      remark: That helps where the same ids come in a different order. Here the order is the same too.
- name: hands-over-and-rows
  taught: "04"
  question: "'the', 'not' and 'good' hand over +6, −9 and +3; above zero is positive. 'the' and 'good' look at 'not' alone,
    and 'not' looks at 'the' alone. What is the verdict on 'the not good'?"
  options:
    - text: Positive, because the opinion, 'good', hands over +3.
      remark: Nobody looks at 'good', so nobody takes its +3 home.
    - text: Negative, because they take home −9, +6 and −9.
      right: true
      remark: Their mean is −4. 'good' counts only by where it looks (section 6).
    - text: Undecided, because +6, −9 and +3 add up to 0.
      remark: That's what they hand over. The verdict is the mean of what they take home.
"""

WARM_UP = """
- name: what-not-adds
  taught: "03"
  question: A bag averages word vectors and reads two logits off the mean. It reads 'dull' and 'moving'. Now 'not' is put
    before each. What does 'not' add to the sum of the vectors?
  options:
    - text: Praise beside 'dull', blame beside 'moving'.
      remark: That's what one would want. But the vector of 'not' is one row of the table, whatever stands beside it.
    - text: The same vector beside both.
      right: true
      remark: A word has one vector. So no weights can make the bag read all four right.
    - text: Nothing, because 'not' isn't an opinion.
      remark: Its row is added like any other; training decides what it holds.
- name: true-in-a-mask
  taught: "02"
  question: In a batch, row 1 of the attention mask is True, True, True, False. What does the False stand for?
  options:
    - text: A word that isn't in the vocabulary.
      remark: An unknown word is a real token, <unk>, and its entry is True.
    - text: Padding, which fills the row to the width of the batch.
      right: true
      remark: The review has three tokens, and a longer one in the batch has four.
    - text: A word that the model has to guess.
      remark: Nothing is guessed here. The mask only says which entries are tokens of the review.
- name: softmax-of-a-shift
  taught: "00"
  question: The scores of a row are 1, 2 and 3. You add 10 to all three. What does softmax give now?
  options:
    - text: The same as before.
      right: true
      remark: Every exponential is e¹⁰ times as large, and so is their sum. Only differences between scores count.
    - text: Nearly everything to the last one.
      remark: That's what multiplying by 10 does. Adding leaves the differences as they are.
    - text: Nearly equal weights, because the differences are small beside 10.
      remark: "The ratio of two weights is e to the power of their scores' difference, and that hasn't changed."
"""
