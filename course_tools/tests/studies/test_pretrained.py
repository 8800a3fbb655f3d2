"""The result sets of pretrained encoders: every row can be made, on a handful of reviews and with a small random BERT."""

import math
import random
from collections import Counter

import pytest
import torch
from datasets import Dataset, DatasetDict
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel

from course_tools.studies import pretrained_reviews as shared
from course_tools.studies.pretrained_reviews import FixedSteps, PartsOfPasses, encoded_reviews, first_of
from course_tools.studies.sets import pretrained, small_encoder, static_vectors
from course_tools.studies.text_windows import TextWindows
from course_utils.pretraining import LowRankAdapter
from course_utils.training import BatchOptions, EncodedReviews, batches, evaluate
from course_utils.training.word_piece_files import SPECIAL

WORDS = [*"good bad dull warm film scene the was not a".split(), "<br />"]
REVIEWS = EncodedReviews([[i, i + 1] for i in range(10)], [0, 1] * 5)


def made(count: int, seed: int, label=None) -> Dataset:
    draw = random.Random(seed)
    labels = [i % 2 if label is None else label for i in range(count)]
    return Dataset.from_dict({"label": labels, "text": [
        " ".join([*draw.choices(WORDS, k=9), "good" if one else "bad"]) for one in labels]})


@pytest.fixture
def small(monkeypatch, tmp_path):
    """IMDb and MiniLM in small, and outputs in a temporary folder."""
    vocabulary = [*SPECIAL, *WORDS[:-1], "<", "br", "/", ">"]
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=6, num_attention_heads=2,
                         intermediate_size=24, max_position_embeddings=512)).save_pretrained(tmp_path / "models" / "minilm")
    BertWordPieceTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}).save(
        str(tmp_path / "models" / "minilm" / "tokenizer.json"))
    splits = DatasetDict(train=made(70, 0), validation=made(20, 1), test=made(30, 2))
    every = DatasetDict({**splits, "unsupervised": made(700, 3, -1)})
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(pretrained, "NAME", "minilm")
    for module in (shared, pretrained, small_encoder):
        monkeypatch.setattr(module, "reviews", lambda unsupervised=False: every if unsupervised else splits)
    cached = (pretrained.base, pretrained.encoded, pretrained.settings, small_encoder.tokenizer, small_encoder.encoded,
              small_encoder.settings, static_vectors.settings)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    for function in cached:
        function.cache_clear()


@pytest.mark.slow
def test_every_way_to_fine_tune_can_be_made(small, monkeypatch):
    rows = {name: row._replace(number=min(row.number, 64)) for name, row in pretrained.ROWS.items()}
    monkeypatch.setattr(pretrained, "ROWS", rows)
    runs = {}
    for name, row in rows.items():
        runs[name] = run = pretrained.run(name, 0, small / "state")
        (small / "state").unlink()
        assert run["test"]["reviews"] == 30 and len(run["history"]) == round(row.passes * row.parts)
        assert run["tokens"] > 0 and run["precision"] == "fp32"
    trained = {name: run["trained"] for name, run in runs.items()}
    ways = ("head only", "adapters", "adapters on every matrix", "upper two layers", "layer-wise rates", "all layers")
    head, adapters, every, upper, rates, everything = (trained[f"{way}, 5,000 reviews"] for way in ways)
    assert head < adapters < upper < everything and every - head == 6 * 8 * (4 * (16 + 16) + 2 * (16 + 24))
    for way in ways[1], ways[2], ways[5]:               # another rate trains the same numbers
        same = {model: row.learning_rate for model, row in rows.items() if model.startswith(f"{way}, ") and row.number == 64
                and model.endswith(" 5,000 reviews")}
        assert len(same) == len(set(same.values())) == 3 and len({trained[model] for model in same}) == 1
        assert all(float(model.split("rate ")[1].split(",")[0]) == rate for model, rate in same.items() if "rate" in model)
    assert rates == everything == trained["all layers"] == runs["all layers"]["parameters"] - 16 * 17
    assert trained["head only"] == 2 * 17
    assert pretrained.settings() == pretrained.settings() and len(pretrained.SET.wanted([0, 1, 2])) == 3 * 18 + 2


def test_a_row_may_cut_reviews_at_another_length_and_its_batches_keep_it(small, monkeypatch):
    """One row reads 320 word pieces; here 5 and 8 stand for 192 and 320."""
    short, long = (pretrained.encoded(length)["train"].ids for length in (5, 8))
    assert {len(ids) for ids in short} == {5} and {len(ids) for ids in long} == {8}
    assert pretrained.ROWS["all layers, 320 word pieces"]._replace(max_len=192) == pretrained.ROWS["all layers"]
    assert "max_len" not in pretrained.SET.describe("all layers")
    assert pretrained.SET.describe("all layers, 320 word pieces")["max_len"] == 320
    seen = []
    monkeypatch.setattr(pretrained, "evaluate", lambda net, split, options: seen.append(
        (options.max_len, {len(ids) for ids in split.ids})) or evaluate(net, split, options))
    monkeypatch.setitem(pretrained.ROWS, "short", pretrained.Row(1e-4, number=32, passes=1, parts=1, max_len=5))
    pretrained.run("short", 0, small / "state")
    assert seen == [(5, {5})] * 2


