"""Batches, scores, the loop, its checkpoints, and the command line."""

import json
import math
import random
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from library_twins import proof
from safetensors import safe_open
from torch import nn
from torch.nn import functional as F

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.embeddings import BagOfEmbeddings
from course_utils.experiments.recipes import RECIPES, changed, main, override, train_classifier
from course_utils.tokenization import WordTokenizer
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    accuracy_by,
    batches,
    encode_reviews,
    evaluate,
    fit,
    learning_rate_at,
    loop,
    seed_everything,
    training_device,
    training_precision,
)


def toy_reviews(n=60, seed=0) -> EncodedReviews:
    """Id 2 makes a review negative and id 3 positive; ids 4 to 9 mean nothing."""
    rng = random.Random(seed)
    ids, labels = [], []
    for i in range(n):
        row = [rng.randrange(4, 10) for _ in range(rng.randrange(1, 12))]
        row.insert(rng.randrange(len(row) + 1), 2 + i % 2)
        ids.append(row)
        labels.append(i % 2)
    return EncodedReviews(ids, labels)


def toy_model(seed=0, **options) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    settings = dict(vocab_size=10, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=16, dropout=0.2) | options
    return SelfAttentionClassifier(ClassifierConfig(**settings))


QUIET = dict(progress=False, options=BatchOptions(batch_size=8, max_len=16))


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


def test_reviews_are_encoded_in_order():
    tokenizer = WordTokenizer(["<pad>", "<unk>", "dull", "good"])
    encoded = encode_reviews({"text": ["dull", "so good", ""], "label": [0, 1, 0]}, tokenizer)
    assert encoded == EncodedReviews([[2], [1, 3], []], [0, 1, 0])


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


def test_the_loss_falls_and_the_problem_is_learned():
    model = toy_model(d_model=16)
    result = fit(model, toy_reviews(200), toy_reviews(50, seed=1), epochs=6, learning_rate=1e-2, **QUIET)
    losses = [epoch["train_loss"] for epoch in result.history]
    assert losses[-1] < 0.2 * losses[0]
    assert evaluate(model, toy_reviews(100, seed=2)).accuracy > 0.95
    assert [epoch["epoch"] for epoch in result.history] == [1, 2, 3, 4, 5, 6]
    assert result.seconds > 0 and not model.training


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


def test_a_later_epoch_is_kept_where_it_is_better():
    train = EncodedReviews([[2]] * 8, [1] * 8)
    model = Oscillating()
    result = fit(model, train, train, epochs=8, learning_rate=0.02, warmup=0.0, weight_decay=0.0, **QUIET)
    accuracies = [epoch["validation_accuracy"] for epoch in result.history]
    assert accuracies[0] == 0.0 and accuracies[-1] == 1.0
    assert result.best_epoch == accuracies.index(1.0) + 1
    assert evaluate(model, train).loss == pytest.approx(result.history[result.best_epoch - 1]["validation_loss"])


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


def test_training_is_done_in_training_mode_whatever_the_mode_before():
    losses = []
    for training in (True, False):
        model = toy_model(dropout=0.5).train(training)
        losses.append(fit(model, toy_reviews(), toy_reviews(20, 1), epochs=2, **QUIET).history)
    assert losses[0] == losses[1]


def test_seeding_covers_python_numpy_and_torch():
    import numpy as np

    drawn = []
    for _ in range(2):
        seed_everything(5)
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))
    assert drawn[0] == drawn[1]


# checkpoints

class Killed(BaseException):
    """As a signal would end the process: nothing on the way catches it."""


class CountsSteps(nn.Module):
    """A model that ends the run in the forward pass of one training step."""

    def __init__(self, model, stop_at=None):
        super().__init__()
        self.model, self.stop_at, self.steps = model, stop_at, 0
        self.config = model.config

    def forward(self, token_ids, attention_mask):
        self.steps += self.training
        if self.training and self.steps == self.stop_at:
            raise Killed
        return self.model(token_ids, attention_mask)


SETTINGS = dict(epochs=5, learning_rate=5e-3, patience=4, seed=3, **QUIET)


def test_a_run_that_was_killed_goes_on_to_bit_identical_weights(tmp_path):
    train, validation, options = toy_reviews(40), toy_reviews(20, 1), dict(word_dropout=0.1)
    whole = CountsSteps(toy_model(**options))
    expected = fit(whole, train, validation, **SETTINGS)
    file = tmp_path / "state" / "training.safetensors"
    with pytest.raises(Killed):                                            # 5 steps an epoch: in the third epoch
        fit(CountsSteps(toy_model(**options), stop_at=13), train, validation, checkpoint=file, **SETTINGS)
    torch.manual_seed(99)                                                  # another process has another random state
    resumed = CountsSteps(toy_model(seed=77, **options))
    result = fit(resumed, train, validation, checkpoint=file, **SETTINGS)
    assert resumed.steps == 15                                             # three epochs of five
    assert result.history == expected.history and result.best_epoch == expected.best_epoch
    for name, tensor in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name
    assert [path.name for path in file.parent.iterdir()] == [file.name]    # no partial file is left


