"""Every result set in small: a few texts, a random BERT, networks of a few numbers, an epoch or two."""

import dataclasses
import functools
import os
import re
import sys
from pathlib import Path

import torch
from datasets import Dataset, DatasetDict
from small_code_models import transformer
from small_corpora import made_reviews, made_translations, save_small_bert

from course_tools.studies.runner import ResultSet, Trained
from course_tools.studies.sets import (
    ablations,
    context,
    imdb_order,
    induction,
    learning_curves,
    long_texts,
    multi30k,
    pretrained_vectors,
    reader,
    reader_more,
    sentiment_axis,
    small_encoder,
    token_range,
)
from course_tools.studies.standard_library import Module
from course_utils.completion import CodeCompleter
from course_utils.data import load_reviews
from course_utils.data.meanings import load_pronouns, load_senses
from course_utils.pretraining import load_bert
from course_utils.random_llama import checkpoint_of, random_llama
from course_utils.recipes import copied_summaries
from course_utils.training import FitResult
from course_utils.training.pair_batches import EncodedPairs, PairBatches, encode_pairs
from course_utils.translation import transformers, translators

ROWS = {                                                # that are made in small; where a set isn't named, all
    "ablations": ("the default", "no scaling", "250 training reviews", "frozen random embeddings", "bag, equal parameters",
                  "BiLSTM, equal parameters"),
    "bottleneck": ("one vector", "attention", "French alone, two words before"),
    "context": ("LSTM", "5-gram"),
    "reader_maps": ("reviews", "imdb"),
    "recurrent_attention": ("one vector, LSTM", "additive, before, GRU", "IBM Model 1", "the diagonal"),
    "small_encoder": ("pretraining", "pretraining, two passes", "pretraining, windows of 192", "word frequencies",
                      *(row for row in small_encoder.ROWS if "1,000" in row)),
    "pretrained": ("head only, 5,000 reviews", "adapters on every matrix, 5,000 reviews", "upper two layers, 5,000 reviews",
                   "layer-wise rates, 5,000 reviews", "all layers, 100 reviews",
                   "failure: no attention mask, 1,000 reviews"),
    "tuning": ("rate 0.006, width 32", "rate 0.012, width 16"),
}
NET = {"d_model": 8, "num_heads": 2, "d_ff": 8, "num_layers": 1}
TINY = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 1}
# what of a set's module is replaced; of a dictionary, the entries that are named
SHORT: dict[str, dict] = {
    "ablations": {"CHANGES": {
        row: change._replace(reviews=change.reviews and 20, options={**change.options, "epochs": 1})
        for row, change in ablations.CHANGES.items()}},
    "bottleneck": {"STEPS": 2, "EACH": 8, "TESTED": 4},
    "code_baselines": {"PLACES": 20},
    "code_completion": {"WINDOWS": (8, 32)},
    "code_elsewhere": {"language_model.LENGTH": 32},
    "completion_speed": {"CONTEXT": 32, "TURNS": 2, "REPEATED": 2, "LENGTHS": (8, 16), "PLACES": 2,
                         "language_model.MODEL": NET, "language_model.LENGTH": 16, "language_model.VOCAB_SIZE": 20},
    "context": {"DISTANCES": {5: 10, 50: 10, 500: 5, 1000: 5, 2000: 5}, "programs.EPOCH": 1, "programs.TOKENS": 64,
                "programs.MODEL": NET | {"num_heads": 4}, "ROWS": {
                    row: {"d_model": 8, "d_hidden": 8, "num_layers": 1} for row in context.ROWS if "LSTM" in row}},
    "facts": {"STEPS": 2, "TESTED": 20},
    "fine_tuning": {"recipe.PASSES": {100: 1, 1000: 1}},
    "heads": {"EACH": 3},
    "hour": {"EPOCHS": 1, "ASKED": 2},
    "imdb_better": {"RECIPE.fit": {"epochs": 1}, "NARROW": {"d_model": 8}},
    "imdb_order": {"CHANGES": {
        row: imdb_order.CHANGES[row] | {"epochs": 1} for row in (imdb_order.STARTED, imdb_order.BAG)}},
    "imdb_settings": {"STEPS": 2},
    "induction": {"FIT": {"epochs": 2}, "STEPS_EACH": 2, "ROWS": {
        induction.LONGER: induction.ROWS[induction.LONGER] | {"steps_each": 2, "epochs": 2}}},
    "language_model": {"MODEL": TINY, "LENGTH": 16, "FIT": {"epochs": 1}, "STRIDE": 8},
    "learning_curves": {"RECIPE.fit": {"epochs": 1}, "ROWS": {
        row: (network, amount._replace(reviews=50, passes=1)) for row, (network, amount) in learning_curves.ROWS.items()}},
    "prompting": {"ASKED": 4, "CHOOSING": 4},
    "real_language_model": {"LENGTH": 4, "TURNS": 2, "LENGTHS": (2, 4)},
    "llama_changes": {"SHAPE": {"vocab_size": 300, "d_model": 12, "num_layers": 1, "max_len": 16}, "CONTEXT": 16,
                      "BATCH": 2, "STEPS": 2, "WIDTH": 48},
    "multi30k": {"VOCAB_SIZE": 280, "BATCH_SIZE": 16, "TRANSFORMER": NET, "PUBLISHED": NET,
                 "RECURRENT": {"d_model": 8, "d_hidden": 8}, "ROWS": {
                     row: {**change, "epochs": 1, "vocab_size": 290} for row, change in multi30k.ROWS.items()}},
    "other_heads": {"REVIEWS": 80, "READ": 64, "TESTED": 20, "ASKED": 6, "ASKED_TESTED": 3},
    "parts": {"RECIPE.fit": {"epochs": 1}},
    "reader": {"STEPS": 9, "TEACHERS": (0,), "READS": dict.fromkeys(
        ("imdb", "reviews", "sentences", "written", "unsupervised", "cuts"), 70), "TEACHER_READS": dict.fromkeys(
        ("imdb", "reviews", "sentences", "written"), 50)},
    "reader_speed": {"TURNS": 2, "LONG": 2, "BATCH": 4, "MINILM": {"d_model": 24, "d_ff": 24, "num_layers": 1}},
    "recurrent_attention": {"FIT": {"epochs": 1}},
    "long_texts": {"DISTANT": tuple(long_texts.Stage(length, 1, 2, 2) for length in (256, 1024)),
                   "NEEDLE": tuple(long_texts.Stage(length, 1, 2, 2) for length in (256, 1024, 4096))},
    "luong_variants": {"recurrent.FIT": {"epochs": 1}},
    "reader_maps": {"STEPS": 2},
    "reader_more": {"STEPS": 3, "READS": {row: dict.fromkeys(reads, 40) for row, reads in reader_more.READS.items()}},
    "retrieval": {"NEW_TOKENS": 2, "FOUND": 1, "ORDERS": 2},
    "scaling_laws": {"HELD_OUT": 4, "PREDICTION": {"value": 2.0, "half": 0.1}, "LENGTH": 16,
                     "BATCH": 2},
    "scoreboard": {"RECIPE.fit": {"epochs": 1}},
    "sentiment_axis": {"CASES": {
        row: case._replace(reviews=case.reviews and 50, passes=1) for row, case in sentiment_axis.CASES.items()}},
    "small_encoder": {"VOCAB_SIZE": 60, "STEPS": 8, "PARTS": 2, "MODEL": TINY, "PRETRAININGS": {
        row: how._replace(length=29 if how.length > 127 else 19, batch_size=2)
        for row, how in small_encoder.PRETRAININGS.items()}},
    "static_vectors": {"STEPS": 4, "CHECKS": 2},
    "student": {"STEPS": 11, "MODEL": NET, "READS": dict.fromkeys(
        ("imdb", "reviews", "sentences", "unsupervised", "cuts"), 70), "TEACHER_READS": dict.fromkeys(
        ("imdb", "reviews", "sentences"), 50)},
    "summaries_by_copying": {"FIT": {"epochs": 1}},
    "t5": {"STEPS": 2, "LONGER": 1},
    "token_range": {"SCORED": {"validation": 60, "test": 100}, "RULES": {
        name: rule._replace(train=60, epochs=1) for name, rule in token_range.RULES.items()}},
    "toy_parts": {"STEPS": 2, "TESTED": 20},
    "translation": {"FIT": {"epochs": 1}},
    "tuning": {"RECIPE.fit": {"epochs": 1}},
    "translation_speed": {"LENGTH": 4, "SENTENCES": 2, "TURNS": 2, "STEPS": 1},
    "which_data": {"READ": 128},
}


