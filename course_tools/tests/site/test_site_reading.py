"""What makes pages readable at any width: lines that may wrap, figures at their own size, an order of what is found."""

import re
from html import unescape

from course_tools.site.corrections import COLUMNS, corrected, long_lines
from course_tools.site.extension import settings
from course_utils.figures.appearance import Sizes, style
from course_utils.files.paths import ROOT

LONG = '    <span class="n">total</span> <span class="o">=</span> ' + "x" * COLUMNS


def test_only_lines_that_are_too_long_may_wrap_and_the_text_stays():
    short = "a = 1\n" + "x &lt; y  # " + "y" * (COLUMNS - 10)                   # '&lt;' is one column
    assert long_lines(f"<pre><span></span>{short}</pre>") == f"<pre><span></span>{short}</pre>"
    pre = f"<pre><span></span>a = 1\n{LONG}\nb = 2\n</pre>"
    assert long_lines(pre) == (
        f'<pre><span></span>a = 1\n<span class="long" style="padding-left: 8ch; text-indent: -8ch">{LONG}\n</span>'
        "b = 2\n</pre>")
    assert re.sub("<[^>]*>", "", long_lines(pre)) == re.sub("<[^>]*>", "", pre)


def test_a_printed_sentence_may_wrap_on_a_phone_and_columns_may_not():
    sentence, columns = "✓ 'dull' and 'not dull': both positive with this head", "seed 1     0.25    0.31     0.44      0.12"
    assert 'class="long"' in long_lines(f"<pre>{sentence}</pre>", output=True)
    assert 'class="long"' not in long_lines(f"<pre>{columns}</pre>", output=True) + long_lines(f"<pre>{sentence}</pre>")


def test_signs_that_end_no_line_on_a_page_are_part_of_theirs():
    line = "\x1c\x0b\x85".join(["x" * 40] * 3)
    assert long_lines(f"<pre>{line}\n</pre>").startswith('<pre><span class="long"')


def test_a_line_in_which_something_longer_begins_stays_whole():
    line = f'<span class="viewcode-block" id="f"><a href="#">[docs]</a>{LONG}'
    assert long_lines(f"<pre>{line}\n</span></pre>") == f"<pre>{line}\n</span></pre>"


def test_a_page_tells_code_from_what_it_prints():
    words = "the lookup answers 0.00 in both of the cases"
    code = f'<div class="highlight"><pre><span></span>{words}</pre></div>'
    page = corrected(f'{code}<div class="output stream highlight-none">{code}</div>{code}')
    assert page.count('class="long"') == 1 and page.index("output stream") < page.index('class="long"')
    assert unescape(re.sub("<[^>]*>", "", page)) == 3 * words


def test_the_smallest_lettering_of_a_figure_at_its_own_size_can_be_read():
    assert Sizes().smallest * style()["figure.dpi"] / 72 >= 9


def test_the_search_has_an_order_of_its_own():
    scorer = settings(ROOT, "1")["html_search_scorer"]
    assert "var Scorer" in open(scorer, encoding="utf-8").read()
