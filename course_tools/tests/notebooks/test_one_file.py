"""The classifier in one file: it needs nothing of the course, and it is the same model."""

import ast
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from course_tools.notebooks import one_file
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.files.paths import CHECKPOINTS, ROOT

SENTENCES = ["The film was not dull but moving.", "The film was not moving but dull.", "It's a mess!"]


@pytest.fixture(scope="module")
def file():
    return SimpleNamespace(**runpy.run_path(str(one_file.MODEL)))


@pytest.fixture(scope="module")
def ours():
    return ReviewClassifier.load("reviews")


def test_it_needs_nothing_of_the_course():
    imported = {name.partition(".")[0] for node in ast.walk(ast.parse(one_file.MODEL.read_text(encoding="utf-8")))
                for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                             [node.module] if isinstance(node, ast.ImportFrom) else [])}
    assert imported <= sys.stdlib_module_names | {"torch", "safetensors"}


@torch.no_grad()
def test_it_gives_the_trained_model_s_answers_and_weights(file, ours):
    model, words, label_names = file.load(CHECKPOINTS / "reviews")
    token_ids, mask = ours.encode(["", *load_reviews("reviews")["test"]["text"][:63]])
    expected, (logits, pooling, attentions) = ours.model(token_ids, mask, need_weights=True), model(token_ids)
    assert mask.sum(dim=1).unique().numel() > 10                              # padded, and padded differently
    torch.testing.assert_close(logits, expected.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(pooling, expected.pooling_weights, atol=1e-6, rtol=0)
    torch.testing.assert_close(attentions, expected.attentions, atol=1e-6, rtol=0)
    assert words == ours.tokenizer.vocabulary and label_names == ours.label_names


def test_it_reads_words_as_the_trained_model_does(file, ours):
    for text in [*SENTENCES, *load_reviews("reviews")["test"]["text"][:100]]:
        assert file.encode(text, ours.tokenizer.vocabulary)[0].tolist() == ours.tokenizer.encode(text), text


def test_it_refuses_a_model_with_other_options(file):
    said = "imdb.safetensors has positions='sinusoidal'; this file is the model with positions='rotary'"
    with pytest.raises(ValueError, match=said):
        file.load(CHECKPOINTS / "imdb")


@torch.no_grad()
def test_older_copies_of_the_extra_find_the_model(file, ours):
    old = {"__name__": "model"}
    exec(one_file.assemble(), old)
    config = old["ClassifierConfig"](ours.tokenizer.vocab_size, d_model=32, num_heads=2, d_ff=32)
    model = old["SelfAttentionClassifier"](config)
    assert "load" not in old and list(model.state_dict()) == list(file.load(CHECKPOINTS / "reviews")[0].state_dict())
    token_ids, mask = ours.encode(SENTENCES)
    assert torch.equal(model.eval()(token_ids, mask)[0], model(token_ids)[0])


def test_it_learns(file):
    torch.manual_seed(0)
    model = file.SelfAttentionClassifier(file.ClassifierConfig(vocab_size=9, d_model=8, num_heads=2, d_ff=8))
    token_ids, labels = torch.randint(1, 9, (16, 5)), torch.arange(16) % 2
    token_ids[0] = 0                                                          # a text without words
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(model(token_ids)[0], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.25 * losses[0]


def test_the_command_writes_it_and_it_runs(monkeypatch, tmp_path, capsys, ours):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    monkeypatch.chdir(ROOT)
    assert one_file.main([]) == one_file.main([]) == 0
    assert "model.py: the whole classifier" in capsys.readouterr().out
    run = subprocess.run([sys.executable, str(tmp_path / "model.py"), str(CHECKPOINTS / "reviews"), *SENTENCES],
                         cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
    labels, probabilities = ours.predict(SENTENCES)
    assert run.stdout.splitlines() == [f"{label} ({row.max():.2f}): {text}"
                                       for label, row, text in zip(labels, probabilities, SENTENCES)]


def test_the_command_leaves_a_changed_copy_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    (tmp_path / "model.py").write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit, match="model.py is there, and differs from the course's file; move it away"):
        one_file.main([])
    assert (tmp_path / "model.py").read_text(encoding="utf-8") == "mine"
