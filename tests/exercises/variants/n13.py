"""Other right answers to the exercises of notebook 13, which a check must accept."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from course_utils import attention


def _pairs(token_ids):
    """Text by text, in lists."""
    return [row.tolist()[:-1] for row in token_ids], [row.tolist()[1:] for row in token_ids]


def _by_index(token_ids):
    positions = torch.arange(token_ids.shape[1] - 1)
    return token_ids.index_select(1, positions), token_ids.index_select(1, positions + 1)


def _loss_by_loops(logits, token_ids, pad_id):
    total, count = 0.0, 0
    for text, ids in zip(logits, token_ids.tolist()):
        for scores, answer in zip(text, ids[1:]):
            if answer != pad_id:
                total, count = total + torch.logsumexp(scores, dim=0) - scores[answer], count + 1
    return total / count


def _loss_by_gather(logits, token_ids, pad_id):
    targets = token_ids[:, 1:]
    each = -logits[:, :-1].log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return each[targets != pad_id].mean()


def _loss_transposed(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), token_ids[:, 1:], ignore_index=pad_id)


def _loss_marked(logits, token_ids, pad_id):
    """As other libraries do: the targets stay as long as the text, and what isn't asked for is -100."""
    labels = F.pad(token_ids[:, 1:], (0, 1), value=pad_id)
    labels = labels.masked_fill(labels == pad_id, -100)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def _loss_by_one_hot(logits, token_ids, pad_id):
    wanted = F.one_hot(token_ids[:, 1:], logits.shape[-1]) * (token_ids[:, 1:] != pad_id)[..., None]
    return -(F.log_softmax(logits[:, :-1], dim=-1) * wanted).sum() / wanted.sum()


def _nucleus_by_loop(probabilities, p):
    left, total = [0.0] * len(probabilities), 0.0
    for i in sorted(range(len(probabilities)), key=lambda i: -probabilities[i].item()):
        left[i] = probabilities[i].item()
        total += left[i]
        if total >= p - 1e-9:
            break
    return [one / total for one in left]


def _nucleus_searched(probabilities, p):
    ids = probabilities.argsort(descending=True, stable=True)
    count = int(torch.searchsorted(probabilities[ids].cumsum(0), p)) + 1
    kept = torch.zeros_like(probabilities)
    kept[ids[:count]] = probabilities[ids[:count]]
    return kept / kept.sum()


def _nucleus_numpy(probabilities, p):
    numbers = probabilities.numpy()
    order = np.argsort(-numbers, kind="stable")
    remove = np.cumsum(numbers[order]) >= p
    remove[1:], remove[0] = remove[:-1].copy(), False
    kept = numbers.copy()
    kept[order[remove]] = 0
    return kept / kept.sum()


def _nucleus_by_ranks(probabilities, p):
    """The order undone by sorting it, and a softmax of logarithms to make the sum one."""
    ids = probabilities.argsort(descending=True, stable=True)
    before = F.pad(probabilities[ids].cumsum(0), (1, -1))
    return probabilities.log().masked_fill((before >= p)[ids.argsort()], -math.inf).softmax(0)


def _step_by_library(query, key, value, past_keys, past_values, rotate):
    offset = past_keys.size(2)
    keys = torch.cat((past_keys, rotate(key, offset)), 2)
    values = torch.cat((past_values, value), 2)
    return F.scaled_dot_product_attention(rotate(query, offset), keys, values), keys, values


def _step_by_course(query, key, value, past_keys, past_values, rotate):
    offset = past_keys.shape[2]
    keys, values = torch.cat([past_keys, rotate(key, offset)], 2), torch.cat([past_values, value], 2)
    mask = attention.causal_mask(1, offset + 1)
    context, _ = attention.scaled_dot_product_attention(rotate(query, offset), keys, values, mask)
    return context, keys, values


