"""Exercises, quiz and warm-up of notebook 16, recurrent attention."""

import contextlib
import math
import os

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import (
    EACH_MAXIMUM,
    HIDDEN_AT_THE_END,
    gap,
    hidden_at_the_end,
    items_of,
    listed,
    loss_and_gradient,
    one_tensor,
    reached,
    reaches,
    row_sums,
    spread,
    two_results,
    what,
    worst_row,
)

BEGIN, END, PAD = 2, 3, 0

# ---------------------------------------------------------------- 16.1 a Bahdanau step

KEYS, QUERY, V = torch.tensor([[1.0, 0.0], [0.0, 0.0], [-1.0, 1.0]]), torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0])


def bahdanau_by_hand():
    # sums (1, 1), (0, 1), (-1, 2); scores 0.76 + 1.52, 1.52, -0.76 + 1.92; exponentials 9.78, 4.57, 3.19
    return [0.56, 0.26, 0.18]


def _numbers(case: Case) -> str:
    return f"your weights are {listed(case.answer, '.2f')}."


HAND = ask(
    "16.1", bahdanau_by_hand,
    kind="number",
    tolerance=1.2e-2,
    signature="a list of three numbers, the weights of the three words",
    mistakes={
        "no-tanh": M(lambda: ((QUERY + KEYS) @ V).softmax(dim=0),
            _numbers, "The tanh is missing. Without it the query adds the same to every score, and the "
                "softmax doesn't see it at all."),
        "no-softmax": M(lambda: (QUERY + KEYS).tanh() @ V,
            lambda case: f"your numbers are {listed(case.answer, '.2f')}, and sum to "
                f"{case.answer.sum():.2f}.", "These are the scores. The softmax is still to come."),
        "exponentials": M(lambda: ((QUERY + KEYS).tanh() @ V).exp(),
            lambda case: f"your numbers sum to {case.answer.sum():.2f}.", "These are the "
                "exponentials of the scores. Divide each by the sum of all three."),
        "v-forgotten": M(lambda: (QUERY + KEYS).tanh().sum(dim=1).softmax(dim=0),
            _numbers, "You added the two numbers of each tanh. The second counts twice: v is (1, 2)."),
        "query-forgotten": M(lambda: (KEYS.tanh() @ V).softmax(dim=0),
            _numbers, "These are the weights for a query of zeros. Add the query to each key before "
                "the tanh."),
        "dot-product": M(lambda: (KEYS @ QUERY).softmax(dim=0),
            _numbers, "That's the softmax of the dot products of query and keys. The additive score is "
                "v · tanh(query + key)."),
        "sign-lost": M(lambda: ((QUERY + KEYS).abs().tanh() @ V).softmax(dim=0),
            _numbers, "A minus sign is missing: the third sum is (−1, 2), and tanh(−1) is −0.76."),
        "query-subtracted": M(lambda: ((QUERY - KEYS).tanh() @ V).softmax(dim=0),
            _numbers, "You took the difference of query and key. The additive score takes their "
                "sum."),
        "tanh-last": M(lambda: ((QUERY + KEYS) @ V).tanh().softmax(dim=0),
            _numbers, "You took the tanh of the whole score. It belongs inside: tanh of each number of the "
                "sum, and then the dot product with v."),
        "v-turned-round": M(lambda: ((QUERY + KEYS).tanh() @ V.flip(0)).softmax(dim=0),
            _numbers, "Here the first number of each tanh counts twice. v is (1, 2), so it's the "
                "second."),
        "scaled": M(lambda: ((QUERY + KEYS).tanh() @ V / 2**0.5).softmax(dim=0),
            _numbers, "You divided the scores by √2, as a scaled dot product is. The additive score isn't "
                "scaled."),
        "no-exponential": M(lambda: (QUERY + KEYS).tanh() @ V / ((QUERY + KEYS).tanh() @ V).sum(),
            _numbers, "You divided the scores by their sum. The softmax takes their exponentials "
                "first."),
    },
    rules=(
        R(lambda case: abs(case.answer.sum() - 1) > 0.03, lambda case: f"the three sum to {case.answer.sum():.2f}.",
          "Weights sum to one: divide by the sum of the three exponentials."),
        R(lambda case: not case.answer[0] > case.answer[1] > case.answer[2], _numbers, "The first word should "
                 "have the largest weight and the third the smallest. Add query and key first: (1, 1), (0, 1) and (−1, 2)."),
        R(lambda case: True, lambda case: f"the first weight is {case.answer[0]:.2f}.", "The order is right. Compute "
                 "each score as 1 · tanh(first sum) + 2 · tanh(second sum), and then its exponential."),
    ),
    hints=(
        "Query and key are added, number by number. What are the three sums?",
        "The sums are (1, 1), (0, 1) and (−1, 2). Take tanh of each number, then the dot product with v.",
        "The scores are 2.28, 1.52 and 1.16; their exponentials 9.78, 4.57 and 3.19.",
    ),
)

# ---------------------------------------------------------------- 16.2 additive attention for a batch

def additive_step(query, keys, states, mask, v):
    scores = (query[:, None] + keys).tanh() @ v                            # (batch, source)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return (weights[:, None] @ states)[:, 0], weights                      # (batch, d_states)


def _step(scores=lambda q, k, v: (q[:, None] + k).tanh() @ v,
          hidden=lambda scores, mask: scores.masked_fill(~mask, -torch.inf),
          soft=lambda scores: scores.softmax(dim=-1), after=lambda weights, mask: weights,
          mean=lambda weights, keys, states, mask: (weights[:, None] @ states)[:, 0]):
    """Additive attention with one of its parts changed."""
    def answer(query, keys, states, mask, v):
        weights = after(soft(hidden(scores(query, keys, v), mask)), mask)
        return mean(weights, keys, states, mask), weights
    return answer


def attention_probes(generator: torch.Generator) -> list[tuple]:
    """(query, keys, states, mask, v): ragged sentences with wider states than keys; all of one length; a single sentence;
    scores all near 2000, and all near -2000; padding in front and in between."""
    def draw(batch, source, d, d_states, lengths):
        mask = torch.arange(source) < torch.tensor(lengths)[:, None]
        return (torch.randn(batch, d, generator=generator), torch.randn(batch, source, d, generator=generator),
                torch.randn(batch, source, d_states, generator=generator), mask, 1.5 * torch.randn(d, generator=generator))

    probes = [draw(3, 5, 4, 6, [5, 2, 3]), draw(2, 4, 3, 3, [4, 1]), draw(1, 3, 5, 2, [3])]
    query, keys, states, mask, v = draw(3, 4, 3, 2, [2, 4, 3])
    keys = 30.0 * torch.where(keys > 0, 1.0, -1.0)      # tanh of those is exactly 1 or -1, so scores differ by 4, 2 or 0
    keys[..., 0] = torch.tensor([[-30.0], [30.0], [-30.0]])
    elsewhere = torch.tensor([[False, False, True, True], [True, False, False, True], [False, True, True, True]])
    return [*probes, (query.clamp(-3, 3), keys, states, mask, torch.tensor([2000.0, 2.0, 1.0])),
            (*draw(3, 4, 3, 2, [4, 4, 4])[:3], elsewhere, torch.tensor([1.0, -1.5, 2.0]))]


def observe_attention(function, query, keys, states, mask, v):
    """Context and weights as two tensors."""
    output = function(query, keys, states, mask, v)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    return {"context": context, "weights": weights}


def _row(case: Case) -> str:
    """The weights of the sentence that is furthest off."""
    i = worst_row(case, "weights")
    return (f"the weights of sentence {i}, counted from 0, are {listed(case.weights[i], '.2f')}, expected "
            f"{listed(case.right['weights'][i], '.2f')}.")


