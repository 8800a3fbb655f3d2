"""Runs of the training command that end badly, and of `fit`: nothing wrong is saved, nothing is lost."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from command_line import ROOT, TINY, assert_refused, in_a_folder_with_reviews, options, run
from tqdm import tqdm

from course_utils import files, recipes, training
from course_utils.classifier import ReviewClassifier
from course_utils.recipes import main
from course_utils.training import BatchOptions, EncodedReviews, fit

pytestmark = pytest.mark.slow

__all__ = ["in_a_folder_with_reviews"]                  # pytest runs it around each test here


# what must not be saved

def saved(folder="out"):
    return {path.name: path.read_bytes() for path in Path(folder).glob("[!.]*")} if Path(folder).exists() else {}


def test_a_model_of_numbers_that_are_not_finite_is_not_saved(capsys):
    settings = ["learning_rate=100", "weight_decay=100", "epochs=9"]
    assert run(["good.csv", "out", *options()], capsys)[0] == 0
    before = {name: content for name, content in saved().items() if "training_state" not in name}
    names = [setting.partition("=")[0] for setting in settings]
    kept = [setting for setting in TINY if setting.partition("=")[0] not in names]
    status, printed, complaint = run(["good.csv", "out", *options(kept + settings)], capsys)
    assert status == 1 and printed == ""
    assert re.search("the loss .*is (nan|inf).*smaller learning_rate.*Nothing was saved|not finite", complaint)
    assert {name: content for name, content in saved().items() if "training_state" not in name} == before
    assert ReviewClassifier.load("out").predict(["a moving film"])[1].isfinite().all()


@pytest.mark.parametrize("broken", ["weights", "answers"])
def test_a_model_that_breaks_in_its_last_step_is_not_saved(broken, monkeypatch, capsys):
    def fit_and_break(model, *arguments, **settings):
        result = fit(model, *arguments, **settings)
        with torch.no_grad():
            (model.embedding.weight if broken == "weights" else model.output.bias)[0] = float("inf")
        return result

    monkeypatch.setattr(recipes, "fit", fit_and_break)
    status, printed, complaint = run(["good.csv", "out", *options()], capsys)
    assert status == 1 and printed == "" and "numbers that are not finite; try a smaller learning_rate" in complaint
    assert set(saved()) <= {"training_state.safetensors"}


def test_what_is_wrong_with_our_own_code_is_not_hidden(monkeypatch):
    def broken(*arguments, **settings):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(recipes, "train_classifier", broken)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["good.csv", "out", *options()])


# two at once, interrupted, out of space

def command(*arguments):
    return [sys.executable, "-m", "course_utils", "train", *map(str, arguments)]


def quiet():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_second_run_is_told_who_has_the_folder_and_ctrl_c_says_how_to_go_on(capsys):
    long = options([setting for setting in TINY if not setting.startswith("epochs")] + ["epochs=100000"])
    first = subprocess.Popen(command("good.csv", "out", *long), env=quiet(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while not Path("out/training_state.safetensors").exists() and first.poll() is None:
            time.sleep(0.01)
        second = run(["good.csv", "out", *options()], capsys)
        assert_refused(second, f"out is in use by process {first.pid}.*training on good.csv")
        assert run(["good.csv", "elsewhere", *options()], capsys)[0] == 0
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        printed, complaint = first.communicate(timeout=60)
    finally:
        first.kill()
        first.communicate()
    assert first.returncode == 130 and printed == b""
    assert complaint.count(b"\n") <= 3 and b"Traceback" not in complaint
    assert re.search(rb"stopped; \d+ epochs? (is|are) saved, and the same command continues from there\n$", complaint)
    assert set(saved()) == {"training_state.safetensors"}


def test_ctrl_c_before_the_first_epoch_says_that_too(monkeypatch, capsys):
    def stopped(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "train_classifier", stopped)
    status, printed, complaint = run(["good.csv", "out", *options()], capsys)
    assert status == 130 and printed == ""
    assert complaint == "stopped; no epoch has been saved yet, so the same command starts from the beginning\n"


def test_ctrl_c_while_the_libraries_are_imported_prints_nothing():
    Path("sitecustomize.py").write_text(
        "import builtins, os, signal\n"
        "real = builtins.__import__\n"
        "def stop_at(name, *rest, **more):\n"
        "    if name == 'safetensors.torch':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = stop_at\n"
    )
    done = subprocess.run(command("good.csv", "out"), env=quiet() | {"PYTHONPATH": f"{Path.cwd()}{os.pathsep}{ROOT}"},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGINT and done.stderr == "" and done.stdout == ""


def test_a_full_disk_is_one_message_and_the_checkpoint_of_before_is_whole(monkeypatch, capsys):
    long = options([setting for setting in TINY if not setting.startswith("epochs")] + ["epochs=4"])
    assert run(["good.csv", "whole", *long], capsys)[0] == 0
    write, written_so_far = files.write_bytes, []

    def full_at_the_third(path, content):
        written_so_far.append(path)
        if len(written_so_far) == 3:
            with files.replacing(path) as partial:
                partial.write_bytes(content[:100])
                raise OSError(28, "No space left on device", str(partial))
        write(path, content)

    monkeypatch.setattr(files, "write_bytes", full_at_the_third)
    status, printed, complaint = run(["good.csv", "out", *long], capsys)
    monkeypatch.setattr(files, "write_bytes", write)
    assert status == 1 and printed == ""
    expected = r"out cannot be written to \(No space left on device\); free some space.* 2 epochs are saved.*\n$"
    assert re.search(expected, complaint)
    assert len(complaint.splitlines()) == 1
    assert set(saved()) == {"training_state.safetensors"} and training.epochs_in("out/training_state.safetensors") == 2
    assert run(["good.csv", "out", *long], capsys)[0] == 0
    again, whole = saved(), saved("whole")
    assert json.loads(again.pop("result.json"))["best_epoch"] == json.loads(whole.pop("result.json"))["best_epoch"]
    assert again == whole


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_files(capsys):
    """Kills at random moments, from the first import to the last file; COURSE_KILLS=50 makes it fifty of them."""
    more = options([setting for setting in TINY if not setting.startswith("epochs")] + ["epochs=60"])
    assert run(["good.csv", "whole", *more], capsys)[0] == 0
    rng, killed = random.Random(0), 0
    while killed < int(os.environ.get("COURSE_KILLS", "1")):
        running = subprocess.Popen(command("good.csv", "out", *more), env=quiet(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        try:
            assert "Traceback" not in running.communicate(timeout=rng.uniform(2, 8))[1]
        except subprocess.TimeoutExpired:
            running.kill()
            assert "anew" not in running.communicate()[1]
            killed += 1
        else:                                                              # done before the kill: once more, from nothing
            assert running.returncode == 0
            assert_same_files()
            shutil.rmtree("out")
    status, _, complaint = run(["good.csv", "out", *more], capsys)
    assert status == 0 and "anew" not in complaint
    assert_same_files()


def assert_same_files():
    one, other = saved("whole"), saved("out")
    results = [json.loads(made.pop("result.json")) for made in (one, other)]
    for result in results:
        del result["seconds"]
    assert one == other and results[0] == results[1] and list(one) == ["model.safetensors"]


# fit itself

REVIEWS = EncodedReviews([[2, 4], [3, 4], [2, 5], [3, 5]], [0, 1, 0, 1])


def model():
    torch.manual_seed(0)
    config = recipes.ClassifierConfig(vocab_size=9, d_model=8, num_heads=2, d_ff=8, num_layers=1)
    return recipes.SelfAttentionClassifier(config)


@pytest.mark.parametrize(("name", "value"), [
    ("epochs", 0), ("epochs", True), ("learning_rate", 0), ("learning_rate", float("nan")), ("weight_decay", -0.1),
    ("warmup", 1.1), ("clip", 0), ("patience", 0), ("precision", None), ("seed", -1)])
def test_fit_names_an_argument_that_cannot_be(name, value):
    with pytest.raises(ValueError, match=f"^{name}={re.escape(repr(value))}; use "):
        fit(model(), REVIEWS, REVIEWS, progress=False, **{name: value})


@pytest.mark.parametrize(("name", "value"), [
    ("batch_size", 0), ("truncation", "tail"), ("bucketed", 1),
])
def test_fit_and_batches_name_an_option_of_the_batches_that_cannot_be(name, value):
    wrong = BatchOptions(**{name: value})
    with pytest.raises(ValueError, match=f"^{name}={re.escape(repr(value))}; use "):
        fit(model(), REVIEWS, REVIEWS, options=wrong, progress=False)
    with pytest.raises(ValueError, match=f"^{name}={re.escape(repr(value))}; use "):
        list(training.batches(REVIEWS, wrong))


def test_an_error_in_fit_closes_the_bar_and_leaves_the_weights_of_the_best_epoch(monkeypatch):
    monkeypatch.setattr(training.loop, "learning_rate_at", lambda step, total, peak, warmup: peak)  # however many epochs
    settings = dict(options=BatchOptions(batch_size=2), progress=False)
    stopped, expected, bars = model(), model(), []
    fit(expected, REVIEWS, REVIEWS, epochs=1, **settings)

    def stop(module, inputs):
        stop.steps += module.training
        if stop.steps == 4:                                                # in the second epoch, after a step of it
            raise KeyboardInterrupt

    stop.steps = 0
    stopped.register_forward_pre_hook(stop)

    class Bar(tqdm):
        closed = False

        def close(self):
            self.closed = True
            super().close()

    monkeypatch.setattr(training.loop.bars, "tqdm", lambda *items, **given: bars.append(Bar(*items, **given)) or bars[0])
    with pytest.raises(KeyboardInterrupt):
        fit(stopped, REVIEWS, REVIEWS, epochs=5, **settings)
    assert bars[0].closed and not stopped.training
    for name, tensor in expected.state_dict().items():
        assert torch.equal(stopped.state_dict()[name], tensor), name


def test_a_validation_loss_that_is_not_finite_is_an_error():
    broken = model()
    with torch.no_grad():
        broken.embedding.weight[5] = float("nan")                          # a word that only the validation reviews have
    train = EncodedReviews([[2, 4], [3, 4]], [0, 1])
    with pytest.raises(FloatingPointError, match="validation loss is nan after epoch 1; try a smaller learning_rate than"):
        fit(broken, train, EncodedReviews([[5]], [0]), progress=False)


@pytest.mark.parametrize("damage", ["a weight of another shape", "no history"])
def test_a_checkpoint_that_only_looks_right_is_not_used(damage, tmp_path, capsys):
    from safetensors import safe_open
    from safetensors.torch import save_file

    file, settings = tmp_path / "state", dict(epochs=2, options=BatchOptions(batch_size=2), progress=False)
    expected = model()
    fit(expected, REVIEWS, REVIEWS, checkpoint=file, **settings)
    with safe_open(file, framework="pt") as opened:
        tensors, about = {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()
    if damage == "a weight of another shape":
        tensors["model.output.bias"] = torch.zeros(7)
    else:
        del about["state"]
    save_file(tensors, file, metadata=about)
    again = model()
    fit(again, REVIEWS, REVIEWS, checkpoint=file, **settings)
    assert "state cannot be read" in capsys.readouterr().err
    for name, tensor in expected.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
