"""Texts as people type them: one plain form for words and word pieces, spans in the original, a setting of saved models."""

import random
import unicodedata

import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value
from hypothesis import example, given, settings
from hypothesis import strategies as st
from saved_classifiers import make, rewrite

from course_tools.studies.kept_models import CLASSIFIERS as COMMITTED
from course_utils.byte_pairs import BPETokenizer
from course_utils.classifier import ReviewClassifier
from course_utils.completion import CodeCompleter
from course_utils.data import load_reviews
from course_utils.encoder_decoder import Transformer, TransformerConfig, Translator
from course_utils.files.paths import CHECKPOINTS
from course_utils.recipes import RECIPES, changed, train_classifier
from course_utils.recipes.trained_models import name_of
from course_utils.tokenization import WordTokenizer
from course_utils.training.pair_batches import WordList
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.training.plain_text import FORMS, PlainWordPieces, PlainWords, as_read, plain, plain_with_spans
from course_utils.training.saved_files import about_file
from course_utils.training.saved_models import read_note, read_plain_texts, write_note
from course_utils.training.saved_word_pieces import SavedWordPieces
from course_utils.translation.subwords import SubwordTranslator

APOSTROPHES = "’ʼ＇´‘′`"
CLASSIFIERS = ["reviews", "reviews-without-positions", "imdb", "student", "reader",
               *(name_of(seed, "reviews", changes) for seed, changes in COMMITTED)]
WORDS = PlainWords(["<pad>", "<unk>"])
ODD = [*FORMS, *"‘‛´′‚‹›`'\"aeBt .!\n", "n't", "don", "<br />", "\u200b", "\u2060", "\ufeff", "\xad", "\u200c", "\u200d",
       "\u0301", "\u0323", "\ufe0f", "क", "ि", "्", "ש", "ָ", "ท", "ี", "่", "각", "\u1100", "\u1161", "\u11a8", "👩",
       "\ud83c", "\x96", "ﬁ", "İ", "Å", "\u037e", "\u1fef", "½", "\U00011347\U0001133e"]
odd_texts = st.lists(st.sampled_from(ODD) | st.text(max_size=2), max_size=25).map("".join)


def split(text: str) -> list[str]:
    return [token.text for token in WORDS.tokenize(text)]


@pytest.mark.parametrize(("typed", "form"), [
    ("It isn’t “dull” – café…", 'It isn\'t "dull" - café...'), ("„dull“ «dull» ″dull″ ＂dull＂", " ".join(['"dull"'] * 4)),
    ("‘dull’ ‚dull‘ ‹dull› ´dull´ ‛dull’", " ".join(["'dull'"] * 5)), ("‘tis the actors’ film, rock ’n’ roll", None),
    ("well‐made, 9‑5, so—what, 1−1", "well-made, 9-5, so-what, 1-1"), ("e\u0301 e\u200b\u0301 \u212b", "é é Å"),
    ("\ufeffdo\u200bn\u2060't co\xadoperate", "don't cooperate"), ("نمی\u200cخواهم क्\u200dष", "نمی\u200cخواهم क्\u200dष"),
    ("`code` ``quoted''", "`code` ``quoted''"), ("½ ﬁlm ² Straße \x96 &#39;", "½ ﬁlm ² Straße \x96 &#39;"),
])
def test_the_plain_form(typed, form):
    assert plain(typed) == (form or typed.replace("‘", "'").replace("’", "'"))


@pytest.mark.parametrize("sign", APOSTROPHES + "‛ʻ")
@pytest.mark.parametrize("word", ["isn't", "it's", "I'm", "they'll", "O'Brien", "o'clock", "rock'n'roll", "qu'il", "l'été"])
def test_what_stands_between_letters_is_an_apostrophe(sign, word):
    typed = word.replace("'", sign)
    assert split(f"So {typed}.") == ["so", word.lower(), "."]


@pytest.mark.parametrize("opening, closing", ["“”", "„“", "„”", "«»", "″″", "＂＂", "〝〞"])
@pytest.mark.parametrize("text", ["{}dull{}", "so{}dull{}film", "{}It isn’t dull{}, he said", "un{}dull{}", "5{}x{}5"])
def test_double_quotes_are_never_part_of_a_word(opening, closing, text):
    assert split(text.format(opening, closing)) == split(text.format('"', '"'))


@pytest.mark.parametrize("text", ["‘dull’", "so ‘dull’.", "(‘dull’)", "it‘dull’.", "un‘dull’", "‚dull‘", "x‚dull‘", "‹dull›",
                                  "x‹dull›", "`dull`", "x`dull`", "`dull'", "´dull´", "‘dull’—really", "“‘dull’”"])
def test_a_single_quote_is_never_part_of_a_word(text):
    assert "dull" in split(text)


@pytest.mark.parametrize("word", ["हिन्दी", "क्षत्रिय", "שָׁלוֹם", "בְּרֵאשִׁית", "ที่นี่", "তুমি", "தமிழ்", "مُحَمَّد",
                                  "می\u200cخواهم", "ශ්\u200dරී", "café", "cafe\u0301", "x\u0302y", "1\ufe0f\u20e3",
                                  unicodedata.normalize("NFD", "한국어")])
