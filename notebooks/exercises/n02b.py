"""Exercises and quiz of notebook 02b, byte pairs."""

import re
from collections import Counter

import torch

from course_utils.byte_pairs import merge
from course_utils.exercises.compare import NoList
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import drawn, items_of, pair_of, what, whole_id

# ---------------------------------------------------------------- 2.6 a step of byte pair encoding

def merge_step(pieces, times):
    counts = Counter()
    for word, count in zip(pieces, times):
        for pair in zip(word, word[1:]):
            counts[pair] += count
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    after = []
    for word in pieces:
        merged, i = [], 0
        while i < len(word):
            if tuple(word[i : i + 2]) == best:
                merged.append(word[i] + word[i + 1])
                i += 2                                  # both pieces are used up
            else:
                merged.append(word[i])
                i += 1
        after.append(merged)
    return best, after


def merge_probes(generator: torch.Generator) -> list[tuple]:
    """(pieces, times): the four words of section 2; runs; equal counts; longer pieces; borders; one word twice a pair;
    equal counts of short and long pieces; a pair of two words against one of a frequent word; a ring of neighbours; a tie
    that the joined texts would decide otherwise, with a word of a single piece; a pair whose places overlap; a word
    that comes twice; two pairs that give the same joined text."""
    p, q, r, s = sorted(drawn(generator, list("bdfgkmnprstz"), 4))
    return [
        ([list("dull"), list("duller"), list("fuller"), list("tell")], [3, 2, 2, 1]),
        ([[p, p, p, q], [r, q, p, p, p, p, p], [q, s], [q, r], [r, s, s]], [3, 2, 1, 2, 4]),
        ([[q, r], [p, q], [s, p], [r, p], [q, s]], [3, 3, 3, 3, 1]),
        ([[r + p, q, p, q], [s, p, q], [p + q, p, q, p, q], [r + p, q]], [2, 1, 1, 1]),
        ([[q, p], [q, s, p]], [2, 3]),
        ([[s, p, r, s, p], [q, p]], [2, 3]),
        ([[r, q], [p + s, q], [r + p + q, s]], [2, 2, 2]),
        ([[q, p], [r, q, p], [s, r]], [2, 2, 3]),
        ([[s, r, p], [q, r], [s, p], [q, s]], [1, 1, 1, 1]),
        ([[p + q, p], [r], [p, s]], [2, 9, 2]),
        ([[s, s, s], [q, r]], [2, 3]),
        ([[r, s], [p, q], [r, s]], [2, 3, 2]),
        ([[p + q, r], [p, q + r]], [2, 1]),
    ]


def observe_merge(function, pieces, times):
    output = function(pieces, times)
    if output is None:
        return None
    pair, after = pair_of(output, "the pair and the pieces after the merge")
    parts = pair_of(pair, "two pieces as the pair, such as ('l', 'l')")
    if not all(isinstance(part, str) for part in parts):
        raise TypeError(f"expected two pieces as the pair, such as ('l', 'l'), got {what(pair)}")
    asked = "a list of pieces for each word"
    after = [items_of(word, asked) for word in items_of(after, asked)]
    return {"pair": " + ".join(parts), "pieces": " | ".join(" ".join(str(piece) for piece in word) for word in after)}


def _pair_counts(case: Case) -> Counter:
    counts: Counter = Counter()
    for word, times in zip(*case.inputs):
        for pair in zip(word, word[1:]):
            counts[" + ".join(pair)] += times
    return counts


def _corpus(case: Case) -> str:
    return ", ".join(f"{' '.join(word)} ×{times}" for word, times in zip(*case.inputs))


def _wrong_pair(case: Case) -> str:
    counts = _pair_counts(case)
    got, right = case.pair, case.right["pair"]
    return (f"in the corpus {_corpus(case)} you chose {got} (count {counts[got]}), expected {right} (count "
            f"{counts[right]}).")


def _wrong_word(case: Case) -> str:
    if case.pair != case.right["pair"]:
        return _wrong_pair(case)
    for word, got, right in zip(case.inputs[0], case.pieces.split(" | "), case.right["pieces"].split(" | ")):
        if got != right:
            return f"merging {case.pair}, you turn '{' '.join(word)}' into '{got}', expected '{right}'."
    return f"you return {len(case.pieces.split(' | '))} words, expected {len(case.inputs[0])}."


def _apart(pieces, times) -> Counter:
    """Counts that leave out a pair which begins inside an equal one."""
    counts: Counter = Counter()
    for word, count in zip(pieces, times):
        before = None
        for pair in zip(word, word[1:]):
            before = None if pair == before else pair
            counts[pair] += count if before else 0
    return counts


def _without_overlaps(pieces, times):
    """The step with counts that leave out overlaps."""
    counts = _apart(pieces, times)
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    return best, [merge(word, best, best[0] + best[1]) for word in pieces]


def _across_words(pieces, times):
    """The step with counts over one long list of all words."""
    row = [piece for word, count in zip(pieces, times) for piece in word * count]
    counts = Counter(zip(row, row[1:]))
    best = min(counts, key=lambda pair: (-counts[pair], pair))
    return best, [merge(word, best, best[0] + best[1]) for word in pieces]


def _walking(walk):
    """The step with another walk through a word: walk(word, pair) gives its pieces."""
    def step(pieces, times):
        best, _ = merge_step(pieces, times)
        return best, [walk(word, best) for word in pieces]
    return step


def _first_place(word, pair):
    for i in range(len(word) - 1):
        if (word[i], word[i + 1]) == pair:
            return word[:i] + [word[i] + word[i + 1]] + word[i + 2 :]
    return word


def _by_text(word, pair):
    """Merges two neighbours whose joined text is the pair's."""
    merged, i = [], 0
    while i < len(word):
        fits = "".join(word[i : i + 2]) == "".join(pair) and i + 1 < len(word)
        merged.append("".join(pair) if fits else word[i])
        i += 2 if fits else 1
    return merged


CHOICE, PLACES = "min(counts, key=lambda pair: (-counts[pair], pair))", "zip(word, word[1:])"

