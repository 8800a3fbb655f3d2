"""`python -m course_utils translate "…"`: English texts into French, each on a line of its own.

Does: choose a translator, print translations (or, with --score, how good they are), and say on the error stream which model
it is, which words it doesn't know, which sentences are unlike those that it was trained on (`course_tools.studies.captions`
has measured from where on), and which translations were cut off before they ended.
Does not: cut a text into sentences (see `sentences`), or train (`results translation` and `results multi30k` do).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from course_utils.files.text import MARK, standard_input
from course_utils.translation.sentences import translate_texts

MULTI30K = "multi30k"                                   # names in data/checkpoints, the first that is there
COURSE = "translation"
ABOUT = {
    MULTI30K: "trained on Multi30k's captions of photographs; other kinds of text come out badly",
    COURSE: "trained on the course's own sentences; it knows their {words:,} words and no others",
}
MOST = 1000                                             # texts at a time
TITLE = "captions"                                      # of the note in the model's file
BEAMS = (1, 2, 5)                                       # for which there is a threshold: a wider search is surer of itself


def sureness(candidate) -> float:
    """The mean ln p of a translation's tokens, <eos> included, of a `Candidate`: 0 is certain, below is less sure.

    On captions the translator of Multi30k is sure of them, on other sentences it guesses.
    """
    return candidate.log_probability / (len(candidate.ids) + 1)


class Watched:
    """A `SubwordTranslator` that remembers how sure it was of each sentence, in `seen`: {sentence: mean ln p}."""

    def __init__(self, translator):
        self.translator, self.seen = translator, {}

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """What the translator's `translate` returns."""
        best = self.translator.candidates(texts, beam)
        self.seen |= {text: sureness(one) for text, one in zip(texts, best, strict=True)}
        return [self.translator.pieces.decode(one.ids) for one in best]

    def unlike(self, threshold: float) -> list[str]:
        """The sentences of which it was less sure than `threshold`, in the order in which they came."""
        return [text for text, value in self.seen.items() if value < threshold]


def threshold_for(folder: Path, beam: int) -> float | None:
    """The threshold of a translator for a search with `beam` candidates; None where it has none.

    That of the widest measured search that isn't wider than `beam`. Raises ValueError where it isn't a number.
    """
    from course_utils.training.saved_numbers import read_numbers

    name = f"threshold_beam_{max(one for one in BEAMS if one <= beam)}"
    try:
        return read_numbers(folder, TITLE, [name])[name]
    except FileNotFoundError:
        return None


def default_folder() -> Path:
    """The translator that comes with the course: Multi30k's if there is one, else that of notebook 17."""
    from course_utils.files.paths import CHECKPOINTS
    from course_utils.training.saved_models import holds_model

    return CHECKPOINTS / (MULTI30K if holds_model(CHECKPOINTS / MULTI30K) else COURSE)


def load_translator(folder: Path):
    """The `Translator` or `SubwordTranslator` of that name. Raises ValueError or OSError that says what is wrong with it."""
    from course_utils.encoder_decoder import Translator
    from course_utils.training.model_kinds import PIECES, kind_in
    from course_utils.translation.subwords import SubwordTranslator
    try:
        return (SubwordTranslator if kind_in(folder) == PIECES else Translator).load(folder)
    except ValueError as error:
        raise ValueError(f"the model in {folder} isn't a translator, or is damaged: {error}") from None


def unknown_words(translator, text: str) -> list[str]:
    """The words of a text that a translator with word lists doesn't know, each once; none for byte pairs."""
    from course_utils.data.translations import split_english

    known = getattr(translator, "source_words", None)
    return [] if known is None else list(dict.fromkeys(word for word in split_english(text) if word not in known.ids))


