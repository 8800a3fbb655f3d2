"""What the exercises of notebook 06 try an answer on, and what they look at. `ask` has what they say of it."""

import torch
from torch import nn

from course_exercises.common import no_module, one_tensor, reached


def _number(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high, (), generator=generator))

# ---------------------------------------------------------------- 6.1 the table from any position on

def row_probes(generator: torch.Generator) -> list[tuple]:
    """(first, count, d_model): from position 0, twice from a later position; one row, one hand, both; far along."""
    return [(0, 4, 6), (_number(5, 15, generator), 3, 8), (_number(20, 40, generator), 5, 10),
            (_number(5, 15, generator), 1, 4), (_number(5, 15, generator), 3, 2), (0, 1, 2),
            (_number(600, 900, generator), 2, 6)]

# ---------------------------------------------------------------- 6.3 repair: a module with a given table

def table_probes(generator: torch.Generator) -> list[tuple]:
    """(table, x, offset): four words from position 3 on; one word at position 5; a table that ends with the last word."""
    return [(torch.randn(9, 6, generator=generator), torch.randn(2, 4, 6, generator=generator), 3),
            (torch.randn(7, 4, generator=generator), torch.randn(3, 1, 4, generator=generator), 5),
            (torch.randn(3, 1, generator=generator), torch.randn(1, 2, 1, generator=generator), 1)]


def _holds(tensors, table: torch.Tensor) -> int:
    """Whether some tensors together hold the table's numbers, in one piece or row by row, in whatever order."""
    held = [t.detach().flatten().to(table.dtype) for t in tensors]
    return int(bool(held) and bool(torch.isin(table.flatten(), torch.cat(held)).all()))


def observe_module(answer, table, x, offset):
    """The sums at both offsets; whether the table is saved and moved with the model; how many numbers are trained.

    "loaded" is what a second module, made of another table and moved to float64, adds once it has loaded the first one's
    state: a table that is saved and never used shows here.
    """
    module = answer(table.clone())
    if not isinstance(module, nn.Module):
        return no_module(module)
    try:
        start, shifted = module(x), module(x, offset)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise TypeError("expected a module that takes x alone and also x and offset, forward(self, x, offset=0), and yours "
                        f"doesn't ({error})") from None
    second = answer(torch.zeros_like(table)).to(torch.float64)
    second.load_state_dict(module.state_dict())
    return {
        "start": start, "offset": shifted, "loaded": second(x.double(), offset),
        "saved": _holds(module.state_dict().values(), table),
        "moved": _holds([*module.parameters(), *module.buffers()], table),
        "trained": sum(p.numel() for p in module.parameters() if p.requires_grad),
        **reached(module, shifted, (x, offset), {0: "x"}),
    }

# ---------------------------------------------------------------- 6.4 rotary

def rotary_probes(generator: torch.Generator) -> list[tuple]:
    """x (batch 2, heads 3, length 5, d_head 8) from position 0; (heads 2, length 4, d_head 6) from a later position.

    Then one head with one word of one pair, and large numbers that are not in order in memory.
    """
    return [(torch.randn(2, 3, 5, 8, generator=generator), 0),
            (torch.randn(2, 4, 6, generator=generator), _number(2, 9, generator)),
            (torch.randn(1, 1, 2, generator=generator), _number(2, 9, generator)),
            (100 * torch.randn(1, 4, 3, generator=generator).mT, 1)]


def observe_rotary(function, x, offset):
    """The turned vectors, and whether a gradient reaches x."""
    output = function(x, offset)
    if output is None:
        return None
    return {"": one_tensor(output, "the turned vectors"), **reached(function, output, (x, offset), {0: "x"})}

# ---------------------------------------------------------------- 6.5 which reorderings are confused

def _orders(length: int, generator: torch.Generator, *more: list[int]) -> torch.Tensor:
    """The unchanged order, the reversed one, five random ones, and `more`."""
    unchanged = torch.arange(length)
    drawn = [torch.randperm(length, generator=generator) for _ in range(5)]
    return torch.stack([unchanged, unchanged.flip(0), *drawn, *map(torch.tensor, more)])


def confused_probes(generator: torch.Generator) -> list[tuple]:
    """(bias, orders): no positions; by distance; one head without, first or last; two that cancel; by signed distance; in a
    ring; a first word that stands out; sentences apart and a causal mask, both with -inf; one word."""
    five = torch.arange(5)
    apart = five[None, :] - five[:, None]                                  # (query, key): signed distance
    distance, ring = -apart.abs().float(), torch.randn(2, 5, generator=generator)[:, apart % 5]
    signed = torch.randn(2, 9, generator=generator)[:, apart + 4]
    first = torch.zeros(2, 5, 5).index_fill(2, torch.tensor([0]), 1.5)
    sentences = torch.zeros(1, 5, 5).masked_fill((five < 3)[:, None] != (five < 3), -torch.inf)
    causal = torch.zeros(2, 5, 5).masked_fill(apart > 0, -torch.inf)
    turned, swapped = [1, 2, 3, 4, 0], [1, 0, 2, 4, 3]
    biases = (torch.zeros(3, 5, 5), torch.stack([0.25 * distance, 0.5 * distance]),
              torch.stack([torch.zeros(5, 5), distance]), torch.stack([distance, torch.zeros(5, 5)]),
              torch.stack([distance, -distance]), signed, ring, first, sentences, causal)
    return [*((bias, _orders(5, generator, turned, swapped)) for bias in biases), (torch.ones(2, 1, 1), torch.tensor([[0]]))]
