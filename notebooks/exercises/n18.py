"""Exercises, quiz and warm-up of notebook 18, efficient attention."""

import torch

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import gap, items_of, one_tensor, says_of, what, whole_id

# ---------------------------------------------------------------- 18.1 merge two halves

def merge(m_1, s_1, a_1, m_2, s_2, a_2):
    m = torch.maximum(m_1, m_2)                                            # (..., query, 1)
    r_1, r_2 = (m_1 - m).exp(), (m_2 - m).exp()                            # what the halves' units are worth in the new one
    return m, s_1 * r_1 + s_2 * r_2, a_1 * r_1 + a_2 * r_2


LOWEST = torch.finfo(torch.float32).min


def merge_probes(generator: torch.Generator) -> list[tuple]:
    """(m_1, s_1, a_1, m_2, s_2, a_2): scores of some keys; largest scores that are far apart, either way; very large and
    very low ones; halves without keys, in front, behind and on both sides; one query."""
    def side(shift, *shape, keys=5, d_value=4, without=()):
        scores = 2 * torch.randn(*shape, keys, generator=generator) + shift
        value = torch.randn(keys, d_value, generator=generator) + 0.5
        m = scores.amax(dim=-1, keepdim=True)
        e = (scores - m).exp()
        s, a = e.sum(dim=-1, keepdim=True), e @ value
        for row in without:
            m[..., row, :], s[..., row, :], a[..., row, :] = LOWEST, 0.0, 0.0
        return m, s, a

    return [(*side(0, 6), *side(0, 6, keys=3)), (*side(3, 2, 4, d_value=3), *side(0, 2, 4, d_value=3)),
            (*side(-300, 3, d_value=5), *side(300, 3, d_value=5)), (*side(250, 4, d_value=2), *side(-250, 4, d_value=2)),
            (*side(0, 5, without=[0, 3]), *side(1, 5, without=[1, 3])), (*side(-20, 1), *side(-20, 1, keys=2))]


def observe_merge(function, m_1, s_1, a_1, m_2, s_2, a_2):
    """m, s and a by name, and whether gradients reach what was given."""
    output = function(m_1, s_1, a_1, m_2, s_2, a_2)
    if output is None:
        return None
    if isinstance(output, dict) and set(output) == {"m", "s", "a"}:
        output = [output[name] for name in "msa"]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"{len(output)} results" if isinstance(output, (tuple, list)) else what(output)
        raise TypeError(f"expected three results, m, s and a, got {got}. End with `return m, s, a`")
    return {name: one_tensor(part, name) for name, part in zip("msa", output)}


def _context(whose: dict) -> torch.Tensor:
    return whose["a"] / whose["s"].clamp(min=1e-30)


def _off(part: str):
    return lambda case: case.got[part].shape == case.right[part].shape and gap(case, part) > 1e-3 * (
        1 + case.right[part].abs().max().item())


def _worst(case: Case) -> tuple[float, float, float, float]:
    """The largest scores of the two halves in the row whose context is furthest off, and that context's first number."""
    yours, right = _context(case.got), _context(case.right)
    row = int((yours - right).abs().nan_to_num(1e9).flatten(0, -2).amax(dim=1).argmax())
    m_1, m_2 = (case.inputs[place].flatten()[row].item() for place in (0, 3))
    return m_1, m_2, yours.flatten(0, -2)[row, 0].item(), right.flatten(0, -2)[row, 0].item()


def _says(case: Case) -> str:
    m_1, m_2, yours, right = _worst(case)
    return f"where the halves' largest scores are {m_1:.1f} and {m_2:.1f}, your a / s is {yours:.3f}, expected {right:.3f}."


def _says_s(case: Case) -> str:
    return f"your largest s is {case.s.max():.3f}, expected {case.right['s'].max():.3f}."


def _says_a(case: Case) -> str:
    return f"the largest difference of your a is {gap(case, 'a'):.3f}."


def _says_nothing_to_divide(case: Case) -> str:
    none = (case.right["s"] == 0).sum()
    if not none:
        raise ValueError("every row has keys")
    return (f"your a is NaN where neither half has a key: 0 / 0, in {none} row{'s' * (none > 1)} of "
            f"{case.right['s'].numel()}.")


def _says_m(case: Case) -> str:
    """Of the row that's furthest off, not counting those in which a half has no key; ValueError if there's none."""
    keys = (case.inputs[0] > LOWEST) & (case.inputs[3] > LOWEST)
    off = (case.m - case.right["m"]).abs().nan_to_num(1e9) * keys
    place = int(off.argmax())
    if off.flatten()[place] < 1e-3:
        raise ValueError("every row with keys is right")
    first, second, yours, right = (one.flatten()[place].item() for one in (
        case.inputs[0], case.inputs[3], case.m, case.right["m"]))
    return f"where the halves' largest scores are {first:.1f} and {second:.1f}, your m is {yours:.1f}, expected {right:.1f}."


