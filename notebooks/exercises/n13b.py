"""Exercises and quiz of notebook 13b, induction heads."""

import torch
from torch import nn

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import listed, one_tensor

# ---------------------------------------------------------------- 13b.1 the induction score

def induction_score(weights, period):
    query = torch.arange(period, 2 * period - 1)           # the second half, but for its last token
    key = query - period + 1                               # after the first occurrence
    return weights[:, :, query, key].mean(dim=(0, 2))      # (heads,)


def _score(queries=lambda p: (p, 2 * p - 1), after=1, turned=False, finish=lambda found: found.mean(dim=(0, 2)), key=None):
    def answer(weights, period):
        query = torch.arange(*queries(period))
        looked_at = query - period + after if key is None else key(query, period)
        if turned:
            weights = weights.transpose(-1, -2)
        return finish(weights[:, :, query, looked_at])
    return answer


def _over_all(weights, period):
    return induction_score(weights, period) * (period - 1) / (2 * period)


def _over_period(weights, period):
    return induction_score(weights, period) * (period - 1) / period


def _how_often(weights, period):
    query = torch.arange(period, 2 * period - 1)
    return (weights[:, :, query].argmax(dim=-1) == query - period + 1).float().mean(dim=(0, 2))


def _score_probes(generator: torch.Generator) -> list[tuple]:
    """Weights of 3 heads on 4 rows of 2 · 5 tokens, of 2 heads on 3 rows of 2 · 3; of 1 head on 2 rows of 2 · 7: the
    second half looks a little more at where it should."""
    probes = []
    for rows, heads, period in ((4, 3, 5), (3, 2, 3), (2, 1, 7)):
        scores = 1.5 * torch.randn(rows, heads, 2 * period, 2 * period, generator=generator)
        query = torch.arange(period, 2 * period - 1)
        scores[:, :, query, query - period + 1] += 1.0
        seen = torch.ones(2 * period, 2 * period, dtype=torch.bool).tril()
        probes.append((scores.masked_fill(~seen, float("-inf")).softmax(dim=-1), period))
    return probes


def _scores(case: Case) -> str:
    return (f"with a period of {case.inputs[1]} your scores are {listed(case.answer.reshape(-1)[:3])}, expected "
            f"{listed(case.expected.reshape(-1)[:3])}.")


