"""How well a model knows a text of code: bits per byte, each token asked for once, with a window that slides.

Does: nats of each token, bits per byte by module and overall with an interval, and those of xz. Does not: train, tokenize,
or score names (`code_names` does).
"""

import lzma
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from course_utils.training.review_batches import in_evaluation_mode

__all__ = ["bits_by_module", "bits_interval", "carried_nats", "ratio_interval", "token_nats", "xz_bits"]

RESAMPLED = 2000


@torch.no_grad()
def token_nats(model: nn.Module, ids: Sequence[int], length: int, stride: int, separator: int = 0) -> torch.Tensor:
    """-ln p of each of a module's tokens (tokens,), given the separator and the tokens before it.

    The model reads windows of `length` that begin `stride` apart, and each asks for the tokens that no earlier one asked
    for. So a token has at least `length` - `stride` tokens before it, if the module has them.
    """
    row = torch.tensor([separator, *ids])
    found = torch.zeros(len(ids))
    done = 0
    with in_evaluation_mode(model):
        for start in range(0, len(ids), stride):
            window = row[start : start + length + 1]
            logits = model(window[None, :-1]).logits[0].float()            # (window, vocab)
            nats = nn.functional.cross_entropy(logits, window[1:], reduction="none")
            end = start + len(nats)
            if end > done:
                found[done:end] = nats[done - start :]
                done = end
            if done == len(ids):
                break
    return found


def bits_by_module(nats: Mapping[str, float], texts: Mapping[str, str]) -> dict:
    """Bits per byte of each module, and of all of them together ('overall'), from the sum of nats of each."""
    sizes = {path: len(text.encode("utf-8")) for path, text in texts.items()}
    each = {path: nats[path] / math.log(2) / sizes[path] for path in texts}
    return {"overall": sum(nats.values()) / math.log(2) / sum(sizes.values()), "modules": each}


@torch.no_grad()
def carried_nats(model: nn.Module, ids: Sequence[int], piece: int = 512, separator: int = 0) -> torch.Tensor:
    """As `token_nats`, for a recurrent model: it reads the whole module, `piece` tokens at a time, and keeps its state."""
    row, found, state = torch.tensor([separator, *ids]), [torch.zeros(0)], None
    with in_evaluation_mode(model):
        for start in range(0, len(ids), piece):
            window = row[start : start + piece + 1]
            logits, state = model(window[None, :-1], state)
            found.append(nn.functional.cross_entropy(logits[0].float(), window[1:], reduction="none"))
    return torch.cat(found)


def xz_bits(texts: Sequence[str], primed_with: Sequence[str] = ()) -> float:
    """Bits per byte of all texts in one row, compressed by xz at its best (`lzma`, preset 9 with 'extreme').

    With other texts before them, what these texts add to the compressed size of the others. The dictionary is larger than
    both, so that nothing is forgotten. Raises ValueError for texts without a byte.
    """
    first, then = ("".join(some).encode("utf-8") for some in (primed_with, texts))
    if not then:
        raise ValueError("the texts are empty; expected at least one byte to compress")
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME,
                "dict_size": max(1 << 20, len(first) + len(then))}]
    size = len(lzma.compress(first + then, filters=filters))
    if first:
        size -= len(lzma.compress(first, filters=filters))
    return 8 * size / len(then)


def ratio_interval(above: Sequence[float], below: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The middle 95 % of sum(above) / sum(below) when modules are drawn again, with replacement, 2,000 times (a bootstrap
    by clusters: Efron and Tibshirani 1993, section 6). One number in each for every module; NaN where nothing is below."""
    above, below = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    drawn = np.random.default_rng(seed).integers(len(above), size=(RESAMPLED, len(above)))
    sums = below[drawn].sum(axis=1)
    if not sums.any():
        return math.nan, math.nan
    ratios = above[drawn].sum(axis=1)[sums > 0] / sums[sums > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def bits_interval(scored: Mapping, texts: Mapping[str, str]) -> tuple[float, float]:
    """The `ratio_interval` of 'overall', from what `bits_by_module` gave for these texts."""
    sizes = [len(text.encode("utf-8")) for text in texts.values()]
    return ratio_interval([scored["modules"][path] * size for path, size in zip(texts, sizes)], sizes)
