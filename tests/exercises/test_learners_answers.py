"""Answers as learners write them, each with what it has to be told: the mistake's name if it has one, and some words."""

import copy
import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge
from course_utils.exercises.lessons.n02.answers import words
from course_utils.tokenization import merge


def right(number: str):
    return answers_to(number).reference


# ---------------------------------------------------------------- notebooks 01 and 02


def of_the_stripped_text(marked):
    text, spans = right("1.1")(marked)
    cut = len(text) - len(text.lstrip())
    return text.strip(), [(start - cut, end - cut) for start, end in spans]


def words_in_a_dict(pieces, times):
    counts = {tuple(word): count for word, count in zip(pieces, times)}
    best, _ = right("2.6")([list(word) for word in counts], list(counts.values()))
    return best, [merge(word, best, "".join(best)) for word in pieces]


def with_every_second(pieces, times):
    """A walk that holds back one piece until the next is known."""
    counts = Counter(pair for word, count in zip(pieces, times) for pair in list(zip(word, word[1:])) * count)
    best, after = min(counts, key=lambda pair: (-counts[pair], pair)), []
    for word in pieces:
        merged, held = [], None
        for piece in word:
            if (held, piece) == best:
                merged.append(held + piece)
                held = None
            else:
                merged += [held] if held else []
                held = piece
        after.append(tuple(merged + ([held] if held else [])))
    return best, after


def rolled_rows(rows, pad_id):
    width = max(map(len, rows))
    ids = [torch.tensor(row + [pad_id] * (width - len(row))).roll(width - len(row)) for row in rows]
    return torch.stack(ids), torch.stack([(torch.arange(width) < len(row)).roll(width - len(row)) for row in rows])


def values_of_a_dict(train, texts, min_freq):
    counts = Counter(word for text in train for word in text.split())
    kept = [word for word, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])) if count >= min_freq]
    return {i: np.array([kept.index(word) + 2 if word in kept else 1 for word in text.split()], dtype=np.int64)
            for i, text in enumerate(texts)}.values()


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


def step_first(*lines):
    """An epoch with the lines of a step in another order."""
    def train(model, optimizer, several):
        model.train()
        total = 0.0
        for batch in several:
            loss = F.cross_entropy(model(batch.token_ids, batch.attention_mask), batch.labels)
            steps = {"clear": optimizer.zero_grad, "step": optimizer.step, "backward": loss.backward}
            for line in lines:
                steps[line]()
            total += loss.item() * len(batch.labels)
        return total / sum(len(batch.labels) for batch in several)
    return train


def by_embedding(token_ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.shape[1], requires_grad=True)
    F.embedding(token_ids, table).backward(upstream)
    return table.grad


def review_by_review(x, attention_mask):
    return torch.stack([torch.cat([row[real].mean(0), row[real].amax(0)]) if real.any() else torch.cat([row.sum(0) * 0] * 2)
                        for row, real in zip(x, attention_mask)])


# ---------------------------------------------------------------- notebooks 04, 05 and 08


def zero_scores_hidden(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1]) * mask
    weights = scores.masked_fill(scores == 0, -math.inf).softmax(-1)
    return weights @ value, weights


def by_logsumexp(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    return torch.einsum("...qk,...kd->...qd", weights, value), weights


def places_compared(real, query_len):
    key_len = real.shape[1]
    allowed = torch.arange(key_len) <= torch.arange(key_len - query_len, key_len)[:, None]
    return allowed[None, None] * real[:, None, None]


def nan_to_num(query, key, value, mask):
    """A row of nothing but -inf is NaN and becomes 0; masked_fill lets no gradient through to it."""
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~mask, -math.inf).softmax(-1).nan_to_num()
    return weights @ value, weights


