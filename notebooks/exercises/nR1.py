"""Exercises and quiz of Part I's review."""

import math
import re

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers, Case, Record
from course_utils.exercises.records import M, R, ask

from course_exercises import n04
from course_exercises.common import digit, drawn, gap, items_of, listed, no_module, one_tensor, pair_of, says_of, what

# ---------------------------------------------------------------- R1.1 attention, from memory

def attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~mask, -math.inf)                          # before the softmax
    weights = scores.softmax(dim=-1)                                       # each row sums to one
    return weights @ value, weights


# The probes and the mistakes are those of 4.3.
ATTENTION = Record(n04.MASKED.exercise._replace(
    id="R1.1", given="",
    signature="attention(query (..., query, d_k), key (..., key, d_k), value (..., key, d_value), mask, True = may attend) "
    "-> context (..., query, d_value), weights (..., query, key)",
    hints=(
        "Four steps: compare each query with each key, forbid, turn each row into weights, take the mean of the values.",
        "The scores are query @ key.transpose(-2, -1), divided by math.sqrt(query.shape[-1]). What goes on a forbidden one?",
        "scores = scores.masked_fill(~mask, -math.inf), and then weights = scores.softmax(dim=-1).",
    )), Answers(attention, n04.MASKED.answers.mutants))

# ---------------------------------------------------------------- R1.2 a block, from memory

class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.output = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)       # (batch, heads, seq_len, d_head)

    def forward(self, x, mask):                                            # (batch, seq_len, d_model)
        y = self.norm_1(x)
        query, key, value = (self.split(one(y)) for one in (self.query, self.key, self.value))
        context, _ = attention(query, key, value, mask)
        x = x + self.output(context.transpose(1, 2).flatten(-2))           # the heads side by side again
        return x + self.contract(F.gelu(self.expand(self.norm_2(x))))


QUIET = "stream where both sublayers are silent"


def block_probes(generator: torch.Generator) -> list[tuple]:
    """Sizes, texts and a mask: ragged padding, 3 heads of 2 on 5 words; no looking ahead; one head, one word."""
    real = torch.arange(5) < torch.tensor([[5], [2]])
    looks_back = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    return [(6, 3, 8, 2 * torch.randn(2, 5, 6, generator=generator) + 1, real[:, None, None, :]),
            (4, 2, 5, torch.randn(3, 4, 4, generator=generator), looks_back),
            (4, 1, 3, torch.randn(1, 1, 4, generator=generator), torch.ones(1, 1, 1, 1, dtype=torch.bool))]


def _shapes(d_model: int, d_ff: int) -> list[tuple[str, tuple]]:
    """The names and shapes of the block's parameters, sorted: written down, as no answer is there where hand-ins run."""
    of_weights = {"norm_1": (d_model,), "norm_2": (d_model,), "expand": (d_ff, d_model), "contract": (d_model, d_ff),
                  **dict.fromkeys(("query", "key", "value", "output"), (d_model, d_model))}
    return sorted([(f"{name}.weight", shape) for name, shape in of_weights.items()]
                  + [(f"{name}.bias", shape[:1]) for name, shape in of_weights.items()])


def observe_block(answer, d_model, num_heads, d_ff, x, mask):
    """The parameters' names and how many numbers they have; the output with weights filled in; the output when `output` and
    `contract` are zero; how many numbers a gradient reaches."""
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
    output = block(x, mask)
    if output is None:
        return None
    output = one_tensor(output, "the stream after the block")
    if output.requires_grad:
        (output * torch.cos(torch.arange(output.numel())).reshape(output.shape)).sum().backward()
    found = {"names": ", ".join(sorted(named)), "parameters": sum(one.numel() for one in named.values()),
             "trained": sum(one.numel() for one in named.values() if one.grad is not None)}
    with torch.no_grad():
        for name, parameter in named.items():
            if name.startswith(("output.", "contract.")):
                parameter.zero_()
        silent = one_tensor(block(x, mask), "the stream after the block")
    return {**found, "stream": output.detach(), QUIET: silent.detach()}


