"""A pretrained encoder fine-tuned on few labels: what notebook 14, section 7, builds and the study `fine_tuning` repeats.

    model = in_one_way("all layers")
    fine_tune(model, groups_of(model, RATES["all layers"]), several, rise_and_fall(len(several)))

Does: the sentences, the ways, the batches, the training, the score. tests/test_pretraining_notebook.py holds these equal to
what the notebook's cells do. Does not: save anything.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data import load_reviews
from course_utils.pretraining import ADAPTABLE, BertClassifier, BertEncoder, add_adapters, freeze, load_bert
from course_utils.tokenization import pad_batch

POOL, SIZE, PASSES = 1000, 16, {100: 8, 1000: 2}       # labelled sentences; a batch; passes over so many labels
# the better of two each, on 200 other sentences, with 100 labels and another seed: see the study
RATES = {"head only": 1e-2, "adapters": 3e-3, "all layers": 3e-4, "random numbers": 1e-3}
WRITTEN = ("written", "written_more")


class Labelled(NamedTuple):
    """Texts as lists of ids, and their labels."""

    ids: list[list[int]]
    labels: list[int]


class FewBatch(NamedTuple):
    """`token_ids` and `attention_mask` (batch, seq_len), `labels` (batch)."""

    token_ids: Tensor
    attention_mask: Tensor
    labels: Tensor


def plain(corpora, splits, tokenizer) -> Labelled:
    """The plain opinions of these splits, those that say what they mean, in the order of the files; cut to 128 tokens."""
    found = Labelled([], [])
    for corpus in corpora:
        for split in splits:
            for row in load_reviews(corpus)[split]:
                if row["kind"] == "plain":
                    found.ids.append(tokenizer.encode(row["text"])[:128])
                    found.labels.append(row["label"])
    return found


def drawn(several: Labelled, number: int, seed: int) -> Labelled:
    """So many of these, other ones for another seed."""
    rows = torch.randperm(len(several.ids), generator=torch.Generator().manual_seed(seed))[:number].tolist()
    return Labelled([several.ids[i] for i in rows], [several.labels[i] for i in rows])


def batches_of(several: Labelled, passes: int, seed: int, size: int = SIZE) -> list[FewBatch]:
    """The batches of all passes, in the order in which they're read: texts of similar length in each, in random order."""
    generator, result = torch.Generator().manual_seed(seed), []
    for _ in range(passes):
        order = torch.randperm(len(several.ids), generator=generator).tolist()
        order.sort(key=lambda i: len(several.ids[i]))   # equal lengths stay in random order
        parts = [order[i : i + size] for i in range(0, len(order), size)]
        for part in torch.randperm(len(parts), generator=generator).tolist():
            ids, mask = pad_batch([several.ids[i] for i in parts[part]], 0)
            result.append(FewBatch(ids, mask, torch.tensor([several.labels[i] for i in parts[part]])))
    return result


def rise_and_fall(steps: int) -> list[float]:
    """What the learning rate is multiplied by in each step: up in the first tenth, then down to zero."""
    rise = max(1, steps // 10)
    return [min((step + 1) / rise, (steps - step) / max(1, steps - rise)) for step in range(steps)]


def in_one_way(way: str, encoder: BertEncoder | None = None) -> BertClassifier:
    """An untrained classifier on a copy of the course's encoder, or on one of random numbers, with what learns set."""
    encoder = load_bert("encoder", attention_dropout=0.0)[0] if encoder is None else encoder
    if way == "random numbers":
        encoder = BertEncoder(encoder.config)
    model = BertClassifier(encoder)
    if way == "head only":
        return freeze(model)
    return add_adapters(model, rank=8, names=ADAPTABLE) if way == "adapters" else model


def groups_of(model: nn.Module, rate: float) -> list[dict]:
    """What learns, at one rate."""
    return [{"params": [p for p in model.parameters() if p.requires_grad], "lr": rate}]


def fine_tune(model: nn.Module, groups: list[dict], several: list[FewBatch], factors: list[float]) -> list[float]:
    """One step for each batch, each group's rate times that step's factor; returns the losses. Exercise 14.8."""
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    peaks = [group["lr"] for group in optimizer.param_groups]
    model.train()
    losses = []
    for batch, factor in zip(several, factors, strict=True):
        for group, peak in zip(optimizer.param_groups, peaks):
            group["lr"] = peak * factor
        logits = model(batch.token_ids, batch.attention_mask).logits
        loss = F.cross_entropy(logits, batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def answers(model: nn.Module, several: Labelled) -> list[int]:
    """The label that the model gives each text."""
    order = sorted(range(len(several.ids)), key=lambda i: len(several.ids[i]))
    said = [0] * len(order)
    with torch.no_grad():
        for rows in (order[i : i + 64] for i in range(0, len(order), 64)):
            ids, mask = pad_batch([several.ids[i] for i in rows], 0)
            for i, label in zip(rows, model(ids, mask).logits.argmax(dim=-1).tolist()):
                said[i] = label
    return said
