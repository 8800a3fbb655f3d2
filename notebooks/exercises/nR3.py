"""Exercises and quiz of Part III's review."""

import copy
import math
import re

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask
from course_utils.positional_encoding import RotaryPositions

from course_exercises.common import digit, gap, items_of, listed, no_module, one_tensor, says_of, what

# ---------------------------------------------------------------- R3.1 a causal block with a cache, from memory

class CausalBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.output = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)       # (batch, heads, new, d_head)

    def forward(self, x, past, rotate):                                    # (batch, new, d_model)
        y = self.norm_1(x)
        query, key, value = (self.split(one(y)) for one in (self.query, self.key, self.value))
        before = 0 if past is None else past[0].shape[-2]                  # the position of the first new token
        query, key = rotate(query, before), rotate(key, before)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=-2), torch.cat([past[1], value], dim=-2)
        may = torch.ones(x.shape[1], key.shape[-2], dtype=torch.bool).tril(before)     # (new, before + new)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        context = scores.masked_fill(~may, -math.inf).softmax(dim=-1) @ value
        x = x + self.output(context.transpose(1, 2).flatten(-2))
        return x + self.contract(F.gelu(self.expand(self.norm_2(x)))), (key, value)


QUIET = "stream where both sublayers are silent"
STEPS = "stream, step by step"


def block_probes(generator: torch.Generator) -> list[tuple]:
    """Sizes, texts, how many tokens come at a time: one by one, several at once after others, one head, a single token."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    return [(12, 3, 8, 2 * draw(2, 7, 12) + 1, [2, 1, 3, 1]), (8, 2, 10, draw(1, 6, 8), [1, 1, 1, 1, 2]),
            (4, 1, 3, draw(3, 5, 4), [3, 2]), (4, 2, 4, draw(2, 1, 4), [1])]


def _shapes(d_model: int, d_ff: int) -> list[tuple[str, tuple]]:
    """The names and shapes of the block's parameters, sorted: written down, as no answer is there where hand-ins run."""
    of_weights = {"norm_1": (d_model,), "norm_2": (d_model,), "expand": (d_ff, d_model), "contract": (d_model, d_ff),
                  **dict.fromkeys(("query", "key", "value", "output"), (d_model, d_model))}
    return sorted([(f"{name}.weight", shape) for name, shape in of_weights.items()]
                  + [(f"{name}.bias", shape[:1]) for name, shape in of_weights.items()])


def _numbers_in(kept, depth: int = 4) -> int:
    """How many numbers the tensors hold that stand in a tuple, a list, a dictionary, or an object's attributes."""
    if isinstance(kept, torch.Tensor):
        return kept.numel()
    if depth == 0 or kept is None or isinstance(kept, (str, bytes, int, float)):
        return 0
    parts = kept.values() if isinstance(kept, dict) else kept if isinstance(kept, (list, tuple)) else vars(kept).values() \
        if hasattr(kept, "__dict__") else ()
    return sum(_numbers_in(part, depth - 1) for part in parts)


def _both(output) -> tuple:
    """The two results of a block's call. Raises TypeError, with what came instead, for anything else."""
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        got = f"one tensor, {tuple(output.shape)}" if isinstance(output, torch.Tensor) else what(output)
        raise TypeError(f"expected two results, the new stream and what's to be kept, got {got}. End with `return x, (key, "
                        "value)`")
    return one_tensor(output[0], "the stream after the block"), output[1]