def _block(attend=None, conclude=None, split=None, merge=lambda context: context.transpose(1, 2).flatten(-2), masked=True,
           root=lambda query: query):
    """The block with one or more things changed: attend(block, x, heads) and conclude(block, x) return the new stream, where
    heads(y) is what multi-head attention makes of y."""
    class Made(Block):
        def forward(self, x, mask):
            def heads(y):
                parts = (split(one(y), self.num_heads) if split else self.split(one(y))
                         for one in (self.query, self.key, self.value))
                query, key, value = parts
                allowed = mask if masked else torch.ones_like(mask)
                return merge(attention(root(query), key, value, allowed)[0])

            x = attend(self, x, heads) if attend else x + self.output(heads(self.norm_1(x)))
            return conclude(self, x) if conclude else x + self.contract(F.gelu(self.expand(self.norm_2(x))))

    return Made


def _inner(block, x, bend=F.gelu):
    return block.contract(bend(block.expand(x)))


def _from_normed(block, x, heads):
    y = block.norm_1(x)
    return y + block.output(heads(y))


class _BlockInAList(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.parts = [Block(d_model, num_heads, d_ff)]

    def forward(self, x, mask):
        return self.parts[0](x, mask)


class _OneNorm(Block):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.norm_2 = self.norm_1


def _furthest(case: Case) -> tuple[int, int]:
    """The text and the word that come out furthest from what they should."""
    off = (case.stream - case.right["stream"]).abs().amax(dim=-1)          # (batch, seq_len)
    return divmod(int(off.argmax()), off.shape[1])


def _silent(case: Case) -> str:
    word = case.got[QUIET][0, 0] - case.inputs[3][0, 0]
    return f"with `output` and `contract` at zero the first word still moves, by {word.abs().max():.3f}."


HOLDS = "its parameters() are {parameters:.0f} numbers, expected {expected_parameters:.0f}."
OFF = "with weights filled in, word {place} (text, word) comes out as [{word}], expected [{right_word}]."
REACHED = "a gradient reaches {trained:.0f} of {parameters:.0f} numbers."

BLOCK = ask(
    "R1.2", Block, probes=block_probes, observe=observe_block,
    forbidden=("course_utils.transformer_blocks.EncoderBlock", "course_utils.multi_head_attention.MultiHeadAttention",
               "torch.nn.functional.multi_head_attention_forward"),
    signature="Block(d_model, num_heads, d_ff) -> a module that maps x (batch, seq_len, d_model) and a mask (batch, 1, 1 or "
    "query, key), True = may attend, to x (batch, seq_len, d_model)",
    not_finite={"NaN": "A query without a key gives that: where all is forbidden, softmax divides 0 by 0. Each query here "
                "has a key, so is the mask the wrong way round? True = may attend."},
    numbers=dict(
        parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
        trained=lambda case: case.trained, names=lambda case: case.names or "nothing",
        word=lambda case: listed(case.stream[_furthest(case)]), silent=_silent, place=_furthest,
        right_word=lambda case: listed(case.right["stream"][_furthest(case)]), off=lambda case: gap(case, "stream"),
        shape=lambda case: tuple(case.stream.shape), expected_shape=lambda case: tuple(case.right["stream"].shape)),
    mistakes={
        "in-a-list": M(_BlockInAList, HOLDS, "PyTorch finds a layer that __init__ makes an attribute, such as self.query. "
                       "In a plain list it doesn't look."),
        "one-norm": M(_OneNorm, HOLDS, "One norm serves both sublayers. Each has its own: norm_1 and norm_2."),
        "post-norm": M(_block(lambda block, x, heads: block.norm_1(x + block.output(heads(x))),
                              lambda block, x: block.norm_2(x + _inner(block, x))),
                       "{silent}", "The norm comes after the sum: that's post-norm. Pre-norm is x + f(LN(x)) (notebook 07, "
                       "section 5)."),
        "from-the-normed": M(_block(_from_normed), "{silent}", "The residual starts from the normalized x. What's added "
                             "goes onto the stream as it was: x + output(…), not norm_1(x) + output(…)."),
        "no-residual-1": M(_block(lambda block, x, heads: block.output(heads(block.norm_1(x)))), "{silent}", "After "
                           "attention the old x is gone: x = x + output(…) (notebook 07, section 3)."),
        "no-residual-2": M(_block(conclude=lambda block, x: _inner(block, block.norm_2(x))), "{silent}", "The feed-forward "
                           "layer replaces the stream; it should add to it."),
        "no-norm-1": M(_block(lambda block, x, heads: x + block.output(heads(x))), REACHED, "Attention reads the stream as "
                       "it is; norm_1 comes first."),
        "no-norm-2": M(_block(conclude=lambda block, x: x + _inner(block, x)), REACHED, "The feed-forward layer reads the "
                       "stream as it is; norm_2 comes first."),
        "no-feed-forward": M(_block(conclude=lambda block, x: x), REACHED, "The second half is missing: norm_2, expand, a "
                             "nonlinearity, contract, and the sum."),
        "no-attention": M(_block(lambda block, x, heads: x), REACHED, "The first half is missing, so words never meet."),
        "no-output": M(_block(lambda block, x, heads: x + heads(block.norm_1(x))), REACHED, "The heads' results are side by "
                       "side, and `output` was never used: it mixes them (notebook 05, section 2)."),
        "no-nonlinearity": M(_block(conclude=lambda block, x: x + _inner(block, block.norm_2(x), lambda y: y)), OFF, "There "
                             "is nothing between expand and contract, so the two are one linear layer: F.gelu goes there."),
        "relu": M(_block(conclude=lambda block, x: x + _inner(block, block.norm_2(x), torch.relu)), OFF, "You took relu, as "
                  "the first transformer did. Here it's F.gelu.", convention=True),
        "split-by-view": M(_block(split=lambda x, heads: x.reshape(x.shape[0], heads, x.shape[1], -1)), OFF, "view puts "
                           "pieces of several words into one head. Split the last dimension, then transpose: (batch, "
                           "seq_len, heads, d_head), then (batch, heads, seq_len, d_head)."),
        "merge-by-view": M(_block(merge=lambda context: context.reshape(context.shape[0], context.shape[2], -1)), OFF, "The "
                           "heads were merged without transposing back first."),
        "one-head": M(_block(split=lambda x, heads: x[:, None]), OFF, "All columns were compared at once: that's one head, "
                      "whatever num_heads is."),
        "mask-forgotten": M(_block(masked=False), OFF, "Words look where the mask forbids it: hand it on to attention."),
        "scaled-twice": M(_block(root=lambda query: query / math.sqrt(query.shape[-1])), OFF, "The queries were divided by "
                          "√d_head, and your attention does that already."),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], HOLDS, "Two norms, four maps of d_model × d_model, and "
          "expand and contract, all with their biases."),
        R(lambda case: case.names != case.right["names"], "its parameters are {names}.", "Use the eight names that the "
          "question gives."),
        R(lambda case: case.stream.shape != case.right["stream"].shape, "you return the shape {shape}, expected "
          "{expected_shape}.", "A block gives back what it got: one vector for each word."),
        R(lambda case: case.trained != case.right["trained"], REACHED, "A part isn't used, or something cuts it off "
          "(detach(), .data, no_grad(), NumPy)."),
        R(lambda case: gap(case, QUIET) > 1e-4, _silent, "A block whose sublayers say nothing leaves the stream as it "
          "was: both only add to x."),
        R(lambda case: gap(case, "stream") > 1e-4, OFF, "Silent sublayers leave x alone, as they should. Go through the "
          "rest: norm_1, three maps, split, attention under the mask, merge, output; norm_2, expand, F.gelu, contract."),
    ),
    hints=(
        "Two lines of the same form: x = x + something of the normalized x. What's the something in each?",
        "Split: y.view(batch, seq_len, num_heads, -1).transpose(1, 2). Back: context.transpose(1, 2).reshape(batch, "
        "seq_len, -1).",
        "y = self.norm_1(x); query, key and value are the split self.query(y), self.key(y), self.value(y).",
        "x = x + self.output(merged), and return x + self.contract(F.gelu(self.expand(self.norm_2(x)))).",
    ),
)

