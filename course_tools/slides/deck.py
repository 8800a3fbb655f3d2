"""A notebook as slides: which cell begins one, what comes as a step, and what the speaker says.

A cell tagged `slide` begins a slide, `fragment` adds a step to the one before, and `notes` is only for the speaker. A cell's
metadata may point at what to show, under "slide":

    show      sentences by their first words, in this cell or its section; "A … b": from the words A to the words b;
              "A :": the sentence ends in a colon, before a formula or a list
    title     the sentence that stands above the slide, pointed at in the same way; otherwise its section's heading
    called    a title in words of its own, where the prose has no such sentence
    hide      what not to show: kinds of parts or outputs, or parts and lines by their first words
    context   sentences that stand above the question of a prediction
    ask       the sentences of that question that are shown, by their first words; otherwise all
    code      true: the cell's code; or a list of first words: those lines
    rows      the rows of a table that are shown, by their first words
    also      "claims": the statements that a cell with a picture checks, otherwise left to the notes; "lines": what a cell
              prints, otherwise not shown
    head      what stands above printed lines, where they have columns
    steps     true: what follows the first part comes step by step, a table row by row
    table     for an exercise: the cell whose table stands under the task, by its id
    say       the sentences of this cell (or section) that the speaker's notes have, by their first words; otherwise, of a
              cell with prose, all; [] for what only a reader of the notebook needs
    minutes   in a talk, how long the slide takes; `part` names the part that begins there
    exercise  in a talk, the number of an exercise that people do there: the slide shows its task below this cell's prose
    people    the row of 'What people predict, and what happens' that belongs here, by its first words

A title that would stand a second time in a deck gives way to what its slide says: the bold words its prose begins with, a
short first sentence, the question asked, or the first statement checked.

Does: make slides of pictures, tables and prose, with one idea each, a prediction before its result. Does not: render a page
(see `page`) or fill in minutes (see `notes`).
"""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from course_tools.slides import blocks as made
from course_tools.slides.blocks import Block
from course_tools.slides.pictures import present_pictures
from course_tools.slides.prose import ASKED, LEAD, SHORT, Part, names, parts, plain, pointed, sentences, shown, words
from course_utils.copies.notebooks import find, number_of
from course_utils.exercises.catalogue import find_exercise
from course_utils.exercises.quizzes import LETTERS, Question, load_quiz
from course_utils.exercises.quizzes import inline as quiz_inline

OPTIONS = {"show", "title", "called", "hide", "context", "ask", "code", "rows", "also", "say", "people", "steps", "table",
           "minutes", "part", "exercise", "head"}
A_LINE, TITLE_LINE = 50, 48                               # characters of a line of a title, and its height
LONGEST = 110                                             # characters of a title that a slide takes from its own words
# what speaks of the page, or of what was said before
OF_THE_NOTEBOOK = re.compile(r"\b(cells?|below|above|notebooks?|click|run|exercises?|folded|your|you|yours|here|it's|its|"
                             r"they|these|this|that|it)\b|[\[\]`]|\?$", re.I)
WRITE_IT_DOWN = "Let everybody write down a number before you go on."


