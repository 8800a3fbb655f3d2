"""Exercises of notebook 07, transformer blocks. The answers stand beside it, in `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import listed, reaches
from course_exercises.n07 import probes

# ---------------------------------------------------------------- 7.1 two hidden units by hand

def _led_to(case: Case) -> float:
    """The new opinion that the learner's own hidden units lead to."""
    first, second, _ = case.answer.tolist()
    return 2 - 2 * first + 2 * second


HIDDEN = Exercise(
    kind="number", tolerance=1e-3, signature="a list of three numbers: h_1, h_2 and the new opinion",
    mistakes=(
        Mistake("unchanged", lambda case: f"{listed(case.answer, 'g')} is what you'd hope for.",
                "But h_1 doesn't fire only for negated praise: put opinion 2 and negated 0 into its formula."),
        Mistake("no-relu", lambda case: f"your h_2 is {case.answer[1]:g}.", "relu keeps nothing below zero: a hidden unit "
                "is 0 or positive. h_2 goes into the new opinion after that."),
        Mistake("no-residual", lambda case: f"{listed(case.answer, 'g')}: the last number is the change alone.",
                "The hidden units are right. conclude returns x + …: the change is added to the opinion that was there."),
        Mistake("as-negated", lambda case: f"your h_1 is {case.answer[0]:g}, as for a negated word.",
                "This one is not negated, and the - 1 stays: opinion + 0 - 1."),
        Mistake("wrong-way", lambda case: f"your h_1 is {case.answer[0]:g}, and the opinion went up to {case.answer[2]:g}.",
                "The hidden units are right, but where h_1 fires, 2 is subtracted (W_2 has -2 there)."),
        Mistake("other-unit", lambda case: f"{listed(case.answer, 'g')}: the wrong unit fires.",
                "h_1 begins with + opinion, h_2 with - opinion. For a positive opinion only h_1 can fire here."),
        Mistake("once", lambda case: f"{listed(case.answer, 'g')}: h_1 was subtracted once.", "The hidden units are right; "
                "W_2 contains -2, so twice h_1 is subtracted."),
        Mistake("opinion-of-one", lambda case: f"{listed(case.answer, 'g')} is right for opinion +1, not negated.",
                "Here the opinion is +2."),
    ),
    properties=(
        Property(lambda case: (case.answer[:2] < 0).any(), lambda case: "one of your hidden units is "
                 f"{case.answer[:2].min():g}.", "relu keeps nothing below zero."),
        Property(lambda case: abs(_led_to(case) - case.answer[2].item()) > 1e-3, lambda case: "with your h_1 and h_2 the "
                 f"new opinion would be 2 - 2 · h_1 + 2 · h_2 = {_led_to(case):g}, and you have {case.answer[2]:g}.",
                 "The change is added to the opinion."),
        Property(lambda case: abs(case.answer[0].item() - 1) > 1e-3 or abs(case.answer[1].item()) > 1e-3, lambda case:
                 f"the new opinion does follow from your h_1 and h_2, {case.answer[0]:g} and {case.answer[1]:g}.",
                 "But they are not what the two formulas give for opinion 2 and negated 0."),
    ),
    hints=(
        "h_1 = relu(opinion + negated - 1) and h_2 = relu(-opinion + negated - 1), with opinion 2 and negated 0.",
        "h_1 = relu(2 + 0 - 1), h_2 = relu(-2 + 0 - 1).",
        "The new opinion is 2 - 2 · h_1 + 2 · h_2.",
    ),
)

# ---------------------------------------------------------------- 7.2 layer norm

def _undone(case: Case, named: dict) -> torch.Tensor:
    """An output with the shift taken off and the scale divided out."""
    _, weight, bias, _ = case.inputs
    return (named[""] - bias.double()) / weight.double()


def _other_eps(case: Case) -> float | None:
    """The eps that all words of the answer agree on, if it isn't the one that was handed over; else None.

    A word of variance v comes out with variance v / (v + eps). Asked of three words or more, with a mean of 0.
    """
    before, after = case.inputs[0].double().var(dim=-1, correction=0), _undone(case, case.got)
    told = before * (1 / after.var(dim=-1, correction=0) - 1)
    centred = after.mean(dim=-1).abs().max() < 1e-3
    if len(told.flatten()) < 3 or not (told.isfinite().all() and case.inputs[3] > 0.1 and centred):
        return None
    agree = told.max() - told.min() < 1e-3 and (told.mean() - case.inputs[3]).abs() > 1e-3
    return max(round(told.mean().item(), 3), 0.0) if agree else None


