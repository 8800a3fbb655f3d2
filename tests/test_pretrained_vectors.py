"""The measures of the extra on pretrained vectors, on vectors and weights whose answers are known."""

import pytest
import torch

from course_utils.pretrained_vectors import (
    attention_lean,
    pair_shift,
    position_of,
    read_texts,
    same_sense,
    states_at,
    vector_lean,
)
from course_utils.pretraining import BertConfig, BertEncoder, WordPieceTokenizer
from course_utils.training.word_piece_files import SPECIAL

TOKENIZER = WordPieceTokenizer([*SPECIAL, "the", "bank", "river", "rate", "##s", "of", "."])


def planted(weight_of, texts=4, layers=2, heads=3, length=6):
    """Attention that gives `weight_of(text, layer, head)`, a dict from keys to weights, at query 4, the rest to key 0."""
    weights = torch.zeros(layers, texts, heads, length, length)
    weights[..., 0] = 1
    for text in range(texts):
        for layer in range(layers):
            for head in range(heads):
                for key, value in weight_of(text, layer, head).items():
                    weights[layer, text, head, 4, key] = value
                    weights[layer, text, head, 4, 0] -= value
    return list(weights)


RIGHT, WRONG, IT = [1, 2, 1, 2], [2, 1, 2, 1], [4] * 4      # two pairs: in the second sentence the nouns change sides


# senses

def test_senses_that_are_apart_score_one_and_mixed_ones_one_half():
    apart = torch.tensor([[1.0, 0.1], [1, 0.2], [1, 0.3], [0.1, 1], [0.2, 1], [0.3, 1]])
    assert same_sense(apart, [0, 0, 0, 1, 1, 1]) == 1
    assert same_sense(apart, [0, 1, 0, 1, 0, 1]) < 0.5         # labels that don't fit
    assert same_sense(torch.ones(6, 4) * 0.37, [0, 0, 0, 1, 1, 1]) == 0.5     # the same vector everywhere: all ties
    noise = torch.randn(400, 5, generator=torch.Generator().manual_seed(0))
    assert same_sense(noise, [0, 1] * 200) == pytest.approx(0.5, abs=0.02)


def test_the_score_worked_by_hand():
    x = torch.tensor([[1.0, 0], [0.8, 0.6], [0.6, 0.8], [0, 1.0]])             # cosines with the first: 0.8, 0.6, 0
    # first: 0.8 against 0.6 and 0, both won; second: 0.8 (own) against 0.96 and 0.6, one of two; and mirrored
    assert same_sense(x, [0, 0, 1, 1]) == pytest.approx((1 + 0.5 + 0.5 + 1) / 4)


def test_judged_vectors_are_compared_with_the_others_only():
    x = torch.tensor([[1.0, 0.1], [1, 0.2], [0.1, 1], [0.2, 1], [0.1, 1.0], [0.2, 1.0]])
    senses, judged = [0, 0, 1, 1, 0, 0], [False] * 4 + [True] * 2
    assert same_sense(x, senses, judged) == 0                  # both resemble the other sense, and would resemble each other
    with pytest.raises(ValueError, match="vector 0 has nothing to be compared with"):
        same_sense(x[:2], [0, 1])
    with pytest.raises(ValueError, match=r"vectors have shape \(6, 2\), senses \(2,\)"):
        same_sense(x, [0, 1])
    with pytest.raises(ValueError, match="judged has 1 of 1 vectors; expected 4 truth values, at least one"):
        same_sense(x[:4], [0, 0, 1, 1], [True])
    with pytest.raises(ValueError, match="judged has 0 of 4 vectors"):
        same_sense(x[:4], [0, 0, 1, 1], [False] * 4)
    with pytest.raises(ValueError, match="isn't finite"):
        same_sense(x[:4] * torch.nan, [0, 0, 1, 1])
    assert same_sense(x[:4], ["river", "river", "money", "money"]) == same_sense(x[:4], [0, 0, 1, 1])


