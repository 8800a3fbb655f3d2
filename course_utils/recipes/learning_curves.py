"""Learning curves: what was tried with how many reviews, and the runs by their number, for notebook 14 and its extra.

Does: the numbers that the studies `learning_curves`, `static_vectors` and `which_data` share with notebooks; `curves`, which
puts runs of two result files together. Does not: train.
"""

from pathlib import Path
from typing import NamedTuple

from course_utils.recipes import RECIPES
from course_utils.results import FOLDER, by_model, read_runs
from course_utils.training import BatchOptions

RECIPE = RECIPES["imdb"]
# With fewer reviews a step may be smaller: half the recipe's batch gives twice the steps for the same time.
OPTIONS = BatchOptions(**{**RECIPE.batches, "batch_size": 32})
ALL = 22500                                             # the training reviews that validation leaves
BAG_STEPS, BAG_CHECKS = 1408, 8                         # two passes over 22,500 reviews; validation after each eighth
BAG_NUMBERS = (100, 1000, 5000, 22500)
BAG_RATES = {"learned": (1e-3, 3e-3, 1e-2), "frozen": (3e-2, 1e-1, 3e-1, 1.0, 3.0), "trained on": (3e-4, 1e-3, 3e-3)}
FINE_TUNING_RATES = {"MiniLM": 5e-5, "random": 2e-4}


class Amount(NamedTuple):
    """How many training reviews, how often a pass reads each before validation is looked at, how many passes; the batch."""

    reviews: int
    times: int
    passes: int
    batch_size: int = OPTIONS.batch_size


# a fixed number of steps, the best pass chosen by validation: 15 epochs of 1,000 reviews, 4 of 5,000
AMOUNTS = {"1,000": Amount(1000, 3, 5), "5,000": Amount(5000, 1, 4)}
# as the bag and the attention classifier read them for data/results/imdb.json
EVERYTHING = Amount(ALL, 1, RECIPE.fit["epochs"], RECIPE.batches["batch_size"])


def curves(folder: Path = FOLDER) -> dict[str, dict[int, list[dict]]]:
    """The runs of each model by the number of training reviews, from learning_curves.json and imdb.json.

    Of imdb.json only runs of the same recipe, the same splits and the same models are taken. There the bag and attention
    read the reviews in the recipe's batches, six times.
    """
    few = read_runs("learning_curves", folder)
    joined = {}
    for run in few:
        joined.setdefault(run["change"]["network"], {}).setdefault(run["data"]["train"], []).append(run)
    for model, runs in by_model(read_runs("imdb", folder)).items():
        same = [
            run for run in runs
            if few and run["recipe"] == few[0]["recipe"] and run["data"]["train"] == ALL
            and all(run["data"][split] == few[0]["data"][split] for split in ("validation", "test"))
        ]
        if model in joined and same:
            joined[model][ALL] = same
    return joined
