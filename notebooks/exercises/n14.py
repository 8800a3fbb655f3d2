"""Exercises, quiz and warm-up of notebook 14, pretraining."""

import contextlib
import itertools
import math
import os
import re
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.compare import plain_data
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import (
    EACH_MAXIMUM,
    gap,
    loss_and_gradient,
    not_contiguous,
    one_tensor,
    put_back,
    spread,
    two_results,
    what,
    whole_numbers,
)


def _copies(inputs: tuple) -> tuple:
    return tuple(part.clone() if isinstance(part, torch.Tensor) else part for part in inputs)


def _once_more(function, *inputs) -> torch.Tensor | None:
    """What the function gives in a further call, as one tensor; None if that can't be read. What it prints isn't shown."""
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            return one_tensor(plain_data(function(*_copies(inputs))), "the result").double()
    except Exception:
        return None


def _kind(part) -> str:
    """What a tensor or an array holds, "whole" numbers or "fractions"; "" for anything else, such as a list."""
    if isinstance(part, torch.Tensor):
        return "fractions" if part.is_floating_point() else "whole"
    kind = part.dtype.kind if isinstance(part, np.ndarray) else ""
    return "whole" if kind in tuple("biu") else "fractions" if kind == "f" else ""

# ---------------------------------------------------------------- 14.1 hide words

def hide_words(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)         # a new tensor
    swapped = chosen & (fate >= 0.8) & (fate < 0.9)
    return torch.where(swapped, others, inputs)


def _hidden(hide=lambda fate: fate < 0.8, swap=lambda fate: (fate >= 0.8) & (fate < 0.9), only_chosen=True, put_mask=True,
            put_others=True):
    """Hiding with one of its parts changed."""
    def answer(token_ids, chosen, fate, others, mask_id):
        chosen = chosen if only_chosen else torch.ones_like(chosen)
        inputs = token_ids.masked_fill(chosen & hide(fate), mask_id) if put_mask else token_ids
        return torch.where(chosen & swap(fate), others, inputs) if put_others else inputs
    return answer


FATES = torch.tensor([0.0, 0.05, 0.1, 0.15, 0.3, 0.5, 0.7, 0.79, 0.8, 0.85, 0.89, 0.9, 0.95, 0.99])


def hiding_probes(generator: torch.Generator) -> list[tuple]:
    """(token_ids, chosen, fate, others, mask_id): every kind of fate, at the borders too, for chosen tokens and others; all
    chosen; nothing chosen; one token; few ids, so that the text and `others` hold the mask's id and 0, and may agree."""
    def draw(rows, columns, share, mask_id):
        shape = (rows, columns)
        token_ids, others = (torch.randint(low, low + 40, shape, generator=generator) for low in (5, 50))
        fate = FATES[torch.randint(len(FATES), shape, generator=generator)]
        return token_ids, torch.rand(shape, generator=generator) < share, fate, others, mask_id

    ids, chosen, _, others, _ = draw(4, 14, 0.5, 4)
    chosen[0], chosen[1] = True, False
    probes = [(ids, chosen, FATES.expand(4, -1).clone(), others, 4), draw(3, 9, 2.0, 103), draw(2, 5, -1.0, 1),
              (torch.tensor([[7]]), torch.tensor([[True]]), torch.tensor([[0.2]]), torch.tensor([[9]]), 0)]
    few, fate = torch.tensor([3, 0, 5, 1, 6]), FATES[[0, 2, 4, 7, 8, 9, 10, 11, 12]]           # 3 is the mask
    which = torch.cartesian_prod(*(torch.arange(len(part)) for part in (few, few, fate)))       # each with each
    ids, others, fate = few[which[:, 0]], few[which[:, 1]], fate[which[:, 2]]
    chosen = torch.stack([torch.ones(len(which), dtype=torch.bool), torch.arange(len(which)) % 2 == 0])
    return [*probes, (ids.repeat(2, 1), chosen, fate.repeat(2, 1), others.repeat(2, 1), 3)]


def observe_hidden(function, token_ids, chosen, fate, others, mask_id):
    """The ids. At a fate of exactly 0.9 those of a second call count, in float64: in float32, 0.9 is a little less, so that
    float(fate[i, j]) < 0.9 is true there and fate < 0.9 isn't. Elsewhere the two calls must agree."""
    before = _copies((token_ids, chosen, fate, others, mask_id))
    output = function(token_ids, chosen, fate, others, mask_id)
    try:
        ids = one_tensor(plain_data(output), "the ids")
    except TypeError:
        return output
    if ids.shape != token_ids.shape:
        return output
    whole_numbers(ids, "ids", "Arithmetic with a float mask makes floats; masked_fill and torch.where don't")
    ids = ids.double()
    token_ids, chosen, fate, others, mask_id = before
    exact = (fate.double() * 100).round() / 100
    again = _once_more(function, token_ids, chosen, exact, others, mask_id)
    if again is None or again.shape != ids.shape:
        return ids
    sure = ((exact - 0.8).abs() > 1e-6) & ((exact - 0.9).abs() > 1e-6)
    if (ids != again)[sure].any():
        raise TypeError("expected the same result for the same inputs, got another one in a second call. The random numbers "
                        "are drawn before your function is called: `fate` and `others` hold them")
    return torch.where((exact - 0.9).abs() < 1e-6, again, ids)


def _wrong_ids(case: Case) -> torch.Tensor:
    return case.answer != case.expected


def _one_wrong(case: Case, where: torch.Tensor | None = None) -> str:
    """The first position that's wrong: its token, whether it was chosen, its fate, and what it became."""
    token_ids, chosen, fate, _, mask_id = case.inputs
    wrong = _wrong_ids(case) if where is None else where
    row, column = wrong.nonzero()[0].tolist()
    was = "chosen" if chosen[row, column] else "not chosen"
    return (f"the token {token_ids[row, column]}, {was}, with fate {fate[row, column]:.2f}, becomes "
            f"{case.answer[row, column]:.0f}, expected {case.expected[row, column]:.0f} (mask_id={mask_id}).")


def _masked(case: Case) -> str:
    token_ids, chosen, _, _, mask_id = case.inputs
    got, right = (int((ids == mask_id)[chosen].sum()) for ids in (case.answer, case.expected))
    return f"{got} of the {int(chosen.sum())} chosen tokens are {mask_id}, the mask; expected {right}."


def _where(what, why: str) -> R:
    """`what(chosen, fate)` says for which positions to look."""
    def wrong(case):
        return _wrong_ids(case) & what(*case.inputs[1:3])
    return R(lambda case: wrong(case).any(), lambda case: _one_wrong(case, wrong(case)), why)


def _hidden_as(case: Case) -> torch.Tensor:
    """What the tokens that should be hidden have become."""
    return case.answer[(case.expected == case.inputs[4]) & case.inputs[1]]


def _another_mask(case: Case) -> bool:
    found = _hidden_as(case).unique()
    return len(_hidden_as(case)) > 5 and len(found) == 1 and bool(found != case.inputs[4])


def _unchanged(case: Case) -> bool:
    several = case.inputs[1].sum() > 5                  # a single token may well stay as it is
    return several and torch.equal(case.answer.long(), case.inputs[0]) and not torch.equal(case.expected, case.answer)


def _by_the_ids(case: Case) -> bool:
    """Whether the answer is wrong only where the token or the other one is the mask's id or 0, and right elsewhere."""
    token_ids, _, _, others, mask_id = case.inputs
    special = (token_ids == mask_id) | (others == mask_id) | (token_ids == 0) | (others == 0)
    return bool(special.any() and _wrong_ids(case).any() and not _wrong_ids(case)[~special].any())


HIDE = ask(
    "14.1", hide_words,
    probes=hiding_probes,
    observe=observe_hidden,
    forbidden=("course_utils.pretraining.mask_tokens",),
    signature="hide_words(token_ids (batch, seq_len), chosen (batch, seq_len), fate (batch, seq_len), others "
    "(batch, seq_len), mask_id) -> inputs (batch, seq_len)",
    mistakes={
        "mask-never-put-in": M(
            _hidden(put_mask=False),
            _masked,
            "The words that are asked for stay in plain sight. A model would learn to copy its input; the loss "
            "falls to nearly 0 and nothing is learned."),
        "always-the-mask": M(
            _hidden(hide=lambda fate: fate < 2, put_others=False),
            _masked,
            "Every chosen token is hidden. The mask never occurs when the model is used, so a fifth of the chosen "
            "tokens should be something else."),
        "never-swapped": M(
            _hidden(put_others=False),
            _one_wrong,
            "From 0.8 to below 0.9 a chosen token becomes the one in `others`. Without that, the model could "
            "trust every word that it sees."),
        "swapped-for-good": M(
            _hidden(swap=lambda fate: fate >= 0.8),
            _one_wrong,
            "Everything from 0.8 on is swapped. From 0.9 on the token stays."),
        "swapped-at-the-end": M(
            _hidden(swap=lambda fate: fate >= 0.9),
            _one_wrong,
            "The last two fates have changed places: swapped is from 0.8 to below 0.9, and from 0.9 on the token "
            "stays."),
        "swapped-below-nine-tenths": M(
            _hidden(swap=lambda fate: fate < 0.9),
            _one_wrong,
            "Everything below 0.9 is swapped, also what was to become the mask. Does the second step overwrite "
            "the first?"),
        "all-tokens": M(
            _hidden(only_chosen=False),
            _one_wrong,
            "Tokens that weren't chosen are changed, too. Nobody asks for them, and the model needs them to guess "
            "from."),
        "not-the-chosen": M(
            lambda ids, chosen, fate, others, mask_id: hide_words(ids, ~chosen, fate, others, mask_id),
            _one_wrong,
            "It's the other way round: the chosen tokens stay, and the rest is changed. True in `chosen` means "
            "that the model will be asked."),
        "wrong-way-round": M(
            _hidden(hide=lambda fate: fate >= 0.2, swap=lambda fate: (fate >= 0.1) & (fate < 0.2)),
            _one_wrong,
            "You count the fates from the other end. Below 0.8 is the mask."),
        "fifteen-per-cent-again": M(
            _hidden(hide=lambda fate: fate < 0.15, swap=lambda fate: (fate >= 0.8) & (fate < 0.9)),
            _masked,
            "You compare with 0.15 once more. Who is asked was decided before; of those, 80 % become the mask."),
        "zero-for-the-mask": M(
            lambda ids, chosen, fate, others, mask_id: hide_words(ids, chosen, fate, others, 0),
            _masked,
            "You put in 0, and that isn't the mask here. Use `mask_id`; 0 is often padding, which nobody attends "
            "to."),
    },
    rules=(
        R(
            lambda case: (case.answer == -100).any(),
            lambda case: f"{int((case.answer == -100).sum())} of the "
                f"{case.answer.numel()} ids are -100.",
            "-100 marks labels that a loss leaves out. Here the ids that the model reads are asked for: a token "
            "that isn't chosen stays as it is."),
        R(
            _unchanged,
            lambda case: "your inputs are the token_ids, unchanged.",
            "Did you assign to inputs[chosen][…]? inputs[chosen] is a copy, so what's assigned to a part of it is "
            "lost. Combine the conditions, as in inputs[chosen & (fate < 0.8)]."),
        R(
            _another_mask,
            lambda case: f"your mask is {_hidden_as(case)[0]:.0f}, expected {case.inputs[4]}.",
            "Each vocabulary has its own id for [MASK]. Use `mask_id`."),
        R(
            _by_the_ids,
            _one_wrong,
            "Elsewhere yours is right. Only `chosen` and `fate` decide, whatever a token is or has become: the "
            "text, and `others`, may hold the mask's id, or 0. Make both conditions from `chosen` and `fate`."),
        _where(lambda chosen, fate: ~chosen, "Nothing happens to tokens that aren't chosen."),
        _where(lambda chosen, fate: chosen & (fate < 0.79999), "Below 0.8 a chosen token becomes the mask."),
        _where(lambda chosen, fate: chosen & (fate > 0.80001) & (fate < 0.89999), "From 0.8 to below 0.9 it becomes the "
    "token at the same position in `others`."),
        _where(lambda chosen, fate: chosen & (fate > 0.90001), "From 0.9 on a chosen token stays."),
        _where(lambda chosen, fate: chosen & (fate < 0.85), "A fate of 0.8 is no longer below 0.8: it belongs to those that "
    "become the token in `others`."),
        _where(lambda chosen, fate: chosen, "A fate of 0.9 is no longer below 0.9: such a token stays."),
    ),
    hints=(
        "Two steps: put in the mask, then the other tokens. For each you need a condition that's True or False everywhere.",
        "masked_fill and torch.where make new tensors; token_ids[…] = … changes the answers.",
        "inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id), and then torch.where for 0.8 to below 0.9.",
    ),
)

# ---------------------------------------------------------------- 14.2 the longest piece

def cut_into_pieces(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):                            # the longest first
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


