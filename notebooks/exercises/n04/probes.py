"""What the exercises of notebook 04 try an answer on, and what they look at. `ask` has what they say of it."""

import torch

from course_exercises.common import (
    gradients_of,
    not_contiguous,
    one_tensor,
    put_back,
    reached,
    two_results,
    what,
)

# ---------------------------------------------------------------- 4.2 scaled dot-product attention

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

# ---------------------------------------------------------------- 4.3 repair: the mask

def masked_probes(generator: torch.Generator) -> list[tuple]:
    """Attention inputs and a mask (2, 1, 4, 5) that leaves each query two keys or more, never all, and not the same ones.

    Then all scores low; one key allowed of two; a query whose scores are exactly 0; a forbidden key far above the others.
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
    return [(query, key, value, mask), (low_query, low_key, value, mask), (*one, torch.tensor([[[[False, True]]]])), idle,
            high]


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

# ---------------------------------------------------------------- 4.4 two masks in one

def mask_probes(generator: torch.Generator) -> list[tuple]:
    """Ragged attention masks: as many queries as keys, fewer queries than keys, one drawn with gaps; sizes of one."""
    square = torch.arange(6) < torch.tensor([[6], [4], [1]])               # (batch, key)
    left = torch.tensor([[False, False, True, True, True], [True, True, True, True, False]])
    drawn = torch.rand(4, 9, generator=generator) < 0.7
    few = int(torch.randint(1, 4, (), generator=generator))
    return [(square, 6), (left, 3), (torch.ones(2, 4, dtype=torch.bool), 4), (drawn, few),
            (torch.tensor([[True]]), 1), (torch.tensor([[True, False, True]]), 1)]

# ---------------------------------------------------------------- 4.5 repair: a query with no key

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
    """Context and weights, and the gradient that arrives at the queries."""
    leaf = query.clone().requires_grad_()
    output = function(leaf, key, value, mask)
    put_back(query, leaf)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    asked = "expected a context through which a gradient can flow back to the queries"
    if not isinstance(output[0], (torch.Tensor, list, tuple)):
        raise ValueError(f"{asked}; got {what(output[0])}. No gradient comes through NumPy: return tensors")
    if not context.requires_grad and mask.any():        # without any key the context is zeros, whatever the queries are
        raise ValueError(f"{asked}; yours is cut off from them, as by detach(), .data, no_grad() or a new torch.tensor(…)")
    return {"context": context, "weights": weights, "gradient": gradients_of(context.square(), [leaf])[0]}

# ---------------------------------------------------------------- 4.6 design a head

def design_probes(generator: torch.Generator) -> list[tuple]:
    """One set of inputs, without any: the four words are those of the notebook."""
    return [()]


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
