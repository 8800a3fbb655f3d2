"""Solutions of the exercises of notebook 02, accepted variants, and the answers that known mistakes give."""

import re
from collections import Counter

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from course_utils.exercises.definitions import Answers
from course_utils.tokenization import WordTokenizer, merge, pad_batch

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
    variants={"counted": lambda: len(words(SENTENCE)), "as a text": lambda: "14", "tensor": lambda: torch.tensor(14)},
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


def _sorted_twice(train, texts, min_freq):
    found = sorted(Counter(" ".join(train).split()).items())
    found.sort(key=lambda item: item[1], reverse=True)
    vocabulary = ["<pad>", "<unk>"] + [word for word, count in found if count >= min_freq]
    return [torch.tensor([vocabulary.index(word) if word in vocabulary else 1 for word in text.split()]) for text in texts]


def _arrays(train, texts, min_freq):
    found, counts = np.unique(" ".join(train).split(), return_counts=True)
    ranked = found[np.lexsort((found, -counts))].tolist()
    ids = dict(zip(ranked[: int((counts >= min_freq).sum())], range(2, 1000)))
    return tuple(np.array([ids.get(word, 1) for word in text.split()]) for text in texts)


def _rank_by_rank(train, texts, min_freq):
    """Counts from the largest down, the words of each in the order of the alphabet; ids as generators."""
    counts, ids = Counter(" ".join(train).split()), {}
    for count in range(max(counts.values()), min_freq - 1, -1):
        for word in sorted(word for word in counts if counts[word] == count):
            ids[word] = len(ids) + 2
    return ((ids.get(word, 1) for word in text.split()) for text in texts)