def test_marks_stay_with_their_letters(word):
    text = f"so {word}!"
    tokens = WORDS.tokenize(text)
    assert [text[token.start : token.end] for token in tokens] == ["so", word, "!"]
    assert tokens[1].text == unicodedata.normalize("NFC", word)


def test_spans_are_those_of_the_text_as_it_was_typed():
    text = "\ufeff<br />It do\u200bn’t—cafe\u0301… “x”"
    tokens = WORDS.tokenize(text)
    assert [(token.text, text[token.start : token.end]) for token in tokens] == [
        ("it", "It"), ("don't", "do\u200bn’t"), ("-", "—"), ("café", "cafe\u0301"), (".", "…"), (".", "…"), (".", "…"),
        ('"', "“"), ("x", "x"), ('"', "”")]
    pieces = PlainWordPieces(["[PAD]", "[UNK]", "don", "'", "t", "cafe", "##s"])
    tokens = pieces.tokenize("don’t cafe\u0301s")
    assert [(token.text, token.start, token.end) for token in tokens] == [
        ("don", 0, 3), ("'", 3, 4), ("t", 4, 5), ("cafe", 6, 11), ("##s", 11, 12)]


@settings(max_examples=500, deadline=None)
@given(odd_texts)
@example("a‘b‘c'd")
@example("x`y´ z")
def test_plain_forms_are_plain_and_spans_cover_the_text_in_order(text):
    form, spans = plain_with_spans(text)
    assert plain(text) == form == plain(form) and len(spans) == len(form)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[0] <= other[0] and one[1] <= other[1] for one, other in zip(spans, spans[1:]))
    tokens = WORDS.tokenize(text)
    assert WORDS.encode(text) == [1] * len(tokens) and all(0 <= token.start < token.end <= len(text) for token in tokens)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(max_codepoint=127, exclude_characters="`"), max_size=60))
def test_ordinary_text_has_the_ids_and_spans_that_it_always_had(text):
    assert plain(text) == text and WORDS.tokenize(text) == WordTokenizer(WORDS.vocabulary).tokenize(text)


def test_odd_strings_come_back_from_byte_pairs_and_word_pieces_alone_read_them_as_they_are():
    chooser = random.Random(0)
    texts = ["".join(chooser.choice(ODD) for _ in range(chooser.randint(0, 20))) for _ in range(500)]
    for tokenizer in (CodeCompleter.load().tokenizer, SubwordTranslator.load(CHECKPOINTS / "multi30k").pieces):
        for text in texts:
            assert tokenizer.decode(tokenizer.encode(text)) == text
            assert "".join(text[token.start : token.end] for token in tokenizer.tokenize(text) if token.text) or not text
    pieces = ReviewClassifier.load("reader").tokenizer
    alone = SavedWordPieces(pieces.vocabulary)
    assert all(pieces.encode(text) == alone.encode(plain(text)) for text in texts)
    assert [token.text for token in alone.tokenize("isn’t “dull” –")] == ["isn", "’", "t", "“", "dull", "”", "–"]


@pytest.fixture(scope="module")
def negated() -> list[str]:
    rows = [text for name in ("ordinary", "ordinary_second", "ordinary_third", "handwritten")
            for text in load_reviews(name)["test"]["text"]]
    return [text for text in rows if "n't" in text][:60]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_models_that_come_with_the_course_read_both_forms_alike(name, negated):
    classifier = ReviewClassifier.load(CHECKPOINTS / name)
    straight = [f'"{text}" - so he said, at a café.' for text in negated]
    expected, ids = classifier.predict(straight[:3])[1], [classifier.tokenizer.encode(text) for text in straight]
    changes = [lambda text, sign=sign: text.replace("n't", f"n{sign}t") for sign in APOSTROPHES]
    changes += [lambda text: f"“{text[1:]}".replace('" - ', "” — "), lambda text: text.replace(" - ", " – "),
                lambda text: unicodedata.normalize("NFD", text), lambda text: f"\ufeff{text[:9]}\u200b\u2060{text[9:]}"]
    for change in changes:
        typed = [change(text) for text in straight]
        assert [classifier.tokenizer.encode(text) for text in typed] == ids and typed != straight
        assert torch.allclose(classifier.predict(typed[:3])[1], expected, atol=1e-4)
    assert len(straight) == 60


@pytest.mark.parametrize(("kind", "name"), [(Translator, "translation"), (SubwordTranslator, "multi30k")])
@pytest.mark.parametrize(("typed", "straight"), [
    ("\ufeffThe film didn´t end.", "The film didn't end."), ("He said “yes” — twice.", 'He said "yes" - twice.'),
    ("A girl in a cafe\u0301.", "A girl in a café.")])
def test_the_translators_that_come_with_the_course_do_so_too(kind, name, typed, straight):
    translator = kind.load(CHECKPOINTS / name)
    assert translator.translate([typed]) == translator.translate([straight])


# the setting

TYPED = ["It isn’t dull.", "“A moving film”", "zzyzx — x"]


