"""Formulas in plain HTML, without a library: for pages that are printed.

Does: fractions with a bar, roots with a bar, and their style. Does not: lay out a page.
"""

STYLE = """
.fraction { display: inline-block; vertical-align: middle; text-align: center; }
.fraction > span { display: block; padding: 0.5mm 1mm; line-height: 1.45; }
.fraction > .top { border-bottom: 0.8pt solid #000; }
.over { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.root { border-top: 0.8pt solid #000; padding: 0.3mm 0.5mm 0; }
sub, sup { line-height: 0; }
sub { vertical-align: -0.25em; }
sup { vertical-align: 0.4em; }
"""


def fraction(top: str, bottom: str) -> str:
    """A fraction with a bar; a screen reader says 'top / bottom'."""
    return (f'<span class="fraction"><span class="top">{top}</span><span class="over">/</span>'
            f"<span>{bottom}</span></span>")


def root(inside: str) -> str:
    """A square root with its bar."""
    return f'√<span class="root">{inside}</span>'
