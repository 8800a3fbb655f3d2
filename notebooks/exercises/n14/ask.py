"""Exercises of notebook 14, pretraining. The answers are in `answers`; 14.4 to 14.6 are in `tuning`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap
from course_exercises.n14 import probes, tuning

# ---------------------------------------------------------------- 14.1 hide words

def _wrong_ids(case: Case) -> torch.Tensor:
    return case.answer != case.expected


def _one_wrong(case: Case, where: torch.Tensor | None = None) -> str:
    """The first position that's wrong: its token, whether it was chosen, its fate, and what it became."""
    token_ids, chosen, fate, _, mask_id = case.inputs
    wrong = _wrong_ids(case) if where is None else where
    row, column = wrong.nonzero()[0].tolist()
    was = "chosen" if chosen[row, column] else "not chosen"
    return (f"the token {token_ids[row, column]}, {was}, with fate {fate[row, column]:.2f}, becomes "
            f"{case.answer[row, column]:.0f}, expected {case.expected[row, column]:.0f} (mask_id={mask_id}).")


def _masked(case: Case) -> str:
    token_ids, chosen, _, _, mask_id = case.inputs
    got, right = (int((ids == mask_id)[chosen].sum()) for ids in (case.answer, case.expected))
    return f"{got} of the {int(chosen.sum())} chosen tokens are {mask_id}, the mask; expected {right}."


def _where(what, why: str) -> Property:
    """`what(chosen, fate)` says for which positions to look."""
    def wrong(case):
        return _wrong_ids(case) & what(*case.inputs[1:3])
    return Property(lambda case: wrong(case).any(), lambda case: _one_wrong(case, wrong(case)), why)


def _hidden_as(case: Case) -> torch.Tensor:
    """What the tokens that should be hidden have become."""
    return case.answer[(case.expected == case.inputs[4]) & case.inputs[1]]


def _another_mask(case: Case) -> bool:
    found = _hidden_as(case).unique()
    return len(_hidden_as(case)) > 5 and len(found) == 1 and bool(found != case.inputs[4])


def _unchanged(case: Case) -> bool:
    several = case.inputs[1].sum() > 5                  # a single token may well stay as it is
    return several and torch.equal(case.answer.long(), case.inputs[0]) and not torch.equal(case.expected, case.answer)


def _by_the_ids(case: Case) -> bool:
    """Whether the answer is wrong only where the token or the other one is the mask's id or 0, and right elsewhere."""
    token_ids, _, _, others, mask_id = case.inputs
    special = (token_ids == mask_id) | (others == mask_id) | (token_ids == 0) | (others == 0)
    return bool(special.any() and _wrong_ids(case).any() and not _wrong_ids(case)[~special].any())


