"""Exercises and quiz of notebook 07, transformer blocks."""

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import gap, listed, no_module, not_contiguous, one_tensor, reached, reaches

# ---------------------------------------------------------------- 7.1 two hidden units by hand

def strong_praise():
    h_1 = max(2 + 0 - 1, 0)                                                # 1: it fires, though nothing is negated
    h_2 = max(-2 + 0 - 1, 0)                                               # 0
    # Strong praise comes out as no opinion at all. relu(opinion + 2 · negated - 2) would do for opinions up to 2.
    return [h_1, h_2, 2 - 2 * h_1 + 2 * h_2]

def _led_to(case: Case) -> float:
    """The new opinion that the learner's own hidden units lead to."""
    first, second, _ = case.answer.tolist()
    return 2 - 2 * first + 2 * second


HIDDEN = ask(
    "7.1", strong_praise,
    kind="number",
    tolerance=1e-3,
    signature="a list of three numbers: h_1, h_2 and the new opinion",
    mistakes={
        "unchanged": M(lambda: [0, 0, 2],
            lambda case: f"{listed(case.answer, 'g')} is what you'd hope for.",
            "But h_1 doesn't fire only for negated praise: put opinion 2 and negated 0 into its formula."),
        "no-relu": M(lambda: [1, -3, -6],
            lambda case: f"your h_2 is {case.answer[1]:g}.",
            "relu keeps nothing below zero: a hidden unit "
                "is 0 or positive. h_2 goes into the new opinion after that."),
        "no-residual": M(lambda: [1, 0, -2],
            lambda case: f"{listed(case.answer, 'g')}: the last number is the change alone.",
            "The hidden units are right. conclude returns x + …: the change is added to the opinion that was there."),
        "as-negated": M(lambda: [2, 0, -2],
            lambda case: f"your h_1 is {case.answer[0]:g}, as for a negated word.",
            "This one is not negated, and the - 1 stays: opinion + 0 - 1."),
        "wrong-way": M(lambda: [1, 0, 4],
            lambda case: f"your h_1 is {case.answer[0]:g}, and the opinion went up to {case.answer[2]:g}.",
            "The hidden units are right, but where h_1 fires, 2 is subtracted (W_2 has -2 there)."),
        "other-unit": M(lambda: [0, 1, 4],
            lambda case: f"{listed(case.answer, 'g')}: the wrong unit fires.",
            "h_1 begins with + opinion, h_2 with - opinion. For a positive opinion only h_1 can fire here."),
        "once": M(lambda: [1, 0, 1],
            lambda case: f"{listed(case.answer, 'g')}: h_1 was subtracted once.",
            "The hidden units are right; "
                "W_2 contains -2, so twice h_1 is subtracted."),
        "opinion-of-one": M(lambda: [0, 0, 1],
            lambda case: f"{listed(case.answer, 'g')} is right for opinion +1, not negated.",
            "Here the opinion is +2."),
    },
    rules=(
        R(lambda case: (case.answer[:2] < 0).any(), lambda case: "one of your hidden units is "
                 f"{case.answer[:2].min():g}.", "relu keeps nothing below zero."),
        R(lambda case: abs(_led_to(case) - case.answer[2].item()) > 1e-3, lambda case: "with your h_1 and h_2 the "
                 f"new opinion would be 2 - 2 · h_1 + 2 · h_2 = {_led_to(case):g}, and you have {case.answer[2]:g}.",
                 "The change is added to the opinion."),
        R(lambda case: abs(case.answer[0].item() - 1) > 1e-3 or abs(case.answer[1].item()) > 1e-3, lambda case:
                 f"the new opinion does follow from your h_1 and h_2, {case.answer[0]:g} and {case.answer[1]:g}.",
                 "But they are not what the two formulas give for opinion 2 and negated 0."),
    ),
    hints=(
        "h_1 = relu(opinion + negated - 1) and h_2 = relu(-opinion + negated - 1), with opinion 2 and negated 0.",
        "h_1 = relu(2 + 0 - 1), h_2 = relu(-2 + 0 - 1).",
        "The new opinion is 2 - 2 · h_1 + 2 · h_2.",
        "And the bracket: relu(opinion + 2 · negated - 2) and relu(-opinion + 2 · negated - 2), with -2 and 2 in W_2 as "
        "before. A word that isn't negated then fires neither, up to an opinion of 2, and a negated one changes sign.",
    ),
)

# ---------------------------------------------------------------- 7.2 layer norm

def norm_by_hand(x, weight, bias, eps=1e-5):
    deviations = x - x.mean(dim=-1, keepdim=True)                          # (batch, seq_len, d_model)
    variance = (deviations**2).mean(dim=-1, keepdim=True)                  # (batch, seq_len, 1), divided by d
    return deviations / torch.sqrt(variance + eps) * weight + bias


def _norm(dim=-1, correction=0, root=True, outside=False, use_eps=True, centre=True, squares_of_x=False, scale=True,
          shift=True, shift_first=False):
    """Layer norm with one or more things changed."""
    def norm(x, weight, bias, eps=1e-5):
        deviations = x - x.mean(dim=dim, keepdim=True) if centre else x
        if squares_of_x or not centre:
            variance = x.square().mean(dim=dim, keepdim=True)
        else:
            variance = x.var(dim=dim, keepdim=True, correction=correction)
        inside = 0.0 if outside or not use_eps else eps
        divisor = torch.sqrt(variance + inside) if root else variance + inside
        y = deviations / (divisor + eps if outside else divisor)
        if shift_first:
            return (y + bias) * weight
        return (y * weight if scale else y) + (bias if shift else 0.0)
    return norm


