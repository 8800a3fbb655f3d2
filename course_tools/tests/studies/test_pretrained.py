"""The sets that begin with MiniLM: what they read and from what they begin, on a few texts and a small random BERT."""

import math
import random
from collections import Counter

import numpy as np
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from small_sets import clear_caches, small_set

from course_tools.studies import student_texts
from course_tools.studies.pretrained_reviews import FixedSteps, PartsOfPasses, encoded_reviews, first_of
from course_tools.studies.sets import pretrained, reader, small_encoder, static_vectors, student, which_data
from course_tools.studies.student_texts import cut_sentences
from course_tools.studies.text_windows import TextWindows
from course_utils.classifier import ReviewClassifier
from course_utils.distillation import NO_LABEL
from course_utils.pretraining import LowRankAdapter
from course_utils.training import BatchOptions, EncodedReviews, batches, evaluate

REVIEWS = EncodedReviews([[i, i + 1] for i in range(10)], [0, 1] * 5)


def small(name: str):
    """A fixture: a set in small, and the folder of its outputs."""
    @pytest.fixture
    def made(monkeypatch, tmp_path):
        small_set(name, monkeypatch, tmp_path)
        yield tmp_path
        monkeypatch.undo()
        clear_caches()

    return made


small_pretrained, small_student, small_reader, small_encoder_set, small_which_data = map(
    small, ("pretrained", "student", "reader", "small_encoder", "which_data"))


def with_breaks(count: int) -> Dataset:
    return Dataset.from_dict({"label": [0] * count, "text": [f"good <br /> film {i}" for i in range(count)]})


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


def test_reviews_are_encoded_once_without_line_breaks(small_pretrained):
    data, seen = {"test": with_breaks(4), "train": with_breaks(3)}, []

    def encode_all(texts):
        seen.extend(texts)
        return [[1, 2, 3, len(text)] for text in texts]

    one, two = (encoded_reviews(data, encode_all, "x", 3) for _ in range(2))
    assert one == two and len(seen) == 7 and not any("<br" in text for text in seen)
    assert all(len(ids) == 3 for ids in one["test"].ids + one["train"].ids)                # of four, by the limit
    few = first_of(REVIEWS, 4, 1)
    assert len(few.ids) == 4 and few != first_of(REVIEWS, 4, 2) and all(
        REVIEWS.labels[ids[0]] == label for ids, label in zip(few.ids, few.labels))


def test_a_row_may_cut_reviews_at_another_length_and_its_batches_keep_it(small_pretrained, monkeypatch):
    """One row reads 320 word pieces; here 5 and 7 stand for 192 and 320."""
    short, long = (pretrained.encoded(length)["train"].ids for length in (5, 7))
    assert {len(ids) for ids in short} == {5} and {len(ids) for ids in long} == {7}
    assert pretrained.ROWS["all layers, 320 word pieces"]._replace(max_len=192) == pretrained.ROWS["all layers"]
    assert "max_len" not in pretrained.SET.describe("all layers")
    assert pretrained.SET.describe("all layers, 320 word pieces")["max_len"] == 320
    seen = []
    monkeypatch.setattr(pretrained, "evaluate", lambda net, split, options: seen.append(
        (options.max_len, {len(ids) for ids in split.ids})) or evaluate(net, split, options))
    monkeypatch.setitem(pretrained.ROWS, "short", pretrained.Row(1e-4, number=32, passes=1, parts=1, max_len=5))
    pretrained.run("short", 0, small_pretrained / "state")
    assert seen == [(5, {5})] * 2


def test_the_failure_row_reads_padding_like_words(small_pretrained):
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


def test_one_starts_from_the_checkpoint_and_the_other_from_random_numbers(small_which_data):
    base = pretrained.base()[0].embedding.weight
    assert torch.equal(which_data.classifier("MiniLM").encoder.embedding.weight, base)
    assert not torch.equal(which_data.classifier("random").encoder.embedding.weight, base)
    assert torch.equal(static_vectors.bag("frozen").embedding.weight, base)
    assert not torch.equal(static_vectors.bag("learned").embedding.weight, base)
    assert not static_vectors.bag("frozen").embedding.weight.requires_grad


