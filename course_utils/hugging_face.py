"""The course's models in Hugging Face's format, for the library's classes, and their classifiers in ours.

Does: `save_bert` writes a BERT of notebook 14 with its tokenizer, `save_language_model` a language model of notebook 13,
as folders that `from_pretrained` reads; `load_bert_classifier` reads a classifier. Does not: change what a model computes
(what no class of the library computes is refused), or write a Transformer of notebook 17: `library_translators` does.

    save_bert(model, tokenizer, "outputs/my_bert", ["negative", "positive"])
    transformers.pipeline("text-classification", "outputs/my_bert")("Not dull.")

Exported from notebooks/extras/hugging_face.ipynb: edit it there.
"""

from pathlib import Path

import torch
from torch import Tensor

from course_utils.byte_pairs import BPETokenizer
from course_utils.language_model import GPT2_NAMES, LanguageModel, LanguageModelConfig, load_gpt2
from course_utils.pretraining import (
    BERT_NAMES,
    MASKED_NAMES,
    BertClassifier,
    BertConfig,
    BertEncoder,
    LowRankAdapter,
    MaskedLanguageModel,
    WordPieceTokenizer,
    load_bert,
)
from course_utils.training.byte_pair_files import byte_pair_files
from course_utils.training.hugging_face import check_settings, fill, read_checkpoint
from course_utils.training.saved_contents import check_label_names
from course_utils.training.written_checkpoints import write_checkpoint

__all__ = ["library_names", "THEIR_ACTIVATIONS", "library_bert_config", "load_bert_classifier", "THEIR_CLASSES", "save_bert",
           "halves", "NEOX_NAMES", "library_decoder_weights", "library_decoder_config", "save_language_model"]