def test_the_failure_row_reads_padding_like_words(small):
    model = pretrained.classifier(pretrained.ROWS[f"{pretrained.FAILURE}no attention mask, 1,000 reviews"]).eval()
    right = pretrained.classifier(pretrained.ROWS["all layers"]).eval()
    right.load_state_dict(model.state_dict())
    ids, padded = torch.tensor([[5, 6, 7]]), torch.tensor([[5, 6, 7, 0, 0]])
    with torch.no_grad():
        assert torch.allclose(right(ids).logits, right(padded).logits, atol=1e-6)
        assert not torch.allclose(model(ids).logits, model(padded).logits, atol=1e-3)
    for way, number in (("adapters", 12), ("adapters on every matrix", 36)):
        adapted = pretrained.classifier(pretrained.ROWS[f"{way}, 5,000 reviews"])
        assert sum(isinstance(part, LowRankAdapter) for part in adapted.modules()) == number
    assert "adapted" not in pretrained.SET.describe("adapters, 5,000 reviews")
    assert len(pretrained.SET.describe("adapters on every matrix, 5,000 reviews")["adapted"]) == 6


@pytest.mark.slow
def test_the_small_encoder_is_pretrained_and_then_used(small, monkeypatch):
    monkeypatch.setattr(small_encoder, "VOCAB_SIZE", 60)
    kinds = dict(zip(small_encoder.PRETRAININGS, ((6, 19, 4), (2, 19, 4), (6, 29, 3)), strict=True))
    smaller = {name: small_encoder.Pretraining(*how) for name, how in kinds.items()}
    monkeypatch.setattr(small_encoder, "PRETRAININGS", smaller)
    monkeypatch.setattr(small_encoder, "STEPS", 8)
    monkeypatch.setattr(small_encoder, "PARTS", 2)
    monkeypatch.setattr(small_encoder, "MODEL", small_encoder.MODEL | dict(d_model=16, num_heads=2, d_ff=16, num_layers=2))
    name = "pretrained, 1,000 reviews"
    with pytest.raises(FileNotFoundError, match="make it first: python -m course_tools results small_encoder --only"):
        small_encoder.run(name, 0, small / "state")
    short = small_encoder.run("pretraining, two passes", 0, small / "state")
    (small / "state").unlink()
    with pytest.raises(FileNotFoundError, match="pretraining.safetensors isn't there"):    # another's model isn't taken
        small_encoder.run(name, 0, small / "state")
    first = small_encoder.run(small_encoder.FIRST, 0, small / "state")
    (small / "state").unlink()
    assert len(first["history"]) == 3 * len(short["history"]) and first["tokens"] == 3 * short["tokens"]
    longer = small_encoder.run("pretraining, windows of 192", 0, small / "state")
    (small / "state").unlink()
    assert len(longer["history"]) == len(first["history"]) and longer["tokens"] % (6 * 2 * 3 * 30) == 0
    losses = [epoch["validation_loss"] for epoch in first["history"]]
    assert losses[-1] < 3.0 < math.log(len(small_encoder.tokenizer().vocabulary))          # of ten words that occur, ln 10
    assert first["tokens"] > 1000
    for name in list(small_encoder.ROWS)[:5]:           # each start once
        run = small_encoder.run(name, 0, small / "state")
        (small / "state").unlink()
        assert run["steps"] == 8 and run["test"]["reviews"] == 30 and len(run["history"]) == small_encoder.CHECKS
        before = {"pretrained": first, "pretrained in two passes": short, "pretrained in windows of 192": longer}.get(
            name.partition(",")[0])
        if before:
            lowest = min(epoch["validation_loss"] for epoch in before["history"])
            assert run["hidden_words"]["before"] == pytest.approx(lowest, abs=1e-5) != run["hidden_words"]["after"]
    assert "loss" in small_encoder.line([first]) and len(small_encoder.SET.wanted([0, 1])) == 4 + 2 * 15
    assert small_encoder.SET.describe("pretraining") == {"passes": 6, **small_encoder.PRETRAINING}
    assert small_encoder.SET.describe("pretraining, windows of 192") == {
        "passes": 6, "length": 29, "batch_size": 3, **small_encoder.PRETRAINING}
    rates = {row: each.learning_rate for row, each in small_encoder.ROWS.items() if "1,000" in row}
    assert rates["random at 0.0003, 1,000 reviews"] == rates["pretrained, 1,000 reviews"]
    counted = small_encoder.run(small_encoder.COUNTED, 0, small / "state")
    special = {small_encoder.tokenizer().ids[token] for token in ("[PAD]", "[CLS]", "[SEP]")}
    read, asked = ([i for split in splits for ids in small_encoder.encoded(None)[split].ids for i in ids if i not in special]
                   for splits in (("train", "unsupervised"), ("validation",)))
    seen, whole = Counter(read), len(read) + small_encoder.tokenizer().vocab_size
    expected = -sum(math.log((seen[i] + 1) / whole) for i in asked) / len(asked)
    assert counted["validation_loss"] == pytest.approx(expected, abs=1e-4) and counted["tokens"] == len(read)
    assert 0.8 * expected < counted["validation_loss_with_copying"] < expected
    assert small_encoder.line([counted]) == f"loss {expected:.3f}"


