"""Translators trained on Multi30k, from English to French: how good an hour of one core makes them. A result set.

Writes data/results/multi30k.json: BLEU and chrF on the test set of 2016 (1,000 sentences), with beam 5 and greedy, by
length, and the worst translations by their numbers. The Transformer of notebook 17 for about an hour; for about twenty
minutes the same Transformer, and notebook 16's recurrent network with attention, of equally many parameters to 5 %, for
equally many steps, and for as many minutes. They read the same byte pairs, learned on the 29,000 training pairs. The
epoch with the lowest cross-entropy on the 1,014 validation pairs is scored once on test; settings were tried on
validation alone.

"published settings" follows Wu et al. 2021 (https://arxiv.org/abs/2105.14462) as far as `fit` goes: their network, with
one table of vectors for both languages and for the scores, 10,000 byte pairs of lower-case text split into tokens,
batches of about 4,096 tokens, dropout, label smoothing, the highest learning rate and the length of the warm-up. Not
theirs: the rate then falls by a half cosine to zero, where theirs falls with the inverse square root and the last ten
checkpoints are averaged; AdamW's settings are those of `fit`; the tokens are `split_french`'s, where theirs come from
Moses; one core instead of two GPUs.

    COURSE_DATA=folder python -m course_tools results multi30k --jobs 1 [--only "an hour"] [--seeds 0 1 2]

Multi30k comes from where `load_translations("multi30k")` finds it. A run writes its state after each epoch and goes on
from there. COURSE_PRECISION=bf16 trains in bf16. The first seed's translator of an hour is kept in
outputs/models/multi30k, with a note on its licence; none of the texts is.
"""

import copy
import functools
import time

from course_tools.studies.runner import ResultSet
from course_tools.studies.sets.pretrained import precision
from course_utils.data.translations import load_translations, split_english
from course_utils.encoder_decoder import SmoothedLoss, Transformer, TransformerConfig
from course_utils.files import write_text
from course_utils.files.paths import output_folder
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig
from course_utils.results import fingerprint
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import PairBatches
from course_utils.training.pair_subwords import SharedBytePairs, encode_texts
from course_utils.translation.quality import quality, quality_by_length, split_lower, worst
from course_utils.translation.subwords import SubwordTranslator

VOCAB_SIZE, BATCH_SIZE, BEAM, SMOOTHING = 4000, 64, 5, 0.1
TRANSFORMER = {"d_model": 128, "num_heads": 4, "d_ff": 256, "num_layers": 4, "max_len": 256, "dropout": 0.15}
RECURRENT = {"d_model": 128, "score": "general", "when": "after", "cell": "GRU", "d_hidden": 384, "dropout": 0.15}
FIT = {"weight_decay": 0.01, "warmup": 0.1, "clip": 1.0}
PUBLISHED = {"d_model": 128, "num_heads": 4, "d_ff": 256, "num_layers": 4, "max_len": 256, "dropout": 0.3,
             "positions": "sinusoidal", "norm_first": False, "activation": "relu"}
HOUR, PAPER = "Transformer, an hour", "Transformer, published settings"
ROWS = {                                                # a step of the recurrent network takes two thirds of the time
    HOUR: {"network": "Transformer", "epochs": 20, "learning_rate": 3e-3},
    "Transformer, 20 minutes": {"network": "Transformer", "epochs": 7, "learning_rate": 3e-3},
    "recurrent, equal steps": {"network": "recurrent", "epochs": 7, "learning_rate": 3e-3},
    "recurrent, as many minutes": {"network": "recurrent", "epochs": 11, "learning_rate": 3e-3},
    PAPER: {"network": "published", "epochs": 64, "learning_rate": 5e-3, "warmup": 0.25, "vocab_size": 10_000,
            "batch_size": 240},
}


@functools.cache
def texts(lower: bool = False) -> dict[str, tuple[list[str], list[str]]]:
    """English and French of each split; with `lower` in lower case, split into tokens by spaces."""
    splits = {split: (list(rows["source"]), list(rows["target"])) for split, rows in load_translations("multi30k").items()}
    if not lower:
        return splits
    return {split: ([" ".join(split_english(text.lower())) for text in english], [split_lower(text) for text in french])
            for split, (english, french) in splits.items()}


@functools.cache
def pieces(vocab_size: int, lower: bool) -> SharedBytePairs:
    """The byte pairs of both languages' training sentences."""
    return SharedBytePairs.train([text for side in texts(lower)["train"] for text in side], vocab_size)


@functools.cache
def settings() -> str:
    """What every run depends on."""
    return fingerprint(texts(), VOCAB_SIZE, BATCH_SIZE, BEAM, SMOOTHING, TRANSFORMER, RECURRENT, PUBLISHED, FIT)


def new_translator(model: str, seed: int) -> SubwordTranslator:
    """The untrained translator of a row."""
    row = ROWS[model]
    seed_everything(seed)
    read = pieces(row.get("vocab_size", VOCAB_SIZE), row["network"] == "published")
    size = read.vocab_size
    if row["network"] == "recurrent":
        return SubwordTranslator(Seq2Seq(Seq2SeqConfig(size, size, **RECURRENT)), read)
    net = Transformer(TransformerConfig(size, size, **(PUBLISHED if row["network"] == "published" else TRANSFORMER)))
    if row["network"] == "published":
        net.source_embedding = net.target_embedding     # one table for both languages
    return SubwordTranslator(net, read)


