"""A notebook as slides: which cell begins one, what comes as a step, and what the speaker says.

A cell tagged `slide` begins a slide, `fragment` adds a step to the one before, and `notes` is only for the speaker. A cell's
metadata may point at what to show, under "slide":

    show      sentences by their first words, in this cell or its section; "A … b": from the words A to the words b;
              "A :": the sentence ends in a colon, before a formula or a list
    title     the sentence that stands above the slide, pointed at in the same way; otherwise its section's heading
    hide      what not to show: kinds of parts or outputs, or parts and lines by their first words
    context   sentences that stand above the question of a prediction
    ask       the sentences of that question that are shown, by their first words; otherwise all
    code      true: the cell's code; or a list of first words: those lines
    rows      the rows of a table that are shown, by their first words
    also      ["claims"]: the statements that a cell with a picture checks, otherwise left to the notes
    steps     true: what follows the first part comes step by step, a table row by row
    table     for an exercise: the cell whose table stands under the task, by its id
    say       the sentences of this cell (or section) that the speaker's notes have, by their first words; otherwise, of a
              cell with prose, all; [] for what only a reader of the notebook needs
    minutes   in a talk, how long the slide takes; `part` names the part that begins there
    people    the row of 'What people predict, and what happens' that belongs here, by its first words

Does: make slides of pictures, tables and prose, with one idea each, a prediction before its result. Does not: render a page
(see `page`) or fill in minutes (see `notes`).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from course_tools.slides import blocks as made
from course_tools.slides.blocks import Block
from course_tools.slides.pictures import present_pictures
from course_tools.slides.prose import ASKED, Part, names, parts, plain, pointed, sentences, shown
from course_utils.copies.notebooks import number_of
from course_utils.exercises.catalogue import find_exercise
from course_utils.exercises.quizzes import LETTERS, Question, load_quiz
from course_utils.exercises.quizzes import inline as quiz_inline

OPTIONS = {"show", "title", "hide", "context", "ask", "code", "rows", "also", "say", "people", "steps", "table",
           "minutes", "part"}
WRITE_IT_DOWN = "Let everybody write down a number before you go on."


@dataclass
class Slide:
    """One slide: `id` for links, `title` as Markdown, `blocks`, and for the speaker what to `say` (Markdown) and `people`,
    the row of usual predictions. `exercise` is an exercise's number where the slide sets one; `minutes` are filled in later.
    """

    id: str
    title: str
    section: str
    kind: str = "slide"                                   # or 'title', 'question', 'exercise', 'quiz', 'closing'
    blocks: list[Block] = field(default_factory=list)
    say: list[str] = field(default_factory=list)
    people: str = ""
    checked: list[str] = field(default_factory=list)      # as HTML: statements that only the speaker sees
    exercise: str = ""
    notebook: str = ""                                    # its title
    minutes: float = 0.0
    notes: list[tuple[str, str]] = field(default_factory=list)


class Reader:
    """Goes through a notebook's cells once; `slides` are the result."""

    def __init__(self, path: Path, exercises: tuple[str, ...] = ()):
        self.stem, self.number = path.stem, number_of(path) or "hour"
        self.cells = nbformat.read(path, as_version=4).cells
        self.pictures = present_pictures(path.stem)
        self.files: dict[str, bytes] = {}                 # by address within the decks' folder
        self.wanted = exercises
        self.slides: list[Slide] = []
        self.section, self.prose, self.waiting = "", "", []
        self.notebook = plain(self.cells[0].source.partition("\n")[0].lstrip("# "))
        self.asked: Slide | None = None
        for index, cell in enumerate(self.cells):
            try:
                self._read(index, cell)
            except ValueError as error:
                raise ValueError(f"{path.name}, cell {cell.id!r}: {error}") from None
        for slide in self.slides:
            slide.notebook = self.notebook

    def _read(self, index: int, cell) -> None:
        tags, options = cell.metadata.get("tags", []), cell.metadata.get("slide", {})
        if set(options) - OPTIONS:
            raise ValueError(f"the metadata 'slide' has {sorted(set(options) - OPTIONS)}; expected of {sorted(OPTIONS)}")
        if cell.cell_type == "markdown":
            for piece, chosen in _by_heading(cell, options):
                self._prose(index, piece, tags, chosen)
        elif cell.source.startswith("quiz("):
            self._quiz()
        elif "exercise" not in tags:
            self._code(cell, tags, options)

    def _prose(self, index: int, cell, tags: list[str], options: dict) -> None:
        source = cell.source
        heading = next((part.text for part in parts(source) if part.kind == "heading"), "")
        if heading.startswith("## ") or index == 0:
            if self._shows_section():                     # what was said after the section's last slide
                self.slides[-1].say += self.waiting
            self.section, self.prose = heading.lstrip("# "), self._section_prose(index)
            self.waiting = []
        if index == 0:
            self._opening(cell, options)
        elif heading.startswith("### Exercise"):
            self._exercise(index, cell, heading, tags, options)
        elif heading == "## Check yourself" or "notes" in tags:
            if "notes" in tags and self.slides:
                self.slides[-1].say.append(source)
        elif "slide" in tags or "fragment" in tags:
            self._tagged(cell, heading, tags, options)
        else:
            self._untagged(cell, options)

    def _section_prose(self, index: int) -> str:
        """All prose of the section that begins at this cell."""
        found = []
        for cell in self.cells[index:]:
            if cell.cell_type == "markdown":
                if found and re.match(r"## ", cell.source):
                    break
                found.append(cell.source)
        return "\n\n".join(found)

    def _opening(self, cell, options: dict) -> None:
        every = parts(cell.source)
        objectives = [part for part in every if part.kind == "list"][:1]
        lead = shown("\n\n".join(part.text for part in every if part.kind in ("paragraph", "code")
                                 and not part.text.startswith(("**What you", "**Before you", "**Time"))),
                     options.get("show"), tuple(options.get("hide", ())))
        title = Slide(f"{self.number}-{cell.id}", self.section, self.section, "title", say=[cell.source.partition("\n")[2]])
        title.blocks = [made.of_part(part) for part in lead]
        goals = Slide(f"{self.number}-objectives", "What you will be able to do", self.section,
                      blocks=[made.of_part(part) for part in objectives])
        self.slides += [title, goals] if objectives else [title]

    def _begin(self, cell, options: dict, heading: str = "", kind: str = "slide") -> Slide:
        """A new slide, with a title by pointer, by heading, or the section's."""
        title = re.sub(r"^\d+\. ", "", re.sub(r"^#+ ", "", heading) or self.section)
        if "title" in options:
            title = pointed([options["title"]], cell.source if cell.cell_type == "markdown" else "", self.prose)[0].text
            title = title.removeprefix("- ").removesuffix(".")
        slide = Slide(self._free(f"{self.number}-{cell.id}"), title, self.section, kind, people=options.get("people", ""))
        self.slides.append(slide)
        return slide

    def _free(self, name: str) -> str:
        taken = {slide.id for slide in self.slides}
        return next(one for one in [name, *(f"{name}-{k}" for k in range(2, 99))] if one not in taken)

    def _put(self, block: Block, step: bool, cell) -> None:
        """Add a block to the last slide; where it doesn't fit, it begins another, with the same title."""
        last = self.slides[-1]
        if last.kind in ("exercise", "title", "quiz") or not made.fits(last.blocks, block):
            more = Slide(self._free(f"{self.number}-{cell.id}"), last.title, self.section)
            self.slides.append(more)
            step = False
        self.slides[-1].blocks.append(block._replace(step=step and bool(self.slides[-1].blocks)))

    def _tagged(self, cell, heading: str, tags: list[str], options: dict) -> None:
        chosen = shown(cell.source, options.get("show"), tuple(options.get("hide", ())), self.prose)
        questions = [part for part in chosen if part.kind == "question"]
        rest = [part for part in chosen if part.kind != "question"]
        begins = "slide" in tags or not self.slides or self.slides[-1].section != self.section
        if begins and rest:
            self._begin(cell, {**options, "people": "" if questions else options.get("people", "")}, heading)
        for part in rest:
            block, later = made.of_part(part), bool(options.get("steps")) and part is not rest[0]
            self._put(made.row_by_row(block) if options.get("steps") else block, later or not begins, cell)
        if rest:
            self.slides[-1].say += [*self.waiting, _spoken(cell.source, options)]
            self.waiting = []
        if questions:
            self._ask(cell, questions, options, small=bool(rest) and "context" not in options)
        if not rest:                                      # what isn't shown is said all the same
            spoken, self.waiting = [*self.waiting, _spoken(cell.source, options)], []
            if questions:
                self.slides[-1].say[:0] = spoken
            else:
                self.waiting = spoken

    def _untagged(self, cell, options: dict) -> None:
        questions = [part for part in parts(cell.source) if part.kind == "question"]
        about, _, rest = _spoken(cell.source, options).partition("\n\n")
        if cell.id.endswith("-after") and self._shows_section() and not self.waiting and not questions:
            self.slides[-1].say.append(about)             # about what was just shown; then comes the next step
            self.waiting += [rest] if rest else []
        else:
            self.waiting.append(_spoken(cell.source, options))
        if questions and self._shows_section():
            self._ask(cell, questions, options, small=False)

    def _shows_section(self) -> bool:
        return bool(self.slides) and self.slides[-1].section == self.section

    def _ask(self, cell, questions: list[Part], options: dict, small: bool) -> None:
        """The question of a prediction: on the slide of its cell if that is short, else on one of its own."""
        asked = questions[0]
        if "ask" in options:
            asked = asked._replace(text=" ".join(part.text for part in pointed(options["ask"], asked.text)))
        question = made.of_part(asked)
        last = self.slides[-1]
        if not (small and last.blocks and sum(block.height for block in last.blocks) + question.height <= 330):
            last = self._begin(cell, {key: value for key, value in options.items() if key == "people"})
            for part in pointed(options.get("context", []), cell.source, self.prose):
                last.blocks.append(made.of_part(part))
        last.kind, last.people = "question", options.get("people", "")
        last.blocks.append(question)
        last.say += [*self.waiting, WRITE_IT_DOWN]
        self.waiting = []
        self.asked = last

    def _exercise(self, index: int, cell, heading: str, tags: list[str], options: dict) -> None:
        pattern = r"### Exercise (\S+) (.*?) \((?:optional, )?(\d+)–(\d+) minutes\)"
        number, title, low, high = re.match(pattern, heading).groups()
        if "slide" not in tags and number not in self.wanted:
            return
        slide = Slide(self._free(f"{self.number}-{cell.id}"), f"Exercise {number}: {title}", self.section, "exercise",
                      exercise=number, say=[_spoken(cell.source, options)])
        hide = tuple(options.get("hide", ()))
        task = shown(cell.source, options["show"], hide, self.prose) if "show" in options else _task(cell.source, hide)
        slide.blocks = [made.of_part(part) for part in task]
        if "table" in options:
            slide.blocks += self._table_of(options["table"])
        if find_exercise(number).given:                   # code to repair
            slide.blocks.append(made.of_code(self.cells[index + 1].source.partition("\nexercise(")[0]))
        slide.blocks.append(Block("minutes", f'<p class="given">{low}–{high} minutes</p>', 60))
        self.slides.append(slide)

    def _table_of(self, name: str) -> list[Block]:
        """The tables that the cell with this id shows. Raises ValueError where there's none."""
        found = [block for cell in self.cells if cell.id == name for block in made.of_outputs(cell.get("outputs", []))
                 if block.kind == "table"]
        if not found:
            raise ValueError(f"'table' names the cell {name!r}, which isn't there or shows no table")
        return found

    def _quiz(self) -> None:
        for k, question in enumerate(load_quiz(self.number), start=1):
            slide = Slide(f"{self.number}-quiz-{k}", f"Check yourself, question {k}", "Check yourself", "quiz")
            slide.blocks = quiz_blocks(question)
            self.slides.append(slide)

    def _code(self, cell, tags: list[str], options: dict) -> None:
        hide = tuple(options.get("hide", ()))
        outputs = made.of_outputs(cell.get("outputs", []), hide, tuple(options.get("rows", ())))
        measured = [block for block in outputs if block.kind == "measured"]
        if measured and self.asked is not None and ".compare(" in cell.source:
            for block in measured:
                if sum(one.height for one in self.asked.blocks) + block.height <= made.ROOM:
                    self.asked.blocks.append(block._replace(step=True))
            self.asked = None
        if not {"slide", "fragment"}.intersection(tags):
            return
        found = [block for block in outputs if block.kind != "measured"]
        if code := options.get("code"):
            found.insert(0, made.of_code(re.sub(r"^#\| .*\n", "", cell.source), None if code is True else code))
        if "picture" not in hide:
            found += self._pictures(cell)
        captions = pointed(options.get("show", []), "", self.prose)
        begins = "slide" in tags or not self._shows_section()
        if not (found or captions):
            return
        self._place(cell, found, captions, options, begins)

    def _pictures(self, cell) -> list[Block]:
        """A cell's pictures as drawn for slides; those not drawn yet as the notebook shows them."""
        drawn = [(one.path.name, one.alt, one.path.read_bytes()) for one in self.pictures.get(cell.id, [])]
        saved = [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
        drawn = drawn or [(f"{cell.id}-{k}.png", output["metadata"].get("image/png", {}).get("alt", ""),
                           base64.b64decode(output["data"]["image/png"])) for k, output in enumerate(saved)]
        found = []
        for name, alt, content in drawn:
            self.files[f"pictures/{self.stem}/{name}"] = content
            found.append(made.of_picture(f"pictures/{self.stem}/{name}", alt))
        return found

    def _place(self, cell, found: list[Block], captions: list[Part], options: dict, begins: bool) -> None:
        """Captions, then pictures and pieces, one a slide, then everything else: as steps unless the cell begins a slide."""
        large = [block for block in found if block.kind in ("picture", "view")]
        rest = [block for block in found if block.kind not in ("picture", "view")]
        to_notes = large and "claims" not in options.get("also", ())
        checked = [block for block in rest if to_notes and block.kind == "claims"]
        rest = [block for block in rest if block not in checked]
        fresh = begins or large and not (made.fits(self.slides[-1].blocks, large[0]) and not captions)
        if fresh:
            self._begin(cell, options)
        for part in captions:
            self._put(made.of_part(part), not fresh, cell)
        for block in [*large, *rest]:
            step = not fresh and not large or block.kind == "claims" and len(self.slides[-1].blocks) > 0
            self._put(block, step, cell)
        self.slides[-1].checked += [block.html for block in checked]
        if options.get("people"):
            self.slides[-1].people = options["people"]
        said = [part.text for part in pointed(options.get("say", []), "", self.prose)]
        self.slides[-1].say = [*self.waiting, *self.slides[-1].say, " ".join(said)]
        self.waiting = []


def _by_heading(cell, options: dict) -> list[tuple]:
    """A cell of prose, cut where a heading stands in its middle; each pointer goes with the part that it names."""
    sources = [text for text in re.split(r"\n(?=#{2,3} )", cell.source) if text.strip()]
    if len(sources) == 1:
        return [(cell, options)]
    found, left = [], list(options.get("show", []))
    for k, source in enumerate(sources):
        mine = [one for one in left if names(one, source)] if k + 1 < len(sources) else left
        left = [one for one in left if one not in mine]
        chosen = {key: value for key, value in options.items() if key not in ("title", "people") or k + 1 == len(sources)}
        if "show" in options:
            chosen["show"] = mine
        if "say" in options:
            chosen["say"] = [one for one in options["say"] if names(one, source)]
        if "hide" in options:
            chosen["hide"] = [one for one in options["hide"]
                              if any(one == part.kind or part.text.startswith(one) for part in parts(source))]
        found.append((nbformat.from_dict({**cell, "source": source}), chosen))
    return found


def _spoken(source: str, options: dict) -> str:
    """A cell's prose for the notes: without its heading, or the sentences to say."""
    if "say" in options:
        return " ".join(part.text for part in pointed(options["say"], source))
    return re.sub(r"^#+ .*\n*", "", source).replace(ASKED, "").strip()


def _task(source: str, hide: tuple[str, ...]) -> list[Part]:
    """An exercise's task: whole if it has at most sixty words, else its first three sentences, formulas and tables."""
    every = [part for part in parts(source) if part.kind not in ("heading", "html", *hide)]
    if sum(len(part.text.split()) for part in every if part.kind == "paragraph") <= 60:
        return every
    left, chosen = 3, []
    for part in every:
        if part.kind != "paragraph":
            chosen.append(part)
        elif left:
            kept = sentences(part.text)[:left]
            left -= len(kept)
            chosen.append(Part("paragraph", " ".join(kept)))
    return chosen


def quiz_blocks(question: Question) -> list[Block]:
    """A question with its options; the right one's mark and remark come as a step."""
    options = "".join(f'<li{" class=right" if one.right else ""}>{quiz_inline(one.text)}</li>' for one in question.options)
    right = next(one for one in question.options if one.right)
    letter = LETTERS[question.options.index(right)]
    return [Block("text", f'<p class="asked">{quiz_inline(question.text)}</p>', made.lines_of(question.text) * made.LINE),
            Block("options", f'<ol class="options" type="a">{options}</ol>',
                  sum(made.lines_of(one.text, width=made.WIDTH - 60) * made.LINE + 8 for one in question.options)),
            Block("answer", f'<p class="answer"><b>{letter})</b> {quiz_inline(right.remark)}</p>',
                  made.lines_of(right.remark, 26) * 37 + 20, step=True)]