def test_steps_go_on_where_the_last_epoch_ended_and_every_pass_reads_all():
    options = BatchOptions(batch_size=2)
    for steps, epochs in ((2, 5), (5, 2), (7, 3)):
        data = FixedSteps(REVIEWS, options, steps)
        seen = [sorted(batch.indices) for epoch in range(1, epochs + 1) for batch in data.batches(3000 + epoch)]
        assert len(seen) == steps * epochs and len(data) == steps
        for start in range(0, len(seen) - 4, 5):
            assert sorted(i for batch in seen[start : start + 5] for i in batch) == list(range(10))
    assert [b.indices for b in FixedSteps(REVIEWS, options, 5).batches(3001)] == [
        b.indices for b in batches(REVIEWS, options, 3000)]
    assert FixedSteps(REVIEWS, options, 2).fingerprint != FixedSteps(REVIEWS, options, 3).fingerprint


def test_parts_of_passes_go_through_each_pass_once_and_in_its_own_order():
    windows = TextWindows(torch.arange(230), length=4, batch_size=5)       # eleven batches: three times three, two dropped
    data = PartsOfPasses(windows, 3)
    seen = [[batch.tolist() for batch in data.batches(2000 + epoch)] for epoch in range(1, 7)]
    assert len(data) == 3 and all(len(part) == 3 for part in seen)
    for number, parts in enumerate((seen[:3], seen[3:]), start=1):
        whole = [batch.tolist() for batch in windows.batches(2000 + number)]
        assert sum(parts, []) == whole[:9] and len(whole) == 11
    assert seen[0] != seen[3] and seen[0] == [batch.tolist() for batch in PartsOfPasses(windows, 3).batches(2001)]
    assert data.fingerprint != PartsOfPasses(windows, 2).fingerprint


def test_reviews_are_encoded_once_without_line_breaks(small):
    data, seen = {"test": made(4, 0), "train": made(3, 1)}, []

    def encode_all(texts):
        seen.extend(texts)
        return [[1, 2, 3, len(text)] for text in texts]

    one, two = (encoded_reviews(data, encode_all, "x", 3) for _ in range(2))
    assert one == two and len(seen) == 7 and not any("<br" in text for text in seen)
    assert all(len(ids) == 3 for ids in one["test"].ids + one["train"].ids)                # of four, by the limit
    few = first_of(REVIEWS, 4, 1)
    assert len(few.ids) == 4 and few != first_of(REVIEWS, 4, 2) and all(
        REVIEWS.labels[ids[0]] == label for ids, label in zip(few.ids, few.labels))


@pytest.mark.slow
def test_vectors_learned_frozen_and_trained_on(small, monkeypatch):
    monkeypatch.setattr(static_vectors, "STEPS", 4)
    monkeypatch.setattr(static_vectors, "CHECKS", 2)
    monkeypatch.setattr(static_vectors, "ROWS", {start: static_vectors.Row(start, 64) for start in static_vectors.RATES})
    pieces, width = pretrained.base()[0].embedding.weight.shape
    runs = {start: static_vectors.run(start, 0, None) for start in static_vectors.RATES}
    for start, run in runs.items():
        assert run["parameters"] == pieces * width + 2 * width + 2
        assert run["trained"] == (2 * width + 2 if start == "frozen" else run["parameters"]), start
        assert set(run["tried"]) == {str(rate) for rate in static_vectors.RATES[start]}
        assert run["tried"][str(run["learning_rate"])] == max(run["tried"].values())
        assert run["steps"] == 4 and 0 <= run["test"]["accuracy"] <= 1
    frozen, base = static_vectors.bag("frozen"), pretrained.base()[0].embedding.weight
    assert torch.equal(frozen.embedding.weight, base)
    assert not torch.equal(static_vectors.bag("learned").embedding.weight, base)
