"""What exercises 16.3 to 16.5 ask and say: the translator's loss, the greedy loop, alignment errors. Answers: `answers`."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap
from course_exercises.n16 import probes

# ---------------------------------------------------------------- 16.3 the loss


def _loss(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _counted(case: Case) -> str:
    asked = case.inputs[3][:, 1:]
    return f"{_loss(case)} {int((asked != 0).sum())} of the {asked.numel()} positions ask for a word."


def _source(case: Case) -> str:
    mask = case.inputs[2]
    return f"{_loss(case)} {int((~mask).sum())} of the {mask.numel()} source positions are padding."


def _gradient(case: Case) -> str:
    got, right = (named["gradient for the model"].abs().max().item() for named in (case.got, case.right))
    return f"the loss is right, but the largest number of its gradient for the model is {got:.3f}, expected {right:.3f}."


LOSS = Exercise(
    probes=probes.loss_probes, observe=probes.observe_loss,
    forbidden=("course_utils.recurrent_attention.teacher_forcing_loss",),
    signature="translation_loss(model, source_ids (batch, source), source_mask (batch, source), target_ids (batch, "
    "target + 1)) -> mean loss ()",
    not_finite={
        "inf": "A very small probability was rounded to 0 before its logarithm, or exp of a large logit overflowed: use "
        "log_softmax over the vocabulary, the last dimension, or cross_entropy on the logits. " + EACH_MAXIMUM,
        "-inf": "A very small probability was rounded to 0, and its logarithm is −inf; the loss is minus that. Use "
        "log_softmax over the vocabulary, or cross_entropy on the logits. " + EACH_MAXIMUM,
        "NaN": "A mean over no words is NaN. Every target here has at least an END to ask for: did you shift too far, "
        "leave END out, or take the mean of a sentence without a word? Or a probability was rounded to 0, and 0 times −inf "
        "is NaN: use log_softmax or cross_entropy. " + EACH_MAXIMUM},
    mistakes=(
        Mistake("not-shifted", _loss, "The model reads the very words that it's asked for. It would learn to copy them, and "
                "know nothing when it writes."),
        Mistake("asked-unshifted", _loss, "The model is asked for the very words that it reads, BEGIN among them. Ask for "
                "each word one step before it's read."),
        Mistake("last-column-cut", _counted, "The model reads the right words, but one column too few, so the longest "
                "targets are never asked for their END. In the reading, leave out the last column only."),
        Mistake("whole", _loss, "The whole target is read, and asked for unshifted: even BEGIN. Each word must be asked for "
                "one step before it's read."),
        Mistake("wrong-way", _loss, "You have read and asked for the wrong way round: the model reads a word and is "
                "asked for the one before it."),
        Mistake("padding-counted", _counted, "Padding is asked for, too. The model would learn to write padding, and long "
                "sentences would count for less."),
        Mistake("mask-of-the-read-words", _counted, "Your mask belongs to the words that are read. A position counts if the "
                "word that it asks for isn't PAD."),
        Mistake("padding-in-the-count", _counted, "Padding adds nothing, but it's counted when you divide. A batch with one "
                "long sentence would have a small loss for no reason."),
        Mistake("begin-in-the-count", _counted, "The sum is right, but BEGIN is counted when you divide. It's read, and "
                "never asked for."),
        Mistake("no-end-in-the-count", _counted, "The sum is right, but END is missing from the count that you divide by."),
        Mistake("summed", _counted, "That's the sum. Divide by the number of words, or long sentences take larger steps."),
        Mistake("sentence-by-sentence", _counted, "You took the mean of each sentence, and then of those. A word in a short "
                "sentence would count for more: every word counts the same."),
        Mistake("end-left-out", _counted, "END isn't asked for, so the model never learns to stop."),
        Mistake("end-for-padding", _counted, "END is left out and padding is asked for. PAD is 0, and END is 3."),
        Mistake("viewed", _loss, "A view (or reshape) doesn't exchange two dimensions, so most words meet the logits of "
                "others. Use transpose(1, 2), or flatten both to one row for each word."),
        Mistake("bits", _loss, "That's the loss in bits, a logarithm to base 2. −ln p has the natural one, as cross_entropy "
                "has it."),
        Mistake("softmax-first", _loss, "cross_entropy takes logits, and yours went through a softmax already."),
        Mistake("unknown-left-out", _counted, "The unknown word, 1, isn't asked for. It's a word of the target like any "
                "other: only PAD, which is 0, never counts."),
        Mistake("source-padding-read", _source, "The model reads them like words: it got no mask, or one of ones. A "
                "sentence would be translated differently beside a longer one. Hand on source_mask as it came."),
        Mistake("source-mask-inverted", _source, "The model reads those and none of the words: its mask is the wrong way "
                "round. True is a real word: hand on source_mask as it came."),
        Mistake("cut-off", _gradient, "item(), detach(), no_grad() or NumPy cuts the loss off from the model, so it "
                "couldn't be trained. Return a tensor; call item() where you print it."),
    ),
    properties=(
        Property(lambda case: case.loss < -1e-6, _loss, "A mean of −ln p is never negative: is a sign missing?"),
        Property(lambda case: (case.inputs[3] != 0).all() and gap(case, "loss") > 1e-4, _loss,
                 "It's wrong even on this batch, which has no padding. Compare one sentence on paper: which tokens does the "
                 "model read, which one is it asked for at each, and do that word's logits meet it?"),
        Property(lambda case: case.right["loss"] < 100 and gap(case, "loss") > 1e-4, _counted, "Is every word that isn't "
                 "PAD counted once, END included, and the sum divided by their number? And does the model get source_ids "
                 "and source_mask as they came?"),
        Property(lambda case: case.loss < 0.99 * case.right["loss"], _loss, "Other losses are right; here the model is "
                 "sure of a wrong word. A small number added before the logarithm, or a clamp, puts an upper limit on the "
                 "loss. Take it from the logits: log_softmax or cross_entropy."),
        Property(lambda case: gap(case, "loss") > 1e-4 * (1 + case.right["loss"]), _loss, "The other losses are right. Is "
                 "this one taken from the logits, with log_softmax or cross_entropy?"),
        Property(lambda case: gap(case, "gradient for the model") > 1e-4, _gradient, "Part of the way from the logits to "
                 "the loss is cut off or counted twice."),
    ),
    hints=(
        "Write one target on paper: 2, 7, 5, 3. What does the model read, and what is it asked for at each step?",
        "It reads 2, 7, 5 and is asked for 7, 5, 3. In the batch: target_ids[:, :-1] and target_ids[:, 1:].",
        "F.cross_entropy(logits.flatten(0, 1), target_ids[:, 1:].flatten(), ignore_index=0)",
    ),
)

# ---------------------------------------------------------------- 16.4 write


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


WRITE = Exercise(
    probes=probes.write_probes, observe=probes.observe_writing, forbidden=("course_utils.recurrent_attention.greedy",),
    signature="write(step, state, max_len) -> list of ids; step(last_id, state) -> logits (vocab,), state",
    mistakes=(
        Mistake("reads-begin-again", _written, "Every step reads BEGIN again. The decoder has to read the word that it has "
                "just written."),
        Mistake("state-not-kept", _written, "Every step starts from the first state, so the decoder forgets what it has "
                "written. Hand the new state to the next step."),
        Mistake("end-kept", _written, "END is in your list. It says that the translation is over; it isn't a word of it."),
        Mistake("never-stops", _written, "You went on after END. What a decoder says after that means nothing."),
        Mistake("end-skipped", _written, "You left END out of the list, and went on. What a decoder says after END means "
                "nothing: stop there."),
        Mistake("no-limit", _written, "Only END stops your loop. A model that never writes it would go on for ever: stop "
                "after max_len words as well."),
        Mistake("begin-kept", _written, "BEGIN is in your list. It starts the loop; it isn't a word of the translation."),
        Mistake("starts-with-padding", _written, "The first step reads 0, which is padding. In training, every target began "
                "with BEGIN, which is 2."),
        Mistake("starts-with-end", _written, "The first step reads 3, which is END. Sutskever's decoders did start like "
                "that, but ours was trained with BEGIN, which is 2."),
        Mistake("least-probable", _written, "That's the word with the lowest logit: argmin. Take the highest."),
        Mistake("one-word-more", _written, "A translation that doesn't end by itself gets one word too many."),
        Mistake("one-word-fewer", _written, "A translation that doesn't end by itself gets one word too few."),
        Mistake("ends-at-padding", _written, "You stop at 0 as well. Only END, which is 3, ends a translation; whatever "
                "else the decoder writes belongs to it."),
    ),
    properties=(
        Property(lambda case: _size(case.answer) > case.inputs[2], _written, "There may be at most max_len words."),
        Property(lambda case: case.answer[0] == 2, _written, "BEGIN is in your list. It starts the loop; it isn't a word of "
                 "the translation."),
        Property(lambda case: 0 <= case.answer[0] != case.expected[0] >= 0, _written, "The first word is wrong already: "
                 "BEGIN is read with the state that you were given, and the word with the highest logit is written."),
        Property(_special_word, _written, "Only END, which is 3, is special here. 0, 1 and 2 are written and read like any "
                 "other word, where their logit is the highest."),
        Property(_stopped_at_a_repetition, _written, "You stop at a word that was written before. Words may come twice, "
                 "even in a row; only END and max_len end the loop."),
        Property(_another_word, _written, "The first words are right; then one isn't the word with the highest "
                 "logit. Greedy takes the argmax each time, and doesn't sample."),
        Property(lambda case: _size(case.answer) != _size(case.expected), _written, "The number of words is wrong: stop at "
                 "END, or after max_len words, whichever comes first."),
        Property(lambda case: True, _written, "Each step reads the word that was written last (BEGIN at first) and the "
                 "state of the step before, and the highest logit is written."),
    ),
    hints=(
        "Three things change from step to step: the last word, the state, and the list. What are they at the start?",
        "last starts as 2. In the loop: logits, state = step(last, state), then last = int(logits.argmax()).",
        "Stop with break if last is 3; otherwise append it. The loop goes on while len(ids) < max_len.",
    ),
)

# ---------------------------------------------------------------- 16.5 alignment error


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


def _sizes(case: Case) -> str:
    weights, gold = case.inputs
    return f"{_rate(case)} There are {len(weights) - 1} words and {len(gold)} gold links."


AER = Exercise(
    probes=probes.aer_probes, forbidden=("course_utils.recurrent_attention.alignment_error_rate",),
    signature="aer(weights (target + 1, source), gold (links, 2)) -> error rate",
    mistakes=(
        Mistake("end-counted", _sizes, "The row of <eos> makes a link, too. It writes no word, so no gold link can fit it."),
        Mistake("one-row-late", _rate, "You left out the first row instead of the last. Row 0 belongs to the first word: "
                "BEGIN is read there, and the first word is written."),
        Mistake("one-row-early", _rate, "Every link is one word late. Row 0 belongs to word 0: the row says where the "
                "decoder looked when it wrote the word, not when it read it."),
        Mistake("sides-swapped", _rate, "Source and target are exchanged. A gold link is (source, target), a row of weights "
                "belongs to a target word."),
        Mistake("by-source-word", _rate, "You took the largest weight of each column. Each target word makes one link: look "
                "along its row."),
        Mistake("smallest-weight", _rate, "You took the smallest weight of each row."),
        Mistake("precision", _sizes, "You divided by the number of predicted links alone. Then a few careful links would "
                "have no error, whatever they leave out."),
        Mistake("recall", _sizes, "You divided by the number of gold links alone. Then linking everything to everything "
                "would have no error."),
        Mistake("not-one-minus", _rate, "That's the part that agrees. An error rate is 1 minus that."),
        Mistake("two-forgotten", _sizes, "The shared links are in both sets, so they count twice: 2 |A ∩ G|. With one, a "
                "perfect alignment would have an error of a half."),
        Mistake("union", _sizes, "You divided by the size of the union. The AER divides twice the shared links by the "
                "sum of both sizes."),
    ),
    properties=(
        Property(lambda case: not 0 <= float(case.answer) <= 1, _rate, "An error rate lies between 0 and 1."),
        Property(lambda case: float(case.answer) == 1, _rate, "None of your links was found in the gold set. A tensor "
                 "in a set equals no number: make ints of both, by tolist() or int(). And a link is (source, target)."),
        Property(_as_one, _rate, "Two different links count as the same: glued together, 1 and 11 read like 11 and 1, "
                 "and source · n + target is the same number for several links unless n is larger than every target. Keep "
                 "pairs: tuples (source, target)."),
        Property(lambda case: True, _sizes, "Make a set of pairs (source, target), one for each row but the last, and "
                 "compare it with the gold pairs."),
    ),
    hints=(
        "weights[:-1].argmax(dim=1) has a source index for each target word. Which pairs are that?",
        "predicted = {(source, target) for target, source in enumerate(…)}; gold.tolist() has the gold pairs.",
        "return 1 - 2 * len(predicted & known) / (len(predicted) + len(known))",
    ),
)
