"""The reference: a page for each module that the notebooks teach, and for each room of helpers, with links both ways.

Does: write the pages' sources (Sphinx fills in signatures and docstrings), lead 'Taught in …' to the section that teaches
the thing, and give the line that leads from a notebook's exported cell to its place in the reference. Does not: import the
modules, which Sphinx does, or render anything.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from course_tools.notebooks.export import MARK, ORIGIN, TAUGHT, exported_cells, taught_in
from course_tools.site.docstrings import to_rst
from course_tools.site.pages import title_of
from course_utils.copies.notebooks import find, number_of
from course_utils.files import write_text
from course_utils.files.paths import NOTEBOOKS, ROOT

FOLDER = "reference"
# Rooms and modules beside the taught ones that notebooks use, in the order in which one meets them.
HELPERS = ("data", "claims", "exercises", "figures", "heatmaps", "interactive", "training", "baselines",
           "recipes.trained_models", "recipes", "results")
LONGEST_VALUE = 100                                       # characters; a constant's longer value isn't shown


class Entry(NamedTuple):
    """Something public: its `name`, the `module` it's imported from ('explain'), its `kind` ('class', 'function', 'data'),
    the `value` of a constant as source, and the `notebook` and `section` that teach it ('' where none does)."""

    name: str
    module: str
    kind: str
    value: str = ""
    notebook: str = ""
    section: str = ""

    @property
    def full(self) -> str:
        return f"course_utils.{self.module}.{self.name}"


@cache
def taught() -> dict[str, list[Entry]]:
    """The public names of each module that a notebook teaches, in teaching order; a package's modules are one.

    A docstring ends on the section that teaches the thing; a constant has none, and is looked up among the exported cells.
    """
    exported = {(cell.module.partition(".")[0], entry.name): (cell.taught_in, cell.section)
                for cell in exported_cells(NOTEBOOKS) for entry in _defined(cell.source, "")}
    teaching = {path.relative_to(ROOT / "course_utils").parts[0].removesuffix(".py")
                for path in (ROOT / "course_utils").rglob("*.py") if "\n    Taught in " in path.read_text(encoding="utf-8")}
    found = {}
    for module in sorted(teaching - set(HELPERS)):
        entries = []
        for entry in _public(module):
            notebook, section = exported.get((module, entry.name), (entry.notebook, entry.section))
            entries.append(entry._replace(notebook=notebook, section=section))
        found[module] = entries
    order = [path.stem for path in find([])]

    def first(module: str) -> tuple[int, str]:
        names = [entry.notebook for entry in found[module] if entry.notebook]
        return min((order.index(name), name) if name in order else (len(order), name) for name in names)

    return {module: found[module] for module in sorted(found, key=first)}


@cache
def helpers() -> dict[str, list[Entry]]:
    """The public names of the rooms in HELPERS, each under the first room that defines it."""
    return {module: list(_public(module)) for module in HELPERS}


def everything() -> list[Entry]:
    """Every name that the reference has."""
    return [entry for entries in [*taught().values(), *helpers().values()] for entry in entries]


def full_names(here: str = "") -> dict[str, str]:
    """What a name in a docstring of the module `here` ('explain') may be linked to: names, `Class.method` left out, and
    modules. A name that several modules have is the one of `here`; anywhere else it isn't linked."""
    found = {name: entries[0].full for name, entries in by_name().items() if len(entries) == 1}
    found |= {entry.name: entry.full for entry in everything() if entry.module == here}
    for module in {**taught(), **helpers()}:
        full = f"course_utils.{module}"
        found |= {full: full, module: full}
    return found


@cache
def by_name() -> dict[str, list[Entry]]:
    """The reference's entries of each name: usually one, but two modules may have a class `Memory`."""
    found: dict[str, list[Entry]] = {}
    for entry in everything():
        found.setdefault(entry.name, []).append(entry)
    return found


def _defined(source: str, module: str) -> Iterator[Entry]:
    """The public functions, classes and constants that a source defines at its top."""
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            notebook, section = taught_in(ast.get_docstring(node)) or ("", "")
            yield Entry(node.name, module, "class" if isinstance(node, ast.ClassDef) else "function", "", notebook, section)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            value = ast.unparse(node.value)
            for name in names:
                if not name.startswith("_"):
                    shown = value if len(names) == 1 and len(value) <= LONGEST_VALUE else ""
                    yield Entry(name, module, "data", shown)


