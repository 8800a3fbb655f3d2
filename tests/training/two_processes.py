"""What tests/training/test_distributed.py asks of two real processes, all in one start:

    torchrun --standalone --nproc-per-node 2 tests/training/two_processes.py FOLDER

Each process writes what it found to FOLDER/found-RANK.json. In float64, losses that convert logits by `.float()` keep
float64 here. With an argument more, the folder of a checkpoint, only `go_on` runs, by however many processes there are.
"""

import json
import sys
from pathlib import Path

import torch
from toy_reviews import toy_model, toy_reviews

from course_utils.encoder_decoder import SmoothedLoss, Transformer, TransformerConfig
from course_utils.language_model import LanguageModel, LanguageModelConfig, next_token_loss
from course_utils.training import BatchOptions, batches, classification_loss, fit
from course_utils.training.distributed import joined
from course_utils.training.pair_batches import BEGIN, END, PAD, EncodedPairs, PairBatches
from course_utils.training.processes import CannotTrainTogether, NothingCounts, OneProcess, among, here, part_of

QUIET = dict(progress=False, options=BatchOptions(batch_size=8, max_len=16))
TRAIN, VALIDATION = toy_reviews(79, 0), toy_reviews(40, 1)                 # ten batches of eight an epoch, the last of seven
NO_DROPOUT = dict(dropout=0.0)


def in_float64():
    """Let `.float()` leave float64 alone, as the losses call it for the sake of bf16."""
    to_float = torch.Tensor.float
    torch.Tensor.float = lambda self: self if self.dtype == torch.float64 else to_float(self)


# one step of reviews, pairs and code

def reviews(number):
    return next(batches(toy_reviews(number), BatchOptions(batch_size=64, max_len=16)))


def pairs(number):
    draw = torch.Generator().manual_seed(number)
    rows = [torch.randint(4, 12, (3 + i % 5,), generator=draw).tolist() for i in range(number)]
    return next(PairBatches(EncodedPairs(rows, [[BEGIN, *row[::-1], END] for row in rows])).batches(None))


def code(number):
    ids = torch.randint(1, 12, (number, 9), generator=torch.Generator().manual_seed(number))
    for i in range(number):
        ids[i, 4 + i % 6:] = 0                          # ragged: parts have different numbers of tokens
    return ids


def transformer():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(vocab_size=12, source_vocab_size=12, d_model=8, num_heads=2, d_ff=16, num_layers=1,
                                         max_len=16, dropout=0.0))


def language_model():
    torch.manual_seed(0)
    return LanguageModel(LanguageModelConfig(vocab_size=12, d_model=8, num_heads=2, d_ff=16, num_layers=1, max_len=16))


KINDS = {"reviews": (reviews, lambda: toy_model(**NO_DROPOUT), classification_loss),
         "pairs": (pairs, transformer, SmoothedLoss(0.1)),
         "code": (code, language_model, next_token_loss)}


def without_the_second_part(batch):
    """The same batch without a token that counts in the part of the second of two processes."""
    if isinstance(batch, torch.Tensor):
        batch = batch.clone()
        batch[1::2] = 0
        return batch
    targets = batch.target_ids.clone()
    targets[1::2, 1:] = PAD
    return batch._replace(target_ids=targets)


def cases():
    """Of each kind a whole batch of 32, a last one of 31, of 1; and one in which a part has nothing that counts."""
    for kind, (make, model, loss_of) in KINDS.items():
        for number in (32, 31, 1):
            yield f"{kind}, {number}", make(number), model().double(), loss_of
        if kind != "reviews":
            yield f"{kind}, nothing in one part", without_the_second_part(make(8)), model().double(), loss_of


def one_step(batch, model, loss_of):
    """Loss, items and the gradient as one vector."""
    model.zero_grad()
    loss, items = loss_of(model, batch)
    loss.backward()
    return loss.item(), items, torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def gradients():
    """How far loss and gradient are from those of one process, and whether the items are the same."""
    found = {}
    for name, batch, model, loss_of in cases():
        alone = one_step(batch, model, loss_of)
        shared = one_step(batch, model, here().over_all(model, loss_of))
        found[name] = {"loss": abs(alone[0] - shared[0]), "items": alone[1] == shared[1],
                       "gradient": (alone[2] - shared[2]).abs().max().item(), "size": alone[2].abs().max().item()}
    try:
        one_step(torch.zeros(4, 6, dtype=torch.long), model, here().over_all(model, next_token_loss))
    except NothingCounts as error:
        found["nothing at all"] = str(error)
    return found


