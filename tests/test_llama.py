"""The four changes by themselves, all of them in one model, and a Llama of Hugging Face's in it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig as TheirConfig
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP

from course_utils.attention import causal_mask
from course_utils.language_model import KeyValueCache, LanguageModel, LanguageModelConfig, next_token_loss
from course_utils.llama import (
    GroupedQueryAttention,
    Llama,
    LlamaConfig,
    SwiGLU,
    llama_config,
    load_llama,
    rms_norm,
)
from course_utils.multi_head_attention import MultiHeadAttention

proof = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)

SHAPES = [
    dict(vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=6,
         num_key_value_heads=2, max_position_embeddings=40),
    dict(vocab_size=130, hidden_size=32, intermediate_size=17, num_hidden_layers=1, num_attention_heads=4,
         num_key_value_heads=1, max_position_embeddings=33, rms_norm_eps=1e-2, tie_word_embeddings=True),
    dict(vocab_size=50, hidden_size=16, intermediate_size=64, num_hidden_layers=5, num_attention_heads=4,
         num_key_value_heads=4, max_position_embeddings=64, rope_parameters={"rope_type": "default", "rope_theta": 50.0}),
    dict(vocab_size=77, hidden_size=80, intermediate_size=99, num_hidden_layers=2, num_attention_heads=8,
         num_key_value_heads=4, max_position_embeddings=31,
         rope_parameters={"rope_type": "default", "rope_theta": 500000.0}),
]


def library_model(folder, seed=0, **shape):
    """A random Llama of the library, saved in `folder`; its weights are large enough for every part to matter."""
    torch.manual_seed(seed)
    model = LlamaForCausalLM(TheirConfig(initializer_range=0.3, **shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:                                       # the scales of the norms
                parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    return model


each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"width-{shape['hidden_size']}")


# the parts

@proof
@given(rows=st.integers(1, 4), width=st.integers(1, 20), size=st.sampled_from([1e-3, 1.0, 100.0]), seed=seeds)
def test_rms_norm_equals_the_library(rows, width, size, seed):
    torch.manual_seed(seed)
    x = (torch.randn(rows, width, dtype=torch.float64) * size).requires_grad_()
    theirs = nn.RMSNorm(width, eps=1e-4, dtype=torch.float64)
    nn.init.normal_(theirs.weight)
    ours, expected = rms_norm(x, theirs.weight, 1e-4), theirs(x)
    torch.testing.assert_close(ours, expected, atol=1e-10, rtol=1e-10)
    away = torch.randn_like(expected)
    for mine, their in zip(torch.autograd.grad(ours, [x, theirs.weight], away, retain_graph=True),
                           torch.autograd.grad(expected, [x, theirs.weight], away)):
        torch.testing.assert_close(mine, their, atol=1e-10, rtol=1e-8)


@proof
@given(d_model=st.sampled_from([2, 6, 10]), d_ff=st.integers(1, 20), seed=seeds)
def test_swiglu_equals_the_library(d_model, d_ff, seed):
    torch.manual_seed(seed)
    theirs = LlamaMLP(TheirConfig(hidden_size=d_model, intermediate_size=d_ff, num_attention_heads=1))
    ours = SwiGLU(d_model, d_ff)
    for mine, their in ((ours.gate, theirs.gate_proj), (ours.expand, theirs.up_proj), (ours.contract, theirs.down_proj)):
        mine.weight.data = their.weight.data
    x = torch.randn(2, 3, d_model)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-6, rtol=1e-6)


@proof
@given(groups=st.integers(1, 3), each=st.integers(1, 3), d_head=st.integers(1, 4), length=st.integers(1, 6), seed=seeds)
def test_grouped_queries_equal_the_library_and_multi_head_attention_with_copied_heads(groups, each, d_head, length, seed):
    torch.manual_seed(seed)
    heads = groups * each
    ours, x = GroupedQueryAttention(heads * d_head, heads, groups), torch.randn(2, length, heads * d_head)
    mask = causal_mask(length)[None, None]
    result = ours(x, mask=mask, need_weights=True)
    query, key, value = ours.project(x, x, x)
    assert key.shape == value.shape == (2, groups, length, d_head)
    theirs = F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    for need_weights in (True, False):
        context = ours(x, mask=mask, need_weights=need_weights).context
        torch.testing.assert_close(context, ours.output_projection(ours.merge(theirs)), atol=1e-5, rtol=1e-5)
    full = MultiHeadAttention(heads * d_head, heads, projection_bias=False)
    full.load_state_dict({
        name: matrix.unflatten(0, (groups, d_head)).repeat_interleave(each, dim=0).flatten(0, 1)
        if "key" in name or "value" in name else matrix for name, matrix in ours.state_dict().items()})
    expected = full(x, mask=mask, need_weights=True)
    torch.testing.assert_close(result.context, expected.context, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(result.weights, expected.weights, atol=1e-5, rtol=1e-5)
    cache = KeyValueCache()
    parts = [ours(x[:, i : i + 1], cache=cache).context for i in range(length)]
    torch.testing.assert_close(torch.cat(parts, dim=1), result.context, atol=1e-5, rtol=1e-5)
    assert cache.key.shape == cache.value.shape == (2, groups, length, d_head)


@pytest.mark.parametrize("num_kv_heads, words", [
    (4, "num_heads=6 can't be shared out to num_kv_heads=4; use one of 1, 2, 3, 6"),
    (0, "num_kv_heads=0; use a whole number from 1 to 6"), (7, "num_kv_heads=7; use"), (2.0, "num_kv_heads=2.0; use"),
])
def test_heads_that_cannot_be_shared_out_are_refused(num_kv_heads, words):
    with pytest.raises(ValueError, match=words):
        GroupedQueryAttention(24, 6, num_kv_heads)


# the model

@pytest.mark.parametrize("change", [{"rms_norm": True}, {"swiglu": True}, {"num_kv_heads": 2}, {"positions": "rotary"},
                                    {"rms_norm": True, "swiglu": True, "num_kv_heads": 1, "positions": "rotary"}])
def test_each_change_learns_ignores_padding_and_the_future_and_works_with_a_cache(change):
    torch.manual_seed(0)
    options = {"positions": "learned", "rms_norm": False, "swiglu": False} | change
    model = Llama(LlamaConfig(30, d_model=16, num_heads=4, d_ff=24, num_layers=2, max_len=24, **options))
    ids = torch.randint(1, 30, (4, 12))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        loss, _ = next_token_loss(model, ids)
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    model.eval()
    with torch.no_grad():
        whole, caches = model(ids).logits, model.new_caches()
        parts = torch.cat([model(ids[:, :5], caches=caches).logits, model(ids[:, 5:], caches=caches).logits], dim=1)
        padded = model(F.pad(ids[:, :7], (0, 3))).logits[:, :7]
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(padded, whole[:, :7], atol=1e-5, rtol=1e-5)


def test_without_changes_it_is_the_language_model():
    options = dict(vocab_size=30, d_model=16, num_heads=4, d_ff=24, num_layers=2, max_len=24, positions="learned")
    ours, plain = (make() for make in (lambda: Llama(LlamaConfig(**options, rms_norm=False, swiglu=False)),
                                       lambda: LanguageModel(LanguageModelConfig(**options))))
    ours.load_state_dict(plain.state_dict())
    ids = torch.randint(1, 30, (2, 9))
    assert torch.equal(ours(ids).logits, plain(ids).logits)


@pytest.mark.parametrize("options", [{"rms_norm": 1}, {"swiglu": "yes"}, {"rotary_base": 0}, {"layer_norm_eps": -1.0},
                                     {"activation": "silu"}])
def test_wrong_options_are_named(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}=.*; use "):
        LlamaConfig(30, **options)


# Hugging Face's weights

@each_shape
def test_logits_and_greedy_text_are_the_library_s(tmp_path, shape):
    theirs = library_model(tmp_path, **shape)
    theirs.generation_config.eos_token_id = None                           # ours doesn't stop at a token
    ours = load_llama(tmp_path)
    ids = torch.randint(3, shape["vocab_size"], (3, shape["max_position_embeddings"]))
    with torch.no_grad():
        expected, got = theirs(ids).logits, ours(ids).logits
    assert expected.std() > 0.5 and (got - expected).abs().max() < 1e-4
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())
    start = ids[:, :5]
    options = dict(attention_mask=torch.ones_like(start), do_sample=False, pad_token_id=0)
    written = theirs.generate(start, max_new_tokens=15, **options)
    for use_cache in (True, False):
        assert torch.equal(ours.generate(start, 15, temperature=0, use_cache=use_cache), written)


@pytest.mark.parametrize("setting, words", [
    (dict(attention_bias=True), "says attention_bias=True"), (dict(mlp_bias=True), "says mlp_bias=True"),
    (dict(hidden_act="gelu"), "says hidden_act='gelu'"), (dict(head_dim=7), "says head_dim=7"),
    (dict(rope_parameters={"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0}), "says rope_type='llama3'"),
    (dict(rope_scaling={"type": "linear", "factor": 2.0}), "says rope_scaling="),
    (dict(hidden_size=None), "has no 'hidden_size'"), (dict(num_key_value_heads=4), None),
])
def test_settings_that_the_class_does_not_compute_are_refused(setting, words):
    config = TheirConfig(**SHAPES[0]).to_dict() | setting
    if words is None:                                                      # known only when the model is built
        with pytest.raises(ValueError, match="num_heads=6 can't be shared out to num_kv_heads=4"):
            Llama(llama_config(config))
        return
    with pytest.raises(ValueError, match=words):
        llama_config(config)


def test_older_configurations_name_the_base_elsewhere():
    config = TheirConfig(**SHAPES[0]).to_dict()
    del config["rope_parameters"], config["head_dim"], config["num_key_value_heads"]
    assert llama_config(config | {"rope_theta": 500.0}).rotary_base == 500.0
    assert llama_config(config).num_kv_heads == 6


def test_a_file_that_does_not_fit_and_another_kind_of_model_are_refused(tmp_path):
    library_model(tmp_path, **SHAPES[0])
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    save_file(weights | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}, path)
    load_llama(tmp_path)
    save_file(weights | {"model.layers.3.mlp.up_proj.weight": torch.ones(40, 24)}, path)
    with pytest.raises(ValueError, match="has decoder.blocks.3.feed_forward.expand.weight, and the model has no"):
        load_llama(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"model_type": "llama"', '"model_type": "mistral"'))
    with pytest.raises(ValueError, match="a model of the type 'mistral'; expected 'llama'"):
        load_llama(tmp_path)
