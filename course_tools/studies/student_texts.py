"""The texts that the student of notebook 15 reads, in its own words and in its teacher's word pieces.

Does: collect them by source (IMDb's reviews, sentences cut out of them, the course's reviews and sentences), encode them,
keep IMDb's word pieces in outputs/student. Does not: train, or label anything. IMDb comes from the hub, or from the folder
that COURSE_DATA names; nothing of it is written anywhere but in outputs.
"""

from __future__ import annotations

import functools
import random
import re

import numpy as np
from tokenizers import BertWordPieceTokenizer

from course_tools.studies.pretrained_reviews import LINE_BREAK, reviews
from course_utils import files
from course_utils.data import load_reviews
from course_utils.files.paths import output_folder
from course_utils.tokenization import WordTokenizer, truncate

__all__ = ["CUTS", "LABELLED", "SOURCES", "cut_sentences", "cuts_of_reviews", "in_pieces", "in_words", "kept", "labels_of",
           "rows_in", "rows_to_read", "student_words", "texts_of"]

LABELLED = ("imdb", "reviews", "sentences")             # with labels; the other two have the teacher's answers alone
SOURCES = (*LABELLED, "unsupervised", "cuts")
UNLABELLED = 30_000                                     # of IMDb's 50,000 unlabelled reviews
CUTS = 2                                                # sentences cut out of a review, at most
WORDS_IN_CUT = (3, 40)
VOCAB_SIZE, MAX_LEN = 15_000, 192                       # the student's
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(A-Z])")


def kept(name: str):
    """A file in outputs/student."""
    path = output_folder() / "student" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def cut_sentences(text: str, number: int, chooser: random.Random) -> list[str]:
    """Up to so many sentences of a review, of 3 to 40 words each, chosen at random, in their order."""
    low, high = WORDS_IN_CUT
    parts = [part.strip() for part in SENTENCE_END.split(LINE_BREAK.sub(" ", text)) if low <= len(part.split()) <= high]
    chosen = sorted(chooser.sample(range(len(parts)), min(number, len(parts))))
    return [parts[i] for i in chosen]


@functools.cache
def texts_of(source: str, split: str = "train") -> list[str]:
    """A source's texts, line breaks in HTML replaced by spaces.

    "unsupervised" and "cuts" are for training alone: unlabelled reviews of IMDb, and sentences of these and of the training
    reviews.
    """
    if source == "imdb":
        texts = reviews(unsupervised=True)[split]["text"]
    elif source == "unsupervised":
        texts = reviews(unsupervised=True)["unsupervised"]["text"][:UNLABELLED]
    elif source == "cuts":
        return cuts_of_reviews(CUTS)
    else:
        texts = load_reviews(source)[split]["text"]
    return [LINE_BREAK.sub(" ", text) for text in texts]


def cuts_of_reviews(number: int) -> list[str]:
    """Up to so many sentences of each of IMDb's training and unlabelled reviews."""
    chooser = random.Random(0)
    whole = [text for part in ("imdb", "unsupervised") for text in texts_of(part)]
    return [sentence for text in whole for sentence in cut_sentences(text, number, chooser)]


def labels_of(source: str, split: str = "train") -> list[int]:
    """The labels of a source that has them."""
    rows = reviews(unsupervised=True) if source == "imdb" else load_reviews(source)
    return list(rows[split]["label"])


@functools.cache
def student_words() -> WordTokenizer:
    """The student's vocabulary: the most frequent words of everything it reads (the cuts only repeat the reviews)."""
    return WordTokenizer.train((text for source in SOURCES[:-1] for text in texts_of(source)), VOCAB_SIZE)


def in_pieces(source: str, split: str, pieces: BertWordPieceTokenizer, max_len: int) -> list[np.ndarray]:
    """The ids that the teacher reads of each text, cut to `max_len` word pieces, head and tail."""
    texts = texts_of(source, split)
    path = kept(f"pieces-{source}-{split}-{files.fingerprint(texts, max_len)}.npz")
    if not path.exists():
        rows = [np.array(truncate(found.ids, max_len, "head_tail"), dtype=np.int32)
                for found in pieces.encode_batch(texts)]
        with files.replacing(path) as partial, open(partial, "wb") as file:
            np.savez(file, ids=np.concatenate(rows), ends=np.cumsum([len(row) for row in rows]))
    with np.load(path) as flat:
        return np.split(flat["ids"], flat["ends"][:-1])


def in_words(source: str, split: str = "train") -> list[list[int]]:
    """The ids that the student reads, cut to `MAX_LEN` words, head and tail."""
    words = student_words()
    return [truncate(words.encode(text), MAX_LEN, "head_tail") for text in texts_of(source, split)]


def rows_to_read(source: str, number: int, seed: int = 0) -> list[int]:
    """So many rows of a source's training texts: whole passes over it, and then a part of one, drawn by `seed`."""
    return rows_in(len(texts_of(source)), number, seed)


def rows_in(there: int, number: int, seed: int = 0) -> list[int]:
    """So many of `there` rows: whole passes over them, and then a part of one, drawn by `seed`."""
    passes, rest = divmod(number, there)
    return [*range(there)] * passes + np.random.default_rng(seed).permutation(there)[:rest].tolist()
