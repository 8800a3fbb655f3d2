"""What each notebook asks: one file a notebook, n04.py for notebook 04, with a record for each exercise, and the quiz.

What an exercise needs, for 4.7 as an example:

1. In the notebook, a markdown cell that begins '### Exercise 4.7 Title (10–15 minutes)' and asks the question; after it, a
   code cell with the tag `exercise`: a stub and exercise("4.7").check(name), or a value None. Title, minutes and question
   are said there and nowhere else; numbers follow one another.
2. In n04.py the course's answer, under the name that the cell checks, and `ask("4.7", answer, …)`, whose parts
   `course_utils.exercises.records` shows. The `signature`, such as 'mean(x (n,)) -> mean ()', names inputs and results with
   their sizes; `probes(generator)` makes the inputs, with sizes that all differ, sizes of one, and whatever else breaks a
   shortcut. An `observe` is needed only where more than the result counts; it returns a dict, whose parts are `case.name`.
   Two to four hints, the last with the key line.
3. A mistake is an edit of the answer, or a function. It says what was seen, with a number of the learner's, then why it
   matters or where to look, and not the solution; without words, `course_utils.exercises.diagnoses` says what it sees. Each
   must differ on some input from the right answer and from all the others. A rule says the same of answers that fit no
   mistake; the first that fails is printed. Words and checks that several notebooks use are in `common`.
4. Other right ways of writing it (loops, another library, lists): `python tests/exercises/frozen.py --add 4.7 answers.py`.
5. `python -m pytest tests/exercises -k 4.7`, then `python -m course_tools save 04` and `python -m course_tools timetable`.

A folder such as n07 is the older form: `ask`, `probes` and `answers`, whose EXERCISES and ANSWERS stand in the same order,
and quiz.yaml. A record that is added to such a notebook goes into its `ask`.
"""
