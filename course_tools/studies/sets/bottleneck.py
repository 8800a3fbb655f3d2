"""Is it the one vector? The same sentences alone and in company, through one vector and with attention: a result set.

Writes data/results/bottleneck.json, read by notebook 16. Every text is made of one, two or four sentences of one kind
("agreement"), drawn anew for each text; the more there are, the more the one vector has to hold, and nothing else changes.
Scored are new texts of the training sentences, which a translator can know by heart, and of the test split's. The last two
rows show how far one gets without any English, from the French words before.

    python -m course_tools results bottleneck --seeds 0 1 2 3 4
"""

import functools
import random
from collections import Counter, defaultdict
from collections.abc import Callable

import torch
from torch import nn

from course_tools.studies.runner import ResultSet, parameters_of
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig, teacher_forcing_loss
from course_utils.results import fingerprint
from course_utils.training import seed_everything
from course_utils.training.loop import learning_rate_at
from course_utils.training.pair_batches import BEGIN, END, EncodedPairs, PairBatches, WordList
from course_utils.translation.translators import translation_corpus

KIND, LONGEST = "agreement", 9                          # of the sentences, and their most tokens
TOGETHER, EACH, TESTED = (1, 2, 4), 640, 300            # sentences in a text; texts of each in a round, and in a test
STEPS, BATCH_SIZE, LEARNING_RATE, D_MODEL = 1000, 64, 4e-3, 64
ROWS = {
    "one vector": {"score": "none", "d_hidden": 128},
    "one vector, three times as long": {"score": "none", "d_hidden": 128, "steps": 3 * STEPS},
    "attention": {"score": "additive", "d_hidden": 128},
    "French alone, two words before": {"before": 2},
    "French alone, all words before": {"before": 100},
}


@functools.cache
def sentences(split: str) -> list[tuple[list[int], list[int]]]:
    """The sentences of this kind, each with its translation, as ids of the kind's own words."""
    def of(name):
        kind = translation_corpus().splits[name]
        return [row for row in kind if row["kind"] == KIND and len(row["source_tokens"]) <= LONGEST]

    english, french = (WordList.train([row[f"{side}_tokens"] for row in of("train")]) for side in ("source", "target"))
    return [(english.encode(row["source_tokens"]), french.encode(row["target_tokens"])) for row in of(split)]


def sizes() -> tuple[int, int]:
    """How many ids there are on each side."""
    return tuple(1 + max(max(pair[side]) for pair in sentences("train")) for side in (0, 1))


def texts(split: str, each: int, seed: int) -> tuple[EncodedPairs, list[list[int]]]:
    """`each` texts of one, two and four sentences drawn from a split; and how many words each sentence has in French."""
    drawn, pairs, lengths = random.Random(seed), EncodedPairs([], []), []
    for together in TOGETHER:
        for _ in range(each):
            chosen = [drawn.choice(sentences(split)) for _ in range(together)]
            pairs.source.append([i for source, _ in chosen for i in source])
            pairs.target.append([BEGIN, *(i for _, target in chosen for i in target), END])
            lengths.append([len(target) for _, target in chosen])
    return pairs, lengths


def settings() -> str:
    """What every run depends on."""
    return fingerprint(KIND, LONGEST, TOGETHER, EACH, TESTED, STEPS, BATCH_SIZE, LEARNING_RATE, D_MODEL,
                       sentences("train"), sentences("test"))


def new_translator(model: str, seed: int) -> Seq2Seq:
    """An untrained translator of a row."""
    seed_everything(seed)
    row = ROWS[model]
    return Seq2Seq(Seq2SeqConfig(*sizes(), D_MODEL, row["d_hidden"], row["score"]))


def run(model: str, seed: int, state) -> dict:
    """Train one translator on texts that are new in every step, and score it; or score what only French says."""
    if "before" in ROWS[model]:
        best = french_alone(ROWS[model]["before"])
        return {"parameters": 0, "known": scores(best, "train"), "new": scores(best, "test")}
    net, steps = new_translator(model, seed), ROWS[model].get("steps", STEPS)
    optimizer, step, round_, losses = torch.optim.AdamW(net.parameters(), weight_decay=0.01), 0, 0, []
    while step < steps:
        pairs, _ = texts("train", EACH, 1000 * seed + round_ + 1)
        for batch in PairBatches(pairs, BATCH_SIZE).batches(round_):
            if step == steps:
                break
            for group in optimizer.param_groups:
                group["lr"] = learning_rate_at(step, steps, LEARNING_RATE, 0.1)
            loss, _ = teacher_forcing_loss(net, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            step, losses = step + 1, [*losses[-99:], loss.item()]
        round_ += 1
    return {"parameters": parameters_of(net), "steps": steps, "train_loss": round(sum(losses) / len(losses), 4),
            "known": scores(best_of(net), "train"), "new": scores(best_of(net), "test")}


def best_of(model: Seq2Seq) -> Callable:
    """The most probable words of a batch, reading the reference."""
    model.eval()
    return lambda batch: model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1]).logits.argmax(dim=-1)


def french_alone(before: int) -> Callable:
    """The word that follows so many words of its sentence most often in training; fewer of them where they're new."""
    follows, stop = defaultdict(Counter), sentences("train")[0][1][-1]
    for _, target in sentences("train"):
        for k, word in enumerate(target):
            seen = [BEGIN, *target[:k]][-before:]
            for start in range(len(seen) + 1):
                follows[tuple(seen[start:])][word] += 1

    def best(batch):
        rows = []
        for target in batch.target_ids.tolist():
            rows.append([])
            seen = [BEGIN]
            for word in target[1:]:
                context = tuple(seen[-before:])
                while context not in follows:
                    context = context[1:]
                rows[-1].append(follows[context].most_common(1)[0][0])
                seen = [BEGIN] if word == stop else [*seen, word]
        return torch.tensor(rows)

    return best


@torch.no_grad()
def scores(best_of_batch: Callable, split: str) -> dict:
    """By the number of sentences in a text: the fraction of words that are right, reading the reference, of sentences that
    are right in every word, and of words in the first sentence, the second …"""
    pairs, lengths = texts(split, TESTED, -1)
    words, whole, places = ({together: [] for together in TOGETHER} for _ in range(3))
    for batch in PairBatches(pairs, 100).batches(None):
        best = best_of_batch(batch)
        for i, right in zip(batch.indices, best == batch.target_ids[:, 1:]):
            each = right[: sum(lengths[i])].split(lengths[i])
            together = len(each)
            words[together] += right[: sum(lengths[i])].tolist()
            whole[together] += [bool(one.all()) for one in each]
            places[together].append([one.float().mean().item() for one in each])
    mean = {name: {str(t): round(sum(hits) / len(hits), 4) for t, hits in found.items()}
            for name, found in (("words", words), ("sentences", whole))}
    return mean | {"by_place": {str(t): [round(sum(row[k] for row in rows) / len(rows), 4) for k in range(t)]
                                for t, rows in places.items()}}


def line(runs: list[dict]) -> str:
    """What the command prints: the words that are right, by the number of sentences."""
    return "  ".join(f"{split} {t}: {100 * sum(run[split]['words'][str(t)] for run in runs) / len(runs):.1f}"
                     for split in ("known", "new") for t in TOGETHER)


def seeds(row: str, asked: list[int]) -> list[int]:
    """Counting draws nothing, so one seed will do; the longer training has two."""
    return [0] if "before" in ROWS[row] else [seed for seed in asked if seed < 2] if "steps" in ROWS[row] else asked


SET = ResultSet("bottleneck", ROWS, settings, run, seeds=seeds, line=line)
