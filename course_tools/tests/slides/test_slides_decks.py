"""The decks as they come from the notebooks' tags: every pointer matches, and each prediction comes before its result.

Markdown isn't rendered here, so that no package of the site is needed; the browser tests look at the pages themselves.
"""

import html
import re
from collections import Counter

import nbformat
import pytest

from course_tools.slides import blocks, command, notes
from course_tools.slides.deck import Reader, quiz_blocks
from course_tools.slides.prose import words
from course_tools.slides.talks import parts_of, talk_deck
from course_tools.teaching import lectures
from course_utils.copies.notebooks import find, talks
from course_utils.exercises.catalogue import find_exercise
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


def test_titles_hardly_repeat(deck):
    """The browser tests ask for twice at most; unrendered, a slide may be cut elsewhere, and go on under its title."""
    often = {title: number for title, number in Counter(slide.title for slide in deck.slides).items() if number > 3}
    assert not often, f"say what a slide shows: point at a sentence with 'title', or leave a slide out: {often}"


def test_no_statement_stands_alone_and_none_has_a_tick(deck):
    alone = [slide.id for slide in deck.slides if {block.kind for block in slide.blocks} == {"claims"}]
    assert not alone, f"these show a statement and not what it's about: {alone}"
    assert not [slide.id for slide in deck.slides for block in slide.blocks if block.kind == "claims" and "✓" in block.html]


def test_a_table_has_its_head(deck):
    for slide in deck.slides:
        for block in slide.blocks:
            if block.kind == "table" and "<thead>" in block.html:
                head = re.findall(r"<th[^>]*>(.*?)</th>", block.html.partition("</thead>")[0], re.S)
                assert any(re.sub(r"<[^>]+>", "", cell).strip() for cell in head), slide.id


def test_what_a_cell_prints_is_shown_where_the_cell_says_so(deck):
    """Lines of numbers in columns say what they are: in words beside them, or in a head above them."""
    bare = {}
    for slide in deck.slides:
        for block in slide.blocks:
            lines = re.findall(r"<pre[^>]*>(.*?)</pre>", block.html, re.S) if block.kind == "lines" else []
            rows = [line for text in lines for line in text.splitlines()]
            numbers = [line for line in rows if re.fullmatch(r"[^:=,.]*?(?:\s{2,}[−\d.]+)+\s*", line)]
            heads = [line for line in rows if line.strip() and not re.search(r"\d", line)]
            if len(numbers) > 1 and not heads and 'class="head"' not in block.html:
                bare[slide.id] = numbers[0]
    assert not bare, f"give the cell a 'head', or leave out what it prints: {bare}"


def test_minutes_add_up_to_those_of_the_sections_shown(deck):
    assert deck.minutes == sum(slide.minutes for slide in deck.slides) > 20
    assert all(slide.minutes >= 0 for slide in deck.slides)


def test_a_question_is_asked_without_what_is_only_for_the_notebook():
    asked = [block.html for slide in Reader(find(["01"])[0]).slides for block in slide.blocks if block.kind == "question"]
    assert any("s accuracy on the" in text for text in asked) and not any("next cell" in text for text in asked)


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


IN_CLASS = lectures.Lecture("in_class", "04 in class", (lectures.Stretch("04", None, ("4.1", "4.3")),
                                                       lectures.Stretch("05", (1, 2))))


def test_the_notes_of_a_route_say_its_minutes():
    deck, _ = command.route_deck(IN_CLASS)
    assert sum(_half_minutes(notes.notes(slide, 0)) for slide in deck.slides) / 2 == deck.minutes
    assert {slide.exercise for slide in deck.slides if slide.exercise} == {"4.1", "4.3"}


MINUTES = {"one_hour": 60, "ninety_minutes": 90, "half_a_day": 210}
SLIDES = {"one_hour": (16, 21), "ninety_minutes": (25, 31), "half_a_day": (28, 34)}


@pytest.fixture(params=talks(), ids=lambda path: path.stem, scope="module")
def talk(request, unrendered):
    return talk_deck(request.param)[0]


def test_a_talk_takes_the_time_it_has_and_says_what_to_say_in_every_section(talk):
    parts = parts_of(NOTEBOOKS / "talks" / f"{talk.name}.ipynb")
    assert talk.minutes == sum(minutes for _, minutes in parts) == MINUTES[talk.name]
    low, high = SLIDES[talk.name]
    assert low <= len(talk.slides) <= high
    said = {title: sum(len(text.split()) for slide in talk.slides if slide.section == title for text in slide.say)
            for title in {slide.section for slide in talk.slides}}
    silent = [title for title, words_said in said.items() if words_said < 15]
    assert not silent, f"these slides have no notes: {silent}"


def test_a_talk_shows_a_live_classifier_at_the_beginning_and_a_head_to_switch_off_at_the_end(talk):
    live = [k for k, slide in enumerate(talk.slides) if any("classifier_view" in block.html for block in slide.blocks)]
    assert live[0] <= 2 and live[-1] >= len(talk.slides) - 6 and len(live) == 2


def test_a_talk_has_a_title_for_each_of_its_sections(talk):
    """Only what doesn't fit a slide goes on under the same title; nothing of the notes stands on a slide."""
    titles = Counter(slide.title for slide in talk.slides)
    assert set(titles) == {slide.section for slide in talk.slides} and max(titles.values()) <= 2


def test_half_a_day_sets_three_exercises_and_says_which_notebook_to_open():
    [talk] = [talk_deck(path)[0] for path in talks() if path.stem == "half_a_day"]
    set_work = [slide for slide in talk.slides if slide.exercise]
    assert [slide.exercise for slide in set_work] == ["4.7", "5.6", "8.8"]
    for slide in set_work:
        path = find([slide.exercise.partition(".")[0]])[0]
        assert path.stem in slide.blocks[0].html and f"Exercise {slide.exercise}" in slide.blocks[0].html
        assert len(slide.blocks) >= 2 and "Usual mistakes" in notes.notes(slide, 0)
        low, high = find_exercise(slide.exercise).minutes
        assert slide.minutes >= high, f"{slide.exercise} takes {low} to {high} minutes"


def test_a_section_of_a_talk_without_minutes_is_named(tmp_path):
    notebook = nbformat.read(NOTEBOOKS / "talks" / "ninety_minutes.ipynb", as_version=4)
    del next(cell for cell in notebook.cells if cell.id == "home").metadata["slide"]
    nbformat.write(notebook, tmp_path / "talk.ipynb")
    with pytest.raises(ValueError, match="talk.ipynb, 'Then it takes home the mean of what it found': .* no minutes"):
        parts_of(tmp_path / "talk.ipynb")


def test_an_exercise_in_class_shows_the_table_it_needs():
    slides = command.route_deck(IN_CLASS)[0].slides
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
