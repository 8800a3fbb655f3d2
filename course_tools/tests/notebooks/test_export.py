"""What the notebooks teach is what the package holds."""

import importlib
import json
import re
import textwrap

import pytest

from course_tools.notebooks import export
from course_tools.notebooks.export import ORIGIN, read_modules, with_origin
from course_utils.files.paths import NOTEBOOKS

MODULES = {module: re.search(rf"{ORIGIN}([\w/]+)[.]ipynb", source)[1] for module, source in read_modules(NOTEBOOKS).items()}


def cell(source, kind="code"):
    return {"cell_type": kind, "source": textwrap.dedent(source).strip("\n").splitlines(keepends=True)}


HEAD = cell('''
    #| export shapes
    """Shapes of tensors.

    Does: little. Does not: much.
    """

    import math
''')
AREA = cell('''
    #| export shapes
    def area(side):
        """The square of a side."""
        return side * side


    def _hidden():
        """Nobody sees this."""


    LIMIT = math.inf
''')
SQUARE = cell('''
    #| export shapes
    class Square:
        """A square.

        It has a side.
        """

        def area(self):
            """Its area."""
            return area(self.side)
''')


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A small course of two notebooks in a folder of its own."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "course_utils").mkdir()
    monkeypatch.setattr(export, "ROOT", tmp_path)

    def write(name, *cells):
        (tmp_path / "notebooks" / name).write_text(json.dumps({"cells": cells}), encoding="utf-8")

    write("01_shapes.ipynb", cell("# Shapes\n\n## 1. Areas", "markdown"), HEAD, cell("area = None"), AREA,
          cell("## 2. Squares", "markdown"), SQUARE)
    return write


def test_the_modules_are_what_the_notebooks_export(root, capsys):
    assert export.main(["--check"]) == 0, capsys.readouterr().out


def test_every_module_that_says_it_was_exported_is_exported_today(root):
    folder = root / "course_utils"
    says = {path: re.search(rf"^{ORIGIN}([\w/]+)[.]ipynb: edit it there[.]$", path.read_text(encoding="utf-8"), re.M)
            for path in folder.rglob("*.py") if not path.parent.name.startswith(".")}     # JupyterLab's checkpoints
    names = {path.relative_to(folder).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): found[1]
             for path, found in says.items() if found}
    assert names == MODULES and len(names) >= 9


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_says_where_it_is_taught(module):
    loaded = importlib.import_module(f"course_utils.{module}")
    public = [name for name, value in vars(loaded).items()
              if not name.startswith("_") and getattr(value, "__module__", "") == loaded.__name__]
    assert set(public) <= set(loaded.__all__)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if callable(value):
            assert re.search(rf"Taught in {MODULES[module]}, ['\"].+['\"]\.", value.__doc__), name


def test_exported_cells_are_joined_in_order(course, tmp_path, capsys):
    assert export.main([]) == 0
    source = (tmp_path / "course_utils" / "shapes.py").read_text()
    assert "wrote course_utils/shapes.py" in capsys.readouterr().out
    names = {}
    exec(compile(source, "shapes", "exec"), names)
    assert names["__all__"] == ["area", "LIMIT", "Square"]
    assert names["area"](3) == 9
    assert names["__doc__"].startswith("Shapes of tensors.\n\nDoes: little. Does not: much.\n\nExported from notebooks/01_")
    assert names["area"].__doc__ == "The square of a side.\n\n    Taught in 01_shapes, '1. Areas'.\n    "
    assert names["Square"].__doc__.rstrip().endswith("It has a side.\n\n    Taught in 01_shapes, '2. Squares'.")
    assert "Taught" not in names["_hidden"].__doc__ and "Taught" not in names["Square"].area.__doc__
    assert "area = None" not in source and "#| export" not in source


def test_a_changed_module_is_found_and_printed_and_not_overwritten(course, tmp_path, capsys):
    export.main([])
    module = tmp_path / "course_utils" / "shapes.py"
    assert export.main(["--check"]) == 0
    changed = module.read_text().replace("side * side", "side + side")
    module.write_text(changed)
    capsys.readouterr()
    assert export.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert "-    return side + side" in printed and "+    return side * side" in printed
    assert "course_utils/shapes.py" in printed
    assert module.read_text() == changed
    assert export.main([]) == 0 and export.main(["--check"]) == 0


def test_a_missing_module_is_found(course, tmp_path):
    assert export.main(["--check"]) == 1
    assert not (tmp_path / "course_utils" / "shapes.py").exists()


def test_a_changed_cell_is_found(course):
    export.main([])
    course("01_shapes.ipynb", cell("## 1. Areas", "markdown"), HEAD, AREA)
    assert export.main(["--check"]) == 1