STEP = ask(
    "2.6", merge_step, observe=observe_merge, probes=merge_probes,
    signature="merge_step(pieces (a list of strings for each word), times (list of counts)) -> the pair, as a tuple of two "
    "strings; the new pieces",
    mistakes={
        "times-ignored": M({"counts[pair] += count": "counts[pair] += 1"}, _wrong_word, "Every word was counted once. "
                           "Count it as often as `times` says."),
        "once-per-word": M({PLACES: "dict.fromkeys(zip(word, word[1:]))"}, _wrong_word, "A pair that occurs twice in a "
                           "word was counted once. Count every occurrence."),
        "overlaps-once": M(_without_overlaps, _wrong_word, "Overlapping occurrences of a pair were counted once. Counting "
                           "comes before merging: in three equal pieces in a row there are two pairs of neighbours."),
        "across-words": M(_across_words, _wrong_word, "You counted pairs across the border between two words. Count within "
                          "each word."),
        "last-of-equals": M({CHOICE: "max(counts, key=lambda pair: (counts[pair], pair))"}, _wrong_word, "Both are equally "
                            "frequent, and of these the rule takes the smallest pair, as Python compares tuples. You took "
                            "the largest."),
        "first-met": M({CHOICE: "max(counts, key=counts.get)"}, _wrong_word, "Both are equally frequent, and the one met "
                       "first was taken (max and most_common do that). So the order of the words would decide; take the "
                       "smallest pair, as Python compares tuples."),
        "ties-by-text": M({CHOICE: "min(counts, key=lambda pair: (-counts[pair], ''.join(pair)))"}, _wrong_word, "Both are "
                          "equally frequent, and you compared the two pieces joined into one text. Compare the left pieces "
                          "first, then the right ones, as tuples do."),
        "first-place-only": M(_walking(_first_place), _wrong_word, "Only the first occurrence in a word was merged; go on "
                              "to its end."),
        "overlap": M(_walking(lambda word, pair: ["".join(pair) if tuple(word[i : i + 2]) == pair else word[i]
                                                  for i in range(len(word))]),
                     _wrong_word, "A piece was used twice. After a merge, continue after both of its pieces: two steps, not "
                     "one."),
        "from-the-right": M(_walking(lambda word, pair: merge(word[::-1], pair[::-1], pair[0] + pair[1])[::-1]),
                            _wrong_word, "You merged from the right. It makes a difference with three equal pieces in a "
                            "row: merge from the left."),
        "text-replaced": M(_walking(lambda word, pair: " ".join(word).replace(" ".join(pair), "".join(pair)).split(" ")),
                           _wrong_word, "You joined the pieces into a text and replaced in it. The text doesn't know where "
                           "a piece begins; compare whole pieces."),
        "joined-compared": M(_walking(_by_text), _wrong_word, "You compared two neighbours, joined into one text, with the "
                             "joined pair. Different pairs can give the same text; compare both pieces."),
        "end-lost": M({"i < len(word)": "i < len(word) - 1"}, _wrong_word, "The last piece of a word gets lost unless it's "
                      "merged. Go on to the end of the word."),
        "letters-again": M(_walking(lambda word, pair: merge(list("".join(word)), pair, pair[0] + pair[1])), _wrong_word,
                           "The word was cut into letters again, and earlier merges are lost. Go through its pieces."),
        "rarest": M({CHOICE: "min(counts, key=lambda pair: (counts[pair], pair))"}, _wrong_word, "That is the rarest pair; "
                    "take the most frequent."),
    },
    rules=(
        R(lambda case: case.pair not in _pair_counts(case), lambda case: f"your pair {case.pair} never occurs side by side "
          f"in {_corpus(case)}.", "Count neighbours within a word, left and right piece in this order."),
        R(lambda case: case.pair != case.right["pair"], _wrong_pair, "Add times for every occurrence of a pair; of equal "
          "counts take the smallest, as Python compares tuples."),
        R(lambda case: case.pieces.replace(" ", "") != case.right["pieces"].replace(" ", ""), _wrong_word, "Joined again, "
          "the pieces must give the same words as before."),
        R(lambda case: case.pieces != case.right["pieces"], _wrong_word, "From the left: where the pair occurs, one new "
          "piece for the two; else the piece as it was."),
    ),
    hints=(
        "Two jobs: a count over all neighbours, and a walk through each word. Test them apart, on 'dull' with ('l', 'l').",
        "zip(word, word[1:]) gives the neighbours of a word; add times of the word for each.",
        "min(counts, key=lambda pair: (-counts[pair], pair)) is the most frequent, and of equals the smallest.",
        "Walk with while i < len(word): where word[i] and word[i + 1] are the pair, append both joined and go on by 2, else "
        "append word[i] and go on by 1.",
    ),
)

# ---------------------------------------------------------------- 2.14 learn the merges

def learn_merges(words, times, num_merges):
    merges = []
    for k in range(num_merges):
        counts = Counter()
        for word, count in zip(words, times):
            for pair in zip(word, word[1:]):
                counts[pair] += count
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        words = [merge(word, best, 256 + k) for word in words]
        merges.append(best)
    return merges


def _counted_pairs(words, times) -> Counter:
    counts: Counter = Counter()
    for word, count in zip(words, times):
        for pair in zip(word, word[1:]):
            counts[pair] += count
    return counts


def _counted_once(words, times, num_merges):
    counts = _counted_pairs(words, times)
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:num_merges]


def _most_common(words, times, num_merges):
    return [pair for pair, _ in _counted_pairs(words, times).most_common(num_merges)]


def _loop(count=_counted_pairs, of_pair=lambda pair, tokens: pair, merge_in=merge, kept=False):
    """The loop with one thing changed: how pairs are counted, what decides between equal counts (`of_pair`, which knows what
    each id spells), how a word is merged, or that the counts of earlier rounds are kept."""
    def learn(words, times, num_merges):
        tokens, counts, merges = [bytes([b]) for b in range(256)], Counter(), []
        for k in range(num_merges):
            counts = (counts if kept else Counter()) + count(words, times)
            best = min(counts, key=lambda pair: (-counts[pair], of_pair(pair, tokens)))
            words = [merge_in(word, best, 256 + k) for word in words]
            merges.append(best)
            tokens.append(tokens[best[0]] + tokens[best[1]])
        return merges
    return learn


