"""Did training on opinions move the reader's word vectors? A set of runs for course_tools/studies/command.py.

Writes data/results/reader_vectors.json, which the results of Part I show. The 16,000 word pieces of
the course's reader began as MiniLM's; then the reader learned from labelled reviews and sentences. Both tables are compared,
in words of two letters or more: the cosine of each vector with what it began as, how often a word's nearest neighbour is
the same in both tables, and what neighbours and analogies of notebook 03 are in each. Nothing is trained. MiniLM comes from
the hub, or from the folder that COURSE_MODELS names.

    COURSE_MODELS=folder python -m course_tools results reader_vectors
"""

import functools

import torch
from torch import Tensor
from torch.nn import functional as F

from course_tools.studies.needs import committed
from course_tools.studies.runner import ResultSet, once
from course_tools.studies.sets import pretrained
from course_utils.classifier import ReviewClassifier
from course_utils.files import sha256
from course_utils.results import fingerprint

ROW = "the reader's word pieces"
SHOWN = ("film", "dull")                                # words whose neighbours are written down
ANALOGIES = (("man", "king", "woman"), ("good", "better", "bad"), ("france", "paris", "italy"))


@functools.cache
def reader_table() -> tuple[list[str], Tensor]:
    """The reader's word pieces, and their vectors (pieces, d_model)."""
    reader = ReviewClassifier.load("reader")
    return reader.tokenizer.vocabulary, reader.model.embedding.weight.detach()


@functools.cache
def tables() -> tuple[list[str], Tensor, Tensor]:
    """The words that both tables have, and their vectors before and after the training, each (words, d_model)."""
    pieces, after = reader_table()
    encoder, tokenizer = pretrained.base()
    words = [piece for piece in pieces if len(piece) > 1 and piece.isascii() and piece.isalpha() and piece in tokenizer.ids]
    began = encoder.embedding.weight.detach()[[tokenizer.ids[word] for word in words]]
    place = {piece: i for i, piece in enumerate(pieces)}
    return words, began, after[[place[word] for word in words]]


@functools.cache
def settings() -> str:
    """What the run depends on: both tables."""
    words, *vectors = tables()
    return fingerprint(words, [sha256(one.contiguous().numpy().tobytes()) for one in vectors], SHOWN, ANALOGIES)


def nearest(words: list[str], unit: Tensor, vector: Tensor, left_out: tuple[str, ...] = (), count: int = 3) -> list[str]:
    """The words whose vectors `unit` (words, d_model), of length one, have the largest cosines with a vector (d_model)."""
    cosines = unit @ F.normalize(vector, dim=0)
    cosines[[words.index(word) for word in left_out]] = -1.0
    return [words[i] for i in cosines.topk(count).indices.tolist()]


def run(model: str, seed: int, state) -> dict:
    """Compare the tables."""
    words, before, after = tables()
    cosines = F.cosine_similarity(before, after, dim=1)
    units = [F.normalize(one, dim=1) for one in (before, after)]
    first, second = (torch.cat([(part @ unit.T).topk(2, dim=1).indices[:, 1] for part in unit.split(1000)])
                     for unit in units)                 # itself comes first
    low, middle = cosines.quantile(torch.tensor([0.01, 0.5])).tolist()
    lowest = int(cosines.argmin())
    return {
        "words": len(words), "cosine": {"median": round(middle, 3), "1 in 100 is below": round(low, 3),
                                        "lowest": round(cosines[lowest].item(), 3), "lowest_word": words[lowest]},
        "same_nearest": round((first == second).float().mean().item(), 4),
        **{when: shown(words, unit, vectors)
           for when, unit, vectors in zip(("before", "after"), units, (before, after), strict=True)},
    }


def shown(words: list[str], unit: Tensor, vectors: Tensor) -> dict:
    """Neighbours of `SHOWN`, and the answers to `ANALOGIES` with nothing and with the three given words left out."""
    of = dict(zip(words, vectors, strict=True))
    found: dict = {"neighbours": {word: nearest(words, unit, of[word], (word,), 10) for word in SHOWN}}
    for a, b, c in ANALOGIES:
        answer = of[b] - of[a] + of[c]
        found[f"{b} - {a} + {c}"] = {"nothing left out": nearest(words, unit, answer),
                                     "three left out": nearest(words, unit, answer, (a, b, c))}
    return found


SET = ResultSet(
    "reader_vectors", {ROW: {}}, settings, run, (pretrained.MINILM, *committed("reader")), seeds=once,
    line=lambda runs: f"median cosine {runs[0]['cosine']['median']:.3f}",
)