# ---------------------------------------------------------------- R1.3 three silent faults

def three_faults():
    # A reads no further than the sixteenth token; B's optimizer has the readout alone; C was tested on near copies.
    return 527


def _says(place: int):
    return says_of(place, 3, "cause ")


FAULTS = ask(
    "R1.3", three_faults, kind="number", tolerance=1e-7,
    signature="a number of three digits: the causes of A, B and C, such as 123",
    mistakes={
        "padding": M(lambda: 127, _says(0), "If padding were read, a text's probability would change beside a longer one. "
                     "Ask A about a text alone and in a list with a long one: the same. What does depend on length?"),
        "capitals": M(lambda: 627, _says(0), "Give A the same texts in capitals, and in lower case: its probabilities are "
                      "the same. Now change words at the end of a long text."),
        "dropout": M(lambda: 327, _says(0), "With dropout on, two calls with the same text differ. A's don't."),
        "names": M(lambda: 547, _says(1), "With the names exchanged B would be wrong nearly always, as sure as before. It's "
                   "right half of the time, and its loss is where it began: what did training change?"),
        "near-copies-first": M(lambda: 725, _says(0), "A's low score is on the course's own test split, which has no "
                               "copies. Where are its mistakes: in short texts, or in long ones?"),
        "capitals-last": M(lambda: 526, _says(2), "Both of C's scores are on texts in ordinary spelling. What do the texts "
                           "with the high score have in common with those that C was trained on?"),
    },
    rules=(
        R(lambda case: not re.fullmatch("[1-7]{3}", f"{case.answer.item():.0f}"), lambda case: f"you say "
          f"{case.answer.item():g}.", "Write three digits from 1 to 7: the cause of A, then that of B, then that of C."),
        R(lambda case: digit(1, 3)(case) != "2", _says(1), "Compare B's parameters before and after: how far did each part "
          "move?"),
        R(lambda case: digit(0, 3)(case) != "5", _says(0),
          "Put A's accuracy beside the number of tokens. Then change a word "
          "near the end of a long text, and one near its beginning."),
        R(lambda case: digit(2, 3)(case) != "7", _says(2),
          "Take a few of the texts on which C is right, and look for the "
          "text in C's training that's most like each."),
    ),
    hints=(
        "For each cause on the list, ask what you'd see if it were true, and look. Most can be ruled out by one call.",
        "A: accuracy by number of tokens. B: for each name in b_before, how far is b_after's number from it?",
        "C: take one validation text and print the training texts that share most of its words.",
    ),
)

