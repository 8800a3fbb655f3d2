"""What the speaker reads: minutes, what to say, usual wrong answers, and the one thing to remember.

Does: divide a stretch's minutes among its slides, and collect the notes of each from the notebook and from the page for
instructors. Does not: choose slides (see `deck`).
"""

from __future__ import annotations

import html
import re
from functools import cache

from course_tools.slides.blocks import inline, rendered
from course_tools.slides.deck import Slide
from course_utils.exercises.catalogue import find_exercise
from course_utils.files.paths import NOTEBOOKS, NUMBER

READ_ALOUD = 1 / 130                                      # minutes for a word of the notes
READ_ALONE = 1 / 40                                       # and for a word of printed prose, which people judge
BASE = {"title": 0.6, "question": 1.6, "quiz": 1.2, "exercise": 5.0, "slide": 0.8}
STEP = 2                                                  # half minutes


@cache
def usual_predictions() -> tuple[tuple[str, str, str], ...]:
    """The rows of 'What people predict, and what happens': where, what people predict, what we measure."""
    page = (NOTEBOOKS / "for_instructors.md").read_text(encoding="utf-8")
    table = page.split("## What people predict, and what happens")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", table, re.M)
    return tuple(row for row in rows if row[0] not in ("where",) and not row[0].startswith("---"))


@cache
def moments() -> dict[str, str]:
    """By notebook number, the one thing to remember, from the table of minutes; the hour's is the README's."""
    page = (NOTEBOOKS / "for_instructors.md").read_text(encoding="utf-8")
    found = {row[0]: row[1] for row in re.findall(rf"^\| ({NUMBER}) (?:[^|\n]*\|){{5}} ([^|\n]+) \|$", page, re.M)}
    readme = (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8")
    return {**found, "hour": re.search(r"^\| \[Attention in an hour\].*\| ([^|]+) \|$", readme, re.M)[1]}


def prediction_row(beginning: str) -> tuple[str, str, str]:
    """The row whose first column begins so. Raises ValueError where there's none, or more than one."""
    rows = [row for row in usual_predictions() if row[0].startswith(beginning)]
    if len(rows) != 1:
        raise ValueError(f"'people' names {beginning!r}, and {len(rows)} rows of 'What people predict, and what happens' in "
                         "notebooks/for_instructors.md begin like that; expected one")
    return rows[0]


def weight(slide: Slide) -> float:
    """How long a slide takes, before the minutes of its stretch are divided among all."""
    if slide.kind == "exercise":
        low, high = find_exercise(slide.exercise).minutes
        return (low + high) / 2
    read = sum(len(text.split()) for text in slide.say) * READ_ALOUD
    shown = sum({"view": 1.2, "picture": 0.7, "table": 0.4, "code": 0.6}.get(block.kind, 0.0) for block in slide.blocks)
    alone = sum(len(re.findall(r"[a-z]{2,}", re.sub(r"<[^>]+>", " ", block.html), re.I)) for block in slide.blocks
                if block.kind == "lines" and 'class="printed"' in block.html) * READ_ALONE
    return BASE[slide.kind] + read + shown + alone


def share(slides: list[Slide], minutes: float) -> None:
    """Give each slide its part of the minutes, in half minutes that add up to the whole."""
    weights = [weight(slide) for slide in slides]
    whole, passed, given = sum(weights), 0.0, 0
    for slide, one in zip(slides, weights):
        passed += one
        until = round(STEP * minutes * passed / whole)
        slide.minutes, given = (until - given) / STEP, until


def clock(minutes: float) -> str:
    """'2 minutes', 'half a minute', '1½ minutes'; '' for none."""
    whole, half = int(minutes), minutes % 1 >= 0.5
    if not whole:
        return "half a minute" if half else ""
    return f"{whole}{'½' if half else ''} minute{'s' if half or whole > 1 else ''}"


def notes(slide: Slide, until: float) -> str:
    """A slide's notes as HTML: minutes, `until` counted from the deck's beginning, then what to say."""
    number = slide.id.partition("-")[0]
    time = clock(slide.minutes) or "in passing"
    found = [f'<p class="clock"><b>{time[0].upper()}{time[1:]}</b> · by minute {int(until + 0.5)}</p>']
    found += [rendered(text) for text in slide.say if text.strip()]
    if not any(text.strip() for text in slide.say):
        found += _about(slide)
    if slide.checked:
        found += ["<p><b>Checked whenever the notebook runs:</b></p>", *slide.checked]
    if slide.people:
        _, predicted, measured = prediction_row(slide.people)
        found.append(f"<p><b>Usual prediction:</b> {inline(predicted)}. <b>Measured:</b> {inline(measured)}.</p>")
    if slide.exercise:
        found.append(usual_mistakes(slide.exercise))
    if slide.kind == "title" and number in moments():
        found.append(f"<p><b>The one thing to remember:</b> {inline(moments()[number])}.</p>")
    return "\n".join([*found, *(f"<p><b>{html.escape(label)}</b> {inline(text)}</p>" for label, text in slide.notes)])


def _about(slide: Slide) -> list[str]:
    """What helps the speaker on a slide without prose of its own."""
    kinds = {block.kind for block in slide.blocks}
    if "view" in kinds:
        return ["<p>Live: use the mouse, or Tab and the keys it names. Page Down goes on to the next slide.</p>"]
    if "picture" in kinds:
        alt = re.search(r'alt="([^"]*)"', next(block.html for block in slide.blocks if block.kind == "picture"))[1]
        return [f"<p>The picture in words: {alt}</p>"]
    return ["<p>Goes on from the slide before.</p>"] if slide.kind == "slide" else []


def usual_mistakes(number: str) -> str:
    """An exercise's known mistakes, with what to say about each, and where its answer is."""
    rows = [f"<li><b>{html.escape(one.name.replace('-', ' '))}:</b> {html.escape(one.why)}</li>"
            for one in find_exercise(number).mistakes]
    where = f'<code>exercise("{number}").solution()</code> prints it, and <code>make solutions</code> writes all of them.'
    return f"<p><b>Usual mistakes:</b></p><ul>{''.join(rows)}</ul><p><b>The answer:</b> {where}</p>"
