"""Exercises and quiz of notebook 02, tokenization: words and batches."""

import re
import sys
from collections import Counter

import numpy as np
import torch

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import drawn, items_of, pair_of, what, whole_id

pattern = re.compile(r"<br\s*/?>|(\w+(?:['’]\w+)*|[^\w\s])")


def words(text):
    """As in the notebook."""
    return [token for token in pattern.findall(text) if token]

# ---------------------------------------------------------------- 2.1 how many tokens

SENTENCE = "A well-made film, isn't it?<br />Great!! Fun."


def how_many_tokens():
    # A, well, -, made, film, the comma, isn't, it, ?, Great, !, !, Fun, and the full stop
    return 14


def _found(rule):
    return lambda: len(re.findall(rule, SENTENCE))


def _count(case: Case) -> str:
    return f"{case.answer.item():g} tokens."


HOW_MANY = ask(
    "2.1", how_many_tokens,
    kind="number", tolerance=1e-3, signature="one number: how many tokens",
    mistakes={
        "cut-at-spaces": M(lambda: len(SENTENCE.split()), _count, "That's how many pieces there are between spaces. With "
                           "our pattern punctuation makes tokens of its own, and the line break separates."),
        "word-characters": M(_found(r"\w+"), _count, "That is what `\\w+` gives: 'isn' and 't' apart, `br` as a word, "
                             "and no punctuation. Read the second half of the pattern, after the `|`."),
        "marks-lost": M(lambda: sum(word[0].isalpha() for word in words(SENTENCE)), _count, "That is the number of words "
                        "alone. Punctuation makes tokens as well: `[^\\w\\s]`."),
        "hyphen-inside": M(lambda: len(words(SENTENCE)) - 2, _count, "That is the count with 'well-made' kept whole. "
                           "Inside a word the pattern allows an apostrophe, but no hyphen."),
        "marks-together": M(lambda: len(words(SENTENCE)) - 1, _count, "That is the count with '!!' as one token. "
                            "`[^\\w\\s]` has no plus after it: one character each."),
        "apostrophe-cut": M(lambda: len(words(SENTENCE.replace("'", " ' "))), _count, "That is the count with 'isn't' "
                            "cut at its apostrophe. The pattern allows it inside a word."),
        "line-break-cut": M(_found(r"\w+(?:['’]\w+)*|[^\w\s]"), _count, "That is the count with the parts of `<br />`. "
                            "The pattern finds it as a whole, outside the parentheses, and throws it away."),
        "line-break-kept": M(_found(r"<br />|\w+(?:['’]\w+)*|[^\w\s]"), _count, "That is the count with `<br />` as one "
                             "token. It is found, but outside the parentheses: it separates, like a space."),
    },
    rules=(
        R(lambda case: case.answer < 14, _count, "There are more. Write them down one by one, punctuation too."),
        R(lambda case: case.answer > 14, _count, "There are fewer. Write them down one by one and read the pattern "
          "again from the left."),
    ),
    hints=(
        "\"Don't miss it!\": `split` finds Don't, miss, it!; `\\w+` finds Don, t, miss, it; our pattern Don't, miss, it, !",
        "Three things need care: the hyphen, the apostrophe, and the line break.",
        "'film,' is two tokens; 'well-made' three; '!!' two; `<br />` none.",
        "`words` counts for you: put the text into it and compare with your list.",
    ),
)

# ---------------------------------------------------------------- 2.2 a vocabulary, and what it does not know

def encode_texts(train, texts, min_freq):
    counts = {}
    for text in train:
        for word in text.split():
            counts[word] = counts.get(word, 0) + 1
    kept = [word for word in counts if counts[word] >= min_freq]
    frequent = sorted(kept, key=lambda word: (-counts[word], word))
    ids = {word: i for i, word in enumerate(["<pad>", "<unk>"] + frequent)}
    return [[ids.get(word, 1) for word in text.split()] for text in texts]


def _encoder(of_all=False, unknown=1, order=lambda counts, word: (-counts[word], word), minimum=lambda least: least, first=2,
             per_text=False, reverse=False, cut=str.split):
    """The encoder with one or more things changed; `unknown` None leaves unknown words out."""
    def encode(train, texts, min_freq):
        pieces = [cut(text) for text in (train + texts if of_all else train)]
        counts = Counter(word for piece in pieces for word in (dict.fromkeys(piece) if per_text else piece))
        kept = [word for word in counts if counts[word] >= minimum(min_freq)]
        frequent = sorted(kept, key=lambda word: order(counts, word), reverse=reverse)
        ids = {word: i for i, word in enumerate(frequent, start=first)}
        rows = [[ids.get(word, unknown) for word in cut(text)] for text in texts]
        return [[i for i in row if i is not None] for row in rows]
    return encode


NOUNS = ["actor", "camera", "drama", "ending", "film", "genre", "hero", "joke", "music", "novel", "plot", "scene"]


def vocabulary_probes(generator: torch.Generator) -> list[tuple]:
    """(training texts, texts, min_freq): ties, words at and below min_freq, and words that only the texts have.

    Then words with capitals, an empty text, a training text of one word, and words with a comma.
    """
    a, b, c, d, e, f, g, h = sorted(drawn(generator, NOUNS, 8))
    one = ([f"{f} {d} {b} {f}", f"{b} {f} {d} {c}", f"{g} {g} {g} {g}", f"{e} {h} {e} {h}"],
           [f"{a} {g} {d} {a} {f}", f"{b} {c} {h}", f"{e} {a}"], 2)
    two = ([f"{e} {c} {g} {e}", f"{a} {c} {a} {c} {g}", f"{b} {b} {b} {b} {b} {e} {h}"],
           [f"{e} {h} {b}", f"{d} {g} {a} {c} {d} {b} {d}"], 3)
    tied = ["film camera actor drama"]                 # in no order by which ties could go: turning up, length, backwards
    words = " ".join(two[1]).split()
    mixed = " ".join(words[i] for i in torch.randperm(len(words), generator=generator).tolist())
    capitals = ([f"{b.capitalize()} {b} {a.upper()} {b.capitalize()} {c}", f"{c} {a} {c} {h.capitalize()}"],
                [f"{b} {b.upper()} {a.upper()} {b.capitalize()}", "", f"{c} {h.capitalize()}"], 1)
    return [one, two, (one[0], [mixed, two[1][0]], 1), (tied, ["actor film", "drama camera"], 1), capitals,
            ([a], [a, f"{a} {b}"], 1), ([f"{b}, {c}", f"{c}, {b}, {a}"], [f"{a} {c}, {b}", f"{b}, {b}, {c}"], 1)]


def observe_ids(function, train, texts, min_freq):
    """How many ids each text got, and the ids as rows filled with -1."""
    output = function(train, texts, min_freq)
    if output is None:
        return None
    asked = f"one list of ids for each of {len(texts)} texts"
    given = items_of(output, asked)
    if isinstance(output, torch.Tensor) or len(given) != len(texts):
        raise TypeError(f"expected {asked}, got {what(output)}")
    rows, width = [], max(len(text.split()) for text in texts)
    given = [[whole_id(i) for i in items_of(row, "a list of ids for each text")] for row in given]
    for row in given:
        rows.append((row + [-1] * width)[:width])
    return {"ids": torch.tensor(rows), "lengths": torch.tensor([len(row) for row in given])}


def _places(case: Case) -> list[tuple[str, int, int]]:
    """(word, the learner's id, the right id) for every word of the texts that the learner gives an id."""
    places = []
    for text, got, right in zip(case.inputs[1], case.ids.tolist(), case.right["ids"].tolist()):
        places += [(word, int(g), int(r)) for word, g, r in zip(text.split(), got, right)]
    return places


def _counted(case: Case, word: str) -> int:
    return Counter(" ".join(case.inputs[0]).split())[word]


def _wrong_id(case: Case, only=lambda case, word: True) -> str:
    word, got, right = next(place for place in _places(case) if place[1] != place[2] and only(case, place[0]))
    count = _counted(case, word)
    often = {0: "does not occur", 1: "occurs once", 2: "occurs twice"}.get(count, f"occurs {count} times")
    return f"{word!r}, which {often} in training, gets id {got}, expected {right} (min_freq={case.inputs[2]})."


