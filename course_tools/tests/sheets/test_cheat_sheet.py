"""The cheat sheet: what it names exists, what it counts is so, and its masks mean what it says."""

import html
import inspect
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import nbformat
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_tools.sheets.cheat_sheet import PAGE
from course_utils import (
    attention,
    attention_maps,
    byte_pairs,
    classifier,
    distillation,
    efficient_attention,
    embeddings,
    encoder_decoder,
    explain,
    language_model,
    multi_head_attention,
    positional_encoding,
    pretraining,
    recurrent_attention,
    results,
    tokenization,
    transformer_blocks,
)
from course_utils.attention import causal_mask, padding_mask, scaled_dot_product_attention
from course_utils.classifier import ReviewClassifier
from course_utils.files.paths import NOTEBOOKS

TEXT = PAGE.read_text(encoding="utf-8")
# where the sheet's names are imported from
HOMES = (attention, attention_maps, byte_pairs, classifier, distillation, efficient_attention, embeddings,
         encoder_decoder, explain, language_model, multi_head_attention, positional_encoding, pretraining,
         recurrent_attention, results, tokenization, transformer_blocks)


def cells(kind: str) -> list[str]:
    """The text of all elements that begin with `kind`, such as 'td class="code"'."""
    return [html.unescape(found) for found in re.findall(rf"<{kind}>([^<]*)</", TEXT)]


def named(name: str):
    """What a name on the sheet stands for: F.x and nn.x of PyTorch, or a public name of the course, 'Class.method'."""
    first, *rest = name.split(".")
    if first in ("F", "nn"):
        found = {"F": F, "nn": nn}[first]
    else:
        found = next((vars(home)[first] for home in HOMES if first in vars(home)), None)
        assert found is not None, f"the course has no {first}"
    for part in rest:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", sorted(set(cells('td class="code"'))))
def test_what_a_row_names_exists(name):
    assert callable(named(name))


@pytest.mark.parametrize("call", [code for code in cells("code") if "(" in code])
def test_what_a_box_calls_takes_these_arguments(call):
    name, given = re.fullmatch(r"([\w.]+)\((.*)\)", call).groups()
    assert set(given.split(", ")) <= set(inspect.signature(named(name)).parameters)


def test_every_section_that_a_row_names_is_there():
    places = re.findall(r"<td>(\d\d) §(\d+)</td>", TEXT)
    assert len(places) == len(cells('td class="code"')) and {number for number, _ in places} == {
        f"{number:02}" for number in range(19)} - {"01"}                     # 01 has texts and counts, no shapes
    for (number, section), code in zip(places, cells('td class="code"'), strict=True):
        sections, name = sections_of(number), re.split(r"[.(]", code.partition("(")[0])[-1]
        assert section in sections, f"{number} has no section {section}"
        said = [one for one, text in sections.items() if re.search(rf"\b{name}\b", text)]
        assert not said or section in said, f"{number} says {name} in its sections {said}, not in {section}"


def sections_of(number: str) -> dict[str, str]:
    """The numbered sections of a notebook, by number: all of their text and code."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    found = re.split(r"(?m)^## (?:(\d+)\. )?", text)
    return {one: part for one, part in zip(found[1::2], found[2::2]) if one}


def test_its_counts_are_those_of_the_model_of_08():
    model = ReviewClassifier.load("reviews").model
    block = model.encoder.blocks[0]
    parts = {"embedding": model.embedding, "learned positions": model.positions, "attention": block.attention,
             "feed-forward": block.feed_forward, "a norm; also the last": model.encoder.norm,
             "a block, with two norms": block, "pooling": model.pooling, "output": model.output, "all": model}
    rows = dict(re.findall(r'<tr><th scope="row">([^<]*)</th><td>.*</td><td>(?:<b>)?([\d,]+)(?:</b>)?</td></tr>', TEXT))
    assert rows == {name: f"{sum(p.numel() for p in part.parameters()):,}" for name, part in parts.items()}
    config = model.config
    assert f"<i>d</i> = {config.d_model}, <i>d</i><sub>ff</sub> = {config.d_ff}, {config.vocab_size:,} ids" in TEXT


def test_the_masks_mean_what_the_sheet_says():
    x, attention_mask = torch.randn(2, 5, 4), torch.arange(5) < torch.tensor([[5], [3]])
    layer = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    with torch.no_grad():
        alone = layer(x[1:, :3], x[1:, :3], x[1:, :3], need_weights=False)[0]
        padded = layer(x, x, x, key_padding_mask=~attention_mask, need_weights=False)[0]
        nothing = layer(x, x, x, key_padding_mask=torch.ones(2, 5, dtype=torch.bool))[0]
        below = layer(x, x, x, attn_mask=~causal_mask(5), need_weights=False)[0]
        first = layer(x[:, :1], x[:, :1], x[:, :1], need_weights=False)[0]
    assert torch.allclose(padded[1, :3], alone[0], atol=1e-6) and nothing.isnan().all()
    assert torch.allclose(below[:, :1], first, atol=1e-6)                    # True means 'leave out' in both of its masks
    flags = causal_mask(5)
    ours, numbers = scaled_dot_product_attention(x, x, x, flags).context, torch.zeros(5, 5).masked_fill(~flags, -torch.inf)
    for mask in (flags, numbers):
        assert torch.allclose(F.scaled_dot_product_attention(x, x, x, mask), ours, atol=1e-6)
    assert not torch.allclose(F.scaled_dot_product_attention(x, x, x, flags.float()), ours, atol=1e-2)
    closed = padding_mask(torch.zeros(2, 5, dtype=torch.bool))[:, 0]
    assert (scaled_dot_product_attention(x, x, x, closed).context == 0).all()
    assert (padding_mask(attention_mask) & flags).shape == (2, 1, 5, 5)


class Tags(HTMLParser):
    """Which tags are open, and whether each is closed where it must be."""

    def __init__(self):
        super().__init__()
        self.open, self.faults = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append((tag, self.getpos()))


def test_the_page_is_whole_and_needs_no_network_or_scripts():
    tags = Tags()
    tags.feed(TEXT)
    assert tags.faults == [] and tags.open == []
    assert not re.search(r"https?:|//|<script|<link|<img|@import|url\(", TEXT)


def test_the_command_writes_it(root, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    made = subprocess.run([sys.executable, "-m", "course_tools", "cheat-sheet"], cwd=root, capture_output=True, text=True,
                          check=True)
    assert "cheat_sheet.html" in made.stdout and f" {tmp_path}" not in made.stdout
    assert (tmp_path / "sheets" / "cheat_sheet.html").read_bytes() == PAGE.read_bytes()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_sheets_writes_them_all(root):
    said = subprocess.run(["make", "-n", "sheets"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"-m course_(\S+ \S+)", said) == ["utils quiz-cards", "tools cheat-sheet", "tools sheets"]
