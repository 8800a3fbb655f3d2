"""The course's reader: a teacher fine-tuned on three corpora, and small students of it. A result set.

Writes data/results/student.json, which notebook 15 shows. `teacher` is all-MiniLM-L6-v2, fine-tuned on real reviews
(IMDb), the course's reviews and its sentences; it then says what it makes of every text that a student reads: these,
30,000 unlabelled reviews, and sentences cut out of real reviews. The other rows are notebook 08's classifier, larger,
with 15,000 words, trained for equally many steps: on the teacher's logits and the labels there are, on the same without
the cut sentences, or on labels alone. `READS` says how many texts of each source one round reads; rounds follow one
another, and rows with fewer sources make more of them (2.0, 3.2 and 3.9). Positions are sinusoidal, as 08's aren't: one
row has 08's rotary ones, is better on validation texts, and its seed 0 comes with the course. Word vectors start as
MiniLM's before its fine-tuning, reduced to the student's width, or from random numbers. Every row is then scored on texts
of all kinds; the hand-written reviews and the ordinary sentences are for testing alone. The part of the training whose
weights are kept is chosen on validation texts of the three corpora; no setting but the positions was tried twice.

    COURSE_MODELS=folder python -m course_tools results student --jobs 1 [--only teacher] [--seeds 0 1 2]

The students need the answers of the teacher's first seed: outputs/student has those that this machine made, data/results
those that the committed students learned from. On one processor core a student takes well over an hour, and the teacher
most of a day: the committed rows were made on a graphics card, up to nine runs at a time, in four minutes each, but for the
rotary ones, which took two hours each on a core of a busy machine. A run goes on from its last part when it's started
again. COURSE_DEVICE says where to train; COURSE_PRECISION=bf16 trains in bf16. MiniLM and IMDb come from where `pretrained`
takes them.
"""

import copy
import functools
import math
from typing import NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import BertWordPieceTokenizer

from course_tools.studies import student_texts
from course_tools.studies.needs import IMDB, Need, texts_from, there
from course_tools.studies.pretrained_reviews import FixedSteps, tokens_in
from course_tools.studies.runner import ResultSet, Trained, accuracies, parameters_of
from course_tools.studies.sets import pretrained
from course_tools.studies.student_texts import (
    CUTS,
    LABELLED,
    MAX_LEN,
    SOURCES,
    UNLABELLED,
    VOCAB_SIZE,
    in_words,
    kept,
    labels_of,
    rows_to_read,
    student_words,
    texts_of,
)
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.distillation import (
    NO_LABEL,
    CautiousClassifier,
    DistillationLoss,
    fit_temperature,
    soften,
    threshold_for,
)
from course_utils.files import replacing, write_text
from course_utils.files.paths import CHECKPOINTS
from course_utils.pretraining import BertClassifier
from course_utils.results import FOLDER, fingerprint, scores_one_by_one, split_fingerprints
from course_utils.tokenization import pad_batch
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    classification_loss,
    device_name,
    evaluate,
    fastest_device,
    fit,
    seed_everything,
)

TESTED = ("imdb", "reviews", "sentences", "handwritten", "ordinary")
KEPT_BACK = "ordinary_second"                           # no choice is made on it; not every committed row has it
VALIDATED = 400                                         # texts of each labelled source
TEACHER, ANSWERS = "teacher", "teacher_answers.safetensors"
TEACHER_OPTIONS = BatchOptions(batch_size=32, max_len=256, multiple_of=16)
TEACHER_READS = {"imdb": 45_000, "reviews": 32_000, "sentences": 54_000}               # texts of each source
TEACHER_PARTS, TEACHER_FIT = 8, {"learning_rate": 5e-5, "weight_decay": 0.01, "warmup": 0.1, "clip": 1.0}
OPTIONS = BatchOptions(batch_size=64, max_len=MAX_LEN, multiple_of=16)
MODEL = dict(d_model=128, num_heads=4, d_ff=512, num_layers=3, max_len=MAX_LEN, dropout=0.1, word_dropout=0.1,
             embedding_std=0.02, embedding_scale=10.0)
