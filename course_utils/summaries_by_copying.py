"""Summaries that are copied: the deciding sentences of a review, ROUGE, and a Transformer with a pointer to the source.

Does: `summaries` gives each review of the course corpus a summary, `rouge_1` and `rouge_l` score one. `PointerTransformer`
is notebook 17's Transformer that can also copy a source word (See, Liu and Manning 2017, https://arxiv.org/abs/1704.04368);
`encode_copies` and `decode_copies` give ids to words that no vocabulary has. Does not: train (`course_utils.training.fit`
does), or write in words of its own.

Exported from notebooks/extras/summaries_by_copying.ipynb: edit it there.
"""

import copy
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import padding_mask
from course_utils.data.translations import split_english
from course_utils.encoder_decoder import Attentions, CrossAttention, DecodingState, Transformer, TransformerConfig
from course_utils.training.pair_batches import BEGIN, END, UNKNOWN, EncodedPairs, WordList

__all__ = ["SENTENCE", "summary_of", "summaries", "rouge_1", "rouge_l", "mixture", "copy_ids", "encode_copies",
           "decode_copies", "SourceMemory", "PointerState", "PointerResult", "PointerTransformer"]


SENTENCE = re.compile(r"\S.*?[.!?](?=\s|$)", re.DOTALL)


def summary_of(text: str, evidence: Iterable[Sequence[int]]) -> tuple[list[str], list[int]]:
    """The sentences of a review, and which of them, counted from 0, are its summary: those that hold evidence.

    `evidence`: character spans [start, end). Raises ValueError for evidence that isn't inside one sentence, and for none.

    Taught in extras/summaries_by_copying, '1. A summary that can be checked by eye'.
    """
    spans = [match.span() for match in SENTENCE.finditer(text)]
    holds = [[i for i, (a, b) in enumerate(spans) if a <= start and end <= b] for start, end in evidence]
    if not holds or not all(holds):
        raise ValueError(f"the evidence {list(map(list, evidence))} isn't inside sentences of {text[:60]!r}; expected at "
                         "least one span, and each within a sentence")
    return [text[a:b] for a, b in spans], sorted({i for found in holds for i in found})


def summaries(reviews) -> dict[str, list]:
    """Reviews of the course corpus with their summaries, as columns; those whose every sentence decides are left out.

    `source_tokens` and `target_tokens` of review and summary; `places`, where in the review each word of the summary stands;
    `sentences`, the review's sentences as lists of tokens; `chosen`, which of them are the summary; `kind`.

    Taught in extras/summaries_by_copying, '1. A summary that can be checked by eye'.
    """
    rows = []
    for text, evidence, kind in zip(reviews["text"], reviews["evidence"], reviews["kind"]):
        found, chosen = summary_of(text, evidence)
        if len(chosen) < len(found):
            sentences = [split_english(sentence) for sentence in found]
            source = [(word, i) for i, sentence in enumerate(sentences) for word in sentence]
            places = [place for place, (_, i) in enumerate(source) if i in chosen]
            words = [word for word, _ in source]
            rows.append((words, [words[place] for place in places], places, sentences, chosen, kind))
    names = ("source_tokens", "target_tokens", "places", "sentences", "chosen", "kind")
    return dict(zip(names, map(list, zip(*rows)))) if rows else {name: [] for name in names}


def _f1(matched: int, written: Sequence, reference: Sequence) -> float:
    """2PR / (P + R), with precision matched / written and recall matched / reference: 0 to 1."""
    return 2 * matched / (len(written) + len(reference)) if matched else 0.0


