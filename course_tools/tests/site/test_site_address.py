"""The repository's address: how it's written, where it's found, and the links that are made from it."""

import subprocess

import pytest

from course_tools.site import address
from course_tools.site.address import as_https, current_commit, file_link, repository_address
from course_utils.copies.hosted import launch_links

COURSE = "https://github.com/owner/course"


@pytest.mark.parametrize("remote, expected", [
    ("https://github.com/owner/course.git", COURSE),
    ("git@github.com:owner/course.git", COURSE),
    ("ssh://git@github.com:22/owner/course.git", COURSE),
    ("https://somebody:secret@github.com/owner/course.git", COURSE),
    ("https://gitlab.com/group/sub-group/course.git", "https://gitlab.com/group/sub-group/course"),
    ("git@git.school.edu:maths/course.v2.git", "https://git.school.edu/maths/course.v2"),
])
def test_an_address_for_git_becomes_one_for_a_browser(remote, expected):
    assert as_https(remote) == expected


@pytest.mark.parametrize("remote", ["", "/srv/course.git", "C:\\courses\\course",
                                    "alias:owner/course", "http://localhost:3000/owner/course", "https://github.com/owner",
                                    ])
def test_a_folder_or_a_machine_without_a_public_name_is_no_address(remote):
    assert as_https(remote) is None


@pytest.fixture
def repository(tmp_path):
    """A repository whose pyproject.toml names no address, in a folder of its own."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "course"\n', encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(folder, *words):
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_the_remote_is_asked_last_and_the_project_s_own_page_first(repository):
    git(repository, "remote", "add", "origin", "git@gitlab.com:owner/course.git")
    assert repository_address(repository, {}) == "https://gitlab.com/owner/course"
    workflow = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "fork/course"}
    assert repository_address(repository, workflow) == "https://github.com/fork/course"
    with open(repository / "pyproject.toml", "a", encoding="utf-8") as file:
        file.write('[project.urls]\nRepository = "https://git.school.edu/maths/course"\n')
    assert repository_address(repository, workflow) == "https://git.school.edu/maths/course"


def test_a_course_unpacked_inside_another_repository_does_not_take_that_one_s_address(repository):
    git(repository, "remote", "add", "origin", "git@gitlab.com:owner/other.git")
    inside = repository / "course"
    inside.mkdir()
    (inside / "pyproject.toml").write_text("", encoding="utf-8")
    assert repository_address(inside, {}) is None


def test_without_git_there_is_no_address_and_no_commit(repository, monkeypatch):
    git(repository, "remote", "add", "origin", f"{COURSE}.git")
    monkeypatch.setenv("PATH", str(repository))
    assert repository_address(repository, {}) is None and current_commit(repository) == ""


def test_on_github_a_notebook_opens_in_three_places():
    assert launch_links("extras/vocabulary_size.ipynb", COURSE) == {
        "Binder": "https://mybinder.org/v2/gh/owner/course/main?urlpath="
                  "lab/tree/notebooks/my_copies/extras/vocabulary_size.ipynb",
        "Colab": "https://colab.research.google.com/github/owner/course/blob/hosted/extras/vocabulary_size.ipynb",
        "Codespaces": "https://codespaces.new/owner/course?quickstart=1",
    }


@pytest.mark.parametrize("there, provider", [
    ("https://gitlab.com/group/course", "gl/group%2Fcourse"),
    ("https://git.school.edu/maths/course", "git/https%3A%2F%2Fgit.school.edu%2Fmaths%2Fcourse"),
])
def test_elsewhere_only_binder_opens_it(there, provider):
    links = launch_links("04_attention.ipynb", there)
    assert links == {"Binder": f"https://mybinder.org/v2/{provider}/main?urlpath=lab/tree/notebooks/my_copies/04_attention.ipynb"}


def test_without_an_address_there_are_no_links(monkeypatch):
    monkeypatch.setattr(address, "repository_address", lambda: None)
    assert launch_links("04_attention.ipynb", None) == {} and file_link("README.md") is None
    monkeypatch.setattr(address, "repository_address", lambda: COURSE)
    assert set(launch_links("04_attention.ipynb", COURSE)) == {"Binder", "Colab", "Codespaces"}
    assert file_link("README.md") == f"{COURSE}/blob/main/README.md"


def test_a_file_is_shown_where_its_host_shows_files():
    assert file_link("data/reviews", COURSE) == f"{COURSE}/tree/main/data/reviews"
    assert file_link("data/a file.txt", COURSE) == f"{COURSE}/blob/main/data/a%20file.txt"
    assert file_link("README.md", "https://gitlab.com/a/b") == "https://gitlab.com/a/b/-/blob/main/README.md"
    assert file_link("README.md", "https://git.school.edu/a/b") == "https://git.school.edu/a/b"
    assert file_link("", COURSE) == COURSE