def test_exporting_twice_gives_the_same_bytes(course, tmp_path):
    export.main([])
    module = tmp_path / "course_utils" / "shapes.py"
    before = module.read_bytes()
    module.unlink()
    export.main([])
    assert module.read_bytes() == before and b"\r" not in before


def test_working_copies_and_other_files_are_not_exported(course, tmp_path):
    (tmp_path / "notebooks" / "my_copies").mkdir()
    for name in ("my_copies/02_copy.ipynb", "draft.ipynb"):
        (tmp_path / "notebooks" / name).write_text(json.dumps({"cells": [cell("#| export other\nx = 1")]}))
    assert set(read_modules(tmp_path / "notebooks")) == {"shapes"}


def test_an_extra_exports_to_the_module_of_its_own_name_and_says_so(course, tmp_path):
    (tmp_path / "notebooks" / "extras").mkdir()
    course("extras/circles.ipynb", cell("# Extra: Circles\n\n## Round areas", "markdown"), cell('''
        #| export circles
        """Circles."""

        from course_utils.shapes import area


        def circle(radius):
            """Of what area."""
            return 3 * area(radius)
    '''))
    assert export.main([]) == 0
    source = (tmp_path / "course_utils" / "circles.py").read_text()
    assert source.startswith('"""Circles.\n\nExported from notebooks/extras/circles.ipynb: edit it there.\n"""')
    assert "Taught in extras/circles, 'Round areas'." in source
    course("02_circles.ipynb", cell("#| export circles\nx = 1"))
    with pytest.raises(SystemExit, match="extras/circles.ipynb exports to 'circles', and so does a numbered notebook"):
        export.main([])


def test_a_name_without_a_docstring_is_left_without_one():
    source, names = with_origin("def f():\n    return 1", "Taught here.")
    assert source == "def f():\n    return 1" and names == ["f"]


@pytest.mark.parametrize("argument", ["--chek", "--che", "check", "-c", "--check=yes", "notebooks"])
def test_an_argument_that_there_is_not_is_refused_and_nothing_written(course, tmp_path, argument, capsys):
    with pytest.raises(SystemExit) as stopped:
        export.main([argument])
    assert stopped.value.code == 2 and "usage:" in capsys.readouterr().err
    assert not list((tmp_path / "course_utils").iterdir())


@pytest.mark.parametrize("name", ["../../../x", "..", "a..b", "a.b.c", ".a", "a.", "a.__init__", "a.class", "a/b",
                                  "two words", "", "3d", "__init__", "_hidden", "/tmp/x"])
