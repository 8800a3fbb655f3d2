"""The course in ten figures: draw them, and write the page that shows them.

    python -m course_tools gallery      # notebooks/gallery.md; in notebooks/gallery a PNG and an SVG for each figure

What it does: draws each figure from the committed models, reviews and result files, checks the sentence below it
against the data, and gives each picture an alternative text computed from the data. What it does not do: train,
download or teach; the notebook named below a figure explains it. The figures keep the course's usual style whatever
COURSE_STYLE says, and every run writes the same bytes.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import PIL
import torch
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

from course_tools.gallery import hero
from course_tools.gallery.animations import write_pictures
from course_tools.gallery.page import escaped, in_motion, title_of
from course_utils.attention import scaled_dot_product_attention
from course_utils.claims import claim
from course_utils.classifier import Explanation, ReviewClassifier
from course_utils.data import DATA_FOLDER, LABEL_NAMES, load_reviews, pairs
from course_utils.figures import COLOURS, NEGATIVE, POSITIVE, save_figure, style
from course_utils.files import write_bytes, write_text
from course_utils.files.paths import NOTEBOOKS
from course_utils.heatmaps import plot_attention, plot_attention_heads, shared_colorbar, token_strip
from course_utils.positional_encoding import sinusoidal_table
from course_utils.recipes.trained_models import trained_model
from course_utils.results import by_model, read_runs, summarise
from course_utils.results.tables import read_scoreboard
from course_utils.tokenization import Token

KINDS = ["plain", "negation", "order", "distant"]


class Picture(NamedTuple):
    """One figure of the gallery: the `name` of its file, a `heading`, the `notebook` that explains it, and `draw`, which
    takes the `Course` and returns the figure and one sentence about what to look at."""

    name: str
    heading: str
    notebook: str
    draw: Callable[[Course], tuple[Figure, str]]


class Course(NamedTuple):
    """The data behind the figures. `twins` are the two test reviews of a minimal pair, the negative one first."""

    full: ReviewClassifier
    without_positions: ReviewClassifier
    test: list[dict]
    twins: list[dict]
    seen: list[Explanation]  # how the full model reads the twins


def read_course() -> Course:
    """The committed models and the reviews that the figures show."""
    full = trained_model(seed=0, progress=False)
    test = load_reviews("reviews")["test"]
    rows = list(test)
    both = [(rows[a], rows[b]) for a, b in pairs(test) if rows[a]["text"].startswith("The film was ")]
    shortest = min(((a, b) for a, b in both if "; the book was " in a["text"]), key=lambda pair: len(pair[0]["text"]))
    twins = sorted(shortest, key=lambda row: row["label"])
    without = ReviewClassifier.load(DATA_FOLDER / "checkpoints" / "reviews-without-positions")
    return Course(full, without, rows, twins, [full.explain(row["text"]) for row in twins])


def main(arguments: list[str] | None = None) -> int:
    """Write the page and its figures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_tools gallery", description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=NOTEBOOKS, help="where gallery.md goes, and gallery/ beside it")
    folder = parser.parse_args(arguments).folder
    mpl.use("Agg")
    write(folder)
    print(f"wrote gallery.md and gallery/: {len(PICTURES)} figures, each as PNG and SVG")
    return 0


def write(folder: Path) -> dict[str, str]:
    """Draw every figure into `folder`/gallery and write `folder`/gallery.md; return the alternative texts by name."""
    described, parts = {}, [HEAD]
    with _usual_conditions():
        course = read_course()
        for picture in PICTURES:
            fig, sentence = picture.draw(course)
            described[picture.name] = save_figure(fig, picture.name, folder / "gallery")
            plt.close(fig)
            (folder / "gallery" / f"{picture.name}.txt").unlink()          # the page holds it
            _lighten(folder / "gallery" / f"{picture.name}.png")
            parts.append(section(picture, sentence, described[picture.name]))
    write_pictures(folder / "gallery")
    write_bytes(folder / "gallery" / f"{hero.NAME}.gif", hero.gif(hero.reviews_of(course)))          # the README shows it
    parts.append(in_motion())
    write_text(folder / "gallery.md", "\n".join(parts))
    return described


def section(picture: Picture, sentence: str, description: str) -> str:
    """A heading, the picture as a link to its SVG, the sentence, and the title of the notebook."""
    return (f"## {picture.heading}\n\n"
            f"[![{escaped(description)}](gallery/{picture.name}.png)](gallery/{picture.name}.svg)\n\n"
            f"{sentence} Explained in [{title_of(picture.notebook)}]({picture.notebook}.ipynb).\n")


