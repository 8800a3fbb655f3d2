"""What the exercises of notebook 08 try an answer on, and what they look at. `ask` has what they say of it."""

from typing import NamedTuple

import torch
from torch import nn

from course_utils.attention import scaled_dot_product_attention
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import make_positions
from course_utils.training import Batch

from course_exercises.common import gradients_of, put_back, two_results


def _pair(output, names: str):
    """The two results of a function. Raises TypeError, with what came instead, for anything else."""
    if isinstance(output, (tuple, list)) and len(output) == 2:
        return output
    got = f"one tensor of shape {tuple(output.shape)}" if isinstance(output, torch.Tensor) else type(output).__name__
    raise TypeError(f"expected two results, {names}; got {got}")

# ---------------------------------------------------------------- 8.1 several queries

def query_probes(generator: torch.Generator) -> list[tuple]:
    """Queries, vectors and masks: ragged, padded on the left, with an empty review; padding holds numbers.

    Then scores far below zero, so that a small negative number is no mask, scores of the padding far above the others, and
    one query on one word.
    """
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ragged = torch.arange(6) < torch.tensor([[6], [2], [4]])
    holes = torch.tensor([[False, True, True, True, False], [False] * 5, [True, True, False, True, True], [True] * 5])
    low, low_x = draw(2, 4), draw(3, 6, 4)
    low[:, 0], low_x[..., 0] = 18.0, -18.0                                 # adds -162 to each score
    high, high_x = low.clone(), low_x.clone()
    high_x[..., 0] = torch.where(ragged, 9.0, 30.0)                        # scores near 81, and 270 at the padding
    return [(draw(2, 4), draw(3, 6, 4), ragged), (draw(3, 7), draw(4, 5, 7), holes), (low, low_x, ragged),
            (high, high_x, ragged),
            (draw(1, 1), draw(1, 2, 1), torch.tensor([[False, True]]))]


def observe_pooling(function, queries, x, attention_mask):
    """What is returned, and the gradients that reach the queries and the words; zeros where none arrives."""
    given = queries, x
    queries, x = queries.clone().requires_grad_(), x.clone().requires_grad_()
    output = function(queries, x, attention_mask)
    put_back(given[0], queries), put_back(given[1], x)
    if output is None:
        return None
    pooled, weights = two_results(output, "pooled", "weights")
    upstream = torch.cos(torch.arange(pooled.numel(), dtype=pooled.dtype)).reshape(pooled.shape)
    gradients = gradients_of(pooled, [queries, x], upstream)
    return {"pooled": pooled, "weights": weights, "gradient for the queries": gradients[0], "gradient for x": gradients[1]}

# ---------------------------------------------------------------- 8.2 the parts of a model

class Parts(NamedTuple):
    """What a classifier consists of, as the exercise's text lists it."""

    embedding: nn.Module
    scale: float
    positions: nn.Module
    encoder: nn.Module
    pooling: nn.Module
    output: nn.Module


class _Encoded(NamedTuple):
    """As the encoder's result."""

    x: torch.Tensor
    attentions: None = None


class _Encoder(nn.Module):
    """One attention layer with its residual, called as the course's `Encoder` is."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, mask=None, bias=None, rotary=None, need_weights=False):
        return _Encoded(x + self.attention(x, mask=mask, bias=bias, rotary=rotary)[0])


class _Pooling(nn.Module):
    """As the course's `AttentionPooling`."""

    def __init__(self, d_model: int):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(1, d_model))

    def forward(self, x, attention_mask):
        context, weights = scaled_dot_product_attention(self.query, x, x, attention_mask[:, None, :])
        return context.squeeze(1), weights.squeeze(1)


def forward_probes(generator: torch.Generator) -> list[tuple]:
    """Four models, one with each kind of positions, of different sizes and scales; padding on the right and on the left.

    Their weights are large enough for a part that is left out to show.
    """
    right, left = torch.arange(5) < torch.tensor([[5], [2], [3]]), torch.arange(4) >= torch.tensor([[0], [3]])
    probes = []
    for positions, d_model, heads, classes, scale, mask in (
            ("sinusoidal", 8, 2, 2, 3.0, right), ("rotary", 12, 3, 3, 2.0, left), ("alibi", 4, 2, 2, 0.5, right),
            ("learned", 6, 1, 4, 1.5, left)):
        parts = Parts(nn.Embedding(9, d_model), scale, make_positions(positions, d_model, heads, 16),
                      _Encoder(d_model, heads), _Pooling(d_model), nn.Linear(d_model, classes))
        with torch.no_grad():
            for module in (part for part in parts if isinstance(part, nn.Module)):
                for parameter in module.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.8)
        probes.append((parts, torch.randint(1, 9, mask.shape, generator=generator) * mask, mask))
    return probes


