"""Byte pairs, and what they share with the words of the other tokenizer."""

import json
import os
from collections import Counter

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import proof

from course_utils.byte_pairs import BPETokenizer, merge
from course_utils.tokenization import Token, Tokenizer, WordTokenizer

any_text = st.text(st.characters(exclude_categories=()))                   # every code point, lone surrogates too
texts = ["A dull, dull film.", "Not a dull minute!", "I can't say it's dull.<br /><br />Moving, though."]


def test_a_save_that_is_broken_off_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "vocabulary.json"
    WordTokenizer.train(texts).save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    for made in (WordTokenizer.train([*texts, "naïve naïve"]), BPETokenizer()):
        for step in ("fsync", "replace"):
            with monkeypatch.context() as patch:
                patch.setattr(os, step, full)
                with pytest.raises(OSError, match="No space left"):
                    made.save(path)
            assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == ["vocabulary.json"]


def test_a_file_of_another_kind_is_refused(tmp_path):
    WordTokenizer.train(texts).save(tmp_path / "words.json")
    BPETokenizer().save(tmp_path / "pairs.json")
    (tmp_path / "list.json").write_text("[1, 2]")
    for name in ("pairs.json", "list.json"):
        with pytest.raises(ValueError, match=f"{name} is not a word vocabulary"):
            WordTokenizer.load(tmp_path / name)
    with pytest.raises(ValueError, match="words.json holds no byte pair merges"):
        BPETokenizer.load(tmp_path / "words.json")


KINDS = [WordTokenizer.train(texts, min_freq=1), BPETokenizer.train(texts, 270)]


@pytest.mark.parametrize("tokenizer", KINDS, ids=lambda tokenizer: tokenizer.kind)
def test_every_kind_of_tokenizer_offers_the_same(tokenizer, tmp_path):
    assert isinstance(tokenizer, Tokenizer) and tokenizer.pad_id == 0 and tokenizer.unk_id in (1, None)
    for text in [*texts, "", "Ein naïver 電影 👍🏽, <br /> \ud800!"]:
        ids, tokens = tokenizer.encode(text), tokenizer.tokenize(text)
        assert len(tokens) == len(ids) and all(0 < i < tokenizer.vocab_size for i in ids)
        assert all(text[token.start : token.end].lower() == token.text.lower() for token in tokens)
        assert tokenizer.decode(ids) == text or tokenizer.kind == "words"
        tokenizer.save(tmp_path / "saved.json")
        again = type(tokenizer).load(tmp_path / "saved.json")
        assert again.encode(text) == ids and again.vocab_size == tokenizer.vocab_size


def test_a_token_of_byte_pairs_has_the_characters_that_its_bytes_are_of():
    tokenizer = BPETokenizer.train(["dull dull"], 260)                       # merges: d-u, du-l, dul-l
    assert tokenizer.tokenize("dull, é") == [
        Token("dull", 0, 4), Token(",", 4, 5), Token(" ", 5, 6), Token("é", 6, 7), Token("é", 6, 7)]  # é: two bytes, two ids
    assert tokenizer.tokenize("") == []


