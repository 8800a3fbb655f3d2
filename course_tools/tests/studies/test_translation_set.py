"""The scores of a translation model, on models whose answers are known; and the result set in small."""

import json

import pytest
import torch
from torch.nn import functional as F

from course_tools.studies.sets import find_set
from course_tools.studies.sets import translation as made
from course_tools.studies.sets.translation import head_alignments, pronoun_looks, shut_answers
from course_utils.encoder_decoder import Attentions, DecoderResult, Memory, Transformer, TransformerConfig, Translator
from course_utils.encoder_decoder.model import TransformerResult
from course_utils.results import read_runs
from course_utils.training.pair_batches import BEGIN
from course_utils.translation import transformers as shared
from course_utils.translation.scores import exact_matches, pronoun_answers, pronoun_texts, twin_answers

FEMININE = ("Elle", "Elles")


@pytest.fixture(scope="module")
def test_split():
    return shared.translations()["test"]


@pytest.fixture(scope="module")
def texts(test_split):
    return pronoun_texts(Translator(None, *shared.word_lists()), test_split)


def right_exact(rows):
    return [list(row["target_tokens"]) for row in rows]


def test_a_translation_counts_if_it_is_the_reference_word_for_word(test_split):
    few = test_split.select(range(6))
    said = right_exact(few)
    assert exact_matches(said, few)["accuracy"] == 1
    said[2] = said[2][:-1]
    assert exact_matches(said, few)["accuracy"] == pytest.approx(5 / 6)
    with pytest.raises(ValueError):
        exact_matches(said[:5], few)


# alignments

class Aligner:
    """Head 0 looks at the gold link in the row that writes a word, head 1 one row later, head 2 at the first word."""

    def __init__(self, rows, source_words):
        self.gold = {tuple(source_words.encode(row["source_tokens"])): {t: s for s, t in row["alignment"]} for row in rows}

    def __call__(self, source_ids, source_mask, target_ids, need_weights):
        cross = torch.zeros(len(source_ids), 3, target_ids.shape[1], source_ids.shape[1])
        cross[:, :, :, 0] = 0.1
        for i, (ids, mask) in enumerate(zip(source_ids, source_mask)):
            for target, source in self.gold[tuple(ids[mask].tolist())].items():
                cross[i, 0, target, source] = 0.9
                cross[i, 1, target + 1, source] = 0.9
        return TransformerResult(None, Attentions([], [], [cross]))


def test_a_head_that_follows_the_gold_alignment_has_no_errors_in_its_own_row_alone(test_split):
    rows = [i for i, row in enumerate(test_split.select(range(400)))
            if sorted(t for _, t in row["alignment"]) == list(range(len(row["target_tokens"])))]
    few = test_split.select(rows[:30])                  # with one link for each French word, all of them can be found
    assert len(few) == 30 and len({len(row["target_tokens"]) for row in few}) > 3
    source_words, target_words = shared.word_lists()
    found = head_alignments(Translator(Aligner(few, source_words), source_words, target_words), few, batch_size=7)
    assert found.writes.shape == found.reads.shape == (1, 3)
    assert found.writes[0, 0] == pytest.approx(0, abs=1e-9) and found.reads[0, 1] == pytest.approx(0, abs=1e-9)
    assert found.writes[0, 1] > 0.5 and found.reads[0, 0] > 0.5
    words = sum(len(row["target_tokens"]) for row in few)
    first = sum(s == 0 for row in few for s, _ in row["alignment"])
    assert found.writes[0, 2] == pytest.approx(1 - first / words) == found.reads[0, 2]


# pronouns

