"""What a model of Hugging Face attends to in a text, and what it answers, for an attention view.

Does: run an encoder, a decoder or an encoder-decoder on one text, or on two texts at once, and keep its weights under the
layers' own numbers. Does not: import transformers; a model is known by what it can do. A model is run in evaluation mode
without gradients, and left in the mode it was in.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from course_utils.figures.text import count, one_line
from course_utils.interactive.attention_data import Kind, Side, make_kind
from course_utils.interactive.attention_words import (
    Labels,
    between_texts,
    by_words,
    check_vocabulary,
    has_two_vocabularies,
    speller,
    starts_by_spelling,
    starts_of,
    starts_of_written,
    texts_of_tokens,
    token_texts,
    words_at,
)

MOST_GENERATED = 20  # tokens of a text that an encoder-decoder writes by itself
# Whatever a generation_config asks for, one text is written, greedily, and comes back as ids.
GREEDILY = {
    "max_new_tokens": MOST_GENERATED, "do_sample": False, "num_beams": 1, "num_beam_groups": 1, "diversity_penalty": 0.0,
    "num_return_sequences": 1, "return_dict_in_generate": False, "output_attentions": False, "output_hidden_states": False,
    "output_scores": False, "output_logits": False, "penalty_alpha": None, "dola_layers": None, "constraints": None,
    "force_words_ids": None, "prompt_lookup_num_tokens": None, "assistant_early_exit": None, "use_mtp": None,
    "stop_strings": None, "low_memory": None, "token_healing": False, "max_time": None, "cache_implementation": None,
    "cache_config": None, "max_cache_len": None, "guidance_scale": None, "watermarking_config": None,
    "prefill_chunk_size": None, "early_stopping": False, "is_assistant": None,
}


@torch.no_grad()
def from_hugging_face(model: object, tokenizer: object, text: object, target: object, layers: Sequence[int] | None,
                      check_rows: bool, by_word: bool) -> Side:
    """An encoder, a decoder or an encoder-decoder on one text, or on two in a tuple, with its special tokens.

    `tokenizer` is one, or for an encoder-decoder with two vocabularies the pair (source's, target's). The decoder reads
    `target` or, without one, what the model writes by itself, greedily; that of a classifier reads the text itself.
    Raises ValueError for a model that returns no attentions, a text that is too long, a target that the model has no use
    for, one tokenizer for two vocabularies. The message says what to do.
    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    texts = _texts(text)
    two_parts = _has_two_parts(model)
    readers = _tokenizers(model, tokenizer, two_parts)
    if target is not None and not two_parts:
        raise ValueError(f"target= is read by the decoder of an encoder-decoder, but {type(model).__name__} is none: "
                         "leave it out")
    inputs, labels = _read(model, readers[0], texts, by_word)
    training = model.training
    model.eval()
    try:
        if two_parts:
            written = _decoder_input(model, readers, inputs, labels, target, by_word)
            inputs["decoder_input_ids"], target_labels = written
        result, numbers = _run(model, inputs)
    finally:
        model.train(training)

    def kind(name: str, field: str, rows: Labels, columns: Labels | None = None) -> Kind:
        weights = _weights(model, result, field, numbers, len(rows.tokens), len((columns or rows).tokens), check_rows)
        keys = None if columns is None else columns.tokens
        made = make_kind(name, weights, rows.tokens, keys, wanted=layers, check_rows=check_rows)
        return by_words(made, rows, columns or rows) if by_word else made

    if two_parts:
        kinds = [kind("encoder", "encoder_attentions", labels), kind("decoder", "decoder_attentions", target_labels),
                 kind("cross-attention", "cross_attentions", target_labels, labels)]
    else:
        kinds = [kind("attention" if len(texts) == 1 else "both texts", "attentions", labels)]
    if len(texts) == 2:
        kinds[1:1] = between_texts(kinds[0], labels, "encoder, " if two_parts else "")
    return Side(kinds, None, *_answer(model, result))


# ---- what is asked for ----

def _texts(text: object) -> tuple[str, ...]:
    """The one text or the two."""
    if isinstance(text, tuple) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return text
    if not isinstance(text, str):
        hint = "; two texts that the model reads at once go in a tuple, (first, second)" * isinstance(text, (list, tuple))
        raise ValueError(f"text is of type {type(text).__name__}; expected one text, a string{hint}")
    return (text,)


