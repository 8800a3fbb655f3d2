"""Is there one sentiment axis? A bag of 16-dimensional embeddings, cut by direction: a result set.

Writes data/results/sentiment_axis.json: how much of the trained vectors lies along the direction that the output reads,
the accuracy with parts of them deleted, and what a new reader finds in the rest. It uses 1,000 real reviews and the course
corpus, with two starts: word vectors of standard deviation 1, as the library draws them, and of 0.02, as notebook 03 draws
them. IMDb comes from the hub, or from the folder that COURSE_DATA names.

    python -m course_tools results sentiment_axis [--only IMDb] [--seeds 0 1 2]
"""

import functools
from collections import Counter
from typing import NamedTuple

import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

from course_tools.studies.needs import IMDB, texts_from
from course_tools.studies.runner import ResultSet, parameters_of
from course_utils.data import load_reviews, split_reviews
from course_utils.embeddings import BagOfEmbeddings, masked_mean
from course_utils.results import fingerprint, scores, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, EncodedReviews, batches, encode_reviews, evaluate, fit, seed_everything

DIMENSIONS = 16
FREQUENT = 20                                           # a word that occurs so often is counted in the variance
DELETIONS = 8
OPTIONS = BatchOptions(batch_size=32, max_len=256)
FIT = {"learning_rate": 1e-2, "weight_decay": 0.01, "warmup": 0.1}
LEAD = {"other start": 100, "other reviews": 200}       # seeds of the models that a run's word scores are compared with


class Case(NamedTuple):
    """Which reviews, how many of them for training (None: all), how often a pass reads each before validation is looked
    at, how many passes, and the standard deviation of the first word vectors."""

    source: str
    reviews: int | None
    times: int
    passes: int
    start: float


CASES = {
    "IMDb, 1,000 reviews, start 1": Case("imdb", 1000, 4, 5, 1.0),
    "IMDb, 1,000 reviews, start 0.02": Case("imdb", 1000, 4, 5, 0.02),
    "the course's reviews, start 1": Case("reviews", None, 1, 6, 1.0),
    "the course's reviews, start 0.02": Case("reviews", None, 1, 6, 0.02),
}


@functools.cache
def splits(source: str):
    """Training, validation and test reviews; IMDb's validation split is always the same 2,500."""
    return split_reviews(load_reviews("imdb"), validation=0.1, seed=0) if source == "imdb" else load_reviews(source)


@functools.cache
def settings() -> str:
    """What every run depends on: the training, and the texts and labels of both collections."""
    texts = [split_fingerprints(splits(source)) for source in ("imdb", "reviews")]
    return fingerprint(DIMENSIONS, FREQUENT, DELETIONS, list(OPTIONS), FIT, LEAD, texts)


class Drawn(NamedTuple):
    """Training reviews that were drawn: their vocabulary, all splits encoded with it, how often each word occurs."""

    tokenizer: WordTokenizer
    encoded: dict[str, EncodedReviews]
    occurrences: Counter

    @property
    def frequent(self) -> list[int]:
        """Ids of the words that occur FREQUENT times or more in the training reviews."""
        return [i for i in range(2, self.tokenizer.vocab_size) if self.occurrences[i] >= FREQUENT]


class Trained(NamedTuple):
    """A trained bag, the reviews that it was trained on, and how training went."""

    net: BagOfEmbeddings
    drawn: Drawn
    best_pass: int
    seconds: float

    @property
    def vectors(self) -> torch.Tensor:
        """The word vectors (vocab_size, DIMENSIONS)."""
        return self.net.embedding.weight.detach()

    @property
    def axis(self) -> torch.Tensor:
        """The readout direction (DIMENSIONS,), of length one: the difference of the two output rows."""
        return F.normalize((self.net.output.weight[1] - self.net.output.weight[0]).detach(), dim=0)


def draw(data, reviews: int | None, seed: int, also: tuple[str, ...] = ()) -> Drawn:
    """So many training reviews, other ones for another seed (None: all); the splits of `also` are encoded as well."""
    train = data["train"].shuffle(seed=seed).select(range(reviews)) if reviews else data["train"]
    tokenizer = WordTokenizer.train(train["text"])
    encoded = {"train": encode_reviews(train, tokenizer)}
    encoded |= {split: encode_reviews(data[split], tokenizer) for split in ("validation", *also)}
    return Drawn(tokenizer, encoded, Counter(i for ids in encoded["train"].ids for i in ids))


@functools.lru_cache(maxsize=4)
def drawn_from(source: str, reviews: int | None, seed: int, also: tuple[str, ...] = ()) -> Drawn:
    """`draw`, kept for the next run: the two starts of a case read the same reviews."""
    return draw(splits(source), reviews, seed, also)


def untrained(vocab_size: int, start: float, seed: int) -> BagOfEmbeddings:
    """A bag whose word vectors have the standard deviation `start`, padding zero."""
    seed_everything(seed)
    net = BagOfEmbeddings(vocab_size, DIMENSIONS)
    with torch.no_grad():
        net.embedding.weight.mul_(start)
    return net


