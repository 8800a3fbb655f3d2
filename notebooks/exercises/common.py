"""What the exercises of several notebooks use: random draws for probes, and the words of messages."""

import contextlib
import os
from collections.abc import Callable

import numpy as np
import torch

from course_utils.exercises.compare import DEEPEST, NotNumbers, close, in_form_of, named_tensors, plain_data
from course_utils.exercises.definitions import Case, Property
from course_utils.exercises.records import M

EACH_MAXIMUM = ("If you write the softmax yourself: exp of a large score is infinite, and of a very low one 0. Subtract "
                "each row's own maximum before exp, not one for the whole batch.")  # for an exercise's `not_finite`


def drawn(generator: torch.Generator, bank: list[str], how_many: int) -> list[str]:
    """Different words of a bank, in a random order."""
    return [bank[i] for i in torch.randperm(len(bank), generator=generator)[:how_many].tolist()]


def what(thing) -> str:
    """A thing for an error message: its type and its beginning."""
    return f"{type(thing).__name__} {' '.join(repr(thing).split())[:40]}"


def items_of(output, expected: str) -> list:
    """What any list, tuple, array, tensor or generator holds; TypeError for a text, a dict, and what holds nothing."""
    if isinstance(output, (str, bytes, dict)) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected {expected}, got {what(output)}")
    return list(output)


def pair_of(output, expected: str) -> list:
    """The two things that a tuple, a list or the like holds; TypeError for any other number."""
    items = items_of(output, expected)
    if len(items) != 2:
        raise TypeError(f"expected {expected}, got {what(output)}")
    return items


def whole_id(number) -> int:
    """An id as an int, whatever its type; TypeError for what isn't a whole number."""
    try:
        if int(number) == float(number):
            return int(number)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"expected whole numbers as ids, got {what(number)}")


def spread(values: torch.Tensor) -> str:
    """The range of some numbers: '1.000', or '0.084 to 0.950'."""
    low, high = values.min().item(), values.max().item()
    return f"{low:.3f}" if abs(high - low) < 5e-4 else f"{low:.3f} to {high:.3f}"


def listed(values: torch.Tensor, digits: str = ".3f") -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{value:{digits}}" for value in values.tolist())


def gap(case: Case, part: str = "") -> float:
    """How far the learner's part is from the right one: the largest difference."""
    return (case.got[part] - case.right[part]).abs().max().item()


def largest_weight(case: Case) -> str:
    """What a mistake in the scores says first; ValueError for a case that doesn't show it."""
    yours, right = f"{case.weights.max():.3f}", f"{case.right['weights'].max():.3f}"
    if yours == right:
        raise ValueError(f"both are {right}")
    return f"your largest weight is {yours}, expected {right}."


def row_sums(case: Case) -> str:
    """What weights say that are no weights along their rows."""
    return f"your rows sum to {spread(case.weights.sum(dim=-1))}."


HIDDEN_AT_THE_END = ("You hide as many positions as there's padding, but the last ones. Padding may stand anywhere, and the "
                     "mask says where: use it as it is, without counting.")