def _has_two_parts(model: object) -> bool:
    """Whether it's an encoder-decoder. Raises ValueError for one half of one, and for a model of several choices."""
    name = type(model).__name__
    if "MultipleChoice" in name:
        raise ValueError(f"{name} reads a question with each of several choices, so there isn't one text to show: pass the "
                         "encoder in it, model.base_model, with one choice in the text")
    if not getattr(model.config, "is_encoder_decoder", False):
        return False
    if "decoder_input_ids" not in _parameters(model):
        if "For" in name or "EncoderModel" in name:  # such as T5ForTokenClassification, which needs no decoder
            return False
        half = "decoder" if "encoder_hidden_states" in _parameters(model) and (
            "Decoder" in name or getattr(model, "is_decoder", False)) else "encoder"
        raise ValueError(f"this {name} is only the {half} of an encoder-decoder: pass the whole model, from which it was "
                         "taken")
    return True


def _parameters(model: object) -> set[str]:
    return set(inspect.signature(model.forward).parameters)


def _tokenizers(model: object, given: object, two_parts: bool) -> tuple[object, object]:
    """The tokenizer of what the encoder reads, and that of what the decoder reads. Raises ValueError for others."""
    several = isinstance(given, (tuple, list))
    if several and len(given) != 2:
        raise ValueError(f"got {count(len(given), 'tokenizer', 'tokenizers')}; expected one, or (source's, target's)")
    if several and not two_parts:
        raise ValueError(f"got two tokenizers, which are for an encoder-decoder with two vocabularies, but "
                         f"{type(model).__name__} is none: give one")
    found = tuple(given) if several else (given, given)
    for tokenizer in found:
        if not callable(tokenizer) or not hasattr(tokenizer, "convert_ids_to_tokens"):
            inside = next((f": pass the tokenizer in it, .{name}" for name in ("tokenizer", "func")
                           if hasattr(getattr(tokenizer, name, None), "convert_ids_to_tokens")), "")
            raise ValueError(f"the tokenizer is of type {type(tokenizer).__name__}, which can't turn ids back into tokens; "
                             "expected the tokenizer itself, as AutoTokenizer.from_pretrained gives it, and not a function "
                             f"that calls it{inside}")
    if two_parts and not several and _two_vocabularies(model) and not has_two_vocabularies(given):
        raise ValueError(f"{type(model).__name__} has one embedding matrix for what its encoder reads and another for what "
                         "its decoder reads, so these may be two vocabularies: give both tokenizers, attention_view(model, "
                         "(source_tokenizer, target_tokenizer), text), or the same one twice if the two sides share it")
    return found


def _two_vocabularies(model: object) -> bool:
    """Whether encoder and decoder have embedding matrices of their own, with different numbers in them."""
    one, two = (_embeddings(part) for part in (model.get_encoder(), model.get_decoder()))
    if one is None or two is None:
        return False
    return one is not two and (one.shape != two.shape or not torch.equal(one, two))


def _embeddings(part: object) -> Tensor | None:
    """(ids, features) of a model or half of one; None where it embeds in another way, such as by bytes."""
    try:
        return part.get_input_embeddings().weight
    except (AttributeError, NotImplementedError, TypeError):
        return getattr(getattr(part, "embed_tokens", None), "weight", None)


def _device(model: object) -> torch.device:
    return next(model.parameters()).device


# ---- what the model reads ----

def _read(model: object, tokenizer: object, texts: tuple[str, ...], by_word: bool) -> tuple[dict[str, Tensor], Labels]:
    """What goes into the model, and the labels of its tokens. Raises ValueError for no tokens, and for too many."""
    taken, types = _parameters(model), getattr(model.config, "type_vocab_size", None)
    types = types if isinstance(types, int) else None
    asked = {"return_token_type_ids": True} if len(texts) == 2 and "token_type_ids" in taken and (types or 0) > 1 else {}
    encoded = tokenizer(*texts, return_tensors="pt", **asked)
    inputs = {name: tensor.to(_device(model)) for name, tensor in encoded.items()
              if name in ("input_ids", "attention_mask") or (name == "token_type_ids" and name in taken)}
    ids = inputs["input_ids"][0]
    _check_length(model, "encoder", tokenizer, ids, "the text has" if len(texts) == 1 else "the two texts have together")
    if types is not None and "token_type_ids" in inputs and int(inputs["token_type_ids"].max()) >= types:
        del inputs["token_type_ids"]  # the model has one type, and the tokenizer writes two
    tokens, parts = token_texts(tokenizer, ids), None
    if len(texts) == 2:
        parts = texts_of_tokens(tokenizer, encoded, texts)
        places = [[i for i, part in enumerate(parts) if part == which] for which in (0, 1)]
        if not all(places):
            raise ValueError(f"the {'second' if places[0] else 'first'} of the two texts has no tokens; give two with at "
                             "least one word each")
        if None not in parts[min(places[0][-1], places[1][-1]):max(places[0][0], places[1][0])]:
            raise ValueError(f"the tokenizer puts nothing between two texts, so {type(model).__name__} can't know where the "
                             "second begins: join them in words that the model knows, such as 'first text. Question: second "
                             "text', and give that one text")
    words = None
    if by_word:
        starts = starts_of(encoded, texts) or starts_by_spelling(tokenizer, ids)
        words = words_at(starts, speller(tokenizer, ids))
    return inputs, Labels(tokens, words, parts)