@contextmanager
def _usual_conditions() -> Iterator[None]:
    """The course's usual style and one thread, whatever the caller's settings."""
    before, threads = os.environ.pop("COURSE_STYLE", None), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with mpl.rc_context(style()):
            yield
    finally:
        torch.set_num_threads(threads)
        if before is not None:
            os.environ["COURSE_STYLE"] = before


def drawn_with() -> str:
    """Everything the last bits of a picture depend on; if it is the same, so are the bytes."""
    versions = ", ".join(f"{module.__name__} {module.__version__.partition('+')[0]}" for module in (mpl, np, torch))
    return f"{versions}, Pillow {PIL.__version__}; {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def _lighten(path: Path) -> None:
    """The same picture with a palette of 256 colours: a third of the bytes, so that the page loads quickly."""
    with Image.open(path) as picture:
        about = PngImagePlugin.PngInfo()
        about.add_text("Description", picture.info["Description"])
        about.add_text("Software", drawn_with())
        dpi, small = picture.info["dpi"], io.BytesIO()
        reduced = picture.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        reduced.save(small, format="PNG", optimize=True, pnginfo=about, dpi=dpi)
    write_bytes(path, small.getvalue())


# ---------------------------------------------------------------- the figures


def words(explanation: Explanation) -> list[str]:
    return [token.text for token in explanation.tokens]


def marked(row: dict, tokens: list[Token]) -> list[bool]:
    """Which tokens belong to the evidence of a review."""
    return [any(token.start < end and start < token.end for start, end in row["evidence"]) for token in tokens]


def by_hand(course: Course) -> tuple[Figure, str]:
    """Four words that search, and are found, by one number, their opinion."""
    tokens = ["not", "dull", "but", "moving"]
    x = torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1], [1, 0, 0]])      # (token, feature): opinion, negates, contrasts
    weights = scaled_dot_product_attention(x[:, :1], x[:, :1], x).weights  # (query, key)
    claim("an opinion attends most to itself", weights[1].argmax() == 1 and weights[3].argmax() == 3)
    claim("and least to its opposite", weights[1].argmin() == 3 and weights[3].argmin() == 1)
    claim("words without an opinion attend to all alike", bool((weights[[0, 2]] == 0.25).all()))
    ax = plot_attention(weights, tokens, title="Four words look for each other's opinion")
    return ax.figure, ("Each row sums to one: the words search, and are found, by their opinion alone, so 'dull' attends "
                       f"most to itself ({weights[1, 1]:.2f}) and least to its opposite 'moving' ({weights[1, 3]:.2f}), and "
                       "words without an opinion attend to all alike.")


def positions(course: Course) -> tuple[Figure, str]:
    """The similarity of two rows of the sinusoidal table, against the distance between them."""
    table = sinusoidal_table(512, 128)                                     # (position, column)
    distance = torch.arange(-60, 61)
    curves = {p: table[p + distance] @ table[p] / table[p].norm() ** 2 for p in (100, 250, 400)}
    spread = torch.stack(list(curves.values())).std(dim=0).max()
    claim("the similarity of two positions depends on their distance alone", spread < 1e-4, spread)
    claim("and is greatest at distance zero", all(int(curve.argmax()) == 60 for curve in curves.values()))
    fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
    for (p, curve), look, width in zip(curves.items(), ["-", "--", ":"], [5, 3.2, 2]):
        ax.plot(distance.tolist(), curve.tolist(), look, linewidth=width, label=f"position {p}")
    ax.set(xlabel="distance in words", ylabel="similarity (dot product)", ylim=(0, 1.05),
           title="Sines and cosines measure distance")
    ax.legend(frameon=False)
    return fig, ("The three curves coincide: the similarity of two positions depends only on the distance between them, "
                 f"and at a distance of {int(distance[-1])} words it is {float(curves[100][-1]):.2f}.")


