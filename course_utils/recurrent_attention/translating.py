"""What is done with a translator: its loss, greedy decoding, and an alignment from its weights."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.options import check_options, whole
from course_utils.training.pair_batches import BEGIN, END, PAD, PairBatch

__all__ = ["teacher_forcing_loss", "Translations", "greedy", "links_of", "alignment_error_rate"]


def teacher_forcing_loss(model: nn.Module, batch: PairBatch) -> tuple[Tensor, int]:
    """The mean of -ln p(word) over the real words of the targets, `END` included, and how many: a `loss_of` for `fit`.

    The model reads the target's own words, whatever it would have written itself (Williams and Zipser 1989). Raises
    ValueError for targets with fewer than two tokens.

    Taught in 16_recurrent_attention, '4. Train it, and let it write'.
    """
    target_ids = batch.target_ids
    if target_ids.dim() != 2 or target_ids.shape[1] < 2:
        raise ValueError(f"target_ids have shape {tuple(target_ids.shape)}; they must be (batch, target + 1), each from "
                         "BEGIN to END")
    logits = model(batch.source_ids, batch.source_mask, target_ids[:, :-1]).logits    # (batch, target, vocab)
    asked = target_ids[:, 1:]                                              # each word one step later
    loss = F.cross_entropy(logits.flatten(0, 1).float(), asked.flatten(), ignore_index=PAD)
    return loss, int((asked != PAD).sum())


class Translations(NamedTuple):
    """`ids`: the words of each sentence, without `END`. `weights`: (target, source) of each, or None if the model has none.
    `ended`: whether each wrote `END`; if not, it was cut off at the maximum length.

    Taught in 16_recurrent_attention, '4. Train it, and let it write'.
    """

    ids: list[list[int]]
    weights: list[Tensor] | None
    ended: list[bool]


@torch.no_grad()
def greedy(model: nn.Module, source_ids: Tensor, source_mask: Tensor, max_len: int = 80) -> Translations:
    """Translate: always the most probable word, which the model then reads, until `END` or `max_len` words.

    `model` has `encode`, `start` and `step`, as a `Seq2Seq` or 17's `Transformer`, which writes no more than its
    `config.max_len`. Put it into evaluation mode first.

    Taught in 16_recurrent_attention, '4. Train it, and let it write'.
    """
    check_options({"max_len": max_len}, {"max_len": whole(1, 100_000)})
    max_len = min(max_len, getattr(getattr(model, "config", None), "max_len", max_len))
    state = model.start(model.encode(source_ids, source_mask))
    last = torch.full((len(source_ids),), BEGIN, device=source_ids.device)
    running, written, looked = torch.ones_like(last, dtype=torch.bool), [], []
    while running.any() and len(written) < max_len:
        logits, state = model.step(last, state)
        logits[:, PAD] = -torch.inf                                        # in training it's never asked for
        last = logits.argmax(dim=-1).where(running, PAD)                   # (batch,)
        running = running & (last != END)
        written.append(last.where(running, PAD))
        looked.append(getattr(state, "weights", None))
    ids = torch.stack(written, dim=1)                                      # (batch, target)
    rows = [row[row != PAD].tolist() for row in ids]
    if looked[0] is None:
        return Translations(rows, None, (~running).tolist())
    maps = torch.stack(looked, dim=1)                                      # (batch, target, source)
    sizes = source_mask.sum(dim=1).tolist()
    return Translations(rows, [one[: len(row), :size] for one, row, size in zip(maps, rows, sizes)], (~running).tolist())


def links_of(weights: Tensor) -> set[tuple[int, int]]:
    """Each target word with the source word that it attends to most: weights (target, source) -> {(source, target), …}.

    Taught in 16_recurrent_attention, '6. Do the weights align words?'.
    """
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist())}


def alignment_error_rate(predicted: Sequence[set[tuple[int, int]]], gold: Sequence[set[tuple[int, int]]]) -> float:
    """1 - 2 |predicted and gold| / (|predicted| + |gold|), counted over all sentences: 0 is perfect (Och and Ney 2003,
    https://doi.org/10.1162/089120103321337421), with every gold link a sure one.

    predicted, gold: a set of links (source, target) for each sentence. Raises ValueError for lists of different lengths,
    and if there isn't a single link.

    Taught in 16_recurrent_attention, '6. Do the weights align words?'.
    """
    if len(predicted) != len(gold) or isinstance(predicted, set) or isinstance(gold, set):
        raise ValueError(f"got links for {len(predicted)} sentences and gold links for {len(gold)}; give lists with one set "
                         "of (source, target) for each sentence; for a single sentence write [links], [gold]")
    right = sum(len(set(links) & set(known)) for links, known in zip(predicted, gold))
    total = sum(len(set(links)) + len(set(known)) for links, known in zip(predicted, gold))
    if total == 0:
        raise ValueError("there are no links at all; leave empty sentences out")
    return 1 - 2 * right / total
