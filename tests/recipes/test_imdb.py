"""`make imdb` on reviews of a few words: what is trained, what is written of it, and what the next call leaves alone."""

import random
from functools import partial

import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from course_utils import results
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.files import fingerprint
from course_utils.recipes import Recipe, imdb

OPINIONS = [["bad", "dull", "awful"], ["good", "moving", "lovely"]]
SMALL = Recipe(model=dict(d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=16, dropout=0.0),
               fit=dict(epochs=2, learning_rate=1e-2), batches=dict(batch_size=16, max_len=16), min_freq=1)


def made(reviews: int, seed: int) -> Dataset:
    """Reviews of seven words and of 140: the opinion is one of three words for each label."""
    draw, rows = random.Random(seed), {"text": [], "label": []}
    for i in range(reviews):
        words = draw.choices("the a film plot cast music scene story".split(), k=140 if i % 10 == 9 else 6)
        words.insert(draw.randrange(6), draw.choice(OPINIONS[i % 2]))
        rows["text"].append(" ".join(words))
        rows["label"].append(i % 2)
    return Dataset.from_dict(rows, Features(text=Value("string"), label=ClassLabel(names=["negative", "positive"])))


@pytest.fixture
def real(tmp_path, monkeypatch):
    """The reviews that take IMDb's place; results, predictions and the best model go to a folder of their own."""
    splits = DatasetDict(train=made(120, 0), test=made(40, 1))
    monkeypatch.setattr(imdb, "load_reviews", lambda name: splits if name == "imdb" else load_reviews(name))
    monkeypatch.setattr(imdb, "RECIPE", SMALL)
    monkeypatch.setattr(imdb, "MAX_LEN", 16)
    monkeypatch.setattr(imdb, "PREDICTIONS", tmp_path / "predictions.csv")
    monkeypatch.setattr(imdb, "CHECKPOINTS", tmp_path / "checkpoints")
    for name in ("add_run", "read_runs"):
        monkeypatch.setattr(imdb, name, partial(getattr(results, name), folder=tmp_path))
    return splits


def test_what_is_trained_is_scored_written_and_never_trained_again(real, tmp_path, monkeypatch, capsys):
    call = ["--output", str(tmp_path / "out")]
    assert imdb.main(call) == 0
    runs = {(run["model"], run["seed"]): run for run in imdb.read_runs("imdb")}
    words, pairs = imdb.TFIDF
    assert list(runs) == [(words, 0), (pairs, 0), *((imdb.MAIN, seed) for seed in (0, 1, 2))]

    sizes = {"train": 108, "validation": 12, "test": 40}
    known = fingerprint(SMALL, sizes, fingerprint(list(real["test"]["text"])))     # as data/results has it
    for run in runs.values():
        assert run["data"] == sizes and run["settings"] == known
        assert run["test"]["reviews"] == run["shuffled"]["reviews"] == 40 and run["validation"]["reviews"] == 12
        assert run["validation_accuracy"] == run["validation"]["accuracy"]
        assert run["test"]["reviews_by_length"] == {"1–128": 36, "129–256": 4}
        assert set(run["handwritten"]["by_kind"]) == set(load_reviews("handwritten")["test"]["kind"])
    for model in (words, pairs):                            # one word says it, wherever it stands
        assert runs[model, 0]["test"]["accuracy"] == runs[model, 0]["shuffled"]["accuracy"] == 1
    assert runs[words, 0]["parameters"] == 8 + 6 + 1 < runs[pairs, 0]["parameters"]      # a weight for a word, and one more

    table = pd.read_csv(tmp_path / "predictions.csv")
    assert list(table.columns) == ["label", "length", *(f"{model}, seed {seed}" for model, seed in runs)]
    assert list(table["label"]) == real["test"]["label"]
    for model, seed in runs:
        right = (table[f"{model}, seed {seed}"] > 0.5) == (table["label"] == 1)
        assert right.mean() == pytest.approx(runs[model, seed]["test"]["accuracy"], abs=2 / 40)

    best = max((0, 1, 2), key=lambda seed: runs[imdb.MAIN, seed]["validation_accuracy"])
    kept = ReviewClassifier.load(tmp_path / "checkpoints" / "imdb")
    likely = kept.predict(real["test"]["text"])[1][:, 1]
    assert likely.numpy() == pytest.approx(table[f"{imdb.MAIN}, seed {best}"].to_numpy(), abs=6e-4)

    assert imdb.main([*call, "--variants", "--seeds", "0"]) == 0
    added = [(run["model"], run["seed"]) for run in imdb.read_runs("imdb") if (run["model"], run["seed"]) not in runs]
    assert sorted(added) == sorted((name, 0) for name in imdb.VARIANTS)
    sizes = {run["model"]: run["parameters"] for run in imdb.read_runs("imdb")}
    assert sizes["bag of embeddings"] != sizes["attention, no positions"] <= sizes[imdb.MAIN]

    def trains(*arguments, **options):
        raise AssertionError("a run that is there was made again")

    for name in ("run_tfidf", "run_network"):
        monkeypatch.setattr(imdb, name, trains)
    before = (tmp_path / "imdb.json").read_bytes()
    assert imdb.main(call) == 0 and (tmp_path / "imdb.json").read_bytes() == before
    assert capsys.readouterr().out.count("test ") >= 3 * 5
