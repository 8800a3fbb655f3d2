"""The course's answers to the exercises of notebook 07, and what each known mistake would write."""

import torch
from torch import nn

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 7.1

def strong_praise():
    h_1 = max(2 + 0 - 1, 0)                                                # 1: it fires, though nothing is negated
    h_2 = max(-2 + 0 - 1, 0)                                               # 0
    # Strong praise comes out as no opinion at all. relu(opinion + 2 · negated - 2) would do for opinions up to 2.
    return [h_1, h_2, 2 - 2 * h_1 + 2 * h_2]


HIDDEN = Answers(
    strong_praise,
    mutants={
        "unchanged": lambda: [0, 0, 2],
        "no-relu": lambda: [1, -3, -6],
        "no-residual": lambda: [1, 0, -2],
        "as-negated": lambda: [2, 0, -2],
        "wrong-way": lambda: [1, 0, 4],
        "other-unit": lambda: [0, 1, 4],
        "once": lambda: [1, 0, 1],
        "opinion-of-one": lambda: [0, 0, 1],
    },
)

# ---------------------------------------------------------------- 7.2

def norm_by_hand(x, weight, bias, eps=1e-5):
    deviations = x - x.mean(dim=-1, keepdim=True)                          # (batch, seq_len, d_model)
    variance = (deviations**2).mean(dim=-1, keepdim=True)                  # (batch, seq_len, 1), divided by d
    return deviations / torch.sqrt(variance + eps) * weight + bias


def _norm(dim=-1, correction=0, root=True, outside=False, use_eps=True, centre=True, squares_of_x=False, scale=True,
          shift=True, shift_first=False):
    """Layer norm with one or more things changed."""
    def norm(x, weight, bias, eps=1e-5):
        deviations = x - x.mean(dim=dim, keepdim=True) if centre else x
        if squares_of_x or not centre:
            variance = x.square().mean(dim=dim, keepdim=True)
        else:
            variance = x.var(dim=dim, keepdim=True, correction=correction)
        inside = 0.0 if outside or not use_eps else eps
        divisor = torch.sqrt(variance + inside) if root else variance + inside
        y = deviations / (divisor + eps if outside else divisor)
        if shift_first:
            return (y + bias) * weight
        return (y * weight if scale else y) + (bias if shift else 0.0)
    return norm


NORM = Answers(
    norm_by_hand,
    mutants={
        "over-words": _norm(dim=1),
        "over-text": _norm(dim=(1, 2)),
        "over-words-from-the-end": _norm(dim=-2),
        "over-text-from-the-end": _norm(dim=(-2, -1)),
        "third-dimension": _norm(dim=2),
        "over-batch": _norm(dim=0),
        "d-minus-1": _norm(correction=1),
        "eps-outside": _norm(outside=True),
        "std-plus-eps": _norm(correction=1, outside=True),
        "no-eps": _norm(use_eps=False),
        "no-root": _norm(root=False),
        "not-centred": _norm(centre=False),
        "squares-of-x": _norm(squares_of_x=True),
        "no-scale-no-shift": _norm(scale=False, shift=False),
        "no-shift": _norm(shift=False),
        "no-scale": _norm(scale=False),
        "shift-first": _norm(shift_first=True),
    },
)

# ---------------------------------------------------------------- 7.3

def post_norm_order():
    """E B D C F A. As rules: (line, a later line, the mistake if they stand the other way round)."""
    return [
        ("E", "B", "unknown-change"), ("C", "F", "unknown-transformed"), ("E", "C", "feed-forward-first"),
        ("E", "D", "norm-before-attention"), ("B", "D", "norm-before-sum"), ("B", "C", "side-by-side"),
        ("D", "A", "norms-swapped"), ("D", "C", "norm-too-late"), ("F", "A", "last-norm-too-early"),
    ]


POST_NORM = Answers(
    post_norm_order,
    mutants={
        "unknown-change": lambda: "B E D C F A",
        "unknown-transformed": lambda: "E B D F C A",
        "feed-forward-first": lambda: "C F A E B D",
        "norm-before-attention": lambda: "D E B C F A",
        "norm-before-sum": lambda: "E D B C F A",
        "side-by-side": lambda: "E C B D F A",
        "norms-swapped": lambda: "E B A C F D",
        "norm-too-late": lambda: "E B C D F A",
        "last-norm-too-early": lambda: "E B D C A F",
    },
)

# ---------------------------------------------------------------- 7.4

def pre_norm_stack(x, layers, last_norm, mask):
    for attention, feed_forward, norm_1, norm_2 in layers:
        x = x + attention(norm_1(x), mask)                                 # (batch, seq_len, d_model)
        x = x + feed_forward(norm_2(x))
    return last_norm(x)