def _on_padding(case: Case) -> str:
    on_padding = case.weights.masked_fill(case.inputs[3], 0).sum(dim=1)
    return f"up to {on_padding.max():.2g} of a sentence's weight is on padding."


def _context(case: Case) -> str:
    return f"your weights are right, and your contexts are up to {gap(case, 'context'):.2f} off."


def _columns(case: Case) -> str:
    return f"your rows sum to {spread(case.weights.sum(dim=1))}, your columns to {spread(case.weights.sum(dim=0))}."


ATTENTION = ask(
    "16.2", additive_step,
    probes=attention_probes,
    observe=observe_attention,
    signature="additive_step(query (batch, d), keys (batch, source, d), states (batch, source, d_states), "
    "mask (batch, source), v (d,)) -> context (batch, d_states), weights (batch, source)",
    not_finite={
        "inf": f"exp of a large score overflows: call softmax. {EACH_MAXIMUM}",
        "-inf": "−inf belongs on the scores of padding, before the softmax; a weight is never below 0, and a context is a "
        "mean of states.",
        "NaN": "A softmax over nothing but −inf is NaN. Every sentence here has a real word: is the mask the right way "
        f"round, and the softmax over the words? {EACH_MAXIMUM}"},
    forbidden=("course_utils.recurrent_attention.AdditiveAttention",),
    mistakes={
        "no-tanh": M(_step(scores=lambda q, k, v: (q[:, None] + k) @ v),
            _row, "The tanh is missing. Then every word's score has the same addition from the query, "
                "which the softmax removes: whatever is asked, the answer is the same."),
        "tanh-last": M(_step(scores=lambda q, k, v: ((q[:, None] + k) @ v).tanh()),
            _row, "You took the tanh of the whole score. It belongs inside: tanh(query + key), and "
                "then the dot product with v."),
        "dot-product": M(_step(scores=lambda q, k, v: (q[:, None] * k).sum(dim=-1)),
            _row, "You multiplied query and keys. The additive score adds them, and v weighs the "
                "tanh of the sum."),
        "scaled": M(_step(scores=lambda q, k, v: (q[:, None] + k).tanh() @ v / len(v)**0.5),
            _row, "You divided the scores by √d, as a scaled dot product is. The additive score isn't "
                "scaled."),
        "query-forgotten": M(_step(scores=lambda q, k, v: k.tanh() @ v),
            _row, "The query is missing (or it's added after the tanh, where the softmax "
                "removes it), so every step of the decoder would get the same context."),
        "v-forgotten": M(_step(scores=lambda q, k, v: (q[:, None] + k).tanh().sum(dim=-1)),
            _row, "The numbers of the tanh are added up without v, which says how much each "
                "counts."),
        "over-the-batch": M(_step(soft=lambda scores: scores.softmax(dim=0).nan_to_num()),
            _columns, "The softmax runs over the batch, so sentences compete for a position. "
                "Words must compete within their sentence: dim=-1."),
        "padding-attended": M(_step(hidden=lambda scores, mask: scores),
            _on_padding, "The mask isn't used. The same sentence would be translated differently "
                "in a batch with a longer one."),
        "mask-inverted": M(_step(hidden=lambda scores, mask: scores.masked_fill(mask, torch.finfo(scores.dtype).min)),
            _on_padding, "Your mask hides the words and leaves the padding. True is a real word: hide "
                "~mask."),
        "zero-for-padding": M(_step(hidden=lambda scores, mask: scores * mask),
            _on_padding, "Padding gets a score of 0, and e⁰ is 1. Only a very low "
                "score, such as −inf, gets no weight."),
        "mask-after-softmax": M(_step(hidden=lambda scores, mask: scores, after=lambda weights, mask: weights * mask),
            row_sums, "Padding took part in the softmax and was removed afterwards, so its "
                "part is missing. Mask the scores first."),
        "no-softmax": M(_step(hidden=lambda scores, mask: scores * mask, soft=lambda scores: scores),
            row_sums, "These are the scores themselves. Turn them into weights by a softmax."),
        "sum-of-states": M(_step(mean=lambda weights, keys, states, mask: (states * mask[..., None]).sum(dim=1)),
            _context, "Your context adds up the states of all words, whatever their weights."),
        "plain-mean": M(_step(mean=lambda weights, keys, states, mask: (states * mask[..., None]).sum(dim=1)
                            / mask.sum(dim=1, keepdim=True)),
            _context, "Your context is the plain mean of the states. The weights are there to be used."),
        "divided-by-length": M(_step(mean=lambda weights, keys, states, mask: (weights[:, None] @ states)[:, 0]
                                   / states.shape[1]),
            _context, "Your context is divided by the number of positions. The weights sum to "
                "one, so their sum is a mean already."),
    },
    rules=(
        R(lambda case: hidden_at_the_end(case.weights, case.inputs[3]), _on_padding, HIDDEN_AT_THE_END),
        R(lambda case: (case.weights.masked_fill(case.inputs[3], 0).abs() > 1e-6).any(), _on_padding, "Padding must "
                 "get no weight: its scores are −inf before the softmax. A modest number such as −10 isn't low enough where "
                 "the words' scores are lower."),
        R(lambda case: ((case.weights.sum(dim=1) - 1).abs() > 1e-3).any(), row_sums, "The weights of each "
                 "sentence sum to one: a softmax over its words."),
        R(lambda case: gap(case, "weights") > 1e-3, _row, "Padding gets none and the rows sum to one, so "
                 "look at the scores: v · tanh(query + key), for each word."),
        R(lambda case: gap(case, "context") > 1e-3, _context, "The context is the sum of each state times its "
                 "weight: states, not keys."),
    ),
    hints=(
        "query has no dimension for words. Where does it need one, so that it's added to every key?",
        "scores = (query[:, None] + keys).tanh() @ v has the shape (batch, source). What must padding get before the "
                "softmax?",
        "weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1), and the context is (weights[:, None] @ "
                "states)[:, 0].",
    ),
)

# ---------------------------------------------------------------- 16.3 the loss

def translation_loss(model, source_ids, source_mask, target_ids):
    logits = model(source_ids, source_mask, target_ids[:, :-1])            # (batch, target, vocab)
    return F.cross_entropy(logits.flatten(0, 1), target_ids[:, 1:].flatten(), ignore_index=PAD)


def _loss(read=lambda t: t[:, :-1], asked=lambda t: t[:, 1:], reduce=None, logits_to=lambda logits: logits,
          mask=lambda mask: mask):
    """The loss with one of its parts changed; `reduce(each, asked)` makes one number of each word's -ln p."""
    def answer(model, source_ids, source_mask, target_ids):
        logits, wanted = logits_to(model(source_ids, mask(source_mask), read(target_ids))), asked(target_ids)
        each = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
        return (reduce or (lambda each, wanted: each[wanted != PAD].mean()))(each, wanted)
    return answer


def _words_read(wanted):
    """The words that are read: BEGIN, and those that are asked for, one step later."""
    return torch.cat([torch.full_like(wanted[:, :1], BEGIN), wanted[:, :-1]], dim=1)


def _without(each, wanted, ids):
    kept = torch.ones_like(wanted, dtype=torch.bool)
    for i in ids:
        kept &= wanted != i
    return each[kept].mean()


