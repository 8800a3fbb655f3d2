"""Counts on IMDb that show what real reviews look like: lengths, markup, constructions, vocabulary; no text is kept.

Takes the reviews from the hub, or from the folder that COURSE_DATA names. Writes data/results/imdb_facts.json, which
notebooks 01, 02 and 09 quote: IMDb's training reviews, compared with the course corpus and the hand-written reviews.

    python -m course_tools imdb-facts
"""

import argparse
import re
import statistics
import sys
import tomllib
from collections import Counter

from course_utils.data import DataNotAvailable, load_reviews
from course_utils.files import write_json
from course_utils.files.paths import DATA
from course_utils.results import FOLDER, fingerprint
from course_utils.tokenization import WordTokenizer

BANK = DATA / "reviews" / "bank"
VOCABULARY_SIZES = [1000, 2000, 5000, 10000, 15000, 20000, 50000]
MAX_LEN = 256
NEGATORS = set("not no never nothing nobody none neither nor hardly barely scarcely without cannot".split())
CONTRASTS = set("but however although though yet despite nevertheless nonetheless".split())
STREET_OPINIONS = set("good great bad better best worse worst nice fine poor interesting funny worth enjoyed".split())


def opinion_words() -> set[str]:
    """The adjectives in the course corpus's phrase bank, and the commonest ones in real reviews."""
    bank = tomllib.loads((BANK / "opinions.toml").read_text(encoding="utf-8"))
    listed = [word for part in bank["adjectives"].values() for words in part.values() for word in words]
    return {word for word in listed if " " not in word} | STREET_OPINIONS


def constructions(texts: list[str], opinions: set[str]) -> tuple[dict[str, float], dict[str, float]]:
    """In what fraction of the texts each construction occurs at least once, and how often in 100 words.

    The second can be compared between collections whose texts differ in length.
    """
    counts, times, total = Counter(), Counter(), 0
    for text in texts:
        words = re.findall(r"\w+(?:['’]\w+)*", text.lower())
        negated = [word in NEGATORS or word.endswith(("n't", "n’t")) for word in words]
        found = {
            "a negator": sum(negated),
            "a negator up to three words before an opinion": sum(
                negated[i] and any(word in opinions for word in words[i + 1 : i + 4]) for i in range(len(words))),
            "a word of contrast": sum(word in CONTRASTS for word in words),
            "an opinion word": sum(word in opinions for word in words),
            "line-break markup": text.count("<br"),
        }
        total += len(words)
        for name, count in found.items():
            counts[name] += count > 0
            times[name] += count
    return ({name: round(count / len(texts), 4) for name, count in counts.items()},
            {name: round(100 * count / total, 4) for name, count in times.items()})


def lengths(counts: list[int]) -> dict:
    """Quantiles of the lengths in tokens, the share over MAX_LEN, and a histogram in steps of 50."""
    ordered = sorted(counts)
    at = {f"{q}%": ordered[min(len(ordered) - 1, len(ordered) * q // 100)] for q in (5, 25, 50, 75, 95)}
    steps = Counter(min(count // 50, 20) * 50 for count in counts)
    return {
        **at, "longest": ordered[-1], "mean": round(statistics.fmean(counts), 1),
        f"over {MAX_LEN}": round(sum(count > MAX_LEN for count in counts) / len(counts), 4),
        "histogram": {str(step): round(steps[step] / len(counts), 5) for step in sorted(steps)},
    }


def unknown_rates(train: list[list[str]], others: dict[str, list[list[str]]]) -> list[dict]:
    """Share of word tokens outside the most frequent words of `train`, for each size of the vocabulary."""
    counts = Counter(word for words in train for word in words)
    ranked = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    rows = []
    for size in VOCABULARY_SIZES:
        known = set(ranked[: size - 2])                 # two ids are <pad> and <unk>
        row = {"size": size}
        for name, texts in others.items():
            total = sum(map(len, texts))
            row[name] = round(sum(word not in known for words in texts for word in words) / total, 5)
        rows.append(row)
    return rows


def describe(split, opinions: set[str], tokenizer: WordTokenizer) -> tuple[dict, list[list[str]]]:
    """The facts of one collection, and its texts as words."""
    words = [[token.text for token in tokenizer.tokenize(text)] for text in split["text"]]
    occurs, rates = constructions(split["text"], opinions)
    return {
        "reviews": len(split), "positive": round(sum(split["label"]) / len(split), 4),
        "copies": len(split) - len(set(split["text"])), "tokens": lengths([len(review) for review in words]),
        "constructions": occurs, "constructions in 100 words": rates,
    }, words


def main(arguments: list[str] | None = None) -> int:
    """Count, write the file, print it; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    try:
        imdb = load_reviews("imdb")
    except DataNotAvailable as error:
        print(error, file=sys.stderr)
        return 1
    made, hand = load_reviews("reviews"), load_reviews("handwritten")["test"]
    opinions = opinion_words()
    tokenizer = WordTokenizer.train(made["train"]["text"])
    street = WordTokenizer.train(imdb["train"]["text"], max_size=15000)
    facts = {"data": fingerprint(list(imdb["train"]["text"])), "max_len": MAX_LEN, "opinions": len(opinions)}
    words = {}
    for name, split in {"IMDb": imdb["train"], "made": made["train"], "hand-written": hand}.items():
        facts[name], words[name] = describe(split, opinions, tokenizer)
    words["IMDb test"] = [[token.text for token in tokenizer.tokenize(text)] for text in imdb["test"]["text"]]
    facts["vocabulary"] = {
        "distinct words": len({word for review in words["IMDb"] for word in review}),
        "words seen once": sum(n == 1 for n in Counter(w for review in words["IMDb"] for w in review).values()),
        "unknown": unknown_rates(words["IMDb"], {"test": words["IMDb test"], "hand-written": words["hand-written"]}),
        "IMDb test read with the course's vocabulary": unknown_share(tokenizer, imdb["test"]["text"]),
        "IMDb test read with IMDb's 15,000": unknown_share(street, imdb["test"]["text"]),
        "course's reviews read with IMDb's 15,000": unknown_share(street, made["test"]["text"]),
        "hand-written read with IMDb's 15,000": unknown_share(street, hand["text"]),
    }
    path = FOLDER / "imdb_facts.json"
    write_json(path, facts)
    print(path.read_text(encoding="utf-8"))
    return 0


def unknown_share(tokenizer: WordTokenizer, texts: list[str]) -> float:
    """Share of the tokens that become `<unk>`."""
    unknown = total = 0
    for text in texts:
        ids = tokenizer.encode(text)
        unknown, total = unknown + ids.count(tokenizer.unk_id), total + len(ids)
    return round(unknown / total, 5)
