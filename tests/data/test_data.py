"""What `course_utils.data` promises: the course's reviews, by kind, in pairs, and a validation split."""

import os

import datasets
import pytest
from review_makers import NAMES, review, run_python, write_lines

from course_utils import data
from course_utils.data import DataNotAvailable, by_kind, find_folder, load_reviews, pairs, split_reviews

TESTS = ("handwritten", "ordinary", "ordinary_second", "ordinary_third")


@pytest.fixture
def course_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DATA_FOLDER", tmp_path / "data")
    folder = tmp_path / "data" / "reviews"
    write_lines(folder / "train.jsonl", [review(0, 1), review(1, 0, "order", "r3"), review(2, 0),
                                         review(3, 1, "order", "r1"), review(4, 1, "distant", evidence=[])])
    write_lines(folder / "validation.jsonl", [review(5, 1), review(6, 0)])
    write_lines(folder / "test.jsonl", [review(7, 1, unseen_frame=True)])
    (folder / "SAMPLES.md").write_text("not reviews")
    for number, name in enumerate(TESTS, 8):
        write_lines(tmp_path / "data" / f"{name}.jsonl",
                    [{key: review(number, 0)[key] for key in ("id", "text", "label", "kind", "evidence", "pair")}])
    return folder


# The course's reviews

def test_reviews_have_three_splits_with_the_same_typed_columns(course_folder):
    reviews = load_reviews("reviews")
    assert isinstance(reviews, datasets.DatasetDict) and list(reviews) == ["train", "validation", "test"]
    assert [split.num_rows for split in reviews.values()] == [5, 2, 1]
    for split in reviews.values():
        assert split.features == reviews["train"].features  # the validation file has no pair, all nulls
        assert split.features["label"] == datasets.ClassLabel(names=NAMES)
        assert split.features["pair"].dtype == "string"
    assert reviews["train"][1] == review(1, 0, "order", "r3")
    assert reviews["train"][4]["evidence"] == []
    assert reviews["test"][0]["unseen_frame"] is True
    assert load_reviews()["train"][:] == reviews["train"][:]


def test_reviews_for_testing_alone_are_one_split(course_folder):
    for number, name in enumerate(TESTS, 8):
        reviews = load_reviews(name)
        assert list(reviews) == ["test"] and reviews["test"][0]["text"] == f"Review {number} was fine."
        assert reviews["test"].features["label"].names == NAMES


def test_reviews_are_loaded_without_network_and_without_a_trace_in_the_home_folder(course_folder, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    code = ("import socket\n"
            "def refuse(*_): raise AssertionError('network')\n"
            "socket.socket.connect = socket.getaddrinfo = refuse\n"
            "from pathlib import Path\n"
            "from course_utils import data\n"
            f"data.DATA_FOLDER = Path({str(course_folder.parent)!r})\n"
            "reviews = data.load_reviews('reviews')\n"
            "split = data.split_reviews(reviews['train'], 0.4)\n"
            "print(split['train'].num_rows, reviews['train'].cache_files)\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "XDG_"))}
    done = run_python(code, environment | {"HOME": str(home), "USERPROFILE": str(home)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "[]"]  # the one pair and the one other 0 stay in train
    assert list(home.rglob("*")) == []


def test_by_kind_gives_the_rows_of_each_kind(course_folder):
    train = load_reviews()["train"]
    assert by_kind(train) == {"plain": [0, 2], "order": [1, 3], "distant": [4]}


def test_pairs_gives_each_pair_once(course_folder):
    train = load_reviews()["train"]
    assert pairs(train) == [(1, 3)]
    assert pairs(train.select([3, 0, 1])) == [(0, 2)]
    for rows, said in ((train.select([0, 1]), "row 1 has the partner 'r3', which is not in this dataset"),
                       (load_reviews(), "without a column 'id'; expected one split")):
        with pytest.raises(ValueError, match=said):
            pairs(rows)


def test_a_missing_data_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DATA_FOLDER", tmp_path / "data")
    with pytest.raises(DataNotAvailable, match="there is no folder .*reviews; expected data/ beside"):
        load_reviews("reviews")
    with pytest.raises(DataNotAvailable, match="there is no folder .*checkpoints"):
        find_folder("checkpoints")
    (tmp_path / "data" / "reviews").mkdir(parents=True)
    assert find_folder("reviews") == tmp_path / "data" / "reviews"
    with pytest.raises(FileNotFoundError, match=r"got \[\]; expected train, validation or test with"):
        load_reviews("reviews")


def test_the_repositorys_reviews_are_those_that_are_loaded(root):
    assert data.DATA_FOLDER == root / "data"
    kinds = {"plain", "negation", "order", "distant"}
    assert all(set(by_kind(split)) == kinds for name in ("reviews", "handwritten") for split in load_reviews(name).values())


# A validation split

def made_of(texts, labels, **columns):
    return datasets.Dataset.from_dict({"text": texts, "label": labels, **columns})


def test_split_reviews_is_stratified_disjoint_by_text_and_complete():
    texts = [f"text {number % 150}" for number in range(200)]  # 50 texts stand there twice
    labels = [int(number % 150 < 40) for number in range(200)]
    split = split_reviews(made_of(texts, labels), validation=0.2)
    assert list(split) == ["train", "validation"]
    assert not set(split["train"]["text"]) & set(split["validation"]["text"])
    assert sorted([*split["train"]["text"], *split["validation"]["text"]]) == sorted(texts)
    for label in (0, 1):
        share = list(split["validation"]["label"]).count(label) / labels.count(label)
        assert 0.2 <= share < 0.22


def test_split_reviews_depends_on_the_seed_alone():
    reviews = made_of([f"text {number}" for number in range(100)], [0, 1] * 50)
    chosen = [list(split_reviews(reviews, seed=seed)["validation"]["text"]) for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(chosen[0]) == 10
    order = list(reviews["text"])
    assert chosen[0] == sorted(chosen[0], key=order.index)


def test_split_reviews_keeps_pairs_together():
    partner = [f"r{number ^ 1}" if number < 60 else None for number in range(100)]
    reviews = made_of([f"text {number}" for number in range(100)], [0, 1] * 50,
                      id=[f"r{number}" for number in range(100)], pair=partner)
    for seed in range(5):
        split = split_reviews(reviews, validation=0.3, seed=seed)
        assert len(pairs(split["train"])) + len(pairs(split["validation"])) == 30
        assert len(pairs(split["validation"])) > 0
        assert abs(sum(split["validation"]["label"]) - 15) <= 1


def test_split_reviews_keeps_the_other_splits():
    reviews = datasets.DatasetDict(train=made_of(list("abcdefgh"), [0, 1] * 4), test=made_of(["z"], [1]))
    split = split_reviews(reviews)
    assert list(split) == ["train", "validation", "test"] and split["test"]["text"][0] == "z"
    with pytest.raises(ValueError, match="expected train and no validation"):
        split_reviews(split)
    with pytest.raises(ValueError, match="expected train and no validation"):
        split_reviews(datasets.DatasetDict(test=reviews["test"]))


@pytest.mark.parametrize("share", [0, 1, float("nan")])
def test_split_reviews_refuses_what_is_no_share(share):
    with pytest.raises(ValueError, match="expected a fraction between 0 and 1"):
        split_reviews(made_of(list("abcd"), [0, 1, 0, 1]), validation=share)


def test_split_reviews_refuses_too_few_reviews():
    with pytest.raises(ValueError, match="got 2 different reviews for 2 labels; expected at least two"):
        split_reviews(made_of(["a", "b", "b"], [0, 1, 1]))
