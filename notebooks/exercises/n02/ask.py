"""Exercises of notebook 02, tokenization. The answers are in `answers`."""

from collections import Counter

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n02 import probes

# ---------------------------------------------------------------- 2.1 how many tokens

def _count(case: Case) -> str:
    return f"{case.answer.item():g} tokens."


HOW_MANY = Exercise(
    kind="number", tolerance=1e-3, signature="one number: how many tokens",
    mistakes=(
        Mistake("cut-at-spaces", _count, "That's how many pieces there are between spaces. With our pattern "
                "punctuation makes tokens of its own, and the line break separates."),
        Mistake("word-characters", _count, "That is what `\\w+` gives: 'isn' and 't' apart, `br` as a word, and no "
                "punctuation. Read the second half of the pattern, after the `|`."),
        Mistake("marks-lost", _count, "That is the number of words alone. Punctuation makes tokens as well: `[^\\w\\s]`."),
        Mistake("hyphen-inside", _count, "That is the count with 'well-made' kept whole. Inside a word the pattern allows "
                "an apostrophe, but no hyphen."),
        Mistake("marks-together", _count, "That is the count with '!!' as one token. `[^\\w\\s]` has no plus after it: one "
                "character each."),
        Mistake("apostrophe-cut", _count, "That is the count with 'isn't' cut at its apostrophe. The pattern allows it "
                "inside a word."),
        Mistake("line-break-cut", _count, "That is the count with the parts of `<br />`. The pattern finds it as a whole, "
                "outside the parentheses, and throws it away."),
        Mistake("line-break-kept", _count, "That is the count with `<br />` as one token. It is found, but outside the "
                "parentheses: it separates, like a space."),
    ),
    properties=(
        Property(lambda case: case.answer < 14, _count, "There are more. Write them down one by one, punctuation too."),
        Property(lambda case: case.answer > 14, _count, "There are fewer. Write them down one by one and read the pattern "
                 "again from the left."),
    ),
    hints=(
        "Three things need care: the hyphen, the apostrophe, and the line break.",
        "'film,' is two tokens; 'well-made' three; '!!' two; `<br />` none.",
        "`words` counts for you: put the text into it and compare with your list.",
    ),
)

# ---------------------------------------------------------------- 2.2 a vocabulary, and what it does not know

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


