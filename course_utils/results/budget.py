"""Trainings on a budget: runs that were made beforehand, handed out one by one as if they were made now.

Does: count what is asked for, refuse what isn't paid for, open the test split once. Does not: train anything (see
course_tools/studies/sets/tuning.py).
"""

from course_utils.results import read_runs


class Budget:
    """So many runs of data/results/tuning.json, and one look at the test split.

        budget = Budget(12)
        budget.run(0.006, 32, 0)            # the validation accuracy of one training; eleven are left
        budget.open_test(0.006, 32)         # the test accuracies of this setting's seeds, once

    `rates`, `widths` and `seeds` are what may be asked for, `asked` what was: rate, width, seed and validation accuracy.
    """

    def __init__(self, runs: int = 12):
        self.table = {(run["change"]["learning_rate"], run["change"]["d_model"], run["seed"]): run
                      for run in read_runs("tuning")}
        self.rates, self.widths, self.seeds = (sorted({key[i] for key in self.table}) for i in range(3))
        self.left, self.asked, self.opened = runs, [], None

    def run(self, rate: float, width: int, seed: int) -> float:
        """The validation accuracy of one training. Raises ValueError if the budget is spent, or there's no such run."""
        one = self._find(rate, width, seed)
        if not self.left:
            raise ValueError(f"All {len(self.asked)} runs of the budget are spent. Choose from what you've seen.")
        self.left -= 1
        self.asked.append((rate, width, seed, one["validation"]["accuracy"]))
        return one["validation"]["accuracy"]

    def open_test(self, rate: float, width: int) -> list[float]:
        """The test accuracies of a setting, one for each seed. Raises ValueError the second time."""
        found = [self._find(rate, width, seed)["test"]["accuracy"] for seed in self.seeds]
        if self.opened:
            was_rate, was_width = self.opened
            raise ValueError(f"You've opened the test split already, for rate {was_rate:g} and width {was_width}. If you "
                             "look again and keep the better of the two, the test split has chosen, and its accuracy no "
                             "longer says how good the choice is.")
        self.opened = rate, width
        return found

    def _find(self, rate, width, seed) -> dict:
        try:
            return self.table[rate, width, seed]
        except (KeyError, TypeError):
            raise ValueError(f"There's no run with rate {rate!r}, width {width!r} and seed {seed!r}. Rates: "
                             f"{', '.join(map(str, self.rates))}. Widths: {', '.join(map(str, self.widths))}. Seeds: "
                             f"{', '.join(map(str, self.seeds))}.") from None
