"""The checks of a built site would find what is wrong: on a small site with one of each fault."""

from site_pages import all_pages, double_ids, own_weight, read_page, wrong_links, wrong_styles

GOOD = ('<html><a href="sub/b.html#there">b</a> <a href="#here">up</a> <a href="https://example.org/x">out</a>'
        '<link rel="canonical" href="https://example.org/a"><img src="a%20b.png" srcset="a%20b.png 1x"><p id="here">')


def write(folder, **files):
    """A site in `folder`: pages by name, an underscore for a folder's slash."""
    for name, text in files.items():
        path = folder / (name.replace("_", "/") + ".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "a b.png").write_bytes(b"1234")
    return folder


def faults(folder, page):
    read_page.cache_clear()
    write(folder, a=page, sub_b='<p id="there">')
    return [line.rpartition(": ")[2] for line in wrong_links(folder, [folder / "a.html"])]


def test_right_links_are_right(tmp_path):
    assert faults(tmp_path / "site", GOOD) == []


def test_each_wrong_link_is_found(tmp_path):
    (tmp_path / "outside.html").write_text("", encoding="utf-8")
    assert faults(tmp_path / "site", '<a href="c.html">') == ["there is no such file"]
    assert faults(tmp_path / "site", '<a href="sub/b.html#nowhere">') == ["the page has no such anchor"]
    assert faults(tmp_path / "site", '<a href="sub/">') == ["is a folder; from a disk a browser would list it"]
    assert faults(tmp_path / "site", '<a href="../outside.html">') == ["leads out of the site"]
    assert faults(tmp_path / "site", '<a href="/a.html">') == ["is no relative address"]
    for fetched in ('<script src="https://example.org/x.js">', '<img src="//example.org/x.png">',
                    '<link rel="stylesheet" href="https://example.org/x.css">', '<img srcset="https://example.org/x 2x">'):
        assert faults(tmp_path / "site", fetched) == ["is fetched from a network"]


def test_style_sheets_are_read_too(tmp_path):
    sheet = tmp_path / "_static" / "x.css"
    sheet.parent.mkdir()
    (tmp_path / "font.woff2").write_bytes(b"")
    sheet.write_text("a { src: url('../font.woff2?v=1') url(data:x) url(#id) }", encoding="utf-8")
    assert wrong_styles(tmp_path) == []
    sheet.write_text("a { src: url(gone.woff2) } b { src: url(https://example.org/f) }", encoding="utf-8")
    assert len(wrong_styles(tmp_path)) == 2


def test_ids_that_are_there_twice_and_the_weight_of_a_page(tmp_path):
    write(tmp_path, a='<p id="x"><p id="x"><p id="y"><img src="a%20b.png"><img src="a%20b.png"><img src="_static/s.png">')
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "s.png").write_bytes(b"12345678")
    (tmp_path / "_static" / "part.html").write_text("", encoding="utf-8")
    page = tmp_path / "a.html"
    assert double_ids(page) == ["x"] and all_pages(tmp_path) == [page]
    assert own_weight(tmp_path, page) == (page.stat().st_size + 4, 8)
