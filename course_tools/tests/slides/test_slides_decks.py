"""The decks as they come from the notebooks' tags: every pointer matches, and each prediction comes before its result.

Markdown isn't rendered here, so that no package of the site is needed; the browser tests look at the pages themselves.
"""

import html
import re

import nbformat
import pytest

from course_tools.slides import blocks, command, notes
from course_tools.slides.deck import Reader, quiz_blocks
from course_tools.slides.prose import words
from course_tools.slides.talks import parts_of, talk_deck
from course_tools.teaching import lectures
from course_utils.copies.notebooks import find, talks
from course_utils.exercises.quizzes import load_quiz
from course_utils.files.paths import FRONT, NOTEBOOKS

PATHS = [NOTEBOOKS / f"{FRONT[1]}.ipynb", *find([])]


def as_source(text: str) -> str:
    """Markdown as it is written, but for a table, whose size is looked at."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{cells}</table>" if rows else f"<p>{html.escape(text)}</p>"


@pytest.fixture(autouse=True, scope="module")
def unrendered():
    """No Markdown is rendered in this file."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocks, notes):
            patch.setattr(module, "rendered", as_source)
            patch.setattr(module, "inline", html.escape)
        yield


@pytest.fixture(params=PATHS, ids=lambda path: path.stem, scope="module")
def deck(request, unrendered):
    return command.notebook_deck(request.param)[0]


def test_every_pointer_matches_and_every_slide_has_its_own_address(deck):
    ids = [slide.id for slide in deck.slides]
    assert len(ids) == len(set(ids)) >= 12
    assert all(slide.blocks for slide in deck.slides), [slide.id for slide in deck.slides if not slide.blocks]


def test_a_slide_has_one_idea(deck):
    """Prose that people read while somebody speaks: seldom more than 45 words."""
    long = {}
    for slide in deck.slides:
        prose = [block.html for block in slide.blocks if block.kind in ("paragraph", "question") and not block.step]
        count = words(re.sub(r"<[^>]+>", " ", html.unescape(" ".join(prose))))
        if slide.kind in ("slide", "question") and count > 60:
            long[slide.id] = count
    assert not long, "point at fewer sentences: " + ", ".join(f"{name} has {count} words" for name, count in long.items())


def test_minutes_add_up_to_those_of_the_sections_shown(deck):
    assert deck.minutes == sum(slide.minutes for slide in deck.slides) > 20
    assert all(slide.minutes >= 0 for slide in deck.slides)


def test_a_question_is_asked_without_what_is_only_for_the_notebook():
    asked = [block.html for slide in Reader(find(["01"])[0]).slides for block in slide.blocks if block.kind == "question"]
    assert any("Guess the counter" in text for text in asked) and not any("next cell" in text for text in asked)


def test_a_measured_value_is_a_step_after_its_question(deck):
    for slide in deck.slides:
        kinds = [block.kind for block in slide.blocks]
        if "measured" in kinds:
            at = kinds.index("measured")
            assert "question" in kinds[:at] and slide.blocks[at].step, slide.id
    if deck.name != "attention_in_an_hour":
        predictions = [cell for cell in nbformat.read(NOTEBOOKS / f"{deck.name}.ipynb", as_version=4).cells
                       if re.search(r"= predict\(", cell.source)]
        assert sum(slide.kind == "question" for slide in deck.slides) >= min(1, len(predictions))


def test_every_usual_prediction_is_told_where_it_belongs():
    told = [slide.people for path in PATHS for slide in Reader(path).slides if slide.people]
    rows = {notes.prediction_row(beginning) for beginning in told}
    missing = [row[0] for row in notes.usual_predictions() if row not in rows and not row[0].startswith("the extra")]
    assert not missing, f"no slide has these in its notes; name them under 'people' in a cell's metadata: {missing}"
    assert len(told) == len(set(told)) == len(rows)


def test_the_notes_of_a_route_say_its_minutes():
    deck, _ = command.route_deck(lectures.HALF_DAY)
    assert sum(_half_minutes(notes.notes(slide, 0)) for slide in deck.slides) / 2 == deck.minutes
    in_class = {number for stretch in lectures.HALF_DAY.stretches for number in stretch.exercises}
    assert {slide.exercise for slide in deck.slides if slide.exercise} == in_class


def test_a_route_ends_with_what_to_remember_a_sentence_at_a_time():
    last = command.route_deck(lectures.HALF_DAY)[0].slides[-1]
    assert last.kind == "closing" and last.minutes > 0
    assert [block.step for block in last.blocks] == [True] * len(lectures.HALF_DAY.remember)


@pytest.fixture(scope="module")
def talk():
    (path,) = talks()
    return talk_deck(path)[0]


def test_the_talk_takes_ninety_minutes_and_says_what_to_say_in_every_section(talk):
    assert talk.minutes == sum(minutes for _, minutes in parts_of(talks()[0])) == 90
    assert 25 <= len(talk.slides) <= 30
    said = {title: sum(len(text.split()) for slide in talk.slides if slide.section == title for text in slide.say)
            for title in {slide.section for slide in talk.slides}}
    silent = [title for title, words_said in said.items() if words_said < 15]
    assert not silent, f"these slides have no notes: {silent}"


