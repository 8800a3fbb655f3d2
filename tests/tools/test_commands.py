"""The commands of `course_utils` and `course_tools`: each explains itself, and a line that is wrong is told what is."""

import io
import signal
import subprocess
import sys

import pytest

from course_tools import __main__ as tools
from course_utils import __main__ as learners
from course_utils import commands

PROGRAMS = {"course_utils": learners, "course_tools": tools}
EVERY = [(program, name) for program, module in PROGRAMS.items() for name in module.COMMANDS]


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """The command line and Ctrl-C are as before after each test."""
    monkeypatch.setattr(sys, "argv", ["pytest"])
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("program", "name"), EVERY)
def test_every_command_explains_itself_under_its_own_name(program, name, capsys):
    with pytest.raises(SystemExit) as ended:
        PROGRAMS[program].main([name, "--help"])
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert printed.startswith("usage: make grade" if name == "grade" else f"usage: python -m {program} {name}")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_explains_itself_on_a_console_of_any_encoding(program, encoding, monkeypatch):
    for line in ([], ["--help"], ["tran…"], *([name, "--help"] for name in PROGRAMS[program].COMMANDS)):
        consoles = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2)]
        monkeypatch.setattr(sys, "stdout", consoles[0])
        monkeypatch.setattr(sys, "stderr", consoles[1])
        try:
            PROGRAMS[program].main(line)
        except SystemExit as ended:
            assert ended.code == 0, line
        for console in consoles:
            console.flush()
        printed = b"".join(console.buffer.getvalue() for console in consoles).decode(encoding)
        assert f"python -m {program}" in printed or "make grade" in printed, line
        if encoding == "ascii" and not line:
            assert "COMMAND ..." in printed and "\\u" not in printed


def test_ctrl_c_is_nobodys_business_when_the_commands_are_only_imported():
    code = "import signal; before = signal.getsignal(signal.SIGINT); import course_utils.__main__; " \
           "assert signal.getsignal(signal.SIGINT) is before"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_overview_lists_every_command_with_what_it_does(program, capsys):
    assert PROGRAMS[program].main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, load in PROGRAMS[program].COMMANDS.items():
        assert any(line.split(maxsplit=1) == [name, load.__doc__] for line in lines if line.strip()), name


def test_a_line_without_a_command_or_with_an_unknown_one_ends_with_2_and_the_list(capsys):
    assert learners.main([]) == 2 and "train " in capsys.readouterr().out
    assert learners.main(["tran"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("there is no command 'tran'; did you mean train?") and "complete " in said
    assert tools.main(["train"]) == 2


def test_a_command_that_has_moved_is_run_where_it_is_now(capsys):
    assert set(commands.MOVED) <= set(tools.COMMANDS)
    with pytest.raises(SystemExit):
        learners.main(["timetable", "--help"])
    said = capsys.readouterr()
    assert said.err == "timetable has moved: python -m course_tools timetable\n"
    assert said.out.startswith("usage: python -m course_tools timetable")


def test_an_edition_without_course_tools_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(commands, "__file__", str(tmp_path / "course_utils" / "commands.py"))
    assert learners.main(["handout"]) == 2
    assert "this edition comes without it" in capsys.readouterr().err


def test_no_command_loads_a_library_before_it_is_called(root):
    code = "import sys; from course_utils import __main__; from course_tools import __main__; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True).stdout == "False\n"
