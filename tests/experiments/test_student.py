"""The result set of the course's reader: teacher and students on a handful of texts, with a small random BERT."""

import random

import numpy as np
import pytest
import torch
from datasets import DatasetDict
from safetensors.torch import load_file
from small_corpora import made_reviews as made
from small_corpora import save_small_bert

from course_utils.classifier import ReviewClassifier
from course_utils.distillation import NO_LABEL
from course_utils.experiments import pretrained_reviews as shared
from course_utils.experiments import student_texts
from course_utils.experiments.sets import pretrained, student
from course_utils.experiments.student_texts import cut_sentences


@pytest.fixture
def small(monkeypatch, tmp_path):
    save_small_bert(tmp_path / "models" / "minilm")
    imdb = DatasetDict(train=made(60, 0), validation=made(8, 6), test=made(12, 1), unsupervised=made(30, 7, label=-1))
    corpora = {**{source: DatasetDict(test=made(10, 2)) for source in ("handwritten", "ordinary")},
               **{source: DatasetDict(train=made(40, 3), validation=made(8, 4), test=made(10, 5))
                  for source in ("reviews", "sentences")}}
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(pretrained, "NAME", "minilm")
    for module in (shared, pretrained, student_texts):
        monkeypatch.setattr(module, "reviews", lambda unsupervised=False: imdb)
    for module in (student, student_texts):
        monkeypatch.setattr(module, "load_reviews", corpora.__getitem__)
    monkeypatch.setattr(student, "STEPS", 8)
    monkeypatch.setattr(student, "MODEL", student.MODEL | {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1})
    cached = (pretrained.base, pretrained.encoded, pretrained.settings, student.settings, student_texts.texts_of,
              student_texts.student_words, student.quick_pieces)
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
        assert run["steps"] == 8 and run["texts"] == sum(len(student_texts.texts_of(source)) for source in row.sources)
        for source in student.TESTED:
            right = f"{int(run[source]['right'], 16):b}"[1:]
            assert right.count("1") / len(right) == run[source]["accuracy"] and len(right) == run[source]["reviews"]
    assert "ordinary" in student.line([run])
    reader = ReviewClassifier.load(small / "outputs" / "student" / "student-1")
    assert len(reader.predict(["the film is not good"])[0]) == 1


def test_the_teachers_answers_stand_beside_their_texts(small):
    student.run("teacher", 0, small / "state")
    net = student.BertClassifier(pretrained.base()[0]).eval()
    net.load_state_dict(load_file(small / "outputs" / "student" / "teacher.safetensors"))
    piece = pretrained.base()[1]
    for source, i in (("imdb", 7), ("unsupervised", 3), ("sentences", 39)):
        ids = torch.tensor([piece.encode(student_texts.texts_of(source)[i])])
        assert torch.allclose(net(ids, ids == ids).logits, student.teacher_answers(source)[i], atol=1e-5)
    texts, loss_of = student.what_it_reads(student.ROWS["student"])
    assert len(loss_of.teacher_logits) == len(texts.ids) and texts.labels.count(NO_LABEL) == len(
        student_texts.texts_of("unsupervised")) + len(student_texts.texts_of("cuts"))
    unsupervised = texts.labels.index(NO_LABEL)
    assert torch.equal(loss_of.teacher_logits[unsupervised], student.teacher_answers("unsupervised")[0])


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
