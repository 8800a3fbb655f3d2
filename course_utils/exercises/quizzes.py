"""Quizzes and predictions: questions with a remark on every option, and guesses that are saved until you see the result.

Does: read QUIZ and GUESSES in notebooks/exercises/n04.py, show questions, save answers, say what idea a guess comes from;
write all questions
as cards in the text format that Anki 2.1.54 and later import (`python -m course_utils quiz-cards`). A card is known by its
question's name, which never changes, so a file that is imported again updates the cards and keeps what Anki has recorded.
Does not: judge functions (see `judge`).
"""

import argparse
import html
import os
import re
from fractions import Fraction
from typing import NamedTuple

import yaml

from course_utils.exercises import record
from course_utils.exercises.folder import list_lessons, quiz_of
from course_utils.files import write_text
from course_utils.files.paths import HOUR, NOTEBOOKS, NUMBER, named_as, output_folder

LETTERS = "abcdefgh"
CALLED = {"QUIZ": "quiz", "WARM_UP": "warm-up"}


class Option(NamedTuple):
    """One answer to choose: its `text`, whether it is `right`, and the `remark` for a learner who chooses it."""

    text: str
    right: bool
    remark: str


class Question(NamedTuple):
    """`name` never changes; `taught` is the number of the notebook that teaches the answer."""

    name: str
    taught: str
    text: str
    options: tuple[Option, ...]


def list_quizzes(part: str = "QUIZ") -> list[str]:
    """The numbers of the notebooks that have a quiz, or a WARM_UP, such as "04"; "hour" stands for the hour's."""
    return [lesson[1:] for lesson in list_lessons() if quiz_of(lesson, part)]


def load_quiz(number: str, part: str = "QUIZ") -> tuple[Question, ...]:
    """The questions of a notebook, such as "04": those of its QUIZ, or of its WARM_UP, which has some from earlier ones.

    Raises ValueError for a number without one, or a damaged file.
    """
    text = quiz_of(f"n{number}", part) if re.fullmatch(rf"{NUMBER}|{HOUR}", number) else None
    if text is None:
        known = ", ".join(list_quizzes(part))
        raise ValueError(f"there is no {CALLED[part]} {number!r}; there are {known}")
    questions = []
    for entry in yaml.safe_load(text):
        options = [Option(given.get("text"), bool(given.get("right")), given.get("remark")) for given in entry["options"]]
        whole = set(entry) == {"name", "taught", "question", "options"} and all(o.text and o.remark for o in options)
        if not whole or sum(option.right for option in options) != 1:
            raise ValueError(f"the {CALLED[part]} of {number}, question {entry.get('name')!r}: expected name, taught, "
                             "question and options with text and remark, one of them right")
        questions.append(Question(entry["name"], str(entry["taught"]), entry["question"].strip(), tuple(options)))
    return tuple(questions)


class Quiz:
    """The questions of one notebook, shown as a list whose options open; `answer(1, "b")` explains and saves the answer."""

    def __init__(self, number: str, part: str = "QUIZ"):
        self.number, self.called, self.questions = number, CALLED[part], load_quiz(number, part)

    def answer(self, question: int, letter: str) -> None:
        """Print the remark on an option: answer(1, "b"). If there is no such question or letter, say so."""
        if not isinstance(question, int) or not 1 <= question <= len(self.questions):
            print(f"there is no question {question!r}; the {self.called} has questions 1 to {len(self.questions)}")
            return
        asked = self.questions[question - 1]
        letters = LETTERS[: len(asked.options)]
        chosen = str(letter).strip().strip("()").lower()
        if len(chosen) != 1 or chosen not in letters:
            print(f"there is no option {letter!r}; question {question} has the options {', '.join(letters)}")
            return
        option = asked.options[letters.index(chosen)]
        record.mark("quizzes", f"{self.number}/{asked.name}", {"chosen": chosen, "right": option.right})
        print(f"{'✓' if option.right else '✗'} {question} {chosen}: {option.remark}")

    def __repr__(self) -> str:
        lines = [question_as_text(i, asked, self._from(asked)) for i, asked in enumerate(self.questions, start=1)]
        return "\n".join([*lines, f'Answer with {self.called.replace("-", "_")}("{self.number}").answer(1, "a").'])

    def _repr_html_(self) -> str:
        return "\n".join(question_as_html(i, asked, self._from(asked)) for i, asked in enumerate(self.questions, start=1))

    def _from(self, asked: Question) -> str:
        """The number of the other notebook that teaches the answer, '' if it's this one."""
        return "" if asked.taught == self.number else asked.taught


