"""Where things are: the project, its notebooks, its data, and the folder for what runs make."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
EXERCISES = NOTEBOOKS / "exercises"                      # their records, and the quizzes
EXTRAS = "extras"                                         # in that folder: notebooks beside the numbered ones
FRONT = ("START", "attention_in_an_hour")                 # notebooks without a number, before the numbered ones
REVIEWS = {"R1": ("part_1_review", "09"), "R2": ("part_2_review", "12"),
           "R3": ("part_3_review", "17")}                 # by number: name, what it comes after
NUMBER = r"(?:\d\d[a-z]?|R\d)"                           # of a notebook, in a pattern: 02, 02b, R1
HOUR = "hour"                                             # what stands for a number where the hour's quiz is kept
DATA = ROOT / "data"
RESULTS = DATA / "results"
CHECKPOINTS = DATA / "checkpoints"
ELSEWHERE = "MORE_MODELS.md"        # beside the models of a copy that came without the larger ones


def named_as(number: str) -> str:
    """The pattern of a notebook's file name: '04_*.ipynb' for "04"; the whole name of a review and of the hour."""
    whole = {HOUR: FRONT[1], **{review: name for review, (name, _) in REVIEWS.items()}}
    return f"{whole.get(number, f'{number}_*')}.ipynb"


def output_folder() -> Path:
    """Where figures and models go: COURSE_OUTPUTS, else `outputs` in the project, else `outputs` where Python runs."""
    if named := os.environ.get("COURSE_OUTPUTS"):
        return Path(named)
    here = Path.cwd().resolve()
    for folder in (ROOT, here, *here.parents):
        if (folder / "course_utils").is_dir() and (folder / "pyproject.toml").is_file():
            return folder / "outputs"
    return here / "outputs"