def _by_squares(x, weight, bias, eps=1e-5):
    """Layer norm with the variance as the mean of the squares minus the square of the mean."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.square().mean(dim=-1, keepdim=True) - mean.square()
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias

def norm_probes(generator: torch.Generator) -> list[tuple]:
    """(x, weight, bias, eps): words of different means and sizes, with a large eps and the usual one; then four dims.

    Then a word of equal numbers, whose variance is zero, one text of one word, in float64 and not in order in memory, and
    words with a mean near 3,000.
    """
    def draw(front, d_model, eps):
        x = torch.randn(*front, d_model, generator=generator)
        sizes = 0.5 + 2 * torch.rand(*front, 1, generator=generator)
        means = torch.randn(*front, 1, generator=generator)
        weight = 0.5 + torch.rand(d_model, generator=generator)
        return sizes * x + means, weight, torch.randn(d_model, generator=generator), eps

    probes = [draw((2, 5), 8, 0.3), draw((3, 4), 6, 1e-5), draw((2, 3, 4), 5, 1e-5), draw((1, 2), 4, 1e-5)]
    probes[-1][0][0, 1] = 3.0
    single = draw((1, 1), 3, 1e-3)
    far = draw((2, 3), 8, 1e-5)
    return [*probes, (*not_contiguous(tuple(20 * part.double() for part in single[:3])), single[3]),
            (20 * far[0] + 3000, *far[1:])]


def observe_norm(function, x, weight, bias, eps):
    """What comes out, and whether gradients reach x, weight and bias."""
    output = function(x, weight, bias, eps)
    if output is None:
        return None
    names = {0: "x", 1: "weight", 2: "bias"}
    return {"": one_tensor(output, "the normalised x"), **reached(function, output, (x, weight, bias, eps), names)}

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


NORM = ask(
    "7.2", norm_by_hand,
    probes=norm_probes,
    observe=observe_norm,
    forbidden=("course_utils.transformer_blocks.layer_norm",
    "torch.nn.functional.layer_norm", "torch.layer_norm", "torch.native_layer_norm"),
    signature="norm_by_hand(x (..., d_model), weight (d_model,), bias (d_model,), eps) -> (..., d_model)",
    mistakes={
        "over-words": M(_norm(dim=1),
            _moments,
            "You normalize over the words (dim 1). Then a word's numbers depend on the other "
                "words of its text, and on padding (notebook 07, section 4). The features are the last dimension."),
        "over-text": M(_norm(dim=(1, 2)),
            _moments,
            "You normalize over words and features together. A word's numbers then depend on the "
                "rest of its text (notebook 07, section 4). Each word has a mean and a variance of its own."),
        "over-words-from-the-end": M(_norm(dim=-2),
            _moments,
            "You normalize over the last dimension but one, the words. Then a "
                "word's numbers depend on the other words of its text, and on padding (notebook 07, section 4). The "
                "features are the last dimension."),
        "over-text-from-the-end": M(_norm(dim=(-2, -1)),
            _moments,
            "You normalize over the last two dimensions together, words and "
                "features. A word's numbers then depend on the rest of its text (notebook 07, section 4). The "
                "features are the last dimension alone."),
        "third-dimension": M(_norm(dim=2),
            _moments,
            "With three dimensions it works, because there dim 2 is the last. x can "
                "have any number of leading dimensions: count from the end, dim=-1."),
        "over-batch": M(_norm(dim=0),
            _moments,
            "You normalize over the texts (dim 0): a model's prediction for one review "
                "would depend "
                "on the others in its batch (notebook 07, section 4). The features are the last dimension."),
        "over-everything": M(_norm(dim=None),
            _moments,
            "There's one mean and one variance for the whole tensor: x.mean() without a dim takes all words of all texts. "
                "Each word has a mean and a variance of its own, over the last dimension (notebook 07, section 4)."),
        "d-minus-1": M(_norm(correction=1),
            _moments,
            "The squares were divided by d - 1, as torch.var and torch.std do unless told "
                "otherwise. Layer norm divides by d: take the mean of the squares, or correction=0."),
        "eps-outside": M(_norm(outside=True),
            _moments,
            "eps was added to the root. It belongs under it: √(variance + eps)."),
        "std-plus-eps": M(_norm(correction=1, outside=True),
            _moments,
            "Two things differ: x.std() divides by d - 1 and not by d, and eps was added to "
                "the root instead of under it."),
        "no-eps": M(_norm(use_eps=False),
            _moments,
            "The eps that you are given has no effect. It belongs under the root, √(variance + "
                "eps), and prevents a division by zero in a word whose numbers are all equal."),
        "no-root": M(_norm(root=False),
            _moments,
            "You divide by the variance. Divide by its root, so that the variance becomes 1."),
        "not-centred": M(_norm(centre=False),
            _moments,
            "The mean was never subtracted: you divide by the root of the mean square. That is "
                "a different norm, RMSNorm; layer norm subtracts the mean first."),
        "squares-of-x": M(_norm(squares_of_x=True),
            _moments,
            "The mean was subtracted in the numerator but not in the variance, which is the "
                "mean square of the deviations, not of x."),
        "mean-of-squares": M(_by_squares,
            _moments,
            "The variance as E[x²] - m², the mean of the squares minus the square of the mean, is right on paper. But "
                "with a mean near 3,000 both are about nine million, and what is left of their difference is rounding "
                "error (cancellation). Subtract the mean first, then square."),
        "no-scale-no-shift": M(_norm(scale=False, shift=False),
            _raw,
            "The vector is normalized correctly, but then it stops: multiply by weight "
                "and add "
                "bias, feature by feature."),
        "no-shift": M(_norm(shift=False),
            _raw,
            "Normalised and scaled correctly, but bias was not added."),
        "no-scale": M(_norm(scale=False),
            _raw,
            "Normalised correctly and shifted, but never multiplied by weight."),
        "shift-first": M(_norm(shift_first=True),
            _raw,
            "The bias was added before the multiplication by weight, so it is scaled too. First "
                "scale, then shift."),
    },
    rules=(
        R(lambda case: _other_eps(case) is not None, lambda case: f"{_moments(case)[:-1]}, and your numbers are "
                 f"close to those of eps = {_other_eps(case):.3g}.", "The eps that you are given has no effect here: it "
                 "must be under the root, √(variance + eps), instead of a number of your own."),
        R(lambda case: (_undone(case, case.got) - _undone(case, case.right)).abs().max() > 1e-3
                 and _undone(case, case.got).mean(dim=-1).abs().max() > 1e-3, _moments, "Check two things separately: "
                 "that each "
                 "word's own mean is subtracted, over the last dimension; and that weight and bias come after that, in this "
                 "order."),
        R(lambda case: (_undone(case, case.got) - _undone(case, case.right)).abs().max() > 1e-3, _moments,
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

def post_norm_order():
    """E B D C F A. As rules: (line, a later line, the mistake if they stand the other way round)."""
    return [
        ("E", "B", "unknown-change"), ("C", "F", "unknown-transformed"), ("E", "C", "feed-forward-first"),
        ("E", "D", "norm-before-attention"), ("B", "D", "norm-before-sum"), ("B", "C", "side-by-side"),
        ("D", "A", "norms-swapped"), ("D", "C", "norm-too-late"), ("F", "A", "last-norm-too-early"),
    ]

def _step(letter: str):
    """Where a line stands in the learner's order, from 1."""
    return lambda case: case.answer.split().index(letter) + 1


def _steps(one: str, other: str):
    return lambda case: f"{one} is your line {_step(one)(case)} and {other} your line {_step(other)(case)}."


