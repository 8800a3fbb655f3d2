"""The course's reader: students that begin as half of a teacher, and what the sentences written for training add.

Writes data/results/reader.json, which notebook 15 shows. The teachers are all-MiniLM-L6-v2, fine-tuned on real reviews
(IMDb), the course's reviews, its sentences, and those of data/written; three seeds, and what students learn from is the
mean of their logits. A second trio reads the first three alone, for equally many steps. A student is notebook 08's
classifier with three layers of the teacher's width. It begins with MiniLM's second, fourth and sixth layer, the vectors of
the 16,000 word pieces that its texts need most, and equal weights in pooling (`begin`). Students that are taught read all
sources, those of labels alone the ones with labels, and rows without the written sentences more of the rest; all make
equally many steps. Rows "from random numbers" have nothing of MiniLM but its word pieces, and train at the same rate; the
teachers of one of them are the same trio, trained again. What is kept and scored is rounded to 8 bits a weight. The part of
the training whose weights are kept is chosen on validation texts; the hand-written reviews and the ordinary sentences are
for testing alone. What comes with the course learned on from a row "reader": see `reader_more`.

    COURSE_MODELS=folder python -m course_tools results reader --jobs 1 [--only teacher] [--seeds 0 1 2]

A student needs the answers of three teachers, which leave them in outputs/reader; make these first. All rows were made on a
graphics card; on a processor core each would take about five hours, by a trial of 25 steps. MiniLM and IMDb come from where
`pretrained` takes them.
"""

import copy
import functools
import math
import re
from collections import Counter
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from course_tools.studies import student_texts
from course_tools.studies.pretrained_reviews import FixedSteps, tokens_in
from course_tools.studies.reader_notes import reader_note
from course_tools.studies.runner import ResultSet
from course_tools.studies.sets import pretrained
from course_tools.studies.sets.student import (
    LICENCE,
    TEACHER_FIT,
    TEACHER_OPTIONS,
    TEACHER_PARTS,
    VALIDATED,
    cautious,
    facts,
    joined,
    logits_for,
    quick_pieces,
    score,
)
from course_tools.studies.student_texts import UNLABELLED, rows_in
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import LABEL_NAMES, load_reviews
from course_utils.distillation import NO_LABEL, DistillationLoss
from course_utils.files import replacing, write_text
from course_utils.files.paths import output_folder
from course_utils.pretraining import BertClassifier, BertEncoder
from course_utils.results import fingerprint, split_fingerprints
from course_utils.tokenization import truncate
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    classification_loss,
    fastest_device,
    fit,
    seed_everything,
)
from course_utils.training.saved_models import in_eight_bits, write_model
from course_utils.training.saved_numbers import write_numbers
from course_utils.training.saved_word_pieces import SavedWordPieces

LABELLED = ("imdb", "reviews", "sentences", "written")  # the other two have the teachers' answers alone
UNLABELLED_SOURCES = ("unsupervised", "cuts")
SOURCES = (*LABELLED, *UNLABELLED_SOURCES)
TESTED = ("imdb", "reviews", "sentences", "written", "handwritten", "ordinary", "ordinary_second")
CUTS = 4                                                # sentences cut out of a review, at most
TEACHER_READS = {"imdb": 45_000, "reviews": 32_000, "sentences": 54_000, "written": 20_000}   # texts of each source
PIECES, LAYERS = 16_000, (1, 3, 5)
OPTIONS = BatchOptions(batch_size=64, max_len=192, multiple_of=16)
READS = {"imdb": 67_500, "reviews": 30_000, "sentences": 54_000, "written": 30_000, "unsupervised": 30_000, "cuts": 198_000}
STEPS, PARTS, FIT = 9_000, 9, {"learning_rate": 2e-4, "weight_decay": 0.01, "warmup": 0.05, "clip": 1.0}
TEMPERATURE, ALPHA, TEACHERS, RISK = 2.0, 0.8, (0, 1, 2), 0.1
WITHOUT = " without written sentences"


class Row(NamedTuple):
    """A student: whether the teachers' logits come with its texts, which sources it reads, and from what it begins."""

    taught: bool = True
    sources: tuple[str, ...] = SOURCES
    start: str = "half of MiniLM"                       # or "random numbers"


TEACHER = {name: tuple(sources) for name, sources in
           (("teacher", LABELLED), (f"teacher{WITHOUT}", LABELLED[:-1]))}
