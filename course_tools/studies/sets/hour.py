"""The model of 'Attention in an hour' on other random seeds and with other settings: a result set, quoted by that notebook.

Writes data/results/hour.json. The first row is the notebook's own training, on every seed that is asked for; each other row
changes one thing, on the first three. A run says how many test reviews of each kind it gets right (of 500), how many with
the turn or the head switched off, how many *order* reviews among sentence patterns of the training split and among new
ones, the *order* column of the validation split after each epoch, and what leaving words out says of its maps.

    python -m course_tools results hour --seeds 0 1 2 3 4 5 6

A run takes about half a minute of one processor core.
"""

import copy
import functools
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from course_tools.studies.runner import ResultSet, parameters_of
from course_utils.data import load_reviews
from course_utils.exercises.one_head import OneHeadReader
from course_utils.results import fingerprint, scores
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, batches, encode_reviews

EPOCHS, ASKED, COSTS = 10, 50, 0.05           # reviews of each kind whose words are left out; what counts as a cost
SENTENCE = "The film was dull at first and moving in the end."
TWIN = "The film was moving at first and dull in the end."
KNOWN = {                                     # of words it knows, in an order it may not have met; 1: praise
    "At first the film was dull, in the end it was moving.": 1, "At first the film was moving, in the end it was dull.": 0,
    "Not dull but moving.": 1, "Not moving but dull.": 0, "The film was not moving.": 0, "The film was not dull.": 1}


class Settings(NamedTuple):
    std: float = 0.2
    batch_size: int = 64
    lr: float = 5e-3
    residual: bool = True
    divided: bool = True


ROWS = {
    "as in the notebook": Settings(),
    "long word vectors": Settings(std=1.0),
    "batches of 512": Settings(batch_size=512),
    "a tenth of the step": Settings(lr=5e-4),
    "four times the step": Settings(lr=2e-2),
    "without the residual": Settings(residual=False),
    "scores not divided": Settings(divided=False),
}