POST_NORM = ask(
    "7.3", post_norm_order,
    kind="order",
    lines=("x = norm_2(x)", "x = x + change", "transformed = feed_forward(x)", "x = norm_1(x)",
    "change = attention(x).context", "x = x + transformed",),
    signature='a text such as "A B C D E F"',
    mistakes={
        "unknown-change": M(lambda: "B E D C F A",
            _steps("B", "E"),
            "B adds what attention computed, so E has to run before it."),
        "unknown-transformed": M(lambda: "E B D F C A",
            _steps("F", "C"),
            "F adds what the feed-forward layer computed, so C has to "
                "run before "
                "it."),
        "feed-forward-first": M(lambda: "C F A E B D",
            _steps("C", "E"),
            "Here the feed-forward layer runs before attention. It draws "
                "conclusions "
                "from what attention has collected, so attention comes first."),
        "norm-before-attention": M(lambda: "D E B C F A",
            _steps("D", "E"),
            "x is normalized before attention sees it. That is neither of "
                "the two orders: since x is overwritten, the residual starts from the norm as well. Post-norm: after the "
                "sum."),
        "norm-before-sum": M(lambda: "E D B C F A",
            _steps("D", "B"),
            "norm_1 comes before attention's change has been added. Post-norm "
                "normalizes the sum, LN(x + f(x))."),
        "side-by-side": M(lambda: "E C B D F A",
            _steps("C", "B"),
            "The feed-forward layer reads x before attention's change has been added. "
                "The sum comes first, then the next sublayer."),
        "norms-swapped": M(lambda: "E B A C F D",
            _steps("A", "D"),
            "norm_2 belongs to the feed-forward layer and ends the block; norm_1 "
                "ends the attention part."),
        "norm-too-late": M(lambda: "E B C D F A",
            _steps("D", "C"),
            "The feed-forward layer reads the sum before norm_1 has normalized it. "
                "In post-norm each half ends with its norm."),
        "last-norm-too-early": M(lambda: "E B D C A F",
            _steps("A", "F"),
            "norm_2 comes before the feed-forward layer's change has been "
                "added. Post-norm normalizes the sum, and a norm is the last line."),
    },
    rules=(),
    hints=(
        "Post-norm is LN(x + f(x)), twice. Which three lines belong to f = attention?",
        "In each half: compute f(x), add it, normalize.",
    ),
)

# ---------------------------------------------------------------- 7.4 a pre-norm stack from parts

def pre_norm_stack(x, layers, last_norm, mask):
    for attention, feed_forward, norm_1, norm_2 in layers:
        x = x + attention(norm_1(x), mask)                                 # (batch, seq_len, d_model)
        x = x + feed_forward(norm_2(x))
    return last_norm(x)


def _stack(block, first_again=False, last="once", masked=True):
    """A stack of `block`s, each (x, attention, feed_forward, norm_1, norm_2) -> x."""
    def stack(x, layers, last_norm, mask):
        for parts in layers:
            attention, feed_forward, norm_1, norm_2 = layers[0] if first_again else parts
            x = block(x, lambda y, attend=attention: attend(y, mask if masked else None), feed_forward, norm_1, norm_2)
            x = last_norm(x) if last == "each" else x
        return last_norm(x) if last == "once" else x
    return stack


