"""Exercises, quiz and warm-up of notebook 19, scaling."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import gap, one_tensor, what

# ---------------------------------------------------------------- 19.1 a batch in parts

def accumulate(model, parts):
    model.zero_grad()
    items = sum(int((labels != -100).sum()) for _, labels in parts)
    total = 0.0
    for x, labels in parts:
        loss = F.cross_entropy(model(x), labels, reduction="sum") / items
        loss.backward()                                                    # adds to the gradients that are there
        total += loss.item()
    return total


def _parts(reduction="sum", divisor=lambda parts, items, labels: items, zero="first", backward="each", give="total",
           at_once=False, skip=False):
    """Accumulation with one or more things changed; `divisor` gives what a part's loss is divided by."""
    def answer(model, parts):
        if at_once:
            parts = [(torch.cat([x for x, _ in parts]), torch.cat([labels for _, labels in parts]))]
        if zero != "never":
            model.zero_grad()
        items, losses = sum(int((labels != -100).sum()) for _, labels in parts), []
        for x, labels in parts:
            if skip and (labels == -100).all():
                continue
            if zero == "each":
                model.zero_grad()
            losses.append(F.cross_entropy(model(x), labels, reduction=reduction) / divisor(parts, items, labels))
            if backward == "each":
                losses[-1].backward()
        if backward == "end":
            sum(losses).backward()
        values = [loss.item() for loss in losses]
        if give == "means":
            model_losses = [F.cross_entropy(model(x), labels).item() for x, labels in parts]
            return sum(model_losses) / len(parts)
        return {"total": sum(values), "last": values[-1]}[give]
    return answer


def _divided_afterwards(model, parts):
    """The gradient of the sum, and the mean loss."""
    sums = _parts(divisor=lambda parts, items, labels: 1)
    return sums(model, parts) / sum(int((labels != -100).sum()) for _, labels in parts)


def _length_weighted(parts, items, labels):
    """A mean over the labels that count, weighted by all labels of its part."""
    return sum(len(those) for _, those in parts) / len(labels)


def _not_empty(parts, items, labels):
    """How many parts have a label that counts."""
    return sum(bool((those != -100).any()) for _, those in parts)


def _all_labels(parts, items, labels):
    return sum(len(those) for _, those in parts)


def parts_probes(generator: torch.Generator) -> list[tuple]:
    """(model, parts): three ragged parts; two and one; labels that don't count; a part in which none counts; one part."""
    def draw(sizes, d, classes, hidden=()):
        model = nn.Linear(d, classes)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        parts = []
        for size in sizes:
            labels = torch.randint(classes, (size,), generator=generator)
            parts.append((2 * torch.randn(size, d, generator=generator), labels))
        for part, items in hidden:
            parts[part][1][:items] = -100
        return model, parts

    return [draw([4, 2, 1], 3, 2), draw([1, 5], 4, 3), draw([5, 3, 2], 2, 3, [(0, 3), (2, 1)]),
            draw([3, 4, 1], 3, 4, [(0, 3)]), draw([6], 5, 2)]


def observe_parts(function, model, parts):
    """The loss, the gradients, the largest batch that the model got, and how many parts waited for a backward pass."""
    model = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)                   # what an earlier step has left
    largest, waiting, open_parts = [0], [0], []

    def watch(module, inputs, output):
        largest[0] = max(largest[0], len(inputs[0]))
        waiting[0] = max(waiting[0], sum(open_parts))
        if output.requires_grad:
            place = len(open_parts)
            open_parts.append(1)
            output.register_hook(lambda gradient: open_parts.__setitem__(place, 0))

    handle = model.register_forward_hook(watch)
    try:
        loss = function(model, parts)
    finally:
        handle.remove()
    if loss is None:
        return None
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    numbers = {"largest": largest[0], "waiting": waiting[0]}
    return {"loss": one_tensor(loss, "the mean loss").detach().reshape(()),
            "gradients": torch.cat([gradient.flatten() for gradient in gradients]),
            **{name: torch.tensor(float(number)) for name, number in numbers.items()}}


def _largest_gradient(case: Case) -> str:
    place = case.right["gradients"].abs().argmax()
    return f"a gradient is {case.gradients[place]:.4f}, expected {case.right['gradients'][place]:.4f}."


def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss:.4f}, expected {case.right['loss']:.4f}."


def _loss_or_gradient(case: Case) -> str:
    return _loss_seen(case) if gap(case, "loss") > 1e-3 else _largest_gradient(case)


def _sizes(case: Case) -> str:
    return " and ".join(str(len(labels)) for _, labels in case.inputs[1])


