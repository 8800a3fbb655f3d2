"""The translation corpus: reproducible, aligned, in correct French, and with no way around the antecedent of a pronoun."""

import re
from collections import Counter
from functools import cache

import pytest
from french import corpus
from french_checks import noun_features, problems
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from course_utils.data.translations import (
    join_english,
    join_french,
    load_translations,
    pack_alignment,
    split_english,
    split_french,
    unpack_alignment,
)
from course_utils.files.paths import DATA

pytestmark = pytest.mark.slow

SPLITS = load_translations()
EVERYTHING = [row for split in SPLITS.values() for row in split]
KINDS = ("agreement", "adjective", "negation", "numbers", "relative", "object", "question", "long", "pronoun")
MARKS = set(".,?!'")


def test_the_builder_writes_the_committed_files():
    for name, content in corpus.files(corpus.build()).items():
        path = DATA / "translation" / name
        assert path.read_bytes() == content.encode("utf-8"), f"{name}: run python data/translation/build.py"


def test_sizes_kinds_and_lengths():
    assert {split: len(rows) for split, rows in SPLITS.items()} == {"train": 14000, "validation": 1000, "test": 2000}
    assert sum(path.stat().st_size for path in (DATA / "translation").glob("*.jsonl")) < 10e6
    for split in SPLITS.values():
        assert set(split["kind"]) == set(KINDS)
        words = [sum(token not in MARKS for token in tokens) for tokens in split["source_tokens"]]
        assert min(words) >= 3 and max(words) <= 40
        assert sum(count > 20 for count in words) >= 0.15 * len(words)


def test_texts_and_tokens_are_two_forms_of_one_thing():
    for row in EVERYTHING:
        assert join_english(row["source_tokens"]) == row["source"] and join_french(row["target_tokens"]) == row["target"]
    assert split_english("The actress's film didn't end at five o'clock.") == [
        "The",
        "actress",
        "'s",
        "film",
        "did",
        "n't",
        "end",
        "at",
        "five",
        "o'clock",
        ".",
    ]
    assert split_french("Qu\u2019est-ce que l'actrice n'a pas vu aujourd'hui\u00a0?") == [
        "Qu'",
        "est-ce",
        "que",
        "l'",
        "actrice",
        "n'",
        "a",
        "pas",
        "vu",
        "aujourd'hui",
        "?",
    ]
    assert join_french(["Est-ce", "qu'", "il", "dort", "?"]) == "Est-ce qu'il dort\u00a0?"
    assert unpack_alignment(pack_alignment([(0, 0), (1, 12)])) == [[0, 0], [1, 12]]


def test_no_sentence_is_there_twice_and_none_has_two_translations():
    assert len({row["source"] for row in EVERYTHING}) == len(EVERYTHING) == len({row["id"] for row in EVERYTHING})


def test_no_word_is_new_in_the_other_splits():
    for column in ("source_tokens", "target_tokens"):
        known = {token.lower() for tokens in SPLITS["train"][column] for token in tokens}
        for split in ("validation", "test"):
            assert {token.lower() for tokens in SPLITS[split][column] for token in tokens} <= known


def test_half_of_the_test_pairs_combine_words_as_no_training_pair_does():
    assert not any(SPLITS["train"]["unseen"]) and not any(SPLITS["validation"]["unseen"])
    assert 0.45 < sum(SPLITS["test"]["unseen"]) / 2000 <= 0.5
    for kind in KINDS:
        assert (
            0.4
            < sum(row["unseen"] for row in SPLITS["test"] if row["kind"] == kind)
            / sum(kind == other for other in SPLITS["test"]["kind"])
            < 0.6
        )


# alignments


def test_alignments_are_in_range_and_cover_the_words(capsys):
    loose = Counter()
    for row in EVERYTHING:
        links = row["alignment"]
        assert links == sorted(links) and len({tuple(link) for link in links}) == len(links)
        for side, column in enumerate(("source_tokens", "target_tokens")):
            size = len(row[column])
            linked = {link[side] for link in links}
            assert max(linked) < size and min(linked) >= 0
            loose[column] += size - len(linked)
            loose["all " + column] += size
    shares = {column: loose[column] / loose["all " + column] for column in ("source_tokens", "target_tokens")}
    with capsys.disabled():
        english, french = (f"{shares[column]:.2%}" for column in ("source_tokens", "target_tokens"))
        print(f"\nunaligned: {english} of the English tokens, {french} of the French ones")
    assert max(shares.values()) < 0.01


CERTAIN = {
    "film": "film",
    "scene": "scène",
    "sister": "sœur",
    "Paul": "Paul",
    "never": "jamais",
    "who": "qui",
    "which": "quel",
    "whose": "dont",
    "where": "où",
    "red": "rouge",
    "door": "porte",
    ".": ".",
    "?": "?",
    "and": "et",
    "because": "parce",
}


def test_words_with_one_translation_are_linked_to_it():
    for row in EVERYTHING:
        partners = {}
        for i, j in row["alignment"]:
            partners.setdefault(i, []).append(row["target_tokens"][j].lower())
        for i, word in enumerate(row["source_tokens"]):
            if word in CERTAIN and not (word == "and" and {"hundred", "then"} & set(row["source_tokens"])):
                expected = CERTAIN[word].lower()
                assert any(expected in partner for partner in partners[i]), (row["source"], word)
            if word in ("n't", "not", "never"):
                assert {"ne", "n'"} & set(partners[i]) and len(partners[i]) >= 2, row["source"]


# French


def test_everything_agrees_and_is_elided():
    wrong = {row["target"]: found for row in EVERYTHING if (found := problems(row["target_tokens"]))}
    assert wrong == {}, f"{len(wrong)}: {list(wrong.items())[:12]}"


