"""Shortcuts that a synthetic corpus might offer, and the accuracy of each.

Every probe is a function of a training list and a test list of reviews and returns an accuracy on the test list. None
of them understands a sentence, so on a corpus without leaks they stay near chance. `python data/reviews/probes.py`
prints the table; the tests check that no probe exceeds its limit.
"""

import argparse
import json
import re
import sys
import tomllib
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

HERE = Path(__file__).resolve().parent
KINDS = ("plain", "negation", "order", "distant")
TOKEN = r"\w+(?:'\w+)*|[^\w\s]"          # words and punctuation marks
PUNCTUATION = ".,;:!?'-"


def load_split(split: str) -> list[dict]:
    """The reviews of one split."""
    with open(HERE / f"{split}.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def of_kind(reviews: list[dict], kind: str) -> list[dict]:
    """The reviews of one kind."""
    return [review for review in reviews if review["kind"] == kind]


def labels(reviews: list[dict]) -> np.ndarray:
    """Labels as an array, shape (reviews,)."""
    return np.array([review["label"] for review in reviews])


def sentences(text: str) -> list[str]:
    """The sentences of a review: split after . ! ? and a space."""
    return re.split(r"(?<=[.!?])\s+", text)


def without_evidence(review: dict) -> str:
    """The text with its evidence cut out."""
    text = review["text"]
    for start, end in reversed(review["evidence"]):
        text = text[:start] + text[end:]
    return text


# ------------------------------------------------------------------------------------------ features
def length_features(review: dict) -> list[float]:
    """Words, characters and sentences."""
    return [len(review["text"].split()), len(review["text"]), len(sentences(review["text"]))]


def position_features(review: dict, spans: int = 6) -> list[float]:
    """Start and length of the first evidence spans, relative to the text and in characters; and their number."""
    size = len(review["text"])
    features = [len(review["evidence"])]
    for start, end in (review["evidence"] + [[-1, -1]] * spans)[:spans]:
        features += [start, end, end - start, start / size, end / size]
    return features


def punctuation_features(review: dict) -> list[float]:
    """How often each punctuation mark occurs."""
    return [review["text"].count(mark) for mark in PUNCTUATION]


def names() -> set[str]:
    """First names and surnames, relations and pronouns that a holder may have."""
    with open(HERE / "bank" / "slots.toml", "rb") as file:
        people = tomllib.load(file)["names"]
    relations = {"brother", "sister", "aunt", "uncle", "father", "mother", "cousin", "neighbour", "flatmate",
                 "grandmother", "colleague", "he", "she", "his", "her", "him"}
    return {name.lower() for group in people.values() for name in group} | relations


# ------------------------------------------------------------------------------------------ models
def accuracy(model, train_x, train_y, test_x, test_y) -> float:
    """Fit on the training half, score on the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(model.fit(train_x, train_y).score(test_x, test_y))


def structured_probe(features, train: list[dict], test: list[dict], forest: bool = False) -> float:
    """A few numbers a review, to a logistic regression or a random forest."""
    model = (RandomForestClassifier(60, min_samples_leaf=5, random_state=0) if forest
             else make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)))
    return accuracy(model, [features(r) for r in train], labels(train), [features(r) for r in test], labels(test))


def frame_probe(train: list[dict], test: list[dict]) -> float:
    """The id of the deciding frame, and for 'distant' its two halves."""
    def features(review: dict) -> dict:
        return dict.fromkeys([review["frame"], *review["frame"].split("+")], 1)

    model = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=1000))
    return accuracy(model, [features(r) for r in train], labels(train), [features(r) for r in test], labels(test))


def text_probe(view, train: list[dict], test: list[dict], n: int = 3, bayes: bool = False) -> float:
    """Which 1- to n-grams occur in `view(review)`, words and punctuation, to a logistic regression or naive Bayes."""
    vectorizer = CountVectorizer(token_pattern=TOKEN, ngram_range=(1, n), min_df=2, binary=True)
    model = MultinomialNB() if bayes else make_pipeline(MaxAbsScaler(), LogisticRegression(C=1.0, solver="liblinear"))
    train_x, test_x = vectorizer.fit_transform(map(view, train)), vectorizer.transform(map(view, test))
    return accuracy(model, csr_matrix(train_x, dtype=float), labels(train), csr_matrix(test_x, dtype=float), labels(test))


def name_view(review: dict, known: frozenset) -> str:
    """Only the names, relations and pronouns of a text."""
    return " ".join(word for word in re.findall(TOKEN, review["text"].lower()) if word in known) or "nobody"


def full_view(review: dict) -> str:
    return review["text"]


def first_sentence(review: dict) -> str:
    return sentences(review["text"])[0]


def last_sentence(review: dict) -> str:
    return sentences(review["text"])[-1]


def lexicon() -> dict[str, int]:
    """Every opinion expression of the bank as a lower-case string: +1 or -1. Pronouns of verb phrases are left out."""
    from grammar import load_phrases

    with open(HERE / "bank" / "opinions.toml", "rb") as file:
        phrases = load_phrases(tomllib.load(file))
    scores = {}
    for phrase in phrases:
        for me, my in (("me", "my"), ("him", "his"), ("her", "her")):
            scores[phrase.text.replace("{me}", me).replace("{my}", my)] = 1 if phrase.polarity else -1
    return scores


def lexicon_probe(train: list[dict], test: list[dict]) -> float:
    """Positive minus negative opinion expressions in the text; a tie gets the training split's majority."""
    scores = lexicon()
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, sorted(scores, key=len, reverse=True))) + r")\b")
    majority = Counter(labels(train).tolist()).most_common(1)[0][0]
    right = 0
    for review in test:
        total = sum(scores[match] for match in pattern.findall(review["text"].lower()))
        right += (majority if total == 0 else int(total > 0)) == review["label"]
    return right / len(test)


