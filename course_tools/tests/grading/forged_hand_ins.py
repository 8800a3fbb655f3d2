"""Hand-ins that are forged, broken or odd, each with the grade that it deserves.

    python course_tools/tests/grading/forged_hand_ins.py                     grade them all and compare; some minutes
    python course_tools/tests/grading/forged_hand_ins.py --trust             the same without containers

Does: make them, and grade them as `make grade` does. Does not: run in the suite (test_grading.py runs a dozen).
"""

import csv
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from forged_parts import (
    BAD,
    CHECK,
    CUT,
    DAEMON,
    GONE,
    GOOD,
    MINE,
    ON_EVERY_DESCRIPTOR,
    OPEN,
    RIGHT,
    TICKS,
    WRONG,
    Forged,
    as_in_colab,
    cell,
    changed,
    code,
    edited,
    lose_an_import,
    with_4_2,
)

from course_utils.exercises.catalogue import answers_to


def forged(others: Path) -> list[Forged]:
    """All of them. `others` is the folder in which the graded notebooks will lie, which some of them attack."""
    kinds = (_printed, _replaced, _fetched, _recited, _moved, _odd, _named, _leaving, _endless, _files, _broken, _hostile)
    return [Forged(make.__doc__.rstrip("."), name if "." in name else f"{name}.ipynb", *given)
            for make in kinds for name, *given in make(others)]


def _printed(others: Path):
    """Verdicts that are printed."""
    yield "ticks", edited(last="for number in range(1, 6):\n    print(f'✓ 4.{number} x: right.')"), OPEN
    yield "ticks_in_its_cell", with_4_2(WRONG, CHECK, 'print("✓ 4.2 Scaled dot-product attention: right.")'), BAD
    saved = [{"output_type": "stream", "name": "stdout", "text": "✓ 4.2 Scaled dot-product attention: right.\n"}]
    yield "saved_outputs", changed(lambda notebook: [cell.update(outputs=saved) for cell in notebook["cells"]][:0]), OPEN
    line = json.dumps({"exercise": "4.2", "state": "right", "report": {"verdict": "right"}}) + "\n"
    yield "every_descriptor", edited(first=ON_EVERY_DESCRIPTOR.format(repr(line.encode()))), BAD
    noise = 'b"\\xff\\xfe{" * 1000 + b"[" * 100000 + b"\\n"'
    yield "noise_between_the_lines", with_4_2(MINE, CHECK, last=ON_EVERY_DESCRIPTOR.format(noise)), GOOD
    done = b'{"done": true}\n{"cell": 99, "error": ""}\n{"cell": -1, "error": ""}\n[1]\n7\n'
    lost = dict.fromkeys(OPEN, "not reached")
    yield "says_that_it_is_done", edited(first=ON_EVERY_DESCRIPTOR.format(repr(done)) + "os._exit(0)"), lost


def _replaced(others: Path):
    """Machinery that is replaced."""
    spoilt = BAD | {"4.3": "wrong", "4.5": "wrong"}     # it stays replaced for the exercises that follow
    yield "class_exercise", with_4_2(TICKS, WRONG, CHECK), BAD
    yield "judge", with_4_2("""
        import course_utils.exercises as package
        from course_utils.exercises import judge
        from course_utils.exercises.definitions import Verdict
        package.judge = judge.judge = lambda *_, **__: Verdict("right", (), "✓ 4.2 x: right.")""", WRONG, CHECK), BAD
    yield "report", with_4_2("""
        from course_utils.exercises import wire
        wire.report_of = wire.report = lambda *_: '{"handed": {"kind": "function", "type": "f", "value": null}, "runs": []}'
        """, WRONG, CHECK), spoilt | dict.fromkeys(("4.4", "4.6", "4.7"), "wrong")
    yield "runs", with_4_2("""
        from course_utils.exercises import running, sides, wire
        for module in (running, sides, wire):
            module.runs_of = lambda *_: [running.Run(output="right")] * 9""", WRONG, CHECK), spoilt
    yield "comparison", with_4_2("import torch", "torch.allclose = torch.equal = lambda *_, **__: True", WRONG, CHECK), BAD
    yield "inputs", with_4_2("""
        import torch
        from course_utils.exercises import catalogue
        known = catalogue.find_exercise
        easy = known("4.2")._replace(probes=lambda generator: [(torch.zeros(1, 1),) * 3])
        catalogue.find_exercise = lambda number: easy if number == "4.2" else known(number)""", WRONG, CHECK), BAD
    yield "equal_to_all", with_4_2("""
        class Equal:
            def __eq__(self, other): return True
            def __getattr__(self, name): return self
            def __call__(self, *_, **__): return self
            def __getitem__(self, place): return self
        scaled_attention = Equal()""", CHECK), BAD
    yield "builtins", with_4_2("""
        import builtins, json
        builtins.all = builtins.isinstance = lambda *_: True
        json.dumps = lambda *_, **__: "{}"
        """, WRONG, CHECK), dict.fromkeys(OPEN, "not reached") | {"4.1": "open"}


