"""What the site asks of Sphinx: its settings, formulas without scripts, the order of the pages.

Does: configure Sphinx and MyST-NB, and correct what they leave on a page that a checker or a reader would stumble over.
Does not: prepare the pages. Sphinx loads this module as an extension.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from course_tools.site import launch, mathematics, pages, reference
from course_tools.site.corrections import corrected
from course_tools.site.prepare import BESIDE
from course_utils.files import write_text

TITLE = "Attention from the Ground Up"
DESCRIPTION = ("A course in notebooks: a text classifier that understands a sentence through attention alone, "
               "built from raw text upwards in plain PyTorch.")

FOLDED = re.compile(r'<details class="[^"]*\babove-input">\s*<summary aria-label="[^"]*">\s*<p class="[^"]*">(.*?)</p>'
                    r".*?</summary>", re.S)                # MyST-NB's, with paragraphs where HTML allows none


def settings(source: Path, version: str, address: str = "") -> dict:
    """Sphinx's settings for a site made from the folder `source`; `address`: the repository's, '' if unknown."""
    static = resources.files(__package__) / "static"
    scorer = str(resources.files(__package__) / "search.js")
    return {
        "project": TITLE, "html_title": TITLE, "version": version, "release": version, "language": "en", "copyright": "",
        "html_show_copyright": False, "html_show_sphinx": False, "html_show_sourcelink": False, "html_copy_source": False,
        "extensions": ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", __name__],
        "root_doc": pages.HOME, "exclude_patterns": [BESIDE, ".made"], "html_theme": "sphinx_book_theme",
        "html_static_path": [str(static)], "html_extra_path": [str(source / BESIDE)],
        "html_favicon": str(static / "favicon.svg"), "html_css_files": ["mathematics.css", "site.css", "reference.css"],
        "html_js_files": ["site.js"], "html_math_renderer": "mathml", "html_search_scorer": scorer,
        "html_last_updated_fmt": None,
        "html_show_search_summary": False,                # from a disk a browser fetches no other page
        "html_theme_options": {
            "use_download_button": False, "use_fullscreen_button": False, "show_navbar_depth": 1, "max_navbar_depth": 2,
            "home_page_in_toc": True, "show_toc_level": 1, "toc_title": "On this page", "navbar_persistent": [],
            "pygments_light_style": "a11y-high-contrast-light", "pygments_dark_style": "a11y-high-contrast-dark",
            "footer_content_items": [],
        },
        "html_context": {"default_mode": "auto"},
        "highlight_language": "none", "nb_execution_mode": "off", "nb_merge_streams": True, "nb_ipywidgets_js": {},
        "myst_enable_extensions": ["dollarmath"], "myst_heading_anchors": 4, "myst_update_mathjax": False,
        "myst_heading_slug_func": "course_tools.site.links.slug", "myst_links_external_new_tab": False,
        "myst_ref_domains": ["std"], "html_domain_indices": False,
        "add_module_names": False, "maximum_signature_line_length": 80, "autodoc_inherit_docstrings": False,
        "autodoc_preserve_defaults": True,
        "launch_address": address, "suppress_warnings": ["config.cache"],
    }


def setup(app) -> dict:
    """Called by Sphinx when it loads the extension."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    reference.setup(app)
    app.add_config_value("launch_address", "", "html", str)
    app.connect("html-page-context", _page)
    app.connect("html-page-context", launch.add_menu, priority=900)             # after the theme's
    app.connect("build-finished", _correct)
    app.connect("build-finished", _write_mathematics)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer, node) -> None:
    from docutils import nodes

    writer.body.append(mathematics.mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer, node) -> None:
    from docutils import nodes

    writer.body.append(f'<div class="formula">{mathematics.mathml(node.astext(), display=True)}</div>\n')
    raise nodes.SkipNode


def _page(app, name: str, template: str, context: dict, doctree) -> None:
    """The neighbours of the pages in the main line, and a body without labels that hide what a summary says."""
    context["metatags"] = context.get("metatags", "") + f'\n<meta name="description" content="{DESCRIPTION}">'
    if "body" in context:
        context["body"] = FOLDED.sub(r'<details class="code">\n<summary>\1</summary>', context["body"])
    line = pages.main_line(pages.all_pages())
    if name not in line:
        return
    place = line.index(name)
    for key, near in (("prev", place - 1), ("next", place + 1)):
        if 0 <= near < len(line):
            title = app.env.titles[line[near]].astext()
            context[key] = {"link": app.builder.get_relative_uri(name, line[near]), "title": title}


def _correct(app, error) -> None:
    """Every page as correct HTML."""
    for path in [] if error else Path(app.outdir).rglob("*.html"):
        write_text(path, corrected(path.read_text(encoding="utf-8")))


def _write_mathematics(app, error) -> None:
    """The font of the formulas, cut down to the signs that they use, and its style sheet."""
    if error:
        return
    out = Path(app.outdir)
    texts = (path.read_text(encoding="utf-8") for path in out.rglob("*.html"))
    signs = {sign for text in texts for formula in re.findall(r"<math.*?</math>", text, re.S) for sign in formula}
    mathematics.write_font(out / "_static", "".join(sorted(signs)))
    write_text(out / "_static" / "mathematics.css", mathematics.STYLE)