@dataclass
class Slide:
    """One slide: `id` for links, `title` as Markdown, `blocks`, and for the speaker what to `say` (Markdown) and `people`,
    the row of usual predictions. `exercise` is an exercise's number where the slide sets one; `minutes` are filled in later.
    """

    id: str
    title: str
    section: str
    kind: str = "slide"                                   # or 'title', 'question', 'exercise', 'quiz'
    blocks: list[Block] = field(default_factory=list)
    say: list[str] = field(default_factory=list)
    people: str = ""
    checked: list[str] = field(default_factory=list)      # as HTML: statements that only the speaker sees
    exercise: str = ""
    notebook: str = ""                                    # its title
    minutes: float = 0.0
    spare: list[str] = field(default_factory=list)        # sentences that follow the one it shows, where that was the rule's
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
        if path.parent.name != "talks":                   # whose titles are written
            _name(self.slides)
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
        title = options.get("called", title)
        slide = Slide(self._free(f"{self.number}-{cell.id}"), title, self.section, kind, people=options.get("people", ""))
        self.slides.append(slide)
        return slide

    def _free(self, name: str) -> str:
        taken = {slide.id for slide in self.slides}
        return next(one for one in [name, *(f"{name}-{k}" for k in range(2, 99))] if one not in taken)

    def _put(self, block: Block, step: bool, cell) -> None:
        """Add a block to the last slide; where it doesn't fit, it begins another, with the same title."""
        last = self.slides[-1]
        if block.kind == "claims" and not made.fits(last.blocks, block):
            last.checked.append(block.html)
            return
        if last.kind in ("exercise", "title", "quiz") or not made.fits(last.blocks, block):
            title = cell.metadata.get("slide", {}).get("called", last.title)
            more = Slide(self._free(f"{self.number}-{cell.id}"), title, self.section)
            self.slides.append(more)
            step = False
        self.slides[-1].blocks.append(block._replace(step=step and bool(self.slides[-1].blocks)))

    def _tagged(self, cell, heading: str, tags: list[str], options: dict) -> None:
        if "exercise" in options:
            self._set_work(cell, heading, options)
            return
        chosen = shown(cell.source, options.get("show"), tuple(options.get("hide", ())), self.prose)
        questions = [part for part in chosen if part.kind == "question"]
        rest = [part for part in chosen if part.kind != "question"]
        begins = "slide" in tags or not self.slides or self.slides[-1].section != self.section
        if begins and rest:
            self._begin(cell, {**options, "people": "" if questions else options.get("people", "")}, heading)
        for part in rest:
            block, later = made.of_part(part), bool(options.get("steps")) and part is not rest[0]
            self._put(made.row_by_row(block) if options.get("steps") else block, later or not begins, cell)
        if begins and len(rest) == 1 and rest[0].kind == "paragraph":
            whole = [one for part in parts(cell.source) if part.kind == "paragraph" for one in sentences(part.text)]
            at = next((k for k, one in enumerate(whole) if one in rest[0].text), len(whole))
            self.slides[-1].spare = [one for one in whole[at + 1:] if one not in rest[0].text and not one.endswith(":")]
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
            last = self._begin(cell, {key: value for key, value in options.items() if key in ("people", "called")})
            for part in pointed(options.get("context", []), cell.source, self.prose):
                last.blocks.append(made.of_part(part))
        last.kind, last.people = "question", options.get("people", "")
        last.blocks += [question] if asked.text else []   # else the context asks
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

    def _set_work(self, cell, heading: str, options: dict) -> None:
        """A talk's slide for an exercise: what this cell says, then the task as the exercise's own notebook sets it."""
        number = options["exercise"]
        cells = nbformat.read(find([number.partition(".")[0]])[0], as_version=4).cells
        task = next(one.source for one in cells if one.source.startswith(f"### Exercise {number} "))
        slide = self._begin(cell, options, heading, "exercise")
        slide.exercise = number
        slide.blocks = [made.of_part(part) for part in [*shown(cell.source), *_task(task, ())]]

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
        printed = () if {"lines"}.intersection(options.get("also", ())) else ("lines",)
        outputs = made.of_outputs(cell.get("outputs", []), (*hide, *printed), tuple(options.get("rows", ())),
                                  options.get("head", ""))
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
        alone = begins and not captions and all(block.kind == "claims" for block in found)
        to_notes = (large or alone) and "claims" not in options.get("also", ())
        checked = [block for block in rest if to_notes and block.kind == "claims"]
        rest = [block for block in rest if block not in checked]
        if large and sum(words(part.text) for part in captions) > made.CAPTION:       # too long to stand over a picture
            self.slides[-1].say += [] if begins else [part.text for part in captions]
            self.waiting += [part.text for part in captions] if begins else []
            captions = []
        fresh = (begins or large and not (made.fits(self.slides[-1].blocks, large[0]) and not captions)) \
            and (captions or large or rest)
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


def _name(slides: list[Slide]) -> None:
    """Give each slide whose title has stood before a title of its own, where it says something to take one from."""
    seen: set[str] = set()
    for slide in slides:
        if slide.kind in ("slide", "question") and slide.title in seen:
            before = slide.title, [*slide.blocks]
            _retitle(slide)
            slide.title = slide.title.replace("**", "")
            if not _has_room(slide) or all(block.kind == "claims" for block in slide.blocks):
                slide.title, slide.blocks = before
        seen.add(slide.title)


