"""Exercises and quiz of notebook 13, a language model."""

import math
import re

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.compare import NotNumbers, named_tensors
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask
from course_utils.positional_encoding import RotaryPositions

from course_exercises.common import (
    EACH_MAXIMUM,
    gap,
    lengths_of_steps,
    loss_and_gradient,
    losses_as_tensors,
    losses_of_steps,
    mistakes_of_a_step,
    moved_by_steps,
    not_contiguous,
    one_tensor,
    put_back,
    two_results,
    what,
    whole_numbers,
    worst_row,
)

# ---------------------------------------------------------------- 13.1 the shift

def inputs_and_targets(token_ids):
    return token_ids[:, :-1], token_ids[:, 1:]                             # both (batch, seq_len - 1)

def shift_probes(generator: torch.Generator) -> list[tuple]:
    """Three texts of seven tokens, 0 among them; two of four; one of two; five of three."""
    probes = [(torch.randint(0, 50, size, generator=generator),) for size in ((3, 7), (2, 4), (1, 2), (5, 3))]
    probes[0][0][0, 1] = 0                                                 # an ordinary token
    return probes

def observe_shift(function, token_ids):
    """Inputs and targets as two tensors."""
    output = function(token_ids)
    if output is None:
        return None
    if isinstance(output, (torch.Tensor, np.ndarray)) and output.ndim == 3 and len(output) == 2:
        output = tuple(output)                                             # one above the other: they unpack rightly
    parts = dict(zip(("inputs", "targets"), two_results(output, "inputs", "targets")))
    for name, ids in parts.items():
        whole_numbers(ids, name, "Leave them as they came")
    return parts

def _ids(row: torch.Tensor) -> str:
    """The ids of a row, as far as a message needs them."""
    ids = [f"{number:.0f}" for number in row.flatten()[:4].tolist()]
    return ", ".join(ids) + (", …" if row.numel() > 4 else "")

def _rows(case: Case) -> str:
    """The inputs and targets of the text that is furthest off."""
    i = worst_row(case, "inputs", "targets")
    got = {name: part[i] if part.dim() > 1 and len(part) else part for name, part in case.got.items()}
    return f"of text {i}, counted from 0, your inputs are {_ids(got['inputs'])}, and its targets are {_ids(got['targets'])}."

def _lengths(case: Case) -> str:
    return (f"your inputs have the shape {tuple(case.got['inputs'].shape)} and your targets {tuple(case.targets.shape)}, "
            f"expected {tuple(case.right['inputs'].shape)} for both.")

def _last_target(case: Case) -> str:
    last, token_ids = case.targets.reshape(len(case.targets), -1)[:, -1], case.inputs[0]
    i = int((last - token_ids[:, -1]).abs().argmax()) if len(last) == len(token_ids) else 0
    return f"the last target of text {i}, counted from 0, is {last[i]:.0f}, and its last token is {token_ids[i, -1]}."

SHIFT = ask(
    "13.1", inputs_and_targets,
    probes=shift_probes,
    observe=observe_shift,
    signature="inputs_and_targets(token_ids (batch, seq_len)) -> inputs (batch, seq_len - 1), targets (batch, seq_len - 1)",
    mistakes={
        "not-shifted": M(
            lambda ids: (ids[:, :-1], ids[:, :-1]),
            _rows,
            "Each token is its own target. A model learns that by copying its input; the loss falls to nearly 0, and "
            "what it generates repeats one token."),
        "not-shifted-whole": M(
            lambda ids: (ids, ids),
            _rows,
            "Both are the text itself. Some libraries want that and shift inside the model, but `LanguageModel` doesn't: "
            "here a model would learn to copy."),
        "wrong-way": M(
            lambda ids: (ids[:, 1:], ids[:, :-1]),
            _rows,
            "That asks each position for the token before it, which the model has already read. Inputs and targets have "
            "changed places."),
        "wrapped": M(
            lambda ids: (ids, ids.roll(-1, dims=1)),
            _last_target,
            "roll() brings the first token round to the end, so the last position is asked for the first token of its "
            "own text. Nothing follows the last token: cut instead."),
        "wrapped-backwards": M(
            lambda ids: (ids, ids.roll(1, dims=1)),
            _rows,
            "roll() by +1 moves the text to the right: each position is asked for the token before it, and the first for "
            "the last one."),
        "inputs-whole": M(
            lambda ids: (ids, ids[:, 1:]),
            _lengths,
            "The targets are right. The last token has no successor here, so it can't be an input: cut it off."),
        "targets-whole": M(
            lambda ids: (ids[:, :-1], ids),
            _lengths,
            "The inputs are right. The first token is never predicted, since nothing comes before it: it can't be a "
            "target."),
        "two-on": M(
            lambda ids: (ids[:, :-2], ids[:, 2:]),
            _rows,
            "The targets are two tokens ahead. The inputs end one token too early, and the targets begin one too late."),
        "over-texts": M(
            lambda ids: (ids[:-1], ids[1:]),
            _lengths,
            "You shift along the first dimension, from text to text. Tokens follow one another along the second: [:, …]."),
        "only-the-last": M(
            lambda ids: (ids[:, :-1], ids[:, -1]),
            _lengths,
            "Only the last token of each text is asked for. A causal model answers at every position at once, so each "
            "one gets its own target."),
        "padded": M(
            lambda ids: (ids, F.pad(ids[:, 1:], (0, 1))),
            _last_target,
            "To keep the length you filled up with 0 at the end. 0 is an id like any other, and the model would learn to "
            "predict it after every text. Cut the last input off instead."),
        "marked": M(
            lambda ids: (ids, F.pad(ids[:, 1:], (0, 1), value=-100)),
            _lengths,
            "Your last target is -100, which cross_entropy skips. That works in many libraries, but here both parts are "
            "one token shorter than the text.",
            convention=True),
    },
    rules=(
        R(
            lambda case: not torch.equal(case.got["inputs"], case.right["inputs"]),
            _rows,
            "The inputs are the text without its last token, in the same order, and nothing else is changed."),
        R(
            lambda case: not torch.equal(case.targets, case.right["targets"]),
            _rows,
            "The inputs are right. Under each of them belongs the token that follows it in the text."),
    ),
    hints=(
        "Write the text 5, 9, 2, 7 on paper. What is the model given first, and what must it answer? What comes last?",
        "From four tokens come three pairs: (5, 9), (9, 2), (2, 7). Read the first numbers of the pairs, then the second.",
        "return token_ids[:, :-1], token_ids[:, 1:]",
    ),
)

# ---------------------------------------------------------------- 13.2 the causal loss

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

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Ragged texts; a pad_id that isn't 0, in front of each text too, and once in the middle; a model that is sure of each
    next token and right, with a text of which nothing is asked; all logits equal; logits too
    large for exp; one answer of two tokens; positions whose logits are 200 above and below those of others; a
    vocabulary most of which doesn't occur, with a large pad_id."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ragged = torch.randint(1, 7, (3, 5), generator=generator) * (torch.arange(5) < torch.tensor([[5], [3], [2]]))
    separated = torch.randint(0, 3, (2, 6), generator=generator)
    separated[:, 0] = separated[1, 4:] = 3
    separated[0, 2], separated[0, 3] = 0, 3                                # 0 is an ordinary token here
    sure_ids = torch.tensor([[2, 4, 1, 3], [1, 2, 0, 0], [3, 0, 0, 0]])
    sure = 30.0 * F.one_hot(sure_ids.roll(-1, dims=1), 5)
    sure[1, 1:], sure[2], sure[:, -1] = draw(3, 5), draw(4, 5), draw(3, 5)  # what padding and a last token say doesn't count
    large = torch.tensor([[[150.0, -150.0, 0.0], [0.0, 150.0, -150.0], [3.0, 2.0, 1.0]]])
    many = torch.randint(9, (2, 5), generator=generator)
    many[0, 4] = 700
    return [(2 * draw(3, 5, 7), ragged, 0), (*not_contiguous((draw(2, 6, 4).double(),)), separated, 3),
            (sure, sure_ids, 0), (torch.zeros(2, 3, 9), torch.randint(1, 9, (2, 3), generator=generator), 0),
            (large, torch.tensor([[2, 1, 1]]), 0), (draw(1, 2, 3), torch.tensor([[1, 2]]), 0),
            (draw(2, 4, 5) + 200.0 * torch.tensor([[[1], [-1], [0], [1]], [[-1], [0], [1], [-1]]]),
             torch.randint(1, 5, (2, 4), generator=generator), 0),
            (draw(2, 5, 1000), many, 700)]

def observe_loss(function, logits, token_ids, pad_id):
    """The loss, and the gradient that it sends to the logits; zeros if none, and if the loss isn't finite.

    Where cross_entropy stops because the logits aren't transposed, the loss is a text: how many targets each row has.
    """
    given, logits = logits, logits.detach().clone().requires_grad_()
    try:
        output = function(logits, token_ids, pad_id)
        put_back(given, logits)
    except RuntimeError as error:
        found = re.match(r"Expected target size \[\d+, (\d+)\], got \[\d+, (\d+)\]", str(error))
        if not found or int(found[1]) != logits.shape[-1]:
            raise
        return {"loss": found[2], "gradient for the logits": torch.zeros_like(logits)}
    if output is None:
        return None
    return loss_and_gradient(output, logits, "logits")

def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."

def _counted(case: Case) -> int:
    """How many answers count."""
    token_ids, pad_id = case.inputs[1:]
    return int((token_ids[:, 1:] != pad_id).sum())

def _of_answers(case: Case) -> str:
    every = case.inputs[1][:, 1:].numel()
    return f"{_loss_seen(case)} {_counted(case)} of the {every} answers are real tokens."

def _sure(case: Case) -> bool:
    return case.right["loss"] < 1e-3

def _is_level(case: Case) -> bool:
    return case.inputs[0].unique().numel() == 1

def _sizes(case: Case) -> str:
    return (f"cross_entropy takes the second dimension of your logits for the vocabulary. Yours has {case.loss} entries, "
            f"one for each position, and the vocabulary has {case.inputs[0].shape[-1]}.")

def _no_gradient(case: Case) -> str:
    return "the loss is right, but no gradient reaches the logits."

def _gradient_seen(case: Case) -> str:
    got, right = (named["gradient for the logits"].abs().max().item() for named in (case.got, case.right))
    return f"the loss is right, but the largest number of its gradient for the logits is {got:.3f}, expected {right:.3f}."