_overlaps_once, _counts_kept = _loop(count=_apart), _loop(kept=True)
_ties_by_bytes = _loop(of_pair=lambda pair, tokens: [tokens[i] for i in pair])
_ties_by_joined_bytes = _loop(of_pair=lambda pair, tokens: tokens[pair[0]] + tokens[pair[1]])
_first_place_only = _loop(merge_in=lambda word, pair, new_id: _merge_first(word, pair, new_id))     # which is below


def _over_borders(words, times, num_merges):
    """Counts over one list of all words."""
    row = [one for word, count in zip(words, times) for one in list(word) * count]
    return learn_merges([row], [1], num_merges)


def loop_probes(generator: torch.Generator) -> list[tuple]:
    """(words, times, num_merges): the example and the four words of section 2; words of few letters, so that merges build on
    merges and counts are often equal; one word; runs; accents and an emoji; one merge, a tie of equal left parts, overlaps,
    two ties of a new id and a byte, and no merge. The words have as many pairs as there are merges, at least, so that an
    answer which counts once goes to the end."""
    p, q, r, s = sorted(drawn(generator, list("bdfgkmnprstz"), 4))

    def some(how_many, letters):
        sizes = torch.randint(4, 8, (how_many,), generator=generator).tolist()
        places = [torch.randint(len(letters), (size,), generator=generator).tolist() for size in sizes]
        return ["".join(letters[i] for i in row) for row in places]

    def ids(*words):
        return [list(word.encode("utf-8")) for word in words]

    return [
        (ids("dull", "tell"), [3, 1], 2),
        (ids("dull", "duller", "fuller", "tell"), [3, 2, 2, 1], 4),
        (ids(*some(6, p + q + r)), [1, 4, 2, 3, 1, 2], 6),
        (ids(*some(5, p + q + r + s)), [2, 2, 1, 3, 1], 5),
        (ids(p * 9 + q, r + p * 4), [1, 2], 3),
        (ids(p + q + r + s + p + q + r + s), [1], 3),
        (ids("é🎬é", "é" + p, "🎬" + p), [2, 3, 1], 5),
        (ids(q + p, s + r, q + p + s), [2, 3, 1], 1),
        (ids(q + p, p + q, q + p), [1, 3, 1], 1),
        (ids(p + r, p + q), [1, 1], 1),
        (ids(p * 3, q + r), [2, 3], 1),
        (ids(p + q + r + p + q, s + r), [2, 3], 1),                        # twice in a word, and not overlapping
        (ids(p + p + q, p + p, r + s), [2, 1, 2], 2),
        (ids(p + q, p + r, p + q + p), [2, 2, 2], 2),
        (ids(p + q, r), [2, 5], 0),
    ]


NOTHING = "nothing"                                                         # None, where no merge was asked for


def observe_loop(function, words, times, num_merges):
    output = function(words, times, num_merges)
    if output is None:
        return None if num_merges else {"merges": NOTHING}
    if isinstance(output, NoList):
        raise TypeError(f"expected a list, got a {output.was}. Later cells read the merges more than once, and by their "
                        "numbers: put them into a list and return that")
    asked = f"a list of {num_merges} pairs of ids, the merges in their order"
    merges = []
    for one in items_of(output, asked):
        if not hasattr(one, "__iter__") or isinstance(one, (str, dict)):
            raise TypeError(f"expected {asked}, got {what(one)} in it. The ids of the new pieces needn't be returned: merge "
                            "number k makes 256 + k")
        if isinstance(one, list):
            raise TypeError(f"expected each merge as a tuple, such as (108, 108), got the list {one}. Later cells look "
                            "pairs up, and a list can't be looked up")
        merges.append(" ".join(str(whole_id(i)) for i in pair_of(one, asked)))
    return {"merges": " | ".join(merges)}


def _of(merges: str) -> list[tuple[int, ...]]:
    return [tuple(int(i) for i in one.split()) for one in merges.split(" | ") if one not in ("", NOTHING)]


def _words_of(case: Case) -> str:
    return ", ".join(f"{bytes(word).decode('utf-8')} ×{times}" for word, times in zip(*case.inputs[:2]))


def _wrong_merge(case: Case) -> str:
    """The first merge that isn't the right one, or how many there are."""
    got, right = _of(case.merges), _of(case.right["merges"])
    for k, (yours, true) in enumerate(zip(got, right)):
        if yours != true:
            return f"from {_words_of(case)} your merge {k} is {yours}, expected {true}."
    return _how_many(case)


def _how_many(case: Case) -> str:
    if case.merges == NOTHING:
        return "with num_merges=0 you return None."
    got, right = (len(_of(merges)) for merges in (case.merges, case.right["merges"]))
    return f"from {_words_of(case)} you learn {got} merge{'s' * (got != 1)}, expected {right}."


LOOP_CHOICE, LOOP_MERGE = "min(counts, key=lambda pair: (-counts[pair], pair))", "256 + k"