PARTS = ask(
    "19.1", accumulate,
    probes=parts_probes,
    observe=observe_parts,
    signature="accumulate(model, parts: a list of (x (n, d), labels (n,)), where -100 doesn't count) -> the mean loss of "
    "all items, a number; and the parameters' .grad",
    not_finite={
        "NaN": "In one of the parts no label counts, and the mean of nothing is NaN. A sum of nothing is 0: take "
        "reduction=\"sum\", and divide by the number of items of all parts.",
        "inf": "Something is divided by 0. Divide by the items of all parts together, never by those of one part: a part "
        "may have none that count."},
    mistakes={
        "mean-of-means": M(
            _parts("mean", lambda parts, items, labels: len(parts)),
            lambda case: f"with parts of {_sizes(case)} {_loss_or_gradient(case)}",
            "You take the mean of the parts' means, so an item of a small part counts more than one of a large part. Add "
            "up sums, and divide by all items."),
        "means-of-parts-that-count": M(
            _parts("mean", _not_empty, skip=True),
            _loss_or_gradient,
            "You leave out parts in which no label counts, and take the mean of the others' means. Items of small ones then "
            "count more. Add up sums, and divide by all items that count."),
        "empty-parts-skipped": M(
            _parts("mean", lambda parts, items, labels: len(parts), skip=True),
            _loss_or_gradient,
            "You leave out parts in which no label counts, but divide by the number of all parts, and what you add up are "
            "means. Add up sums, and divide by all items that count; then an empty part needs no care."),
        "means-added-but-of-empty-parts": M(
            _parts("mean", lambda parts, items, labels: 1, skip=True),
            _loss_or_gradient,
            "You add up the means of the parts in which a label counts. Add up sums, and divide by all items that count; "
            "then an empty part needs no care."),
        "means-added": M(
            _parts("mean", lambda parts, items, labels: 1),
            _loss_or_gradient,
            "You add up the parts' means. backward() adds gradients, so what's added must be a part's share of the whole "
            "mean: its sum, divided by the items of all parts."),
        "sum-not-divided": M(
            _parts(divisor=lambda parts, items, labels: 1),
            _loss_or_gradient,
            "That's the sum over all items; it isn't divided by how many there are. The step would grow with the batch."),
        "gradient-of-the-sum": M(
            _divided_afterwards,
            _largest_gradient,
            "Your loss is right, but its gradient is that of the sum: you divide after backward(), and what's done then "
            "changes no gradient. Divide first."),
        "divided-by-the-parts": M(
            _parts(divisor=lambda parts, items, labels: len(parts)),
            _loss_or_gradient,
            "You divide the sum by the number of parts. A mean over items is divided by the number of items."),
        "hidden-labels-counted": M(
            _parts(divisor=_all_labels),
            _loss_or_gradient,
            "You divide by all labels. Those of -100 don't count: cross_entropy leaves them out of its sum, so they "
            "mustn't be in the number that you divide by."),
        "weighted-by-length": M(
            _parts("mean", _length_weighted),
            _loss_or_gradient,
            "You weight each part's mean by its length. But it's a mean over the labels that count, so the weight is the "
            "number of those. (And where none counts, the mean is NaN, and NaN times 0 too.)"),
        "last-part-only": M(
            _parts(zero="each"),
            _largest_gradient,
            "Only the last part is in the gradients: they're cleared before each part. Clear them once, before the first."),
        "old-gradients": M(
            _parts(zero="never"),
            _largest_gradient,
            "Each of your gradients is 0.5 too large, and 0.5 is what an earlier step had left in them. Clear them first."),
        "at-once": M(
            _parts(at_once=True),
            lambda case: f"the numbers are right, but your model got {case.largest:.0f} items at once, and the largest part "
                f"has {case.right['largest']:.0f}.",
            "A batch is cut into parts because it doesn't fit into memory. Give the model one part at a time."),
        "backward-at-the-end": M(
            _parts(backward="end"),
            lambda case: "the numbers are right, but when the model reads the last part, "
                f"{case.waiting:.0f} earlier parts still wait for their backward pass.",
            "So the activations of all parts are in memory at the end. Call backward() inside the loop, part by part."),
        "no-backward": M(
            _parts(zero="first", backward="never"),
            _largest_gradient,
            "The loss is right, and nothing went backward. Call backward() on each part's loss."),
        "last-loss": M(
            _parts(give="last"),
            _loss_seen,
            "The gradients are right. You return the last part's share of the loss; add up all of them."),
        "mean-of-means-returned": M(
            _parts(give="means"),
            _loss_seen,
            "The gradients are right, but the loss that you return is the mean of the parts' means. It has to be weighted, "
            "too."),
    },
    rules=(
        R(lambda case: case.largest > case.right["largest"],
          lambda case: f"your model got {case.largest:.0f} items at once; the largest part has {case.right['largest']:.0f}.",
          "Give it one part at a time."),
        R(lambda case: gap(case, "gradients") > 1e-4, _largest_gradient,
          "The gradient of a mean over all items is the sum of all items' gradients, divided by their number. What is "
          "added for each part, and what is it divided by?"),
        R(lambda case: gap(case, "loss") > 1e-4, _loss_seen, "The gradients are right. Return the mean over all items."),
        R(lambda case: case.waiting > 0,
          lambda case: f"{case.waiting:.0f} parts wait for their backward pass when the next one is read.",
          "Call backward() inside the loop."),
    ),
    hints=(
        "The number of items is needed before the first part goes backward: count them in a loop of its own.",
        "F.cross_entropy(model(x), labels, reduction=\"sum\") leaves out labels of -100. (labels != -100).sum() counts the "
        "others.",
        "loss = F.cross_entropy(model(x), labels, reduction=\"sum\") / items, then loss.backward(), in the loop.",
    ),
)

# ---------------------------------------------------------------- 19.2 the loss scale

def scaled_step(loss, parameters, optimizer, scale):
    optimizer.zero_grad()
    (loss * scale).backward()
    if not all(parameter.grad.isfinite().all() for parameter in parameters):
        return scale / 2                                                   # no step
    for parameter in parameters:
        parameter.grad /= scale
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return scale


def _scaled(scaled=True, divide="before", clip="after", look="all", on_overflow="half", step=True, zero=True, usual=1.0,
            squared=False, seen=lambda gradient: gradient.isfinite().all(), every=all, late=False):
    """A scaled step with one or more things changed."""
    def answer(loss, parameters, optimizer, scale):
        if zero:
            optimizer.zero_grad()
        (loss * scale if scaled else loss).backward()
        looked = {"all": parameters, "first": parameters[:1], "none": []}[look]
        fine = every(bool(seen(parameter.grad)) for parameter in looked)
        if not fine and not late:
            return {"half": scale / 2, "same": scale, "double": scale * 2}[on_overflow]
        if clip == "before":
            nn.utils.clip_grad_norm_(parameters, 1.0)
        for parameter in parameters:
            if divide == "before":
                parameter.grad /= scale**2 if squared else scale
            elif divide == "times":
                parameter.grad *= scale
        for together in {"after": [parameters], "alone": [[parameter] for parameter in parameters]}.get(clip, []):
            nn.utils.clip_grad_norm_(together, 1.0)
        if step:
            optimizer.step()
        return scale * usual if fine else scale / 2
    return answer


def scale_probes(generator: torch.Generator) -> list[tuple]:
    """(weights, data, factors, rate, scale): gradients over 1; of 1e-8, which float16 can't hold; too large for the scale;
    one parameter's alone too large; under 1; one that is NaN; one that is minus infinity."""
    def draw(sizes, factors, rate, scale):
        weights = [torch.randn(size, generator=generator) for size in sizes]
        data = [(1 + torch.rand(size, generator=generator)) * torch.where(
            torch.rand(size, generator=generator) < 0.5, -1.0, 1.0) for size in sizes]
        return weights, data, factors, rate, scale

    plus = draw([3, 1], [1e-3, 90.0], 0.5, 2.0**12)
    plus[1][1].abs_()
    nan, minus = draw([2, 1], [1e-3, 90.0], 0.5, 2.0**12), draw([1, 3], [90.0, 1e-3], 0.5, 2.0**12)
    nan[1][1].zero_()                                                      # infinity times 0
    minus[1][0].abs_().neg_()
    return [draw([3, 2], [2.0, 1.0], 0.5, 1024.0), draw([4, 1], [1e-8, 1e-8], 2e7, 2.0**16),
            draw([2, 3], [40.0, 60.0], 0.5, 2.0**15), plus,
            draw([2, 2], [0.1, 0.05], 1.0, 128.0), nan, minus]