def run(model: str, seed: int, state) -> dict:
    """Train one translator, score it with beam 5 and greedy."""
    row, translator, begun = ROWS[model], new_translator(model, seed), time.process_time()
    lower, net = row["network"] == "published", translator.model
    batches = {split: PairBatches(encode_texts(*texts(lower)[split], translator.pieces), row.get("batch_size", BATCH_SIZE))
               for split in ("train", "validation")}
    options = FIT | {name: row[name] for name in ("epochs", "learning_rate", "warmup") if name in row}
    result = fit(net, batches["train"], MeanLoss(batches["validation"], SmoothedLoss(0.0)), loss_of=SmoothedLoss(SMOOTHING),
                 seed=seed, checkpoint=state, progress=False, precision=precision(), **options)
    cpu_seconds = time.process_time() - begun           # of this start; the whole training's only if it wasn't interrupted
    half = copy.deepcopy(net).half()
    net.load_state_dict(half.state_dict())              # rounded, as what is kept
    made = {
        "precision": precision(), "parameters": sum(p.numel() for p in net.parameters()),
        "seconds": round(result.seconds, 1), "cpu_seconds": round(cpu_seconds, 1), "best_epoch": result.best_epoch,
        "steps": row["epochs"] * len(batches["train"]), "vocab_size": translator.pieces.vocab_size,
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history],
        "test": scored(translator, lower),
    }
    if model == HOUR and seed == 0:
        keep(translator._replace(model=half), made)
    return made


def scored(translator: SubwordTranslator, lower: bool = False) -> dict:
    """What a run says of the test split, with beam BEAM and greedy."""
    sources, references = texts(lower)["test"]
    result = {}
    for name, beam in (("beam", BEAM), ("greedy", 1)):
        begun = time.perf_counter()
        found = translator.translate(sources, beam)
        result[name] = {**quality(found, references), "seconds": round(time.perf_counter() - begun, 1)}
        if name == "beam":
            result["by_length"] = quality_by_length(found, references, sources)
            result["worst"] = worst(found, references, sources)
    return result


def keep(translator: SubwordTranslator, made: dict) -> None:
    """Save the translator, with a note on where it comes from and what may be done with it."""
    folder = output_folder() / "models" / "multi30k"
    folder.mkdir(parents=True, exist_ok=True)           # the note goes with the model
    translator.save(folder)
    scores = made["test"]["beam"]
    write_text(folder / "README.md", NOTE.format(
        row=HOUR, parameters=made["parameters"], vocab_size=made["vocab_size"], bleu=scores["bleu"]["score"],
        half=scores["bleu"]["half"], chrf=scores["chrf"]["score"], signature=scores["bleu"]["signature"],
        minutes=made["seconds"] / 60))


NOTE = """\
# A translator from English to French, trained on Multi30k

A `Transformer` of notebook 17 with {parameters:,} parameters and {vocab_size:,} byte pairs, weights in half precision. The
row "{row}" of `python -m course_tools results multi30k`, seed 0, made it in {minutes:.0f} minutes. `python -m course_utils
translate` uses it; in Python, `SubwordTranslator.load(folder)` of `course_utils.translation.subwords` reads it.

On Multi30k's test set of 2016, with beam 5: BLEU {bleu} ± {half}, chrF {chrf}. It has seen nothing but captions of
photographs, one sentence at a time. On any other kind of text it isn't worth much. BLEU's signature:
`{signature}`

## Sentences unlike captions

`translate` names the sentences of which the model is less sure (the mean ln p of the tokens that it writes) than of 97 % of
the validation captions. `COURSE_DATA=folder python -m course_tools.studies.captions` measures that threshold again, and
how many captions of the test set and how many other sentences fall below it, and writes both into the file.

## What it was trained on

The 29,000 English and French training pairs of Multi30k (Elliott et al. 2016, https://doi.org/10.18653/v1/W16-3210, and
2017, https://doi.org/10.18653/v1/W17-4718; files from https://github.com/multi30k/dataset). The English sentences are
captions that crowd workers wrote for photographs on Flickr, in Flickr30k (Young et al. 2014,
https://doi.org/10.1162/tacl_a_00166). None of the sentences is in this folder or in the repository. The list of byte pairs
holds frequent words and parts of words.

## Licence

Multi30k's maintainers say that it comes under Flickr30k's terms (https://github.com/multi30k/dataset/issues/8), which are
at https://hockenmaier.cs.illinois.edu/DenotationGraph/data/. It isn't an open licence: as we understand it, the data are
there for research and teaching that don't earn money. Whether such terms reach as far as weights learned from the text
isn't settled. So the course's licence covers the code that made this file, but we can't promise that it covers the file.
Use the weights to study and to teach; if you want to do anything else with them, read the terms, and ask.
"""


def line(runs: list[dict]) -> str:
    """BLEU with beam 5, seed by seed, and their mean."""
    scores = [run["test"]["beam"]["bleu"]["score"] for run in runs]
    return f"BLEU {'  '.join(f'{score:.1f}' for score in scores)}   mean {sum(scores) / len(scores):.1f}"


SET = ResultSet("multi30k", ROWS, settings, run, seeds=lambda row, asked: asked[:1] if row == PAPER else asked, line=line)
