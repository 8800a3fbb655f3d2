"""Blocks and stacks equal the library's; identity, parameters, dropout and errors are as promised."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import (
    block_pairs,
    copy_over,
    proof,
    ragged_mask,
    randomise,
    same,
    same_gradients,
    same_parameter_gradients,
)
from small_cache import Cache
from torch import nn
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask
from course_utils.classifier import ReviewClassifier
from course_utils.exercises.catalogue import answers_to
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import POSITIONS, RotaryPositions, alibi_bias, make_positions
from course_utils.tokenization import pad_batch
from course_utils.transformer_blocks import ACTIVATIONS, Encoder, EncoderBlock, FeedForward, layer_norm

seeds = st.integers(0, 10**6)


@proof
@given(batch=st.integers(1, 3), length=st.integers(1, 5), d_model=st.integers(2, 20), seed=seeds,
       eps=st.sampled_from([1e-5, 1e-3]))
def test_layer_norm_equals_the_library(batch, length, d_model, seed, eps):
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(seed)
        theirs = nn.LayerNorm(d_model, eps=eps, dtype=dtype)
        randomise(theirs)
        x = torch.randn(batch, length, d_model, dtype=dtype, requires_grad=True)
        ours = layer_norm(x, theirs.weight, theirs.bias, eps)
        torch.testing.assert_close(ours, theirs(x), atol=2e-6 if dtype == torch.float32 else 1e-10, rtol=1e-6)
        if dtype == torch.float64:
            tensors = [x, theirs.weight, theirs.bias]
            same_gradients(ours, tensors, theirs(x), tensors)


@pytest.mark.parametrize("norm_first", [True, False])
@proof
@given(layers=st.integers(1, 3), length=st.integers(2, 6), activation=st.sampled_from(["relu", "gelu"]), seed=seeds)
def test_a_stack_equals_the_library(norm_first, layers, length, activation, seed):
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(seed)
        options = dict(dropout=0.0, activation=activation, layer_norm_eps=1e-3)
        ours = Encoder(layers, 8, 2, 12, norm_first=norm_first, **options).to(dtype)
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=norm_first, dtype=dtype, **options)
        norm = nn.LayerNorm(8, eps=1e-3, dtype=dtype) if norm_first else None
        theirs = nn.TransformerEncoder(layer, layers, norm=norm, enable_nested_tensor=False)
        randomise(ours)
        pairs = [pair for our, their in zip(ours.blocks, theirs.layers) for pair in block_pairs(our, their)]
        if norm_first:
            pairs += [(norm.weight, [ours.norm.weight]), (norm.bias, [ours.norm.bias])]
        # the library deep-copies the layer but keeps this norm
        our_parameters, their_parameters = copy_over(pairs)
        assert len(our_parameters) == len(list(ours.parameters()))
        x = torch.randn(3, length, 8, dtype=dtype, requires_grad=True)
        real = ragged_mask(3, length)
        result, expected = ours(x, padding_mask(real)).x, theirs(x, src_key_padding_mask=~real)
        torch.testing.assert_close(result, expected, atol=2e-6, rtol=2e-6)
        if dtype == torch.float64:
            same(result, expected)
            same_parameter_gradients(result, [x], our_parameters, expected, [x], their_parameters)


def test_the_activations_are_the_library_s_and_gelu_by_tanh_is_not_gelu():
    x = torch.linspace(-4, 4, 33, dtype=torch.float64)[:, None]
    theirs = {"gelu": nn.GELU(), "gelu_tanh": nn.GELU(approximate="tanh"), "relu": nn.ReLU()}
    assert set(theirs) == set(ACTIVATIONS)
    for name, expected in theirs.items():
        layer = FeedForward(1, 1, dropout=0.0, activation=name).double()
        for linear in (layer.expand, layer.contract):
            nn.init.ones_(linear.weight)
            nn.init.zeros_(linear.bias)
        same(layer(x), expected(x))
    assert 1e-4 < (theirs["gelu"](x) - theirs["gelu_tanh"](x)).abs().max() < 1e-3


@pytest.mark.parametrize("options", [dict(dropout=0.4), dict(dropout=0.0, attention_dropout=0.4)])
@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_is_off_in_evaluation_and_on_in_training(options, need_weights):
    torch.manual_seed(0)
    encoder, x = Encoder(1, 8, 2, 8, **options), torch.randn(2, 6, 8)
    encoder.eval()
    assert torch.equal(encoder(x, need_weights=need_weights).x, encoder(x, need_weights=need_weights).x)
    encoder.train()
    first, second = (encoder(x, need_weights=need_weights).x for _ in range(2))
    assert (first - second).abs().max() > 1e-3


def test_dropout_acts_on_what_each_sublayer_adds():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    assert torch.equal(EncoderBlock(8, 2, 8, dropout=1.0)(x).x, x)          # everything dropped: the residual is left
    for silenced in ("attention", "feed_forward"):
        block = EncoderBlock(8, 2, 8, dropout=0.5)
        last = block.attention.output_projection if silenced == "attention" else block.feed_forward.contract
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        assert 0.2 < (block(x).x == x).float().mean() < 0.8                # half of what the other one adds


def test_dropout_drops_inside_the_feed_forward_layer_too():
    torch.manual_seed(0)
    feed_forward, x = FeedForward(8, 32, dropout=0.5), torch.randn(4, 8)
    assert not torch.equal(feed_forward(x), feed_forward(x))


def test_one_tensor_of_weights_a_layer_when_asked_for():
    encoder, x = Encoder(3, 8, 2, 8).eval(), torch.randn(2, 5, 8)
    result = encoder(x, need_weights=True)
    assert [tuple(w.shape) for w in result.attentions] == [(2, 2, 5, 5)] * 3
    torch.testing.assert_close(result.x, encoder(x).x)
    assert encoder(x).attentions is None
    assert encoder.blocks[0](x).weights is None
    torch.testing.assert_close(encoder.blocks[0](x, need_weights=True).weights, result.attentions[0])


@pytest.mark.parametrize("options", [{"bias": alibi_bias(2, 5)}, {"rotary": RotaryPositions(4)}])
def test_bias_and_rotary_reach_every_layer(options):
    torch.manual_seed(0)
    encoder, x = Encoder(2, 8, 2, 8).eval(), torch.randn(1, 5, 8)
    expected = x
    for block in encoder.blocks:
        expected = block(expected, **options).x
    torch.testing.assert_close(encoder(x, **options).x, encoder.norm(expected))
    assert (encoder(x, **options).x - encoder(x).x).abs().max() > 1e-3


class LanguageModel(nn.Module):
    """What Part III builds from these parts, in its smallest form: the next token after each token."""

    def __init__(self, positions, **options):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(11, 12), make_positions(positions, 12, 3, max_len=9)
        self.encoder, self.output = Encoder(2, 12, 3, 16, **options), nn.Linear(12, 11)

    def forward(self, token_ids, caches=None):
        past = len(caches[0]) if caches else 0
        query_len, key_len = token_ids.shape[1], past + token_ids.shape[1]
        x = self.positions.add(self.embedding(token_ids), past)
        mask = causal_mask(query_len, key_len)[None, None]
        x = self.encoder(x, mask, self.positions.bias(query_len, key_len), self.positions.rotate, caches=caches).x
        return self.output(x)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_language_model_with_caches_says_token_by_token_what_it_says_in_one_pass(positions, norm_first):
    torch.manual_seed(0)
    model = LanguageModel(positions, norm_first=norm_first).double().eval()
    randomise(model)
    token_ids, caches = torch.randint(11, (2, 8)), [Cache() for _ in model.encoder.blocks]
    with torch.no_grad():
        whole = model(token_ids)
        for i in range(8):
            logits = model(token_ids[:, i : i + 1], caches)
            torch.testing.assert_close(logits[:, 0], whole[:, i], atol=1e-10, rtol=0)
    assert [len(cache) for cache in caches] == [8, 8]
    assert not torch.allclose(caches[0].key, caches[1].key)                # each layer has its own


def test_the_number_of_caches_is_the_number_of_blocks():
    with pytest.raises(ValueError, match="1 caches for 2 blocks; give each block its own"):
        Encoder(2, 8, 2, 8)(torch.randn(1, 3, 8), caches=[Cache()])


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Encoder(1, 8, 2, 8, 0.1), "norm_first=0.1; use True or False"),             # a dropout in the wrong place
    (lambda: EncoderBlock(8, 2, 8, norm_first="post"), "norm_first='post'; use True or False"),
    (lambda: Encoder(-1, 8, 2, 8), "num_layers=-1; use a whole number from 0"),
    (lambda: Encoder(1.5, 8, 2, 8), "num_layers=1.5; use a whole number from 0"),
    (lambda: EncoderBlock(8, 2, 0), "d_ff=0; use a whole number from 1"),
    (lambda: EncoderBlock(8, 2, 16, activation="swish"), "activation='swish'; use one of gelu, gelu_tanh, relu"),
    (lambda: Encoder(1, 8, 3, 16), "d_model=8 is not divisible by num_heads=3"),
])
def test_an_option_that_would_silently_mean_something_else_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


# the notebook's cells beside the package

@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 07 define, with the course's answer for the layer that the learner writes."""
    cells = cells_of("07_transformer_blocks")
    names = {"torch": torch, "nn": nn, "F": F, "MultiHeadAttention": MultiHeadAttention,
             "FeedForward": answers_to("7.6").reference, "one_block": answers_to("7.8").reference}
    for cell in ("export-layer-norm", "export-encoder-block", "export-encoder", "ablated"):
        exec(cells[cell], names)
    return names


