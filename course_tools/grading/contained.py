"""Runs a program of somebody else's for a limited time, and leaves no process of it behind.

The program runs in a session of its own. Afterwards the whole session is killed, and on Linux also what has left it:
processes that carry the program's mark in their environment, and orphans, which fall to the process that waits here.
Elsewhere a process that has left its session is not found.

Does: start, wait, kill, say how it ended. Does not: limit what the program may read or write (see `confinement`).
"""

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

LINUX = sys.platform.startswith("linux")
MARK = "COURSE_HAND_IN"
CHILD_SUBREAPER = 36


class Ended(NamedTuple):
    """What a program wrote; how it ended: 'itself', 'time', 'too much' (written); how many processes couldn't be ended."""

    output: bytes
    how: str
    left: int


def run(command: list[str], task: bytes, environment: dict[str, str], folder: Path, seconds: float, most: int) -> Ended:
    """Run a program on standard input for at most some `seconds`; keep at most `most` bytes of its output."""
    mark = secrets.token_hex(16)
    before = {pid for pid, *_ in _processes()}
    output = bytearray()
    full = threading.Event()

    def read(pipe):
        with pipe:
            while piece := pipe.read1(1 << 16):
                output.extend(piece[: most - len(output)])
                if len(output) >= most:
                    full.set()
                    return

    with _adopting_orphans(), _tidy_when_told_to_end(), tempfile.TemporaryFile() as given:
        given.write(task)
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder,
                                   env={**environment, MARK: mark}, start_new_session=True)
        reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            until = time.monotonic() + seconds
            while not full.is_set() and time.monotonic() < until:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(0.1, max(0.0, until - time.monotonic())))
                    break
            how = "too much" if full.is_set() else "time" if process.poll() is None else "itself"
        finally:
            left = _kill(process, mark, before)
        reader.join(5)
    return Ended(bytes(output), "too much" if full.is_set() else how, left)


@contextlib.contextmanager
def _adopting_orphans():
    """Become the parent of every orphan among the processes that are started inside."""
    if LINUX:
        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        if LINUX:
            ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 0, 0, 0, 0)


@contextlib.contextmanager
def _tidy_when_told_to_end():
    """SIGTERM, or a closed terminal, ends this process as Ctrl-C does: what has been started is killed first."""
    def end(number, _):
        sys.exit(128 + number)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():      # only there can signals be handled
        signals = []
    before = {number: signal.signal(number, end) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _kill(process: subprocess.Popen, mark: str, before: set[int]) -> int:
    """Kill a program and whatever it has started, for 10 seconds at most; the number of those that are still there."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        strays = _strays(process.pid, mark, before)
        with contextlib.suppress(OSError, AttributeError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in strays:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
        for pid in strays - {process.pid}:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        if not strays and process.poll() is not None:
            break
        time.sleep(0.01)
    return len(strays)


def _strays(session: int, mark: str, before: set[int]) -> set[int]:
    """The living processes of a session, those with the mark, and orphans that weren't there before."""
    me = os.getpid()
    own_session = os.getsid(0) if LINUX else 0
    found = set()
    for pid, parent, its_session, state in _processes():
        orphan = parent == me and pid not in before and its_session != own_session
        if pid == me or not (orphan or state != "Z" and (its_session == session or _carries(pid, mark, before))):
            continue
        found.add(pid)
    return found


def _carries(pid: int, mark: str, before: set[int]) -> bool:
    if pid in before:
        return False
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def _processes():
    """(process, parent, session, state) of every process; nothing where there is no /proc."""
    if not LINUX:
        return
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                told = Path(f"/proc/{name}/stat").read_text(errors="replace")
                state, parent, _, session = told.rpartition(")")[2].split()[:4]
            except (OSError, ValueError):
                continue
            yield int(name), int(parent), int(session), state
