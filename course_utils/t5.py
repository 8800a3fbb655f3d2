"""T5 in the blocks of notebooks 07 and 17: a bias for each distance, two tasks in one model.

Does: `buckets` says which distances share a number, `RelativeBias` adds it to the scores, `T5` has the four changes that
T5 makes to a Transformer, `load_t5` takes weights from the library's class; `opinions`, `train` and `write` train a small
one on text. Does not: dropout, a cache while writing, the gated feed-forward layer of T5 1.1.

    model = load_t5(transformers.T5ForConditionalGeneration.from_pretrained("google-t5/t5-small"))

Exported from notebooks/extras/t5.ipynb: edit it there.
"""

import math
import random
import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask
from course_utils.encoder_decoder import Decoder
from course_utils.tokenization import pad_batch
from course_utils.training import learning_rate_at, seed_everything
from course_utils.training.pair_batches import END, PAD, WordList
from course_utils.transformer_blocks import Encoder

__all__ = ["buckets", "RelativeBias", "T5", "T5_NAMES", "NORMS", "load_t5", "NOUNS", "FEMININE", "GOOD", "BAD", "opinions",
           "TASKS", "as_tasks", "split", "ids_of", "train", "write", "right", "JUDGED", "apart", "obeyed"]


def buckets(distance: Tensor, both_ways: bool, number: int = 32, furthest: int = 128) -> Tensor:
    """The bucket, 0 to number - 1, of each distance key - query, a tensor of integers of any shape.

    `both_ways`: half of the buckets are for keys on the right of the query; else these
    are all in bucket 0, since a decoder never sees them. Raffel et al. 2020, section 2.1.

    Taught in extras/t5, '1. Which distances share a number'.
    """
    first = 0
    if both_ways:
        number //= 2
        first = number * (distance > 0)                                    # keys on the right
    steps = distance.abs() if both_ways else (-distance).clamp(min=0)
    exact = number // 2
    scale = torch.log(steps.clamp(min=1) / exact) / math.log(furthest / exact)
    shared = (exact + (scale * (number - exact)).long()).clamp(max=number - 1)
    return first + torch.where(steps < exact, steps, shared)


class RelativeBias(nn.Module):
    """A learned number for each head and bucket of distances: length -> (heads, query, key).

    To be added to scores. It begins at zero: at first no head knows where a word is.

    Taught in extras/t5, '2. The table'.
    """

    def __init__(self, num_heads: int, both_ways: bool, number: int = 32, furthest: int = 128):
        super().__init__()
        self.both_ways, self.number, self.furthest = both_ways, number, furthest
        self.table = nn.Embedding(number, num_heads)
        nn.init.zeros_(self.table.weight)

    def forward(self, length: int) -> Tensor:
        place = torch.arange(length, device=self.table.weight.device)
        distance = place[None, :] - place[:, None]                         # (query, key)
        which = buckets(distance, self.both_ways, self.number, self.furthest)
        return self.table(which).permute(2, 0, 1)                          # (heads, query, key)


class T5(nn.Module):
    """An encoder-decoder that knows positions only as distances (Raffel et al. 2020).

    (source (batch, source), target (batch, target)) -> logits (batch, target, vocab). The
    target is what the decoder reads, and begins with PAD. `seen` (batch, source) says which
    source words the decoder may look at; by default all but padding.

    Taught in extras/t5, "3. In 17's blocks".
    """

    def __init__(
        self, vocab_size: int, d_model: int = 64, num_heads: int = 4, d_ff: int = 256,
        num_layers: int = 2, number: int = 32, furthest: int = 128,
    ):
        super().__init__()
        sizes = (num_layers, d_model, num_heads, d_ff)
        self.embedding = nn.Embedding(vocab_size, d_model)       # of both texts, and of the output
        self.encoder = Encoder(*sizes, dropout=0.0, activation="relu")
        self.decoder = Decoder(*sizes, dropout=0.0, activation="relu")
        self.encoder_bias = RelativeBias(num_heads, True, number, furthest)
        self.decoder_bias = RelativeBias(num_heads, False, number, furthest)
        for parent in list(self.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, nn.LayerNorm):
                    setattr(parent, name, nn.RMSNorm(d_model, eps=1e-6))
                elif isinstance(child, nn.Linear):
                    child.bias = None

    def read(self, source: Tensor, need_weights: bool = False):
        """The encoder's result: x (batch, source, d_model), and weights if asked for."""
        bias, mask = self.encoder_bias(source.shape[1]), padding_mask(source != PAD)
        return self.encoder(self.embedding(source), mask, bias=bias, need_weights=need_weights)

    def decode(self, memory: Tensor, seen: Tensor, target: Tensor, need_weights=False):
        """The decoder's result: x (batch, target, d_model), and weights if asked for."""
        length = target.shape[1]
        mask = causal_mask(length, device=target.device)[None, None]
        return self.decoder(
            self.embedding(target), memory, mask=mask, memory_mask=padding_mask(seen),
            bias=self.decoder_bias(length), need_weights=need_weights)

    def forward(self, source: Tensor, target: Tensor, seen: Tensor | None = None) -> Tensor:
        x = self.decode(self.read(source).x, source != PAD if seen is None else seen, target).x
        return x / x.shape[-1]**0.5 @ self.embedding.weight.T


