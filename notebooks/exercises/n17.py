"""Exercises, quiz and warm-up of notebook 17, the encoder–decoder."""

import math
from collections import Counter

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import (
    EACH_MAXIMUM,
    HIDDEN_AT_THE_END,
    gap,
    hidden_at_the_end,
    loss_and_gradient,
    one_tensor,
    put_back,
    reached,
    reaches,
    row_sums,
    same_twice,
    two_results,
    what,
    worst_row,
)

STOPPED = "it stopped with an error"
SIZES = ("must match", "broadcast", "shape", "expand", "size")

# ---------------------------------------------------------------- 17.1 cross-attention

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


def cross_probes(generator: torch.Generator) -> list[tuple]:
    """(x, memory, W_q, W_k, W_v, source_mask): equally long sides, so that exchanged ones don't stop with an error; more
    source words; one source word; one target word, no padding; scores near 1800 and near -1800, in each sentence;
    padding in front and in between."""
    def draw(batch, target, source, d, d_head, lengths):
        x, memory = (1.5 * torch.randn(batch, n, d, generator=generator) for n in (target, source))
        matrices = [0.7 * torch.randn(d, d_head, generator=generator) for _ in range(3)]
        return x, memory, *matrices, torch.arange(source) < torch.tensor(lengths)[:, None]

    probes = [draw(3, 4, 4, 5, 6, [4, 2, 3]), draw(2, 3, 5, 4, 2, [5, 3]), draw(2, 4, 1, 3, 3, [1, 1]),
              draw(1, 1, 6, 4, 7, [6])]
    x, memory, _, _, W_v, _ = ((8 * part).round() / 8 for part in draw(2, 4, 4, 4, 4, [3, 2]))
    x[..., 0] = 60.0 * torch.tensor([[1, -1, 1, -1], [-1, 1, -1, 1]])      # eighths: no sum or product is rounded
    memory[..., 0] = 60.0
    elsewhere = torch.tensor([[False, False, True, True], [True, False, False, True]])
    return [*probes, (x, memory, torch.eye(4), torch.eye(4), W_v, torch.arange(4) < torch.tensor([[3], [2]])),
            (*draw(2, 3, 4, 5, 3, [4, 4])[:5], elsewhere)]


def observe_cross(function, x, memory, W_q, W_k, W_v, source_mask):
    """Context and weights; as texts, where exchanged sides of different lengths stop with an error."""
    try:
        output = function(x, memory, W_q, W_k, W_v, source_mask)
    except RuntimeError as error:
        if x.shape[1] == memory.shape[1] or not any(word in str(error) for word in SIZES):
            raise
        return dict.fromkeys(("context", "weights"), STOPPED)
    if output is None:
        return None
    return dict(zip(("context", "weights"), two_results(output, "context", "weights")))


def _shape(case: Case) -> str:
    x, memory = case.inputs[:2]
    got = case.weights if isinstance(case.weights, str) else f"your weights have the shape {tuple(case.weights.shape)}"
    return f"with {x.shape[1]} target and {memory.shape[1]} source words {got}."


def _on_padding(case: Case) -> str:
    padding = ~case.inputs[5][:, None].expand_as(case.weights)
    return f"in one row, {(case.weights * padding).sum(-1).max():.3f} of the weight is on padding."


def _context(case: Case) -> str:
    return f"the largest difference of your context is {gap(case, 'context'):.3f}."


def _weights(case: Case) -> str:
    return f"the largest difference of your weights is {gap(case, 'weights'):.3f}."


def _largest(case: Case) -> str:
    return f"your largest weight is {case.weights.max():.3f}, expected {case.right['weights'].max():.3f}."


def _largest_or_shape(case: Case) -> str:
    return _largest(case) if case.weights.shape == case.right["weights"].shape else _shape(case)


CROSS = ask(
    "17.1", cross_attention,
    probes=cross_probes,
    observe=observe_cross,
    forbidden=("course_utils.attention.scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention"),
    signature="cross_attention(x (batch, target, d), memory (batch, source, d), W_q, W_k, W_v (d, d_head), source_mask "
    "(batch, source)) -> context (batch, target, d_head), weights (batch, target, source)",
    not_finite={
        "inf": f"exp of a large score overflows: call softmax. {EACH_MAXIMUM}",
        "-inf": "Minus infinity belongs on the scores of padding, before the softmax; a weight is never below 0.",
        "NaN": "A softmax over nothing but minus infinity is NaN. Does yours run over the source, the last dimension? And "
        "does the mask hide the padding, not the words? " + EACH_MAXIMUM},
    mistakes={
        "weights-first": M(
            lambda *inputs: cross_attention(*inputs)[::-1],
            _shape,
            "You return the weights first. Expected: the context, then the weights."),
        "sides-swapped": M(
            _cross("memory", "x", "x"),
            _largest,
            "The sides are exchanged: the source asks the words that are being written. The "
            "decoder needs a row for each of its own words, so its words give the queries."),
        "queries-from-the-memory": M(
            _cross(queries="memory"),
            _largest_or_shape,
            "The memory asks the memory, and x isn't used: that's the encoder's self-attention, "
            "with a row for each source word. The words being written ask, so queries are made of x."),
        "self-attention": M(
            _cross(keys="x", values="x"),
            _largest,
            "Queries, keys and values all come from the decoder, and the memory isn't used. "
            "That's self-attention; such a model couldn't know what it translates."),
        "keys-from-the-decoder": M(
            _cross(keys="x"),
            _largest,
            "The keys come from the decoder's side. A query is compared with the "
            "words that could be looked up, and those are in the memory."),
        "values-from-the-decoder": M(
            _cross(values="x"),
            _context,
            "The weights are right, but they mix the decoder's own vectors. What "
            "is fetched must come from the memory, too."),
        "padding-seen": M(
            _cross(allowed=lambda mask: None),
            _on_padding,
            "The source's padding is attended to, so a translation would depend on the "
            "sentences that it's batched with."),
        "mask-inverted": M(
            _cross(allowed=lambda mask: ~mask[:, None], fill=-1e9),
            _on_padding,
            "True means a real word here. In nn.Transformer's key_padding_mask it means "
            "the opposite."),
        "masked-afterwards": M(
            _cross(allowed=lambda mask: None, after=lambda weights, mask: weights * mask[:, None]),
            row_sums,
            "You mask after the softmax, so the weight of the padding is lost. Mask the "
            "scores before it."),
        "filled-with-zero": M(
            _cross(fill=0.0),
            _on_padding,
            "A score of 0 isn't a weight of 0: exp(0) is 1. Fill with minus infinity."),
        "over-queries": M(
            _cross(dim=-2, fill=-1e9),
            row_sums,
            "Your softmax runs over the target words. Each target word spreads its weight "
            "over the source: the last dimension."),
        "no-scaling": M(
            _cross(scale=lambda query, x: 1.0),
            _weights,
            "The scores aren't divided by the root of the head's width, so the softmax is "
            "too sharp."),
        "scaled-by-the-head": M(
            _cross(scale=lambda query, x: query.shape[-1]),
            _weights,
            "You divide by the width itself. It's the square root of it."),
        "scaled-by-d": M(
            _cross(scale=lambda query, x: math.sqrt(x.shape[-1])),
            _weights,
            "You divide by the root of the model's width, d. The dot products are of vectors "
            "of width d_head."),
        "keys-and-values-exchanged": M(
            lambda x, memory, W_q, W_k, W_v, source_mask: cross_attention(
            x, memory, W_q, W_v, W_k, source_mask),
            _weights,
            "W_k and W_v are exchanged: W_k makes the keys, which a query is "
            "compared with, and W_v the values, which are mixed."),
        "causal": M(
            _causal,
            _weights,
            "You put the causal mask over the source, too. The whole source is there from the "
            "start: only its padding is hidden."),
    },
    rules=(
        R(
            lambda case: isinstance(case.weights, str) or case.weights.shape != case.right["weights"].shape,
            _shape,
            "They need a row for each target word and a column for each source word: which side asks?"),
        R(
            lambda case: (case.weights.sum(-1) - 1).abs().max() > 1e-3,
            row_sums,
            "Each row spreads a weight of one."),
        R(
            lambda case: hidden_at_the_end(case.weights, case.inputs[5]),
            _on_padding,
            HIDDEN_AT_THE_END),
        R(
            lambda case: (case.weights * ~case.inputs[5][:, None]).max() > 1e-4,
            _on_padding,
            "Padding must get no "
            "weight: fill its scores with -inf before the softmax. A modest number such as -10 isn't low enough where "
            "the words' scores are lower."),
        R(
            lambda case: gap(case, "weights") > 1e-3,
            _weights,
            "Each row sums to one over real words. Which vectors "
            "are compared, by which matrices, and how is the product scaled?"),
        R(
            lambda case: gap(case, "context") > 1e-3,
            _context,
            "The weights are right. Mix the values with them."),
    ),
    hints=(
        "Who asks? The words that are being written. Who answers? The memory.",
        "query = x @ W_q, and the keys and the values are made from memory. The mask needs a dimension for the queries: "
        "source_mask[:, None].",
        "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), masked_fill(~source_mask[:, None], "
        "-math.inf), "
        "softmax(dim=-1)",
    ),
)

# ---------------------------------------------------------------- 17.2 what the decoder reads

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


def shift_probes(generator: torch.Generator) -> list[tuple]:
    """(target_ids,): <bos> 2, words, <eos> 3, then 0."""
    def draw(lengths):
        rows = torch.zeros(len(lengths), max(lengths) + 2, dtype=torch.long)
        for row, length in zip(rows, lengths):
            row[: length + 2] = torch.tensor([2, *torch.randint(4, 30, (length,), generator=generator).tolist(), 3])
        return (rows,)

    return [draw([4, 2, 5]), draw([3]), draw([1, 6])]


def observe_shift(function, target_ids):
    """The three results by name; the mask as numbers."""
    output = function(target_ids)
    if output is None:
        return None
    names = ("read", "asked", "mask")
    if isinstance(output, dict) and set(output) == set(names):
        output = [output[name] for name in names]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"{len(output)} results" if isinstance(output, (tuple, list)) else what(output)
        raise TypeError(f"expected three results, read, asked and mask, got {got}. End with `return read, asked, mask`")
    read, asked, mask = (one_tensor(part, name) for part, name in zip(output, names))
    if mask.dtype != torch.bool and mask.isfinite().all():
        raise TypeError(f"expected a mask of True and False, True where a row may look; yours holds numbers, of type "
                        f"{str(mask.dtype).removeprefix('torch.')}. Add dtype=torch.bool where you make it, or .bool()")
    return {"read": read, "asked": asked, "mask": mask.float()}