def _fetched(others: Path):
    """Answers that are not theirs."""
    yield "reference", with_4_2("""
        from course_utils.exercises.catalogue import answers_to
        scaled_attention = answers_to("4.2").reference""", CHECK), GONE
    yield "use_of_none", with_4_2('scaled_attention = exercise("4.2").use(None)', CHECK), BAD
    yield "check_of_use", with_4_2('exercise("4.2").check(exercise("4.2").use(None))'), BAD
    yield "module", with_4_2(f"from {answers_to('4.2').reference.__module__} import scaled_attention", CHECK), GONE
    yield "printed_solution", with_4_2("""
        import contextlib, io
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exercise("4.2").solution()
        exec(said.getvalue())""", CHECK), GONE
    yield "sealed_keys", edited({"4.1": """
        from course_utils.exercises import catalogue, sealed
        exercise("4.1").check(sealed.read_key(catalogue.find_exercise("4.1")).entry)"""}), OPEN | {"4.1": "not reached"}
    solutions = inspect.getsourcefile(answers_to("4.2").reference)
    yield "course_on_disk", with_4_2(f"""
        import runpy
        scaled_attention = runpy.run_path({solutions!r})["scaled_attention"]""", CHECK), (GONE, GOOD)


def _recited(others: Path):
    """Results that are recited."""
    table = [[part.tolist() for part in answers_to("4.2").reference(*inputs)] for inputs in _inputs("4.2", 0)]
    yield "in_order", with_4_2(f"""
        import itertools, torch
        results = itertools.cycle({table!r})
        def scaled_attention(query, key, value):
            return [torch.tensor(part) for part in next(results)]""", CHECK), BAD
    yield "by_shape", with_4_2(f"""
        import torch
        table = {{torch.tensor(context).dim(): (context, weights) for context, weights in {table!r}}}
        def scaled_attention(query, key, value):
            return [torch.tensor(part) for part in table[query.dim()]]""", CHECK), BAD
    yield "guessed", with_4_2("""
        import torch
        def scaled_attention(query, key, value):
            weights = torch.full((*query.shape[:-1], key.shape[-2]), 1 / key.shape[-2])
            return weights @ value, weights""", CHECK), BAD
    yield "number_of_another", edited({"4.1": 'exercise("4.1").check([0.25, 0.25, 0.25, 0.25])'}), OPEN | {"4.1": "wrong"}


