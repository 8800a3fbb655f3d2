"""Downloads from the Hugging Face hub by a child process: it can be stopped whatever its sockets do.

Does: start it, wait for the hub's first answer, stop a transfer that stalls, say in one line why nothing came. Does not:
know what is fetched (`hub` fetches reviews, `course_utils.training.hugging_face` models).
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from itertools import chain
from urllib.parse import urlsplit

from course_utils.files.bars import stream

__all__ = ["HUB_TIMEOUT", "fetch", "hub_name"]

HUB_TIMEOUT = 14.0  # seconds; with a child process to start and to stop, the caller waits less than 20

# A child process reads HF_ENDPOINT and the like now, while this process read them when it imported the library. It
# prints "answered" once the hub has listed the files, and in the end "done" or why not; a task may `refuse(why)`. While
# files come a thread watches: under 1,000 bytes a second, and next to no work for the processor, is a stall.
_CHILD = """
import os, sys, threading, time
import huggingface_hub

class Refused(Exception):
    pass

def refuse(why):
    raise Refused(why)

def watch(limit):
    responses, mark = [], (time.monotonic(), 0, time.process_time())
    while True:
        hooks = huggingface_hub.get_session().event_hooks["response"]
        if responses.append not in hooks:  # the library makes a new session after an error
            hooks.append(responses.append)
        time.sleep(0.05)
        received = sum(response.num_bytes_downloaded for response in responses)
        now = (time.monotonic(), received, time.process_time())
        if now[1] - mark[1] > 1000 * limit or now[2] - mark[2] > 0.05 * limit:
            mark = now
        elif now[0] - mark[0] > limit:
            print("stopped sending", flush=True)
            os._exit(1)

problem = "could not be reached"
try:
    TASK = sys.argv[2:]
    ASK
    print("answered", flush=True)
    problem = "gave no copy that can be stored"
    threading.Thread(target=watch, args=[float(sys.argv[1])], daemon=True).start()
    STORE
    print("done", flush=True)
except Refused as error:
    print(error)
except Exception as error:
    last, status = error, None
    while error is not None and status is None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        error = error.__cause__ or error.__context__
    print(f"answered with status {status}" if status else f"{problem} ({type(last).__name__})")
"""


def hub_name() -> str:
    """What messages call the hub: 'the hub (huggingface.co)', or the address that HF_ENDPOINT names."""
    return f"the hub ({urlsplit(os.environ.get('HF_ENDPOINT', 'https://huggingface.co')).netloc.split('@')[-1]})"


def fetch(title: str, place: str, ask: str, store: str, task: list[str], settings: dict[str, str], timeout: float,
          stall: float, site: str = "") -> str | None:
    """Run the statements `ask`, then `store`, in a child process, where `TASK` is the list `task`. Returns None, or why not.

    `title` and `place` are for the line that says what is downloaded, and where to; `settings` are environment variables.
    The hub has `timeout` seconds for its answer to `ask`, and may then be silent for `stall` seconds. `site` is its name
    in messages, if it isn't the hub.
    """
    site, lines = site or hub_name(), []
    for line in _CHILD.splitlines():
        part = {"ASK": ask, "STORE": store}.get(line.strip())
        lines += [f"    {one}" for one in part.strip().splitlines()] if part else [line]
    code = "\n".join(lines)
    child = subprocess.Popen([sys.executable, "-c", code, str(stall), *task], env=os.environ | settings, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    said = queue.Queue()

    def listen():
        with child.stdout:
            for line in chain(child.stdout, [""]):
                said.put(line.strip())

    threading.Thread(target=listen, daemon=True).start()
    try:
        line = said.get(timeout=timeout)
        if line == "answered":
            print(f"Downloading {title} to {place} …", file=stream())
            line = said.get()
        return None if line == "done" else f"{site} {line or 'was not asked: the process for it ended'}"
    except queue.Empty:
        return f"{site} did not answer within {timeout:g} seconds"
    finally:
        child.kill()
        child.wait()