class ReadingModel(torch.nn.Module):
    """A translator that can be called: logits from a table by the word read, and from the mean of the source's real words.

    With no mask it reads every position of the source. `sure_of` is a word that it gives nearly all of the probability. All
    logits are `apart` higher after a word of even id, and as much lower after another.
    """

    def __init__(self, vocab_size: int, generator: torch.Generator, sure_of: int | None = None, apart: float = 0.0):
        super().__init__()
        self.by_read, self.by_source = (size * torch.randn(vocab_size, vocab_size, generator=generator) for size in (3, 2))
        if sure_of is not None:
            self.by_read[:, sure_of] += 1000.0
        self.by_read += apart * (1 - 2 * (torch.arange(vocab_size) % 2))[:, None]

    def forward(self, source_ids, source_mask, read):
        source_ids, read = torch.as_tensor(source_ids), torch.as_tensor(read)
        real = torch.ones(source_ids.shape) if source_mask is None else torch.as_tensor(source_mask)
        for name, ids in (("source_ids", source_ids), ("words to read", read)):
            if ids.dtype == torch.bool or ids.is_floating_point() or ids.dim() != 2:
                raise TypeError(f"model was given {name} of shape {tuple(ids.shape)} and type {str(ids.dtype)[6:]}; it "
                                "takes source_ids, source_mask and the words to read, and ids are whole numbers, a row for "
                                "each sentence")
        if real.shape != source_ids.shape:
            raise TypeError(f"model was given source_ids of shape {tuple(source_ids.shape)} and a source_mask of shape "
                            f"{tuple(real.shape)}; both are (batch, source)")
        if len(read) != len(source_ids):
            raise TypeError(f"model was given {len(source_ids)} sources and {len(read)} targets; each source has one")
        real = real.to(self.by_source.dtype)[..., None]
        source = (self.by_source[source_ids] * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)
        return self.by_read[read] + source                                 # (batch, read, vocab)


def loss_probes(generator: torch.Generator) -> list[tuple]:
    """(model, source_ids, source_mask, target_ids): sources and targets of different lengths; of one length; a target
    without a word; a model that is sure of a word, which is seldom the right one; one whose
    logits are far higher after some words than after others; targets with an unknown word, 1."""
    def draw(lengths, source_lengths, vocab_size=9, **of_the_model):
        target = torch.zeros(len(lengths), max(lengths) + 2, dtype=torch.long)
        for row, length in zip(target, lengths):
            row[: length + 2] = torch.cat([torch.tensor([2]), torch.randint(4, vocab_size, (length,), generator=generator),
                                           torch.tensor([3])])
        mask = torch.arange(max(source_lengths)) < torch.tensor(source_lengths)[:, None]
        source = torch.randint(4, vocab_size, mask.shape, generator=generator) * mask
        return ReadingModel(vocab_size, generator, **of_the_model), source, mask, target

    probes = [draw([5, 2, 3], [2, 4, 1]), draw([3, 3], [5, 5]), draw([4, 0], [3, 2]), draw([2, 3], [2, 1], sure_of=5),
              draw([4, 3], [2, 3], apart=200.0)]
    unknown = draw([4, 2], [3, 1])
    unknown[3][0, 2] = unknown[3][1, 1] = 1
    return [*probes, unknown]


def observe_loss(function, model, source_ids, source_mask, target_ids):
    """The loss, and the gradient that it sends to the model's table; zeros if none, and if the loss isn't finite.

    An answer that reads `.logits`, which the notebook's own models have, is told that it's not needed here.
    """
    model.by_read = model.by_read.clone().requires_grad_()
    try:
        output = function(model, source_ids, source_mask, target_ids)
    except AttributeError as error:
        if "'logits'" not in str(error):
            raise
        raise TypeError("expected no `.logits`: this model returns the logits themselves, a tensor (batch, words, "
                        "vocab). The notebook's models return a result with that part") from None
    if not model.training:
        raise TypeError("expected the model in training mode, as it came; your function puts it into evaluation mode and "
                        "leaves it there, so training would go on without dropout. A loss needs no eval()")
    return None if output is None else loss_and_gradient(output, model.by_read, "model")


def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _counted(case: Case) -> str:
    asked = case.inputs[3][:, 1:]
    return f"{_loss_seen(case)} {int((asked != 0).sum())} of the {asked.numel()} positions ask for a word."


def _source(case: Case) -> str:
    mask = case.inputs[2]
    return f"{_loss_seen(case)} {int((~mask).sum())} of the {mask.numel()} source positions are padding."


def _gradient(case: Case) -> str:
    got, right = (named["gradient for the model"].abs().max().item() for named in (case.got, case.right))
    return f"the loss is right, but the largest number of its gradient for the model is {got:.3f}, expected {right:.3f}."


