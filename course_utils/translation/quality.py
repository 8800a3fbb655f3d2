"""BLEU and chrF of translations with 95 % intervals, by sacrebleu: overall, by length, and the worst of them.

Does: score a list of translations, with the interval that drawing the sentences anew gives (bootstrap, Koehn 2004,
https://aclanthology.org/W04-3250), and with sacrebleu's signature, which says all that the number depends on (Post 2018,
https://doi.org/10.18653/v1/W18-6319). chrF counts runs of letters (Popović 2015, https://doi.org/10.18653/v1/W15-3049). Does
not: translate. No result holds a word of the texts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import _bootstrap_resample

from course_utils.data.multi30k import read_sentences
from course_utils.data.translations import split_english, split_french

SAMPLES = 1000                                          # of the bootstrap; sacrebleu draws them with a fixed seed
LENGTHS = {"1-10": (1, 10), "11-15": (11, 15), "16-20": (16, 20), "21-": (21, 10**9)}      # words of the source


def split_lower(text: str) -> str:
    """A French text in lower case with a space after each token: close to what papers on Multi30k score.

    Their tokenizer (Moses) finds 13,988 tokens in the test set's references, and `split_french` 13,994.
    """
    return " ".join(split_french(text.lower()))


def quality(translations: Sequence[str], references: Sequence[str]) -> dict:
    """{"sentences": their number, "bleu": {"score", "half", "signature"}, "chrf": {…}, "split_bleu": {…}}.

    One reference for each translation. `bleu` splits as sacrebleu does (13a) and counts case; `split_bleu` is BLEU of
    `split_lower` texts. `half` is half the width of the 95 % interval, in points. Raises ValueError for lists of
    different lengths, and for fewer than two sentences.
    """
    _check(translations, references)
    if len(references) < 2:
        raise ValueError("there is one translation; give two or more, since an interval needs several sentences")
    whole = list(translations), list(references)
    split = [split_lower(text) for text in translations], [split_lower(text) for text in references]
    result = {"sentences": len(references)}
    for name, metric, (said, wanted) in (("bleu", BLEU(), whole), ("chrf", CHRF(), whole),
                                         ("split_bleu", BLEU(tokenize="none", force=True), split)):
        stats = metric._extract_corpus_statistics(said, [wanted])          # a row of counts for each sentence
        metric.n_bootstrap = SAMPLES
        metric.seed, drawn = _bootstrap_resample(stats, metric, SAMPLES)   # sacrebleu's own drawing, and signature
        scores = sorted(float(one.score) for one in drawn)                 # its estimate_ci fails where some are just zero
        half = (scores[-1 - SAMPLES // 40] - scores[SAMPLES // 40]) / 2
        score, signature = float(metric._aggregate_and_compute(stats).score), str(metric.get_signature())
        result[name] = {"score": round(score, 2), "half": round(half, 2), "signature": signature}
    return result


def quality_by_length(translations: Sequence[str], references: Sequence[str], sources: Sequence[str]) -> dict[str, dict]:
    """{group: {"sentences", "bleu", "chrf"}} by the source's number of words; groups without a sentence are left out."""
    _check(translations, references, sources)
    groups: dict[str, list[int]] = {name: [] for name in LENGTHS}
    for i, source in enumerate(sources):
        groups[length_group(len(split_english(source)))].append(i)
    return {name: {"sentences": len(rows), **_scores([translations[i] for i in rows], [references[i] for i in rows])}
            for name, rows in groups.items() if rows}


def worst(translations: Sequence[str], references: Sequence[str], sources: Sequence[str], number: int = 10) -> list[dict]:
    """The `number` translations with the lowest chrF, lowest first: which row, how many words each text has, the scores."""
    _check(translations, references, sources)
    metric = CHRF()
    scores = [metric.sentence_score(said, [wanted]).score for said, wanted in zip(translations, references)]
    rows = sorted(range(len(scores)), key=lambda i: (scores[i], i))[:number]
    return [{"row": i, "source_words": len(split_english(sources[i])), "reference_words": len(split_french(references[i])),
             "translation_words": len(split_french(translations[i])), "chrf": round(scores[i], 1)} for i in rows]


def length_group(words: int) -> str:
    """The group of LENGTHS that a number of words belongs to; a text without a word goes with the shortest."""
    return next(name for name, (low, high) in LENGTHS.items() if low <= max(words, 1) <= high)


def _scores(translations: list[str], references: list[str]) -> dict[str, float]:
    return {name: round(metric.corpus_score(translations, [references]).score, 2)
            for name, metric in (("bleu", BLEU()), ("chrf", CHRF()))}


def _check(translations: Sequence[str], *others: Sequence[str]) -> None:
    if any(len(texts) != len(translations) for texts in others) or not len(translations):
        counts = " and ".join(str(len(texts)) for texts in others)
        raise ValueError(f"there are {len(translations)} translations and {counts} texts to compare them with; give lists "
                         "of the same length, one text for each translation")


def read_pairs(english: Path, french: Path) -> tuple[list[str], list[str]]:
    """The lines of both files. Raises ValueError, with the file and the line, for what isn't a list of pairs."""
    sides = [read_sentences(path, "mend it, or leave the line out of both files") for path in (english, french)]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"{english} has {len(sides[0])} lines, and {french} has {len(sides[1])}; line by line they must be "
                         "translations of each other")
    if len(sides[0]) < 2:
        raise ValueError(f"{english} has one line; give two or more, since an interval needs several")
    return sides[0], sides[1]


def scores_in_lines(translations: list[str], english: list[str], french: list[str], seconds: float) -> list[str]:
    """What is said of a translator's answers to `english`, whose references are `french`: lines to print."""
    whole = quality(translations, french)
    names = {"bleu": "BLEU", "chrf": "chrF", "split_bleu": "BLEU, lower case, split into tokens"}
    lines = [f"{names[name]:36} {whole[name]['score']:6.2f} ± {whole[name]['half']:.2f}" for name in names]
    lines += [f"{group:>3} words: {of['sentences']} sentences, BLEU {of['bleu']:.2f}, chrF {of['chrf']:.2f}"
              for group, of in quality_by_length(translations, french, english).items()]
    lines += [f"{whole['sentences']} sentences in {seconds:.0f} seconds; ± is half a 95 % interval over sentences"]
    return lines + [f"{names[name]}: {whole[name]['signature']}" for name in ("bleu", "chrf")]


def score(translator, english: list[str], french: list[str], beam: int) -> list[str]:
    """Translate every line as it is, as the course's own results do, and say how good that was: lines to print."""
    begun = time.perf_counter()
    translations = translator.translate(english, beam)
    return scores_in_lines(translations, english, french, time.perf_counter() - begun)
