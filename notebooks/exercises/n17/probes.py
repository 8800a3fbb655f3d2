"""What the exercises of notebook 17 try an answer on, and what they look at. `ask` and `writing` have what they say."""

import torch

from course_exercises.common import loss_and_gradient, one_tensor, put_back, same_twice, two_results, what

STOPPED = "it stopped with an error"
SIZES = ("must match", "broadcast", "shape", "expand", "size")

# ---------------------------------------------------------------- 17.1 cross-attention


def cross_probes(generator: torch.Generator) -> list[tuple]:
    """(x, memory, W_q, W_k, W_v, source_mask): equally long sides, so that exchanged ones don't stop with an error; more
    source words; one source word; one target word, no padding; scores near 1800 and near -1800, in each sentence;
    padding in front and in between."""
    def draw(batch, target, source, d, d_head, lengths):
        x, memory = (1.5 * torch.randn(batch, n, d, generator=generator) for n in (target, source))
        matrices = [0.7 * torch.randn(d, d_head, generator=generator) for _ in range(3)]
        return x, memory, *matrices, torch.arange(source) < torch.tensor(lengths)[:, None]

    probes = [draw(3, 4, 4, 5, 6, [4, 2, 3]), draw(2, 3, 5, 4, 2, [5, 3]), draw(2, 4, 1, 3, 3, [1, 1]),
              draw(1, 1, 6, 4, 7, [6])]
    x, memory, _, _, W_v, _ = ((8 * part).round() / 8 for part in draw(2, 4, 4, 4, 4, [3, 2]))
    x[..., 0] = 60.0 * torch.tensor([[1, -1, 1, -1], [-1, 1, -1, 1]])      # eighths: no sum or product is rounded
    memory[..., 0] = 60.0
    elsewhere = torch.tensor([[False, False, True, True], [True, False, False, True]])
    return [*probes, (x, memory, torch.eye(4), torch.eye(4), W_v, torch.arange(4) < torch.tensor([[3], [2]])),
            (*draw(2, 3, 4, 5, 3, [4, 4])[:5], elsewhere)]


def observe_cross(function, x, memory, W_q, W_k, W_v, source_mask):
    """Context and weights; as texts, where exchanged sides of different lengths stop with an error."""
    try:
        output = function(x, memory, W_q, W_k, W_v, source_mask)
    except RuntimeError as error:
        if x.shape[1] == memory.shape[1] or not any(word in str(error) for word in SIZES):
            raise
        return dict.fromkeys(("context", "weights"), STOPPED)
    if output is None:
        return None
    return dict(zip(("context", "weights"), two_results(output, "context", "weights")))

# ---------------------------------------------------------------- 17.2 read, asked, mask


def shift_probes(generator: torch.Generator) -> list[tuple]:
    """(target_ids,): <bos> 2, words, <eos> 3, then 0."""
    def draw(lengths):
        rows = torch.zeros(len(lengths), max(lengths) + 2, dtype=torch.long)
        for row, length in zip(rows, lengths):
            row[: length + 2] = torch.tensor([2, *torch.randint(4, 30, (length,), generator=generator).tolist(), 3])
        return (rows,)

    return [draw([4, 2, 5]), draw([3]), draw([1, 6])]


def observe_shift(function, target_ids):
    """The three results by name; the mask as numbers."""
    output = function(target_ids)
    if output is None:
        return None
    names = ("read", "asked", "mask")
    if isinstance(output, dict) and set(output) == set(names):
        output = [output[name] for name in names]
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"{len(output)} results" if isinstance(output, (tuple, list)) else what(output)
        raise TypeError(f"expected three results, read, asked and mask, got {got}. End with `return read, asked, mask`")
    read, asked, mask = (one_tensor(part, name) for part, name in zip(output, names))
    if mask.dtype != torch.bool and mask.isfinite().all():
        raise TypeError(f"expected a mask of True and False, True where a row may look; yours holds numbers, of type "
                        f"{str(mask.dtype).removeprefix('torch.')}. Add dtype=torch.bool where you make it, or .bool()")
    return {"read": read, "asked": asked, "mask": mask.float()}

# ---------------------------------------------------------------- 17.3 a smoothed loss


