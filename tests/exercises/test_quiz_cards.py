"""The quizzes as cards: Anki's text format, every question and remark in it, known by names that stay."""

import csv
import html
import re

import pytest

from course_utils.exercises import quizzes
from course_utils.exercises.quizzes import Option, Question, list_quizzes, load_quiz
from course_utils.files.paths import NOTEBOOKS, named_as

QUESTIONS = [(number, question) for number in list_quizzes() for question in load_quiz(number)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file, as bytes."""
    folder = tmp_path_factory.mktemp("cards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_OUTPUTS", str(folder))
        assert quizzes.main([]) == 0
    return (folder / "sheets" / "quiz_cards.txt").read_bytes()


def rows_of(written: bytes) -> list[list[str]]:
    """The cards as a reader of tab-separated files sees them, without the header."""
    lines = [line for line in written.decode("utf-8").split("\n") if not line.startswith("#")]
    return [row for row in csv.reader(lines, delimiter="\t") if row]


def plain(text: str) -> str:
    """HTML as a person reads it."""
    return html.unescape(re.sub("<[^>]*>", "", text.replace("<br>", "\n")))


def test_the_header_says_what_anki_must_know(written):
    header = [line[1:].split(":", 1) for line in written.decode().splitlines() if line.startswith("#")]
    keys = dict(header)
    assert header[0] == ["separator", "tab"] and keys["html"] == "true" and keys["notetype"] == "Basic"
    columns = keys["columns"].split("\t")
    assert [columns[int(keys[f"{name} column"]) - 1] for name in ("guid", "deck", "tags")] == ["name", "deck", "tags"]
    assert b"\r" not in written and written.endswith(b"\n") and not written.startswith(b"\xef\xbb\xbf")


def unmarked(text: str) -> str:
    """A quiz's text without the marks of code and stress."""
    return re.sub(r"\*(\w+)\*", r"\1", text.replace("`", ""))


def test_every_question_is_a_card_with_all_options_and_remarks(written):
    rows = rows_of(written)
    assert len(rows) == len(QUESTIONS) > 60 and {len(row) for row in rows} == {5}
    for (number, question), (name, front, back, deck, tags) in zip(QUESTIONS, rows):
        assert name.endswith(f"/{number}/{question.name}") and deck == quizzes.NAME
        bare = [unmarked(text) for text in (question.text, *(option.text for option in question.options))]
        shown = [line.partition(") ")[2] for line in plain(front).splitlines()[-len(question.options):]]
        assert plain(front).startswith(" ".join(bare[0].split("\n"))) and shown == bare[1:], name
        assert [line[:2] for line in plain(front).splitlines()[-len(shown):]] == ["a)", "b)", "c)", "d)"][: len(shown)]
        first = plain(back).split("\n\n")[0]
        for letter, option in zip("abcd", question.options):
            block = unmarked(f"{letter}) {option.text}\n{option.remark}")
            assert block in plain(back) and option.right == (block == first), name
        assert not any(unmarked(option.remark) in plain(front) for option in question.options)
        assert tags.split()[0].partition("::")[2] in {path.stem for path in NOTEBOOKS.glob(named_as(number))}
        assert (len(tags.split()) == 2) == (question.taught != number)


NASTY = Question("nasty", "04", 'a <b> & "c"\tq\nnext `x < 1`', (
    Option("</div><script>", False, "no: 'a'\tb"), Option("#tags:x", True, "yes\r\nindeed"),
    Option("\t{{c1::x}}", False, "<br>")))


def test_a_card_is_one_line_of_five_columns_whatever_the_question_holds(monkeypatch):
    monkeypatch.setattr(quizzes, "list_quizzes", lambda: ["04"])
    monkeypatch.setattr(quizzes, "load_quiz", lambda number: (NASTY,))
    [card] = quizzes.cards()
    assert not re.search(r"[\t\r\n\"]", "".join(card))
    line = "\t".join(card)
    assert next(csv.reader([line], delimiter="\t")) == card
    assert "<script" not in line and "a &lt;b&gt; &amp; &quot;c&quot;" in card[1] and "<code>x &lt; 1</code>" in card[1]
    assert card[2].startswith("<b>b) #tags:x</b><br>yes<br>indeed<br><br>a)")


def test_a_changed_question_keeps_its_name(monkeypatch):
    changed = NASTY._replace(text="another text", options=NASTY.options[:2])
    monkeypatch.setattr(quizzes, "list_quizzes", lambda: ["04"])
    names = []
    for question in (NASTY, changed):
        monkeypatch.setattr(quizzes, "load_quiz", lambda number, question=question: (question,))
        names.append(quizzes.cards()[0][0])
    assert names[0] == names[1] == f"{quizzes.MARK}/04/nasty"
