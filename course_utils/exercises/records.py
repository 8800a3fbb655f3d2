"""An exercise as one record: `ask` takes everything about it, from the right answer to the hints.

    def double(x):
        return 2 * x

    DOUBLE = ask("4.7", double, signature="double(x (n,)) -> doubled (n,)",
        probes=lambda generator: [(torch.randn(n, generator=generator),) for n in (5, 3, 1)],
        numbers=dict(largest=lambda case: case.answer.abs().max()),
        mistakes={
            "not-doubled": M({"2 * x": "x"}, "your largest number is {largest:.2f}.", "You return x as it is."),
            "squared": M(lambda x: x**2, "{answer[0]:.2f} isn't twice a number of x.", "That is x times itself."),
            "tripled": M({"2": "3"}),
        },
        rules=(R(lambda case: case.answer.sum() > 9, "your numbers sum to {total}.", "Why it matters, where to look."),),
        hints=("…", "return 2 * x"))

A mistake is an *edit* of the right answer, {old code: new code}, or a function that makes it. Edits are matched on the
syntax tree: whatever a formatter does to the answer, they find their place, and an edit that fits nowhere or in two places
is an error when the record is loaded. `old` is an expression, a named argument such as dim=-1, or a statement; '' as the
new code takes an argument or a statement out. Of one mistake, several edits are made one after the other.

What was seen is said with {numbers}: a name in `numbers`, whose function gets the case and is called only if the name is
quoted; else an attribute of the case, such as {answer}, {weights} or {inputs[0]}. A mistake without words is told by
`diagnoses`. A rule of several lines, or one that many exercises need, may hand over a function of the case instead.

Does: make exercises from records, edit answers. Does not: judge (see `judge`), or find records (see `catalogue`).
"""

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable
from typing import NamedTuple

from course_utils.exercises.definitions import Answers, Case, Exercise, Mistake, Property, Record

R = Property


class M(NamedTuple):
    """A mistake: `how` it's made, what is `seen`, `why` it matters or where to look; or another `convention`, no error."""

    how: dict[str, str] | Callable
    seen: str | Callable[[Case], str] = ""
    why: str = ""
    convention: bool = False


def ask(id: str, answer: Callable, *, signature: str, mistakes: dict[str, M], rules: tuple[Property, ...],
        hints: tuple[str, ...], numbers: dict[str, Callable[[Case], object]] | None = None, **more) -> Record:
    """The record of an exercise; `more` is what else an `Exercise` takes. Raises ValueError for an edit that doesn't fit."""
    known = tuple(Mistake(name, phrase(one.seen, numbers), one.why, one.convention) for name, one in mistakes.items())
    properties = tuple(rule._replace(seen=phrase(rule.seen, numbers)) for rule in rules)
    made = {}
    for name, one in mistakes.items():
        try:
            made[name] = edited(answer, one.how) if isinstance(one.how, dict) else one.how
        except ValueError as error:
            raise ValueError(f"exercise {id}, mistake {name!r}: {error}") from None
    return Record(Exercise(signature, known, properties, hints, id=id, **more), Answers(answer, made))


def phrase(words: str | Callable[[Case], str], numbers: dict | None = None) -> Callable[[Case], str] | None:
    """A sentence with {numbers} as a function of the case; a function as it is, no words as None."""
    if callable(words) or not words:
        return words or None
    return lambda case: words.format_map(_Quoted(case, numbers or {}))


class _Quoted(dict):
    """The numbers of a sentence: each is computed when it's quoted, since not every case has all of them."""

    def __init__(self, case: Case, numbers: dict):
        super().__init__()
        self.case, self.numbers = case, numbers

    def __missing__(self, name: str):
        return self.numbers[name](self.case) if name in self.numbers else getattr(self.case, name)


def edited(answer: Callable, edits: dict[str, str]) -> Callable:
    """A function with some of its code replaced. Raises ValueError unless each old piece stands in it exactly once."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(answer)))
    for old, new in edits.items():
        tree = _replaced(tree, old, new)
    made: dict = {}
    exec(compile(ast.fix_missing_locations(tree), answer.__code__.co_filename, "exec"), answer.__globals__, made)
    return made[answer.__name__]


def _replaced(tree: ast.Module, old: str, new: str) -> ast.Module:
    found, changed = 0, tree
    for read in (_expression, _argument, _statement):
        piece = read(old)
        if piece is None:
            continue
        replacing = _Replacing(piece, read(new) if new.strip() else None)
        after = replacing.visit(copy.deepcopy(tree))
        if replacing.found:
            if replacing.new is None and (new.strip() or read is _expression):
                raise ValueError(f"{old!r} can't be replaced by {new!r}, which is no {read.__name__.strip('_')}")
            found, changed = found + replacing.found, after
        if read is _expression:                         # whatever is an expression is no other thing
            break
    if found != 1:
        raise ValueError(f"expected {old!r} once in the answer, found it {found} times. Write an expression, an argument "
                         "or a statement as it stands there, with enough around it to tell it apart")
    return changed


def _expression(code: str) -> ast.expr | None:
    try:
        return ast.parse(code.strip(), mode="eval").body
    except SyntaxError:
        return None


def _argument(code: str) -> ast.keyword | None:
    called = _expression(f"_({code})")
    return called.keywords[0] if called and not called.args and len(called.keywords) == 1 else None


def _statement(code: str) -> ast.stmt | None:
    try:
        body = ast.parse(textwrap.dedent(code)).body
    except SyntaxError:
        return None
    return body[0] if len(body) == 1 else None


class _Replacing(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST | None):
        self.old, self.new, self.found = ast.dump(old), new, 0

    def visit(self, node: ast.AST):
        if ast.dump(node) == self.old:
            self.found += 1
            return copy.deepcopy(self.new)
        return self.generic_visit(node)
