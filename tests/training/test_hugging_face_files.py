"""Models from a hub that doesn't always answer: once, then from the cache; three lines where there is none."""

import re
import socket
import subprocess
import time

import huggingface_hub.constants
import pytest
from fake_hub import ModelHub

from course_utils.data.fetching import HUB_TIMEOUT
from course_utils.training.hugging_face import ModelNotAvailable, find_checkpoint, find_if_allowed

pytestmark = pytest.mark.slow

FILES = {"config.json": b"{}", "model.safetensors": b"12345678", "vocab.json": b"{}", "README.md": b"words"}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """`hub(mode, files)` starts one; the cache is empty, and the library asks the loopback address directly."""
    for name in ("COURSE_MODELS", "COURSE_DOWNLOAD", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache" / "hub"))

    def start(mode, files=FILES):
        made = ModelHub(mode, files)
        monkeypatch.setenv("HF_ENDPOINT", made.address)
        return made

    return start


def no_child(*_args, **_settings):
    raise AssertionError("a child process was started to ask the hub")


def refused(name="some/model", **options) -> list[str]:
    with pytest.raises(ModelNotAvailable) as caught:
        find_checkpoint(name, **options)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    lines = str(caught.value).splitlines()
    assert len(lines) == 3 and lines[0].startswith(f"{name} could not be loaded: COURSE_MODELS is not set, the hub's cache")
    assert f"{name}/model.safetensors" in lines[1] and "connect" in lines[2]
    return lines


def test_a_model_is_fetched_once_and_then_read_from_the_cache(hub, monkeypatch, capfd):
    with hub("good") as server:
        folder = find_checkpoint("some/model", timeout=60)
        assert server.asked > 0
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "vocab.json"}
    assert (folder / "model.safetensors").read_bytes() == b"12345678"
    assert capfd.readouterr() == ("", "Downloading some/model to the hub's cache …\n")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert find_checkpoint("some/model") == folder


@pytest.mark.parametrize("files, words", [
    ({"config.json": b"{}", "pytorch_model.bin": b"1"}, "only weights in PyTorch's older format, which"),
    ({"config.json": b"{}", "vocab.txt": b"a"}, "has no model.safetensors for that name."),
    ({"config.json": b"{}", "model.safetensors.index.json": b"1"}, "in several files, which the course doesn't read"),
])
def test_what_the_hub_lacks_is_said_before_anything_is_downloaded(hub, files, words, capfd):
    with hub("good", files):
        assert words in refused(timeout=60)[0]
    assert capfd.readouterr() == ("", "")


def test_a_hub_that_refuses_errs_or_stalls_is_reported(hub, monkeypatch):
    with hub("error"):
        assert "answered with status 500" in refused()[0]
    with hub("stalls"):
        assert "stopped sending" in refused(timeout=5)[0]
    with socket.socket() as unused:                                        # bound and not listening: a port that refuses
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        assert "could not be reached (ConnectError)" in refused()[0]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert "was not asked, since HF_HUB_OFFLINE is on" in refused()[0]


def test_a_silent_hub_is_given_up_in_time(hub):
    assert HUB_TIMEOUT <= 15
    with hub("silent"):
        start = time.monotonic()
        assert "did not answer within 3 seconds" in refused(timeout=3)[0]
        assert time.monotonic() - start < 20


# what asks first


def test_nothing_is_asked_of_the_hub_until_downloads_are_allowed(hub, monkeypatch, capfd):
    with hub("good") as server:
        assert find_if_allowed("mine", "some/model", megabytes=950) is None
        assert find_if_allowed("some/model", megabytes=950, timeout=60) is None and server.asked == 0
        said = capfd.readouterr().out.splitlines()                         # three lines each
        assert said[:3] == said[3:] and len(said) == 6
        assert said[0] == "some/model isn't on this machine; the rest of the notebook works without it."
        assert re.fullmatch(r"It's 950 MB to download from the hub \(127.*\)\. To allow that, run this, and then this cell "
                            "again: %env COURSE_DOWNLOAD=1", said[1])
        assert said[2] == "If you have it as FOLDER/model, run this instead: %env COURSE_MODELS=FOLDER"
        monkeypatch.setenv("COURSE_DOWNLOAD", "0")
        assert find_if_allowed("some/model", megabytes=950) is None and server.asked == 0
        monkeypatch.setenv("COURSE_DOWNLOAD", "1")
        folder = find_if_allowed("mine", "some/model", megabytes=950, timeout=60)
        assert server.asked > 0 and (folder / "model.safetensors").read_bytes() == b"12345678"
    capfd.readouterr()
    monkeypatch.delenv("COURSE_DOWNLOAD")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert find_if_allowed("mine", "some/model", megabytes=950) == folder  # what's there needs no permission
    assert find_if_allowed("some/model", "another/model", megabytes=950) == folder
    assert capfd.readouterr().out == ""


def test_a_folder_of_models_is_used_without_a_question_and_asked_for_nothing_else(hub, tmp_path, monkeypatch, capfd):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_DOWNLOAD", "1")
    monkeypatch.setattr(subprocess, "Popen", no_child)
    assert find_if_allowed("mine", "some/model", megabytes=90) == tmp_path / "models" / "mine"
    assert find_if_allowed("some/model", megabytes=90) is None
    said = capfd.readouterr().out
    assert said.splitlines()[0] == (
        f"some/model could not be loaded: COURSE_MODELS names {tmp_path / 'models'}, which has no folder some/model.")
    assert "some/model/model.safetensors" in said and "%env COURSE_MODELS=)" in said and "internet" not in said
    assert len(said.splitlines()) == 3
    assert find_if_allowed("mine", megabytes=90, tokenizer=True) is None
    assert "has a model and no tokenizer, neither tokenizer.json nor vocab.txt" in capfd.readouterr().out


def test_a_copy_without_its_tokenizer_is_completed_if_that_is_allowed(hub, monkeypatch, capfd):
    with hub("good") as server:
        folder = find_checkpoint("some/model", timeout=60)
        (folder / "vocab.json").unlink()                                   # as a program leaves it that wants the weights
        capfd.readouterr()
        assert find_if_allowed("some/model", megabytes=950) == folder and capfd.readouterr().out == ""
        asked = server.asked
        assert find_if_allowed("some/model", megabytes=950, tokenizer=True) is None and server.asked == asked
        said = capfd.readouterr().out
        assert "some/model is on this machine without its tokenizer; the rest" in said and "It's 1 MB" in said
        monkeypatch.setenv("COURSE_DOWNLOAD", "1")
        assert find_if_allowed("some/model", megabytes=950, tokenizer=True, timeout=60) == folder
        assert (folder / "vocab.json").is_file()
