"""IMDb and SST-2, from a folder, from the `datasets` cache, and from a hub that does not always answer."""

import os
import shutil
import socket
import subprocess
import time

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_hub import Hub
from review_makers import NAMES, no_child, run_python, write_parquet

from course_utils.data import DataNotAvailable, load_reviews
from course_utils.data.hub import HUB_TIMEOUT, IMDB, SST2, _fetch

pytestmark = pytest.mark.slow


@pytest.fixture
def imdb_folder(tmp_path):
    folder = tmp_path / "imdb"
    files = folder / "plain_text"
    write_parquet(files / "train-00000-of-00002.parquet", ["bad<br /><br />film", "dull"], [0, 0])
    write_parquet(files / "train-00001-of-00002.parquet", ["good"], [1])
    write_parquet(files / "test-00000-of-00001.parquet", ["fine"], [1])
    write_parquet(files / "unsupervised-00000-of-00001.parquet", ["film"], [-1])
    return folder


@pytest.mark.parametrize("named", ["imdb", "."])
def test_imdb_is_read_from_the_named_folder_or_its_parent(imdb_folder, monkeypatch, named):
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder.parent / named))
    monkeypatch.setattr(subprocess, "Popen", no_child)
    reviews = load_reviews("imdb")
    assert list(reviews) == ["train", "test"]
    assert reviews["train"][:] == {"text": ["bad<br /><br />film", "dull", "good"], "label": [0, 0, 1]}
    assert reviews["train"].features["label"].names == NAMES and reviews["train"].cache_files == []
    assert load_reviews("imdb", unsupervised=True)["unsupervised"][0] == {"text": "film", "label": -1}


def test_a_named_folder_without_imdb_is_refused_in_three_lines(imdb_folder, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", no_child)
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder / "plain"))
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews("imdb")
    assert_three_lines(str(caught.value), f"COURSE_DATA names {imdb_folder / 'plain'}, which lacks")
    next((imdb_folder / "plain_text").glob("unsupervised*")).unlink()
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder))
    assert list(load_reviews("imdb")) == ["train", "test"]
    with pytest.raises(DataNotAvailable, match="lacks .*unsupervised"):
        load_reviews("imdb", unsupervised=True)


def test_a_damaged_parquet_file_is_named(imdb_folder, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder))
    (imdb_folder / "plain_text" / "test-00000-of-00001.parquet").write_bytes(b"cut off")
    with pytest.raises(ValueError, match="test-00000-of-00001.parquet: got 7 bytes that are not Parquet"):
        load_reviews("imdb")


def assert_three_lines(message, tried, title="IMDb", file="plain_text/train-*.parquet"):
    lines = message.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"{title} could not be loaded: ") and tried in lines[0]
    assert "COURSE_DATA" in lines[1] and file in lines[1]
    assert "connect" in lines[2] and 'load_reviews("reviews")' in lines[2]


def test_imdb_comes_from_the_hub_once_and_then_from_the_cache(imdb_folder, empty_cache, monkeypatch, capfd):
    with Hub(imdb_folder, "good") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        reviews = load_reviews("imdb", timeout=60)
    assert hub.asked > 0 and hub.revisions == {IMDB.revision}  # always the same copy, whatever is put on the hub later
    assert list(reviews) == ["train", "test"]
    assert reviews["train"][:] == {"text": ["bad<br /><br />film", "dull", "good"], "label": [0, 0, 1]}
    assert reviews["test"].features["label"].names == NAMES
    assert capfd.readouterr() == ("", "Downloading IMDb (about 80 MB) to the datasets cache …\n")

    monkeypatch.setattr(subprocess, "Popen", no_child)  # the hub is gone, and is not asked
    again = load_reviews("imdb", unsupervised=True)
    assert again["train"][:] == reviews["train"][:] and again["unsupervised"]["label"][0] == -1
    assert capfd.readouterr() == ("", "")


def test_a_cached_copy_of_another_revision_is_found_and_the_pinned_one_preferred(imdb_folder, empty_cache, tmp_path,
                                                                                 monkeypatch):
    with Hub(imdb_folder, "good") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        expected = load_reviews("imdb", timeout=60)["train"][:]
    monkeypatch.setattr(subprocess, "Popen", no_child)
    (pinned,) = (tmp_path / "cache").rglob(f"0.0.0/{IMDB.revision}")
    other = pinned.with_name("b" * 40)
    pinned.rename(other)
    assert load_reviews("imdb")["train"][:] == expected
    shutil.copytree(other, pinned)
    table = pa.table({"text": ["another"], "label": [7]})
    for file in other.glob("*train*.arrow"):
        with pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    os.utime(other)  # the latest copy is the other one
    assert load_reviews("imdb")["train"][:] == expected
    shutil.rmtree(pinned)
    with pytest.raises(ValueError, match=r"the datasets cache \(.*b{40}, train\): got the labels 7; expected 0 and 1"):
        load_reviews("imdb")


