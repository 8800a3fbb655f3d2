"""Diagrams: text inside its box, nothing cut or overlapping, readable on a slide, said in words."""

import re

import matplotlib as mpl

mpl.use("Agg")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from drawn import quiet_and_tidy  # noqa: E402, F401
from matplotlib.patches import FancyBboxPatch  # noqa: E402

from course_utils.figures import COLOURS, NEGATIVE, POSITIVE, Diagram, alt_text, contrast, luminance  # noqa: E402
from course_utils.figures.appearance import STYLES  # noqa: E402


def attention():
    d = Diagram()
    d.box("x", at=(0, 1), shape="(token, d_model)")
    for row, name in enumerate(("query", "key", "value")):
        d.box(name, at=(1, row), shape="(query, d_head)" if row == 0 else "(key, d_head)", colour="green")
        d.arrow("x", name, text=f"$W_{name[0]}$")
    d.box("scores", at=(2, 0.5), shape="(query, key)", colour="purple")
    d.box("weights", at=(3, 0.5), shape="(query, key)", colour="purple")
    d.box("context", at=(4, 1), shape="(query, d_head)", colour="green")
    d.arrow("query", "scores")
    d.arrow("key", "scores")
    d.arrow("scores", "weights", text="softmax")
    d.arrow("weights", "context")
    d.arrow("value", "context", enter="bottom")
    return d.figure("One head")


def heads():
    d = Diagram()
    d.box("x", at=(0, 0), shape="(token, 64)")
    d.box("qkv", at=(1, 0), text="query, key, value", shape="(head, token, 16)", colour="green", copies=4)
    d.operation("attention", at=(2, 0))
    d.box("context", at=(3, 0), shape="(head, token, 16)", colour="green", copies=4)
    d.box("merged", at=(3, 1), shape="(token, 64)")
    d.box("output", at=(2, 1), shape="(token, 64)")
    d.group("4 heads", ["qkv", "attention", "context"])
    for start, end, text in (("x", "qkv", "split"), ("qkv", "attention", None), ("attention", "context", None),
                             ("context", "merged", "merge"), ("merged", "output", "$W_o$")):
        d.arrow(start, end, text=text)
    return d.figure("Split, attend, merge")


def block():
    d = Diagram()
    names = ["x", "layer norm", "attention", "+", "layer norm", "feed-forward", "+"]
    d.box("0", at=(0, 0), text="x", shape="(token, 64)")
    for i, name in enumerate(names[1:], 1):
        d.operation(str(i), at=(i, 0), text=name)
    for i in range(6):
        d.arrow(str(i), str(i + 1))
    d.arrow("0", "3", leave="top", enter="top", text="residual")
    d.arrow("3", "6", leave="bottom", enter="bottom", text="residual")
    d.group("block", [str(i) for i in range(1, 7)])
    return d.figure("A block, pre-norm")


def nested():
    d = Diagram()
    d.box("x", at=(0, 0.5), shape="(token, 8)")
    d.box("joined", at=(3, 0.5), shape="(token, 8)")
    for head in (0, 1):
        d.box(f"q{head}", at=(1, head), text="query, key, value", shape="(token, 4)", colour="green")
        d.box(f"c{head}", at=(2, head), text="context", shape="(token, 4)", colour="purple")
        d.arrow("x", f"q{head}", shape="(token, 8)")
        d.arrow(f"q{head}", f"c{head}", text="attention")
        d.arrow(f"c{head}", "joined")
        d.group(f"head {head}", [f"q{head}", f"c{head}"])
    d.group("multi-head attention", ["q0", "q1", "c0", "c1"])
    return d.figure("Two heads, split and joined")


DRAWN = [attention, heads, block, nested]