def _check_length(model: object, half: str, tokenizer: object, ids: Tensor, told: str) -> None:
    """Refuse a text without tokens, with more than the model reads, or with unknown ids; nothing is cut in silence.

    `half` of an encoder-decoder reads it; `told` begins the sentence about its length.
    """
    length, name, part = len(ids), type(model).__name__, model
    if not length:
        raise ValueError(f"{told} no tokens; give one with at least one word")
    if _has_two_parts(model):
        part = getattr(model, f"get_{half}")()
    config = getattr(part, "config", model.config)
    limits = [getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None),
              _positions(part)]
    most = min([limit for limit in limits if isinstance(limit, int) and limit > 0], default=length)
    if length > most:
        raise ValueError(f"{told} {length} tokens, and {name} reads at most {most}: give less text")
    table = _embeddings(part)
    if table is not None and int(ids.max()) >= len(table):
        raise ValueError(f"the tokenizer gives the id {int(ids.max())}, but {name} has {len(table)} embeddings: is it "
                         "the tokenizer that belongs to this model?")


def _positions(model: object) -> int | None:
    """How many tokens a model of RoBERTa's family reads: its positions are counted from the one after that of padding."""
    for module in model.modules():
        table, first = getattr(module, "position_embeddings", None), getattr(module, "padding_idx", None)
        if isinstance(first, int) and isinstance(getattr(table, "padding_idx", None), int) and hasattr(table, "weight"):
            return table.weight.shape[0] - first - 1
    return None


# ---- what the decoder reads ----

def _decoder_input(model: object, tokenizers: tuple[object, object], inputs: dict, labels: Labels, target: object,
                   by_word: bool) -> tuple[Tensor, Labels]:
    """The ids that the decoder reads, its start token first: (1, target_len), and their labels."""
    tokenizer, name, starts = tokenizers[1], type(model).__name__, None
    if _two_vocabularies(model):
        check_vocabulary(tokenizers[0], "source", len(_embeddings(model.get_encoder())))
        check_vocabulary(tokenizer, "target", len(_embeddings(model.get_decoder())))
    if _classifies(model) or name.endswith("ForQuestionAnswering"):
        if target is not None:
            raise ValueError(f"{name} answers from one text, which its decoder reads, too: leave target= out")
        ids = _shifted(model, inputs["input_ids"])
        starts = labels.words and [True, *_marks(labels)[:-1]]
    elif target is None:
        ids = _generated(model, inputs)
    else:
        if not isinstance(target, str):
            raise ValueError(f"target is of type {type(target).__name__}; expected one text, a string")
        if has_two_vocabularies(tokenizer) and not hasattr(tokenizer, "_switch_to_target_mode"):
            raise ValueError(f"{type(tokenizer).__name__} encodes a text with the source's vocabulary alone: leave target= "
                             "out, or give a tokenizer of the target's own, (source_tokenizer, target_tokenizer)")
        encoded = tokenizer(text_target=target, return_tensors="pt")
        ids = encoded["input_ids"].to(_device(model))
        if ids.shape[-1]:
            ids = _shifted(model, ids)
        starts = by_word and starts_of(encoded, (target,))
        starts = starts and [True, *starts[:-1]]
    _check_length(model, "decoder", tokenizer, ids[0], "what its decoder reads has" if target is None else "the target has")
    tokens = token_texts(tokenizer, ids[0], target=True)
    words = None
    if by_word:
        starts = starts or starts_of_written(tokenizer, ids[0])
        words = words_at(starts, speller(tokenizer, ids[0], target=True))
    return ids, Labels(tokens, words)