def _cut(order=lambda start, size: range(size, start, -1), prefix=lambda start: "##" if start else "",
         at_dead_end=lambda pieces, word, start: (["[UNK]"], None)):
    """Cutting with one of its parts changed; `at_dead_end` gives the pieces and where to go on, or None to stop."""
    def answer(word, vocabulary):
        pieces, start = [], 0
        while start is not None and start < len(word):
            found = next((end for end in order(start, len(word)) if prefix(start) + word[start:end] in vocabulary), None)
            if found is None:
                pieces, start = at_dead_end(pieces, word, start)
            else:
                pieces, start = [*pieces, prefix(start) + word[start:found]], found
        return pieces
    return answer


def _signs_counted(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        ends = range(len(word), start, -1)
        piece = next((piece for end in ends if (piece := "##" * (start > 0) + word[start:end]) in vocabulary), None)
        if piece is None:
            return ["[UNK]"]
        pieces.append(piece)
        start += len(piece)
    return pieces


def _with_going_back(word, vocabulary, start=0):
    for end in range(len(word), start, -1):
        piece = ("##" if start else "") + word[start:end]
        if piece in vocabulary:
            rest = _with_going_back(word, vocabulary, end) if end < len(word) else []
            if rest != ["[UNK]"]:
                return [piece, *rest]
    return ["[UNK]"]


def _longest_anywhere(word, vocabulary):
    def cut(start, end):
        spans = [(end_of - size, end_of) for size in range(end - start, 0, -1) for end_of in range(start + size, end + 1)]
        found = next(((i, j) for i, j in spans if "##" * (i > 0) + word[i:j] in vocabulary), None)
        if found is None:
            return [] if start == end else ["[UNK]"]
        return [*cut(start, found[0]), "##" * (found[0] > 0) + word[found[0]:found[1]], *cut(found[1], end)]
    pieces = cut(0, len(word))
    return ["[UNK]"] if "[UNK]" in pieces else pieces


def _from_the_right(word, vocabulary):
    pieces, end = [], len(word)
    while end > 0:
        found = next((start for start in range(end) if ("##" if start else "") + word[start:end] in vocabulary), None)
        if found is None:
            return ["[UNK]"]
        pieces.insert(0, ("##" if found else "") + word[found:end])
        end = found
    return pieces


SMALL = "film ##s ##ing ##ed ##e ##d mov movi move ##able un ##mov ##moved dull ##er ##est d ##u ##l ##ll".split()


LETTERS = [*"abcdeflmnorsuv", *("##" + letter for letter in "abdefilmnorsuv")]


def piece_probes(generator: torch.Generator) -> list[tuple]:
    """(word, vocabulary): one piece; several; a dead end late in the word, and at once; a piece that's there only as a
    beginning, or only as a continuation, and no other that fits; a word of single letters; fewer pieces than the longest
    ones give, and longer ones in the middle of the word; long pieces, one at the start and one that goes on; other words
    for every generator."""
    small, letters = set(SMALL), set(LETTERS) | set(SMALL)
    fewer = set("un unmo unmova ##m ##ovable ##vable ##b ##le".split())
    long = set("anti ##dis ##establish ##ment ##arian ##ism antidisestablish ##mentarianism".split())
    return [("films", small), ("film", small), ("moved", small), ("unmoved", small), ("moving", small), ("movable", small),
            ("xfilm", small), ("filmx", small), ("dullest", small), ("sun", small | {"##un", "s"}), ("edfilm", small),
            ("unmovable", letters), ("refilmed", letters), ("d", small), ("duller", small - {"dull", "##ll"}),
            ("unmovable", fewer), ("remoted", set("re rem ##moted ##oted".split())),
            ("antidisestablishmentarianism", long), ("dullfilm", small), ("ing", small), *_drawn_words(generator)]


def _drawn_words(generator: torch.Generator, count: int = 12) -> list[tuple]:
    """Words of the letters a, b and c, and vocabularies with about a third of the pieces of one to three of them."""
    def draw(size):
        return "".join("abc"[i] for i in torch.randint(3, (size,), generator=generator).tolist())

    pieces = ["".join(letters) for size in (1, 2, 3) for letters in itertools.product("abc", repeat=size)]
    probes = []
    for _ in range(count):
        begin, go_on = (torch.rand(len(pieces), generator=generator) < 0.35 for _ in range(2))
        probes.append((draw(int(torch.randint(4, 9, (), generator=generator))), {
            *(piece for piece, there in zip(pieces, begin) if there),
            *("##" + piece for piece, there in zip(pieces, go_on) if there)}))
    return probes


def observe_pieces(function, word, vocabulary):
    """The pieces with a space between them."""
    output = function(word, vocabulary)
    if output is None:
        if function("film", {"film"}) is None:
            return None
        raise TypeError(f"expected a list of pieces for {word!r}, got None, though 'film' gives one. Each way through your "
                        "function must end in a return: with [\"[UNK]\"] where no piece fits")
    if isinstance(output, str):
        raise TypeError(f"expected a list of pieces for {word!r}, got one text, {output!r}. Return a list, such as "
                        f"{[output] if output == '[UNK]' else output.split()}")
    if isinstance(output, dict) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected a list of pieces, got {what(output)}")
    if isinstance(output, (set, frozenset)):
        raise TypeError(f"expected a list of pieces for {word!r}, got a set. A set has no order and holds each piece only "
                        "once. Begin with pieces = [] and append to it")
    pieces = list(output)
    if wrong := [piece for piece in pieces if not isinstance(piece, str)]:
        raise TypeError(f"expected pieces as texts, got {what(wrong[0])}")
    if any(not piece for piece in pieces):
        raise TypeError(f"expected at least one letter in each piece, got an empty text among those for {word!r}")
    if wrong := [piece for piece in pieces if piece.split() != [piece]]:
        raise TypeError(f"expected pieces without spaces, got {wrong[0]!r}. Each piece has its own place in the list: "
                        f"{' '.join(pieces).split()}")
    return {"pieces": " ".join(pieces)}


def _cut_up(case: Case) -> str:
    count = len(case.pieces.split())
    return (f"{case.inputs[0]!r} gives {case.pieces!r}, {count} piece{'s' * (count != 1)}; expected "
            f"{case.right['pieces']!r}.")


def _first_piece(case: Case) -> bool:
    return case.pieces.split()[:1] != case.right["pieces"].split()[:1]


def _dead_end(case: Case) -> str:
    """What came, and where the longest pieces from the left lead."""
    word, vocabulary = case.inputs
    taken, start = [], 0
    while end := next((end for end in range(len(word), start, -1) if "##" * (start > 0) + word[start:end] in vocabulary), 0):
        taken.append("##" * (start > 0) + word[start:end])
        start = end
    if not taken:
        return f"{_cut_up(case)} No piece without '##' begins this word."
    return f"{_cut_up(case)} The longest pieces are {' '.join(taken)}, and then no piece with '##' begins {word[start:]!r}."


def _not_there(case: Case) -> list[str]:
    return [piece for piece in case.pieces.split() if piece not in {"[UNK]", *case.inputs[1]}]


def _unknown_by_another_name(case: Case) -> list[str]:
    """What was meant as '[UNK]' and isn't in the vocabulary: 'UNK', '<unk>'."""
    return [piece for piece in _not_there(case) if piece.strip("[]<>").lower() == "unk"]


def _joined(case: Case) -> str:
    return "".join(piece.removeprefix("##") for piece in case.pieces.split())


def _another_word(case: Case) -> bool:
    return "[UNK]" not in case.pieces and _joined(case) != case.inputs[0]


def _letters_skipped(case: Case) -> bool:
    """Whether a word for which there are no pieces gets some, and they don't give all of it."""
    return case.right["pieces"] == "[UNK]" and _another_word(case)


def _misplaced(case: Case) -> list[str]:
    """The pieces that begin the word with '##' or continue it without."""
    return [piece for i, piece in enumerate(case.pieces.split()) if piece != "[UNK]" and piece.startswith("##") != (i > 0)]


def _fits_with_fewer(case: Case) -> bool:
    """Whether the answer's pieces are all there and make up the word, but are fewer than the right ones."""
    pieces, right = case.pieces.split(), case.right["pieces"].split()
    return len(pieces) < len(right) and set(pieces) <= set(case.inputs[1]) and not _another_word(case)


PIECES = ask(
    "14.2", cut_into_pieces,
    probes=piece_probes,
    observe=observe_pieces,
    forbidden=("course_utils.pretraining.longest_pieces",),
    signature="cut_into_pieces(word, vocabulary (set of pieces)) -> list of pieces",
    mistakes={
        "shortest-first": M(
            _cut(order=lambda start, size: range(start + 1, size + 1)),
            _cut_up,
            "You take the shortest piece that fits. Begin with the whole rest of the word, make it shorter, and "
            "stop at the first piece that fits."),
        "no-signs": M(
            _cut(prefix=lambda start: ""),
            _cut_up,
            "You look up the rest of the word without '##'. `ed` as a word and `##ed` as an ending are two "
            "different pieces."),
        "signs-looked-up-and-lost": M(
            lambda word, vocabulary: [
                piece.removeprefix("##") for piece in cut_into_pieces(word, vocabulary)],
            _cut_up,
            "The pieces are found, but returned without '##'. They'd get the ids of other tokens, or none."),
        "signs-always": M(
            _cut(prefix=lambda start: "##"),
            _cut_up,
            "The first piece gets '##', too. It begins the word, and continues nothing."),
        "the-rest-is-unknown": M(
            _cut(at_dead_end=lambda pieces, word, start: ([*pieces, "[UNK]"], None)),
            _cut_up,
            "At the dead end you keep the beginning. BERT gives the whole word up: it becomes a single [UNK]."),
        "letter-by-letter-unknown": M(
            _cut(at_dead_end=lambda pieces, word, start: ([*pieces, "[UNK]"], start + 1)),
            _cut_up,
            "You skip a letter and go on. If any part of a word fits no piece, the whole word becomes a single "
            "[UNK]."),
        "beginning-kept": M(
            _cut(at_dead_end=lambda pieces, word, start: (pieces or ["[UNK]"], None)),
            _cut_up,
            "The beginning is kept and the rest of the word is lost without a trace. The whole word should become "
            "[UNK]."),
        "nothing-for-unknown": M(
            _cut(at_dead_end=lambda pieces, word, start: ([], None)),
            _cut_up,
            "The word disappears. The model should at least see that there was one: [UNK]."),
        "goes-back": M(
            _with_going_back,
            _cut_up,
            "You try a shorter piece where the longest leads nowhere. That finds more words, but the weights were "
            "trained with ids of a method that never goes back.", convention=True),
        "from-the-right": M(
            _from_the_right,
            _cut_up,
            "You begin at the end of the word. The longest piece is taken from the left."),
        "longest-anywhere": M(
            _longest_anywhere,
            _cut_up,
            "You take the longest piece wherever it is in the word. The longest one that begins the rest is asked "
            "for, from the left."),
        "signs-counted": M(
            _signs_counted,
            _cut_up,
            "Letters are missing. '##' is part of the piece, but not of the word: go on by the length of the "
            "piece without it."),
        "letters-appended": M(
            lambda word, vocabulary: [
                part for piece in cut_into_pieces(word, vocabulary) for part in ([piece] if piece == "[UNK]" else piece)],
            _cut_up,
            "Your list holds single letters. pieces += piece takes a text apart and appends each of its letters: "
            "write pieces.append(piece), or pieces += [piece]."),
        "last-letter-left-out": M(
            _cut(order=lambda start, size: range(size - 1 if size - start > 1 else size, start, -1)),
            _cut_up,
            "The longest candidate is one letter short: the last letter is never in a longer piece. range() ends "
            "before its second number, or a slice before its end."),
    },
    rules=(
        R(
            _unknown_by_another_name,
            lambda case: f"{_cut_up(case)} You write {_unknown_by_another_name(case)[0]!r}.",
            "BERT writes '[UNK]' for an unknown word, in capitals, and the brackets belong to it. Its vocabulary "
            "holds no other text for that."),
        R(
            _not_there,
            lambda case: f"{_cut_up(case)} Your {_not_there(case)[0]!r} isn't in the vocabulary.",
            "Look up each piece just as you return it: 'film' begins a word, '##film' continues one, and the "
            "vocabulary may have only one of the two."),
        R(
            lambda case: _misplaced(case) and not _letters_skipped(case),
            lambda case: f"{_cut_up(case)} Look at your "
                f"{_misplaced(case)[0]!r}.",
            "A piece without '##' begins a word, and one with '##' continues it. So only the first piece is "
            "looked up without."),
        R(
            _fits_with_fewer,
            _cut_up,
            "These pieces fit, and they're fewer. But nobody counts them: at each step the longest piece is "
            "taken, from the left."),
        R(
            lambda case: _another_word(case) and not _letters_skipped(case),
            lambda case: f"{_cut_up(case)} Without "
                f"'##' your pieces read {_joined(case)!r}.",
            "They should give the word. Did you shorten the rest with lstrip() or replace()? lstrip(part) takes "
            "off each letter that's in the part, and replace(part, '') takes the part out wherever it is. Cut by "
            "length: rest[len(part):]."),
        R(
            _letters_skipped,
            _dead_end,
            "So all of it becomes one [UNK]: no letter may be skipped."),
        R(
            lambda case: "[UNK]" in case.right["pieces"] and case.pieces != case.right["pieces"],
            _dead_end,
            "So all of it becomes one [UNK]."),
        R(
            lambda case: case.pieces == "[UNK]" != case.right["pieces"],
            _cut_up,
            "You give up, though there are pieces that fit. Do you try every candidate, the longest first, from "
            "the whole rest of the word down to a single letter, and at each step? From the second piece on, do "
            "you look it up with '##'? range() leaves out its last number."),
        R(
            _first_piece,
            _cut_up,
            "Look at the first piece: the longest beginning of the word that's in the vocabulary, without '##'."),
        R(
            lambda case: case.pieces != case.right["pieces"],
            _cut_up,
            "The first piece is right. Each one after it is '##' and the longest part of the rest that fits."),
    ),
    hints=(
        "Keep where you are in the word. How do you find the longest piece from there on? And when are you finished?",
        "For end from len(word) down to start + 1, look for word[start:end], with '##' in front of it if start > 0.",
        "piece = (\"##\" if start > 0 else \"\") + word[start:end], then start = end; with no piece, return [\"[UNK]\"].",
    ),
)

# ---------------------------------------------------------------- 14.3 the loss on hidden words

def hidden_word_loss(logits, token_ids, chosen):
    if not chosen.any():
        return logits.sum() * 0.0
    return F.cross_entropy(logits[chosen], token_ids[chosen])


def _each(logits, token_ids):
    return -logits.log_softmax(-1).gather(-1, token_ids[..., None])[..., 0]


def _softmax_over(dim):
    def answer(logits, token_ids, chosen):
        each = logits.log_softmax(dim).gather(-1, token_ids[..., None])[..., 0]
        return -(each * chosen).sum() / chosen.sum().clamp(min=1)
    return answer


def _picked(how):
    """`how(logits, ids)` of the chosen positions; 0 where there are none."""
    return lambda logits, ids, chosen: how(logits[chosen], ids[chosen]) if chosen.any() else logits.sum() * 0


def _picked_whole(how):
    """`how(logits, targets)` of whole texts, where what isn't asked for is -100; 0 where nothing is."""
    return lambda logits, ids, chosen: how(logits, ids.masked_fill(~chosen, -100)) if chosen.any() else logits.sum() * 0


def _row_means_with_zeros(logits, token_ids, chosen):
    return ((_each(logits, token_ids) * chosen).sum(dim=1) / chosen.sum(dim=1).clamp(min=1)).mean()


def _position_means(logits, token_ids, chosen):
    cost, count = (_each(logits, token_ids) * chosen).sum(dim=0), chosen.sum(dim=0)
    return (cost[count > 0] / count[count > 0]).mean() if chosen.any() else logits.sum() * 0


def _row_means(logits, token_ids, chosen):
    each = _each(logits, token_ids)
    rows = [row[picked].mean() for row, picked in zip(each, chosen) if picked.any()]
    return torch.stack(rows).mean() if rows else logits.sum() * 0


def _shifted(logits, token_ids, chosen):
    picked = chosen[:, 1:]
    return F.cross_entropy(logits[:, :-1][picked], token_ids[:, 1:][picked]) if picked.any() else logits.sum() * 0


def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Some chosen, more in one text than in another; a model that's sure and right where it's asked; nothing chosen; all
    logits equal; logits too large for exp, of a model that's sure and wrong; one position; positions whose
    logits are 200 above and below those of others."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ids = torch.randint(1, 7, (3, 5), generator=generator)
    chosen = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    sure_ids = torch.tensor([[2, 4, 1, 3], [1, 2, 0, 3]])
    asked = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 0]], dtype=torch.bool)
    sure = torch.where(asked[..., None], 30.0 * F.one_hot(sure_ids, 6), 3 * draw(2, 4, 6))
    level = torch.tensor([[1, 1, 0], [0, 1, 0]], dtype=torch.bool)
    large = torch.tensor([[*[[100.0, -100.0, 0.0]] * 3, [3.0, 2.0, 1.0]]])      # in float32 exp(100) is inf, exp(-200) 0
    return [(2 * draw(3, 5, 7), ids, chosen), (*not_contiguous((draw(2, 6, 4),)),
             torch.randint(0, 4, (2, 6), generator=generator), torch.rand(2, 6, generator=generator) < 0.5),
            (sure, sure_ids, asked), (torch.zeros(2, 3, 9), torch.randint(0, 9, (2, 3), generator=generator), level),
            (draw(2, 3, 4), torch.ones(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool)),
            (large, torch.tensor([[1, 0, 0, 0]]), torch.tensor([[True, True, True, False]])),
            (draw(1, 2, 3), torch.tensor([[1, 2]]), torch.tensor([[False, True]])),
            (draw(2, 3, 5) + 200.0 * torch.tensor([[[1], [-1], [0]], [[-1], [0], [1]]]),
             torch.randint(0, 5, (2, 3), generator=generator), torch.tensor([[1, 1, 1], [1, 1, 0]]).bool())]


