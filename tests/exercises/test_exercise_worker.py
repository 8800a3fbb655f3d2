"""Functions run in a process of their own: whatever they do is stopped in time, and the next check works."""

import contextlib
import inspect
import io
import itertools
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback

import pytest
import torch

from course_utils import exercises
from course_utils.exercises import wire, workers
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge
from course_utils.exercises.workers import InWorker

EXERCISE, ANSWERS = find_exercise("4.2"), answers_to("4.2")


@pytest.fixture(scope="module", autouse=True)
def worker_ended_afterwards():
    yield
    workers.stop()


def verdict_on(function, seconds=60.0, exercise=EXERCISE, waiting=120.0):
    return judge(exercise, answers_to(exercise.id), InWorker(exercise, function, seconds, waiting))


def run_here(exercise, answer, seed=0):
    """What an answer does in this process, with no limit."""
    return wire.read_report(wire.report(exercise, answer, seed))


def right(query, key, value):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ value, weights


def calls_of_a_check() -> int:
    """How often a check calls the function: here it can be counted."""
    called = []

    def counting_calls(*inputs):
        called.append(1)
        return right(*inputs)

    assert judge(EXERCISE, ANSWERS, run_here(EXERCISE, counting_calls)).state == "right"
    return len(called)


def stubborn(*inputs):
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass


def ignoring_signals(*inputs):
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    return sum(range(10**12))


@pytest.mark.slow                                       # and more of them in frozen_verdicts.jsonl
@pytest.mark.parametrize("function, said", [
    (ignoring_signals, "didn't finish within a few seconds"), (stubborn, "It waits in line")])
def test_what_never_ends_is_stopped_in_time_and_the_next_check_works(function, said):
    verdict_on(right)
    before = workers._worker.process
    text = verdict_on(function, seconds=1.0, waiting=2.0).text
    assert said in text and re.search(r"in line \d+, `", text), text        # with the line that was running
    assert before.poll() is not None                    # the whole process is gone, and no zombie is left
    assert verdict_on(right).state == "right"


@pytest.mark.slow
def test_the_limit_is_for_the_whole_check_and_not_for_each_input():
    share = 2.0 / calls_of_a_check()                    # each call alone takes less than the limit, all together more

    def slow(*inputs):
        until = time.process_time() + share
        while time.process_time() < until:
            pass
        return right(*inputs)

    assert share < 1.0
    assert "didn't finish within a few seconds" in verdict_on(slow, seconds=1.0).text
    assert verdict_on(slow, seconds=60.0).state == "right"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a process can't be held up on Windows")
def test_time_that_the_machine_takes_is_not_the_functions():
    verdict_on(right)
    held_up, share = threading.Event(), 0.2 / calls_of_a_check()

    def hold_up():
        worker = workers._worker.process.pid
        os.kill(worker, signal.SIGSTOP)
        time.sleep(4.0)
        os.kill(worker, signal.SIGCONT)
        held_up.set()

    def slow(*inputs):
        until = time.process_time() + share
        while time.process_time() < until:
            pass
        return right(*inputs)

    threading.Timer(0.1, hold_up).start()
    found = verdict_on(slow, seconds=1.0, waiting=2.0)
    assert found.state == "right", found.text
    assert held_up.wait(10)


@pytest.mark.slow
def test_a_process_that_ended_by_itself_leaves_no_pipe_open():
    verdict_on(right)
    before = workers._worker.process
    before.kill()
    before.wait()
    assert verdict_on(right).state == "right"
    assert before.stdin.closed and before.stdout.closed


@pytest.mark.parametrize("number", ["7.5", "3.4", "2.3"])
def test_there_and_here_give_the_same_verdicts(number):
    exercise, answers = find_exercise(number), answers_to(number)
    for answer in [answers.reference, *answers.mutants.values()]:
        assert verdict_on(answer, 60.0, exercise) == judge(exercise, answers, run_here(exercise, answer))


@pytest.mark.slow
def test_prints_come_back_before_the_verdict_also_those_of_a_function_that_never_ends(capsys):
    def talking(*inputs):
        print("one", end=" ")
        print("two")
        return right(*inputs)

    def talking_without_end(*inputs):
        print("last words")
        return sum(range(10**12))

    def talking_too_much(*inputs):
        for i in range(10**5):
            print(i)
        return right(*inputs)

    verdict_on(talking)
    assert capsys.readouterr().out == "one two\n" * len(EXERCISE.probes(torch.Generator()))     # once for each input
    verdict_on(talking_without_end, seconds=1.0)
    assert capsys.readouterr().out == "last words\n"
    assert verdict_on(talking_too_much).state == "right"
    out = capsys.readouterr().out
    assert len(out) < 30_000 and "left out" in out


