"""An encoder of the course's own, pretrained on IMDb's texts: a set of runs for course_tools/studies/command.py.

Writes data/results/small_encoder.json, which the results of Part III show. `pretraining` trains a small BERT on hidden words
in the 50,000 unlabelled reviews and the texts of the training reviews, in 8,192 word pieces learned on the same texts, in
windows of 128 tokens and six passes; "pretraining, two passes" ends where the loss has hardly begun to fall;
"pretraining, windows of 192" reads as many tokens a step, and all positions that a classifier reads. Each keeps its model
in outputs/pretrained. "word frequencies" is the loss of guessing each token by how often it occurs in these texts. The
other rows train a classifier on one of the three, or on an encoder of the same sizes that starts from random numbers, with
1,000 to 22,500 labels and equal steps, and say what the pretrained model has forgotten: its loss on hidden words in the
validation texts, before and after. From random numbers the rate is higher; "random at 0.0003" has that of the pretrained
ones. There is one pretraining of each kind, so the seeds are those of the classifiers alone. IMDb comes from the hub, or
from the folder that COURSE_DATA names.

    python -m course_tools results small_encoder --jobs 1 [--only pretraining] [--seeds 0 1 2]

The classifiers need the pretrainings (of the first seed) first; together these took a quarter of an hour on a graphics
card. On a processor core the first two would take some ten hours, by a trial of one part. A run writes its state after each
part and goes on from there.
COURSE_PRECISION=bf16 trains in bf16.
"""

import dataclasses
import functools
import time
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file
from tokenizers import BertWordPieceTokenizer

from course_tools.studies.pretrained_reviews import (
    LINE_BREAK,
    FixedSteps,
    PartsOfPasses,
    encoded_reviews,
    first_of,
    kept,
    reviews,
    tokens_in,
)
from course_tools.studies.runner import ResultSet
from course_tools.studies.sets.pretrained import precision
from course_tools.studies.text_windows import TextWindows, joined
from course_utils.files import locked, replacing, write_text
from course_utils.pretraining import (
    BertClassifier,
    BertConfig,
    MaskedLanguageModel,
    MaskedTokenLoss,
    WordPieceTokenizer,
)
from course_utils.results import fingerprint, scores_one_by_one, split_fingerprints
from course_utils.training import BatchOptions, EncodedReviews, MeanLoss, evaluate, fastest_device, fit, seed_everything

VOCAB_SIZE, MAX_LEN, LENGTH, BATCH_SIZE = 8192, 192, 127, 64
MODEL = dict(d_model=128, num_heads=4, d_ff=512, num_layers=4, max_len=MAX_LEN, dropout=0.1, attention_dropout=0.0)
PARTS = 8                                               # a pass over all 72,500 texts is kept in so many
PRETRAINING = dict(learning_rate=1e-3, weight_decay=0.01, warmup=0.05)
OPTIONS = BatchOptions(batch_size=32, max_len=MAX_LEN, multiple_of=32)
STEPS, CHECKS = 1408, 4                                 # of every classifier: two passes over 22,500 reviews
FIRST = "pretraining"
COUNTED = "word frequencies"


class Pretraining(NamedTuple):
    """How often it reads the texts, in windows of how many answers (a token more, then), how many windows a step."""

    passes: int
    length: int = LENGTH
    batch_size: int = BATCH_SIZE


PRETRAININGS = {
    FIRST: Pretraining(6), f"{FIRST}, two passes": Pretraining(2),
    f"{FIRST}, windows of 192": Pretraining(6, 191, 43),
}


class Row(NamedTuple):
    """A classifier: what it starts from, on how many reviews, and its learning rate."""

    start: str                                          # one of `PRETRAINED`, or "random", or "random at 0.0003"
    number: int
    learning_rate: float


PRETRAINED = dict(zip(("pretrained", "pretrained in two passes", "pretrained in windows of 192"), PRETRAININGS))
ROWS = {f"{start}, {number:,} reviews": Row(start, number, 1e-3 if start == "random" else 3e-4)
        for number in (1000, 5000, 22500) for start in (*PRETRAINED, "random", "random at 0.0003")}


