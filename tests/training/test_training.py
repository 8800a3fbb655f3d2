"""Batches, scores and the loop of `fit`."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from library_twins import proof
from torch import nn
from torch.nn import functional as F
from toy_reviews import QUIET, CountsSteps, toy_model, toy_reviews

from course_utils.embeddings import BagOfEmbeddings
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    accuracy_by,
    batches,
    evaluate,
    fit,
    learning_rate_at,
    seed_everything,
)

# batches

@proof
@given(n=st.integers(1, 50), batch_size=st.integers(1, 9), seed=st.none() | st.integers(0, 99), bucketed=st.booleans())
def test_batches_cover_each_review_once_with_its_label(n, batch_size, seed, bucketed):
    reviews = toy_reviews(n)
    found = list(batches(reviews, BatchOptions(batch_size=batch_size, bucketed=bucketed), seed))
    assert sorted(i for batch in found for i in batch.indices) == list(range(n))
    assert len(found) == -(-n // batch_size)
    for batch in found:
        assert batch.labels.tolist() == [reviews.labels[i] for i in batch.indices]
        rows = [row[real].tolist() for row, real in zip(batch.token_ids, batch.attention_mask)]
        assert rows == [reviews.ids[i] for i in batch.indices]


def test_the_order_depends_on_the_seed_alone():
    reviews = toy_reviews()
    orders = [[b.indices for b in batches(reviews, BatchOptions(batch_size=7), seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def padding_share(reviews, options):
    found = list(batches(reviews, options, seed=0))
    return 1 - sum(b.attention_mask.sum().item() for b in found) / sum(b.token_ids.numel() for b in found)


def test_bucketing_puts_like_lengths_together():
    reviews = toy_reviews(400)
    bucketed, mixed = (padding_share(reviews, BatchOptions(8, multiple_of=1, bucketed=on)) for on in (True, False))
    assert bucketed < 0.05 < 0.25 < mixed
    lengths = [len(reviews.ids[i]) for batch in batches(reviews, BatchOptions(8)) for i in batch.indices]
    assert lengths == sorted(lengths)
    # the batches themselves come in random order, or a model would see all short reviews first
    first = [len(reviews.ids[batch.indices[0]]) for batch in batches(reviews, BatchOptions(8), seed=0)]
    assert first != sorted(first)


def test_widths_are_multiples_and_long_reviews_are_cut():
    reviews = EncodedReviews([list(range(2, 42)), [2, 3, 4]], [0, 1])
    (batch,) = batches(reviews, BatchOptions(batch_size=2, max_len=16, multiple_of=8))
    assert batch.token_ids.shape == (2, 16)
    assert batch.token_ids[batch.indices.index(0)].tolist() == [2, 3, 4, 5, *range(30, 42)]
    (batch,) = batches(reviews, BatchOptions(batch_size=2, max_len=10, multiple_of=8))
    assert batch.token_ids.shape == (2, 10)                                # a model has no position beyond max_len


# scores

def test_an_evaluation_is_the_mean_over_reviews_with_a_ragged_last_batch():
    reviews, model = toy_reviews(70), toy_model()                          # batches of 64 and 6
    scored = evaluate(model, reviews, BatchOptions(batch_size=8, max_len=16))
    with torch.no_grad():
        logits = torch.cat([model.eval()(torch.tensor([row])).logits for row in reviews.ids])
    labels = torch.tensor(reviews.labels)
    assert scored.loss == pytest.approx(F.cross_entropy(logits, labels).item(), abs=1e-6)
    assert scored.accuracy == pytest.approx((logits.argmax(-1) == labels).float().mean().item())
    assert torch.equal(scored.predictions, logits.argmax(-1))
    torch.testing.assert_close(scored.probabilities, logits.softmax(-1), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_an_evaluation_puts_the_mode_back_and_leaves_no_gradients(training):
    model = toy_model(dropout=0.5, word_dropout=0.5).train(training)
    one, other = (evaluate(model, toy_reviews()) for _ in range(2))
    assert one.loss == other.loss and torch.equal(one.probabilities, other.probabilities)
    assert model.training is training and all(module.training is training for module in model.modules())
    assert not one.probabilities.requires_grad and all(p.grad is None for p in model.parameters())


def test_there_must_be_something_to_evaluate_and_to_train_on():
    nothing = EncodedReviews([], [])
    with pytest.raises(ValueError, match="no reviews to evaluate"):
        evaluate(toy_model(), nothing)
    with pytest.raises(ValueError, match="no reviews to train on"):
        fit(toy_model(), nothing, toy_reviews(), **QUIET)
    with pytest.raises(ValueError, match="no reviews to evaluate"):        # before training, not after an epoch of it
        fit(CountsSteps(toy_model(), stop_at=1), toy_reviews(), nothing, **QUIET)


def test_accuracy_by_group():
    assert accuracy_by(["a", "b", "a"], [1, 0, 0], [1, 0, 1]) == {"a": 0.5, "b": 1.0}
    assert accuracy_by(["b", "a"], torch.tensor([1, 1]), [0, 1]) == {"a": 1.0, "b": 0.0}
    assert list(accuracy_by(["b", "a"], [1, 1], [0, 1])) == ["a", "b"]


# the loop

def test_the_learning_rate_rises_to_its_peak_and_falls_to_zero():
    rates = [learning_rate_at(step, 100, 0.01, 0.1) for step in range(100)]
    assert rates[:10] == pytest.approx([0.001 * (step + 1) for step in range(10)])
    assert rates[10] == pytest.approx(0.01) and max(rates) == pytest.approx(0.01)
    assert rates[55] == pytest.approx(0.005)                               # half way down the cosine
    assert all(before > after for before, after in zip(rates[10:], rates[11:]))
    assert 0 < rates[-1] < 1e-5
    assert learning_rate_at(0, 10, 0.01, 0.0) == 0.01                      # no warm-up
    assert all(math.isfinite(learning_rate_at(0, n, 0.01, 1.0)) for n in (0, 1, 2))


def test_training_is_the_loop_written_out():
    reviews, options = toy_reviews(20), BatchOptions(batch_size=8, max_len=16)
    torch.manual_seed(0)
    ours, by_hand = BagOfEmbeddings(10), BagOfEmbeddings(10)
    by_hand.load_state_dict(ours.state_dict())
    result = fit(ours, reviews, reviews, epochs=3, learning_rate=0.05, weight_decay=0.1, warmup=0.5, clip=0.05, seed=4,
                 options=options, progress=False)
    optimizer, norms, step, kept = torch.optim.AdamW(by_hand.parameters(), weight_decay=0.1), [], 0, []
    for epoch in (1, 2, 3):
        losses = []
        for batch in batches(reviews, options, seed=4000 + epoch):
            optimizer.param_groups[0]["lr"] = learning_rate_at(step, 9, 0.05, 0.5)
            loss = F.cross_entropy(by_hand(batch.token_ids, batch.attention_mask), batch.labels)
            losses += [loss.item()] * len(batch.labels)
            by_hand.zero_grad()
            loss.backward()
            norms.append(nn.utils.clip_grad_norm_(by_hand.parameters(), 0.05).item())
            optimizer.step()
            step += 1
        kept.append([p.detach().clone() for p in by_hand.parameters()])
        assert result.history[epoch - 1]["train_loss"] == pytest.approx(sum(losses) / 20, rel=1e-5)
    assert max(norms) > 0.05                                               # the limit was felt
    for our, their in zip(ours.parameters(), kept[result.best_epoch - 1]):
        torch.testing.assert_close(our, their, atol=1e-6, rtol=1e-5)


class Oscillating(nn.Module):
    """Answers by its one weight, which the gradient of a one-sided training set drives upwards."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(-0.05))

    def forward(self, token_ids, attention_mask):
        return torch.stack([-self.weight, self.weight]).expand(len(token_ids), 2)


