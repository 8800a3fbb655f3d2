"""A training that was interrupted goes on as if nothing had happened; devices and precisions."""

import math

import pytest
import torch
from toy_reviews import QUIET, CountsSteps, Killed, toy_model, toy_reviews

from course_utils.training import BatchOptions, EncodedReviews, fit, loop

# checkpoints

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


TRAIN = toy_reviews(16)
OTHERS = {
    "texts": (EncodedReviews([row[::-1] for row in TRAIN.ids], TRAIN.labels), TRAIN, {}, {}),
    "labels": (EncodedReviews(TRAIN.ids, TRAIN.labels[::-1]), TRAIN, {}, {}),
    "validation": (TRAIN, EncodedReviews(TRAIN.ids, TRAIN.labels[::-1]), {}, {}),
    **{str(model): (TRAIN, TRAIN, {}, model) for model in ({"num_heads": 4}, {"dropout": 0.3}, {"positions": "rotary"})},
    **{name: (TRAIN, TRAIN, {name: value}, {}) for name, value in dict(
        learning_rate=1e-4, seed=4, precision="bf16", options=BatchOptions(batch_size=4, max_len=16), epochs=4,
        weight_decay=0.3, warmup=0.4, clip=0.01, patience=1).items()},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_other_settings_is_noticed_and_not_used(other, tmp_path, capsys):
    file, (reviews, validation, settings, model) = tmp_path / "state", OTHERS[other]
    fit(CountsSteps(toy_model()), TRAIN, TRAIN, checkpoint=file, **SETTINGS)
    fresh, resumed = CountsSteps(toy_model(**model)), CountsSteps(toy_model(**model))
    expected = fit(fresh, reviews, validation, **SETTINGS | settings)
    capsys.readouterr()
    result = fit(resumed, reviews, validation, checkpoint=file, **SETTINGS | settings)
    assert "state belongs to other settings; training starts anew" in capsys.readouterr().err
    assert resumed.steps == fresh.steps and result.history == expected.history
    assert fit(resumed, reviews, validation, checkpoint=file, **SETTINGS | settings) == result
    assert resumed.steps == fresh.steps                                    # a finished one isn't trained again


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", "cut"])
def test_a_damaged_checkpoint_is_noticed_and_not_used(content, tmp_path, capsys):
    file, train = tmp_path / "state", toy_reviews(16)
    expected = fit(toy_model(), train, train, checkpoint=file, **SETTINGS)
    file.write_bytes(file.read_bytes()[:-100] if content == "cut" else content)
    model = CountsSteps(toy_model())
    result = fit(model, train, train, checkpoint=file, **SETTINGS)
    assert "state cannot be read" in capsys.readouterr().err
    assert model.steps > 0 and result.history == expected.history


# precision

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
