"""`python -m course_utils complete`: places in files, what it prints, and what it refuses without a traceback."""

import os
import subprocess
import sys

import pytest
from called import called
from hypothesis import given
from hypothesis import strategies as st
from small_code_models import counted

from course_utils.completion import CodeCompleter, Completion
from course_utils.completion.command import Place, main, place_of, shown, shown_line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    counted().save(path)
    return path


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["python -m course_utils complete"])
    (tmp_path / "code.py").write_bytes(b"import os\r\n\r\n\r\nfor value in values:\r\n    print(val\r\n")
    (tmp_path / "empty.py").write_bytes(b"")


def run(arguments, capsys):
    return called(main, arguments, capsys)


@pytest.mark.parametrize("text, place", [
    ("x.py:3", ("x.py", 3, None)), ("x.py:3:14", ("x.py", 3, 14)), (r"C:\x.py:3", (r"C:\x.py", 3, None)),
    ("a:b:1:2", ("a:b", 1, 2))])
def test_a_place_is_read_from_the_right(text, place):
    assert place_of(text) == Place(*place)


@given(st.text("aé:\\/. 0", min_size=1).filter(lambda name: not name.rpartition(":")[2].isdigit()), st.integers(1, 10**9),
       st.none() | st.integers(1, 10**9))
def test_every_place_is_found_again(file, line, column):
    assert place_of(f"{file}:{line}" + (f":{column}" if column else "")) == (file, line, column)


def test_it_prints_ranked_names_with_their_probabilities_and_the_rest_of_the_line(capsys, folder):
    status, printed, complaint = run(["code.py:4:8", "--model", folder, "--number", 3], capsys)
    first, *others, line = printed.splitlines()
    assert (status, complaint) == (0, "") and first.split()[1] == "value" and len(others) <= 2
    assert float(first.split()[0].rstrip("%")) == 74.6
    chances = [float(one.split()[0].rstrip("%")) for one in (first, *others)]
    assert chances == sorted(chances, reverse=True)
    assert line == "   line  value=None):"


def test_the_cursor_stands_before_the_character_in_that_column(capsys, folder):
    def printed(place):
        return run([place, "--model", folder], capsys)[1]

    assert printed("code.py:1") == printed("code.py:1:10") != printed("code.py:1:8")
    assert "import" in printed("code.py:1:3") and "os" in printed("code.py:1:9")
    assert printed("code.py:6") and printed("empty.py:1:1") and printed("code.py:5:10")


@pytest.mark.parametrize("place, says", [
    ("no.py:3", "no.py: No such file or directory"), (".:3", ". is a folder; give a file of code"),
    ("code.py:7", "code.py has 6 lines, so there is no line 7"), ("empty.py:2", "empty.py has 1 line, so"),
    ("code.py:1:11", "line 1 of code.py has 9 characters, so its last column is 10"), ("code.py:1:0", "column 0 in"),
    ("code.py", "'code.py' is no place in a file; write FILE:LINE"),
    ("no\0.py:1", "null"), ("latin.py:1", "isn't text in UTF-8"),
    ("large.py:1", "large.py has 200 MB; give a file of code, of 100 MB at most"),
    ("zero.bin:1", "isn't text: it holds zero bytes"),
    ("cookie.py:1", "isn't text in UTF-8, or in the encoding that it names"),
])
def test_what_cannot_be_done_is_said_in_a_line_and_ends_with_2(place, says, capsys, folder, tmp_path):
    (tmp_path / "latin.py").write_bytes("é = 1".encode("latin-1"))
    (tmp_path / "zero.bin").write_bytes(b"a\0b")
    with open(tmp_path / "large.py", "wb") as large:
        large.truncate(200_000_000)                     # takes no room on the disk
    (tmp_path / "cookie.py").write_bytes(b"# coding: klingon\nx")
    status, printed, complaint = run([place, "--model", folder], capsys)
    assert (status, printed) == (2, "")
    assert says in complaint and complaint.splitlines()[-1].startswith("python -m course_utils complete: error: ")


def test_a_file_may_name_its_encoding_and_begin_with_a_mark(capsys, folder, tmp_path):
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\né = 1\nfor val".encode("latin-1"))
    (tmp_path / "mark.py").write_bytes("\ufefffor val".encode())
    assert "value" in run(["latin.py:3", "--model", folder], capsys)[1]
    (tmp_path / "plain.py").write_bytes(b"for val")
    assert run(["mark.py:1:8", "--model", folder], capsys) == run(["plain.py:1:8", "--model", folder], capsys)


@pytest.mark.parametrize("more, says", [(["--model", "no"], "there is no model in no.safetensors; give the name that"),
                                        (["--model", "code.py"], "code.py isn't a whole safetensors file"),
                                        (["--number", "0"], "--number is 0"), (["--number", "x"], "invalid int")])
def test_a_missing_model_and_a_wrong_number_are_named(more, says, capsys):
    status, printed, complaint = run(["code.py:1", *more], capsys)
    assert (status, printed) == (2, "") and says in complaint


@pytest.mark.parametrize("name", ["a folder/my code.py", r"C:\x.py", "größe 'x'.py", "-code.py"])
def test_a_file_may_have_any_name(name, capsys, folder, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("import os\nfor val", encoding="utf-8")
    place = f"./{name}:2" if name.startswith("-") else f"{name}:2:8"
    status, printed, complaint = run([place, "--model", folder], capsys)
    assert (status, complaint) == (0, "") and "value" in printed


def test_a_word_is_shown_as_it_is_and_anything_else_in_quotes():
    assert (shown("value"), shown("_größe2")) == ("value", "_größe2")
    assert [shown(text) for text in (" x", "\n", ")", '"', "'", " ")] == ["' x'", r"'\n'", "')'", "'\"'", '"\'"', "' '"]
    assert (shown_line("f(x, y)"), shown_line(" f(x)"), shown_line("a\tb")) == ("f(x, y)", "' f(x)'", r"'a\tb'")


def test_a_place_is_refused_before_the_slow_libraries_are_imported(root, tmp_path):
    code = ("import sys\nfrom course_utils.__main__ import complete\n"
            "try:\n    complete()(['code.py:99'])\nexcept SystemExit as ended:\n"
            "    print(ended.code, {'torch', 'numpy', 'scipy', 'IPython'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(root)})
    assert done.stdout == "2 set()\n" and "so there is no line 99" in done.stderr


def test_a_suggestion_that_is_much_less_probable_than_the_best_is_left_out(capsys, folder, monkeypatch):
    def given(*chances):
        found = [Completion(name, chance) for name, chance in zip("abc", chances)]
        monkeypatch.setattr(CodeCompleter, "suggest", lambda *_: (found, ""))
        return [line.split()[1] for line in run(["code.py:1", "--model", folder], capsys)[1].splitlines()]

    assert given(0.99, 0.011, 0.009) == ["a", "b"] and given(0.01, 0.004, 0.0011) == ["a", "b", "c"]
    assert given(0.02, 0.003, 0.001) == ["a", "b"] and given() == ["suggestion:"]


def test_it_runs_as_a_command_on_a_terminal_that_shows_only_ascii(folder, root, tmp_path):
    (tmp_path / "größe.py").write_text("größe = 3\nprint(grö", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "course_utils", "complete", "größe.py:2", "--model", str(folder)],
                          capture_output=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(root), "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and done.stderr == b"" and b"gr\\xf6" in done.stdout