def test_the_row_of_a_pronoun_is_the_one_that_writes_it_and_twins_differ_in_the_noun(test_split, texts):
    ids = shared.word_lists()[1].ids
    for i, row in enumerate(test_split.select(texts.rows)):
        place, twin = int(texts.place[i]), int(texts.twin[i])
        before = [BEGIN, *(ids[word] for word in row["target_tokens"][:place])]
        assert texts.read[i, : place + 1].tolist() == before
        assert row["target_tokens"][place] in ("Il", "Elle", "Ils", "Elles")
        assert texts.right[i] == texts.wrong[twin] == ids[row["target_tokens"][place]] and texts.twin[twin] == i
        assert row["source_tokens"][texts.pronoun[i]] in ("It", "They")
        other = test_split[texts.rows[twin]]["source_tokens"]
        changed = [j for j, (a, b) in enumerate(zip(row["source_tokens"], other, strict=True)) if a != b]
        noun = int(texts.antecedent[i])
        assert noun == texts.antecedent[twin] and noun in changed and set(changed) <= {noun - 1, noun}
        assert {row["source_tokens"][j] for j in changed if j < noun} <= {"a", "an"}


class Knows:
    """A model that gets the noun's gender from one place: the memory's vector of the noun or of the pronoun, or the French.

    Its logits are those of the feminine forms, +1 or -1, and 0 for all other words.
    """

    def __init__(self, texts, target_words, place):
        self.place = place
        feminine = [target_words.ids[word] for word in FEMININE]
        self.forms = sum(F.one_hot(torch.tensor(word), target_words.vocab_size) for word in feminine)
        self.gender = {}
        for i in range(len(texts.rows)):
            sign = 1.0 if int(texts.right[i]) in feminine else -1.0
            self.gender[tuple(texts.source_ids[i].tolist())] = sign, int(texts.antecedent[i]), int(texts.pronoun[i])
            self.gender[tuple(texts.read[i, : texts.place[i] + 1].tolist())] = sign

    def encode(self, source_ids, source_mask):
        x = torch.zeros(*source_ids.shape, 1)
        for row, ids in zip(x, source_ids):
            sign, noun, pronoun = self.gender[tuple(ids.tolist())]
            row[{"noun": noun, "pronoun": pronoun}.get(self.place, 0)] = sign * (self.place != "French")
        return Memory(x, source_mask)

    def decode(self, memory, read):
        x = memory.x.sum(dim=1, keepdim=True).expand(-1, read.shape[1], -1).clone()
        for i, words in enumerate(read.tolist() if self.place == "French" else []):
            for last in range(len(words)):
                x[i, last] = self.gender.get(tuple(words[: last + 1]), 0.0)
        return DecoderResult(x, None, None)

    def logits(self, x):
        return x * self.forms


@pytest.mark.parametrize("place, follows", [
    ("noun", {"noun", "both", "source", "all"}), ("pronoun", {"pronoun", "both", "source", "all"}),
    ("French", {"French", "all"}),
])
def test_what_is_exchanged_turns_round_the_model_that_has_its_gender_from_there(texts, place, follows):
    model = Knows(texts, shared.word_lists()[1], place)
    assert pronoun_answers(model, texts).all()
    answers = twin_answers(model, texts)
    assert set(answers) == {"noun", "pronoun", "both", "source", "French", "all"}
    assert {name for name, right in answers.items() if not right.any()} == follows
    assert all(right.all() for name, right in answers.items() if name not in follows)


def test_a_model_that_ignores_the_noun_is_right_in_exactly_half_of_the_texts(texts):
    class Ignores(Knows):
        def encode(self, source_ids, source_mask):
            return Memory(torch.ones(*source_ids.shape, 1), source_mask)

    right = pronoun_answers(Ignores(texts, shared.word_lists()[1], "noun"), texts)
    assert right.float().mean() == 0.5 and not (right & right[texts.twin]).any()


def small_model(**changes):
    torch.manual_seed(0)
    english, french = shared.word_lists()
    options = dict(d_model=8, num_heads=2, d_ff=12, num_layers=2) | changes
    return Transformer(TransformerConfig(french.vocab_size, english.vocab_size, **options)).eval()