def test_what_is_written_past_sys_stdout_does_not_get_among_the_workers_answers():
    def writing(query, key, value):
        os.write(1, b'{"text": "two"}\n')
        os.system("echo three")
        return right(query, key, value)

    assert verdict_on(writing).state == "right"


def test_what_cannot_travel_runs_here_and_a_sentence_says_so(capsys):
    numbers = (number for number in itertools.count())

    def with_a_generator(*inputs):
        next(numbers)
        return right(*inputs)

    assert verdict_on(with_a_generator).state == "right"
    assert "runs in this kernel" in capsys.readouterr().out
    assert next(numbers) == calls_of_a_check()          # it did run here


def test_a_global_that_a_function_changes_stays_as_it_is():
    seen = []

    def noting(*inputs):
        seen.append(1)
        return right(*inputs)

    assert verdict_on(noting).state == "right" and seen == []


def test_the_function_has_what_it_uses_of_the_learners_globals_and_files(tmp_path, monkeypatch):
    (tmp_path / "my_helpers.py").write_text("def scale(scores, d): return scores / d ** 0.5\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import my_helpers

    factor = torch.ones(())

    def using(query, key, value):
        weights = (my_helpers.scale(query @ key.mT, query.shape[-1]) * factor).softmax(-1)
        return weights @ value, weights

    assert verdict_on(using).state == "right"


def test_files_are_those_of_the_learners_folder_also_once_that_is_another(tmp_path, monkeypatch):
    def reading(query, key, value):
        with open("factor.txt", encoding="utf-8") as file:
            weights = (float(file.read()) * query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
        return weights @ value, weights

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "factor.txt").write_text("1" if name == "one" else "2", encoding="utf-8")
    for name, state in (("one", "right"), ("two", "wrong"), ("one", "right")):
        monkeypatch.chdir(tmp_path / name)
        assert verdict_on(reading).state == state, name


def test_the_learners_line_is_shown_though_only_this_kernel_knows_it():
    import linecache

    source = "def mine(query, key, value):\n    import json\n    return json.loads('{')\n"
    linecache.cache["cell-7"] = (len(source), None, source.splitlines(True), "cell-7")
    names: dict = {"__name__": "__main__"}
    exec(compile(source, "cell-7", "exec"), names)
    said = verdict_on(names["mine"]).text
    assert "return json.loads('{')" in said and "JSONDecodeError" in said and "decoder" not in said


def threads_in(name: str) -> list[str]:
    """The threads that are in a function of that name at this moment, whatever `threading` believes of them."""
    stacks = [traceback.extract_stack(frame) for frame in sys._current_frames().values()]
    return [frame.name for stack in stacks for frame in stack if frame.name == name]


@pytest.mark.slow
def test_an_interrupted_check_leaves_nothing_running():
    def spinning_on(*inputs):
        while True:
            pass

    verdict_on(right)
    process, verdicts = workers._worker.process, []
    interrupt = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler    # with another one it would end these tests
    with pytest.raises(KeyboardInterrupt):
        interrupt.start()
        verdicts.append(judge(EXERCISE, ANSWERS, InWorker(EXERCISE, spinning_on, 60.0)))
        interrupt.join()                                # a check that ended too early mustn't be followed by an interrupt
        time.sleep(1.0)
    assert verdicts == []
    assert threads_in("spinning_on") == [] and process.poll() is not None
    assert verdict_on(right, 60.0).state == "right"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout


ORDERLY = """
    exercise("4.2").check(lambda query, key, value: value)
    print(workers._worker.process.pid, flush=True)
    """
KILLED_IN_A_LOOP = """
    def forever(query, key, value):
        while True:
            pass

    def end():
        time.sleep(2.0)
        print(workers._worker.process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    workers.start()
    workers._worker.is_ready = "ready" in workers._worker.next_frame(60)
    threading.Thread(target=end).start()
    exercise("4.2").check(forever)
    """


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="looks processes up as POSIX does")
@pytest.mark.parametrize("code", [ORDERLY, KILLED_IN_A_LOOP], ids=["end", "killed"])
def test_the_worker_ends_with_its_parent_however_that_ends_even_if_it_runs_an_endless_loop(code):
    code = ("import os, signal, threading, time\nfrom course_utils.exercises import exercise, workers\n"
            + textwrap.dedent(code))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "COURSE_WORKER": "1"}, capture_output=True,
                          text=True, timeout=120)
    pid = int(done.stdout.split()[-1])
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(pid)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of processor time")
def test_what_keeps_all_threads_waiting_has_a_limit_that_the_system_enforces():
    code = ("from course_utils.exercises.worker import limit_processor_time\n"
            "limit_processor_time(1)\nsum(range(10**13))")
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    assert ended.returncode == -signal.SIGXCPU


