"""Which words decided? Scores for the tokens of a text, and measures of whether to believe them.

Does: methods that score tokens (pooling weights, rollout, gradients, occlusion), agreement with marked evidence,
faithfulness by taking tokens away, and checks of attention (shuffled, adversarial and re-randomised weights). Gradients
come from captum. Does not: train, draw (see `course_utils.heatmaps`) or know what the right words are.

    scored = score_texts(classifier, ["Nobody could call it dull."], "occlusion")[0]
    print(scored.tokens, scored.scores)                                    # one number for each token

Functions on batches take (model, token_ids, attention_mask) as the model does, and give padding the score 0.

Exported from notebooks/11_attention_as_explanation.ipynb: edit it there.
"""

import copy
import math
import random
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from course_utils.classifier import ReviewClassifier, SelfAttentionClassifier
from course_utils.data import find_folder
from course_utils.tokenization import Token, Tokenizer, WordTokenizer, truncate

with warnings.catch_warnings():                                            # captum's progress bar asks for a package that
    warnings.simplefilter("ignore")                                        # the course does not use
    from captum.attr import LayerGradientXActivation, LayerIntegratedGradients

__all__ = [
    "Agreement",
    "evidence_flags",
    "agreement",
    "REMOVALS",
    "remove",
    "probability_of",
    "predicted_class",
    "occlusion",
    "SHARES",
    "top_tokens",
    "comprehensiveness",
    "sufficiency",
    "pooling_scores",
    "Interval",
    "bootstrap_interval",
    "token_logits",
    "rollout",
    "rollout_scores",
    "log_odds",
    "Attribution",
    "integrated_gradients_with_gap",
    "integrated_gradients",
    "gradient_times_input",
    "attention_times_gradient",
    "METHODS",
    "TokenScores",
    "score_texts",
    "Counted",
    "count_words",
    "permutation_effect",
    "Adversarial",
    "adversarial_weights",
    "parts_from_output",
    "randomised",
    "unknown_words",
    "shuffled_words",
    "swapped_words",
    "name_swaps",
]


class Agreement(NamedTuple):
    """How high the evidence stands when the tokens of one text are sorted by score; each between 0 and 1.

    `average_precision`; `auroc`: how often an evidence token is above another one; `precision_at_k`: the share of
    evidence among the first k tokens, where k is the number of evidence tokens.

    Taught in 11_attention_as_explanation, '1. Does it point at the right words?'.
    """

    average_precision: float
    auroc: float
    precision_at_k: float


def evidence_flags(tokens: Sequence[Token], spans: Sequence[Sequence[int]]) -> list[bool]:
    """Which tokens overlap with a span [start, end) of characters: one bool for each token.

    Taught in 11_attention_as_explanation, '1. Does it point at the right words?'.
    """
    return [any(start < token.end and token.start < end for start, end in spans) for token in tokens]


def agreement(scores: ArrayLike, evidence: ArrayLike) -> Agreement:
    """Compare the scores of one text (tokens,) with its evidence, a bool for each token; by scikit-learn.

    Raises ValueError where all tokens are evidence or none is: such a text says nothing about scores, leave it out.

    Taught in 11_attention_as_explanation, '1. Does it point at the right words?'.
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

    how: 'delete' closes the gap, so that the text is shorter; 'unk' leaves `<unk>` in the token's place; 'hide' keeps
    the place empty: nothing attends to it. Raises ValueError for another word.

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
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
    """The probability of class `target` (batch,) for each text of the batch: (batch,).

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
    """
    return model(token_ids, attention_mask).logits.softmax(dim=-1).gather(-1, target[:, None]).squeeze(-1)


@torch.no_grad()
def predicted_class(model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The class with the largest logit for each text of the batch: (batch,).

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
    """
    if not isinstance(model, SelfAttentionClassifier):
        raise TypeError(f"got a {type(model).__name__}; expected the model in it: pass classifier.model, or use score_texts")
    if model.training:
        raise ValueError("the model is in training mode, where dropout changes every answer; call model.eval() first")
    return model(token_ids, attention_mask).logits.argmax(dim=-1)


