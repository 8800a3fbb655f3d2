"""Exercise 2.6, a step of byte pair encoding. It is long, so it has a file of its own."""

from collections import Counter

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n02 import probes


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


MERGE_STEP = Exercise(
    observe=probes.observe_merge, probes=probes.merge_probes,
    signature="merge_step(pieces (a list of strings for each word), times (list of counts)) -> the pair, as a tuple of two "
    "strings; the new pieces",
    mistakes=(
        Mistake("times-ignored", _wrong_word, "Every word was counted once. Count it as often as `times` says."),
        Mistake("once-per-word", _wrong_word, "A pair that occurs twice in a word was counted once. Count every "
                "occurrence."),
        Mistake("overlaps-once", _wrong_word, "Overlapping occurrences of a pair were counted once. Counting comes before "
                "merging: in three equal pieces in a row there are two pairs of neighbours."),
        Mistake("across-words", _wrong_word, "You counted pairs across the border between two words. Count within each "
                "word."),
        Mistake("last-of-equals", _wrong_word, "Both are equally frequent, and of these the rule takes the smallest "
                "pair, as Python compares tuples. You took the largest."),
        Mistake("first-met", _wrong_word, "Both are equally frequent, and the one met first was taken (max and most_common "
                "do that). So the order of the words would decide; take the smallest pair, as Python compares tuples."),
        Mistake("ties-by-text", _wrong_word, "Both are equally frequent, and you compared the two pieces joined into one "
                "text. Compare the left pieces first, then the right ones, as tuples do."),
        Mistake("first-place-only", _wrong_word, "Only the first occurrence in a word was merged; go on to its end."),
        Mistake("overlap", _wrong_word, "A piece was used twice. After a merge, continue after both of its pieces: two "
                "steps, not one."),
        Mistake("from-the-right", _wrong_word, "You merged from the right. It makes a difference with three equal pieces in "
                "a row: merge from the left."),
        Mistake("text-replaced", _wrong_word, "You joined the pieces into a text and replaced in it. The text doesn't know "
                "where a piece begins; compare whole pieces."),
        Mistake("letters-again", _wrong_word, "The word was cut into letters again, and earlier merges are lost. Go through "
                "its pieces."),
        Mistake("rarest", _wrong_word, "That is the rarest pair; take the most frequent."),
    ),
    properties=(
        Property(lambda case: case.pair not in _pair_counts(case), lambda case: f"your pair {case.pair} never occurs side "
                 f"by side in {_corpus(case)}.", "Count neighbours within a word, left and right piece in this order."),
        Property(lambda case: case.pair != case.right["pair"], _wrong_pair, "Add times for every occurrence of a pair; "
                 "of equal counts take the smallest, as Python compares tuples."),
        Property(lambda case: case.pieces.replace(" ", "") != case.right["pieces"].replace(" ", ""), _wrong_word,
                 "Joined again, the pieces must give the same words as before."),
        Property(lambda case: case.pieces != case.right["pieces"], _wrong_word, "From the left: where the pair occurs, one "
                 "new piece for the two; else the piece as it was."),
    ),
    hints=(
        "Two jobs: a count over all neighbours, and a walk through each word. Test them apart, on 'dull' with ('l', 'l').",
        "zip(word, word[1:]) gives the neighbours of a word; add times of the word for each.",
        "min(counts, key=lambda pair: (-counts[pair], pair)) is the most frequent, and of equals the smallest.",
        "Walk with while i < len(word): where word[i] and word[i + 1] are the pair, append both joined and go on by 2, else "
        "append word[i] and go on by 1.",
    ),
)
