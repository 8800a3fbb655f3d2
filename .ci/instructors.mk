# make solutions  every notebook with its exercises solved, in outputs/solutions
# make handout    the course without its solutions, in outputs/handout and outputs/handout.zip
# make sheets     the computations by hand as pages to print, and their answers, in outputs/sheets
# make grade FILES=folder   the exercises of notebooks that were handed in, on fresh inputs

.PHONY: solutions handout sheets grade

solutions: setup
	@$(PY) -m course_utils.exercises.editions solutions

handout: setup
	@$(PY) -m course_utils.exercises.editions handout

sheets: setup
	@$(PY) -m course_utils.exercises.sheets

grade: setup
	@$(PY) -m course_utils.exercises.grading $(FILES)