T5_NAMES = {
    "shared.": "embedding.", ".block.": ".blocks.", "final_layer_norm.": "norm.",
    ".blocks.0.layer.0.SelfAttention.relative_attention_bias.": "_bias.table.",
    ".SelfAttention.": ".attention.", ".EncDecAttention.": ".cross_attention.",
    ".q.": ".query_projection.", ".k.": ".key_projection.", ".v.": ".value_projection.",
    ".o.": ".output_projection.", ".DenseReluDense.": ".feed_forward.",
    ".wi.": ".expand.", ".wo.": ".contract.",
}
NORMS = {"encoder": ["attention_norm", "feed_forward_norm"],
         "decoder": ["attention_norm", "cross_attention_norm", "feed_forward_norm"]}


def load_t5(theirs) -> T5:
    """The same function in our class as a `transformers.T5ForConditionalGeneration`.

    Raises ValueError for one whose blocks are others: gated (T5 1.1), heads whose widths
    don't add up to d_model, an output layer of its own.

    Taught in extras/t5, "3. In 17's blocks".
    """
    c = theirs.config
    gated, narrow = c.is_gated_act or c.dense_act_fn != "relu", c.num_heads * c.d_kv != c.d_model
    if gated or narrow or not c.tie_word_embeddings:
        raise ValueError("this T5 has another feed-forward layer, other heads or an output layer "
                         "of its own; T5 here is that of 2020, such as google-t5/t5-small")
    model = T5(c.vocab_size, c.d_model, c.num_heads, c.d_ff, c.num_layers,
               c.relative_attention_num_buckets, c.relative_attention_max_distance)
    weights = {}
    for name, value in theirs.state_dict().items():
        if name.endswith("embed_tokens.weight") or name.startswith("lm_head."):
            continue                                                       # the embedding once more
        for layer, norm in enumerate(NORMS.get(name.partition(".")[0], [])):
            name = name.replace(f"layer.{layer}.layer_norm", norm)
        for old, new in T5_NAMES.items():
            name = name.replace(old, new)
        name = re.sub(r"\.layer\.\d", "", name)
        weights[name] = value * c.d_kv**0.5 if "query_projection" in name else value
    model.load_state_dict(weights)
    return model.eval()


NOUNS = {"film": "le film", "novel": "le roman", "opera": "l' opéra",
         "concert": "le concert", "poem": "le poème", "play": "la pièce",
         "story": "l' histoire", "scene": "la scène", "song": "la chanson",
         "comedy": "la comédie"}
FEMININE = ("play", "story", "scene", "song", "comedy")
GOOD = {"moving": ("émouvant", "émouvante"), "charming": ("charmant", "charmante"),
        "excellent": ("excellent", "excellente"), "funny": ("drôle", "drôle")}
BAD = {"boring": ("ennuyeux", "ennuyeuse"), "bad": ("mauvais", "mauvaise"),
       "terrible": ("terrible", "terrible"), "strange": ("étrange", "étrange")}