def _rare(case: Case, word: str) -> bool:
    return 0 < _counted(case, word) < case.inputs[2]


def _new(case: Case, word: str) -> bool:
    return not _counted(case, word)


def _known(case: Case, word: str) -> bool:
    return _counted(case, word) >= case.inputs[2]


def _has_wrong(kind, where=lambda case: True):
    return lambda case: where(case) and any(got != right and kind(case, word) for word, got, right in _places(case))


def _small(case: Case) -> bool:
    """Whether no text of this input has capitals."""
    return all(text == text.lower() for text in (*case.inputs[0], *case.inputs[1]))


def _short(case: Case) -> str:
    i = next(i for i, (a, b) in enumerate(zip(case.lengths, case.right["lengths"])) if a != b)
    right, got = int(case.right["lengths"][i]), int(case.lengths[i])
    return f"{case.inputs[1][i]!r} has {right} word{'' if right == 1 else 's'} and gets {got} id{'' if got == 1 else 's'}."


VOCABULARY = ask(
    "2.2", encode_texts,
    observe=observe_ids, probes=vocabulary_probes,
    signature="encode_texts(train (list of texts), texts (list of texts), min_freq) -> one list of ids for each of texts",
    mistakes={
        "vocabulary-of-all": M(_encoder(of_all=True), _wrong_id, "The words were counted on all texts. A word that never "
                               "occurs in training must stay unknown, or the unknown rate of new texts is zero by "
                               "construction (section 3)."),
        "unknown-is-padding": M(_encoder(unknown=0), _wrong_id, "0 is `<pad>`, which a mask will hide; an unknown word "
                                "is a real token, with id 1. (A Counter gives 0 for whatever it doesn't contain.)"),
        "unknown-dropped": M(_encoder(unknown=None), _short, "Words without an id were left out. They are part of the "
                             "text: each becomes 1."),
        "ties-by-appearance": M(_encoder(order=lambda counts, word: -counts[word]), _wrong_id, "Words of equal count are "
                                "in the order in which they turned up (most_common does that). Break ties by the "
                                "alphabet, so that the order of the texts changes no id."),
        "ties-reversed": M(_encoder(order=lambda counts, word: (counts[word], word), reverse=True), _wrong_id,
                           "Words of equal count are in reverse alphabetical order. Sorting with reverse=True reverses "
                           "both rules; sort by (-count, word)."),
        "ties-without-capitals": M(_encoder(order=lambda counts, word: (-counts[word], word.lower())), _wrong_id,
                                   "Words of equal count were compared in small letters. Python's own order of strings "
                                   "puts every capital before the small letters: sort by the word as it is."),
        "min_freq-ignored": M(_encoder(minimum=lambda least: 0), _wrong_id, "min_freq has no effect: a word that occurs "
                              "less often must not get an id."),
        "more-than-min_freq": M(_encoder(minimum=lambda least: least + 1), _wrong_id, "A word that occurs exactly "
                                "min_freq times must get an id: >= and not >."),
        "rarest-first": M(_encoder(order=lambda counts, word: (counts[word], word)), _wrong_id,
                          "The rarest words come first. The list must begin with the most frequent, so that its "
                          "beginning is a smaller vocabulary (section 4)."),
        "alphabetical": M(_encoder(order=lambda counts, word: word), _wrong_id, "The list follows the alphabet alone. It "
                          "is sorted by count first; the alphabet decides ties."),
        "no-special-ids": M(_encoder(first=0), _wrong_id, "The words begin at id 0. 0 and 1 are taken by `<pad>` and "
                            "`<unk>`; the first word has id 2."),
        "texts-counted": M(_encoder(per_text=True), _wrong_id, "You counted the texts in which a word occurs. Count "
                           "every occurrence."),
        "lower-cased": M(lambda train, texts, least: encode_texts([text.lower() for text in train],
                                                                  [text.lower() for text in texts], least),
                         _wrong_id, "You lower-cased the words. Here 'Film' and 'film' are two words; exercise 2.3 makes "
                         "one of them."),
        "cut-by-words": M(_encoder(cut=words), _short, "You cut the texts with `words`, which makes a token of each comma. "
                          "Here a word is what stands between spaces: split()."),
        "empty-piece": M(lambda train, texts, min_freq: [row or [1] for row in encode_texts(train, texts, min_freq)],
                         _short, "split(' ') cuts an empty text into one empty piece. split() without an argument gives "
                         "no piece at all."),
    },
    rules=(
        R(lambda case: (case.lengths != case.right["lengths"]).any(), _short, "Every piece between spaces gives one id."),
        R(_has_wrong(_new, _small), lambda case: _wrong_id(case, _new), "Only training texts are counted; any other "
          "word is 1."),
        R(_has_wrong(_rare, _small), lambda case: _wrong_id(case, _rare), "It occurs fewer than min_freq times, so "
          "it is 1."),
        R(_has_wrong(_known, _small), lambda case: _wrong_id(case, _known), "It has an id: sort the words by "
          "(-count, word), put `<pad>` and `<unk>` before them, and count the positions from 0."),
        R(_has_wrong(lambda case, word: True), _wrong_id, "Texts in small letters come out right, so it is the "
          "capitals: a word is counted, sorted and looked up as written, 'Film' apart from 'film', and capitals "
          "come before small letters."),
    ),
    hints=(
        "Three steps: count, sort and number, look up. Print what you have after each.",
        "A word that is missing: ids.get(word, 1).",
        "Keep the words with counts[word] >= min_freq, sorted by key=lambda word: (-counts[word], word); number them from "
        "2.",
    ),
)

# ---------------------------------------------------------------- 2.3 repair: there and back

def make_coder(texts):
    counts = Counter(word for text in texts for word in words(text.lower()))
    vocabulary = ["<pad>", "<unk>"] + sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: i for i, word in enumerate(vocabulary)}

    def encode(text):
        return [ids.get(word, 1) for word in words(text.lower())]       # as it was counted

    def decode(numbers):
        return " ".join(vocabulary[i] for i in numbers)

    return encode, decode


def _coder(counting=str.lower, encoding=str.lower, afterwards=str, unknown=1):
    """Coders that prepare the text in other ways, for counting and for encoding."""
    def make(texts):
        counts = Counter(word for text in texts for word in words(counting(text)))
        frequent = sorted(counts, key=lambda word: (-counts[word], word))
        vocabulary = ["<pad>", "<unk>"] + [afterwards(word) for word in frequent]
        ids = {word: i for i, word in enumerate(vocabulary)}

        def encode(text):
            rows = [ids.get(word, unknown) for word in words(encoding(text))]
            return [i for i in rows if i is not None]

        return encode, lambda numbers: " ".join(vocabulary[i] for i in numbers)
    return make


def coder_probes(generator: torch.Generator) -> list[tuple]:
    """(texts to learn from, new texts): words in several spellings, whose counts differ; new texts have a new word."""
    a, b, c, d, e = drawn(generator, NOUNS, 5)
    A, B, C, D = (word.capitalize() for word in (a, b, c, d))
    one = ([f"{A} and {b}! {B}, {B} or {C}?", f"{c.upper()}: {a} and {C}, {c} and {C.swapcase()}.",
            f"The {d} IS the {d} on Kantstraße"],
           [f"{C} and the {e}", f"{D} or {b.upper()}, {A}!"])
    two = ([f"{D}... {d}, {D} or {a}?", f"And {b}, AND {b}, and {c.upper()}! {A}"],
           [f"{b} {c} {D} {e.upper()}", f"{A} {B}"])
    return [one, two]


def observe_coder(function, texts, new):
    """Ids of the training texts, of new texts and of these in small letters; the first one decoded; ids 2 to 9 decoded."""
    output = function(texts)
    if output is None:
        return None
    encode, decode = pair_of(output, "two functions, encode and decode")
    if not callable(encode) or not callable(decode):
        raise TypeError(f"expected two functions, encode and decode, got {what(output)}")
    small = [text.lower() for text in new]
    rows = [" ".join(str(whole_id(i)) for i in items_of(encode(text), "ids from encode")) for text in [*texts, *new, *small]]
    return {"training": "|".join(rows[: len(texts)]), "new": "|".join(rows[len(texts) : -len(small)]),
            "small": "|".join(rows[-len(small) :]), "back": str(decode(encode(texts[0]))), "first": _first_words(decode)}


