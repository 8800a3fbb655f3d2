"""Exercises of notebook 17, the encoder–decoder. The answers are in `answers`; 17.4 to 17.6 are in `writing`."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import (
    EACH_MAXIMUM,
    HIDDEN_AT_THE_END,
    gap,
    hidden_at_the_end,
    row_sums,
    worst_row,
)
from course_exercises.n17 import probes, writing

# ---------------------------------------------------------------- 17.1 cross-attention


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


CROSS = Exercise(
    probes=probes.cross_probes, observe=probes.observe_cross,
    forbidden=("course_utils.attention.scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention"),
    signature="cross_attention(x (batch, target, d), memory (batch, source, d), W_q, W_k, W_v (d, d_head), source_mask "
    "(batch, source)) -> context (batch, target, d_head), weights (batch, target, source)",
    not_finite={
        "inf": f"exp of a large score overflows: call softmax. {EACH_MAXIMUM}",
        "-inf": "Minus infinity belongs on the scores of padding, before the softmax; a weight is never below 0.",
        "NaN": "A softmax over nothing but minus infinity is NaN. Does yours run over the source, the last dimension? And "
        "does the mask hide the padding, not the words? " + EACH_MAXIMUM},
    mistakes=(
        Mistake("weights-first", _shape, "You return the weights first. Expected: the context, then the weights."),
        Mistake("sides-swapped", _largest, "The sides are exchanged: the source asks the words that are being written. The "
                "decoder needs a row for each of its own words, so its words give the queries."),
        Mistake("self-attention", _largest, "Queries, keys and values all come from the decoder, and the memory isn't used. "
                "That's self-attention; such a model couldn't know what it translates."),
        Mistake("keys-from-the-decoder", _largest, "The keys come from the decoder's side. A query is compared with the "
                "words that could be looked up, and those are in the memory."),
        Mistake("values-from-the-decoder", _context, "The weights are right, but they mix the decoder's own vectors. What "
                "is fetched must come from the memory, too."),
        Mistake("padding-seen", _on_padding, "The source's padding is attended to, so a translation would depend on the "
                "sentences that it's batched with."),
        Mistake("mask-inverted", _on_padding, "True means a real word here. In nn.Transformer's key_padding_mask it means "
                "the opposite."),
        Mistake("masked-afterwards", row_sums, "You mask after the softmax, so the weight of the padding is lost. Mask the "
                "scores before it."),
        Mistake("filled-with-zero", _on_padding, "A score of 0 isn't a weight of 0: exp(0) is 1. Fill with minus infinity."),
        Mistake("over-queries", row_sums, "Your softmax runs over the target words. Each target word spreads its weight "
                "over the source: the last dimension."),
        Mistake("no-scaling", _weights, "The scores aren't divided by the root of the head's width, so the softmax is "
                "too sharp."),
        Mistake("scaled-by-the-head", _weights, "You divide by the width itself. It's the square root of it."),
        Mistake("scaled-by-d", _weights, "You divide by the root of the model's width, d. The dot products are of vectors "
                "of width d_head."),
        Mistake("keys-and-values-exchanged", _weights, "W_k and W_v are exchanged: W_k makes the keys, which a query is "
                "compared with, and W_v the values, which are mixed."),
        Mistake("causal", _weights, "You put the causal mask over the source, too. The whole source is there from the "
                "start: only its padding is hidden."),
    ),
    properties=(
        Property(lambda case: isinstance(case.weights, str) or case.weights.shape != case.right["weights"].shape, _shape,
                 "They need a row for each target word and a column for each source word: which side asks?"),
        Property(lambda case: (case.weights.sum(-1) - 1).abs().max() > 1e-3, row_sums, "Each row spreads a weight of one."),
        Property(lambda case: hidden_at_the_end(case.weights, case.inputs[5]), _on_padding, HIDDEN_AT_THE_END),
        Property(lambda case: (case.weights * ~case.inputs[5][:, None]).max() > 1e-4, _on_padding, "Padding must get no "
                 "weight: fill its scores with -inf before the softmax. A modest number such as -10 isn't low enough where "
                 "the words' scores are lower."),
        Property(lambda case: gap(case, "weights") > 1e-3, _weights, "Each row sums to one over real words. Which vectors "
                 "are compared, by which matrices, and how is the product scaled?"),
        Property(lambda case: gap(case, "context") > 1e-3, _context, "The weights are right. Mix the values with them."),
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


SHIFT = Exercise(
    probes=probes.shift_probes, observe=probes.observe_shift,
    signature="read_asked_mask(target_ids (batch, target + 1)) -> read (batch, target), asked (batch, target), mask "
    "(target, target)",
    not_finite=dict.fromkeys(("inf", "-inf"), "That's a mask to add to the scores. Here it's one of True and False: True "
                             "where a row may look."),
    mistakes=(
        Mistake("not-shifted", _rows, "Each word is asked for where it's read, so the model learns to copy its own "
                "input, and its loss falls to nearly 0."),
        Mistake("asked-not-begun", _rows, "Both begin after <bos>. Each word is asked for where it's read, and "
                "nothing is there to read before the first word."),
        Mistake("exchanged", _rows, "The two are exchanged: each row is asked for the word before it."),
        Mistake("wrapped", _rows, "roll() by +1 moves the words to the right, and the last id comes round to the "
                "front. The word asked for must come after the one that's read."),
        Mistake("no-mask", _mask, "Every row sees all words, the one that it's asked for included. The training loss would "
                "be wonderful, and the translations useless."),
        Mistake("not-itself", _mask, "A row may not look at the word that it has just read. It's the last word written, and "
                "the next one hangs on it; the first row is left with nothing."),
        Mistake("one-ahead", _mask, "Each row sees one word too far, and that's the very word that it's asked for."),
        Mistake("upside-down", _mask, "Each row sees itself and what comes after it, so the mask is turned round: rows are "
                "who looks, columns what's looked at."),
        Mistake("inverted", _mask, "It's the right mask in PyTorch's other convention, as nn.Transformer takes it: True = "
                "hidden. In this course True means may look.", convention=True),
        Mistake("only-itself", _mask, "Each row sees only itself, so the model forgets all words but the last."),
    ),
    properties=(
        Property(lambda case: any(case.got[name].shape != case.right[name].shape for name in case.right), _lengths,
                 "Everything has one row less than target_ids."),
        Property(lambda case: gap(case, "read") > 0 or gap(case, "asked") > 0, _rows, "What's asked for at a position "
                 "is the word that follows the one that's read there. Padding may stay."),
        Property(lambda case: gap(case, "mask") > 0, _mask, "Row i may look at columns 0 to i."),
    ),
    hints=(
        "Write <bos> la voiture <eos> on paper. What does the decoder read first, and what must it say then?",
        "read lacks the last id, asked lacks the first. torch.ones(n, n, dtype=torch.bool) is a mask that hides nothing.",
        "return target_ids[:, :-1], target_ids[:, 1:], causal_mask(target_ids.shape[1] - 1)",
    ),
)

# ---------------------------------------------------------------- 17.3 a smoothed loss


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


SMOOTHED = Exercise(
    probes=probes.smoothing_probes, observe=probes.observe_smoothed,
    forbidden=("torch.nn.functional.cross_entropy", "course_utils.encoder_decoder.smoothed_cross_entropy"),
    signature="smoothed_loss(logits (batch, target, vocab), targets (batch, target), smoothing, pad_id) -> mean loss",
    not_finite={
        "inf": "The logarithm of a probability that was rounded to 0 is infinite, and exp of a large logit overflows. Take "
        f"log_softmax of the logits. {EACH_MAXIMUM}",
        "-inf": "The logarithm of a probability that was rounded to 0 is −inf, and the loss is minus that. Take "
        f"log_softmax of the logits. {EACH_MAXIMUM}",
        "NaN": "exp of a large logit overflows, or a probability was rounded to 0, and 0 times the −inf of its logarithm is "
        f"NaN. Take log_softmax of the logits. {EACH_MAXIMUM}"},
    mistakes=(
        Mistake("over-the-others", _vocabulary, "You spread the smoothing over the other words alone, vocab - 1 of them. "
                "That's done, too, but here the right word gets its part of it like every other.", convention=True),
        Mistake("others-too-little", _vocabulary, "Each other word gets smoothing / vocab, but the right one doesn't, so "
                "your target's probabilities sum to less than one."),
        Mistake("on-top", _vocabulary, "The right word keeps the whole of its 1, and the smoothing comes on top: your "
                "target's probabilities sum to more than one."),
        Mistake("all-of-it-each", _vocabulary, "Every word gets the whole smoothing instead of its part of it. Divide by "
                "the number of words."),
        Mistake("exchanged", _loss, "The two weights are exchanged: 1 - smoothing belongs to the right word."),
        Mistake("not-smoothed", _loss, "That's plain cross-entropy."),
        Mistake("probabilities-smoothed", _loss, "You smooth the model's probabilities. It's the target that's softened; "
                "the model's row stays as it is."),
        Mistake("padding-counted", _counted, "Padding counts as a word in your mean."),
        Mistake("padding-in-the-divisor", _counted, "Padding is left out of the sum, but you divide by all positions."),
        Mistake("summed", _counted, "You add up. With a sum, a longer batch would take a larger step."),
        Mistake("sentence-means", _counted, "You average each sentence first. A word in a short sentence then counts for "
                "more than one in a long sentence."),
        Mistake("no-minus", _loss, "The sign is missing: ln p is negative."),
        Mistake("divergence", _loss, "That's the divergence from the target, which is 0 where the two are equal. The "
                "cross-entropy is larger by the target's entropy. The gradients are the same.", convention=True),
        Mistake("no-padding-among-the-words", _vocabulary, "You leave <pad> out when you spread the smoothing, so "
                "vocab - 1 words share it. That's sensible, but here every word of the vocabulary gets its part.",
                convention=True),
        Mistake("softmax-first", _loss, "You turn the logits into probabilities, and then take log_softmax of those. Its "
                "input is the logits."),
        Mistake("pad-id-is-zero", _counted, "You leave out the targets that are 0. Here it's `pad_id` that's padding, "
                "and it isn't always 0."),
        Mistake("zero-is-padding-too", _counted, "You leave out the targets that are 0, besides those that are pad_id. "
                "Where pad_id is another, 0 is a word like any other."),
        Mistake("cut-off", _gradient, "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it "
                "couldn't be trained. Return a tensor; call item() where you print it."),
    ),
    properties=(
        Property(lambda case: case.right["loss"] < 100 and case.inputs[2] == case.inputs[3] == 0 and _off(case), _counted,
                 "Here nothing is "
                 "smoothed, so it's plain cross-entropy: the mean of -ln p of the right words that aren't padding."),
        Property(lambda case: case.inputs[2] == 0 < case.inputs[3] and _off(case), _counted, "Here pad_id isn't 0. Leave "
                 "out the targets that equal it, whatever it is."),
        Property(lambda case: case.right["loss"] < 100 and _off(case), _vocabulary, "Without smoothing yours is right. Of "
                 "the target's probability, how much does the right word get, and how much each of the others?"),
        Property(lambda case: case.loss < case.right["loss"] and _off(case), _loss, "Other losses are right; here the model "
                 "is sure of a wrong word. A small number added before the logarithm, or a clamp, puts an upper limit on "
                 "the loss. Take log_softmax of the logits."),
        Property(_off, _loss, "The other losses are right. Here the model is sure of a wrong word: take log_softmax of the "
                 "logits."),
        Property(lambda case: gap(case, "gradient for the logits") > 1e-4, _gradient, "Part of the way from the logits to "
                 "the loss is cut off or counted twice."),
    ),
    hints=(
        "Two numbers for each position: -ln p of the right word, and the mean of -ln p over all words.",
        "log_p.gather(-1, targets[..., None])[..., 0] picks the right words' ln p.",
        "loss = (1 - smoothing) * right + smoothing * everything, and of that loss[targets != pad_id].mean()",
    ),
)

EXERCISES = (CROSS, SHIFT, SMOOTHED, writing.WINNER, writing.WRITE, writing.PRECISION)
