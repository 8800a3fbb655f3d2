"""Notebook 19: what its cells define is right, and its two processes end, whatever happens to them."""

import json
import os
import sys

import pytest
import torch
from lesson_cells import cells_of
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.exercises.catalogue import answers_to
from course_utils.files.paths import RESULTS, ROOT, output_folder
from course_utils.transformer_blocks import EncoderBlock

accumulate, synchronize = answers_to("19.1").reference, answers_to("19.4").reference


@pytest.fixture(scope="module")
def taught() -> dict:
    """What the notebook's own functions and classes are."""
    names = {"torch": torch, "nn": nn, "F": F, "SelfAttentionClassifier": SelfAttentionClassifier,
             "EncoderBlock": EncoderBlock, "checkpoint": checkpoint}
    cells = cells_of("19_scaling")
    exec(cells["reviews"], names)
    exec(cells["recompute"], names)
    exec(cells["one-rank"], names)
    exec(cells["kept-bytes"].partition("\n\none = ")[0], names)
    return names


def drawn(number: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids of texts of 1 to 12 words, padded with 0, and labels."""
    lengths = torch.randint(1, 13, (number, 1), generator=generator)
    ids = torch.randint(2, 30, (number, 12), generator=generator)
    return ids.masked_fill(torch.arange(12) >= lengths, 0), torch.randint(4, (number,), generator=generator)


def reader(taught) -> nn.Module:
    torch.manual_seed(0)
    config = ClassifierConfig(30, 4, d_model=8, num_heads=2, d_ff=8, dropout=0.0, positions="rotary")
    return taught["Reader"](config).double()


def gradient(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("number", [32, 31, 5])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_hold_every_text_once_and_their_accumulated_gradient_is_the_batch_s(taught, number, parts):
    ids, labels = drawn(number, torch.Generator().manual_seed(number))
    cut = taught["split"](ids, labels, parts)
    assert sorted(row.tolist()[0] for part, _ in cut for row in part) == sorted(row.tolist()[0] for row in ids)
    assert sum(int((part != 0).sum()) for part, _ in cut) == int((ids != 0).sum()) and len(cut) == parts
    model, gradients = reader(taught), []
    for pieces in ([(ids, labels)], cut):
        accumulate(model, pieces)
        gradients.append(gradient(model))
    assert (gradients[0] - gradients[1]).abs().max() < 1e-12


def test_parts_have_about_as_many_words(taught):
    ids, labels = drawn(400, torch.Generator().manual_seed(1))
    words = [int((part != 0).sum()) for part, _ in taught["split"](ids, labels, 4)]
    assert max(words) - min(words) <= 24


def test_running_a_block_again_gives_its_gradients_and_keeps_its_input_alone(taught):
    torch.manual_seed(0)

    class Block(EncoderBlock):
        def forward(self, x):
            return super().forward(x).x

    blocks = nn.ModuleList(Block(8, 2, 16, dropout=0.0) for _ in range(3)).double()
    x = torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True)

    def through(way):
        out = x
        for block in blocks:
            out = way(block, out)
        return out

    found = []
    for way in (lambda block, x: block(x), taught["Recompute"].apply):
        blocks.zero_grad()
        x.grad = None
        through(way).pow(3).sum().backward()
        found.append(torch.cat([gradient(blocks), x.grad.flatten()]))
    assert (found[0] - found[1]).abs().max() < 1e-10
    assert taught["kept_bytes"](blocks, lambda: through(taught["Recompute"].apply)) == 3 * x.nbytes


def test_two_ranks_one_after_the_other_train_the_model_of_the_whole_batch(taught):
    """train_rank on simulated ranks: each step's sums are known from a first pass over both."""
    generator = torch.Generator().manual_seed(3)
    batches = [drawn(number, generator) for number in (8, 7, 5)]
    whole = reader(taught)
    optimizer = torch.optim.AdamW(whole.parameters(), lr=6e-3)
    for ids, labels in batches:
        accumulate(whole, [(ids, labels)])
        nn.utils.clip_grad_norm_(whole.parameters(), 1.0)
        optimizer.step()
    sums: list[torch.Tensor] = []

    class Waits(Exception):
        pass

    while True:
        sent, models = [], []
        for rank in (0, 1):
            known, model = iter(sums), reader(taught)

            def all_reduce(tensor, known=known, sent=sent):
                for total in known:
                    return total.clone()
                sent.append(tensor.detach().clone())
                raise Waits
            try:
                taught["train_rank"](rank, 2, model, batches, all_reduce, synchronize)
                models.append(model)
            except Waits:
                continue
        if not sent:
            break
        sums.append(sent[0] + sent[1])
    for model in models:
        assert all((one - other).abs().max() < 1e-9 for one, other in zip(model.parameters(), whole.parameters()))


def run_two(processes, capsys):
    """The notebook's `run_two`, with what starts processes replaced; what it gives, and what it printed."""
    cell = cells_of("19_scaling")["script"]
    folder = output_folder() / "two_processes"
    folder.mkdir(parents=True)
    names = {"os": os, "sys": sys, "json": json, "folder": folder, "ROOT": ROOT, "RESULTS": RESULTS,
             "run_in_group": processes}
    exec(cell[cell.index("def run_two"):], names)
    return names["run_two"](), capsys.readouterr().out


@pytest.mark.parametrize(("processes", "why"), [
    (lambda *_, **__: (None, "PermissionError: no processes here"), "PermissionError: no processes here"),
    (lambda *_, **__: (None, "it hadn't ended after 150 seconds"), "it hadn't ended"),
    (lambda *_, **__: (1, ""), "status 1"),
], ids=["may not start", "took too long", "failed"])
def test_where_no_two_processes_run_it_says_so_and_goes_on(processes, why, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    found, said = run_two(processes, capsys)
    assert said.count("\n") == 1 and why in said and "from our machine" in said
    assert [rank["rank"] for rank in found] == [0, 1]


def test_a_function_of_the_learner_that_stops_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))

    def stops(*_, **__):
        for rank in (0, 1):
            (tmp_path / "two_processes" / f"rank_{rank}.json").write_text(json.dumps({"stopped": "NameError: helper"}))
        return 0, ""

    found, said = run_two(stops, capsys)
    assert "NameError: helper" in said and len(found) == 2


def test_the_kept_file_says_what_the_notebook_says():
    ranks = json.loads((RESULTS / "two_processes.json").read_text(encoding="utf-8"))["ranks"]
    for name in ("yours", "mean over ranks", "DDP", "DDP, weighted"):
        assert ranks[0][name]["weights"] == ranks[1][name]["weights"], name
    assert ranks[0]["nothing"]["weights"] != ranks[1]["nothing"]["weights"]
    assert [rank["words"] for rank in ranks] == pytest.approx([0.125, 0.125])
    says = {name: torch.tensor(ranks[0][name]["says"], dtype=torch.float64) for name in ("yours", "DDP", "DDP, weighted")}
    assert (says["yours"] - says["DDP, weighted"]).abs().max() < 1e-6 < 1 < (says["yours"] - says["DDP"]).abs().max()