@torch.no_grad()
def occlusion(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None,
    how: str = "delete",
) -> Tensor:
    """What the probability of `target` loses when one token is taken away: (batch, seq_len), positive for support.

    One forward pass for each token, many in one batch. target (batch,), by default the predicted class; `how` as in
    `remove`. Leave-one-out: Li, Monroe and Jurafsky 2016.

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
    """
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    whole = probability_of(model, token_ids, attention_mask, target)       # (batch,)
    rows, places = attention_mask.nonzero(as_tuple=True)                   # every real token: its text and its place
    scores = torch.zeros(token_ids.shape, dtype=whole.dtype, device=whole.device)
    size = max(1, 32768 // token_ids.shape[1])                             # bounds the memory
    for row, place in zip(rows.split(size), places.split(size)):
        one = torch.zeros(len(row), token_ids.shape[1], dtype=torch.bool, device=whole.device)
        one[torch.arange(len(row)), place] = True
        without = remove(model, token_ids[row], attention_mask[row], one, how)
        scores[row, place] = whole[row] - probability_of(model, *without, target[row])
    return scores


SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


def top_tokens(scores: Tensor, attention_mask: Tensor, share: float) -> Tensor:
    """The `share` of real tokens with the largest scores, rounded up: a mask (batch, seq_len). Ties: the earlier token.

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
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

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
    """
    return _erased(model, token_ids, attention_mask, scores, target, shares, how, keep_top=False)


def sufficiency(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, scores: Tensor,
    target: Tensor | None = None, shares: Sequence[float] = SHARES, how: str = "delete",
) -> Tensor:
    """p(target | text) - p(target | its top tokens alone), the mean over `shares`: (batch,), low is good.

    Arguments as for `comprehensiveness`; DeYoung et al. 2020, section 4.2.

    Taught in 11_attention_as_explanation, '2. Does the model depend on them?'.
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


@torch.no_grad()
def pooling_scores(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None
) -> Tensor:
    """The weight of each token in the pooling: (batch, seq_len), each text sums to one. Mean pooling: all alike.

    `target` plays no part: weights do not know the class.

    Taught in 11_attention_as_explanation, '3. The pooling weights'.
    """
    predicted_class(model, token_ids, attention_mask)                      # complains about what is not a model
    weights = model(token_ids, attention_mask, need_weights=True).pooling_weights
    if weights is None:
        weights = attention_mask.float() / attention_mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return weights


class Interval(NamedTuple):
    """A `mean`, and the bounds `low` and `high` of its 95 % interval.

    Taught in 11_attention_as_explanation, '3. The pooling weights'.
    """

    mean: float
    low: float
    high: float


def bootstrap_interval(values: ArrayLike, draws: int = 2000, seed: int = 0) -> Interval:
    """The mean of one number a review (reviews,), with the interval that redrawing the reviews gives (Efron 1979).

    Taught in 11_attention_as_explanation, '3. The pooling weights'.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"values have the shape {values.shape}; expected one number for each review")
    drawn = np.random.default_rng(seed).integers(len(values), size=(draws, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), (0.025, 0.975))
    return Interval(float(values.mean()), float(low), float(high))


