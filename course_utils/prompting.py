"""Draft."""

from __future__ import annotations

from contextlib import contextmanager

import torch
from torch.nn import functional as F

from course_utils.language_model import KeyValueCache

FORM = "Review: {text}\nSentiment:"
LABELS = (" negative", " positive")


def write_examples(examples, form=FORM, labels=LABELS, instruction=""):
    shown = [form.format(text=text) + labels[label] for text, label in examples]
    return "".join(part + "\n\n" for part in [instruction, *shown] if part)


@torch.no_grad()
def read_once(model, token_ids):
    caches = model.new_caches()
    if token_ids:
        model(torch.tensor([token_ids]), caches=caches)
    return caches


def branch(caches, batch_size):
    branched = []
    for cache in caches:
        own = KeyValueCache()
        if len(cache):
            own.key = cache.key.expand(batch_size, -1, -1, -1)
            own.value = cache.value.expand(batch_size, -1, -1, -1)
        branched.append(own)
    return branched


@torch.no_grad()
def continue_rows(model, caches, rows):
    """ln p of every token after every token of these rows: one (len(row), vocab) each."""
    lengths = [len(row) for row in rows]
    padded = torch.zeros(len(rows), max(lengths), dtype=torch.long)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.tensor(row)
    logits = model(padded, caches=branch(caches, len(rows))).logits
    return [row[:n].log_softmax(dim=-1) for row, n in zip(logits, lengths)]


def first_token_scores(model, caches, questions, answers, batch_size=10):
    """(question, answer)"""
    firsts = [answer[0] for answer in answers]
    order = sorted(range(len(questions)), key=lambda i: len(questions[i]))
    scores = torch.zeros(len(questions), len(answers))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        for i, table in zip(rows, continue_rows(model, caches, [questions[i] for i in rows])):
            scores[i] = table[-1, firsts]
    return scores