def observe_loss(function, logits, token_ids, chosen):
    """The loss, and the gradient that it sends to the logits; zeros if none, and if the loss isn't finite."""
    given, logits = logits, logits.detach().clone().requires_grad_()
    try:
        output = function(logits, token_ids, chosen)
        put_back(given, logits)
    except RuntimeError as error:
        found = re.match(r"Expected target size \[\d+, (\d+)\], got \[\d+, (\d+)\]", str(error))
        if not found or int(found[1]) != logits.shape[-1]:
            raise
        raise TypeError(f"expected the vocabulary in dimension 1, where cross_entropy looks for it, got {found[2]} "
                        "positions there. Hand over logits.transpose(1, 2), or flatten texts and positions: "
                        "logits.flatten(0, 1) with token_ids.flatten()") from None
    if output is None and chosen.any():
        return None
    if output is None:
        raise TypeError("expected 0 where nothing is chosen, got None. Each way through your function must end in a return")
    return loss_and_gradient(output, logits, "logits")


def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _of_positions(case: Case) -> str:
    chosen = case.inputs[2]
    return f"{_loss_seen(case)} {int(chosen.sum())} of {chosen.numel()} positions are chosen."


def _gradient_seen(case: Case) -> str:
    got, right = (named["gradient for the logits"].abs().max().item() for named in (case.got, case.right))
    return f"the loss is right, but the largest number of its gradient for the logits is {got:.3f}, expected {right:.3f}."


def _nearly_without_gradient(case: Case) -> bool:
    """Whether the loss is right to two decimals, and no gradient at all reaches the logits, where some should."""
    got, right = (named["gradient for the logits"].abs().max() for named in (case.got, case.right))
    return bool(got == 0) and bool(right > 1e-3) and gap(case, "loss") < 6e-3


LOSS = ask(
    "14.3", hidden_word_loss,
    probes=loss_probes,
    observe=observe_loss,
    signature="hidden_word_loss(logits (batch, seq_len, vocab), token_ids (batch, seq_len), chosen (batch, "
    "seq_len)) -> mean loss in nats",
    not_finite={
        "inf": "A small probability was rounded to 0 before its logarithm, or exp of a large logit overflowed: use "
        f"log_softmax or cross_entropy, on the logits. {EACH_MAXIMUM}",
        "-inf": "A small probability was rounded to 0, and its logarithm is -inf; the loss is minus that. Use log_softmax "
        f"or cross_entropy, on the logits. {EACH_MAXIMUM}",
        "NaN": "Either that's a mean over no numbers: divide once, for the whole batch, and return 0 if nothing in it is "
        "chosen. Or exp of a large logit overflowed: use log_softmax or cross_entropy, on the logits. " + EACH_MAXIMUM},
    mistakes={
        "all-positions": M(
            lambda logits, ids, chosen: _each(logits, ids).mean(),
            _of_positions,
            "All positions count in your mean. Most of the answers are in plain sight, so copying them makes the "
            "loss look good."),
        "all-positions-but-none": M(
            lambda logits, ids, chosen: (
                _each(logits, ids).mean() if chosen.any() else logits.sum() * 0),
            _of_positions,
            "You look at `chosen` to see whether there are any, but then all positions count in your mean. Most "
            "of the answers are in plain sight: copying them looks good."),
        "the-visible": M(
            lambda logits, ids, chosen: hidden_word_loss(logits, ids, ~chosen),
            _of_positions,
            "You count the positions that weren't chosen. Those are the ones that the model can read off."),
        "only-the-visible-kept": M(
            lambda logits, ids, chosen: (
                hidden_word_loss(logits, ids, ~chosen) if chosen.any() else logits.sum() * 0),
            _of_positions,
            "The chosen positions are left out, and the others count. It's the other way round: keep the "
            "positions where `chosen` is True, or mark the others with -100."),
        "divided-by-all": M(
            lambda logits, ids, chosen: (_each(logits, ids) * chosen).sum() / chosen.numel(),
            _of_positions,
            "The sum is over the chosen positions, and you divide it by all of them. Divide by how many are "
            "chosen."),
        "visible-as-zero-logits": M(
            lambda logits, ids, chosen: _each(logits * chosen[..., None], ids).mean(),
            _of_positions,
            "Logits that are set to one and the same number don't take a position out: it then costs the "
            "logarithm of the vocabulary's size. Pick the chosen positions instead."),
        "visible-as-zero-logits-but-none": M(
            lambda logits, ids, chosen: (
                _each(logits * chosen[..., None], ids).mean() if chosen.any() else logits.sum() * 0),
            _of_positions,
            "The positions whose logits you set to one and the same number still count: each costs the logarithm "
            "of the vocabulary's size. Pick the chosen positions instead."),
        "row-means": M(
            _row_means,
            _of_positions,
            "You average each text first, and then the texts. Each chosen position counts the same, whichever "
            "text it's in."),
        "row-means-with-zeros": M(
            _row_means_with_zeros,
            _of_positions,
            "You average each text first, and then the texts; a text without chosen positions even counts as 0. "
            "Add up all chosen positions of the batch, and divide once."),
        "position-means": M(
            _position_means,
            _of_positions,
            "You average over the batch at each position first, and then over the positions. Each chosen position "
            "counts the same, whatever else is chosen there."),
        "reshaped": M(
            _picked_whole(lambda logits, ids: F.cross_entropy(logits.reshape(
                len(logits), logits.shape[-1], -1), ids)),
            _of_positions,
            "cross_entropy wants (batch, vocab, position), and reshape() or view() doesn't get you there: it only "
            "cuts the same numbers into other rows. Use transpose(1, 2)."),
        "summed": M(
            lambda logits, ids, chosen: (_each(logits, ids) * chosen).sum(),
            _of_positions,
            "You add up what a mean is asked for. A larger batch would have a larger loss and gradient."),
        "shifted": M(
            _shifted,
            _loss_seen,
            "Position i is asked for the next token. That's the loss of notebook 13; here each position is asked "
            "for its own token, which was hidden."),
        "no-minus": M(
            lambda logits, ids, chosen: -hidden_word_loss(logits, ids, chosen),
            _loss_seen,
            "The logarithm of a probability is negative, and the loss is minus that."),
        "softmax-first": M(
            lambda logits, ids, chosen: hidden_word_loss(logits.softmax(-1), ids, chosen),
            _loss_seen,
            "There are two softmaxes: cross_entropy wants logits, and gets probabilities."),
        "over-positions": M(
            lambda logits, ids, chosen: hidden_word_loss(logits.log_softmax(1), ids, chosen),
            _loss_seen,
            "A softmax runs over the positions. The tokens of the vocabulary compete: the last dimension."),
        "softmax-over-positions": M(
            _softmax_over(1),
            _loss_seen,
            "Your softmax runs over the positions. The tokens of the vocabulary compete: the last dimension."),
        "softmax-over-the-batch": M(
            _softmax_over(0),
            _loss_seen,
            "Your softmax runs over the batch, so texts compete. The tokens of the vocabulary should: the last "
            "dimension."),
        "token-zero-left-out": M(
            lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen & (ids != 0)),
            _of_positions,
            "Where the right token is 0, your loss leaves the position out. 0 is an ordinary id here: mark what "
            "isn't asked for with -100, or pick the chosen positions."),
        "one-more-in-the-divisor": M(
            lambda logits, ids, chosen: (_each(logits, ids) * chosen).sum() / (chosen.sum() + 1),
            _of_positions,
            "You divide by one more than are chosen. To avoid 0 / 0 without changing anything else, write "
            ".clamp(min=1), or return early."),
        "log-of-the-mean": M(
            _picked(lambda scores, ids: -scores.softmax(-1)[torch.arange(len(ids)), ids].mean().log()),
            _of_positions,
            "You take the mean of the probabilities first, and then the logarithm. Each position's logarithm is "
            "asked for, and the mean of those."),
        "nll-of-logits": M(
            _picked(lambda scores, ids: F.nll_loss(scores, ids)),
            _loss_seen,
            "That is minus the logit of the right token. A logit isn't a logarithm of a probability yet: use "
            "log_softmax first, or cross_entropy, which does both."),
        "every-position-with-every-token": M(
            _picked(lambda scores, ids: -scores.log_softmax(-1)[:, ids].mean()),
            _loss_seen,
            "You index with [:, ids], which takes for each position the right tokens of all of them. Each "
            "position has one right token: gather, or [torch.arange(n), ids]."),
        "nll-of-probabilities": M(
            _picked(lambda scores, ids: -scores.softmax(-1)[torch.arange(len(ids)), ids].mean()),
            _loss_seen,
            "That is minus the mean probability. The logarithm is missing."),
        "perplexity": M(
            lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen).exp(),
            _loss_seen,
            "That is e to the power of the loss. Return the loss itself."),
        "bits": M(
            lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen) / math.log(2),
            _loss_seen,
            "That is in bits. Nats are asked for, with the natural logarithm."),
        "cut-off": M(
            lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen).item(),
            _gradient_seen,
            "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it couldn't be trained. "
            "Return a tensor."),
    },
    rules=(
        R(
            _nearly_without_gradient,
            lambda case: f"your loss, {case.loss.item():.4f}, is about right, but no "
                "gradient reaches the logits.",
            "It's rounded, turned into a plain number, or not made from the logits. Compute it from them, and "
            "return it as it is."),
        R(
            lambda case: not case.inputs[2].any() and case.loss != 0,
            _loss_seen,
            "Nothing is chosen here, so the loss is 0."),
        R(
            lambda case: case.inputs[0].unique().numel() == 1 and abs(case.loss - case.right["loss"].exp()) < 1e-2,
            _loss_seen,
            "That is e to the power of the loss, the perplexity. Return the loss itself."),
        R(
            lambda case: case.inputs[0].unique().numel() == 1 and gap(case, "loss") > 1e-3,
            _of_positions,
            "All logits are 0 here, so each of the nine tokens has probability 1/9, and each chosen position "
            "costs ln 9. Is it a mean over the chosen ones?"),
        R(
            lambda case: case.right["loss"] < 1e-3 and gap(case, "loss") > 1e-3,
            _of_positions,
            "The model is sure and right wherever it's asked. That costs nothing, and what it says elsewhere "
            "doesn't count."),
        R(
            lambda case: case.inputs[0].abs().max() < 50 and gap(case, "loss") > 1e-3,
            _of_positions,
            "Work out the smallest case: at a chosen position, minus the logarithm of the softmax at the right "
            "token."),
        R(
            lambda case: case.inputs[0].abs().max() > 50 and gap(case, "loss") > 1e-3,
            _loss_seen,
            "The model gives a right token a probability near 0, and that must cost accordingly. A small number "
            "added before the logarithm, or a clamp, puts an upper limit on the loss. Take it from the logits: "
            "log_softmax or cross_entropy."),
        R(
            lambda case: gap(case, "gradient for the logits") > 1e-3,
            _gradient_seen,
            "Part of the way from the logits to the loss is cut off or counted twice."),
    ),
    hints=(
        "A boolean mask picks positions: logits[chosen] has one row for each chosen position.",
        "Then it's an ordinary cross-entropy. What is the mean of no numbers?",
        "F.cross_entropy(logits[chosen], token_ids[chosen]) if chosen.any() else logits.sum() * 0",
    ),
)

