"""17's Transformer with and without a pointer, on copied summaries: what the extra `summaries_by_copying` compares.

Writes data/results/summaries_by_copying.json. Both rows read the same reviews of the course corpus in the same batches, with
one list of words for both sides, and take the same steps; the epoch with the lowest cross-entropy on validation is scored
once on test: summaries that are word for word the reference, by kind, and apart for those with a word outside the vocabulary
and for reviews in which a person's name is exchanged for one that no review has; ROUGE; how many written words the review
hasn't; and on which source words the heads' weights are, while the model reads the reference.

    python -m course_utils results summaries_by_copying --seeds 0 1 2
"""

import functools
from collections.abc import Sequence

import torch
from torch import nn

from course_utils.data import load_reviews
from course_utils.encoder_decoder import SmoothedLoss, Transformer, TransformerConfig, beam_search
from course_utils.experiments.results import fingerprint
from course_utils.experiments.runner import ResultSet
from course_utils.summaries_by_copying import (
    PointerTransformer,
    decode_copies,
    encode_copies,
    rouge_1,
    rouge_l,
    summaries,
)
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import EncodedPairs, PairBatches, WordList, encode_pairs

MIN_FREQ, BATCH_SIZE, LONGEST = 50, 64, 60
BOTH = ("source_tokens", "target_tokens")
MODEL = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_layers": 2, "positions": "rotary"}
FIT = {"epochs": 8, "learning_rate": 3e-3, "weight_decay": 0.01, "warmup": 0.1}
WITH, WITHOUT = "with a pointer", "without a pointer"
ROWS = {WITHOUT: {"pointer": False}, WITH: {"pointer": True}}
NEW_NAMES = ("Avery", "Jules", "Kiran", "Marlow", "Noor", "Quinn", "Remy", "Robin", "Rowan", "Sasha", "Sidney", "Tove")


@functools.cache
def corpus() -> dict[str, dict[str, list]]:
    """`summaries` of each split of the course corpus."""
    return {name: summaries(split) for name, split in load_reviews("reviews").items()}


@functools.cache
def words() -> WordList:
    """The vocabulary of both sides: words that occur MIN_FREQ times in the reviews of the training split."""
    return WordList.train(corpus()["train"]["source_tokens"], MIN_FREQ)


def encoded(rows: dict[str, list], pointer: bool) -> EncodedPairs:
    """Rows as ids, in which unknown words have ids of their own, or all have that of <unk>."""
    return encode_copies(rows, words()) if pointer else encode_pairs(rows, words(), words())


@functools.cache
def names() -> set[str]:
    """First names in the summaries of training: words inside a sentence that the corpus never writes in small letters."""
    train = corpus()["train"]
    small = {word for tokens in train["source_tokens"] for word in tokens}
    inside = {word for tokens, kind in zip(train["target_tokens"], train["kind"]) if kind == "distant"
              for before, word in zip(tokens, tokens[1:]) if before not in (".", "!", "?")}
    return {word for word in inside if word[0].isupper() and word != "I" and word.lower() not in small}


@functools.cache
def name_twins() -> tuple[dict[str, list], dict[str, list]]:
    """Test reviews whose summary names one person by a name of the vocabulary; and the same with a name nobody has read."""
    test, kept, changed = corpus()["test"], [], []
    for i, target in enumerate(test["target_tokens"]):
        found = set(target) & names()
        if len(found) == 1 and found <= words().ids.keys():
            new = {found.pop(): NEW_NAMES[len(kept) % len(NEW_NAMES)]}
            kept.append(i)
            changed.append({key: [new.get(word, word) for word in test[key][i]] for key in BOTH})
    return ({key: [column[i] for i in kept] for key, column in test.items()},
            {key: [one[key] for one in changed] for key in BOTH})


@functools.cache
def settings() -> str:
    """What every run depends on."""
    rows = [fingerprint(split["source_tokens"], split["target_tokens"]) for split in corpus().values()]
    return fingerprint(rows, MIN_FREQ, BATCH_SIZE, MODEL, FIT, NEW_NAMES, 1)


def wanted(seeds: list[int]) -> list[tuple[str, int]]:
    """Both rows on every seed."""
    return [(row, seed) for row in ROWS for seed in seeds]


def describe(model: str) -> dict:
    """What the row changes."""
    return ROWS[model]


def new_model(pointer: bool, seed: int) -> Transformer:
    """An untrained model of a row."""
    seed_everything(seed)
    config = TransformerConfig(words().vocab_size, words().vocab_size, **MODEL)
    return (PointerTransformer if pointer else Transformer)(config)


@torch.no_grad()
def write(model: nn.Module, rows: dict[str, list]) -> list[list[str]]:
    """Greedy summaries of some rows, at most LONGEST words each."""
    model.eval()
    pairs, found = encoded(rows, isinstance(model, PointerTransformer)), {}
    for batch in PairBatches(pairs, 100).batches(None):
        for i, candidates in zip(batch.indices, beam_search(model, *batch[:2], beam=1, alpha=0.0, max_len=LONGEST)):
            found[i] = decode_copies(candidates[0].ids, rows["source_tokens"][i], words())
    return [found[i] for i in range(len(found))]


def mean(values: Sequence[float]) -> float:
    """The mean, with four decimals; 0 for none."""
    return round(sum(values) / len(values), 4) if len(values) else 0.0


