"""Repeated tokens and what heads do with them; what models of generated programs learn from, and how they're scored."""

import shutil

import pytest
import torch
from torch.nn import functional as F

from course_tools.studies import kept_models, program_models
from course_tools.studies.program_models import (
    Phase,
    ProgramBatches,
    Recipe,
    answer_loss,
    answers_of,
    can_be_found,
    padded,
    program_ids,
    start_local,
)
from course_tools.studies.recurrent_language_model import RecurrentLanguageModel
from course_tools.studies.sets import context, induction
from course_utils.data.programs import KINDS, make_programs
from course_utils.files.paths import CHECKPOINTS
from course_utils.language_model import LanguageModel, LanguageModelConfig, LanguageModelResult
from course_utils.recipes import small_language_models
from course_utils.recipes.small_language_models import head_scores, keep_model, kept_model, repeated_tokens
from course_utils.results import read_runs

PROGRAMS = make_programs(100, gap=(5, 40), seed=11)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_repeated_tokens_repeat_after_their_period_and_not_before():
    rows = repeated_tokens([2, 7, 20], 20, 66, generator())
    for row, period in zip(rows.tolist(), (2, 7, 20)):
        assert len(set(row)) == period and min(row) >= 2 and max(row) < 66
        assert all(row[i] == row[i - period] for i in range(period, 20))
    assert not rows.equal(repeated_tokens([2, 7, 20], 20, 66, generator(1)))
    with pytest.raises(ValueError, match="a period of 9 needs as many different ids, and there are 8"):
        repeated_tokens([3, 9], 20, 10, generator())


def test_what_looking_back_finds_begins_after_the_first_token_that_repeats():
    ids = torch.tensor([[5, 3, 4, 5, 3, 4, 5, 3], [7, 6, 7, 6, 7, 6, 7, 6], [2, 3, 4, 5, 6, 7, 8, 2]])
    assert can_be_found(ids).int().tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1], [0] * 8]


def test_the_induction_score_is_one_for_a_head_that_does_as_defined():
    period, one_hot = 4, torch.eye(8)
    after_previous = one_hot[[max(0, q - period + 1) for q in range(8)]]
    before = one_hot[[max(0, q - 1) for q in range(8)]]
    found = head_scores([torch.stack([after_previous, before])[None]], period)
    assert found["induction"].tolist() == [[1.0, 0.0]] and found["previous"].tolist() == [[0.0, 1.0]]
    uniform = torch.tril(torch.ones(8, 8)) / torch.arange(1, 9)[:, None]
    expected = sum(1 / (q + 1) for q in (4, 5, 6)) / 3
    assert head_scores([uniform[None, None]], period)["induction"].item() == pytest.approx(expected)


