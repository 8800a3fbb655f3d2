"""Models that several notebooks look into are trained once, kept whole, and made again when they are damaged."""

import multiprocessing

import pytest
import torch
from earlier_models import write as write_earlier

from course_tools.studies.kept_models import CLASSIFIERS as COMMITTED
from course_tools.studies.kept_models import LANGUAGE_MODELS
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.recipes import trained_models
from course_utils.recipes.trained_models import (
    CHECKPOINTS,
    NOTE,
    fingerprint_of,
    name_of,
    trained_model,
)
from course_utils.training.saved_models import read_note, write_note

pytestmark = pytest.mark.slow

SMALL = {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1, "epochs": 1, "word_dropout": 0.0}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of models; reviews few enough to train on in a second."""
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    few_reviews(monkeypatch.setattr)
    return tmp_path / "models"


def few_reviews(set_attribute) -> None:
    every = load_reviews("reviews")
    few = {split: every[split].select(range(64)) for split in ("train", "validation")}
    set_attribute(trained_models, "load_reviews", lambda name: few)


def counted(monkeypatch) -> list:
    """A list that grows with every training."""
    calls, train = [], trained_models.train_classifier

    def told(*arguments, **options):
        calls.append(1)
        return train(*arguments, **options)

    monkeypatch.setattr(trained_models, "train_classifier", told)
    return calls


def test_a_model_is_trained_once_and_then_read(kept, monkeypatch):
    calls = counted(monkeypatch)
    first, second = (trained_model(seed=3, progress=False, **SMALL) for _ in range(2))
    assert len(calls) == 1
    assert first.predict(["a dull film"])[1].equal(second.predict(["a dull film"])[1])
    (path,) = kept.glob("[!.]*")
    assert "num_layers-1" in path.name and path.name.endswith("seed-3.safetensors")
    assert read_note(path, NOTE)["recipe"] == fingerprint_of(3, "reviews", SMALL)


def test_another_seed_option_or_review_is_another_model(kept, monkeypatch):
    calls = counted(monkeypatch)
    trained_model(seed=0, progress=False, **SMALL)
    trained_model(seed=1, progress=False, **SMALL)
    trained_model(seed=0, progress=False, **SMALL | {"d_ff": 16})
    few = trained_models.load_reviews("reviews")
    monkeypatch.setattr(trained_models, "load_reviews", lambda name: few | {"train": few["train"].select(range(32))})
    trained_model(seed=0, progress=False, **SMALL)
    assert len(calls) == 4


@pytest.mark.parametrize("damage", ["cut off", "no note", "another recipe"])
def test_a_damaged_model_or_one_of_another_recipe_is_noticed_and_made_again(kept, monkeypatch, capsys, damage):
    calls = counted(monkeypatch)
    before = trained_model(progress=False, **SMALL).predict(["a dull film"])[1]
    (path,) = kept.glob("*.safetensors")
    whole = path.read_bytes()
    if damage == "cut off":
        path.write_bytes(whole[:-40])
    elif damage == "no note":
        ReviewClassifier.load(path).save(path)
    else:
        write_note(path, NOTE, read_note(path, NOTE) | {"recipe": "0" * 8})
    left = path.read_bytes()
    assert trained_model(progress=False, **SMALL).predict(["a dull film"])[1].equal(before) and len(calls) == 2
    said = capsys.readouterr().err
    assert ("is damaged" in said) == (damage == "cut off") and "it is made again" in said
    assert path.with_name(f"{path.name}.aside").read_bytes() == left       # put aside, whole
    assert trained_model(progress=False, **SMALL).predict(["a dull film"])[1].equal(before) and len(calls) == 2


def test_a_folder_that_an_earlier_version_kept_is_read(kept, monkeypatch):
    calls = counted(monkeypatch)
    made = trained_model(progress=False, **SMALL)
    (path,) = kept.glob("*.safetensors")
    write_earlier(kept / f"{path.stem}-{read_note(path, NOTE)['recipe']}", 2, made)
    path.unlink()
    assert trained_model(progress=False, **SMALL).predict(["dull"])[1].equal(made.predict(["dull"])[1]) and len(calls) == 1


def in_another_process(outputs, queue) -> None:
    import os

    os.environ["COURSE_OUTPUTS"] = str(outputs)
    torch.set_num_threads(1)
    few_reviews(setattr)
    train = trained_models.train_classifier

    def told(*arguments, **options):
        queue.put("trained")
        return train(*arguments, **options)

    trained_models.train_classifier = told
    queue.put(trained_model(seed=5, progress=False, **SMALL).predict(["a dull film"])[1].tolist())


def test_two_processes_that_ask_at_once_train_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    both = [context.Process(target=in_another_process, args=(tmp_path, queue)) for _ in range(2)]
    for process in both:
        process.start()
    said = [queue.get(timeout=120) for _ in range(3)]
    for process in both:
        process.join(60)
    assert said.count("trained") == 1
    one, other = (answer for answer in said if answer != "trained")
    assert one == other


def test_a_training_that_was_interrupted_goes_on(kept, monkeypatch):
    """The state that `fit` leaves behind is found by the next call, and removed at the end."""
    options = SMALL | {"epochs": 3}
    whole = trained_model(seed=4, progress=False, **options)
    (path,) = kept.glob("*.safetensors")
    path.unlink()
    from course_utils.training import loop

    save, saves = loop.save_checkpoint, []

    def stop_after_two(*arguments):
        save(*arguments)
        saves.append(1)
        if len(saves) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "save_checkpoint", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        trained_model(seed=4, progress=False, **options)
    assert not path.exists() and list(kept.glob("*.state.safetensors"))
    saves.clear()
    monkeypatch.setattr(loop, "save_checkpoint", lambda *arguments: saves.append(1) or save(*arguments))
    resumed = trained_model(seed=4, progress=False, **options)
    assert len(saves) == 1                              # one epoch was left
    for one, other in zip(whole.model.state_dict().values(), resumed.model.state_dict().values()):
        assert one.equal(other)


@pytest.mark.parametrize("options", [{"recipe": "poems"}, {"layers": 2}, {"num_layers": "two"}, {"pooling": "max"}])
def test_an_option_that_there_is_not_is_refused_before_any_training(kept, monkeypatch, options):
    calls = counted(monkeypatch)
    with pytest.raises(ValueError, match="poems|layers|pooling"):
        trained_model(**options)
    assert calls == []


@pytest.mark.parametrize("seed, changes", COMMITTED)
def test_the_models_that_come_with_the_course_are_of_its_recipe_and_reviews(seed, changes):
    about = read_note(CHECKPOINTS / name_of(seed, "reviews", changes), NOTE)
    assert about["recipe"] == fingerprint_of(seed, "reviews", changes), "the recipe or the reviews have changed: make models"
    assert about["seed"] == seed and about["validation_accuracy"] > 0.85
    classifier = trained_model(seed=seed, **changes)
    validation = load_reviews("reviews")["validation"]
    some, names = validation.select(range(0, 1000, 5)), validation.features["label"].names
    right = sum(said == names[label] for said, label in zip(classifier.predict(some["text"])[0], some["label"]))
    assert right / len(some) == pytest.approx(about["validation_accuracy"], abs=0.05)


def test_no_other_model_stands_among_those_that_come_with_the_course():
    named = {name_of(seed, "reviews", changes) for seed, changes in COMMITTED}
    named |= {f"{name}-seed-{seed}" for name in LANGUAGE_MODELS for seed in range(5)}
    named |= {f"code-seed-{seed}" for seed in (1, 2)}
    assert {path.name.removesuffix(".safetensors") for path in CHECKPOINTS.iterdir()} == named | {
        "code", "encoder", "imdb", "multi30k", "reader", "recurrent-additive", "recurrent-one_vector", "reviews",
        "reviews-without-positions", "student", "translation"}


def test_my_model_is_the_learners_where_there_is_one_but_never_in_the_tests(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    monkeypatch.setenv("COURSE_TESTING", "0")
    text = ["The film was not dull but moving."]
    course = trained_models.my_model().predict(text)[1]
    assert "the course's model" in capsys.readouterr().out
    trained_models.trained_model(seed=1).save(tmp_path / "my_model")
    mine = trained_models.my_model().predict(text)[1]
    assert "your model" in capsys.readouterr().out and not mine.equal(course)
    monkeypatch.setenv("COURSE_TESTING", "1")
    assert trained_models.my_model().predict(text)[1].equal(course)
