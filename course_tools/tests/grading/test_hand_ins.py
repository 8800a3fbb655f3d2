"""Hand-ins in odd encodings and shapes: read where they can be, else what is wrong with them is said."""

import json

import pytest

from course_tools.grading.hand_ins import read_hand_in

NOTEBOOK = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
    {"cell_type": "code", "id": "a", "metadata": {}, "source": ["x = 1\n", "x"], "outputs": [], "execution_count": None},
    {"cell_type": "raw", "id": "b", "metadata": {}, "source": "y"},
]}, indent=1).encode()


@pytest.mark.parametrize("content", [NOTEBOOK, b"\xef\xbb\xbf" + NOTEBOOK, NOTEBOOK.replace(b"\n", b"\r\n")])
def test_a_mark_or_other_line_ends_change_nothing(tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content)
    found = read_hand_in(tmp_path / "a.ipynb")
    assert [cell.source for cell in found.cells] == ["x = 1\nx"] and [cell.id for cell in found.others] == ["b"]
    assert not found.trouble


@pytest.mark.parametrize(("content", "trouble"), [
    (NOTEBOOK.decode().encode("utf-16"), "it is text in UTF-16, not in UTF-8"),
    (NOTEBOOK.decode().encode("utf-16-le"), "it is text in UTF-16, not in UTF-8"),
    (NOTEBOOK.replace(b"y", b"\xe9"), "it is not text in UTF-8"), (b"\n", "it is empty"),
    (NOTEBOOK.replace(b' "nbformat_minor"', b'<<<<<<< mine\n "nbformat_minor"'),
     "git has left a merge conflict in it (line 3 begins with <<<<<<<)"),
    (NOTEBOOK[:100], "it is not JSON (line 8); was it cut off while it was saved?"),
    (b"[]", "it is JSON, but not a notebook"),
])
def test_what_cannot_be_read_is_said(tmp_path, content, trouble):
    (tmp_path / "a.ipynb").write_bytes(content)
    assert read_hand_in(tmp_path / "a.ipynb").trouble == trouble