def test_the_talk_shows_a_live_classifier_at_the_beginning_and_a_head_to_switch_off_at_the_end(talk):
    live = [k for k, slide in enumerate(talk.slides) if any("classifier_view" in block.html for block in slide.blocks)]
    assert live[0] <= 2 and live[-1] >= len(talk.slides) - 6 and len(live) == 2


def test_a_section_of_a_talk_without_minutes_is_named(tmp_path):
    notebook = nbformat.read(talks()[0], as_version=4)
    del next(cell for cell in notebook.cells if cell.id == "home").metadata["slide"]
    nbformat.write(notebook, tmp_path / "talk.ipynb")
    with pytest.raises(ValueError, match="talk.ipynb, 'Then it takes home the mean of what it found': .* no minutes"):
        parts_of(tmp_path / "talk.ipynb")


def test_an_exercise_in_class_shows_the_table_it_needs():
    slides = command.route_deck(lectures.HALF_DAY)[0].slides
    at = next(k for k, slide in enumerate(slides) if slide.exercise == "4.1")
    assert "table" in [block.kind for block in slides[at].blocks]


def test_notes_say_a_result_beside_it_and_a_question_before_its_answer():
    slides = {slide.id: slide for slide in Reader(find(["04"])[0]).slides}
    assert any(text.startswith("At sharpness 0") for text in slides["04-animation-sharpening"].say)
    assert any("Move it" in text.split(".")[0] for text in slides["04-lookup-move"].say)
    assert [block.step for block in slides["04-three"].blocks][:2] == [False, True]
    nine = [slide for slide in Reader(find(["09"])[0]).slides if slide.id == "09-shuffled"][0]
    assert any("It's tempting" in text for text in nine.say), "what is said after a section's last slide is in its notes"


def _half_minutes(text: str) -> int:
    time = re.search(r"<b>([^<]+)</b> · by minute", text)[1]
    if time.lower() == "in passing":
        return 0
    if time.lower() == "half a minute":
        return 1
    whole, half = re.match(r"(\d+)(½?) minute", time).groups()
    return 2 * int(whole) + bool(half)


def test_a_pointer_that_no_longer_matches_is_named_with_its_cell(tmp_path, monkeypatch):
    notebook = nbformat.read(NOTEBOOKS / "04_attention.ipynb", as_version=4)
    next(cell for cell in notebook.cells if cell.id == "lookup").metadata["slide"] = {"show": ["No such words"]}
    nbformat.write(notebook, tmp_path / "04_attention.ipynb")
    with pytest.raises(ValueError, match="04_attention.ipynb, cell 'lookup': the pointer 'No such words'"):
        Reader(tmp_path / "04_attention.ipynb")


def test_metadata_that_mean_nothing_are_refused(tmp_path):
    notebook = nbformat.read(NOTEBOOKS / "04_attention.ipynb", as_version=4)
    next(cell for cell in notebook.cells if cell.id == "overview").metadata["slide"] = {"shows": []}
    nbformat.write(notebook, tmp_path / "04_attention.ipynb")
    with pytest.raises(ValueError, match=r"cell 'overview': the metadata 'slide' has \['shows'\]; expected of"):
        Reader(tmp_path / "04_attention.ipynb")


def test_a_printed_matrix_becomes_rows_of_numbers():
    printed = "first\n tensor([[ 0.,  2.],\n        [-1.,  1.]])\nsecond\n"
    (block,) = blocks.of_outputs([{"output_type": "stream", "name": "stdout", "text": printed}])
    assert "first\n 0   2\n−1   1\nsecond" in block.html


def test_a_quiz_stresses_words_and_leaves_the_stars_of_code():
    question = load_quiz("03")[0]
    stressed = question._replace(text="Is *order* `a * b * c`?")
    assert "Is <em>order</em> <code>a * b * c</code>?" in quiz_blocks(stressed)[0].html


def test_prose_that_no_slide_shows_is_said_at_the_next_one(tmp_path):
    notebook = nbformat.read(NOTEBOOKS / "04_attention.ipynb", as_version=4)
    cell = next(cell for cell in notebook.cells if cell.id == "lookup")
    cell.metadata["slide"] = {"show": []}
    nbformat.write(notebook, tmp_path / "04_attention.ipynb")
    said = "\n".join(text for slide in Reader(tmp_path / "04_attention.ipynb").slides for text in slide.say)
    assert cell.source.split("\n\n")[1] in said


def test_what_stands_apart_from_the_way_gets_a_box_without_an_arrow():
    """12 changes one part at a time: that isn't a step of the way."""
    shown = re.sub(r"<[^>]+>", "", blocks.of_part(blocks.Part("code", "```\na → b    [ONE CHANGE]\n```")).html)
    assert shown == "a → b one change"


def test_prose_of_a_question_is_said_on_its_slide():
    """08's section on failing shows only its question; the notes have the rest of the cell."""
    [slide] = [one for one in Reader(find(["08"])[0]).slides if one.id == "08-fail-heading"]
    assert any("200 reviews instead of 8,000" in one for one in slide.say)
