"""Long texts as training data: one row of token ids, cut into windows of equal length.

Does: `TextWindows`, which `fit` takes; every epoch cuts at other places. Does not: tokenize, or know what the ids mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from course_utils import files
from course_utils.options import check_options, whole

__all__ = ["TextWindows", "joined"]


def joined(list_of_ids: Sequence[Sequence[int]], separator: int) -> torch.Tensor:
    """All texts in one row, each after a separator: (tokens,) int64."""
    return torch.tensor([i for ids in list_of_ids for i in (separator, *ids)], dtype=torch.long)


@dataclass(frozen=True)
class TextWindows:
    """`ids` (tokens,) as `TrainingData`: batches (batch_size, length + 1), since a window of `length` answers has one more.

    Neighbouring windows share one token, so that each is asked for once. An epoch drops what doesn't fill a batch. Raises
    ValueError for a row too short for one batch.
    """

    ids: torch.Tensor
    length: int
    batch_size: int

    def __post_init__(self):
        check_options({"length": self.length, "batch_size": self.batch_size},
                      {"length": whole(1, 1_000_000), "batch_size": whole(1, 100_000)})
        if self.ids.dim() != 1 or len(self) < 1:
            raise ValueError(f"ids have shape {tuple(self.ids.shape)}; expected one row of at least "
                             f"{(self.batch_size + 1) * self.length + 1:,} ids, for {self.batch_size} windows of "
                             f"{self.length}: use smaller batches, shorter windows, or more text")

    def __len__(self) -> int:
        return (len(self.ids) - self.length - 1) // (self.length * self.batch_size)

    def batches(self, seed: int | None) -> Iterator[torch.Tensor]:
        windows = len(self) * self.batch_size
        random = torch.Generator().manual_seed(seed or 0)
        first = int(torch.randint(self.length, (), generator=random)) if seed is not None else 0
        starts = first + self.length * torch.arange(windows)
        if seed is not None:
            starts = starts[torch.randperm(windows, generator=random)]
        places = starts[:, None] + torch.arange(self.length + 1)           # (windows, length + 1)
        for chosen in places.split(self.batch_size):
            yield self.ids[chosen]

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(files.sha256(self.ids.numpy().tobytes()), self.length, self.batch_size)