def frames(fig):
    """(gid, box of the text) as rendered, in pixels; and the patches of boxes."""
    fig.draw_without_rendering()
    texts = [(text, text.get_window_extent()) for text in fig.axes[0].texts]
    return texts, [patch.get_window_extent() for patch in fig.axes[0].patches if isinstance(patch, FancyBboxPatch)]


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("draw", DRAWN)
def test_text_is_in_its_box_nothing_is_cut_and_no_words_overlap(draw, name, monkeypatch):
    monkeypatch.setenv("COURSE_STYLE", name)
    fig = draw()
    texts, boxes = frames(fig)
    width, height = fig.canvas.get_width_height()
    for text, box in texts:
        assert box.x0 >= 1 and box.y0 >= 1 and box.x1 <= width - 1 and box.y1 <= height - 1, text.get_text()
        if text.get_gid() == "box":
            around = [b for b in boxes if b.x0 + 2 < box.x0 and box.x1 < b.x1 - 2 and b.y0 < box.y0 and box.y1 < b.y1]
            assert around, text.get_text()
    for i, (text, box) in enumerate(texts):
        for other, second in texts[i + 1:]:
            assert not box.padded(-1).overlaps(second.padded(-1)), (text.get_text(), other.get_text())
        for edges in boxes * (text.get_gid() != "box"):                    # of a box or of a group
            within = edges.x0 < box.x0 and box.x1 < edges.x1 and edges.y0 < box.y0 and box.y1 < edges.y1
            assert within or not edges.overlaps(box), f"an edge runs through {text.get_text()!r}"
    for patch in fig.axes[0].patches:
        inside = patch.get_window_extent()
        assert inside.x0 >= 0 and inside.y0 >= 0 and inside.x1 <= width and inside.y1 <= height


def test_the_alternative_text_lists_boxes_arrows_and_groups():
    said = alt_text(attention())
    assert said.startswith("One head. Diagram. Boxes: x (token, d_model); query (query, d_head);")
    assert "x → query (W_q); x → key (W_k)" in said and "scores → weights (softmax)" in said
    assert "Framed as '4 heads': query, key, value, attention, context." in alt_text(heads())
    assert "4 behind one another" in alt_text(heads())


def wrong(act):
    d = Diagram()
    d.box("a", at=(0, 0))
    d.box("b", at=(1, 0))
    with pytest.raises(ValueError) as error:
        act(d)
        d.figure()
    return str(error.value)


@pytest.mark.parametrize(("act", "words"), [
    (lambda d: d.box("a", at=(2, 0)), "there is a box 'a' already"),
    (lambda d: d.box("c", at=3), "expected (column, row)"),
    (lambda d: d.box("c", at=(2, 0), colour="blue"), "blue and orange mean positive and negative"),
    (lambda d: d.arrow("a", "z"), "there is no box 'z'; there are: a, b"),
    (lambda d: d.arrow("a", "b", leave="up"), "expected one of left, right, top, bottom"),
    (lambda d: d.group("g", ["a", "q"]), "['q']"),
    (lambda d: d.box("c", at=(0.2, 0)), "overlaps"),
    (lambda d: (d.box("c", at=(2, 0)), d.arrow("a", "c")), "runs through box 'b': lead it another way"),
    (lambda d: [d.box(f"column {i} of many", at=(i, 1)) for i in range(12)], "use fewer columns"),
    ])
def test_what_is_wrong_is_said_in_words(act, words):
    assert words in wrong(act)


def seen(colour, deficiency):
    """CIELAB of a colour as the colour-blind see it (Machado, Oliveira and Fernandes 2009, severity 1)."""
    red = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour)])
    x, y, z = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        np.array(deficiency) @ red, 0, 1) / (0.9505, 1, 1.089)
    x, y, z = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_colours_of_lines_contrast_with_white_and_stay_apart_for_the_colour_blind(deficiency):
    assert min(contrast(colour, "#ffffff") for colour in COLOURS) >= 3
    assert luminance(COLOURS[0]) > 1.5 * luminance(COLOURS[1])  # the two that are used most also differ in grey
    all_of_them = [seen(colour, DEFICIENCIES[deficiency]) for colour in [*COLOURS, POSITIVE, NEGATIVE]]
    apart = [np.linalg.norm(a - b) for i, a in enumerate(all_of_them) for b in all_of_them[i + 1:]]
    assert min(apart) > 10


def test_the_module_documents_an_example_that_runs():
    import course_utils.figures.diagrams as module

    code = re.sub(r"(?m)^    ", "", module.__doc__.split("\n\n")[2])
    names = {"Diagram": Diagram}
    exec(code, names)
    assert alt_text(names["fig"]).startswith("One head. Diagram.")
