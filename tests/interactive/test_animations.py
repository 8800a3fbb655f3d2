"""The animations: the numbers they show are the course's, the committed files are what is drawn, nothing moves unasked."""

import io
import re
import xml.etree.ElementTree as ET

import pytest
import torch
from PIL import Image
from test_small_views import data_of

from course_tools.gallery.animations import FRAMES, gif
from course_utils.__main__ import main
from course_utils.figures import contrast
from course_utils.files.paths import NOTEBOOKS
from course_utils.interactive import animation_view
from course_utils.interactive.animations import ANIMATIONS, NAMED, drawn, state_at

each = pytest.mark.parametrize("animation", [make() for make in ANIMATIONS.values()], ids=list(ANIMATIONS))


def seen(animation, step):
    """The texts that can be read at the end of a step."""
    return [shape.text for shape in animation.shapes if shape.text is not None and state_at(shape, step, 1).opacity == 1]


@each
def test_the_committed_files_are_what_the_code_draws(animation):
    for name, moving in (("moving", True), ("still", False)):
        committed = NOTEBOOKS / "gallery" / f"{animation.name}-{name}.svg"
        assert committed.read_text(encoding="utf-8") == drawn(animation, moving), "run python -m course_tools animations"
        assert committed.stat().st_size < 40_000
        picture = ET.fromstring(drawn(animation, moving))
        assert picture[0].tag.endswith("desc") and picture[0].text == animation.alt
        assert "http" not in drawn(animation, moving).replace("http://www.w3.org/2000/svg", "")


@each
def test_it_takes_ten_to_twenty_seconds_and_can_be_kept_still(animation):
    assert 10 <= animation.duration <= 20 and len(animation.alt) > 150
    moving, still = drawn(animation), drawn(animation, moving=False)
    assert "@media (prefers-reduced-motion:reduce){*{animation:none!important}}" in moving and "svg:hover" in moving
    assert "animation" not in still and "@keyframes" not in still
    for text in (*seen(animation, animation.still), animation.captions[animation.still]):
        assert f">{text}<" in still


@each
def test_every_shape_has_a_state_for_each_step_and_keyframes_that_end_in_the_last(animation):
    moving = drawn(animation)
    assert {len(shape.states) for shape in animation.shapes} <= {0, len(animation.captions)}
    rules = re.findall(r"@keyframes (k\d+)\{0%.*?100%\{[^}]+\}\}\n\.(k\d+)\{animation:(k\d+) ([\d.]+)s", moving)
    assert len(rules) == sum(bool(shape.states) for shape in animation.shapes) + len(animation.captions)
    assert all(a == b == c and float(seconds) == round(animation.duration, 2) for a, b, c, seconds in rules)


@each
def test_what_is_written_can_be_read_on_what_is_under_it(animation):
    for step in range(len(animation.captions)):
        for k, shape in enumerate(animation.shapes):
            state = state_at(shape, step, 1)
            if shape.text is None or state.opacity < 1:
                continue
            under = "#ffffff"
            for other in animation.shapes[:k]:
                at = state_at(other, step, 1)
                left, top = other.x + at.x, other.y + at.y
                if other.text is None and left <= shape.x + state.x < left + other.width * at.stretch \
                        and top <= shape.y + state.y - 5 < top + other.height:
                    under = at.fill or NAMED.get(other.fill, other.fill)
            assert contrast(NAMED.get(shape.fill, shape.fill), under) >= 4.5, (step, shape.text)


@each
def test_the_gif_moves_and_is_small_enough_for_a_slide(animation):
    written = gif(animation)
    assert len(written) < 300_000
    with Image.open(io.BytesIO(written)) as picture:
        assert picture.n_frames >= len(animation.captions) and picture.info["loop"] == 0
        assert picture.n_frames <= len(animation.captions) * (FRAMES + 1)
        total = 0
        for k in range(picture.n_frames):
            picture.seek(k)
            total += picture.info["duration"]
    assert total / 1000 == pytest.approx(animation.duration, abs=1.0)


@each
def test_the_piece_has_the_captions_and_doesnt_start_by_itself(animation):
    piece = animation_view(animation.name)
    data = data_of(piece)
    assert data["captions"] == animation.captions and len(data["nodes"]) == len(animation.shapes)
    assert piece.html == animation_view(animation.name).html and len(piece.html) < 60_000
    assert "reduced-motion" not in data["style"]                           # the script sees to that
    assert "\ntoggle(false);\n}" in piece.html


def test_softmax_shows_the_answers_of_notebook_04():
    animation = ANIMATIONS["softmax-sharpening"]()
    answers = dict(re.findall(r"Sharpness ([\d.]+): the lookup answers (\S+)", " ".join(animation.captions)))
    assert (answers["1"], answers["4"], answers["16"]) == ("−0.37", "−0.90", "−1.00")
    weights = (4 * torch.tensor([0.1, 0.8, 0.0, -0.8])).softmax(0)
    assert {f"{float(w):.2f}" for w in weights} <= set(seen(animation, 4))


def test_the_causal_mask_covers_what_comes_later_and_rows_sum_to_one():
    animation = ANIMATIONS["causal-mask"]()
    assert [seen(animation, step).count("−∞") for step in range(6)] == [0, 3, 5, 6, 6, 0]
    assert {"0.27", "0.73", "0.21", "0.58", "1.00"} <= set(seen(animation, 5)) and seen(animation, 5).count("0") == 6


def test_heads_get_two_columns_of_every_word_and_join_again():
    animation = ANIMATIONS["heads"]()
    cells = {shape.text: shape for shape in animation.shapes if (shape.text or "").isdigit()}
    halves = [{text for text, shape in cells.items() if state_at(shape, 2, 1).x * side > 0} for side in (-1, 1)]
    assert halves == [{"0", "1", "4", "5", "8", "9"}, {"2", "3", "6", "7", "10", "11"}]
    assert all(shape.states[0] == shape.states[-1] for shape in cells.values())


def test_another_name_is_refused():
    with pytest.raises(ValueError, match="expected one of 'softmax-sharpening'"):
        animation_view("heads-splitting")


def test_the_command_writes_pictures_and_gifs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    assert main(["animations", "--gallery", str(tmp_path / "gallery")]) == 0
    names = {path.name for path in (tmp_path / "outputs").iterdir()}
    assert names == {f"{name}{end}" for name in ANIMATIONS for end in ("-moving.svg", "-still.svg", ".gif")}
    assert len(list((tmp_path / "gallery").iterdir())) == 2 * len(ANIMATIONS) and "heads.gif" in capsys.readouterr().out
