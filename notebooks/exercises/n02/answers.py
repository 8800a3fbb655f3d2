"""The course's answers to the exercises of notebook 02, and what each known mistake would write."""

import re
from collections import Counter

import torch

from course_utils.exercises.definitions import Answers
from course_utils.tokenization import pad_batch

pattern = re.compile(r"<br\s*/?>|(\w+(?:['’]\w+)*|[^\w\s])")


def words(text):
    """As in the notebook."""
    return [match[1] for match in pattern.finditer(text) if match[1]]

# ---------------------------------------------------------------- 2.1

SENTENCE = "A well-made film, isn't it?<br />Great!! Fun."


def how_many_tokens():
    # A, well, -, made, film, the comma, isn't, it, ?, Great, !, !, Fun, and the full stop
    return 14


def _found(rule):
    return lambda: len(re.findall(rule, SENTENCE))


HOW_MANY = Answers(
    how_many_tokens,
    mutants={
        "cut-at-spaces": lambda: len(SENTENCE.split()),
        "word-characters": _found(r"\w+"),
        "marks-lost": lambda: sum(word[0].isalpha() for word in words(SENTENCE)),
        "hyphen-inside": lambda: len(words(SENTENCE)) - 2,
        "marks-together": lambda: len(words(SENTENCE)) - 1,
        "apostrophe-cut": lambda: len(words(SENTENCE.replace("'", " ' "))),
        "line-break-cut": _found(r"\w+(?:['’]\w+)*|[^\w\s]"),
        "line-break-kept": _found(r"<br />|\w+(?:['’]\w+)*|[^\w\s]"),
    },
)

# ---------------------------------------------------------------- 2.2

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
             per_text=False, reverse=False):
    """The encoder with one or more things changed; `unknown` None leaves unknown words out."""
    def encode(train, texts, min_freq):
        pieces = [text.split() for text in (train + texts if of_all else train)]
        counts = Counter(word for piece in pieces for word in (dict.fromkeys(piece) if per_text else piece))
        kept = [word for word in counts if counts[word] >= minimum(min_freq)]
        frequent = sorted(kept, key=lambda word: order(counts, word), reverse=reverse)
        ids = {word: i for i, word in enumerate(frequent, start=first)}
        rows = [[ids.get(word, unknown) for word in text.split()] for text in texts]
        return [[i for i in row if i is not None] for row in rows]
    return encode


VOCABULARY = Answers(
    encode_texts,
    mutants={
        "vocabulary-of-all": _encoder(of_all=True),
        "unknown-is-padding": _encoder(unknown=0),
        "unknown-dropped": _encoder(unknown=None),
        "ties-by-appearance": _encoder(order=lambda counts, word: -counts[word]),
        "ties-reversed": _encoder(order=lambda counts, word: (counts[word], word), reverse=True),
        "ties-without-capitals": _encoder(order=lambda counts, word: (-counts[word], word.lower())),
        "min_freq-ignored": _encoder(minimum=lambda least: 0),
        "more-than-min_freq": _encoder(minimum=lambda least: least + 1),
        "rarest-first": _encoder(order=lambda counts, word: (counts[word], word)),
        "alphabetical": _encoder(order=lambda counts, word: word),
        "no-special-ids": _encoder(first=0),
        "texts-counted": _encoder(per_text=True),
        "lower-cased": lambda train, texts, min_freq: encode_texts(
            [text.lower() for text in train], [text.lower() for text in texts], min_freq),
        "empty-piece": lambda train, texts, min_freq: [row or [1] for row in encode_texts(train, texts, min_freq)],
    },
)

# ---------------------------------------------------------------- 2.3

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


CODER = Answers(
    make_coder,
    mutants={
        "encode-keeps-capitals": _coder(encoding=str),
        "capitals-everywhere": _coder(counting=str, encoding=str),
        "first-letter-only": _coder(encoding=lambda text: text[:1].lower() + text[1:]),
        "both-counted": _coder(counting=lambda text: f"{text} {text.lower()}"),
        "lowered-after-counting": _coder(counting=str, afterwards=str.lower),
        "unknown-dropped": _coder(unknown=None),
        "encode-in-capitals": _coder(encoding=str.upper),
    },
)

# ---------------------------------------------------------------- 2.4

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


PADDING = Answers(
    pad_left,
    mutants={
        "padded-right": lambda rows, pad_id: pad_batch(rows, pad_id),
        "mask-of-the-right": _padded(mask=lambda ids, right, rows, pad_id: right.flip(1)),
        "inverted": _padded(mask=lambda ids, right, rows, pad_id: ~right),
        "not-zero": _padded(mask=lambda ids, right, rows, pad_id: ids != 0),
        "not-pad_id": _padded(mask=lambda ids, right, rows, pad_id: ids != pad_id),
        "minus-zero": _padded(mask=_minus_zero),
        "all-real": _padded(mask=lambda ids, right, rows, pad_id: torch.ones_like(right)),
        "reversed": _padded(ids=lambda rows, pad_id: pad_left([row[::-1] for row in rows], pad_id)[0]),
        "padded-with-zero": _padded(ids=lambda rows, pad_id: pad_left(rows, 0)[0]),
    },
)

# ---------------------------------------------------------------- 2.5

def rules():
    # one right order is D C E A B F; F may also stand right after E, or between A and B
    return [("C", "E", "width-before-lengths"), ("E", "A", "padded-before-width"),
            ("E", "F", "mask-before-width"), ("A", "B", "tensor-before-padding"), ("D", "C", "lengths-before-cut")]


BATCH = Answers(
    rules,
    mutants={
        "width-before-lengths": lambda: "D E C A B F",
        "padded-before-width": lambda: "D C A E B F",
        "lengths-before-cut": lambda: "C E D A B F",
        "tensor-before-padding": lambda: "D C E B A F",
        "mask-before-width": lambda: "D C F E A B",
    },
)

ANSWERS = (HOW_MANY, VOCABULARY, CODER, PADDING, BATCH)
