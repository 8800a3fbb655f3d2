"""Exercises that name the mistake, quizzes, predictions, and the learner's progress.

    exercise("4.2").check(masked_attention)                   # never raises; one verdict
    masked_attention = exercise("4.2").use(masked_attention)  # yours if it is right, else the course's
    exercise("4.2").hint(1);  exercise("4.2").solution()
    verdict("4.2", masked_attention).names                    # the same verdict for a program, ("no-scaling",) perhaps
    predict("04-lost", 0.5).compare(measured);  quiz("04").answer(1, "b");  progress();  warm_up("04")

What happens to an answer: a function is sent to the worker process (workers, worker), which runs it on the exercise's inputs
(running) by a clock that a busy machine can't hurry (clock), and returns its runs as JSON (wire). The results are compared
with those of the course's answer and of the known mistakes (compare; sealed, in editions without solutions). Then `judge`
decides what to print, in the words of the lesson or of `say`, and `record` saves the result.

Does: the functions that a notebook calls. Does not: judge (see `judge`), define exercises or solve them (see
notebooks/exercises).

Environment: with `COURSE_STRICT=1`, `check` raises AssertionError on a wrong answer; `COURSE_SEED=7` draws other inputs;
with `COURSE_WORKER=0`, the worker process starts at the first function that is checked, and not before; with
`COURSE_GRADING=1`, `use` returns what it was given.
"""

import datetime
import inspect
import os
import time
from typing import NamedTuple

from course_utils.exercises import record, workers
from course_utils.exercises.catalogue import answers_to, find_exercise, has_solutions, list_exercises, source_of_solution
from course_utils.exercises.definitions import Verdict, right_order
from course_utils.exercises.judge import AS_GIVEN, SEED, judge, strict
from course_utils.exercises.quizzes import CALLED, Prediction, Quiz, list_quizzes, load_quiz
from course_utils.files.paths import HOUR
from course_utils.files.switches import is_on

__all__ = ["exercise", "predict", "progress", "progress_by_notebook", "quiz", "verdict", "warm_up"]


_handed_out: list = []                                  # the course's answers that `use` has returned in this kernel
_last: list = []                                        # the last verdict: exercise and seed, answer, verdict, when


class exercise:
    """An exercise by its number, such as exercise("4.2"). Raises ValueError for an unknown one, and names similar ones."""

    def __init__(self, number: str):
        self._exercise = find_exercise(str(number))
        if self._exercise.kind == "function" and workers.wanted():
            workers.start()                             # so that the first check doesn't have to wait for it

    def check(self, answer, seed: int | None = None) -> None:
        """Print one verdict on an answer: a function, a number, or an order of letters.

        A function runs in a separate process, for at most eight seconds of computing in its own lines, or two minutes of
        waiting. If it changes variables of your notebook, the change stays in that process (see `workers`).

        `seed` chooses the inputs; the default is the usual ones, or those that COURSE_SEED names.
        """
        seed = _usual_seed() if seed is None else seed
        if not isinstance(seed, int):
            print(f"check() got the seed {seed!r}; expected a whole number, such as check(…, seed=7), or no seed at all.")
            return
        verdict = self._judged(answer, seed)
        print(verdict.text)
        if verdict.state == "right":
            today = datetime.date.today().isoformat()
            record.mark("exercises", self._exercise.id, {"right": True, "seed": seed, "on": today})
        if verdict.state == "wrong" and strict():
            raise AssertionError(verdict.text)

    def use(self, answer):
        """Return the answer if it is right, else the course's; if you had tried, print a line about the replacement.

        In an edition without solutions, and while a notebook is graded (COURSE_GRADING=1), return what was given.
        """
        if not has_solutions() or is_on("COURSE_GRADING"):
            return answer
        verdict = self._judged(answer, SEED, just_now=True)
        if verdict.state == "right" or _is_ours(answer):
            return answer
        answers = self._answers()
        if self._exercise.kind == "order":
            ours = right_order(answers.reference())
        else:
            ours = answers.reference if self._exercise.kind == "function" else answers.reference()
        if verdict.state != "open" and AS_GIVEN not in verdict.text:
            name = answer.__name__ if inspect.isroutine(answer) or isinstance(answer, type) else ""
            print("Your answer isn't right yet, so from here on the notebook uses the course's"
                  f"{f': `{name}` is now ours' if name.isidentifier() else ''}.")
        _handed_out.append(ours)
        return ours

    def _judged(self, answer, seed: int, just_now: bool = False) -> Verdict:
        """The verdict; with `just_now`, the last one if it was about the same answer and seed less than a second ago."""
        asked = (self._exercise.id, seed)
        if just_now and _last and _last[0] == asked and _last[1] is answer and time.monotonic() - _last[3] < 1:
            return _last[2]
        if _is_ours(answer) or (inspect.isroutine(answer) and answer is getattr(self._answers(), "reference", None)):
            name = f"{self._exercise.id} {self._exercise.title}"
            return Verdict("open", (), f"○ {name}: this is the course's own answer, not yours. It works, but it doesn't "
                           "count. Check the one you wrote.")
        verdict = judge(self._exercise, self._answers(), answer, seed)
        _last[:] = [asked, answer, verdict, time.monotonic()]
        return verdict

    def _answers(self):
        return answers_to(self._exercise.id)

    def hint(self, n: int = 1) -> None:
        """Print hint number n; the first gives away least."""
        hints = self._exercise.hints
        if not isinstance(n, int) or not 1 <= n <= len(hints):
            print(f"exercise {self._exercise.id} has hints 1 to {len(hints)}")
        else:
            print(f"{self._exercise.id}, hint {n} of {len(hints)}: {hints[n - 1]}")

    def solution(self) -> None:
        """Print the course's answer."""
        if has_solutions():
            print(source_of_solution(self._exercise.id))
        else:
            print(f"This edition comes without solutions, but exercise {self._exercise.id} has {len(self._exercise.hints)} "
                  f'hints. Start with exercise("{self._exercise.id}").hint(1).')

    def __repr__(self) -> str:
        low, high = self._exercise.minutes
        return "\n\n".join([f"Exercise {self._exercise.id}: {self._exercise.title} ({low}–{high} minutes)",
                            self._exercise.question, self._exercise.signature])