def test_the_loss_of_guessing_by_frequency_is_that_of_counting_by_hand(small_encoder_set):
    made = small_encoder.count()
    special = {small_encoder.tokenizer().ids[token] for token in ("[PAD]", "[CLS]", "[SEP]")}
    read, asked = ([i for split in splits for ids in small_encoder.encoded(None)[split].ids for i in ids if i not in special]
                   for splits in (("train", "unsupervised"), ("validation",)))
    seen, whole = Counter(read), len(read) + small_encoder.tokenizer().vocab_size
    expected = -sum(math.log((seen[i] + 1) / whole) for i in asked) / len(asked)
    assert made["validation_loss"] == pytest.approx(expected, abs=1e-4) and made["tokens"] == len(read)
    assert 0.8 * expected < made["validation_loss_with_copying"] < expected


def test_the_teachers_answers_stand_beside_their_texts(small_student):
    student.run("teacher", 0, small_student / "state")
    net = student.BertClassifier(pretrained.base()[0]).eval()
    net.load_state_dict(load_file(small_student / "outputs" / "student" / "teacher.safetensors"))
    piece = pretrained.base()[1]
    for source, i in (("imdb", 7), ("unsupervised", 3), ("sentences", 39)):
        ids = torch.tensor([piece.encode(student_texts.texts_of(source)[i])])
        said = net(ids, ids == ids).logits[0].softmax(dim=-1)
        kept = student.teacher_answers(source)[i]       # in half precision
        assert torch.allclose(said, kept.softmax(dim=-1), atol=1e-4)
    texts, loss_of = student.what_it_reads(student.ROWS["student"])
    assert len(loss_of.teacher_logits) == len(texts.ids) == sum(student.READS.values())
    begin, words = 0, student_texts.student_words()
    for source, number in student.READS.items():
        answer_of = dict(zip(student_texts.texts_of(source), student.teacher_answers(source).tolist(), strict=True))
        known = {tuple(words.encode(text)): text for text in answer_of}
        for i in range(begin, begin + number):
            assert loss_of.teacher_logits[i].tolist() == pytest.approx(answer_of[known[tuple(texts.ids[i])]], abs=1e-4)
            assert (texts.labels[i] == NO_LABEL) == (source in ("unsupervised", "cuts"))
        begin += number


def test_answers_to_other_texts_are_refused(small_student, monkeypatch):
    student.run("teacher", 0, small_student / "state")
    monkeypatch.setattr(student, "TEACHER_PARTS", 99)
    with pytest.raises(ValueError, match="of another teacher .*--only teacher --again"):
        student.all_answers()


def test_committed_answers_serve_where_no_teacher_was_trained(small_student, monkeypatch):
    monkeypatch.setattr(student, "FOLDER", small_student / "results")
    student.run("teacher", 0, small_student / "state")
    own = student.all_answers()
    (small_student / "results").mkdir()
    (small_student / "outputs" / "student" / student.ANSWERS).rename(small_student / "results" / student.ANSWERS)
    student.all_answers.cache_clear()
    assert all(torch.equal(own[source], answers) for source, answers in student.all_answers().items())


def test_texts_are_read_in_whole_passes_and_then_a_part_of_one(small_student):
    there = len(student_texts.texts_of("reviews"))
    rows = student_texts.rows_to_read("reviews", 2 * there + 7, seed=1)
    assert rows[: 2 * there] == [*range(there)] * 2 and len(set(rows[2 * there :])) == 7
    assert rows != student_texts.rows_to_read("reviews", 2 * there + 7, seed=2)
    labels = student_texts.labels_of("reviews")
    read = student.with_labels(student_texts.in_words, "reviews", "train", rows)
    assert read.labels == [labels[i] for i in rows]


def test_word_vectors_keep_the_teachers_neighbours(small_student):
    vectors = student.teacher_words(8, 0.02)
    words = student_texts.student_words()
    assert vectors.shape == (words.vocab_size, 8) and vectors[0].abs().sum() == 0
    table, pieces = pretrained.base()[0].embedding.weight.detach(), pretrained.base()[1]
    own = torch.stack([table[pieces.ids[word]] for word in ("good", "bad", "film", "dull")])
    reduced = vectors[[words.ids[word] for word in ("good", "bad", "film", "dull")]]
    assert np.corrcoef(torch.pdist(own), torch.pdist(reduced))[0, 1] > 0.8


def test_sentences_are_cut_whole_and_in_their_order():
    text = 'It begins well. "Who wrote this?" he asked.<br />Then it drags on for an hour! No. The end is fine'
    parts = cut_sentences(text, 9, random.Random(0))
    assert parts == ["It begins well.", '"Who wrote this?" he asked.', "Then it drags on for an hour!", "The end is fine"]
    for seed in range(5):
        two = cut_sentences(text, 2, random.Random(seed))
        assert len(two) == 2 and two == [part for part in parts if part in two]
    assert cut_sentences("", 3, random.Random(0)) == []


