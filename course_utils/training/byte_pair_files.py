"""GPT-2's tokenizer from its files, as the byte pairs of notebook 02b; and those of notebook 02b as files for the library.

Does: read tokenizer.json, or vocab.json and merges.txt, and give a `BPETokenizer` with the ids of those files; write a
`BPETokenizer` for `transformers`. Does not: read other kinds of tokenizer; for these it gives None, and
`transformers.AutoTokenizer` reads them.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from course_utils.byte_pairs import BPETokenizer

__all__ = ["GPT2Tokenizer", "byte_pair_files", "read_gpt2_tokenizer"]

_NUMBERS = "".join(one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) in ("Nl", "No"))
_LETTER, _SPACE = rf"(?:(?![{_NUMBERS}])[^\W\d_])", r"(?:(?![\x1c-\x1f])\s)"


def _signs() -> list[str]:
    """How the files write each of the 256 bytes: 'Ġ' for a space."""
    signs = [chr(b) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174 else None for b in range(256)]
    spare = iter(range(256, 512))
    return [sign or chr(next(spare)) for sign in signs]


class _Pairs(BPETokenizer):
    # letters and numbers of any kind, as in the original; Python's own \w, \d and \s draw these lines elsewhere
    pattern = re.compile(rf"'(?:[sdmt]|ll|ve|re)| ?{_LETTER}+| ?[\d{_NUMBERS}]+| ?(?:(?!{_SPACE})[\W_])+"
                         rf"|{_SPACE}+(?!(?!{_SPACE})[\s\S])|{_SPACE}+")


class GPT2Tokenizer:
    """The byte pairs of 02b with the ids of GPT-2's files (Radford et al. 2019, section 2.2).

    `vocab` gives each token's id, `merges` the pairs in their order; tokens are written as in those files, with 'Ġ' for a
    space. `vocab_size` is one more than the largest id, `end_id` the id of '<|endoftext|>', or None. Raises ValueError for
    files that don't fit together.
    """

    def __init__(self, vocab: dict[str, int], merges: Iterable[tuple[str, str]]):
        signs = _signs()
        written = ["", *(signs[token[0]] for token in BPETokenizer().tokens[1:])]  # our id -> the token as they write it
        place, pairs = {token: i for i, token in enumerate(written)}, []
        for left, right in merges:
            if left not in place or right not in place or left + right in place:
                raise ValueError(f"the merge of {left!r} and {right!r} doesn't fit: each part must be there before it, and "
                                 "no merge may give the same token as another")
            pairs.append((place[left], place[right]))
            place[left + right] = len(written)
            written.append(left + right)
        if missing := [token for token in written[1:] if token not in vocab]:
            raise ValueError(f"the vocabulary lacks {len(missing)} of the tokens that the merges give, such as "
                             f"{missing[0]!r}")
        self._pairs = _Pairs(pairs)
        self._theirs = [-1, *(vocab[token] for token in written[1:])]      # our id -> theirs
        self._bytes = {their: self._pairs.tokens[i] for i, their in enumerate(self._theirs) if i}
        special = {their: token.encode("utf-8") for token, their in vocab.items() if token not in place}
        self._bytes = special | self._bytes
        self.vocab_size = max(self._bytes) + 1
        self.end_id = vocab.get("<|endoftext|>")

    def encode(self, text: str) -> list[int]:
        """Ids of the merged bytes of `text`, as in the files; '<|endoftext|>' is text like any other here."""
        return [self._theirs[i] for i in self._pairs.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text that `ids` stand for, special tokens as their names; bytes that form no character become U+FFFD.

        Raises ValueError for an unknown id.
        """
        ids = [int(i) for i in ids]
        if unknown := [i for i in ids if i not in self._bytes]:
            raise ValueError(f"id {unknown[0]} is not in the vocabulary; its ids go from 0 to {self.vocab_size - 1}")
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", "replace")


def read_gpt2_tokenizer(folder: Path) -> GPT2Tokenizer | None:
    """The tokenizer in a checkpoint's folder; None where there is none, or one of another kind.

    Raises ValueError that names the folder for files that are damaged.
    """
    folder = Path(folder)
    try:
        if (folder / "tokenizer.json").is_file():
            whole = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
            model, first = whole["model"], whole.get("pre_tokenizer") or {}
            plain = model.get("type") == "BPE" and first.get("type") == "ByteLevel" and not whole.get("normalizer")
            if not plain or first.get("add_prefix_space") or not first.get("use_regex", True):
                return None
            merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
            added = {token["content"]: token["id"] for token in whole.get("added_tokens") or []}
            return GPT2Tokenizer({**model["vocab"], **added}, merges)
        if not all((folder / name).is_file() for name in ("vocab.json", "merges.txt")):
            return None
        lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        return GPT2Tokenizer(json.loads((folder / "vocab.json").read_text(encoding="utf-8")), pairs)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the tokenizer's files in {folder} can't be used ({type(error).__name__}: {str(error)[:150]}); "
                         "download them again, or take them away to load the model alone") from None


def byte_pair_files(tokenizer: BPETokenizer, max_len: int) -> dict[str, str]:
    """The texts of tokenizer.json and tokenizer_config.json, by these names: the library's tokenizer with the same ids.

    A text for the model has at most `max_len` tokens. Nothing is put before or after a text. Raises ValueError where two
    merges give the same token.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    signs = _signs()
    written = ["<pad>", *("".join(signs[b] for b in token) for token in tokenizer.tokens[1:])]  # id -> as in the files
    ids = {token: i for i, token in enumerate(written)}
    if len(ids) != len(written):
        twice = next(token for i, token in enumerate(written) if ids[token] != i)
        raise ValueError(f"two merges give the token {twice!r:.60}, and in a file each token has one id; train the merges "
                         "again")
    library = Tokenizer(models.BPE(vocab=ids, merges=[(written[left], written[right]) for left, right in tokenizer.merges]))
    library.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(tokenizer.pattern.pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    library.decoder = decoders.ByteLevel()
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "model_max_length": max_len,
                "clean_up_tokenization_spaces": False, "model_input_names": ["input_ids", "attention_mask"]}
    return {"tokenizer.json": library.to_str(pretty=True), "tokenizer_config.json": json.dumps(settings, indent=2) + "\n"}