def token_logits(model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The logits that each token's last vector would give if it were the whole review: (batch, seq_len, classes).

    The pooled vector is a weighted mean and the output layer is linear, so the weighted mean of these logits, with
    the pooling weights, is the logits of the review.

    Taught in 11_attention_as_explanation, '4. The depth dial'.
    """
    return model.output(model.hidden(token_ids, attention_mask))


def rollout(attentions: Sequence[Tensor] | Tensor) -> Tensor:
    """How much of each input token is in each token after all layers, by the weights alone: (…, query, key).

    attentions: one (…, heads, query, key) for each layer, the first layer first; a tensor or a list. Each layer is
    the mean of its heads, mixed half and half with the identity for the residual; the layers are multiplied. Rows sum
    to one. Abnar and Zuidema 2020, section 3. Raises ValueError for no layers: then there is nothing to multiply.

    Taught in 11_attention_as_explanation, '5. Rollout: follow the weights down'.
    """
    if len(attentions) == 0:
        raise ValueError("there are no layers to roll out; with no layer every token is itself: use the pooling weights")
    mixed = None
    for weights in attentions:
        mean = weights.mean(dim=-3)                                        # (…, query, key)
        layer = (mean + torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)) / 2
        layer = layer / layer.sum(dim=-1, keepdim=True)                    # matters where a query had no key
        mixed = layer if mixed is None else layer @ mixed
    return mixed


@torch.no_grad()
def rollout_scores(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None
) -> Tensor:
    """The pooling weights times the rollout: (batch, seq_len), each text sums to one. `target` plays no part.

    Taught in 11_attention_as_explanation, '5. Rollout: follow the weights down'.
    """
    weights = pooling_scores(model, token_ids, attention_mask)             # (batch, seq_len)
    attentions = model(token_ids, attention_mask, need_weights=True).attentions
    if not attentions:                                                     # no layer: nothing was mixed
        return weights
    return (weights[:, None] @ rollout(attentions)).squeeze(1)


def log_odds(logits: Tensor, target: Tensor) -> Tensor:
    """The logit of `target` (batch,) against all other classes: log p / (1 - p), (batch,).

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """
    own = logits.gather(-1, target[:, None]).squeeze(-1)
    return own - logits.scatter(-1, target[:, None], float("-inf")).logsumexp(dim=-1)


class Attribution(NamedTuple):
    """`scores` (batch, seq_len), and the convergence `gap` (batch,): the sum of the scores minus what it should be.

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """

    scores: Tensor
    gap: Tensor


def integrated_gradients_with_gap(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None,
    steps: int = 64, baseline: str = "unk",
) -> Attribution:
    """Gradients of the log-odds of `target`, averaged on the straight way from a baseline to the text: an Attribution.

    The scores of a text sum to its log-odds minus those of the baseline: a text of the same length, all `<unk>`
    (baseline='unk') or all zero vectors ('pad'). Computed by captum's LayerIntegratedGradients on the embedding;
    Sundararajan, Taly and Yan 2017, section 3. Raises ValueError for another baseline.

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """
    if baseline not in ("unk", "pad"):
        raise ValueError(f"baseline={baseline!r}; use 'unk' or 'pad'")
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    method = LayerIntegratedGradients(_log_odds_of(model), model.embedding)
    nothing = model.config.unk_id if baseline == "unk" else model.config.pad_id
    size = max(len(token_ids), 32768 // token_ids.shape[1])                # bounds the memory
    scores, gap = method.attribute(
        token_ids, token_ids.masked_fill(attention_mask, nothing), additional_forward_args=(attention_mask, target),
        n_steps=steps, internal_batch_size=size, return_convergence_delta=True,
    )
    return Attribution((scores.sum(dim=-1) * attention_mask).detach().float(), gap.detach().float())


def integrated_gradients(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None,
    steps: int = 64, baseline: str = "unk",
) -> Tensor:
    """The scores of `integrated_gradients_with_gap`: (batch, seq_len), positive for support.

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """
    return integrated_gradients_with_gap(model, token_ids, attention_mask, target, steps, baseline).scores


def gradient_times_input(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None
) -> Tensor:
    """The gradient of the log-odds of `target` at each word vector, times the vector: (batch, seq_len). By captum.

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    method = LayerGradientXActivation(_log_odds_of(model), model.embedding)
    scores = method.attribute(token_ids, additional_forward_args=(attention_mask, target))
    return (scores.sum(dim=-1) * attention_mask).detach()


def _log_odds_of(model):
    return lambda token_ids, attention_mask, target: log_odds(model(token_ids, attention_mask).logits, target)


@torch.no_grad()
def attention_times_gradient(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None
) -> Tensor:
    """Each pooling weight times the gradient of the log-odds of `target` with respect to it: (batch, seq_len).

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    weights = pooling_scores(model, token_ids, attention_mask)
    logits = token_logits(model, token_ids, attention_mask)                # (batch, seq_len, classes)
    with torch.enable_grad():
        weights.requires_grad_()
        total = log_odds((weights[:, None] @ logits).squeeze(1), target).sum()
        gradient = torch.autograd.grad(total, weights)[0]
    return (weights * gradient).detach()


METHODS = {
    "pooling weights": pooling_scores,
    "rollout": rollout_scores,
    "gradient × input": gradient_times_input,
    "integrated gradients": integrated_gradients,
    "attention × gradient": attention_times_gradient,
    "occlusion": occlusion,
}


class TokenScores(NamedTuple):
    """The `tokens` of a text as the model read them, a score for each (tokens,), and the predicted `label`.

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """

    tokens: list[Token]
    scores: Tensor
    label: str


def score_texts(
    classifier: ReviewClassifier, texts: Sequence[str], method: str = "occlusion", batch_size: int = 64, **options
) -> list[TokenScores]:
    """Score the tokens of each text for the label that the classifier gives it.

    classifier: a `ReviewClassifier`; method: a name in METHODS; options go to its function. A text that is too long
    keeps its head and tail, as in `ReviewClassifier`; an empty one has no scores.
    Raises ValueError for an unknown method, TypeError for a text in place of a list of texts.

    Taught in 11_attention_as_explanation, '6. Gradients'.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}; use one of {', '.join(METHODS)}")
    if isinstance(texts, str):
        raise TypeError("expected a list of texts and got one string; for one text write [text]")
    texts, max_len, results = list(texts), classifier.model.config.max_len, {}
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))     # like lengths together: less padding
    for start in range(0, len(texts), batch_size):
        chosen = by_length[start : start + batch_size]
        batch = classifier.encode([texts[i] for i in chosen])              # token_ids, attention_mask
        target = predicted_class(classifier.model, *batch)
        scores = METHODS[method](classifier.model, *batch, target, **options)
        for i, row, label in zip(chosen, scores, target.tolist()):
            tokens = truncate(classifier.tokenizer.tokenize(texts[i]), max_len, "head_tail")
            results[i] = TokenScores(tokens, row[: len(tokens)], classifier.label_names[label])
    return [results[i] for i in range(len(texts))]


