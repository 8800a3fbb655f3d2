"""The result set on which data teach what: every row can be made, on a handful of texts and with a small random BERT."""

import json

import pytest
import torch
from datasets import DatasetDict
from small_corpora import made_reviews as made
from small_corpora import save_small_bert

from course_tools.studies import pretrained_reviews as shared
from course_tools.studies.sets import pretrained, which_data


@pytest.fixture
def small(monkeypatch, tmp_path):
    save_small_bert(tmp_path / "models" / "minilm")
    corpora = {"imdb": DatasetDict(train=made(60, 0), test=made(12, 1)),
               **{source: DatasetDict(test=made(10, 2)) for source in ("handwritten", "ordinary")},
               **{source: DatasetDict(train=made(40, 3), validation=made(8, 4), test=made(10, 5))
                  for source in ("reviews", "sentences")}}
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(pretrained, "NAME", "minilm")
    monkeypatch.setattr(shared, "load_reviews", lambda source, **options: corpora[source])
    monkeypatch.setattr(which_data, "load_reviews", corpora.__getitem__)
    monkeypatch.setattr(which_data, "READ", 128)
    cached = (pretrained.base, pretrained.encoded, pretrained.settings, shared.reviews, which_data.encoded,
              which_data.settings)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    for function in cached:
        function.cache_clear()


@pytest.mark.slow
def test_every_row_reads_equally_many_texts_and_is_scored_on_all(small):
    for name, row in which_data.ROWS.items():
        run = which_data.run(name, 1, small / "state")
        (small / "state").unlink()
        assert run["steps"] == 4 and len(run["history"]) == which_data.PARTS
        assert run["imdb"]["reviews"] == 12 and run["ordinary"]["reviews_by_kind"] == {"order": 5, "plain": 5}
        for source in ("imdb", *which_data.TESTED):
            right = f"{int(run[source]['right'], 16):b}"[1:]
            assert right.count("1") / len(right) == run[source]["accuracy"] and len(right) == run[source]["reviews"]
        assert set(row.sources) <= {"imdb", *which_data.TESTED}
        change = which_data.SET.describe(name)
        assert json.loads(json.dumps(change)) == change        # or it's made again
    assert len(which_data.SET.wanted([0, 1, 2])) == 3 * 8 and which_data.settings() == which_data.settings()
    assert "ordinary" in which_data.line([run])


def test_as_many_texts_of_each_source_and_nothing_for_testing_alone(small):
    texts = which_data.mixed(("imdb", "sentences"), "train", 20, 0)
    real = {tuple(ids) for ids in which_data.split_of("imdb", "train").ids}
    assert sum(tuple(ids) in real for ids in texts.ids) >= 20 and len(texts.ids) == len(texts.labels) == 40
    for row in which_data.ROWS.values():
        assert not {"handwritten", "ordinary", "ordinary_second"} & set(row.sources)


def test_one_starts_from_the_checkpoint_and_the_other_from_random_numbers(small):
    base = pretrained.base()[0].embedding.weight
    assert torch.equal(which_data.classifier("MiniLM").encoder.embedding.weight, base)
    assert not torch.equal(which_data.classifier("random").encoder.embedding.weight, base)
