"""The course's own reviews: reproducible, well formed, and free of the short cuts that a made corpus offers."""

import json
import re
from collections import Counter, defaultdict
from functools import cache

import build
import grammar
import probes
import pytest

from course_utils.files.paths import DATA

FOLDER = DATA / "reviews"


KINDS = ("plain", "negation", "order", "distant")
SIZES = {"train": 8000, "validation": 1000, "test": 2000}
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
# The pieces that GPT-2 splits a text into before it merges bytes: a word carries the space before it.
GPT2_PIECE = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


@pytest.fixture(scope="module")
def splits() -> dict[str, list[dict]]:
    return {split: probes.load_split(split) for split in SIZES}


@pytest.fixture(scope="module")
def everything(splits) -> list[dict]:
    return [review for split in SIZES for review in splits[split]]


@pytest.fixture(scope="module")
def bank() -> grammar.Bank:
    return grammar.load_bank()


@pytest.fixture(scope="module")
def probe_table(splits) -> dict[tuple[str, str], float]:
    return {(name, kind): score for name, kind, score in probes.table(splits["train"], splits["test"])}


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def evidence_texts(review: dict) -> list[str]:
    return [review["text"][start:end] for start, end in review["evidence"]]


def opinions_in(review: dict, bank: grammar.Bank) -> list[str]:
    """The evidence spans of a review that are opinions, as the bank writes them (articles and pronouns aside)."""
    known = opinion_wordings(bank)
    return sorted(known[text] for text in evidence_texts(review) if text in known)


def opinion_wordings(bank: grammar.Bank) -> dict[str, str]:
    """Every way an opinion may be written -> the opinion as the bank has it."""
    return wordings_of(bank.phrases)


@cache
def wordings_of(phrases: tuple[grammar.Phrase, ...]) -> dict[str, str]:
    wordings = {}
    for phrase in phrases:
        for me, my in (("me", "my"), ("him", "his"), ("her", "her")):
            wordings[grammar.fill(phrase.text, {"me": me, "my": my})] = phrase.text
        if phrase.form == "adj":
            wordings[grammar.with_article(phrase.text)] = phrase.text
    return wordings


# ------------------------------------------------------------------------------------------ the files
def test_builder_writes_the_committed_files():
    for name, content in build.files(build.build()).items():
        assert (FOLDER / name).read_bytes() == content.encode("utf-8"), f"{name}: run python data/reviews/build.py"