class Counted(NamedTuple):
    """Scores of single words, counted in labelled texts: `rarity`, minus the log of a word's share, and `lexicon`, how
    one-sided its labels are, |log odds|. Words that were never met: `unseen_rarity`, and 0 in the lexicon.

    Taught in 11_attention_as_explanation, '7. The scoreboard'.
    """

    rarity: dict[str, float]
    lexicon: dict[str, float]
    unseen_rarity: float

    def scores(self, tokens: Sequence[Token], which: str) -> list[float]:
        """One number for each token; which: 'rarity' or 'lexicon'."""
        if which == "rarity":
            return [self.rarity.get(token.text, self.unseen_rarity) for token in tokens]
        return [self.lexicon.get(token.text, 0.0) for token in tokens]


def count_words(texts: Iterable[str], labels: Iterable[int], tokenizer: Tokenizer) -> Counted:
    """Count the words of training texts with labels 0 and 1. One is added to each count, so that none is zero.

    Taught in 11_attention_as_explanation, '7. The scoreboard'.
    """
    occurrences, texts_with = Counter(), (Counter(), Counter())
    for text, label in zip(texts, labels, strict=True):
        words = [token.text for token in tokenizer.tokenize(text)]
        occurrences.update(words)
        texts_with[label].update(set(words))
    total = sum(occurrences.values())
    rarity = {word: math.log((total + 1) / (count + 1)) for word, count in occurrences.items()}
    lexicon = {word: abs(math.log((texts_with[1][word] + 1) / (texts_with[0][word] + 1))) for word in occurrences}
    return Counted(rarity, lexicon, math.log(total + 1))


@torch.no_grad()
def permutation_effect(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, shuffles: int = 100, seed: int = 0
) -> Tensor:
    """How far the prediction moves when the pooling weights change places: the median over shuffles, (batch,).

    Half the sum of |p - q| over the classes (total variation), between 0 and 1. The vectors stay, only the weights of
    the real tokens are shuffled. Jain and Wallace 2019, section 4.2.1.

    Taught in 11_attention_as_explanation, '9. Trying to break the weights'.
    """
    weights = pooling_scores(model, token_ids, attention_mask)             # (batch, seq_len)
    logits = token_logits(model, token_ids, attention_mask)                # (batch, seq_len, classes)
    before = (weights[:, None] @ logits).squeeze(1).softmax(dim=-1)
    generator = torch.Generator().manual_seed(seed)
    places = (~attention_mask).to(torch.uint8).argsort(dim=-1, stable=True)  # real tokens come first
    moved = []
    for _ in range(shuffles):
        keys = torch.rand(weights.shape, generator=generator).to(weights.device) + 2 * ~attention_mask
        shuffled = torch.zeros_like(weights).scatter(-1, places, weights.gather(-1, keys.argsort(dim=-1)))
        after = (shuffled[:, None] @ logits).squeeze(1).softmax(dim=-1)
        moved.append((after - before).abs().sum(dim=-1) / 2)
    return torch.stack(moved).quantile(0.5, dim=0)


