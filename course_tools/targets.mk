# make slides    write slides from the notebooks to outputs/slides, a deck for each and for each route (make slides NB=04: one)
# make solutions  write every notebook with its exercises solved to outputs/solutions
# make handout    write the course without its solutions to outputs/handout and outputs/handout.zip
# make sheets    also write the computations by hand as pages to print, with answers, to outputs/sheets
# make grade FILES=folder   grade the exercises in handed-in notebooks, on fresh inputs; this executes their code
#            TRUST=1 CSV=grades.csv TIMEOUT=300 SEED=123   without bubblewrap: run it with your rights; also write a table;
#            limit each notebook's seconds; repeat a grading's inputs
#
# For maintainers (CONTRIBUTING.md): make test-classroom runs the commands of notebooks/classroom.md on a JupyterHub of its own

.PHONY: slides solutions handout grade test-classroom
CLASSROOM := outputs/classroom

slides: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check -r course_tools/site/requirements.txt
	@$(PY) -m course_tools slides $(NB)

solutions: setup
	@$(PY) -m course_tools solutions

handout: setup
	@$(PY) -m course_tools handout

sheets:: setup
	@$(PY) -m course_tools sheets

grade: setup
	@$(PY) -m course_tools grade $(FILES) $(if $(CSV),--csv "$(CSV)") $(if $(TIMEOUT),--timeout $(TIMEOUT)) \
		$(if $(SEED),--seed $(SEED)) $(if $(TRUST),--trust)

test-classroom: setup
	@test -x $(CLASSROOM)/hub/bin/python || $(PY) -m venv $(CLASSROOM)/hub
	@$(CLASSROOM)/hub/bin/python -m pip install --quiet --disable-pip-version-check -r course_tools/tests/classroom/requirements.txt
	@test -d $(CLASSROOM)/proxy/node_modules || npm install --silent --no-audit --no-fund --prefix $(CLASSROOM)/proxy \
		configurable-http-proxy@5
	@TQDM_DISABLE=1 OMP_NUM_THREADS=1 $(PY) -m pytest course_tools/tests/classroom
