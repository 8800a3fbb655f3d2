"""Shapes in words: a tensor made with sizes that all differ says by itself which dimension is which.

Does: name the dimensions of a tensor, count parameters in letters, find the section that teaches a piece of code.
Does not: know any contents (see `cheat_sheet`).
"""

import json
from collections import Counter
from collections.abc import Iterable

from torch import Tensor, nn

from course_tools.notebooks import export
from course_utils.files.paths import NOTEBOOKS

SIZES = {"batch": 2, "heads": 3, "d_head": 4, "classes": 5, "query": 6, "key": 7, "token": 8, "seq_len": 9, "layers": 10,
         "max_len": 11, "d_model": 12, "d_ff": 13, "vocab_size": 14}
LETTERS = {"d_model": "*d*", "d_ff": "*d*_{ff}"}        # as in the notebooks' formulas
ORDER = ["vocab_size", "max_len", "classes", "d_model", "d_ff"]                 # of the factors of a product
NAMES = {size: name for name, size in SIZES.items()}
if len(NAMES) < len(SIZES) or 1 in NAMES:
    raise ValueError(f"the sizes must all differ, and be larger than 1: {SIZES}")


def names_of(tensor: Tensor) -> list[str]:
    """The names of a tensor's dimensions. Where a text attends to itself, the last two are 'query' and 'key'.

    Raises ValueError for a size that is none of SIZES: the tensor was made with another one.
    """
    if unknown := [size for size in tensor.shape if size not in NAMES and size != 1]:
        raise ValueError(f"a tensor has the shape {tuple(tensor.shape)}; expected 1 and the sizes in {SIZES}, not {unknown}")
    names = [NAMES.get(size, "1") for size in tensor.shape]
    return [*names[:-2], "query", "key"] if names[-2:] == ["seq_len", "seq_len"] else names


def shape_of(tensor: Tensor) -> str:
    """The shape in words: '(batch, heads, query, key)', '(token,)', and 'a number' for a single one."""
    names = names_of(tensor)
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})" if names else "a number"


def alike(first: Tensor, *others: Tensor) -> Tensor:
    """The first of tensors of one shape. Raises ValueError where their shapes differ: then they need a line each."""
    if any(other.shape != first.shape for other in others):
        raise ValueError(f"shapes differ: {[tuple(tensor.shape) for tensor in (first, *others)]}; name each by itself")
    return first


def count_in_letters(parameters: Iterable[nn.Parameter]) -> str:
    """How many parameters there are, as a sum: '4*d*² + 4*d*' for four matrices (d, d) and four vectors (d,)."""
    terms = Counter(tuple(sorted((name for name in names_of(parameter) if name != "1"), key=ORDER.index))
                    for parameter in parameters)
    ordered = sorted(terms.items(), key=lambda term: (-len(term[0]), [ORDER.index(name) for name in term[0]]))
    return " + ".join(f"{f'{times} ' if times > 1 else ''}{_product(names)}" for names, times in ordered)


def _product(names: tuple[str, ...]) -> str:
    words = [LETTERS.get(name, name) + ("²" if names.count(name) == 2 else "") for name in dict.fromkeys(names)]
    return (" " if LETTERS.keys() >= set(names) else " · ").join(words)


def taught_in(code) -> tuple[str, str]:
    """Number of the notebook and title of the section that teach a function or class, from its docstring.

    Raises ValueError where the docstring names none.
    """
    notebook, title = export.taught_in(code.__doc__) or ("", "")
    if not notebook[:2].isdigit():
        raise ValueError(f"the docstring of {code.__qualname__} doesn't name a section of a notebook; name one in the row")
    return notebook[:2], title


def section(number: str, title: str) -> str:
    """'04 §8' for notebook 04 and '8. The function'. Raises ValueError where the notebook has no such heading."""
    if f"## {title}" not in lines_of(number):
        raise ValueError(f"notebook {number} has no section {title!r}; correct the row that names it")
    return f"{number} §{title.partition('.')[0]}"


def lines_of(number: str) -> list[str]:
    """All lines of a notebook's Markdown cells. Raises FileNotFoundError where there is no such notebook."""
    path = next(NOTEBOOKS.glob(f"{number}_*.ipynb"), None)
    if path is None:
        raise FileNotFoundError(f"there is no notebook {number} in {NOTEBOOKS}")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).splitlines()]
