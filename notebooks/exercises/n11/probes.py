"""What the exercises of notebook 11 try an answer on, and what they look at. `ask` has what they say of it."""

import math

import torch

from course_exercises.common import drawn, what

# ---------------------------------------------------------------- 11.1 average precision

def _ranked(generator: torch.Generator, length: int, ranks: list[int]) -> tuple:
    """Scores, all different and some below zero, in random order, with evidence at the given ranks (from 1)."""
    scores = (torch.arange(length, 0, -1) + 0.8 * torch.rand(length, generator=generator)) / length - 0.45
    evidence = torch.zeros(length, dtype=torch.bool)
    evidence[torch.tensor(ranks) - 1] = True
    order = torch.randperm(length, generator=generator)
    return scores[order], evidence[order]


def precision_probes(generator: torch.Generator) -> list[tuple]:
    """First evidence at rank 2 or 3, the next behind it; one at rank 1; all of it in front; one token only, the last."""
    first = 2 + int(torch.randint(2, (1,), generator=generator))
    later = (first + 2 + torch.randperm(10 - first, generator=generator)[:2]).tolist()
    other = [4 + int(torch.randint(2, (1,), generator=generator)), 6 + int(torch.randint(3, (1,), generator=generator))]
    return [_ranked(generator, 11, [first, first + 1, *later]), _ranked(generator, 8, [1, *other]),
            _ranked(generator, 6, [1, 2]), _ranked(generator, 1, [1]), _ranked(generator, 5, [5])]

# ---------------------------------------------------------------- a judge of texts, for 11.2 and 11.3

WORDS = ["dull", "but", "moving", "the", "film", "slow", "funny", "a", "brave", "ending", "of", "loud"]


def _a_score(generator: torch.Generator):
    """A made-up model: a list of tokens -> a probability, by which words stand where and after which 'not'."""
    size = 0.5 + 0.7 * torch.rand(len(WORDS), generator=generator)
    sign = torch.tensor([1.0, -1.0]).repeat(len(WORDS) // 2)[torch.randperm(len(WORDS), generator=generator)]
    weights = dict(zip(WORDS, (size * sign).tolist()), **{"not": 0.3})

    def score(tokens) -> float:
        tokens = list(tokens) if not isinstance(tokens, str) else tokens
        if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
            raise TypeError(f"score takes a list of tokens; got {what(tokens)}")
        total = 0.2
        for place, token in enumerate(tokens):
            turned = -0.7 if place and tokens[place - 1] == "not" else 1.0
            total += turned * weights.get(token, 0.2) * (0.6 + 0.05 * place)      # a word that it doesn't know counts too
        return 1 / (1 + math.exp(-total / 3))

    return score, weights


def _text(generator: torch.Generator, words: list[str], twice: int) -> list[str]:
    """Words in random order, the first of them twice, and 'not' twice."""
    words = ["not", "not", *words, *words[:twice]]
    return drawn(generator, words, len(words))

# ---------------------------------------------------------------- 11.2 leave one out

def leave_probes(generator: torch.Generator) -> list[tuple]:
    """Texts of 9 and 6 tokens, and one of a single token."""
    probes = [(_a_score(generator)[0], _text(generator, drawn(generator, WORDS, different), twice))
              for different, twice in ((5, 2), (3, 1))]
    return [*probes, (_a_score(generator)[0], drawn(generator, WORDS, 1))]

# ---------------------------------------------------------------- 11.3 comprehensiveness

def comprehensiveness_probes(generator: torch.Generator) -> list[tuple]:
    """Texts of 20, 8 and 5 tokens. In the first the important words speak for, in the second against. Then none and all go.

    The importances are rough: weight of the word, turned after 'not', times noise.
    """
    probes = []
    for against, speaking, twice, sign, shares in ((5, 6, 7, 1, [0.2, 0.01, 0.5, 0.1]), (2, 2, 2, -1, [0.3, 0.05, 0.5]),
                                                   (1, 2, 0, 1, [0.2, 0.55])):
        score, weights = _a_score(generator)
        words = drawn(generator, [word for word in WORDS if weights[word] < 0], against)
        words += drawn(generator, [word for word in WORDS if weights[word] > 0], speaking)
        if sign > 0:                                    # else those below zero stand there twice
            words = drawn(generator, words, len(words))
        tokens = _text(generator, words, twice)
        noise = 0.4 + 1.2 * torch.rand(len(tokens), generator=generator)
        turned = [-sign if before == "not" else sign for before in ["", *tokens]]
        importances = [turn * weights[token] * factor for turn, token, factor in zip(turned, tokens, noise.tolist())]
        probes.append((score, tokens, importances, shares))
    score, _ = _a_score(generator)
    return [*probes, (score, ["not", "dull"], [0.2, -0.1], [0.0, 1.0]), (score, ["dull"], [-0.3], [0.4])]

# ---------------------------------------------------------------- 11.5 repair: rollout

def rollout_probes(generator: torch.Generator) -> list[tuple]:
    """(layers 3, heads 2, 5 words) and (2, 4, 6); then one head and two words; then a single layer."""
    return [(torch.randn(*shape, generator=generator).mul(1.5).softmax(dim=-1),)
            for shape in ((3, 2, 5, 5), (2, 4, 6, 6), (2, 1, 2, 2), (1, 2, 3, 3))]
