"""The notebooks that a page's 'Download' leads to."""

import re

import nbformat

from course_tools.notebooks.hosted_copies import hosted_copy
from course_tools.site.downloads import FOLDER, download_link, write_downloads
from course_tools.site.links import Links
from course_tools.site.pages import all_pages
from course_utils.files.paths import NOTEBOOKS

CHOSEN = [NOTEBOOKS / "04_attention.ipynb", NOTEBOOKS / "extras" / "near_and_far.ipynb", NOTEBOOKS / "START.ipynb"]


def test_with_an_address_a_download_is_the_copy_that_fetches_the_course(tmp_path):
    address, commit = "https://github.com/owner/course", "0123456789" * 4
    write_downloads(tmp_path, CHOSEN, address, commit)
    for path in CHOSEN:
        written = nbformat.read(tmp_path / FOLDER / path.relative_to(NOTEBOOKS), as_version=4)
        assert written.cells[0].source == hosted_copy(path, address, commit).cells[0].source


def test_without_an_address_it_is_the_copy_for_the_course_s_folder(tmp_path):
    write_downloads(tmp_path, CHOSEN)
    for path in CHOSEN:
        written = nbformat.read(tmp_path / FOLDER / path.relative_to(NOTEBOOKS), as_version=4)
        original = nbformat.read(path, as_version=4)
        assert [cell.id for cell in written.cells] == [cell.id for cell in original.cells]
        assert path.stem == "START" or not any(cell.get("outputs") for cell in written.cells)
    start = (tmp_path / FOLDER / "START.ipynb").read_text(encoding="utf-8")
    assert "](../../README.md)" in start and "](04_attention.ipynb)" in start        # from notebooks/my_copies


def test_each_notebook_s_page_leads_to_a_file_that_is_written(tmp_path):
    pages = [page for page in all_pages() if page.source.suffix == ".ipynb"]
    write_downloads(tmp_path, [page.source for page in pages])
    for page in pages:
        address = re.match('<a href="([^"]+)" download>', download_link(Links(page, {})))[1]
        assert (tmp_path / page.name).parent.joinpath(address).resolve().is_file(), page.name
