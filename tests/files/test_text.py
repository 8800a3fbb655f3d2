"""Text from bytes: marks, other encodings, standard input in any locale, consoles without some characters."""

import codecs
import io
import sys

import pytest

from course_utils.files.text import decoded, print_on_any_console, standard_input

TEXT = "Two cafés.\nA dog…\n"


def given(content: bytes, monkeypatch, encoding="utf-8", errors="strict"):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding=encoding, errors=errors))


@pytest.mark.parametrize("content", [TEXT.encode(), TEXT.encode("utf-8-sig")])
def test_utf8_is_read_with_and_without_a_mark(content):
    assert decoded(content, "a.txt") == TEXT


@pytest.mark.parametrize("encoding, found", [
    ("utf-16", "got text in UTF-16"), ("utf-16-le", "got text in UTF-16"), ("utf-16-be", "got text in UTF-16"),
    ("utf-32", "got text in UTF-32"), ("latin-1", "got the byte 0xe9 in line 1"), ("cp1252", "got the byte 0xe9 in line 1"),
])
def test_other_encodings_are_refused_with_the_name_and_what_to_do(encoding, found):
    content = TEXT.replace("…", "").encode(encoding)
    with pytest.raises(ValueError, match=f"^a.txt: {found}.*; expected text in UTF-8; save the file again"):
        decoded(content, "a.txt")


LOCALES = [("utf-8", "strict"), ("utf-8", "surrogateescape"), ("ascii", "surrogateescape"), ("cp1252", "strict"),
           ("cp437", "strict"), ("latin-1", "strict")]      # C.UTF-8, C, Windows


@pytest.mark.parametrize("encoding, errors", LOCALES)
@pytest.mark.parametrize("mark", ["", "\ufeff", "\ufeff\ufeff"])
def test_standard_input_in_utf8_is_the_same_text_in_every_locale(encoding, errors, mark, monkeypatch):
    given(f"{mark}Two cafés.\n{mark}A dog…\n".encode(), monkeypatch, encoding, errors)       # as two files joined
    assert standard_input() == TEXT


@pytest.mark.parametrize("encoding, errors", LOCALES)
@pytest.mark.parametrize("content", [
    TEXT.encode("utf-16"), TEXT.encode("utf-16-le"), TEXT.encode("utf-16-be"), TEXT.encode("utf-32"),
    codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), ("\n" + TEXT).encode("utf-16-le"), "…\ndog".encode("utf-16-le"),
    b"A dog.\n\0\0\0",
])
def test_standard_input_in_utf16_or_with_zero_bytes_is_refused_in_every_locale(content, encoding, errors, monkeypatch):
    given(content, monkeypatch, encoding, errors)
    with pytest.raises(ValueError, match="^standard input: got .*expected text in UTF-8; save it as UTF-8"):
        standard_input()


@pytest.mark.parametrize("encoding, errors", LOCALES[:3])
def test_latin_1_is_refused_where_the_terminal_is_not_set_to_it(encoding, errors, monkeypatch):
    given("A café.\n".encode("latin-1"), monkeypatch, encoding, errors)
    with pytest.raises(ValueError, match="got the byte 0xe9 in line 1; expected text in UTF-8"):
        standard_input()
    given("A café.\n".encode("latin-1"), monkeypatch, "latin-1")
    assert standard_input() == "A café.\n"


def test_standard_input_without_bytes_is_read_too(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeffA café.\n"))
    assert standard_input() == "A café.\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("A caf\udce9.\n"))        # what the locale C makes of Latin-1
    with pytest.raises(ValueError, match="expected text in UTF-8"):
        standard_input()


@pytest.mark.parametrize("encoding, printed", [
    ("utf-8", "½ …–’é 映"), ("cp1252", "½ …–’é \\u6620"), ("cp437", "½ ...-'é \\u6620"),
    ("ascii", "\\xbd ...-'\\xe9 \\u6620"),
])
def test_what_a_console_lacks_is_printed_in_ascii(encoding, printed, monkeypatch):
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    monkeypatch.setattr(sys, "stdout", console)
    monkeypatch.setattr(sys, "stderr", None)
    print_on_any_console()
    print("½ …–’é 映", end="", flush=True)
    assert console.buffer.getvalue().decode(encoding) == printed