def _step_filled_in(query, key, value, past_keys, past_values, rotate):
    """A cache of the new size, filled in, and attention as sums."""
    batch, heads, past, d_head = past_keys.shape
    keys, values = (part.new_empty(batch, heads, past + 1, d_head) for part in (past_keys, past_values))
    keys[:, :, :past], keys[:, :, past:] = past_keys, rotate(key, offset=past)
    values[:, :, :past], values[:, :, past:] = past_values, value
    weights = (torch.einsum("bhqd,bhkd->bhqk", rotate(query, past), keys) * d_head**-0.5).softmax(dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, values), keys, values


def _step_head_by_head(query, key, value, past_keys, past_values, rotate):
    past = past_keys.shape[2]
    query, key = rotate(query, past), rotate(key, past)
    keys, values = torch.cat([past_keys, key], dim=2), torch.cat([past_values, value], dim=2)
    context = torch.zeros_like(query)
    for b in range(len(query)):
        for h in range(query.shape[1]):
            weights = (keys[b, h] @ query[b, h, 0] / query.shape[-1] ** 0.5).softmax(0)
            context[b, h, 0] = weights @ values[b, h]
    return [context, keys, values]


def _from_the_front(logits_of, token_ids, vocab_size):
    before, seq_len = logits_of(token_ids), token_ids.shape[1]
    for position in range(seq_len):
        changed = token_ids.clone()
        changed[0, position] = vocab_size - 1 if token_ids[0, position] == 0 else 0
        if not torch.allclose(logits_of(changed)[0, -1], before[0, -1]):
            return seq_len - position
    return 0


def _every_other_id(logits_of, token_ids, vocab_size):
    before, found = logits_of(token_ids)[0, -1], [0]
    for back in range(1, token_ids.shape[1] + 1):
        for other in range(vocab_size):
            changed = token_ids.clone()
            changed[0, -back] = other
            if (logits_of(changed)[0, -1] - before).abs().max() > 1e-5:
                found.append(back)
    return max(found)


def _changed_and_put_back(logits_of, token_ids, vocab_size):
    token_ids, furthest = token_ids.clone(), 0
    before = logits_of(token_ids)[:, -1]
    for i in range(token_ids.shape[1]):
        was = token_ids[0, -1 - i].item()
        token_ids[0, -1 - i] = was - 1 if was else 1
        furthest = furthest if (logits_of(token_ids)[:, -1] == before).all() else i + 1
        token_ids[0, -1 - i] = was
    return torch.tensor(furthest)


VARIANTS = {
    "13.1": {"text by text": _pairs, "by index": _by_index,
             "views": lambda ids: (ids.narrow(1, 0, ids.shape[1] - 1), ids.narrow(1, 1, ids.shape[1] - 1)),
             "rolled, then cut": lambda ids: (ids[:, :-1], ids.roll(-1, dims=1)[:, :-1]),
             "numpy": lambda ids: (ids.numpy()[..., :-1], ids.numpy()[..., 1:]),
             "windows": lambda ids: ids.unfold(1, 2, 1).unbind(-1)},
    "13.2": {"loops": _loss_by_loops, "gather": _loss_by_gather, "transposed": _loss_transposed, "marked": _loss_marked,
             "one-hot": _loss_by_one_hot,
             "in brackets": lambda logits, ids, pad_id: _loss_by_gather(logits, ids, pad_id)[None]},
    "13.3": {"loop": _nucleus_by_loop, "searched": _nucleus_searched, "numpy": _nucleus_numpy,
             "by ranks": _nucleus_by_ranks},
    "13.4": {"library": _step_by_library, "course": _step_by_course, "filled in": _step_filled_in,
             "head by head": _step_head_by_head},
    "13.5": {"from the front": _from_the_front, "every other id": _every_other_id, "put back": _changed_and_put_back},
    "13.6": {"log2 of e": lambda loss, n, text: loss * n * math.log2(math.e) / len(bytes(text, "utf-8")),
             "byte by byte": lambda loss, n, text: loss / math.log(2) / (sum(len(sign.encode()) for sign in text) / n),
             "array": lambda loss, n, text: np.array([loss * n]) / np.log(2) / len(np.frombuffer(text.encode(), "uint8"))},
}