def test_a_stub_and_a_number_need_no_worker(monkeypatch, tmp_path, capsys):
    def stub(query, key, value): ...

    def none_starts():
        raise AssertionError("a worker was asked for")

    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    asked = exercises.exercise("4.2")
    monkeypatch.setenv("COURSE_WORKER", "1")
    monkeypatch.setattr(workers, "Worker", none_starts)
    monkeypatch.setattr(workers, "_worker", None)
    asked.check(stub)
    exercises.exercise("4.1").check([0.105, 0.776, 0.105, 0.014])
    out = capsys.readouterr().out
    assert "not tried yet" in out and "✓ 4.1" in out


@pytest.mark.parametrize("make", [InWorker, run_here])
def test_settings_of_the_learners_kernel_do_not_reach_a_check(make):
    def on_meta(query, key, value):
        return right(query.to("meta"), key.to("meta"), value.to("meta"))

    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    try:
        for number, answer in (("4.2", right), ("4.5", answers_to("4.5").reference)):
            verdict = judge(find_exercise(number), answers_to(number), make(find_exercise(number), answer))
            assert verdict.state == "right", verdict.text
        assert "'meta'" in judge(EXERCISE, ANSWERS, make(EXERCISE, on_meta)).text
        assert judge(find_exercise("4.1"), answers_to("4.1"), [0.105, 0.776, 0.105, 0.014]).state == "right"
        assert "'meta'" in judge(find_exercise("4.1"), answers_to("4.1"), torch.zeros(4)).text
        assert (torch.zeros(1).device.type, torch.zeros(1).dtype, torch.is_grad_enabled()) == ("meta", torch.float64, False)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)


def test_an_input_is_asked_here_and_where_nobody_answers_its_line_is_shown(monkeypatch, capsys):
    def asking(*inputs):
        assert input("how many? ") == "seven"
        return right(*inputs)

    asked = []
    monkeypatch.setattr("builtins.input", lambda *prompt: asked.append(prompt) or "seven")
    assert verdict_on(asking).state == "right"
    assert asked and capsys.readouterr().out == "how many? " * len(EXERCISE.probes(torch.Generator()))
    monkeypatch.undo()
    said = verdict_on(asking).text
    assert 'in the line `assert input("how many? ") == "seven"`' in said and "Nobody can be asked here" in said


def test_prints_are_shown_while_the_function_runs(monkeypatch, tmp_path):
    seen, shown = tmp_path / "seen", []

    def talking(*inputs):
        print("now")
        while not seen.exists():
            time.sleep(0.01)
        return right(*inputs)

    class Screen(io.StringIO):
        def write(self, text):
            seen.touch()
            shown.append(text)
            return len(text)

    with contextlib.redirect_stdout(Screen()):
        assert verdict_on(talking, waiting=30.0).state == "right"
    assert "".join(shown) == "now\n" * len(EXERCISE.probes(torch.Generator()))


@pytest.mark.slow
def test_work_of_the_checks_own_is_not_on_the_learners_clock():
    def slow_look(function, *inputs):
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        return function(*inputs)

    import course_utils.exercises as course

    names = {"time": time, "__name__": "course"}
    source = inspect.getsource(slow_look)
    exec(compile(textwrap.dedent(source), str(pathlib.Path(course.__file__).with_name("slow.py")), "exec"), names)
    slow = EXERCISE._replace(id="", observe=lambda function, query, key, value: function(query, key, value), forbidden=())
    ours = slow._replace(observe=names["slow_look"])
    side = InWorker(ours, right, 0.5)
    assert [run.error for run in side.runs(0)] == [None] * len(ours.probes(torch.Generator()))


def test_the_global_that_holds_a_function_up_is_named(capsys):
    lock = threading.Lock()

    def helper(*inputs):
        with lock:
            return right(*inputs)

    def using(*inputs):
        return helper(*inputs)

    assert verdict_on(using).state == "right"
    assert "it uses `lock`, a lock (by way of `helper`), which can't be sent there" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("body, said", [
    ("held.acquire()", "It waits in line"),
    ("while True:\n        try: pass\n        except BaseException: pass", "didn't finish within a few seconds")])
def test_what_runs_in_the_kernel_has_the_same_limits_and_leaves_a_kernel_that_judges(body, said):
    held = threading.Lock()
    held.acquire()
    names = {"held": held, "time": time, "__name__": "__main__"}
    exec(f"def mine(*inputs):\n    held\n    {body}", names)
    assert said in verdict_on(names["mine"], seconds=1.0, waiting=1.0).text
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler and sys.gettrace() is None
    assert verdict_on(right).state == "right"
