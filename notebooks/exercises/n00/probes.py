"""What the exercises of notebook 00 try an answer on, and what they look at. `ask` has what they say of it."""

import torch
from torch.overrides import TorchFunctionMode

WRITTEN_OUT = {"softmax", "log_softmax", "softmin", "logsumexp", "_softmax", "_log_softmax"}    # what 0.2 asks for

# ---------------------------------------------------------------- 0.1 repair: a mean for each review

def mean_probes(generator: torch.Generator) -> list[tuple]:
    """Opinions with padding: ragged, numbers in the padding, opinions of 0; square; padding in front; sizes of one."""
    ragged = torch.arange(5) < torch.tensor([[5], [3], [1]])                # (review, position)
    square = torch.arange(4) < torch.tensor([[2], [4], [3], [1]])
    first = torch.arange(6) >= torch.tensor([[2], [5]])

    def drawn(is_token: torch.Tensor, size: float = 1.0) -> tuple:
        opinions = size * torch.randn(is_token.shape, generator=generator)
        opinions[0, is_token[0].nonzero()[0]] = 0.0                         # a token without an opinion is still a token
        return opinions, is_token

    return [drawn(ragged), drawn(square), drawn(first, 100.0), drawn(torch.ones(1, 3, dtype=torch.bool)),
            (torch.randn(4, 1, generator=generator), torch.ones(4, 1, dtype=torch.bool)),
            (torch.tensor([[0.7]]), torch.tensor([[True]]))]

# ---------------------------------------------------------------- 0.2 a softmax that doesn't overflow

def softmax_probes(generator: torch.Generator) -> list[tuple]:
    """Small scores; rows at very different levels, in a table, a square, a stack; one row; excluded classes; one score."""
    levels = torch.tensor([0.0, 300.0, -400.0, 1000.0])
    wide = torch.randn(2, 5, generator=generator)
    wide[:, 0], wide[:, 1] = -150.0, 150.0                                  # within one row
    excluded = torch.randn(2, 4, generator=generator)
    excluded[0, 1] = excluded[1, 0] = -torch.inf
    return [(torch.randn(4, 3, generator=generator),), (levels[:, None] + torch.randn(4, 3, generator=generator),),
            (levels.flip(0)[:, None] + torch.randn(4, 4, generator=generator),),
            (levels[:2, None, None] + torch.randn(2, 3, 4, generator=generator),), (torch.randn(5, generator=generator),),
            (wide,), (excluded,), (torch.tensor([[7.0]]),)]


class _Notes(TorchFunctionMode):
    """Notes the names of all PyTorch functions that are called."""

    def __init__(self):
        super().__init__()
        self.called = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.called.add(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def observe_softmax(function, scores):
    """The probabilities. Raises TypeError if the function calls one that does the exercise."""
    with _Notes() as notes:
        output = function(scores)
    if notes.called & WRITTEN_OUT:
        name = sorted(notes.called & WRITTEN_OUT)[0].lstrip("_")
        raise TypeError(f"expected the steps written out, and your function calls {name}, which does the exercise for you. "
                        "Write it with max, exp and sum")
    return output

# ---------------------------------------------------------------- 0.3 cross-entropy

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Five tokens; a square table; one token; two classes; confidently wrong by 200 and by 1,000; scores far from zero."""
    def drawn(tokens: int, classes: int, size: float = 2.0, level: float = 0.0) -> tuple:
        true_class = torch.randint(classes, (tokens,), generator=generator)
        true_class[0] = (torch.arange(classes)[-1] + true_class[-1]) % classes          # not the same one for all
        return level + size * torch.randn(tokens, classes, generator=generator), true_class

    hopeless = torch.tensor([[0.0, 0.0, 200.0], [1.0, 2.0, 0.5]]), torch.tensor([0, 1])
    worse = torch.tensor([[-500.0, 500.0], [0.0, 0.3], [0.2, 0.1]]), torch.tensor([0, 1, 0])
    return [drawn(5, 3), drawn(4, 4), drawn(1, 4), drawn(6, 2, level=300.0), hopeless, worse]

# ---------------------------------------------------------------- 0.4 one step

def step_probes(generator: torch.Generator) -> list[tuple]:
    """Five tokens with three features and four classes; a square; W = 0, as in section 8; one token; a large step."""
    def drawn(tokens: int, features: int, classes: int, rate: float, size: float = 1.0) -> tuple:
        return (size * torch.randn(features, classes, generator=generator),
                torch.randn(tokens, features, generator=generator),
                torch.randint(classes, (tokens,), generator=generator), rate)

    return [drawn(5, 3, 4, 0.5), drawn(3, 3, 3, 2.0), drawn(4, 2, 3, 1.5, size=0.0), drawn(1, 4, 2, 0.1),
            drawn(6, 2, 5, 30.0)]
