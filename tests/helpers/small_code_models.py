"""Small models that complete code, made in a moment: a random Transformer, and a table whose answers can be summed up."""

import math

import torch
from torch import nn

from course_utils.byte_pairs import BPETokenizer
from course_utils.completion import CodeCompleter
from course_utils.completion.names import next_item
from course_utils.language_model import LanguageModel, LanguageModelConfig, LanguageModelResult

CODE = [
    "import os\n\n\nclass Reader:\n    def __init__(self, path, value=None):\n        self.path = path\n"
    "        self.value = value\n",
    "    def read_value(self, values):\n        return self.value + values[0]\n\n\nfor value in values:\n    print(value)\n",
    "def valuable(path_name):\n    value_of = os.path.join(path_name, \"it's\")\n"
    "    return self._value, self.__init__(value_of)\n",
]


def tokenizer(vocab_size: int = 330) -> BPETokenizer:
    return BPETokenizer.train(CODE, vocab_size)


def transformer(max_len: int = 64, positions: str = "rotary", vocab_size: int = 330, sharp: float = 12.0) -> CodeCompleter:
    """A random Transformer of two small layers; `sharp` is by how much its logits are multiplied."""
    torch.manual_seed(0)
    byte_pairs = tokenizer(vocab_size)
    model = LanguageModel(LanguageModelConfig(byte_pairs.vocab_size, d_model=16, num_heads=2, d_ff=32, num_layers=2,
                                              max_len=max_len, positions=positions, tied=False))
    with torch.no_grad():
        model.output.weight.mul_(sharp)
    return CodeCompleter(model, byte_pairs)


class Table(nn.Module):
    """Logits that depend on the last token only, (vocab, vocab). It counts what it's asked in `read`, tokens."""

    def __init__(self, logits: torch.Tensor, max_len: int = 64):
        super().__init__()
        self.config = LanguageModelConfig(len(logits), max_len=max_len)
        self.embedding = nn.Embedding.from_pretrained(logits)
        self.read = 0

    def new_caches(self) -> list:
        return [None]

    def forward(self, token_ids: torch.Tensor, need_weights: bool = False, caches=None) -> LanguageModelResult:
        self.read += token_ids.numel()
        new = torch.zeros(len(token_ids), 1, token_ids.shape[1], 1)
        assert caches[0].append(new, new)[0].shape[2] <= self.config.max_len
        return LanguageModelResult(self.embedding(token_ids), None)


def table(seed: int = 0, spread: float = 3.0) -> CodeCompleter:
    """A random table; bytes that are no character by themselves are rare in it."""
    byte_pairs, generator = tokenizer(), torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(byte_pairs.vocab_size, byte_pairs.vocab_size, generator=generator)
    logits[:, [len(token) == 1 and token[0] > 127 for token in byte_pairs.tokens]] -= 12
    return CodeCompleter(Table(logits), byte_pairs)


def exact(completer: CodeCompleter, after: int, typed: bytes, item: str, within: bool) -> float:
    """Of a table: the probability of `item` as the next word after token `after`, given that the bytes `typed` come first.

    By adding up all ways to write it in tokens, from the first byte to the last. Where a character comes next that isn't
    whole yet, this counts as an end, although it could be a letter: so the sum is an upper bound, by very little.
    """
    logits = completer.model.embedding.weight.double().clone()
    logits[:, 0] = -math.inf
    chances, tokens = logits.softmax(dim=-1), completer.tokenizer.tokens

    def mass(data: bytes, finished) -> float:
        """The probability that tokens come which spell `data`, or begin to, and end beyond it as `finished(rest)` asks."""
        at = {(0, after): 1.0}                          # (bytes spelled, last token): probability
        found = 0.0
        for position in range(len(data) + 1):
            for (spelled, last), chance in [entry for entry in at.items() if entry[0][0] == position]:
                for i, token in enumerate(tokens[1:], start=1):
                    begins = data[spelled : spelled + len(token)] == token[: len(data) - spelled]
                    if begins and spelled + len(token) < len(data) + (finished is not None):
                        key = (spelled + len(token), i)
                        at[key] = at.get(key, 0.0) + chance * float(chances[last, i])
                    elif begins and (finished is None or finished(token[len(data) - spelled :])):
                        found += chance * float(chances[last, i])
        return found

    def finished(rest: bytes) -> bool:
        try:
            return next_item(item + rest.decode(), within) == (item, True)
        except UnicodeDecodeError as error:
            return error.reason == "unexpected end of data"

    if next_item(item, within) == (item, True):
        raise ValueError("ask for a word: it ends where something else begins")
    return mass(typed + item.encode(), finished) / mass(typed, None)


def counts() -> torch.Tensor:
    """log(how often each token follows another in CODE, and a little more): (vocab, vocab), a row for each token before."""
    byte_pairs = tokenizer()
    found = torch.full((byte_pairs.vocab_size, byte_pairs.vocab_size), 1e-4)
    ids = byte_pairs.encode("\n".join(CODE))
    for left, right in zip(ids, ids[1:]):
        found[left, right] += 1
    return found.log()


def counted() -> CodeCompleter:
    """A `LanguageModel`, so that it can be saved, which knows for each token of CODE what follows it; nothing is trained.

    Its blocks add nothing, so that the last layer norm gets the vector of the last token, which has a single 1. The norm
    makes `high` of the 1 and `low` of the zeros, and its bias takes `low` away again.
    """
    logits = counts()
    size = len(logits)
    model = LanguageModel(LanguageModelConfig(size, d_model=size, num_heads=1, d_ff=2, num_layers=1, max_len=256,
                                              tied=False))
    one = torch.eye(size)
    with torch.no_grad():
        block = model.decoder.blocks[0]
        for layer in (block.attention.output_projection, block.feed_forward.contract):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        model.embedding.weight.copy_(one)
        high, low = model.decoder.norm(one[:1])[0, :2].tolist()
        model.decoder.norm.bias.fill_(-low)
        model.output.weight.copy_(logits.T / (high - low))
    return CodeCompleter(model, tokenizer())
