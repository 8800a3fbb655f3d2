"""What attention is compared with: counts and a recurrent network on reviews, and an aligner of words.

Does: small, ordinary models. Those of texts are scikit-learn estimators (`fit(texts, labels)`, `predict(texts)`), the
recurrent classifier takes (token_ids, attention_mask) and trains with `course_utils.training.fit`, `IBMModel1` learns from
sentences and their translations. Does not: teach them (naive Bayes is counted by hand in notebook 01), or measure them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from torch import Tensor, nn

from course_utils.embeddings import masked_mean
from course_utils.options import check_options, whole, yes_or_no

__all__ = ["WORD", "IBMModel1", "RecurrentClassifier", "majority", "naive_bayes", "ngram_regression", "tfidf_regression"]

WORD = r"(?u)\w+(?:['’]\w+)*|[^\w\s]"  # the words of `WordTokenizer`


def majority() -> Pipeline:
    """Always the more frequent label."""
    return make_pipeline(CountVectorizer(token_pattern=WORD), DummyClassifier(strategy="most_frequent"))


def naive_bayes() -> Pipeline:
    """Multinomial naive Bayes on word counts, add-one smoothing."""
    return make_pipeline(CountVectorizer(token_pattern=WORD), MultinomialNB())


def ngram_regression(longest: int = 3) -> Pipeline:
    """Logistic regression on which 1- to `longest`-grams occur, fitted to convergence: its loss has one lowest point.

    If it stops earlier (`tol` is 1e-4 by default), a fit only comes near that point, and ends up somewhere else on each
    kind of processor.
    """
    counts = CountVectorizer(token_pattern=WORD, ngram_range=(1, longest), min_df=2, binary=True)
    return make_pipeline(counts, LogisticRegression(tol=1e-8, max_iter=5000))


def tfidf_regression(longest: int = 2) -> Pipeline:
    """Logistic regression on TF-IDF of 1- to `longest`-grams, the baseline for real reviews."""
    weights = TfidfVectorizer(token_pattern=WORD, ngram_range=(1, longest), min_df=5, sublinear_tf=True)
    return make_pipeline(weights, LogisticRegression(C=10, max_iter=1000))


class RecurrentClassifier(nn.Module):
    """Embeddings, one LSTM layer, a summary of its states, logits.

    (token_ids (batch, seq_len), attention_mask) -> logits (batch, num_classes). `pooling` "mean" averages the
    states of the real tokens, "max" takes each column's largest; `bidirectional` reads both ways, each with
    half of `d_hidden`. The embedding options are those of `ClassifierConfig`.
    """

    def __init__(
        self, vocab_size: int, d_model: int = 64, d_hidden: int = 64, bidirectional: bool = False, pooling: str = "mean",
        dropout: float = 0.1, num_classes: int = 2, pad_id: int = 0,
        embedding_std: float = 1.0, embedding_scale: float = 1.0,
    ):
        super().__init__()
        if pooling not in ("mean", "max"):
            raise ValueError(f"pooling={pooling!r}; use 'mean' or 'max'")
        self.pad_id, self.pooling, self.embedding_scale = pad_id, pooling, embedding_scale
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        with torch.no_grad():
            self.embedding.weight.mul_(embedding_std)
        self.dropout = nn.Dropout(dropout)
        hidden = d_hidden // 2 if bidirectional else d_hidden
        self.lstm = nn.LSTM(d_model, hidden, batch_first=True, bidirectional=bidirectional)
        self.output = nn.Linear(d_hidden, num_classes)

    def forward(self, token_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        if attention_mask is None:
            attention_mask = token_ids != self.pad_id
        lengths = attention_mask.sum(dim=1).clamp(min=1).cpu()
        vectors = self.dropout(self.embedding(token_ids) * self.embedding_scale)                  # (batch, seq_len, d_model)
        packed = nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=token_ids.shape[1])
        if self.pooling == "mean":
            summary = masked_mean(states, attention_mask)                  # (batch, d_hidden)
        else:
            lowest = torch.finfo(states.dtype).min
            summary = states.masked_fill(~attention_mask[:, :, None], lowest).amax(dim=1).clamp(min=-1)
        return self.output(self.dropout(summary))


class IBMModel1:
    """IBM Model 1 (Brown et al. 1993, https://aclanthology.org/J93-2003, equations 5, 6 and 14).

    `iterations` of EM, from equal probabilities. EM can't end in a maximum that is only local, since the logarithm of the
    likelihood is concave. But it isn't strictly concave: another start can end in other probabilities that are just as
    likely, and in other alignments (Toutanova and Galley 2011, https://aclanthology.org/P11-2081).
    null: whether a target word may come from no source word. After `fit`, `history` has the mean natural logarithm of the
    likelihood of a target word before each iteration and after the last; it never falls.
    """

    def __init__(self, iterations: int = 10, null: bool = True):
        check_options({"iterations": iterations, "null": null}, {"iterations": whole(1, 10_000), "null": yes_or_no()})
        self.iterations, self.null = iterations, null
        self.history: list[float] = []

    def fit(self, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> IBMModel1:
        """Learn from sentences and their translations, each a list of tokens; returns the model itself.

        Raises ValueError for an unequal number of sentences, for none, and for an empty sentence; TypeError for a text.
        """
        source, target = list(source), list(target)
        if not source or len(source) != len(target):
            raise ValueError(f"got {len(source)} source and {len(target)} target sentences; give a translation for each, "
                             "and at least one pair")
        for name, sentences in (("source", source), ("target", target)):
            for i, tokens in enumerate(sentences):
                if isinstance(tokens, str):
                    raise TypeError(f"{name} sentence {i} is the text {tokens!r:.40}; split it into tokens first")
                if not len(tokens):
                    raise ValueError(f"{name} sentence {i} has no words; leave empty pairs out")
        self._source_ids = {word: i for i, word in enumerate(dict.fromkeys(w for s in source for w in s), 1)}  # 0: none
        self._target_ids = {word: i for i, word in enumerate(dict.fromkeys(w for s in target for w in s))}
        keys, places, base, counted = [], [], len(self._target_ids), 0
        for s, t in zip(source, target):
            e = np.array([0] * self.null + [self._source_ids[word] for word in s])
            f = np.array([self._target_ids[word] for word in t])
            keys.append((e[None, :] * base + f[:, None]).ravel())                          # (target * source,)
            places.append(np.repeat(np.arange(counted, counted + len(f)), len(e)))         # which target word it explains
            counted += len(f)
        self._keys, pair = np.unique(np.concatenate(keys), return_inverse=True)            # each (source, target) once
        place = np.concatenate(places)
        self._probabilities, self.history = np.full(len(self._keys), 1 / base), []
        given, offered = self._keys // base, np.bincount(place)                            # its source word; words to choose
        for _ in range(self.iterations):
            p = self._probabilities[pair]
            total = np.bincount(place, p)                                                  # (target words,)
            self.history.append(float(np.log(total / offered).mean()))
            counts = np.bincount(pair, p / total[place], minlength=len(self._keys))        # expected number of links
            self._probabilities = counts / np.bincount(given, counts)[given]
        self.history.append(float(np.log(np.bincount(place, self._probabilities[pair]) / offered).mean()))
        return self

    def probability(self, target_word: str, source_word: str | None) -> float:
        """t(target word | source word), None for NULL; 0 for two words that no training pair has together."""
        self._fitted()
        e = 0 if source_word is None else self._source_ids.get(source_word)
        f = self._target_ids.get(target_word)
        if e is None or f is None:
            return 0.0
        key = e * len(self._target_ids) + f
        place = int(np.searchsorted(self._keys, key))
        found = place < len(self._keys) and self._keys[place] == key
        return float(self._probabilities[place]) if found else 0.0

    def align(self, source: Sequence[str], target: Sequence[str]) -> set[tuple[int, int]]:
        """The links (source index, target index): each target word with its most probable source word.

        Of equally probable ones the first; NULL only where it's more probable than any word. A target word that was never
        seen with any of them gets no link.
        """
        self._fitted()
        links = set()
        for j, word in enumerate(target):
            chances = [self.probability(word, given) for given in source]
            best = max(chances, default=0.0)
            if best > 0 and best >= (self.probability(word, None) if self.null else 0.0):
                links.add((chances.index(best), j))
        return links

    def _fitted(self) -> None:
        if not self.history:
            raise RuntimeError("this IBMModel1 has learned nothing yet; call fit(source, target) first")
