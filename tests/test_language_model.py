"""The language model: no look ahead, one loss, honest sampling, a cache that changes nothing."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lesson_cells import cells_of, cells_of_the_blocks
from library_twins import same, same_gradients
from torch.nn import functional as F

from course_utils.byte_pairs import BPETokenizer
from course_utils.completion import CodeCompleter
from course_utils.exercises.catalogue import answers_to
from course_utils.language_model import (
    LanguageModel,
    LanguageModelConfig,
    bits_per_byte,
    next_token_loss,
    sample,
    sampling_probabilities,
)
from course_utils.positional_encoding import POSITIONS
from course_utils.results import by_model, read_runs
from course_utils.training.saved_models import read_model, write_model

VOCAB = 37


def model_with(positions: str = "rotary", **options) -> LanguageModel:
    torch.manual_seed(0)
    sizes = dict(d_model=24, num_heads=3, d_ff=40, num_layers=3, max_len=32) | options
    model = LanguageModel(LanguageModelConfig(VOCAB, positions=positions, **sizes)).eval()
    with torch.no_grad():
        model.embedding.weight.mul_(20)                 # large enough for differences to show
    return model


@pytest.fixture
def ids() -> torch.Tensor:
    return torch.randint(1, VOCAB, (2, 13), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("positions", list(POSITIONS))
@torch.no_grad()
def test_no_position_sees_what_comes_later(positions, ids):
    model = model_with(positions)
    whole = model(ids).logits
    for length in (1, 5, 12):
        assert torch.allclose(model(ids[:, :length]).logits, whole[:, :length], atol=1e-5)
    changed = ids.clone()
    changed[:, 7] = (changed[:, 7] + 1) % VOCAB
    moved = (model(changed).logits - whole).abs().amax(dim=(0, 2))
    assert moved[:7].max() < 1e-5 and moved[7] > 1e-3


@pytest.mark.parametrize("positions", list(POSITIONS))
@pytest.mark.parametrize("sizes", [[1] * 13, [5, 1, 1, 6], [12, 1]])
@torch.no_grad()
def test_the_cache_changes_no_logit_however_the_text_is_cut(positions, sizes, ids):
    model, done, parts = model_with(positions), 0, []
    caches = model.new_caches()
    for size in sizes:
        parts.append(model(ids[:, done : done + size], caches=caches).logits)
        done += size
        assert [len(cache) for cache in caches] == [done] * 3
    assert torch.allclose(torch.cat(parts, dim=1), model(ids).logits, atol=1e-5)


@torch.no_grad()
def test_weights_come_on_request_and_are_causal(ids):
    result = model_with()(ids, need_weights=True)
    assert len(result.attentions) == 3 and result.attentions[0].shape == (2, 3, 13, 13)
    assert all(weights.triu(1).abs().max() == 0 for weights in result.attentions)
    assert all(torch.allclose(weights.sum(-1), torch.ones(2, 3, 13)) for weights in result.attentions)
    assert torch.allclose(result.logits, model_with()(ids).logits, atol=1e-5) and model_with()(ids).attentions is None


@torch.no_grad()
def test_tied_means_that_an_untied_model_with_the_same_matrix_gives_the_same(ids):
    tied, untied = model_with(), model_with(tied=False)
    assert "output.weight" not in tied.state_dict()
    weights = tied.state_dict() | {"output.weight": tied.embedding.weight}
    untied.load_state_dict(weights)
    assert torch.equal(tied(ids).logits, untied(ids).logits)


def test_the_loss_is_the_mean_over_all_answers_that_are_not_padding(ids):
    model = model_with()
    ids = ids.clone()
    ids[1, 9:] = 0
    loss, count = next_token_loss(model, ids)
    p = model(ids).logits.detach().softmax(dim=-1)
    slow = [-math.log(p[row, i, ids[row, i + 1]]) for row in range(2) for i in range(12) if ids[row, i + 1] != 0]
    assert count == len(slow) == 20 and loss.item() == pytest.approx(sum(slow) / 20, abs=1e-5)


def test_with_a_mask_the_loss_asks_for_an_end_that_is_also_the_padding(ids):
    model, mask = model_with(), torch.ones(2, 13, dtype=torch.bool)
    ids = ids.clone()
    ids[1, 8:], mask[1, 9:] = 0, False                  # a text that ends in 0, and padding with 0 after it
    loss, count = next_token_loss(model, ids, mask)
    log_p = model(ids).logits.detach().log_softmax(dim=-1)
    slow = [-log_p[row, i, ids[row, i + 1]].item() for row in range(2) for i in range(12) if mask[row, i + 1]]
    assert count == len(slow) == 20 and loss.item() == pytest.approx(sum(slow) / 20, abs=1e-5)
    assert next_token_loss(model, ids)[1] == 19
    with pytest.raises(ValueError, match=r"mask has shape \(2, 12\), token_ids \(2, 13\)"):
        next_token_loss(model, ids, mask[:, 1:])
    with pytest.raises(ValueError, match="every answer is masked"):
        next_token_loss(model, ids, torch.zeros_like(mask))


@pytest.mark.parametrize("wrong, words", [(torch.ones(3, dtype=torch.long), r"\(3,\).*\(batch, seq_len\)"),
                                          (torch.ones(3, 1, dtype=torch.long), r"\(3, 1\).*two tokens or more")])
def test_a_loss_needs_two_tokens(wrong, words):
    with pytest.raises(ValueError, match=words):
        next_token_loss(model_with(), wrong)


def test_a_text_that_is_too_long_is_refused_with_the_way_out(ids):
    model = model_with()
    with pytest.raises(ValueError, match=r"33 tokens.*max_len=32.*token_ids\[:, -32:\]"):
        model(torch.ones(1, 33, dtype=torch.long))
    caches = model.new_caches()
    model(torch.ones(1, 32, dtype=torch.long), caches=caches)
    with pytest.raises(ValueError, match="33 tokens"):
        model(torch.ones(1, 1, dtype=torch.long), caches=caches)
    with pytest.raises(ValueError, match=r"token_ids\[None\]"):
        model(ids[0])


# ---------------------------------------------------------------- sampling

distributions = st.lists(st.integers(-80, 80).map(lambda tenths: tenths / 10), min_size=1, max_size=30)  # ties, too


@settings(deadline=None)
@given(distributions, st.floats(0, 5), st.none() | st.integers(1, 40), st.none() | st.floats(0.01, 1.0))
def test_what_is_drawn_from_is_always_a_distribution_over_the_best(row, temperature, top_k, top_p):
    logits = torch.tensor(row, dtype=torch.float64)
    p = sampling_probabilities(logits, temperature, top_k, top_p)
    assert p.shape == logits.shape and p.sum().item() == pytest.approx(1) and (p >= 0).all()
    assert p[logits == logits.max()].max() > 0
    kept = p > 0
    if kept.any() and not kept.all():
        assert logits[kept].min() >= logits[~kept].max() - 1e-9        # nothing better was thrown away
    if top_k is not None:
        assert kept.sum() <= top_k


@settings(deadline=None)
@given(distributions, st.floats(0.01, 1.0))
def test_top_p_keeps_the_fewest_that_reach_p(row, top_p):
    logits = torch.tensor(row, dtype=torch.float64)
    p, kept = logits.softmax(-1), sampling_probabilities(logits, top_p=top_p) > 0
    mass, smallest = p[kept].sum().item(), p[kept].min().item()
    assert mass >= top_p - 1e-9 and mass - smallest < top_p + 1e-9


def test_top_p_by_hand():
    logits = torch.tensor([0.1, 0.5, 0.15, 0.25]).log()
    assert sampling_probabilities(logits, top_p=0.5).tolist() == pytest.approx([0, 1, 0, 0])
    assert sampling_probabilities(logits, top_p=0.51).tolist() == pytest.approx([0, 2 / 3, 0, 1 / 3])
    assert sampling_probabilities(logits, top_k=3).tolist() == pytest.approx([0, 0.5 / 0.9, 0.15 / 0.9, 0.25 / 0.9])
    assert sampling_probabilities(logits, temperature=0).tolist() == [0, 1, 0, 0]
    assert sampling_probabilities(torch.zeros(4), temperature=0).tolist() == [1, 0, 0, 0]
    sharper = sampling_probabilities(logits, temperature=0.5)
    assert sharper[1].item() == pytest.approx(0.25 / (0.01 + 0.25 + 0.0225 + 0.0625))


def test_draws_come_in_the_shape_of_the_rows_and_as_often_as_they_should():
    logits = torch.tensor([0.1, 0.6, 0.3]).log().expand(2, 5000, 3)
    drawn = sample(logits, generator=torch.Generator().manual_seed(0))
    assert drawn.shape == (2, 5000)
    assert [(drawn == i).double().mean().item() for i in range(3)] == pytest.approx([0.1, 0.6, 0.3], abs=0.02)
    again = sample(logits, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again) and sample(logits[0, 0]).shape == ()


@pytest.mark.parametrize("setting", [{"temperature": -1}, {"temperature": math.nan}, {"top_k": 0}, {"top_k": 2.5},
                                     {"top_p": 0}, {"top_p": 1.5}])
def test_a_setting_that_cannot_be_is_named_before_anything_is_read(setting, ids):
    for use in (lambda: sampling_probabilities(torch.zeros(4), **setting), lambda: model_with().generate(ids, 0, **setting)):
        with pytest.raises(ValueError, match=next(iter(setting))):
            use()


# ---------------------------------------------------------------- writing

@pytest.mark.parametrize("positions", list(POSITIONS))
def test_writing_with_and_without_the_cache_gives_the_same_text(positions, ids):
    model = model_with(positions)
    texts = [model.generate(ids, 15, temperature=0, use_cache=cached) for cached in (True, False)]
    assert torch.equal(*texts) and texts[0].shape == (2, 28) and torch.equal(texts[0][:, :13], ids)
    drawn = [model.generate(ids, 15, top_p=0.9, generator=torch.Generator().manual_seed(3), use_cache=cached)
             for cached in (True, False)]
    assert torch.equal(*drawn)


def test_writing_goes_on_beyond_what_the_model_reads(ids):
    model = model_with(max_len=16)
    texts = model.generate(ids, 60, temperature=0)
    assert texts.shape == (2, 73)
    assert torch.equal(texts, model.generate(ids, 60, temperature=0, use_cache=False))
    window = texts[:, :18]                              # with 17 tokens, more than 16, the last 8 are read anew
    with torch.no_grad():
        assert torch.equal(model(window[:, -9:-1]).logits[:, -1].argmax(-1), window[:, -1])
    assert model.generate(torch.ones(1, 40, dtype=torch.long), 1, temperature=0).shape == (1, 41)
    assert torch.equal(model.generate(ids, 0), ids)
    with pytest.raises(ValueError, match="max_new_tokens=-1"):
        model.generate(ids, -1)


def test_a_text_is_never_continued_after_its_padding(ids):
    model, padded = model_with(), F.pad(ids, (0, 3))
    for wrong, row in ((torch.cat([ids[:1], F.pad(ids[1:, :12], (0, 1))]), 1), (padded, 0), (padded[:1], 0),
                       (torch.cat([ids, padded[:1, 3:]]), 2), (F.pad(ids[:1, :0], (0, 4)), 0)):
        for number in (0, 3):
            with pytest.raises(ValueError, match=rf"row {row} .*pad_id=0.*one text at a time"):
                model.generate(wrong, number)
    with pytest.raises(ValueError, match=r"\(13,\).*token_ids\[None\]"):
        model.generate(ids[0], 0)
    for begun in (torch.zeros(1, 1, dtype=torch.long), torch.arange(4)[:, None], F.pad(ids, (0, 1))):
        assert model.generate(begun, 3).shape == (len(begun), begun.shape[1] + 3)     # 0 begins a text, too


@pytest.mark.parametrize("training", [True, False])
def test_after_an_interruption_the_model_is_in_the_mode_that_it_was_in(training, ids):
    model = model_with(dropout=0.1).train(training)
    seen = []

    def interrupt(module, inputs, output):
        seen.append(module.training)
        if len(seen) == 3:
            raise KeyboardInterrupt

    model.decoder.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.generate(ids, 5)
    assert seen == [False] * 3 and all(module.training == training for module in model.modules())


def test_bits_per_byte_by_hand():
    assert bits_per_byte(8 * math.log(2), ["abcd"]) == pytest.approx(2)
    assert bits_per_byte(8 * math.log(2), ["ab", "é"]) == pytest.approx(2)     # é has two bytes


def test_a_model_is_saved_and_loaded_with_its_tokenizer(tmp_path):
    torch.manual_seed(0)
    model = LanguageModel(LanguageModelConfig(260, d_model=16, num_heads=2, d_ff=16, num_layers=1, max_len=8)).eval()
    write_model(tmp_path / "kept", model, BPETokenizer([(1, 2), (3, 4), (257, 5)]), {}, LanguageModel)
    read, tokenizer, _ = read_model(tmp_path / "kept", LanguageModel, LanguageModelConfig)
    ids = torch.tensor([tokenizer.encode("def f():")])
    with torch.no_grad():
        assert torch.equal(read(ids[:, :8]).logits, model(ids[:, :8]).logits)
    assert isinstance(read, LanguageModel)


# the notebook's model

ANSWERS = {"inputs_and_targets": "13.1", "causal_loss": "13.2", "nucleus": "13.3", "bits_for_each_byte": "13.6",
           "generate": "13.7"}


@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 13 define, with the course's answers to its exercises."""
    cells, names = cells_of("13_language_model"), {name: answers_to(id).reference for name, id in ANSWERS.items()}
    for cell in ("imports", "export-decoder", "three-gram-class", "sampling", "no-repeat-model", "export-cache"):
        exec(cells[cell], names)
    return names


