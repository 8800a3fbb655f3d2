"""How often a method that completes names has the right one first, or among its first five.

Does: draw names in modules, ask any function from a text to ranked words for them, summarise with intervals; combine two
such functions. Does not: know any method (see `course_tools.studies.file_words` and `course_utils.completion`).
"""

import io
import keyword
import random
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from course_tools.studies.code_scores import ratio_interval

__all__ = ["PLACES", "SHORTEST", "Complete", "Drawn", "combined", "draw_names", "names_in", "rank_difference", "ranks_of",
           "summarised"]

Complete = Callable[[str], Sequence[str]]               # the text up to the cursor -> whole words, the best first
PLACES, SHORTEST, LISTED = 2000, 4, 5
FUSION = 60                                             # the constant of Cormack et al. 2009


class Drawn(NamedTuple):
    """A name in a module: `text[start:]` begins with it; `seen` says whether the module has it as a word before."""

    module: str
    start: int
    name: str
    seen: bool


def names_in(text: str) -> list[tuple[int, str]]:
    """Where each name of a source begins, and the name: of 4 or more characters, no keyword, not in a comment or string."""
    begins = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]  # splitlines would also split at form feeds
    return [(begins[token.start[0] - 1] + token.start[1], token.string)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.NAME and len(token.string) >= SHORTEST and not keyword.iskeyword(token.string)]


def draw_names(texts: Mapping[str, str], number: int = PLACES, seed: int = 0) -> list[Drawn]:
    """`number` names of the modules, path to text, drawn without replacement and ordered; all, if there are no more.

    Every name that a module uses is as likely as any other, so long modules have more, and frequent names as well.
    """
    found = [(path, start, name) for path, text in texts.items() for start, name in names_in(text)]
    chosen = sorted(random.Random(seed).sample(found, min(number, len(found))))
    return [Drawn(path, start, name, bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", texts[path][:start])))
            for path, start, name in chosen]


def ranks_of(complete: Complete, texts: Mapping[str, str], places: Iterable[Drawn], typed: int) -> list[int]:
    """The rank of each name among what `complete` lists, given everything before it and its first `typed` characters: 1 to
    5, or 0 if it isn't among the first five. A word that is listed twice counts once."""
    ranks = []
    for place in places:
        listed = list(dict.fromkeys(complete(texts[place.module][: place.start + typed])))[:LISTED]
        ranks.append(listed.index(place.name) + 1 if place.name in listed else 0)
    return ranks


def summarised(ranks: Sequence[int], places: Sequence[Drawn]) -> dict:
    """Of all names, of those that the file has before ('seen') and of the others ('new'): how many, and the fraction
    that was listed first ('top 1') and among the first five ('top 5'), each with its 95 % interval: [value, low, high].

    The intervals resample modules, not names: names of one module are not independent. 'ranks' has a digit for each name.
    """
    result: dict = {"ranks": "".join(map(str, ranks))}
    for part, belongs in (("all", [True] * len(places)), ("seen", [place.seen for place in places]),
                          ("new", [not place.seen for place in places])):
        total = _by_module(belongs, places)
        result[part] = {"names": int(sum(total))}
        for top in (1, LISTED):
            hits = _by_module([own and 0 < rank <= top for own, rank in zip(belongs, ranks)], places)
            value = [sum(hits) / sum(total), *ratio_interval(hits, total)] if any(total) else []
            result[part][f"top {top}"] = [round(float(number), 4) for number in value]
    return result


def rank_difference(ranks: Sequence[int], others: Sequence[int], places: Sequence[Drawn], top: int = 1) -> list[float]:
    """How much larger the first method's fraction is than the other's on the same names: [difference, low, high]."""
    gains = [(0 < one <= top) - (0 < other <= top) for one, other in zip(ranks, others, strict=True)]
    return [sum(gains) / len(gains), *ratio_interval(_by_module(gains, places), _by_module([1] * len(gains), places))]


def _by_module(values: Sequence[float], places: Sequence[Drawn]) -> list[float]:
    sums = {place.module: 0.0 for place in places}
    for value, place in zip(values, places, strict=True):
        sums[place.module] += value
    return list(sums.values())


def combined(first: Complete, second: Complete) -> Complete:
    """Both methods' words by the sum of 1 / (60 + rank) over the lists that have them: reciprocal rank fusion (Cormack et
    al. 2009, doi:10.1145/1571941.1572114). A word on both lists beats one that only one has; ties keep the first's order."""
    def complete(text: str) -> list[str]:
        score: dict[str, float] = {}
        for words in (first(text), second(text)):
            for rank, word in enumerate(dict.fromkeys(words), start=1):
                score[word] = score.get(word, 0.0) + 1 / (FUSION + rank)
        return sorted(score, key=lambda word: -score[word])

    return complete
