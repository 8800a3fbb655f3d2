"""Baselines on reviews: majority, naive Bayes, n-grams, TF-IDF, and a recurrent classifier.

Does: small, ordinary models with one interface each: the text models are scikit-learn estimators
(`fit(texts, labels)`, `predict(texts)`), the recurrent ones take (token_ids, attention_mask) and train with
`course_utils.training.fit`. Does not: teach them (naive Bayes is counted by hand in notebook 01).
"""

import torch
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from torch import Tensor, nn

from course_utils.embeddings import masked_mean

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