def test_a_finished_run_is_not_trained_again(tmp_path):
    file, train = tmp_path / "state", toy_reviews(16)
    first, again = CountsSteps(toy_model()), CountsSteps(toy_model(seed=1))
    expected = fit(first, train, train, checkpoint=file, **SETTINGS)
    assert fit(again, train, train, checkpoint=file, **SETTINGS) == expected
    assert again.steps == 0
    assert torch.equal(first.model.output.weight, again.model.output.weight)


@pytest.mark.parametrize(
    "other", ["learning rate", "seed", "texts", "labels", "heads", "dropout", "positions", "batch size", "precision",
              "epochs", "weight_decay", "warmup", "clip", "patience", "validation"]
)
def test_a_checkpoint_of_other_settings_is_noticed_and_not_used(other, tmp_path, capsys):
    file, train = tmp_path / "state", toy_reviews(16)
    fit(CountsSteps(toy_model()), train, train, checkpoint=file, **SETTINGS)
    settings, reviews, validation, model = dict(SETTINGS), train, train, {}
    numbers = {"epochs": 4, "weight_decay": 0.3, "warmup": 0.4, "clip": 0.01, "patience": 1}
    if other == "learning rate":
        settings["learning_rate"] = 1e-4
    elif other == "seed":
        settings["seed"] = 4
    elif other == "precision":
        settings["precision"] = "bf16"
    elif other == "batch size":
        settings["options"] = BatchOptions(batch_size=4, max_len=16)
    elif other == "texts":
        reviews = EncodedReviews([row[::-1] for row in train.ids], train.labels)
    elif other == "labels":
        reviews = EncodedReviews(train.ids, train.labels[::-1])
    elif other == "heads":
        model = {"num_heads": 4}
    elif other == "dropout":
        model = {"dropout": 0.3}
    elif other == "positions":
        model = {"positions": "rotary"}
    elif other == "validation":
        validation = EncodedReviews(train.ids, train.labels[::-1])
    else:
        settings[other] = numbers[other]
    fresh, resumed = CountsSteps(toy_model(**model)), CountsSteps(toy_model(**model))
    expected = fit(fresh, reviews, validation, **settings)
    capsys.readouterr()
    result = fit(resumed, reviews, validation, checkpoint=file, **settings)
    assert "state belongs to other settings; training starts anew" in capsys.readouterr().err
    assert resumed.steps == fresh.steps and result.history == expected.history


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", "cut"])
def test_a_damaged_checkpoint_is_noticed_and_not_used(content, tmp_path, capsys):
    file, train = tmp_path / "state", toy_reviews(16)
    expected = fit(toy_model(), train, train, checkpoint=file, **SETTINGS)
    file.write_bytes(file.read_bytes()[:-100] if content == "cut" else content)
    model = CountsSteps(toy_model())
    result = fit(model, train, train, checkpoint=file, **SETTINGS)
    assert "state cannot be read" in capsys.readouterr().err
    assert model.steps > 0 and result.history == expected.history


# device and precision

def test_a_cuda_device_is_used_where_there_is_one_unless_the_model_stands_elsewhere(monkeypatch):
    model = toy_model()
    assert training_device(model) == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert training_device(model) == torch.device("cuda")
    assert training_device(model.to("meta")) == torch.device("meta")


def test_the_precision_on_cuda_is_bf16_and_elsewhere_fp32(monkeypatch):
    class OnCuda(nn.Module):
        def parameters(self):
            return iter([torch.empty(0, device="meta")])

    assert training_precision("auto", toy_model()) == "fp32"
    assert training_precision("bf16", toy_model()) == "bf16"
    assert training_precision("auto", OnCuda()) == "fp32"                  # a device of no known gain
    monkeypatch.setattr(torch.Tensor, "device", property(lambda tensor: torch.device("cuda")))
    assert training_precision("auto", OnCuda()) == "bf16"
    assert training_precision("fp32", OnCuda()) == "fp32"


def autocast_used(model) -> list[bool]:
    """Fills, while the model is used: was it in training mode, and under autocast?"""
    used = []
    model.register_forward_hook(lambda module, *_: used.append((module.training, torch.is_autocast_enabled("cpu"))))
    return used


