"""Word-piece vectors from a pretrained model against learned ones: a set of runs for course_tools/studies/command.py.

Writes data/results/static_vectors.json, which the results of Part III show. A bag of embeddings (notebook 03) reads IMDb in
MiniLM's word pieces, with 100 to 22,500 labelled reviews, other ones for each seed. Its 384 numbers for a piece are learned
from random ones, or they're the checkpoint's own, frozen, or the checkpoint's own and trained on. Every row makes equally
many steps. Each run trains with three learning rates (frozen vectors, with five) and keeps the rate and the part of the
training that are best on 1,000 validation reviews: more than somebody with 100 labels would have, but the same for every
row. IMDb comes from the hub, or from the folder that COURSE_DATA names; MiniLM from the hub, or from the folder that
COURSE_MODELS names.

    python -m course_tools results static_vectors [--only "100 reviews"] [--seeds 0 1 2]
"""

import functools
from typing import NamedTuple

import torch

from course_tools.studies.needs import IMDB
from course_tools.studies.pretrained_reviews import FixedSteps, first_of, tokens_in
from course_tools.studies.runner import ResultSet, Trained, parameters_of
from course_tools.studies.sets import pretrained
from course_utils.embeddings import BagOfEmbeddings
from course_utils.recipes.learning_curves import BAG_CHECKS as CHECKS
from course_utils.recipes.learning_curves import BAG_NUMBERS as NUMBERS
from course_utils.recipes.learning_curves import BAG_RATES as RATES
from course_utils.recipes.learning_curves import BAG_STEPS as STEPS
from course_utils.results import fingerprint, scores
from course_utils.training import evaluate, fit, seed_everything


class Row(NamedTuple):
    """Where the vectors come from, whether they are trained, and the number of labelled reviews."""

    start: str                                          # "learned", "frozen", "trained on"
    number: int


ROWS = {f"{start}, {number:,} reviews": Row(start, number) for number in NUMBERS for start in RATES}


@functools.cache
def settings() -> str:
    """What every run depends on: MiniLM, its tokenizer, the splits, the training."""
    return fingerprint(pretrained.settings(), STEPS, CHECKS, RATES)


def bag(start: str) -> BagOfEmbeddings:
    """An untrained bag of MiniLM's word pieces, its vectors as the row says."""
    encoder, tokenizer = pretrained.base()
    count, width = encoder.embedding.weight.shape
    net = BagOfEmbeddings(count, width, pad_id=tokenizer.pad_id)
    if start != "learned":
        with torch.no_grad():
            net.embedding.weight.copy_(encoder.embedding.weight)
        net.embedding.weight.requires_grad_(start == "trained on")
    return net


def run(model: str, seed: int, state) -> Trained:
    """Train one row with each rate, choose by validation, and score the chosen one."""
    row, data = ROWS[model], pretrained.encoded()
    few, options = first_of(data["train"], row.number, seed), pretrained.OPTIONS
    train, validation = FixedSteps(few, options, STEPS // CHECKS), first_of(data["validation"], 1000, 0)
    tried, best = {}, None
    for rate in RATES[row.start]:
        seed_everything(seed)
        net = bag(row.start)
        result = fit(net, train, validation, options=options, seed=seed, progress=False, epochs=CHECKS, learning_rate=rate)
        reached = max(epoch["validation_accuracy"] for epoch in result.history)
        tried[str(rate)] = round(reached, 4)
        if best is None or reached > best[0]:
            best = (reached, rate, net, result)
    _, rate, net, result = best
    scored = {split: scores(evaluate(net, data[split], options).predictions, data[split].labels)
              for split in ("validation", "test")}
    return Trained(net, result, {
        "data": {split: len(data[split].ids) for split in data}, "steps": STEPS, "learning_rate": rate, "tried": tried,
        "trained": parameters_of(net, trained=True),
        "tokens": round(tokens_in(few) * STEPS * options.batch_size / len(few.ids)), **scored,
    })


SET = ResultSet("static_vectors", ROWS, settings, run, (pretrained.MINILM, IMDB))
