"""The toy task of many tutorials, labels given by ranges of tokens, and what it can show: a result set.

Writes data/results/token_range.json. A vocabulary of 200 tokens has a lower and an upper half; sequences are 5 to 32
tokens long. Rules say how the label depends on the halves (see RULES). In two of them order doesn't matter, in the others
only order does. For each rule, the best possible accuracy is computed exactly.

    python -m course_tools results token_range [--only marker] [--seeds 0 1 2]
"""

import math
import random
from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from course_tools.studies.runner import ResultSet, Trained
from course_utils.baselines import RecurrentClassifier
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.embeddings import BagOfEmbeddings
from course_utils.results import fingerprint, scores
from course_utils.training import BatchOptions, EncodedReviews, evaluate, fit, seed_everything

HALF = 100                                              # ids 1 to 100 are the lower half, 101 to 200 the upper; 0 is padding
MARKER = 2 * HALF + 1
LENGTHS = range(5, 33)
SCORED = {"validation": 500, "test": 4000}
AGREES = 0.65                                           # how often a noisy token comes from the label's half

OPTIONS = BatchOptions(batch_size=64, max_len=LENGTHS[-1], multiple_of=8)
FIT = {"learning_rate": 1e-2, "weight_decay": 0.01, "warmup": 0.1}
SMALL = {"embedding_std": 0.02, "embedding_scale": 10.0}


def one_token(half: int, draw: random.Random) -> int:
    """A token of the lower (0) or upper (1) half."""
    return half * HALF + draw.randint(1, HALF)


def anywhere(draw: random.Random, length: int) -> list[int]:
    """Tokens from both halves alike."""
    return [draw.randint(1, 2 * HALF) for _ in range(length)]


def all_from_one_half(label: int, length: int, draw: random.Random) -> list[int]:
    """Every token comes from the label's half."""
    return [one_token(label, draw) for _ in range(length)]


def most_from_one_half(label: int, length: int, draw: random.Random) -> list[int]:
    """Every token comes from the label's half with probability AGREES, else from the other."""
    return [one_token(label if draw.random() < AGREES else 1 - label, draw) for _ in range(length)]


def first_token_tells(label: int, length: int, draw: random.Random) -> list[int]:
    """The first token comes from the label's half, one of the others from the opposite half, the rest from anywhere."""
    tokens = anywhere(draw, length)
    tokens[0] = one_token(label, draw)
    tokens[draw.randrange(1, length)] = one_token(1 - label, draw)
    return tokens


def marked_token_tells(label: int, length: int, draw: random.Random) -> list[int]:
    """The token after the marker comes from the label's half, another one from the opposite half, the rest from anywhere.

    Neither of the two comes first. The marker counts for the length.
    """
    tokens = anywhere(draw, length - 1)
    marked, opposite = draw.sample(range(1, length - 1), 2)
    tokens[marked], tokens[opposite] = one_token(label, draw), one_token(1 - label, draw)
    return [*tokens[:marked], MARKER, *tokens[marked:]]


class Rule(NamedTuple):
    """How sequences of a label are drawn, and the best accuracy of a model that reads everything (`bayes`), that knows
    which tokens there are but not their order (`unordered`), or the first token alone (`first`); all three exact.

    Then the number of epochs for a network (the best is chosen by validation) and of training sequences.
    """

    sequence: Callable[[int, int, random.Random], list[int]]
    bayes: float
    unordered: float
    first: float
    epochs: int
    train: int = 2000


