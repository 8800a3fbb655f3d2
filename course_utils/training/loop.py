"""`fit` and the epoch that it repeats; the head of `course_utils.training` explains what `fit` takes.

Does: the loop, the learning rates, device and precision, and what is said about data and settings that cannot be. Does
not: hold reviews (review_batches), or read and write checkpoints (state).
"""

import difflib
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from course_utils import files
from course_utils.files import bars
from course_utils.options import FIT_RULES, RUN_RULES, check_options
from course_utils.training import processes
from course_utils.training.devices import say_device, training_device, training_precision
from course_utils.training.review_batches import (
    BatchOptions,
    EncodedReviews,
    ReviewBatches,
    ReviewScores,
    classification_loss,
    in_evaluation_mode,
)
from course_utils.training.state import TrainingState, load_checkpoint, save_checkpoint, weights_of


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch, so that a run on the same machine gives the same numbers."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


# what `fit` is given

class TrainingData(Protocol):
    """What a model is trained on. `fit` asks for no more than this."""

    fingerprint: str                                    # a checkpoint goes on only with data of the same fingerprint

    def __len__(self) -> int:
        """How many batches an epoch has."""

    def batches(self, seed: int | None) -> Iterator:
        """The batches of one epoch, in an order that depends on `seed` alone; None: always the same order.

        A batch is a tensor, or anything else that has `.to(device)`, and for several processes `.part(rank, of)`.
        """


LossOf = Callable[[nn.Module, object], tuple[torch.Tensor, int]]


@dataclass(frozen=True)
class MeanLoss:
    """A validation: the mean of `loss_of` over all items of `data`, in evaluation mode. The lowest is best."""

    data: TrainingData
    loss_of: LossOf
    best = "lowest validation_loss"

    def __call__(self, model: nn.Module) -> dict[str, float]:
        device, loss_sum, items_seen = next(model.parameters()).device, 0.0, 0
        with in_evaluation_mode(model):
            for batch in self.data.batches(None):
                loss, items = self.loss_of(model, batch.to(device))
                loss_sum += loss.item() * int(items)
                items_seen += int(items)
        return {"validation_loss": loss_sum / items_seen}

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(_known_by(self.data), _known_by(self.loss_of))


@dataclass(frozen=True)
class FitSettings:
    """The settings that `fit` takes by name."""

    epochs: int = 10
    learning_rate: float = 1e-3                         # at its peak, see `learning_rate_at`
    weight_decay: float = 0.01
    warmup: float = 0.1                                 # proportion of all steps in which the learning rate rises
    clip: float = 1.0                                   # the largest norm that all gradients together may have
    patience: int | None = None                         # end after so many epochs without a better one
    seed: int = 0                                       # of the batches' order and of dropout
    precision: str = "auto"                             # "fp32", "bf16", or "auto": bf16 on CUDA, else fp32

    def __post_init__(self):
        check_options(asdict(self), FIT_RULES | RUN_RULES)

    def rates(self, epoch: int, steps: int) -> list[float]:
        """The learning rate of each of an epoch's `steps`; `epoch` counts from 1."""
        return [
            learning_rate_at(step, self.epochs * steps, self.learning_rate, self.warmup)
            for step in range((epoch - 1) * steps, epoch * steps)
        ]


# the loop

def learning_rate_at(step: int, total_steps: int, peak: float, warmup: float) -> float:
    """Linear from near zero to `peak` over the first share `warmup` of the steps, then a half cosine to zero."""
    rise = max(1, round(total_steps * warmup))
    if step < rise:
        return peak * (step + 1) / rise
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, total_steps - rise)))


def train_epoch(
    model: nn.Module, optimizer: Optimizer, batches: Iterable, loss_of: LossOf, rates: list[float], clip: float
) -> float:
    """Make one step for each batch, with its learning rate from `rates`; return the mean loss over all items.

    A parameter group of the optimizer that has a `scale` takes that part of the rate.
    """
    model.train()
    loss_sum, items_seen = 0.0, 0
    for batch, rate in zip(batches, rates):
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)
        loss, items = loss_of(model, batch)             # forward: how wrong, on average over so many items
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        loss_sum += loss.item() * items
        items_seen += items
    return loss_sum / items_seen


class FitResult(NamedTuple):
    """`history`, one dict an epoch; `best_epoch` counts from 1; training `seconds`, validation included."""

    history: list[dict]
    best_epoch: int
    seconds: float