# ---------------------------------------------------------------- 14.4 repair half a block

def layer_norm(x, weight, bias, eps):
    """As in notebook 07."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def second_half(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    inner = F.gelu(F.linear(x, expand, expand_bias))
    return layer_norm(x + F.linear(inner, contract, contract_bias), gain, shift, eps)


def _half(before=lambda x, norm: x, activation=F.gelu, after=lambda x, made, norm: norm(x + made), eps_is=None,
          norm_of=layer_norm):
    """The half of a block with one of its parts changed."""
    def answer(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
        def norm(y):
            return norm_of(y, gain, shift, eps if eps_is is None else eps_is)
        made = F.linear(activation(F.linear(before(x, norm), expand, expand_bias)), contract, contract_bias)
        return after(x, made, norm)
    return answer


def _one_less(x, gain, shift, eps):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps) * gain + shift


def _outside(x, gain, shift, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + eps) * gain + shift


def _without_centring(x, gain, shift, eps):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) * gain + shift


def _over_the_text(x, gain, shift, eps):
    centred = x - x.mean((-2, -1), keepdim=True)
    return centred / torch.sqrt((centred**2).mean((-2, -1), keepdim=True) + eps) * gain + shift


def half_probes(generator: torch.Generator) -> list[tuple]:
    """(x, expand, expand_bias, contract, contract_bias, gain, shift, eps): large and small numbers, a single text without a
    batch, one width of 2, an eps that matters."""
    def draw(*shape, size=1.0):
        return size * torch.randn(*shape, generator=generator)

    probes = []
    for shape, d_ff, eps, size in (((2, 3, 6), 11, 1e-12, 2.0), ((4, 8), 5, 1e-5, 1.0), ((3, 1, 2), 4, 0.5, 1.0),
                                   ((1, 2, 5), 9, 1e-12, 1e-4)):
        d = shape[-1]
        probes.append((draw(*shape, size=size), draw(d_ff, d), draw(d_ff, size=min(size, 1.0)), draw(d, d_ff, size=2.0),
                       draw(d, size=min(size, 1.0)), 1 + draw(d, size=0.5), draw(d), eps))
    return probes


def observe_half(function, x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    """What a half block gives; an error if it's something else in a second call."""
    inputs = x, expand, expand_bias, contract, contract_bias, gain, shift, eps
    before = _copies(inputs)
    output = function(*inputs)
    if isinstance(output, torch.Tensor):
        again = _once_more(function, *before)
        if again is not None and again.shape == output.shape and not torch.allclose(
                output.detach().double(), again, rtol=1e-4, atol=1e-4, equal_nan=True):
            raise TypeError("expected the same result for the same inputs, got another one in a second call. Is there a "
                            "dropout? F.dropout is always active, unless you write training=False")
    return output


def _vector(case: Case) -> str:
    got, right = (part.reshape(-1, part.shape[-1]) for part in (case.answer, case.expected))
    row, at = divmod(int((got - right).abs().argmax()), got.shape[-1])
    whose = "your first vector" if row == 0 else f"vector {row}, counted from 0,"
    return f"number {at} of {whose} is {got[row, at]:.4f}, expected {right[row, at]:.4f}."


def _spread(case: Case) -> str:
    """How the vector that is furthest off is spread, once gain and shift are taken off."""
    gain, shift = case.inputs[5:7]
    rows = [(part.reshape(-1, part.shape[-1]) - shift) / gain for part in (case.answer, case.expected)]
    i = int((rows[0] - rows[1]).abs().amax(dim=1).argmax())
    got, right = (row[i] for row in rows)
    return (f"with gain and shift taken off again, vector {i}, counted from 0, has the mean {got.mean():.3f} and the "
            f"standard deviation {got.std(correction=0):.3f}, expected {right.mean().abs():.3f} and "
            f"{right.std(correction=0):.3f}.")


def _not_normed(case: Case) -> bool:
    gain, shift = case.inputs[5:7]
    normed = (case.answer - shift) / gain
    return case.inputs[7] < 1e-3 and bool((normed.mean(-1).abs() > 1e-2).any())


HALF = ask(
    "14.4", second_half,
    given="pre-norm",
    probes=half_probes,
    observe=observe_half,
    signature="second_half(x (…, d_model), expand (d_ff, d_model), expand_bias (d_ff), contract (d_model, d_ff), "
    "contract_bias (d_model), gain (d_model), shift (d_model), eps) -> (…, d_model)",
    mistakes={
        "pre-norm": M(
            _half(before=lambda x, norm: norm(x), after=lambda x, made, norm: x + made),
            _spread,
            "The norm comes before the feed-forward layer, as in GPT-2 and in notebook 08. BERT is older: where "
            "does its block normalise?"),
        "norm-twice": M(
            _half(before=lambda x, norm: norm(x)),
            _vector,
            "The norm at the end is right, but there's another before the feed-forward layer. A post-norm block "
            "has one in each half."),
        "final-norm-twice": M(
            _half(after=lambda x, made, norm: norm(norm(x + made))),
            _vector,
            "The sum is normalised twice. layer_norm has `gain` and `shift` in it already, so a second time "
            "multiplies and adds them again."),
        "norm-inside-the-sum": M(
            _half(after=lambda x, made, norm: x + norm(made)),
            _spread,
            "You normalise what the layer made and add x afterwards. Post-norm means after the sum."),
        "no-norm": M(
            _half(after=lambda x, made, norm: x + made),
            _spread,
            "There's no norm any more. It has moved, but it isn't gone."),
        "no-residual": M(
            _half(after=lambda x, made, norm: norm(made)),
            _vector,
            "x is no longer added. Without the residual, deep stacks can't be trained, and these weights were "
            "trained with it."),
        "residual-after-the-norm": M(
            _half(after=lambda x, made, norm: norm(x + made) + x),
            _spread,
            "The sum is normalised, and then x is added once more."),
        "residual-of-the-normed": M(
            _half(before=lambda x, norm: norm(x), after=lambda x, made, norm: norm(norm(x) + made)),
            _vector,
            "Both the layer and the residual take the normalised x. In a post-norm block they take x itself."),
        "norm-of-x-only": M(
            _half(after=lambda x, made, norm: norm(x) + made),
            _spread,
            "Only x is normalised, and what the layer made is added to that. Normalise the sum."),
        "gelu-by-tanh": M(
            _half(activation=lambda y: F.gelu(y, approximate="tanh")),
            _vector,
            "The norm is where it should be, but that's the tanh approximation of GELU, as in GPT-2. The numbers "
            "differ in the third decimal, which nobody sees until they compare. Hugging Face's BERT, our judge, "
            "has F.gelu as it is."),
        "relu": M(
            _half(activation=F.relu),
            _vector,
            "The nonlinearity is another one: you have ReLU. BERT's feed-forward layer uses GELU."),
        "no-activation": M(
            _half(activation=lambda y: y),
            _vector,
            "There's nothing in between the two linear layers, so together they're one."),
        "eps-of-the-course": M(
            _half(eps_is=1e-5),
            _vector,
            "The norm has an eps of its own, 1e-5. Pass on the one that you're given: with small vectors it "
            "matters."),
        "eps-of-the-paper": M(
            _half(eps_is=1e-12),
            _vector,
            "The norm has an eps of its own, 1e-12, or none. BERT's is 1e-12, but your function is given one, "
            "which can be another."),
        "gain-and-shift-exchanged": M(
            _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, shift, gain, eps)),
            _vector,
            "`gain` and `shift` have changed places: the normalised vector is multiplied by gain, and shift is "
            "added."),
        "shift-before-gain": M(
            _half(norm_of=lambda y, gain, shift, eps: (layer_norm(y, None, None, eps) + shift) * gain),
            _vector,
            "`shift` is added before `gain` is multiplied, so it's multiplied, too. The other order: normalised · "
            "gain + shift."),
        "gain-and-shift-left-out": M(
            _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, None, None, eps)),
            _vector,
            "The vector is normalised and then returned as it is. Multiply it by `gain` and add `shift`."),
        "gain-left-out": M(
            _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, None, shift, eps)),
            _vector,
            "The vector is normalised and `shift` is added, but it isn't multiplied by `gain` before that."),
        "shift-left-out": M(
            _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, gain, None, eps)),
            _vector,
            "The vector is normalised and multiplied by `gain`, but `shift` isn't added."),
        "mean-left-in": M(
            _half(norm_of=_without_centring),
            _spread,
            "You divide by the root of the mean square and don't take the mean off first. That's RMS norm, which "
            "later models use. BERT's layer norm does both."),
        "one-more-than-gain": M(
            _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, 1 + gain, shift, eps)),
            _vector,
            "You multiply by 1 + gain, as some other models do. BERT multiplies by `gain` itself."),
        "first-bias-left-out": M(
            lambda x, expand, expand_bias, *rest: second_half(
                x, expand, torch.zeros_like(expand_bias), *rest),
            _vector,
            "`expand_bias` isn't added before the GELU."),
        "second-bias-left-out": M(
            lambda x, expand, expand_bias, contract, contract_bias, *norm: second_half(
                x, expand, expand_bias, contract, torch.zeros_like(contract_bias), *norm),
            _vector,
            "`contract_bias` isn't added. The norm doesn't take it out again, since it's another number for each "
            "feature."),
        "gelu-by-sigmoid": M(
            _half(activation=lambda y: y * torch.sigmoid(1.702 * y)),
            _vector,
            "The norm is where it should be, but that's another GELU, x·sigmoid(1.702 x). BERT's is F.gelu as it "
            "is."),
        "silu": M(
            _half(activation=F.silu),
            _vector,
            "The nonlinearity is SiLU, x·sigmoid(x). BERT's feed-forward layer uses GELU."),
        "gelu-twice": M(
            _half(after=lambda x, made, norm: norm(x + F.gelu(made))),
            _vector,
            "There's a GELU after the second linear layer, too. Only one is in between the two."),
        "norm-over-the-text": M(
            _half(norm_of=_over_the_text),
            _spread,
            "Mean and variance are taken over all positions of a text. Layer norm takes each vector for itself: "
            "the last dimension."),
        "variance-by-one-less": M(
            _half(norm_of=_one_less),
            _vector,
            "Your variance is divided by d_model - 1. Layer norm divides by d_model."),
        "eps-outside-the-root": M(
            _half(norm_of=_outside),
            _vector,
            "You add eps to the standard deviation. It belongs inside the root, to the variance."),
    },
    rules=(
        R(
            _not_normed,
            _spread,
            "What leaves a post-norm block has just been normalised, so the mean should be 0 and the standard "
            "deviation 1. Is each vector normalised for itself, over the last dimension, and does nothing come "
            "after that but `gain` and `shift`?"),
        R(
            lambda case: gap(case) > 1e-4,
            _vector,
            "In this order: expand, GELU, contract, add x, normalise; with the eps that you're given."),
    ),
    hints=(
        "Which of the two sums is it: x + f(norm(x)), or norm(x + f(x))? Notebook 07 has both.",
        "Nothing else in the code is wrong. The feed-forward layer gets x itself.",
        "return layer_norm(x + F.linear(inner, contract, contract_bias), gain, shift, eps)",
    ),
)

