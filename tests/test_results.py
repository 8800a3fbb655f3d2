"""Numbers that are quoted are the numbers in the result files, and the files say how they came about."""

import json
import math
import re
import threading

import pytest

from course_tools.studies import command, runner
from course_tools.studies.runner import remove_runs, set_order
from course_tools.studies.sets import imdb_facts
from course_utils import results
from course_utils.copies.notebooks import extras
from course_utils.data import load_reviews
from course_utils.results import (
    add_run,
    by_model,
    interval,
    percent,
    read_runs,
    summarise,
)
from course_utils.results.budget import Budget
from course_utils.tokenization import WordTokenizer

RUN = {"model": "m", "order": 0, "seed": 0, "test": {"accuracy": 0.5, "reviews": 100}}


def test_the_readme_quotes_what_the_result_files_say(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    quoted = text.partition(command.BEGIN)[2].partition(command.END)[0]
    assert quoted.strip() == command.readme_section(), "python -m course_tools results rewrites the README's tables"


@pytest.mark.parametrize("name", ["imdb", "explanations"])             # the others are sets: see test_all_sets
def test_every_run_names_its_seed_settings_device_and_cost(name):
    runs = read_runs(name)
    assert runs
    for run in runs:
        assert {"model", "seed", "settings", "device", "threads", "torch", "parameters", "seconds"} <= set(run)
        assert 0 <= run["test"]["accuracy"] <= 1 and run["test"]["reviews"] > 0
    assert len({run["settings"] for run in runs}) == 1, "the runs of one table were made with different settings"


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


def numbers_of_the_prose(notebook: dict) -> list[tuple[str, str]]:
    """(cell id, number) of every number with a decimal point in the text: no formulas, code, tables or folded answers."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            other = r"(?:\[(?:doi|arXiv):[^\]]*)?\]\([^)]*\)|arXiv:[\d.]+|https?://[^\s)]+|<details>.*?</details>"
            other += r"|\$\$.*?\$\$|\$[^$]*\$|```.*?```|`[^`]*`"
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


# numbers of an example that the text makes up or works out by hand, that a reference gives, or that other seeds gave
BY_HAND = {"05_multi_head_attention": {"0.24", "0.70", "0.74", "0.79", "0.9"},
           "06_positional_encoding": {"0.462", "0.77", "0.85", "0.88", "0.90", "0.92", "0.95", "0.96", "0.98", "2.1", "3.5",
                                     "6.28", "12.6"},
           "07_transformer_blocks": {"0.00001", "0.001", "0.006", "0.01", "0.02", "0.75", "0.79", "0.84", "3.1", "3.3"},
           "09_real_reviews": {"1.96", "95.4", "95.6"},
           "11_attention_as_explanation": {"0.05", "0.22", "0.53", "0.88", "1.6", "5.2", "8.2"},
           "12_comparing_models": {"0.84", "3.3"},
           "13_language_model": {"0.003", "1.9", "2.0", "2.44", "2.6", "3.66", "7.8", "12.8"},  # 1.9 to 2.6: 13b
           "13b_induction_heads": {"8.3", "10.7", "10.9"},  # the two last are exercises of 10
           "14_pretraining": {"1.7", "1.9", "3.1", "3.3", "3.74", "4.3", "4.5", "4.9", "5.8", "6.7", "6.70",
                              "8.8", "80.4", "87.2", "92.2"},
           # 2.5, 5.1 and 18.7 are those of tests/training/test_saved_numbers.py
           "15_distillation": {"0.002", "0.018", "0.07", "0.117", "0.247", "0.302", "0.333", "0.670", "0.93", "0.980",
                               "1.492", "1.822", "2.5", "2.72", "3.984", "5.1", "18.7", "20.09", "98.6"},
           "17_encoder_decoder": {"0.1", "0.27", "0.713", "1.7", "2.3"},
            "18_efficient_attention": {"1.626", "2.350", "2.718", "3.718", "4.2", "5.086", "7.6"},
            "19_scaling": {"0.833", "2.5", "0.5", "0.028", "1.4"},
            "20_real_language_model": set(),
            # the tiny table of section 1, divided by hand in section 4
            # 0.14 to 0.70, and 0.718 to 0.976: its "Recorded" boxes, which the cells above them show where there are weights
           "21_prompting": {"0.14", "0.25", "0.35", "0.40", "0.58", "0.70", "0.718", "0.975", "0.976", "0.98", "0.93",
                            "0.01", "0.02", "0.03", "0.04", "0.2", "0.4", "0.6", "0.75", "0.8", "0.94", "0.95"},
           "results_part_3": {"7.8"}}


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_a_notebook_that_reads_result_files_quotes_only_what_its_outputs_show(root, name):
    notebook = json.loads((root / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    shown = {float(n.replace(",", "")) for n in re.findall(r"(?<![\d.,])\d+(?:,\d{3})*\.\d+", outputs_of(notebook))}
    quoted = numbers_of_the_prose(notebook)
    assert quoted
    for cell, number in quoted:
        digits, value = len(number.partition(".")[2]), float(number.replace(",", ""))
        agrees = any(round(figure * scale, digits) == value for figure in shown for scale in (1, 100))
        assert agrees or number in BY_HAND[name], f"cell {cell} of {name} says {number}, and no output does"


@pytest.mark.parametrize("path", extras(), ids=lambda path: path.stem)
def test_what_an_extra_answers_first_is_what_its_outputs_show(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = {float(n.replace(",", "")) for n in re.findall(r"(?<![\d.,])\d+(?:,\d{3})*\.\d+", outputs_of(notebook))}
    first = "".join(notebook["cells"][0]["source"]).split("\n\n")[1]
    for _, number in numbers_of_the_prose({"cells": [{"id": "first", "cell_type": "markdown", "source": [first]}]}):
        digits, value = len(number.partition(".")[2]), float(number.replace(",", ""))
        agrees = any(round(figure * scale, digits) == value for figure in shown for scale in (1, 100))
        assert agrees, f"{path.stem} begins with {number}, and no output has it"


def test_an_interval_adds_the_chance_of_reviews_and_of_seeds():
    mean, half = interval([0.9], 100)
    assert mean == 0.9 and half == pytest.approx(1.96 * 0.03)
    mean, half = interval([0.85, 0.95], 100)                               # variance of a review 0.09, of a seed 0.005
    assert mean == pytest.approx(0.9) and half == pytest.approx(1.96 * math.sqrt(0.09 / 100 + 0.005 / 2))
    assert percent((0.871, 0.0121)) == "87.1 ± 1.2"


def test_a_budget_counts_its_runs_and_opens_the_test_split_once():
    budget = Budget(2)
    one = next(run for run in read_runs("tuning") if run["change"] == {"learning_rate": 0.006, "d_model": 32})
    assert budget.run(0.006, 32, one["seed"]) == one["validation"]["accuracy"] and budget.left == 1
    with pytest.raises(ValueError, match="no run with rate 0.006, width 33 and seed 0. Rates: 0.0015, "):
        budget.run(0.006, 33, 0)
    assert budget.left == 1                             # what can't be had isn't charged
    assert budget.run(budget.rates[0], budget.widths[0], budget.seeds[0]) > 0 and len(budget.asked) == 2
    with pytest.raises(ValueError, match="All 2 runs of the budget are spent"):
        budget.run(0.006, 32, 0)
    tested = budget.open_test(0.006, 32)
    assert len(tested) == len(budget.seeds) and tested[0] == one["test"]["accuracy"]
    with pytest.raises(ValueError, match="opened the test split already, for rate 0.006 and width 32"):
        budget.open_test(0.006, 32)


def test_the_readme_is_rewritten_between_its_marks_alone(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{command.BEGIN}\nold\n{command.END}\nafter\n", encoding="utf-8")
    command.update_readme(readme)
    command.update_readme(readme)
    expected = f"before\n{command.BEGIN}\n{command.readme_section()}\n{command.END}\nafter\n"
    assert readme.read_text(encoding="utf-8") == expected


def test_a_run_replaces_one_of_the_same_model_and_seed(tmp_path):
    add_run("x", RUN, tmp_path)
    add_run("x", {**RUN, "seed": 1}, tmp_path)
    add_run("x", {**RUN, "test": {"accuracy": 0.7, "reviews": 100}}, tmp_path)
    runs = read_runs("x", tmp_path)
    assert [(run["seed"], run["test"]["accuracy"]) for run in runs] == [(0, 0.7), (1, 0.5)]
    assert summarise(runs, "test", "accuracy")[0] == pytest.approx(0.6)


def test_rows_are_numbered_by_the_list_and_what_is_not_on_it_comes_last(tmp_path):
    for model in ("gone", "first", "second"):
        for seed in (10, 2):
            add_run("x", {**RUN, "model": model, "seed": seed}, tmp_path)
    set_order("x", ["first", "first", "second"], tmp_path)
    assert [(run["model"], run["seed"], run["order"]) for run in read_runs("x", tmp_path)] == [
        (model, seed, order) for order, model in enumerate(("first", "second", "gone")) for seed in (2, 10)]


CHANGES = {
    "add": lambda folder: add_run("x", {**RUN, "seed": 1}, folder),
    "remove": lambda folder: remove_runs("x", [("m", 0)], folder),
    "order": lambda folder: set_order("x", ["m"], folder),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_that_is_added_while_the_file_is_changed_is_kept(change, tmp_path, monkeypatch):
    add_run("x", RUN, tmp_path)
    read, others = results.read_runs, []

    def read_and_let_another_try(name, folder):
        runs = read(name, folder)
        if not others:
            others.append(threading.Thread(target=add_run, args=("x", {**RUN, "seed": 2}, tmp_path)))
            others[0].start()
            others[0].join(timeout=0.5)                                    # what is read is old now, if the other was let in
        return runs

    for module in (results, runner):
        monkeypatch.setattr(module, "read_runs", read_and_let_another_try)
    CHANGES[change](tmp_path)
    others[0].join()
    expected = {"add": [0, 1, 2], "remove": [2], "order": [0, 2]}
    assert [run["seed"] for run in read("x", tmp_path)] == expected[change]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_half_written(tmp_path, monkeypatch):
    add_run("x", RUN, tmp_path)
    before = (tmp_path / "x.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left"):
        add_run("x", {**RUN, "seed": 7}, tmp_path)
    assert (tmp_path / "x.json").read_bytes() == before
    assert not list(tmp_path.glob("*.partial"))


def test_a_damaged_result_file_is_named(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps([RUN])[:-5], encoding="utf-8")
    with pytest.raises(ValueError, match="x.json is damaged"):
        read_runs("x", tmp_path)


def test_what_was_counted_on_the_offline_collections_can_be_counted_again(root):
    facts = json.loads((root / "data" / "results" / "imdb_facts.json").read_text(encoding="utf-8"))
    tokenizer, opinions = WordTokenizer.train(load_reviews("reviews")["train"]["text"]), imdb_facts.opinion_words()
    assert len(opinions) == facts["opinions"]
    for name, split in (("made", load_reviews("reviews")["train"]), ("hand-written", load_reviews("handwritten")["test"])):
        assert imdb_facts.describe(split, opinions, tokenizer)[0] == facts[name]