# ---------------------------------------------------------------- R1.4 near copies

def words(text):
    return set(re.findall(r"\w+", text.lower())) or {text}      # '?!' counts as one word


def near_copies(first, second, least):
    return [(i, j) for i, one in enumerate(first) for j, other in enumerate(second)
            if len(words(one) & words(other)) / len(words(one) | words(other)) >= least]


BANK = ["What time do you close on {}?", "Please renew the {} books on my account.", "The {} in the hall is broken again!",
        "Is the {} open today?", "I would like to borrow the {} once more."]
FILL = ["Saturday", "Sunday", "two", "three", "printer", "lamp", "garden", "atlas"]


def copy_probes(generator: torch.Generator) -> list[tuple]:
    """Two lists and a limit: near copies at different places, capitals, a part of a longer text, a pair at the limit."""
    a, b, c, d = drawn(generator, FILL, 4)
    one, two, three = (text for text in drawn(generator, BANK, 3))
    first = [one.format(a), two.format(b), "No, no, no!", three.format(c).upper()]
    second = [three.format(c), two.format(d), one.format(b), "no", "The printer"]
    return [(first, second, 0.6),
            (["a b c", "d e"], ["C B A!", "a b d", "d e f g", "h"], 0.5),  # the second: 2 of 4 words, just at the limit
            (["the cat sat"], ["the cat sat on the big mat in the hall", "the cat", "the cat ran"], 0.6),
            (["a b c d e f"], ["a b c", "a b c d e f g h i j k l"], 0.6)]  # the first is longer, then shorter


