"""Where things are and who may import whom: the table 'What lives where' in CONTRIBUTING.md, held against the code.

Imports are read from the source, those inside functions too.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

from course_tools.__main__ import COMMANDS as TOOLS
from course_tools.notebooks.export import ORIGIN
from course_utils.__main__ import COMMANDS
from course_utils.files.paths import ROOT

PACKAGE = ROOT / "course_utils"
NOT_OURS = {"__pycache__", ".ipynb_checkpoints"}        # Python's, and JupyterLab's where somebody has opened a module
FILES = sorted(path for path in PACKAGE.rglob("*.py") if not NOT_OURS.intersection(path.parts))

# what a taught module may use of other people's work: a reader has met these by then
TAUGHT_LIBRARIES = {"torch", "numpy", "sklearn", "captum"}


def module_name(path: Path) -> str:
    """`course_utils.data.hub` for course_utils/data/hub.py."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imports(source: str, name: str, package: bool) -> set[str]:
    """The names of all modules that a source imports; `name` is its own, `package` whether it is an __init__."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parent = name.split(".")[: len(name.split(".")) - node.level + package] if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            whole = [f"{base}.{alias.name}" for alias in node.names]
            found |= {one if one in MODULES else base for one in whole}
    return found - {name}


ARROWS = {name: imports(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
          for name, path in MODULES.items()}


def read_table() -> dict[str, tuple[int, str]]:
    """Of each room in the table of CONTRIBUTING.md, its floor and the notebook that explains it."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## What lives where")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| `([\w.]+)` \| [^|]+ \|([^|]*)\|$", page, re.M)
    assert len({room for _, room, _ in rows}) == len(rows), "a room stands twice in the table"
    return {room: (int(floor), explained.strip()) for floor, room, explained in rows}


ROOMS = read_table()


def room_of(module: str) -> str:
    """The room of `course_utils.data.hub` is `data`, if the table has no `data.hub`; the package itself has none."""
    inside = module.partition(".")[2]
    return max((room for room in ROOMS if f"{inside}.".startswith(f"{room}.")), key=len, default=inside.partition(".")[0])


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """A circle among the arrows, as the names along it; empty where there is none."""
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        found = next((f for other in sorted(arrows.get(name, ())) if (f := walk(other, (*way, name)))), [])
        done.add(name)
        return found

    return next((f for name in sorted(arrows) if (f := walk(name, ()))), [])


def between_rooms() -> dict[str, set[str]]:
    arrows: dict[str, set[str]] = {room: set() for room in ROOMS}
    for name, others in ARROWS.items():
        mine = room_of(name)
        theirs = {room_of(other) for other in others if other.startswith("course_utils.")}
        arrows.setdefault(mine, set()).update(theirs - {mine, ""})
    return arrows


def test_the_table_has_a_row_for_every_room():
    there = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {room.partition(".")[0] for room in ROOMS} == there - {"__init__", "__main__"}


def test_nothing_in_the_package_imports_what_the_course_is_made_with():
    outward = {(name, other) for name, others in ARROWS.items() for other in others
               if other.partition(".")[0] in ("course_tools", "french", "exercises", "tests")}
    assert outward == set()


def test_no_module_and_no_room_imports_itself_round_a_corner():
    assert circle(ARROWS) == []
    assert circle(between_rooms()) == []


def test_a_room_imports_only_from_the_floors_below_it():
    floors = {room: floor for room, (floor, _) in ROOMS.items()} | {"__main__": 99}
    arrows = [(room, other) for room, others in between_rooms().items() if room for other in sorted(others)]
    up = [f"{room} (floor {floors[room]}) imports {other} (floor {floors[other]})"
          for room, other in arrows if floors[other] >= floors[room]]
    assert up == []


def exported() -> list[str]:
    """The rooms whose code is written in notebooks."""
    mark = re.compile(rf"^{ORIGIN}(?:\d|extras/)\w+[.]ipynb: edit it there", re.M)
    return [room for room in ROOMS if any(mark.search(MODULES[name].read_text(encoding="utf-8"))
                                          for name in MODULES if room_of(name) == room)]


def taught_in(room: str) -> str:
    """The number of the notebook that teaches a room, such as '04' or '02b'; 'extra' comes after all of them."""
    return ROOMS[room][1][1:].partition("]")[0]


@pytest.mark.parametrize("room", [room for room, (_, explained) in ROOMS.items() if explained])
def test_the_notebook_that_the_table_names_is_there(room):
    link = re.fullmatch(r"\[(\d\db?|extra)\]\((notebooks/(?:\1_|extras/)\w+\.ipynb)\)", ROOMS[room][1])
    assert link and (ROOT / link[2]).is_file() and (link[1] == "extra") == ("/extras/" in link[2])
    origin = re.search(rf"{ORIGIN}([\w/]+\.ipynb)", (MODULES[f"course_utils.{room}"]).read_text(encoding="utf-8"))
    assert origin is None or f"notebooks/{origin[1]}" == link[2]


def test_every_taught_module_says_in_the_table_where_it_is_taught():
    assert len(exported()) >= 9 and all(ROOMS[room][1] for room in exported())


@pytest.mark.parametrize("room", exported())
def test_a_taught_module_uses_what_a_reader_has_met(room):
    names = {name.partition(".")[0] for module, others in ARROWS.items() if room_of(module) == room for name in others}
    standard = sys.stdlib_module_names
    assert names - standard - {"course_utils"} <= TAUGHT_LIBRARIES
    taught = set(exported())
    mine = taught_in(room)
    for other in between_rooms()[room] & taught:
        assert taught_in(other) < mine, f"{room} is taught in {mine}, before {other}, or both are of extras"
    assert not between_rooms()[room] & {"exercises", "recipes", "results", "copies", "heatmaps", "figures"}


def test_what_the_page_for_maintainers_names_is_there():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefiles = (ROOT / "Makefile", ROOT / "course_tools" / "targets.mk")
    targets = {name for path in makefiles for name in re.findall(r"^([\w-]+):", path.read_text(encoding="utf-8"), re.M)}
    assert set(re.findall(r"`make ([\w-]+)", page)) <= targets
    assert set(re.findall(r"-m course_utils ([\w-]+)", page)) <= set(COMMANDS)
    assert set(re.findall(r"-m course_tools ([\w-]+)", page)) <= set(TOOLS)
    places = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", page) + re.findall(r"\]\((?!#)([^)]+)\)", page)
    inside = [ROOT, PACKAGE, PACKAGE / "exercises", ROOT / "course_tools"]
    begun = ("n18", "your_set", "outputs/", "extras", "../")                # what the page tells you to make
    assert [p for p in places if not any((one / p).exists() for one in inside) and not any(b in p for b in begun)] == []
    headings = {line[3:].lower().replace(" ", "-") for line in page.splitlines() if line[:3] == "## "}
    assert set(re.findall(r"\]\(#([\w-]+)\)", page)) == headings
