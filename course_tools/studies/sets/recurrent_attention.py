"""Recurrent translators, with one vector between encoder and decoder or with attention, at equal parameters. A result set.

Writes data/results/recurrent_attention.json: the translations of the course's test split that are word for word the
reference, by the length of the English sentence and by kind, on combinations seen in training and on unseen ones; how well
translations go on after their first mistake; and the alignment error rate of each attention against the gold alignment,
beside IBM Model 1's and that of the diagonal. Every network has the same number of parameters to 1 %, and takes the same
steps on the same batches. The epoch is chosen by the loss on the validation split.

    python -m course_tools results recurrent_attention --seeds 0 1 2 3 4
"""

import functools
import time
from collections.abc import Sequence

import torch
from torch import nn

from course_tools.studies.runner import ResultSet
from course_utils.baselines import IBMModel1
from course_utils.recurrent_attention import (
    Seq2Seq,
    Seq2SeqConfig,
    alignment_error_rate,
    greedy,
    links_of,
    teacher_forcing_loss,
)
from course_utils.results import fingerprint, right_bits
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import EncodedPairs, PairBatches
from course_utils.translation.translators import gold_links, keep_translator, length_group, translation_corpus

D_MODEL, DROPOUT, BATCH_SIZE = 64, 0.1, 64
FIT = {"epochs": 12, "learning_rate": 4e-3, "weight_decay": 0.01, "warmup": 0.1}
# d_hidden makes the numbers of parameters equal
ROWS = {
    "one vector, GRU": {"score": "none", "when": "before", "cell": "GRU", "d_hidden": 140},
    "additive, before, GRU": {"score": "additive", "when": "before", "cell": "GRU", "d_hidden": 128},
    "general, after, GRU": {"score": "general", "when": "after", "cell": "GRU", "d_hidden": 156},
    "dot, after, GRU": {"score": "dot", "when": "after", "cell": "GRU", "d_hidden": 166},
    "concat, after, GRU": {"score": "concat", "when": "after", "cell": "GRU", "d_hidden": 146},
    "one vector, LSTM": {"score": "none", "when": "before", "cell": "LSTM", "d_hidden": 120},
    "additive, before, LSTM": {"score": "additive", "when": "before", "cell": "LSTM", "d_hidden": 112},
    "general, after, LSTM": {"score": "general", "when": "after", "cell": "LSTM", "d_hidden": 136},
}
ALIGNERS = {"IBM Model 1": {"iterations": 10}, "the diagonal": {}}
KEPT = {"one vector, GRU": "one_vector", "additive, before, GRU": "additive"}              # of seed 0, for the notebook


@functools.cache
def settings() -> str:
    """What every run depends on."""
    corpus = translation_corpus()
    return fingerprint(D_MODEL, DROPOUT, BATCH_SIZE, FIT, corpus.english.words, corpus.french.words,
                       [PairBatches(pairs).fingerprint for pairs in corpus.pairs.values()], 1)


def new_translator(model: str, seed: int) -> Seq2Seq:
    """An untrained translator of a row."""
    corpus = translation_corpus()
    seed_everything(seed)
    return Seq2Seq(Seq2SeqConfig(corpus.english.vocab_size, corpus.french.vocab_size, D_MODEL, dropout=DROPOUT,
                                 **ROWS[model]))


def run(model: str, seed: int, state) -> dict:
    """Train one translator with `fit` and score it on the test split; or align the test split without one."""
    if model in ALIGNERS:
        corpus = translation_corpus()
        return align(model, corpus, gold_links(corpus.splits["test"]))
    net = new_translator(model, seed)
    about = train_and_score(net, seed, state, aligns=ROWS[model]["score"] != "none")
    if seed == 0 and model in KEPT:
        keep_translator(KEPT[model], net)
    return about


def train_and_score(net: nn.Module, seed: int, state, aligns: bool = True) -> dict:
    """Train a translator by this set's recipe, and score it on the test split; `aligns`: its attention's alignments, too."""
    corpus = translation_corpus()
    test, pairs = corpus.splits["test"], corpus.pairs["test"]
    data, validation = (PairBatches(corpus.pairs[split], BATCH_SIZE) for split in ("train", "validation"))
    result = fit(net, data, MeanLoss(validation, teacher_forcing_loss), loss_of=teacher_forcing_loss, seed=seed,
                 checkpoint=state, progress=False, **FIT)
    lengths = [length_group(len(words)) for words in test["source_tokens"]]
    unseen = ["unseen" if new else "seen" for new in test["unseen"]]
    groups = {"length": lengths, "kind": test["kind"], "combination": unseen}
    return {
        "parameters": sum(p.numel() for p in net.parameters()), "seconds": round(result.seconds, 1),
        "steps": len(data) * len(result.history), "best_epoch": result.best_epoch,
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history],
        "test": translation_scores(net, pairs, groups),
        "alignment": alignment_scores(net, pairs, gold_links(test)) if aligns else None,
    }


