"""BERT's tokenizer from its files: tokenizer.json, or vocab.txt and tokenizer_config.json.

Does: read the vocabulary and the settings that `WordPieceTokenizer` of notebook 14 takes, and write them for the library.
Does not: read other kinds of tokenizer; for these it gives None, and `transformers.AutoTokenizer` reads them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["SPECIAL", "read_word_pieces", "word_piece_files"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def read_word_pieces(folder: str | Path) -> dict | None:
    """What to give to `WordPieceTokenizer`: {"vocabulary": […], "lower_case": …, …}. None where there is no such tokenizer.

    Raises ValueError that names the folder for files that are damaged.
    """
    folder = Path(folder)
    try:
        if (folder / "tokenizer.json").is_file():
            found = _from_one_file(json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))
        elif (folder / "vocab.txt").is_file():
            found = _from_two_files(folder)
        else:
            return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the tokenizer's files in {folder} can't be used ({type(error).__name__}: {str(error)[:150]}); "
                         "download them again, or take them away to load the model alone") from None
    return found if found and all(token in found["vocabulary"] for token in SPECIAL) else None


def _from_one_file(whole: dict) -> dict | None:
    model, cleaning, first = whole["model"], whole.get("normalizer") or {}, whole.get("pre_tokenizer") or {}
    kinds = (model.get("type", "WordPiece"), cleaning.get("type"), first.get("type"))
    usual = (model.get("unk_token"), model.get("continuing_subword_prefix"), model.get("max_input_chars_per_word"))
    if kinds != ("WordPiece", "BertNormalizer", "BertPreTokenizer") or usual != ("[UNK]", "##", 100):
        return None
    if not cleaning.get("clean_text", True):
        return None
    ids = model["vocab"] | {token["content"]: token["id"] for token in whole.get("added_tokens") or []}
    if sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(f"its {len(ids)} tokens don't have the ids 0 to {len(ids) - 1}")
    return {"vocabulary": sorted(ids, key=ids.get), "lower_case": cleaning.get("lowercase", True),
            "strip_accents": cleaning.get("strip_accents"), "split_chinese": cleaning.get("handle_chinese_chars", True)}


def _from_two_files(folder: Path) -> dict | None:
    settings, path = {}, folder / "tokenizer_config.json"
    if path.is_file():
        settings = json.loads(path.read_text(encoding="utf-8"))
    if not settings.get("tokenizer_class", "BertTokenizer").startswith("BertTokenizer"):
        return None
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    while vocabulary and not vocabulary[-1]:
        vocabulary.pop()
    return {"vocabulary": [token.removesuffix("\r") for token in vocabulary],
            "lower_case": settings.get("do_lower_case", True),
            "strip_accents": settings.get("strip_accents"), "split_chinese": settings.get("tokenize_chinese_chars", True)}


def word_piece_files(
    vocabulary: Sequence[str], lower_case: bool = True, strip_accents: bool | None = None, split_chinese: bool = True,
    max_len: int = 512,
) -> dict[str, str]:
    """The texts of tokenizer.json, vocab.txt and tokenizer_config.json, by these names, for a tokenizer with these settings.

    `vocabulary` lists the tokens in the order of their ids; a text for the model has at most `max_len` of them. Raises
    ValueError for a token that is there twice, and for one that has no line of its own in vocab.txt.
    """
    from tokenizers import BertWordPieceTokenizer

    twice = [token for token, count in Counter(vocabulary).items() if count > 1]
    broken = [token for token in vocabulary if not token or set(token) & set("\r\n")]
    if twice or broken:
        raise ValueError(f"the vocabulary holds {(twice or broken)[0]!r:.60}{' twice' if twice else ''}; each token must be "
                         "there once, without a line break, so that it has a line of its own in vocab.txt")
    library = BertWordPieceTokenizer(
        vocab={token: i for i, token in enumerate(vocabulary)}, lowercase=lower_case, strip_accents=strip_accents,
        handle_chinese_chars=split_chinese)
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower_case, "strip_accents": strip_accents,
                "tokenize_chinese_chars": split_chinese, "model_max_length": max_len,
                **{f"{name[1:-1].lower()}_token": name for name in SPECIAL}}
    return {"tokenizer.json": library.to_str(pretty=True), "vocab.txt": "".join(f"{token}\n" for token in vocabulary),
            "tokenizer_config.json": json.dumps(settings, indent=2) + "\n"}