def rouge_1(written: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of the words that both have, each counted as often as both have it (Lin 2004, section 2).

    Taught in extras/summaries_by_copying, '2. Scores, and what needs no model'.
    """
    return _f1(sum((Counter(written) & Counter(reference)).values()), written, reference)


def rouge_l(written: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of the longest common subsequence: words in the same order, perhaps with others between (Lin 2004, section 3).

    Taught in extras/summaries_by_copying, '2. Scores, and what needs no model'.
    """
    row = [0] * (len(reference) + 1)                         # row[j]: the longest with the first j words of the reference
    for word in written:
        before, row = row, [0]
        for j, other in enumerate(reference):
            row.append(before[j] + 1 if word == other else max(before[j + 1], row[j]))
    return _f1(row[-1], written, reference)


def mixture(p_gen: Tensor, p_words: Tensor, weights: Tensor, source_ids: Tensor) -> Tensor:
    """p_gen · p_words + (1 - p_gen) · the weights on each word of the source (See et al. 2017, equation 9).

    p_gen (batch, target, 1), p_words (batch, target, vocab), weights (batch, target, source), source_ids (batch, source)
    -> probabilities (batch, target, vocab or more): one for each id up to the largest in the source.

    Taught in extras/summaries_by_copying, '3. A pointer, by hand'.
    """
    more = max(0, int(source_ids.max()) + 1 - p_words.shape[-1])
    p = F.pad(p_gen * p_words, (0, more))                                  # (batch, target, vocab + more)
    where = source_ids[:, None].expand_as(weights)                         # (batch, target, source)
    return p.scatter_add(-1, where, (1 - p_gen) * weights)


def copy_ids(tokens: Sequence[str], source: Sequence[str], words: WordList) -> list[int]:
    """The id of each token; the first unknown word of the source gets vocab_size, the next vocab_size + 1, and so on.

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """
    unknown = list(dict.fromkeys(word for word in source if word not in words.ids))
    more = {word: words.vocab_size + i for i, word in enumerate(unknown)}
    return [words.ids.get(word, more.get(word, UNKNOWN)) for word in tokens]


def encode_copies(rows, words: WordList) -> EncodedPairs:
    """`encode_pairs` with an id for every word of the source; rows have columns `source_tokens` and `target_tokens`.

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """
    pairs = list(zip(rows["source_tokens"], rows["target_tokens"]))
    return EncodedPairs([copy_ids(source, source, words) for source, _ in pairs],
                        [[BEGIN, *copy_ids(target, source, words), END] for source, target in pairs])


def decode_copies(ids: Iterable[int], source: Sequence[str], words: WordList) -> list[str]:
    """Ids back to words, those from vocab_size on to the source's. Raises ValueError for one that the source hasn't.

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """
    names = dict(zip(copy_ids(source, source, words), source))
    return [word for i in ids for word in ([names[int(i)]] if int(i) in names else words.decode([i]))]


class SourceMemory(NamedTuple):
    """17's `Memory`, with the `ids` (batch, source) that were read.

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """

    x: Tensor
    mask: Tensor
    attentions: list[Tensor] | None
    ids: Tensor


class PointerState(NamedTuple):
    """17's `decoding` state; the pointer's keys and values, each (batch, 1, source, d_model); the source's ids.

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """

    decoding: DecodingState
    remembered: tuple[Tensor, Tensor]
    ids: Tensor

    def select(self, indices: Tensor) -> "PointerState":
        """The rows `indices` (rows,), in this order; a row may come twice."""
        return PointerState(self.decoding.select(indices), tuple(part[indices] for part in self.remembered),
                            self.ids[indices])


class PointerResult(NamedTuple):
    """`logits` (batch, target, vocab or more), here log-probabilities; `weights`, `Attentions` or None; the pointer's
    `copied` (batch, target, source) and `p_gen` (batch, target).

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """

    logits: Tensor
    weights: Attentions | None
    copied: Tensor
    p_gen: Tensor


class PointerTransformer(Transformer):
    """17's `Transformer` that generates a word or copies one from the source (See et al. 2017, section 2.2).

    (source_ids (batch, source), source_mask, target_ids (batch, target), need_weights) -> PointerResult; ids as `copy_ids`
    gives them. Source and target share one vocabulary. The pointer is one more head of cross-attention, over the decoder's
    last vectors. Raises ValueError if the two vocabularies differ in size.

    Taught in extras/summaries_by_copying, '4. The Transformer with a pointer'.
    """

    def __init__(self, config: TransformerConfig):
        if config.vocab_size != config.source_vocab_size:
            raise ValueError(f"vocab_size={config.vocab_size} and source_vocab_size={config.source_vocab_size}; a pointer "
                             "needs one list of words for both sides: build it with WordList.train on the reviews")
        super().__init__(config)
        self.pointer = CrossAttention(config.d_model, num_heads=1)
        self.gate = nn.Linear(2 * config.d_model, 1)

    def embed(self, embedding: nn.Embedding, ids: Tensor, offset: int = 0) -> Tensor:
        """17's, in which every word outside the vocabulary has the vector of <unk>."""
        return super().embed(embedding, ids.where(ids < embedding.num_embeddings, UNKNOWN), offset)

    def mix(self, x: Tensor, remembered: tuple[Tensor, Tensor], mask: Tensor, source_ids: Tensor
            ) -> tuple[Tensor, Tensor, Tensor]:
        """From the decoder's vectors x (batch, target, d_model): log-probabilities, the pointer's weights, p_gen."""
        context, weights = self.pointer(x, mask=mask, remembered=remembered, need_weights=True)
        p_gen = self.gate(torch.cat([x, context], dim=-1)).sigmoid()       # (batch, target, 1)
        p = mixture(p_gen, self.logits(x).softmax(dim=-1), weights[:, 0], source_ids)
        return (p + 1e-9).log(), weights[:, 0], p_gen[..., 0]

    def encode(self, source_ids: Tensor, source_mask: Tensor, need_weights: bool = False) -> SourceMemory:
        """Read the source."""
        return SourceMemory(*super().encode(source_ids, source_mask, need_weights), source_ids)

    def forward(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, need_weights: bool = False):
        memory = self.encode(source_ids, source_mask, need_weights)
        x, *maps = self.decode(memory, target_ids, need_weights)
        logits, copied, p_gen = self.mix(x, self.pointer.remember(memory.x), padding_mask(source_mask), source_ids)
        return PointerResult(logits, Attentions(memory.attentions, *maps) if need_weights else None, copied, p_gen)

    def start(self, memory: SourceMemory) -> PointerState:
        """The state before the first word."""
        return PointerState(super().start(memory), self.pointer.remember(memory.x), memory.ids)

    def step(self, last_ids: Tensor, state: PointerState) -> tuple[Tensor, PointerState]:
        """Read one more word of each row, last_ids (batch,): log-probabilities of the next, and the new state."""
        inner = state.decoding
        done, caches = len(inner.caches[0]), [copy.copy(cache) for cache in inner.caches]
        x = self.embed(self.target_embedding, last_ids[:, None], done)
        x = self.decoder(x, None, None, inner.memory_mask, self.positions.bias(1, done + 1), self.positions.rotate,
                         caches=caches, remembered=inner.remembered).x
        state = state._replace(decoding=inner._replace(caches=caches))
        return self.mix(x, state.remembered, inner.memory_mask, state.ids)[0][:, 0], state
