"""Where an attention view takes its weights from: the course's classifiers, Hugging Face's models, or plain tensors.

Does: run a model on one text and keep what it attended to. Does not: import transformers; a model is known by what it can
do. A model is run in evaluation mode without gradients, and left in the mode it was in.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch

from course_utils.figures.text import one_line
from course_utils.interactive.attention_data import Kind, Side, make_kind, make_pooling

MOST_GENERATED = 20  # tokens of a text that an encoder-decoder writes by itself


def from_tensors(tokens: object, attentions: object, key_tokens: object, attention_mask: object, pooling: object,
                 layers: Sequence[int] | None, check_rows: bool) -> Side:
    """Labels and weights as they are given. Raises ValueError where they don't fit."""
    kind = make_kind("attention", attentions, tokens, key_tokens, attention_mask=attention_mask, wanted=layers,
                     check_rows=check_rows)
    return Side([kind], make_pooling(pooling, kind, attention_mask, check_rows))


def from_classifier(model: object, text: object, layers: Sequence[int] | None, check_rows: bool) -> Side:
    """A `ReviewClassifier` on one text. Raises ValueError for a text without tokens and a model without attention."""
    _check_text(text)
    told = model.explain(text)
    tokens = [getattr(token, "text", token) for token in told.tokens]
    if not tokens:
        raise ValueError(f"the text {text!r} has no tokens; give one with at least one word")
    if not len(told.attentions):
        raise ValueError("the model has no attention layer; expected a model with num_layers=1 or more")
    kind = make_kind("attention", told.attentions, tokens, wanted=layers, check_rows=check_rows)
    return Side([kind], make_pooling(told.weights, kind, None, check_rows), told.label, told.probabilities[told.label])


@torch.no_grad()
def from_hugging_face(model: object, tokenizer: object, text: object, target: object, layers: Sequence[int] | None,
                      check_rows: bool) -> Side:
    """An encoder, a decoder or an encoder-decoder on one text, with its special tokens.

    An encoder-decoder reads `target` in its decoder or, without one, what it writes by itself, greedily. Raises ValueError
    for a model that returns no attentions, a text that is too long, and a target that the model has no use for.
    """
    _check_text(text)
    encoded = tokenizer(text, return_tensors="pt")
    taken = inspect.signature(model.forward).parameters
    inputs = {name: tensor.to(_device(model)) for name, tensor in encoded.items()
              if name in ("input_ids", "attention_mask") or (name == "token_type_ids" and name in taken)}
    _check_length(model, tokenizer, inputs["input_ids"], text)
    two_parts = bool(getattr(model.config, "is_encoder_decoder", False))
    if target is not None and not two_parts:
        raise ValueError(f"target= is read by the decoder of an encoder-decoder, but {type(model).__name__} is none: "
                         "leave it out")
    training = model.training
    model.eval()
    try:
        if two_parts:
            inputs["decoder_input_ids"] = _decoder_input(model, tokenizer, inputs, target)
        result = model(**inputs, output_attentions=True, return_dict=True)
    finally:
        model.train(training)
    tokens = token_texts(tokenizer, inputs["input_ids"][0])
    options = {"wanted": layers, "check_rows": check_rows}

    def kind(name: str, field: str, *labels: list[str]) -> Kind:
        return make_kind(name, _weights(model, result, field), *labels, **options)

    if two_parts:
        written = token_texts(tokenizer, inputs["decoder_input_ids"][0])
        return Side([kind("encoder", "encoder_attentions", tokens), kind("decoder", "decoder_attentions", written),
                     kind("cross-attention", "cross_attentions", written, tokens)])
    return Side([kind("attention", "attentions", tokens)], None, *_answer(model, result))


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}; expected one text, a string")


def _device(model: object) -> torch.device:
    return next(model.parameters()).device


def _check_length(model: object, tokenizer: object, ids: torch.Tensor, text: str) -> None:
    """Refuse a text without tokens, or with more than the model reads; nothing is cut in silence."""
    length = ids.shape[-1]
    if not length:
        raise ValueError(f"the text {one_line(text, 40)!r} has no tokens; give one with at least one word")
    limits = [getattr(model.config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None)]
    most = min([limit for limit in limits if isinstance(limit, int) and limit > 0], default=length)
    if length > most:
        raise ValueError(f"the text has {length} tokens, and {type(model).__name__} reads at most {most}: give a shorter "
                         "one")


def _decoder_input(model: object, tokenizer: object, inputs: dict, target: object) -> torch.Tensor:
    """The ids that the decoder reads, its start token first: (1, target_len)."""
    if target is None:
        if not (hasattr(model, "can_generate") and model.can_generate()):
            raise ValueError(f"{type(model).__name__} can't write a text by itself: give target=, the text its decoder "
                             "reads")
        return model.generate(**inputs, max_new_tokens=MOST_GENERATED, do_sample=False, num_beams=1)
    if not isinstance(target, str):
        raise ValueError(f"target is of type {type(target).__name__}; expected one text, a string")
    ids = tokenizer(text_target=target, return_tensors="pt")["input_ids"].to(_device(model))
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        start = getattr(getattr(model, "generation_config", None), "decoder_start_token_id", None)
    if start is None:
        raise ValueError("the model's configuration names no decoder_start_token_id; set "
                         "model.config.decoder_start_token_id to the id that begins what the decoder reads")
    return torch.cat([torch.full_like(ids[:, :1], start), ids[:, :-1]], dim=1)  # all but the last: nothing follows that


def _weights(model: object, result: object, field: str) -> list:
    """One (1, heads, query, key) for each layer, None where a layer has no attention."""
    layers = getattr(result, field, None)
    if layers is None or not any(layer is not None for layer in layers):
        used = getattr(model.config, "_attn_implementation", None)
        because = f"its result has no {field}"
        if used not in (None, "eager"):
            because = f"it was loaded with attn_implementation={used!r}, which keeps no weights"
        raise ValueError(f"{type(model).__name__} returned no attentions: {because}. Load it with "
                         "from_pretrained(name, attn_implementation='eager'), or call "
                         "model.set_attn_implementation('eager') first")
    return [None if layer is None else layer[0] for layer in layers]


def token_texts(tokenizer: object, ids: torch.Tensor) -> list[str]:
    """The tokens as text: special tokens as they are, 'Ġ' and '▁' as the space they stand for, bytes as characters."""
    tokens = [str(token) for token in tokenizer.convert_ids_to_tokens(ids.tolist())]
    special = set(getattr(tokenizer, "all_special_tokens", ()))
    of_bytes = any(token.startswith(("Ġ", "Ċ")) for token in tokens if token not in special)
    texts = []
    for token in tokens:
        if token not in special and of_bytes:
            decoded = tokenizer.convert_tokens_to_string([token])
            token = token if "�" in decoded else decoded  # part of a character: its bytes, as the tokenizer writes them
        elif token not in special:
            token = token.replace("▁", " ")
        texts.append(token)
    return texts


def _answer(model: object, result: object) -> tuple[str, float | None]:
    """The label of a model that classifies whole texts, with its probability; ('', None) of any other."""
    logits, names = getattr(result, "logits", None), getattr(model.config, "id2label", None)
    if logits is None or logits.dim() != 2 or not names or len(names) != logits.shape[-1] or len(names) < 2:
        return "", None
    probabilities = logits[0].float().softmax(dim=-1)
    best = int(probabilities.argmax())
    return str(names.get(best, best)), float(probabilities[best])
