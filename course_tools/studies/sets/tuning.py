"""A small classifier with five learning rates and three widths: the runs that a learner may ask for in notebook 12.

Writes data/results/tuning.json: every pair of a rate and a width, on two seeds. The model is that of 08 with one block,
trained for six epochs instead of sixteen, so that a run takes about ten seconds.

    python -m course_tools results tuning --seeds 0 1
"""

import functools
from typing import NamedTuple

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, Trained, train_and_score
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.recipes import RECIPES, changed
from course_utils.results import fingerprint, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, encode_reviews, seed_everything

RECIPE = changed(RECIPES["reviews"], num_layers=1, epochs=6)
RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2, 2.4e-2)
WIDTHS = (16, 32, 64)


class Choice(NamedTuple):
    """What a row of the grid sets; the feed-forward layer is as wide as the model."""

    learning_rate: float
    d_model: int


GRID = {f"rate {rate:g}, width {width}": Choice(rate, width) for rate in RATES for width in WIDTHS}


@functools.cache
def encoded_reviews() -> tuple[dict, WordTokenizer, dict]:
    """The splits, the vocabulary of the training split, and the splits as ids."""
    data = dict(load_reviews("reviews"))
    tokenizer = WordTokenizer.train(data["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
    return data, tokenizer, {split: encode_reviews(data[split], tokenizer) for split in data}


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPE, split_fingerprints(load_reviews("reviews")))


def run(row: str, seed: int, state) -> Trained:
    """Train and score one pair on one seed."""
    rate, width = GRID[row]
    recipe = changed(RECIPE, learning_rate=rate, d_model=width, d_ff=width)
    data, tokenizer, encoded = encoded_reviews()
    seed_everything(seed)
    net = SelfAttentionClassifier(ClassifierConfig(vocab_size=tokenizer.vocab_size, **recipe.model))
    return train_and_score(net, data, encoded, BatchOptions(**recipe.batches), seed, state, **recipe.fit)


SET = ResultSet("tuning", GRID, settings, run, depends_on=texts_from("reviews"))