def observe_forward(function, parts, token_ids, attention_mask):
    """The logits, the logits with another id at the padding, and the gradient that reaches the word vectors."""
    logits = function(parts, token_ids, attention_mask)
    if logits is None:
        return None
    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"expected one tensor, the logits; got {type(logits).__name__}")
    upstream = torch.cos(torch.arange(logits.numel(), dtype=logits.dtype)).reshape(logits.shape)
    gradient = gradients_of(logits, [parts.embedding.weight], upstream)[0]
    other = function(parts, torch.where(attention_mask, token_ids, 5), attention_mask)
    return {"logits": logits, "logits with other padding": other, "gradient for the word vectors": gradient}

# ---------------------------------------------------------------- 8.3 repair: a loss that stays high

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Logits of five reviews and three classes, and of four reviews and two classes, with labels; large ones."""
    probes = []
    for size, classes in ((5, 3), (4, 2)):
        logits = 2 * torch.randn(size, classes, generator=generator)
        probes.append((logits, torch.randint(classes, (size,), generator=generator)))
    return [*probes, (torch.tensor([[30.0, -30.0]]), torch.tensor([1])),
            (torch.tensor([[150.0, -150.0], [0.5, 1.0]]), torch.tensor([1, 0]))]


def observe_loss(function, logits, labels):
    """Loss and probabilities, and the gradient that the loss sends to the logits; zeros if none."""
    given, logits = logits, logits.clone().requires_grad_()
    output = function(logits, labels)
    put_back(given, logits)
    if output is None:
        return None
    loss, probabilities = _pair(output, "the loss and the probabilities")
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        loss = loss.reshape(())                                            # as good as a number
    gradient = torch.zeros_like(logits)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        found = torch.autograd.grad(loss.sum(), logits, allow_unused=True)[0]
        gradient = gradient if found is None else found
    return {"loss": loss, "probabilities": probabilities, "gradient for the logits": gradient}

# ---------------------------------------------------------------- 8.5 repair: an honest score

class _Result(NamedTuple):
    """As the classifier's result: `logits` and what else there would be."""

    logits: torch.Tensor
    pooling_weights: None = None
    attentions: None = None


class _Noted(list):
    """A list of notes that a copy of the model shares with it."""

    def __deepcopy__(self, memo):
        return self


class _Moody(nn.Module):
    """A layer that behaves differently in training mode, as dropout does, but without chance: it swaps the classes."""

    def forward(self, logits):
        return logits.flip(-1) if self.training else logits


class _Model(nn.Module):
    """A tiny classifier that notes for each forward pass: was it in training mode, did it record gradients, was the mask
    the batch's?"""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.votes = nn.Parameter(torch.randn(9, 2, generator=generator))
        self.moody = _Moody()
        self.notes = _Noted()

    def forward(self, token_ids, attention_mask=None):
        real = token_ids != 0 if attention_mask is None else attention_mask
        logits = self.moody((self.votes[token_ids] * real.unsqueeze(-1)).sum(dim=1))
        self.notes.append((self.moody.training, logits.requires_grad, torch.equal(real != 0, token_ids != 0)))
        return _Result(logits)


def share_probes(generator: torch.Generator) -> list[tuple]:
    """Models in training mode, in evaluation mode and in training mode, with batches of which the last is short; then a
    single review.

    Of the first model's 8 reviews 5 are right, of the second's 9 two, of the third's 10 two to seven, as it is drawn.
    """
    probes, drawn = [], None
    for training, groups in ((True, ((4, 1), (3, 1), (1, 1))), (False, ((4, 3), (3, 3), (2, 1))),
                             (True, ((5, drawn), (4, drawn), (1, 1))), (True, ((1, 0),))):
        model, several = _Model(generator).eval(), []
        for size, wrong in groups:
            wrong = int(torch.randint(1, size, (), generator=generator)) if wrong is drawn else wrong
            ids = torch.randint(1, 9, (size, 5), generator=generator)
            mask = torch.arange(5) < (2 + torch.arange(size) % 4)[:, None]
            labels = model(ids * mask, mask).logits.argmax(dim=-1)
            labels[:wrong] = 1 - labels[:wrong]
            several.append(Batch(ids * mask, mask, labels, list(range(size))))
        model.notes = _Noted()
        probes.append((model.train(training), several))
    return probes


def observe_share(function, model, several):
    """The share, how the forward passes ran, and how the model and the gradients were left."""
    model.notes = _Noted()
    before = [tensor.clone() for tensor in model.state_dict().values()]
    with torch.enable_grad():
        share = function(model, several)
        left_on = torch.is_grad_enabled()
    if share is None:
        return None
    notes, modes = model.notes or [(False, False, True)], [module.training for module in model.modules()]
    return {"share": share, "in training mode": sum(note[0] for note in notes) / len(notes),
            "with gradients": sum(note[1] for note in notes) / len(notes),
            "right masks": float(all(note[2] for note in notes)),
            "left in training mode": modes.count(True) / len(modes),
            "weights moved": sum(int((old != new).sum()) for old, new in zip(before, model.state_dict().values())),
            "gradients left on": left_on, "trainable": all(parameter.requires_grad for parameter in model.parameters())}
