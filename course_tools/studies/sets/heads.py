"""What name, push and silence say of each head of notebook 08's classifier: a result set, read by notebook 10, section 5.

Writes data/results/heads.json. Seeds 0 to 4 come with the course, and notebook 10 measures them itself; it reads the later
ones here, which were trained after its sentences had been written. Those are trained first, a minute each, and kept in
outputs/models. Each run has for each head: its weight from negator to opinion and from the other words to it, over the
reviews with one negator and one opinion; its weight on opinion words, over plain reviews; its mean direct push towards the
right label, over the first hundred of either; and what is right without it of all plain and of all flipped reviews.

    python -m course_tools results heads --seeds 0 1 2 3 4 5 6
"""

import functools
from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, parameters_of
from course_utils.attention_maps import HeadGates, role_scores
from course_utils.classifier import ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.recipes.trained_models import settings_of, trained_model
from course_utils.results import fingerprint, split_fingerprints
from course_utils.training import BatchOptions, accuracy_by, encode_reviews, evaluate

ROW, EACH = "the classifier of 08", 100
HEADS = [(layer, head) for layer in range(2) for head in range(2)]


class Texts(NamedTuple):
    """The reviews: all plain ones, all flipped ones, and of those the ones with one negator and one opinion, as (row,
    negator, opinion), lists of token numbers; and the words that count as opinions.
    """

    plain: list[dict]
    flipped: list[dict]
    turned: list[tuple[dict, list[int], list[int]]]
    opinions: set[str]


def passages(review: dict, tokens: list) -> list[list[int]]:
    """The passages of the evidence, each as a list of token numbers."""
    return [[i for i, token in enumerate(tokens) if start < token.end and token.start < end]
            for start, end in review["evidence"]]


def opinion_words(reviews, tokenizer) -> set[str]:
    """In plain reviews at least three times in the evidence, nine times in ten with one label, and mostly nowhere else."""
    occurs, marked = Counter(), Counter()
    for review in reviews:
        if review["kind"] == "plain":
            tokens = tokenizer.tokenize(review["text"])
            occurs.update(token.text for token in tokens)
            marked.update((tokens[i].text, review["label"]) for passage in passages(review, tokens) for i in passage)
    counts = {word: [marked[word, label] for label in (0, 1)] for word in occurs}
    return {word for word, both in counts.items()
            if sum(both) >= max(3, occurs[word] / 2) and max(both) >= 0.9 * sum(both)}


@functools.cache
def texts() -> Texts:
    """What is read, by the tokenizer that all seeds share."""
    reviews, tokenizer = load_reviews("reviews"), trained_model(0).tokenizer
    opinions, turned = opinion_words(reviews["train"], tokenizer), []
    flipped = [row for row in reviews["test"] if row["frame"].startswith("flip")]
    for row in flipped:
        tokens = tokenizer.tokenize(row["text"])
        found = passages(row, tokens)
        with_opinion = [any(tokens[i].text in opinions for i in passage) for passage in found]
        if sorted(with_opinion) == [False, True]:
            turned.append((row, found[with_opinion.index(False)], found[with_opinion.index(True)]))
    return Texts([row for row in reviews["test"] if row["kind"] == "plain"], flipped, turned, opinions)


@functools.cache
def settings() -> str:
    """What every run depends on."""
    reviews = load_reviews("reviews")
    return fingerprint(settings_of("reviews", {}), split_fingerprints({name: reviews[name] for name in ("train", "test")}),
                       [list(row["evidence"]) for row in reviews["test"]], EACH, 1)


def maps_of(model: SelfAttentionClassifier, classifier: ReviewClassifier, text: str) -> list[Tensor]:
    """The maps of one text, one (1, heads, query, key) for each layer."""
    return model(*classifier.encode([text]), need_weights=True).attentions


def named(model: SelfAttentionClassifier, classifier: ReviewClassifier) -> Tensor:
    """The weight on the opinion, from the negator and from the other words: (asker, layers, heads)."""
    found = []
    for row, negator, opinion in texts().turned:
        maps = maps_of(model, classifier, row["text"])
        asks = torch.zeros(2, maps[0].shape[-1], dtype=torch.bool)         # (asker, query)
        asks[0, negator], asks[1] = True, True
        asks[1, negator + opinion] = False
        targets = torch.zeros(1, *maps[0].shape[-2:], dtype=torch.bool)    # (1, query, key)
        targets[..., opinion] = True
        found.append(torch.cat([role_scores(maps, targets & one[:, None]).mass for one in asks]))
    return torch.stack(found).nanmean(dim=0)