def _marks(labels: Labels) -> list[bool]:
    """For each token whether it begins a word."""
    starts = {start for start, _ in labels.words}
    return [i in starts for i in range(len(labels.tokens))]


def _shifted(model: object, ids: Tensor) -> Tensor:
    """The start token, and all but the last of the ids, which nothing follows: the same shape."""
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        start = getattr(getattr(model, "generation_config", None), "decoder_start_token_id", None)
    if start is None:
        raise ValueError("the model's configuration names no decoder_start_token_id; set "
                         "model.config.decoder_start_token_id to the id that begins what the decoder reads")
    return torch.cat([torch.full_like(ids[:, :1], start), ids[:, :-1]], dim=1)


def _generated(model: object, inputs: dict) -> Tensor:
    """What the model writes by itself, greedily: (1, target_len). Raises ValueError for one that can't."""
    name = type(model).__name__
    if not (hasattr(model, "can_generate") and model.can_generate()):
        raise ValueError(f"{name} can't write a text by itself: give target=, the text its decoder reads")
    own = {key: value for key, value in vars(model.generation_config).items() if value is not None and key[0] != "_"}
    settings = GREEDILY | {key: min(own[key], MOST_GENERATED) for key in ("min_length", "min_new_tokens") if key in own}
    try:
        return _written(model, inputs, settings)
    except Exception as error:  # whatever a setting brings about: the one without which the model does write is named
        for setting in sorted(own.keys() - settings.keys() - {"transformers_version"}):
            try:
                _written(model, inputs, settings | {setting: None})
            except Exception:  # not this one, or not alone
                continue
            raise ValueError(f"{name} can't write a text with generation_config.{setting}={own[setting]!r} "
                             f"({one_line(error, 200)}): set model.generation_config.{setting} = None, or give target=, the "
                             "text its decoder reads") from error
        raise ValueError(f"{name} can't write a text by itself ({one_line(error, 200)}): give target=, the text its decoder "
                         "reads") from error


def _written(model: object, inputs: dict, settings: dict) -> Tensor:
    """The ids that `generate` writes with these settings and the model's own others."""
    own = model.generation_config
    model.generation_config = copy.deepcopy(own)
    vars(model.generation_config).update(settings)
    try:
        written = model.generate(**inputs)
    finally:
        model.generation_config = own
    return getattr(written, "sequences", written)


# ---- what the model attends to, and answers ----