def _moved(others: Path):
    """Cells that are moved."""
    setup, mine = code("import math\nfrom course_utils.exercises import exercise"), code(MINE + CHECK)
    missing = dict.fromkeys(OPEN, "missing")
    yield ("deleted", changed(lambda notebook: notebook["cells"].__delitem__(slice(4, None)), right=True),
           missing | {"4.1": "right", "4.2": "right"})
    yield "only_one_is_left", json.dumps({"cells": [setup, mine]}).encode(), missing | {"4.2": "right"}
    yield "12_comparing_models", edited(right=True), RIGHT
    yield "without_ids", changed(lambda notebook: [cell.pop("id") for cell in notebook["cells"]][:0], right=True), RIGHT
    yield ("as_in_colab", changed(as_in_colab,
                                  right=True), RIGHT)
    yield "copied_below", changed(lambda notebook: notebook["cells"].append(code(MINE + CHECK, "copy"))), GOOD
    yield "same_id_twice", changed(lambda notebook: notebook["cells"].append(code(MINE + CHECK, "exercise-4-2-code"))), GOOD
    yield "renamed_number", with_4_2(MINE, 'exercise("99.9").check(scaled_attention)'), GOOD
    yield "unknown_numbers", with_4_2(MINE, CHECK, last='exercise("99.9").check(1)\nexercise("5.1").check(2)'), GOOD
    yield ("turned_to_text", changed(lambda notebook: notebook["cells"][3].update(cell_type="markdown"), right=True),
           RIGHT | {"4.2": "missing"})
    yield "emptied", edited(dict.fromkeys(OPEN, "")), dict.fromkeys(OPEN, "open")


def _odd(others: Path):
    """Right answers, oddly written."""
    yield "captured", with_4_2("%%capture", MINE, CHECK), GOOD
    yield "prints_inside", with_4_2(MINE.replace("    return", '    print("…", end=" ")\n    return'), CHECK), GOOD
    yield "no_output_at_all", edited(right=True, first="import os, sys\nsys.stdout = None\nos.close(1)\nos.close(2)"), RIGHT
    yield "redefined_later", edited(right=True, last="def scaled_attention(*_): return None\nmasked_attention = None"), RIGHT
    yield "a_lost_import", changed(lose_an_import, right=True), RIGHT
    yield "another_name", with_4_2(MINE.replace("scaled_", "my_"), 'exercise("4.2").check(my_attention)'), GOOD
    yield "no_check", with_4_2(MINE, f"# {CHECK.strip()}"), GOOD
    yield "checked_twice", with_4_2(WRONG, CHECK, MINE, CHECK), GOOD
    yield "stub_left_above", with_4_2("def scaled_attention(query, key, value): ...", MINE.replace("scaled_", "my_"),
                                      'exercise("4.2").check(my_attention)'), GOOD
    yield "error_before_its_check", with_4_2(MINE, "1 / 0", CHECK), GOOD
    yield "magics", with_4_2("%matplotlib inline", "%matplotlib qt", "!true", MINE, "%timeit -n 1 -r 1 1 + 1", CHECK), GOOD
    yield "leaves", with_4_2(MINE, CHECK, "exit()", first="import sys\nsys.exit(3)", last="quit()"), GOOD
    yield "not_implemented", with_4_2("def scaled_attention(query, key, value):\n    raise NotImplementedError", CHECK), OPEN


def _named(others: Path):
    """Names with newlines, = and @."""
    for i, name in enumerate(("f\nsomebody.ipynb: 5 of 5 right", "=1+1", "@SUM(A1)", "a=b\n@c,\"d")):
        named = cell(MINE, f"scaled_attention.__name__ = scaled_attention.__qualname__ = {name!r}", CHECK)
        yield f"function_{i}", with_4_2(named), GOOD
        yield f"{name}.ipynb", with_4_2(MINE, CHECK), GOOD
        error = cell(f"raise type({name!r}, (Exception,), {{}})({name!r})")
        yield f"error_{i}", with_4_2(error), GONE
        yield f"number_{i}", with_4_2(MINE, f"exercise('4.2' + {name!r}).check(scaled_attention)"), GOOD
        notebook = json.loads(edited(right=True))
        notebook["metadata"] |= {"authors": [{"name": name}], "name": name, "title": name}
        yield f"student_{i}", json.dumps(notebook).encode(), RIGHT
        yield f"wrong_function_{i}", with_4_2(cell(WRONG, f"scaled_attention.__name__ = {name!r}"), CHECK), BAD


