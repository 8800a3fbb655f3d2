"""What name, push and silence say of each head of notebook 08's classifier: a result set, read by notebook 10, section 5.

Writes data/results/heads.json. Seeds 0 to 4 come with the course, and notebook 10 measures them itself; it reads the later
ones here, which were trained after its sentences had been written. Those are trained first, a minute each, and kept in
outputs/models. Each run has for each head: its weight from negator to opinion and from the other words to it, over the
reviews with one negator and one opinion, and from the other words to the negator; its weight on opinion words, and from the
other words to the evidence, over plain reviews; its mean direct push towards the right label, over the first hundred of
either; how far the mean log-odds fall without it, there too, counted in favour of the opinion word's own label; and what is
right without it of all plain and of all flipped reviews. `hidden` says what proportion of the flipped reviews that the model
has right, with one negator and one opinion, get the other label when the negator is hidden from one head of layer 0, from
every head, or when as many other words are hidden from either head of layer 0, drawn at random.

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
                       [list(row["evidence"]) for row in reviews["test"]], EACH, 2)


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


def weight_from_others(models_maps: list[Tensor], keys: list[int], silent: list[int]) -> Tensor:
    """The weight that all words but the silent ones give to these keys: (layers, heads)."""
    n = models_maps[0].shape[-1]
    targets = torch.zeros(1, n, n, dtype=torch.bool)                       # (1, query, key)
    targets[..., keys] = True
    targets[:, silent] = False
    return role_scores(models_maps, targets).mass[0]


def looked_at(classifier: ReviewClassifier) -> dict[str, Tensor]:
    """The other words' weight on the evidence of plain reviews and on the negators of turned ones: (layers, heads)."""
    found = {"to the opinion, plain": [], "to the negator": []}
    for row in texts().plain[:EACH]:
        evidence = sum(passages(row, classifier.tokenizer.tokenize(row["text"])), [])
        found["to the opinion, plain"].append(
            weight_from_others(maps_of(classifier.model, classifier, row["text"]), evidence, evidence))
    for row, negator, opinion in texts().turned:
        found["to the negator"].append(
            weight_from_others(maps_of(classifier.model, classifier, row["text"]), negator, negator + opinion))
    return {name: torch.stack(each).nanmean(dim=0) for name, each in found.items()}


def log_odds(classifier: ReviewClassifier, rows: list[dict]) -> Tensor:
    """Of 'positive': (review,)."""
    logits = classifier.model(*classifier.encode([row["text"] for row in rows])).logits
    return logits[:, 1] - logits[:, 0]


def owed(classifier: ReviewClassifier, rows: list[dict], side: int) -> Tensor:
    """How far the mean log-odds fall without each head, counted towards the label, or for side -1 towards the other one,
    which is the opinion word's own in a flipped review: (heads,).
    """
    signs = side * (2 * torch.tensor([row["label"] for row in rows]) - 1)
    whole, fallen = (signs * log_odds(classifier, rows)).mean(), []
    for head in HEADS:
        gates = torch.ones(2, 2)
        gates[head] = 0
        with HeadGates(classifier.model, gates):
            fallen.append(whole - (signs * log_odds(classifier, rows)).mean())
    return torch.stack(fallen)


def with_hidden(classifier: ReviewClassifier, row: dict, words: list[int], head: int | None) -> bool:
    """Whether the label is positive when these words are hidden from one head of layer 0, or from every head for None."""
    ids, mask = classifier.encode([row["text"]])
    cover, projection = mask.clone(), classifier.model.encoder.blocks[0].attention.output_projection
    cover[0, words] = False
    if head is None:
        return classifier.model(ids, cover).logits.argmax().item() == 1
    kept, own = [], slice(head * projection.in_features // 2, (head + 1) * projection.in_features // 2)

    def put(module, inputs):
        merged = inputs[0].clone()
        merged[..., own] = kept[0][..., own]
        return (merged,)

    for hook, attend in ((lambda module, inputs: kept.append(inputs[0]), cover), (put, mask)):
        handle = projection.register_forward_pre_hook(hook)
        try:
            logits = classifier.model(ids, attend).logits
        finally:
            handle.remove()
    return logits.argmax().item() == 1


def hidden(classifier: ReviewClassifier) -> dict[str, float]:
    """What proportion of the turned reviews that the model has right get the other label."""
    generator, turned = torch.Generator().manual_seed(0), {}
    for row, negator, opinion in texts().turned:
        if (log_odds(classifier, [row]).item() > 0) == row["label"]:
            free = [i for i in range(classifier.encode([row["text"]])[0].shape[1]) if i not in negator + opinion]
            drawn = [free[i] for i in torch.randperm(len(free), generator=generator)[:len(negator)].tolist()]
            asked = {"from 0.0": (negator, 0), "from 0.1": (negator, 1), "from every head": (negator, None),
                     "others from 0.0": (drawn, 0), "others from 0.1": (drawn, 1)}
            for name, (words, head) in asked.items():
                turned.setdefault(name, []).append(with_hidden(classifier, row, words, head) != row["label"])
    return {name: round(sum(each) / len(each), 4) for name, each in turned.items()}


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
               "push, flipped": pushes_right(classifier, turned[:EACH]), **looked_at(classifier),
               "owed, plain": owed(classifier, texts().plain[:EACH], 1),
               "owed, flipped": owed(classifier, turned[:EACH], -1)}
    heads = {f"{layer}.{head}": described(columns, place) | right_without(classifier, (layer, head))
             for place, (layer, head) in enumerate(HEADS)}
    counts = {"plain": len(texts().plain), "flipped": len(texts().flipped), "with one negator": len(turned)}
    return {"parameters": parameters_of(classifier.model), "counts": counts, "whole": right_without(classifier, None),
            "untrained, at most": round(named(partner, classifier)[0].max().item(), 4), "hidden": hidden(classifier),
            "heads": heads}


def line(runs: list[dict]) -> str:
    """On how many seeds a negator changes the main head's part of the verdict most."""
    most = 0
    for one in runs:
        heads = one["heads"]
        change = {name: abs(head["owed, plain"] - head["owed, flipped"]) for name, head in heads.items()}
        most += max(change, key=change.get) == min(heads, key=lambda name: heads[name]["plain without"])
    return f"a negator changes the main head's part most on {most} of {len(runs)} seeds"


SET = ResultSet("heads", {ROW: {}}, settings, run, texts_from("reviews"), line=line)