def _first_words(decode) -> str:
    """Ids 2 to 9 decoded; '' from a vocabulary that isn't as long."""
    try:
        return str(decode(list(range(2, 10))))
    except (IndexError, KeyError):
        return ""


def _ids(rows: str) -> list[list[int]]:
    return [[int(i) for i in row.split()] for row in rows.split("|")]


def _unknown_share(case: Case) -> str:
    rows = _ids(case.training)
    ids = sum(rows, [])
    if "<unk>" not in case.back:
        text, row = next(((text, row) for text, row in zip(case.inputs[0], rows) if 1 in row), (case.inputs[0][0], rows[0]))
        return (f"{ids.count(1)} of {len(ids)} tokens of the training texts themselves get the id 1; {text!r} gets the "
                f"ids {row}.")
    return (f"{ids.count(1)} of {len(ids)} tokens of the training texts themselves are unknown; {case.inputs[0][0]!r} "
            f"comes back as {case.back!r}.")


def _two_spellings(case: Case) -> str:
    for text, got, small in zip(case.inputs[1], _ids(case.new), _ids(case.small)):
        if got != small:
            return f"{text!r} gets the ids {got}, and {text.lower()!r} {small}."
    return _back(case)


def _new_ids(case: Case) -> str:
    for text, got, right in zip([*case.inputs[0], *case.inputs[1]], _ids(case.training + "|" + case.new),
                                _ids(case.right["training"] + "|" + case.right["new"])):
        if got != right:
            return f"{text!r} gets the ids {got}, expected {right}."
    return _back(case)


def _odd_length(case: Case) -> tuple | None:
    """The first text that gets too few or too many ids: the text, the ids, the right ids."""
    rows = zip([*case.inputs[0], *case.inputs[1]], _ids(case.training + "|" + case.new),
               _ids(case.right["training"] + "|" + case.right["new"]))
    return next((row for row in rows if len(row[1]) != len(row[2])), None)


def _lengths(case: Case) -> str:
    text, got, right = _odd_length(case)
    return f"{text!r} has {len(right)} tokens, and gets {len(got)} ids, {got}."


def _back(case: Case) -> str:
    return f"{case.inputs[0][0]!r} comes back as {case.back!r}, expected {case.right['back']!r}."


CODER = ask(
    "2.3", make_coder,
    given="encode-keeps-capitals", observe=observe_coder, probes=coder_probes,
    signature="make_coder(texts (list of texts)) -> encode (a text -> list of ids), decode (ids -> a text in small letters)",
    mistakes={
        "encode-keeps-capitals": M(_coder(encoding=str), _unknown_share, "The words were counted in small letters and "
                                   "are looked up as written. Training and use must prepare a text in the same way."),
        "capitals-everywhere": M(_coder(counting=str, encoding=str), _two_spellings, "No training word is unknown any "
                                 "more, but 'Film' and 'film' are two words now. Put the small letters back where words "
                                 "are counted, and use them in encode too."),
        "first-letter-only": M(_coder(encoding=lambda text: text[:1].lower() + text[1:]), _unknown_share,
                               "You lower-cased only the first letter of the text. There are capitals in the middle of a "
                               "text as well."),
        "both-counted": M(_coder(counting=lambda text: f"{text} {text.lower()}"), _new_ids, "You counted words both as "
                          "written and in small letters. So the counts are wrong, and different spellings take up ids of "
                          "their own."),
        "lowered-after-counting": M(_coder(counting=str, afterwards=str.lower), _new_ids, "You lower-cased the words "
                                    "after counting them. 'Film' and 'film' were counted apart, and one of their two "
                                    "positions in the list is lost."),
        "folded-in-encode": M(_coder(encoding=str.casefold), _unknown_share, "encode uses casefold and the counting lower. "
                              "They differ: casefold makes 'ss' of 'ß'. Prepare the text in the same way in both places."),
        "unknown-dropped": M(_coder(unknown=None), _new_ids, "A new word is left out. It is part of the text and must "
                             "become 1."),
        "encode-in-capitals": M(_coder(encoding=str.upper), _unknown_share, "The vocabulary is in small letters, and "
                                "encode looks up capitals: only punctuation is found."),
    },
    rules=(
        R(lambda case: 1 in sum(_ids(case.training), []), _unknown_share, "Every word of the training texts was "
          "counted, so every one must have an id of its own, from 2 on."),
        R(lambda case: case.new != case.small, _two_spellings, "'Film' and 'film' must be one word."),
        R(lambda case: _odd_length(case) is not None, _lengths, "Every word and every punctuation character "
          "gives one id, the last of a text too: use `words` for counting and in encode."),
        R(lambda case: any(case.got[name] != case.right[name] for name in ("new", "training")), _new_ids,
          "Count small letters, the most frequent first, ties by the alphabet; a new word is 1."),
        R(lambda case: case.first != case.right["first"], lambda case: f"the ids 2 to 9 decode to {case.first!r}, "
          f"expected {case.right['first']!r}.", "decode was right as you got it: it gives the tokens in "
          "small letters, one for each id, with a space between every two."),
        R(lambda case: case.back != case.right["back"], _back, "decode was right: words in small letters with a "
          "space between them."),
    ),
    hints=(
        "Run encode on one of the training texts. Which of its words get 1?",
        "Compare the line that counts with the line that looks up. What does each do to the text before `words`?",
        "words(text.lower()) in encode as well.",
    ),
)

# ---------------------------------------------------------------- 2.13 halve the range

def smallest(fits, high):
    low = 0                                             # too few; high fits
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high


class _NoEnd(Exception):
    """Stops an answer that asks and asks."""


def _jumps(fits, high):
    """Doubles until it fits."""
    size = 1
    while not fits(size):
        size *= 2
    return size