def _leaving(others: Path):
    """Leaving early."""
    check, lost = '\nexercise("4.4").check(decoder_mask)', dict.fromkeys(("4.4", "4.5"), "not reached")
    for name, leave in (("exit", "exit()"), ("quit", "quit()"), ("sys_exit", "import sys; sys.exit(0)"),
                        ("os_exit", "import os; os._exit(0)"), ("system_exit", "raise SystemExit(0)"),
                        ("abort", "import os; os.abort()")):
        dies, none = name in ("os_exit", "abort"), dict.fromkeys(OPEN, "not reached")
        state = {"exit": "open", "quit": "open"}.get(name, "not reached")
        yield f"{name}_at_the_top", with_4_2(MINE, CHECK, changes={"4.4": leave}), GOOD | (lost if dies else {"4.4": state})
        yield f"{name}_first_of_all", with_4_2(MINE, CHECK, first=leave), none if dies else GOOD
        asked = f"def decoder_mask(*_): {leave}{check}"
        yield f"{name}_in_its_function", with_4_2(MINE, CHECK, changes={"4.4": asked}), GOOD | {"4.4": "wrong"}
        twice = f"calls = []\ndef decoder_mask(*_):\n    calls.append(1)\n    if calls[1:]: {leave}{check}"
        yield f"{name}_in_its_second_call", with_4_2(MINE, CHECK, changes={"4.4": twice}), GOOD | {"4.4": "wrong"}
        later = f"import atexit\ndef leave(): {leave}\natexit.register(leave)"
        yield f"{name}_at_the_end", with_4_2(MINE, CHECK, last=later), GOOD


