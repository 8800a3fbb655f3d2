"""Text from the bytes of a file or of standard input, and text on a console that can't show every character.

    text = decoded(path.read_bytes(), str(path))
    text = standard_input()                             # the same in every locale
    print_on_any_console()                              # at the start of a command

Does: UTF-8 with or without a byte-order mark; refuse UTF-16 and other encodings in words; write '…' as '...' where a console
has no such character. Does not: guess an encoding.
"""

import codecs
import sys

__all__ = ["decoded", "print_on_any_console", "standard_input"]

MARK = "\ufeff"                                         # the byte-order mark, as a character
MARKS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32",      # before UTF-16's, which UTF-32's begins with
         codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
# a character that not every console has: what is printed there in its place
PLAIN = {"…": "...", "–": "-", "—": "-", "−": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "×": "x", "·": ".", "±": "+-",
         "→": "->", "≤": "<=", "≥": ">=", "≈": "~", "\u00a0": " ", "\u202f": " "}


def decoded(content: bytes, name: str, mend: str = "save the file again in that encoding") -> str:
    """The text of bytes in UTF-8, without a byte-order mark. Raises ValueError for others, with `name` and what to do."""
    found = next((kind for mark, kind in MARKS.items() if content.startswith(mark)), None)
    zeros = [byte == 0 for byte in content[:4]]
    if found or zeros in ([False, True] * 2, [True, False] * 2):
        first = content[:4].hex(" ")
        raise ValueError(f"{name}: got text in {found or 'UTF-16'} (its first bytes are {first}); expected text in UTF-8; "
                         f"{mend}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}: got the byte 0x{content[error.start]:02x} in line {line}; expected text in UTF-8; "
                         f"{mend}") from None


def standard_input() -> str:
    """All of standard input as text: UTF-8 or, where that isn't it, the encoding that this terminal has been set to.

    Byte-order marks at the beginnings of lines are left out: files that were joined have more than one. Raises ValueError
    for anything else, such as UTF-16, in every locale. In the locale C Python would let any bytes pass.
    """
    mend = "save it as UTF-8 (in PowerShell: Out-File -Encoding utf8)"
    stream = sys.stdin
    raw = getattr(stream, "buffer", None)               # a notebook's has none
    content = raw.read() if raw is not None else stream.read().encode("utf-8", "surrogatepass")
    try:
        text = decoded(content, "standard input", mend)
    except ValueError:
        own = codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name
        if own in ("utf-8", "ascii") or b"\0" in content or content.startswith(tuple(MARKS)):
            raise
        try:
            text = content.decode(own)
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input is in neither UTF-8 nor this terminal's encoding ({error}); {mend}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"standard input: got a zero byte in line {line}, as in UTF-16, or in a file that isn't text; "
                         f"expected text in UTF-8; {mend}")
    return "\n".join(line.lstrip(MARK) for line in text.split("\n"))


def print_on_any_console() -> None:
    """From here on, what this console's encoding lacks is printed in ASCII: '…' as '...', 'é' as '\\xe9'."""
    codecs.register_error("course", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):              # a notebook's hasn't, nor has a program without a console
            stream.reconfigure(errors="course")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode() for one in lost), error.end