def _moments(case: Case) -> str:
    """Mean and variance of the word furthest from what it should be, with scale and shift taken back."""
    got, right = _undone(case, case.got), _undone(case, case.right)
    front, flat = got.shape[:-1], int((got - right).abs().amax(dim=-1).argmax())
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), front))
    word = f"word {place[1]} of text {place[0]}" if len(front) == 2 else f"for x of shape {tuple(got.shape)}, x{list(place)}"
    mean, wanted = round(got[place].mean().item(), 3) + 0.0, right[place].var(correction=0).item()
    return (f"with scale and shift taken back, {word} has mean {mean:.3f} and variance "
            f"{got[place].var(correction=0).item():.3f}, expected 0 and {wanted:.3f} (eps = {case.inputs[3]:g}).")


def _raw(case: Case) -> str:
    """The number that is furthest off."""
    got, right = (part.reshape(-1, part.shape[-1]) for part in (case.answer, case.expected))
    word, at = divmod(int((got - right).abs().argmax()), got.shape[-1])
    return f"number {at} of vector {word}, counted from 0, is {got[word, at]:.3f}, expected {right[word, at]:.3f}."


NORM = Exercise(
    probes=probes.norm_probes, observe=probes.observe_norm, forbidden=("course_utils.transformer_blocks.layer_norm",
    "torch.nn.functional.layer_norm", "torch.layer_norm", "torch.native_layer_norm"),
    signature="norm_by_hand(x (..., d_model), weight (d_model,), bias (d_model,), eps) -> (..., d_model)",
    mistakes=(
        Mistake("over-words", _moments, "You normalize over the words (dim 1). Then a word's numbers depend on the other "
                "words of its text, and on padding (notebook 07, section 5). The features are the last dimension."),
        Mistake("over-text", _moments, "You normalize over words and features together. A word's numbers then depend on the "
                "rest of its text (notebook 07, section 5). Each word has a mean and a variance of its own."),
        Mistake("over-words-from-the-end", _moments, "You normalize over the last dimension but one, the words. Then a "
                "word's numbers depend on the other words of its text, and on padding (notebook 07, section 5). The "
                "features are the last dimension."),
        Mistake("over-text-from-the-end", _moments, "You normalize over the last two dimensions together, words and "
                "features. A word's numbers then depend on the rest of its text (notebook 07, section 5). The "
                "features are the last dimension alone."),
        Mistake("third-dimension", _moments, "With three dimensions it works, because there dim 2 is the last. x can "
                "have any number of leading dimensions: count from the end, dim=-1."),
        Mistake("over-batch", _moments, "You normalize over the texts (dim 0): a model's prediction for one review "
                "would depend "
                "on the others in its batch (notebook 07, section 5). The features are the last dimension."),
        Mistake("d-minus-1", _moments, "The squares were divided by d - 1, as torch.var and torch.std do unless told "
                "otherwise. Layer norm divides by d: take the mean of the squares, or correction=0."),
        Mistake("eps-outside", _moments, "eps was added to the root. It belongs under it: √(variance + eps)."),
        Mistake("std-plus-eps", _moments, "Two things differ: x.std() divides by d - 1 and not by d, and eps was added to "
                "the root instead of under it."),
        Mistake("no-eps", _moments, "The eps that you are given has no effect. It belongs under the root, √(variance + "
                "eps), and prevents a division by zero in a word whose numbers are all equal."),
        Mistake("no-root", _moments, "You divide by the variance. Divide by its root, so that the variance becomes 1."),
        Mistake("not-centred", _moments, "The mean was never subtracted: you divide by the root of the mean square. That is "
                "a different norm, RMSNorm; layer norm subtracts the mean first."),
        Mistake("squares-of-x", _moments, "The mean was subtracted in the numerator but not in the variance, which is the "
                "mean square of the deviations, not of x."),
        Mistake("no-scale-no-shift", _raw, "The vector is normalized correctly, but then it stops: multiply by weight "
                "and add "
                "bias, feature by feature."),
        Mistake("no-shift", _raw, "Normalised and scaled correctly, but bias was not added."),
        Mistake("no-scale", _raw, "Normalised correctly and shifted, but never multiplied by weight."),
        Mistake("shift-first", _raw, "The bias was added before the multiplication by weight, so it is scaled too. First "
                "scale, then shift."),
    ),
    properties=(
        Property(lambda case: _other_eps(case) is not None, lambda case: f"{_moments(case)[:-1]}, and your numbers are "
                 f"close to those of eps = {_other_eps(case):.3g}.", "The eps that you are given has no effect here: it "
                 "must be under the root, √(variance + eps), instead of a number of your own."),
        Property(lambda case: (_undone(case, case.got) - _undone(case, case.right)).abs().max() > 1e-3
                 and _undone(case, case.got).mean(dim=-1).abs().max() > 1e-3, _moments, "Check two things separately: "
                 "that each "
                 "word's own mean is subtracted, over the last dimension; and that weight and bias come after that, in this "
                 "order."),
        Property(lambda case: (_undone(case, case.got) - _undone(case, case.right)).abs().max() > 1e-3, _moments,
                 "The means are right. Compare the variance: the mean of the squared deviations, and eps under the root."),
        *reaches("x", "weight", "bias"),
    ),
    hints=(
        "Mean, deviations, variance, as for (1, 2, 6). Which argument keeps the last dimension, so that x - mean "
        "broadcasts?",
        "x.mean(dim=-1, keepdim=True) is (batch, seq_len, 1). The variance is the mean of the squared deviations.",
        "deviations / torch.sqrt(variance + eps) * weight + bias.",
    ),
)