def observe_scale(function, weights, data, factors, rate, scale):
    """How far each number moved, in units of the learning rate times the size of the gradients, and the new scale."""
    parameters = [nn.Parameter(weight.clone()) for weight in weights]
    products = [(weight.half() * numbers.half()).sum() for weight, numbers in zip(parameters, data)]
    loss = sum(product.float() * factor for product, factor in zip(products, factors))
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 0.25 * min(factors) * scale)    # what an earlier step has left
    optimizer = torch.optim.SGD(parameters, lr=rate)
    given = scale
    scale = function(loss, parameters, optimizer, scale)
    if scale is None:
        return None
    moved = torch.cat([now.detach() - before for now, before in zip(parameters, weights)])
    return {"moved": moved, "scale": one_tensor(scale, "the next scale").detach().reshape(()) / given}


def _moved(case: Case) -> str:
    if not case.moved.isfinite().all():
        return (f"with a scale of {case.inputs[4]:.0f}, {int((~case.moved.isfinite()).sum())} of your weights are no longer "
                "finite.")
    return (f"with a scale of {case.inputs[4]:.0f}, the weights move by {case.moved.norm():.4f}, expected "
            f"{case.right['moved'].norm():.4f}.")


def _next_scale(case: Case) -> str:
    return (f"your next scale is {case.scale * case.inputs[4]:.0f}, expected {case.right['scale'] * case.inputs[4]:.0f}.")


SCALE = ask(
    "19.2", scaled_step,
    probes=scale_probes,
    observe=observe_scale,
    signature="scaled_step(loss (), parameters: a list, in float32, optimizer, scale: a number) -> the scale for the next "
    "step",
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), "Weights aren't finite any more: a gradient was too large for float16, "
                             "infinity was stepped with, and such a model never comes back. Look at every gradient first; "
                             "if one isn't finite, don't step."),
    mistakes={
        "plain": M(
            _scaled(scaled=False, divide="never"),
            _moved,
            "That's a step without a scale. The gradient of the loss alone is 0 in float16 where it's too small. Multiply "
            "the loss by the scale before backward()."),
        "divided-only": M(
            _scaled(scaled=False),
            _moved,
            "The gradients are divided by a scale that the loss was never multiplied by."),
        "not-divided": M(
            _scaled(divide="never"),
            _moved,
            "The gradients are still multiplied by the scale when the optimizer steps. Divide them by it, in float32, "
            "before the step."),
        "multiplied-twice": M(
            _scaled(divide="times"),
            _moved,
            "You multiply the gradients by the scale once more. The loss was multiplied by it, so they're to be divided."),
        "divided-twice": M(
            _scaled(squared=True),
            _moved,
            "You divide by the square of the scale."),
        "clipped-first": M(
            _scaled(clip="before"),
            _moved,
            "You clip the gradients while they're still multiplied by the scale, so nearly all are cut down to a length of "
            "1, and then divided. Divide first, then clip."),
        "not-clipped": M(
            _scaled(clip="never"),
            _moved,
            "Gradients longer than 1 have to be shortened to 1, after they're divided and before the step."),
        "stepped-with-infinity": M(
            _scaled(look="none"),
            _moved,
            "A gradient was too large for float16, so it's infinite, and you stepped with it. Look first, and don't step."),
        "only-the-first-is-looked-at": M(
            _scaled(look="first"),
            _moved,
            "You look at the first parameter's gradient alone. Here another one is infinite. Look at all of them."),
        "nan-overlooked": M(
            _scaled(seen=lambda gradient: not gradient.isinf().any()),
            _moved,
            "You look for infinity alone. Infinity times 0 is NaN, and NaN isn't infinite, nor larger than anything. "
            "isfinite() finds both."),
        "infinity-overlooked": M(
            _scaled(seen=lambda gradient: not gradient.isnan().any()),
            _moved,
            "You look for NaN alone, and an infinite gradient isn't NaN. isfinite() finds both."),
        "minus-infinity-overlooked": M(
            _scaled(seen=lambda gradient: not (gradient == float("inf")).any()),
            _moved,
            "You look for plus infinity alone. A gradient can also be minus infinity, or NaN, which equals nothing. "
            "isfinite() finds all three."),
        "skipped-only-if-none-is-finite": M(
            _scaled(every=any),
            _moved,
            "You leave the step out only if no gradient is finite. One that isn't is enough to ruin the weights."),
        "stepped-then-halved": M(
            _scaled(late=True),
            _moved,
            "You halve the scale, but you've stepped before, with a gradient that isn't finite. Return before the step."),
        "clipped-one-by-one": M(
            _scaled(clip="alone"),
            _moved,
            "You clip each parameter's gradient to a length of 1. Clip all together: hand the whole list to "
            "clip_grad_norm_."),
        "scale-kept": M(
            _scaled(on_overflow="same"),
            _next_scale,
            "The step is left out, as it should be. But with the same scale the next one will overflow as well: return half "
            "of it."),
        "scale-doubled": M(
            _scaled(on_overflow="double"),
            _next_scale,
            "A gradient was too large, so the scale has to become smaller: half of it."),
        "always-halved": M(
            _scaled(usual=0.5),
            _next_scale,
            "You halve the scale after a step that went well. Only one that overflows asks for a smaller scale."),
        "never-cleared": M(
            _scaled(zero=False),
            _moved,
            "An earlier step's gradients are still there, and backward() adds to them. Clear them first."),
        "stands-still": M(
            _scaled(step=False),
            _moved,
            "The optimizer never steps."),
    },
    rules=(
        R(lambda case: case.right["moved"].norm() == 0 and case.moved.norm() > 1e-6, _moved,
          "A gradient isn't finite here, so no parameter may move."),
        R(lambda case: gap(case, "moved") > 1e-4, _moved,
          "The order is: clear, multiply the loss, backward, look for infinity, divide, clip, step."),
        R(lambda case: gap(case, "scale") > 1e-6, _next_scale,
          "Half the scale where a gradient isn't finite; else the same scale."),
    ),
    hints=(
        "Multiply the loss by the scale, and call backward() on the product.",
        "parameter.grad.isfinite().all() says whether a gradient is finite everywhere. All of them have to be.",
        "for parameter in parameters: parameter.grad /= scale. Then clip_grad_norm_(parameters, 1.0), then step.",
    ),
)

# ---------------------------------------------------------------- 19.3 bytes

def training_bytes(model):
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    gradients = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    return weights, gradients, 2 * gradients


def _bytes(size=lambda p: p.element_size(), frozen=False, moments=2, of=lambda model: model.parameters()):
    """The three numbers with one thing changed."""
    def answer(model):
        every = list(of(model))
        weights = sum(p.numel() * size(p) for p in every)
        gradients = weights if frozen else sum(p.numel() * size(p) for p in every if p.requires_grad)
        return weights, gradients, moments * gradients
    return answer


