"""The course's reader: a teacher fine-tuned on three corpora, and small students of it. A result set.

Writes data/results/student.json, which notebook 15 shows. `teacher` is all-MiniLM-L6-v2, fine-tuned on real reviews (IMDb),
the course's reviews and its sentences; it then says what it makes of every text that a student reads: these, 25,000
unlabelled reviews, and sentences cut out of real reviews. The other rows are classifiers of notebook 08's own architecture,
with 15,000 words, trained for equally many steps: on the teacher's logits and the labels there are, on the same without the
cut sentences, or on labels alone. Their word vectors start as the teacher's, reduced to their width, or from random numbers.
Every row is then scored on texts of all kinds; the hand-written reviews and the ordinary sentences are for testing alone.
The part of the training whose weights are kept is chosen on validation texts of the three corpora; no setting was searched
for.

    COURSE_MODELS=folder python -m course_utils results student --jobs 1 [--only teacher] [--seeds 0 1 2]

The students need the teacher's first seed, which is kept with its answers in outputs/student: nearly two hours on one
processor core; a student takes half an hour. A run goes on from its last part when it's started again. COURSE_PRECISION=bf16
trains in bf16. MiniLM and IMDb come from where `pretrained` takes them.
"""

import functools
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import BertWordPieceTokenizer

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.distillation import NO_LABEL, DistillationLoss
from course_utils.experiments import student_texts
from course_utils.experiments.pretrained_reviews import FixedSteps, tokens_in
from course_utils.experiments.results import fingerprint, scores, split_fingerprints
from course_utils.experiments.runner import ResultSet
from course_utils.experiments.sets import pretrained
from course_utils.experiments.student_texts import (
    CUTS,
    LABELLED,
    MAX_LEN,
    SOURCES,
    UNLABELLED,
    VOCAB_SIZE,
    in_words,
    kept,
    labels_of,
    student_words,
    texts_of,
)
from course_utils.files import replacing
from course_utils.pretraining import BertClassifier
from course_utils.tokenization import pad_batch
from course_utils.training import BatchOptions, EncodedReviews, classification_loss, evaluate, fit, seed_everything

TESTED = ("imdb", "reviews", "sentences", "handwritten", "ordinary")
VALIDATED = 400                                         # texts of each labelled source
TEACHER = "teacher"
TEACHER_OPTIONS = BatchOptions(batch_size=32, max_len=pretrained.MAX_LEN, multiple_of=16)
TEACHER_READS = {"imdb": 1, "reviews": 2, "sentences": 2}                              # passes over each source
TEACHER_PARTS, TEACHER_FIT = 6, {"learning_rate": 5e-5, "weight_decay": 0.01, "warmup": 0.1, "clip": 1.0}
OPTIONS = BatchOptions(batch_size=64, max_len=MAX_LEN, multiple_of=16)
MODEL = dict(d_model=128, num_heads=4, d_ff=512, num_layers=4, max_len=MAX_LEN, dropout=0.1, word_dropout=0.1,
             embedding_std=0.02, embedding_scale=10.0)
STEPS, PARTS, FIT = 8_000, 8, {"learning_rate": 1e-3, "weight_decay": 0.01, "warmup": 0.05, "clip": 1.0}
TEMPERATURE, ALPHA = 2.0, 0.8


class Row(NamedTuple):
    """A student: what it reads, whether the teacher's logits come with it, and what its word vectors start from."""

    sources: tuple[str, ...] = SOURCES
    taught: bool = True
    words: str = "teacher"                              # "teacher", "random"


ROWS = {
    "student": Row(),
    "student without cut sentences": Row(tuple(source for source in SOURCES if source != "cuts")),
    "labels alone": Row(LABELLED, taught=False),
    "student, random words at first": Row(words="random"),
    "labels alone, random words at first": Row(LABELLED, taught=False, words="random"),
}


