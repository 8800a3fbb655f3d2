"""The course's answers to the exercises of notebook 14, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 14.1


def hide_words(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)         # a new tensor
    swapped = chosen & (fate >= 0.8) & (fate < 0.9)
    return torch.where(swapped, others, inputs)


def _hidden(hide=lambda fate: fate < 0.8, swap=lambda fate: (fate >= 0.8) & (fate < 0.9), only_chosen=True, put_mask=True,
            put_others=True):
    """Hiding with one of its parts changed."""
    def answer(token_ids, chosen, fate, others, mask_id):
        chosen = chosen if only_chosen else torch.ones_like(chosen)
        inputs = token_ids.masked_fill(chosen & hide(fate), mask_id) if put_mask else token_ids
        return torch.where(chosen & swap(fate), others, inputs) if put_others else inputs
    return answer


HIDE = Answers(
    hide_words,
    mutants={
        "mask-never-put-in": _hidden(put_mask=False),
        "always-the-mask": _hidden(hide=lambda fate: fate < 2, put_others=False),
        "never-swapped": _hidden(put_others=False),
        "swapped-for-good": _hidden(swap=lambda fate: fate >= 0.8),
        "swapped-at-the-end": _hidden(swap=lambda fate: fate >= 0.9),
        "swapped-below-nine-tenths": _hidden(swap=lambda fate: fate < 0.9),
        "all-tokens": _hidden(only_chosen=False),
        "not-the-chosen": lambda ids, chosen, fate, others, mask_id: hide_words(ids, ~chosen, fate, others, mask_id),
        "wrong-way-round": _hidden(hide=lambda fate: fate >= 0.2, swap=lambda fate: (fate >= 0.1) & (fate < 0.2)),
        "fifteen-per-cent-again": _hidden(hide=lambda fate: fate < 0.15, swap=lambda fate: (fate >= 0.8) & (fate < 0.9)),
        "zero-for-the-mask": lambda ids, chosen, fate, others, mask_id: hide_words(ids, chosen, fate, others, 0),
    },
)

# ---------------------------------------------------------------- 14.2


def cut_into_pieces(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):                            # the longest first
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


def _cut(order=lambda start, size: range(size, start, -1), prefix=lambda start: "##" if start else "",
         at_dead_end=lambda pieces, word, start: (["[UNK]"], None)):
    """Cutting with one of its parts changed; `at_dead_end` gives the pieces and where to go on, or None to stop."""
    def answer(word, vocabulary):
        pieces, start = [], 0
        while start is not None and start < len(word):
            found = next((end for end in order(start, len(word)) if prefix(start) + word[start:end] in vocabulary), None)
            if found is None:
                pieces, start = at_dead_end(pieces, word, start)
            else:
                pieces, start = [*pieces, prefix(start) + word[start:found]], found
        return pieces
    return answer


def _signs_counted(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        ends = range(len(word), start, -1)
        piece = next((piece for end in ends if (piece := "##" * (start > 0) + word[start:end]) in vocabulary), None)
        if piece is None:
            return ["[UNK]"]
        pieces.append(piece)
        start += len(piece)
    return pieces


def _with_going_back(word, vocabulary, start=0):
    for end in range(len(word), start, -1):
        piece = ("##" if start else "") + word[start:end]
        if piece in vocabulary:
            rest = _with_going_back(word, vocabulary, end) if end < len(word) else []
            if rest != ["[UNK]"]:
                return [piece, *rest]
    return ["[UNK]"]


def _longest_anywhere(word, vocabulary):
    def cut(start, end):
        spans = [(end_of - size, end_of) for size in range(end - start, 0, -1) for end_of in range(start + size, end + 1)]
        found = next(((i, j) for i, j in spans if "##" * (i > 0) + word[i:j] in vocabulary), None)
        if found is None:
            return [] if start == end else ["[UNK]"]
        return [*cut(start, found[0]), "##" * (found[0] > 0) + word[found[0]:found[1]], *cut(found[1], end)]
    pieces = cut(0, len(word))
    return ["[UNK]"] if "[UNK]" in pieces else pieces


def _from_the_right(word, vocabulary):
    pieces, end = [], len(word)
    while end > 0:
        found = next((start for start in range(end) if ("##" if start else "") + word[start:end] in vocabulary), None)
        if found is None:
            return ["[UNK]"]
        pieces.insert(0, ("##" if found else "") + word[found:end])
        end = found
    return pieces


PIECES = Answers(
    cut_into_pieces,
    mutants={
        "shortest-first": _cut(order=lambda start, size: range(start + 1, size + 1)),
        "no-signs": _cut(prefix=lambda start: ""),
        "signs-looked-up-and-lost": lambda word, vocabulary: [
            piece.removeprefix("##") for piece in cut_into_pieces(word, vocabulary)],
        "signs-always": _cut(prefix=lambda start: "##"),
        "the-rest-is-unknown": _cut(at_dead_end=lambda pieces, word, start: ([*pieces, "[UNK]"], None)),
        "letter-by-letter-unknown": _cut(at_dead_end=lambda pieces, word, start: ([*pieces, "[UNK]"], start + 1)),
        "beginning-kept": _cut(at_dead_end=lambda pieces, word, start: (pieces or ["[UNK]"], None)),
        "nothing-for-unknown": _cut(at_dead_end=lambda pieces, word, start: ([], None)),
        "goes-back": _with_going_back,
        "from-the-right": _from_the_right,
        "longest-anywhere": _longest_anywhere,
        "signs-counted": _signs_counted,
        "letters-appended": lambda word, vocabulary: [
            part for piece in cut_into_pieces(word, vocabulary) for part in ([piece] if piece == "[UNK]" else piece)],
        "last-letter-left-out": _cut(order=lambda start, size: range(size - 1 if size - start > 1 else size, start, -1)),
    },
)

# ---------------------------------------------------------------- 14.3


def hidden_word_loss(logits, token_ids, chosen):
    if not chosen.any():
        return logits.sum() * 0.0
    return F.cross_entropy(logits[chosen], token_ids[chosen])


def _each(logits, token_ids):
    return -logits.log_softmax(-1).gather(-1, token_ids[..., None])[..., 0]


def _softmax_over(dim):
    def answer(logits, token_ids, chosen):
        each = logits.log_softmax(dim).gather(-1, token_ids[..., None])[..., 0]
        return -(each * chosen).sum() / chosen.sum().clamp(min=1)
    return answer


def _picked(how):
    """`how(logits, ids)` of the chosen positions; 0 where there are none."""
    return lambda logits, ids, chosen: how(logits[chosen], ids[chosen]) if chosen.any() else logits.sum() * 0


def _picked_whole(how):
    """`how(logits, targets)` of whole texts, where what isn't asked for is -100; 0 where nothing is."""
    return lambda logits, ids, chosen: how(logits, ids.masked_fill(~chosen, -100)) if chosen.any() else logits.sum() * 0


