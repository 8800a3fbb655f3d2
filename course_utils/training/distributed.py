"""One training in several processes that torchrun has started, on one machine or more; with the result of one.

    with joined(): fit(…)                               # without torchrun, `fit` trains in this process as ever

A process takes its part of every batch; DistributedDataParallel adds up the gradients. What is computed or read once, by
the first process, is broadcast, and so is its error.

Does: join the processes for `fit`; end when another process has ended, with one process to say so.
Does not: start processes (torchrun does), or anything across the wire itself (torch.distributed does). A model whose loss
leaves some of its parameters out isn't trained like this: DistributedDataParallel says so; set requires_grad False there.
"""

import contextlib
import io
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from course_utils.training import processes
from course_utils.training.devices import fastest_device
from course_utils.training.state import NUMBERS, TrainingState

PATIENCE = timedelta(hours=2)                           # so long do the others wait while the first validates or scores
LINES_CUT = re.compile("gloo|nccl|connection|peer|socket|broken pipe|tcpstore", re.IGNORECASE)
ENDED = "another process of this training has ended, or torchrun was told to stop"
CPU = torch.device("cpu")


class Together(processes.OneProcess):
    """This process among others, once there is a process group."""

    def __init__(self, rank: int, number: int):
        self.rank, self.number, self.is_first, self.parent = rank, number, rank == 0, os.getppid()

    def first(self, work, *given):
        """See `OneProcess.first`. Only an `Exception` is broadcast: whoever is killed, or stopped by Ctrl-C, just ends."""
        if os.getppid() != self.parent:
            raise processes.Lost(ENDED)                 # torchrun was killed: nobody would end this process
        answer = [None, None]
        if self.is_first:
            try:
                answer[0] = work(*given)
            except Exception as error:
                answer[1] = error
        dist.broadcast_object_list(answer, src=0, device=CPU)
        if answer[1] is not None:
            raise answer[1]
        return answer[0]

    def all(self, work, *given):
        """See `OneProcess.all`."""
        answer = error = None
        try:
            answer = work(*given)
        except Exception as raised:
            error = raised
        errors = self._gathered(error)
        if any(errors):
            number = next(i for i, one in enumerate(errors) if one)
            raise errors[number] if number in (0, self.rank) else type(errors[number])(f"process {number}: {errors[number]}")
        return answer

    def share(self, state: TrainingState, made_with: dict) -> None:
        """See `OneProcess.share`."""
        for number, other in enumerate(self._gathered(made_with)):
            different = [name for name in other if other[name] != made_with.get(name)]
            if different:
                raise processes.CannotTrainTogether(
                    f"process {number} trains with other {' and other '.join(different)} than process {self.rank}; give all "
                    "the same files and the same version of the course")
        buffer = io.BytesIO()
        if self.is_first:
            torch.save({"model": state.model.state_dict(), "optimizer": state.optimizer.state_dict(),
                        "best": state.best_weights, **{name: getattr(state, name) for name in NUMBERS}}, buffer)
        content = self.first(buffer.getvalue)
        if not self.is_first:
            device = next(state.model.parameters()).device
            saved = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
            state.model.load_state_dict(saved["model"])
            state.optimizer.load_state_dict(saved["optimizer"])
            state.best_weights = saved["best"]
            for name in NUMBERS:
                setattr(state, name, saved[name])

    def over_all(self, model: nn.Module, loss_of: Callable) -> Callable:
        """See `OneProcess.over_all`."""
        return LossOverAll(self, model, loss_of)

    def seed(self, seed: int) -> int:
        """See `OneProcess.seed`."""
        return seed + 7_919_000 * self.rank

    def _gathered(self, mine) -> list:
        """What each process has, in order."""
        everybodys = [None] * self.number
        dist.all_gather_object(everybodys, mine)
        return everybodys


class LossOverAll:
    """The mean loss of a whole batch and its items, from a forward pass over this process's part of it.

    With n items in the batch and m of them in the part, the part's mean loss counts m/n. DistributedDataParallel divides the
    sum of the gradients by the number of processes; hence the factor of that number. The value of what is returned is the
    batch's, the gradient the part's, so that the loop doesn't notice.
    """

    def __init__(self, together: Together, model: nn.Module, loss_of: Callable):
        self.together, self.parallel = together, DistributedDataParallel(PartLoss(model, loss_of))

    def __call__(self, model: nn.Module, batch) -> tuple[torch.Tensor, int]:
        loss, items, why = self.parallel(processes.part_of(batch, self.together.rank, self.together.number))
        sums = torch.tensor([loss.item() * items, items], dtype=torch.float64, device=loss.device)
        dist.all_reduce(sums)
        loss_sum, total = sums.tolist()
        if total == 0:
            raise why or processes.NothingCounts("no item of a batch counts for its loss; leave such texts out")
        scaled = loss * (self.together.number * items / total)
        return scaled + (loss_sum / total - scaled.detach()), int(total)


