"""Cheap forms of attention on long texts: a result set, read by the extras `fewer_pairs` and `other_kernels`.

Writes data/results/long_texts.json: nine forms of attention, three kinds of rows for each.

"distant": in the course's classifier, trained with full attention on reviews of some 40 tokens, another form takes full
attention's place, and the model is trained on for a few steps: on *distant* reviews that neutral sentences lengthen to 256
tokens, then to 1,024. It's scored at each length, on test reviews lengthened by sentences of the test split. (After 25 steps
on 4,096 tokens full attention was at 56.5 % with seed 0, and more would have cost hours: so it ends at 1,024.) Seed by seed
these are the course's five classifiers. Every form and seed takes the same number of steps.
"needle": one block, trained from nothing. In a text of random words stand four tokens that are a colour and a letter in one;
the first token asks for the letter of one colour, and the answer is read there. It's trained on 256, 1,024 and 4,096 tokens.
"cost": processor time and memory of one text in that classifier, forward and backward, in a process of its own; once.

    python -m course_tools results long_texts --jobs 1 --seeds 0 1 2 3 4

A seed takes about nine minutes of one processor core. Rates and steps were chosen for the full form: for "distant" on
lengthened validation reviews, seeds 0 and 1 (rates 0.001, 0.002, 0.004; 160 or 320 steps on 1,024 tokens); for "needle" on
seeds 10 to 21 (rates 0.005 and 0.01; 250 to 600 steps on 256 tokens: with 450 two seeds of twelve didn't find it).
"""

import functools
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, parameters_of
from course_utils import fewer_pairs, other_kernels
from course_utils.attention import AttentionResult
from course_utils.data import load_reviews
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.recipes.trained_models import trained_model
from course_utils.results import fingerprint, scores_one_by_one
from course_utils.training import seed_everything
from course_utils.transformer_blocks import Encoder

SIZE = 64                                               # tokens in a block; texts have a whole number of blocks
STEP, RANDOM, MIXED, FEATURES = 4, 2, 64, 64            # of dilation; random blocks a row; keys that are left; features
FORMS = ("full", "none", "window", "dilated", "window and global", "window, global and random", "low rank", "linear",
         "random features")


class Stage(NamedTuple):
    """Training on texts of one length: so many steps of so many texts, then so many to score."""

    length: int
    steps: int
    batch: int
    tested: int


DISTANT, DISTANT_RATE = (Stage(256, 150, 8, 500), Stage(1024, 320, 8, 500)), 4e-3
NEEDLE, NEEDLE_RATE = (Stage(256, 600, 32, 500), Stage(1024, 80, 16, 500), Stage(4096, 20, 8, 200)), 5e-3
COLOURS, LETTERS, WORDS, NEEDLES, WIDTH = 8, 8, 64, 4, 32
TASKS = ("distant", "needle", "cost")
ROWS = {f"{task}: {form}": {"task": task, "form": form} for task in TASKS for form in FORMS}


# ---------------------------------------------------------------- the forms

