"""Whether a recipe that can learn word order uses it on IMDb: a set of runs for course_tools/studies/command.py.

Writes data/results/imdb_order.json. `imdb_settings` shows that the recipe for IMDb misses the order of words even on the
course corpus, where order decides, and that with rotary positions and notebook 08's start it learns it there, in as many
steps. Here the same changed recipe is trained on IMDb: if it used the order, shuffling the words of the test reviews would
cost it accuracy. To save time its reviews are cut to 128 tokens. A bag of embeddings that reads the same 128 tokens is its
control: it can't see any order. `changed` is the proportion of the test reviews that get another label once they are
shuffled. The other rows aren't trained: data/checkpoints has the model of the recipe for IMDb,
and five of notebook 08's, which have read the course corpus alone.

    python -m course_tools results imdb_order --jobs 1 [--seeds 0 1 2] [--only start]
"""

import functools
import random

from course_tools.studies.needs import IMDB, committed, texts_from
from course_tools.studies.runner import ResultSet, Trained, accuracies, parameters_of
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews, split_reviews
from course_utils.embeddings import BagOfEmbeddings
from course_utils.files.paths import CHECKPOINTS
from course_utils.recipes import RECIPES, changed
from course_utils.recipes.imdb import Reviews
from course_utils.results import fingerprint, scores, split_fingerprints
from course_utils.tokenization import truncate
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    encode_reviews,
    evaluate,
    fastest_device,
    fit,
    seed_everything,
)

STARTED = "IMDb settings, rotary positions, 08's start"
BAG = "bag of embeddings, 128 tokens"
KEPT = "IMDb settings, the model that is kept"
MADE = "trained on the course corpus"
CHANGES = {                                             # what differs from the recipe for IMDb
    STARTED: {"positions": "rotary", "embedding_std": 0.02, "embedding_scale": 10.0, "zero_init": False, "max_len": 128},
    KEPT: {},
    MADE: {},
    BAG: {"max_len": 128, "learning_rate": 1e-2},
}


@functools.cache
def reviews() -> Reviews:
    """IMDb with the splits and the vocabulary that data/results/imdb.json was made with."""
    return Reviews(split_reviews(load_reviews("imdb"), validation=0.1, seed=0))


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPES["imdb"], split_fingerprints(reviews().splits))


def run(model: str, seed: int, state) -> dict | Trained:
    """Train and score one seed of a row, or score a model that is kept."""
    data, recipe = reviews(), changed(RECIPES["imdb"], **CHANGES[model])
    options = BatchOptions(**recipe.batches)
    sizes = {split: len(data.splits[split]) for split in data.splits}
    if model in (KEPT, MADE):
        kept = ReviewClassifier.load(CHECKPOINTS / ("imdb" if model == KEPT else f"reviews-seed-{seed}"))
        encoded = {split: encode_reviews(data.splits[split], kept.tokenizer)
                   for split in ("validation", "test", "handwritten")}
        net = kept.model.to(fastest_device())
        return {"parameters": parameters_of(net), "data": sizes, **scored(net, encoded, data, options)}
    seed_everything(seed)
    if model == BAG:
        net = BagOfEmbeddings(data.tokenizer.vocab_size, 64).to(fastest_device())
    else:
        net = SelfAttentionClassifier(ClassifierConfig(data.tokenizer.vocab_size, **recipe.model)).to(fastest_device())
    result = fit(net, data.encoded["train"], data.encoded["validation"], options=options, seed=seed, checkpoint=state,
                 progress=False, **recipe.fit)
    return Trained(net, result, {"data": sizes, "recipe": recipe._asdict(), **scored(net, data.encoded, data, options)})


def shuffled(encoded: EncodedReviews, options: BatchOptions) -> EncodedReviews:
    """The reviews cut to what the model reads, and then with the words of each in random order."""
    sample = random.Random(0).sample
    cut = [truncate(review, options.max_len, options.truncation) for review in encoded.ids]
    return EncodedReviews([sample(review, len(review)) for review in cut], encoded.labels)


def scored(net, encoded: dict, data: Reviews, options: BatchOptions) -> dict:
    """Accuracy on validation, test, shuffled and hand-written reviews; how many labels shuffling changes."""
    parts = {split: encoded[split] for split in ("validation", "test", "handwritten")}
    parts["shuffled"] = shuffled(encoded["test"], options)
    said = {name: evaluate(net, part, options).predictions for name, part in parts.items()}
    kinds = {"handwritten": {"kind": data.splits["handwritten"]["kind"]}}
    other = [int(before) != int(after) for before, after in zip(said["test"], said["shuffled"], strict=True)]
    return {name: scores(said[name], part.labels, **kinds.get(name, {})) for name, part in parts.items()} | {
        "changed": sum(other) / len(other)}


def seeds_of(row: str, asked: list[int]) -> list[int]:
    """The seeds of a row: of what is kept, those that are."""
    return {KEPT: [0], MADE: [*range(5)]}.get(row, asked)


SET = ResultSet(
    "imdb_order", CHANGES, settings, run, seeds=seeds_of, line=accuracies("test", "shuffled"),
    depends_on=(IMDB, *texts_from("handwritten"), *committed("imdb"), *committed("reviews-seed-4")),
)
