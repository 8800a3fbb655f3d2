"""Two more heads on a BERT: a label for each word, and the span of a text that answers a question.

Does: names as labels and back, the F1 over names, word pieces with one target for each word; `TokenTagger` and `SpanMarker`
with their losses for `fit`; the best span that's allowed. Does not: choose among overlapping names, or say that a question
has no answer.

    tagger = TokenTagger(load_bert("bert-base-uncased")[0], len(LABELS))

Exported from notebooks/extras/other_heads.ipynb: edit it there.
"""

import re
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.marked_reviews import NamedReview, Question
from course_utils.pretraining import BertEncoder, WordPieceTokenizer
from course_utils.tokenization import pad_batch

__all__ = ["LABELS", "names_in", "f1", "name_f1", "words_and_labels", "IGNORE", "token_row", "TokenTagger", "SpanMarker",
           "token_loss", "span_loss", "predicted_labels", "best_spans", "normalised", "exact_match", "overlap_f1",
           "span_row", "marked_texts"]


LABELS = ["O", "B-person", "I-person", "B-film", "I-film"]


def names_in(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """The names that a row of labels marks: a set of (first word, word after the last, kind).

    An I that continues nothing of its kind begins a name, as in the program that scored CoNLL-2003.

    Taught in extras/other_heads, '1. A label for each word'.
    """
    found, start, kind = set(), None, None
    for i, label in enumerate([*labels, "O"]):
        if start is not None and label != f"I-{kind}":       # the name ends before word i
            found.add((start, i, kind))
            start = None
        if label != "O" and start is None:
            start, kind = i, label[2:]
    return found


def f1(hits: int, predicted: int, right: int) -> float:
    """2 · hits / (predicted + right), the harmonic mean of precision and recall; 0 without a hit.

    Taught in extras/other_heads, '1. A label for each word'.
    """
    return 2 * hits / (predicted + right) if hits else 0.0


def name_f1(found: Sequence[set], right: Sequence[set]) -> float:
    """F1 over the names of many texts: a set of found names and one of right names for each. 0 without a hit.

    Raises ValueError for lists of different lengths.

    Taught in extras/other_heads, '1. A label for each word'.
    """
    hits = sum(len(one & other) for one, other in zip(found, right, strict=True))
    return f1(hits, sum(map(len, found)), sum(map(len, right)))


def words_and_labels(review: NamedReview) -> tuple[list[str], list[str]]:
    """The words and punctuation marks of a review, and the label of each.

    Taught in extras/other_heads, '2. Reviews with names in them'.
    """
    words, labels = [], []
    for word in re.finditer(r"\w+|[^\w\s]", review.text):
        name = next((name for name in review.names if name.start <= word.start() < name.end), None)
        words.append(word.group())
        labels.append("O" if name is None else ("B-" if word.start() == name.start else "I-") + name.kind)
    return words, labels


IGNORE = -100                                                              # what F.cross_entropy leaves out


def token_row(tokenizer: WordPieceTokenizer, words: Sequence[str], labels: Sequence[str]) -> tuple[list[int], list[int]]:
    """Ids of [CLS], the pieces of every word, [SEP]; and their targets: a label at each word's first piece, else IGNORE.

    Raises ValueError for a number of labels that isn't that of the words, a label that isn't in `LABELS`, or a word without
    a piece, such as a space.

    Taught in extras/other_heads, '3. One label per word, several pieces per word'.
    """
    ids, targets = [tokenizer.cls_id], [IGNORE]
    for word, label in zip(words, labels, strict=True):
        pieces = [tokenizer.ids[piece.text] for piece in tokenizer.pieces(word)]
        if not pieces:
            raise ValueError(f"the word {word!r} has no word piece, so nothing could carry its label; leave it out")
        ids += pieces
        if label not in LABELS:
            raise ValueError(f"the word {word!r} has the label {label!r}; expected one of {', '.join(LABELS)}")
        targets += [LABELS.index(label)] + [IGNORE] * (len(pieces) - 1)
    return ids + [tokenizer.sep_id], targets + [IGNORE]


class TokenTagger(nn.Module):
    """A score for each label at every position: ids (batch, seq_len) -> (batch, seq_len, num_labels).

    Devlin et al. 2019, section 5.3.

    Taught in extras/other_heads, '4. Two heads'.
    """

    def __init__(self, encoder: BertEncoder, num_labels: int):
        super().__init__()
        self.encoder, self.output = encoder, nn.Linear(encoder.config.d_model, num_labels)

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(self.encoder(ids).x)


class SpanMarker(nn.Module):
    """Scores for start and end at every position: ids and token types (batch, seq_len) -> two of (batch, seq_len).

    Devlin et al. 2019, section 4.2.

    Taught in extras/other_heads, '4. Two heads'.
    """

    def __init__(self, encoder: BertEncoder):
        super().__init__()
        self.encoder, self.output = encoder, nn.Linear(encoder.config.d_model, 2)

    def forward(self, ids: Tensor, token_types: Tensor) -> tuple[Tensor, Tensor]:
        return self.output(self.encoder(ids, token_types=token_types).x).unbind(dim=-1)


def token_loss(model: TokenTagger, batch: Tensor) -> tuple[Tensor, int]:
    """The mean of -ln p over the pieces that are asked for, and how many these are; batch (rows, 2, seq_len): ids, targets.

    Taught in extras/other_heads, '4. Two heads'.
    """
    ids, targets = batch.unbind(dim=1)
    loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
    return loss, int((targets != IGNORE).sum())


def span_loss(model: SpanMarker, batch: Tensor) -> tuple[Tensor, int]:
    """The mean of -ln p(start) and -ln p(end), and the number of questions; batch (rows, 4, seq_len): ids, token types, and
    1 where the answer starts, where it ends.

    Taught in extras/other_heads, '4. Two heads'.
    """
    ids, token_types, is_start, is_end = batch.unbind(dim=1)
    start, end = model(ids, token_types)
    loss = F.cross_entropy(start, is_start.argmax(dim=1)) + F.cross_entropy(end, is_end.argmax(dim=1))
    return loss / 2, len(batch)


@torch.no_grad()
def predicted_labels(
    model: TokenTagger, tokenizer: WordPieceTokenizer, texts: Sequence[Sequence[str]], size: int = 50
) -> list[list[str]]:
    """The label of each word, read at its first piece, for texts as lists of words; dropout is off.

    Taught in extras/other_heads, '4. Two heads'.
    """
    found, was_training = [], model.training
    model.eval()
    for i in range(0, len(texts), size):
        parts = [token_row(tokenizer, words, ["O"] * len(words)) for words in texts[i : i + size]]
        ids, _ = pad_batch([ids for ids, _ in parts], tokenizer.pad_id)                    # (rows, seq_len)
        best = model(ids).argmax(dim=-1).tolist()
        found += [[LABELS[k] for k, target in zip(row, targets) if target != IGNORE]
                  for row, (_, targets) in zip(best, parts)]
    model.train(was_training)
    return found


def best_spans(start: Tensor, end: Tensor, allowed: Tensor, longest: int = 8) -> Tensor:
    """First and last position of the best span: scores, and allowed (bool), all (batch, seq_len) -> (batch, 2).

    The span with the highest start score + end score that doesn't end before its start, has `longest` positions at most,
    and begins and ends where it's allowed (Devlin et al. 2019, section 4.2; `longest` isn't theirs). Raises ValueError for
    shapes that differ, `allowed` that isn't bool, or a row in which nothing is allowed.

    Taught in extras/other_heads, '5. A span: where it starts, where it ends'.
    """
    if longest < 1:
        raise ValueError(f"longest is {longest}; a span has at least 1 position")
    if not start.shape == end.shape == allowed.shape or start.dim() != 2:
        raise ValueError(f"start, end and allowed have shapes {tuple(start.shape)}, {tuple(end.shape)} and "
                         f"{tuple(allowed.shape)}; expected (batch, seq_len) for all three")
    if allowed.dtype != torch.bool:
        raise ValueError(f"allowed is {allowed.dtype}; expected torch.bool, such as allowed == 1")
    if not allowed.any(dim=1).all():
        raise ValueError(f"in row {allowed.any(dim=1).tolist().index(False)} no position is allowed; allow the text's")
    length = start.shape[1]
    start, end = (scores.masked_fill(~allowed, float("-inf")) for scores in (start, end))
    sums = start[:, :, None] + end[:, None, :]                             # (batch, start, end)
    ordered = torch.ones(length, length, dtype=torch.bool).triu().tril(longest - 1)
    best = sums.masked_fill(~ordered, float("-inf")).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


def normalised(text: str) -> list[str]:
    """The words of an answer in small letters, without punctuation and articles.

    Taught in extras/other_heads, '5. A span: where it starts, where it ends'.
    """
    return [word for word in re.findall(r"\w+", text.lower()) if word not in ("a", "an", "the")]


def exact_match(marked: str, right: str) -> float:
    """1.0 if two answers have the same words in the same order, else 0.0 (Rajpurkar et al. 2016, section 6.1).

    Taught in extras/other_heads, '5. A span: where it starts, where it ends'.
    """
    return float(normalised(marked) == normalised(right))


def overlap_f1(marked: str, right: str) -> float:
    """F1 over the words that two answers share, however they're ordered; 0 without one.

    Taught in extras/other_heads, '5. A span: where it starts, where it ends'.
    """
    common = Counter(normalised(marked)) & Counter(normalised(right))
    return f1(sum(common.values()), len(normalised(marked)), len(normalised(right)))


def span_row(tokenizer: WordPieceTokenizer, q: Question) -> tuple[list[int], list[int], list[int], list[int]]:
    """Ids, token types, and two rows of 0 and 1: is this the answer's first piece, its last?

    Taught in extras/other_heads, '6. Questions about a review'.
    """
    ids, types = tokenizer.encode_pair(q.question, q.text)
    text = tokenizer.tokenize(q.text)[1:]                                  # its pieces and [SEP]
    before = [0] * (len(ids) - len(text))
    is_start = before + [int(piece.start == q.answer[0] < piece.end) for piece in text]
    is_end = before + [int(piece.start < q.answer[1] == piece.end) for piece in text]
    return ids, types, is_start, is_end


@torch.no_grad()
def marked_texts(
    marker: SpanMarker, tokenizer: WordPieceTokenizer, questions: Sequence[Question], size: int = 60
) -> list[str]:
    """The text that the model marks for each question; dropout is off.

    Taught in extras/other_heads, '6. Questions about a review'.
    """
    found, was_training = [], marker.training
    marker.eval()
    for k in range(0, len(questions), size):
        some = questions[k : k + size]
        rows = [span_row(tokenizer, q) for q in some]
        ids, real = pad_batch([row[0] for row in rows], tokenizer.pad_id)  # (rows, seq_len)
        types, _ = pad_batch([row[1] for row in rows], 0)
        allowed = (types == 1) & real & (ids != tokenizer.sep_id)
        for q, span, row in zip(some, best_spans(*marker(ids, types), allowed).tolist(), rows):
            text, before = tokenizer.tokenize(q.text)[1:], row[1].index(1)  # the text's pieces, and how many come before it
            found.append(q.text[text[span[0] - before].start : text[span[1] - before].end])
    marker.train(was_training)
    return found