@pytest.fixture
def nobody(monkeypatch):
    """In place of the hub: a port that is bound and not listening, so it refuses."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        yield


@pytest.mark.parametrize("corpus", [IMDB, SST2], ids=lambda corpus: corpus.name)
def test_without_a_network_a_corpus_is_refused_in_three_lines(nobody, empty_cache, monkeypatch, corpus):
    known = {"title": corpus.title, "file": f"{corpus.folder}/train-*.parquet"}
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews(corpus.name)
    assert_three_lines(str(caught.value), "could not be reached (ConnectError)", **known)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(subprocess, "Popen", no_child)
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews(corpus.name)
    assert_three_lines(str(caught.value), "was not asked, since HF_HUB_OFFLINE", **known)


@pytest.mark.parametrize("mode, tried", [
    ("error", "answered with status 500"), ("drip", "did not answer within 3 seconds"),
    ("silent", "did not answer within 3 seconds"), ("drip files", "stopped sending")])
def test_a_hub_that_does_not_answer_is_given_up_in_time(imdb_folder, empty_cache, monkeypatch, mode, tried):
    start = time.monotonic()
    timeout = 3 if "3" in tried else 60
    with Hub(imdb_folder, mode) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert _fetch(IMDB, timeout=timeout, stall=2) == f"the hub ({hub.address[7:]}) {tried}"
    assert time.monotonic() - start < timeout + 5 and HUB_TIMEOUT < 20


def test_a_learner_sees_no_network_code(nobody, empty_cache):
    done = run_python("from course_utils.data import load_reviews\nload_reviews('imdb')\n", dict(os.environ))
    assert done.returncode == 1
    sources = [line for line in done.stderr.splitlines() if line.strip().startswith("File ")]
    assert len(sources) == 3 and all("<string>" in line or "course_utils" in line for line in sources)


# SST-2

@pytest.fixture
def sst2_folder(tmp_path):
    folder = tmp_path / "sst2"
    for split, texts, labels in (("train", ["a dull film ", "good ", "hardly dull "], [0, 1, 1]),
                                 ("validation", ["fine , but long . "], [0]), ("test", ["nobody knows "], [-1])):
        table = pa.table({"idx": pa.array(range(len(texts)), pa.int32()), "sentence": texts, "label": labels})
        path = folder / "data" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    return folder


def assert_is_sst2(reviews):
    assert list(reviews) == ["train", "validation"] and reviews["train"].column_names == ["text", "label"]
    assert reviews["train"][:] == {"text": ["a dull film ", "good ", "hardly dull "], "label": [0, 1, 1]}
    assert reviews["validation"][:] == {"text": ["fine , but long . "], "label": [0]}
    assert reviews["train"].features["label"].names == NAMES


def test_both_corpora_lie_in_one_folder(imdb_folder, sst2_folder, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(sst2_folder.parent))
    assert_is_sst2(load_reviews("sst2"))
    assert list(load_reviews("imdb")) == ["train", "test"]
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder))
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews("sst2")
    assert_three_lines(str(caught.value), "which lacks data/*.parquet for train, validation", "SST-2",
                       "data/train-*.parquet and data/validation-*.parquet")


def test_sst2_comes_from_the_hub_once_and_then_from_the_cache(sst2_folder, empty_cache, monkeypatch, capfd):
    with Hub(sst2_folder, "good", SST2) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert_is_sst2(load_reviews("sst2", timeout=60))
    assert hub.asked > 0 and hub.revisions == {SST2.revision}
    assert capfd.readouterr() == ("", "Downloading SST-2 (about 3 MB) to the datasets cache …\n")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert_is_sst2(load_reviews("sst2"))


def test_whoever_wants_more_of_sst2_is_told_that_its_test_split_has_no_labels(sst2_folder, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(sst2_folder))
    with pytest.raises(ValueError, match="SST-2 has no unsupervised reviews; .*its test split has no labels, each is -1"):
        load_reviews("sst2", unsupervised=True)
    test, validation = (sst2_folder / "data" / f"{split}-00000-of-00001.parquet" for split in ("test", "validation"))
    test.rename(validation)
    with pytest.raises(ValueError, match=r"validation.*got the labels -1; expected 0 and 1 alone.*test split has no label"):
        load_reviews("sst2")


def test_files_of_other_columns_are_no_copy_of_sst2(sst2_folder, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(sst2_folder))
    write_parquet(sst2_folder / "data" / "train-00000-of-00001.parquet", ["fine"], [1])
    with pytest.raises(ValueError, match="the columns 'text', 'label'; expected sentence and label, .* SST-2's own files"):
        load_reviews("sst2")
