"""Reviews and their labels: the course's own, IMDb's, SST-2's, or those of your own file.

What it does: `load_reviews` returns a `datasets.DatasetDict` whose splits hold a string column `text` and a
`ClassLabel` column `label`; `split_reviews` makes a validation split; `by_kind` and `pairs` find rows.
What it does not do: tokenize, clean or shuffle (IMDb keeps its `<br />`), or read more than fits in memory. The
formats are read in `review_files`, IMDb and SST-2 in `hub`, which alone touches the network and the `datasets` cache.
`load_translations`, for English sentences with French translations, is explained in `translations`.
"""

from __future__ import annotations

import os
import random
import re
import unicodedata
import warnings
from pathlib import Path

from datasets import Dataset, DatasetDict

from course_utils.data.folders import split_files
from course_utils.data.hub import HUB_TIMEOUT, IMDB, SST2, DataNotAvailable, load_corpus
from course_utils.data.review_files import LABEL_NAMES, SOURCES, load_files
from course_utils.data.translations import load_translations
from course_utils.files.paths import DATA as DATA_FOLDER

__all__ = ["DATA_FOLDER", "LABEL_NAMES", "DataNotAvailable", "by_kind", "find_folder", "load_reviews",
           "load_translations", "normalised", "pairs", "split_reviews"]


def find_folder(name: str = "") -> Path:
    """The course's data folder, or the folder `name` in it, such as "reviews". Raises DataNotAvailable."""
    folder = DATA_FOLDER / name
    if not folder.is_dir():
        raise DataNotAvailable(f"there is no folder {folder}; expected data/ beside course_utils/, as in a "
                               "clone of the repository; install the package from there: pip install -e .")
    return folder


def load_reviews(source: str | Path = "reviews", *, unsupervised: bool = False,
                 timeout: float = HUB_TIMEOUT) -> DatasetDict:
    """Labelled reviews as a DatasetDict, held in memory; label 0 is negative and 1 positive.

    source: one of
        "reviews": the course's reviews; train, validation and test; columns id, text, label, kind, evidence
            (a list of character spans [start, end)), pair (the partner's id or None), frame, unseen_frame.
        "handwritten": the hand-written reviews; test alone; the same columns where they apply.
        "ordinary": 300 ordinary sentences about films, for testing only; test alone; the same columns as "handwritten",
            but other kinds: plain, negation, contrast, expectation, irony, others, comparison.
        "ordinary_second": 300 other sentences with the same columns, kinds and counts, kept back for one look at the end
            of a study: choose nothing on them, neither a model nor a setting.
        "ordinary_third": 300 more, by a writer who hadn't seen the other two or anything that the course trains on.
        "sentences": 14,500 short sentences in which a construction decides what an opinion comes to; train, validation and
            test; the same kinds as "ordinary"; columns id, text, label, kind, evidence, pair, construction (its name),
            unseen (what it has that training doesn't: "", "construction", "opinion" or "construction and opinion").
        "written": 2,096 sentences, written one by one to train on; train, validation and test; the same kinds as
            "ordinary", and the columns of "handwritten".
        "written_more": 7,575 more of these, among them short reviews of two to five sentences.
        "imdb": train and test, and unsupervised (label -1) if asked for. From the folder that the variable
            COURSE_DATA names (it, or imdb/ in it, holds plain_text/*.parquet); where it is not set, from the
            `datasets` cache or the hub. A folder's files may be shorter than 25,000 rows: see `num_rows`.
        "sst2": train and validation of SST-2, as in GLUE (Socher et al. 2013): single sentences of film reviews, and in
            train phrases of them, in small letters and with spaces between words and punctuation. Its test split is
            left out, since its labels are secret (each is -1). From the same places as IMDb; the folder that COURSE_DATA
            names, or sst2/ in it, holds data/*.parquet.
        a path: a CSV, TSV, JSON Lines or Parquet file, which becomes train, or a folder of such files named
            train, validation and test, or of pieces (train-00000-of-00002.parquet), as a copy from the hub has them;
            or a folder with a text in each file and a folder for each label, as IMDb's archive (aclImdb) has them; or
            what `save_to_disk` of datasets wrote. Columns text and label, in any case; others are kept, unless their
            values are of several types, which is warned of. Labels are 0 and 1, or names: neg and pos become negative
            and positive, and so do false and true, whether a file has them as words or, as JSON and Parquet can, as
            values; others are kept and numbered as sorted.
            A string that is one of the names above always means the course's own data, with a warning where a file or
            folder of your own has that name, too; that one is "./reviews", or Path("reviews").
    timeout: seconds to wait for the hub to answer, and for a transfer that has stalled.

    Raises FileNotFoundError for a path that is not there, ValueError for a file that cannot be used (it names
    the row), TypeError for a source that is neither a string nor a path, DataNotAvailable where the course's
    data folder, IMDb or SST-2 cannot be had.
    """
    if not isinstance(source, (str, Path)):
        raise TypeError(f"got {type(source).__name__} as the source; expected {SOURCES} or "
                        "the path of a file or folder; for a list of texts use datasets.Dataset.from_dict")
    _warn_of_a_namesake(source)
    if source == "imdb":
        return load_corpus(IMDB, ["train", "test"] + ["unsupervised"] * unsupervised, timeout)
    if source == "sst2":
        if unsupervised:
            raise ValueError(f"SST-2 has no unsupervised reviews; expected unsupervised=False; {SST2.remark}")
        return load_corpus(SST2, ["train", "validation"], timeout)
    if source in ("reviews", "sentences", "written", "written_more"):
        return load_files(split_files(find_folder(source)))
    if source in ("handwritten", "ordinary", "ordinary_second", "ordinary_third"):
        return load_files({"test": [find_folder() / f"{source}.jsonl"]})
    try:
        path = Path(source).expanduser() if str(source).strip() else None
        folder = path is not None and path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, or ~ with the name of nobody
        raise FileNotFoundError(f"there is no file {str(source)[:80]!r} ({getattr(error, 'strerror', None) or error}); "
                                f"expected {SOURCES} or the path of a file or folder") from None
    if path is None:
        raise FileNotFoundError(f"got {source!r} as the source; expected {SOURCES} or the "
                                "path of a file or folder")
    return load_files(split_files(path) if folder else {"train": [path]})