CAUSAL_LOSS = ask(
    "13.2", causal_loss,
    probes=loss_probes,
    observe=observe_loss,
    forbidden=("course_utils.language_model.next_token_loss",),
    signature="causal_loss(logits (batch, seq_len, vocab), token_ids (batch, seq_len), pad_id) -> mean loss in nats",
    not_finite={
        "inf": "A very small probability was rounded to 0 before its logarithm was taken, exp of a large logit overflowed, "
        "or your softmax runs over the positions (dim=1): use log_softmax over the vocabulary, the last dimension, or "
        f"cross_entropy on the logits. {EACH_MAXIMUM}",
        "-inf": "A very small probability was rounded to 0, and its logarithm is -inf; the loss is minus that. Use "
        f"log_softmax over the vocabulary, or cross_entropy on the logits. {EACH_MAXIMUM}",
        "NaN": "Either it's 0 divided by 0: do you take a mean of something in which no answer counts, such as one text? "
        f"Or exp of a large logit overflowed: use log_softmax, or cross_entropy on the logits. {EACH_MAXIMUM}"},
    mistakes={
        "not-shifted": M(
            _loss(pair=lambda logits, ids: (logits, ids)),
            _loss_seen,
            "Position i is compared with token i, which it has read. A model would learn to copy. It must be compared "
            "with token i + 1."),
        "not-shifted-cut": M(
            _loss(pair=lambda logits, ids: (logits[:, :-1], ids[:, :-1])),
            _loss_seen,
            "Logits and targets are both cut at the end, so position i is still compared with token i. The targets must "
            "lose their first token."),
        "wrong-way": M(
            _loss(pair=lambda logits, ids: (logits[:, 1:], ids[:, :-1])),
            _loss_seen,
            "The logits lose their first position and the targets their last: that asks each position for the token "
            "before it."),
        "shifted-twice": M(
            _loss(pair=lambda logits, ids: (logits[:, :-2], ids[:, 2:])),
            _loss_seen,
            "Each position is asked for the token after next. One shift is enough: has somebody else shifted already?"),
        "wrapped": M(
            _loss(pair=lambda logits, ids: (logits, ids.roll(-1, dims=1))),
            _loss_seen,
            "With roll() the last position of each text is asked for the first token of that text. Nothing follows the "
            "last token: leave its logits out."),
        "only-the-last": M(
            lambda logits, ids, pad_id: F.cross_entropy(logits[:, -2], ids[:, -1], ignore_index=pad_id),
            _loss_seen,
            "Only the last token of each text is asked for, as a classifier is asked once. A causal model answers at "
            "every position, and all those answers train it."),
        "across-texts": M(
            _across_texts,
            _loss_seen,
            "You shift after flattening, so the last position of each text is asked for the first token of the next "
            "text. Shift first, along the positions."),
        "not-transposed": M(
            lambda logits, ids, pad_id: F.cross_entropy(logits[:, :-1], ids[:, 1:], ignore_index=pad_id),
            _sizes,
            "So it stops with an error. Hand over the dimensions as (batch, vocab, position), with transpose(1, 2), or "
            "flatten logits and targets to one row for each position."),
        "reshaped": M(
            _reshaped,
            _loss_seen,
            "cross_entropy wants (batch, vocab, position), and reshape() doesn't get you there: it keeps the numbers in "
            "order and cuts them elsewhere. Use transpose(1, 2), or flatten to (batch · position, vocab)."),
        "padding-counted": M(
            _loss(counted=lambda ids, targets, pad_id: torch.ones_like(targets)),
            _of_answers,
            "All answers count in your mean, padding too. A trained model is nearly sure that padding follows padding, "
            "so its loss would look better than it is."),
        "padding-in-the-divisor": M(
            _loss(mean=lambda each, counts: (each * counts).mean()),
            _of_answers,
            "Padding is left out of the sum, but you still divide by all positions. Divide by the number of answers that "
            "count."),
        "mask-of-the-inputs": M(
            _loss(counted=lambda ids, targets, pad_id: ids[:, :-1] != pad_id),
            _of_answers,
            "You leave out the positions whose input is pad_id. What counts is the answer: the end of a text isn't asked "
            "what the padding will be, and the first token may be asked for after a separator."),
        "pad-is-zero": M(
            _loss(counted=lambda ids, targets, pad_id: targets != 0),
            _of_answers,
            "It happens where `pad_id` isn't 0. Leave out the answers that equal pad_id, whatever it is; 0 can be an "
            "ordinary token."),
        "row-means": M(
            _loss(mean=_row_means),
            _loss_seen,
            "You average each text first, and then the texts. A token in a short text then counts for more than one in a "
            "long text. Each token counts the same: one sum, divided once."),
        "row-means-of-some": M(
            _loss(mean=_over_texts_with_any),
            _loss_seen,
            "You average each text first, and then the texts; one without answers does no harm. But an answer in a short "
            "text counts for more than one in a long text: add up all, divide once."),
        "position-means": M(
            _loss(mean=_position_means),
            _loss_seen,
            "You average over the batch first, at each position, and then the positions. Near the end of the texts few "
            "answers are left, and each of those then counts for more than the others."),
        "summed": M(
            _loss(mean=lambda each, counts: (each * counts).sum()),
            lambda case: f"{_loss_seen(case)} You add up {_counted(case)} answers.",
            "A mean is asked for. With a sum, a longer batch would take a larger step."),
        "divided-by-texts": M(
            _loss(mean=lambda each, counts: (each * counts).sum() / len(each)),
            lambda case: f"{_loss_seen(case)} {_counted(case)} answers count, in "
                f"{len(case.inputs[1])} text{'s' * (len(case.inputs[1]) != 1)}.",
            "You divide the sum by the number of texts. The mean is asked for over the answers: a batch of longer texts "
            "would take a larger step."),
        "first-tokens-in-the-divisor": M(
            lambda logits, ids, pad_id: (
                causal_loss(logits, ids, pad_id) * (ids[:, 1:] != pad_id).sum() / (ids != pad_id).sum()),
            _of_answers,
            "You divide by the number of real tokens. But the first token of a text is never asked for, so there are "
            "fewer answers than tokens: count the targets."),
        "bits": M(
            _loss(mean=lambda each, counts: (each * counts).sum() / counts.sum() / math.log(2)),
            _loss_seen,
            "Your loss is in bits: you take the logarithm to base 2. In nats it's the natural logarithm, as "
            "cross_entropy gives it."),
        "no-minus": M(
            _loss(mean=lambda each, counts: -(each * counts).sum() / counts.sum()),
            _loss_seen,
            "The logarithm of a probability is negative, and the loss is minus that. Trained with this sign, the model "
            "would learn to avoid the right token."),
        "perplexity": M(
            _loss(mean=lambda each, counts: ((each * counts).sum() / counts.sum()).exp()),
            _loss_seen,
            "That is the perplexity, e to the power of the loss. Return the loss itself."),
        "over-positions": M(
            _loss(lambda logits: logits.log_softmax(dim=1)),
            _loss_seen,
            "Your softmax runs over the positions. At each position the probabilities of all tokens in the vocabulary "
            "sum to one: dim=-1."),
        "over-positions-before": M(
            _over_before(1),
            _loss_seen,
            "Your softmax runs over the positions, all seq_len of them. It should run over the vocabulary, the last "
            "dimension: one distribution at each position."),
        "over-texts": M(
            _loss(lambda logits: logits.log_softmax(dim=0)),
            _loss_seen,
            "Your softmax runs over the texts of the batch, so a text's loss depends on what it's batched with. The "
            "tokens of the vocabulary compete: dim=-1."),
        "softmax-first": M(
            _loss(lambda logits: logits.softmax(dim=-1).log_softmax(dim=-1)),
            _loss_seen,
            "There are two softmaxes: cross_entropy and log_softmax want logits, and get probabilities here. Such a loss "
            "can never get near 0."),
        "nll-of-logits": M(
            _loss(lambda logits: logits),
            _loss_seen,
            "You take the logit of the right token as if it were ln p. The softmax is missing, so raising all logits "
            "would lower the loss."),
        "nll-of-probabilities": M(
            _loss(lambda logits: logits.softmax(dim=-1)),
            _loss_seen,
            "That is minus the mean probability of the right tokens. The logarithm is missing."),
        "logarithm-of-the-mean": M(
            _loss(lambda logits: logits.softmax(dim=-1),
                mean=lambda each, counts: -(-(each * counts).sum() / counts.sum()).log()),
            _loss_seen,
            "You average the probabilities and then take the logarithm. Take the logarithm of each one first: then a "
            "token that was thought impossible costs a lot."),
        "cut-off": M(
            lambda logits, ids, pad_id: causal_loss(logits, ids, pad_id).detach(),
            _no_gradient,
            "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it couldn't be trained. Return a "
            "tensor; call item() where you print it."),
    },
    rules=(
        R(
            lambda case: isinstance(case.loss, str),
            _sizes,
            "It stops with an error there. Bring the vocabulary to the second dimension with transpose(1, 2), or "
            "flatten; and cut both sides as in exercise 13.1."),
        R(
            lambda case: case.loss < -1e-6,
            _loss_seen,
            "It's below 0. Minus the logarithm of a probability never is."),
        R(
            lambda case: _is_level(case) and gap(case, "loss") > 1e-3,
            _loss_seen,
            "All logits are 0 here, so each of the nine tokens has probability 1/9, and every answer costs ln 9. Is it a "
            "mean, with the natural logarithm, over the vocabulary?"),
        R(
            lambda case: _sure(case) and gap(case, "loss") > 1e-3,
            _loss_seen,
            "Here the model is sure of each next token, and right, so it costs nothing. Either position i isn't compared "
            "with token i + 1, or something counts that shouldn't: padding, or the last position."),
        R(
            lambda case: case.inputs[2] == 0 and case.right["loss"] < 20 and gap(case, "loss") > 1e-3,
            _of_answers,
            "Take the smallest case and work it out: position 0 against token 1, minus the logarithm of its softmax over "
            "the vocabulary. Then ask which answers count."),
        R(
            lambda case: (case.inputs[1][:, 0] == case.inputs[2]).all() and gap(case, "loss") > 1e-3,
            _of_answers,
            "Texts that only end with padding are right. Here each text also begins with pad_id, as a separator, and one "
            "has it in the middle. The token after it counts: only a target that is pad_id is left out."),
        R(
            lambda case: case.inputs[2] > 256 and gap(case, "loss") > 1e-3,
            _of_answers,
            "Small vocabularies are right. This one has 1000 tokens, few of which occur, and pad_id is 700. Does your "
            "softmax run over all of them? And do you compare with == or !=? `is` asks whether two numbers are one "
            "object, which Python makes sure of for small ones only."),
        R(
            lambda case: case.right["loss"] > 20 and case.loss < 0.99 * case.right["loss"],
            _loss_seen,
            "The other losses are right; here the model is sure and wrong. A small number added before the logarithm, or "
            "a clamp, puts an upper limit on the loss. Take it from the logits: log_softmax or cross_entropy."),
        R(
            lambda case: gap(case, "loss") > 1e-3,
            _loss_seen,
            "The other losses are right. Is this one taken from the logits, with log_softmax or cross_entropy?"),
        R(
            lambda case: gap(case, "gradient for the logits") > 1e-3,
            _gradient_seen,
            "Part of the way from the logits to the loss is cut off or counted twice."),
    ),
    hints=(
        "Two cuts first: which position has no answer in this batch, and which token is never asked for? (Exercise 13.1)",
        "Then each position's cost: cross_entropy on (n, vocab) and (n,), or log_softmax and gather. Which answers count?",
        "F.cross_entropy(logits[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=pad_id)",
    ),
)

# ---------------------------------------------------------------- 13.3 top-p

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