def observe_block(answer, d_model, num_heads, d_ff, x, several):
    """The parameters' names, and how many numbers they have; the stream at once and step by step; how much is kept."""
    try:
        block = answer(d_model, num_heads, d_ff)
    except AttributeError as error:
        if "before Module.__init__() call" not in str(error):
            raise
        raise TypeError("expected `super().__init__()` as the first line of __init__: it prepares the place where the "
                        "module keeps its layers, and you assign one before") from None
    if not isinstance(block, nn.Module):
        return no_module(block)
    named, filled = dict(block.named_parameters()), torch.Generator().manual_seed(d_model)
    with torch.no_grad():
        for name, shape in _shapes(d_model, d_ff):
            numbers = torch.randn(shape, generator=filled)
            if name in named and named[name].shape == shape:
                named[name].copy_(numbers / 2 if len(shape) == 2 else 1 + numbers / 4)
    rotate = RotaryPositions(d_model // num_heads).rotate
    output = block(x, None, rotate)
    if output is None:
        return None
    output, _ = _both(output)
    if output.requires_grad:
        (output * torch.cos(torch.arange(output.numel())).reshape(output.shape)).sum().backward()
    found = {"names": ", ".join(sorted(named)), "parameters": sum(one.numel() for one in named.values()),
             "trained": sum(one.numel() for one in named.values() if one.grad is not None)}
    with torch.no_grad():
        past, steps = None, []
        for new in x.split(several, dim=1):
            step, past = _both(block(new, past, rotate))
            steps.append(step.detach().clone())
        kept = _numbers_in(past) / x.shape[0] / x.shape[1]
        for name, parameter in named.items():
            if name.startswith(("output.", "contract.")):
                parameter.zero_()
        silent, _ = _both(block(x, None, rotate))
    if len({step.shape[0] for step in steps}) > 1 or any(step.dim() != 3 for step in steps):
        raise TypeError(f"expected (batch, new, d_model) from each step, got {tuple(steps[0].shape)} and "
                        f"{tuple(steps[-1].shape)}")
    return {**found, "stream": output.detach(), STEPS: torch.cat(steps, dim=1), "kept": torch.tensor(kept),
            QUIET: silent.detach()}


def _tokens(y) -> int:
    return y.shape[-2]


def _lower(new: int, total: int, past) -> torch.Tensor:
    return torch.ones(new, total, dtype=torch.bool).tril(total - new)


def _all(new: int, total: int, past) -> torch.Tensor:
    return torch.ones(new, total, dtype=torch.bool)


def _block(mask=_lower, query_at=lambda before: before, key_at=lambda before: before, values_too=False, again=False,
           join=lambda past, new: torch.cat([past, new], dim=-2), keep=lambda all_of_them, new, past: all_of_them,
           root=math.sqrt, split=lambda y, heads: y.unflatten(-1, (heads, -1)).transpose(1, 2),
           read=lambda block, x: block.norm_1(x), attend=lambda block, x, context: x + block.output(context),
           conclude=lambda block, x: x + _inner(block, block.norm_2(x))):
    """A block with one or more things changed. `keep` gets (keys, values) of all tokens, those of the new ones, the past."""
    class Made(CausalBlock):
        def forward(self, x, past, rotate):
            y = read(self, x)
            query, key, value = (split(one(y), self.num_heads) for one in (self.query, self.key, self.value))
            before = 0 if past is None else _tokens(past[0])
            query, value = rotate(query, query_at(before)), rotate(value, before) if values_too else value
            new = rotate(key, key_at(before)), value
            key, value = new if past is None else (join(past[0], new[0]), join(past[1], new[1]))
            seen = rotate(key, 0) if again and past is not None else key
            scores = query @ seen.transpose(-2, -1) / root(query.shape[-1])
            may = mask(_tokens(query), _tokens(key), past)
            context = scores.masked_fill(~may, -math.inf).softmax(dim=-1) @ value
            x = attend(self, x, context.transpose(1, 2).flatten(-2))
            return conclude(self, x), keep((key, value), new, past)

    return Made


def _inner(block, x, bend=F.gelu):
    return block.contract(bend(block.expand(x)))


class _Unrotated(CausalBlock):
    def forward(self, x, past, rotate):
        return super().forward(x, past, lambda y, before: y)


class _KeepsInputs(CausalBlock):
    def forward(self, x, past, rotate):
        whole = x if past is None else torch.cat([past, x], dim=1)
        return super().forward(whole, None, rotate)[0][:, -x.shape[1]:], whole


class _KeepsInItself(CausalBlock):
    seen = None

    def forward(self, x, past, rotate):
        x, self.seen = super().forward(x, self.seen, rotate)
        return x, self.seen


class _InAList(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.parts = [CausalBlock(d_model, num_heads, d_ff)]

    def forward(self, x, past, rotate):
        return self.parts[0](x, past, rotate)


class _OneNorm(CausalBlock):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.norm_2 = self.norm_1


def _first_off(case: Case, part: str) -> tuple[int, int]:
    """The text and the first token in it that come out otherwise than they should."""
    off = (case.got[part] - case.right[part]).abs().amax(dim=-1) > 1e-4    # (batch, token)
    token = int(off.any(dim=0).int().argmax())
    return int(off[:, token].int().argmax()), token


def _at_once(case: Case) -> str:
    text, token = _first_off(case, "stream")
    got, right = case.stream[text, token], case.right["stream"][text, token]
    return (f"given all {case.stream.shape[1]} tokens at once, token {token} (counted from 0) comes out as "
            f"[{listed(got)}], expected [{listed(right)}].")


def _step_by_step(case: Case) -> str:
    text, token = _first_off(case, STEPS)
    several = case.inputs[4]
    step = next(i for i in range(len(several)) if sum(several[:i + 1]) > token)
    came = f"{several[step]} token{'s' * (several[step] > 1)} came after {sum(several[:step])}"
    return (f"at once all is right. In steps of {', '.join(map(str, several))} it isn't from token {token} on, where "
            f"{came}: its first number is {case.got[STEPS][text, token, 0]:.3f}, expected "
            f"{case.right[STEPS][text, token, 0]:.3f}.")


def _kept(case: Case) -> str:
    return (f"all numbers are right, but you keep {case.kept.item():g} numbers for each token, expected "
            f"{case.right['kept'].item():g}.")


def _silent(case: Case) -> str:
    word = case.got[QUIET][0, 0] - case.inputs[3][0, 0]
    return f"with `output` and `contract` at zero the first token still moves, by {word.abs().max():.3f}."


HOLDS = "its parameters() are {parameters:.0f} numbers, expected {expected_parameters:.0f}."
REACHED = "a gradient reaches {trained:.0f} of {parameters:.0f} numbers."

BLOCK = ask(
    "R3.1", CausalBlock, probes=block_probes, observe=observe_block,
    forbidden=("course_utils.transformer_blocks.EncoderBlock", "course_utils.multi_head_attention.MultiHeadAttention",
               "torch.nn.functional.multi_head_attention_forward"),
    signature="CausalBlock(d_model, num_heads, d_ff) -> a module that maps x (batch, new, d_model), past (None at first, "
    "then what it returned itself) and rotate(y (batch, heads, new, d_head), offset) to x (batch, new, d_model) and what's "
    "to be kept",
    not_finite={"NaN": "A query without a key gives that: where all is forbidden, softmax divides 0 by 0. A token sees "
                "itself too, so no row of the mask is empty. Is the mask the wrong way round, or its diagonal missing?"},
    numbers=dict(
        parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
        trained=lambda case: case.trained, names=lambda case: case.names or "nothing",
        shape=lambda case: tuple(case.got[STEPS].shape), expected_shape=lambda case: tuple(case.right[STEPS].shape)),
    mistakes={
        "mask-forgotten": M(_block(mask=_all), _at_once, "Each token sees the tokens after it. In training they'd give the "
                            "answers away: row i may look at keys 0 to i."),
        "unmasked-with-a-past": M(
            _block(mask=lambda new, total, past: (_lower if past is None else _all)(new, total, past)), _step_by_step,
            "With a past you leave the mask out. For a single new token that's right; when several arrive, the first of "
            "them sees the others, which come after it."),
        "mask-top-left": M(
            _block(mask=lambda new, total, past: torch.ones(new, total, dtype=torch.bool).tril()), _step_by_step,
            "The mask's diagonal begins at the top left, so the first new token sees key 0 alone. It stands behind all that "
            "was kept: tril(past), with as many columns more as there are kept tokens."),
        "no-positions": M(_Unrotated, _at_once, "Nothing is rotated, so the order of the tokens before this one counts for "
                          "nothing. Queries and keys go through rotate."),
        "positions-from-zero": M(
            _block(query_at=lambda before: 0, key_at=lambda before: 0), _step_by_step,
            "This is a cache without positions: whatever is new is rotated as if it stood at the beginning. Its offset is "
            "the number of tokens that were kept."),
        "query-without-position": M(
            _block(query_at=lambda before: 0), _step_by_step,
            "The new keys are at their positions, the queries at the beginning of the text: every distance is wrong."),
        "key-without-position": M(
            _block(key_at=lambda before: 0), _step_by_step,
            "The queries are at their positions. The new keys are rotated with offset 0, on top of the first tokens."),
        "rotated-again": M(
            _block(again=True), _step_by_step,
            "You rotate all keys, and those that were kept had been rotated when they were new. Rotate each key once."),
        "values-rotated": M(
            _block(values_too=True), _at_once,
            "The values were rotated too. Positions matter where tokens are compared; what's handed over stays as it is."),
        "new-in-front": M(
            _block(join=lambda past, new: torch.cat([new, past], dim=-2)), _step_by_step,
            "The new keys stand in front of the old ones, torch.cat([new, past]), and the mask counts them in order of "
            "time: past first."),
        "past-ignored": M(
            _block(join=lambda past, new: new), _step_by_step,
            "The new tokens see one another and nothing of what was kept. Put past and new together before you compare."),
        "past-not-extended": M(
            _block(keep=lambda both, new, past: new), _step_by_step,
            "You keep the new keys and values alone, so the step after next has forgotten the first tokens. Keep all."),
        "past-returned": M(
            _block(keep=lambda both, new, past: past or both), _step_by_step,
            "What you return to be kept is what you were given: the new tokens are missing from the next step on."),
        "swapped": M(
            _block(keep=lambda both, new, past: both[::-1]), _step_by_step,
            "Keys and values change places between two steps. Read them in the order in which you return them."),
        "keeps-in-itself": M(
            _KeepsInItself, _step_by_step,
            "Your block keeps its past in itself, so a new text begins with the old one in its memory. What's to be kept is "
            "returned, and comes back as `past`; None means that a text begins."),
        "queries-kept": M(
            _block(keep=lambda both, new, past: (*both, both[0])), _kept,
            "You keep queries as well. Nobody asks an old token's question again: what's looked at is its key and value."),
        "inputs-kept": M(
            _KeepsInputs, _kept,
            "You keep the vectors that came in, and compute all keys and values anew in every step. That's right, and saves "
            "nothing: keep what is expensive."),
        "no-scaling": M(_block(root=lambda d_head: 1.0), _at_once, "The scores aren't divided by √d_head."),
        "split-by-view": M(
            _block(split=lambda y, heads: y.reshape(y.shape[0], heads, y.shape[1], -1)), _at_once,
            "view puts pieces of several words into one head. Split the last dimension, then transpose."),
        "in-a-list": M(_InAList, HOLDS, "PyTorch finds a layer that __init__ makes an attribute, such as self.query. In a "
                       "plain list it doesn't look."),
        "one-norm": M(_OneNorm, HOLDS, "One norm serves both sublayers. Each has its own: norm_1 and norm_2."),
        "post-norm": M(
            _block(read=lambda block, x: x, attend=lambda block, x, context: block.norm_1(x + block.output(context)),
                   conclude=lambda block, x: block.norm_2(x + _inner(block, x))), _silent,
            "The norm comes after the sum: that's post-norm, as BERT has it (notebook 14). Pre-norm is x + f(LN(x))."),
        "no-residual-1": M(_block(attend=lambda block, x, context: block.output(context)), _silent, "After attention the "
                           "old x is gone: x = x + output(…)."),
        "no-residual-2": M(_block(conclude=lambda block, x: _inner(block, block.norm_2(x))), _silent, "The feed-forward "
                           "layer replaces the stream; it should add to it."),
        "no-norm-1": M(_block(read=lambda block, x: x), REACHED, "Attention reads the stream as it is; norm_1 comes first."),
        "no-norm-2": M(_block(conclude=lambda block, x: x + _inner(block, x)), REACHED, "The feed-forward layer reads the "
                       "stream as it is; norm_2 comes first."),
        "no-output": M(_block(attend=lambda block, x, context: x + context), REACHED, "The heads' results are side by side, "
                       "and `output` was never used: it mixes them."),
        "no-nonlinearity": M(_block(conclude=lambda block, x: x + _inner(block, block.norm_2(x), lambda y: y)), _at_once,
                             "There is nothing between expand and contract, so the two are one linear layer: F.gelu goes "
                             "there."),
        "relu": M(_block(conclude=lambda block, x: x + _inner(block, block.norm_2(x), torch.relu)), _at_once, "You took "
                  "relu, as the first transformer did. Here it's F.gelu.", convention=True),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], HOLDS, "Two norms, four maps of d_model × d_model, and "
          "expand and contract, all with their biases."),
        R(lambda case: case.names != case.right["names"], "its parameters are {names}.", "Use the eight names that the "
          "question gives."),
        R(lambda case: case.got[STEPS].shape != case.right[STEPS].shape, "your steps return {shape} in all, expected "
          "{expected_shape}.", "A step gives back one vector for each new token, and none for the old ones."),
        R(lambda case: case.trained != case.right["trained"], REACHED, "A part isn't used, or something cuts it off "
          "(detach(), .data, no_grad(), NumPy)."),
        R(lambda case: gap(case, QUIET) > 1e-4, _silent, "A block whose sublayers say nothing leaves the stream as it "
          "was: both only add to x."),
        R(lambda case: gap(case, "stream") > 1e-4, _at_once, "Begin without a past: norm_1, three maps, split, rotate "
          "queries and keys from offset 0, a lower triangle with its diagonal as the mask, merge (transpose back, then "
          "flatten), output; norm_2, expand, F.gelu, contract."),
        R(lambda case: gap(case, STEPS) > 1e-4, _step_by_step, "Four things change with a past: the offset, the keys and "
          "values, the mask's width, and what you return."),
        R(lambda case: (case.kept - case.right["kept"]).abs() > 1e-4, _kept, "A key and a value for each token, d_model "
          "numbers each."),
    ),
    hints=(
        "Write it without a past first: it's your block of R1.2 with rotate and a lower triangle.",
        "before = 0 if past is None else past[0].shape[-2]; that's the offset of what's new, and the mask's diagonal.",
        "key, value = torch.cat([past[0], key], dim=-2), torch.cat([past[1], value], dim=-2), after the rotation.",
        "may = torch.ones(new, before + new, dtype=torch.bool).tril(before), and return x, (key, value).",
    ),
)