def fit(
    model: nn.Module,
    train: TrainingData | EncodedReviews,
    validation: Callable[[nn.Module], dict[str, float]] | EncodedReviews,
    *,
    loss_of: LossOf = classification_loss,
    best: str | None = None,
    options: BatchOptions = BatchOptions(),
    groups: Callable[[nn.Module], list[dict]] | None = None,
    checkpoint=None,
    progress: bool = True,
    **settings,
) -> FitResult:
    """Train `model` in place and leave it with the weights of its best epoch. `settings` are those of `FitSettings`.

    `train`, `loss_of` and `validation` say what is learned (see the head of `course_utils.training`); for
    `EncodedReviews`, `options` says how they become batches. The validation is called with the model in evaluation mode,
    without gradients; `best` says which of its numbers chooses the epoch, such as "lowest validation_loss" (for reviews
    "highest validation_accuracy").

    `groups(model)` gives parts of the model learning rates of their own: [{"params": […], "scale": 0.5}, …], each parameter
    in one of them; `scale` times the learning rate is theirs. What has requires_grad False isn't trained.

    Trains on a GPU or Apple's chip if there is one (see `devices`) and brings the model back to its own device; batches
    come to `loss_of` on the device that trains (bring a teacher there, too). With precision "bf16", `loss_of` runs under
    autocast; weights and validation stay in fp32, and so does the loss where `loss_of` converts the logits by `.float()`.

    Inside `with processes.joined():`, in a script that torchrun has started, all its processes train one model: each takes
    its part of every batch, the first one validates, writes the checkpoint and shows progress (see `distributed`).

    With `checkpoint` (a file name) the state is written after every epoch, and a run that finds one made with the same
    settings, model and data goes on from it to the same result. Raises ValueError for an empty split, and for a setting
    that cannot be, by its name; FloatingPointError if the loss is no longer finite. Whatever ends the training early, the
    model is left where it was, with the weights of its best epoch so far.
    """
    together, how = processes.here(), _settings(settings)
    data, validate = _training_data(train, options), _validation(validation, options)
    best = best or getattr(validate, "best", None)
    sign, chosen_by = _choice(best)
    made_with = _made_with(model, how, data, loss_of, validate, best, groups) if checkpoint else {}
    home, device, steps = next(model.parameters()).device, training_device(model), len(data)
    say_device(device)
    model.to(device)
    state = _first_state(model, how, groups)
    if checkpoint:
        together.first(load_checkpoint, checkpoint, made_with, state)
    together.share(state, made_with)
    over_all = together.over_all(model, loss_of)
    bar = bars.bar(total=how.epochs * steps, initial=len(state.history) * steps, unit="step", shown=progress)
    try:
        while not state.is_finished(how.epochs, how.patience):
            begun, epoch = time.perf_counter(), len(state.history) + 1
            seed = how.seed * 1000 + epoch
            torch.manual_seed(together.seed(seed))      # dropout of this epoch, whether or not the run was resumed
            shown, checked = _counted(data, seed, bar), _checked(over_all, device, state.precision, epoch, how.learning_rate)
            loss = train_epoch(model, state.optimizer, shown, checked, how.rates(epoch, steps), how.clip)
            scores = together.first(_scores, validate, model, chosen_by, epoch, how.learning_rate)
            state.add_epoch({"epoch": epoch, "train_loss": loss, **scores}, sign, chosen_by)
            bar.set_postfix(epoch=epoch, loss=f"{loss:.3f}", validation=f"{scores[chosen_by]:.3f}")
            state.seconds += time.perf_counter() - begun
            if checkpoint:
                together.first(save_checkpoint, checkpoint, made_with, state)
    finally:                                            # also after an error, or Ctrl-C in a notebook
        bar.close()
        model.load_state_dict(state.best_weights)
        model.to(home)
        model.eval()
    return FitResult(state.history, state.best_epoch, state.seconds)


def _first_state(model: nn.Module, how: FitSettings, groups: Callable[[nn.Module], list[dict]] | None) -> TrainingState:
    parts = [{"params": list(model.parameters())}] if groups is None else groups(model)
    given = Counter(id(parameter) for part in parts for parameter in part["params"])
    if groups is not None and given != Counter(map(id, model.parameters())):
        raise ValueError(f"groups gives {given.total()} parameters, and the model has {len(list(model.parameters()))}; each "
                         "must be in one group, and in no other")
    optimizer = torch.optim.AdamW(parts, lr=how.learning_rate, weight_decay=how.weight_decay, fused=True)
    return TrainingState(model, optimizer, training_precision(how.precision, model), weights_of(model))


def _settings(given: dict) -> FitSettings:
    names = [known.name for known in fields(FitSettings)]
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise TypeError(f"fit has no setting {name!r}; {hint}There are {', '.join(names)}")
    return FitSettings(**given)