def _rescaled(m, r_1, r_2):
    """Merging with another m, or other factors for the halves: each a function of what's known by then."""
    def answer(m_1, s_1, a_1, m_2, s_2, a_2):
        new = m(m_1, m_2)
        one, two = r_1(m_1, m_2, new), r_2(m_1, m_2, new)
        return new, s_1 * one + s_2 * two, a_1 * one + a_2 * two
    return answer


RIGHT_1, RIGHT_2 = (lambda m_1, m_2, m: (m_1 - m).exp()), (lambda m_1, m_2, m: (m_2 - m).exp())
ONE = lambda m_1, m_2, m: torch.ones_like(m_1)  # noqa: E731


def _average(m_1, s_1, a_1, m_2, s_2, a_2):
    """The mean of the two contexts."""
    m, s, _ = merge(m_1, s_1, a_1, m_2, s_2, a_2)
    return m, s, (a_1 / s_1.clamp(min=1) + a_2 / s_2.clamp(min=1)) / 2 * s


def _divided(*inputs):
    m, s, a = merge(*inputs)
    return m, s, a / s.clamp(min=1)


def _log_sum(m_1, s_1, a_1, m_2, s_2, a_2):
    m, s, a = merge(m_1, s_1, a_1, m_2, s_2, a_2)
    return m + s.clamp(min=1e-30).log(), s, a


MERGE = ask(
    "18.1", merge,
    probes=merge_probes,
    observe=observe_merge,
    signature="merge(m_1, s_1 (..., query, 1), a_1 (..., query, d_value), m_2, s_2 (..., query, 1), a_2 (..., query, "
              "d_value)) "
    "-> m (..., query, 1), s (..., query, 1), a (..., query, d_value)",
    not_finite={
        "inf": "e to the power of a positive number of hundreds has no room in float32. Count in units of the *larger* "
               "m: then "
        "both powers, m_1 - m and m_2 - m, are 0 or below.",
        "NaN": "If you divide: a half without keys has s = 0, and 0 / 0 is NaN; the division has to wait. If you don't, "
        "it's inf - inf or 0 times inf, since some power became infinite. Count in units of the *larger* m: then both "
        "powers, m_1 - m and m_2 - m, are 0 or below."},
    mistakes={
        "not-rescaled": M(
            _rescaled(torch.maximum, ONE, ONE), _says,
            "You add the halves as they are. One counts in units of e^m_1, the other in units of e^m_2: multiply each by "
            "what its unit is worth in the new one."),
        "sums-not-rescaled": M(
            {"s_1 * r_1 + s_2 * r_2": "s_1 + s_2"}, _says,
            "a is right, and s is added without changing units. Both count in units of e^m, so both get the same factors."),
        "totals-not-rescaled": M(
            {"a_1 * r_1 + a_2 * r_2": "a_1 + a_2"}, _says,
            "s is right, and a is added without changing units. Both count in units of e^m, so both get the same factors."),
        "first-not-rescaled": M(
            _rescaled(torch.maximum, ONE, RIGHT_2), _says,
            "Only the second half changes units. That's right where the first has the larger m; elsewhere the first must "
            "shrink."),
        "second-not-rescaled": M(
            _rescaled(torch.maximum, RIGHT_1, ONE), _says,
            "Only the first half changes units. That's right where the second has the larger m, and wrong everywhere "
            "else. A "
            "running sum needs both, because a new block's scores may be lower than those before."),
        "factors-exchanged": M(
            {"(m_1 - m).exp(), (m_2 - m).exp()": "(m_2 - m).exp(), (m_1 - m).exp()"}, _says,
            "The factors have changed places: the half with the lower m must shrink, and yours makes the other one shrink."),
        "maximum-not-updated": M(
            {"torch.maximum(m_1, m_2)": "m_1"}, _says_m,
            "You keep the first half's m and bring the second to its unit. Then a second half with larger scores makes "
            "powers "
            "above 0, which overflow. The unit has to be that of the larger m."),
        "second-maximum-kept": M(
            {"torch.maximum(m_1, m_2)": "m_2"}, _says_m,
            "You take the second half's m. If the first half's is larger, powers above 0 come out, which overflow."),
        "old-maximum-returned": M(
            lambda m_1, *rest: (m_1, *merge(m_1, *rest)[1:]), _says_m,
            "s and a are right, but you return m_1 as m. The next merge would take them for units of e^m_1."),
        "minimum": M(
            {"torch.maximum": "torch.minimum"}, _says_m,
            "That's the smaller m. Powers of the larger one are then above 0, and overflow."),
        "one-for-all-rows": M(
            {"torch.maximum(m_1, m_2)": "torch.full_like(m_1, max(m_1.max(), m_2.max()))"}, _says_m,
            "You use one largest score for all queries. A row whose own scores are far lower then becomes 0. Each row "
            "has its "
            "own m: torch.maximum works number by number."),
        "sign-reversed": M(
            {"(m_1 - m).exp(), (m_2 - m).exp()": "(m - m_1).exp(), (m - m_2).exp()"}, _says,
            "The sign is the wrong way round: a number in units of e^m_1 is e^(m_1 - m) times as large in units of e^m, and "
            "that's at most 1."),
        "without-e": M(
            {"(m_1 - m).exp(), (m_2 - m).exp()": "m_1 - m, m_2 - m"}, _says_s,
            "You multiply by the difference of the m. The units are e^m_1 and e^m_2, so the factor is e^(m_1 - m)."),
        "maxima-added": M(
            {"torch.maximum(m_1, m_2)": "m_1 + m_2"}, _says_m,
            "m is the largest score of both halves together: the larger of the two, not their sum."),
        "averaged": M(
            _average, _says,
            "That's the plain mean of what the halves fetched. The half with more weight must count more."),
        "divided": M(
            _divided, _says_a,
            "You've divided already. a stays a sum until the whole row is done; whoever merges next would add means to "
            "sums."),
        "divided-zero-by-zero": M(
            lambda *inputs: (*merge(*inputs)[:2], merge(*inputs)[2] / merge(*inputs)[1]), _says_nothing_to_divide,
            "You've divided already. a stays a sum until the whole row is done; whoever merges next would add means to "
            "sums."),
        "log-of-the-sum": M(
            _log_sum, _says_m,
            "You return m + log s, the logarithm of the whole sum. It's needed in section 4, but here m is the largest "
            "score, since s is returned as well."),
    },
    rules=(
        R(_off("m"), _says_m, "m is the larger of the two, in each row: torch.maximum(m_1, m_2)."),
        R(_off("s"), _says_s, "Each s counts in units of e to the power of its own m. What is such a unit worth in the "
                              "new one?"),
        R(_off("a"), _says_a, "a gets the same two factors as s."),
    ),
    hints=(
        "By hand it was: which m is larger? Then multiply the other half's s and a by e^(its m - the larger m).",
        "m = torch.maximum(m_1, m_2) is the larger one in each row. The factors are (m_1 - m).exp() and (m_2 - m).exp(); "
        "one of "
        "them is always 1.",
        "s = s_1 * (m_1 - m).exp() + s_2 * (m_2 - m).exp(), and a in the same way.",
    ),
)

