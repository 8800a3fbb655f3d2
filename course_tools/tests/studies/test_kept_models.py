"""The models that come with the course are those that the result files speak of, and score as these say."""

import dataclasses

import pytest
import torch

from course_tools.studies.sets import code_completion, induction, recurrent_attention, translation
from course_tools.studies.sets.recurrent_attention import alignment_scores, translation_scores
from course_tools.studies.sets.translation import head_alignments
from course_utils.distillation import CautiousClassifier
from course_utils.files import sha256
from course_utils.files.paths import CHECKPOINTS
from course_utils.recipes import small_language_models
from course_utils.recurrent_attention import greedy
from course_utils.results import fingerprint, read_runs, right_of
from course_utils.training.pair_batches import EncodedPairs
from course_utils.translation import transformers
from course_utils.translation.translators import gold_links, kept_translator, translation_corpus


@pytest.mark.parametrize("row", recurrent_attention.KEPT)
def test_the_translators_that_come_with_the_course_are_those_of_the_file(row):
    run = next(run for run in read_runs("recurrent_attention") if (run["model"], run["seed"]) == (row, 0))
    model, pairs = kept_translator(recurrent_attention.KEPT[row]), translation_corpus().pairs["test"]
    assert dataclasses.asdict(model.config).items() >= recurrent_attention.ROWS[row].items()
    assert sum(p.numel() for p in model.parameters()) == run["parameters"]
    few = EncodedPairs(pairs.source[:200], pairs.target[:200])
    right = right_of({"test": translation_scores(model, few, {})})
    assert (right == right_of(run)[:200]).mean() > 0.98                    # kept in half precision, and on any processor
    assert greedy(model, torch.tensor([pairs.source[0]]), torch.ones(1, len(pairs.source[0]), dtype=torch.bool)).ids[0]


def test_the_alignment_error_of_the_translator_that_comes_with_the_course_is_that_of_the_file():
    """The AER of additive attention over the whole test split, and with its weights read one row off."""
    told = next(run["alignment"] for run in read_runs("recurrent_attention")
                if (run["model"], run["seed"]) == ("additive, before, GRU", 0))
    corpus = translation_corpus()
    found = alignment_scores(kept_translator("additive"), corpus.pairs["test"], gold_links(corpus.splits["test"]))
    assert found["aer"] == pytest.approx(told["aer"], abs=0.003)           # kept in half precision, and on any processor
    assert found["shifted"] == pytest.approx(told["shifted"], abs=0.003)


def test_the_alignment_error_without_a_network_is_that_of_the_file():
    """The diagonal and IBM Model 1, counted again from the pairs."""
    corpus = translation_corpus()
    gold = gold_links(corpus.splits["test"])
    for run in read_runs("recurrent_attention"):
        if run["model"] in recurrent_attention.ALIGNERS:
            again = recurrent_attention.align(run["model"], corpus, gold)["alignment"]["aer"]
            assert again == pytest.approx(run["alignment"]["aer"], abs=1e-3)


def test_the_alignment_errors_of_the_translator_that_comes_with_the_course_are_those_of_the_file():
    """Every head, over the whole test split, in the row that writes a word and in the row that reads it."""
    told = next(run["test"]["alignment_error_rate"] for run in read_runs("translation")
                if (run["model"], run["seed"]) == (translation.KEPT, 0))
    found = head_alignments(transformers.trained_translator(0), transformers.translations()["test"])
    for name, rates in found._asdict().items():
        assert torch.allclose(rates, torch.tensor(told[name], dtype=rates.dtype), atol=0.003), name   # on any processor


def test_the_committed_models_are_those_of_the_runs():
    for run in read_runs("induction"):
        if name := {induction.KEPT: "induction", induction.LONGER: "induction-without-help"}.get(run["model"]):
            assert (CHECKPOINTS / f"{name}-seed-{run['seed']}.safetensors").stat().st_size < 1e6
            accuracy = induction.scores(small_language_models.kept_model(name, run["seed"])[0])["accuracy"]
            assert accuracy == pytest.approx(run["test"]["accuracy"], abs=0.005)


def weights_of(state):
    return fingerprint([sha256(tensor.numpy().tobytes()) for tensor in state.values()])


def test_the_reader_that_comes_with_the_course_learned_on_and_was_best_on_validation_texts():
    runs = read_runs("reader_more")
    for seed in {run["seed"] for run in runs}:
        assert len({run["begun"] for run in runs if run["seed"] == seed}) == 1          # both rows began as the same reader
    best = max((run for run in runs if run["model"] == "more sentences"),
               key=lambda run: max(part["validation_accuracy"] for part in run["history"]))
    assert best["ended"] == weights_of(CautiousClassifier.load("reader").classifier.model.state_dict())


@pytest.mark.parametrize("name", ["code_completion", "code_elsewhere"])
def test_the_code_models_are_those_that_were_scored(name):
    for run in read_runs(name):
        assert run["weights"] == code_completion.weights_of(code_completion.folder_of(run["seed"]))
