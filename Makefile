# make lab     open the course in JupyterLab, on your own copies of the notebooks
# make test    run the unit tests and every notebook, two files at a time (make test NB=04: one notebook;
#                NB=vocabulary_size: an extra; NB=START; NB=hour; here and below)
# make course  execute every notebook without a browser; results in outputs/
# make imdb    train the classifier on the real IMDb reviews and score it
# make results compute whatever is missing from the standard result files (make results SETS=ablations: one whole file)
# make speed   measure what the course says about speed, as ratios
# make sheets  write a cheat sheet to print, and the quizzes as cards for Anki, to outputs/sheets
# make site    write the whole course as a site with its slides, complete without a network, to outputs/site
# make fresh NB=04   make a new copy of one notebook and keep your old one as kept-1-04_attention.ipynb
# make update NB=04  the same, and carry over your answers and predictions
#
# For maintainers (CONTRIBUTING.md): make exercise NB=04 and make notebook NAME=13_language_model add a new one,
# make export (notebooks -> course_utils), make save NB=04 (execute a notebook in place),
# make data (the course corpus), make models (any missing models in data/checkpoints), make gallery, make slide-pictures NB=04
# (the figures on its slides; executes it), make lint,
# make test-processors (run the notebooks' tests as if on other processors; NB=08: one notebook; THREADS=2),
# make test-browser (what can be touched, and the whole site, in Chromium with the network cut; needs Chromium, its driver, Java),
# make seeds NB=08 (its claims with five random seeds on each kind of processor; SEEDS=3, KINDS="avx2 plain", JOBS=1).

.PHONY: lab test test-processors test-browser seeds course imdb results speed fresh update sheets site setup exercise notebook export save data lint models gallery slide-pictures
PY := .venv/bin/python

lab: setup
	@$(PY) -m course_utils copy
	@$(PY) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) --ContentsManager.hide_globs=__pycache__ --ContentsManager.hide_globs=exercises --LabApp.default_url=/lab/tree/notebooks/my_copies/START.ipynb

test: setup
	@paths=$$($(if $(NB),$(PY) -m course_utils paths $(NB),printf '%s ' -n 2 --dist loadfile --max-worker-restart 0)) || exit 1; \
	TQDM_DISABLE=1 OMP_NUM_THREADS=1 $(PY) -m pytest $$paths

test-processors: setup
	@$(PY) -m course_tools processors $(NB) --threads $(or $(THREADS),1)

test-browser: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check -r course_tools/site/requirements.txt -r course_tools/tests/browser/requirements.txt
	@TQDM_DISABLE=1 $(PY) -m pytest course_tools/tests/browser

seeds: setup
	@$(PY) -m course_tools seeds $(NB) --seeds $(or $(SEEDS),5) --kinds $(or $(KINDS),all) --threads $(or $(THREADS),1) --jobs $(or $(JOBS),2)

course: setup
	@$(PY) -m course_utils run $(NB)

fresh: setup
	@$(PY) -m course_utils fresh $(NB)

update: setup
	@$(PY) -m course_utils update $(NB)

sheets:: setup
	@$(PY) -m course_tools cheat-sheet
	@$(PY) -m course_utils quiz-cards

site: setup
	@$(PY) -m pip install --quiet --disable-pip-version-check -r course_tools/site/requirements.txt
	@if [ -d course_tools/slides ]; then $(PY) -m course_tools slides; fi
	@$(PY) -m course_tools site

imdb: setup
	@$(PY) -m course_utils imdb

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

setup:
	@sh .ci/setup.sh

-include course_tools/targets.mk