def question_as_text(i: int, asked: Question, taught: str = "") -> str:
    """A question and its options; `taught` is where its answer is taught, if that is to be said."""
    options = [f"   {letter}) {option.text}" for letter, option in zip(LETTERS, asked.options)]
    return "\n".join([f"{i}. {asked.text}{f' (from {taught})' if taught else ''}", *options])


def question_as_html(i: int, asked: Question, taught: str = "") -> str:
    """The same as HTML; each option opens its remark."""
    again = f" <i>(from {html.escape(taught)})</i>" if taught else ""
    parts = [f"<p><b>{i}.</b> {inline(asked.text)}{again}</p>"]
    for letter, option in zip(LETTERS, asked.options):
        sign = "✓" if option.right else "✗"
        parts.append(f"<details style='margin-left:1.5em'><summary>{letter}) {inline(option.text)}</summary>"
                     f"<p style='margin-left:1.5em'>{sign} {inline(option.remark)}</p></details>")
    return "\n".join(parts)


def inline(text: str) -> str:
    """Text of a quiz as HTML: what stands between backticks is code, and *a word* between stars is stressed."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else re.sub(r"(?<![\w*])\*(\w[^*]*?)\*(?!\w)", r"<em>\1</em>", part)
                   for i, part in enumerate(parts))


SIDES = {"higher": "higher", "larger": "higher", "greater": "higher", "more": "higher",
         "lower": "lower", "smaller": "lower", "less": "lower"}             # what a word in a prediction claims


class Prediction:
    """A guess under a name, saved with the progress; `compare` shows it next to the measured value."""

    def __init__(self, name: str, yours=None):
        self.name = name
        if yours is not None and yours is not ...:
            yours = _single(yours)
            record.mark("predictions", name, yours if isinstance(yours, (int, float)) else str(yours))
        self.yours = record.read()["predictions"].get(name)
        if self.yours is None:
            print("○ no prediction yet: put yours in place of None and run the cell again.")
        else:
            print(f"your prediction: {self.yours}")

    def compare(self, measured, unit: str = "", than: float | None = None) -> None:
        """Print the measured value next to the guess; if both are numbers, also how far apart they are.

        A guess in words, such as "higher" or "a bit lower", is right if the measured value is on that side of `than`.
        """
        measured = _single(measured)
        shown = _number(measured) + (f" {unit}" if unit else "")
        if self.yours is None:
            print(f"measured: {shown}")
            return
        line = f"you predicted {_number(self.yours)}; measured: {shown}"
        try:
            guess = _guessed(self.yours, unit)
            gap = float(measured) - guess
        except (TypeError, ValueError, ArithmeticError):
            said = {side for word, side in SIDES.items() if word in str(self.yours).lower()}
            if than is not None and len(said) == 1 and measured != than:
                side = "higher" if measured > than else "lower"
                line += f"; {'right' if said == {side} else 'no'}, it's {side} than {_number(than)}"
            print(line)
        else:
            difference = f"{_number(abs(gap))} {'more' if gap > 0 else 'less'} than you thought" if gap else "the same"
            print(f"{line}; {difference}")
            if remark := remark_on(self.name, guess):
                print(remark)


def _guessed(yours: object, unit: str) -> float:
    """A guess as a number: "3/4" is one as well, and "half" where it is of so many. Raises ValueError for other words."""
    whole = re.fullmatch(r"of (\d+)", unit)
    if whole and str(yours).strip().lower() in ("half", "a half", "one half", "half of them", "exactly half"):
        return int(whole[1]) / 2
    return float(Fraction(str(yours)))


class Guess(NamedTuple):
    """Numbers that somebody may predict, both ends included, and the `remark` on the idea that they come from."""

    low: float
    high: float
    remark: str


def guesses_of(number: str) -> dict[str, list[Guess]]:
    """By prediction, what is said of wrong guesses in a notebook: its GUESSES; {} if it has none."""
    listed = quiz_of(f"n{number}", "GUESSES") if re.fullmatch(rf"{NUMBER}|{HOUR}", number) else None
    return {entry["name"]: [Guess(float(one["from"]), float(one["to"]), one["remark"].strip()) for one in entry["guesses"]]
            for entry in yaml.safe_load(listed or "[]")}


def remark_on(name: str, guess: float) -> str:
    """What is said of a guess: the idea that it comes from, or '' where none is known."""
    found = guesses_of(name.partition("-")[0]).get(name, [])
    return next((one.remark for one in found if one.low <= guess <= one.high), "")


def _single(value):
    """The number in a tensor or array of one; anything else as it is."""
    try:
        return value.item()
    except Exception:  # no tensor, or several numbers
        return value


def _number(value) -> str:
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)


NAME = "Attention from the Ground Up"
MARK = "attention-from-the-ground-up"                       # begins every tag, and what Anki knows a card by
HEADER = ["#separator:tab", "#html:true", "#notetype:Basic", "#columns:name\tFront\tBack\tdeck\ttags", "#guid column:1",
          "#deck column:4", "#tags column:5"]


def one_line(text: str) -> str:
    """HTML without line ends and tabs, which would end a card or a column."""
    return "<br>".join(line.replace("\t", "&emsp;") for line in text.strip().splitlines())


def front(question: Question) -> str:
    """The question, then its options a, b, c, each on a line, as HTML."""
    options = [f"{letter}) {inline(option.text)}" for letter, option in zip(LETTERS, question.options)]
    return one_line("\n".join([f"<b>{inline(question.text)}</b>", *options]))


def back(question: Question) -> str:
    """The right option with its remark, then the others with theirs, as HTML."""
    said = [f"{letter}) {inline(option.text)}<br><i>{inline(option.remark)}</i>" if not option.right else
            f"<b>{letter}) {inline(option.text)}</b><br>{inline(option.remark)}"
            for letter, option in zip(LETTERS, question.options)]
    right = next(i for i, option in enumerate(question.options) if option.right)
    return one_line("\n\n".join([said.pop(right), *said]))


def tags(number: str, question: Question) -> str:
    """The notebook of the quiz, and the one that teaches the answer where that is an earlier one."""
    stems = {taught: next(NOTEBOOKS.glob(named_as(taught))).stem for taught in (number, question.taught)}
    return " ".join(f"{MARK}::{stem}" for stem in stems.values())


def cards() -> list[list[str]]:
    """Of each question of all quizzes in order: what Anki knows the card by, front, back, deck, tags."""
    return [[f"{MARK}/{number}/{question.name}", front(question), back(question), NAME, tags(number, question)]
            for number in list_quizzes() for question in load_quiz(number)]


def main(arguments: list[str] | None = None) -> int:
    """Write the quizzes as cards that Anki can import, to outputs/sheets; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    path, rows = output_folder() / "sheets" / "quiz_cards.txt", cards()
    write_text(path, "\n".join([*HEADER, *("\t".join(row) for row in rows), ""]))
    print(f"{len(rows)} cards for Anki (File, Import): {os.path.relpath(path)}")
    return 0