def _stack(block, first_again=False, last="once", masked=True):
    """A stack of `block`s, each (x, attention, feed_forward, norm_1, norm_2) -> x."""
    def stack(x, layers, last_norm, mask):
        for parts in layers:
            attention, feed_forward, norm_1, norm_2 = layers[0] if first_again else parts
            x = block(x, lambda y, attend=attention: attend(y, mask if masked else None), feed_forward, norm_1, norm_2)
            x = last_norm(x) if last == "each" else x
        return last_norm(x) if last == "once" else x
    return stack


def _pre(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def _post(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


def _from_norm(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + feed_forward(x)


def _feed_forward_first(x, attention, feed_forward, norm_1, norm_2):
    x = x + feed_forward(norm_2(x))
    return x + attention(norm_1(x))


STACK = Answers(
    pre_norm_stack,
    mutants={
        "post-norm": _stack(_post),
        "residual-from-norm": _stack(_from_norm),
        "no-residual": _stack(lambda x, a, f, n, m: f(m(a(n(x))))),
        "attention-replaces": _stack(lambda x, a, f, n, m: (y := a(n(x))) + f(m(y))),
        "feed-forward-replaces": _stack(lambda x, a, f, n, m: f(m(x + a(n(x))))),
        "no-norms": _stack(lambda x, a, f, n, m: (y := x + a(x)) + f(y)),
        "attention-not-normed": _stack(lambda x, a, f, n, m: (y := x + a(x)) + f(m(y))),
        "feed-forward-not-normed": _stack(lambda x, a, f, n, m: (y := x + a(n(x))) + f(y)),
        "same-norm-twice": _stack(lambda x, a, f, n, m: (y := x + a(n(x))) + f(n(y))),
        "no-last-norm": _stack(_pre, last="never"),
        "last-norm-in-the-loop": _stack(_pre, last="each"),
        "first-layer-again": _stack(_pre, first_again=True),
        "no-mask": _stack(_pre, masked=False),
        "no-feed-forward": _stack(lambda x, a, f, n, m: x + a(n(x))),
        "feed-forward-first": _stack(_feed_forward_first),
        "side-by-side": _stack(lambda x, a, f, n, m: x + a(n(x)) + f(m(x))),
    },
)

# ---------------------------------------------------------------- 7.5

class BlockStack(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.blocks = nn.ModuleList([make_block() for _ in range(num_layers)])     # visible, and a new one each time

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def _chain(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def _block_stack(make, run=_chain):
    """A stack with blocks made by make(num_layers, make_block) and run by run(blocks, x)."""
    class Stack(nn.Module):
        def __init__(self, num_layers, make_block):
            super().__init__()
            self.blocks = make(num_layers, make_block)

        def forward(self, x):
            return run(self.blocks, x)

    return Stack


class _Overwritten(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        for _ in range(num_layers):
            self.block = make_block()

    def forward(self, x):
        return self.block(x)


class _MadeInForward(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.num_layers, self.make_block = num_layers, make_block

    def forward(self, x):
        return _chain([self.make_block() for _ in range(self.num_layers)], x)


def _made(count=lambda n: n):
    return lambda n, make_block: nn.ModuleList(make_block() for _ in range(count(n)))


def _residual_again(blocks, x):
    for block in blocks:
        x = x + block(x)
    return x


def _without_gradient(blocks, x):
    with torch.no_grad():
        return _chain(blocks, x)


def _each_on_x(blocks, x):
    return [block(x) for block in blocks][-1]


DEPTH = Answers(
    BlockStack,
    mutants={
        "as-given": _block_stack(lambda n, make: [make()] * n),
        "plain-list": _block_stack(lambda n, make: [make() for _ in range(n)]),
        "repeated-block": _block_stack(lambda n, make: nn.ModuleList([make()] * n)),
        "made-in-forward": _MadeInForward,
        "overwritten": _Overwritten,
        "one-too-few": _block_stack(_made(lambda n: n - 1)),
        "one-too-many": _block_stack(_made(lambda n: n + 1)),
        "not-chained": _block_stack(_made(), _each_on_x),
        "only-first": _block_stack(_made(), lambda blocks, x: blocks[0](x)),
        "reversed": _block_stack(_made(), lambda blocks, x: _chain(reversed(blocks), x)),
        "residual-again": _block_stack(_made(), _residual_again),
        "cut-off": _block_stack(_made(), _without_gradient),
    },
)

ANSWERS = (HIDDEN, NORM, POST_NORM, STACK, DEPTH)
