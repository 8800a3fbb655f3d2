"""What an editor suggests without a model: the words of the file that begin with what has been typed.

Does: rank the names before the cursor, the nearest or the most frequent first, then Python's own words. Does not: parse
the file, know what a name means, or read other files.
"""

import keyword
import re
from collections import Counter

from course_utils.options import check_options, one_of

__all__ = ["ORDERS", "words_in_file"]

ORDERS = ("nearest", "most frequent")
NAME = re.compile(r"(?<!\w)[^\W\d]\w*")
# Python 3.11's, without those that a session or `site` adds: written out, so that every Python suggests the same
BUILTINS = """
ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError BufferError
BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError
DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup FileExistsError
FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError
IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError
NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError PendingDeprecationWarning
PermissionError ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning
StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError
UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning
ValueError Warning ZeroDivisionError abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr
classmethod compile complex delattr dict dir divmod enumerate eval exec filter float format frozenset getattr globals
hasattr hash help hex id input int isinstance issubclass iter len list locals map max memoryview min next object oct open
ord pow print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip
""".split()
PYTHONS_WORDS = [*sorted(keyword.kwlist), *BUILTINS]


def words_in_file(text: str, prefix: str | None = None, order: str = "nearest") -> list[str]:
    """The words of `text`, the file up to the cursor, that begin with `prefix`, the best first and each once.

    `prefix` is what has been typed of the word, the end of `text`; None finds it there. Words in comments and strings
    count, as in an editor. `order` is 'nearest' (last used first) or 'most frequent' (of equally frequent ones, the
    nearest first). After them come the keywords, then the built-in names, each alphabetically. The prefix itself is no
    suggestion. Raises ValueError for another order, and for a text that doesn't end with the prefix.
    """
    check_options({"order": order}, {"order": one_of(*ORDERS)})
    if prefix is None:
        begun = re.search(rf"{NAME.pattern}\Z", text)
        prefix = begun[0] if begun else ""
    if not text.endswith(prefix):
        raise ValueError(f"the text ends with {text[-len(prefix):]!r}, and the prefix is {prefix!r}; give the file up to "
                         "the cursor, with what has been typed of the word")
    words = [word for word in NAME.findall(text)[::-1] if word.startswith(prefix)]
    if order == "most frequent":
        words = [word for word, _ in Counter(words).most_common()]         # equal ones stay in their order
    suggested = dict.fromkeys([*words, *(word for word in PYTHONS_WORDS if word.startswith(prefix))])
    suggested.pop(prefix, None)
    return list(suggested)
