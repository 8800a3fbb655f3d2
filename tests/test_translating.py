"""Beam search, BLEU and the translator: against brute force, sacrebleu, and themselves without a cache."""

import itertools
import math
import random
import warnings

import pytest
import sacrebleu
import torch
from torch import Tensor

from course_utils.encoder_decoder import (
    CutOff,
    Transformer,
    TransformerConfig,
    Translator,
    beam_search,
    bleu,
    default_lengths,
    length_penalty,
)
from course_utils.files.paths import CHECKPOINTS
from course_utils.training.pair_batches import BEGIN, END, PAD, UNKNOWN, WordList
from course_utils.translation.subwords import SubwordTranslator


class Table:
    """A model whose next word depends on the words before it through a seed alone; no attention, no state but the words."""

    def __init__(self, vocab: int, seed: int):
        self.vocab, self.seed = vocab, seed

    def encode(self, source_ids, source_mask):
        return source_ids

    def start(self, memory):
        return Words([(int(row.sum()),) for row in memory])

    def log_p(self, words: tuple) -> Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, *words)) % 2**31)
        logits = 2 * torch.randn(self.vocab, generator=generator)
        logits[[PAD, BEGIN]] = -math.inf
        return logits.log_softmax(dim=-1)

    def step(self, last_ids, state):
        state = Words([(*words, int(last)) for words, last in zip(state.rows, last_ids)])
        return torch.stack([self.log_p(words) for words in state.rows]), state


class Words:
    def __init__(self, rows):
        self.rows = rows

    def select(self, indices):
        return Words([self.rows[i] for i in indices.tolist()])


SOURCES = torch.tensor([[4, 5, 6], [7, 0, 0], [9, 9, 0]])


def every_translation(model: Table, source: int, longest: int):
    """(words, log-probability) of all translations that end within so many words, <eos> included."""
    for length in range(longest):
        for words in itertools.product([UNKNOWN, *range(4, model.vocab)], repeat=length):
            seen, total = (source, BEGIN), 0.0
            for word in (*words, END):
                total += model.log_p(seen)[word].item()
                seen = (*seen, word)
            yield list(words), total


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wide_enough_beam_finds_the_best_of_all_translations(alpha, seed):
    model, longest = Table(6, seed), 5
    found = beam_search(model, SOURCES, SOURCES > 0, beam=200, alpha=alpha, max_len=longest)
    for source, candidates in zip(SOURCES.sum(dim=1).tolist(), found):
        ranked = sorted(every_translation(model, source, longest),
                        key=lambda one: -one[1] / length_penalty(len(one[0]) + 1, alpha))
        for candidate, (words, total) in zip(candidates, ranked[:5]):
            assert candidate.ended and candidate.ids == words
            assert candidate.log_probability == pytest.approx(total, abs=1e-4)
            assert candidate.score == pytest.approx(total / length_penalty(len(words) + 1, alpha), abs=1e-4)


def by_hand_beam(model: Table, source: int, beam: int, alpha: float, longest: int) -> list[tuple[list[int], bool]]:
    """The same search without stopping early: the beam's best candidates and whether they ended."""
    kept, finished = [((), 0.0)], []
    for length in range(1, longest + 1):
        grown = sorted(((total + value, words, word) for words, total in kept
                        for word, value in enumerate(model.log_p((source, BEGIN, *words)).tolist()) if value > -math.inf),
                       reverse=True)
        finished += [(total / length_penalty(length, alpha), words) for total, words, word in grown[:beam] if word == END]
        kept = [((*words, word), total) for total, words, word in grown if word != END][:beam]
    ended = [list(words) for _, words in sorted(finished, reverse=True)[:beam]]
    return [(words, True) for words in ended] + [(list(words), False) for words, _ in kept[: beam - len(ended)]]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_a_narrow_beam_keeps_what_a_search_by_hand_keeps_and_stopping_early_loses_nothing(beam, alpha):
    for seed in range(10):
        model = Table(8, seed)
        found = beam_search(model, SOURCES, SOURCES > 0, beam, alpha, max_len=7)
        for source, candidates in zip(SOURCES.sum(dim=1).tolist(), found):
            assert [(c.ids, c.ended) for c in candidates] == by_hand_beam(model, source, beam, alpha, 7)