def test_a_student_is_kept_as_it_was_scored_with_its_note_and_its_teachers_licence(small_reader):
    made = reader.run("labels alone", 0, None)
    folder = small_reader / "outputs" / "reader" / "labels-alone-0"
    kept, texts = ReviewClassifier.load(folder), reader.texts_of("written", "test")
    right = [(said == "positive") == bool(label)
             for said, label in zip(kept.predict(list(texts))[0], reader.labels_of("written", "test"), strict=True)]
    assert sum(right) / len(right) == pytest.approx(made.own["written"]["accuracy"])
    assert "TERMS AND CONDITIONS FOR USE" in (folder / "LICENSE-Apache-2.0.txt").read_text(encoding="utf-8")
    note = " ".join((folder / "README.md").read_text("utf-8").split())
    assert 'row "labels alone" of' in note and f"reviews {100 * made.own['reviews']['accuracy']:.1f}" in note


def test_without_a_source_as_many_texts_are_read(small_reader):
    whole = reader.to_read(reader.READS, reader.SOURCES)
    fewer = reader.to_read(reader.READS, tuple(source for source in reader.SOURCES if source != "written"))
    assert "written" not in fewer and abs(sum(map(len, whole.values())) - sum(map(len, fewer.values()))) <= len(fewer)


def test_vectors_add_up_to_what_bert_normalises(small_reader):
    encoder, pieces = pretrained.base()[0], reader.reader_pieces()
    words, places = reader.first_vectors(encoder, pieces)
    ids = torch.tensor([[2, 5, 9]])
    theirs = torch.tensor([[pretrained.base()[1].ids[pieces.vocabulary[i]] for i in ids[0]]])
    ours, right = words[ids] + places[:3], encoder.eval().embed(theirs)
    assert torch.cosine_similarity(ours, right, dim=-1).min() > 0.6 and words[0].abs().sum() == 0


def test_a_student_begins_with_the_layers_named_and_equal_weights(small_reader):
    net, encoder = reader.begin((1, 0)).eval(), pretrained.base()[0]
    for block, layer in zip(net.encoder.blocks, (1, 0), strict=True):
        assert all(torch.equal(one, other) for one, other in zip(
            block.state_dict().values(), encoder.encoder.blocks[layer].state_dict().values(), strict=True))
    ids = torch.tensor([[3, 4, 5, 6]])
    weights = net(ids, need_weights=True).pooling_weights
    assert torch.allclose(weights, torch.full((1, 4), 0.25))


def test_rows_from_random_numbers_have_the_size_and_nothing_of_the_layers(small_reader):
    encoder, half = pretrained.base()[0], reader.untrained(reader.ROWS["reader"])
    theirs = [encoder.encoder.blocks[layer].state_dict() for layer in reader.LAYERS]
    for name in (name for name in reader.ROWS if "random numbers" in name):
        net = reader.untrained(reader.ROWS[name])
        assert sum(p.numel() for p in net.parameters()) == sum(p.numel() for p in half.parameters())
        for ours, other in ((block.state_dict(), one) for block in net.encoder.blocks for one in theirs):
            assert not any(torch.equal(ours[key], other[key]) for key in ours if ours[key].dim() > 1)
    begun = half.encoder.blocks[0].state_dict()["attention.query_projection.weight"]
    assert torch.equal(begun, theirs[0]["attention.query_projection.weight"])


def test_labels_stand_beside_their_texts(small_reader):
    assert set(reader.labels_of("cuts")) == {NO_LABEL} and set(reader.labels_of("written")) <= {0, 1}
    texts = reader.chosen("imdb", "train", "student", [3, 1])
    assert texts.labels == [reader.labels_of("imdb")[3], reader.labels_of("imdb")[1]]
    assert texts.ids[1] == reader.reader_pieces().encode(reader.texts_of("imdb")[1])[:reader.OPTIONS.max_len]


def test_a_fifth_of_the_cut_sentences_is_written_as_in_treebanks():
    assert reader.as_in_treebanks("Don't say it's “great” (it isn’t)!") == "do n't say it 's “ great ” ( it is n't ) !"
    assert reader.as_in_treebanks("O'Neill CAN'T act.") == "o'neill ca n't act ."
