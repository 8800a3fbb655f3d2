"""What each notebook asks, one folder a notebook: n04/ask.py, n04/answers.py and n04/quiz.yaml.

`ask` says what is asked, which inputs are tried and which mistakes are known, `answers` what the course answers and what
each known mistake would write. In an edition without solutions `sealed.json` stands in place of `answers`.
"""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def lesson_of(number: str) -> str:
    """The name of the lesson that an exercise or a notebook belongs to: 'n04' for "4.2" and for "04"."""
    return f"n{number.partition('.')[0].zfill(2)}"