def texts_of(given: list[str]) -> list[str]:
    """The texts of the command line, or else the lines of standard input. Raises ValueError if there are none."""
    if given:
        texts = [text.lstrip(MARK) for text in given]
    elif sys.stdin is None or sys.stdin.isatty():
        raise ValueError('there is nothing to translate; write a text in quotes, such as "A little girl is playing with a '
                         'red ball.", or send lines to standard input')
    else:
        texts = [line for line in standard_input().splitlines() if line.strip()]
    broken = [i for i, text in enumerate(texts, start=1) if any("\ud800" <= letter <= "\udfff" for letter in text)]
    if broken:
        raise ValueError(f"text {broken[0]} has bytes that aren't UTF-8; write it in UTF-8, or with this terminal set to it")
    empty = [i for i, text in enumerate(texts, start=1) if not text.strip()]
    if empty or not texts:
        raise ValueError(f"text {empty[0]} is empty; leave it out" if empty else "standard input is empty; send it lines of "
                         "English")
    if len(texts) > MOST:
        raise ValueError(f"there are {len(texts):,} texts; give {MOST:,} at a time")
    return texts


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, translate, print; return the exit status, 2 (by the parser) for what can't be done."""
    parser = argparse.ArgumentParser(
        description="Translate English texts into French, with the Transformer of notebook 17. Prints a line for each text; "
                    "a text is translated sentence by sentence, and keeps its line breaks. (For a sentence with 'it' or "
                    "'they', the course's own translator also sees the two before it: a noun there decides between il and "
                    "elle.) Which model it is, which words it doesn't know, which sentences are unlike those that it was "
                    "trained on, and what was cut off at its maximum length goes to the error stream. Example: translate "
                    "\"A little girl is playing with a red ball.\"")
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="one sentence or several, in quotes; without any, the "
                                                                 "lines of standard input")
    parser.add_argument("--from", dest="folder", type=Path, metavar="NAME",
                        help="what Translator.save or SubwordTranslator.save was given, or the name of one that comes "
                             "with the course: multi30k (the default, if it's there), which knows captions of photographs, "
                             "or translation, which knows the words of the course's own sentences")
    parser.add_argument("--score", nargs=2, type=Path, metavar=("ENGLISH", "FRENCH"),
                        help="in place of texts: two files with a sentence a line, plain or gzipped, such as another year's "
                             "test set; prints BLEU and chrF of the translations, with intervals, and by length")
    parser.add_argument("--beam", type=int, default=5, metavar="N",
                        help="candidates that are kept after each word (default: 5; 1 is greedy)")
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.beam <= 100:
        parser.error(f"--beam is {chosen.beam}; use a whole number from 1 to 100")
    try:
        if chosen.score and chosen.texts:
            raise ValueError("--score takes its texts from the two files; leave out the texts")
        pairs, texts = None, []                         # first of all: what comes next takes seconds
        if chosen.score:
            pairs = _pairs(chosen.score)
        else:
            texts = texts_of(chosen.texts)
        folder = _found(chosen.folder or default_folder())
        translator = load_translator(folder)
        print(f"model: {_named(folder, translator)}", file=sys.stderr)
        from course_utils.training.plain_text import as_read

        texts = texts and [as_read(text, translator[-1]) for text in texts]    # by the vocabulary in its saved folder
        for text in texts:
            if words := unknown_words(translator, text):
                print(f"unknown word{'s' * (len(words) > 1)}: {', '.join(words)}", file=sys.stderr)
        threshold = None if pairs else _threshold(folder, chosen.beam)
        watched = translator if threshold is None else Watched(translator)
        for text in _printed(watched, texts, pairs, chosen.beam):
            print(text)
        if isinstance(watched, Watched) and (strange := watched.unlike(threshold)):
            print(_about_strange(strange, len(watched.seen)), file=sys.stderr)
    except (OSError, ValueError) as error:
        parser.error(" ".join(str(error).split()))
    return 0


def _threshold(folder: Path, beam: int) -> float | None:
    """As `threshold_for`, with a line on the error stream where it can't be read: the translation is made all the same."""
    try:
        return threshold_for(folder, beam)
    except ValueError as error:
        print(f"which sentences are unlike captions can't be said: {error}", file=sys.stderr)
        return None


def _about_strange(strange: list[str], of: int) -> str:
    """What is said of sentences that are unlike the captions that the model was trained on."""
    named = ", ".join(repr(text if len(text) < 60 else f"{text[:57]}...") for text in strange[:3])
    more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
    return (f"unlike captions, {len(strange)} of {of}: {named}{more}. This model was trained on captions of photographs and "
            "nothing else, and is unsure of its French here: don't trust it. --from translation takes the model of the "
            "course's own sentences, which knows few words")


def _found(folder: Path) -> Path:
    from course_utils.training.saved_models import find_model

    return find_model(folder)


def _pairs(files: list[Path]) -> tuple[list[str], list[str]]:
    from course_utils.translation.quality import read_pairs

    return read_pairs(*files)


def _printed(translator, texts: list[str], pairs: tuple[list[str], list[str]] | None, beam: int) -> list[str]:
    """The translations, or the scores of `pairs`; translations that were cut off are named on the error stream."""
    from course_utils.encoder_decoder import CutOff
    from course_utils.translation.quality import score

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CutOff)
        lines = score(translator, *pairs, beam) if pairs else translate_texts(translator, texts, beam)
    for one in caught:
        if issubclass(one.category, CutOff):
            print(f"cut off: {one.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return lines


def _named(path: Path, translator) -> str:
    """The model's name, and for the course's own what it was trained on."""
    from course_utils.files.paths import CHECKPOINTS, ROOT

    own = {found: name for name in ABOUT if (found := _found(CHECKPOINTS / name).resolve())}.get(path.resolve())
    if own is None:
        return str(path)
    words = len(translator.source_words.words) - 4 if own == COURSE else 0
    return f"{(CHECKPOINTS / own).relative_to(ROOT).as_posix()}, {ABOUT[own].format(words=words)}"