def _row_means_with_zeros(logits, token_ids, chosen):
    return ((_each(logits, token_ids) * chosen).sum(dim=1) / chosen.sum(dim=1).clamp(min=1)).mean()


def _position_means(logits, token_ids, chosen):
    cost, count = (_each(logits, token_ids) * chosen).sum(dim=0), chosen.sum(dim=0)
    return (cost[count > 0] / count[count > 0]).mean() if chosen.any() else logits.sum() * 0


def _row_means(logits, token_ids, chosen):
    each = _each(logits, token_ids)
    rows = [row[picked].mean() for row, picked in zip(each, chosen) if picked.any()]
    return torch.stack(rows).mean() if rows else logits.sum() * 0


def _shifted(logits, token_ids, chosen):
    picked = chosen[:, 1:]
    return F.cross_entropy(logits[:, :-1][picked], token_ids[:, 1:][picked]) if picked.any() else logits.sum() * 0


LOSS = Answers(
    hidden_word_loss,
    mutants={
        "all-positions": lambda logits, ids, chosen: _each(logits, ids).mean(),
        "all-positions-but-none": lambda logits, ids, chosen: (
            _each(logits, ids).mean() if chosen.any() else logits.sum() * 0),
        "visible-as-zero-logits-but-none": lambda logits, ids, chosen: (
            _each(logits * chosen[..., None], ids).mean() if chosen.any() else logits.sum() * 0),
        "the-visible": lambda logits, ids, chosen: hidden_word_loss(logits, ids, ~chosen),
        "only-the-visible-kept": lambda logits, ids, chosen: (
            hidden_word_loss(logits, ids, ~chosen) if chosen.any() else logits.sum() * 0),
        "divided-by-all": lambda logits, ids, chosen: (_each(logits, ids) * chosen).sum() / chosen.numel(),
        "visible-as-zero-logits": lambda logits, ids, chosen: _each(logits * chosen[..., None], ids).mean(),
        "row-means": _row_means,
        "row-means-with-zeros": _row_means_with_zeros,
        "position-means": _position_means,
        "reshaped": _picked_whole(lambda logits, ids: F.cross_entropy(logits.reshape(
            len(logits), logits.shape[-1], -1), ids)),
        "summed": lambda logits, ids, chosen: (_each(logits, ids) * chosen).sum(),
        "shifted": _shifted,
        "no-minus": lambda logits, ids, chosen: -hidden_word_loss(logits, ids, chosen),
        "softmax-first": lambda logits, ids, chosen: hidden_word_loss(logits.softmax(-1), ids, chosen),
        "over-positions": lambda logits, ids, chosen: hidden_word_loss(logits.log_softmax(1), ids, chosen),
        "softmax-over-positions": _softmax_over(1),
        "softmax-over-the-batch": _softmax_over(0),
        "token-zero-left-out": lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen & (ids != 0)),
        "one-more-in-the-divisor": lambda logits, ids, chosen: (_each(logits, ids) * chosen).sum() / (chosen.sum() + 1),
        "log-of-the-mean": _picked(lambda scores, ids: -scores.softmax(-1)[torch.arange(len(ids)), ids].mean().log()),
        "nll-of-logits": _picked(lambda scores, ids: F.nll_loss(scores, ids)),
        "every-position-with-every-token": _picked(lambda scores, ids: -scores.log_softmax(-1)[:, ids].mean()),
        "nll-of-probabilities": _picked(lambda scores, ids: -scores.softmax(-1)[torch.arange(len(ids)), ids].mean()),
        "perplexity": lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen).exp(),
        "bits": lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen) / math.log(2),
        "cut-off": lambda logits, ids, chosen: hidden_word_loss(logits, ids, chosen).item(),
    },
)