def scored(written: list[list[str]], rows: dict[str, list]) -> dict:
    """Exact matches (by kind, if rows have one), ROUGE, and the proportions of written words that are <unk> or made up."""
    targets = rows["target_tokens"]
    right = [said == wanted for said, wanted in zip(written, targets, strict=True)]
    said = [(word, word in set(source)) for tokens, source in zip(written, rows["source_tokens"]) for word in tokens]
    known = [set(target) <= words().ids.keys() for target in targets]
    result = {
        "reviews": len(targets), "accuracy": mean(right),
        "rouge_1": mean([rouge_1(*both) for both in zip(written, targets)]),
        "rouge_l": mean([rouge_l(*both) for both in zip(written, targets)]),
        "unknown": mean([word == "<unk>" for word, _ in said]),
        "made_up": mean([not there and word != "<unk>" for word, there in said]),
        "by_words": {name: mean([hit for hit, all_known in zip(right, known) if all_known == flag])
                     for name, flag in (("known", True), ("unknown", False))},
        "reviews_by_words": {"known": sum(known), "unknown": len(known) - sum(known)},
    }
    if "kind" in rows:
        kinds = sorted(set(rows["kind"]))
        result["by_kind"] = {kind: mean([hit for hit, one in zip(right, rows["kind"]) if one == kind]) for kind in kinds}
        result["reviews_by_kind"] = {kind: rows["kind"].count(kind) for kind in kinds}
    return result


def names_scored(model: nn.Module) -> dict:
    """The reviews of `name_twins` with their own names and with new ones: exact matches, and which names are written."""
    about = {}
    for name, rows in zip(("known", "new"), name_twins()):
        written, targets = write(model, rows), rows["target_tokens"]
        own = [set(target) & (names() | set(NEW_NAMES)) for target in targets]
        about[name] = {
            "reviews": len(written), "accuracy": mean([said == wanted for said, wanted in zip(written, targets)]),
            "own_name": mean([bool(set(said) & one) for said, one in zip(written, own)]),
            "unknown": mean(["<unk>" in said for said in written]),
            "other_name": mean([bool((set(said) & names()) - set(source))
                                for said, source in zip(written, rows["source_tokens"])]),
        }
    return about


@torch.no_grad()
def attention_scores(model: nn.Module, rows: dict[str, list]) -> dict:
    """While the model reads the reference: mean weights, of each head (layers, heads), on the source word that is `written`
    next and on the one that was just `read`, from the summary's second word on; and what spreading evenly would give.

    Of a pointer also its own two, and the mean of p_gen where the word is known and where it's unknown.
    """
    model.eval()
    pointer = isinstance(model, PointerTransformer)
    pairs, total, even, count = encoded(rows, pointer), {}, 0.0, 0
    gates = {"known": [], "unknown": []}
    for batch in PairBatches(pairs, 100).batches(None):
        result = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1], need_weights=True)
        maps = torch.stack(result.weights.cross)                           # (layers, batch, heads, target, source)
        for row, i in enumerate(batch.indices):
            one, places = maps[:, row], torch.tensor(rows["places"][i])
            steps = torch.arange(1, len(places))
            for name, columns in (("written", places[1:]), ("read", places[:-1])):
                total[name] = total.get(name, 0) + one[:, :, steps, columns].sum(dim=-1)
                if pointer:
                    total[f"pointer_{name}"] = total.get(f"pointer_{name}", 0) + result.copied[row, steps, columns].sum()
            even, count = even + len(steps) / len(pairs.source[i]), count + len(steps)
            if pointer:
                for p, word in zip(result.p_gen[row].tolist(), rows["target_tokens"][i]):
                    gates["known" if word in words().ids else "unknown"].append(p)
    about = {name: _rounded(value / count) for name, value in total.items()} | {"even": round(even / count, 4)}
    return about | ({"p_gen": {name: mean(values) for name, values in gates.items()}} if pointer else {})


def _rounded(table: torch.Tensor) -> list | float:
    return [_rounded(row) for row in table] if table.dim() else round(table.item(), 4)


def run(model: str, seed: int, state) -> dict:
    """Train one model with `fit` and score it on the test split."""
    pointer, test = ROWS[model]["pointer"], corpus()["test"]
    net = new_model(pointer, seed)
    data, validation = (PairBatches(encoded(corpus()[split], pointer), BATCH_SIZE) for split in ("train", "validation"))
    result = fit(net, data, MeanLoss(validation, SmoothedLoss(0.0)), loss_of=SmoothedLoss(0.0), seed=seed, checkpoint=state,
                 progress=False, **FIT)
    return {
        "parameters": sum(p.numel() for p in net.parameters()), "seconds": round(result.seconds, 1),
        "steps": len(data) * len(result.history), "best_epoch": result.best_epoch,
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history],
        "test": scored(write(net, test), test), "names": names_scored(net), "attention": attention_scores(net, test),
    }


def line(runs: list[dict]) -> str:
    """What the command prints: exact matches, overall and with new names, and made-up words."""
    said = {"exact": [run["test"]["accuracy"] for run in runs], "made up": [run["test"]["made_up"] for run in runs],
            "new names": [run["names"]["new"]["accuracy"] for run in runs]}
    return "  ".join(f"{name} {100 * mean(values):.1f}" for name, values in said.items())


SET = ResultSet("summaries_by_copying", settings, wanted, describe, run, line=line)
