"""What somebody sees of the course first: the README's doors, its picture, its hours and its exercise."""

import re

import nbformat
import pytest
from PIL import Image

from course_tools.site.front_door import BEGIN, END, doors, named_address, site_of
from course_utils.exercises import verdict


@pytest.fixture(scope="module")
def readme(root):
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_doors_are_those_of_the_address_in_pyproject(readme):
    written = readme.partition(BEGIN)[2].partition(END)[0]
    assert written == doors(named_address()), "run python -m course_tools front-door"


def test_with_an_address_each_door_is_a_link():
    lines = doors("https://github.com/Owner/course").splitlines()
    home = "https://owner.github.io/course/"
    assert f"({home})" in lines[0] and f"[the live classifier]({home})" in lines[1]
    assert "mybinder.org/v2/gh/Owner/course" in lines[1] and "colab.research.google.com/github/Owner/course" in lines[1]
    assert site_of("https://github.com/Owner/owner.github.io") == "https://owner.github.io/"
    assert site_of("https://gitlab.com/group/course") is None
    assert "](" not in doors(None).splitlines()[1]


def test_the_moving_picture_plays_once_for_ten_seconds_and_is_light(root):
    path = root / "notebooks" / "gallery" / "twins-read.gif"
    assert path.stat().st_size <= 1_000_000
    with Image.open(path) as picture:
        assert "loop" not in picture.info                   # so it plays once
        times = []
        for number in range(picture.n_frames):
            picture.seek(number)
            times.append(picture.info["duration"])
    assert sum(times) == 10_000 and times[-1] >= 2_000


def test_the_sentence_below_the_picture_is_in_the_text_too(readme):
    assert re.search(r"!\[[^\]]+opposite labels[^\]]+\]\(notebooks/gallery/twins-read\.gif\)", readme)
    assert re.search(r"(?m)^\*The same words, opposite labels", readme)


def test_numbers_of_the_picture_are_those_that_the_gallery_computes(readme, root):
    shown = re.search(r"!\[([^\]]+)\]\(notebooks/gallery/twins-read\.gif\)", readme)[1]
    gallery = (root / "notebooks" / "gallery.md").read_text(encoding="utf-8")
    said = re.search(r"'boring' in one twin \(([\d.]+)\) and 'splendid' in the other \(([\d.]+)\)", gallery)
    assert re.findall(r"0\.\d+", shown) == list(said.groups())


def test_percentages_in_the_table_of_notebooks_are_in_their_notebooks(readme, root):
    rows = re.findall(r"(?m)^\| \[[^\]]+\]\((notebooks/\w+\.ipynb)\) \|(.*)", readme)
    assert len(rows) > 20
    for notebook, row in rows:
        text = prose_and_outputs(root / notebook)
        for number in re.findall(r"(\d+) %", row):
            assert re.search(rf"\b{number}(\.\d+)? ?%", text), f"{notebook} doesn't say {number} %"


def prose_and_outputs(path) -> str:
    """What a reader of a notebook sees, without code and figures."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        parts += [cell.source] if cell.cell_type == "markdown" else [str(out.get("text", "")) for out in cell.outputs]
    return "\n".join(parts)


def test_hours_are_those_of_the_routes_in_start(readme, root):
    start = (root / "notebooks" / "START.ipynb").read_text(encoding="utf-8")
    for route in ("A weekend", "Everything"):
        hours = re.search(rf"\*\*{route}\*\* \| ([\d–]+) hours", start)[1]
        assert f"{hours} hours" in readme.partition(BEGIN)[0], f"{route} takes {hours} hours"


def test_the_exercise_shown_gets_this_verdict(readme):
    code = re.search(r"```python\n(def .*?)\n\nexercise\(", readme, re.S)[1]
    names = {}
    exec("import math\n" + code, names)
    found = verdict("4.2", names["attention"])
    assert found.names == ("no-scaling",) and " ".join(found.text.split()) in " ".join(readme.split())