def test_the_epoch_that_was_best_on_validation_is_kept():
    # training says "always positive", validation says "always negative": the accuracy falls from 1 to 0
    train, validation = EncodedReviews([[2]] * 8, [1] * 8), EncodedReviews([[2]] * 4, [0] * 4)
    model = Oscillating()
    result = fit(model, train, validation, epochs=8, learning_rate=0.02, warmup=0.0, weight_decay=0.0, **QUIET)
    accuracies = [epoch["validation_accuracy"] for epoch in result.history]
    assert accuracies[0] == 1.0 and accuracies[-1] == 0.0 and len(accuracies) == 8
    assert result.best_epoch == 1                                          # the first of equals
    assert evaluate(model, validation).accuracy == 1.0
    assert evaluate(model, validation).loss == pytest.approx(result.history[0]["validation_loss"])


def test_patience_ends_the_training():
    train, validation = EncodedReviews([[2]] * 8, [1] * 8), EncodedReviews([[2]] * 4, [0] * 4)
    result = fit(Oscillating(), train, validation, epochs=9, learning_rate=0.02, warmup=0.0, patience=2, **QUIET)
    assert len(result.history) == 3 and result.best_epoch == 1


def test_a_loss_that_is_not_finite_is_a_clear_error():
    model = toy_model()
    with torch.no_grad():
        model.output.bias[0] = math.nan
    with pytest.raises(FloatingPointError, match="loss is nan in epoch 1, step 0; try a smaller learning_rate than 0.5"):
        fit(model, toy_reviews(), toy_reviews(), learning_rate=0.5, **QUIET)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    weights = []
    for seed in (1, 1, 2):
        model = toy_model()
        fit(model, toy_reviews(), toy_reviews(20, 1), epochs=2, seed=seed, **QUIET)
        weights.append(model.output.weight.detach().clone())
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_every_epoch_of_every_seed_drops_other_elements():
    drawn = []

    class Draws(Oscillating):
        def forward(self, token_ids, attention_mask):
            if self.training:
                drawn.append(torch.rand(()).item())                        # what a dropout would draw from
            return super().forward(token_ids, attention_mask)

    for seed in (0, 1):
        fit(Draws(), toy_reviews(16), toy_reviews(4), epochs=3, seed=seed, **QUIET)
    assert len(drawn) == len(set(drawn)) == 2 * 3 * 2                      # seeds, epochs, batches


def test_seeding_covers_python_numpy_and_torch():
    import numpy as np

    drawn = []
    for _ in range(2):
        seed_everything(5)
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]
