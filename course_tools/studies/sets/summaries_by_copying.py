"""17's Transformer with and without a pointer, on copied summaries: what the extra `summaries_by_copying` compares.

Writes data/results/summaries_by_copying.json. Both rows read the same reviews of the course corpus in the same batches, with
one list of words for both sides, and take the same steps; the epoch with the lowest cross-entropy on validation is scored
once on test: summaries that are word for word the reference, by kind, and apart for those with a word outside the vocabulary
and for reviews in which a person's name is exchanged for one that no review has; ROUGE; how many written words the review
hasn't; and on which source words the heads' weights are, while the model reads the reference.

    python -m course_tools results summaries_by_copying --seeds 0 1 2
"""

import functools

import torch
from torch import nn

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, Trained
from course_utils.encoder_decoder import SmoothedLoss
from course_utils.recipes.copied_summaries import (
    BATCH_SIZE,
    FIT,
    MIN_FREQ,
    MODEL,
    NEW_NAMES,
    WITH,
    WITHOUT,
    corpus,
    encoded,
    mean,
    name_twins,
    names,
    new_model,
    scored,
    words,
    write,
)
from course_utils.results import fingerprint
from course_utils.summaries_by_copying import PointerTransformer
from course_utils.training import MeanLoss, fit
from course_utils.training.pair_batches import PairBatches

ROWS = {WITHOUT: {"pointer": False}, WITH: {"pointer": True}}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    rows = [fingerprint(split["source_tokens"], split["target_tokens"]) for split in corpus().values()]
    return fingerprint(rows, MIN_FREQ, BATCH_SIZE, MODEL, FIT, NEW_NAMES, 1)


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


def run(model: str, seed: int, state) -> Trained:
    """Train one model with `fit` and score it on the test split."""
    pointer, test = ROWS[model]["pointer"], corpus()["test"]
    net = new_model(pointer, seed)
    data, validation = (PairBatches(encoded(corpus()[split], pointer), BATCH_SIZE) for split in ("train", "validation"))
    result = fit(net, data, MeanLoss(validation, SmoothedLoss(0.0)), loss_of=SmoothedLoss(0.0), seed=seed, checkpoint=state,
                 progress=False, **FIT)
    return Trained(net, result, {
        "steps": len(data) * len(result.history), "test": scored(write(net, test), test), "names": names_scored(net),
        "attention": attention_scores(net, test),
    })


def line(runs: list[dict]) -> str:
    """What the command prints: exact matches, overall and with new names, and made-up words."""
    said = {"exact": [run["test"]["accuracy"] for run in runs], "made up": [run["test"]["made_up"] for run in runs],
            "new names": [run["names"]["new"]["accuracy"] for run in runs]}
    return "  ".join(f"{name} {100 * mean(values):.1f}" for name, values in said.items())


SET = ResultSet("summaries_by_copying", ROWS, settings, run, texts_from("reviews"), line=line)
