"""Figures and tables that more than one talk shows, each with the numbers that the talk claims about it.

Does: draw and compute them from the course's data and its trained models. Does not: check a claim, or say anything.
"""

from __future__ import annotations

import pandas as pd
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from course_utils.attention import scaled_dot_product_attention
from course_utils.classifier import ReviewClassifier
from course_utils.data import DATA_FOLDER
from course_utils.explain import occlusion
from course_utils.figures import Diagram, save_figure
from course_utils.heatmaps import plot_attention, shared_colorbar
from course_utils.results import by_model, read_runs
from course_utils.results.tables import read_scoreboard
from course_utils.tokenization import pad_batch

TWELVE = (27, 14, 10, 3, 43, 996, 154, 25, 62, 12, 15, 36)                     # of the validation split, as in notebook 01
FOUR = torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1], [1, 0, 0]])           # not, dull, but, moving (word, feature)
BORING_OR_SPLENDID = ("The film was boring; the book was splendid.", "The film was splendid; the book was boring.")
READERS = {"counted words": "naive Bayes", "runs of up to three words": "1–3-grams, logistic regression",
           "LSTM, read one way": "LSTM, one way, mean", "attention": "attention, the full model"}


def weights_of(word: tuple[float, ...]) -> list[float]:
    """The weights that a word with these numbers gives to the four, scores undivided."""
    return (torch.tensor(word) @ FOUR.T).softmax(dim=-1).tolist()


def twins_table() -> tuple[pd.DataFrame, dict[str, float]]:
    """How many plain reviews and twins each kind of reader gets right; and the proportion of twins by reader."""
    board = by_model(read_scoreboard())
    right = {kind: {name: _mean([run["test"]["by_kind"][kind] for run in board[model]]) for name, model in READERS.items()}
             for kind in ("plain", "order")}
    table = pd.DataFrame(right).map(lambda part: f"{100 * part:.1f}")
    return table.rename(columns={"plain": "plain, % right", "order": "twins, % right"}), right["order"]


def moves_figure() -> tuple[Figure, list[float]]:
    """The four words' maps with 'not' and with 'so' in front, by matrices that are chosen; and the opinion that 'dull'
    takes home in each."""
    W_q, W_k = torch.tensor([[-4.0], [0], [0]]), torch.tensor([[0.0], [1], [0]])   # (feature, d_k)
    W_v = torch.tensor([[1.0, 0, 0], [2, 0, 0], [0, 0, 1]])                        # (feature, d_value)
    so = FOUR.clone()
    so[0] = 0
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    home = []
    for ax, words, features in zip(axes, ("not dull but moving", "so dull but moving"), (FOUR, so)):
        context, weights = scaled_dot_product_attention(features @ W_q, features @ W_k, features @ W_v)[:2]
        home.append(float(context[1, 0]))
        plot_attention(weights, words.split(), title=words, vmax=1, colorbar=False, ax=ax)
    axes[1].set_ylabel("")
    save_figure(fig, "talk-moves")
    return fig, home


def root_figure() -> tuple[Figure, list[float]]:
    """The weights of sixteen random keys with 512 numbers, scores as they are and divided; and the largest of each."""
    torch.manual_seed(0)
    queries, keys = torch.randn(500, 512, 1), torch.randn(500, 16, 512)
    scores = (keys @ queries)[:, :, 0]                                             # (500, 16)
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
    largest = []
    for ax, by, name in zip(axes, (1, 512 ** 0.5), ("as they are", "divided by √512")):
        weights = (scores / by).softmax(dim=-1).sort(dim=-1, descending=True).values.mean(dim=0)   # (16)
        largest.append(float(weights[0]))
        ax.bar(range(1, 17), weights)
        ax.set(title=f"scores {name}", xlabel="key, the best first", xticks=(1, 8, 16))
    axes[0].set(ylabel="mean weight", ylim=(0, 1))
    save_figure(fig, "talk-root")
    return fig, largest


