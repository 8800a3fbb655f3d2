"""Files that are written completely or not at all: first under another name, then renamed in one step.

    write_text(path, "…")                               # or write_bytes, write_json
    with replacing(path) as partial: …                  # for a library that writes to a path
    with replacing_folder(path) as partial: …           # for several files that belong together
    with locked(folder, "training a model"): …          # one process at a time

Does: write, replace, lock, checksums and fingerprints. Does not: know what is in the files.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = [
    "InUse", "fingerprint", "locked", "other_than_a_file", "remove_partials", "replacing",
    "replacing_folder", "sha256", "write_bytes", "write_json", "write_text",
]


class InUse(RuntimeError):
    """Another process works on the file or folder; the message says which process, since when, and what to do."""


def sha256(content: bytes | str | Path) -> str:
    """The SHA-256 checksum of bytes, or of the file at a path, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    if isinstance(content, bytes):
        digest.update(content)
    else:
        with open(content, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def fingerprint(*parts) -> str:
    """A short name for settings, texts or data, as JSON can hold them: the same parts give the same name."""
    content = b"".join(json.dumps(part, sort_keys=True, ensure_ascii=False).encode() + b"\0" for part in parts)
    return sha256(content)[:12]


def other_than_a_file(path) -> str:
    """What stands at `path`, such as 'a folder', where that is no regular file; '' for a file, and where nothing is."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISREG(mode):
        return ""
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for holds, name in kinds.items() if holds(mode)), "a device")


@contextlib.contextmanager
def replacing(path) -> Iterator[Path]:
    """A path beside `path` to write to; at the end of the `with` block it takes the place of `path` in one step.

    A kill or a full disk leaves the old file as it was. After an error the unfinished file is removed and the error
    goes on. Missing folders are made. The file's mode follows the umask, whatever the library that wrote it chose.
    Raises OSError where a folder, a device or a pipe has the name: a file would take the place of /dev/null.
    """
    path = Path(os.path.realpath(path))                 # a link stays a link to the file that is replaced
    if what := other_than_a_file(path):
        number = errno.EISDIR if what == "a folder" else errno.EINVAL
        raise OSError(number, f"it is {what}; expected a file, or nothing, of that name", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _beside(path)
    try:
        with open(partial, "xb"):                       # made by us first, so that its mode is the usual one
            mode = os.stat(partial).st_mode & 0o777
        yield partial
        with open(partial, "r+b") as file:              # on disk before it gets its name, or a power cut empties it
            os.fsync(file.fileno())
        if os.stat(partial).st_mode & 0o777 != mode:
            os.chmod(partial, mode)
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(partial)):
            error.filename = str(path)                  # 'No space left on device' says where
        raise
    _flush_folder(path.parent)


@contextlib.contextmanager
def replacing_folder(path) -> Iterator[Path]:
    """A new folder beside `path` to fill; at the end of the `with` block it takes the place of what has that name.

    After an error it is removed and the error goes on. A kill leaves the old folder whole or the new one whole; between the
    two renames both, under names like '….partial'.
    """
    path = Path(os.path.realpath(path))
    partial, old = _beside(path), _beside(path)
    partial.mkdir(parents=True)
    try:
        yield partial
        if path.exists():
            os.replace(path, old)
        try:
            os.replace(partial, path)
        except OSError:
            if old.exists():
                os.replace(old, path)
            raise
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
    _flush_folder(path.parent)


def _beside(path: Path) -> Path:
    """A name that nobody else uses, which `remove_partials` knows."""
    return path.with_name(f"{path.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def _flush_folder(folder: Path) -> None:
    """Ask the disk to keep the new name, where the system can (not on Windows)."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def write_bytes(path, content: bytes) -> None:
    """Write a file, whole or not at all (see `replacing`)."""
    with replacing(path) as partial:
        partial.write_bytes(content)


def write_text(path, text: str) -> None:
    """Write a text file in UTF-8 with plain newlines, whole or not at all (see `replacing`)."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path, content, indent: int | None = 1) -> None:
    """Write JSON with a newline at its end, whole or not at all (see `replacing`)."""
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:                          # half a character, as in the name of a file from an old disk
        text = json.dumps(content, indent=indent)
    write_text(path, text + "\n")


def remove_partials(path) -> None:
    """Remove what killed writes of `path` have left beside it. Only for the process that has the lock on it."""
    path = Path(os.path.realpath(path))
    leftover = re.compile(re.escape(path.name[:100]) + r"\.\d+-[0-9a-f]{8}\.partial")
    for other in path.parent.glob("*.partial"):
        if leftover.fullmatch(other.name):
            shutil.rmtree(other) if other.is_dir() else other.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path, doing: str, wait: float = 0) -> Iterator[None]:
    """Only one process at a time works on `path`, a file or an existing folder; `doing` says what, for the others.

    Waits up to `wait` seconds (-1: without limit), then raises `InUse`, which names the process that has the lock. The
    lock is the system's: it ends with its process, however that ends. A small hidden file stays behind, in the folder or
    beside the file. Not to be taken twice by one process.
    """
    path = Path(os.path.realpath(path))
    file = path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    holder = file.with_name(f"{file.name}.holder")
    lock = FileLock(file)
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        raise InUse(f"{path} is in use by {_described(holder)}; wait until that has finished, or stop it") from None
    try:
        with contextlib.suppress(OSError):              # a full disk: the lock holds without the note
            holder.write_text(
                json.dumps({"process": os.getpid(), "computer": platform.node(), "doing": doing, "since": time.time()}),
                encoding="utf-8",
            )
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


def _described(holder: Path) -> str:
    try:
        note = json.loads(holder.read_text(encoding="utf-8"))
        since = time.strftime("%H:%M", time.localtime(note["since"]))
        return f"process {note['process']} on {note['computer']} ({note['doing']}, since {since})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