def opinions(nouns: Sequence[str] = tuple(NOUNS)) -> list[tuple[str, str, str]]:
    """Every opinion on these nouns, eighty a noun: (English, label, French).

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    made, labels = [], ("positive", "negative")
    for noun in nouns:
        le, gender = NOUNS[noun], noun in FEMININE
        for ours, others, (label, opposite) in ((GOOD, BAD, labels), (BAD, GOOD, labels[::-1])):
            for word, french in ours.items():
                un = french[gender]
                made.append((f"the {noun} was {word}", label, f"{le} était {un}"))
                made.append((f"the {noun} was not {word}", opposite, f"{le} n' était pas {un}"))
                for other, french_other in others.items():
                    autre = french_other[gender]
                    made.append((f"the {noun} was not {other} but {word}", label,
                                 f"{le} n' était pas {autre} mais {un}"))
                    made.append((f"the {noun} was {word} and not {other}", label,
                                 f"{le} était {un} et pas {autre}"))
    return made


TASKS = ("sentiment:", "translate:")


def as_tasks(sentences: Sequence[tuple], tasks: Sequence[str] = TASKS) -> list[tuple[str, str]]:
    """Text in and text out: each sentence once for each task.

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    return [(f"{task} {english}", {"sentiment:": label, "translate:": french}[task])
            for english, label, french in sentences for task in tasks]


def split(sentences: Sequence[tuple], tested: int = 200) -> tuple[list[tuple], list[tuple]]:
    """Sentences to train on and to test on, the same every time.

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    shuffled = random.Random(0).sample(sentences, len(sentences))
    return shuffled[tested:], shuffled[:tested]


def ids_of(words: WordList, texts: Sequence[str]) -> Tensor:
    """Ids of each text and END, padded: (texts, seq_len).

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    return pad_batch([[*words.encode(text.split()), END] for text in texts], PAD)[0]


def train(
    words: WordList, pairs: Sequence[tuple[str, str]], seed: int, steps: int = 800, rate: float = 3e-3
) -> T5:
    """A new T5, trained on pairs of texts, 64 at a time.

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    seed_everything(seed)
    model, rng = T5(words.vocab_size), random.Random(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(steps):
        batch = rng.sample(pairs, 64)
        source, target = (ids_of(words, side) for side in zip(*batch))
        late = F.pad(target[:, :-1], (1, 0), value=PAD)          # each answer, one step late
        logits = model(source, late).transpose(1, 2)             # (texts, vocab, target)
        losses = F.cross_entropy(logits, target, ignore_index=PAD, reduction="none")
        loss = (losses.sum(dim=1) / (target != PAD).sum(dim=1)).mean()     # each counts the same
        optimizer.param_groups[0]["lr"] = learning_rate_at(step, steps, rate, 0.05)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


@torch.no_grad()
def write(
    model: T5, words: WordList, texts: Sequence[str], hidden: int = 0, most: int = 12
) -> list[str]:
    """What the model answers to each text, greedily.

    The decoder doesn't see the first `hidden` words of the source.

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    source = ids_of(words, texts)                                          # (texts, source)
    seen = (source != PAD) & (torch.arange(source.shape[1]) >= hidden)
    memory, target = model.read(source).x, torch.full((len(texts), 1), PAD)
    for _ in range(most):
        x = model.decode(memory, seen, target).x[:, -1]                    # (texts, d_model)
        best = (x @ model.embedding.weight.T).argmax(dim=-1, keepdim=True)
        target = torch.cat([target, best], dim=1)
    rows = [row[1 : row.index(END, 1) if END in row else None] for row in target.tolist()]
    return [" ".join(words.words[i] for i in row) for row in rows]


def right(model: T5, words: WordList, pairs: Sequence[tuple[str, str]], **how) -> float:
    """The fraction of answers that are right, word for word.

    Taught in extras/t5, '4. Two tasks, one model'.
    """
    answers = write(model, words, [text for text, _ in pairs], **how)
    return sum(answer == asked for answer, (_, asked) in zip(answers, pairs)) / len(pairs)


JUDGED = ("film", "opera", "poem", "story", "song")   # sentiment: for these, translate: for others


def apart(sentences: Sequence[tuple], swapped: bool = False) -> list[tuple[str, str]]:
    """Each sentence with one task, which its noun decides; `swapped`: with the other.

    Taught in extras/t5, '5. Break it'.
    """
    def task(english):
        return TASKS[(english.split()[1] in JUDGED) == swapped]

    return [pair for row in sentences for pair in as_tasks([row], [task(row[0])])]


def obeyed(model: T5, words: WordList, pairs: Sequence[tuple[str, str]]) -> float:
    """In what fraction of the texts the answer is of the prefix's kind, right or wrong.

    Taught in extras/t5, '5. Break it'.
    """
    answers, labels = write(model, words, [text for text, _ in pairs]), ("positive", "negative")
    return sum((answer in labels) == (asked in labels)
               for answer, (_, asked) in zip(answers, pairs)) / len(pairs)