def shuffled_table(classifier: ReviewClassifier) -> tuple[pd.DataFrame, float]:
    """What a model without positions and the classifier make of a pair of twins; and the first one's gap between them."""
    blind = ReviewClassifier.load(DATA_FOLDER / "checkpoints" / "reviews-without-positions")
    praise = {f"praise, {name}": model.predict(list(BORING_OR_SPLENDID))[1][:, 1].tolist()
              for name, model in {"without positions": blind, "with positions": classifier}.items()}
    one, other = praise["praise, without positions"]
    return pd.DataFrame(praise, index=BORING_OR_SPLENDID).map("{:.2f}".format), abs(one - other)


def whole_figure() -> Figure:
    """The classifier, from words to a verdict."""
    d = Diagram()
    d.box("words", at=(0, 1), text="words,\nas vectors", shape="(words, 32)", colour="green")
    d.box("attention", at=(1, 1), text="attention:\nlook around", shape="4 heads in all", colour="purple")
    d.box("forward", at=(2, 1), text="feed-forward:\neach word alone", colour="green")
    d.box("pool", at=(3, 1), text="pooling:\none mean", colour="rose")
    d.box("label", at=(4, 1), text="praise or\ncomplaint", colour="none")
    d.group("a block, twice", ["attention", "forward"])
    for one, other in zip(("words", "attention", "forward", "pool"), ("attention", "forward", "pool", "label")):
        d.arrow(one, other)
    fig = d.figure("From words to a verdict")
    save_figure(fig, "talk-whole")
    return fig


def trained_figure(classifier: ReviewClassifier) -> tuple[Figure, list[float]]:
    """The first head's maps of a pair of twins; and the weight that 'film' gives the opinion about the film in each."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.7), layout="constrained")
    found = []
    for ax, text in zip(axes, BORING_OR_SPLENDID):
        seen = classifier.explain(text)
        words, weights = [token.text for token in seen.tokens], seen.attentions[0, 0]
        found.append(float(weights[words.index("film"), words.index("was") + 1]))
        plot_attention(weights, words, title=seen.label, vmax=1, values=False, colorbar=False, ax=ax)
    axes[1].set_ylabel("")
    shared_colorbar(axes)
    save_figure(fig, "talk-trained")
    return fig, found


def agreement_table(classifier: ReviewClassifier, texts: list[str]) -> tuple[pd.DataFrame, int, float]:
    """In how many texts the word with the largest pooling weight is the one whose removal costs most; that number, and how
    many a blind guess would hit."""
    agree, luck = 0, 0.0
    for text in texts:
        token_ids, real = pad_batch([classifier.tokenizer.encode(text)], 0)        # (1, seq_len), both
        lost = occlusion(classifier.model, token_ids, real)[0]                     # (seq_len)
        agree += int(lost.argmax()) == int(classifier.explain(text).weights.argmax())
        luck += 1 / len(lost)
    rows = {"the word with the largest weight is the word needed most": agree, "a word picked blindly is": round(luck)}
    return pd.DataFrame({f"of {len(texts)} reviews": rows}), agree, luck


def real_reviews_table() -> tuple[pd.DataFrame, dict[str, float]]:
    """What four readers get right on IMDb's test reviews; and their accuracies by name."""
    imdb, pretrained = by_model(read_runs("imdb")), by_model(read_runs("pretrained"))
    kinds = {"counted words": imdb["TF-IDF of words, logistic regression"],
             "counted words and pairs": imdb["TF-IDF 1-2-grams, logistic regression"],
             "our attention model": imdb["attention classifier"],
             "a pretrained one (MiniLM), trained further": pretrained["all layers"]}
    right = {name: _mean([run["test"]["accuracy"] for run in runs]) for name, runs in kinds.items()}
    shown = {name: f"{100 * part:.1f}" for name, part in right.items()}
    return pd.DataFrame({"% right on IMDb's test reviews": shown}), right


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