def smoothing_probes(generator: torch.Generator) -> list[tuple]:
    """(logits, targets, smoothing, pad_id): ragged padding; another pad_id; without smoothing, both; much of it, one word;
    a model that is sure of wrong words, with smoothing and without; positions whose logits are 200 above and
    below those of others; targets that are 0 where that isn't pad_id."""
    def draw(batch, length, vocab, lengths, smoothing, pad_id):
        logits = 2 * torch.randn(batch, length, vocab, generator=generator)
        targets = torch.randint(1, vocab - 1, (batch, length), generator=generator)
        real = torch.arange(length) < torch.tensor(lengths)[:, None]
        return logits, targets.masked_fill(~real, pad_id), smoothing, pad_id

    def sure(smoothing):
        logits, targets, *others = draw(2, 3, 5, [3, 1], smoothing, 0)
        logits[..., 4] += 1000.0                                           # of the last word, which is never asked for
        return logits, targets, *others

    probes = [draw(3, 5, 7, [5, 2, 3], 0.2, 0), draw(2, 4, 6, [1, 4], 0.1, 5), draw(2, 3, 9, [3, 2], 0.0, 0),
              draw(2, 4, 6, [1, 4], 0.0, 5), draw(1, 2, 4, [1], 0.6, 0), sure(0.1), sure(0.0)]
    apart = draw(2, 3, 5, [3, 2], 0.1, 0)
    apart[0].add_(200.0 * torch.tensor([[[1], [-1], [0]], [[-1], [0], [1]]]))
    with_zeros = draw(2, 4, 6, [4, 3], 0.1, 5)
    with_zeros[1][:, 1] = 0
    return [*probes, apart, with_zeros]


def observe_smoothed(function, logits, targets, smoothing, pad_id):
    """The loss, and the gradient that it sends to the logits; zeros if none, and if the loss isn't finite."""
    given, logits = logits, logits.detach().clone().requires_grad_()
    output = function(logits, targets, smoothing, pad_id)
    put_back(given, logits)
    return None if output is None else loss_and_gradient(output, logits, "logits")

# ---------------------------------------------------------------- 17.4 which candidate wins


CHOSEN = (                                              # on these, each known mistake differs from each other one
    ((-3.88, -2.48, -1.93, -3.82, -1.86, -1.98), (23, 16, 9, 28, 8, 5), 0.6),
    ((-28.06, -14.47, -15.11, -41.05, -87.27, -17.7), (15, 9, 10, 20, 30, 12), 2.0),
    ((-4.95, -3.76, -2.72, -2.93, -3.8), (27, 22, 4, 2, 11), 0.3),
    ((-0.93, -1.24, -2.43, -11.82, -23.89), (1, 3, 5, 17, 27), 2.0),
    ((-0.61, -0.6, -0.62, -0.63), (5, 7, 1, 10), 0.0),
    ((-2.54, -2.74, -2.15, -2.21, -1.68, -1.59), (22, 25, 15, 17, 10, 7), 0.6),
    ((-1.55, -6.12, -1.36, -3.74, -3.65), (3, 29, 2, 16, 14), 1.0),
    ((-3.16, -2.94, -5.04, -3.7), (10, 14, 27, 22), 0.6),
    ((-2.66, -2.28, -23.79), (2, 1, 27), 1.4),
    ((-1.0, -2.5), (1, 3), 1.0),                        # where 5 / 6 of a word more or less decides
    ((-10.0, -11.5, -18.0), (10, 20, 40), 1.0),         # a milder penalty chooses the second
    ((-3580.0, -3430.0, -3000.0, -3770.0), (310, 330, 260, 340), 0.3),     # e to the power of such scores is 0 in any float
    ((-840.0, -810.0, -905.0), (120, 100, 95), 0.0),
)


def winner_probes(generator: torch.Generator) -> list[tuple]:
    """(log_probabilities, lengths, alpha): longer ones less probable by about the penalty, or as probable; then CHOSEN."""
    probes = []
    for i in range(12):
        count, alpha = 4 + i % 5, (0.6, 1.0, 0.3, 0.8, 1.4, 0.0)[i % 6]
        lengths = torch.randperm(24, generator=generator)[:count] + 2
        drawn = torch.rand(count, generator=generator)
        close = i % 3 == 2                              # as probable, whatever their length
        log_p = -4 - 0.8 * drawn if close else (-0.9 - 0.5 * drawn) * ((5 + lengths) / 6) ** alpha
        probes.append((log_p, lengths, alpha))
    return [*probes, *((torch.tensor(log_p), torch.tensor(lengths), alpha) for log_p, lengths, alpha in CHOSEN)]

