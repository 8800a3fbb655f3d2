"""What the training command asks before it trains: an output folder it can write to, reviews a model can learn from.

Does: refuse with a ValueError that says what was got, what was expected and what to do; count texts that training shares
with other splits. Does not: read files (see `review_files`) or know options (see `training_options`).
"""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch

from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.data import normalised, split_reviews
from course_utils.training.plain_text import PlainWords
from course_utils.training.saved_files import INSIDE

__all__ = [
    "RESULT", "STATE", "check_model", "check_output", "check_vocabulary", "ready_to_train", "shared_texts", "warnings_for",
]

RESULT, STATE = "result.json", "training_state.safetensors"


def check_output(output: str, data: str) -> Path:
    """The output folder as a Path, if it can be made and written to. Nothing is made or written yet."""
    folder = Path(os.path.expanduser(output))
    found = next((part for part in (folder, *folder.parents) if os.path.lexists(part)), Path())
    if not output.strip() or not found.is_dir() or not os.access(found, os.W_OK | os.X_OK):
        raise ValueError(f"got {output!r:.80} as the output, and {found} isn't a folder that you can write to; expected a "
                         "folder for the classifier, or a new name, such as outputs/mine")
    source = Path(os.path.expanduser(data))
    for name in (RESULT, STATE, INSIDE, ".lock"):
        if os.path.isdir(folder / name):
            raise ValueError(f"{folder / name} is a folder; expected a file there, or nothing; choose another output")
        if os.path.isfile(source) and os.path.realpath(source) == os.path.realpath(folder / name):
            raise ValueError(f"{source} would be overwritten by the training's own {name}; choose another output")
    return folder


def ready_to_train(dataset, source: str):
    """The dataset with a validation split, made if there is none, once a model can learn from it and be judged by it."""
    if "train" not in dataset:
        raise ValueError(f"{source} has no training reviews, only the split {' and '.join(dataset)}; expected a file, or a "
                         "folder with a file called train; for the course's own reviews use 'reviews'")
    for split, reviews in dataset.items():
        if reviews.num_rows == 0:
            raise ValueError(f"{source}: {split} holds no reviews; expected one row or more")
    names = dataset["train"].features["label"].names
    counts = {split: Counter(names[label] for label in reviews["label"] if label >= 0) for split, reviews in dataset.items()}
    if len(counts["train"]) < 2:
        only = next(iter(counts["train"]), "none")
        raise ValueError(f"{source}: all training reviews have the label {only!r}; expected reviews of two classes or more, "
                         "or there is nothing to learn; add reviews of another")
    missing = [name for name in names if name not in counts["train"]]
    if missing:
        where = [split for split in counts if missing[0] in counts[split]]
        raise ValueError(f"{source}: the label {missing[0]!r} is in {' and '.join(where) or 'no split'} and not in train; "
                         "expected training reviews of every label; add some, or correct the label")
    if "validation" not in dataset:
        dataset = _with_validation(dataset, source, counts["train"])
        counts["validation"] = Counter(names[label] for label in dataset["validation"]["label"])
    elif len(counts["validation"]) < 2:
        only = next(iter(counts["validation"]), "none")
        raise ValueError(f"{source}: all validation reviews have the label {only!r}; expected two classes or more, or no "
                         "epoch can be chosen by them; add reviews of another, or take the file away")
    given = _labels_by_text(dataset["train"])
    if all(len(labels) > 1 for labels in given.values()):
        raise ValueError(f"{source}: each of the {len(given)} different training texts has more than one label; expected "
                         "one label for a text, or there is nothing to learn; correct the labels")
    return dataset


def _with_validation(dataset, source: str, counts: Counter):
    """Split off validation reviews of every label, or say which label has too few."""
    labels, texts = dataset["train"]["label"], dataset["train"]["text"]
    names = dataset["train"].features["label"].names
    different = {name: set() for name in counts}
    for label, text in zip(labels, texts):
        different[names[label]].add(normalised(text))
    fewest = min(different, key=lambda name: len(different[name]))
    explained = ("expected two different reviews or more of each label, one to train on and one to choose the epoch by; "
                 "add reviews, or give a folder with a file called validation")
    if len(different[fewest]) < 2:
        rows = f"{counts[fewest]} {'row' if counts[fewest] == 1 else 'rows with the same text'}"
        raise ValueError(f"{source}: the label {fewest!r} has {rows}; {explained}")
    try:
        split = split_reviews(dataset, seed=0)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    for side in ("train", "validation"):
        absent = set(counts) - {names[label] for label in split[side]["label"]}
        if absent:                                      # texts with two labels, or pairs, that cannot be parted
            raise ValueError(f"{source}: the reviews with the label {min(absent)!r} cannot be divided into training and "
                             f"validation; {explained}")
    return split


