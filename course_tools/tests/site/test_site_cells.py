"""A notebook's cells as they're read on the site: what is folded, hidden until it's asked for, or left out."""

import base64
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from course_tools.site.cells import fold, page_cells, page_text
from course_tools.site.facts import under_title, what_goes_with
from course_tools.site.links import Links
from course_tools.site.pages import Page, all_pages, page_names
from course_tools.site.pictures import svg_size
from course_utils.files.paths import NOTEBOOKS

PAGE = Page(NOTEBOOKS / "04_attention.ipynb", "04_attention", "04 Attention", "")


def text(source):
    return {"cell_type": "markdown", "id": "a", "metadata": {}, "source": source}


def code(source, *outputs, **metadata):
    return {"cell_type": "code", "id": "b", "metadata": metadata, "source": source, "outputs": list(outputs)}


def printed(words):
    return {"output_type": "stream", "name": "stdout", "text": words}


def html(words):
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": words, "text/plain": ""}}


@pytest.fixture
def made(tmp_path):
    """made(cells): the page's cells; its pictures are in tmp_path."""
    return lambda *cells: page_cells(list(cells), Links(PAGE, page_names()), tmp_path)


def sources(cells):
    return [cell["source"] for cell in cells]


def test_a_prediction_hides_what_gives_it_away_and_no_more(made):
    cells = made(text("A. **Try it first.** How many?"),
                 code('# how many?\nguess = predict("n", None)', printed("○ no prediction yet\n")),
                 code("found = 3"), code("guess.compare(found)", printed("measured: 3\n")), code("print(found)"),
                 text("It's three."), text("Next."), code("more()"))
    assert sources(cells)[1:] == ['<details class="reveal"><summary>Show what happens</summary>', "found = 3",
                                  "guess.compare(found)", "print(found)", "It's three.", "</details>", "Next.", "more()"]
    assert cells[0]["source"].endswith('<div class="try-first">\n\n**Try it first.** How many?\n\n</div>')
    assert cells[3]["outputs"][0]["text"] == "measured: 3\n"


@pytest.mark.parametrize("stop", [text("## 3. Next"), text("**Try it first.** Again?"), code("...", tags=["exercise"])])
def test_what_a_prediction_hides_ends_before(made, stop):
    cells = made(code('guess = predict("n", None)'), code("guess.compare(3)"), stop)
    assert sources(cells)[1:3] == ["guess.compare(3)", "</details>"]


def test_a_prediction_without_a_comparison_hides_nothing(made):
    assert sources(made(code('guess = predict("n", None)'), text("Words"), code("f()"))) == ["Words", "f()"]


def test_an_exercise_shows_its_stub_and_where_it_is_done_but_no_verdict(made):
    stub, where = made(code("def f(): ...\nexercise('4.1').check(f)", printed("○ 4.1: not tried yet.\n"), tags=["exercise"]))
    assert stub["outputs"] == [] and 'href="readme.html"' in where["source"]


def test_verdicts_on_what_nobody_has_tried_are_left_out_and_the_rest_of_a_print_is_kept(made):
    one, = made(code("f()", printed("○ nothing yet\n3 words\n")))
    assert one["outputs"][0]["text"] == "3 words\n"
    assert made(code("progress()", printed("○ nothing solved yet\n"))) == []


def test_the_time_and_what_goes_with_a_page_are_under_its_title():
    source = under_title("# 04 Attention\n\nWords.\n\n**Time** about 50 minutes.\n", ["<a>Slides</a>"])
    assert source.startswith('# 04 Attention\n\n<div class="facts">\n\nAbout 50 minutes · <a>Slides</a>\n\n</div>\n')
    assert "**Time**" not in source
    assert under_title("# Results\n\nWords.", []) == "# Results\n\nWords."


def test_a_page_links_to_its_file_and_to_its_slides_if_there_are_any(tmp_path):
    links = Links(PAGE, page_names())
    download, = what_goes_with(links, None)
    assert download == ('<a href="downloads/04_attention.ipynb" download>Download</a> '
                        '(runs in <a href="readme.html">the course\'s folder</a>)')
    assert what_goes_with(links, tmp_path) == [download]
    (tmp_path / "04_attention.html").write_text("")
    assert what_goes_with(links, tmp_path) == [download, '<a href="slides/04_attention.html">Slides</a>']


def test_where_the_address_is_known_a_page_opens_its_notebook_elsewhere_too():
    opened, download = what_goes_with(Links(PAGE, page_names(), "https://github.com/owner/course"), None)
    assert opened == ('Open in <a href="https://colab.research.google.com/github/owner/course/blob/hosted/04_attention.ipynb">'
                      'Colab</a> or <a href="https://mybinder.org/v2/gh/owner/course/main?urlpath=lab/tree/notebooks/'
                      'my_copies/04_attention.ipynb">Binder</a>')
    assert download.endswith("(its first cell fetches the course)")
    assert what_goes_with(Links(PAGE, page_names(), "https://gitlab.com/owner/course"), None)[0].startswith(
        'Open in <a href="https://mybinder.org/v2/gl/')


