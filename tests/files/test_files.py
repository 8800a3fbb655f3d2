"""Files are written whole or not at all, and one process at a time works on a folder."""

import ast
import multiprocessing
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_utils import files
from course_utils.files import (
    InUse,
    fingerprint,
    locked,
    other_than_a_file,
    remove_partials,
    replacing,
    replacing_folder,
    write_bytes,
    write_json,
    write_text,
)


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "ä\n")
    write_text(path, "b\n")
    assert path.read_bytes() == b"b\n" and os.listdir(path.parent) == ["a.txt"]
    write_json(path, {"ä": [1]}, indent=None)
    assert path.read_bytes() == '{"ä": [1]}\n'.encode()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_after_an_error_the_old_file_is_there_and_the_unfinished_one_is_not(tmp_path, error):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(type(error)), replacing(path) as partial:
        partial.write_text("half of the new")
        raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("limit", [0, 1000])
def test_a_full_disk_leaves_the_old_file(tmp_path, limit):
    write_bytes(tmp_path / "a", b"old")
    program = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)           # writing past the limit is then an error, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
from course_utils.files import write_bytes
write_bytes({str(tmp_path / "a")!r}, b"n" * 100_000)
"""
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.returncode == 1 and f"File too large: {str(tmp_path / 'a')!r}" in child.stderr
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600)])
def test_the_mode_follows_the_umask_even_if_the_writer_chose_another(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a", "a")
        with replacing(tmp_path / "b") as partial:
            partial.unlink()
            os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o640))
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [mode, mode]


def test_the_content_is_on_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(files.os, "fsync", lambda number: order.append("fsync") or fsync(number))
    monkeypatch.setattr(files.os, "replace", lambda old, new: order.append("replace") or replace(old, new))
    write_text(tmp_path / "a", "a")
    assert order[:2] == ["fsync", "replace"]


def test_a_link_stays_a_link(tmp_path):
    write_text(tmp_path / "a", "old")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="there are no pipes with names on Windows")
def test_what_is_no_file_is_not_replaced(tmp_path):
    """As root, a file once took the place of /dev/null."""
    places = {"a folder": tmp_path / "folder", "a pipe": tmp_path / "pipe", "a socket": tmp_path / "socket",
              "a device": Path(os.devnull)}
    places["a folder"].mkdir()
    os.mkfifo(places["a pipe"])
    bound = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    try:
        os.chdir(tmp_path)                              # a socket's whole path may be no longer than 100 letters or so
        bound.bind("socket")
        for what, path in places.items():
            if what == "a device":                      # the true one is only asked: nobody's computer shall lose it
                assert other_than_a_file(path) == what
                path = tmp_path / "like a device"
                path.symlink_to(places["a pipe"])
                what = "a pipe"
            mode = path.stat().st_mode
            with pytest.raises(OSError, match=f"it is {what}; expected a file, or nothing, of that name: ") as refused:
                write_text(path, "new")
            assert refused.value.filename == os.path.realpath(path) and path.stat().st_mode == mode
    finally:
        os.chdir(before)
        bound.close()
    assert sorted(os.listdir(tmp_path)) == ["folder", "like a device", "pipe", "socket"]
    assert other_than_a_file(tmp_path / "nothing") == other_than_a_file("a\0b") == ""
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "new")


IN_PLACE = {                                            # what may be written in place, and why
    "holder.write_text": "a note beside a lock, which is read as such or not at all",
    "partial.write_bytes": "what `replacing` gives to write to",
    "(scratch / 'work' / 'notebook.ipynb').write_bytes": "in a folder of this grading alone",
    "file.open": "the claims of `make seeds`, a line as each run ends",
    "Path('/proc/self/clear_refs').write_text": "no file but a request to the system",
}


def test_nothing_in_the_course_writes_a_file_in_place(root):
    """A kill in the middle leaves half a file. What writes goes through `files`, or is listed above with its reason."""
    found = []
    for path in sorted([*(root / "course_utils").rglob("*.py"), *(root / "data").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and writes_in_place(node):
                found.append((ast.unparse(node.func), f"{path.name}, line {node.lineno}: {ast.unparse(node)[:80]}"))
    assert [where for called, where in found if called not in IN_PLACE] == []
    assert "partial.write_bytes" in dict(found)         # so it does find them


def writes_in_place(call: ast.Call) -> bool:
    """Whether a call writes to a path that isn't the partial file of `replacing`, or in memory, or the null device."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    first = ast.unparse(call.args[0]) if call.args else ""
    if first in ("partial", "os.devnull"):
        return False
    if name == "open":                                  # open(path, "w"), path.open("w")
        modes = [*call.args[0 if owner else 1:][:1], *(word.value for word in call.keywords if word.arg == "mode")]
        return any(isinstance(mode, ast.Constant) and str(mode.value)[:1] in "wx" for mode in modes)
    if name in ("write_text", "write_bytes"):
        return bool(owner) and owner.rpartition(".")[2] != "files"
    if name == "write":
        return owner == "nbformat"
    if name in ("to_csv", "to_json", "to_parquet"):
        return bool(call.args)                          # without a path they give text
    if name == "savefig":
        return first not in ("png", "svg")              # pictures in memory
    return name == "save_file" and "partial" not in ast.unparse(call)