SCORE = ask(
    "13b.1", induction_score,
    probes=_score_probes,
    signature="induction_score(weights (rows, heads, query, key), of rows that repeat after `period` tokens; period) -> "
    "scores (heads,)",
    mistakes={
        "at-the-occurrence": M(_score(after=0), _scores,
            "That is the weight on the previous occurrence itself. The answer stands one token after it: key = query - "
            "period + 1."),
        "two-after": M(_score(after=2), _scores,
            "That is two tokens after the previous occurrence. One after it is query - period + 1."),
        "token-before": M(_score(key=lambda query, period: query - 1), _scores,
            "That is the weight on the token before: the score of a head that looks back, not of an induction head."),
        "itself": M(_score(key=lambda query, period: query), _scores,
            "That is the weight on the token itself."),
        "first-half": M(_score(queries=lambda p: (1, p), key=lambda query, period: query - 1), _scores,
            "Those are queries of the first half, where nothing has been repeated yet. Begin at query = period."),
        "turned-round": M(_score(turned=True), _scores,
            "Query and key are exchanged, and no query may look at what comes later, so the weights there are zero."),
        "mean-over-all-queries": M(_over_all, _scores,
            "You divide by all 2 · period queries. Only the period - 1 of the second half have something to find."),
        "divided-by-period": M(_over_period, _scores,
            "You divide by `period`. Without the last token, period - 1 queries are left: take their mean."),
        "first-query-dropped": M(_score(queries=lambda p: (p + 1, 2 * p - 1)), _scores,
            "You leave out the first token of the second half. It has been there before, at 0, and the token after that is "
            "at 1: begin at query = period."),
        "summed": M(_score(finish=lambda found: found.sum(dim=2).mean(dim=0)), _scores,
            "That is the sum over the queries. A score is a mean, from 0 to 1."),
        "largest": M(_score(finish=lambda found: found.amax(dim=(0, 2))), _scores,
            "That is the largest weight. The score is the mean over rows and queries."),
        "how-often": M(_how_often, _scores,
            "That is how often the largest weight is there. The score is the weight itself, averaged."),
        "heads-averaged": M(_score(finish=lambda found: found.mean()), "you return one number, {answer:.3f}.",
            "The heads were averaged, too. Each head has a score of its own: average over the rows and the queries."),
        "rows-not-averaged": M(_score(finish=lambda found: found.mean(dim=2)),
            lambda case: f"you return {tuple(case.answer.shape)} numbers, expected {tuple(case.expected.shape)}.",
            "That is a score for each row and head. Average over the rows as well."),
        "queries-not-averaged": M(_score(finish=lambda found: found.mean(dim=0)),
            lambda case: f"you return {tuple(case.answer.shape)} numbers, expected {tuple(case.expected.shape)}.",
            "That is a number for each head and query. Average over the queries as well."),
        "whole-diagonal": M(_score(queries=lambda p: (p - 1, 2 * p)), _scores,
            "You take the whole diagonal, which many lessons do. Two of its entries are no question: the last token of "
            "the first half hasn't been there before, and what follows the last token stands in the second half.",
            convention=True),
        "last-query-too": M(_score(queries=lambda p: (p, 2 * p)), _scores,
            "You count the last token, too. What followed it first is the beginning of the second half; leave it out here.",
            convention=True),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape,
          lambda case: f"you return {tuple(case.answer.shape)} numbers, expected {tuple(case.expected.shape)}.",
          "One score for each head: average over rows and queries."),
        R(lambda case: case.answer.max() > 1 or case.answer.min() < 0, _scores, "A mean of weights is from 0 to 1."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _scores,
          "Write down, for a period of 3, which key each of the queries 3 and 4 should look at."),
    ),
    hints=(
        "With a period of 3 the row is a b c a b c. Query 3 is a again, and b, which followed it, is at key 1. Query "
        "4: key 2.",
        "query = torch.arange(period, 2 * period - 1), and key is query minus something.",
        "weights[:, :, query, key] is (rows, heads, queries), with key = query - period + 1. Average over two of these.",
    ),
)

# ---------------------------------------------------------------- 13b.2 the shift's hook

def run_shifted(model, projection, columns, token_ids):
    def shift(module, inputs):
        merged = inputs[0]                                 # (batch, seq_len, width)
        shifted = merged.clone()
        shifted[:, 1:, columns] = merged[:, :-1, columns]  # each token gets its left neighbour's
        return (shifted,)

    handle = projection.register_forward_pre_hook(shift)
    try:
        return model(token_ids)
    finally:
        handle.remove()


