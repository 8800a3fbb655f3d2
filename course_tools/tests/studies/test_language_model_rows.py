"""The rows of the set `language_model`: of one size, and nanoGPT's recipe as that repository describes it."""

import pytest
import torch

from course_tools.studies.sets import language_model as rows
from course_tools.studies.text_windows import TextWindows
from course_utils.language_model import next_token_loss
from course_utils.results import by_model, read_runs
from course_utils.training import MeanLoss, fit

NANOGPT = [name for name in rows.ROWS if "nanoGPT" in name]


def test_all_rows_have_the_size_of_attention():
    sizes = {name: sum(p.numel() for p in rows.network(name).parameters()) for name in rows.ROWS}
    assert all(abs(size / sizes["attention"] - 1) < 0.002 for size in sizes.values()), sizes


def test_nanogpt_begins_with_gpt2s_numbers():
    torch.manual_seed(0)
    net = rows.network(NANOGPT[0])
    added = 0.02 / (2 * net.config.num_layers) ** 0.5
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.dim() > 1:
            wanted = added if name.endswith(("attention.output_projection.weight", "feed_forward.contract.weight")) else 0.02
            assert parameter.std().item() == pytest.approx(wanted, rel=0.05), name
        else:
            assert (parameter == 1).all()               # of the norms
    assert net.config.positions == "learned" and rows.network("attention").config.positions == "rotary"


def test_decay_is_for_matrices_alone_and_every_parameter_is_trained_once():
    net = rows.network(NANOGPT[0])
    decayed, others = rows.nanogpt_groups(net)
    assert sorted(map(id, decayed["params"] + others["params"])) == sorted(map(id, net.parameters()))
    assert all(p.dim() == 2 for p in decayed["params"]) and all(p.dim() == 1 for p in others["params"])
    assert others["weight_decay"] == 0 and "weight_decay" not in decayed
    assert decayed["betas"] == others["betas"] == (0.9, 0.99)


def test_a_row_of_it_trains(monkeypatch):
    monkeypatch.setattr(rows, "MODEL", {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1, "max_len": 16})
    monkeypatch.setattr(rows, "VOCAB_SIZE", 10)
    monkeypatch.setitem(rows.ROWS, NANOGPT[0], rows.ROWS[NANOGPT[0]] | {"d_ff": 8, "learning_rate": 0.02})
    data = TextWindows(torch.arange(1, 10).repeat(60), 8, 4)
    result = fit(rows.network(NANOGPT[0]), data, MeanLoss(data, next_token_loss), loss_of=next_token_loss, progress=False,
                 groups=rows.nanogpt_groups, **rows.fit_options(NANOGPT[0]))
    assert result.history[-1]["validation_loss"] < result.history[0]["validation_loss"]


def test_the_file_has_three_seeds_of_every_row_and_the_steps_that_they_say():
    made = by_model(read_runs("language_model"))
    assert list(made) == list(rows.ROWS) and all([run["seed"] for run in same] == [0, 1, 2] for same in made.values())
    for name, same in made.items():
        assert {run["settings"] for run in same} == {rows.settings()}
        assert {run["steps"] for run in same} == {520 * rows.fit_options(name)["epochs"]}
        assert {round(run["parameters"] / 1e6, 1) for run in same} == {1.3}