def few(split: Dataset) -> Dataset:
    """Some thirty rows from all over a split, with their partners."""
    rows = {*range(0, len(split), max(1, len(split) // 30))}
    if "pair" in split.column_names:
        place = {own: row for row, own in enumerate(split["id"])}
        rows |= {place[partner] for row, partner in enumerate(split["pair"]) if row in rows and partner is not None}
    return split.select(sorted(rows))


@functools.cache
def few_reviews(source: str, unsupervised: bool = False) -> DatasetDict:
    """`load_reviews` in small; IMDb's reviews are made up."""
    if source != "imdb":
        return DatasetDict({name: few(split) for name, split in load_reviews(source).items()})
    made = {"train": made_reviews(120, 0), "test": made_reviews(12, 1)}
    made |= {"unsupervised": made_reviews(40, 2, label=-1)} if unsupervised else {}
    return DatasetDict(made)


def few_translations(source: str) -> DatasetDict:
    """`load_translations("multi30k")` in small, made up."""
    counts = {"train": 60, "validation": 12, "test": 20}
    pairs = {split: made_translations(count, seed) for seed, (split, count) in enumerate(counts.items())}
    return DatasetDict({split: Dataset.from_dict({"source": english, "target": french})
                        for split, (english, french) in pairs.items()})


def few_codes(split: str) -> list[Module]:
    """Some modules of a split."""
    source = "def {0}(value):\n    total = value + {1}\n    return {0}_total(total, value)\n"
    names = ["alpha", "gamma", "delta", "omega", "sigma", "theta", "kappa"]
    chosen = {"train": names, "validation": names[2:4], "test": names[3:6], "repository": names[6:]}[split]
    return [Module(f"{name}.py", split, source.format(name, i) * 9) for i, name in enumerate(chosen)]


# what of all modules is replaced, by the name that they know it by
EVERYWHERE = {
    "load_reviews": few_reviews, "load_translations": few_translations, "load_standard_library": few_codes,
    "package_at": lambda commit: {module.path: module.text for module in few_codes("repository")},
}


def summaries(patch, made) -> None:
    corpus, twins = ({name: {key: column[:40] for key, column in split.items()} for name, split in made.corpus().items()},
                     [{key: column[:5] for key, column in rows.items()} for rows in made.name_twins()])
    made.words()                                        # of the whole corpus
    patch.setattr(made, "corpus", lambda: corpus)
    patch.setattr(made, "name_twins", lambda: twins)
    patch.setattr(copied_summaries, "LONGEST", 3)


def word_tables(patch, made) -> None:
    """Random vectors for the reader's pieces, which are those of the small BERT here; other words to look up."""
    encoder, tokenizer = made.pretrained.base()
    patch.setattr(made, "reader_table", lambda: (tokenizer.vocabulary, torch.randn(encoder.embedding.weight.shape)))
    words = [piece for piece in tokenizer.vocabulary if len(piece) > 1 and piece.isalpha()]
    patch.setattr(made, "SHOWN", words[:2])
    patch.setattr(made, "ANALOGIES", [words[:3]])


def translators_of_pairs(patch, made) -> None:
    whole, test = transformers.translations(), transformers.translations()["test"]
    names, rows = list(test["id"]), [i for i, kind in enumerate(test["kind"]) if kind == "pronoun"][:2]
    twins = [names.index(test["pair"][i]) for i in rows]
    splits = {"train": whole["train"].select(range(64)), "validation": test.select(range(8)),
              "test": test.select([*range(6), *rows, *twins])}
    data = PairBatches(encode_pairs(splits["train"], *transformers.word_lists()), 64)
    for module in (made, transformers):
        patch.setattr(module, "translations", lambda: splits)
        patch.setattr(module, "training_data", lambda: data)


def recurrent(patch, made) -> None:
    whole = translators.translation_corpus()
    corpus = whole._replace(
        splits={name: split.select(range(40)) for name, split in whole.splits.items()},
        pairs={name: EncodedPairs(pairs.source[:40], pairs.target[:40]) for name, pairs in whole.pairs.items()})
    patch.setattr(getattr(made, "recurrent", made), "translation_corpus", lambda: corpus)


def code_models(patch, made) -> None:
    """A random model in place of those that come with the course."""
    completer = transformer()
    patch.setattr(CodeCompleter, "load", lambda *name: completer)


def few_questions(patch, made) -> None:
    """Four questions, the last without an answer; the passages that answer them, and some others; a random model."""
    everything = made.course_questions()
    questions = [*everything[:3], next(one for one in everything if not one["sections"])]
    keys = {key for one in questions for key in one["sections"]}
    passages = [one for i, one in enumerate(made.pages()) if one.key in keys or i % 40 == 0]
    patch.setattr(made, "course_questions", lambda: questions)
    patch.setattr(made, "pages", lambda: passages)
    patch.setattr(made, "chat_model", lambda: random_llama()[:2])


def maps(patch, made) -> None:
    corpora = {name: split.select(range(12)) for name, split in made.corpora().items()}
    patch.setattr(made, "corpora", lambda: corpora)


def whole_reviews(patch, made) -> None:
    """The opinion words can't be found in a few reviews."""
    patch.setattr(made, "load_reviews", load_reviews)


def readers(patch, made) -> None:
    """A reader of seed 0, as it begins."""
    reader.keep("reader", 0, Trained(reader.begin((0, 1)), FitResult([], 0, 0.0), {}))


def small_encoder_for_few(patch, made) -> None:
    """The small BERT in place of the course's encoder, and some thirty texts of each split."""
    loaded = functools.partial(load_bert, "minilm")
    patch.setattr(made.recipe, "load_reviews", few_reviews)
    for module in (made, made.recipe):
        patch.setattr(module, "load_bert", lambda name, **changes: loaded(**changes))


def random_chat(patch, made) -> None:
    """A Llama of random numbers where the published one is looked for."""
    checkpoint_of(random_llama(), Path(os.environ["COURSE_MODELS"]) / "smollm2")


def prompts(patch, made) -> None:
    """The random Llama, asked about whole reviews: examples are drawn from 300."""
    random_chat(patch, made)
    patch.setattr(made, "load_reviews", load_reviews)


SPECIAL = {"code_completion": code_models, "code_elsewhere": code_models, "completion_speed": code_models,
           "fine_tuning": small_encoder_for_few, "heads": whole_reviews,
           "reader_maps": maps, "reader_more": readers, "reader_vectors": word_tables,
           "summaries_by_copying": summaries, "translation": translators_of_pairs, "recurrent_attention": recurrent,
           "luong_variants": recurrent, "real_language_model": random_chat,
           "prompting": prompts, "retrieval": few_questions}


def meanings() -> list[str]:
    """Every word of the sentences of data/meanings."""
    texts = [one.text for one in load_senses()] + [text for pair in load_pronouns() for text in pair.texts]
    return sorted({word for text in [*texts, *pretrained_vectors.FAMOUS]
                   for word in re.findall(r"[a-z]+|[^\sa-z]", text.lower())})


def clear_caches() -> None:
    """Forget what the sets' modules have computed."""
    for name, module in list(sys.modules.items()):
        if name.startswith("course_tools.studies"):
            for value in vars(module).values():
                if callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()


def replace(patch, module, values: dict) -> None:
    """Put values into a module; "other.NAME" is a NAME of a module that it knows as `other`; dictionaries are updated."""
    for name, value in values.items():
        *before, last = name.split(".")
        owner = functools.reduce(getattr, before, module)
        old = getattr(owner, last)
        for key, new in value.items() if isinstance(value, dict) and isinstance(old, dict) else ():
            patch.setitem(old, key, new)
        if not (isinstance(value, dict) and isinstance(old, dict)):
            patch.setattr(owner, last, value)


def small_set(name: str, patch, folder: Path) -> ResultSet:
    """A set whose every row can be made within seconds, with `folder` for models and outputs, until `patch` is undone."""
    made = sys.modules[f"course_tools.studies.sets.{name}"]
    save_small_bert(folder / "models" / "minilm", meanings() if "_vectors" in name else ())
    patch.setenv("COURSE_MODELS", str(folder / "models"))
    patch.setenv("COURSE_OUTPUTS", str(folder / "outputs"))
    for path, module in list(sys.modules.items()):
        if path.startswith("course_tools.studies"):
            for known, new in EVERYWHERE.items():
                if hasattr(module, known):
                    patch.setattr(module, known, new)
            if getattr(module, "VOCAB_SIZE", 0) == 4096:
                patch.setattr(module, "VOCAB_SIZE", 300)
            if hasattr(module, "first_there") and hasattr(module, "NAME"):
                patch.setattr(module, "NAME", "minilm")
    replace(patch, made, SHORT.get(name, {}))
    clear_caches()
    if name in SPECIAL:
        SPECIAL[name](patch, made)
    return dataclasses.replace(made.SET, rows=ROWS[name], change=made.SET.describe) if name in ROWS else made.SET
