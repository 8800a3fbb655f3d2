"""The result set on Multi30k: equal sizes, what a run says, what is kept; on a handful of made sentences."""

import json

import pytest
from datasets import Dataset, DatasetDict
from small_corpora import made_translations

from course_tools.studies.runner import run_missing
from course_tools.studies.sets import find_set
from course_tools.studies.sets import multi30k as made
from course_utils.encoder_decoder import Transformer, TransformerConfig
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig
from course_utils.results import read_runs
from course_utils.translation.subwords import SubwordTranslator

CACHED = (made.texts, made.pieces, made.settings)
COUNTS = {"train": 60, "validation": 12, "test": 20}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Sixty pairs, networks of eight dimensions, two epochs, and a folder of its own for what's kept."""
    def load(source):
        assert source == "multi30k"
        pairs = {split: made_translations(count, seed) for seed, (split, count) in enumerate(COUNTS.items())}
        return DatasetDict({split: Dataset.from_dict({"source": english, "target": french})
                            for split, (english, french) in pairs.items()})

    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(made, "load_translations", load)
    monkeypatch.setattr(made, "VOCAB_SIZE", 280)
    monkeypatch.setattr(made, "BATCH_SIZE", 16)
    for name in ("TRANSFORMER", "PUBLISHED"):
        monkeypatch.setattr(made, name, getattr(made, name) | {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1})
    monkeypatch.setattr(made, "RECURRENT", made.RECURRENT | {"d_model": 8, "d_hidden": 8})
    for row, changed in list(made.ROWS.items()):
        fewer = {"epochs": 2} | ({"vocab_size": 290} if "vocab_size" in changed else {})
        monkeypatch.setitem(made.ROWS, row, changed | fewer)
    for function in CACHED:
        function.cache_clear()
    yield tmp_path
    for function in CACHED:
        function.cache_clear()


def size(net) -> int:
    return sum(p.numel() for p in net.parameters())


def test_both_kinds_of_network_have_equally_many_parameters_to_five_per_cent():
    vocab = made.VOCAB_SIZE
    attention = size(Transformer(TransformerConfig(vocab, vocab, **made.TRANSFORMER)))
    recurrent = size(Seq2Seq(Seq2SeqConfig(vocab, vocab, **made.RECURRENT)))
    assert abs(recurrent / attention - 1) < 0.05, (recurrent, attention)
    assert 2 * attention + 200_000 < 12_000_000, "the kept file, in half precision, may have 12 MB"


def test_rows_that_are_compared_differ_in_the_network_alone():
    attention, recurrent = made.ROWS["Transformer, 20 minutes"], made.ROWS["recurrent, equal steps"]
    assert attention | {"network": "recurrent"} == recurrent
    assert made.ROWS["recurrent, as many minutes"] | {"epochs": recurrent["epochs"]} == recurrent
    assert made.ROWS[made.HOUR] | {"epochs": attention["epochs"]} == attention


@pytest.mark.slow
def test_every_row_can_be_made_and_the_first_is_kept_with_its_licence(small):
    assert find_set("multi30k") is made.SET
    wanted = made.SET.wanted([0, 1, 2])
    assert len(set(wanted)) == len(wanted) == 4 * 3 + 1 and (made.PAPER, 1) not in wanted
    runs = []
    for row in made.ROWS:
        run = made.run(row, 0, small / "state")
        (small / "state").unlink()
        runs.append({"model": row, "order": len(runs), "change": made.SET.describe(row), "device": "cpu (x)", **run})
        batches = -(-COUNTS["train"] // made.ROWS[row].get("batch_size", made.BATCH_SIZE))
        assert run["steps"] == 2 * batches and len(run["history"]) == 2 and run["cpu_seconds"] > 0
        assert run["test"]["beam"]["sentences"] == 20 and len(run["test"]["worst"]) == 10
        assert sum(group["sentences"] for group in run["test"]["by_length"].values()) == 20
        assert "BLEU" in made.line([run]) and "mean" in made.line([run])
    written = json.dumps(runs)
    assert not any(word in written for word in ("chien", "garçon", "paints"))   # nothing of the texts
    folder = small / "outputs" / "models" / "multi30k"
    note = (folder / "README.md").read_text(encoding="utf-8")
    first = runs[0]
    assert f"{first['parameters']:,} parameters" in note and f"BLEU {first['test']['beam']['bleu']['score']}" in note
    assert "Flickr30k's terms" in note and "{" not in note
    again = made.scored(SubwordTranslator.load(folder))
    for scores in (again["beam"], first["test"]["beam"]):
        scores.pop("seconds")
    assert again["beam"] == first["test"]["beam"] and again["worst"] == first["test"]["worst"]


def test_the_published_network_has_one_table_and_reads_tokens_in_lower_case(small):
    translator = made.new_translator(made.PAPER, 0)
    net, config = translator.model, translator.model.config
    assert net.source_embedding is net.target_embedding and net.output is None
    separate = size(Transformer(config))
    assert size(net) == separate - config.vocab_size * config.d_model
    assert (config.norm_first, config.positions, config.activation) == (False, "sinusoidal", "relu")
    english, french = made.texts(True)["train"]
    assert all(text == text.lower() and text.endswith(" .") for text in (*english, *french))
    assert any("l' homme" in text for text in french)


def test_an_interrupted_run_goes_on_and_a_finished_one_is_not_repeated(small, monkeypatch):
    seen, whole = [], made.fit

    def cut(net, train, validation, **options):
        seen.append(options["checkpoint"].is_file())
        result = whole(net, train, validation, **options)
        if len(seen) == 1:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(made, "fit", cut)
    results = small / "results"
    with pytest.raises(KeyboardInterrupt):
        run_missing([made.SET], [0], jobs=1, folder=results, only="equal steps", progress=False)
    assert run_missing([made.SET], [0], jobs=1, folder=results, only="equal steps", progress=False) == 0
    assert run_missing([made.SET], [0], jobs=1, folder=results, only="equal steps", progress=False) == 0
    assert seen == [False, True]
    (run,) = json.loads((results / "multi30k.json").read_text())
    assert run["model"] == "recurrent, equal steps" and len(run["history"]) == 2


def test_settings_change_with_the_recipe_and_with_the_texts(small, monkeypatch):
    before = made.settings()
    made.settings.cache_clear()
    monkeypatch.setitem(made.FIT, "warmup", 0.2)
    assert made.settings() != before
    monkeypatch.undo()


@pytest.mark.parametrize("run", read_runs("multi30k"), ids=lambda run: f"{run['model']}-{run['seed']}")
def test_the_runs_in_the_file_have_every_score_and_made_their_steps(run):
    assert {"bleu", "chrf", "split_bleu", "seconds"} <= set(run["test"]["beam"]) and run["test"]["beam"]["sentences"] == 1000
    steps = -(-29_000 // run["change"].get("batch_size", made.BATCH_SIZE)) * run["change"]["epochs"]
    assert run["steps"] == steps and len(run["history"]) == run["change"]["epochs"]
