"""BLEU: how many n-grams of a translation are in its reference."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["ngrams", "Bleu", "bleu"]


def ngrams(tokens: Sequence[str], n: int) -> Counter:
    """How often each run of n tokens occurs.

    Taught in 17_encoder_decoder, '6. BLEU'.
    """
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


class Bleu(NamedTuple):
    """`score` from 0 to 100; `precisions` for n = 1 to 4, `brevity_penalty`, and how many tokens both sides have.

    Taught in 17_encoder_decoder, '6. BLEU'.
    """

    score: float
    precisions: list[float]
    brevity_penalty: float
    translation_tokens: int
    reference_tokens: int


def bleu(translations: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Bleu:
    """BLEU of a whole corpus with one reference each, no smoothing (Papineni et al. 2002, section 2.3).

    Lists of tokens. Counts are added up over all sentences before anything is divided. 0 where some n has no match. Raises
    ValueError for lists of different lengths, for none, and TypeError for texts that haven't been split.

    Taught in 17_encoder_decoder, '6. BLEU'.
    """
    if len(translations) != len(references) or not len(references):
        raise ValueError(f"{len(translations)} translations and {len(references)} references; give one of each, at least")
    if any(isinstance(one, str) for one in (*translations, *references)):
        raise TypeError("expected lists of tokens and got a text; split it first: how it's split changes the score")
    matched, possible = [0] * 4, [0] * 4
    for mine, reference in zip(translations, references):
        for n in range(1, 5):
            own, wanted = ngrams(mine, n), ngrams(reference, n)
            matched[n - 1] += sum(min(count, wanted[gram]) for gram, count in own.items())     # clipped
            possible[n - 1] += sum(own.values())
    precisions = [hit / all_ if all_ else 0.0 for hit, all_ in zip(matched, possible)]
    ours, theirs = sum(map(len, translations)), sum(map(len, references))
    brevity = 1.0 if ours >= theirs else math.exp(1 - theirs / ours) if ours else 0.0
    mean = math.exp(sum(math.log(p) for p in precisions) / 4) if min(precisions) > 0 else 0.0
    return Bleu(100 * brevity * mean, precisions, brevity, ours, theirs)