def twins_tie(course: Course) -> tuple[Figure, str]:
    """The same words in another order, read without and with positions."""
    texts = [row["text"] for row in course.twins]
    models = {"without positions": course.without_positions, "with positions": course.full}
    positive = {name: model.predict(texts)[1][:, 1] for name, model in models.items()}     # name -> (twin,)
    gap = {name: abs(float(both[1] - both[0])) for name, both in positive.items()}
    claim("the twins have the same words", len({tuple(sorted(words(seen))) for seen in course.seen}) == 1)
    claim("without positions they get the same probability", gap["without positions"] < 1e-4, gap["without positions"])
    claim("with positions they get opposite labels, as they should",
          positive["with positions"][0] < 0.01 and positive["with positions"][1] > 0.99, gap["with positions"])
    fig, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
    for i, (text, colour, hatch) in enumerate(zip(texts, [NEGATIVE, POSITIVE], ["", "//"])):
        bars = ax.barh([1.2 * place + 0.4 * i for place in range(2)], [float(both[i]) for both in positive.values()],
                       height=0.36, color=colour, hatch=hatch, edgecolor="white", label=text)
        ax.bar_label(bars, fmt="%.3f", padding=4)
    ax.set_yticks([0.2, 1.4], list(positive))
    ax.set(xlim=(0, 1.12), ylim=(1.9, -0.9), xlabel="probability of 'positive'", title="The same words, the opposite label")
    ax.axvline(0.5, ymax=0.76, color="0.4", linestyle=":", linewidth=1.5)
    ax.legend(frameon=False, loc="upper left", borderaxespad=0)
    return fig, ("Two reviews with the same words: without positions the model can't tell them apart and gives both the "
                 f"probability {float(positive['without positions'][0]):.2f}, but with positions it labels both correctly.")