def _from_the_state(model):
    every = list(model.state_dict(keep_vars=True).values())
    trained = sum(p.numel() * p.element_size() for p in every if p.requires_grad)
    return sum(p.numel() * p.element_size() for p in every), trained, 2 * trained


def _module_by_module(model):
    return [p for module in model.modules() for p in module.parameters(recurse=False)]


def _moments_in_float32(model):
    weights, gradients, _ = training_bytes(model)
    return weights, gradients, 8 * sum(p.numel() for p in model.parameters() if p.requires_grad)


def _in_units(of):
    """The three numbers in larger units."""
    return lambda model: tuple(number / of for number in training_bytes(model))


def _with_buffers(model):
    weights, gradients, moments = training_bytes(model)
    return weights + sum(buffer.nbytes for buffer in model.buffers()), gradients, moments


def bytes_probes(generator: torch.Generator) -> list[tuple]:
    """(model,): one layer; one in bfloat16; half of it frozen; a tied matrix; numbers that aren't parameters; one number;
    a larger one."""
    def size(low=2, high=9):
        return int(torch.randint(low, high, (1,), generator=generator))

    frozen = nn.Sequential(nn.Linear(size(), 5), nn.Linear(5, size()))
    for parameter in frozen[0].parameters():
        parameter.requires_grad_(False)
    tied = nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 7, bias=False), nn.Linear(3, size()))
    tied[1].weight = tied[0].weight
    return [(nn.Linear(size(), 3),), (nn.Linear(size(), 4).bfloat16(),), (frozen,), (tied,),
            (nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6)),), (nn.Linear(1, 1, bias=False),),
            (nn.Linear(300, 200),)]


def observe_bytes(function, model):
    """The three numbers by name."""
    output = function(model)
    if output is None:
        return None
    names = ("weights", "gradients", "moments")
    if isinstance(output, dict) and set(output) == set(names):
        output = [output[name] for name in names]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        raise TypeError("expected three numbers, the bytes of the weights, of the gradients and of the moments; got "
                        f"{what(output)}")
    return {name: one_tensor(part, name).reshape(()) for name, part in zip(names, output)}


def _short(number: float) -> str:
    return f"{number:.0f}" if number == round(number) else f"{number:.3g}"


def _three(case: Case) -> str:
    got, right = ([_short(part[name].item()) for name in ("weights", "gradients", "moments")]
                  for part in (case.got, case.right))
    return f"your bytes are {', '.join(got)}, expected {', '.join(right)}."


BYTES = ask(
    "19.3", training_bytes,
    probes=bytes_probes,
    observe=observe_bytes,
    signature="training_bytes(model: an nn.Module) -> bytes of its weights, of their gradients, of AdamW's moments",
    mistakes={
        "numbers-not-bytes": M(
            _bytes(size=lambda p: 1), _three,
            "You count numbers. A number takes parameter.element_size() bytes: 4 in float32."),
        "four-bytes-always": M(
            _bytes(size=lambda p: 4), _three,
            "This model is in bfloat16, and a number takes 2 bytes there. parameter.element_size() knows."),
        "sixteen-for-each": M(
            _bytes(size=lambda p: 4, frozen=True), _three,
            "You count sixteen bytes for every parameter. That's so in float32, if all of them are trained. Here's one "
            "that's frozen, or in bfloat16."),
        "bits": M(
            _bytes(size=lambda p: 8 * p.element_size()), _three,
            "Those are bits. A byte has eight, and element_size() is in bytes already."),
        "kilobytes": M(_in_units(1e3), _three, "Those are kilobytes. Give whole bytes."),
        "megabytes": M(_in_units(1e6), _three, "Those are megabytes. Give whole bytes."),
        "megabytes-of-1024": M(_in_units(2**20), _three, "You divide by 1,024 twice, for megabytes. Give whole bytes."),
        "buffers-counted": M(
            _with_buffers, _three,
            "You count buffers among the weights, the running means of a batch norm. They aren't parameters: no gradient "
            "trains them. model.parameters() leaves them out."),
        "frozen-ones-too": M(
            _bytes(frozen=True), _three,
            "Half of this model is frozen: its parameters have requires_grad = False. They get no gradient and no moments. "
            "That's why fine-tuning a small part is cheap."),
        "frozen-weights-left-out": M(
            lambda model: (training_bytes(model)[1], *training_bytes(model)[1:]), _three,
            "You leave frozen parameters out of the first number, too. They get no gradient, but their weights are in "
            "memory: the model computes with them."),
        "one-moment": M(
            _bytes(moments=1), _three,
            "AdamW keeps two numbers for each parameter, the mean of its gradients and that of their squares."),
        "gradients-and-moments-together": M(
            _bytes(moments=3), _three,
            "You have counted the gradients among the moments. The third number is the two moments alone."),
        "moments-in-float32": M(
            _moments_in_float32, _three,
            "You count the moments with 4 bytes. PyTorch's AdamW keeps them in the parameter's own type, here bfloat16. "
            "(Mixed precision is another thing: there the parameters themselves are in float32.)"),
        "buffers-too": M(
            _from_the_state, _three,
            "state_dict() also lists what isn't trained (the running means of a batch norm), and a tied matrix twice. "
            "model.parameters() gives every parameter once."),
        "tied-twice": M(
            _bytes(of=_module_by_module), _three,
            "Two layers of this model share one matrix, and you count it twice. model.parameters() gives it once."),
        "no-biases": M(
            _bytes(of=lambda model: (p for p in model.parameters() if p.dim() > 1)), _three,
            "You count matrices alone. Biases and norms are parameters, too."),
    },
    rules=(
        R(lambda case: gap(case, "weights") > 0.5, _three,
          "The weights: numel() times element_size(), summed over model.parameters()."),
        R(lambda case: gap(case, "gradients") > 0.5, _three,
          "The weights are right. A gradient is as large as its parameter, if the parameter has one at all."),
        R(lambda case: gap(case, "moments") > 0.5, _three, "Two moments for every number that has a gradient."),
    ),
    hints=(
        "parameter.numel() is how many numbers it has, parameter.element_size() how many bytes each of them takes.",
        "A gradient is as large as its parameter. A parameter with requires_grad = False has none, and no moments.",
        "gradients = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad), and twice that.",
    ),
)

# ---------------------------------------------------------------- 19.4 all-reduce

def synchronize(parameters, items, all_reduce):
    total = all_reduce(torch.tensor(float(items)))
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad * items) / total


class _Waits(BaseException):
    """Ends a rank's turn at an all-reduce whose sum isn't known yet."""

    def __init__(self, sent):
        super().__init__()
        self.sent = sent