@pytest.fixture(scope="module")
def code() -> CodeCompleter:
    return CodeCompleter.load()


def test_the_checkpoint_gives_the_same_logits_and_gradients_in_the_notebooks_model(taught, code):
    package, notebook = code.model.double(), taught["LanguageModel"](code.tokenizer.vocab_size).double()
    notebook.load_state_dict(package.state_dict())                         # strict: the same names, and no others
    some = torch.randint(1, 4096, (2, 20), generator=torch.Generator().manual_seed(0))
    same(notebook(some), package(some).logits)
    same_gradients(notebook(some), [*notebook.parameters()], package(some).logits, [*package.parameters()])
    package.float()


def test_the_learners_cells_from_04_to_13_are_the_checkpoints_model(code):
    """Attention of 04, heads of 05, turned as in 06, in the blocks of 07 and the model of 13: nothing from the package."""
    names = cells_of_the_blocks()

    class Stack(names["Encoder"]):                                         # 13 asks for the result's .x
        def forward(self, x, mask, rotary):
            return SimpleNamespace(x=super().forward(x, mask, rotary))

    names |= {"Encoder": Stack, "causal_mask": lambda n: torch.ones(n, n).tril().bool()}
    exec(cells_of("13_language_model")["export-decoder"], names)
    learners = names["LanguageModel"](4096).eval()
    learners.load_state_dict(code.model.state_dict())
    some = torch.randint(1, 4096, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(learners(some), code.model(some).logits, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_notebooks_model_with_a_cache_gives_the_logits_of_the_one_without(taught, code):
    some = torch.randint(1, 4096, (2, 12), generator=torch.Generator().manual_seed(0))
    model = taught["WithCache"](4096).eval()
    model.load_state_dict(code.model.state_dict())
    for sizes in ((12,), (1,) * 12, (5, 1, 6)):
        model.start()
        parts = torch.cat([model(piece) for piece in some.split(sizes, dim=1)], dim=1)
        torch.testing.assert_close(parts, code.model(some).logits, atol=1e-4, rtol=1e-4)
        held = sum(cache.key.numel() + cache.value.numel() for cache in model.caches)
        assert held == some.numel() * 2 * code.model.config.num_layers * code.model.config.d_model


@torch.no_grad()
def test_what_13_prints_of_the_code_model_without_a_claim(taught, code):
    def kept(text):
        ids = torch.tensor([[0, *code.tokenizer.encode(text)]])
        return int((taught["chances"](code.model(ids).logits[0, -1], top_p=0.9) > 0).sum())

    assert kept("def __init__(self") < 10 and kept("for i in") > 300
    [best] = code.complete("import json\n\ndef load(path):\n    with open(path) as file:\n        return json.lo", number=1)
    assert best.text.startswith("load")


def test_what_13_prints_of_the_results_without_a_claim():
    five_gram = by_model(read_runs("code_baselines"))["Kneser–Ney 5-gram"][0]["test"]["overall"]
    assert max(run["test"]["windows"]["512"] for run in by_model(read_runs("code_completion"))["attention"]) < five_gram
    [tab] = by_model(read_runs("completion_speed"))["Tab"]
    assert max(times["p95"] for times in tab["measured"].values()) < 150


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.8}, {"top_k": 20, "top_p": 0.6},
                                     {"temperature": 1.7, "top_p": 0.9}])
