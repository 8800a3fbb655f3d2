"""Answers that change the process they run in, end it, or never come back: each gets a verdict, the next answer finds
nothing of it, and the kernel is as it was."""

import math
import os
import textwrap

import pytest
import torch

from course_utils import exercises
from course_utils.exercises import verdict, workers
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge
from course_utils.exercises.worker import Surroundings
from course_utils.exercises.workers import InWorker

EXERCISE, ANSWERS = find_exercise("13.2"), answers_to("13.2")


def right(logits, token_ids, pad_id):
    return torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), token_ids[:, 1:], ignore_index=pad_id)


def rough(body: str):
    """A function with this body, as in a notebook's cell; `right` is at hand."""
    names = {"right": right, "math": math, "torch": torch, "__name__": "__main__"}
    exec("def answer(*given):\n" + textwrap.indent(textwrap.dedent(body), "    "), names)
    return names["answer"]


@pytest.fixture(scope="module")
def kernel():
    """What this process has in its modules."""
    yield Surroundings()
    workers.stop()


RIGHT = "\nreturn right(*given)"
ROUGH = {
    "F.ce replaced": "import torch.nn.functional as F\nF.cross_entropy = lambda *a, **k: a[0].sum()*0" + RIGHT,
    "del F.ce": "import torch.nn.functional as F\ndel F.cross_entropy" + RIGHT,
    "builtins.max": "import builtins\nbuiltins.max = lambda *a, **k: 0" + RIGHT,
    "builtins.abs": "import builtins\nbuiltins.abs = lambda *a: 0\nreturn 1.0",
    "builtins.isinstance": "import builtins\nbuiltins.isinstance = lambda *a: True\nreturn 1.0",
    "recursion 60": "import sys\nsys.setrecursionlimit(60)\nreturn 1.0",
    "json.dumps": "import json\njson.dumps = lambda *a, **k: 'x'\nreturn 1.0",
    "json encoder": ("import json\n"
        "json.JSONEncoder.encode = lambda *a, **k: 'x'\n"
        "json.encoder.JSONEncoder.iterencode = None\n"
        "return 1.0"),
    "os._exit": "import os\nos._exit(0)",
    "SIGKILL": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "sys.exit": "import sys\nsys.exit(3)",
    "sleep": "import time\ntime.sleep(10**6)",
    "lock": "import threading\nl = threading.Lock()\nl.acquire()\nl.acquire()",
    "input": "n = input('n? ')\nreturn 1.0",
    "stdin": "import sys\nn = sys.stdin.read()\nreturn 1.0",
    "subprocess left": "import subprocess\nsubprocess.Popen(['sleep', '1000'])" + RIGHT,
    "thread left": "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()" + RIGHT,
    "infinite output": "while True: print('x' * 100)",
    "giant recursion": "def f(n): return f(n + 1)\nreturn f(0)",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nreturn f(0)",
    "stdout closed": "import sys\nsys.stdout.close()" + RIGHT,
    "stdout None": "import sys\nsys.stdout = None" + RIGHT,
    "close 1": "import os\nos.close(1)" + RIGHT,
    "close all": "import os\nos.closerange(0, 100)" + RIGHT,
    "dtype": "import torch\ntorch.set_default_dtype(torch.float64)" + RIGHT,
    "device": "import torch\ntorch.set_default_device('meta')\nreturn 1.0",
    "seterr": "import numpy as np\nnp.seterr(all='raise')" + RIGHT,
    "patch course": ("import course_utils.exercises.wire as w, course_utils.exercises.running as r\n"
        "import course_utils.exercises.compare as c\n"
        "w.encode_run = None\n"
        "r.plain_data = None\n"
        "c.plain_data = lambda t: 1.0\n"
        "return 1.0"),
    "patch judge": ("import course_utils.exercises.judge as j\n"
        "from course_utils.exercises.definitions import Verdict\n"
        "j.judge = j._judge = lambda *a: Verdict('right', (), 'y')\n"
        "return 1.0"),
    "Tensor.__add__": "import torch\ntorch.Tensor.__add__ = lambda a, b: a\ntorch.Tensor.mean = lambda a, *b: a" + RIGHT,
    "Module.__call__": "import torch\ntorch.nn.Module.__call__ = lambda *a, **k: None" + RIGHT,
    "math.pi": "import math\nmath.pi = 3\nmath.sqrt = None" + RIGHT,
    "random": "import random\nrandom.seed = None\nrandom.random = lambda: 4" + RIGHT,
    "np": "import numpy as np\nnp.array = None\nnp.random.seed = lambda *a: None" + RIGHT,
    "no_grad forever": "import torch\ntorch.set_grad_enabled(False)\ntorch.use_deterministic_algorithms(True)" + RIGHT,
    "hooks": "import torch\ntorch.nn.modules.module.register_module_forward_hook(lambda *a: 1/0)" + RIGHT,
    "settrace": "import sys\nsys.settrace(lambda *a: 1/0)" + RIGHT,
    "sys.modules": "import sys\nsys.modules['torch'] = None\nsys.modules['json'] = sys" + RIGHT,
    "signals": ("import signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.alarm(1)\n"
        "return 1.0"),
    "chdir": "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.environ.clear()" + RIGHT,
    "warnings": "import warnings\nwarnings.simplefilter('error')" + RIGHT,
    "code": "import torch.nn.functional as F\nF.cross_entropy.__code__ = (lambda *a, **k: None).__code__" + RIGHT,
    "faulthandler": "import faulthandler\nfaulthandler.cancel_dump_traceback_later()\nreturn sum(range(10**12))",
    "kill parent's pipe": ("import os\n"
        "for i in range(3, 12):\n"
        "    try: os.write(i, b'{rubbish\\n')\n"
        "    except OSError: pass\n"
        "return 1.0"),
    "forged frames": ("import os\n"
        "for i in range(3, 12):\n"
        "    try: os.write(i, b'{\"at\": 3, \"done\": 1}\\n')\n"
        "    except OSError: pass\n"
        "return 1.0"),
    "raise KI": "raise KeyboardInterrupt",
    "raise BaseException": "raise BaseException('x')",
    "exception lies": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "memory": "return bytearray(10**15)",
    "generator": "while True: yield 1",
    "fork": "import os\nif os.fork() == 0:\n    import time; time.sleep(1000)" + RIGHT,
    "getattr": "import builtins\nbuiltins.getattr = lambda *a: 1\nbuiltins.print = None\nreturn 1.0",
    "__import__": "import builtins\nbuiltins.__import__ = None\nreturn 1.0",
    "gc": ("import gc\n"
        "gc.disable()\n"
        "import threading\n"
        "threading.Lock = None\n"
        "threading.active_count = lambda: 1\n"
        "return 1.0"),
}


