"""What attention is compared with: counts and recurrent networks on reviews and code, an editor, an aligner of words.

Does: collect the baselines of `reviews`, `kneser_ney`, `recurrent`, `file_words` and `ibm_model_1`. Does not: teach them,
or measure them (`course_tools.studies` does).
"""

from course_utils.baselines.file_words import ORDERS, words_in_file
from course_utils.baselines.ibm_model_1 import IBMModel1
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

__all__ = ["ORDERS", "WORD", "IBMModel1", "KneserNey", "RecurrentClassifier", "RecurrentLanguageModel",
           "RecurrentLanguageModelConfig", "RecurrentResult", "majority", "naive_bayes", "ngram_regression",
           "tfidf_regression", "words_in_file"]