def _pre(x, attention, feed_forward, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def _post(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


def _from_norm(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + feed_forward(x)


def _feed_forward_first(x, attention, feed_forward, norm_1, norm_2):
    x = x + feed_forward(norm_2(x))
    return x + attention(norm_1(x))

def _attention(W_score: torch.Tensor, W_value: torch.Tensor):
    """One head as a plain function: attention(x (batch, seq_len, d_model), mask (batch, 1, seq_len) or None)."""
    def attention(x, mask=None):
        scores = x @ W_score @ x.transpose(-2, -1) / x.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return scores.softmax(dim=-1) @ x @ W_value
    return attention


def _feed_forward(W_1: torch.Tensor, W_2: torch.Tensor):
    def feed_forward(x):
        return torch.relu(x @ W_1) @ W_2
    return feed_forward


def _layer_norm(weight: torch.Tensor, bias: torch.Tensor):
    def norm(x):
        return nn.functional.layer_norm(x, weight.shape, weight, bias)
    return norm


def stack_probes(generator: torch.Generator) -> list[tuple]:
    """(x, layers, last_norm, mask): two layers on padded texts of 5 words, three layers on texts of 4; one on one text;
    none."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    def norm(d):
        return _layer_norm(0.5 + torch.rand(d, generator=generator), draw(d))

    def layer(d):
        attention = _attention(draw(d, d) / d**0.5, draw(d, d) / d**0.5)
        return attention, _feed_forward(draw(d, 2 * d) / d**0.5, draw(2 * d, d) / d**0.5), norm(d), norm(d)

    def probe(batch, length, d, depth, real):
        mask = (torch.arange(length) < torch.tensor(real)[:, None])[:, None]
        return 2 * draw(batch, length, d) + 1, [layer(d) for _ in range(depth)], norm(d), mask

    return [probe(2, 5, 6, 2, [4, 2]), probe(3, 4, 8, 3, [3, 1, 2]), probe(1, 2, 4, 1, [1]), probe(2, 3, 4, 0, [3, 2])]


def observe_stack(answer, x, layers, last_norm, mask):
    """The output; the same with silent sublayers and a last norm that triples; how far real words move with the padding."""
    output = answer(x, layers, last_norm, mask)
    if output is None:
        return None
    out = one_tensor(output, "the output of the stack")

    def stack(*given):
        return one_tensor(answer(*given), "the output of the stack")

    def nothing(x, mask=None):
        return torch.zeros_like(x)

    silent = stack(x, [(nothing, nothing, norm_1, norm_2) for _, _, norm_1, norm_2 in layers], lambda x: 3 * x, mask)
    real = mask[:, 0]                                                      # (batch, seq_len)
    other = stack(torch.where(real[..., None], x, x.flip(-1)), layers, last_norm, mask)
    moved = (other - out)[real].abs().max() if out.shape == x.shape else 0.0
    return {"output": out, "output with silent sublayers": silent, "moved": moved,
            **reached(answer, output, (x, layers, last_norm, mask), {0: "x"})}

def _gap(case: Case, name: str = "output") -> float:
    return (case.got[name] - case.right[name]).abs().max().item()


def _silent(case: Case) -> str:
    return ("with sublayers that give zeros and a last_norm that only triples, your stack differs from 3 · x by up to "
            f"{_gap(case, 'output with silent sublayers'):.3f}.")


def _loud(case: Case) -> str:
    return f"with sublayers that give zeros your stack is right; with the given ones it is off by up to {_gap(case):.3f}."


STACK = ask(
    "7.4", pre_norm_stack,
    probes=stack_probes,
    observe=observe_stack,
    signature="pre_norm_stack(x (batch, seq_len, d_model), layers, last_norm, mask (batch, 1, seq_len), True = may attend) "
    "-> (batch, seq_len, d_model)",
    mistakes={
        "post-norm": M(_stack(_post),
            _silent,
            "Each norm comes after its sum: that is post-norm, LN(x + f(x)). In pre-norm the "
                "norms are inside, x + f(LN(x)), and there are only sums on the path of x (notebook 07, section 5)."),
        "residual-from-norm": M(_stack(_from_norm),
            _silent,
            "x was overwritten by its norm, so the sum starts from the normalized x. "
                "Only what goes into the sublayer is normalized."),
        "no-residual": M(_stack(lambda x, a, f, n, m: f(m(a(n(x))))),
            _silent,
            "Neither sublayer adds its input: its output replaces x. Notebook 07, section "
                "6, shows where that leads: x = x + …, twice in each layer."),
        "attention-replaces": M(_stack(lambda x, a, f, n, m: (y := a(n(x))) + f(m(y))),
            _silent,
            "Attention's output replaces x; the residual around the feed-forward layer "
                "is there. Add x for attention too."),
        "feed-forward-replaces": M(_stack(lambda x, a, f, n, m: f(m(x + a(n(x))))),
            _silent,
            "The feed-forward layer's output replaces x; the residual around "
                "attention is there. Add x for the feed-forward layer too."),
        "no-norms": M(_stack(lambda x, a, f, n, m: (y := x + a(x)) + f(y)),
            _loud,
            "Neither norm_1 nor norm_2 is used: the sublayers get x as it is. Zeros cannot show "
                "that."),
        "attention-not-normed": M(_stack(lambda x, a, f, n, m: (y := x + a(x)) + f(m(y))),
            _loud,
            "Attention gets x as it is, without norm_1."),
        "feed-forward-not-normed": M(_stack(lambda x, a, f, n, m: (y := x + a(n(x))) + f(y)),
            _loud,
            "The feed-forward layer gets x as it is, without norm_2."),
        "same-norm-twice": M(_stack(lambda x, a, f, n, m: (y := x + a(n(x))) + f(n(y))),
            _loud,
            "norm_1 is used before both sublayers. Each norm has its own scale and shift; "
                "before training these are equal, so nobody would notice."),
        "norms-exchanged": M(_stack(lambda x, a, f, n, m: _pre(x, a, f, m, n)),
            _loud,
            "norm_1 and norm_2 have changed places: norm_1 is attention's, norm_2 the feed-forward layer's."),
        "no-last-norm": M(_stack(_pre, last="never"),
            _silent,
            "The last norm is missing. After the last sum nothing limits the size of the "
                "vectors (notebook 07, section 5)."),
        "last-norm-in-the-loop": M(_stack(_pre, last="each"),
            _silent,
            "last_norm runs after every layer, so it is on the path of x. It belongs "
                "once, after the loop."),
        "first-layer-again": M(_stack(_pre, first_again=True),
            _loud,
            "Every round uses the parts of layers[0]. Each layer has weights of its own."),
        "no-mask": M(_stack(_pre, masked=False),
            lambda case: f"when the padding changes, real words move by up to {case.moved.item():.3f}.",
            "The mask does not reach attention. Pass it to attention in every layer."),
        "no-feed-forward": M(_stack(lambda x, a, f, n, m: x + a(n(x))),
            _loud,
            "The feed-forward layers are missing: a word collects, but draws no conclusion "
                "(notebook 07, section 1)."),
        "feed-forward-first": M(_stack(_feed_forward_first),
            _loud,
            "The feed-forward layer comes before attention. Attention first, as in the "
                "bare block."),
        "side-by-side": M(_stack(lambda x, a, f, n, m: x + a(n(x)) + f(m(x))),
            _loud,
            "Both sublayers read the same x, and their changes are added together. The "
                "feed-forward layer must see what attention has added."),
    },
    rules=(
        R(lambda case: case.inputs[1] and _gap(case, "output with silent sublayers") > 1e-3, _silent,
                 "Only the residuals and last_norm are left then. What else touches x on its way, or what is missing?"),
        R(lambda case: case.moved.item() > 1e-4, lambda case: "when the padding changes, real words move by up to "
                 f"{case.moved.item():.3f}.", "attention(x, mask) needs the mask as it is given, in every layer."),
        R(lambda case: case.inputs[1] and _gap(case) > 1e-4, _loud, "Look at what each sublayer gets (which norm, of "
                 "which x, of which layer), and at what its result is added to."),
        R(lambda case: _gap(case) > 1e-4, lambda case: "stacks of one, two and three layers are right. With no "
                 f"layers at all your result is off by up to {_gap(case):.3f}.", "Then only last_norm(x) is left: it "
                 "comes after "
                 "the loop, however often the loop ran."),
        *reaches("x"),
    ),
    hints=(
        "One loop over layers. In it the two pre-norm lines of 7.8; the four parts come out of the tuple.",
        "for attention, feed_forward, norm_1, norm_2 in layers: and inside, x = x + …, twice.",
        "Attention gets norm_1(x) and the mask, the feed-forward layer norm_2(x). After the loop, last_norm.",
    ),
)

# ---------------------------------------------------------------- 7.5 repair: a stack that does not grow

class BlockStack(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.blocks = nn.ModuleList([make_block() for _ in range(num_layers)])     # visible, and a new one each time

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def _chain(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def _block_stack(make, run=_chain):
    """A stack with blocks made by make(num_layers, make_block) and run by run(blocks, x)."""
    class Stack(nn.Module):
        def __init__(self, num_layers, make_block):
            super().__init__()
            self.blocks = make(num_layers, make_block)

        def forward(self, x):
            return run(self.blocks, x)

    return Stack


class _Overwritten(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        for _ in range(num_layers):
            self.block = make_block()

    def forward(self, x):
        return self.block(x)


class _MadeInForward(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.num_layers, self.make_block = num_layers, make_block

    def forward(self, x):
        return _chain([self.make_block() for _ in range(self.num_layers)], x)


def _made(count=lambda n: n):
    return lambda n, make_block: nn.ModuleList(make_block() for _ in range(count(n)))


def _residual_again(blocks, x):
    for block in blocks:
        x = x + block(x)
    return x


def _without_gradient(blocks, x):
    with torch.no_grad():
        return _chain(blocks, x)


def _each_on_x(blocks, x):
    return [block(x) for block in blocks][-1]

def _make_block(d_model: int):
    """A function that makes a new block, d_model wide, with new random weights each time."""
    def make_block():
        return nn.Sequential(nn.Linear(d_model, d_model + 1), nn.Tanh(), nn.Linear(d_model + 1, d_model))
    return make_block


def depth_probes(generator: torch.Generator) -> list[tuple]:
    """(num_layers, make_block, x): three blocks of width 4, five of width 3, and one block on one word."""
    return [(3, _make_block(4), torch.randn(2, 5, 4, generator=generator)),
            (5, _make_block(3), torch.randn(3, 2, 3, generator=generator)),
            (1, _make_block(2), torch.randn(1, 1, 2, generator=generator))]


def observe_depth(answer, num_layers, make_block, x):
    """Parameters in all, numbers saved, the output with weights filled in, how much a second pass differs, and how many
    parameters a gradient reaches."""
    if isinstance(answer, nn.Module):
        raise TypeError("expected the class itself, BlockStack, and not a stack that was made with it")
    model = answer(num_layers, make_block)
    if not isinstance(model, nn.Module):
        return no_module(model)
    weights = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=weights))
        output = model(x)
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"expected a tensor from forward, got {type(output).__name__}. Its last line must be `return x`")
        again = (model(x) - output).abs().max()
    model.zero_grad()
    to_train = model(x)
    if to_train.requires_grad:
        to_train.square().sum().backward()
    return {"parameters": sum(p.numel() for p in model.parameters()),
            "saved": sum(t.numel() for t in model.state_dict().values()), "output": output,
            "second pass": again, "trained": sum(p.numel() for p in model.parameters() if p.grad is not None),
            **reached(model, output, (x,), {0: "x"})}

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


DEPTH = ask(
    "7.5", BlockStack,
    given="as-given",
    probes=depth_probes,
    observe=observe_depth,
    signature="BlockStack(num_layers, make_block) -> a module that maps x (batch, seq_len, d_model) to the same shape, one "
    "block after another",
    mistakes={
        "as-given": M(_block_stack(lambda n, make: [make()] * n),
            _count,
            "Nothing has changed. Two questions: can PyTorch see into this kind of "
                "list? And how many times is make_block called?"),
        "plain-list": M(_block_stack(lambda n, make: [make() for _ in range(n)]),
            _count,
            "The blocks are different ones now, but a plain list, tuple or dict hides them: no "
                "optimizer would train them and no file would keep them. PyTorch only looks into its own containers."),
        "made-in-forward": M(_MadeInForward,
            lambda case: f"{_count(case)} And two passes over the same text differ by up to "
                f"{case.got['second pass'].item():.3f}.",
            "New blocks are made each time forward runs. Make them once, in "
                "__init__, and keep them."),
        "repeated-block": M(_block_stack(lambda n, make: nn.ModuleList([make()] * n)),
            lambda case: f"{_count(case)} That is {_blocks(case):.0f} block, and it runs "
                f"{case.inputs[0]} times.",
            "PyTorch sees it now, but it is the same block each time: [block] * n repeats "
                "one block. Call make_block again for each."),
        "overwritten": M(_Overwritten,
            lambda case: f"{_count(case)} That is {_blocks(case):.0f} block, and it runs once.",
            "Keep num_layers of them. If each new block gets the name of the one before, only the last is left."),
        "one-too-few": M(_block_stack(_made(lambda n: n - 1)),
            lambda case: f"{_count(case)} Those are {_blocks(case):.0f} blocks.",
            "One is missing: range(n) already gives n numbers, from 0 to n - 1."),
        "one-too-many": M(_block_stack(_made(lambda n: n + 1)),
            lambda case: f"{_count(case)} Those are {_blocks(case):.0f} blocks.",
            "One too many: range(n) gives n numbers, from 0 to n - 1."),
        "not-chained": M(_block_stack(_made(), _each_on_x),
            _output,
            "The output is what the last block makes of the original x; what the others "
                "make is lost, if they run at all. Each must work on what the one before has made."),
        "only-first": M(_block_stack(_made(), lambda blocks, x: blocks[0](x)),
            _output,
            "All blocks are kept but only the first one runs: the others would never receive a "
                "gradient. If `return` is inside the loop, move it out."),
        "reversed": M(_block_stack(_made(), lambda blocks, x: _chain(reversed(blocks), x)),
            _output,
            "The blocks run in the opposite order to the one in which PyTorch lists them. That "
                "trains just as well, but weights that were saved in the usual order would be loaded the wrong way "
                "round.", convention=True),
        "residual-again": M(_block_stack(_made(), _residual_again),
            _output,
            "You add each block's output to its input. The residuals are inside the blocks: "
                "here x = block(x) is all."),
        "cut-off": M(_block_stack(_made(), _without_gradient),
            _trained,
            "no_grad(), detach(), .data or requires_grad_(False) blocks the gradient. No "
                "optimizer could train the stack."),
    },
    rules=(
        R(lambda case: case.parameters.item() != case.right["parameters"].item(), _count,
                 "There must be num_layers blocks, each a new one, all where PyTorch can see them."),
        R(lambda case: case.saved.item() != case.right["saved"].item(), lambda case: "state_dict() contains "
                 f"{case.saved.item():.0f} numbers, expected {case.right['saved'].item():.0f}.",
                 "A saved file must contain the weights of all blocks, once each."),
        R(lambda case: case.got["second pass"].item() > 1e-6, lambda case: "two passes over the same text differ by "
                 f"up to {case.got['second pass'].item():.3f}.", "Nothing here should be random once the stack is made."),
        R(lambda case: _gap(case, "output") > 1e-4, _output, "The blocks that PyTorch sees must run one after "
                 "another, each once, on what the one before has made, and nothing else may run."),
        R(lambda case: case.trained.item() != case.right["trained"].item(), _trained, "Something between the blocks "
                 "cuts it off: detach(), .data or no_grad()."),
        *reaches("x"),
    ),
    hints=(
        "Count the parameters of stacks of one, two and three blocks.",
        "[make_block()] * 3 calls make_block once. A list comprehension calls it as often as you like.",
        "nn.ModuleList is a list that PyTorch can see into.",
    ),
)

# ---------------------------------------------------------------- 7.6 the feed-forward layer as a module

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x):                                                  # x (..., d_model)
        return self.contract(F.gelu(self.expand(x)))


def layer_probes(generator: torch.Generator) -> list[tuple]:
    """(d_model, d_ff, x): wider inside, narrower inside, and one word alone."""
    return [(6, 10, torch.randn(2, 5, 6, generator=generator)), (5, 3, torch.randn(3, 2, 5, generator=generator)),
            (4, 7, torch.randn(4, generator=generator))]


def observe_layer(answer, d_model, d_ff, x):
    """The parameters' names, how many numbers they hold and a gradient reaches; the output with weights filled in, and how
    much a second pass differs."""
    try:
        layer = answer(d_model, d_ff)
    except AttributeError as error:
        if "before Module.__init__() call" not in str(error):
            raise
        raise TypeError("expected `super().__init__()` as the first line of __init__: it prepares the place where the "
                        "module keeps its layers, and you assign one before") from None
    if not isinstance(layer, nn.Module):
        return no_module(layer)
    named, filled = dict(layer.named_parameters()), torch.Generator().manual_seed(d_ff)
    with torch.no_grad():
        for name in ("expand.weight", "expand.bias", "contract.weight", "contract.bias"):
            if name in named:
                named[name].copy_(torch.randn(named[name].shape, generator=filled))
    output = layer(x)
    if output is None:
        return None
    output = one_tensor(output, "the output of the layer")
    if output.requires_grad:
        (output * torch.cos(torch.arange(output.numel())).reshape(output.shape)).sum().backward()
    return {"names": ", ".join(sorted(named)), "parameters": sum(one.numel() for one in named.values()),
            "output": output.detach(), "again": (layer(x) - output).detach().abs().max(),
            "trained": sum(one.numel() for one in named.values() if one.grad is not None)}


def _layer(inner=F.gelu, bias=True, outer=lambda y: y, added=False, order=("expand", "contract"), detached=False):
    """The layer with one or more things changed."""
    class Made(nn.Module):
        def __init__(self, d_model, d_ff):
            super().__init__()
            setattr(self, order[0], nn.Linear(d_model, d_ff, bias=bias))
            setattr(self, order[1], nn.Linear(d_ff, d_model, bias=bias))

        def forward(self, x):
            hidden = inner(getattr(self, order[0])(x))
            change = outer(getattr(self, order[1])(hidden.detach() if detached else hidden))
            return x + change if added else change

    return Made


class _InAList(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.layers = [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]

    def forward(self, x):
        return self.layers[1](F.gelu(self.layers[0](x)))


class _NewEachTime(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.sizes = d_model, d_ff

    def forward(self, x):
        return _InAList(*self.sizes)(x)


class _OnlyExpanded(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return F.gelu(self.expand(x))


HOLDS = "its parameters() are {parameters:.0f} numbers, expected {expected_parameters:.0f}."
OFF = "with weights filled in, the output is off by up to {off:.3f}."
WIDE = "the output has the shape {shape}, expected {expected_shape}."

LAYER = ask(
    "7.6", FeedForward, probes=layer_probes, observe=observe_layer,
    forbidden=("course_utils.transformer_blocks.FeedForward",),
    signature="FeedForward(d_model, d_ff) -> a module that maps x (..., d_model) to the same shape",
    numbers=dict(
        parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
        names=lambda case: case.names or "nothing", trained=lambda case: case.trained, off=lambda case: gap(case, "output"),
        shape=lambda case: tuple(case.output.shape), expected_shape=lambda case: tuple(case.right["output"].shape)),
    mistakes={
        "in-a-list": M(_InAList, HOLDS, "PyTorch doesn't look into a plain list, so no optimizer would train these. Make "
                       "each layer an attribute: self.expand and self.contract."),
        "new-each-time": M(_NewEachTime, HOLDS[:-1] + ", and two passes over the same x differ by up to {again:.3f}.",
                           "The layers are made anew each time forward runs, so whatever they learn is lost. Make them "
                           "once, in __init__."),
        "no-biases": M(_layer(bias=False), HOLDS, "The biases are missing: nn.Linear has them unless it's told not to. "
                       "Without them no hidden unit could wait until two things are there (section 2's - 1)."),
        "no-nonlinearity": M(_layer(inner=lambda y: y), OFF, "There's nothing between the two linear layers, and two linear "
                             "maps in a row are one. F.gelu goes in between."),
        "relu": M(_layer(inner=F.relu), OFF, "It's right for relu. Here the nonlinearity is F.gelu, as in the course's "
                  "models.", convention=True),
        "tanh-gelu": M(_layer(inner=lambda y: F.gelu(y, approximate="tanh")), OFF, "It's right for the approximate gelu. "
                       "F.gelu without an argument is the exact one.", convention=True),
        "gelu-last": M(_layer(inner=lambda y: y, outer=F.gelu), OFF, "F.gelu comes after the second layer. Then the two "
                       "linear layers are one, and the change could never be much below zero. It goes in between."),
        "gelu-twice": M(_layer(outer=F.gelu), OFF, "F.gelu acts on the output as well, so the layer could hardly ever "
                        "subtract anything. It belongs in between only."),
        "input-added": M(_layer(added=True), OFF, "You add x to the change. Whoever calls the layer does that: "
                         "x = x + self.feed_forward(x)."),
        "not-contracted": M(_OnlyExpanded, WIDE, "The hidden units are returned as they are. The second layer, contract, "
                            "brings them back to d_model."),
        "cut-off": M(_layer(detached=True), "a gradient reaches {trained:.0f} of {parameters:.0f} numbers.", "Something "
                     "cuts it off before the second layer, such as detach(), .data or no_grad(), so the first isn't "
                     "trained."),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], HOLDS, "There are two layers: nn.Linear(d_model, d_ff) "
          "and nn.Linear(d_ff, d_model)."),
        R(lambda case: case.names != case.right["names"], "its parameters are {names}.", "Call the layers expand and "
          "contract: the block looks for these names, and so does a file of weights."),
        R(lambda case: case.output.shape != case.right["output"].shape, WIDE, "Print the shape after each of the two "
          "layers: d_ff, then d_model."),
        R(lambda case: gap(case, "output") > 1e-4, OFF, "It should be "
          "self.contract(F.gelu(self.expand(x))), for each word by itself."),
        R(lambda case: case.trained != case.right["trained"],
          "a gradient reaches {trained:.0f} of {parameters:.0f} numbers.",
          "Something cuts it off: detach(), .data or no_grad()."),
    ),
    hints=(
        "__init__: super().__init__(), then self.expand = nn.Linear(d_model, d_ff), and self.contract the other way round.",
        "nn.Linear acts on the last dimension, whatever stands before it, so each word is on its own already.",
        "return self.contract(F.gelu(self.expand(x)))",
    ),
)

# ---------------------------------------------------------------- 7.7 the first transformer's block, counted

FOUR_MAPS = 4 * (512 * 512 + 512)
UP, DOWN = 512 * 2048 + 2048, 2048 * 512 + 512


def first_block():
    attention = 4 * (512 * 512 + 512)                                      # query, key, value, output
    feed_forward = (512 * 2048 + 2048) + (2048 * 512 + 512)                # twice as many: two thirds of the block
    norms = 2 * (512 + 512)                                                # a scale and a shift each
    return attention + feed_forward + norms


def _count(case: Case) -> str:
    return f"{case.answer.item():,.0f}"


def _missing(case: Case) -> str:
    """How far the answer is from the block's number."""
    off = case.answer.item() - case.expected.item()
    return f"{_count(case)} is {abs(off):,.0f} too {'many' if off > 0 else 'few'}."


BLOCK = ask(
    "7.7", first_block, kind="number", tolerance=1e-9, signature="one whole number, such as 1_234_567",
    mistakes={
        "no-biases": M(lambda: 4 * 512**2 + 2 * 512 * 2048 + 2 * 1024, lambda case: f"{_count(case)} has the weights of the "
                       "linear maps and the norms.", "Each of the six maps also has a bias, one number for each column that "
                       "comes out."),
        "weights-only": M(lambda: 4 * 512**2 + 2 * 512 * 2048, lambda case: f"{_count(case)} has the weights of the linear "
                          "maps alone.", "Each of the six maps has a bias, one number for each column that comes out, and "
                          "each norm a scale and a shift."),
        "no-norms": M(lambda: FOUR_MAPS + UP + DOWN, lambda case: f"{_count(case)} is attention and feed-forward layer.",
                      "Two norms are left, each with a scale and a shift."),
        "one-norm": M(lambda: FOUR_MAPS + UP + DOWN + 1024, lambda case: f"{_count(case)} has 1,024 numbers for the norms.",
                      "A norm is missing, or the shifts are: there are two, each with a scale and a shift of 512."),
        "last-norm": M(lambda: FOUR_MAPS + UP + DOWN + 3 * 1024, lambda case: f"{_count(case)} has three norms.", "The last "
                       "norm belongs to the stack, and only if it's pre-norm."),
        "no-output": M(lambda: 3 * FOUR_MAPS // 4 + UP + DOWN + 2048, lambda case: f"{_count(case)} has three maps in "
                       "attention.", "Query, key, value, and the output projection: four."),
        "attention-alone": M(lambda: FOUR_MAPS, lambda case: f"{_count(case)} is attention alone.", "The feed-forward layer "
                             "and two norms are missing."),
        "feed-forward-alone": M(lambda: UP + DOWN, lambda case: f"{_count(case)} is the feed-forward layer alone.",
                                "Attention and two norms are missing."),
        "one-way": M(lambda: FOUR_MAPS + UP + 2048, lambda case: f"{_count(case)} has only the way up in the feed-forward "
                     "layer.", "From 512 to 2,048, and back again."),
        "same-bias": M(lambda: FOUR_MAPS + 2 * 512 * 2048 + 2 * 2048 + 2048, lambda case: f"{_count(case)} has two biases "
                       "of 2,048 numbers.", "A bias has one number for each column that comes out: 2,048 on the way up, "
                       "512 on the way back."),
        "eight-times": M(lambda: 8 * FOUR_MAPS + UP + DOWN + 2048, lambda case: f"{_count(case)} has attention eight times.",
                         "Heads share the width: their number changes nothing."),
        "our-block": M(lambda: 33_472, lambda case: f"{_count(case)} is the block of section 7.", "That's d = 64 and "
                       "d_ff = 128. Here d_model is 512, and d_ff is 2,048."),
        "six-blocks": M(lambda: 6 * (FOUR_MAPS + UP + DOWN + 2048), lambda case: f"{_count(case)} is a stack of six.",
                        "The question is about one block."),
    },
    rules=(
        R(lambda case: abs(case.answer.item() - case.expected.item()) > 0.5, _missing, "Write down the three terms of "
          "section 7's formula one by one: attention, feed-forward layer, norms."),
    ),
    hints=(
        "The formula of section 7, with d = 512 and d_ff = 2,048.",
        "Attention: 4 · 512² + 4 · 512 = 1,050,624.",
        "Feed-forward: 2 · 512 · 2,048 + 2,048 + 512 = 2,099,712. Norms: 4 · 512 = 2,048.",
    ),
)

# ---------------------------------------------------------------- 7.8 one block in both orders

def one_block(x, attention, feed_forward, norm_1, norm_2, norm_first):
    if norm_first:
        x = x + attention(norm_1(x))                                       # (batch, seq_len, d_model)
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attention(x))                                           # 7.3's lines E, B and D
    return norm_2(x + feed_forward(x))                                     # C, F and A


def _orders(pre=_pre, post=_post):
    """A block that runs `pre` or `post`, each (x, attention, feed_forward, norm_1, norm_2) -> x."""
    def block(x, attention, feed_forward, norm_1, norm_2, norm_first):
        return (pre if norm_first else post)(x, attention, feed_forward, norm_1, norm_2)
    return block


def order_probes(generator: torch.Generator) -> list[tuple]:
    """(x, attention, feed_forward, norm_1, norm_2, norm_first): both orders, with sublayers and norms all different."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    def probe(batch, length, d, norm_first):
        norm_1, norm_2 = (_layer_norm(0.5 + torch.rand(d, generator=generator), draw(d)) for _ in range(2))
        feed_forward = _feed_forward(draw(d, 2 * d) / d**0.5, draw(2 * d, d) / d**0.5)
        return (2 * draw(batch, length, d) + 1, _attention(draw(d, d) / d**0.5, draw(d, d) / d**0.5), feed_forward,
                norm_1, norm_2, norm_first)

    return [probe(2, 5, 6, True), probe(2, 5, 6, False), probe(1, 3, 8, True), probe(3, 2, 4, False)]


def observe_order(answer, x, attention, feed_forward, norm_1, norm_2, norm_first):
    """The output, the same with sublayers that give zeros, and whether a gradient reaches x."""
    before = x.clone()                                                     # x += … would change x, and is told by that
    output = answer(x, attention, feed_forward, norm_1, norm_2, norm_first)
    if output is None:
        return None
    silent = answer(before.clone(), torch.zeros_like, torch.zeros_like, norm_1, norm_2, norm_first)
    return {"output": one_tensor(output, "the output of the block"), "silent": one_tensor(silent, "the output of the block"),
            **reached(answer, output, (before, attention, feed_forward, norm_1, norm_2, norm_first), {0: "x"})}


FULL = "with norm_first={first}, the output is off by up to {off:.3f}."
QUIET = "with norm_first={first} and sublayers that give zeros, the output is off by up to {quiet:.3f}."

ORDERS = ask(
    "7.8", one_block, probes=order_probes, observe=observe_order,
    signature="one_block(x (batch, seq_len, d_model), attention, feed_forward, norm_1, norm_2, norm_first) -> "
    "(batch, seq_len, d_model)",
    numbers=dict(first=lambda case: case.inputs[5], off=lambda case: gap(case, "output"),
                 quiet=lambda case: gap(case, "silent")),
    mistakes={
        "swapped": M(_orders(_post, _pre), FULL, "Both orders are there, and swapped: norm_first=True means pre-norm, "
                     "x + f(LN(x))."),
        "pre-always": M(_orders(post=_pre), FULL, "That's pre-norm again. For norm_first=False the norm comes after the "
                        "sum: 7.3's six lines."),
        "post-always": M(_orders(pre=_post), FULL, "That's post-norm, in the order of 7.3. For norm_first=True each "
                         "sublayer reads a normalized copy, and the stream passes through sums only: x + f(LN(x))."),
        "stream-normalized": M(_orders(pre=_from_norm), QUIET, "x was overwritten by its norm, so the sum starts from the "
                               "normalized x. Only the copy that the sublayer reads is normalized."),
        "no-residuals": M(_orders(lambda x, a, f, n, m: f(m(a(n(x)))), lambda x, a, f, n, m: m(f(n(a(x))))), QUIET,
                          "Neither sublayer adds its input: the change replaces x. It's x + …, twice, in both orders."),
        "change-normalized": M(_orders(post=lambda x, a, f, n, m: (y := x + n(a(x))) + m(f(y))), QUIET, "You normalize "
                               "the change and then add it. Post-norm normalizes the sum: LN(x + f(x))."),
        "pre-change-normalized": M(_orders(pre=lambda x, a, f, n, m: (y := x + n(a(x))) + m(f(y))), QUIET, "You normalize "
                                   "what the sublayer returns, x + LN(f(x)). Pre-norm normalizes what it reads: "
                                   "x + f(LN(x))."),
        "always-change-normalized": M(_orders(*2 * [lambda x, a, f, n, m: (y := x + n(a(x))) + m(f(y))]), QUIET, "In both "
                                      "orders you normalize what the sublayer returns. Pre-norm normalizes what it reads, "
                                      "x + f(LN(x)), and post-norm the sum, LN(x + f(x))."),
        "no-norms": M(_orders(*2 * [lambda x, a, f, n, m: (y := x + a(x)) + f(y)]), FULL, "Neither norm_1 nor norm_2 is "
                      "used."),
        "one-norm-twice": M(_orders(lambda x, a, f, n, m: (y := x + a(n(x))) + f(n(y)),
                                    lambda x, a, f, n, m: n((y := n(x + a(x))) + f(y))), FULL, "norm_1 is used twice. Each "
                            "sublayer has a norm of its own; before training the two are equal, so nobody would notice."),
        "norms-exchanged": M(_orders(lambda x, a, f, n, m: _pre(x, a, f, m, n), lambda x, a, f, n, m: _post(x, a, f, m, n)),
                             FULL, "norm_1 and norm_2 have changed places: norm_1 is attention's, norm_2 the feed-forward "
                             "layer's."),
        "pre-norms-exchanged": M(_orders(pre=lambda x, a, f, n, m: _pre(x, a, f, m, n)), FULL, "In pre-norm norm_1 and "
                                 "norm_2 have changed places: norm_1 is attention's, norm_2 the feed-forward layer's."),
        "post-norms-exchanged": M(_orders(post=lambda x, a, f, n, m: _post(x, a, f, m, n)), FULL, "In post-norm norm_1 and "
                                  "norm_2 have changed places: norm_1 ends attention's half, norm_2 the block."),
        "side-by-side": M(_orders(lambda x, a, f, n, m: x + a(n(x)) + f(m(x)),
                                  lambda x, a, f, n, m: m(n(x + a(x)) + f(x))), FULL, "The feed-forward layer reads the x "
                          "from before attention. It must see what attention has added."),
        "feed-forward-first": M(_orders(_feed_forward_first, lambda x, a, f, n, m: n((y := m(x + f(x))) + a(y))), FULL,
                                "The feed-forward layer comes before attention. Attention collects first, then each word "
                                "concludes."),
        "no-feed-forward": M(_orders(lambda x, a, f, n, m: x + a(n(x)), lambda x, a, f, n, m: n(x + a(x))), FULL, "That's "
                             "the first half: the feed-forward layer, with norm_2, is missing."),
    },
    rules=(
        R(lambda case: gap(case, "silent") > 1e-3, QUIET, "With pre-norm x itself should come out then; with post-norm, "
          "norm_2(norm_1(x)). What else touches x on its way, or is missing?"),
        R(lambda case: gap(case, "output") > 1e-4, FULL, "Look at what each sublayer reads, and at what its change is "
          "added to."),
        *reaches("x"),
    ),
    hints=(
        "Two lines for each order: the first for attention, the second for the feed-forward layer.",
        "norm_first: x = x + attention(norm_1(x)). Otherwise: x = norm_1(x + attention(x)).",
        "Then the same again with feed_forward and norm_2; return that.",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: attention-is-nonlinear
  taught: "07"
  question: A colleague removes all feed-forward layers 'because attention is nonlinear anyway'. What is lost for certain?
  options:
    - text: Nothing, because the softmax takes over as the nonlinearity.
      remark: The softmax acts on the weights between words. It does nothing to a word by itself.
    - text: Any nonlinearity applied to each word by itself, norms aside.
      right: true
      remark: With one word the weight is 1, and the output of attention is linear in it (section 1).
    - text: The mixing of words, so that each word is on its own.
      remark: Mixing is attention's own work, and it stays.
- name: moves-in-a-batch
  taught: "07"
  question: Your model's predictions change a little when a review is put into a batch with a longer one, and by the
    same amount in each run. The attention mask is correct. Where do you look first?
  options:
    - text: At the dimension of the norm.
      right: true
      remark: A norm over the words counts the padding (section 4).
    - text: "At dropout: did anyone call `eval()`?"
      remark: That would be the first suspect if the amount varied. With dropout on, even the same batch gives two
        answers.
    - text: At the number of heads.
      remark: A head never sees how long another review is.
- name: from-which-length
  taught: "07"
  question: For n words a block spends 4nd² multiply-adds on its projections, 2nd·d_ff on the feed-forward layer and
    2n²d on mixing words. With d = 64 and d_ff = 256, beyond which length does mixing cost more than all the rest?
  options:
    - text: "128"
      remark: That is 2d, where mixing costs as much as the projections.
    - text: "256"
      remark: That is d_ff, where mixing costs as much as the feed-forward layer.
    - text: "384"
      right: true
      remark: 2d + d_ff = 128 + 256.
- name: silent-block
  taught: "07"
  question: You set the last maps of both sublayers of a block to zero, and its output is the layer norm of its
    input. What kind of block is it?
  options:
    - text: Post-norm, or one whose residual starts from the normalized x.
      right: true
      remark: In both, x passes through a norm (section 5). With fresh norms this test can't tell the two apart.
    - text: A pre-norm block, as it should be.
      remark: A silent pre-norm block is the identity; x passes only through sums.
    - text: One without residual connections, since the sublayers are silent.
      remark: Then nothing would be left of the input.
- name: eight-heads-for-four
  taught: "05"
  question: You build a block with 8 heads instead of 4, with the same `d_model`. What happens to its 33,472 parameters?
  options:
    - text: They double.
      remark: More heads are narrower heads.
    - text: They stay the same.
      right: true
      remark: The four d × d maps keep their size. Section 7 counts it for 2 and 16 heads.
    - text: Those of the attention are halved.
      remark: Its maps stay d × d, whatever the number of heads.
- name: no-gelu
  taught: "07"
  question: You forget the nonlinearity between the two linear layers of a feed-forward layer. What happens?
  options:
    - text: An error, because the shapes no longer fit.
      remark: The shapes are the same with and without it.
    - text: It runs and trains, and can do no more than a single linear layer.
      right: true
      remark: Two linear maps in a row are one linear map. On section 2's task it did no better than no layer at all.
    - text: It's half as strong, since half of the parameters are lost.
      remark: All parameters are there, and trained. What they can compute together is the point.
- name: a-step-down
  taught: "07"
  question: You add a part to a model, and the accuracy falls from 0.95 to 0.50. What do you conclude?
  options:
    - text: The part is useless; leave it out of every model.
      remark: In section 6 the feed-forward layers did that, and with residuals and norms the stack read every text.
    - text: There's a bug, since more parameters can't hurt.
      remark: They can, when training doesn't find the numbers that would help.
    - text: Little, until you've tried it with the other parts in place.
      right: true
      remark: What a part does depends on the parts around it, on the depth and on the task.
"""

WARM_UP = """
- name: rotary-values
  taught: "06"
  question: Rotary positions turn queries and keys by an angle that grows with the position. What does a score
    then depend on?
  options:
    - text: The two words, and the signed distance between them.
      right: true
      remark: Both are turned, so only the difference of the two angles is left.
    - text: The two words alone, since turning leaves lengths as they are.
      remark: Lengths stay, but a dot product also depends on the angle between the two.
    - text: The two words and the position of the query.
      remark: Move both words by ten positions, and the score stays.
- name: last-map
  taught: "05"
  question: Each head of a layer returns a few columns. What makes one vector of them that any later layer can use?
  options:
    - text: The mean of the heads.
      remark: Then what one head found would be lost in the mean.
    - text: They're put side by side, and the output projection mixes them.
      right: true
      remark: Split, attend, merge, project. In this notebook that vector is added to what was there.
    - text: The softmax over the heads.
      remark: A softmax runs over the keys, inside each head.
- name: linear-of-a-sum
  taught: "00"
  question: "`f(x) = x @ W` with a fixed matrix `W`. You know f(a) and f(b). What is f(a + b)?"
  options:
    - text: "f(a) + f(b), whatever W is."
      right: true
      remark: That's what linear means, and section 1 uses it as a test.
    - text: It depends on W.
      remark: "(a + b) @ W is a @ W + b @ W for every W."
    - text: "f(a) · f(b)."
      remark: A product turns sums into sums.
"""
