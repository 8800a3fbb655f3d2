"""Bits per byte: every token is asked for once, with enough before it; what xz needs; intervals over modules."""

import lzma
import math

import pytest
import torch
from torch.nn import functional as F

from course_tools.studies.code_scores import (
    bits_by_module,
    bits_interval,
    carried_nats,
    ratio_interval,
    token_nats,
    xz_bits,
)
from course_tools.studies.kneser_ney import KneserNey
from course_tools.studies.recurrent_language_model import RecurrentLanguageModel
from course_utils.language_model import LanguageModel, LanguageModelConfig, LanguageModelResult


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = LanguageModel(LanguageModelConfig(13, d_model=16, num_heads=2, d_ff=32, num_layers=2, max_len=64)).eval()
    torch.nn.init.normal_(made.embedding.weight)
    return made


class Noting(torch.nn.Module):
    """Gives every token the same probability, and notes what it was shown."""

    def __init__(self):
        super().__init__()
        self.shown = []

    def forward(self, token_ids):
        self.shown.append(token_ids[0].tolist())
        return LanguageModelResult(torch.zeros(*token_ids.shape, 50), None)


def test_a_module_that_fits_is_scored_in_one_piece(model):
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    row = torch.tensor([[0, *ids]])
    expected = F.cross_entropy(model(row[:, :-1]).logits[0], row[0, 1:], reduction="none")
    for length, stride in ((8, 8), (8, 3), (64, 1)):
        assert torch.allclose(token_nats(model, ids, length, stride), expected, atol=1e-5)
    assert not torch.allclose(token_nats(model, ids, 4, 2), expected, atol=1e-3)


@pytest.mark.parametrize("length, stride", [(8, 8), (8, 4), (8, 3), (8, 1), (5, 2)])
@pytest.mark.parametrize("tokens", [0, 1, 7, 8, 9, 20, 31])
def test_each_token_is_asked_for_with_as_many_before_it_as_it_was_promised(length, stride, tokens):
    ids = list(range(1, tokens + 1))
    noting = Noting()
    nats = token_nats(noting, ids, length, stride)
    assert nats.shape == (tokens,) and torch.allclose(nats, torch.full((tokens,), math.log(50)))
    first_shown = {}                                                       # of each token: how much was read before it
    for window in noting.shown:
        assert len(window) <= length and window == list(range(window[0], window[0] + len(window)))
        for place, before in enumerate(window):
            first_shown.setdefault(before + 1, place + 1)
    for token in ids:
        assert first_shown[token] >= min(token, length - stride + 1), token


def test_the_sum_does_not_depend_on_the_window_where_the_model_looks_back_less_than_it():
    torch.manual_seed(0)
    table = torch.randn(13, 13)

    class Bigrams(torch.nn.Module):
        def forward(self, token_ids):
            return LanguageModelResult(table[token_ids], None)

    ids = torch.randint(1, 13, (50,)).tolist()
    expected = -table.log_softmax(dim=-1)[[0, *ids[:-1]], ids]
    for length, stride in ((4, 4), (16, 3), (64, 32)):
        assert torch.allclose(token_nats(Bigrams(), ids, length, stride), expected, atol=1e-5)


def test_a_recurrent_model_carries_its_state_through_the_module():
    torch.manual_seed(0)
    model = RecurrentLanguageModel(13, d_model=8, d_hidden=12, num_layers=2).eval()
    torch.nn.init.normal_(model.embedding.weight)
    ids = torch.randint(1, 13, (37,)).tolist()
    whole = token_nats(model, ids, length=64, stride=64)
    for piece in (5, 36, 37, 100):
        assert torch.allclose(carried_nats(model, ids, piece), whole, atol=1e-5)
    assert not torch.allclose(token_nats(model, ids, 5, 5), whole, atol=1e-3)
    assert carried_nats(model, []).shape == (0,)


def test_bits_per_byte_by_hand():
    texts = {"a": "abcd", "b": "äö"}                                       # four bytes each
    scored = bits_by_module({"a": 8 * math.log(2), "b": 4 * math.log(2)}, texts)
    assert scored == {"overall": pytest.approx(1.5), "modules": {"a": pytest.approx(2), "b": pytest.approx(1)}}
    low, high = bits_interval(scored, texts)
    assert (low, high) == (pytest.approx(1), pytest.approx(2))             # both times the one, or both times the other


def test_counting_the_text_itself_costs_less_than_counting_another():
    text, other = "def f(x):\n    return x\n" * 20, "import os, sys; print(os.environ[sys.argv[1]])"
    ids, unlike = [list(t.encode()) for t in (text, other)]
    bits = [bits_by_module({"a": -float(KneserNey(256).fit([known]).log_probabilities(ids).sum())}, {"a": text})["overall"]
            for known in (ids, unlike)]
    assert 0 < bits[0] < 1 < 6 < bits[1] < 12


def test_xz_by_its_own_library_and_what_priming_saves():
    texts = ["def first(a):\n    return a + 1\n" * 3, "the second module\n"]
    size = len(lzma.compress("".join(texts).encode(), preset=9 | lzma.PRESET_EXTREME))
    assert xz_bits(texts) == pytest.approx(8 * size / len("".join(texts)))
    assert xz_bits(["ä" * 50]) == 8 * len(lzma.compress(b"\xc3\xa4" * 50, preset=9 | lzma.PRESET_EXTREME)) / 100
    long = "".join(f"{i * i * 7919 % 10007}, " for i in range(3000))       # hard to compress, unless it was seen before
    assert xz_bits([long], [long]) < 0.05 * xz_bits([long])
    with pytest.raises(ValueError, match="the texts are empty"):
        xz_bits([""], ["something"])


def test_the_dictionary_reaches_back_to_the_beginning_of_what_primes():
    torch.manual_seed(0)
    first = "".join(map(chr, torch.randint(32, 127, (30_000,)).tolist()))
    between = "".join(map(chr, torch.randint(32, 127, (1_200_000,)).tolist()))  # more than the smallest dictionary
    assert xz_bits([first], [first, between]) < 0.1


def test_an_interval_resamples_modules():
    assert ratio_interval([1, 1, 1], [2, 2, 2]) == (0.5, 0.5)
    low, high = ratio_interval([0, 10] * 20, [10, 10] * 20)
    assert 0.3 < low < 0.4 and 0.6 < high < 0.7                            # 0.5 ± 1.96 * 0.5 / sqrt(40) = 0.345 to 0.655
    assert ratio_interval([0, 10] * 20, [10, 10] * 20) == (low, high)
    assert all(math.isnan(end) for end in ratio_interval([0, 0], [0, 0]))
