"""The classifier in one file: short, made of the notebooks' own lines, and the same model as theirs."""

import re
import types

import pytest
import torch

from course_tools.notebooks import one_file
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.files.paths import ROOT


@pytest.fixture(scope="module")
def text():
    return one_file.assemble()


@pytest.fixture(scope="module")
def module(text):
    made = types.ModuleType("model")
    exec(compile(text, "model.py", "exec"), made.__dict__)
    return made


@pytest.fixture(scope="module")
def ours():
    return ReviewClassifier.load(ROOT / "data" / "checkpoints" / "reviews")


@pytest.fixture(scope="module")
def theirs(module, ours):
    """The assembled model with the trained weights."""
    fields = module.ClassifierConfig.__dataclass_fields__
    model = module.SelfAttentionClassifier(module.ClassifierConfig(
        **{name: value for name, value in vars(ours.model.config).items() if name in fields}))
    model.load_state_dict(ours.model.state_dict())
    return model.eval()


def test_it_is_short_and_says_how_long(text):
    lines = text.splitlines()
    assert len(lines) <= 150 and f"{len(lines)} lines" in lines[0] and max(map(len, lines)) <= 125


def test_its_lines_are_the_notebooks_own(text):
    """All but those that lost what the usual settings decide; and of what was left out, nothing stayed behind."""
    taught = {line.strip().partition("  #")[0] for name in one_file.PARTS for line in
              (ROOT / "course_utils" / f"{name}.py").read_text(encoding="utf-8").splitlines()}
    code = [line.strip().partition("  #")[0] for line in text.partition("nn import functional as F")[2].splitlines()]
    settled = [line for line in filter(None, code) if line not in taught]
    assert len(settled) < 0.5 * len(code), settled
    assert not [line for line in code if re.search(r"course_utils|check_|raise |norm_first|need_weights|cache|, bias", line)]


@torch.no_grad()
def test_it_gives_the_trained_model_s_answers_and_weights(ours, theirs):
    texts = ["", *load_reviews("reviews")["test"]["text"][:63]]
    token_ids, mask = ours.encode(texts)
    expected, (logits, pooling, attentions) = ours.model(token_ids, mask, need_weights=True), theirs(token_ids, mask)
    assert mask.sum(dim=1).unique().numel() > 10                              # padded, and padded differently
    torch.testing.assert_close(logits, expected.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(pooling, expected.pooling_weights, atol=1e-6, rtol=0)
    torch.testing.assert_close(attentions, expected.attentions, atol=1e-6, rtol=0)
    assert torch.equal(theirs(token_ids)[0], logits)                          # the mask can be left to it


def test_it_learns(module):
    torch.manual_seed(0)
    model = module.SelfAttentionClassifier(module.ClassifierConfig(vocab_size=9, d_model=8, num_heads=2, d_ff=8))
    token_ids, labels = torch.randint(1, 9, (16, 5)), torch.arange(16) % 2
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(model(token_ids)[0], labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.25 * losses[0]


def test_a_sentence_that_a_notebook_no_longer_says_is_named(monkeypatch):
    monkeypatch.setitem(one_file.REWORDED, "not said anywhere", "")
    with pytest.raises(ValueError, match="no longer say 'not said anywhere'"):
        one_file.assemble()


def test_the_command_writes_it(monkeypatch, tmp_path, capsys, text):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    assert one_file.main([]) == 0
    assert (tmp_path / "model.py").read_text(encoding="utf-8") == text
    assert capsys.readouterr().out == f"outputs/model.py: {len(text.splitlines())} lines\n"