def observe_copies(function, first, second, least):
    """A table with a 1 for each pair that's found, and how many pairs stand in the answer that can't be."""
    output = function(first, second, least)
    if output is None:
        return None
    pairs = [pair_of(pair, "pairs (i, j)") for pair in items_of(output, "a list of pairs (i, j)")]
    if texts := [place for pair in pairs for place in pair if not isinstance(place, int)]:
        raise TypeError(f"expected the places of the texts, such as (0, 2), got {what(texts[0])}")
    table, beyond = torch.zeros(len(first), len(second)), 0
    for i, j in pairs:
        if 0 <= i < len(first) and 0 <= j < len(second):
            table[i, j] += 1
        else:
            beyond += 1
    return {"pairs": table, "beyond": beyond}


def _by(share, equal=True, same_place=False, view=words, swapped=False, later=False):
    def found(first, second, least):
        pairs = []
        for i, one in enumerate(first):
            for j, other in enumerate(second):
                part = share(view(one), view(other))
                if later and i >= j or same_place and i != j:
                    continue
                if part >= least if equal else part > least:
                    pairs.append((j, i) if swapped else (i, j))
        return pairs
    return found


def _jaccard(one, other):
    return len(one & other) / len(one | other)


def _pair(case: Case) -> str:
    """The first pair that's missing, or that shouldn't be there."""
    first, second, least = case.inputs
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            if case.pairs[i, j] != case.right["pairs"][i, j]:
                shared, both = len(words(one) & words(other)), len(words(one) | words(other))
                there = "is in your list" if case.pairs[i, j] else "isn't in your list"
                return (f"({i}, {j}) {there}: {one!r} and {other!r} share {shared} of the {both} different words in them, "
                        f"and least is {least}.")
    return f"{int(case.beyond)} of your pairs name a text that there isn't."


