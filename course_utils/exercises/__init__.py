"""Exercises that name the mistake, quizzes, predictions, and what has been done.

    exercise("4.2").check(masked_attention)                   # never raises; one verdict
    masked_attention = exercise("4.2").use(masked_attention)  # yours if it is right, else the course's
    exercise("4.2").hint(1);  exercise("4.2").solution()
    predict("04-lost", 0.5).compare(measured);  quiz("04").answer(1, "b");  progress()

Does: what a notebook calls. Does not: judge (see `engine`), define exercises (see `chapters`), solve them (see
`solutions`). `COURSE_STRICT=1` makes `check` raise AssertionError on a wrong answer; `COURSE_SEED=7` takes other inputs.
"""

import os

from course_utils.exercises import record
from course_utils.exercises.catalogue import answers_to, find_exercise, has_solutions, list_exercises, source_of_solution
from course_utils.exercises.engine import SEED, judge, right_order, strict
from course_utils.exercises.questions import Prediction, Quiz, list_quizzes, load_quiz

__all__ = ["exercise", "predict", "progress", "quiz"]


class exercise:
    """An exercise by its number, such as exercise("4.2"). For any other, ValueError that names those near it."""

    def __init__(self, number: str):
        self._exercise = find_exercise(str(number))

    def check(self, answer, seed: int | None = None) -> None:
        """Print one verdict on an answer: a function, a number, or an order of letters.

        `seed` chooses the inputs; by default the usual ones, or those that COURSE_SEED names.
        """
        seed = int(os.environ.get("COURSE_SEED", SEED)) if seed is None else seed
        verdict = judge(self._exercise, answers_to(self._exercise.id), answer, seed)
        print(verdict.text)
        if verdict.state == "right":
            record.mark("exercises", self._exercise.id, True)
        if verdict.state == "wrong" and strict():
            raise AssertionError(verdict.text)

    def use(self, answer):
        """The answer itself if it is right, else the course's; an edition without solutions hands back what it got."""
        answers = answers_to(self._exercise.id)
        if not has_solutions() or judge(self._exercise, answers, answer).state == "right":
            return answer
        if self._exercise.kind == "order":
            return right_order(answers.reference())
        return answers.reference if self._exercise.kind == "function" else answers.reference()

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
        lines = [f"{chr(ord('A') + i)}  {line}" for i, line in enumerate(self._exercise.lines)]
        return "\n".join([f"Exercise {self._exercise.id}: {self._exercise.title} ({low}–{high} minutes)",
                          self._exercise.objective, self._exercise.signature, *lines])


def predict(name: str, yours=None) -> Prediction:
    """Keep a guess under a name; with None, the one that was kept before. `.compare(measured)` shows both."""
    return Prediction(name, yours)


def quiz(number: str) -> Quiz:
    """The quiz of a notebook, such as quiz("04"): it shows itself; `.answer(1, "b")` explains an option."""
    return Quiz(str(number))


def progress() -> None:
    """Print what is done, a line a notebook: exercises solved, questions answered rightly."""
    marks = record.read()
    numbers = sorted({exercise.id.partition(".")[0].zfill(2) for exercise in list_exercises()} | set(list_quizzes()))
    for number in numbers:
        ids = [exercise.id for exercise in list_exercises() if exercise.id.partition(".")[0].zfill(2) == number]
        done = [bool(marks["exercises"].get(name)) for name in ids]
        questions = [f"{number}/{asked.name}" for asked in load_quiz(number)]
        right = sum(bool(marks["quizzes"].get(name, {}).get("right")) for name in questions)
        boxes = "".join("■" if each else "□" for each in done)
        solved = f"{sum(done)} of {len(ids)} exercises" if ids else "no exercises"
        print(f"{number}  {boxes:<6} {solved:<16} {right} of {len(questions)} questions")
