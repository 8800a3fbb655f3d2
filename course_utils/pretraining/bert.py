"""BERT: its encoder, the head and the loss that it's pretrained with, and its weights from Hugging Face's files."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import padding_mask
from course_utils.options import check_model_options, check_options, one_of
from course_utils.positional_encoding import LearnedPositions
from course_utils.pretraining.masking import mask_tokens
from course_utils.pretraining.word_pieces import WordPieceTokenizer
from course_utils.training.hugging_face import check_settings, fill, read_checkpoint
from course_utils.training.model_kinds import ENCODER, kind_in
from course_utils.training.saved_models import find_model, read_model
from course_utils.training.word_piece_files import read_word_pieces
from course_utils.transformer_blocks import ACTIVATIONS, Encoder

__all__ = ["BertConfig", "BertResult", "BertEncoder", "MaskedLanguageModel", "MaskedTokenLoss", "BERT_NAMES", "MASKED_NAMES",
           "OTHER_HEADS", "bert_config", "bert_weights", "load_bert"]


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Everything that fixes a `BertEncoder` but its weights; the defaults are BERT-base's (Devlin et al. 2019, section 3).

    Raises ValueError that names the option for a value outside its range.
    """

    vocab_size: int
    d_model: int = 768
    num_heads: int = 12
    d_ff: int = 3072
    num_layers: int = 12
    max_len: int = 512
    num_token_types: int = 2
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    pooler: bool = True
    pad_id: int = 0

    def __post_init__(self):
        check_model_options(vars(self), activation=ACTIVATIONS)


class BertResult(NamedTuple):
    """`x` (batch, seq_len, d_model), after the last layer; `pooled` (batch, d_model), or None without a pooler;
    `hidden_states`, num_layers + 1 tensors like x, the embeddings first; `attentions`, one for each layer, or None.
    """

    x: Tensor
    pooled: Tensor | None
    hidden_states: list[Tensor]
    attentions: list[Tensor] | None


def _check_inputs(config: BertConfig, token_ids: Tensor, **parts: Tensor | None) -> None:
    for name, ids, count, do in (
        ("token_ids", token_ids, config.vocab_size, "encode the text with the tokenizer that its weights were trained with"),
        ("token_types", parts.get("token_types"), config.num_token_types, "give each text a type that it was trained with"),
    ):
        least, most = ids.aminmax() if ids is not None and ids.numel() else (0, 0)
        if least < 0 or most >= count:
            raise ValueError(f"{name} go from {least} to {most}, and this encoder knows 0 to {count - 1}; {do}")
    for name, part in parts.items():
        if token_ids.dim() != 2 or (part is not None and part.shape != token_ids.shape):
            raise ValueError(f"token_ids have shape {tuple(token_ids.shape)}, {name} "
                             f"{None if part is None else tuple(part.shape)}; both must be (batch, seq_len). "
                             "For a single text, write token_ids[None]")