def one_head(course: Course) -> tuple[Figure, str]:
    """Head 0 of layer 0 on both twins: 'film' finds the opinion about the film."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.7), layout="constrained")
    found = []
    for ax, seen, row in zip(axes, course.seen, course.twins):
        tokens, weights = words(seen), seen.attentions[0, 0]               # (query, key)
        opinion = tokens.index("was") + 1                                  # 'the film was <opinion>'
        found.append((tokens[opinion], float(weights[tokens.index("film"), opinion]),
                      float(weights[tokens.index("film"), len(tokens) - 2])))
        plot_attention(weights, tokens, title=f"{LABEL_NAMES[row['label']]} twin", vmax=1, values=False,
                       evidence=[opinion], colorbar=False, ax=ax)
    axes[1].set_ylabel("")
    shared_colorbar(axes)
    claim("in both twins 'film' gives the opinion about the film more than 0.9 of its weight",
          min(own for _, own, _ in found) > 0.9, [own for _, own, _ in found])
    claim("and the opinion about the book less than 0.01", max(other for *_, other in found) < 0.01)
    (first, a, _), (second, b, _) = found
    return fig, ("Look at the row of 'film': nearly all of its weight goes to the opinion about the film (framed), "
                 f"'{first}' in one twin ({a:.2f}) and '{second}' in the other ({b:.2f}), and almost none to the opinion "
                 "about the book.")


def difference(course: Course) -> tuple[Figure, str]:
    """Head 1 of layer 0: the positive twin's weights minus the negative one's."""
    negative, positive = (seen.attentions[0, 1] for seen in course.seen)   # (query, key)
    change, tokens = positive - negative, words(course.seen[1])
    swapped = [i for i, (a, b) in enumerate(zip(words(course.seen[0]), tokens)) if a != b]
    moved = change.abs()
    share = float(moved[:, swapped].sum() / moved.sum())
    claim("the twins differ in two positions", len(swapped) == 2)
    claim("most of the change is in these two columns", share > 0.6, share)
    claim("and the largest change is in one of them", int(moved.max(dim=0).values.argmax()) in swapped, moved.max())
    ax = plot_attention(change, tokens, kind="difference", evidence=swapped,
                        title="What changes when two words are swapped")
    return ax.figure, ("Positive twin minus negative twin, with the swapped words framed: their two columns account for "
                       f"{100 * share:.0f} per cent of the total change in this head.")


def heads(course: Course) -> tuple[Figure, str]:
    """Both layers, both heads, on the negative twin."""
    row, seen = course.twins[0], course.seen[0]
    received = seen.attentions.mean(dim=2)                                 # (layers, heads, key): mean over the queries
    book = words(seen).index("book")
    claim("in both heads of layer 1, 'book' receives more weight than any other word",
          bool((received[1].argmax(dim=-1) == book).all()), received[1, :, book])
    claim("which is true of no head of layer 0", bool((received[0].argmax(dim=-1) != book).all()))
    fig, _ = plot_attention_heads(seen.attentions, words(seen), evidence=marked(row, seen.tokens), title=row["text"],
                                  values=False)
    return fig, ("All heads share one colour scale, and the words that decide the label are framed: in layer 1 the darkest "
                 "column of both heads is 'book', but a map shows only where a head looks, not what it does there.")


def pooling(course: Course) -> tuple[Figure, str]:
    """A short review of each kind, and how much each word contributes to the vector that is classified."""
    shown, seen = [], []
    for kind in KINDS:
        right = ((row, course.full.explain(row["text"])) for row in sorted(course.test, key=lambda row: len(row["text"]))
                 if row["kind"] == kind and row["id"] not in {twin["id"] for twin in course.twins})
        row, explanation = next((row, e) for row, e in right if e.label == LABEL_NAMES[row["label"]])
        shown.append(row)
        seen.append(explanation)
    flags = [marked(row, e.tokens) for row, e in zip(shown, seen)]
    share = [float(e.weights[torch.tensor(flag)].sum()) for e, flag in zip(seen, flags)]
    claim("the weights of every review sum to one", all(abs(float(e.weights.sum()) - 1) < 1e-4 for e in seen))
    claim("no word gets more than half of a review's weight", max(float(e.weights.max()) for e in seen) < 0.5)
    ax = token_strip([words(e) for e in seen], [e.weights for e in seen], evidence=flags, scale_label="pooling weight",
                     titles=[f"{row['kind']}, {e.label}: {100 * part:.0f} % on the evidence"
                             for row, e, part in zip(shown, seen, share)],
                     title="Pooling: how much weight each word gets")
    theirs = f"between {100 * min(share):.0f} and {100 * max(share):.0f} per cent"
    return ax.figure, ("One review of each kind, all labelled correctly: the framed words decide the label, but the pooling "
                       f"spreads its weight beyond them (they get {theirs} of it).")


def long_review(course: Course) -> tuple[Figure, str]:
    """A long review: its beginning, its end, and the rest in one column."""
    limit = 20
    head, tail = limit - 1 - (limit - 1) // 2, (limit - 1) // 2
    for row in sorted(course.test, key=lambda row: -len(row["text"])):     # the longest that shows some of its evidence
        seen = course.full.explain(row["text"])
        flags = marked(row, seen.tokens)
        if any(flags[:head] + flags[-tail:]) and any(flags[head:-tail]) and seen.label == LABEL_NAMES[row["label"]]:
            break
    weights = seen.attentions[0, 0]                                        # (query, key)
    rest = weights[:, head:-tail].sum(dim=-1)                              # (query,)
    sums = weights[:, :head].sum(dim=-1) + rest + weights[:, -tail:].sum(dim=-1)
    claim("in every row, beginning, rest and end sum to one", bool(((sums - 1).abs() < 1e-5).all()))
    claim("the words in between get more than half of the weight", rest.mean() > 0.5, rest.mean())
    ax = plot_attention(weights, words(seen), evidence=flags, max_tokens=limit,
                        title=f"A review of {len(seen.tokens)} tokens, shortened but not renormalised")
    hidden = len(seen.tokens) - head - tail
    return ax.figure, (f"The figure says what it leaves out: the grey column adds up the {hidden} tokens that aren't drawn, "
                       f"and they get {100 * float(rest.mean()):.0f} per cent of the weight, averaged over all queries.")


def scoreboard(course: Course) -> tuple[Figure, str]:
    """Test accuracy of eight models on four kinds of review, with intervals."""
    runs = by_model(read_scoreboard())
    accuracy = {model: {kind: summarise(same, "test", "by_kind", kind) for kind in KINDS} for model, same in runs.items()}

    def mean(model: str, kind: str) -> float:
        return accuracy[model][kind][0]

    counting = ("naive Bayes", "bag of embeddings")
    full, recurrent = "attention, the full model", "BiLSTM, max"
    claim("models that count words solve plain reviews", min(mean(model, "plain") for model in counting) > 0.95)
    beyond = max(abs(mean(model, kind) - 0.5) for model in counting for kind in KINDS[1:])
    claim("and are within three points of chance on the other kinds", beyond < 0.03, beyond)
    lowest = min(mean(full, kind) for kind in KINDS)
    claim("the full attention model is above 80 per cent on every kind", lowest > 0.8, lowest)
    claim("the BiLSTM is the best on distant reviews", max(accuracy, key=lambda model: mean(model, "distant")) == recurrent,
          mean(recurrent, "distant"))
    fig, axes = plt.subplots(1, 4, figsize=(9, 4.2), sharey=True, layout="constrained")
    for ax, kind in zip(axes, KINDS):
        values = np.array([accuracy[model][kind] for model in accuracy])   # (model, mean and half the interval)
        places = np.arange(len(values))
        ax.errorbar(100 * values[:, 0], places, xerr=100 * values[:, 1], fmt="o", markersize=6, capsize=3, linewidth=1.8)
        ax.axvline(50, color="0.4", linestyle=":", linewidth=1.5)
        ax.set(title=kind, xlim=(40, 104), xticks=[50, 75, 100])
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(accuracy)), list(accuracy))
    axes[0].set_ylim(len(accuracy) - 0.5, -0.5)
    fig.supxlabel("test accuracy (per cent), with 95 % interval; dotted: chance", fontsize=12)
    beaten = f"{100 * mean(recurrent, 'distant'):.0f} against {100 * mean(full, 'distant'):.0f} per cent"
    return fig, ("Models that count words (naive Bayes, the bag of embeddings) solve plain reviews but stay at chance on "
                 "the other three kinds, whereas the full attention model is above 80 per cent on all four, though the "
                 f"BiLSTM beats it on distant reviews ({beaten}).")


def shuffled(course: Course) -> tuple[Figure, str]:
    """Accuracy on real reviews as they were written, and with the words of each review in random order."""
    runs = by_model(read_runs("imdb"))
    both = {model: [summarise(same, how, "accuracy") for how in ("test", "shuffled")] for model, same in runs.items()}
    lost = {model: written[0] - mixed[0] for model, (written, mixed) in both.items()}
    best = max(both, key=lambda model: both[model][0][0])
    attention = "attention classifier"
    claim("as written, TF-IDF of word pairs is the best", best == "TF-IDF 1-2-grams, logistic regression", both[best][0][0])
    claim("shuffling costs it more than two points", lost[best] > 0.02, lost[best])
    others = max(lost[model] / both[model][0][1] for model in both if model != best)
    claim("and costs every other model less than a third of its interval's half width", others < 1 / 3, others)
    fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
    for i, (name, colour, marker) in enumerate((("as written", COLOURS[0], "o"), ("words shuffled", COLOURS[1], "s"))):
        values = np.array([pair[i] for pair in both.values()])             # (model, mean and half the interval)
        ax.errorbar(100 * values[:, 0], np.arange(len(values)) + 0.3 * i - 0.15, xerr=100 * values[:, 1], fmt=marker,
                    color=colour, markersize=8, capsize=4, linewidth=2, label=name)
    ax.set_yticks(range(len(both)), list(both))
    ax.set(ylim=(len(both) - 0.5, -0.5), xlabel="test accuracy on IMDb (per cent), with 95 % interval",
           title="Real reviews, as written and shuffled")
    ax.grid(axis="x", alpha=0.3)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return fig, (f"On real reviews, counting pairs of words does best ({100 * both[best][0][0]:.1f} per cent); when we "
                 f"shuffle the words of every review, it loses {100 * lost[best]:.1f} points, but the attention classifier "
                 f"loses only {100 * lost[attention]:.1f}, so it hasn't learned to use the order.")


PICTURES = [
    Picture("by-hand", "Small enough to check by hand", "04_attention", by_hand),
    Picture("positions", "Positions measure distance", "06_positional_encoding", positions),
    Picture("twins", "Why the model needs positions", "06_positional_encoding", twins_tie),
    Picture("one-head", "One head, two sentences", "10_attention_maps", one_head),
    Picture("difference", "The difference between the twins", "10_attention_maps", difference),
    Picture("heads", "All heads at once", "10_attention_maps", heads),
    Picture("pooling", "From words to a label", "08_classifier", pooling),
    Picture("long-review", "Long reviews", "10_attention_maps", long_review),
    Picture("scoreboard", "How well attention does", "09_real_reviews", scoreboard),
    Picture("shuffled", "Real reviews", "09_real_reviews", shuffled),
]

HEAD = """# The course in ten figures

From four words by hand to real reviews. Click a figure to open it as SVG, for slides and print. `make gallery` (without
make: `python -m course_tools gallery`) draws all of them in under a minute from the course's models, reviews and result
files. The alternative text of each picture is computed from its data, and the sentence below it is checked each time.
The model shown is the classifier from notebook 08, with two layers of two heads. A single review is only an example: the
notebooks measure what is true of all reviews.
"""