def on_opinions(classifier: ReviewClassifier) -> Tensor:
    """The weight on opinion words in plain reviews: (layers, heads)."""
    found = []
    for row in texts().plain[:EACH]:
        maps = maps_of(classifier.model, classifier, row["text"])
        flags = torch.tensor([token.text in texts().opinions for token in classifier.tokenizer.tokenize(row["text"])])
        found.append(role_scores(maps, flags.expand(1, len(flags), -1)).mass)
    return torch.cat(found).nanmean(dim=0)


def pushes(classifier: ReviewClassifier, text: str) -> Tensor:
    """How far each head moves the log-odds of 'positive' itself, the norm's spread and the pooling as they are: (heads,)."""
    model, seen = classifier.model, {}
    layers = [block.attention for block in model.encoder.blocks]
    handles = [module.register_forward_pre_hook(lambda module, inputs: seen.update({module: inputs[0][0]}))
               for module in (model.encoder.norm, *(layer.output_projection for layer in layers))]
    try:
        pooling = model(*classifier.encode([text]), need_weights=True).pooling_weights[0]         # (token)
    finally:
        for handle in handles:
            handle.remove()
    norm, end = model.encoder.norm, seen[model.encoder.norm]
    readout = norm.weight * model.output.weight                            # (class, d_model)
    direction = readout[1] - readout[0]
    direction = direction - direction.mean()                               # the norm subtracts the mean
    share = pooling / (end.var(dim=-1, correction=0) + norm.eps).sqrt()    # (token)
    found = []
    for layer in layers:
        projection = layer.output_projection
        read = share @ seen[projection]                                    # (d_model): heads side by side
        found += (read * (direction @ projection.weight)).view(layer.num_heads, -1).sum(dim=-1)
    return torch.stack(found)


def pushes_right(classifier: ReviewClassifier, rows: list[dict]) -> Tensor:
    """The mean push of each head towards the right label: (heads,)."""
    return torch.stack([(1 if row["label"] else -1) * pushes(classifier, row["text"]) for row in rows]).mean(dim=0)


def right_without(classifier: ReviewClassifier, head: tuple[int, int] | None) -> dict:
    """What is right of the plain and of the flipped reviews with zeros in this head's place; without none, as they are."""
    rows, gates = texts().plain + texts().flipped, torch.ones(2, 2)
    if head:
        gates[head] = 0
    asked = encode_reviews({key: [row[key] for row in rows] for key in ("text", "label")}, classifier.tokenizer)
    with HeadGates(classifier.model, gates):
        found = evaluate(classifier.model, asked, BatchOptions(batch_size=64)).predictions
    groups = ["plain"] * len(texts().plain) + ["flipped"] * len(texts().flipped)
    return {f"{name} without": round(value, 4) for name, value in accuracy_by(groups, found, asked.labels).items()}


def described(columns: dict, head: int) -> dict:
    """One head's numbers."""
    return {name: round(column.flatten()[head].item(), 4) for name, column in columns.items()}


@torch.no_grad()
def run(model: str, seed: int, state) -> dict:
    """Ask one classifier's heads everything."""
    classifier = trained_model(seed=seed, progress=False)
    torch.manual_seed(seed)
    partner = SelfAttentionClassifier(classifier.model.config).eval()
    from_negator, from_others = named(classifier.model, classifier)
    turned = [row for row, _, _ in texts().turned]
    columns = {"from the negator": from_negator, "from others": from_others, "on opinions": on_opinions(classifier),
               "push, plain": pushes_right(classifier, texts().plain[:EACH]),
               "push, flipped": pushes_right(classifier, turned[:EACH])}
    heads = {f"{layer}.{head}": described(columns, place) | right_without(classifier, (layer, head))
             for place, (layer, head) in enumerate(HEADS)}
    counts = {"plain": len(texts().plain), "flipped": len(texts().flipped), "with one negator": len(turned)}
    return {"parameters": parameters_of(classifier.model), "counts": counts, "whole": right_without(classifier, None),
            "untrained, at most": round(named(partner, classifier)[0].max().item(), 4), "heads": heads}


def line(runs: list[dict]) -> str:
    """On how many seeds the head that pushes plain reviews most against their label is the one that flipped ones miss."""
    meet = 0
    for one in runs:
        heads = one["heads"]
        meet += (min(heads, key=lambda name: heads[name]["push, plain"])
                 == min(heads, key=lambda name: heads[name]["flipped without"]))
    return f"push and silence meet on {meet} of {len(runs)} seeds"


SET = ResultSet("heads", {ROW: {}}, settings, run, texts_from("reviews"), line=line)
