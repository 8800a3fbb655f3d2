"""Copies for Colab: their first cell fetches the course, their links lead on, and a hosted kernel gets what it lacks."""

import ast
import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from small_course import make_course, small_notebook

import course_utils
from course_tools.notebooks import hosted_copies
from course_utils.copies import hosted, notebooks, start
from course_utils.copies.hosted import launch_links
from course_utils.files.paths import ROOT

COURSE = "https://github.com/owner/course"
COMMIT = "0123456789" * 4
COLAB = "https://colab.research.google.com/github/owner/course/blob/hosted"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two notebooks and START in a folder of their own; returns the folder of the notebooks."""
    folder = make_course(tmp_path, monkeypatch)
    (tmp_path / "code.py").write_text("1", encoding="utf-8")
    first, home = small_notebook('exercise("0.1").check(None)'), small_notebook()
    first.cells[0].source = "[a](01_second.ipynb#sums) [b](../code.py) [c](#here) [d](https://x.org/e.ipynb) [e](none.md)"
    page = '<a href="01_second.ipynb">01</a><a href="#top">top</a><a href="https://x.org">x</a>'
    home.cells[1].outputs = [nbformat.v4.new_output("display_data", {"text/html": page})]
    nbformat.write(first, folder / "00_first.ipynb")
    nbformat.write(home, folder / "START.ipynb")
    return folder


# the copies

def test_a_copy_begins_with_the_cell_that_fetches_the_course_and_has_no_outputs(course):
    copy = hosted_copies.hosted_copy(course / "00_first.ipynb", COURSE, COMMIT)
    nbformat.validate(copy)
    fetch, note, title, code = copy.cells
    assert fetch.source.startswith("#@title Run this cell first") and f"commit = {COURSE!r}, {COMMIT!r}" in fetch.source
    assert note.cell_type == "markdown" and "Save a copy in Drive" in note.source
    assert (code.source, code.outputs) == ('exercise("0.1").check(None)', []) and code.metadata["course_source"]


def test_links_lead_to_other_copies_and_to_the_repository(course):
    copy = hosted_copies.hosted_copy(course / "00_first.ipynb", COURSE, COMMIT)
    assert copy.cells[2].source == (f"[a]({COLAB}/01_second.ipynb#sums) [b]({COURSE}/blob/main/code.py) [c](#here) "
                                    "[d](https://x.org/e.ipynb) [e](none.md)")
    home = hosted_copies.hosted_copy(course / "START.ipynb", COURSE, COMMIT)
    assert home.cells[3].outputs[0].data["text/html"] == (
        f'<a href="{COLAB}/01_second.ipynb" target="_blank">01</a><a href="#top">top</a><a href="https://x.org">x</a>')


def test_every_link_of_the_course_s_notebooks_leads_somewhere_from_colab():
    for path in notebooks.everything():
        copy = hosted_copies.hosted_copy(path, COURSE, COMMIT)
        links = []
        for cell in copy.cells:
            links += re.findall(r"\]\(([^)\s]+)", cell.source) if cell.cell_type == "markdown" else []
            for output in cell.get("outputs", []):
                links += re.findall(r'href="([^"]+)"', output.get("data", {}).get("text/html", ""))
        assert [link for link in links if not re.match("https?://|#", link)] == [], path.name


def test_the_command_writes_every_notebook_and_overwrites_what_was_there(course, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    there = tmp_path / "outputs" / "hosted"
    there.mkdir(parents=True)
    (there / "old.ipynb").write_text("{}", encoding="utf-8")
    assert hosted_copies.main(["--address", COURSE, "--commit", COMMIT]) == 0
    names = sorted(path.name for path in there.iterdir())
    assert names == ["00_first.ipynb", "01_second.ipynb", "README.md", "START.ipynb"]
    assert capsys.readouterr().out.startswith("3 copies for Colab, of 0123456789:")


@pytest.mark.parametrize("arguments, says", [
    (["--address", "", "--commit", COMMIT], "the repository has no address yet, .* --address https"),
    (["--address", COURSE, "--commit", "main"], "40 hexadecimal digits; got 'main'"),
])
def test_without_an_address_or_a_commit_the_command_says_what_to_give(arguments, says):
    with pytest.raises(SystemExit, match=says):
        hosted_copies.main(arguments)


# the first cell, run for real

def git(folder, *words) -> str:
    line = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def published(tmp_path):
    """A repository with two versions of a package that says which it is; returns its address and the older commit."""
    folder = tmp_path / "published"
    copies = folder / "course_utils" / "copies"
    copies.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for file in (folder / "course_utils" / "__init__.py", copies / "__init__.py"):
        file.write_text("", encoding="utf-8")
    commits = []
    for name in ("one", "three"):                       # of two lengths, since Python keeps what it compiled
        (copies / "hosted.py").write_text(f"def prepare(address): print('version {name}')\n", encoding="utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "a version")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return folder, commits


def run_cell(place, address, commit):
    """Run the first cell in a fresh Python that has only the standard library."""
    place.mkdir(exist_ok=True)
    code = hosted_copies.FETCH.format(address=str(address), commit=commit)
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=place, capture_output=True, text=True)


def test_the_first_cell_fetches_the_version_of_its_copy_and_only_once(published, tmp_path):
    address, (older, newer) = published
    first = run_cell(tmp_path / "content", address.as_uri(), older)
    assert first.stdout == "version one\n", first.stderr
    address.rename(tmp_path / "gone")
    assert run_cell(tmp_path / "content", address.as_uri(), older).stdout == "version one\n"
    (tmp_path / "gone").rename(address)
    assert run_cell(tmp_path / "content", address.as_uri(), newer).stdout == "version three\n"  # a newer copy's


# the kernel

def loaded_with(names: set[str]) -> set[str]:
    """The modules of other people that the given modules of the course import at their top, and those that these import."""
    seen, todo, others = set(), sorted(names), set()
    while todo:
        name = todo.pop()
        path = ROOT.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in seen or not path.is_file():
            continue
        seen.add(name)
        ours, theirs = imported(path.read_text(encoding="utf-8"))
        todo += sorted(ours)
        others |= theirs
    return others


def imported(source: str) -> tuple[set[str], set[str]]:
    """The course's modules and other people's that a source imports outside of functions."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    ours = {name for name in found if name.startswith("course_utils")}
    return ours, {name.partition(".")[0] for name in found - ours}