class BertEncoder(nn.Module):
    """Token ids to one vector for each token, as BERT computes them: the encoder of 08 with post-norm blocks.

    (token_ids (batch, seq_len), attention_mask bool or None, token_types or None, need_weights) -> BertResult.
    Without a mask every id but `config.pad_id` counts as real; without token types, all are 0.

    Taught in 14_pretraining, '3. Your encoder, with six changes'.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = c = config
        self.embedding, self.token_types = nn.Embedding(c.vocab_size, c.d_model), nn.Embedding(c.num_token_types, c.d_model)
        for table in (self.embedding, self.token_types):
            nn.init.normal_(table.weight, std=0.02)
        self.positions = LearnedPositions(c.d_model, c.max_len)
        self.embedding_norm, self.dropout = nn.LayerNorm(c.d_model, eps=c.layer_norm_eps), nn.Dropout(c.dropout)
        self.encoder = Encoder(
            c.num_layers, c.d_model, c.num_heads, c.d_ff, norm_first=False, dropout=c.dropout,
            attention_dropout=c.attention_dropout, activation=c.activation, layer_norm_eps=c.layer_norm_eps,
        )
        self.pooler = nn.Linear(c.d_model, c.d_model) if c.pooler else None

    def embed(self, token_ids: Tensor, token_types: Tensor | None = None) -> Tensor:
        """The sum of three vectors, normalised: (batch, seq_len) -> (batch, seq_len, d_model)."""
        token_types = torch.zeros_like(token_ids) if token_types is None else token_types
        x = self.positions.add(self.embedding(token_ids) + self.token_types(token_types))
        return self.dropout(self.embedding_norm(x))

    def forward(
        self, token_ids: Tensor, attention_mask: Tensor | None = None, token_types: Tensor | None = None,
        need_weights: bool = False,
    ) -> BertResult:
        attention_mask = token_ids != self.config.pad_id if attention_mask is None else attention_mask
        _check_inputs(self.config, token_ids, attention_mask=attention_mask, token_types=token_types)
        mask, attentions = padding_mask(attention_mask), []
        hidden_states = [self.embed(token_ids, token_types)]               # (batch, seq_len, d_model)
        for block in self.encoder.blocks:
            x, weights = block(hidden_states[-1], mask, need_weights=need_weights)
            hidden_states.append(x)
            attentions.append(weights)
        x = hidden_states[-1]
        pooled = None if self.pooler is None else torch.tanh(self.pooler(x[:, 0]))  # (batch, d_model)
        return BertResult(x, pooled, hidden_states, attentions if need_weights else None)


class MaskedLanguageModel(nn.Module):
    """A `BertEncoder` with a score for every token at each position (Devlin et al. 2019, section 3.1, task 1).

    (token_ids, attention_mask, token_types, chosen) -> logits (batch, seq_len, vocab); with `chosen` (batch, seq_len) bool
    only for those positions, (chosen, vocab), which costs less.

    Taught in 14_pretraining, '3. Your encoder, with six changes'.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.config, self.encoder = config, BertEncoder(config)
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.transform_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(
        self, token_ids: Tensor, attention_mask: Tensor | None = None, token_types: Tensor | None = None,
        chosen: Tensor | None = None,
    ) -> Tensor:
        x = self.encoder(token_ids, attention_mask, token_types).x         # (batch, seq_len, d_model)
        x = x if chosen is None else x[chosen]                             # (chosen, d_model)
        x, kind = self.transform(x), self.config.activation                # that of the blocks
        x = F.relu(x) if kind == "relu" else F.gelu(x, approximate="tanh" if kind == "gelu_tanh" else "none")
        return F.linear(self.transform_norm(x), self.encoder.embedding.weight, self.output_bias)


@dataclasses.dataclass(frozen=True)
class MaskedTokenLoss:
    """Mean -ln p of the chosen tokens alone, and how many they are: a `loss_of` for `course_utils.training.fit`.

    A batch is token_ids (batch, seq_len). Padding and the ids in `never` ([CLS], [SEP] …) are never chosen. In training each
    call hides other tokens; in evaluation mode the same ones every time, so that losses can be compared.

    Taught in 14_pretraining, '1. Hide a word, and ask only there'.
    """

    mask_id: int
    never: tuple[int, ...] = ()
    rate: float = 0.15

    def __call__(self, model: MaskedLanguageModel, token_ids: Tensor) -> tuple[Tensor, int]:
        real = token_ids != model.config.pad_id
        can_hide = real & ~torch.isin(token_ids, torch.tensor(self.never, dtype=token_ids.dtype, device=token_ids.device))
        generator = None if model.training else torch.Generator(token_ids.device).manual_seed(0)
        inputs, chosen = mask_tokens(token_ids, can_hide, self.mask_id, model.config.vocab_size, self.rate, generator)
        logits = model(inputs, real, chosen=chosen)                                        # (chosen, vocab)
        loss = F.cross_entropy(logits.float(), token_ids[chosen], reduction="sum")
        return loss / max(1, len(logits)), max(1, len(logits))

    @property
    def fingerprint(self) -> str:
        return repr(self)


BERT_NAMES = {
    "embeddings.word_embeddings.": "embedding.", "embeddings.position_embeddings.weight": "positions.table",
    "embeddings.token_type_embeddings.": "token_types.", "embeddings.LayerNorm.": "embedding_norm.",
    "encoder.layer.": "encoder.blocks.", "pooler.dense.": "pooler.",
    "attention.self.query.": "attention.query_projection.", "attention.self.key.": "attention.key_projection.",
    "attention.self.value.": "attention.value_projection.", "attention.output.dense.": "attention.output_projection.",
    "attention.output.LayerNorm.": "attention_norm.", "intermediate.dense.": "feed_forward.expand.",
    "output.dense.": "feed_forward.contract.", "output.LayerNorm.": "feed_forward_norm.",
}
MASKED_NAMES = {"cls.predictions.transform.dense.": "transform.", "cls.predictions.transform.LayerNorm.": "transform_norm.",
                "cls.predictions.bias": "output_bias", "cls.predictions.decoder.bias": "output_bias"}
OTHER_HEADS = ("cls.", "classifier.", "qa_outputs.")                       # of models for one task, above the encoder


