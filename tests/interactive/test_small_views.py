"""What holds for each thing to move: the same bytes, no network, names and texts that can't become markup."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from functools import cache

import pytest
from saved_pieces import pieces

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.interactive import (
    attention_view,
    classifier_view,
    dot_product_view,
    gates_view,
    rotary_view,
    temperature_view,
)
from course_utils.interactive.drawing import cut, element, fixed, label, short, shown
from course_utils.tokenization import WordTokenizer

HOSTILE = ["</script><script>alert(1)</script>", "<br />", "$x$ 😀\ud83c", "", "\n\t \u2028", '"&\'', "\x00\x0b"]
SMALL = {"temperature": lambda names: temperature_view([0.5, -1], names, d_k=4),
         "dot product": lambda names: dot_product_view(keys={names[0]: (1, 0), names[1]: (0, 1)}, name=names[1]),
         "rotary": lambda names: rotary_view(names=tuple(names))}
LARGE = {"classifier": lambda names: classifier_view(classifier(), names[0], examples=[(names[1], names[0], names[1])]),
         "gates": lambda names: gates_view(classifier(), names, names=names),
         "attention": lambda names: attention_view(names, [[0.5, 0.5], [1, 0]], title=names[0], compare=attention_view(
             names, [[0.5, 0.5], [1, 0]]))}
MAKE = SMALL | LARGE
each = pytest.mark.parametrize("kind", MAKE)


@cache
def classifier():
    """A small random classifier whose labels are markup."""
    config = ClassifierConfig(4, d_model=8, num_heads=2, d_ff=8, positions="rotary")
    return ReviewClassifier(SelfAttentionClassifier(config), WordTokenizer(["<pad>", "<unk>", "dull", "</script>"]))


def data_of(piece):
    """The piece's alternative text and data, read from its HTML."""
    (found,) = pieces([{"data": {"text/html": piece.html}}])
    assert found.alt == piece.alt
    return found.data


@each
def test_the_same_bytes_each_time_few_and_no_address(kind):
    piece = MAKE[kind](["dull", "moving"])
    assert piece.html == MAKE[kind](["dull", "moving"]).html != MAKE[kind](["dull", "so"]).html
    assert len(piece.html.encode()) < (40_000 if kind in SMALL else 100_000) and len(piece.still.encode()) < 10_000
    bare = piece.html.replace("http://www.w3.org/2000/svg", "") + piece.still.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|\bimport\(|<link|src=\"(?!data:)|@import|url\(|innerHTML", bare)


@pytest.mark.parametrize("kind", sorted(set(MAKE) - {"attention"}))               # whose labels stand in a moved group
def test_everything_in_the_still_picture_lies_within_it(kind):
    picture = ET.fromstring(MAKE[kind](["dull", "moving"]).still)
    for node in picture.iter():
        for place, side in (("x", "width"), ("x1", "width"), ("x2", "width"), ("cx", "width"),
                            ("y", "height"), ("y1", "height"), ("y2", "height"), ("cy", "height")):
            assert 0 <= float(node.get(place, 0)) <= float(picture.get(side)), ET.tostring(node)


@each
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup(kind, name):
    piece = MAKE[kind]([name, "b"])
    assert piece.html.count("<script") == piece.html.count("</script>") == 1 and piece.html.encode()
    assert json.dumps(name)[1:-1] in json.dumps(json.loads(re.search(r"\nvar data=([^\n]*);\n", piece.html)[1]))
    picture = ET.fromstring(piece.still)                                   # well formed, and the name is text in it
    tags = {node.tag.rpartition("}")[2] for node in picture.iter()}
    assert tags <= {"svg", "g", "rect", "text", "line", "path", "circle", "title", "desc"}
    if kind in SMALL and "\ud83c" not in name:
        assert cut(shown(name), 10) in " ".join(node.text or "" for node in picture.iter())
    assert base64.b64encode(piece.still.encode()).decode() in piece.html


def test_numbers_are_short_and_never_minus_zero():
    assert [short(v) for v in (2.5, 3, -0.0001, 1 / 3, 100)] == ["2.5", "3", "0", "0.33", "100"]
    assert [fixed(v) for v in (-0.0001, -0.5, 2)] == ["0.00", "−0.50", "2.00"]


def test_an_element_escapes_what_it_is_given():
    assert element("rect", fill='"<&') == '<rect fill="&quot;&lt;&amp;"/>'
    assert label(1, 2, "<b>&\x00") == '<text x="1" y="2" font-size="14" fill="#1a1a1a">&lt;b&gt;&amp;\ufffd</text>'
    assert [shown(text) for text in ("", " a ", "a\n")] == ["(empty)", "␣a␣", "a\\n"]
    assert cut("moving", 4) == "mov…" and cut("dull", 4) == "dull"
