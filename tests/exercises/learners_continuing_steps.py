"""Answers that learners may write to exercises 13.4 to 13.6, right ones and wrong ones."""

import math
import sys

import torch
from learners_answers import right
from torch.nn import functional as F

# ---------------------------------------------------------------- 13.4


def step(offset=lambda past_keys: past_keys.shape[2], query_offset=None, attend=F.scaled_dot_product_attention, dim=2):
    def answer(query, key, value, past_keys, past_values, rotate):
        at = offset(past_keys)
        query = rotate(query, at if query_offset is None else query_offset(past_keys))
        keys = torch.cat([past_keys, rotate(key, at)], dim=dim)
        values = torch.cat([past_values, value], dim=dim)
        return attend(query, keys, values), keys, values
    return answer


def all_rotated_at_the_end(query, key, value, past_keys, past_values, rotate):
    keys, values = torch.cat([past_keys, key], 2), torch.cat([past_values, value], 2)
    query, keys = rotate(query, 0), rotate(keys, 0)
    return F.scaled_dot_product_attention(query, keys, values), keys, values


def raw(query, key, value, past_keys, past_values, rotate):
    keys, values = torch.cat([past_keys, key], 2), torch.cat([past_values, value], 2)
    return F.scaled_dot_product_attention(query, keys, values), keys, values


def cached_before_rotating(query, key, value, past_keys, past_values, rotate):
    context, _, values = right("13.4")(query, key, value, past_keys, past_values, rotate)
    return context, torch.cat([past_keys, key], 2), values


def heads_merged(query, key, value, past_keys, past_values, rotate):
    context, keys, values = right("13.4")(query, key, value, past_keys, past_values, rotate)
    return context.transpose(1, 2).flatten(2), keys, values


def last_eight(query, keys, values):
    return F.scaled_dot_product_attention(query, keys[:, :, -8:], values[:, :, -8:])


def causal(query, keys, values):
    return F.scaled_dot_product_attention(query, keys, values, is_causal=True)


def triangle(query, keys, values):
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    mask = torch.tril(torch.ones(scores.shape[-2:], dtype=torch.bool))
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ values


def triangle_at_the_right(query, keys, values):
    """A causal mask for the whole text, of which the last row is taken: it hides nothing."""
    total = keys.shape[-2]
    mask = torch.tril(torch.ones(total, total, dtype=torch.bool))[-1:]
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


def scaled_by(divisor):
    return step(attend=lambda query, keys, values: (query @ keys.mT / divisor(query)).softmax(-1) @ values)


def stacked(query, key, value, past_keys, past_values, rotate):
    keys = torch.stack([past_keys, rotate(key, past_keys.shape[2])], dim=2)
    return F.scaled_dot_product_attention(query, keys, keys), keys, keys


def written_backwards(query, key, value, past_keys, past_values, rotate):
    """Attention over the tokens in reverse, which is the same sum; the cache in order."""
    past = past_keys.shape[2]
    keys, values = torch.cat([past_keys, rotate(key, past)], 2), torch.cat([past_values, value], 2)
    return F.scaled_dot_product_attention(rotate(query, past), keys.flip(2), values.flip(2)), keys, values


def past_and_new_apart(query, key, value, past_keys, past_values, rotate):
    """Two softmaxes joined by their sums."""
    past = past_keys.shape[2]
    query, key = rotate(query, past), rotate(key, past)
    old, new = (query @ part.mT / query.shape[-1] ** 0.5 for part in (past_keys, key))
    total = torch.logaddexp(old.logsumexp(-1, keepdim=True), new)
    context = (old - total).exp() @ past_values + (new - total).exp() * value
    return context, torch.cat([past_keys, key], 2), torch.cat([past_values, value], 2)


def no_cache_yet(query, key, value, past_keys, past_values, rotate):
    if past_keys.numel() == 0:
        return value, key, value
    return right("13.4")(query, key, value, past_keys, past_values, rotate)


def room_made(query, key, value, past_keys, past_values, rotate):
    """Room for one more by padding, and what is new added there."""
    past = past_keys.shape[2]
    keys = F.pad(past_keys, (0, 0, 0, 1)) + F.pad(rotate(key, past), (0, 0, past, 0))
    values = F.pad(past_values, (0, 0, 0, 1)) + F.pad(value, (0, 0, past, 0))
    return F.scaled_dot_product_attention(rotate(query, past), keys, values), keys, values


