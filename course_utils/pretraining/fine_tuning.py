"""A classifier on a pretrained encoder, and what of it is trained: some layers, all at their own rates, or adapters."""

import copy
from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.embeddings import masked_mean
from course_utils.options import check_options, fraction, one_of, positive, whole
from course_utils.pretraining.bert import BertEncoder

__all__ = ["BERT_POOLINGS", "BertClassifierResult", "BertClassifier", "layers_of", "freeze", "layer_rates", "LowRankAdapter",
           "ADAPTED", "ADAPTABLE", "add_adapters", "merge_adapters"]


BERT_POOLINGS = ("mean", "first", "pooler")


class BertClassifierResult(NamedTuple):
    """`logits` (batch, num_classes); `attentions`, one (batch, heads, query, key) for each layer, or None.
    """

    logits: Tensor
    attentions: list[Tensor] | None


class BertClassifier(nn.Module):
    """A linear layer on what a `BertEncoder` makes of a text.

    (token_ids (batch, seq_len), attention_mask, need_weights) -> BertClassifierResult. `pooling`: the 'mean' of all tokens,
    the 'first' token's vector, or the encoder's 'pooler' (Devlin et al. 2019). Padding never changes a logit.

    Taught in 14_pretraining, '6. What learns, and how fast'.
    """

    def __init__(self, encoder: BertEncoder, num_classes: int = 2, pooling: str = "mean", dropout: float = 0.1):
        super().__init__()
        check_options({"pooling": pooling, "dropout": dropout, "num_classes": num_classes},
                      {"pooling": one_of(*BERT_POOLINGS), "dropout": fraction(), "num_classes": whole(2, 100_000)})
        if pooling == "pooler" and encoder.pooler is None:
            raise ValueError("this encoder's file has no pooler; use pooling='mean' or 'first'")
        self.config, self.encoder, self.pooling = encoder.config, encoder, pooling
        if encoder.pooler is not None:
            encoder.pooler.requires_grad_(pooling == "pooler")             # what isn't used isn't trained
        self.dropout, self.output = nn.Dropout(dropout), nn.Linear(encoder.config.d_model, num_classes)

    def forward(
        self, token_ids: Tensor, attention_mask: Tensor | None = None, need_weights: bool = False
    ) -> BertClassifierResult:
        attention_mask = token_ids != self.config.pad_id if attention_mask is None else attention_mask
        result = self.encoder(token_ids, attention_mask, need_weights=need_weights)
        pooled = (masked_mean(result.x, attention_mask) if self.pooling == "mean" else
                  result.x[:, 0] if self.pooling == "first" else result.pooled)            # (batch, d_model)
        return BertClassifierResult(self.output(self.dropout(pooled)), result.attentions)


def layers_of(model: BertClassifier) -> list[list[nn.Parameter]]:
    """The parameters from the input to the output: embeddings, each block, and what is above the blocks.
    """
    blocks = [list(block.parameters()) for block in _blocks(model)]
    above = [*model.output.parameters(), *([] if model.encoder.pooler is None else model.encoder.pooler.parameters())]
    known = {id(parameter) for part in (*blocks, above) for parameter in part}
    return [[parameter for parameter in model.parameters() if id(parameter) not in known], *blocks, above]


def _blocks(model: nn.Module) -> nn.ModuleList:
    """The blocks of a model on a `BertEncoder`. Raises TypeError for another model."""
    if not isinstance(getattr(model, "encoder", None), BertEncoder):
        raise TypeError(f"expected a model whose `encoder` is a BertEncoder, such as BertClassifier(encoder); got a "
                        f"{type(model).__name__}")
    return model.encoder.encoder.blocks


def freeze(model: BertClassifier, num_layers: int | None = None) -> BertClassifier:
    """Train neither the embeddings nor the first `num_layers` blocks; None: only what is above the blocks is trained.

    Taught in 14_pretraining, '6. What learns, and how fast'.
    """
    depth = model.config.num_layers
    check_options({"num_layers": depth if num_layers is None else num_layers}, {"num_layers": whole(0, depth)})
    for part in layers_of(model)[: 1 + (depth if num_layers is None else num_layers)]:
        for parameter in part:
            parameter.requires_grad_(False)
    return model


