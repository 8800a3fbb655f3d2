"""Numbers that are quoted are the numbers in the result files, and the files say how they came about."""

import json
import re
import runpy

import pandas as pd
import pytest

from course_utils.data import load_reviews
from course_utils.experiments import load_set
from course_utils.result_tables import readme_section
from course_utils.results import add_run, by_model, interval, percent, read_runs, summarise
from course_utils.tokenization import WordTokenizer

RUN = {"model": "m", "order": 0, "seed": 0, "test": {"accuracy": 0.5, "reviews": 100}}


def test_the_readme_quotes_what_the_result_files_say(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    quoted = text.partition("<!-- scoreboard: begin -->")[2].partition("<!-- scoreboard: end -->")[0]
    assert quoted.strip() == readme_section().strip(), "run data/results/run.py: it rewrites the README's tables"


NAMES = ["scoreboard", "imdb", "explanations"]


ALL = [*NAMES, "ablations", "token_range", "learning_curves", "sentiment_axis", "imdb_better"]


@pytest.mark.parametrize("name", ALL)
def test_every_run_names_its_seed_settings_device_and_cost(name):
    runs = read_runs(name)
    assert runs
    for run in runs:
        assert {"model", "seed", "settings", "device", "threads", "torch", "parameters", "seconds"} <= set(run)
        assert 0 <= run["test"]["accuracy"] <= 1 and run["test"]["reviews"] > 0
    assert len({run["settings"] for run in runs}) == 1, "the runs of one table were made with different settings"


@pytest.mark.parametrize("name", ["scoreboard", "ablations", "token_range"])
def test_the_runs_in_a_file_are_what_the_script_would_make_now(name):
    module = load_set(name)
    for run in read_runs(name):
        assert run["settings"] == module.settings(), f"{name}.json was made with another recipe or other reviews"
        assert run.get("change", {}) == module.describe(run["model"]), run["model"]


def test_attention_was_run_with_three_seeds():
    for name in NAMES:
        for model, runs in by_model(read_runs(name)).items():
            if "attention" in model:
                assert sorted(run["seed"] for run in runs) == [0, 1, 2]


def test_the_committed_checkpoints_score_what_their_runs_say(root):
    from course_utils.classifier import ReviewClassifier
    from course_utils.data import load_reviews

    test = load_reviews("reviews")["test"]
    labels, _ = ReviewClassifier.load(root / "data" / "checkpoints" / "reviews").predict(test["text"])
    names = test.features["label"].names
    accuracy = sum(label == names[i] for label, i in zip(labels, test["label"])) / len(labels)
    runs = by_model(read_runs("scoreboard"))["attention, the full model"]
    best = max(runs, key=lambda run: run["validation"]["accuracy"])
    assert accuracy == pytest.approx(best["test"]["accuracy"], abs=2 / len(labels))


def test_a_checkpoint_is_small(root):
    for folder in (root / "data" / "checkpoints").iterdir():
        assert sum(file.stat().st_size for file in folder.iterdir()) < 12e6, folder.name


def numbers_of_the_prose(notebook: dict) -> list[tuple[str, str]]:
    """(cell id, number) of every number with a decimal point in the text: no formulas, code, tables or folded answers."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            other = r"<details>.*?</details>|\$\$.*?\$\$|\$[^$]*\$|```.*?```|`[^`]*`"
            text = re.sub(other, " ", "".join(cell["source"]), flags=re.S)
            lines = [line for line in text.splitlines() if not line.startswith("|")]
            numbers = re.findall(r"(?<![\d.,\w])\d+(?:,\d{3})*\.\d+(?![\d.])", "\n".join(lines))
            found += [(cell["id"], number) for number in numbers]
    return found


def outputs_of(notebook: dict) -> str:
    """What the cells print and show, as text."""
    parts = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            parts.append("".join(output.get("text", [])))
            parts += ["".join(shown) for kind, shown in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join(parts)


# numbers of an example that the text makes up or works out by hand, or that a reference gives
BY_HAND = {"09_real_reviews": {"0.998", "1.96", "4.6"}, "11_attention_as_explanation": {"3.5"}, "12_ablations": set()}


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_a_notebook_that_reads_result_files_quotes_only_what_its_outputs_show(root, name):
    notebook = json.loads((root / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    shown = {float(n.replace(",", "")) for n in re.findall(r"(?<![\d.,])\d+(?:,\d{3})*\.\d+", outputs_of(notebook))}
    quoted = numbers_of_the_prose(notebook)
    assert len(quoted) > 5
    for cell, number in quoted:
        digits, value = len(number.partition(".")[2]), float(number.replace(",", ""))
        agrees = any(round(figure * scale, digits) == value for figure in shown for scale in (1, 100))
        assert agrees or number in BY_HAND[name], f"cell {cell} of {name} says {number}, and no output does"


def test_an_interval_adds_the_chance_of_reviews_and_of_seeds():
    mean, half = interval([0.9], 100)
    assert mean == 0.9 and half == pytest.approx(1.96 * 0.03)
    assert interval([0.85, 0.95], 100)[1] > half
    assert percent((0.871, 0.0121)) == "87.1 ± 1.2"


def test_a_run_replaces_one_of_the_same_model_and_seed(tmp_path):
    add_run("x", RUN, tmp_path)
    add_run("x", {**RUN, "seed": 1}, tmp_path)
    add_run("x", {**RUN, "test": {"accuracy": 0.7, "reviews": 100}}, tmp_path)
    runs = read_runs("x", tmp_path)
    assert [(run["seed"], run["test"]["accuracy"]) for run in runs] == [(0, 0.7), (1, 0.5)]
    assert summarise(runs, "test", "accuracy")[0] == pytest.approx(0.6)


def test_a_damaged_result_file_is_named(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps([RUN])[:-5], encoding="utf-8")
    with pytest.raises(ValueError, match="x.json is damaged"):
        read_runs("x", tmp_path)


def test_what_was_counted_on_the_offline_collections_can_be_counted_again(root):
    facts = json.loads((root / "data" / "results" / "imdb_facts.json").read_text(encoding="utf-8"))
    script = runpy.run_path(str(root / "data" / "results" / "imdb_facts.py"))
    tokenizer, opinions = WordTokenizer.train(load_reviews("reviews")["train"]["text"]), script["opinion_words"]()
    assert len(opinions) == facts["opinions"]
    for name, split in (("made", load_reviews("reviews")["train"]), ("hand-written", load_reviews("handwritten")["test"])):
        assert script["describe"](split, opinions, tokenizer)[0] == facts[name]


def test_the_predictions_give_the_accuracies_of_their_runs(root):
    said = pd.read_csv(root / "data" / "results" / "imdb_predictions.csv")
    for run in read_runs("imdb"):
        column = said[f"{run['model']}, seed {run['seed']}"]
        assert len(column) == run["test"]["reviews"]
        assert ((column > 0.5) == (said["label"] == 1)).mean() == pytest.approx(run["test"]["accuracy"], abs=0.001)
