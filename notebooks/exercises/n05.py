"""Exercises and quiz of notebook 05, multi-head attention."""

import math

import torch
from torch import nn

from course_utils.attention import scaled_dot_product_attention
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import (
    gap,
    largest_weight,
    no_module,
    one_tensor,
    reached,
    reaches,
    row_sums,
    spread,
    two_results,
    width,
)


def _place(index) -> str:
    return ", ".join(str(int(i)) for i in index)


def _first_misplaced(case: Case, name: str = "out") -> str:
    """The first entry that is not where it must be, and where in the input it came from."""
    got, right, given = case.answer, case.expected, case.inputs[0].double()
    place = (got != right).nonzero()[0]
    wanted = (given == right[tuple(place)]).nonzero()[0]
    came = (given == got[tuple(place)]).nonzero()
    found = f"x[{_place(came[0])}]" if len(came) else f"{got[tuple(place)].item():.3f}, which occurs nowhere in x"
    return f"{name}[{_place(place)}] is {found}, expected x[{_place(wanted)}]."


def _in_place(case: Case) -> str:
    got, right = case.answer, case.expected
    return f"{int((got == right).sum())} of {right.numel()} entries are where they belong."


def _shape(case: Case, name: str = "") -> str:
    return f"your shape is {tuple(case.got[name].shape)}, expected {tuple(case.right[name].shape)}."

# ---------------------------------------------------------------- 5.1 into heads

def into_heads(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return x.unflatten(-1, (num_heads, d_head)).transpose(1, 2)            # (batch, heads, length, d_head)


def _sizes(x, num_heads):
    batch, length, d_model = x.shape
    return batch, length, num_heads, d_model // num_heads


def _split_by_view(x, n):
    batch, length, heads, d_head = _sizes(x, n)
    return x.reshape(batch, heads, length, d_head)


def _split_transposed_first(x, n):
    batch, length, heads, d_head = _sizes(x, n)
    return x.transpose(1, 2).reshape(batch, heads, length, d_head)


def _split_probes(generator: torch.Generator) -> list[tuple]:
    """(batch 2, length 5, 3 heads of 4) and (batch 3, length 4, 5 heads of 2): no two sizes alike; then sizes of one."""
    sizes = (2, 5, 12, 3), (3, 4, 10, 5), (1, 1, 6, 2), (2, 1, 3, 3), (1, 4, 5, 1), (1, 1, 1, 1)
    return [(100 * torch.randn(*shape, generator=generator), heads) for *shape, heads in sizes]


def _observe_split(function, x, num_heads):
    """The heads, and whether a gradient reaches x."""
    output = function(x, num_heads)
    if output is None:
        return None
    return {"": one_tensor(output, "the heads"), **reached(function, output, (x, num_heads), {0: "x"})}


def _misplaced(case: Case) -> str:
    return f"{_first_misplaced(case)} {_in_place(case)}"


SPLIT = ask(
    "5.1", into_heads, probes=_split_probes, observe=_observe_split,
    forbidden=("course_utils.multi_head_attention.MultiHeadAttention.split",),
    signature="into_heads(x (batch, seq_len, d_model), num_heads) -> (batch, heads, seq_len, d_head)",
    mistakes={
        "view": M(_split_by_view, _misplaced, "The shape is right, the contents are not: view only cuts the row of "
                  "numbers differently, so a head gets pieces of different words (the figure above). Cut the last "
                  "dimension in two first, then swap two dimensions."),
        "not-transposed": M(lambda x, n: x.unflatten(-1, (n, -1)), _shape, "The last dimension is cut correctly, but "
                            "the heads still come after the words. Attention would compare heads with heads: swap "
                            "dimensions 1 and 2."),
        "interleaved": M(lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2), _first_misplaced,
                         "Your head h takes every num_heads-th column. Here a head owns neighbouring columns, h * "
                         "d_head to (h + 1) * d_head: the head comes before the column when the last dimension is cut."),
        "transposed-first": M(_split_transposed_first, _misplaced, "You swap words and columns before the cut, so you "
                              "cut up the words. Cut the last dimension first."),
        "last-two-swapped": M(lambda x, n: into_heads(x, n).transpose(-2, -1), _shape, "Words and columns are swapped. "
                              "Inside a head the words are rows: (seq_len, d_head)."),
        "heads-in-front": M(lambda x, n: torch.stack(x.chunk(n, dim=-1)), _shape, "The heads come before the batch. "
                            "Everything later expects (batch, heads, seq_len, d_head): stack or move them to dimension "
                            "1."),
        "folded": M(lambda x, n: into_heads(x, n).flatten(0, 1), _shape, "Heads and texts share one dimension. That can "
                    "work too, but a mask that belongs to a text no longer fits: keep batch and heads apart."),
        "sizes-swapped": M(lambda x, n: x.unflatten(-1, (-1, n)).transpose(1, 2), _shape, "You made d_head heads of "
                           "width num_heads. The width of one head is x.shape[-1] // num_heads."),
    },
    rules=(
        R(lambda case: (case.answer != case.expected).any(), _first_misplaced, "Try it on torch.arange(12).view(1, 3, "
          "4), where you can see which word each number came from."),
        *reaches("x"),
    ),
    hints=(
        "Two steps. The first changes only the last dimension, the second changes only the order of the dimensions.",
        "The last dimension, d_model, becomes two: heads and d_head. unflatten or view does it.",
        "After unflatten(-1, (num_heads, d_head)) the shape is (batch, seq_len, heads, d_head). transpose(1, 2) is left.",
    ),
)

# ---------------------------------------------------------------- 5.2 repair: merging back

def join_heads(x):
    return x.transpose(1, 2).flatten(-2)                                   # (batch, length, heads * d_head)


def _merge_probes(generator: torch.Generator) -> list[tuple]:
    """What comes out of attention: (batch 2, heads 3, length 5, d_head 4) and (3, 2, 4, 6); then sizes of one."""
    sizes = (2, 3, 5, 4), (3, 2, 4, 6), (1, 2, 1, 3), (2, 1, 3, 1), (1, 1, 1, 1)
    return [(100 * torch.randn(*shape, generator=generator),) for shape in sizes]