@pytest.mark.parametrize(
    "wrong",
    [
        "La film était long .",
        "Le film était longue .",
        "Les films était longs .",
        "Une petit maison blanche .",
        "Elle est allé au cinéma .",
        "Les actrices sont arrivés .",
        "C' est la scène que nous avons vu .",
        "Il a vu le actrice .",
        "Il va à le cinéma .",
        "Le livre de le acteur .",
        "Je ai ri .",
        "Ma amie a ri .",
        "Ce homme a ri .",
        "Cette homme a ri .",
        "L' héros a ri .",
        "Un beau homme dort .",
        "Il a a ri .",
        "Une maison blanc .",
        "Des grandes maisons blanc .",
    ],
)
def test_the_checks_find_mistakes(wrong):
    wrong = wrong.replace("amie", "écharpe")
    assert problems(wrong.split())


def test_french_spelling():
    for row in EVERYTHING:
        assert re.fullmatch(r"[A-ZÀÉÊ].*[.?!]", row["target"]) and "’" not in row["target"]
        assert not re.search(r"(?<!\u00a0)[?!:;]|  | [.,]|' ", row["target"]), row["target"]
        assert not re.search(r"\boe|soeur|oeuvr", row["target"])


def test_plural_indefinites_before_an_adjective_are_de_and_negated_objects_too():
    for row in EVERYTHING:
        assert not re.search(
            r"\bdes (?:beaux|belles|nouveaux|nouvelles|vieux|vieilles|bons|bonnes|petits|petites|grandes?)\b",
            re.sub(r"(?:fin|titre|scène|début|acteurs?|partir|parlé|tous?) des", "", row["target"]),
        ), row["target"]
        assert not re.search(r"\b(?:ne|n') ?\w+ (?:pas|plus|jamais) (?:un|une|des|du) ", row["target"]), row["target"]


# pronouns

PRONOUNS = {split: [row for row in rows if row["kind"] == "pronoun"] for split, rows in SPLITS.items()}


def test_the_four_pronouns_are_balanced_and_twins_are_in_one_split():
    for rows in PRONOUNS.values():
        forms = Counter(row["target_tokens"][row["pronoun_target"]].lower() for row in rows)
        assert set(forms) == {"il", "elle", "ils", "elles"}
        assert forms["il"] == forms["elle"] and forms["ils"] == forms["elles"]
        assert min(forms.values()) > 0.14 * len(rows)
        by_id = {row["id"]: row for row in rows}
        for row in rows:
            twin = by_id[row["pair"]]
            assert twin["pair"] == row["id"] and {row["gender"], twin["gender"]} == {"m", "f"}
            differing = [
                i for i, (a, b) in enumerate(zip(row["source_tokens"], twin["source_tokens"], strict=True)) if a != b
            ]
            assert set(differing) <= {row["antecedent"], row["antecedent"] - 1, row["antecedent"] - 2}  # 'a' and 'an'


def test_the_antecedent_is_what_its_row_says():
    for row in (row for rows in PRONOUNS.values() for row in rows):
        assert row["source_tokens"][row["pronoun"]] in ("It", "They")
        assert [row["pronoun"], row["pronoun_target"]] in row["alignment"]
        assert [row["antecedent"], row["antecedent_target"]] in row["alignment"]
        word = row["target_tokens"][row["antecedent_target"]]
        features = noun_features(word) or noun_features(row["target_tokens"][row["antecedent_target"] + 1])
        assert features[0] == row["gender"]
        between = row["source_tokens"][row["antecedent"] : row["pronoun"]]
        assert row["sentences"] == between.count(".") >= 1 and row["distance"] == len(between)
        others = row["source_tokens"][: row["pronoun"]]
        assert not {"it", "It", "they", "They"} & set(others)


@cache
def genders(split: str) -> list[tuple[list[str], str]]:
    """The genders of the French nouns before the pronoun, in their order, and the antecedent's."""
    return [
        (
            [features[0] for token in row["target_tokens"][: row["pronoun_target"]] if (features := noun_features(token))],
            row["gender"],
        )
        for row in PRONOUNS[split]
    ]


@pytest.mark.parametrize("place", [*range(5), *range(-5, 0)])
def test_no_position_of_a_noun_gives_the_gender_away(place):
    guesses = [0.5 if not -len(found) <= place < len(found) else found[place] == gender for found, gender in genders("test")]
    assert 0.4 < sum(guesses) / len(guesses) <= 0.64, f"noun {place}: {sum(guesses) / len(guesses):.1%}"


def test_the_majority_of_the_genders_and_their_number_say_little():
    guesses = [
        0.5 if found.count("m") == found.count("f") else (found.count("f") > found.count("m")) == (gender == "f")
        for found, gender in genders("test")
    ]
    assert sum(guesses) / len(guesses) < 0.7  # the antecedent is one of the nouns that are counted


@pytest.mark.parametrize("part", ["last sentence", "all but the antecedent", "words after the antecedent"])
def test_partial_input_stays_near_chance(part):
    def text(row: dict) -> str:
        tokens = list(row["source_tokens"])
        if part == "last sentence":
            return " ".join(tokens[row["pronoun"] :])
        if part == "words after the antecedent":
            return " ".join(tokens[row["antecedent"] + 1 :])
        tokens[row["antecedent"]] = ""
        return re.sub(r"\ban\b", "a", " ".join(tokens))

    vectors = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+")
    model = LogisticRegression(max_iter=200).fit(
        vectors.fit_transform(map(text, PRONOUNS["train"])), [row["gender"] for row in PRONOUNS["train"]]
    )
    score = model.score(vectors.transform(map(text, PRONOUNS["test"])), [row["gender"] for row in PRONOUNS["test"]])
    assert 0.4 <= score <= 0.6, score
