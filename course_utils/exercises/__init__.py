"""Exercises that name the mistake, quizzes, predictions, and what has been done.

    exercise("4.2").check(masked_attention)                   # never raises; one verdict
    masked_attention = exercise("4.2").use(masked_attention)  # yours if it is right, else the course's
    exercise("4.2").hint(1);  exercise("4.2").solution()
    predict("04-lost", 0.5).compare(measured);  quiz("04").answer(1, "b");  progress()

How an answer travels: `check` makes a side of it (sides, workers), which sends a function to the worker process (worker) and
gets its runs back as JSON (wire); there it is run on the exercise's inputs (running). What came out is compared with the
course's answer and with what known mistakes give (compare; sealed, where solutions are left out). `judge` then chooses what
is printed, in the words of the lesson or of `say`, and `record` keeps the mark.

Does: what a notebook calls. Does not: judge (see `judge`), define exercises or solve them (see `lessons`).

Environment: `COURSE_STRICT=1` makes `check` raise AssertionError on a wrong answer; `COURSE_SEED=7` takes other inputs;
`COURSE_WORKER=0` runs functions in this process (see `workers`); `COURSE_GRADING=1` makes `use` hand back what it got.
"""

import datetime
import inspect
import os
import time

from course_utils.exercises import record, sides, workers
from course_utils.exercises.catalogue import answers_to, find_exercise, has_solutions, list_exercises, source_of_solution
from course_utils.exercises.definitions import Verdict
from course_utils.exercises.judge import AS_GIVEN, SEED, judge, right_order, strict
from course_utils.exercises.quizzes import Prediction, Quiz, list_quizzes, load_quiz
from course_utils.files.switches import is_on

__all__ = ["exercise", "predict", "progress", "quiz"]


_handed_out: list = []                                  # the course's answers that `use` handed over in this kernel
_last: list = []                                        # what was judged last: exercise and seed, answer, verdict, when


class exercise:
    """An exercise by its number, such as exercise("4.2"). For any other, ValueError that names those near it."""

    def __init__(self, number: str):
        self._exercise = find_exercise(str(number))
        if self._exercise.kind == "function" and workers.wanted():
            workers.start()                             # so that the first check need not wait for it

    def check(self, answer, seed: int | None = None) -> None:
        """Print one verdict on an answer: a function, a number, or an order of letters.

        A function runs in a process of its own, for at most eight seconds: what it changes in your notebook's variables
        stays there (see `workers`).

        `seed` chooses the inputs; by default the usual ones, or those that COURSE_SEED names.
        """
        seed = _usual_seed() if seed is None else seed
        if not isinstance(seed, int):
            print(f"check() got the seed {seed!r}; expected a whole number, such as check(…, seed=7), or none.")
            return
        verdict = self._judged(answer, seed)
        print(verdict.text)
        if verdict.state == "right":
            today = datetime.date.today().isoformat()
            record.mark("exercises", self._exercise.id, {"right": True, "seed": seed, "on": today})
        if verdict.state == "wrong" and strict():
            raise AssertionError(verdict.text)

    def use(self, answer):
        """The answer itself if it is right, else the course's, and a line that says so if yours had been tried.

        Without solutions to hand out, and while a notebook is graded (COURSE_GRADING=1), it hands back what it got.
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
            print("Yours isn't right yet, so the course's answer takes its place from here on"
                  f"{f': `{name}` is now ours' if name.isidentifier() else ''}.")
        _handed_out.append(ours)
        return ours

    def _judged(self, answer, seed: int, just_now: bool = False) -> Verdict:
        """The verdict; with `just_now` the last one, if it was on the same answer and seed less than a second ago."""
        asked = (self._exercise.id, seed)
        if just_now and _last and _last[0] == asked and _last[1] is answer and time.monotonic() - _last[3] < 1:
            return _last[2]
        if _is_ours(answer) or (inspect.isroutine(answer) and answer is getattr(self._answers(), "reference", None)):
            name = f"{self._exercise.id} {self._exercise.title}"
            return Verdict("open", (), f"○ {name}: this is the course's own answer, not yours. It works, but it doesn't "
                           "count: check the one that you wrote.")
        side = (workers.InWorker if workers.wanted() else sides.InThread)(self._exercise, answer)
        verdict = judge(self._exercise, self._answers(), side, seed)
        _last[:] = [asked, answer, verdict, time.monotonic()]
        return verdict

    def _answers(self):
        return answers_to(self._exercise.id)

    def hint(self, n: int = 1) -> None:
        """Print hint number n; the first says least."""
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
            print(f"This edition comes without solutions. {self._exercise.id} has {len(self._exercise.hints)} hints: "
                  f'exercise("{self._exercise.id}").hint(1) is the first.')

    def __repr__(self) -> str:
        low, high = self._exercise.minutes
        return "\n\n".join([f"Exercise {self._exercise.id}: {self._exercise.title} ({low}–{high} minutes)",
                            self._exercise.question, self._exercise.signature])


def _is_ours(answer) -> bool:
    """Whether this very object is an answer that `use` handed out; small whole numbers are the same object everywhere."""
    return not isinstance(answer, int) and any(answer is one for one in _handed_out)


def _usual_seed() -> int:
    """The seed that COURSE_SEED names; if it names none, the usual one, and a line that says so."""
    named = os.environ.get("COURSE_SEED", "").strip()
    try:
        return int(named) if named else SEED
    except ValueError:
        print(f"COURSE_SEED is {named!r}; expected a whole number, such as COURSE_SEED=7. The usual inputs are taken.")
        return SEED


def predict(name: str, yours=None) -> Prediction:
    """Keep a guess under a name; with None, the one that was kept before. `.compare(measured)` shows both."""
    return Prediction(name, yours)


def quiz(number: str) -> Quiz:
    """The quiz of a notebook, such as quiz("04"): it shows itself; `.answer(1, "b")` explains an option."""
    return Quiz(str(number))


def progress() -> None:
    """Print what is done, a line a notebook: exercises solved, questions answered rightly; one line if nothing is yet."""
    marks = record.read()
    if not any(_is_right(mark) for part in ("exercises", "quizzes") for mark in marks[part].values()):
        print("○ nothing solved yet: once an exercise or a question is right, the whole course is listed here.")
        return
    numbers = sorted({exercise.id.partition(".")[0].zfill(2) for exercise in list_exercises()} | set(list_quizzes()))
    for number in numbers:
        ids = [exercise.id for exercise in list_exercises() if exercise.id.partition(".")[0].zfill(2) == number]
        done = [_is_right(marks["exercises"].get(name)) for name in ids]
        questions = [f"{number}/{asked.name}" for asked in load_quiz(number)]
        right = sum(_is_right(marks["quizzes"].get(name)) for name in questions)
        boxes = "".join("■" if each else "□" for each in done)
        solved = f"{sum(done)} of {len(ids)} exercises" if ids else "no exercises"
        print(f"{number}  {boxes:<6} {solved:<16} {right} of {len(questions)} questions")


def _is_right(mark) -> bool:
    """Whether a mark says so: {"right": True, …}, or True as older files have it; whatever else stands there doesn't."""
    return mark is True or (isinstance(mark, dict) and mark.get("right") is True)
