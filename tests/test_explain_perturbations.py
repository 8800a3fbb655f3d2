"""Attention under attack: shuffled, replaced, randomised; words exchanged, and intervals."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from explained import MODELS, all_methods, batch, make_model

from course_utils import explain
from course_utils.tokenization import Token, WordTokenizer, pad_batch

__all__ = ["batch"]                            # pytest runs it around each test here


# attention under attack

def test_the_logits_of_a_review_are_the_weighted_mean_of_its_tokens_logits(batch):
    for positions, pooling, layers in MODELS:
        model = make_model(positions, pooling, num_layers=layers)
        weights = explain.pooling_scores(model, *batch)
        mixed = (weights[:, None] @ explain.token_logits(model, *batch)).squeeze(1)
        torch.testing.assert_close(mixed, model(*batch).logits, atol=1e-5, rtol=1e-4)


@pytest.fixture
def three_tokens():
    """A model that decides clearly, and of one text of three tokens: ids, mask, weights and logits."""
    model = make_model()
    with torch.no_grad():
        model.output.weight.mul_(5)
        model.pooling.query.mul_(8)
    ids = torch.tensor([[5, 9, 13, 0, 0]])
    mask = ids != 0
    return model, ids, mask, explain.pooling_scores(model, ids, mask)[0, :3], explain.token_logits(model, ids, mask)[0, :3]


def test_permutation_effect_against_all_orders_of_three_tokens(three_tokens):
    model, ids, mask, weights, logits = three_tokens
    before = (weights @ logits).softmax(-1)
    moved = [((weights[list(order)] @ logits).softmax(-1) - before).abs().sum().item() / 2
             for order in permutations(range(3))]
    found = explain.permutation_effect(model, ids, mask, shuffles=2001)[0].item()
    assert min(abs(found - value) for value in moved) < 1e-5 and found > 1e-4
    assert sum(value < found - 1e-5 for value in moved) <= 3 <= sum(value <= found + 1e-5 for value in moved)


def test_log_odds_move_on_where_the_probability_is_saturated(batch):
    """Ten times the output layer: ten times the move in log-odds; probabilities can't follow."""
    model, moved = make_model(), {}
    for factor in (1, 10):
        with torch.no_grad():
            model.output.weight.mul_(factor)
            model.output.bias.copy_(torch.tensor([0.0, 2.0 * (factor - 1)]))
        for scale in ("probability", "log-odds"):
            moved[scale, factor] = explain.permutation_effect(model, *batch, shuffles=20, scale=scale)
    torch.testing.assert_close(moved["log-odds", 10], 10 * moved["log-odds", 1], rtol=1e-3, atol=1e-4)
    assert (moved["probability", 10] < moved["probability", 1]).all()


def test_permutation_effect_knows_two_scales_and_log_odds_need_two_classes(batch):
    with pytest.raises(ValueError, match="'odds'.*'probability' or 'log-odds'"):
        explain.permutation_effect(make_model(), *batch, scale="odds")
    with pytest.raises(ValueError, match="the model has 3"):
        explain.permutation_effect(make_model(num_classes=3), *batch, scale="log-odds")
    moved = explain.permutation_effect(make_model(num_classes=3), *batch, shuffles=3)
    assert moved.shape == (len(batch[0]),) and torch.isfinite(moved).all()


def divergence_of(p, q):
    """Jensen-Shannon, in nats, by its definition."""
    m = (p + q) / 2
    return sum(float((torch.xlogy(a, a) - torch.xlogy(a, m.clamp(min=1e-300))).sum()) / 2 for a in (p, q))


def test_adversarial_weights_are_allowed_and_nothing_random_is_farther():
    model = make_model(seed=3)
    with torch.no_grad():
        model.output.weight.mul_(6)
    ids, mask = pad_batch([[3, 4, 5, 6, 7, 8], [10, 11, 4]], 0)
    found = explain.adversarial_weights(model, ids, mask, tolerance=0.05)
    own, logits = explain.pooling_scores(model, ids, mask), explain.token_logits(model, ids, mask)
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(2))
    assert (found.weights >= 0).all() and (found.weights[~mask] == 0).all() and found.moved.max() <= 0.05
    assert (found.weights > 0).sum(-1).max() <= 2
    generator = torch.Generator().manual_seed(0)
    for row, length in enumerate((6, 3)):
        p, q = own[row, :length].double(), found.weights[row, :length].double()
        assert found.divergence[row].item() == pytest.approx(divergence_of(p, q), abs=1e-5)
        tried = (torch.randn(4000, length, generator=generator) * 8).softmax(-1).double()
        odds = logits[row, :length, 1].double() - logits[row, :length, 0].double()
        allowed = ((tried @ odds).sigmoid() - (p @ odds).sigmoid()).abs() <= 0.05
        assert allowed.sum() > 20
        assert max(divergence_of(p, one) for one in tried[allowed]) <= found.divergence[row].item() + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_adversarial_weights_do_not_depend_on_which_class_is_called_positive(seed):
    model = make_model(seed=seed)
    with torch.no_grad():
        model.output.weight.mul_(6)
        inputs = pad_batch([[3, 4, 5, 6, 7, 8], [10, 11, 4], [12, 13]], 0)
        found = explain.adversarial_weights(model, *inputs)
        model.output.weight.copy_(model.output.weight.flip(0))
        model.output.bias.copy_(model.output.bias.flip(0))
    torch.testing.assert_close(explain.adversarial_weights(model, *inputs).divergence, found.divergence)


