"""The tables of notebook 15's readers, on six kinds of text and by what makes a sentence hard.

A part of notebooks/results.md, with what the student takes for a sentence.
"""

from collections.abc import Sequence

from course_utils.data import load_reviews
from course_utils.results import by_model, percent, summarise

__all__ = [
    "by_kind_table", "halves_words", "hard_words", "more_table", "more_words", "partial_inputs_table", "reader_parts",
    "reader_words", "readers_table", "speed_words",
]

CORPORA = {"imdb": "IMDb", "reviews": "course reviews", "sentences": "generated sentences",
           "handwritten": "hand-written reviews", "ordinary": "first ordinary sentences",
           "ordinary_second": "second ordinary sentences"}
WORDS = """\
Which texts teach what, and how much of it a small student learns: MiniLM and notebook [08](08_classifier.ipynb)'s
architecture, as notebook [15](15_distillation.ipynb) trains them. In the upper rows MiniLM's weights, or random ones of the
same shape, are trained for {steps:,} steps on IMDb, the course's reviews, both, or both and generated sentences. The lower
rows are a teacher, trained for longer on all three, and students with a ninth of its parameters, all of them for equally
many steps ({student_steps:,}), on the teacher's answers or on labels alone. In per cent, with 95 % intervals for the choice
of texts and of seeds; four in ten of the hand-written and ordinary texts have a twin in almost the same words and weren't
drawn independently, so there they're rough. Those texts were for testing alone. On the second {second} sentences only the
teacher and two kinds of student were scored, and nothing was chosen there: the positions were chosen on validation texts."""
HARD = """\
By what makes a sentence hard: ordinary sentences, the first {first} and, where there's a second line, the second {second}.
The number of sentences of a kind, the same in both, is in brackets. With 20 to 60 sentences a kind the intervals are wide:
compare columns, and rows far apart."""
HALVES = """\
The reader that comes with the course began as a row *reader*: notebook [08](08_classifier.ipynb)'s classifier with {layers}
of MiniLM's six layers at their full width and its 16,000 most needed word pieces. It learns for {steps:,} steps from the
mean of three teachers (MiniLM, {teacher_steps:,} steps), and is then rounded to 8 bits a weight, which moved no accuracy on
IMDb or the ordinary sentences by more than {rounding:.1f} points. New among its texts are sentences written one by one for
training; rows *without* them read more of the rest instead, as did their teachers. *Labels alone* had no teachers, and so
none of the texts without labels. Students *from random numbers* are as large, and train at the same rate, which may not
suit them best; their three teachers are the same trainings, run again. All students made equally many steps. The ordinary
sentences and the hand-written reviews were for testing alone. But these numbers aren't a first look: earlier students had
been scored on both sets, and their weak kinds were known when the new sentences were written, by the same authors as the
tests though without reading them. So another writer's sentences may well be harder."""
MORE = """\
Would more sentences written one by one help? Here readers are trained further, from labels alone, for {steps} steps. Of
the {texts:,} texts that they read, {read:,} are sentences and short reviews that were written later ({later:,} different
ones). The control reads the older sentences again instead, those written one by one about {times} times, and equally many
whole reviews. The last column belongs to the later ones, from the same writers, which the readers before weren't asked
about; the third 300 ordinary sentences, another writer's, were scored here for the first time. The best on validation
texts among those with more sentences comes with the course: seed {seed}, which gets {first:.0f}, {second:.0f} and
{third:.0f} % of the three sets of ordinary sentences."""
BY_KIND = "By what makes a sentence hard, as above:"
WRITTEN_BY_HAND = "The same for the hand-written reviews, whose kinds are those of the course's reviews:"
PARTS = """\
What would a part of these texts give away? Here a linear model (TF-IDF, logistic regression) sees only what the first column
says. From IMDb, the course's reviews and the generated sentences it learns on the training split; of the others, which have
none, on nine tenths, to be asked about the last tenth (the seed makes these parts; twins stay together). Plain texts, in
which a word may decide, aren't counted. On everything that was written for this course a part is worth nothing, as it
should be. It can even come out a little below one half: of a small and balanced set, what's left for learning has slightly
more of the label that isn't asked for. In IMDb, where nobody took care of that, nearly everything tells something:"""
SPEED = """\
From a sentence to its label, the course's reader takes {one[median]:.1f} ms (95th percentile {one[p95]:.1f}),
by the clock, on one thread of a processor with {processor}: {one[calls]} ordinary sentences, one at a time, tokenizing
included. Where {batch[batch]} are read at once, it's {batch[median]:.1f} ms a sentence; for a text of {long[tokens]} tokens,
{long[median]:.1f} ms. On {what} the reader is {alone[ratio]:.1f} times as fast as {alone[against]} (middle half
{alone[spread][0]:.1f} to {alone[spread][1]:.1f})."""


