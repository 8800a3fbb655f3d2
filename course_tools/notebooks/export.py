"""Copy the cells that begin with `#| export <module>` from the notebooks into `course_utils/<module>.py`.

    python -m course_tools export            write the modules
    python -m course_tools export --check    print what would change, exit 1 if anything would

Does: keep the cells in notebook order, say in every public docstring which notebook and section teaches the thing,
write `__all__`. A cell may go to a module of a package, `#| export explain.attribution`. Then the cell `#| export explain`
holds the docstring of the whole and the imports for all its modules; each takes those that it uses, and imports what it
uses of modules that begin before it; `explain/__init__.py` offers the names of all. An extra exports to the module of
its own name or not at all. Does not: resolve other imports (an exported cell imports what it needs, as any module would),
run anything, or touch a notebook.
"""

import argparse
import ast
import difflib
import json
import keyword
import re
import symtable
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_utils.files import write_text
from course_utils.files.paths import EXTRAS, FRONT, ROOT

MARK = "#| export "
ORIGIN = "Exported from notebooks/"                     # in the docstring of every exported module
TAUGHT = re.compile(r"Taught in ([\w/]+), (['\"])(.*)\2\.$")   # the last line of a public docstring, see `taught_in`
LINE = 125                                              # characters; an import that is longer gets a line for each name


class Cell(NamedTuple):
    """An exported cell: its `notebook`, the `section` it stands in, the `module` it goes to, and its `source`."""

    notebook: Path
    section: str
    module: str
    source: str

    @property
    def taught_in(self) -> str:
        """What docstrings call the notebook: '04_attention', or 'extras/llama' for an extra."""
        return f"{EXTRAS}/{self.notebook.stem}" if self.notebook.parent.name == EXTRAS else self.notebook.stem


def says_taught(notebook: str, section: str) -> str:
    """The line of a docstring that says where a thing is taught: "Taught in 04_attention, '8. The function'."

    The title stands in it as it is, quotes and all; `taught_in` reads it.
    """
    quote = '"' if "'" in section and '"' not in section else "'"
    return f"Taught in {notebook}, {quote}{section}{quote}."


def taught_in(docstring: str | None) -> tuple[str, str] | None:
    """The notebook and the section that a docstring names: ('04_attention', '8. The function'); None if it names none."""
    found = TAUGHT.search((docstring or "").rstrip())
    return (found[1], found[3]) if found else None