# vectors of words

def test_a_word_is_found_among_the_pieces():
    assert position_of(TOKENIZER, "The bank of the river.", "bank") == 2
    for text, times in (("The rates.", 0), ("The bank of the bank.", 2)):
        with pytest.raises(ValueError, match=f"'bank' is {times} times among the pieces of"):
            position_of(TOKENIZER, text, "bank")


def test_states_are_those_of_the_encoder_and_padding_changes_none():
    torch.manual_seed(0)
    encoder = BertEncoder(BertConfig(TOKENIZER.vocab_size, 16, 4, 32, num_layers=2, max_len=16)).eval()
    texts = ["The bank.", "The river of the bank of the rates."]
    at = [position_of(TOKENIZER, text, "bank") for text in texts]
    found = states_at(read_texts(encoder, TOKENIZER, texts).hidden_states, at)
    assert found.shape == (2, 3, 16) and not found.requires_grad
    for text, place, states in zip(texts, at, found):
        with torch.no_grad():
            alone = encoder(torch.tensor([TOKENIZER.encode(text)])).hidden_states
        assert torch.allclose(torch.stack([layer[0, place] for layer in alone]), states, atol=1e-5)


# what 'it' attends to

def test_a_head_that_finds_the_noun_shifts_and_one_that_likes_a_noun_or_a_place_does_not():
    def weight_of(text, layer, head):
        if (layer, head) == (1, 2):
            return {RIGHT[text]: 0.6, WRONG[text]: 0.2}        # knows
        if (layer, head) == (0, 1):
            return {1: 0.9, 2: 0.05}                           # always the first position, whatever the adjective
        return {}

    attentions = planted(weight_of)
    lean = attention_lean(attentions, IT, RIGHT, WRONG)
    assert lean.shape == (4, 2, 3)
    assert lean[:, 0, 1].tolist() == pytest.approx([0.85, -0.85, 0.85, -0.85])
    shift = pair_shift(lean)
    expected = torch.zeros(2, 2, 3)
    expected[:, 1, 2] = 0.4
    assert torch.allclose(shift, expected, atol=1e-6)
    assert torch.allclose(pair_shift(attention_lean(attentions, IT, WRONG, RIGHT)), -expected, atol=1e-6)
    assert attention_lean(attentions, [3] * 4, RIGHT, WRONG).abs().max() == 0  # another query


def test_a_shift_says_what_the_adjective_changed():
    with_first, with_second = (torch.softmax(torch.randn(1, 1, 1, 6, 6, generator=torch.Generator().manual_seed(seed)), -1)
                               for seed in (3, 4))
    both = [torch.cat([with_first[0], with_second[0]])]        # one layer, (2 texts, 1 head, query, key)
    shift = pair_shift(attention_lean(both, [4, 4], [1, 2], [2, 1])).item()
    gap = [row[0, 0, 0, 4, 1] - row[0, 0, 0, 4, 2] for row in (with_first, with_second)]
    assert shift == pytest.approx(((gap[0] - gap[1]) / 2).item(), abs=1e-6)
    with pytest.raises(ValueError, match="got leans of 3 sentences; expected two for each pair"):
        pair_shift(torch.zeros(3, 2))


def test_vectors_lean_to_the_noun_they_point_at():
    states = torch.zeros(2, 6, 3)                              # two texts, six positions
    states[:, 1, 0] = states[:, 2, 1] = 1
    states[0, 4], states[1, 4] = torch.tensor([0.6, 0.8, 0]), torch.tensor([0.6, 0.8, 0])
    lean = vector_lean([states, states * 5], [4, 4], [1, 2], [2, 1])
    assert lean.shape == (2, 2) and lean[0].tolist() == pytest.approx([-0.2, -0.2]) and lean[1, 0] == pytest.approx(0.2)
    assert pair_shift(lean).abs().max() < 1e-6                 # the same vector twice knows nothing of the adjective