@proof
@given(batch=st.integers(1, 3), length=st.integers(1, 5), heads=st.integers(1, 3), layers=st.integers(1, 3),
       norm_first=st.booleans(), turned=st.booleans(), seed=seeds)
def test_the_notebooks_stack_is_the_packages_with_the_same_names(taught, batch, length, heads, layers, norm_first, turned,
                                                                 seed):
    torch.manual_seed(seed)
    mask, rotary = padding_mask(ragged_mask(batch, length)), RotaryPositions(4).rotate if turned else None
    for dtype in (torch.float32, torch.float64):
        package, notebook = (made(layers, 4 * heads, heads, 7, norm_first=norm_first).to(dtype).eval()
                             for made in (Encoder, taught["Encoder"]))
        randomise(package)
        notebook.load_state_dict(package.state_dict())                     # strict: the names are the same, and no others
        x = torch.randn(batch, length, 4 * heads, dtype=dtype, requires_grad=True)
        expected, found = package(x, mask, rotary=rotary).x, notebook(x, mask, rotary)
        same(found, expected)
    same_gradients(found, [x, *notebook.parameters()], expected, [x, *package.parameters()])


def test_the_notebooks_stack_reads_the_trained_classifiers_weights_and_says_what_its_encoder_says(taught):
    trained = ReviewClassifier.load("reviews")
    tokens, real = pad_batch([trained.tokenizer.encode(text) for text in ("Not dull, but truly moving.", "Dull.")],
                             trained.tokenizer.pad_id)
    for dtype, close in ((torch.float32, 1e-6), (torch.float64, 1e-10)):
        model, config = trained.model.to(dtype), trained.model.config
        stack = taught["Encoder"](config.num_layers, config.d_model, config.num_heads, config.d_ff).to(dtype).eval()
        stack.load_state_dict(model.encoder.state_dict())                  # strict
        with torch.no_grad():
            x, rotary = model.embed(tokens), model.positions.rotate
            expected = model.run_encoder(tokens, real).x
            torch.testing.assert_close(stack(x, padding_mask(real), rotary), expected, atol=close, rtol=close)
    found, expected = (made(x, padding_mask(real), rotary=rotary) for made in (stack, model.encoder))
    same_gradients(found, [*stack.parameters()], expected.x, [*model.encoder.parameters()])