def _halves(fits, high):
    """Halves as long as the half fits."""
    while high > 1 and fits(high // 2):
        high //= 2
    return high


def _last_asked(fits, high):
    low = middle = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return middle or high


def _twelve_rounds(fits, high):
    """As many rounds as 2,707 sizes need, whatever the range."""
    low = 0
    for _ in range(12):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def range_probes(generator: torch.Generator) -> list[tuple]:
    """(the smallest size that fits, high): the example; a single size; the ends of a range, and sizes inside it."""
    def between(low, high):
        return int(torch.randint(low, high, (1,), generator=generator))

    return [(6, 10), (between(700, 1200), 2707), (between(1400, 2600), 2707), (1, 1), (1, between(20, 40)), (2, 2), (32, 32),
            (between(33, 60), 64), (between(70, 90), 200), (between(400, 500), 2000)]


def observe_range(function, answer, high):
    """The size found, and whether it was found with few questions; how many, if not, and of what kind.

    Raises TypeError for a question that isn't about a whole number of ids, and for the result of an inner call that's lost.
    """
    asked, inner = [], []

    def fits(size):
        if isinstance(size, (bool, str)) or not hasattr(size, "__index__"):
            raise TypeError(f"fits needs a whole number of ids, such as 5, and your function asks about {what(size)}. For "
                            "the middle divide with //, which gives whole numbers")
        asked.append(size)
        inner.append(_called_by_itself(sys._getframe(1)))
        if len(asked) > 3 * high + 3000:
            raise _NoEnd
        return size >= answer

    try:
        output = function(fits, high)
    except _NoEnd:
        return {"size": -1, "asked": f"no end: {asked[-1]}"}
    if output is None and any(inner):
        raise TypeError("expected the smallest size, but nothing comes back: your function calls itself, and what the inner "
                        "call returns is lost. Write `return` before each of these calls")
    return None if output is None else {"size": whole_size(output), "asked": _how_asked(asked, high)}


def _called_by_itself(frame) -> bool:
    """Whether the function of a frame is running further out as well."""
    code, frame = frame.f_code, frame.f_back
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


ABOVE, STILL, IN_A_ROUND = "above high", "in the end about the same one", "two or three times a round"


def _how_asked(asked: list[int], high: int) -> str:
    """'few', as halving does; else what is wrong with the questions, or how many they are."""
    if max(asked, default=0) > high:
        return ABOVE
    if len(asked) <= high.bit_length() + 2:
        return "few"
    steps = [abs(one - other) for one, other in zip(asked, asked[1:])]
    kind = ""
    if steps[-2:] == [0, 0]:
        kind = f", {STILL}"
    elif (high > 1000 and len(asked) <= 3 * high.bit_length() + 3
          and max(steps) > 1 and 3 * sum(step <= 1 for step in steps) >= len(steps)):
        kind = f", {IN_A_ROUND}"
    return f"{len(asked)} times{kind}"


def whole_size(output) -> int:
    """A size as an int. Raises TypeError for what isn't one whole number."""
    if isinstance(output, (bool, str)) or not hasattr(output, "__index__"):
        raise TypeError(f"expected a whole number, the smallest size that fits, got {what(output)}")
    return int(output)


def _found_size(case: Case) -> str:
    answer, high = case.inputs
    return (f"of the sizes 1 to {high}, where {answer} is the smallest that fits, you find {int(case.size)}, expected "
            f"{answer}.")


def _questions(case: Case) -> str:
    return (f"you find the right size, {case.inputs[0]} of 1 to {case.inputs[1]}, and ask fits {case.asked}; halving needs "
            f"{(case.inputs[1] - 1).bit_length()} questions.")


def _above(case: Case) -> str:
    if case.asked != ABOVE:
        raise ValueError("this one asks about sizes up to high")
    return f"with high={case.inputs[1]} you ask about sizes above it."


def _no_end(case: Case) -> str:
    again = case.asked.removeprefix("no end: ")
    return (f"with the sizes 1 to {case.inputs[1]}, of which {case.inputs[0]} is the answer, your loop doesn't end: it asks "
            f"about {again} again and again.")


RANGE = ask(
    "2.13", smallest, observe=observe_range, probes=range_probes,
    signature="smallest(fits (a function: size -> True or False), high (a size that fits)) -> the smallest size that fits",
    mistakes={
        "too-few": M({"return high": "return low"}, _found_size, "That's the largest size that does *not* fit. When the two "
                     "ends are neighbours, the upper one is the answer."),
        "halves-exchanged": M({"fits(middle)": "not fits(middle)"}, _found_size,
                              "You go on in the wrong half. If the middle fits, it's the new upper end, and the answer "
                              "isn't above it."),
        "stops-early": M({"high - low > 1": "high - low > 2"}, _found_size, "You stop while there's still a size between "
                         "the two ends. Go on until they are neighbours."),
        "middle-left-out": M({"high = middle": "high = middle - 1"}, _found_size, "You throw a middle away that fits, and "
                             "it may be the answer itself: it's the new upper end."),
        "answer-passed": M({"low = middle": "low = middle + 1"}, _found_size, "Your lower end is a size that doesn't fit. "
                           "middle + 1 may fit, and be the answer: then it's never asked about."),
        "last-asked": M(_last_asked, _found_size, "You return the size that you asked about "
                        "last, and it may not fit. The answer is the upper end."),
        "once": M(lambda fits, high: high // 2 if high > 1 and fits(high // 2) else high, _found_size, "You halve the range "
                  "once. Go on with the half that's left, until one size is left in it."),
        "all-of-it": M(lambda fits, high: high, _found_size, "That's `high` itself, which is enough, but seldom the "
                       "smallest."),
        "doubled": M(_jumps, _found_size, "You double the size until it fits. That finds a size that fits, not the "
                     "smallest. You know both ends already, 0 and `high`: ask about their middle."),
        "high-halved": M(_halves, _found_size, "You halve `high` as long as its half fits. Where the half doesn't fit, the "
                         "answer still lies between the two: keep both ends, and ask about their middle."),
        "fixed-rounds": M(_twelve_rounds, _questions, "The number of rounds is fixed. Here that's too many, and for a "
                          "larger range it would be too few: go on while the two ends aren't neighbours."),
        "high-ignored": M(lambda fits, high: smallest(fits, 2707), _above, "Your range has an end of its own. Begin with "
                          "`high`, whatever it is."),
        "one-by-one": M(lambda fits, high: next(size for size in range(1, high + 1) if fits(size)), _questions, "You ask "
                        "about one size after the other. Each question reads the whole validation split, so ask about the "
                        "middle, and half of the range is settled."),
        "no-end": M({"high - low > 1": "high > low"}, _no_end, "When low and high are neighbours, their middle is low once "
                    "more, and nothing changes any longer. Stop there: while high - low > 1."),
    },
    rules=(
        R(lambda case: case.asked.startswith("no end"), _no_end, "Each question must make the range smaller, and the loop "
          "ends when the two ends are neighbours."),
        R(lambda case: case.size != case.right["size"], _found_size, "Keep two ends: low, which doesn't fit, and high, "
          "which does. The middle becomes one of them."),
        R(lambda case: case.asked == ABOVE, _above, "`high` fits, and nothing above it can be the smallest."),
        R(lambda case: STILL in case.asked, _questions, "You go on when the answer is known. Stop when the two ends are "
          "neighbours."),
        R(lambda case: IN_A_ROUND in case.asked, _questions, "One question about the middle is enough in each round: "
          "whether the size below it fits, a later round finds out. Keep the answer in a variable if you need it twice."),
        R(lambda case: case.asked != "few", _questions, "Ask about the middle of what's left: each answer settles half of "
          "it."),
    ),
    hints=(
        "Two numbers say where you are: low doesn't fit, high does. At the start low is 0.",
        "Ask about middle = (low + high) // 2. If it fits, it's the new high, else the new low.",
        "while high - low > 1: and at the end, return high.",
    ),
)

# ---------------------------------------------------------------- 2.12 which verdicts are gone

def verdicts_lost(reviews, encode):
    ids = [encode(review["text"]) for review in reviews]
    same = [(i, j) for j in range(len(ids)) for i in range(j)
            if ids[i] == ids[j] and reviews[i]["label"] != reviews[j]["label"]]
    blind = [i for i, review in enumerate(reviews)
             if all(number == 1 for start, end in review["evidence"] for number in encode(review["text"][start:end]))]
    return same, blind


def _losing(equal=lambda one, other: one == other, labels=lambda one, other: one != other, where=lambda i, j: i < j,
            blind=lambda pieces, text: all(number == 1 for piece in pieces for number in piece)):
    """`verdicts_lost` with another rule for pairs, from ids, labels and numbers, or for blind reviews, from their ids."""
    def lose(reviews, encode):
        ids = [encode(review["text"]) for review in reviews]
        numbers = range(len(ids))
        same = [(i, j) for i in numbers for j in numbers if i != j and where(i, j) and equal(ids[i], ids[j])
                and labels(reviews[i]["label"], reviews[j]["label"])]
        pieces = [[encode(review["text"][start:end]) for start, end in review["evidence"]] for review in reviews]
        return same, [i for i in numbers if blind(pieces[i], ids[i])]
    return lose


def _first_only(reviews, encode):
    """A dict keeps the first review of each list of ids, and later ones are compared with that alone."""
    first, same = {}, []
    for j, review in enumerate(reviews):
        i = first.setdefault(tuple(encode(review["text"])), j)
        if reviews[i]["label"] != review["label"]:
            same.append((i, j))
    return same, verdicts_lost(reviews, encode)[1]


def _twins_only(reviews, encode):
    """Compares a review with those alone that have the same words in another order."""
    same, blind = verdicts_lost(reviews, encode)
    spelt = [sorted(words(review["text"])) for review in reviews]
    return [(i, j) for i, j in same if spelt[i] == spelt[j]], blind


def _joined_without_space(reviews, encode):
    """Puts the pieces of the evidence together without a space."""
    joined = ["".join(review["text"][start:end] for start, end in review["evidence"]) for review in reviews]
    return verdicts_lost(reviews, encode)[0], [i for i, text in enumerate(joined) if set(encode(text)) == {1}]


def _first_words_equal(one, other) -> bool:
    return all(a == b for a, b in zip(one, other))


def _without_unknown(one, other) -> bool:
    return [i for i in one if i != 1] == [i for i in other if i != 1]


def _a_review(tokens: list[str], label: int, *pieces: tuple[int, int]) -> dict:
    """A review of some tokens; each piece of its evidence goes from one token up to another, without it."""
    text, spans = "", []
    for token in tokens:
        text += " " if text and token.isalnum() else ""                 # no space before a comma
        spans.append((len(text), len(text) + len(token)))
        text += token
    return {"text": text, "label": label, "evidence": [(spans[first][0], spans[last - 1][1]) for first, last in pieces]}


def lost_probes(generator: torch.Generator) -> list[tuple]:
    """(reviews, encode): equal ids with equal and with opposite labels, the same ids in another order, with a word more,
    without the unknown ones; evidence of one and several pieces, of which none, some or all is known.

    Then a single review without known evidence, two without any loss, two whose evidence ends at a comma, and twins that
    share their ids with a third.
    """
    a, b, c, f, g, h = drawn(generator, NOUNS, 6)
    numbers = {token: i for i, token in enumerate((a, b, c, ","), start=2)}

    def encode(text):
        return [numbers.get(token, 1) for token in words(text)]

    many = [_a_review([a, f, b], 1, (1, 2)), _a_review([a, g, b], 0, (1, 2)), _a_review([b, a, f], 0, (1, 2)),
            _a_review([a, h, b], 1, (0, 2)), _a_review([a, f, b, c], 0, (1, 2), (3, 4)), _a_review([a, b], 0, (0, 1)),
            _a_review([h, h, f], 0, (0, 2), (2, 3)), _a_review([h, g, f], 1, (1, 2)), _a_review([c, g], 1, (0, 1), (1, 2)),
            _a_review([b, c], 1, (0, 1), (1, 2))]
    order = torch.randperm(len(many), generator=generator).tolist()
    commas = [_a_review([f, ",", a], 1, (0, 1)), _a_review([a, g, ",", b], 0, (0, 2))]
    twins = [_a_review([f, a, g], 1, (0, 1)), _a_review([g, a, f], 0, (0, 1)), _a_review([h, a, g], 0, (0, 1))]
    return [(many, encode), ([many[i] for i in order], encode), ([many[0]], encode), ([many[5], many[8]], encode),
            (commas, encode), (twins, encode)]


def observe_lost(function, reviews, encode):
    """Which pairs and which reviews were named, and how often; the order within a pair doesn't matter.

    Raises TypeError for the two lists swapped.
    """
    output = function(reviews, encode)
    if output is None:
        return None
    same, blind = (_kept(part) for part in pair_of(output, "two lists, same and blind"))
    if blind and all(isinstance(part, (list, tuple)) for part in blind):
        raise TypeError("expected same first, the pairs, and then blind, the numbers of reviews; you return them the "
                        "other way round")
    pairs, dark = torch.zeros(len(reviews), len(reviews)), torch.zeros(len(reviews))
    for pair in items_of(same, "a list of pairs (i, j) as same"):
        i, j = sorted(_review_number(i, len(reviews)) for i in pair_of(pair, "pairs (i, j) in same"))
        pairs[i, j] += 1
    for i in items_of(blind, "a list of numbers as blind"):
        dark[_review_number(i, len(reviews))] += 1
    return {"same": pairs, "blind": dark}


def _kept(part):
    """What later cells count and sort. Raises TypeError for a tensor, an array and what can be read only once."""
    if not isinstance(part, (list, tuple, set)):
        raise TypeError(f"expected two lists, same and blind, got {what(part)} for one of them")
    return part


def _review_number(number, count: int) -> int:
    if isinstance(number, (dict, str)) or not 0 <= (found := whole_id(number)) < count:
        raise TypeError(f"expected the numbers of reviews, counted from 0, so up to {count - 1}, got {what(number)}")
    return found


def _times_named(count: float) -> str:
    return {0: "isn't", 1: "is"}.get(int(count), f"is {int(count)} times there")


def _one_pair(case: Case) -> str:
    """The first pair that is named and shouldn't be, or the other way round."""
    i, j = (case.same != case.right["same"]).nonzero()[0].tolist()
    reviews, encode = case.inputs
    one, other = (f"{reviews[k]['text']!r} (label {reviews[k]['label']}, ids {encode(reviews[k]['text'])})" for k in (i, j))
    return f"the pair of {one} and {other} {_times_named(case.same[i, j])} in same."


def _one_blind(case: Case) -> str:
    """The first review that is called blind and isn't, or the other way round."""
    i = int((case.blind != case.right["blind"]).nonzero()[0])
    review, encode = case.inputs[0][i], case.inputs[1]
    pieces = [review["text"][start:end] for start, end in review["evidence"]]
    return (f"{review['text']!r} with the evidence {pieces}, whose ids are {[encode(piece) for piece in pieces]}, "
            f"{_times_named(case.blind[i])} in blind.")


LOST = ask(
    "2.12", verdicts_lost,
    observe=observe_lost, probes=lost_probes,
    signature="verdicts_lost(reviews (list of dicts with text, label, evidence), encode (a text -> ids)) -> same (pairs of "
    "numbers), blind (numbers)",
    mistakes={
        "labels-ignored": M(_losing(labels=lambda one, other: True), _one_pair, "Two reviews of one label may share their "
                            "ids: one answer is right for both. Only opposite labels lose a verdict."),
        "order-ignored": M(_losing(equal=lambda one, other: sorted(one) == sorted(other)), _one_pair, "You compare which "
                           "ids there are, and not their order. A model that reads the order can still separate them."),
        "unknown-dropped": M(_losing(equal=_without_unknown), _one_pair, "You compare without the unknown tokens. A 1 "
                             "keeps its position, and it counts."),
        "prefix": M(_losing(equal=_first_words_equal), _one_pair, "zip stops at the end of the shorter list. Lists of "
                    "different lengths are different: compare them with ==."),
        "each-pair-twice": M(_losing(where=lambda i, j: True), _one_pair, "Each pair is there twice, as (i, j) and as "
                             "(j, i). Let i be smaller than j."),
        "first-only": M(_first_only, _one_pair, "You compare with one earlier review of these ids, the one that your dict "
                        "keeps. Several earlier reviews may have them: keep a list of their numbers."),
        "neighbours-only": M(_losing(where=lambda i, j: j == i + 1), _one_pair, "You compare each review with the next one "
                             "alone. Twins may be anywhere: compare every two."),
        "twins-only": M(_twins_only, _one_pair, "You compare a review with its twins alone, those of the same words. Two "
                        "reviews of *different* words become the same ids too, once these words are unknown: compare "
                        "every two."),
        "any-unknown": M(_losing(blind=lambda pieces, text: any(1 in piece for piece in pieces)), _one_blind, "You count "
                         "reviews with *some* unknown evidence. One known token may be enough: blind are those without "
                         "any."),
        "first-piece-only": M(_losing(blind=lambda pieces, text: all(i == 1 for i in pieces[0])), _one_blind, "You look at "
                              "the first piece of the evidence. There may be several, and all must be unknown."),
        "last-piece-only": M(_losing(blind=lambda pieces, text: all(i == 1 for i in pieces[-1])), _one_blind, "You look at "
                             "the last piece of the evidence. There may be several, and all must be unknown."),
        "whole-piece-unknown": M(_losing(blind=lambda pieces, text: any(set(piece) == {1} for piece in pieces)), _one_blind,
                                 "One piece without a known token isn't enough: all pieces have to be like that."),
        "joined-without-space": M(_joined_without_space, _one_blind, "You join the pieces without a space before you encode "
                                  "them, and two known words become one that nobody knows. Encode each piece by itself."),
        "whole-text": M(_losing(blind=lambda pieces, text: all(i == 1 for i in text)), _one_blind, "You look at all tokens "
                        "of the text. A review is blind if its *evidence* is gone, whatever else is known."),
        "end-included": M({'review["text"][start:end]': 'review["text"][start:end + 1]'}, _one_blind, "You take one "
                          "character more than the evidence has, and here that's a comma, which is known. `end` is the "
                          "first character *after* the piece, so text[start:end] is all of it."),
        "zero-is-unknown": M(_losing(blind=lambda pieces, text: all(i == 0 for piece in pieces for i in piece)), _one_blind,
                             "0 is `<pad>`; an unknown token is 1."),
    },
    rules=(
        R(lambda case: (case.same != case.right["same"]).any(), _one_pair, "A pair belongs there if the labels differ and "
          "the lists of ids are equal, each such pair once."),
        R(lambda case: (case.blind != case.right["blind"]).any(), _one_blind, "A review belongs there if every id of every "
          "piece of its evidence is 1."),
    ),
    hints=(
        "First the ids of all texts, once. Then two loops, i over all numbers and j over those after i.",
        "A piece of evidence is review[\"text\"][start:end]; encode takes it like any text.",
        "same: ids[i] == ids[j] and reviews[i][\"label\"] != reviews[j][\"label\"]. blind: all(number == 1 for start, "
        "end in review[\"evidence\"] for number in encode(review[\"text\"][start:end])).",
    ),
)

# ---------------------------------------------------------------- 2.4 padding on the left

def pad_left(rows, pad_id):
    seq_len = max(len(row) for row in rows)
    token_ids = torch.tensor([[pad_id] * (seq_len - len(row)) + row for row in rows])     # (batch, seq_len)
    lengths = torch.tensor([len(row) for row in rows])                                    # (batch,)
    attention_mask = torch.arange(seq_len) >= seq_len - lengths[:, None]                  # (batch, seq_len)
    return token_ids, attention_mask


def _padded(mask=None, ids=None):
    """pad_left with another mask, made from (token_ids, mask, rows, pad_id), or other ids, from (rows, pad_id)."""
    def pad(rows, pad_id):
        token_ids, right = pad_left(rows, pad_id)
        token_ids = token_ids if ids is None else ids(rows, pad_id)
        return token_ids, right if mask is None else mask(token_ids, right, rows, pad_id)
    return pad


def _minus_zero(token_ids, right, rows, pad_id):
    mask = torch.zeros_like(right)
    for i, row in enumerate(rows):
        mask[i, -len(row):] = True
    return mask


def padding_probes(generator: torch.Generator) -> list[tuple]:
    """(rows, pad_id): ragged rows, one of them empty; an id 0 that is real; a real pad_id, inside a row and as its first.

    Then one row of one id, and rows of one length.
    """
    def row(length):
        return torch.randint(2, 60, (length,), generator=generator).tolist()

    return [([row(5), row(2), [], row(3)], 0), ([[0, 63, 5, *row(1)], row(1), [7, 0], row(6)], 63),
            ([[62, *row(2)], row(7)], 62), ([row(1)], 0), ([row(3), row(3)], 100)]


def observe_padding(function, rows, pad_id):
    try:
        output = function(rows, pad_id)
    except (RuntimeError, ValueError, IndexError) as error:
        if "expanded size" not in str(error) or all(rows):
            raise
        raise TypeError("expected the empty row to become nothing but padding, but your function stops there: for a row of "
                        "0 ids, [-0:] means all places, not none, and nothing fits into them. Count from the front: "
                        "[seq_len - len(row):]") from None
    if output is None:
        return None
    ids, mask = pair_of(output, "token_ids and attention_mask")
    mask = _rectangle(mask, "attention_mask")
    if not torch.isfinite(mask).all():
        raise TypeError("expected True and False in attention_mask, got numbers that are infinite or NaN")
    ids = _rectangle(ids, "token_ids")
    if ids.is_floating_point():
        raise TypeError("expected whole numbers as token_ids, because an embedding can't look up anything else; got "
                        f"{ids.dtype}. torch.tensor([]) is a float tensor, and a float tensor makes all others float")
    return {"token_ids": ids, "attention_mask": mask}


def _rectangle(part, name: str) -> torch.Tensor:
    """A tensor, an array, or rows of equal length as one tensor."""
    try:
        if isinstance(part, (list, tuple)) and any(isinstance(row, (torch.Tensor, np.ndarray)) for row in part):
            return torch.stack([torch.as_tensor(row) for row in part])
        part = torch.as_tensor(part)
        return part if part.is_nested or part.layout == torch.strided else part.to_dense()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"expected {name} as one tensor of numbers, all rows of one length, got {what(part)}") from None


