"""A pretrained encoder, fine-tuned on IMDb in five ways: a set of runs for course_tools/studies/command.py.

Writes data/results/pretrained.json, which notebook 14 shows. The encoder is all-MiniLM-L6-v2, with 6 layers and 23 million
parameters (Wang et al. 2020; then trained on pairs of sentences): the folder `minilm` in that of COURSE_MODELS, or the
hub's. IMDb comes from the hub, or from the folder that COURSE_DATA names. Reviews are cut to 192 word pieces, head and
tail, in two rows to 320 or 512. The rates are common ones; with 5,000 reviews, adapters and the training of all layers
have two more each, in rows of their own. The part of a pass whose weights are kept is chosen on 1,000 validation
reviews, and each run looks at the test reviews once. `tokens` are those read in training, `seconds` the time for them with
the validation.

    COURSE_MODELS=folder python -m course_tools results pretrained --jobs 1 [--only adapters] [--seeds 0 1 2]

A run writes its state after every part (half a pass, in most rows) and goes on from there when it's started again. The
longest row takes two and a half hours on one processor core, most with fewer reviews a third of an hour.
COURSE_PRECISION=bf16 trains in bf16, which is faster where the processor has instructions for it; a run says which
precision it was made with.
"""

import functools
import os
import time
from typing import NamedTuple

from course_tools.studies.needs import IMDB, Need
from course_tools.studies.pretrained_reviews import (
    FixedSteps,
    encoded_reviews,
    first_of,
    reviews,
    steps_in,
    tokens_in,
)
from course_tools.studies.runner import ResultSet, Trained, parameters_of
from course_utils.files import sha256
from course_utils.pretraining import (
    ADAPTABLE,
    ADAPTED,
    BertClassifier,
    WordPieceTokenizer,
    add_adapters,
    freeze,
    layer_rates,
    load_bert,
)
from course_utils.results import fingerprint, scores_one_by_one, split_fingerprints
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    classification_loss,
    evaluate,
    fastest_device,
    fit,
    seed_everything,
)
from course_utils.training.hugging_face import first_there

NAME = first_there("minilm", "sentence-transformers/all-MiniLM-L6-v2")
MAX_LEN = 192
OPTIONS = BatchOptions(batch_size=32, max_len=MAX_LEN, multiple_of=32)
FIT = {"weight_decay": 0.01, "warmup": 0.1, "clip": 1.0}
FAILURE = "failure: "                                   # rows that show what goes wrong, made with the first seed alone


class Row(NamedTuple):
    """What is trained, how fast, on how many reviews, in how many passes, with how many validations in each."""

    learning_rate: float
    frozen: int | None = 0                              # so many layers and the embeddings; None: all of the encoder
    decay: float = 1.0                                  # of the learning rate from a layer to the one below it
    rank: int = 0                                       # of adapters; 0: none
    adapted: tuple[str, ...] = ADAPTED                  # which layers of a block get one
    number: int = 22500                                 # training reviews; 2,500 of the 25,000 are for validation
    passes: int = 2
    parts: float = 2                                    # 0.2: a validation after every fifth pass
    masked: bool = True                                 # False: padding is read like words
    max_len: int = MAX_LEN                              # word pieces of a review, head and tail


ROWS = {
    "head only": Row(2e-3, frozen=None),
    "all layers": Row(5e-5),
    "all layers, 320 word pieces": Row(5e-5, max_len=320),
    "all layers, 512 word pieces": Row(5e-5, max_len=512),
    "head only, 5,000 reviews": Row(2e-3, frozen=None, number=5000),
    "adapters, 5,000 reviews": Row(5e-4, rank=8, number=5000),
    "adapters, rate 0.001, 5,000 reviews": Row(1e-3, rank=8, number=5000),
    "adapters, rate 0.002, 5,000 reviews": Row(2e-3, rank=8, number=5000),
    "adapters on every matrix, 5,000 reviews": Row(5e-4, rank=8, adapted=ADAPTABLE, number=5000),
    "adapters on every matrix, rate 0.001, 5,000 reviews": Row(1e-3, rank=8, adapted=ADAPTABLE, number=5000),
    "adapters on every matrix, rate 0.002, 5,000 reviews": Row(2e-3, rank=8, adapted=ADAPTABLE, number=5000),
    "upper two layers, 5,000 reviews": Row(1e-4, frozen=4, number=5000),
    "layer-wise rates, 5,000 reviews": Row(1e-4, decay=0.8, number=5000),
    "all layers, 5,000 reviews": Row(5e-5, number=5000),
    "all layers, rate 0.0001, 5,000 reviews": Row(1e-4, number=5000),
    "all layers, rate 0.0002, 5,000 reviews": Row(2e-4, number=5000),
    "all layers, 1,000 reviews": Row(1e-4, number=1000, passes=6, parts=1),
    "all layers, 100 reviews": Row(1e-4, number=100, passes=30, parts=0.2),
    f"{FAILURE}no attention mask, 1,000 reviews": Row(1e-4, number=1000, passes=6, parts=1, masked=False),
    f"{FAILURE}ten times the rate, 1,000 reviews": Row(1e-3, number=1000, passes=6, parts=1),
}


