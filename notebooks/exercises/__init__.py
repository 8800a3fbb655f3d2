"""What each notebook asks: one folder a notebook, n04 for notebook 04.

    ask.py          which mistakes are known and what is said of them, properties, hints
    probes.py       which inputs are tried and what is looked at; in ask.py itself where that is short
    answers.py      the course's answer, and what each known mistake would write; left out where solutions are
    quiz.yaml       the quiz
    notebook.json   what the notebook says: written by `python -m course_tools export`, never by hand
    sealed.json     in an edition without solutions, in place of answers.py (see `sealed`)

What an exercise needs, for 4.6 as an example:

1. In the notebook, a markdown cell that begins '### Exercise 4.6 Title (10–15 minutes)' and asks the question; after it, a
   code cell with the tag `exercise`: a stub and exercise("4.6").check(name), or a value None. Number, title, minutes and
   question are said here and nowhere else; numbers follow one another. Then `python -m course_tools export`.
2. In n04/ask.py an `Exercise`, last in EXERCISES. Its `signature`, such as 'mean(x (n,)) -> mean ()', names inputs and
   results; `probes(generator)` makes the inputs, with sizes of one and whatever else breaks a shortcut. An `observe` is
   needed only where more than the result counts; it returns a dict, whose parts are `case.name` in messages. Two to four
   hints, the last with the key line.
3. In n04/answers.py an `Answers`, last in ANSWERS: the course's answer, and in `mutants`, for each `Mistake`, a function
   that makes it, under the same name. Each must differ on some input from the right answer and from all the others.
4. A mistake says what was seen, with a number of the learner's, then why it matters or where to look, and not the solution.
   A `Property` says the same of answers that fit no mistake; the first that fails is printed. Words and checks that several
   exercises use are in `common`. No file is longer than 400 lines: a long exercise gets its own, as n02/merge_step.py is.
5. In tests/exercises/variants/n04.py other right ways of writing it: loops, another library, lists.
6. `python -m pytest tests/exercises -k 4.6`, then `python -m course_tools save 04` and `python -m course_tools timetable`.
"""