def with_origin(source: str, origin: str) -> tuple[str, list[str]]:
    """Add `origin` to the docstring of each public function and class; also return their names.

    `origin` is what readers see: a backslash in it gets another in the source, except in a raw docstring.
    """
    lines, names = source.splitlines(), []
    for node in reversed(ast.parse(source).body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            names.insert(0, node.name)
            if ast.get_docstring(node):
                begin, end = node.body[0].lineno - 1, node.body[0].end_lineno - 1
                raw = lines[begin].lstrip()[:1] in "rR"
                written = origin if raw else origin.replace("\\", "\\\\").replace('"""', r'\"\"\"')
                text = lines[end].rstrip().removesuffix('"""')
                lines[end : end + 1] = ([text.rstrip()] if text.strip() else []) + ["", f"    {written}", '    """']
        elif isinstance(node, ast.Assign):
            names[:0] = [t.id for t in node.targets if isinstance(t, ast.Name) and not t.id.startswith("_")]
    return "\n".join(lines), names


def exported_cells(notebook_folder: Path) -> Iterator[Cell]:
    """The exported cells of all notebooks in the folder, in order, those of extras last.

    Ends the program for a cell that can only be meant for export and can't be, or whose module isn't a plain name of
    Python, such as one that leads out of course_utils; for such a cell in START or in the hour, and for one in an extra
    that goes to another module than the extra's own.
    """
    extras = sorted((notebook_folder / EXTRAS).glob("[a-z]*.ipynb"))
    front = [path for name in FRONT if (path := notebook_folder / f"{name}.ipynb").is_file()]
    for path in [*front, *extras]:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code" or not re.match(r"#\s*\|\s*exports?\b", source):
                continue
            first = source.splitlines()[0].rstrip()
            begins = f"{path.relative_to(notebook_folder).as_posix()} has a cell that begins with {first!r}; "
            if path in front:
                sys.exit(f"{begins}a notebook without a number exports nothing, because nothing in the course may depend on "
                         "it: remove that line, or move the cell to a numbered notebook")
            if first != f"{MARK}{path.stem}":
                sys.exit(f"{begins}an extra exports only to the module of its own name, because nothing in the main course "
                         f"may depend on it: write {MARK + path.stem!r}, or move the cell to a numbered notebook")
    for path in [*sorted(notebook_folder.glob("[0-9]*.ipynb")), *extras]:
        section = ""
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                section = next((x[3:].strip() for x in source.splitlines() if x.startswith("## ")), section)
            elif not source.startswith(MARK) and re.match(r"#\s*\|\s*exports?\b", source):
                sys.exit(f"{path.name} has a cell that begins with {source.splitlines()[0]!r}; to export it write "
                         f"{MARK!r} and the name of a module")
            elif source.startswith(MARK):
                first, _, body = source.partition("\n")
                module = first.removeprefix(MARK).strip()
                parts = module.split(".")
                if len(parts) > 2 or not all(
                        x.isidentifier() and not x.startswith("_") and not keyword.iskeyword(x) for x in parts):
                    sys.exit(f"{path.name} has a cell that begins with {first!r}; after '#| export' comes the name of one "
                             "module of course_utils, in letters, digits and underscores, such as 'attention', or of one "
                             "in a package, such as 'explain.attribution'")
                try:
                    ast.parse(body)
                except SyntaxError as error:
                    sys.exit(f"{path.name} has a cell for {module!r} that isn't plain Python ({error.msg}, line "
                             f"{(error.lineno or 0) + 1} of the cell); fix it, or remove '#| export'")
                yield Cell(path, section, module, body)


def read_modules(notebook_folder: Path) -> dict[str, str]:
    """Return {module name: source} for every module that a notebook in the folder exports, and for their packages.

    Ends the program for what `exported_cells` refuses, for a package's own cell that defines something, and for a module
    that uses a name of one that begins after it in the same package.
    """
    sources, names, docstrings, origins = {}, {}, {}, {}
    for cell in exported_cells(notebook_folder):
        module, body = cell.module, cell.source
        docstring = ast.get_docstring(ast.parse(body), clean=False)
        if not sources.get(module) and docstring:
            end = ast.parse(body).body[0].end_lineno
            body = "\n".join(body.splitlines()[end:]).strip("\n")
            docstrings[module] = docstring.rstrip()
        origin = f"{ORIGIN}{cell.taught_in}.ipynb: edit it there."
        if origins.setdefault(module, origin) != origin and EXTRAS in origin:
            sys.exit(f"{cell.taught_in}.ipynb exports to {module!r}, and so does a numbered notebook; give the extra "
                     "another name")
        body, found = with_origin(body, says_taught(cell.taught_in, cell.section))
        package, dot, _ = module.partition(".")
        for name in (module, package) if dot else (module,):
            origins.setdefault(name, origin)
            names.setdefault(name, []).extend(found)
            sources.setdefault(name, [])
        sources[module].append(body.strip("\n"))
    modules = {}
    for module, parts in sources.items():
        package, dot, _ = module.partition(".")
        family = [name for name in sources if name.startswith(f"{package}.")]
        if module in packages(sources):
            stray = _defined("\n".join(parts))
            if stray:
                sys.exit(f"a cell exports {', '.join(sorted(stray))} to {module!r}, which is a package; export that to one "
                         f"of its modules: {', '.join(family)}")
            head, parts = "\n".join(_import(name, names[name]) for name in sorted(family)), []
        elif dot:
            head = _head(module, sources, family)
        else:
            head, *parts = parts
        head = f"{head}\n\n" if head else ""
        docstring = f'"""{docstrings.get(module, module)}\n\n{origins[module]}\n"""\n\n'
        exported = textwrap.fill(", ".join(f'"{name}"' for name in names[module]), LINE, initial_indent="__all__ = [",
                                 subsequent_indent=" " * len("__all__ = ["))
        modules[module] = f"{docstring}{head}{exported}]\n" + "".join(f"\n\n{part}\n" for part in parts)
    return modules


def packages(modules) -> set[str]:
    """Those of the module names that are packages: 'explain' if there is an 'explain.attribution'."""
    return {module.partition(".")[0] for module in modules if "." in module}


def _head(module: str, sources: dict[str, list[str]], family: list[str]) -> str:
    """The imports of a module in a package: of those in the package's own cell, and of earlier modules, what it uses."""
    missing = _looked_up("\n".join(sources[module]))
    others, own, after = [], [], []
    for other in set(family) - {module}:
        needed = missing & _defined("\n".join(sources[other]))
        if needed and family.index(other) > family.index(module):
            sys.exit(f"{module!r} uses {', '.join(sorted(needed))} of {other!r}, which begins after it in the notebook; a "
                     f"module uses only what begins before it: export that to {module!r}, or move the cells")
        if needed:
            own.append(_import(other, needed))
    shared = "\n".join(sources[module.partition(".")[0]])
    lines, end = shared.splitlines(), 0
    for node in reversed(ast.parse(shared).body):
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            if missing & _bound(text):
                after.insert(0, text)
                missing = missing | _looked_up(text)
            continue
        used = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in missing]
        if used:
            if used != node.names:
                node.names = used
                text = ast.unparse(node)
            if text.startswith("from course_utils."):
                own.append(text)
            else:
                gap = others and not all(lines[node.end_lineno : end])
                others[:0] = [text, ""] if gap else [text]
                end = node.lineno - 1
    own.sort(key=lambda text: text.split()[1])
    return "\n\n".join("\n".join(part) for part in (others, own, after) if part)