LOSS = ask(
    "16.3", translation_loss,
    probes=loss_probes,
    observe=observe_loss,
    forbidden=("course_utils.recurrent_attention.teacher_forcing_loss",),
    signature="translation_loss(model, source_ids (batch, source), source_mask (batch, source), target_ids (batch, "
    "target + 1)) -> mean loss ()",
    not_finite={
        "inf": "A very small probability was rounded to 0 before its logarithm, or exp of a large logit overflowed: use "
        "log_softmax over the vocabulary, the last dimension, or cross_entropy on the logits. " + EACH_MAXIMUM,
        "-inf": "A very small probability was rounded to 0, and its logarithm is −inf; the loss is minus that. Use "
        "log_softmax over the vocabulary, or cross_entropy on the logits. " + EACH_MAXIMUM,
        "NaN": "A probability was rounded to 0, and 0 times −inf is NaN: use log_softmax or cross_entropy. " + EACH_MAXIMUM
        + " Or it's a mean over no words: did you shift too far, leave END out, or take the mean of a sentence without a "
        "word?"},
    mistakes={
        "not-shifted": M(_loss(read=lambda t: t[:, 1:]),
            _loss_seen, "The model reads the very words that it's asked for. It would learn to copy them, and "
                "know nothing when it writes."),
        "asked-unshifted": M(_loss(read=lambda t: t[:, :-1], asked=lambda t: t[:, :-1]),
            _loss_seen, "The model is asked for the very words that it reads, BEGIN among them. Ask for "
                "each word one step before it's read."),
        "last-column-cut": M(_loss(read=lambda t: t[:, :-2], asked=lambda t: t[:, 1:-1]),
            _counted, "The model reads the right words, but one column too few, so the longest "
                "targets are never asked for their END. In the reading, leave out the last column only."),
        "whole": M(_loss(read=lambda t: t, asked=lambda t: t),
            _loss_seen, "The whole target is read, and asked for unshifted: even BEGIN. Each word must be asked for "
                "one step before it's read."),
        "wrong-way": M(_loss(read=lambda t: t[:, 1:], asked=lambda t: t[:, :-1]),
            _loss_seen, "You have read and asked for the wrong way round: the model reads a word and is "
                "asked for the one before it."),
        "padding-counted": M(_loss(reduce=lambda each, wanted: each.mean()),
            _counted, "Padding is asked for, too. The model would learn to write padding, and long "
                "sentences would count for less."),
        "mask-of-the-read-words": M(_loss(reduce=lambda each, wanted: each[_words_read(wanted) != PAD].mean()),
            _counted, "Your mask belongs to the words that are read. A position counts if the "
                "word that it asks for isn't PAD."),
        "padding-in-the-count": M(_loss(reduce=lambda each, wanted: each[wanted != PAD].sum() / each.numel()),
            _counted, "Padding adds nothing, but it's counted when you divide. A batch with one "
                "long sentence would have a small loss for no reason."),
        "begin-in-the-count": M(_loss(reduce=lambda each, wanted: each[wanted != PAD].sum() / (
            (wanted != PAD).sum() + len(wanted))),
            _counted, "The sum is right, but BEGIN is counted when you divide. It's read, and "
                "never asked for."),
        "no-end-in-the-count": M(_loss(reduce=lambda each, wanted: each[wanted != PAD].sum() / (
            (wanted != PAD) & (wanted != END)).sum()),
            _counted, "The sum is right, but END is missing from the count that you divide by."),
        "summed": M(_loss(reduce=lambda each, wanted: each[wanted != PAD].sum()),
            _counted, "That's the sum. Divide by the number of words, or long sentences take larger steps."),
        "sentence-by-sentence": M(_loss(reduce=lambda each, wanted: (each * (wanted != PAD)).sum(dim=1).div(
            (wanted != PAD).sum(dim=1)).mean()),
            _counted, "You took the mean of each sentence, and then of those. A word in a short "
                "sentence would count for more: every word counts the same."),
        "end-left-out": M(_loss(reduce=lambda each, wanted: _without(each, wanted, (PAD, END))),
            _counted, "END isn't asked for, so the model never learns to stop."),
        "end-for-padding": M(_loss(reduce=lambda each, wanted: _without(each, wanted, (END,))),
            _counted, "END is left out and padding is asked for. PAD is 0, and END is 3."),
        "viewed": M(_loss(logits_to=lambda logits: logits.reshape(len(logits), logits.shape[2], -1).transpose(1, 2)),
            _loss_seen, "A view (or reshape) doesn't exchange two dimensions, so most words meet the logits of "
                "others. Use transpose(1, 2), or flatten both to one row for each word."),
        "bits": M(_loss(reduce=lambda each, wanted: each[wanted != PAD].mean() / math.log(2)),
            _loss_seen, "That's the loss in bits, a logarithm to base 2. −ln p has the natural one, as cross_entropy "
                "has it."),
        "softmax-first": M(_loss(logits_to=lambda logits: logits.softmax(dim=-1)),
            _loss_seen, "cross_entropy takes logits, and yours went through a softmax already."),
        "unknown-left-out": M(_loss(reduce=lambda each, wanted: _without(each, wanted, (PAD, 1))),
            _counted, "The unknown word, 1, isn't asked for. It's a word of the target like any "
                "other: only PAD, which is 0, never counts."),
        "source-padding-read": M(_loss(mask=torch.ones_like),
            _source, "The model reads them like words: it got no mask, or one of ones. A "
                "sentence would be translated differently beside a longer one. Hand on source_mask as it came."),
        "source-mask-inverted": M(_loss(mask=torch.logical_not),
            _source, "The model reads those and none of the words: its mask is the wrong way "
                "round. True is a real word: hand on source_mask as it came."),
        "cut-off": M(_loss(logits_to=torch.detach),
            _gradient, "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it "
                "couldn't be trained. Return a tensor; call item() where you print it."),
    },
    rules=(
        R(lambda case: case.loss < -1e-6, _loss_seen, "A mean of −ln p is never negative: is a sign missing?"),
        R(lambda case: (case.inputs[3] != 0).all() and gap(case, "loss") > 1e-4, _loss_seen,
          "It's wrong even on this batch, which has no padding. Compare one sentence on paper: which tokens does the "
                 "model read, which one is it asked for at each, and do that word's logits meet it?"),
        R(lambda case: case.right["loss"] < 100 and gap(case, "loss") > 1e-4, _counted, "Is every word that isn't "
                 "PAD counted once, END included, and the sum divided by their number? And does the model get source_ids "
                 "and source_mask as they came?"),
        R(lambda case: case.loss < 0.99 * case.right["loss"], _loss_seen, "Other losses are right; here the model is "
                 "sure of a wrong word. A small number added before the logarithm, or a clamp, puts an upper limit on the "
                 "loss. Take it from the logits: log_softmax or cross_entropy."),
        R(lambda case: gap(case, "loss") > 1e-4 * (1 + case.right["loss"]), _loss_seen, "The other losses are right. Is "
                 "this one taken from the logits, with log_softmax or cross_entropy?"),
        R(lambda case: gap(case, "gradient for the model") > 1e-4, _gradient, "Part of the way from the logits to "
                 "the loss is cut off or counted twice."),
    ),
    hints=(
        "Write one target on paper: 2, 7, 5, 3. What does the model read, and what is it asked for at each step?",
        "It reads 2, 7, 5 and is asked for 7, 5, 3. In the batch: target_ids[:, :-1] and target_ids[:, 1:].",
        "F.cross_entropy(logits.flatten(0, 1), target_ids[:, 1:].flatten(), ignore_index=0)",
    ),
)

# ---------------------------------------------------------------- 16.4 write it yourself

def write(step, state, max_len):
    last, ids = BEGIN, []
    while len(ids) < max_len:
        logits, state = step(last, state)
        last = int(logits.argmax())
        if last == END:
            break
        ids.append(last)
    return ids


def _write(first=BEGIN, read=lambda best, last: best, keep=lambda new, old: new, choose=lambda logits: int(logits.argmax()),
           stop=True, with_end=False, with_begin=False, more=0, skip_end=False, most=None, ends=(END,)):
    """The loop with one of its parts changed."""
    def answer(step, state, max_len):
        last, ids = first, [BEGIN] if with_begin else []
        for _ in range(most or max_len + more):
            logits, new = step(last, state)
            state, best = keep(new, state), choose(logits)
            if best in ends and stop:
                return [*ids, END] if with_end else ids
            if best != END or not skip_end:
                ids.append(best)
            last = read(best, last)
        return ids
    return answer


SAMPLED = -2.0                                          # in place of ids that are others in the next call


def _sampled(step, state, max_len):
    return _write(choose=lambda logits: int(torch.multinomial(logits.softmax(dim=-1), 1)))(step, state, max_len)


class Steps:
    """A decoder for one sentence: the next word depends on the last one and on how many steps were made.

    `state` counts the steps. `table` (steps, vocab) gives the right next word after each word.
    """

    def __init__(self, table: torch.Tensor):
        self.table = table

    def __call__(self, last_id, state):
        if isinstance(last_id, (list, tuple)) or (isinstance(last_id, torch.Tensor) and last_id.numel() != 1):
            raise TypeError(f"step was given {what(last_id)} as its last id; it reads one id, that of the last word")
        last_id = int(last_id)
        vocab_size = self.table.shape[1]
        if not 0 <= last_id < vocab_size:
            raise IndexError(f"step was given the word {last_id}, and ids go from 0 to {vocab_size - 1}")
        best = int(self.table[state % len(self.table), last_id])
        logits = torch.linspace(0, 0.5, vocab_size)                        # so even that samples soon differ
        logits[best] = 0.6
        return logits, state + 1


def write_probes(generator: torch.Generator) -> list[tuple]:
    """(step, state, max_len): a translation that ends by itself, one that's cut, an empty one, one with id 0 in it,
    one with all other ids that may look special, and with a word that comes twice in a row."""
    def steps(pattern, vocab_size=12):
        """From BEGIN along a path: random words for letters, digits as they are, END. Off it, others at random, no END."""
        words = dict(zip("abcd012", [*(torch.randperm(vocab_size - 4, generator=generator) + 4)[:4].tolist(), 0, 1, 2]))
        path = [*(words[letter] for letter in pattern), 3]
        table = torch.randint(4, vocab_size, (len(path) + 6, vocab_size), generator=generator)
        for k, (last, best) in enumerate(zip([2, *path], path)):
            table[k, last] = best
        return Steps(table)

    return [(steps("abac"), 0, 8), (steps("abbcd"), 0, 3), (steps(""), 0, 4), (steps("a"), 0, 2), (steps("ab0ca"), 0, 9),
            (steps("a1bbc2cd"), 0, 12)]


def observe_writing(function, step, state, max_len):
    """The ids as a tensor, filled up with -1 to one length; nothing but `SAMPLED` if another call gives other ids."""
    first = _ids_written(function, step, state, max_len)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            again = [_ids_written(function, step, state, max_len) for _ in range(3)]
        except Exception:                               # a function that keeps something of its first call
            return first
    if first is None or None in [None if other is None else 0 for other in again]:
        return first
    size = _size(first)
    if any(0 < size < _size(other) and torch.equal(first[:size], other[:size]) for other in again):
        raise TypeError("expected the same result for the same inputs, got the first one and more after it in a second "
                        "call: a list outlives the call, such as a default argument. Make it inside")
    return first if all(torch.equal(first, other) for other in again) else torch.full_like(first, SAMPLED)


