"""BERT's weights in `BertEncoder`: every hidden state of Hugging Face's class, and words for what can't be loaded."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig as LibraryConfig,
)
from transformers import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)

from course_utils.pretraining import BertConfig, BertEncoder, MaskedLanguageModel, bert_config, load_bert

SHAPES = [
    dict(vocab_size=61, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
         max_position_embeddings=40),
    dict(vocab_size=130, hidden_size=30, num_hidden_layers=1, num_attention_heads=5, intermediate_size=17,
         max_position_embeddings=33, layer_norm_eps=1e-2, type_vocab_size=3),
    dict(vocab_size=257, hidden_size=32, num_hidden_layers=5, num_attention_heads=1, intermediate_size=64,
         max_position_embeddings=64, hidden_act="gelu_new", type_vocab_size=1, pad_token_id=3),
    dict(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=6, intermediate_size=50,
         max_position_embeddings=24, hidden_act="relu", layer_norm_eps=1e-5),
    dict(vocab_size=77, hidden_size=48, num_hidden_layers=12, num_attention_heads=3, intermediate_size=192,
         max_position_embeddings=31, hidden_act="gelu_pytorch_tanh"),
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))


def library_model(folder, kind=BertModel, seed=0, **shape):
    """A random BERT of the library, saved in `folder`; its weights are large enough for every part to matter."""
    torch.manual_seed(seed)
    model = kind(LibraryConfig(initializer_range=0.2, **shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:                                       # biases, and the scales of layer norms
                parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    return model


def ragged(shape, batch=4):
    """Token ids, a mask of different lengths, and token types."""
    seq_len, pad_id = shape["max_position_embeddings"], shape.get("pad_token_id", 0)
    ids = torch.randint(4, shape["vocab_size"], (batch, seq_len))
    mask = torch.arange(seq_len) < torch.tensor([seq_len, 1, seq_len // 2, seq_len - 3])[:batch, None]
    types = torch.randint(shape.get("type_vocab_size", 2), ids.shape)
    return ids.masked_fill(~mask, pad_id), mask, types


@shapes
def test_every_hidden_state_is_the_library_s(tmp_path, shape):
    theirs = library_model(tmp_path, **shape)
    ours, tokenizer = load_bert(tmp_path)
    assert tokenizer is None and not ours.training and isinstance(ours, BertEncoder)
    ids, mask, types = ragged(shape)
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask.long(), token_type_ids=types, output_hidden_states=True)
        for given in (mask, None):                                         # None: what isn't padding is real
            got = ours(ids, given, types)
            assert len(got.hidden_states) == shape["num_hidden_layers"] + 1 and got.attentions is None
            for one, other in zip(got.hidden_states, expected.hidden_states, strict=True):
                assert other.std() > 0.3                                   # not nothing equal to nothing
                assert (one - other).abs().max() < 1e-5
            assert torch.equal(got.x, got.hidden_states[-1])
            assert (got.pooled - expected.pooler_output).abs().max() < 1e-5
        plain = theirs(ids, attention_mask=mask.long()).last_hidden_state
        assert (ours(ids, mask).x - plain).abs().max() < 1e-5              # without types, all are 0
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def test_attention_weights_are_the_library_s_and_change_nothing(tmp_path):
    shape = SHAPES[0]
    library_model(tmp_path, **shape)
    theirs = BertModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    ours, _ = load_bert(tmp_path)
    ids, mask, types = ragged(shape)
    with torch.no_grad():
        got, fused = ours(ids, mask, types, need_weights=True), ours(ids, mask, types)
        expected = theirs(ids, attention_mask=mask.long(), token_type_ids=types, output_attentions=True).attentions
    assert (got.x - fused.x).abs().max() < 1e-5
    for one, other in zip(got.attentions, expected, strict=True):
        assert (one - other).abs().max() < 1e-5 and one[1, :, :, 1:].abs().max() == 0


@pytest.mark.parametrize("kind", [BertForMaskedLM, BertForPreTraining])
@shapes
def test_the_scores_of_hidden_words_are_the_library_s(tmp_path, kind, shape):
    theirs = library_model(tmp_path, kind, **shape)
    ours, _ = load_bert(tmp_path, masked=True)
    assert isinstance(ours, MaskedLanguageModel)
    ids, mask, types = ragged(shape)
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask.long(), token_type_ids=types)
        expected = expected.logits if kind is BertForMaskedLM else expected.prediction_logits
        assert (ours(ids, mask, types) - expected).abs().max() < 5e-5 and expected.std() > 0.3
        chosen = torch.rand(ids.shape) < 0.3
        assert (ours(ids, mask, types, chosen) - expected[chosen]).abs().max() < 5e-5


@pytest.mark.parametrize("kind", [BertForMaskedLM, BertForPreTraining, BertForSequenceClassification,
                                  BertForTokenClassification, BertForQuestionAnswering])
def test_an_encoder_is_found_below_every_head(tmp_path, kind):
    theirs = library_model(tmp_path, kind, **SHAPES[0]).bert
    ours, _ = load_bert(tmp_path)
    ids, mask, _ = ragged(SHAPES[0])
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask.long())
        got = ours(ids, mask)
    assert (got.x - expected.last_hidden_state).abs().max() < 1e-5
    assert (got.pooled is None) == (theirs.pooler is None) == (not ours.config.pooler)


def test_files_as_they_were_written_long_ago(tmp_path):
    theirs = library_model(tmp_path, BertForPreTraining, **SHAPES[0])
    weights = {re.sub("LayerNorm.weight$", "LayerNorm.gamma", re.sub("LayerNorm.bias$", "LayerNorm.beta", name)): tensor
               for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    weights["bert.embeddings.position_ids"] = torch.arange(40)[None]
    save_file(weights, tmp_path / "model.safetensors")
    ids, mask, _ = ragged(SHAPES[0])
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask.long()).prediction_logits
        assert (load_bert(tmp_path, masked=True)[0](ids, mask) - expected).abs().max() < 5e-5


def test_a_head_with_a_matrix_of_its_own_is_refused(tmp_path):
    library_model(tmp_path, BertForMaskedLM, **SHAPES[0])
    weights = load_file(tmp_path / "model.safetensors")
    table = weights["bert.embeddings.word_embeddings.weight"]
    save_file(weights | {"cls.predictions.decoder.weight": table.clone()}, tmp_path / "model.safetensors")
    load_bert(tmp_path, masked=True)                    # the same numbers, written twice
    save_file(weights | {"cls.predictions.decoder.weight": table + 0.1}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="scores hidden words by a matrix of its own"):
        load_bert(tmp_path, masked=True)
    load_bert(tmp_path)                                 # the encoder is as it should be


def test_settings_that_no_weight_depends_on_can_be_changed(tmp_path):
    library_model(tmp_path, **SHAPES[0])
    ours, _ = load_bert(tmp_path, dropout=0.0, attention_dropout=0.25)
    assert (ours.config.dropout, ours.config.attention_dropout) == (0.0, 0.25)
    assert ours.encoder.blocks[0].attention.attention_dropout == 0.25
    assert load_bert(tmp_path)[0].config.attention_dropout == 0.1          # the file's


# what is refused

@pytest.mark.parametrize("setting, words", [
    (dict(position_embedding_type="relative_key"), "says position_embedding_type='relative_key'; .*'absolute'"),
    (dict(is_decoder=True), "says is_decoder=True"),
    (dict(add_cross_attention=True), "says add_cross_attention=True"),
    (dict(hidden_act="silu"), "hidden_act='silu'; use one of gelu, gelu_new"),
    (dict(num_hidden_layers=None), "has no 'num_hidden_layers'"),
    (dict(num_attention_heads=7), "d_model=24 is not divisible by num_heads=7"),
    (dict(layer_norm_eps=0), "layer_norm_eps=0; use a number above 0"),
    (dict(pad_token_id=61), "pad_id=61, but vocab_size=61"),
])
def test_settings_that_the_class_does_not_compute_are_refused(setting, words):
    with pytest.raises(ValueError, match=words):
        bert_config(LibraryConfig(**SHAPES[0]).to_dict() | setting)


@pytest.mark.parametrize("change, words", [
    (lambda w: w.pop("encoder.layer.2.output.LayerNorm.bias"), "has no encoder.blocks.2.feed_forward_norm.bias; expected"),
    (lambda w: w.update(surprise=torch.ones(2)), "has surprise, and the model has no such weight"),
    (lambda w: w.update({"embeddings.position_embeddings.weight": torch.ones(41, 24)}), r"has shape \(41, 24\); expected"),
    (lambda w: w["encoder.layer.0.output.dense.bias"].fill_(torch.nan), "contract.bias holds numbers that aren't finite"),
    (lambda w: w.update({"encoder.layer.0.output.dense.bias": torch.ones(24, dtype=torch.int8)}), "torch.int8; expected"),
])
def test_weights_that_do_not_fit_are_named(tmp_path, change, words):
    library_model(tmp_path, **SHAPES[0])
    weights = load_file(tmp_path / "model.safetensors")
    change(weights)
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=words):
        load_bert(tmp_path)


@pytest.mark.parametrize("write, words", [
    (lambda model, folder: model.save_pretrained(folder, max_shard_size="10KB"), "only a list of several files; load it"),
    (lambda model, folder: torch.save(model.state_dict(), folder / "pytorch_model.bin"), "only pytorch_model.bin, PyTorch"),
], ids=["several files", "older format"])
def test_weights_in_another_form_are_refused_and_the_way_out_is_one(tmp_path, write, words):
    model = library_model(tmp_path, **SHAPES[0])
    (tmp_path / "model.safetensors").unlink()
    write(model, tmp_path)
    with pytest.raises(ValueError, match=f"has no model.safetensors, {words}"):
        load_bert(tmp_path)
    BertModel.from_pretrained(tmp_path).save_pretrained(tmp_path / "anew", max_shard_size="100GB")
    ids, mask, _ = ragged(SHAPES[0])
    with torch.no_grad():
        assert (load_bert(tmp_path / "anew")[0](ids, mask).x - model(ids, mask.long()).last_hidden_state).abs().max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_weights_in_half_precision_are_computed_with_in_float32(tmp_path, dtype):
    model = library_model(tmp_path / "whole", **SHAPES[1]).to(dtype)
    model.save_pretrained(tmp_path / "half")
    assert load_file(tmp_path / "half" / "model.safetensors")["pooler.dense.bias"].dtype == dtype
    ours, (ids, mask, types) = load_bert(tmp_path / "half")[0], ragged(SHAPES[1])
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float32}
    with torch.no_grad():
        expected = model.float()(ids, attention_mask=mask.long(), token_type_ids=types, output_hidden_states=True)
        for one, other in zip(ours(ids, mask, types).hidden_states, expected.hidden_states, strict=True):
            assert (one - other).abs().max() < 1e-5


def test_a_missing_head_and_another_kind_of_model_are_refused(tmp_path):
    library_model(tmp_path, **SHAPES[0])
    with pytest.raises(ValueError, match="has no head for hidden words, no weights named cls.predictions: its archi"):
        load_bert(tmp_path, masked=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'drop'"):
        load_bert(tmp_path, drop=0.5)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "roberta"}))
    with pytest.raises(ValueError, match="holds a model of the type 'roberta'; expected 'bert'"):
        load_bert(tmp_path)


def test_a_configuration_from_before_model_type_is_a_bert_s_if_its_other_settings_are(tmp_path):
    theirs = library_model(tmp_path, **SHAPES[0])
    config = json.loads((tmp_path / "config.json").read_text())
    early = {name: value for name, value in config.items() if name not in ("model_type", "architectures", "dtype")}
    (tmp_path / "config.json").write_text(json.dumps(early))
    ids, mask, _ = ragged(SHAPES[0])
    with torch.no_grad():
        assert (load_bert(tmp_path)[0](ids, mask).x - theirs(ids, mask.long()).last_hidden_state).abs().max() < 1e-5
    for other in (early | {"embedding_size": 8}, {"vocab_size": 61}):
        (tmp_path / "config.json").write_text(json.dumps(other))
        with pytest.raises(ValueError, match='settings don\'t say what kind it is.*add "model_type": "bert"'):
            load_bert(tmp_path)


def test_inputs_of_the_wrong_shape_or_range_are_refused():
    model = BertEncoder(BertConfig(20, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=6))
    ids = torch.ones(2, 5, dtype=torch.long)
    for given, words in (((ids[0],), r"\(5,\)"), ((ids, torch.ones(5, dtype=torch.bool)), "attention_mask"),
                         ((ids, None, ids[:, :3]), "token_types")):
        with pytest.raises(ValueError, match=words):
            model(*given)
    with pytest.raises(TypeError, match="must be torch.bool"):
        model(ids, ids)
    for wrong, words in ((20, "from 3 to 20, and this encoder knows 0 to 19"), (-100, "from -100 to 3, and")):
        with pytest.raises(ValueError, match=words):    # the ids of another vocabulary, and labels in place of ids
            model(torch.tensor([[3, 3, wrong]]))
    for wrong, words in ((2, "token_types go from 2 to 2, and this encoder knows 0 to 1"), (-1, "token_types go from -1")):
        with pytest.raises(ValueError, match=words):
            model(ids, None, torch.full_like(ids, wrong))
    with pytest.raises(ValueError, match="positions for max_len=6"):
        model(torch.ones(1, 7, dtype=torch.long))
    for wrong in (dict(num_token_types=0), dict(pooler=1), dict(dropout=1.0), dict(activation="silu"), dict(num_heads=3)):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            BertConfig(20, **{"d_model": 8, "num_heads": 2} | wrong)
