"""The course's BERT in Hugging Face's format: the same logits there, the same model back; what can't be written."""

import dataclasses
import random

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertTokenizerFast,
    pipeline,
)
from transformers import BertConfig as LibraryConfig

from course_utils.hugging_face import library_bert_config, library_names, load_bert_classifier, save_bert
from course_utils.pretraining import (
    BertClassifier,
    BertConfig,
    BertEncoder,
    MaskedLanguageModel,
    WordPieceTokenizer,
    add_adapters,
    bert_config,
    bert_weights,
    load_bert,
    merge_adapters,
)
from course_utils.tokenization import WordTokenizer
from course_utils.training.word_piece_files import SPECIAL

PIECES = ["not", "dull", "##er", "café", "cafe", ".", "!", *map(chr, range(ord("a"), ord("z") + 1)),
          *(f"##{chr(letter)}" for letter in range(ord("a"), ord("z") + 1))]
VOCABULARY = [*SPECIAL, *PIECES]


def drawn_config(seed, **changes):
    """A configuration in which as much as possible is drawn by chance."""
    draw = random.Random(seed)
    heads = draw.randint(1, 4)
    return BertConfig(**{**dict(
        vocab_size=len(VOCABULARY) + draw.randint(0, 5), d_model=heads * draw.randint(1, 9), num_heads=heads,
        d_ff=draw.randint(1, 60), num_layers=draw.randint(1, 4), max_len=draw.randint(20, 40),
        num_token_types=draw.randint(1, 3), dropout=draw.choice([0.0, 0.2]), attention_dropout=draw.choice([0.0, 0.3]),
        activation=draw.choice(["gelu", "gelu_tanh", "relu"]), layer_norm_eps=draw.choice([1e-12, 1e-5, 1e-2]),
        pooler=True), **changes})