def test_only_leftovers_of_the_same_file_are_removed(tmp_path):
    kept = ["a.txt", "a.txt.partial", "b.txt.12-0123abcd.partial", "my.partial"]
    for name in [*kept, "a.txt.12-0123abcd.partial"]:
        (tmp_path / name).write_text("")
    remove_partials(tmp_path / "a.txt")
    assert sorted(os.listdir(tmp_path)) == kept


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with replacing_folder(tmp_path / "models" / "a") as partial:
        write_text(partial / "one", "1")
        assert not (tmp_path / "models" / "a").exists()
    assert (tmp_path / "models" / "a" / "one").read_text() == "1"
    with pytest.raises(KeyboardInterrupt):
        with replacing_folder(tmp_path / "models" / "b") as partial:
            write_text(partial / "one", "1")
            raise KeyboardInterrupt
    assert os.listdir(tmp_path / "models") == ["a"]
    left = tmp_path / "models" / "b.12-0123abcd.partial"                   # a kill leaves it, the next run removes it
    left.mkdir()
    (left / "one").write_text("1")
    remove_partials(tmp_path / "models" / "b")
    assert os.listdir(tmp_path / "models") == ["a"]


def test_a_folder_is_replaced_by_a_whole_one_or_stays(tmp_path):
    path = tmp_path / "models" / "a"
    for number in ("1", "2"):
        with replacing_folder(path) as partial:
            write_text(partial / f"file {number}", number)
        assert os.listdir(path) == [f"file {number}"]
    with pytest.raises(KeyboardInterrupt):
        with replacing_folder(path) as partial:
            write_text(partial / "file 3", "3")
            raise KeyboardInterrupt
    assert os.listdir(path) == ["file 2"] and os.listdir(tmp_path / "models") == ["a"]


def test_a_fingerprint_depends_on_every_part_and_on_nothing_else():
    assert fingerprint("a", "b") == fingerprint("a", "b") != fingerprint("ab", "")
    assert fingerprint({"x": 1, "y": 2}) == fingerprint({"y": 2, "x": 1}) != fingerprint({"x": 2, "y": 1})
    assert fingerprint(["ä"], [0]) == "cf75f8efb2ef"    # names folders of trained models: it must not change


def hold(path, queue) -> None:
    with locked(path, "baking bread"):
        queue.put(os.getpid())
        time.sleep(600)


def test_a_lock_says_who_has_it_and_ends_with_its_process(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=hold, args=(tmp_path, queue))
    process.start()
    number = queue.get(timeout=60)
    try:
        with pytest.raises(InUse, match=rf"is in use by process {number} on .*baking bread, since \d\d:\d\d.*; wait"):
            with locked(tmp_path, "something else"):
                pass
        with locked(tmp_path / "another", "a file beside it"):
            pass
    finally:
        process.kill()
        process.join()
    with locked(tmp_path, "something else", wait=30):
        pass


def test_two_threads_of_one_process_exclude_each_other_too(tmp_path):
    with locked(tmp_path / "a", "one"), pytest.raises(InUse, match=f"process {os.getpid()}.*one"):
        with locked(tmp_path / "a", "other"):
            pass
