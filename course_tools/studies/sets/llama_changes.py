"""From a GPT to a Llama: each of the four changes by itself, and all of them, on code: a result set.

Writes data/results/llama_changes.json: bits per byte on the validation split of the standard library, of small models with
the same number of parameters (within 1 %), steps, batches and settings. The width of the feed-forward layer makes up for
what a change adds or saves. A run takes about three minutes of one core.

    python -m course_tools results llama_changes [--only RMSNorm] [--seeds 0 1 2]
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from course_tools.studies.code_data import VOCAB_SIZE, code_ids, code_windows
from course_tools.studies.code_scores import token_nats
from course_tools.studies.needs import LIBRARY
from course_tools.studies.runner import ResultSet, Trained, parameters_of
from course_tools.studies.standard_library import library_fingerprint, load_standard_library
from course_tools.studies.text_windows import TextWindows
from course_utils import files
from course_utils.byte_pairs import BPETokenizer
from course_utils.language_model import LanguageModel, next_token_loss
from course_utils.llama import Llama, LlamaConfig
from course_utils.results import fingerprint
from course_utils.training import fastest_device, fit, seed_everything

CONTEXT, BATCH = 128, 8
SHAPE = {"vocab_size": VOCAB_SIZE, "d_model": 96, "num_heads": 6, "num_layers": 3, "max_len": CONTEXT}
FIT = {"epochs": 2, "learning_rate": 2e-3, "weight_decay": 0.1, "warmup": 0.1, "clip": 1.0}
STEPS = 600                                              # in each of these epochs: validation is looked at in between
WIDTH = 384                                              # of the GPT's feed-forward layer; the others' follow from it
GPT = {"positions": "learned", "rms_norm": False, "swiglu": False, "num_kv_heads": None}
CHANGES = {
    "RMSNorm": {"rms_norm": True},
    "SwiGLU": {"swiglu": True},
    "rotary positions": {"positions": "rotary"},
    "grouped queries": {"num_kv_heads": 2},
}
ROWS = {"GPT": GPT, **{f"GPT with {name}": GPT | change for name, change in CHANGES.items()},
        "Llama": functools.reduce(dict.__or__, CHANGES.values(), GPT)}


def size_of(options: dict, d_ff: int) -> int:
    """How many weights a model of these options and this width has; builds it without memory."""
    with torch.device("meta"):
        return parameters_of(Llama(LlamaConfig(**SHAPE, **options, d_ff=d_ff)))


@functools.cache
def config_of(model: str) -> LlamaConfig:
    """The configuration of a row, with the width that brings it closest to the GPT's number of parameters."""
    options, aim = ROWS[model], size_of(GPT, WIDTH)
    one, two = size_of(options, 1), size_of(options, 2)
    return LlamaConfig(**SHAPE, **options, d_ff=1 + round((aim - one) / (two - one)))


@dataclass(frozen=True)
class FirstSteps:
    """The first so many batches of each of a `TrainingData`'s epochs, drawn anew every time."""

    data: TextWindows
    steps: int

    def __len__(self) -> int:
        return self.steps

    def batches(self, seed: int | None) -> Iterator[torch.Tensor]:
        for _, batch in zip(range(self.steps), self.data.batches(seed)):
            yield batch

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.data.fingerprint, self.steps)


def nats_on_validation(model: LanguageModel) -> dict[str, float]:
    """The nats of every module of the validation split, each token asked for with half a window before it, or more."""
    return {path: token_nats(model, ids, CONTEXT, CONTEXT // 2).double().sum().item()
            for path, ids in code_ids("validation").items()}


@functools.cache
def module_sizes() -> dict[str, int]:
    """The number of bytes of every module of the validation split."""
    return {module.path: len(module.text.encode("utf-8")) for module in load_standard_library("validation")}


def bits_on_validation(model: LanguageModel) -> dict[str, float]:
    """Bits per byte on the validation split: what chooses the epoch."""
    return {"validation_bits": sum(nats_on_validation(model).values()) / math.log(2) / sum(module_sizes().values())}


@functools.cache
def settings() -> str:
    """What every run depends on: sizes, training, and the texts with their ids."""
    tokens = fingerprint(library_fingerprint(), VOCAB_SIZE, BPETokenizer.pattern.pattern)
    return fingerprint(SHAPE, CONTEXT, BATCH, FIT, STEPS, WIDTH, tokens)


def describe(model: str) -> dict:
    """What makes this row's model."""
    return ROWS[model] | {"d_ff": config_of(model).d_ff}


def run(model: str, seed: int, state) -> Trained:
    """Train one model; its bits per byte, and the nats of every module of the validation split."""
    seed_everything(seed)
    net = Llama(config_of(model)).to(fastest_device())
    result = fit(
        net, FirstSteps(code_windows("train", CONTEXT, BATCH), STEPS), bits_on_validation,
        loss_of=next_token_loss, best="lowest validation_bits", seed=seed, checkpoint=state, progress=False, **FIT,
    )
    return Trained(net, result, {
        "steps": FIT["epochs"] * STEPS, "tokens": FIT["epochs"] * STEPS * BATCH * CONTEXT,
        "validation": {"nats": [round(nats, 2) for nats in nats_on_validation(net).values()],
                       "bytes": list(module_sizes().values()),
                       "bits_per_byte": round(min(epoch["validation_bits"] for epoch in result.history), 4)},
    })


def line(runs: list[dict]) -> str:
    """What the command prints of a row: bits per byte, the lowest and the highest of the seeds."""
    bits = [run["validation"]["bits_per_byte"] for run in runs]
    return f"{sum(bits) / len(bits):.3f} bits per byte, {min(bits):.3f} to {max(bits):.3f}"


SET = ResultSet("llama_changes", ROWS, settings, run, (LIBRARY,), change=describe, line=line)