ROWS = {
    "reader": Row(),
    f"reader{WITHOUT}": Row(sources=tuple(source for source in SOURCES if source != "written")),
    "labels alone": Row(taught=False, sources=LABELLED),
    f"labels alone{WITHOUT}": Row(taught=False, sources=LABELLED[:-1]),
    "reader, from random numbers": Row(start="random numbers"),
    "labels alone, from random numbers": Row(taught=False, sources=LABELLED, start="random numbers"),
}


@functools.cache
def settings() -> str:
    """What every run depends on: MiniLM, all texts and labels, the trainings."""
    corpora = [split_fingerprints(load_reviews(source)) for source in TESTED[1:]]
    return fingerprint(pretrained.settings(), corpora, CUTS, UNLABELLED, VALIDATED, list(TEACHER_OPTIONS), TEACHER_READS,
                       TEACHER_PARTS, TEACHER_FIT, PIECES, list(OPTIONS), READS, STEPS, PARTS, FIT, TEMPERATURE, ALPHA,
                       TEACHERS)


def describe(model: str) -> dict:
    """What the row changes."""
    if model in TEACHER:
        return {"sources": list(TEACHER[model])}
    row = ROWS[model]
    return {"taught": row.taught, "sources": list(row.sources),
            "layers": list(LAYERS) if row.start == Row().start else row.start}


def run(model: str, seed: int, state) -> dict:
    """Train a teacher, or a student, and score it."""
    return teach(model, seed, state) if model in TEACHER else learn(model, seed, state)


def kept(name: str):
    """A file in outputs/reader."""
    path = output_folder() / "reader" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# ---- texts -----------------------------------------------------------------------------------------------------------


@functools.cache
def texts_of(source: str, split: str = "train") -> list[str]:
    """A source's texts. "cuts" are up to `CUTS` sentences of each training and unlabelled review, for training alone.

    Every fifth of these is written as in SST-2.
    """
    if source != "cuts":
        return student_texts.texts_of(source, split)
    return [as_in_treebanks(text) if i % 5 == 0 else text for i, text in enumerate(student_texts.cuts_of_reviews(CUTS))]


def as_in_treebanks(text: str) -> str:
    """In small letters, with spaces around punctuation and before endings: "Don't!" -> "do n't !"."""
    text = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    text = re.sub(r"(?<=\w)(n't|'(?:s|re|ve|ll|d|m))\b", r" \1", text)
    return " ".join(re.findall(r"n't|'(?:s|re|ve|ll|d|m)\b|\w+(?:'\w+)*|[^\w\s]", text))


@functools.cache
def labels_of(source: str, split: str = "train") -> list[int]:
    """A source's labels; `NO_LABEL` for each text where it has none."""
    return [NO_LABEL] * len(texts_of(source)) if source in UNLABELLED_SOURCES else student_texts.labels_of(source, split)


