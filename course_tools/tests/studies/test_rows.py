"""What the rows of a set change is what their names say, and rows that are compared have equally many parameters."""

import pytest
import torch
from lesson_cells import cells_of
from small_sets import small_set
from torch import nn

from course_tools.studies import student_texts
from course_tools.studies.runner import parameters_of
from course_tools.studies.sets import (
    ablations,
    facts,
    language_model,
    llama_changes,
    luong_variants,
    multi30k,
    parts,
    reader,
    recurrent_attention,
    token_range,
    toy_parts,
    which_data,
)
from course_tools.studies.text_windows import TextWindows
from course_utils.encoder_decoder import Transformer
from course_utils.exercises.catalogue import answers_to
from course_utils.language_model import LanguageModelConfig
from course_utils.llama import GroupedQueryAttention, Llama, SwiGLU
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import RotaryPositions
from course_utils.recipes import RECIPES, changed
from course_utils.results import read_runs


def of_ablations(row: str) -> nn.Module:
    change = ablations.CHANGES[row]
    vocabulary = next(run["vocabulary"] for run in read_runs("ablations") if (run["model"], run["seed"]) == (row, 0))
    return ablations.network(change, changed(RECIPES["reviews"], **change.options), vocabulary)


# how a row's network is made, and by what proportion the rows' sizes may differ
MADE = {
    "language_model": (language_model.network, 0.002),
    "llama_changes": (lambda row: Llama(llama_changes.config_of(row)), 0.001),
    "recurrent_attention": (lambda row: recurrent_attention.new_translator(row, 0), 0.01),
    "luong_variants": (lambda row: luong_variants.new_translator(row, 0), 0.01),
    "ablations": (of_ablations, 0.015),
    "token_range": (lambda row: token_range.NETWORKS[row.partition(": ")[2]][0](), 0.05),
    "multi30k": (None, 0.05),
}
DIFFER = {"ablations": lambda row: not row.endswith(("equal parameters", "equal seconds")) and row != ablations.DEFAULT,
          "multi30k": lambda row: row == multi30k.PAPER}


@pytest.mark.parametrize("name", MADE)
def test_a_network_has_the_size_that_its_runs_say_and_that_it_is_compared_with(name):
    make, tolerance = MADE[name]
    said = {run["model"]: run["parameters"] for run in read_runs(name) if run["seed"] == 0 and "best_epoch" in run}
    for row, size in said.items() if make else ():
        assert parameters_of(make(row), trained=name == "ablations") == size, row
    compared = [size for row, size in said.items() if not DIFFER.get(name, lambda row: False)(row)]
    assert len(compared) > 2 and max(abs(size / compared[0] - 1) for size in compared) < tolerance


def test_the_ablations_are_what_their_names_say():
    assert len(of_ablations("4 layers").encoder.blocks) == 4
    assert of_ablations("4 heads").encoder.blocks[0].attention.num_heads == 4
    assert not of_ablations("frozen random embeddings").embedding.weight.requires_grad
    assert not of_ablations("post-norm, 2 layers").encoder.blocks[0].norm_first
    assert of_ablations("width 64").config.d_model == of_ablations("width 64").config.d_ff == 64
    scaled, unscaled = (of_ablations(row).encoder.blocks[0].attention for row in (ablations.DEFAULT, "no scaling"))
    unscaled.load_state_dict(scaled.state_dict())
    x = torch.randn(2, 5, 32)
    scores = [
        attention.attend(*attention.project(x, x, x), need_weights=True).weights.log() for attention in (scaled, unscaled)
    ]
    gaps = [score - score[..., :1] for score in scores]
    torch.testing.assert_close(gaps[1], gaps[0] * 4, atol=1e-4, rtol=1e-4)  # √d_head = √16


