"""Tab in a session of IPython: what the model adds, what stays as it was, and what can't go wrong."""

import atexit
import sys

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from small_code_models import counted, transformer
from traitlets.config import Config

from course_utils.completion import CodeCompleter, activate, deactivate, tab
from course_utils.completion.names import last_word

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "code"
    counted().save(path)
    return path


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell puts its own there
    made = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    made.Completer.use_jedi = False
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)


def pressed(shell, cell, cursor=None):
    """(start, end, text, type) of everything that Tab shows."""
    with provisionalcompleter():
        found = shell.Completer.completions(cell, len(cell) if cursor is None else cursor)
        return [(c.start, c.end, c.text, c.type) for c in found]


def of_model(found):
    return [one for one in found if one[3].startswith("model")]


def test_tab_shows_marked_names_beside_the_usual_ones_and_the_rest_of_the_line_last(shell, folder):
    shell.run_cell("value_of_mine = 3")
    usual = pressed(shell, "for val")
    activate(folder, shell=shell)
    found = pressed(shell, "for val")
    added = of_model(found)
    assert added and [one for one in found if one not in added] == usual
    assert any(text == "value_of_mine" for *_, text, _ in usual)
    assert all(start == 4 and end == 7 and text.startswith("val") for start, end, text, _ in added)
    *names, line = added
    chances = [int(mark.removeprefix("model ").removesuffix(" %")) for *_, mark in names]
    assert names and chances == sorted(chances, reverse=True)
    assert line[2:] == ("value=None):", "model, line")


def test_the_model_sees_earlier_input_and_the_cell_up_to_the_cursor_and_no_more(shell, folder, monkeypatch):
    seen = []
    monkeypatch.setattr(CodeCompleter, "suggest", lambda self, text, *_: seen.append(text) or ([], ""))
    activate(folder, shell=shell)
    for cell in ("a = 1", "b = 2", "a = 1", "  "):
        shell.run_cell(cell, store_history=True)
    pressed(shell, "first = 1\nself.x\nafter = 2", cursor=len("first = 1\nself.x"))
    assert seen == ["b = 2\n\na = 1\n\nfirst = 1\nself.x"]


def test_nothing_is_run(shell, folder):
    shell.run_cell("ran = []\nclass A:\n    def __getattr__(self, name): ran.append(name)\n"
                   "    def __dir__(self): ran.append('dir'); return []\n"
                   "a = A()", store_history=True)
    pressed(shell, "a.val")
    usual = list(shell.user_ns["ran"])                   # IPython itself looks
    shell.user_ns["ran"].clear()
    activate(folder, shell=shell)
    assert of_model(pressed(shell, "a.val")) and shell.user_ns["ran"] == usual
    shell.user_ns["ran"].clear()
    assert of_model(pressed(shell, "ran.append(3) or val")) and shell.user_ns["ran"] == []


def test_deactivate_restores_exactly_what_was_there(shell, folder):
    def another(text):
        return []

    shell.Completer.custom_matchers.append(another)
    matchers = shell.Completer.custom_matchers
    activate(folder, shell=shell)
    activate(folder, shell=shell, number=3)
    assert len(matchers) == 2 and matchers is shell.Completer.custom_matchers
    deactivate(shell=shell)
    deactivate(shell=shell)
    assert matchers == [another] and matchers is shell.Completer.custom_matchers
    assert of_model(pressed(shell, "val")) == []


@pytest.mark.parametrize("cell", ["'val", "# val", "!val"])
def test_in_strings_comments_and_commands_the_model_says_nothing(shell, folder, cell):
    activate(folder, shell=shell)
    assert of_model(pressed(shell, cell)) == []


@pytest.mark.parametrize("cell",
["f'{val", "%%time\nval", "", "x = ", "self.", "\U0001f600val", "x\r\nval", "val" * 4000, "import val",
                                  ])
def test_everywhere_else_tab_works(shell, folder, cell, capsys):
    shell.Completer.use_jedi = cell in ("self.", "import val")
    activate(folder, shell=shell)
    capsys.readouterr()
    found = of_model(pressed(shell, cell))
    assert all(text.startswith(last_word(cell)) and cell[start:end] == last_word(cell) for start, end, text, _ in found)
    if cell.endswith("val") and len(cell) < 100:
        assert found
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_no_error_of_the_model_reaches_the_session(shell, folder, error, monkeypatch, capsys):
    def broken(*_):
        raise error

    usual = pressed(shell, "pri")
    activate(folder, shell=shell)
    capsys.readouterr()
    monkeypatch.setattr(CodeCompleter, "complete", broken)
    assert pressed(shell, "pri") == usual
    assert capsys.readouterr() == ("", "")


def test_the_old_way_to_ask_for_completions_gets_what_it_got(shell, folder):
    """shell.complete drops everything that begins elsewhere than the first matcher's; so the model's come last."""
    shell.run_cell("class A: value = 3\na = A()")
    usual = shell.complete("", "a.val", 5)
    activate(folder, shell=shell)
    text, matches = shell.complete("", "a.val", 5)
    assert text == usual[0] and set(usual[1]) <= set(matches)


def test_without_a_model_it_says_so_in_a_sentence_and_changes_nothing(shell, tmp_path, capsys):
    activate(tmp_path / "no", shell=shell)
    said = capsys.readouterr()
    assert said.out.startswith("Tab stays as it is, without the model: there is no model in") and said.err == ""
    assert said.out.count("\n") == 1 and shell.Completer.custom_matchers == []


def test_a_damaged_model_leaves_the_one_that_was_there(shell, folder, tmp_path, capsys):
    transformer().save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:-1] + b"x")
    activate(folder, shell=shell)
    capsys.readouterr()
    activate(tmp_path, shell=shell)
    assert "has changed since it was saved" in capsys.readouterr().out
    assert of_model(pressed(shell, "val"))


def test_outside_ipython_it_says_so(monkeypatch, capsys, folder):
    monkeypatch.setattr(tab, "_running_shell", lambda: None)
    activate(folder)
    assert capsys.readouterr().out.startswith("activate() does nothing here") and deactivate() is None