class Form(nn.Module):
    """A form of attention over split heads: query, key, value (batch, heads, n, d_head) -> context, the same shape."""

    def __init__(self, form: str, d_head: int, shortest: int, generator: torch.Generator):
        super().__init__()
        self.form, self.generator, self.kept = form, generator, {}
        if form == "low rank":                          # each of the keys that are left begins as the mean of a stretch
            mean = torch.eye(MIXED).repeat_interleave(shortest // MIXED, dim=1) * MIXED / shortest
            self.mix = nn.Parameter(mean)
        if form == "random features":
            self.register_buffer("directions", torch.randn(FEATURES, d_head, generator=generator))

    def blocks(self, n: int) -> Tensor:
        """Which blocks of keys each block of queries keeps, for texts of this length: drawn once."""
        if n not in self.kept:
            kept = fewer_pairs.near_blocks(n // SIZE)
            if "global" in self.form:
                kept = fewer_pairs.with_global_blocks(kept)
            if "random" in self.form:
                kept = fewer_pairs.with_random_blocks(kept, RANDOM, self.generator)
            self.kept[n] = kept
        return self.kept[n]

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        n = key.shape[-2]
        if self.form == "full":
            return F.scaled_dot_product_attention(query, key, value)
        if self.form == "none":
            return torch.zeros_like(value)
        if self.form == "dilated":
            near = fewer_pairs.near_blocks(n // STEP // SIZE)
            return fewer_pairs.dilated_attention(query, key, value, near, SIZE, STEP)
        if self.form.startswith("window"):
            return fewer_pairs.block_attention(query, key, value, self.blocks(n), SIZE)
        if self.form == "low rank":                     # on a longer text, the same mixture of longer stretches
            times = n // self.mix.shape[1]
            return other_kernels.low_rank_attention(query, key, value, self.mix.repeat_interleave(times, dim=1) / times)
        if self.form == "linear":
            return other_kernels.linear_attention(query, key, value)
        return other_kernels.random_feature_attention(query, key, value, self.directions)


class OtherAttention(MultiHeadAttention):
    """Multi-head attention with the weights of another, whose heads attend by a `Form`."""

    def __init__(self, old: MultiHeadAttention, form: Form):
        super().__init__(old.num_heads * old.d_head, old.num_heads)
        self.load_state_dict(old.state_dict())
        self.form = form

    def attend(self, query, key, value, *_) -> AttentionResult:
        return AttentionResult(self.form(query, key, value), None)


def with_form(encoder: Encoder, form: str, shortest: int, seed: int) -> Encoder:
    """The encoder with the same weights, and a form of attention in each block."""
    generator = torch.Generator().manual_seed(seed)
    for block in encoder.blocks:
        made = Form(form, block.attention.d_head, shortest, generator)
        block.attention = OtherAttention(block.attention, made)
    return encoder


# ---------------------------------------------------------------- distant reviews, lengthened

@functools.cache
def pieces(split: str) -> tuple[list[tuple[list[list[int]], int]], list[list[int]]]:
    """The distant reviews of a split, as sentences of token ids with a label, and the neutral sentences in them.

    Neutral is a sentence without evidence and without any word that is evidence in some review.
    """
    tokenizer, reviews = trained_model(0, progress=False).tokenizer, load_reviews("reviews")
    said = {row["text"][a:b].lower() for row in reviews["train"] for a, b in row["evidence"]}
    opinion = re.compile(r"\b(" + "|".join(map(re.escape, sorted(said))) + r")\b")
    texts, neutral = [], {}
    for row in reviews[split]:
        if row["kind"] != "distant":
            continue
        sentences = []
        for found in re.finditer(r"[^.!?]+[.!?]+\s*", row["text"]):
            sentences.append(tokenizer.encode(found.group()))
            evidence = any(a < found.end() and b > found.start() for a, b in row["evidence"])
            if not evidence and not opinion.search(found.group().lower()):
                neutral[tuple(sentences[-1])] = None
        texts.append((sentences, row["label"]))
    return texts, [list(ids) for ids in neutral]


def lengthened(sentences: list[list[int]], neutral: list[list[int]], length: int, rng: random.Random) -> list[int]:
    """The sentences in their order, with neutral ones before, between and after them: exactly `length` tokens.

    What doesn't fit of a neutral sentence is cut off its beginning.
    """
    missing, fillers = length - sum(map(len, sentences)), []
    while missing > 0:
        fillers.append(rng.choice(neutral)[-missing:])
        missing -= len(fillers[-1])
    places = sorted(rng.randint(0, len(fillers)) for _ in sentences)
    parts = []
    for i, filler in enumerate([*fillers, []]):
        parts += [ids for place, ids in zip(places, sentences) if place == i]
        parts.append(filler)
    return [token for part in parts for token in part][-length:]


def distant_batches(split: str, length: int, batch: int, rng: random.Random) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of lengthened reviews: token ids (batch, length) and labels; training reviews are drawn, others in order."""
    texts, neutral = pieces(split)
    start = 0
    while True:
        drawn = [rng.randrange(len(texts)) if split == "train" else (start + i) % len(texts) for i in range(batch)]
        start += batch
        yield (torch.tensor([lengthened(texts[i][0], neutral, length, rng) for i in drawn]),
               torch.tensor([texts[i][1] for i in drawn]))


# ---------------------------------------------------------------- a needle to copy

def needle_batches(length: int, batch: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of texts (batch, length) and the letter that each asks for (batch,).

    Ids: 64 words, then 8 × 8 needles, each a colour and a letter, then 8 questions for a colour.
    """
    while True:
        ids = torch.randint(0, WORDS, (batch, length), generator=generator)
        colours = torch.rand(batch, COLOURS, generator=generator).argsort(dim=1)[:, :NEEDLES]
        letters = torch.randint(0, LETTERS, (batch, NEEDLES), generator=generator)
        places = 1 + torch.rand(batch, length - 1, generator=generator).argsort(dim=1)[:, :NEEDLES]
        ids.scatter_(1, places, WORDS + colours * LETTERS + letters)
        ids[:, 0] = WORDS + COLOURS * LETTERS + colours[:, 0]
        yield ids, letters[:, 0]


class Finder(nn.Module):
    """One block without positions, whose answer is read off the first token: ids (batch, n) -> logits (batch, 8).

    A needle's vector is the sum of its colour's and its letter's; a question has its colour's.
    """

    def __init__(self, form: str, shortest: int, seed: int):
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, WIDTH)
        self.colours, self.letters = nn.Embedding(COLOURS + 1, WIDTH), nn.Embedding(LETTERS + 1, WIDTH)
        self.encoder = with_form(Encoder(1, WIDTH, 1, 2 * WIDTH, dropout=0.0), form, shortest, seed)
        self.output = nn.Linear(WIDTH, LETTERS)

    def forward(self, ids: Tensor) -> Tensor:
        marked = ids - WORDS                            # below 0: a word; from 64 on: a question
        asks = marked >= COLOURS * LETTERS
        colour = torch.where(asks, marked - COLOURS * LETTERS, torch.where(marked < 0, COLOURS, marked // LETTERS))
        letter = torch.where(asks | (marked < 0), LETTERS, marked % LETTERS)
        x = self.words(ids.clamp(max=WORDS)) + self.colours(colour) + self.letters(letter)
        return self.output(self.encoder(x).x[:, 0])


# ---------------------------------------------------------------- runs

def train_in_stages(
    net: nn.Module, answer: Callable, batches: Callable, stages: tuple[Stage, ...], rate: float
) -> dict:
    """Train on one length after the other, and score after each: {"256 tokens": scores, …}."""
    made = {}
    for stage in stages:
        optimizer, texts = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.01), batches("train", stage)
        net.train()
        for step in range(stage.steps):
            optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / 10) * (1 - step / stage.steps)
            ids, labels = next(texts)
            loss = F.cross_entropy(answer(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        made[f"{stage.length:,} tokens"] = scored(net, answer, batches("test", stage), stage.tested)
    return made


@torch.no_grad()
def scored(net: nn.Module, answer: Callable, texts: Iterator, tested: int) -> dict:
    """Accuracy on the first so many test texts, and which of them were right."""
    net.eval()
    said, labels = [], []
    while len(said) < tested:
        ids, right = next(texts)
        said += answer(ids).argmax(dim=-1).tolist()
        labels += right.tolist()
    return scores_one_by_one(said[:tested], labels[:tested])


def run_distant(form: str, seed: int) -> dict:
    """One of the course's classifiers with a form of attention, trained on."""
    def batches(split, stage):
        return distant_batches(split, stage.length, stage.batch, random.Random(seed if split == "train" else stage.length))

    net = trained_model(seed, progress=False).model
    pieces("train"), pieces("test")
    with_form(net.encoder, form, DISTANT[0].length, seed)
    seed_everything(seed)
    first, last = DISTANT[0], DISTANT[-1]
    before = {f"{stage.length:,} tokens": scored(net, lambda ids: net(ids).logits, batches("test", stage), stage.tested)
              for stage in (first, last)} if form == "full" else {}
    made = train_in_stages(net, lambda ids: net(ids).logits, batches, DISTANT, DISTANT_RATE)
    return {"parameters": parameters_of(net), "before": before, **made}


def run_needle(form: str, seed: int) -> dict:
    """One block with a form of attention, trained from nothing to find the needle."""
    def batches(split, stage):
        first = 1000 * seed if split == "train" else 10**6
        return needle_batches(stage.length, stage.batch, torch.Generator().manual_seed(first + stage.length))

    seed_everything(seed)
    net = Finder(form, NEEDLE[0].length, seed)
    return {"parameters": parameters_of(net), **train_in_stages(net, net, batches, NEEDLE, NEEDLE_RATE)}


COST = """
import json, sys, time
import torch
from course_tools.studies.sets.long_texts import DISTANT, with_form
from course_utils.files.memory import peak_mb
from course_utils.recipes.trained_models import trained_model

torch.set_num_threads(1)
net = trained_model(0, progress=False).model.train()
with_form(net.encoder, sys.argv[1], DISTANT[0].length, 0)
measured = {}
for length in map(int, sys.argv[2:]):
    ids, seconds = torch.randint(2, 2000, (1, length)), []
    for _ in range(5):
        begun = time.process_time()
        net(ids).logits.sum().backward()
        seconds.append(time.process_time() - begun)
    if not measured:
        before = peak_mb()
    measured[f"{length:,} tokens"] = {"ms": round(1000 * min(seconds), 2), "mb": round(peak_mb() - before, 2)}
print(json.dumps(measured))
"""


def run_cost(form: str, seed: int) -> dict:
    """Milliseconds and MB of one text, forward and backward, above what the process held after the shortest text."""
    lengths = [str(stage.length) for stage in NEEDLE]
    done = subprocess.run([sys.executable, "-c", COST, form, *lengths], capture_output=True, text=True, check=True)
    return {"cost": json.loads(done.stdout)}


def run(row: str, seed: int, state) -> dict:
    """One row by its task, with the processor seconds it took."""
    begun, of = time.process_time(), ROWS[row]
    made = {"distant": run_distant, "needle": run_needle, "cost": run_cost}[of["task"]](of["form"], seed)
    return {**made, "processor_seconds": round(time.process_time() - begun, 1)}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    reviews = load_reviews("reviews")
    return fingerprint(SIZE, STEP, RANDOM, MIXED, FEATURES, DISTANT, DISTANT_RATE, NEEDLE, NEEDLE_RATE, COLOURS, LETTERS,
                       WORDS, NEEDLES, WIDTH, list(reviews["train"]["text"]), list(reviews["test"]["text"]), 1)


def line(runs: list[dict]) -> str:
    """What the command prints: accuracy at each length, or what a text costs."""
    if "cost" in runs[0]:
        return "  ".join(f"{n} {found['ms']:.1f} ms {found['mb']:.1f} MB" for n, found in runs[0]["cost"].items())
    lengths = [name for name in runs[0] if name.endswith(" tokens")]
    return "  ".join(f"{n} {100 * sum(run[n]['accuracy'] for run in runs) / len(runs):.1f}" for n in lengths)


SET = ResultSet(
    "long_texts", ROWS, settings, run, texts_from("reviews"), line=line,
    seeds=lambda row, asked: asked if ROWS[row]["task"] != "cost" else [0] if 0 in asked else [],
)
