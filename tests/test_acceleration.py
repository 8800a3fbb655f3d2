"""The faster modules compute what the ordinary ones do, and drop as often; the precision follows what is measured."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from library_twins import proof, ragged_mask, randomise
from torch import nn
from torch.nn import functional as F

from course_utils import acceleration
from course_utils.acceleration import (
    FastDropout,
    FastMultiHeadAttention,
    FastRotaryPositions,
    accelerate,
    attention_with_dropout,
    choose_precision,
    fast_dropout,
)
from course_utils.attention import padding_mask
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import RotaryPositions, alibi_bias
from course_utils.training import EncodedReviews, evaluate, fit

seeds = st.integers(0, 10**6)


# dropout

@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1 / 65536])
def test_the_share_of_zeros_is_the_rate_and_the_mean_is_kept(p):
    torch.manual_seed(0)
    n = 2**22
    y = fast_dropout(torch.ones(n), p)
    error = 5 * math.sqrt(p * (1 - p) / n)                                 # five standard errors
    assert (y == 0).double().mean().item() == pytest.approx(p, abs=error)
    assert y.double().mean().item() == pytest.approx(1, abs=error / (1 - p))
    assert len(y.unique()) == 2                                            # zero, and one over the share that is kept


def test_elements_are_dropped_independently_of_each_other():
    torch.manual_seed(1)
    n, p = 2**21, 0.3
    dropped = (fast_dropout(torch.ones(n), p) == 0).double()
    for distance in (1, 2, 3, 4, 5, 64):                                   # four neighbours share a random number
        both = (dropped[distance:] * dropped[:-distance]).mean().item()
        assert both == pytest.approx(p * p, abs=5 * math.sqrt(p * p / n))
    again = (fast_dropout(torch.ones(n), p) == 0).double()
    assert (dropped * again).mean().item() == pytest.approx(p * p, abs=5 * math.sqrt(p * p / n))


@proof
@given(shape=st.lists(st.integers(0, 7), min_size=0, max_size=4), p=st.floats(0, 1), seed=seeds,
       dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_every_shape_rate_and_type_gives_zeros_and_scaled_elements(shape, p, seed, dtype):
    torch.manual_seed(seed)
    x = torch.randn(shape, dtype=dtype)
    y = fast_dropout(x, p)
    assert y.shape == x.shape and y.dtype == dtype
    kept = y != 0
    torch.testing.assert_close(y[kept].double(), x[kept].double() / (1 - p), rtol=2e-2 if dtype == torch.bfloat16 else 2e-3,
                               atol=0) if p < 0.99 else None
    if p == 0:
        assert torch.equal(y, x)
    if p == 1:
        assert not kept.any()


def test_the_gradient_passes_where_the_element_was_kept():
    torch.manual_seed(2)
    x = torch.randn(40, 33, requires_grad=True)
    y = fast_dropout(x.t(), 0.25)                                          # a view that is not contiguous
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(y.t(), x * gradient)
    assert torch.equal(gradient == 0, y.t() == 0)
    assert gradient.unique().tolist() == pytest.approx([0, 4 / 3])


def test_the_seed_of_torch_repeats_the_choice_and_each_call_draws_anew():
    x, drawn = torch.ones(1000), []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append((fast_dropout(x, 0.5), fast_dropout(x, 0.5)))
    assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(drawn[0][0], drawn[0][1]) and not torch.equal(drawn[0][0], drawn[2][0])


def test_evaluation_drops_nothing_and_draws_nothing():
    x, layer = torch.randn(50), FastDropout(0.5).eval()
    state = torch.random.get_rng_state()
    assert layer(x) is x or torch.equal(layer(x), x)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not torch.equal(layer.train()(x), x)


# attention in pieces

@pytest.mark.parametrize("piece", [1, 50, 2**18])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_attention_in_pieces_has_the_right_gradient(piece, masked, biased, monkeypatch):
    monkeypatch.setattr(acceleration, "PIECE", piece)
    torch.manual_seed(0)
    query, key, value = (torch.randn(3, 2, n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5, 5))
    mask = padding_mask(torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]).bool()) if masked else None
    bias = alibi_bias(2, 3, 5).double() if biased else None

    def attend(query, key, value):
        torch.manual_seed(1)                                               # the same choice of weights in each call
        return attention_with_dropout(query, key, value, mask, bias, 0.4)

    assert torch.autograd.gradcheck(attend, (query, key, value), fast_mode=True)
    if masked:
        assert not attend(query, key, value)[2].any()                      # a query with no key


@pytest.mark.parametrize("piece", [1, 40, 2**18])
def test_attention_in_pieces_is_attention_whose_weights_were_dropped(piece, monkeypatch):
    monkeypatch.setattr(acceleration, "PIECE", piece)
    torch.manual_seed(0)
    query, key = torch.randn(4, 2, 6, 3), torch.randn(4, 2, 6, 3)
    value = torch.eye(6).expand(4, 2, 6, 6)                                # the context is then the weights themselves
    mask = padding_mask(ragged_mask(4, 6))
    dropped = attention_with_dropout(query, key, value, mask, None, 0.5)
    weights = F.scaled_dot_product_attention(query, key, value, mask)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * weights[kept])
    assert 0.3 < kept[weights > 0].double().mean() < 0.7
    assert not dropped[weights == 0].any()


def test_attention_in_pieces_is_right_on_average():
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, 5, 4) for _ in range(3))
    expected = F.scaled_dot_product_attention(query, key, value)
    many = [tensor.expand(4000, -1, -1, -1) for tensor in (query, key, value)]
    mean = attention_with_dropout(*many, dropout_p=0.3).mean(dim=0, keepdim=True)
    torch.testing.assert_close(mean, expected, atol=0.06, rtol=0)


def test_every_head_draws_its_own_choice_of_weights(monkeypatch):
    monkeypatch.setattr(acceleration, "PIECE", 1)                          # each head is a piece
    torch.manual_seed(0)
    same = torch.zeros(3, 4, 8, 5)
    kept = attention_with_dropout(same, same, torch.eye(8).expand(3, 4, 8, 8), dropout_p=0.5) != 0
    assert len({tuple(head.flatten().tolist()) for head in kept.flatten(0, 1)}) == 12


@pytest.mark.parametrize("biased", [False, True])
def test_training_in_pieces_heeds_mask_and_bias(biased):
    torch.manual_seed(0)
    ordinary = MultiHeadAttention(8, 2)
    fast = accelerate(MultiHeadAttention(8, 2, attention_dropout=1 / 65536)).train()  # so rare that none is dropped here
    fast.load_state_dict(ordinary.state_dict())
    x, mask = torch.randn(4, 6, 8), padding_mask(ragged_mask(4, 6))
    bias = alibi_bias(2, 6, 6) if biased else None
    answers = [attention(x, mask=mask, bias=bias).context for attention in (fast, ordinary)]
    torch.testing.assert_close(*answers, atol=1e-4, rtol=1e-4)             # what is kept is larger by 1/65535


@pytest.mark.parametrize("case", ["weights wanted", "evaluation", "no dropout", "learned bias"])
def test_where_pieces_do_not_fit_the_ordinary_way_is_taken(case, monkeypatch):
    monkeypatch.setattr(acceleration, "attention_with_dropout", lambda *arguments: pytest.fail("taken in pieces"))
    torch.manual_seed(0)
    ordinary = MultiHeadAttention(8, 2, attention_dropout=0.0 if case == "no dropout" else 0.3)
    fast = accelerate(MultiHeadAttention(8, 2, attention_dropout=ordinary.attention_dropout))
    fast.load_state_dict(ordinary.state_dict())
    bias = torch.zeros(2, 5, 5, requires_grad=True) if case == "learned bias" else None
    x, answers = torch.randn(3, 5, 8), []
    for attention in (ordinary, fast):
        attention.train(case != "evaluation")
        torch.manual_seed(5)
        answers.append(attention(x, bias=bias, need_weights=case == "weights wanted").context)
    assert torch.equal(*answers)


def test_a_bias_that_closes_all_keys_of_a_query_gives_zeros_and_finite_gradients():
    torch.manual_seed(0)
    bias = torch.zeros(2, 6, 6)
    bias[:, 2], bias[0, 3, :4] = float("-inf"), float("-inf")
    for mask in (None, padding_mask(ragged_mask(4, 6))):
        ordinary, fast = MultiHeadAttention(8, 2), accelerate(MultiHeadAttention(8, 2, attention_dropout=1 / 65536)).train()
        fast.load_state_dict(ordinary.state_dict())
        x = torch.randn(4, 6, 8, requires_grad=True)
        answers = []
        for attention in (ordinary, fast):
            torch.manual_seed(1)
            context = attention(x, mask=mask, bias=bias).context
            answers.append((context, *torch.autograd.grad(context.square().sum(), [x, *attention.parameters()])))
        for ours, theirs in zip(*answers):
            assert theirs.isfinite().all()
            torch.testing.assert_close(theirs, ours, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(answers[1][0][:, 2], fast.output_projection.bias.expand(4, 8))


# rotary positions

@proof
@given(length=st.integers(1, 9), half=st.integers(1, 5), offset=st.integers(0, 50), seed=seeds)
def test_rotary_positions_turn_by_the_same_angles(length, half, offset, seed):
    torch.manual_seed(seed)
    ordinary, fast = RotaryPositions(2 * half), accelerate(RotaryPositions(2 * half))
    assert type(fast) is FastRotaryPositions
    x = torch.randn(2, length, 3, 2 * half, requires_grad=True)
    turned = [positions(x.transpose(1, 2), offset) for positions in (ordinary, fast)]
    torch.testing.assert_close(turned[1], turned[0], atol=1e-5, rtol=1e-5)
    cotangent = torch.randn_like(turned[0])
    gradients = [torch.autograd.grad(y, x, cotangent)[0] for y in turned]
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-5, rtol=1e-5)
    half_precision = x.detach().transpose(1, 2).bfloat16()
    assert torch.equal(fast(half_precision, offset), ordinary(half_precision, offset))


# whole models

def model_of(positions="rotary", **options) -> SelfAttentionClassifier:
    torch.manual_seed(0)
    settings = dict(vocab_size=10, d_model=16, num_heads=2, d_ff=16, num_layers=2, max_len=16, dropout=0.1,
                    attention_dropout=0.1, positions=positions) | options
    return SelfAttentionClassifier(ClassifierConfig(**settings))


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary", "alibi"])
def test_an_accelerated_model_gives_the_same_answers(positions):
    model = model_of(positions).eval()
    randomise(model)
    token_ids = torch.randint(2, 10, (5, 12)).masked_fill(~ragged_mask(5, 12), 0)
    before, names = model(token_ids, need_weights=True), list(model.state_dict())
    assert accelerate(model) is model and not model.training
    for need_weights in (False, True):
        torch.testing.assert_close(model(token_ids, need_weights=need_weights).logits, before.logits, atol=1e-6, rtol=1e-5)
    assert list(model.state_dict()) == names
    kinds = {type(module) for module in model.modules()}
    assert {FastDropout, FastMultiHeadAttention} <= kinds
    assert not kinds & {nn.Dropout, MultiHeadAttention, RotaryPositions}
    printed = str(model)
    assert str(accelerate(model)) == printed                               # a second time changes nothing


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_without_dropout_training_is_the_same_to_rounding(positions):
    token_ids = torch.randint(2, 10, (5, 12)).masked_fill(~ragged_mask(5, 12), 0)
    gradients = []
    for change in (lambda model: model, accelerate):
        model = change(model_of(positions, dropout=0.0, attention_dropout=0.0))
        F.cross_entropy(model(token_ids).logits, torch.tensor([0, 1, 0, 1, 0])).backward()
        gradients.append([p.grad for p in model.parameters()])
    for ordinary, fast in zip(*gradients):
        torch.testing.assert_close(fast, ordinary, atol=1e-6, rtol=1e-4)


def test_an_accelerated_model_learns_and_its_training_can_be_repeated():
    generator = torch.Generator().manual_seed(0)
    ids = [[2 + i % 2, *torch.randint(4, 10, (6,), generator=generator).tolist()] for i in range(120)]
    reviews, histories = EncodedReviews(ids, [i % 2 for i in range(120)]), []
    for _ in range(2):
        model = accelerate(model_of("none"))
        histories.append(fit(model, reviews, reviews, epochs=5, learning_rate=1e-2, progress=False).history)
        assert evaluate(model, reviews).accuracy > 0.95
    assert histories[0] == histories[1]
    assert histories[0][-1]["train_loss"] < 0.3 * histories[0][0]["train_loss"]


def test_dropout_and_attention_of_the_library_are_left_as_they_are_but_for_dropout():
    layer = accelerate(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    assert type(layer.self_attn) is nn.MultiheadAttention and type(layer.dropout) is FastDropout
    assert layer(torch.randn(2, 3, 8)).isfinite().all()


# precision

@pytest.mark.parametrize(("bf16", "chosen"), [(0.5, "bf16"), (0.85, "bf16"), (0.95, "fp32"), (1.0, "fp32"), (4.0, "fp32")])
def test_the_precision_is_the_one_that_is_clearly_faster(bf16, chosen):
    model, token_ids, asked = model_of(), torch.randint(2, 10, (2, 5)), []

    def seconds(precision):
        asked.append(precision)
        slow = 100 if len(asked) in (1, 2, 5) else 1                       # the first two do not count, nor one that is late
        return slow * (bf16 if precision == "bf16" else 1.0)

    assert choose_precision(model, token_ids, token_ids > 0, seconds=seconds) == chosen
    assert asked == ["fp32", "bf16"] * 4                                   # in turn


def test_measuring_leaves_the_model_and_the_random_numbers_alone(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    model, token_ids = model_of(word_dropout=0.5).eval(), torch.randint(2, 10, (2, 5))
    passes, weights = [], {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.register_forward_hook(lambda module, *_: passes.append((module.training, torch.is_autocast_enabled("cpu"))))
    state = torch.random.get_rng_state()
    assert choose_precision(model, token_ids, token_ids > 0, repetitions=2) in ("fp32", "bf16")
    assert passes == [(True, False), (True, True)] * 3
    assert torch.equal(torch.random.get_rng_state(), state) and not model.training
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2"])
def test_a_processor_that_would_emulate_bfloat16_is_not_timed(capability, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(acceleration, "_timed_pass", lambda *arguments: pytest.fail("timed"))
    token_ids = torch.randint(2, 10, (2, 5))
    assert choose_precision(model_of(), token_ids, token_ids > 0) == "fp32"
