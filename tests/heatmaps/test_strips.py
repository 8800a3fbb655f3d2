"""Tokens as figures show them, and strips of tokens coloured by their weights."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from drawn import WORDS, boxes, quiet_and_tidy, softmax
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from matplotlib import mathtext  # noqa: E402

from course_utils.figures import contrast  # noqa: E402
from course_utils.figures.text import display_token, text_width  # noqa: E402
from course_utils.heatmaps import alt_text, plot_attention, plot_attention_heads, save_figure, token_strip  # noqa: E402

__all__ = ["quiet_and_tidy"]                            # pytest runs it around each test here


AWKWARD = ["<br />", "$x_1$", r"\frac{a}{b}", "_a_b_", "100%", "\N{ROCKET}\N{GRINNING FACE}", "שלום", "مرحبا", "a\nb",
           "\t", "", "x" * 200, "$", "$$", "\\", "\x00", "\ud800", "\u202e", "\u0301", "中文", " the", "  "]


# ---------------------------------------------------------------- token text


def test_a_token_is_shown_on_one_line_of_characters_that_the_font_has():
    shown = {token: display_token(token) for token in AWKWARD}
    assert shown["<br />"] == "<br />" and shown["$x_1$"] == "$x_1$" and shown["a\nb"] == "a\\nb"
    assert shown[""] == "(empty)" and shown["\t"] == "\\t" and shown["\ud800"] == "U+D800"
    assert shown["\N{ROCKET}\N{GRINNING FACE}"].startswith("U+1F680")
    assert shown["x" * 200] == "x" * 13 + "…" and shown[" the"] == "␣the" and shown["  "] == "␣␣"
    assert shown["\u202e"] == "U+202E" and shown["\u0301"] == "◌\u0301"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_string_becomes_a_short_visible_line(token):
    shown = display_token(token)
    assert shown.strip(" ") == shown and 0 < len(shown) <= 15
    assert not any(character in shown for character in "\n\r\t\x00")
    assert text_width(shown, 12) > 0
    shown.encode()


def test_awkward_tokens_never_reach_mathtext_and_raise_no_warning(monkeypatch, capfd, tmp_path):
    def fail(*arguments, **options):
        raise AssertionError("mathtext was called")

    monkeypatch.setattr(mathtext.MathTextParser, "parse", fail)
    weights = softmax(len(AWKWARD), len(AWKWARD))
    title = "of '$x$' and '\\frac'"
    ax = plot_attention(weights, AWKWARD, title=title, evidence=[1, 5, 19])
    save_figure(ax.figure, "matrix", tmp_path)
    assert ax.get_title(loc="left") == title
    fig, _ = plot_attention_heads(weights[None, :8, :8] / weights[None, :8, :8].sum(-1, keepdims=True), AWKWARD[:8],
                                  title=title, titles=["$h_0$"])
    save_figure(fig, "grid", tmp_path)
    strip = token_strip(AWKWARD, weights[0], title=title, titles=["$a$"], evidence=[0, 5])
    save_figure(strip.figure, "strip", tmp_path)
    assert "$x_1$" in boxes(strip)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


# ---------------------------------------------------------------- strips


def test_a_strip_prints_every_weight_under_its_token_and_breaks_lines_like_text():
    weights = softmax(len(WORDS))
    ax = token_strip(WORDS, weights, evidence=[3, 4])
    texts = boxes(ax)
    for token, weight in zip(WORDS, weights, strict=True):
        assert token in texts and f"{weight:.2f}" in texts
    places = [t.get_position() for t in ax.texts if t.get_text() in WORDS]
    assert len({y for _, y in places}) > 1 and all(0 <= x <= ax.get_xlim()[1] for x, _ in places)
    assert [t.get_text() for t in ax.texts if t.get_fontweight() == "bold"] == ["not", "dull"]
    narrow = token_strip(WORDS[:6], softmax(6), wrap=2)
    assert len({t.get_position()[1] for t in narrow.texts if t.get_text() in WORDS[:6]}) == 3


def test_several_strips_share_one_scale():
    ax = token_strip([["a", "b"], ["c", "d", "e"]], [[0.1, 0.2], torch.tensor([0.4, 0.2, 0.2])], titles=["one", "two"])
    faces = [mpl.colors.to_hex(p.get_facecolor()) for p in ax.patches[:5]]
    assert faces[1] == faces[3] == faces[4] != faces[0]
    assert "0.4" in boxes(ax)


def test_a_strip_longer_than_its_room_sums_the_rest():
    weights = softmax(300)
    ax = token_strip([f"w{i}" for i in range(300)], weights, decimals=4)
    assert "⋯ rest (181) ⋯" in boxes(ax) and f"{weights[60:241].sum():.4f}" in boxes(ax)
    assert "181 tokens between" in alt_text(ax)


def test_one_sentence_takes_several_rows_of_weights_and_scores_of_either_sign():
    ax = token_strip(["a", "b"], torch.tensor([[0.5, -0.5], [0.1, 0.2]]), kind="difference")
    assert {"+0.50", "−0.50", "+0.10", "+0.20"} <= set(boxes(ax))


def test_a_strip_can_leave_its_numbers_out_and_name_its_scale():
    weights = softmax(6)
    plain = token_strip(WORDS[:6], weights)
    bare = token_strip(WORDS[:6], weights, values=False, scale_label="gradient × $x$")
    assert f"{weights[0]:.2f}" in boxes(plain) and f"{weights[0]:.2f}" not in boxes(bare)
    assert bare.patches[0].get_height() < plain.patches[0].get_height()
    assert mpl.colors.same_color(bare.patches[0].get_facecolor(), plain.patches[0].get_facecolor())
    assert any(text.startswith("weight  0") for text in boxes(plain))
    assert any(text.startswith("gradient × $x$  0") for text in boxes(bare))
    assert "coloured by gradient × $x$" in alt_text(bare) and "coloured by weight" in alt_text(plain)
    assert f"{weights.max():.3f}" in alt_text(bare)
    for wrong in ({"values": "auto"}, {"scale_label": " "}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            token_strip(WORDS[:6], weights, **wrong)


def test_what_a_strip_prints_can_be_read_on_every_colour():
    weights = np.linspace(0.001, 1, 60)
    for kind, values in (("weights", weights), ("difference", np.r_[weights, -weights])):
        ax = token_strip(["word"] * len(values), values, kind=kind)
        faces = [p.get_facecolor() for p in ax.patches[:len(values)]]
        inks = [t.get_color() for t in ax.texts if t.get_text() == "word"]
        assert min(contrast(ink, face) for ink, face in zip(inks, faces, strict=True)) >= 4.5
