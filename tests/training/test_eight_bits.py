"""Matrices in 8 bits: what is written comes back within half a scale, by a model's file too; other files are refused."""

import pytest
import torch
from saved_classifiers import refused, rewrite

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.quantization_and_pruning import quantize
from course_utils.tokenization import WordTokenizer
from course_utils.training.saved_models import SCALES, in_eight_bits, write_model

WORDS = WordTokenizer(["<pad>", "<unk>", "a", "dull", "film"])


@pytest.fixture
def net():
    torch.manual_seed(0)
    return SelfAttentionClassifier(ClassifierConfig(5, d_model=64, num_heads=2, d_ff=128, num_layers=1, max_len=12)).eval()


def test_it_rounds_as_the_extra_on_quantization_does():
    torch.manual_seed(1)
    weight = torch.randn(6, 9)
    assert torch.allclose(in_eight_bits({"w": weight})["w"], quantize(weight, 8).weights(), atol=1e-6)


def test_a_classifier_in_eight_bits_is_read_as_the_rounded_one(tmp_path, net):
    write_model(tmp_path / "small", net, WORDS, {"label_names": ["negative", "positive"]}, SelfAttentionClassifier, True)
    ReviewClassifier(net, WORDS).save(tmp_path / "whole")
    size = {name: (tmp_path / f"{name}.safetensors").stat().st_size for name in ("small", "whole")}
    assert size["small"] < 0.35 * size["whole"]
    read = ReviewClassifier.load(tmp_path / "small")
    rounded = in_eight_bits(net.state_dict())
    assert all(torch.equal(read.model.state_dict()[name], weight) for name, weight in rounded.items())
    assert next(read.model.parameters()).dtype == torch.float32
    ids, mask = read.encode(["a dull film"])
    net.load_state_dict(rounded)
    assert torch.equal(read.model(ids, mask).logits, net(ids, mask).logits)


@pytest.mark.parametrize(("change", "word"), [
    (lambda t: t.pop("output.weight" + SCALES), "int8"), (lambda t: t.pop("output.weight"), "output.weight"),
    (lambda t: t.update({"output.weight" + SCALES: torch.ones(3)}), "3")])
def test_what_isnt_packed_so_is_refused(tmp_path, net, change, word):
    path = write_model(tmp_path / "small", net, WORDS, {"label_names": ["no", "yes"]}, SelfAttentionClassifier, True)
    rewrite(path, lambda about, tensors: change(tensors))
    refused(path, word)