class _Voices(nn.Module):
    """Vectors of ids, a projection of them, and beside it the vectors themselves: a hook that changes them is found out."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(12, 8, generator=generator), requires_grad=False)
        self.projection = nn.Linear(8, 8)
        with torch.no_grad():
            for one in self.projection.parameters():
                one.copy_(torch.randn(one.shape, generator=generator))

    def forward(self, token_ids):
        merged = self.vectors[token_ids].clone()           # (batch, seq_len, 8)
        projected = self.projection(merged)
        return torch.cat([projected, merged], dim=-1)      # (batch, seq_len, 8 + 8)


def _ids(generator: torch.Generator, rows: int, length: int) -> torch.Tensor:
    """Rows of different ids."""
    return torch.stack([torch.randperm(12, generator=generator)[:length] for _ in range(rows)])


def _shift_probes(generator: torch.Generator) -> list[tuple]:
    return [(_Voices(generator), slice(4, 8), _ids(generator, 3, 5)),
            (_Voices(generator), slice(0, 4), _ids(generator, 2, 7)),
            (_Voices(generator), slice(2, 4), _ids(generator, 4, 6))]


def _hooks(model: nn.Module) -> int:
    return sum(len(one._forward_pre_hooks) + len(one._forward_hooks) for one in model.modules())


def _looked_at(output, model: nn.Module, token_ids: torch.Tensor) -> dict | None:
    """What a run gave, how many hooks it left, and what the model gives afterwards; None for no answer."""
    if output is None:
        return None
    output = one_tensor(output, "what the model gives")
    return {"output": output.detach().clone(), "hooks left": float(_hooks(model)), "afterwards": model(token_ids).detach()}


def observe_shift(function, model, columns, token_ids):
    return _looked_at(function(model, model.projection, columns, token_ids), model, token_ids)


def _shifted(change, of_output=False, leave=False):
    """The answer with another change: change(merged, columns) gives what the projection gets, or None for nothing."""
    def answer(model, projection, columns, token_ids):
        def before(module, inputs):
            changed = change(inputs[0], columns)
            return None if changed is None else (changed,)

        handle = (projection.register_forward_hook(lambda module, inputs, output: change(output, columns)) if of_output
                  else projection.register_forward_pre_hook(before))
        output = model(token_ids)
        if not leave:
            handle.remove()
        return output
    return answer


def _with(place):
    """A copy in which some columns are replaced: place(merged, columns) gives the new ones."""
    def change(merged, columns):
        shifted = merged.clone()
        shifted[..., columns] = place(merged, columns)
        return shifted
    return change


def _right(merged, columns):
    return torch.cat([merged[:, :1, columns], merged[:, :-1, columns]], dim=1)


def _in_place(merged, columns):
    merged[:, :, columns] = _right(merged, columns).clone()
    return merged


def _smeared(merged, columns):
    for place in range(1, merged.shape[1]):
        merged[:, place, columns] = merged[:, place - 1, columns]
    return merged


def _smeared_copy(merged, columns):
    return _smeared(merged.clone(), columns)


def _other_columns(merged, columns):
    shifted = merged.clone()
    shifted[:, 1:] = merged[:, :-1]
    shifted[..., columns] = merged[..., columns]
    return shifted


def _ids_shifted(model, projection, columns, token_ids):
    return model(torch.cat([token_ids[:, :1], token_ids[:, :-1]], dim=1))


def _furthest(case: Case) -> tuple[int, int]:
    """The row and the position at which the output is furthest from the right one."""
    off = (case.output - case.right["output"]).abs().amax(dim=-1)
    return divmod(int(off.argmax()), off.shape[1])


def _run(case: Case) -> str:
    if case.output.shape != case.right["output"].shape:
        return f"your output is {tuple(case.output.shape)}, expected {tuple(case.right['output'].shape)}."
    row, place = _furthest(case)
    return (f"in row {row}, position {place} comes out as [{listed(case.output[row, place, :3])} …], expected "
            f"[{listed(case.right['output'][row, place, :3])} …].")


def _left(case: Case) -> str:
    return f"after your run {case.got['hooks left'].item():.0f} hooks are still on the model."


def _without_change(case: Case) -> bool:
    return case.output.shape == case.afterwards.shape and bool((case.output - case.right["afterwards"]).abs().max() < 1e-5)


LEFT = "A hook that stays changes every later run, of other cells, too, without a word. Keep its handle and call remove()."

SHIFT = ask(
    "13b.2", run_shifted,
    probes=_shift_probes,
    observe=observe_shift,
    numbers=dict(row=lambda case: _furthest(case)[0], place=lambda case: _furthest(case)[1]),
    signature="run_shifted(model, projection, a module of it; columns, a slice; token_ids (batch, seq_len)) -> what "
    "model(token_ids) gives while what goes into `projection` is shifted in these columns",
    mistakes={
        "unchanged": M(_shifted(lambda merged, columns: None), "your output is the one without a hook.",
            "A hook that returns nothing changes nothing. Return the changed inputs as a tuple: (shifted,). And the model "
            "has to run while the hook is on."),
        "to-the-left": M(_shifted(_with(lambda m, c: torch.cat([m[:, 1:, c], m[:, -1:, c]], dim=1))), _run,
            "Every token got the numbers of its right neighbour. Position i should get those of position i - 1."),
        "all-columns": M(_shifted(lambda m, c: _with(_right)(m, slice(None))), _run,
            "All columns were shifted, so all heads. Only those of `columns` belong to this head."),
        "other-columns": M(_shifted(_other_columns), _run,
            "You shifted all columns but the ones that were asked for: the other heads."),
        "ids-shifted": M(_ids_shifted, _run,
            "You shifted the text, so every head reads something else. The text stays; shift what goes into `projection`, "
            "in `columns`."),
        "two-places": M(_shifted(_with(lambda m, c: torch.cat([m[:, :2, c], m[:, :-2, c]], dim=1))), _run,
            "The numbers were moved by two positions."),
        "wrapped": M(_shifted(_with(lambda m, c: m[..., c].roll(1, dims=1))), _run,
            "torch.roll puts the last token's numbers on the first, which then knows what comes later. The first keeps its "
            "own."),
        "first-zeroed": M(
            _shifted(_with(lambda m, c: torch.cat([torch.zeros_like(m[:, :1, c]), m[:, :-1, c]], dim=1))), _run,
            "The first token has no left neighbour. You gave it zeros; here it keeps its own."),
        "along-the-batch": M(_shifted(_with(lambda m, c: torch.cat([m[:1, :, c], m[:-1, :, c]]))), _run,
            "You shifted along the first axis, from text to text. The positions are the second: (batch, seq_len, width)."),
        "along-the-width": M(_shifted(_with(lambda m, c: m[..., c].roll(1, dims=-1))), _run,
            "You shifted along the last axis, within a token's numbers. The positions are the second: (batch, seq_len, "
            "width)."),
        "smeared": M(_shifted(_smeared_copy), _run,
            "You copy one position after another in the same tensor, so the first token's numbers reach all of them. Read "
            "from the tensor as it was, and write into a copy."),
        "smeared-in-place": M(_shifted(_smeared), _run,
            "You change the tensor that you read from, so the first token's numbers reach all positions. And whoever else "
            "uses that tensor gets the changed one. Write into a copy: .clone()."),
        "in-place": M(_shifted(_in_place),
            "what goes into the projection is right, but in row {row}, position {place} the vector beside it has changed.",
            "You've written into the tensor itself, and the model uses it again. Write into a copy: .clone()."),
        "output-shifted": M(_shifted(_with(_right), of_output=True), _run,
            "You shifted what comes out of the projection, where the heads have been mixed already. Shift what goes in: "
            "register_forward_pre_hook."),
        "left-behind": M(_shifted(_with(_right), leave=True), _left, LEFT),
    },
    rules=(
        R(lambda case: case.got["hooks left"] > 0, _left, LEFT),
        R(_without_change, "your output is the one without a hook.",
          "Is the hook on `projection` when the model runs, and does it return the changed inputs as a tuple?"),
        R(lambda case: case.output.shape != case.right["output"].shape
          or (case.output - case.right["output"]).abs().max() > 1e-4, _run,
          "In `columns`, position i gets what stood at position i - 1; all else stays, the first position, too."),
        R(lambda case: (case.afterwards - case.right["afterwards"]).abs().max() > 1e-4,
          "after your run the model gives something else than before.", "Leave the model as it was."),
    ),
    hints=(
        "A pre-hook is a function of (module, inputs). `inputs` is a tuple; what it returns goes in instead.",
        "shifted = inputs[0].clone(), then one assignment: positions 1 to the end get positions 0 to the last but one, in "
        "`columns`.",
        "shifted[:, 1:, columns] = inputs[0][:, :-1, columns]; return (shifted,). handle = "
        "projection.register_forward_pre_hook(shift), run the model, handle.remove().",
    ),
)

# ---------------------------------------------------------------- 13b.3 one patch

def run_patched(model, site, clean_ids, other_ids, position, columns):
    kept, row = [], torch.arange(len(clean_ids))

    def keep(module, inputs):
        kept.append(inputs[0])

    def put(module, inputs):
        x = inputs[0].clone()                              # (batch, seq_len, width)
        x[row, position, columns] = kept[0][row, position, columns]
        return (x, *inputs[1:])

    handle = site.register_forward_pre_hook(keep)
    model(other_ids)                                       # the run to take from
    handle.remove()
    handle = site.register_forward_pre_hook(put)
    try:
        return model(clean_ids)                            # the run to change
    finally:
        handle.remove()


class _Mixing(nn.Module):
    """What a position has seen so far, on the average, times a scale, which comes as a second input."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(6, 6, generator=generator), requires_grad=False)

    def forward(self, x, scale=2.0):                       # of a lost input: another scale, so that it's found out
        self.read = x
        return scale * (x @ self.matrix).cumsum(dim=1)


