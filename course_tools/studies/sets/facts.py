"""What one block remembers of a table without a rule: a result set, read by notebook 07, section 6.

Writes data/results/facts.json. First and last names make people, and a random table says which of eight answers belongs to
each. One block, its attention trained, is read at the last name. The rows take its feed-forward layer away, or the gelu in
it, and then give the block without the layer more width, more steps, or a smaller table.

    python -m course_tools results facts --seeds 0 1 2 3 4
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_tools.studies.runner import ResultSet, parameters_of
from course_tools.studies.sets.parts import PartialBlock, Parts
from course_utils.results import fingerprint, scores
from course_utils.training import seed_everything
from course_utils.transformer_blocks import EncoderBlock, FeedForward

STEPS, BATCH, LEARNING_RATE, TESTED = 700, 64, 3e-3, 1000
ANSWERS, HEADS = 8, 2


class Row(NamedTuple):
    """What differs between the rows; `patience` multiplies the steps."""

    feed_forward: bool = True
    gelu: bool = True
    width: int = 32
    patience: int = 1
    names: int = 24


ROWS = {
    "the whole block": Row(),
    "without its gelu": Row(gelu=False),
    "without feed-forward": Row(feed_forward=False),
    "without feed-forward, 56 wide": Row(feed_forward=False, width=56),
    "without feed-forward, three times the steps": Row(feed_forward=False, patience=3),
    "without feed-forward, ten times the steps": Row(feed_forward=False, patience=10),
    "12 names each, without feed-forward": Row(feed_forward=False, names=12),
}


class OnlyLinear(FeedForward):
    """The two linear layers and nothing in between."""

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.expand(x))


def table_of(names: int) -> Tensor:
    """Which of eight answers belongs to each person: (first name, last name)."""
    return torch.randint(0, ANSWERS, (names, names), generator=torch.Generator().manual_seed(7))


def people(count: int, generator: torch.Generator, answers: Tensor) -> tuple[Tensor, Tensor]:
    """People and their answers: token ids (count, 2), a first and a last name, and (count,)."""
    names = len(answers)
    first, last = torch.randint(0, names, (2, count), generator=generator)
    return torch.stack([first, names + last], dim=1), answers[first, last]


class Remembers(nn.Module):
    """One block, read at the last name: (batch, 2) -> logits (batch, 8)."""

    def __init__(self, row: Row):
        super().__init__()
        self.embedding = nn.Embedding(2 * row.names, row.width)
        block = EncoderBlock(row.width, HEADS, 4 * row.width, dropout=0.0)
        if not row.gelu:
            block.feed_forward = OnlyLinear(row.width, 4 * row.width)
        self.block = PartialBlock(block, Parts(feed_forward=row.feed_forward))
        self.norm, self.output = nn.LayerNorm(row.width), nn.Linear(row.width, ANSWERS)

    def forward(self, token_ids: Tensor) -> Tensor:
        x = self.block(self.embedding(token_ids)).x
        return self.output(self.norm(x[:, -1]))


def settings() -> str:
    """What every run depends on."""
    return fingerprint(STEPS, BATCH, LEARNING_RATE, TESTED, ANSWERS, HEADS, 1)


def run(model: str, seed: int, state) -> dict:
    """Train one block on one seed, on people drawn anew in each step, and ask it for people of the same table."""
    row = ROWS[model]
    seed_everything(seed)
    net, generator, answers = Remembers(row), torch.Generator().manual_seed(seed), table_of(row.names)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    for _ in range(row.patience * STEPS):
        token_ids, labels = people(BATCH, generator, answers)
        loss = F.cross_entropy(net(token_ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    token_ids, labels = people(TESTED, torch.Generator().manual_seed(99), answers)
    with torch.no_grad():
        predictions = net(token_ids).argmax(dim=-1)
    return {"parameters": parameters_of(net), "test": scores(predictions.tolist(), labels.tolist())}


SET = ResultSet("facts", {name: row._asdict() for name, row in ROWS.items()}, settings, run)
