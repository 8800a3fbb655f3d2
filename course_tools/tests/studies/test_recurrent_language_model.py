"""The recurrent language model: what LanguageModel does at its interface, with a state that can be carried."""

import pytest
import torch
from torch.nn import functional as F

from course_tools.studies.recurrent_language_model import RecurrentLanguageModel
from course_utils.language_model import next_token_loss


@pytest.fixture
def model():
    torch.manual_seed(0)
    made = RecurrentLanguageModel(vocab_size=11, d_model=6, d_hidden=10, num_layers=2, dropout=0.3).eval()
    torch.nn.init.normal_(made.embedding.weight)
    return made


def test_a_text_in_pieces_gives_the_logits_of_the_whole(model):
    ids = torch.randint(1, 11, (3, 20))
    whole = model(ids).logits
    assert whole.shape == (3, 20, 11)
    first = model(ids[:, :7])
    rest = model(ids[:, 7:], first.state)
    assert torch.allclose(torch.cat([first.logits, rest.logits], dim=1), whole, atol=1e-6)
    assert not torch.allclose(model(ids[:, 7:]).logits, rest.logits, atol=1e-3)


def test_a_position_sees_nothing_that_comes_later_and_padding_never_matters(model):
    ids = torch.randint(1, 11, (2, 9))
    other = ids.clone()
    other[:, 5:] = 0
    assert torch.allclose(model(ids).logits[:, :5], model(other).logits[:, :5], atol=1e-6)
    assert torch.allclose(model(ids[:1, :5]).logits, model(other).logits[:1, :5], atol=1e-6)


def test_the_vectors_that_are_looked_up_also_score(model):
    weights = dict(model.named_parameters())
    assert sum(p.numel() for name, p in weights.items() if "lstm" not in name) == 11 * 6 + 10 * 6 + 6
    ids = torch.tensor([[3, 4]])
    states = model.lstm(model.embedding(ids))[0]
    expected = F.linear(model.projection(states), model.embedding.weight)
    assert torch.allclose(model(ids).logits, expected, atol=1e-6)


def test_it_learns_what_follows_what_and_asks_for_no_padding():
    torch.manual_seed(0)
    model = RecurrentLanguageModel(vocab_size=6, d_model=8, d_hidden=16, num_layers=1)
    ids = torch.tensor([[1, 2, 3, 4, 5, 1, 2, 3], [3, 4, 5, 1, 2, 0, 0, 0]])
    assert next_token_loss(model, ids)[1] == 7 + 4
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    before = next_token_loss(model, ids)[0].item()
    for _ in range(60):
        optimizer.zero_grad()
        next_token_loss(model, ids)[0].backward()
        optimizer.step()
    assert before > 1.5 and next_token_loss(model, ids)[0].item() < 0.2
    assert model(ids[:1]).logits[0, 1:4].argmax(dim=-1).tolist() == [3, 4, 5]


def test_a_detached_state_has_the_same_numbers_and_no_history(model):
    state = model(torch.tensor([[1, 2]])).state
    detached = model.detached(state)
    assert state[0].requires_grad and not detached[0].requires_grad and not detached[1].requires_grad
    assert all(torch.equal(a, b) for a, b in zip(state, detached))


def test_wrong_arguments_get_a_message(model):
    with pytest.raises(ValueError, match="num_layers=0; use a whole number from 1"):
        RecurrentLanguageModel(5, num_layers=0)
    with pytest.raises(ValueError, match="pad_id=5; use a whole number from 0 to 4"):
        RecurrentLanguageModel(5, pad_id=5)
    for wrong in (torch.tensor([1, 2]), torch.ones(2, 0, dtype=torch.long)):
        with pytest.raises(ValueError, match=r"write token_ids\[None\]"):
            model(wrong)