HIDE = Exercise(
    probes=probes.hiding_probes, observe=probes.observe_hidden, forbidden=("course_utils.pretraining.mask_tokens",),
    signature="hide_words(token_ids (batch, seq_len), chosen (batch, seq_len), fate (batch, seq_len), others (batch, "
    "seq_len), mask_id) -> inputs (batch, seq_len)",
    mistakes=(
        Mistake("mask-never-put-in", _masked, "The words that are asked for stay in plain sight. A model would learn to "
                "copy its input; the loss falls to nearly 0 and nothing is learned."),
        Mistake("always-the-mask", _masked, "Every chosen token is hidden. The mask never occurs when the model is used, so "
                "a fifth of the chosen tokens should be something else."),
        Mistake("never-swapped", _one_wrong, "From 0.8 to below 0.9 a chosen token becomes the one in `others`. Without "
                "that, the model could trust every word that it sees."),
        Mistake("swapped-for-good", _one_wrong, "Everything from 0.8 on is swapped. From 0.9 on the token stays."),
        Mistake("swapped-at-the-end", _one_wrong, "The last two fates have changed places: swapped is from 0.8 to below "
                "0.9, and from 0.9 on the token stays."),
        Mistake("swapped-below-nine-tenths", _one_wrong, "Everything below 0.9 is swapped, also what was to become the "
                "mask. Does the second step overwrite the first?"),
        Mistake("all-tokens", _one_wrong, "Tokens that weren't chosen are changed, too. Nobody asks for them, and the model "
                "needs them to guess from."),
        Mistake("not-the-chosen", _one_wrong, "It's the other way round: the chosen tokens stay, and the rest is changed. "
                "True in `chosen` means that the model will be asked."),
        Mistake("wrong-way-round", _one_wrong, "You count the fates from the other end. Below 0.8 is the mask."),
        Mistake("fifteen-per-cent-again", _masked, "You compare with 0.15 once more. Who is asked was decided before; of "
                "those, 80 % become the mask."),
        Mistake("zero-for-the-mask", _masked, "You put in 0, and that isn't the mask here. Use `mask_id`; 0 is often "
                "padding, which nobody attends to."),
    ),
    properties=(
        Property(lambda case: (case.answer == -100).any(), lambda case: f"{int((case.answer == -100).sum())} of the "
                 f"{case.answer.numel()} ids are -100.", "-100 marks labels that a loss leaves out. Here the ids that the "
                 "model reads are asked for: a token that isn't chosen stays as it is."),
        Property(_unchanged, lambda case: "your inputs are the token_ids, unchanged.", "Did you assign to "
                 "inputs[chosen][…]? inputs[chosen] is a copy, so what's assigned to a part of it is lost. Combine the "
                 "conditions, as in inputs[chosen & (fate < 0.8)]."),
        Property(_another_mask, lambda case: f"your mask is {_hidden_as(case)[0]:.0f}, expected {case.inputs[4]}.", "Each "
                 "vocabulary has its own id for [MASK]. Use `mask_id`."),
        Property(_by_the_ids, _one_wrong, "Elsewhere yours is right. Only `chosen` and `fate` decide, whatever a token is "
                 "or has become: the text, and `others`, may hold the mask's id, or 0. Make both conditions from `chosen` "
                 "and `fate`."),
        _where(lambda chosen, fate: ~chosen, "Nothing happens to tokens that aren't chosen."),
        _where(lambda chosen, fate: chosen & (fate < 0.79999), "Below 0.8 a chosen token becomes the mask."),
        _where(lambda chosen, fate: chosen & (fate > 0.80001) & (fate < 0.89999), "From 0.8 to below 0.9 it becomes the "
               "token at the same position in `others`."),
        _where(lambda chosen, fate: chosen & (fate > 0.90001), "From 0.9 on a chosen token stays."),
        _where(lambda chosen, fate: chosen & (fate < 0.85), "A fate of 0.8 is no longer below 0.8: it belongs to those that "
               "become the token in `others`."),
        _where(lambda chosen, fate: chosen, "A fate of 0.9 is no longer below 0.9: such a token stays."),
    ),
    hints=(
        "Two steps: put in the mask, then the other tokens. For each you need a condition that's True or False everywhere.",
        "masked_fill and torch.where make new tensors; token_ids[…] = … changes the answers.",
        "inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id), and then torch.where for 0.8 to below 0.9.",
    ),
)

# ---------------------------------------------------------------- 14.2 the longest piece

def _cut_up(case: Case) -> str:
    count = len(case.pieces.split())
    return (f"{case.inputs[0]!r} gives {case.pieces!r}, {count} piece{'s' * (count != 1)}; expected "
            f"{case.right['pieces']!r}.")


def _first_piece(case: Case) -> bool:
    return case.pieces.split()[:1] != case.right["pieces"].split()[:1]


