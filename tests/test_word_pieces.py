"""WordPieceTokenizer: the ids and spans of the `tokenizers` library on any text, and the words for what can't be read."""

import json
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lesson_cells import cells_of
from tokenizers import AddedToken, BertWordPieceTokenizer, Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import AutoTokenizer

from course_utils.pretraining import TextCleaning, WordPieceTokenizer, load_bert, longest_pieces
from course_utils.training.word_piece_files import SPECIAL, read_word_pieces

LETTERS = "abdeilmnortuvwyßöéñşıжхйκσς中文가각½²ḁ̈ǆſ0123456789'-.,!?&$^`~|"
WORDS = "the film was not dull moving un ##moving ##moved ##mov ##ed ##ing play ##ed don ' t 中 文 été ete Dull".split()
VOCABULARY = list(dict.fromkeys([*SPECIAL, *WORDS, *LETTERS, *("##" + letter for letter in LETTERS)]))
CLEANINGS = [dict(lower_case=lower, strip_accents=strip, split_chinese=chinese)
             for lower in (True, False) for strip in (None, True, False) for chinese in (True, False)]


def library(**cleaning):
    """The library's tokenizer with our vocabulary."""
    return BertWordPieceTokenizer(
        vocab={token: i for i, token in enumerate(VOCABULARY)}, clean_text=True, lowercase=cleaning.get("lower_case", True),
        strip_accents=cleaning.get("strip_accents"), handle_chinese_chars=cleaning.get("split_chinese", True))


PAIRS = [(WordPieceTokenizer(VOCABULARY, **cleaning), library(**cleaning)) for cleaning in CLEANINGS]
TEXTS = (st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
         | st.text(LETTERS + LETTERS.upper() + " \t\n\u00a0\u0301\u0323\u0308\u200b\x00\x85\ufffd\u2028İẞ[]#", max_size=60)
         | st.lists(st.sampled_from([*WORDS, *SPECIAL, "unmoved", "Été", "[mask]", " ", "\n"]), max_size=9).map("".join))


@settings(max_examples=600, deadline=None)
@given(text=TEXTS, which=st.integers(0, len(PAIRS) - 1))
@example(text="a\u0323\u0301 a\u0301\u0323 \U0001d165\u302e\u302e\U0001d165", which=0)
@example(text="dull" * 25 + " " + "dull" * 25 + "x", which=0)
@example(text="[CLS]not[MASK] dull[SEP]", which=0)
@example(text="ΣΑΣ İSTANBUL ẞ ﬁ Ǆ K", which=4)
def test_any_text_gets_the_ids_and_spans_of_the_tokenizers_library(text, which):
    ours, theirs = PAIRS[which]
    expected = theirs.encode(text)
    assert ours.encode(text) == expected.ids
    tokens = ours.tokenize(text)
    assert [token.text for token in tokens] == expected.tokens
    assert [(token.start, token.end) for token in tokens[1:-1]] == expected.offsets[1:-1]


def test_every_character_is_of_the_kind_that_the_library_takes_it_for():
    """Each in a word of its own, between two letters; characters that Python doesn't know yet are left out."""
    kinds = [unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)]
    characters = [chr(code) for code, kind in enumerate(kinds) if kind not in ("Cs", "Cn", "Co")]
    characters += "\ue000\uf8ff\U0010fffd"                               # three of the many for private use
    wrong = []
    for start in range(0, len(characters), 500):
        some = characters[start : start + 500]
        if words_of(some) != library_words_of(some):
            wrong += [hex(ord(one)) for one in some if words_of([one]) != library_words_of([one])]
    assert wrong == [] or unicodedata.unidata_version > "14.0.0", wrong[:20]
    assert len(wrong) < 60                                                 # a later Python knows characters of its own


def words_of(characters) -> list[str]:
    text = " ".join(f"a{character}a" for character in characters)
    return ["".join(letter for letter, _ in word) for word in TextCleaning().words(text)]


def library_words_of(characters) -> list[str]:
    text = " ".join(f"a{character}a" for character in characters)
    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(BertNormalizer().normalize_str(text))]


@settings(max_examples=100, deadline=None)
@given(first=TEXTS, second=TEXTS)
def test_a_pair_is_the_library_s_pair(first, second):
    ours, theirs = PAIRS[0]
    expected = theirs.encode(first, second)
    assert ours.encode_pair(first, second) == (expected.ids, expected.type_ids)


