"""Word pieces by the library: those of notebook 14's class on any text, their places, and a file that brings them back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.byte_pairs import BPETokenizer
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.pretraining import WordPieceTokenizer
from course_utils.training.saved_word_pieces import SavedWordPieces

LETTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?'-&()"]
LIST = ["[PAD]", "[UNK]", *LETTERS, *("##" + letter for letter in LETTERS), "dull", "##ness", "film", "un", "##able", "not"]
PIECES = SavedWordPieces(LIST)
COURSE = WordPieceTokenizer([*LIST, "[CLS]", "[SEP]", "[MASK]"])


def test_ids_pieces_and_places():
    text = "Dullness isn't café."
    tokens = PIECES.tokenize(text)
    assert [token.text for token in tokens[:2]] == ["dull", "##ness"] and tokens[-1].text == "."
    assert [text[token.start:token.end] for token in tokens][:2] == ["Dull", "ness"] and text[tokens[-2].start:][:1] == "é"
    assert PIECES.encode(text) == [LIST.index(token.text) for token in tokens]
    assert PIECES.encode_all([text, ""]) == [PIECES.encode(text), []]
    assert PIECES.decode(PIECES.encode("Unable film")) == "unable film"


@settings(max_examples=300, deadline=None)
@given(st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(" \n'aé-dull")), max_size=40))
def test_the_pieces_are_those_of_the_class_of_14(text):
    if "[" in text:
        return                                          # where that class may find a special token
    own = PIECES.tokenize(text)
    assert [token.text for token in own] == [token.text for token in COURSE.pieces(text)]
    assert all(0 <= token.start <= token.end <= len(text) for token in own)


def test_a_special_token_in_a_text_is_text():
    assert PIECES.unk_id in PIECES.encode("[PAD]") and PIECES.pad_id not in PIECES.encode("[PAD]")


def test_another_list_and_another_id_are_refused():
    with pytest.raises(ValueError, match="begins with '\\[PAD\\]', '\\[UNK\\]'"):
        SavedWordPieces(["[UNK]", "[PAD]"])
    with pytest.raises(ValueError, match="ids go from 0 to"):
        PIECES.decode([len(LIST)])


def test_a_classifier_with_word_pieces_is_saved_and_read(tmp_path):
    config = ClassifierConfig(len(LIST), d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=12)
    model = ReviewClassifier(SelfAttentionClassifier(config), PIECES)
    model.save(tmp_path / "model")
    again = ReviewClassifier.load(tmp_path / "model")
    assert again.tokenizer.vocabulary == LIST
    assert [token.text for token in again.explain("A dull film").tokens] == ["a", "dull", "film"]
    (tmp_path / "other.json").write_text('{"type": "byte pairs", "merges": []}')
    with pytest.raises(ValueError, match="holds no word pieces"):
        SavedWordPieces.load(tmp_path / "other.json")
    assert BPETokenizer.load(tmp_path / "other.json").vocab_size == 257
