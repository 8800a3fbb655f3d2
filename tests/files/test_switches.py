"""Variables that switch something on or off are read in one way, and a word that is neither is refused."""

import ast

import pytest

from course_utils import exercises
from course_utils.claims import claim
from course_utils.exercises import workers
from course_utils.files.switches import is_on


@pytest.mark.parametrize("text", ["1", "True", " on "])
def test_words_that_switch_on(monkeypatch, text):
    monkeypatch.setenv("COURSE_STRICT", text)
    monkeypatch.setenv("COURSE_WORKER", text)
    assert is_on("COURSE_STRICT") and workers.wanted()
    monkeypatch.setenv("COURSE_TESTING", "0")
    with pytest.raises(AssertionError, match="no longer true"):
        claim("water is dry", False)
    with pytest.raises(AssertionError, match="4.1"):
        exercises.exercise("4.1").check([0, 2, 0, -2])


@pytest.mark.parametrize("text", ["0", "False", " off "])
def test_words_that_switch_off(monkeypatch, capsys, text):
    for name in ("COURSE_STRICT", "COURSE_TESTING", "COURSE_WORKER"):
        monkeypatch.setenv(name, text)
    assert not is_on("COURSE_STRICT", unset=True) and not workers.wanted()
    claim("water is dry", False)
    exercises.exercise("4.1").check([0, 2, 0, -2])
    assert capsys.readouterr().out.count("✗") == 2


@pytest.mark.parametrize("unset", [True, False])
def test_what_is_empty_or_not_there_is_as_usual(monkeypatch, unset):
    for text in ("", "  "):
        monkeypatch.setenv("COURSE_STRICT", text)
        assert is_on("COURSE_STRICT", unset) is unset
    monkeypatch.delenv("COURSE_STRICT")
    assert is_on("COURSE_STRICT", unset) is unset


@pytest.mark.parametrize("text", ["2", "maybe", "x" * 5000])
def test_any_other_word_is_refused_by_name(monkeypatch, text):
    monkeypatch.setenv("COURSE_TESTING", "0")
    monkeypatch.setenv("COURSE_STRICT", text)
    with pytest.raises(ValueError, match="^COURSE_STRICT='.*: expected 1, true, yes or on to switch it on, or 0, false, no "
                                         "or off to switch it off; unset it to get the usual setting$") as refused:
        claim("water is dry", False)
    assert len(str(refused.value)) < 220


def test_no_other_module_reads_a_switch(root):
    """A switch is a variable of the course that is compared with '0' or '1'."""
    for path in sorted((root / "course_utils").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                source = ast.unparse(node)
                assert not ("COURSE_" in source and ("'0'" in source or "'1'" in source)), f"{path.name}: {source}"