def _file(module: str) -> Path:
    base = ROOT / "course_utils" / module.replace(".", "/")
    return base.with_suffix(".py") if base.with_suffix(".py").is_file() else base / "__init__.py"


def _public(module: str) -> Iterator[Entry]:
    """What a room offers: its `__all__`, or else the functions and classes that it defines and explains.

    What it takes over from another room of the reference is left to that one.
    """
    source = _file(module).read_text(encoding="utf-8")
    tree, here = ast.parse(source), {entry.name: entry for entry in _defined(source, module)}
    wanted = next((ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
                   and ast.unparse(node.targets[0]) == "__all__"), None)
    origins = {alias.asname or alias.name: (node.module or "", alias.name) for node in tree.body
               if isinstance(node, ast.ImportFrom) for alias in node.names}
    if wanted is None:
        explained = {node.name for node in tree.body
                     if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node)} - {"main"}
        yield from (entry for name, entry in here.items() if name in explained)
        return
    for name in wanted:
        if name in here:
            yield here[name]
        else:
            home, original = origins[name]
            inside = home.removeprefix("course_utils.")
            if inside.partition(".")[0] == module.partition(".")[0] or inside.partition(".")[0] not in HELPERS:
                there = {entry.name: entry for entry in _defined(_file(inside).read_text(encoding="utf-8"), inside)}
                yield there[original]._replace(name=name, module=module)


def write_pages(folder: Path) -> list[str]:
    """Write the sources of the reference's pages into `folder`; returns the name of the page that lists them."""
    parts = [("What the notebooks build", taught()), ("What the course brings along", helpers())]
    lines = [_title("Reference"),
             "Every class and function that the notebooks build, and what the course brings along, from the docstrings in "
             "the code. All names are in the :ref:`index <genindex>`.", ""]
    for caption, modules in parts:
        lines += [_title(caption, "-"), *(_row(module, entries) for module, entries in modules.items()), "",
                  ".. toctree::", "   :hidden:", "", *(f"   {module}" for module in modules), ""]
        for module, entries in modules.items():
            _write(folder / FOLDER / f"{module}.rst", _module_page(module, entries))
    _write(folder / FOLDER / "index.rst", "\n".join(lines))
    return [f"{FOLDER}/index"]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text.rstrip("\n") + "\n")


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _row(module: str, entries: list[Entry]) -> str:
    """A module in the list of all: what it's about, and the notebook that builds it."""
    about = ast.get_docstring(ast.parse(_file(module).read_text(encoding="utf-8"))).partition("\n\n")[0]
    notebook = next((entry.notebook for entry in entries if entry.notebook), "")
    built = f" Built in :doc:`{_called(notebook)} </{notebook}>`." if notebook else ""
    return f"- :doc:`{module} <{module}>`: {to_rst(' '.join(about.split())).strip()}{built}"


def _module_page(module: str, entries: list[Entry]) -> str:
    """The source of a module's page. Sphinx's autodoc puts the docstrings in."""
    full = f"course_utils.{module}"
    lines = [_title(module), f".. automodule:: {full}", "", f".. py:currentmodule:: {full}", ""]
    for entry in entries:
        if entry.kind == "data":
            value = [f"   :value: {entry.value}"] if entry.value else []
            lines += [f".. py:data:: {entry.name}", *value, ""]
            lines += [f"   {_taught_in(entry.notebook, entry.section)}", ""] if entry.notebook else []
        else:
            members = ["   :members:", "   :member-order: bysource"] if entry.kind == "class" else []
            lines += [f".. auto{entry.kind}:: {entry.name}", *members, ""]
    return "\n".join(lines)


def _called(notebook: str) -> str:
    """'04 Attention' for 04_attention."""
    return title_of(NOTEBOOKS / f"{notebook}.ipynb")


def _taught_in(notebook: str, section: str) -> str:
    """The line that leads to the section that teaches something."""
    number, dot, title = section.partition(". ")
    words = f"section {number}: {title}" if dot and number.isdigit() else section
    shown = re.sub(r"([\\*`<>|])", "", f"{_called(notebook)}, {words}")
    return f"*Taught in* :ref:`{shown} <{label(notebook, section)}>`."


