"""Refuse tensors whose shapes would broadcast to a wrong answer without an error.

Does: check token ids, queries, keys and values, masks and biases against the scores they belong to, the inputs of
multi-head attention, what positions are added to, and attention weights. Does not: change a tensor, or (weights apart) look
at its values. A batch of five masks, broadcast against one text, makes five texts of it; a mask (batch, key) passes for
(query, key) where a batch holds as many texts as each text has tokens; a vector of one number takes a whole table of
positions.
"""

import math

import torch


def check_vectors(query, key, value) -> None:
    """Refuse queries (..., query, d_k), keys (..., key, d_k) and values (..., key, d_value) that don't fit each other.

    Raises TypeError for anything but tensors of floats (integers would round every weight to zero), else ValueError.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        _check_floats(name, x)
        if x.dim() < 2:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be (..., length, size). For one vector write "
                             f"{name}[None]")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has d_k={query.shape[-1]} and key has d_k={key.shape[-1]}; they must be the same")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"{key.shape[-2]} keys and {value.shape[-2]} values; each key needs its value")


def check_sequence(x, **size: int) -> None:
    """Refuse an x that isn't a tensor of floats (..., length, size): check_sequence(x, d_model=64) names the size."""
    (name, expected), = size.items()
    _check_floats("x", x)
    if x.dim() < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}; it must be (..., length, {name}={expected})")
    if x.shape[-1] != expected:
        raise ValueError(f"x has {name}={x.shape[-1]}; these positions were made for {name}={expected}")


def check_token_ids(token_ids, max_len: int | None = None, num_cached: int = 0) -> None:
    """Refuse token ids that aren't (batch, seq_len) with one token or more, after `num_cached` others at most `max_len`.

    Raises ValueError that says what to write instead.
    """
    if token_ids.dim() != 2 or token_ids.shape[1] == 0:
        raise ValueError(f"token_ids have shape {tuple(token_ids.shape)}; they must be (batch, seq_len), with one token or "
                         "more. For a single text, write token_ids[None]")
    total = num_cached + token_ids.shape[1]
    if max_len is not None and total > max_len:
        raise ValueError(f"{total} tokens, but the model reads at most max_len={max_len}; give it the last ones, "
                         f"token_ids[:, -{max_len}:]")


def check_batch(token_ids, attention_mask) -> None:
    """Refuse token ids and a mask that aren't both (batch, seq_len). Raises ValueError."""
    if token_ids.dim() != 2 or attention_mask.shape != token_ids.shape:
        raise ValueError(f"token_ids have shape {tuple(token_ids.shape)}, attention_mask {tuple(attention_mask.shape)}; "
                         "both must be (batch, seq_len). For a single text, write token_ids[None]")


def check_ends(token_ids, pad_id: int) -> None:
    """Refuse token ids (batch, seq_len) with a row that ends in padding, after which it would be continued.

    A single `pad_id` at the end of every row is taken for a token: GPT-2 pads with the token that ends its texts.
    Raises ValueError that names the row.
    """
    padding = token_ids[:, -2:] == pad_id
    ends = padding[:, -1] if 0 < padding[:, -1].sum() < len(padding) else padding.all(dim=1)
    if token_ids.shape[1] > 1 and ends.any():
        raise ValueError(f"row {int(ends.nonzero()[0])} of token_ids ends in padding (pad_id={pad_id}), and would be "
                         "continued after it; expected rows that end with their text. Give generate one text at a time, or "
                         "texts of one length")


def _check_floats(name: str, x) -> None:
    _check_tensor(name, x)
    if not x.is_floating_point():
        raise TypeError(f"{name} has dtype {x.dtype}; it must hold floats: use {name}.float()")


def _check_tensor(name: str, x) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} is of type {type(x).__name__}; it must be a tensor: use torch.as_tensor({name})")


