"""The course's answers to the exercises of notebook 17, and what each known mistake would write."""

import math
from collections import Counter

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 17.1


def cross_attention(x, memory, W_q, W_k, W_v, source_mask):
    query, key, value = x @ W_q, memory @ W_k, memory @ W_v                # (batch, target or source, d_head)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (batch, target, source)
    weights = scores.masked_fill(~source_mask[:, None], -math.inf).softmax(dim=-1)
    return weights @ value, weights


def _cross(queries="x", keys="memory", values="memory", scale=lambda query, x: math.sqrt(query.shape[-1]), dim=-1,
           fill=-math.inf, allowed=lambda mask: mask[:, None], after=None):
    """Cross-attention with one of its parts changed."""
    def answer(x, memory, W_q, W_k, W_v, source_mask):
        side = {"x": x, "memory": memory}
        query, key, value = side[queries] @ W_q, side[keys] @ W_k, side[values] @ W_v
        scores = query @ key.transpose(-2, -1) / scale(query, x)
        mask = allowed(source_mask)
        if mask is not None:
            scores = scores.masked_fill(~mask, fill)
        weights = scores.softmax(dim=dim)
        if after is not None:
            weights = after(weights, source_mask)
        return weights @ value, weights
    return answer


def _causal(x, memory, W_q, W_k, W_v, source_mask):
    """The decoder's causal mask on top of the padding mask."""
    scores = (x @ W_q) @ (memory @ W_k).mT / math.sqrt(W_q.shape[-1])
    weights = scores.masked_fill(~(source_mask[:, None] & torch.ones_like(scores).bool().tril()), -1e9).softmax(dim=-1)
    return weights @ (memory @ W_v), weights


CROSS = Answers(
    cross_attention,
    mutants={
        "weights-first": lambda *inputs: cross_attention(*inputs)[::-1],
        "sides-swapped": _cross("memory", "x", "x"),
        "self-attention": _cross(keys="x", values="x"),
        "keys-from-the-decoder": _cross(keys="x"),
        "values-from-the-decoder": _cross(values="x"),
        "padding-seen": _cross(allowed=lambda mask: None),
        "mask-inverted": _cross(allowed=lambda mask: ~mask[:, None], fill=-1e9),
        "masked-afterwards": _cross(allowed=lambda mask: None, after=lambda weights, mask: weights * mask[:, None]),
        "filled-with-zero": _cross(fill=0.0),
        "over-queries": _cross(dim=-2, fill=-1e9),
        "no-scaling": _cross(scale=lambda query, x: 1.0),
        "scaled-by-the-head": _cross(scale=lambda query, x: query.shape[-1]),
        "scaled-by-d": _cross(scale=lambda query, x: math.sqrt(x.shape[-1])),
        "keys-and-values-exchanged": lambda x, memory, W_q, W_k, W_v, source_mask: cross_attention(
            x, memory, W_q, W_v, W_k, source_mask),
        "causal": _causal,
    },
)

# ---------------------------------------------------------------- 17.2


def read_asked_mask(target_ids):
    read, asked = target_ids[:, :-1], target_ids[:, 1:]
    length = read.shape[1]
    return read, asked, torch.ones(length, length, dtype=torch.bool).tril()


def _shift(read=lambda ids: ids[:, :-1], asked=lambda ids: ids[:, 1:], mask=lambda full: full.tril()):
    """The three results with one of them changed; `mask` is made from a matrix of ones."""
    def answer(target_ids):
        length = target_ids.shape[1] - 1
        return read(target_ids), asked(target_ids), mask(torch.ones(length, length, dtype=torch.bool))
    return answer


SHIFT = Answers(
    read_asked_mask,
    mutants={
        "not-shifted": _shift(asked=lambda ids: ids[:, :-1]),
        "asked-not-begun": _shift(read=lambda ids: ids[:, 1:]),
        "exchanged": _shift(lambda ids: ids[:, 1:], lambda ids: ids[:, :-1]),
        "wrapped": _shift(lambda ids: ids[:, :-1], lambda ids: ids.roll(1, 1)[:, :-1]),
        "no-mask": _shift(mask=lambda full: full),
        "not-itself": _shift(mask=lambda full: full.tril(-1)),
        "one-ahead": _shift(mask=lambda full: full.tril(1)),
        "upside-down": _shift(mask=lambda full: full.triu()),
        "inverted": _shift(mask=lambda full: full.triu(1)),
        "only-itself": _shift(mask=lambda full: full & torch.eye(len(full), dtype=torch.bool)),
    },
)