def head_by_head(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    context, weights = 0, []
    for part in torch.arange(x.shape[-1]).chunk(num_heads):
        scores = (x @ W_query[:, part]) @ (x @ W_key[:, part]).mT / math.sqrt(len(part))
        weights.append(scores.masked_fill(~attention_mask[:, None], -math.inf).softmax(-1))
        context = context + weights[-1] @ (x @ W_value[:, part]) @ W_output[part]
    return context, torch.stack(weights, dim=1)


def divided_by_heads(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    d_head = x.shape[-1] / num_heads
    return right("5.4")(x, W_query * (d_head / num_heads) ** 0.5, W_key, W_value, W_output, num_heads, attention_mask)


def softmax_over_all(scores, real):
    return scores.masked_fill(~real, -1e9).flatten(1).softmax(-1).reshape(scores.shape) * real


def by_one_hot(logits, labels):
    logs = logits - logits.logsumexp(-1, keepdim=True)
    return -(logs * F.one_hot(labels, logits.shape[1])).sum(-1).mean(), logs.exp()


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


class FrozenEmbedding(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(table, freeze=True)

    def forward(self, x, offset=0):
        return x + self.rows(torch.arange(offset, offset + x.shape[-2]))


def by_complex_numbers(x, offset):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    length, count = pairs.shape[-2:]
    angles = torch.arange(offset, offset + length)[:, None] * 10_000 ** (-torch.arange(count) / count)
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def variance_kept_above(x, weight, bias, eps):
    deviations = x - x.mean(-1, keepdim=True)
    return deviations / deviations.square().mean(-1, keepdim=True).clamp(min=eps).sqrt() * weight + bias


def masked_once(x, layers, last_norm, mask):
    for i, (attention, feed_forward, norm_1, norm_2) in enumerate(layers):
        x = x + attention(norm_1(x), None if i else mask)
        x = x + feed_forward(norm_2(x))
    return last_norm(x)


class StackAsSequential(nn.Sequential):
    def __init__(self, num_layers, make_block):
        super().__init__(*[make_block() for _ in range(num_layers)])


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


def neighbours_exchanged(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for row, count in zip(shuffled, attention_mask.sum(dim=1).tolist()):
        for i in range(count - 1):
            if torch.rand(()) < 0.5:
                row[[i, i + 1]] = row[[i + 1, i]]
    return shuffled


def sorted_by_noise(token_ids, attention_mask):
    noise = torch.rand(token_ids.shape) + ~attention_mask * torch.arange(2, 2 + token_ids.shape[1])
    return token_ids.gather(1, noise.argsort(dim=1))


def two_standard_errors(first_right, second_right):
    difference = first_right.float() - second_right.float()
    return difference.mean(), 2 * difference.std() / len(difference) ** 0.5


def mean_of_the_rest(weights, head, tail):
    end = weights.shape[1] - tail
    return torch.cat([weights[:, :head], weights[:, head:end].mean(1, keepdim=True).nan_to_num(), weights[:, end:]], dim=1)


def found_among_the_first(scores, evidence):
    hits = evidence[scores.argsort(descending=True)].float()
    precisions = hits.cumsum(0) / torch.arange(1, len(hits) + 1) * hits
    return precisions[: int(hits.sum())].sum() / hits.sum()


def by_pairs(scores, evidence):
    scores, at = scores.tolist(), evidence.nonzero().flatten().tolist()
    return np.mean([sum(scores[j] >= scores[i] for j in at) / sum(other >= scores[i] for other in scores) for i in at])


def each_seed_a_review(first, second, factor):
    return first.mean() - second.mean(), factor * sum(model.var(ddof=1) / model.size for model in (first, second)) ** 0.5


def holm_again_and_again(p_values, level):
    def survivors(left):
        best = min(left, key=p_values.__getitem__, default=None)
        return {best} | survivors(left - {best}) if left and p_values[best] < level / len(left) else set()

    kept = survivors(set(range(len(p_values))))
    return [i in kept for i in range(len(p_values))]


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
    ("1.1", of_the_stripped_text, "", "every other character stays"),
    ("1.3", lambda *inputs: right("1.3")(*inputs) / math.log(10), "", "Only the log prior odds are left"),
    ("2.2", lambda train, texts, n: right("2.2")(train, texts, max(n - 1, 1)), "", "less than min_freq times"),
    ("2.4", lambda rows, pad_id: (right("2.4")(rows, pad_id)[0], (right("2.4")(rows, pad_id)[0] != pad_id).cummax(1)[0]),
     "", "sums to the length"),
    ("2.6", words_in_a_dict, "", "every occurrence of a pair"),
    ("2.6", lambda *inputs: ("".join(right("2.6")(*inputs)[0]), right("2.6")(*inputs)[1]), "", "two pieces as the pair"),
    ("3.1", lambda ids, upstream, size: right("3.1")(ids, upstream, size) / len(ids), "", "gets the upstream row"),
    ("3.4", step_first("step", "clear", "backward"), "", "backward() before step()"),
    ("3.4", step_first("clear", "step", "backward"), "cleared-between", "it came before backward"),
    ("4.3", zero_scores_hidden, "", "not where a score is 0"),
    ("5.2", lambda x: right("5.2")(x.flip(1)), "", "head 0 first"),
    ("5.4", divided_by_heads, "", "softmax of query"),
    ("5.4", lambda x, *rest: (right("5.4")(x, *rest)[0] * rest[-1][..., None], right("5.4")(x, *rest)[1]), "",
     "Only keys are masked"),
    ("6.1", lambda first, count, d: right("6.1")(first, max(count - first, 1), d), "", "shape"),
    ("7.2", variance_kept_above, "", "under the root"), ("7.4", masked_once, "", "in every layer"),
    ("8.1", pooled(softmax_over_all), "", "right after a softmax over the last dimension it is one"),
    ("9.1", lambda values, n: (np.median(values) + 0.001, right("9.1")(values, n)[1]), "", "Add the accuracies"),
    ("9.3", two_standard_errors, "", "multiply by 1.96"), ("9.4", neighbours_exchanged, "", "every order must be possible"),
    ("10.3", mean_of_the_rest, "", "The rest is the sum"), ("11.1", found_among_the_first, "", "divide by the rank"),
    ("11.2", lambda score, tokens: [score(tokens) - score(" ".join(tokens[:i])) for i in range(len(tokens))], "",
     "score takes a list of tokens"),
    ("11.3", lambda score, tokens, values, shares: right("11.3")(score, tokens, values, [s for s in shares if s]), "",
     "a share of 0"),
    ("11.5", lambda attentions: right("11.5")(attentions) * 2, "", "Each row must sum to one"),
    ("12.2", each_seed_a_review, "", "Print the three variances apart"),
    ("12.3", lambda p, level: [i for i, kept in enumerate(right("12.3")(p, level)) if kept], "", "shape"),
    ("12.4", lambda *sizes: (right("12.4")(*sizes)[0] + 0.5, right("12.4")(*sizes)[1]), "", "A width is a whole number"),
    ("2.2", ties_in_small_letters, "ties-without-capitals", "every capital before the small letters"),
    ("2.2", ids_in_a_counter, "unknown-is-padding", "a Counter gives 0"),
    ("2.2", lambda train, texts, n: right("2.2")(train, [text.lower() for text in texts], n), "", "it is the capitals"),
    ("2.3", coder(encode=without_last_mark), "", "the last of a text too"),
    ("2.3", coder(without_last_mark, without_last_mark), "", "the last of a text too"),
    ("2.3", coder(str.split, str.split), "", "tokens, and gets"),
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
    ("7.2", lambda x, w, b, eps: right("7.2")(x, w, b, 1e-5), "", "the eps that is handed over has no effect here"),
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
    ("4.5", zeros_at_once), ("7.5", DeepCopies), ("1.4", lambda train, test: sorted(right("1.4")(train, test))),
    ("2.2", values_of_a_dict), ("2.4", rolled_rows), ("2.6", with_every_second), ("3.1", by_embedding),
    ("3.2", review_by_review), ("4.2", by_logsumexp), ("4.4", places_compared), ("4.5", nan_to_num), ("5.4", head_by_head),
    ("6.3", FrozenEmbedding), ("6.4", by_complex_numbers), ("7.5", StackAsSequential), ("8.3", by_one_hot),
    ("9.4", sorted_by_noise), ("11.1", by_pairs), ("12.3", holm_again_and_again),
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