def probes() -> dict:
    """All probes that must fail, by name: functions of (train, test) returning an accuracy."""
    known = frozenset(names())
    return {
        "length": partial(structured_probe, length_features),
        "length, forest": partial(structured_probe, length_features, forest=True),
        "frame": frame_probe,
        "evidence position": partial(structured_probe, position_features),
        "evidence position, forest": partial(structured_probe, position_features, forest=True),
        "punctuation": partial(structured_probe, punctuation_features),
        "punctuation, forest": partial(structured_probe, punctuation_features, forest=True),
        "names": partial(text_probe, partial(name_view, known=known), n=1),
        "text without evidence": partial(text_probe, without_evidence, n=2),
    }


def table(train: list[dict], test: list[dict]) -> list[tuple[str, str, float]]:
    """Rows (probe, kind, accuracy)."""
    rows = []
    for name, probe in probes().items():
        rows += [(name, kind, probe(of_kind(train, kind), of_kind(test, kind))) for kind in KINDS]
    distant = of_kind(train, "distant"), of_kind(test, "distant")
    rows.append(("first sentence", "distant", text_probe(first_sentence, *distant)))
    rows.append(("last sentence", "distant", text_probe(last_sentence, *distant)))
    for kind in KINDS:
        rows.append(("1-3-grams, this kind", kind, text_probe(full_view, of_kind(train, kind), of_kind(test, kind))))
        rows.append(("lexicon", kind, lexicon_probe(of_kind(train, kind), of_kind(test, kind))))
        rows.append(("naive Bayes, this kind", kind,
                     text_probe(full_view, of_kind(train, kind), of_kind(test, kind), n=1, bayes=True)))
    return rows + all_kinds_rows(train, test)


def all_kinds_rows(train: list[dict], test: list[dict]) -> list[tuple[str, str, float]]:
    """1-3-gram logistic regression trained on all kinds together, scored kind by kind."""
    vectorizer = CountVectorizer(token_pattern=TOKEN, ngram_range=(1, 3), min_df=2, binary=True)
    train_x = vectorizer.fit_transform(map(full_view, train)).astype(float)
    model = LogisticRegression(C=1.0, solver="liblinear").fit(train_x, labels(train))
    rows = []
    for kind in KINDS:
        reviews = of_kind(test, kind)
        score = model.score(vectorizer.transform(map(full_view, reviews)).astype(float), labels(reviews))
        rows.append(("1-3-grams, all kinds", kind, float(score)))
    return rows


def main() -> int:
    """Print the accuracy of every probe on every kind of review; return the exit status."""
    results = {}
    for name, kind, score in table(load_split("train"), load_split("test")):
        results.setdefault(name, {})[kind] = score
    print(f"{'probe':28}" + "".join(f"{kind:>10}" for kind in KINDS))
    for name, by_kind in results.items():
        print(f"{name:28}" + "".join(f"{by_kind[kind]:>10.3f}" if kind in by_kind else " " * 10 for kind in KINDS))
    return 0


if __name__ == "__main__":
    argparse.ArgumentParser(description=main.__doc__).parse_args()  # takes no arguments: any is refused
    sys.exit(main())
