"""What is timed, and against what. How long anything takes is no test."""

import json
from types import SimpleNamespace

import pytest
from small_code_models import transformer

from course_tools.studies.sets import completion_speed, reader_speed, speed
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.results import FOLDER


def test_every_row_of_the_committed_file_is_one_that_the_benchmark_makes(monkeypatch):
    """So a row can't outlive the code that it describes. The tokenizers' rows count ids, which takes their training."""
    monkeypatch.setattr(speed, "interleaved", lambda arms, *_: {name: [1.0, 1.0, 1.0] for name in arms})  # nothing is run
    monkeypatch.setattr(speed, "peaks_mb", lambda: {f"{way} {n}": 1.0 for way in speed.WAYS for n in speed.LENGTHS})
    monkeypatch.setattr(speed, "long_peaks", lambda way: dict.fromkeys(speed.LONG, 1.0))
    monkeypatch.setattr(speed, "free_cores", lambda: 2.0)
    monkeypatch.setattr(speed, "rank_times", lambda repetitions: dict.fromkeys(
        ("two processes", "one thread", "two threads"), [1.0, 1.0, 1.0]))
    imdb_like = speed.imdb_like
    monkeypatch.setattr(speed, "imdb_like", lambda reviews, seed: imdb_like(256, seed))
    sections = {name: section for name, section in speed.SECTIONS.items() if name != "tokenizers"}
    made = {(name, row["what"], row["against"]) for name, section in sections.items() for row in section()}
    rows = json.loads((FOLDER / "speed.json").read_text(encoding="utf-8"))["rows"]
    kept = {(row["section"], row["what"], row["against"]) for row in rows if row["section"] != "tokenizers"}
    assert kept and kept - made == set()


@pytest.mark.parametrize("section", ["block", "classifier", "precision"])
def test_a_section_runs_what_it_compares(section, monkeypatch):
    monkeypatch.setattr(speed, "LENGTHS", (8,))
    monkeypatch.setattr(speed, "TOKENS", 16)
    for row in speed.SECTIONS[section](2):
        assert row["section"] == section and row["ratio"] > 0
        assert row["spread"][0] <= row["ratio"] <= row["spread"][1] and min(row["ours_ms"], row["other_ms"]) > 0
        assert row["what"] in speed.show(row)


def test_one_more_token_reads_one_with_the_cache_and_all_without_it(monkeypatch):
    completer, read = transformer(max_len=64), []
    monkeypatch.setattr(completion_speed.CodeCompleter, "load", lambda: completer)
    monkeypatch.setattr(completion_speed, "LENGTHS", (8, 63))
    monkeypatch.setattr(completion_speed, "REPEATED", 2)
    forward = completer.model.forward

    def counting(token_ids, *arguments, caches=None, **options):
        read.append((token_ids.shape[1], len(caches[0]) if caches else 0))
        return forward(token_ids, *arguments, caches=caches, **options)

    monkeypatch.setattr(completer.model, "forward", counting)
    run = completion_speed.run("one more token", 0, None)
    assert read == [(8, 0), *[(1, 8), (9, 0)] * 3, (63, 0), *[(1, 63), (64, 0)] * 3]  # three: one turn doesn't count
    assert list(run["measured"]) == ["with the cache", "without it"]
    assert all(list(found) == ["8", "63"] and min(found.values()) >= 0 for found in run["measured"].values())


@pytest.fixture
def asked(monkeypatch):
    """Every text that the student is asked about, as lists of what one call got."""
    calls, predict = [], ReviewClassifier.predict

    def recording(reader, texts, *arguments):
        calls.append(list(texts))
        return predict(reader, texts, *arguments)

    monkeypatch.setattr(ReviewClassifier, "predict", recording)
    return calls


def test_long_texts_fill_the_reader(monkeypatch, asked):
    monkeypatch.setattr(reader_speed, "LONG", 3)
    measured = reader_speed.run("a long text", 0, None)["measured"]
    reader = ReviewClassifier.load("reader")
    assert measured["calls"] == 3 and measured["tokens"] == reader.model.config.max_len
    for [text] in asked:
        assert reader.encode([text])[0].shape[1] == reader.model.config.max_len


def test_a_batch_is_timed_whole_and_counted_by_sentence(monkeypatch, asked):
    texts = load_reviews("ordinary")["test"]["text"][:11]
    monkeypatch.setattr(reader_speed, "sentences", lambda: texts)
    monkeypatch.setattr(reader_speed, "BATCH", 4)
    clock = iter(range(100))
    monkeypatch.setattr(reader_speed, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    measured = reader_speed.run("in batches", 0, None)["measured"]
    assert asked == [texts[:4], texts[:4], texts[4:8]]                     # the first doesn't count; three are left over
    assert measured == {"median": 250.0, "p95": 250.0, "calls": 2, "batch": 4}          # a second for each four
