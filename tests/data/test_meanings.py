"""The sentences for asking what a pretrained model knows: balanced, unique, and saying what their labels say."""

import re
from collections import Counter

from course_utils.data.meanings import load_pronouns, load_senses

SENSES, PAIRS = load_senses(), load_pronouns()


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def test_twelve_words_half_of_them_of_films_have_two_senses_in_equal_numbers():
    by_word = Counter((one.word, one.film) for one in SENSES)
    assert len(by_word) == 12 and sum(film for _, film in by_word) == 6
    by_sense = Counter((one.word, one.sense, one.misleading) for one in SENSES)
    assert len(by_sense) == 12 * 2 * 2 and all(count == (2 if odd else 10) for (*_, odd), count in by_sense.items())
    assert len({one.text for one in SENSES}) == len(SENSES)
    assert all(words(one.text).count(one.word) == 1 for one in SENSES)


def test_in_a_pair_the_adjective_alone_differs_and_neither_place_nor_length_tells_the_noun():
    assert len({text for pair in PAIRS for text in pair.texts}) == 2 * len(PAIRS) == 408
    orders = Counter((pair.nouns, pair.adjectives, pair.first) for pair in PAIRS)
    assert set(orders.values()) == {1} and all((nouns, both, 1 - first) in orders for nouns, both, first in orders)
    assert Counter(pair.second_set for pair in PAIRS) == {False: 132, True: 72}
    assert Counter(pair.fits_both for pair in PAIRS if pair.second_set) == {True: 36, False: 36}
    assert set(Counter(pair.theme for pair in PAIRS).values()) == {6}
    for pair in PAIRS:
        one, two = map(words, pair.texts)
        assert one[:-1] == two[:-1] and (one[-1], two[-1]) == pair.adjectives and one.count("it") == 1
        assert [word for word in one if word in pair.nouns] == [pair.nouns[pair.first], pair.nouns[1 - pair.first]]
        assert max(one.index(noun) for noun in pair.nouns) < one.index("it")
