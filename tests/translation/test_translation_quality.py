"""BLEU and chrF with their intervals, and the translator that reads byte pairs."""

import json

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU
from small_corpora import made_translations

from course_utils.encoder_decoder import SmoothedLoss, Transformer, TransformerConfig
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import PairBatches
from course_utils.training.pair_subwords import SharedBytePairs, encode_texts
from course_utils.translation.quality import (
    LENGTHS,
    length_group,
    quality,
    quality_by_length,
    split_lower,
    worst,
)
from course_utils.translation.subwords import SubwordTranslator

SOURCES, REFERENCES = made_translations(40, 1)


def spoiled(texts, share, seed=0):
    """Some of the words replaced by another."""
    rng = np.random.default_rng(seed)
    return [" ".join("chose" if rng.random() < share else word for word in text.split()) for text in texts]


def test_scores_fall_with_mistakes_and_a_signature_says_how_they_were_counted():
    found = [quality(spoiled(REFERENCES, share), REFERENCES) for share in (0.0, 0.1, 0.3)]
    for name in ("bleu", "chrf", "split_bleu"):
        scores = [one[name]["score"] for one in found]
        assert scores[0] == 100 > scores[1] > scores[2] and found[0][name]["half"] < 0.01 < found[1][name]["half"]
    assert "tok:13a" in found[1]["bleu"]["signature"] and "nc:6|nw:0" in found[1]["chrf"]["signature"]
    assert found[1]["sentences"] == 40 and json.dumps(found)


def test_the_interval_is_that_of_drawing_the_sentences_anew():
    said = spoiled(REFERENCES, 0.15)
    rng, drawn = np.random.default_rng(3), []
    for _ in range(300):
        rows = rng.integers(0, 40, 40)
        drawn.append(BLEU().corpus_score([said[i] for i in rows], [[REFERENCES[i] for i in rows]]).score)
    by_hand = (np.percentile(drawn, 97.5) - np.percentile(drawn, 2.5)) / 2
    found, library = quality(said, REFERENCES), BLEU()
    score = library.corpus_score(said, [REFERENCES], n_bootstrap=1000)
    assert found["bleu"]["half"] == pytest.approx(by_hand, rel=0.25) and found["bleu"]["half"] == round(float(score._ci), 2)
    assert found["bleu"]["score"] == round(score.score, 2) and found["bleu"]["signature"] == str(library.get_signature())


def test_split_text_is_lower_case_with_elided_words_apart():
    assert split_lower("L'homme n'a pas d'amis.") == "l' homme n' a pas d' amis ."
    case = quality(["le chat dort bien.", "Le chat dort."], ["Le chat dort bien.", "Le chat dort."])
    assert case["split_bleu"]["score"] == 100 > case["bleu"]["score"]


def test_groups_by_length_take_each_sentence_once():
    said = spoiled(REFERENCES, 0.2)
    groups = quality_by_length(said, REFERENCES, SOURCES)
    assert sum(group["sentences"] for group in groups.values()) == 40 and set(groups) <= set(LENGTHS)
    rows = [i for i, source in enumerate(SOURCES) if len(source.replace(".", " .").split()) <= 10]
    short = BLEU().corpus_score([said[i] for i in rows], [[REFERENCES[i] for i in rows]]).score
    assert groups["1-10"] == {**groups["1-10"], "sentences": len(rows), "bleu": round(short, 2)}
    assert [length_group(n) for n in (0, 1, 10, 11, 15, 16, 20, 21, 99)] == [
        "1-10", "1-10", "1-10", "11-15", "11-15", "16-20", "16-20", "21-", "21-"]


def test_the_worst_come_first_and_are_told_by_numbers_alone():
    said = list(REFERENCES)
    said[7], said[31] = "tout à fait autre", spoiled(REFERENCES, 0.3)[31]
    found = worst(said, REFERENCES, SOURCES, 3)
    assert [one["row"] for one in found[:2]] == [7, 31] and found[0]["chrf"] < found[1]["chrf"] < found[2]["chrf"] == 100
    assert found[0]["translation_words"] == 4 and all(not isinstance(value, str) for one in found for value in one.values())


def test_lists_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="39 translations and 40 texts"):
        quality(REFERENCES[:39], REFERENCES)
    with pytest.raises(ValueError, match="two or more"):
        quality(["un"], ["un"])
    with pytest.raises(ValueError, match="0 translations"):
        quality([], [])
    for function in (quality_by_length, worst):
        with pytest.raises(ValueError, match="40 translations and 40 and 3 texts"):
            function(REFERENCES, REFERENCES, SOURCES[:3])


# the translator

def translator(kind="Transformer", seed=0) -> SubwordTranslator:
    pieces = SharedBytePairs.train([*SOURCES, *REFERENCES], 340)
    seed_everything(seed)
    if kind == "recurrent":
        return SubwordTranslator(Seq2Seq(Seq2SeqConfig(340, 340, 16, 16, "general", "after")).eval(), pieces)
    config = TransformerConfig(340, 340, d_model=32, num_heads=2, d_ff=32, num_layers=1, max_len=90, dropout=0.0)
    return SubwordTranslator(Transformer(config).eval(), pieces)


@pytest.mark.parametrize("kind", ["Transformer", "recurrent"])
def test_each_text_gets_its_own_translation_whatever_its_place(kind):
    one = translator(kind)
    texts = ["The dog.", "The cat sees.", "A man wants the tree.", "A boy paints the hat and the man."]
    together = one.translate(texts, beam=2, batch_size=2)
    assert together == one.translate(texts[::-1], beam=2, batch_size=2)[::-1] and len(set(together)) > 1
    assert together[:2] == one.translate(texts[:2], beam=2)


def test_a_small_model_learns_to_translate_word_by_word_and_comes_back_from_its_folder(tmp_path):
    one, (sources, references) = translator(), made_translations(40, 6, longest=1)
    data = PairBatches(encode_texts(*made_translations(120, 5, longest=1), one.pieces), 16)
    before = quality(one.translate(sources[:5], beam=2), references[:5])["bleu"]["score"]
    fit(one.model, data, MeanLoss(data, SmoothedLoss(0.0)), loss_of=SmoothedLoss(0.0), epochs=15, learning_rate=1e-2,
        progress=False)
    together = one.translate(sources, beam=2)
    score = quality(together, references)["bleu"]["score"]
    assert before < 10 and score > 60, score            # a guess that knows how sentences are built gets less than half
    assert together[:4] == [one.translate([source], beam=2)[0] for source in sources[:4]]
    one.save(tmp_path / "mine")
    again = SubwordTranslator.load(tmp_path / "mine")
    assert again.translate(SOURCES[:5]) == one.translate(SOURCES[:5]) and again.pieces.merges == one.pieces.merges
    one._replace(model=one.model.half()).save(tmp_path / "half")
    assert SubwordTranslator.load(tmp_path / "half").model.source_embedding.weight.dtype == torch.float32


def test_nothing_and_too_much_are_refused():
    one = translator()
    with pytest.raises(ValueError, match="text 1 is empty"):
        one.translate(["The dog.", "  "])
    with pytest.raises(ValueError, match="the list has no text"):
        one.translate([])
    with pytest.raises(ValueError, match="reads at most 90; cut it into shorter"):
        one.translate(["zzz " * 90])
