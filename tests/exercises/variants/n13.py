"""Other right answers to the exercises of notebook 13, which a check must accept."""

import math

import numpy as np
import torch


def _loss_by_gather(logits, token_ids, pad_id):
    targets = token_ids[:, 1:]
    each = -logits[:, :-1].log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return each[targets != pad_id].mean()


def _nucleus_by_loop(probabilities, p):
    left, total = [0.0] * len(probabilities), 0.0
    for i in sorted(range(len(probabilities)), key=lambda i: -probabilities[i].item()):
        left[i] = probabilities[i].item()
        total += left[i]
        if total >= p - 1e-9:
            break
    return [one / total for one in left]


def _step_filled_in(query, key, value, past_keys, past_values, rotate):
    """A cache of the new size, filled in, and attention as sums."""
    batch, heads, past, d_head = past_keys.shape
    keys, values = (part.new_empty(batch, heads, past + 1, d_head) for part in (past_keys, past_values))
    keys[:, :, :past], keys[:, :, past:] = past_keys, rotate(key, offset=past)
    values[:, :, :past], values[:, :, past:] = past_values, value
    weights = (torch.einsum("bhqd,bhkd->bhqk", rotate(query, past), keys) * d_head**-0.5).softmax(dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, values), keys, values


def _from_the_front(logits_of, token_ids, vocab_size):
    before, seq_len = logits_of(token_ids), token_ids.shape[1]
    for position in range(seq_len):
        changed = token_ids.clone()
        changed[0, position] = vocab_size - 1 if token_ids[0, position] == 0 else 0
        if not torch.allclose(logits_of(changed)[0, -1], before[0, -1]):
            return seq_len - position
    return 0


VARIANTS = {
    "13.1": {"numpy": lambda ids: (ids.numpy()[..., :-1], ids.numpy()[..., 1:])},
    "13.2": {"gather": _loss_by_gather},
    "13.3": {"loop": _nucleus_by_loop},
    "13.4": {"filled in": _step_filled_in},
    "13.5": {"from the front": _from_the_front},
    "13.6": {"byte by byte": lambda loss, n, text: loss / math.log(2) / (sum(len(sign.encode()) for sign in text) / n),
             "array": lambda loss, n, text: np.array([loss * n]) / np.log(2) / len(np.frombuffer(text.encode(), "uint8"))},
}