def trained(drawn: Drawn, case: Case, seed: int) -> Trained:
    """A bag trained from the start `seed`, its pass chosen on the validation split."""
    net = untrained(drawn.tokenizer.vocab_size, case.start, seed)
    once = drawn.encoded["train"]
    result = fit(
        net, EncodedReviews(once.ids * case.times, once.labels * case.times), drawn.encoded["validation"],
        options=OPTIONS, epochs=case.passes, seed=seed, progress=False, **FIT,
    )
    return Trained(net, drawn, result.best_epoch, result.seconds)


def pooled(vectors: torch.Tensor, reviews: EncodedReviews) -> torch.Tensor:
    """The mean word vector of each review (reviews, DIMENSIONS), as `BagOfEmbeddings` takes it."""
    means = torch.zeros(len(reviews.ids), vectors.shape[1])
    for batch in batches(reviews, OPTIONS._replace(batch_size=256)):
        means[batch.indices] = masked_mean(vectors[batch.token_ids], batch.attention_mask)
    return means


def without(x: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    """x (rows, DIMENSIONS) less its part along the directions (count, DIMENSIONS)."""
    basis, _ = torch.linalg.qr(directions.T)                               # (DIMENSIONS, count), lengths one
    return x - x @ basis @ basis.T


def principal(x: torch.Tensor, centre: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Shares of the squared length along the principal directions of x (rows, DIMENSIONS), and these directions."""
    _, values, directions = torch.linalg.svd(x - x.mean(dim=0) if centre else x, full_matrices=False)
    return values**2 / (values**2).sum(), directions


def share_along(x: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    """The proportion of the variance of x (rows, DIMENSIONS) along each unit direction (count, DIMENSIONS)."""
    centred = x - x.mean(dim=0)
    return ((centred @ directions.T) ** 2).sum(dim=0) / (centred**2).sum()


def scored(dataset, predictions) -> dict:
    """Accuracy, by kind as well where the reviews have kinds."""
    groups = {"kind": dataset["kind"]} if "kind" in dataset.column_names else {}
    return scores(predictions, dataset["label"], **groups)


def read_anew(train: torch.Tensor, labels: list[int], test: torch.Tensor, kept=None) -> tuple[list[int], torch.Tensor]:
    """Fit a logistic regression on review vectors, training reviews alone; its test predictions and its direction.

    Vectors are scaled by one number, so that readers of large and of small vectors are held back alike. `kept`
    (count, DIMENSIONS), orthonormal, are the directions that it may read; default: all.
    """
    kept = torch.eye(train.shape[1]) if kept is None else kept
    train, test = train @ kept.T, test @ kept.T
    middle = train.mean(dim=0)
    size = (train - middle).std()
    reader = LogisticRegression(C=100, max_iter=5000).fit(((train - middle) / size).numpy(), labels)
    direction = torch.tensor(reader.coef_, dtype=torch.float32) @ kept     # (1, DIMENSIONS)
    return reader.predict(((test - middle) / size).numpy()).tolist(), direction


def the_rest_of(directions: torch.Tensor) -> torch.Tensor:
    """An orthonormal basis (DIMENSIONS - count, DIMENSIONS) of what is at right angles to the directions (count, …)."""
    _, _, basis = torch.linalg.svd(directions, full_matrices=True)
    return basis[len(directions):]


def run(model: str, seed: int, state) -> dict:
    """Train and cut one bag. `state` is not used: a training takes seconds."""
    case = CASES[model]
    return measure(splits(case.source), case, seed, functools.partial(drawn_from, case.source))


def measure(data, case: Case, seed: int, drawn_by=None) -> dict:
    """Everything that is measured of one bag. `drawn_by` (reviews, seed, also) draws reviews; default: `draw`."""
    drawn_by = drawn_by or functools.partial(draw, data)
    drawn = drawn_by(case.reviews, seed, ("test",))
    bag = trained(drawn, case, seed)
    others = {"other start": trained(drawn, case, seed + LEAD["other start"])}
    if case.reviews:
        other = seed + LEAD["other reviews"]
        others["other reviews"] = trained(drawn_by(case.reviews, other), case, other)
    ranked = sorted(drawn.frequent, key=lambda i: (bag.vectors[i] @ bag.axis).item())
    word_of = drawn.tokenizer.vocabulary
    said = {split: evaluate(bag.net, drawn.encoded[split], OPTIONS).predictions.tolist() for split in ("validation", "test")}
    return {
        "parameters": parameters_of(bag.net), "seconds": round(bag.seconds, 1),
        "data": {split: len(encoded.ids) for split, encoded in drawn.encoded.items()},
        "vocabulary": drawn.tokenizer.vocab_size, "frequent_words": len(drawn.frequent), "best_pass": bag.best_pass,
        **{split: scored(data[split], predictions) for split, predictions in said.items()},
        "cut": {name: scored(data["test"], predictions) for name, predictions in cuts(bag).items()},
        "read_anew": {name: scored(data["test"], predictions) for name, predictions in readers(bag, case, seed).items()},
        "variance": variance(bag, case, seed),
        "rank_correlation": {name: rank_correlation(bag, other) for name, other in others.items()},
        "most_positive": [word_of[i] for i in ranked[:-11:-1]], "most_negative": [word_of[i] for i in ranked[:10]],
    }


def cuts(bag: Trained) -> dict[str, list[int]]:
    """What the trained output says of each test review when parts of the word vectors are deleted.

    The first principal direction is that of the frequent words' vectors: centred, the part along it of what a word
    differs from the mean word, the mean word kept; not centred, of the vector itself. The random direction is deleted.
    """
    test, axis = pooled(bag.vectors, bag.drawn.encoded["test"]), bag.axis[None]
    words = bag.vectors[bag.drawn.frequent]
    _, centred = principal(words, centre=True)
    _, plain = principal(words, centre=False)
    mean = words.mean(dim=0)
    random_direction = torch.randn(1, DIMENSIONS, generator=torch.Generator().manual_seed(0))
    vectors = {
        "readout direction alone": test @ axis.T @ axis,
        "readout direction deleted": without(test, axis),
        "first principal direction alone, centred": mean + (test - mean) @ centred[:1].T @ centred[:1],
        "first principal direction alone, not centred": test @ plain[:1].T @ plain[:1],
        "first principal direction deleted, centred": mean + without(test - mean, centred[:1]),
        "a random direction deleted": without(test, random_direction),
    }
    with torch.no_grad():
        return {name: bag.net.output(x).argmax(dim=1).tolist() for name, x in vectors.items()}


def readers(bag: Trained, case: Case, seed: int) -> dict[str, list[int]]:
    """What new readers say of the test reviews, each fitted on the training reviews' vectors.

    'n deleted': the readout direction, then the direction of each new reader in turn. The controls read vectors as they
    were drawn, before training: of all 16 directions.
    """
    train, test = (pooled(bag.vectors, bag.drawn.encoded[split]) for split in ("train", "test"))
    labels = bag.drawn.encoded["train"].labels
    said = {"all directions": read_anew(train, labels, test)[0]}
    gone = bag.axis[None]
    said["readout direction alone"] = read_anew(train, labels, test, gone)[0]
    for deleted in range(1, DELETIONS + 1):
        said[f"{deleted} deleted"], direction = read_anew(train, labels, test, the_rest_of(gone))
        gone = torch.cat([gone, F.normalize(direction, dim=1)])
    start = untrained(bag.drawn.tokenizer.vocab_size, case.start, seed).embedding.weight.detach()
    train, test = (pooled(start, bag.drawn.encoded[split]) for split in ("train", "test"))
    said["untrained vectors"] = read_anew(train, labels, test)[0]
    return said


def variance(bag: Trained, case: Case, seed: int) -> dict:
    """Shares of the variance of the frequent words' vectors: along the readout direction, along random directions (mean,
    and the range of the middle 95 % of 1,000), by principal component; and of the vectors before training."""
    words = bag.vectors[bag.drawn.frequent]
    start = untrained(bag.drawn.tokenizer.vocab_size, case.start, seed).embedding.weight.detach()[bag.drawn.frequent]
    directions = F.normalize(torch.randn(1000, DIMENSIONS, generator=torch.Generator().manual_seed(0)), dim=1)
    shares = share_along(words, directions)
    low, high = shares.quantile(torch.tensor([0.025, 0.975])).tolist()
    components, principal_directions = principal(words, centre=True)
    uncentred, _ = principal(words, centre=False)
    return {
        "readout": round(share_along(words, bag.axis[None]).item(), 4),
        "random": round(shares.mean().item(), 4), "random_95": [round(low, 4), round(high, 4)],
        "readout_before_training": round(share_along(start, bag.axis[None]).item(), 4),
        "components": [round(share, 4) for share in components.tolist()],
        "components_not_centred": [round(share, 4) for share in uncentred.tolist()],
        "components_before_training": [round(share, 4) for share in principal(start, centre=True)[0].tolist()],
        "cosine_readout_first_component": round(abs(float(principal_directions[0] @ bag.axis)), 4),
        "total": round((words - words.mean(dim=0)).square().sum(dim=1).mean().item(), 4),
        "total_before_training": round((start - start.mean(dim=0)).square().sum(dim=1).mean().item(), 4),
    }


def rank_correlation(bag: Trained, other: Trained) -> dict:
    """Spearman's correlation of the word scores of two bags, over the words that are frequent in both."""
    shared = [word for word in (bag.drawn.tokenizer.vocabulary[i] for i in bag.drawn.frequent)
              if other.drawn.occurrences[other.drawn.tokenizer.ids.get(word, -1)] >= FREQUENT]
    one, two = ((b.vectors @ b.axis)[[b.drawn.tokenizer.ids[word] for word in shared]].tolist() for b in (bag, other))
    return {"spearman": round(float(spearmanr(one, two).statistic), 4), "words": len(shared)}


SET = ResultSet("sentiment_axis", CASES, settings, run, depends_on=(IMDB, *texts_from("reviews")))