def nucleus_probes(generator: torch.Generator) -> list[tuple]:
    """Six tokens in no order; a p below the highest probability; probabilities that add up to p exactly; every token asked
    for; one token; equal probabilities, of which p takes some; a long flat list; nine in float64; every token asked for,
    where rounding leaves the sum of all a little below 1."""
    flat = (0.3 * torch.randn(200, generator=generator)).softmax(dim=0)
    nine = torch.randn(9, generator=generator).double().softmax(dim=0)
    order = torch.randperm(6, generator=generator)
    below_one = torch.tensor([0.125, 0.5, 0.125 - 2**-24, 0.25])           # exactly, and so is each sum of some of them
    return [(torch.tensor([0.05, 0.31, 0.02, 0.38, 0.16, 0.08])[order], 0.8),
            (torch.tensor([0.1, 0.33, 0.35, 0.22]), 0.3), (torch.tensor([0.125, 0.5, 0.125, 0.25]), 0.75),
            (torch.tensor([0.2, 0.7, 0.1]), 1.0), (torch.ones(1), 0.5), (torch.tensor([0.2, 0.1, 0.3, 0.2, 0.2]), 0.6),
            (flat, 0.5), (nine, 0.9), (below_one[torch.randperm(4, generator=generator)], 1.0)]

def observe_nucleus(function, probabilities, p):
    """The probabilities. Raises TypeError where an answer looks for the place where the sum reaches p, and there is none."""
    try:
        return function(probabilities, p)
    except (IndexError, StopIteration, ValueError) as error:
        if probabilities.sum() >= p:
            raise
        raise TypeError(f"expected probabilities; your function stops with {type(error).__name__}, since the running sum "
                        f"never reaches p = {p:g} here: rounding leaves it a little below 1. Look at what came before each "
                        "token (cumsum minus the token's own), which is less than p for every token that stays") from error

def _is_kept(case: Case) -> torch.Tensor:
    return case.answer.nan_to_num() > 0

def _keeps(case: Case) -> str:
    """How many tokens are kept, and what they add up to in the distribution that was given."""
    probabilities, p = case.inputs
    kept = _is_kept(case)
    if not kept.any():
        return f"with p = {p:g} you keep no token at all."
    count = int(kept.sum())
    total = probabilities[kept].sum()
    right = int((case.expected > 0).sum())
    return (f"with p = {p:g} you keep {count} token{'s' * (count != 1)}, {total:.3f} of the probability. It should be "
            f"{right} token{'s' * (right != 1)}.")

def _sums(case: Case) -> str:
    return f"with p = {case.inputs[1]:g} your numbers sum to {case.answer.sum():.3f}."

def _wrong_token(case: Case) -> str:
    """A kept token that's less probable than one that was dropped, or only the first that is off."""
    probabilities, kept = case.inputs[0], _is_kept(case)
    if kept.any() and not kept.all():
        low, high = probabilities.masked_fill(~kept, 2).argmin(), probabilities.masked_fill(kept, -1).argmax()
        if probabilities[low] < probabilities[high]:
            return (f"you keep id {int(low)}, with probability {probabilities[low]:.3f}, and drop id {int(high)}, with "
                    f"{probabilities[high]:.3f}.")
    at = int((case.answer.nan_to_num() - case.expected).abs().argmax())
    return (f"id {at}, with probability {probabilities[at]:.3f}, gets {case.answer[at]:.3f}, expected "
            f"{case.expected[at]:.3f}.")

def _misplaced(case: Case) -> bool:
    """Whether as many tokens are kept as should be, but less probable ones."""
    kept = _is_kept(case)
    return int(kept.sum()) == int((case.expected > 0).sum()) and case.inputs[0][kept].sum() < (
        case.inputs[0][case.expected > 0].sum() - 1e-6)

def _ratio_off(case: Case) -> bool:
    """Whether kept tokens aren't in proportion to what they were."""
    kept = _is_kept(case)
    ratios = case.answer[kept] / case.inputs[0][kept]
    return bool(kept.any()) and (ratios.max() - ratios.min()).item() > 1e-3 * ratios.max().item()

def _never_reaches(case: Case) -> bool:
    """Whether rounding leaves the sum of all probabilities below p."""
    probabilities, p = case.inputs
    return bool(probabilities.sum() < p)

def _crossing(case: Case) -> bool:
    """Whether the tokens that are kept add up to less than p."""
    probabilities, p = case.inputs
    return probabilities[_is_kept(case)].sum().item() < p - 1e-4

NUCLEUS = ask(
    "13.3", nucleus,
    probes=nucleus_probes,
    observe=observe_nucleus,
    forbidden=("course_utils.language_model.sampling_probabilities",),
    signature="nucleus(probabilities (vocab,), p) -> probabilities (vocab,)",
    not_finite={
        "inf": "That's a division by 0: no token was kept, and the most probable one always stays, even if it alone has "
        "more than p.",
        "-inf": "-inf hides a token among logits. These are probabilities, so what is left out gets 0.",
        "NaN": "That's 0 / 0: no token was kept, and the most probable one always stays, even if it alone has more than p."},
    mistakes={
        "cut-early": M(
            _top_p(_early),
            _keeps,
            "You cut one token early: the one that crosses p belongs to the nucleus. Where the first token alone has "
            "more than p, nothing is left at all."),
        "cut-early-one-stays": M(
            _top_p(_one_stays(_early)),
            _keeps,
            "You cut one token early. That the first always stays is right, but so does the token with which the sum "
            "reaches p."),
        "cut-early-unless-exact": M(
            _top_p(_early_unless_exact),
            _keeps,
            "You cut one token early, except where the sum is exactly p. Look at what came before a token, not at the "
            "sum that includes it."),
        "cut-early-unless-exact-one-stays": M(
            _top_p(_one_stays(_early_unless_exact)),
            _keeps,
            "The first token stays, as it should, and an exact sum is right. Otherwise you cut one token early: the "
            "token that crosses p belongs to the nucleus."),
        "one-too-many": M(
            _top_p(_one_more),
            _keeps,
            "You cut one token late. Once the sum has reached p, nothing more is added."),
        "one-too-many-if-exact": M(
            _top_p(lambda ordered, total, p: total - ordered <= p),
            _keeps,
            "Here the sum is exactly p, and you go on until it's above. Many programs do. The question asks for p or "
            "more, so that's enough: look at what your comparison does when both sides are equal.",
            convention=True),
        "not-renormalised": M(
            _top_p(share=lambda kept, p: kept),
            _sums,
            "The right tokens are left. What you draw from must sum to one again."),
        "divided-by-p": M(
            _top_p(share=lambda kept, p: kept / p),
            _sums,
            "You divide by p. The tokens that are left add up to p or more: divide by their sum."),
        "softmax-at-the-end": M(
            _top_p(share=_softmax_of_kept),
            _wrong_token,
            "The right tokens are left, but a softmax of probabilities makes them nearly equal. To sum to one again they "
            "only need to be divided by their sum."),
        "softmax-over-zeros": M(
            _top_p(share=lambda kept, p: kept.softmax(dim=0)),
            _keeps,
            "You set the others to 0, but then a softmax brings them back, since e⁰ is 1. What's left only needs to be "
            "divided by its sum."),
        "last-one-trimmed": M(
            _top_p(lambda ordered, total, p: ((p - total + ordered) / ordered).clamp(0, 1)),
            _wrong_token,
            "You trim the token that crosses p, so that the sum is exactly p. It belongs to the nucleus with its whole "
            "probability."),
        "sorted-order": M(
            _top_p(back=lambda kept, ids: kept),
            _wrong_token,
            "Your numbers are in sorted order, the largest first. Each must go back to the id it came from: the second "
            "result of sort() says which that is."),
        "order-applied-twice": M(
            _top_p(back=lambda kept, ids: kept[ids]),
            _wrong_token,
            "You index with the order of the sort a second time, which doesn't undo it. To put numbers back, assign: "
            "kept[ids] = …, or use scatter."),
        "not-sorted": M(
            _not_sorted,
            _wrong_token,
            "You add up in the order of the ids. The nucleus takes the most probable tokens first: sort before you add."),
        "least-probable-first": M(
            _top_p(descending=False),
            _wrong_token,
            "You start from the least probable token. Sort with descending=True."),
        "threshold": M(
            _top_p(lambda ordered, total, p: ordered >= p),
            _keeps,
            "You compare each probability with p. p is a bound for their sum: in a flat distribution no token reaches it "
            "alone, and many are kept together."),
        "share-of-the-largest": M(
            _top_p(lambda ordered, total, p: ordered >= p * ordered[0]),
            _keeps,
            "You keep what has at least p times the largest probability. That rule exists and is called min-p. Top-p "
            "looks at the sum."),
        "share-of-the-tokens": M(
            _top_p(lambda ordered, total, p: torch.arange(len(ordered)) < p * len(ordered)),
            _keeps,
            "You keep a fraction p of the tokens, however probable they are. That is a top-k. In top-p the number of "
            "tokens depends on how sure the model is."),
        "ties-higher-id": M(
            _top_p(higher_first=True),
            _wrong_token,
            "Of equally probable tokens you take the one with the higher id. That isn't worse, but the question asks for "
            "the lower one, so that everyone gets the same.",
            convention=True),
        "ties-all": M(
            _all_equals,
            _keeps,
            "You keep all tokens that are as probable as the last one of the nucleus. Some libraries do; the question "
            "asks for as few tokens as possible, and the lower id first.",
            convention=True),
    },
    rules=(
        R(
            lambda case: case.answer.min() < -1e-6,
            lambda case: f"one of your numbers is {case.answer.min():.3f}.",
            "Probabilities aren't negative; what is outside the nucleus gets 0."),
        R(
            _misplaced,
            _wrong_token,
            "You keep the right number of tokens, but not the most probable ones. If you sorted: does each number go "
            "back to the id it came from?"),
        R(
            lambda case: _crossing(case) and not _never_reaches(case),
            _keeps,
            "These don't reach p: you cut too early. The token that crosses p is the last to stay."),
        R(
            lambda case: _never_reaches(case) and not _is_kept(case).all(),
            _keeps,
            "The running sum never reaches p here: rounding leaves it a little below 1. So a search for the first place "
            "where it does finds none (argmax then gives 0). Look at what came before each token: less than p for all "
            "that stay."),
        R(
            lambda case: (case.answer.sum() - 1).abs() > 1e-3,
            _sums,
            "Divide what is left by its own sum."),
        R(
            lambda case: int(_is_kept(case).sum()) > int((case.expected > 0).sum()),
            _keeps,
            "That's more than needed: take the most probable tokens, one at a time, and stop as soon as the sum reaches "
            "p."),
        R(
            lambda case: not torch.equal(_is_kept(case), case.expected > 0),
            _wrong_token,
            "The nucleus has the most probable tokens, each at its own id."),
        R(
            _ratio_off,
            _wrong_token,
            "The right tokens are left, but no longer in proportion: all of them are divided by the same sum."),
    ),
    hints=(
        "Sort first, and keep the ids. For each token, how much probability came before it? Print the two columns.",
        "ordered.cumsum(0) - ordered is what came before. A token stays as long as that is less than p; the first always "
        "does.",
        "kept = torch.zeros_like(probabilities); kept[ids] = ordered * (ordered.cumsum(0) - ordered < p); return kept / "
        "kept.sum()",
    ),
)

# ---------------------------------------------------------------- 13.4 a step with the cache

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