# ---------------------------------------------------------------- 7.3 a post-norm block, in order

def _step(letter: str):
    """Where a line stands in the learner's order, from 1."""
    return lambda case: case.answer.split().index(letter) + 1


def _steps(one: str, other: str):
    return lambda case: f"{one} is your line {_step(one)(case)} and {other} your line {_step(other)(case)}."


POST_NORM = Exercise(
    kind="order", lines=("x = norm_2(x)", "x = x + change", "transformed = feed_forward(x)", "x = norm_1(x)",
    "change = attention(x).context", "x = x + transformed",),
    signature='a text such as "A B C D E F"',
    mistakes=(
        Mistake("unknown-change", _steps("B", "E"), "B adds what attention computed, so E has to run before it."),
        Mistake("unknown-transformed", _steps("F", "C"), "F adds what the feed-forward layer computed, so C has to "
                "run before "
                "it."),
        Mistake("feed-forward-first", _steps("C", "E"), "Here the feed-forward layer runs before attention. It draws "
                "conclusions "
                "from what attention has collected, so attention comes first."),
        Mistake("norm-before-attention", _steps("D", "E"), "x is normalized before attention sees it. That is neither of "
                "the two orders: since x is overwritten, the residual starts from the norm as well. Post-norm: after the "
                "sum."),
        Mistake("norm-before-sum", _steps("D", "B"), "norm_1 comes before attention's change has been added. Post-norm "
                "normalizes the sum, LN(x + f(x))."),
        Mistake("side-by-side", _steps("C", "B"), "The feed-forward layer reads x before attention's change has been added. "
                "The sum comes first, then the next sublayer."),
        Mistake("norms-swapped", _steps("A", "D"), "norm_2 belongs to the feed-forward layer and ends the block; norm_1 "
                "ends the attention part."),
        Mistake("norm-too-late", _steps("D", "C"), "The feed-forward layer reads the sum before norm_1 has normalized it. "
                "In post-norm each half ends with its norm."),
        Mistake("last-norm-too-early", _steps("A", "F"), "norm_2 comes before the feed-forward layer's change has been "
                "added. Post-norm normalizes the sum, and a norm is the last line."),
    ),
    properties=(),
    hints=(
        "Post-norm is LN(x + f(x)), twice. Which three lines belong to f = attention?",
        "In each half: compute f(x), add it, normalize.",
    ),
)

# ---------------------------------------------------------------- 7.4 a pre-norm stack from parts

def _gap(case: Case, name: str = "output") -> float:
    return (case.got[name] - case.right[name]).abs().max().item()


def _silent(case: Case) -> str:
    return ("with sublayers that give zeros and a last_norm that only triples, your stack differs from 3 · x by up to "
            f"{_gap(case, 'output with silent sublayers'):.3f}.")


def _loud(case: Case) -> str:
    return f"with sublayers that give zeros your stack is right; with the given ones it is off by up to {_gap(case):.3f}."