def shared_texts(dataset) -> dict[str, dict[str, int]]:
    """How many texts of each other split are in train too: {"test": {"reviews": 200, "same": 3, "but_for_case": 1}}.

    `same`: exactly; `but_for_case`: only after capitals and white space are made equal. Splits that share none are left out.
    """
    exact, folded = set(dataset["train"]["text"]), {normalised(text) for text in dataset["train"]["text"]}
    found = {}
    for split in (name for name in ("validation", "test") if name in dataset):
        texts = list(dataset[split]["text"])
        same = sum(text in exact for text in texts)
        alike = sum(text not in exact and normalised(text) in folded for text in texts)
        if same or alike:
            found[split] = {"reviews": len(texts), "same": same, "but_for_case": alike}
    return found


def _labels_by_text(reviews) -> dict[str, set[int]]:
    """The labels that each text has, texts that differ only in case or spaces taken together."""
    labels = {}
    for text, label in zip(reviews["text"], reviews["label"]):
        labels.setdefault(normalised(text), set()).add(label)
    return labels


def warnings_for(dataset) -> list[str]:
    """Sentences about reviews that a model can be trained on, and whose scores would say less than they seem to."""
    found = []
    for split, shared in shared_texts(dataset).items():
        found.append(
            f"{shared['same'] + shared['but_for_case']} of {shared['reviews']} {split} texts are in train too "
            f"({shared['same']} exactly, {shared['but_for_case']} but for capitals or spaces), so the {split} accuracy says "
            "less about new texts; take them out of one of the two"
        )
    labels = _labels_by_text(dataset["train"])
    undecided = sum(len(given) > 1 for given in labels.values())
    if undecided:
        found.append(f"{undecided} of {len(labels)} different training texts have more than one label, and no model can "
                     "learn both; correct the labels, or delete these rows")
    if "test" in dataset and len(set(dataset["test"]["label"])) < 2:
        found.append("all test reviews have the same label, so a model that always gives this one would be right each time; "
                     "add test reviews of another")
    return found


def check_vocabulary(texts: Iterable[str], min_freq: int) -> None:
    """Refuse texts in which no word is frequent enough for the vocabulary: to the model every word would be unknown."""
    counts, tokenizer = Counter(), PlainWords(["<pad>", "<unk>"])
    for text in texts:
        for token in tokenizer.tokenize(text):
            counts[token.text] += 1
            if counts[token.text] >= min_freq and token.text[0].isalnum():
                return
    if min_freq == 1:
        raise ValueError("there is no word in the training texts, only punctuation, so the model would know none; expected "
                         "texts of words; check the column text")
    raise ValueError(f"no word is in the training texts {min_freq} times or more, so the model would know none; expected "
                     "texts with words in common; add reviews, or use --set min_freq=1")


def check_model(config: ClassifierConfig) -> None:
    """Refuse options that don't go together, and a model that this computer's memory can't hold. Nothing is allocated."""
    try:
        with torch.device("meta"):
            parameters = sum(p.numel() for p in SelfAttentionClassifier(config).parameters())
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except RuntimeError as error:                       # a size that cannot be counted
        raise ValueError(f"these options describe a model that cannot be built ({error}); choose smaller ones") from None
    except (AttributeError, OSError):                   # a system that doesn't tell its memory
        return
    needed = 4 * 6 * parameters                         # bytes: weights, gradients, two moments, the best weights, one copy
    if needed > memory:
        raise ValueError(f"a model of {parameters:,} parameters takes {needed / 2**30:,.0f} GiB of memory to train, and "
                         f"this computer has {memory / 2**30:,.0f} GiB; use a smaller d_model, d_ff, num_layers or max_size")
