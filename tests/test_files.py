"""Files are written whole or not at all, and one process at a time works on a folder."""

import multiprocessing
import os
import stat
import subprocess
import sys
import time

import pytest

from course_utils import files
from course_utils.files import InUse, locked, remove_partials, replacing, sha256, write_bytes, write_json, write_text


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


@pytest.mark.parametrize("limit", [0, 1, 1000, 99_999])
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


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
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


def test_only_leftovers_of_the_same_file_are_removed(tmp_path):
    kept = ["a.txt", "a.txt.partial", "b.txt.12-0123abcd.partial", "my.partial"]
    for name in [*kept, "a.txt.12-0123abcd.partial"]:
        (tmp_path / name).write_text("")
    remove_partials(tmp_path / "a.txt")
    assert sorted(os.listdir(tmp_path)) == kept


def test_checksums_are_those_of_sha256sum(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(b"abc") == sha256(tmp_path / "a") == sha256(str(tmp_path / "a")) == known


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