def softmax_over_heads(query, keys, values):
    return (query @ keys.mT / query.shape[-1] ** 0.5).softmax(1) @ values


def scaled_after_softmax(query, keys, values):
    return (query @ keys.mT).softmax(-1) / query.shape[-1] ** 0.5 @ values


def itself_hidden(query, keys, values):
    """A causal mask with the diagonal hidden as well."""
    mask = torch.ones(1, keys.shape[2], dtype=torch.bool)
    mask[:, -1] = keys.shape[2] == 1
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


# ---------------------------------------------------------------- 13.5


def reach(change, same=torch.equal, result=lambda back: back):
    def answer(logits_of, token_ids, vocab_size):
        before, furthest = logits_of(token_ids)[:, -1], 0
        for back in range(1, token_ids.shape[1] + 1):
            if not same(logits_of(change(token_ids.clone(), back, vocab_size))[:, -1], before):
                furthest = result(back)
        return furthest
    return answer


def one_more(changed, back, vocab_size):
    changed[:, -back] = (changed[:, -back] + 1) % vocab_size
    return changed


def without_modulo(changed, back, vocab_size):
    changed[:, -back] += 1
    return changed


def all_up_to_the_end(changed, back, vocab_size):
    changed[:, -back:] = (changed[:, -back:] + 1) % vocab_size
    return changed


def token_left_out(changed, back, vocab_size):
    keep = torch.arange(changed.shape[1]) != changed.shape[1] - back
    return changed[:, keep] if keep.any() else changed


def same_probabilities(one, other):
    return torch.allclose(one.softmax(-1), other.softmax(-1))


def everything_before(logits_of, token_ids, vocab_size):
    before, seq_len = logits_of(token_ids)[:, -1], token_ids.shape[1]
    for back in range(seq_len):
        changed = token_ids.clone()
        changed[:, : seq_len - back] = (changed[:, : seq_len - back] + 1) % vocab_size
        if torch.equal(logits_of(changed)[:, -1], before):
            return back
    return seq_len


def up_to_the_second(logits_of, token_ids, vocab_size):
    before, furthest = logits_of(token_ids)[:, -1], 0
    for back in range(1, token_ids.shape[1]):
        if not torch.equal(logits_of(one_more(token_ids.clone(), back, vocab_size))[:, -1], before):
            furthest = back
    return furthest


def all_in_one_batch(logits_of, token_ids, vocab_size):
    """A text for each token that is changed, all read at once."""
    seq_len = token_ids.shape[1]
    texts = torch.where(torch.eye(seq_len, dtype=torch.bool), (token_ids + 1) % vocab_size, token_ids)
    seen = (logits_of(texts)[:, -1] != logits_of(token_ids)[:, -1]).any(dim=1)
    return int(seq_len - seen.nonzero().min()) if seen.any() else 0


def from_the_beginning(logits_of, token_ids, vocab_size):
    seq_len = token_ids.shape[1]
    for back in range(seq_len, 0, -1):
        changed = token_ids.clone()
        changed[0, seq_len - back] = (changed[0, seq_len - back] - 1) % vocab_size
        if (logits_of(changed)[0, -1] != logits_of(token_ids)[0, -1]).any():
            return back
    return 0


def counted_from_zero(logits_of, token_ids, vocab_size):
    before, furthest = logits_of(token_ids)[:, -1], 0
    for back in range(token_ids.shape[1]):                                 # [:, -0] is the first token
        if not torch.equal(logits_of(one_more(token_ids.clone(), back, vocab_size))[:, -1], before):
            furthest = back
    return furthest


def set_to(value):
    def change(changed, back, vocab_size):
        changed[:, -back] = value(changed[:, -back], vocab_size)
        return changed
    return change


def nearly(one, other):
    return torch.allclose(one, other, atol=0.1)


# ---------------------------------------------------------------- 13.6


def bits(size):
    return lambda loss, n, text: loss * n / math.log(2) / size(text)


def size_of_the_object(text):
    return sys.getsizeof(text)