def _endless(others: Path):
    """Loops and deaths."""
    for name, source in (
            ("endless", "while True: pass"), ("endless_in_c", "sum(range(10**13))"),
            ("sleeps", "import time\ntime.sleep(10**6)"), ("exits", "import os\nos._exit(0)"),
            ("crashes", "import ctypes\nctypes.string_at(0)"), ("prints_without_end", "while True: print('x' * 10000)"),
            ("kills_itself", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
            ("swallows_everything", "while True:\n    try:\n        while True: pass\n    except BaseException: pass")):
        yield name, with_4_2(MINE, CHECK, changes={"4.3": source}), CUT
    yield ("too_much_memory", with_4_2(MINE, CHECK, changes={"4.3": "import torch\nx = torch.ones(10**11)"}),
           GOOD | {"4.3": "not reached"})
    check, wrong = '\nexercise("4.4").check(decoder_mask)', GOOD | {"4.4": "wrong"}
    for name, source in (("endless_function", "def decoder_mask(*_):\n    while True: pass"),
                         ("endless_in_c_function", "def decoder_mask(*_): return sum(range(10**13))"),
                         ("recursion", "def decoder_mask(*all): return decoder_mask(*all)")):
        yield name, with_4_2(MINE, CHECK, changes={"4.4": source + check}), wrong
    yield "a_copy_of_the_process", with_4_2(MINE, CHECK, first="import os\nos.fork()"), GOOD


def _files(others: Path):
    """Other people's files and processes."""
    victim, copied = others / "ticks.ipynb", others / "12_comparing_models.ipynb"
    reported = GOOD, GOOD, "files"
    yield "rewrites_a_neighbour", with_4_2(MINE, CHECK, first=f"open({str(victim)!r}, 'a').write('gone')"), reported
    yield "makes_a_file", with_4_2(MINE, CHECK, first=f"open({str(others / 'a.ipynb')!r}, 'w').close()"), reported
    yield "copies_a_neighbour", with_4_2(
        f"import json\nexec(''.join(json.load(open({str(copied)!r}))['cells'][3]['source']))"), (GONE, GOOD)
    yield "changes_the_course", with_4_2(MINE, CHECK, last="""
        import pathlib, course_utils
        for path in pathlib.Path(course_utils.__file__).parent.rglob("*.py"):
            path.write_text("raise SystemExit")"""), reported
    later = f"import time; time.sleep(60); open({str(others / DAEMON)!r}, 'w').close(); time.sleep(1000)"
    quietly = "'sh', '-c', 'setsid env -i \"$0\" -c \"$1\" & exit', "
    for name, before, after in (("daemon", "", ""), ("daemon_of_its_own", "'setsid', ", ", start_new_session=True"),
                                ("daemon_without_a_trace", quietly, ", start_new_session=True, env={}")):
        arguments = f"{before}sys.executable, {later!r}" if before == quietly else f"{before}sys.executable, '-c', {later!r}"
        yield name, with_4_2(MINE, CHECK, last=f"import subprocess, sys\nsubprocess.Popen([{arguments}]{after})"), GOOD
    yield "large_file", with_4_2(MINE, CHECK, first="""
        with open("large", "wb") as file:
            file.seek(2 * 10**9)
            file.write(b"x")"""), GOOD


def _broken(others: Path):
    """Files that are no notebooks."""
    yield "empty", b"", "empty"
    yield "text", b"Dear teacher, here is my homework.", "not JSON"
    yield "cut_off", edited()[:2000], "not JSON"
    yield "latin", '{"cells": ["é"]}'.encode("latin-1"), "UTF-8"
    yield "deep", b"[" * 200_000 + b"]" * 200_000, "deeply"
    yield "a_list", b"[1, 2]", "not a notebook"
    yield "cells_is_3", b'{"cells": 3}', "no list of cells"
    yield "cells_of_numbers", b'{"cells": [1, null]}', "isn't a cell"
    yield "source_is_a_number", b'{"cells": [{"cell_type": "code", "source": 3}]}', "isn't text"
    yield "no_cells", b'{"cells": []}', "one of the course's notebooks"
    yield "somebody_elses", json.dumps({"cells": [code("print(1)")]}).encode(), "one of the course's notebooks"
    old = [{"cell_type": "code", "input": "import math\nfrom course_utils.exercises import exercise"},
           {"cell_type": "code", "input": [MINE, CHECK]}]
    yield ("format_3", json.dumps({"nbformat": 3, "worksheets": [{"cells": old}]}).encode(),
           dict.fromkeys(OPEN, "missing") | {"4.2": "right"})
    yield "surrogates", with_4_2('x = "\ud800"', MINE, CHECK), GONE
    yield "zeros", b"\0" * 1000, "not JSON"
    yield "huge", b" " * 50_000_001, "larger than"
    yield "a_folder", b"", "folder", lambda path: path.mkdir()
    yield "a_pipe", b"", "regular", os.mkfifo
    yield "a_link", b"", "link", lambda path: path.symlink_to("/dev/zero")
    yield "a_link_to_a_neighbour", b"", "link", lambda path: path.symlink_to("12_comparing_models.ipynb")
    yield "a\n12_comparing_models.ipynb: 7 of 7 right (115 of 115 minutes)\n.ipynb", b"", "empty"
    yield "\x1b[2K\r\u202eb.ipynb", b"", "empty"
    yield b"caf\xe9.ipynb".decode("utf-8", "surrogateescape"), b"", "empty"


def _hostile(others: Path):
    """Outputs that are no outputs."""
    values = {"large": "torch.zeros(2000, 2000)", "enormous": "[torch.zeros(3000, 1000)] * 50", "module": "torch",
              "nan": "torch.tensor(math.nan)", "deep": "deep", "holding_itself": "loop", "complex": "query * 1j",
              "meta": "query.to('meta')", "text": "'right'", "odd": "Odd()", "dict": "{'0': 'right', '1': Odd()}",
              "numbers": "[10**400, -10**400]"}
    for name, value in values.items():
        yield f"gives_{name}", with_4_2(f"""
            import math, torch
            class Odd:
                def __array__(self, *_, **__): raise SystemExit
                def __float__(self): raise KeyboardInterrupt
                def __repr__(self): raise MemoryError
            loop = deep = []
            loop.append(loop)
            for _ in range(10**5):
                deep = [deep]
            def scaled_attention(query, key, value):
                return {value}""", CHECK), BAD
    yield "value_is_odd", edited({"4.1": 'exercise("4.1").check({"a": [1, 2, {3}]})'}), OPEN | {"4.1": "wrong"}
    yield "value_is_a_function", edited({"4.1": 'exercise("4.1").check(print)'}), OPEN | {"4.1": "wrong"}
    outputs = [{"tensor": "float64", "shape": [2**40], "bytes": ""}, {"tensor": "__class__", "shape": [], "bytes": ""},
               {"tensor": "float32", "shape": [-1], "bytes": "AAAA"}, {"dict": [["0", {"float": "nan"}]] * 9}, {"eval": "1"}]
    runs = [[{"output": output, "error": None, "timed_out": False, "changed": [], "printed": ""}] * 2 for output in outputs]
    reports = [json.dumps({"handed": {"kind": "function", "type": "f", "value": None}, "runs": two}) for two in runs]
    lines = [json.dumps({"exercise": number, "report": one}) for number in ("4.3", "99.9", "../..") for one in reports]
    forged_lines = ON_EVERY_DESCRIPTOR.format(repr("\n".join([*lines, ""]).encode()))
    yield "forged_tensors", with_4_2(MINE, CHECK, first=forged_lines), GOOD | {"4.3": "wrong"}


def _inputs(number: str, seed: int):
    import torch

    from course_utils.exercises.catalogue import find_exercise

    return find_exercise(number).probes(torch.Generator().manual_seed(seed))


def main() -> int:
    """Write, grade and compare them all; the number of wrong grades is the exit status."""
    shut_in = "--trust" not in sys.argv
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "handed in"
        folder.mkdir()
        every = forged(folder)
        for one in every:
            path = folder / one.name
            one.make(path) if one.make else path.write_bytes(one.content)
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", "import torch, IPython"], check=True)
        # An answer without an end is given 15 seconds, and then all of it begins anew without that answer.
        limit = max(40, 10 * (time.monotonic() - started))                # a computer that has much to do needs longer
        command = [sys.executable, "-m", "course_tools", "grade", str(folder), "--timeout", f"{limit:.0f}"]
        command += ["--csv", f"{name}/grades.csv", *([] if shut_in else ["--trust"])]
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape")
        seconds = time.monotonic() - started
        print(done.stdout, done.stderr)
        with open(f"{name}/grades.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        time.sleep(70)
        daemons = (folder / DAEMON).exists()
    shown = {re.sub(r".*handed in/", "", row["file"]).lstrip("'"): row for row in rows}
    problems = {one.name: _problem(one, shown.get(_as_shown(one.name)), shut_in) for one in every}
    wrong = [f"{name!r}: {problem}" for name, problem in problems.items() if problem]
    if daemons:
        wrong.append("a daemon wrote after its hand-in was graded")
    if len(rows) != len(every) or done.stdout.count("\n") > len(every) + 20:
        wrong.append(f"{len(rows)} rows and {done.stdout.count(chr(10))} lines for {len(every)} files")
    for one in wrong:
        print("WRONG", one.encode("utf-8", "backslashreplace").decode())
    print(f"{len(every)} hand-ins of {len({one.kind for one in every})} kinds, {len(wrong)} wrong grades, {seconds:.0f} s, "
          f"exit status {done.returncode}")
    return len(wrong)


def _as_shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in name)


def _problem(one: Forged, row: dict | None, shut_in: bool) -> str:
    """What is wrong with a grade; '' if nothing is."""
    if row is None:
        return "it has no row"
    got = {name.removeprefix("exercise "): state for name, state in row.items() if name.startswith("exercise ") and state}
    if isinstance(one.expected, str):
        return "" if not got and one.expected in row["remarks"] else f"{got}, remarks {row['remarks']!r}"
    in_container, without, *files = one.expected if isinstance(one.expected, tuple) else (one.expected, one.expected)
    expected = in_container if shut_in else without
    if got != expected:
        return f"{got} instead of {expected}, remarks {row['remarks']!r}"
    return f"remarks {row['remarks']!r}" if ("changed" in row["remarks"]) != (bool(files) and not shut_in) else ""


if __name__ == "__main__":
    sys.exit(main())
