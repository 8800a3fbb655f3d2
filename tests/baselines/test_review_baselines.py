"""The baselines' fits are where training ends, not beside it."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from course_utils.baselines import RecurrentClassifier, ngram_regression
from course_utils.data import load_reviews
from course_utils.training import seed_everything


@pytest.fixture(scope="module")
def reviews():
    return load_reviews("reviews")["train"].select(range(2000))


def gradient_of(fitted, texts, labels) -> float:
    """The largest entry of the gradient of the penalised mean loss, which is zero at its lowest point."""
    counts, regression = fitted[0].transform(texts), fitted[-1]
    error = fitted.predict_proba(texts)[:, 1] - np.asarray(labels)
    weights = counts.T @ error + regression.coef_[0] / regression.C
    return max(abs(weights).max(), abs(error.sum())) / len(texts)


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_ngrams_are_all_runs_of_words_up_to_the_longest(longest):
    fitted = ngram_regression(longest).fit(["not a bad film"] * 2 + ["a bad film"] * 2, [1, 1, 0, 0])
    words = ["not", "a", "bad", "film"]
    runs = {" ".join(words[i:i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)}
    assert set(fitted[0].get_feature_names_out()) == runs


@pytest.mark.parametrize("std", [1.0, 0.02])
def test_a_recurrent_classifier_starts_from_word_vectors_of_the_size_asked_for(std):
    seed_everything(0)
    model = RecurrentClassifier(500, embedding_std=std)
    assert model.embedding.weight[1:].std().item() == pytest.approx(std, rel=0.05)
    assert not model.embedding.weight[0].any()                             # padding


def test_the_ngram_fit_is_at_the_lowest_point_of_its_loss(reviews):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fitted = ngram_regression().fit(reviews["text"], reviews["label"])
    assert gradient_of(fitted, reviews["text"], reviews["label"]) < 1e-7