def test_the_home_page_says_that_one_can_run_the_course(tmp_path):
    (tmp_path / "index.html").write_text("")
    home = next(page for page in all_pages() if page.name == "index")
    said, download, slides = what_goes_with(Links(home, {}), tmp_path)
    assert '<a href="readme.html">run the course yourself</a>' in said and 'href="downloads/START.ipynb"' in download


def test_a_call_that_only_shows_a_quiz_or_the_map_is_left_out_and_what_it_shows_stays(made):
    one, = made(code('quiz("04")', html("<p>1.</p>")))
    assert one["metadata"] == {"tags": ["remove-input"]} and one["outputs"]
    assert made(code('quiz("04").answer(1, "a")'))[0]["metadata"] == {}


def test_code_is_folded_where_it_is_not_the_point():
    long = "\n".join(f"x{i} = {i}" for i in range(40))
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": ""}}
    assert fold(code("import torch\nfrom torch import nn\nfrom a import (b,\n    c)\n\nuse_style()")) == "Code: imports"
    assert fold(code(long)) == "Code (40 lines)"
    assert fold(code(f"def f():\n    pass\n\ndef _g(): ...\n{long}")) == "Code: f (43 lines)"
    assert fold(code(f"#| export attention\n{long}")) == fold(code(long, tags=["exercise"])) == ""
    assert fold(code("\n".join(["plot()"] * 12), picture)) == "Code that draws this figure"
    assert fold(code("plot()", picture)) == fold(code("x = 1\nprint(x)\ny = 2\nf(y)")) == ""
    assert fold(code("# the live classifier: click here to see it\nf()", jupyter={"source_hidden": True})) == \
        "Code: the live classifier"


def test_a_number_stays_with_its_interval_and_its_sign():
    assert page_text("| 50.0 ± 2.2 | 95 % |", Links(PAGE, {})) == "| 50.0\u00a0±\u00a02.2 | 95\u00a0% |"


def test_a_picture_is_a_file_with_its_size_and_its_words(made, tmp_path):
    drawn = BytesIO()
    Image.new("RGB", (30, 20)).save(drawn, "png")
    picture = {"output_type": "display_data", "metadata": {"image/png": {"alt": 'says "two" & <three>'}},
               "data": {"image/png": base64.b64encode(drawn.getvalue()).decode()}}
    shown = made(code("draw()", picture))[0]["outputs"][0]["data"]["text/html"]
    assert 'alt="says &quot;two&quot; &amp; &lt;three&gt;" width="30" height="20" loading="lazy"' in shown
    address = shown.partition('src="')[2].partition('"')[0]
    assert (tmp_path / address).read_bytes() == drawn.getvalue()


def test_an_interactive_figure_keeps_its_script_and_its_still_picture_is_a_file(made, tmp_path):
    still = base64.b64encode(b'<svg width="90pt" height="60pt"></svg>').decode()
    piece = ('<div class="course-piece" data-piece="a"><img alt="A &#x27;b&#x27;" '
             f'src="data:image/svg+xml;base64,{still}" style="max-width:100%"></div>\n<script>start()</script>')
    shown = made(code("view()", html(piece)))[0]["outputs"][0]["data"]["text/html"]
    assert "base64" not in shown and "<script>start()</script>" in shown
    assert shown.count('width="120" height="80"') == 2 and shown.count('class="printed"') == 1
    assert [path.suffix for path in (tmp_path / "pictures").iterdir()] == [".svg"]


def test_a_table_of_numbers_scrolls_inside_itself(made):
    table = ('<div>\n<style scoped>\n.dataframe {}\n</style>\n<table border="1" class="dataframe"><thead>'
             '<tr style="text-align: right;"></tr></thead></table></div>')
    shown = made(code("table", html(table)))[0]["outputs"][0]["data"]["text/html"]
    assert shown.startswith('<div class="numbers" tabindex="0"') and "style" not in shown and "border" not in shown


def test_an_svg_has_the_size_that_it_states():
    assert svg_size('<svg width="72pt" height="36pt">') == (96, 48)
    assert svg_size('<svg viewBox="0 0 640 200">') == (640, 200)
    with pytest.raises(ValueError, match="neither a width"):
        svg_size("<svg>")


def test_every_picture_that_a_text_shows_has_a_size():
    links = {page: Links(page, page_names()) for page in all_pages() if page.source.suffix == ".md"}
    shown = [page_text(page.source.read_text(encoding="utf-8"), one) for page, one in links.items()]
    assert sum(text.count("<img ") for text in shown) > 10 and any(".gif" in text for text in shown)


def test_every_page_of_the_course_has_a_name_of_its_own():
    names = [page.name for page in all_pages()]
    assert len(names) == len(set(names)) and names[0] == "index"
    assert {"04_attention", "extras/near_and_far", "gallery", "results", "readme"} <= set(names)
    assert all(Path(page.source).is_file() for page in all_pages())
