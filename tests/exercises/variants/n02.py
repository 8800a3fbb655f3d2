"""Other right answers to the exercises of notebook 02, which a check must accept."""

import re
from collections import Counter

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from course_utils.tokenization import WordTokenizer, pad_batch

from course_exercises.n02.answers import (
    SENTENCE,
    _coder,
    _counted,
    _encoder,
    _first_of,
    _step,
    pad_left,
    words,
)


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


VARIANTS = {
    "2.1": {"counted": lambda: len(words(SENTENCE)), "as a text": lambda: "14", "tensor": lambda: torch.tensor(14)},
    "2.2": {"rank by rank": _rank_by_rank,
            "sorted twice, tensors": _sorted_twice, "arrays": _arrays, "counter": _encoder()},
    "2.3": {"second look": _second_look, "class": _class, "casefold": _coder(str.casefold, str.casefold)},
    "2.4": {"scattered": _scattered, "rows": lambda rows, pad_id: [list(part) for part in pad_left(rows, pad_id)],
            "in one tensor": lambda rows, pad_id: torch.stack([part.long() for part in pad_left(rows, pad_id)]),
            "filled": _filled, "turned": _turned, "lists": _as_lists, "pad_sequence": _by_sequence, "array": _as_array},
    "2.5": {"mask last": lambda: "D C E A B F", "mask early": lambda: "DCEFAB", "mask between": lambda: list("dceafb")},
    "2.6": {"recursive": _recursive,
            "deleting": _deleting, "sorted": _sorted_pairs, "expression": _by_expression, "notebook's merge": _step()},
}