def shaken(model, seed=0):
    """The model with noise on every parameter, so that no bias or norm is where it began, in evaluation mode."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def ragged(config, batch=4):
    """Token ids and a mask of different lengths."""
    ids = torch.randint(5, config.vocab_size, (batch, config.max_len))
    mask = torch.arange(config.max_len) < torch.tensor([config.max_len, 1, 7, config.max_len - 3])[:batch, None]
    return ids.masked_fill(~mask, config.pad_id), mask


def equal_states(one, other):
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)


# what was written is what is read, by the library and by the course

@pytest.mark.parametrize("seed", range(6))
def test_a_classifier_of_any_shape_has_the_same_logits_there_and_comes_back_whole(tmp_path, seed):
    config = drawn_config(seed)
    model = shaken(BertClassifier(BertEncoder(config), 2 + seed % 3, "pooler", dropout=seed % 2 / 4), seed)
    names = ["bad", "good", "so so", "other"][: model.output.out_features]
    assert save_bert(model, WordPieceTokenizer(VOCABULARY), tmp_path / "it", names) == (tmp_path / "it").resolve()
    theirs = AutoModelForSequenceClassification.from_pretrained(tmp_path / "it").eval()
    ids, mask = ragged(config)
    with torch.no_grad():
        got, expected = theirs(ids, attention_mask=mask.long()).logits, model(ids, mask).logits
    assert (got - expected).abs().max() < 1e-5 and expected.std() > 1e-3
    assert theirs.config.id2label == dict(enumerate(names)) and theirs.config.label2id["good"] == 1
    assert theirs.dropout.p == model.dropout.p and theirs.config.hidden_dropout_prob == config.dropout
    again, tokenizer, back = load_bert_classifier(tmp_path / "it")
    assert equal_states(again, model) and again.config == config and back == names and not again.training
    assert again.dropout.p == model.dropout.p and tokenizer.vocabulary == VOCABULARY
    encoder, _ = load_bert(tmp_path / "it")
    assert equal_states(encoder, model.encoder)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("pooler", [True, False])
def test_an_encoder_and_a_masked_model_come_back_equal_and_compute_the_same_there(tmp_path, activation, pooler):
    config = drawn_config(7, activation=activation, pooler=pooler, pad_id=3)
    ids, mask = ragged(config)
    encoder = shaken(BertEncoder(config))
    save_bert(encoder, None, tmp_path / "encoder")
    assert sorted(path.name for path in (tmp_path / "encoder").iterdir()) == ["config.json", "model.safetensors"]
    theirs = AutoModel.from_pretrained(tmp_path / "encoder").eval()
    with torch.no_grad():
        got, expected = theirs(ids, attention_mask=mask.long()), encoder(ids, mask)
    assert (got.last_hidden_state - expected.x).abs().max() < 1e-5
    assert not pooler or (got.pooler_output - expected.pooled).abs().max() < 1e-5
    again, tokenizer = load_bert(tmp_path / "encoder")
    assert equal_states(again, encoder) and again.config == config and tokenizer is None

    masked = shaken(MaskedLanguageModel(config))
    save_bert(masked, None, tmp_path / "masked")
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "masked").eval()
    with torch.no_grad():
        got, expected = theirs(ids, attention_mask=mask.long()).logits, masked(ids, mask)
    assert (got - expected).abs().max() < 1e-4 and expected.std() > 0.3
    assert equal_states(load_bert(tmp_path / "masked", masked=True)[0], masked)


@pytest.mark.parametrize("seed", range(6))
def test_names_and_settings_go_there_and_back(seed):
    config = drawn_config(seed)
    assert dataclasses.replace(bert_config(library_bert_config(config)), pooler=config.pooler) == config
    masked = MaskedLanguageModel(config)
    there = library_names(masked.state_dict())
    assert all(name.startswith(("bert.", "cls.predictions.")) for name in there) and len(there) == len(masked.state_dict())
    back = bert_weights(there)
    assert all(torch.equal(back[name], tensor) for name, tensor in masked.state_dict().items())


def test_a_pipeline_says_the_names_and_probabilities_of_the_classes(tmp_path):
    model = shaken(BertClassifier(BertEncoder(drawn_config(1, vocab_size=len(VOCABULARY))), 2, "pooler"))
    tokenizer = WordPieceTokenizer(VOCABULARY)
    save_bert(model, tokenizer, tmp_path / "it", ["negative", "positive"])
    text = "Not duller. " * 30                                             # more than the model reads
    answer = pipeline("text-classification", str(tmp_path / "it"), device="cpu")(text, truncation=True)[0]
    ids = tokenizer.encode(text)
    cut = torch.tensor([[*ids[: model.config.max_len - 1], tokenizer.sep_id]])
    with torch.no_grad():
        probabilities = model(cut).logits[0].softmax(dim=-1)
    assert answer["label"] == ["negative", "positive"][int(probabilities.argmax())]
    assert abs(answer["score"] - probabilities.max().item()) < 1e-5


def test_half_precision_is_written_in_full_and_a_model_without_names_gets_the_library_s(tmp_path):
    model = shaken(BertClassifier(BertEncoder(drawn_config(2)), 3, "pooler"))
    half = BertClassifier(BertEncoder(drawn_config(2)), 3, "pooler")
    half.load_state_dict(model.state_dict())
    save_bert(half.half(), None, tmp_path / "it")
    again, _, names = load_bert_classifier(tmp_path / "it")
    assert names == ["LABEL_0", "LABEL_1", "LABEL_2"] and next(again.parameters()).dtype == torch.float32
    assert equal_states(again, half.float())


def test_merged_adapters_are_written(tmp_path):
    model = add_adapters(BertClassifier(BertEncoder(drawn_config(3, d_model=8, num_heads=2)), 2, "pooler"), rank=2)
    with pytest.raises(ValueError, match=r"low-rank adapters.*merge_adapters\(model\)"):
        save_bert(model, None, tmp_path / "it")
    model = shaken(merge_adapters(model))
    save_bert(model, None, tmp_path / "it")
    assert equal_states(load_bert_classifier(tmp_path / "it")[0], model)


# the tokenizer

TEXTS = ["Not duller.", "", " ", "CAFÉ café!", "a[MASK]b [SEP]", "dull" * 40, "映画 was not dull", "é̂ ##er",
         "naïve\u00adly\u200b \t\n"]


@pytest.mark.parametrize("cleaning", [{}, {"lower_case": False}, {"strip_accents": False}, {"split_chinese": False},
                                      {"lower_case": False, "strip_accents": True}], ids=str)
def test_the_library_s_tokenizer_gives_the_same_ids(tmp_path, cleaning):
    tokenizer = WordPieceTokenizer(VOCABULARY, **cleaning)
    tokenizer.save(tmp_path, max_len=33)
    model = shaken(BertEncoder(drawn_config(4)))
    save_bert(model, tokenizer, tmp_path / "it")
    draw = random.Random(0)
    ranges = [(32, 127), (128, 0x3000), (0x4E00, 0x9FFF)]
    texts = TEXTS + ["".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(30)) for _ in range(40)]
    for kind, folder, longest in ((BertTokenizerFast, tmp_path, 33), (AutoTokenizer, tmp_path / "it", model.config.max_len)):
        theirs = kind.from_pretrained(folder)
        assert theirs.model_max_length == longest and theirs.mask_token == "[MASK]"
        for text in texts:
            assert theirs(text)["input_ids"] == tokenizer.encode(text), ascii(text)
        pair = theirs("Not dull.", "Duller!")
        assert (pair["input_ids"], pair["token_type_ids"]) == tokenizer.encode_pair("Not dull.", "Duller!")
    _, again = load_bert(tmp_path / "it")
    assert (again.vocabulary, again.cleaning) == (tokenizer.vocabulary, tokenizer.cleaning)
    (tmp_path / "it" / "tokenizer.json").unlink()                          # vocab.txt alone
    _, again = load_bert(tmp_path / "it")
    assert (again.vocabulary, again.cleaning) == (tokenizer.vocabulary, tokenizer.cleaning)


@pytest.mark.parametrize("token, words", [("dull", "'dull' twice"), ("a\nb", r"'a\\nb'"), ("", "holds ''")])
def test_a_vocabulary_that_no_file_can_hold_is_refused(tmp_path, token, words):
    with pytest.raises(ValueError, match=words):
        WordPieceTokenizer([*VOCABULARY, token]).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


# what is refused

@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_pooling_that_the_library_lacks_is_refused_and_the_encoder_can_be_saved(tmp_path, pooling):
    model = BertClassifier(BertEncoder(drawn_config(5)), pooling=pooling)
    with pytest.raises(ValueError, match=f"pooling='{pooling}'.*pooling='pooler'.*model.encoder"):
        save_bert(model, None, tmp_path / "it")
    assert list(tmp_path.iterdir()) == []
    save_bert(model.encoder, None, tmp_path / "it")
    assert equal_states(load_bert(tmp_path / "it")[0], model.encoder)


def test_other_models_tokenizers_and_names_are_refused(tmp_path):
    config = drawn_config(6)
    encoder, model = BertEncoder(config), BertClassifier(BertEncoder(config), 2, "pooler")
    tokenizer = WordPieceTokenizer(VOCABULARY)
    for error, words, what in (
        (TypeError, "the model is a Linear; save_bert takes", (torch.nn.Linear(2, 2), None)),
        (TypeError, "the tokenizer is a WordTokenizer; use a WordPiece", (encoder, WordTokenizer(["<pad>", "<unk>"]))),
        (ValueError, "label_names are for a BertClassifier", (encoder, tokenizer, tmp_path / "it", ["a", "b"])),
        (ValueError, "label_names is 'ab'; use a list of names", (model, tokenizer, tmp_path / "it", "ab")),
        (ValueError, "has 2 classes, but label_names are", (model, tokenizer, tmp_path / "it", ["a", "b", "c"])),
        (ValueError, "two of them equal", (model, tokenizer, tmp_path / "it", ["a", "a"])),
        (ValueError, r"pad_id=0, the model .*pad_id=3", (BertEncoder(drawn_config(6, pad_id=3)), tokenizer)),
        (ValueError, r"the model vocab_size=9 ", (BertEncoder(drawn_config(6, vocab_size=9)), tokenizer)),
    ):
        with pytest.raises(error, match=words):
            save_bert(*(what if len(what) > 2 else (*what, tmp_path / "it")))
    with torch.no_grad():
        encoder.embedding.weight[1, 0] = torch.nan
    with pytest.raises(ValueError, match="word_embeddings.weight holds numbers that are NaN"):
        save_bert(encoder, None, tmp_path / "it")
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize("kind, settings, words", [
    (BertForTokenClassification, {}, "made for BertForTokenClassification; expected one for BertForSequenceClassification"),
    (BertForSequenceClassification, {"num_labels": 1}, "num_classes=1; use a whole number from 2"),
    (BertForSequenceClassification, {"problem_type": "multi_label_classification"}, "problem_type='multi_label_classi"),
    (BertForSequenceClassification, {"hidden_act": "silu"}, "hidden_act='silu'"),
])
def test_a_classifier_of_another_kind_is_refused(tmp_path, kind, settings, words):
    config = {"vocab_size": 50, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 9}
    kind(LibraryConfig(**config | settings)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=words):
        load_bert_classifier(tmp_path)


def test_the_library_s_own_classifiers_come_in_with_any_activation_and_number_of_types(tmp_path):
    for number, act in enumerate(("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")):
        torch.manual_seed(number)
        theirs = shaken(BertForSequenceClassification(LibraryConfig(
            vocab_size=70, hidden_size=12, num_attention_heads=3, num_hidden_layers=2, intermediate_size=20, hidden_act=act,
            max_position_embeddings=40, type_vocab_size=1 + number, num_labels=2 + number)))
        theirs.save_pretrained(tmp_path / act)
        ours, tokenizer, names = load_bert_classifier(tmp_path / act, dropout=0.0)
        ids, mask = ragged(ours.config)
        with torch.no_grad():
            assert (ours(ids, mask).logits - theirs(ids, attention_mask=mask.long()).logits).abs().max() < 1e-5
        assert names == [f"LABEL_{i}" for i in range(2 + number)] and tokenizer is None and ours.config.dropout == 0