READS = {"imdb": 67_500, "reviews": 40_000, "sentences": 72_000, "unsupervised": 40_000, "cuts": 130_000}
STEPS, PARTS, FIT = 11_000, 11, {"learning_rate": 1e-3, "weight_decay": 0.01, "warmup": 0.05, "clip": 1.0}
TEMPERATURE, ALPHA, RISK = 2.0, 0.8, 0.2
LICENCE = CHECKPOINTS / "student" / "LICENSE-Apache-2.0.txt"   # that of the teacher's weights; goes with each student


class Row(NamedTuple):
    """A student: what it reads, whether the teacher's logits come with it, and what its word vectors start from."""

    sources: tuple[str, ...] = SOURCES
    taught: bool = True
    words: str = "teacher"                              # "teacher", "random"
    positions: str = "sinusoidal"                       # or "rotary"


ROWS = {
    "student": Row(),
    "student without cut sentences": Row(tuple(source for source in SOURCES if source != "cuts")),
    "labels alone": Row(LABELLED, taught=False),
    "student, random words at first": Row(words="random"),
    "labels alone, random words at first": Row(LABELLED, taught=False, words="random"),
    "student, rotary positions": Row(positions="rotary"),
}


@functools.cache
def settings() -> str:
    """What every run depends on: MiniLM, all texts and labels, the trainings."""
    corpora = [split_fingerprints(load_reviews(source)) for source in TESTED[1:]]
    return fingerprint(pretrained.settings(), corpora, CUTS, UNLABELLED, VOCAB_SIZE, list(TEACHER_OPTIONS), TEACHER_READS,
                       TEACHER_PARTS, TEACHER_FIT, list(OPTIONS), MODEL, READS, STEPS, PARTS, FIT,
                       TEMPERATURE, ALPHA)


def describe(model: str) -> dict:
    """What the row changes."""
    if model == TEACHER:
        return TEACHER_READS
    row = ROWS[model]._asdict()
    return {**row, "sources": list(row["sources"])}     # as a JSON file gives it back


def run(model: str, seed: int, state) -> Trained:
    """Train the teacher, or a student, and score it."""
    return teach(seed, state) if model == TEACHER else learn(model, seed, state)


def with_labels(encode, source: str, split: str, rows: list[int]) -> EncodedReviews:
    """Some texts of a source, by one of the two tokenizers, with labels; `NO_LABEL` where the source has none."""
    ids = encode(source, split)
    labels = labels_of(source, split) if source in LABELLED else [NO_LABEL] * len(ids)
    return EncodedReviews([list(map(int, ids[i])) for i in rows], [labels[i] for i in rows])


def joined(parts: list[EncodedReviews]) -> EncodedReviews:
    """The texts of several sources in one list."""
    return EncodedReviews([ids for part in parts for ids in part.ids], [label for part in parts for label in part.labels])


def to_validate(encode) -> EncodedReviews:
    """The first `VALIDATED` validation texts of each labelled source."""
    return joined([with_labels(encode, source, "validation", list(range(len(labels_of(source, "validation"))))[:VALIDATED])
                   for source in LABELLED])


# ---- the teacher -----------------------------------------------------------------------------------------------------


@functools.cache
def quick_pieces() -> BertWordPieceTokenizer:
    """The teacher's word pieces by the library: the same ids as our class gives, in a tenth of the time."""
    return BertWordPieceTokenizer(vocab=pretrained.base()[1].ids)


def in_pieces(source: str, split: str = "train") -> list[np.ndarray]:
    """The ids that the teacher reads of each text of a source."""
    return student_texts.in_pieces(source, split, quick_pieces(), TEACHER_OPTIONS.max_len)


