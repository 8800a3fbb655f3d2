"""START as the home page: nothing there asks for what only a notebook can do."""

import json
import re

from course_tools.site.home import ONLY_IN_THE_NOTEBOOK, OTHERWISE, RUN_IT, on_the_site
from course_utils.files.paths import NOTEBOOKS


def start():
    cells = json.loads((NOTEBOOKS / "START.ipynb").read_text(encoding="utf-8"))["cells"]
    return [{**cell, "source": "".join(cell["source"])} for cell in cells]


def test_what_is_left_out_or_said_otherwise_is_in_start():
    cells = start()
    assert {cell["id"] for cell in cells} >= ONLY_IN_THE_NOTEBOOK
    text = "\n\n".join(cell["source"] for cell in cells)
    assert [pattern.pattern for pattern, _ in OTHERWISE if len(pattern.findall(text)) != 1] == []
    assert RUN_IT.search(text)


def test_nothing_on_the_home_page_asks_a_reader_to_run_a_cell():
    for cell in on_the_site(start()):
        printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
        assert not RUN_IT.search(cell["source"] + printed), cell["source"]


def test_the_live_classifier_comes_first_then_the_map_and_sections_are_numbered_in_order():
    cells = on_the_site(start())
    calls = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    assert "classifier_view(" in calls[0] and any("course_map()" in call for call in calls)
    numbers = re.findall(r"(?m)^## (\d+)\.", "\n".join(cell["source"] for cell in cells))
    assert numbers == [str(i + 1) for i in range(len(numbers))] and len(numbers) >= 5
