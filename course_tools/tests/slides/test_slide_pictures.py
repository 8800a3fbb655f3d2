"""The pictures of the slides are those of today's notebooks: none is missing, stale, too large, or too small to read."""

import re

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import nbformat  # noqa: E402
import pytest  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from PIL import Image  # noqa: E402
from saved_outputs import pictures as saved_pictures  # noqa: E402
from saved_pieces import NUMBER, same_number  # noqa: E402

from course_tools.slides import pictures  # noqa: E402
from course_tools.slides.drawing import DENSE, HIGH, WIDE, drawn, smallest_type, texts_of  # noqa: E402
from course_utils.figures import style  # noqa: E402

NOTEBOOKS = pictures.lectures()
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
SMALLEST = 18           # CSS pixels
FILE, ALL = 100_000, 6_000_000


@each_notebook
def test_every_picture_on_a_slide_is_kept_and_says_what_the_notebooks_says(path):
    notebook, kept = nbformat.read(path, as_version=4), pictures.present_pictures(path.stem)
    again = f"make slide-pictures NB={path.stem}"
    assert not pictures.is_stale(path), f"the code of {path.stem} has changed: {again}"
    shown = {cell.id: cell for cell in notebook.cells if pictures.is_shown(cell) and pictures.pngs(cell)}
    assert list(shown) == list(kept), f"other cells show pictures on slides than {list(kept)}: {again}"
    for cell, ours in kept.items():
        problem = differing([each.alt for each in ours], shown[cell])
        assert not problem, f"{cell}, {again}: {problem}"


CUT = re.compile(r" Rows: .*(?= Largest weights:)| \d+ keys: the first \d+ and last \d+ are shown;.* not drawn\."
                 r"|(?<= tokens:) .*?(?= Largest:)| 'rest' is the sum of the \d+ tokens between.*?\.")


def differing(texts, cell):
    """How alternative texts differ from those of a cell's saved pictures; the numbers of trained models may, and which
    tokens are shown: fewer fit a slide, and the text says so."""
    saved, trained = [each.text for each in saved_pictures(cell.outputs)], "nbval-ignore-output" in cell.metadata["tags"]
    if any("are shown;" in text or "'rest' is the sum" in text for text in texts):
        texts, saved = ([CUT.sub("", text) for text in several] for several in (texts, saved))
    if [NUMBER.sub("#", text) for text in texts] != [NUMBER.sub("#", text) for text in saved]:
        return f"{texts} instead of {saved}"
    pairs = [pair for one, other in zip(saved, texts) for pair in zip(NUMBER.findall(one), NUMBER.findall(other))]
    return "" if trained else [pair for pair in pairs if not same_number(*pair)]


@each_notebook
def test_a_picture_fits_below_a_heading_and_its_type_can_be_read(path):
    for cell, kept in pictures.present_pictures(path.stem).items():
        for each in kept:
            assert each.width <= WIDE and each.height <= HIGH, (cell, each)
            assert each.smallest_type >= SMALLEST, f"{cell}: type of {each.smallest_type} pixels"
            with Image.open(each.path) as picture:
                assert picture.format == "PNG" and picture.mode == "P"
                assert picture.size == pytest.approx((DENSE * each.width, DENSE * each.height), abs=3)
            assert each.path.stat().st_size <= FILE, (cell, each.path.stat().st_size)


def test_nothing_else_is_kept_and_all_of_it_is_small():
    wanted = {each.path for path in NOTEBOOKS for kept in pictures.present_pictures(path.stem).values() for each in kept}
    found = [path for path in pictures.FOLDER.rglob("*") if path.is_file()]
    assert {path for path in found if path.suffix == ".png"} == wanted
    assert {path.parent.name for path in found if path.name == "pictures.json"} == {path.parent.name for path in wanted}
    assert {path.suffix for path in found} == {".png", ".json"} and sum(path.stat().st_size for path in found) < ALL
    assert len(wanted) > 40


def notebook_of(*sources):
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": re.findall(r"# (\w+)", source)}) for source in sources]
    for cell in cells:
        if "show" in cell.source:
            cell.outputs = [nbformat.v4.new_output("display_data", {"image/png": ""})]
    return nbformat.v4.new_notebook(cells=cells)


def test_pictures_are_stale_when_code_changes_that_they_depend_on():
    code = pictures.code_of(notebook_of("a = 1", "show(a)  # slide", "print(2)"))
    assert code and pictures.code_of(notebook_of("a = 1", "show(a)  # slide", "print(3)")) == code
    assert pictures.code_of(notebook_of("a = 1", "None  # exercise", "show(a)  # slide")) == code
    assert pictures.code_of(notebook_of("a = 1  # so much\n\nclaim('it is one',\n      a)", "show(a)  # slide")) == code
    assert pictures.code_of(notebook_of("a = 2", "show(a)  # slide")) != code
    assert pictures.code_of(notebook_of("a = claim('it is one', 1)", "show(a)  # slide")) != code
    assert pictures.code_of(notebook_of("a = 1", "show(b)  # fragment")) not in ("", code)
    assert pictures.code_of(notebook_of("%timeit a  # fast", "show(a)  # slide")) not in ("", code)
    assert pictures.code_of(notebook_of("a = 1", "show(a)", "print(2)  # slide")) == ""


@pytest.fixture
def on_a_projector(monkeypatch):
    monkeypatch.setenv("COURSE_STYLE", "present")
    with mpl.rc_context(style()):
        yield
    plt.close("all")


def points(fig: Figure):
    return sorted({text.get_fontsize() for text in texts_of(fig)})


def test_the_smallest_type_is_that_of_what_is_seen(on_a_projector):
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    ax.set_xlim(0, 1)
    assert smallest_type(fig) == 15
    ax.text(0.5, 0.5, "small", size=11)
    assert smallest_type(fig) == 11
    ax.text(0.5, 0.2, "", size=3)
    ax.text(0.5, 0.2, "hidden", size=3, visible=False)
    assert points(fig) == [11, 15]
    ax.text(0.5, 0.3, "$d_k$", size=12)
    assert smallest_type(fig) == 9                        # indices are smaller
    ax.set_xticks([0, 0.5, 7], ["a", "b", "beyond"], size=2)
    ax.set_xlim(0, 1)
    assert smallest_type(fig) == 2
    ax.set_xticks([0.5, 7], ["", "beyond"], size=2)
    ax.set_xlim(0, 1)
    assert smallest_type(fig) == 9


@pytest.mark.parametrize(("inches", "bound"), [((9, 4), WIDE), ((9, 2), WIDE), ((4, 4), HIGH)])
def test_a_figure_is_drawn_as_large_as_its_slide_allows(on_a_projector, inches, bound, tmp_path):
    fig, ax = plt.subplots(figsize=inches, layout="constrained")
    ax.plot([0, 1])
    png, about = drawn(fig)
    (tmp_path / "it.png").write_bytes(pictures.in_few_colours(png))
    with Image.open(tmp_path / "it.png") as picture:
        assert picture.size == pytest.approx((DENSE * about["width"], DENSE * about["height"]), abs=3)
    assert about["width"] <= WIDE and about["height"] <= HIGH
    assert about[{WIDE: "width", HIGH: "height"}[bound]] == pytest.approx(bound, abs=1)
    assert about["smallest_type"] == pytest.approx(15 * about["width"] / 72 / (fig.get_tightbbox().width + 0.16), rel=0.02)