def layer_rates(model: BertClassifier, decay: float = 0.9) -> list[dict]:
    """Parameter groups for `fit` (its `groups`), each layer's learning rate `decay` times that of the layer above it.
    """
    check_options({"decay": decay}, {"decay": positive(1)})
    layers = layers_of(model)
    return [{"params": part, "scale": decay ** (len(layers) - 1 - i)} for i, part in enumerate(layers) if part]


class LowRankAdapter(nn.Module):
    """A frozen linear layer plus a trained product of two thin matrices: x Wᵀ + b + (alpha / rank) x Dᵀ Uᵀ.

    LoRA (Hu et al. 2021, section 4.1): (..., in) -> (..., out). U starts at zero, so at first nothing changes.
    A state dict has D and U, not alpha: load it into an adapter of the same rank and alpha.

    Taught in 14_pretraining, '6. What learns, and how fast'.
    """

    def __init__(self, linear: nn.Linear, rank: int = 8, alpha: float = 16.0):
        super().__init__()
        check_options({"rank": rank, "alpha": alpha}, {"rank": whole(1, min(linear.weight.shape)), "alpha": positive(1e6)})
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.down = nn.Parameter(linear.weight.new_empty(rank, linear.in_features).normal_(std=linear.in_features**-0.5))
        self.up = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.down), self.up)

    def merged(self) -> nn.Linear:
        """One linear layer that computes the same, frozen like the one in the adapter."""
        linear = copy.deepcopy(self.linear)
        linear.weight.data += self.scale * self.up.detach() @ self.down.detach()
        return linear


ADAPTED = ("query_projection", "value_projection")      # as in the paper
ADAPTABLE = (*ADAPTED, "key_projection", "output_projection", "expand", "contract")


def add_adapters(
    model: BertClassifier, rank: int = 8, alpha: float = 16.0, names: Iterable[str] = ADAPTED
) -> BertClassifier:
    """Freeze the encoder, its pooler too, and put an adapter on those layers of every block; the output layer is trained.

    `names`: of layers in the attention or the feed-forward network; ADAPTABLE has them all. Raises ValueError for a name
    that isn't a linear layer there or is given twice, and for a model that has adapters.

    Taught in 14_pretraining, '6. What learns, and how fast'.
    """
    if isinstance(names, str):
        raise ValueError(f"got names={names!r}, a text; expected several names: use names=({names!r},)")
    names, parts = tuple(names), _adaptable(model)
    inside = [(name, layer) for part in parts[:2] for name, layer in part.named_children()]
    there = [name for name, layer in inside if isinstance(layer, LowRankAdapter)]
    if there:                                                # to freeze the encoder would freeze them, too
        raise ValueError(f"the model has adapters on {', '.join(there)}; name all layers in one call, or put these adapters "
                         "into their matrices first: merge_adapters(model)")
    layers = [name for name, layer in inside if type(layer) is nn.Linear]
    for name in names:
        check_options({"name": name}, {"name": one_of(*layers)})
        if names.count(name) > 1:
            raise ValueError(f"names has {name!r} {names.count(name)} times; a layer gets one adapter, so name it once")
    model.encoder.requires_grad_(False)
    for part in parts:
        for name, layer in list(part.named_children()):
            if name in names:
                setattr(part, name, LowRankAdapter(layer, rank, alpha))
    return model


def merge_adapters(model: BertClassifier) -> BertClassifier:
    """Put every adapter into its matrix: the model has the layers it began with, computes the same, and costs no more.

    The merged layers stay frozen, as the rest of the encoder is; to train them, model.encoder.requires_grad_(True).
    """
    for part in _adaptable(model):
        for name, layer in list(part.named_children()):
            if isinstance(layer, LowRankAdapter):
                setattr(part, name, layer.merged())
    return model


def _adaptable(model: BertClassifier) -> list[nn.Module]:
    """Each block's attention and its feed-forward network, in turn."""
    return [part for block in _blocks(model) for part in (block.attention, block.feed_forward)]
