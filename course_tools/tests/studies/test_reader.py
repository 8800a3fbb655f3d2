"""The result set `reader`: teachers and students on a handful of texts, with a small random BERT."""

import json

import pytest
import torch
from datasets import DatasetDict
from small_corpora import made_reviews as made
from small_corpora import save_small_bert

from course_tools.studies import pretrained_reviews as shared
from course_tools.studies import student_texts
from course_tools.studies.sets import pretrained, reader, reader_more, student
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.distillation import NO_LABEL, CautiousClassifier
from course_utils.files import sha256
from course_utils.results import fingerprint, read_runs

CACHED = (pretrained.base, pretrained.encoded, pretrained.settings, reader.settings, reader_more.settings, reader.texts_of,
          reader.labels_of, reader.reader_pieces, reader.ids_of, reader.teacher_answers, student_texts.texts_of,
          student.quick_pieces)


@pytest.fixture
def small(monkeypatch, tmp_path):
    save_small_bert(tmp_path / "models" / "minilm")
    imdb = DatasetDict(train=made(60, 0), validation=made(8, 6), test=made(12, 1), unsupervised=made(30, 7, label=-1))
    corpora = {**{source: DatasetDict(test=made(10, 2)) for source in ("handwritten", "ordinary", "ordinary_second",
                                                              "ordinary_third")},
               **{source: DatasetDict(train=made(40, 3), validation=made(8, 4), test=made(10, 5))
                  for source in ("reviews", "sentences", "written", "written_more")}}
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(pretrained, "NAME", "minilm")
    for module in (shared, pretrained, student_texts):
        monkeypatch.setattr(module, "reviews", lambda unsupervised=False: imdb)
    for module in (student, student_texts):
        monkeypatch.setattr(module, "load_reviews", corpora.__getitem__)
    monkeypatch.setattr(reader, "STEPS", 9)
    monkeypatch.setattr(reader, "READS", {"imdb": 130, "reviews": 50, "sentences": 40, "written": 90, "unsupervised": 30,
                                          "cuts": 7})
    monkeypatch.setattr(reader, "TEACHER_READS", {"imdb": 30, "reviews": 40, "sentences": 90, "written": 60})
    monkeypatch.setattr(reader, "LAYERS", (0, 1))
    monkeypatch.setattr(reader_more, "STEPS", 3)
    monkeypatch.setattr(reader_more, "READS", {row: {source: number // 100 for source, number in reads.items()}
                                               for row, reads in reader_more.READS.items()})
    for function in CACHED:
        function.cache_clear()
    yield tmp_path
    for function in CACHED:
        function.cache_clear()


def made_run(small, model, seed):
    run = reader.run(model, seed, small / "state")
    (small / "state").unlink()
    row = {"model": model, "change": reader.SET.describe(model), **run}
    assert json.loads(json.dumps(row)) == row           # so that a committed row isn't made again
    return run


def test_teachers_answer_and_students_learn_from_the_mean_of_three(small):
    with pytest.raises(FileNotFoundError, match="--only teacher"):
        reader.run("reader", 0, small / "state")
    steps = set()
    for name in reader.TEACHER:
        for seed in reader.TEACHERS:
            steps.add(made_run(small, name, seed)["steps"])
    assert len(steps) == 1                              # with a source fewer, equally many
    said = reader.teacher_answers("teacher", "cuts")
    assert said.shape == (len(reader.texts_of("cuts")), 2) and torch.allclose(said.sum(dim=1), torch.zeros(len(said)))
    for name in reader.ROWS:
        run = made_run(small, name, 0)
        assert run["steps"] == 9 and set(run["before_rounding"]) == {"imdb", "ordinary"}
        for source in reader.TESTED:
            right = f"{int(run[source]['right'], 16):b}"[1:]
            assert right.count("1") / len(right) == run[source]["accuracy"] and len(right) == run[source]["reviews"]
        folder = small / "outputs" / "reader" / f"{name.replace(' ', '-')}-0"
        kept = CautiousClassifier.load(folder).classifier
        licence = (folder / "LICENSE-Apache-2.0.txt").read_text(encoding="utf-8")
        assert "TERMS AND CONDITIONS FOR USE" in licence and f'row "{name}"' in (folder / "README.md").read_text("utf-8")
        found = kept.predict(list(reader.texts_of("written", "test")))[0]
        labels = reader.labels_of("written", "test")
        agree = sum((label == "positive") == bool(truth) for label, truth in zip(found, labels, strict=True))
        assert agree / len(labels) == run["written"]["accuracy"]        # what is kept is what was scored
    assert "ordinary" in reader.line([run])
    goes_on(small)


def goes_on(small):
    """A reader learns on, from equally many texts in both rows."""
    sizes, begun = set(), reader_more.begun(0).model.state_dict()
    for name in reader_more.READS:
        run = reader_more.run(name, 0, small / "state")
        (small / "state").unlink()
        row = {"model": name, "change": reader_more.SET.describe(name), **run}
        kept = CautiousClassifier.load(small / "outputs" / "reader" / f"{name.replace(' ', '-')}-0")
        assert json.loads(json.dumps(row)) == row and run["begun"] == weights_of(begun) != run["ended"]
        assert run["ended"] == weights_of(kept.classifier.model.state_dict())
        note = (small / "outputs" / "reader" / f"{name.replace(' ', '-')}-0" / "README.md").read_text("utf-8")
        assert f'row "{name}" of `python -m course_tools results reader_more`' in " ".join(note.split())
        assert f"the third 300 {100 * run['ordinary_third']['accuracy']:.1f}" in " ".join(note.split())
        sizes.add((run["texts"], run["steps"]))
        assert {"ordinary_third", "written_more"} <= run.keys() and len(run["history"]) == reader_more.PARTS
    assert sizes == {(576, reader_more.STEPS)} and "ordinary_third" in reader_more.line([run])
    assert "ordinary_third" not in reader_more.LABELLED and reader_more.SET.wanted([0, 7]) == [(name, 0) for name in
                                                                                           reader_more.READS]
    with pytest.raises(FileNotFoundError, match="make it first: python -m course_tools results reader --only reader"):
        reader_more.run("more sentences", 1, small / "state")


def weights_of(state):
    return fingerprint([sha256(tensor.numpy().tobytes()) for tensor in state.values()])


def test_the_reader_that_comes_with_the_course_learned_on_and_was_best_on_validation_texts():
    runs = read_runs("reader_more")
    for seed in {run["seed"] for run in runs}:
        assert len({run["begun"] for run in runs if run["seed"] == seed}) == 1          # both rows began as the same reader
    best = max((run for run in runs if run["model"] == "more sentences"),
               key=lambda run: max(part["validation_accuracy"] for part in run["history"]))
    assert best["ended"] == weights_of(CautiousClassifier.load("reader").classifier.model.state_dict())


def test_without_a_source_as_many_texts_are_read(small):
    whole = reader.to_read(reader.READS, reader.SOURCES)
    fewer = reader.to_read(reader.READS, tuple(source for source in reader.SOURCES if source != "written"))
    assert "written" not in fewer and abs(sum(map(len, whole.values())) - sum(map(len, fewer.values()))) <= len(fewer)


def test_vectors_add_up_to_what_bert_normalises(small):
    encoder, pieces = pretrained.base()[0], reader.reader_pieces()
    words, places = reader.first_vectors(encoder, pieces)
    ids = torch.tensor([[2, 5, 9]])
    theirs = torch.tensor([[pretrained.base()[1].ids[pieces.vocabulary[i]] for i in ids[0]]])
    ours, right = words[ids] + places[:3], encoder.eval().embed(theirs)
    assert torch.cosine_similarity(ours, right, dim=-1).min() > 0.6 and words[0].abs().sum() == 0


def test_a_student_begins_with_the_layers_named_and_equal_weights(small):
    net, encoder = reader.begin((1, 0)).eval(), pretrained.base()[0]
    for block, layer in zip(net.encoder.blocks, (1, 0), strict=True):
        assert all(torch.equal(one, other) for one, other in zip(
            block.state_dict().values(), encoder.encoder.blocks[layer].state_dict().values(), strict=True))
    ids = torch.tensor([[3, 4, 5, 6]])
    weights = net(ids, need_weights=True).pooling_weights
    assert torch.allclose(weights, torch.full((1, 4), 0.25))


def test_rows_from_random_numbers_have_the_size_and_nothing_of_the_layers(small, monkeypatch):
    encoder, half = pretrained.base()[0], reader.untrained(reader.ROWS["reader"])
    theirs = [encoder.encoder.blocks[layer].state_dict() for layer in reader.LAYERS]
    for name in (name for name in reader.ROWS if "random numbers" in name):
        net = reader.untrained(reader.ROWS[name])
        assert sum(p.numel() for p in net.parameters()) == sum(p.numel() for p in half.parameters())
        for ours, other in ((block.state_dict(), one) for block in net.encoder.blocks for one in theirs):
            assert not any(torch.equal(ours[key], other[key]) for key in ours if ours[key].dim() > 1)
    begun = half.encoder.blocks[0].state_dict()["attention.query_projection.weight"]
    assert torch.equal(begun, theirs[0]["attention.query_projection.weight"])
    asked = []
    monkeypatch.setattr(reader, "untrained", lambda row, untrained=reader.untrained: asked.append(row) or untrained(row))
    made_run(small, "labels alone, from random numbers", 0)
    assert asked == [reader.ROWS["labels alone, from random numbers"]]


def test_labels_stand_beside_their_texts_and_testing_texts_are_not_read(small):
    assert set(reader.labels_of("cuts")) == {NO_LABEL} and set(reader.labels_of("written")) <= {0, 1}
    assert not {"handwritten", "ordinary", "ordinary_second"} & set(reader.SOURCES)
    texts = reader.chosen("imdb", "train", "student", [3, 1])
    assert texts.labels == [reader.labels_of("imdb")[3], reader.labels_of("imdb")[1]]
    assert texts.ids[1] == reader.reader_pieces().encode(reader.texts_of("imdb")[1])[:reader.OPTIONS.max_len]


def test_a_fifth_of_the_cut_sentences_is_written_as_in_treebanks():
    assert reader.as_in_treebanks("Don't say it's “great” (it isn’t)!") == "do n't say it 's “ great ” ( it is n't ) !"
    assert reader.as_in_treebanks("O'Neill CAN'T act.") == "o'neill ca n't act ."


def test_the_committed_reader_is_the_best_on_validation_of_those_that_went_on():
    later = [run for run in read_runs("reader_more") if "written_more" in run["change"]["reads"]]
    best = max(later, key=lambda run: max(part["validation_accuracy"] for part in run["history"]))
    texts = load_reviews("ordinary_third")["test"]
    labels = ReviewClassifier.load("reader").predict(list(texts["text"]))[0]
    right = sum((label == "positive") == bool(truth) for label, truth in zip(labels, texts["label"], strict=True))
    assert right / len(labels) == pytest.approx(best["ordinary_third"]["accuracy"])