# whole trainings

class InTurn(OneProcess):
    """One process that works off the parts of several, one after the other, each with its own generator."""

    def __init__(self, number):
        self.number = number

    def seed(self, seed):
        self.states = [torch.manual_seed(seed + 7_919_000 * rank).get_state() for rank in range(self.number)]
        return seed

    def over_all(self, model, loss_of):
        def loss_of_parts(model, batch):
            parts = []
            for rank in range(self.number):
                torch.set_rng_state(self.states[rank])
                part = part_of(batch, rank, self.number)
                parts += [loss_of(model, part)] if len(part[0]) else []
                self.states[rank] = torch.get_rng_state()
            items = sum(number for _, number in parts)
            return sum(loss * number for loss, number in parts) / items, items

        return loss_of_parts


def trained(processes, dtype=torch.float64, epochs=10, **options):
    """A model trained by `processes`, and which epoch was best."""
    model = toy_model(**options).to(dtype)
    with among(processes):
        result = fit(model, TRAIN, VALIDATION, epochs=epochs, learning_rate=3e-3, **QUIET)
    return model, result


def difference(one, other, dtype):
    """The largest between logits and between weights, and whether the same epoch was best."""
    batch = reviews(64)
    logits = [model(batch.token_ids, batch.attention_mask).logits for model, _ in (one, other)]
    weights = [torch.cat([p.flatten() for p in model.parameters()]) for model, _ in (one, other)]
    return {"logits": (logits[0] - logits[1]).abs().max().item(), "weights": (weights[0] - weights[1]).abs().max().item(),
            "best": [result.best_epoch for _, result in (one, other)],
            "train_loss": max(abs(a["train_loss"] - b["train_loss"]) for a, b in zip(one[1].history, other[1].history))}


def whole_trainings():
    dropout = dict(dropout=0.2, word_dropout=0.1)
    plan = {"float32, no dropout": (torch.float32, NO_DROPOUT, OneProcess()),
            "float64, no dropout": (torch.float64, NO_DROPOUT, OneProcess()),
            "float64, dropout, parts in turn": (torch.float64, dropout, InTurn(here().number)),
            "float64, dropout, one process": (torch.float64, dropout, OneProcess())}
    return {name: difference(trained(here(), dtype, **options), trained(alone, dtype, **options), dtype)
            for name, (dtype, options, alone) in plan.items()}


# checkpoints and errors

class FailsAt:
    """A validation that raises an error after so many epochs; it's only called in the first process."""

    best, fingerprint = "highest validation_accuracy", "as before"

    def __init__(self, epoch=None):
        self.epoch, self.called = epoch, 0

    def __call__(self, model):
        from course_utils.training import ReviewScores
        self.called += 1
        if self.called == self.epoch:
            raise FloatingPointError(f"epoch {self.epoch} is enough")
        return ReviewScores(VALIDATION, QUIET["options"])(model)


def go_on(checkpoint, stop_at=None):
    """Train four epochs with a checkpoint, or until the validation fails; what came out."""
    model, validation = toy_model(**NO_DROPOUT).double(), FailsAt(stop_at)
    try:
        result = fit(model, TRAIN, validation, epochs=4, learning_rate=3e-3, checkpoint=checkpoint, **QUIET)
    except FloatingPointError as error:
        return {"error": str(error), "called": validation.called}
    return {"called": validation.called, "history": result.history, "best": result.best_epoch,
            "weights": torch.cat([p.flatten() for p in model.parameters()]).tolist()}


def other_data(checkpoint):
    data = TRAIN if here().is_first else toy_reviews(79, 5)
    try:
        fit(toy_model(), data, VALIDATION, epochs=1, checkpoint=checkpoint, **QUIET)
    except CannotTrainTogether as error:
        return str(error)


def main(folder: Path, checkpoint: Path | None) -> None:
    in_float64()
    with joined() as together:
        if checkpoint:
            found = {"gone on": go_on(checkpoint)}
        else:
            found = {"gradients": gradients(), "trainings": whole_trainings(),
                     "stopped": go_on(folder / f"state-{together.rank}", stop_at=3),
                     "other data": other_data(folder / f"other-{together.rank}"), "processes": together.number}
    (folder / f"found-{together.rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)
