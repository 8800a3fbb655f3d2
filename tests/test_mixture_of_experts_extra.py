"""The extra on mixtures of experts: its layer is what it says, and it names what's wrong with a learner's two functions."""

import pytest
import torch
from lesson_cells import cells_of
from torch import nn
from torch.nn import functional as F

from course_utils.transformer_blocks import FeedForward

CELLS = cells_of("extras/mixture_of_experts")


@pytest.fixture(scope="module")
def taught() -> dict:
    """What the extra's cells define, with the course's answers."""
    names = {"torch": torch, "nn": nn, "F": F, "FeedForward": FeedForward}
    exec(CELLS["mixture-check"], names)
    exec(CELLS["capacity-check"], names)
    names["mixture"] = names["by_experts"]
    exec(CELLS["layer"], names)
    exec(CELLS["balance"].partition("\n\ncrowded = ")[0], names)
    exec(CELLS["facts"], names)
    return names


def said(capsys, check, answer) -> tuple:
    got = check(answer)
    return got, capsys.readouterr().out


def test_the_layer_and_its_gradients_are_those_of_the_loop_over_words(taught):
    torch.manual_seed(3)
    layer = taught["MixtureOfExperts"](6, 8, 5, top_k=2).double()
    x, away = torch.randn(2, 7, 6).double(), torch.randn(14, 6).double()
    found = []
    for loop in (False, True):
        layer.zero_grad()
        words = x.clone().requires_grad_()
        if loop:
            rows = words.view(-1, 6)
            out = taught["by_words"](rows, *layer.router(rows).softmax(dim=-1).topk(2), layer.experts)
        else:
            out = layer(words).view(-1, 6)
        (out * away).sum().backward()
        found.append([out.detach(), words.grad, *(torch.zeros_like(p) if p.grad is None else p.grad.clone()
                                                  for p in layer.parameters())])
    assert all((one - other).abs().max() < 1e-10 for one, other in zip(*found))


def test_padding_changes_no_other_word(taught):
    torch.manual_seed(4)
    layer, x = taught["MixtureOfExperts"](6, 8, 4).double(), torch.randn(1, 5, 6).double()
    padded = torch.cat([x, torch.zeros(1, 3, 6).double()], dim=1)
    assert torch.allclose(layer(padded)[:, :5], layer(x), atol=1e-12)


def test_balance_is_one_if_even_and_the_number_of_experts_if_all_go_to_one(taught):
    even = torch.full((8, 4), 0.25)
    assert taught["balance"](even, torch.arange(8)[:, None] % 4) == pytest.approx(1)
    one = F.one_hot(torch.zeros(8, dtype=torch.long), 4).float()
    assert taught["balance"](one, torch.zeros(8, 1, dtype=torch.long)) == pytest.approx(4)


def wrong_mixtures() -> dict:
    def overwrites(x, gates, chosen, experts):
        out = torch.zeros_like(x)
        for k in range(chosen.shape[1]):
            for e, expert in enumerate(experts):
                rows = chosen[:, k] == e
                out[rows] = gates[rows, k, None] * expert(x[rows])
        return out

    def no_gates(x, gates, chosen, experts):
        out = torch.zeros_like(x)
        for e, expert in enumerate(experts):
            rows, _ = (chosen == e).nonzero(as_tuple=True)
            out = out.index_add(0, rows, expert(x[rows]))
        return out

    def first(x, gates, chosen, experts):
        return torch.stack([gates[i, 0] * experts[chosen[i, 0]](x[i : i + 1])[0] for i in range(len(x))])

    return {"the gates are missing": no_gates, "its last column only": overwrites, "its first column only": first,
            "expected a tensor (12, 6)": lambda x, gates, chosen, experts: [1, 2],
            "stopped: IndexError": lambda x, gates, chosen, experts: experts[99](x),
            "off by": lambda x, gates, chosen, experts: x * 0.1, "○ not written": lambda *_: None}


@pytest.mark.parametrize("words", wrong_mixtures())
def test_a_wrong_mixture_is_named_and_the_course_s_goes_on(words, taught, capsys):
    got, out = said(capsys, taught["checked"], wrong_mixtures()[words])
    assert got is taught["by_experts"] and words in out


def test_a_right_mixture_is_used_and_one_that_computes_too_much_is_told(taught, capsys):
    def everything(x, gates, chosen, experts):
        weights = torch.zeros(len(x), len(experts), dtype=x.dtype).scatter(1, chosen, gates)
        return sum(weights[:, e, None] * expert(x) for e, expert in enumerate(experts))

    for right, words in ((taught["by_experts"], "4 calls on 24 rows"), (everything, "48 rows; 4 times on 24 would do"),
                         (taught["by_words"], "called 24 times")):
        got, out = said(capsys, taught["checked"], lambda *given, right=right: right(*given))
        assert out.startswith("✓ right") and words in out and got is not taught["by_experts"]


WRONG_KEPT = {
    "one word too few": lambda chosen, number, capacity, first: first(chosen, number, capacity - 1),
    "one word too many": lambda chosen, number, capacity, first: first(chosen, number, capacity + 1),
    "True means kept": lambda chosen, number, capacity, first: ~first(chosen, number, capacity),
    "the last words are kept": lambda chosen, number, capacity, first: first(chosen.flip(0), number, capacity).flip(0),
    "count each expert's words separately": lambda chosen, number, capacity, first: torch.arange(len(chosen)) < capacity,
    "○ not written": lambda *_: None, "expected a tensor": lambda *_: 3, "stopped: TypeError": lambda *_: 1 + "a",
}


@pytest.mark.parametrize("words", WRONG_KEPT)
def test_a_wrong_capacity_is_named(words, taught, capsys):
    first = taught["first_come"]
    got, out = said(capsys, taught["checked_kept"], lambda *given: WRONG_KEPT[words](*given, first))
    assert got is first and words in out


def test_a_loop_that_counts_is_right(taught, capsys):
    def loop(chosen, num_experts, capacity):
        seen, stays = [0] * num_experts, []
        for e in chosen.tolist():
            seen[e] += 1
            stays.append(seen[e] <= capacity)
        return torch.tensor(stays)

    got, out = said(capsys, taught["checked_kept"], loop)
    assert got is loop and out == "✓ right.\n"