STACK = Exercise(
    probes=probes.stack_probes, observe=probes.observe_stack,
    signature="pre_norm_stack(x (batch, seq_len, d_model), layers, last_norm, mask (batch, 1, seq_len), True = may attend) "
    "-> (batch, seq_len, d_model)",
    mistakes=(
        Mistake("post-norm", _silent, "Each norm comes after its sum: that is post-norm, LN(x + f(x)). In pre-norm the "
                "norms are inside, x + f(LN(x)), and there are only sums on the path of x (notebook 07, section 7)."),
        Mistake("residual-from-norm", _silent, "x was overwritten by its norm, so the sum starts from the normalized x. "
                "Only what goes into the sublayer is normalized."),
        Mistake("no-residual", _silent, "Neither sublayer adds its input: its output replaces x. Notebook 07, section "
                "9, shows where that leads: x = x + …, twice in each layer."),
        Mistake("attention-replaces", _silent, "Attention's output replaces x; the residual around the feed-forward layer "
                "is there. Add x for attention too."),
        Mistake("feed-forward-replaces", _silent, "The feed-forward layer's output replaces x; the residual around "
                "attention is there. Add x for the feed-forward layer too."),
        Mistake("no-norms", _loud, "Neither norm_1 nor norm_2 is used: the sublayers get x as it is. Zeros cannot show "
                "that."),
        Mistake("attention-not-normed", _loud, "Attention gets x as it is, without norm_1."),
        Mistake("feed-forward-not-normed", _loud, "The feed-forward layer gets x as it is, without norm_2."),
        Mistake("same-norm-twice", _loud, "norm_1 is used before both sublayers. Each norm has its own scale and shift; "
                "before training these are equal, so nobody would notice."),
        Mistake("no-last-norm", _silent, "The last norm is missing. After the last sum nothing limits the size of the "
                "vectors (notebook 07, section 11)."),
        Mistake("last-norm-in-the-loop", _silent, "last_norm runs after every layer, so it is on the path of x. It belongs "
                "once, after the loop."),
        Mistake("first-layer-again", _loud, "Every round uses the parts of layers[0]. Each layer has weights of its own."),
        Mistake("no-mask", lambda case: f"when the padding changes, real words move by up to {case.moved.item():.3f}.",
                "The mask does not reach attention. Pass it to attention in every layer."),
        Mistake("no-feed-forward", _loud, "The feed-forward layers are missing: a word collects, but draws no conclusion "
                "(notebook 07, section 1)."),
        Mistake("feed-forward-first", _loud, "The feed-forward layer comes before attention. Attention first, as in the "
                "bare block."),
        Mistake("side-by-side", _loud, "Both sublayers read the same x, and their changes are added together. The "
                "feed-forward layer must see what attention has added."),
    ),
    properties=(
        Property(lambda case: case.inputs[1] and _gap(case, "output with silent sublayers") > 1e-3, _silent,
                 "Only the residuals and last_norm are left then. What else touches x on its way, or what is missing?"),
        Property(lambda case: case.moved.item() > 1e-4, lambda case: "when the padding changes, real words move by up to "
                 f"{case.moved.item():.3f}.", "attention(x, mask) needs the mask as it is given, in every layer."),
        Property(lambda case: case.inputs[1] and _gap(case) > 1e-4, _loud, "Look at what each sublayer gets (which norm, of "
                 "which x, of which layer), and at what its result is added to."),
        Property(lambda case: _gap(case) > 1e-4, lambda case: "stacks of one, two and three layers are right. With no "
                 f"layers at all your result is off by up to {_gap(case):.3f}.", "Then only last_norm(x) is left: it "
                 "comes after "
                 "the loop, however often the loop ran."),
        *reaches("x"),
    ),
    hints=(
        "One loop over layers. In it the two lines of pre_norm_block; the four parts come out of the tuple.",
        "for attention, feed_forward, norm_1, norm_2 in layers: and inside, x = x + …, twice.",
        "Attention gets norm_1(x) and the mask. After the loop, last_norm.",
    ),
)

# ---------------------------------------------------------------- 7.5 repair: a stack that does not grow

def _count(case: Case) -> str:
    return (f"a stack of {case.inputs[0]} blocks has {case.parameters.item():.0f} parameters, expected "
            f"{case.right['parameters'].item():.0f}.")


