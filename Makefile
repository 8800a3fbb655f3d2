# make lab     open the course in JupyterLab, on your own copies of the notebooks
# make test    run the main notebooks, comparing their outputs, and the tests of what they teach, two files at a time
#                (make test NB=04: one notebook; NB=vocabulary_size: an extra; NB=START; NB=hour; here and below)
# make test-all   everything: also the extras, how the course is made, and what takes longer
# make course  execute every notebook without a browser; results in outputs/
# make imdb    train the classifier on the real IMDb reviews and score it
# make sheets  write the quizzes as cards for Anki to outputs/sheets
# make fresh NB=04   make a new copy of one notebook and keep your old one as kept-1-04_attention.ipynb
# make update NB=04  the same, and carry over your answers and predictions
#
# Those for whoever teaches or maintains the course are in course_tools/targets.mk.

.PHONY: lab test test-all course imdb fresh update sheets setup
PY := .venv/bin/python
TWO_AT_A_TIME := -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

lab: setup
	@$(PY) -m course_utils copy
	@$(PY) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.news_url=None --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --ContentsManager.hide_globs=__pycache__ --ContentsManager.hide_globs=exercises --LabApp.default_url=/lab/tree/notebooks/my_copies/START.ipynb

test: setup
	@paths=$$($(if $(NB),$(PY) -m course_utils paths $(NB),printf '%s ' $(TWO_AT_A_TIME))) || exit 1; \
	TQDM_DISABLE=1 OMP_NUM_THREADS=1 $(PY) -m pytest $$paths

test-all: setup
	@TQDM_DISABLE=1 OMP_NUM_THREADS=1 $(PY) -m pytest $(TWO_AT_A_TIME) -m "" $(wildcard tests course_tools/tests) notebooks

course: setup
	@$(PY) -m course_utils run $(NB)

fresh: setup
	@$(PY) -m course_utils fresh $(NB)

update: setup
	@$(PY) -m course_utils update $(NB)

sheets:: setup
	@$(PY) -m course_utils quiz-cards

imdb: setup
	@$(PY) -m course_utils imdb

setup:
	@sh .ci/setup.sh

-include course_tools/targets.mk