def _warn_of_a_namesake(source: str | Path) -> None:
    """Say so where a name of the course's data is also that of a file or folder here."""
    known, here = re.findall(r"'(\w+)'", SOURCES), Path.cwd()
    if not isinstance(source, str) or source not in known or not os.path.lexists(source):
        return
    named = os.environ.get("COURSE_DATA")
    read = [DATA_FOLDER, *([Path(named).expanduser().resolve()] if named else [])]
    if not {here, (here / source).resolve()} & set(read):
        warnings.warn(f"{source!r} is the course's own data; {here / source} isn't read: for that write './{source}'",
                      stacklevel=3)


def normalised(text: str) -> str:
    """The text for comparisons: one case, one kind and width of space: normalised(" A  Film\n") -> "a film"."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def split_reviews(dataset: Dataset | DatasetDict, validation: float = 0.1, seed: int = 0) -> DatasetDict:
    """Splits reviews into train and validation, stratified by label; further splits are kept as they are.

    dataset: a Dataset, or a DatasetDict with train and without validation.
    validation: the fraction of the rows that goes to validation, between 0 and 1.
    Reviews of the same text, and the two halves of a pair, stay together; texts are the same if they
    differ only in case or in white space. Rows keep their order.
    Raises ValueError for another fraction, other splits, or too few reviews.
    """
    if not 0 < validation < 1:
        raise ValueError(f"got validation={validation}; expected a fraction between 0 and 1; try 0.1")
    splits = dataset if isinstance(dataset, DatasetDict) else DatasetDict(train=dataset)
    if "train" not in splits or "validation" in splits:
        raise ValueError(f"got the splits {list(splits)}; expected train and no validation; use the "
                         "validation that is there, or pass a single split")
    columns = splits["train"].to_dict()
    texts = [normalised(text) for text in columns["text"]]
    leader = {}  # from an id or a text towards the one that stands for its group

    def find(key):
        while leader.setdefault(key, key) != key:
            key = leader[key]
        return key

    for text, own, partner in zip(texts, columns.get("id", texts), columns.get("pair", [None] * len(texts))):
        if partner:
            leader[find(("id", str(own)))] = find(("text", text))
            leader[find(("id", str(partner)))] = find(("text", text))
    groups, strata = {}, {}
    for row, text in enumerate(texts):
        groups.setdefault(find(("text", text)), []).append(row)
    for group in groups.values():
        strata.setdefault(tuple(sorted({columns["label"][row] for row in group})), []).append(group)
    chosen = set()
    for labels, stratum in sorted(strata.items()):
        random.Random(f"{seed} {labels}").shuffle(stratum)
        target = len(chosen) + max(1, round(validation * sum(map(len, stratum))))
        for group in stratum[:-1]:  # the last group always stays in train
            if len(chosen) < target:
                chosen.update(group)
    if not chosen:
        paired = " (the two halves of a pair count as one, by the column pair)" if "pair" in columns else ""
        raise ValueError(f"got {len(groups)} different reviews for {len(set(columns['label']))} labels{paired}; expected at "
                         "least two of a label, one for each side; add reviews")
    kept = [row for row in range(len(texts)) if row not in chosen]
    parts = {"train": splits["train"].select(kept), "validation": splits["train"].select(sorted(chosen))}
    return DatasetDict(parts | {name: split for name, split in splits.items() if name != "train"})


def by_kind(dataset: Dataset) -> dict[str, list[int]]:
    """The rows of each kind of review, kinds in order of appearance: {"plain": [0, 3], "order": [1, 2]}."""
    rows = {}
    for row, kind in enumerate(_column(dataset, "kind")):
        rows.setdefault(kind, []).append(row)
    return rows


def pairs(dataset: Dataset) -> list[tuple[int, int]]:
    """The minimal pairs of one split as (row, partner's row), each pair once, the lower row first.

    Raises ValueError when a partner is not in this dataset.
    """
    row_of = {own: row for row, own in enumerate(_column(dataset, "id"))}
    partners = {row: partner for row, partner in enumerate(_column(dataset, "pair")) if partner is not None}
    for row, partner in partners.items():
        if partner not in row_of:
            raise ValueError(f"row {row} has the partner {partner!r}, which is not in this dataset; expected "
                             "both halves of each pair; look for pairs before selecting rows")
    return [(row, row_of[partner]) for row, partner in partners.items() if row < row_of[partner]]


def _column(dataset: Dataset, name: str) -> list:
    if name not in getattr(dataset, "features", ()):
        raise ValueError(f"got {dataset}, without a column {name!r}; expected one split of the course's "
                         "reviews, such as load_reviews()['test']")
    return list(dataset[name])