def _rows(case: Case) -> str:
    """What the row that is furthest off reads, and what it's asked for."""
    row = worst_row(case, "read", "asked")
    read, asked = (" ".join(f"{i:.0f}" for i in case.got[part][row].tolist()) for part in ("read", "asked"))
    return f"row {row}, counted from 0, reads {read} and is asked for {asked}."


def _mask(case: Case) -> str:
    return f"the rows of your mask let {', '.join(f'{n:.0f}' for n in case.mask.sum(-1).tolist())} words be seen."


def _lengths(case: Case) -> str:
    return (f"the shapes are {tuple(case.read.shape)}, {tuple(case.asked.shape)} and {tuple(case.mask.shape)}; from "
            f"{case.inputs[0].shape[1]} ids come {case.inputs[0].shape[1] - 1} rows.")


SHIFT = ask(
    "17.2", read_asked_mask,
    probes=shift_probes,
    observe=observe_shift,
    signature="read_asked_mask(target_ids (batch, target + 1)) -> read (batch, target), asked (batch, target), mask "
    "(target, target)",
    not_finite=dict.fromkeys(("inf", "-inf"), "That's a mask to add to the scores. Here it's one of True and False: True "
                             "where a row may look."),
    mistakes={
        "not-shifted": M(
            _shift(asked=lambda ids: ids[:, :-1]),
            _rows,
            "Each word is asked for where it's read, so the model learns to copy its own "
            "input, and its loss falls to nearly 0."),
        "asked-not-begun": M(
            _shift(read=lambda ids: ids[:, 1:]),
            _rows,
            "Both begin after <bos>. Each word is asked for where it's read, and "
            "nothing is there to read before the first word."),
        "exchanged": M(
            _shift(lambda ids: ids[:, 1:], lambda ids: ids[:, :-1]),
            _rows,
            "The two are exchanged: each row is asked for the word before it."),
        "wrapped": M(
            _shift(lambda ids: ids[:, :-1], lambda ids: ids.roll(1, 1)[:, :-1]),
            _rows,
            "roll() by +1 moves the words to the right, and the last id comes round to the "
            "front. The word asked for must come after the one that's read."),
        "no-mask": M(
            _shift(mask=lambda full: full),
            _mask,
            "Every row sees all words, the one that it's asked for included. The training loss would "
            "be wonderful, and the translations useless."),
        "not-itself": M(
            _shift(mask=lambda full: full.tril(-1)),
            _mask,
            "A row may not look at the word that it has just read. It's the last word written, and "
            "the next one hangs on it; the first row is left with nothing."),
        "one-ahead": M(
            _shift(mask=lambda full: full.tril(1)),
            _mask,
            "Each row sees one word too far, and that's the very word that it's asked for."),
        "upside-down": M(
            _shift(mask=lambda full: full.triu()),
            _mask,
            "Each row sees itself and what comes after it, so the mask is turned round: rows are "
            "who looks, columns what's looked at."),
        "inverted": M(
            _shift(mask=lambda full: full.triu(1)),
            _mask,
            "It's the right mask in PyTorch's other convention, as nn.Transformer takes it: True = "
            "hidden. In this course True means may look.", convention=True),
        "only-itself": M(
            _shift(mask=lambda full: full & torch.eye(len(full), dtype=torch.bool)),
            _mask,
            "Each row sees only itself, so the model forgets all words but the last."),
    },
    rules=(
        R(
            lambda case: any(case.got[name].shape != case.right[name].shape for name in case.right),
            _lengths,
            "Everything has one row less than target_ids."),
        R(
            lambda case: gap(case, "read") > 0 or gap(case, "asked") > 0,
            _rows,
            "What's asked for at a position "
            "is the word that follows the one that's read there. Padding may stay."),
        R(
            lambda case: gap(case, "mask") > 0,
            _mask,
            "Row i may look at columns 0 to i."),
    ),
    hints=(
        "Write <bos> la voiture <eos> on paper. What does the decoder read first, and what must it say then?",
        "read lacks the last id, asked lacks the first. torch.ones(n, n, dtype=torch.bool) is a mask that hides nothing.",
        "return target_ids[:, :-1], target_ids[:, 1:], causal_mask(target_ids.shape[1] - 1)",
    ),
)

# ---------------------------------------------------------------- 17.3 a smoothed loss

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


def smoothing_probes(generator: torch.Generator) -> list[tuple]:
    """(logits, targets, smoothing, pad_id): ragged padding; another pad_id; without smoothing, both; much of it, one word;
    a model that is sure of wrong words, with smoothing and without; positions whose logits are 200 above and
    below those of others; targets that are 0 where that isn't pad_id."""
    def draw(batch, length, vocab, lengths, smoothing, pad_id):
        logits = 2 * torch.randn(batch, length, vocab, generator=generator)
        targets = torch.randint(1, vocab - 1, (batch, length), generator=generator)
        real = torch.arange(length) < torch.tensor(lengths)[:, None]
        return logits, targets.masked_fill(~real, pad_id), smoothing, pad_id

    def sure(smoothing):
        logits, targets, *others = draw(2, 3, 5, [3, 1], smoothing, 0)
        logits[..., 4] += 1000.0                                           # of the last word, which is never asked for
        return logits, targets, *others

    probes = [draw(3, 5, 7, [5, 2, 3], 0.2, 0), draw(2, 4, 6, [1, 4], 0.1, 5), draw(2, 3, 9, [3, 2], 0.0, 0),
              draw(2, 4, 6, [1, 4], 0.0, 5), draw(1, 2, 4, [1], 0.6, 0), sure(0.1), sure(0.0)]
    apart = draw(2, 3, 5, [3, 2], 0.1, 0)
    apart[0].add_(200.0 * torch.tensor([[[1], [-1], [0]], [[-1], [0], [1]]]))
    with_zeros = draw(2, 4, 6, [4, 3], 0.1, 5)
    with_zeros[1][:, 1] = 0
    return [*probes, apart, with_zeros]


def observe_smoothed(function, logits, targets, smoothing, pad_id):
    """The loss, and the gradient that it sends to the logits; zeros if none, and if the loss isn't finite."""
    given, logits = logits, logits.detach().clone().requires_grad_()
    output = function(logits, targets, smoothing, pad_id)
    put_back(given, logits)
    return None if output is None else loss_and_gradient(output, logits, "logits")


def _loss(case: Case) -> str:
    return (f"with smoothing {case.inputs[2]:g} your loss is {case.loss.item():.4f}, expected "
            f"{case.right['loss'].item():.4f}.")


def _gradient(case: Case) -> str:
    got, right = (named["gradient for the logits"].abs().max().item() for named in (case.got, case.right))
    return f"the loss is right, but the largest number of its gradient for the logits is {got:.3f}, expected {right:.3f}."


def _off(case: Case) -> bool:
    return gap(case, "loss") > 1e-3


def _vocabulary(case: Case) -> str:
    return f"{_loss(case)} There are {case.inputs[0].shape[-1]} words."


def _counted(case: Case) -> str:
    targets, pad_id = case.inputs[1], case.inputs[3]
    return f"{_loss(case)} {int((targets != pad_id).sum())} of the {targets.numel()} targets are real."


SMOOTHED = ask(
    "17.3", smoothed_loss,
    probes=smoothing_probes,
    observe=observe_smoothed,
    forbidden=("torch.nn.functional.cross_entropy", "course_utils.encoder_decoder.smoothed_cross_entropy"),
    signature="smoothed_loss(logits (batch, target, vocab), targets (batch, target), smoothing, pad_id) -> mean loss",
    not_finite={
        "inf": "The logarithm of a probability that was rounded to 0 is infinite, and exp of a large logit overflows. Take "
        f"log_softmax of the logits. {EACH_MAXIMUM}",
        "-inf": "The logarithm of a probability that was rounded to 0 is −inf, and the loss is minus that. Take "
        f"log_softmax of the logits. {EACH_MAXIMUM}",
        "NaN": "exp of a large logit overflows, or a probability was rounded to 0, and 0 times the −inf of its logarithm is "
        f"NaN. Take log_softmax of the logits. {EACH_MAXIMUM}"},
    mistakes={
        "over-the-others": M(
            _smoothed(lambda one_hot, e, v: (1 - e) * one_hot + e / (v - 1) * (1 - one_hot)),
            _vocabulary,
            "You spread the smoothing over the other words alone, vocab - 1 of them. "
            "That's done, too, but here the right word gets its part of it like every other.", convention=True),
        "others-too-little": M(
            _smoothed(lambda one_hot, e, v: (1 - e) * one_hot + e / v * (1 - one_hot)),
            _vocabulary,
            "Each other word gets smoothing / vocab, but the right one doesn't, so "
            "your target's probabilities sum to less than one."),
        "on-top": M(
            _smoothed(lambda one_hot, e, v: one_hot + e / v),
            _vocabulary,
            "The right word keeps the whole of its 1, and the smoothing comes on top: your "
            "target's probabilities sum to more than one."),
        "all-of-it-each": M(
            _smoothed(lambda one_hot, e, v: (1 - e) * one_hot + e),
            _vocabulary,
            "Every word gets the whole smoothing instead of its part of it. Divide by "
            "the number of words."),
        "exchanged": M(
            _smoothed(lambda one_hot, e, v: e * one_hot + (1 - e) / v),
            _loss,
            "The two weights are exchanged: 1 - smoothing belongs to the right word."),
        "not-smoothed": M(
            _smoothed(lambda one_hot, e, v: one_hot),
            _loss,
            "That's plain cross-entropy."),
        "probabilities-smoothed": M(
            _logarithm_of_the_mixture,
            _loss,
            "You smooth the model's probabilities. It's the target that's softened; "
            "the model's row stays as it is."),
        "padding-counted": M(
            _smoothed(counted=lambda loss, real: loss.mean()),
            _counted,
            "Padding counts as a word in your mean."),
        "padding-in-the-divisor": M(
            _smoothed(counted=lambda loss, real: (loss * real).mean()),
            _counted,
            "Padding is left out of the sum, but you divide by all positions."),
        "summed": M(
            _smoothed(counted=lambda loss, real: loss[real].sum()),
            _counted,
            "You add up. With a sum, a longer batch would take a larger step."),
        "sentence-means": M(
            _smoothed(counted=lambda loss, real: ((loss * real).sum(1) / real.sum(1)).mean()),
            _counted,
            "You average each sentence first. A word in a short sentence then counts for "
            "more than one in a long sentence."),
        "no-minus": M(
            _smoothed(counted=lambda loss, real: -loss[real].mean()),
            _loss,
            "The sign is missing: ln p is negative."),
        "divergence": M(
            _divergence,
            _loss,
            "That's the divergence from the target, which is 0 where the two are equal. The "
            "cross-entropy is larger by the target's entropy. The gradients are the same.", convention=True),
        "no-padding-among-the-words": M(
            _no_padding_among_the_words,
            _vocabulary,
            "You leave <pad> out when you spread the smoothing, so "
            "vocab - 1 words share it. That's sensible, but here every word of the vocabulary gets its part.",
            convention=True),
        "softmax-first": M(
            lambda logits, *others: smoothed_loss(logits.softmax(dim=-1), *others),
            _loss,
            "You turn the logits into probabilities, and then take log_softmax of those. Its "
            "input is the logits."),
        "pad-id-is-zero": M(
            lambda logits, targets, smoothing, pad_id: smoothed_loss(logits, targets, smoothing, 0),
            _counted,
            "You leave out the targets that are 0. Here it's `pad_id` that's padding, "
            "and it isn't always 0."),
        "zero-is-padding-too": M(
            lambda logits, targets, smoothing, pad_id: smoothed_loss(
            logits, targets.masked_fill(targets == 0, pad_id), smoothing, pad_id),
            _counted,
            "You leave out the targets that are 0, besides those that are pad_id. "
            "Where pad_id is another, 0 is a word like any other."),
        "cut-off": M(
            lambda logits, *others: smoothed_loss(logits.detach(), *others),
            _gradient,
            "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it "
            "couldn't be trained. Return a tensor; call item() where you print it."),
    },
    rules=(
        R(
            lambda case: case.right["loss"] < 100 and case.inputs[2] == case.inputs[3] == 0 and _off(case),
            _counted,
            "Here nothing is "
            "smoothed, so it's plain cross-entropy: the mean of -ln p of the right words that aren't padding."),
        R(
            lambda case: case.inputs[2] == 0 < case.inputs[3] and _off(case),
            _counted,
            "Here pad_id isn't 0. Leave "
            "out the targets that equal it, whatever it is."),
        R(
            lambda case: case.right["loss"] < 100 and _off(case),
            _vocabulary,
            "Without smoothing yours is right. Of "
            "the target's probability, how much does the right word get, and how much each of the others?"),
        R(
            lambda case: case.loss < case.right["loss"] and _off(case),
            _loss,
            "Other losses are right; here the model "
            "is sure of a wrong word. A small number added before the logarithm, or a clamp, puts an upper limit on "
            "the loss. Take log_softmax of the logits."),
        R(
            _off,
            _loss,
            "The other losses are right. Here the model is sure of a wrong word: take log_softmax of the "
            "logits."),
        R(
            lambda case: gap(case, "gradient for the logits") > 1e-4,
            _gradient,
            "Part of the way from the logits to "
            "the loss is cut off or counted twice."),
    ),
    hints=(
        "Two numbers for each position: -ln p of the right word, and the mean of -ln p over all words.",
        "log_p.gather(-1, targets[..., None])[..., 0] picks the right words' ln p.",
        "loss = (1 - smoothing) * right + smoothing * everything, and of that loss[targets != pad_id].mean()",
    ),
)

