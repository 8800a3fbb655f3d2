"""Prompts that are scored: shared caches change nothing, whole answers are products, and closed positions stay unseen."""

import os

import pytest
import torch
from torch import nn

from course_utils.prompting import branch, calibrate, hidden, label_scores, next_log_p, shared_start
from course_utils.random_llama import find_chat_model, random_llama


@pytest.fixture(scope="module")
def model() -> nn.Module:
    return random_llama().model


ROWS = [[5, 6, 7, 8, 9, 10], [5, 6, 7, 11, 12], [5, 6, 7, 8, 13, 14, 15, 16]]


def test_a_shared_start_leaves_two_ids_of_each_row():
    assert shared_start(ROWS) == 3 and shared_start([[1, 2, 3, 4]]) == 2
    assert shared_start([[1], [1, 2]]) == 0 and shared_start([[1, 2], [3, 4]]) == 0


def test_shared_caches_and_batches_give_what_each_row_gives_alone(model):
    with torch.no_grad():
        alone = torch.stack([model(torch.tensor([row])).logits[0, -1].log_softmax(dim=-1) for row in ROWS])
    for batch_size in (1, 2, 10):
        assert (next_log_p(model, ROWS, batch_size) - alone).abs().max() < 1e-4
    assert (next_log_p(model, [tuple(row) for row in ROWS]) - alone).abs().max() < 1e-4


def test_a_branch_leaves_its_caches_as_they_are(model):
    caches = model.new_caches()
    with torch.no_grad():
        model(torch.tensor([[1, 2, 3]]), caches=caches)
        kept = caches[0].key.clone()
        model(torch.tensor([[4, 5], [6, 7]]), caches=branch(caches, 2))
    assert len(caches[0]) == 3 and torch.equal(caches[0].key, kept)
    assert len(branch(model.new_caches(), 2)[0]) == 0


def test_a_whole_answer_is_the_sum_over_its_tokens(model):
    answers = [[20], [21, 22, 23], [21, 24]]
    scores = label_scores(model, ROWS, answers)
    for prompt, row in zip(ROWS, scores, strict=True):
        for answer, score in zip(answers, row, strict=True):
            with torch.no_grad():
                table = model(torch.tensor([[*prompt, *answer]])).logits[0].log_softmax(dim=-1)
            assert abs(score - sum(table[len(prompt) - 1 + i, t] for i, t in enumerate(answer))) < 1e-4


def test_calibration_divides_by_the_mean_of_the_texts_probabilities():
    found = calibrate(torch.tensor([[0.6, 0.4]]).log() - 3, torch.tensor([[0.8, 0.2]]).log() - 5)
    assert torch.allclose(found, torch.tensor([[0.75, 2.0]]) / 2.75)


def test_a_hidden_position_changes_nothing_from_its_start_on_and_is_seen_again_afterwards(model):
    other = [[5, 40, *row[2:]] for row in ROWS]             # differs at position 1 alone
    before = next_log_p(model, ROWS)
    assert (next_log_p(model, other) - before).abs().max() > 1e-3
    with hidden(model, [1]):
        closed = next_log_p(model, ROWS)
        assert (next_log_p(model, other) - closed).abs().max() < 1e-5
    with hidden(model, [1], start=3):                       # position 2 has seen it, and hands it on
        assert (next_log_p(model, other) - next_log_p(model, ROWS)).abs().max() > 1e-5
    with pytest.raises(RuntimeError), hidden(model, [1]):
        raise RuntimeError
    assert torch.equal(next_log_p(model, ROWS), before)


@pytest.mark.slow
def test_the_published_weights_take_their_words_from_the_examples():
    if not os.environ.get("COURSE_MODELS"):
        pytest.skip("COURSE_MODELS names no folder with weights")
    model, tokenizer, real, _ = find_chat_model()
    if not real:
        pytest.skip("no SmolLM2 in COURSE_MODELS")
    examples = [("Whoever edited this deserves a raise.", " positive"), ("I want my evening back.", " negative")]
    shown = "".join(f"Review: {text}\nSentiment:{word}\n\n" for text, word in examples)
    answers = [tokenizer.encode(word) for word in (" negative", " positive")]
    together = [label_scores(model, [tokenizer.encode(f"{before}Review: A lovely film.\nSentiment:")], answers).exp().sum()
                for before in ("", shown)]
    assert together[0] < 0.2 and together[1] > 0.6
