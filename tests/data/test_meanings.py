"""The sentences for asking what a pretrained model knows: balanced, unique, and saying what their labels say."""

import re
from collections import Counter

import pytest

from course_utils.data.meanings import load_pronouns, load_senses

SENSES, PAIRS = load_senses(), load_pronouns()
COMMON = set("""a after all an and as at be been by can each every for from had has he her his i in into is it its more most
my not of on one or our out over so than that the their them there they this to two under up was we were what when which
while whole will with without you your s t""".split())


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


# words with two senses

def test_twelve_words_half_of_them_of_films_have_two_senses_in_equal_numbers():
    by_word = Counter((one.word, one.film) for one in SENSES)
    assert len(by_word) == 12 and sum(film for _, film in by_word) == 6
    by_sense = Counter((one.word, one.sense, one.misleading) for one in SENSES)
    assert len(by_sense) == 12 * 2 * 2
    assert set(by_sense.values()) == {10, 2} and all((count == 2) == odd for (*_, odd), count in by_sense.items())


def test_every_sentence_has_its_word_once_and_is_there_once():
    assert len({one.text for one in SENSES}) == len(SENSES)
    for one in SENSES:
        assert words(one.text).count(one.word) == 1 and re.search(rf"\b{one.word}\b", one.text), one.text
        assert re.fullmatch(r"[A-Z].*[.?]", one.text) and one.text.isascii(), one.text


def test_sentences_of_a_sense_share_few_other_words():
    """Otherwise counting the neighbours would tell the senses apart."""
    for word, sense in sorted({(one.word, one.sense) for one in SENSES}):
        texts = [one.text for one in SENSES if (one.word, one.sense, one.misleading) == (word, sense, False)]
        shared = Counter(other for text in texts for other in set(words(text)) - COMMON - {word})
        often = [(other, count) for other, count in shared.items() if count > 1]
        assert len(often) <= 1 and max(shared.values()) <= 2, (word, sense, often)


def test_where_the_word_is_in_its_sentence_says_little_about_its_sense():
    for word in sorted({one.word for one in SENSES}):
        where = {}
        for one in SENSES:
            if one.word == word and not one.misleading:
                where.setdefault(one.sense, []).append(words(one.text).index(word))
        first, second = where.values()
        later = sum((a > b) + 0.5 * (a == b) for a in first for b in second) / 100
        assert 0.25 <= later <= 0.75, (word, later)


# pronouns

def test_there_are_over_a_hundred_pairs_in_two_sets_three_families_to_a_theme():
    assert len({text for pair in PAIRS for text in pair.texts}) == 2 * len(PAIRS) == 408
    assert Counter(pair.second_set for pair in PAIRS) == {False: 132, True: 72}
    assert set(Counter(pair.theme for pair in PAIRS).values()) == {6}
    assert {pair.theme for pair in PAIRS} == set(range(34))
    second = Counter(pair.fits_both for pair in PAIRS if pair.second_set)
    assert second[True] == second[False]
    assert len({pair.adjectives for pair in PAIRS}) == 34


def test_both_orders_of_the_nouns_are_there_so_neither_noun_nor_adjective_tells_the_place():
    orders = Counter((pair.nouns, pair.adjectives, pair.first) for pair in PAIRS)
    assert set(orders.values()) == {1}
    assert all((nouns, adjectives, 1 - first) in orders for nouns, adjectives, first in orders)
    assert Counter(pair.first for pair in PAIRS) == {0: 102, 1: 102}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.nouns[0]}-{pair.nouns[1]}-{pair.first}")
def test_the_two_sentences_differ_in_the_adjective_alone(pair):
    one, two = map(words, pair.texts)
    assert [i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b] == [len(one) - 1]
    assert (one[-1], two[-1]) == pair.adjectives
    assert [word for word in one if word in pair.nouns] == [pair.nouns[pair.first], pair.nouns[1 - pair.first]]
    assert one[-5:-1] in (["because", "it", "was", "too"], ["because", "it", "was", "so"]) and one.count("it") == 1
    assert max(one.index(noun) for noun in pair.nouns) < one.index("it")
    assert all(text.isascii() and text[0].isupper() and text.endswith(".") for text in pair.texts)


def test_the_right_noun_is_named_first_in_half_of_the_sentences_and_lengths_are_balanced():
    first = [len(pair.nouns[k]) for pair in PAIRS for k in (0, 1) if pair.first == k]
    second = [len(pair.nouns[k]) for pair in PAIRS for k in (0, 1) if pair.first != k]
    assert len(first) == len(second) == 204 and sum(first) == sum(second)     # each noun is right once in either place