def test_training_in_bf16_is_close_to_fp32_and_evaluates_in_fp32():
    histories = {}
    for precision in ("fp32", "bf16"):
        model = toy_model(dropout=0.0)
        used = autocast_used(model)
        result = fit(model, toy_reviews(80), toy_reviews(20, 1), epochs=2, precision=precision, **QUIET)
        assert set(used) == {(True, precision == "bf16"), (False, False)}
        assert all(p.dtype == torch.float32 and p.isfinite().all() for p in model.parameters())
        histories[precision] = [epoch["train_loss"] for epoch in result.history]
    assert all(math.isfinite(loss) for loss in histories["bf16"])
    assert histories["bf16"] != histories["fp32"]
    assert histories["bf16"] == pytest.approx(histories["fp32"], rel=0.03)
    one_batch = fit(toy_model(), toy_reviews(8), toy_reviews(8), epochs=1, precision="bf16", **QUIET)
    loss = one_batch.history[0]["train_loss"]
    assert loss != torch.tensor(loss).bfloat16().item()                    # it has more than eight bits: it is no bf16


@pytest.mark.parametrize("precision", ["fp16", "fastest"])
def test_the_precision_is_one_of_three(precision):
    with pytest.raises(ValueError, match=f"precision='{precision}'; use 'auto', 'fp32' or 'bf16'"):
        fit(toy_model(), toy_reviews(), toy_reviews(), precision=precision, **QUIET)


def test_a_resumed_run_keeps_the_precision_that_was_chosen(tmp_path, monkeypatch):
    answers = iter(["bf16", "fp32"])                                       # begun on one device, resumed on another
    monkeypatch.setattr(loop, "training_precision", lambda *given: next(answers))
    train, file = toy_reviews(40), tmp_path / "state"
    with pytest.raises(Killed):
        fit(CountsSteps(toy_model(), stop_at=8), train, train, checkpoint=file, **SETTINGS)
    model = CountsSteps(toy_model())
    used = autocast_used(model)
    fit(model, train, train, checkpoint=file, **SETTINGS)
    assert (True, True) in used and (True, False) not in used


# recipes and the command line

def test_override_changes_each_part_of_a_recipe():
    recipe = override(RECIPES["reviews"], ["num_layers=1", "epochs=3", "batch_size=4", "positions=learned", "max_len=64",
                                           "bucketed=false", "patience=2"])
    assert recipe.model["num_layers"] == 1 and recipe.model["positions"] == "learned"
    assert recipe.fit["epochs"] == 3 and recipe.fit["patience"] == 2
    assert recipe.batches["batch_size"] == 4 and recipe.batches["bucketed"] is False
    assert recipe.model["max_len"] == recipe.batches["max_len"] == 64      # the two must agree
    assert RECIPES["reviews"].fit["epochs"] != 3 and RECIPES["reviews"].model["positions"] == "rotary"


def test_options_are_changed_as_values_and_checked_by_the_same_rules():
    options = dict(num_layers=1, epochs=3, max_len=64, patience=None, min_freq=1)
    recipe = changed(RECIPES["reviews"], **options)
    assert recipe == override(RECIPES["reviews"], ["num_layers=1", "epochs=3", "max_len=64", "patience=None", "min_freq=1"])
    assert recipe.batches["max_len"] == 64 and recipe.fit["patience"] is None and recipe.min_freq == 1
    with pytest.raises(ValueError, match="'num_layer' isn't an option of a recipe; .*did you mean num_layers"):
        changed(RECIPES["reviews"], num_layer=1)
    with pytest.raises(ValueError, match="^num_layers='1'; use a whole number"):
        changed(RECIPES["reviews"], num_layers="1")


@pytest.mark.parametrize("wrong", ["heads=2", "num_layers", "=3", "vocab_size=9", ""])
def test_override_names_what_it_does_not_know(wrong):
    with pytest.raises(ValueError, match="expected NAME=VALUE with one of the names .*num_layers.*positions"):
        override(RECIPES["reviews"], [wrong])


@pytest.mark.parametrize(("wrong", "message"), [
    ("num_layers=two", "num_layers"), ("epochs=1.5", "epochs"), ("max_len=null", "max_len"), ("clip=hard", "clip"),
    ("zero_init=maybe", "zero_init"), ("positions=3", "positions"), ("batch_size=true", "batch_size"),
    ("positions=sine", "use one of none, sinusoidal"),
])
def test_override_names_a_value_that_cannot_be(wrong, message):
    with pytest.raises(ValueError, match=message):
        override(RECIPES["reviews"], [wrong])


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_fits_the_model_and_its_batches(name):
    recipe = RECIPES[name]
    config = ClassifierConfig(vocab_size=10, **recipe.model)
    assert BatchOptions(**recipe.batches).max_len == config.max_len
    SelfAttentionClassifier(config)
    assert override(recipe, []) == recipe


