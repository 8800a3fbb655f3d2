"""What makes a Llama of a GPT: RMSNorm, SwiGLU, rotary positions, grouped queries.

Does: `Llama` is the `LanguageModel` of notebook 13 with any of the four changes; `load_llama` fills one with Hugging Face's
weights. Does not: train, or tokenize.

Exported from notebooks/20_real_language_model.ipynb: edit it there.
"""

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import AttentionResult
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.options import check_groups, check_options, positive, yes_or_no
from course_utils.positional_encoding import RotaryPositions
from course_utils.training.hugging_face import check_settings, fill, read_checkpoint

__all__ = ["rms_norm", "SwiGLU", "GroupedQueryAttention", "LlamaConfig", "Llama", "LLAMA_NAMES", "llama_weights",
           "llama_config", "load_llama"]


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """Each vector of x (..., d_model) divided by its root mean square, then scaled.

    Zhang and Sennrich 2019, section 4. `nn.RMSNorm` computes the same.

    Taught in 20_real_language_model, '1. A norm without a mean, and a gate'.
    """
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight


class SwiGLU(nn.Module):
    """A feed-forward layer with a gate, (..., d_model) -> (..., d_model).

    No biases (Shazeer 2020, section 2). With d_ff = 8/3 d_model it has as many weights
    as `FeedForward` with 4 d_model.

    Taught in 20_real_language_model, '1. A norm without a mean, and a gate'.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.expand = nn.Linear(d_model, d_ff, bias=False)
        self.contract = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(F.silu(self.gate(x)) * self.expand(x)))


class GroupedQueryAttention(MultiHeadAttention):
    """Multi-head attention in which several heads of queries share keys and values.

    Ainslie et al. 2023, section 2. Takes and returns what `MultiHeadAttention` does,
    without biases; a cache holds `num_kv_heads` heads only. Head h of the queries reads
    head h // (num_heads / num_kv_heads) of keys and values. Raises ValueError for a
    `num_kv_heads` that doesn't divide num_heads.

    Taught in 20_real_language_model, '2. Fewer keys, and another order of the rows'.
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int,
                 attention_dropout: float = 0.0):
        super().__init__(d_model, num_heads, projection_bias=False,
                         attention_dropout=attention_dropout)
        check_groups(num_heads, num_kv_heads)
        self.group = num_heads // num_kv_heads
        narrow = num_kv_heads * self.d_head
        self.key_projection = nn.Linear(d_model, narrow, bias=False)
        self.value_projection = nn.Linear(d_model, narrow, bias=False)
        for layer in (self.key_projection, self.value_projection):
            nn.init.xavier_uniform_(layer.weight)

    def split(self, x: Tensor) -> Tensor:
        """(batch, seq_len, heads · d_head) -> (batch, heads, seq_len, d_head)."""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None,
        bias: Tensor | None = None, need_weights: bool = False,
    ) -> AttentionResult:
        """Repeat each head of keys and values for its group, then attend as before."""
        key, value = (x.repeat_interleave(self.group, dim=1) for x in (key, value))
        return super().attend(query, key, value, mask, bias, need_weights)


@dataclasses.dataclass(frozen=True)
class LlamaConfig(LanguageModelConfig):
    """The options of `LanguageModelConfig` and of the changes.

    Llama 2's 70B model has all four (Touvron et al. 2023, arXiv:2307.09288,
    section 2.2); 7B and 13B don't group queries.

    `rms_norm` and `swiglu` replace layer norm and the feed-forward layer.
    `num_kv_heads` puts in grouped queries; None keeps attention as it is, with biases.
    Rotary positions are `positions="rotary"`, by position / rotary_base^(2i/d_head).

    Taught in 20_real_language_model, '3. All four in your class'.
    """

    rms_norm: bool = True
    swiglu: bool = True
    num_kv_heads: int | None = None
    rotary_base: float = 10000.0

    def __post_init__(self):
        super().__post_init__()
        check_options(vars(self), {"rms_norm": yes_or_no(), "swiglu": yes_or_no(),
                                   "rotary_base": positive(1e12)})