@pytest.fixture(scope="session")
def corpus(root):
    lines = (root / "data" / "reviews" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


@pytest.fixture(scope="session")
def trained(corpus):
    return BPETokenizer.train(corpus, 1000)


@proof
@given(text=any_text, part=st.integers(0, 200))
@example(text="\udfff dull", part=0)
def test_any_text_comes_back_unchanged_with_merges(trained, corpus, text, part):
    mixed = text + corpus[part] + text
    assert trained.decode(trained.encode(text)) == text
    assert trained.decode(trained.encode(mixed)) == mixed


def library_tokenizer(corpus, vocab_size):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=["<pad>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    library.train_from_iterator(corpus, trainer)
    return library


def test_merges_and_ids_are_those_of_the_tokenizers_library(trained, corpus):
    library = library_tokenizer(corpus, 1000)
    ids = library.get_vocab()
    library_merges = [(ids[left], ids[right]) for left, right in json.loads(library.to_str())["model"]["merges"]]
    assert trained.merges == library_merges
    assert trained.vocab_size == library.get_vocab_size() == 1000
    # texts it was not trained on, too
    for text in [*corpus[:300], *texts, "Naïve — 電影 🎬 9/10!!\n\n  Two  spaces.", "\tI'LL say we're", ""]:
        assert trained.encode(text) == library.encode(text).ids


def test_merging_stops_when_no_pair_is_left():
    tokenizer = BPETokenizer.train(["aaaa"], 1000)
    assert tokenizer.encode("aaaa") == [tokenizer.vocab_size - 1]
    assert tokenizer.vocab_size == 259
    assert BPETokenizer.train([], 1000).vocab_size == 257


def test_merge_replaces_pairs_from_the_left():
    assert merge([1, 2, 1, 2, 3], (1, 2), 9) == [9, 9, 3]
    assert merge([1, 1, 1], (1, 1), 9) == [9, 1]
    assert merge([2, 1], (1, 2), 9) == [2, 1]
    assert merge([], (1, 2), 9) == []


def test_ids_that_form_no_character_are_shown_as_such():
    tokenizer = BPETokenizer()
    assert tokenizer.decode(tokenizer.encode("é")[:1]) == "\ufffd"
    assert tokenizer.decode([tokenizer.pad_id]) == ""


@pytest.mark.parametrize("tokenizer", [WordTokenizer(["<pad>", "<unk>", "a", "film"]), BPETokenizer([(66, 67)])])
def test_an_id_outside_the_vocabulary_is_refused_and_not_counted_from_the_end(tokenizer):
    last = tokenizer.vocab_size - 1
    for wrong in (-1, -last, tokenizer.vocab_size, 10**9):
        for ids in ([2, wrong], torch.tensor([2, wrong]), iter([wrong])):
            with pytest.raises(ValueError, match=f"id {wrong} is not in the vocabulary; its ids go from 0 to {last}"):
                tokenizer.decode(ids)
    assert tokenizer.decode(torch.tensor([0, last])) == tokenizer.decode([0, last]) == tokenizer.decode(iter([0, last]))


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match=r"needs a list of texts, such as \[text\]"):
        BPETokenizer.train("one text", 300)
    with pytest.raises(ValueError, match="vocab_size=256; 257"):
        BPETokenizer.train(texts, 256)


# the cells of notebook 02b

@pytest.fixture(scope="module")
def lesson():
    """What the cells of 02b define: its functions, its pattern and its class."""
    named, space = cells_of("02b_byte_pairs"), {}
    for cell in ("setup", "learn-merges", "chunk-pattern", "byte-pairs"):
        exec(compile(named[cell], cell, "exec"), space)
    return space


def as_taught(i: int) -> int:
    """The id that 02b gives to what `BPETokenizer` calls i: a byte is itself, and nothing is padding."""
    return BPETokenizer().tokens[i][0] if i < 257 else i - 1


@pytest.fixture(scope="module")
def taught(lesson, trained):
    """The tokenizer of the lesson with the merges of the package's."""
    return lesson["BytePairs"]([(as_taught(left), as_taught(right)) for left, right in trained.merges])


def test_the_lesson_has_the_chunks_of_the_package(lesson):
    assert lesson["CHUNK"].pattern == BPETokenizer.pattern.pattern


@proof
@given(text=st.text(), part=st.integers(0, 200))
def test_the_lesson_encodes_and_decodes_as_the_package_does(taught, trained, corpus, text, part):
    mixed = text + corpus[part] + text
    ids = trained.encode(mixed)
    assert taught.encode(mixed) == [as_taught(i) for i in ids] and taught.decode(taught.encode(mixed)) == mixed
    within = ids[1:-1]                                                      # may begin or end within a character
    assert taught.decode([as_taught(i) for i in within]) == trained.decode(within)


def test_the_lesson_learns_the_merges_of_the_package_but_for_ties(lesson, corpus):
    """Each merge of the package is one of the most frequent pairs by the lesson's count; up to the first tie both agree."""
    texts, num_merges = corpus[:300], 150
    package = BPETokenizer.train(texts, 257 + num_merges)
    theirs = [(as_taught(left), as_taught(right)) for left, right in package.merges]
    ours = lesson["BytePairs"].train(texts, num_merges).merges
    chunks = Counter(chunk for text in texts for chunk in lesson["CHUNK"].findall(text))
    words, alone = [list(chunk.encode()) for chunk in chunks], 0
    for k, pair in enumerate(theirs):
        counts = Counter()
        for word, times in zip(words, chunks.values()):
            for neighbours in zip(word, word[1:]):
                counts[neighbours] += times
        most = [one for one, count in counts.items() if count == max(counts.values())]
        assert pair in most
        if alone == k and len(most) == 1:
            alone += 1
        words = [lesson["merge"](word, pair, 256 + k) for word in words]
    assert alone > 20 and ours[:alone] == theirs[:alone] and len(ours) == num_merges