def _has_room(slide: Slide) -> bool:
    """Whether the blocks have room below the title, which may take two lines; a picture takes what there is."""
    lines = 1 + (len(plain(slide.title)) > A_LINE)
    high = sum(block.height for block in slide.blocks if block.kind != "picture")
    return high <= made.ROOM - (lines - 1) * TITLE_LINE


def _retitle(slide: Slide) -> None:
    first, several = slide.blocks[0], len(slide.blocks) > 1
    if first.kind == "paragraph" and (lead := re.match(rf"{LEAD.pattern} +(?=\S)", first.text)):
        slide.title = lead[1] + lead[2].replace(".", "").replace(":", "")
        slide.blocks[0] = made.of_part(Part("paragraph", _capital(first.text[lead.end():])))._replace(step=first.step)
        return
    told = sentences(first.text) if first.kind in ("paragraph", "question") else []
    if first.kind == "paragraph" and not several and len(told) == 1:
        told += slide.spare
    if first.kind == "paragraph" and _short(told[0]) and (several or len(told) > 1):
        slide.title = _bare(told[0])
        body = _few(told[1:])
        slide.blocks[:1] = [made.of_part(Part("paragraph", body))] if body else []
        slide.blocks[0] = slide.blocks[0]._replace(step=False)
    elif first.kind == "question" and len(told) > 1 and _short(told[-1]):
        slide.title = _bare(told[-1])
        slide.blocks[0] = made.of_part(Part("question", " ".join(told[:-1])))
    elif slide.kind != "question":                        # a statement would give the answer away
        _retitle_by_statement(slide)


def _few(told: list[str]) -> str:
    """The first of these sentences, as many as a slide shows without cutting."""
    kept: list[str] = []
    for one in told:
        if kept and words(" ".join([*kept, one])) > SHORT:
            break
        kept.append(one)
    return " ".join(kept)


def _retitle_by_statement(slide: Slide) -> None:
    """The first statement that its cell has checked, on the slide or in the notes; else the first sentence of the notes that
    speaks of nothing but its subject."""
    at = next((k for k, block in enumerate(slide.blocks) if block.kind == "claims"), None)
    if at is not None and len(slide.blocks) > 1:
        whole, *rest = slide.blocks[at].text.split("\n")
        first, _, more = whole.partition("; ")
        if _short(first):
            slide.title, rest = made.minus(_unmarked(_capital(first))), [_capital(more), *rest] if more else rest
            slide.blocks[at:at + 1] = [made.statements(rest)._replace(step=True)] if rest else []
            return
    elif at is None and slide.checked:
        first = html.unescape(re.search(r"<li>(.*?)</li>", slide.checked[0])[1]).partition("; ")[0]
        if _short(first):
            slide.title = _unmarked(_capital(first))
            return
    if slide.blocks[0].kind in ("picture", "view", "table", "code", "lines"):
        told = [one for text in slide.say for part in parts(text) if part.kind == "paragraph"
                for one in sentences(part.text)]
        shown_already = " ".join(block.text for block in slide.blocks)
        if title := next((one for one in told if _short(one) and len(one) > 20 and one not in shown_already
                          and not OF_THE_NOTEBOOK.search(one)), ""):
            slide.title = _bare(title)


def _short(text: str) -> bool:
    """Whether a text is one sentence that fits above a slide on two lines, and leads into nothing."""
    return len(sentences(text)) == 1 and len(plain(text)) <= LONGEST and not text.rstrip().endswith((":", "…"))


def _bare(text: str) -> str:
    """A sentence as a title: no stress, no full stop."""
    return re.sub(r"(?<!\.)\.$", "", text.strip().removeprefix("- ").replace("**", ""))


def _unmarked(text: str) -> str:
    """A printed text as Markdown that shows it as it is: `__init__` isn't bold."""
    return re.sub(r"([_*`<\[\]])", r"\\\1", text)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


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

