"""What the exercises of notebook 14 try an answer on, and what they look at. `ask` has what they say."""

import torch
from torch.nn import functional as F

from course_utils.exercises.lessons.common import gradients_of, not_contiguous, one_tensor, two_results, what

# ---------------------------------------------------------------- 14.1 hide words

FATES = torch.tensor([0.0, 0.05, 0.1, 0.15, 0.3, 0.5, 0.7, 0.79, 0.8, 0.85, 0.89, 0.9, 0.95, 0.99])


def hiding_probes(generator: torch.Generator) -> list[tuple]:
    """(token_ids, chosen, fate, others, mask_id): every kind of fate, at the borders too, for chosen tokens and others; all
    chosen; nothing chosen; one token."""
    def draw(rows, columns, share, mask_id):
        shape = (rows, columns)
        token_ids, others = (torch.randint(low, low + 40, shape, generator=generator) for low in (5, 50))
        fate = FATES[torch.randint(len(FATES), shape, generator=generator)]
        return token_ids, torch.rand(shape, generator=generator) < share, fate, others, mask_id

    ids, chosen, _, others, _ = draw(4, 14, 0.5, 4)
    chosen[0], chosen[1] = True, False
    return [(ids, chosen, FATES.expand(4, -1).clone(), others, 4), draw(3, 9, 2.0, 103), draw(2, 5, -1.0, 1),
            (torch.tensor([[7]]), torch.tensor([[True]]), torch.tensor([[0.2]]), torch.tensor([[9]]), 0)]

# ---------------------------------------------------------------- 14.2 the longest piece

SMALL = "film ##s ##ing ##ed ##e ##d mov movi move ##able un ##mov ##moved dull ##er ##est d ##u ##l ##ll".split()
LETTERS = [*"abcdeflmnorsuv", *("##" + letter for letter in "abdefilmnorsuv")]


def piece_probes(generator: torch.Generator) -> list[tuple]:
    """(word, vocabulary): one piece; several; a dead end late in the word, and at once; a piece that's there only as a
    beginning, or only as a continuation; a word of single letters."""
    small, letters = set(SMALL), set(LETTERS) | set(SMALL)
    return [("films", small), ("film", small), ("moved", small), ("unmoved", small), ("moving", small), ("movable", small),
            ("xfilm", small), ("filmx", small), ("dullest", small), ("sun", small | {"##un", "s"}), ("edfilm", small),
            ("unmovable", letters), ("refilmed", letters), ("d", small), ("duller", small - {"dull", "##ll"})]


def observe_pieces(function, word, vocabulary):
    """The pieces with a space between them."""
    output = function(word, vocabulary)
    if output is None:
        return None
    if isinstance(output, (str, dict)) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected a list of pieces, got {what(output)}")
    pieces = list(output)
    if wrong := [piece for piece in pieces if not isinstance(piece, str)]:
        raise TypeError(f"expected pieces as texts, got {what(wrong[0])}")
    return {"pieces": " ".join(pieces)}

# ---------------------------------------------------------------- 14.3 the loss on hidden words

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Some chosen, more in one text than in another; a model that's sure and right where it's asked; nothing chosen; all
    logits equal; one position."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ids = torch.randint(1, 7, (3, 5), generator=generator)
    chosen = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    sure_ids = torch.tensor([[2, 4, 1, 3], [1, 2, 0, 3]])
    asked = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 0]], dtype=torch.bool)
    sure = torch.where(asked[..., None], 30.0 * F.one_hot(sure_ids, 6), 3 * draw(2, 4, 6))
    level = torch.tensor([[1, 1, 0], [0, 1, 0]], dtype=torch.bool)
    return [(2 * draw(3, 5, 7), ids, chosen), (*not_contiguous((draw(2, 6, 4).double(),)),
             torch.randint(0, 4, (2, 6), generator=generator), torch.rand(2, 6, generator=generator) < 0.5),
            (sure, sure_ids, asked), (torch.zeros(2, 3, 9), torch.randint(0, 9, (2, 3), generator=generator), level),
            (draw(2, 3, 4), torch.ones(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool)),
            (draw(1, 2, 3), torch.tensor([[1, 2]]), torch.tensor([[False, True]]))]