VOCABULARY = Exercise(
    observe=probes.observe_ids, probes=probes.vocabulary_probes,
    signature="encode_texts(train (list of texts), texts (list of texts), min_freq) -> one list of ids for each of texts",
    mistakes=(
        Mistake("vocabulary-of-all", _wrong_id, "The words were counted on all texts. A word that never occurs in training "
                "must stay unknown, or the unknown rate of new texts is zero by construction (section 4)."),
        Mistake("unknown-is-padding", _wrong_id, "0 is `<pad>`, which a mask will hide; an unknown word is a real token, "
                "with id 1. (A Counter gives 0 for whatever it doesn't contain.)"),
        Mistake("unknown-dropped", _short, "Words without an id were left out. They are part of the text: each becomes 1."),
        Mistake("ties-by-appearance", _wrong_id, "Words of equal count are in the order in which they turned up "
                "(most_common does that). Break ties by the alphabet, so that the order of the texts changes no id."),
        Mistake("ties-reversed", _wrong_id, "Words of equal count are in reverse alphabetical order. Sorting with "
                "reverse=True reverses both rules; sort by (-count, word)."),
        Mistake("ties-without-capitals", _wrong_id, "Words of equal count were compared in small letters. Python's own "
                "order of strings puts every capital before the small letters: sort by the word as it is."),
        Mistake("min_freq-ignored", _wrong_id, "min_freq has no effect: a word that occurs less often must not get an id."),
        Mistake("more-than-min_freq", _wrong_id, "A word that occurs exactly min_freq times must get an id: >= and not >."),
        Mistake("rarest-first", _wrong_id, "The rarest words come first. The list must begin with the most frequent, so "
                "that its beginning is a smaller vocabulary (section 5)."),
        Mistake("alphabetical", _wrong_id, "The list follows the alphabet alone. It is sorted by count first; the alphabet "
                "decides ties."),
        Mistake("no-special-ids", _wrong_id, "The words begin at id 0. 0 and 1 are taken by `<pad>` and `<unk>`; the first "
                "word has id 2."),
        Mistake("texts-counted", _wrong_id, "You counted the texts in which a word occurs. Count every occurrence."),
        Mistake("lower-cased", _wrong_id, "You lower-cased the words. Here 'Film' and 'film' are two words; exercise 2.3 "
                "makes one of them."),
        Mistake("empty-piece", _short, "split(' ') cuts an empty text into one empty piece. split() without an argument "
                "gives no piece at all."),
    ),
    properties=(
        Property(lambda case: (case.lengths != case.right["lengths"]).any(), _short, "Every word gives one id."),
        Property(_has_wrong(_new, _small), lambda case: _wrong_id(case, _new), "Only training texts are counted; any other "
                 "word is 1."),
        Property(_has_wrong(_rare, _small), lambda case: _wrong_id(case, _rare), "It occurs fewer than min_freq times, so "
                 "it is 1."),
        Property(_has_wrong(_known, _small), lambda case: _wrong_id(case, _known), "It has an id: sort the words by "
                 "(-count, word), put `<pad>` and `<unk>` before them, and count the positions from 0."),
        Property(_has_wrong(lambda case, word: True), _wrong_id, "Texts in small letters come out right, so it is the "
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


CODER = Exercise(
    given="encode-keeps-capitals", observe=probes.observe_coder, probes=probes.coder_probes,
    signature="make_coder(texts (list of texts)) -> encode (a text -> list of ids), decode (ids -> a text in small letters)",
    mistakes=(
        Mistake("encode-keeps-capitals", _unknown_share, "The words were counted in small letters and are looked up as "
                "written. Training and use must prepare a text in the same way."),
        Mistake("capitals-everywhere", _two_spellings, "No training word is unknown any more, but 'Film' and 'film' are two "
                "words now. Put the small letters back where words are counted, and use them in encode too."),
        Mistake("first-letter-only", _unknown_share, "You lower-cased only the first letter of the text. There are "
                "capitals in the middle of a text as well."),
        Mistake("both-counted", _new_ids, "You counted words both as written and in small letters. So the counts are wrong, "
                "and different spellings take up ids of their own."),
        Mistake("lowered-after-counting", _new_ids, "You lower-cased the words after counting them. 'Film' and "
                "'film' were counted apart, and one of their two positions in the list is lost."),
        Mistake("unknown-dropped", _new_ids, "A new word is left out. It is part of the text and must become 1."),
        Mistake("encode-in-capitals", _unknown_share, "The vocabulary is in small letters, and encode looks up capitals: "
                "only punctuation is found."),
    ),
    properties=(
        Property(lambda case: 1 in sum(_ids(case.training), []), _unknown_share, "Every word of the training texts was "
                 "counted, so every one must have an id of its own, from 2 on."),
        Property(lambda case: case.new != case.small, _two_spellings, "'Film' and 'film' must be one word."),
        Property(lambda case: _odd_length(case) is not None, _lengths, "Every word and every punctuation character "
                 "gives one id, the last of a text too: use `words` for counting and in encode."),
        Property(lambda case: any(case.got[name] != case.right[name] for name in ("new", "training")), _new_ids,
                 "Count small letters, the most frequent first, ties by the alphabet; a new word is 1."),
        Property(lambda case: case.first != case.right["first"], lambda case: f"the ids 2 to 9 decode to {case.first!r}, "
                 f"expected {case.right['first']!r}.", "decode was right as you got it: it gives the tokens in "
                 "small letters, one for each id, with a space between every two."),
        Property(lambda case: case.back != case.right["back"], _back, "decode was right: words in small letters with a "
                 "space between them."),
    ),
    hints=(
        "Run encode on one of the training texts. Which of its words get 1?",
        "Compare the line that counts with the line that looks up. What does each do to the text before `words`?",
        "words(text.lower()) in encode as well.",
    ),
)

# ---------------------------------------------------------------- 2.4 padding on the left

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


PADDING = Exercise(
    observe=probes.observe_padding, probes=probes.padding_probes,
    signature="pad_left(rows (list of lists of ids), pad_id) -> token_ids (batch, seq_len), attention_mask (batch, seq_len)",
    mistakes=(
        Mistake("padded-right", lambda case: _row(case, "token_ids"), "That is padding on the right, as in section 7. Here "
                "the padding comes before the row."),
        Mistake("mask-of-the-right", lambda case: _row(case, "attention_mask"), "The ids are on the right, but the mask "
                "still marks the left: position < length is the rule for padding on the right. Which positions are real "
                "here?"),
        Mistake("inverted", _sums, "The mask is the other way round. True means real, so that a row sums to its length."),
        Mistake("not-zero", lambda case: _row(case, "attention_mask"), "The mask was guessed from `!= 0`. With a different "
                "pad_id that marks padding as real, and drops a word whose id is 0. Make it from the lengths."),
        Mistake("not-pad_id", lambda case: _row(case, "attention_mask"), "The mask was guessed from `!= pad_id`, which "
                "drops a real token with this id. Make it from the lengths."),
        Mistake("minus-zero", lambda case: _row(case, "attention_mask"), "All positions of the empty row count as "
                "real. [-n:] does that: for n = 0 it means all positions, not none (section 8 shows the trap). Count "
                "from the front: [seq_len - n:]."),
        Mistake("all-real", _sums, "Everything counts as real, padding included."),
        Mistake("reversed", lambda case: _row(case, "token_ids"), "The words are in reverse order. Only the padding "
                "should move."),
        Mistake("padded-with-zero", lambda case: _row(case, "token_ids"), "You fill with 0 whatever pad_id is."),
    ),
    properties=(
        Property(lambda case: torch.equal(case.token_ids, case.right["attention_mask"]), lambda case:
                 f"your first tensor contains {int(case.token_ids.sum())} ones and otherwise zeros: it is the mask.",
                 "Return token_ids first, then attention_mask."),
        Property(lambda case: (case.token_ids != case.right["token_ids"]).any(), lambda case: _row(case, "token_ids"),
                 "Each row ends with its own ids, in their order, with pad_id before them."),
        Property(lambda case: len(_odd_values(case)) > 0, lambda case: "your mask holds numbers such as "
                 f"{_odd_values(case)[0]:g}.", "It should contain True and False, or 1 and 0, and nothing else."),
        Property(lambda case: ((case.attention_mask != 0).sum(1) != case.right["attention_mask"].sum(1)).any(), _sums,
                 "True means real, so each row of the mask sums to the length of the review."),
        Property(lambda case: (case.attention_mask != case.right["attention_mask"]).any(), lambda case:
                 _row(case, "attention_mask"), "It must be True exactly where the row's own ids are."),
    ),
    hints=(
        "Make the mask from the lengths alone, before you look at any id.",
        "The last len(row) of seq_len columns are real. At which position do they begin?",
        "torch.arange(seq_len) >= seq_len - lengths[:, None] is the mask; [pad_id] * (seq_len - len(row)) + row a row of "
        "ids.",
    ),
)

# ---------------------------------------------------------------- 2.5 order: from lists to a batch

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


BATCH = Exercise(
    kind="order", lines=LINES, signature="the six letters in order, such as \"A B C D E F\"",
    mistakes=(
        Mistake("width-before-lengths", lambda case: f"{_order(case)}, E asks for the largest of the lengths before C has "
                "counted them.", "Python stops with a NameError, or, worse, takes what an earlier cell left."),
        Mistake("padded-before-width", lambda case: f"{_order(case)}, A fills up to a width that E has not found yet.",
                "Python stops with a NameError, or, worse, takes what an earlier cell left."),
        Mistake("lengths-before-cut", lambda case: f"{_order(case)}, C counts the rows before D cuts them.",
                "It runs, but lengths, width and mask are those of the long rows, and go beyond max_len."),
        Mistake("tensor-before-padding", lambda case: f"{_order(case)}, B makes a tensor before A has filled the rows up.",
                "A tensor is a rectangle; section 7 shows the error."),
        Mistake("mask-before-width", lambda case: f"{_order(case)}, F compares with a width that E has not found yet.",
                "Python stops with a NameError, or, worse, takes what an earlier cell left."),
    ),
    properties=(),
    hints=(
        "First find out what each line needs that another line makes.",
        "C can run before D without an error. Which lengths would the mask then be made from?",
    ),
)


EXERCISES = (HOW_MANY, VOCABULARY, CODER, PADDING, BATCH)