def reader_parts(
    mixtures: list[dict], readers: list[dict], partial: Sequence[dict] = (), timed: Sequence[dict] = (),
    halves: Sequence[dict] = (), more: Sequence[dict] = ()
) -> list[str]:
    """The whole section, a heading, words and tables in turn; nothing where one of the first two sets has no runs.

    `halves` are the runs of the set `reader`, which get a section of their own, and `more` those of `reader_more`.
    """
    if not (mixtures and readers):
        return []
    begun = list(halves)
    own = [] if not begun else [
        "## A reader that begins as half of its teacher", halves_words(begun), readers_table([], begun),
        BY_KIND, by_kind_table(["ordinary", "ordinary_second"], [], begun), WRITTEN_BY_HAND,
        by_kind_table(["handwritten"], [], begun), *([more_words(more), more_table(begun, more)] if more else [])]
    return ["## A reader that knows more words", reader_words(mixtures, readers), readers_table(mixtures, readers),
            hard_words(readers), by_kind_table(["ordinary", "ordinary_second"], mixtures, readers),
            WRITTEN_BY_HAND, by_kind_table(["handwritten"], mixtures, readers),
            *([PARTS, partial_inputs_table(partial)] if partial else []), *own, *([speed_words(timed)] if timed else [])]


def reader_words(mixtures: list[dict], readers: list[dict]) -> str:
    """What stands before the tables, with the numbers that the files name."""
    students = {run["steps"] for run in readers if run["model"] != "teacher"}
    (steps,), (student_steps,) = {run["steps"] for run in mixtures}, students
    return WORDS.format(steps=steps, student_steps=student_steps, second=_second(readers))


def halves_words(halves: list[dict]) -> str:
    """What stands before the tables of the set `reader`, with the numbers that its file names."""
    of = {name: runs[0] for name, runs in by_model(halves).items()}
    reader, teacher = of["reader"], of["teacher"]
    rounding = max(abs(run[corpus]["accuracy"] - run["before_rounding"][corpus])
                   for run in halves if "before_rounding" in run for corpus in run["before_rounding"])
    return HALVES.format(layers=len(reader["change"]["layers"]), teacher_steps=teacher["steps"], steps=reader["steps"],
                         rounding=100 * rounding)


def more_words(more: Sequence[dict]) -> str:
    """What stands before the table of the set `reader_more`."""
    later = [run for run in more if "written_more" in run["change"]["reads"]]
    again = next(run["change"]["reads"]["written"] for run in more if run not in later)
    best = max(later, key=lambda run: max(part["validation_accuracy"] for part in run["history"]))
    first, second, third = (100 * best[f"ordinary{which}"]["accuracy"] for which in ("", "_second", "_third"))
    return MORE.format(steps=best["steps"], texts=best["texts"], read=best["change"]["reads"]["written_more"],
                       later=load_reviews("written_more")["train"].num_rows,
                       times=round(again / load_reviews("written")["train"].num_rows), seed=best["seed"],
                       first=first, second=second, third=third)