def test_pieces_by_hand():
    vocabulary = {"un", "##mov", "##moved", "##ed", "unm", "a", "##a"}
    assert longest_pieces("unmoved", vocabulary) is None                   # 'unm' is longer than 'un', and a dead end
    assert longest_pieces("unmoved", vocabulary - {"unm"}) == ["un", "##moved"]
    assert longest_pieces("a" * 100, vocabulary) == ["a"] + ["##a"] * 99
    assert longest_pieces("a" * 101, vocabulary) is None and longest_pieces("", vocabulary) is None


def test_ids_and_back():
    ours = WordPieceTokenizer(VOCABULARY)
    ids = ours.encode("Unmoved? Not me.")
    assert ours.decode(ids).startswith("[CLS] unmoved ? not m") and ours.vocab_size == len(VOCABULARY)
    assert (ours.pad_id, ours.unk_id, ours.cls_id, ours.sep_id, ours.mask_id) == (0, 1, 2, 3, 4)
    for wrong in (-1, len(VOCABULARY)):
        with pytest.raises(ValueError, match=f"id {wrong} is not in the vocabulary; its ids go from 0 to"):
            ours.decode([1, wrong])
    with pytest.raises(ValueError, match=r"the vocabulary lacks \[UNK\], \[MASK\]; BERT's has all of"):
        WordPieceTokenizer(["[PAD]", "[CLS]", "[SEP]", "dull"])
    assert [token.text for token in ours.pieces("a\ud800b")] == ["a", "##b"]   # half a pair, as broken files have it


# files

@pytest.mark.parametrize("cleaning", CLEANINGS[:4] + CLEANINGS[-2:], ids=str)
def test_either_kind_of_file_gives_the_library_s_ids(tmp_path, cleaning):
    theirs = library(**cleaning)
    theirs.save(str(tmp_path / "tokenizer.json"))
    one = WordPieceTokenizer(**read_word_pieces(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    theirs.save_model(str(tmp_path))                                       # vocab.txt
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({
        "do_lower_case": cleaning["lower_case"], "strip_accents": cleaning["strip_accents"],
        "tokenize_chinese_chars": cleaning["split_chinese"], "tokenizer_class": "BertTokenizer"}))
    two = WordPieceTokenizer(**read_word_pieces(tmp_path))
    text = "The Été wasn't dull, 中文! [MASK]"
    assert one.encode(text) == two.encode(text) == theirs.encode(text).ids
    assert one.vocabulary == two.vocabulary == VOCABULARY


def test_other_kinds_of_tokenizer_are_left_to_the_library(tmp_path):
    assert read_word_pieces(tmp_path) is None
    whole = json.loads(library().to_str())
    for change in ({"normalizer": {"type": "Lowercase"}}, {"pre_tokenizer": {"type": "Whitespace"}}, {"normalizer": None},
                   {"model": whole["model"] | {"continuing_subword_prefix": "@@"}},
                   {"model": whole["model"] | {"max_input_chars_per_word": 50}},
                   {"normalizer": whole["normalizer"] | {"clean_text": False}}):
        (tmp_path / "tokenizer.json").write_text(json.dumps(whole | change))
        assert read_word_pieces(tmp_path) is None, change
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    assert Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode("not dull").ids == WordPieceTokenizer(
        **read_word_pieces(tmp_path)).encode("not dull")
    whole["model"]["vocab"]["dull"] = 10_000
    for broken in ("{", json.dumps(whole)):
        (tmp_path / "tokenizer.json").write_text(broken)
        with pytest.raises(ValueError, match="the tokenizer's files in .* can't be used"):
            read_word_pieces(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("hello\nworld\n")
    assert read_word_pieces(tmp_path) is None                              # no special tokens


# added tokens, and the settings that count


@pytest.mark.parametrize("settings", [None, {}, {"do_lower_case": False}, {"strip_accents": False},
                                      {"tokenizer_class": "BertTokenizerFast", "tokenize_chinese_chars": False},
                                      {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False}], ids=str)
@pytest.mark.parametrize("lower", [True, False])
def test_settings_beside_tokenizer_json_count_as_for_the_library(tmp_path, settings, lower):
    library(lower_case=lower).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    ours, theirs = WordPieceTokenizer(**read_word_pieces(tmp_path)), AutoTokenizer.from_pretrained(tmp_path)
    for text in ("The Été wasn't Dull", "de中文de unmoved"):
        assert ours.encode(text) == theirs(text).input_ids


ADDED = [AddedToken("<movie>"), AddedToken("Dull!", normalized=True), AddedToken("[NAME]", special=True, normalized=False),
         AddedToken("ete", normalized=False), AddedToken("un", normalized=True), AddedToken("the film", normalized=True),
         AddedToken("qqq", normalized=False), AddedToken("中", normalized=True)]
WITH_ADDED = st.lists(st.sampled_from([*WORDS, *SPECIAL, *(token.content for token in ADDED), "<MOVIE>", "QQQ", "été", "Une",
                                       "THE  FILM", "The film", "dull", "!", "DULL!", "[name]", " ", "\n", "<movie", "文"]),
                      max_size=9).map("".join)


@settings(max_examples=200, deadline=None)
@given(text=WITH_ADDED, which=st.integers(0, len(PAIRS) - 1))
@example(text="a <movie>, the <Movie>; QQQ qqq", which=0)
def test_added_tokens_are_found_whole_as_in_the_library(text, which):
    ours, theirs = ADDED_PAIRS[which]
    expected = theirs.encode(text)
    assert ours.encode(text) == expected.ids                               # the library's names are cleaned: 'dull!'
    assert [(token.start, token.end) for token in ours.pieces(text)] == expected.offsets[1:-1]


def with_added(which):
    """A pair of `PAIRS` with the same added tokens in both."""
    theirs = library(**CLEANINGS[which])
    theirs.add_tokens(ADDED)
    return WordPieceTokenizer(VOCABULARY, {token.content: token.normalized for token in ADDED}, **CLEANINGS[which]), theirs


ADDED_PAIRS = [with_added(which) for which in range(len(PAIRS))]


def test_added_tokens_come_from_every_file_that_has_them_and_go_back(tmp_path):
    text, following = "The <movie> wasn't [NAME]'s <MOVIE>!", len(VOCABULARY)
    whole, two, back = (tmp_path / name for name in ("whole", "two", "back"))
    for folder in (whole, two):
        folder.mkdir()
        (folder / "config.json").write_text('{"model_type": "bert"}')
    theirs = library()
    theirs.add_tokens(ADDED[:3])
    theirs.save(str(whole / "tokenizer.json"))
    library().save_model(str(two))
    (two / "added_tokens.json").write_text(json.dumps({token.content: following + i for i, token in enumerate(ADDED[:3])}))
    (two / "special_tokens_map.json").write_text('{"additional_special_tokens": ["[NAME]"]}')
    for folder in (whole, two):
        ours = WordPieceTokenizer(**read_word_pieces(folder))
        assert ours.encode(text) == AutoTokenizer.from_pretrained(folder)(text).input_ids
        assert ours.encode(text).count(following) == 2 and ours.vocab_size == following + 3
        ours.save(back)
        again = WordPieceTokenizer(**read_word_pieces(back))
        assert again.encode(text) == ours.encode(text) == AutoTokenizer.from_pretrained(back)(text).input_ids
    (two / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {
        following: {"content": "<film>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": True}}}))
    ours = WordPieceTokenizer(**read_word_pieces(two))
    assert ours.encode("a <film> <movie>") == AutoTokenizer.from_pretrained(two)("a <film> <movie>").input_ids


