"""The Transformer of notebook 17 as a folder that Hugging Face's classes read.

Does: `save_transformer` writes a Blenderbot, a Pegasus or a Marian, whichever computes the same, with the settings under
which the library's `generate` writes what `beam_search` does. Does not: write a tokenizer, or a Transformer that no class
of the library computes.

Exported from notebooks/extras/library_translators.ipynb: edit it there.
"""

import json
from pathlib import Path

import torch
from torch import Tensor

from course_utils.encoder_decoder import Transformer, TransformerConfig
from course_utils.training.pair_batches import BEGIN, END, PAD
from course_utils.training.written_checkpoints import write_checkpoint

__all__ = ["even_first", "sines_first", "THEIR_ACTIVATIONS", "THEIR_TRANSFORMERS", "library_transformer_config",
           "TRANSFORMER_NAMES", "library_transformer_weights", "save_transformer"]


def even_first(rows: Tensor) -> Tensor:
    """Rows 0, 1, 2, 3 … in the order 0, 2, …, 1, 3, …: same shape.

    Taught in extras/library_translators, '2. Their names, their order'.
    """
    return torch.cat([rows[0::2], rows[1::2]])


def sines_first(name: str, tensor: Tensor) -> Tensor:
    """A weight of a `Transformer` with the d_model coordinates in their order.

    `name` is the weight's name, which says whether it has these coordinates in its
    rows, its columns or not at all.

    Taught in extras/library_translators, '2. Their names, their order'.
    """
    if any(part in name for part in ("norm.", ".output_projection.", ".contract.")):
        return even_first(tensor)                        # (d_model, …): it writes them
    if name.endswith(".bias"):
        return tensor                                    # of another size
    return even_first(tensor.T).T                        # (…, d_model): it reads them


THEIR_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}
THEIR_TRANSFORMERS = {("learned", True): ("blenderbot", "BlenderbotForConditionalGeneration"),     # positions, norm_first
                      ("sinusoidal", True): ("pegasus", "PegasusForConditionalGeneration"),
                      ("sinusoidal", False): ("marian", "MarianMTModel")}


def library_transformer_config(config: TransformerConfig) -> dict:
    """What Hugging Face's config.json says for a `Transformer`: that of a Blenderbot, a Pegasus or a Marian.

    Raises ValueError that names everything in the configuration that doesn't fit.

    Taught in extras/library_translators, '2. Their names, their order'.
    """
    c = config
    kind, made_for = THEIR_TRANSFORMERS.get((c.positions, c.norm_first), (None, None))
    wrong = [] if kind else [f"positions={c.positions!r} with norm_first={c.norm_first}, where they have 'sinusoidal' with "
                             "either, or 'learned' with norm_first=True"]
    if c.layer_norm_eps != 1e-5:
        wrong.append(f"layer_norm_eps={c.layer_norm_eps}, where they have 1e-05")
    if kind in ("blenderbot", "pegasus") and c.source_vocab_size > c.vocab_size:
        wrong.append(f"source_vocab_size={c.source_vocab_size} above vocab_size={c.vocab_size}, where a {kind.capitalize()} "
                     "has one size for both and would write words that don't exist")
    if wrong:
        raise ValueError("no encoder–decoder that the library has computes this Transformer: it has " + "; and ".join(wrong))
    sizes = {"vocab_size": c.vocab_size, "tie_word_embeddings": False} if kind != "marian" else {
        "vocab_size": c.source_vocab_size, "decoder_vocab_size": c.vocab_size, "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": c.tied}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": c.num_layers, f"{side}_attention_heads": c.num_heads, f"{side}_ffn_dim": c.d_ff}
    return {"model_type": kind, "architectures": [made_for], "d_model": c.d_model, **sizes,
            "max_position_embeddings": c.max_len, "activation_function": THEIR_ACTIVATIONS[c.activation],
            "scale_embedding": True, "dropout": c.dropout, "activation_dropout": c.dropout,
            "attention_dropout": c.attention_dropout, "pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END,
            "decoder_start_token_id": BEGIN, "forced_eos_token_id": None}


TRANSFORMER_NAMES = {
    "source_embedding.": "encoder.embed_tokens.", "target_embedding.": "decoder.embed_tokens.", ".blocks.": ".layers.",
    "coder.norm.": "coder.layer_norm.", ".cross_attention_norm.": ".encoder_attn_layer_norm.",
    ".cross_attention.": ".encoder_attn.", ".attention_norm.": ".self_attn_layer_norm.", ".attention.": ".self_attn.",
    ".feed_forward_norm.": ".final_layer_norm.", ".feed_forward.expand.": ".fc1.", ".feed_forward.contract.": ".fc2.",
    ".query_projection.": ".q_proj.", ".key_projection.": ".k_proj.", ".value_projection.": ".v_proj.",
    ".output_projection.": ".out_proj.", "output.weight": "lm_head.weight",
}


def library_transformer_weights(ours: dict[str, Tensor], config: TransformerConfig) -> dict[str, Tensor]:
    """The weights of a `Transformer` for the class that `library_transformer_config` names.

    Taught in extras/library_translators, '2. Their names, their order'.
    """
    theirs = {}
    for name, tensor in ours.items():
        tensor = sines_first(name, tensor) if config.positions == "sinusoidal" else tensor
        for our, their in TRANSFORMER_NAMES.items():
            name = name.replace(our, their)
        theirs[name if name.startswith("lm_head.") else f"model.{name}"] = tensor
    table, target = theirs.pop("model.positions.table"), theirs["model.decoder.embed_tokens.weight"]
    theirs |= {f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")}   # they have one each
    theirs = {"lm_head.weight": target, **theirs, "final_logits_bias": torch.zeros(1, config.vocab_size)}
    if (config.positions, config.norm_first) != ("sinusoidal", False):                             # one size for both sides
        source, unread = theirs["model.encoder.embed_tokens.weight"], config.vocab_size - config.source_vocab_size
        source = torch.cat([source, source.new_zeros(unread, config.d_model)])
        theirs |= {"model.encoder.embed_tokens.weight": source, "model.shared.weight": target}
    return theirs


def save_transformer(model: Transformer, folder: str | Path) -> Path:
    """Write a `Transformer` as a folder that `AutoModelForSeq2SeqLM` reads.

    Learned positions make it a Blenderbot, sinusoidal ones a Pegasus or, with norm_first=False, a Marian. The library's
    `generate` writes what `beam_search` does with alpha=0 if you hand it length_penalty=0.0, as long as the search ends
    before its limit. The folder has no tokenizer: ids go in, ids come out. Blenderbot and Pegasus get a tied matrix twice,
    so further training there would make two of it. Returns the path. Raises TypeError for another kind of model, ValueError
    for a configuration that no class of the library computes, and what `write_checkpoint` raises.

    Taught in extras/library_translators, '2. Their names, their order'.
    """
    if type(model) is not Transformer:
        raise TypeError(f"the model is a {type(model).__name__}; save_transformer takes a Transformer")
    config = library_transformer_config(model.config)
    search = {"pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END, "decoder_start_token_id": BEGIN,
              "max_length": model.config.max_len, "suppress_tokens": [PAD, BEGIN], "renormalize_logits": True}
    return write_checkpoint(folder, config, library_transformer_weights(model.state_dict(), model.config),
                            {"generation_config.json": json.dumps(search, indent=2) + "\n"})
