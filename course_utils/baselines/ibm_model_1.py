"""IBM Model 1: word translations learned by counting, and the alignments that they give (Brown et al. 1993, section 4).

    model = IBMModel1().fit(source_sentences, target_sentences)          # lists of tokens
    model.align(["the", "house"], ["la", "maison"])                      # {(0, 0), (1, 1)}, source and target indices

Each target word comes from one source word, or from none (NULL); every source word is equally likely beforehand, wherever
it is. Does: learn t(target word | source word) by expectation maximization (EM), align by the most probable source word.
Does not: know positions or word order, translate, or join the alignments of both directions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course_utils.options import check_options, whole, yes_or_no

__all__ = ["IBMModel1"]


class IBMModel1:
    """IBM Model 1 (Brown et al. 1993, https://aclanthology.org/J93-2003, equations 5, 6 and 14).

    `iterations` of EM, from equal probabilities. EM can't end in a maximum that is only local, since the logarithm of the
    likelihood is concave. But it isn't strictly concave: another start can end in other probabilities that are just as
    likely, and in other alignments (Toutanova and Galley 2011, https://aclanthology.org/P11-2081).
    null: whether a target word may come from no source word. After `fit`, `history` has the mean natural logarithm of the
    likelihood of a target word before each iteration and after the last; it never falls.
    """

    def __init__(self, iterations: int = 10, null: bool = True):
        check_options({"iterations": iterations, "null": null}, {"iterations": whole(1, 10_000), "null": yes_or_no()})
        self.iterations, self.null = iterations, null
        self.history: list[float] = []

    def fit(self, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> IBMModel1:
        """Learn from sentences and their translations, each a list of tokens; returns the model itself.

        Raises ValueError for an unequal number of sentences, for none, and for an empty sentence; TypeError for a text.
        """
        source, target = list(source), list(target)
        if not source or len(source) != len(target):
            raise ValueError(f"got {len(source)} source and {len(target)} target sentences; give a translation for each, "
                             "and at least one pair")
        for name, sentences in (("source", source), ("target", target)):
            for i, tokens in enumerate(sentences):
                if isinstance(tokens, str):
                    raise TypeError(f"{name} sentence {i} is the text {tokens!r:.40}; split it into tokens first")
                if not len(tokens):
                    raise ValueError(f"{name} sentence {i} has no words; leave empty pairs out")
        self._source_ids = {word: i for i, word in enumerate(dict.fromkeys(w for s in source for w in s), 1)}  # 0: none
        self._target_ids = {word: i for i, word in enumerate(dict.fromkeys(w for s in target for w in s))}
        keys, places, base, counted = [], [], len(self._target_ids), 0
        for s, t in zip(source, target):
            e = np.array([0] * self.null + [self._source_ids[word] for word in s])
            f = np.array([self._target_ids[word] for word in t])
            keys.append((e[None, :] * base + f[:, None]).ravel())                          # (target * source,)
            places.append(np.repeat(np.arange(counted, counted + len(f)), len(e)))         # which target word it explains
            counted += len(f)
        self._keys, pair = np.unique(np.concatenate(keys), return_inverse=True)            # each (source, target) once
        place = np.concatenate(places)
        self._probabilities, self.history = np.full(len(self._keys), 1 / base), []
        given, offered = self._keys // base, np.bincount(place)                            # its source word; words to choose
        for _ in range(self.iterations):
            p = self._probabilities[pair]
            total = np.bincount(place, p)                                                  # (target words,)
            self.history.append(float(np.log(total / offered).mean()))
            counts = np.bincount(pair, p / total[place], minlength=len(self._keys))        # expected number of links
            self._probabilities = counts / np.bincount(given, counts)[given]
        self.history.append(float(np.log(np.bincount(place, self._probabilities[pair]) / offered).mean()))
        return self

    def probability(self, target_word: str, source_word: str | None) -> float:
        """t(target word | source word), None for NULL; 0 for two words that no training pair has together."""
        self._fitted()
        e = 0 if source_word is None else self._source_ids.get(source_word)
        f = self._target_ids.get(target_word)
        if e is None or f is None:
            return 0.0
        key = e * len(self._target_ids) + f
        place = int(np.searchsorted(self._keys, key))
        found = place < len(self._keys) and self._keys[place] == key
        return float(self._probabilities[place]) if found else 0.0

    def align(self, source: Sequence[str], target: Sequence[str]) -> set[tuple[int, int]]:
        """The links (source index, target index): each target word with its most probable source word.

        Of equally probable ones the first; NULL only where it's more probable than any word. A target word that was never
        seen with any of them gets no link.
        """
        self._fitted()
        links = set()
        for j, word in enumerate(target):
            chances = [self.probability(word, given) for given in source]
            best = max(chances, default=0.0)
            if best > 0 and best >= (self.probability(word, None) if self.null else 0.0):
                links.add((chances.index(best), j))
        return links

    def _fitted(self) -> None:
        if not self.history:
            raise RuntimeError("this IBMModel1 has learned nothing yet; call fit(source, target) first")