class _Stack(nn.Module):
    """Vectors, a module `second` that mixes positions and is given two inputs, and the vectors added again."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(12, 6, generator=generator), requires_grad=False)
        self.first = nn.Parameter(torch.randn(6, 6, generator=generator), requires_grad=False)
        self.second = _Mixing(generator)

    def forward(self, token_ids):
        x = torch.tanh(self.vectors[token_ids] @ self.first)               # (batch, seq_len, 6)
        mixed = self.second(x, 0.5)
        self.copy_read = float(self.second.read is not x)  # did a copy go in, whatever is in it?
        return mixed + 0.5 * x                             # x again: a hook that changed it is found out


def _patch_probes(generator: torch.Generator) -> list[tuple]:
    """Pairs of texts that differ everywhere; a position of its own for each, inside, and not in order; some columns."""
    probes = []
    for rows, length, columns in ((3, 7, slice(0, 6)), (4, 6, slice(2, 4))):
        position = 1 + torch.randperm(length - 2, generator=generator)[:rows]
        probes.append((_Stack(generator), _ids(generator, rows, length), _ids(generator, rows, length), position, columns))
    return probes


def observe_patch(function, model, clean_ids, other_ids, position, columns):
    output = function(model, model.second, clean_ids, other_ids, position, columns)
    copied = getattr(model, "copy_read", 0.0)              # before the model reads again
    found = _looked_at(output, model, clean_ids)
    return None if found is None else {**found, "copy read": copied}


def _put_at(x, donor, row, position, columns):
    x = x.clone()
    x[row, position, columns] = donor[row, position, columns]
    return x


def _patched(put=_put_at, where=lambda position, length: position, columns=lambda columns: columns, swap=False,
             of_output=False, leave=(), rest=lambda inputs: inputs[1:]):
    def answer(model, site, clean_ids, other_ids, position, cut):
        row, kept = torch.arange(len(clean_ids)), []
        first, then = (clean_ids, other_ids) if swap else (other_ids, clean_ids)
        at, cut = where(position, clean_ids.shape[1]), columns(cut)
        if of_output:
            handle = site.register_forward_hook(lambda module, inputs, output: kept.append(output))
        else:
            handle = site.register_forward_pre_hook(lambda module, inputs: kept.append(inputs[0]))
        model(first)
        if "keep" not in leave:
            handle.remove()
        if of_output:
            handle = site.register_forward_hook(lambda module, inputs, output: put(output, kept[0], row, at, cut))
        else:
            handle = site.register_forward_pre_hook(
                lambda module, inputs: (put(inputs[0], kept[0], row, at, cut), *rest(inputs)))
        output = model(then)
        if "put" not in leave:
            handle.remove()
        return output
    return answer


def _changed_in_place(x, donor, row, position, columns):
    x[row, position, columns] = donor[row, position, columns]
    return x


def _added(x, donor, row, position, columns):
    x = x.clone()
    x[row, position, columns] += donor[row, position, columns]
    return x


def _in_every_row(x, donor, row, position, columns):
    x = x.clone()
    x[:, position, columns] = donor[:, position, columns]
    return x


def _everywhere(x, donor, row, position, columns):
    x = x.clone()
    x[..., columns] = donor[..., columns]
    return x


def _indexed_twice(x, donor, row, position, columns):
    x = x.clone()
    x[row, position][:, columns] = donor[row, position][:, columns]
    return x


def _other_columns_put(x, donor, row, position, columns):
    changed = x.clone()
    changed[row, position] = donor[row, position]
    changed[row, position, columns] = x[row, position, columns]
    return changed


def _last_alone(x, donor, row, position, columns):
    for one in row:
        changed = x.clone()
        changed[one, position[one], columns] = donor[one, position[one], columns]
    return changed


def _other_run(model, site, clean_ids, other_ids, position, columns):
    return model(other_ids)


def _from_the_first(x, donor, row, position, columns):
    x = x.clone()
    x[row, position, columns] = donor[0, position, columns]
    return x


PATCH = ask(
    "13b.3", run_patched,
    probes=_patch_probes,
    observe=observe_patch,
    signature="run_patched(model, site, a module of it; clean_ids (batch, seq_len); other_ids (batch, seq_len); position "
    "(batch,); columns, a slice) -> what model(clean_ids) gives while, at each text's position, these columns of what goes "
    "into `site` come from the run on other_ids",
    mistakes={
        "unchanged": M(_patched(lambda x, *rest: x), "your output is that of clean_ids without a patch.",
            "A hook that returns nothing changes nothing. Return (x, *inputs[1:]), and run clean_ids while the hook is on."),
        "indexed-twice": M(_patched(_indexed_twice),
            "a copy goes into `site`, and it's the same as the clean one.",
            "x[row, position] is a copy already, so x[row, position][:, columns] = … writes into that and is lost. Index "
            "once: x[row, position, columns] = …. (If you do, what you kept is of clean_ids: it must come from the run on "
            "other_ids, and from that alone.)"),
        "inputs-dropped": M(_patched(rest=lambda inputs: ()), _run,
            "Your hook returns x or (x,), and `site` was called with more than x: the rest is lost. Return (x, "
            "*inputs[1:])."),
        "other-run": M(_other_run, "your output is that of model(other_ids).",
            "That run is there to take from. Return the run on clean_ids, with the patch in it."),
        "last-text-alone": M(_patched(_last_alone), _run,
            "Only the last text was patched: clone() stands within the loop, so each text begins with a fresh copy. Clone "
            "once, before it; or no loop at all: x[row, position, columns]."),
        "other-columns": M(_patched(_other_columns_put), _run,
            "You replaced all columns but the ones that were asked for: the other heads."),
        "other-way-round": M(_patched(swap=True), _run,
            "You patch the run on other_ids with something from clean_ids. It's the clean run that is to be changed."),
        "everywhere": M(_patched(_everywhere), _run,
            "All positions were replaced, so nothing is left to find out. Replace each text's `position` alone."),
        "one-late": M(_patched(where=lambda position, length: position + 1), _run,
            "You patch one position too late."),
        "one-early": M(_patched(where=lambda position, length: position - 1), _run,
            "You patch one position too early."),
        "at-the-end": M(_patched(where=lambda position, length: torch.full_like(position, length - 1)), _run,
            "You patch the last position. Patch the one that's named for each text."),
        "same-for-all": M(_patched(where=lambda position, length: position[:1].expand(len(position))), _run,
            "All texts were patched at the first one's position. Each has its own: x[row, position], with row = "
            "torch.arange(len(x))."),
        "in-every-row": M(_patched(_in_every_row), _run,
            "x[:, position] means every text at every one of these positions. You want text 0 at position[0], text 1 at "
            "position[1]: x[row, position]."),
        "from-the-first": M(_patched(_from_the_first), _run,
            "All texts got what the first text of the other run had there. Each gets that of its own partner."),
        "all-columns": M(_patched(columns=lambda columns: slice(None)), _run,
            "You replaced the whole vector. Replace these columns alone: they belong to one head."),
        "added": M(_patched(_added), _run,
            "You add the other run's numbers. They should stand in place of the clean ones."),
        "in-place": M(_patched(_changed_in_place), _run,
            "What goes into `site` is right, but you've written into the tensor itself, and the model uses it again, beside "
            "`site`. Change a copy: .clone()."),
        "output-patched": M(_patched(of_output=True), _run,
            "You patch what comes out of `site`. Patch what goes in: register_forward_pre_hook, both times."),
        "left-behind": M(_patched(leave=("put",)), _left, LEFT),
        "first-left-behind": M(_patched(leave=("keep",)), _left,
            "The hook that keeps is still there when the second run begins. Here it does no harm; where it overwrites what "
            "it kept, you patch a run with itself. Remove each hook when its run is over."),
        "both-left-behind": M(_patched(leave=("keep", "put")), _left, LEFT),
    },
    rules=(
        R(lambda case: case.got["hooks left"] > 0, _left, LEFT),
        R(_without_change, "your output is that of clean_ids without a patch.",
          "Run other_ids first and keep what goes into `site`; then run clean_ids with the second hook on."),
        R(lambda case: case.output.shape != case.right["output"].shape
          or (case.output - case.right["output"]).abs().max() > 1e-4, _run,
          "At each text's own position, in `columns` alone, the numbers of the other run replace those of the clean one."),
        R(lambda case: (case.afterwards - case.right["afterwards"]).abs().max() > 1e-4,
          "after your run the model gives something else than before.", "Leave the model as it was."),
    ),
    hints=(
        "Two runs, two hooks. The first hook only keeps: kept.append(inputs[0]). Take it off again.",
        "The second hook changes a copy, x = inputs[0].clone(), and returns (x, *inputs[1:]), since a block gets more "
        "inputs than x.",
        "x[row, position, columns] = kept[0][row, position, columns], with row = torch.arange(len(clean_ids)).",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: what-the-key-says
  taught: "13b"
  question: Two heads work together on 'river stone ember river'. What must the head in layer 0 have written, so that the
    head in layer 1 can find 'stone'?
  options:
    - text: At 'stone', that the token before it was 'river'.
      right: true
      remark: The query at the end is 'river', and the only key that mentions 'river' as a predecessor is at 'stone'.
    - text: At the last 'river', that 'stone' comes next.
      remark: Nobody knows that before layer 1. Layer 0 at the last token can only look back at what's there.
    - text: At the first 'river', that 'stone' follows it.
      remark: The mask forbids it. When 'river' is read, 'stone' hasn't come yet, and a token can only collect what came
        before it.
- name: a-shifted-note
  taught: "13b"
  question: You shift what the look-back head writes by one position, so that each token has its left neighbour's note.
    Where does the induction head look now, in '… river stone ember … river'?
  options:
    - text: Still at 'stone', since its own weights haven't changed.
      remark: Its weights haven't, but the keys that it reads have. It looks for the note 'after river', wherever that is.
    - text: At the first 'river', one token early.
      remark: That's what the other shift does, in which every token asks for its left neighbour.
    - text: At 'ember', one token too far.
      right: true
      remark: The note 'the token before was river' now lies at 'ember', so that's where the query finds it.
- name: both-halves
  taught: "13b"
  question: A head puts nine tenths of its weight on the token after the previous occurrence. What's still missing before
    you call it an induction head, as Olsson et al. define one?
  options:
    - text: Nothing. Where a head looks is what it does.
      remark: A head could look there and write something else. What it copies is another matrix's business.
    - text: That its output raises the logit of the token it looks at.
      right: true
      remark: Matching is done by queries and keys, copying by values and the output projection. You measure the two
        separately.
    - text: That the accuracy falls if you shut the head.
      remark: That would show that it's needed here, not what it does. Two heads that do the same would both fail this test.
- name: patch-of-everything
  taught: "13b"
  question: After the last layer you patch the vector at the question, and the effect is 1. What have you found out?
  options:
    - text: Nothing, since the answer is computed from this vector alone.
      right: true
      remark: Whatever the model does, this patch hands over the other run's answer. A finding needs a patch that could
        have had no effect.
    - text: That the last layer holds the name.
      remark: Every model would give you an effect of 1 here, one that guesses, too.
    - text: That the head at the question fetches it.
      remark: Which head it was you learn by patching heads one by one, before their outputs are added.
- name: shut-one-by-one
  taught: "13b"
  question: You shut each of four heads in turn, and each time the model still answers correctly. What follows?
  options:
    - text: None of the four has anything to do with the answer.
      remark: In this notebook all four fetch it, about a quarter each. With one shut, three are enough.
    - text: The name isn't fetched by attention.
      remark: Nothing but attention moves anything from one position to another.
    - text: No single one of them is necessary; together they may be.
      right: true
      remark: Heads share work. Patching measured what each adds, and the four effects add up to most of the whole.
- name: hooks-and-heads
  taught: "10"
  question: Why does a hook that changes one head stand in front of the output projection?
  options:
    - text: Because behind it the heads are mixed, and no column belongs to one head.
      right: true
      remark: In front of it, head h owns the columns from h · d_head on. The projection adds all heads into one vector.
    - text: Because the weights are computed there.
      remark: They've been computed and used by then. What arrives there is each head's mean of values.
    - text: Because hooks can only be put on linear layers.
      remark: Every module takes hooks.
"""

