"""What stays when something is changed: the pooling weights, the model's parameters, or the words."""

import copy
import math
import random
import tomllib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.classifier import SelfAttentionClassifier
from course_utils.data import find_folder
from course_utils.explain.attribution import pooling_scores, token_logits
from course_utils.tokenization import WordTokenizer

__all__ = ["permutation_effect", "Adversarial", "adversarial_weights", "parts_from_output", "randomised", "unknown_words",
           "shuffled_words", "swapped_words", "name_swaps"]


@torch.no_grad()
def permutation_effect(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, shuffles: int = 100, seed: int = 0,
    scale: str = "probability",
) -> Tensor:
    """How far the prediction moves when the pooling weights are shuffled: the median over shuffles, (batch,).

    Half the sum of |p - q| over the classes (total variation), between 0 and 1; with scale="log-odds" how far the
    log-odds of two classes move, which has no upper limit and doesn't flatten where the model is sure. The vectors stay,
    only the weights of the real tokens are shuffled. Jain and Wallace 2019, section 4.2.1.
    Raises ValueError for another scale, or log-odds of more classes than two.

    Taught in 11_attention_as_explanation, '6. Other weights, the same answer?'.
    """
    if scale not in ("probability", "log-odds"):
        raise ValueError(f"scale={scale!r}; use 'probability' or 'log-odds'")
    if scale == "log-odds" and model.config.num_classes != 2:
        raise ValueError(f"log-odds are for two classes and the model has {model.config.num_classes}; use 'probability'")
    weights = pooling_scores(model, token_ids, attention_mask)             # (batch, seq_len)
    logits = token_logits(model, token_ids, attention_mask)                # (batch, seq_len, classes)

    def answer(weights):
        mixed = (weights[:, None] @ logits).squeeze(1)
        return mixed.diff(dim=-1) * 2 if scale == "log-odds" else mixed.softmax(dim=-1)

    before = answer(weights)
    generator = torch.Generator().manual_seed(seed)
    positions = (~attention_mask).to(torch.uint8).argsort(dim=-1, stable=True)  # real tokens come first
    moved = []
    for _ in range(shuffles):
        keys = torch.rand(weights.shape, generator=generator).to(weights.device) + 2 * ~attention_mask
        shuffled = torch.zeros_like(weights).scatter(-1, positions, weights.gather(-1, keys.argsort(dim=-1)))
        moved.append((answer(shuffled) - before).abs().sum(dim=-1) / 2)
    return torch.stack(moved).quantile(0.5, dim=0)


class Adversarial(NamedTuple):
    """Other pooling `weights` (batch, seq_len), their Jensen-Shannon `divergence` from the model's own (batch,), at most
    ln 2 = 0.693 nats, and how far they `moved` the prediction: total variation (batch,).
    """

    weights: Tensor
    divergence: Tensor
    moved: Tensor


@torch.no_grad()
def adversarial_weights(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, tolerance: float = 0.05
) -> Adversarial:
    """The pooling weights farthest from the model's own that keep the prediction within `tolerance`.

    Exact for two classes: the log-odds are linear in the weights, and the divergence is convex (it curves upwards),
    so the farthest weights lie in a corner, on one token or on two. Jain and Wallace 2019, section 4.2.2, search by
    gradient.
    Raises ValueError for a model with another number of classes.
    """
    if model.config.num_classes != 2:
        raise ValueError(f"the model has {model.config.num_classes} classes; the farthest weights are exact for two only")
    weights = pooling_scores(model, token_ids, attention_mask).double()
    logits = token_logits(model, token_ids, attention_mask).double()
    own_odds = logits[..., 1] - logits[..., 0]                             # (batch, seq_len): of each token alone
    found, divergence = torch.zeros_like(weights), torch.zeros(len(weights), dtype=torch.float64, device=weights.device)
    for row, real in enumerate(attention_mask):
        if real.any():
            best, divergence[row] = _farthest(weights[row, real], own_odds[row, real], tolerance)
            found[row, real] = best
    p, q = ((w * own_odds).sum(dim=-1).sigmoid() for w in (weights, found))
    return Adversarial(found.float(), divergence.float(), (p - q).abs().float())


