"""Words and padded batches."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import proof

from course_utils.data import load_reviews
from course_utils.exercises.catalogue import answers_to
from course_utils.tokenization import Token, Tokenizer, WordTokenizer, pad_batch, truncate

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


def test_a_word_is_one_of_composed_latin_letters():
    """As notebook 02 says in its section 7."""
    assert len(words("हिन्दी")) == 6 and words("nai\u0308ve") == ["nai", "\u0308", "ve"] and words("naïve") == ["naïve"]
    assert words("这部电影很好看") == ["这部电影很好看"]


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


# what notebook 02 builds gives the same

@pytest.fixture(scope="session")
def built():
    """The names that the notebook's own cells make, without a learner's answers."""
    cells = cells_of("02_tokenization")
    names = {"pad_batch": answers_to("2.7").reference, "sample": "", "claim": lambda said, true: None}
    for cell in ("setup", "pattern", "case-code", "vocabulary-loop", "export-word-tokenizer", "leak", "dataset", "collate",
                 "loader"):
        exec("\n".join(line for line in cells[cell].splitlines() if "guess_" not in line), names)    # no predictions
    return names


def test_the_notebooks_class_makes_the_same_vocabularies_and_ids(built):
    class_, train = built["WordTokenizer"], built["train"]
    assert not issubclass(class_, Tokenizer)
    for settings in ({}, {"min_freq": 1}, {"max_size": 200}, {"max_size": 2}):
        taught, kept = class_.train(train, **settings), WordTokenizer.train(train, **settings)
        assert taught.vocabulary == kept.vocabulary and taught.ids == kept.ids
        for text in [*built["validation"], *built["test"], *load_reviews("handwritten")["test"]["text"]]:
            ids = taught.encode(text)
            assert ids == kept.encode(text) and taught.decode(ids) == kept.decode(ids)


@proof
@given(any_text)
@example("İstanbul’s ǅ ﬁlm<BR/>ẞ<br   />don'’t _x_ 3,5\u0307")
def test_the_notebooks_class_reads_odd_texts_in_the_same_way(built, text):
    taught, kept = (each.train([text, "dull"], min_freq=1) for each in (built["WordTokenizer"], WordTokenizer))
    assert taught.vocabulary == kept.vocabulary and taught.encode(f"{text} new") == kept.encode(f"{text} new")


@proof
@given(st.lists(st.lists(st.integers(0, 99), max_size=9), min_size=1).filter(any), st.integers(0, 99))
def test_the_batch_that_a_learner_writes_is_pad_batchs(built, rows, pad_id):
    for taught, kept in zip(built["pad_batch"](rows, pad_id), pad_batch(rows, pad_id), strict=True):
        assert torch.equal(taught, kept) and taught.dtype == kept.dtype


def test_the_notebooks_loader_gives_every_review_as_pad_batch_would(built):
    rows, labels = [], []
    for token_ids, mask, some in built["loader"]:
        again = pad_batch([ids[real].tolist() for ids, real in zip(token_ids, mask)], 0)
        assert torch.equal(token_ids, again[0]) and torch.equal(mask, again[1])
        rows += [ids[real].tolist() for ids, real in zip(token_ids, mask)]
        labels += some.tolist()
    kept = WordTokenizer.train(built["train"])
    assert rows == [kept.encode(text) for text in built["train"]]
    assert labels == list(built["reviews"]["train"]["label"])
