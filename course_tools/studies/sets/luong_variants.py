"""16's translator with input feeding, or with a window on the source: what the extra `luong_variants` compares.

Writes data/results/luong_variants.json: for each row what `recurrent_attention` says of its own, by the same recipe, with as
many parameters (to 1 %) and steps. The control, without feeding and window, is that set's "general, after, GRU".

    python -m course_tools results luong_variants --seeds 0 1 2
"""

import functools

from course_tools.studies.runner import ResultSet, Trained
from course_tools.studies.sets import recurrent_attention as recurrent
from course_utils.luong_variants import LuongTranslator
from course_utils.results import fingerprint
from course_utils.training import seed_everything
from course_utils.translation.translators import translation_corpus

# d_hidden makes the numbers of parameters equal, to each other and to the control's
ROWS = {
    "input feeding": {"feed": True, "d_hidden": 144},
    "local-m": {"window": "monotonic", "reach": 2, "d_hidden": 156},
    "local-p": {"window": "predicted", "reach": 2, "d_hidden": 148},
}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    return fingerprint(recurrent.settings(), ROWS)


def new_translator(model: str, seed: int) -> LuongTranslator:
    """An untrained translator of a row."""
    corpus = translation_corpus()
    seed_everything(seed)
    return LuongTranslator(corpus.english.vocab_size, corpus.french.vocab_size, recurrent.D_MODEL, dropout=recurrent.DROPOUT,
                           **ROWS[model])


def run(model: str, seed: int, state) -> Trained:
    """Train one translator with `fit` and score it on the test split."""
    return recurrent.train_and_score(new_translator(model, seed), seed, state)


SET = ResultSet("luong_variants", ROWS, settings, run, line=recurrent.line)