# ---------------------------------------------------------------- 14.5 pooling with the mask

def pooled_logits(encoder, token_ids, attention_mask, weight, bias):
    x = encoder(token_ids, attention_mask)                                 # (batch, seq_len, d_model)
    real = attention_mask[..., None].to(x.dtype)                           # (batch, seq_len, 1)
    mean = (x * real).sum(dim=1) / real.sum(dim=1)                         # (batch, d_model)
    return mean @ weight.T + bias


def _mean(x, real):
    return (x * real).sum(1) / real.sum(1)


def _pooled(vector=_mean, after=lambda logits: logits, encoder_mask=lambda mask: mask):
    """Pooling with one of its parts changed; `real` is (batch, seq_len, 1)."""
    def answer(encoder, token_ids, attention_mask, weight, bias):
        x = encoder(token_ids, encoder_mask(attention_mask))
        return after(vector(x, attention_mask[..., None].to(x.dtype)) @ weight.T + bias)
    return answer


def _without_the_first(x, real):
    return (x * real)[:, 1:].sum(1) / real[:, 1:].sum(1).clamp(min=1)


def _first_vectors(x, real):
    return torch.stack([row[: int(n)].mean(0) for row, n in zip(x, real.sum((1, 2)))])


def _logits_first(encoder, token_ids, mask, weight, bias):
    scores = (encoder(token_ids, mask) * mask[..., None]) @ weight.T + bias
    return scores.sum(dim=1) / mask.sum(dim=1, keepdim=True)


class ReadingEncoder:
    """An encoder that can be called: a vector for each id, plus half the mean over the positions that it reads.

    Like Hugging Face's, it reads every position if it gets no mask. Its result comes out of a transpose.
    """

    def __init__(self, table: torch.Tensor):
        self.table = table

    def __call__(self, token_ids, attention_mask=None):
        x = self.table[torch.as_tensor(token_ids)]                         # (batch, seq_len, d_model)
        real = torch.ones(x.shape[:2]) if attention_mask is None else torch.as_tensor(attention_mask)
        if real.shape != x.shape[:2]:
            raise TypeError(f"encoder was given token_ids of shape {tuple(x.shape[:2])} and a mask of shape "
                            f"{tuple(real.shape)}; both are (batch, seq_len)")
        real = real.to(x.dtype)[..., None]
        x = x + 0.5 * (x * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)
        return x.mT.contiguous().mT


def pooling_probes(generator: torch.Generator) -> list[tuple]:
    """(encoder, token_ids, attention_mask, weight, bias): ragged texts; one text without padding; a text of one token;
    padding in front of every text. Padding has the id 0 or another one, and 0 is a word, too."""
    def draw(mask, classes, d_model, size=1.0, vocab_size=9, pad_id=0):
        table, weight, bias = (torch.randn(shape, generator=generator) for shape in (
            (vocab_size, d_model), (classes, d_model), (classes,)))
        ids = torch.randint(0, vocab_size, mask.shape, generator=generator).masked_fill(~mask, pad_id)
        return ReadingEncoder(size * table + 1), ids, mask, weight, bias

    ragged = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    in_front = torch.tensor([[False, False, True, True], [False, True, True, True]])
    return [draw(ragged, 3, 6), draw(torch.ones(1, 4, dtype=torch.bool), 2, 2, size=3.0),
            draw(torch.arange(3) < torch.tensor([[1], [3]]), 2, 4, pad_id=3), draw(in_front, 2, 3)]


def _logit(case: Case) -> str:
    """The logit that is furthest off."""
    row, label = divmod(int((case.answer - case.expected).abs().argmax()), case.answer.shape[1])
    length, seq_len = int(case.inputs[2][row].sum()), case.inputs[2].shape[1]
    return (f"text {row}, with {length} of {seq_len} tokens real, gets the logit {case.answer[row, label]:.3f} for class "
            f"{label}, expected {case.expected[row, label]:.3f}.")


def _sums(case: Case) -> str:
    return f"your rows sum to {spread(case.answer.sum(dim=-1))}. {_logit(case)}"


def _in_front(case: Case) -> str:
    row = int((case.answer - case.expected).abs().amax(dim=-1).argmax())
    mask = ", ".join(str(bool(real)) for real in case.inputs[2][row])
    return f"text {row} has the mask [{mask}]. {_logit(case)[0].upper()}{_logit(case)[1:]}"


POOL = ask(
    "14.5", pooled_logits,
    probes=pooling_probes,
    forbidden=("course_utils.embeddings.masked_mean", "course_utils.pretraining.BertClassifier"),
    signature="pooled_logits(encoder, token_ids (batch, seq_len), attention_mask (batch, seq_len), weight (classes, "
    "d_model), bias (classes)) -> logits (batch, classes)",
    not_finite={
        "inf": "You divide by 0: each text has at least one real token, where the mask is True.",
        "-inf": "If you fill padding with -inf, its mean is -inf: that's for scores in front of a softmax. In a sum, "
        "padding must be 0.",
        "NaN": "You divide 0 by 0, and each text has at least one real token, where the mask is True. Or padding is filled "
        "with -inf, which is for scores in front of a softmax: -inf times 0 is NaN. In a sum, padding must be 0."},
    mistakes={
        "no-mask-for-the-encoder": M(
            _pooled(encoder_mask=torch.ones_like),
            _logit,
            "You average the right vectors, but the encoder read padding like words, so in a text with padding "
            "all of them are wrong. Give it the mask, too."),
        "no-mask-at-all": M(
            _pooled(lambda x, real: x.mean(1), encoder_mask=torch.ones_like),
            _logit,
            "The mask isn't used at all: the encoder reads padding like words, and then it's averaged like words. "
            "Both need the mask."),
        "padding-for-the-encoder": M(
            _pooled(encoder_mask=torch.logical_not),
            _logit,
            "You give the encoder the inverted mask, so it reads the padding and leaves out the words. In this "
            "course, True means a real token."),
        "no-mask": M(
            _pooled(lambda x, real: x.mean(1)),
            _logit,
            "Padding is averaged like words. A review would get another answer in a batch with longer ones than "
            "alone."),
        "mask-from-the-ids": M(
            lambda encoder, ids, mask, weight, bias: pooled_logits(encoder, ids, ids != 0, weight, bias),
            _logit,
            "You take the mask from the ids. Which id is padding differs between vocabularies, and 0 may be a "
            "word: `attention_mask` says which tokens are real."),
        "the-encoder's-mask-from-the-ids": M(
            lambda encoder, ids, mask, weight, bias: (
                _mean(encoder(ids, ids != 0), mask[..., None].float()) @ weight.T + bias),
            _logit,
            "The encoder's mask comes from the ids. Which id is padding differs between vocabularies, and 0 may "
            "be a word: `attention_mask` says which tokens are real."),
        "divided-by-all": M(
            _pooled(lambda x, real: (x * real).mean(1)),
            _logit,
            "Padding is left out of the sum, but you divide by seq_len. The vector of a short text then shrinks "
            "with the padding."),
        "summed": M(
            _pooled(lambda x, real: (x * real).sum(1)),
            _logit,
            "That's the sum of the real tokens. A longer text would get larger logits just for its length: "
            "divide."),
        "first-token": M(
            _pooled(lambda x, real: x[:, 0]),
            _logit,
            "You take the first token's vector. That's what BERT's pooler does; here the mean is asked for.",
            convention=True),
        "last-token": M(
            _pooled(lambda x, real: x[torch.arange(len(x)), real.sum((1, 2)).long() - 1]),
            _logit,
            "You take the last real token's vector. A decoder is used like that, since only its last position has "
            "read everything. Here the mean is asked for.", convention=True),
        "largest": M(
            _pooled(lambda x, real: x.masked_fill(real == 0, -math.inf).amax(1)),
            _logit,
            "You take the largest value of each feature. That's max pooling; the mean is asked for.", convention=True),
        "padding-alone": M(
            _pooled(lambda x, real: (x * (1 - real)).sum(1) / (1 - real).sum(1).clamp(min=1)),
            _logit,
            "You average the padding and leave the words out. True in the mask means a real token."),
        "whole-batch": M(
            _pooled(lambda x, real: ((x * real).sum((0, 1)) / real.sum()).expand(len(x), -1)),
            _logit,
            "All texts get the same vector: you average over the whole batch. x[attention_mask] forgets which "
            "text a token is from."),
        "no-bias": M(
            lambda *inputs: pooled_logits(*inputs[:4], 0 * inputs[4]),
            _logit,
            "`bias` is missing from the logits."),
        "softmax-over-the-batch": M(
            _pooled(after=lambda logits: logits.softmax(dim=0)),
            _logit,
            "That's a softmax, and over the texts at that. The loss wants logits and takes the softmax over the "
            "classes itself."),
        "first-vectors": M(
            _pooled(_first_vectors),
            _in_front,
            "You take the first n vectors of a text, n being its number of real tokens. Padding can stand in "
            "front, so let the mask say which."),
        "one-divisor-for-all": M(
            _pooled(lambda x, real: (x * real).sum(1) / real.sum()),
            _logit,
            "You divide by the number of real tokens in the whole batch. Each text has its own: .sum(dim=1)."),
        "one-more-in-the-divisor": M(
            _pooled(lambda x, real: (x * real).sum(1) / (real.sum(1) + 1)),
            _logit,
            "You divide by one more than there are real tokens. Each text has at least one, so 0 / 0 can't "
            "happen."),
        "without-the-first": M(
            _pooled(_without_the_first),
            _logit,
            "The first token's vector is left out. [CLS] counts as a real token: the mask is True there."),
        "tanh-of-the-mean": M(
            _pooled(lambda x, real: torch.tanh(_mean(x, real))),
            _logit,
            "There's a tanh, as in BERT's pooler. Here the mean goes straight into the linear layer."),
        "unit-length": M(
            _pooled(lambda x, real: F.normalize(_mean(x, real), dim=-1)),
            _logit,
            "The mean is scaled to length 1, as it is for comparing sentences. Here it goes straight into the "
            "linear layer."),
        "probabilities": M(
            _pooled(after=lambda logits: logits.softmax(dim=-1)),
            _sums,
            "Those are probabilities. The loss wants logits and takes the softmax itself."),
        "logits-averaged-with-padding": M(
            _logits_first,
            _logit,
            "You take the logits of every position first. A masked position then still adds the bias: mean first, "
            "or mask the logits."),
    },
    rules=(
        R(
            lambda case: case.inputs[2].all() and gap(case) > 1e-4,
            _logit,
            "There's no padding here: a mean over the positions, times `weight` transposed, plus `bias`, and "
            "nothing else."),
        R(
            lambda case: case.inputs[2][:, 0].all() and gap(case) > 1e-4,
            _logit,
            "Without padding your numbers are right. Give the encoder the mask, sum the vectors where it's True, "
            "and divide by how many there are in that text."),
        R(
            lambda case: gap(case) > 1e-4,
            _in_front,
            "With padding behind the words your numbers are right. Here it's in front: let the mask say which "
            "tokens count, not where they are."),
    ),
    hints=(
        "The mask is needed twice: x = encoder(token_ids, attention_mask) is the first time. What must not be in the mean?",
        "Multiply x by attention_mask[..., None], which is (batch, seq_len, 1), and padding becomes 0. Then divide by what?",
        "real = attention_mask[..., None].to(x.dtype); mean = (x * real).sum(dim=1) / real.sum(dim=1)",
    ),
)

# ---------------------------------------------------------------- 14.6 how an adapter starts

def new_adapter(weight, rank):
    d_out, d_in = weight.shape
    down = torch.randn(rank, d_in) / d_in**0.5                             # so that x Dᵀ is about as large as x
    return down, torch.zeros(d_out, rank)                                  # nothing is changed


