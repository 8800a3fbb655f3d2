"""The made programs: valid, exact in what they say about themselves, and without a way around the definition."""

import ast
import hashlib
from collections import Counter

import pytest

from course_utils.data.programs import CLOSING, KINDS, NAMES, Program, count_tokens, make_programs

PROGRAMS = make_programs(3000, gap=(5, 150), seed=7)


def piece(program: Program, span: tuple[int, int]) -> str:
    return program.text[slice(*span)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_is_python_and_its_spans_say_what_they_say(kind):
    for program in (p for p in PROGRAMS if p.kind == kind):
        ast.parse(program.text)
        answer, definition = piece(program, program.answer), piece(program, program.definition)
        decoys = [piece(program, span) for span in program.decoys]
        assert program.definition[1] <= program.answer[0] and answer in program.candidates
        assert program.gap == count_tokens(program.text[program.definition[1] : program.answer[0]])
        if kind == "bracket":
            assert answer == CLOSING[definition] and set(decoys) <= set(CLOSING) and len(decoys) >= 1
        else:
            assert answer == definition and definition not in decoys and len({answer, *decoys}) == len(decoys) + 1
            assert {answer, *decoys} <= set(NAMES) and 2 <= len(program.candidates) <= 6


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_the_one_asked_for_or_the_shortest_there_is(kind):
    assert {p.gap for p in make_programs(20, gap=(500, 500), kinds=(kind,))} == {500}
    assert max(p.gap for p in make_programs(100, gap=(1, 1), kinds=(kind,))) <= 40
    assert count_tokens('x1 = read("a b.csv")  # all of it\n') == 6


def test_the_innermost_open_bracket_is_the_one_that_is_closed():
    for program in make_programs(300, gap=(5, 200), kinds=("bracket",)):
        still_open = []
        for i, letter in enumerate(program.text[: program.answer[0]]):
            if letter in CLOSING:
                still_open.append(i)
            elif letter in CLOSING.values():
                still_open.pop()
        assert still_open == [start for start, _ in (*program.decoys, program.definition)]


def test_a_candidate_is_named_nowhere_but_where_it_is_defined_and_asked_for():
    for program in (p for p in PROGRAMS if p.kind != "bracket"):
        words = Counter(word for word in ast.dump(ast.parse(program.text)).split("'") if word in NAMES)
        given = 1 if program.kind == "keyword" else 0      # the keyword that the call has already
        assert sum(words.values()) == len(program.candidates) + 1 + given
        assert words[piece(program, program.answer)] == 2


GUESSES = {
    "the first one defined": lambda program, places: min(places)[1],
    "the last one defined": lambda program, places: max(places)[1],
    "the first in the alphabet": lambda program, places: program.candidates[0],
    "the last in the alphabet": lambda program, places: program.candidates[-1],
    "the longest": lambda program, places: max(program.candidates, key=len),
    "the usual one": lambda program, places: max(
        program.candidates, key=lambda name: USUAL[program.kind, name]),
}
USUAL = Counter((p.kind, piece(p, p.answer)) for p in make_programs(3000, seed=8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("guess", GUESSES)
def test_a_guess_that_does_not_look_does_no_better_than_chance(kind, guess):
    """Over 600 programs of a kind a guess is right no more often than one candidate among all, within five standard errors.

    Of a call's keywords one is given already, so what is left to guess is the function: half as many as there are keywords.
    """
    right, chance = 0, 0.0
    programs = [p for p in PROGRAMS if p.kind == kind]
    for program in programs:
        places = [(span, piece(program, span)) for span in (program.definition, *program.decoys)]
        if kind == "keyword":
            given = [name for name in program.candidates if f"{name}=" in program.text[: program.answer[0]]]
            places = [(span, name) for span, name in places if name not in given]
        if kind == "bracket":
            places = [(span, CLOSING[name]) for span, name in places]
            if guess.endswith("one defined"):
                # only the innermost is 'the last one defined', and what it closes is what must be looked up
                places = [(span, name) for span, name in places if span != program.definition]
        right += GUESSES[guess](program, places) == piece(program, program.answer)
        chance += 1 / (len(program.candidates) // (2 if kind == "keyword" else 1))
    error = (chance * (1 - chance / len(programs))) ** 0.5
    assert right - chance < 5 * error


def test_the_same_arguments_give_the_same_programs_everywhere():
    text = "\n".join(program.text for program in make_programs(200, gap=(10, 60), seed=3))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "7d81a97080b87847"
    assert make_programs(20, seed=1) != make_programs(20, seed=2)


@pytest.mark.parametrize("arguments, words", [
    ({"number": 0}, "number=0"), ({"number": 1, "kinds": ("names",)}, "expected some of name"),
    ({"number": 1, "gap": (9, 3)}, r"gap=\(9, 3\)"), ({"number": 1, "gap": (1, 5001)}, "5000"),
])
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        make_programs(**arguments)
