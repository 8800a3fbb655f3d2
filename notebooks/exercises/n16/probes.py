"""What the exercises of notebook 16 try an answer on, and what they look at. `ask` has what they say."""

import torch

from course_exercises.common import loss_and_gradient, same_twice, two_results, what

# ---------------------------------------------------------------- 16.2 additive attention


def attention_probes(generator: torch.Generator) -> list[tuple]:
    """(query, keys, states, mask, v): ragged sentences with wider states than keys; all of one length; a single sentence;
    scores all near 2000, and all near -2000; padding in front and in between."""
    def draw(batch, source, d, d_states, lengths):
        mask = torch.arange(source) < torch.tensor(lengths)[:, None]
        return (torch.randn(batch, d, generator=generator), torch.randn(batch, source, d, generator=generator),
                torch.randn(batch, source, d_states, generator=generator), mask, 1.5 * torch.randn(d, generator=generator))

    probes = [draw(3, 5, 4, 6, [5, 2, 3]), draw(2, 4, 3, 3, [4, 1]), draw(1, 3, 5, 2, [3])]
    query, keys, states, mask, v = draw(3, 4, 3, 2, [2, 4, 3])
    keys = 30.0 * torch.where(keys > 0, 1.0, -1.0)      # tanh of those is exactly 1 or -1, so scores differ by 4, 2 or 0
    keys[..., 0] = torch.tensor([[-30.0], [30.0], [-30.0]])
    elsewhere = torch.tensor([[False, False, True, True], [True, False, False, True], [False, True, True, True]])
    return [*probes, (query.clamp(-3, 3), keys, states, mask, torch.tensor([2000.0, 2.0, 1.0])),
            (*draw(3, 4, 3, 2, [4, 4, 4])[:3], elsewhere, torch.tensor([1.0, -1.5, 2.0]))]


def observe_attention(function, query, keys, states, mask, v):
    """Context and weights as two tensors."""
    output = function(query, keys, states, mask, v)
    if output is None:
        return None
    context, weights = two_results(output, "context", "weights")
    return {"context": context, "weights": weights}

# ---------------------------------------------------------------- 16.3 the loss


class ReadingModel(torch.nn.Module):
    """A translator that can be called: logits from a table by the word read, and from the mean of the source's real words.

    With no mask it reads every position of the source. `sure_of` is a word that it gives nearly all of the probability. All
    logits are `apart` higher after a word of even id, and as much lower after another.
    """

    def __init__(self, vocab_size: int, generator: torch.Generator, sure_of: int | None = None, apart: float = 0.0):
        super().__init__()
        self.by_read, self.by_source = (size * torch.randn(vocab_size, vocab_size, generator=generator) for size in (3, 2))
        if sure_of is not None:
            self.by_read[:, sure_of] += 1000.0
        self.by_read += apart * (1 - 2 * (torch.arange(vocab_size) % 2))[:, None]

    def forward(self, source_ids, source_mask, read):
        source_ids, read = torch.as_tensor(source_ids), torch.as_tensor(read)
        real = torch.ones(source_ids.shape) if source_mask is None else torch.as_tensor(source_mask)
        for name, ids in (("source_ids", source_ids), ("words to read", read)):
            if ids.dtype == torch.bool or ids.is_floating_point() or ids.dim() != 2:
                raise TypeError(f"model was given {name} of shape {tuple(ids.shape)} and type {str(ids.dtype)[6:]}; it "
                                "takes source_ids, source_mask and the words to read, and ids are whole numbers, a row for "
                                "each sentence")
        if real.shape != source_ids.shape:
            raise TypeError(f"model was given source_ids of shape {tuple(source_ids.shape)} and a source_mask of shape "
                            f"{tuple(real.shape)}; both are (batch, source)")
        if len(read) != len(source_ids):
            raise TypeError(f"model was given {len(source_ids)} sources and {len(read)} targets; each source has one")
        real = real.to(self.by_source.dtype)[..., None]
        source = (self.by_source[source_ids] * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)
        return self.by_read[read] + source                                 # (batch, read, vocab)


def loss_probes(generator: torch.Generator) -> list[tuple]:
    """(model, source_ids, source_mask, target_ids): sources and targets of different lengths; of one length; a target
    without a word; a model that is sure of a word, which is seldom the right one; one whose
    logits are far higher after some words than after others; targets with an unknown word, 1."""
    def draw(lengths, source_lengths, vocab_size=9, **of_the_model):
        target = torch.zeros(len(lengths), max(lengths) + 2, dtype=torch.long)
        for row, length in zip(target, lengths):
            row[: length + 2] = torch.cat([torch.tensor([2]), torch.randint(4, vocab_size, (length,), generator=generator),
                                           torch.tensor([3])])
        mask = torch.arange(max(source_lengths)) < torch.tensor(source_lengths)[:, None]
        source = torch.randint(4, vocab_size, mask.shape, generator=generator) * mask
        return ReadingModel(vocab_size, generator, **of_the_model), source, mask, target

    probes = [draw([5, 2, 3], [2, 4, 1]), draw([3, 3], [5, 5]), draw([4, 0], [3, 2]), draw([2, 3], [2, 1], sure_of=5),
              draw([4, 3], [2, 3], apart=200.0)]
    unknown = draw([4, 2], [3, 1])
    unknown[3][0, 2] = unknown[3][1, 1] = 1
    return [*probes, unknown]


