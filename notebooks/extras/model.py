"""A text classifier that reads by attention alone, whole in one file of plain PyTorch.

It is the model of notebooks 04 to 08 for one choice of every option: rotary positions, layer norm first, attention pooling.
The names are those of the course, so its trained weights fit. What the course's classes have and this file leaves out:
checks of arguments, other settings, the library's fused attention, the key/value cache, half precision.

    python model.py data/checkpoints/reviews "The film was not dull but moving."

Read it from the bottom up: `SelfAttentionClassifier.forward` calls everything else.
"""

import dataclasses
import json
import math
import re
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional as F


@dataclasses.dataclass
class ClassifierConfig:
    vocab_size: int
    num_classes: int = 2
    d_model: int = 64              # numbers for each word
    num_heads: int = 4
    d_ff: int = 128                # hidden units of a feed-forward layer
    num_layers: int = 2
    dropout: float = 0.1
    embedding_scale: float = 1.0   # the word vectors are multiplied by it, so that they learn that much faster
    pad_id: int = 0


# 04. A query compares itself with all keys, and takes a weighted mean of their values.
def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(query keyᵀ / √d_k) value, over the keys that `mask` allows: boolean, True = may attend."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~mask, -math.inf)
    no_key = ~mask.any(dim=-1, keepdim=True)                               # an empty text: its rows get zeros, not NaN
    weights = scores.masked_fill(no_key, 0.0).softmax(dim=-1).masked_fill(no_key, 0.0)
    return weights @ value, weights                                        # (..., query, d_value)


# 06. Positions: a query and a key turn by angles that grow with their positions, so their product depends on the distance.
class RotaryPositions(nn.Module):
    def __init__(self, d_head: int, base: float = 10000.0):
        super().__init__()
        self.d_head, self.base = d_head, base

    def rotate(self, x: Tensor) -> Tensor:
        """(batch, heads, seq_len, d_head) -> the same shape: columns 2i and 2i + 1 are a pair, and each pair turns."""
        frequency = self.base ** -(torch.arange(0, self.d_head, 2, device=x.device) / self.d_head)    # (d_head / 2,)
        angle = torch.arange(x.shape[-2], device=x.device)[:, None] * frequency                       # (seq_len, d_head / 2)
        cos, sin = angle.cos(), angle.sin()
        even, odd = x[..., 0::2], x[..., 1::2]                             # (batch, heads, seq_len, d_head / 2) each
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


# 05. Several attentions side by side, each on its own slice of the width.
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.query_projection = nn.Linear(d_model, d_model)
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.output_projection = nn.Linear(d_model, d_model)
        for layer in (self.query_projection, self.key_projection, self.value_projection, self.output_projection):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def split(self, x: Tensor) -> Tensor:
        """(batch, seq_len, d_model) -> (batch, heads, seq_len, d_head): head h owns columns h·d_head to (h+1)·d_head."""
        return x.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """(batch, heads, seq_len, d_head) -> (batch, seq_len, d_model)."""
        return x.transpose(1, 2).flatten(-2)

    def forward(self, x: Tensor, mask: Tensor, positions: RotaryPositions) -> tuple[Tensor, Tensor]:
        query = positions.rotate(self.split(self.query_projection(x)))     # (batch, heads, seq_len, d_head)
        key = positions.rotate(self.split(self.key_projection(x)))         # (batch, heads, seq_len, d_head)
        value = self.split(self.value_projection(x))                       # (batch, heads, seq_len, d_head)
        context, weights = attention(query, key, value, mask)              # weights (batch, heads, query, key)
        return self.output_projection(self.merge(context)), weights        # (batch, seq_len, d_model)


# 07. Attention mixes the words; the feed-forward layer computes with each word by itself. Both add to what was there.
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float):
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(F.gelu(self.expand(x))))         # d_model -> d_ff -> d_model


class EncoderBlock(nn.Module):
    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.attention = MultiHeadAttention(config.d_model, config.num_heads)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.dropout)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor, positions: RotaryPositions) -> tuple[Tensor, Tensor]:
        context, weights = self.attention(self.attention_norm(x), mask, positions)
        x = x + self.dropout(context)                                      # (batch, seq_len, d_model)
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x, weights


class Encoder(nn.Module):
    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor, mask: Tensor, positions: RotaryPositions) -> tuple[Tensor, list[Tensor]]:
        attentions = []
        for block in self.blocks:
            x, weights = block(x, mask, positions)
            attentions.append(weights)
        return self.norm(x), attentions


# 08. One learned query looks at all words; the review is their weighted mean, and a linear layer scores it.
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, d_model) / math.sqrt(d_model))

    def forward(self, x: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        context, weights = attention(self.query, x, x, attention_mask[:, None, :])     # (batch, 1, d_model)
        return context.squeeze(1), weights.squeeze(1)                      # (batch, d_model), (batch, seq_len)


class SelfAttentionClassifier(nn.Module):
    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        self.positions = RotaryPositions(config.d_model // config.num_heads)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.pooling = AttentionPooling(config.d_model)
        self.output = nn.Linear(config.d_model, config.num_classes)

    def forward(self, token_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor, list[Tensor]]:
        """(batch, seq_len), short rows padded with `pad_id` -> logits (batch, num_classes), the weights of the pooling
        (batch, seq_len), and those of each layer, (batch, heads, query, key)."""
        if attention_mask is None:
            attention_mask = token_ids != self.config.pad_id               # (batch, seq_len), True for words
        x = self.dropout(self.embedding(token_ids) * self.config.embedding_scale)      # (batch, seq_len, d_model)
        x, attentions = self.encoder(x, attention_mask[:, None, None, :], self.positions)
        pooled, weights = self.pooling(x, attention_mask)                  # (batch, d_model)
        return self.output(pooled), weights, attentions


# A trained model of the course
def load(path: str | Path) -> tuple[SelfAttentionClassifier, list[str], list[str]]:
    """(model, its words in the order of their ids, its label names). Raises ValueError for a model with other options."""
    path = Path(path).with_suffix(".safetensors")
    with safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["course_model"])
        weights = {name: file.get_tensor(name) for name in file.keys()}
    settings = about["config"]
    for name, only in (("positions", "rotary"), ("pooling", "attention"), ("norm_first", True)):
        if settings[name] != only:
            raise ValueError(f"{path} has {name}={settings[name]!r}; this file is the model with {name}={only!r}")
    names = {field.name for field in dataclasses.fields(ClassifierConfig)}
    model = SelfAttentionClassifier(ClassifierConfig(**{name: settings[name] for name in names}))
    weights.pop("rotary.frequency", None)                                  # of earlier versions; it's computed above
    model.load_state_dict(weights)
    return model.eval(), about["vocabulary"]["vocabulary"].split("\n"), about["label_names"]


def encode(text: str, words: list[str]) -> Tensor:
    """The ids of a text's words and punctuation, (1, seq_len); 1 stands for a word that isn't known."""
    ids = {word: i for i, word in enumerate(words)}
    return torch.tensor([[ids.get(token, 1) for token in re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text.lower())]])


if __name__ == "__main__":
    model, words, label_names = load(sys.argv[1])
    for text in sys.argv[2:]:
        with torch.no_grad():
            probabilities = model(encode(text, words))[0].softmax(dim=-1)[0]           # (num_classes,)
        print(f"{label_names[int(probabilities.argmax())]} ({probabilities.max():.2f}): {text}")