# ---------------------------------------------------------------- 14.4


def layer_norm(x, weight, bias, eps):
    """As in notebook 07."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def second_half(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    inner = F.gelu(F.linear(x, expand, expand_bias))
    return layer_norm(x + F.linear(inner, contract, contract_bias), gain, shift, eps)


def _half(before=lambda x, norm: x, activation=F.gelu, after=lambda x, made, norm: norm(x + made), eps_is=None,
          norm_of=layer_norm):
    """The half of a block with one of its parts changed."""
    def answer(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
        def norm(y):
            return norm_of(y, gain, shift, eps if eps_is is None else eps_is)
        made = F.linear(activation(F.linear(before(x, norm), expand, expand_bias)), contract, contract_bias)
        return after(x, made, norm)
    return answer


def _one_less(x, gain, shift, eps):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps) * gain + shift


def _outside(x, gain, shift, eps):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + eps) * gain + shift


def _without_centring(x, gain, shift, eps):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps) * gain + shift


def _over_the_text(x, gain, shift, eps):
    centred = x - x.mean((-2, -1), keepdim=True)
    return centred / torch.sqrt((centred**2).mean((-2, -1), keepdim=True) + eps) * gain + shift


HALF = Answers(
    second_half,
    mutants={
        "pre-norm": _half(before=lambda x, norm: norm(x), after=lambda x, made, norm: x + made),
        "norm-twice": _half(before=lambda x, norm: norm(x)),
        "final-norm-twice": _half(after=lambda x, made, norm: norm(norm(x + made))),
        "norm-inside-the-sum": _half(after=lambda x, made, norm: x + norm(made)),
        "no-norm": _half(after=lambda x, made, norm: x + made),
        "no-residual": _half(after=lambda x, made, norm: norm(made)),
        "residual-after-the-norm": _half(after=lambda x, made, norm: norm(x + made) + x),
        "residual-of-the-normed": _half(before=lambda x, norm: norm(x), after=lambda x, made, norm: norm(norm(x) + made)),
        "norm-of-x-only": _half(after=lambda x, made, norm: norm(x) + made),
        "gelu-by-tanh": _half(activation=lambda y: F.gelu(y, approximate="tanh")),
        "relu": _half(activation=F.relu),
        "no-activation": _half(activation=lambda y: y),
        "eps-of-the-course": _half(eps_is=1e-5),
        "eps-of-the-paper": _half(eps_is=1e-12),
        "gain-and-shift-exchanged": _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, shift, gain, eps)),
        "shift-before-gain": _half(norm_of=lambda y, gain, shift, eps: (layer_norm(y, None, None, eps) + shift) * gain),
        "gain-and-shift-left-out": _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, None, None, eps)),
        "gain-left-out": _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, None, shift, eps)),
        "shift-left-out": _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, gain, None, eps)),
        "mean-left-in": _half(norm_of=_without_centring),
        "one-more-than-gain": _half(norm_of=lambda y, gain, shift, eps: layer_norm(y, 1 + gain, shift, eps)),
        "first-bias-left-out": lambda x, expand, expand_bias, *rest: second_half(
            x, expand, torch.zeros_like(expand_bias), *rest),
        "second-bias-left-out": lambda x, expand, expand_bias, contract, contract_bias, *norm: second_half(
            x, expand, expand_bias, contract, torch.zeros_like(contract_bias), *norm),
        "gelu-by-sigmoid": _half(activation=lambda y: y * torch.sigmoid(1.702 * y)),
        "silu": _half(activation=F.silu),
        "gelu-twice": _half(after=lambda x, made, norm: norm(x + F.gelu(made))),
        "norm-over-the-text": _half(norm_of=_over_the_text),
        "variance-by-one-less": _half(norm_of=_one_less),
        "eps-outside-the-root": _half(norm_of=_outside),
    },
)

# ---------------------------------------------------------------- 14.5


def pooled_logits(encoder, token_ids, attention_mask, weight, bias):
    x = encoder(token_ids, attention_mask)                                 # (batch, seq_len, d_model)
    real = attention_mask[..., None].to(x.dtype)                           # (batch, seq_len, 1)
    mean = (x * real).sum(dim=1) / real.sum(dim=1)                         # (batch, d_model)
    return mean @ weight.T + bias


def _mean(x, real):
    return (x * real).sum(1) / real.sum(1)


def _pooled(vector=_mean, after=lambda logits: logits, encoder_mask=lambda mask: mask):
    """Pooling with one of its parts changed; `real` is (batch, seq_len, 1)."""
    def answer(encoder, token_ids, attention_mask, weight, bias):
        x = encoder(token_ids, encoder_mask(attention_mask))
        return after(vector(x, attention_mask[..., None].to(x.dtype)) @ weight.T + bias)
    return answer


def _without_the_first(x, real):
    return (x * real)[:, 1:].sum(1) / real[:, 1:].sum(1).clamp(min=1)


def _first_vectors(x, real):
    return torch.stack([row[: int(n)].mean(0) for row, n in zip(x, real.sum((1, 2)))])


def _logits_first(encoder, token_ids, mask, weight, bias):
    scores = (encoder(token_ids, mask) * mask[..., None]) @ weight.T + bias
    return scores.sum(dim=1) / mask.sum(dim=1, keepdim=True)


POOL = Answers(
    pooled_logits,
    mutants={
        "no-mask-for-the-encoder": _pooled(encoder_mask=torch.ones_like),
        "no-mask-at-all": _pooled(lambda x, real: x.mean(1), encoder_mask=torch.ones_like),
        "padding-for-the-encoder": _pooled(encoder_mask=torch.logical_not),
        "no-mask": _pooled(lambda x, real: x.mean(1)),
        "mask-from-the-ids": lambda encoder, ids, mask, weight, bias: pooled_logits(encoder, ids, ids != 0, weight, bias),
        "the-encoder's-mask-from-the-ids": lambda encoder, ids, mask, weight, bias: (
            _mean(encoder(ids, ids != 0), mask[..., None].float()) @ weight.T + bias),
        "divided-by-all": _pooled(lambda x, real: (x * real).mean(1)),
        "summed": _pooled(lambda x, real: (x * real).sum(1)),
        "first-token": _pooled(lambda x, real: x[:, 0]),
        "last-token": _pooled(lambda x, real: x[torch.arange(len(x)), real.sum((1, 2)).long() - 1]),
        "largest": _pooled(lambda x, real: x.masked_fill(real == 0, -math.inf).amax(1)),
        "padding-alone": _pooled(lambda x, real: (x * (1 - real)).sum(1) / (1 - real).sum(1).clamp(min=1)),
        "whole-batch": _pooled(lambda x, real: ((x * real).sum((0, 1)) / real.sum()).expand(len(x), -1)),
        "no-bias": lambda *inputs: pooled_logits(*inputs[:4], 0 * inputs[4]),
        "probabilities": _pooled(after=lambda logits: logits.softmax(dim=-1)),
        "softmax-over-the-batch": _pooled(after=lambda logits: logits.softmax(dim=0)),
        "first-vectors": _pooled(_first_vectors),
        "one-divisor-for-all": _pooled(lambda x, real: (x * real).sum(1) / real.sum()),
        "one-more-in-the-divisor": _pooled(lambda x, real: (x * real).sum(1) / (real.sum(1) + 1)),
        "without-the-first": _pooled(_without_the_first),
        "tanh-of-the-mean": _pooled(lambda x, real: torch.tanh(_mean(x, real))),
        "unit-length": _pooled(lambda x, real: F.normalize(_mean(x, real), dim=-1)),
        "logits-averaged-with-padding": _logits_first,
    },
)

# ---------------------------------------------------------------- 14.6


def new_adapter(weight, rank):
    d_out, d_in = weight.shape
    down = torch.randn(rank, d_in) / d_in**0.5                             # so that x Dᵀ is about as large as x
    return down, torch.zeros(d_out, rank)                                  # nothing is changed


def _adapter(down=torch.randn, up=torch.zeros):
    return lambda weight, rank: (down(rank, weight.shape[1]), up(weight.shape[0], rank))


ADAPTER = Answers(
    new_adapter,
    mutants={
        "both-random": _adapter(up=torch.randn),
        "both-zero": _adapter(down=torch.zeros),
        "ones": _adapter(up=torch.ones, down=torch.ones),
        "all-rows-equal": _adapter(down=torch.ones),
        "turned": lambda weight, rank: (torch.randn(weight.shape[1], rank), torch.zeros(rank, weight.shape[0])),
        "up-first": lambda weight, rank: (torch.zeros(weight.shape[0], rank), torch.randn(rank, weight.shape[1])),
        "sizes-exchanged": lambda weight, rank: (torch.randn(rank, weight.shape[0]), torch.zeros(weight.shape[1], rank)),
    },
)

ANSWERS = (HIDE, PIECES, LOSS, HALF, POOL, ADAPTER)