def hidden_at_the_end(weights: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether weights (batch, ..., source) leave out the last positions instead of the padding: as many, and no others."""
    kept = torch.arange(mask.shape[1]) < mask.sum(dim=1, keepdim=True)
    rows = weights.flatten(1, -2).amax(dim=1) if weights.dim() > 2 else weights                 # (batch, source)
    return not torch.equal(kept, mask) and torch.equal(rows > 1e-6, kept)


def width(case: Case) -> str:
    """What vectors of another width say."""
    return f"your vectors are {case.answer.shape[-1]} wide, expected {case.expected.shape[-1]}."


def no_module(made):
    """What an `observe` hands on if an answer made no module: None, or a thing whose type says what it was."""
    return made if made is None else type(f"{type(made).__name__}, not a module", (), {})()


def one_tensor(part, name: str):
    """A result as one tensor, however it comes: a tensor, an array, rows in a list. Raises TypeError that names it.

    What isn't a tensor becomes one of bool, int64 or float64, whichever it holds.
    """
    if isinstance(part, (list, tuple)) and part and isinstance(_innermost(part), torch.Tensor):
        rows = [one_tensor(row, name) for row in part]
        if len({row.shape for row in rows}) > 1:
            shapes = " and ".join(str(tuple(row.shape)) for row in rows[:2])    # what() would print them all, and takes long
            raise TypeError(f"expected one tensor as {name}, got {len(rows)} results, of the shapes {shapes}")
        return torch.stack(rows)
    try:
        found = in_form_of(named_tensors(part), {"": torch.zeros(1)})
    except NotNumbers as unfit:
        raise TypeError(f"expected a tensor as {name}, got {unfit}") from None
    if list(found) != [""] or isinstance(found[""], str):
        raise TypeError(f"expected one tensor as {name}, got {what(part)}")
    return part if isinstance(part, torch.Tensor) else found[""].to(_type_of(part))


def _type_of(part) -> torch.dtype:
    """bool, int64 or float64: what a number, an array or a list of lists holds, before it's read as numbers."""
    kind = np.asarray(plain_data(part)).dtype.kind
    return {"b": torch.bool, "i": torch.int64, "u": torch.int64}.get(kind, torch.float64)


def whole_numbers(ids: torch.Tensor, name: str, advice: str) -> None:
    """Raises TypeError for ids that are fractions, by their type."""
    if ids.is_floating_point():
        raise TypeError(f"expected ids, which are whole numbers; your {name} are of type {str(ids.dtype)[6:]}, which "
                        f"neither an embedding nor cross_entropy takes for ids. {advice}")


def one_loss(output, name: str) -> torch.Tensor:
    """A loss as a tensor, () if it's one number. Raises TypeError for several results, a dictionary, or no number at all."""
    if isinstance(output, dict):
        keys = ", ".join(map(repr, output))
        raise TypeError(f"expected one number, {name}; got a dictionary with {keys} in it. Return the number itself")
    if isinstance(output, (tuple, list)):
        raise TypeError(f"expected one number, {name}; got {len(output)} result{'s' * (len(output) != 1)}")
    loss = one_tensor(output, name)
    return loss.reshape(()) if loss.numel() == 1 else loss


def loss_and_gradient(output, leaf: torch.Tensor, name: str) -> dict[str, torch.Tensor]:
    """A loss, and the gradient that it sends to what it was made from; zeros if none arrives, or the loss isn't finite."""
    loss = one_loss(output, "the mean loss")
    gradient = torch.zeros_like(leaf)
    if loss.requires_grad and loss.isfinite().all():
        (gradient,) = gradients_of(loss, [leaf])
    return {"loss": loss, f"gradient for the {name}": gradient}


def put_back(given: torch.Tensor, now: torch.Tensor) -> None:
    """Writes what an answer left in a copy of an input into the input, so that `run_once` finds what was changed."""
    with torch.no_grad():
        given.copy_(now)


def same_twice(call: Callable, why: str):
    """What a call gives. Raises TypeError if a second one gives something else; what that one prints isn't shown."""
    first = call()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            second = call()
        except Exception:                               # a function that keeps something of its first call
            return first
    if first is not None and second is not None and not close(named_tensors(first), named_tensors(second), 1e-4):
        raise TypeError(f"expected the same result for the same inputs, got another one in a second call. {why}")
    return first


def worst_row(case: Case, *parts: str) -> int:
    """The row, along the first dimension, in which one of some parts is furthest from the right one; 0 if shapes differ."""
    pairs = [(case.got[part], case.right[part]) for part in parts]
    if any(got.shape != right.shape or not got.dim() for got, right in pairs):
        return 0
    return int(sum((got - right).abs().nan_to_num().flatten(1).amax(dim=1) for got, right in pairs).argmax())


def _innermost(part):
    """The first thing in a list of lists; of a list that holds itself, the list."""
    for _ in range(DEEPEST):
        if not isinstance(part, (list, tuple)) or not part:
            break
        part = part[0]
    return part


def two_results(output, first: str, second: str) -> tuple:
    """The two results of a function as tensors. Raises TypeError, with what came instead, for anything else."""
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        got = (f"one tensor, {tuple(output.shape)}" if isinstance(output, torch.Tensor) else
               f"{len(output)} results" if isinstance(output, (tuple, list)) else
               f"a dictionary with the keys {', '.join(map(repr, output))}" if isinstance(output, dict) else what(output))
        raise TypeError(f"expected two results, {first} and {second}, got {got}. End with `return {first}, {second}`")
    return one_tensor(output[0], first), one_tensor(output[1], second)


def gradients_of(output: torch.Tensor, leaves: list, upstream: torch.Tensor | None = None) -> list:
    """The gradients that reach some leaves; zeros where none arrives. Raises TypeError if the backward pass stops."""
    if not output.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    try:
        upstream = torch.ones_like(output) if upstream is None and output.dim() else upstream     # of a scalar it's 1
        found = torch.autograd.grad(output, leaves, upstream, allow_unused=True)
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        raise TypeError("expected a gradient, but the backward pass stops: your function changes a tensor in place that "
                        "this pass still needs, as weights[~mask] = 0 does after a softmax. Make a new one instead, such "
                        "as weights = weights.masked_fill(~mask, 0.0)") from None
    return [torch.zeros_like(leaf) if gradient is None else gradient for leaf, gradient in zip(leaves, found)]


def _leading(output) -> torch.Tensor:
    """The tensor that a gradient starts from: the output itself, rows of it stacked, or the first of several results."""
    try:
        return one_tensor(output, "the result")
    except TypeError:
        return one_tensor(output[0], "the first result")


def reached(function, output, inputs: tuple, names: dict[int, str]) -> dict[str, float]:
    """For each named input (by place) what gradient reaches it from the function's first result.

    1.0 for the gradient of these numbers, 0.0 for none, 0.5 for one that doesn't fit the numbers: part of it is
    cut off. An `output` that is no tensor (an array, a list of numbers) has left PyTorch on purpose: it counts as 1.0.
    The function is called many times for that, and what it prints then is not shown.
    """
    if not isinstance(_innermost(output), torch.Tensor):
        return {f"gradient for {name}": 1.0 for name in names.values()}
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        return _reached(function, inputs, names)


def _reached(function, inputs: tuple, names: dict[int, str]) -> dict[str, float]:
    leaves = {place: inputs[place].detach().clone().requires_grad_() for place in names}
    given = [leaves[place].clone() if place in leaves else part for place, part in enumerate(inputs)]   # may be changed
    try:
        again = function(*given)
        output = _leading(again)
        upstream = torch.cos(torch.arange(output.numel(), dtype=output.dtype)).reshape(output.shape)
        gradients = torch.autograd.grad(output, list(leaves.values()), upstream, allow_unused=True)
    except Exception:                                   # cut off by NumPy, or by a change in place
        gradients = [None] * len(names)
    found = {f"gradient for {name}": float(gradient is not None and bool((gradient.abs() > 1e-5).any()))
             for name, gradient in zip(names.values(), gradients)}
    for place, name in names.items():
        if found[f"gradient for {name}"] and not _fits_the_numbers(function, inputs, place):
            found[f"gradient for {name}"] = 0.5
    return found


def _fits_the_numbers(function, inputs: tuple, place: int) -> bool:
    """Whether the gradient for one input tells how the first result changes when that input is moved a little.

    In float64, along one direction, with a small step and a smaller one, of which one has to agree: the small one is spoilt
    by strong curvature, the smaller one by a function that computes in float32. True if the function can't do float64.
    """
    given = [part.detach().double() if isinstance(part, torch.Tensor) and part.is_floating_point() else part
             for part in inputs]
    if given[place].numel() < 4:                        # sizes of one, where two largest numbers may be the same
        return True
    direction = torch.sin(1 + torch.arange(given[place].numel(), dtype=torch.float64)).reshape(given[place].shape)

    def total(moved):
        output = _leading(function(*(moved if i == place else _copy(part) for i, part in enumerate(given))))
        return (output.double() * torch.cos(torch.arange(output.numel(), dtype=torch.float64)).reshape(output.shape)).sum()

    try:
        leaf = given[place].clone().requires_grad_()
        told = float((torch.autograd.grad(total(leaf.clone()), leaf)[0] * direction).sum().detach())
        seen = [float((total(given[place] + step * direction) - total(given[place] - step * direction)).detach()) / 2 / step
                for step in (1e-3, 1e-5)]
    except Exception:                                   # a matrix of its own in float32, say: nothing can be told
        return True
    return any(abs(told - one) <= 0.02 * (abs(told) + abs(one)) + 1e-3 for one in seen)


def _copy(part):
    return part.clone() if isinstance(part, torch.Tensor) else part


def reaches(*names: str) -> tuple[Property, ...]:
    """The properties that belong to `reached`: one for each named input."""
    def rule(name: str) -> Property:
        return Property(lambda case: case.got[f"gradient for {name}"] != case.right[f"gradient for {name}"],
                        lambda case: _seen_through(case, name), "Something cuts it off: detach(), .data, no_grad(), "
                        "item(), NumPy, a new torch.tensor(…), or a change in place, such as weights[~mask] = 0, of a "
                        "tensor that the backward pass still needs.")
    return tuple(rule(name) for name in names)


def _seen_through(case: Case, name: str) -> str:
    whole = {part for part in case.right if not part.startswith("gradient")}
    right = all(torch.allclose(case.got[part], case.right[part], 1e-3, 1e-3) for part in whole)
    if case.got[f"gradient for {name}"] == 0.5:
        return (f"{'the numbers are right, but the' if right else 'the'} gradient that reaches `{name}` is another than "
            f"that of "
                "these numbers: part of the way back is missing.")
    return (f"{'the numbers are right, but no' if right else 'no'} gradient reaches `{name}`, so a model with this function "
            "in it could not be trained.")


def not_contiguous(inputs: tuple) -> tuple:
    """The float tensors of some inputs as they come out of a transpose: the same numbers, not in order in memory."""
    return tuple(part.mT.contiguous().mT if isinstance(part, torch.Tensor) and part.dim() > 1 and part.is_floating_point()
                 else part for part in inputs)


def losses_of_steps(case: Case) -> str:
    """What a wrong loss of a training step says; the part is `losses`."""
    return f"the losses of three steps are {listed(case.losses)}, expected {listed(case.right['losses'])}."


def lengths_of_steps(case: Case) -> str:
    """What a wrong gradient says: how long each step was, `lengths`."""
    return (f"divided by the rate, your three steps are {listed(case.lengths)} long, expected "
            f"{listed(case.right['lengths'])}.")


def moved_by_steps(case: Case) -> str:
    """What a step that doesn't move the weights says."""
    return f"after three steps the weights have moved by {case.lengths.sum():.3f}."


def losses_as_tensors(case: Case) -> str:
    """How many of three losses weren't numbers, `tensors`."""
    return f"{case.tensors.item():.0f} of 3 losses are tensors."


def mistakes_of_a_step(step: Callable, old: str) -> dict[str, M]:
    """What goes wrong between backward and the return in any training step; `step(clip="never")` makes a wrong one.

    `old` is what pushes along if gradients aren't cleared: "batches", say.
    """
    return {
        "never-cleared": M(
            step(zero="never"),
            lengths_of_steps,
            "The first step is right. backward() adds to the gradients that are there, so from the second step on old "
            f"{old} push along. Clear them with optimizer.zero_grad()."),
        "stands-still": M(
            step(step=False),
            moved_by_steps,
            "Two calls move them: loss.backward(), then optimizer.step(). And zero_grad() comes before backward; between "
            "the two it throws away what the step needs."),
        "not-clipped": M(
            step(clip="never"),
            lengths_of_steps,
            "Where the gradients are longer than 1 they must be shortened: nn.utils.clip_grad_norm_(model.parameters(), "
            "1.0), after backward, when there are gradients, and before the step."),
        "clipped-by-value": M(
            step(clip="values"),
            lengths_of_steps,
            "You cut each number by itself, which turns the gradient in another direction. Shorten all of them together: "
            "clip_grad_norm_."),
        "always-of-length-1": M(
            step(clip="always"),
            lengths_of_steps,
            "You bring short gradients to length 1 as well. Only longer ones are shortened, which clip_grad_norm_ does "
            "by itself."),
        "softmax-first": M(
            step(softmax=True),
            losses_of_steps,
            "Is there a softmax before the loss? cross_entropy takes logits; it has a softmax of its own."),
        "loss-after-the-step": M(
            step(give="after"),
            losses_of_steps,
            "That is the loss after the step, for which the model had to run twice. Keep the one from before."),
        "tensor": M(
            step(give="tensor"),
            losses_as_tensors,
            "With such a tensor everything that backward needed stays in memory, for each batch of an epoch. Return "
            "loss.item()."),
    }


def digit(place: int, of: int) -> Callable[[Case], str]:
    """One digit of an answer of `of` digits, each of which says something of A, of B and so on."""
    return lambda case: f"{case.answer.item():0{of}.0f}"[place]


def says_of(place: int, of: int, what_it_is: str = "") -> Callable[[Case], str]:
    """What a wrong digit says first: 'for A you say cause 4.' with what_it_is="cause "."""
    return lambda case: f"for {'ABCDEF'[place]} you say {what_it_is}{digit(place, of)(case)}."
