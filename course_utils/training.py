"""Train and score any classifier of the course; used from notebook 08 on, written out by hand in notebook 03.

Does: length-bucketed batches with dynamic padding, AdamW with warm-up and decay, gradient clipping, the
best epoch by validation accuracy, early stopping, checkpoints that resume with the same result, a CUDA device
where there is one, and `python -m course_utils.training` (see `--help`). Does not: know any model. A model takes
(token_ids, attention_mask) and returns logits, or a result with `.logits`.
"""

if __name__ == "__main__":                              # Ctrl-C while the libraries are imported: no traceback of them
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)

import hashlib
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn
from torch.nn import functional as F
from tqdm import tqdm

from course_utils import files
from course_utils.options import check_options
from course_utils.tokenization import pad_batch
from course_utils.training_options import BATCH_RULES, FIT_RULES, RUN_RULES


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch, so that a run on the same machine gives the same numbers."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class EncodedReviews(NamedTuple):
    """Token ids of each review, and its label."""

    ids: list[list[int]]
    labels: list[int]


def encode_reviews(dataset, tokenizer) -> EncodedReviews:
    """Encode the `text` of every row of a dataset split; keep its `label`."""
    return EncodedReviews([tokenizer.encode(text) for text in dataset["text"]], list(dataset["label"]))


class Batch(NamedTuple):
    """token_ids and attention_mask (batch, seq_len), labels (batch,), and which reviews they are."""

    token_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor
    indices: list[int]


class BatchOptions(NamedTuple):
    """How reviews become batches. `multiple_of` rounds the width up: odd widths let the allocator grow."""

    batch_size: int = 32
    max_len: int | None = 256
    truncation: str = "head_tail"
    multiple_of: int = 8
    pad_id: int = 0
    bucketed: bool = True


def batches(reviews: EncodedReviews, options: BatchOptions = BatchOptions(), seed: int | None = None) -> Iterator[Batch]:
    """Reviews of similar length together; in random order for a `seed`, in order of length without one."""
    check_options(options._asdict(), BATCH_RULES)
    order = list(range(len(reviews.ids)))
    if seed is not None:
        random.Random(seed).shuffle(order)
    if options.bucketed or seed is None:
        pool = 50 * options.batch_size if seed is not None else max(1, len(order))
        pools = [order[i : i + pool] for i in range(0, len(order), pool)]
        order = [i for part in pools for i in sorted(part, key=lambda i: len(reviews.ids[i]))]
    groups = [order[i : i + options.batch_size] for i in range(0, len(order), options.batch_size)]
    if seed is not None:
        random.Random(seed + 1).shuffle(groups)
    for group in groups:
        rows = [reviews.ids[i] for i in group]
        token_ids, mask = pad_batch(rows, options.pad_id, options.max_len, options.truncation, options.multiple_of)
        yield Batch(token_ids, mask, torch.tensor([reviews.labels[i] for i in group]), group)


def logits_of(result) -> torch.Tensor:
    """The logits of a model's answer, whether it is a tensor or a result with parts."""
    return result if isinstance(result, torch.Tensor) else result.logits


class Evaluation(NamedTuple):
    """Mean cross-entropy `loss` and `accuracy` over all reviews; `predictions` (reviews,) and
    `probabilities` (reviews, classes) in the order of the reviews."""

    loss: float
    accuracy: float
    predictions: torch.Tensor
    probabilities: torch.Tensor


@torch.no_grad()
def evaluate(model: nn.Module, reviews: EncodedReviews, options: BatchOptions = BatchOptions()) -> Evaluation:
    """Score a model in evaluation mode, without gradients; its mode is put back afterwards.

    Sums are divided by the number of reviews, so a short last batch does not count for more.
    """
    if not reviews.ids:
        raise ValueError("there are no reviews to evaluate; an empty split?")
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    probabilities, loss = {}, 0.0
    for batch in batches(reviews, options._replace(batch_size=max(64, options.batch_size))):
        logits = logits_of(model(batch.token_ids.to(device), batch.attention_mask.to(device))).float()
        loss += F.cross_entropy(logits, batch.labels.to(device), reduction="sum").item()
        probabilities.update(zip(batch.indices, logits.softmax(dim=-1).cpu()))
    model.train(was_training)
    table = torch.stack([probabilities[i] for i in range(len(reviews.ids))])
    predictions = table.argmax(dim=-1)
    accuracy = (predictions == torch.tensor(reviews.labels)).double().mean().item()
    return Evaluation(loss / len(reviews.ids), accuracy, predictions, table)


