"""Exercises of notebook 05, multi-head attention. The answers stand beside it, in `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import (
    largest_weight,
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


SPLIT = Exercise(
    probes=_split_probes, observe=_observe_split, forbidden=("course_utils.multi_head_attention.MultiHeadAttention.split",),
    signature="into_heads(x (batch, seq_len, d_model), num_heads) -> (batch, heads, seq_len, d_head)",
    mistakes=(
        Mistake("view", _misplaced, "The shape is right, the contents are not: view only cuts the row of numbers "
                "differently, so a head gets pieces of different words (the figure above). Cut the last dimension in two "
                "first, then swap two dimensions."),
        Mistake("not-transposed", _shape, "The last dimension is cut correctly, but the heads still come after the words. "
                "Attention would compare heads with heads: swap dimensions 1 and 2."),
        Mistake("interleaved", _first_misplaced, "Your head h takes every num_heads-th column. Here a head owns "
                "neighbouring columns, h * d_head to (h + 1) * d_head: the head comes before the column when the last "
                "dimension is cut."),
        Mistake("transposed-first", _misplaced, "You swap words and columns before the cut, so you cut up the "
                "words. Cut the last dimension first."),
        Mistake("last-two-swapped", _shape, "Words and columns are swapped. Inside a head the words are rows: "
                "(seq_len, d_head)."),
        Mistake("heads-in-front", _shape, "The heads come before the batch. Everything later expects (batch, heads, "
                "seq_len, d_head): stack or move them to dimension 1."),
        Mistake("folded", _shape, "Heads and texts share one dimension. That can work too, but a mask that belongs to a "
                "text no longer fits: keep batch and heads apart."),
        Mistake("sizes-swapped", _shape, "You made d_head heads of width num_heads. The width of one head is x.shape[-1] // "
                "num_heads."),
    ),
    properties=(
        Property(lambda case: (case.answer != case.expected).any(), _first_misplaced, "Try it on torch.arange(12).view(1, "
                 "3, 4), where you can see which word each number came from."),
        *reaches("x"),
    ),
    hints=(
        "Two steps. The first changes only the last dimension, the second changes only the order of the dimensions.",
        "The last dimension, d_model, becomes two: heads and d_head. unflatten or view does it.",
        "After unflatten(-1, (num_heads, d_head)) the shape is (batch, seq_len, heads, d_head). transpose(1, 2) is left.",
    ),
)

# ---------------------------------------------------------------- 5.2 repair: merging back

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


MERGE = Exercise(
    given="view", probes=_merge_probes, observe=_observe_merge,
    forbidden=("course_utils.multi_head_attention.MultiHeadAttention.merge",),
    signature="join_heads(x (batch, heads, seq_len, d_head)) -> (batch, seq_len, d_model)",
    mistakes=(
        Mistake("view", _in_place, "Without the transpose the row of one word is filled from several words of one head. "
                "Put the transpose back; view cannot follow it, but reshape and flatten can."),
        Mistake("wrong-pair", _misplaced, "You swapped dimensions 2 and 3, words and columns. The heads must end "
                "up next to their columns: swap 1 and 2."),
        Mistake("interleaved", _first_misplaced, "The columns of the heads are shuffled like a pack of cards. Each head "
                "keeps its columns together: the order before flattening is (batch, seq_len, heads, d_head)."),
        Mistake("averaged", width, "The heads are averaged. What one head found is then lost in the mean (notebook "
                "05, section 1); put them side by side."),
        Mistake("summed", width, "The heads are added up, so you can no longer tell which head found what. Put them "
                "side by side; adding is left to the output projection."),
        Mistake("below", _shape, "The heads are one below the other, as if the text had more words. They must be side by "
                "side, in the last dimension."),
        Mistake("rows-of-heads", _shape, "Words and heads were flattened into one dimension. The heads and their "
                "columns belong together: the last two dimensions."),
        Mistake("not-flattened", _shape, "The dimensions are in the right order. One step is left: merge the last two."),
    ),
    properties=(
        Property(lambda case: (case.answer != case.expected).any(), _first_misplaced, "Each word keeps its own numbers, "
                 "head 0 first: write down the row of one word by hand."),
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


def _count(case: Case) -> str:
    return f"{case.answer.item():,.0f}"


def _maps(case: Case) -> float:
    return case.answer.item() / ONE_MAP


def _left_over(case: Case) -> float:
    return case.answer.item() - round(_maps(case)) * ONE_MAP


COUNT = Exercise(
    kind="number", tolerance=1e-7, signature="one whole number, such as 123_456",
    mistakes=(
        Mistake("no-biases", lambda case: f"{_count(case)} are the weights alone.", "Each of the maps also adds a vector of "
                "biases, one number for each column that comes out."),
        Mistake("no-output", lambda case: f"{_count(case)} are {_maps(case):.0f} maps: those of query, key and value.",
                "What the heads return goes through one more learned map (notebook 05, section 5)."),
        Mistake("one-map", lambda case: f"{_count(case)} is one map of 512 × 512 with its biases.",
                "Query, key, value and output have a map each."),
        Mistake("one-bias", lambda case: f"{_count(case)} counts all the weights, but the bias of one map only.",
                "Every map has its own 512 biases."),
        Mistake("eight-layers", lambda case: f"{_count(case)} are {_maps(case):.0f} maps of 512 × 512.",
                "You gave each head the whole width. The heads share it: each has 512 / 8 columns."),
        Mistake("wide-heads", lambda case: f"{_count(case)} are {_maps(case):.0f} maps of 512 × 512.",
                "You gave each head three maps of the whole width. Each head reads all 512 columns but writes only 512 / "
                "8."),
        Mistake("one-head", lambda case: f"{_count(case)} is what belongs to one head, {_maps(case):.2f} of a map of 512 × "
                "512.", "That is one head out of eight; together they fill the whole width."),
        Mistake("narrow-maps", lambda case: f"{_count(case)}: your maps are 64 × 64.", "A head writes 64 columns, but it "
                "reads the whole vector of a word, 512 numbers: its part of a map is 512 × 64."),
    ),
    properties=(
        Property(lambda case: case.answer.item() % 512 != 0, lambda case: f"{_count(case)} isn't a multiple of 512.",
                 "A map has 512 rows of 512 weights, and 512 biases: a multiple, and so is the sum of several."),
        Property(lambda case: abs(_maps(case) - round(_maps(case))) > 1e-9, lambda case: f"{_count(case)} is "
                 f"{abs(_left_over(case)):,.0f} {'more' if _left_over(case) > 0 else 'less'} than {round(_maps(case))} maps "
                 "of 512 × 512 with biases.", "The layer consists of whole maps, each with its 512 biases, and of nothing "
                 "else."),
        Property(lambda case: abs(_maps(case) - 4) > 1e-9, lambda case: f"{_count(case)} is as much as {_maps(case):.0f} "
                 "maps of 512 × 512 with biases.", "List the learned maps of the class (notebook 05, section 4), and "
                 "ask what the heads do to their size."),
    ),
    hints=(
        "Take one map first. How many numbers does nn.Linear(512, 512) contain?",
        "Heads divide the columns; they don't add any. How many such maps does the class have (notebook 05, section 4)?",
        "Four times (512 · 512 + 512).",
    ),
)

# ---------------------------------------------------------------- 5.4 multi-head attention from its parts

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


HEADS = Exercise(
    probes=_heads_probes, observe=_observe_heads, forbidden=("course_utils.multi_head_attention.MultiHeadAttention",
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
    mistakes=(
        Mistake("views", largest_weight, "Split and merge by view undo each other, so the shapes are right; between them "
                "the heads see pieces of several words (notebook 05, section 3). Test both on arange."),
        Mistake("view-split", largest_weight, "The split by view gives each head pieces of several words (notebook "
                "05, section 3); the merge is right. Test the split on arange."),
        Mistake("view-merge", _context_gap, "The heads were merged without transposing back, so a word receives what "
                "belongs to others (notebook 05, section 3)."),
        Mistake("scaled-by-d_model", largest_weight, "The scores are divided by √d_model. A dot product inside a head is a "
                "sum of d_head terms: divide by √d_head. With one head you would not notice."),
        Mistake("no-scaling", largest_weight, "The scores are not divided at all: divide by √d_head, as in notebook 04, or "
                "the rows are too sharp."),
        Mistake("shared-projection", largest_weight, "One matrix made query, key and value. What a word looks for and how "
                "it is found are then the same vector; each has its own matrix."),
        Mistake("no-output", _context_gap, "W_o is never used: changing it changes nothing. It lets a head write into "
                "every column (notebook 05, section 5)."),
        Mistake("averaged", _context_gap, "The heads are averaged and the mean is repeated to fill the width: all blocks of "
                "columns are equal before W_o. Put the heads side by side."),
        Mistake("mask-inverted", _padded_weight, "All the weight is on the padding. Here True means a real word; "
                "nn.MultiheadAttention means the opposite (notebook 05, section 6)."),
        Mistake("mask-ignored", _padded_weight, "The mask has no effect. If you used masked_fill, keep what it returns."),
        Mistake("mask-after-softmax", row_sums, "Padding was removed after the softmax, when it was already part of the "
                "sum. Mask the scores, before."),
        Mistake("queries-masked", lambda case: f"{int(case.weights.isnan().sum())} of {case.weights.numel()} weights are "
                "not numbers.", "The mask was put on the queries: rows of padding have no key left, and real words still "
                "look at padding. It belongs to the keys: attention_mask[:, None, None, :]."),
        Mistake("softmax-over-queries", lambda case: f"your rows sum to {spread(_sums(case, -1))}, your columns to "
                f"{spread(_sums(case, -2))}.", "The softmax runs over the queries. Each query distributes its "
                "attention over the keys: the last dimension."),
        Mistake("softmax-over-queries-nan", lambda case: f"{int(case.weights.isnan().sum())} weights are not numbers: all "
                "those of padded keys, whole columns.", "The softmax runs over the queries, where the column of a padded "
                "key holds nothing but -inf. Each query distributes its attention over the keys: the last dimension."),
        Mistake("matrices-transposed", largest_weight, "You multiplied by the transposed matrices, as F.linear does. The "
                "ones given here are used as x @ W."),
        Mistake("one-head", lambda case: f"your weights have the shape {tuple(case.weights.shape)}, expected "
                f"{tuple(case.right['weights'].shape)}.", "All columns were compared at once: one wide head. Split query, "
                "key and value into num_heads heads first."),
    ),
    properties=(
        Property(lambda case: (case.weights < -1e-6).any(), lambda case: f"{int((case.weights < 0).sum())} of your weights "
                 "are negative.", "Weights come out of a softmax and are positive."),
        Property(lambda case: _on_padding(case) > 1e-5, lambda case: "a padded key gets a weight of "
                 f"{_on_padding(case):.2g}.", "Where attention_mask is False the key must get nothing, in every head and "
                 "for every query: put -inf on its scores, before the softmax. A number such as -100 isn't low enough where "
                 "other scores are low too."),
        Property(lambda case: (_sums(case, -1) - 1).abs().max() > 1e-3, row_sums, "Each query's weights sum to one in each "
                 "head. Print weights.sum(dim=-1) after each step: right after a softmax over the last dimension it is "
                 "one."),
        Property(lambda case: (case.weights - case.right["weights"]).abs().max() > 1e-4, lambda case:
                 f"the weights of head {_worst_head(case)} differ by up to "
                 f"{(case.weights - case.right['weights']).abs().max():.3f}.", "They are weights, but not the softmax of "
                 "query · key / √d_head on this head's columns: check projections, split and divisor one by one."),
        Property(lambda case: _gap_of_real_words(case) < 1e-4 < _from_own_weights(case), lambda case:
                 "the context of the real words is right; that of padded ones is off by up to "
                 f"{_from_own_weights(case):.3f}.", "Only keys are masked. Nothing uses the rows of padding later; "
                 "leave them as they come out."),
        Property(lambda case: _from_own_weights(case) > 1e-3, lambda case: "your weights are right, but your context is off "
                 f"by up to {_from_own_weights(case):.3f}.", "Three things are left to check: value is x @ W_v, split "
                 "as the others are; the merge; @ W_o at the end, and nothing after it."),
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

def _value(case: Case) -> str:
    return f"{case.answer.item():.3f}"


BLIND = Exercise(
    kind="number", tolerance=5e-3, signature="one number",
    mistakes=(
        Mistake("always-apart", lambda case: f"{_value(case)} would be right if they never met.",
                "Sometimes both draw the same word; their rows are then equal, and D is 0."),
        Mistake("same", lambda case: f"{_value(case)} is how often they draw the same word.", "In these cases D is 0. What "
                "is it in the others?"),
        Mistake("one-word", lambda case: f"you took {1 - case.answer.item():.2f} for the chance that they meet.",
                "That is the chance that both draw one particular word. They may meet on any of the five."),
        Mistake("nats", lambda case: f"{_value(case)} is the average before the division by ln 2.",
                "D is in bits, so rows with no word in common have D = 1 (the formula above)."),
        Mistake("without-return", lambda case: f"{_value(case)} leaves one word out.", "The two heads draw independently: "
                "the second has all five words to draw from, including the first one's."),
        Mistake("never-apart", lambda case: f"{_value(case)} would mean that the rows are always equal.",
                "Blind heads have learned nothing about each other, but that does not make them equal: what is D when they "
                "draw two different words?"),
        Mistake("per-cent", lambda case: f"{_value(case)} looks like a percentage.", "D runs from 0 to 1: give it as a "
                "fraction of one."),
    ),
    properties=(
        Property(lambda case: not 0 <= case.answer.item() <= 1, lambda case: f"{_value(case)} is outside the range from 0 "
                 "to 1.", "D is 0 for equal rows and 1 for rows without a common word; an average lies between."),
        Property(lambda case: abs(case.answer.item() - 0.8) > 5e-3, lambda case: f"{_value(case)} would be right if they "
                 f"drew the same word in {100 * (1 - case.answer.item()):.1f} of 100 cases.", "D is 0 in these cases and 1 "
                 "in the others. How often do two draws from five agree?"),
    ),
    hints=(
        "There are two cases only: they draw the same word, or they do not. What is D in each?",
        "D is 0 for equal rows and 1 for rows without a common word. How often does each case happen?",
        "Whatever the first head drew, the second draws the same word in one of five cases.",
    ),
)

EXERCISES = (SPLIT, MERGE, COUNT, HEADS, BLIND)
