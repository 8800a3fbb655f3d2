"""Which data teach what: a set of runs for course_tools/studies/command.py.

Writes data/results/which_data.json, which notebook 15 shows. One encoder, all-MiniLM-L6-v2 or the same with random weights,
is fine-tuned for equally many steps on real reviews (IMDb), on the course's reviews, on both, or on both and on the course's
sentences (data/sentences), in equal parts. Every run is then scored on texts of all kinds: IMDb's test reviews, the
course's by kind, the hand-written reviews and the ordinary sentences by kind; the last two are for testing alone. The
quarter of the training whose weights are kept is chosen on validation texts of the row's own sources; no setting was
searched for. MiniLM comes from the hub or from the folder that COURSE_MODELS names, IMDb from the hub or from the one that
COURSE_DATA names.

    COURSE_MODELS=folder python -m course_tools results which_data --jobs 1 [--only MiniLM] [--seeds 0 1 2]

The longest row takes half an hour on one processor core, the others a few minutes to a quarter of an hour.
COURSE_PRECISION=bf16 trains in bf16, which is faster where the processor has instructions for it.
"""

import functools
from typing import NamedTuple

import torch

from course_tools.studies.needs import IMDB, texts_from
from course_tools.studies.pretrained_reviews import LINE_BREAK, FixedSteps, first_of, tokens_in
from course_tools.studies.runner import ResultSet, Trained, accuracies
from course_tools.studies.sets import pretrained
from course_utils.data import load_reviews
from course_utils.pretraining import BertClassifier, BertEncoder
from course_utils.recipes.learning_curves import FINE_TUNING_RATES as RATES
from course_utils.results import fingerprint, scores_one_by_one, split_fingerprints
from course_utils.tokenization import truncate
from course_utils.training import EncodedReviews, classification_loss, evaluate, fastest_device, fit, seed_everything

READ, PARTS = 16_000, 4                                 # texts read by every run, and how often it's validated meanwhile
VALIDATED = 400                                         # texts of each source
TESTED = ("reviews", "sentences", "handwritten", "ordinary")                           # beside IMDb, each by kind


class Row(NamedTuple):
    """What the encoder starts from, and which texts it is trained on."""

    start: str                                          # "MiniLM", "random"
    sources: tuple[str, ...]


MIXES = {"IMDb": ("imdb",), "course reviews": ("reviews",), "both": ("imdb", "reviews"),
         "both and sentences": ("imdb", "reviews", "sentences")}
ROWS = {f"{start}, {mix}": Row(start, sources) for start in RATES for mix, sources in MIXES.items()}


@functools.cache
def encoded(source: str) -> dict[str, tuple[EncodedReviews, list[str] | None]]:
    """The splits of one of the course's corpora in MiniLM's word pieces, each with its reviews' kinds."""
    tokenizer = pretrained.base()[1]
    return {split: (EncodedReviews([truncate(tokenizer.encode(LINE_BREAK.sub(" ", text)), pretrained.MAX_LEN, "head_tail")
                                    for text in rows["text"]], list(rows["label"])), list(rows["kind"]))
            for split, rows in load_reviews(source).items()}


def split_of(source: str, split: str) -> EncodedReviews:
    """One split of one source, in word pieces."""
    return pretrained.encoded()[split] if source == "imdb" else encoded(source)[split][0]


@functools.cache
def settings() -> str:
    """What every run depends on: MiniLM, all texts and labels, the training."""
    corpora = [split_fingerprints(load_reviews(source)) for source in TESTED]
    return fingerprint(pretrained.settings(), corpora, READ, PARTS, RATES)


def mixed(sources: tuple[str, ...], split: str, number: int, seed: int) -> EncodedReviews:
    """So many texts of each source, or all where there are fewer."""
    parts = [first_of(split_of(source, split), number, seed) for source in sources]
    return EncodedReviews([ids for part in parts for ids in part.ids], [label for part in parts for label in part.labels])


def classifier(start: str) -> BertClassifier:
    """MiniLM, or an encoder of its sizes that has read nothing, with a new linear layer on top."""
    encoder = pretrained.base()[0]
    fresh = BertEncoder(encoder.config)
    if start == "MiniLM":
        fresh.load_state_dict(encoder.state_dict())
    return BertClassifier(fresh)


def run(model: str, seed: int, state) -> Trained:
    """Train one row and score it on everything."""
    row, options = ROWS[model], pretrained.OPTIONS
    texts = mixed(row.sources, "train", READ // len(row.sources), seed)
    seed_everything(seed)
    net = classifier(row.start).to(fastest_device())
    steps = READ // options.batch_size
    validation = mixed(row.sources, "validation", VALIDATED, 0)
    result = fit(
        net, FixedSteps(texts, options, steps // PARTS), validation, loss_of=classification_loss, options=options,
        checkpoint=state, seed=seed, progress=False, precision=pretrained.precision(), epochs=PARTS,
        learning_rate=RATES[row.start], **pretrained.FIT,
    )
    return Trained(net, result, {
        "precision": pretrained.precision(), "steps": steps, "texts": len(texts.ids),
        "tokens": round(tokens_in(texts) * READ / len(texts.ids)),
        "imdb": scored(net, pretrained.encoded()["test"]),
        **{source: scored(net, *encoded(source)["test"]) for source in TESTED},
    }, chosen="best_part")


def scored(net: torch.nn.Module, texts: EncodedReviews, kinds: list[str] | None = None) -> dict:
    """Accuracy, by kind where there are kinds, and which texts were judged right."""
    predictions = evaluate(net, texts, pretrained.OPTIONS).predictions
    return scores_one_by_one(predictions, texts.labels, **({"kind": kinds} if kinds else {}))


SET = ResultSet(
    "which_data", ROWS, settings, run, (pretrained.MINILM, IMDB, *texts_from(*TESTED)), line=accuracies("imdb", *TESTED),
)
