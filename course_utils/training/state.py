"""Where a training stands between two epochs, as one object that a checkpoint holds.

Does: `TrainingState`, written to one safetensors file and read back with the same bytes. Does not: train. Nothing is
unpickled, and what can't be read, or was made with other settings, isn't used.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from course_utils import files


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of all weights, by name."""
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@dataclass
class TrainingState:
    """Where a training stands between two epochs. A checkpoint holds all of it."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    precision: str                                      # "fp32" or "bf16"
    best_weights: dict[str, torch.Tensor]               # before the first epoch, those it began with
    best_epoch: int = 0                                 # counts from 1
    history: list[dict] = field(default_factory=list)
    seconds: float = 0.0

    def add_epoch(self, record: dict, sign: int, chosen_by: str) -> None:
        """Write an epoch down, and keep its weights if it is better than all before."""
        self.history.append(record)
        if self.best_epoch == 0 or sign * record[chosen_by] > sign * self.history[self.best_epoch - 1][chosen_by]:
            self.best_weights, self.best_epoch = weights_of(self.model), len(self.history)

    def is_finished(self, epochs: int, patience: int | None) -> bool:
        """All epochs are done, or the last `patience` of them brought nothing better."""
        done = len(self.history)
        return done >= epochs or (patience is not None and done > 0 and done - self.best_epoch >= patience)


NUMBERS = ("precision", "best_epoch", "history", "seconds")                # of a state, besides its tensors


def save_checkpoint(path, made_with: dict, state: TrainingState) -> None:
    """Write a state to one safetensors file, at once or not at all; `made_with` is what it must be resumed with."""
    tensors = {f"model.{name}": t for name, t in state.model.state_dict().items()}
    tensors |= {f"best.{name}": t for name, t in state.best_weights.items()}
    for i, values in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": t for name, t in values.items()}
    tensors = {name: t.detach().cpu().clone() for name, t in tensors.items()}
    numbers = {name: getattr(state, name) for name in NUMBERS}
    files.write_bytes(path, save(tensors, {"made_with": json.dumps(made_with), "state": json.dumps(numbers)}))


def load_checkpoint(path, made_with: dict, state: TrainingState) -> None:
    """Put a saved state into `state`; leave it as it is if there is none, or one made with other settings, or damaged."""
    if not Path(path).is_file():
        return
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("made_with") != json.dumps(made_with):
                print(f"{Path(path).name} belongs to other settings; training starts anew", file=sys.stderr)
                return
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        saved = json.loads(metadata["state"])
        numbers = {name: saved[name] for name in NUMBERS}
        parts = {"model": {}, "best": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        shapes = {name: tensor.shape for name, tensor in state.model.state_dict().items()}
        if any({name: tensor.shape for name, tensor in parts[part].items()} != shapes for part in ("model", "best")):
            raise ValueError("the weights are another model's")
        optimizer = state.optimizer.state_dict()
        for name, tensor in parts["optimizer"].items():
            i, _, field_name = name.partition(".")
            optimizer["state"].setdefault(int(i), {})[field_name] = tensor
        state.optimizer.load_state_dict(optimizer)
    except Exception as error:                          # cut off, or not a checkpoint: whatever it is, it is not used
        print(f"{Path(path).name} cannot be read ({type(error).__name__}); training starts anew", file=sys.stderr)
        return
    state.model.load_state_dict(parts["model"])
    state.best_weights = parts["best"]
    for name, value in numbers.items():
        setattr(state, name, value)


def epochs_in(checkpoint) -> int:
    """How many epochs a checkpoint holds; 0 if there is none that can be read."""
    try:
        with safe_open(checkpoint, framework="pt") as file:
            return len(json.loads(file.metadata()["state"])["history"])
    except Exception:
        return 0