def test_with_all_parts_the_model_is_the_default_of_the_ablations_and_others_begin_with_the_same_numbers():
    torch.manual_seed(0)
    default = ablations.network(ablations.CHANGES[ablations.DEFAULT], RECIPES["reviews"], 60).eval()
    token_ids = torch.randint(2, 60, (3, 9))
    begun = default.state_dict()
    for row in (parts.Parts(), *parts.ROWS.values()):
        torch.manual_seed(0)
        net = parts.network(row, 60).eval()
        assert all(torch.equal(value, begun[name]) for name, value in net.state_dict().items())
        assert torch.equal(net(token_ids).logits, default(token_ids).logits) == all(row), row
    assert len(parts.network(parts.Parts(), 60).state_dict()) == len(begun)


def test_each_row_of_the_parts_lacks_what_it_says():
    for row, has in parts.ROWS.items():
        net = parts.network(has, 60).double().eval()
        assert len(net.encoder.blocks) == (2 if has.attention else 0)
        for named, there in {"feed_forward": has.feed_forward, "norm": has.norms}.items():
            assert any(f"{named}." in name for name in net.state_dict()) == there, row
        x = torch.randn(2, 5, 32, dtype=torch.float64)
        for block in net.encoder.blocks:
            silent = [block.attention.output_projection, *([block.feed_forward.contract] if has.feed_forward else [])]
            for parameter in (p for last in silent for p in last.parameters()):
                nn.init.zeros_(parameter)
            assert torch.equal(block(x).x, x if has.residuals else torch.zeros_like(x)), row
    assert parts.ROWS["no block"] == parts.Parts(False, False, False, False)


def test_the_toys_stacks_and_texts_are_those_of_the_notebook():
    cells = cells_of("07_transformer_blocks")
    names = {"torch": torch, "nn": nn, "F": torch.nn.functional, "MultiHeadAttention": MultiHeadAttention,
             "RotaryPositions": RotaryPositions, "FeedForward": answers_to("7.6").reference,
             "one_block": answers_to("7.8").reference}
    for cell in ("export-encoder-block", "ablated", "trained-data"):
        exec(cells[cell], names)
    drawn = (toy_parts.second_counts, names["second_counts"])
    ours, theirs = (texts(20, torch.Generator().manual_seed(1)) for texts in drawn)
    assert all(map(torch.equal, ours, theirs))
    for has in toy_parts.PARTS.values():
        torch.manual_seed(0)
        taught = names["Stack"](feed_forward=has.feed_forward, residual=has.residuals, norm=has.norms)
        torch.manual_seed(0)
        torch.testing.assert_close(toy_parts.Stack(8, has)(ours[0]), taught(ours[0]), atol=1e-6, rtol=1e-6)


def test_the_block_that_remembers_and_its_people_are_those_of_the_notebook():
    cells = cells_of("07_transformer_blocks")
    names = {"torch": torch, "nn": nn, "F": torch.nn.functional, "MultiHeadAttention": MultiHeadAttention,
             "FeedForward": answers_to("7.6").reference, "one_block": answers_to("7.8").reference}
    for cell in ("export-encoder-block", "ablated", "facts-data"):
        exec(cells[cell], names)
    assert torch.equal(names["answers"], facts.table_of(24))
    ours = facts.people(20, torch.Generator().manual_seed(1), names["answers"])
    assert all(map(torch.equal, ours, names["people"](20, torch.Generator().manual_seed(1))))
    for row in ("the whole block", "without feed-forward"):
        torch.manual_seed(0)
        taught = names["Remembers"](feed_forward=facts.ROWS[row].feed_forward)
        torch.manual_seed(0)
        torch.testing.assert_close(facts.Remembers(facts.ROWS[row])(ours[0]), taught(ours[0]), atol=1e-6, rtol=1e-6)


def test_nothing_that_is_for_testing_alone_is_read():
    read = {*student_texts.SOURCES, *reader.SOURCES, *(source for row in which_data.ROWS.values() for source in row.sources)}
    assert not read & {"handwritten", "ordinary", "ordinary_second", "ordinary_third"}


