"""Methods that score the tokens of a text, and scores of words that were counted without a model."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.classifier import ReviewClassifier, SelfAttentionClassifier
from course_utils.explain.faithfulness import predicted_class, probability_of, remove
from course_utils.tokenization import Token, Tokenizer, truncate

with warnings.catch_warnings():                                            # captum's progress bar asks for a package that
    warnings.simplefilter("ignore")                                        # the course does not use
    from captum.attr import LayerGradientXActivation, LayerIntegratedGradients

__all__ = ["occlusion", "pooling_scores", "token_logits", "rollout", "rollout_scores", "log_odds", "Attribution",
           "integrated_gradients_with_gap", "integrated_gradients", "gradient_times_input", "attention_times_gradient",
           "Counted", "count_words", "METHODS", "TokenScores", "score_texts"]


@torch.no_grad()
def occlusion(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None,
    how: str = "delete",
) -> Tensor:
    """What the probability of `target` loses when one token is taken away: (batch, seq_len), positive for support.

    One forward pass for each token, many in one batch. target (batch,), by default the predicted class; `how` as in
    `remove`. Leave-one-out: Li, Monroe and Jurafsky 2016.

    Taught in 11_attention_as_explanation, '1. Take a word away'.
    """
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    whole = probability_of(model, token_ids, attention_mask, target)       # (batch,)
    rows, positions = attention_mask.nonzero(as_tuple=True)                   # every real token: its text and its position
    scores = torch.zeros(token_ids.shape, dtype=whole.dtype, device=whole.device)
    size = max(1, 32768 // token_ids.shape[1])                             # bounds the memory
    for row, position in zip(rows.split(size), positions.split(size)):
        one = torch.zeros(len(row), token_ids.shape[1], dtype=torch.bool, device=whole.device)
        one[torch.arange(len(row)), position] = True
        without = remove(model, token_ids[row], attention_mask[row], one, how)
        scores[row, position] = whole[row] - probability_of(model, *without, target[row])
    return scores


@torch.no_grad()
def pooling_scores(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None
) -> Tensor:
    """The weight of each token in the pooling: (batch, seq_len), each text sums to one. Mean pooling: all equal.

    `target` plays no part: weights do not know the class.

    Taught in 11_attention_as_explanation, '3. What attention says'.
    """
    predicted_class(model, token_ids, attention_mask)                      # complains about what is not a model
    weights = model(token_ids, attention_mask, need_weights=True).pooling_weights
    if weights is None:
        weights = attention_mask.float() / attention_mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return weights


def token_logits(model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """The logits that each token's last vector would give if it were the whole review: (batch, seq_len, classes).

    The pooled vector is a weighted mean and the output layer is linear, so the weighted mean of these logits, with
    the pooling weights, is the logits of the review.

    Taught in 11_attention_as_explanation, '3. What attention says'.
    """
    return model.output(model.hidden(token_ids, attention_mask))


def rollout(attentions: Sequence[Tensor] | Tensor) -> Tensor:
    """How much of each input token is in each token after all layers, by the weights alone: (…, query, key).

    attentions: one (…, heads, query, key) for each layer, the first layer first; a tensor or a list. Each layer is
    the mean of its heads, mixed half and half with the identity for the residual; the layers are multiplied. Rows sum
    to one. Abnar and Zuidema 2020, section 3. Raises ValueError for no layers: then there is nothing to multiply.

    Taught in 11_attention_as_explanation, '3. What attention says'.
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

    Taught in 11_attention_as_explanation, '3. What attention says'.
    """
    weights = pooling_scores(model, token_ids, attention_mask)             # (batch, seq_len)
    attentions = model(token_ids, attention_mask, need_weights=True).attentions
    if not attentions:                                                     # no layer: nothing was mixed
        return weights
    return (weights[:, None] @ rollout(attentions)).squeeze(1)


def log_odds(logits: Tensor, target: Tensor) -> Tensor:
    """The logit of `target` (batch,) against all other classes: log p / (1 - p), (batch,).

    Taught in 11_attention_as_explanation, '1. Take a word away'.
    """
    own = logits.gather(-1, target[:, None]).squeeze(-1)
    return own - logits.scatter(-1, target[:, None], float("-inf")).logsumexp(dim=-1)


class Attribution(NamedTuple):
    """`scores` (batch, seq_len), and the convergence `gap` (batch,): the sum of the scores minus what it should be.

    Taught in 11_attention_as_explanation, '4. Integrated gradients, by you'.
    """

    scores: Tensor
    gap: Tensor


def integrated_gradients_with_gap(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None,
    steps: int = 64, baseline: str = "unk",
) -> Attribution:
    """Gradients of the log-odds of `target`, averaged along the straight line from a baseline to the text: an Attribution.

    The scores of a text sum to its log-odds minus those of the baseline: a text of the same length, all `<unk>`
    (baseline='unk') or all zero vectors ('pad'). Computed by captum's LayerIntegratedGradients on the embedding;
    Sundararajan, Taly and Yan 2017, section 3. Raises ValueError for another baseline.

    Taught in 11_attention_as_explanation, '4. Integrated gradients, by you'.
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

    Taught in 11_attention_as_explanation, '4. Integrated gradients, by you'.
    """
    return integrated_gradients_with_gap(model, token_ids, attention_mask, target, steps, baseline).scores


def gradient_times_input(
    model: SelfAttentionClassifier, token_ids: Tensor, attention_mask: Tensor, target: Tensor | None = None
) -> Tensor:
    """The gradient of the log-odds of `target` at each word vector, times the vector: (batch, seq_len). By captum.

    Taught in 11_attention_as_explanation, '4. Integrated gradients, by you'.
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
    """Each pooling weight times the gradient of the log-odds of `target` with respect to it: (batch, seq_len)."""
    target = predicted_class(model, token_ids, attention_mask) if target is None else target
    weights = pooling_scores(model, token_ids, attention_mask)
    logits = token_logits(model, token_ids, attention_mask)                # (batch, seq_len, classes)
    with torch.enable_grad():
        weights.requires_grad_()
        total = log_odds((weights[:, None] @ logits).squeeze(1), target).sum()
        gradient = torch.autograd.grad(total, weights)[0]
    return (weights * gradient).detach()


