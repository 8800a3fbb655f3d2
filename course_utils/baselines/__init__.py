"""What attention is compared with: counts, TF-IDF and recurrent networks on reviews; on code 5-grams, an LSTM, an editor.

Does: collect the baselines of `reviews`, `kneser_ney`, `recurrent` and `file_words`. Does not: teach them, or measure
them (`course_utils.experiments` does).
"""

from course_utils.baselines.file_words import ORDERS, words_in_file
from course_utils.baselines.kneser_ney import KneserNey
from course_utils.baselines.recurrent import RecurrentLanguageModel, RecurrentLanguageModelConfig, RecurrentResult
from course_utils.baselines.reviews import (
    WORD,
    RecurrentClassifier,
    majority,
    naive_bayes,
    ngram_regression,
    tfidf_regression,
)

__all__ = ["ORDERS", "WORD", "KneserNey", "RecurrentClassifier", "RecurrentLanguageModel", "RecurrentLanguageModelConfig",
           "RecurrentResult", "majority", "naive_bayes", "ngram_regression", "tfidf_regression", "words_in_file"]
