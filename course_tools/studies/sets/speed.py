"""How fast the course's code is compared with PyTorch's and Hugging Face's, as ratios measured in one run: `make speed`.

Writes data/results/speed.json. The two versions take turns (A B A B …) on one thread. Each turn gives the ratio of the
other's time to ours, so above 1 ours is faster. The file has the median of these ratios and their middle half. Time is
processor time, which other programs disturb least; comparisons of two threads use wall-clock time. The reviews are
synthetic: random words, with the lengths of IMDb's reviews (imdb_facts.json).

    python -m course_tools speed                 all sections, under five minutes; writes the file
    python -m course_tools speed --only block    one section or several, printed and not written
    python -m course_tools speed --output FILE   writes another file
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from datetime import timedelta
from itertools import product
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from course_tools.studies.libraries import (
    D_FF,
    D_MODEL,
    DROPOUT,
    NUM_HEADS,
    LibraryClassifier,
    library_bytes,
    library_layer,
    library_words,
)
from course_tools.studies.timing import (
    free_cores,
    inference_pass,
    interleaved,
    machine,
    resident_mb,
    row,
    show,
    training_pass,
)
from course_utils.attention import padding_mask
from course_utils.byte_pairs import BPETokenizer
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.efficient_attention import tiled_attention, window_attention
from course_utils.files import write_json
from course_utils.files.child_processes import run_in_group
from course_utils.files.memory import peak_mb
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.recipes import RECIPES
from course_utils.results import FOLDER
from course_utils.tokenization import WordTokenizer, pad_batch
from course_utils.training import BatchOptions, EncodedReviews, batches, logits_of
from course_utils.transformer_blocks import EncoderBlock

LENGTHS = (64, 256, 512, 1024)
TOKENS = 2048                                           # in a batch, whatever the length
EVERYWHERE, NOT_ON_WEIGHTS = "dropout 0.1, attention weights included", "dropout 0.1, attention weights excluded"
PLACES = {EVERYWHERE: DROPOUT, NOT_ON_WEIGHTS: 0.0}


def ragged(batch: int, length: int) -> torch.Tensor:
    """A mask of reviews between half of `length` and `length`, the first one full: (batch, length), True = real."""
    lengths = torch.randint(length // 2, length + 1, (batch, 1))
    lengths[0] = length
    return torch.arange(length) < lengths


# the block and the classifier beside the library's

def library_call(library: nn.Module, x, real=None):
    """A call of the library's layer; `real` (batch, length), True = real, is its mask turned round."""
    return lambda: library(x, src_key_padding_mask=None if real is None else ~real)


def our_call(block: EncoderBlock, x, real=None):
    """The same call of ours."""
    mask = None if real is None else padding_mask(real)
    return lambda: block(x, mask).x


