"""On which device a model is trained: a graphics card or Apple's chip where there is one, else the processor.

Does: choose, and say so in one line. Does not: move a model, or spread one over several devices.
"""

import functools
import os

import torch
from torch import nn

from course_utils.files.switches import is_on

DEVICES = ("cpu", "cuda", "mps")
_said: set[str] = set()


def fastest_device() -> torch.device:
    """CUDA (NVIDIA's cards, and AMD's on Linux) if there is one, else Apple's chip ("mps"), else the CPU.

    COURSE_DEVICE names one of the three instead. The tests train on the CPU, so that they come out the same everywhere.
    Raises ValueError for another name, and for a device that this machine or this build of PyTorch doesn't have.
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    wanted = os.environ.get("COURSE_DEVICE", "").strip().lower()
    if wanted and wanted not in DEVICES:
        raise ValueError(f"COURSE_DEVICE={wanted!r:.60}: expected {', '.join(DEVICES[:-1])} or {DEVICES[-1]}; unset it to "
                         "train on the fastest device there is")
    if wanted and not there[wanted]:
        found = " and ".join(name for name in DEVICES if there[name])
        raise ValueError(f"COURSE_DEVICE={wanted}: PyTorch {torch.__version__} finds no such device on this machine, only "
                         f"{found}; unset COURSE_DEVICE to use what there is")
    if not wanted and is_on("COURSE_TESTING"):
        return torch.device("cpu")
    return torch.device(wanted or next(name for name in ("cuda", "mps", "cpu") if there[name]))


def training_device(model: nn.Module) -> torch.device:
    """Where `fit` trains a model: on the fastest device if it stands on the CPU, otherwise where it is."""
    home = next(model.parameters()).device
    return fastest_device() if home.type == "cpu" else home


def device_name(device: torch.device) -> str:
    """What to call a device in a line or a result file: "the GPU (NVIDIA H200)", "Apple's chip (MPS)", "the CPU"."""
    if device.type == "cuda":
        return f"the GPU ({torch.cuda.get_device_name(device)})"
    return {"mps": "Apple's chip (MPS)", "cpu": "the CPU"}.get(device.type, device.type)


def say_device(device: torch.device) -> None:
    """Print, once in a process, that training runs on something else than the CPU, and how to change that."""
    if device.type != "cpu" and device.type not in _said:
        _said.add(device.type)
        print(f"training on {device_name(device)}; COURSE_DEVICE=cpu trains on the CPU instead")


def training_precision(precision: str, model: nn.Module) -> str:
    """What "auto" means for a model where it stands: "bf16" on CUDA, "fp32" elsewhere.

    Raises ValueError for "bf16", a model with an LSTM, and a processor that has none in bfloat16.
    """
    device = next(model.parameters()).device.type
    recurrent = any(isinstance(part, nn.LSTM) for part in model.modules())
    if precision == "bf16" and device == "cpu" and recurrent and not computes_lstm_in_bf16():
        raise ValueError(f"precision='bf16': PyTorch has no LSTM in bfloat16 for this processor, and {type(model).__name__} "
                         "has one; expected precision='fp32' here (a newer processor or a graphics card has both)")
    if precision != "auto":
        return precision
    return "bf16" if device == "cuda" else "fp32"


@functools.cache
def computes_lstm_in_bf16() -> bool:
    """Whether PyTorch computes an LSTM in bfloat16 on this processor: on those without AVX-512 it raises an error."""
    with torch.random.fork_rng(devices=()), torch.enable_grad(), torch.autocast("cpu", torch.bfloat16):
        try:
            nn.LSTM(1, 1)(torch.zeros(1, 1, 1))
        except RuntimeError:
            return False
    return True
