"""The quizzes as cards for Anki: `python -m course_utils quiz-cards` writes outputs/sheets/quiz_cards.txt.

Does: one card for each question, the options in front and what the quiz says about each on the back, in the text format that
Anki 2.1.54 and later import (File, Import). A card is known by its question's name, which never changes, so a file that is
imported again updates the cards and keeps what Anki has recorded of them. Does not: write Anki's own packages.
"""

import argparse
import os

from course_utils.exercises.quizzes import LETTERS, Question, inline, list_quizzes, load_quiz
from course_utils.files import write_text
from course_utils.files.paths import NOTEBOOKS, output_folder

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
    stems = {taught: next(NOTEBOOKS.glob(f"{taught}_*.ipynb")).stem for taught in (number, question.taught)}
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