def _symbols(source: str) -> list[symtable.Symbol]:
    """The names at the top of a source, as Python's compiler sees them."""
    return symtable.symtable(source, "a cell", "exec").get_symbols()


def _defined(source: str) -> set[str]:
    """The names that a source defines at its top: functions, classes, what it assigns."""
    return {symbol.get_name() for symbol in _symbols(source) if symbol.is_assigned()}


def _bound(source: str) -> set[str]:
    """The names that a source defines or imports at its top."""
    return {symbol.get_name() for symbol in _symbols(source) if symbol.is_assigned() or symbol.is_imported()}


def _looked_up(source: str) -> set[str]:
    """The names that a source reads, in its functions too, and neither defines nor imports."""
    found, tables = set(), [symtable.symtable(source, "a cell", "exec")]
    for table in tables:
        tables += table.get_children()
        found |= {symbol.get_name() for symbol in table.get_symbols()
                  if symbol.is_referenced() and (symbol.is_global() or table is tables[0])}
    return found - _bound(source)


def _import(module: str, names) -> str:
    """The import of names from a module of course_utils, in ruff's order: CONSTANTS, Classes, functions."""
    ordered = sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name))
    line = f"from course_utils.{module} import {', '.join(ordered)}"
    if len(line) <= LINE:
        return line
    return f"from course_utils.{module} import (\n    " + ",\n    ".join(ordered) + ",\n)"


def main(arguments: list[str] | None = None) -> int:
    """Write the modules, or with --check print the differences; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_tools export", allow_abbrev=False,
                                     description="Copy the exported cells of the notebooks into course_utils.")
    parser.add_argument("--check", action="store_true", help="print what would change, and write nothing")
    check = parser.parse_args(arguments).check
    modules, changed = read_modules(ROOT / "notebooks"), {}
    for module, source in modules.items():
        base = ROOT / "course_utils" / module.replace(".", "/")
        single, package = base.with_suffix(".py"), base / "__init__.py"
        path, other = (package, single) if module in packages(modules) else (single, package)
        if other.exists():
            sys.exit(f"a notebook exports to {_name(path)}, but there is {_name(other)} too, and Python would find only one "
                     "of them: choose another name, or delete that one if it was exported before")
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old and ORIGIN not in old:
            sys.exit(f"a notebook exports to {module!r}, but {_name(path)} is no exported module; it is left as it is: "
                     "choose another name")
        if old != source:
            changed[path] = old, source
    for path, (old, source) in changed.items():
        if check:
            sides = (old.splitlines(), source.splitlines(), _name(path), "what the notebook exports")
            print("\n".join(difflib.unified_diff(*sides, lineterm="")))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, source)
            print(f"wrote {_name(path)}")
    return int(check and bool(changed))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
