"""Figures on disk: the same bytes each time, their alternative texts, and the style for presenting."""

import hashlib
import os
import subprocess
import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from drawn import EYE, WORDS, quiet_and_tidy, softmax
from PIL import Image  # noqa: E402

from course_utils.figures import style  # noqa: E402
from course_utils.heatmaps import alt_text, plot_attention, plot_attention_heads, save_figure, token_strip, use_style  # noqa: E402

__all__ = ["quiet_and_tidy"]                            # pytest runs it around each test here


# ---------------------------------------------------------------- files and alternative text


SCRIPT = """
import sys, numpy as np
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt
from course_utils.heatmaps import plot_attention, plot_attention_heads, save_figure, token_strip
folder = sys.argv[1]
w = np.exp(np.random.default_rng(0).normal(size=(4, 6, 6))); w /= w.sum(-1, keepdims=True)
t = ["<br />", "not", "$x$", "dull", "\\u05e9", "<pad>"]
mask = [True] * 6
save_figure(plot_attention(w[0], t, evidence=[1], title="one").figure, "one", folder)
save_figure(plot_attention_heads(w, t, attention_mask=mask)[0], "heads", folder)
save_figure(token_strip(t, w[0, 0], evidence=[3]).figure, "strip", folder)
save_figure(token_strip(t, w[0, 1], values=False, scale_label="share").figure, "bare", folder)
fig, axes = plt.subplots(1, 2, layout="constrained")
plot_attention(w[0], t, ax=axes[0]); axes[1].plot([1, 2, 3], [3, 1, 2], label="loss")
save_figure(fig, "both", folder)
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, head in zip(axes, w): plot_attention(head, t, vmax=1, colorbar=False, ax=ax)
from course_utils.heatmaps import shared_colorbar
shared_colorbar(axes)
save_figure(fig, "shared", folder)
"""
STYLES = ["read", "present"]


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("style", STYLES)
def test_two_processes_write_the_same_bytes_and_nothing_of_date_or_version(tmp_path, root, style, monkeypatch):
    monkeypatch.setenv("COURSE_STYLE", style)
    run = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / "a")], cwd=root, timeout=300,
                         env=os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": "1"}, capture_output=True)
    assert run.returncode == 0 and run.stdout == run.stderr == b"", run.stderr.decode()
    exec(SCRIPT.replace("sys.argv[1]", "target"), {"target": tmp_path / "b"})
    first, second = digests(tmp_path / "a"), digests(tmp_path / "b")
    assert first == second and len(first) == 6 * 3
    for path in (tmp_path / "a").glob("*.svg"):
        text = path.read_text(encoding="utf-8").lower()
        assert "dc:date" not in text and mpl.__version__ not in text and "<desc>" in text
    for path in (tmp_path / "a").glob("*.png"):
        assert path.stat().st_size < 200_000
        with Image.open(path) as picture:
            assert set(picture.info) <= {"Description", "dpi"}


def test_the_alternative_text_stands_in_both_files_and_beside_them(tmp_path):
    text = save_figure(plot_attention(softmax(3, 3), ["<br />", "&", "שלום"], title="three").figure, "x", tmp_path)
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == text + "\n"
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.info["Description"] == text
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<desc>{escaped}</desc>" in svg and 'role="img"' in svg


def test_the_alternative_text_says_what_is_drawn_and_changes_with_the_data():
    weights = np.array([[0.1, 0.7, 0.2], [0.25, 0.25, 0.5]])
    ax = plot_attention(weights, ["der", "Film"], key_tokens=["the", "good", "film"], evidence=[1], title="Cross")
    text = alt_text(ax.figure)
    for words in ("Cross.", "2 queries", "3 keys", "'der' (query 0) to 'good' (key 1) 0.700", "from 0 to 0.8",
                  "Evidence outlined: 'good'"):
        assert words in text
    weights[0] = [0.1, 0.2, 0.7]
    other = alt_text(plot_attention(weights, ["der", "Film"], key_tokens=["the", "good", "film"]).figure)
    assert "'der' (query 0) to 'film' (key 2) 0.700" in other
    grids = [alt_text(plot_attention_heads(softmax(2, 4, 4, seed=seed), WORDS[:4])[0]) for seed in (0, 1)]
    strips = [alt_text(token_strip(WORDS[:4], softmax(4, seed=seed)).figure) for seed in (0, 1)]
    assert grids[0] != grids[1] and strips[0] != strips[1]


def test_a_figure_of_lines_or_bars_is_described_from_its_data(tmp_path):
    fig, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2, 3], [0.7, 0.2, 0.3], label="training")
    left.set_xlabel("epoch")
    right.bar(["bag", "attention"], [0.62, 0.98])
    text = save_figure(fig, "curves", tmp_path)
    assert "'training': 3 points from (1, 0.7) to (3, 0.3), lowest 0.2 at 2" in text
    assert "2 bars: bag 0.62, attention 0.98" in text and "epoch" in text
    with pytest.raises(ValueError, match="nothing|anything"):
        save_figure(plt.figure(), "empty", tmp_path)


def described(draw):
    fig, ax = plt.subplots()
    draw(ax)
    return alt_text(fig)


VALUES = [1, 2, 2, 3, 3, 3, 4.5]


def dodged(ax):
    ax.bar([-0.2, 0.8], [1, 2], 0.4, label="one")
    ax.bar([0.2, 1.2], [3, 4], 0.4, label="two")
    ax.set_xticks([0, 1], ["bag", "LSTM, mean"])