# ---------------------------------------------------------------- 18.2 the window's indices

def window(start, stop, n, before, after):
    first, last = max(0, start - before), min(n, stop + after)
    i = torch.arange(start, stop)[:, None]                                 # (query, 1)
    j = torch.arange(first, last)                                          # (key,)
    allowed = (i - before <= j) & (j <= i + after)                         # (query, key)
    return first, last, allowed


def _window(first=lambda start, before: max(0, start - before), last=lambda stop, after, n: min(n, stop + after),
            rows=lambda start, stop, first: torch.arange(start, stop),
            columns=lambda first, last, n: torch.arange(first, last),
            rule=lambda i, j, before, after: (i - before <= j) & (j <= i + after)):
    """The window with one of its parts changed."""
    def answer(start, stop, n, before, after):
        low, high = first(start, before), last(stop, after, n)
        return low, high, rule(rows(start, stop, low)[:, None], columns(low, high, n), before, after)
    return answer


def window_probes(generator: torch.Generator) -> list[tuple]:
    """(start, stop, n, before, after): the middle, both ends, a window without one side, one longer than the text, a text of
    one block; sizes that all differ, moved a little by the generator."""
    def some(low, high):
        return int(torch.randint(low, high, (1,), generator=generator))

    middle, width = some(20, 30), some(5, 8)
    return [(middle, middle + width, 60, 3, 4), (0, width, 40, 4, 2), (33, 40, 40, 2, 5 + some(0, 3)),
            (middle, middle + width, 50, 6, 0), (width, 2 * width, 2 * width + 9, 0, 3), (2, 4, 7, 11, 12), (0, 4, 4, 1, 2)]


def observe_window(function, start, stop, n, before, after):
    """first and last as whole numbers, the mask as a matrix of numbers."""
    output = function(start, stop, n, before, after)
    if output is None:
        return None
    if isinstance(output, dict) and set(output) == {"first", "last", "allowed"}:
        output = [output[name] for name in ("first", "last", "allowed")]
    parts = items_of(output, "three results, first, last and allowed") if not isinstance(output, torch.Tensor) else [output]
    if len(parts) != 3:
        raise TypeError(f"expected three results, first, last and allowed, got {what(output)}. End with `return first, "
                        f"last, "
                        "allowed`")
    first, last = (whole_id(part) for part in parts[:2])
    allowed = one_tensor(parts[2], "allowed")
    if not isinstance(parts[2], torch.Tensor):
        raise TypeError(f"expected a tensor of True and False as allowed, got {what(parts[2])}. ~allowed, in "
                        "window_attention, needs a tensor")
    if allowed.dtype != torch.bool:
        raise TypeError(f"expected a mask of True and False (torch.bool), got one of {allowed.dtype}. A comparison of "
                        "positions gives True and False, and & joins two of them; * or .float() would make numbers, "
                        "and ~allowed, in window_attention, needs a mask")
    return {"first": float(first), "last": float(last), "allowed": allowed.double()}


