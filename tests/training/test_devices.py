"""The device that a model is trained on, the line that says so, and the precision there. No test needs a GPU."""

import pytest
import torch
from torch import nn

from course_utils.training import devices, fastest_device, training_device, training_precision


@pytest.fixture
def machine(monkeypatch):
    """machine(cuda=…, mps=…): what PyTorch finds, for somebody who runs a notebook, not a test."""
    monkeypatch.delenv("COURSE_TESTING", raising=False)
    monkeypatch.delenv("COURSE_DEVICE", raising=False)
    monkeypatch.setattr(devices, "_said", set())

    def set_up(cuda=False, mps=False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    return set_up


@pytest.mark.parametrize(("there", "expected"), [({}, "cpu"), ({"cuda": True}, "cuda"), ({"mps": True}, "mps"),
                                                 ({"cuda": True, "mps": True}, "cuda")])
def test_the_fastest_device_there_is_trains_a_model_that_stands_on_the_cpu(machine, there, expected):
    machine(**there)
    assert fastest_device() == training_device(nn.Linear(1, 1)) == torch.device(expected)
    assert training_device(nn.Linear(1, 1).to("meta")) == torch.device("meta")


def test_tests_train_on_the_cpu_unless_a_device_is_named(machine, monkeypatch):
    machine(cuda=True)
    monkeypatch.setenv("COURSE_TESTING", "1")
    assert fastest_device() == torch.device("cpu")
    monkeypatch.setenv("COURSE_DEVICE", "cuda")
    assert fastest_device() == torch.device("cuda")


@pytest.mark.parametrize(("name", "expected"), [(" CPU ", "cpu"), ("mps", "mps")])
def test_a_named_device_is_taken(machine, monkeypatch, name, expected):
    machine(cuda=True, mps=True)
    monkeypatch.setenv("COURSE_DEVICE", name)
    assert fastest_device() == torch.device(expected)


@pytest.mark.parametrize(("name", "message"), [("gpu", "expected cpu, cuda or mps"), ("cuda", "only cpu and mps")])
def test_a_device_that_cannot_be_had_is_refused(machine, monkeypatch, name, message):
    machine(mps=True)
    monkeypatch.setenv("COURSE_DEVICE", name)
    with pytest.raises(ValueError, match=message):
        fastest_device()


def test_one_line_says_that_training_is_elsewhere_and_none_for_the_cpu(machine, monkeypatch, capsys):
    machine()
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some Card")
    for _ in range(2):
        for name in ("cpu", "cuda"):
            devices.say_device(torch.device(name))
    assert capsys.readouterr().out == "training on the GPU (Some Card); COURSE_DEVICE=cpu trains on the CPU instead\n"


def test_the_precision_on_cuda_is_bf16_and_elsewhere_fp32(monkeypatch):
    class OnCuda(nn.Module):
        def parameters(self):
            return iter([torch.empty(0, device="meta")])

    assert training_precision("auto", nn.Linear(1, 1)) == "fp32"
    assert training_precision("bf16", nn.Linear(1, 1)) == "bf16"
    assert training_precision("auto", OnCuda()) == "fp32"                  # a device of no known gain
    monkeypatch.setattr(torch.Tensor, "device", property(lambda tensor: torch.device("cuda")))
    assert training_precision("auto", OnCuda()) == "bf16"
    assert training_precision("fp32", OnCuda()) == "fp32"


def test_an_lstm_is_not_trained_in_bfloat16_where_the_processor_has_none(monkeypatch):
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 2)

    monkeypatch.setattr(devices, "computes_lstm_in_bf16", lambda: False)
    with pytest.raises(ValueError, match="no LSTM in bfloat16 for this processor, and Reader has one; expected .*'fp32'"):
        training_precision("bf16", Reader())
    assert training_precision("fp32", Reader()) == training_precision("auto", Reader()) == "fp32"
    assert training_precision("bf16", nn.Linear(1, 1)) == training_precision("bf16", Reader().to("meta")) == "bf16"
    monkeypatch.setattr(devices, "computes_lstm_in_bf16", lambda: True)
    assert training_precision("bf16", Reader()) == "bf16"


def test_whether_there_is_an_lstm_in_bfloat16_is_found_by_trying_and_draws_no_random_numbers():
    devices.computes_lstm_in_bf16.cache_clear()
    before = torch.get_rng_state()
    found = devices.computes_lstm_in_bf16()
    assert torch.equal(before, torch.get_rng_state())
    try:
        with torch.autocast("cpu", torch.bfloat16):
            nn.LSTM(8, 5, batch_first=True)(torch.ones(2, 3, 8))[0].sum().backward()
        works = True
    except RuntimeError:
        works = False
    assert found == works