def test_exchanging_everything_gives_the_twins_own_answer(texts):
    model = small_model()
    right = pronoun_answers(model, texts)
    assert torch.equal(twin_answers(model, texts)["all"], ~right[texts.twin])


def test_every_head_is_shut_and_looked_at(texts):
    model = small_model()
    shut, looks = shut_answers(model, texts), pronoun_looks(model, texts)
    assert shut.shape == (6, 2) and ((shut >= 0) & (shut <= 1)).all()
    assert set(looks) == {"encoder", "cross", "decoder"} and all(weights.shape == (2, 2) for weights in looks.values())
    assert all(((weights > 0) & (weights < 1)).all() for weights in looks.values())


def test_a_split_without_pronouns_is_refused(test_split):
    with pytest.raises(ValueError, match="no texts with pronouns"):
        pronoun_texts(Translator(None, *shared.word_lists()), test_split.select(range(2)))


# the set

@pytest.mark.slow
def test_a_run_in_small(monkeypatch, tmp_path, test_split):
    names = list(test_split["id"])
    pronouns = [i for i, kind in enumerate(test_split["kind"]) if kind == "pronoun"][:2]
    twins = [names.index(test_split["pair"][i]) for i in pronouns]
    splits = {"train": shared.translations()["train"].select(range(64)), "validation": test_split.select(range(8)),
              "test": test_split.select([*range(6), *pronouns, *twins])}
    words = shared.word_lists()
    data = shared.PairBatches(shared.encode_pairs(splits["train"], *words), 64)
    for module in (made, shared):
        monkeypatch.setattr(module, "translations", lambda: splits)
        monkeypatch.setattr(module, "training_data", lambda: data)
    monkeypatch.setattr(shared, "output_folder", lambda: tmp_path)
    monkeypatch.setitem(made.FIT, "epochs", 1)
    run = made.run(made.KEPT, 3, None)
    json.dumps([run, made.SET.describe(made.KEPT)])
    assert run["steps"] == 1 and run["test"]["reviews"] == 10 and run["test"]["pronouns"]["texts"] == 4
    kept = Translator.load(shared.folders(3)[1])
    assert kept.source_words.words == words[0].words
    assert find_set("translation") is made.SET and len(made.SET.wanted([0, 1, 2, 3, 4])) == 5 + 3


def test_settings_change_with_the_recipe(monkeypatch):
    before = made.settings.__wrapped__()
    monkeypatch.setitem(made.MODEL, "d_ff", 128)
    assert made.settings.__wrapped__() != before


def test_the_file_was_made_by_this_recipe_and_its_parts_agree():
    runs = [run for run in read_runs("translation") if run["model"] == made.KEPT]
    assert runs and len({run["seed"] for run in runs}) == len(runs)
    for run in runs:
        assert run["settings"] == made.settings() and run["steps"] == 2628 and run["best_epoch"] <= made.FIT["epochs"]
        pronouns = run["test"]["pronouns"]
        assert pronouns["twin"]["all"] == pytest.approx(1 - pronouns["accuracy"], abs=1e-3)
        shares = run["test"]
        whole = sum(shares["by_length"][name] * n for name, n in shares["reviews_by_length"].items())
        assert whole / shares["reviews"] == pytest.approx(shares["accuracy"], abs=1e-3)


def test_the_alignment_errors_of_the_translator_that_comes_with_the_course_are_those_of_the_file(test_split):
    """Every head, over the whole test split, in the row that writes a word and in the row that reads it."""
    told = next(run["test"]["alignment_error_rate"] for run in read_runs("translation")
                if (run["model"], run["seed"]) == (made.KEPT, 0))
    found = head_alignments(shared.trained_translator(0), test_split)
    for name, rates in found._asdict().items():
        assert torch.allclose(rates, torch.tensor(told[name], dtype=rates.dtype), atol=0.003), name   # on any processor
