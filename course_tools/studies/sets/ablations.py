"""The classifier of notebook 08 against one change at a time: a result set, read by notebook 12.

Writes data/results/ablations.json: the default on fifteen seeds, mean pooling on five, every other row on those that are
asked for.

    python -m course_tools results ablations [--only heads] [--seeds 0 1 2]
"""

import functools
import math
from typing import NamedTuple

from torch import Tensor, nn

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, Trained, scored_reviews, train_and_score
from course_utils.baselines import RecurrentClassifier
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.embeddings import BagOfEmbeddings
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.recipes import RECIPES, Recipe, changed
from course_utils.results import fingerprint, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, EncodedReviews, encode_reviews, seed_everything

RECIPE = RECIPES["reviews"]
DEFAULT = "the default"
MORE_SEEDS = {DEFAULT: range(15), "mean pooling": range(5)}   # what every row is compared with; what 12 looks at by seed


class Change(NamedTuple):
    """What a row does otherwise than the default.

    `options` of the recipe (as `python -m course_utils train --set`), the number of training `reviews`, scores
    without the division by √d_head, word vectors that stay as they were drawn, or another `network`.
    """

    group: str
    options: dict = {}
    reviews: int | None = None
    unscaled: bool = False
    frozen: bool = False
    network: str = "attention"


def width(d_model: int, learning_rate: float | None = None) -> Change:
    """Another width, perhaps with its own learning rate; the feed-forward layer keeps its ratio of one."""
    rate = {} if learning_rate is None else {"learning_rate": learning_rate}
    return Change("width", {"d_model": d_model, "d_ff": d_model, **rate})


# the networks of equal parameters: about 99,700, as many as the default has
BAG = {"network": "bag", "options": {"d_model": 37, "learning_rate": 1e-2, "weight_decay": 0.01}}
LSTM = {"network": "LSTM", "options": {}}
BILSTM = {"network": "BiLSTM", "options": {}}
# epochs that take as long as the default's sixteen, measured in turns on one thread; `seconds` of the runs says how well
EPOCHS_OF_EQUAL_TIME = {"bag": 160, "LSTM": 21}


def longer(parts: dict) -> dict:
    """The same network, trained for as long as the default."""
    return {**parts, "options": {**parts["options"], "epochs": EPOCHS_OF_EQUAL_TIME[parts["network"]]}}


CHANGES = {
    DEFAULT: Change("default"),
    "0 layers": Change("layers", {"num_layers": 0}),
    "1 layer": Change("layers", {"num_layers": 1}),
    "4 layers": Change("layers", {"num_layers": 4}),
    "1 head": Change("heads", {"num_heads": 1}),
    "4 heads": Change("heads", {"num_heads": 4}),
    "8 heads": Change("heads", {"num_heads": 8}),
    "no positions": Change("positions", {"positions": "none"}),
    "sinusoidal positions": Change("positions", {"positions": "sinusoidal"}),
    "learned positions": Change("positions", {"positions": "learned"}),
    "ALiBi": Change("positions", {"positions": "alibi"}),
    "no scaling": Change("scaling", unscaled=True),
    "mean pooling": Change("pooling", {"pooling": "mean"}),
    "post-norm, 2 layers": Change("norm", {"norm_first": False}),
    "post-norm, 4 layers": Change("norm", {"norm_first": False, "num_layers": 4}),
    "feed-forward 4 × width": Change("feed-forward", {"d_ff": 128}),
    "no dropout": Change("dropout", {"dropout": 0.0}),
    "dropout 0.3": Change("dropout", {"dropout": 0.3}),
    "learning rate 1e-3": Change("learning rate", {"learning_rate": 1e-3}),
    "learning rate 2e-2": Change("learning rate", {"learning_rate": 2e-2}),
    "250 training reviews": Change("training reviews", reviews=250),
    "1,000 training reviews": Change("training reviews", reviews=1000),
    "4,000 training reviews": Change("training reviews", reviews=4000),
    "frozen random embeddings": Change("embeddings", frozen=True),
    "width 64": width(64),
    "width 64, rate 3e-3": width(64, 3e-3),             # the rate times the width as in the default
    "width 128": width(128),
    "width 128, rate 1.5e-3": width(128, 1.5e-3),
    "width 256": width(256),
    "width 256, rate 7.5e-4": width(256, 7.5e-4),
    "bag, equal parameters": Change("equal parameters", **BAG),
    "LSTM, equal parameters": Change("equal parameters", **LSTM),
    "BiLSTM, equal parameters": Change("equal parameters", **BILSTM),
    "bag, equal seconds": Change("equal seconds", **longer(BAG)),
    "LSTM, equal seconds": Change("equal seconds", **longer(LSTM)),
}


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPE, split_fingerprints(scored_reviews()))


def describe(model: str) -> dict:
    """What the row changes, and in which group it stands."""
    change = CHANGES[model]
    return {name: value for name, value in change._asdict().items() if value != Change._field_defaults.get(name)}


def run(model: str, seed: int, state) -> Trained:
    """Train and score one row on one seed."""
    change = CHANGES[model]
    recipe = changed(RECIPE, **change.options)
    data = dict(scored_reviews())
    if change.reviews is not None:                      # another seed draws other reviews: that chance is in the interval
        data["train"] = data["train"].shuffle(seed=seed).select(range(change.reviews))
    tokenizer = WordTokenizer.train(data["train"]["text"], recipe.max_size, recipe.min_freq)
    encoded = {split: encode_reviews(data[split], tokenizer) for split in data}
    if change.reviews is not None:                      # as many steps as with all: an epoch reads them several times
        times = len(scored_reviews()["train"]) // change.reviews
        encoded["train"] = EncodedReviews(encoded["train"].ids * times, encoded["train"].labels * times)
    seed_everything(seed)
    net = network(change, recipe, tokenizer.vocab_size)
    made = train_and_score(net, data, encoded, BatchOptions(**recipe.batches), seed, state, **recipe.fit)
    made.own.update(vocabulary=tokenizer.vocab_size, recipe=recipe._asdict())
    return made


def network(change: Change, recipe: Recipe, vocab_size: int) -> nn.Module:
    """An untrained network with what the row changes."""
    start = {name: recipe.model[name] for name in ("embedding_std", "embedding_scale")}
    if change.network == "bag":
        return BagOfEmbeddings(vocab_size, recipe.model["d_model"])
    if change.network == "LSTM":
        return RecurrentClassifier(vocab_size, 32, 42, **start)
    if change.network == "BiLSTM":
        return RecurrentClassifier(vocab_size, 32, 50, bidirectional=True, pooling="max", **start)
    net = SelfAttentionClassifier(ClassifierConfig(vocab_size=vocab_size, **recipe.model))
    if change.unscaled:
        for block in net.encoder.blocks:
            block.attention = UnscaledAttention(recipe.model["d_model"], recipe.model["num_heads"])
    if change.frozen:
        net.embedding.weight.requires_grad_(False)
    return net


class UnscaledAttention(MultiHeadAttention):
    """Multi-head attention whose scores are not divided by √d_head."""

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The queries times √d_head, which the division takes back."""
        query, key, value = super().project(query, key, value)
        return query * math.sqrt(self.d_head), key, value


SET = ResultSet(
    "ablations", CHANGES, settings, run, depends_on=texts_from("reviews", "handwritten"),
    seeds=lambda row, asked: MORE_SEEDS.get(row, asked) if list(asked) == [0, 1, 2] else asked, change=describe,
)