def _odd_values(case: Case) -> torch.Tensor:
    """What the learner's mask holds besides 0 and 1."""
    mask = case.attention_mask
    return mask[(mask != 0) & (mask != 1)]


def _row(case: Case, name: str) -> str:
    """The first row of a part that is not right."""
    got, right = case.got[name], case.right[name]
    i = next(i for i in range(len(right)) if not torch.equal(got[i], right[i]))
    shown = [("T" if value else "F") if name == "attention_mask" else f"{value:g}" for value in got[i].tolist()]
    joined = " ".join(shown)
    return (f"the row {case.inputs[0][i]} (pad_id={case.inputs[1]}) becomes "
            f"{joined if name == 'token_ids' else 'the mask ' + joined}.")


def _sums(case: Case) -> str:
    return (f"your mask sums to {[int(n) for n in (case.attention_mask != 0).sum(dim=1)]} along its rows; the "
            f"lengths are {[len(row) for row in case.inputs[0]]}.")


PADDING = ask(
    "2.4", pad_left,
    observe=observe_padding, probes=padding_probes,
    signature="pad_left(rows (list of lists of ids), pad_id) -> token_ids (batch, seq_len), attention_mask (batch, seq_len)",
    mistakes={
        "padded-right": M(lambda rows, pad_id: pad_batch(rows, pad_id), lambda case: _row(case, "token_ids"),
                          "That is padding on the right, as in section 5. Here the padding comes before the row."),
        "mask-of-the-right": M(_padded(mask=lambda ids, right, rows, pad_id: right.flip(1)),
                               lambda case: _row(case, "attention_mask"), "The ids are on the right, but the mask still "
                               "marks the left: position < length is the rule for padding on the right. Which positions "
                               "are real here?"),
        "inverted": M(_padded(mask=lambda ids, right, rows, pad_id: ~right), _sums, "The mask is the other way round. "
                      "True means real, so that a row sums to its length."),
        "one-too-few": M({"torch.arange(seq_len) >= seq_len - lengths[:, None]":
                          "torch.arange(seq_len) > seq_len - lengths[:, None]"}, _sums, "One position too few counts as "
                         "real. The first real one is seq_len − length: `>=`, not `>`."),
        "not-zero": M(_padded(mask=lambda ids, right, rows, pad_id: ids != 0), lambda case: _row(case, "attention_mask"),
                      "The mask was guessed from `!= 0`. With a different pad_id that marks padding as real, and drops a "
                      "word whose id is 0. Make it from the lengths."),
        "not-pad_id": M(_padded(mask=lambda ids, right, rows, pad_id: ids != pad_id),
                        lambda case: _row(case, "attention_mask"), "The mask was guessed from `!= pad_id`, which drops a "
                        "real token with this id. Make it from the lengths."),
        "minus-zero": M(_padded(mask=_minus_zero), lambda case: _row(case, "attention_mask"), "All positions of the "
                        "empty row count as real. [-n:] does that: for n = 0 it means all positions, not none. Count "
                        "from the front: [seq_len - n:]."),
        "all-real": M(_padded(mask=lambda ids, right, rows, pad_id: torch.ones_like(right)), _sums,
                      "Everything counts as real, padding included."),
        "reversed": M(_padded(ids=lambda rows, pad_id: pad_left([row[::-1] for row in rows], pad_id)[0]),
                      lambda case: _row(case, "token_ids"), "The words are in reverse order. Only the padding should "
                      "move."),
        "padded-with-zero": M(_padded(ids=lambda rows, pad_id: pad_left(rows, 0)[0]),
                              lambda case: _row(case, "token_ids"), "You fill with 0 whatever pad_id is."),
    },
    rules=(
        R(lambda case: torch.equal(case.token_ids, case.right["attention_mask"]), lambda case:
          f"your first tensor contains {int(case.token_ids.sum())} ones and otherwise zeros: it is the mask.",
          "Return token_ids first, then attention_mask."),
        R(lambda case: (case.token_ids != case.right["token_ids"]).any(), lambda case: _row(case, "token_ids"),
          "Each row ends with its own ids, in their order, with pad_id before them."),
        R(lambda case: len(_odd_values(case)) > 0, lambda case: "your mask holds numbers such as "
          f"{_odd_values(case)[0]:g}.", "It should contain True and False, or 1 and 0, and nothing else."),
        R(lambda case: ((case.attention_mask != 0).sum(1) != case.right["attention_mask"].sum(1)).any(), _sums,
          "True means real, so each row of the mask sums to the length of the review."),
        R(lambda case: (case.attention_mask != case.right["attention_mask"]).any(), lambda case:
          _row(case, "attention_mask"), "It must be True exactly where the row's own ids are."),
    ),
    hints=(
        "Make the mask from the lengths alone, before you look at any id.",
        "The last len(row) of seq_len columns are real. At which position do they begin?",
        "torch.arange(seq_len) >= seq_len - lengths[:, None] is the mask; [pad_id] * (seq_len - len(row)) + row a row of "
        "ids.",
    ),
)

