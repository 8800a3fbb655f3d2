"""The recurrent translators of notebook 16: what they're trained and scored on, and where the trained ones are kept.

    corpus = translation_corpus()                        # splits, word lists, encoded pairs
    model = kept_translator("additive")                  # comes with the course: data/checkpoints/recurrent-additive

Does: encode the course's translations, score a translator (`translation_scores`, `alignment_scores`), save and read one.
Does not: train (the set `recurrent_attention` does).
"""

import copy
import functools
from pathlib import Path
from typing import NamedTuple

from datasets import DatasetDict

from course_utils.data.translations import load_translations
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig
from course_utils.training.pair_batches import EncodedPairs, WordList, encode_pairs
from course_utils.training.saved_models import holds_model, read_model, write_model

LENGTHS = {"1-10": (1, 10), "11-20": (11, 20), "21-30": (21, 30), "31-": (31, 1000)}       # tokens of the English sentence


class TranslationCorpus(NamedTuple):
    """The `splits` as they're loaded, a `WordList` of each language from the training split, and the encoded `pairs`."""

    splits: DatasetDict
    english: WordList
    french: WordList
    pairs: dict[str, EncodedPairs]


@functools.cache
def translation_corpus() -> TranslationCorpus:
    """The course's translations, encoded."""
    splits = load_translations("translation")
    english, french = (WordList.train(splits["train"][f"{side}_tokens"]) for side in ("source", "target"))
    return TranslationCorpus(splits, english, french, {name: encode_pairs(split, english, french)
                                                       for name, split in splits.items()})


def gold_links(split) -> list[set[tuple[int, int]]]:
    """The gold alignment of every row, as sets of (source, target)."""
    return [{tuple(link) for link in links} for links in split["alignment"]]


def length_group(words: int) -> str:
    """The group of LENGTHS that a number of words belongs to."""
    return next(name for name, (low, high) in LENGTHS.items() if low <= words <= high)


# keeping

def keep_translator(name: str, model: Seq2Seq) -> Path:
    """Save a trained translator in outputs/models, in half precision; in data/checkpoints it would come with the course."""
    corpus, half = translation_corpus(), copy.deepcopy(model).half()
    return write_model(output_folder() / "models" / f"recurrent-{name}", half, corpus.french,
                       {"source_words": corpus.english.words}, Seq2Seq)


def kept_translator(name: str) -> Seq2Seq:
    """The translator of this name in evaluation mode, from data/checkpoints or outputs/models.

    Raises FileNotFoundError if there is none, with the command that makes it, and ValueError for one that was trained with
    other word lists.
    """
    again = "python -m course_tools results recurrent_attention --seeds 0 --again"
    places = [folder / f"recurrent-{name}" for folder in (CHECKPOINTS, output_folder() / "models")]
    place = next((place for place in places if holds_model(place)), None)
    if place is None:
        raise FileNotFoundError(f"there is no translator {name!r} in {places[0].parent}; make it: {again}")
    saved, corpus = read_model(place, Seq2Seq, Seq2SeqConfig, ["source_words"]), translation_corpus()
    if (saved.extra["source_words"], saved.tokenizer.words) != (corpus.english.words, corpus.french.words):
        raise ValueError(f"{place.name} was trained with other words than the corpus has now; train it again: {again}")
    return saved.model.float()