def teach(seed: int, state) -> Trained:
    """Fine-tune MiniLM, keep it, and keep what it says of every text that a student reads."""
    seed_everything(seed)
    net = BertClassifier(copy.deepcopy(pretrained.base()[0])).to(fastest_device())
    texts = joined([with_labels(in_pieces, source, "train", rows_to_read(source, number, seed))
                    for source, number in TEACHER_READS.items()])
    steps = math.ceil(len(texts.ids) / TEACHER_OPTIONS.batch_size / TEACHER_PARTS)
    result = fit(net, FixedSteps(texts, TEACHER_OPTIONS, steps), to_validate(in_pieces),
                 loss_of=classification_loss, options=TEACHER_OPTIONS, checkpoint=state, seed=seed, progress=False,
                 precision=pretrained.precision(), epochs=TEACHER_PARTS, **TEACHER_FIT)
    if seed == 0:
        with replacing(kept("teacher.safetensors")) as partial:
            save_file({name: weight.cpu() for name, weight in net.state_dict().items()}, partial)
        odds = {source: logits_for(net, in_pieces(source)).diff(dim=-1).squeeze(-1) for source in SOURCES}
        with replacing(kept(ANSWERS)) as partial:
            save_file({source: said.half() for source, said in odds.items()}, partial, {"settings": answers_depend_on()})
    quick = quick_pieces()
    return trained(net, result, steps * TEACHER_PARTS, tokens_in(texts),
                   **scored(net, TEACHER_OPTIONS, lambda text: quick.encode(text).ids))


def answers_depend_on() -> str:
    """What the teacher's answers are the answers to, and of which teacher: a fingerprint."""
    return fingerprint(pretrained.settings(), [texts_of(source) for source in SOURCES], list(TEACHER_OPTIONS),
                       TEACHER_READS, TEACHER_PARTS, TEACHER_FIT)


@torch.inference_mode()
def logits_for(net: BertClassifier, rows: list[np.ndarray], batch_size: int = 128) -> torch.Tensor:
    """The teacher's logits, (texts, 2) float32, in the precision that it was trained in."""
    net.eval()
    said, device = torch.zeros(len(rows), 2), next(net.parameters()).device
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for chosen in (order[i : i + batch_size] for i in range(0, len(order), batch_size)):
        token_ids, mask = pad_batch([list(map(int, rows[i])) for i in chosen], TEACHER_OPTIONS.pad_id,
                                    multiple_of=TEACHER_OPTIONS.multiple_of)
        with torch.autocast(device.type, torch.bfloat16, enabled=pretrained.precision() == "bf16"):
            said[chosen] = net(token_ids.to(device), mask.to(device)).logits.float().cpu()
    return said


@functools.cache
def all_answers() -> dict[str, torch.Tensor]:
    """What this machine's teacher said of every text, or else the committed one's: log-odds of positive, (texts,) each."""
    path = FOLDER / ANSWERS
    if not path.exists() or kept(ANSWERS).exists():
        path = there(kept(ANSWERS), f"student --only {TEACHER}")
    with safe_open(path, "pt") as file:
        made_of, expected = (file.metadata() or {}).get("settings"), answers_depend_on()
        if made_of != expected:
            raise ValueError(f"{path}: got answers to other texts, or of another teacher ({made_of}); expected those of "
                             f"{expected}; make them again: python -m course_tools results student --only {TEACHER} --again")
        return {source: file.get_tensor(source).float() for source in SOURCES}


def teacher_answers(source: str) -> torch.Tensor:
    """What the teacher said of a source's training texts: logits (texts, 2). Only their difference matters to a softmax."""
    odds = all_answers()[source]
    return torch.stack([-odds / 2, odds / 2], dim=-1)


# ---- the students ----------------------------------------------------------------------------------------------------


