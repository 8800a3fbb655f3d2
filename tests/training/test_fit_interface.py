"""What `fit` trains besides classifiers of reviews: it is given batches, a loss and a validation, and knows no more."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils import files
from course_utils.training import MeanLoss, fit, loop, train_epoch

# a language model in two lines: the next token follows from the last one alone, so a table of logits is all that it needs

STAY = 0.75                                             # a token repeats itself with this probability, else the next comes
ENTROPY = -STAY * math.log(STAY) - (1 - STAY) * math.log(1 - STAY)        # what the best model still loses per token


def language_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Embedding(4, 4)


def next_token_loss(model, tokens):
    logits = model(tokens[:, :-1])                      # (batch, seq_len - 1, vocab)
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()), tokens[:, 1:].numel()


class Sequences:
    """Random walks over four tokens in batches; a batch is one tensor. The last batch is short."""

    def __init__(self, rows: int, seed: int, batch_size: int = 32):
        stays = torch.rand(rows, 40, generator=torch.Generator().manual_seed(seed)) < STAY
        self.tokens, self.batch_size = (~stays).cumsum(dim=1) % 4, batch_size                   # (rows, seq_len)

    def __len__(self):
        return math.ceil(len(self.tokens) / self.batch_size)

    def batches(self, seed):
        order = torch.arange(len(self.tokens))
        if seed is not None:
            order = torch.randperm(len(order), generator=torch.Generator().manual_seed(seed))
        yield from self.tokens[order].split(self.batch_size)

    @property
    def fingerprint(self):
        return files.fingerprint(self.tokens.tolist(), self.batch_size)


WALKS, HELD_OUT = Sequences(200, seed=1), Sequences(100, seed=2)
SETTINGS = dict(epochs=6, learning_rate=0.3, weight_decay=0.0, progress=False)


def fit_language_model(model, **changes):
    return fit(model, WALKS, MeanLoss(HELD_OUT, next_token_loss), loss_of=next_token_loss, **SETTINGS | changes)


def test_a_language_model_learns_down_to_the_entropy_and_the_lowest_loss_is_best():
    model = language_model()
    result = fit_language_model(model)
    losses = [epoch["validation_loss"] for epoch in result.history]
    assert losses[0] > ENTROPY + 0.05 and losses[-1] == pytest.approx(ENTROPY, abs=0.02)
    assert result.best_epoch == 1 + losses.index(min(losses))
    logits = model(HELD_OUT.tokens[:, :-1])
    by_hand = F.cross_entropy(logits.flatten(0, 1), HELD_OUT.tokens[:, 1:].flatten()).item()  # over all positions at once
    assert min(losses) == pytest.approx(by_hand, abs=1e-5)
    stays = model(torch.arange(4)).softmax(dim=-1).diagonal()
    torch.testing.assert_close(stays, torch.full((4,), STAY), atol=0.03, rtol=0)


def test_an_epoch_weights_batches_by_their_items():
    seen = []

    def loss_of(model, batch):
        loss, items = next_token_loss(model, batch)
        seen.append((loss.item(), items))
        return loss, items

    model, ragged = language_model(), Sequences(33, seed=4)                # batches of 32 rows and of 1
    optimizer = torch.optim.SGD(model.parameters())
    mean = train_epoch(model, optimizer, ragged.batches(1), loss_of, [0.5, 0.25], clip=1.0)
    assert [items for _, items in seen] == [32 * 39, 39]
    assert mean == pytest.approx(sum(loss * items for loss, items in seen) / (33 * 39))
    assert optimizer.param_groups[0]["lr"] == 0.25


# a student learns from a frozen teacher

class Distillation:
    """Cross-entropy to the teacher's probabilities."""

    def __init__(self, teacher):
        self.teacher = teacher.eval().requires_grad_(False)

    def __call__(self, model, tokens):
        target = self.teacher.to(tokens.device)(tokens).softmax(dim=-1)    # `fit` may have moved the student
        return -(target * model(tokens).log_softmax(dim=-1)).sum(dim=-1).mean(), tokens.numel()

    @property
    def fingerprint(self):
        return files.fingerprint("distillation", {name: t.tolist() for name, t in self.teacher.state_dict().items()})


def teacher(seed=5):
    torch.manual_seed(seed)
    return nn.Embedding(4, 4)


# interrupted and resumed

class Killed(BaseException):
    pass


