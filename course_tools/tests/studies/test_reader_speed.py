"""The set that times the student: what is timed, and the committed file."""

from types import SimpleNamespace

import pytest
import torch

from course_tools.studies.sets import reader_speed as speed
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.results import by_model, read_runs


@pytest.fixture
def asked(monkeypatch):
    """Every text that the student is asked about, as lists of what one call got."""
    calls, predict = [], ReviewClassifier.predict

    def recording(reader, texts, *arguments):
        calls.append(list(texts))
        return predict(reader, texts, *arguments)

    monkeypatch.setattr(ReviewClassifier, "predict", recording)
    return calls


def few(number):
    return load_reviews("ordinary")["test"]["text"][:number]


def test_sentences_are_read_one_at_a_time_after_one_that_doesnt_count(monkeypatch, asked):
    texts = few(5)
    monkeypatch.setattr(speed, "sentences", lambda: texts)
    measured = speed.run("a sentence", 0, None)["measured"]
    assert asked == [[texts[0]], *([text] for text in texts)]
    assert measured["calls"] == 5 and 0 < measured["median"] <= measured["p95"]


def test_all_ordinary_sentences_are_timed():
    both = [load_reviews(name)["test"]["text"] for name in ("ordinary", "ordinary_second")]
    assert speed.sentences() == [text for texts in both for text in texts] and len(speed.sentences()) == 600


def test_long_texts_fill_the_reader(monkeypatch, asked):
    monkeypatch.setattr(speed, "LONG", 3)
    measured = speed.run("a long text", 0, None)["measured"]
    reader = ReviewClassifier.load("reader")
    assert measured["calls"] == 3 and measured["tokens"] == reader.model.config.max_len
    for [text] in asked:
        assert reader.encode([text])[0].shape[1] == reader.model.config.max_len


def test_a_batch_is_timed_whole_and_counted_by_sentence(monkeypatch, asked):
    texts = few(11)
    monkeypatch.setattr(speed, "sentences", lambda: texts)
    monkeypatch.setattr(speed, "BATCH", 4)
    clock = iter(range(100))
    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    measured = speed.run("in batches", 0, None)["measured"]
    assert asked == [texts[:4], texts[:4], texts[4:8]]                     # the first doesn't count; three are left over
    assert measured == {"median": 250.0, "p95": 250.0, "calls": 2, "batch": 4}          # a second for each four


def test_both_models_read_the_same_ids_and_the_other_is_as_large_as_minilm(monkeypatch):
    read = []

    def recorded(arms, turns):
        for function in arms.values():
            function()
        return {name: [0.001 * (1 + (name == "other"))] * 3 for name in arms}

    forward = speed.BertClassifier.forward

    def counting(net, ids, mask=None, **options):
        read.append((ids.shape, mask.all().item(), sum(p.numel() for p in net.encoder.parameters())))
        return forward(net, ids, mask, **options)

    monkeypatch.setattr(speed.BertClassifier, "forward", counting)
    monkeypatch.setattr(speed, "interleaved", recorded)
    measured = speed.run("the model alone", 0, None)["measured"]
    [(shape, whole, parameters)] = read
    assert shape == (1, speed.TOKENS) and whole and measured["ratio"] == 2
    assert 22_000_000 < parameters < 23_000_000                            # MiniLM-L6-H384 has 22.7 million
    assert torch.is_grad_enabled()


# The committed file.


@pytest.fixture(scope="module")
def rows():
    return by_model(read_runs("reader_speed"))


def test_a_sentence_takes_less_than_ten_milliseconds(rows):
    measured = rows["a sentence"][0]["measured"]
    assert measured["calls"] == 600 and measured["median"] <= measured["p95"] < 10
