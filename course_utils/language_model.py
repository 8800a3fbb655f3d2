"""A decoder that completes texts: the blocks of 07 under a causal mask, and at the end a score for every token there is.

Does: `LanguageModel`, as notebook 13 writes it, with checks, every kind of positions, attention maps on request, and the
caches that its section 6 adds; tests/test_language_model.py holds the two equal. `next_token_loss` trains it with
`course_utils.training.fit`, `sample` draws from logits, `generate` continues texts, `load_gpt2` reads GPT-2's weights. Does
not: tokenize, or complete names in an editor (see `course_utils.completion`).
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import causal_mask
from course_utils.options import SAMPLING_RULES, check_model_options, check_options, one_of
from course_utils.positional_encoding import POSITIONS, make_positions
from course_utils.shapes import check_ends, check_token_ids
from course_utils.training.byte_pair_files import GPT2Tokenizer, read_gpt2_tokenizer
from course_utils.training.hugging_face import check_settings, fill, read_checkpoint
from course_utils.training.processes import NothingCounts
from course_utils.transformer_blocks import ACTIVATIONS, Encoder

__all__ = ["bits_per_byte", "LanguageModelConfig", "LanguageModelResult", "LanguageModel", "next_token_loss",
           "sampling_probabilities", "sample", "KeyValueCache", "GPT2_NAMES", "gpt2_config", "gpt2_weights", "load_gpt2"]


def bits_per_byte(nats: float, texts: Sequence[str]) -> float:
    """`nats`, the sum of -ln p over all tokens of some texts, as bits for each byte of their UTF-8.

    Taught in 13_language_model, '3. The model, and how good its guesses are'.
    """
    return nats / math.log(2) / sum(len(text.encode("utf-8")) for text in texts)


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig:
    """Everything that fixes a `LanguageModel` but its weights.

    `tied`: the matrix that looks tokens up also scores them (Press and Wolf 2017). The model reads at most `max_len` tokens.
    Raises ValueError that names the option for a value outside its range.
    """

    vocab_size: int
    d_model: int = 128
    num_heads: int = 4
    d_ff: int = 512
    num_layers: int = 4
    max_len: int = 512
    positions: str = "rotary"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation: str = "gelu"
    tied: bool = True
    pad_id: int = 0
    layer_norm_eps: float = 1e-5

    def __post_init__(self):
        check_model_options(vars(self), positions=POSITIONS, activation=ACTIVATIONS)


class LanguageModelResult(NamedTuple):
    """`logits` (batch, seq_len, vocab): position i scores the candidates for token i + 1; with `need_weights` also
    `attentions`, one (batch, heads, query, key) for each layer, otherwise None.
    """

    logits: Tensor
    attentions: list[Tensor] | None


class LanguageModel(nn.Module):
    """Token ids to logits for the token that follows each of them; a decoder-only Transformer (Radford et al. 2019).

    (token_ids (batch, seq_len), need_weights, caches) -> LanguageModelResult. Position i sees tokens 0 to i. With
    `caches`, one `KeyValueCache` for each layer, token_ids are those that come next, and the logits are theirs.
    Padding after a text never changes its logits. `generate` continues texts. Raises ValueError for more than
    `config.max_len` tokens.

    Taught in 13_language_model, '3. The model, and how good its guesses are'.
    """

    def __init__(self, config: LanguageModelConfig):
        super().__init__()
        self.config = config
        d_model, num_heads = config.d_model, config.num_heads
        self.embedding = nn.Embedding(config.vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)                   # small, since it scores the tokens, too
        self.positions = make_positions(config.positions, d_model, num_heads, config.max_len)
        self.dropout = nn.Dropout(config.dropout)
        self.decoder = Encoder(                                            # 07's stack; the mask makes a decoder of it
            config.num_layers, d_model, num_heads, config.d_ff,
            dropout=config.dropout, attention_dropout=config.attention_dropout, activation=config.activation,
            layer_norm_eps=config.layer_norm_eps,
        )
        self.output = None if config.tied else nn.Linear(d_model, config.vocab_size, bias=False)

    def mask(self, new: int, total: int) -> Tensor:
        """Which of `total` tokens each of the last `new` may attend to: (1, 1, new, total)."""
        return causal_mask(new, total, self.embedding.weight.device)[None, None]

    def forward(self, token_ids: Tensor, need_weights: bool = False, caches: Sequence | None = None) -> LanguageModelResult:
        offset = len(caches[0]) if caches else 0
        check_token_ids(token_ids, self.config.max_len, offset)
        new = token_ids.shape[1]
        total = offset + new
        x = self.dropout(self.positions.add(self.embedding(token_ids), offset))
        mask = self.mask(new, total) if new > 1 else None                  # a single new token may look at everything
        x, attentions = self.decoder(
            x, mask, self.positions.bias(new, total), self.positions.rotate, need_weights, caches
        )                                                                  # (batch, new, d_model)
        weight = self.embedding.weight if self.output is None else self.output.weight
        return LanguageModelResult(F.linear(x, weight), attentions)        # (batch, new, vocab)

    def new_caches(self) -> list["KeyValueCache"]:
        """An empty cache for each layer."""
        return [KeyValueCache() for _ in self.decoder.blocks]

    @torch.no_grad()
    def generate(
        self, token_ids: Tensor, max_new_tokens: int, *, temperature: float = 1.0, top_k: int | None = None,
        top_p: float | None = None, generator: torch.Generator | None = None, use_cache: bool = True,
    ) -> Tensor:
        """Continue token_ids (batch, seq_len) by `max_new_tokens` ids drawn by `sample`: (batch, seq_len + max_new_tokens).

        When there are more than `config.max_len` tokens, the model forgets all but the last half of that number. Rows must
        not be padded. A single `pad_id` at the end of every row is taken for a token, since some models begin texts with it.
        Raises ValueError for ids of another shape, rows that end in padding, or a setting outside its range.
        """
        check_options({"max_new_tokens": max_new_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p},
                      SAMPLING_RULES)
        check_token_ids(token_ids)
        check_ends(token_ids, self.config.pad_id)
        training, _ = self.training, self.eval()
        caches, start, done = self.new_caches(), 0, 0                      # the caches hold the tokens from start to done
        try:
            for _ in range(max_new_tokens):
                if token_ids.shape[1] - start > self.config.max_len:
                    start = done = token_ids.shape[1] - max(1, self.config.max_len // 2)
                    caches = self.new_caches()
                if use_cache:
                    logits = self(token_ids[:, done:], caches=caches).logits[:, -1]    # (batch, vocab)
                else:
                    logits = self(token_ids[:, start:]).logits[:, -1]
                done = token_ids.shape[1]
                drawn = sample(logits, temperature, top_k, top_p, generator)   # (batch,)
                token_ids = torch.cat([token_ids, drawn[:, None]], dim=1)
        finally:                                                           # also after an error, or an interruption
            self.train(training)
        return token_ids


def next_token_loss(model: nn.Module, token_ids: Tensor, mask: Tensor | None = None) -> tuple[Tensor, int]:
    """The mean of -ln p(next token), in nats, and over how many tokens: a `loss_of` for `course_utils.training.fit`.

    token_ids (batch, seq_len): position i is asked for token i + 1. Answers that are `pad_id` don't count. Or, with a
    `mask` (batch, seq_len) such as `pad_batch` returns, those don't where it's False: for models whose `pad_id` is a token
    of the texts, too. Raises ValueError for fewer than two tokens, a mask of another shape, and if no answer counts.

    Taught in 13_language_model, '2. All positions at once'.
    """
    if token_ids.dim() != 2 or token_ids.shape[1] < 2:
        raise ValueError(f"token_ids have shape {tuple(token_ids.shape)}; they must be (batch, seq_len) with two tokens "
                         "or more: the second is the first that can be asked for")
    if mask is not None and mask.shape != token_ids.shape:
        raise ValueError(f"the mask has shape {tuple(mask.shape)}, token_ids {tuple(token_ids.shape)}; make them equal")
    pad_id = model.config.pad_id
    counts = (token_ids != pad_id if mask is None else mask.bool())[:, 1:]  # (batch, seq_len - 1)
    if not counts.any():
        why = f"is pad_id={pad_id}" if mask is None else "is masked"
        raise NothingCounts(f"every answer {why}, so there is nothing to learn from; leave empty texts out")
    logits = model(token_ids[:, :-1]).logits                               # (batch, seq_len - 1, vocab)
    targets = token_ids[:, 1:].masked_fill(~counts, -100)                  # what cross_entropy leaves out
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten()), int(counts.sum())


def sampling_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """What `sample` draws from: logits (..., vocab) to probabilities of the same shape; each row adds up to one.

    The logits are divided by `temperature`; at 0, or below 1e-6, the highest gets everything (of equal ones, the lowest
    id). `top_k` keeps the k most probable tokens, `top_p` the fewest whose probabilities add up to p or more (Holtzman et
    al. 2020, section 3.1); the others get 0. With both, a token must pass both. Raises ValueError for a setting outside
    its range.

    Taught in 13_language_model, '5. Choosing a token'.
    """
    check_options({"temperature": temperature, "top_k": top_k, "top_p": top_p}, SAMPLING_RULES)
    if temperature < 1e-6:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    highest = logits.amax(dim=-1, keepdim=True)                            # taken off, so that nothing overflows
    probabilities = ((logits - highest) / temperature).softmax(dim=-1)     # (..., vocab)
    ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)  # (..., vocab)
    keep = torch.ones_like(ordered, dtype=torch.bool)
    if top_k is not None:
        keep[..., top_k:] = False
    if top_p is not None and top_p < 1:
        exact = ordered.double()                                           # a sum of many small numbers
        keep &= exact.cumsum(dim=-1) - exact < top_p                       # those before it don't add up to p yet
    kept = torch.zeros_like(probabilities).scatter(-1, ids, ordered * keep)
    return kept / kept.sum(dim=-1, keepdim=True)


def sample(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw one id from each row: logits (..., vocab) -> ids (...). The settings are those of `sampling_probabilities`.

    Taught in 13_language_model, '5. Choosing a token'.
    """
    probabilities = sampling_probabilities(logits, temperature, top_k, top_p)
    if temperature < 1e-6:
        return probabilities.argmax(dim=-1)                                # there is nothing to draw
    drawn = torch.multinomial(probabilities.reshape(-1, logits.shape[-1]), 1, generator=generator)
    return drawn.reshape(logits.shape[:-1])


