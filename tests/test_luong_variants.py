"""Windows and input feeding: equal to the paper's formulas word by word, and to notebook 16's translator without them."""

import math

import pytest
import torch

from course_utils.luong_variants import WINDOWS, LocalAttention, LuongTranslator
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig, greedy, teacher_forcing_loss
from course_utils.training import seed_everything
from course_utils.training.pair_batches import BEGIN, END, PAD, PairBatch

SOURCE = torch.tensor([[4, 9, 5, 6, 8, 7], [7, 4, 5, PAD, PAD, PAD], [5, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[BEGIN, 4, 8, 6, 9, 5, 4, 7], [BEGIN, 9, 5, 5, 4, 6, 7, 8], [BEGIN, 5, 7, 7, 7, 4, 4, 4]])
KINDS = [(feed, window) for feed in (False, True) for window in WINDOWS]


def translator(feed=False, window="global", reach=1, **changes) -> LuongTranslator:
    """A small one in float64, with biases that aren't zero."""
    seed_everything(0)
    model = LuongTranslator(12, 11, d_model=5, d_hidden=6, feed=feed, window=window, reach=reach, **changes).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        model.encoder.embedding.weight[PAD] = 0
    return model


def weights_by_formula(attention: LocalAttention, query, states, position: int):
    """The weights of one sentence without padding, one word at a time (Luong et al. 2015, equations 7, 9 and 10)."""
    last = len(states) - 1
    centre = min(position, last)
    if attention.window == "predicted":
        centre = last * torch.sigmoid(attention.v_p.weight[0] @ torch.tanh(attention.W_p.weight @ query)).item()
    inside = [j for j in range(len(states)) if attention.window == "global" or abs(j - centre) <= attention.reach]
    scores = {j: (query @ (attention.general.W.weight @ states[j])).item() for j in inside}
    total = sum(math.exp(score) for score in scores.values())
    weights = [math.exp(scores[j]) / total if j in scores else 0.0 for j in range(len(states))]
    if attention.window == "predicted":
        sigma = attention.reach / 2
        weights = [w * math.exp(-((j - centre) ** 2) / (2 * sigma**2)) for j, w in enumerate(weights)]
    return torch.tensor(weights, dtype=states.dtype)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("position", [0, 2, 9])
@pytest.mark.parametrize("reach", [1, 2, 50])
def test_the_weights_are_those_of_the_papers_formulas(window, position, reach):
    seed_everything(1)
    attention = LocalAttention(6, 4, window, reach).double()
    lengths, states = [5, 3, 1], torch.randn(3, 5, 4, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    query = torch.randn(3, 6, dtype=torch.float64)
    context, weights = attention(query, states, mask, torch.full((3,), position))
    for row, length in enumerate(lengths):
        expected = weights_by_formula(attention, query[row], states[row, :length], position)
        torch.testing.assert_close(weights[row, :length], expected, rtol=0, atol=1e-12)
        assert weights[row, length:].sum() == 0
        torch.testing.assert_close(context[row], expected @ states[row, :length], rtol=0, atol=1e-12)


def test_without_feeding_and_window_it_is_the_translator_of_notebook_16():
    known = Seq2Seq(Seq2SeqConfig(12, 11, d_model=5, d_hidden=6, score="general", when="after", dropout=0.5)).double()
    ours = translator(dropout=0.5)
    renamed = {name.replace("attention.W", "attention.general.W"): tensor for name, tensor in known.state_dict().items()}
    ours.load_state_dict({name.removesuffix("_l0") if name.startswith("decoder.rnn") else name: tensor
                          for name, tensor in renamed.items()})
    for training in (False, True):                                         # with dropout in the same places
        results = []
        for model in (known.train(training), ours.train(training)):
            seed_everything(4)
            results.append(model(SOURCE, SOURCE != PAD, TARGET, need_weights=True))
        for part, theirs in zip(*results):
            torch.testing.assert_close(part, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("feed, window", KINDS)
def test_a_translation_step_by_step_is_the_papers(feed, window):
    """Section 3: h_t = GRU([x_t; r_{t-1}], h_{t-1}), weights and context from h_t at t, r_t = tanh(W [h_t; c_t])."""
    model = translator(feed, window)
    decoder = model.decoder
    with torch.no_grad():
        memory, found = model.encode(SOURCE, SOURCE != PAD), model(SOURCE, SOURCE != PAD, TARGET, need_weights=True)
        for row, length in enumerate((6, 3, 1)):
            states, hidden = memory.states[row, :length], decoder.bridge(memory.summary[row]).tanh()
            read = torch.zeros(5, dtype=torch.float64)
            for t, word in enumerate(TARGET[row]):
                x = decoder.embedding.weight[word]
                hidden = decoder.rnn(torch.cat([x, read]) if feed else x, hidden)
                weights = weights_by_formula(decoder.attention, hidden, states, t)
                read = decoder.readout(torch.cat([hidden, weights @ states])).tanh()
                torch.testing.assert_close(found.weights[row, t, :length], weights, rtol=0, atol=1e-12)
                torch.testing.assert_close(found.logits[row, t], decoder.embedding.weight @ read, rtol=0, atol=1e-12)


def test_dropout_spares_what_is_fed():
    """Dropout on words and on what a word is scored from, as in notebook 16; `fed` is handed on whole."""
    model = translator(True, dropout=0.9).train()
    state = model.start(model.encode(SOURCE, SOURCE != PAD))
    assert model.decoder.advance(torch.ones(3, 5, dtype=torch.float64), state).fed.ne(0).all()
    assert (model.decoder.logits(torch.ones(50, 5, dtype=torch.float64)) == 0).any()


@pytest.mark.parametrize("feed, window", KINDS)
def test_word_by_word_padding_and_selecting_change_nothing(feed, window):
    model = translator(feed, window)
    with torch.no_grad():
        whole = model(SOURCE, SOURCE != PAD, TARGET, need_weights=True)
        state = model.start(model.encode(SOURCE, SOURCE != PAD))
        for i, last_ids in enumerate(TARGET.T):
            if i == 4:                                                     # rows in another order, one of them twice
                state = state.select([2, 0, 0])
            logits, state = model.step(last_ids if i < 4 else last_ids[[2, 0, 0]], state)
            expected = whole.logits[:, i] if i < 4 else whole.logits[[2, 0, 0], i]
            torch.testing.assert_close(logits, expected, rtol=0, atol=1e-12)
        for row, length in enumerate((6, 3, 1)):
            ids = SOURCE[row : row + 1, :length]
            alone = model(ids, ids != PAD, TARGET[row : row + 1]).logits
            torch.testing.assert_close(alone, whole.logits[row : row + 1], rtol=0, atol=1e-12)


def test_it_is_trained_and_used_as_other_translators_are():
    model = translator(True, "predicted", dropout=0.1).float()
    target = torch.cat([TARGET, torch.full((3, 1), END)], dim=1)
    batch = PairBatch(SOURCE, SOURCE != PAD, target, [0, 1, 2])
    assert model(SOURCE, SOURCE != PAD, TARGET).weights is None            # nobody asked for them
    loss, count = teacher_forcing_loss(model, batch)
    loss.backward()
    assert count == 24 and all(p.grad is not None for p in model.parameters())
    written = greedy(model, SOURCE, SOURCE != PAD, max_len=7)
    assert len(written.ids) == 3 and [w.shape[1] for w in written.weights] == [6, 3, 1]


def test_wrong_options_are_named():
    for options, said in ({"window": "local"}, "window"), ({"reach": 0}, "reach"), ({"feed": "yes"}, "feed"), \
            ({"dropout": 1.5}, "dropout"), ({"d_hidden": 0}, "d_hidden"):
        with pytest.raises((ValueError, TypeError), match=said):
            LuongTranslator(12, 11, **options)