def _ids_written(function, step, state, max_len):
    calls, longest = [], 10 * max_len + 30

    def counted(last_id, state):
        calls.append(last_id)
        if len(calls) >= longest:
            raise RuntimeError(f"step was called {longest} times for max_len={max_len}: the loop has no "
                               "end. Stop at END, and after max_len words")
        return step(last_id, state)

    output = function(counted, state, max_len)
    if output is None:
        return None
    output = output.tolist() if isinstance(output, torch.Tensor) else output
    if not isinstance(output, (list, tuple)):
        raise TypeError(f"expected a list of ids, got {what(output)}")
    if len(output) > longest:
        raise ValueError(f"expected at most max_len={max_len} ids, got {len(output)}")
    return torch.tensor([*(float(word) for word in output), *[-1.0] * (longest - len(output))])


def _ids(values) -> str:
    values = [int(value) for value in values.tolist() if value >= 0]
    return f"[{', '.join(map(str, values[:8]))}{', …' if len(values) > 8 else ''}]"


def _size(values) -> int:
    return int((values >= 0).sum())


def _written(case: Case) -> str:
    return f"with max_len={case.inputs[2]} you wrote {_ids(case.answer)}, expected {_ids(case.expected)}."


def _another_word(case: Case) -> bool:
    """Whether the first words are right, and then there's another word than the expected one, neither being an end."""
    pairs = [(int(a), int(b)) for a, b in zip(case.answer.tolist(), case.expected.tolist()) if a >= 0 and b >= 0]
    wrong = next((k for k, (a, b) in enumerate(pairs) if a != b), 0)
    return wrong > 0 and pairs[wrong][0] not in (2, 3)


def _first_difference(case: Case) -> tuple[int, int, list[int]]:
    """What's written and what's expected where they first differ, -1 for nothing, and the words before it."""
    answer, expected = (values.long().tolist() for values in (case.answer, case.expected))
    place = next(k for k, (a, b) in enumerate(zip(answer, expected)) if a != b)
    return answer[place], expected[place], expected[:place]


def _special_word(case: Case) -> bool:
    _, expected, before = _first_difference(case)
    return bool(before) and expected in (0, 1, 2)


def _stopped_at_a_repetition(case: Case) -> bool:
    got, expected, before = _first_difference(case)
    return got == -1 and expected in before


WRITE = ask(
    "16.4", write,
    probes=write_probes,
    observe=observe_writing,
    forbidden=("course_utils.recurrent_attention.greedy",),
    signature="write(step, state, max_len) -> list of ids; step(last_id, state) -> logits (vocab,), state",
    mistakes={
        "reads-begin-again": M(_write(read=lambda best, last: last),
            _written, "Every step reads BEGIN again. The decoder has to read the word that it has "
                "just written."),
        "state-not-kept": M(_write(keep=lambda new, old: old),
            _written, "Every step starts from the first state, so the decoder forgets what it has "
                "written. Hand the new state to the next step."),
        "end-kept": M(_write(with_end=True),
            _written, "END is in your list. It says that the translation is over; it isn't a word of it."),
        "never-stops": M(_write(stop=False),
            _written, "You went on after END. What a decoder says after that means nothing."),
        "end-skipped": M(_write(stop=False, skip_end=True),
            _written, "You left END out of the list, and went on. What a decoder says after END means "
                "nothing: stop there."),
        "no-limit": M(_write(most=50),
            _written, "Only END stops your loop. A model that never writes it would go on for ever: stop "
                "after max_len words as well."),
        "begin-kept": M(_write(with_begin=True),
            _written, "BEGIN is in your list. It starts the loop; it isn't a word of the translation."),
        "starts-with-padding": M(_write(first=PAD),
            _written, "The first step reads 0, which is padding. In training, every target began "
                "with BEGIN, which is 2."),
        "starts-with-end": M(_write(first=END),
            _written, "The first step reads 3, which is END. Sutskever's decoders did start like "
                "that, but ours was trained with BEGIN, which is 2."),
        "least-probable": M(_write(choose=lambda logits: int(logits.argmin())),
            _written, "That's the word with the lowest logit: argmin. Take the highest."),
        "one-word-more": M(_write(more=1),
            _written, "A translation that doesn't end by itself gets one word too many."),
        "one-word-fewer": M(_write(more=-1),
            _written, "A translation that doesn't end by itself gets one word too few."),
        "sampled": M(_sampled, "called again with the same inputs, your function writes other words.",
            "Greedy takes the word with the highest logit each time, argmax, and doesn't sample."),
        "ends-at-padding": M(_write(ends=(PAD, END)),
            _written, "You stop at 0 as well. Only END, which is 3, ends a translation; whatever "
                "else the decoder writes belongs to it."),
    },
    rules=(
        R(lambda case: _size(case.answer) > case.inputs[2], _written, "There may be at most max_len words."),
        R(lambda case: case.answer[0] == 2, _written, "BEGIN is in your list. It starts the loop; it isn't a word of "
                 "the translation."),
        R(lambda case: 0 <= case.answer[0] != case.expected[0] >= 0, _written, "The first word is wrong already: "
                 "BEGIN is read with the state that you were given, and the word with the highest logit is written."),
        R(_special_word, _written, "Only END, which is 3, is special here. 0, 1 and 2 are written and read like any "
                 "other word, where their logit is the highest."),
        R(_stopped_at_a_repetition, _written, "You stop at a word that was written before. Words may come twice, "
                 "even in a row; only END and max_len end the loop."),
        R(_another_word, _written, "The first words are right; then one isn't the word with the highest "
                 "logit. Greedy takes the argmax each time, and doesn't sample."),
        R(lambda case: _size(case.answer) != _size(case.expected), _written, "The number of words is wrong: stop at "
                 "END, or after max_len words, whichever comes first."),
        R(lambda case: True, _written, "Each step reads the word that was written last (BEGIN at first) and the "
                 "state of the step before, and the highest logit is written."),
    ),
    hints=(
        "Three things change from step to step: the last word, the state, and the list. What are they at the start?",
        "last starts as 2. In the loop: logits, state = step(last, state), then last = int(logits.argmax()).",
        "Stop with break if last is 3; otherwise append it. The loop goes on while len(ids) < max_len.",
    ),
)

# ---------------------------------------------------------------- 16.5 alignment error

def aer(weights, gold):
    predicted = {(source, target) for target, source in enumerate(weights[:-1].argmax(dim=1).tolist())}
    known = {(source, target) for source, target in gold.tolist()}
    return 1 - 2 * len(predicted & known) / (len(predicted) + len(known))


def _aer(rows=lambda w: w[:-1], link=lambda w: {(s, t) for t, s in enumerate(w.argmax(dim=1).tolist())}, move=0,
         known=lambda gold: {(s, t) for s, t in gold.tolist()},
         score=lambda right, found, gold: 1 - 2 * right / (found + gold)):
    """The error rate with one of its parts changed."""
    def answer(weights, gold):
        found, links = {(s, t + move) for s, t in link(rows(weights))}, known(gold)
        return float(score(len(found & links), len(found), len(links)))
    return answer


BEST = (0, 2, 1, 2, 2, 2, 4, 5, 6, 6, 7, 8, 8)          # of each word that's written: the source word with most weight,

LEAST = (5, 8, 7, 7, 6, 3, 5, 2, 5, 3, 1, 1, 1)         # and with least

