"""What the settings for IMDb do on the course corpus: a set of runs for course_tools/studies/command.py.

Writes data/results/imdb_settings.json. Notebook 09 trains with one recipe on real reviews, 08 with another on the course
corpus. Whether a model's indifference to word order comes from its texts or from its recipe can only be said if the
recipe for IMDb is also trained where order decides. The texts are the only thing that is changed, and the number of
epochs, so that the model takes as many steps (the course corpus is smaller). `shuffled` is the test split with the
words of each review in random order.

    python -m course_tools results imdb_settings [--seeds 0 1 2 3 4]
"""

import dataclasses
import functools
import math
import random

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, Trained, scored_reviews, scored_split, train_and_score, twin_gap
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.recipes import RECIPES, Recipe, changed
from course_utils.results import fingerprint, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, EncodedReviews, encode_reviews, evaluate, seed_everything

STEPS = 2112                                            # of the recipe on IMDb: 6 epochs of 22,500 reviews, 64 a batch
CHANGES = {                                             # row: what differs from the recipe, the epochs aside
    "IMDb settings": {},
    "IMDb settings, rotary positions": {"positions": "rotary"},
    "IMDb settings, rotary positions, start of the course's": {
        "positions": "rotary", "embedding_std": 0.02, "embedding_scale": 10.0, "zero_init": False,
    },
}


def recipe_of(model: str) -> Recipe:
    """The recipe of a row: IMDb's with its change, and with as many epochs as make the number of steps."""
    recipe = RECIPES["imdb"]
    steps_per_epoch = math.ceil(len(scored_reviews()["train"]) / recipe.batches["batch_size"])
    return changed(recipe, epochs=round(STEPS / steps_per_epoch), **CHANGES[model])


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPES["imdb"], STEPS, split_fingerprints(scored_reviews()))


def run(model: str, seed: int, state) -> Trained:
    """Train and score one seed of a row."""
    data, recipe = scored_reviews(), recipe_of(model)
    tokenizer = WordTokenizer.train(data["train"]["text"], recipe.max_size, recipe.min_freq)
    encoded = {split: encode_reviews(data[split], tokenizer) for split in data}
    seed_everything(seed)
    net = SelfAttentionClassifier(ClassifierConfig(tokenizer.vocab_size, **recipe.model))
    options = BatchOptions(**recipe.batches)
    made = train_and_score(net, data, encoded, options, seed, state, **recipe.fit)
    made.own.update(
        config=dataclasses.asdict(net.config), twin_gap=twin_gap(net, data["test"], encoded["test"], options),
        shuffled=scored_split(data["test"], evaluate(net, shuffled(encoded["test"]), options).predictions),
    )
    return made


def shuffled(encoded: EncodedReviews) -> EncodedReviews:
    """The reviews with the words of each in random order, the same order each time."""
    sample = random.Random(0).sample
    return EncodedReviews([sample(ids, len(ids)) for ids in encoded.ids], encoded.labels)


SET = ResultSet("imdb_settings", CHANGES, settings, run, depends_on=texts_from("reviews", "handwritten"))
