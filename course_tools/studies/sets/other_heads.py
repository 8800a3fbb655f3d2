"""Names in reviews, and answers to questions, by a pretrained encoder: a set of runs for course_tools/studies/command.py.

Writes data/results/other_heads.json, which the extra of the same name shows. The encoder is all-MiniLM-L6-v2 (Wang et al.
2020; then trained on pairs of sentences): the folder `minilm` in that of COURSE_MODELS, or the hub's. Its control is an
encoder of the same sizes with new random weights. Both get a linear layer for each word's label and 60 steps of 32 reviews,
one pass over the first 1,920 of the 4,000 reviews that the extra's own encoder is trained on. Every row and seed reads
the same reviews, in an order of its own. The learning rate is a common one; none was searched for. With a single pass, the
validation reviews choose nothing.

The row with questions has the two scores of a span instead, and reads all six questions about 700 reviews once, 132 steps of
32; it has no control. It's scored by exact match for each kind of question; `same_words` is the fraction
of reviews where both questions of a kind get the same words, of which one must be wrong.

    COURSE_MODELS=folder python -m course_tools results other_heads --jobs 1 [--seeds 0 1 2]

A run takes about a minute of one processor core, one with questions about two and a half.
"""

import functools
import random
import re
import time

from course_tools.studies.needs import Need
from course_tools.studies.runner import ResultSet, parameters_of
from course_utils.data.marked_reviews import KINDS, SPLITS, Question, make_named_reviews, make_questions
from course_utils.files import sha256
from course_utils.other_heads import (
    IGNORE,
    LABELS,
    SpanMarker,
    TokenTagger,
    exact_match,
    marked_texts,
    name_f1,
    names_in,
    predicted_labels,
    span_loss,
    span_row,
    token_loss,
    token_row,
    words_and_labels,
)
from course_utils.pretraining import BertEncoder, WordPieceTokenizer, load_bert
from course_utils.recipes.name_finders import Rows
from course_utils.results import fingerprint
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.hugging_face import first_there

NAME = first_there("minilm", "sentence-transformers/all-MiniLM-L6-v2")
REAL, RANDOM = "MiniLM", "random weights"
REVIEWS, READ, TESTED, BATCH = 4000, 1920, 300, 32
FIT = {"epochs": 1, "learning_rate": 1e-4, "weight_decay": 0.01, "warmup": 0.1, "clip": 1.0}
ASKED, ASKED_TESTED = 700, 60                            # reviews, with six questions each
QUESTIONS = {"epochs": 1, "learning_rate": 1e-4, "weight_decay": 0.01, "warmup": 0.1, "clip": 1.0}
ASKING = ", questions"
ROWS = (REAL, RANDOM, REAL + ASKING)
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}


@functools.cache
def base() -> tuple[BertEncoder, WordPieceTokenizer]:
    """The pretrained encoder, without dropout, and its tokenizer."""
    encoder, tokenizer = load_bert(NAME, **NO_DROPOUT)
    if tokenizer is None:
        raise ValueError(f"the folder of {NAME} has no tokenizer of word pieces")
    return encoder, tokenizer


@functools.cache
def reviews() -> dict:
    """Reviews for training and validation, and 300 for each pair of (names, sentences)."""
    tests = {(names, sentences): make_named_reviews(TESTED, names=names, sentences=sentences, seed=2)
             for sentences in SPLITS for names in SPLITS}
    return {"train": make_named_reviews(REVIEWS)[:READ], "validation": make_named_reviews(100, seed=1), **tests}


@functools.cache
def settings() -> str:
    """What every run depends on: the encoder, its vocabulary, the reviews and the recipe."""
    encoder, tokenizer = base()
    weights = sha256(encoder.embedding.weight.detach().numpy().tobytes())
    texts = [(str(split), [tuple(review) for review in part]) for split, part in reviews().items()]
    return fingerprint(str(encoder.config), weights, tokenizer.vocabulary, texts, FIT, BATCH)


def both_ways(reviews: list, found: list[list[str]]) -> dict[str, float]:
    """How many of the words that can be names are labelled rightly: the fraction of the names, and of the words."""
    right = {"names": [], "words": []}
    for review, labels in zip(reviews, found):
        if review.both_ways:
            expected = words_and_labels(review)[1]
            place = len(re.findall(r"\w+|[^\w\s]", review.text[: review.both_ways[1]]))
            right["words" if expected[place] == "O" else "names"].append((labels[place] == "O") == (expected[place] == "O"))
    return {name: round(sum(values) / len(values), 4) for name, values in right.items()}