def test_no_notebook_loads_what_a_hosted_kernel_is_not_given():
    ours, theirs = set(), set()
    for path in notebooks.everything():
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                one, other = imported(re.sub(r"^[%!].*$", "", cell.source, flags=re.M))
                ours, theirs = ours | one, theirs | other
    loaded = theirs | loaded_with(ours)
    assert {"torch", "captum", "nbclient", "yaml"} <= loaded
    assert loaded & {name.replace("-", "_") for name in hosted.NOT_FOR_NOTEBOOKS} == set()


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """A kernel whose course is in a folder of its own; returns the list of pip's command lines, and nothing is installed."""
    lines = []
    monkeypatch.setattr(hosted, "ROOT", tmp_path)
    monkeypatch.setattr(hosted, "_other_torch", lambda: "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(hosted.HOSTED_AT, "")
    monkeypatch.setattr(hosted.subprocess, "run", lambda line, **_: lines.append(line) or SimpleNamespace(
        returncode=int("captum~=9" in line), stderr="a\nno captum 9\n"))
    return lines


def test_a_kernel_is_made_ready_in_the_folder_of_the_copies(kernel, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(hosted, "lacking", lambda: ["captum~=0.9.0", "seaborn"])
    hosted.prepare(COURSE)
    assert capsys.readouterr().out == (f"The course is here: version {course_utils.__version__}; installed captum, seaborn "
                                       "(0 s).\n")
    assert kernel[0][-2:] == ["captum~=0.9.0", "seaborn"]
    assert hosted.os.getcwd() == str(tmp_path / "notebooks" / "my_copies")
    assert hosted.hosted_link("04_attention.ipynb") == f'href="{COLAB}/04_attention.ipynb" target="_blank"'


def test_a_package_that_cannot_be_installed_is_named_with_pip_s_words(kernel, monkeypatch):
    monkeypatch.setattr(hosted, "lacking", lambda: ["captum~=9"])
    with pytest.raises(RuntimeError, match="^captum couldn't be installed: no captum 9\nRun this cell again"):
        hosted.prepare(COURSE)


def test_start_s_map_leads_to_other_copies_in_colab_and_to_files_at_home(monkeypatch):
    assert 'href="04_attention.ipynb"' in start.course_map().html
    monkeypatch.setenv(hosted.HOSTED_AT, COURSE)
    links = re.findall(r'href="([^"]+)" target="_blank"', start.course_map().html)
    assert set(links) == {launch_links(path, COURSE)["Colab"] for path in
                          [*notebooks.find(["hour"]), *notebooks.find([]), *notebooks.extras()]}
    monkeypatch.setenv(hosted.HOSTED_AT, "https://gitlab.com/a/b")
    assert 'href="04_attention.ipynb"' in start.course_map().html