def _run(model: object, inputs: dict) -> tuple[object, dict[int, int]]:
    """The model's result, and for each (batch, heads, query, key) in it, by its `id`, the number of the layer that made it.

    A model's list of attentions holds only those layers that attend, so their places in it aren't their numbers. Every list
    of modules counts its layers, and the outermost one that a tensor comes from is the model's list of layers.
    """
    inside, made, hooks = [], {}, []

    def begin(number: int) -> Callable:
        return lambda *_: inside.append(number)

    def end(*_) -> None:
        inside.pop()

    def note(module: nn.Module, _, output: object) -> None:
        for part in output if isinstance(output, tuple) else (output,):
            if inside and isinstance(part, Tensor) and part.dim() == 4:
                made.setdefault(id(part), (inside[0], part))  # kept, so that no other tensor gets its id

    try:
        for module in model.modules():
            hooks.append(module.register_forward_hook(note))
        for module in model.modules():
            for number, layer in enumerate(module if isinstance(module, nn.ModuleList) else ()):
                hooks.append(layer.register_forward_pre_hook(begin(number)))
                hooks.append(layer.register_forward_hook(end, always_call=True))
        result = model(**inputs, output_attentions=True, return_dict=True)
    except (IndexError, RuntimeError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise ValueError(f"{type(model).__name__} can't be run on a text alone: {one_line(error, 300)}. A view gives it "
                         f"{', '.join(inputs)} and output_attentions=True") from error
    finally:
        for hook in hooks:
            hook.remove()
    return result, {key: number for key, (number, _) in made.items()}


def _weights(model: object, result: object, field: str, numbers: dict[int, int], queries: int, keys: int,
             check_rows: bool) -> list:
    """(1, heads, query, key) at the number of each layer, None where a layer has no attention."""
    layers = list(getattr(result, field, None) or ())
    made = [numbers.get(id(layer)) for layer in layers]
    if None not in made and all(one < two for one, two in pairwise(made)):  # a list of only those layers that attend
        placed = dict(zip(made, layers))
        layers = [placed.get(i) for i in range(made[-1] + 1)] if made else []
    types = getattr(model.config, "layer_types", None) or getattr(model.config, "layers_block_type", None) or ()
    for i, kind in enumerate(types[:len(layers)]):
        if any(other in str(kind) for other in ("linear", "mamba", "recurrent", "conv")):
            layers[i] = None  # what such a layer keeps isn't attention, even where it returns it as that
    name = type(model).__name__
    if not any(layer is not None for layer in layers):
        raise ValueError(f"{name} returned no attentions: {_why_none(model)}")
    in_windows = bool(getattr(model.config, "attention_window", None)) and "decoder" not in field and "cross" not in field
    for layer in layers:
        shape = tuple(getattr(layer, "shape", ()))
        if layer is not None and (in_windows or shape[:1] + shape[2:] != (1, queries, keys)):
            told = f"of shape {shape}" if shape else f"that are of type {type(layer).__name__}"
            told += ", whose columns are places in a window" * in_windows
            raise ValueError(f"{name} returned {field} {told}; expected (1, heads, {queries}, {keys}), a weight for each "
                             "query and key of this text. Its attention is of a special kind (windows, blocks, pooled or "
                             "recurrent states), which a view of tokens can't show")
        if layer is not None and float(layer.min()) < 0:
            raise ValueError(f"{name} returned {field} as low as {float(layer.min()):.4g}; weights are never negative, so "
                             "these are something else, such as scores before the softmax, which a view can't show")
    if check_rows:
        _check_rows(model, layers)
    return [None if layer is None else layer[0] for layer in layers]


def _why_none(model: object) -> str:
    """Why a model returned no attention weights, and what to do."""
    used = getattr(model.config, "_attn_implementation", None)
    kinds = sorted({type(module).__name__ for module in model.modules() if "attention" in type(module).__name__.lower()})
    if not kinds:
        return ("it has no attention at all, its layers mix the tokens in another way. Expected a model that attends, such "
                "as a BERT or a GPT-2")
    if used not in (None, "eager"):
        return (f"it was loaded with attn_implementation={used!r}, which keeps no weights. Load it with "
                "from_pretrained(name, attn_implementation='eager'), or call model.set_attn_implementation('eager') first")
    sparse = getattr(model.config, "attention_type", None) == "block_sparse"  # BigBird's
    helps = " Load it with attention_type='original_full', which computes it plainly." if sparse else ""
    return (f"its attention is of a special kind, which keeps no weights for each query and key ({', '.join(kinds[:3])})."
            f"{helps or ' Expected a model with plain attention, such as a BERT or a GPT-2'}")


def _check_rows(model: object, layers: list) -> None:
    """Refuse rows that don't sum to one, with what a library's model has to do with it."""
    for layer in layers:
        if layer is None or not torch.isfinite(layer).all():
            continue
        sums = layer.double().sum(dim=-1)
        allowed = 2e-2 if layer.dtype in (torch.float16, torch.bfloat16) else 1e-3
        wrong = ((sums - 1).abs() > allowed) & (sums != 0)
        if wrong.any():
            sinks = [name for name, _ in model.named_parameters() if "sink" in name]
            because = (f"it has attention sinks ({sinks[0]}), which take a part of each row and belong to no token" if sinks
                       else "its attention is of a kind whose rows needn't")
            raise ValueError(f"the attention weights of {type(model).__name__} don't sum to one, a row of them sums to "
                             f"{float(sums[wrong][0]):.4g}: {because}. check_rows=False shows them as they are")


def _classifies(model: object) -> bool:
    """Whether the model gives a whole text one of its labels."""
    return any("ForSequenceClassification" in kind.__name__ for kind in type(model).__mro__)


def _answer(model: object, result: object) -> tuple:
    """Label and probability of a model that classifies whole texts; nothing for any other.

    Where the classes don't exclude each other, there's no single label: each class has the sigmoid of its own logit.
    """
    logits, names = getattr(result, "logits", None), getattr(model.config, "id2label", None)
    problem = getattr(model.config, "problem_type", None)
    if not _classifies(model) or logits is None or logits.dim() != 2 or not names or len(names) != logits.shape[-1]:
        return "", None
    if problem == "multi_label_classification":
        each = logits[0].float().sigmoid().tolist()
        return "", None, [(str(names.get(i, i)), probability) for i, probability in enumerate(each)]
    if problem == "regression" or len(names) < 2:
        return "", None
    probabilities = logits[0].float().softmax(dim=-1)
    best = int(probabilities.argmax())
    return str(names.get(best, best)), float(probabilities[best])