def test_padding_and_the_beginning_are_never_written_and_take_no_probability():
    class Padded(Table):
        def step(self, last_ids, state):
            logits, state = super().step(last_ids, state)
            logits[:, [PAD, BEGIN]] = 50.0
            return logits, state

    found, expected = (beam_search(model(8, 3), SOURCES, SOURCES > 0, beam=3, max_len=6) for model in (Padded, Table))
    for ours, theirs in zip(found, expected):
        assert [c.ids for c in ours] == [c.ids for c in theirs]
        assert [c.log_probability for c in ours] == pytest.approx([c.log_probability for c in theirs], abs=1e-4)


class Long(Table):
    """It hardly ever ends."""

    def log_p(self, words):
        logits = super().log_p(words).clone()
        logits[END] -= 6.0
        return logits.log_softmax(dim=-1)


def test_each_sentence_has_a_limit_of_its_own_whatever_is_in_its_batch():
    assert default_lengths(SOURCES > 0) == [16, 12, 14]
    together = beam_search(Long(8, 1), SOURCES, SOURCES > 0, beam=2)
    for row, (candidates, limit) in enumerate(zip(together, [16, 12, 14])):
        source = SOURCES[row][SOURCES[row] > 0][None]
        alone = beam_search(Long(8, 1), source, source > 0, beam=2)[0]
        assert [(c.ids, c.ended) for c in alone] == [(c.ids, c.ended) for c in candidates]
        assert max(len(c.ids) for c in candidates) <= limit
    assert any(len(c.ids) == 12 and not c.ended for c in together[1])


def test_the_default_limit_is_never_more_than_the_model_can_write_and_a_larger_one_is_refused_at_once():
    translator = small_translator()
    source = torch.full((1, 12), 4)
    assert default_lengths(source > 0, translator.model) == [12]
    found = beam_search(translator.model, source, source > 0, beam=2)[0]
    assert all(len(one.ids) <= 12 for one in found)

    def never(*given):
        raise AssertionError("it has begun to search")

    translator.model.encode = never
    with pytest.raises(ValueError, match="max_len=13, and this model writes at most 12"):
        beam_search(translator.model, source, source > 0, beam=2, max_len=13)


@pytest.mark.parametrize("wrong", [dict(beam=0), dict(alpha=-1), dict(alpha=3), dict(max_len=0)])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        beam_search(Table(8, 0), SOURCES, SOURCES > 0, **wrong)


# BLEU

def test_bleu_equals_sacrebleu():
    random.seed(0)
    words = "le la un une film chat rouge petite voiture est n' pas a vu .".split()
    for _ in range(20):
        references = [[random.choice(words) for _ in range(random.randint(4, 15))] for _ in range(8)]
        ours = [[w if random.random() < 0.7 else random.choice(words) for w in r] for r in references]
        ours = [sentence[: random.randint(3, 15)] for sentence in ours]
        score = bleu(ours, references)
        theirs = sacrebleu.corpus_bleu([" ".join(x) for x in ours], [[" ".join(x) for x in references]], tokenize="none",
                                       smooth_method="none", force=True)
        assert score.score == pytest.approx(theirs.score, abs=1e-9)
        assert [100 * p for p in score.precisions] == pytest.approx(theirs.precisions, abs=1e-9)
        assert score.brevity_penalty == pytest.approx(theirs.bp, abs=1e-9)
        assert (score.translation_tokens, score.reference_tokens) == (theirs.sys_len, theirs.ref_len)


def test_bleu_by_hand():
    score = bleu(["la la la la".split()], ["la petite voiture rouge".split()])
    assert score.precisions[0] == 0.25 and score.score == 0 and score.brevity_penalty == 1
    perfect = bleu(["a b c d e".split()], ["a b c d e".split()])
    assert perfect.score == pytest.approx(100)
    short = bleu(["a b c d".split()], ["a b c d e f".split()])
    assert short.brevity_penalty == pytest.approx(math.exp(1 - 6 / 4)) and short.precisions == [1, 1, 1, 1]
    assert bleu([[]], [["a"]]).score == 0
    together = bleu(["a b c d e f".split(), "a b".split()], ["a b c d".split(), "a b c d".split()])
    assert together.brevity_penalty == 1                # 8 words against 8: a long one makes up for a short one