@proof
@given(length=st.integers(1, 5), d_model=st.integers(2, 9), d_ff=st.integers(1, 9), seed=seeds)
def test_the_learners_layer_and_the_notebooks_norm_are_the_packages(taught, length, d_model, d_ff, seed):
    torch.manual_seed(seed)
    package, notebook = FeedForward(d_model, d_ff).eval(), taught["FeedForward"](d_model, d_ff)
    notebook.load_state_dict(package.state_dict())
    x, weight, bias = torch.randn(2, length, d_model), torch.randn(d_model), torch.randn(d_model)
    same(notebook(x), package(x))
    same(taught["layer_norm"](x, weight, bias), layer_norm(x, weight, bias))


def test_the_notebooks_dropout_acts_in_training_alone(taught):
    torch.manual_seed(0)
    block, x = taught["EncoderBlock"](8, 2, 16, dropout=0.5), torch.randn(2, 4, 8)
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_with_all_parts_switched_on_the_notebooks_run_block_is_the_block(taught):
    torch.manual_seed(0)
    block, x = taught["EncoderBlock"](8, 2, 16, dropout=0.0), torch.randn(2, 4, 8)
    same(taught["run_block"](block, x), block(x))
    silent = taught["run_block"](block, x, feed_forward=False, residual=False, norm=False)
    same(silent, block.attention(x).context)