# ---------------------------------------------------------------- 2.7 a batch

def pad_batch(list_of_ids, pad_id):
    seq_len = max(len(ids) for ids in list_of_ids)
    rows = [ids + [pad_id] * (seq_len - len(ids)) for ids in list_of_ids]
    lengths = torch.tensor([len(ids) for ids in list_of_ids])                 # (batch,)
    attention_mask = torch.arange(seq_len) < lengths[:, None]                 # (batch, seq_len)
    return torch.tensor(rows), attention_mask


def batch_probes(generator: torch.Generator) -> list[tuple]:
    """(list_of_ids, pad_id): ragged rows, one of them empty; a real id 0; a real pad_id, inside a row and as its last id.

    Then a square, one row of one id, and rows of one length.
    """
    def row(length):
        return torch.randint(2, 60, (length,), generator=generator).tolist()

    return [([row(5), row(2), [], row(3)], 0), ([[*row(1), 0, 63, 5], row(1), [7, 0], row(6)], 63),
            ([[*row(2), 62], row(7)], 62), ([row(1), row(3), row(2)], 1), ([row(1)], 0), ([row(3), row(3)], 100)]


def _tensors(output):
    """What later cells compute with: two tensors. Raises TypeError for lists and arrays."""
    if output is not None:
        for part, name in zip(pair_of(output, "token_ids and attention_mask"), ("token_ids", "attention_mask")):
            if not isinstance(part, torch.Tensor):
                raise TypeError(f"expected {name} as a tensor, because later cells compute with it, got {what(part)}. "
                                "torch.tensor makes one of rows of equal length")
    return output