def label(notebook: str, section: str) -> str:
    """The name under which pages refer to a notebook's section: 'taught-04-the-function', 'taught-llama-the-function'."""
    words = re.findall(r"\w+", section.lower())
    name = number_of(notebook) or notebook.rpartition("/")[2]
    return "-".join(["taught", name, *(word for word in words if word.isascii())])


def linked(notebook: str, cells: list[dict]) -> list[dict]:
    """A notebook's cells with a label at each section, and after each exported cell a line that leads to the reference."""
    result, teaches = [], number_of(notebook) or any(cell["source"].startswith(MARK) for cell in cells)
    for cell in cells:
        source = cell["source"]
        if cell["cell_type"] == "markdown" and teaches:
            source = re.sub(r"^## (.+)$", lambda found: f"({label(notebook, found[1].strip())})=\n{found[0]}", source,
                            flags=re.M)
        result.append({**cell, "source": source})
        if cell["cell_type"] == "code" and source.startswith(MARK):
            result.append({"cell_type": "markdown", "metadata": {}, "source": _to_reference(source)})
    return result


def _to_reference(source: str) -> str:
    """The line below an exported cell, in Markdown."""
    first, _, body = source.partition("\n")
    module = first.removeprefix(MARK).strip().partition(".")[0]
    public = {entry.name for entry in taught()[module]}
    names = [f"{{py:obj}}`{entry.name} <{entry.full}>`" for entry in _defined(body, module) if entry.name in public]
    where = f"{{py:mod}}`{module} <course_utils.{module}>`"
    return f'<div class="in-reference">\n\nIn the reference: {" · ".join(names) if names else where}\n\n</div>'


def setup(app) -> None:
    """Connect what has to happen while Sphinx reads docstrings; `app` is Sphinx's."""
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip)
    app.connect("viewcode-follow-imported", _home_of_constant)


def _docstring(app, kind: str, name: str, thing, options, lines: list[str]) -> None:
    """Called by Sphinx for each docstring, to rewrite its lines in place."""
    text = re.sub(rf"\n*{ORIGIN}.*$", "", "\n".join(lines).strip())
    own = [name.rpartition(".")[2], *_arguments(thing)]
    rst = to_rst(TAUGHT.sub("", text), full_names(_module_of(name)), own)
    if found := taught_in(text):
        rst += f"\n{_taught_in(*found)}\n"
    lines[:] = rst.split("\n")


def _module_of(name: str) -> str:
    """The module of the reference that a full name is in: 'explain' for course_utils.explain.Method.name."""
    modules = (module for module in {**taught(), **helpers()} if f"{name}.".startswith(f"course_utils.{module}."))
    return max(modules, key=len, default="")


def _arguments(thing) -> list[str]:
    try:
        return list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):                       # a module, a property
        return []


def _signature(app, kind: str, name: str, thing, options, signature: str | None, result: str | None):
    """Called by Sphinx for each signature: types by their last name, and no word of how Python shows what has no source.

    Sphinx looks a last name up in the module itself and then in all others. A type that it wouldn't find so, or not
    it alone, keeps its full name, of which the page shows the last part.
    """
    if not signature:
        return None
    if signature == "(*args, **kwargs)" and kind == "class":              # a protocol: nothing to call
        return "", None
    links = full_names(_module_of(name))

    def type_name(found: re.Match) -> str:
        full, last = found[1] + found[2], found[2]
        full = next((entry.full for entry in by_name().get(last, []) if full.startswith(f"course_utils.{entry.module}.")),
                    full)
        return last if last not in by_name() or links.get(last) == full else f"~{full}"

    def written(text: str) -> str:
        typed = re.sub(r"~((?:\w+\.)*)(\w+)", type_name, text)
        return re.sub(r"(?<!~)\bcourse_utils\.[a-z_.]+\.", "", typed).replace("<factory>", "...")

    return tuple(text and written(text) for text in (signature, result))


def _skip(app, kind: str, name: str, thing, skip: bool, options) -> bool | None:
    """Called by Sphinx for each member: the fields of a NamedTuple are in its signature already."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def _home_of_constant(app, module: str, name: str) -> str | None:
    """Called by Sphinx to find where something is defined: a constant isn't to be found where the class of its value is."""
    constants = {entry.full for entry in everything() if entry.kind == "data"}
    return module if f"{module}.{name}" in constants else None
