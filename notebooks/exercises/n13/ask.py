"""Exercises of notebook 13, a language model. The answers are beside it, in `answers`; 13.3 to 13.5 are in `generating`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap, worst_row
from course_exercises.n13 import generating, probes

# ---------------------------------------------------------------- 13.1 the shift

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


SHIFT = Exercise(
    probes=probes.shift_probes, observe=probes.observe_shift,
    signature="inputs_and_targets(token_ids (batch, seq_len)) -> inputs (batch, seq_len - 1), targets (batch, seq_len - 1)",
    mistakes=(
        Mistake("not-shifted", _rows, "Each token is its own target. A model learns that by copying its input; the "
                "loss falls to nearly 0, and what it generates repeats one token."),
        Mistake("not-shifted-whole", _rows, "Both are the text itself. Some libraries want that and shift inside the "
                "model, but `LanguageModel` doesn't: here a model would learn to copy."),
        Mistake("wrong-way", _rows, "That asks each position for the token before it, which the model has already "
                "read. Inputs and targets have changed places."),
        Mistake("wrapped", _last_target, "roll() brings the first token round to the end, so the last position is asked for "
                "the first token of its own text. Nothing follows the last token: cut instead."),
        Mistake("wrapped-backwards", _rows, "roll() by +1 moves the text to the right: each position is asked for the "
                "token before it, and the first for the last one."),
        Mistake("inputs-whole", _lengths, "The targets are right. The last token has no "
                "successor here, so it can't be an input: cut it off."),
        Mistake("targets-whole", _lengths, "The inputs are right. The first token is never "
                "predicted, since nothing comes before it: it can't be a target."),
        Mistake("two-on", _rows, "The targets are two tokens ahead. The inputs end one token too early, and the "
                "targets begin one too late."),
        Mistake("over-texts", _lengths, "You shift along the first dimension, from text to text. "
                "Tokens follow one another along the second: [:, …]."),
        Mistake("only-the-last", _lengths, "Only the last token of each text is asked for. A "
                "causal model answers at every position at once, so each one gets its own target."),
        Mistake("padded", _last_target, "To keep the length you filled up with 0 at the end. 0 is an id like any other, and "
                "the model would learn to predict it after every text. Cut the last input off instead."),
        Mistake("marked", _lengths, "Your last target is -100, which cross_entropy skips. That "
                "works in many libraries, but here both parts are one token shorter than the text.", convention=True),
    ),
    properties=(
        Property(lambda case: not torch.equal(case.got["inputs"], case.right["inputs"]), _rows, "The inputs are the "
                 "text without its last token, in the same order, and nothing else is changed."),
        Property(lambda case: not torch.equal(case.targets, case.right["targets"]), _rows, "The inputs are right. "
                 "Under each of them belongs the token that follows it in the text."),
    ),
    hints=(
        "Write the text 5, 9, 2, 7 on paper. What is the model given first, and what must it answer? What comes last?",
        "From four tokens come three pairs: (5, 9), (9, 2), (2, 7). Read the first numbers of the pairs, then the second.",
        "return token_ids[:, :-1], token_ids[:, 1:]",
    ),
)

# ---------------------------------------------------------------- 13.2 the causal loss

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


CAUSAL_LOSS = Exercise(
    probes=probes.loss_probes, observe=probes.observe_loss,
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
    mistakes=(
        Mistake("not-shifted", _loss_seen, "Position i is compared with token i, which it has read. A model would learn to "
                "copy. It must be compared with token i + 1."),
        Mistake("not-shifted-cut", _loss_seen, "Logits and targets are both cut at the end, so position i is still "
                "compared with token i. The targets must lose their first token."),
        Mistake("wrong-way", _loss_seen, "The logits lose their first position and the targets their last: that asks each "
                "position for the token before it."),
        Mistake("shifted-twice", _loss_seen, "Each position is asked for the token after next. One shift is enough: has "
                "somebody else shifted already?"),
        Mistake("wrapped", _loss_seen, "With roll() the last position of each text is asked for the first token of that "
                "text. Nothing follows the last token: leave its logits out."),
        Mistake("only-the-last", _loss_seen, "Only the last token of each text is asked for, as a classifier is asked once. "
                "A causal model answers at every position, and all those answers train it."),
        Mistake("across-texts", _loss_seen, "You shift after flattening, so the last position of each text is asked for the "
                "first token of the next text. Shift first, along the positions."),
        Mistake("not-transposed", _sizes, "So it stops with an error. Hand over the dimensions as (batch, vocab, position), "
                "with transpose(1, 2), or flatten logits and targets to one row for each position."),
        Mistake("reshaped", _loss_seen, "cross_entropy wants (batch, vocab, position), and reshape() doesn't get you "
                "there: it keeps the numbers in order and cuts them elsewhere. Use transpose(1, 2), or flatten to "
                "(batch · position, vocab)."),
        Mistake("padding-counted", _of_answers, "All answers count in your mean, padding too. A trained model is "
                "nearly sure that padding follows padding, so its loss would look better than it is."),
        Mistake("padding-in-the-divisor", _of_answers, "Padding is left out of the sum, but you still divide by all "
                "positions. Divide by the number of answers that count."),
        Mistake("mask-of-the-inputs", _of_answers, "You leave out the positions whose input is pad_id. What counts is the "
                "answer: the end of a text isn't asked what the padding will be, and the first token may be asked for after "
                "a separator."),
        Mistake("pad-is-zero", _of_answers, "It happens where `pad_id` isn't 0. Leave out the answers that equal pad_id, "
                "whatever it is; 0 can be an ordinary token."),
        Mistake("row-means", _loss_seen, "You average each text first, and then the texts. A token in a short text then "
                "counts for more than one in a long text. Each token counts the same: one sum, divided once."),
        Mistake("row-means-of-some", _loss_seen, "You average each text first, and then the texts; one without answers does "
                "no harm. But an answer in a short text counts for more than one in a long text: add up all, divide once."),
        Mistake("position-means", _loss_seen, "You average over the batch first, at each position, and then the positions. "
                "Near the end of the texts few answers are left, and each of those then counts for more than the others."),
        Mistake("summed", lambda case: f"{_loss_seen(case)} You add up {_counted(case)} answers.", "A mean is asked for. "
                "With a sum, a longer batch would take a larger step."),
        Mistake("divided-by-texts", lambda case: f"{_loss_seen(case)} {_counted(case)} answers count, in "
                f"{len(case.inputs[1])} text{'s' * (len(case.inputs[1]) != 1)}.", "You divide the sum by the number of "
                "texts. The mean is asked for over the answers: a batch of longer texts would take a larger step."),
        Mistake("first-tokens-in-the-divisor", _of_answers, "You divide by the number of real tokens. But the first token "
                "of a text is never asked for, so there are fewer answers than tokens: count the targets."),
        Mistake("bits", _loss_seen, "Your loss is in bits: you take the logarithm to base 2. In nats it's the natural "
                "logarithm, as cross_entropy gives it."),
        Mistake("no-minus", _loss_seen, "The logarithm of a probability is negative, and the loss is minus that. Trained "
                "with this sign, the model would learn to avoid the right token."),
        Mistake("perplexity", _loss_seen, "That is the perplexity, e to the power of the loss. Return the loss itself."),
        Mistake("over-positions", _loss_seen, "Your softmax runs over the positions. At each position the probabilities of "
                "all tokens in the vocabulary sum to one: dim=-1."),
        Mistake("over-positions-before", _loss_seen, "Your softmax runs over the positions, all seq_len of them. It should "
                "run over the vocabulary, the last dimension: one distribution at each position."),
        Mistake("over-texts", _loss_seen, "Your softmax runs over the texts of the batch, so a text's loss depends on what "
                "it's batched with. The tokens of the vocabulary compete: dim=-1."),
        Mistake("softmax-first", _loss_seen, "There are two softmaxes: cross_entropy and log_softmax want logits, and get "
                "probabilities here. Such a loss can never get near 0."),
        Mistake("nll-of-logits", _loss_seen, "You take the logit of the right token as if it were ln p. The softmax is "
                "missing, so raising all logits would lower the loss."),
        Mistake("nll-of-probabilities", _loss_seen, "That is minus the mean probability of the right tokens. The logarithm "
                "is missing."),
        Mistake("logarithm-of-the-mean", _loss_seen, "You average the probabilities and then take the logarithm. Take the "
                "logarithm of each one first: then a token that was thought impossible costs a lot."),
        Mistake("cut-off", _no_gradient, "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it "
                "couldn't be trained. Return a tensor; call item() where you print it."),
    ),
    properties=(
        Property(lambda case: isinstance(case.loss, str), _sizes, "It stops with an error there. Bring the vocabulary to "
                 "the second dimension with transpose(1, 2), or flatten; and cut both sides as in exercise 13.1."),
        Property(lambda case: case.loss < -1e-6, _loss_seen, "It's below 0. Minus the logarithm of a probability never is."),
        Property(lambda case: _is_level(case) and gap(case, "loss") > 1e-3, _loss_seen, "All logits are 0 here, so each of "
                 "the nine tokens has probability 1/9, and every answer costs ln 9. Is it a mean, with the natural "
                 "logarithm, over the vocabulary?"),
        Property(lambda case: _sure(case) and gap(case, "loss") > 1e-3, _loss_seen, "Here the model is sure of each next "
                 "token, and right, so it costs nothing. Either position i isn't compared with token i + 1, or something "
                 "counts that shouldn't: padding, or the last position."),
        Property(lambda case: case.inputs[2] == 0 and case.right["loss"] < 20 and gap(case, "loss") > 1e-3, _of_answers,
                 "Take the smallest case and work it out: position 0 against token 1, minus the logarithm of its softmax "
                 "over the vocabulary. Then ask which answers count."),
        Property(lambda case: (case.inputs[1][:, 0] == case.inputs[2]).all() and gap(case, "loss") > 1e-3, _of_answers,
                 "Texts that only end with padding are right. Here each text also begins with pad_id, as a separator, and "
                 "one has it in the middle. The token after it counts: only a target that is pad_id is left out."),
        Property(lambda case: case.inputs[2] > 256 and gap(case, "loss") > 1e-3, _of_answers, "Small vocabularies are "
                 "right. This one has 1000 tokens, few of which occur, and pad_id is 700. Does your softmax run over all of "
                 "them? And do you compare with == or !=? `is` asks whether two numbers are one object, which Python makes "
                 "sure of for small ones only."),
        Property(lambda case: case.right["loss"] > 20 and case.loss < 0.99 * case.right["loss"], _loss_seen, "The other "
                 "losses are right; here the model is sure and wrong. A small number added before the logarithm, or a "
                 "clamp, puts an upper limit on the loss. Take it from the logits: log_softmax or cross_entropy."),
        Property(lambda case: gap(case, "loss") > 1e-3, _loss_seen, "The other losses are right. Is this one taken from the "
                 "logits, with log_softmax or cross_entropy?"),
        Property(lambda case: gap(case, "gradient for the logits") > 1e-3, _gradient_seen, "Part of the way from the logits "
                 "to the loss is cut off or counted twice."),
    ),
    hints=(
        "Two cuts first: which position has no answer in this batch, and which token is never asked for? (Exercise 13.1)",
        "Then each position's cost: cross_entropy on (n, vocab) and (n,), or log_softmax and gather. Which answers count?",
        "F.cross_entropy(logits[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=pad_id)",
    ),
)

# ---------------------------------------------------------------- 13.6 bits per byte

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


BITS = Exercise(
    probes=probes.bits_probes, observe=probes.observe_bits, forbidden=("course_utils.language_model.bits_per_byte",),
    signature="bits_for_each_byte(mean_loss, num_tokens, text) -> bits per byte",
    not_finite=dict.fromkeys(("inf", "-inf", "NaN"), "No float holds e to the power of a long text's cost, or of minus "
                             "that. A loss is a logarithm already: to change its base, divide it by math.log(2)."),
    mistakes=(
        Mistake("per-character", _bits, "You divide by the number of characters. 'ö' takes two bytes in UTF-8, and '🙂' "
                "four: count text.encode(\"utf-8\")."),
        Mistake("nats", _bits, "You return the nats for each byte. The bytes are right; what's missing is the change of "
                "unit: one bit is ln 2 = 0.693 nats."),
        Mistake("nats-per-character", _bits, "You return the nats for each character, so two steps are missing: from nats "
                "to bits (one bit is ln 2 nats), and from characters to bytes."),
        Mistake("per-token", _bits, "That is bits per token, which doesn't compare tokenizers: longer tokens are harder to "
                "guess, but fewer of them are needed. Bytes are the same for everybody."),
        Mistake("mean-per-character", _bits, "Two things: you spread the cost of a single token over the whole text, and "
                "you count characters, not bytes."),
        Mistake("mean-per-byte", _bits, "You spread the cost of a single token over all bytes. mean_loss is the mean over "
                "the tokens: what does the whole text cost?"),
        Mistake("per-token-and-byte", _bits, "You divide by the number of tokens, but mean_loss is a mean already. The "
                "whole text costs mean_loss times num_tokens."),
        Mistake("mean-per-token", _bits, "You divide by the number of tokens, but mean_loss is a mean already, and no bytes "
                "are in your answer."),
        Mistake("multiplied", _bits, "You multiply by ln 2. A nat is more than a bit (1.443 bits), so the number in bits is "
                "the larger one: divide by ln 2."),
        Mistake("whole-text", _bits, "That is how many bits the whole text costs. Divide by its bytes."),
        Mistake("upside-down", _bits, "That is bytes per bit. Divide the bits by the bytes."),
        Mistake("bytes-per-token", _bits, "You multiply by the bytes per token. Longer tokens spread their cost over more "
                "bytes: divide."),
        Mistake("times-the-bytes", _bits, "You multiply the cost of the whole text by its bytes. What does each byte cost?"),
        Mistake("logarithm-of-the-loss", _bits, "You take log2 of the loss. The loss is a logarithm already, with another "
                "base: to change the base, divide by ln 2."),
        Mistake("perplexity", _bits, "That is the perplexity, which counts tokens. Two tokenizers can't be compared by it."),
        Mistake("utf-16", _bits, "You count the bytes of another encoding. In UTF-8, a letter of plain code takes one "
                "byte."),
        Mistake("divided-by-eight", _bits, "You divide by 8 as well. A byte holds 8 bits, but the question is how many bits "
                "the model needs for each byte; with no model at all it would be 8."),
    ),
    properties=(
        Property(lambda case: case.answer < 0, _bits, "A cost is never negative."),
        Property(lambda case: case.inputs[2].isascii() and len(case.inputs[2]) > 1 and gap(case) > 1e-3
                 and _is_whole(_implied(case)), _of_other_bytes, "If you have the bits right, "
                 "the bytes are miscounted: every character counts, spaces and line ends too, and nothing else does. If you "
                 "divide by len(text.encode()), look at the bits again."),
        Property(lambda case: case.inputs[2].isascii() and gap(case) > 1e-3, _bits, "Every character here is one byte, so "
                 "the bits are wrong. How many nats does the whole text cost, and how many bits is that?"),
        Property(lambda case: gap(case) > 1e-3, _bits, "For plain code your numbers are right. Here some characters take "
                 "two bytes or more: count the bytes of UTF-8."),
    ),
    hints=(
        "Three steps: the cost of the whole text in nats, then in bits, then for each byte.",
        "math.log(2) nats are one bit. And print len(\"ö\") and len(\"ö\".encode(\"utf-8\")).",
        "mean_loss * num_tokens / math.log(2) / len(text.encode(\"utf-8\"))",
    ),
)

EXERCISES = (SHIFT, CAUSAL_LOSS, generating.NUCLEUS, generating.CACHE, generating.REACH, BITS)