class PartLoss(nn.Module):
    """A model whose forward pass is its loss on a part of a batch, as DistributedDataParallel wants it."""

    def __init__(self, model: nn.Module, loss_of: Callable):
        super().__init__()
        self.model, self.loss_of = model, loss_of

    def forward(self, part):
        """Its mean loss, its number of items, and if there are none, why; the gradient of such a part is zero."""
        rows, why = part if isinstance(part, torch.Tensor) else part[0], None
        try:                                            # a last batch can have fewer rows than there are processes
            loss, items = self.loss_of(self.model, part) if len(rows) else (None, 0)
        except processes.NothingCounts as error:
            items, why = 0, error
        if items == 0:
            loss = 0.0 * sum(parameter.sum() for parameter in self.model.parameters() if parameter.requires_grad)
        return loss, int(items), why


@contextlib.contextmanager
def joined() -> Iterator[processes.OneProcess]:
    """Inside the `with` block, `fit` trains in all the processes that torchrun has started; without torchrun, in this one.

    Raises `Lost` when another process ends, however that happens, and `CannotTrainTogether`. Of the processes that end by
    an error, the one that is first to say so may print; the others are silent.
    """
    if not processes.by_torchrun():
        yield processes.here()
        return
    processes.only_the_first_speaks()
    rank, number, on_this_machine = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    backend = "cpu:gloo,cuda:nccl" if _device(on_this_machine).type == "cuda" else "gloo"
    if number == on_this_machine:                       # nothing needs to leave the machine
        for name in {"lo", "lo0"} & {name for _, name in socket.if_nameindex()}:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    before, store = signal.signal(signal.SIGTERM, _ended_by_torchrun), None
    try:
        store, *_ = next(rendezvous("env://", timeout=PATIENCE))
        store.add("arrived", 1)
        while store.add("arrived", 0) < number:         # waiting here can be interrupted, in init_process_group it can't
            time.sleep(0.05)
        dist.init_process_group(backend, store=dist.PrefixStore("training", store), rank=rank, world_size=number,
                                timeout=PATIENCE)
        with processes.among(Together(rank, number)) as together:
            yield together
        dist.destroy_process_group()
        signal.signal(signal.SIGTERM, before)
    except BaseException as raised:
        error = processes.Lost(ENDED) if _is_of_the_wire(raised) else raised
        try:                                            # the first process goes first; signals that are on their way arrive
            time.sleep(0.3 if rank else 0.1)
        except (KeyboardInterrupt, processes.Lost) as signalled:
            error = signalled if isinstance(error, processes.Lost) else error
        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, signal.SIG_IGN)
        sys.stderr = sys.__stderr__ if _may_speak(store) else open(os.devnull, "w", encoding="utf-8")
        raise error from None


def _device(number: int) -> torch.device:
    """The device of this one of `number` processes on this machine: a graphics card of its own, or the CPU."""
    device = fastest_device()
    if device.type == "mps":
        raise processes.CannotTrainTogether("several processes can't train on Apple's chip; set COURSE_DEVICE=cpu")
    if device.type == "cuda":
        if number > torch.cuda.device_count():
            raise processes.CannotTrainTogether(
                f"graphics cards on this machine: {torch.cuda.device_count()}, processes: {number}; start as many processes "
                "as there are cards, or set COURSE_DEVICE=cpu")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return device


def _is_of_the_wire(error: BaseException) -> bool:
    """Whether an error says that another process can't be reached any more."""
    plain = type(error) is RuntimeError and bool(LINES_CUT.search(str(error)))
    return plain or isinstance(error, dist.DistError)


def _ended_by_torchrun(*_) -> None:
    raise processes.Lost(ENDED)


def _may_speak(store) -> bool:
    """Whether no other process has said yet why the training ends. The store is torchrun's: it may be gone, too."""
    try:
        return store is None or store.add("told", 1) == 1
    except RuntimeError:
        return True
