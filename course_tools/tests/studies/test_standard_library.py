"""The standard library as data: which modules, which split, and that another Python's sources aren't taken for them."""

import json

import pytest

from course_tools.studies import standard_library
from course_tools.studies.standard_library import (
    MANIFEST,
    SPLITS,
    WrongVersion,
    library_fingerprint,
    list_modules,
    load_standard_library,
    made_with,
    split_of,
)

LISTED = json.loads(MANIFEST.read_text(encoding="utf-8"))["modules"]


def body(name: str, lines: int = 60) -> str:
    return "".join(f"{name}_{i} = {name}({i}) + {i * i}\n" for i in range(lines))


@pytest.fixture
def library(tmp_path):
    """A folder of modules, by their paths."""
    def write(texts: dict[str, str]):
        for path, text in texts.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        return {module.path: module for module in list_modules(tmp_path)}

    return write


def test_the_list_has_three_splits_and_no_package_in_two():
    splits = {}
    for entry in LISTED:
        package = entry["path"].split("/")[0].removesuffix(".py").strip("_")
        assert splits.setdefault(package, entry["split"]) == entry["split"] == split_of(entry["path"])
    assert set(splits.values()) == set(SPLITS)
    assert not [entry for entry in LISTED if {"test", "tests", "idlelib"} & set(entry["path"].split("/"))]
    assert made_with() == "3.11.7" and len(library_fingerprint()) == 12


def test_tests_tables_and_short_modules_are_left_out(library):
    found = library({"json/decoder.py": body("a"), "test/test_json.py": body("b"), "json/tests/more.py": body("c"),
                     "encodings/cp037.py": body("d"), "tiny.py": "x = 1\n", "notes.txt": body("e")})
    assert list(found) == ["json/decoder.py"]


def test_of_two_near_duplicates_the_one_for_training_goes(library):
    names = [f"m{i}.py" for i in range(200)]
    train = next(name for name in names if split_of(name) == "train")
    test = next(name for name in names if split_of(name) == "test")
    changed = body("same").replace("same_7 ", "other ")
    found = library({train: body("same"), test: changed, "z_else.py": body("else_")})
    assert set(found) == {test, "z_else.py"}


def test_a_module_that_shares_little_stays(library):
    shared = "".join(f"import part_{i}\n" for i in range(10))
    assert len(library({"one.py": shared + body("one"), "two.py": shared + body("two")})) == 2


def test_another_version_is_refused_and_taken_on_request(library, monkeypatch):
    modules = list(library({"one.py": body("one"), "two.py": body("two")}).values())
    monkeypatch.setattr(standard_library, "list_modules", lambda: modules)
    split = modules[0].split
    with pytest.raises(WrongVersion, match=r"made with the library of 3\.11\.7; install that version"):
        load_standard_library(split)
    assert modules[0] in load_standard_library(split, any_version=True)
    with pytest.raises(ValueError, match="split='all'; use one of train, validation, test"):
        load_standard_library("all")


def test_the_same_sources_are_taken(library, monkeypatch):
    modules = list(library({"one.py": body("one"), "two.py": body("two")}).values())
    monkeypatch.setattr(standard_library, "list_modules", lambda: modules)
    listed = [standard_library._listed(module) for module in modules]
    monkeypatch.setattr(standard_library, "_manifest", lambda: {"python": "3.11.7", "modules": listed})
    assert load_standard_library(modules[0].split)[0].text.startswith(("one_0", "two_0"))