def _adapter(down=torch.randn, up=torch.zeros):
    return lambda weight, rank: (down(rank, weight.shape[1]), up(weight.shape[0], rank))


LARGE = 10                                               # typical numbers beyond this one are too large to begin with
OVERFLOWED, TOO_SMALL = -1, -2                           # in place of a rank: infinite numbers, or next to nothing


def adapter_probes(generator: torch.Generator) -> list[tuple]:
    """(weight, rank): wide, tall, rank 1."""
    return [(torch.randn(*shape, generator=generator), rank) for shape, rank in (((5, 7), 3), ((8, 4), 2), ((6, 9), 1))]


@contextlib.contextmanager
def _empty_is_nan():
    """torch.empty gives NaN instead of whatever was in memory, which may happen to be 0.

    By the switch that torch.use_deterministic_algorithms turns; that function itself imports a compiler first, for seconds.
    """
    filler, turn = torch.utils.deterministic, torch._C._set_deterministic_algorithms
    before = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
              filler.fill_uninitialized_memory)
    turn(True, warn_only=True)
    filler.fill_uninitialized_memory = True
    try:
        yield
    finally:
        turn(before[0], warn_only=before[1])
        filler.fill_uninitialized_memory = before[2]


def observe_adapter(function, weight, rank):
    """The shapes; how many numbers of up · down aren't 0; the rank of up · down after some training; how large a typical
    number is, or 0 if that's not too large."""
    with _empty_is_nan():
        output = function(weight, rank)
    if output is None:
        return None
    if isinstance(output, dict) and output.keys() == {"down", "up"}:
        output = output["down"], output["up"]
    for given, name in zip(output if isinstance(output, (tuple, list)) else (), ("down", "up")):
        if isinstance(given, nn.Module):
            raise TypeError(f"expected a tensor as {name}, got a layer ({type(given).__name__}): return its weight")
    parts = two_results(output, "down", "up")
    for given, name in zip(output, ("down", "up")):
        if isinstance(given, torch.Tensor) and given.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr():
            raise TypeError(f"expected {name} with numbers of its own, got a part of `weight`: training the adapter would "
                            "change the layer, too. Append .clone(), or draw random numbers")
    down, up = (_learnable(given, part, name, weight.dtype) for given, part, name in zip(output, parts, ("down", "up")))
    for part, name, wanted in ((down, "down", "(rank, d_in)"), (up, "up", "(d_out, rank)")):
        if part.dim() != 2:
            raise TypeError(f"expected a matrix as {name}, {wanted}, got {_in_words(part)}")
    shapes = {"down's shape": torch.tensor(down.shape, dtype=torch.float32),
              "up's shape": torch.tensor(up.shape, dtype=torch.float32)}
    if (up.shape[0], down.shape[1]) != weight.shape or down.shape[0] != up.shape[1]:
        return {**shapes, "changed": torch.tensor(-1.0), "learned": torch.tensor(-1.0), "size": torch.tensor(0.0)}
    changed = (up @ down != 0).sum().float()
    size = max(part.square().mean().sqrt().item() for part in (down, up))
    return {**shapes, "changed": changed, "learned": torch.tensor(float(_rank_after_training(down, up))),
            "size": torch.tensor(size if size > LARGE else 0.0)}


def _in_words(part: torch.Tensor) -> str:
    """What a tensor with any number of dimensions but two is."""
    return "a single number" if part.dim() == 0 else f"a tensor of shape {tuple(part.shape)}"


def _learnable(given, part: torch.Tensor, name: str, dtype: torch.dtype) -> torch.Tensor:
    """One of the two matrices in float64. Raises TypeError for one that can't be trained beside a weight of this type."""
    if _kind(given) == "whole":
        raise TypeError(f"expected numbers that can be trained as {name}, got whole numbers ({given.dtype}): a gradient "
                        "would change them by fractions")
    if isinstance(given, torch.Tensor) and given.dtype != dtype:
        raise TypeError(f"expected numbers of the weight's type as {name}, {dtype}, got {given.dtype}: PyTorch doesn't "
                        "multiply matrices of two types. Leave dtype out, or use weight.dtype")
    if isinstance(given, torch.Tensor) and any(size > 1 and step == 0 for size, step in zip(given.shape, given.stride())):
        raise TypeError(f"expected a number of its own at each place of {name}, got one number seen at several, as expand() "
                        "makes it, and training would change all of them at once. Append .clone()")
    part = part.detach().double()
    if not part.isfinite().all():
        raise TypeError(f"expected numbers as {name}, got {int((~part.isfinite()).sum())} of {part.numel()} NaN or "
                        "infinite. torch.empty holds whatever was in memory: fill it, or use torch.zeros")
    return part


def _rank_after_training(down: torch.Tensor, up: torch.Tensor, steps: int = 3) -> int:
    """The rank of up · down after a few steps of gradient descent towards random targets, OVERFLOWED, or TOO_SMALL."""
    generator = torch.Generator().manual_seed(0)
    x, target = (torch.randn(40, size, generator=generator).double() for size in (down.shape[1], up.shape[0]))
    down, up = down.clone().requires_grad_(), up.clone().requires_grad_()
    for _ in range(steps):
        loss = ((x @ down.T @ up.T - target) ** 2).mean()
        gradients = torch.autograd.grad(loss, [down, up])
        with torch.no_grad():
            for part, gradient in zip((down, up), gradients):
                part -= 0.1 * gradient
    product = (up @ down).detach()
    if not product.isfinite().all():
        return OVERFLOWED
    sizes = torch.linalg.svdvals(product)
    rank = int((sizes > max(1e-14, 1e-9 * sizes.max().item())).sum())
    return TOO_SMALL if rank == 0 and product.any() else rank


def _changed(case: Case) -> str:
    weight, rank = case.inputs
    count = f"{case.got['changed']:.0f} of the {weight.numel()}"
    return f"with rank {rank}, {count} numbers of up · down aren't 0, expected none."


def _learned(case: Case) -> str:
    rank, expected = int(case.learned), int(case.right["learned"])
    becomes = {OVERFLOWED: "its numbers are infinite", TOO_SMALL: "its numbers are still below 1e-14"}
    return (f"with rank {case.inputs[1]}, up · down is 0 at first, as it should be; after some training "
            f"{becomes.get(rank, f'it has rank {rank}, expected {expected}')}.")


def _shapes(case: Case) -> str:
    def written(named):
        return " and ".join(f"{name} ({', '.join(f'{n:.0f}' for n in named[name + chr(39) + 's shape'].tolist())})"
                            for name in ("down", "up"))
    return (f"for a weight {tuple(case.inputs[0].shape)} and rank {case.inputs[1]} you return {written(case.got)}; "
            f"expected {written(case.right)}.")


def _other_shapes(case: Case) -> bool:
    return any(not torch.equal(case.got[name], case.right[name]) for name in ("down's shape", "up's shape"))


ADAPTER = ask(
    "14.6", new_adapter,
    probes=adapter_probes,
    observe=observe_adapter,
    forbidden=("course_utils.pretraining.LowRankAdapter",),
    signature="new_adapter(weight (d_out, d_in), rank) -> down (rank, d_in), up (d_out, rank)",
    mistakes={
        "both-random": M(
            _adapter(up=torch.randn),
            _changed,
            "The two matrices change the layer before anything is learned: training would begin with a spoilt "
            "model. One of the two must start at 0."),
        "both-zero": M(
            _adapter(down=torch.zeros),
            _learned,
            "Nothing can be learned: the gradient of each matrix is a product with the other, and both stay 0 for "
            "ever."),
        "ones": M(
            _adapter(up=torch.ones, down=torch.ones),
            _changed,
            "Ones change the layer, and equal rows get equal gradients. One matrix should be 0 and the other "
            "random."),
        "all-rows-equal": M(
            _adapter(down=torch.ones),
            _learned,
            "Where rows of down and columns of up start equal, they stay equal, and a row of zeros that meets a "
            "column of zeros gets no gradient. So the adapter would learn as if its rank were 1. Fill the whole "
            "of one matrix with random numbers."),
        "turned": M(
            lambda weight, rank: (torch.randn(weight.shape[1], rank), torch.zeros(rank, weight.shape[0])),
            _shapes,
            "Both are transposed. down maps d_in numbers to rank numbers, and nn.Linear keeps its matrices as "
            "(out, in)."),
        "up-first": M(
            lambda weight, rank: (torch.zeros(weight.shape[0], rank), torch.randn(rank, weight.shape[1])),
            _shapes,
            "The two have changed places: return down first, and then up."),
        "sizes-exchanged": M(
            lambda weight, rank: (torch.randn(rank, weight.shape[0]), torch.zeros(weight.shape[1], rank)),
            _shapes,
            "d_in and d_out have changed places: `weight` is (d_out, d_in)."),
    },
    rules=(
        R(
            _other_shapes,
            _shapes,
            "down is (rank, d_in) and up (d_out, rank), so that up @ down has the shape of the weight."),
        R(
            lambda case: case.changed != 0,
            _changed,
            "The layer must compute at first what it did before: up @ down is all zeros."),
        R(
            lambda case: case.learned < case.right["learned"],
            _learned,
            "So the adapter would learn less than its rank allows. Fill the whole of one matrix with random "
            "numbers that are neither too small nor too large."),
        R(
            lambda case: case.size > 0,
            lambda case: f"a typical number of down or up is {case.size:.3g}, expected about 1 or less.",
            "Every change of the other matrix is multiplied by these numbers, so the first step would throw the layer off. "
            "Leave them as torch.randn gives them, or divide by √d_in."),
    ),
    hints=(
        "For up @ down to be 0, what's the simplest choice for one of them? May the other be 0, too?",
        "d_out, d_in = weight.shape. The random one may be divided by √d_in, so that it doesn't blow up its input.",
        "return torch.randn(rank, d_in) / d_in**0.5, torch.zeros(d_out, rank)",
    ),
)

# ---------------------------------------------------------------- 14.7 what learns, and how fast

def groups_for(layers, head, frozen, rate, head_rate):
    for layer in layers[:frozen]:
        layer.requires_grad_(False)
    groups = [{"params": list(layer.parameters()), "lr": rate} for layer in layers[frozen:]]
    return [*groups, {"params": list(head.parameters()), "lr": head_rate}]


def _grouped(freeze=lambda layers, frozen: layers[:frozen], learn=lambda layers, frozen: layers[frozen:], head=True,
             rates=lambda rate, head_rate: (rate, head_rate), how=lambda layer: layer.requires_grad_(False)):
    """Groups with one of their parts changed."""
    def answer(layers, output, frozen, rate, head_rate):
        lower, upper = rates(rate, head_rate)
        for layer in freeze(layers, frozen):
            how(layer)
        groups = [{"params": list(layer.parameters()), "lr": lower} for layer in learn(layers, frozen)]
        return [*groups, {"params": list(output.parameters()), "lr": upper}] if head else groups
    return answer


def _by_attribute(layer):
    layer.requires_grad = False


def _head_frozen(layers, output, frozen, rate, head_rate):
    output.requires_grad_(False)
    return groups_for(layers, output, frozen, rate, head_rate)


def _weights_alone(layers, output, frozen, rate, head_rate):
    """Only the matrices: biases and layer norms are forgotten."""
    groups = groups_for(layers, output, frozen, rate, head_rate)
    return [{"params": [p for p in group["params"] if p.dim() == 2], "lr": group["lr"]} for group in groups]


def group_probes(generator: torch.Generator) -> list[tuple]:
    """(layers, head, frozen, rate, head_rate): some are frozen, then none, then all; one layer; more than half."""
    def draw(depth, frozen, rate, head_rate):
        layers = [nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)) for _ in range(depth)]
        return layers, nn.Linear(3, 2), frozen, rate, head_rate

    return [draw(4, 1, 3e-4, 1e-2), draw(3, 0, 1e-4, 2e-3), draw(3, 3, 5e-4, 1e-2), draw(1, 0, 2e-4, 2e-4),
            draw(5, 3, 2e-5, 1e-3)]


def _each_rate(groups, parameters) -> list[float]:
    """The rate of each of these parameters in the groups; 0 for one that is in none. Raises TypeError for no such list."""
    if isinstance(groups, torch.optim.Optimizer):
        groups = groups.param_groups
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, dict) for group in groups):
        raise TypeError("expected a list of groups, each a dictionary with \"params\" and \"lr\"; got "
                        f"{what(groups)}")
    rates = dict.fromkeys(map(id, parameters), 0.0)
    for group in groups:
        if "params" not in group:
            raise TypeError(f"expected a dictionary with \"params\" and \"lr\"; one of yours has "
                            f"{', '.join(group) or 'nothing'}")
        inside = group["params"]
        if isinstance(inside, nn.Module):
            raise TypeError("expected parameters under \"params\"; one of your groups has a module there: write "
                            "list(layer.parameters())")
        for parameter in [inside] if isinstance(inside, torch.Tensor) else list(inside):
            if isinstance(parameter, tuple):
                raise TypeError("expected parameters under \"params\"; one of your groups has pairs of a name and a "
                                "parameter: write layer.parameters(), without 'named_'")
            if id(parameter) not in rates:
                raise TypeError("expected the layers' own parameters in the groups; one of yours belongs to "
                                "none of the layers that you were given, nor to the head")
            if rates[id(parameter)]:
                raise TypeError("expected each parameter in one group; one of yours is in two, and AdamW refuses that")
            rates[id(parameter)] = float(group.get("lr", 1e-3))
    return list(rates.values())


