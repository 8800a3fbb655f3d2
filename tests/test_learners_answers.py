"""Answers as learners write them, each with what it has to be told: the mistake's name if it has one, and some words."""

import math
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.engine import judge
from course_utils.exercises.solutions.ch02 import words
from course_utils.tokenization import merge


def right(number: str):
    return answers_to(number).reference


# ---------------------------------------------------------------- notebook 02


def ties_in_small_letters(train, texts, min_freq):
    counts = Counter(" ".join(train).split())
    ids = {word: i for i, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word.lower())), 2)}
    return [[ids.get(word, 1) if counts[word] >= min_freq else 1 for word in text.split()] for text in texts]


def ids_in_a_counter(train, texts, min_freq):
    counts = Counter(" ".join(train).split())
    kept = sorted((word for word in counts if counts[word] >= min_freq), key=lambda word: (-counts[word], word))
    ids = Counter({word: i for i, word in enumerate(kept, 2)})
    return [[ids[word] for word in text.split()] for text in texts]


def coder(count=words, encode=words, back=str):
    """There and back, with another way to cut a text for counting or in encode, or another way to write it down."""
    def make(texts):
        counts = Counter(word for text in texts for word in count(text.lower()))
        vocabulary = ["<pad>", "<unk>"] + sorted(counts, key=lambda word: (-counts[word], word))
        ids = {word: i for i, word in enumerate(vocabulary)}
        return (lambda text: [ids.get(word, 1) for word in encode(text.lower())],
                lambda numbers: back(" ".join(vocabulary[i] for i in numbers)))
    return make


def without_last_mark(text):
    return words(text.rstrip(".!?"))


def from_minus_zero(rows, pad_id):
    seq_len = max(map(len, rows))
    token_ids, mask = torch.full((len(rows), seq_len), pad_id), torch.zeros(len(rows), seq_len, dtype=torch.bool)
    for i, row in enumerate(rows):
        token_ids[i, -len(row):] = torch.tensor(row)
        mask[i, -len(row):] = True
    return token_ids, mask


def counted_without_overlaps(pieces, times):
    counts = Counter()
    for word, count in zip(pieces, times):
        i = 0
        while i < len(word) - 1:
            counts[word[i], word[i + 1]] += count
            i += 2 if i + 2 < len(word) and word[i] == word[i + 1] == word[i + 2] else 1
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    return best, [merge(word, best, "".join(best)) for word in pieces]


# ---------------------------------------------------------------- notebook 03


def epoch(mask=lambda mask: mask, size=len, less=0):
    def train(model, optimizer, several):
        model.train()
        total = count = 0
        for batch in several:
            loss = F.cross_entropy(model(batch.token_ids, mask(batch.attention_mask)), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch.labels)
            count += size(batch.labels)
        return total / (count - less)
    return train


# ---------------------------------------------------------------- notebooks 04, 05 and 08


def divided_again(query, key, value, mask):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1) * mask
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ value, weights


def context_made_anew(query, key, value, mask):
    context, weights = right("4.5")(query, key, value, mask)
    return torch.tensor(context.tolist()), weights


def context_as_array(query, key, value, mask):
    context, weights = right("4.5")(query, key, value, mask)
    return context.detach().numpy(), weights


def zeros_at_once(query, key, value, mask):
    if not mask.any():
        return torch.zeros(*query.shape[:-1], value.shape[-1]), torch.zeros(*query.shape[:-1], key.shape[-2])
    return right("4.5")(query, key, value, mask)


def heads_filled_with(number):
    def heads(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
        q, k, v = (right("5.1")(x @ W, num_heads) for W in (W_query, W_key, W_value))
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~attention_mask[:, None, None], number).softmax(-1)
        return right("5.2")(weights @ v) @ W_output, weights
    return heads


def heads_by_exp(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    q, k, v = (right("5.1")(x @ W, num_heads) for W in (W_query, W_key, W_value))
    exps = (q @ k.mT / math.sqrt(q.shape[-1])).exp() * attention_mask[:, None, None]
    weights = exps / exps.sum(-1, keepdim=True)
    return right("5.2")(weights @ v) @ W_output, weights


def pooled(weigh):
    def pool(queries, x, attention_mask):
        weights = weigh(queries @ x.mT / math.sqrt(x.shape[-1]), attention_mask[:, None])
        return (weights @ x).flatten(1), weights
    return pool


def softmax_of_softmax(scores, real):
    return scores.masked_fill(~real, -1e9).softmax(-1).softmax(-1) * real


def after_softmax(scores, real):
    weights = scores.softmax(-1) * real
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-6)


