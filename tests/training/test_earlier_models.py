"""Folders that earlier versions saved, written here as they wrote them, still load."""

import json
from pathlib import Path

import pytest
from earlier_models import write
from saved_classifiers import TEXTS, make, refused

from course_utils.classifier import ReviewClassifier
from course_utils.distillation import CautiousClassifier
from course_utils.files import sha256
from course_utils.training.model_kinds import CLASSIFIER, kind_in
from course_utils.training.plain_text import PlainWords
from course_utils.training.saved_models import holds_model, read_plain_texts


@pytest.fixture(params=[1, 2])
def folder(request, tmp_path) -> Path:
    write(tmp_path / "mine", request.param, make())
    return tmp_path / "mine"


def test_it_gives_the_same_probabilities_and_its_kind_is_known(folder):
    assert holds_model(folder) and kind_in(folder) == CLASSIFIER
    loaded = ReviewClassifier.load(folder)
    assert loaded.predict(TEXTS)[1].equal(make().predict(TEXTS)[1]) and loaded.label_names == ["negative", "positive"]


def test_what_is_saved_under_its_name_takes_its_place(folder):
    make(seed=1).save(folder)
    assert ReviewClassifier.load(folder).predict(TEXTS)[1].equal(make(seed=1).predict(TEXTS)[1])
    make(seed=2).save(f"{folder}.safetensors")          # as where a new version of the course was unpacked over an old one
    (folder / "model.safetensors").unlink()
    assert ReviewClassifier.load(folder).predict(TEXTS)[1].equal(make(seed=2).predict(TEXTS)[1])


def test_it_can_be_given_the_setting_of_plain_texts(folder):
    read_plain_texts(folder)
    assert type(ReviewClassifier.load(folder).tokenizer) is PlainWords


def test_numbers_beside_its_weights_are_read_unless_they_belong_to_others(tmp_path):
    weights = write(tmp_path / "mine", 2, make())
    for belongs in (sha256(weights), "0" * 64):
        caution = {"weights": belongs, "temperature": 2.0, "threshold": 0.7}
        (tmp_path / "mine" / "caution.json").write_text(json.dumps(caution))
        if belongs[0] != "0":
            assert CautiousClassifier.load(tmp_path / "mine").classifier.temperature == 2.0
    with pytest.raises(FileNotFoundError, match="has no numbers called 'caution'"):
        CautiousClassifier.load(tmp_path / "mine")


@pytest.mark.parametrize("damage", ["changed", "cut off", "gone"])
def test_damage_is_noticed(tmp_path, damage):
    weights = write(tmp_path / "mine", 2, make())
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + (b"\1" if damage == "changed" else b""))
    if damage == "gone":
        weights.unlink()
    refused(tmp_path / "mine", error=FileNotFoundError if damage == "gone" else ValueError)
