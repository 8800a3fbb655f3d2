"""The set that times writing and completing: what is timed on a small model, and the committed file."""

import pytest
import torch
from small_code_models import transformer

from course_tools.studies.sets import completion_speed as speed
from course_utils.results import by_model, read_runs
from course_utils.training.devices import computes_lstm_in_bf16


def test_one_more_token_reads_one_with_the_cache_and_all_without_it(monkeypatch):
    completer, read = transformer(max_len=64), []
    monkeypatch.setattr(speed.CodeCompleter, "load", lambda: completer)
    monkeypatch.setattr(speed, "LENGTHS", (8, 63))
    monkeypatch.setattr(speed, "REPEATED", 2)
    forward = completer.model.forward

    def counting(token_ids, *arguments, caches=None, **options):
        read.append((token_ids.shape[1], len(caches[0]) if caches else 0))
        return forward(token_ids, *arguments, caches=caches, **options)

    monkeypatch.setattr(completer.model, "forward", counting)
    run = speed.run("one more token", 0, None)
    assert read == [(8, 0), *[(1, 8), (9, 0)] * 3, (63, 0), *[(1, 63), (64, 0)] * 3]  # three: one turn doesn't count
    assert list(run["measured"]) == ["with the cache", "without it"]
    assert all(list(found) == ["8", "63"] and min(found.values()) >= 0 for found in run["measured"].values())


def test_writing_is_timed_on_the_same_text_both_ways(monkeypatch):
    completer = transformer(max_len=16)
    monkeypatch.setattr(speed.CodeCompleter, "load", lambda: completer)
    monkeypatch.setattr(speed, "TURNS", 2)
    measured = speed.run("writing", 0, None)["measured"]
    assert measured["what"].startswith("15 tokens") and measured["ours_ms"] > 0 and measured["other_ms"] > 0
    start = torch.zeros(1, 1, dtype=torch.long)
    one, other = (completer.model.generate(start, 15, temperature=0, use_cache=cached) for cached in (True, False))
    assert torch.equal(one, other)


def test_a_training_step_is_timed_in_turn_and_against_attentions(monkeypatch):
    sets = speed.language_model
    monkeypatch.setattr(sets, "MODEL", {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1, "max_len": 16})
    monkeypatch.setattr(sets, "LENGTH", 16)
    monkeypatch.setattr(sets, "VOCAB_SIZE", 20)
    monkeypatch.setattr(speed, "TURNS", 3)
    turns, networks = [], sets.network

    def watched(row):
        net = networks(row)
        net.register_forward_pre_hook(lambda *_: turns.append(row))
        return net

    monkeypatch.setattr(sets, "network", watched)
    run = speed.run("a training step", 0, None)            # on any processor
    measured = run["measured"]
    assert run["precision"] == ("bf16" if computes_lstm_in_bf16() else "fp32")
    assert turns == list(speed.STEPS) * 4               # one turn doesn't count
    assert list(measured) == list(speed.STEPS) and measured["attention"]["ratio"] == 1
    assert all(found["ms"] >= 0 and found["ratio"] > 0 for found in measured.values())


@pytest.mark.parametrize(("there", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_a_step_is_in_float32_where_the_processor_has_no_lstm_in_bfloat16(monkeypatch, there, expected):
    monkeypatch.setattr(speed, "computes_lstm_in_bf16", lambda: there)
    monkeypatch.setattr(speed.language_model, "network", lambda row: torch.nn.Linear(4, 4))
    monkeypatch.setattr(speed.language_model, "BATCH_SIZE", 1)
    monkeypatch.setattr(speed, "TURNS", 1)
    seen = set()

    def loss(net, ids):
        out = net(torch.ones(1, 4))
        seen.add(out.dtype)
        return out.float().sum(), 1

    monkeypatch.setattr(speed.language_model, "next_token_loss", loss)
    assert speed.run("a training step", 0, None)["precision"] == ("bf16" if there else "fp32") and seen == {expected}


# The committed file.


@pytest.fixture(scope="module")
def rows():
    return by_model(read_runs("completion_speed"))


def test_the_cache_pays_the_more_the_longer_the_text(rows):
    [run] = rows["one more token"]
    cached, whole = (list(found.values()) for found in run["measured"].values())
    assert [*run["measured"]["with the cache"]] == [str(length) for length in speed.LENGTHS]
    ratios = [other / one for one, other in zip(cached, whole)]
    assert ratios == sorted(ratios) and ratios[-1] > 5 and max(cached) < 2 * min(cached)


def test_the_tab_key_answers_within_the_time_of_a_keystroke(rows):
    [run] = rows["Tab"]
    assert run["measured"]["warm"]["median"] < run["measured"]["warm"]["p95"] < 150