def test_the_notebooks_chances_are_the_packages(taught, options):
    logits = 2 * torch.randn(5, 50, generator=torch.Generator().manual_seed(0))
    for row in logits:
        given = options
        torch.testing.assert_close(taught["chances"](row, **given), sampling_probabilities(row, **given), atol=1e-6, rtol=0)


def test_the_notebooks_loop_writes_what_the_packages_writes(taught, code):
    begun = torch.tensor([[0, *code.tokenizer.encode("with open(path")]])
    notebook = taught["generate"](lambda ids: code.model(ids).logits, begun, 8, lambda row: row.argmax(dim=-1), 256)
    assert torch.equal(notebook, code.model.generate(begun, 8, temperature=0))


def test_the_notebooks_3_gram_is_a_distribution(taught):
    counted = taught["ThreeGram"]([1, 2, 3, 1, 2, 4, 1, 2, 3], 6)
    for two in ((1, 2), (2, 4), (5, 5), (3, 1)):
        assert sum(counted.probability(two, token) for token in range(6)) == pytest.approx(1)
    # after 1, 2 came 3 (twice) and 4 (once): n = 3, k = 2
    after_2 = counted.probability((0, 2), 3)
    assert counted.probability((1, 2), 3) == pytest.approx((2 + 2 * after_2) / 5)


def test_no_run_comes_twice_in_a_text_without_repeats(taught):
    scores = torch.randn(9, generator=torch.Generator().manual_seed(0))
    model = taught["without_repeats"](lambda ids: scores.repeat(*ids.shape, 1), 3)
    ids = taught["generate"](model, torch.tensor([[1, 2]]), 30, lambda row: row.argmax(dim=-1), 100)[0].tolist()
    runs = list(zip(ids, ids[1:], ids[2:]))
    assert len(set(runs)) == len(runs)