def test_bleu_refuses_what_it_cannot_compare():
    with pytest.raises(ValueError, match="1 translations and 2 references"):
        bleu([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="at least"):
        bleu([], [])
    with pytest.raises(TypeError, match="split"):
        bleu(["a b"], [["a", "b"]])


# the translator

def small_translator() -> Translator:
    english, french = WordList.train([["a", "film", "."]]), WordList.train([["un", "film", "l'", "."]])
    torch.manual_seed(0)
    config = TransformerConfig(french.vocab_size, english.vocab_size, d_model=8, num_heads=2, d_ff=12, max_len=12)
    return Translator(Transformer(config).eval(), english, french)


class Recomputing:
    """The same model without a cache: every step reads all words again."""

    def __init__(self, model):
        self.model, self.encode = model, model.encode

    def start(self, memory):
        return Read(memory, None)

    def step(self, last_ids, state):
        words = last_ids[:, None] if state.words is None else torch.cat([state.words, last_ids[:, None]], dim=1)
        logits = self.model.logits(self.model.decode(state.memory, words).x[:, -1])
        return logits, Read(state.memory, words)


class Read:
    def __init__(self, memory, words):
        self.memory, self.words = memory, words

    def select(self, indices):
        memory = self.memory._replace(x=self.memory.x[indices], mask=self.memory.mask[indices])
        return Read(memory, None if self.words is None else self.words[indices])


@pytest.mark.parametrize("beam", [1, 4])
def test_the_cache_changes_no_translation(beam):
    torch.manual_seed(3)
    model = Transformer(TransformerConfig(30, 40, d_model=16, num_heads=2, d_ff=24, num_layers=2, max_len=64)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    mask = torch.arange(9) < torch.tensor([[9], [4], [1], [7]])
    source = torch.randint(4, 40, (4, 9)) * mask
    cached, again = (beam_search(one, source, mask, beam, max_len=25) for one in (model, Recomputing(model)))
    for ours, theirs in zip(cached, again):
        assert [c.ids for c in ours] == [c.ids for c in theirs]
        assert [c.score for c in ours] == pytest.approx([c.score for c in theirs], abs=1e-4)


def test_a_translator_answers_for_every_text_and_comes_back_from_its_file(tmp_path):
    translator = small_translator()
    texts = ["A film.", "a strange film", "film film film ."]
    said = translator.translate(texts)
    assert len(said) == 3 and all(isinstance(text, str) for text in said)
    translator.save(tmp_path / "mine")
    again = Translator.load(tmp_path / "mine")
    assert again.translate(texts) == said and again.source_words.words == translator.source_words.words
    half = translator._replace(model=translator.model.half())
    half.save(tmp_path / "half")
    assert Translator.load(tmp_path / "half").model.source_embedding.weight.dtype == torch.float32


ODD = ["The wug blicked the dax.", "No no no no", "dog", "It was?", "Two of the three film", "zzz", "My my car", "was"]
LONG = "The nurses slept . Your teachers stayed at home . Nadia sold the old piano to my cousin and to your grandmother ."


@pytest.mark.parametrize("folder, kind", [("translation", Translator), ("multi30k", SubwordTranslator)])
def test_a_text_alone_and_in_any_batch_is_translated_in_the_same_way(folder, kind):
    translator = kind.load(CHECKPOINTS / folder)
    translator = translator._replace(model=translator.model.double())                # so that no tie falls the other way
    with warnings.catch_warnings(action="ignore", category=CutOff):
        for beam in (1, 5):
            alone = [translator.translate([text], beam)[0] for text in ODD]
            assert translator.translate([*ODD, LONG], beam)[:-1] == alone, beam


def endless() -> Translator:
    """A translator that never ends."""
    translator = small_translator()
    translator.model.logits = lambda x: torch.arange(translator.target_words.vocab_size) * torch.ones(len(x), 1)
    return translator


def test_a_translator_warns_of_what_it_cut_off_and_of_nothing_else():
    with pytest.warns(CutOff, match=r"2 of 2 translations .* 'a film', 'film film'"):
        said = endless().tokens([["a", "film"], ["film", "film"]])
    assert [len(one) for one in said] == [12, 12]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Translator.load(CHECKPOINTS / "translation").translate(["The film was too long."])


def test_a_translator_refuses_nothing_and_too_much():
    translator = small_translator()
    with pytest.raises(ValueError, match="sentence 1 is empty"):
        translator.translate(["A film.", " "])
    with pytest.raises(ValueError, match="no sentence"):
        translator.translate([])
    with pytest.raises(ValueError, match="at most 12"):
        translator.translate(["film " * 13])