# ---------------------------------------------------------------- 17.3


def smoothed_loss(logits, targets, smoothing, pad_id):
    log_p = logits.log_softmax(dim=-1)                                     # (batch, target, vocab)
    right = -log_p.gather(-1, targets[..., None])[..., 0]                  # (batch, target)
    loss = (1 - smoothing) * right + smoothing * -log_p.mean(dim=-1)
    return loss[targets != pad_id].mean()


def _smoothed(rows=None, counted=lambda loss, real: loss[real].mean()):
    """The smoothed loss with another q, rows(one_hot, smoothing, vocab), or another way to average."""
    rows = rows or (lambda one_hot, e, v: (1 - e) * one_hot + e / v)

    def answer(logits, targets, smoothing, pad_id):
        vocab = logits.shape[-1]
        q = rows(F.one_hot(targets, vocab).float(), smoothing, vocab)
        return counted(-(q * logits.log_softmax(dim=-1)).sum(dim=-1), targets != pad_id)
    return answer


def _logarithm_of_the_mixture(logits, targets, smoothing, pad_id):
    p = (1 - smoothing) * logits.softmax(dim=-1) + smoothing / logits.shape[-1]
    return -p.log().gather(-1, targets[..., None])[..., 0][targets != pad_id].mean()


def _divergence(logits, targets, smoothing, pad_id):
    """Without the entropy of the target."""
    vocab = logits.shape[-1]
    q = (1 - smoothing) * F.one_hot(targets, vocab) + smoothing / vocab
    return (torch.xlogy(q, q) - q * logits.log_softmax(dim=-1)).sum(dim=-1)[targets != pad_id].mean()


def _no_padding_among_the_words(logits, targets, smoothing, pad_id):
    log_p = logits.log_softmax(dim=-1)
    others = (log_p.sum(dim=-1) - log_p[..., pad_id]) / (logits.shape[-1] - 1)
    loss = (1 - smoothing) * -log_p.gather(-1, targets[..., None])[..., 0] - smoothing * others
    return loss[targets != pad_id].mean()


SMOOTHED = Answers(
    smoothed_loss,
    mutants={
        "over-the-others": _smoothed(lambda one_hot, e, v: (1 - e) * one_hot + e / (v - 1) * (1 - one_hot)),
        "others-too-little": _smoothed(lambda one_hot, e, v: (1 - e) * one_hot + e / v * (1 - one_hot)),
        "on-top": _smoothed(lambda one_hot, e, v: one_hot + e / v),
        "all-of-it-each": _smoothed(lambda one_hot, e, v: (1 - e) * one_hot + e),
        "exchanged": _smoothed(lambda one_hot, e, v: e * one_hot + (1 - e) / v),
        "not-smoothed": _smoothed(lambda one_hot, e, v: one_hot),
        "probabilities-smoothed": _logarithm_of_the_mixture,
        "padding-counted": _smoothed(counted=lambda loss, real: loss.mean()),
        "padding-in-the-divisor": _smoothed(counted=lambda loss, real: (loss * real).mean()),
        "summed": _smoothed(counted=lambda loss, real: loss[real].sum()),
        "sentence-means": _smoothed(counted=lambda loss, real: ((loss * real).sum(1) / real.sum(1)).mean()),
        "no-minus": _smoothed(counted=lambda loss, real: -loss[real].mean()),
        "divergence": _divergence,
        "no-padding-among-the-words": _no_padding_among_the_words,
        "softmax-first": lambda logits, *others: smoothed_loss(logits.softmax(dim=-1), *others),
        "cut-off": lambda logits, *others: smoothed_loss(logits.detach(), *others),
        "pad-id-is-zero": lambda logits, targets, smoothing, pad_id: smoothed_loss(logits, targets, smoothing, 0),
        "zero-is-padding-too": lambda logits, targets, smoothing, pad_id: smoothed_loss(
            logits, targets.masked_fill(targets == 0, pad_id), smoothing, pad_id),
    },
)

# ---------------------------------------------------------------- 17.4


def winner(log_probabilities, lengths, alpha):
    penalty = ((5 + lengths) / 6) ** alpha
    return int((log_probabilities / penalty).argmax())


