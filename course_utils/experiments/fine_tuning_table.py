"""The table of a pretrained encoder on IMDb, with what others report: a part of notebooks/results.md."""

from course_utils.experiments.results import by_model, percent, summarise

__all__ = ["fine_tuning_table", "fine_tuning_words"]

RASCHKA = "https://github.com/rasbt/LLMs-from-scratch/tree/main/ch06/03_bonus_imdb-classification"
SANH = "https://arxiv.org/abs/1910.01108"
PUBLISHED = [                                           # what, labelled reviews, seeds, accuracy, parameters, minutes
    (f"elsewhere: DistilBERT, one pass ([Raschka]({RASCHKA}))", 35_000, 1, "91.4", "66 million", "4 on a GPU"),
    (f"elsewhere: GPT-2, one pass ([Raschka]({RASCHKA}))", 35_000, 1, "91.9", "124 million", "9 on a GPU"),
    (f"elsewhere: DistilBERT ([Sanh and others 2019]({SANH}))", 25_000, "", "92.8", "66 million", ""),
    (f"elsewhere: BERT-base ([Sanh and others 2019]({SANH}))", 25_000, "", "93.5", "110 million", ""),
]
WORDS = """\
all-MiniLM-L6-v2 ({parameters:.0f} million parameters in six layers), loaded into the classes of notebook
[14](14_pretraining.ipynb) and fine-tuned there, each review cut to 192 word pieces, head and tail. Scored on {test:,} of
IMDb's test reviews. The part of the training whose weights are kept was chosen on 1,000 of {validation:,} validation
reviews, and no setting was searched for. Rows with equally many reviews made equally many steps. Minutes are those of one
core of a shared processor, validation included. The last rows are what others report for other models, splits and lengths:
a frame for these figures, not a comparison."""


def fine_tuning_words(runs: list[dict]) -> str:
    """What stands before the table, with the sizes that the file names."""
    data = runs[0]["data"]
    return WORDS.format(test=data["test"], validation=data["validation"], parameters=runs[0]["parameters"] / 1e6)


def fine_tuning_table(runs: list[dict]) -> str:
    """A pretrained encoder on IMDb as a Markdown table: accuracy, what was trained, the cost; then what others report."""
    lines = ["| what is trained | labelled reviews | seeds | accuracy | numbers trained | million tokens read | minutes |",
             "|---" * 7 + "|"]
    for model, same in by_model(runs).items():
        first, cells = same[0], [model.partition(", ")[0], f"{same[0]['change']['number']:,}", str(len(same))]
        cells.append(percent(summarise(same, "test", "accuracy")))
        cells.append("" if model.startswith("failure: ") else f"{first['trained']:,}")
        cells += [f"{first['tokens'] / 1e6:.1f}", f"{min(run['seconds'] for run in same) / 60:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {what} | {number:,} | {seeds} | {accuracy} | {size} | | {minutes} |"
              for what, number, seeds, accuracy, size, minutes in PUBLISHED]
    return "\n".join(lines)