@functools.cache
def reader_pieces() -> SavedWordPieces:
    """MiniLM's vocabulary without what the reader's texts need least: single characters, and its most frequent pieces."""
    whole, counts = pretrained.base()[1], Counter()
    for source in SOURCES[:-1]:                         # the cuts only repeat the reviews
        for ids in ids_of(source, "train", "teacher"):
            counts.update(ids)
    always = [token for token in whole.vocabulary if len(token.removeprefix("##")) == 1 and token.isascii()]
    frequent = [whole.vocabulary[i] for i, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
    left_out = {"[CLS]", "[SEP]", "[MASK]"}
    pieces = dict.fromkeys(["[PAD]", "[UNK]", *always, *(piece for piece in frequent if piece not in left_out)])
    return SavedWordPieces(list(pieces)[:PIECES])


@functools.cache
def ids_of(source: str, split: str, reader: str) -> list[list[int]]:
    """The ids that a "teacher" or a "student" reads of each text, cut head and tail, by the library's tokenizer."""
    texts = texts_of(source, split)
    if reader == "student":
        return [truncate(ids, OPTIONS.max_len, "head_tail") for ids in reader_pieces().encode_all(texts)]
    return [truncate(found.ids, TEACHER_OPTIONS.max_len, "head_tail") for found in quick_pieces().encode_batch(texts)]


def chosen(source: str, split: str, reader: str, rows) -> EncodedReviews:
    """Some texts of a source with their labels."""
    ids, labels = ids_of(source, split, reader), labels_of(source, split)
    return EncodedReviews([ids[i] for i in rows], [labels[i] for i in rows])


def to_validate(reader: str) -> EncodedReviews:
    """The first `VALIDATED` validation texts of each labelled source."""
    return joined([chosen(source, "validation", reader, range(len(labels_of(source, "validation")))[:VALIDATED])
                   for source in LABELLED])


def to_read(reads: dict[str, int], sources: tuple[str, ...]) -> dict[str, list[int]]:
    """Rows of each source: as `reads` says, or so many more that without a source the sum is the same."""
    more = sum(reads.values()) / sum(reads[source] for source in sources)
    return {source: rows_in(len(texts_of(source)), round(reads[source] * more)) for source in sources}


# ---- teachers --------------------------------------------------------------------------------------------------------


def teach(model: str, seed: int, state) -> dict:
    """Fine-tune MiniLM, and keep what it says of every text that a student reads."""
    seed_everything(seed)
    net = BertClassifier(copy.deepcopy(pretrained.base()[0])).to(fastest_device())
    sources = TEACHER[model]
    texts = joined([chosen(source, "train", "teacher", rows) for source, rows in to_read(TEACHER_READS, sources).items()])
    steps = math.ceil(len(texts.ids) / TEACHER_OPTIONS.batch_size / TEACHER_PARTS)
    result = fit(net, FixedSteps(texts, TEACHER_OPTIONS, steps), to_validate("teacher"),
                 loss_of=classification_loss, options=TEACHER_OPTIONS, checkpoint=state, seed=seed, progress=False,
                 precision=pretrained.precision(), epochs=TEACHER_PARTS, **TEACHER_FIT)
    asked = {source: ids_of(source, "train", "teacher") for source in SOURCES}
    asked |= {f"test: {source}": ids_of(source, "test", "teacher") for source in TESTED}
    with replacing(kept(answers_file(model, seed))) as partial:
        save_file({name: logits_for(net, ids).diff(dim=-1).squeeze(-1).half() for name, ids in asked.items()}, partial)
    return {**facts(net, result, steps * TEACHER_PARTS, tokens_in(texts)), **scored(net, TEACHER_OPTIONS, "teacher")}


def answers_file(model: str, seed: int) -> str:
    """Where a teacher's answers are."""
    return f"{model.replace(' ', '-')}-{seed}.safetensors"


@functools.cache
def teacher_answers(model: str, source: str) -> torch.Tensor:
    """The mean of what the teachers said of a source's training texts: logits (texts, 2)."""
    said = []
    for seed in TEACHERS:
        path = kept(answers_file(model, seed))
        if not path.exists():
            raise FileNotFoundError(f"{path} isn't there; make it first: python -m course_tools results reader --only "
                                    "teacher")
        with safe_open(path, "pt") as file:
            said.append(file.get_tensor(source).float())
    odds = torch.stack(said).mean(dim=0)
    return torch.stack([-odds / 2, odds / 2], dim=-1)


# ---- students --------------------------------------------------------------------------------------------------------


def learn(model: str, seed: int, state) -> dict:
    """Train one student, round it, keep it, and score it."""
    row = ROWS[model]
    seed_everything(seed)
    net = untrained(row).to(fastest_device())
    rows = to_read(READS, row.sources)
    texts, loss_of = joined([chosen(source, "train", "student", some) for source, some in rows.items()]), classification_loss
    if row.taught:
        teacher = "teacher" if "written" in row.sources else f"teacher{WITHOUT}"
        loss_of = DistillationLoss(torch.cat([teacher_answers(teacher, source)[some] for source, some in rows.items()]),
                                   TEMPERATURE, ALPHA)
    result = fit(net, FixedSteps(texts, OPTIONS, STEPS // PARTS), to_validate("student"), loss_of=loss_of, options=OPTIONS,
                 checkpoint=state, seed=seed, progress=False, precision=pretrained.precision(), epochs=PARTS, **FIT)
    whole = scored(net, OPTIONS, "student", ("imdb", "ordinary"))
    net.load_state_dict(in_eight_bits(net.state_dict()))
    made = {**facts(net, result, STEPS, round(tokens_in(texts) * STEPS * OPTIONS.batch_size / len(texts.ids))),
            "texts": len(texts.ids), "before_rounding": {name: whole[name]["accuracy"] for name in whole},
            **scored(net, OPTIONS, "student")}
    keep(f"{model.replace(' ', '-')}-{seed}", net, model, seed, made)
    return made


def keep(name: str, net, model: str, seed: int, made: dict) -> None:
    """Write a student to outputs/reader, 8 bits a weight, with its temperature, a note and its teacher's licence."""
    folder = kept(name)
    folder.mkdir(exist_ok=True)                         # note and licence go with the model
    write_model(folder, net, reader_pieces(), {"label_names": LABEL_NAMES}, SelfAttentionClassifier, eight_bits=True)
    found = cautious(ReviewClassifier.load(folder), RISK)
    write_numbers(folder, "caution", {"temperature": found.temperature, "threshold": found.threshold})
    write_text(folder / LICENCE.name, LICENCE.read_text(encoding="utf-8"))
    write_text(folder / "README.md", reader_note(model, seed, made, reader_pieces().vocab_size))


def untrained(row: Row) -> SelfAttentionClassifier:
    """A row's student before its training."""
    return (begin if row.start == Row().start else from_random_numbers)(LAYERS)


def begin(layers: tuple[int, ...]) -> SelfAttentionClassifier:
    """Notebook 08's classifier with some of MiniLM's layers.

    BERT normalises the sum of a token's vector, its position's and a type's; 08's classifier only adds them. So each is
    normalised beforehand, by itself: what that changes, training has to mend. The pooling's query is zero at first, which
    weighs all tokens equally, as the teacher does.
    """
    encoder, pieces, net = pretrained.base()[0], reader_pieces(), from_random_numbers(layers)
    with torch.no_grad():
        net.pooling.query.zero_()
        words, places = first_vectors(encoder, pieces)
        net.embedding.weight.copy_(words)
        net.positions.table.copy_(places)
    for block, layer in zip(net.encoder.blocks, layers, strict=True):
        block.load_state_dict(encoder.encoder.blocks[layer].state_dict())
    return net


def from_random_numbers(layers: tuple[int, ...]) -> SelfAttentionClassifier:
    """The same classifier with as many layers, and nothing of MiniLM but its word pieces."""
    config, pieces = pretrained.base()[0].config, reader_pieces()
    return SelfAttentionClassifier(ClassifierConfig(
        pieces.vocab_size, d_model=config.d_model, num_heads=config.num_heads, d_ff=config.d_ff,
        num_layers=len(layers), max_len=OPTIONS.max_len, positions="learned", norm_first=False, dropout=0.1,
        embedding_std=0.02, pad_id=pieces.pad_id, unk_id=pieces.unk_id))


def first_vectors(encoder: BertEncoder, pieces: SavedWordPieces) -> tuple[torch.Tensor, torch.Tensor]:
    """(pieces, width) and (max_len, width): vectors whose sum is nearly BERT's normalised sum."""
    ids, norm = pretrained.base()[1].ids, encoder.embedding_norm
    table = encoder.embedding.weight[[ids[piece] for piece in pieces.vocabulary]] + encoder.token_types.weight[0]
    places = encoder.positions.table[:OPTIONS.max_len]
    table, places = table + places.mean(dim=0), places - places.mean(dim=0)
    centred = table - table.mean(dim=-1, keepdim=True)
    spread = centred.std(dim=-1, correction=0, keepdim=True)                                   # (pieces, 1)
    words = centred / spread * norm.weight + norm.bias
    words[pieces.pad_id] = 0
    return words, (places - places.mean(dim=-1, keepdim=True)) / spread.mean() * norm.weight


# ---- scores ----------------------------------------------------------------------------------------------------------


def scored(net, options: BatchOptions, reader: str, sources: tuple[str, ...] = TESTED) -> dict:
    """What `student.score` says of these sources' test texts."""
    return {source: score(net, options, source, chosen(source, "test", reader, range(len(labels_of(source, "test")))))
            for source in sources}


def line(runs: list[dict]) -> str:
    """Accuracy on every source of test texts."""
    return "  ".join(f"{name} {100 * sum(run[name]['accuracy'] for run in runs) / len(runs):.1f}" for name in TESTED)


SET = ResultSet("reader", [*TEACHER, *ROWS], settings, run, change=describe, line=line)