COPIES = ask(
    "R1.4", near_copies, probes=copy_probes, observe=observe_copies,
    signature="near_copies(first (list of texts), second (list of texts), least) -> list of pairs (i, j): first[i] is a "
    "near copy of second[j]",
    numbers=dict(pair=_pair),
    mistakes={
        "equal-only": M(_by(lambda one, other: float(one == other)), "{pair}", "You find texts with exactly the same words. "
                        "A near copy has one changed."),
        "of-the-first": M(_by(lambda one, other: len(one & other) / len(one)), "{pair}", "You divide by the words of the "
                          "first text. Then each short text is a copy of every long one that holds its words: divide by the "
                          "words of both."),
        "of-the-second": M(_by(lambda one, other: len(one & other) / len(other)), "{pair}", "You divide by the words of the "
                           "second text. Divide by the words of both together."),
        "of-the-shorter": M(_by(lambda one, other: len(one & other) / min(len(one), len(other))), "{pair}", "You divide by "
                            "the words of the shorter text. Divide by the words of both together."),
        "of-the-longer": M(_by(lambda one, other: len(one & other) / max(len(one), len(other))), "{pair}", "You divide by "
                           "the words of the longer text. Divide by the words of both together."),
        "of-the-sum": M(_by(lambda one, other: len(one & other) / (len(one) + len(other))), "{pair}", "You divide by the "
                        "sum, in which shared words count twice, so not even equal texts reach 1. Take words(one) | "
                        "words(other)."),
        "more-than": M(_by(_jaccard, equal=False), "{pair}", "Just as much as `least` is enough: >=."),
        "same-place": M(_by(_jaccard, same_place=True), "{pair}", "You compare the first with the first, the second with "
                        "the second. A copy can stand anywhere: compare each text with each."),
        "later-only": M(_by(_jaccard, later=True), "{pair}", "You look at pairs with i < j alone, as one does inside "
                          "one list. Here every pair counts, also (1, 1) and (1, 0): the two lists may differ."),
        "capitals": M(_by(_jaccard, view=lambda text: set(re.findall(r"\w+", text))), "{pair}", "Capitals make other words. "
                      "`words` writes everything small."),
        "cut-at-spaces": M(_by(_jaccard, view=lambda text: set(text.lower().split())), "{pair}", "Cut at spaces, a full "
                           "stop sticks to its word. Use `words`."),
        "letters": M(_by(_jaccard, view=lambda text: set(text.lower())), "{pair}", "You compare letters, and any two "
                     "texts share most of those: words(text) gives the set of words."),
        "swapped": M(_by(_jaccard, swapped=True), "{pair}", "The two numbers are in the wrong order: first the place in "
                     "`first`, then that in `second`."),
    },
    rules=(
        R(lambda case: (case.pairs > 1).any(), lambda case: f"a pair stands in your list {int(case.pairs.max())} times.",
          "Once is enough."),
        R(lambda case: (case.pairs != case.right["pairs"]).any() or case.beyond > 0, _pair, "Shared words, divided by all "
          "different words of the two, at least `least`."),
    ),
    hints=(
        "Two loops: each text of the first list with each of the second. enumerate gives the places.",
        "words(one) & words(other) are the shared words, words(one) | words(other) all of them.",
        "if len(words(one) & words(other)) / len(words(one) | words(other)) >= least: append (i, j).",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: review-why-root
  taught: "04"
  question: Why are scores divided by √d_k?
  options:
    - text: So that each row of weights sums to one.
      remark: Softmax does that, whatever the scores are (04, section 2).
    - text: Without it a wider query alone makes the softmax harder, and a hard one has no slope.
      right: true
      remark: The variance of a score is d_k; at 512 the largest of 16 weights was 0.94 before anything was learned (04,
        section 4).
    - text: So that the words of a long text don't get too little weight each.
      remark: Length is the number of keys. The root is about the width of a query (04, section 4).
- name: review-longer
  taught: "06"
  question: A model with a learned table of positions was trained on texts of up to 100 words. It gets one of 101. What is
    row 100 of the table, if there is one?
  options:
    - text: Close to row 99, because neighbours are alike.
      remark: That's so for the sines, which are a smooth table. Nothing makes learned rows alike (06, section 5).
    - text: Zero, since no word was ever there.
      remark: It didn't start at zero (06, section 4). AdamW's decay shrinks a row that no gradient keeps up, but slowly
        (08), and it stays random.
    - text: Whatever random numbers it started with.
      right: true
      remark: No gradient ever reached it (06, section 4). And that an encoding is defined for any length doesn't mean that
        a model can read it; an extra of 06 measures that.
- name: review-heads
  taught: "05"
  question: Why several heads, when one could be made as wide as all of them together?
  options:
    - text: One softmax gives each word one weighted mean; another head weighs the same words differently.
      right: true
      remark: And no width makes up for it, as good, bad, not good, not bad showed (05, sections 1 and 6).
    - text: Several heads have more parameters, and so can learn more.
      remark: "They share the columns: the number of parameters is the same (05, section 4)."
    - text: One head could only look at one word.
      remark: It looks at all words, with one row of weights (05, section 1).
- name: review-add
  taught: "R1"
  question: Positions could be put beside a word's numbers instead of being added to them. What is lost by adding?
  options:
    - text: The model can't tell any longer which part was the word.
      remark: It needn't be told. In many dimensions a map can read one and ignore the other (below the quiz).
    - text: The order, because a sum doesn't depend on the order of what is summed.
      remark: The sum is over a word and its own position, not over the words of the text.
    - text: The position can't have a matrix of its own, and in return vectors don't get wider.
      right: true
      remark: Put beside, [x, p] times a matrix is xA + pB; added, it is xA + pA (below the quiz).
- name: review-feed-forward
  taught: "07"
  question: What is the feed-forward layer for?
  options:
    - text: It carries information from one word to another.
      remark: It's applied to each word by itself. Only attention mixes words (07, section 2).
    - text: It lets a word draw a conclusion from what it has collected.
      right: true
      remark: For a word by itself attention is a linear map, and no linear map reads 'negated blame' as praise (07,
        sections 1 and 2).
    - text: It brings the vectors back to the width that the next block expects.
      remark: Attention's output has that width already (05, section 4).
- name: review-residual
  taught: "07"
  question: What does a residual connection give you?
  options:
    - text: A path along which the gradient gets past every layer, and a stream that nothing erases.
      right: true
      remark: In (1 + s)¹⁶ the 1 is that path (07, section 3). Without residuals, four blocks made all words one vector
        (07, section 6).
    - text: Numbers that stay small however deep the stack is.
      remark: "On the contrary: a sum of many changes gets large, which is what layer norm is for (07, section 4)."
    - text: A second chance for the words that attention has left out.
      remark: Attention leaves no word out; every word has a row of its own (04, section 2).
- name: review-three
  taught: "04"
  question: Why three matrices, for query, key and value?
  options:
    - text: With a single one the weights wouldn't sum to one.
      remark: Softmax sees to that, whatever the scores come from (04, section 2).
    - text: To have three times as many parameters for the same width.
      remark: That's what it costs. What is it good for?
    - text: What a word looks for, how it's found and what it hands over can be three different things.
      right: true
      remark: "'dull' looks for a negation, and isn't one (04, section 3)."
- name: review-mask
  taught: "04"
  question: A padded word's vector is all zeros, so its score is 0. Why does it need a mask?
  options:
    - text: Zeros would make the gradient vanish.
      remark: The gradient is in order. Look at what softmax makes of a 0.
    - text: A score of 0 becomes e⁰ = 1 before the division, as much as a word has that nobody cares about.
      right: true
      remark: That is why its score has to be minus infinity (04, section 5).
    - text: The value of a padded word would be added to the context.
      remark: That value is zero. It's the weight that the others lose (04, section 5).
- name: review-norm
  taught: "07"
  question: Layer norm uses the features of one word. What goes wrong if you normalize over the words of the text instead?
  options:
    - text: A word's numbers then depend on its neighbours, and on padding.
      right: true
      remark: The same review comes out differently in another batch, and nothing raises an error (07, section 4).
    - text: The norm has as many parameters as the text has words.
      remark: Scale and shift have one number a feature in both.
    - text: Nothing, because the mean is subtracted in either case.
      remark: Another mean. Try a text alone and padded (07, section 4).
- name: review-order
  taught: "06"
  question: Attention, feed-forward layers, norms, a mean at the end; no positions, no causal mask. You shuffle the words.
    What changes?
  options:
    - text: The weights, because every query now meets its keys in another order.
      remark: The same pairs meet, so the same weights come out, in another order (06, section 1).
    - text: Nothing that the mean could see.
      right: true
      remark: The vectors are the same, in another order, and a mean forgets the order (06, section 1).
    - text: The label, if the shuffled words mean something else.
      remark: That's what one would wish. The model has no way to notice (06, section 1).
- name: review-unknown
  taught: "02"
  question: Why is the vocabulary built from the training split alone?
  options:
    - text: The other splits are too small to count words in.
      remark: Their size isn't the reason.
    - text: Words that were never trained have no use in the table.
      remark: Nearly. They'd only be rows of random numbers. But what would the score say?
    - text: A text that arrives later has unknown words, and the test should be like that.
      right: true
      remark: With words from the test split the score would promise too much (02, section 3).
- name: review-choose
  taught: "08"
  question: You train with three learning rates, and report the best of the three test accuracies. What's wrong?
  options:
    - text: The best of several scores on the same texts is too high on average.
      right: true
      remark: Choose on validation, and look at the test split once (08, section 3).
    - text: Three settings are too few to find the best.
      remark: Perhaps. But with thirty, the number that you report would be worse still.
    - text: Nothing, as long as all three were trained on the same reviews.
      remark: They were compared fairly. What you report was chosen by what should grade it (08, section 3).
"""