def simulate(function, ranks):
    """Run a function on several ranks, one after the other: (weights, gradients, how many ranks still wait).

    `ranks` has (weights, gradients, items) for each. At its first all-reduce a rank stops; when all have, their tensors are
    added, and every rank begins again from the start, with that sum at hand. So a rank that calls it less often than
    another is found, instead of waited for.
    """
    sums: list[torch.Tensor] = []
    for _ in range(100):
        done, sent = [], []
        for weights, gradients, items in ranks:
            parameters = [nn.Parameter(weight.clone()) for weight in weights]
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = gradient.clone()
            known = iter(sums)

            def all_reduce(tensor, known=known):
                for total in known:
                    return total.clone()
                raise _Waits(torch.as_tensor(tensor).detach().clone().double())
            try:
                output = function(parameters, items, all_reduce)
                if output is not None and all(torch.equal(p.grad, g) for p, g in zip(parameters, gradients)):
                    raise TypeError("expected a function that replaces every parameter's .grad, got one that leaves them as "
                                    f"they were and returns {what(output)}")
                done.append(parameters)
            except _Waits as waiting:
                sent.append(waiting.sent)
        if done and sent or not sent:
            return done, len(sent)
        if len({one.shape for one in sent}) > 1:
            shapes = ", ".join(str(tuple(one.shape)) for one in sent)
            raise TypeError(f"expected tensors of one shape on all ranks at all-reduce number {len(sums) + 1}, got {shapes}")
        sums.append(sum(sent).float())
    raise TypeError("expected one all-reduce for the items and one for each parameter; after 100 it still goes on")


def _mean_of_means(parameters, items, all_reduce):
    ranks = all_reduce(torch.tensor(1.0))
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad) / ranks


def _mean_count(parameters, items, all_reduce):
    total = all_reduce(torch.tensor(float(items))) / all_reduce(torch.tensor(1.0))
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad * items) / total


def _plain_sum(parameters, items, all_reduce):
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad)


def _sum_of_sums(parameters, items, all_reduce):
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad * items)


def _by_ranks(parameters, items, all_reduce):
    ranks = all_reduce(torch.tensor(1.0))
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad * items) / ranks


def _own_items(parameters, items, all_reduce):
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad * items) / max(items, 1)


def _own_items_or_none(parameters, items, all_reduce):
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad * items) / items


def _not_weighted(parameters, items, all_reduce):
    total = all_reduce(torch.tensor(float(items)))
    for parameter in parameters:
        parameter.grad = all_reduce(parameter.grad) / total


def _thrown_away(parameters, items, all_reduce):
    total = all_reduce(torch.tensor(float(items)))
    for parameter in parameters:
        all_reduce(parameter.grad * items) / total


def _own_share(parameters, items, all_reduce):
    total = all_reduce(torch.tensor(float(items)))
    for parameter in parameters:
        parameter.grad = parameter.grad * items / total


def _clipped_first(parameters, items, all_reduce):
    nn.utils.clip_grad_norm_(parameters, 1.0)
    synchronize(parameters, items, all_reduce)


def _leaves(parameters, items, all_reduce):
    if items:
        synchronize(parameters, items, all_reduce)


def _first_only(parameters, items, all_reduce):
    synchronize(parameters[:1], items, all_reduce)


def rank_probes(generator: torch.Generator) -> list[tuple]:
    """(ranks,): two ranks, of 3 and 1 items; three; four, one of which has nothing; two with equal parts."""
    def draw(items, shapes):
        weights = [torch.randn(shape, generator=generator) for shape in shapes]
        return ([(weights, [(2 * torch.randn(shape, generator=generator) + 0.5) * (n > 0) for shape in shapes], n)
                 for n in items],)

    return [draw([3, 1], [(4,), (2, 3)]), draw([2, 5, 4], [(3, 2), (1,), (2,)]), draw([6, 0, 2, 1], [(2, 2), (3,)]),
            draw([4, 4], [(5,), (2,)])]


def observe_ranks(function, ranks):
    """All ranks' gradients and weights afterwards (rank, numbers), and how many ranks wait for the others."""
    done, waiting = simulate(function, ranks)
    if waiting:
        zeros = torch.zeros(len(ranks), sum(weight.numel() for weight in ranks[0][0]))
        return {"gradients": zeros, "weights": zeros, "waiting": torch.tensor(float(waiting))}
    if any(parameter.grad is None for parameters in done for parameter in parameters):
        raise TypeError("expected a gradient at every parameter, found None at one. Put the result into parameter.grad")
    gradients, weights = (torch.stack([torch.cat([pick(parameter).detach().flatten() for parameter in parameters])
                                       for parameters in done]) for pick in (lambda p: p.grad, lambda p: p))
    return {"gradients": gradients, "weights": weights, "waiting": torch.tensor(0.0)}


def _reduced(case: Case) -> str:
    place = (case.gradients - case.right["gradients"]).abs().flatten().argmax()
    rank, number = divmod(int(place), case.gradients.shape[1])
    *items, last = [str(n) for *_, n in case.inputs[0]]
    return (f"with {', '.join(items)} and {last} items, a gradient on rank {rank} is {case.gradients[rank, number]:.4f}, "
            f"expected {case.right['gradients'][rank, number]:.4f}.")


def _apart(case: Case) -> str:
    apart = (case.gradients - case.gradients[:1]).abs().max()
    return f"afterwards, the gradients of two ranks differ by up to {apart:.4f}."


def _apart_if_finite(case: Case) -> str:
    infinite = int((~case.gradients.isfinite()).any(dim=1).sum())
    return f"on {infinite} of {len(case.gradients)} ranks gradients aren't finite." if infinite else _apart(case)


def _waiting(case: Case) -> str:
    return f"{case.waiting:.0f} of {len(case.inputs[0])} ranks wait at an all-reduce that the others don't come to."


def _weights_moved(case: Case) -> str:
    return f"your function moves a weight by {gap(case, 'weights'):.4f}."


