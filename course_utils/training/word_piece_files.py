"""BERT's tokenizer from its files: tokenizer.json, or vocab.txt, with tokenizer_config.json and what goes with it.

Does: read the vocabulary, the added tokens and the settings that `WordPieceTokenizer` of notebook 14 takes, where they are
what `transformers.AutoTokenizer` (5.24) goes by, and write them for the library. Does not: read other kinds of tokenizer;
for these it gives None, and `AutoTokenizer` reads them.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["SPECIAL", "read_word_pieces", "word_piece_files"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NAMED = tuple(f"{token[1:-1].lower()}_token" for token in SPECIAL)
OWN_FILE = ("PreTrainedTokenizerFast", "TokenizersBackend")                # take tokenizer.json as it is
BERTS = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")       # go by tokenizer_config.json, or its defaults


def read_word_pieces(folder: str | Path) -> dict | None:
    """What to give to `WordPieceTokenizer`: {"vocabulary": […], "added": {…}, "lower_case": …, …}. None where there is no
    such tokenizer; a warning says so where its files are nearly right.

    Raises ValueError that names the folder for files that are damaged.
    """
    folder = Path(folder)
    try:
        whole = _json(folder, "tokenizer.json")
        if whole is None and not (folder / "vocab.txt").is_file():
            return None
        settings = _json(folder, "tokenizer_config.json") or {}
        kind = _class_of(folder, settings, whole)
        vocabulary = _from_vocab_txt(folder) if whole is None else _from_one_file(whole)
        if kind is None or vocabulary is None or any(token not in vocabulary for token in SPECIAL):
            return None
        added = _found_whole(_added_tokens(folder, settings, whole, kind), vocabulary)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the tokenizer's files in {folder} can't be used ({type(error).__name__}: {str(error)[:150]}); "
                         "download them again, or take them away to load the model alone") from None
    if isinstance(added, str):
        warnings.warn(f"the tokenizer in {folder} isn't read: {added}, which WordPieceTokenizer doesn't do; use "
                      "transformers.AutoTokenizer", stacklevel=2)
        return None
    cleaning = whole.get("normalizer") if kind == "own file" else {
        "lowercase": settings.get("do_lower_case", True), "strip_accents": settings.get("strip_accents"),
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True)}
    return {"vocabulary": vocabulary, "added": added, "lower_case": cleaning.get("lowercase", True),
            "strip_accents": cleaning.get("strip_accents"), "split_chinese": cleaning.get("handle_chinese_chars", True)}


def _json(folder: Path, name: str) -> dict | None:
    return json.loads((folder / name).read_text(encoding="utf-8")) if (folder / name).is_file() else None


def _class_of(folder: Path, settings: dict, whole: dict | None) -> str | None:
    """What `AutoTokenizer` makes of the folder: "BERT", "own file" (with tokenizer.json's settings), or None for others."""
    model = _json(folder, "config.json") or {}
    named = settings.get("tokenizer_class") or model.get("tokenizer_class")
    if named is None:
        named = "BertTokenizer" if whole is None or model.get("model_type") == "bert" else OWN_FILE[0]
    if named.removesuffix("Fast") in BERTS:
        return "BERT"
    return "own file" if named in OWN_FILE and whole is not None else None


def _from_one_file(whole: dict) -> list[str] | None:
    model, cleaning, first = whole["model"], whole.get("normalizer") or {}, whole.get("pre_tokenizer") or {}
    kinds = (model.get("type", "WordPiece"), cleaning.get("type"), first.get("type"))
    usual = (model.get("unk_token"), model.get("continuing_subword_prefix"), model.get("max_input_chars_per_word"))
    if kinds != ("WordPiece", "BertNormalizer", "BertPreTokenizer") or usual != ("[UNK]", "##", 100):
        return None
    if not cleaning.get("clean_text", True):
        return None
    ids = model["vocab"]
    if sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(f"its {len(ids)} tokens don't have the ids 0 to {len(ids) - 1}")
    return sorted(ids, key=ids.get)


def _from_vocab_txt(folder: Path) -> list[str]:
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    while vocabulary and not vocabulary[-1]:
        vocabulary.pop()
    return [token.removesuffix("\r") for token in vocabulary]


def _added_tokens(folder: Path, settings: dict, whole: dict | None, kind: str) -> list[dict]:
    """Tokens that are found before a text is cut up, as dicts of the library's `AddedToken`, in the order of their ids.

    Those of the `SPECIAL` that go by another name here have "instead_of", too.
    """
    found, named = {}, dict(settings)
    if "added_tokens_decoder" in settings:
        found = {int(i): {**token, "id": int(i)} for i, token in settings["added_tokens_decoder"].items()}
    else:
        named |= _json(folder, "special_tokens_map.json") or {}
    extra = [named.get(key) or [] for key in ("additional_special_tokens", "extra_special_tokens")]
    extra = [_as_dict(token) for part in extra for token in (part.values() if isinstance(part, dict) else part)]
    first = [{**_as_dict(named.get(key) or token), "instead_of": token} for key, token in zip(NAMED, SPECIAL)]
    special = {token["content"] for token in (*first, *extra)}
    if "added_tokens_decoder" not in settings:
        for content, i in (_json(folder, "added_tokens.json") or {}).items():
            found[i] = {"content": content, "id": i, "special": content in special}
    if whole is not None and (kind == "own file" or "added_tokens_decoder" not in settings):
        found |= {token["id"]: token for token in whole.get("added_tokens") or []}
    tokens = [found[i] for i in sorted(found)]
    for token in (*first, *extra):
        renamed = token.get("instead_of", token["content"]) != token["content"]
        if renamed or token["content"] not in {one["content"] for one in tokens}:
            tokens.append({**token, "special": True})
    return tokens


def _as_dict(token: str | dict) -> dict:
    return token if isinstance(token, dict) else {"content": token}


def _found_whole(added: list[dict], vocabulary: list[str]) -> dict[str, bool] | str:
    """{token: whether it's looked for in the cleaned text}, without the special ones; or what's unusual about one."""
    tokens, following = {}, len(vocabulary)
    for token in added:
        content, in_cleaned = token["content"], token.get("normalized", not token.get("special", False))
        flags = [flag for flag in ("lstrip", "rstrip", "single_word") if token.get(flag)]
        if token.get("instead_of", content) != content:
            return f"it has {content!r:.60} in place of {token['instead_of']}"
        if flags or (content in SPECIAL and in_cleaned):
            return f"its added token {content!r} has {' and '.join(flags or ['normalized'])} set"
        right = vocabulary.index(content) if content in vocabulary else following
        if token.get("id", right) != right:
            raise ValueError(f"the added token {content!r} has the id {token['id']}; expected {right}")
        following += right == following
        if content not in SPECIAL:
            tokens[content] = in_cleaned
    return tokens


def word_piece_files(
    vocabulary: Sequence[str], lower_case: bool = True, strip_accents: bool | None = None, split_chinese: bool = True,
    max_len: int = 512, added: Mapping[str, bool] | None = None,
) -> dict[str, str]:
    """The texts of tokenizer.json, vocab.txt and tokenizer_config.json, by these names, for a tokenizer with these settings.

    `vocabulary` lists the tokens in the order of their ids; a text for the model has at most `max_len` of them. `added` are
    those that are found whole; the ones that aren't in `vocabulary` get the next ids. Raises ValueError for a token that is
    there twice, and for one that has no line of its own in vocab.txt.
    """
    from tokenizers import AddedToken, BertWordPieceTokenizer

    twice = [token for token, count in Counter(vocabulary).items() if count > 1]
    broken = [token for token in vocabulary if not token or set(token) & set("\r\n")]
    if twice or broken:
        raise ValueError(f"the vocabulary holds {(twice or broken)[0]!r:.60}{' twice' if twice else ''}; each token must be "
                         "there once, without a line break, so that it has a line of its own in vocab.txt")
    library = BertWordPieceTokenizer(
        vocab={token: i for i, token in enumerate(vocabulary)}, lowercase=lower_case, strip_accents=strip_accents,
        handle_chinese_chars=split_chinese)
    for token, in_cleaned in (added or {}).items():
        library.add_tokens([AddedToken(token, normalized=in_cleaned)])
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower_case, "strip_accents": strip_accents,
                "tokenize_chinese_chars": split_chinese, "model_max_length": max_len, **dict(zip(NAMED, SPECIAL))}
    return {"tokenizer.json": library.to_str(pretty=True), "vocab.txt": "".join(f"{token}\n" for token in vocabulary),
            "tokenizer_config.json": json.dumps(settings, indent=2) + "\n"}
