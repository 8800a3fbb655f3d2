"""Answers that learners may write to the exercises of notebooks 01 to 05 and 08, right ones and wrong ones."""

import math
from collections import Counter

import numpy as np
import torch
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to
from course_utils.tokenization import merge

from course_exercises.n02.answers import words


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