LOOP = ask(
    "2.14", learn_merges, observe=observe_loop, probes=loop_probes,
    signature="learn_merges(words (lists of ids), times (list of counts), num_merges) -> merges, a list of pairs of ids",
    mistakes={
        "not-merged": M({"words = [merge(word, best, 256 + k) for word in words]": ""}, _wrong_merge, "You find the same "
                        "pair again and again, because the words stay as they were. Merge it in every word, and count in "
                        "the new words."),
        "counted-once": M(_counted_once, _wrong_merge, "You count once and take the most frequent pairs of that count. Each "
                          "merge changes who stands beside whom: count again after each."),
        "counted-once-most-common": M(_most_common, _wrong_merge, "You count once and take the most_common of that count. "
                                      "Each merge changes who stands beside whom: count again after each. (Of equal counts "
                                      "most_common takes the one met first; take the smallest.)"),
        "return-in-the-loop": M(lambda words, times, num_merges: learn_merges(words, times, 1) if num_merges else None,
                                _how_many, "`return merges` is in the loop, so the first round ends it all. Put it behind "
                                "the loop."),
        "ids-added": M({LOOP_MERGE: "best[0] + best[1]"}, _wrong_merge, "You add the two ids, as exercise 2.6 joins two "
                       "texts, and their sum is another piece's id. Merge number k makes the id 256 + k."),
        "overlaps-once": M(_overlaps_once, _wrong_merge, "Overlapping occurrences of a pair were counted once. In three "
                           "equal ids in a row there are two pairs of neighbours."),
        "ties-by-bytes": M(_ties_by_bytes, _wrong_merge, "Both are equally frequent, and you compared what the "
                           "pieces spell. Compare the pairs of ids as they are."),
        "ties-by-joined-bytes": M(_ties_by_joined_bytes, _wrong_merge, "Both are equally frequent, and you compared what "
                                  "the joined pieces spell. Compare the pairs of ids as they are."),
        "ties-by-left-part": M({LOOP_CHOICE: "min(counts, key=lambda pair: (-counts[pair], pair[0]))"}, _wrong_merge, "Both "
                               "are equally frequent, and you compared the left ids alone. If these are equal as well, the "
                               "right ones decide: compare whole pairs."),
        "counts-kept": M(_counts_kept, _wrong_merge, "You add to the counts of the round before. Begin each round with an "
                         "empty Counter."),
        "times-ignored": M({"counts[pair] += count": "counts[pair] += 1"}, _wrong_merge, "You count every word once. Count "
                           "it as often as `times` says."),
        "once-per-word": M({"zip(word, word[1:])": "dict.fromkeys(zip(word, word[1:]))"}, _wrong_merge, "You count a pair "
                           "once in a word. Count every position where it occurs."),
        "across-words": M(_over_borders, _wrong_merge, "You count neighbours across the border between two words. Count "
                          "within each word."),
        "first-met": M({LOOP_CHOICE: "max(counts, key=counts.get)"}, _wrong_merge, "Both are equally frequent, and you "
                       "took the one met first. Take the smallest pair, as Python compares tuples."),
        "last-of-equals": M({LOOP_CHOICE: "max(counts, key=lambda pair: (counts[pair], pair))"}, _wrong_merge, "Both are "
                            "equally frequent, and you took the largest pair. Take the smallest."),
        "rarest": M({LOOP_CHOICE: "min(counts, key=lambda pair: (counts[pair], pair))"}, _wrong_merge, "That is the rarest "
                    "pair; take the most frequent."),
        "first-place-only": M(_first_place_only, _wrong_merge, "You merge one place in each word. Merge the pair wherever "
                              "it occurs, as `merge` does."),
        "numbered-from-zero": M({LOOP_MERGE: "k"}, _wrong_merge, "The ids up to 255 are bytes. Merge number k makes the id "
                                "256 + k."),
        "numbered-from-one": M({LOOP_MERGE: "257 + k"}, _wrong_merge, "The first merge has number 0 and makes the id 256: "
                               "256 + k."),
        "numbered-one-too-low": M({LOOP_MERGE: "255 + k"}, _wrong_merge, "255 is a byte's id. The first merge has number 0 "
                                  "and makes the id 256: 256 + k."),
        "one-id-for-all": M({LOOP_MERGE: "256"}, _wrong_merge, "Every merge makes the same id, so different pieces look "
                            "equal. Merge number k makes the id 256 + k."),
        "one-too-few": M({"range(num_merges)": "range(num_merges - 1)"}, _wrong_merge, "The last merge is missing: "
                         "range(num_merges) counts from 0."),
        "reversed": M({"merges.append(best)": "merges.insert(0, best)"}, _wrong_merge, "Your merges are in reverse order. "
                      "The first one learned comes first, since its place in the list is its number."),
    },
    rules=(
        R(lambda case: case.merges == NOTHING, _how_many, "`return merges` belongs behind the loop, where it's reached "
          "even if there's no round."),
        R(lambda case: len(_of(case.merges)) != len(_of(case.right["merges"])), _how_many, "num_merges says how many."),
        R(lambda case: case.merges != case.right["merges"], _wrong_merge, "Each round: count the pairs of neighbours in the "
          "words as they are now, take the most frequent one, of equals the smallest, and merge it in every word."),
    ),
    hints=(
        "The loop goes over k, the number of the merge. What has to be new in each round, and what must last?",
        "In each round: an empty Counter, the two loops of exercise 2.6 that fill it, the choice, and the merge in all "
        "words.",
        "words = [merge(word, best, 256 + k) for word in words] makes new lists; merges.append(best) keeps the pair.",
    ),
)

# ---------------------------------------------------------------- 2.9 encode a chunk

def encode_chunk(chunk, merges):
    ids = list(chunk.encode("utf-8"))
    for k, pair in enumerate(merges):
        ids = merge(ids, pair, 256 + k)
    return ids


def numbered(*pairs: str) -> list[tuple[int, int]]:
    """Merges as pairs of ids: 'l l' of two bytes, then 'u ll', whose right part is the first merge; '_' is a space."""
    tokens, merges = {bytes([b]): b for b in range(256)}, []
    for k, pair in enumerate(pairs):
        left, right = (part.replace("_", " ").encode("latin-1") for part in pair.split(" "))
        merges.append((tokens[left], tokens[right]))
        tokens[left + right] = 256 + k
    return merges


BLESS = numbered("_ b", "l e", "e s", "le s", "les s", "es s", "_b l")


