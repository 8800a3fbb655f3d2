"""The animations: the numbers they show are the course's, the committed files are what is drawn, nothing moves unasked."""

import re
import xml.etree.ElementTree as ET

import pytest
import torch
from PIL import Image
from test_small_views import data_of

from course_utils.__main__ import main
from course_utils.files.paths import NOTEBOOKS
from course_utils.interactive import animation_view
from course_utils.interactive.animations import ANIMATIONS, drawn, state_at

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
    assert "@media (prefers-reduced-motion:reduce){*{animation:none!important}}" in drawn(animation)
    assert "animation" not in drawn(animation, moving=False)


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
    assert {"0.27", "0.73", "0.33", "0.53", "1.00"} <= set(seen(animation, 5)) and seen(animation, 5).count("0") == 6


def test_heads_get_two_columns_of_every_word_and_join_again():
    animation = ANIMATIONS["heads"]()
    cells = {shape.text: shape for shape in animation.shapes if (shape.text or "").isdigit()}
    halves = [{text for text, shape in cells.items() if state_at(shape, 2, 1).x * side > 0} for side in (-1, 1)]
    assert halves == [{"0", "1", "4", "5", "8", "9"}, {"2", "3", "6", "7", "10", "11"}]
    assert all(shape.states[0] == shape.states[-1] for shape in cells.values())


@each
def test_a_movement_into_a_step_begins_where_the_step_before_ended(animation):
    for shape in animation.shapes:
        for step in range(1, len(shape.states)):
            assert state_at(shape, step, 0)[:4] == pytest.approx(state_at(shape, step - 1, 1)[:4])


def test_another_name_is_refused():
    with pytest.raises(ValueError, match="expected one of 'softmax-sharpening'"):
        animation_view("heads-splitting")


def test_the_command_writes_pictures_and_gifs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    assert main(["animations", "--gallery", str(tmp_path / "gallery")]) == 0
    names = {path.name for path in (tmp_path / "outputs").iterdir()}
    assert names == {f"{name}{end}" for name in ANIMATIONS for end in ("-moving.svg", "-still.svg", ".gif")}
    assert len(list((tmp_path / "gallery").iterdir())) == 2 * len(ANIMATIONS) and "heads.gif" in capsys.readouterr().out
    for name, make in ANIMATIONS.items():
        with Image.open(tmp_path / "outputs" / f"{name}.gif") as picture:
            assert make().captions and picture.n_frames >= len(make().captions) and picture.info["loop"] == 0
