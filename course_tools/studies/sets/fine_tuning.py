"""The course's small encoder, fine-tuned on few labels in four ways: a result set, read by notebook 14, section 7.

Writes data/results/fine_tuning.json. Each row has 100 labelled plain opinions of data/sentences, drawn with the seed, or a
pool of 1,000 whole, or all 1,225 of the train splits of data/written and data/written_more; one of four ways;
`course_utils.recipes.fine_tuning`'s training, which is the notebook's. "test" are the 250 plain opinions of the validation
and test splits of data/sentences, "written" the 263 of those of data/written and data/written_more, which nobody's grammar
made. The rate of each way is the better of two, on 200 other sentences, with 100 labels and the seed 10 (`tried`); no higher
one was tried.

    python -m course_tools results fine_tuning --jobs 1 --seeds 0 1 2 3 4
"""

import functools
from typing import NamedTuple

from course_tools.studies.needs import committed, texts_from
from course_tools.studies.runner import ResultSet, accuracies, parameters_of
from course_utils.pretraining import load_bert
from course_utils.recipes import fine_tuning as recipe
from course_utils.results import fingerprint, scores_one_by_one, split_fingerprints
from course_utils.training import seed_everything


class Row(NamedTuple):
    """A way, and how many labels."""

    way: str
    labels: int


class WrittenRow(NamedTuple):
    """The same with labelled written opinions, in so many passes."""

    way: str
    labels: int
    read: str
    passes: int


ROWS: dict[str, Row | WrittenRow] = {f"{way}, 100 labels": Row(way, 100) for way in recipe.RATES}
ROWS["all layers, 1,000 labels"] = Row("all layers", 1000)
ROWS["all layers, 1,225 written labels"] = WrittenRow("all layers", 1225, "written train", 3)
TRIED = {"head only": (3e-3, 1e-2), "adapters": (1e-3, 3e-3), "all layers": (1e-4, 3e-4), "random numbers": (3e-4, 1e-3)}


@functools.cache
def tokenizer():
    """That of the encoder."""
    return load_bert("encoder")[1]


@functools.cache
def texts(name: str) -> recipe.Labelled:
    """Labelled plain opinions: the "pool" of 1,000, the 200 for "choosing" a rate, the "test", the "written" ones for a test
    and those of the "written train" splits."""
    if name == "written train":
        return recipe.plain(recipe.WRITTEN, ("train",), tokenizer())
    both = ("validation", "test")
    if name in ("pool", "choosing"):
        found = recipe.plain(("sentences",), ("train",), tokenizer())
        part = slice(recipe.POOL) if name == "pool" else slice(recipe.POOL, None)
        return recipe.Labelled(found.ids[part], found.labels[part])
    return recipe.plain({"test": ("sentences",), "written": recipe.WRITTEN}[name], both, tokenizer())


@functools.cache
def settings() -> str:
    """What every run depends on."""
    weights = load_bert("encoder")[0].embedding.weight.double().sum().item()
    corpora = [split_fingerprints(dict(recipe.load_reviews(name))) for name in ("sentences", *recipe.WRITTEN)]
    return fingerprint(round(weights, 3), corpora, recipe.POOL, recipe.SIZE, recipe.PASSES, recipe.RATES, 1)


def trained(way: str, several: recipe.Labelled, rate: float, seed: int, passes: int):
    """The classifier after its training, and the losses."""
    seed_everything(seed)
    model, read = recipe.in_one_way(way), recipe.batches_of(several, passes, seed)
    losses = recipe.fine_tune(model, recipe.groups_of(model, rate), read, recipe.rise_and_fall(len(read)))
    return model, losses


def run(name: str, seed: int, state) -> dict:
    """Fine-tune once and score."""
    row = ROWS[name]
    read, passes = ((row.read, row.passes) if isinstance(row, WrittenRow) else ("pool", recipe.PASSES[row.labels]))
    few = recipe.drawn(texts(read), row.labels, seed)
    model, losses = trained(row.way, few, recipe.RATES[row.way], seed, passes)
    scored = {split: scores_one_by_one(recipe.answers(model, texts(split)), texts(split).labels)
              for split in ("test", "written")}
    return {"parameters": parameters_of(model), "trained": parameters_of(model, trained=True),
            "last_losses": round(sum(losses[-5:]) / 5, 4), **scored}


def tried(seed: int = 10) -> dict[str, dict[float, float]]:
    """The accuracy of each way at each rate, on the 200 sentences for choosing, with 100 labels."""
    found, told = recipe.drawn(texts("pool"), 100, seed), {}
    for way, rates in TRIED.items():
        for rate in rates:
            model, _ = trained(way, found, rate, seed, recipe.PASSES[100])
            said = recipe.answers(model, texts("choosing"))
            told.setdefault(way, {})[rate] = sum(a == b for a, b in zip(said, texts("choosing").labels)) / len(said)
            print(way, rate, told[way][rate], flush=True)
    return told


SET = ResultSet("fine_tuning", {name: row._asdict() for name, row in ROWS.items()}, settings, run,
                (*committed("encoder"), *texts_from("sentences", *recipe.WRITTEN)), line=accuracies("test", "written"))
