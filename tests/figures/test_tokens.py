"""Tokens and batches as boxes: text inside, padding hatched, the mask shown, readable on a slide."""

import matplotlib as mpl

mpl.use("Agg")

import pytest  # noqa: E402
import torch  # noqa: E402
from drawn import quiet_and_tidy  # noqa: E402, F401
from matplotlib.patches import Rectangle  # noqa: E402

from course_utils.figures import alt_text, plot_batch, plot_tokens  # noqa: E402
from course_utils.figures.appearance import STYLES  # noqa: E402
from course_utils.figures.tokens import PADDING, SPECIAL  # noqa: E402

VOCABULARY = ["<pad>", "<unk>", "this", "film", "not", "dull", "but", "moving", "."]
IDS = torch.tensor([[2, 3, 4, 5, 8], [5, 8, 0, 0, 0], [2, 1, 7, 8, 0]])
LONG = ("this film is not dull , it is a <unk> , and nobody left the cinema before the end of the film <br> $x_1$ "
        ".").split()


class Tokenizer:
    vocabulary = VOCABULARY


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("draw", [
    lambda: plot_tokens(LONG, range(len(LONG)), title="A review, its tokens and its ids"),
    lambda: plot_tokens(["this", "film"]),
    lambda: plot_batch(IDS, IDS != 0, VOCABULARY, title="Three reviews"),
    lambda: plot_batch(IDS.repeat(1, 2) * 1000, None),
    lambda: plot_batch(IDS.repeat(1, 2), IDS.repeat(1, 2) != 0, Tokenizer()),
])
def test_text_is_in_its_box_and_it_reads_on_a_slide(draw, name, monkeypatch):
    monkeypatch.setenv("COURSE_STYLE", name)
    ax = draw()
    fig = ax.figure
    fig.draw_without_rendering()
    width, height = fig.canvas.get_width_height()
    boxes = [patch.get_window_extent() for patch in ax.patches]
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 >= 1 and box.y0 >= 1 and box.x1 <= width - 1 and box.y1 <= height - 1, text.get_text()
        if text.get_gid() == "cell":
            assert any(b.x0 < box.x0 and box.x1 < b.x1 and b.y0 - 2 < box.y0 and box.y1 < b.y1 + 2
                       for b in boxes), text.get_text()
        assert text.get_fontsize() >= STYLES[name].smallest - 1e-9
    assert fig.get_size_inches()[0] / fig.get_size_inches()[1] >= 16 / 9 - 1e-6


def faces(ax):
    return {mpl.colors.to_hex(patch.get_facecolor()) for patch in ax.patches if patch.get_fill()}


def test_padding_is_hatched_and_the_mask_stands_under_the_tokens():
    ax = plot_batch(IDS, IDS != 0, VOCABULARY)
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == 2 * int((IDS == 0).sum()) and PADDING in faces(ax)
    words = [text.get_text() for text in ax.texts]
    assert words.count("False") == int((IDS == 0).sum()) and words.count("True") == int((IDS != 0).sum())
    assert words.count("<pad>") == int((IDS == 0).sum())
    tops = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert tops["True"] > tops["film"]


def test_the_texts_say_tokens_ids_and_padding():
    said = alt_text(plot_tokens(["not", "dull", "."], [4, 5, 8]).figure)
    assert "3 tokens with their ids: 'not' 4, 'dull' 5, '.' 8." in said
    said = alt_text(plot_batch(IDS, IDS != 0, VOCABULARY, title="Three reviews").figure)
    assert said.startswith("Three reviews. Batch of 3 texts by 5 positions")
    assert "Row 1: 2 tokens, dull, '.' (ids 5, 8); 3 of padding." in said


def test_a_vocabulary_may_be_a_list_a_mapping_either_way_or_a_tokenizer():
    ways = [VOCABULARY, dict(enumerate(VOCABULARY)), {token: i for i, token in enumerate(VOCABULARY)}, Tokenizer()]
    assert len({alt_text(plot_batch(IDS, IDS != 0, way).figure) for way in ways}) == 1


@pytest.mark.parametrize(("act", "words"), [
    (lambda: plot_tokens("this film"), "tokens is one string"),
    (lambda: plot_tokens(["a", "b"], [1]), "expected one id for each"),
    (lambda: plot_tokens(["token"] * 400), "draw fewer"),
    (lambda: plot_batch(IDS[0]), "for one text use plot_tokens"),
    (lambda: plot_batch(IDS, IDS[:2] != 0), "expected the same"),
    (lambda: plot_batch(IDS, IDS != 0, VOCABULARY[:5]), "is not in the vocabulary of 5 tokens"),
    (lambda: plot_batch(IDS.repeat(1, 20)), "draw part of the batch"),
])
def test_what_is_wrong_is_said_in_words(act, words):
    with pytest.raises(ValueError) as error:
        act()
    assert words in str(error.value)


def test_special_tokens_are_grey_and_equal_tokens_have_equal_colours():
    ax = plot_tokens(["the", "film", "<unk>", "the", "<br />"])
    colours = [mpl.colors.to_hex(patch.get_facecolor()) for patch in ax.patches if isinstance(patch, Rectangle)]
    assert colours[0] == colours[3] != colours[1] and colours[2] == SPECIAL != colours[4]