class Adversarial(NamedTuple):
    """Other pooling `weights` (batch, seq_len), their Jensen-Shannon `divergence` from the model's own (batch,), at most
    ln 2 = 0.693 nats, and how far they `moved` the prediction: total variation (batch,).

    Taught in 11_attention_as_explanation, '9. Trying to break the weights'.
    """

    weights: Tensor
    divergence: Tensor
    moved: Tensor


@torch.no_grad()
def adversarial_weights(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, tolerance: float = 0.05
) -> Adversarial:
    """The pooling weights farthest from the model's own that keep the prediction within `tolerance`.

    Exact for two classes: the log-odds are linear in the weights, and the divergence is convex, so the farthest
    weights lie in a corner, on one token or on two. Jain and Wallace 2019, section 4.2.2, search by gradient.
    Raises ValueError for a model with another number of classes.

    Taught in 11_attention_as_explanation, '9. Trying to break the weights'.
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
    """For one text: the corner of the allowed weights with the largest divergence, and that divergence."""
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
    rest = 1 - weights[i] - torch.where(i == j, 0.0, weights[j])           # tokens that lose all their weight
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

    Taught in 11_attention_as_explanation, '10. Break the model instead'.
    """
    blocks = [f"encoder.blocks.{i}" for i in reversed(range(model.config.num_layers))]
    names = ["output", "pooling", "encoder.norm", *blocks, "positions", "embedding"]
    return [name for name in names if getattr(model, name.split(".")[0]) is not None
            and any(True for _ in model.get_submodule(name).parameters())]


def randomised(model: SelfAttentionClassifier, depth: int, seed: int = 0) -> SelfAttentionClassifier:
    """A copy whose uppermost `depth` parts (`parts_from_output`) are as before training, with new random numbers.

    The cascading randomisation of Adebayo et al. 2018, section 3. Raises ValueError for a depth that the model has not.

    Taught in 11_attention_as_explanation, '10. Break the model instead'.
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
    """Each token becomes `<unk>` with probability `share`, always by the same draws; those flagged in `spare` stay.

    Taught in 11_attention_as_explanation, '11. Where the model fails'.
    """
    draw = random.Random(0)
    spare = spare or [[False] * len(ids) for ids in list_of_ids]
    return [[unk_id if draw.random() < share and not kept else i for i, kept in zip(ids, keep)]
            for ids, keep in zip(list_of_ids, spare)]


def shuffled_words(list_of_ids: Iterable[Sequence[int]], k: int) -> list[list[int]]:
    """The tokens of `k` randomly drawn places (all, if there are fewer) in random order; the others stay.

    Taught in 11_attention_as_explanation, '11. Where the model fails'.
    """
    draw, result = random.Random(0), []
    for ids in list_of_ids:
        places = draw.sample(range(len(ids)), min(k, len(ids)))
        words = [ids[place] for place in places]
        draw.shuffle(words)
        moved = dict(zip(places, words))
        result.append([moved.get(place, i) for place, i in enumerate(ids)])
    return result


def swapped_words(
    list_of_ids: Iterable[Sequence[int]], tokenizer: WordTokenizer, swap: dict[str, str]
) -> list[list[int]]:
    """Each token that is a key of `swap` becomes its value, where the vocabulary has both.

    Taught in 11_attention_as_explanation, '11. Where the model fails'.
    """
    ids = tokenizer.ids
    other = {ids[old]: ids[new] for old, new in swap.items() if old in ids and new in ids}
    return [[other.get(i, i) for i in row] for row in list_of_ids]


def name_swaps() -> dict[str, str]:
    """For the course's reviews: each man's first name to a woman's and back, he to she, his and him to her, her to his.

    Taught in 11_attention_as_explanation, '11. Where the model fails'.
    """
    slots = tomllib.loads((find_folder("reviews") / "bank" / "slots.toml").read_text(encoding="utf-8"))
    men, women = ([name.lower() for name in slots["names"][who]] for who in ("he", "she"))
    pronouns = {"he": "she", "she": "he", "his": "her", "him": "her", "her": "his"}
    return dict(zip(men, women)) | dict(zip(women, men)) | pronouns