def step_probes(generator: torch.Generator) -> list[tuple]:
    """(query, key, value (2, 3, 1, 4), five cached tokens); three cached tokens; none yet; a long cache, in float64;
    a text with scores too large for exp beside one with small ones."""
    probes = []
    for batch, heads, past, d_head, dtype in ((2, 3, 5, 4, torch.float32), (1, 2, 3, 6, torch.float32),
                                              (2, 1, 0, 4, torch.float32), (1, 3, 11, 2, torch.float64)):
        rotate = RotaryPositions(d_head).rotate
        query, key, value = (1.5 * torch.randn(batch, heads, 1, d_head, generator=generator).to(dtype) for _ in range(3))
        keys, values = (1.5 * torch.randn(batch, heads, past, d_head, generator=generator).to(dtype) for _ in range(2))
        probes.append((query, key, value, rotate(keys), values, rotate))
    query, key, value = (torch.randn(2, 1, 1, 4, generator=generator).double() for _ in range(3))
    keys, values = (torch.randn(2, 1, 3, 4, generator=generator).double() for _ in range(2))
    key, keys = key / key.norm(dim=-1, keepdim=True), keys / keys.norm(dim=-1, keepdim=True)
    query[0] = 4000.0 * key[0]                          # the new token's score of itself is 2000, and no other is larger
    return [*probes, (query, key, value, keys, values, RotaryPositions(4).rotate)]

def observe_step(function, query, key, value, past_keys, past_values, rotate):
    """Context, keys and values as three tensors; as texts, the axis, where torch.cat stops because it's a wrong one."""
    names = ("context", "keys", "values")
    try:
        output = function(query, key, value, past_keys, past_values, rotate)
    except RuntimeError as error:
        found = re.match(r"Sizes of tensors must match except in dimension (\d)", str(error))
        if not found:
            raise
        return dict.fromkeys(names, found[1])
    if output is None:
        return None
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"one tensor, {tuple(output.shape)}" if isinstance(output, torch.Tensor) else what(output)
        if isinstance(output, (tuple, list)):
            got = f"{len(output)} results"
        raise TypeError(f"expected three results, context, keys and values, got {got}. End with `return context, keys, "
                        "values`")
    return {name: one_tensor(part, name) for name, part in zip(names, output)}

def _past(case: Case) -> int:
    return case.inputs[3].shape[-2]

def _context_off(case: Case) -> str:
    got, right = case.context, case.right["context"]
    at = tuple((got - right).abs().nan_to_num().eq((got - right).abs().nan_to_num().max()).nonzero()[0].tolist())
    place = ", ".join(str(i) for i in at)
    return f"after {_past(case)} cached tokens, context[{place}] is {got[at]:.3f}, expected {right[at]:.3f}."

def _new_key(named: dict) -> torch.Tensor:
    return named["keys"][0, 0, -1]

def _key_off(case: Case) -> str:
    got, right = _new_key(case.got)[0], _new_key(case.right)[0]
    return f"after {_past(case)} cached tokens, the new key begins with {got:.3f}, expected {right:.3f}."

def _position(case: Case) -> int | None:
    """The position to which the new key was rotated, if it's one near the right one."""
    key, rotate = case.inputs[1], case.inputs[5]
    for position in range(_past(case) + 20):
        if torch.allclose(rotate(key, position).double(), case.keys[..., -1:, :], atol=1e-4):
            return position
    return None

def _at_position(case: Case) -> str:
    position = _position(case)
    if position == 0:
        return f"{_key_off(case)} The key that you return isn't rotated."
    texts = " len(past_keys) is the number of texts." if position == len(case.inputs[3]) else ""
    return f"after {_past(case)} cached tokens, your new key is at position {position}.{texts}"

def _first_key_off(case: Case) -> str:
    at = int((case.keys - case.right["keys"]).abs().amax(dim=(0, 1, 3)).gt(1e-4).nonzero()[0])
    return (f"counted from 0, key {at} of your {case.keys.shape[-2]} begins with {case.keys[0, 0, at, 0]:.3f}, expected "
            f"{case.right['keys'][0, 0, at, 0]:.3f}.")

def _returned(case: Case) -> str:
    return (f"keys that you return: {case.keys.shape[-2]}, values: {case.got['values'].shape[-2]}, expected "
            f"{_past(case) + 1} of each.")

def _axis(case: Case) -> str:
    return f"torch.cat joins past and new along dimension {case.keys}, counted from 0, and stops: the other sizes differ."

def _gap(part: str):
    return lambda case: gap(case, part) > 1e-4

def _outside(case: Case) -> bool:
    """Whether the context lies outside what a mean of the values can be."""
    values = case.right["values"]
    low, high = values.amin(-2, keepdim=True), values.amax(-2, keepdim=True)
    return bool(((case.context < low - 1e-3) | (case.context > high + 1e-3)).any())

CACHE = ask(
    "13.4", cached_step,
    probes=step_probes,
    observe=observe_step,
    signature="cached_step(query (batch, heads, 1, d_head), key (batch, heads, 1, d_head), value (batch, heads, 1, d_head), "
        "past_keys (batch, heads, past, d_head), past_values (batch, heads, past, d_head), rotate) -> context (batch, "
        "heads, 1, d_head), keys (batch, heads, past + 1, d_head), values (batch, heads, past + 1, d_head)",
    not_finite={
        "inf": f"exp of a large score overflows: call softmax. {EACH_MAXIMUM} In keys and values nothing is infinite.",
        "-inf": "-inf belongs on scores, before a softmax, and here no mask is needed: nothing lies in the future.",
        "NaN": "A softmax over nothing but -inf gives that, or one over no keys: with an empty cache the new token still "
        f"sees itself. {EACH_MAXIMUM}"},
    mistakes={
        "no-positions": M(
            _step(_at_zero, _at_zero),
            _key_off,
            "This is a cache without positions: every new token is treated as if it were at position 0, because nothing "
            "is rotated, or with offset 0. How many tokens come before this one?"),
        "query-without-position": M(
            _step(query_at=_at_zero),
            _context_off,
            "The keys are right. The query was left at position 0, so every distance is wrong. It belongs to the same "
            "token as the new key."),
        "key-without-position": M(
            _step(key_at=_at_zero),
            _key_off,
            "The query is rotated to its position. The new key is still at position 0, on top of the first token of the "
            "text."),
        "one-position-on": M(
            _step(lambda past: past + 1, lambda past: past + 1),
            _key_off,
            "You rotate by one position too many. Positions count from 0, so after 5 tokens the new one is at position "
            "5. As past_keys stay as they are, a gap of one opens."),
        "one-position-back": M(
            _step(lambda past: max(past - 1, 0), lambda past: max(past - 1, 0)),
            _key_off,
            "You rotate to the position of the last cached token, so two tokens share it. The new one comes after it."),
        "cached-keys-rotated-again": M(
            _step(again=True),
            _first_key_off,
            "You rotate all keys, but those in the cache have been rotated already. Each key is rotated once, when it's "
            "new."),
        "values-rotated": M(
            _step(values_too=True),
            lambda case: f"{_context_off(case)} Your keys are right.",
            "The values were rotated too. Only queries and keys are compared by position; values are what's passed on "
            "(notebook 06, section 6)."),
        "new-token-not-seen": M(
            _step(sees=lambda part: part[..., :-1, :]),
            _context_off,
            "The cache you return is right, but the query attended to the old one: a token must see itself too. Extend "
            "first, then attend."),
        "only-the-first-seen": M(
            _step(sees=lambda part: part[..., :1, :]),
            _context_off,
            "The query sees the first key only. That is what a causal mask for 1 query does if it starts at the top left "
            "(is_causal=True does). Nothing here lies in the future: no mask is needed."),
        "only-itself-seen": M(
            _step(sees=lambda part: part[..., -1:, :]),
            _context_off,
            "The query sees only the new token. The cache was extended, but isn't attended to."),
        "new-token-in-front": M(
            _step(join=lambda past, new: torch.cat([new, past], dim=-2)),
            _first_key_off,
            "The new token stands in front. Attention alone wouldn't notice, but the cache is in order of time: cut it "
            "down to its last 100 tokens, and you'd keep the oldest ones."),
        "past-returned": M(
            _step(returns=lambda context, keys, values, past, new: (context, *past)),
            _returned,
            "The context is right, but the cache comes back as it was, so the next token won't see this one. Return the "
            "extended one."),
        "new-returned": M(
            _step(returns=lambda context, keys, values, past, new: (context, *new)),
            _returned,
            "The context is right, but only the new key and value come back, so all earlier tokens are forgotten. Return "
            "past and new together."),
        "unrotated-key-returned": M(
            _key_as_it_was,
            _key_off,
            "Your context is right, so the query met a rotated key. But the one that you return for the cache isn't "
            "rotated, and the next token will meet it at position 0."),
        "joined-along-the-batch": M(
            _step(join=_along(0)),
            _axis,
            "That dimension counts the texts, so the new token would become another text. Tokens follow one another "
            "along the third dimension, dim=2 or -2."),
        "joined-along-the-heads": M(
            _step(join=_along(1)),
            _axis,
            "That dimension counts the heads, so the new token would become another head. Tokens follow one another "
            "along the third dimension, dim=2 or -2."),
        "joined-along-the-width": M(
            _step(join=_along(3)),
            _axis,
            "That dimension holds the numbers of one vector, so the key would get longer. Tokens follow one another "
            "along the third dimension, dim=2 or -2."),
        "swapped": M(
            _step(returns=lambda context, keys, values, past, new: (context, values, keys)),
            _first_key_off,
            "Keys and values have changed places: return context, keys, values."),
        "no-scaling": M(
            _step(attend=lambda q, k, v: _attended(q, k, v, scaled=False)),
            _context_off,
            "The cache is right. The scores aren't divided by √d_head (notebook 04, section 6)."),
        "softmax-over-queries": M(
            _step(attend=lambda q, k, v: _attended(q, k, v, dim=-2)),
            _context_off,
            "Your softmax runs over the queries. There is only one, so every key gets weight 1. It must run over the "
            "keys, dim=-1."),
    },
    rules=(
        R(
            lambda case: gap(Case((), {"": case.keys[..., :-1, :]}, {"": case.right["keys"][..., :-1, :]})) > 1e-4,
            _first_key_off,
            "The cached keys stay as they are, in their order, and the new one comes after them."),
        R(
            lambda case: _position(case) not in (None, _past(case)),
            _at_position,
            "A new key's position is the number of tokens before it, and those are counted along the third dimension, "
            "past_keys.shape[-2]."),
        R(
            _gap("keys"),
            _key_off,
            "The cached keys are right. The new one must be rotated to its own position, which is the number of tokens "
            "before it."),
        R(
            _gap("values"),
            lambda case: f"your keys are right; your values differ by up to {gap(case, 'values'):.3f}.",
            "The cached values come first, as they are, then the new one. Values aren't rotated."),
        R(
            _outside,
            _context_off,
            "The cache is right. But the context isn't a mean of the values: are the weights a softmax over all keys?"),
        R(
            _gap("context"),
            _context_off,
            "The cache is right. Is the query rotated as the new key is, are the scores divided by √d_head, and does the "
            "query see all keys, its own too?"),
    ),
    hints=(
        "Four steps: rotate what is new, extend the cache, attend, return. Print the shapes of keys and values after the "
        "second.",
        "rotate(x, offset) treats x as beginning at position `offset`. There are past_keys.shape[-2] tokens before this "
        "one.",
        "keys = torch.cat([past_keys, rotate(key, past_keys.shape[-2])], dim=-2); the query is rotated in the same way, "
        "and then sees all keys without a mask.",
    ),
)

# ---------------------------------------------------------------- 13.5 repair: how far back

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