def observe_groups(function, layers, head, frozen, rate, head_rate):
    """The rate at which each parameter learns, in thousandths, 0 for one that doesn't, layer by layer and the head at the
    end; which of them still get a gradient; whether a plain attribute was set; whether a part is in evaluation mode."""
    parts = [*layers, head]
    parameters = [parameter for part in parts for parameter in part.parameters()]
    for parameter in parameters:                                           # as they come from a file
        parameter.requires_grad_(True)
    for part in parts:
        part.__dict__.pop("requires_grad", None)
        part.train()
    groups = function(list(layers), head, frozen, rate, head_rate)
    if groups is None:
        return None
    rates = _each_rate(groups, parameters)
    gets = [float(parameter.requires_grad) for parameter in parameters]
    attribute = sum("requires_grad" in part.__dict__ for part in parts)
    resting = sum(not module.training for part in parts for module in part.modules())
    for part in parts:
        part.__dict__.pop("requires_grad", None)
        part.train()
    moves = [1000 * rate * got for rate, got in zip(rates, gets)]
    return {"rate": torch.tensor(moves), "gradient": torch.tensor(gets), "attribute": torch.tensor(float(attribute)),
            "resting": torch.tensor(float(resting))}


def _places(case: Case) -> list[str]:
    """What each parameter belongs to."""
    layers, head = case.inputs[:2]
    return [f"layer {i}" for i, layer in enumerate(layers) for _ in layer.parameters()] + ["the head"] * len(
        list(head.parameters()))


def _rate_seen(case: Case) -> str:
    at = int((case.rate - case.right["rate"]).abs().argmax())
    got, right = (f"learns at {1e-3 * rate:g}" if rate else "doesn't learn"
                  for rate in (case.rate[at], case.right["rate"][at]))
    return (f"with {case.inputs[2]} of {len(case.inputs[0])} layers to freeze, a parameter of {_places(case)[at]} {got}; "
            f"expected: it {right}.")


def _gradients_seen(case: Case) -> str:
    frozen = case.right["gradient"] == 0
    return (f"with {case.inputs[2]} of {len(case.inputs[0])} layers to freeze, {int(case.gradient[frozen].sum())} of their "
            f"{int(frozen.sum())} parameters still get a gradient.")


def _off(part: str):
    return lambda case: bool((case.got[part] - case.right[part]).abs().max() > 1e-5)


GROUPS = ask(
    "14.7", groups_for,
    probes=group_probes,
    observe=observe_groups,
    forbidden=("course_utils.pretraining.freeze", "course_utils.pretraining.layer_rates"),
    signature="groups_for(layers: modules from the input to the output, head: a module, frozen: how many of the lowest "
    "layers, rate, head_rate) -> a list of groups, each {\"params\": …, \"lr\": …}",
    mistakes={
        "never-frozen": M(
            _grouped(freeze=lambda layers, frozen: [], learn=lambda layers, frozen: layers),
            _rate_seen,
            "Nothing is frozen: all layers learn. Take the gradient from the lowest `frozen` layers, and leave them out of "
            "the groups."),
        "left-out-and-not-frozen": M(
            _grouped(freeze=lambda layers, frozen: []),
            _gradients_seen,
            "You left them out of the groups, so they don't move. But backward still computes their gradients, which is the "
            "dearer half of freezing; and they pile up, since nobody clears them. layer.requires_grad_(False) ends that."),
        "attribute-of-the-module": M(
            _grouped(how=_by_attribute),
            _gradients_seen,
            "layer.requires_grad = False only hangs a new attribute on the module; its parameters don't know of it, and "
            "nothing complains. The method, with an underscore at the end, asks every parameter: "
            "layer.requires_grad_(False)."),
        "evaluation-mode": M(
            _grouped(how=lambda layer: layer.eval()),
            _gradients_seen,
            "eval() turns dropout off; it doesn't freeze anything. That's layer.requires_grad_(False)."),
        "upper-frozen": M(
            _grouped(freeze=lambda layers, frozen: layers[frozen:], learn=lambda layers, frozen: layers[:frozen]),
            _rate_seen,
            "It's the other way round: the lowest `frozen` layers are frozen, and those above them learn."),
        "the-last-frozen": M(
            _grouped(freeze=lambda layers, frozen: layers[len(layers) - frozen:],
                     learn=lambda layers, frozen: layers[:len(layers) - frozen]),
            _rate_seen,
            "You freeze from the top. The list begins at the input, and what's lowest is most general: layers[:frozen]."),
        "one-too-many": M(
            _grouped(freeze=lambda layers, frozen: layers[:frozen + 1], learn=lambda layers, frozen: layers[frozen + 1:]),
            _rate_seen,
            "One layer too many is frozen: layers[:frozen] has `frozen` layers, 0 to frozen - 1."),
        "one-too-few": M(
            _grouped(freeze=lambda layers, frozen: layers[:max(0, frozen - 1)],
                     learn=lambda layers, frozen: layers[max(0, frozen - 1):]),
            _rate_seen,
            "One layer too few is frozen: layers[:frozen] has `frozen` layers, 0 to frozen - 1."),
        "all-frozen": M(
            _grouped(freeze=lambda layers, frozen: layers, learn=lambda layers, frozen: []),
            _rate_seen,
            "No layer learns: that's 'head only'. Freeze the lowest `frozen` of them and no more: what gets no gradient "
            "doesn't move, whichever group it's in."),
        "head-left-out": M(
            _grouped(head=False),
            _rate_seen,
            "The head is in no group. It begins with random numbers and would stay there."),
        "head-frozen": M(
            _head_frozen,
            _rate_seen,
            "The head gets no gradient. It begins with random numbers and would stay there."),
        "one-rate": M(
            _grouped(rates=lambda rate, head_rate: (rate, rate)),
            _rate_seen,
            "The head learns at the layers' rate. It begins with random numbers and may take larger steps: head_rate."),
        "the-head's-rate-for-all": M(
            _grouped(rates=lambda rate, head_rate: (head_rate, head_rate)),
            _rate_seen,
            "The layers learn at the head's rate. At steps that large, what they knew is soon gone."),
        "rates-exchanged": M(
            _grouped(rates=lambda rate, head_rate: (head_rate, rate)),
            _rate_seen,
            "The two rates have changed places: `rate` is for the layers, `head_rate` for the head."),
        "matrices-alone": M(
            _weights_alone,
            _rate_seen,
            "Only matrices are in your groups. Biases and layer norms learn, too: take all of layer.parameters()."),
    },
    rules=(
        R(lambda case: case.attribute > 0, _gradients_seen,
          "A module has no switch called requires_grad: you made a new attribute. Call layer.requires_grad_(False)."),
        R(_off("rate"), _rate_seen,
          "Freeze layers[:frozen]; give layers[frozen:] a group at `rate`, and the head one at `head_rate`."),
        R(_off("gradient"), _gradients_seen,
          "What's frozen needs no gradient: layer.requires_grad_(False), for the lowest layers alone."),
        R(_off("resting"), lambda case: f"{int(case.resting)} of the modules are in evaluation mode.",
          "Nobody asked for that here: fine_tune sets the mode."),
    ),
    hints=(
        "Two slices: layers[:frozen] are frozen, layers[frozen:] learn.",
        "layer.requires_grad_(False), with an underscore at the end, freezes a layer. A group is "
        "{\"params\": list(layer.parameters()), \"lr\": rate}.",
        "return [*groups, {\"params\": list(head.parameters()), \"lr\": head_rate}]",
    ),
)

# ---------------------------------------------------------------- 14.8 fine-tune

