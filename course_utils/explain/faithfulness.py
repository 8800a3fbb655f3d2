"""Do the scores point at the right words, and does the model depend on them?"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from course_utils.classifier import SelfAttentionClassifier
from course_utils.tokenization import Token

__all__ = ["Agreement", "evidence_flags", "agreement", "REMOVALS", "remove", "probability_of", "predicted_class", "SHARES",
           "top_tokens", "comprehensiveness", "sufficiency", "Interval", "bootstrap_interval"]


class Agreement(NamedTuple):
    """How high the evidence stands when the tokens of one text are sorted by score; each between 0 and 1.

    `average_precision`; `auroc`: how often an evidence token is above another one; `precision_at_k`: the share of
    evidence among the first k tokens, where k is the number of evidence tokens.
    """

    average_precision: float
    auroc: float
    precision_at_k: float


def evidence_flags(tokens: Sequence[Token], spans: Sequence[Sequence[int]]) -> list[bool]:
    """Which tokens overlap with a span [start, end) of characters: one bool for each token.

    Taught in 11_attention_as_explanation, '1. Take a word away'.
    """
    return [any(start < token.end and token.start < end for start, end in spans) for token in tokens]


def agreement(scores: ArrayLike, evidence: ArrayLike) -> Agreement:
    """Compare the scores of one text (tokens,) with its evidence, a bool for each token; by scikit-learn.

    Raises ValueError where all tokens are evidence or none is: such a text says nothing about scores, leave it out.

    Taught in 11_attention_as_explanation, '2. Two ways to judge an answer'.
    """
    scores, evidence = np.asarray(scores, dtype=float), np.asarray(evidence, dtype=bool)
    if scores.shape != evidence.shape or scores.ndim != 1:
        raise ValueError(f"scores {scores.shape} and evidence {evidence.shape}; expected one number and one bool a token")
    if not np.isfinite(scores).all():
        raise ValueError("a score is NaN or infinite; expected finite numbers")
    k = int(evidence.sum())
    if k in (0, len(evidence)):
        raise ValueError(f"{k} of {len(evidence)} tokens are evidence; expected some that are and some that are not")
    first = np.argsort(-scores, kind="stable")[:k]
    return Agreement(float(average_precision_score(evidence, scores)), float(roc_auc_score(evidence, scores)),
                     float(evidence[first].mean()))


REMOVALS = ("delete", "unk", "hide")


def remove(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, removed: Tensor, how: str = "delete"
) -> tuple[Tensor, Tensor]:
    """The batch without the tokens where `removed` (batch, seq_len) is True: new (token_ids, attention_mask).

    how: 'delete' closes the gap, so that the text is shorter; 'unk' leaves `<unk>` in the token's position; 'hide' keeps
    the position empty: nothing attends to it. Raises ValueError for another word.

    Taught in 11_attention_as_explanation, '1. Take a word away'.
    """
    if how not in REMOVALS:
        raise ValueError(f"how={how!r}; use one of {', '.join(REMOVALS)}")
    kept = attention_mask & ~removed
    if how == "unk":
        return token_ids.masked_fill(attention_mask & removed, model.config.unk_id), attention_mask
    if how == "hide":
        return token_ids, kept
    order = (~kept).to(torch.uint8).argsort(dim=-1, stable=True)           # (batch, seq_len): kept tokens come first
    kept = kept.gather(-1, order)
    return token_ids.gather(-1, order).masked_fill(~kept, model.config.pad_id), kept


@torch.no_grad()
def probability_of(model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor) -> Tensor:
    """The probability of class `target` (batch,) for each text of the batch: (batch,)."""
    return model(token_ids, attention_mask).logits.softmax(dim=-1).gather(-1, target[:, None]).squeeze(-1)


@torch.no_grad()
def predicted_class(model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The class with the largest logit for each text of the batch: (batch,).

    Taught in 11_attention_as_explanation, '1. Take a word away'.
    """
    if not isinstance(model, SelfAttentionClassifier):
        raise TypeError(f"got a {type(model).__name__}; expected the model in it: pass classifier.model, or use score_texts")
    if model.training:
        raise ValueError("the model is in training mode, where dropout changes every answer; call model.eval() first")
    return model(token_ids, attention_mask).logits.argmax(dim=-1)


SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


def top_tokens(scores: Tensor, attention_mask: Tensor, share: float) -> Tensor:
    """The `share` of real tokens with the largest scores, rounded up: a mask (batch, seq_len). Ties: the earlier token.

    Taught in 11_attention_as_explanation, '2. Two ways to judge an answer'.
    """
    count = torch.ceil(share * attention_mask.sum(dim=-1).double() - 1e-9)  # 0.1 * 70 is 7.000000000000001
    order = scores.masked_fill(~attention_mask, float("-inf")).argsort(dim=-1, descending=True, stable=True)
    return (order.argsort(dim=-1) < count[:, None]) & attention_mask


def comprehensiveness(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, scores: Tensor,
    target: Tensor | None = None, shares: Sequence[float] = SHARES, how: str = "delete",
) -> Tensor:
    """p(target | text) - p(target | text without its top tokens), the mean over `shares`: (batch,), high is good.

    scores (batch, seq_len); target (batch,), by default the predicted class; `how` as in `remove`.
    DeYoung et al. 2020, section 4.2. Raises ValueError for scores of another shape or NaN.

    Taught in 11_attention_as_explanation, '2. Two ways to judge an answer'.
    """
    return _erased(model, token_ids, attention_mask, scores, target, shares, how, keep_top=False)


def sufficiency(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, scores: Tensor,
    target: Tensor | None = None, shares: Sequence[float] = SHARES, how: str = "delete",
) -> Tensor:
    """p(target | text) - p(target | its top tokens alone), the mean over `shares`: (batch,), low is good.

    Arguments as for `comprehensiveness`; DeYoung et al. 2020, section 4.2.
    """
    return _erased(model, token_ids, attention_mask, scores, target, shares, how, keep_top=True)


def _erased(model, token_ids, attention_mask, scores, target, shares, how, keep_top):
    if scores.shape != token_ids.shape:
        raise ValueError(f"scores {tuple(scores.shape)} for tokens {tuple(token_ids.shape)}; expected one for each")
    if not torch.isfinite(scores[attention_mask]).all():
        raise ValueError("a score is NaN or infinite; expected finite numbers")
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    whole, lost = probability_of(model, token_ids, attention_mask, target), []
    for share in shares:
        top = top_tokens(scores, attention_mask, share)
        rest = remove(model, token_ids, attention_mask, ~top if keep_top else top, how)
        lost.append(whole - probability_of(model, *rest, target))
    return torch.stack(lost).mean(dim=0)


class Interval(NamedTuple):
    """A `mean`, and the bounds `low` and `high` of its 95 % interval."""

    mean: float
    low: float
    high: float


def bootstrap_interval(values: ArrayLike, draws: int = 2000, seed: int = 0) -> Interval:
    """The mean of one number a review (reviews,), with the interval that redrawing the reviews gives (Efron 1979)."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"values have the shape {values.shape}; expected one number for each review")
    drawn = np.random.default_rng(seed).integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))
