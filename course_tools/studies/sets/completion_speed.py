"""How fast the code language model writes and completes, on one thread: a result set.

Writes data/results/completion_speed.json. 'writing': from 1 token to 512, one text at a time, with the key/value cache and
without it, in turn; the ratio of their processor times, its median and its middle half. 'one more token': processor
milliseconds for the next token after texts of growing length, with the cache and without it. 'Tab': milliseconds by the
clock of what the Tab key asks for (five names and a line) at 256 tokens of context, warm after one or two more characters,
and cold, the first time. 'a training step': processor milliseconds of one step of networks of the set `language_model`, in
turn, and how many of them take as long as one of attention's, in bfloat16, or in float32 on a processor that has no LSTM in
it. Run it on a machine that does nothing else. The text is this repository's.

    python -m course_tools results completion_speed --seeds 0 --jobs 1
"""

import random
import statistics
import time

import torch

from course_tools.studies.needs import committed
from course_tools.studies.runner import ResultSet, once
from course_tools.studies.sets import language_model
from course_tools.studies.timing import interleaved, machine
from course_tools.studies.timing import row as compared
from course_utils.completion import CodeCompleter
from course_utils.files.paths import ROOT
from course_utils.results import fingerprint
from course_utils.training.devices import computes_lstm_in_bf16

CONTEXT, PLACES, TURNS = 256, 40, 11
LENGTHS, REPEATED = (64, 128, 256, 511), 15


def settings() -> str:
    """What the figures depend on, the machine aside."""
    return fingerprint(CONTEXT, PLACES, TURNS)


def writing() -> dict:
    """The whole generation with the cache against the same without it."""
    model = CodeCompleter.load().model
    start, length = torch.zeros(1, 1, dtype=torch.long), model.config.max_len

    def write(cached: bool):
        return lambda: model.generate(start, length - 1, temperature=0, use_cache=cached)

    measured = interleaved({"ours": write(True), "other": write(False)}, TURNS)
    return compared("writing", f"{length - 1} tokens after the first, with the cache", "without it", measured)


def one_more_token() -> dict:
    """Milliseconds for one more token after so many: with a cache that holds these, and without it, reading all again."""
    model = CodeCompleter.load().model
    ids = torch.arange(1, LENGTHS[-1] + 2)[None]                           # (1, length); which ids makes no difference
    found: dict = {"with the cache": {}, "without it": {}}
    for length in LENGTHS:
        caches = model.new_caches()
        with torch.no_grad():
            model(ids[:, :length], caches=caches)
        held = [(cache.key, cache.value) for cache in caches]

        def cached(length=length, caches=caches, held=held):
            for cache, (key, value) in zip(caches, held):
                cache.key, cache.value = key, value
            with torch.no_grad():
                model(ids[:, length : length + 1], caches=caches)

        def whole(length=length):
            with torch.no_grad():
                model(ids[:, : length + 1])

        measured = interleaved({"with the cache": cached, "without it": whole}, REPEATED)
        for arm, times in measured.items():
            found[arm][str(length)] = round(1000 * statistics.median(times), 2)
    return found


def tab() -> dict:
    """Milliseconds of `suggest`, warm and cold."""
    loaded = CodeCompleter.load()
    source = (ROOT / "course_utils" / "training" / "saved_models.py").read_text(encoding="utf-8")
    times: dict[str, list[float]] = {"cold": [], "warm": []}
    for at in sorted(random.Random(0).sample(range(2000, len(source) - 2), PLACES)):
        before = loaded.tokenizer.decode(loaded.tokenizer.encode(source[at - 2000 : at])[-CONTEXT:])
        completer = CodeCompleter(loaded.model, loaded.tokenizer)
        for more, kind in (("", "cold"), (source[at], "warm"), (source[at : at + 2], "warm")):
            begun = time.perf_counter()
            completer.suggest(before + more)
            times[kind].append(1000 * (time.perf_counter() - begun))
    return {kind: {"median": round(statistics.median(found), 1), "p95": round(statistics.quantiles(found, n=20)[-1], 1),
                   "calls": len(found)} for kind, found in times.items()}


def precision_of_a_step() -> str:
    """"bf16", or "fp32" where one of the networks can't be trained in it."""
    return "bf16" if computes_lstm_in_bf16() else "fp32"


def training_step() -> dict:
    """Milliseconds of a step as `language_model` makes it, and how many times as long attention's takes."""
    shape = (language_model.BATCH_SIZE, language_model.LENGTH + 1)
    ids = torch.randint(1, language_model.VOCAB_SIZE, shape, generator=torch.Generator().manual_seed(0))

    def step_of(row: str):
        torch.manual_seed(0)
        net = language_model.network(row)
        optimizer = torch.optim.AdamW(net.parameters(), fused=True)

        def step():
            with torch.autocast("cpu", torch.bfloat16, enabled=precision_of_a_step() == "bf16"):
                loss, _ = language_model.next_token_loss(net, ids)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return step

    measured = interleaved({row: step_of(row) for row in STEPS}, TURNS)
    found = {row: {"ms": round(1000 * statistics.median(times))} for row, times in measured.items()}
    for row, times in measured.items():
        found[row]["ratio"] = round(statistics.median(ours / its for ours, its in zip(measured["attention"], times)), 3)
    return found


STEPS = ("attention", "LSTM", "nanoGPT's recipe, as many minutes")
ROWS = {"writing": writing, "Tab": tab, "one more token": one_more_token, "a training step": training_step}


def run(model: str, seed: int, state) -> dict:
    """Measure one row."""
    found = {"parameters": 0, "machine": machine(), "measured": ROWS[model]()}
    return {**found, "precision": precision_of_a_step()} if model == "a training step" else found


def line(runs: list[dict]) -> str:
    """What was measured."""
    return str(runs[0]["measured"])


SET = ResultSet("completion_speed", dict.fromkeys(ROWS, {}), settings, run, committed("code"), once, line=line)