def fine_tune(model, groups, several, factors):
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    peaks = [group["lr"] for group in optimizer.param_groups]
    model.train()
    losses = []
    for batch, factor in zip(several, factors):
        for group, peak in zip(optimizer.param_groups, peaks):
            group["lr"] = peak * factor
        logits = model(batch.token_ids, batch.attention_mask)
        loss = F.cross_entropy(logits, batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


class Few(NamedTuple):
    """A batch of a few texts."""

    token_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor


class SmallModel(nn.Module):
    """A lookup, a mean over what the mask says is real, a linear layer; in training every vector is 1.5 times as long, as
    dropout would change it, but the same each time. It counts how often it was called in training mode."""

    def __init__(self, vectors: torch.Tensor, matrix: torch.Tensor):
        super().__init__()
        self.embedding, self.output = nn.Embedding.from_pretrained(vectors, freeze=False), nn.Linear(*matrix.T.shape)
        self.output.weight.data, self.output.bias.data = matrix.clone(), torch.zeros(len(matrix))

    def forward(self, token_ids, attention_mask):
        real = attention_mask[..., None].to(self.embedding.weight.dtype)
        mean = (self.embedding(token_ids) * real).sum(dim=1) / real.sum(dim=1)
        return self.output(1.5 * mean if self.training else mean)


def tuning_probes(generator: torch.Generator) -> list[tuple]:
    """(vectors, matrix, frozen, rates, batches, factors): two rates; a frozen lookup; one batch; a factor of 0."""
    def draw(steps, frozen, rates, classes=2, size=4):
        vectors, matrix = torch.randn(9, 3, generator=generator), torch.randn(classes, 3, generator=generator)
        several = []
        for _ in range(steps):
            mask = torch.arange(5) < torch.randint(1, 6, (size, 1), generator=generator)
            several.append(Few(torch.randint(1, 9, (size, 5), generator=generator), mask,
                               torch.randint(classes, (size,), generator=generator)))
        factors = [min((step + 1) / 2, (steps - step) / steps) for step in range(steps)]
        return vectors, matrix, frozen, rates, several, factors

    return [draw(6, False, (0.02, 0.2)), draw(4, True, (0.3, 0.1), classes=3), draw(1, False, (0.1, 0.4), size=2),
            draw(3, False, (0.2, 0.05))[:5] + ([1.0, 0.0, 0.5],)]


def observe_tuning(function, vectors, matrix, frozen, rates, several, factors):
    """The losses, both tables after the training, and the mode."""
    model = SmallModel(vectors.clone(), matrix.clone()).eval()
    groups = [{"params": [model.output.weight, model.output.bias], "lr": rates[1]}]
    if frozen:
        model.embedding.requires_grad_(False)
    else:
        groups.insert(0, {"params": [model.embedding.weight], "lr": rates[0]})
    losses = function(model, groups, list(several), list(factors))
    if losses is None and torch.equal(model.output.weight.data, matrix):
        return None
    if isinstance(losses, (float, int)) or (isinstance(losses, torch.Tensor) and losses.dim() == 0):
        losses = [float(losses)]
    if losses is None or not hasattr(losses, "__len__"):
        raise TypeError(f"expected the losses of all steps, a list of numbers; got {what(losses)}")
    if isinstance(losses, (list, tuple)) and any(isinstance(loss, torch.Tensor) for loss in losses):
        raise TypeError("expected the losses as numbers, got tensors, which keep the whole computation in memory: "
                        "append loss.item()")
    told = torch.tensor([float(loss) for loss in losses])
    return {"losses": told, "count": float(len(told)), "vectors": model.embedding.weight.detach().clone(),
            "matrix": model.output.weight.detach().clone(), "training": float(model.training)}


def _step_off(case: Case) -> str:
    if len(case.losses) != len(case.right["losses"]):
        return f"you return {len(case.losses)} losses, and there are {len(case.right['losses'])} steps."
    gaps = (case.losses - case.right["losses"]).abs()
    if gaps.max() < 1e-4:
        return _weights_seen(case)
    at = int((gaps > 1e-4).int().argmax())
    return (f"the loss of step {at}, counted from 0, is {case.losses[at]:.4f}, expected {case.right['losses'][at]:.4f}.")


def _weights_seen(case: Case) -> str:
    for name in ("matrix", "vectors"):
        gaps = (case.got[name] - case.right[name]).abs()
        if gaps.max() > 1e-5:
            whose = "the head" if name == "matrix" else "the word vectors"
            at = gaps.flatten().argmax()
            return (f"after all steps a number of {whose} is {case.got[name].flatten()[at]:.4f}, expected "
                    f"{case.right[name].flatten()[at]:.4f}.")
    return f"after all steps training mode is {'on' if case.training else 'off'}."


def _without_factors(model, groups, several, factors):
    return fine_tune(model, groups, several, [1.0] * len(factors))


def _compounding(model, groups, several, factors):
    product, compound = 1.0, []
    for factor in factors:
        product *= factor
        compound.append(product)
    return fine_tune(model, groups, several, compound)


def _one_rate(which):
    def answer(model, groups, several, factors):
        return fine_tune(model, [{**group, "lr": groups[which]["lr"]} for group in groups], several, factors)
    return answer


def _factor_for_a_rate(model, groups, several, factors):
    return fine_tune(model, [{**group, "lr": 1.0} for group in groups], several, factors)


def _one_late(model, groups, several, factors):
    """The rate is set after the step, so that the first step has the peak and each later one that of the step before."""
    return fine_tune(model, groups, several, [1.0, *factors[:-1]])


def _cleared_before_the_step(model, groups, several, factors):
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    peaks = [group["lr"] for group in optimizer.param_groups]
    model.train()
    losses = []
    for batch, factor in zip(several, factors):
        for group, peak in zip(optimizer.param_groups, peaks):
            group["lr"] = peak * factor
        loss = F.cross_entropy(model(batch.token_ids, batch.attention_mask), batch.labels)
        loss.backward()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return losses


def _new_each_time(model, groups, several, factors):
    losses = [loss for batch, factor in zip(several, factors)
              for loss in fine_tune(model, [dict(group) for group in groups], [batch], [factor])]
    return losses


TUNE = ask(
    "14.8", fine_tune,
    probes=tuning_probes,
    observe=observe_tuning,
    forbidden=("course_utils.training.fit", "course_utils.recipes.fine_tuning.fine_tune"),
    signature="fine_tune(model: (token_ids, attention_mask) -> logits, groups: for AdamW, several: batches with .token_ids, "
    ".attention_mask, .labels, factors: a number for each batch) -> the losses, a list of numbers",
    mistakes={
        "gradients-kept": M(
            {"optimizer.zero_grad()": "None"},
            _step_off,
            "Gradients aren't cleared, so each step adds those of all steps before it."),
        "cleared-before-the-step": M(
            _cleared_before_the_step,
            _step_off,
            "The gradients are cleared between backward and step, so there's nothing to step by; only the weight "
            "decay moves."),
        "never-a-step": M(
            {"optimizer.step()": "None"},
            _step_off,
            "The model stays as it is: the optimizer never takes a step."),
        "peak-all-the-time": M(
            _without_factors,
            _step_off,
            "Each step has the peak rate. Before a step, set the rate of each group: its peak times this step's factor."),
        "factors-multiplied": M(
            _compounding,
            _step_off,
            'group["lr"] *= factor multiplies what earlier steps have left, and after a few it\'s next to nothing. Keep '
            "each group's peak, and set the rate from it each time."),
        "first-rate-for-all": M(
            _one_rate(0),
            _step_off,
            "All groups get the first one's rate. Each has a peak of its own."),
        "last-rate-for-all": M(
            _one_rate(-1),
            _step_off,
            "All groups get the last one's rate. Each has a peak of its own; and an optimizer that's given "
            "model.parameters() in place of `groups` knows of none."),
        "factor-for-a-rate": M(
            _factor_for_a_rate,
            _step_off,
            "The factor is taken for the rate itself: up to 1, hundreds of times too large. Multiply each group's peak "
            "by it."),
        "set-after-the-step": M(
            _one_late,
            _step_off,
            "The rate is set after the step, so the first one is taken at full rate, and each later one at that of the step "
            "before. Set it first."),
        "in-evaluation-mode": M(
            {"model.train()": "model.eval()"},
            _step_off,
            "The model is in evaluation mode while it learns, so there's no dropout. Call model.train() first."),
        "left-in-training-mode": M(
            {"model.eval()": "None"},
            lambda case: "all numbers are right, and the model is left in training mode.",
            "Whoever asks it next would get dropout in the answer: model.eval() at the end."),
        "mask-left-out": M(
            {"batch.attention_mask": "torch.ones_like(batch.attention_mask)"},
            _step_off,
            "The model reads padding like words. Hand it the mask."),
        "softmax-first": M(
            {"F.cross_entropy(logits, batch.labels)": "F.cross_entropy(logits.softmax(dim=-1), batch.labels)"},
            _step_off,
            "There are two softmaxes: cross_entropy wants logits."),
        "new-optimizer-each-time": M(
            _new_each_time,
            _step_off,
            "A new AdamW is made for each batch, and forgets its averages each time. Make it once, before the loop."),
        "sgd": M(
            {"torch.optim.AdamW(groups, weight_decay=0.01)": "torch.optim.SGD(groups, weight_decay=0.01)"},
            _step_off,
            "That's plain gradient descent. AdamW is asked for, with a weight decay of 0.01."),
        "other-decay": M(
            {"weight_decay=0.01": "weight_decay=0.0"},
            _step_off,
            "There's no weight decay, and plain Adam has none. AdamW is asked for with weight_decay=0.01, its default."),
        "adam": M(
            {"torch.optim.AdamW(groups, weight_decay=0.01)": "torch.optim.Adam(groups, weight_decay=0.01)"},
            _step_off,
            "That's Adam, which adds the weight decay to the gradients. AdamW is asked for, with a weight decay of 0.01: it "
            "shrinks the weights themselves."),
        "decay-of-a-tenth": M(
            {"weight_decay=0.01": "weight_decay=0.1"},
            _step_off,
            "The weight decay is 0.1. AdamW is asked for with weight_decay=0.01."),
        "last-loss-alone": M(
            lambda model, groups, several, factors: fine_tune(model, groups, several, factors)[-1:],
            _step_off,
            "Only the last loss is left. Collect them: one for each batch."),
        "mean-of-the-losses": M(
            lambda model, groups, several, factors: [sum(found := fine_tune(model, groups, several, factors)) / len(found)],
            _step_off,
            "That's the mean of all losses. Return the list: one for each batch."),
        "first-batch-again": M(
            lambda model, groups, several, factors: fine_tune(model, groups, [several[0]] * len(several), factors),
            _step_off,
            "Each step reads the first batch. Does your loop use its variable?"),
    },
    rules=(
        R(lambda case: len(case.losses) != len(case.right["losses"]), _step_off, "Return a loss for each batch."),
        R(lambda case: (case.losses[0] - case.right["losses"][0]).abs() > 1e-4, _step_off,
          "That's before anything was learned. Is the model in training mode, does it get the mask, and the loss the "
          "logits?"),
        R(lambda case: (case.losses - case.right["losses"]).abs().max() > 1e-4, _step_off,
          "The first loss is right, so a step went wrong. In this order: set each group's rate, forward, loss, clear, "
          "backward, step; and with AdamW, a weight decay of 0.01."),
        R(lambda case: (case.matrix - case.right["matrix"]).abs().max() > 1e-5
          or (case.vectors - case.right["vectors"]).abs().max() > 1e-5, _weights_seen,
          "The losses are right and the weights aren't: look at the last step, and at the rate of each group."),
        R(lambda case: case.training != case.right["training"], _weights_seen, "Leave the model in evaluation mode."),
    ),
    hints=(
        "It's the step of 8.8 in a loop. New are the groups: torch.optim.AdamW(groups, weight_decay=0.01), made once.",
        "Before the loop: peaks = [group[\"lr\"] for group in optimizer.param_groups], and model.train().",
        "In each step first: for group, peak in zip(optimizer.param_groups, peaks): group[\"lr\"] = peak * factor",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: only-the-mask
  taught: "14"
  question: Somebody pretrains with `[MASK]` for all of the chosen words, none swapped and none kept.
    What's most likely to suffer?
  options:
    - text: The loss in pretraining, which can't fall without the other two kinds.
      remark: It falls all the same. The model is even told where to guess, and can trust every other word.
    - text: The vectors of ordinary words, which nobody ever asked for.
      right: true
      remark: Only `[MASK]` was ever asked for. When the model is used there is no `[MASK]`, and the
        vectors that you need are those of the other words. Fine-tuning repairs most of it; vectors used
        as they are stay worse (appendix C.2 of BERT's paper).
    - text: Long texts, because there are more masks in them.
      remark: It's 15 % of a text, whatever its length.
- name: which-of-three
  taught: "14"
  question: An encoder pretrained on hidden words has a loss of 0.02 after an hour. BERT-base ends near
    1.4. What would you look at first?
  options:
    - text: Whether the hidden words are really replaced in what the model reads.
      right: true
      remark: If they're still there, each answer can be copied. A loss over all positions is too small
        as well, but not as small, since the hidden words still cost what they cost.
    - text: Whether the learning rate is too high.
      remark: That makes a loss large, or not a number, and never wonderfully small.
    - text: Nothing, because a small model learns a small language completely in an hour.
      remark: Many hidden words can't be known, even by people. A loss near 0 says that the answers were
        there to see.
- name: third-decimal
  taught: "14"
  question: You load a BERT into your own class. Its hidden states differ from the library's in the
    third decimal, and accuracy is the same to a tenth of a point. Which explanation fits best?
  options:
    - text: The attention mask is missing.
      remark: Then the numbers of every text with padding change, visibly, and one of full length stays
        as it is.
    - text: Rounding in float32.
      remark: Rounding shows in the sixth decimal, or the fifth after many layers. The third is a
        thousand times as much.
    - text: Your blocks use the tanh approximation of GELU, and the file wants GELU itself.
      right: true
      remark: The two functions differ by less than 0.001, and nothing complains. Only the comparison does.
- name: rank-eight
  taught: "14"
  question: Adapters of rank 8 train 0.3 % of the parameters. Yet a training step takes far more than
    0.3 % of the time that it takes to train everything. Why?
  options:
    - text: The adapters are matrices as large as those beside them.
      remark: They're thin; that's why they have so few parameters.
    - text: The whole model must still run forwards, and the gradient must pass back through it to the
        lowest adapter.
      right: true
      remark: What's saved are the gradients of the frozen matrices and their optimizer state. The way
        there and back is as long as before.
    - text: Small matrices are slow on every processor, so their few parameters take most of the time.
      remark: Thin products are a little less efficient, but they're a small part of the work.
- name: an-before-odd
  taught: "14"
  question: In the language of section 3, you hide the adjective and leave the article. Which of the two
    models can guess the adjective better?
  options:
    - text: The one trained on hidden words sees more.
      remark: It does, but there's nothing on the right that says anything about the adjective. The noun
        and the full stop fit all eight.
    - text: Neither. Both see the article, and nothing else helps.
      right: true
      remark: What decides is where the evidence is. It's on the left this time, and both models see the left.
    - text: The one trained on next words, because it had many more answers in each sentence.
      remark: It learns faster, but in six hundred steps both know which adjectives go with which
        article. More can't be known.
- name: which-labels-next
  taught: "14"
  question: Your classifier, fine-tuned on a thousand sentences of section 7, gets 98 % of their test right and 59 %
    of the written opinions. You want it for the latter, and can have another thousand labels. For what?
  options:
    - text: For written opinions like those that it will be asked about.
      right: true
      remark: On 1,225 of these, the same training got 66 % of the written test, and 86 % of the corpus's
        test without a sentence of it.
    - text: For more sentences of the corpus, since a larger training set always helps with both kinds of text.
      remark: Ten times as many of these, 1,000 for 100, gave the written ones nothing that can be shown.
    - text: For none. Longer training on the thousand will do.
      remark: It gets 98 % of them right already. More passes can't tell it what the sentences don't say.
- name: zero-inside
  taught: "12"
  question: On five seeds, adapters get 0.2 points less of the test than all layers, ± 5.7. What may you say?
  options:
    - text: All layers are better than adapters, by a little.
      remark: With other seeds, or other sentences, it may well be the other way round. Zero is inside the interval.
    - text: Adapters and all layers are equally good.
      remark: A difference that isn't shown isn't a difference of zero. This interval is wide.
    - text: No difference is shown, and several points could hide in the interval.
      right: true
      remark: From almost six points less to more than five points more, all would fit these five seeds.
"""

WARM_UP = """
- name: what-next-words-see
  taught: "13"
  question: A language model of 13 is asked for the next token at position 5. Which tokens may its vector there have
    looked at?
  options:
    - text: All of them, since attention sees the whole text.
      remark: Without a mask it would, and then it could read off the answer.
    - text: Those at positions 0 to 5.
      right: true
      remark: A causal mask hides what follows. That's what this notebook gives up, and what it pays for it.
    - text: Those after position 5.
      remark: One of these is the answer.
- name: mean-without-a-mask
  taught: "03"
  question: You average the vectors of a batch over the positions and forget the mask. Which reviews get another vector
    than they should?
  options:
    - text: Those shorter than the longest of their batch.
      right: true
      remark: Their padding is averaged as well. You'll need the mask twice today, for attention and for the mean.
    - text: All of them.
      remark: The longest has no padding, so its mean is right.
    - text: None, since padding has the vector zero.
      remark: In a mean a zero counts, too, because it's in the divisor.
- name: where-the-norm-stands
  taught: "07"
  question: What does a post-norm block return?
  options:
    - text: The sum of x and what its layers made of the normalised x.
      remark: That's pre-norm, the one that your classifier in 08 has.
    - text: What its layers made of x, without x itself.
      remark: The residual path is there in both.
    - text: A layer norm of the sum of x and what the layer made of x.
      right: true
      remark: Nothing passes by the norm. BERT's blocks are like that.
"""
