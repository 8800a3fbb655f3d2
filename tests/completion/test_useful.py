"""Which completions are worth showing where a name is asked for, and where one is asked for."""

import pytest
from small_code_models import counted

from course_utils.completion import CodeCompleter, Completion
from course_utils.completion.names import Useful, asks_for_a_name

TOKENS = [b"\n", b" path", b"load", b"im", b" value", b"\xc3", b"json"]


@pytest.mark.parametrize("text", ["import jso", "x = va", "self.", "f(x).", "'a'.", "rows[0].", "    import ", "def ",
                                  "class ", "    global ", "x1.", "# wor"])
def test_a_name_is_asked_for(text):
    assert asks_for_a_name(f"before()\n{text}")


@pytest.mark.parametrize("text", ["", "x = ", "print(", "1.", "x = 12", "from .", "from x import ", "for ", "x.\n", "a[",
                                  "...", "'", "def f():"])
def test_something_else_than_a_name_may_come(text):
    assert not asks_for_a_name(f"before()\n{text}")


@pytest.mark.parametrize("word, kept", [
    ("json", True), ("import", True), ("importlib", True), ("isinstance", True),    # token, keyword, module, builtin
    ("load_path", True), ("loadValue", True), ("loads", True), ("loader", True),    # joined from known parts, or an ending
    ("i", True), ("_", True), ("value2", True), ("klingon_path", True), ("KLINGON", True),    # parts of the file's words
    ("importimportlib", False), ("jsonor", False), ("jsonim", False), ("pathjson", False), ("imload", False),
    ("", False), ("\n", False), (")", False), (" path", False), ("path:", False),
])
def test_what_looks_like_a_name_is_kept(word, kept):
    assert Useful("klingon = 3\nfor x", TOKENS)(word) is kept


def test_a_word_that_is_only_begun_is_no_word_of_the_file():
    assert not Useful("klin", TOKENS)("klin") and Useful("klin = 3\nklin", TOKENS)("klin")


def test_suggestions_leave_out_what_is_no_name_and_keep_the_number(monkeypatch):
    asked = []
    words = [Completion(word, 0.1) for word in ("importimport", "self", "selfself", "value", "values", "return")]
    monkeypatch.setattr(CodeCompleter, "complete", lambda self, text, number: asked.append(number) or words)
    found, _ = counted().suggest("x.", 3)
    assert [one.text for one in found] == ["self", "value", "values"] and asked == [12]
    assert [one.text for one in counted().suggest("x = ", 2)[0]] == ["importimport", "self"]
    counted().suggest("x.", 80)
    assert asked[-1] == 100


def test_there_is_no_line_where_the_model_goes_on_with_the_word_it_has_just_ended(monkeypatch):
    monkeypatch.setattr(CodeCompleter, "complete", lambda self, text, number: [Completion("import", 0.2)])
    for rest, line in (("import", ""), ("_x", ""), (" os", "import os"), ("(x)", "import(x)")):
        monkeypatch.setattr(CodeCompleter, "continue_line", lambda *_, rest=rest: rest)
        assert counted().suggest("imp")[1] == line


def test_there_is_no_line_that_goes_in_circles(monkeypatch):
    monkeypatch.setattr(CodeCompleter, "complete", lambda self, text, number: [Completion("path", 0.9)])
    for rest, line in ((".join(os.path.join(os.path.join(os.path.", ""), ("-Max-fall-fall-fall-fall", ""),
                       (" of the value of the value of", ""), (" = [0, 0, 0, 1, 1, 1]", "path = [0, 0, 0, 1, 1, 1]"),
                       (".join(self.name, self.path)", "path.join(self.name, self.path)")):
        monkeypatch.setattr(CodeCompleter, "continue_line", lambda *_, rest=rest: rest)
        assert counted().suggest("os.pa")[1] == line


def test_there_is_no_line_that_begins_with_what_is_no_name(monkeypatch):
    monkeypatch.setattr(CodeCompleter, "complete", lambda self, text, number: [])
    for typed, rest, line in (("if sn", "qzt_type == 'posix':", ""), ("if se", "lf.x:", "self.x:")):
        monkeypatch.setattr(CodeCompleter, "continue_line", lambda *_, rest=rest: rest)
        assert counted().suggest(typed)[1] == line