def verdict(id: str, answer, seed: int = SEED) -> Verdict:
    """The verdict on an answer to the exercise `id`, such as "4.2"; prints nothing of its own, and saves nothing.

    `.state` is 'right', 'wrong', 'other' (another valid convention) or 'open' (not tried, or not judged); `.names` are the
    known mistakes that fit, `.text` is what `check` prints. `seed` chooses the inputs. Never raises, whatever is handed
    over: of an unknown exercise, a seed that is none, or a check that fails, the text of an 'open' verdict says what is
    wrong.
    """
    try:
        found = find_exercise(str(id))
    except Exception as error:
        return Verdict("open", (), f"○ not judged: {error}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        return Verdict("open", (), f"○ {found.id} {found.title}: not judged. The seed is {_short(seed)}; expected a whole "
                       "number from 0 on, such as seed=7.")
    try:
        answers = answers_to(found.id)
    except Exception as error:                          # an edition without solutions and without keys
        return Verdict("open", (), f"○ {found.id} {found.title}: not judged. {error}")
    return judge(found, answers, answer, seed)


def _short(thing) -> str:
    """An object for a message, whatever it says of itself."""
    try:
        return repr(thing)[:60]
    except Exception:
        return f"an object of type {type(thing).__name__}"


def _is_ours(answer) -> bool:
    """Whether this very object is an answer that `use` returned; small whole numbers are the same object everywhere."""
    return not isinstance(answer, int) and any(answer is one for one in _handed_out)


def _usual_seed() -> int:
    """The seed that COURSE_SEED names, or the usual one; prints a line if COURSE_SEED isn't a number."""
    named = os.environ.get("COURSE_SEED", "").strip()
    try:
        return int(named) if named else SEED
    except ValueError:
        print(f"COURSE_SEED is {named!r}; expected a whole number, such as COURSE_SEED=7. Using the usual inputs instead.")
        return SEED


def predict(name: str, yours=None) -> Prediction:
    """Save a guess under a name; with None, return the guess saved before. `.compare(measured)` shows both."""
    return Prediction(name, yours)


def quiz(number: str) -> Quiz:
    """The quiz of a notebook, such as quiz("04"). It displays itself; `.answer(1, "b")` explains an option."""
    return Quiz(str(number))


def warm_up(number: str) -> Quiz:
    """A few questions from earlier notebooks, to begin a notebook with: warm_up("04"). It works like a `quiz`."""
    return Quiz(str(number), "WARM_UP")


def progress() -> None:
    """Print one line per notebook: exercises solved, questions answered correctly; a single line if there are none yet."""
    marks = record.read()
    if not any(_is_right(mark) for part in ("exercises", "quizzes") for mark in marks[part].values()):
        print("○ nothing solved yet: once an exercise or a question is right, the whole course is listed here.")
        return
    for one in progress_by_notebook(marks):
        boxes = "".join("■" if each else "□" for each in one.solved)
        solved = f"{sum(one.solved)} of {len(one.solved)} exercises" if one.solved else "no exercises"
        print(f"{one.number}  {boxes:<6} {solved:<16} {one.right} of {one.questions} questions")


class NotebookProgress(NamedTuple):
    """A notebook's `number`, whether each exercise is `solved`, and how many of its quiz `questions` are `right`."""

    number: str
    solved: list[bool]
    right: int
    questions: int


def progress_by_notebook(marks: dict | None = None) -> list[NotebookProgress]:
    """What has been done of every notebook with exercises or questions, according to `marks` (`record.read`)."""
    marks, found = record.read() if marks is None else marks, []
    asked: dict[str, list[str]] = {}
    for part in CALLED:
        for number in list_quizzes(part):
            asked.setdefault(number, []).extend(f"{number}/{one.name}" for one in load_quiz(number, part))
    right_ones = {name for name, mark in marks["quizzes"].items() if _is_right(mark)}
    moved = {name.partition("/")[2] for name in right_ones.difference(*asked.values())}   # to another notebook's quiz
    every = {exercise.notebook for exercise in list_exercises()} | set(asked)
    for number in sorted(every, key=lambda one: (one != HOUR, one)):
        ids = [exercise.id for exercise in list_exercises() if exercise.notebook == number]
        questions = asked.get(number, [])
        right = sum(name in right_ones or name.partition("/")[2] in moved for name in questions)
        solved = [_is_right(marks["exercises"].get(name)) for name in ids]
        found.append(NotebookProgress(number, solved, right, len(questions)))
    return found


def _is_right(mark) -> bool:
    """Whether a saved result is right: {"right": True, …}, or True as in older files; anything else isn't."""
    return mark is True or (isinstance(mark, dict) and mark.get("right") is True)