def toy_dataset(tmp_path):
    rng = random.Random(0)
    lines = ["text,label"]
    for i in range(60):
        filler = " ".join(rng.choice(["the film", "a scene", "its end", "we saw"]) for _ in range(rng.randrange(1, 5)))
        lines.append(f"{filler} {'moving' if i % 2 else 'dull'} number{i},{'positive' if i % 2 else 'negative'}")
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


TINY = ["num_layers=1", "d_model=8", "num_heads=2", "d_ff=8", "epochs=2", "max_len=12", "batch_size=8"]


def test_the_vocabulary_comes_from_the_training_split_alone(tmp_path):
    from course_utils.data import load_reviews, split_reviews

    dataset = split_reviews(load_reviews(toy_dataset(tmp_path)), validation=0.3)
    recipe = override(RECIPES["reviews"], TINY)._replace(min_freq=1)
    trained = train_classifier(dataset, recipe, progress=False)
    known = set(trained.classifier.tokenizer.vocabulary)
    for text in dataset["train"]["text"]:
        assert text.split()[-1] in known
    for text in dataset["validation"]["text"]:
        assert text.split()[-1] not in known
    assert trained.validation_accuracy == max(epoch["validation_accuracy"] for epoch in trained.fit_result.history)


def test_the_command_line_writes_a_classifier_that_loads(tmp_path, monkeypatch, capsys):
    command = ["train", str(toy_dataset(tmp_path)), str(tmp_path / "made"), "--threads", str(torch.get_num_threads())]
    for setting in TINY:
        command += ["--set", setting]
    monkeypatch.setattr(sys, "argv", ["course_utils", *command])
    with pytest.raises(SystemExit) as ended:                               # as `python -m course_utils train` would
        runpy.run_module("course_utils", run_name="__main__")
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert "validation accuracy" in printed and "ReviewClassifier.load(" in printed
    files = sorted(path.name.partition("-")[0] for path in (tmp_path / "made").glob("[!.]*"))
    assert files == ["config", "model.json", "result.json", "vocabulary", "weights"]
    classifier = ReviewClassifier.load(tmp_path / "made")
    labels, probabilities = classifier.predict(["a moving film", "a dull film " * 20])
    assert set(labels) <= {"negative", "positive"} and probabilities.isfinite().all()
    result = json.loads((tmp_path / "made" / "result.json").read_text())
    assert result["recipe"]["fit"]["epochs"] == 2 and result["seed"] == 0 and result["best_epoch"] in (1, 2)


def test_a_command_that_was_killed_goes_on_to_the_same_files(tmp_path):
    data, epochs = toy_dataset(tmp_path), 12
    settings = [setting for setting in TINY if not setting.startswith("epochs")] + [f"epochs={epochs}"]
    options = [part for setting in settings for part in ("--set", setting)] + ["--threads", str(torch.get_num_threads())]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main([str(data), str(whole), *options]) == 0
    command = [sys.executable, "-m", "course_utils", "train", str(data), str(cut), *options]
    root, state = Path(__file__).resolve().parents[2], cut / "training_state.safetensors"
    running = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not state.exists() and running.poll() is None:                   # until the first epoch is saved
        time.sleep(0.001)
    running.kill()                                                         # SIGKILL, in a later epoch
    running.communicate()
    assert running.returncode != 0 and not (cut / "result.json").exists()
    with safe_open(state, framework="pt") as file:
        assert 1 <= len(json.loads(file.metadata()["state"])["history"]) < epochs
    again = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "starts anew" not in again.stderr
    results = [json.loads((folder / "result.json").read_text()) for folder in (whole, cut)]
    for folder, result in zip((whole, cut), results):
        del result["seconds"]
        (folder / "result.json").unlink()
    assert results[0] == results[1]
    files = [{path.name: path.read_bytes() for path in folder.glob("[!.]*")} for folder in (whole, cut)]
    assert files[0] == files[1] and len(files[0]) == 4


@pytest.mark.parametrize(("arguments", "message"), [
    (["no-such-file.csv", "out"], "no-such-file.csv"),
    (["reviews", "out", "--set", "layers=2"], "layers=2: expected NAME=VALUE"),
    (["reviews", "out", "--recipe", "bert"], "invalid choice: 'bert'"),
])
def test_the_command_line_says_what_is_wrong_in_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err.strip().splitlines()[-1]
