"""Copy the cells that begin with `#| export <module>` from the notebooks into `course_utils/<module>.py`.

    python -m course_utils export            write the modules
    python -m course_utils export --check    print what would change, exit 1 if anything would

Does: keep the cells in notebook order, say in every public docstring which notebook and section
teaches the thing, write `__all__`. Does not: resolve imports (an exported cell imports what it
needs, as any module would), run anything, or touch a notebook.
"""

import argparse
import ast
import difflib
import json
import keyword
import re
import sys
from pathlib import Path

from course_utils.files import write_text
from course_utils.files.paths import ROOT

MARK = "#| export "
ORIGIN = "Exported from notebooks/"                     # in the docstring of every exported module


def with_origin(source: str, origin: str) -> tuple[str, list[str]]:
    """Add `origin` to the docstring of each public function and class; also return their names."""
    lines, names = source.splitlines(), []
    for node in reversed(ast.parse(source).body):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            names.insert(0, node.name)
            if ast.get_docstring(node):
                end = node.body[0].end_lineno - 1
                text = lines[end].rstrip().removesuffix('"""')
                lines[end : end + 1] = ([text.rstrip()] if text.strip() else []) + ["", f"    {origin}", '    """']
        elif isinstance(node, ast.Assign):
            names[:0] = [t.id for t in node.targets if isinstance(t, ast.Name) and not t.id.startswith("_")]
    return "\n".join(lines), names


def read_modules(notebook_folder: Path) -> dict[str, str]:
    """Return {module name: source} for every module that a notebook in the folder exports.

    Ends the program for a module name that isn't a plain name of Python, such as one that leads out of course_utils.
    """
    cells, names, docstrings, origins = {}, {}, {}, {}
    for path in sorted(notebook_folder.glob("[0-9]*.ipynb")):
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
                if not module.isidentifier() or module.startswith("_") or keyword.iskeyword(module):
                    sys.exit(f"{path.name} has a cell that begins with {first!r}; after '#| export' comes the name of one "
                             "module of course_utils, in letters, digits and underscores, such as 'attention'")
                try:
                    docstring = ast.get_docstring(ast.parse(body), clean=False)
                except SyntaxError as error:
                    sys.exit(f"{path.name} has a cell for {module!r} that isn't plain Python ({error.msg}, line "
                             f"{(error.lineno or 0) + 1} of the cell); mend it, or take '#| export' away")
                if module not in cells and docstring:
                    end = ast.parse(body).body[0].end_lineno
                    body = "\n".join(body.splitlines()[end:]).strip("\n")
                    docstrings[module] = docstring.rstrip()
                origins.setdefault(module, f"{ORIGIN}{path.name}: edit it there.")
                body, found = with_origin(body, f"Taught in {path.stem}, {section!r}.")
                cells.setdefault(module, []).append(body.strip("\n"))
                names.setdefault(module, []).extend(found)
    modules = {}
    for module, parts in cells.items():
        exported = ",\n    ".join(f'"{name}"' for name in names[module])
        head = f'"""{docstrings.get(module, module)}\n\n{origins[module]}\n"""\n\n'
        modules[module] = f"{head}{parts[0]}\n\n__all__ = [\n    {exported},\n]\n\n\n" + "\n\n\n".join(parts[1:]) + "\n"
    return modules


def main(arguments: list[str] | None = None) -> int:
    """Write the modules, or with --check print the differences; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_utils export", allow_abbrev=False,
                                     description="Copy the exported cells of the notebooks into course_utils.")
    parser.add_argument("--check", action="store_true", help="print what would change, and write nothing")
    check = parser.parse_args(arguments).check
    changed = {}
    for module, source in read_modules(ROOT / "notebooks").items():
        path = ROOT / "course_utils" / f"{module}.py"
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old and ORIGIN not in old:
            sys.exit(f"a notebook exports to {module!r}, but course_utils/{module}.py is no exported module; it is left as "
                     "it is: choose another name")
        if old != source:
            changed[path] = old, source
    for path, (old, source) in changed.items():
        if check:
            sides = (old.splitlines(), source.splitlines(), f"course_utils/{path.name}", "what the notebook exports")
            print("\n".join(difflib.unified_diff(*sides, lineterm="")))
        else:
            write_text(path, source)
            print(f"wrote course_utils/{path.name}")
    return int(check and bool(changed))
