"""An attention view of two texts and by word, and the picture that it saves."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import small_classifiers
import small_language_models as small
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from course_utils.byte_pairs import BPETokenizer
from course_utils.classifier import ReviewClassifier
from course_utils.interactive import attention_view
from course_utils.interactive.attention_words import starts_by_spelling, starts_of_written, words_by_marks
from course_utils.interactive.coded import decode
from course_utils.tokenization import WordTokenizer

FIRST, SECOND = "the film was moving.", "it is not boredom"
PIECES = "[CLS] the film was mov ##ing . [SEP] it is not bor ##ed ##om [SEP]".split()
WORDS = "[CLS] the film was moving . [SEP] it is not boredom [SEP]".split()


def random_weights(*shape, seed=0):
    return torch.softmax(2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def maps(view, kind=0):
    """{layer: (heads, query, key)} as the page decodes them."""
    given = view.data["sides"][0]["kinds"][kind]
    keys = len(given["keys"] or given["queries"])
    return {layer["number"]: decode(layer["weights"])[..., :keys] for layer in given["layers"]}


def labels(view, kind=0):
    return view.data["sides"][0]["kinds"][kind]["queries"]


@pytest.fixture(scope="module")
def pairs():
    return small.bert_of_pairs()


# ---- two texts ----

def test_two_texts_with_their_token_types_and_from_each_to_the_other(pairs):
    model, tokenizer = pairs
    view = attention_view(model, tokenizer, (FIRST, SECOND))
    with torch.no_grad():
        result = model(**tokenizer(FIRST, SECOND, return_tensors="pt", return_token_type_ids=True), output_attentions=True)
        untyped = model(**tokenizer(FIRST, SECOND, return_tensors="pt"), output_attentions=True)
    kinds = view.data["sides"][0]["kinds"]
    assert [kind["name"] for kind in kinds] == ["both texts", "first → second", "second → first"]
    assert kinds[0]["queries"] == PIECES and kinds[0]["keys"] is None
    assert kinds[1]["queries"] == kinds[2]["keys"] == PIECES[1:7] and kinds[1]["keys"] == kinds[2]["queries"] == PIECES[8:14]
    for number, whole in enumerate(result.attentions):
        whole = whole[0].numpy()
        for kind, part in enumerate((whole, whole[:, 1:7, 8:14], whole[:, 8:14, 1:7])):
            assert np.abs(maps(view, kind)[number] - part).max() <= 0.0005 + 1e-6
    assert view.side.probability == pytest.approx(float(result.logits[0].softmax(-1).max()))
    assert not torch.allclose(result.logits, untyped.logits, atol=1e-3), "token types matter to this model"
    assert "note" not in kinds[0] and "A row adds up to less than 1" in kinds[1]["note"]


@pytest.mark.parametrize("name", ["DistilBert", "XLNet"])
def test_models_without_token_types_read_two_texts_too(name):
    _, tokenizer = small.bert_of_pairs()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]  # types, which two of these don't know
    size = len(tokenizer)
    config = {"DistilBert": lambda: hf.DistilBertConfig(vocab_size=size, dim=16, n_layers=2, n_heads=2, hidden_dim=16),
              "XLNet": lambda: hf.XLNetConfig(vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=16)}[name]()
    view = attention_view(small.random_model(getattr(hf, f"{name}Model"), config), tokenizer, (FIRST, SECOND))
    assert labels(view) == PIECES and labels(view, 1) == PIECES[1:7]


def test_two_texts_in_an_encoder_decoder():
    _, tokenizer = small.bert_of_pairs()
    config = hf.T5Config(vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0,
                         eos_token_id=3, decoder_start_token_id=0)
    model = small.random_model(hf.T5ForConditionalGeneration, config)
    view = attention_view(model, tokenizer, (FIRST, SECOND), target=FIRST)
    kinds = [kind["name"] for kind in view.data["sides"][0]["kinds"]]
    assert kinds == ["encoder", "encoder, first → second", "encoder, second → first", "decoder", "cross-attention"]


def test_comparing_with_another_pair(pairs):
    view = attention_view(*pairs, (FIRST, SECOND), compare=(FIRST, "it was dull"))
    assert view.data["names"] == ["first text", "second text"] and len(view.data["match"]) == 3
    assert view.data["match"][1]["queries"] == list(range(6))


def test_two_texts_where_they_cannot_be(pairs):
    classifier = ReviewClassifier(small_classifiers.make_model(vocab_size=4), WordTokenizer("<pad> <unk> not dull".split()))
    for call, message in [
        (lambda: attention_view(*small.gpt2(), ("the film", "was dull")), "puts nothing between two texts, so "
                                                                          "GPT2LMHeadModel can't know .*: join them"),
        (lambda: attention_view(classifier, ("not dull", "dull")), "a ReviewClassifier reads one text"),
        (lambda: attention_view(*pairs, (FIRST, "")), "the second of the two texts has no tokens"),
        (lambda: attention_view(*pairs, [FIRST, SECOND]), r"of type list; .* go in a tuple, \(first, second\)"),
        (lambda: attention_view(*pairs, (FIRST * 9, SECOND)), "the two texts have together .* and .* at most 48: give"),
        (lambda: attention_view(*pairs, (FIRST, SECOND), compare=FIRST), "different kinds of attention"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# ---- words ----

def test_by_word_keys_are_added_up_and_queries_averaged(pairs):
    pieces, view = attention_view(*pairs, FIRST), attention_view(*pairs, FIRST, by="word")
    assert labels(pieces) == PIECES[:8] and labels(view) == WORDS[:7]
    groups = [[0], [1], [2], [3], [4, 5], [6], [7]]
    for number, whole in pieces.side.kinds[0].layers.items():
        by_hand = np.array([[[head[np.ix_(rows, columns)].sum(1).mean() for columns in groups] for rows in groups]
                            for head in whole])
        assert np.abs(view.side.kinds[0].layers[number] - by_hand).max() < 1e-12
        assert np.abs(view.side.kinds[0].layers[number].sum(-1) - 1).max() < 1e-6
        assert np.abs(maps(view)[number] - by_hand).max() <= 0.0005 + 1e-6
    both = attention_view(*pairs, (FIRST, SECOND), by="word")
    assert labels(both) == WORDS and labels(both, 1) == WORDS[1:6] and labels(both, 2) == WORDS[7:11]
    assert both.side.probability == attention_view(*pairs, (FIRST, SECOND)).side.probability


def metaspace(pre_tokenizer):
    """A tokenizer of '▁' and letters; without a pre-tokenizer, the whole text is one word to the library."""
    letters = "▁acdefhilmortuw"
    merges = [("▁", "f"), ("i", "l"), ("▁f", "il")]
    inner = Tokenizer(models.BPE({part: i for i, part in enumerate([*letters, "▁f", "il", "▁fil", "<s>"])}, merges))
    if pre_tokenizer:
        inner.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.decoder = decoders.Metaspace()
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", model_input_names=["input_ids"])
    config = hf.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2)
    return small.random_model(hf.GPT2Model, config), tokenizer


def test_special_tokens_in_what_a_model_wrote_are_words_and_pieces_go_on(pairs):
    _, tokenizer = pairs
    written = torch.tensor(tokenizer(FIRST)["input_ids"])
    assert starts_of_written(tokenizer, written) == [not piece.startswith("##") for piece in PIECES[:8]]


@pytest.mark.parametrize(("make", "text", "words"), [
    (lambda: small.gpt2(), "the film café\n🙂 film!", ["the", "film", "café", "\n", "🙂", "film", "!"]),
    (lambda: small.gpt2(), "filmfilm  it's", ["filmfilm", " ", "it", "'s"]),
    (lambda: metaspace(True), "the film aha", ["the", "film", "aha"]),
    (lambda: metaspace(False), "the film aha", ["the", "film", "aha"]),
], ids=["bytes", "spaces", "metaspace", "one word to the library"])
def test_words_of_other_tokenizers(make, text, words):
    view = attention_view(*make(), text, by="word")
    assert labels(view) == words
    assert np.abs(next(iter(view.side.kinds[0].layers.values())).sum(-1) - 1).max() < 1e-6


def test_words_of_a_slow_tokenizer():
    tokenizer = hf.ByT5Tokenizer()
    model = small.random_model(hf.T5EncoderModel, hf.T5Config(vocab_size=384, d_model=16, d_kv=8, d_ff=16, num_layers=1,
                                                              num_heads=2))
    assert labels(attention_view(model, tokenizer, "not café", by="word")) == ["not", "café", "</s>"]


@pytest.mark.parametrize(("tokens", "words"), [
    (["[CLS]", "mov", "##ing", "film", "[SEP]"], ["[CLS]", "moving", "film", "[SEP]"]),
    (["▁the", "▁", "fi", "lm", "</s>"], ["the", "film", "</s>"]),
    (["the</w>", "fi", "lm</w>"], ["the", "film"]),
    (["the", "fi@@", "lm", "mov@@", "in@@", "g"], ["the", "film", "moving"]),
    ])
def test_words_of_plain_tokens(tokens, words):
    given, pooling = random_weights(2, 3, len(tokens), len(tokens)), random_weights(len(tokens))
    view = attention_view(tokens, given, by="word", pooling=pooling)
    assert labels(view) == words == [text for _, text in words_by_marks(tokens)]
    assert all(np.abs(weights.sum(-1) - 1).max() < 1e-6 for weights in view.side.kinds[0].layers.values())
    starts = [start for start, _ in words_by_marks(tokens)]
    assert np.allclose(view.side.pooling, np.add.reduceat(pooling.double().numpy(), starts))


class JoinedBySpaces:
    """A tokenizer that marks nothing: its tokens' text alone says where a word begins."""

    all_special_tokens = ["[CLS]"]

    def convert_ids_to_tokens(self, ids):
        return [["[CLS]", "the", "film", "##s", "a", "."][i] for i in ids]

    def convert_tokens_to_string(self, tokens):
        return " ".join(tokens).replace(" ##", "").replace(" .", ".")