def observe_batch(function, list_of_ids, pad_id):
    """Both tensors, and what the mask holds. Raises TypeError for lengths that don't stand in a column."""
    try:
        output = observe_padding(lambda *inputs: _tensors(function(*inputs)), list_of_ids, pad_id)
        return output and output | {"holds": str(output["attention_mask"].dtype).removeprefix("torch.")}
    except ValueError as error:
        if "expected sequence of length" not in str(error):
            raise
        raise TypeError("expected rows of one width, but torch.tensor found rows of different lengths. Fill every row up to "
                        "the length of the longest list, which need not be the first") from None
    except RuntimeError as error:
        if "must match the size" not in str(error):
            raise
        lengths, width = len(list_of_ids), max(len(ids) for ids in list_of_ids)
        raise TypeError(f"expected a mask of shape ({lengths}, {width}), but your function compares shapes that don't fit. "
                        f"{lengths} lengths against {width} positions have to stand in a column: lengths[:, None]") from None


POSITIONS, ROWS = "torch.arange(seq_len) < lengths[:, None]", "ids + [pad_id] * (seq_len - len(ids))"


def _mask_row(case: Case) -> str:
    return _row(case, "attention_mask")


def _ids_row(case: Case) -> str:
    return _row(case, "token_ids")


PAD_BATCH = ask(
    "2.7", pad_batch, observe=observe_batch, probes=batch_probes,
    signature="pad_batch(list_of_ids (list of lists of ids), pad_id) -> token_ids (batch, seq_len), attention_mask (batch, "
    "seq_len), True or False",
    mistakes={
        "padded-left": M(lambda list_of_ids, pad_id: pad_left(list_of_ids, pad_id), _ids_row, "You fill up on the left. "
                         "Here every row begins in the first column, and the padding comes behind it. (Exercise 2.4 has "
                         "the other side.)"),
        "inverted": M({POSITIONS: "torch.arange(seq_len) >= lengths[:, None]"}, _sums, "The mask is the other way round. "
                      "True means real, so that a row sums to its length."),
        "one-too-many": M({POSITIONS: "torch.arange(seq_len) <= lengths[:, None]"}, _sums, "One position too many counts as "
                          "real. Positions start at 0, so the last real one is length − 1: `<`, not `<=`."),
        "one-too-few": M({POSITIONS: "torch.arange(1, seq_len + 1) < lengths[:, None]"}, _sums, "One position too few "
                         "counts as real. Positions start at 0, and the last real one is length − 1."),
        "not-zero": M({POSITIONS: "torch.tensor(rows) != 0"}, _mask_row, "The mask was guessed from `!= 0`. With another "
                      "pad_id that marks padding as real, and drops a token whose id is 0. Make it from the lengths."),
        "not-pad_id": M({POSITIONS: "torch.tensor(rows) != pad_id"}, _mask_row, "The mask was guessed from `!= pad_id`, "
                        "which drops a real token with this id. Make it from the lengths."),
        "all-real": M({POSITIONS: "torch.ones(len(rows), seq_len, dtype=torch.bool)"}, _sums, "Everything counts as real, "
                      "padding included."),
        "padded-with-zero": M({ROWS: "ids + [0] * (seq_len - len(ids))"}, _ids_row, "You fill with 0 whatever pad_id is."),
        "one-column-more": M({"max(len(ids) for ids in list_of_ids)": "max(len(ids) for ids in list_of_ids) + 1"},
                             lambda case: f"your table is {case.token_ids.shape[1]} positions wide, and the longest row has "
                             f"{case.right['token_ids'].shape[1]} ids.", "The longest row needs no padding: seq_len is its "
                             "length."),
    },
    rules=(
        R(lambda case: torch.equal(case.token_ids, case.right["attention_mask"]), lambda case: "your first tensor contains "
          f"{int(case.token_ids.sum())} ones and otherwise zeros: it is the mask.", "Return token_ids first, then "
          "attention_mask."),
        R(lambda case: (case.token_ids != case.right["token_ids"]).any(), _ids_row, "Each row begins with its own ids, in "
          "their order, with pad_id behind them."),
        R(lambda case: len(_odd_values(case)) > 0, lambda case: f"your mask holds numbers such as {_odd_values(case)[0]:g}.",
          "It should contain True and False and nothing else."),
        R(lambda case: ((case.attention_mask != 0).sum(1) != case.right["attention_mask"].sum(1)).any(), _sums, "True means "
          "real, so each row of the mask sums to the length of its list."),
        R(lambda case: (case.attention_mask != case.right["attention_mask"]).any(), _mask_row, "It must be True exactly "
          "where the row's own ids are."),
        R(lambda case: case.holds != "bool", lambda case: f"your mask is right but for its numbers: it holds {case.holds}.",
          "It must hold True and False. Later cells turn a mask round with `~`, which makes −2 of 1 and −1 of 0. The "
          "comparison `<` gives True and False by itself; `mask.bool()` makes them of 1 and 0."),
    ),
    hints=(
        "First the width, seq_len: the length of the longest list. Then the rows: row + [pad_id] * missing is a new list, "
        "and row += … would change the one you were given.",
        "The mask needs no loop: torch.arange(seq_len) are the positions, and a position is real if it's smaller than the "
        "length of its row.",
        "Lengths as a column against positions as a row: torch.arange(seq_len) < lengths[:, None], where lengths is a "
        "tensor, is (batch, seq_len).",
    ),
)

# ---------------------------------------------------------------- 2.5 order: from lists to a batch