def killed_at(step, loss_of):
    """The same loss, known by the same name to a checkpoint, that ends the run at a step of training."""
    def dies(model, batch):
        dies.steps += model.training
        if dies.steps == step:
            raise Killed
        return loss_of(model, batch)

    dies.steps, dies.fingerprint = 0, getattr(loss_of, "fingerprint", None) or loss_of.__qualname__
    return dies


@pytest.mark.parametrize("what", ["language model", "student"])
def test_what_was_killed_goes_on_to_the_same_bytes(what, tmp_path):
    loss = next_token_loss if what == "language model" else Distillation(teacher())
    whole, cut, resumed = two_layers(), two_layers(), two_layers()
    validation, file = MeanLoss(HELD_OUT, loss), tmp_path / "state"
    expected = fit(whole, WALKS, validation, loss_of=loss, checkpoint=tmp_path / "whole", **SETTINGS)
    with pytest.raises(Killed):                         # 7 steps an epoch: in the third one
        fit(cut, WALKS, validation, loss_of=killed_at(17, loss), checkpoint=file, **SETTINGS)
    torch.manual_seed(99)                               # with dropout, the random numbers go on as well
    steps = killed_at(None, loss)
    result = fit(resumed, WALKS, validation, loss_of=steps, checkpoint=file, **SETTINGS)
    assert steps.steps == 4 * 7
    assert result.history == expected.history and result.best_epoch == expected.best_epoch
    for name, tensor in whole.state_dict().items():
        assert resumed.state_dict()[name].numpy().tobytes() == tensor.numpy().tobytes(), name


@pytest.mark.parametrize("other", ["teacher", "loss", "data", "validation", "best"])
def test_a_checkpoint_of_another_loss_teacher_or_data_is_not_used(other, tmp_path, capsys):
    file, loss = tmp_path / "state", Distillation(teacher())
    fit(language_model(), WALKS, MeanLoss(HELD_OUT, loss), loss_of=loss, checkpoint=file, **SETTINGS)
    data, validation, best = WALKS, MeanLoss(HELD_OUT, loss), None
    if other == "teacher":
        loss = Distillation(teacher(seed=6))
    elif other == "loss":
        loss = next_token_loss
    elif other == "data":
        data = Sequences(200, seed=8)
    elif other == "validation":
        validation = MeanLoss(Sequences(100, seed=8), loss)
    else:
        best = "highest validation_loss"
    fit(language_model(), data, validation, loss_of=loss, best=best, checkpoint=file, **SETTINGS)
    assert "state belongs to other settings; training starts anew" in capsys.readouterr().err


# what is said about arguments that cannot be

def test_a_validation_is_any_function_and_says_by_best_what_it_is_judged_by():
    modes = []

    def accuracy(model):
        modes.append((model.training, torch.is_grad_enabled()))
        return {"repeats": (model(torch.arange(4)).argmax(-1) == torch.arange(4)).double().mean().item(), "spread": 1.0}

    result = fit(language_model(), WALKS, accuracy, loss_of=next_token_loss, best="highest repeats", **SETTINGS)
    assert list(result.history[0]) == ["epoch", "train_loss", "repeats", "spread"]
    assert result.history[-1]["repeats"] == 1.0 and modes == [(False, False)] * 6
    with pytest.raises(ValueError, match="best=None; say which number of the validation chooses the epoch"):
        fit(language_model(), WALKS, accuracy, loss_of=next_token_loss, **SETTINGS)
    with pytest.raises(ValueError, match="best='repeats'; say which"):
        fit(language_model(), WALKS, accuracy, loss_of=next_token_loss, best="repeats", **SETTINGS)
    with pytest.raises(ValueError, match="chosen by accuracy, and the validation gives repeats, spread; name one of these"):
        fit(language_model(), WALKS, accuracy, loss_of=next_token_loss, best="highest accuracy", **SETTINGS)


def test_a_number_of_the_validation_that_is_not_finite_is_an_error():
    with pytest.raises(FloatingPointError, match="the mean rank is nan after epoch 1; try a smaller learning_rate than 0.3"):
        fit(language_model(), WALKS, lambda model: {"mean_rank": math.nan}, loss_of=next_token_loss,
            best="lowest mean_rank", **SETTINGS)


@pytest.mark.parametrize("wrong", [6, 8])
def test_a_length_that_is_not_that_of_an_epoch_is_an_error(wrong):
    class Miscounted(Sequences):
        def __len__(self):
            return wrong

    with pytest.raises(ValueError, match=f"an epoch had 7 batches, and the length of the training data is {wrong}"):
        fit(language_model(), Miscounted(200, seed=1), MeanLoss(HELD_OUT, next_token_loss), loss_of=next_token_loss,
            **SETTINGS)