def block_and_library(length: int, attention_dropout: float):
    """An input of TOKENS tokens, its mask, our block, and the library's layer."""
    x = torch.randn(TOKENS // length, length, D_MODEL, requires_grad=True)
    block = EncoderBlock(D_MODEL, NUM_HEADS, D_FF, DROPOUT, attention_dropout)
    return x, ragged(len(x), length), block, library_layer(attention_dropout)


def section_block(repetitions: int = 5):
    """`EncoderBlock` against `nn.TransformerEncoderLayer`: training with either placement of dropout, and inference."""
    against = "nn.TransformerEncoderLayer"
    for length, (place, attention_dropout) in product(LENGTHS, PLACES.items()):
        x, real, block, library = block_and_library(length, attention_dropout)
        gradient = torch.randn_like(x)
        measured = interleaved({
            "ours": training_pass(our_call(block, x, real), list(block.parameters()), gradient),
            "other": training_pass(library_call(library, x, real), list(library.parameters()), gradient),
        }, repetitions)
        what = f"block: forward and backward, {length} tokens, {place}"
        yield row("block", what, against, measured, length=length, dropout=place, mode="training")
    for length, padded in product(LENGTHS, (True, False)):
        x, real, block, library = block_and_library(length, 0.0)
        real = real if padded else None
        block.eval()
        library.eval()
        measured = interleaved({
            "ours": inference_pass(our_call(block, x, real)), "other": inference_pass(library_call(library, x, real)),
        }, repetitions)
        what = f"block: inference, {length} tokens, {'a padded batch' if padded else 'no padding'}"
        yield row("block", what, against, measured, length=length, mode="inference", padded=padded)


def classifier_and_library(length: int, attention_dropout: float):
    """Our classifier of two layers, the library's twin, and a pass of each over the same batch."""
    vocab_size, layers = 2000, 2
    real = ragged(TOKENS // length, length)
    token_ids = torch.randint(2, vocab_size, real.shape).masked_fill(~real, 0)
    ours = SelfAttentionClassifier(ClassifierConfig(
        vocab_size=vocab_size, d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=D_FF, num_layers=layers, max_len=length,
        dropout=DROPOUT, attention_dropout=attention_dropout,
    ))
    stack = nn.TransformerEncoder(
        library_layer(attention_dropout), layers, norm=nn.LayerNorm(D_MODEL), enable_nested_tensor=False
    )
    library = LibraryClassifier(vocab_size, length, stack)
    return ours, library, lambda: ours(token_ids, real).logits, lambda: library(token_ids, real)


def section_classifier(repetitions: int = 5):
    """`SelfAttentionClassifier` of two layers against the same with `nn.TransformerEncoder`."""
    against = "nn.TransformerEncoder"
    for length, (place, attention_dropout) in product(LENGTHS, PLACES.items()):
        ours, library, our_pass, library_pass = classifier_and_library(length, attention_dropout)
        gradient = torch.randn(TOKENS // length, 2)
        measured = interleaved({
            "ours": training_pass(our_pass, list(ours.parameters()), gradient),
            "other": training_pass(library_pass, list(library.parameters()), gradient),
        }, repetitions)
        what = f"classifier: forward and backward, {length} tokens, {place}"
        yield row("classifier", what, against, measured, length=length, dropout=place, mode="training")
    for length in LENGTHS:
        ours, library, our_pass, library_pass = classifier_and_library(length, 0.0)
        ours.eval()
        library.eval()
        measured = interleaved({"ours": inference_pass(our_pass), "other": inference_pass(library_pass)}, repetitions)
        what = f"classifier: inference, {length} tokens, a padded batch"
        yield row("classifier", what, against, measured, length=length, mode="inference", padded=True)


# ways to compute attention

WAYS = ("fused", "explicit")


def attention_pass(way: str, length: int):
    """Forward and backward of one multi-head attention: explicit (with its weights), or fused."""
    attention = MultiHeadAttention(D_MODEL, NUM_HEADS)
    x = torch.randn(TOKENS // length, length, D_MODEL, requires_grad=True)
    mask, explicit = padding_mask(ragged(len(x), length)), way == "explicit"
    return training_pass(
        lambda: attention(x, mask=mask, need_weights=explicit).context, list(attention.parameters()), torch.randn_like(x)
    )


def print_peaks() -> None:
    """Print, for each way and length, by how many MB the process grows in one pass; run in a process of its own."""
    attention_pass("explicit", LENGTHS[0])()            # what a first pass allocates once
    peaks = {}
    for way, length in product(WAYS, LENGTHS):
        run = attention_pass(way, length)
        before = resident_mb("VmRSS")
        if Path("/proc/self/clear_refs").exists():
            Path("/proc/self/clear_refs").write_text("5")  # forget the peaks before
        run()
        peaks[f"{way} {length}"] = round(resident_mb("VmHWM") - before, 1)
    print(json.dumps(peaks))


def peaks_mb() -> dict[str, float]:
    """Peak memory of each way and length above what the process had before, in MB, by "way length"."""
    returned = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}  # freed memory goes back at once
    command = [sys.executable, "-m", "course_tools", "speed", "--peaks"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **returned})
    return json.loads(done.stdout)


def section_attention(repetitions: int = 5):
    """Fused against explicit attention: time and peak memory."""
    peaks = peaks_mb()
    for length in LENGTHS:
        measured = interleaved({way: attention_pass(way, length) for way in WAYS}, repetitions)
        yield row(
            "attention", f"attention: fused, {length} tokens", "explicit", measured, *WAYS, length=length,
            ours_mb=peaks[f"fused {length}"], other_mb=peaks[f"explicit {length}"],
        )


# whole training steps

def imdb_like(reviews: int, seed: int) -> EncodedReviews:
    """Random reviews with the lengths of IMDb's (histogram in imdb_facts.json) and word frequencies by Zipf's law."""
    rng = random.Random(seed)
    histogram = json.loads((FOLDER / "imdb_facts.json").read_text(encoding="utf-8"))["IMDb"]["tokens"]["histogram"]
    starts = rng.choices([int(start) for start in histogram], list(histogram.values()), k=reviews)
    lengths = [max(10, start + rng.randrange(50)) for start in starts]
    size = RECIPES["imdb"].max_size
    return EncodedReviews([[2 + int((size - 2) ** rng.random()) for _ in range(n)] for n in lengths],
                          [rng.randrange(2) for _ in lengths])


def some_batches(reviews: EncodedReviews, options: BatchOptions, number: int) -> list:
    """`number` of an epoch's batches, evenly spaced in width: their mean cost is the epoch's. Lists of ids and labels."""
    made = sorted(batches(reviews, options, seed=0), key=lambda batch: batch.token_ids.shape[1])
    chosen = [made[int((i + 0.5) * len(made) / number)] for i in range(number)]
    return [([reviews.ids[i] for i in batch.indices], [reviews.labels[i] for i in batch.indices]) for batch in chosen]


def training_steps(model: nn.Module, chosen: list, options: BatchOptions, fixed: bool, **optimizer_options):
    """Everything that a step does: pad, forward, loss, backward, clip, AdamW. `fixed`: all batches max_len wide."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **optimizer_options)
    multiple_of = options.max_len if fixed else options.multiple_of

    def run():
        for rows, labels in chosen:
            token_ids, mask = pad_batch(rows, options.pad_id, options.max_len, options.truncation, multiple_of)
            loss = F.cross_entropy(logits_of(model(token_ids, mask)), torch.tensor(labels))
            if not math.isfinite(loss.item()):
                raise FloatingPointError("the loss is no longer finite")
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return run


def recipe_model(**changes) -> SelfAttentionClassifier:
    """The classifier of the course's IMDb recipe."""
    recipe = RECIPES["imdb"]
    return SelfAttentionClassifier(ClassifierConfig(vocab_size=recipe.max_size, **{**recipe.model, **changes}))


def tutorial_model() -> LibraryClassifier:
    """As tutorials build it, of the recipe's size: the library's layer with its defaults (post-norm, relu, dropout 0.1)."""
    recipe = RECIPES["imdb"]
    size = recipe.model
    layer = nn.TransformerEncoderLayer(size["d_model"], size["num_heads"], size["d_ff"], DROPOUT, batch_first=True)
    stack = nn.TransformerEncoder(layer, size["num_layers"], enable_nested_tensor=False)
    return LibraryClassifier(recipe.max_size, size["max_len"], stack)


def step_data(seed: int):
    """Options of the IMDb recipe's batches; four batches bucketed by length, and four as they come."""
    options = BatchOptions(**RECIPES["imdb"].batches)
    reviews = imdb_like(50 * options.batch_size, seed)
    return options, some_batches(reviews, options, 4), some_batches(reviews, options._replace(bucketed=False), 4)


def section_step(repetitions: int = 5, seed: int = 0):
    """The training step of the IMDb recipe against a twin on `nn.TransformerEncoder`, lever by lever."""
    options, bucketed, mixed = step_data(seed)
    tutorial = f"nn.TransformerEncoder, {EVERYWHERE}"
    arms = {
        "tutorial": training_steps(tutorial_model(), mixed, options, fixed=True),
        "equal batches": training_steps(tutorial_model(), bucketed, options, fixed=False),
        "recipe, fixed": training_steps(recipe_model(), mixed, options, fixed=True, fused=True),
        "recipe": training_steps(recipe_model(), bucketed, options, fixed=False, fused=True),
        "equal dropout": training_steps(
            recipe_model(attention_dropout=DROPOUT), bucketed, options, fixed=False, fused=True),
    }
    measured = interleaved(arms, repetitions)
    recipe = "IMDb recipe"
    for what, ours, against, other in (
        (f"{recipe}, bucketed batches", "recipe", f"{tutorial}, every batch 256 wide", "tutorial"),
        (f"{recipe}, every batch 256 wide", "recipe, fixed", f"{tutorial}, every batch 256 wide", "tutorial"),
        (f"{recipe}, bucketed batches", "recipe", f"{tutorial}, the same batches", "equal batches"),
        (f"{recipe}, bucketed batches, {EVERYWHERE}", "equal dropout", f"{tutorial}, the same batches", "equal batches"),
    ):
        yield row("step", f"training step: {what}", against, measured, ours, other, steps=len(bucketed))


def section_batches(repetitions: int = 4, seed: int = 0):
    """Batches of similar length, padded to their longest, against batches as they come, and against one width for all."""
    options, bucketed, mixed = step_data(seed)
    measured = interleaved({
        "bucketed": training_steps(recipe_model(), bucketed, options, fixed=False, fused=True),
        "mixed": training_steps(recipe_model(), mixed, options, fixed=False, fused=True),
        "fixed": training_steps(recipe_model(), mixed, options, fixed=True, fused=True),
    }, repetitions)
    what = "training step: bucketed batches"
    yield row("batches", what, "every batch 256 wide", measured, "bucketed", "fixed")
    yield row("batches", what, "batches as they come, padded to their longest", measured, "bucketed", "mixed")


def section_threads(repetitions: int = 4, seed: int = 0):
    """The same training step with two threads against one, by the clock on the wall."""
    if free_cores() < 1.7:
        print("no second core is free: two threads are not measured", file=sys.stderr)
        return
    options, bucketed, _ = step_data(seed)
    step = training_steps(recipe_model(), bucketed, options, fixed=False, fused=True)

    def with_threads(number):
        def run():
            torch.set_num_threads(number)
            step()
        return run
    measured = interleaved({"ours": with_threads(2), "other": with_threads(1)}, repetitions, time.perf_counter)
    torch.set_num_threads(1)
    yield row("threads", "training step: IMDb recipe, two threads", "one thread", measured, clock="wall")


def print_rank_times(repetitions: int, seed: int = 0) -> None:
    """One of two ranks: the same step by both, half the batch each; by rank 0 alone; by rank 0 with two threads.

    They take turns, and whoever doesn't work waits at a barrier. Rank 0 prints the seconds of each.
    """
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    options, bucketed, _ = step_data(seed)
    mine = [(rows[rank::ranks], labels[rank::ranks]) for rows, labels in bucketed]
    arms = {
        name: (training_steps(model, part, options, fixed=False, fused=True), threads) for name, model, part, threads in (
            ("two processes", DistributedDataParallel(recipe_model()), mine, 1), ("one thread", recipe_model(), bucketed, 1),
            ("two threads", recipe_model(), bucketed, 2))
    }

    def turn(name):
        step, threads = arms[name]

        def run():
            dist.barrier()
            torch.set_num_threads(threads)
            if rank == 0 or name == "two processes":
                step()
            torch.set_num_threads(1)
        return run
    measured = interleaved({name: turn(name) for name in arms}, repetitions, time.perf_counter)
    dist.barrier()
    if rank == 0:
        print(json.dumps(measured), flush=True)
    dist.destroy_process_group()


def rank_times(repetitions: int) -> dict[str, list[float]]:
    """Seconds of a training step by two processes, by one of one thread, and by one of two threads."""
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    status, said = run_in_group(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--local-addr", "127.0.0.1",
         "-m", "course_tools", "speed", "--ranks", str(repetitions)], 300, OMP_NUM_THREADS="1",
        **({"GLOO_SOCKET_IFNAME": loopback} if loopback else {}))
    if status != 0:
        raise RuntimeError(f"two processes ended with status {status}: {said[-500:]}")
    return json.loads(next(line for line in said.splitlines() if line.startswith("{")))


def section_processes(repetitions: int = 6):
    """A training step of two processes, each with half the batch and one thread, by the clock on the wall."""
    if free_cores() < 1.7:
        print("no second core is free: two processes are not measured", file=sys.stderr)
        return
    measured = rank_times(repetitions)
    what = "training step: IMDb recipe, two processes of one thread"
    for other in ("one thread", "two threads"):
        yield row("processes", what, f"one process of {other}", measured, "two processes", other, clock="wall")


def section_precision(repetitions: int = 2):
    """A forward and backward pass in float32 against bfloat16."""
    model, real = recipe_model(), ragged(4, 128)
    token_ids = torch.randint(2, 15000, real.shape).masked_fill(~real, 0)

    def passes(precision):
        def run():
            model.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                logits = model(token_ids, real).logits
            logits.float().sum().backward()
        return run
    measured = interleaved({"ours": passes("fp32"), "other": passes("bf16")}, repetitions)
    yield row("precision", "IMDb recipe: forward and backward in float32", "in bfloat16", measured)


# tokenizers

def section_tokenizers(repetitions: int = 5):
    """Encoding with the course's tokenizers against the `tokenizers` library's of the same vocabulary, one thread."""
    texts = load_reviews("reviews")["train"]["text"][:2000]
    words, byte_pairs = WordTokenizer.train(texts), BPETokenizer.train(texts, 2000)
    for name, ours, library, fresh in (
        ("words", words, library_words(words), lambda: words),
        ("byte pairs, all chunks new", byte_pairs, library_bytes(byte_pairs), lambda: BPETokenizer(byte_pairs.merges)),
        ("byte pairs, chunks seen before", byte_pairs, library_bytes(byte_pairs), lambda: byte_pairs),
    ):
        equal = sum(ours.encode(text) == library.encode(text).ids for text in texts)
        if equal != len(texts):
            raise RuntimeError(f"{name}: {len(texts) - equal} of {len(texts)} texts get other ids from the library")

        def encode_ours(fresh=fresh):
            tokenizer = fresh()
            return [tokenizer.encode(text) for text in texts]

        def encode_library(library=library, cold="new" in name):
            if cold:
                library = library_bytes(byte_pairs)     # both begin with an empty cache
            return [encoding.ids for encoding in library.encode_batch_fast(texts)]
        measured = interleaved({"ours": encode_ours, "other": encode_library}, repetitions)
        what = f"tokenizer, {name}: {len(texts):,} reviews, {ours.vocab_size:,} ids"
        yield row("tokenizers", what, "the tokenizers library, same vocabulary, same ids", measured)


# attention without its table

LONG = (128, 512, 2048, 8192)
WINDOW = 64                                             # words on each side


def explicit_attention(query, key, value):
    """Notebook 04's formula, on (..., token, number)."""
    return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(dim=-1) @ value


LONG_WAYS = {
    "explicit": explicit_attention, "fused": F.scaled_dot_product_attention, "tiles": tiled_attention,
    "window": lambda query, key, value: window_attention(query, key, value, WINDOW, WINDOW),
    "feed-forward": lambda query, key, value: F.gelu(query @ torch.ones(64, 256)) @ torch.ones(256, 64),
}


def long_pass(way: str, length: int):
    """Forward and backward of one head of 64, as notebook 18 measures it."""
    inputs = [torch.randn(1, 1, length, 64, requires_grad=True) for _ in range(3)]
    return training_pass(lambda: LONG_WAYS[way](*inputs), inputs, torch.ones(1, 1, length, 64))


def print_long_peaks(way: str) -> None:
    """Print by how many MB (a million bytes) the process grows in one pass of each length; in a process of its own."""
    runs = {length: long_pass(way, length) for length in (64, *LONG)}
    runs.pop(64)()                                      # what a first pass allocates once
    before, peaks = peak_mb(), {}
    for length, run in runs.items():                    # growing lengths: each peak belongs to the last
        run()
        peaks[length] = round(peak_mb() - before, 1)
    print(json.dumps(peaks))


def long_peaks(way: str) -> dict[int, float]:
    """Peak memory of a way above what the process had before, in MB, by length."""
    command = [sys.executable, "-m", "course_tools", "speed", "--long-peaks", way]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {int(length): peak for length, peak in json.loads(done.stdout).items()}


def section_long(repetitions: int = 5):
    """Attention in tiles, fused, in a window, and a feed-forward layer, against the explicit table: forward and backward."""
    peaks = {way: long_peaks(way) for way in LONG_WAYS}
    for length in LONG:
        measured = interleaved({way: long_pass(way, length) for way in LONG_WAYS}, repetitions)
        for way, other in (*((way, "explicit") for way in LONG_WAYS if way != "explicit"), ("window", "fused")):
            yield row("long", f"one head, forward and backward: {way}, {length} tokens", other, measured, way, other,
                      way=way, length=length, ours_mb=peaks[way][length], other_mb=peaks[other][length])


SECTIONS = {
    "block": section_block, "classifier": section_classifier, "attention": section_attention, "long": section_long,
    "step": section_step,
    "batches": section_batches, "threads": section_threads, "tokenizers": section_tokenizers, "precision": section_precision,
    "processes": section_processes,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="file to write (default: data/results/speed.json, if all is measured)")
    parser.add_argument("--peaks", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--long-peaks", choices=list(LONG_WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, metavar="REPETITIONS", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    os.environ |= {"TOKENIZERS_PARALLELISM": "false"}
    torch.set_num_threads(1)
    torch.manual_seed(chosen.seed)
    if chosen.peaks:
        print_peaks()
        return 0
    if chosen.long_peaks:
        print_long_peaks(chosen.long_peaks)
        return 0
    if chosen.ranks:
        print_rank_times(chosen.ranks, chosen.seed)
        return 0
    begun, rows, facts = time.perf_counter(), [], machine()
    for name in chosen.only or SECTIONS:
        for result in SECTIONS[name]():
            rows.append(result)
            print(show(result), flush=True)
    content = {"machine": facts, "seed": chosen.seed, "seconds": round(time.perf_counter() - begun), "rows": rows}
    output = chosen.output or (None if chosen.only else FOLDER / "speed.json")
    if output:
        write_json(output, content)
    print(f"{len(rows)} comparisons in {content['seconds']} s{f', written to {os.path.relpath(output)}' if output else ''}")
    return 0
