"""Exercises 17.4 to 17.6: which candidate wins, writing with a cache, n-gram precision."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import gap
from course_exercises.n17 import probes

# ---------------------------------------------------------------- 17.4 which candidate wins


def _chosen(case: Case) -> str:
    log_p, lengths, alpha = case.inputs
    got, right = (int(value) for value in (case.answer, case.expected))
    if not 0 <= got < len(lengths):
        return f"you return {got}, and there are {len(lengths)} candidates."
    return (f"at alpha = {alpha:g} you choose {lengths[got]} words with ln p = {log_p[got]:.2f}, and {lengths[right]} words "
            f"with {log_p[right]:.2f} win.")


WINNER = Exercise(
    probes=probes.winner_probes, forbidden=("course_utils.encoder_decoder.length_penalty",),
    signature="winner(log_probabilities (candidates,), lengths (candidates,), alpha) -> index",
    mistakes=(
        Mistake("no-penalty", _chosen, "You compare the log-probabilities as they are. Every word lowers them, so short "
                "translations win, and the ends of sentences get lost."),
        Mistake("multiplied", _chosen, "You multiply by the penalty. Log-probabilities are negative, so that makes long "
                "translations even worse: divide."),
        Mistake("per-word", _chosen, "You divide by the length, so it's a mean for each word, whatever alpha is. Use the "
                "penalty of section 6."),
        Mistake("power-of-the-length", _chosen, "You divide by length to the power of alpha. Wu's penalty has 5 more words "
                "and begins at 1: (5 + length) / 6.", convention=True),
        Mistake("no-alpha", _chosen, "Alpha changes nothing: it's missing, or only the 6 has it as an exponent, which "
                "divides all scores by the same number. Brackets: ((5 + length) / 6), and the whole to the power of alpha."),
        Mistake("five-sixths", _chosen, "You divide the 5 alone by 6. Brackets: ((5 + length) / 6), and that to the power "
                "of alpha."),
        Mistake("length-alone", _chosen, "You divide the length alone by 6. Brackets: ((5 + length) / 6), and that to the "
                "power of alpha."),
        Mistake("longest", _chosen, "You always take the longest one. The penalty makes up for the length; it doesn't "
                "reward it."),
        Mistake("lowest", _chosen, "You take the lowest score. Scores are negative here, and the highest is the best."),
        Mistake("probabilities", _chosen, "You turn the log-probabilities into probabilities first. Divided by the penalty, "
                "those make long translations lose twice."),
        Mistake("subtracted", _chosen, "You subtract the penalty, which makes long translations even worse. Divide by it: "
                "log-probabilities are negative, so that brings them nearer to 0."),
        Mistake("end-not-counted", _chosen, "You take one word off each length. <eos> is counted: it's a word that the "
                "model had to choose. Use the lengths as they are."),
    ),
    properties=(
        Property(lambda case: case.inputs[0].max() < -500 and int(case.answer) == 0, _chosen, "e to the power of so low a "
                 "score is 0 in any float, so all candidates are equal and the first one wins. Compare the scores "
                 "themselves: the highest logarithm has the highest probability."),
        Property(lambda case: case.inputs[2] == 0 and gap(case) > 0, _chosen, "At alpha = 0 the penalty is 1, and the "
                 "largest log-probability wins."),
        Property(lambda case: gap(case) > 0, _chosen, "At alpha = 0 yours is right. Work the two scores out by hand."),
    ),
    hints=(
        "Which number is divided by which? Then the largest score wins.",
        "penalty = ((5 + lengths) / 6) ** alpha",
        "return int((log_probabilities / penalty).argmax())",
    ),
)

# ---------------------------------------------------------------- 17.5 write with a cache


def _words(case: Case) -> str:
    return f"you write {case.words[:60]} where {case.right['words'][:60]} is expected."


def _how_many(case: Case) -> str:
    got, right = (0 if words == "nothing" else len(words.split()) for words in (case.words, case.right["words"]))
    return f"you return {got} words, expected {right}, at most {case.inputs[3]}."


def _goes_on(case: Case) -> bool:
    """Whether the answer is the right one, then the end, and more."""
    ended = [*case.right["words"].replace("nothing", "").split(), str(case.inputs[2])]
    return case.words.split()[: len(ended)] == ended


def _first_difference(case: Case) -> tuple[str, str, list[str]]:
    """What's written and what's expected where they first differ, "" for nothing, and the words before it."""
    words, right = ([*text.replace("nothing", "").split(), ""] for text in (case.words, case.right["words"]))
    place = next(k for k, (a, b) in enumerate(zip(words, right)) if a != b)
    return words[place], right[place], right[:place]


def _begin_refused(case: Case) -> bool:
    got, right, before = _first_difference(case)
    return bool(before) and right == str(case.inputs[1])


def _stopped_at_a_repetition(case: Case) -> bool:
    got, right, before = _first_difference(case)
    return got == "" and right in before


WRITE = Exercise(
    probes=probes.writing_probes, observe=probes.observe_writing,
    signature="write_greedily(step, begin, end, max_len) -> a list of ids; step(word, position) -> log-probabilities "
        "(vocab,)",
    mistakes=(
        Mistake("one-position-on", _words, "Your positions begin at 1, so every word is read one position too far on. The "
                "cache then holds keys that don't belong where they say."),
        Mistake("one-position-back", _words, "The first two words are both read at position 0, and all others one too "
                "early. "
                "A word's position is the number of words that were read before it."),
        Mistake("no-positions", _words, "Every word is read at position 0. The first is right, and then the order is lost: "
                "with a cache, nobody but you knows where a word stands."),
        Mistake("begin-again", _words, "Every step reads the beginning again, so the model never learns what it has "
                "written."),
        Mistake("one-word-behind", _words, "Each step reads the word before the last. The last word written never gets "
                "into the cache in time."),
        Mistake("never-ends", _how_many, "You go on after the end. What follows it means nothing."),
        Mistake("end-taken-out", _how_many, "You go on after the end, and take it out of the list later. What was written "
                "after it stays in the list: stop there."),
        Mistake("end-kept", _how_many, "The end is in your list. It says that the sentence is over, and isn't a word of "
                "it."),
        Mistake("begin-kept", _how_many, "The beginning is in your list. The model read it; it didn't write it."),
        Mistake("no-limit", _how_many, "Where no end comes, you go on and on. Stop after max_len words."),
        Mistake("one-too-many", _how_many, "Where no end comes, your list is one word too long."),
        Mistake("one-too-few", _how_many, "Where no end comes, your list is one word too short."),
        Mistake("reads-again", _words, "You hand over all words at every step. `step` keeps what it has read: each "
                "word goes in once, when it's new."),
        Mistake("asks-twice", _words, "`step` is called twice for a word, once for the end and once for the word. Each "
                "call puts the word into the cache again: call it once, and keep the result."),
        Mistake("least-probable", _words, "You choose the least probable word. Log-probabilities are negative: the one "
                "nearest to 0 is the largest."),
        Mistake("ends-at-zero", _words, "You stop at 0 as well. Only `end` ends a translation, and 0 can be a word like any "
                "other."),
    ),
    properties=(
        Property(lambda case: case.inputs[2] < 256 and _goes_on(case), lambda case: f"{_how_many(case)} The end is "
                 f"{case.inputs[2]}.", "You go on after it. Which id ends a translation isn't the same everywhere: compare "
                 "with `end`."),
        Property(_goes_on, lambda case: f"{_how_many(case)} The end is {case.inputs[2]}.", "You go on after it, and with a "
                 "smaller id you stop. Do you compare with `is`? It asks whether two names mean the same object, which "
                 "Python makes sure of for small numbers only. Equal numbers are found by ==."),
        Property(lambda case: case.words.split()[:1] != case.right["words"].split()[:1], _words, "Look at the very first "
                 "step: `begin` is read, at position 0, and the most probable word is written."),
        Property(_begin_refused, lambda case: f"{_words(case)} `begin` is {case.inputs[1]}.", "The most probable word is "
                 "the one with the id of `begin`. It's written and read like any other; only `end` ends a translation."),
        Property(_stopped_at_a_repetition, _words, "You stop at a word that was written before. Words may come twice, even "
                 "in a row; only `end` and max_len end the loop."),
        Property(lambda case: case.words != case.right["words"], _words, "The first word is right. Which word does the next "
                 "step read, at which position, and when does the loop end?"),
    ),
    hints=(
        "Keep the list of words, and the word that was written last. Before the first word, that's `begin`.",
        "How many words have been read before the one that you hand over now? That's its position.",
        "last = int(step(last, len(words)).argmax())",
    ),
)

# ---------------------------------------------------------------- 17.6 n-gram precision


def _precision(case: Case) -> str:
    return f"for n = {case.inputs[2]} your precision is {float(case.answer):.4f}, expected {float(case.expected):.4f}."


def _la(case: Case) -> str:
    first = case.inputs[0][0]
    return f"{_precision(case)} The first translation is {' '.join(first[:6])}."


def _short(case: Case) -> str:
    return f"{_precision(case)} The shortest translation has {min(map(len, case.inputs[0]))} words."


PRECISION = Exercise(
    probes=probes.precision_probes, forbidden=("course_utils.encoder_decoder.bleu", "course_utils.encoder_decoder.ngrams"),
    signature="ngram_precision(translations, references, n) -> a number; both are lists of lists of tokens",
    mistakes=(
        Mistake("not-clipped", _la, "Each n-gram counts as often as it's repeated. So la la la la would be perfect for any "
                "reference with one la in it: clip the count by the reference's."),
        Mistake("once-each", _la, "Each different n-gram counts at most once. It may count as often as the reference "
                "has it."),
        Mistake("different-ones", _la, "You work with sets, so repetitions are lost on both sides of the fraction. Count."),
        Mistake("recall", _la, "You divide by the reference's n-grams. That's recall; precision asks how much of the "
                "translation is right."),
        Mistake("mean-of-sentences", _la, "You average the precisions of the sentences. BLEU adds up the counts of the "
                "whole "
                "corpus before it divides, so a short sentence counts for little."),
        Mistake("clipped-by-all-words", _la, "You join the sentences first. Then n-grams reach from one sentence into the "
                "next, and a word may be found in another sentence's reference."),
        Mistake("counted-together", _la, "You add up the counts of all sentences before you clip, so a word may count "
                "because of another sentence's reference. Clip in each sentence, then add up."),
        Mistake("single-words", _la, "You count single words, whatever n is. An n-gram is a run of n words."),
        Mistake("with-brevity", _la, "The brevity penalty is in it. BLEU multiplies by it once, at the very end; this is "
                "one n's precision."),
        Mistake("up-to-n", _la, "You take the mean of the precisions for 1 to n. Here it's n alone; BLEU takes the mean "
                "later."),
        Mistake("any-order", _la, "Your n-grams are sorted, so voiture rouge counts as rouge voiture. The order of the "
                "words is what n-grams are for."),
        Mistake("tails", _la, "Runs of fewer than n words at a sentence's end are counted, too. A sentence of m words has "
                "m - n + 1 runs of n words."),
        Mistake("last-run-left-out", _la, "The last run of each sentence is missing. A sentence of m words has m - n + 1 "
                "runs of n words, and range() leaves its end out."),
        Mistake("at-the-same-position", _la, "An n-gram counts only where the reference has it at the same position. It "
                "may be anywhere in its sentence."),
        Mistake("fewer-than-none", _short, "Runs of n words can't be fewer than none, but len(tokens) - n + 1 is negative "
                "for a translation of fewer than n - 1 words, and takes something off the others': max(0, …)."),
        Mistake("glued", _la, "Your n-grams are glued together, so l + ami equals la + mi. Keep the words apart: "
                "tuple(gram)."),
        Mistake("searched-in-the-text", _la, "You search the reference's text, where la is found in salade, and une salade "
                "in aucune salade. Compare whole words: tuples of tokens, and not texts."),
        Mistake("percent", _la, "That's in per cent. Return a number from 0 to 1."),
    ),
    properties=(
        Property(lambda case: case.inputs[2] == 4 and gap(case) > 1e-4, _la, "Here no sentence has four words, so there's "
                 "nothing to divide by: return 0."),
        Property(lambda case: case.inputs[2] == 1 and gap(case) > 1e-4, _la, "n is 1 here: for every word, how often is "
                 "it in "
                 "the translation, and how often in the reference? The smaller number counts."),
        Property(lambda case: gap(case) > 1e-4, _la, "For single words yours is right. How many runs of n words does a "
                 "sentence have?"),
    ),
    hints=(
        "Count the n-grams of each translation and of its reference, each with a Counter.",
        "A sentence of m words has m - n + 1 runs of n words: tuple(tokens[i : i + n]).",
        "hits += sum(min(count, wanted[gram]) for gram, count in own.items()), and one division at the very end",
    ),
)