LINKS = ((0, 0), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3), (2, 4), (2, 5), (4, 6), (5, 7), (3, 8), (6, 8), (6, 9), (7, 10),
         (1, 11))


def _chosen() -> tuple:
    """A sentence on which each known mistake has another error rate than each other one."""
    place, source = torch.meshgrid(torch.arange(13), torch.arange(9), indexing="ij")
    weights = 0.1 + 0.01 * ((3 * place + 5 * source) % 7)
    weights[torch.arange(13), torch.tensor(BEST)] = 0.9 + 0.01 * torch.arange(13)
    weights[torch.arange(13), torch.tensor(LEAST)] = 0.0
    return weights / weights.sum(dim=-1, keepdim=True), torch.tensor(LINKS)


def _alike() -> tuple:
    """Links that are taken for gold ones: (11, 1) reads 111, as (1, 11) does; (0, 13) and (1, 1) have the same 12 · source +
    target, (3, 10) and (4, 0) the same 10 · source + target, (10, 8) and (0, 9) the same source + 10 · target."""
    looked = torch.tensor([5, 11, 6, 7, 8, 3, 9, 4, 10, 2, 3, 9, 6, 0, 4])
    weights = 0.1 + 5.0 * torch.nn.functional.one_hot(looked, 12)          # the last row is the end's
    links = torch.tensor([[5, 0], [4, 0], [1, 1], [2, 2], [0, 2], [7, 3], [9, 6], [2, 9], [0, 9], [1, 11], [11, 10]])
    return weights / weights.sum(dim=-1, keepdim=True), links


def aer_probes(generator: torch.Generator) -> list[tuple]:
    """(weights (target + 1, source), gold (links, 2)): more source words than targets, and fewer; some links found; and
    `_chosen`; and one with twelve source words and fourteen targets, whose links
    can be taken for others when their numbers are glued together or added up."""
    first = torch.tensor([[0.7, 0.1, 0.1, 0.06, 0.04], [0.1, 0.28, 0.35, 0.22, 0.05], [0.05, 0.5, 0.2, 0.2, 0.05],
                          [0.1, 0.1, 0.1, 0.1, 0.6]])
    gold = torch.tensor([[0, 0], [1, 2], [2, 1], [3, 1], [4, 2]])
    second = torch.rand(7, 3, generator=generator).softmax(dim=-1)
    second[0, 1], second[2, 0], second[4, 2] = 3.0, 3.0, 3.0
    second = second / second.sum(dim=-1, keepdim=True)
    third = torch.rand(9, 6, generator=generator)
    third[torch.arange(9), torch.tensor([0, 1, 1, 3, 2, 4, 5, 5, 0])] = 3.0
    third = third / third.sum(dim=-1, keepdim=True)
    long = torch.tensor([[0, 0], [1, 1], [2, 2], [3, 3], [2, 4], [4, 4], [4, 5], [5, 6], [5, 7], [3, 7]])
    fewer = torch.tensor([[1, 0], [0, 1], [0, 2], [1, 3], [2, 4], [2, 5]])
    return [(first, gold), (third, long), (second, fewer), _chosen(), _alike()]


def _rate(case: Case) -> str:
    return f"your rate is {float(case.answer):.3f}, expected {float(case.expected):.3f}."


def _as_one(case: Case) -> bool:
    """Whether the rate is one that links give as glued texts or as single numbers, of which two may be the same."""
    weights, gold = case.inputs
    found = list(enumerate(weights[:-1].argmax(dim=1).tolist()))
    targets, sources = len(weights) - 1, weights.shape[1]
    for code in (lambda s, t: f"{s}{t}", lambda s, t: f"{t}{s}", lambda s, t: sources * s + t, lambda s, t: targets * t + s,
                 lambda s, t: 10 * s + t, lambda s, t: s + 10 * t, lambda s, t: s + t):
        predicted, known = {code(s, t) for t, s in found}, {code(s, t) for s, t in gold.tolist()}
        if abs(1 - 2 * len(predicted & known) / (len(predicted) + len(known)) - float(case.answer)) < 1e-4:
            return True
    return False


WRONG_DIMENSION = ("That's argmax over dim=0, the largest weight of each column. Each target word makes one link: look "
                   "along its row, dim=1.")


def _by_columns(case: Case) -> bool:
    """Whether the rate is one of the columns' largest weights, the end's row included."""
    weights, gold = case.inputs
    looked, known = list(enumerate(weights.argmax(dim=0).tolist())), {tuple(link) for link in gold.tolist()}
    rates = [1 - 2 * len(found & known) / (len(found) + len(known)) for found in (set(looked), {(b, a) for a, b in looked})]
    return min(abs(rate - float(case.answer)) for rate in rates) < 1e-4


def _sizes(case: Case) -> str:
    weights, gold = case.inputs
    return f"{_rate(case)} There are {len(weights) - 1} words and {len(gold)} gold links."


AER = ask(
    "16.5", aer,
    probes=aer_probes,
    forbidden=("course_utils.recurrent_attention.alignment_error_rate",),
    signature="aer(weights (target + 1, source), gold (links, 2)) -> error rate",
    mistakes={
        "end-counted": M(_aer(rows=lambda w: w),
            _sizes, "The row of <eos> makes a link, too. It writes no word, so no gold link can fit it."),
        "one-row-late": M(_aer(rows=lambda w: w[1:]),
            _rate, "You left out the first row instead of the last. Row 0 belongs to the first word: "
                "BEGIN is read there, and the first word is written."),
        "one-row-early": M(_aer(move=1),
            _rate, "Every link is one word late. Row 0 belongs to word 0: the row says where the "
                "decoder looked when it wrote the word, not when it read it."),
        "sides-swapped": M(_aer(known=lambda gold: {(t, s) for s, t in gold.tolist()}),
            _rate, "Source and target are exchanged. A gold link is (source, target), a row of weights "
                "belongs to a target word."),
        "by-source-word": M(_aer(link=lambda w: {(s, t) for s, t in enumerate(w.argmax(dim=0).tolist())}),
            _rate, WRONG_DIMENSION),
        "wrong-dimension": M(_aer(link=lambda w: {(s, t) for t, s in enumerate(w.argmax(dim=0).tolist())}),
            _rate, WRONG_DIMENSION),
        "smallest-weight": M(_aer(link=lambda w: {(s, t) for t, s in enumerate(w.argmin(dim=1).tolist())}),
            _rate, "You took the smallest weight of each row."),
        "precision": M(_aer(score=lambda right, found, gold: 1 - right / found),
            _sizes, "You divided by the number of predicted links alone. Then a few careful links would "
                "have no error, whatever they leave out."),
        "recall": M(_aer(score=lambda right, found, gold: 1 - right / gold),
            _sizes, "You divided by the number of gold links alone. Then linking everything to everything "
                "would have no error."),
        "not-one-minus": M(_aer(score=lambda right, found, gold: 2 * right / (found + gold)),
            _rate, "That's the part that agrees. An error rate is 1 minus that."),
        "two-forgotten": M(_aer(score=lambda right, found, gold: 1 - right / (found + gold)),
            _sizes, "The shared links are in both sets, so they count twice: 2 |A ∩ G|. With one, a "
                "perfect alignment would have an error of a half."),
        "union": M(_aer(score=lambda right, found, gold: 1 - right / (found + gold - right)),
            _sizes, "You divided by the size of the union. The AER divides twice the shared links by the "
                "sum of both sizes."),
    },
    rules=(
        R(lambda case: not 0 <= float(case.answer) <= 1, _rate, "An error rate lies between 0 and 1."),
        R(lambda case: float(case.answer) == 1, _rate, "None of your links was found in the gold set. A tensor "
                 "in a set equals no number: make ints of both, by tolist() or int(). And a link is (source, target)."),
        R(_by_columns, _rate, WRONG_DIMENSION),
        R(_as_one, _rate, "Two different links count as the same: glued together, 1 and 11 read like 11 and 1, "
                 "and source · n + target is the same number for several links unless n is larger than every target. Keep "
                 "pairs: tuples (source, target)."),
        R(lambda case: True, _sizes, "Make a set of pairs (source, target), one for each row but the last, and "
                 "compare it with the gold pairs."),
    ),
    hints=(
        "weights[:-1].argmax(dim=1) has a source index for each target word. Which pairs are that?",
        "predicted = {(source, target) for target, source in enumerate(…)}; gold.tolist() has the gold pairs.",
        "return 1 - 2 * len(predicted & known) / (len(predicted) + len(known))",
    ),
)