@functools.cache
def settings() -> str:
    """What every run depends on: MiniLM, all texts and labels, the trainings."""
    corpora = [split_fingerprints(load_reviews(source)) for source in TESTED[1:]]
    return fingerprint(pretrained.settings(), corpora, CUTS, UNLABELLED, VOCAB_SIZE, list(TEACHER_OPTIONS), TEACHER_READS,
                       TEACHER_PARTS, TEACHER_FIT, list(OPTIONS), MODEL, STEPS, PARTS, FIT, TEMPERATURE, ALPHA)


def wanted(seeds: list[int]) -> list[tuple[str, int]]:
    """The teacher once, every student on every seed."""
    return [(TEACHER, seeds[0]), *((name, seed) for name in ROWS for seed in seeds)]


def describe(model: str) -> dict:
    """What the row changes."""
    return TEACHER_READS if model == TEACHER else ROWS[model]._asdict()


def run(model: str, seed: int, state) -> dict:
    """Train the teacher, or a student, and score it."""
    return teach(seed, state) if model == TEACHER else learn(model, seed, state)


def labelled(encode, sources, split: str, number: int | None = None) -> EncodedReviews:
    """The texts of some sources with their labels, by one of the two tokenizers; of each at most `number`."""
    rows = [(ids, label) for source in sources
            for ids, label in list(zip(encode(source, split), labels_of(source, split), strict=True))[:number]]
    return EncodedReviews([np.asarray(ids).tolist() for ids, _ in rows], [label for _, label in rows])


# ---- the teacher -----------------------------------------------------------------------------------------------------


@functools.cache
def quick_pieces() -> BertWordPieceTokenizer:
    """The teacher's word pieces by the library: the same ids as our class gives, in a tenth of the time."""
    return BertWordPieceTokenizer(vocab=pretrained.base()[1].ids)


def in_pieces(source: str, split: str = "train") -> list[np.ndarray]:
    """The ids that the teacher reads of each text of a source."""
    return student_texts.in_pieces(source, split, quick_pieces(), pretrained.MAX_LEN)


def teach(seed: int, state) -> dict:
    """Fine-tune MiniLM, keep it, and keep what it says of every text that a student reads."""
    seed_everything(seed)
    net = BertClassifier(pretrained.base()[0])
    texts = labelled(in_pieces, [source for source, passes in TEACHER_READS.items() for _ in range(passes)], "train")
    steps = math.ceil(len(texts.ids) / TEACHER_OPTIONS.batch_size / TEACHER_PARTS)
    result = fit(net, FixedSteps(texts, TEACHER_OPTIONS, steps), labelled(in_pieces, LABELLED, "validation", VALIDATED),
                 loss_of=classification_loss, options=TEACHER_OPTIONS, checkpoint=state, seed=seed, progress=False,
                 precision=pretrained.precision(), epochs=TEACHER_PARTS, **TEACHER_FIT)
    with replacing(kept("teacher.safetensors")) as partial:
        save_file(net.state_dict(), partial)
    for source in SOURCES:
        said = logits_for(net, in_pieces(source))
        with replacing(answers_file(source)) as partial, open(partial, "wb") as file:
            np.save(file, said)
    quick = quick_pieces()
    return {**facts(net, result, steps * TEACHER_PARTS, tokens_in(texts)),
            **scored(net, TEACHER_OPTIONS, lambda text: quick.encode(text).ids)}


def answers_file(source: str) -> Path:
    """The teacher's logits for a source's training texts."""
    return kept(f"answers-{source}.npy")


@torch.inference_mode()
def logits_for(net: BertClassifier, rows: list[np.ndarray], batch_size: int = 128) -> np.ndarray:
    """The teacher's logits, (texts, 2) float32, in the precision that it was trained in."""
    net.eval()
    said = np.zeros((len(rows), 2), dtype=np.float32)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for chosen in (order[i : i + batch_size] for i in range(0, len(order), batch_size)):
        token_ids, mask = pad_batch([rows[i].tolist() for i in chosen], TEACHER_OPTIONS.pad_id,
                                    multiple_of=TEACHER_OPTIONS.multiple_of)
        with torch.autocast("cpu", torch.bfloat16, enabled=pretrained.precision() == "bf16"):
            said[chosen] = net(token_ids, mask).logits.float().numpy()
    return said