def _farthest(weights, own_odds, tolerance):
    """For one text, with weights w and own_odds o, (tokens,): the allowed weights u farthest from w; their divergence.

    It maximises JS(w, u) = 1/2 sum_t [w_t log(w_t / m_t) + u_t log(u_t / m_t)], where m = (w + u) / 2, over all u >= 0
    with sum_t u_t = 1 and low <= sum_t u_t o_t <= high. The bounds are logit(p -+ tolerance), a hair inside, for
    p = sigmoid(sum_t w_t o_t). JS is convex in u (it curves upwards), so a corner is a maximum; there are two sorts:

        all weight on one token i with low <= o_i <= high;
        u_i = (end - o_j) / (o_i - o_j) and u_j = 1 - u_i, both between 0 and 1, where end is low or high.

    Every other token k has u_k = 0 and adds w_k log 2 to the sum.
    """
    p, n = (weights @ own_odds).sigmoid(), len(weights)
    low, high = (torch.logit((p + side * 0.999 * tolerance).clamp(0, 1)) for side in (-1, 1))
    first, second = torch.triu_indices(n, n, offset=1, device=weights.device)
    gap = own_odds[first] - own_odds[second]
    alone = ((own_odds >= low) & (own_odds <= high)).nonzero().squeeze(-1)
    pairs, shares = [torch.stack([alone, alone])], [torch.ones(len(alone), dtype=weights.dtype, device=weights.device)]
    for end in (low, high):                                                # corners on an edge of the allowed range
        share = (end - own_odds[second]) / gap
        fits = (share >= 0) & (share <= 1)                                 # false for NaN: two tokens of equal odds
        pairs.append(torch.stack([first[fits], second[fits]]))
        shares.append(share[fits])
    (i, j), share = torch.cat(pairs, dim=1), torch.cat(shares)
    if len(share) == 0:                                                    # one token, or all alike up to round-off
        return weights, torch.zeros((), dtype=weights.dtype)
    rest = 1 - weights[i] - torch.where(i == j, 0.0, weights[j])           # what the tokens k had
    other = torch.where(i == j, 0.0, 1 - share)
    total = math.log(2) * rest.clamp(min=0)
    for new, old in ((share, weights[i]), (other, torch.where(i == j, 0.0, weights[j]))):
        middle = (new + old) / 2
        total = total + torch.xlogy(new, new / middle.clamp(min=1e-300)) + torch.xlogy(old, old / middle.clamp(min=1e-300))
    best = total.argmax()
    result = torch.zeros_like(weights)
    result[i[best]] += share[best]
    result[j[best]] += other[best]
    return result, total[best] / 2


def parts_from_output(model: SelfAttentionClassifier) -> list[str]:
    """The parts of a model that hold parameters, by their names, from the output down to the embedding.

    Taught in 11_attention_as_explanation, '7. Break the model instead'.
    """
    blocks = [f"encoder.blocks.{i}" for i in reversed(range(model.config.num_layers))]
    names = ["output", "pooling", "encoder.norm", *blocks, "positions", "embedding"]
    return [name for name in names if getattr(model, name.split(".")[0]) is not None
            and any(True for _ in model.get_submodule(name).parameters())]


def randomised(model: SelfAttentionClassifier, depth: int, seed: int = 0) -> SelfAttentionClassifier:
    """A copy whose uppermost `depth` parts (`parts_from_output`) are as before training, with new random numbers.

    The cascading randomisation of Adebayo et al. 2018, section 3. Raises ValueError for a depth that the model doesn't have.

    Taught in 11_attention_as_explanation, '7. Break the model instead'.
    """
    names = parts_from_output(model)
    if not 0 <= depth <= len(names):
        raise ValueError(f"depth={depth}; this model has {len(names)} parts: {', '.join(names)}")
    result = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = SelfAttentionClassifier(model.config)
    for name in names[:depth]:
        result.get_submodule(name).load_state_dict(fresh.get_submodule(name).state_dict())
    return result.eval()


def unknown_words(
    list_of_ids: Sequence[Sequence[int]], share: float, spare: Sequence[Sequence[bool]] | None = None,
    unk_id: int = 1,
) -> list[list[int]]:
    """Each token becomes `<unk>` with probability `share`, always by the same draws; those flagged in `spare` stay."""
    draw = random.Random(0)
    spare = spare or [[False] * len(ids) for ids in list_of_ids]
    return [[unk_id if draw.random() < share and not kept else i for i, kept in zip(ids, keep)]
            for ids, keep in zip(list_of_ids, spare)]


def shuffled_words(list_of_ids: Iterable[Sequence[int]], k: int) -> list[list[int]]:
    """The tokens of `k` randomly drawn positions (all, if there are fewer) in random order; the others stay."""
    draw, result = random.Random(0), []
    for ids in list_of_ids:
        positions = draw.sample(range(len(ids)), min(k, len(ids)))
        words = [ids[position] for position in positions]
        draw.shuffle(words)
        moved = dict(zip(positions, words))
        result.append([moved.get(position, i) for position, i in enumerate(ids)])
    return result


def swapped_words(
    list_of_ids: Iterable[Sequence[int]], tokenizer: WordTokenizer, swap: dict[str, str]
) -> list[list[int]]:
    """Each token that is a key of `swap` becomes its value, where the vocabulary has both."""
    ids = tokenizer.ids
    other = {ids[old]: ids[new] for old, new in swap.items() if old in ids and new in ids}
    return [[other.get(i, i) for i in row] for row in list_of_ids]


def name_swaps() -> dict[str, str]:
    """For the course's reviews: each man's first name to a woman's and back, he to she, his and him to her, her to his."""
    slots = tomllib.loads((find_folder("reviews") / "bank" / "slots.toml").read_text(encoding="utf-8"))
    men, women = ([name.lower() for name in slots["names"][who]] for who in ("he", "she"))
    pronouns = {"he": "she", "she": "he", "his": "her", "him": "her", "her": "his"}
    return dict(zip(men, women)) | dict(zip(women, men)) | pronouns