def test_a_local_start_looks_nearby_in_layer_0_and_nowhere_else():
    def weights(local: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = LanguageModel(LanguageModelConfig(66, d_model=64, num_heads=2, d_ff=32, num_layers=2))
        if local:
            start_local(model, [2.5, 2.5])
        return model.eval()(repeated_tokens([40] * 8, 40, 66, generator()), need_weights=True).attentions

    def nearby(layer: torch.Tensor) -> float:
        return sum(layer.diagonal(-back, dim1=2, dim2=3)[..., 10:].mean().item() for back in range(3))

    usual, local = weights(False), weights(True)
    assert nearby(local[0]) > 0.6 > 3 * nearby(usual[0])
    assert nearby(local[1]) == pytest.approx(nearby(usual[1]), rel=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_one_token_that_the_tokenizer_knows(kind):
    tokenizer = program_models.program_tokenizer()
    for program in (one for one in [*PROGRAMS, *context.test_programs(50)] if one.kind == kind):
        *before, answer = program_ids(program)
        assert tokenizer.vocabulary[answer] == program.text[slice(*program.answer)]
        assert before == tokenizer.encode(program.text[: program.answer[0]])
        assert tokenizer.unk_id not in tokenizer.encode(program.text)
        assert all(tokenizer.encode(candidate) != [tokenizer.unk_id] for candidate in program.candidates)


SHORT = Recipe(KINDS, (Phase(1, (), 4), Phase(2, ((5, 15),), 3), Phase(1, ((20, 30), (40, 60)), 0)), (2.5,) * 4)


def test_the_phases_of_training_come_one_after_another(monkeypatch):
    monkeypatch.setattr(program_models, "EPOCH", 6)
    data = ProgramBatches(0, SHORT)
    assert len(data) == 6 and data.ends == [1, 3, 4]
    assert [len(data.repeated(epoch, 0)) for epoch in range(1, 5)] == [4, 3, 3, 0]
    assert [len(data.programs(epoch, 0)) > 0 for epoch in range(1, 5)] == [False, True, True, True]
    for epoch, low, high in ((2, 5, 40), (3, 5, 40), (4, 20, 60)):
        assert all(low <= program.gap <= high for step in range(6) for program in data.programs(epoch, step))
    batches = list(data.batches(2))
    assert all(one.equal(again) for one, again in zip(batches, data.batches(2), strict=True))
    assert not batches[1].equal(list(ProgramBatches(1, SHORT).batches(2))[1])


class Stopped(Exception):
    pass


@pytest.mark.parametrize("kind", ["attention", "LSTM"])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(monkeypatch, tmp_path, kind):
    monkeypatch.setattr(program_models, "EPOCH", 3)
    monkeypatch.setattr(program_models, "TOKENS", 256)

    def untrained(d_model: int = 16):
        torch.manual_seed(0)
        size = program_models.program_tokenizer().vocab_size
        if kind == "LSTM":
            return RecurrentLanguageModel(size, d_model=d_model, d_hidden=16, num_layers=1)
        return LanguageModel(LanguageModelConfig(size, d_model=d_model, num_heads=2, d_ff=16, num_layers=1, max_len=400))

    def train(model, stop_after=None):
        trained, epochs = [], program_models.train_epoch

        def counted(*arguments, **named):
            if len(trained) == stop_after:
                raise Stopped
            trained.append(1)
            return epochs(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(program_models, "train_epoch", counted)
            return program_models.train_on_programs(model, 0, SHORT, tmp_path / "state"), len(trained)

    whole, again = untrained(), untrained()
    state = program_models.train_on_programs(whole, 0, SHORT)
    with pytest.raises(Stopped):
        train(again, stop_after=2)
    again = untrained()
    resumed, trained = train(again)
    assert trained == 2 and resumed.history == state.history and len(state.history) == 4
    assert all(one.equal(other) for one, other in zip(whole.state_dict().values(), again.state_dict().values(), strict=True))
    assert train(untrained())[1] == 0                                      # all epochs are there
    assert train(untrained(d_model=32))[1] == 4                            # of another model: anew


def test_a_model_is_asked_for_answers_and_for_what_looking_back_finds(monkeypatch):
    monkeypatch.setattr(program_models, "EPOCH", 3)
    data = ProgramBatches(0, SHORT)
    for epoch in (1, 2, 4):
        ids, asked = list(data.batches(epoch))[1]
        made, repeated = data.programs(epoch, 1), data.repeated(epoch, 1)
        expected = [program_ids(program) for program in made]
        assert ids.equal(padded([*expected, *repeated.tolist()]))
        assert ids[asked == program_models.ANSWER].tolist() == [row[-1] for row in expected]
        assert (asked[len(made) :, :40] == program_models.PRACTICE).equal(can_be_found(repeated)[:, : asked.shape[1]])
        assert (asked[: len(made)] == program_models.PRACTICE).sum() == 0


class Oracle(torch.nn.Module):
    """Knows programs by heart: their answers get the highest logit, or with `second` the second highest."""

    def __init__(self, programs, second: bool):
        super().__init__()
        self.answers, self.second = {tuple(ids[:-1]): ids[-1] for ids in map(program_ids, programs)}, second

    def forward(self, token_ids):
        logits = torch.zeros(*token_ids.shape, program_models.program_tokenizer().vocab_size)
        logits[..., 1] = 9.0 if self.second else 0.0
        for row, ids in enumerate(token_ids.tolist()):
            for length in range(1, len(ids) + 1):
                if tuple(ids[:length]) in self.answers:
                    logits[row, length - 1, self.answers[tuple(ids[:length])]] = 5.0
        return LanguageModelResult(logits, None)


@pytest.mark.parametrize("tokens", [1, 700, 100_000])
def test_answers_are_scored_before_all_tokens_and_before_the_candidates(tokens):
    said = answers_of(Oracle(PROGRAMS, second=False), PROGRAMS, tokens)
    assert all(said["right"]) and all(said["among"])
    said = answers_of(Oracle(PROGRAMS, second=True), PROGRAMS, tokens)
    assert not any(said["right"]) and all(said["among"])
    known = answers_of(Oracle(PROGRAMS[:40], second=False), PROGRAMS, tokens)
    assert known["right"] == [True] * 40 + [False] * 60 and known["nats"][0] < 2 < known["nats"][50]


def test_the_loss_adds_the_mean_over_answers_and_the_mean_over_practice(monkeypatch):
    monkeypatch.setattr(program_models, "EPOCH", 2)
    ids, asked = batch = list(ProgramBatches(3, SHORT).batches(2))[1]
    model = program_models.new_program_model(0)
    nats = {program_models.ANSWER: [], program_models.PRACTICE: []}
    for row, why in zip(ids, asked):
        logits = F.log_softmax(model(row[None]).logits[0], dim=1)
        for i in why.nonzero().flatten().tolist():
            nats[int(why[i])].append(-logits[i - 1, row[i]].item())
    loss, rows = answer_loss(model, batch)
    assert rows == len(ids) and len(nats[1]) == rows - 3 and len(nats[2]) > 20
    assert loss.item() == pytest.approx(sum(sum(part) / len(part) for part in nats.values()), abs=1e-3)


def test_a_test_program_is_in_no_training_and_scored_with_its_chance():
    seen = {program.text for seed in range(2) for epoch in (6, 20) for step in range(20)
            for program in ProgramBatches(seed).programs(epoch, step)}
    test = context.test_programs(50)
    assert not seen & {program.text for program in test}
    result = context.scored(test, lambda made: {"right": [True] * len(made), "among": [p.kind == "name" for p in made]})
    assert result["accuracy"] == 1 and result["among"] == 0.2 and result["among_by_kind"]["name"] == 1
    assert result["gap"] == 50 and result["reviews_by_kind"] == dict.fromkeys(KINDS, 100)
    chance = [1 / len(program.candidates) for program in test if program.kind == "bracket"]
    assert result["chance_by_kind"]["bracket"] == pytest.approx(sum(chance) / 100, abs=1e-3)


def test_a_5_gram_of_a_programs_own_text_finds_its_answer():
    counted = context.KneserNey(program_models.program_tokenizer().vocab_size, order=5).fit(map(program_ids, PROGRAMS[:1]))
    said = context.counted_answers(counted, PROGRAMS[:1])
    assert said == {"right": [True], "among": [True]}


def keep_tiny(seed: int) -> None:
    keep_model("tiny", seed, LanguageModel(LanguageModelConfig(66, d_model=8, num_heads=2, d_ff=8, num_layers=1)),
               induction.word_tokenizer())


def test_a_kept_model_is_read_and_one_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no model 'tiny' of seed 3.*python -m course_tools models"):
        kept_model("tiny", 3)
    keep_tiny(3)
    first, second = kept_model("tiny", 3)[0], kept_model("tiny", 3)[0]
    assert first.embedding.weight.equal(second.embedding.weight)


def test_a_model_is_brought_along_once_and_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(small_language_models, "CHECKPOINTS", tmp_path / "checkpoints")
    (tmp_path / "checkpoints").mkdir()
    made = []

    def make(seed: int) -> None:
        made.append(seed)
        keep_tiny(seed)

    for _ in range(2):
        path = kept_models.bring_along("tiny", 1, make)
    assert made == [1] and path == tmp_path / "checkpoints" / "tiny-seed-1"
    shutil.rmtree(tmp_path / "outputs")
    assert kept_model("tiny", 1)[1].vocab_size == 66


def test_the_committed_models_are_those_of_the_runs():
    for run in read_runs("induction"):
        if run["model"] == induction.KEPT:
            assert (CHECKPOINTS / f"induction-seed-{run['seed']}.safetensors").stat().st_size < 1e6
            accuracy = induction.scores(small_language_models.induction_model(run["seed"])[0])["accuracy"]
            assert accuracy == pytest.approx(run["test"]["accuracy"], abs=0.005)
