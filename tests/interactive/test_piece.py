"""A piece of HTML: the same bytes each time, nothing from a network, data that can't end its script, a picture."""

import base64
import re

import pytest

from course_utils.interactive import piece as pieces
from course_utils.interactive.piece import Piece, in_script

STILL = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>'


@pytest.fixture
def piece(monkeypatch):
    """A piece whose script does nothing."""
    source, nothing = pieces._source, "function build(root, data) {}"
    monkeypatch.setattr(pieces, "_source", lambda name: nothing if name == "toy.js" else source(name))
    return lambda data="x", **options: Piece("toy", data, **{"still": STILL, "alt": 'Two words, "a" & <b>.', **options})


def test_data_cannot_end_the_script():
    written = in_script({"text": "</script><script>alert(1)</script>\u2028"})
    assert "<" not in written and "\u2028" not in written and written.count("\\u003c") == 3


def test_what_it_shows_stands_in_words_in_the_picture_and_as_text(piece):
    shown = piece()
    assert 'alt="Two words, &quot;a&quot; &amp; &lt;b&gt;."' in shown.html
    assert shown._repr_mimebundle_()["text/plain"] == repr(shown) == 'Two words, "a" & <b>.'
    assert base64.b64encode(STILL.encode()).decode() in shown.html


@pytest.mark.parametrize(("options", "message"), [
    ({"alt": " "}, "alt is empty"), ({"still": "<img>"}, "expected an SVG picture"),
    ({"data": float("nan")}, "Out of range"),
])
def test_wrong_arguments(piece, options, message):
    with pytest.raises(ValueError, match=message):
        piece(**options)


def test_its_still_picture_says_how_to_get_the_live_one(piece):
    """Where scripts don't run: for GitHub and an untrusted copy, a page without its script elements."""
    without = re.sub(r"<script>.*?</script>", "", piece().html, flags=re.S)
    host = re.fullmatch(r'<div class="course-piece"[^>]*>(<img [^>]*>)\s*<p>([^<]*)</p></div>\s*', without)
    assert host, without
    for way in ("still picture", "run the cell", "Trust Notebook", "GitHub", "site", "make lab"):
        assert way in host[2], way


def test_a_page_of_its_own(piece, tmp_path):
    piece().save(tmp_path / "toy.html")
    page = (tmp_path / "toy.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and piece().html in page
    with pytest.raises(ValueError, match="ends in .html"):
        piece().save(tmp_path / "toy.txt")
