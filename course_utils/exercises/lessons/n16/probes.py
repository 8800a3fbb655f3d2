"""What the exercises of notebook 16 try an answer on, and what they look at. `ask` has what they say."""

import torch

from course_utils.exercises.lessons.common import two_results, what

# ---------------------------------------------------------------- 16.2 additive attention


def attention_probes(generator: torch.Generator) -> list[tuple]:
    """(query, keys, states, mask, v): ragged sentences with wider states than keys; all of one length; a single sentence."""
    def draw(batch, source, d, d_states, lengths):
        mask = torch.arange(source) < torch.tensor(lengths)[:, None]
        return (torch.randn(batch, d, generator=generator), torch.randn(batch, source, d, generator=generator),
                torch.randn(batch, source, d_states, generator=generator), mask, 1.5 * torch.randn(d, generator=generator))

    return [draw(3, 5, 4, 6, [5, 2, 3]), draw(2, 4, 3, 3, [4, 1]), draw(1, 3, 5, 2, [3])]


def observe_attention(function, query, keys, states, mask, v):
    """Context and weights as two tensors."""
    output = function(query, keys, states, mask, v)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    return {"context": context, "weights": weights}

# ---------------------------------------------------------------- 16.3 the loss


class ReadingModel:
    """A translator that can be called: logits from a table by the word read and the source's first word, in float64."""

    def __init__(self, vocab_size: int, generator: torch.Generator):
        self.by_read = 3 * torch.randn(vocab_size, vocab_size, generator=generator, dtype=torch.float64)
        self.by_source = torch.randn(vocab_size, vocab_size, generator=generator, dtype=torch.float64)

    def __call__(self, source_ids, source_mask, read):
        return self.by_read[read] + self.by_source[source_ids[:, 0]][:, None]


def loss_probes(generator: torch.Generator) -> list[tuple]:
    """(model, source_ids, source_mask, target_ids): targets of different lengths; of one length; one without a word."""
    def draw(lengths, vocab_size=9):
        width = max(lengths) + 2
        target = torch.zeros(len(lengths), width, dtype=torch.long)
        for row, length in zip(target, lengths):
            row[: length + 2] = torch.cat([torch.tensor([2]), torch.randint(4, vocab_size, (length,), generator=generator),
                                           torch.tensor([3])])
        source = torch.randint(4, vocab_size, (len(lengths), 4), generator=generator)
        return ReadingModel(vocab_size, generator), source, torch.ones_like(source, dtype=torch.bool), target

    return [draw([5, 2, 3]), draw([3, 3]), draw([4, 0])]


def observe_loss(function, model, source_ids, source_mask, target_ids):
    """The loss; an answer that reads `.logits`, which the notebook's own models have, is told that it's not needed here."""
    try:
        return function(model, source_ids, source_mask, target_ids)
    except AttributeError as error:
        if "'logits'" not in str(error):
            raise
        raise TypeError("expected no `.logits`: this model returns the logits themselves, a tensor (batch, words, "
                        "vocab). The notebook's models return a result with that part") from None

# ---------------------------------------------------------------- 16.4 write


class Steps:
    """A decoder for one sentence: the next word depends on the last one and on how many steps were made.

    `state` counts the steps. `table` (steps, vocab) gives the right next word after each word.
    """

    def __init__(self, table: torch.Tensor):
        self.table = table

    def __call__(self, last_id, state):
        if isinstance(last_id, (list, tuple)) or (isinstance(last_id, torch.Tensor) and last_id.numel() != 1):
            raise TypeError(f"step was given {what(last_id)} as its last id; it reads one id, that of the last word")
        last_id = int(last_id)
        vocab_size = self.table.shape[1]
        if not 0 <= last_id < vocab_size:
            raise IndexError(f"step was given the word {last_id}, and ids go from 0 to {vocab_size - 1}")
        best = int(self.table[state % len(self.table), last_id])
        logits = torch.linspace(0, 1, vocab_size)
        logits[best] = 3.0
        return logits, state + 1


def write_probes(generator: torch.Generator) -> list[tuple]:
    """(step, state, max_len): a translation that ends by itself, one that's cut, an empty one."""
    def steps(pattern, vocab_size=12):
        """From BEGIN along a path: random words for letters, then END. Off it, other words at random, never END."""
        words = dict(zip("abcd", (torch.randperm(vocab_size - 4, generator=generator) + 4).tolist()))
        path = [*(words[letter] for letter in pattern), 3]
        table = torch.randint(4, vocab_size, (len(path) + 6, vocab_size), generator=generator)
        for k, (last, best) in enumerate(zip([2, *path], path)):
            table[k, last] = best
        return Steps(table)

    return [(steps("abac"), 0, 8), (steps("abbcd"), 0, 3), (steps(""), 0, 4), (steps("a"), 0, 2)]


def observe_writing(function, step, state, max_len):
    """The ids as a tensor, filled up with -1 to one length, so that answers of different lengths can be compared."""
    calls, longest = [], 10 * max_len + 30

    def counted(last_id, state):
        calls.append(last_id)
        if len(calls) >= longest:
            raise RuntimeError(f"step was called {longest} times for max_len={max_len}: the loop has no "
                               "end. Stop at END, and after max_len words")
        return step(last_id, state)

    output = function(counted, state, max_len)
    if output is None:
        return None
    output = output.tolist() if isinstance(output, torch.Tensor) else output
    if not isinstance(output, (list, tuple)):
        raise TypeError(f"expected a list of ids, got {what(output)}")
    if len(output) > longest:
        raise ValueError(f"expected at most max_len={max_len} ids, got {len(output)}")
    return torch.tensor([*(float(word) for word in output), *[-1.0] * (longest - len(output))])

# ---------------------------------------------------------------- 16.5 alignment error


def aer_probes(generator: torch.Generator) -> list[tuple]:
    """(weights (target + 1, source), gold (links, 2)): more source words than targets, and fewer; some links found."""
    first = torch.tensor([[0.7, 0.1, 0.1, 0.06, 0.04], [0.1, 0.28, 0.35, 0.22, 0.05], [0.05, 0.5, 0.2, 0.2, 0.05],
                          [0.1, 0.1, 0.1, 0.1, 0.6]])
    gold = torch.tensor([[0, 0], [1, 2], [2, 1], [3, 1], [4, 2]])
    second = torch.rand(7, 3, generator=generator).softmax(dim=-1)
    second[0, 1], second[2, 0], second[4, 2] = 3.0, 3.0, 3.0
    second = second / second.sum(dim=-1, keepdim=True)
    third = torch.rand(9, 6, generator=generator)
    third[torch.arange(9), torch.tensor([0, 1, 1, 3, 2, 4, 5, 5, 0])] = 3.0
    third = third / third.sum(dim=-1, keepdim=True)
    long = torch.tensor([[0, 0], [1, 1], [2, 2], [3, 3], [2, 4], [4, 4], [4, 5], [5, 6], [5, 7], [3, 7]])
    return [(first, gold), (third, long), (second, torch.tensor([[1, 0], [0, 1], [0, 2], [1, 3], [2, 4], [2, 5]]))]
