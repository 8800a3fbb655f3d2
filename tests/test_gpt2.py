"""GPT-2's weights in `LanguageModel`: the numbers of Hugging Face's class, and words for what can't be loaded."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from small_language_models import gpt2
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel

from course_utils.language_model import gpt2_config, load_gpt2, next_token_loss
from course_utils.training.byte_pair_files import GPT2Tokenizer, read_gpt2_tokenizer
from course_utils.training.hugging_face import ModelNotAvailable

SHAPES = [
    dict(vocab_size=61, n_embd=24, n_layer=3, n_head=4, n_positions=40),
    dict(vocab_size=130, n_embd=30, n_layer=1, n_head=5, n_positions=33, n_inner=17, layer_norm_epsilon=1e-2),
    dict(vocab_size=257, n_embd=32, n_layer=5, n_head=1, n_positions=64, activation_function="gelu"),
    dict(vocab_size=40, n_embd=12, n_layer=2, n_head=6, n_positions=24, activation_function="relu", layer_norm_epsilon=1e-9),
    dict(vocab_size=77, n_embd=48, n_layer=4, n_head=3, n_positions=31, tie_word_embeddings=False),
]


def library_model(folder, seed=0, **shape):
    """A random GPT-2 of the library, saved in `folder`; its weights are large enough for every part to matter."""
    torch.manual_seed(seed)
    model = GPT2LMHeadModel(GPT2Config(bos_token_id=0, eos_token_id=0, initializer_range=0.3, **shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:                                       # biases, and the scales of layer norms
                parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
def test_logits_are_the_library_s(tmp_path, shape):
    theirs = library_model(tmp_path, **shape)
    ours, tokenizer = load_gpt2(tmp_path)
    assert tokenizer is None and not ours.training
    ids = torch.randint(shape["vocab_size"], (3, shape["n_positions"]))
    with torch.no_grad():
        expected, got = theirs(ids).logits, ours(ids).logits
    assert expected.std() > 0.5                                            # not nothing equal to nothing
    assert (got - expected).abs().max() < 1e-4
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
def test_greedy_text_is_the_library_s_with_the_cache_and_without(tmp_path, shape):
    theirs = library_model(tmp_path, seed=1, **shape)
    theirs.generation_config.eos_token_id = None                           # ours doesn't stop at a token
    ours, _ = load_gpt2(tmp_path)
    ids = torch.randint(1, shape["vocab_size"], (2, 5))
    expected = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=15, do_sample=False, pad_token_id=0)
    for use_cache in (True, False):
        assert torch.equal(ours.generate(ids, 15, temperature=0, use_cache=use_cache), expected)


def test_its_end_of_text_is_asked_for_with_a_mask_and_may_end_a_prompt(tmp_path):
    theirs = library_model(tmp_path, **SHAPES[0])
    ours, _ = load_gpt2(tmp_path)
    ids, mask = torch.randint(1, 61, (3, 12)), torch.ones(3, 12, dtype=torch.bool)
    ids[:, 7] = 0                                                          # eos_token_id=0 between two texts
    ids[2, 9:], mask[2, 10:] = 0, False                                    # one at the end, and padding
    with torch.no_grad():
        expected = theirs(ids, labels=ids.masked_fill(~mask, -100)).loss
        loss, counted = next_token_loss(ours, ids, mask)
    assert counted == 31 and (loss - expected).abs() < 1e-4
    assert ours.generate(ids[:, :8], 2).shape == (3, 10) and ours.generate(ids[:1, 7:8], 2).shape == (1, 3)


@pytest.mark.parametrize("pad, end, pad_id", [(7, 5, 7), (None, 5, 5), (61, 5, 5), (None, None, 0)])
def test_its_padding_is_its_own_token_or_its_end_of_text(pad, end, pad_id):
    config = GPT2Config(**SHAPES[0]).to_dict() | {"pad_token_id": pad, "eos_token_id": end}
    assert gpt2_config(config).pad_id == pad_id


def test_the_names_on_the_hub_lack_a_prefix_and_old_files_hold_masks(tmp_path):
    theirs = library_model(tmp_path, **SHAPES[0])
    weights = {name.removeprefix("transformer."): tensor.half() if "mlp" in name else tensor
               for name, tensor in load_file(tmp_path / "model.safetensors").items() if name != "lm_head.weight"}
    weights["h.0.attn.bias"] = torch.ones(1, 1, 40, 40)
    save_file(weights, tmp_path / "model.safetensors")
    ours, _ = load_gpt2(tmp_path)
    ids = torch.randint(61, (1, 12))
    with torch.no_grad():
        assert (ours(ids).logits - theirs(ids).logits).abs().max() < 0.1   # half precision in some


# what is refused

@pytest.mark.parametrize("setting, words", [
    (dict(scale_attn_by_inverse_layer_idx=True), "says scale_attn_by_inverse_layer_idx=True; .* =?False"),
    (dict(scale_attn_weights=False), "says scale_attn_weights=False"),
    (dict(add_cross_attention=True), "says add_cross_attention=True"),
    (dict(activation_function="swish"), "activation_function='swish'; use one of gelu_new"),
    (dict(n_layer=None), "has no 'n_layer'"),
    (dict(n_head=7), "d_model=24 is not divisible by num_heads=7"),
])
def test_settings_that_the_class_does_not_compute_are_refused(setting, words):
    with pytest.raises(ValueError, match=words.replace(" =?", " .*=")):
        gpt2_config(GPT2Config(**SHAPES[0]).to_dict() | setting)


def test_another_kind_of_model_and_damaged_files_are_refused(tmp_path):
    library_model(tmp_path / "ok", **SHAPES[0])
    GPT2ForSequenceClassification(GPT2Config(**SHAPES[0])).save_pretrained(tmp_path / "head")
    with pytest.raises(ValueError, match="has score.weight, and the model has no such weight"):
        load_gpt2(tmp_path / "head")
    config, weights = tmp_path / "ok" / "config.json", tmp_path / "ok" / "model.safetensors"
    written = config.read_text()
    config.write_text(written.replace('"model_type": "gpt2"', '"model_type": "bert"'))
    with pytest.raises(ValueError, match="holds a model of the type 'bert'; expected 'gpt2'"):
        load_gpt2(tmp_path / "ok")
    for broken in ("{", "[]", "{}"):
        config.write_text(broken)
        with pytest.raises(ValueError, match="config.json is not a model's configuration"):
            load_gpt2(tmp_path / "ok")
    config.write_text(written)
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.safetensors can't be read"):
        load_gpt2(tmp_path / "ok")
    weights.unlink()
    with pytest.raises(ValueError, match="has no model.safetensors; expected the weights in that format"):
        load_gpt2(tmp_path / "ok")
    (tmp_path / "ok" / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ValueError, match="only a list of several files; load it with transformers"):
        load_gpt2(tmp_path / "ok")
    config.unlink()
    with pytest.raises(ValueError, match="has no config.json"):
        load_gpt2(tmp_path / "ok")


def test_a_name_is_looked_up_where_course_models_says(tmp_path, monkeypatch):
    library_model(tmp_path / "mine", **SHAPES[0])
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    assert load_gpt2("mine")[0].config == load_gpt2("somebody/mine")[0].config
    with pytest.raises(ModelNotAvailable) as caught:
        load_gpt2("gpt2")
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert lines[0] == f"gpt2 could not be loaded: COURSE_MODELS names {tmp_path}, which has no folder gpt2."
    for wrong in ("../mine", "a/b/c", ""):
        with pytest.raises(ValueError, match="can't be a name on the hub"):
            load_gpt2(wrong)


# the tokenizer

def test_a_saved_tokenizer_comes_with_the_model(tmp_path):
    model, tokenizer = gpt2()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    ours, ids = load_gpt2(tmp_path)
    text = "the film was  not dull,\nfilm 'll été ½ 12 <|endoftext|"
    assert ids.encode(text) == tokenizer(text).input_ids and ids.decode(ids.encode(text)) == text
    assert ids.vocab_size == len(tokenizer) == ours.config.vocab_size
    assert ids.end_id == tokenizer.eos_token_id == ours.config.pad_id and ids.decode([ids.end_id]) == "<|endoftext|>"
    with pytest.raises(ValueError, match="id 999 is not in the vocabulary; its ids go from 0 to"):
        ids.decode([1, 999])


@pytest.fixture(scope="module")
def trained():
    """A tokenizer like GPT-2's, trained on a little text, and ours from its files."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    texts = ["The film wasn't dull; it's the 3rd time they've seen it, and we'll go.\n\n    def f(x):  return x_1 + 22"] * 3
    inner.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=340, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    whole = json.loads(inner.to_str())["model"]
    # by hand: merges that a wrong border between letters, numbers, other signs and spaces would let happen
    crossing = [("b", "Â"), ("½", "b"), ("3", "b"), ("_", "b"), ("_", "Â"), ("Ġ", "Ĝ"), ("Ĝ", "Ġ"), ("Ĝ", "Ċ"), (".", "Ĝ"),
                ("Ĝ", ".")]
    vocab = whole["vocab"] | {"".join(pair): len(whole["vocab"]) + i for i, pair in enumerate(crossing)}
    inner.model = models.BPE(vocab, [*crossing, *map(tuple, whole["merges"])])
    return inner, GPT2Tokenizer(vocab, [*crossing, *whole["merges"]])