def test_a_module_name_that_leads_elsewhere_is_refused_and_nothing_written(course, tmp_path, name):
    course("02_more.ipynb", cell(f"#| export {name}\nx = 1"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit, match=r"02_more.ipynb has a cell that begins with '#\| export .*name of one module"):
        export.main([])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_module_that_no_notebook_exported_is_never_overwritten(course, tmp_path):
    written_by_hand = tmp_path / "course_utils" / "notebooks.py"
    written_by_hand.write_text("keep = 1\n")
    course("02_more.ipynb", cell("#| export notebooks\nimport math"), cell("#| export notebooks\nkeep = 2"))
    with pytest.raises(SystemExit, match="course_utils/notebooks.py is no exported module"):
        export.main([])
    assert [path.name for path in (tmp_path / "course_utils").iterdir()] == ["notebooks.py"]
    assert written_by_hand.read_text() == "keep = 1\n"


PACKAGE = [
    cell("## 1. Areas", "markdown"),
    cell('''
        #| export shapes
        """Shapes of tensors."""

        import copy
        import math
        from collections import Counter, deque

        import numpy as np

        from course_utils.data import find_folder
        from course_utils.training import fit
    '''),
    cell('''
        #| export shapes.areas
        """What shapes hold."""


        LIMIT = math.inf


        def area(side: float) -> Counter:
            """The square of a side."""
            return _times(side, side)


        def _times(a, b):
            return a * b
    '''),
    cell("## 2. Solids", "markdown"),
    cell('''
        #| export shapes.solids
        def volume(side):
            """A cube's."""
            return min(area(side) * side, LIMIT), find_folder


        class Cube:
            """A cube."""

            def area(self, math=None):
                """Of all its faces."""
                return 6 * self.side * math.numerator
    '''),
]


def folder_of_modules(folder):
    return {path.name: path.read_text() for path in (folder / "course_utils" / "shapes").glob("*.py")}


def test_a_package_offers_the_names_of_its_modules_and_each_imports_what_it_uses(course, tmp_path, capsys):
    course("01_shapes.ipynb", *PACKAGE)
    assert export.main([]) == 0
    assert "wrote course_utils/shapes/__init__.py" in capsys.readouterr().out
    written = folder_of_modules(tmp_path)
    assert sorted(written) == ["__init__.py", "areas.py", "solids.py"]
    body = {name: source.partition('"""\n\n')[2] for name, source in written.items()}
    assert body["__init__.py"].partition("\n\n")[0] == (
        "from course_utils.shapes.areas import LIMIT, area\nfrom course_utils.shapes.solids import Cube, volume")
    assert '__all__ = ["LIMIT", "area", "volume", "Cube"]' in body["__init__.py"]
    assert body["areas.py"].startswith("import math\nfrom collections import Counter\n\n__all__ = ")
    assert body["solids.py"].startswith("from course_utils.data import find_folder\n"
                                        "from course_utils.shapes.areas import LIMIT, area\n\n__all__ = ")
    assert written["areas.py"].startswith('"""What shapes hold.\n\nExported from notebooks/01_shapes.ipynb')
    assert "Taught in 01_shapes, '2. Solids'." in written["solids.py"]
    assert export.main(["--check"]) == 0
    (tmp_path / "course_utils" / "shapes" / "areas.py").write_text(written["areas.py"].replace("a * b", "a + b"))
    assert export.main(["--check"]) == 1
    assert "--- course_utils/shapes/areas.py" in capsys.readouterr().out


def test_a_statement_among_the_imports_comes_with_what_it_needs(course, tmp_path):
    shared = cell("""
        #| export shapes
        import math
        import warnings

        with warnings.catch_warnings():                            # noisy
            from decimal import Decimal
    """)
    course("01_shapes.ipynb", shared, cell("#| export shapes.one\nx = Decimal(1)"),
           cell("#| export shapes.two\ny = math.pi"))
    export.main([])
    written = folder_of_modules(tmp_path)
    assert "import warnings\n\nwith warnings.catch_warnings():                            # noisy\n" in written["one.py"]
    assert "import math" not in written["one.py"] and "warnings" not in written["two.py"]


@pytest.mark.parametrize(("cells", "said"), [
    (["#| export shapes\nx = 1", "#| export shapes.one\ny = 1"], "a cell exports x to 'shapes', which is a package"),
    (["#| export shapes.one\ny = z", "#| export shapes.two\nz = 1"], "'shapes.one' uses z of 'shapes.two', which begins"),
])
def test_a_package_that_could_not_be_imported_is_refused_and_nothing_written(course, tmp_path, cells, said):
    course("01_shapes.ipynb", *(cell(source) for source in cells))
    with pytest.raises(SystemExit, match=re.escape(said)):
        export.main([])
    assert not list((tmp_path / "course_utils").iterdir())


def test_a_module_that_became_a_package_or_back_is_not_left_beside_it(course, tmp_path):
    export.main([])
    course("01_shapes.ipynb", cell("#| export shapes.one\ny = 1"))
    with pytest.raises(SystemExit, match="course_utils/shapes/__init__.py, but there is course_utils/shapes.py too"):
        export.main([])
    (tmp_path / "course_utils" / "shapes.py").unlink()
    assert export.main([]) == 0
    course("01_shapes.ipynb", HEAD, AREA)
    with pytest.raises(SystemExit, match="course_utils/shapes.py, but there is course_utils/shapes/__init__.py too"):
        export.main([])


def test_a_module_without_a_docstring_says_where_it_comes_from_and_can_be_exported_again(course, tmp_path):
    for value in (1, 2):
        course("02_more.ipynb", cell("#| export more\nimport math"), cell(f"#| export more\nkeep = {value}"))
        assert export.main([]) == 0
    source = (tmp_path / "course_utils" / "more.py").read_text()
    assert "Exported from notebooks/02_more.ipynb: edit it there." in source and "keep = 2" in source


@pytest.mark.parametrize(("source", "said"), [
    ("#|export words\nx = 1", "begins with '#|export words'; to export it write '#| export '"),
    ("# | export words\nx = 1", "to export it write"), ("#| export class\nx = 1", "letters, digits and underscores"),
    ("#| export words\ndef f(:\n", "isn't plain Python"), ("#| export words\n%matplotlib inline", "isn't plain Python"),
])
def test_a_cell_that_can_only_be_meant_for_export_is_named_instead_of_left_out(tmp_path, source, said):
    cell = {"cell_type": "code", "source": [source]}
    (tmp_path / "01_x.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    with pytest.raises(SystemExit, match=re.escape(said)) as ended:
        read_modules(tmp_path)
    assert "01_x.ipynb" in str(ended.value)
