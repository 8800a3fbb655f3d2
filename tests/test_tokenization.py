"""Words, byte pairs and padded batches."""

import json
import os

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from library_twins import proof

from course_utils.tokenization import BPETokenizer, Token, Tokenizer, WordTokenizer, merge, pad_batch, truncate

any_text = st.text(st.characters(exclude_categories=()))                   # every code point, lone surrogates too
texts = ["A dull, dull film.", "Not a dull minute!", "I can't say it's dull.<br /><br />Moving, though."]


# words

@proof
@given(any_text)
def test_spans_index_the_original_text(text):
    tokens = WordTokenizer(["<pad>", "<unk>"]).tokenize(text)
    assert all(text[token.start : token.end].lower() == token.text for token in tokens)
    ends = [0, *(token.end for token in tokens)]
    assert all(before <= token.start < token.end for before, token in zip(ends, tokens))


@proof
@given(any_text.filter(lambda text: "<br" not in text))
def test_only_white_space_is_left_out(text):
    covered = "".join(text[t.start : t.end] for t in WordTokenizer(["<pad>", "<unk>"]).tokenize(text))
    assert covered == "".join(text.split()) or any(c.isspace() != (not c.split()) for c in text)


def words(text):
    return [token.text for token in WordTokenizer(["<pad>", "<unk>"]).tokenize(text)]


def test_words_and_punctuation_are_tokens():
    assert words("A dull, DULL film...") == ["a", "dull", ",", "dull", "film", ".", ".", "."]
    assert words("It's the actors’ film; isn’t it? 9/10") == [
        "it's", "the", "actors", "’", "film", ";", "isn’t", "it", "?", "9", "/", "10",
    ]
    assert WordTokenizer(["<pad>", "<unk>"]).tokenize(" No!") == [Token("no", 1, 3), Token("!", 3, 4)]


def test_an_html_line_break_is_white_space():
    assert words("Dull.<br /><br>Moving<br/>though") == ["dull", ".", "moving", "though"]
    assert words("a < b") == ["a", "<", "b"]


def test_the_most_frequent_tokens_come_first_and_ties_are_alphabetical():
    assert WordTokenizer.train(["b a c b"], min_freq=1).vocabulary == ["<pad>", "<unk>", "b", "a", "c"]
    assert WordTokenizer.train(["c b", "a b"], min_freq=1).vocabulary == ["<pad>", "<unk>", "b", "a", "c"]
    assert WordTokenizer.train(["c a b b"], max_size=4, min_freq=1).vocabulary == ["<pad>", "<unk>", "b", "a"]
    assert WordTokenizer.train(["c a b b"]).vocabulary == ["<pad>", "<unk>", "b"]


def test_the_special_tokens_cannot_be_typed():
    tokenizer = WordTokenizer.train(["<pad> <unk> <pad> <unk>"])
    assert 0 not in tokenizer.encode("<pad> <unk>") and 1 not in tokenizer.encode("<pad> <unk>")


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


# cutting

@pytest.mark.parametrize(("truncation", "expected"), [("head", [0, 1, 2, 3, 4, 5, 6]),
                                                      ("head_tail", [0, 5, 6, 7, 8, 9, 10])])
@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_truncate_keeps_the_head_or_head_and_tail_of_any_sequence(truncation, expected, kind):
    assert [int(i) for i in truncate(kind(range(11)), 7, truncation)] == expected
    assert pad_batch([kind(range(11))], 0, 7, truncation)[0].tolist() == [expected]


def test_truncate_returns_what_fits_as_it_is():
    for tokens in ([], [1, 2, 3], [Token("a", 0, 1)] * 3):
        assert truncate(tokens, 3) is tokens and truncate(tokens, None, "head_tail") is tokens
    assert truncate([Token("a", 0, 1), Token("b", 2, 3)], 1) == [Token("a", 0, 1)]
    assert truncate([1, 2, 3], 1, "head_tail") == [3] and truncate([1, 2, 3, 4, 5], 4, "head_tail") == [1, 3, 4, 5]
    with pytest.raises(ValueError, match="truncation='tail'; use 'head' or 'head_tail'"):
        truncate([1, 2, 3], 2, "tail")
    with pytest.raises(ValueError, match="max_len=0; use 1 or more"):
        truncate([1, 2, 3], 0)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="begins with '<pad>', '<unk>'"):
        WordTokenizer(["a", "b"])
    with pytest.raises(TypeError, match=r"needs a list of texts, such as \[text\]"):
        WordTokenizer.train("one text")
    with pytest.raises(TypeError, match=r"needs a list of texts, such as \[text\]"):
        BPETokenizer.train("one text", 300)
    with pytest.raises(ValueError, match="vocab_size=256; 257"):
        BPETokenizer.train(texts, 256)
    for size in (-1, 1):
        with pytest.raises(ValueError, match=f"max_size={size}"):
            WordTokenizer.train(texts, max_size=size)


# batches

def test_a_batch_is_padded_on_the_right_with_a_mask_of_what_is_real():
    ids, mask = pad_batch([[5, 6, 7], [8]], pad_id=0)
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]] and ids.dtype == torch.long
    assert mask.tolist() == [[True, True, True], [True, False, False]]
    ids, mask = pad_batch([[5], [0, 4]], pad_id=9)                         # an id of 0 is real here
    assert ids.tolist() == [[5, 9], [0, 4]] and mask.tolist() == [[True, False], [True, True]]


def test_the_width_is_rounded_up_but_never_beyond_max_len():
    assert pad_batch([[1] * 5], 0, multiple_of=8)[0].shape == (1, 8)
    assert pad_batch([[1] * 8], 0, multiple_of=8)[0].shape == (1, 8)
    assert pad_batch([[1] * 9], 0, multiple_of=8)[0].shape == (1, 16)
    # a model has positions for max_len tokens and no more
    ids, mask = pad_batch([[1] * 30], 0, max_len=10, multiple_of=8)
    assert ids.shape == mask.shape == (1, 10)


def test_empty_reviews_and_empty_batches_have_one_column():
    ids, mask = pad_batch([[], []], 0)
    assert ids.shape == (2, 1) and not mask.any()
    ids, mask = pad_batch([], 0)
    assert ids.shape == mask.shape == (0, 1)
    assert pad_batch([[], [3]], 0)[1].tolist() == [[False], [True]]


# byte pairs

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