def test_a_word_begins_where_the_text_has_a_space():
    ids = torch.tensor([0, 1, 2, 3, 4, 5, 2])
    assert starts_by_spelling(JoinedBySpaces(), ids) == [True, True, True, False, True, False, True]


def test_a_query_without_keys_doesnt_lower_its_words_average():
    given = np.array([[1.0, 0, 0], [0, 0, 0], [0, 0.5, 0.5]])
    view = attention_view(["mov", "##ing", "film"], given, by="word")
    assert view.side.kinds[0].layers[0].tolist() == [[[1, 0], [0.5, 0.5]]]


def test_words_of_the_courses_tokenizers():
    text = "nobody could call it dull"
    for tokenizer, words in ((BPETokenizer.train(["nobody could"] * 3, 262), text.split()),
                             (WordTokenizer(["<pad>", "<unk>", *text.split()]), text.split())):
        classifier = ReviewClassifier(small_classifiers.make_model(vocab_size=tokenizer.vocab_size), tokenizer)
        tokens, view = (attention_view(classifier, text, by=by) for by in ("token", "word"))
        assert labels(view) == words and len(labels(tokens)) >= len(words)
        assert np.abs(view.side.kinds[0].layers[0].sum(-1) - 1).max() < 1e-6
        assert view.side.pooling.sum() == pytest.approx(1, abs=1e-6) and view.side.label == tokens.side.label


