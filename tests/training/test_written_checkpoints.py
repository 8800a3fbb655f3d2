"""A checkpoint for the library is written whole or not at all, and never over anything else."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file

from course_utils.training import written_checkpoints
from course_utils.training.written_checkpoints import write_checkpoint

WEIGHTS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.float64)}


def write(folder, number=1, check=None):
    """A checkpoint of which every file holds `number`."""
    return write_checkpoint(folder, {"number": number}, {name: number * tensor for name, tensor in WEIGHTS.items()},
                            {"vocab.txt": f"{number}\n"}, check)


def number_in(folder) -> int | None:
    """The number in all files of a checkpoint; an error for a mixture, None where there is nothing."""
    if not folder.exists():
        return None
    found = {json.loads((folder / "config.json").read_text())["number"], int((folder / "vocab.txt").read_text()),
             int(load_file(folder / "model.safetensors")["b"][0])}
    assert len(found) == 1, found
    return found.pop()


def test_it_is_written_read_once_and_replaced(tmp_path):
    seen = []
    for number in (1, 2):
        assert write(tmp_path / "new" / "it", number, lambda path: seen.append((path.name, number_in(path)))) == (
            (tmp_path / "new" / "it").resolve())
        assert number_in(tmp_path / "new" / "it") == number
    assert [number for _, number in seen] == [1, 2] and all(name.endswith(".partial") for name, _ in seen)
    assert {path.name for path in (tmp_path / "new").iterdir() if path.name[0] != "."} == {"it"}
    weights = load_file(tmp_path / "new" / "it" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert torch.equal(weights["a"], 2 * WEIGHTS["a"])


def test_what_can_not_be_read_again_is_not_written(tmp_path):
    write(tmp_path / "it")

    def refuse(path):
        raise ValueError(f"{path} is no good")

    with pytest.raises(ValueError, match="the model isn't saved, since it couldn't be loaded: .*/it is no good"):
        write(tmp_path / "it", 2, refuse)
    assert number_in(tmp_path / "it") == 1
    with pytest.raises(ValueError, match="isn't saved: a holds numbers that are NaN or infinite"):
        write_checkpoint(tmp_path / "it", {}, {"a": torch.tensor([1.0, torch.inf])}, {})
    assert number_in(tmp_path / "it") == 1 and not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("what", ["notes.txt", "checkpoint-30", "model.safetensors.index.json"])
def test_a_folder_with_anything_else_in_it_is_left_alone(tmp_path, what):
    write(tmp_path / "it")
    (tmp_path / "it" / what).mkdir() if "." not in what else (tmp_path / "it" / what).write_text("mine")
    with pytest.raises(ValueError, match=f"it holds {what}.*choose a new name"):
        write(tmp_path / "it", 2)
    assert number_in(tmp_path / "it") == 1 and (tmp_path / "it" / what).exists()


@pytest.mark.parametrize("name, words", [("", "name of a folder and got ''"), (3, "got 3"), ("a\0b", "name of a folder")])
def test_a_name_that_is_none_is_refused(name, words):
    with pytest.raises(ValueError, match=words):
        write(name)


def test_a_file_of_that_name_is_refused(tmp_path):
    (tmp_path / "it").write_text("mine")
    with pytest.raises(ValueError, match="it is a file; a model is saved in a folder"):
        write(tmp_path / "it")


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_a_kill_at_any_moment_leaves_the_old_checkpoint_or_the_new_one(tmp_path, monkeypatch):
    """A child is ended before its first, second, third … operation on files, until one gets through."""
    write(tmp_path / "it", 1)
    operations = [(os, "replace"), (os, "fsync"), (written_checkpoints, "write_bytes"), (written_checkpoints, "write_json"),
                  (written_checkpoints, "remove_partials")]
    for stop in range(1, 60):
        child = os.fork()
        if child == 0:
            left = [stop]

            def counted(real, left=left):
                def call(*args, **options):
                    left[0] -= 1
                    if left[0] == 0:
                        os._exit(9)
                    return real(*args, **options)
                return call

            for module, name in operations:
                setattr(module, name, counted(getattr(module, name)))
            write(tmp_path / "it", 2)
            os._exit(0)
        done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if number_in(tmp_path / "it") is None:                             # between the two renames: both are whole
            kept = {number_in(path) for path in tmp_path.glob("it.*.partial")}
            assert kept >= {1, 2}
            write(tmp_path / "it", 1)
        if done == 0:
            break
        write(tmp_path / "it", 1)
        assert not list(tmp_path.glob("*.partial"))                        # what the killed one left is gone
    assert done == 0 and stop > 8 and number_in(tmp_path / "it") == 2


def test_an_error_while_the_new_one_gets_its_name_puts_the_old_one_back(tmp_path, monkeypatch):
    write(tmp_path / "it", 1)
    real = os.replace

    def full(source, target):
        if os.path.basename(target) == "it" and number_in(type(tmp_path)(source)) == 2:
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "it", 2)
    assert number_in(tmp_path / "it") == 1 and not list(tmp_path.glob("*.partial"))