RANKS = ask(
    "19.4", synchronize,
    probes=rank_probes,
    observe=observe_ranks,
    signature="synchronize(parameters: a list, each with a .grad; items: a number; all_reduce(tensor) -> the sum over all "
    "ranks) -> nothing; every parameter's .grad is replaced",
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), "One rank has no items. Don't divide by its own number: divide by the "
                             "items of all ranks together."),
    mistakes={
        "mean-of-means": M(
            _mean_of_means, _reduced,
            "You divide the sum of the ranks' gradients by the number of ranks. Each is a mean over its rank's own items, "
            "and the ranks have different numbers of them: weight each by its items."),
        "gradients-added": M(
            _plain_sum, _reduced,
            "You add up the ranks' gradients and divide by nothing, so the step grows with the number of ranks."),
        "sum-not-divided": M(
            _sum_of_sums, _reduced,
            "That's the sum over all items. Divide it by the items of all ranks together: all_reduce tells you how many."),
        "divided-by-the-ranks": M(
            _by_ranks, _reduced,
            "You divide the sum over all items by the number of ranks. A mean over items is divided by their "
            "number."),
        "divided-by-the-mean-count": M(
            _mean_count, _reduced,
            "It's as many times too large as there are ranks. Either you divide by the mean number of items of a rank, "
            "where it should be the items of all, or the gradients go through all_reduce twice."),
        "divided-by-its-own-items": M(
            _own_items, _apart,
            "Each rank divides by its own items, so they take different steps, and from then on they're different models. "
            "Divide by the sum of all ranks' items."),
        "divided-by-its-own-items-or-none": M(
            _own_items_or_none, _apart_if_finite,
            "Each rank divides by its own items, so they take different steps; and one has none, so it divides by 0. Divide "
            "by the sum of all ranks' items."),
        "not-weighted": M(
            _not_weighted, _reduced,
            "You divide by all items, but what you added up were means. Multiply each rank's gradient by its items first."),
        "result-thrown-away": M(
            _thrown_away, _apart,
            "Each rank still has its own gradients. all_reduce returns the sum, and doesn't change the tensor that it's "
            "given, so put its result into parameter.grad. (Averaging the weights in place of the gradients does nothing: "
            "they're equal before the step.)"),
        "own-share-only": M(
            _own_share, _apart,
            "The items are added up over the ranks, the gradients aren't: each rank keeps its own share. Send that through "
            "all_reduce, too."),
        "clipped-first": M(
            _clipped_first, _reduced,
            "You clip each rank's gradient before they're added up. A part's gradient is longer than the whole batch's, so "
            "too much is cut off, and from each rank differently. Clip afterwards, when all ranks have the same."),
        "a-rank-leaves": M(
            _leaves, _waiting,
            "A rank without items returns early. In a real training its next all-reduce, a step later, is added to the one "
            "that the others wait at: gradients of different steps in one sum, without an error. Every rank must call "
            "all_reduce equally often; one without items sends zeros."),
        "first-parameter-only": M(
            _first_only, _apart,
            "Only the first parameter's gradient is the same on all ranks. Is there a return inside the loop?"),
    },
    rules=(
        R(lambda case: case.waiting > 0, _waiting,
          "In a real training the next step's numbers would be added to this one's. Every rank must call all_reduce equally "
          "often, whatever its items."),
        R(lambda case: gap(case, "weights") > 1e-5, _weights_moved, "Change the gradients alone."),
        R(lambda case: (case.gradients - case.gradients[:1]).abs().max() > 1e-4, _apart,
          "After the function all ranks must have the same gradients, or they become different models."),
        R(lambda case: gap(case, "gradients") > 1e-4, _reduced,
          "Expected: the sum over ranks of gradient times items, divided by the sum of the items."),
    ),
    hints=(
        "A rank's gradient is a mean. Times its items it's a sum, and sums may be added.",
        "total = all_reduce(torch.tensor(float(items))) is the number of items on all ranks.",
        "parameter.grad = all_reduce(parameter.grad * items) / total, for each parameter",
    ),
)

# ---------------------------------------------------------------- 19.5 a scaling plot

def tokens_at_best():
    # on the curve of 10^21 the lowest dot is 2 billion parameters: 10^21 / (6 * 2 * 10^9) = 8.33 * 10^10 tokens
    return 83.3


def _value(case: Case) -> str:
    return f"{case.answer.item():.4g}:"


PLOT = ask(
    "19.5", tokens_at_best,
    kind="number",
    tolerance=0.044,                                                       # from 80 to 87 is read off well enough
    signature="a number: how many billion tokens",
    mistakes={
        "one-billion": M(
            lambda: 166.67,
            lambda case: f"{_value(case)} that's what a model of 1 billion parameters could read.",
            "Its dot on the curve of 10²¹ isn't the lowest: look one further to the right."),
        "four-billion": M(
            lambda: 41.67,
            lambda case: f"{_value(case)} that's " + (
                "twenty tokens for each of 2 billion parameters. It's a rule of thumb, and this plot doesn't follow it: for "
                "10²¹ operations a model of 2 billion can read more. C = 6 N D." if case.answer < 40.8 else
                "what a model of 4 billion parameters could read. Its dot on the curve of 10²¹ isn't the lowest: look one "
                "further to the left. (Or else it's the tokens for each parameter of the right model. Asked for is how many "
                "it reads altogether.)")),
        "tokens-for-each": M(
            lambda: 50.0,
            lambda case: f"{_value(case)} that's the tokens for each parameter, in the table below.",
            "How many does the model of the lowest dot read altogether? C = 6 N D."),
        "largest-model": M(
            lambda: 10.417,
            lambda case: f"{_value(case)} that's what the largest model could read.",
            "It has read too little for its size, and its loss is higher. The lowest dot is what's asked for."),
        "smallest-model": M(
            lambda: 666.67,
            lambda case: f"{_value(case)} that's what the smallest model could read.",
            "It has read the most, and is too small to make use of it. The lowest dot is what's asked for."),
        "six-forgotten": M(
            lambda: 500.0,
            lambda case: f"{_value(case)} that's 10²¹ divided by 2 billion.",
            "Each parameter costs six operations for each token: C = 6 N D."),
        "two-operations": M(
            lambda: 250.0,
            lambda case: f"{_value(case)} that counts two operations for each parameter and token.",
            "That's the forward pass. Backward costs four more: six."),
        "parameters": M(
            lambda: 2.0,
            lambda case: f"{_value(case)} that's the size of the best model, in billions of parameters.",
            "How many tokens can it read? C = 6 N D."),
        "in-ones": M(
            lambda: 83.333e9,
            lambda case: f"{_value(case)} that's the number of tokens itself.",
            "Give it in billions."),
        "in-trillions": M(
            lambda: 0.08333,
            lambda case: f"{_value(case)} those are trillions.",
            "Give it in billions."),
        "one-billion-in-ones": M(
            lambda: 166.67e9,
            lambda case: f"{_value(case)} that's what a model of 1 billion parameters could read, and not in billions.",
            "Its dot on the curve of 10²¹ isn't the lowest: look one further to the right."),
        "in-millions": M(
            lambda: 83333.3,
            lambda case: f"{_value(case)} those are millions.",
            "Give it in billions."),
        "smaller-budget": M(
            lambda: 33.33,
            lambda case: f"{_value(case)} that belongs to the budget of 10²⁰.",
            "The curve asked for is that of 10²¹."),
        "larger-budget": M(
            lambda: 416.67,
            lambda case: f"{_value(case)} that belongs to the budget of 10²².",
            "The curve asked for is that of 10²¹."),
    },
    rules=(
        R(lambda case: 52 < case.answer < 115, lambda case: f"{_value(case)} that isn't far off.",
          "You've read between the dots. Take the lowest of the dots, which is at a round size, and compute C / (6 N)."),
    ),
    hints=(
        "Find the curve of 10²¹ in the legend, and its lowest dot. Below it stands the model's size.",
        "C = 6 N D, so D = C / (6 N). The lowest dot is at 2 billion parameters.",
        "1e21 / (6 * 2e9) tokens, in billions",
    ),
)