def teacher_answers(source: str) -> torch.Tensor:
    """What the teacher said of a source's training texts: (texts, 2)."""
    path = answers_file(source)
    if not path.exists():
        raise FileNotFoundError(f"{path} isn't there; make it first: python -m course_utils results student "
                                f"--only {TEACHER}")
    return torch.from_numpy(np.load(path))


# ---- the students ----------------------------------------------------------------------------------------------------


def learn(model: str, seed: int, state) -> dict:
    """Train one student, keep it as a classifier that can be loaded, and score it."""
    row, words = ROWS[model], student_words()
    seed_everything(seed)
    net = SelfAttentionClassifier(ClassifierConfig(words.vocab_size, **MODEL))
    if row.words == "teacher":
        with torch.no_grad():
            net.embedding.weight.copy_(teacher_words(net.config.d_model, MODEL["embedding_std"]))
    texts, loss_of = what_it_reads(row)
    result = fit(net, FixedSteps(texts, OPTIONS, STEPS // PARTS), labelled(in_words, LABELLED, "validation", VALIDATED),
                 loss_of=loss_of, options=OPTIONS, checkpoint=state, seed=seed, progress=False,
                 precision=pretrained.precision(), epochs=PARTS, **FIT)
    ReviewClassifier(net, words, ["negative", "positive"]).save(kept(f"{model.replace(', ', '-').replace(' ', '-')}-{seed}"))
    return {**facts(net, result, STEPS, round(tokens_in(texts) * STEPS * OPTIONS.batch_size / len(texts.ids))),
            "texts": len(texts.ids), **scored(net, OPTIONS, words.encode)}


def what_it_reads(row: Row) -> tuple[EncodedReviews, object]:
    """A student's texts and its loss; a label is `NO_LABEL` where a source has none."""
    ids = [in_words(source) for source in row.sources]
    labels = [labels_of(source) if source in LABELLED else [NO_LABEL] * len(rows)
              for source, rows in zip(row.sources, ids, strict=True)]
    texts = EncodedReviews([one for rows in ids for one in rows], [label for rows in labels for label in rows])
    if not row.taught:
        return texts, classification_loss
    return texts, DistillationLoss(torch.cat([teacher_answers(source) for source in row.sources]), TEMPERATURE, ALPHA)


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


# ---- scores ----------------------------------------------------------------------------------------------------------


def facts(net, result, steps: int, tokens: int) -> dict:
    """What every row says of its training."""
    return {"precision": pretrained.precision(), "parameters": sum(p.numel() for p in net.parameters()), "steps": steps,
            "tokens": tokens, "seconds": round(result.seconds, 1), "best_part": result.best_epoch,
            "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history]}


def scored(net, options: BatchOptions, encode) -> dict:
    """Accuracy on every source's test texts, by kind where there are kinds; which were judged right, and how surely."""
    result = {}
    for source in TESTED:
        labels = labels_of(source, "test")
        texts = EncodedReviews([encode(text) for text in texts_of(source, "test")], labels)
        answers = evaluate(net, texts, options)
        kinds = {} if source == "imdb" else {"kind": list(load_reviews(source)["test"]["kind"])}
        right = "".join(str(int(guess == label)) for guess, label in zip(answers.predictions, labels, strict=True))
        sure = answers.probabilities.max(dim=-1).values
        result[source] = {**scores(answers.predictions, labels, **kinds), "right": f"{int('1' + right, 2):x}",
                          "loss": round(answers.loss, 4), "confidence": round(float(sure.mean()), 4)}
    return result


def line(runs: list[dict]) -> str:
    """Accuracy on real reviews, and on the ordinary sentences."""
    return "  ".join(f"{name} {100 * sum(run[name]['accuracy'] for run in runs) / len(runs):.1f}" for name in TESTED)


SET = ResultSet("student", settings, wanted, describe, run, line=line)
