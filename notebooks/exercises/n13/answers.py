"""The course's answers to the exercises of notebook 13, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 13.1

def inputs_and_targets(token_ids):
    return token_ids[:, :-1], token_ids[:, 1:]                             # both (batch, seq_len - 1)


SHIFT = Answers(
    inputs_and_targets,
    mutants={
        "not-shifted": lambda ids: (ids[:, :-1], ids[:, :-1]),
        "not-shifted-whole": lambda ids: (ids, ids),
        "wrong-way": lambda ids: (ids[:, 1:], ids[:, :-1]),
        "wrapped": lambda ids: (ids, ids.roll(-1, dims=1)),
        "wrapped-backwards": lambda ids: (ids, ids.roll(1, dims=1)),
        "inputs-whole": lambda ids: (ids, ids[:, 1:]),
        "targets-whole": lambda ids: (ids[:, :-1], ids),
        "two-on": lambda ids: (ids[:, :-2], ids[:, 2:]),
        "over-texts": lambda ids: (ids[:-1], ids[1:]),
        "only-the-last": lambda ids: (ids[:, :-1], ids[:, -1]),
        "padded": lambda ids: (ids, F.pad(ids[:, 1:], (0, 1))),
        "marked": lambda ids: (ids, F.pad(ids[:, 1:], (0, 1), value=-100)),
    },
)

# ---------------------------------------------------------------- 13.2

def causal_loss(logits, token_ids, pad_id):
    predictions = logits[:, :-1]                                           # (batch, seq_len - 1, vocab)
    targets = token_ids[:, 1:]                                             # (batch, seq_len - 1)
    return F.cross_entropy(predictions.flatten(0, 1), targets.flatten(), ignore_index=pad_id)


def _each(logits, targets, log_of=lambda logits: logits.log_softmax(dim=-1)):
    """-ln p of each target, (batch, position)."""
    return -log_of(logits).gather(-1, targets[..., None]).squeeze(-1)


def _loss(log_of=lambda logits: logits.log_softmax(dim=-1), pair=lambda logits, ids: (logits[:, :-1], ids[:, 1:]),
          counted=lambda ids, targets, pad_id: targets != pad_id,
          mean=lambda each, counts: (each * counts).sum() / counts.sum()):
    """The causal loss with one of its parts changed."""
    def loss(logits, token_ids, pad_id):
        predictions, targets = pair(logits, token_ids)
        each = _each(predictions, targets, log_of)
        return mean(each, counted(token_ids, targets, pad_id).to(each.dtype))
    return loss


def _across_texts(logits, token_ids, pad_id):
    return F.cross_entropy(logits.flatten(0, 1)[:-1], token_ids.flatten()[1:], ignore_index=pad_id)


def _reshaped(logits, token_ids, pad_id):
    batch, seq_len, vocab = logits.shape
    return F.cross_entropy(logits[:, :-1].reshape(batch, vocab, seq_len - 1), token_ids[:, 1:], ignore_index=pad_id)


def _over_texts_with_any(each, counts):
    return _row_means(each[counts.any(dim=1)], counts[counts.any(dim=1)])


def _position_means(each, counts):
    return ((each * counts).sum(dim=0) / counts.sum(dim=0)).mean()


def _over_before(dim):
    """The softmax over another dimension, before the last position is cut off."""
    return lambda logits, ids, pad_id: _loss(lambda already: already)(logits.log_softmax(dim=dim), ids, pad_id)


def _row_means(each, counts):
    return ((each * counts).sum(dim=1) / counts.sum(dim=1)).mean()


CAUSAL_LOSS = Answers(
    causal_loss,
    mutants={
        "not-shifted": _loss(pair=lambda logits, ids: (logits, ids)),
        "not-shifted-cut": _loss(pair=lambda logits, ids: (logits[:, :-1], ids[:, :-1])),
        "wrong-way": _loss(pair=lambda logits, ids: (logits[:, 1:], ids[:, :-1])),
        "shifted-twice": _loss(pair=lambda logits, ids: (logits[:, :-2], ids[:, 2:])),
        "wrapped": _loss(pair=lambda logits, ids: (logits, ids.roll(-1, dims=1))),
        "only-the-last": lambda logits, ids, pad_id: F.cross_entropy(logits[:, -2], ids[:, -1], ignore_index=pad_id),
        "across-texts": _across_texts,
        "not-transposed": lambda logits, ids, pad_id: F.cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index=pad_id),
        "reshaped": _reshaped,
        "padding-counted": _loss(counted=lambda ids, targets, pad_id: torch.ones_like(targets)),
        "padding-in-the-divisor": _loss(mean=lambda each, counts: (each * counts).mean()),
        "mask-of-the-inputs": _loss(counted=lambda ids, targets, pad_id: ids[:, :-1] != pad_id),
        "pad-is-zero": _loss(counted=lambda ids, targets, pad_id: targets != 0),
        "row-means": _loss(mean=_row_means),
        "row-means-of-some": _loss(mean=_over_texts_with_any),
        "position-means": _loss(mean=_position_means),
        "summed": _loss(mean=lambda each, counts: (each * counts).sum()),
        "divided-by-texts": _loss(mean=lambda each, counts: (each * counts).sum() / len(each)),
        "first-tokens-in-the-divisor": lambda logits, ids, pad_id: (
            causal_loss(logits, ids, pad_id) * (ids[:, 1:] != pad_id).sum() / (ids != pad_id).sum()),
        "bits": _loss(mean=lambda each, counts: (each * counts).sum() / counts.sum() / math.log(2)),
        "no-minus": _loss(mean=lambda each, counts: -(each * counts).sum() / counts.sum()),
        "perplexity": _loss(mean=lambda each, counts: ((each * counts).sum() / counts.sum()).exp()),
        "over-positions": _loss(lambda logits: logits.log_softmax(dim=1)),
        "over-positions-before": _over_before(1),
        "over-texts": _loss(lambda logits: logits.log_softmax(dim=0)),
        "softmax-first": _loss(lambda logits: logits.softmax(dim=-1).log_softmax(dim=-1)),
        "nll-of-logits": _loss(lambda logits: logits),
        "nll-of-probabilities": _loss(lambda logits: logits.softmax(dim=-1)),
        "logarithm-of-the-mean": _loss(lambda logits: logits.softmax(dim=-1),
                                       mean=lambda each, counts: -(-(each * counts).sum() / counts.sum()).log()),
        "cut-off": lambda logits, ids, pad_id: causal_loss(logits, ids, pad_id).detach(),
    },
)

# ---------------------------------------------------------------- 13.3

def nucleus(probabilities, p):
    ordered, ids = probabilities.sort(descending=True, stable=True)
    before = ordered.cumsum(dim=0) - ordered                               # what the tokens ahead of each add up to
    kept = torch.zeros_like(probabilities)
    kept[ids] = ordered * (before < p)                                     # at least the first: before it there is 0
    return kept / kept.sum()


def _top_p(keep=lambda ordered, total, p: total - ordered < p, share=lambda kept, p: kept / kept.sum(), descending=True,
           back=lambda kept, ids: torch.zeros_like(kept).scatter(0, ids, kept), higher_first=False):
    """Top-p with one of its parts changed."""
    def answer(probabilities, p):
        ordered, ids = probabilities.sort(descending=descending, stable=True)
        if higher_first:                                                   # of equal probabilities
            ordered, ids = (part.flip(0) for part in probabilities.sort(stable=True))
        kept = ordered * keep(ordered, ordered.cumsum(dim=0), p)
        return share(back(kept, ids), p)
    return answer


def _one_stays(keep):
    def kept(ordered, total, p):
        return keep(ordered, total, p) | (torch.arange(len(ordered)) == 0)
    return kept


def _early(ordered, total, p):
    return total < p


def _early_unless_exact(ordered, total, p):
    return total <= p


def _one_more(ordered, total, p):
    return torch.arange(len(ordered)) <= (total - ordered < p).sum()


def _not_sorted(probabilities, p):
    kept = probabilities * (probabilities.cumsum(0) - probabilities < p)
    return kept / kept.sum()


def _softmax_of_kept(kept, p):
    return kept.masked_fill(kept == 0, -math.inf).softmax(dim=0)


def _all_equals(probabilities, p):
    """Everything that is as probable as the last token of the nucleus."""
    kept = probabilities * (probabilities >= probabilities[nucleus(probabilities, p) > 0].min())
    return kept / kept.sum()


NUCLEUS = Answers(
    nucleus,
    mutants={
        "cut-early": _top_p(_early),
        "cut-early-one-stays": _top_p(_one_stays(_early)),
        "cut-early-unless-exact": _top_p(_early_unless_exact),
        "cut-early-unless-exact-one-stays": _top_p(_one_stays(_early_unless_exact)),
        "one-too-many": _top_p(_one_more),
        "one-too-many-if-exact": _top_p(lambda ordered, total, p: total - ordered <= p),
        "not-renormalised": _top_p(share=lambda kept, p: kept),
        "divided-by-p": _top_p(share=lambda kept, p: kept / p),
        "softmax-at-the-end": _top_p(share=_softmax_of_kept),
        "softmax-over-zeros": _top_p(share=lambda kept, p: kept.softmax(dim=0)),
        "last-one-trimmed": _top_p(lambda ordered, total, p: ((p - total + ordered) / ordered).clamp(0, 1)),
        "sorted-order": _top_p(back=lambda kept, ids: kept),
        "order-applied-twice": _top_p(back=lambda kept, ids: kept[ids]),
        "not-sorted": _not_sorted,
        "least-probable-first": _top_p(descending=False),
        "threshold": _top_p(lambda ordered, total, p: ordered >= p),
        "share-of-the-largest": _top_p(lambda ordered, total, p: ordered >= p * ordered[0]),
        "share-of-the-tokens": _top_p(lambda ordered, total, p: torch.arange(len(ordered)) < p * len(ordered)),
        "ties-higher-id": _top_p(higher_first=True),
        "ties-all": _all_equals,
    },
)

# ---------------------------------------------------------------- 13.4

def cached_step(query, key, value, past_keys, past_values, rotate):
    position = past_keys.shape[-2]                                         # as many tokens come before this one
    query, key = rotate(query, position), rotate(key, position)            # (batch, heads, 1, d_head)
    keys = torch.cat([past_keys, key], dim=-2)                             # (batch, heads, past + 1, d_head)
    values = torch.cat([past_values, value], dim=-2)
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])   # (batch, heads, 1, past + 1): no mask
    return scores.softmax(dim=-1) @ values, keys, values


def _joined(past, new):
    return torch.cat([past, new], dim=-2)


def _attended(query, keys, values, scaled=True, dim=-1):
    scores = query @ keys.mT / (math.sqrt(query.shape[-1]) if scaled else 1.0)
    return scores.softmax(dim=dim) @ values


def _step(query_at=lambda past: past, key_at=lambda past: past, join=_joined, attend=_attended, again=False,
          values_too=False, sees=lambda keys: keys,
          returns=lambda context, keys, values, past, new: (context, keys, values)):
    """A step with one of its parts changed. `sees` picks the cached and new tokens that the query attends to."""
    def step(query, key, value, past_keys, past_values, rotate):
        past = past_keys.shape[-2]
        query, value = rotate(query, query_at(past)), rotate(value, past) if values_too else value
        key = key if again else rotate(key, key_at(past))
        keys, values = join(past_keys, key), join(past_values, value)
        keys = rotate(keys, 0) if again else keys
        context = attend(query, sees(keys), sees(values))
        return returns(context, keys, values, (past_keys, past_values), (key, value))
    return step


def _at_zero(past):
    return 0


def _along(dim):
    return lambda past, new: torch.cat([past, new], dim=dim)


def _key_as_it_was(query, key, value, past_keys, past_values, rotate):
    context, _, values = cached_step(query, key, value, past_keys, past_values, rotate)
    return context, _joined(past_keys, key), values


CACHE = Answers(
    cached_step,
    mutants={
        "no-positions": _step(_at_zero, _at_zero),
        "query-without-position": _step(query_at=_at_zero),
        "key-without-position": _step(key_at=_at_zero),
        "one-position-on": _step(lambda past: past + 1, lambda past: past + 1),
        "one-position-back": _step(lambda past: max(past - 1, 0), lambda past: max(past - 1, 0)),
        "cached-keys-rotated-again": _step(again=True),
        "values-rotated": _step(values_too=True),
        "new-token-not-seen": _step(sees=lambda part: part[..., :-1, :]),
        "only-the-first-seen": _step(sees=lambda part: part[..., :1, :]),
        "only-itself-seen": _step(sees=lambda part: part[..., -1:, :]),
        "new-token-in-front": _step(join=lambda past, new: torch.cat([new, past], dim=-2)),
        "past-returned": _step(returns=lambda context, keys, values, past, new: (context, *past)),
        "new-returned": _step(returns=lambda context, keys, values, past, new: (context, *new)),
        "unrotated-key-returned": _key_as_it_was,
        "joined-along-the-batch": _step(join=_along(0)),
        "joined-along-the-heads": _step(join=_along(1)),
        "joined-along-the-width": _step(join=_along(3)),
        "swapped": _step(returns=lambda context, keys, values, past, new: (context, values, keys)),
        "no-scaling": _step(attend=lambda q, k, v: _attended(q, k, v, scaled=False)),
        "softmax-over-queries": _step(attend=lambda q, k, v: _attended(q, k, v, dim=-2)),
    },
)

# ---------------------------------------------------------------- 13.5

def how_far_back(logits_of, token_ids, vocab_size):
    before = logits_of(token_ids)[:, -1]                                   # (1, vocab): what is said of the next token
    furthest = 0
    for back in range(1, token_ids.shape[1] + 1):
        changed = token_ids.clone()
        changed[:, -back] = (changed[:, -back] + 1) % vocab_size           # another id, whatever it was
        if not torch.equal(logits_of(changed)[:, -1], before):
            furthest = back                                                # and go on: there may be gaps
    return furthest


def _other(token_ids, vocab_size):
    return (token_ids + 1) % vocab_size


def _reach(changed_to=_other, seen=lambda logits: logits[:, -1], result=lambda found, seq_len: max(found, default=0)):
    """The reach with one of its parts changed; `found` are all the counts back at which a change was seen."""
    def reach(logits_of, token_ids, vocab_size):
        before, found = seen(logits_of(token_ids)), []
        for back in range(1, token_ids.shape[1] + 1):
            changed = token_ids.clone()
            changed[:, -back] = changed_to(changed[:, -back], vocab_size)
            if not torch.equal(seen(logits_of(changed)), before):
                found.append(back)
        return result(found, token_ids.shape[1])
    return reach


def _left_out(logits_of, token_ids, vocab_size):
    before, furthest = logits_of(token_ids)[:, -1], 0
    for back in range(1, token_ids.shape[1] + 1):
        shorter = token_ids[:, torch.arange(token_ids.shape[1]) != token_ids.shape[1] - back]
        if not torch.equal(logits_of(shorter)[:, -1], before):
            furthest = back
    return furthest


def _zero(token_ids, vocab_size):
    return torch.zeros_like(token_ids)


def _without_gap(found, seq_len):
    return next(back for back in range(seq_len + 1) if back + 1 not in found)


REACH = Answers(
    how_far_back,
    mutants={
        "as-given": _reach(_zero, result=_without_gap),
        "stops-early": _reach(result=_without_gap),
        "set-to-zero": _reach(_zero),
        "set-to-the-last-id": _reach(lambda ids, vocab_size: torch.full_like(ids, vocab_size - 1)),
        "mirrored": _reach(lambda ids, vocab_size: vocab_size - 1 - ids),
        "left-out": _left_out,
        "distance": _reach(result=lambda found, seq_len: max(found, default=1) - 1),
        "nearest": _reach(result=lambda found, seq_len: min(found, default=0)),
        "counted": _reach(result=lambda found, seq_len: len(found)),
        "position": _reach(result=lambda found, seq_len: seq_len - max(found, default=0)),
        "most-probable-only": _reach(seen=lambda logits: logits[:, -1].argmax(dim=-1)),
        "all-positions": _reach(seen=lambda logits: logits),
    },
)

# ---------------------------------------------------------------- 13.6

def bits_for_each_byte(mean_loss, num_tokens, text):
    bits = mean_loss * num_tokens / math.log(2)                            # of the whole text
    return bits / len(text.encode("utf-8"))


BITS = Answers(
    bits_for_each_byte,
    mutants={
        "per-character": lambda loss, n, text: loss * n / math.log(2) / len(text),
        "nats": lambda loss, n, text: loss * n / len(text.encode()),
        "nats-per-character": lambda loss, n, text: loss * n / len(text),
        "per-token": lambda loss, n, text: loss / math.log(2),
        "mean-per-character": lambda loss, n, text: loss / math.log(2) / len(text),
        "mean-per-byte": lambda loss, n, text: loss / math.log(2) / len(text.encode()),
        "per-token-and-byte": lambda loss, n, text: loss / n / math.log(2) / len(text.encode()),
        "mean-per-token": lambda loss, n, text: loss / math.log(2) / n,
        "multiplied": lambda loss, n, text: loss * n * math.log(2) / len(text.encode()),
        "whole-text": lambda loss, n, text: loss * n / math.log(2),
        "upside-down": lambda loss, n, text: len(text.encode()) / (loss * n / math.log(2)),
        "bytes-per-token": lambda loss, n, text: loss / math.log(2) * len(text.encode()) / n,
        "times-the-bytes": lambda loss, n, text: loss * n / math.log(2) * len(text.encode()),
        "logarithm-of-the-loss": lambda loss, n, text: math.log2(loss * n) / len(text.encode()),
        "perplexity": lambda loss, n, text: math.exp(loss),
        "utf-16": lambda loss, n, text: loss * n / math.log(2) / len(text.encode("utf-16")),
        "divided-by-eight": lambda loss, n, text: loss * n / math.log(2) / len(text.encode()) / 8,
    },
)

ANSWERS = (SHIFT, CAUSAL_LOSS, NUCLEUS, CACHE, REACH, BITS)