# ---------------------------------------------------------------- R3.2 a fine-tuning loop, from memory

def fine_tune(model, train, validation, epochs, rate, head_rate, make):
    head = list(model.head.parameters())
    rest = [one for one in model.parameters() if all(one is not other for other in head)]
    optimizer = make([{"params": rest, "lr": rate}, {"params": head, "lr": head_rate}])
    best, accuracies = -1.0, []
    for _ in range(epochs):
        model.train()
        for inputs, labels in train:
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            found = model(validation[0]).argmax(dim=-1)
        accuracies.append((found == validation[1]).float().mean().item())
        if accuracies[-1] > best:
            best, kept = accuracies[-1], copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    model.eval()
    return accuracies


class _Scripted(nn.Module):
    """A tiny model whose accuracy on validation, where ids are 0, follows a script: how many are right after each epoch.

    In training mode one number of each vector is zero, which stands for dropout, and validation comes out otherwise. It
    notes in which mode it's called, and whether gradients are kept.
    """

    def __init__(self, size: float, script: list[int], answers: torch.Tensor, batches: int, generator: torch.Generator):
        super().__init__()
        self.size, self.script, self.answers, self.batches, self.calls = size, script, answers, batches, []
        self.steps = 0
        self.table, self.head = nn.Embedding(9, 3), nn.Linear(3, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def forward(self, inputs):                                             # (batch, seq_len)
        checked = bool((inputs == 0).all())
        self.calls.append((checked, self.training, torch.is_grad_enabled()))
        x = self.table(inputs).mean(dim=1)                                 # (batch, feature)
        x = x * torch.tensor([0.0, 1.0, 1.0]) if self.training else x
        logits = self.size * self.head(x)
        if not checked:
            return logits
        epoch = min(self.steps // self.batches, len(self.script))
        right = 0 if epoch == 0 else self.script[epoch - 1]
        right = len(self.answers) - right if self.training else right
        said = torch.where(torch.arange(len(self.answers)) < right, self.answers, 1 - self.answers)
        return logits * 0 + 4 * F.one_hot(said, 2)


def tuning_probes(generator: torch.Generator) -> list[tuple]:
    """A model, batches, validation, rates. The best epoch comes twice and isn't the last; gradients are long, then short."""
    probes = []
    for size, script in ((8.0, [5, 7, 6, 7, 3]), (0.2, [4, 2, 7, 7, 5, 6])):
        answers = torch.randint(0, 2, (8,), generator=generator)
        train = [(torch.randint(1, 9, (4, 5), generator=generator), torch.tensor([0, 1, 1, 0])) for _ in range(3)]
        model = _Scripted(size, script, answers, len(train), generator)
        with torch.no_grad():                                              # half of them wrong, so that there's a gradient
            train = [(ids, model.eval()(ids).argmax(dim=-1) ^ torch.tensor([0, 1, 0, 1])) for ids, _ in train]
        model.calls.clear()
        probes.append((model, train, (torch.zeros(8, 5, dtype=torch.long), answers), len(script), 0.05, 0.3))
    return probes


class _Recorded(torch.optim.SGD):
    """SGD that notes how long the gradient was in each step, and counts the steps for the model."""

    def __init__(self, groups, model: _Scripted):
        super().__init__(groups, lr=1e-3)
        self.model, self.lengths = model, []

    def step(self, closure=None):
        found = [one.grad.flatten() for one in self.model.parameters() if one.grad is not None]
        self.lengths.append(torch.cat(found).norm().item() if found else 0.0)
        super().step(closure)
        self.model.steps += 1


def observe_tuning(function, model, train, validation, epochs, rate, head_rate):
    """The accuracies, the weights at the end, each part's rate, the steps' lengths, and in which mode what was done."""
    made = []

    def make(groups):
        made.append(_Recorded(groups, model))
        return made[-1]

    output = function(model, train, validation, epochs, rate, head_rate, make)
    if output is None and not made and not model.calls:
        return None
    accuracies = [float(one) for one in items_of(output, "a list with the accuracy after each epoch")]
    rates = {id(one): group["lr"] for optimizer in made[-1:] for group in optimizer.param_groups for one in group["params"]}
    lengths = [length for optimizer in made for length in optimizer.lengths]
    modes = {checked: [(mode, grad) for was, mode, grad in model.calls if was == checked] for checked in (False, True)}
    return {"accuracies": torch.tensor(accuracies),
            "weights": torch.cat([one.detach().flatten() for one in model.parameters()]),
            "rate of the head": max(rates.get(id(one), 0.0) for one in model.head.parameters()),
            "rate of the rest": rates.get(id(model.table.weight), 0.0), "steps": len(lengths),
            "lengths": torch.tensor((lengths + [0.0] * 40)[:40]),
            "batches in training mode": sum(mode for mode, _ in modes[False]),
            "validation in training mode": any(mode for mode, _ in modes[True]),
            "validation with gradients": any(grad for _, grad in modes[True]), "left in training mode": model.training}


def _loop(groups=None, clear=True, clip="norm", step=True, softmax=False, mode=lambda model, training: model.train(training),
          again=True, check=torch.no_grad, better=lambda new, best: new > best, keep=True, leave=False, only=None,
          give="accuracies", first=False):
    """The loop with one thing changed."""
    def loop(model, train, validation, epochs, rate, head_rate, make):
        head, rest = list(model.head.parameters()), list(model.table.parameters())
        both = [{"params": rest, "lr": rate}, {"params": head, "lr": head_rate}]
        optimizer = make(groups(rest, head, rate, head_rate) if groups else both)
        best, accuracies, losses = -1.0, [], []
        mode(model, True)
        for _ in range(epochs):
            if again:
                mode(model, True)

            def score():
                mode(model, False)
                with check():
                    return (model(validation[0]).argmax(dim=-1) == validation[1]).float().mean().item()
            if first:
                accuracies.append(score())
                mode(model, True)
            for inputs, labels in train[:only]:
                logits = model(inputs)
                loss = F.cross_entropy(logits.softmax(dim=-1) if softmax else logits, labels)
                losses.append(loss.item())
                if clear:
                    optimizer.zero_grad()
                loss.backward()
                if clip == "values":
                    nn.utils.clip_grad_value_(model.parameters(), 1.0)
                elif clip:
                    length = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    if clip == "always" and length < 1:
                        for parameter in model.parameters():
                            parameter.grad /= length
                if step:
                    optimizer.step()
            if not first:
                accuracies.append(score())
            if better(accuracies[-1], best):
                best, kept = accuracies[-1], copy.deepcopy(model.state_dict())
        if keep:
            model.load_state_dict(kept)
        model.train(leave)
        return {"accuracies": accuracies, "losses": losses[len(train) - 1::len(train)], "best": [best]}[give]
    return loop


def _two(of_rest, of_head):
    """Groups with other rates; None for a part that's in no group."""
    def groups(rest, head, rate, head_rate):
        named = {"rate": rate, "head_rate": head_rate}
        return [{"params": part, "lr": named[at]} for part, at in ((rest, of_rest), (head, of_head)) if at]
    return groups


def _rates(case: Case) -> str:
    def said(rate: float) -> str:
        return f"{rate:g}" if rate else "none"

    return (f"the head's rate is {said(case.got['rate of the head'].item())}, expected {case.inputs[5]:g}; that of the rest "
            f"is {said(case.got['rate of the rest'].item())}, expected {case.inputs[4]:g}.")


def _accuracies(case: Case) -> str:
    return f"you return [{listed(case.accuracies)}], expected [{listed(case.right['accuracies'])}]."


def _lengths(case: Case) -> str:
    first = int(((case.lengths - case.right["lengths"]).abs() > 1e-4).int().argmax())
    return (f"in step {first + 1} the gradient is {case.lengths[first]:.3f} long, expected "
            f"{case.right['lengths'][first]:.3f}.")


def _kept_epoch(case: Case) -> str:
    scores = case.right["accuracies"]
    return (f"the accuracies are right, [{listed(scores)}], and the best comes after epoch {int(scores.argmax()) + 1}; the "
            "weights that you leave in the model aren't those.")


def _trained(case: Case) -> str:
    return (f"{case.got['batches in training mode'].item():.0f} batches were read in training mode, expected "
            f"{case.right['batches in training mode'].item():.0f}.")


def _says(text: str):
    return lambda case: text


def _differs(part: str):
    return lambda case: bool(case.got[part] != case.right[part])


def _rates_off(case: Case) -> bool:
    return any(abs(float(case.got[part]) - float(case.right[part])) > 1e-6
               for part in ("rate of the head", "rate of the rest"))


TUNE = ask(
    "R3.2", fine_tune, probes=tuning_probes, observe=observe_tuning,
    signature="fine_tune(model, train, validation, epochs, rate, head_rate, make) -> a list with the accuracy on validation "
    "after each epoch; model(inputs) gives logits, train is a list of (inputs, labels), validation one such pair, and "
    "make(groups) an optimizer",
    mistakes={
        "one-rate": M(_loop(_two("rate", "rate")), _rates, "Head and rest learn at the same small rate. The head begins "
                      "with random numbers and has a long way to go: that's what head_rate is for."),
        "head-rate-for-all": M(_loop(_two("head_rate", "head_rate")), _rates, "All of it learns at the head's rate. What "
                               "was pretrained holds something already, and large steps overwrite it."),
        "rates-swapped": M(_loop(_two("head_rate", "rate")), _rates, "The two rates have changed places."),
        "rest-left-out": M(_loop(_two(None, "head_rate")), _rates, "What was pretrained is in no group, so the head learns "
                           "alone. That's a way to fine-tune; here both learn."),
        "head-left-out": M(_loop(_two("rate", None)), _rates, "The head is in no group: its random numbers stay for ever."),
        "never-cleared": M(_loop(clear=False), _lengths, "The first step is right. backward() adds to the gradients that "
                           "are there: optimizer.zero_grad() before each."),
        "stands-still": M(_loop(step=False), _says("nothing moves the weights."), "loss.backward() makes the gradients, "
                          "optimizer.step() uses them."),
        "not-clipped": M(_loop(clip=None), _lengths, "Where gradients are longer than 1 they must be shortened, all "
                         "together: clip_grad_norm_ after backward and before the step."),
        "clipped-by-value": M(_loop(clip="values"), _lengths, "You cut each number by itself, which turns the gradient in "
                              "another direction: clip_grad_norm_."),
        "always-of-length-1": M(_loop(clip="always"), _lengths, "You bring short gradients to length 1 as well. Only longer "
                                "ones are shortened, which clip_grad_norm_ does by itself."),
        "softmax-first": M(_loop(softmax=True), _lengths, "Is there a softmax before the loss? cross_entropy takes logits; "
                           "it has a softmax of its own."),
        "stays-in-evaluation": M(_loop(again=False), _trained, "The first epoch trains in training mode. Validation then "
                                 "switches to evaluation mode, and nobody switches back: model.train() belongs inside the "
                                 "loop."),
        "never-in-evaluation": M(_loop(mode=lambda model, training: model.train()), _says("validation is read in training "
                                 "mode."), "With dropout on, a score is that of a model with holes, and each call gives "
                                 "another: model.eval() before you measure."),
        "never-in-training": M(_loop(mode=lambda model, training: model.eval()), _trained, "It learns in evaluation mode, "
                               "where dropout is off: model.train() before the batches."),
        "with-gradients": M(_loop(check=torch.enable_grad), _says("validation keeps everything that backward would need."),
                            "All is right, but each check holds the whole graph in memory: with torch.no_grad()."),
        "last-epoch": M(_loop(keep=False), _kept_epoch, "They're those of the last epoch. If you kept model.state_dict(): "
                        "it refers to the weights themselves, which go on changing. Make a copy, copy.deepcopy(…), and load "
                        "it at the end."),
        "last-of-the-best": M(_loop(better=lambda new, best: new >= best), _kept_epoch, "Two epochs are equally good, and "
                              "you keep the later one. Take the first: a new best must be better."),
        "first-epoch": M(_loop(better=lambda new, best: best < 0), _kept_epoch, "They're those of the first epoch: is "
                         "`best` ever updated?"),
        "the-worst": M(_loop(better=lambda new, best: best < 0 or new < best), _kept_epoch, "They're those of the worst "
                       "epoch. An accuracy is better the higher it is."),
        "scored-before": M(_loop(first=True), _accuracies, "You score before each epoch, so the last epoch is never looked "
                           "at, and a model that hasn't learned yet is."),
        "first-batch-only": M(_loop(only=1), lambda case: f"you take {case.got['steps'].item():.0f} steps, expected "
                              f"{case.right['steps'].item():.0f}.", "Only the first batch of each epoch is learned. Is a "
                              "return or a break inside the loop?"),
        "losses-returned": M(_loop(give="losses"), _accuracies, "These are losses. Return the accuracy on validation after "
                             "each epoch."),
        "best-alone": M(_loop(give="best"), _accuracies, "That's the best accuracy alone. One for each epoch, in a list."),
        "left-in-training": M(_loop(leave=True), _says("the model is left in training mode."), "Whoever uses it next would "
                              "use it with dropout on: model.eval() at the end."),
    },
    rules=(
        R(lambda case: case.got["lengths"].max() < 1e-9, _says("no step is taken."), "For each epoch, for each batch: loss, "
          "clear, backward, clip, step; with the optimizer that make gives you."),
        R(_rates_off, _rates, "make([{\"params\": …, \"lr\": rate}, {\"params\": …, \"lr\": head_rate}]): every parameter "
          "is in one group."),
        R(_differs("steps"), lambda case: f"you take {case.got['steps'].item():.0f} steps, expected "
          f"{case.right['steps'].item():.0f}.", "One for each batch, in each epoch."),
        R(_differs("batches in training mode"), _trained, "model.train() before the batches of each epoch, model.eval() "
          "before validation."),
        R(lambda case: bool(case.got["validation in training mode"]), _says("validation is read in training mode."),
          "model.eval() before you measure."),
        R(lambda case: gap(case, "lengths") > 1e-4, _lengths, "Loss, zero_grad, backward, clip_grad_norm_ to 1, step."),
        R(lambda case: case.accuracies.shape != case.right["accuracies"].shape or gap(case, "accuracies") > 1e-4,
          _accuracies, "The proportion of validation that's right, once after each epoch."),
        R(lambda case: gap(case, "weights") > 1e-4, _kept_epoch, "When a new best comes, keep a copy of the weights; load "
          "it at the end."),
        R(lambda case: bool(case.got["validation with gradients"]), _says("validation keeps everything that backward would "
          "need."), "with torch.no_grad()."),
        R(lambda case: bool(case.got["left in training mode"]), _says("the model is left in training mode."), "model.eval() "
          "at the end."),
    ),
    hints=(
        "Before the loop: two groups, an optimizer. In it: train, check, compare with the best. After it: load, evaluate.",
        "head = set(model.head.parameters()), and the rest is [p for p in model.parameters() if p not in head].",
        "if accuracy > best: best, kept = accuracy, copy.deepcopy(model.state_dict())",
        "model.train() is the first line inside the epochs' loop; model.eval() and torch.no_grad() come before validation.",
    ),
)

# ---------------------------------------------------------------- R3.3 three reports

def three_reports():
    # A is asked for what it has just read; B compares nats a token with nats a byte; C's student was taught with the test.
    return 362


def _cause(place: int):
    return says_of(place, 3, "cause ")


REPORTS = ask(
    "R3.3", three_reports, kind="number", tolerance=1e-7,
    signature="a number of three digits: the causes of A, B and C, such as 123",
    mistakes={
        "leak": M(lambda: 462, _cause(0), "That would be just as wonderful a loss. Change a later token and look at the "
                  "rows before it: do A's move? Then ask which token a row finds most probable."),
        "dropout": M(lambda: 162, _cause(0), "With dropout on, two calls with the same text differ, and losses get worse, "
                     "not better. A's is too good."),
        "lengths": M(lambda: 372, _cause(1), "Both of B's numbers are means, so no sum grows with a length. But a mean over "
                     "what?"),
        "units-and-test": M(lambda: 322, _cause(1), "Neither of B's models has counted the held-out texts. What is each of "
                            "the two numbers a mean of?"),
        "temperature": M(lambda: 365, _cause(2), "No temperature was fitted here: the T of distillation was chosen before, "
                         "and it can't change which class a text gets. Which texts did the teacher answer for the student?"),
        "dropout-last": M(lambda: 361, _cause(2), "Call C's student twice with the same texts: the same answers. What do "
                          "the texts on which it's right have in common with its lessons?"),
    },
    rules=(
        R(lambda case: not re.fullmatch("[1-7]{3}", f"{case.answer.item():.0f}"), lambda case: f"you say "
          f"{case.answer.item():g}.", "Write three digits from 1 to 7: the cause of A, then that of B, then that of C."),
        R(lambda case: digit(1, 3)(case) != "6", _cause(1), "Turn both losses into bits for each byte of the same text."),
        R(lambda case: digit(0, 3)(case) != "3", _cause(0), "Give A some ids, and see which token each row of its logits "
          "finds most probable. Which token of the text is it?"),
        R(lambda case: digit(2, 3)(case) != "2", _cause(2), "Look for C's test texts among C's lessons."),
    ),
    hints=(
        "For each cause on the list, ask what you'd see if it were true, and look. Most can be ruled out by one call.",
        "A: model_a(ids).argmax(dim=-1) beside ids. B: nats, times tokens, divided by ln 2 and by the bytes of b_text.",
        "C: len(set(c_lessons) & set(c_test)).",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: review3-too-good
  taught: "17"
  question: After a hundred steps a decoder's loss is nearly 0, on validation as well. What do you think first?
  options:
    - text: It has learned the texts by heart, so it needs more of them.
      remark: Then validation would be bad. These texts it has never seen (17, section 3).
    - text: It sees the very token that it's asked for.
      right: true
      remark: A mask forgotten, or targets not shifted. Validation has the same leak, so it can't warn you (13, section 2;
        17, section 3).
    - text: The texts are easy, and a smaller model would do.
      remark: Nobody can guess nearly every next token of a text. Let it write, and see.
- name: review3-units
  taught: "13"
  question: Two models read the same file. One has a loss of 1.9 nats a token, the other 3.1; their tokenizers differ. Which
    guesses better?
  options:
    - text: The first, since its perplexity is lower.
      remark: Perplexity is per token as well. Sixteen times the perplexity can be the better model (13, section 3).
    - text: The second, since its tokens are probably longer, and so harder.
      remark: They may be. But how much longer? Count.
    - text: Nobody can say before both are divided by bytes.
      right: true
      remark: Nats of all tokens, by ln 2, by the bytes that they stand for (13, section 3).
- name: review3-cache
  taught: "13"
  question: A decoder keeps the keys and values of the tokens that it has read. Why not their queries?
  options:
    - text: An old token's question has been answered; new ones ask for its key and value.
      right: true
      remark: Under the causal mask its row doesn't change any more, in any layer (13, section 6).
    - text: Queries are rotated by their positions, and would have to be rotated again.
      remark: So are keys, and those are kept. Neither is rotated a second time (13, exercise 13.4).
    - text: They'd take too much memory.
      remark: They would take half as much again. But what for?
- name: review3-no-cache
  taught: "R3"
  question: You want a cache for BERT. What's in the way?
  options:
    - text: Its positions are learned, and a cache needs rotary ones.
      remark: GPT-2 has learned positions and a cache. A position is a number in both.
    - text: "Nothing: an encoder's keys and values can be kept like a decoder's."
      remark: In the first layer they could. What happens to the rows above when a token is added (below the quiz)?
    - text: A new token changes the rows of all the others, from the first block's output on.
      right: true
      remark: Each word sees the whole text, so nothing that was kept stays right (below the quiz).
- name: review3-two-layers
  taught: "13b"
  question: "'river stone ember river': why does it take two layers to say 'stone'?"
  options:
    - text: One head finds the word, and a second one has to say it.
      remark: The head that finds it also copies it. What does it need to know about 'stone' beforehand?
    - text: "'stone' must know that 'river' came before it. A head in a lower layer writes that note."
      right: true
      remark: The key by which it's found is the note (13b, section 1).
    - text: A single layer can't look back further than one token.
      remark: Any layer sees all that came before. It isn't a matter of distance (13b, section 1).
- name: review3-without
  taught: "13b"
  question: A model continues repeated texts correctly. Does it have an induction head?
  options:
    - text: Measure it, look where it looks, and move its notes. Right answers alone don't show it.
      right: true
      remark: There was a model with many of the same answers and no such head (13b).
    - text: Yes, as nothing else can continue a text that has never occurred.
      remark: 13b has a model that gets many of them in another way.
    - text: Yes, provided one head gives weight to the token after the earlier occurrence.
      remark: That's one half of the definition. It must also copy, and the answer must depend on it (13b, sections 2 and 4).
- name: review3-hidden
  taught: "14"
  question: BERT's loss counts the chosen tokens alone. What would be wrong with counting all?
  options:
    - text: The mean would be taken over padding as well.
      remark: Padding can be left out in either case.
    - text: Training would take nearly seven times as long.
      remark: All positions are computed anyway. It's about what the model is praised for.
    - text: The others are in plain sight, so the model would be praised for copying.
      right: true
      remark: The loss would look good, and hardly anything would be learned about hidden words (14, section 1).
- name: review3-rates
  taught: "14"
  question: In fine-tuning, head and encoder have different learning rates. Why?
  options:
    - text: The encoder has more parameters, and the same rate for each adds up.
      remark: The number of parameters isn't the reason. What do they hold before the first step?
    - text: The head begins with random numbers, and the encoder holds something that large steps would overwrite.
      right: true
      remark: And freezing is the extreme case of it (14, section 6).
    - text: The gradient that reaches the encoder is larger, since it goes through more layers.
      remark: AdamW divides by the gradient's usual size anyway (08). What's different is what there is to lose.
- name: review3-never-seen
  taught: "15"
  question: A student never saw a 'mixed' note, and afterwards it recognises them. How?
  options:
    - text: Its teacher's softened answers said of each note how mixed it is.
      right: true
      remark: "Three good words and a bad one: a bit mixed. With labels, or at T = 1, hardly any of that is heard (15,
        section 4)."
    - text: It calls a note mixed if it isn't sure of the two others.
      remark: It has learned a score for 'mixed' itself. Without a teacher's answers that score is never high (15, section
        4).
    - text: Its word vectors come from the teacher, and hold the third class.
      remark: They begin with random numbers, and there are 2 numbers a word, where the teacher has 16 (15, section 4).
- name: review3-guest-book
  taught: "15"
  question: You fit a temperature on validation, and the calibration error falls below a point. Then come the sentences of a
    guest book. What do you expect?
  options:
    - text: The error stays small, and fewer answers are right.
      remark: That would be a model that knows what it doesn't know. Nothing in validation could teach it (15, section 6).
    - text: As many are right as before, since a temperature doesn't change answers.
      remark: It doesn't, true. But these are other texts (15, section 1).
    - text: It's too sure again.
      right: true
      remark: A temperature carries over where a model is as often wrong for its confidence. In the guest book it's wrong
        far more often (15, section 6).
- name: review3-one-vector
  taught: "16"
  question: Through one vector, long texts come out worse than short ones. Is the vector too small?
  options:
    - text: Yes, since it has the same room for 40 words as for 4.
      remark: That's why one suspects it. But if each word is right with probability p, every model falls with the length
        (16, section 5).
    - text: Look at the same sentences alone and in company first.
      right: true
      remark: Known sentences, nothing but their number changed. Attention didn't notice it, one vector did (16, section 5).
    - text: No, such a network is hard to train, and would get there with more steps.
      remark: It might. Alone, it had nearly every word of these sentences right, though (16, section 5).
- name: review3-one-block
  taught: "17"
  question: You have a decoder block with self-attention, cross-attention and feed-forward. What makes a BERT block of it?
  options:
    - text: Turn the queries round, so that the memory asks and the words answer.
      remark: Then the result would have as many rows as the memory. BERT has no memory at all.
    - text: A second set of weights for what comes after a word.
      remark: The same weights look both ways. What decides who may look at whom?
    - text: Leave out the middle line, and take padding alone as the mask.
      right: true
      remark: "Who may look at whom is all that differs, but for the place of the norms: BERT's come after the sum (17,
        section 7; 14, section 3)."
"""
