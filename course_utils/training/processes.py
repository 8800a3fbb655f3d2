"""Whether a training runs in one process or in several, and what `fit` asks of them.

Does: all of it for one process, where it's trivial; parts of a batch. Does not: several processes (see `distributed`, which
`fit` knows nothing of, as it knows nothing of torch.distributed).
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from torch import nn

from course_utils.training.state import TrainingState


class NothingCounts(ValueError):
    """A batch in which no item counts for the loss. One process's part of a batch may be like that, a batch may not."""


class CannotTrainTogether(ValueError):
    """The processes have different data or settings, or devices that can't share a training."""


class Lost(BaseException):
    """Another process of this training has ended, or torchrun ends this one; like Ctrl-C, it's not caught on the way."""


class OneProcess:
    """The whole training in this process."""

    rank, number = 0, 1                                 # which process this is, and how many there are
    is_first = True

    def first(self, work: Callable, *given):
        """What `work(*given)` returns in the first process, or its error, in all of them."""
        return work(*given)

    def all(self, work: Callable, *given):
        """What `work(*given)` returns in this process; if it raises an error in one process, all of them do."""
        return work(*given)

    def share(self, state: TrainingState, made_with: dict) -> None:
        """Give all processes the state of the first. Raises `CannotTrainTogether` for different data or settings."""

    def over_all(self, model: nn.Module, loss_of: Callable) -> Callable:
        """`loss_of` for a batch that all processes share; its gradient is that of one process on the whole batch."""
        return loss_of

    def seed(self, seed: int) -> int:
        """A seed of this process's own, for its dropout."""
        return seed


_here = [OneProcess()]


def here() -> OneProcess:
    """The processes that train together, where `distributed.joined` has joined them; elsewhere this one alone."""
    return _here[-1]


@contextlib.contextmanager
def among(processes: OneProcess) -> Iterator[OneProcess]:
    """Inside the `with` block, `fit` trains with these."""
    _here.append(processes)
    try:
        yield processes
    finally:
        _here.pop()


def by_torchrun() -> bool:
    """Whether torchrun has started this process, as torch.distributed.is_torchelastic_launched() says."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def only_the_first_speaks() -> None:
    """Let what a process prints be lost, unless it is the first."""
    if by_torchrun() and os.environ["RANK"] != "0":
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # for as long as the process lives


def part_of(batch, rank: int, of: int):
    """Every `of`-th item of a batch from `rank` on: `batch.part(rank, of)`, or rows of a tensor."""
    return batch.part(rank, of) if hasattr(batch, "part") else batch[rank::of]