def find_names(model: str, seed: int) -> dict:
    """Train one tagger and score it on the four kinds of test reviews."""
    encoder, tokenizer = base()
    seed_everything(seed)
    net = load_bert(NAME, **NO_DROPOUT)[0] if model == REAL else BertEncoder(encoder.config)
    tagger, data = TokenTagger(net, len(LABELS)), reviews()
    rows = {split: [words_and_labels(review) for review in part] for split, part in data.items()}
    parts = {split: Rows([token_row(tokenizer, *row) for row in rows[split]], (tokenizer.pad_id, IGNORE), BATCH)
             for split in ("train", "validation")}
    begun = time.process_time()
    result = fit(tagger, parts["train"], MeanLoss(parts["validation"], token_loss), loss_of=token_loss, seed=seed,
                 progress=False, **FIT)
    cpu_seconds = time.process_time() - begun
    scored, ways = {}, {}
    for split in list(data)[2:]:
        found = predicted_labels(tagger, tokenizer, [words for words, _ in rows[split]])
        scored[named(*split)] = round(
            name_f1([names_in(labels) for labels in found], [names_in(labels) for _, labels in rows[split]]), 4)
        ways[split] = both_ways(data[split], found)
    return {
        "parameters": parameters_of(tagger), "reviews": len(rows["train"]), "steps": len(parts["train"]),
        "seconds": round(result.seconds, 1), "cpu_seconds": round(cpu_seconds, 1),
        "validation_loss": round(result.history[-1]["validation_loss"], 4), "f1": scored,
        "both_ways": ways["training", "training"],
    }


@functools.cache
def questions() -> dict[str, list[Question]]:
    """Questions for training (those about one review apart), for validation, and for each pair of (names, sentences)."""
    training = make_questions(ASKED)
    random.Random(0).shuffle(training)
    tests = {named(names, sentences): make_questions(ASKED_TESTED, names=names, sentences=sentences, seed=2)
             for sentences in SPLITS for names in SPLITS}
    return {"train": training, "validation": make_questions(max(1, ASKED_TESTED // 3), seed=1), **tests}


def named(names: str, sentences: str) -> str:
    """What the file calls a kind of test reviews."""
    return f"{names} names, {sentences} sentences"


def change(row: str) -> dict:
    """What a row's runs depend on beyond `settings`."""
    model = row.removesuffix(ASKING)
    if row == model:
        return {"weights": model}
    texts = [(split, [(q.text, q.question, list(q.answer)) for q in part]) for split, part in questions().items()]
    return {"weights": model, "head": "start and end", "questions": fingerprint(texts, QUESTIONS, BATCH)}


def judged(asked: list[Question], marked: list[str]) -> dict[str, dict[str, float]]:
    """By kind of question: exact match, the same for any answer of that kind, reviews with the same words twice."""
    right, of_kind, words = ({kind: [] for kind in KINDS} for _ in range(3))
    by_review = {}
    for q, text in zip(asked, marked, strict=True):
        by_review.setdefault((q.text, q.kind), []).append((q, text))
    for (_, kind), pairs in by_review.items():
        answers = [q.text[slice(*q.answer)] for q, _ in pairs]
        right[kind] += [exact_match(text, answer) for (_, text), answer in zip(pairs, answers)]
        of_kind[kind] += [max(exact_match(text, answer) for answer in answers) for _, text in pairs]
        words[kind].append(float(len({text for _, text in pairs}) == 1))
    return {name: {kind: round(sum(found[kind]) / len(found[kind]), 4) for kind in KINDS}
            for name, found in (("exact_match", right), ("of_the_kind", of_kind), ("same_words", words))}


def answer_questions(model: str, seed: int) -> dict:
    """Train one span head and its encoder, and score it on the four kinds of test questions."""
    encoder, tokenizer = base()
    seed_everything(seed)
    net = load_bert(NAME, **NO_DROPOUT)[0] if model == REAL else BertEncoder(encoder.config)
    marker, data = SpanMarker(net), questions()
    parts = {split: Rows([span_row(tokenizer, q) for q in data[split]], (tokenizer.pad_id, 0, 0, 0), BATCH)
             for split in ("train", "validation")}
    begun = time.process_time()
    result = fit(marker, parts["train"], MeanLoss(parts["validation"], span_loss), loss_of=span_loss, seed=seed,
                 progress=False, **QUESTIONS)
    cpu_seconds = time.process_time() - begun
    scored = {split: judged(data[split], marked_texts(marker, tokenizer, data[split])) for split in list(data)[2:]}
    return {
        "parameters": parameters_of(marker), "questions": len(data["train"]),
        "steps": len(parts["train"]) * QUESTIONS["epochs"], "seconds": round(result.seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1), "validation_loss": round(result.history[-1]["validation_loss"], 4),
        "spans": scored,
    }


def run(row: str, seed: int, state) -> dict:
    """One run: names, or questions."""
    model = row.removesuffix(ASKING)
    return find_names(model, seed) if model == row else answer_questions(model, seed)


def line(runs: list[dict]) -> str:
    """What the command prints of a row: the mean F1 on the four kinds of test reviews, or exact match after who and what."""
    if "f1" in runs[0]:
        return "F1 " + " ".join(f"{sum(run['f1'][name] for run in runs) / len(runs):.2f}" for name in runs[0]["f1"])
    return "  ".join(f"{kind} " + " ".join(f"{sum(run['spans'][name]['exact_match'][kind] for run in runs) / len(runs):.2f}"
                                           for name in runs[0]["spans"]) for kind in ("who", "what"))


SET = ResultSet(
    "other_heads", ROWS, settings, run, (Need("MiniLM", lambda row, seed: base()),), change=change, line=line,
)