def by_exp(scores, real):
    exps = scores.exp() * real
    return exps / (exps.sum(-1, keepdim=True) + 1e-9)


# ---------------------------------------------------------------- notebooks 06 and 07


def rows(places=lambda first, count: torch.arange(first, first + count),
         speeds=lambda d: 10_000 ** (-torch.arange(0, d, 2) / d)):
    def table(first, count, d_model):
        angles = places(first, count)[:, None] * speeds(d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return table


class NoDefault(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x, offset):
        return x + self.table[offset : offset + x.shape[-2]]


class OffsetAtFirst(nn.Module):
    def __init__(self, table, offset=0):
        super().__init__()
        self.register_buffer("table", table)
        self.offset = offset

    def forward(self, x):
        return x + self.table[self.offset : self.offset + x.shape[-2]]


class Stack(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.blocks = nn.ModuleList(make_block() for _ in range(num_layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class StackWithMask(Stack):
    def forward(self, x, mask):
        return super().forward(x)


class StackOfNaN(Stack):
    def forward(self, x):
        return super().forward(x) * math.nan


class DeepCopies(Stack):
    def __init__(self, num_layers, make_block):
        nn.Module.__init__(self)
        import copy
        block = make_block()
        self.blocks = nn.ModuleList(copy.deepcopy(block) for _ in range(num_layers))


def nothing_of_no_layers(x, layers, last_norm, mask):
    return right("7.4")(x, layers, last_norm, mask) if layers else x


def named_in_the_loop(x, layers, last_norm, mask):
    for attention, feed_forward, norm_1, norm_2 in layers:
        x = x + attention(norm_1(x), mask)
        out = x = x + feed_forward(norm_2(x))
    return last_norm(out)


# ---------------------------------------------------------------- notebooks 09 to 12


def compared(subtract):
    def compare(first_right, second_right):
        difference = subtract(first_right.numpy(), second_right.numpy()).astype(float)
        return difference.mean(), 1.96 * difference.std() / len(difference) ** 0.5
    return compare


def padding_first(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for i, (row, real) in enumerate(zip(token_ids, attention_mask)):
        shuffled[i] = torch.cat([row[~real], row[real][torch.randperm(int(real.sum()))]])
    return shuffled


def gated(change):
    return lambda context, gates: right("10.4")(context, change(gates))


def left_as(arrange):
    """11.3 with the places that are left, most important first, arranged in another way, and then the words."""
    def answer(score, tokens, importances, shares):
        order = sorted(range(len(tokens)), key=lambda i: -importances[i])
        left = [arrange(tokens, order[math.ceil(share * len(tokens)):]) for share in shares]
        return sum(score(tokens) - score(rest) for rest in left) / len(shares)
    return answer


def one_token_is_all(score, tokens):
    return right("11.2")(score, tokens) if len(tokens) > 1 else [score(tokens)]


def an_empty_word(score, tokens):
    return [score(tokens) - score(tokens[:i] + tokens[i + 1:] or [""]) for i in range(len(tokens))]


def one_layer_as_it_is(attentions):
    return right("11.5")(attentions) if len(attentions) > 1 else attentions[0].mean(dim=0)


def two_models_apart(first, second, factor):
    reviews = sum(model.mean(axis=0).var(ddof=1) / model.shape[1] for model in (first, second))
    seeds = sum(model.mean(axis=1).var(ddof=1) / len(model) for model in (first, second))
    return first.mean() - second.mean(), factor * (reviews + seeds) ** 0.5


def less_than_the_budget(vocab_size, d_model, budget):
    def count(width):
        return vocab_size * d_model + 4 * width * (d_model + width + 2) + 2 * width + 2

    width = 1
    while count(width + 1) < budget:
        width += 1
    return width, count(width)


WRONG = [  # exercise, answer, the named mistake ("" for none), what the message must say
    ("2.2", ties_in_small_letters, "ties-without-capitals", "every capital before the small letters"),
    ("2.2", ids_in_a_counter, "unknown-is-padding", "a Counter gives 0"),
    ("2.2", lambda train, texts, n: right("2.2")(train, [text.lower() for text in texts], n), "", "it is the capitals"),
    ("2.3", coder(encode=without_last_mark), "", "the last mark of a text too"),
    ("2.3", coder(without_last_mark, without_last_mark), "", "the last mark of a text too"),
    ("2.3", coder(str.split, str.split), "", "words and marks, and gets"),
    ("2.3", coder(back=lambda text: text.replace(" ,", ",")), "", "with a space between every two"),
    ("2.4", from_minus_zero, "", "[-0:] means all places"),
    ("2.6", counted_without_overlaps, "overlaps-once", "two pairs of neighbours"),
    ("3.4", epoch(torch.ones_like), "", "another mask than the batch's"),
    ("3.4", epoch(torch.logical_not), "", "another mask than the batch's"),
    ("3.4", epoch(size=lambda labels: 0), "", "What you divide by is 0 here"),
    ("4.3", divided_again, "", "Nothing is left for the allowed keys"),
    ("4.5", context_made_anew, "", "a new torch.tensor(…)"),
    ("4.5", context_as_array, "", "No gradient comes through NumPy"),
    ("5.4", heads_filled_with(-10.0), "", "A number such as -100 isn't low enough"),
    ("5.4", heads_by_exp, "", "exp of a large score overflows"),
    ("6.1", rows(lambda first, count: torch.linspace(first, first + count, count)), "", "linspace takes other steps"),
    ("6.1", rows(speeds=lambda d: 10_000 ** -torch.linspace(0, 1, d // 2)), "", "stop before 1"),
    ("6.3", NoDefault, "", "forward(self, x, offset=0)"), ("6.3", OffsetAtFirst, "", "forward(self, x, offset=0)"),
    ("7.2", lambda x, w, b, eps: right("7.2")(x, w, b, 1e-5), "", "the eps that is handed over has no effect"),
    ("7.2", lambda x, w, b, eps: right("7.2")(x, w, b, 1e-3), "", "close to those of eps = 0.001"),
    ("7.4", nothing_of_no_layers, "", "With no layers at all"),
    ("7.4", named_in_the_loop, "", "gets its value only in a loop"),
    ("7.5", StackWithMask, "", "Your class can't be used as the exercise says"),
    ("7.5", StackOfNaN, "", "numbers in your output are NaN"),
    ("8.1", pooled(softmax_of_softmax), "", "right after a softmax over the last dimension it is one"),
    ("8.1", pooled(after_softmax), "", "Nothing is left for the real words"),
    ("8.1", pooled(by_exp), "", "exp of a large score, which overflows"),
    ("9.2", 0.73, "logarithm-of-tf", "1 + ln 2"), ("9.2", 0.445, "other-review", "'not dull but moving'"),
    ("9.2", 0.771, "not-smoothed", "one is added"), ("9.2", 0.8, "other-logarithm", "the natural one"),
    ("9.3", compared(lambda a, b: a.astype("uint8") - b.astype("uint8")), "", "In uint8 there is no -1"),
    ("9.3", compared(lambda a, b: a ^ b), "", "have lost their sign"),
    ("9.3", compared(lambda a, b: a & ~b), "", "only the second has right count as -1"),
    ("9.4", padding_first, "", "at the end and the padding before them"),
    ("10.4", gated(torch.relu), "", "This one is below zero"), ("10.4", gated(torch.tanh), "", "0.762 times what it found"),
    ("11.2", one_token_is_all, "", "the empty list is left"), ("11.2", an_empty_word, "", "the empty list is left"),
    ("11.3", left_as(lambda tokens, left: [tokens[i] for i in left[::-1]]), "order-lost-upwards", "keep the order"),
    ("11.3", left_as(lambda tokens, left: list(dict.fromkeys(tokens[i] for i in sorted(left)))), "repeats-lost", "set()"),
    ("11.5", one_layer_as_it_is, "", "With a single one"),
    ("12.2", two_models_apart, "unpaired-means", "subtract review by review first"),
    ("12.4", less_than_the_budget, "", "the next width fits as well"),
]

RIGHT = [  # exercise, answer
    ("2.4", lambda rows, pad_id: (right("2.4")(rows, pad_id)[0], right("2.4")(rows, pad_id)[1].to_sparse())),
    ("4.5", zeros_at_once), ("7.5", DeepCopies),
]


def label(case) -> str:
    return f"{case[0]}-{getattr(case[1], '__name__', case[1])}"


@pytest.mark.parametrize("number, answer, name, said", WRONG, ids=[f"{i}-{label(case)}" for i, case in enumerate(WRONG)])
@pytest.mark.parametrize("seed", [0, 11])
def test_a_wrong_answer_is_told_what_is_wrong_with_it(number, answer, name, said, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "wrong", verdict.text
    assert said.lower() in verdict.text.lower(), verdict.text
    assert verdict.names == ((name,) if name else ()), verdict.text


@pytest.mark.parametrize("number, answer", RIGHT, ids=[f"{i}-{label(case)}" for i, case in enumerate(RIGHT)])
@pytest.mark.parametrize("seed", [0, 11])
def test_an_unusual_answer_that_is_right_counts(number, answer, seed):
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "right", verdict.text