# ---------------------------------------------------------------- 19.6 plan a run

def plan(cards, days, speed):
    operations = cards * days * 86_400 * speed                             # C = 6 N D = 6 N * 20 N = 120 N^2
    parameters = (operations / 120) ** 0.5
    tokens = 20 * parameters
    gigabytes = 16 * parameters / 1e9
    return parameters, tokens, gigabytes


PLANNED = ("parameters", "tokens", "gigabytes")


def plan_probes(generator: torch.Generator) -> list[tuple]:
    """(cards, days, operations a second): one card for a day; several for several days, slow and fast ones."""
    def some(low, high):
        return int(torch.randint(low, high, (1,), generator=generator))

    return [(1, 1, 4e14), (some(3, 9), 30, 4e14), (some(10, 20), some(4, 9), some(2, 9) * 1e13), (2, some(60, 90), 9e14)]


def observe_plan(function, cards, days, speed):
    """The three numbers by name, in float64."""
    output = function(cards, days, speed)
    if output is None:
        return None
    if isinstance(output, dict) and set(output) == set(PLANNED):
        output = [output[name] for name in PLANNED]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        raise TypeError(f"expected three numbers, {', '.join(PLANNED)}; got {what(output)}")
    return {name: one_tensor(part, name).double().reshape(()) for name, part in zip(PLANNED, output)}


def _planned(name: str):
    """What a plan says of one of the three, with its cards and days."""
    def said(case: Case) -> str:
        cards, days, speed = case.inputs
        got, right = (f"{part[name].item():.4g}" for part in (case.got, case.right))
        return f"with cards={cards}, days={days} and speed={speed:.0e} your {name} are {got}, expected {right}."
    return said


BUDGET, ROOT = "cards * days * 86_400 * speed", "(operations / 120) ** 0.5"
READ, TAKEN = "20 * parameters", "16 * parameters / 1e9"
SIZE, WORDS, ROOM = map(_planned, PLANNED)

