"""`python -m course_utils ask "…"`: where in the course's notebooks a question is answered; with weights, an answer.

Does: find passages by BM25 over the originals of the notebooks, print where they stand, let a chat model answer from them
where this machine has one, and say when nothing good was found. Does not: read learners' copies or the exercises' answers,
or download anything.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
import textwrap

from course_utils.copies.notebooks import extras
from course_utils.files.paths import DATA, NOTEBOOKS
from course_utils.files.text import print_on_any_console
from course_utils.retrieval import BM25, Passage, cut, grounded_prompt, sections_of, words_of

__all__ = ["ENOUGH", "course_index", "course_passages", "course_questions", "index_words", "judged"]

ENOUGH = 0.2                                            # of the best score that a question's words could reach
REFUSED = re.compile(r"\b(don't|do not|doesn't|does not|can't|cannot|isn't|is not|not) (know|say|mention|contain|provide|"
                     r"answer|possible to|mentioned|provided|clear|sure)|no (information|mention)|\bunknown\b")


def course_passages() -> list[Passage]:
    """The passages of START, the numbered notebooks and the extras, in their order; a file that can't be read is left out."""
    files = [NOTEBOOKS / "START.ipynb", *sorted(NOTEBOOKS.glob("[0-9][0-9]*.ipynb")), *extras()]
    passages = []
    for file in files:
        try:
            cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        except (OSError, ValueError, KeyError):
            continue
        passages += cut(file.stem, cells)
    return passages


def index_words(passage: Passage) -> list[str]:
    """What a passage is found by: its words, those of its notebook's title twice, of its section's three times."""
    return words_of(f"{passage.text} {(passage.title + ' ') * 2} {(passage.section + ' ') * 3}")


def course_index(passages: list[Passage], k1: float = 1.2, b: float = 0.75) -> BM25:
    """BM25 over these passages."""
    return BM25([index_words(passage) for passage in passages], k1, b)


@functools.cache
def course_questions(name: str = "course") -> list[dict]:
    """The questions in data/questions: 'course' to score on, 'for_settings' to choose by. Each says which sections answer."""
    lines = (DATA / "questions" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def judged(reply: str, accepted: list[str]) -> str:
    """'right' where the reply has one of the accepted words or beginnings of words; else 'refused' or 'wrong'.

    Where nothing is accepted, since no page answers, a refusal is what's right, and it's called 'refused'.
    """
    said = reply.lower().replace("’", "'")
    if any(re.search(rf"(?<!\w){re.escape(one.lower())}", said) for one in accepted) and not REFUSED.match(said):
        return "right"
    return "refused" if not said.strip() or REFUSED.search(said) else "wrong"