def _dead_end(case: Case) -> str:
    """What came, and where the longest pieces from the left lead."""
    word, vocabulary = case.inputs
    taken, start = [], 0
    while end := next((end for end in range(len(word), start, -1) if "##" * (start > 0) + word[start:end] in vocabulary), 0):
        taken.append("##" * (start > 0) + word[start:end])
        start = end
    if not taken:
        return f"{_cut_up(case)} No piece without '##' begins this word."
    return f"{_cut_up(case)} The longest pieces are {' '.join(taken)}, and then no piece with '##' begins {word[start:]!r}."


def _not_there(case: Case) -> list[str]:
    return [piece for piece in case.pieces.split() if piece not in {"[UNK]", *case.inputs[1]}]


def _unknown_by_another_name(case: Case) -> list[str]:
    """What was meant as '[UNK]' and isn't in the vocabulary: 'UNK', '<unk>'."""
    return [piece for piece in _not_there(case) if piece.strip("[]<>").lower() == "unk"]


def _joined(case: Case) -> str:
    return "".join(piece.removeprefix("##") for piece in case.pieces.split())


def _another_word(case: Case) -> bool:
    return "[UNK]" not in case.pieces and _joined(case) != case.inputs[0]


def _letters_skipped(case: Case) -> bool:
    """Whether a word for which there are no pieces gets some, and they don't give all of it."""
    return case.right["pieces"] == "[UNK]" and _another_word(case)


def _misplaced(case: Case) -> list[str]:
    """The pieces that begin the word with '##' or continue it without."""
    return [piece for i, piece in enumerate(case.pieces.split()) if piece != "[UNK]" and piece.startswith("##") != (i > 0)]


def _fits_with_fewer(case: Case) -> bool:
    """Whether the answer's pieces are all there and make up the word, but are fewer than the right ones."""
    pieces, right = case.pieces.split(), case.right["pieces"].split()
    return len(pieces) < len(right) and set(pieces) <= set(case.inputs[1]) and not _another_word(case)