# ---------------------------------------------------------------- 17.4 which candidate wins

def winner(log_probabilities, lengths, alpha):
    penalty = ((5 + lengths) / 6) ** alpha
    return int((log_probabilities / penalty).argmax())


CHOSEN = (                                              # on these, each known mistake differs from each other one
    ((-3.88, -2.48, -1.93, -3.82, -1.86, -1.98), (23, 16, 9, 28, 8, 5), 0.6),
    ((-28.06, -14.47, -15.11, -41.05, -87.27, -17.7), (15, 9, 10, 20, 30, 12), 2.0),
    ((-4.95, -3.76, -2.72, -2.93, -3.8), (27, 22, 4, 2, 11), 0.3),
    ((-0.93, -1.24, -2.43, -11.82, -23.89), (1, 3, 5, 17, 27), 2.0),
    ((-0.61, -0.6, -0.62, -0.63), (5, 7, 1, 10), 0.0),
    ((-2.54, -2.74, -2.15, -2.21, -1.68, -1.59), (22, 25, 15, 17, 10, 7), 0.6),
    ((-1.55, -6.12, -1.36, -3.74, -3.65), (3, 29, 2, 16, 14), 1.0),
    ((-3.16, -2.94, -5.04, -3.7), (10, 14, 27, 22), 0.6),
    ((-2.66, -2.28, -23.79), (2, 1, 27), 1.4),
    ((-1.0, -2.5), (1, 3), 1.0),                        # where 5 / 6 of a word more or less decides
    ((-10.0, -11.5, -18.0), (10, 20, 40), 1.0),         # a milder penalty chooses the second
    ((-3580.0, -3430.0, -3000.0, -3770.0), (310, 330, 260, 340), 0.3),     # e to the power of such scores is 0 in any float
    ((-840.0, -810.0, -905.0), (120, 100, 95), 0.0),
)


def winner_probes(generator: torch.Generator) -> list[tuple]:
    """(log_probabilities, lengths, alpha): longer ones less probable by about the penalty, or as probable; then CHOSEN."""
    probes = []
    for i in range(12):
        count, alpha = 4 + i % 5, (0.6, 1.0, 0.3, 0.8, 1.4, 0.0)[i % 6]
        lengths = torch.randperm(24, generator=generator)[:count] + 2
        drawn = torch.rand(count, generator=generator)
        close = i % 3 == 2                              # as probable, whatever their length
        log_p = -4 - 0.8 * drawn if close else (-0.9 - 0.5 * drawn) * ((5 + lengths) / 6) ** alpha
        probes.append((log_p, lengths, alpha))
    return [*probes, *((torch.tensor(log_p), torch.tensor(lengths), alpha) for log_p, lengths, alpha in CHOSEN)]


def _chosen(case: Case) -> str:
    log_p, lengths, alpha = case.inputs
    got, right = (int(value) for value in (case.answer, case.expected))
    if not 0 <= got < len(lengths):
        return f"you return {got}, and there are {len(lengths)} candidates."
    return (f"at alpha = {alpha:g} you choose {lengths[got]} words with ln p = {log_p[got]:.2f}, and {lengths[right]} words "
            f"with {log_p[right]:.2f} win.")


WINNER = ask(
    "17.4", winner,
    probes=winner_probes,
    forbidden=("course_utils.encoder_decoder.length_penalty",),
    signature="winner(log_probabilities (candidates,), lengths (candidates,), alpha) -> index",
    mistakes={
        "no-penalty": M(
            lambda log_p, lengths, alpha: int(log_p.argmax()),
            _chosen,
            "You compare the log-probabilities as they are. Every word lowers them, so short "
            "translations win, and the ends of sentences get lost."),
        "multiplied": M(
            lambda log_p, lengths, alpha: int((log_p * ((5 + lengths) / 6) ** alpha).argmax()),
            _chosen,
            "You multiply by the penalty. Log-probabilities are negative, so that makes long "
            "translations even worse: divide."),
        "per-word": M(
            lambda log_p, lengths, alpha: int((log_p / lengths).argmax()),
            _chosen,
            "You divide by the length, so it's a mean for each word, whatever alpha is. Use the "
            "penalty of section 5."),
        "power-of-the-length": M(
            lambda log_p, lengths, alpha: int((log_p / lengths**alpha).argmax()),
            _chosen,
            "You divide by length to the power of alpha. Wu's penalty has 5 more words "
            "and begins at 1: (5 + length) / 6.", convention=True),
        "no-alpha": M(
            lambda log_p, lengths, alpha: int((log_p / ((5 + lengths) / 6)).argmax()),
            _chosen,
            "Alpha changes nothing: it's missing, or only the 6 has it as an exponent, which "
            "divides all scores by the same number. Brackets: ((5 + length) / 6), and the whole to the power of alpha."),
        "five-sixths": M(
            lambda log_p, lengths, alpha: int((log_p / (5 / 6 + lengths) ** alpha).argmax()),
            _chosen,
            "You divide the 5 alone by 6. Brackets: ((5 + length) / 6), and that to the power "
            "of alpha."),
        "length-alone": M(
            lambda log_p, lengths, alpha: int((log_p / (5 + lengths / 6) ** alpha).argmax()),
            _chosen,
            "You divide the length alone by 6. Brackets: ((5 + length) / 6), and that to the "
            "power of alpha."),
        "longest": M(
            lambda log_p, lengths, alpha: int(lengths.argmax()),
            _chosen,
            "You always take the longest one. The penalty makes up for the length; it doesn't "
            "reward it."),
        "lowest": M(
            lambda log_p, lengths, alpha: int((log_p / ((5 + lengths) / 6) ** alpha).argmin()),
            _chosen,
            "You take the lowest score. Scores are negative here, and the highest is the best."),
        "probabilities": M(
            lambda log_p, lengths, alpha: int((log_p.exp() / ((5 + lengths) / 6) ** alpha).argmax()),
            _chosen,
            "You turn the log-probabilities into probabilities first. Divided by the penalty, "
            "those make long translations lose twice."),
        "subtracted": M(
            lambda log_p, lengths, alpha: int((log_p - ((5 + lengths) / 6) ** alpha).argmax()),
            _chosen,
            "You subtract the penalty, which makes long translations even worse. Divide by it: "
            "log-probabilities are negative, so that brings them nearer to 0."),
        "end-not-counted": M(
            lambda log_p, lengths, alpha: int((log_p / ((4 + lengths) / 6) ** alpha).argmax()),
            _chosen,
            "You take one word off each length. <eos> is counted: it's a word that the "
            "model had to choose. Use the lengths as they are."),
    },
    rules=(
        R(
            lambda case: case.inputs[0].max() < -500 and int(case.answer) == 0,
            _chosen,
            "e to the power of so low a "
            "score is 0 in any float, so all candidates are equal and the first one wins. Compare the scores "
            "themselves: the highest logarithm has the highest probability."),
        R(
            lambda case: case.inputs[2] == 0 and gap(case) > 0,
            _chosen,
            "At alpha = 0 the penalty is 1, and the "
            "largest log-probability wins."),
        R(
            lambda case: gap(case) > 0,
            _chosen,
            "At alpha = 0 yours is right. Work the two scores out by hand."),
    ),
    hints=(
        "Which number is divided by which? Then the largest score wins.",
        "penalty = ((5 + lengths) / 6) ** alpha",
        "return int((log_probabilities / penalty).argmax())",
    ),
)

# ---------------------------------------------------------------- 17.5 write with a cache

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


