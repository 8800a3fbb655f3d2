"""What the notebooks say of their exercises: `export` writes it to notebooks/exercises/n04/notebook.json.

Does: read the cells that begin with '### Exercise 4.2 Title (10–15 minutes)'. Does not: write anything.
"""

import json
import re
import sys
from pathlib import Path

EXERCISE = re.compile(r"### Exercise (?P<number>\d+\.\d+) (?P<title>.+) \((optional, )?(?P<low>\d+)–(?P<high>\d+) minutes\)")


def read_questions(notebook_folder: Path) -> dict[str, str]:
    """Return {"n04": JSON} for every notebook with exercises: number, title, minutes and words of each.

    Ends the program for a cell whose heading is not '### Exercise 4.2 Title (10–15 minutes)', or is out of order.
    """
    lessons = {}
    for path in sorted(notebook_folder.glob("[0-9]*.ipynb")):
        told: dict = {}
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            heading, _, words = "".join(cell["source"]).partition("\n")
            if cell["cell_type"] != "markdown" or not heading.startswith("### Exercise"):
                continue
            found, number = EXERCISE.fullmatch(heading.strip()), f"{int(path.name[:2])}.{len(told) + 1}"
            if not found or found["number"] != number:
                sys.exit(f"{path.name} has a cell that begins with {heading!r}; expected '### Exercise {number} Title "
                         "(10–15 minutes)', with the title and the minutes of this exercise")
            minutes = [int(found["low"]), int(found["high"])]
            told[number] = {"title": found["title"], "minutes": minutes, "question": words.strip()}
        if told:
            lessons[f"n{path.name[:2]}"] = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
    return lessons