def test_by_takes_two_words():
    with pytest.raises(ValueError, match="by='piece'; expected 'token' or 'word'"):
        attention_view(["a"], [[1.0]], by="piece")


# ---- the picture ----

def picture(view, path, **options):
    view.save_svg(path, **options)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|<script|<image|@import|url\(", text), "it needs nothing else"
    return text, ET.fromstring(text)


def written(root):
    return [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_saved_picture_shows_the_head_and_token_that_are_asked_for(tmp_path):
    tokens, given = ["not", "dull", "</b>", "mov\ning"], random_weights(2, 3, 4, 4)
    view = attention_view(tokens, given, title="Mine")
    _, root = picture(view, tmp_path / "one.svg", layer=1, head=2, token=2)
    texts = written(root)
    row = given[1, 2, 2].tolist()
    at = texts.index("‘</b>’ (2) attends to")
    assert texts[at + 1:at + 9] == [part for token, weight in zip(["not", "dull", "</b>", "mov\\ning"], row)
                                    for part in (token, f"{weight:.2f}")]
    assert "layer 1, head 2" in texts
    assert [text for text in texts[at + 9:] if re.fullmatch(r"\d\.\d\d|0", text)] == [
        f"{weight:.2f}" for weight in given[1, 2].flatten().tolist()], "and the head's map below"
    words = root.find("{http://www.w3.org/2000/svg}desc").text
    assert root.get("role") == "img" and root.find("{http://www.w3.org/2000/svg}title").text == "layer 1, head 2"
    largest = ["not", "dull", "</b>", "mov\\ning"][int(given[1, 2, 2].argmax())]
    assert words.startswith("Mine: 2 layers of 3 heads. Layer 1, head 2: The picked row, '</b>' (query 2), attends to "
                            f"'{largest}' (key ")


def test_a_saved_picture_has_the_token_that_the_view_began_with_and_on_another_layer_the_largest_weights(tmp_path):
    given = random_weights(2, 1, 4, 4)
    other = int(given[1, 0].max(dim=1).values.argmax())
    view = attention_view(["a", "b", "c", "d"], given, token=(other + 1) % 4)
    for options, query in (({}, (other + 1) % 4), ({"layer": 1}, other), ({"head": "mean", "layer": 1}, other)):
        texts = written(picture(view, tmp_path / "one.svg", **options)[1])
        assert f"‘{'abcd'[query]}’ ({query}) attends to" in texts, options


def test_a_picture_of_a_part_of_two_views_and_of_a_long_text(tmp_path, pairs):
    view = attention_view(*pairs, (FIRST, SECOND), by="word")
    texts = written(picture(view, tmp_path / "part.svg", kind="first → second", layer=1, head=0, token=3)[1])
    assert "‘moving’ (3) attends to" in texts and "first → second · layer 1, head 0" in texts and "[SEP]" not in texts
    assert any("adds up to less than 1" in text for text in texts)
    compared = attention_view(*pairs, FIRST, compare="the film was dull", names=("one", "two"))
    texts = written(picture(compared, tmp_path / "two.svg", token=2)[1])
    assert texts.count("‘film’ (2) attends to") == 2 and "two · layer 0, head 0" in texts
    long = attention_view([f"t{k}" for k in range(90)], random_weights(90, 90))
    assert "‘t45’ (45) attends to" in written(picture(long, tmp_path / "long.svg", token=45)[1])


def test_what_isnt_there_says_what_is(tmp_path, pairs):
    view = attention_view(*pairs, (FIRST, SECOND), layers=[1])
    for options, message in [
        ({"layer": 0}, r"layer=0; expected one of \[1\]"), ({"head": 4}, "head=4; expected a number from 0 to 3, or 'mean'"),
        ({"token": 15}, "token=15; expected the position of a query, from 0 to 14"), ({"token": -1}, "token=-1; expected"),
        ({"kind": "first → second", "token": 6}, "token=6; expected the position of a query, from 0 to 5"),
        ({"kind": "cross-attention"}, r"kind='cross-attention'; expected one of \['both texts', 'first → second'"),
    ]:
        with pytest.raises(ValueError, match=message):
            view.save_svg(tmp_path / "none.svg", **options)
    with pytest.raises(ValueError, match="none.png'; expected a name that ends in .svg"):
        view.save_svg(tmp_path / "none.png")
    assert not list(tmp_path.iterdir())
