"""The notebooks of results: what their tables are made of, which files they name, and that old addresses lead to them."""

import ast
import json
import math
import re

import pytest

from course_tools.site.links import headings, in_jupyter
from course_utils.copies.notebooks import everything, results
from course_utils.files.paths import NOTEBOOKS, RESULTS, ROOT
from course_utils.results import tables as result_tables
from course_utils.results.tables import accuracy, file_rows, mean_accuracy, quickest, scoreboard_rows

# sections of the page that were there before the notebooks, which somebody may have a link to
OLD = {"The course corpus", "One change at a time", "Real reviews", "More out of the same labels", "How many labels",
       "A pretrained encoder on real reviews", "A reader that knows more words", "Speed", "Speed of the code model",
       "A reader that begins as half of its teacher", "Code, without a neural network", "Code, with a neural network",
       "Code that isn't the library's", "Translation, on the course's own corpus", "Translation"}


def made_run(model: str, seed: int, right: float) -> dict:
    """A run as the scoreboard has them, with a number of its own in every place; 25 reviews of each kind."""
    kinds = {"distant": 0.8, "negation": 0.9, "order": 0.5, "plain": 1.0}
    test = {"accuracy": right, "reviews": 100, "by_kind": kinds, "reviews_by_kind": dict.fromkeys(kinds, 25)}
    return {"model": model, "order": 0, "seed": seed, "parameters": 1234, "seconds": 10.0 * (seed + 1), "test": test,
            "handwritten": {"accuracy": 0.6, "reviews": 24}}


def test_every_figure_of_the_scoreboard_stands_in_its_column():
    one, two = scoreboard_rows([made_run("one", 0, 0.7), made_run("one", 1, 0.9), made_run("two", 0, 0.9)])
    half = f"{196 * math.sqrt(0.16 / 100 + 0.02 / 2):.1f}"
    assert one == {
        "model": "one", "seeds": 2, "all kinds": f"80.0 ± {half}", "plain": "100.0 ± 0.0", "negation": "90.0 ± 11.8",
        "order": "50.0 ± 19.6", "distant": "80.0 ± 15.7", "hand-written": "60.0 ± 19.6", "parameters": "1,234",
        "seconds": "10",
    }
    assert two["model"] == "two" and two["seeds"] == 1 and two["all kinds"] == "90.0 ± 5.9"


def test_a_row_without_a_score_has_an_empty_cell_and_costs_what_its_quickest_run_did():
    runs = [made_run("one", 1, 0.7), made_run("one", 0, 0.9)]
    assert mean_accuracy(runs) == pytest.approx(80) and quickest(runs) == 10
    del runs[1]["handwritten"]
    assert accuracy(runs, "handwritten") == "" != accuracy(runs[:1], "handwritten")


def test_a_table_is_shown_whole_with_its_first_column_in_front(monkeypatch):
    shown = []
    monkeypatch.setattr(result_tables, "display", lambda frame: shown.append((frame._repr_html_(), repr(frame))))
    long = "a name " * 30
    result_tables.show([{"row": long, "seeds": 3}, *({"row": str(i), "seeds": 3, "more": "x"} for i in range(100))])
    for text in shown[0]:
        assert long.strip() in text and "99" in text and "..." not in text and "NaN" not in text and "3.0" not in text
    assert re.search(r"<th>row</th>\s*<th>seeds</th>\s*<th>more</th>", shown[0][0])


def test_a_fingerprint_changes_with_any_digit_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(result_tables, "FOLDER", tmp_path)
    before = []
    for right in (0.7000, 0.7001):
        runs = [made_run("one", seed, right) | {"device": "cpu (x)"} for seed in (1, 0)]
        (tmp_path / "x.json").write_text(json.dumps(runs), encoding="utf-8")
        [row] = file_rows({"x.json": "here"})
        assert (row["rows"], row["runs"], row["seeds"], row["made on"]) == (1, 2, "0 1", "cpu (x)")
        before.append(row["fingerprint"])
    assert before[0] != before[1]


def named_files() -> list[tuple[str, str]]:
    """(file, where it's read) of all notebooks of results, as their cells 'the files' name them."""
    found = []
    for path in results():
        [source] = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
                    if cell["id"] == "files"]
        found += ast.literal_eval(re.search(r"\{.*\}", source, re.S)[0]).items()
    return found


def test_every_result_file_is_named_once_and_read_where_the_table_says():
    named = named_files()
    assert sorted(name for name, _ in named) == sorted(path.name for path in RESULTS.glob("[!.]*"))
    for name, where in named:
        for number in re.findall(r"\b\d\d\b", where):
            [path] = NOTEBOOKS.glob(f"{number}_*.ipynb")
            assert name.partition(".")[0] in path.read_text(encoding="utf-8"), f"{number} doesn't read {name}"


def test_every_section_can_be_found_from_the_page_that_had_them_all():
    page = (NOTEBOOKS / "results.md").read_text(encoding="utf-8")
    there = dict(re.findall(r"^## (.+)\n\n\[[^\]]+\]\(([^)]+)\)$", page, re.M))
    assert OLD <= set(there)
    for path in results():
        sections = [title for title in headings(path)[1:] if title != "The files"]
        assert sections and {title: there.get(title) for title in sections} == {
            title: f"{path.name}#{in_jupyter(title)}" for title in sections}


PAGES = [*sorted(NOTEBOOKS.glob("*.md")), ROOT / "README.md", ROOT / "data" / "README.md"]


@pytest.mark.parametrize("path", [*everything(), *PAGES], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_link_to_a_section_of_a_notebook_leads_to_one(path):
    for link, anchor in re.findall(r"\]\(([^()#\s:]+\.ipynb)#([^()\s]+)\)", path.read_text(encoding="utf-8")):
        titles = [in_jupyter(title) for title in headings((path.parent / link).resolve())]
        assert anchor in titles, f"{path.name}: {link} has no section {anchor!r}"
