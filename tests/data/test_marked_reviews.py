"""The marked reviews: spans that say what they say, splits that share no names, and no way around the context."""

import hashlib
import re
from collections import Counter
from itertools import product

import pytest

from course_utils.data import marked_reviews as bank
from course_utils.data.marked_reviews import BOTH_WAYS, KINDS, SPLITS, make_named_reviews, make_questions

EVERY = list(product(SPLITS, SPLITS))


def piece(text: str, span) -> str:
    return text[span[0] : span[1]]


@pytest.mark.parametrize("names, sentences", EVERY)
def test_names_of_the_split_are_marked_from_the_first_letter_to_the_last_and_none_is_left_out(names, sentences):
    first, last, films = ({*lists[names]} for lists in (bank.FIRST, bank.LAST, bank.FILMS))
    people = {*bank.FIRST["training"], *bank.FIRST["held out"], *bank.LAST["training"], *bank.LAST["held out"]}
    for review in make_named_reviews(500, names=names, sentences=sentences, seed=5):
        assert review.names and list(review.names) == sorted(review.names)
        for name in review.names:
            text, words = piece(review.text, name), piece(review.text, name).split()
            assert not review.text[name.start - 1 : name.start].isalnum() and not review.text[name.end].isalnum()
            assert text in films if name.kind == "film" else {words[0], words[-1]} <= first | last | set(BOTH_WAYS)
        left = "".join(" " if any(n.start <= i < n.end for n in review.names) else c for i, c in enumerate(review.text))
        assert not people & set(re.findall(r"\w+", left))


def test_the_splits_share_no_last_name_no_title_no_thing_and_no_sentence_with_a_name():
    for lists in (bank.FIRST, bank.LAST, bank.FILMS, bank.ASPECTS):
        assert lists["training"] and lists["held out"] and not {*lists["training"]} & {*lists["held out"]}
    for sentences in (bank.NAMED, bank.WHO_FRAMES, bank.SHOWN_FRAMES, bank.WHAT_FRAMES):
        there = [{re.sub(r"\{\w+\}", "{}", one) for one in (bank.lines(s) if isinstance(s, str) else s)}
                 for s in sentences.values()]
        assert not there[0] & there[1]


def test_a_word_that_is_a_name_too_is_one_half_of_the_time():
    names, uses = Counter(), Counter()
    for review in make_named_reviews(8000, seed=3):
        if review.both_ways:
            word, place = review.both_ways
            assert review.text[place : place + len(word)].lower() == word.lower()
            uses[word] += 1
            names[word] += any(name.start == place for name in review.names)
    assert set(uses) == set(BOTH_WAYS) and all(0.4 < names[word] / uses[word] < 0.6 for word in uses)


@pytest.mark.parametrize("names, sentences", EVERY)
def test_a_review_has_six_questions_with_six_answers_in_the_clause_that_the_question_repeats(names, sentences):
    questions = make_questions(100, names=names, sentences=sentences, seed=5)
    assert len(questions) == 600 and {q.kind for q in questions} == {*KINDS}
    for i, q in enumerate(questions):
        six = questions[i - i % 6 : i - i % 6 + 6]
        assert {other.text for other in six} == {q.text} and len({other.question for other in six}) == 6
        assert {q.answer, *q.decoys} == {other.answer for other in six} and len({q.answer, *q.decoys}) == 6
        assert sorted(other.kind for other in six) == ["what", "what", "when", "where", "who", "who"]
        answer = piece(q.text, q.answer)
        right = {"who": bank.FIRST[names], "what": bank.ASPECTS[names], "where": bank.TOWNS, "when": bank.DAYS}[q.kind]
        assert (answer.split()[0] if q.kind == "who" else answer) in right and q.question.lower().startswith(q.kind)
        sentence = q.text[q.text.rfind(".", 0, q.answer[0]) + 1 : q.text.find(".", q.answer[1])]
        if q.kind == "who":
            assert q.question.split()[1] in sentence.split()
        if q.kind == "what":
            assert f"{bank.VERBS[q.question.split()[-1][:-1]]} {answer}" in sentence and q.question.split()[3] in sentence


def test_the_same_arguments_give_the_same_reviews_everywhere():
    text = "\n".join([*(r.text for r in make_named_reviews(100)), *(f"{q.text} {q.question}" for q in make_questions(50))])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "8481ad8d3ecf3b4f"
    assert make_named_reviews(20, seed=1) != make_named_reviews(20, seed=2)


@pytest.mark.parametrize("make", [make_named_reviews, make_questions])
@pytest.mark.parametrize("number, split", [(0, "training"), (1, "test")])
def test_wrong_arguments_are_named(make, number, split):
    with pytest.raises(ValueError, match="got 0 reviews|names='test'; expected 'training' or 'held out'"):
        make(number, names=split)
