"""Progress bars go where nobody takes them for errors, and into no saved notebook."""

import subprocess
import sys

import nbformat
import pytest

from course_utils.copies import notebooks
from course_utils.files import bars
from course_utils.files.paths import ROOT

pytestmark = pytest.mark.slow

TRAIN = """
from torch import nn
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.training import BatchOptions, EncodedReviews, fit
model = SelfAttentionClassifier(ClassifierConfig(vocab_size=6, d_model=8, num_heads=2, num_layers=1))
reviews = EncodedReviews([[2, 4], [3, 4], [2, 5], [3, 5]], [0, 1, 0, 1])
result = fit(model, reviews, reviews, options=BatchOptions(batch_size=2), epochs=2)
"""


def streams(source, tmp_path, monkeypatch, disabled) -> list[tuple[str, str]]:
    """Which streams a cell with this source writes, and what, in a notebook that is open in JupyterLab."""
    monkeypatch.setenv("TQDM_DISABLE", disabled)
    path = tmp_path / "00_bars.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    return [(output.name, output.text) for output in notebooks.execute(path).cells[0].outputs]


def test_in_a_notebook_a_bar_is_no_error(tmp_path, monkeypatch):
    written = streams(TRAIN, tmp_path, monkeypatch, "0")
    assert {name for name, _ in written} == {"stdout"} and "4/4" in "".join(text for _, text in written)


LIBRARIES = """
import course_utils
from course_utils.data import load_reviews
rows = load_reviews()["test"].select(range(20)).filter(lambda row: row["label"] == 1).map(lambda row: {"n": 1})
from transformers.utils import logging
for _ in logging.tqdm(range(3), desc="Writing"): pass
from huggingface_hub.utils import tqdm
for _ in tqdm(range(3)): pass"""


def test_in_a_notebook_libraries_show_no_bars_and_a_line_about_progress_is_no_error(tmp_path, monkeypatch):
    for name in ("HF_DATASETS_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_PROGRESS_BARS"):
        monkeypatch.delenv(name, raising=False)           # as in a kernel that a learner starts
    lines = "\nfrom course_utils.files import bars\nbars.say('training once')\nbars.say('hidden', shown=False)"
    assert streams(LIBRARIES + lines, tmp_path, monkeypatch, "0") == [("stdout", "training once\n")]


def test_nothing_of_a_bar_is_left_where_they_are_switched_off(tmp_path, monkeypatch):
    assert streams(TRAIN + "from course_utils.files import bars\nbars.say('once')", tmp_path, monkeypatch, "1") == []


def test_a_notebook_that_trains_a_missing_model_is_saved_without_a_word_about_it(tmp_path, monkeypatch):
    """As `make save` and `make course` do it, with an empty folder of models."""
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setenv("TQDM_DISABLE", "0")
    source = """
from course_utils.recipes import trained_models
every, small = trained_models.load_reviews(), trained_models.settings_of("reviews", {})
few = {split: every[split].select(range(40)) for split in ("train", "validation")}
trained_models.load_reviews = lambda name: type(every)(few)
small = small._replace(max_size=200, fit={**small.fit, "epochs": 1})
trained_models.settings_of = lambda *_: small
type(trained_models.trained_model(seed=99)).__name__"""
    path = tmp_path / "00_trains.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    assert notebooks.run([], in_place=True) == 0
    (output,) = nbformat.read(path, as_version=4).cells[0].outputs
    assert output.data["text/plain"] == "'ReviewClassifier'" and list((tmp_path / "outputs" / "models").iterdir())


def test_on_the_command_line_a_bar_leaves_the_output_to_the_results(monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "0")
    code = "from course_utils.files import bars\nfor _ in bars.bar(range(3)): pass\nbars.say('once')\nprint('result')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "result\n" and "3/3" in done.stderr and done.stderr.endswith("once\n")


@pytest.mark.parametrize(("word", "shown"), [("", True), ("0", True), ("false", True), ("1", False), ("True", False)])
def test_one_variable_switches_bars_off(monkeypatch, capsys, word, shown):
    monkeypatch.setenv("TQDM_DISABLE", word)
    assert bars.are_shown() is shown
    assert list(bars.bar([1, 2])) == [1, 2] and ("2/2" in capsys.readouterr().err) is shown
    assert list(bars.bar([1, 2], shown=False)) == [1, 2] and capsys.readouterr().err == ""


def test_every_bar_of_the_course_is_one_of_these():
    """But for that of the command that executes notebooks, which hides theirs."""
    own = [path.name for path in sorted((ROOT / "course_utils").rglob("*.py")) if "tqdm import" in path.read_text("utf-8")]
    assert sorted(own) == ["bars.py", "notebooks.py"]