def chunk_probes(generator: torch.Generator) -> list[tuple]:
    """(chunk, merges): two examples of the notebook; runs; the earliest to the right of others, or of higher ids; a merge
    that is frequent and late; accents and an emoji; no merges; merges that don't occur; a word that is one piece; a pair
    whose numbers, written down, are in others too; a pair that occurs twice, and in the way of an earlier one."""
    p, q, r, s = sorted(drawn(generator, list("bdfgkmnprtz"), 4))
    return [
        ("fullest", numbered("l l", "u ll", "d ull", "e r")),
        (" bless", BLESS),
        (p * 7 + q, numbered(f"{p} {p}", f"{p}{p} {p}", f"{p} {q}")),
        (p + q + r + s + p + q, numbered(f"{r} {s}", f"{q} {r}", f"{p} {q}", f"{p}{q} {r}{s}")),
        (q + r + p + q + r + q + r, numbered(f"{r} {p}", f"{q} {r}", f"{p} {q}", f"{q} {r}{p}")),
        (s + p + q + p + r, numbered(f"{s} {p}", f"{p} {q}", f"{q} {p}", f"{p} {r}", f"{q} {p}{r}")),
        ("é" + p + "é🎬", numbered("\xc3 \xa9", f"\xc3\xa9 {p}", "\xf0 \x9f", "\x8e \xac", "\xf0\x9f \x8e\xac")),
        (q + p + r, []),
        (p + q, numbered(f"{r} {s}", f"{q} {p}")),
        (p + q + r + s, numbered(f"{p} {q}", f"{r} {s}", f"{p}{q} {r}{s}")),
        ("nb\n" + "b", numbered("\n b")),                                      # 110 98 10 98
        (p + q + r + q + r, numbered(f"{p} {q}", f"{q} {r}")),                 # the later pair is the more frequent
        (q + r + s + q + r, numbered(f"{r} {s}", f"{q} {r}")),
    ]


def observe_encode(function, chunk, merges):
    output = function(chunk, merges)
    return None if output is None else {"ids": " ".join(str(whole_id(one)) for one in items_of(output, "a list of ids"))}


def _tokens(merges) -> list[bytes]:
    """What each id stands for."""
    pieces = [bytes((i,)) for i in range(256)]
    for pair in merges:
        pieces.append(b"".join(pieces[i] for i in pair))
    return pieces


def _shown(ids: list[int], merges) -> str:
    """'b|less' where the ids have such pieces, else the ids."""
    tokens = _tokens(merges)
    if any(not 0 <= i < len(tokens) for i in ids):
        return str(ids)
    return "|".join(tokens[i].decode("utf-8", "backslashreplace") for i in ids)


def _both(case: Case) -> tuple[list[int], list[int]]:
    """The learner's ids, and the right ones."""
    got, right = ([int(i) for i in ids.split()] for ids in (case.ids, case.right["ids"]))
    return got, right


def _cut(case: Case) -> str:
    """What was made of the chunk, and what it should be: as pieces, or as ids where the pieces look the same."""
    chunk, merges = case.inputs
    got, right = _both(case)
    shown = [_shown(ids, merges) for ids in (got, right)]
    return _numbers(case) if shown[0] in (shown[1], str(got)) else (
        f"{chunk!r} becomes {shown[0]} with you, expected {shown[1]}.")


def _numbers(case: Case) -> str:
    got, right = _both(case)
    return f"{case.inputs[0]!r} becomes {got} with you, expected {right}."


def _spelt(case: Case) -> bytes:
    """The bytes of the learner's ids, of which none is too high."""
    return b"".join(_tokens(case.inputs[1])[i] for i in _both(case)[0])


def _longest_first(chunk, merges):
    """The longest known piece from the left, again and again."""
    tokens, data, ids = _tokens(merges), chunk.encode("utf-8"), []
    while data:
        best = max((i for i, token in enumerate(tokens) if data.startswith(token)), key=lambda i: len(tokens[i]))
        ids.append(best)
        data = data[len(tokens[best]) :]
    return ids


def _choosing(choose, merge=merge):
    """Merges one of the learned pairs that are there, again and again: choose(pairs in their places, rank) says which."""
    def encode(chunk, merges):
        ids, rank = list(chunk.encode("utf-8")), {pair: k for k, pair in reversed(list(enumerate(merges)))}
        while pairs := [pair for pair in zip(ids, ids[1:]) if pair in rank]:
            pair = choose(pairs, rank)
            ids = merge(ids, pair, 256 + rank[pair])
        return ids
    return encode


def _one_sweep(chunk, merges):
    """Once from the left: whatever pair is in the list is merged."""
    ids, rank, found, i = list(chunk.encode("utf-8")), {pair: k for k, pair in enumerate(merges)}, [], 0
    while i < len(ids):
        pair = tuple(ids[i : i + 2])
        found.append(256 + rank[pair] if pair in rank else ids[i])
        i += 2 if pair in rank else 1
    return found


def _sweeps(chunk, merges):
    """Sweeps like the one above until nothing changes."""
    ids, rank, before = list(chunk.encode("utf-8")), {pair: k for k, pair in enumerate(merges)}, []
    while ids != before:
        before, ids, i = ids, [], 0
        while i < len(before):
            pair = tuple(before[i : i + 2])
            ids.append(256 + rank[pair] if pair in rank else before[i])
            i += 2 if pair in rank else 1
    return ids


def _by_joined_bytes(chunk, merges):
    """tiktoken's rule: of the neighbours whose joined bytes are a piece, the piece that was learned first."""
    data = [bytes([b]) for b in chunk.encode("utf-8")]
    rank = {token: i for i, token in reversed(list(enumerate(_tokens(merges))))}
    while places := [i for i in range(len(data) - 1) if data[i] + data[i + 1] in rank]:
        first = min(places, key=lambda i: rank[data[i] + data[i + 1]])
        data[first : first + 2] = [data[first] + data[first + 1]]
    return [rank[piece] for piece in data]


def _one_merge(chunk, merges):
    """Stops after the first merge that fits."""
    ids = list(chunk.encode("utf-8"))
    for k, pair in enumerate(merges):
        if pair in zip(ids, ids[1:]):
            return merge(ids, pair, 256 + k)
    return ids


def _stops_early(chunk, merges):
    """Goes through the merges until one doesn't fit."""
    ids = list(chunk.encode("utf-8"))
    for k, pair in enumerate(merges):
        if pair not in zip(ids, ids[1:]):
            break
        ids = merge(ids, pair, 256 + k)
    return ids