@functools.cache
def tokenizer() -> WordPieceTokenizer:
    """8,192 word pieces, learned on the training and the unlabelled texts; kept in outputs/pretrained."""
    path = kept(f"vocabulary-{VOCAB_SIZE}.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, "learning word pieces", wait=3600):
        if not path.exists():
            learner, data = BertWordPieceTokenizer(), reviews(unsupervised=True)
            texts = (LINE_BREAK.sub(" ", text) for split in ("train", "unsupervised") for text in data[split]["text"])
            learner.train_from_iterator(texts, vocab_size=VOCAB_SIZE, show_progress=False)
            vocabulary = learner.get_vocab()
            write_text(path, "\n".join(sorted(vocabulary, key=vocabulary.get)))
    return WordPieceTokenizer(path.read_text(encoding="utf-8").split("\n"))


@functools.cache
def encoded(max_len: int | None) -> dict[str, EncodedReviews]:
    """All splits in these pieces, by the library, which gives the same ids as ours in a tenth of the time."""
    pieces = tokenizer()
    quick = BertWordPieceTokenizer(vocab=pieces.ids)
    return encoded_reviews(reviews(unsupervised=True), lambda texts: [found.ids for found in quick.encode_batch(texts)],
                           f"own-{VOCAB_SIZE}", max_len)


@functools.cache
def settings() -> str:
    """What every run depends on: the sizes, the trainings, and the texts and labels of all splits."""
    return fingerprint(VOCAB_SIZE, MODEL, LENGTH, BATCH_SIZE, PRETRAINING, PARTS, list(OPTIONS), STEPS, CHECKS,
                       split_fingerprints(reviews(unsupervised=True)))


def describe(model: str) -> dict:
    """What the row changes; the windows where they aren't the usual ones."""
    if model == COUNTED:
        return {"passes": 0}
    if model in ROWS:
        return ROWS[model]._asdict()
    how = PRETRAININGS[model]
    cut = {} if how.length == PRETRAININGS[FIRST].length else {"length": how.length, "batch_size": how.batch_size}
    return {"passes": how.passes, **cut, **PRETRAINING}


def config() -> BertConfig:
    """The sizes of the encoder."""
    return BertConfig(vocab_size=tokenizer().vocab_size, pad_id=tokenizer().pad_id, **MODEL)


def hidden_words(how: Pretraining) -> tuple[MaskedTokenLoss, MeanLoss]:
    """The loss on hidden words, and its mean over the texts of the validation reviews, in windows like pretraining's."""
    pieces = tokenizer()
    loss_of = MaskedTokenLoss(pieces.mask_id, (pieces.pad_id, pieces.cls_id, pieces.sep_id))
    return loss_of, MeanLoss(windows(["validation"], how), loss_of)


def windows(splits: list[str], how: Pretraining) -> TextWindows:
    """The texts of some splits in one row, [CLS] and [SEP] between them, cut into windows."""
    texts = [ids[1:] for split in splits for ids in encoded(None)[split].ids]           # each begins with its own [CLS]
    return TextWindows(joined(texts, tokenizer().cls_id), how.length, how.batch_size)


def run(model: str, seed: int, state) -> dict:
    """Pretrain, count, or train and score one classifier."""
    if model == COUNTED:
        return count()
    return pretrain(model, seed, state) if model in PRETRAININGS else classify(ROWS[model], seed, state)


def weights_file(model: str):
    """Where a pretraining keeps its model."""
    return kept(f"{model.replace(', ', '-').replace(' ', '-')}.safetensors")


def pretrain(model: str, seed: int, state) -> dict:
    """Train on hidden words, and keep the model."""
    seed_everything(seed)
    how = PRETRAININGS[model]
    net, (loss_of, validation) = MaskedLanguageModel(config()), hidden_words(how)
    train = PartsOfPasses(windows(["train", "unsupervised"], how), PARTS)
    result = fit(net, train, validation, loss_of=loss_of, checkpoint=state, seed=seed, progress=False,
                 precision=precision(), epochs=how.passes * PARTS, **PRETRAINING)
    with replacing(weights_file(model)) as partial:
        save_file(net.state_dict(), partial)
    return {"parameters": sum(p.numel() for p in net.parameters()), "precision": precision(),
            "seconds": round(result.seconds, 1), "best_epoch": result.best_epoch, "history": result.history,
            "tokens": len(train) * how.batch_size * (how.length + 1) * how.passes * PARTS}


def count() -> dict:
    """The loss of guessing each token by its frequency in the texts that pretraining reads, one added to every count.

    Also that of a guess which trusts a visible token as far as it can: of the tokens asked for, a fifth are visible, and
    half of these are right.
    """
    begun, pieces, how = time.perf_counter(), tokenizer(), PRETRAININGS[FIRST]
    special = torch.tensor([pieces.pad_id, pieces.cls_id, pieces.sep_id])
    seen, asked = (torch.bincount(windows(splits, how).ids, minlength=pieces.vocab_size).double().index_fill(0, special, 0)
                   for splits in (["train", "unsupervised"], ["validation"]))
    p, asked = (seen + 1) / (seen + 1).sum(), asked / asked.sum()                                  # (vocab)
    right = p / (p + 1 / len(p))                        # how often a visible token is right: kept or swapped, equally often
    hidden = -(asked * p.log()).sum()
    kept = -(asked * (right + (1 - right) * p).log()).sum()
    swapped = hidden - (1 - right).log().mean()
    return {"tokens": int(seen.sum()), "validation_loss": round(hidden.item(), 4),
            "validation_loss_with_copying": round((0.8 * hidden + 0.1 * kept + 0.1 * swapped).item(), 4),
            "seconds": round(time.perf_counter() - begun, 1)}


def pretrained(model: str) -> MaskedLanguageModel:
    """The model that a pretraining kept."""
    path = weights_file(model)
    if not path.exists():
        raise FileNotFoundError(f"{path} isn't there; make it first: python -m course_tools results small_encoder "
                                f"--only {FIRST}")
    net = MaskedLanguageModel(config())
    net.load_state_dict(load_file(path))
    return net.eval()


def classify(row: Row, seed: int, state) -> dict:
    """Train a classifier, score it, and measure what its encoder still knows of hidden words."""
    data = encoded(MAX_LEN)
    seed_everything(seed)
    whole = pretrained(PRETRAINED[row.start]) if row.start in PRETRAINED else MaskedLanguageModel(config())
    net = BertClassifier(whole.to(fastest_device()).encoder)
    few = first_of(data["train"], row.number, seed)
    hidden = hidden_words(PRETRAININGS[PRETRAINED[row.start]])[1] if row.start in PRETRAINED else None
    before = hidden(whole)["validation_loss"] if hidden else None
    train = FixedSteps(few, OPTIONS, STEPS // CHECKS)
    result = fit(net, train, first_of(data["validation"], 1000, 0), options=OPTIONS, checkpoint=state, seed=seed,
                 progress=False, precision=precision(), epochs=CHECKS, learning_rate=row.learning_rate)
    after = hidden(whole)["validation_loss"] if hidden else None
    scored = {split: scores_one_by_one(evaluate(net, data[split], OPTIONS).predictions, data[split].labels)
              for split in ("validation", "test")}
    return {"data": {split: len(data[split].ids) for split in data}, "precision": precision(),
            "config": dataclasses.asdict(net.config), "parameters": sum(p.numel() for p in net.parameters()),
            "trained": sum(p.numel() for p in net.parameters() if p.requires_grad),
            "steps": STEPS, "tokens": round(tokens_in(few) * STEPS * OPTIONS.batch_size / len(few.ids)),
            "hidden_words": {"before": before, "after": after}, "seconds": round(result.seconds, 1),
            "best_epoch": result.best_epoch,
            "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history], **scored}


def line(runs: list[dict]) -> str:
    """What the command prints of a row: the test accuracies, or the loss on hidden words."""
    if "test" in runs[0]:
        return " ".join(f"{100 * run['test']['accuracy']:.1f}" for run in runs)
    last = runs[0]["history"][-1] if "history" in runs[0] else runs[0]
    return f"loss {last['validation_loss']:.3f}"


SET = ResultSet(
    "small_encoder", [*PRETRAININGS, COUNTED, *ROWS], settings, run,
    seeds=lambda row, asked: asked if row in ROWS else asked[:1], change=describe, line=line,
)