def check_mask(mask, bias, scores: tuple[int, ...]) -> None:
    """Refuse a mask that isn't boolean, a bias that isn't a float, and either one that would make the scores larger.

    `scores` is their shape, (..., query, key); mask and bias (each may be None) broadcast to it, aligned at the right.
    Raises TypeError for a wrong dtype and ValueError for a wrong shape.
    """
    for name, given in (("mask", mask), ("bias", bias)):
        if given is not None:
            _check_tensor(name, given)
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}; it must be torch.bool, True = may attend. Use bias= to add to scores")
    if bias is not None and not bias.is_floating_point():
        raise TypeError(f"bias has dtype {bias.dtype}; it is added to the scores and must be a float. Pass a mask as mask=")
    for name, given in (("mask", mask), ("bias", bias)):
        if given is not None and not _broadcasts(given.shape, scores):
            hint = f"; for (batch, key) write {name}[:, {'None, ' * (len(scores) - 2)}:]" if len(scores) > 2 else ""
            raise ValueError(f"{name} has shape {tuple(given.shape)} and the scores, (..., query, key), {tuple(scores)}; "
                             f"aligned at the right, each size must be 1 or that of the scores{hint}")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` can be expanded to `to`."""
    return len(shape) <= len(to) and all(n == 1 or n == size for n, size in zip(reversed(shape), reversed(to)))


def check_attention_inputs(query, key, value, mask, bias, d_model: int, num_heads: int, num_cached: int = 0) -> None:
    """Refuse what multi-head attention can't take: inputs must be (batch, length, d_model), each key with its value.

    A mask needs all four dimensions, (batch, heads, query, key), a bias these or (heads, query, key); any of them may be 1.
    Before these keys there are `num_cached` others, from earlier calls; mask and bias are for all of them.
    Raises ValueError or TypeError that says what to write instead.
    """
    for name, x in (("query", query), ("key", key), ("value", value), ("mask", mask), ("bias", bias)):
        if x is not None:
            _check_tensor(name, x)
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 3 or x.shape[-1] != d_model:
            hint = f". For a single text, write {name}[None]" if x.dim() == 2 else ""
            raise ValueError(f"{name} has shape {tuple(x.shape)}; it must be (batch, length, d_model={d_model}){hint}")
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        raise ValueError(f"query, key and value are batches of {query.shape[0]}, {key.shape[0]} and {value.shape[0]} texts; "
                         "they must be of the same size (x.expand(batch_size, -1, -1) repeats a single text)")
    if key.shape[1] != value.shape[1]:
        raise ValueError(f"{key.shape[1]} keys and {value.shape[1]} values; each key needs its value")
    if mask is not None and mask.dim() != 4:
        raise ValueError(f"mask has shape {tuple(mask.shape)}; it needs all four dimensions, (batch, heads, query, key), "
                         "any of which may be 1. For (query, key) write mask[None, None], for (batch, query, key) "
                         "mask[:, None], for (batch, key) padding_mask(mask)")
    if bias is not None and bias.dim() not in (3, 4):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; it must be (heads, query, key) or (batch, heads, query, "
                         "key), and any of these may be 1. For (query, key) write bias[None]")
    check_mask(mask, bias, (query.shape[0], num_heads, query.shape[1], num_cached + key.shape[1]))


def stack_attentions(attentions, square_for: str = "") -> torch.Tensor:
    """Check a model's attention weights and stack them: (batch, layers, heads, query, key). `square_for`: who needs squares.

    attentions: one (batch, heads, query, key) for each layer, or one such tensor. Raises ValueError for layers of different
    shapes, and for what cannot be weights.
    """
    layers = [attentions] if getattr(attentions, "ndim", 0) == 4 else list(attentions)
    shapes = [tuple(layer.shape) for layer in layers]
    if not layers or len(shapes[0]) != 4 or len(set(shapes)) != 1:
        raise ValueError(f"attentions have the shapes {shapes}; expected one (batch, heads, query, key) for each layer, all "
                         "of one shape: for one text keep the batch dimension, attentions[:, None]")
    stacked = torch.stack(layers, dim=1).detach()                          # (batch, layers, heads, query, key)
    stacked = stacked if stacked.dtype == torch.float64 else stacked.float()
    low, high = stacked.aminmax() if stacked.numel() else (torch.zeros(()), torch.zeros(()))
    if not (low >= 0 and high < math.inf):                                 # NaN fails both comparisons
        raise ValueError("attentions hold negative or non-finite numbers; expected weights: take them after the softmax")
    sums = stacked.sum(dim=-1)
    wrong = (sums != 0) & ((sums - 1).abs() > 1e-2)
    if wrong.any():
        raise ValueError(f"a row sums to {sums[wrong][0]:.4g}; expected 1, or 0 for a query with no key: is the matrix "
                         "transposed, or were its weights dropped?")
    if square_for and stacked.shape[-2] != stacked.shape[-1]:
        raise ValueError(f"{stacked.shape[-2]} queries and {stacked.shape[-1]} keys; {square_for} needs queries and keys of "
                         "the same text: use it on self-attention")
    return stacked


def check_flags(attention_mask: torch.Tensor, batch: int, length: int) -> None:
    """Refuse an attention_mask that isn't boolean (batch, length), True for a real token. Raises ValueError."""
    if attention_mask.dtype != torch.bool or attention_mask.shape != (batch, length):
        raise ValueError(f"attention_mask has dtype {attention_mask.dtype} and shape {tuple(attention_mask.shape)}; "
                         f"expected torch.bool and ({batch}, {length}), True for a real token")