def bert_config(config: dict) -> BertConfig:
    """The configuration of a Hugging Face BERT, their config.json as a dict, as ours.

    Raises ValueError that names the setting for one that `BertEncoder` doesn't compute.
    """
    check_settings(config, needed=["vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers",
                                   "intermediate_size", "max_position_embeddings"],
                   only={"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False})
    activations = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
    named = config.get("hidden_act", "gelu")
    check_options({"hidden_act": named}, {"hidden_act": one_of(*activations)})
    return BertConfig(
        vocab_size=config["vocab_size"], d_model=config["hidden_size"], num_heads=config["num_attention_heads"],
        d_ff=config["intermediate_size"], num_layers=config["num_hidden_layers"],
        max_len=config["max_position_embeddings"], num_token_types=config.get("type_vocab_size", 2),
        dropout=config.get("hidden_dropout_prob", 0.1), attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
        activation=activations[named], layer_norm_eps=config.get("layer_norm_eps", 1e-12),
        pad_id=config.get("pad_token_id") or 0,
    )


def bert_weights(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a Hugging Face BERT under the names of `MaskedLanguageModel`; heads for other tasks are left out.
    """
    ours = {}
    for name, tensor in theirs.items():
        name = name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias")  # in old files
        if name.endswith("position_ids"):
            continue                                                       # old files hold 0, 1, 2 … too
        for their, our in MASKED_NAMES.items():
            name = name.replace(their, our)
        if not name.startswith(OTHER_HEADS) and name.partition(".")[0] not in ("transform", "transform_norm", "output_bias"):
            for their, our in BERT_NAMES.items():
                name = name.replace(their, our)
            name = "encoder." + name
        if not name.startswith(OTHER_HEADS):
            ours[name] = tensor
    return ours


def load_bert(
    folder_or_name: str | Path, masked: bool = False, **changes
) -> tuple[BertEncoder | MaskedLanguageModel, WordPieceTokenizer | None]:
    """A Hugging Face BERT as a `BertEncoder`, with its tokenizer: load_bert("bert-base-uncased"), or a folder.

    load_bert("encoder") is the small one that comes with the course.
    With `masked`, a `MaskedLanguageModel`; the file must have that head. `changes` replace settings of the configuration
    that no weight depends on, such as dropout=0.0. The tokenizer is None where the folder has none of word pieces. Raises
    ModelNotAvailable where there is no such model to be had, ValueError for a damaged file or one of another kind.

    Taught in 14_pretraining, '5. Real weights in your class'.
    """
    if kind_in(own := find_model(folder_or_name)) is ENCODER:
        return _kept_encoder(own, masked, changes)
    checkpoint = read_checkpoint(folder_or_name, "bert")
    weights = bert_weights(checkpoint.weights)
    has_pooler = any(name.startswith("encoder.pooler.") for name in weights)
    config = dataclasses.replace(bert_config(checkpoint.config), **{"pooler": has_pooler, **changes})
    if masked:
        check_settings(checkpoint.config, needed=[], only={"tie_word_embeddings": True})
        if "output_bias" not in weights:
            raise ValueError(f"{checkpoint.folder} has no head for hidden words, no weights named cls.predictions: its "
                             f"architectures are {checkpoint.config.get('architectures')}; leave out masked=True")
        apart = checkpoint.weights.get("cls.predictions.decoder.weight")
        if apart is not None and not torch.equal(apart, weights["encoder.embedding.weight"]):
            raise ValueError(f"{checkpoint.folder} scores hidden words by a matrix of its own, cls.predictions.decoder."
                             "weight; ours takes the word vectors, so it would compute something else")
        model = MaskedLanguageModel(config)
    else:
        model = BertEncoder(config)
        weights = {name.removeprefix("encoder."): t for name, t in weights.items() if name.startswith("encoder.")}
    fill(model, weights, checkpoint.folder)
    found = read_word_pieces(checkpoint.folder)
    return model.eval(), None if found is None else WordPieceTokenizer(**found)


def _kept_encoder(path: Path, masked: bool, changes: dict) -> tuple[BertEncoder, WordPieceTokenizer]:
    """An encoder in the course's own format, with `changes` to its configuration."""
    if masked:
        raise ValueError(f"{path} has no head for hidden words; leave out masked=True")
    saved = read_model(path, BertEncoder, BertConfig)
    model = BertEncoder(dataclasses.replace(saved.model.config, **changes))
    model.load_state_dict(saved.model.state_dict())
    return model.eval(), WordPieceTokenizer(saved.tokenizer.vocabulary)