def accuracy_by(groups, predictions, labels) -> dict[str, float]:
    """Accuracy in each group, sorted by name: accuracy_by(["a", "b", "a"], [1, 0, 0], [1, 0, 1]) -> {"a": .5, "b": 1.}."""
    right = {}
    for group, predicted, label in zip(groups, predictions, labels):
        right.setdefault(group, []).append(int(predicted) == int(label))
    return {group: sum(hits) / len(hits) for group, hits in sorted(right.items())}


class FitResult(NamedTuple):
    """`history`, one dict an epoch; `best_epoch` counts from 1; training `seconds`, validation included."""

    history: list[dict]
    best_epoch: int
    seconds: float


def learning_rate_at(step: int, total_steps: int, peak: float, warmup: float) -> float:
    """Linear from near zero to `peak` over the first share `warmup` of the steps, then a half cosine to zero."""
    rise = max(1, round(total_steps * warmup))
    if step < rise:
        return peak * (step + 1) / rise
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, total_steps - rise)))


def training_device(model: nn.Module) -> torch.device:
    """Where `fit` trains a model: on a CUDA device if there is one, otherwise where the model is."""
    home = next(model.parameters()).device
    return torch.device("cuda") if home.type == "cpu" and torch.cuda.is_available() else home


def training_precision(precision: str, model: nn.Module, train: EncodedReviews, options: BatchOptions) -> str:
    """What "auto" and "fastest" mean for a model where it stands: see `fit`."""
    device = next(model.parameters()).device
    if precision not in ("auto", "fastest"):
        return precision
    if precision == "auto" or device.type != "cpu":
        return "bf16" if device.type == "cuda" else "fp32"
    from course_utils.acceleration import choose_precision  # here, since that file knows the model's modules

    batch = next(batches(train, options, seed=0))
    return choose_precision(model, batch.token_ids, batch.attention_mask)


