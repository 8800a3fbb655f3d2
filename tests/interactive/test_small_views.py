"""What holds for each small thing to move: the same bytes, no network, names that can't become markup, a few kB."""

import base64
import json
import re
import xml.etree.ElementTree as ET

import pytest
from saved_pieces import pieces

from course_utils.interactive import dot_product_view, rotary_view, temperature_view
from course_utils.interactive.drawing import cut, element, fixed, label, short, shown

HOSTILE = ["</script><script>alert(1)</script>", "<br />", "$x$", "😀", "", "\n\t  ", '"&\'', "\x00\x0b"]
MAKE = {"temperature": lambda names: temperature_view([0.5, -1], names, d_k=4),
        "dot product": lambda names: dot_product_view(keys={names[0]: (1, 0), names[1]: (0, 1)}, name=names[1]),
        "rotary": lambda names: rotary_view(names=tuple(names))}
each = pytest.mark.parametrize("make", MAKE.values(), ids=list(MAKE))


def data_of(piece):
    """The piece's alternative text and data, read from its HTML."""
    (found,) = pieces([{"data": {"text/html": piece.html}}])
    assert found.alt == piece.alt
    return found.data


@each
def test_the_same_bytes_each_time_a_few_kb_and_no_address(make):
    piece = make(["dull", "moving"])
    assert piece.html == make(["dull", "moving"]).html != make(["dull", "so"]).html
    assert len(piece.html.encode()) < 40_000 and len(piece.still.encode()) < 10_000
    bare = piece.html.replace("http://www.w3.org/2000/svg", "") + piece.still.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|\bimport\(|<link|src=\"(?!data:)|@import|url\(|innerHTML", bare)


@each
def test_everything_in_the_still_picture_lies_within_it(make):
    picture = ET.fromstring(make(["dull", "moving"]).still)
    for node in picture.iter():
        for place, side in (("x", "width"), ("x1", "width"), ("x2", "width"), ("cx", "width"),
                            ("y", "height"), ("y1", "height"), ("y2", "height"), ("cy", "height")):
            assert 0 <= float(node.get(place, 0)) <= float(picture.get(side)), ET.tostring(node)


@each
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup(make, name):
    piece = make([name, "b"])
    assert piece.html.count("<script") == piece.html.count("</script>") == 1
    assert name in json.dumps(data_of(piece), ensure_ascii=False) or json.dumps(name)[1:-1] in json.dumps(data_of(piece))
    picture = ET.fromstring(piece.still)                                   # well formed, and the name is text in it
    assert {node.tag.rpartition("}")[2] for node in picture.iter()} <= {"svg", "rect", "text", "line", "path", "circle"}
    assert cut(shown(name), 10) in " ".join(node.text or "" for node in picture.iter())
    encoded = base64.b64encode(piece.still.encode()).decode()
    assert encoded in piece.html


def test_numbers_are_short_and_never_minus_zero():
    assert [short(v) for v in (2.5, 3, -0.0001, 1 / 3, 100)] == ["2.5", "3", "0", "0.33", "100"]
    assert [fixed(v) for v in (-0.0001, -0.5, 2)] == ["0.00", "−0.50", "2.00"]


def test_an_element_escapes_what_it_is_given():
    assert element("rect", fill='"<&') == '<rect fill="&quot;&lt;&amp;"/>'
    assert label(1, 2, "<b>&\x00") == '<text x="1" y="2" font-size="14" fill="#1a1a1a">&lt;b&gt;&amp;\ufffd</text>'
    assert [shown(text) for text in ("", " a ", "a\n")] == ["(empty)", "␣a␣", "a\\n"]
    assert cut("moving", 4) == "mov…" and cut("dull", 4) == "dull"
