"""`python -m course_utils translate --score ENGLISH FRENCH`: how good a translator is on pairs of your own.

Does: read two text files with a sentence a line, plain or gzipped, and say BLEU and chrF with their intervals, also by
length. Does not: choose or load the translator (see `translate`), or print a word of the texts.
"""

from __future__ import annotations

import time
from pathlib import Path

from course_utils.data.multi30k import read_sentences
from course_utils.translation.quality import quality, quality_by_length


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

