"""The marked reviews: spans that say what they say, splits that share no names, and no way around the context."""

import hashlib
import re
from collections import Counter
from itertools import product

import pytest

from course_utils.data import marked_reviews as bank
from course_utils.data.marked_reviews import BOTH_WAYS, KINDS, SPLITS, make_named_reviews, make_questions

EVERY = list(product(SPLITS, SPLITS))
REVIEWS = {key: make_named_reviews(1500, names=key[0], sentences=key[1], seed=5) for key in EVERY}
QUESTIONS = {key: make_questions(200, names=key[0], sentences=key[1], seed=5) for key in EVERY}


def piece(text: str, span) -> str:
    return text[span[0] : span[1]]


def frames(sentences: list[str]) -> set[str]:
    return {re.sub(r"\{\w+\}", "{}", sentence) for sentence in sentences}


@pytest.mark.parametrize("key", EVERY, ids=str)
def test_a_marked_name_is_a_name_of_its_split_from_the_first_letter_to_the_last(key):
    first, last, films = ({*lists[key[0]]} for lists in (bank.FIRST, bank.LAST, bank.FILMS))
    for review in REVIEWS[key]:
        assert review.names and list(review.names) == sorted(review.names)
        for name in review.names:
            text, words = piece(review.text, name), piece(review.text, name).split()
            assert not review.text[name.start - 1 : name.start].isalnum() and not review.text[name.end].isalnum()
            if name.kind == "film":
                assert text in films
            else:
                assert len(words) <= 2 and {words[0], words[-1]} <= first | last | set(BOTH_WAYS)


@pytest.mark.parametrize("key", EVERY, ids=str)
def test_no_name_is_left_unmarked(key):
    people = {*bank.FIRST["training"], *bank.FIRST["held out"], *bank.LAST["training"], *bank.LAST["held out"]}
    for review in REVIEWS[key]:
        left = "".join(" " if any(n.start <= i < n.end for n in review.names) else c for i, c in enumerate(review.text))
        assert not people & set(re.findall(r"\w+", left))


def test_the_splits_share_no_last_name_no_title_no_thing_and_no_sentence_with_a_name():
    for lists in (bank.FIRST, bank.LAST, bank.FILMS, bank.ASPECTS):
        assert lists["training"] and lists["held out"] and not {*lists["training"]} & {*lists["held out"]}
    for sentences in (bank.NAMED, bank.WHO_FRAMES, bank.SHOWN_FRAMES, bank.WHAT_FRAMES):
        there = {split: bank.lines(s) if isinstance(s, str) else s for split, s in sentences.items()}
        assert not frames(there["training"]) & frames(there["held out"])
    assert not {*bank.TOWNS} & {*bank.LAST["training"], *bank.LAST["held out"]}
    known = {piece(r.text, n) for r in REVIEWS["training", "training"] for n in r.names}
    unseen = {piece(r.text, n) for r in REVIEWS["held out", "training"] for n in r.names}
    assert known & unseen <= set(BOTH_WAYS)
    training = {review.text for review in make_named_reviews(3000)}
    assert not training & {review.text for review in make_named_reviews(500, seed=2)}


def test_a_word_that_is_a_name_too_is_one_half_of_the_time():
    names, uses = Counter(), Counter()
    for review in make_named_reviews(8000, seed=3):
        if review.both_ways:
            word, place = review.both_ways
            assert review.text[place : place + len(word)].lower() == word.lower()
            uses[word] += 1
            names[word] += any(name.start == place for name in review.names)
    assert set(uses) == set(BOTH_WAYS)
    for word in uses:
        assert 0.4 < names[word] / uses[word] < 0.6, word


def test_the_ordinary_sentences_hold_their_word():
    for word, sentences in BOTH_WAYS.items():
        assert all(re.search(rf"\b{word}\b", sentence, re.I) for sentence in sentences)
        others = [line for line in [*bank.lines(bank.NAMED["training"]), *bank.lines(bank.UNNAMED)]
                  if re.search(rf"\b{word}\b", line, re.I)]
        assert others == []


@pytest.mark.parametrize("key", EVERY, ids=str)
def test_a_review_has_six_questions_with_six_answers(key):
    questions = QUESTIONS[key]
    assert len(questions) == 1200
    for i in range(0, len(questions), 6):
        six = questions[i : i + 6]
        assert len({q.text for q in six}) == 1 and len({q.question for q in six}) == 6 and len({q.answer for q in six}) == 6
        assert sorted(q.kind for q in six) == ["what", "what", "when", "where", "who", "who"]
        assert {q.kind for q in six} == {*KINDS}
        for q in six:
            assert {q.answer, *q.decoys} == {other.answer for other in six}
            answer = piece(q.text, q.answer)
            right = {"who": bank.FIRST[key[0]], "what": bank.ASPECTS[key[0]], "where": bank.TOWNS, "when": bank.DAYS}[q.kind]
            assert (answer.split()[0] if q.kind == "who" else answer) in right
            assert q.question.lower().startswith(q.kind)


@pytest.mark.parametrize("key", EVERY, ids=str)
def test_the_answer_is_in_the_clause_that_the_question_repeats(key):
    """A person's sentence has the question's verb, and a thing comes after its holder and the verb's past."""
    for q in QUESTIONS[key]:
        start = q.text.rfind(".", 0, q.answer[0]) + 1
        sentence = q.text[start : q.text.find(".", q.answer[1])]
        if q.kind == "who":
            assert q.question.split()[1] in sentence.split()
        if q.kind == "what":
            verb = bank.VERBS[q.question.split()[-1][:-1]]
            assert sentence.index(f"{verb} {piece(q.text, q.answer)}") and q.question.split()[3] in sentence


def test_the_first_of_two_candidates_is_right_half_of_the_time():
    for kind in ("who", "what"):
        asked = [q for q in QUESTIONS["training", "training"] if q.kind == kind]
        pairs = [sorted(other.answer for other in asked if other.text == q.text) for q in asked]
        assert sum(q.answer == pair[0] for q, pair in zip(asked, pairs)) * 2 == len(asked)


def test_the_same_arguments_give_the_same_reviews_everywhere():
    text = "\n".join([*(r.text for r in make_named_reviews(100)), *(f"{q.text} {q.question}" for q in make_questions(50))])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "8481ad8d3ecf3b4f"
    assert make_named_reviews(20, seed=1) != make_named_reviews(20, seed=2)


@pytest.mark.parametrize("make", [make_named_reviews, make_questions])
@pytest.mark.parametrize("arguments, words", [
    ({}, "got 0 reviews"), ({"names": "test"}, "names='test'; expected 'training' or 'held out'"),
    ({"sentences": "x"}, "sentences="),
])
def test_wrong_arguments_are_named(make, arguments, words):
    with pytest.raises(ValueError, match=words):
        make(1 if arguments else 0, **arguments)