class Writer:
    """A model that writes: what follows depends on every word that it has read and on the position given with it.

    It ends once, after `ends_after` words; whoever goes on gets more words. Its second word has the id 0, if that is one,
    its fourth is the third once more, and its fifth has the id of the beginning.
    """

    def __init__(self, seed: int, vocab: int, begin: int, end: int, ends_after: int):
        self.seed, self.vocab, self.begin, self.end, self.ends_after = seed, vocab, begin, end, ends_after

    def new(self):
        """A `step` that has read nothing yet."""
        read = []

        def step(word, position):
            read.append((int(word), int(position)))
            code = self.seed
            for one, place in read:
                code = (code * 1_000_003 + 97 * one + 7919 * place + 13) % 2_147_483_647
            logits = 2 * torch.randn(self.vocab, generator=torch.Generator().manual_seed(code))
            logits[0] = 8.0 if len(read) == 2 else -5.0
            if len(read) == 4:
                logits[int(word)] = 8.0
            logits[self.begin] = 8.0 if len(read) == 5 else -9.0
            logits[self.end] = 9.0 if len(read) == self.ends_after + 1 else -5.0
            return logits.log_softmax(dim=0)

        return step


def writing_probes(generator: torch.Generator) -> list[tuple]:
    """(writer, begin, end, max_len): ends by itself; is cut off; ends at once; ends at the very limit; other ids;
    larger ones."""
    def draw(begin, end, ends_after, max_len, vocab=30):
        return Writer(int(torch.randint(10**6, (), generator=generator)), vocab, begin, end, ends_after), begin, end, max_len

    return [draw(2, 3, 6, 15), draw(2, 3, 40, 7), draw(2, 3, 0, 5), draw(2, 3, 5, 5), draw(29, 0, 8, 20),
            draw(998, 999, 6, 9, vocab=1000)]


def observe_writing(function, writer, begin, end, max_len):
    """The words, as a text: '5 17 4'. An error if a second call gives others."""
    return same_twice(lambda: _written(function, writer.new(), begin, end, max_len), "Greedy takes the most probable word "
                      "each time, and doesn't sample")


def _written(function, step, begin, end, max_len):
    output = function(step, begin, end, max_len)
    if output is None:
        return None
    if isinstance(output, torch.Tensor):
        output = output.flatten().tolist()
    if not isinstance(output, (list, tuple)):
        raise TypeError(f"expected a list of ids, got {what(output)}")
    return {"words": " ".join(str(int(word)) for word in output) or "nothing"}


def _words(case: Case) -> str:
    return f"you write {case.words[:60]} where {case.right['words'][:60]} is expected."


def _how_many(case: Case) -> str:
    got, right = (0 if words == "nothing" else len(words.split()) for words in (case.words, case.right["words"]))
    return f"you return {got} words, expected {right}, at most {case.inputs[3]}."


def _goes_on(case: Case) -> bool:
    """Whether the answer is the right one, then the end, and more."""
    ended = [*case.right["words"].replace("nothing", "").split(), str(case.inputs[2])]
    return case.words.split()[: len(ended)] == ended


def _first_difference(case: Case) -> tuple[str, str, list[str]]:
    """What's written and what's expected where they first differ, "" for nothing, and the words before it."""
    words, right = ([*text.replace("nothing", "").split(), ""] for text in (case.words, case.right["words"]))
    place = next(k for k, (a, b) in enumerate(zip(words, right)) if a != b)
    return words[place], right[place], right[:place]


def _begin_refused(case: Case) -> bool:
    got, right, before = _first_difference(case)
    return bool(before) and right == str(case.inputs[1])


def _stopped_at_a_repetition(case: Case) -> bool:
    got, right, before = _first_difference(case)
    return got == "" and right in before


WRITE = ask(
    "17.5", write_greedily,
    probes=writing_probes,
    observe=observe_writing,
    signature="write_greedily(step, begin, end, max_len) -> a list of ids; step(word, position) -> log-probabilities "
        "(vocab,)",
    mistakes={
        "one-position-on": M(
            _write(lambda done: done + 1),
            _words,
            "Your positions begin at 1, so every word is read one position too far on. The "
            "cache then holds keys that don't belong where they say."),
        "one-position-back": M(
            _write(lambda done: max(done - 1, 0)),
            _words,
            "The first two words are both read at position 0, and all others one too "
            "early. "
            "A word's position is the number of words that were read before it."),
        "no-positions": M(
            _write(lambda done: 0),
            _words,
            "Every word is read at position 0. With a cache, nobody but you knows where a word "
            "stands: a trained model then starts well, loses the order, and repeats itself."),
        "begin-again": M(
            _write(reads=lambda begin, words: begin),
            _words,
            "Every step reads the beginning again, so the model never learns what it has "
            "written."),
        "one-word-behind": M(
            _write(reads=lambda begin, words: words[-2] if len(words) > 1 else begin),
            _words,
            "Each step reads the word before the last. The last word written never gets "
            "into the cache in time."),
        "never-ends": M(
            _write(stops=False),
            _how_many,
            "You go on after the end. What follows it means nothing."),
        "end-taken-out": M(
            _write(stops=False, returns=lambda words, begin, end: [w for w in words if w != end[0]]),
            _how_many,
            "You go on after the end, and take it out of the list later. What was written "
            "after it stays in the list: stop there."),
        "end-kept": M(
            _write(returns=lambda words, begin, end: [*words, *end]),
            _how_many,
            "The end is in your list. It says that the sentence is over, and isn't a word of "
            "it."),
        "begin-kept": M(
            _write(returns=lambda words, begin, end: [begin, *words]),
            _how_many,
            "The beginning is in your list. The model read it; it didn't write it."),
        "no-limit": M(
            _write(limit=lambda most: 10_000),
            _how_many,
            "Where no end comes, you go on and on. Stop after max_len words."),
        "one-too-many": M(
            _write(limit=lambda most: most + 1),
            _how_many,
            "Where no end comes, your list is one word too long."),
        "one-too-few": M(
            _write(limit=lambda most: most - 1),
            _how_many,
            "Where no end comes, your list is one word too short."),
        "reads-again": M(
            _reads_again,
            _words,
            "You hand over all words at every step. `step` keeps what it has read: each "
            "word goes in once, when it's new."),
        "asks-twice": M(
            _asks_twice,
            _words,
            "`step` is called twice for a word, once for the end and once for the word. Each "
            "call puts the word into the cache again: call it once, and keep the result."),
        "least-probable": M(
            _write(choose=lambda log_p: log_p.argmin()),
            _words,
            "You choose the least probable word. Log-probabilities are negative: the one "
            "nearest to 0 is the largest."),
        "ends-at-zero": M(
            _write(ends_too=0),
            _words,
            "You stop at 0 as well. Only `end` ends a translation, and 0 can be a word like any "
            "other."),
    },
    rules=(
        R(
            lambda case: case.inputs[2] < 256 and _goes_on(case),
            lambda case: f"{_how_many(case)} The end is "
            f"{case.inputs[2]}.",
            "You go on after it. Which id ends a translation isn't the same everywhere: compare "
            "with `end`."),
        R(
            _goes_on,
            lambda case: f"{_how_many(case)} The end is {case.inputs[2]}.",
            "You go on after it, and with a "
            "smaller id you stop. Do you compare with `is`? It asks whether two names mean the same object, which "
            "Python makes sure of for small numbers only. Equal numbers are found by ==."),
        R(
            lambda case: case.words.split()[:1] != case.right["words"].split()[:1],
            _words,
            "Look at the very first "
            "step: `begin` is read, at position 0, and the most probable word is written."),
        R(
            _begin_refused,
            lambda case: f"{_words(case)} `begin` is {case.inputs[1]}.",
            "The most probable word is "
            "the one with the id of `begin`. It's written and read like any other; only `end` ends a translation."),
        R(
            _stopped_at_a_repetition,
            _words,
            "You stop at a word that was written before. Words may come twice, even "
            "in a row; only `end` and max_len end the loop."),
        R(
            lambda case: case.words != case.right["words"],
            _words,
            "The first word is right. Which word does the next "
            "step read, at which position, and when does the loop end?"),
    ),
    hints=(
        "Keep the list of words, and the word that was written last. Before the first word, that's `begin`.",
        "How many words have been read before the one that you hand over now? That's its position.",
        "last = int(step(last, len(words)).argmax())",
    ),
)

# ---------------------------------------------------------------- 17.6 n-gram precision

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