def more_table(halves: list[dict], more: Sequence[dict]) -> str:
    """Accuracy before and after going on, of the seeds that went on, as a Markdown table."""
    corpora = CORPORA | {"ordinary_third": "third ordinary sentences", "written": "written one by one",
                         "written_more": "written later"}
    seeds = {run["seed"] for run in more}
    rows = {"reader": [run for run in halves if run["model"] == "reader" and run["seed"] in seeds], **by_model(more)}
    lines = [f"| what reads | seeds | {' | '.join(corpora.values())} |", "|---" * (2 + len(corpora)) + "|"]
    for model, same in rows.items():
        cells = [percent(summarise(same, corpus, "accuracy")) if _scored(same, corpus) else "" for corpus in corpora]
        lines.append(f"| {model} | {len(same)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def readers_table(mixtures: list[dict], readers: list[dict]) -> str:
    """Accuracy of every row on every corpus as a Markdown table; empty where a row wasn't scored."""
    lines = [f"| what reads | seeds | {' | '.join(CORPORA.values())} | parameters |", "|---" * (3 + len(CORPORA)) + "|"]
    for model, same in _rows(mixtures, readers):
        cells = [percent(summarise(same, corpus, "accuracy")) if _scored(same, corpus) else "" for corpus in CORPORA]
        lines.append(f"| {model} | {len(same)} | {' | '.join(cells)} | {same[0]['parameters']:,} |")
    return "\n".join(lines)


def by_kind_table(corpora: list[str], mixtures: list[dict], readers: list[dict]) -> str:
    """Accuracy by kind as a Markdown table: a line for each row and each of these corpora that it was scored on.

    Raises ValueError where the corpora haven't equally many texts of each kind.
    """
    rows = _rows(mixtures, readers)
    sizes = [run[corpus]["reviews_by_kind"] for _, same in rows for run in same for corpus in corpora if corpus in run]
    if any(one != sizes[0] for one in sizes):
        raise ValueError(f"got {sizes[0]} and other numbers of texts by kind in {', '.join(corpora)}; one head fits them "
                         "all only if they're the same: make a table for each corpus")
    heads = [f"{kind} ({number})" for kind, number in sizes[0].items()]
    lines = [f"| what reads | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for model, same in rows:
        for corpus in corpora:
            if _scored(same, corpus):
                cells = [percent(summarise(same, corpus, "by_kind", kind)) for kind in sizes[0]]
                name = model if corpus == corpora[0] else f"{model}: {CORPORA[corpus]}"
                lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def partial_inputs_table(partial: Sequence[dict]) -> str:
    """What a part of each corpus gives away, as a Markdown table; in brackets on how many texts."""
    heads = [f"{title} ({partial[0][corpus]['reviews']:,})" for corpus, title in CORPORA.items()]
    lines = [f"| seen | seeds | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for view, same in by_model(partial).items():
        cells = [percent(summarise(same, corpus, "accuracy")) for corpus in CORPORA]
        lines.append(f"| {view} | {len(same)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed_words(timed: Sequence[dict]) -> str:
    """How long the reader needs, with the figures of its file."""
    measured = {run["model"]: run["measured"] for run in timed}
    alone = measured["the model alone"]
    return SPEED.format(one=measured["a sentence"], long=measured["a long text"], batch=measured["in batches"], alone=alone,
                        what=alone["what"].partition(", ")[2], processor=timed[0]["machine"]["processor"])


def hard_words(readers: list[dict]) -> str:
    """What stands before the table of ordinary sentences by kind."""
    return HARD.format(first=readers[0]["ordinary"]["reviews"], second=_second(readers))


def _rows(mixtures: list[dict], readers: list[dict]) -> list[tuple[str, list[dict]]]:
    return [*by_model(mixtures).items(), *by_model(readers).items()]


def _scored(same: list[dict], corpus: str) -> bool:
    return all(corpus in run for run in same)


def _second(readers: list[dict]) -> int:
    return next(run["ordinary_second"]["reviews"] for run in readers if "ordinary_second" in run)