# ---------------------------------------------------------------- 16.6 one step of the decoder

def step_before(x, s, attend, cell, read_out):
    context, weights = attend(s)
    s = cell(torch.cat([x, context], dim=-1), s)
    return read_out(torch.cat([s, context], dim=-1)), s, weights


def _made(asks=lambda s, new: s, word=lambda x: x, fed=lambda context: context, given=lambda x, context: (x, context),
          past=lambda s: s, read=lambda old, new, context: (new, context), kept=lambda old, new: new,
          said=lambda logits: logits):
    """The step with one of its parts changed; `asks` says whose context is read out, the old state's or the new one's."""
    def answer(x, s, attend, cell, read_out):
        context, weights = attend(s)
        new = cell(torch.cat(given(word(x), fed(context)), dim=-1), past(s))
        if asks(s, new) is not s:
            context, weights = attend(new)
        return said(read_out(torch.cat(read(s, new, context), dim=-1))), kept(s, new), weights
    return answer


def _results_exchanged(x, s, attend, cell, read_out):
    logits, s, weights = step_before(x, s, attend, cell, read_out)
    return s, logits, weights


def step_probes(generator: torch.Generator) -> list[tuple]:
    """(x, s, attend, cell, read_out): three decoders of different widths, with ragged sources, one for a single sentence."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    def probe(d_model, d_hidden, vocab_size, lengths):
        batch, mask = len(lengths), torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        parts = Parts(draw(batch, mask.shape[1], d_hidden), mask, draw(d_model + d_hidden, 2 * d_hidden),
                      draw(d_hidden, 2 * d_hidden), draw(2 * d_hidden, vocab_size))
        return draw(batch, d_model), draw(batch, d_hidden).tanh(), parts.attend, parts.cell, parts.read_out

    return [probe(5, 4, 9, [4, 2, 3]), probe(3, 6, 7, [5]), probe(4, 3, 11, [1, 3])]


def _the_word_asks(x, s, attend, cell, read_out):
    context, weights = attend(x)
    s = cell(torch.cat([x, context], dim=-1), s)
    return read_out(torch.cat([s, context], dim=-1)), s, weights


def _asked_after(x, s, attend, cell, read_out):
    s = cell(x, s)
    context, weights = attend(s)
    return read_out(torch.cat([s, context], dim=-1)), s, weights


class Parts:
    """The three parts of a decoder, of random numbers; each says what it takes, if it's given something else.

    The word alone is let pass where a query is asked for, or word and context, filled up with zeros: so that this mistake
    gives a result, and gets its name.
    """

    def __init__(self, states, mask, W, U, V):
        self.states, self.mask, self.W, self.U, self.V = states, mask, W, U, V

    def _checked(self, part, name: str, size: int, why: str):
        if not isinstance(part, torch.Tensor) or part.shape != (len(self.states), size):
            yours = f"has the shape {tuple(part.shape)}" if isinstance(part, torch.Tensor) else f"is {what(part)}"
            raise TypeError(f"{name} must have the shape ({len(self.states)}, {size}), {why}; yours {yours}")
        return part.to(self.W.dtype)

    def _filled(self, part, size: int):
        """The word's vector with zeros behind it, or cut, to a size; anything else as it is."""
        word = len(self.W) - len(self.U)
        is_word = isinstance(part, torch.Tensor) and part.shape == (len(self.states), word)
        return F.pad(part, (0, size - word)) if is_word else part

    def attend(self, query):
        d_hidden = self.states.shape[2]
        query = self._checked(self._filled(query, d_hidden), "the query", d_hidden, "as a decoder state has it")
        scores = (self.states @ query[..., None]).squeeze(-1)
        weights = scores.masked_fill(~self.mask, -torch.inf).softmax(dim=-1)
        return (weights[:, None] @ self.states)[:, 0], weights

    def cell(self, inputs, state):
        d_hidden = len(self.U)
        inputs = self._checked(self._filled(inputs, len(self.W)), "what cell reads", len(self.W),
                               "the word's vector and the context side by side")
        state = self._checked(state, "the state that cell updates", d_hidden, "as s has it")
        gate, new = (inputs @ self.W / len(self.W) ** 0.5).chunk(2, dim=-1)
        past_gate, past = (state @ self.U / d_hidden**0.5).chunk(2, dim=-1)
        z = (gate + past_gate).sigmoid()
        return (1 - z) * (new + past).tanh() + z * state

    def read_out(self, both):
        return self._checked(both, "what read_out reads", len(self.V), "state and context side by side") @ self.V


def observe_step(function, x, s, attend, cell, read_out):
    """Logits, state and weights as three tensors, and whether a gradient reaches x and s."""
    output = function(x.clone(), s.clone(), attend, cell, read_out)
    if output is None:
        return None
    results = items_of(output, "three results: the logits, the new state and the weights")
    if len(results) != 3:
        raise TypeError(f"expected three results, the logits, the new state and the weights, got {len(results)}")
    names = ("logits", "state", "weights")
    return {**{name: one_tensor(part, name) for name, part in zip(names, results)},
            **reached(function, output, (x, s, attend, cell, read_out), {0: "x", 1: "s"})}