def observe_loss(function, model, source_ids, source_mask, target_ids):
    """The loss, and the gradient that it sends to the model's table; zeros if none, and if the loss isn't finite.

    An answer that reads `.logits`, which the notebook's own models have, is told that it's not needed here.
    """
    model.by_read = model.by_read.clone().requires_grad_()
    try:
        output = function(model, source_ids, source_mask, target_ids)
    except AttributeError as error:
        if "'logits'" not in str(error):
            raise
        raise TypeError("expected no `.logits`: this model returns the logits themselves, a tensor (batch, words, "
                        "vocab). The notebook's models return a result with that part") from None
    if not model.training:
        raise TypeError("expected the model in training mode, as it came; your function puts it into evaluation mode and "
                        "leaves it there, so training would go on without dropout. A loss needs no eval()")
    return None if output is None else loss_and_gradient(output, model.by_read, "model")

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
    """(step, state, max_len): a translation that ends by itself, one that's cut, an empty one, one with id 0 in it,
    one with all other ids that may look special, and with a word that comes twice in a row."""
    def steps(pattern, vocab_size=12):
        """From BEGIN along a path: random words for letters, digits as they are, END. Off it, others at random, no END."""
        words = dict(zip("abcd012", [*(torch.randperm(vocab_size - 4, generator=generator) + 4)[:4].tolist(), 0, 1, 2]))
        path = [*(words[letter] for letter in pattern), 3]
        table = torch.randint(4, vocab_size, (len(path) + 6, vocab_size), generator=generator)
        for k, (last, best) in enumerate(zip([2, *path], path)):
            table[k, last] = best
        return Steps(table)

    return [(steps("abac"), 0, 8), (steps("abbcd"), 0, 3), (steps(""), 0, 4), (steps("a"), 0, 2), (steps("ab0ca"), 0, 9),
            (steps("a1bbc2cd"), 0, 12)]


def observe_writing(function, step, state, max_len):
    """The ids as a tensor, filled up with -1 to one length. An error if a second call gives others."""
    return same_twice(lambda: _written(function, step, state, max_len), "Greedy takes the word with the highest logit each "
                      "time, and doesn't sample")


def _written(function, step, state, max_len):
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


BEST = (0, 2, 1, 2, 2, 2, 4, 5, 6, 6, 7, 8, 8)          # of each word that's written: the source word with most weight,
LEAST = (5, 8, 7, 7, 6, 3, 5, 2, 5, 3, 1, 1, 1)         # and with least
LINKS = ((0, 0), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3), (2, 4), (2, 5), (4, 6), (5, 7), (3, 8), (6, 8), (6, 9), (7, 10),
         (1, 11))


def _chosen() -> tuple:
    """A sentence on which each known mistake has another error rate than each other one."""
    place, source = torch.meshgrid(torch.arange(13), torch.arange(9), indexing="ij")
    weights = 0.1 + 0.01 * ((3 * place + 5 * source) % 7)
    weights[torch.arange(13), torch.tensor(BEST)] = 0.9 + 0.01 * torch.arange(13)
    weights[torch.arange(13), torch.tensor(LEAST)] = 0.0
    return weights / weights.sum(dim=-1, keepdim=True), torch.tensor(LINKS)


def _alike() -> tuple:
    """Links that are taken for gold ones: (11, 1) reads 111, as (1, 11) does; (0, 13) and (1, 1) have the same 12 · source +
    target, (3, 10) and (4, 0) the same 10 · source + target, (10, 8) and (0, 9) the same source + 10 · target."""
    looked = torch.tensor([5, 11, 6, 7, 8, 3, 9, 4, 10, 2, 3, 9, 6, 0, 4])
    weights = 0.1 + 5.0 * torch.nn.functional.one_hot(looked, 12)          # the last row is the end's
    links = torch.tensor([[5, 0], [4, 0], [1, 1], [2, 2], [0, 2], [7, 3], [9, 6], [2, 9], [0, 9], [1, 11], [11, 10]])
    return weights / weights.sum(dim=-1, keepdim=True), links


def aer_probes(generator: torch.Generator) -> list[tuple]:
    """(weights (target + 1, source), gold (links, 2)): more source words than targets, and fewer; some links found; and
    `_chosen`; and one with twelve source words and fourteen targets, whose links
    can be taken for others when their numbers are glued together or added up."""
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
    fewer = torch.tensor([[1, 0], [0, 1], [0, 2], [1, 3], [2, 4], [2, 5]])
    return [(first, gold), (third, long), (second, fewer), _chosen(), _alike()]