def precision_probes(generator: torch.Generator) -> list[tuple]:
    """(translations, references, n): words that come too often, sentences of different lengths, some shorter than n;
    translations shorter than their references; shorter than n - 1, beside one that is right; n-grams that look alike once
    their words are glued together; a word and an n-gram that the reference has only as part of others."""
    words = "la une petite voiture rouge maison dans rue".split()

    def draw(lengths, n):
        references = [[words[i] for i in torch.randint(8, (length,), generator=generator).tolist()] for length in lengths]
        translations = [[*reference[: len(reference) // 2], *reference[: len(reference) // 2 + 1], reference[-1]]
                        for reference in references]
        return translations, references, n

    return [([["la"] * 4], ["la petite voiture rouge".split()], 1), draw([6, 11, 4], 1), draw([9, 5, 7], 2),
            draw([12, 3, 8], 3), ([["la", "rue"], ["une"]], [["la", "maison"], ["une", "rue"]], 4),
            ([["la", "rue", "petite", "la"], ["une", "maison"]],
             ["la petite rue dans la petite maison".split(), "une rouge maison".split()], 1),
            (["la rouge voiture".split(), "une rue".split()], ["la voiture rouge".split(), "une rue".split()], 2),
            ([["la"], "la petite maison dans une rue".split(), []],
             ["la rue".split(), "la petite maison dans une petite rue".split(), ["rue"]], 3),
            (["l ami dort".split(), "une rue".split()], ["la mi dort".split(), "une rue".split()], 2),
            (["la salade verte".split(), "une la".split()], ["une salade verte".split(), "une malade".split()], 1),
            (["une salade verte".split()], ["aucune salade verte".split()], 2)]


def _share(case: Case) -> str:
    return f"for n = {case.inputs[2]} your precision is {float(case.answer):.4f}, expected {float(case.expected):.4f}."


def _la(case: Case) -> str:
    first = case.inputs[0][0]
    return f"{_share(case)} The first translation is {' '.join(first[:6])}."


def _short(case: Case) -> str:
    return f"{_share(case)} The shortest translation has {min(map(len, case.inputs[0]))} words."


PRECISION = ask(
    "17.6", ngram_precision,
    probes=precision_probes,
    forbidden=("course_utils.encoder_decoder.bleu", "course_utils.encoder_decoder.ngrams"),
    signature="ngram_precision(translations, references, n) -> a number; both are lists of lists of tokens",
    mistakes={
        "not-clipped": M(
            _precision(lambda own, wanted: sum(gram in wanted for gram in own)),
            _la,
            "Each n-gram counts as often as it's repeated. So la la la la would be perfect for any "
            "reference with one la in it: clip the count by the reference's."),
        "once-each": M(
            _precision(lambda own, wanted: len(set(own) & set(wanted))),
            _la,
            "Each different n-gram counts at most once. It may count as often as the reference "
            "has it."),
        "different-ones": M(
            _precision(lambda own, wanted: len(set(own) & set(wanted)), lambda own, wanted: len(set(own))),
            _la,
            "You work with sets, so repetitions are lost on both sides of the fraction. Count."),
        "recall": M(
            _precision(possible=lambda own, wanted: len(wanted)),
            _la,
            "You divide by the reference's n-grams. That's recall; precision asks how much of the "
            "translation is right."),
        "mean-of-sentences": M(
            _precision(whole=lambda pairs: sum(h / max(1, p) for h, p in pairs) / len(pairs)),
            _la,
            "You average the precisions of the sentences. BLEU adds up the counts of the "
            "whole "
            "corpus before it divides, so a short sentence counts for little."),
        "mean-of-sentences-with-runs": M(
            _precision(whole=lambda pairs: sum(h / p for h, p in pairs if p) / max(1, sum(p > 0 for _, p in pairs))),
            _la,
            "You average the precisions of the sentences that have runs of n words. BLEU adds up "
            "the counts of the whole corpus before it divides, so a short sentence counts for little."),
        "clipped-by-all-words": M(
            _of_the_whole_text,
            _la,
            "You join the sentences first. Then n-grams reach from one sentence into the "
            "next, and a word may be found in another sentence's reference."),
        "counted-together": M(
            _counted_together,
            _la,
            "You add up the counts of all sentences before you clip, so a word may count "
            "because of another sentence's reference. Clip in each sentence, then add up."),
        "single-words": M(
            _precision(size=lambda n: 1),
            _la,
            "You count single words, whatever n is. An n-gram is a run of n words."),
        "with-brevity": M(
            _with_brevity,
            _la,
            "The brevity penalty is in it. BLEU multiplies by it once, at the very end; this is "
            "one n's precision."),
        "up-to-n": M(
            _up_to_n,
            _la,
            "You take the mean of the precisions for 1 to n. Here it's n alone; BLEU takes the mean "
            "later."),
        "any-order": M(
            _runs(lambda tokens, n: [tuple(sorted(gram)) for gram in _grams(tokens, n)]),
            _la,
            "Your n-grams are sorted, so voiture rouge counts as rouge voiture. The order of the "
            "words is what n-grams are for."),
        "tails": M(
            _runs(lambda tokens, n: [tuple(tokens[i : i + n]) for i in range(len(tokens))]),
            _la,
            "Runs of fewer than n words at a sentence's end are counted, too. A sentence of m words has "
            "m - n + 1 runs of n words."),
        "last-run-left-out": M(
            _runs(lambda tokens, n: _grams(tokens, n)[:-1]),
            _la,
            "The last run of each sentence is missing. A sentence of m words has m - n + 1 "
            "runs of n words, and range() leaves its end out."),
        "at-the-same-position": M(
            _at_the_same_position,
            _la,
            "An n-gram counts only where the reference has it at the same position. It "
            "may be anywhere in its sentence."),
        "fewer-than-none": M(
            _fewer_than_none,
            _short,
            "Runs of n words can't be fewer than none, but len(tokens) - n + 1 is negative "
            "for a translation of fewer than n - 1 words, and takes something off the others': max(0, …)."),
        "glued": M(
            _runs(lambda tokens, n: ["".join(gram) for gram in _grams(tokens, n)]),
            _la,
            "Your n-grams are glued together, so l + ami equals la + mi. Keep the words apart: "
            "tuple(gram)."),
        "searched-in-the-text": M(
            _searched_in_the_text,
            _la,
            "You search the reference's text, where la is found in salade, and une salade "
            "in aucune salade. Compare whole words: tuples of tokens, and not texts."),
        "percent": M(
            lambda translations, references, n: 100 * ngram_precision(translations, references, n),
            _la,
            "That's in per cent. Return a number from 0 to 1."),
    },
    rules=(
        R(
            lambda case: case.inputs[2] == 4 and gap(case) > 1e-4,
            _la,
            "Here no sentence has four words, so there's "
            "nothing to divide by: return 0."),
        R(
            lambda case: case.inputs[2] == 1 and gap(case) > 1e-4,
            _la,
            "n is 1 here: for every word, how often is "
            "it in "
            "the translation, and how often in the reference? The smaller number counts."),
        R(
            lambda case: gap(case) > 1e-4,
            _la,
            "For single words yours is right. How many runs of n words does a "
            "sentence have?"),
    ),
    hints=(
        "Count the n-grams of each translation and of its reference, each with a Counter.",
        "A sentence of m words has m - n + 1 runs of n words: tuple(tokens[i : i + n]).",
        "hits += sum(min(count, wanted[gram]) for gram, count in own.items()), and one division at the very end",
    ),
)

# ---------------------------------------------------------------- 17.7 the decoder block, three lines

def decoder_block(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
    x = x + self_attention(norm_1(x), causal)                              # (batch, target, d_model)
    x = x + cross_attention(norm_2(x), memory, real)
    return x + feed_forward(norm_3(x))


def _three(line=lambda x, f, norm: x + f(norm(x)), order=(0, 1, 2), norms=(0, 1, 2), memory_as=None):
    """The block with another line for each sublayer, in another order, with other norms, or with another memory."""
    def block(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
        three_norms = [norm_1, norm_2, norm_3]
        looked_at = memory if memory_as is None else memory_as(x, memory, three_norms)
        sublayers = [lambda y: self_attention(y, causal), lambda y: cross_attention(y, looked_at, real), feed_forward]
        for i in order:
            x = line(x, sublayers[i], three_norms[norms[i]])
        return x
    return block


def _side_by_side(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
    return x + self_attention(norm_1(x), causal) + cross_attention(norm_2(x), memory, real) + feed_forward(norm_3(x))


def _memory_replaces(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
    x = x + self_attention(norm_1(x), causal)
    x = cross_attention(norm_2(x), memory, real)
    return x + feed_forward(norm_3(x))


def _copy_used_again(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
    copy = norm_1(x)
    x = x + self_attention(copy, causal)
    x = x + cross_attention(copy, memory, real)
    return x + feed_forward(norm_3(x))


def _added_to_the_first_x(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
    around = x + self_attention(norm_1(x), causal)
    across = around + cross_attention(norm_2(around), memory, real)
    return x + feed_forward(norm_3(across))


def _one_copy_for_all(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3, causal, real):
    copy = norm_1(x)
    return x + self_attention(copy, causal) + cross_attention(copy, memory, real) + feed_forward(copy)


class _Looks:
    """One head that asks with its first input and finds in its second; a mask of None hides nothing."""

    def __init__(self, d: int, generator: torch.Generator):
        self.W_q, self.W_k, self.W_v = (torch.randn(d, d, generator=generator) / d**0.5 for _ in range(3))

    def __call__(self, x, memory, mask=None):
        scores = (x @ self.W_q) @ (memory @ self.W_k).transpose(-2, -1)    # (batch, query, key)
        if mask is not None:
            if mask.dim() == 2 and mask.shape != scores.shape[1:]:
                raise ValueError(f"a mask has the shape {tuple(mask.shape)}, and the scores are {tuple(scores.shape)}, "
                                 f"(batch, "
                                 "query, key). One that hides padding needs a dimension for the queries: real[:, None]")
            scores = scores.masked_fill(~mask.bool(), -math.inf)
        return scores.softmax(dim=-1).nan_to_num() @ (memory @ self.W_v)   # a row without keys gets zeros


class _LooksAround(_Looks):
    """Self-attention: (x, mask)."""

    def __call__(self, x, mask=None):
        return super().__call__(x, x, mask)


class _Norm:
    def __init__(self, d: int, generator: torch.Generator):
        self.weight = 0.5 + torch.rand(d, generator=generator)
        self.bias = torch.randn(d, generator=generator)

    def __call__(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class _Concludes:
    def __init__(self, d: int, generator: torch.Generator):
        self.up, self.down = torch.randn(d, 2 * d, generator=generator) / d**0.5, torch.randn(2 * d, d, generator=generator)

    def __call__(self, x):
        return F.gelu(x @ self.up) @ self.down / self.down.shape[1]**0.5


def _none(x, *others, **named):
    """A sublayer that has nothing to add."""
    return torch.zeros_like(x)


def block_probes(generator: torch.Generator) -> list[tuple]:
    """x, memory, three sublayers, three norms, two masks. Both sides are equally long, so that exchanged masks and sides
    run; the last source has padding in front."""
    def probe(batch, length, d, lengths, first=False):
        x, memory = (1.5 * torch.randn(batch, length, d, generator=generator) + 0.5 for _ in range(2))
        real = torch.arange(length) < torch.tensor(lengths)[:, None]
        real = (real.flip(1) if first else real)[:, None]                  # (batch, 1, source)
        return (x, memory, _LooksAround(d, generator), _Looks(d, generator), _Concludes(d, generator),
                *(_Norm(d, generator) for _ in range(3)), torch.ones(length, length, dtype=torch.bool).tril(), real)

    return [probe(2, 5, 6, [5, 3]), probe(3, 4, 8, [2, 4, 3]), probe(1, 3, 5, [2], first=True)]


def observe_block(answer, x, memory, *parts):
    """The output; the same with sublayers that add nothing; how far the last target word moves the rows before it, and
    the memory's padding any row; what gradient reaches x and memory."""
    before, sublayers, others = x.clone(), parts[:3], parts[3:]
    output = answer(x, memory, *parts)
    if output is None:
        return None
    output = one_tensor(output, "the output of the block")
    silent = one_tensor(answer(before.clone(), memory, _none, _none, _none, *others), "the output of the block")
    found = {"output": output, "silent": silent, "leak": torch.tensor(0.0), "padding": torch.tensor(0.0)}
    if output.shape == x.shape:
        real, other = others[4], before.clone()
        other[:, -1] = 1.5 * other[:, -1].flip(-1)                         # a shift alone would go in the norms
        found["leak"] = (answer(other, memory, *parts) - output)[:, :-1].abs().max().detach()
        hidden = torch.where(real.transpose(1, 2), memory, 1.5 * memory.flip(-1))
        found["padding"] = (answer(before.clone(), hidden, *parts) - output).abs().max().detach()
    return found | reached(answer, output, (before, memory, *sublayers, *others), {0: "x", 1: "memory"})


OFF = "the output is off by up to {off:.3f}."
QUIET = "with sublayers that add nothing, x should come out as it was, and it's off by up to {quiet:.3f}."
LEAK = "a change of the last target word moves the rows before it by up to {leak:.3f}."
PADDING = "a change of the source's padding moves your rows by up to {padding:.3f}."

DECODER_BLOCK = ask(
    "17.7", decoder_block, probes=block_probes, observe=observe_block,
    signature="decoder_block(x (batch, target, d_model), memory (batch, source, d_model), self_attention, cross_attention, "
    "feed_forward, norm_1, norm_2, norm_3, causal (target, target), real (batch, 1, source)) -> (batch, target, d_model)",
    numbers=dict(off=lambda case: gap(case, "output"), quiet=lambda case: gap(case, "silent"), leak=lambda case: case.leak,
                 padding=lambda case: case.padding),
    mistakes={
        "no-causal-mask": M({"self_attention(norm_1(x), causal)": "self_attention(norm_1(x))"}, LEAK, "Self-attention has "
            "no "
                            "mask, so a row sees words that aren't written yet. `causal` belongs to it."),
        "no-padding-mask": M({"cross_attention(norm_2(x), memory, real)": "cross_attention(norm_2(x), memory)"}, PADDING,
                             "Cross-attention has no mask. `real` says which columns of the memory are words: hand it "
                             "over."),
        "no-masks": M({"self_attention(norm_1(x), causal)": "self_attention(norm_1(x))",
                       "cross_attention(norm_2(x), memory, real)": "cross_attention(norm_2(x), memory)"},
                      lambda case: f"{LEAK[:-1]}, and a change of the source's padding by up to {{padding:.3f}}.".format(
                          leak=case.leak, padding=case.padding),
                      "Neither attention has its mask: `causal` belongs to self-attention, `real` to cross-attention."),
        "masks-exchanged": M({"self_attention(norm_1(x), causal)": "self_attention(norm_1(x), real)",
                              "cross_attention(norm_2(x), memory, real)": "cross_attention(norm_2(x), memory, causal)"},
                             LEAK, "The masks have changed places. Here both sides are equally long, so nothing stops. "
                             "`causal` hides what isn't written yet, and `real` the source's padding."),
        "causal-in-both": M({"cross_attention(norm_2(x), memory, real)": "cross_attention(norm_2(x), memory, real & "
                                                                         "causal)"},
                            OFF, "Cross-attention gets the causal mask as well. The whole source was there from the start: "
                            "only its padding is hidden."),
        "memory-not-used": M({"cross_attention(norm_2(x), memory, real)": "cross_attention(norm_2(x), x, real)"}, OFF,
                             "The middle line looks at x again, so nothing of the source gets in. Its second input is the "
                             "memory."),
        "memory-normalized": M(_three(memory_as=lambda x, memory, norms: norms[1](memory)), OFF, "norm_2 is applied to the "
                               "memory, too. The encoder's last norm has done that; here only x is normalized."),
        "sides-exchanged": M({"cross_attention(norm_2(x), memory, real)": "cross_attention(memory, norm_2(x), real)"}, OFF,
                             "The memory asks, and x is looked at. The words being written ask, so they come first."),
        "post-norm": M(_three(lambda x, f, norm: norm(x + f(x))), QUIET, "Each norm comes after its sum: that's "
                                                                         "post-norm, as "
                       "in 2017. Here it's pre-norm, x + f(norm(x)).", convention=True),
        "stream-normalized": M(_three(lambda x, f, norm: norm(x) + f(norm(x))), QUIET, "x was overwritten by its norm, so "
                                                                                       "the "
                               "sum starts from there. Only the copy that a sublayer reads is normalized."),
        "change-normalized": M(_three(lambda x, f, norm: x + norm(f(x))), QUIET, "You normalize what a sublayer returns. "
                               "Pre-norm normalizes what it reads: x + f(norm(x))."),
        "no-residuals": M(_three(lambda x, f, norm: f(norm(x))), QUIET, "What a sublayer returns replaces x. It's x + …, "
                                                                        "three "
                          "times."),
        "memory-replaces": M(_memory_replaces, QUIET, "What comes from the memory replaces x, so what has been written so "
                                                      "far "
                             "is forgotten. Add it."),
        "no-norms": M(_three(lambda x, f, norm: x + f(x)), OFF, "None of the norms is used: the sublayers get x as it is."),
        "cross-not-normalized": M({"cross_attention(norm_2(x), memory, real)": "cross_attention(x, memory, real)"}, OFF,
                                  "Cross-attention gets x as it is, without norm_2."),
        "same-norm": M(_three(norms=(0, 0, 0)), OFF, "norm_1 is used three times. Each sublayer has its own; before "
                                                     "training "
                       "they're equal, so nobody would notice."),
        "norms-exchanged": M(_three(norms=(1, 0, 2)), OFF, "norm_1 and norm_2 have changed places: norm_1 is "
                             "self-attention's."),
        "later-norms-exchanged": M(_three(norms=(0, 2, 1)), OFF, "norm_2 and norm_3 have changed places: norm_2 is "
                                   "cross-attention's, norm_3 the feed-forward layer's."),
        "feed-forward-not-normalized": M({"feed_forward(norm_3(x))": "feed_forward(x)"}, OFF, "The feed-forward layer gets "
                                         "x as it is, without norm_3."),
        "copy-used-again": M(_copy_used_again, OFF, "Cross-attention reads norm_1(x) from the first line again, so it "
                             "doesn't see what self-attention has added. Make a new copy: norm_2(x)."),
        "one-copy-for-all": M(_one_copy_for_all, OFF, "All three sublayers read the same norm_1(x), from before the first "
                              "line. Each needs a new copy of x as it is by then, by its own norm."),
        "added-to-the-first-x": M(_added_to_the_first_x, OFF, "The last line adds to the x of the beginning, so what the "
                                  "two attentions have added is lost on the way. Add to what the second line made."),
        "no-self-attention": M(_three(order=(1, 2)), OFF, "Self-attention is missing, so no word knows what was written "
                               "before it."),
        "no-cross-attention": M(_three(order=(0, 2)), OFF, "Cross-attention is missing, so nothing of the source gets in. "
                                "That's a block of notebook 13."),
        "no-feed-forward": M(_three(order=(0, 1)), OFF, "The feed-forward layer is missing: the third line."),
        "memory-first": M(_three(order=(1, 0, 2)), OFF, "Cross-attention comes before self-attention. First the words so "
                                                        "far "
                          "look at one another, then at the memory."),
        "memory-last": M(_three(order=(0, 2, 1)), OFF, "The feed-forward layer comes before cross-attention. It works on "
                                                       "what "
                         "both attentions have fetched, so it comes last."),
        "side-by-side": M(_side_by_side, OFF, "All three sublayers read the same x. Each must see what the one before it "
                                              "has "
                          "added: assign x after every line."),
    },
    rules=(
        R(lambda case: case.output.shape != case.right["output"].shape,
          lambda case: f"the output has the shape {tuple(case.output.shape)}, expected {tuple(case.right['output'].shape)}.",
          "It's x after three sums, so it has the shape of x."),
        R(lambda case: gap(case, "silent") > 1e-4, QUIET, "Only the residuals are left then: x = x + …, three times."),
        R(lambda case: case.leak > 1e-4, LEAK, "Does self-attention get `causal`, as it is?"),
        R(lambda case: case.padding > 1e-4, PADDING, "Does cross-attention get `real`, as it is?"),
        R(lambda case: gap(case, "output") > 1e-4, OFF, "Line by line: which norm, which x, which sublayer, and what it's "
          "added to."),
        *reaches("x", "memory"),
    ),
    hints=(
        "Two lines are those of notebook 07: x = x + f(norm(x)). The new one stands between them.",
        "self_attention(norm_1(x), causal) is what the words so far say to one another. Add it to x.",
        "x = x + cross_attention(norm_2(x), memory, real)",
    ),
)

# ---------------------------------------------------------------- 17.8 one step of a beam

def beam_step(totals, log_p, k):
    vocab = log_p.shape[1]
    sums = totals[:, None] + log_p                                         # (beginnings, vocab)
    best = sums.flatten().topk(k)
    return best.values, best.indices // vocab, best.indices % vocab


def _step(score=lambda totals, log_p: totals[:, None] + log_p, value=None, largest=True, base=lambda log_p: log_p.shape[1],
          results=lambda values, rows, words: (values, rows, words)):
    """The step with another score to choose by, another value to return, or other places."""
    def step(totals, log_p, k):
        scores = score(totals, log_p)
        best = scores.flatten().topk(k, largest=largest)
        values = best.values if value is None else value(totals, log_p).flatten()[best.indices]
        return results(values, best.indices // base(log_p), best.indices % base(log_p))
    return step


def _best_of_each(totals, log_p, k):
    """Each beginning goes on with its own best word."""
    words = log_p.argmax(dim=1)
    sums = totals + log_p.amax(dim=1)
    best = sums.topk(min(k, len(sums)))
    return best.values, best.indices, words[best.indices]


def _best_beginning(totals, log_p, k):
    """Only the best beginning goes on."""
    row = int(totals.argmax())
    best = log_p[row].topk(min(k, log_p.shape[1]))
    return totals[row] + best.values, torch.full_like(best.indices, row), best.indices


def _k_of_each(totals, log_p, k):
    """The k best words of every beginning."""
    best = (totals[:, None] + log_p).topk(min(k, log_p.shape[1]), dim=1)
    rows = torch.arange(len(totals))[:, None].expand_as(best.indices)
    return best.values.flatten(), rows.flatten(), best.indices.flatten()


def step_probes(generator: torch.Generator) -> list[tuple]:
    """(totals, log_p, k): three beginnings; a first step, with one; the best two from one beginning; long texts, whose
    probabilities are 0 in any float; words that are forbidden; one candidate; more candidates than beginnings."""
    def draw(beginnings, vocab, k, low=0.0, spread=1.0):
        totals = low - spread * torch.rand(beginnings, generator=generator).sort().values * 3
        log_p = (1.5 * torch.randn(beginnings, vocab, generator=generator)).log_softmax(dim=1)
        return totals, log_p, k

    same = draw(3, 6, 2)
    same[1][1] = torch.tensor([0.02, 0.46, 0.02, 0.45, 0.03, 0.02]).log()
    same[0].copy_(torch.tensor([-2.9, -0.3, -3.1]))
    forbidden = draw(2, 7, 3)
    forbidden[1][:, :2] = -math.inf
    late = draw(4, 5, 3, low=-900.0)
    late[0].copy_(torch.tensor([-904.1, -900.2, -902.5, -900.9]))
    mixed = draw(3, 5, 3)
    mixed[0].copy_(torch.tensor([-4.2, -1.1, -2.0]))
    return [draw(3, 7, 3), draw(1, 9, 4), same, late, forbidden, mixed, draw(4, 6, 1), draw(2, 8, 5)]


def observe_step(function, totals, log_p, k):
    """The three results by name."""
    output = function(totals.clone(), log_p.clone(), k)
    if output is None:
        return None
    names = ("totals", "rows", "words")
    if isinstance(output, dict) and set(output) == set(names):
        output = [output[name] for name in names]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"{len(output)} results" if isinstance(output, (tuple, list)) else what(output)
        raise TypeError(f"expected three results, totals, rows and words, got {got}")
    return {name: one_tensor(part, name).flatten().float() for name, part in zip(names, output)}


def _kept(case: Case) -> str:
    """The first candidate that's another than it should be."""
    if case.rows.shape != case.right["rows"].shape or case.words.shape != case.rows.shape:
        return _how_many_kept(case)
    off = ((case.rows != case.right["rows"]) | (case.words != case.right["words"])).nonzero()
    if not len(off):
        return _totals_off(case)
    i = int(off[0])
    return (f"your candidate {i}, counted from 0, is beginning {case.rows[i]:.0f} with word {case.words[i]:.0f}, expected "
            f"{case.right['rows'][i]:.0f} with word {case.right['words'][i]:.0f}.")


def _totals_off(case: Case) -> str:
    if case.totals.shape != case.right["totals"].shape:
        return _how_many_kept(case)
    i = int((case.totals - case.right["totals"]).abs().argmax())
    return f"the total of candidate {i} is {case.totals[i]:.3f}, expected {case.right['totals'][i]:.3f}."


def _how_many_kept(case: Case) -> str:
    return (f"you return {case.totals.numel()} totals, {case.rows.numel()} rows and {case.words.numel()} words; k is "
            f"{case.inputs[2]}.")


BEAM_STEP = ask(
    "17.8", beam_step, probes=step_probes, observe=observe_step,
    signature="beam_step(totals (beginnings,), log_p (beginnings, vocab), k) -> totals (k,), rows (k,), words (k,)",
    not_finite={"-inf": "Either a forbidden word was chosen, or a probability was rounded to 0 before its logarithm was "
                "taken: add the logarithms, and never leave them.", "NaN": "Minus infinity minus minus infinity, or 0 times "
                "infinity, isn't a number. Only one sum is needed: totals[:, None] + log_p.",
                "inf": "A probability was rounded to 0, and minus its logarithm is infinite. Add the logarithms, and never "
                "leave them."},
    mistakes={
        "totals-forgotten": M(_step(lambda totals, log_p: log_p.clone()), _kept, "Only the last word's ln p counts in "
                                                                                 "yours, so "
                              "a good word after a bad beginning wins. Add the beginning's total."),
        "chosen-by-the-word": M(_step(lambda totals, log_p: log_p.clone(), lambda totals, log_p: totals[:, None] + log_p),
                                _kept, "Your totals are added up rightly, but the candidates were chosen before that, by "
                                       "the "
                                "last word alone. Add first, then choose."),
        "best-of-each": M(_best_of_each, _kept, "Each beginning goes on with its own best word. Two continuations of one "
                          "beginning may both be better: let all of them compete at once."),
        "best-beginning": M(_best_beginning, _kept, "Only the best beginning goes on. Then a beam is no better than greedy: "
                            "all beginnings compete."),
        "k-of-each": M(_k_of_each, _how_many_kept, "You keep the k best of every beginning. They'd multiply with each "
                                                   "step: keep "
                       "k in all."),
        "multiplied": M(_step(lambda totals, log_p: totals[:, None] * log_p), _kept, "You multiply logarithms. The "
                        "probabilities are multiplied, so their logarithms are added."),
        "probabilities-added": M(_step(lambda totals, log_p: (totals.double().exp()[:, None] + log_p.double().exp()).log()),
                                 _kept, "You add probabilities. That a text begins like this *and* goes on like that takes "
                                 "their product: add the logarithms."),
        "probabilities": M(_step(lambda totals, log_p: (totals[:, None] + log_p).exp()), _totals_off, "You return "
                           "probabilities. Of a long text they're 0 in any float, and every candidate is equal: stay with "
                           "the "
                           "logarithms."),
        "exchanged": M(_step(results=lambda values, rows, words: (values, words, rows)), _kept, "Rows and words have "
            "changed "
                       "places. Divided by the vocabulary, the place in the flat list gives the row, and what remains the "
                       "word."),
        "divided-by-the-rows": M(_step(base=len), _kept, "You divide by the number of beginnings. In the flat list, each "
                                                         "row "
                                 "takes as many places as the vocabulary has words."),
        "flat-places": M(lambda totals, log_p, k: (*beam_step(totals, log_p, k)[:2],
                                                   (totals[:, None] + log_p).flatten().topk(k).indices), _kept, "Your words "
                         "are places in the flat list. What remains after dividing by the vocabulary is the word."),
        "lowest": M(_step(largest=False), _kept, "You keep the lowest sums. The highest ln p is the most probable."),
        "worst-first": M(lambda *inputs: tuple(part.flip(0) for part in beam_step(*inputs)), _kept, "They're the right "
            "ones, "
                         "in the wrong order: best first."),
        "averaged": M(_step(value=lambda totals, log_p: (totals[:, None] + log_p) / 2), _totals_off, "You take the mean "
            "of the "
                      "two. A total is a sum: the length is dealt with at the end, by the penalty."),
        "old-totals": M(_step(value=lambda totals, log_p: totals[:, None].expand_as(log_p)), _totals_off, "The candidates "
            "are "
                        "right, but you return the totals from before the step. The new word's ln p has to be in them."),
        "new-alone": M(_step(value=lambda totals, log_p: log_p), _totals_off, "The candidates are right, but the totals "
                                                                              "that "
                       "you return are the new words' ln p alone. The next step would forget the beginnings."),
    },
    rules=(
        R(lambda case: any(case.got[name].shape != case.right[name].shape for name in case.right), _how_many_kept,
          "Return k of each."),
        R(lambda case: (case.rows != case.right["rows"]).any() or (case.words != case.right["words"]).any(), _kept, "Every "
          "beginning with every word competes, by the sum of the two ln p. The k best sums win, best first."),
        R(lambda case: gap(case, "totals") > 1e-3, _totals_off, "The candidates are right. A total is the beginning's "
                                                                "plus the "
          "new word's ln p."),
    ),
    hints=(
        "A table with a row for each beginning and a column for each word holds all candidates. What stands in its cells?",
        "sums = totals[:, None] + log_p, and sums.flatten().topk(k) finds the best k, with their places in the flat list.",
        "rows = places // log_p.shape[1] and words = places % log_p.shape[1]",
    ),
)

# ---------------------------------------------------------------- 17.9 three models of one block

def three_models(block, source, target, real):
    causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
    padding = real[:, None]                                                # (batch, 1, source)
    read = block(source, padding)
    continued = block(target, causal)
    translated = block(target, causal, read, padding)
    return read, continued, translated


class _OneBlock:
    """Attention around, attention across if there's a memory, and a feed-forward layer; without norms."""

    def __init__(self, d: int, generator: torch.Generator):
        self.around, self.across, self.concludes = _LooksAround(d, generator), _Looks(d, generator), _Concludes(d, generator)

    def __call__(self, x, mask=None, memory=None, memory_mask=None):
        x = x + self.around(x, mask)
        if memory is not None:
            x = x + self.across(x, memory, memory_mask)
        return x + self.concludes(x)


def models_probes(generator: torch.Generator) -> list[tuple]:
    """(block, source, target, real): equally long sides, so that exchanged ones run; a longer source; a longer target;
    padding in front."""
    def probe(batch, source, target, d, lengths, first=False):
        real = torch.arange(source) < torch.tensor(lengths)[:, None]
        return (_OneBlock(d, generator), torch.randn(batch, source, d, generator=generator),
                torch.randn(batch, target, d, generator=generator), real.flip(1) if first else real)

    return [probe(2, 5, 5, 6, [5, 3]), probe(3, 6, 4, 5, [2, 6, 4]), probe(2, 3, 7, 4, [3, 2]),
            probe(1, 4, 3, 5, [2], first=True)]


def observe_models(function, block, source, target, real):
    """The three results by name; what stands in the rows of padding that were read is nobody's business."""
    output = function(block, source, target, real)
    if output is None:
        return None
    names = ("read", "continued", "translated")
    if isinstance(output, dict) and set(output) == set(names):
        output = [output[name] for name in names]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"{len(output)} results" if isinstance(output, (tuple, list)) else what(output)
        raise TypeError(f"expected three results, read, continued and translated, got {got}")
    found = {name: one_tensor(part, name) for name, part in zip(names, output)}
    if found["read"].shape == source.shape:
        found["read"] = torch.where(real[..., None], found["read"], 0.0)
    return found


def _models(read=None, continued=None, translated=None, results=lambda *three: three):
    """The three models with one of them changed; each gets block, source, target, causal, padding and what was read."""
    def answer(block, source, target, real):
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
        padding = real[:, None]
        first = (read or (lambda b, s, t, c, p, r: b(s, p)))(block, source, target, causal, padding, None)
        others = (block, source, target, causal, padding, first)
        second = (continued or (lambda b, s, t, c, p, r: b(t, c)))(*others)
        third = (translated or (lambda b, s, t, c, p, r: b(t, c, r, p)))(*others)
        return results(first, second, third)
    return answer


def _squares(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)


def _row_off(case: Case, part: str) -> str:
    """Where a result is off, by its largest difference."""
    if case.got[part].shape != case.right[part].shape:
        return f"`{part}` has the shape {tuple(case.got[part].shape)}, expected {tuple(case.right[part].shape)}."
    return f"`{part}` is off by up to {gap(case, part):.3f}."


READ, CONTINUED, TRANSLATED = (lambda case, part=part: _row_off(case, part) for part in ("read", "continued", "translated"))

THREE_MODELS = ask(
    "17.9", three_models, probes=models_probes, observe=observe_models,
    signature="three_models(block, source (batch, source, d_model), target (batch, target, d_model), real (batch, "
              "source)) -> "
    "read (batch, source, d_model), continued, translated (batch, target, d_model)",
    mistakes={
        "causal-encoder": M(_models(read=lambda b, s, t, c, p, r: b(s, _squares(s).tril() & p)), READ, "Your encoder has a "
                            "causal mask. The whole source is there, so each word may look both ways: only padding is "
                            "hidden."),
        "encoder-sees-padding": M(_models(read=lambda b, s, t, c, p, r: b(s, _squares(s))), READ, "Your encoder sees the "
                                  "padding. `real` says which words there are."),
        "memory-sees-padding": M(_models(translated=lambda b, s, t, c, p, r: b(t, c, r)), TRANSLATED, "Cross-attention "
            "has no "
                                 "mask, so it sees the source's padding: the block's fourth input."),
        "padding-seen-twice": M(_models(read=lambda b, s, t, c, p, r: b(s, _squares(s)),
                                        translated=lambda b, s, t, c, p, r: b(t, c, r)), READ, "`real` isn't used, so the "
                                "source's padding is read as if it were words."),
        "sees-ahead": M(_models(continued=lambda b, s, t, c, p, r: b(t, _squares(t)),
                                translated=lambda b, s, t, c, p, r: b(t, _squares(t), r, p)), CONTINUED, "Both decoders see "
                        "words that aren't written yet. They need the causal mask."),
        "continued-sees-ahead": M(_models(continued=lambda b, s, t, c, p, r: b(t, _squares(t))), CONTINUED,
            "The decoder-only "
                                  "model sees words that aren't written yet. It needs the causal mask."),
        "translated-sees-ahead": M(_models(translated=lambda b, s, t, c, p, r: b(t, _squares(t), r, p)), TRANSLATED, "The "
                                   "decoder of the third model sees words that aren't written yet. It has a memory, and "
                                   "still "
                                   "it needs the causal mask."),
        "upside-down": M(_models(continued=lambda b, s, t, c, p, r: b(t, c.T),
                                 translated=lambda b, s, t, c, p, r: b(t, c.T, r, p)), CONTINUED, "Your causal mask is "
                                     "turned "
                         "round: each word sees itself and what comes after it."),
        "not-itself": M(_models(continued=lambda b, s, t, c, p, r: b(t, c.tril(-1)),
                                translated=lambda b, s, t, c, p, r: b(t, c.tril(-1), r, p)), CONTINUED, "A word may not "
                                    "look "
                        "at itself in yours. It has been written: only what comes after it is hidden."),
        "source-not-read": M(_models(translated=lambda b, s, t, c, p, r: b(t, c, s, p)), TRANSLATED, "The memory is the "
            "bare "
                             "source. It's what the encoder made of it: `read`."),
        "no-memory": M(_models(translated=lambda b, s, t, c, p, r: b(t, c)), TRANSLATED, "The third model has no memory, "
                                                                                         "so it "
                       "writes without having read anything. That's the second model again."),
        "always-a-memory": M(_models(continued=lambda b, s, t, c, p, r: b(t, c, r, p)), CONTINUED, "The second model has a "
                             "memory. A decoder-only model has nothing but the text so far."),
        "continued-goes-in": M(_models(translated=lambda b, s, t, c, p, r: b(b(t, c), c, r, p)), TRANSLATED, "The third "
            "model "
                               "gets what the second made. Both start from the target."),
        "causal-across": M(_models(translated=lambda b, s, t, c, p, r: b(t, c, r, p & torch.ones(
            t.shape[1], s.shape[1], dtype=torch.bool).tril())), TRANSLATED, "Cross-attention is causal in yours. The whole "
                           "source was there from the start: only its padding is hidden."),
        "inverted": M(
            _models(read=lambda b, s, t, c, p, r: b(s, ~p), translated=lambda b, s, t, c, p, r: b(t, c, r, ~p)), READ,
            "Your masks let the padding be seen, and hide the words. True means may look here, as in the whole course; in "
            "nn.Transformer's padding masks it means the opposite."),
        "last-two-exchanged": M(
            _models(results=lambda read, continued, translated: (read, translated, continued)), CONTINUED, "The last two "
            "results have changed places: the text that just goes on comes second."),
        "first-two-exchanged": M(_models(results=lambda read, continued, translated: (continued, read, translated)), READ,
                                 "The first two results have changed places: what was read comes first."),
    },
    rules=(
        R(lambda case: case.got["read"].shape != case.right["read"].shape or gap(case, "read") > 1e-4, READ, "The encoder: "
          "block(source, …) with a mask that hides the source's padding, and no memory."),
        R(lambda case: case.continued.shape != case.right["continued"].shape or gap(case, "continued") > 1e-4, CONTINUED,
          "Decoder-only: block(target, …) with the causal mask, and no memory."),
        R(lambda case: case.translated.shape != case.right["translated"].shape or gap(case, "translated") > 1e-4, TRANSLATED,
          "Encoder–decoder: the target under the causal mask, with `read` as the memory, whose padding is hidden."),
    ),
    hints=(
        "Three calls of block. Which text goes in, which mask, and is there a memory?",
        "real[:, None] has the shape (batch, 1, source): the same columns for every row. causal_mask(n) is notebook 04's.",
        "translated = block(target, causal, read, real[:, None])",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: shape-of-cross
  taught: "17"
  question: A source of 9 words, a decoder that has read 5. What's the shape of one head's cross-attention weights,
    and what does it hide?
  options:
    - text: (9, 5), and everything above the diagonal.
      remark: A row belongs to whoever asks, and the decoder's words ask. Nothing in the source lies in the future.
    - text: (5, 9), and nothing but the source's padding.
      right: true
      remark: A row for each word that the decoder has read, a column for each source word. The whole source was there
        from the start.
    - text: (5, 9), and everything above the diagonal, as in the decoder's self-attention, so that no word is seen too
        early.
      remark: The causal mask hides words that haven't been written yet. The source isn't written by anybody; it's
        read as a whole.
- name: wonderful-loss
  taught: "17"
  question: A new translation model has a training loss of 0.02 after one epoch, and a validation loss of 0.02 as
    well. Its translations are nonsense. What do you look at first?
  options:
    - text: The size of the training set, because the model has learned it by heart.
      remark: Then the validation loss would be high. Here it's as low as the other one.
    - text: The beam, because a search that's too narrow spoils good models.
      remark: A narrow beam costs a few points. It doesn't turn good sentences into nonsense.
    - text: The decoder's mask and the shift of its targets.
      right: true
      remark: Validation is computed with teacher forcing, too, so a leak makes both losses wonderful. When the model
        writes, the word that it used to look up isn't there.
- name: what-is-cached
  taught: "17"
  question: The package's decoder, with a cache, writes its 30th word. Which keys and values does it compute at this step?
  options:
    - text: In each layer, those of one new word, for self-attention.
      right: true
      remark: The other 29 are in the cache, and the memory's were computed once, before the first word.
    - text: In each layer, those of the new word and those of all source words.
      remark: The source words don't change while the model writes. Their keys and values are computed before the
        first step.
    - text: None at all, because a cache is there so that nothing has to be computed.
      remark: The new word is new. Its key and value have to be computed, or later words couldn't look at it.
- name: two-scores
  taught: "17"
  question: A paper reports 41.2 BLEU, your model has 38.9 on the same test set. You used sacrebleu's 13a, and the
    paper doesn't say what it used. What follows?
  options:
    - text: That the paper's model is better, since both are BLEU on the same sentences.
      remark: The same translations can differ by several points when they're split into other tokens, or lower-cased.
    - text: That your model would win if you turned on a beam, which brings about two points.
      remark: Perhaps it would have more points. But you still wouldn't know what the other number counts.
    - text: Nothing yet. Without the signature the two numbers may count different things.
      right: true
      remark: Score their output with your settings, or yours with theirs. A signature would have told you which.
- name: alpha-zero
  taught: "17"
  question: Somebody doubles the beam from 5 to 10, with alpha = 0. BLEU falls, and the translations get shorter. Why?
  options:
    - text: Without a length penalty short translations have the higher probability, and a wider beam finds more of
        them.
      right: true
      remark: The narrower beam never met them. A better search for the wrong goal makes things worse; a length
        penalty changes the goal.
    - text: A wider beam cuts translations off earlier, since all candidates share one limit on the number of words.
      remark: The limit is the same for each candidate, however many there are.
    - text: The model was trained with label smoothing for a beam of 5.
      remark: Training knows nothing of the beam.
- name: gradient-of-softmax
  taught: "00"
  question: With label smoothing, the lowest loss is reached where the model's probabilities equal the smoothed
    target. What's the gradient with respect to the logits there?
  options:
    - text: The same as for plain cross-entropy, because the right word is the same.
      remark: The gradient is the model's probabilities minus the target, and the target has changed.
    - text: Zero, since it's the model's probabilities minus the target.
      right: true
      remark: That's so for any target that sums to one. With a hard target the two never become equal, so the
        gradient never vanishes.
    - text: Smoothing divided by the size of the vocabulary, for every word.
      remark: That's what the smoothed target gives to a wrong word. The gradient is the difference from it.
"""

WARM_UP = """
- name: where-it-looks-back
  taught: "16"
  question: A recurrent decoder with attention writes the tenth French word. What are its attention weights spread over?
  options:
    - text: The nine French words that it has written itself, up to this step.
      remark: Those are in its state. The weights say which words of the source it fetches something from.
    - text: The English words, which the encoder has read.
      right: true
      remark: A weight for each source word, new at every step. This notebook keeps that and drops the recurrence.
    - text: The whole French vocabulary.
      remark: That's where the probabilities of the next word are. They come after attention.
- name: cache-of-what
  taught: "13"
  question: A language model with a key/value cache reads its 30th token. What does it have to compute for the 29 before it?
  options:
    - text: Nothing; their keys and values are kept.
      right: true
      remark: Nothing else of them is needed. Under the causal mask no earlier row can change. Section 4 uses such a cache.
    - text: Their attention, since a new token changes what they look at.
      remark: They may not look at it. That's what the causal mask is for.
    - text: Their keys alone.
      remark: The new token fetches their values as well. Both are kept.
- name: two-lines-of-a-block
  taught: "07"
  question: Which two lines are a pre-norm block?
  options:
    - text: "x = norm(x + attention(x)), and the same with the feed-forward layer"
      remark: The norms come after the sums there. That's post-norm.
    - text: "x = attention(norm(x)), and the same with the feed-forward layer"
      remark: Nothing of x would be left. Each sublayer only adds something.
    - text: "x = x + attention(norm(x)), and the same with the feed-forward layer"
      right: true
      remark: A sublayer reads a normalized copy, and its change is added. You'll put a third line between these two.
"""