@settings(max_examples=400, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
       | st.text("ab'ls² ½Ⅷ٣3_.\t\n\x1c\x85\xa0 ", max_size=20))
def test_any_text_gets_the_ids_of_the_tokenizers_library(trained, text):
    library, ours = trained
    assert ours.encode(text) == library.encode(text, add_special_tokens=False).ids
    assert ours.decode(ours.encode(text)) == text


def test_the_two_files_of_the_hub_give_what_the_one_gives(tmp_path, trained):
    library, ours = trained
    library.save(str(tmp_path / "tokenizer.json"))
    one = read_gpt2_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    library.model.save(str(tmp_path))                                      # vocab.json and merges.txt
    two = read_gpt2_tokenizer(tmp_path)
    text = "They've seen it, and 22 more.  def"
    assert one.encode(text) == two.encode(text) == ours.encode(text)
    (tmp_path / "merges.txt").write_text("Q Z\nZ Q\nQ Z\n")
    with pytest.raises(ValueError, match="the merge of 'Q' and 'Z' doesn't fit|the vocabulary lacks"):
        read_gpt2_tokenizer(tmp_path)


def test_another_kind_of_tokenizer_is_left_to_the_library(tmp_path, trained):
    library, _ = trained
    whole = json.loads(library.to_str())
    for change in ({"normalizer": {"type": "Lowercase"}}, {"pre_tokenizer": {"type": "Whitespace"}}, {"pre_tokenizer": None},
                   {"pre_tokenizer": whole["pre_tokenizer"] | {"add_prefix_space": True}}):
        (tmp_path / "tokenizer.json").write_text(json.dumps(whole | change))
        assert read_gpt2_tokenizer(tmp_path) is None
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="can't be used"):
        read_gpt2_tokenizer(tmp_path)