WINNER = Answers(
    winner,
    mutants={
        "no-penalty": lambda log_p, lengths, alpha: int(log_p.argmax()),
        "multiplied": lambda log_p, lengths, alpha: int((log_p * ((5 + lengths) / 6) ** alpha).argmax()),
        "per-word": lambda log_p, lengths, alpha: int((log_p / lengths).argmax()),
        "power-of-the-length": lambda log_p, lengths, alpha: int((log_p / lengths**alpha).argmax()),
        "no-alpha": lambda log_p, lengths, alpha: int((log_p / ((5 + lengths) / 6)).argmax()),
        "longest": lambda log_p, lengths, alpha: int(lengths.argmax()),
        "lowest": lambda log_p, lengths, alpha: int((log_p / ((5 + lengths) / 6) ** alpha).argmin()),
        "five-sixths": lambda log_p, lengths, alpha: int((log_p / (5 / 6 + lengths) ** alpha).argmax()),
        "length-alone": lambda log_p, lengths, alpha: int((log_p / (5 + lengths / 6) ** alpha).argmax()),
        "probabilities": lambda log_p, lengths, alpha: int((log_p.exp() / ((5 + lengths) / 6) ** alpha).argmax()),
        "subtracted": lambda log_p, lengths, alpha: int((log_p - ((5 + lengths) / 6) ** alpha).argmax()),
        "end-not-counted": lambda log_p, lengths, alpha: int((log_p / ((4 + lengths) / 6) ** alpha).argmax()),
    },
)

# ---------------------------------------------------------------- 17.5


def write_greedily(step, begin, end, max_len):
    words, last = [], begin
    while len(words) < max_len:
        last = int(step(last, len(words)).argmax())                        # position: how many were read before it
        if last == end:
            break
        words.append(last)
    return words


def _write(position=lambda done: done, reads=lambda begin, words: words[-1] if words else begin, stops=True,
           choose=lambda log_p: log_p.argmax(), limit=lambda most: most, returns=lambda words, begin, end: words,
           ends_too=None):
    """Greedy writing with one of its parts changed."""
    def answer(step, begin, end, max_len):
        words, ended = [], False
        while len(words) < limit(max_len) and not ended:
            word = int(choose(step(reads(begin, words), position(len(words)))))
            ended = word in (end, ends_too) and stops
            if not ended:
                words.append(word)
        return returns(words, begin, [end] * (ended or not stops))
    return answer


def _reads_again(step, begin, end, max_len):
    """All words are handed over again before each new one."""
    words = [begin]
    while len(words) <= max_len:
        for position, word in enumerate(words):
            log_p = step(word, position)
        if int(log_p.argmax()) == end:
            break
        words.append(int(log_p.argmax()))
    return words[1:]


def _asks_twice(step, begin, end, max_len):
    """Once for the end, once for the word."""
    words, last = [], begin
    while len(words) < max_len and int(step(last, len(words)).argmax()) != end:
        last = int(step(last, len(words)).argmax())
        words.append(last)
    return words


WRITE = Answers(
    write_greedily,
    mutants={
        "one-position-on": _write(lambda done: done + 1),
        "one-position-back": _write(lambda done: max(done - 1, 0)),
        "no-positions": _write(lambda done: 0),
        "begin-again": _write(reads=lambda begin, words: begin),
        "one-word-behind": _write(reads=lambda begin, words: words[-2] if len(words) > 1 else begin),
        "never-ends": _write(stops=False),
        "end-taken-out": _write(stops=False, returns=lambda words, begin, end: [w for w in words if w != end[0]]),
        "end-kept": _write(returns=lambda words, begin, end: [*words, *end]),
        "begin-kept": _write(returns=lambda words, begin, end: [begin, *words]),
        "no-limit": _write(limit=lambda most: 10_000),
        "one-too-many": _write(limit=lambda most: most + 1),
        "one-too-few": _write(limit=lambda most: most - 1),
        "reads-again": _reads_again,
        "asks-twice": _asks_twice,
        "least-probable": _write(choose=lambda log_p: log_p.argmin()),
        "ends-at-zero": _write(ends_too=0),
    },
)

# ---------------------------------------------------------------- 17.6


def ngram_precision(translations, references, n):
    def counts(tokens):
        grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        return {gram: grams.count(gram) for gram in grams}

    matched = possible = 0
    for translation, reference in zip(translations, references):
        own, wanted = counts(translation), counts(reference)
        matched += sum(min(count, wanted.get(gram, 0)) for gram, count in own.items())
        possible += sum(own.values())
    return matched / possible if possible else 0.0


