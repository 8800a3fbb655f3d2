"""Multi30k from a folder, from the cache, and from a server on the loopback address."""

import gzip
import http.server
import subprocess
import threading
from functools import partial

import datasets
import pytest
from review_makers import no_child

from course_utils.data import DataNotAvailable, multi30k
from course_utils.data.translations import load_translations

TEXTS = {
    "train": (["A dog runs.", "Two men sit ."], ["Un chien court.", "Deux hommes sont assis ."]),
    "val": (["A girl smiles."], ["Une fille sourit."]),
    "test_2016_flickr": (["Is it an owl?"], ["Est-ce qu\u2019il s'agit d'un hibou ?"]),
}


def write(folder, zipped):
    folder.mkdir(parents=True)
    for stem, sides in TEXTS.items():
        for language, lines in zip(("en", "fr"), sides):
            content = ("\n".join(lines) + "\n").encode()
            if zipped:
                (folder / f"{stem}.{language}.gz").write_bytes(gzip.compress(content, mtime=0))
            else:
                (folder / f"{stem}.{language}").write_bytes(content)
    return folder


def assert_is_multi30k(splits):
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 2, "validation": 1, "test": 1}
    assert splits["train"].column_names == ["source", "target", "source_tokens", "target_tokens"]
    assert splits["train"]["target"][1] == "Deux hommes sont assis ."
    assert splits["test"][0]["source_tokens"] == ["Is", "it", "an", "owl", "?"]
    assert splits["test"][0]["target_tokens"] == ["Est-ce", "qu'", "il", "s'", "agit", "d'", "un", "hibou", "?"]


@pytest.mark.parametrize("named, zipped", [("multi30k", False), (".", True)])
def test_it_is_read_from_the_named_folder_or_its_parent(tmp_path, monkeypatch, named, zipped):
    write(tmp_path / "multi30k", zipped)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / named))
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert_is_multi30k(load_translations("multi30k"))


def test_damaged_files_are_named(tmp_path, monkeypatch):
    folder = write(tmp_path / "multi30k", True)
    monkeypatch.setenv("COURSE_DATA", str(folder))
    (folder / "val.fr.gz").write_bytes(b"cut off")
    with pytest.raises(ValueError, match=r"val.fr.gz can't be read .*; expected UTF-8 text, gzipped"):
        load_translations("multi30k")
    (folder / "val.fr.gz").write_bytes(gzip.compress(b"une ligne\nune autre\n"))
    with pytest.raises(ValueError, match=r"val.en.gz has 1 lines and .*val.fr.gz has 2; expected one translation"):
        load_translations("multi30k")
    (folder / "val.fr.gz").write_bytes(gzip.compress(b"un\n\nune\n"))
    with pytest.raises(ValueError, match="line 2 is empty"):
        load_translations("multi30k")


def assert_three_lines(message, tried):
    lines = message.splitlines()
    assert len(lines) == 3 and lines[0].startswith("Multi30k could not be loaded: ") and tried in lines[0]
    assert "COURSE_DATA" in lines[1] and ".fr.gz" in lines[1]
    assert "connect" in lines[2] and 'load_translations("translation")' in lines[2]


def test_a_named_folder_without_it_is_refused_in_three_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", no_child)
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    with pytest.raises(DataNotAvailable) as caught:
        load_translations("multi30k")
    assert_three_lines(str(caught.value), f"COURSE_DATA names {tmp_path}, which lacks one of train.en")
    with pytest.raises(ValueError, match="got source='wmt'; expected one of 'translation'"):
        load_translations("wmt")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """No request log among the test's output."""


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of the files in `tmp_path / "there"`, in place of the network."""
    handler = partial(Quiet, directory=tmp_path / "there")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        monkeypatch.setattr(multi30k, "ADDRESS", f"http://127.0.0.1:{serving.server_port}")
        yield
        serving.shutdown()


def test_it_is_fetched_once_at_its_pinned_commit_and_then_read_from_the_cache(
        tmp_path, empty_cache, server, monkeypatch, capfd):
    with pytest.raises(DataNotAvailable) as caught:
        load_translations("multi30k", timeout=60)
    assert_three_lines(str(caught.value), "answered with status 404")
    write(tmp_path / "there" / "multi30k" / "dataset" / multi30k.REVISION / "data" / "task1" / "raw", True)
    assert_is_multi30k(load_translations("multi30k", timeout=60))
    assert capfd.readouterr() == ("", "Downloading Multi30k (about 2 MB) to the datasets cache …\n")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert_is_multi30k(load_translations("multi30k"))


def test_offline_mode_is_respected(empty_cache, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(subprocess, "Popen", no_child)
    with pytest.raises(DataNotAvailable) as caught:
        load_translations("multi30k")
    assert_three_lines(str(caught.value), "was not asked, since HF_HUB_OFFLINE")