def align(model: str, corpus, gold) -> dict:
    """Align the test split by IBM Model 1, trained on the training split, or along the diagonal."""
    begun, test = time.perf_counter(), corpus.splits["test"]
    rows = list(zip(test["source_tokens"], test["target_tokens"]))
    about = {"parameters": 0, "history": []}
    if model == "the diagonal":
        found = [{(round(j * (len(s) - 1) / max(1, len(t) - 1)), j) for j in range(len(t))} for s, t in rows]
    else:
        train = corpus.splits["train"]
        counted = IBMModel1(**ALIGNERS[model]).fit(train["source_tokens"], train["target_tokens"])
        found = [counted.align(s, t) for s, t in rows]
        about["history"] = [round(value, 4) for value in counted.history]
    return {**about, "seconds": round(time.perf_counter() - begun, 1), "test": {"reviews": len(rows)},
            "alignment": {"aer": round(alignment_error_rate(found, gold), 4)}}


def line(runs: list[dict]) -> str:
    """What the command prints: exact match by length, and the alignment error rate."""
    def mean(values):
        return f"{100 * sum(values) / len(values):.1f}"

    said = []
    if "by_length" in runs[0]["test"]:
        said = [f"{group}: {mean([run['test']['by_length'][group] for run in runs])}"
                for group in runs[0]["test"]["by_length"]]
    if runs[0]["alignment"]:
        said.append(f"AER {mean([run['alignment']['aer'] for run in runs])}")
    return "  ".join(said)


@torch.no_grad()
def translation_scores(model: nn.Module, pairs: EncodedPairs, groups: dict[str, Sequence[str]]) -> dict:
    """Exact match of greedy translations, overall and for each group, and what happens after a translation's first mistake.

    `right` says of every pair whether its translation is word for word the reference, four to a hexadecimal digit (read by
    `results.right_of`). `after_first_mistake` counts the reference's words after the first word that is wrong, in the
    translations that have as many words as their reference: how many are right where the model reads its own words, and
    where it reads the reference's.
    """
    model.eval()
    right, words, own, forced, sentences = {}, 0, 0, 0, 0
    for batch in PairBatches(pairs, 100).batches(None):
        written = greedy(model, batch.source_ids, batch.source_mask).ids
        choices = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1]).logits.argmax(dim=-1)
        for i, said, chosen in zip(batch.indices, written, choices.tolist()):
            asked = pairs.target[i][1:-1]
            right[i] = said == asked
            if right[i] or len(said) != len(asked):
                continue
            first = next(k for k in range(len(asked)) if said[k] != asked[k])
            sentences, words = sentences + 1, words + len(asked) - first - 1
            own += sum(a == b for a, b in zip(said[first + 1 :], asked[first + 1 :]))
            forced += sum(a == b for a, b in zip(chosen[first + 1 : len(asked)], asked[first + 1 :]))
    hits = [right[i] for i in range(len(pairs.source))]
    result = {"accuracy": round(sum(hits) / len(hits), 4), "reviews": len(hits)}
    for name, members in groups.items():
        counts = {group: sum(member == group for member in members) for group in sorted(set(members))}
        result[f"by_{name}"] = {
            group: round(sum(hit for hit, member in zip(hits, members, strict=True) if member == group) / count, 4)
            for group, count in counts.items()}
        result[f"reviews_by_{name}"] = counts
    result["right"] = right_bits(hits)
    result["after_first_mistake"] = {"sentences": sentences, "words": words, "right_own": own, "right_forced": forced}
    return result


@torch.no_grad()
def alignment_scores(model: nn.Module, pairs: EncodedPairs, gold: Sequence[set]) -> dict:
    """Alignment error rate of the strongest weight, while the model reads the reference: overall, and with links shifted.

    `shifted` takes the weights of each word for those of the word after it ("later") or before it ("earlier"): if one of
    them is better, the weights belong to another step.
    """
    model.eval()
    found = [set() for _ in pairs.source]
    for batch in PairBatches(pairs, 100).batches(None):
        weights = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1], need_weights=True).weights
        for i, one in zip(batch.indices, weights):
            found[i] = links_of(one[: len(pairs.target[i]) - 2])           # without the row that writes <eos>
    moved = {name: [{(s, t + by) for s, t in links if 0 <= t + by < len(target) - 2}
                    for links, target in zip(found, pairs.target)] for name, by in (("later", 1), ("earlier", -1))}
    return {"aer": round(alignment_error_rate(found, gold), 4),
            "shifted": {name: round(alignment_error_rate(links, gold), 4) for name, links in moved.items()}}


SET = ResultSet(
    "recurrent_attention", ROWS | ALIGNERS, settings, run,
    seeds=lambda row, asked: asked if row in ROWS else [0] if 0 in asked else [], line=line,
)