def _blocks(case: Case) -> float:
    """How many blocks' worth of parameters there are."""
    return case.parameters.item() / (case.right["parameters"].item() / case.inputs[0])


def _output(case: Case) -> str:
    return f"the number of parameters is right, but the output is off by up to {_gap(case, 'output'):.3f}."


def _trained(case: Case) -> str:
    return (f"numbers and output are right, but a gradient reaches {case.trained.item():.0f} of "
            f"{case.right['trained'].item():.0f} parameters.")


DEPTH = Exercise(
    given="as-given", probes=probes.depth_probes, observe=probes.observe_depth,
    signature="BlockStack(num_layers, make_block) -> a module that maps x (batch, seq_len, d_model) to the same shape, one "
    "block after another",
    mistakes=(
        Mistake("as-given", _count, "Nothing has changed. Two questions: can PyTorch see into this kind of "
                "list? And how many times is make_block called?"),
        Mistake("plain-list", _count, "The blocks are different ones now, but a plain list, tuple or dict hides them: no "
                "optimizer would train them and no file would keep them. PyTorch only looks into its own containers."),
        Mistake("made-in-forward", lambda case: f"{_count(case)} And two passes over the same text differ by up to "
                f"{case.got['second pass'].item():.3f}.", "New blocks are made each time forward runs. Make them once, in "
                "__init__, and keep them."),
        Mistake("repeated-block", lambda case: f"{_count(case)} That is {_blocks(case):.0f} block, and it runs "
                f"{case.inputs[0]} times.", "PyTorch sees it now, but it is the same block each time: [block] * n repeats "
                "one block. Call make_block again for each."),
        Mistake("overwritten", lambda case: f"{_count(case)} That is {_blocks(case):.0f} block, and it runs once.",
                "Keep num_layers of them. If each new block gets the name of the one before, only the last is left."),
        Mistake("one-too-few", lambda case: f"{_count(case)} Those are {_blocks(case):.0f} blocks.",
                "One is missing: range(n) already gives n numbers, from 0 to n - 1."),
        Mistake("one-too-many", lambda case: f"{_count(case)} Those are {_blocks(case):.0f} blocks.",
                "One too many: range(n) gives n numbers, from 0 to n - 1."),
        Mistake("not-chained", _output, "The output is what the last block makes of the original x; what the others "
                "make is lost, if they run at all. Each must work on what the one before has made."),
        Mistake("only-first", _output, "All blocks are kept but only the first one runs: the others would never receive a "
                "gradient. If `return` is inside the loop, move it out."),
        Mistake("reversed", _output, "The blocks run in the opposite order to the one in which PyTorch lists them. That "
                "trains just as well, but weights that were saved in the usual order would be loaded the wrong way "
                "round.", convention=True),
        Mistake("residual-again", _output, "You add each block's output to its input. The residuals are inside the blocks: "
                "here x = block(x) is all."),
        Mistake("cut-off", _trained, "no_grad(), detach(), .data or requires_grad_(False) blocks the gradient. No "
                "optimizer could train the stack."),
    ),
    properties=(
        Property(lambda case: case.parameters.item() != case.right["parameters"].item(), _count,
                 "There must be num_layers blocks, each a new one, all where PyTorch can see them."),
        Property(lambda case: case.saved.item() != case.right["saved"].item(), lambda case: "state_dict() contains "
                 f"{case.saved.item():.0f} numbers, expected {case.right['saved'].item():.0f}.",
                 "A saved file must contain the weights of all blocks, once each."),
        Property(lambda case: case.got["second pass"].item() > 1e-6, lambda case: "two passes over the same text differ by "
                 f"up to {case.got['second pass'].item():.3f}.", "Nothing here should be random once the stack is made."),
        Property(lambda case: _gap(case, "output") > 1e-4, _output, "The blocks that PyTorch sees must run one after "
                 "another, each once, on what the one before has made, and nothing else may run."),
        Property(lambda case: case.trained.item() != case.right["trained"].item(), _trained, "Something between the blocks "
                 "cuts it off: detach(), .data or no_grad()."),
        *reaches("x"),
    ),
    hints=(
        "Count the parameters of stacks of one, two and three blocks.",
        "[make_block()] * 3 calls make_block once. A list comprehension calls it as often as you like.",
        "nn.ModuleList is a list that PyTorch can see into.",
    ),
)

EXERCISES = (HIDDEN, NORM, POST_NORM, STACK, DEPTH)
