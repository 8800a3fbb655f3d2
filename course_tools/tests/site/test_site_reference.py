"""The reference's sources: its pages, the docstrings in them, and the links between it and the notebooks."""

import ast
import json
import re

import pytest

from course_tools.notebooks.export import exported_cells, read_modules
from course_tools.site import reference
from course_tools.site.corrections import corrected
from course_tools.site.docstrings import to_rst
from course_utils.files.paths import NOTEBOOKS, ROOT

LINKS = {"causal_mask": "course_utils.attention.causal_mask", "weights": "course_utils.somewhere.weights"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The pages' sources by name, as they're written."""
    folder = tmp_path_factory.mktemp("sources")
    assert reference.write_pages(folder) == ["reference/index"]
    return {path.stem: path.read_text(encoding="utf-8") for path in (folder / "reference").glob("*.rst")}


def listed(source: str) -> list[str]:
    """The names in a module's `__all__`."""
    return next(ast.literal_eval(node.value) for node in ast.parse(source).body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")


def test_every_exported_name_is_on_the_page_of_its_module(sources):
    pages = 0
    for module, source in read_modules(NOTEBOOKS).items():
        if "." in module:
            continue                                      # offered by its package
        pages += 1
        for name in listed(source):
            assert re.search(rf"^\.\. (autofunction|autoclass|py:data):: {name}$", sources[module], re.M), (module, name)
    assert pages >= 9


def test_every_public_name_of_a_room_of_helpers_is_somewhere(sources):
    names = {entry.name for entry in reference.everything()}
    for room in ("data", "figures", "heatmaps", "interactive", "training", "exercises"):
        source = (ROOT / "course_utils" / room / "__init__.py").read_text(encoding="utf-8")
        assert set(listed(source)) <= names, room
    assert {"claim", "naive_bayes", "trained_model", "read_runs"} <= names
    assert all(f"autofunction:: {name}" in sources["claims"] for name in ("claim", "live_seed"))


def test_what_a_room_takes_over_from_another_is_on_one_page_only(sources):
    assert "autofunction:: save_figure" in sources["figures"] and "save_figure" not in sources["heatmaps"]
    full = [entry.full for entry in reference.everything()]
    assert len(full) == len(set(full))


def test_the_modules_are_listed_in_teaching_order(sources):
    index = sources["index"].partition("What the course brings along")[0]
    built = re.findall(r"^- :doc:`(\w+) <\1>`: .* Built in :doc:`(\d\d\w? |Extra: )", index, re.M)
    assert [number for _, number in built] == sorted(number for _, number in built)  # extras come last
    assert [module for module, _ in built] == list(reference.taught()) and len(built) >= 9


def test_what_the_learner_writes_by_hand_is_in_the_reference_too(sources):
    """A module whose notebook doesn't export it, such as 04's, names its section in its docstrings."""
    for module in ("tokenization", "byte_pairs", "embeddings", "attention", "multi_head_attention", "positional_encoding",
                   "transformer_blocks", "classifier", "attention_maps", "explain", "language_model"):
        assert module in reference.taught() and f"automodule:: course_utils.{module}" in sources[module], module


def test_a_constant_says_its_value_and_where_it_is_taught(sources):
    constants = [entry for entries in reference.taught().values() for entry in entries
                 if entry.kind == "data" and entry.value and entry.notebook]
    for entry in constants:
        about = sources[entry.module].partition(f".. py:data:: {entry.name}\n")[2].partition(".. auto")[0]
        assert ":value: " in about and "*Taught in* :ref:`" in about, entry.full
    assert constants


@pytest.mark.parametrize("notebook", sorted({cell.taught_in for cell in exported_cells(NOTEBOOKS)}))
def test_each_exported_cell_leads_to_the_reference_and_its_section_has_the_label_that_leads_back(notebook):
    cells = [{**cell, "source": "".join(cell["source"])} for cell in _cells(notebook)]
    made = reference.linked(notebook, cells)
    labels = [name for cell in made for name in re.findall(r"^\(([\w-]+)\)=\n## ", cell["source"], re.M)]
    assert len(labels) == len(set(labels)) >= 3
    entries = [entry for entry in reference.everything() if entry.notebook == notebook]
    assert entries and {reference.label(notebook, entry.section) for entry in entries} <= set(labels)
    after = [made[i + 1]["source"] for i, cell in enumerate(made) if cell["source"].startswith("#| export ")]
    linked = set(re.findall(r"\{py:obj\}`\w+ <([\w.]+)>`", "".join(after)))
    assert linked == {entry.full for entry in entries}
    assert all("In the reference: {py:" in line for line in after)
    unchanged = [cell for cell in made if "In the reference: {py:" not in cell["source"]]
    assert [re.sub(r"^\([\w-]+\)=\n", "", cell["source"], flags=re.M) for cell in unchanged] == [c["source"] for c in cells]


def _cells(notebook: str) -> list[dict]:
    return json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("plain, rst", [
    ("Weights (batch, heads, query, key), or (token,).", "Weights ``(batch, heads, query, key)``, or ``(token,)``."),
    ("query (..., query, d_k) and more", "``query`` ``(..., query, d_k)`` and more"),
    ("See `causal_mask`, not `other`.", "See :py:obj:`causal_mask <course_utils.attention.causal_mask>`, not ``other``."),
    ("The argument `weights` isn't linked.", "The argument ``weights`` isn't linked."),
    ("plain_text/*.parquet | a_ b `", "plain_text/\\*.parquet \\| a\\_ b \\`"),
    ("Raises ValueError for NaN.", "Raises ``ValueError`` for NaN."),
    ("With COURSE_STYLE=present it's larger.", "With ``COURSE_STYLE=present`` it's larger."),
    ("(see `x`) and (a list of words, and more)", "(see ``x``) and (a list of words, and more)"),
    ("`(batch,)`s", "``(batch,)``\\ s"),
    ("of seq_len(s), not plain_text/x; f_x(a, ...)", "of seq_len(s), not plain_text/x; ``f_x(a, ...)``"),
    ("num_layers=1, f(a, num_layers=1)", "num_layers=1, ``f(a, num_layers=1)``"),
    ("`a`=1 and x`b`", "``a``\\ =1 and x\\ ``b``"),
    ('stay straight: "mps"', 'stay straight: \\"mps\\"'),
    ("- not a list", "\\- not a list"),
    ("Does: this. Does not: that.", "**Does:** this. **Does not:** that."),
    ("Two lines\nof one paragraph.\n\nAnother.", "Two lines of one paragraph.\n\nAnother."),
])
def test_a_docstring_in_plain_text(plain, rst):
    assert to_rst(plain, LINKS, own=["weights", "query"]) == f"{rst}\n"


def test_an_example_stays_as_it_is():
    assert to_rst("Look:\n\n    plot(a, b)      # *all*\n      more\n\nEnd.") == (
        "Look:\n\n::\n\n    plot(a, b)      # *all*\n      more\n\nEnd.\n")


def test_code_and_words_in_two_columns_become_a_list():
    text = "fit takes\n\n    f(x, y)    what it does, and\n               more (batch,)\n    g(x)       less"
    assert to_rst(text) == "fit takes\n\n- ``f(x, y)``: what it does, and more ``(batch,)``\n- ``g(x)``: less\n"
    commented = "    a = f(x)    # words\n    bb = g(x)   # more"
    assert to_rst(commented).startswith("::\n\n    a = f(x)    # words")


def test_arguments_become_a_list_and_a_list_in_a_list():
    text = ('Args:\n    tokens: (token,) words,\n        or one string.\n    a, b: two.\n\n'
            'source: one of\n    "reviews": the course\'s\n        own.\n    a path: a file.\ntimeout: seconds.')
    assert to_rst(text) == (
        "**Arguments**\n\n- ``tokens``: ``(token,)`` words, or one string.\n- ``a``, ``b``: two.\n\n"
        "- ``source``: one of\n\n  - ``\"reviews\"``: the course's own.\n  - *a path*: a file.\n\n- ``timeout``: seconds.\n")


def test_a_docstring_says_where_a_thing_is_taught_and_not_where_its_module_comes_from():
    lines = ["What it does.", "", "Taught in 04_attention, '8. The function'.", ""]
    reference._docstring(None, "function", "course_utils.attention.f", len, None, lines)
    assert "\n".join(lines).rstrip() == (
        "What it does.\n\n*Taught in* :ref:`04 Attention, section 8: The function <taught-04-8-the-function>`.")
    lines = ["A module.", "", "Exported from notebooks/04_attention.ipynb: edit it there."]
    reference._docstring(None, "module", "course_utils.attention", ast, None, lines)
    assert "\n".join(lines).strip() == "A module."


@pytest.mark.parametrize("written, correct", [
    ('<pre>a<div class="b">c</div></pre><div></div>', '<pre>a<span class="b">c</span></pre><div></div>'),
    ('<th valign="top" rowspan="2">', '<th rowspan="2">'),
    ('<p>valign="top"</p>', '<p>valign="top"</p>'),
    ("<ul><li>a</li>\n<ul><li>b</li>\n</ul><li>c</li></ul>", "<ul><li>a\n<ul><li>b</li>\n</ul></li>\n<li>c</li></ul>"),
    ("<dl>\n<dd>a</dd>\n</dl>", '<span class="parameters">\n<span class="parameter">a</span>\n</span>'),
    ('<a class="reference internal" href="x">04 A</a><details><summary><i></i></summary>',
     '<a class="reference internal" href="x">04 A</a><details><summary aria-label="Pages below 04 A"><i></i></summary>'),
    ('<head></head><div class="output text_html"><style>a{}</style>\n<p>', '<head><style>a{}</style></head>'
                                                                          '<div class="output text_html"><p>'),
    ('<button title="Color mode">', '<button title="Colour mode">'),
])
def test_a_finished_page_is_corrected(written, correct):
    assert corrected(written) == correct