class _Counts:
    """A model without attention: the logits of a position are the sum of a row for each token at some distances.

    `distances` say how far back these tokens are, 0 for the position's own. With `from_start`, they're counted from the
    beginning of the text. `bias` is added at the same id everywhere, so that this one stays the most probable. `faint` is
    how much the rows of the last distance are made smaller.
    """

    def __init__(self, generator, vocab_size, distances, from_start=False, bias=0.0, faint=1.0):
        self.rows = torch.randn(len(distances), vocab_size, vocab_size, generator=generator)
        self.rows[-1:] *= faint
        self.distances, self.from_start = distances, from_start
        self.bias = bias * F.one_hot(torch.tensor(1), vocab_size)

    def __call__(self, token_ids):
        batch, seq_len = token_ids.shape
        if not ((token_ids >= 0) & (token_ids < len(self.bias))).all():
            raise IndexError(f"expected ids from 0 to {len(self.bias) - 1}, as vocab_size is {len(self.bias)}; got "
                             f"{int(token_ids.min() if token_ids.min() < 0 else token_ids.max())}")
        logits = self.bias + torch.zeros(batch, seq_len, len(self.bias))
        for rows, distance in zip(self.rows, self.distances):
            vectors = F.embedding(token_ids, rows)                         # (batch, seq_len, vocab)
            if self.from_start and distance < seq_len:
                logits[:, distance:] += vectors[:, distance : distance + 1]
            elif distance < seq_len:
                logits[:, distance:] += vectors[:, : seq_len - distance]
        return logits

def reach_probes(generator: torch.Generator) -> list[tuple]:
    """A 5-gram; one that looks 0, 1 and, by 0.0001, 6 tokens back; a bigram on id 0; a 3-gram whose best token never
    changes; one that ignores all; one that sees the first token alone, which is id 0; a 6-gram on three tokens; a bigram on
    a token twice, and, with nine ids, on each of them."""
    def draw(*shape):
        return torch.randint(1, 8, shape, generator=generator)

    with_zeros = draw(1, 9)
    with_zeros[0, [2, 5, 8]] = 0                                           # what changing it to 0 wouldn't change
    twice = draw(1, 6)
    twice[0, -2] = twice[0, -1]                                            # what leaving one out wouldn't change
    different = 1 + torch.randperm(11, generator=generator)[None, :10]
    return [(_Counts(generator, 8, (0, 1, 2, 3)), draw(1, 9), 8),
            (_Counts(generator, 12, (0, 1, 6), faint=1e-4), different, 12),
            (_Counts(generator, 8, (0,)), with_zeros, 8), (_Counts(generator, 8, (0, 1, 2), bias=100.0), draw(1, 7), 8),
            (_Counts(generator, 8, ()), draw(1, 5), 8),
            (_Counts(generator, 8, (0,), from_start=True), with_zeros.flip(1), 8),
            (_Counts(generator, 8, (0, 1, 2, 3, 4)), draw(1, 3), 8), (_Counts(generator, 8, (0,)), twice, 8),
            *((_Counts(generator, 9, (0,)), torch.tensor([[3, 2, 6, last]]), 9) for last in range(9))]

def observe_reach(function, logits_of, token_ids, vocab_size):
    """The number of tokens. Raises TypeError for more than one number."""
    output = function(logits_of, token_ids, vocab_size)
    if isinstance(output, (bool, np.bool_)) or isinstance(output, torch.Tensor) and output.dtype == torch.bool:
        raise TypeError(f"expected a number of tokens, got {bool(output.any() if hasattr(output, 'any') else output)}. "
                        "Return how far back the furthest token is")
    try:
        found = named_tensors(output)
    except NotNumbers:
        return output
    if list(found) == [""] and isinstance(found[""], torch.Tensor) and found[""].numel() != 1:
        raise TypeError(f"expected one number of tokens, got {what(output)}")
    return output

MODELS = ("a 5-gram", "a model that looks at the last two tokens and at the seventh from the end", "a bigram model",
          "a model that is always sure of the same token", "a model that ignores the text",
          "a model that looks at the first token of the text only", "a model that looks further back than the text goes")

def _which(case: Case) -> str:
    """The model by what it is: each probe has its own length and logits."""
    logits_of, token_ids, _ = case.inputs
    found = MODELS[5] if logits_of.from_start else MODELS[3] if logits_of.bias.any() else {
        (): MODELS[4], (0,): MODELS[2], (0, 1, 2, 3): MODELS[0], (0, 1, 6): MODELS[1]}.get(logits_of.distances, MODELS[6])
    return f"a text of {token_ids.shape[1]} tokens and {found}"

def _says(case: Case) -> str:
    return f"for {_which(case)}, your answer is {case.answer.item():g}, expected {case.expected.item():g}."

REACH = ask(
    "13.5", how_far_back,
    given="as-given",
    probes=reach_probes,
    observe=observe_reach,
    signature="how_far_back(logits_of, token_ids (1, seq_len), vocab_size) -> number of tokens",
    mistakes={
        "as-given": M(
            _reach(_zero, result=_without_gap),
            _says,
            "That's one of two mistakes; both are still there."),
        "stops-early": M(
            _reach(result=_without_gap),
            _says,
            "The change is always a real one now. But you still stop at the first token that makes no difference, and "
            "there may be others behind it: attention can skip."),
        "set-to-zero": M(
            _reach(_zero),
            _says,
            "You go through the whole text now. But where a token is 0 already, setting it to 0 changes nothing. Every "
            "token must get an id that it didn't have."),
        "set-to-the-last-id": M(
            _reach(lambda ids, vocab_size: torch.full_like(ids, vocab_size - 1)),
            _says,
            "You go through the whole text now. But your replacement can be the id that the token has already (a fixed "
            "or a random one can), and then nothing changes. Every token must get an id that it didn't have."),
        "mirrored": M(
            _reach(lambda ids, vocab_size: vocab_size - 1 - ids),
            _says,
            "vocab_size - 1 - id is another id, except in the middle: of 9 ids, 4 stays 4. Every token must get an id "
            "that it didn't have."),
        "left-out": M(
            _left_out,
            _says,
            "Here nothing changed. If you leave the token out, those before it move up, and the one next to it is the "
            "same; if you draw a random id, it can be the one that was there. Every token must get an id that it "
            "didn't have."),
        "distance": M(
            _reach(result=lambda found, seq_len: max(found, default=1) - 1),
            _says,
            "You count the steps between two tokens. The number of tokens is asked for: a model that sees only the last "
            "token looks 1 token back, not 0."),
        "nearest": M(
            _reach(result=lambda found, seq_len: min(found, default=0)),
            _says,
            "You return the nearest token that makes a difference. The furthest is asked for, so go on after you've "
            "found one."),
        "counted": M(
            _reach(result=lambda found, seq_len: len(found)),
            _says,
            "You count the tokens that make a difference. The question is how far away the furthest is, and there may be "
            "gaps."),
        "position": M(
            _reach(result=lambda found, seq_len: seq_len - max(found, default=0)),
            _says,
            "That is the position of a token from the beginning of the text. Count from the end."),
        "most-probable-only": M(
            _reach(seen=lambda logits: logits[:, -1].argmax(dim=-1)),
            _says,
            "You compare only the most probable token. It can stay the same while its probability changes: compare all "
            "logits of the last position."),
        "all-positions": M(
            _reach(seen=lambda logits: logits),
            _says,
            "That's the whole text, for every model that uses it at all. Either you compare the logits of all positions, "
            "and a changed token always changes its own; or one change is still there when the next is made."),
    },
    rules=(
        R(
            lambda case: not 0 <= case.answer <= case.inputs[1].shape[1],
            _says,
            "A number of tokens lies between 0 and the length of the text."),
        R(
            lambda case: case.expected == 0 and case.answer > 0,
            _says,
            "Its logits never change, whatever the text says."),
        R(
            lambda case: case.inputs[0].bias.any() and case.answer < case.expected,
            _says,
            "If you compare probabilities: these change too little to be seen. Compare the logits. If you do: is every "
            "token tried?"),
        R(
            lambda case: case.answer < case.expected,
            _says,
            "A token further back makes a difference too. Is each one really changed, is every one tried, up to the "
            "beginning of the text, and does your comparison see every difference, however small?"),
        R(
            lambda case: case.answer > case.expected,
            _says,
            "A token so far back makes no difference to the logits of the last position. Is only one token changed at a "
            "time?"),
    ),
    hints=(
        "The text 3, 0, 5: which of its tokens does the code really change? And what if only the first one matters?",
        "Remember the furthest token so far instead of returning. For the change, (id + 1) % vocab_size is always "
        "another id.",
        "Where the logits of the last position aren't equal any more, `furthest = back`; at the end, `return furthest`.",
    ),
)

# ---------------------------------------------------------------- 13.6 bits per byte

def bits_for_each_byte(mean_loss, num_tokens, text):
    bits = mean_loss * num_tokens / math.log(2)                            # of the whole text
    return bits / len(text.encode("utf-8"))

TEXT = "# größer als π? ja, naïve Lösung 🙂\nif length > 3.14159:\n    print('größer')\n"

def bits_probes(generator: torch.Generator) -> list[tuple]:
    """(mean loss, number of tokens, text): letters with two bytes and more, read by two tokenizers; plain code; one byte;
    a long text, whose probability is too small for any float; an accent of its own and a line end of two bytes."""
    loss = 1.8 + 0.8 * torch.rand(1, generator=generator).item()
    return [(loss, 40, TEXT), (loss * 40 / 25, 25, TEXT), (2.5, 9, "for i in range(10):\n    total += i\n"), (0.75, 1, "x"),
            (3.0, 2, "→"), (5.0, 1000, "while x > 1:\n    x = x // 2\n" * 100),
            (2.0, 6, "cafe\u0301 = 1\r\n")]

def observe_bits(function, mean_loss, num_tokens, text):
    """The bits per byte. Raises TypeError where an answer goes through e to the power of the whole text's cost."""
    try:
        return function(mean_loss, num_tokens, text)
    except (OverflowError, ValueError) as error:
        if mean_loss * num_tokens < 700:                # the largest float is about e^709
            raise
        raise TypeError(f"expected a number of bits; your function stops with {type(error).__name__} ({error}), since no "
                        f"float holds e to the power of {mean_loss * num_tokens:g}, or of minus that. A loss is a logarithm "
                        "already: to change its base, divide it by math.log(2)") from error

def _bits(case: Case) -> str:
    return f"for {_size(case)} you give {case.answer.item():.4g}, expected {case.expected.item():.4g}."

def _size(case: Case) -> str:
    _, num_tokens, text = case.inputs
    counts = ((num_tokens, "token"), (len(text), "character"), (len(text.encode()), "byte"))
    tokens, characters, size = (f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts)
    return f"{tokens} and {characters} in {size}"

def _implied(case: Case) -> float:
    """How many bytes the answer would be right for."""
    return len(case.inputs[2].encode()) * (case.expected / case.answer).item()

def _is_whole(size: float) -> bool:
    return 0.5 < size < 200 and abs(size - round(size)) < 2e-3

def _of_other_bytes(case: Case) -> str:
    return f"{_bits(case)} It would be right for {_implied(case):.0f} bytes."