def test_adversarial_weights_need_two_classes(batch):
    with pytest.raises(ValueError, match="3 classes"):
        explain.adversarial_weights(make_model(num_classes=3), *batch)


def test_randomised_models_change_from_the_output_down(batch):
    model = make_model()
    names = explain.parts_from_output(model)
    assert names == ["output", "pooling", "encoder.norm", "encoder.blocks.1", "encoder.blocks.0", "embedding"]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for depth in range(len(names) + 1):
        copy = explain.randomised(model, depth, seed=7)
        for name, value in copy.state_dict().items():
            below = not any(name.startswith(f"{part}.") for part in names[:depth])
            if below:
                assert torch.equal(value, before[name]), name
        assert torch.equal(copy.output.weight, model.output.weight) == (depth == 0)
        assert torch.equal(copy.embedding.weight, model.embedding.weight) == (depth < len(names))
        assert not copy.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_randomising_leaves_the_random_numbers_of_others_alone():
    model = make_model()
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    explain.randomised(model, 3)
    assert torch.equal(torch.rand(1), expected)
    with pytest.raises(ValueError, match="this model has 6 parts"):
        explain.randomised(model, 7)


def test_parts_of_other_models():
    assert explain.parts_from_output(make_model(pooling="mean", num_layers=0)) == ["output", "encoder.norm", "embedding"]
    assert "positions" in explain.parts_from_output(make_model(positions="learned"))
    assert "encoder.norm" not in explain.parts_from_output(make_model(norm_first=False))


# counting, shuffling, intervals

def test_words_are_counted_in_the_texts_they_are_given():
    counted = explain.count_words(["good good film", "dull film"], [1, 0], WordTokenizer(["<pad>", "<unk>"]))
    assert counted.lexicon == pytest.approx({"good": math.log(2), "dull": math.log(2), "film": 0.0})
    assert counted.rarity["dull"] == pytest.approx(math.log(6 / 2))
    assert counted.rarity["good"] == pytest.approx(math.log(6 / 3))
    tokens = [Token("good", 0, 4), Token("new", 5, 8)]
    assert counted.scores(tokens, "lexicon") == pytest.approx([math.log(2), 0])
    assert [counted.leaning[word] for word in ("good", "dull", "film")] == pytest.approx([math.log(2), -math.log(2), 0])
    assert counted.scores(tokens, "rarity")[1] > max(counted.rarity.values())


def test_shuffling_moves_k_places_and_keeps_the_words():
    rows = [list(range(2, 32)), [2, 3]]
    shuffled = explain.shuffled_words(rows, 4)
    assert [sorted(row) for row in shuffled] == [sorted(row) for row in rows]
    assert 0 < sum(a != b for a, b in zip(rows[0], shuffled[0])) <= 4
    assert explain.shuffled_words(rows, 0) == rows and explain.shuffled_words([[]], 4) == [[]]


def test_unknown_words_spare_what_they_are_told_to():
    rows = [list(range(2, 202))]
    share = np.mean([i == 1 for i in explain.unknown_words(rows, 0.4)[0]])
    assert 0.3 < share < 0.5
    spare = [[i % 2 == 0 for i in range(200)]]
    kept = explain.unknown_words(rows, 1.0, spare)[0]
    assert kept[::2] == rows[0][::2] and set(kept[1::2]) == {1}


def test_swapped_words_are_swapped_where_the_vocabulary_has_both():
    tokenizer = WordTokenizer(["<pad>", "<unk>", "he", "she", "him"])
    assert explain.swapped_words([[2, 3, 4, 1]], tokenizer, {"he": "she", "she": "he", "him": "her"}) == [[3, 2, 4, 1]]
    swaps = explain.name_swaps()
    assert swaps["he"] == "she" and len(swaps) > 60 and all(swaps[swaps[name]] == name for name in swaps if name not in
                                                            ("him", "his", "her"))


def test_the_bootstrap_interval_is_that_of_the_mean():
    values = np.random.default_rng(1).normal(2, 1, size=400)
    mean, low, high = explain.bootstrap_interval(values)
    assert mean == pytest.approx(values.mean()) and low < mean < high
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 20, rel=0.1)
    with pytest.raises(ValueError, match="one number for each review"):
        explain.bootstrap_interval([])


def test_the_other_methods_take_three_classes(batch):
    for name, scores in all_methods(make_model(num_classes=3), *batch).items():
        assert torch.isfinite(scores).all(), name
