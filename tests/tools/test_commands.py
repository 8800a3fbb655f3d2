"""`python -m course_utils`: every command can be found, explains itself, and says what is wrong with a line."""

import io
import signal
import subprocess
import sys

import pytest

from course_utils.__main__ import COMMANDS, main


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """The command line and Ctrl-C are as before after each test."""
    monkeypatch.setattr(sys, "argv", ["pytest"])
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself_under_its_own_name(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert printed.startswith("usage: make grade" if name == "grade" else f"usage: python -m course_utils {name}")


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp1252", "gbk", "koi8-r", "utf-8"])
def test_every_command_explains_itself_on_a_console_of_any_encoding(encoding, monkeypatch):
    for line in ([], ["--help"], ["tran…"], *([name, "--help"] for name in COMMANDS)):
        consoles = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2)]
        monkeypatch.setattr(sys, "stdout", consoles[0])
        monkeypatch.setattr(sys, "stderr", consoles[1])
        try:
            main(line)
        except SystemExit as ended:
            assert ended.code == 0, line
        for console in consoles:
            console.flush()
        printed = b"".join(console.buffer.getvalue() for console in consoles).decode(encoding)
        assert "python -m course_utils" in printed or "make grade" in printed, line
        if encoding == "ascii" and not line:
            assert "COMMAND ..." in printed and "\\u" not in printed


def test_ctrl_c_is_nobodys_business_when_the_commands_are_only_imported():
    code = "import signal; before = signal.getsignal(signal.SIGINT); import course_utils.__main__; " \
           "assert signal.getsignal(signal.SIGINT) is before"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_the_overview_lists_every_command_with_what_it_does(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, load in COMMANDS.items():
        assert any(line.split(maxsplit=1) == [name, load.__doc__] for line in lines if line.strip()), name


def test_a_line_without_a_command_or_with_an_unknown_one_ends_with_2_and_the_list(capsys):
    assert main([]) == 2 and "for learners:" in capsys.readouterr().out
    assert main(["tran"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("there is no command 'tran'; did you mean train?") and "for maintainers:" in said


def test_an_edition_without_the_instructors_part_says_so(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("course_utils.instructors")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "course_utils.instructors", None)
    assert main(["handout"]) == 2
    assert capsys.readouterr().err == "handout is for instructors; this edition of the course doesn't include it\n"


def test_no_command_loads_a_library_before_it_is_called(root):
    code = "import sys; from course_utils import __main__; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True).stdout == "False\n"