PIECES = Exercise(
    probes=probes.piece_probes, observe=probes.observe_pieces, forbidden=("course_utils.pretraining.longest_pieces",),
    signature="cut_into_pieces(word, vocabulary (set of pieces)) -> list of pieces",
    mistakes=(
        Mistake("shortest-first", _cut_up, "You take the shortest piece that fits. Begin with the whole rest of the word, "
                "make it shorter, and stop at the first piece that fits."),
        Mistake("no-signs", _cut_up, "You look up the rest of the word without '##'. `ed` as a word and `##ed` as an ending "
                "are two different pieces."),
        Mistake("signs-looked-up-and-lost", _cut_up, "The pieces are found, but returned without '##'. They'd get the ids "
                "of other tokens, or none."),
        Mistake("signs-always", _cut_up, "The first piece gets '##', too. It begins the word, and continues nothing."),
        Mistake("the-rest-is-unknown", _cut_up, "At the dead end you keep the beginning. BERT gives the whole word up: it "
                "becomes a single [UNK]."),
        Mistake("letter-by-letter-unknown", _cut_up, "You skip a letter and go on. If any part of a word fits no piece, the "
                "whole word becomes a single [UNK]."),
        Mistake("beginning-kept", _cut_up, "The beginning is kept and the rest of the word is lost without a trace. The "
                "whole word should become [UNK]."),
        Mistake("nothing-for-unknown", _cut_up, "The word disappears. The model should at least see that there was one: "
                "[UNK]."),
        Mistake("goes-back", _cut_up, "You try a shorter piece where the longest leads nowhere. That finds more words, but "
                "the weights were trained with ids of a method that never goes back.", convention=True),
        Mistake("from-the-right", _cut_up, "You begin at the end of the word. The longest piece is taken from the left."),
        Mistake("longest-anywhere", _cut_up, "You take the longest piece wherever it is in the word. The longest one that "
                "begins the rest is asked for, from the left."),
        Mistake("signs-counted", _cut_up, "Letters are missing. '##' is part of the piece, but not of the word: go on by "
                "the length of the piece without it."),
        Mistake("letters-appended", _cut_up, "Your list holds single letters. pieces += piece takes a text apart and "
                "appends each of its letters: write pieces.append(piece), or pieces += [piece]."),
        Mistake("last-letter-left-out", _cut_up, "The longest candidate is one letter short: the last letter is never in a "
                "longer piece. range() ends before its second number, or a slice before its end."),
    ),
    properties=(
        Property(_unknown_by_another_name, lambda case: f"{_cut_up(case)} You write {_unknown_by_another_name(case)[0]!r}.",
                 "BERT writes '[UNK]' for an unknown word, in capitals, and the brackets belong to it. Its vocabulary holds "
                 "no other text for that."),
        Property(_not_there, lambda case: f"{_cut_up(case)} Your {_not_there(case)[0]!r} isn't in the vocabulary.", "Look "
                 "up each piece just as you return it: 'film' begins a word, '##film' continues one, and the vocabulary may "
                 "have only one of the two."),
        Property(lambda case: _misplaced(case) and not _letters_skipped(case), lambda case: f"{_cut_up(case)} Look at your "
                 f"{_misplaced(case)[0]!r}.", "A piece without '##' begins a word, and one with '##' continues it. So only "
                 "the first piece is looked up without."),
        Property(_fits_with_fewer, _cut_up, "These pieces fit, and they're fewer. But nobody counts them: at each step the "
                 "longest piece is taken, from the left."),
        Property(lambda case: _another_word(case) and not _letters_skipped(case), lambda case: f"{_cut_up(case)} Without "
                 f"'##' your pieces read {_joined(case)!r}.", "They should give the word. Did you shorten the rest with "
                 "lstrip() or replace()? lstrip(part) takes off each letter that's in the part, and replace(part, '') takes "
                 "the part out wherever it is. Cut by length: rest[len(part):]."),
        Property(_letters_skipped, _dead_end, "So all of it becomes one [UNK]: no letter may be skipped."),
        Property(lambda case: "[UNK]" in case.right["pieces"] and case.pieces != case.right["pieces"], _dead_end, "So all "
                 "of it becomes one [UNK]."),
        Property(lambda case: case.pieces == "[UNK]" != case.right["pieces"], _cut_up, "You give up, though there are "
                 "pieces that fit. Do you try every candidate, the longest first, from the whole rest of the word down to a "
                 "single letter, and at each step? From the second piece on, do you look it up with '##'? range() leaves "
                 "out its last number."),
        Property(_first_piece, _cut_up, "Look at the first piece: the longest beginning of the word that's in the "
                 "vocabulary, without '##'."),
        Property(lambda case: case.pieces != case.right["pieces"], _cut_up, "The first piece is right. Each one after it is "
                 "'##' and the longest part of the rest that fits."),
    ),
    hints=(
        "Keep where you are in the word. How do you find the longest piece from there on? And when are you finished?",
        "For end from len(word) down to start + 1, look for word[start:end], with '##' in front of it if start > 0.",
        "piece = (\"##\" if start > 0 else \"\") + word[start:end], then start = end; with no piece, return [\"[UNK]\"].",
    ),
)

# ---------------------------------------------------------------- 14.3 the loss on hidden words

def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _of_positions(case: Case) -> str:
    chosen = case.inputs[2]
    return f"{_loss_seen(case)} {int(chosen.sum())} of {chosen.numel()} positions are chosen."


def _gradient_seen(case: Case) -> str:
    got, right = (named["gradient for the logits"].abs().max().item() for named in (case.got, case.right))
    return f"the loss is right, but the largest number of its gradient for the logits is {got:.3f}, expected {right:.3f}."


def _nearly_without_gradient(case: Case) -> bool:
    """Whether the loss is right to two decimals, and no gradient at all reaches the logits, where some should."""
    got, right = (named["gradient for the logits"].abs().max() for named in (case.got, case.right))
    return bool(got == 0) and bool(right > 1e-3) and gap(case, "loss") < 6e-3