def _where(case: Case) -> str:
    start, stop, n, before, after = case.inputs
    return f"queries {start} to {stop - 1} of {n} tokens, {before} before and {after} after:"


def _says_slice(case: Case) -> str:
    return (f"{_where(case)} your slice is {case.first.item():.0f} to {case.last.item():.0f}, expected "
            f"{case.right['first'].item():.0f} to {case.right['last'].item():.0f}.")


def _says_rows(case: Case) -> str:
    counts = [", ".join(f"{n:.0f}" for n in side.reshape(-1, side.shape[-1]).sum(-1).tolist()[:8])
              for side in (case.allowed, case.right["allowed"])]
    return f"{_where(case)} your queries see {counts[0]} keys, expected {counts[1]}."


def _says_shape(case: Case) -> str:
    return (f"{_where(case)} your mask has the shape {tuple(case.allowed.shape)}, expected "
            f"{tuple(case.right['allowed'].shape)}.")


def _wrapped_indices(start, stop, n, before, after):
    """The keys' positions modulo n."""
    keys = torch.arange(start - before, stop + after) % n
    i = torch.arange(start, stop)[:, None]
    return keys[0], keys[-1] + 1, (i - before <= keys) & (keys <= i + after)


WINDOW = ask(
    "18.2", window,
    probes=window_probes,
    observe=observe_window,
    signature="window(start, stop, n, before, after: whole numbers) -> first, last, allowed (stop - start, last - first)",
    mistakes={
        "start-below-zero": M(
            _window(first=lambda start, before: start - before), _says_slice,
            "At the beginning of the text your slice starts below 0. Python doesn't stop there: key[-4:5] counts from "
            "the end "
            "and gives an empty slice, or the text's last words. No key is before 0."),
        "end-beyond-the-text": M(
            _window(last=lambda stop, after, n: stop + after), _says_slice,
            "At the end of the text your slice goes on after its last token. Python cuts key[first:last] off there in "
            "silence, "
            "and your mask is wider than the slice."),
        "beyond-both-ends": M(
            _window(first=lambda start, before: start - before, last=lambda stop, after, n: stop + after), _says_slice,
            "Your slice goes beyond the text at both ends. Below 0 Python counts from the end, and after the last token it "
            "cuts off, so mask and slice no longer fit."),
        "wrapped-around": M(
            lambda start, stop, n, before, after: (
                (start - before) % n, (stop + after - 1) % n + 1, window(start + 99, stop + 99, 999, before, after)[2]),
            _says_slice,
            "Your window wraps around: its first words see the last ones of the text. A text has two ends."),
        "wrapped-indices": M(
            _wrapped_indices, _says_slice,
            "You take positions modulo n, so the window wraps around: what would be before word 0 becomes the end of the "
            "text. "
            "A text has two ends, where the window is cut off."),
        "last-included": M(
            lambda *inputs: (window(*inputs)[0], window(*inputs)[1] - 1, window(*inputs)[2]), _says_slice,
            "The mask is right, and `last` is the last key that's seen. But key[first:last] ends *before* `last`: it's one "
            "more."),
        "itself-not-seen": M(
            _window(rule=lambda i, j, before, after: (i - before <= j) & (j <= i + after) & (i != j)), _says_rows,
            "A query doesn't see itself. It's one of the keys: `before` + 1 + `after` in the middle of a text."),
        "one-too-few-before": M(
            {"i - before <= j": "i - before < j"}, _says_rows,
            "One key is missing at the left end of the window: the key `before` places back is still seen, so it's <=."),
        "one-too-few-after": M(
            {"j <= i + after": "j < i + after"}, _says_rows,
            "One key is missing at the right end of the window: the key `after` places on is still seen, so it's <=."),
        "one-too-few-on-both-sides": M(
            {"i - before <= j": "i - before < j", "j <= i + after": "j < i + after"}, _says_rows,
            "One key is missing at each end of the window. `before` and `after` don't count the query itself."),
        "stop-counted-as-a-query": M(
            _window(last=lambda stop, after, n: min(n, stop + after + 1)), _says_slice,
            "Your slice is one key too long. The last query is stop - 1, so the last key that's seen is stop - 1 + "
            "after, and "
            "a slice ends one after that."),
        "end-one-short": M(
            _window(last=lambda stop, after, n: min(n, stop - 1 + after)), _says_slice,
            "stop - 1 + after is the last key that's seen, and key[first:last] ends *before* `last`: it's one more, as far "
            "as the text goes."),
        "last-token-never-seen": M(
            _window(last=lambda stop, after, n: min(n - 1, stop + after)), _says_slice,
            "At the end of the text your slice leaves out its last token: that's n - 1, and a slice ends one after it."),
        "start-one-late": M(
            _window(first=lambda start, before: max(0, start - before + 1)), _says_slice,
            "Your slice begins one key too late: the first query still sees the key `before` places back."),
        "start-one-early": M(
            _window(first=lambda start, before: max(0, start - before - 1)), _says_slice,
            "Your slice begins one key too early: no query of the block sees that key."),
        "both-ends-one-short": M(
            _window(first=lambda start, before: max(0, start - before + 1),
                    last=lambda stop, after, n: min(n, stop - 1 + after)), _says_slice,
            "Your slice is one key too short at each end. `before` and `after` don't count the query itself, and "
            "key[first:last] ends before `last`."),
        "both-ends-one-long": M(
            _window(first=lambda start, before: max(0, start - before - 1),
                    last=lambda stop, after, n: min(n, stop + after + 1)), _says_slice,
            "Your slice is one key too long at each end. It begins at the first key that some query sees, and ends one "
            "after the last."),
        "one-too-many-before": M(
            {"i - before <= j": "i - before - 1 <= j"}, _says_rows,
            "The slice is right, and the mask lets each query see one key too many before it: `before` of them, not more."),
        "one-too-many-after": M(
            {"j <= i + after": "j <= i + after + 1"}, _says_rows,
            "The slice is right, and the mask lets each query see one key too many after it: `after` of them, not more."),
        "one-too-many-on-both-sides": M(
            {"i - before <= j": "i - before - 1 <= j", "j <= i + after": "j <= i + after + 1"}, _says_rows,
            "The slice is right, and the mask is one key too wide on both sides. In the middle of a text a query sees "
            "`before` + 1 + `after` keys."),
        "window-one-too-wide": M(
            lambda start, stop, n, before, after: window(start, stop, n, before + 1, after + 1), _says_slice,
            "Slice and mask are one key too wide on both sides. A query sees `before` + 1 + `after` keys: the 1 is itself."),
        "last-key-not-in-the-slice": M(
            _window(last=lambda stop, after, n: min(n, stop + after) - 1), _says_slice,
            "Your slice is one key too short: key[first:last] ends before `last`. So `last` is the last key that's seen, "
            "plus "
            "one."),
        "sides-exchanged": M(
            lambda start, stop, n, before, after: window(start, stop, n, after, before), _says_slice,
            "`before` and `after` have changed places."),
        "mask-exchanged": M(
            _window(rule=lambda i, j, before, after: (i - after <= j) & (j <= i + before)), _says_rows,
            "The slice is right, and in the mask `before` and `after` have changed places."),
        "no-mask": M(
            _window(rule=lambda i, j, before, after: (i == i) & (j == j)), _says_rows,
            "Every query of the block sees the whole slice. The block's first query must see less far to the right than its "
            "last."),
        "before-on-both-sides": M(
            _window(rule=lambda i, j, before, after: (i - j).abs() <= before), _says_rows,
            "Your mask uses `before` on both sides."),
        "causal": M(
            _window(rule=lambda i, j, before, after: (i - before <= j) & (j <= i)), _says_rows,
            "Your mask hides what comes after the query. A window has two sides; `after` is 0 where it should be causal."),
        "no-lower-limit": M(
            _window(rule=lambda i, j, before, after: j <= i + after), _says_rows,
            "Your mask has no lower end: the block's last query sees back as far as its first."),
        "no-upper-limit": M(
            _window(rule=lambda i, j, before, after: i - before <= j), _says_rows,
            "Your mask has no upper end: the block's first query sees on as far as its last."),
        "slice-counted-from-zero": M(
            _window(columns=lambda first, last, n: torch.arange(last - first)), _says_rows,
            "You count the slice's keys from 0. Column 0 of the mask is key `first`: torch.arange(first, last)."),
        "all-counted-from-zero": M(
            _window(rows=lambda start, stop, first: torch.arange(stop - start),
                    columns=lambda first, last, n: torch.arange(last - first)), _says_rows,
            "You count the queries from 0 and the slice's keys from 0. But they don't begin at the same word: the first "
            "query "
            "is `start`, the first key is `first`."),
        "inverted": M(
            _window(rule=lambda i, j, before, after: (i - before > j) | (j > i + after)), _says_rows,
            "True means that a query may see a key. Yours says the opposite."),
        "transposed": M(
            lambda *inputs: (*window(*inputs)[:2], window(*inputs)[2].mT), _says_shape,
            "Rows are queries, columns are keys."),
        "whole-text": M(
            _window(first=lambda start, before: 0, last=lambda stop, after, n: n), _says_slice,
            "The mask is right, on a slice that is the whole text: the right numbers for the full price. Take only the keys "
            "that some query of the block sees."),
        "block-alone": M(
            _window(first=lambda start, before: start, last=lambda stop, after, n: stop), _says_slice,
            "Your block looks only at itself. Its first query sees `before` keys to the left of it, its last `after` to the "
            "right."),
    },
    rules=(
        R(lambda case: case.first != case.right["first"] or case.last != case.right["last"], _says_slice,
          "The first query sees back to start - before, the last one, stop - 1, on to stop - 1 + after; neither goes "
          "beyond the "
          "text, and a slice ends one after its last key."),
        R(lambda case: case.allowed.shape != case.right["allowed"].shape, _says_shape, "Rows are queries, columns the "
                                                                                       "slice's "
          "keys."),
        R(lambda case: gap(case, "allowed") > 0, _says_rows, "Query i sees key j if i - before <= j and j <= i + after, "
                                                             "both "
          "counted in the whole text."),
    ),
    hints=(
        "Which is the first key that the *first* query sees? And the last that the *last* query, stop - 1, sees? Then "
        "cut both "
        "off at the ends of the text.",
        "first, last = max(0, start - before), min(n, stop + after). For the mask, i = torch.arange(start, stop)[:, "
        "None] and "
        "j = torch.arange(first, last).",
        "allowed = (i - before <= j) & (j <= i + after)",
    ),
)

