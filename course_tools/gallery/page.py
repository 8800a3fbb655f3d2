"""What the gallery's page is put together from, beside its figures: titles, escaped text, and the animations.

Does: Markdown. Does not: draw (see `gallery`, and `course_utils.interactive.animations`).
"""

import json
import re

from course_utils.files.paths import NOTEBOOKS
from course_utils.interactive.animations import ANIMATIONS

PLAYED = {"softmax-sharpening": "04_attention", "causal-mask": "04_attention", "heads": "05_multi_head_attention"}

MOVING = """## In motion

Three animations of about thirteen seconds. Click a picture to see it move; it stops under the pointer, and doesn't move at
all if your system asks for less motion. In the notebooks each has a play button and a slider for its steps.
`python -m course_tools animations` also writes them as GIFs for slides.
"""


def in_motion() -> str:
    """The animations: each as a still picture that links to the one that moves, with the notebook that plays it."""
    parts = [MOVING]
    for name, notebook in PLAYED.items():
        parts.append(f"[![{escaped(ANIMATIONS[name]().alt)}](gallery/{name}-still.svg)](gallery/{name}-moving.svg)\n\n"
                     f"Played step by step in [{title_of(notebook)}]({notebook}.ipynb).\n")
    return "\n".join(parts)


def title_of(notebook: str) -> str:
    """The title of a notebook, such as '04 Attention'."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return next(line[2:].strip() for cell in cells for line in cell["source"] if line.startswith("# "))


def escaped(text: str) -> str:
    """Text escaped so that Markdown shows it unchanged, including '<br />', '[', '*' and '_'."""
    return re.sub(r"([\\`*_\[\]<>&!|~$#])", r"\\\1", text)
