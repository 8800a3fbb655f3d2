"""How fast the reader of notebook 15 reads, on one thread: a result set.

Writes data/results/reader_speed.json. 'a sentence': milliseconds by the clock from an ordinary sentence to its label and
probability, one sentence at a time, tokenizing included; all 600 ordinary sentences. 'a long text': the same for texts made
of those sentences, as long as it reads. 'in batches': milliseconds per sentence when 32 are read at once. 'the
model alone': processor time of the reader on one row of 16 tokens against an encoder of MiniLM's size, its teacher's; that
one has random weights, which take as long. Run it on a machine that does nothing else.

    python -m course_tools results reader_speed --seeds 0 --jobs 1
"""

import statistics
import time
from collections.abc import Callable, Sequence

import torch

from course_tools.studies.needs import committed, texts_from
from course_tools.studies.runner import ResultSet, once
from course_tools.studies.timing import inference_pass, interleaved, machine
from course_tools.studies.timing import row as compared
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.pretraining import BertClassifier, BertConfig, BertEncoder
from course_utils.results import fingerprint

READER = "reader"
TOKENS, TURNS, BATCH, LONG = 16, 41, 32, 20             # tokens and turns of 'the model alone'; LONG: how many long texts
MINILM = dict(vocab_size=30522, pad_id=0, d_model=384, num_heads=12, d_ff=1536, num_layers=6, max_len=512)


def settings() -> str:
    """What the figures depend on, the machine aside."""
    return fingerprint(READER, TOKENS, TURNS, BATCH, LONG, MINILM)


def sentences() -> list[str]:
    """The ordinary sentences, first and second."""
    return [text for source in ("ordinary", "ordinary_second") for text in load_reviews(source)["test"]["text"]]


def long_texts(reader: ReviewClassifier) -> list[str]:
    """So many texts, each of ordinary sentences in a row until the reader couldn't read more."""
    texts, rest = [], iter(sentences() * LONG)
    while len(texts) < LONG:
        text = next(rest)
        while len(reader.tokenizer.encode(text)) < reader.model.config.max_len:
            text += " " + next(rest)
        texts.append(text)
    return texts


def timed(read: Callable[[str], object], texts: Sequence[str]) -> dict:
    """Milliseconds by the clock for one text after another: median, 95th percentile, how many; the first doesn't count."""
    read(texts[0])
    times = []
    for text in texts:
        begun = time.perf_counter()
        read(text)
        times.append(1000 * (time.perf_counter() - begun))
    return {"median": round(statistics.median(times), 2), "p95": round(statistics.quantiles(times, n=20)[-1], 2),
            "calls": len(times)}


def a_sentence() -> dict:
    """One at a time."""
    reader = ReviewClassifier.load(READER)
    return timed(lambda text: reader.predict([text]), sentences())


def a_long_text() -> dict:
    """One at a time."""
    reader = ReviewClassifier.load(READER)
    return timed(lambda text: reader.predict([text]), long_texts(reader)) | {"tokens": reader.model.config.max_len}


def in_batches() -> dict:
    """All sentences, so many at once."""
    reader, texts = ReviewClassifier.load(READER), sentences()
    full = [texts[i : i + BATCH] for i in range(0, len(texts) - BATCH + 1, BATCH)]
    found = timed(reader.predict, full)
    return {key: round(value / BATCH, 2) for key, value in found.items() if key != "calls"} | {"calls": len(full),
                                                                                               "batch": BATCH}


def the_model_alone() -> dict:
    """The reader against an encoder of its teacher's size, on equally many tokens."""
    model = ReviewClassifier.load(READER).model.eval()
    teacher = BertClassifier(BertEncoder(BertConfig(**MINILM))).eval()
    ids = torch.arange(10, 10 + TOKENS)[None]                              # (1, tokens); which makes no difference
    mask = torch.ones_like(ids, dtype=torch.bool)
    measured = interleaved({"ours": inference_pass(lambda: model(ids, mask)),
                            "other": inference_pass(lambda: teacher(ids, mask))}, TURNS)
    return compared("reading", f"the reader, {TOKENS} tokens", "an encoder of MiniLM's size", measured)


ROWS = {"a sentence": a_sentence, "a long text": a_long_text, "in batches": in_batches, "the model alone": the_model_alone}


def run(model: str, seed: int, state) -> dict:
    """Measure one row."""
    return {"parameters": 0, "machine": machine(), "measured": ROWS[model]()}


def line(runs: list[dict]) -> str:
    """What was measured."""
    return str(runs[0]["measured"])


SET = ResultSet(
    "reader_speed", dict.fromkeys(ROWS, {}), settings, run,
    (*committed(READER), *texts_from("ordinary", "ordinary_second")), once, line=line,
)
