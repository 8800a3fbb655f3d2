"""Methods that score tokens, and the measures of them: by hand, against slow loops, and on odd texts."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from explained import MODELS, all_methods, batch, make_model

from course_utils import explain
from course_utils.classifier import POSITIONS, ReviewClassifier
from course_utils.tokenization import Token, WordTokenizer, pad_batch

__all__ = ["batch"]                            # pytest runs it around each test here


TEXTS = ["A moving film, and never a dull minute.", "Not moving but dull.",
         "The acting is wooden; the story, however, is a small wonder that grows on you. Go and see it twice!"]
ODD_TEXTS = {
    "empty": "", "one word": "dull", "markup only": "<br /><br />", "markup": "dull<br />film", "mathtext": "$x_1$ is dull",
    "emoji": "👍🏽 moving 🎬", "unknown words": "zzyzx qwertz", "longer than the maximum": "a dull film " * 40,
}


def make_classifier(**options) -> ReviewClassifier:
    tokenizer = WordTokenizer.train(TEXTS, min_freq=1)
    return ReviewClassifier(make_model(vocab_size=tokenizer.vocab_size, **options), tokenizer)


# agreement with evidence

def test_agreement_of_four_tokens_is_the_one_worked_out_by_hand():
    found = explain.agreement([0.3, 0.4, 0.1, 0.2], [True, False, False, True])
    assert found == pytest.approx((7 / 12, 0.5, 0.5))


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
@pytest.mark.parametrize(("pooling", "layers"), [("attention", 2), ("mean", 0)])
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


# on a trained model
