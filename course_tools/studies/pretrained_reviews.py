"""IMDb in word pieces, and training on it by numbers of steps: what the sets `pretrained` and `small_encoder` share.

Does: encode the reviews once and keep them in outputs/pretrained, draw fewer of them, cut passes over them into equal
numbers of steps, so that an interrupted training has to repeat little. Does not: load or train a model.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from course_utils import files
from course_utils.data import load_reviews, split_reviews
from course_utils.files.paths import output_folder
from course_utils.tokenization import truncate
from course_utils.training import Batch, BatchOptions, EncodedReviews, TrainingData, batches

__all__ = [
    "FixedSteps", "LINE_BREAK", "PartsOfPasses", "encoded_reviews", "first_of", "kept", "reviews", "steps_in", "tokens_in",
]

LINE_BREAK = re.compile(r"<br\s*/?>")


@functools.cache
def reviews(unsupervised: bool = False) -> dict:
    """IMDb's splits, with the validation split of data/results/imdb.json."""
    return split_reviews(load_reviews("imdb", unsupervised=unsupervised), validation=0.1, seed=0)


def kept(name: str) -> Path:
    """A file in outputs/pretrained."""
    return output_folder() / "pretrained" / name


def encoded_reviews(
    data: dict, encode_all: Callable[[list[str]], Iterable[list[int]]], name: str, max_len: int | None
) -> dict[str, EncodedReviews]:
    """Each split's ids and labels, cut to `max_len`, head and tail. `name` is that of the tokenizer, for the file.

    `encode_all` gets a split's texts at once, since a library may encode them on all processor cores.
    """
    texts = files.fingerprint([(split, len(data[split]), data[split][0]["text"]) for split in data])
    path = kept(f"{name}-{max_len}-{texts}.npz")
    if not path.exists():
        flat = {}
        for split in data:
            ids = encode_all([LINE_BREAK.sub(" ", text) for text in data[split]["text"]])
            rows = [np.array(truncate(row, max_len, "head_tail"), dtype=np.int32) for row in ids]
            flat |= {f"{split}_ids": np.concatenate(rows), f"{split}_ends": np.cumsum([len(row) for row in rows])}
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.replacing(path) as partial, open(partial, "wb") as file:
            np.savez(file, **flat)
    with np.load(path) as flat:
        rows = {split: np.split(flat[f"{split}_ids"], flat[f"{split}_ends"][:-1]) for split in data}
    return {split: EncodedReviews([ids.tolist() for ids in rows[split]], list(data[split]["label"])) for split in data}


def first_of(split: EncodedReviews, number: int, seed: int) -> EncodedReviews:
    """So many reviews, other ones for another seed."""
    chosen = np.random.default_rng(seed).permutation(len(split.ids))[:number].tolist()
    return EncodedReviews([split.ids[i] for i in chosen], [split.labels[i] for i in chosen])


def tokens_in(split: EncodedReviews) -> int:
    """How many tokens a pass reads, padding left out."""
    return sum(len(ids) for ids in split.ids)


@dataclass(frozen=True)
class FixedSteps:
    """Reviews as `TrainingData`: what `fit` calls an epoch are so many `steps`, whether that's part of a pass or several.

    `fit` writes its checkpoint and looks at the validation after each. The passes follow one another, each in an order of
    its own, and every review is read once in a pass.
    """

    reviews: EncodedReviews
    options: BatchOptions
    steps: int

    def __len__(self) -> int:
        return self.steps

    def batches(self, seed: int | None) -> Iterator[Batch]:
        run, epoch = divmod(seed or 1, 1000)            # fit's seed of an epoch is 1000 times the run's, plus the epoch
        begin, whole = (epoch - 1) * self.steps, steps_in(self.reviews, self.options)
        first = begin // whole
        passes = (batches(self.reviews, self.options, 1000 * run + number) for number in itertools.count(first))
        skip = begin - first * whole
        return itertools.islice(itertools.chain.from_iterable(passes), skip, skip + self.steps)

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.reviews, self.options, self.steps)


@dataclass(frozen=True)
class PartsOfPasses:
    """Other `TrainingData` with its passes cut into so many equal `parts`: what `fit` calls an epoch is one of them.

    So a training of few and long passes is kept after each part. What doesn't fill the parts is dropped from every pass.
    """

    data: TrainingData
    parts: int

    def __len__(self) -> int:
        return len(self.data) // self.parts

    def batches(self, seed: int | None) -> Iterator:
        run, epoch = divmod(seed or 1, 1000)
        whole, part = divmod(epoch - 1, self.parts)
        return itertools.islice(self.data.batches(1000 * run + whole + 1), part * len(self), (part + 1) * len(self))

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.data.fingerprint, self.parts)


def steps_in(split: EncodedReviews, options: BatchOptions) -> int:
    """How many batches a pass has."""
    return -(-len(split.ids) // options.batch_size)
