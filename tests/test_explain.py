"""Methods that score tokens, and the measures of them: by hand, against slow loops, and on odd texts."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from course_utils import explain
from course_utils.classifier import POOLINGS, POSITIONS, ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import DATA_FOLDER, load_reviews
from course_utils.experiments.trained_models import trained_model
from course_utils.tokenization import Token, WordTokenizer, pad_batch

TEXTS = ["A moving film, and never a dull minute.", "Not moving but dull.",
         "The acting is wooden; the story, however, is a small wonder that grows on you. Go and see it twice!"]
ODD_TEXTS = {
    "empty": "", "one word": "dull", "markup only": "<br /><br />", "markup": "dull<br />film", "mathtext": "$x_1$ is dull",
    "emoji": "👍🏽 moving 🎬", "unknown words": "zzyzx qwertz", "longer than the maximum": "a dull film " * 40,
}


def make_model(positions="rotary", pooling="attention", seed=0, **options) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    settings = dict(vocab_size=20, d_model=16, num_heads=2, d_ff=24, num_layers=2, max_len=24) | options
    return SelfAttentionClassifier(ClassifierConfig(positions=positions, pooling=pooling, **settings)).eval()


def make_classifier(**options) -> ReviewClassifier:
    tokenizer = WordTokenizer.train(TEXTS, min_freq=1)
    return ReviewClassifier(make_model(vocab_size=tokenizer.vocab_size, **options), tokenizer)


@pytest.fixture(scope="module")
def batch():
    """Three rows of different lengths, padded: token_ids and attention_mask."""
    return pad_batch([[3, 4, 5, 6, 7, 8, 9], [10, 11, 4], [12, 13, 14, 15, 5]], 0)


def all_methods(model, *batch):
    return {name: method(model, *batch) for name, method in explain.METHODS.items()}


MODELS = [(positions, pooling, layers) for positions in POSITIONS for pooling in POOLINGS for layers in (0, 2)]


# agreement with evidence

def test_agreement_of_four_tokens_is_the_one_worked_out_by_hand():
    found = explain.agreement([0.3, 0.4, 0.1, 0.2], [True, False, False, True])
    assert found == pytest.approx((7 / 12, 0.5, 0.5))


def test_agreement_is_one_for_perfect_scores_and_does_not_depend_on_their_scale():
    evidence = [False, True, False, True, False]
    assert explain.agreement([0, 5, 1, 4, 2], evidence) == (1.0, 1.0, 1.0)
    scores = np.array([0.4, 0.1, 0.3, 0.2, 0.9])
    assert explain.agreement(scores, evidence) == explain.agreement(10 * scores - 3, evidence)


def test_equal_scores_are_as_good_as_the_share_of_evidence():
    found = explain.agreement([1.0] * 5, [True, False, False, True, False])
    assert found.average_precision == pytest.approx(0.4) and found.auroc == pytest.approx(0.5)


@pytest.mark.parametrize(("scores", "evidence", "message"), [
    ([0.1, 0.2], [True, True], "2 of 2 tokens are evidence"), ([0.1, 0.2], [False, False], "0 of 2"),
    ([0.1], [True, False], "expected one number and one bool"), ([float("nan"), 0.2], [True, False], "NaN"),
    ([], [], "0 of 0"),
])
def test_agreement_says_what_it_cannot_score(scores, evidence, message):
    with pytest.raises(ValueError, match=message):
        explain.agreement(scores, evidence)


def test_evidence_flags_touch_every_token_that_a_span_overlaps():
    tokens = [Token("far", 0, 3), Token("from", 4, 8), Token("dull", 9, 13), Token(".", 13, 14)]
    assert explain.evidence_flags(tokens, [[0, 8]]) == [True, True, False, False]
    assert explain.evidence_flags(tokens, [[10, 13]]) == [False, False, True, False]
    assert explain.evidence_flags(tokens, []) == [False] * 4
    assert explain.evidence_flags([], [[0, 3]]) == []


# taking tokens away

def test_the_three_ways_to_take_tokens_away():
    model = make_model()
    ids, mask = torch.tensor([[5, 6, 7, 0]]), torch.tensor([[True, True, True, False]])
    removed = torch.tensor([[False, True, False, False]])
    deleted, kept = explain.remove(model, ids, mask, removed)
    assert deleted.tolist() == [[5, 7, 0, 0]] and kept.tolist() == [[True, True, False, False]]
    assert explain.remove(model, ids, mask, removed, "unk")[0].tolist() == [[5, 1, 7, 0]]
    hidden, kept = explain.remove(model, ids, mask, removed, "hide")
    assert hidden.tolist() == ids.tolist() and kept.tolist() == [[True, False, True, False]]
    with pytest.raises(ValueError, match="use one of delete, unk, hide"):
        explain.remove(model, ids, mask, removed, "mask")


@pytest.mark.parametrize("how", explain.REMOVALS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_occlusion_is_a_loop_over_tokens(positions, how, batch):
    model, (ids, mask) = make_model(positions), batch
    fast = explain.occlusion(model, ids, mask, how=how)
    target = explain.predicted_class(model, ids, mask)
    for row, length in enumerate(mask.sum(dim=-1).tolist()):
        own = ids[row : row + 1, :length]
        whole = model(own).logits.softmax(-1)[0, target[row]].item()
        for place in range(length):
            if how == "delete":
                without = model(torch.cat([own[:, :place], own[:, place + 1 :]], dim=1))
            elif how == "unk":
                changed = own.clone()
                changed[0, place] = 1
                without = model(changed)
            else:
                without = model(own, torch.arange(length)[None] != place)
            expected = whole - without.logits.softmax(-1)[0, target[row]].item()
            assert fast[row, place].item() == pytest.approx(expected, abs=1e-5)
        assert (fast[row, length:] == 0).all()


def test_occlusion_in_pieces_is_occlusion_in_one(batch):
    model = make_model(max_len=1024)
    long = torch.randint(2, 20, (1, 300), generator=torch.Generator().manual_seed(1))  # more than one piece of 32,768 ids
    scores = explain.occlusion(model, long, torch.ones_like(long, dtype=torch.bool))
    target = explain.predicted_class(model, long, torch.ones_like(long, dtype=torch.bool))
    for place in (0, 150, 299):
        without = torch.cat([long[:, :place], long[:, place + 1 :]], dim=1)
        expected = (model(long).logits.softmax(-1) - model(without).logits.softmax(-1))[0, target[0]].item()
        assert scores[0, place].item() == pytest.approx(expected, abs=1e-5)


def test_the_top_share_is_rounded_up_and_ties_go_to_the_earlier_token():
    scores, mask = torch.tensor([[0.1, 0.4, 0.4, 0.2, 9.0]]), torch.tensor([[True, True, True, True, False]])
    assert explain.top_tokens(scores, mask, 0.01).tolist() == [[False, True, False, False, False]]
    assert explain.top_tokens(scores, mask, 0.5).tolist() == [[False, True, True, False, False]]
    assert explain.top_tokens(scores, mask, 1).tolist() == [[True, True, True, True, False]]
    for length in (50, 70, 170):                                           # 0.1 * 70 is above 7 in floating point
        mask = torch.ones(1, length, dtype=torch.bool)
        for percent in range(1, 101):
            top = explain.top_tokens(torch.rand(1, length), mask, percent / 100)
            assert top.sum() == math.ceil(Fraction(percent, 100) * length), (percent, length)


def test_comprehensiveness_and_sufficiency_are_loops_over_shares(batch):
    model, (ids, mask) = make_model(), batch
    scores = torch.rand(ids.shape, generator=torch.Generator().manual_seed(0))
    comprehensive = explain.comprehensiveness(model, ids, mask, scores)
    sufficient = explain.sufficiency(model, ids, mask, scores)
    for row, length in enumerate(mask.sum(dim=-1).tolist()):
        own = ids[row, :length].tolist()
        order = sorted(range(length), key=lambda place, row=row: -scores[row, place].item())

        def p(words, own=own):
            token_ids, token_mask = pad_batch([words], 0)
            return model(token_ids, token_mask).logits.softmax(-1)[0, model(torch.tensor([own])).logits.argmax()].item()

        gone, alone = [], []
        for share in explain.SHARES:
            top = set(order[: math.ceil(share * length)])
            gone.append(p(own) - p([i for place, i in enumerate(own) if place not in top]))
            alone.append(p(own) - p([i for place, i in enumerate(own) if place in top]))
        assert comprehensive[row].item() == pytest.approx(np.mean(gone), abs=1e-5)
        assert sufficient[row].item() == pytest.approx(np.mean(alone), abs=1e-5)


def test_measures_refuse_scores_that_do_not_fit(batch):
    model = make_model()
    with pytest.raises(ValueError, match="expected one for each"):
        explain.comprehensiveness(model, *batch, torch.zeros(3, 2))
    with pytest.raises(ValueError, match="NaN"):
        explain.sufficiency(model, *batch, torch.full(batch[0].shape, float("nan")))


# rollout

def test_rollout_of_two_small_maps_by_hand():
    first = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 0, 1]])              # the second token looks at the first
    second = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])             # the third looks at the second
    result = explain.rollout(torch.stack([first, second])[:, None])
    assert result.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]


def test_rollout_averages_heads_and_its_rows_sum_to_one():
    weights = torch.rand(2, 3, 4, 5, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)  # layers, batch, heads
    result = explain.rollout(list(weights))
    assert result.shape == (3, 5, 5)
    torch.testing.assert_close(result.sum(-1), torch.ones(3, 5))
    torch.testing.assert_close(result, explain.rollout(weights.mean(dim=2, keepdim=True)))
    layers = (weights.mean(dim=2) + torch.eye(5)) / 2
    torch.testing.assert_close(result, layers[1] @ layers[0])


def test_rollout_without_layers_says_so():
    with pytest.raises(ValueError, match="no layers"):
        explain.rollout([])


def test_rollout_scores_are_pooling_weights_times_rollout_and_sum_to_one(batch):
    model = make_model()
    result = model(*batch, need_weights=True)
    for row, length in enumerate(batch[1].sum(dim=-1).tolist()):
        maps = [weights[row, :, :length, :length] for weights in result.attentions]
        expected = result.pooling_weights[row, :length] @ explain.rollout(maps)
        torch.testing.assert_close(explain.rollout_scores(model, *batch)[row, :length], expected)
    torch.testing.assert_close(explain.rollout_scores(model, *batch).sum(-1), torch.ones(3))


# gradients

def test_integrated_gradients_are_complete(batch):
    model = make_model(num_layers=1)
    target = explain.predicted_class(model, *batch)
    scores, gap = explain.integrated_gradients_with_gap(model, *batch, steps=256)
    ids, mask = batch
    difference = explain.log_odds(model(ids, mask).logits, target) - explain.log_odds(
        model(ids.masked_fill(mask, 1), mask).logits, target)
    torch.testing.assert_close(scores.sum(-1), difference.detach(), atol=2e-3, rtol=0)
    assert gap.abs().max() < 2e-3


def test_gradients_on_a_bag_are_what_the_formula_says(batch):
    """No layer, no norm, mean pooling: the log-odds are linear in the word vectors, and both methods are exact."""
    model, (ids, mask) = make_model(positions="none", pooling="mean", num_layers=0, norm_first=False), batch
    target = explain.predicted_class(model, ids, mask)
    direction = model.output.weight[target] - model.output.weight[1 - target]  # (batch, d_model)
    vectors = model.embedding(ids)
    expected = (vectors * direction[:, None]).sum(-1) * mask / mask.sum(-1, keepdim=True)
    torch.testing.assert_close(explain.gradient_times_input(model, ids, mask), expected.detach())
    integrated = explain.integrated_gradients(model, ids, mask, baseline="pad")
    torch.testing.assert_close(integrated, expected.detach(), atol=1e-5, rtol=0)


def test_log_odds_with_two_classes_are_a_difference_and_with_three_the_formula():
    logits = torch.tensor([[1.0, 3.0], [2.0, -1.0]])
    assert explain.log_odds(logits, torch.tensor([1, 1])).tolist() == [2.0, -3.0]
    three = torch.tensor([[0.5, 1.0, -2.0]])
    p = three.softmax(-1)[0, 2]
    assert explain.log_odds(three, torch.tensor([2])).item() == pytest.approx(torch.logit(p).item(), abs=1e-5)


def test_an_unknown_baseline_is_refused(batch):
    with pytest.raises(ValueError, match="use 'unk' or 'pad'"):
        explain.integrated_gradients(make_model(), *batch, baseline="zero")


def test_no_method_leaves_gradients_behind(batch):
    model = make_model()
    all_methods(model, *batch)
    assert all(p.grad is None for p in model.parameters())
    assert torch.is_grad_enabled()


# any model, any text

@pytest.mark.parametrize(("positions", "pooling", "layers"), MODELS)
def test_padding_does_not_matter_to_any_method(positions, pooling, layers, batch):
    model, (ids, mask) = make_model(positions, pooling, num_layers=layers), batch
    for name, together in all_methods(model, ids, mask).items():
        assert together.shape == ids.shape and together[~mask].abs().sum() == 0, name
        for row, length in enumerate(mask.sum(dim=-1).tolist()):
            alone = explain.METHODS[name](model, ids[row : row + 1, :length], mask[row : row + 1, :length])
            torch.testing.assert_close(together[row, :length], alone[0], atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
@pytest.mark.parametrize(("pooling", "layers"), [("attention", 2), ("mean", 1), ("attention", 0)])
def test_any_text_gets_one_finite_score_a_token(text, pooling, layers):
    classifier = make_classifier(pooling=pooling, num_layers=layers)
    for method in explain.METHODS:
        found = explain.score_texts(classifier, [text], method)[0]
        assert len(found.tokens) == len(found.scores) <= 24, method
        assert torch.isfinite(found.scores).all(), method
        assert found.tokens == classifier.explain(text).tokens             # head and tail of a text that is too long
    inputs = classifier.encode([text])
    scores = torch.zeros(inputs[0].shape)
    for measure in (explain.comprehensiveness, explain.sufficiency):
        assert torch.isfinite(measure(classifier.model, *inputs, scores)).all()
    assert torch.isfinite(explain.permutation_effect(classifier.model, *inputs, shuffles=3)).all()
    assert torch.isfinite(explain.adversarial_weights(classifier.model, *inputs).weights).all()


def test_mean_pooling_gives_every_token_the_same_weight(batch):
    weights = explain.pooling_scores(make_model(pooling="mean"), *batch)
    for row, length in enumerate(batch[1].sum(dim=-1).tolist()):
        torch.testing.assert_close(weights[row, :length], torch.full((length,), 1 / length))


def test_texts_keep_their_order_and_their_labels():
    classifier = make_classifier()
    found = explain.score_texts(classifier, TEXTS[::-1], "rollout", batch_size=2)
    assert [one.label for one in found] == classifier.predict(TEXTS[::-1])[0]
    lengths = [len(classifier.tokenizer.tokenize(text)) for text in TEXTS[::-1]]
    assert [len(one.tokens) for one in found] == [min(24, length) for length in lengths]
    assert explain.score_texts(classifier, [], "rollout") == []


def test_wrong_arguments_are_named(batch):
    classifier = make_classifier()
    with pytest.raises(ValueError, match="use one of pooling weights, rollout"):
        explain.score_texts(classifier, TEXTS, "attention")
    with pytest.raises(TypeError, match=r"write \[text\]"):
        explain.score_texts(classifier, "dull", "rollout")
    with pytest.raises(TypeError, match="pass classifier.model"):
        explain.occlusion(classifier, *batch)
    with pytest.raises(ValueError, match="training mode"):
        explain.occlusion(make_model().train(), *batch)


def test_the_checkpoint_trained_on_imdb_can_be_explained():
    classifier = ReviewClassifier.load(DATA_FOLDER / "checkpoints" / "imdb")
    text = "It was dull.<br />" + "And long. " * 200
    for method in explain.METHODS:
        found = explain.score_texts(classifier, [text], method)[0]
        assert len(found.scores) == classifier.model.config.max_len and torch.isfinite(found.scores).all()


# attention under attack

def test_the_logits_of_a_review_are_the_weighted_mean_of_its_tokens_logits(batch):
    for positions, pooling, layers in MODELS:
        model = make_model(positions, pooling, num_layers=layers)
        weights = explain.pooling_scores(model, *batch)
        mixed = (weights[:, None] @ explain.token_logits(model, *batch)).squeeze(1)
        torch.testing.assert_close(mixed, model(*batch).logits, atol=1e-5, rtol=1e-4)


def test_permutation_effect_against_all_orders_of_three_tokens():
    from itertools import permutations

    model = make_model()
    with torch.no_grad():
        model.output.weight.mul_(5)
        model.pooling.query.mul_(8)
    ids = torch.tensor([[5, 9, 13, 0, 0]])
    mask = ids != 0
    weights, logits = explain.pooling_scores(model, ids, mask)[0, :3], explain.token_logits(model, ids, mask)[0, :3]
    before = (weights @ logits).softmax(-1)
    moved = [((weights[list(order)] @ logits).softmax(-1) - before).abs().sum().item() / 2
             for order in permutations(range(3))]
    found = explain.permutation_effect(model, ids, mask, shuffles=2001)[0].item()
    assert min(abs(found - value) for value in moved) < 1e-5 and found > 1e-4
    assert sum(value < found - 1e-5 for value in moved) <= 3 <= sum(value <= found + 1e-5 for value in moved)


def test_mean_pooling_does_not_move_under_shuffling(batch):
    assert explain.permutation_effect(make_model(pooling="mean"), *batch, shuffles=5).max() < 1e-6


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


def test_the_other_methods_take_three_classes(batch):
    for name, scores in all_methods(make_model(num_classes=3), *batch).items():
        assert torch.isfinite(scores).all(), name


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


# on a trained model

@pytest.fixture(scope="module")
def trained():
    classifier = trained_model(seed=1)
    reviews = load_reviews("reviews")["validation"].select(range(48))
    return classifier.model, classifier.encode(reviews["text"])


def test_occlusion_is_more_faithful_than_a_random_order(trained):
    model, inputs = trained
    random_scores = torch.rand(inputs[0].shape, generator=torch.Generator().manual_seed(0))
    by_occlusion = explain.comprehensiveness(model, *inputs, explain.occlusion(model, *inputs)).mean()
    assert by_occlusion > explain.comprehensiveness(model, *inputs, random_scores).mean() + 0.2


def test_integrated_gradients_converge_on_the_trained_model_from_unk(trained):
    model, inputs = trained
    gap = explain.integrated_gradients_with_gap(model, inputs[0][:16], inputs[1][:16]).gap
    assert gap.abs().mean() < 0.02
