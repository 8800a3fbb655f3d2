"""The gallery shows what the course draws today: its figures, their texts, its sentences and its links."""

import os
import re
import subprocess
import sys
from pathlib import Path

import mistune
import numpy as np
import pytest
from PIL import Image
from saved_outputs import Picture, picture_difference, text_difference

from course_tools.gallery import figures as gallery
from course_tools.gallery import hero
from course_tools.gallery.page import PLAYED
from course_utils.interactive.animations import ANIMATIONS

NAMES = [picture.name for picture in gallery.PICTURES]
each_figure = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, root):
    """The gallery drawn anew, by the command, in a process of its own and for a caller who presents."""
    folder = tmp_path_factory.mktemp("gallery")
    command = [sys.executable, "-m", "course_tools", "gallery", "--folder", str(folder)]
    run = subprocess.run(command, cwd=root, env=os.environ | {"COURSE_STYLE": "present", "OMP_NUM_THREADS": "1"},
                         capture_output=True, timeout=600, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    assert "no longer true" not in run.stdout and run.stdout.count("✓") > 20
    return folder


@pytest.fixture(scope="module")
def page(root):
    return (root / "notebooks" / "gallery.md").read_text(encoding="utf-8")


def tokens_of(text):
    """The page as a list of Markdown elements, nested ones too."""
    pending = list(mistune.create_markdown(renderer="ast")(text))
    while pending:
        token = pending.pop(0)
        yield token
        pending[:0] = token.get("children", [])


def plain(token):
    return token.get("raw", "") + "".join(map(plain, token.get("children", [])))


def described(folder, name):
    with Image.open(folder / "gallery" / f"{name}.png") as picture:
        return picture.info["Description"]


def test_the_page_is_the_one_that_the_command_writes(drawn, page):
    problem = text_difference(page, (drawn / "gallery.md").read_text(encoding="utf-8"))
    assert not problem, f"the page {problem}; run make gallery"


def test_every_figure_is_on_the_page_and_linked_to_its_svg(page, root):
    links = [token for token in tokens_of(page) if token["type"] == "link" and token["children"][0]["type"] == "image"]
    moving, stills = ([f"{name}-{how}.svg" for name in ANIMATIONS] for how in ("moving", "still"))
    targets = [link["attrs"]["url"].removeprefix("gallery/") for link in links]
    assert targets == [*(f"{name}.svg" for name in NAMES), *moving]
    shown = [link["children"][0]["attrs"]["url"].removeprefix("gallery/") for link in links]
    assert shown == [*(f"{name}.png" for name in NAMES), *stills]
    assert list(PLAYED) == list(ANIMATIONS)
    found = {path.name for path in (root / "notebooks" / "gallery").iterdir()}
    pictures = {f"{name}.{ending}" for name in NAMES for ending in ("png", "svg")}
    assert found == pictures | {*moving, *stills, f"{hero.NAME}.gif"}


@each_figure
def test_the_text_of_a_picture_is_the_computed_one(name, drawn, page, root):
    shown = {token["attrs"]["url"]: plain(token) for token in tokens_of(page) if token["type"] == "image"}
    text = described(drawn, name)
    assert shown[f"gallery/{name}.png"] == described(root / "notebooks", name)
    assert not text_difference(shown[f"gallery/{name}.png"], text) and len(text) > 150
    for folder in (drawn, root / "notebooks"):
        text = described(folder, name)
        svg = (folder / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert f"<desc>{escaped}</desc>" in svg


@each_figure
def test_a_figure_drawn_again_is_the_committed_one(name, drawn, root):
    """As a notebook's figures are compared, and as the eye would: what stands where, not the last digit of an edge."""
    committed, anew = (folder / "gallery" / name for folder in (root / "notebooks", drawn))
    with Image.open(f"{committed}.png") as old, Image.open(f"{anew}.png") as new:
        assert set(old.info) <= {"Description", "Software", "dpi"} and new.info["Software"] == gallery.drawn_with()
        problem = picture_difference(*(Picture(one.size, one.info["Description"]) for one in (old, new)))
        assert not problem, f"{name} {problem}; run make gallery"
        assert looks_different(old, new) < 0.02, f"{name} is drawn differently now: run make gallery"
    boxes = [re.search(r'viewBox="([^"]+)"', Path(f"{one}.svg").read_text(encoding="utf-8"))[1] for one in (committed, anew)]
    old, new = ([float(side) for side in box.split()] for box in boxes)
    assert all(abs(a - b) <= 0.02 * a for a, b in zip(old, new, strict=True)), "run make gallery"


def looks_different(old: Image.Image, new: Image.Image) -> float:
    """The part of a picture, 0 to 1, whose colour differs visibly in another one, both seen from afar."""
    size = (old.width // 8, old.height // 8)
    one, other = (np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BOX), dtype=float)
                  for picture in (old, new))
    return float((np.abs(one - other).max(-1) > 24).mean())


@each_figure
def test_a_figure_is_light_and_wide_enough_for_a_screen(name, root):
    path = root / "notebooks" / "gallery" / f"{name}.png"
    assert path.stat().st_size <= 120_000 and path.with_suffix(".svg").stat().st_size <= 300_000
    with Image.open(path) as picture:
        assert 750 <= picture.width <= 1340


def test_every_figure_has_one_sentence_and_the_notebook_that_explains_it(page, root):
    *sections, motion = page.split("\n## ")[1:]
    assert motion.startswith("In motion") and motion.count("Played step by step in [0") == len(ANIMATIONS)
    assert len(sections) == len(NAMES)
    for text in sections:
        sentence, link = re.search(r"\n\n([^\[\n]+\.) Explained in \[(.+?)\]", text).groups()
        assert len(re.findall(r"[.?!] [A-Z]", sentence)) == 0
        number = re.search(r"\((\d\d)_\w+\.ipynb\)", text)[1]
        assert link.startswith(number)


def test_links_lead_somewhere_and_no_path_is_absolute(page, root):
    targets = [token["attrs"]["url"] for token in tokens_of(page) if token["type"] in ("link", "image")]
    assert len(targets) == 3 * (len(NAMES) + len(ANIMATIONS))
    for target in targets:
        assert not target.startswith(("/", "http", "file")) and ".." not in target
        assert (root / "notebooks" / target).is_file(), target
    texts = [page, *((root / "notebooks" / "gallery" / f"{name}.svg").read_text(encoding="utf-8") for name in NAMES)]
    for text in texts:
        assert not re.search(r"(?<![\w.:/])/(home|Users|tmp|root|mnt|opt|var)/|[A-Z]:\\\\", text)
        assert str(root) not in text


@pytest.mark.parametrize("text", ["<br /> [a](b) *c* _d_ `e` $x_1$ \\ & &amp; ![i] ~~s~~ | # 1", "'it's' 100 % -- <pad>"])
def test_any_text_comes_through_the_page_unchanged(text):
    shown = [plain(token) for token in tokens_of(f"[![{gallery.escaped(text)}](a.png)](a.svg)") if token["type"] == "image"]
    assert shown == [text]


def test_a_sentence_that_stops_being_true_stops_the_gallery(monkeypatch, tmp_path):
    runs = gallery.read_runs("imdb")
    for run in runs:
        run["shuffled"] = run["test"]
    monkeypatch.setattr(gallery, "read_runs", lambda name: runs)
    with pytest.raises(AssertionError, match="no longer true: shuffling"):
        gallery.shuffled(None)
