"""The classifier of notebook 08 with the parts of its blocks added one by one: a result set, read by notebook 07.

Writes data/results/parts.json. A part that a row leaves out isn't there: no parameters, nothing computed. All the rest, the
recipe and the draws it begins with among it, is the same in every row, and the same as in the default of `ablations`, which
is the row with all parts.

    python -m course_tools results parts --seeds 0 1 2 3 4
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, Trained, scored_reviews, train_and_score
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.recipes import RECIPES
from course_utils.results import fingerprint, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, encode_reviews, seed_everything
from course_utils.transformer_blocks import BlockResult, EncoderBlock

RECIPE = RECIPES["reviews"]


class Parts(NamedTuple):
    """Which parts the two blocks have; without attention there are no blocks, and what is left is a bag of words."""

    attention: bool = True
    feed_forward: bool = True
    residuals: bool = True
    norms: bool = True


ROWS = {
    "no block": Parts(attention=False, feed_forward=False, residuals=False, norms=False),
    "attention alone": Parts(feed_forward=False, residuals=False, norms=False),
    "+ feed-forward": Parts(residuals=False, norms=False),
    "+ residuals": Parts(norms=False),
    "without feed-forward": Parts(feed_forward=False),
    "without residuals": Parts(residuals=False),
}


class PartialBlock(nn.Module):
    """A pre-norm block with some of its parts; called as `EncoderBlock` is, whose modules it takes over."""

    def __init__(self, block: EncoderBlock, parts: Parts):
        super().__init__()
        self.residuals = parts.residuals
        self.attention, self.dropout = block.attention, block.dropout
        self.attention_norm = block.attention_norm if parts.norms else nn.Identity()
        self.feed_forward = self.feed_forward_norm = None
        if parts.feed_forward:
            self.feed_forward = block.feed_forward
            self.feed_forward_norm = block.feed_forward_norm if parts.norms else nn.Identity()

    def forward(
        self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, rotary: Callable | None = None,
        need_weights: bool = False, cache=None,
    ) -> BlockResult:
        context, weights = self.attention(self.attention_norm(x), mask=mask, bias=bias, rotary=rotary,
                                          need_weights=need_weights, cache=cache)
        x = self.joined(x, context)
        if self.feed_forward is not None:
            x = self.joined(x, self.feed_forward(self.feed_forward_norm(x)))
        return BlockResult(x, weights)

    def joined(self, x: Tensor, change: Tensor) -> Tensor:
        """What goes on after a sublayer: x and its change, or the change alone; both (batch, seq_len, d_model)."""
        return x + self.dropout(change) if self.residuals else self.dropout(change)


def network(parts: Parts, vocab_size: int) -> SelfAttentionClassifier:
    """An untrained classifier whose blocks have these parts; what two rows have in common begins with the same numbers."""
    net = SelfAttentionClassifier(ClassifierConfig(vocab_size=vocab_size, **RECIPE.model))
    net.encoder.blocks = nn.ModuleList(PartialBlock(block, parts) for block in net.encoder.blocks if parts.attention)
    if not parts.norms:
        net.encoder.norm = nn.Identity()
    return net


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPE, split_fingerprints(scored_reviews()))


def run(model: str, seed: int, state) -> Trained:
    """Train and score one row on one seed."""
    data = scored_reviews()
    tokenizer = WordTokenizer.train(data["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
    encoded = {split: encode_reviews(data[split], tokenizer) for split in data}
    seed_everything(seed)
    net = network(ROWS[model], tokenizer.vocab_size)
    made = train_and_score(net, data, encoded, BatchOptions(**RECIPE.batches), seed, state, **RECIPE.fit)
    made.own.update(vocabulary=tokenizer.vocab_size, recipe=RECIPE._asdict())
    return made


SET = ResultSet("parts", ROWS, settings, run, depends_on=texts_from("reviews", "handwritten"))
