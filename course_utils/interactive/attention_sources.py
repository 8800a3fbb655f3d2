"""Where an attention view takes its weights from: the course's classifiers, or plain tensors.

Does: run a classifier on one text and keep what it attended to. Does not: run Hugging Face's models (see
`attention_hugging_face`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from course_utils.interactive.attention_data import Side, make_kind, make_pooling
from course_utils.interactive.attention_words import (
    Labels,
    bare,
    by_words,
    joined,
    pooled_by_words,
    words_at,
    words_by_marks,
)


def from_tensors(tokens: object, attentions: object, key_tokens: object, attention_mask: object, pooling: object,
                 layers: Sequence[int] | None, check_rows: bool, by_word: bool) -> Side:
    """Labels and weights as they are given. Raises ValueError where they don't fit."""
    kind = make_kind("attention", attentions, tokens, key_tokens, attention_mask=attention_mask, wanted=layers,
                     check_rows=check_rows)
    side = Side([kind], make_pooling(pooling, kind, attention_mask, check_rows))
    if not by_word:
        return side
    return _by_word(side, *(Labels(labels, words_by_marks(labels)) for labels in (kind.queries, kind.keys)))


def _by_word(side: Side, rows: Labels, columns: Labels) -> Side:
    """The same side with the tokens of a word as one."""
    pooling = None if side.pooling is None else pooled_by_words(side.pooling, columns)
    return replace(side, kinds=[by_words(side.kinds[0], rows, columns)], pooling=pooling)


def from_classifier(model: object, text: object, layers: Sequence[int] | None, check_rows: bool, by_word: bool) -> Side:
    """A `ReviewClassifier` on one text. Raises ValueError for a text without tokens and a model without attention."""
    if isinstance(text, tuple):
        raise ValueError("a ReviewClassifier reads one text; two texts at once, (first, second), are for a model of Hugging "
                         "Face that was trained on pairs")
    if not isinstance(text, str):
        raise ValueError(f"text is of type {type(text).__name__}; expected one text, a string")
    told = model.explain(text)
    tokens = [getattr(token, "text", token) for token in told.tokens]
    if not tokens:
        raise ValueError(f"the text {text!r} has no tokens; give one with at least one word")
    if not len(told.attentions):
        raise ValueError("the model has no attention layer; expected a model with num_layers=1 or more")
    kind = make_kind("attention", told.attentions, tokens, wanted=layers, check_rows=check_rows)
    side = Side([kind], make_pooling(told.weights, kind, None, check_rows), told.label, told.probabilities[told.label])
    if not by_word:
        return side
    labels = Labels(tokens, _words(model.tokenizer, told.tokens, text))
    return _by_word(side, labels, labels)


def _words(tokenizer: object, tokens: list, text: str) -> list[tuple[int, str]]:
    """The words of a course tokenizer's tokens: '##' continues one; byte pairs never reach beyond a match of its pattern."""
    pattern = getattr(tokenizer, "pattern", None)
    begins = set() if pattern is None else {match.start() for match in pattern.finditer(text)}
    if hasattr(tokenizer, "merges"):
        starts = [token.start in begins and (i == 0 or token.start != tokens[i - 1].start) for i, token in enumerate(tokens)]
        return words_at(starts, lambda start, end: bare(text[tokens[start].start:tokens[end - 1].end]))
    starts = [not token.text.startswith("##") for token in tokens]
    return words_at(starts, lambda start, end: joined([token.text for token in tokens[start:end]]))