def fit(
    model: nn.Module,
    train: EncodedReviews,
    validation: EncodedReviews,
    *,
    epochs: int = 10,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.01,
    warmup: float = 0.1,
    clip: float = 1.0,
    patience: int | None = None,
    options: BatchOptions = BatchOptions(),
    seed: int = 0,
    precision: str = "auto",
    checkpoint=None,
    progress: bool = True,
) -> FitResult:
    """Train `model` in place and leave it with the weights of the epoch that was best on `validation`.

    Trains on a CUDA device if there is one and brings the model back to its own. `precision` is that of the
    model's passes in training: "fp32", "bf16" (autocast; weights, loss and evaluation stay in fp32), "auto", which is
    bf16 on CUDA and fp32 elsewhere, or "fastest": on a CPU the one that is faster in a measurement with one batch. A
    measurement may come out otherwise another time, and with it the digits of a run: so it is not the default.

    `patience` epochs without a better validation accuracy end the training. With `checkpoint` (a file
    name) the state is written after every epoch, and a run that finds one made with the same
    settings, model and reviews goes on from it to the same result. Raises ValueError for an empty split, and for an
    option that cannot be, by its name; FloatingPointError if the loss is no longer finite. Whatever ends the training
    early, the model is left where it was, with the weights of its best epoch so far.
    """
    given = dict(
        epochs=epochs, learning_rate=learning_rate, weight_decay=weight_decay, warmup=warmup, clip=clip, patience=patience,
        precision=precision, seed=seed,
    )
    check_options(given | options._asdict(), FIT_RULES | BATCH_RULES | RUN_RULES)
    if not train.ids:
        raise ValueError("there are no reviews to train on; an empty split?")
    if not validation.ids:
        raise ValueError("there are no reviews to evaluate on; an empty split?")
    home, device = next(model.parameters()).device, training_device(model)
    model.to(device)
    steps_per_epoch = -(-len(train.ids) // options.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True)
    settings = ""                                       # what a checkpoint must have been made with
    if checkpoint:
        settings = json.dumps([
            epochs, learning_rate, weight_decay, warmup, clip, patience, list(options), seed, precision,
            hashlib.sha256(json.dumps([train, validation]).encode()).hexdigest(),
            str(model), str(getattr(model, "config", "")),
            [[name, list(p.shape)] for name, p in model.named_parameters()],
        ])
    state = load_checkpoint(checkpoint, settings, model, optimizer) if checkpoint else None
    history, best, best_epoch, seconds, chosen = state or ([], None, 0, 0.0, None)
    best = best or {name: tensor.clone() for name, tensor in model.state_dict().items()}
    bar = tqdm(total=epochs * steps_per_epoch, initial=len(history) * steps_per_epoch, unit="step", disable=not progress)
    try:
        chosen = chosen or training_precision(precision, model, train, options)
        for epoch in range(len(history) + 1, epochs + 1):
            if patience is not None and history and len(history) - best_epoch >= patience:
                break
            begun = time.perf_counter()
            torch.manual_seed(seed * 1000 + epoch)      # dropout of this epoch, whether or not the run was resumed
            model.train()
            loss_sum = 0.0
            for i, batch in enumerate(batches(train, options, seed=seed * 1000 + epoch)):
                step = (epoch - 1) * steps_per_epoch + i
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate_at(step, epochs * steps_per_epoch, learning_rate, warmup)
                with torch.autocast(device.type, torch.bfloat16, enabled=chosen == "bf16"):
                    logits = logits_of(model(batch.token_ids.to(device), batch.attention_mask.to(device)))
                loss = F.cross_entropy(logits.float(), batch.labels.to(device))
                loss_value = loss.item()
                if not math.isfinite(loss_value):
                    raise FloatingPointError(
                        f"the loss is {loss_value} in epoch {epoch}, step {i}; "
                        f"try a smaller learning_rate than {learning_rate}"
                    )
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                loss_sum += loss_value * len(batch.labels)
                bar.update()
            scored = evaluate(model, validation, options)
            if not math.isfinite(scored.loss):
                raise FloatingPointError(
                    f"the loss on the validation reviews is {scored.loss} after epoch {epoch}; "
                    f"try a smaller learning_rate than {learning_rate}"
                )
            history.append({
                "epoch": epoch,
                "train_loss": loss_sum / len(train.ids),
                "validation_loss": scored.loss,
                "validation_accuracy": scored.accuracy,
            })
            bar.set_postfix(epoch=epoch, loss=f"{history[-1]['train_loss']:.3f}", validation=f"{scored.accuracy:.3f}")
            if best_epoch == 0 or scored.accuracy > history[best_epoch - 1]["validation_accuracy"]:
                best, best_epoch = {name: tensor.clone() for name, tensor in model.state_dict().items()}, epoch
            seconds += time.perf_counter() - begun
            if checkpoint:
                save_checkpoint(checkpoint, settings, model, optimizer, (history, best, best_epoch, seconds, chosen))
    finally:                                            # also after an error, or Ctrl-C in a notebook
        bar.close()
        model.load_state_dict(best)
        model.to(home)
        model.eval()
    return FitResult(history, best_epoch, seconds)


def save_checkpoint(path, settings: str, model: nn.Module, optimizer, state) -> None:
    """Write weights, best weights and optimizer state to one safetensors file, at once or not at all."""
    history, best, best_epoch, seconds, chosen = state
    tensors = {f"model.{name}": t for name, t in model.state_dict().items()}
    tensors |= {f"best.{name}": t for name, t in best.items()}
    for i, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": t for name, t in values.items()}
    tensors = {name: t.detach().cpu().clone() for name, t in tensors.items()}
    metadata = {"settings": settings, "state": json.dumps([history, best_epoch, seconds, chosen])}
    files.write_bytes(path, save(tensors, metadata))


def load_checkpoint(path, settings: str, model: nn.Module, optimizer):
    """Put a saved state into model and optimizer; None if there is none, or one of other settings or damaged."""
    if not Path(path).is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("settings") != settings:
                print(f"{Path(path).name} belongs to other settings; training starts anew", file=sys.stderr)
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        history, best_epoch, seconds, chosen = json.loads(metadata["state"])
        parts = {"model": {}, "best": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
        if any({name: tensor.shape for name, tensor in parts[part].items()} != shapes for part in ("model", "best")):
            raise ValueError("the weights are another model's")
        saved = optimizer.state_dict()
        for name, tensor in parts["optimizer"].items():
            i, _, field = name.partition(".")
            saved["state"].setdefault(int(i), {})[field] = tensor
        optimizer.load_state_dict(saved)
    except Exception as error:                          # cut off, or not a checkpoint: whatever it is, it is not used
        print(f"{Path(path).name} cannot be read ({type(error).__name__}); training starts anew", file=sys.stderr)
        return None
    model.load_state_dict(parts["model"])
    return history, parts["best"], best_epoch, seconds, chosen


def epochs_in(checkpoint) -> int:
    """How many epochs a checkpoint holds; 0 if there is none that can be read."""
    try:
        with safe_open(checkpoint, framework="pt") as file:
            return len(json.loads(file.metadata()["state"])[0])
    except Exception:
        return 0


if __name__ == "__main__":
    from course_utils.recipes import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