def test_a_special_token_that_only_the_vocabulary_holds_is_found_whole(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY, "[NAME]"]) + "\n", encoding="utf-8")
    (tmp_path / "special_tokens_map.json").write_text('{"additional_special_tokens": ["[NAME]"]}')
    ids = WordPieceTokenizer(**read_word_pieces(tmp_path)).encode("the [NAME] film")
    assert ids == AutoTokenizer.from_pretrained(tmp_path)("the [NAME] film").input_ids and len(VOCABULARY) in ids


@pytest.mark.parametrize("token, words", [
    (AddedToken("<movie>", lstrip=True), "'<movie>' has lstrip set"),
    (AddedToken("<movie>", single_word=True, rstrip=True), "has rstrip and single_word set"),
])
def test_added_tokens_of_a_kind_of_their_own_are_left_to_the_library_with_a_word(tmp_path, token, words):
    theirs = library()
    theirs.add_tokens([token])
    theirs.save(str(tmp_path / "tokenizer.json"))
    with pytest.warns(UserWarning, match=f"isn't read: its added token .*{words}.*use transformers.AutoTokenizer"):
        assert read_word_pieces(tmp_path) is None
    library().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": "<mask>"}')
    with pytest.warns(UserWarning, match=r"it has '<mask>' in place of \[MASK\]"):
        assert read_word_pieces(tmp_path) is None


def test_notebook_02_quotes_the_pieces_of_the_kept_encoder():
    """The line that 02 shows beside the learner's own: the sentence of its cell, as the tokenizer that 14 loads cuts it."""
    cells, (_, pieces) = cells_of("02_tokenization"), load_bert("encoder")
    mine = "A heartbreaking debut. I left the cinema walking on air."
    assert f'"{mine}"' in cells["your-review"]
    assert "\n" + " ".join(token.text for token in pieces.tokenize(mine)) + "\n" in cells["limits"]
