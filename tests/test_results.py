"""Numbers that are quoted are the numbers in the result files, and the files say how they came about."""

import json
import math
import re
import threading

import pandas as pd
import pytest

from course_tools.studies.sets import find_set, imdb_facts
from course_tools.studies.tables import (
    ablations_table,
    better_table,
    imdb_table,
    readme_section,
    results_page,
    scoreboard_table,
    update_pages,
)
from course_utils import results
from course_utils.data import load_reviews, pairs
from course_utils.results import (
    add_run,
    by_model,
    difference,
    interval,
    percent,
    read_runs,
    remove_runs,
    set_order,
    summarise,
)
from course_utils.tokenization import WordTokenizer

RUN = {"model": "m", "order": 0, "seed": 0, "test": {"accuracy": 0.5, "reviews": 100}}


def test_the_readme_quotes_what_the_result_files_say(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    quoted = text.partition("<!-- scoreboard: begin -->")[2].partition("<!-- scoreboard: end -->")[0]
    assert quoted.strip() == readme_section().strip(), "python -m course_tools results rewrites the README's tables"


def test_the_page_of_results_is_what_the_result_files_say(root):
    page = (root / "notebooks" / "results.md").read_text(encoding="utf-8")
    assert page == results_page(), "python -m course_tools results rewrites the page"
    for name in ("one change at a time", "real reviews", "more out of the same labels", "speed"):
        assert f"## {name}".lower() in page.lower()


NAMES = ["scoreboard", "imdb", "explanations"]


ALL = [*NAMES, "ablations", "token_range", "learning_curves", "sentiment_axis", "imdb_better"]


def test_the_words_beside_the_table_of_speed_are_true(root):
    rows = json.loads((root / "data" / "results" / "speed.json").read_text(encoding="utf-8"))["rows"]

    def ratio(what, against=""):
        return next(row["ratio"] for row in rows if row["what"].startswith(what) and against in row["against"])

    block = "block: forward and backward, 512 tokens, dropout 0.1, attention weights"
    step = "training step: IMDb recipe, bucketed"
    assert all(0.75 < ratio(f"{block} {where}") < 1.3 for where in ("included", "excluded"))
    fused = {row["length"]: row for row in rows if row["section"] == "attention"}
    assert fused[1024]["ratio"] > fused[64]["ratio"] + 0.5
    assert fused[1024]["other_mb"] / fused[1024]["ours_mb"] > fused[1024]["ratio"]
    assert ratio("block: inference, 512 tokens, a padded") > 1.7 > 1.2 > ratio("block: inference, 512 tokens, no padding")
    assert ratio("block: inference, 1024 tokens, no padding") > 1.5
    assert ratio(f"{step} batches", "every batch 256 wide") > 2
    assert 0.75 < ratio(f"{step} batches, dropout", "the same batches") < 1.3
    assert ratio("IMDb recipe: forward and backward in float32") > 1 > ratio("tokenizer, words")


def test_the_words_beside_the_table_of_more_out_of_imdb_are_true():
    better, real = by_model(read_runs("imdb_better")), by_model(read_runs("imdb"))
    reached = {name: summarise(runs, "test", "accuracy") for name, runs in better.items()}
    fast, word_pairs = reached["attention, imdb-fast"][0], reached["attention with word pairs"][0]
    assert abs(fast - summarise(real["attention classifier"], "test", "accuracy")[0]) < 0.01
    epochs = [len(runs[0]["history"]) for runs in (better["attention, imdb-fast"], real["attention classifier"])]
    assert epochs[0] * 3 == epochs[1]
    assert word_pairs - fast > 0.01 and better["attention with word pairs"][0]["change"]["model"] == {"d_model": 32}
    assert reached["average of 3 attention models with word pairs"][0] > word_pairs
    tfidf, best = reached["TF-IDF 1-2-grams, logistic regression"], max(mean for mean, _ in reached.values())
    assert abs(best - tfidf[0]) < tfidf[1]


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
    module = find_set(name)
    for run in read_runs(name):
        assert run["settings"] == module.settings(), f"{name}.json was made with another recipe or other reviews"
        assert run.get("change", {}) == module.describe(run["model"]), run["model"]


def test_attention_was_run_with_three_seeds_and_explained_on_five():
    for name in NAMES:
        for model, runs in by_model(read_runs(name)).items():
            if "attention" in model or name == "explanations":
                assert sorted(run["seed"] for run in runs) == list(range(5 if name == "explanations" else 3)), model


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
BY_HAND = {"06_positional_encoding": {"0.6435", "0.83", "0.89", "0.96", "0.97", "3.5"},
           "07_transformer_blocks": {"0.00001", "0.50", "0.55", "0.70", "0.88", "0.95", "3.1", "3.3"},
           "09_real_reviews": {"0.998", "1.96", "4.6"},
           "11_attention_as_explanation": {"1.5", "2.78"}, "12_comparing_models": set(),
           "13_language_model": {"3.66", "7.8", "12.8"}, "17_encoder_decoder": {"1.15", "2.31"}}


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
    mean, half = interval([0.85, 0.95], 100)                               # variance of a review 0.09, of a seed 0.005
    assert mean == pytest.approx(0.9) and half == pytest.approx(1.96 * math.sqrt(0.09 / 100 + 0.005 / 2))
    assert percent((0.871, 0.0121)) == "87.1 ± 1.2"


def made_run(model: str, seed: int, accuracy: float, **more) -> dict:
    """A run as the scoreboard has them, with a number of its own in every place; 25 reviews of each kind."""
    kinds = {"distant": 0.8, "negation": 0.9, "order": 0.5, "plain": 1.0}
    test = {"accuracy": accuracy, "reviews": 100, "by_kind": kinds, "reviews_by_kind": dict.fromkeys(kinds, 25)}
    hand_written = {"accuracy": 0.6, "reviews": 24}
    seconds = {"seconds": 10.0 * (seed + 1), "cpu_seconds": 30.0 * (seed + 1)}
    return {"model": model, "order": 0, "seed": seed, "parameters": 1234, **seconds, "test": test,
            "handwritten": hand_written, **more}


def rows_of(table: str) -> list[dict]:
    """The rows of a Markdown table, each with its cells by the name of the column."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]]


def test_every_figure_of_a_table_stands_in_its_column():
    runs = [made_run("one", 0, 0.7), made_run("one", 1, 0.9), made_run("two", 0, 0.9)]
    half = f"{196 * math.sqrt(0.16 / 100 + 0.02 / 2):.1f}"
    one, two = rows_of(scoreboard_table(runs))
    assert one == {
        "model": "one", "seeds": "2", "all kinds": f"80.0 ± {half}", "plain": "100.0 ± 0.0", "negation": "90.0 ± 11.8",
        "order": "50.0 ± 19.6", "distant": "80.0 ± 15.7", "hand-written": "60.0 ± 19.6", "parameters": "1,234",
        "seconds": "10",
    }
    assert two["model"] == "two" and two["seeds"] == "1" and two["all kinds"] == "90.0 ± 5.9" and two["seconds"] == "10"
    for table, cost in ((imdb_table, {"seconds": "10"}), (better_table, {"processor seconds": "45"})):
        one = list(rows_of(table(runs))[0].values())
        assert one == ["one", "2", f"80.0 ± {half}", "1,234", *cost.values()]
        assert cost.keys() <= rows_of(table(runs))[0].keys()


def test_an_ablation_stands_against_the_default_with_twins_as_one_draw():
    test = load_reviews("reviews")["test"]
    twins = pairs(test)
    lost = {i for pair in twins[:60] for i in pair}

    def run(model, seed, wrong, group):
        right = f"{int('1' + ''.join('0' if i in wrong else '1' for i in range(len(test))), 2):x}"
        return made_run(model, seed, 1 - len(wrong) / len(test), change={"group": group},
                        test={"accuracy": 1 - len(wrong) / len(test), "reviews": len(test), "right": right})

    runs = [run(model, seed, wrong | {seed}, group) for model, wrong, group in
            (("the default", set(), "default"), ("worse", lost, "layers"), ("worse too", lost, "layers")) for seed in (0, 1)]
    default, worse, again = rows_of(ablations_table([*runs, run("one seed", 0, lost, "heads")]))[:3]
    mean, half = difference(runs[2:4], runs[:2], twins)
    assert mean < 0 and f"{100 * half:.1f}" != f"{100 * difference(runs[2:4], runs[:2])[1]:.1f}"
    assert default["against the default"] == "" and default["seconds"] == "10"
    assert worse["against the default"] == f"−{-100 * mean:.1f} ± {100 * half:.1f}" == again["against the default"]
    assert [row[""] for row in (default, worse, again)] == ["default", "layers", ""]
    assert rows_of(ablations_table([*runs, run("one seed", 0, lost, "heads")]))[3]["against the default"] == ""


def test_the_readme_is_rewritten_between_its_marks_alone_and_the_page_of_results_whole(tmp_path):
    readme, page = tmp_path / "README.md", tmp_path / "results.md"
    readme.write_text("before\n<!-- scoreboard: begin -->\nold\n<!-- scoreboard: end -->\nafter\n", encoding="utf-8")
    update_pages(readme, page)
    update_pages(readme, page)
    expected = f"before\n<!-- scoreboard: begin -->\n{readme_section()}\n<!-- scoreboard: end -->\nafter\n"
    assert readme.read_text(encoding="utf-8") == expected
    assert page.read_text(encoding="utf-8") == results_page()


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

    monkeypatch.setattr(results, "read_runs", read_and_let_another_try)
    CHANGES[change](tmp_path)
    others[0].join()
    expected = {"add": [0, 1, 2], "remove": [2], "order": [0, 2]}
    assert [run["seed"] for run in read("x", tmp_path)] == expected[change]


def test_the_lock_lies_beside_the_file_and_not_in_the_shared_temporary_folder(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr("tempfile.tempdir", None)
    held = []
    monkeypatch.setattr(results, "read_runs", lambda name, folder: held.extend(folder.iterdir()) or [])
    add_run("x", RUN, tmp_path / "results")
    assert ".x.json.lock" in [path.name for path in held] and not list(shared.iterdir())
    assert [path.name for path in (tmp_path / "results").iterdir() if path.suffix == ".partial"] == []


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


def test_the_predictions_give_the_accuracies_of_their_runs(root):
    said = pd.read_csv(root / "data" / "results" / "imdb_predictions.csv")
    for run in read_runs("imdb"):
        column = said[f"{run['model']}, seed {run['seed']}"]
        assert len(column) == run["test"]["reviews"]
        assert ((column > 0.5) == (said["label"] == 1)).mean() == pytest.approx(run["test"]["accuracy"], abs=0.001)
