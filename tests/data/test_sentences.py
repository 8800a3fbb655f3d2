"""The short sentences: reproducible, well formed, apart from what a model is tested on, and without cheap clues.

`pytest tests/data/test_sentences.py -s` prints what models that see only a part of each sentence make of them.
"""

import json
import re
from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest
from sentence_corpus import FOLDER, KEPT_APART, SIZES, build, by_name, files, is_known, owner, runs, words
from sentence_grammar import BANK, KINDS, draw, is_free, load_bank
from sentence_words import comparative, finished, gerund, superlative, third_person
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from course_utils.data import load_reviews, pairs
from course_utils.files.paths import DATA

pytestmark = pytest.mark.slow

FIELDS = ["id", "text", "label", "kind", "evidence", "pair", "construction", "unseen"]
SMALL_WORDS = set(
    "not no never nobody nothing none neither nor without hardly cannot i me my we us our you your he his him she her it "
    "its they them their this that these those there a an the and but or yet so though although despite even if as than for "
    "to of in on at by with from all more less most".split())


def read_lines(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


@cache
def rows(split):
    return read_lines(f"sentences/{split}")


@cache
def everything():
    return [row for split in SIZES for row in rows(split)]


@cache
def bank():
    return load_bank()


# ------------------------------------------------------------------------------------------ the files
def test_the_builder_writes_the_committed_files():
    for name, content in files(build()).items():
        assert (FOLDER / name).read_bytes() == content.encode("utf-8"), f"{name}: run python data/sentences/build.py"


def test_the_loader_gives_the_three_splits():
    sentences = load_reviews("sentences")
    assert {split: len(sentences[split]) for split in sentences} == {split: sum(size) for split, size in SIZES.items()}
    for split in sentences.values():
        assert sorted(split.column_names) == sorted(FIELDS) and split.features == sentences["train"].features
        assert len(pairs(split)) * 2 >= len(split) / 3


def test_fields_ids_sizes_and_balance():
    for split, sizes in SIZES.items():
        assert [row["id"] for row in rows(split)] == [f"{split}-{number:05d}" for number in range(sum(sizes))]
        assert all(list(row) == FIELDS for row in rows(split))
        counts = Counter((row["kind"], row["label"]) for row in rows(split))
        assert counts == {(kind, label): size // 2 for kind, size in zip(KINDS, sizes) for label in (0, 1)}
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 4_000_000


def test_sentences_are_short_and_none_comes_twice():
    assert all(4 <= len(row["text"].split()) <= 35 for row in everything())
    assert all(1 <= len(re.findall(r"[.!?](?=\"?,? |\"?$)", row["text"])) <= 3 for row in everything())
    assert len({row["text"] for row in everything()}) == len(everything())


def test_evidence_spans_are_in_order_and_have_no_white_space_around_them():
    for row in everything():
        text, end_before = row["text"], 0
        assert row["evidence"], row
        for start, end in row["evidence"]:
            assert end_before <= start < end <= len(text) and text[start:end] == text[start:end].strip(), row
            end_before = end


def test_partners_have_opposite_labels_one_construction_and_one_split():
    for split in SIZES:
        by_id = {row["id"]: row for row in rows(split)}
        for row in rows(split):
            if row["pair"]:
                partner = by_id[row["pair"]]
                assert partner["pair"] == row["id"] and partner["label"] == 1 - row["label"]
                assert (partner["kind"], partner["construction"]) == (row["kind"], row["construction"])


# ------------------------------------------------------------------------------------------ breadth
def test_the_bank_is_broad():
    assert len(by_name(bank())) >= 400
    texts = {opinion.text for opinions in bank().opinions.values() for opinion in opinions}
    assert len(texts) >= 550
    for (table, sign), opinions in bank().opinions.items():
        assert len(opinions) == len(bank().opinions[table, not sign]) >= 6, table
        assert not {o.text for o in opinions} & {o.text for o in bank().opinions[table, not sign]}
    assert len({row["construction"] for row in everything()}) >= 400
    assert max(Counter(row["construction"] for row in everything()).values()) <= 0.015 * len(everything())


def test_both_labels_of_every_construction_can_be_drawn():
    for way in bank().constructions:
        assert {s.label for s in draw(way, bank(), Random(f"both {way.template}"))} == {0, 1}, way.name


def test_what_is_unseen_is_not_in_training():
    held_out = {o.text for opinions in bank().opinions.values() for o in opinions if o.held_out}
    known = {row["construction"] for row in rows("train")}
    assert 30 <= len(held_out) <= 90
    for split in ("validation", "test"):
        for row in rows(split):
            assert ("construction" in row["unseen"]) == (row["construction"] not in known), row
    assert not any(row["unseen"] for row in rows("train"))
    counts = Counter(row["unseen"] for row in rows("test"))
    assert counts["construction"] + counts["construction and opinion"] >= 300
    assert counts["opinion"] >= 150 and counts[""] >= 300
    names = by_name(bank())
    for name, ways in names.items():
        if ways[0].kind != "plain" and not all(is_free(way) for way in ways):
            there = {split for split in SIZES if any(row["construction"] == name for row in rows(split))}
            assert there <= {owner(ways)}, name


@pytest.mark.parametrize("name", KEPT_APART)
def test_no_run_of_five_words_is_shared_with_what_is_for_testing(name):
    if not (DATA / f"{name}.jsonl").exists():
        pytest.skip(f"there is no data/{name}.jsonl")
    known = set().union(*(runs(row["text"]) for row in read_lines(name)))
    shared = [row["id"] for row in everything() if runs(row["text"]) & known]
    assert not shared, f"{name}: {shared}; run python data/sentences/build.py"


def test_a_sentence_for_testing_is_known_even_with_a_word_changed():
    short = [row["text"] for row in read_lines("ordinary") if len(row["text"].split()) in (6, 7, 8)]
    assert len(short) > 20
    for text in short:
        assert is_known(text) and is_known(" ".join(["Otters", *text.split()[1:]])), text
    assert not is_known("Seven otters rehearsed a waltz behind the planetarium.")


def test_a_construction_that_says_nothing_about_its_sign_is_refused(tmp_path):
    for path in BANK.iterdir():
        content = path.read_text("utf-8").replace("{is} [hardly|truly] {adj}.", "{is} hardly {adj}.")
        (tmp_path / path.name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match="hardly: .* has neither [+] or - nor"):
        load_bank(tmp_path)


# ------------------------------------------------------------------------------------------ language
def test_capitals_articles_and_points():
    for row in everything():
        text = row["text"]
        assert not re.search(r"[{}\[\]<>|~\0]|\s\s|\s[.,;:!?]|[.,;:]{2}|\b(\w+) \1\b", text), text
        assert text[-1] in '.!?"' and (text[0].isupper() or text[0] == '"' and text[1].isupper()), text
        assert not re.search(r"[.!?] [a-z]", text), text
        assert not re.search(r"\b[Aa] [aeio]", text.replace("a one", "")), text
        assert not re.search(r"\b[Aa]n [bcdfgjklmnpqrstvwxyz]", text), text


def test_forms_of_words():
    assert [third_person(v) for v in ("fall flat", "miss its mark", "fly by", "pay off", "go on")] == [
        "falls flat", "misses its mark", "flies by", "pays off", "goes on"]
    assert [gerund(v) for v in ("make me laugh", "win me over", "put me off", "bore me", "annoy me", "let me down")] == [
        "making me laugh", "winning me over", "putting me off", "boring me", "annoying me", "letting me down"]
    assert [comparative(a) for a in ("dull", "funny", "stale")] == ["duller", "funnier", "staler"]
    assert comparative("gripping") == "more gripping"
    assert [superlative(a) for a in ("dull", "lively", "moving")] == ["the dullest", "the liveliest", "the most moving"]


def test_a_finished_text_has_articles_capitals_contractions_and_spans():
    text, spans = finished([("it", False), (" ", False), ("is", False), (" ", False), ("far from", True), (" a ", False),
                            ("engaging", True), (" film.", False)], lead="Honestly,", after="that was on Sunday.")
    assert text == "Honestly, it's far from an engaging film. That was on Sunday."
    assert [text[start:end] for start, end in spans] == ["far from", "engaging"]


def test_terrifying_praises_a_horror_film_only():
    for row in everything():
        for word in ("terrifying", "spine-tingling", "chilling", "unscary"):
            if word in row["text"]:
                assert re.search("horror|ghost|vampire", row["text"]), row["text"]


# ------------------------------------------------------------------------------------------ cheap clues
def is_small(word):
    return word in SMALL_WORDS or word.endswith("n't")


def length_steps(row):
    return " ".join(f"from{step}" for step in range(1, 36, 2) if len(words(row["text"])) >= step)


def opinions(row):
    """The words of the sentence that stand in the bank's opinions, without what turns them."""
    known = opinion_words()
    return " ".join(["_", *(word for word in words(row["text"]) if word in known)])


@cache
def opinion_words():
    small = SMALL_WORDS | {"film", "is", "was"}
    return {word for each in bank().opinions.values() for o in each for word in words(f"{o.text} {o.past}")} - small


VIEWS = {
    "all words": lambda row: " ".join(words(row["text"])),
    "length": length_steps,
    "first word": lambda row: words(row["text"])[0],
    "last word": lambda row: words(row["text"])[-1],
    "punctuation": lambda row: " ".join(["_", *re.findall(r"[^\w\s']", row["text"])]),
    "small words": lambda row: " ".join(["_", *(word for word in words(row["text"]) if is_small(word))]),
    "opinions": opinions,
    "construction": lambda row: row["construction"],
}


def accuracies(train, test, view):
    """Accuracy by kind, and of all but plain, of TF-IDF with logistic regression on what `view` shows of each sentence."""
    model = make_pipeline(TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True), LogisticRegression(max_iter=1000))
    train, test = ([row for row in part if row["kind"] != "plain"] for part in (train, test))
    model.fit([view(row) for row in train], [row["label"] for row in train])
    right = model.predict([view(row) for row in test]) == [row["label"] for row in test]
    kinds = np.array([row["kind"] for row in test])
    return {"all but plain": right.mean()} | {kind: right[kinds == kind].mean() for kind in KINDS[1:]}


@pytest.mark.parametrize("name", VIEWS)
def test_a_part_of_a_sentence_does_not_give_its_label_away(name):
    scores = accuracies(rows("train"), rows("test"), VIEWS[name])
    print(f"\n{name:12}" + "".join(f"  {kind} {100 * score:.0f}" for kind, score in scores.items()))
    assert scores["all but plain"] <= (0.62 if name in ("all words", "opinions") else 0.56)
    assert max(scores.values()) <= 0.68


@pytest.mark.parametrize("name, clue", [
    ("all words", "Frankly, {}"), ("length", 6 * "so " + "{}"), ("first word", "Frankly, {}"), ("last word", "{} honestly"),
    ("punctuation", "{}!"), ("small words", "{} not")])
def test_a_clue_would_be_found(name, clue):
    planted = [[row | {"text": clue.format(row["text"])} if row["label"] and number % 3 else row
                for number, row in enumerate(rows(split))] for split in ("validation", "test")]
    assert accuracies(*planted, VIEWS[name])["all but plain"] > 0.65


def test_samples_show_forty_of_each_kind():
    text = (FOLDER / "SAMPLES.md").read_text("utf-8")
    assert [text.split(f"## {kind}\n")[1].split("\n## ")[0].count("\n- **") for kind in KINDS] == [40] * len(KINDS)