def test_fields_ids_and_sizes(splits):
    fields = ["id", "text", "label", "kind", "evidence", "pair", "frame", "unseen_frame"]
    for split, size in SIZES.items():
        assert len(splits[split]) == size
        assert [review["id"] for review in splits[split]] == [f"{split}-{number:05d}" for number in range(size)]
        assert all(list(review) == fields for review in splits[split])
        assert Counter(review["kind"] for review in splits[split]) == dict.fromkeys(KINDS, size // 4)


def test_labels_are_balanced_in_every_kind_of_every_split(splits):
    for split in SIZES:
        for kind in KINDS:
            labels = probes.labels(probes.of_kind(splits[split], kind))
            assert abs(labels.mean() - 0.5) <= 0.02, (split, kind)


def test_lengths_in_words_and_sentences(splits):
    for reviews in splits.values():
        lengths = sorted(len(review["text"].split()) for review in reviews)
        counts = [len(probes.sentences(review["text"])) for review in reviews]
        assert lengths[0] >= 5 and lengths[-1] <= 120
        assert 28 <= lengths[len(lengths) // 2] <= 42
        assert min(counts) == 1 and max(counts) <= 8
        single = {review["kind"] for review, count in zip(reviews, counts, strict=True) if count == 1}
        assert single == {"plain", "negation", "order"}


def test_the_corpus_is_large_enough(everything, bank):
    deciding = [frame for name, frames in bank.frames.items() if name != "decoy" for frame in frames]
    assert len(deciding) + len(bank.neutral) >= 150
    assert len({frame["id"] for frame in deciding}) == len(deciding)
    for names in (["plain"], ["negation", "contrast"], ["order"]):
        assert sum(len(bank.frames[name]) for name in names) >= 25
    assert len(bank.frames["opinion"]) >= 16 and len(bank.frames["verdict"]) >= 16
    assert len({word for review in everything for word in words(review["text"]) if word[0].isalpha()}) >= 2500
    used = {part for review in everything for part in review["frame"].split("+")}
    assert used == {frame["id"] for frame in deciding}


# ------------------------------------------------------------------------------------------ evidence
def test_evidence_spans_are_sorted_apart_and_on_word_boundaries(everything):
    for review in everything:
        text, end_before = review["text"], 0
        assert review["evidence"]
        for start, end in review["evidence"]:
            assert end_before <= start < end <= len(text), review["id"]
            assert text[start].isalnum() and text[end - 1].isalnum(), review["id"]
            assert start == 0 or not text[start - 1].isalnum(), review["id"]
            assert end == len(text) or not text[end].isalnum(), review["id"]
            end_before = end


def test_every_review_has_an_opinion_as_evidence(everything, bank):
    expected = {"plain": 1, "negation": 1, "order": 2, "distant": 1}
    wordings = opinion_wordings(bank)
    for review in everything:
        found = [text for text in evidence_texts(review) if text in wordings]
        assert len(found) >= expected[review["kind"]], review["id"]
        if review["kind"] != "plain":
            assert len(review["evidence"]) >= 2, review["id"]


def test_no_opinion_begins_a_sentence(everything, bank):
    """So its first letter is small and a space stands before it wherever it is put."""
    wordings = opinion_wordings(bank)
    for review in everything:
        for start, end in review["evidence"]:
            if review["text"][start:end] in wordings:
                assert review["text"][start - 1] == " ", review["id"]


# ------------------------------------------------------------------------------------------ pairs
def test_twins_have_the_same_tokens_and_opposite_labels(splits):
    for reviews in splits.values():
        by_id = {review["id"]: review for review in reviews}
        assert all(review["pair"] for review in reviews if review["kind"] == "order")
        for review in reviews:
            if review["pair"] is None:
                continue
            twin = by_id[review["pair"]]
            assert twin["pair"] == review["id"] and twin["text"] != review["text"]
            assert twin["label"] == 1 - review["label"]
            assert (twin["kind"], twin["frame"]) == (review["kind"], review["frame"])
            assert Counter(words(twin["text"])) == Counter(words(review["text"]))
            assert Counter(GPT2_PIECE.findall(twin["text"])) == Counter(GPT2_PIECE.findall(review["text"]))


def test_pairs_occur_in_three_kinds(everything):
    counts = Counter(review["kind"] for review in everything if review["pair"])
    assert counts["order"] == sum(SIZES.values()) // 4
    assert counts["negation"] >= 500 and counts["distant"] >= 300 and counts["plain"] == 0


def test_order_gaps_vary_and_both_directions_occur_equally_often(splits, bank):
    wordings, gaps = opinion_wordings(bank), []
    for reviews in splits.values():
        order = probes.of_kind(reviews, "order")
        later = sum(review["frame"].startswith("later") for review in order)
        assert abs(later / len(order) - 0.5) <= 0.02
        for review in order:
            (_, end), (start, _) = [span for span in review["evidence"]
                                    if review["text"][slice(*span)] in wordings]
            gaps.append(len(words(review["text"][end:start])))
    assert min(gaps) >= 3 and max(gaps) >= 25
    assert len(set(gaps)) >= 20


# ------------------------------------------------------------------------------------------ crossing and decoys
def test_distant_crosses_opinion_and_verdict(splits, bank):
    turns = {frame["id"]: frame["turn"] for frame in bank.frames["verdict"]}
    for reviews in splits.values():
        cells, before, gaps = Counter(), 0, set()
        single = [review for review in probes.of_kind(reviews, "distant") if review["pair"] is None]
        wordings = opinion_wordings(bank)
        for review in single:
            turned = turns[review["frame"].split("+")[1]] in evidence_texts(review)
            cells[review["label"] ^ turned, turned] += 1
            in_sentence = [sum(len(s) + 1 for s in probes.sentences(review["text"])[:n])
                           for n in range(len(probes.sentences(review["text"])) + 1)]
            places = [sum(start >= edge for edge in in_sentence) for start, _ in review["evidence"]]
            gaps.add(places[-1] - places[0] - 1)
            before += review["text"][slice(*review["evidence"][0])] not in wordings
        assert len(cells) == 4
        assert max(cells.values()) - min(cells.values()) <= 0.02 * len(single)
        assert 0.25 < before / len(single) < 0.55                      # the verdict comes first
        assert gaps <= {0, 1, 2, 3, 4, 5}                              # never in one sentence
        assert {0, 1, 2} <= gaps and (len(reviews) < 8000 or len(gaps) == 6)


def test_single_negations_flip_as_often_as_not(splits):
    for reviews in splits.values():
        single = [review for review in probes.of_kind(reviews, "negation") if review["pair"] is None]
        flips = probes.labels([review for review in single if review["frame"].startswith("flip")])
        stays = probes.labels([review for review in single if review["frame"].startswith("stay")])
        assert len(flips) + len(stays) == len(single) and abs(len(flips) - len(stays)) <= 0.02 * len(single)
        assert abs(flips.mean() - 0.5) <= 0.02 and abs(stays.mean() - 0.5) <= 0.02


def test_decoys_are_in_a_fifth_of_each_kind_and_tell_nothing(splits, bank):
    openings = tuple(frame["text"].split("{")[0] for frame in bank.frames["decoy"])
    for kind in KINDS:
        reviews = probes.of_kind(splits["train"], kind)
        with_decoy = [review for review in reviews if any(opening in review["text"] for opening in openings)]
        assert 0.12 <= len(with_decoy) / len(reviews) <= 0.26, kind
        assert abs(probes.labels(with_decoy).mean() - 0.5) <= 0.06, kind


# ------------------------------------------------------------------------------------------ splits
def test_splits_share_no_text_and_no_combination_of_frame_and_opinions(splits, bank):
    texts = [{review["text"] for review in reviews} for reviews in splits.values()]
    assert sum(map(len, texts)) == len(set().union(*texts)) == sum(SIZES.values())
    combinations = [{(review["frame"], *opinions_in(review, bank)) for review in reviews} for reviews in splits.values()]
    assert sum(map(len, combinations)) == len(set().union(*combinations))


def test_unseen_frame_says_what_is_so(splits):
    trained = {part for review in splits["train"] for part in review["frame"].split("+")}
    for reviews in splits.values():
        for review in reviews:
            assert review["unseen_frame"] == bool(set(review["frame"].split("+")) - trained), review["id"]
    for kind in KINDS:
        share = [review["unseen_frame"] for review in probes.of_kind(splits["test"], kind)]
        assert 0.2 <= sum(share) / len(share) <= 0.3
    assert not any(review["unseen_frame"] for review in splits["validation"])


def test_every_deciding_word_is_learnt_in_training(splits, bank):
    """Each opinion at least twenty times and in at least three kinds; each other deciding word too is in training."""
    wordings, times, kinds, seen = opinion_wordings(bank), Counter(), defaultdict(set), Counter()
    for review in splits["train"]:
        seen.update(words(review["text"]))
        for text in evidence_texts(review):
            if text in wordings:
                times[wordings[text]] += 1
                kinds[wordings[text]].add(review["kind"])
    for phrase in bank.phrases:
        assert times[phrase.text] >= 20, phrase.text
        assert len(kinds[phrase.text]) >= 3, phrase.text
    for split in ("validation", "test"):
        for review in splits[split]:
            for text in evidence_texts(review):
                assert all(seen[word] >= 20 for word in words(text)), (review["id"], text)


def test_some_neutral_words_are_held_out(splits):
    trained = {word for review in splits["train"] for word in words(review["text"])}
    tested = {word for review in splits["test"] for word in words(review["text"])}
    assert len(tested - trained) >= 50


# ------------------------------------------------------------------------------------------ the vocabulary
def test_polarities_match_in_number_length_and_first_letter(bank):
    groups = defaultdict(lambda: ([], []))
    for phrase in bank.phrases:
        groups[phrase.form, phrase.aspect][phrase.polarity].append(phrase.text)
    for group, (negative, positive) in groups.items():
        assert len(negative) == len(positive) >= 8, group
        mean = [sum(map(len, texts)) / len(texts) for texts in (negative, positive)]
        assert abs(mean[0] - mean[1]) <= 1, (group, mean)
        vowels = [sum(text[0] in "aeiou" for text in texts) for texts in (negative, positive)]
        assert abs(vowels[0] - vowels[1]) <= 1, (group, vowels)
        assert not set(negative) & set(positive)
    for polarity in (0, 1):
        assert len({phrase.text for phrase in bank.phrases if phrase.polarity == polarity}) >= 60


# ------------------------------------------------------------------------------------------ language
def test_capitals_points_articles_and_no_doubled_words(everything):
    vowel_article = re.compile(r"\ba [aeiou]\w*", re.I)
    other_article = re.compile(r"\ban (?![aeiou]|hour|heir)\w*", re.I)
    soft = ("a uni", "a eu", "a one", "a use", "a us", "a ute", "a uku", "a ewe")
    for review in everything:
        text = review["text"]
        assert not re.search(r"\b(\w+) \1\b", text, re.I), text
        assert not re.search(r"\s{2}|[{}\[\]]|\s[.,;:!?]|[.,;:!?]{2}", text), text
        assert all(sentence[0].isupper() and sentence[-1] in ".!?" for sentence in probes.sentences(text)), text
        assert not other_article.search(text), text
        assert all(found.lower().startswith(soft) for found in vowel_article.findall(text)), text


def test_no_sentence_comes_twice(everything):
    for review in everything:
        lines = probes.sentences(review["text"])
        assert len(lines) == len(set(lines)), review["id"]


# ------------------------------------------------------------------------------------------ the probes
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(probes.probes()))
def test_probe_stays_near_one_half(probe_table, name, kind):
    assert probe_table[name, kind] <= 0.60


@pytest.mark.parametrize("name", ["first sentence", "last sentence"])
def test_no_single_end_of_a_distant_review_decides(probe_table, name):
    assert probe_table[name, "distant"] <= 0.60


@pytest.mark.parametrize("kind", ["order", "distant"])
@pytest.mark.parametrize("name", ["1-3-grams, this kind", "1-3-grams, all kinds"])
def test_short_word_sequences_do_not_decide_order_or_distant(probe_table, name, kind):
    assert probe_table[name, kind] <= 0.65


@pytest.mark.parametrize("kind", ["negation", "order", "distant"])
def test_a_sentiment_lexicon_fails(probe_table, kind):
    assert 0.4 <= probe_table["lexicon", kind] <= 0.6


def test_plain_reviews_mean_what_they_say(probe_table):
    assert probe_table["lexicon", "plain"] >= 0.95
    assert probe_table["naive Bayes, this kind", "plain"] >= 0.95


def test_the_probes_can_find_a_leak(splits):
    """A corpus with one planted short cut each: were the probes blind, their silence would mean nothing."""
    def planted(review: dict) -> dict:
        extra = "It rained! " if review["label"] else "It was dry. "
        shifted = [[start + len(extra), end + len(extra)] for start, end in review["evidence"]]
        return review | {"text": extra + review["text"], "evidence": shifted}

    train, test = ([planted(r) for r in probes.of_kind(splits[s], "order")] for s in ("train", "test"))
    assert probes.probes()["punctuation"](train, test) > 0.95
    assert probes.probes()["text without evidence"](train, test) > 0.95
    assert probes.text_probe(probes.first_sentence, train, test) > 0.95


def test_samples_show_forty_of_each_kind():
    text = (FOLDER / "SAMPLES.md").read_text(encoding="utf-8")
    for kind in KINDS:
        section = text.split(f"## {kind}\n")[1].split("\n## ")[0]
        assert section.count("\n- **") == 40
        assert all("): " in line for line in section.splitlines() if line.startswith("- "))
    assert json.dumps(text)