class KeyValueCache:
    """The keys and values of the tokens read so far, in one layer: what `MultiHeadAttention` asks its `cache` for.

    `append(key, value)` takes those of new tokens, (batch, heads, new, d_head), and returns those of all tokens,
    (batch, heads, len + new, d_head). `len(cache)` is the number of tokens in it.

    Taught in 13_language_model, '6. The key/value cache'.
    """

    def __init__(self):
        self.key = self.value = None

    def __len__(self) -> int:
        return 0 if self.key is None else self.key.shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.key is not None:
            key, value = torch.cat([self.key, key], dim=-2), torch.cat([self.value, value], dim=-2)
        self.key, self.value = key, value
        return key, value


GPT2_NAMES = {
    ".wte.": ".embedding.", ".wpe.weight": ".positions.table", ".h.": ".decoder.blocks.", ".ln_f.": ".decoder.norm.",
    ".ln_1.": ".attention_norm.", ".attn.c_proj.": ".attention.output_projection.",
    ".ln_2.": ".feed_forward_norm.", ".mlp.c_fc.": ".feed_forward.expand.", ".mlp.c_proj.": ".feed_forward.contract.",
    ".lm_head.": ".output.",
}


def gpt2_config(config: dict) -> LanguageModelConfig:
    """The configuration of a Hugging Face GPT-2, their config.json as a dict, as ours (Radford et al. 2019, section 2.3).

    GPT-2 has no token for padding; where config.json names none, `pad_id` is the token that ends texts (see `load_gpt2`).
    Raises ValueError that names the setting for one that `LanguageModel` doesn't compute.
    """
    check_settings(config, needed=["vocab_size", "n_embd", "n_head", "n_layer", "n_positions"],
                   only={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False})
    activations = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
    named = config.get("activation_function", "gelu_new")
    known = [i for i in (config.get("pad_token_id"), config.get("eos_token_id"), 0) if i in range(config["vocab_size"])]
    check_options({"activation_function": named}, {"activation_function": one_of(*activations)})
    return LanguageModelConfig(
        vocab_size=config["vocab_size"], d_model=config["n_embd"], num_heads=config["n_head"], num_layers=config["n_layer"],
        d_ff=config.get("n_inner") or 4 * config["n_embd"], max_len=config["n_positions"], positions="learned",
        activation=activations[named], layer_norm_eps=config.get("layer_norm_epsilon", 1e-5),
        tied=config.get("tie_word_embeddings", True), pad_id=known[0],
    )


