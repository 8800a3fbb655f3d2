"""Runs a program of somebody else's for a limited time, and leaves no process of it behind.

Where bubblewrap is installed (Linux), the program runs in a container: it sees the folders that it is given, no network and
no process but its own, and all of them end with it. Elsewhere it runs with the rights of this process; then its session is
killed afterwards, and on Linux also what has left that session, because orphans fall to the process that waits here.

Does: start, shut in, wait, kill, say how it ended. Does not: look for a process that has left its session elsewhere.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psutil

CHILD_SUBREAPER = 36


class Ended(NamedTuple):
    """What a program wrote, and how it ended: 'itself', 'time', or 'too much' (written)."""

    output: bytes
    how: str


def in_container(readable: list[str], writable: str) -> list[str]:
    """The words that, before a command, run it in a container where it can read some folders and write to one."""
    shown = [word for folder in readable for word in ("--ro-bind-try", folder, folder)]
    return ["bwrap", "--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", *shown,
            "--bind", writable, writable]


def run(command: list[str], task: bytes, environment: dict[str, str], folder: Path, seconds: float, most: int) -> Ended:
    """Run a program on standard input for at most some `seconds`; keep at most `most` bytes of its output."""
    before = set(psutil.Process().children())
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
                                   env=environment, start_new_session=True)
        reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            until = time.monotonic() + seconds
            while not full.is_set() and process.poll() is None and time.monotonic() < until:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
            how = "time" if process.poll() is None else "itself"
        finally:
            _kill(process, before)
        reader.join(5)
    return Ended(bytes(output), "too much" if full.is_set() else how)


@contextlib.contextmanager
def _adopting_orphans():
    """On Linux, become the parent of every orphan among the processes that are started inside."""
    linux = sys.platform.startswith("linux")
    if linux:
        ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        if linux:
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


def _kill(process: subprocess.Popen, before: set[psutil.Process]) -> None:
    """Kill a program, its session, and whatever of it is below this process, for 10 seconds at most."""
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    until = time.monotonic() + 10
    while (left := set(psutil.Process().children()) - before) and time.monotonic() < until:
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.kill()
        psutil.wait_procs(left, timeout=0.1)            # their own children have become this process's