def _in_text(chunk, merges):
    text = " ".join(str(b) for b in chunk.encode("utf-8"))
    for k, (left, right) in enumerate(merges):
        text = text.replace(f"{left} {right}", str(256 + k))
    return [int(one) for one in text.split()]


def _merge_first(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if (ids[i], ids[i + 1]) == pair:
            return ids[:i] + [new_id] + ids[i + 2 :]
    return ids


def _with_merge(other):
    """The answer with another `merge`."""
    def encode(chunk, merges):
        ids = list(chunk.encode("utf-8"))
        for k, pair in enumerate(merges):
            ids = other(ids, pair, 256 + k)
        return ids
    return encode


COUNTED = ("You merge the pair that is most frequent in this chunk. Counting is for training. Encoding counts nothing: it "
           "repeats the merges in the order learned.")
FROM_THE_LEFT = ("You merge the first learned pair from the left. What counts isn't where a pair stands but when it was "
                 "learned: the earliest goes first.")
BYTES, MERGED = 'list(chunk.encode("utf-8"))', "256 + k"

ENCODE = ask(
    "2.9", encode_chunk, observe=observe_encode, probes=chunk_probes,
    signature="encode_chunk(chunk (a text), merges (a list of pairs of ids, in the order learned)) -> list of ids; "
    "merges[k] makes the id 256 + k",
    mistakes={
        "longest-first": M(_longest_first, _cut, "From the left you take the longest piece there is. That's WordPiece's "
                           "rule. Byte pairs are merged in the order in which they were learned, wherever they stand; a "
                           "model trained on those pieces has never seen yours for this word."),
        "latest-first": M(_choosing(lambda pairs, rank: max(pairs, key=rank.get)), _cut, "Of the pairs that are there you "
                          "merge the one that was learned last. Training made the earlier merges first, and so must you."),
        "reversed": M({"enumerate(merges)": "reversed(list(enumerate(merges)))"}, _cut, "You go through the merges from "
                      "the last to the first. A late merge is made of pieces that earlier ones have to make before it."),
        "leftmost-first": M(_choosing(lambda pairs, rank: pairs[0]), _cut, FROM_THE_LEFT),
        "leftmost-place": M(_choosing(lambda pairs, rank: pairs[0], _merge_first), _cut, FROM_THE_LEFT +
                            " And make it wherever its pair stands."),
        "most-frequent": M(_choosing(lambda pairs, rank: min(pairs, key=lambda pair: (-pairs.count(pair), rank[pair]))),
                           _cut, COUNTED),
        "most-frequent-met": M(_choosing(lambda pairs, rank: max(pairs, key=pairs.count)), _cut, COUNTED + " Nor does it "
                               "matter which pair is met first."),
        "most-frequent-smallest": M(_choosing(lambda pairs, rank: min(pairs, key=lambda pair: (-pairs.count(pair), pair))),
                                    _cut, COUNTED + " And ids decide ties in training alone."),
        "smallest-ids": M(_choosing(lambda pairs, rank: min(pairs)), _cut, "You merge the pair with the smallest ids. Ids "
                          "decide ties in training; here the order is that of the list `merges`."),
        "one-sweep": M(_one_sweep, _cut, "You went through the chunk once. A merged piece can be part of a later merge, so "
                       "go through it again for each merge in the list."),
        "every-pair-a-sweep": M(_sweeps, _cut, "You merge every known pair in one pass, and repeat it. Only the earliest "
                                "learned may be merged, everywhere; then look again."),
        "joined-bytes": M(_by_joined_bytes, _cut, "You look for the joined bytes among the pieces, as OpenAI's tiktoken "
                          "does. With merges learned from texts the cuts are nearly always the same. But the list holds "
                          "pairs: merge two ids only if this pair was learned.", convention=True),
        "one-merge": M(_one_merge, _cut, "You stopped after one merge. Go on with the rest of the list."),
        "stops-early": M(_stops_early, _cut, "You stop at the first merge that isn't in the chunk. Most merges aren't; "
                         "skip them and go on to the end of the list."),
        "first-place-only": M(_with_merge(_merge_first), _cut, "Each merge was made in one place only. Make it wherever its "
                              "pair stands."),
        "overlap": M(_with_merge(lambda ids, pair, new: [new if tuple(ids[i : i + 2]) == pair else ids[i]
                                                         for i in range(len(ids))]), _cut,
                     "A merge puts one id in place of two, and both of them are gone."),
        "from-the-right": M(_with_merge(lambda ids, pair, new: merge(ids[::-1], pair[::-1], new)[::-1]), _cut, "You merged "
                            "from the right. It makes a difference with three equal pieces in a row: from the left, as "
                            "`merge` does."),
        "text-replaced": M(_in_text, _numbers, "You joined the ids into a text and replaced in it. The text doesn't know "
                           "where a number begins: '10 98' is also in '110 98'. Compare whole ids."),
        "numbered-from-zero": M({MERGED: "k"}, _numbers, "The ids up to 255 are the bytes. Merge number k makes the id 256 "
                                "+ k."),
        "numbered-from-one": M({MERGED: "257 + k"}, _numbers, "The first merge has number 0 and makes the id 256. With "
                               "ids that are one too high, later merges don't find their pieces."),
        "numbered-one-too-low": M({MERGED: "255 + k"}, _numbers, "Ids begin at 256 + k: the first merge has number 0 and "
                                  "makes the id 256, since 255 is a byte's. With ids that are one too low, later merges "
                                  "don't find their pieces."),
        "code-points": M({BYTES: "[ord(letter) for letter in chunk]"}, _cut, "These are code points, one for each "
                         "character. Merges are pairs of bytes: chunk.encode(\"utf-8\") gives them, two for an é, four "
                         "for an emoji."),
    },
    rules=(
        R(lambda case: not case.inputs[1] and case.ids != case.right["ids"], _numbers, "There are no merges here, so the "
          "ids are the bytes."),
        R(lambda case: any(not 0 <= i < 256 + len(case.inputs[1]) for i in _both(case)[0]), _numbers, "An id is a byte, 0 "
          "to 255, or 256 + k for a merge in the list."),
        R(lambda case: _spelt(case) != case.inputs[0].encode(), _cut, "Put together, your pieces aren't the chunk any more: "
          "a byte got lost, or came twice."),
        R(lambda case: case.ids != case.right["ids"], _cut, "For each merge of the list, from the first to the last: put "
          "its id wherever its pair stands."),
    ),
    hints=(
        "Begin with list(chunk.encode(\"utf-8\")). Do the chunk 'fullest' with the four toy merges on paper.",
        "Which loop is outside? The one over the merges: enumerate(merges) gives each with its number.",
        "for k, pair in enumerate(merges): ids = merge(ids, pair, 256 + k)",
    ),
)

# ---------------------------------------------------------------- 2.10 decode

def decode(ids, merges):
    tokens = [bytes([b]) for b in range(256)]
    for left, right in merges:
        tokens.append(tokens[left] + tokens[right])
    return b"".join(tokens[i] for i in ids).decode("utf-8", errors="replace")


def ids_probes(generator: torch.Generator) -> list[tuple]:
    """(ids, merges): an example of the notebook; an emoji in two pieces; the first half of one; a lone last byte between
    letters; no ids; accents; merges alone; spaces at both ends; ids in any order."""
    p, q, r = drawn(generator, list("bdfgkmnprtz"), 3)
    film = numbered("\xf0 \x9f", "\x8e \xac", "\xc3 \xa9", f"{p} {q}", f"{p}{q} {r}")
    mixed = torch.randint(0, 256 + len(film), (9,), generator=generator).tolist()
    return [([102, 257, 101, 115, 116], numbered("l l", "u ll", "d ull", "e r")), ([256, 257, 32, ord(p), 260], film),
            ([ord(q), 256], film), ([ord(r), 0xAC, 259], film), ([], film), (encode_chunk(f"{p}é{q}é", film), film),
            ([260, 259, 258], film), ([32, ord(p), 32], film), (mixed, film), (encode_chunk("été 🎬", []), [])]


STOPPED = "stopped"                                                         # in place of a text, by a UnicodeDecodeError


def observe_decode(function, ids, merges):
    try:
        output = function(ids, merges)
    except UnicodeDecodeError:
        return {"text": STOPPED}
    if output is None:
        return None
    if not isinstance(output, str):
        raise TypeError(f"expected a text, got {what(output)}")
    return {"text": " ".join(f"{ord(one):x}" for one in output)}            # code points, so that every character counts


def _joined(codes: str) -> str:
    return "".join(chr(int(code, 16)) for code in codes.split())


def _as_text(codes: str) -> str:
    return repr(_joined(codes))


def _stopped(case: Case) -> str:
    """What to say of an answer that stops at some bytes; KeyError for a case in which it gave a text."""
    if case.text != STOPPED:
        raise KeyError(case.text)
    return f"on {case.inputs[0]} it stops with a UnicodeDecodeError, expected {_as_text(case.right['text'])}."


def _all_or_nothing(ids, merges):
    """One replacement character for the whole text, if anything in it forms no character."""
    text = decode(ids, merges)
    return "\ufffd" if "\ufffd" in text else text


def _text(case: Case) -> str:
    return f"from {case.inputs[0]} you get {_as_text(case.text)}, expected {_as_text(case.right['text'])}."


def _only_broken(case: Case) -> bool:
    """Whether the text differs from the right one only where bytes form no character."""
    got, *kept = (_joined(one) for one in (case.text, *case.right["text"].split("fffd")))
    return len(kept) > 1 and case.text != case.right["text"] and bool(
        re.fullmatch(".*".join(re.escape(one) for one in kept), got, re.DOTALL))


JOINED = 'b"".join(tokens[i] for i in ids).decode("utf-8", errors="replace")'

DECODE = ask(
    "2.10", decode, observe=observe_decode, probes=ids_probes,
    signature="decode(ids (a list), merges (a list of pairs of ids, in the order learned)) -> text",
    mistakes={
        "one-by-one": M({JOINED: '"".join(tokens[i].decode("utf-8", errors="replace") for i in ids)'}, _text, "You decode "
                        "each id by itself. The bytes of one character may lie in two ids: join all bytes first, then "
                        "decode once."),
        "one-by-one-strict": M({JOINED: '"".join(tokens[i].decode("utf-8") for i in ids)'}, _stopped, "You decode each id "
                               "by itself, and the bytes of one character may lie in two ids: join all bytes first, then "
                               "decode once, with errors=\"replace\" for what forms no character."),
        "strict": M({'errors="replace"': 'errors="strict"'}, _stopped, "Some ids form no character; .decode(\"utf-8\", "
                    "errors=\"replace\") puts '\\ufffd' in their place, and goes on."),
        "all-or-nothing": M(_all_or_nothing, _text, "You give '\\ufffd' for the whole text. Only the bytes that form no "
                            "character become '\\ufffd'; the others are letters still: errors=\"replace\"."),
        "left-out": M({'errors="replace"': 'errors="ignore"'}, _text, "Bytes that form no character are left out. Then "
                      "nobody sees that something was broken: put '\\ufffd' in their place, errors=\"replace\"."),
        "question-marks": M(lambda ids, merges: decode(ids, merges).replace("\ufffd", "?"), _text, "You put '?' for what "
                            "forms no character, and a text may have a real '?'. The replacement character is '\\ufffd': "
                            "errors=\"replace\"."),
        "stripped": M(lambda ids, merges: decode(ids, merges).strip(), _text, "White space at the ends is lost. It's in the "
                      "ids, so it belongs to the text: nothing may be stripped."),
        "byte-by-byte": M({JOINED: '"".join(chr(b) for i in ids for b in tokens[i])'}, _text, "You made a character of each "
                          "byte. Beyond ASCII a character has two to four of them: .decode(\"utf-8\") puts them together."),
        "with-spaces": M({'b"".join(tokens[i] for i in ids)': 'b" ".join(tokens[i] for i in ids)'}, _text, "You put spaces "
                         "between the pieces. A space is a byte like any other, and where there was one it's in a piece "
                         "already."),
        "parts-exchanged": M({"tokens[left] + tokens[right]": "tokens[right] + tokens[left]"}, _text, "The two parts of a "
                             "merge are exchanged: the left one's bytes come first."),
    },
    rules=(
        R(lambda case: case.text == STOPPED, _stopped, "Bytes that form no character become '\\ufffd': join the bytes of "
          "all ids, then .decode(\"utf-8\", errors=\"replace\") once."),
        R(lambda case: len(case.inputs[0]) == 0 and case.text != "", _text, "No ids are the empty text."),
        R(_only_broken, _text, "All is right but for the bytes that form no character. '\\ufffd' goes in their place: "
          ".decode(\"utf-8\", errors=\"replace\")."),
        R(lambda case: case.text != case.right["text"], _text, "An id below 256 is a byte; any other has the bytes of its "
          "merge's left part and then those of its right one. Join the bytes of all ids, then decode them."),
    ),
    hints=(
        "`spell_out(merges)` in section 2 lists the bytes of every id.",
        "b\"\".join(…) joins the bytes of all ids. Decode what comes out, once.",
        "b\"\".join(tokens[i] for i in ids).decode(\"utf-8\", errors=\"replace\")",
    ),
)

QUIZ = """
- name: no-merges
  taught: "02b"
  question: Byte-level BPE with no merges at all. Which of these is false?
  options:
    - text: Every text comes back unchanged.
      remark: This is true. Each byte has an id, and bytes can be put together again without any merge.
    - text: Nothing is ever unknown.
      remark: "This is true: there are 256 bytes, and each has an id."
    - text: "'🎬' is one token."
      right: true
      remark: It is four bytes, and so it is four tokens. Only merges could make it one.
- name: which-cut
  taught: "02b"
  question: "Three merges were learned, in this order: 'u l', 'l l', 'd ul'. How is 'dull' cut?"
  options:
    - text: dul, l
      right: true
      remark: "'u l' comes first and uses up one l, so 'l l' finds no pair any more; then 'd ul'."
    - text: d, u, ll
      remark: "'l l' was learned second. By its turn, 'u l' has taken the first l."
    - text: dull, since longer pieces save more tokens
      remark: There is no merge that makes 'dull', and encoding looks at the order of the merges, not at lengths.
- name: lost-space
  taught: "02b"
  question: "The pattern's fifth line, `\\\\s+(?!\\\\S)`, is taken out. What changes for 'a   b', with three spaces?"
  options:
    - text: The three spaces become three chunks.
      remark: "`\\\\s+` takes a whole run of white space at once."
    - text: "'b' comes without its space."
      right: true
      remark: "`\\\\s+` takes all three spaces. With the line, two of them are one chunk and the third stays with ' b'."
    - text: One space is lost, and the text doesn't come back.
      remark: Every character is still in some chunk. They are only cut elsewhere.
- name: half-an-emoji
  taught: "02b"
  question: A chatbot shows each token as soon as it's there, decoded by itself. Now and then an emoji comes as '����'. Why?
  options:
    - text: The emoji is unknown to the tokenizer.
      remark: Nothing is unknown to byte pairs. The emoji has ids like everything else.
    - text: The model has chosen wrong tokens.
      remark: Then another emoji would appear, or another character. Decoded together, these tokens are right.
    - text: Its bytes lie in several tokens, and none of them is a character.
      right: true
      remark: Join the bytes first, and show a character when all of its bytes are there.
- name: counted-letters
  taught: "02b"
  question: Why may a model miscount the letters of a frequent word?
  options:
    - text: Frequent words are cut into many pieces.
      remark: "It's the other way round: frequent words are merged until they're one piece, or nearly."
    - text: The word is one number to it, and the number doesn't say which letters it was made of.
      right: true
      remark: What it knows of the letters it has to learn from texts that spell the word out.
    - text: Decoding loses some of the letters.
      remark: Decoding loses nothing. The letters aren't in what the *model* reads.
- name: other-ids
  taught: "02"
  question: You train the tokenizer again, on other texts, and load the old model's weights. What happens?
  options:
    - text: An error, since the list of tokens has changed.
      remark: Only if its *length* has changed. The shapes fit, so nothing complains.
    - text: Nothing, as long as every text still comes back.
      remark: Texts come back with either list. But the model has learned what each *id* means.
    - text: The ids mean other pieces now, and the model reads nonsense.
      right: true
      remark: Save the tokenizer with the weights, words or byte pairs.
"""

WARM_UP = """
- name: two-unknown-words
  taught: "02"
  question: Neither 'joyless' nor 'spellbinding' is in a word tokenizer's vocabulary. What does the model see of them?
  options:
    - text: For each, the word in the list that is most like it.
      remark: Nothing compares spellings. A word that isn't in the list gets the id of `<unk>`.
    - text: The same id for both, that of `<unk>`.
      right: true
      remark: So two opposite verdicts may become the same numbers. In this notebook no word is unknown.
    - text: A new id for each, at the end of the list.
      remark: The model has no vectors for new ids. What isn't in the list becomes `<unk>`.
- name: same-count
  taught: "01"
  question: "Naive Bayes counts words. Which of these can it *not* tell apart?"
  options:
    - text: "'dull' and 'not dull'"
      remark: The second has one more word, with a count of its own.
    - text: "'not dull' and 'not moving'"
      remark: They differ in a word, and so in what's counted.
    - text: "'not dull but moving' and 'not moving but dull'"
      right: true
      remark: The same words, the same counts. What's cut away before the model can't be brought back by it.
- name: undecided-loss
  taught: "00"
  question: A model gives each of 256 classes the same probability. What is its cross-entropy?
  options:
    - text: ln 256
      right: true
      remark: Each has probability 1/256, and −ln (1/256) = ln 256, about 5.5. Notebook 13 predicts bytes like this.
    - text: "0"
      remark: That is the loss of a model that's certain and right.
    - text: 1/256
      remark: That is the probability. The loss is minus its logarithm.
"""