STEP = ask(
    "16.6", step_before, probes=step_probes, observe=observe_step,
    signature="step_before(x (batch, d_model), s (batch, d_hidden), attend, cell, read_out) -> logits (batch, vocab), new "
    "state (batch, d_hidden), weights (batch, source)",
    numbers=dict(logits=lambda case: gap(case, "logits"), state=lambda case: gap(case, "state"),
                 weights=lambda case: gap(case, "weights")),
    mistakes={
        "asks-again": M(_made(asks=lambda s, new: new), "your weights are off by up to {weights:.2f}, your state is right.",
            "You ask a second time after the update, and read that context out. Before the update there's one question, and "
            "its context goes into the cell and into the read-out."),
        "context-not-fed": M(_made(fed=torch.zeros_like), "your weights are right, your state is off by up to {state:.2f}.",
            "The cell reads the word alone, or zeros in place of the context, so the new state never hears what was looked "
            "at."),
        "the-word-asks": M(_the_word_asks, "your weights are off by up to {weights:.2f}.",
            "You gave attend the last word, x. A state asks: before the update that's the old one, attend(s)."),
        "after-the-update": M(_asked_after, "your weights are off by up to {weights:.2f}.",
            "That's the other order, step_after: the cell reads the word alone, and then the new state asks. Before the "
            "update attend comes first, and the cell reads word and context."),
        "word-not-fed": M(_made(word=torch.zeros_like), "your weights are right, your state is off by up to {state:.2f}.",
            "The cell reads zeros in place of the last word, so the decoder doesn't know what it has written."),
        "context-first": M(_made(given=lambda x, context: (context, x)),
            "your weights are right, your state is off by up to {state:.2f}.",
            "Word and context have changed places in what the cell reads. Its weights expect the word first: "
            "torch.cat([x, context], dim=-1)."),
        "state-forgotten": M(_made(past=torch.zeros_like), "your weights are right, your state is off by up to {state:.2f}.",
            "The cell updates a state of zeros. It needs the old state s, or each word would begin from nothing."),
        "old-state-read": M(_made(read=lambda old, new, context: (old, context)),
            "state and weights are right, your logits are off by up to {logits:.2f}.",
            "You read the old state out, which doesn't know the last word yet. Read out the new one."),
        "context-not-read": M(_made(read=lambda old, new, context: (new, torch.zeros_like(context))),
            "state and weights are right, your logits are off by up to {logits:.2f}.",
            "Zeros are read out in place of the context. The next word is chosen by state and context together."),
        "context-read-first": M(_made(read=lambda old, new, context: (context, new)),
            "state and weights are right, your logits are off by up to {logits:.2f}.",
            "State and context have changed places in what is read out: torch.cat([s, context], dim=-1)."),
        "old-state-returned": M(_made(kept=lambda old, new: old),
            "weights and logits are right, your state is off by up to {state:.2f}.",
            "You return the old state. The next step would begin where this one began, and the decoder forgets what it has "
            "written."),
        "probabilities": M(_made(said=lambda logits: logits.softmax(dim=-1)),
            "state and weights are right, your logits are off by up to {logits:.2f}.",
            "You return probabilities. Return what read_out gives: the loss takes the softmax itself."),
        "results-exchanged": M(_results_exchanged,
            lambda case: f"your first result has the shape {tuple(case.got['logits'].shape)}, expected "
            f"{tuple(case.right['logits'].shape)}.", "Logits and new state have changed places: logits come first."),
    },
    rules=(
        R(lambda case: any(case.got[name].shape != case.right[name].shape for name in ("logits", "state", "weights")),
          lambda case: "the shapes of your three results are " + ", ".join(
              str(tuple(case.got[name].shape)) for name in ("logits", "state", "weights")) + ", expected " + ", ".join(
              str(tuple(case.right[name].shape)) for name in ("logits", "state", "weights")) + ".",
          "Return the logits, the new state and the weights, in this order, a row for each sentence."),
        R(lambda case: gap(case, "weights") > 1e-4, "your weights are off by up to {weights:.2f}.",
          "Before the update the old state asks: context, weights = attend(s), before s is changed."),
        R(lambda case: gap(case, "state") > 1e-4, "your weights are right, your state is off by up to {state:.2f}.",
          "The cell reads word and context side by side, and updates s: cell(torch.cat([x, context], dim=-1), s)."),
        R(lambda case: gap(case, "logits") > 1e-4, "state and weights are right, your logits are off by up to {logits:.2f}.",
          "The read-out gets the new state and the context side by side."),
        *reaches("x", "s"),
    ),
    hints=(
        "Three lines, one for each part: attend, cell, read_out. Who asks, if nothing has been updated yet?",
        "context, weights = attend(s). Then the cell: what does it read, and what does it update?",
        "s = cell(torch.cat([x, context], dim=-1), s), and the logits are read_out(torch.cat([s, context], dim=-1)).",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: equal-size
  taught: "16"
  question: Through one vector, a translator gets nearly every word of a sentence right if the sentence comes alone.
    In texts of four such sentences, all of them known from training, it gets a third of the words wrong. What is
    the best explanation?
  options:
    - text: The long texts are of another kind, with rarer words in them.
      remark: They are made of the same sentences, drawn at random. Only the number of sentences in a text has
        changed.
    - text: The vector has the same width for four sentences as for one.
      right: true
      remark: Attention keeps a state for each word, so what it can look at grows with the text. With three times the
        training, more of the four gets through one vector, and still less than with attention.
    - text: It was trained on short texts alone, and long ones are new to it.
      remark: It was trained on as many texts of four sentences as of one.
- name: which-state
  taught: "16"
  question: Why can a decoder that asks after its update be trained on all words of a target at once, and one that
    asks before it cannot?
  options:
    - text: A multiplicative score needs fewer operations than an additive score.
      remark: True for the score, but either score can be asked before or after the update.
    - text: It doesn't need the states of the encoder until the sentence has been written.
      remark: It needs them for every word. What it doesn't need is a context before the next update.
    - text: Its states don't depend on the contexts, so all queries are asked at once.
      right: true
      remark: In training, the words are known. The recurrence runs first, and then all questions are asked at once.
- name: first-mistake
  taught: "16"
  question: A translator is right word for word on 60 % of the sentences when it reads its own words. How many would
    be right word for word if it read the reference?
  options:
    - text: 60 %, since up to the first mistake the two are the same.
      right: true
      remark: A sentence that's right has no first mistake. Reading the reference only changes what comes after one.
    - text: More than 60 %, since a mistake can't lead to further ones.
      remark: There are fewer wrong words, but a sentence with one mistake isn't right, whatever follows.
    - text: Less than 60 %, since it was trained on its own words.
      remark: It was trained on the reference's. That's teacher forcing.
- name: off-by-one
  taught: "16"
  question: You link each French word to the English word with its largest weight. The attention maps look sensible,
    but the alignment error rate is 90 %. Which mistake fits best?
  options:
    - text: The rows are taken for the words that were read instead of those that were written.
      right: true
      remark: Then each link is one word off, and few are right. Row 0 reads BEGIN and writes the first word.
    - text: The weights were taken from a model that wasn't trained for long enough.
      remark: Then the maps wouldn't look sensible.
    - text: The scores weren't scaled, so the weights are too even or too sharp.
      remark: Scaling changes how large the largest weight is, and not which one is the largest.
- name: wrong-mask
  taught: "04"
  question: A sentence of 5 words is translated alone, and in a batch with one of 30 words. The translations differ,
    and each stays the same however often you repeat it. What do you check first?
  options:
    - text: Whether the longer sentence has words that the vocabulary doesn't know.
      remark: Those change its own translation, not that of its neighbour.
    - text: Whether dropout is still on, since it treats longer batches differently.
      remark: Dropout would change a translation from run to run, even alone.
    - text: Whether padding gets weight, or is read by the encoder on its way back.
      right: true
      remark: Mask the scores before the softmax, and let the backward direction start at the last real word.
"""

WARM_UP = """
- name: softer-by-temperature
  taught: "15"
  question: A classifier is right on 78 % of the texts about which it is 90 % sure. You divide its logits by a
    temperature above 1. What changes?
  options:
    - text: It gets more texts right.
      remark: The largest logit stays the largest, so every verdict stays.
    - text: It becomes less sure, and its verdicts stay the same.
      right: true
      remark: All logits shrink by the same factor, so the probabilities move towards each other and their order
        stays.
    - text: It becomes surer, since a higher temperature sharpens the softmax.
      remark: A higher temperature flattens it. Dividing by less than 1 sharpens it.
- name: asked-one-later
  taught: "13"
  question: A language model reads the four words of "the film was dull". In training, which word is its output at
    "was" asked for?
  options:
    - text: The word that it reads there, "was".
      remark: It could copy that, and would learn nothing about language.
    - text: The word after it, "dull".
      right: true
      remark: Each position is asked for the next word. A translator is trained in the same way, with a source
        beside it.
    - text: All four words, since the loss is a mean over the text.
      remark: The mean is over positions, and each position is asked for one word.
- name: values-are-mixed
  taught: "04"
  question: In attention, three keys get the weights 0.7, 0.2 and 0.1. What is the result?
  options:
    - text: The value of the first key, which has the largest weight.
      remark: Nothing is picked. The weights mix.
    - text: 0.7 times the first value, plus 0.2 times the second, plus 0.1 times the third.
      right: true
      remark: A weighted mean of the values, since the weights sum to one. In this notebook it is called the
        context.
    - text: The query, multiplied by 0.7, 0.2 and 0.1.
      remark: The query only decides the weights. What is mixed are the values.
"""