def _grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def _precision(hits=None, possible=lambda own, wanted: len(own), whole=None, size=lambda n: n):
    """N-gram precision with another count of hits, hits(own, wanted), or divisor; `whole` makes one number of the pairs."""
    hits = hits or (lambda own, wanted: sum(min(own.count(g), wanted.count(g)) for g in set(own)))
    whole = whole or (lambda pairs: sum(h for h, _ in pairs) / max(1, sum(p for _, p in pairs)))

    def answer(translations, references, n):
        grams = [(_grams(t, size(n)), _grams(r, size(n))) for t, r in zip(translations, references)]
        return whole([(hits(own, wanted), possible(own, wanted)) for own, wanted in grams])
    return answer


def _with_brevity(translations, references, n):
    ours, theirs = (sum(map(len, side)) for side in (translations, references))
    return ngram_precision(translations, references, n) * min(1.0, math.exp(1 - theirs / ours))


def _up_to_n(translations, references, n):
    product = math.prod(ngram_precision(translations, references, size) for size in range(1, n + 1))
    return product ** (1 / n)


def _runs(make):
    """The precision of other runs: make(tokens, n) -> list."""
    def answer(translations, references, n):
        pairs = [[Counter(make(side, n)) for side in pair] for pair in zip(translations, references)]
        return sum((own & wanted).total() for own, wanted in pairs) / max(1, sum(own.total() for own, _ in pairs))
    return answer


def _at_the_same_position(translations, references, n):
    pairs = [(_grams(t, n), _grams(r, n)) for t, r in zip(translations, references)]
    return sum(a == b for own, wanted in pairs for a, b in zip(own, wanted)) / max(1, sum(len(own) for own, _ in pairs))


def _counted_together(translations, references, n):
    own, wanted = (Counter(gram for tokens in side for gram in _grams(tokens, n)) for side in (translations, references))
    return (own & wanted).total() / max(1, own.total())


def _of_the_whole_text(translations, references, n):
    joined = [[word for sentence in side for word in sentence] for side in (translations, references)]
    return ngram_precision([joined[0]], [joined[1]], n)


def _fewer_than_none(translations, references, n):
    """A translation of fewer than n - 1 words has a negative number of runs."""
    runs = sum(len(translation) - n + 1 for translation in translations)
    hits = sum((Counter(_grams(t, n)) & Counter(_grams(r, n))).total() for t, r in zip(translations, references))
    return hits / runs if runs else 0.0


def _searched_in_the_text(translations, references, n):
    def hits(own, reference):
        return sum(min(count, " ".join(reference).count(" ".join(gram))) for gram, count in Counter(own).items())
    pairs = [(_grams(t, n), r) for t, r in zip(translations, references)]
    return sum(hits(own, reference) for own, reference in pairs) / max(1, sum(len(own) for own, _ in pairs))


PRECISION = Answers(
    ngram_precision,
    mutants={
        "not-clipped": _precision(lambda own, wanted: sum(gram in wanted for gram in own)),
        "once-each": _precision(lambda own, wanted: len(set(own) & set(wanted))),
        "different-ones": _precision(lambda own, wanted: len(set(own) & set(wanted)), lambda own, wanted: len(set(own))),
        "recall": _precision(possible=lambda own, wanted: len(wanted)),
        "mean-of-sentences": _precision(whole=lambda pairs: sum(h / max(1, p) for h, p in pairs) / len(pairs)),
        "clipped-by-all-words": _of_the_whole_text,
        "counted-together": _counted_together,
        "single-words": _precision(size=lambda n: 1),
        "with-brevity": _with_brevity,
        "up-to-n": _up_to_n,
        "any-order": _runs(lambda tokens, n: [tuple(sorted(gram)) for gram in _grams(tokens, n)]),
        "tails": _runs(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(len(tokens))]),
        "last-run-left-out": _runs(lambda tokens, n: _grams(tokens, n)[:-1]),
        "at-the-same-position": _at_the_same_position,
        "fewer-than-none": _fewer_than_none,
        "glued": _runs(lambda tokens, n: ["".join(gram) for gram in _grams(tokens, n)]),
        "searched-in-the-text": _searched_in_the_text,
        "percent": lambda translations, references, n: 100 * ngram_precision(translations, references, n),
    },
)

ANSWERS = (CROSS, SHIFT, SMOOTHED, WINNER, WRITE, PRECISION)
