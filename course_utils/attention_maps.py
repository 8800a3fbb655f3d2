"""What attention maps say about heads, in numbers: roles, distance, entropy, and what is lost without a head.

Does: score heads against targets that you name, give the uniform control, put gates on heads, estimate importance by
gradients. Notebook 10 writes distance, mass, the twins' order and the hook in their shortest form;
tests/test_attention_maps.py holds the two equal. Does not: draw (see `course_utils.heatmaps`), train, or decide which score
is large: compare with controls. `attentions` are what a model returns with `need_weights`: a list with one (batch, heads,
query, key) for each layer. All layers need the same number of heads. Results have the shape (batch, layers, heads), one
number for each text and head.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.shapes import check_flags, stack_attentions
from course_utils.training import logits_of

__all__ = ["twin_order", "RoleScores", "role_scores", "offset_targets", "key_targets", "uniform_attentions",
           "attention_distance", "attention_entropy", "HeadGates", "head_importance"]


def twin_order(tokens: list[str], twin: list[str]) -> list[int]:
    """Where each token is in its twin: tokens[i] == twin[order[i]]; the nth 'the' goes to the nth 'the'.

    twin_weights[order][:, order] then has the rows and columns of the first text. Raises ValueError if the words differ.

    Taught in 10_attention_maps, '6. A transplant'.
    """
    positions = defaultdict(deque)
    for position, token in enumerate(twin):
        positions[token].append(position)
    if sorted(tokens) != sorted(twin):
        extra = sorted(set(tokens) ^ set(twin)) or "the same words, but in different numbers"
        raise ValueError(f"these are not twins; expected the same words in a different order, but they differ in: {extra}")
    return [positions[token].popleft() for token in tokens]


class RoleScores(NamedTuple):
    """`mass` and `hits`, both (batch, layers, heads) and between 0 and 1, NaN for a text without a query that has a target;
    `queries` (batch,), how many queries of each text have one.

    mass: the weight that such a query gives to its targets, on average. hits: the proportion of such queries whose largest
    weight lies on a target; where several weights are the largest, the proportion of these that lie on targets.

    Taught in 10_attention_maps, '3. Names for heads'.
    """

    mass: Tensor
    hits: Tensor
    queries: Tensor


def role_scores(attentions: Sequence[Tensor] | Tensor, targets: Tensor) -> RoleScores:
    """How much each head attends to what a role says it should.

    attentions: one (batch, heads, query, key) for each layer. targets (batch, query, key), boolean: the keys that a query
    would attend to if the head had the role. Queries without a target, padding among them, are left out. Every text
    counts once, whatever its length: average `mass` over texts with `nanmean(dim=0)`.
    Raises ValueError for shapes that do not fit, and for what cannot be weights. After Clark et al. 2019 and Voita et
    al. 2019.

    Taught in 10_attention_maps, '3. Names for heads'.
    """
    stacked = stack_attentions(attentions)
    batch, query_len, key_len = stacked.shape[0], *stacked.shape[-2:]
    if targets.dtype != torch.bool or targets.shape != (batch, query_len, key_len):
        raise ValueError(f"targets have dtype {targets.dtype} and shape {tuple(targets.shape)}; expected torch.bool and "
                         f"({batch}, {query_len}, {key_len}), (batch, query, key)")
    wanted = targets[:, None, None]                                        # (batch, 1, 1, query, key)
    largest = (stacked == stacked.amax(dim=-1, keepdim=True)) & (stacked > 0)
    mass = (stacked * wanted).sum(dim=-1)                                  # (batch, layers, heads, query)
    hits = (largest & wanted).sum(dim=-1) / largest.sum(dim=-1).clamp(min=1)
    counted = targets.any(dim=-1)                                          # (batch, query)
    queries = counted.sum(dim=-1)                                          # (batch,)
    mean = [(score * counted[:, None, None]).sum(dim=-1) / queries[:, None, None] for score in (mass, hits)]
    return RoleScores(*mean, queries)


def offset_targets(attention_mask: Tensor, offset: int) -> Tensor:
    """The target of query i is key i + offset: -1 the previous token, +1 the next.

    attention_mask (batch, seq_len), True = real -> (batch, query, key). Where there is no such real token the query has no
    target: the first token has no previous one.

    Taught in 10_attention_maps, '3. Names for heads'.
    """
    check_flags(attention_mask, *attention_mask.shape)
    position = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    shifted = position[None, :] - position[:, None] == offset                    # (query, key)
    return shifted & attention_mask[:, :, None] & attention_mask[:, None, :]


def key_targets(flags: Tensor, attention_mask: Tensor) -> Tensor:
    """Every real query has the same targets, the real keys that are flagged, such as punctuation.

    flags and attention_mask (batch, seq_len), boolean -> (batch, query, key).

    Taught in 10_attention_maps, '3. Names for heads'.
    """
    check_flags(attention_mask, *flags.shape)
    return attention_mask[:, :, None] & (flags.bool() & attention_mask)[:, None, :]


def uniform_attentions(attention_mask: Tensor) -> list[Tensor]:
    """The control: one layer with one head that attends to all real tokens equally, [(batch, 1, query, key)].

    attention_mask (batch, seq_len), True = real. Rows of padding and of a text without tokens are zero.

    Taught in 10_attention_maps, '3. Names for heads'.
    """
    check_flags(attention_mask, *attention_mask.shape)
    real = attention_mask[:, :, None] & attention_mask[:, None, :]         # (batch, query, key)
    return [(real / attention_mask.sum(dim=-1).clamp(min=1)[:, None, None])[:, None]]


def _mean_over_queries(values: Tensor, counted: Tensor) -> Tensor:
    """(batch, layers, heads, query) -> (batch, layers, heads); NaN for a text without a query that counts."""
    return (values * counted).sum(dim=-1) / counted.sum(dim=-1)


def attention_distance(attentions: Sequence[Tensor] | Tensor, attention_mask: Tensor) -> Tensor:
    """How far a head looks, in tokens: the mean of |query - key| under its weights, over the real queries of a text.

    attentions: one (batch, heads, query, key) for each layer, query = key; attention_mask (batch, seq_len), True = real
    -> (batch, layers, heads); NaN for a text without tokens. A uniform head over n tokens has (n² - 1) / (3n).
    Raises ValueError for cross-attention, where positions of two texts have no distance. As Vig and Belinkov
    (2019) measure it, but averaged within each text first.

    Taught in 10_attention_maps, '2. A map in two numbers'.
    """
    stacked = stack_attentions(attentions, "a distance")
    check_flags(attention_mask, stacked.shape[0], stacked.shape[-1])
    position = torch.arange(stacked.shape[-1], device=stacked.device)
    distance = (position[:, None] - position[None, :]).abs()                     # (query, key)
    counted = attention_mask[:, None, None] & (stacked.sum(dim=-1) > 0)
    return _mean_over_queries((stacked * distance).sum(dim=-1), counted)


def attention_entropy(attentions: Sequence[Tensor] | Tensor, attention_mask: Tensor) -> Tensor:
    """How evenly a head spreads its weight, from 0 (all on one token) to 1 (all real tokens equal).

    The entropy of each row over ln n, n the real tokens of the text, averaged over its real queries.
    Arguments, result and errors as in `attention_distance`; NaN for a text of fewer than two tokens.
    """
    stacked = stack_attentions(attentions, "this entropy")
    check_flags(attention_mask, stacked.shape[0], stacked.shape[-1])
    entropy = -torch.special.xlogy(stacked, stacked).sum(dim=-1)           # (batch, layers, heads, query)
    counted = attention_mask[:, None, None] & (stacked.sum(dim=-1) > 0)
    largest = attention_mask.sum(dim=-1).float().log()                     # (batch,)
    return _mean_over_queries(entropy, counted) / torch.where(largest > 0, largest, torch.nan)[:, None, None]


class HeadGates:
    """A gate on each head's output, before the output projection: 1 is open, 0 shut; the model's code stays as it is.

    gates: (layers, heads), or (batch, layers, heads) with gates of its own for each text; None opens all. Within
    `with HeadGates(model, gates) as values:` all calls of the model pass them, and `values` is the tensor, for gradients.
    The layers are the model's `MultiHeadAttention` modules in the order of `model.modules()`. The bias of the output
    projection stays. Gates within gates multiply. Raises ValueError for a model without heads or gates of another shape.

    Taught in 10_attention_maps, '5. Take hold of a head'.
    """

    def __init__(self, model: nn.Module, gates: Tensor | None = None):
        self.layers = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
        heads = sorted({layer.num_heads for layer in self.layers})
        if len(heads) != 1:
            raise ValueError(f"the model's attention layers have {heads or 'no'} heads; expected layers of "
                             "MultiHeadAttention, all with the same number")
        shape = (len(self.layers), heads[0])
        self.gates = torch.ones(shape) if gates is None else torch.as_tensor(gates)
        if not self.gates.is_floating_point():
            self.gates = self.gates.float()
        if self.gates.dim() not in (2, 3) or self.gates.shape[-2:] != shape:
            raise ValueError(f"gates have the shape {tuple(self.gates.shape)}; expected {shape}, (layers, heads), or with a "
                             "batch dimension before it")
        self.handles = []

    def __enter__(self) -> Tensor:
        for i, layer in enumerate(self.layers):
            def gate(module, arguments, i=i, num_heads=layer.num_heads):
                merged, *others = arguments                                # (batch, query, d_model)
                if self.gates.dim() == 3 and len(self.gates) != len(merged):
                    raise ValueError(f"gates for {len(self.gates)} texts, but the batch has {len(merged)}")
                values = self.gates[..., i, :].to(merged)                  # (heads,) or (batch, heads)
                values = values.repeat_interleave(merged.shape[-1] // num_heads, dim=-1)
                return merged * (values if values.dim() == 1 else values[:, None]), *others

            self.handles.append(layer.output_projection.register_forward_pre_hook(gate))
        return self.gates

    def __exit__(self, *error) -> None:
        while self.handles:
            self.handles.pop().remove()


def head_importance(model: nn.Module, batches: Iterable) -> Tensor:
    """How steeply the loss depends on each head's gate: the mean over texts of |d loss / d gate|, at open gates.

    batches: with token_ids (batch, seq_len), attention_mask (batch, seq_len) and labels (batch,), as
    `course_utils.training.batches` gives them -> (layers, heads), in units of cross-entropy. Michel et al. 2019, section
    4.1; they also divide by the norm of each layer. The model is used in evaluation mode, which is put back; the gradients
    of its parameters are left alone. Raises ValueError without batches.
    """
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    total, texts = 0.0, 0
    for batch in batches:
        shape = HeadGates(model).gates.shape
        gates = torch.ones(len(batch.labels), *shape, device=device, requires_grad=True)   # (batch, layers, heads)
        with torch.enable_grad(), HeadGates(model, gates):
            logits = logits_of(model(batch.token_ids.to(device), batch.attention_mask.to(device)))
            loss = F.cross_entropy(logits, batch.labels.to(device), reduction="sum")
            gradient = torch.autograd.grad(loss, gates)[0]                 # a text's loss depends on its own gates alone
        total, texts = total + gradient.abs().sum(dim=0).cpu(), texts + len(batch.labels)
    model.train(was_training)
    if texts == 0:
        raise ValueError("there are no batches; a generator that has been used up?")
    return total / texts