VOCABULARY = Answers(
    encode_texts,
    variants={"rank by rank": _rank_by_rank,
              "sorted twice, tensors": _sorted_twice, "arrays": _arrays, "counter": _encoder()},
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


def _second_look(texts):
    ids = {word: i for i, word in enumerate(_listed(texts))}

    def encode(text):
        return torch.tensor([ids.get(word, ids.get(word.lower(), 1)) for word in words(text)])

    return [encode, lambda numbers: " ".join(_listed(texts)[int(i)] for i in numbers)]


def _listed(texts):
    counts = Counter(word.lower() for text in texts for word in words(text))
    return ["<pad>", "<unk>"] + sorted(counts, key=lambda word: (-counts[word], word))


def _class(texts):
    tokenizer = WordTokenizer.train(texts, min_freq=1)
    return tokenizer.encode, tokenizer.decode


CODER = Answers(
    make_coder,
    variants={"second look": _second_look, "class": _class, "casefold": _coder(str.casefold, str.casefold)},
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


def _filled(rows, pad_id):
    seq_len = max(map(len, rows))
    token_ids = torch.full((len(rows), seq_len), pad_id)
    mask = torch.zeros(len(rows), seq_len, dtype=torch.bool)
    for i, row in enumerate(rows):
        token_ids[i, seq_len - len(row) :] = torch.tensor(row)
        mask[i, seq_len - len(row) :] = True
    return token_ids, mask


def _turned(rows, pad_id):
    token_ids, mask = pad_batch([row[::-1] for row in rows], pad_id)
    return token_ids.flip(1), mask.flip(1)


def _as_lists(rows, pad_id):
    seq_len = max(map(len, rows))
    return ([[pad_id] * (seq_len - len(row)) + row for row in rows],
            [[0] * (seq_len - len(row)) + [1] * len(row) for row in rows])


def _by_sequence(rows, pad_id):
    token_ids = pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=pad_id,
                             padding_side="left")
    ones = [torch.ones(len(row)) for row in rows]
    return [token_ids, pad_sequence(ones, batch_first=True, padding_side="left")]


def _as_array(rows, pad_id):
    token_ids, mask = _filled(rows, pad_id)
    return token_ids.numpy(), mask.numpy()


def _scattered(rows, pad_id):
    seq_len = max(map(len, rows))
    mask = torch.arange(seq_len - 1, -1, -1) < torch.tensor([len(row) for row in rows])[:, None]
    return torch.full(mask.shape, pad_id).masked_scatter(mask, torch.tensor(sum(rows, []))), mask.int()


PADDING = Answers(
    pad_left,
    variants={"scattered": _scattered, "rows": lambda rows, pad_id: [list(part) for part in pad_left(rows, pad_id)],
              "in one tensor": lambda rows, pad_id: torch.stack([part.long() for part in pad_left(rows, pad_id)]),
              "filled": _filled, "turned": _turned, "lists": _as_lists, "pad_sequence": _by_sequence, "array": _as_array},
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
    variants={"mask last": lambda: "D C E A B F", "mask early": lambda: "DCEFAB", "mask between": lambda: list("dceafb")},
    mutants={
        "width-before-lengths": lambda: "D E C A B F",
        "padded-before-width": lambda: "D C A E B F",
        "lengths-before-cut": lambda: "C E D A B F",
        "tensor-before-padding": lambda: "D C E B A F",
        "mask-before-width": lambda: "D C F E A B",
    },
)

# ---------------------------------------------------------------- 2.6


def merge_step(pieces, times):
    counts = Counter()
    for word, count in zip(pieces, times):
        for pair in zip(word, word[1:]):
            counts[pair] += count
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    after = []
    for word in pieces:
        merged, i = [], 0
        while i < len(word):
            if tuple(word[i : i + 2]) == best:
                merged.append(word[i] + word[i + 1])
                i += 2                                  # both pieces are used up
            else:
                merged.append(word[i])
                i += 1
        after.append(merged)
    return best, after


def _counted(pieces, times, weighted=True, once=False, across=False):
    counts = Counter()
    if across:
        pieces, times = [[piece for word, count in zip(pieces, times) for piece in word * count]], [1]
    for word, count in zip(pieces, times):
        pairs = list(zip(word, word[1:]))
        for pair in dict.fromkeys(pairs) if once else pairs:
            counts[pair] += count if weighted else 1
    return counts


def _without_overlaps(pieces, times):
    """Counts of pairs, but a pair that begins inside an equal one isn't counted."""
    counts = Counter()
    for word, count in zip(pieces, times):
        before = None
        for pair in zip(word, word[1:]):
            before = None if pair == before else pair
            counts[pair] += count if before else 0
    return counts


def _first_of(counts):
    return min(counts, key=lambda pair: (-counts[pair], pair))


def _step(choose=_first_of, walk=None, **counting):
    """A step with another choice of the pair, another way of counting, or another walk through a word."""
    def step(pieces, times):
        best = choose(_counted(pieces, times, **counting))
        return best, [(walk or _from_the_left)(word, best) for word in pieces]
    return step


def _from_the_left(word, pair):
    return merge(word, pair, pair[0] + pair[1])


def _merged(pair, pieces):
    return pair, [_from_the_left(word, pair) for word in pieces]


def _first_place(word, pair):
    for i in range(len(word) - 1):
        if (word[i], word[i + 1]) == pair:
            return word[:i] + [word[i] + word[i + 1]] + word[i + 2 :]
    return word


def _overlap(word, pair):
    return ["".join(pair) if tuple(word[i : i + 2]) == pair else word[i] for i in range(len(word))]


def _from_the_right(word, pair):
    turned = merge(word[::-1], pair[::-1], pair[0] + pair[1])
    return turned[::-1]


def _in_text(word, pair):
    return " ".join(word).replace(" ".join(pair), "".join(pair)).split(" ")


def _from_letters(word, pair):
    return merge(list("".join(word)), pair, pair[0] + pair[1])


def _deleting(pieces, times):
    best = _first_of(_counted(pieces, times))
    after = [list(word) for word in pieces]
    for word in after:
        i = 0
        while i < len(word) - 1:
            if word[i] == best[0] and word[i + 1] == best[1]:
                word[i : i + 2] = ["".join(best)]
            i += 1
    return list(best), after


def _sorted_pairs(pieces, times):
    counts = {}
    for w in range(len(pieces)):
        for i in range(1, len(pieces[w])):
            pair = pieces[w][i - 1], pieces[w][i]
            counts[pair] = counts.get(pair, 0) + times[w]
    most = max(counts.values())
    best = sorted(pair for pair in counts if counts[pair] == most)[0]
    return best, tuple(tuple(_with_flag(word, best)) for word in pieces)


def _with_flag(word, pair):
    merged = []
    for piece in word:
        if merged and (merged[-1], piece) == pair and not merged[-1] == "".join(pair):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _by_expression(pieces, times):
    best = _first_of(_counted(pieces, times))
    rule = re.compile(r"(?<!\S)" + re.escape(" ".join(best)) + r"(?!\S)")
    return best, [rule.sub("".join(best), " ".join(word)).split() for word in pieces]


def _recursive(pieces, times):
    best = _first_of(_counted(pieces, times))

    def walk(word):
        if len(word) < 2:
            yield from word
        elif (word[0], word[1]) == best:
            yield word[0] + word[1]
            yield from walk(word[2:])
        else:
            yield word[0]
            yield from walk(word[1:])

    return np.array(best), map(walk, pieces)


MERGE_STEP = Answers(
    merge_step,
    variants={"recursive": _recursive,
              "deleting": _deleting, "sorted": _sorted_pairs, "expression": _by_expression, "notebook's merge": _step()},
    mutants={
        "times-ignored": _step(weighted=False),
        "once-per-word": _step(once=True),
        "overlaps-once": lambda pieces, times: _merged(_first_of(_without_overlaps(pieces, times)), pieces),
        "across-words": _step(across=True),
        "last-of-equals": _step(choose=lambda counts: max(counts, key=lambda pair: (counts[pair], pair))),
        "first-met": _step(choose=lambda counts: max(counts, key=counts.get)),
        "ties-by-text": _step(choose=lambda counts: min(counts, key=lambda pair: (-counts[pair], "".join(pair)))),
        "first-place-only": _step(walk=_first_place),
        "overlap": _step(walk=_overlap),
        "from-the-right": _step(walk=_from_the_right),
        "text-replaced": _step(walk=_in_text),
        "letters-again": _step(walk=_from_letters),
        "rarest": _step(choose=lambda counts: min(counts, key=lambda pair: (counts[pair], pair))),
    },
)

ANSWERS = {"2.1": HOW_MANY, "2.2": VOCABULARY, "2.3": CODER, "2.4": PADDING, "2.5": BATCH, "2.6": MERGE_STEP}