def library_names(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a BERT under Hugging Face's names: `bert_weights`, backwards.

    For a `MaskedLanguageModel` or a `BertClassifier`; the encoder's weights begin with
    'encoder.' here, with 'bert.' there.

    Taught in extras/hugging_face, '1. A model is a folder'.
    """
    heads = {our: their for their, our in MASKED_NAMES.items()
             if "decoder" not in their} | {"output.": "classifier."}
    inside = {our: their for their, our in BERT_NAMES.items()}
    theirs = {}
    for name, tensor in ours.items():
        in_encoder = name.startswith("encoder.")
        for our, their in (inside if in_encoder else heads).items():
            name = name.replace(our, their)
        if in_encoder:
            name = "bert." + name.removeprefix("encoder.")
        theirs[name] = tensor
    return theirs


THEIR_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu"}


def library_bert_config(config: BertConfig) -> dict:
    """Hugging Face's config.json for a `BertEncoder`: `bert_config`, backwards.

    Taught in extras/hugging_face, '1. A model is a folder'.
    """
    c = config
    return {
        "model_type": "bert", "vocab_size": c.vocab_size, "hidden_size": c.d_model,
        "num_attention_heads": c.num_heads, "num_hidden_layers": c.num_layers,
        "intermediate_size": c.d_ff, "max_position_embeddings": c.max_len,
        "type_vocab_size": c.num_token_types, "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": c.attention_dropout,
        "hidden_act": THEIR_ACTIVATIONS[c.activation],
        "layer_norm_eps": c.layer_norm_eps, "pad_token_id": c.pad_id,
        "tie_word_embeddings": True,
    }


def load_bert_classifier(
    folder_or_name: str | Path, **changes
) -> tuple[BertClassifier, WordPieceTokenizer | None, list[str]]:
    """Somebody's `BertForSequenceClassification` as a `BertClassifier`, with its tokenizer and the names of its classes.

    `folder_or_name` and `changes` are those of `load_bert`, and so is what's raised; also ValueError for a file that holds
    another head, or a classifier whose classes don't exclude each other.

    Taught in extras/hugging_face, "2. What can be written, and what can't".
    """
    checkpoint = read_checkpoint(folder_or_name, "bert")
    config = checkpoint.config
    head = {name: tensor for name, tensor in checkpoint.weights.items() if name.startswith("classifier.")}
    made_for = config.get("architectures") or ["nothing"]
    if made_for != ["BertForSequenceClassification"] or len(head) != 2 or head["classifier.weight"].dim() != 2:
        raise ValueError(f"{checkpoint.folder} holds a model made for {', '.join(made_for)}; expected one for "
                         "BertForSequenceClassification. load_bert takes the encoder out of any of them")
    check_settings(config, needed=[], only={"problem_type": "single_label_classification"})
    encoder, tokenizer = load_bert(checkpoint.folder, **changes)
    if encoder.pooler is None:
        raise ValueError(f"{checkpoint.folder} has a classifier and no pooler below it; expected both")
    names = [name for _, name in sorted((int(i), name) for i, name in (config.get("id2label") or {}).items())]
    number, dropout = len(head["classifier.weight"]), config.get("classifier_dropout")
    model = BertClassifier(encoder, number, "pooler", config.get("hidden_dropout_prob", 0.1) if dropout is None else dropout)
    fill(model.output, {name.removeprefix("classifier."): tensor for name, tensor in head.items()}, checkpoint.folder)
    return model.eval(), tokenizer, names if len(names) == number else [f"LABEL_{i}" for i in range(number)]


THEIR_CLASSES = {BertEncoder: "BertModel", MaskedLanguageModel: "BertForMaskedLM",
                 BertClassifier: "BertForSequenceClassification"}


def save_bert(
    model: BertEncoder | MaskedLanguageModel | BertClassifier, tokenizer: WordPieceTokenizer | None, folder: str | Path,
    label_names: list[str] | None = None,
) -> Path:
    """Write a BERT with its tokenizer as a folder that the library's `from_pretrained` and `load_bert` read.

    A `BertClassifier` must have pooling='pooler', as the library's class has; `label_names` are the names of its classes.
    The folder is there whole or not at all; an older checkpoint in it is replaced. Returns its path. Raises TypeError for
    another kind of model or tokenizer, ValueError for what the library's class doesn't compute, and what `write_checkpoint`
    raises.

    Taught in extras/hugging_face, "2. What can be written, and what can't".
    """
    if type(model) not in THEIR_CLASSES:
        raise TypeError(f"the model is a {type(model).__name__}; save_bert takes a BertClassifier, a MaskedLanguageModel or "
                        "a BertEncoder")
    if any(isinstance(part, LowRankAdapter) for part in model.modules()):
        raise ValueError("the model has low-rank adapters, which the library's BERT hasn't; put them into their matrices "
                         "first: merge_adapters(model)")
    config = {"architectures": [THEIR_CLASSES[type(model)]], **library_bert_config(model.config)}
    weights = model.state_dict()
    if type(model) is BertEncoder:
        weights = {f"encoder.{name}": tensor for name, tensor in weights.items()}
    if type(model) is BertClassifier:
        config |= _classifier_config(model, label_names)
    elif label_names is not None:
        raise ValueError(f"label_names are for a BertClassifier, and the model is a {type(model).__name__}; leave them out")
    load = load_bert_classifier if type(model) is BertClassifier else load_bert
    masked = {"masked": True} if type(model) is MaskedLanguageModel else {}
    return write_checkpoint(folder, config, library_names(weights), _tokenizer_files(model.config, tokenizer),
                            lambda path: load(path, **masked))


def _classifier_config(model: BertClassifier, label_names: list[str] | None) -> dict:
    if model.pooling != "pooler":
        raise ValueError(f"the classifier has pooling={model.pooling!r}, and the library's BertForSequenceClassification "
                         "reads the first token through the pooler, so its answers would differ; train "
                         "BertClassifier(encoder, pooling='pooler'), or save the encoder alone: model.encoder")
    number = model.output.out_features
    names = [f"LABEL_{i}" for i in range(number)] if label_names is None else label_names
    check_label_names(names, number)
    return {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)},
            "classifier_dropout": model.dropout.p, "problem_type": "single_label_classification"}


def _tokenizer_files(config: BertConfig, tokenizer: WordPieceTokenizer | None) -> dict[str, str]:
    if tokenizer is None:
        return {}
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise TypeError(f"the tokenizer is a {type(tokenizer).__name__}; use a WordPieceTokenizer, or None")
    if tokenizer.vocab_size > config.vocab_size or tokenizer.pad_id != config.pad_id:
        raise ValueError(f"the tokenizer has {tokenizer.vocab_size} tokens and pad_id={tokenizer.pad_id}, the model "
                         f"vocab_size={config.vocab_size} and pad_id={config.pad_id}; use the tokenizer it was trained with")
    return tokenizer.files(config.max_len)


def halves(rows: Tensor) -> Tensor:
    """Rows 0, 1, 2, 3 … of each head in the order 0, 2, …, 1, 3, …: same shape.

    rows (heads, d_head, …).

    Taught in extras/hugging_face, '4. Their `generate`, your language model'.
    """
    return torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=1)


NEOX_NAMES = {
    ".embed_in.": ".embedding.", ".layers.": ".decoder.blocks.", ".final_layer_norm.": ".decoder.norm.",
    ".input_layernorm.": ".attention_norm.", ".attention.dense.": ".attention.output_projection.",
    ".post_attention_layernorm.": ".feed_forward_norm.", ".mlp.dense_h_to_4h.": ".feed_forward.expand.",
    ".mlp.dense_4h_to_h.": ".feed_forward.contract.", ".embed_out.": ".output.",
}


def library_decoder_weights(ours: dict[str, Tensor], num_heads: int) -> dict[str, Tensor]:
    """The weights of a `LanguageModel` for Hugging Face's GPT-2 (learned positions), or for its GPT-NeoX (rotary ones).

    Taught in extras/hugging_face, '4. Their `generate`, your language model'.
    """
    gpt2, theirs = "positions.table" in ours, {}
    for name, tensor in ours.items():
        if "key_projection" in name or "value_projection" in name:
            continue                                                       # they go with the query's
        if "query_projection" in name:
            parts = [ours[name.replace("query", part)] for part in ("query", "key", "value")]
            if gpt2:
                tensor = torch.cat(parts)                                  # (3 · d_model, …)
            else:                                                          # one head after the other
                query, key, value = (part.unflatten(0, (num_heads, -1)) for part in parts)     # (heads, d_head, …)
                tensor = torch.cat([halves(query), halves(key), value], dim=1).flatten(0, 1)   # (3 · d_model, …)
            name = name.replace("attention.query_projection", "attn.c_attn" if gpt2 else "attention.query_key_value")
        name = "." + name
        for their, our in (GPT2_NAMES if gpt2 else NEOX_NAMES).items():
            name = name.replace(our, their)
        if gpt2 and ".h." in name and tensor.dim() == 2:
            tensor = tensor.T                                              # theirs are (in, out), nn.Linear has (out, in)
        inside = not name.startswith((".lm_head.", ".embed_out."))
        theirs[("transformer" if gpt2 else "gpt_neox") + name if inside else name[1:]] = tensor
    return theirs


def library_decoder_config(config: LanguageModelConfig) -> dict:
    """What Hugging Face's config.json says for a `LanguageModel`: that of a GPT-2, or with rotary positions of a GPT-NeoX.

    Raises ValueError for other positions.

    Taught in extras/hugging_face, '4. Their `generate`, your language model'.
    """
    c, activation = config, THEIR_ACTIVATIONS[config.activation]
    same = {"vocab_size": c.vocab_size, "tie_word_embeddings": c.tied, "pad_token_id": c.pad_id, "bos_token_id": None,
            "eos_token_id": None}
    if c.positions == "learned":
        return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": c.d_model, "n_head": c.num_heads,
                "n_layer": c.num_layers, "n_positions": c.max_len, "n_inner": c.d_ff, "activation_function": activation,
                "layer_norm_epsilon": c.layer_norm_eps, "embd_pdrop": c.dropout, "resid_pdrop": c.dropout,
                "attn_pdrop": c.attention_dropout, **same}
    if c.positions == "rotary":
        return {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_size": c.d_model,
                "num_attention_heads": c.num_heads, "num_hidden_layers": c.num_layers, "intermediate_size": c.d_ff,
                "max_position_embeddings": c.max_len, "hidden_act": activation, "layer_norm_eps": c.layer_norm_eps,
                "hidden_dropout": c.dropout, "attention_dropout": c.attention_dropout, "use_parallel_residual": False,
                "attention_bias": True, "rotary_pct": 1.0, "rotary_emb_base": 10000.0, **same}
    raise ValueError(f"positions={c.positions!r}, which neither GPT-2 nor GPT-NeoX computes; the library can run models "
                     "with positions='learned' or 'rotary'")


def save_language_model(model: LanguageModel, tokenizer: BPETokenizer | None, folder: str | Path) -> Path:
    """Write a `LanguageModel` as a folder that `AutoModelForCausalLM` and, with a tokenizer, the library's pipelines read.

    Learned positions make it a GPT-2, which `load_gpt2` reads too, rotary ones a GPT-NeoX. Written text never ends by
    itself, since the course's models have no token for an end. Returns the path. Raises TypeError for another kind of model
    or tokenizer, ValueError for positions that neither has, and what `write_checkpoint` raises.

    Taught in extras/hugging_face, '4. Their `generate`, your language model'.
    """
    if type(model) is not LanguageModel:
        raise TypeError(f"the model is a {type(model).__name__}; save_language_model takes a LanguageModel")
    if tokenizer is not None and type(tokenizer) is not BPETokenizer:
        raise TypeError(f"the tokenizer is a {type(tokenizer).__name__}; use a BPETokenizer, or None, and copy the files of "
                        "any other one into the folder")
    if tokenizer is not None and tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(f"the tokenizer has {tokenizer.vocab_size} tokens, and the model "
                         f"vocab_size={model.config.vocab_size}; use the tokenizer it was trained with")
    config = library_decoder_config(model.config)
    weights = library_decoder_weights(model.state_dict(), model.config.num_heads)
    files = {} if tokenizer is None else byte_pair_files(tokenizer, model.config.max_len)
    return write_checkpoint(folder, config, weights, files, load_gpt2 if config["model_type"] == "gpt2" else None)