LOSS = Exercise(
    probes=probes.loss_probes, observe=probes.observe_loss,
    signature="hidden_word_loss(logits (batch, seq_len, vocab), token_ids (batch, seq_len), chosen (batch, seq_len)) -> "
    "mean loss in nats",
    not_finite={
        "inf": "A small probability was rounded to 0 before its logarithm, or exp of a large logit overflowed: use "
        f"log_softmax or cross_entropy, on the logits. {EACH_MAXIMUM}",
        "-inf": "A small probability was rounded to 0, and its logarithm is -inf; the loss is minus that. Use log_softmax "
        f"or cross_entropy, on the logits. {EACH_MAXIMUM}",
        "NaN": "Either that's a mean over no numbers: divide once, for the whole batch, and return 0 if nothing in it is "
        "chosen. Or exp of a large logit overflowed: use log_softmax or cross_entropy, on the logits. " + EACH_MAXIMUM},
    mistakes=(
        Mistake("all-positions", _of_positions, "All positions count in your mean. Most of the answers are in plain sight, "
                "so copying them makes the loss look good."),
        Mistake("all-positions-but-none", _of_positions, "You look at `chosen` to see whether there are any, but then all "
                "positions count in your mean. Most of the answers are in plain sight: copying them looks good."),
        Mistake("the-visible", _of_positions, "You count the positions that weren't chosen. Those are the ones that the "
                "model can read off."),
        Mistake("only-the-visible-kept", _of_positions, "The chosen positions are left out, and the others count. It's the "
                "other way round: keep the positions where `chosen` is True, or mark the others with -100."),
        Mistake("divided-by-all", _of_positions, "The sum is over the chosen positions, and you divide it by all of them. "
                "Divide by how many are chosen."),
        Mistake("visible-as-zero-logits", _of_positions, "Logits that are set to one and the same number don't take a "
                "position out: it then costs the logarithm of the vocabulary's size. Pick the chosen positions instead."),
        Mistake("visible-as-zero-logits-but-none", _of_positions, "The positions whose logits you set to one and the same "
                "number still count: each costs the logarithm of the vocabulary's size. Pick the chosen positions instead."),
        Mistake("row-means", _of_positions, "You average each text first, and then the texts. Each chosen position counts "
                "the same, whichever text it's in."),
        Mistake("row-means-with-zeros", _of_positions, "You average each text first, and then the texts; a text without "
                "chosen positions even counts as 0. Add up all chosen positions of the batch, and divide once."),
        Mistake("position-means", _of_positions, "You average over the batch at each position first, and then over the "
                "positions. Each chosen position counts the same, whatever else is chosen there."),
        Mistake("reshaped", _of_positions, "cross_entropy wants (batch, vocab, position), and reshape() or view() doesn't "
                "get you there: it only cuts the same numbers into other rows. Use transpose(1, 2)."),
        Mistake("summed", _of_positions, "You add up what a mean is asked for. A larger batch would have a larger loss and "
                "gradient."),
        Mistake("shifted", _loss_seen, "Position i is asked for the next token. That's the loss of notebook 13; here each "
                "position is asked for its own token, which was hidden."),
        Mistake("no-minus", _loss_seen, "The logarithm of a probability is negative, and the loss is minus that."),
        Mistake("softmax-first", _loss_seen, "There are two softmaxes: cross_entropy wants logits, and gets probabilities."),
        Mistake("over-positions", _loss_seen, "A softmax runs over the positions. The tokens of the vocabulary compete: the "
                "last dimension."),
        Mistake("softmax-over-positions", _loss_seen, "Your softmax runs over the positions. The tokens of the vocabulary "
                "compete: the last dimension."),
        Mistake("softmax-over-the-batch", _loss_seen, "Your softmax runs over the batch, so texts compete. The tokens of "
                "the vocabulary should: the last dimension."),
        Mistake("token-zero-left-out", _of_positions, "Where the right token is 0, your loss leaves the position out. 0 is "
                "an ordinary id here: mark what isn't asked for with -100, or pick the chosen positions."),
        Mistake("one-more-in-the-divisor", _of_positions, "You divide by one more than are chosen. To avoid 0 / 0 without "
                "changing anything else, write .clamp(min=1), or return early."),
        Mistake("log-of-the-mean", _of_positions, "You take the mean of the probabilities first, and then the logarithm. "
                "Each position's logarithm is asked for, and the mean of those."),
        Mistake("nll-of-logits", _loss_seen, "That is minus the logit of the right token. A logit isn't a logarithm of a "
                "probability yet: use log_softmax first, or cross_entropy, which does both."),
        Mistake("every-position-with-every-token", _loss_seen, "You index with [:, ids], which takes for each position the "
                "right tokens of all of them. Each position has one right token: gather, or [torch.arange(n), ids]."),
        Mistake("nll-of-probabilities", _loss_seen, "That is minus the mean probability. The logarithm is missing."),
        Mistake("perplexity", _loss_seen, "That is e to the power of the loss. Return the loss itself."),
        Mistake("bits", _loss_seen, "That is in bits. Nats are asked for, with the natural logarithm."),
        Mistake("cut-off", _gradient_seen, "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it "
                "couldn't be trained. Return a tensor."),
    ),
    properties=(
        Property(_nearly_without_gradient, lambda case: f"your loss, {case.loss.item():.4f}, is about right, but no "
                 "gradient reaches the logits.", "It's rounded, turned into a plain number, or not made from the logits. "
                 "Compute it from them, and return it as it is."),
        Property(lambda case: not case.inputs[2].any() and case.loss != 0, _loss_seen, "Nothing is chosen here, so the "
                 "loss is 0."),
        Property(lambda case: case.inputs[0].unique().numel() == 1 and abs(case.loss - case.right["loss"].exp()) < 1e-2,
                 _loss_seen, "That is e to the power of the loss, the perplexity. Return the loss itself."),
        Property(lambda case: case.inputs[0].unique().numel() == 1 and gap(case, "loss") > 1e-3, _of_positions, "All logits "
                 "are 0 here, so each of the nine tokens has probability 1/9, and each chosen position costs ln 9. Is it a "
                 "mean over the chosen ones?"),
        Property(lambda case: case.right["loss"] < 1e-3 and gap(case, "loss") > 1e-3, _of_positions, "The model is sure and "
                 "right wherever it's asked. That costs nothing, and what it says elsewhere doesn't count."),
        Property(lambda case: case.inputs[0].abs().max() < 50 and gap(case, "loss") > 1e-3, _of_positions, "Work out the "
                 "smallest case: at a chosen position, minus the logarithm of the softmax at the right token."),
        Property(lambda case: case.inputs[0].abs().max() > 50 and gap(case, "loss") > 1e-3, _loss_seen, "The "
                 "model gives a right token a probability near 0, and that must cost accordingly. A small number added "
                 "before the logarithm, or a clamp, puts an upper limit on the loss. Take it from the logits: log_softmax "
                 "or cross_entropy."),
        Property(lambda case: gap(case, "gradient for the logits") > 1e-3, _gradient_seen, "Part of the way from the logits "
                 "to the loss is cut off or counted twice."),
    ),
    hints=(
        "A boolean mask picks positions: logits[chosen] has one row for each chosen position.",
        "Then it's an ordinary cross-entropy. What is the mean of no numbers?",
        "F.cross_entropy(logits[chosen], token_ids[chosen]) if chosen.any() else logits.sum() * 0",
    ),
)

EXERCISES = (HIDE, PIECES, LOSS, tuning.HALF, tuning.POOL, tuning.ADAPTER)