def _training_data(train, options: BatchOptions) -> TrainingData:
    data = ReviewBatches(train, options) if isinstance(train, EncodedReviews) else train
    if not hasattr(data, "batches"):
        raise TypeError(f"the training data are of type {type(train).__name__}; give EncodedReviews, or an object that has "
                        "batches(seed), a length and a fingerprint (see TrainingData)")
    if len(data) == 0:
        raise ValueError("there are no batches to train on; is the data shorter than one batch?")
    return data


def _validation(validation, options: BatchOptions) -> Callable[[nn.Module], dict[str, float]]:
    validate = ReviewScores(validation, options) if isinstance(validation, EncodedReviews) else validation
    if not callable(validate):
        raise TypeError(f"the validation is of type {type(validation).__name__}; give EncodedReviews, or a function of the "
                        "model that returns a dict of numbers, such as MeanLoss(data, loss_of)")
    return validate


def _choice(best: str | None) -> tuple[int, str]:
    """The sign that makes larger better, and the number's name: "lowest validation_loss" -> (-1, "validation_loss")."""
    which, _, name = (best or "").partition(" ")
    if which not in ("highest", "lowest") or not name:
        raise ValueError(f"best={best!r}; say which number of the validation chooses the epoch, such as "
                         "best='lowest validation_loss' or best='highest validation_accuracy'")
    return (1 if which == "highest" else -1), name


def _made_with(model: nn.Module, how: FitSettings, data, loss_of, validate, best: str, groups) -> dict:
    """Everything, by name, that a checkpoint must have been made with for its training to go on."""
    return asdict(how) | {
        "data": _known_by(data), "loss": _known_by(loss_of), "validation": _known_by(validate), "best": best,
        "model": str(model), "config": str(getattr(model, "config", "")),
        "shapes": {name: list(parameter.shape) for name, parameter in model.named_parameters()},
        **_trained(model, groups),
    }


def _trained(model: nn.Module, groups) -> dict:
    """What a checkpoint knows of what is trained: nothing where all of it is, at one rate."""
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    scales = [] if groups is None else [[part.get("scale", 1.0), len(part["params"])] for part in groups(model)]
    return ({"frozen": frozen} if frozen else {}) | ({"groups": scales} if scales else {})


def _known_by(part) -> str:
    """What a checkpoint knows data, a loss or a validation by: its `fingerprint`, or the name of a function."""
    name = getattr(part, "fingerprint", None) or getattr(part, "__qualname__", None)
    if name is None:
        raise TypeError(f"a checkpoint can't tell whether {part!r} is the same as before; give it a `fingerprint`: a text "
                        "that changes with everything it depends on")
    return name


def _checked(loss_of: LossOf, device: torch.device, precision: str, epoch: int, learning_rate: float) -> LossOf:
    """`loss_of` on a device, in a precision; FloatingPointError for a loss that is not finite."""
    steps = itertools.count()

    def checked(model, batch):
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            result = loss_of(model, batch.to(device))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"loss_of returned an object of type {type(result).__name__}; expected two things: the mean "
                            "loss of the batch, and how many items it is the mean of")
        loss, items = result
        _check_finite("loss", loss.item(), f"in epoch {epoch}, step {next(steps)}", learning_rate)
        return loss, int(items)

    return checked


def _scores(validate, model: nn.Module, chosen_by: str, epoch: int, learning_rate: float) -> dict[str, float]:
    with in_evaluation_mode(model):
        scores = validate(model)
    if chosen_by not in scores:
        raise ValueError(f"the best epoch is to be chosen by {chosen_by}, and the validation gives {', '.join(scores)}; "
                         "name one of these in best=")
    for name, value in scores.items():
        _check_finite(name.replace("_", " "), value, f"after epoch {epoch}", learning_rate)
    return scores


def _check_finite(name: str, value: float, when: str, learning_rate: float) -> None:
    if not math.isfinite(value):
        raise FloatingPointError(f"the {name} is {value} {when}; try a smaller learning_rate than {learning_rate}")


def _counted(data: TrainingData, seed: int, bar) -> Iterator:
    """The batches of an epoch; the bar moves on when the step of a batch has been made."""
    number = 0
    for number, batch in enumerate(data.batches(seed), start=1):
        if number <= len(data):
            yield batch
            bar.update()
    if number != len(data):
        raise ValueError(f"an epoch had {number} batches, and the length of the training data is {len(data)}; they must "
                         "agree, since the learning rate is planned by the length")