FEW = ("json encoder", "SIGKILL", "stdin", "giant recursion", "patch judge")


@pytest.mark.parametrize("name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in ROUGH])
def test_after_a_rough_answer_a_right_one_is_right_and_the_kernel_is_as_it_was(name, kernel):
    kernel.extend()
    found = judge(EXERCISE, ANSWERS, InWorker(EXERCISE, rough(ROUGH[name]), 2.0, 2.0))
    assert found.state == "wrong" or (found.state == "right" and ROUGH[name].endswith(RIGHT)), found.text
    assert verdict("13.2", right).text.startswith("✓")
    assert kernel.changed() in ("", "something still runs")     # the worker process


def test_an_answer_that_breaks_the_talk_with_its_process_never_runs_in_the_kernel(tmp_path):
    seen = tmp_path / "seen.txt"
    body = f"import os\nopen({str(seen)!r}, 'a').write(f'{{os.getpid()}}\\n')\nos._exit(0)"
    assert "ended the Python process" in verdict("13.2", rough(body)).text
    assert set(seen.read_text().split()).isdisjoint({str(os.getpid())}) and seen.read_text().count("\n") == 1


def test_an_answer_does_not_mark_itself_as_solved(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    exercises.exercise("13.2").check(rough("""
        from course_utils.exercises import record
        record.mark("exercises", "13.2", {"right": True, "seed": 0, "on": "2030-01-01"})
        return torch.ones(())"""))
    assert not (tmp_path / "progress.json").exists()


def test_a_lazy_import_of_a_library_is_no_change():
    judge(EXERCISE, ANSWERS, right)
    before = workers._worker.process
    found = judge(EXERCISE, ANSWERS, rough("torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)" + RIGHT))
    assert found.state == "right" and workers._worker.process is before


@pytest.mark.parametrize("name", ["F.ce replaced", "hooks"])
def test_a_process_that_an_answer_has_changed_is_replaced(name):
    assert verdict("13.2", right).state == "right"
    before = workers._worker.process
    verdict("13.2", rough(ROUGH[name]))
    assert workers._worker.process is not before and before.poll() is not None
