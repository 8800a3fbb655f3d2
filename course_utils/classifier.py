"""The whole classifier: embeddings, positions, encoder, attention pooling, logits; saved and loaded.

Does: `SelfAttentionClassifier` on token ids, as notebook 08 assembles it, with checks, every kind of positions, pooling by
the mean, and attention maps on request; tests/test_classifier.py holds the two equal. `ReviewClassifier` on texts. Does
not: train (see `course_utils.training`) or draw (see `course_utils.heatmaps`). Nothing is unpickled: weights are
safetensors, the configuration and the vocabulary are JSON.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from course_utils.attention import padding_mask, scaled_dot_product_attention
from course_utils.embeddings import masked_mean
from course_utils.options import (
    check_model_options,
    check_options,
    check_text,
    check_vocabulary,
    list_of_texts,
    positive,
    whole,
)
from course_utils.positional_encoding import POSITIONS, make_positions
from course_utils.shapes import check_batch
from course_utils.tokenization import Token, Tokenizer, pad_batch, truncate
from course_utils.training.saved_models import check_answers, check_label_names, read_model, write_model
from course_utils.training.saved_numbers import CAUTION, stored_temperature
from course_utils.transformer_blocks import Encoder, EncoderResult

__all__ = ["AttentionPooling", "POOLINGS", "ClassifierConfig", "ClassifierResult", "SelfAttentionClassifier", "Explanation",
           "ReviewClassifier"]


class AttentionPooling(nn.Module):
    """One learned query attends to all tokens; the review is the weighted mean (Lin et al. 2017; Yang et al. 2016).

    (x (batch, seq_len, d_model), attention_mask (batch, seq_len)) -> pooled (batch, d_model),
    weights (batch, seq_len). A review without tokens is pooled to zeros.

    Taught in 08_classifier, '1. One vector for a whole review'.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, d_model) / math.sqrt(d_model))

    def forward(self, x: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        context, weights = scaled_dot_product_attention(self.query, x, x, attention_mask[:, None, :])
        return context.squeeze(1), weights.squeeze(1)


POOLINGS = ("attention", "mean")


@dataclasses.dataclass(frozen=True)
class ClassifierConfig:
    """Everything that fixes a `SelfAttentionClassifier` but its weights.

    `dropout` acts in the blocks and on the embeddings, `word_dropout` replaces words by `<unk>` and
    `pooled_dropout` acts on the pooled vector, all in training only. `zero_init` starts the last weight matrix of every
    sublayer at zero, so that at first a pre-norm block adds one vector, its biases, to all words.
    Word vectors start with standard deviation `embedding_std` and are multiplied by `embedding_scale`, which makes
    them learn that much faster than the rest (Adam moves every weight by about the learning rate).
    Raises ValueError that names the option for a value outside its range.
    """

    vocab_size: int
    num_classes: int = 2
    d_model: int = 64
    num_heads: int = 4
    d_ff: int = 128
    num_layers: int = 2
    max_len: int = 256
    positions: str = "sinusoidal"
    pooling: str = "attention"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    word_dropout: float = 0.0
    pooled_dropout: float = 0.0
    norm_first: bool = True
    zero_init: bool = False
    embedding_std: float = 1.0
    embedding_scale: float = 1.0
    pad_id: int = 0
    unk_id: int = 1

    def __post_init__(self):
        check_model_options(vars(self), positions=POSITIONS, pooling=POOLINGS)


class ClassifierResult(NamedTuple):
    """`logits` (batch, num_classes); with `need_weights` also `pooling_weights` (batch, seq_len) and
    `attentions`, one (batch, heads, query, key) for each layer; otherwise None and None.
    """

    logits: Tensor
    pooling_weights: Tensor | None
    attentions: list[Tensor] | None


class SelfAttentionClassifier(nn.Module):
    """Token ids to class logits, by attention alone.

    (token_ids (batch, seq_len), attention_mask (batch, seq_len) or None, need_weights) -> ClassifierResult.
    Without a mask every id but `config.pad_id` counts as real. Padding never changes a logit.

    Taught in 08_classifier, '2. The model, and you assemble it'.
    """

    def __init__(self, config: ClassifierConfig):
        super().__init__()
        self.config = config
        d_model, num_heads = config.d_model, config.num_heads
        self.embedding = nn.Embedding(config.vocab_size, d_model, padding_idx=config.pad_id)
        with torch.no_grad():
            self.embedding.weight.mul_(config.embedding_std)
        self.positions = make_positions(config.positions, d_model, num_heads, config.max_len)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(
            config.num_layers, d_model, num_heads, config.d_ff, config.norm_first,
            dropout=config.dropout, attention_dropout=config.attention_dropout,
        )
        self.pooling = AttentionPooling(d_model) if config.pooling == "attention" else None
        self.pooled_dropout = nn.Dropout(config.pooled_dropout)
        self.output = nn.Linear(d_model, config.num_classes)
        if config.zero_init:
            for block in self.encoder.blocks:
                nn.init.zeros_(block.attention.output_projection.weight)
                nn.init.zeros_(block.feed_forward.contract.weight)

    def word_vectors(self, token_ids: Tensor) -> Tensor:
        """Look the words up: (batch, seq_len) -> (batch, seq_len, d_model)."""
        return self.embedding(token_ids) * self.config.embedding_scale

    def embed(self, token_ids: Tensor) -> Tensor:
        """Word vectors with their positions, after both kinds of dropout: (batch, seq_len) -> (batch, seq_len, d_model)."""
        if self.training and self.config.word_dropout > 0:
            dropped = torch.rand(token_ids.shape, device=token_ids.device) < self.config.word_dropout
            token_ids = token_ids.masked_fill(dropped, self.config.unk_id)
        return self.dropout(self.positions.add(self.word_vectors(token_ids)))

    def run_encoder(self, token_ids: Tensor, attention_mask: Tensor, need_weights: bool = False) -> EncoderResult:
        """Ids to the encoder's result: x (batch, seq_len, d_model) and, on request, the attentions."""
        check_batch(token_ids, attention_mask)
        x, bias = self.embed(token_ids), self.positions.bias(token_ids.shape[1])
        return self.encoder(x, padding_mask(attention_mask), bias, self.positions.rotate, need_weights)

    def hidden(self, token_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Each token's vector after the last layer, before pooling: (batch, seq_len, d_model)."""
        return self.run_encoder(token_ids, attention_mask).x

    def forward(
        self, token_ids: Tensor, attention_mask: Tensor | None = None, need_weights: bool = False
    ) -> ClassifierResult:
        if attention_mask is None:
            attention_mask = token_ids != self.config.pad_id
        x, attentions = self.run_encoder(token_ids, attention_mask, need_weights)  # x (batch, seq_len, d_model)
        if self.pooling is None:
            pooled, weights = masked_mean(x, attention_mask), None
        else:
            pooled, weights = self.pooling(x, attention_mask)              # (batch, d_model)
        logits = self.output(self.pooled_dropout(pooled))                  # (batch, num_classes)
        return ClassifierResult(logits, weights if need_weights else None, attentions)


class Explanation(NamedTuple):
    """What the model made of one text: `tokens`, their pooling `weights` (seq_len,), `attentions`
    (layers, heads, query, key), the predicted `label` and the `probabilities` by label name.
    """

    tokens: list[Token]
    weights: Tensor
    attentions: Tensor
    label: str
    probabilities: dict[str, float]


class ReviewClassifier:
    """A trained model with its tokenizer and its label names, saved and loaded together: texts in, labels out.

    `label_names` in the order of the logits. `temperature` divides the logits before the softmax, in `predict` and
    `explain` (notebook 15). Those in the files of "reader" and "student" make their probabilities calibrated for texts like
    the first 300 ordinary sentences; elsewhere they may be far off. What `model` itself returns are the logits as they are.
    A text longer than the model's `max_len` keeps
    its first quarter and last three quarters. Raises ValueError for a tokenizer of another size than the model's, and for
    a temperature that isn't above 0.
    """

    def __init__(
        self, model: SelfAttentionClassifier, tokenizer: Tokenizer, label_names: Sequence[str] = ("negative", "positive"),
        temperature: float = 1.0,
    ):
        check_vocabulary(model, tokenizer)
        check_label_names(label_names, model.config.num_classes)
        check_options({"temperature": temperature}, {"temperature": positive(1e6)})
        self.model, self.tokenizer, self.label_names = model.eval(), tokenizer, list(label_names)
        self.temperature = temperature

    def save(self, name: str | Path) -> None:
        """Write weights, labels, configuration and vocabulary into name.safetensors: whole, or the old file is left whole.

        A temperature other than 1 goes into the file, too. Raises ValueError for a model that couldn't be loaded, such as
        one with a weight that is NaN.
        """
        extra: dict = {"label_names": self.label_names}
        if self.temperature != 1:
            check_options({"temperature": self.temperature}, {"temperature": positive(1e6)})
            extra["notes"] = {CAUTION: {"temperature": float(self.temperature)}}
        write_model(name, self.model, self.tokenizer, extra, SelfAttentionClassifier)

    @classmethod
    def load(cls, name: str | Path) -> Self:
        """Read and check what `save` wrote; or, by a name alone such as "imdb", a model that comes with the course.

        The temperature in its file, if there's one, is applied to every answer. Raises FileNotFoundError or ValueError that
        names the file that is missing, damaged or of another kind.
        """
        saved = read_model(name, SelfAttentionClassifier, ClassifierConfig, ["label_names"])
        return cls(saved.model, saved.tokenizer, saved.extra["label_names"], stored_temperature(name))

    def encode(self, texts: Iterable[str]) -> list[Tensor]:
        """Texts to (token_ids, attention_mask), cut to what the model can read, on the model's device."""
        ids = [self.tokenizer.encode(text) for text in list_of_texts(texts)]
        batch = pad_batch(ids, self.tokenizer.pad_id, self.model.config.max_len, "head_tail")
        return [tensor.to(self.model.output.weight.device) for tensor in batch]

    @torch.no_grad()
    def predict(self, texts: Iterable[str], batch_size: int = 64) -> tuple[list[str], Tensor]:
        """Label name and probability of every class for each text: (labels, probabilities (texts, classes) float32).

        The probabilities are those at the classifier's temperature. Puts the model in eval mode. Raises TypeError for
        anything but a list (or column) of strings, and FloatingPointError for a model whose answers aren't numbers.
        """
        texts = list_of_texts(texts)
        check_options({"batch_size": batch_size}, {"batch_size": whole(1, 1_000_000)})
        self.model.eval()                                                  # no dropout, also after an interrupted training
        probabilities = torch.zeros(len(texts), len(self.label_names))
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # similar lengths together: less padding
        for start in range(0, len(texts), batch_size):
            chosen = by_length[start : start + batch_size]
            logits = self.model(*self.encode([texts[i] for i in chosen])).logits
            probabilities[chosen] = (logits.float() / self.temperature).softmax(dim=-1).cpu()
        check_answers(probabilities)
        labels = [self.label_names[i] for i in probabilities.argmax(dim=-1).tolist()]
        return labels, probabilities

    @torch.no_grad()
    def explain(self, text: str) -> Explanation:
        """The tokens the model read, what it attended to, and what it decided."""
        check_text(text)
        self.model.eval()
        tokens = truncate(self.tokenizer.tokenize(text), self.model.config.max_len, "head_tail")
        result = self.model(*self.encode([text]), need_weights=True)
        probabilities = (result.logits[0].float() / self.temperature).softmax(dim=-1)
        check_answers(probabilities)
        weights = result.pooling_weights
        if weights is None:                                                # mean pooling: equal weights
            weights = torch.full((1, max(1, len(tokens))), 1 / max(1, len(tokens)))
        shown = slice(0, len(tokens))
        attentions = torch.stack(result.attentions)[:, 0, :, shown, shown] if result.attentions else torch.zeros(0)
        label = self.label_names[int(probabilities.argmax())]
        return Explanation(tokens, weights[0, shown], attentions, label, dict(zip(self.label_names, probabilities.tolist())))