class Llama(LanguageModel):
    """A `LanguageModel` whose blocks have the parts that `LlamaConfig` asks for.

    Taught in 20_real_language_model, '3. All four in your class'.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        c, eps = config, config.layer_norm_eps
        if c.positions == "rotary":
            self.positions = RotaryPositions(c.d_model // c.num_heads, c.rotary_base)
        for block in self.decoder.blocks:
            if c.rms_norm:
                block.attention_norm = nn.RMSNorm(c.d_model, eps)
                block.feed_forward_norm = nn.RMSNorm(c.d_model, eps)
            if c.swiglu:
                block.feed_forward = SwiGLU(c.d_model, c.d_ff, c.dropout)
            if c.num_kv_heads is not None:
                block.attention = GroupedQueryAttention(
                    c.d_model, c.num_heads, c.num_kv_heads, c.attention_dropout)
        if c.rms_norm:
            self.decoder.norm = nn.RMSNorm(c.d_model, eps)


LLAMA_NAMES = {
    "model.embed_tokens.": "embedding.", "model.layers.": "decoder.blocks.",
    "model.norm.": "decoder.norm.", "lm_head.": "output.",
    "input_layernorm.": "attention_norm.",
    "post_attention_layernorm.": "feed_forward_norm.",
    "self_attn.q_proj.": "attention.query_projection.",
    "self_attn.k_proj.": "attention.key_projection.",
    "self_attn.v_proj.": "attention.value_projection.",
    "self_attn.o_proj.": "attention.output_projection.",
    "mlp.gate_proj.": "feed_forward.gate.", "mlp.up_proj.": "feed_forward.expand.",
    "mlp.down_proj.": "feed_forward.contract.",
}


def llama_weights(theirs: dict[str, Tensor], d_head: int) -> dict[str, Tensor]:
    """The weights of a Hugging Face Llama as `Llama` has them: its names, its pairs.

    Taught in 20_real_language_model, "4. What's in a checkpoint".
    """
    ours = {}
    for name, tensor in theirs.items():
        if name.endswith("rotary_emb.inv_freq"):
            continue                                     # old files have frequencies
        for their, our in LLAMA_NAMES.items():
            name = name.replace(their, our)
        if "query_projection" in name or "key_projection" in name:
            halves = tensor.unflatten(0, (-1, 2, d_head // 2))     # (heads, 2, d/2, …)
            tensor = halves.transpose(1, 2).flatten(0, 2)  # rows 0, d/2, 1, d/2 + 1, …
        ours[name] = tensor
    return ours


def llama_config(config: dict) -> LlamaConfig:
    """The configuration of a Hugging Face Llama, their config.json as a dict, as ours.

    Raises ValueError that names the setting for one that `Llama` doesn't compute, such as scaled rotary angles.

    Taught in 20_real_language_model, "4. What's in a checkpoint".
    """
    check_settings(config, needed=["vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "rms_norm_eps",
                                   "num_hidden_layers", "max_position_embeddings"], only={})
    heads, rotary = config["num_attention_heads"], config.get("rope_parameters") or {}
    check_settings(config | rotary, needed=[], only={
        "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None, "rope_type": "default",
        "head_dim": config["hidden_size"] // heads})
    ends = [config.get(name) for name in ("pad_token_id", "eos_token_id")]
    known = [i for i in ends if isinstance(i, int) and 0 <= i < config["vocab_size"]]
    return LlamaConfig(
        vocab_size=config["vocab_size"], d_model=config["hidden_size"], d_ff=config["intermediate_size"], num_heads=heads,
        num_kv_heads=config.get("num_key_value_heads") or heads, num_layers=config["num_hidden_layers"],
        max_len=config["max_position_embeddings"], layer_norm_eps=config["rms_norm_eps"],
        rotary_base=rotary.get("rope_theta") or config.get("rope_theta") or 10000.0,
        tied=config.get("tie_word_embeddings", False), pad_id=known[0] if known else 0,
    )


def load_llama(folder_or_name: str) -> Llama:
    """A Hugging Face Llama as a `Llama`, from a folder or by its name; its tokenizer is `transformers.AutoTokenizer`'s.

    Where config.json names no token for padding, `pad_id` is the one that ends texts: then train with
    `next_token_loss(model, token_ids, mask)`, or the ends aren't asked for. Raises ModelNotAvailable where there is no such
    model to be had, ValueError for a damaged file or one of another kind.

    Taught in 20_real_language_model, "4. What's in a checkpoint".
    """
    checkpoint = read_checkpoint(folder_or_name, "llama")
    model = Llama(llama_config(checkpoint.config))
    weights = llama_weights(checkpoint.weights, model.positions.d_head)
    if model.config.tied:
        weights.pop("output.weight", None)                                 # some files hold the one matrix twice
    fill(model, weights, checkpoint.folder)
    return model.eval()