def gpt2_weights(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a Hugging Face GPT-2 under the names of `LanguageModel`, turned and split as it wants them.

    Taught in 13_language_model, "8. GPT-2's weights, and the Tab key".
    """
    ours = {}
    for name, tensor in theirs.items():
        name = "." + name.removeprefix("transformer.")                     # '.h.0.attn.c_attn.weight'
        if name.endswith((".attn.bias", ".attn.masked_bias")):
            continue                                                       # old files hold the causal mask, too
        for their, our in GPT2_NAMES.items():
            name = name.replace(their, our)
        if ".blocks." in name and tensor.dim() == 2:
            tensor = tensor.T                                              # theirs are (in, out), nn.Linear has (out, in)
        if ".c_attn." in name:                                             # three matrices in one
            for part, rows in zip(("query", "key", "value"), tensor.chunk(3)):
                ours[name[1:].replace("attn.c_attn", f"attention.{part}_projection")] = rows
        else:
            ours[name[1:]] = tensor
    return ours


def load_gpt2(folder_or_name: str) -> tuple[LanguageModel, GPT2Tokenizer | None]:
    """A Hugging Face GPT-2 as a `LanguageModel`, with its tokenizer: load_gpt2("gpt2"), or a folder.

    The tokenizer is None where the folder has none that is built like GPT-2's. GPT-2 has no padding token, so ours pads with
    the one that ends texts: in training, give `next_token_loss` a mask, or the ends aren't asked for. Raises
    ModelNotAvailable where there is no such model to be had, ValueError for a file that is damaged or of another kind.

    Taught in 13_language_model, "8. GPT-2's weights, and the Tab key".
    """
    checkpoint = read_checkpoint(folder_or_name, "gpt2")
    model = LanguageModel(gpt2_config(checkpoint.config))
    weights = gpt2_weights(checkpoint.weights)
    if model.config.tied:
        weights.pop("output.weight", None)                                 # some files hold the one matrix twice
    fill(model, weights, checkpoint.folder)
    return model.eval(), read_gpt2_tokenizer(checkpoint.folder)