@pytest.mark.parametrize(("change", "error", "message"), [
    (dict(train=[1, 2]), TypeError, "the training data are of type list; give EncodedReviews, or an object that has"),
    (dict(validation=[1, 2]), TypeError, "the validation is of type list; give EncodedReviews, or a function of the model"),
    (dict(train=Sequences(0, seed=1)), ValueError, "there are no batches to train on"),
    (dict(loss_of=lambda model, batch: next_token_loss(model, batch)[0]), TypeError,
     "loss_of returned an object of type Tensor; expected two things"),
    (dict(lerning_rate=1), TypeError, "fit has no setting 'lerning_rate'; did you mean learning_rate. There are epochs, "),
    (dict(xyz=1), TypeError, "fit has no setting 'xyz'; There are epochs, "),
])
def test_what_cannot_be_is_named(change, error, message):
    given = dict(train=WALKS, validation=MeanLoss(HELD_OUT, next_token_loss), loss_of=next_token_loss) | SETTINGS | change
    with pytest.raises(error, match=message):
        fit(language_model(), **given)


def test_a_checkpoint_needs_to_know_the_loss_again(tmp_path):
    import functools

    nameless = functools.partial(next_token_loss)
    with pytest.raises(TypeError, match="a checkpoint can't tell whether .* give it a `fingerprint`"):
        fit(language_model(), WALKS, MeanLoss(HELD_OUT, next_token_loss), loss_of=nameless, checkpoint=tmp_path / "s",
            **SETTINGS)


# parts of a model at rates of their own

def two_layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4), nn.Dropout(0.1))


def halves(model) -> list[dict]:
    return [{"params": list(model[0].parameters()), "scale": 0.0}, {"params": list(model[1].parameters())}]


def test_a_group_of_scale_zero_stays_as_it_was():
    model = two_layers()
    before = [parameter.clone() for parameter in model.parameters()]
    fit_language_model(model, groups=halves, epochs=1)
    assert [torch.equal(now, then) for now, then in zip(model.parameters(), before)] == [True, False, False]


def test_every_parameter_must_be_in_one_group():
    for wrong in (lambda model: halves(model)[:1], lambda model: halves(model) + halves(model)[:1]):
        with pytest.raises(ValueError, match="groups gives [14] parameters, and the model has 3; each must be in one group"):
            fit_language_model(two_layers(), groups=wrong)


def test_other_groups_or_other_frozen_parts_are_another_training(tmp_path, capsys):
    path = tmp_path / "state"
    fit_language_model(two_layers(), groups=halves, epochs=1, checkpoint=path)
    for change in (dict(groups=None), dict(groups=lambda model: [{**halves(model)[0], "scale": 0.5}, halves(model)[1]])):
        fit_language_model(two_layers(), epochs=1, checkpoint=path, **change)
        assert "belongs to other settings" in capsys.readouterr().err
    frozen = two_layers()
    frozen[0].requires_grad_(False)
    fit_language_model(frozen, epochs=1, checkpoint=path)
    assert "belongs to other settings" in capsys.readouterr().err


class Elsewhere(nn.Embedding):
    """A model that says where it was sent, and stays."""

    def to(self, device):
        self.sent = [*getattr(self, "sent", []), str(device)]
        return self


class Sent(Sequences):
    """Batches that say where they were sent, and stay."""

    class Batch(NamedTuple):
        tokens: torch.Tensor
        sent: list

        def to(self, device):
            self.sent.append(str(device))
            return self.tokens

    def batches(self, seed):
        self.sent = []
        return (self.Batch(tokens, self.sent) for tokens in super().batches(seed))


def test_model_and_batches_go_to_the_device_that_trains_and_the_model_comes_home(monkeypatch):
    monkeypatch.setattr(loop, "training_device", lambda model: torch.device("cuda:0"))
    monkeypatch.setattr(loop, "say_device", lambda device: None)
    model, walks, at_validation = Elsewhere(4, 4), Sent(40, seed=1), []

    def validation(model):
        at_validation.extend(model.sent)
        return {"loss": 1.0}

    fit(model, walks, validation, loss_of=next_token_loss, best="lowest loss", **SETTINGS | {"epochs": 1})
    assert at_validation == ["cuda:0"] and model.sent == ["cuda:0", "cpu"] and walks.sent == ["cuda:0"] * 2