WARM_UP = """
- name: who-may-look
  taught: "13"
  question: A language model reads 'river stone ember river' and is asked for what comes next. Which tokens may the second
    token, 'stone', have looked at?
  options:
    - text: All four, since the whole text is there.
      remark: Then it would have seen its own answer in training. The causal mask hides whatever comes later.
    - text: "'river' and itself."
      right: true
      remark: Position 1 sees positions 0 and 1. So nothing at the first 'river' can know that 'stone' follows.
    - text: "'ember', its target, alone."
      remark: "'ember' is what it's asked for. Predicting it is the task."
- name: what-a-head-owns
  taught: "05"
  question: An attention layer has two heads and vectors of 64 numbers. Before the output projection, what are the columns 32
    to 63 of a token's vector?
  options:
    - text: What the second head has fetched for this token.
      right: true
      remark: The heads lie side by side until the output projection mixes them. Today you'll change such columns.
    - text: The weights of the second head.
      remark: Weights go from query to key; there are as many as tokens, and they aren't in this vector.
    - text: A mixture of both heads.
      remark: They're mixed by the output projection, one step later.
- name: a-map-and-a-cause
  taught: "11"
  question: A head of a model looks at 'not' with nearly all of its weight. What does that show?
  options:
    - text: That the verdict changes when 'not' is taken away.
      remark: For that you have to take it away. The weight says where something was fetched, not what was made of it.
    - text: That the head is needed.
      remark: You'd have to change the head and look at the result.
    - text: Where that head fetches from, and nothing more yet.
      right: true
      remark: What's fetched, and what it's good for, are further questions. Today you ask all three of one head.
"""
