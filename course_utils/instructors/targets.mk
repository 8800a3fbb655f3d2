# make solutions  every notebook with its exercises solved, in outputs/solutions
# make handout    the course without its solutions, in outputs/handout and outputs/handout.zip
# make sheets     the computations by hand as pages to print, and their answers, in outputs/sheets
# make grade FILES=folder   the exercises of notebooks that were handed in, on fresh inputs; it executes their code
#            CSV=grades.csv TIMEOUT=300 SEED=123   a table as well; seconds for one notebook; the inputs of an earlier grading

.PHONY: solutions handout sheets grade

solutions: setup
	@$(PY) -m course_utils solutions

handout: setup
	@$(PY) -m course_utils handout

sheets: setup
	@$(PY) -m course_utils sheets

grade: setup
	@$(PY) -m course_utils grade $(FILES) $(if $(CSV),--csv "$(CSV)") $(if $(TIMEOUT),--timeout $(TIMEOUT)) \
		$(if $(SEED),--seed $(SEED))
