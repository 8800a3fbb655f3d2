"""The buttons that open a page's notebook without installing anything, in the theme's own menu.

Does: name them for each page that is a notebook, where the repository's address is known. Does not: make the links (see
`course_utils.copies.hosted`).
"""

from __future__ import annotations

from course_tools.site import pages
from course_utils.copies.hosted import launch_links
from course_utils.files.paths import NOTEBOOKS

ICONS = {"Binder": "_static/images/logo_binder.svg", "Colab": "_static/images/logo_colab.png",
         "Codespaces": "fab fa-github"}


def menu(name: str, address: str) -> dict | None:
    """The menu of the page `name`, as sphinx-book-theme takes it; None for pages of text, and without an address."""
    notebook = {page.name: page.source for page in pages.all_pages() if page.source.suffix == ".ipynb"}.get(name)
    if notebook is None or not address:
        return None
    links = launch_links(notebook.relative_to(NOTEBOOKS), address)
    buttons = [{"type": "link", "text": where, "url": link, "icon": ICONS[where],
                "tooltip": f"Open it in {where}, without installing anything"} for where, link in links.items()]
    return {"type": "group", "label": "launch-buttons", "icon": "fas fa-rocket", "buttons": buttons,
            "tooltip": "Open this notebook without installing anything"}


def add_menu(app, name: str, template: str, context: dict, doctree) -> None:
    """Called by Sphinx for each page, after the theme has made its own buttons; `launch_address` is a setting."""
    found = menu(name, app.config.launch_address)
    if found:
        context.setdefault("header_buttons", []).insert(0, found)