def observe_loss(function, logits, token_ids, chosen):
    """The loss, and the gradient that it sends to the logits; zeros if none."""
    logits = logits.detach().clone().requires_grad_()
    output = function(logits, token_ids, chosen)
    if output is None:
        return None
    if isinstance(output, (tuple, list)):
        raise TypeError(f"expected one number, the mean loss; got {len(output)} results")
    loss = output.reshape(()) if isinstance(output, torch.Tensor) and output.numel() == 1 else output
    gradient = torch.zeros_like(logits)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        (gradient,) = gradients_of(loss, [logits])
    return {"loss": loss, "gradient for the logits": gradient}

# ---------------------------------------------------------------- 14.4 the second half of a block

def half_probes(generator: torch.Generator) -> list[tuple]:
    """(x, expand, expand_bias, contract, contract_bias, gain, shift, eps): large and small numbers, one width of 2, an eps
    that matters."""
    def draw(*shape, size=1.0):
        return (size * torch.randn(*shape, generator=generator)).double()

    probes = []
    for shape, d_ff, eps, size in (((2, 3, 6), 11, 1e-12, 2.0), ((1, 4, 8), 5, 1e-5, 1.0), ((3, 1, 2), 4, 0.5, 1.0),
                                   ((1, 2, 5), 9, 1e-12, 1e-4)):
        d = shape[-1]
        probes.append((draw(*shape, size=size), draw(d_ff, d), draw(d_ff, size=min(size, 1.0)), draw(d, d_ff, size=2.0),
                       draw(d, size=min(size, 1.0)), 1 + draw(d, size=0.5), draw(d), eps))
    return probes

# ---------------------------------------------------------------- 14.5 pooling with the mask

def pooling_probes(generator: torch.Generator) -> list[tuple]:
    """(x, attention_mask, weight, bias): ragged texts; one text without padding; a text of one token."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ragged = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    return [(draw(4, 5, 6) + 1, ragged, draw(3, 6), draw(3)), (draw(1, 4, 2), torch.ones(1, 4, dtype=torch.bool), draw(2, 2),
             draw(2)), (*not_contiguous((draw(2, 3, 4).double(),)), torch.arange(3) < torch.tensor([[1], [3]]),
             draw(2, 4).double(), draw(2).double())]

# ---------------------------------------------------------------- 14.6 how an adapter starts

def adapter_probes(generator: torch.Generator) -> list[tuple]:
    """(weight, rank): wide, tall, rank 1."""
    return [(torch.randn(*shape, generator=generator), rank) for shape, rank in (((5, 7), 3), ((8, 4), 2), ((6, 9), 1))]


def observe_adapter(function, weight, rank):
    """The shapes; how many numbers of up · down aren't 0; 1 if the adapter can learn all its ranks, 0.5 fewer, 0 nothing."""
    output = function(weight.clone(), rank)
    if output is None:
        return None
    down, up = (one_tensor(part, name).detach().float()
                for part, name in zip(two_results(output, "down", "up"), ("down", "up")))
    shapes = {"down's shape": torch.tensor(down.shape, dtype=torch.float32),
              "up's shape": torch.tensor(up.shape, dtype=torch.float32)}
    if down.dim() != 2 or up.dim() != 2 or down.shape[0] != up.shape[1]:
        return {**shapes, "changed": torch.tensor(-1.0), "learning": torch.tensor(-1.0)}
    changed = ((up @ down).abs() > 1e-9).sum().float()
    found = max(int(torch.linalg.matrix_rank(part)) for part in (down, up))
    return {**shapes, "changed": changed, "learning": torch.tensor(0.0 if found == 0 else 0.5 if found < rank else 1.0)}
