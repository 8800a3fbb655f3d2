"""A command that starts processes of its own: run it, wait for a while, and leave none of them running.

Does: run one command in a group of its own, with what it printed. Does not: know what the command is for.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence


def run_in_group(command: Sequence[str], seconds: float, **environment: str) -> tuple[int | None, str]:
    """Run a command; return its exit status, None if it didn't end within `seconds` or couldn't start, and what it said.

    `environment` is added to this process's. Whatever ends the wait, a time limit or an interrupt as well, the command and
    every process that it started are ended before this returns. (On Windows these are the command and its children.)
    """
    apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if os.name == "nt" else {"start_new_session": True}
    try:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, encoding="utf-8", errors="replace", env={**os.environ, **environment}, **apart)
    except OSError as error:
        return None, f"{type(error).__name__}: {error}"
    try:
        said, _ = running.communicate(timeout=seconds)
        return running.returncode, said
    except subprocess.TimeoutExpired:
        return None, f"it hadn't ended after {seconds:.0f} seconds"
    finally:
        _end(running)


def _end(running: subprocess.Popen) -> None:
    """End a process and all that it has started."""
    if os.name == "nt":
        with contextlib.suppress(OSError):
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(running.pid)], capture_output=True, check=False)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)      # the group lives as long as any of its processes
    if running.stdout:
        running.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(timeout=5)