@pytest.fixture
def path(tmp_path):
    make().save(tmp_path / "mine")
    return tmp_path / "mine.safetensors"


def test_a_model_that_reads_plain_texts_does_so_after_saving_and_loading(tmp_path):
    made = make(tokenizer=PlainWords(["<pad>", "<unk>", "a", "film", "isn't", '"']))
    made.save(tmp_path / "mine")
    saved, again = about_file(tmp_path / "mine.safetensors")["vocabulary"], ReviewClassifier.load(tmp_path / "mine")
    assert saved["texts"] == "plain" and saved["type"] == "words" and type(again.tokenizer) is PlainWords
    assert again.predict(TYPED)[1].equal(made.predict(TYPED)[1]) and again.tokenizer.encode("isn’t") == [4]
    made.tokenizer.save(tmp_path / "words.json")
    assert PlainWords.load(tmp_path / "words.json").vocabulary == made.tokenizer.vocabulary
    with pytest.raises(ValueError, match="reads texts as plain, and a WordTokenizer reads them as they are"):
        WordTokenizer.load(tmp_path / "words.json")


def test_the_command_gives_a_model_the_setting_and_changes_nothing_else(path, capsys):
    before = ReviewClassifier.load(path)
    write_note(path, "made_from", {"seed": 3})
    read_plain_texts(path)
    read_plain_texts(path)
    after = ReviewClassifier.load(path)
    assert type(after.tokenizer) is PlainWords and after.tokenizer.vocabulary == before.tokenizer.vocabulary
    assert all(one.equal(other) for one, other in zip(before.model.state_dict().values(), after.model.state_dict().values()))
    assert read_note(path, "made_from") == {"seed": 3} and list(path.parent.iterdir()) == [path]


def test_byte_pairs_of_code_and_what_is_no_model_cannot_get_it(tmp_path):
    make(tokenizer=BPETokenizer()).save(tmp_path / "pairs")
    for wrong, error, said in ((tmp_path / "pairs", ValueError, "BPETokenizer, which reads texts as they are"),
                               (tmp_path, FileNotFoundError, "no model in")):
        with pytest.raises(error, match=said):
            read_plain_texts(wrong)


@pytest.mark.parametrize("value", [None, "Plain"])
def test_another_value_of_the_setting_is_refused(path, value):
    rewrite(path, lambda about, tensors: about["vocabulary"].update(texts=value))
    with pytest.raises(ValueError, match="texts is .*, and can be 'plain', or be left out"):
        ReviewClassifier.load(path)


def test_word_pieces_and_translators_have_the_setting_too(tmp_path):
    config = dict(d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=20)
    pieces = make(tokenizer=SavedWordPieces(["[PAD]", "[UNK]", "don", "'", "t"]))
    translator = Translator(Transformer(TransformerConfig(7, 7, **config)).eval(),
                            WordList(["<pad>", "<unk>", "<bos>", "<eos>", "do", "n't", '"']),
                            WordList(["<pad>", "<unk>", "<bos>", "<eos>", "ne", "pas", "."]))
    byte_pairs = SharedBytePairs.train(["They don't run."] * 3, 270)
    subwords = SubwordTranslator(Transformer(TransformerConfig(270, 270, **config)).eval(), byte_pairs)
    pieces.save(tmp_path / "pieces")
    translator.save(tmp_path / "words")
    subwords.save(tmp_path / "subwords")
    loads = {"pieces": ReviewClassifier.load, "words": Translator.load, "subwords": SubwordTranslator.load}
    parts = {"pieces": "tokenizer", "words": "target_words", "subwords": "pieces"}
    for name, load in loads.items():
        assert as_read("“don’t”", getattr(load(tmp_path / name), parts[name])) == "“don’t”"
        read_plain_texts(tmp_path / name)
        loaded = load(tmp_path / name)
        loaded.save(tmp_path / f"{name} again")
        for one in (loaded, load(tmp_path / f"{name} again")):
            assert as_read("“don’t”", getattr(one, parts[name])) == '"don\'t"'
    assert ReviewClassifier.load(tmp_path / "pieces").tokenizer.encode("don’t") == [2, 3, 4]
    assert SubwordTranslator.load(tmp_path / "subwords").pieces.encode("don’t") == byte_pairs.encode("don’t")


def test_what_train_makes_reads_both_forms_alike():
    texts = ["It isn’t dull.", "It is “dull” – so dull."] * 8
    data = Dataset.from_dict({"text": texts, "label": [1, 0] * 8}, features=Features(
        {"text": Value("string"), "label": ClassLabel(names=["negative", "positive"])}))
    recipe = changed(RECIPES["reviews"], d_model=8, num_heads=2, d_ff=8, num_layers=1, epochs=1)
    trained = train_classifier({"train": data, "validation": data}, recipe, progress=False).classifier
    assert {"isn't", '"', "-"} <= set(trained.tokenizer.vocabulary) and type(trained.tokenizer) is PlainWords
    straight = [plain(text) for text in texts[:2]]
    assert trained.predict(texts[:2])[1].equal(trained.predict(straight)[1]) and straight != texts[:2]
