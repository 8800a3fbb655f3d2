"""How the loss of small byte models falls with their size and with what they have read: a result set.

Writes data/results/scaling_laws.json, read by the extra scaling_laws. Six models of two blocks and two heads that differ in
width alone, three budgets of bytes, each byte read at most once, and the loss on modules that none of them has read. A run's
seed draws the first weights and which windows of the library are read. At the middle budget the two narrowest models have
five seeds, everything else has seed 0.

The learning rate follows one rule, RATE · (12 / width)^½. Its constant comes from rows that try four rates on the two
narrowest models; its exponent was chosen and not measured. The largest run isn't made before its loss is predicted:
`PREDICTION` was committed before, from the fit of `predict`.

    python -m course_tools results scaling_laws --only rate --jobs 1       # first; they fix RATE
    python -m course_tools results scaling_laws --only bytes --jobs 1      # all others
"""

import functools
import math
import time
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import least_squares
from torch.nn import functional as F

from course_tools.studies.needs import LIBRARY, Need
from course_tools.studies.runner import ResultSet, parameters_of
from course_tools.studies.standard_library import library_fingerprint, load_standard_library
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.results import fingerprint, read_runs
from course_utils.training import seed_everything

WIDTHS, BUDGETS = (12, 20, 32, 48, 72, 112), (125_000, 250_000, 500_000)
BLOCKS, HEADS, LENGTH, BATCH, HELD_OUT = 2, 2, 128, 8, 800   # held out: windows of LENGTH bytes, the same for all
WARMUP, CLIP, BETAS = 0.1, 1.0, (0.9, 0.95)
TRIED, RATE = (0.005, 0.01, 0.02, 0.04), 0.02            # RATE: of the model 12 wide, from those tried
# committed before the run; from `predict`, on the runs that were there
PREDICTION: dict | None = {
    "value": 2.16, "half": 0.015, "half_by_spread": 0.097, "half_allowed": 0.015,
    "seeds": 0.0369, "fit": 0.0313,
}


class Row(NamedTuple):
    """One model, what it reads and its learning rate."""

    width: int
    budget: int
    learning_rate: float


def rate_of(width: int) -> float:
    """The rule: a model four times as wide gets half the rate."""
    return round(RATE * (12 / width) ** 0.5, 6)


ROWS = {f"{width} wide, rate {rate}": Row(width, BUDGETS[-1], rate) for width in WIDTHS[:2] for rate in TRIED} | {
    f"{width} wide, {budget:,} bytes": Row(width, budget, rate_of(width)) for budget in BUDGETS for width in WIDTHS
}
LARGEST = list(ROWS)[-1]


def seeds(row: str, asked: list[int]) -> list[int]:
    """Five seeds for the two narrowest models at the middle budget, one for the rest, whatever is asked for."""
    return list(range(5)) if row in [f"{width} wide, {BUDGETS[1]:,} bytes" for width in WIDTHS[:2]] else [0]


def build(width: int) -> LanguageModel:
    """A model of the family, untrained."""
    return LanguageModel(LanguageModelConfig(vocab_size=256, d_model=width, num_heads=HEADS, d_ff=4 * width,
                                             num_layers=BLOCKS, max_len=LENGTH))


@functools.cache
def windows(split: str) -> torch.Tensor:
    """A split's bytes in windows (n, LENGTH + 1); the last byte of each is the next one's first."""
    text = b"\n".join(module.text.encode() for module in load_standard_library(split))
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    return data.unfold(0, LENGTH + 1, LENGTH)