class Counted(NamedTuple):
    """Scores of single words, counted in labelled texts: `rarity`, minus the log of a word's frequency, `lexicon`, how
    one-sided its labels are, |log odds|, and `leaning`, the same with its sign, above 0 for label 1. Words that were never
    met: `unseen_rarity`, and 0 in the others.
    """

    rarity: dict[str, float]
    lexicon: dict[str, float]
    unseen_rarity: float
    leaning: dict[str, float]

    def scores(self, tokens: Sequence[Token], which: str) -> list[float]:
        """One number for each token; which: 'rarity', 'lexicon' or 'leaning'."""
        if which == "rarity":
            return [self.rarity.get(token.text, self.unseen_rarity) for token in tokens]
        return [getattr(self, which).get(token.text, 0.0) for token in tokens]


def count_words(texts: Iterable[str], labels: Iterable[int], tokenizer: Tokenizer) -> Counted:
    """Count the words of training texts with labels 0 and 1. One is added to each count, so that none is zero."""
    occurrences, texts_with = Counter(), (Counter(), Counter())
    for text, label in zip(texts, labels, strict=True):
        words = [token.text for token in tokenizer.tokenize(text)]
        occurrences.update(words)
        texts_with[label].update(set(words))
    total = sum(occurrences.values())
    rarity = {word: math.log((total + 1) / (count + 1)) for word, count in occurrences.items()}
    leaning = {word: math.log((texts_with[1][word] + 1) / (texts_with[0][word] + 1)) for word in occurrences}
    lexicon = {word: abs(odds) for word, odds in leaning.items()}
    return Counted(rarity, lexicon, math.log(total + 1), leaning)


METHODS = {
    "pooling weights": pooling_scores,
    "rollout": rollout_scores,
    "gradient × input": gradient_times_input,
    "integrated gradients": integrated_gradients,
    "attention × gradient": attention_times_gradient,
    "occlusion": occlusion,
}


class TokenScores(NamedTuple):
    """The `tokens` of a text as the model read them, a score for each (tokens,), and the predicted `label`."""

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
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}; use one of {', '.join(METHODS)}")
    if isinstance(texts, str):
        raise TypeError("expected a list of texts and got one string; for one text write [text]")
    texts, max_len, results = list(texts), classifier.model.config.max_len, {}
    by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))     # similar lengths together: less padding
    for start in range(0, len(texts), batch_size):
        chosen = by_length[start : start + batch_size]
        batch = classifier.encode([texts[i] for i in chosen])              # token_ids, attention_mask
        target = predicted_class(classifier.model, *batch)
        scores = METHODS[method](classifier.model, *batch, target, **options)
        for i, row, label in zip(chosen, scores, target.tolist()):
            tokens = truncate(classifier.tokenizer.tokenize(texts[i]), max_len, "head_tail")
            results[i] = TokenScores(tokens, row[: len(tokens)], classifier.label_names[label])
    return [results[i] for i in range(len(texts))]
