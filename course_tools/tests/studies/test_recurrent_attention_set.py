"""The result set on recurrent translators: equal sizes, scores that a second count confirms, and the file that was made."""


import pytest
import torch
from saved_classifiers import rewrite

from course_tools.studies.sets.recurrent_attention import alignment_scores, translation_scores
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig, Seq2SeqResult, alignment_error_rate, links_of
from course_utils.results import right_of
from course_utils.training.pair_batches import PAD, EncodedPairs
from course_utils.translation import translators
from course_utils.translation.translators import (
    gold_links,
    keep_translator,
    kept_translator,
    length_group,
    translation_corpus,
)


def a_translator(score="additive") -> Seq2Seq:
    torch.manual_seed(0)
    corpus = translation_corpus()
    return Seq2Seq(Seq2SeqConfig(corpus.english.vocab_size, corpus.french.vocab_size, 8, 8, score)).eval()


class Wrong(Seq2Seq):
    """Knows the references of some pairs and writes them, but in every third pair one word is another."""

    def __init__(self, pairs: EncodedPairs):
        super().__init__(a_translator().config)
        self.known = {tuple(source): list(target) for source, target in zip(*pairs)}
        for place, target in enumerate(self.known.values()):
            if place % 3 == 0:
                target[2] = 5 if target[2] != 5 else 6

    def rows(self, source_ids):
        return [self.known[tuple(row[row != PAD].tolist())] for row in source_ids]

    def start(self, memory):
        return super().start(memory)._replace(cell=torch.zeros(len(memory.mask), 1))

    def encode(self, source_ids, source_mask):
        self.asked = self.rows(source_ids)
        return super().encode(source_ids, source_mask)

    def step(self, last_ids, state):
        count = int(state.cell[0])
        logits = torch.zeros(len(last_ids), self.config.target_vocab_size)
        for row, target in zip(logits, self.asked):
            row[target[min(count + 1, len(target) - 1)]] = 1
        return logits, state._replace(cell=state.cell + 1, weights=None)

    def forward(self, source_ids, source_mask, target_ids, need_weights=False):
        logits = torch.zeros(*target_ids.shape, self.config.target_vocab_size)
        for row, target in zip(logits, self.rows(source_ids)):
            for place, word in enumerate(target[1:]):
                row[place, word] = 1
        return Seq2SeqResult(logits, None)


def test_scores_count_whole_sentences_and_the_words_after_a_first_mistake():
    corpus = translation_corpus()
    pairs = EncodedPairs(corpus.pairs["test"].source[:12], corpus.pairs["test"].target[:12])
    scores = translation_scores(Wrong(pairs), pairs, {"half": ["a"] * 6 + ["b"] * 6})
    assert scores["accuracy"] == round(8 / 12, 4) and scores["by_half"] == {"a": round(4 / 6, 4), "b": round(4 / 6, 4)}
    assert right_of({"test": scores}).tolist() == [place % 3 > 0 for place in range(12)]
    after = scores["after_first_mistake"]
    words = sum(len(pairs.target[place]) - 2 - 2 for place in range(0, 12, 3))
    assert after == {"sentences": 4, "words": words, "right_own": words, "right_forced": words}


def test_scores_of_a_real_model_agree_with_one_sentence_at_a_time():
    corpus, model = translation_corpus(), a_translator()
    pairs = EncodedPairs(corpus.pairs["test"].source[:9], corpus.pairs["test"].target[:9])
    gold, found = gold_links(corpus.splits["test"].select(range(9))), []
    for source, target in zip(*pairs):
        ids = torch.tensor([source])
        weights = model(ids, ids != PAD, torch.tensor([target[:-1]]), need_weights=True).weights[0]
        found.append(links_of(weights[: len(target) - 2]))
    scores = alignment_scores(model, pairs, gold)
    assert scores["aer"] == round(alignment_error_rate(found, gold), 4)
    later = [{(s, t + 1) for s, t in links if t + 1 < len(target) - 2} for links, target in zip(found, pairs.target)]
    assert scores["shifted"]["later"] == round(alignment_error_rate(later, gold), 4)


def test_lengths_are_grouped_without_a_gap():
    assert [length_group(words) for words in (1, 10, 11, 20, 21, 30, 31, 45)] == [
        "1-10", "1-10", "11-20", "11-20", "21-30", "21-30", "31-", "31-"]


def test_a_kept_translator_comes_back_and_others_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(translators, "output_folder", lambda: tmp_path)
    monkeypatch.setattr(translators, "CHECKPOINTS", tmp_path / "committed")
    model = a_translator("none")
    path = keep_translator("mine", model)
    again = kept_translator("mine")
    assert not again.training and again.config == model.config
    for name, tensor in model.state_dict().items():
        assert torch.allclose(again.state_dict()[name], tensor, atol=2e-3)
    with pytest.raises(FileNotFoundError, match="results recurrent_attention"):
        kept_translator("yours")
    rewrite(path, lambda about, tensors: about["source_words"].__setitem__(-1, "zzz"))
    with pytest.raises(ValueError, match="other words"):
        kept_translator("mine")


# alignments, recomputed
