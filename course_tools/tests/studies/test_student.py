"""The result set of the course's reader: teacher and students on a handful of texts, with a small random BERT."""

import json
import random

import numpy as np
import pytest
import torch
from datasets import DatasetDict
from safetensors.torch import load_file
from small_corpora import made_reviews as made
from small_corpora import save_small_bert

from course_tools.studies import pretrained_reviews as shared
from course_tools.studies import student_texts
from course_tools.studies.sets import pretrained, student
from course_tools.studies.student_texts import cut_sentences
from course_utils.classifier import ReviewClassifier
from course_utils.distillation import NO_LABEL


@pytest.fixture
def small(monkeypatch, tmp_path):
    save_small_bert(tmp_path / "models" / "minilm")
    imdb = DatasetDict(train=made(60, 0), validation=made(8, 6), test=made(12, 1), unsupervised=made(30, 7, label=-1))
    corpora = {**{source: DatasetDict(test=made(10, 2)) for source in ("handwritten", "ordinary", "ordinary_second")},
               **{source: DatasetDict(train=made(40, 3), validation=made(8, 4), test=made(10, 5))
                  for source in ("reviews", "sentences")}}
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(pretrained, "NAME", "minilm")
    for module in (shared, pretrained, student_texts):
        monkeypatch.setattr(module, "reviews", lambda unsupervised=False: imdb)
    for module in (student, student_texts):
        monkeypatch.setattr(module, "load_reviews", corpora.__getitem__)
    monkeypatch.setattr(student, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(student, "STEPS", 11)
    monkeypatch.setattr(student, "READS", {"imdb": 130, "reviews": 50, "sentences": 40, "unsupervised": 30, "cuts": 7})
    monkeypatch.setattr(student, "TEACHER_READS", {"imdb": 30, "reviews": 40, "sentences": 90})
    monkeypatch.setattr(student, "MODEL", student.MODEL | {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1})
    cached = (pretrained.base, pretrained.encoded, pretrained.settings, student.settings, student.all_answers,
              student_texts.texts_of, student_texts.student_words, student.quick_pieces)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    for function in cached:
        function.cache_clear()


def test_the_teacher_answers_every_text_and_each_student_learns_from_it(small):
    with pytest.raises(FileNotFoundError, match="--only teacher"):
        student.run("student", 0, small / "none")
    (small / "none").unlink(missing_ok=True)
    taught = student.run("teacher", 0, small / "state")
    (small / "state").unlink()
    assert len(taught["history"]) == student.TEACHER_PARTS and taught["ordinary"]["reviews"] == 10
    for source in student_texts.SOURCES:
        answers = student.teacher_answers(source)
        assert answers.shape == (len(student_texts.texts_of(source)), 2) and answers.abs().sum(dim=1).min() > 0
    for name, row in student.ROWS.items():
        run = student.run(name, 1, small / "state")
        (small / "state").unlink()
        assert run["steps"] == 11 and run["texts"] == sum(student.READS[source] for source in row.sources)
        for source in (*student.TESTED, student.KEPT_BACK):
            right = f"{int(run[source]['right'], 16):b}"[1:]
            assert right.count("1") / len(right) == run[source]["accuracy"] and len(right) == run[source]["reviews"]
        row = {"model": name, "change": student.SET.describe(name), **run}
        assert json.loads(json.dumps(row)) == row       # so that a committed row isn't made again
    assert "ordinary" in student.line([run])
    reader = ReviewClassifier.load(small / "outputs" / "student" / "student-1")
    assert len(reader.predict(["the film is not good"])[0]) == 1
    rotary = ReviewClassifier.load(small / "outputs" / "student" / "student-rotary-positions-1")
    for name in ("student-1", "student-rotary-positions-1"):
        licence = (small / "outputs" / "student" / name / "LICENSE-Apache-2.0.txt").read_text(encoding="utf-8")
        assert "Apache License" in licence and "TERMS AND CONDITIONS FOR USE" in licence
    assert (reader.model.config.positions, rotary.model.config.positions) == ("sinusoidal", "rotary")


def test_the_teachers_answers_stand_beside_their_texts(small):
    student.run("teacher", 0, small / "state")
    net = student.BertClassifier(pretrained.base()[0]).eval()
    net.load_state_dict(load_file(small / "outputs" / "student" / "teacher.safetensors"))
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


def test_answers_to_other_texts_are_refused(small, monkeypatch):
    student.run("teacher", 0, small / "state")
    monkeypatch.setattr(student, "TEACHER_PARTS", 99)
    with pytest.raises(ValueError, match="of another teacher .*--only teacher --again"):
        student.all_answers()


def test_committed_answers_serve_where_no_teacher_was_trained(small):
    student.run("teacher", 0, small / "state")
    own = student.all_answers()
    (small / "results").mkdir()
    (small / "outputs" / "student" / student.ANSWERS).rename(small / "results" / student.ANSWERS)
    student.all_answers.cache_clear()
    assert all(torch.equal(own[source], answers) for source, answers in student.all_answers().items())


def test_texts_are_read_in_whole_passes_and_then_a_part_of_one(small):
    there = len(student_texts.texts_of("reviews"))
    rows = student_texts.rows_to_read("reviews", 2 * there + 7, seed=1)
    assert rows[: 2 * there] == [*range(there)] * 2 and len(set(rows[2 * there :])) == 7
    assert rows != student_texts.rows_to_read("reviews", 2 * there + 7, seed=2)
    labels = student_texts.labels_of("reviews")
    read = student.with_labels(student_texts.in_words, "reviews", "train", rows)
    assert read.labels == [labels[i] for i in rows]


def test_nothing_that_is_for_testing_alone_is_read():
    assert not {"handwritten", "ordinary", "ordinary_second"} & set(student_texts.SOURCES)


def test_word_vectors_keep_the_teachers_neighbours(small):
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