BITS = ask(
    "13.6", bits_for_each_byte,
    probes=bits_probes,
    observe=observe_bits,
    forbidden=("course_utils.language_model.bits_per_byte",),
    signature="bits_for_each_byte(mean_loss, num_tokens, text) -> bits per byte",
    not_finite=dict.fromkeys(("inf", "-inf", "NaN"), "No float holds e to the power of a long text's cost, or of minus "
        "that. A loss is a logarithm already: to change its base, divide it by math.log(2)."),
    mistakes={
        "per-character": M(
            lambda loss, n, text: loss * n / math.log(2) / len(text),
            _bits,
            "You divide by the number of characters. 'ö' takes two bytes in UTF-8, and '🙂' four: count "
            "text.encode(\"utf-8\")."),
        "nats": M(
            lambda loss, n, text: loss * n / len(text.encode()),
            _bits,
            "You return the nats for each byte. The bytes are right; what's missing is the change of unit: one bit is ln "
            "2 = 0.693 nats."),
        "nats-per-character": M(
            lambda loss, n, text: loss * n / len(text),
            _bits,
            "You return the nats for each character, so two steps are missing: from nats to bits (one bit is ln 2 nats), "
            "and from characters to bytes."),
        "per-token": M(
            lambda loss, n, text: loss / math.log(2),
            _bits,
            "That is bits per token, which doesn't compare tokenizers: longer tokens are harder to guess, but fewer of "
            "them are needed. Bytes are the same for everybody."),
        "mean-per-character": M(
            lambda loss, n, text: loss / math.log(2) / len(text),
            _bits,
            "Two things: you spread the cost of a single token over the whole text, and you count characters, not bytes."),
        "mean-per-byte": M(
            lambda loss, n, text: loss / math.log(2) / len(text.encode()),
            _bits,
            "You spread the cost of a single token over all bytes. mean_loss is the mean over the tokens: what does the "
            "whole text cost?"),
        "per-token-and-byte": M(
            lambda loss, n, text: loss / n / math.log(2) / len(text.encode()),
            _bits,
            "You divide by the number of tokens, but mean_loss is a mean already. The whole text costs mean_loss times "
            "num_tokens."),
        "mean-per-token": M(
            lambda loss, n, text: loss / math.log(2) / n,
            _bits,
            "You divide by the number of tokens, but mean_loss is a mean already, and no bytes are in your answer."),
        "multiplied": M(
            lambda loss, n, text: loss * n * math.log(2) / len(text.encode()),
            _bits,
            "You multiply by ln 2. A nat is more than a bit (1.443 bits), so the number in bits is the larger one: "
            "divide by ln 2."),
        "whole-text": M(
            lambda loss, n, text: loss * n / math.log(2),
            _bits,
            "That is how many bits the whole text costs. Divide by its bytes."),
        "upside-down": M(
            lambda loss, n, text: len(text.encode()) / (loss * n / math.log(2)),
            _bits,
            "That is bytes per bit. Divide the bits by the bytes."),
        "bytes-per-token": M(
            lambda loss, n, text: loss / math.log(2) * len(text.encode()) / n,
            _bits,
            "You multiply by the bytes per token. Longer tokens spread their cost over more bytes: divide."),
        "times-the-bytes": M(
            lambda loss, n, text: loss * n / math.log(2) * len(text.encode()),
            _bits,
            "You multiply the cost of the whole text by its bytes. What does each byte cost?"),
        "logarithm-of-the-loss": M(
            lambda loss, n, text: math.log2(loss * n) / len(text.encode()),
            _bits,
            "You take log2 of the loss. The loss is a logarithm already, with another base: to change the base, divide "
            "by ln 2."),
        "perplexity": M(
            lambda loss, n, text: math.exp(loss),
            _bits,
            "That is the perplexity, which counts tokens. Two tokenizers can't be compared by it."),
        "utf-16": M(
            lambda loss, n, text: loss * n / math.log(2) / len(text.encode("utf-16")),
            _bits,
            "You count the bytes of another encoding. In UTF-8, a letter of plain code takes one byte."),
        "divided-by-eight": M(
            lambda loss, n, text: loss * n / math.log(2) / len(text.encode()) / 8,
            _bits,
            "You divide by 8 as well. A byte holds 8 bits, but the question is how many bits the model needs for each "
            "byte; with no model at all it would be 8."),
    },
    rules=(
        R(
            lambda case: case.answer < 0,
            _bits,
            "A cost is never negative."),
        R(
            lambda case: case.inputs[2].isascii() and len(case.inputs[2]) > 1 and gap(case) > 1e-3
                and _is_whole(_implied(case)),
            _of_other_bytes,
            "If you have the bits right, the bytes are miscounted: every character counts, spaces and line ends too, and "
            "nothing else does. If you divide by len(text.encode()), look at the bits again."),
        R(
            lambda case: case.inputs[2].isascii() and gap(case) > 1e-3,
            _bits,
            "Every character here is one byte, so the bits are wrong. How many nats does the whole text cost, and how "
            "many bits is that?"),
        R(
            lambda case: gap(case) > 1e-3,
            _bits,
            "For plain code your numbers are right. Here some characters take two bytes or more: count the bytes of "
            "UTF-8."),
    ),
    hints=(
        "Three steps: the cost of the whole text in nats, then in bits, then for each byte.",
        "math.log(2) nats are one bit. And print len(\"ö\") and len(\"ö\".encode(\"utf-8\")).",
        "mean_loss * num_tokens / math.log(2) / len(text.encode(\"utf-8\"))",
    ),
)

# ---------------------------------------------------------------- 13.7 generate

def generate(model, token_ids, number, draw, window):
    for _ in range(number):
        logits = model(token_ids[:, -window:])[:, -1]                      # (batch, vocab): what follows the last token
        token_ids = torch.cat([token_ids, draw(logits)[:, None]], dim=1)   # (batch, seq_len + 1)
    return token_ids

def _generate(seen=lambda ids, window: ids[:, -window:], row=lambda logits: logits[:, -1],
              step=lambda ids, drawn: torch.cat([ids, drawn[:, None]], dim=1), times=lambda number, ids: number,
              give=lambda ids, length: ids, choose=lambda draw, logits: draw(logits)):
    """The loop with one of its parts changed."""
    def write(model, token_ids, number, draw, window):
        length = token_ids.shape[1]
        for _ in range(times(number, token_ids)):
            token_ids = step(token_ids, choose(draw, row(model(seen(token_ids, window)))))
        return give(token_ids, length)
    return write

def _prompt_alone(model, token_ids, number, draw, window):
    written = token_ids
    for _ in range(number):
        logits = model(token_ids[:, -window:])[:, -1]
        written = torch.cat([written, draw(logits)[:, None]], dim=1)
    return written

def _top(logits, k):
    return logits.where(logits >= logits.topk(k).values[:, -1:], -math.inf)

def _all_at_once(model, token_ids, number, draw, window):
    padded = F.pad(token_ids, (0, number - 1))
    logits = model(padded[:, -window:])[:, -number:]
    return torch.cat([token_ids, *(draw(logits[:, i])[:, None] for i in range(logits.shape[1]))], dim=1)