PLAN = ask(
    "19.6", plan, observe=observe_plan, probes=plan_probes,
    signature="plan(cards, days, speed (operations a second)) -> parameters, tokens, gigabytes",
    mistakes={
        "root-forgotten": M({ROOT: "operations / 120"}, SIZE, "That's N times N: C = 6 N · 20 N. Take the root."),
        "twenty-forgotten": M({ROOT: "(operations / 6) ** 0.5"}, SIZE, "You divide by 6. Put D = 20 N into C = 6 N D."),
        "six-forgotten": M({ROOT: "(operations / 20) ** 0.5"}, SIZE, "Each parameter costs 6 operations for each token."),
        "all-forgotten": M({ROOT: "operations ** 0.5"}, SIZE, "That's the root of C. C = 6 N · 20 N."),
        "forward-alone": M({ROOT: "(operations / 40) ** 0.5"}, SIZE, "2 operations are the forward pass alone; the backward "
                           "pass adds 4."),
        "hours": M({BUDGET: "cards * days * 24 * speed"}, SIZE, "You count a day's hours. `speed` is operations a second, "
                   "and a day has 86,400 of them."),
        "minutes": M({BUDGET: "cards * days * 1_440 * speed"}, SIZE, "You count a day's minutes. `speed` is operations a "
                     "second, and a day has 86,400 of them."),
        "an-hour": M({BUDGET: "cards * days * 3_600 * speed"}, SIZE, "An hour has 3,600 seconds, and a day 86,400."),
        "days-as-seconds": M({BUDGET: "cards * days * speed"}, SIZE, "`speed` is operations a second, and a day has 86,400 "
                             "of them."),
        "one-card": M({BUDGET: "days * 86_400 * speed"}, SIZE, "That's what one card can train. All of them work on it."),
        "one-day": M({BUDGET: "cards * 86_400 * speed"}, SIZE, "That's what can be trained in a day. You have several."),
        "speed-fixed": M({BUDGET: "cards * days * 86_400 * 4e14"}, SIZE, "You write 4e14 into it. Take the `speed` that's "
                         "given."),
        "other-way-round": M({READ: "parameters / 20"}, WORDS, "Twenty tokens for each parameter, not the other way round."),
        "tokens-are-parameters": M({READ: "parameters"}, WORDS, "That's N. It reads 20 tokens for each parameter."),
        "whole-budget-read": M({READ: "operations / parameters"}, WORDS, "C / N is how many tokens it could read at one "
                               "operation each. Each costs 6."),
        "weights-alone": M({TAKEN: "2 * parameters / 1e9"}, ROOM, "Two bytes are a weight alone, in bfloat16. Section 3 "
                           "counts sixteen."),
        "float32-weights": M({TAKEN: "4 * parameters / 1e9"}, ROOM, "Four bytes are a weight alone, in float32. Its "
                             "gradient and two moments take twelve more: section 3."),
        "moments-alone": M({TAKEN: "8 * parameters / 1e9"}, ROOM, "Eight bytes are the two moments, or a weight and its "
                           "gradient. All together are sixteen: section 3."),
        "weights-forgotten": M({TAKEN: "12 * parameters / 1e9"}, ROOM, "Twelve bytes of sixteen: count weight, gradient and "
                               "both moments."),
        "bytes": M({TAKEN: "16 * parameters"}, ROOM, "Those are bytes. A GB is 10⁹ of them."),
        "of-1024": M({TAKEN: "16 * parameters / 2**30"}, ROOM, "You divide by 1,024 three times. A GB is 10⁹ bytes here."),
        "of-tokens": M({TAKEN: "16 * tokens / 1e9"}, ROOM, "Parameters take room, 16 bytes each; tokens are read and gone."),
        "on-each-card": M({TAKEN: "16 * parameters / 1e9 / cards"}, ROOM, "That's what each card keeps if all is cut. "
                          "Give what all of it takes together."),
        "exchanged": M({"return parameters, tokens, gigabytes": "return tokens, parameters, gigabytes"}, SIZE, "Your first "
                       "two numbers are in each other's place."),
        "in-billions": M({"return parameters, tokens, gigabytes": "return parameters / 1e9, tokens / 1e9, gigabytes"}, SIZE,
                         "Those are billions. Give the number of parameters, and of tokens."),
    },
    rules=(
        R(lambda case: abs(case.got["parameters"] / case.right["parameters"] - 1) > 1e-3, SIZE,
          "The budget C is cards times seconds times speed, and C = 6 N D with D = 20 N."),
        R(lambda case: abs(case.got["tokens"] / case.right["tokens"] - 1) > 1e-3, WORDS, "20 tokens for each parameter."),
        R(lambda case: abs(case.got["gigabytes"] / case.right["gigabytes"] - 1) > 1e-3, ROOM,
          "16 bytes for each parameter, and 10⁹ of them are a GB."),
    ),
    hints=(
        "How many operations do all cards do in these days? A day has 86,400 seconds.",
        "C = 6 N D, and D = 20 N. So C = 120 N²: what's N?",
        "parameters = (operations / 120) ** 0.5, tokens = 20 * parameters, gigabytes = 16 * parameters / 1e9",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: three-hundred-tokens
  taught: "19"
  question: Two ranks train a translator. Rank 0's part of the batch has 900 French tokens, rank 1's has 300. Each computes
    its mean loss, and DistributedDataParallel averages the two gradients. How much does a token of rank 1 count, compared
    with one of rank 0?
  options:
    - text: As much, because a mean over ranks is a mean over tokens.
      remark: Only if both have the same number of tokens. Here one mean is over 900 and the other over 300, and both get
        half of the say.
    - text: A third, since its part is only a third as large.
      remark: That's how much its rank ought to count. DDP gives both ranks one half.
    - text: Three times as much.
      right: true
      remark: Each rank has half of the say, shared among 900 tokens there and 300 here. Multiply each loss by ranks · items
        of the rank ÷ items of all, and every token counts the same.
- name: never-sent
  taught: "19"
  question: Two ranks never send each other a weight. Why are their weights equal after a thousand steps?
  options:
    - text: They began equal, and in every step both apply the same gradient with the same optimizer.
      right: true
      remark: Take away one of the two, and they drift apart, without any error.
    - text: They read the same reviews, so they compute the same gradient.
      remark: They read different ones. All-reduce makes the gradients equal.
    - text: The optimizer averages the weights over the ranks from time to time.
      remark: It knows nothing of ranks. Some methods do average weights; this one doesn't have to.
- name: scale-too-large
  taught: "19"
  question: Suppose a training in float16 gives infinite gradients with a loss scale of a billion. Without a scale its
    gradients are finite, and it hardly learns. What's the likely reason?
  options:
    - text: The learning rate is too high in one case, and too low in the other.
      remark: The gradients are divided by the scale before the step, so the scale doesn't change the rate.
    - text: With the scale large gradients overflow, and without it small ones become 0.
      right: true
      remark: float16 has a narrow range. A scale in between keeps both; halving it after each overflow finds one.
    - text: float16 has too few digits, and bfloat16 would have more.
      remark: It would have fewer. What bfloat16 has more of is range, and range is what's missing here.
- name: what-is-forgotten
  taught: "19"
  question: Every block of a model is checkpointed. What does it save, and what does it cost?
  options:
    - text: It saves the optimizer's moments, and costs a slower step of AdamW.
      remark: The moments stay where they are. Checkpointing is about what forward keeps for backward.
    - text: It saves the activations inside blocks, and costs one more forward pass.
      right: true
      remark: Each block's input is kept, and everything inside is computed again when backward comes to the block.
    - text: It saves activations, and costs some accuracy, as rounding does.
      remark: Nothing is rounded. The same numbers are computed twice, and the gradients are equal.
- name: same-tokens
  taught: "19"
  question: Two language models have read the same 100 billion tokens. The one with twice the parameters has the lower
    loss. Would you put your budget into the larger one?
  options:
    - text: That doesn't follow. It has cost twice as much; for that, the smaller one could have read twice the tokens.
      right: true
      remark: Compare points of equal cost, 6 N D. At equal tokens the formula gives the larger model the lower loss, always.
    - text: Yes, since the lower loss shows that it makes better use of a token.
      remark: It does, of each token. But a budget pays for operations, and each of its tokens costs twice as many.
    - text: No, since larger models overfit, and its loss will rise again.
      remark: Nothing here says so. Both have read each token once, and the loss is lower.
- name: two-processes-one-seed
  taught: "12"
  question: With dropout, a run on two processes has 0.4 points more than a run on one, both with seed 0. What may you say?
  options:
    - text: Two processes train better, since everything else was equal.
      remark: Not everything was. Each rank draws its own dropout, so it's another run, as with another seed.
    - text: Something's wrong, since both should give the same result.
      remark: Without dropout they do. With it, different numbers are dropped.
    - text: Nothing yet; it's one pair of runs, and another seed may differ by as much.
      right: true
      remark: A difference counts when it's larger than that between seeds. Without dropout the two runs would be equal.
"""

WARM_UP = """
- name: right-words-in-training
  taught: "17"
  question: Why can a translator be trained on all positions of a French sentence at once, although it writes one word after
    the other?
  options:
    - text: Because the encoder has read the whole English sentence.
      remark: That's so when it writes as well. What makes the difference is what the decoder is given.
    - text: Because in training the decoder is given the right words, and the causal mask hides those to come.
      right: true
      remark: Teacher forcing. Every position is asked at once, and the loss is a mean over all of them, padding left out.
    - text: Because in training there's no causal mask.
      remark: There is. Without it each position could read its own answer.
- name: before-the-step
  taught: "08"
  question: In a training step, when are gradients clipped?
  options:
    - text: After backward() and before the optimizer's step.
      right: true
      remark: That's when they're complete and not yet used. Today something else has to happen before they're complete.
    - text: Before backward(), together with zero_grad().
      remark: There are no gradients yet; the old ones have just been cleared.
    - text: After the step, so that the next one isn't too long.
      remark: The step has moved the weights already, and the next one begins by clearing the gradients.
- name: prediction-minus-truth
  taught: "00"
  question: A model says 0.5, and the truth is 1. What's the gradient of the cross-entropy with respect to the logit?
  options:
    - text: "ln 2, which is the loss"
      remark: That's the loss itself. Its gradient says in which direction the logit should move.
    - text: "0.5, the truth minus the prediction"
      remark: The sign is the other way round. A step goes against the gradient, and the logit has to rise.
    - text: "-0.5, the prediction minus the truth"
      right: true
      remark: Times the input, it's the gradient with respect to a weight. Section 1 begins with four of them.
"""
