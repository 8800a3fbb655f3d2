"""The parts of a block added one by one on the toy task of notebook 07, section 6: a result set, read by that notebook.

Writes data/results/toy_parts.json. In texts such as 'not dull but truly moving', the second opinion alone counts, and a
'not' before it reverses it. The rows have the parts of `parts`, and all parts, in a stack of two blocks, as there, and of
eight.

    python -m course_tools results toy_parts --seeds 0 1 2 3 4
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_tools.studies.runner import ResultSet, parameters_of
from course_tools.studies.sets import parts as on_reviews
from course_tools.studies.sets.parts import PartialBlock, Parts
from course_utils.positional_encoding import RotaryPositions
from course_utils.results import fingerprint, scores
from course_utils.training import seed_everything
from course_utils.transformer_blocks import EncoderBlock

STEPS, BATCH, LEARNING_RATE, TESTED = 150, 64, 1e-3, 1000
WIDTH, HEADS = 32, 2
PARTS = {
    "attention alone": on_reviews.ROWS["attention alone"],
    "+ feed-forward": on_reviews.ROWS["+ feed-forward"],
    "+ residuals": on_reviews.ROWS["+ residuals"],
    "the whole": Parts(),
    "without feed-forward": on_reviews.ROWS["without feed-forward"],
    "without residuals": on_reviews.ROWS["without residuals"],
}
ROWS = {f"{depth} blocks, {name}": {"depth": depth, "parts": name} for depth in (2, 8) for name in PARTS}


def second_counts(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Texts and their labels: token ids (count, 5) and 1 for praise (count,).

    Ids 0 and 1 are 'not' and 'truly', 2 is 'but', then come eight words of praise and eight of blame.
    """
    negated = torch.randint(0, 2, (count, 2), generator=generator)
    opinion = torch.randint(0, 16, (count, 2), generator=generator)
    marker, but = 1 - negated, torch.full((count,), 2)
    token_ids = torch.stack([marker[:, 0], 3 + opinion[:, 0], but, marker[:, 1], 3 + opinion[:, 1]], dim=1)
    return token_ids, ((opinion[:, 1] < 8) ^ (negated[:, 1] == 1)).long()


class Stack(nn.Module):
    """Blocks with some of their parts and rotary positions, a mean and a readout: (batch, 5) -> logits (batch, 2)."""

    def __init__(self, depth: int, parts: Parts):
        super().__init__()
        self.embedding = nn.Embedding(19, WIDTH)
        self.positions = RotaryPositions(WIDTH // HEADS)
        self.blocks = nn.ModuleList(
            PartialBlock(EncoderBlock(WIDTH, HEADS, 2 * WIDTH, dropout=0.0), parts) for _ in range(depth))
        self.norm = nn.LayerNorm(WIDTH) if parts.norms else nn.Identity()
        self.output = nn.Linear(WIDTH, 2)

    def forward(self, token_ids: Tensor) -> Tensor:
        x = self.embedding(token_ids)
        for block in self.blocks:
            x = block(x, rotary=self.positions.rotate).x
        return self.output(self.norm(x).mean(dim=1))


def settings() -> str:
    """What every run depends on."""
    return fingerprint(STEPS, BATCH, LEARNING_RATE, TESTED, WIDTH, HEADS, 1)


def run(model: str, seed: int, state) -> dict:
    """Train one stack on one seed, on new texts in each step, and score it on others, the same for all."""
    row = ROWS[model]
    seed_everything(seed)
    net, generator = Stack(row["depth"], PARTS[row["parts"]]), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    for _ in range(STEPS):
        token_ids, labels = second_counts(BATCH, generator)
        loss = F.cross_entropy(net(token_ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    token_ids, labels = second_counts(TESTED, torch.Generator().manual_seed(99))
    with torch.no_grad():
        predictions = net(token_ids).argmax(dim=-1)
    return {"parameters": parameters_of(net), "test": scores(predictions.tolist(), labels.tolist())}


SET = ResultSet("toy_parts", ROWS, settings, run)