def _observe_merge(function, x):
    """The words, and whether a gradient reaches x."""
    output = function(x)
    if output is None:
        return None
    return {"": one_tensor(output, "the words"), **reached(function, output, (x,), {0: "x"})}


MERGE = ask(
    "5.2", join_heads, given="view", probes=_merge_probes, observe=_observe_merge,
    forbidden=("course_utils.multi_head_attention.MultiHeadAttention.merge",),
    signature="join_heads(x (batch, heads, seq_len, d_head)) -> (batch, seq_len, d_model)",
    mistakes={
        "view": M(lambda x: x.reshape(x.shape[0], x.shape[2], -1), _in_place, "Without the transpose the row of one "
                  "word is filled from several words of one head. Put the transpose back; view cannot follow it, but "
                  "reshape and flatten can."),
        "wrong-pair": M(lambda x: x.transpose(2, 3).reshape(x.shape[0], x.shape[2], -1), _misplaced, "You swapped "
                        "dimensions 2 and 3, words and columns. The heads must end up next to their columns: swap 1 and "
                        "2."),
        "interleaved": M(lambda x: x.permute(0, 2, 3, 1).flatten(-2), _first_misplaced, "The columns of the heads are "
                         "shuffled like a pack of cards. Each head keeps its columns together: the order before "
                         "flattening is (batch, seq_len, heads, d_head)."),
        "averaged": M(lambda x: x.mean(dim=1), width, "The heads are averaged. What one head found is then lost in the "
                      "mean (notebook 05, section 1); put them side by side."),
        "summed": M(lambda x: x.sum(dim=1), width, "The heads are added up, so you can no longer tell which head found "
                    "what. Put them side by side; adding is left to the output projection."),
        "below": M(lambda x: x.flatten(1, 2), _shape, "The heads are one below the other, as if the text had more "
                   "words. They must be side by side, in the last dimension."),
        "rows-of-heads": M(lambda x: x.transpose(1, 2).flatten(1, 2), _shape, "Words and heads were flattened into one "
                           "dimension. The heads and their columns belong together: the last two dimensions."),
        "not-flattened": M(lambda x: x.transpose(1, 2), _shape, "The dimensions are in the right order. One step is "
                           "left: merge the last two."),
    },
    rules=(
        R(lambda case: (case.answer != case.expected).any(), _first_misplaced, "Each word keeps its own numbers, head 0 "
          "first: write down the row of one word by hand."),
        *reaches("x"),
    ),
    hints=(
        "Look at one word of one text: its row must hold its numbers from head 0, then from head 1, and so on.",
        "The transpose was right. view needs the numbers in order in memory, and after a transpose they aren't.",
        "reshape copies when it has to. So does flatten(-2) after transpose(1, 2).",
    ),
)

# ---------------------------------------------------------------- 5.3 the parameters, counted

ONE_MAP = 512 * 512 + 512


def count_parameters():
    one_map = 512 * 512 + 512                                              # weights and biases of one nn.Linear
    return 4 * one_map                                                     # query, key, value, output; heads share the width


def _count(case: Case) -> str:
    return f"{case.answer.item():,.0f}"


def _maps(case: Case) -> float:
    return case.answer.item() / ONE_MAP


def _left_over(case: Case) -> float:
    return case.answer.item() - round(_maps(case)) * ONE_MAP


COUNT = ask(
    "5.3", count_parameters, kind="number", tolerance=1e-7, signature="one whole number, such as 123_456",
    mistakes={
        "no-biases": M(lambda: 4 * 512**2, lambda case: f"{_count(case)} are the weights alone.", "Each of the maps "
                       "also adds a vector of biases, one number for each column that comes out."),
        "no-output": M(lambda: 3 * ONE_MAP,
                       lambda case: f"{_count(case)} are {_maps(case):.0f} maps: those of query, key and value.",
                       "What the heads return goes through one more learned map (notebook 05, section 4)."),
        "one-map": M(lambda: ONE_MAP, lambda case: f"{_count(case)} is one map of 512 × 512 with its biases.",
                     "Query, key, value and output have a map each."),
        "one-bias": M(lambda: 4 * 512**2 + 512,
                      lambda case: f"{_count(case)} counts all the weights, but the bias of one map only.",
                      "Every map has its own 512 biases."),
        "eight-layers": M(lambda: 8 * 4 * ONE_MAP,
                          lambda case: f"{_count(case)} are {_maps(case):.0f} maps of 512 × 512.", "You gave each head "
                          "the whole width. The heads share it: each has 512 / 8 columns."),
        "wide-heads": M(lambda: 8 * 3 * ONE_MAP + ONE_MAP,
                        lambda case: f"{_count(case)} are {_maps(case):.0f} maps of 512 × 512.", "You gave each head "
                        "three maps of the whole width. Each head reads all 512 columns but writes only 512 / 8."),
        "one-head": M(lambda: 4 * (512 * 64 + 64),
                      lambda case: f"{_count(case)} is what belongs to one head, {_maps(case):.2f} of a map of 512 × "
                      "512.",
                      "That is one head out of eight; together they fill the whole width."),
        "narrow-maps": M(lambda: 8 * 4 * (64 * 64 + 64), lambda case: f"{_count(case)}: your maps are 64 × 64.",
                         "A head writes 64 columns, but it reads the whole vector of a word, 512 numbers: its part of a "
                         "map is 512 × 64."),
    },
    rules=(
        R(lambda case: case.answer.item() % 512 != 0, lambda case: f"{_count(case)} isn't a multiple of 512.",
          "A map has 512 rows of 512 weights, and 512 biases: a multiple, and so is the sum of several."),
        R(lambda case: abs(_maps(case) - round(_maps(case))) > 1e-9,
          lambda case: f"{_count(case)} is "
          f"{abs(_left_over(case)):,.0f} {'more' if _left_over(case) > 0 else 'less'} than {round(_maps(case))} maps "
          "of 512 × 512 with biases.",
          "The layer consists of whole maps, each with its 512 biases, and of nothing else."),
        R(lambda case: abs(_maps(case) - 4) > 1e-9,
          lambda case: f"{_count(case)} is as much as {_maps(case):.0f} " "maps of 512 × 512 with biases.",
          "List the learned maps of the class (notebook 05, section 4), and ask what the heads do to their size."),
    ),
    hints=(
        "Take one map first. How many numbers does nn.Linear(512, 512) contain?",
        "Heads divide the columns; they don't add any. How many such maps does the class have (notebook 05, section 4)?",
        "Four times (512 · 512 + 512).",
    ),
)