def precision() -> str:
    """The precision that COURSE_PRECISION asks for: 'fp32', or 'bf16'."""
    return os.environ.get("COURSE_PRECISION", "fp32")


@functools.cache
def base() -> tuple[BertClassifier, WordPieceTokenizer]:
    """The pretrained encoder, without dropout in its attention, and its tokenizer."""
    encoder, tokenizer = load_bert(NAME, attention_dropout=0.0)
    if tokenizer is None:
        raise ValueError(f"the folder of {NAME} has no tokenizer of word pieces")
    return encoder, tokenizer


@functools.cache
def encoded(max_len: int = MAX_LEN) -> dict[str, EncodedReviews]:
    """All splits in word pieces, cut to `max_len`."""
    tokenizer = base()[1]
    name = f"{NAME}-{fingerprint(tokenizer.vocabulary)}"
    return encoded_reviews(reviews(), lambda texts: map(tokenizer.encode, texts), name, max_len)


@functools.cache
def settings() -> str:
    """What every run depends on: the encoder, its tokenizer, and the texts and labels of all splits."""
    encoder, tokenizer = base()
    weights = sha256(encoder.embedding.weight.detach().numpy().tobytes())
    return fingerprint(str(encoder.config), weights, tokenizer.vocabulary, list(OPTIONS), FIT, split_fingerprints(reviews()))


def describe(model: str) -> dict:
    """What the row changes; `max_len` and `adapted` where they aren't the usual ones."""
    row, usual = ROWS[model]._asdict(), {"max_len": MAX_LEN, "adapted": ADAPTED}
    told = {name: value for name, value in row.items() if name not in usual or value != usual[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


class Unmasked(BertClassifier):
    """The failure that nobody notices at once: padding is read, and pooled, like words."""

    def forward(self, token_ids, attention_mask=None, need_weights=False):
        return super().forward(token_ids, (token_ids == token_ids), need_weights)


def classifier(row: Row) -> BertClassifier:
    """An untrained classifier on a new copy of the encoder, with the parts frozen that the row freezes."""
    encoder, _ = load_bert(NAME, attention_dropout=0.0)
    model = (BertClassifier if row.masked else Unmasked)(encoder)
    if row.rank:
        return add_adapters(model, row.rank, names=row.adapted)
    return freeze(model, row.frozen) if row.frozen != 0 else model


def run(model: str, seed: int, state) -> Trained:
    """Fine-tune and score one row."""
    row = ROWS[model]
    data, options = encoded(row.max_len), OPTIONS._replace(max_len=row.max_len)
    seed_everything(seed)
    net = classifier(row).to(fastest_device())
    few = data["train"] if row.number >= len(data["train"].ids) else first_of(data["train"], row.number, seed)
    train = FixedSteps(few, options, int(steps_in(few, options) / row.parts))
    validation = first_of(data["validation"], 1000, 0)  # after each part; all of it is scored at the end
    groups = (lambda net: layer_rates(net, row.decay)) if row.decay < 1 else None
    begun = time.process_time()
    result = fit(
        net, train, validation, loss_of=classification_loss, options=options, groups=groups, seed=seed,
        checkpoint=state, progress=False, precision=precision(), epochs=round(row.passes * row.parts),
        learning_rate=row.learning_rate, **FIT,
    )
    cpu_seconds = time.process_time() - begun           # of this start; the whole training's only if it wasn't interrupted
    scored = {split: scores_one_by_one(evaluate(net, data[split], options).predictions, data[split].labels)
              for split in ("validation", "test")}
    return Trained(net, result, {
        "data": {split: len(data[split].ids) for split in data}, "precision": precision(),
        "trained": parameters_of(net, trained=True), "tokens": tokens_in(few) * row.passes,
        "cpu_seconds": round(cpu_seconds, 1), **scored,
    })


MINILM = Need("MiniLM", lambda row, seed: base())
SET = ResultSet(
    "pretrained", ROWS, settings, run, (MINILM, IMDB),
    lambda row, asked: asked[:1] if row.startswith(FAILURE) else asked, describe,
)