def jittered(ax):
    ax.scatter([-0.1, 0.1, 0.9], [1, 2, 3])
    ax.hlines([1.5, 3], [-0.25, 0.75], [0.25, 1.25])
    ax.set_xticks([0, 1], ["untrained", "trained"])


@pytest.mark.parametrize(("draw", "words"), [
    *[(lambda ax, how=how, way=way: ax.hist(VALUES, bins=4, range=(1, 5), histtype=how, orientation=way, label="runs"),
       "Histogram 'runs': 4 bins from 1 to 5, 7 in all; the tallest, 3, from 3 to 4.")
      for how in ("step", "stepfilled") for way in ("vertical", "horizontal")],
    (lambda ax: ax.stairs([1, 4, 2], [0, 10, 20, 40]),
     "Histogram: 3 bins from 0 to 40, 7 in all; the tallest, 4, from 10 to 20."),
    (lambda ax: ax.bar([0, 1, 2, 3, 4], [1, 3, 2, 0, 1], width=1, align="edge"),
     "Histogram: 5 bins from 0 to 5, 7 in all; the tallest, 3, from 1 to 2."),
    (lambda ax: ax.errorbar([0.5, 0.7], ["order", "plain"], xerr=[0.1, 0.2], fmt="o", capsize=4),
     "2 points with error bars: order 0.5 (0.4 to 0.6), plain 0.7 (0.5 to 0.9)."),
    (lambda ax: ax.errorbar([1, 2], [3, 4], yerr=[[0.5, 1], [1, 2]], label="loss"),
     "2 points with error bars 'loss': 3 (2.5 to 4) at 1, 4 (3 to 6) at 2."),
    (lambda ax: ax.bar(["bag", "all"], [0.6, 0.9], yerr=0.05), "2 bars: bag 0.6 (0.55 to 0.65), all 0.9 (0.85 to 0.95)."),
    (lambda ax: ax.bar(["bag", "all"], [0.6, np.nan]), "2 bars: bag 0.6, all no value."),
    (lambda ax: ax.bar(range(40), range(40)), "40 bars from 0 to 39, lowest 0 at 0, highest 39 at 39."),
    (dodged, "2 bars 'one': bag 1; LSTM, mean 2. 2 bars 'two': bag 3; LSTM, mean 4."),
    (jittered, "3 points: untrained 1 to 2 (2 points), trained 3. 2 level lines: untrained 1.5, trained 3."),
    (lambda ax: ax.fill_between([1, 2, 3], [0, 1, 0], [2, 2, 4], label="95 %"),
     "Band '95 %', at 1: 0 to 2, at 3: 0 to 4; widest at 3: 0 to 4."),
    (lambda ax: ax.plot(["bag", "LSTM", "all"], [1, 3, 2]),
     "from (bag, 1) to (all, 2), lowest 1 at bag, highest 3 at LSTM."),
    (lambda ax: ax.plot([0.9, 0.8], [1, 2], "o"), "2 points, x from 0.8 to 0.9, y from 1 to 2."),
    (lambda ax: (ax.imshow([[1, 2], [3, 4]]), ax.set_yticks([0, 1], ["a", "b"])),
     "Grid of 2 x 2 values from 1 to 4; rows: a, b."),
])
def test_histograms_error_bars_bands_and_categories_are_described(draw, words):
    assert words in described(draw)


def test_the_error_bars_of_bars_are_described_with_the_bars_and_not_again():
    assert described(lambda ax: ax.bar(["bag", "all"], [0.6, 0.9], yerr=0.05)).count("bag") == 1


def test_figures_go_to_the_outputs_of_the_project_unless_told_otherwise(tmp_path, monkeypatch, root):
    from course_utils.files.paths import output_folder
    monkeypatch.chdir(tmp_path)
    assert output_folder() == root / "outputs"
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "elsewhere" / "deep"))
    save_figure(plot_attention(EYE, WORDS[:3]).figure, "figure", None)
    assert sorted(p.name for p in (tmp_path / "elsewhere" / "deep").iterdir()) == ["figure.png", "figure.svg", "figure.txt"]
    for name in ("a/b", "..", "x.png", "", "a\\b"):
        with pytest.raises(ValueError, match="file name"):
            save_figure(plt.gcf(), name, tmp_path)


def test_a_figure_is_about_900_pixels_wide():
    with mpl.rc_context(style()):
        assert 880 <= plt.figure().bbox.width <= 920


def test_the_style_for_presenting_has_larger_type_and_a_wrong_name_is_an_error(monkeypatch):
    plain = plot_attention(softmax(4, 4), WORDS[:4]).get_xticklabels()[0].get_fontsize()
    monkeypatch.setenv("COURSE_STYLE", "present")
    assert plot_attention(softmax(4, 4), WORDS[:4]).get_xticklabels()[0].get_fontsize() > plain
    cut = plot_attention(softmax(20, 20), WORDS[:20])
    assert len(cut.get_xticklabels()) == len(cut.get_yticklabels()) == 14
    use_style()
    assert mpl.rcParams["font.size"] > 12
    plt.close("all")
    monkeypatch.setenv("COURSE_STYLE", "loud")
    with pytest.raises(ValueError, match="loud.*present"):
        plot_attention(softmax(4, 4), WORDS[:4])


def test_error_bars_are_described_once_and_reference_lines_not_at_all():
    text = described(lambda ax: (ax.errorbar([1, 2], [3, 4], yerr=1, xerr=0.5, capsize=5, fmt="o-"),
                                 ax.axhline(3), ax.axvline(1)))
    assert text == "2 points with error bars: (1 (0.5 to 1.5), 3 (2 to 4)); (2 (1.5 to 2.5), 4 (3 to 5))."
