# make solutions  write every notebook with its exercises solved to outputs/solutions
# make handout    write the course without its solutions to outputs/handout and outputs/handout.zip
# make sheets    also write the computations by hand as pages to print, with answers, to outputs/sheets
# make grade FILES=folder   grade the exercises in handed-in notebooks, on fresh inputs; this executes their code
#            CSV=grades.csv TIMEOUT=300 SEED=123   also write a table; limit each notebook's seconds; repeat a grading's inputs

.PHONY: solutions handout grade

solutions: setup
	@$(PY) -m course_utils solutions

handout: setup
	@$(PY) -m course_utils handout

sheets:: setup
	@$(PY) -m course_utils sheets

grade: setup
	@$(PY) -m course_utils grade $(FILES) $(if $(CSV),--csv "$(CSV)") $(if $(TIMEOUT),--timeout $(TIMEOUT)) \
		$(if $(SEED),--seed $(SEED))