NANOGPT = [name for name in language_model.ROWS if "nanoGPT" in name]


def test_nanogpt_begins_with_gpt2s_numbers():
    torch.manual_seed(0)
    net = language_model.network(NANOGPT[0])
    added = 0.02 / (2 * net.config.num_layers) ** 0.5
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif parameter.dim() > 1:
            wanted = added if name.endswith(("attention.output_projection.weight", "feed_forward.contract.weight")) else 0.02
            assert parameter.std().item() == pytest.approx(wanted, rel=0.05), name
        else:
            assert (parameter == 1).all()               # of the norms
    assert net.config.positions == "learned" and language_model.network("attention").config.positions == "rotary"


def test_decay_is_for_matrices_alone_and_every_parameter_is_trained_once():
    net = language_model.network(NANOGPT[0])
    decayed, others = language_model.nanogpt_groups(net)
    assert sorted(map(id, decayed["params"] + others["params"])) == sorted(map(id, net.parameters()))
    assert all(p.dim() == 2 for p in decayed["params"]) and all(p.dim() == 1 for p in others["params"])
    assert others["weight_decay"] == 0 and "weight_decay" not in decayed
    assert decayed["betas"] == others["betas"] == (0.9, 0.99)


def test_each_row_changes_one_thing_and_the_last_all_four():
    for row, options in llama_changes.ROWS.items():
        differs = {name for name, value in options.items() if value != llama_changes.GPT[name]}
        assert len(differs) == (0 if row == "GPT" else 4 if row == "Llama" else 1), row
    block = Llama(llama_changes.config_of("Llama")).decoder.blocks[0]
    assert isinstance(block.attention, GroupedQueryAttention) and isinstance(block.feed_forward, SwiGLU)
    assert isinstance(llama_changes.config_of("GPT"), LanguageModelConfig)


def test_the_first_steps_of_an_epoch_are_drawn_anew_and_are_the_same_for_the_same_seed():
    data = llama_changes.FirstSteps(TextWindows(torch.arange(500), 4, 5), 3)
    assert len(data) == len(list(data.batches(1))) == 3
    again, other = (torch.stack(list(data.batches(seed))) for seed in (1, 2))
    assert torch.equal(torch.stack(list(data.batches(1))), again) and not torch.equal(again, other)
    assert data.fingerprint != llama_changes.FirstSteps(data.data, 2).fingerprint


def test_each_row_is_what_its_name_says():
    nets = {row: luong_variants.new_translator(row, 0) for row in luong_variants.ROWS}
    assert {row: (net.decoder.feed, net.decoder.attention.window) for row, net in nets.items()} == {
        "input feeding": (True, "global"), "local-m": (False, "monotonic"), "local-p": (False, "predicted")}


def test_rows_that_are_compared_differ_in_the_network_alone():
    attention, recurrent = multi30k.ROWS["Transformer, 20 minutes"], multi30k.ROWS["recurrent, equal steps"]
    assert attention | {"network": "recurrent"} == recurrent
    assert multi30k.ROWS["recurrent, as many minutes"] | {"epochs": recurrent["epochs"]} == recurrent
    assert multi30k.ROWS[multi30k.HOUR] | {"epochs": attention["epochs"]} == attention


def test_the_published_network_has_one_table_and_reads_tokens_in_lower_case(monkeypatch, tmp_path):
    small_set("multi30k", monkeypatch, tmp_path)
    translator = multi30k.new_translator(multi30k.PAPER, 0)
    net, config = translator.model, translator.model.config
    assert net.source_embedding is net.target_embedding and net.output is None
    separate = parameters_of(Transformer(config))
    assert parameters_of(net) == separate - config.vocab_size * config.d_model
    assert (config.norm_first, config.positions, config.activation) == (False, "sinusoidal", "relu")
    english, french = multi30k.texts(True)["train"]
    assert all(text == text.lower() and text.endswith(" .") for text in (*english, *french))
    assert any("l' homme" in text for text in french)