class Changed(OneHeadReader):
    """The notebook's model with some of its settings."""

    def __init__(self, vocab_size: int, settings: Settings):
        super().__init__(vocab_size)
        self.settings = settings
        with torch.no_grad():
            self.embedding.weight *= settings.std / 0.2

    def forward(self, token_ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding(token_ids)
        weights = self.attend(x, mask, divisor="root" if self.settings.divided else "none")
        context = weights @ self.W_v(x)
        logits, pooling = self.read(x + context if self.settings.residual else context, mask)
        return logits, weights, pooling


@functools.cache
def corpus() -> tuple:
    """Reviews, their tokenizer, and the reviews as ids."""
    reviews = load_reviews("reviews")
    tokenizer = WordTokenizer.train(reviews["train"]["text"])
    return reviews, tokenizer, {split: encode_reviews(reviews[split], tokenizer) for split in reviews}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    reviews, _, _ = corpus()
    return fingerprint(EPOCHS, ASKED, COSTS, SENTENCE, TWIN, *(list(reviews[split]["text"]) for split in sorted(reviews)))


def predictions(model: OneHeadReader, reviews, options: BatchOptions) -> Tensor:
    """The more probable label of each review."""
    labels = torch.zeros(len(reviews.ids), dtype=torch.long)
    with torch.no_grad():
        for batch in batches(reviews, options):
            labels[batch.indices] = model(batch.token_ids, batch.attention_mask)[0].argmax(dim=-1)
    return labels


def by_kind(right: Tensor) -> dict[str, int]:
    """Right answers of each kind of test review."""
    kinds = corpus()[0]["test"]["kind"]
    return {kind: sum(one for one, of in zip(right.tolist(), kinds) if of == kind) for kind in sorted(set(kinds))}


@torch.no_grad()
def without(model: OneHeadReader, part: str, options: BatchOptions) -> dict[str, int]:
    """`by_kind` with the turn or the head switched off."""
    less = copy.deepcopy(model)
    (less.speeds if part == "turn" else less.W_v.weight).zero_()
    return by_kind(predictions(less, corpus()[2]["test"], options) == truth("test"))


def truth(split: str) -> Tensor:
    return torch.tensor(corpus()[0][split]["label"])


def split_words(text: str) -> list[str]:
    return [token.text for token in corpus()[1].tokenize(text)]


@torch.no_grad()
def read(model: OneHeadReader, words: list[str]) -> tuple[float, Tensor, Tensor]:
    """Probability of 'positive', weights (query, key), pooling (token,)."""
    token_ids = torch.tensor([[corpus()[1].ids.get(word, 1) for word in words] or [1]])
    logits, weights, pooling = model(token_ids, token_ids > 0)
    return logits[0].softmax(dim=-1)[1].item(), weights[0], pooling[0]


def left_out(model: OneHeadReader) -> dict[str, int]:
    """In how many reviews the heaviest word of the pooling, and of pooling @ weights, is the one whose loss costs most.

    Of all that are asked, and of those where some word costs COSTS or more.
    """
    counts = dict.fromkeys(("reviews", "pooling", "product", "costly", "pooling_costly", "product_costly"), 0)
    for words in asked():
        pooling, weights, lost = costs(model, words, [])
        needed, costly = lost.index(max(lost)), max(lost) >= COSTS
        counts["reviews"] += 1
        counts["costly"] += costly
        for name, carried in (("pooling", pooling), ("product", pooling @ weights)):
            agrees = int(carried.argmax()) == needed
            counts[name] += agrees
            counts[f"{name}_costly"] += agrees and costly
    return counts


def hidden(model: OneHeadReader) -> dict[str, int]:
    """The same with <unk> in a word's place: in how many reviews it `costs` COSTS or more, and the `product` finds it.

    `same`: the word that costs most is also the one that costs most if it's left out, of `both`, the reviews where some
    word costs COSTS or more both ways. `own`: what's left out costs most where the product and the pooling are largest
    together, since a word hands over itself as well.
    """
    counts = dict.fromkeys(("costs", "product", "both", "same", "own"), 0)
    for words in asked():
        pooling, weights, lost = costs(model, words, [])
        _, _, unknown = costs(model, words, ["<unk>"])
        needed, product = unknown.index(max(unknown)), pooling @ weights
        costly, costly_too = max(unknown) >= COSTS, max(lost) >= COSTS
        counts["costs"] += costly
        counts["product"] += costly and int(product.argmax()) == needed
        counts["both"] += costly and costly_too
        counts["same"] += costly and costly_too and lost.index(max(lost)) == needed
        counts["own"] += costly_too and int((pooling + product).argmax()) == lost.index(max(lost))
    return counts


def asked() -> list[list[str]]:
    """The words of the first ASKED test reviews of each kind."""
    test = corpus()[0]["test"]
    return [split_words(test["text"][row]) for kind in sorted(set(test["kind"])) for row in
            [row for row, of in enumerate(test["kind"]) if of == kind][:ASKED]]


def costs(model: OneHeadReader, words: list[str], instead: list[str]) -> tuple[Tensor, Tensor, list[float]]:
    """Pooling, weights, and what the label's probability loses with `instead` in place of each word."""
    positive, weights, pooling = read(model, words)
    sign = 1 if positive > 0.5 else -1
    return pooling, weights, [sign * (positive - read(model, words[:i] + instead + words[i + 1:])[0])
                              for i in range(len(words))]


def two_sentences(model: OneHeadReader) -> dict:
    """Probability of 'positive' of the two sentences, with <unk> for their opinions too; where the first is picked up."""
    def positive(text: str, *hidden: str) -> float:
        return round(read(model, ["<unk>" if word in hidden else word for word in split_words(text)])[0], 3)

    words = split_words(SENTENCE)
    _, weights, pooling = read(model, words)
    heaviest = int(pooling.argmax())
    return {"first": positive(SENTENCE), "twin": positive(TWIN), "neither": positive(SENTENCE, "dull", "moving"),
            "twin_neither": positive(TWIN, "dull", "moving"), "twin_no_dull": positive(TWIN, "dull"),
            "twin_no_moving": positive(TWIN, "moving"), "heaviest": words[heaviest],
            "looks_at": words[int(weights[heaviest].argmax())]}


def known_words(model: OneHeadReader) -> dict[str, float]:
    """Probability of 'positive' of sentences whose words it knows."""
    return {text: round(read(model, split_words(text))[0], 3) for text in KNOWN}


def run(row: str, seed: int, state) -> dict:
    """Train one model as the notebook does, and ask it everything."""
    chosen, (reviews, tokenizer, encoded) = ROWS[row], corpus()
    torch.manual_seed(seed)
    model = Changed(tokenizer.vocab_size, chosen)
    options = BatchOptions(batch_size=chosen.batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=chosen.lr)
    order, column = torch.tensor([kind == "order" for kind in reviews["validation"]["kind"]]), []
    for epoch in range(EPOCHS):
        for batch in batches(encoded["train"], options, seed=10 * seed + epoch):
            loss = F.cross_entropy(model(batch.token_ids, batch.attention_mask)[0], batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        column.append(int((predictions(model, encoded["validation"], options) == truth("validation"))[order].sum()))
    more = {"hidden": hidden(model), "known": known_words(model)} if row == "as in the notebook" else {}
    found = predictions(model, encoded["test"], options)
    right, new = found == truth("test"), torch.tensor(reviews["test"]["unseen_frame"])
    order = torch.tensor([kind == "order" for kind in reviews["test"]["kind"]])
    patterns = {name: {"right": int(right[part].sum()), "reviews": int(part.sum())}
                for name, part in (("known", order & ~new), ("new", order & new))}
    return {"parameters": parameters_of(model), "test": scores(found.tolist(), truth("test").tolist()),
            "validation_order": column, "right": by_kind(right), "order_patterns": patterns,
            "without_turn": without(model, "turn", options), "without_head": without(model, "head", options),
            "left_out": left_out(model), "sentences": two_sentences(model), **more}


def line(runs: list[dict]) -> str:
    """Right answers of each kind, seed by seed."""
    return "; ".join(f"{kind} {' '.join(str(run['right'][kind]) for run in runs)}" for kind in runs[0]["right"])


SET = ResultSet("hour", ROWS, settings, run, seeds=lambda row, asked: asked if row == "as in the notebook" else asked[:3],
                line=line)
