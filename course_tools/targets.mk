# Targets for whoever teaches or maintains the course; the Makefile, which reads this file, has the learner's.
#
# make slides    write slides from the notebooks to outputs/slides, a deck for each and for each route (make slides NB=04: one)
# make solutions  write every notebook with its exercises solved to outputs/solutions
# make handout    write the course without its solutions to outputs/handout and outputs/handout.zip
# make sheets    also write a cheat sheet, and the computations by hand as pages to print, with answers, to outputs/sheets
# make grade FILES=folder   grade the exercises in handed-in notebooks, on fresh inputs; this executes their code
#            TRUST=1 CSV=grades.csv TIMEOUT=300 SEED=123   without bubblewrap: run it with your rights; also write a table;
#            limit each notebook's seconds; repeat a grading's inputs
# make site    write the whole course as a site with its slides, complete without a network, to outputs/site
# make results compute whatever is missing from the standard result files (make results SETS=ablations: one whole file)
# make speed   measure what the course says about speed, as ratios
#
# make exercise NB=04, make notebook NAME=13_language_model   add a new one (CONTRIBUTING.md)
# make export  copy the notebooks' exported cells into course_utils
# make save NB=04   execute a notebook in place
# make data    write the course corpus; make models: train any missing models in data/checkpoints
# make gallery draw the gallery; make slide-pictures NB=04: the figures on its slides, which executes it
# make lint    run ruff
# make test-processors   run the notebooks' tests as if on other processors (NB=08: one notebook; THREADS=2)
# make test-browser      what can be touched, and the whole site, in Chromium with the network cut; needs Chromium, its
#                        driver and Java
# make test-classroom    run the commands of notebooks/classroom.md on a JupyterHub of its own
# make seeds NB=08       its claims with five random seeds on each kind of processor (SEEDS=3, KINDS="avx2 plain", JOBS=1)

.PHONY: slides solutions handout grade site results speed exercise notebook export save data models gallery slide-pictures lint \
	test-processors test-browser test-classroom seeds
CLASSROOM := outputs/classroom

slides: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check -r course_tools/site/requirements.txt
	@$(PY) -m course_tools slides $(NB)

solutions: setup
	@$(PY) -m course_tools solutions

handout: setup
	@$(PY) -m course_tools handout

sheets:: setup
	@$(PY) -m course_tools cheat-sheet
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

test-processors: setup
	@$(PY) -m course_tools processors $(NB) --threads $(or $(THREADS),1)

test-browser: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check -r course_tools/site/requirements.txt -r course_tools/tests/browser/requirements.txt
	@TQDM_DISABLE=1 $(PY) -m pytest course_tools/tests/browser

seeds: setup
	@$(PY) -m course_tools seeds $(NB) --seeds $(or $(SEEDS),5) --kinds $(or $(KINDS),all) --threads $(or $(THREADS),1) --jobs $(or $(JOBS),2)

site: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check -r course_tools/site/requirements.txt
	@$(PY) -m course_tools slides
	@$(PY) -m course_tools site

results: setup
	@$(PY) -m course_tools results $(SETS)

speed: setup
	@$(PY) -m course_tools speed

gallery: setup
	@$(PY) -m course_tools gallery

slide-pictures: setup
	@$(PY) -m course_tools slide-pictures $(NB)

models: setup
	@$(PY) -m course_tools models

exercise: setup
	@$(PY) -m course_tools exercise $(NB)

notebook: setup
	@$(PY) -m course_tools notebook $(NAME)

export: setup
	@$(PY) -m course_tools export

save: setup export
	@$(PY) -m course_tools save $(NB)

data: setup
	@$(PY) data/reviews/build.py
	@$(PY) data/translation/build.py
	@$(PY) data/sentences/build.py

lint:
	@sh .ci/lint.sh
