"""Vectors for pairs of neighbouring words: attention that is told that "not good" is not "good".

Does: find the pairs that are frequent in the training reviews, and `WordPairClassifier`, which adds a vector for each
of them to the vector of the word that ends it (fastText does so to a bag of words: Joulin et al. 2017). Does not: change
the lesson's classifier; without any pairs it computes the same.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier


def frequent_pairs(reviews: Iterable[list[int]], vocab_size: int, min_reviews: int = 5, special: int = 2) -> torch.Tensor:
    """Codes of the neighbouring ids that occur in `min_reviews` reviews or more, in ascending order: (pairs,) int64.

    The code of ids a, b is a · vocab_size + b. The first `special` ids (padding, unknown) make no pair.
    """
    found = [np.zeros(0, dtype=np.int64)]
    for ids in reviews:
        ids = np.asarray(ids, dtype=np.int64)
        first, second = ids[:-1], ids[1:]
        real = (first >= special) & (second >= special)
        found.append(np.unique(first[real] * vocab_size + second[real]))
    codes, reviews_with = np.unique(np.concatenate(found), return_counts=True)
    return torch.from_numpy(codes[reviews_with >= min_reviews])


class WordPairClassifier(SelfAttentionClassifier):
    """A `SelfAttentionClassifier` that also looks up a vector for each pair of neighbouring words.

    `pairs` are the codes that `frequent_pairs` returns. Pair vectors start at zero and are multiplied by
    `pair_scale`, which lets them learn that much faster (see `ClassifierConfig.embedding_scale`). A word that word
    dropout takes away takes its two pairs along.
    """

    def __init__(self, config: ClassifierConfig, pairs: torch.Tensor, pair_scale: float = 10.0):
        super().__init__(config)
        self.register_buffer("pairs", pairs)
        self.pair_scale = pair_scale
        self.pair_embedding = nn.Embedding(len(pairs) + 1, config.d_model, padding_idx=0)  # 0: no frequent pair
        nn.init.zeros_(self.pair_embedding.weight)

    def pair_ids(self, token_ids: Tensor) -> Tensor:
        """Which pair ends at each token, counted from 1, or 0: (batch, seq_len) -> (batch, seq_len)."""
        result = torch.zeros_like(token_ids)
        if len(self.pairs) > 0:
            codes = token_ids[:, :-1] * self.config.vocab_size + token_ids[:, 1:]
            places = torch.searchsorted(self.pairs, codes).clamp(max=len(self.pairs) - 1)
            result[:, 1:] = torch.where(self.pairs[places] == codes, places + 1, 0)
        return result

    def word_vectors(self, token_ids: Tensor) -> Tensor:
        """Vectors of words and of the pairs that end there: (batch, seq_len) -> (batch, seq_len, d_model)."""
        return super().word_vectors(token_ids) + self.pair_embedding(self.pair_ids(token_ids)) * self.pair_scale