def learn(model: str, seed: int, state) -> Trained:
    """Train one student, keep it as a classifier that can be loaded, and score it."""
    row, words, licence = ROWS[model], student_words(), LICENCE.read_text(encoding="utf-8")
    seed_everything(seed)
    net = SelfAttentionClassifier(ClassifierConfig(words.vocab_size, positions=row.positions, **MODEL))
    if row.words == "teacher":
        with torch.no_grad():
            net.embedding.weight.copy_(teacher_words(net.config.d_model, MODEL["embedding_std"]))
    net.to(fastest_device())
    texts, loss_of = what_it_reads(row)
    result = fit(net, FixedSteps(texts, OPTIONS, STEPS // PARTS), to_validate(in_words),
                 loss_of=loss_of, options=OPTIONS, checkpoint=state, seed=seed, progress=False,
                 precision=pretrained.precision(), epochs=PARTS, **FIT)
    made = trained(net, result, STEPS, round(tokens_in(texts) * STEPS * OPTIONS.batch_size / len(texts.ids)),
                   texts=len(texts.ids), **scored(net, OPTIONS, words.encode))
    folder = kept(f"{model.replace(', ', '-').replace(' ', '-')}-{seed}")
    folder.mkdir(exist_ok=True)                         # note and licence go with the model
    cautious(ReviewClassifier(net.cpu(), words, ["negative", "positive"])).save(folder)
    write_text(folder / LICENCE.name, licence)
    write_text(folder / "README.md", NOTE.format(
        row=model, seed=seed, parameters=parameters_of(net), words=words.vocab_size, minutes=result.seconds / 60,
        device=device_name(fastest_device()), unlabelled=UNLABELLED,
        order=100 * made.own["reviews"]["by_kind"].get("order", math.nan),
        **{source: 100 * made.own[source]["accuracy"] for source in (*TESTED, KEPT_BACK)}))
    return made


def cautious(classifier: ReviewClassifier, risk: float = RISK) -> CautiousClassifier:
    """With the temperature of the first 300 ordinary sentences, and the threshold at which `risk` of its answers are wrong.

    Both are rounded, the threshold downwards, so that another processor's confidence in the last sentence still reaches it.
    A temperature that the classifier has already is left out: the one that's found here divides its logits as they are.
    """
    classifier = ReviewClassifier(classifier.model, classifier.tokenizer, classifier.label_names)
    ordinary = load_reviews("ordinary")["test"]
    logits, labels = classifier.predict(ordinary["text"])[1].log(), torch.tensor(ordinary["label"])
    temperature = round(fit_temperature(logits, labels), 3)
    confidence, found = soften(logits, temperature).max(dim=-1)
    threshold = min(1.0, threshold_for(confidence, found == labels, risk))                            # 1: no answers
    return CautiousClassifier(classifier, temperature, math.floor(1e4 * threshold) / 1e4)


def what_it_reads(row: Row) -> tuple[EncodedReviews, object]:
    """The texts of one round of a student's reading, and its loss."""
    rows = {source: rows_to_read(source, READS[source]) for source in row.sources}
    texts = joined([with_labels(in_words, source, "train", chosen) for source, chosen in rows.items()])
    if not row.taught:
        return texts, classification_loss
    answers = torch.cat([teacher_answers(source)[chosen] for source, chosen in rows.items()])
    return texts, DistillationLoss(answers, TEMPERATURE, ALPHA)


def teacher_words(width: int, std: float) -> torch.Tensor:
    """(words, width): MiniLM's own word-piece vectors, the mean of a word's pieces, on their first principal components.

    All are divided by one number, which gives them the standard deviation `std`; padding's is zero.
    """
    pieces, table = quick_pieces(), pretrained.base()[0].embedding.weight.detach()
    words = student_words().vocabulary
    found = [pieces.encode(word, add_special_tokens=False).ids for word in words]
    vectors = torch.stack([table[ids].mean(dim=0) if ids else table.mean(dim=0) for ids in found])   # (words, 384)
    centred = vectors - vectors.mean(dim=0)
    directions = torch.linalg.svd(centred.double(), full_matrices=False).Vh[:width].to(centred.dtype)
    reduced = centred @ directions.T                                                                  # (words, width)
    reduced = reduced * (std / reduced.std())
    reduced[0] = 0
    return reduced


NOTE = """\
# A reader of reviews and sentences

A `ReviewClassifier` of notebook 08 with {parameters:,} parameters and {words:,} words: the row "{row}" of `python -m
course_utils results student`, seed {seed}, trained in {minutes:.0f} minutes on {device}. Notebook 15 tells
how, and what it can't do. Where this folder is among the models that come with the course, its name is enough:

    ReviewClassifier.load("student").predict(["Nobody could call it dull."])
    CautiousClassifier.load("student").predict(["Nobody could call it dull."])       # may say "don't know"

Right in per cent, of texts that it has never seen: IMDb's test reviews (5,000 of them) {imdb:.1f}, the course's test reviews
{reviews:.1f}, its test sentences {sentences:.1f}, the hand-written reviews {handwritten:.1f}, the first 300 ordinary
sentences {ordinary:.1f}, 300 others, on which nothing was chosen, {ordinary_second:.1f}. It's far too sure of such
sentences by itself; the temperature in its file, which `predict` applies, mends this, and the file has the threshold below
which it says "don't know", both fitted to the first 300. Of the course's test reviews that have a twin with the same words
in another order, it reads {order:.0f} % correctly.

## What it was trained on

- IMDb's training reviews and {unlabelled:,} of its unlabelled ones (Maas et al. 2011,
  https://aclanthology.org/P11-1015), and sentences cut out of them. Nothing of their text is here but the list of
  frequent words.
- The course's synthetic reviews and sentences.
- Where the row's name says "student": for each of these texts, the answer of a teacher. That's all-MiniLM-L6-v2
  (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), fine-tuned on labelled texts of the same kinds. Its base
  is MiniLM (Wang et al. 2020, https://arxiv.org/abs/2002.10957).
- The word vectors began as MiniLM's, reduced to fewer numbers, unless the row's name says "random words".

## Licences

The teacher's weights come under the Apache License 2.0, a copy of which lies beside this file (`LICENSE-Apache-2.0.txt`).
These weights are changed: other parts, other sizes, trained anew. The course's own licence covers its code and its texts.
IMDb's reviews belong to those who wrote them; the data set is there for research.
"""


# ---- scores ----------------------------------------------------------------------------------------------------------


def trained(net, result, steps: int, tokens: int, **own) -> Trained:
    """What every row says of its training, in parts and not in epochs, and what is its own."""
    return Trained(net, result, {"precision": pretrained.precision(), "steps": steps, "tokens": tokens, **own}, "best_part")


def scored(net, options: BatchOptions, encode) -> dict:
    """What `score` says of every source's test texts."""
    return {source: score(net, options, source, EncodedReviews([encode(text) for text in texts_of(source, "test")],
                                                               labels_of(source, "test")))
            for source in (*TESTED, KEPT_BACK)}


def score(net, options: BatchOptions, source: str, texts: EncodedReviews) -> dict:
    """Accuracy on a source's test texts, by kind where there are kinds; which were judged right, and how surely."""
    answers = evaluate(net, texts, options)
    kinds = {} if source == "imdb" else {"kind": list(load_reviews(source)["test"]["kind"])}
    sure = answers.probabilities.max(dim=-1).values
    return {**scores_one_by_one(answers.predictions, texts.labels, **kinds),
            "loss": round(answers.loss, 4), "confidence": round(float(sure.mean()), 4)}


def needed(row: str, seed: int) -> None:
    """Look for the teacher's answers, if a row learns from them."""
    if row in ROWS and ROWS[row].taught:
        all_answers()


SET = ResultSet(
    "student", [TEACHER, *ROWS], settings, run,
    (pretrained.MINILM, IMDB, *texts_from(*TESTED[1:], KEPT_BACK),
     Need("the teacher's answers", needed, "student", (TEACHER,))),
    change=describe, line=accuracies(*TESTED),
)
