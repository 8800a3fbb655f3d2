"""Search in passages: BM25 by counted words, vectors by an encoder, or both.

Does: cut a notebook's prose into passages, rank them for a question, measure recall,
write a prompt with passages in it. Does not: know the course's notebooks, or load a
model (see `course_utils.asking`).

Exported from notebooks/22_retrieval.ipynb: edit it there.
"""

import math
import re
from collections import Counter
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.tokenization import pad_batch

__all__ = ["BM25", "Passage", "NOT_FOR_READING", "cut", "SMALL", "words_of", "sections_of", "mean_vectors", "combined",
           "ASKED", "grounded_prompt"]


class BM25:
    """Scores of documents, lists of words, for a query (Robertson and others 1994).

    `k1` says how soon repeats of a word stop counting, `b` how far a long document is
    held to account for its length.

    Taught in 22_retrieval, '2. BM25'.
    """

    def __init__(self, documents: list[list[str]], k1: float = 1.2, b: float = 0.75):
        self.counts = [Counter(document) for document in documents]
        self.lengths = [len(document) for document in documents]
        self.mean = sum(self.lengths) / len(documents)
        self.k1, self.b = k1, b
        self.within = Counter(word for counts in self.counts for word in counts)

    def rarity(self, word: str) -> float:
        """How much a word says: much if few documents have it; idf in books."""
        n = self.within[word]
        return math.log(1 + (len(self.counts) - n + 0.5) / (n + 0.5))

    def weight(self, count: int, length: int) -> float:
        """What `count` occurrences in a document of `length` words are worth."""
        long = 1 - self.b + self.b * length / self.mean
        return count * (self.k1 + 1) / (count + self.k1 * long)

    def scores(self, query: list[str]) -> Tensor:
        """(documents,): the sum over the query's words of rarity times weight."""
        values = torch.zeros(len(self.counts))
        for word in set(query):
            rarity = self.rarity(word)
            for i, counts in enumerate(self.counts):
                if word in counts:
                    values[i] += rarity * self.weight(counts[word], self.lengths[i])
        return values

    def share(self, query: list[str]) -> float:
        """The best score, as a fraction of what the query's words could reach."""
        possible = sum(self.rarity(word) for word in set(query)) * (self.k1 + 1)
        return self.scores(query).max().item() / possible if possible else 0.0


class Passage(NamedTuple):
    """A piece of a notebook: the file's name, the title, the heading, the text.

    Taught in 22_retrieval, '3. The course as a pile of passages'.
    """

    notebook: str
    title: str
    section: str
    text: str

    @property
    def key(self) -> str:
        """Which section it is, by number where it has one: '04_attention/4'."""
        number = re.match(r"\d+(?=\.)", self.section)
        return f"{self.notebook}/{number[0] if number else self.section}"

    @property
    def place(self) -> str:
        """Where to read on: '04 Attention, 4. Why √d_k'."""
        return f"{self.title}, {self.section}"


NOT_FOR_READING = r"(Exercise|Check yourself|Further reading)\b"


def cut(name: str, cells: list[dict], longest: int = 80) -> list[Passage]:
    """A notebook's markdown in passages of about `longest` words, cut at paragraphs.

    Taught in 22_retrieval, '3. The course as a pile of passages'.
    """
    found, title, section = [], "", ""              # (title, section, paragraphs) each
    for cell in cells:
        if cell["cell_type"] != "markdown":
            continue
        text = "".join(cell["source"])
        text = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
        found.append((title, section, []))
        size, skip = 0, False   # what follows an exercise's cell is the section's again
        for paragraph in re.split(r"\n\s*\n", text):
            if heading := re.match(r"(#{1,4}) (.+)", paragraph):
                skip = bool(re.match(NOT_FOR_READING, heading[2]))
                if skip:
                    continue
                if heading[1] == "#":
                    title, section = heading[2], "Opening"
                elif heading[1] == "##":
                    section = heading[2]
                found.append((title, section, []))
                if len(heading[1]) > 2:
                    found[-1][-1].append(heading[2] + ".")
                paragraph, size = paragraph.partition("\n")[2], 0
            if skip or not paragraph.strip():
                continue
            if found[-1][-1] and size + len(paragraph.split()) > longest:
                found.append((title, section, []))
                size = 0
            found[-1][-1].append(paragraph.strip())
            size += len(paragraph.split())
    return [Passage(name, title, section, "\n\n".join(paragraphs))
            for title, section, paragraphs in found if paragraphs and section]


SMALL = set("""a an and are as at be but by can could do does did for from has have
how i if in into is it its me my of on or s so than that the their them then there these
they this to up us was we what when where which who why will with would you
your""".split())


def words_of(text: str) -> list[str]:
    """A text's words, without small ones and the commonest endings.

    Taught in 22_retrieval, '3. The course as a pile of passages'.
    """
    words = [w for w in re.findall(r"[^\W_]+", text.lower()) if w not in SMALL]
    endings = r"(ing|ed|es|s|e|ly)$"
    return [re.sub(endings, "", w) if len(w) > 4 else w.removesuffix("s")
            for w in words]


def sections_of(scores: Tensor, passages: list[Passage], k: int) -> list[Passage]:
    """The best passage of each of the `k` best sections, best first.

    Taught in 22_retrieval, '3. The course as a pile of passages'.
    """
    best = {}
    for i in scores.argsort(descending=True, stable=True).tolist():
        best.setdefault(passages[i].key, passages[i])
        if len(best) == k:
            break
    return list(best.values())


@torch.no_grad()
def mean_vectors(encoder, tokenizer, texts: list[str], batch: int = 16) -> Tensor:
    """Texts as vectors of length 1 (texts, d_model): the mean over their tokens.

    Taught in 22_retrieval, '4. What no word gives away'.
    """
    ids = [tokenizer.encode(text)[: encoder.config.max_len] for text in texts]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))   # equally long together
    vectors = torch.zeros(len(texts), encoder.config.d_model)
    for rows in (order[i : i + batch] for i in range(0, len(order), batch)):
        padded, mask = pad_batch([ids[i] for i in rows], encoder.config.pad_id)
        x = encoder(padded, mask).x                          # (batch, seq_len, d_model)
        total = (x * mask[..., None]).sum(dim=1)
        vectors[rows] = total / mask.sum(dim=1, keepdim=True)
    return F.normalize(vectors, dim=-1)


def combined(*scores: Tensor, flat: int = 10) -> Tensor:
    """One score of several, by ranks alone: the sum of 1 / (flat + rank).

    Taught in 22_retrieval, '4. What no word gives away'.
    """
    orders = [one.argsort(descending=True, stable=True) for one in scores]
    return sum(1 / (flat + 1 + order.argsort()) for order in orders)


ASKED = ("Answer in one short sentence. If you don't know, say: I don't know.\n"
         "Question: ")


def grounded_prompt(question: str, texts: list[str], room: int = 400) -> str:
    """Whole texts, best first, as far as `room` words go; the question comes last.

    Taught in 22_retrieval, '6. The page goes into the prompt'.
    """
    kept, used = [], 0
    for text in texts:
        if used + len(text.split()) > room:
            break
        kept.append(f"[{len(kept) + 1}] {text}")
        used += len(text.split())
    return "\n\n".join([*kept, ASKED + question])