def _in_blocks(model, token_ids, number, draw, window):
    begun = token_ids[:, -window:]
    for _ in range(number):
        begun = begun if begun.shape[1] < window else begun[:, window // 2:]
        drawn = draw(model(begun)[:, -1])[:, None]
        begun, token_ids = torch.cat([begun, drawn], dim=1), torch.cat([token_ids, drawn], dim=1)
    return token_ids

def _one_text_alone(model, token_ids, number, draw, window):
    for _ in range(number):
        drawn = draw(model(token_ids[:, -window:])[:, -1])
        token_ids = torch.cat([token_ids, drawn[:1, None].expand(len(token_ids), 1)], dim=1)
    return token_ids

class _Written:
    """A model whose logits depend on every token that it's shown and on where it stands; it counts its passes.

    The first two ids are well ahead, so that rounding decides nothing, but not so far that chance would always draw the
    first. It keeps what it was shown and its last row. Raises TypeError for more than `most` tokens.
    """

    def __init__(self, vocab_size: int, most: int, generator: torch.Generator):
        self.vocab_size, self.most = vocab_size, most
        self.table = torch.randint(1, 1000, (64,), generator=generator)
        self.begin()

    def begin(self):
        """Forget what was asked."""
        self.passes, self.texts, self.last_row = 0, set(), None

    def __call__(self, token_ids):
        if token_ids.dim() != 2 or not token_ids.shape[1]:
            raise TypeError(f"expected ids of shape (batch, seq_len), got {tuple(token_ids.shape)}: the model was given "
                            "these")
        if token_ids.shape[1] > self.most:
            raise TypeError(f"expected at most window={self.most} tokens in a pass, and the model was given "
                            f"{token_ids.shape[1]}. It remembers no more than its last tokens: token_ids[:, -window:]")
        self.passes += 1
        self.texts.add(tuple(token_ids.flatten().tolist()))
        place = torch.arange(token_ids.shape[1])
        said = ((token_ids + 1) * self.table[place]).cumsum(dim=1) + 7 * place  # each position knows what is before it
        best, second = said % self.vocab_size, (said // 3) % self.vocab_size
        rest = (said[..., None] + 31 * torch.arange(self.vocab_size)) % 7  # a number for each id; no logit is 0
        logits = 2.0 * F.one_hot(best, self.vocab_size) + F.one_hot(second, self.vocab_size) + 0.1 * rest + 0.05
        self.last_row = logits[:, -1].clone()
        return logits

AS_IT_IS, SOFTMAX, TIMES, CUT, OTHERWISE = range(5)       # what `draw` got: the model's last row, or something made of it

def _made_of(got, row):
    """Which of these five: a number added to the whole row changes no draw, and log_softmax does nothing else."""
    if row is None or got.shape != row.shape:
        return OTHERWISE
    got, row = got.detach().double(), row.double()
    same = got.log_softmax(dim=-1)
    if torch.allclose(same, row.log_softmax(dim=-1), atol=1e-4):
        return AS_IT_IS
    if torch.allclose(same, row.softmax(dim=-1).log_softmax(dim=-1), atol=1e-4):
        return SOFTMAX
    got_level, level = (each - each.mean(dim=-1, keepdim=True) for each in (got, row))
    factor = (got_level * level).sum() / (level * level).sum()
    if factor > 0 and torch.allclose(got_level, factor * level, atol=1e-4):
        return TIMES
    kept = torch.isclose(got, row, atol=1e-4)
    least = row.where(kept, math.inf).amin(dim=-1, keepdim=True)         # the others are the lowest of the row
    return CUT if kept.any(dim=-1).all() and (row <= least)[~kept].all() else OTHERWISE

class _Draw:
    """Draws in turn the first, second, … most probable id: the first token from its first row, and so on."""

    def __init__(self):
        self.begin(None)

    def begin(self, model):
        """Forget what was drawn; `model` is the one whose last row is expected."""
        self.model, self.calls, self.handed = model, 0, AS_IT_IS

    def __call__(self, logits):
        if logits.dim() != 2:
            raise TypeError(f"expected draw(logits) to get logits (batch, vocab), those after the last token; it got the "
                            f"shape {tuple(logits.shape)}")
        self.handed = self.handed or _made_of(logits, self.model.last_row)
        order = logits.argsort(dim=-1, descending=True, stable=True)
        turn = (self.calls + torch.arange(len(logits))) % 2
        self.calls += 1
        return order.gather(-1, turn[:, None])[:, 0]

def generate_probes(generator: torch.Generator) -> list[tuple]:
    """Three texts of five tokens, seven more; one text of one token; a text longer than the window; nothing to write."""
    probes = []
    for batch, length, number, vocab, window in ((3, 5, 7, 23, 32), (1, 1, 4, 11, 8), (2, 9, 6, 17, 4), (2, 3, 0, 13, 8),
                                                 (4, 2, 5, 19, 3)):
        ids = torch.randint(1, vocab, (batch, length), generator=generator)
        probes.append((_Written(vocab, window, generator), ids, number, _Draw(), window))
    return probes

def observe_generate(function, model, token_ids, number, draw, window):
    """The ids, how often the model was asked and `draw` called, what `draw` got, and whether the prompt was changed.

    Passes count only where the model was shown more than one text: whoever shows it the prompt alone makes one mistake,
    whether in one pass or in many.
    """
    model.begin()
    draw.begin(model)
    given = token_ids.clone()
    try:
        output = function(model, given, number, draw, window)
    except (RuntimeError, ValueError) as error:
        if number or "non-empty" not in str(error):
            raise
        raise TypeError("expected the texts as they were where there's nothing to write (number is 0); yours has nothing "
                        "to put together. Begin with the texts, and put each new token at their ends") from error
    if output is None:
        return None
    ids = one_tensor(output, "ids")
    whole_numbers(ids, "ids", "draw gives whole numbers")
    passes = model.passes if len(model.texts) > 1 else 0
    return {"ids": ids, "passes": torch.tensor(passes), "draws": torch.tensor(draw.calls),
            "handed": torch.tensor(draw.handed), "changed": torch.tensor(not torch.equal(given, token_ids))}

def _lengths_written(case: Case) -> str:
    return (f"you return ids of the shape {tuple(case.ids.shape)}, expected {tuple(case.right['ids'].shape)}: "
            f"{case.inputs[1].shape[1]} that were given and {case.inputs[2]} new ones.")

def _first_off(case: Case) -> str:
    """The first id that isn't as expected."""
    if case.ids.shape != case.right["ids"].shape:
        return _lengths_written(case)
    off = (case.ids != case.right["ids"]).nonzero()
    if not len(off):
        return "your ids are right."
    column = int(off[:, 1].min())
    row = int(off[off[:, 1] == column][0, 0])
    given = case.inputs[1].shape[1]
    which = f"the new token {column - given} of text {row}" if column >= given else f"token {column} of text {row}"
    return (f"{which}, counted from 0, is id {case.ids[row, column]:.0f}, expected {case.right['ids'][row, column]:.0f}.")

def _asked(case: Case) -> str:
    return f"for {case.inputs[2]} new tokens you ask the model {case.passes:.0f} times."

def _is_long_enough(case: Case) -> bool:
    return case.ids.shape == case.right["ids"].shape

def _ids_right(case: Case) -> bool:
    return _is_long_enough(case) and bool((case.ids == case.right["ids"]).all())

def _only_handed(case: Case) -> str:
    return "your ids are right in this check, whose `draw` only looks at which logits are the largest."

GENERATE = ask(
    "13.7", generate,
    probes=generate_probes,
    observe=observe_generate,
    forbidden=("course_utils.language_model.LanguageModel.generate",),
    signature="generate(model, token_ids (batch, seq_len), number, draw, window) -> token_ids (batch, seq_len + number)",
    mistakes={
        "prompt-alone": M(
            _prompt_alone,
            _first_off,
            "The model is shown the same prompt each time, and never what it has written. Each new token has to be part of "
            "the text that the model reads next."),
        "all-at-once": M(
            _all_at_once,
            lambda case: f"you show the model a single text for {case.inputs[2]} new tokens, and {_first_off(case)}",
            "You fill the text up and take all rows of one pass. In training that works, since the tokens are there. Here "
            "each token must be drawn before the model can read it: one pass for each."),
        "last-token-only": M(
            _generate(seen=lambda ids, window: ids[:, -1:]),
            _first_off,
            "The model sees only the last token, like the bigram of section 1. Show it the text so far, up to `window` "
            "tokens."),
        "window-from-the-start": M(
            _generate(seen=lambda ids, window: ids[:, :window]),
            _first_off,
            "Short texts are right. But of a long one you keep the *first* tokens, so nothing of what's written is read. "
            "Keep the last: token_ids[:, -window:]."),
        "window-too-small": M(
            _generate(seen=lambda ids, window: ids[:, -max(1, window - 1):]),
            _first_off,
            "Short texts are right. Of a long one the model may read `window` tokens, and you show it one fewer."),
        "window-in-halves": M(
            _in_blocks,
            _first_off,
            "Where the text is longer than the window, you forget half of it at once. That's a way to use a cache, but the "
            "question asks for the last `window` tokens each time.", convention=True),
        "first-row": M(
            _generate(row=lambda logits: logits[:, 0]),
            _first_off,
            "You draw from the logits of the first position, which say what follows the first token. What comes next "
            "stands in the last row."),
        "row-before": M(
            _generate(row=lambda logits: logits[:, -2:][:, 0]),
            _first_off,
            "You draw from the last row but one: it says what follows the token before the last, which is known."),
        "most-probable": M(
            _generate(choose=lambda draw, logits: logits.argmax(dim=-1)),
            _first_off,
            "That's the model's most probable token, and `draw` would have taken another. How a token is chosen is the "
            "business of `draw`, so that the same loop writes greedily, boldly, or from a nucleus."),
        "softmax-first": M(
            _generate(choose=lambda draw, logits: draw(logits.softmax(dim=-1))),
            lambda case: f"{_only_handed(case)} But it gets probabilities, not logits.",
            "`draw` does the softmax. A second, of numbers between 0 and 1, makes all tokens about equally probable, and "
            "your model would write noise. Hand over the row as it is."),
        "scaled": M(
            _generate(choose=lambda draw, logits: draw(logits / 0.8)),
            lambda case: f"{_only_handed(case)} But it gets the model's last row multiplied or divided by a number.",
            "How boldly to draw is the business of `draw`: here it would be done twice. Hand over the row as it is."),
        "cut": M(
            _generate(choose=lambda draw, logits: draw(_top(logits, 5))),
            lambda case: f"{_only_handed(case)} But the smallest logits that it gets have been cut off.",
            "Which tokens may be drawn is the business of `draw`. Hand over the row as it is."),
        "one-text-for-all": M(
            _one_text_alone,
            _first_off,
            "Every text gets the token that was drawn for the first one. draw(logits) gives an id for each row."),
        "new-ones-alone": M(
            _generate(give=lambda ids, length: ids[:, length:]),
            _lengths_written,
            "You return the new tokens alone. The question asks for the text with its beginning."),
        "put-in-front": M(
            _generate(step=lambda ids, drawn: torch.cat([drawn[:, None], ids], dim=1)),
            _first_off,
            "The new token is put in front of the text. At the end: torch.cat([token_ids, drawn[:, None]], dim=1)."),
        "one-too-many": M(
            _generate(times=lambda number, ids: number + 1),
            _lengths_written,
            "You draw one token more than was asked for."),
        "one-too-few": M(
            _generate(times=lambda number, ids: number - 1),
            _lengths_written,
            "You draw one token fewer than was asked for."),
        "up-to-a-length": M(
            _generate(times=lambda number, ids: max(0, number - ids.shape[1])),
            _lengths_written,
            "You take `number` for the length of the whole text. It's how many tokens are new."),
    },
    rules=(
        R(
            lambda case: case.changed,
            lambda case: "your function has changed the ids that it was given.",
            "Whoever calls your function may still need the prompt: make a longer tensor with torch.cat."),
        R(
            lambda case: not _is_long_enough(case),
            _lengths_written,
            "Give back the prompt and, after it, `number` new tokens for each text."),
        R(
            lambda case: case.handed != AS_IT_IS and _ids_right(case),
            lambda case: f"{_only_handed(case)} But it doesn't get the model's last row.",
            "`draw` turns logits into probabilities itself. Hand over the last row as it is: with other numbers in it, the "
            "tokens get other probabilities, and your model would write something else."),
        R(
            lambda case: case.passes != case.right["passes"] and _ids_right(case),
            _asked,
            "The ids are right, but one pass for each new token is enough."),
        R(
            lambda case: case.draws == 0 and case.inputs[2] > 0,
            lambda case: f"{_first_off(case)} You never call `draw`.",
            "How a token is chosen is the business of `draw`, so that the same loop writes greedily, boldly, or from a "
            "nucleus."),
        R(
            lambda case: (case.ids != case.right["ids"]).any(),
            _first_off,
            "The first token that's off tells where to look. What does the model see at that moment (at most the last "
            "`window` tokens)? Which row do you draw from?"),
    ),
    hints=(
        "One token at a time: what does the model need to see, which row of its logits says what comes next, and where does "
        "the new id go?",
        "model(token_ids[:, -window:]) is (batch, seq_len, vocab); you need its last position. draw turns (batch, vocab) "
        "into (batch).",
        "token_ids = torch.cat([token_ids, draw(model(token_ids[:, -window:])[:, -1])[:, None]], dim=1), `number` times.",
    ),
)

# ---------------------------------------------------------------- 13.8 one step of training

def train_step(model, optimizer, stream, starts, length):
    token_ids = torch.stack([stream[i:i + length] for i in starts])        # (batch, length)
    logits = model(token_ids[:, :-1])                                      # (batch, length - 1, vocab)
    loss = F.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()

def _pieces(stream, starts, length):
    return torch.stack([stream[i:i + length] for i in starts])

def _step(cut=_pieces, asked=lambda logits, ids: (logits[:, :-1], ids[:, 1:]), zero="before", clip="norm", step=True,
          give="number", reduction="mean", softmax=False):
    """A step with one thing changed."""
    def one(model, optimizer, stream, starts, length):
        token_ids = cut(stream, starts, length)
        def loss_now():
            logits, targets = asked(model(token_ids), token_ids)
            logits = logits.softmax(dim=-1) if softmax else logits
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)
        loss = loss_now()
        if zero == "before":
            optimizer.zero_grad()
        loss.backward()
        norm = math.inf
        if clip in ("norm", "always"):
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        elif clip == "values":
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
        if clip == "always" and norm < 1:
            for parameter in model.parameters():
                parameter.grad /= norm
        if step:
            optimizer.step()
        return {"number": loss.item(), "tensor": loss, "after": loss_now().item()}[give]
    return one

class _Follows(nn.Module):
    """A tiny language model: what follows each token, and how often each occurs. `size` times larger logits."""

    def __init__(self, size: float, generator: torch.Generator):
        super().__init__()
        self.size = size
        self.after = nn.Parameter(torch.randn(9, 9, generator=generator) / max(size, 1))
        self.often = nn.Parameter(torch.randn(9, generator=generator) / max(size, 1))

    def forward(self, token_ids):                                          # (batch, seq_len)
        if token_ids.dim() != 2:
            raise TypeError(f"expected pieces of shape (batch, length), got {tuple(token_ids.shape)}: the model was given "
                            "these")
        return self.size * (self.after[token_ids] + self.often)            # (batch, seq_len, vocab)

TRAIN_RATE = 0.3

def train_probes(generator: torch.Generator) -> list[tuple]:
    """A model, a text, the beginnings of the pieces of three steps, their length.

    The gradients are far longer than 1, with single numbers above 1, then far shorter. One beginning is the very last that
    leaves a whole piece.
    """
    probes = []
    for size, length in ((30.0, 7), (0.1, 5)):
        stream = torch.randint(1, 9, (60,), generator=generator)
        starts = [torch.randint(1, 60 - length, (4,), generator=generator) for _ in range(3)]
        starts[1][2] = 60 - length
        probes.append((_Follows(size, generator), stream, starts, length))
    return probes

def observe_training(function, model, stream, several, length):
    """The losses of three steps, the weights after each, how long each step was, how many losses were tensors."""
    optimizer = torch.optim.SGD(model.parameters(), lr=TRAIN_RATE)
    losses, weights, lengths, tensors = [], [], [], 0
    for starts in several:
        before = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        try:
            loss = function(model, optimizer, stream, starts, length)
        except RuntimeError as error:
            if "stack expects each tensor" not in str(error):
                raise
            raise TypeError("expected pieces of `length` tokens; yours differ in length, as one runs past the end of the "
                            "text. `length` counts the last target, too: cut stream[i:i + length] once, and hand it to the "
                            "model and to causal_loss, which does the shift") from error
        now = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        if loss is None:
            if not losses and torch.equal(now, before):
                return None
            raise TypeError("expected the loss as a number, loss.item(); got None")
        tensors += torch.is_tensor(loss)
        losses.append(float(one_tensor(loss, "loss").detach() if torch.is_tensor(loss) else loss))
        weights.append(now)
        lengths.append((now - before).norm() / TRAIN_RATE)
    return {"losses": torch.tensor(losses), "weights": torch.stack(weights), "lengths": torch.stack(lengths),
            "tensors": torch.tensor(tensors)}

TRAIN = ask(
    "13.8", train_step,
    probes=train_probes,
    observe=observe_training,
    signature="train_step(model, optimizer, stream (tokens,), starts (batch,), length) -> the mean loss before the step, as "
        "a number; model(ids (batch, seq_len)) gives logits (batch, seq_len, vocab)",
    mistakes={
        **mistakes_of_a_step(_step, "pieces"),
        "not-shifted": M(
            _step(asked=lambda logits, ids: (logits, ids)),
            losses_of_steps,
            "Each position is asked for its own token, which the model has just read. Ask it for the next (13.1)."),
        "not-shifted-cut": M(
            _step(asked=lambda logits, ids: (logits[:, :-1], ids[:, :-1])),
            losses_of_steps,
            "Each position is asked for its own token, which the model has just read: the targets must lose their first "
            "token, not their last (13.1)."),
        "wrong-way": M(
            _step(asked=lambda logits, ids: (logits[:, 1:], ids[:, :-1])),
            losses_of_steps,
            "Each position is asked for the token before it. Inputs and targets have changed places (13.1)."),
        "shifted-twice": M(
            _step(asked=lambda logits, ids: (logits[:, :-2], ids[:, 2:])),
            losses_of_steps,
            "Each position is asked for the token after next: the text was shifted twice. Your causal_loss does the shift, "
            "so model and loss get the same whole pieces."),
        "only-the-last": M(
            _step(asked=lambda logits, ids: (logits[:, -2:-1], ids[:, -1:])),
            losses_of_steps,
            "You ask for the last token of each piece alone. Under the causal mask every position can be asked at once."),
        "too-long": M(
            _step(cut=lambda stream, starts, length: _pieces(F.pad(stream, (0, 1), value=1), starts, length + 1)),
            losses_of_steps,
            "Your pieces have one token too many. Their `length` counts the last target, too."),
        "too-short": M(
            _step(cut=lambda stream, starts, length: _pieces(stream, starts, length - 1)),
            losses_of_steps,
            "Your pieces have one token too few: stream[i:i + length] leaves the end out by itself."),
        "one-later": M(
            _step(cut=lambda stream, starts, length: _pieces(F.pad(stream, (0, 1), value=1), starts + 1, length)),
            losses_of_steps,
            "Your pieces begin one token after `starts`."),
        "from-the-beginning": M(
            _step(cut=lambda stream, starts, length: stream[: len(starts) * length].view(-1, length)),
            losses_of_steps,
            "You take the beginning of the text, whatever `starts` says. In training that would show the model the same few "
            "pieces 600 times."),
        "one-piece": M(
            _step(cut=lambda stream, starts, length: _pieces(stream, starts[:1], length)),
            losses_of_steps,
            "Only the first piece is read. There's one for each number in `starts`."),
        "summed": M(
            _step(reduction="sum"),
            losses_of_steps,
            "That is the sum over all tokens. Take the mean, which cross_entropy gives if you don't ask for anything else."),
    },
    rules=(
        R(
            lambda case: case.lengths.max() < 1e-6,
            moved_by_steps,
            "backward makes the gradients, step uses them; clear the old ones before backward."),
        R(
            lambda case: (case.losses[0] - case.right["losses"][0]).abs() > 1e-4,
            losses_of_steps,
            "The very first loss is off, before anything has moved. Are the pieces stream[i:i + length], one for each i in "
            "`starts`? Is each position asked for the next token?"),
        R(
            lambda case: (case.lengths - case.right["lengths"]).abs().max() > 1e-4,
            lengths_of_steps,
            "The loss is right at first. What happens to the gradients between backward and step, and are those of the "
            "pieces before gone?"),
        R(
            lambda case: (case.losses - case.right["losses"]).abs().max() > 1e-4,
            losses_of_steps,
            "The first loss is right, the others aren't. In which direction do the weights move?"),
        R(
            lambda case: case.tensors > 0,
            losses_as_tensors,
            "Return the loss as a number: loss.item()."),
    ),
    hints=(
        "Six things, in this order: cut the pieces out, loss, clear, backward, clip, step. The last four are those of 8.8.",
        "token_ids = torch.stack([stream[i:i + length] for i in starts]), and your causal_loss takes the model's logits.",
        "optimizer.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.0); optimizer.step()",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: twelve-and-thirty
  taught: "13"
  question: On the same file, model A has a perplexity of 12 and model B of 30. A token of A is 2 bytes long on
    average, a token of B 3 bytes. Which model predicts the file better?
  options:
    - text: "A: it hesitates between 12 tokens, B between 30."
      remark: B's tokens are longer, so there are more ways for each of them to go on, and fewer of them to guess.
    - text: "B: it needs 1.64 bits per byte, and A needs 1.79."
      right: true
      remark: log₂ 30 = 4.91 bits for 3 bytes, against log₂ 12 = 3.58 bits for 2. Once the bytes are known,
        perplexities can be compared after all.
    - text: "Nobody can say: perplexities of two tokenizers can't be compared."
      remark: As they are they can't. But the lengths of the tokens are given, and bits per byte can be worked out
        from both.
- name: hundred-at-once
  taught: "13"
  question: In training, one pass gives the logits of all positions. So someone wants to generate 100 tokens in one
    pass. They append 99 padding tokens to the prompt and draw one token from each of the last 100 rows of logits.
    What do they get?
  options:
    - text: The same as with one pass for each token, only faster.
      remark: In training the text is already there, and every position sees the real tokens before it. Here they
        haven't been drawn yet.
    - text: The most probable token 100 times, because all the rows are equal.
      remark: The rows needn't be equal, because each one sees more padding than the one before. None of them sees
        what the others drew.
    - text: One sensible token, and then tokens that take no notice of each other.
      right: true
      remark: Only the row of the prompt's last token has seen everything that comes before its answer. The others
        have seen padding in its place.
- name: token-four-hundred
  taught: "13"
  question: With 399 tokens in the cache, the model reads one more. Which work is still larger than it would be for
    the first token?
  options:
    - text: Comparing its query with all the keys, and mixing the values.
      right: true
      remark: There are 400 keys and 400 values now. The rest of the work is for one token, so the cost still grows
        with the length, only far more slowly than without a cache.
    - text: Projecting queries, keys and values.
      remark: Only the new token is projected. The other keys and values come from the cache, and the old queries are
        never needed again.
    - text: The feed-forward layers, because they work on the whole text, and the cache holds only keys and values.
      remark: A feed-forward layer works on each position alone (notebook 07). Nothing of the earlier positions has to
        be computed again.
- name: bracket-fifty-back
  taught: "13"
  question: A 5-gram model is trained on a hundred times as much code. Will it learn which of `)`, `]` and `}` closes
    a bracket that was opened 50 tokens ago?
  options:
    - text: Only as far as the last four tokens tell which it was.
      right: true
      remark: It's a matter of what the model is given, not of how much it has seen. More code helps only with what
        the last four tokens decide.
    - text: Yes, because with more code it has counted more brackets.
      remark: It counts what follows four tokens. Four tokens that follow a `(` 50 tokens ago are counted together
        with the same four after a `[`.
    - text: Not with plain counts, but with Kneser–Ney smoothing.
      remark: Smoothing falls back on fewer than four tokens where counts are rare. It never looks at more.
- name: untied
  taught: "13"
  question: "`vocab_size=4096`, `d_model=128`, tied weights. You untie them. What changes?"
  options:
    - text: Nothing but the name under which the checkpoint stores them.
      remark: Tied, one matrix both looks tokens up and scores them. Untied, these are two, and they're trained apart.
    - text: The model gets 4,096 more parameters, a bias for each token.
      remark: Neither matrix has a bias. What's added is a row of 128 numbers for each token.
    - text: The model gets 524,288 more parameters, a second matrix.
      right: true
      remark: 4,096 · 128. A whole block with `d_ff=512` has fewer than half as many.
- name: loss-near-zero
  taught: "04"
  question: Someone forgets the causal mask. The training loss falls to nearly 0. What will the generated text be
    like?
  options:
    - text: Very good, as the loss says.
      remark: The loss was measured with the answer in view. Position i could attend to token i + 1, which is its own
        target.
    - text: Poor, because it never learned to predict without seeing the answer.
      right: true
      remark: It has learned to look one position to the right. When it generates, there's nothing there yet.
    - text: A copy of the training text, because the model has overfitted.
      remark: Held-out text would give a loss near 0 as well. Nothing was learned by heart; the answer was read off.
"""

WARM_UP = """
- name: seeds-apart-no-winner
  taught: "12"
  question: Two models were trained with three random seeds each. Their means differ by less than the seeds of either
    do among themselves. What may you say?
  options:
    - text: Nothing yet about which is better; the difference is no larger than luck.
      right: true
      remark: Look at the interval of the difference before you name a winner (notebook 12).
    - text: The one with the higher mean is better, since a mean evens out luck.
      remark: The mean of three still moves by more than half of what a single seed does.
    - text: That they're equally good.
      remark: You haven't shown that either. Three seeds can't see a small difference.
- name: nothing-is-unknown
  taught: "02b"
  question: A tokenizer of byte pairs was trained on English reviews. Now it reads Python code with a name that it has
    never seen. What does it make of it?
  options:
    - text: "`<unk>`, because the name isn't in its vocabulary."
      remark: That's what a vocabulary of words does (notebook 02). Byte pairs don't need it.
    - text: Several tokens, in the worst case one for each byte.
      right: true
      remark: Every byte has an id, so nothing is ever unknown and nothing is lost. Rare names only take more tokens.
    - text: An error, because code isn't English.
      remark: It sees bytes, and any text is bytes.
- name: who-may-see
  taught: "04"
  question: Under the causal mask, a text has five tokens. How many tokens can position 2, counted from 0, attend to?
  options:
    - text: Two, those before it.
      remark: A token also sees itself. Position 0 would otherwise see nothing at all.
    - text: Three, those before it and itself.
      right: true
      remark: Positions 0, 1 and 2. What comes later gets no weight.
    - text: Five, since attention looks at the whole text.
      remark: Without a mask it does. The mask takes everything away that comes later.
"""