def rules():
    # one right order is D C E A B F; F may also stand right after E, or between A and B
    return [("C", "E", "width-before-lengths"), ("E", "A", "padded-before-width"),
            ("E", "F", "mask-before-width"), ("A", "B", "tensor-before-padding"), ("D", "C", "lengths-before-cut")]


LINES = (
    "rows = [row + [0] * (width - len(row)) for row in rows]",
    "token_ids = torch.tensor(rows)                                     # (batch, seq_len)",
    "lengths = [len(row) for row in rows]",
    "rows = [row[:max_len] for row in rows]",
    "width = max(lengths)",
    "attention_mask = torch.arange(width) < torch.tensor(lengths)[:, None]    # (batch, seq_len)",
)


def _order(case: Case) -> str:
    return f"in {case.answer}"


BATCH = ask(
    "2.5", rules,
    kind="order", lines=LINES, signature="the six letters in order, such as \"A B C D E F\"",
    mistakes={
        "width-before-lengths": M(lambda: "D E C A B F",
                                  lambda case: f"{_order(case)}, E asks for the largest of the lengths before C has "
                                  "counted them.",
                                  "Python stops with a NameError, or, worse, takes what an earlier cell left."),
        "padded-before-width": M(lambda: "D C A E B F",
                                 lambda case: f"{_order(case)}, A fills up to a width that E has not found yet.",
                                 "Python stops with a NameError, or, worse, takes what an earlier cell left."),
        "lengths-before-cut": M(lambda: "C E D A B F",
                                lambda case: f"{_order(case)}, C counts the rows before D cuts them.",
                                "It runs, but lengths, width and mask are those of the long rows, and go beyond max_len."),
        "tensor-before-padding": M(lambda: "D C E B A F",
                                   lambda case: f"{_order(case)}, B makes a tensor before A has filled the rows up.",
                                   "A tensor is a rectangle; section 5 shows the error."),
        "mask-before-width": M(lambda: "D C F E A B",
                               lambda case: f"{_order(case)}, F compares with a width that E has not found yet.",
                               "Python stops with a NameError, or, worse, takes what an earlier cell left."),
    },
    rules=(),
    hints=(
        "First find out what each line needs that another line makes.",
        "C can run before D without an error. Which lengths would the mask then be made from?",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: nothing-unknown
  taught: "02"
  question: A colleague reports 0.0 % unknown words on the test split. What is the most likely explanation?
  options:
    - text: The vocabulary was counted on the test split as well.
      right: true
      remark: Then none of its words can be unknown, and the number says nothing about new texts.
    - text: The vocabulary was counted on training, with min_freq=1 and no limit to its size.
      remark: Then no word of the *training* texts is unknown. New texts bring new words at any size; ours over 1 %.
    - text: Words that occur only once were left out of the count, so they can't be unknown.
      remark: They are what becomes unknown first. Leaving words out of a vocabulary makes the rate rise.
- name: one-opinion-lost
  taught: "02"
  question: The vocabulary lacks 'dull' but has the other words. Can 'not dull but moving' and its twin become the same ids?
  options:
    - text: Yes, because one of the two opinions is lost.
      remark: Both opinions would have to be lost. Here 'moving' keeps its id and its position.
    - text: Only if 'not' is unknown too.
      remark: "'not' has the same position in both twins, so it makes no difference whether it's known."
    - text: No, as long as 'moving' is known.
      right: true
      remark: "One becomes 'not <unk> but moving', the other 'not moving but <unk>': different lists."
- name: which-size
  taught: "02"
  question: On the validation split 644 ids lose no pair, and 991 no evidence. A review without a twin has one deciding word,
    and its id would be 700. What happens to it with 644 ids?
  options:
    - text: It's safe, because no pair is lost.
      remark: That says something about reviews with a twin. For them one known opinion of two is enough.
    - text: It loses its verdict, though no count of pairs shows it.
      right: true
      remark: "The deciding word becomes <unk>, with other words that decide nothing. That's rare: in our test split it
        happens to 2 of 2,000 reviews. 991 ids would have kept the word."
    - text: It becomes the same ids as some review of the opposite label.
      remark: It would take another review with the same words everywhere else. Its verdict is gone without one.
- name: mask-sums
  taught: "02"
  question: "`attention_mask.sum(dim=1)` gives 0 for the longest review of every batch. What happened?"
  options:
    - text: These reviews are empty.
      remark: If the longest review of a batch were empty, all of its reviews would be.
    - text: The mask marks padding with True.
      right: true
      remark: Then the sum counts padding, and the longest review of a batch has none.
    - text: These reviews were cut at the maximum length.
      remark: That changes the width, not what the sum means. A row cut to the full width would sum to the width.
- name: other-rule
  taught: "02"
  question: A program lower-cases texts when it counts the vocabulary, but not when it encodes. What do you see first?
  options:
    - text: Unknown words in the training texts themselves.
      right: true
      remark: Every word of the training texts was counted, so all of them should be found. Encode one of these texts and
        count the 1s.
    - text: The same word gets two ids, one with a capital and one without.
      remark: The vocabulary holds small letters only, so the form with a capital has no id of its own. It becomes `<unk>`.
    - text: Nothing in the training texts, only more unknown words in new ones.
      remark: The training texts lose as much. Their words were counted in small letters, and are looked up as written.
- name: factors-in-order
  taught: "01"
  question: Suppose that the vocabulary contains every word. What does naive Bayes say about two reviews that have the
    same words in a different order?
  options:
    - text: It gives them opposite labels, as their authors meant them.
      remark: It never sees the order, so it has nothing to tell them apart by.
    - text: It gives both the same label, since a product doesn't depend on the order.
      right: true
      remark: It multiplies one factor for each word, and the same factors in a different order have the same product.
    - text: That depends on what the training split has shown it.
      remark: Different training reviews change the factors, but in the same way for both.
- name: sorted-file
  taught: "02"
  question: In a training file all negative reviews come first, then all positive ones. A `DataLoader` reads it with
    `shuffle=False`. What do the batches look like?
  options:
    - text: As with shuffle=True, since an epoch contains every review exactly once.
      remark: Each epoch has the same reviews either way. But the model takes a step after each batch, and it matters what
        stands in one.
    - text: The first epoch is in order, and later ones are mixed.
      remark: Without shuffle=True every epoch reads the list from its beginning to its end.
    - text: Almost all of them contain one label only.
      right: true
      remark: So half an epoch speaks for 'negative' alone, and the other half for 'positive'. The classifier of notebook 03,
        trained like that, calls every review positive.
"""

WARM_UP = """
- name: recall-by-hand
  taught: "01"
  question: Of 20 reviews, 12 are positive. A model calls 10 reviews positive, and is right about 9 of them. What is its
    recall?
  options:
    - text: 9 of 10
      remark: "That's its precision: how many of those it calls positive are positive. Recall asks how many of the
        positive ones it finds."
    - text: 9 of 12
      right: true
      remark: There are 12 to be found, and it finds 9.
    - text: 10 of 12
      remark: One of these 10 isn't positive, so it doesn't count as found.
- name: never-seen-together
  taught: "01"
  question: Naive Bayes counts without smoothing, and 'splendid' never occurred in a negative training review. How
    probable does it call 'negative' for a long, angry review that contains 'splendid' once?
  options:
    - text: Very probable, because all the other words outvote it.
      remark: Probabilities are multiplied. A factor of 0 can't be outvoted.
    - text: One half, since the word decides nothing.
      remark: A word decides nothing if it's equally frequent in both classes. This one has a count of 0 in one of them.
    - text: "0: one word has vetoed the rest."
      right: true
      remark: Its factor is 0 and makes the whole product 0. Smoothing adds a little to every count.
- name: row-against-column
  taught: "00"
  question: "`positions` has shape (4,) and `lengths` has shape (3, 1). What is the shape of `positions < lengths`?"
  options:
    - text: (3, 4)
      right: true
      remark: "Aligned at the right: 4 meets 1, and the missing size meets 3. Every position is compared with every length.
        Section 5 makes a mask like this."
    - text: (4, 3)
      remark: The last dimension of the result is where 4 meets 1, so it has size 4.
    - text: "There is none: 4 and 3 don't fit."
      remark: They never meet. Aligned at the right, the 4 meets the 1 and the 3 meets a missing size.
"""
