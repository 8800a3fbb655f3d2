"""Multi30k from a folder, from the cache, and from a server on the loopback address that does not always answer."""

import gzip
import http.server
import subprocess
import threading

import datasets
import pytest

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


def no_child(*_args, **_settings):
    raise AssertionError("a child process was started to ask the network")


def assert_is_multi30k(splits):
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 2, "validation": 1, "test": 1}
    assert splits["train"].column_names == ["source", "target", "source_tokens", "target_tokens"]
    assert splits["train"]["target"][1] == "Deux hommes sont assis ."
    assert splits["test"][0]["source_tokens"] == ["Is", "it", "an", "owl", "?"]
    assert splits["test"][0]["target_tokens"] == ["Est-ce", "qu'", "il", "s'", "agit", "d'", "un", "hibou", "?"]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("named", ["multi30k", "."])
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
    with pytest.raises(
        ValueError, match="got source='wmt'; expected one of 'translation', 'handwritten_translation', 'multi30k'"
    ):
        load_translations("wmt")


class Server(http.server.ThreadingHTTPServer):
    """Serves the files of a folder as the repository does, or misbehaves."""

    daemon_threads = True

    def __init__(self, folder, mode):
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder, self.mode, self.paths, self.stop = folder, mode, [], threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """A client that is stopped while it waits is what these tests are about."""


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.paths.append(self.path)
        path = self.server.folder / self.path.split("/")[-1]
        if self.server.mode == "silent" or self.server.mode == "stall" and "train" in path.name:
            self.server.stop.wait(60)
        elif self.server.mode == "error" or not path.is_file():
            self.send_error(503)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(path.stat().st_size))
            self.end_headers()
            self.wfile.write(path.read_bytes())

    def log_message(self, *_):
        """No request log among the test's output."""


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache" / "datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_it_is_fetched_once_at_its_pinned_commit_and_then_read_from_the_cache(tmp_path, empty_cache, monkeypatch, capfd):
    with Server(write(tmp_path / "there", True), "good") as server:
        monkeypatch.setattr(multi30k, "ADDRESS", server.address)
        assert_is_multi30k(load_translations("multi30k", timeout=60))
    assert len(server.paths) == 6
    assert all(path.startswith(f"/multi30k/dataset/{multi30k.REVISION}/data/task1/raw/") for path in server.paths)
    assert capfd.readouterr() == ("", "Downloading Multi30k (about 2 MB) to the datasets cache …\n")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert_is_multi30k(load_translations("multi30k"))


@pytest.mark.parametrize(
    "mode, tried",
    [("error", "answered with status 503"), ("silent", "did not answer within 6 seconds"), ("stall", "stopped sending")],
)
def test_a_server_that_does_not_answer_is_reported_in_three_lines(tmp_path, empty_cache, monkeypatch, mode, tried):
    with Server(write(tmp_path / "there", True), mode) as server:
        monkeypatch.setattr(multi30k, "ADDRESS", server.address)
        timeout = 6 if mode == "silent" else 60
        if mode == "stall":
            failure = multi30k._download(tmp_path / "copy", timeout, stall=2)
            assert tried in failure and not (tmp_path / "copy").exists()
            return
        with pytest.raises(DataNotAvailable) as caught:
            load_translations("multi30k", timeout=timeout)
    assert_three_lines(str(caught.value), tried)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_offline_mode_is_respected(empty_cache, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(subprocess, "Popen", no_child)
    with pytest.raises(DataNotAvailable) as caught:
        load_translations("multi30k")
    assert_three_lines(str(caught.value), "was not asked, since HF_HUB_OFFLINE")