def majority_is_right(agrees: float, length: int) -> float:
    """Probability that most of `length` independent tokens come from the label's half; a tie counts one half."""
    def exactly(k):
        return math.comb(length, k) * agrees**k * (1 - agrees) ** (length - k)

    tie = exactly(length // 2) / 2 if length % 2 == 0 else 0
    return tie + sum(exactly(k) for k in range(length // 2 + 1, length + 1))


def bayes_accuracy(agrees: float, lengths=LENGTHS) -> float:
    """The best accuracy under `most_from_one_half`, every length alike.

    The odds of the two labels depend on the counts alone, ((agrees / (1 - agrees)) to the power of their difference),
    so to count is the best that can be done, whatever the order.
    """
    return sum(majority_is_right(agrees, length) for length in lengths) / len(lengths)


# In the last two rules each sequence has one token of either half besides those from anywhere: which tokens there are
# says nothing of the label. Nor does the first token, where the marker is needed.
RULES = {
    "one half": Rule(all_from_one_half, 1.0, 1.0, 1.0, epochs=3),
    "noisy half": Rule(most_from_one_half, bayes_accuracy(AGREES), bayes_accuracy(AGREES), AGREES, epochs=8),
    "first token": Rule(first_token_tells, 1.0, 0.5, 1.0, epochs=15),
    "after a marker": Rule(marked_token_tells, 1.0, 0.5, 0.5, epochs=15),
    "after a marker, 20,000 sequences": Rule(marked_token_tells, 1.0, 0.5, 0.5, epochs=5, train=20000),
}


def draw_split(rule: str, count: int, seed) -> EncodedReviews:
    """`count` sequences, half of them of each label, lengths alike; the same for the same rule and seed."""
    draw = random.Random(f"{rule}, {seed}")
    labels = [i % 2 for i in range(count)]
    return EncodedReviews([RULES[rule].sequence(label, draw.choice(LENGTHS), draw) for label in labels], labels)


def sequences(rule: str, seed: int) -> dict[str, EncodedReviews]:
    """The three splits of a rule; another seed draws other sequences."""
    sizes = {"train": RULES[rule].train, **SCORED}
    return {split: draw_split(rule, size, f"{split} {seed}") for split, size in sizes.items()}


def majority_vote(train: EncodedReviews) -> Callable[[list[int]], float]:
    """Count tokens of the two halves; nothing is fitted."""
    return lambda ids: sum((i > HALF) - (i <= HALF) for i in ids if i != MARKER)


def first_token(train: EncodedReviews) -> Callable[[list[int]], float]:
    """Look up how many training sequences of either label begin with this token."""
    table = [0] * (MARKER + 1)
    for ids, label in zip(train.ids, train.labels):
        table[ids[0]] += 2 * label - 1
    return lambda ids: table[ids[0]]


def mean_of_numbers(train: EncodedReviews) -> Callable[[list[int]], float]:
    """Give each token the logarithm of its odds in the training sequences, one added to each count; take the mean."""
    counts = [[1, 1] for _ in range(MARKER + 1)]
    for ids, label in zip(train.ids, train.labels):
        for i in ids:
            counts[i][label] += 1
    number = [math.log(positive / negative) for negative, positive in counts]
    return lambda ids: sum(number[i] for i in ids) / len(ids)


class Counted(NamedTuple):
    """A model without training: from the training split to a function whose sign is the label; its parameters."""

    fitted: Callable[[EncodedReviews], Callable[[list[int]], float]]
    parameters: int
    sees: str = "unordered"


COUNTED = {
    "majority vote": Counted(majority_vote, 0),
    "first token, looked up": Counted(first_token, MARKER, "first"),
    "mean of one number a token": Counted(mean_of_numbers, MARKER),
}
# about 4,000 parameters each
NETWORKS = {
    "bag of embeddings": (lambda: BagOfEmbeddings(MARKER + 1, 20), "unordered"),
    "LSTM": (lambda: RecurrentClassifier(MARKER + 1, 13, 13, **SMALL), "bayes"),
    "attention, sinusoidal positions": (lambda: attention("sinusoidal"), "bayes"),
    "attention, rotary positions": (lambda: attention("rotary"), "bayes"),
}


def attention(positions: str) -> nn.Module:
    """The course's classifier, one block with two heads."""
    return SelfAttentionClassifier(ClassifierConfig(
        MARKER + 1, d_model=12, num_heads=2, d_ff=36, num_layers=1, max_len=LENGTHS[-1], positions=positions, **SMALL
    ))


def parts(model: str) -> tuple[str, str]:
    """The rule and the network in the name of a row."""
    rule, _, network = model.partition(": ")
    return rule, network


def settings() -> str:
    """What every run depends on: the sizes, the training, the networks."""
    return fingerprint(SCORED, FIT, list(OPTIONS), [layers(make()) for make, _ in NETWORKS.values()])


def layers(network: nn.Module) -> str:
    """What PyTorch prints of a network. Rotary positions are named as when the runs were made, so that these stay valid."""
    return str(network).replace("(positions): RotaryPositions()", "(positions): Identity()\n  (rotary): RotaryPositions()")


def describe(model: str) -> dict:
    """The rule, what it draws, and the network."""
    rule, network = parts(model)
    drawn = fingerprint(draw_split(rule, 20, "fingerprint"), RULES[rule].train)
    reading = {"epochs": RULES[rule].epochs} if network in NETWORKS else {}
    return {"rule": rule, "network": network, "draws": drawn, **reading}


def run(model: str, seed: int, state) -> dict | Trained:
    """Draw the sequences, fit or train, and score, one model. `state` is not used: a training takes seconds."""
    rule, network = parts(model)
    data = sequences(rule, seed)
    common = {
        "rule": RULES[rule].sequence.__doc__.partition("\n")[0].replace("AGREES", str(AGREES)),
        "sizes": {split: len(drawn.ids) for split, drawn in data.items()},
        "lengths": [LENGTHS[0], LENGTHS[-1]], "vocabulary": 2 * HALF,
        "bayes": RULES[rule].bayes,
    }
    if network in COUNTED:
        model = COUNTED[network]
        return {**common, "possible": getattr(RULES[rule], model.sees), **count(model, data)}
    made = train(network, data, RULES[rule].epochs, seed)
    made.own.update(common, possible=getattr(RULES[rule], NETWORKS[network][1]))
    return made


def count(model: Counted, data: dict[str, EncodedReviews]) -> dict:
    """Fit and score a model that only counts; a tie is decided by the sequence's place, evens and odds alike."""
    score, scored = model.fitted(data["train"]), {}
    for split in ("validation", "test"):
        values = [score(ids) for ids in data[split].ids]
        # labels alternate, so the second bit of a place is independent of them: a fair coin that needs no seed
        said = [int(value > 0) if value else place // 2 % 2 for place, value in enumerate(values)]
        scored[split] = scores(said, data[split].labels)
    return {"parameters": model.parameters, **scored}


def train(network: str, data: dict[str, EncodedReviews], epochs: int, seed: int) -> Trained:
    """Train a network, choose its epoch on the validation split, score it once on the test split."""
    seed_everything(seed)
    net = NETWORKS[network][0]()
    result = fit(
        net, data["train"], data["validation"], options=OPTIONS, epochs=epochs, seed=seed, progress=False, **FIT
    )
    scored = {
        split: scores(evaluate(net, data[split], OPTIONS).predictions, data[split].labels)
        for split in ("validation", "test")
    }
    return Trained(net, result, scored)


SET = ResultSet(
    "token_range", [f"{rule}: {network}" for rule in RULES for network in [*COUNTED, *NETWORKS]], settings, run,
    change=describe,
)
