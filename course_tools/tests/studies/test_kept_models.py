"""The models that come with the course are those that the result files speak of, and score as these say."""

import dataclasses

import pytest
import torch

from course_tools.studies.kept_encoder import LICENCE, frequent_pieces, make_encoder
from course_tools.studies.sets import code_completion, induction, recurrent_attention, translation
from course_tools.studies.sets.recurrent_attention import alignment_scores, translation_scores
from course_tools.studies.sets.translation import head_alignments
from course_utils.distillation import CautiousClassifier
from course_utils.files import sha256
from course_utils.files.paths import CHECKPOINTS
from course_utils.pretraining import BertConfig, BertEncoder, WordPieceTokenizer, load_bert
from course_utils.recipes import small_language_models
from course_utils.recurrent_attention import greedy
from course_utils.results import fingerprint, read_runs, right_of
from course_utils.training.pair_batches import EncodedPairs
from course_utils.training.saved_models import read_note
from course_utils.training.word_piece_files import SPECIAL
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
    """Seeds 1 and 2 were rounded to 8 bits after that; each file notes the weights that were rounded."""
    for run in read_runs(name):
        model = code_completion.folder_of(run["seed"])
        if run["seed"] == 0:
            assert run["weights"] == code_completion.weights_of(model)
        else:
            assert run["weights"] == read_note(model, "rounded")["weights_before"]


def test_the_encoder_is_a_part_of_a_bert_and_rounding_moves_it_little(tmp_path):
    torch.manual_seed(0)
    vocabulary = [*SPECIAL, *"abc", "##a", "##b", "##c", "film"]
    whole = BertEncoder(BertConfig(len(vocabulary), d_model=24, num_heads=3, d_ff=48, num_layers=4, max_len=20)).eval()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film", "a", "##b"]
    folder = make_encoder(whole, WordPieceTokenizer(vocabulary), tmp_path / "part", pieces, layers=(0, 2), max_len=8)
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "README.md", LICENCE.name}
    part, tokenizer = load_bert(folder, dropout=0.0)
    assert tokenizer.vocabulary == pieces and part.config.num_layers == 2 and part.pooler is None
    text = "a film ab"
    ids = [torch.tensor([one.encode(text)]) for one in (tokenizer, WordPieceTokenizer(vocabulary))]
    whole.encoder.blocks = torch.nn.ModuleList([whole.encoder.blocks[0], whole.encoder.blocks[2]])
    with torch.no_grad():
        got, expected = part(ids[0]).x, whole(ids[1]).x
    assert (got - expected).abs().max() < 0.05 and (got - expected).abs().max() > 0    # 8 bits a weight
    with pytest.raises(ValueError, match="no head for hidden words"):
        load_bert(folder, masked=True)


def test_the_encoder_that_comes_with_the_course_loads_by_its_name():
    encoder, tokenizer = load_bert("encoder")
    assert (encoder.config.num_layers, encoder.config.vocab_size, tokenizer.vocab_size) == (3, 7000, 7000)
    assert tokenizer.encode("a film")[0] == tokenizer.cls_id and frequent_pieces() == tokenizer.vocabulary
