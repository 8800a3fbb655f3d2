"""What is made from one list is saved and read back; the file of another kind of thing is refused."""

import json

import pytest

from course_utils.files.saved_lists import SavedList


class Shopping(SavedList):
    kind, part, complaint = "shopping", "things", "is no list of things to buy"

    def __init__(self, things):
        self.things = things


def test_it_comes_back_as_it_was(tmp_path):
    Shopping(["tea", "é"]).save(tmp_path / "new" / "list.json")
    written = json.loads((tmp_path / "new" / "list.json").read_text(encoding="utf-8"))
    assert written == {"type": "shopping", "things": ["tea", "é"]}
    loaded = Shopping.load(tmp_path / "new" / "list.json")
    assert type(loaded) is Shopping and loaded.things == ["tea", "é"]


@pytest.mark.parametrize("content", [["tea"], {"things": ["tea"]}, {"type": "words", "things": ["tea"]}])
def test_the_file_of_something_else_is_refused_by_name(tmp_path, content):
    (tmp_path / "other.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="other.json is no list of things to buy"):
        Shopping.load(tmp_path / "other.json")