# ---------------------------------------------------------------- 5.4 multi-head attention from its parts

def attention_in_heads(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    batch, length, d_model = x.shape
    d_head = d_model // num_heads
    query, key, value = (
        (x @ W).unflatten(-1, (num_heads, d_head)).transpose(1, 2)         # (batch, heads, length, d_head)
        for W in (W_q, W_k, W_v)
    )
    scores = query @ key.transpose(-2, -1) / d_head**0.5                   # (batch, heads, query, key)
    scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    merged = (weights @ value).transpose(1, 2).flatten(-2)                 # (batch, query, d_model)
    return merged @ W_o, weights


def _heads(split=into_heads, merge=join_heads, divisor=None, shared=False, output=True, averaged=False, mask="keys",
           dim=-1, transposed=False):
    """The layer with one or more things changed."""
    def layer(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
        if shared:
            W_k = W_v = W_q
        if transposed:
            W_q, W_k, W_v, W_o = W_q.T, W_k.T, W_v.T, W_o.T
        query, key, value = (split(x @ W, num_heads) for W in (W_q, W_k, W_v))
        allowed = attention_mask[:, None, :, None] if mask == "queries" else attention_mask[:, None, None, :]
        if mask == "inverted":
            allowed = ~allowed
        scores = query @ key.mT / (math.sqrt(query.shape[-1]) if divisor is None else divisor(x, num_heads))
        if mask in ("keys", "queries", "inverted"):
            scores = scores.masked_fill(~allowed, -math.inf)
        weights = scores.softmax(dim=dim)
        if dim == -2 or mask == "after":
            weights = weights.masked_fill(~allowed, 0.0)
        context = weights @ value                                          # (batch, heads, query, d_head)
        merged = context.mean(dim=1).repeat(1, 1, num_heads) if averaged else merge(context)
        return merged @ W_o if output else merged, weights
    return layer


def _softmax_over_queries(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    query, key, value = (into_heads(x @ W, num_heads) for W in (W_q, W_k, W_v))
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~attention_mask[:, None, None, :], -1e9)
    weights = scores.softmax(dim=-2)
    return join_heads(weights @ value) @ W_o, weights


def _softmax_over_queries_nan(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    query, key, value = (into_heads(x @ W, num_heads) for W in (W_q, W_k, W_v))
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~attention_mask[:, None, None, :], -math.inf)
    weights = scores.softmax(dim=-2)
    return join_heads(weights @ value) @ W_o, weights


def _one_head(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    return attention_in_heads(x, W_q, W_k, W_v, W_o, 1, attention_mask)


def _merge_by_view(context):
    return context.reshape(context.shape[0], context.shape[2], -1)


def _heads_probes(generator: torch.Generator) -> list[tuple]:
    """Two padded batches: 3 heads of 4 on 5 words, 2 heads of 5 on 4 words. Every text has words, and padding.

    Then the first one again, with a column that makes every score low: a small negative number is no mask. Again, with
    high scores and those of the padding far above. Last a batch of one word and one head.
    """
    def draw(batch, seq_len, d_model):
        text = torch.randn(batch, seq_len, d_model, generator=generator)
        matrices = torch.randn(4, d_model, d_model, generator=generator) / d_model**0.5
        return text, *matrices

    first, second = torch.tensor([[4], [2]]), torch.tensor([[3], [2], [1]])
    text, W_q, W_k, *others = draw(2, 5, 12)
    low_text, low_query, low_key = text.clone(), W_q.clone(), W_k.clone()
    low_text[..., 0], low_query[0], low_key[0] = 1.0, 9.0, -9.0            # adds -160 or so to each score
    high_text, high_key = low_text.clone(), -low_key
    high_text[..., 0] = torch.where(torch.arange(5) < first, 1.0, 3.0)
    return [(text, W_q, W_k, *others, 3, torch.arange(5) < first),
            (*draw(3, 4, 10), 2, torch.arange(4) < second),
            (low_text, low_query, low_key, *others, 3, torch.arange(5) < first),
            (high_text, low_query, high_key, *others, 3, torch.arange(5) < first),
            (*draw(1, 2, 1), 1, torch.tensor([[True, False]]))]


def _observe_heads(function, x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    """Context and weights, and whether gradients reach what they should (with one word there is nothing to choose)."""
    given = (x, W_q, W_k, W_v, W_o, num_heads, attention_mask)
    output = function(*given)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    names = {0: "x", 1: "W_q", 2: "W_k", 3: "W_v", 4: "W_o"}
    if attention_mask.sum(dim=1).max() < 2:
        names = {0: "x", 3: "W_v", 4: "W_o"}
    return {"context": context, "weights": weights, **reached(function, output, given, names)}


def _sums(case: Case, dim: int) -> torch.Tensor:
    return case.weights.sum(dim=dim)


def _padding(case: Case) -> torch.Tensor:
    """Which weights are weights of padding: the shape of the weights, boolean."""
    return ~case.inputs[6][:, None, None, :].expand(case.right["weights"].shape)


def _on_padding(case: Case) -> float:
    """The largest weight that a padded key gets."""
    return case.weights[_padding(case)].nan_to_num().abs().max().item()


def _context_gap(case: Case) -> str:
    gap = (case.context - case.right["context"]).abs().max()
    return f"your weights are right, but your context is off by up to {gap:.3f}."


def _from_own_weights(case: Case) -> torch.Tensor:
    """How far the context is from weights @ value, merged and projected, with the learner's own weights."""
    text, _, _, W_v, W_o, num_heads, _ = case.inputs
    value = (text @ W_v).double().unflatten(-1, (num_heads, -1)).transpose(1, 2)
    context = (case.weights @ value).transpose(1, 2).flatten(-2) @ W_o.double()
    return (case.context - context).abs().max()


def _gap_of_real_words(case: Case) -> torch.Tensor:
    return (case.context - case.right["context"])[case.inputs[6]].abs().max()


def _worst_head(case: Case) -> int:
    return int((case.weights - case.right["weights"]).abs().amax(dim=(0, 2, 3)).argmax())


def _padded_weight(case: Case) -> str:
    return f"a padded key gets a weight of {_on_padding(case):.3f}."


HEADS = ask(
    "5.4", attention_in_heads, probes=_heads_probes, observe=_observe_heads,
    forbidden=("course_utils.multi_head_attention.MultiHeadAttention",
    "torch.nn.functional.multi_head_attention_forward"),
    signature="attention_in_heads(x (batch, seq_len, d_model), W_q, W_k, W_v, W_o (d_model, d_model each), "
    "num_heads, attention_mask (batch, seq_len), True = real word) -> context (batch, seq_len, d_model), weights (batch, "
    "heads, query, key)",
    not_finite={
        "inf": "exp of a large score overflows. Put -inf on the scores of the padding, then call softmax.",
        "-inf": "-inf belongs on the scores of the padding, before the softmax; a weight is never below 0.",
        "NaN": "exp of a large score overflows. And where padding scores far above the words, a softmax without the mask "
        "leaves them 0, and dividing a row by its sum is 0 / 0. Put -inf on the scores of the padding first, then call "
        "softmax."},
    mistakes={
        "views": M(_heads(split=_split_by_view, merge=_merge_by_view), largest_weight, "Split and merge by view undo "
                   "each other, so the shapes are right; between them the heads see pieces of several words (notebook "
                   "05, section 3). Test both on arange."),
        "view-split": M(_heads(split=_split_by_view), largest_weight, "The split by view gives each head pieces of "
                        "several words (notebook 05, section 3); the merge is right. Test the split on arange."),
        "view-merge": M(_heads(merge=_merge_by_view), _context_gap, "The heads were merged without transposing back, so "
                        "a word receives what belongs to others (notebook 05, section 3)."),
        "scaled-by-d_model": M(_heads(divisor=lambda x, n: math.sqrt(x.shape[-1])), largest_weight, "The scores are "
                               "divided by √d_model. A dot product inside a head is a sum of d_head terms: divide by "
                               "√d_head. With one head you would not notice."),
        "no-scaling": M(_heads(divisor=lambda x, n: 1.0), largest_weight, "The scores are not divided at all: divide by "
                        "√d_head, as in notebook 04, or the rows are too sharp."),
        "shared-projection": M(_heads(shared=True), largest_weight, "One matrix made query, key and value. What a word "
                               "looks for and how it is found are then the same vector; each has its own matrix."),
        "no-output": M(_heads(output=False), _context_gap, "W_o is never used: changing it changes nothing. It lets a "
                       "head write into every column (notebook 05, section 4)."),
        "averaged": M(_heads(averaged=True), _context_gap, "The heads are averaged and the mean is repeated to fill the "
                      "width: all blocks of columns are equal before W_o. Put the heads side by side."),
        "mask-inverted": M(_heads(mask="inverted"), _padded_weight, "All the weight is on the padding. Here True means "
                           "a real word; nn.MultiheadAttention means the opposite (notebook 05, section 5)."),
        "mask-ignored": M(_heads(mask="none"), _padded_weight, "The mask has no effect. If you used masked_fill, keep "
                          "what it returns."),
        "mask-after-softmax": M(_heads(mask="after"), row_sums, "Padding was removed after the softmax, when it was "
                                "already part of the sum. Mask the scores, before."),
        "queries-masked": M(_heads(mask="queries"),
                            lambda case: f"{int(case.weights.isnan().sum())} of {case.weights.numel()} weights are "
                            "not numbers.",
                            "The mask was put on the queries: rows of padding have no key left, and real words still "
                            "look at padding. It belongs to the keys: attention_mask[:, None, None, :]."),
        "softmax-over-queries": M(_softmax_over_queries,
                                  lambda case: f"your rows sum to {spread(_sums(case, -1))}, your columns to "
                                  f"{spread(_sums(case, -2))}.",
                                  "The softmax runs over the queries. Each query distributes its attention over the "
                                  "keys: the last dimension."),
        "softmax-over-queries-nan": M(_softmax_over_queries_nan,
                                      lambda case: f"{int(case.weights.isnan().sum())} weights are not numbers: all "
                                      "those of padded keys, whole columns.",
                                      "The softmax runs over the queries, where the column of a padded key holds "
                                      "nothing but -inf. Each query distributes its attention over the keys: the last "
                                      "dimension."),
        "matrices-transposed": M(_heads(transposed=True), largest_weight, "You multiplied by the transposed matrices, "
                                 "as F.linear does. The ones given here are used as x @ W."),
        "one-head": M(_one_head,
                      lambda case: f"your weights have the shape {tuple(case.weights.shape)}, expected "
                      f"{tuple(case.right['weights'].shape)}.",
                      "All columns were compared at once: one wide head. Split query, key and value into num_heads "
                      "heads first."),
    },
    rules=(
        R(lambda case: (case.weights < -1e-6).any(),
          lambda case: f"{int((case.weights < 0).sum())} of your weights " "are negative.", "Weights come out of a "
          "softmax and are positive."),
        R(lambda case: _on_padding(case) > 1e-5,
          lambda case: "a padded key gets a weight of " f"{_on_padding(case):.2g}.", "Where attention_mask is False the "
          "key must get nothing, in every head and for every query: put -inf on its scores, before the softmax. A "
          "number such as -100 isn't low enough where other scores are low too."),
        R(lambda case: (_sums(case, -1) - 1).abs().max() > 1e-3, row_sums, "Each query's weights sum to one in each "
          "head. Print weights.sum(dim=-1) after each step: right after a softmax over the last dimension it is one."),
        R(lambda case: (case.weights - case.right["weights"]).abs().max() > 1e-4,
          lambda case: f"the weights of head {_worst_head(case)} differ by up to "
          f"{(case.weights - case.right['weights']).abs().max():.3f}.",
          "They are weights, but not the softmax of query · key / √d_head on this head's columns: check projections, "
          "split and divisor one by one."),
        R(lambda case: _gap_of_real_words(case) < 1e-4 < _from_own_weights(case),
          lambda case: "the context of the real words is right; that of padded ones is off by up to "
          f"{_from_own_weights(case):.3f}.",
          "Only keys are masked. Nothing uses the rows of padding later; leave them as they come out."),
        R(lambda case: _from_own_weights(case) > 1e-3,
          lambda case: "your weights are right, but your context is off " f"by up to {_from_own_weights(case):.3f}.",
          "Three things are left to check: value is x @ W_v, split as the others are; the merge; @ W_o at the end, and "
          "nothing after it."),
        *reaches("x", "W_q", "W_k", "W_v", "W_o"),
    ),
    hints=(
        "Five steps: project, split, attend, merge, project. Print the shape after each and compare it with notebook "
        "05, section 4.",
        "The split is exercise 5.1 and the merge 5.2. Only query, key and value are split, by the same rule.",
        "scores = query @ key.transpose(-2, -1) / d_head**0.5 is (batch, heads, query, key). The mask must become (batch, "
        "1, 1, key).",
        "Masked scores get -inf, then softmax over the last dimension. Merge weights @ value, and end with @ W_o.",
    ),
)

# ---------------------------------------------------------------- 5.5 two blind heads

def difference_of_blind_heads():
    # the same word in 1 of 5 cases: equal rows, D = 0; in the other 4 of 5 no common word, D = 1
    return 1 / 5 * 0 + 4 / 5 * 1


def _value(case: Case) -> str:
    return f"{case.answer.item():.3f}"


BLIND = ask(
    "5.5", difference_of_blind_heads, kind="number", tolerance=5e-3, signature="one number",
    mistakes={
        "always-apart": M(lambda: 1.0, lambda case: f"{_value(case)} would be right if they never met.",
                          "Sometimes both draw the same word; their rows are then equal, and D is 0."),
        "same": M(lambda: 0.2, lambda case: f"{_value(case)} is how often they draw the same word.", "In these cases D "
                  "is 0. What is it in the others?"),
        "one-word": M(lambda: 1 - 1 / 25,
                      lambda case: f"you took {1 - case.answer.item():.2f} for the chance that they meet.",
                      "That is the chance that both draw one particular word. They may meet on any of the five."),
        "nats": M(lambda: 0.8 * math.log(2), lambda case: f"{_value(case)} is the average before the division by ln 2.",
                  "D is in bits, so rows with no word in common have D = 1, not ln 2."),
        "without-return": M(lambda: 0.75, lambda case: f"{_value(case)} leaves one word out.", "The two heads draw "
                            "independently: the second has all five words to draw from, including the first one's."),
        "never-apart": M(lambda: 0.0, lambda case: f"{_value(case)} would mean that the rows are always equal.",
                         "Blind heads have learned nothing about each other, but that does not make them equal: what is "
                         "D when they draw two different words?"),
        "per-cent": M(lambda: 80.0, lambda case: f"{_value(case)} looks like a percentage.", "D runs from 0 to 1: give "
                      "it as a fraction of one."),
    },
    rules=(
        R(lambda case: not 0 <= case.answer.item() <= 1,
          lambda case: f"{_value(case)} is outside the range from 0 " "to 1.", "D is 0 for equal rows and 1 for rows "
          "without a common word; an average lies between."),
        R(lambda case: abs(case.answer.item() - 0.8) > 5e-3,
          lambda case: f"{_value(case)} would be right if they "
          f"drew the same word in {100 * (1 - case.answer.item()):.1f} of 100 cases.",
          "D is 0 in these cases and 1 in the others. How often do two draws from five agree?"),
    ),
    hints=(
        "There are two cases only: they draw the same word, or they do not. What is D in each?",
        "D is 0 for equal rows and 1 for rows without a common word. How often does each case happen?",
        "Whatever the first head drew, the second draws the same word in one of five cases.",
    ),
)

# ---------------------------------------------------------------- 5.6 the layer as a module

class Heads(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query_projection = nn.Linear(d_model, d_model)
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.output_projection = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        query = into_heads(self.query_projection(x), self.num_heads)       # (batch, heads, seq_len, d_head)
        key = into_heads(self.key_projection(x), self.num_heads)
        value = into_heads(self.value_projection(x), self.num_heads)
        context, weights = scaled_dot_product_attention(query, key, value, mask)
        return self.output_projection(join_heads(context)), weights        # (batch, seq_len, d_model)


MAPS = ("query_projection", "key_projection", "value_projection", "output_projection")


def layer_probes(generator: torch.Generator) -> list[tuple]:
    """Sizes, texts and a mask: padding, for 3 heads of 4 on 5 words; no looking ahead, for 2 heads of 5 on 4; one head."""
    real = torch.arange(5) < torch.tensor([[4], [2]])
    looks_back = torch.ones(4, 4, dtype=torch.bool).tril()
    return [(12, 3, torch.randn(2, 5, 12, generator=generator), real[:, None, None, :]),
            (10, 2, torch.randn(3, 4, 10, generator=generator), looks_back),
            (6, 1, torch.randn(1, 3, 6, generator=generator), torch.tensor([True, False, True]))]


def observe_layer(answer, d_model, num_heads, x, mask):
    """The parameters' names and how many numbers they have; context and weights with weights filled in, under the mask and
    without one; how many numbers a gradient reaches."""
    try:
        layer = answer(d_model, num_heads)
    except AttributeError as error:
        if "before Module.__init__() call" not in str(error):
            raise
        raise TypeError("expected `super().__init__()` as the first line of __init__: it prepares the place where the "
                        "module keeps its layers, and you assign one before") from None
    if not isinstance(layer, nn.Module):
        return no_module(layer)
    named, filled = dict(layer.named_parameters()), torch.Generator().manual_seed(d_model)
    with torch.no_grad():
        for name in (f"{one}.{part}" for one in MAPS for part in ("weight", "bias")):
            numbers = torch.randn((d_model, d_model) if name.endswith("weight") else d_model, generator=filled)
            if name in named and named[name].shape == numbers.shape:
                named[name].copy_(numbers / d_model**0.5)
    output = layer(x)
    if output is None:
        return None
    free, weights = context, _ = two_results(output, "context", "weights")
    if weights.dim() == 4:                              # others may not take the mask, and are told of their shape instead
        context, weights = two_results(layer(x, mask), "context", "weights")
    if context.requires_grad:
        (context * torch.cos(torch.arange(context.numel())).reshape(context.shape)).sum().backward()
    return {"names": ", ".join(sorted(named)), "parameters": sum(parameter.numel() for parameter in named.values()),
            "context": context.detach(), "weights": weights.detach(), "free": free.detach(),
            "trained": sum(parameter.numel() for parameter in named.values() if parameter.grad is not None)}


def _layer(split=into_heads, merge=join_heads, maps=MAPS, bias=True, masked=True, output=True, added=False, detached=False,
           projected=True, by_width=False, result=lambda context, weights: (context, weights)):
    """The layer with one or more things changed."""
    class Made(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            self.num_heads = num_heads
            for name in MAPS:
                setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

        def forward(self, x, mask=None):
            query, key, value = (split(getattr(self, name)(x) if projected else x, self.num_heads) for name in maps[:3])
            if by_width:                                # √d_head · √num_heads is √d_model
                query = query / math.sqrt(self.num_heads)
            context, weights = scaled_dot_product_attention(query, key, value, mask if masked else None)
            context = merge(context.detach() if detached else context)
            context = self.output_projection(context) if output else context
            return result(x + context if added else context, weights)

    return Made


class _MapsInAList(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.maps = num_heads, [nn.Linear(d_model, d_model) for _ in MAPS]

    def forward(self, x, mask=None):
        context, weights = scaled_dot_product_attention(*(into_heads(one(x), self.num_heads) for one in self.maps[:3]), mask)
        return self.maps[3](join_heads(context)), weights


class _MapsInForward(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.sizes = d_model, num_heads

    def forward(self, x, mask=None):
        made = _MapsInAList(*self.sizes)
        return made(x, mask)


def _same_weights(case: Case) -> bool:
    return case.weights.shape == case.right["weights"].shape and gap(case, "weights") < 1e-4


HOLDS = "its parameters() are {parameters:.0f} numbers, expected {expected_parameters:.0f}."
OFF = "with weights filled in, your attention weights are right, and your context is off by up to {off:.3f}."
SHARP = "with weights filled in, the attention weights of head {worst} are off by up to {far:.3f}."
HIDDEN = "under a mask, hidden keys get a weight of up to {hidden:.3f}."
REACHED = "a gradient reaches {trained:.0f} of {parameters:.0f} numbers."
SHAPES = "you return the shapes {shapes}, expected {expected_shapes}."

LAYER = ask(
    "5.6", Heads, probes=layer_probes, observe=observe_layer,
    forbidden=("course_utils.multi_head_attention.MultiHeadAttention", "torch.nn.functional.multi_head_attention_forward"),
    signature="Heads(d_model, num_heads) -> a module that maps x (batch, seq_len, d_model) and a mask, True = may attend, "
    "or None, to context (batch, seq_len, d_model) and weights (batch, heads, query, key)",
    numbers=dict(
        parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
        names=lambda case: case.names or "nothing", trained=lambda case: case.trained,
        off=lambda case: gap(case, "context"), free=lambda case: gap(case, "free"),
        worst=_worst_head, far=lambda case: gap(case, "weights"),
        hidden=lambda case: case.weights[~case.inputs[3].expand(case.weights.shape)].max(),
        shapes=lambda case: f"{tuple(case.context.shape)} and {tuple(case.weights.shape)}",
        expected_shapes=lambda case: f"{tuple(case.right['context'].shape)} and {tuple(case.right['weights'].shape)}"),
    mistakes={
        "in-a-list": M(_MapsInAList, HOLDS, "PyTorch finds a layer that is itself an attribute, such as "
                       "self.query_projection. In a plain list it doesn't look, so no optimizer would train these."),
        "made-in-forward": M(_MapsInForward, HOLDS, "The maps are made anew each time forward runs, so whatever they learn "
                             "is lost. Make them once, in __init__."),
        "no-biases": M(_layer(bias=False), HOLDS, "The biases are missing: nn.Linear has them unless it's told not to."),
        "no-output": M(_layer(output=False), OFF, "The heads' results are side by side, and the fourth map was never used: "
                       "return self.output_projection of them."),
        "split-by-view": M(_layer(split=_split_by_view), SHARP, "The split gives each head pieces of several words. Use "
                           "your into_heads from 5.1."),
        "merge-by-view": M(_layer(merge=lambda context: context.reshape(context.shape[0], context.shape[2], -1)), OFF,
                           "The heads were merged without the transpose. Use your join_heads from 5.2."),
        "views": M(_layer(split=_split_by_view, merge=lambda context: context.reshape(context.shape[0], context.shape[2],
                                                                                      -1)),
                   SHARP, "Two wrong reshapes undo each other, so the shapes are right; between them the heads see pieces "
                   "of several words. Use into_heads and join_heads from 5.1 and 5.2."),
        "one-head": M(_layer(split=lambda x, num_heads: x, merge=lambda context: context), SHAPES, "Nothing was split: one "
                      "head compares all columns at once. Query, key and value go through into_heads first."),
        "one-map-for-all": M(_layer(maps=("query_projection",) * 3), REACHED, "One map makes query, key and value, so two "
                             "others are never used. Each has its own."),
        "never-projected": M(_layer(projected=False), REACHED, "x itself was split, and only the fourth map is used. Query, "
                             "key and value go through their own maps first."),
        "scaled-by-d_model": M(_layer(by_width=True), SHARP, "The scores are divided by √d_model. A dot product inside a "
                               "head is a sum of d_head terms: divide by √d_head, as 04's function does after the split."),
        "mask-forgotten": M(_layer(masked=False), HIDDEN, "The mask never reaches the attention: hand it on as the fourth "
                            "argument."),
        "weights-averaged": M(_layer(result=lambda context, weights: (context, weights.mean(dim=1))), SHAPES, "You return "
                              "the mean of the heads' weights, which is no head at all. Return them head by head."),
        "swapped": M(_layer(result=lambda context, weights: (weights, context)), SHAPES, "Context and weights are in the "
                     "wrong order."),
        "input-added": M(_layer(added=True), OFF, "You add the input to what comes out. That's useful, and 07 does it, but "
                         "around this layer, not in it."),
        "cut-off": M(_layer(detached=True), REACHED, "Something cuts it off before the output map, such as detach(), .data "
                     "or no_grad(), so queries, keys and values aren't trained."),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], HOLDS, "There are four maps, each an nn.Linear(d_model, "
          "d_model): for query, key, value and output. The heads share them."),
        R(lambda case: case.names != case.right["names"], "its parameters are {names}.", "Call the maps query_projection, "
          "key_projection, value_projection and output_projection: what follows looks for these names, and so does a file "
          "of weights."),
        R(lambda case: case.context.shape != case.right["context"].shape or case.weights.shape !=
          case.right["weights"].shape, SHAPES, "Print the shapes after each step: project, split, attend, merge, project."),
        R(lambda case: case.weights[~case.inputs[3].expand(case.weights.shape)].max() > 1e-6, HIDDEN, "Where the mask is "
          "False a key gets nothing: hand the mask on to scaled_dot_product_attention as it is."),
        R(lambda case: not _same_weights(case), SHARP, "The weights are made of queries and keys: is each projected by its "
          "own map, then split by into_heads, and the score divided once, by √d_head, as 04's function does?"),
        R(lambda case: gap(case, "context") > 1e-4, OFF, "Three things are left: the value's own map and its split; "
          "join_heads; self.output_projection, and nothing after it."),
        R(lambda case: gap(case, "free") > 1e-4, "under a mask all is right, without one your context is off by up to "
          "{free:.3f}.", "With mask=None every word sees every word: make no mask of your own."),
        R(lambda case: case.trained != case.right["trained"], REACHED, "Something cuts it off: detach(), .data, no_grad(), "
          "item(), NumPy."),
    ),
    hints=(
        "__init__: super().__init__(), keep num_heads, and make four nn.Linear(d_model, d_model) with the four names.",
        "forward follows the drawing: query = into_heads(self.query_projection(x), self.num_heads), key and value likewise.",
        "context, weights = scaled_dot_product_attention(query, key, value, mask)",
        "return self.output_projection(join_heads(context)), weights",
    ),
)

# ---------------------------------------------------------------- 5.7 what each head adds

def head_parts(weights, votes):
    return (weights * votes[:, None]).sum(dim=-1).mean(dim=-1)             # (head)


def _found(weights, votes):
    """What each row finds: (head, query)"""
    return (weights * votes[:, None]).sum(dim=-1)


def _parts_probes(generator: torch.Generator) -> list[tuple]:
    """3 heads on 5 words, 4 heads on 2, 2 on 2, one head; then heads that look at one word only."""
    drawn = [((2 * torch.randn(heads, length, length, generator=generator)).softmax(dim=-1),
              5 * torch.randn(heads, length, generator=generator))
             for heads, length in ((3, 5), (4, 2), (2, 2), (1, 3), (1, 1))]
    return [*drawn, (torch.eye(4)[torch.tensor([[0, 0, 0, 1], [3, 2, 3, 3]])], 5 * torch.randn(2, 4, generator=generator))]


def _observe_parts(function, weights, votes):
    output = function(weights, votes)
    return None if output is None else one_tensor(output, "the parts")


def _off(case: Case) -> str:
    head = int((case.answer - case.expected).abs().argmax())
    return f"the part of head {head} is {case.answer[head]:.3f}, expected {case.expected[head]:.3f}."


PARTS = ask(
    "5.7", head_parts, probes=_parts_probes, observe=_observe_parts,
    signature="head_parts(weights (head, query, key), votes (head, key)) -> parts (head)",
    mistakes={
        "summed": M(lambda w, v: _found(w, v).sum(dim=-1), _off, "The rows were added. The model takes the "
                    "mean over the words, so a head's part is the mean of its rows."),
        "mean-twice": M(lambda w, v: _found(w, v).mean(dim=-1) / v.shape[-1], _off, "The weights of a "
                        "row sum to 1, so its weighted mean is a sum over the keys. Only over the rows you take a mean."),
        "swapped": M({"votes[:, None]": "votes[..., None]"}, _off, "You multiplied each row by the vote of the word that "
                     "looks. The rows sum to 1, so the weights drop out, and the plain mean of the votes is left. What "
                     "counts is the vote of the word that's looked at: the last dimension, the keys."),
        "over-heads": M(lambda w, v: _found(w, v).mean(dim=0), _shape, "You took the mean over the heads, "
                        "which leaves a number for each row. Each head has its own part: the mean runs over the queries."),
        "rows": M(lambda w, v: _found(w, v), _shape, "That's what each row finds. A head's part is the "
                  "mean of its rows."),
        "keys": M(lambda w, v: (w * v[:, None]).mean(dim=1), _shape, "That's what each word's vote "
                  "brings in. Add them: a head's part is one number."),
        "together": M(lambda w, v: _found(w, v).mean(), _shape, "Everything went into one number, so the "
                      "heads can't be compared. Keep their dimension."),
        "heads-mixed": M(lambda w, v: (w @ v.T).mean(dim=(1, 2)), _off, "Each head's weights met the "
                         "votes of all heads. A head's weights belong to its own votes: give votes a dimension for the "
                         "queries, votes[:, None], and multiply."),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, _shape, "One number for each head: sum over the keys, "
          "then take the mean over the queries."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _off, "Take one head and one row by hand: multiply "
          "each weight by the vote of its key and add. Then the mean over the rows."),
    ),
    hints=(
        "A row is a weighted mean: weight times vote, added over the keys. Which dimension does votes lack?",
        "votes[:, None] is (head, 1, key), which fits weights (head, query, key).",
        "return (weights * votes[:, None]).sum(dim=-1).mean(dim=-1)",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: four-to-sixteen
  taught: "05"
  question: A layer has `d_model=256` and 4 heads. You change to 16 heads. What happens to the number of parameters?
  options:
    - text: It grows four times, since each head has its maps.
      remark: It would if each head kept its width of 64. Now each is 16 wide.
    - text: It falls to a quarter, since each head is narrower.
      remark: Each head is four times narrower, but there are four times as many.
    - text: It stays the same, since more heads means narrower heads.
      right: true
      remark: 4 · 256² + 4 · 256 in both cases (section 4).
- name: round-trip
  taught: "05"
  question: A colleague splits heads with `view(batch, heads, seq_len, d_head)` and merges with `view` as well. The round
    trip returns the input. What do you think of the layer?
  options:
    - text: It's right, because the round trip proves both steps.
      remark: The two errors undo each other. The attention in between ran over mixed-up words (section 3).
    - text: It's wrong, and changing the last word shows it.
      right: true
      remark: Head 0 sees only the first words of the text, so the output of the first word doesn't move (section 3).
    - text: It's wrong, and in training the loss won't fall.
      remark: It may train without complaint. A falling loss is no test.
- name: fit-the-four
  taught: "05"
  question: One head, no residual, a linear readout, no positions. Which change lets it fit 'moving', 'dull', 'not moving',
    'not dull'?
  options:
    - text: A residual connection.
      right: true
      remark: "A word then reaches the readout in two ways: directly, and through the weighted mean (section 6)."
    - text: A width of 512.
      remark: The argument never used the width.
    - text: Sharper attention weights.
      remark: The argument never used the size of the weights.
- name: do-they-divide
  taught: "05"
  question: Trained heads differ by 0.6 bits, untrained ones by 0.2. Does the model divide its work among the heads?
  options:
    - text: Yes, because training has made the difference three times as large.
      remark: Sharp heads with random starts differ anyway (section 7).
    - text: "You need one more number: how much heads of different models differ."
      right: true
      remark: Those can't have divided anything among themselves. Only a difference beyond theirs would say anything
        about the rows of weights.
    - text: No, because heads that divide their work would differ by a whole bit.
      remark: That isn't shown either. Two heads may have different jobs and still share many words.
- name: root-of-what
  taught: "04"
  question: With `d_head` = 64, what are the scores divided by? And what happens if you divide by √d_model = √512 instead?
  options:
    - text: By 8. With √512 the weights become flatter.
      right: true
      remark: √512 is about 22.6, so the scores become nearly three times smaller. With one head the two widths are equal,
        so the mistake shows only with several.
    - text: By 64. With √512 the weights become sharper.
      remark: By the root, not by the width.
    - text: By 8. With √512 the weights stay as they are.
      remark: Scores of a different size give a different softmax.
- name: how-many-heads
  taught: "05"
  question: Eight heads beat two on the short sentences, and lose to two in the whole classifier. Both are 32 wide. How many
    heads do you give your own model?
  options:
    - text: Eight, because they did better where nothing else was in the way.
      remark: Your model has other things in the way, and they decide too.
    - text: Two or three numbers, each tried in that model with several random seeds.
      right: true
      remark: The parameters are the same, so nothing but a trial tells which is better (section 8).
    - text: As many as possible, since they cost no parameters.
      remark: Each gets narrower. In the classifier, heads of width 4 cost 5.7 points.
"""

WARM_UP = """
- name: score-of-zero
  taught: "04"
  question: A query has the score 0 with every one of four keys, and no mask. What weight does each key get?
  options:
    - text: "0, because nothing matches."
      remark: Softmax never gives 0 to a finite score. It compares scores, and here they're equal.
    - text: "1/4: equal scores give equal weights."
      right: true
      remark: e⁰ = 1 for each, divided by the sum of four. A query of zeros takes the plain mean.
    - text: It depends on the values.
      remark: Weights are made of queries and keys alone.
- name: four-demands
  taught: "03"
  question: A bag of embeddings is supposed to get 'moving', 'dull', 'not moving' and 'not dull' right. What would 'not'
    have to do?
  options:
    - text: Push one review up and the other down, which one number can't.
      right: true
      remark: In a sum, 'not' adds the same whatever stands beside it. Section 6 asks whether one head can do better.
    - text: Have a score of zero, so that it leaves both alone.
      remark: Then 'not moving' would be read as 'moving'.
    - text: Have a longer vector than the other two words.
      remark: A longer vector pushes harder, but still in one direction.
- name: reshape-or-transpose
  taught: "00"
  question: "`x` has a row of three numbers for each of four words. Which of `x.T` and `x.reshape(3, 4)` has one word in each
    column?"
  options:
    - text: Both, since both have the shape (3, 4).
      remark: The shape says nothing about which number went where.
    - text: "`x.reshape(3, 4)`"
      remark: It keeps the numbers in their order and breaks the rows elsewhere, so a column mixes words.
    - text: "`x.T`"
      right: true
      remark: Dimensions are exchanged by `transpose`; `reshape` splits or merges neighbouring ones.
"""
