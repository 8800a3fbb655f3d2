"""Prompts that are scored: ln p of answers, and positions that later tokens can't see.

Does: read what many prompts share once and continue from its key/value cache; score
whole answers; calibrate by texts without content; hide positions. Does not: write
prompts, load models, or choose examples.

Exported from notebooks/21_prompting.ipynb: edit it there.
"""

from contextlib import contextmanager

import torch

from course_utils.language_model import KeyValueCache


def shared_start(rows):
    """How many ids all rows begin with; two of each row, or more, are left over.

    Taught in 21_prompting, '2. Examples, read once'.
    """
    longest = max(min(len(row) for row in rows) - 2, 0)    # one token gets no mask
    same = 0
    while same < longest and len({row[same] for row in rows}) == 1:
        same += 1
    return same


def branch(caches, batch_size):
    """The caches of one text, for a batch of continuations; they stay as they are.

    Taught in 21_prompting, '2. Examples, read once'.
    """
    branches = [KeyValueCache() for _ in caches]
    for new, old in zip(branches, caches):
        if len(old):
            new.key = old.key.expand(batch_size, -1, -1, -1)
            new.value = old.value.expand(batch_size, -1, -1, -1)
    return branches


@torch.no_grad()
def next_log_p(model, rows, batch_size=10):
    """Rows of ids -> ln p of every token after each row's last one (row, vocab).

    Taught in 21_prompting, '2. Examples, read once'.
    """
    shared = shared_start(rows)
    caches = model.new_caches()
    if shared:
        model(torch.tensor([list(rows[0][:shared])]), caches=caches)
    found = [None] * len(rows)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for first in range(0, len(rows), batch_size):
        batch = order[first : first + batch_size]          # of about the same length
        rests = [torch.tensor(list(rows[i][shared:])) for i in batch]
        padded = torch.nn.utils.rnn.pad_sequence(rests, batch_first=True)
        logits = model(padded, caches=branch(caches, len(batch))).logits
        for i, rest, row in zip(batch, rests, logits):     # row (padded len, vocab)
            found[i] = row[len(rest) - 1].log_softmax(dim=-1)
    return torch.stack(found)


def label_scores(model, prompts, answers):
    """Prompts and answers as ids -> ln p of each whole answer (prompt, answer).

    Taught in 21_prompting, '2. Examples, read once'.
    """
    rows = {(*prompt, *answer[:i]): None for prompt in prompts
            for answer in answers for i in range(len(answer))}   # each of them once
    table = dict(zip(rows, next_log_p(model, list(rows))))
    return torch.stack([torch.stack([
        sum(table[(*prompt, *answer[:i])][token] for i, token in enumerate(answer))
        for answer in answers]) for prompt in prompts])

__all__ = ["shared_start", "branch", "next_log_p", "label_scores", "calibrate", "hidden"]


# The package's version of the exercise: click to see the code
def calibrate(scores, empty):
    """ln p of answers after questions (question, answer) and after texts without content (text, answer) -> probabilities.

    Divides by the prior, the mean of the texts' probabilities (Zhao et al. 2021, arXiv:2102.09690, section 5).

    Taught in 21_prompting, '4. What it says about nothing'.
    """
    p = scores.softmax(dim=-1) / empty.softmax(dim=-1).mean(dim=0)
    return p / p.sum(dim=-1, keepdim=True)


@contextmanager
def hidden(model, positions, start=0):
    """Inside it no token from `start` on sees these positions; a token sees itself.

    Taught in 21_prompting, '5. Where is the answer looked up?'.
    """
    plain = model.mask
    def mask(new, total):                                  # -> (1, 1, query, key)
        queries = torch.arange(total - new, total)[:, None]
        keys = torch.arange(total)
        closed = torch.isin(keys, torch.tensor(positions)) & (queries >= start)
        return plain(new, total) & (~closed | (queries == keys))
    model.mask = mask
    try:
        yield
    finally:
        del model.mask                                     # the class's own again
