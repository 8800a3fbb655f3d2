"""What the vectors and heads of an encoder know about meaning: measures with a known answer by chance.

Does: a word's vectors in sentences; how often the same sense is closer; how far a head's weight, or a vector, leans to
the right one of two nouns. Does not: load models or sentences (`course_utils.pretraining`, `course_utils.data.meanings`),
compute intervals, or draw.

Exported from notebooks/extras/pretrained_vectors.ipynb: edit it there.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.pretraining import BertEncoder, BertResult, WordPieceTokenizer
from course_utils.shapes import stack_attentions
from course_utils.tokenization import pad_batch

__all__ = ["same_sense", "position_of", "read_texts", "states_at", "attention_lean", "vector_lean", "pair_shift"]


def same_sense(vectors: Tensor, senses: Sequence[int], judged: Sequence[bool] | None = None) -> float:
    """How often a vector is closer to one of its own sense than to one of another: 1 is always, 0.5 is chance.

    vectors (sentences, d_model), one sense for each. Every vector is compared with all pairs of others, one of its own sense
    and one of another, by cosine; a tie counts one half. With `judged`, only these vectors are scored, and compared
    with those that aren't. It's the area under the ROC curve, averaged over the vectors. Raises ValueError
    for shapes that don't fit, vectors that aren't finite, or one without others of both kinds to be compared with.

    Taught in extras/pretrained_vectors, '1. One word, two senses'.
    """
    names = sorted(set(senses)) if isinstance(senses, Sequence) else None
    senses = torch.as_tensor([names.index(one) for one in senses] if names else senses)
    judged = torch.ones_like(senses, dtype=torch.bool) if judged is None else torch.as_tensor(judged)
    if vectors.dim() != 2 or senses.shape != vectors.shape[:1]:
        raise ValueError(f"vectors have shape {tuple(vectors.shape)}, senses {tuple(senses.shape)}; expected "
                         "(sentences, d_model) and (sentences,)")
    if judged.shape != senses.shape or not judged.any():
        raise ValueError(f"judged has {int(judged.sum())} of {judged.numel()} vectors; expected {len(senses)} truth values, "
                         "at least one of them True")
    if not vectors.isfinite().all():
        raise ValueError("a vector holds a number that isn't finite, and would be closer to none; check the encoder")
    x = F.normalize(vectors.double(), dim=-1)
    cosines = (x @ x.T).round(decimals=6)                                  # (sentences, sentences); rounded: ties are ties
    others = torch.ones_like(judged) if judged.all() else ~judged
    scores = []
    for i in judged.nonzero()[:, 0].tolist():
        with_it = others & (torch.arange(len(senses)) != i)
        own, other = (cosines[i, with_it & (senses == senses[i])], cosines[i, with_it & (senses != senses[i])])
        if not (len(own) and len(other)):
            raise ValueError(f"vector {i} has nothing to be compared with; expected two sentences or more for each sense")
        gap = own[:, None] - other                                         # (own, other)
        scores.append(((gap > 0).double() + 0.5 * (gap == 0)).mean())
    return torch.stack(scores).mean().item()


def position_of(tokenizer: WordPieceTokenizer, text: str, word: str) -> int:
    """Where `word` is in `tokenizer.encode(text)`. Raises ValueError unless it's there once, as a single piece.

    Taught in extras/pretrained_vectors, "2. What is 'it'?".
    """
    tokens = [token.text for token in tokenizer.tokenize(text)]
    if tokens.count(word) != 1:
        raise ValueError(f"{word!r} is {tokens.count(word)} times among the pieces of {text!r}; expected once")
    return tokens.index(word)


@torch.no_grad()
def read_texts(encoder: BertEncoder, tokenizer: WordPieceTokenizer, texts: Sequence[str]) -> BertResult:
    """The encoder's result for some texts, padded to one length, with all attention weights. ValueError for a string.

    Taught in extras/pretrained_vectors, "2. What is 'it'?".
    """
    if isinstance(texts, str):
        raise ValueError(f"texts is the string {texts!r:.40}; expected a list of texts, [text] for one")
    token_ids, attention_mask = pad_batch([tokenizer.encode(text) for text in texts], tokenizer.pad_id)
    return encoder(token_ids, attention_mask, need_weights=True)


def states_at(hidden_states: Sequence[Tensor], positions: Sequence[int]) -> Tensor:
    """One position's vectors after every layer: layers + 1 of (texts, seq_len, d_model) -> (texts, layers + 1, d_model).

    Taught in extras/pretrained_vectors, "2. What is 'it'?".
    """
    stacked = torch.stack(list(hidden_states), dim=1)                      # (texts, layers + 1, seq_len, d_model)
    return stacked[torch.arange(len(stacked)), :, torch.as_tensor(positions)]


def attention_lean(attentions: Sequence[Tensor] | Tensor, query, right, wrong) -> Tensor:
    """A head's weight from the query to the right key minus that to the wrong one: (texts, layers, heads), from -1 to 1.

    attentions: one (texts, heads, query, key) for each layer; query, right and wrong: a position for each text. The mass of
    the role 'attends to the right key' minus that of 'attends to the wrong key' (notebook 10).

    Taught in extras/pretrained_vectors, "2. What is 'it'?".
    """
    weights = stack_attentions(attentions)                                 # (texts, layers, heads, query, key)
    text, query, right, wrong = (torch.as_tensor(one) for one in (range(len(weights)), query, right, wrong))
    return weights[text, :, :, query, right] - weights[text, :, :, query, wrong]


def vector_lean(hidden_states: Sequence[Tensor], query, right, wrong) -> Tensor:
    """The cosine of the query's vector with the right noun's minus that with the wrong one's: (texts, layers + 1).

    Taught in extras/pretrained_vectors, "2. What is 'it'?".
    """
    at = [states_at(hidden_states, positions) for positions in (query, right, wrong)]
    return F.cosine_similarity(at[0], at[1], dim=-1) - F.cosine_similarity(at[0], at[2], dim=-1)


def pair_shift(leans: Tensor) -> Tensor:
    """The mean lean of two sentences that follow each other: (2 * pairs, ...) -> (pairs, ...).

    In a pair the right noun of one sentence is the wrong one of the other, so whatever a head gives to a noun
    or a position in both of them cancels. What's left is what the changed word did.

    Taught in extras/pretrained_vectors, "2. What is 'it'?".
    """
    if len(leans) % 2:
        raise ValueError(f"got leans of {len(leans)} sentences; expected two for each pair")
    return leans.view(-1, 2, *leans.shape[1:]).mean(dim=1)