# ---------------------------------------------------------------- 18.3 bytes of a cache

def cache_bytes(tokens, num_layers, num_heads, num_key_heads, d_head, bytes_each, window=None):
    kept = tokens if window is None else min(tokens, window)
    return 2 * num_layers * num_key_heads * d_head * bytes_each * kept


def cache_probes(generator: torch.Generator) -> list[tuple]:
    """(tokens, num_layers, num_heads, num_key_heads, d_head, bytes_each, window): without a window, one that's full, one
    that isn't yet; as many key heads as heads, some, one."""
    layers = int(torch.randint(3, 7, (1,), generator=generator))
    return [(100, layers, 12, 12, 64, 2, None), (1000, 32, 32, 8, 128, 2, None), (500, layers, 6, 1, 40, 4, None),
            (5000, 24, 15, 5, 80, 2, 700), (300, 11, 14, 7, 96, 1, 900)]


def observe_bytes(function, *inputs):
    return function(*inputs)


def _says_bytes(case: Case) -> str:
    tokens, layers, heads, key_heads, d_head, size, kept = case.inputs
    limited = f", a window of {kept}" if kept else ""
    return (f"{tokens:,} tokens, {layers} layers, {heads} heads, {key_heads} with keys of their own, {d_head} wide, "
            f"{size} byte{'s' * (size > 1)} a number{limited}: you say {case.answer.item():,.10g}, expected "
            f"{case.expected.item():,.0f}.")