def loss_of(model: LanguageModel, batch: torch.Tensor) -> torch.Tensor:
    """Mean of -ln p(next byte) over a batch of windows."""
    return F.cross_entropy(model(batch[:, :-1]).logits.flatten(0, 1), batch[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model: LanguageModel) -> float:
    """Nats a byte on HELD_OUT windows, spread over the test split."""
    rows = windows("test")
    chosen = rows[torch.linspace(0, len(rows) - 1, HELD_OUT).long()]
    return float(np.mean([loss_of(model, batch).item() for batch in chosen.split(50)]))


def train(model: LanguageModel, batches, learning_rate: float) -> None:
    """One pass: AdamW without decay, the rate up for a tenth of the steps and then down to zero in a straight line."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=BETAS, weight_decay=0.0)
    steps = len(batches)
    for step, batch in enumerate(batches):
        share = min((step + 1) / (WARMUP * steps), (steps - step) / ((1 - WARMUP) * steps))
        optimizer.param_groups[0]["lr"] = learning_rate * min(1.0, share)
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()


def settings() -> str:
    """What every run depends on, its row aside."""
    return fingerprint(library_fingerprint(), BLOCKS, HEADS, LENGTH, BATCH, HELD_OUT, WARMUP, CLIP, list(BETAS), 1)


def run(model: str, seed: int, state) -> dict:
    """Train one model once over its bytes, and score it on the held-out windows."""
    row = ROWS[model]
    seed_everything(seed)
    net = build(row.width)
    text = windows("train")
    order = torch.randperm(len(text), generator=torch.Generator().manual_seed(seed))
    steps = row.budget // (BATCH * LENGTH)
    begun = time.process_time()
    train(net, text[order[: steps * BATCH]].split(BATCH), row.learning_rate)
    spent = time.process_time() - begun
    embedding = net.embedding.weight.numel()
    return {"parameters": parameters_of(net) - embedding, "embedding": embedding, "bytes": steps * BATCH * LENGTH,
            "steps": steps, "loss": round(held_out_loss(net), 4), "processor_seconds": round(spent, 1)}


def law(numbers, parameters, read):
    """E + A / N^alpha + B / D^beta, with N in thousands and D in millions."""
    floor, a, alpha, b, beta = numbers
    return floor + a * (np.asarray(parameters) / 1e3) ** -alpha + b * (np.asarray(read) / 1e6) ** -beta


def fitted(parameters, read, losses) -> np.ndarray:
    """The five numbers of `law`, by least squares on the logarithms of the losses, none of them negative."""
    start = np.array([1.0, 1.0, 0.3, 0.5, 0.3])
    return least_squares(lambda numbers: np.log(law(numbers, parameters, read)) - np.log(losses), start,
                         bounds=(1e-6, [5, 20, 3, 20, 3]), x_scale=start).x


def known_points() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters, bytes read and mean losses of all runs by the rule but the largest."""
    runs: dict = {}
    for run in read_runs("scaling_laws"):
        if run["model"].endswith("bytes") and run["model"] != LARGEST:
            runs.setdefault((run["parameters"], run["bytes"]), []).append(run["loss"])
    table = np.array([(*point, np.mean(losses)) for point, losses in runs.items()])
    return table[:, 0], table[:, 1], table[:, 2]


def predict() -> dict:
    """The largest run's loss from all others, and the interval that goes with it.

    Half the interval is twice a spread: that of the seeds, and that of the fitted value when one known point is left out
    (jackknife), added as squares; but at most a sixth of the distance between the losses of the two largest models known at
    that budget, so that the interval says something.
    """
    parameters, read, losses = known_points()
    n, d = parameters_of(build(WIDTHS[-1])) - 256 * WIDTHS[-1], max(read)
    value = float(law(fitted(parameters, read, losses), n, d))
    left_out = [float(law(fitted(parameters[k], read[k], losses[k]), n, d)) for k in ~np.eye(len(losses), dtype=bool)]
    jackknife = math.sqrt((len(losses) - 1) * np.var(left_out))
    several: dict = {}
    for run in read_runs("scaling_laws"):
        several.setdefault(run["model"], []).append(run["loss"])
    spread = math.sqrt(np.mean([np.var(found, ddof=1) for found in several.values() if len(found) > 1]))
    fifth, fourth = sorted(losses[read == d])[:2]
    half, allowed = 2 * math.hypot(spread, jackknife), (fourth - fifth) / 6
    return {"value": round(value, 3), "half": round(min(half, allowed), 3), "half_by_spread": round(half, 3),
            "half_allowed": round(float(allowed), 3), "seeds": round(spread, 4), "fit": round(jackknife, 4)}


def _predicted(row: str, seed: int) -> None:
    if row == LARGEST and PREDICTION is None:
        raise RuntimeError("commit PREDICTION first, then make the largest run")


SET = ResultSet("scaling_laws", ROWS, settings, run, (LIBRARY, Need("a prediction of the largest run", _predicted)),
                seeds=seeds, line=lambda runs: f"{runs[0]['parameters']:,} parameters, loss {runs[0]['loss']:.3f}")