# ---------------------------------------------------------------- 17.5 write with a cache


class Writer:
    """A model that writes: what follows depends on every word that it has read and on the position given with it.

    It ends once, after `ends_after` words; whoever goes on gets more words. Its second word has the id 0, if that is one,
    its fourth is the third once more, and its fifth has the id of the beginning.
    """

    def __init__(self, seed: int, vocab: int, begin: int, end: int, ends_after: int):
        self.seed, self.vocab, self.begin, self.end, self.ends_after = seed, vocab, begin, end, ends_after

    def new(self):
        """A `step` that has read nothing yet."""
        read = []

        def step(word, position):
            read.append((int(word), int(position)))
            code = self.seed
            for one, place in read:
                code = (code * 1_000_003 + 97 * one + 7919 * place + 13) % 2_147_483_647
            logits = 2 * torch.randn(self.vocab, generator=torch.Generator().manual_seed(code))
            logits[0] = 8.0 if len(read) == 2 else -5.0
            if len(read) == 4:
                logits[int(word)] = 8.0
            logits[self.begin] = 8.0 if len(read) == 5 else -9.0
            logits[self.end] = 9.0 if len(read) == self.ends_after + 1 else -5.0
            return logits.log_softmax(dim=0)

        return step


def writing_probes(generator: torch.Generator) -> list[tuple]:
    """(writer, begin, end, max_len): ends by itself; is cut off; ends at once; ends at the very limit; other ids;
    larger ones."""
    def draw(begin, end, ends_after, max_len, vocab=30):
        return Writer(int(torch.randint(10**6, (), generator=generator)), vocab, begin, end, ends_after), begin, end, max_len

    return [draw(2, 3, 6, 15), draw(2, 3, 40, 7), draw(2, 3, 0, 5), draw(2, 3, 5, 5), draw(29, 0, 8, 20),
            draw(998, 999, 6, 9, vocab=1000)]


def observe_writing(function, writer, begin, end, max_len):
    """The words, as a text: '5 17 4'. An error if a second call gives others."""
    return same_twice(lambda: _written(function, writer.new(), begin, end, max_len), "Greedy takes the most probable word "
                      "each time, and doesn't sample")


def _written(function, step, begin, end, max_len):
    output = function(step, begin, end, max_len)
    if output is None:
        return None
    if isinstance(output, torch.Tensor):
        output = output.flatten().tolist()
    if not isinstance(output, (list, tuple)):
        raise TypeError(f"expected a list of ids, got {what(output)}")
    return {"words": " ".join(str(int(word)) for word in output) or "nothing"}

# ---------------------------------------------------------------- 17.6 n-gram precision


def precision_probes(generator: torch.Generator) -> list[tuple]:
    """(translations, references, n): words that come too often, sentences of different lengths, some shorter than n;
    translations shorter than their references; shorter than n - 1, beside one that is right; n-grams that look alike once
    their words are glued together; a word and an n-gram that the reference has only as part of others."""
    words = "la une petite voiture rouge maison dans rue".split()

    def draw(lengths, n):
        references = [[words[i] for i in torch.randint(8, (length,), generator=generator).tolist()] for length in lengths]
        translations = [[*reference[: len(reference) // 2], *reference[: len(reference) // 2 + 1], reference[-1]]
                        for reference in references]
        return translations, references, n

    return [([["la"] * 4], ["la petite voiture rouge".split()], 1), draw([6, 11, 4], 1), draw([9, 5, 7], 2),
            draw([12, 3, 8], 3), ([["la", "rue"], ["une"]], [["la", "maison"], ["une", "rue"]], 4),
            ([["la", "rue", "petite", "la"], ["une", "maison"]],
             ["la petite rue dans la petite maison".split(), "une rouge maison".split()], 1),
            (["la rouge voiture".split(), "une rue".split()], ["la voiture rouge".split(), "une rue".split()], 2),
            ([["la"], "la petite maison dans une rue".split(), []],
             ["la rue".split(), "la petite maison dans une petite rue".split(), ["rue"]], 3),
            (["l ami dort".split(), "une rue".split()], ["la mi dort".split(), "une rue".split()], 2),
            (["la salade verte".split(), "une la".split()], ["une salade verte".split(), "une malade".split()], 1),
            (["une salade verte".split()], ["aucune salade verte".split()], 2)]