def _flat(two=2, heads="key", layers=True, size=True, width=lambda d_head, num_heads: d_head,
          kept=lambda tokens, window: min(tokens, window or tokens)):
    """The bytes with a factor missing or another."""
    def answer(tokens, num_layers, num_heads, num_key_heads, d_head, bytes_each, window=None):
        number = {"key": num_key_heads, "all": num_heads, "groups": num_heads // num_key_heads, "none": 1}[heads]
        return (two * number * (num_layers if layers else 1) * width(d_head, num_heads) * (bytes_each if size else 1)
                * kept(tokens, window))
    return answer


DIVIDED = ("You divide d_head by the number of heads. It's one head's width already; d_model would have to be divided.")

CACHE = ask(
    "18.3", cache_bytes,
    probes=cache_probes,
    observe=observe_bytes,
    signature="cache_bytes(tokens, num_layers, num_heads, num_key_heads, d_head, bytes_each, window=None) -> bytes ()",
    mistakes={
        "keys-only": M(_flat(two=1), _says_bytes, "That's the keys. The values are kept, too: twice as much."),
        "queries-too": M(_flat(two=3), _says_bytes, "Three tensors a layer? A query is needed once, for its own row, and "
                                                    "isn't "
                         "kept: only keys and values are."),
        "query-heads": M(_flat(heads="all"), _says_bytes, "You count all heads. What's kept is keys and values, and only "
                         "num_key_heads have these."),
        "group-size": M(_flat(heads="groups"), _says_bytes, "num_heads / num_key_heads is how many heads *share* a key "
                                                            "head. "
                        "What's kept is num_key_heads of them."),
        "no-heads": M(_flat(heads="none"), _says_bytes, "The heads are missing: each key head has a key and a value of "
                                                        "d_head "
                      "numbers."),
        "no-layers": M(_flat(layers=False), _says_bytes, "That's one layer. Each has keys and values of its own."),
        "numbers-not-bytes": M(_flat(size=False), _says_bytes, "You count numbers. Each takes bytes_each bytes."),
        "bits": M(_flat(two=16), _says_bytes, "You count bits. bytes_each is in bytes already, and so is the answer."),
        "megabytes": M(_flat(two=2e-6), _says_bytes, "That's megabytes. Return bytes, and divide where you print."),
        "no-width": M(_flat(width=lambda d_head, num_heads: 1), _says_bytes, "A key isn't one number but d_head."),
        "width-divided": M(_flat(width=lambda d_head, num_heads: d_head / num_heads), _says_bytes, DIVIDED),
        "width-divided-whole": M(_flat(width=lambda d_head, num_heads: d_head // num_heads), _says_bytes,
                                 DIVIDED + " And // drops what's left over."),
        "window-ignored": M(_flat(kept=lambda tokens, window: tokens), _says_bytes, "With a window, a layer keeps no "
                                                                                    "more than "
                            "`window` tokens."),
        "always-the-window": M(_flat(kept=lambda tokens, window: window or tokens), _says_bytes, "The text is shorter "
                                                                                                 "than the "
                               "window here, and a cache can't hold tokens that haven't been read: the smaller of the two."),
        "the-larger": M(_flat(kept=lambda tokens, window: max(tokens, window or tokens)), _says_bytes, "That's the "
                                                                                                       "larger of "
                        "tokens and window. A layer keeps at most `window` tokens, and at most as many as there are."),
        "what-is-forgotten": M(_flat(kept=lambda tokens, window: tokens - window if window and window < tokens else tokens),
                               _says_bytes, "You count the tokens that the window has left behind. Those are forgotten; the "
                               "last `window` are kept."),
        "window-added": M(_flat(kept=lambda tokens, window: tokens + (window or 0)), _says_bytes, "The window doesn't "
                                                                                                  "come on "
                          "top of the tokens: it limits how many of them are kept."),
    },
    rules=(
        R(lambda case: (case.answer - case.expected).abs() > 0.5, _says_bytes, "Keys and values, in each layer, for each "
                                                                               "key "
          "head, d_head numbers of bytes_each bytes, for each token that's kept."),
    ),
    hints=(
        "One token, one layer, one key head: a key and a value of d_head numbers each. How many bytes?",
        "Times num_key_heads, times num_layers, times the tokens that are kept. num_heads isn't needed.",
        "kept = tokens if window is None else min(tokens, window); return 2 * num_layers * num_key_heads * d_head * "
        "bytes_each * kept",
    ),
)

# ---------------------------------------------------------------- 18.4 which attention for which text

def which():
    return 21534                                                           # A 2, B 1, C 5, D 3, E 4


def _digits(case: Case) -> bool:
    digits = f"{case.answer.item():.0f}"
    return len(digits) != 5 or not set(digits) <= set("12345")


def _wrong(place: int, right: str):
    return lambda case: f"{case.answer.item():05.0f}"[place] != right


WHICH = ask(
    "18.4", which, kind="number",
    signature="five digits, one for each of A to E, such as [1, 2, 3, 4, 5] or 12345",
    tolerance=1e-6,
    mistakes={
        "window-for-the-contract": M(lambda: 31524, "for A you say 3, and for D 2.", "The two clauses may stand "
                                                                                     "anywhere, so no "
                                     "pair may be left out. And D's commas need no pair that's far."),
        "global-for-the-commas": M(lambda: 21543, "for D you say 4, and for E 3.", "D needs neighbours only. E reads one "
                                                                                   "token "
                                   "that must hear from all, and in a plain window it hears from its neighbours: that token "
                                   "has to be global."),
        "key-heads-for-training": M(lambda: 51234, "for A you say 5, and for C 2.", "A's trouble is the table, in "
                                                                                    "training, and "
                                    "tiles take it away without changing a number. C's trouble is the caches, and tiles "
                                    "don't "
                                    "make those smaller."),
        "fused-for-the-picture": M(lambda: 12534, "for A you say 1, and for B 2.", "An entropy is computed from a row "
                                   "of weights, and fused kernels never have one. A runs out of memory because of the "
                                   "table."),
    },
    rules=(
        R(_digits, "you give {answer:.0f}.", "Write five digits from 1 to 5, the first for A."),
        R(lambda case: len(set(f"{case.answer.item():05.0f}")) < 5, "you use a number twice: {answer:.0f}.",
          "Each of the five is right for exactly one."),
        R(_wrong(0, "2"), says_of(0, 5), "A's clauses may stand anywhere, and training runs out of memory: which one "
                                         "gives the "
          "same numbers with less of it?"),
        R(_wrong(1, "1"), says_of(1, 5), "An entropy is computed from a whole row of weights. Which one has it?"),
        R(_wrong(2, "5"), says_of(2, 5), "While a model writes, what grows with people and tokens is the cache, and no "
                                         "token may be forgotten. What makes each token's part smaller?"),
        R(_wrong(3, "3"), says_of(3, 5), "D needs what stands near, and nothing else."),
        R(_wrong(4, "4"), says_of(4, 5), "E's words need their neighbours, but one token must hear from all."),
    ),
    hints=(
        "Ask for each: may pairs be left out? Must the weights be seen? What is it that doesn't fit, the table or the "
        "cache?",
        "B is the only one who needs the table's numbers. A may leave out no pair, and D and E may.",
        "C may leave out no token, but heads can share keys. E needs one token that sees everything.",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: what-tiles-change
  taught: "18"
  question: You replace explicit attention by tiles in a trained model. What changes?
  options:
    - text: Its outputs get a little worse, because each tile has a softmax of its own.
      remark: The tiles are merged into the softmax of the whole row, up to rounding.
    - text: It has to be trained again, though not for long.
      remark: Nothing that was learned changes. The same matrices give the same numbers.
    - text: The memory it needs, and nothing that it says.
      right: true
      remark: Same numbers up to rounding (section 3). That's why fused kernels can be switched on without asking anybody.
- name: lower-second-half
  taught: "18"
  question: The first half of a row has m = 5 and s = 2, the second m = 3 and s = 2. What's s of both?
  options:
    - text: 2 + 2e⁻², about 2.27
      right: true
      remark: The second half is brought to units of e⁵, in which it's worth e^(3 − 5) of what it was.
    - text: "4"
      remark: The two sums count in different units, e⁵ and e³.
    - text: 2e² + 2, about 16.8
      remark: That's in units of e³. It would be right with m = 3, but with larger scores it overflows.
- name: why-recompute
  taught: "18"
  question: FlashAttention computes the weights a second time in the backward pass. Why is that a good idea on a GPU?
  options:
    - text: Because the second time there's no softmax to be computed.
      remark: The exponentials are computed again, too; only the search for the maximum is spared.
    - text: Because reading a stored table from main memory would take longer than computing it again.
      right: true
      remark: Arithmetic is cheap there, and the way to it is narrow (section 4).
    - text: Because a GPU has no room for a table of that size.
      remark: For one head of 8,192 tokens it has. It's the trips that cost, and with many heads the room as well.
    - text: Because the weights may have changed in between.
      remark: They haven't. If they had, the gradients would be wrong.
- name: window-as-a-mask
  taught: "18"
  question: Somebody gives a text of 8,192 tokens a window of 129 keys by filling all other scores with minus infinity, and
    finds no speed-up at all. Why?
  options:
    - text: The window is too wide to make a difference.
      remark: It keeps one pair in sixty.
    - text: All scores are computed before most are thrown away.
      right: true
      remark: Only what's never computed saves time. The numbers are right, at the full price.
    - text: Minus infinity is slow in a softmax.
      remark: It's a number like any other for the processor, and the table would cost as much without it.
- name: far-clause
  taught: "18"
  question: A model has 6 layers, each with a window of 100 tokens before and none after. Can the token at position 2,000
    depend on the one at 1,300?
  options:
    - text: Yes, since every layer sees the whole text through the layers below.
      remark: It sees what they saw, which is 100 tokens further back for each layer.
    - text: Yes, but only weakly, because it's far away.
      remark: Within reach it could be strong or weak. Here it's out of reach.
    - text: No, whatever it has learned.
      right: true
      remark: Six layers reach 600 tokens back, to 1,400 (section 5).
- name: grouped-cache
  taught: "18"
  question: A model has 40 heads and 8 key heads. Its cache is how many times smaller than with 40 key heads, and what
    about its table of weights?
  options:
    - text: Five times, and the table is as large as before.
      right: true
      remark: Every head still has a row of weights for each query. Only keys and values are shared.
    - text: Five times, and so is the table.
      remark: 40 heads ask, so there are 40 rows of weights for each token.
    - text: Twenty-five times, since heads enter twice.
      remark: "Keys and values both shrink to a fifth, so the sum does, too."
- name: padding-and-zero
  taught: "04"
  question: In tiles as in tables, a forbidden key's score is filled with minus infinity. Why not with 0?
  options:
    - text: Zero would be rescaled when the maximum rises, and minus infinity isn't.
      remark: Both would be treated alike. The trouble is there before any tile.
    - text: Because e⁰ = 1, a score of 0 is as good as that of any indifferent word.
      right: true
      remark: A score of zero isn't a weight of zero (04, section 5).
    - text: Because the gradient of 0 is 0.
      remark: The key would get a weight, whatever its gradient.
"""

WARM_UP = """
- name: cross-weights
  taught: "17"
  question: A decoder has 7 French words so far, and the memory has 9 English ones. How many weights does one head of its
    cross-attention compute?
  options:
    - text: "16"
      remark: Every French word asks every English one.
    - text: "63"
      right: true
      remark: A row for each query, a column for each key. Today it's about what happens when both are 8,192.
    - text: "81"
      remark: That would be the encoder's self-attention, 9 by 9.
- name: what-a-cache-keeps
  taught: "13"
  question: The cache of a language model keeps keys and values of earlier tokens. Why not their queries?
  options:
    - text: A query is used for its own row only, and that row is done.
      right: true
      remark: Earlier tokens are looked at; they no longer look. Section 6 counts what the rest costs.
    - text: Queries are the same for all tokens.
      remark: Each token has its own, made from its vector.
    - text: They can be computed from the keys.
      remark: Query and key come from the same vector by two different matrices; neither gives the other.
- name: shifted-scores
  taught: "04"
  question: You add 100 to every score of one row, before the softmax. What happens to the row's weights?
  options:
    - text: They get sharper.
      remark: Multiplying the scores would do that. Adding the same to all leaves their differences.
    - text: They become equal.
      remark: Differences between scores stay, so differences between weights do.
    - text: Nothing.
      right: true
      remark: Each e^score is multiplied by e¹⁰⁰, and so is their sum. Section 2 lives on that.
"""
