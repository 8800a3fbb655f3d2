"""Every docstring and signature as the site's reference gets them, without Sphinx: they lead where they should."""

import inspect
import json
import re
import typing
from functools import cache
from importlib import import_module

import pytest

from course_tools.notebooks import export
from course_tools.site import reference
from course_utils.files.paths import NOTEBOOKS

MODULES = [*reference.taught(), *reference.helpers()]
LINK = re.compile(r":py:obj:`[^`<]+ <([\w.]+)>`")
TAUGHT_IN = re.compile(r"^\*Taught in\* :ref:`([^`<]+) <([\w-]+)>`\.$", re.M)
TITLES = ["Areas", "The library's", 'Say "no"', '7. "Don\'t know"', "2. What is 'it'?", "It ends in '", 'It ends in "',
          "The angle $\\theta$ and \\new", 'Three """ in a row', "Don't \"say\", 'it'. Really."]


def entries_of(module: str) -> list[reference.Entry]:
    return {**reference.taught(), **reference.helpers()}[module]


def thing(entry: reference.Entry):
    return getattr(import_module(f"course_utils.{entry.module}"), entry.name)


def documented(module: str):
    """(full name, object, entry) of what the reference shows of a module: functions, classes, and their public methods."""
    for entry in entries_of(module):
        if entry.kind == "data":
            continue
        yield entry.full, thing(entry), entry
        members = vars(thing(entry)).items() if entry.kind == "class" else ()
        for name, member in members:
            code = getattr(member, "__func__", getattr(member, "fget", member))
            if not name.startswith("_") and inspect.isfunction(code):
                yield f"{entry.full}.{name}", code, None


def read_for_the_site(full: str, code) -> str:
    """A docstring after the handler that Sphinx calls."""
    lines = [*(inspect.getdoc(code) or "").split("\n"), ""]
    reference._docstring(None, "function", full, code, None, lines)
    return "\n".join(lines)


@cache
def sections(notebook: str) -> dict[str, str]:
    """The title below each label that a page of the site has: {'taught-04-8-the-function': '8. The function'}."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    made = reference.linked(notebook, [{**cell, "source": "".join(cell["source"])} for cell in cells])
    found = [pair for cell in made for pair in re.findall(r"^\(([\w-]+)\)=\n## (.+)$", cell["source"], re.M)]
    assert len(dict(found)) == len(found), f"two sections of {notebook} have one label: {found}"
    return {label: title.strip() for label, title in found}


@pytest.mark.parametrize("module", MODULES)
def test_every_docstring_becomes_a_page_and_names_the_section_that_teaches_it(module):
    seen = 0
    for full, code, entry in documented(module):
        text = read_for_the_site(full, code)
        assert not re.search(r"(?<!\*)Taught in", text) and export.ORIGIN not in text, f"{full}: {text}"
        places = TAUGHT_IN.findall(text)
        if entry and entry.notebook:
            assert len(places) == 1, f"{full} names {len(places)} sections, not one:\n{text}"
            words, label = places[0]
            assert sections(entry.notebook).get(label) == entry.section, f"{full}: no section {entry.section!r} at {label}"
            title = re.sub(r"[\\*`<>|]", "", entry.section.partition(". ")[2] or entry.section)
            assert words.startswith(reference._called(entry.notebook)) and words.endswith(title), f"{full}: {words}"
            seen += 1
        else:
            assert not places, full
    assert seen or module in reference.HELPERS


@pytest.mark.parametrize("quotes, title", [(quotes, title) for quotes in ('"""', 'r"""') for title in TITLES
                                           if quotes == '"""' or quotes[1:] not in title])
def test_a_docstring_names_a_section_whatever_its_title(quotes, title):
    source, _ = export.with_origin(f"def f():\n    {quotes}One.{quotes[-3:]}", export.says_taught("15_distillation", title))
    names: dict = {}
    exec(compile(source, "a module", "exec", dont_inherit=True), names)
    assert title in names["f"].__doc__                     # what help() shows: no backslash that the title doesn't have
    assert export.taught_in(names["f"].__doc__) == ("15_distillation", title)
    assert f"<{reference.label('15_distillation', title)}>`." in read_for_the_site("course_utils.distillation.f", names["f"])


def test_a_link_in_a_docstring_leads_to_the_one_thing_of_that_name():
    links = 0
    for module in MODULES:
        for full, code, _ in documented(module):
            for target in LINK.findall(read_for_the_site(full, code)):
                entries = reference.by_name().get(target.rpartition(".")[2], [])
                if target.removeprefix("course_utils.") in MODULES:
                    assert not entries, f"{target} is a module and {entries}"
                    continue
                assert target in {entry.full for entry in entries}, f"{full} links to {target}, which isn't there"
                assert len(entries) == 1 or target.startswith(f"course_utils.{module}."), (
                    f"{full} links to {target}, and {[entry.full for entry in entries]} have that name")
                links += 1
    assert links > 50


def classes_in(hint):
    """The classes in a type: Memory and int in `dict[int, Memory | None]`."""
    if inspect.isclass(hint) and not typing.get_args(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


@pytest.mark.parametrize("module", MODULES)
def test_a_type_in_a_signature_leads_to_that_type_and_no_other(module):
    """Sphinx writes a type as ~its.full.name, and looks a name without dots up in the module first, then everywhere."""
    for full, code, _ in documented(module):
        owner = code.__init__ if inspect.isclass(code) else code
        try:
            hints = typing.get_type_hints(owner)
        except (NameError, TypeError):                     # a type that only editors import, as in Sphinx
            continue
        for hint in {part for value in hints.values() for part in classes_in(value)}:
            written = f"(x: ~{hint.__module__}.{hint.__qualname__})"
            target = reference._signature(None, "function", full, code, None, written, None)[0][4:-1]
            named = reference.by_name().get(target.rpartition(".")[2], [])
            if target.startswith("~"):
                named = [entry for entry in named if f"~{entry.full}" == target]
            elif here := [entry for entry in named if entry.module == module]:
                named = here
            assert len(named) <= 1, f"{full}: {target} may be any of {[entry.full for entry in named]}"
            assert all(thing(entry) is hint for entry in named), f"{full}: {target} leads to {named[0].full}, not {hint}"


def test_a_name_of_two_modules_is_that_of_the_module_or_none():
    names = [name for name, entries in reference.by_name().items() if len(entries) > 1]
    for name in names:
        for entry in reference.by_name()[name]:
            assert reference.full_names(entry.module)[name] == entry.full
        assert name not in reference.full_names() and name not in reference.full_names("attention")
    assert "Memory" in names                               # of 16 and of 17: else nothing was tried here
