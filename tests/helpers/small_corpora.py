"""The corpora and the pretrained encoder that the larger result sets need, in small, for tests."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
import transformers
from datasets import ClassLabel, Dataset, Features, Value

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the film is not good bad dull but and it".split()]


def made_reviews(number: int, seed: int, kinds=("plain", "order"), label: int | None = None) -> Dataset:
    """So many texts of a few words; labels alternate, or are all -1, as IMDb's unlabelled reviews have it."""
    rng = np.random.default_rng(seed)
    labels = ClassLabel(names=["negative", "positive"]) if label is None else Value("int64")
    features = Features({"text": Value("string"), "label": labels, "kind": Value("string")})
    rows = {"text": [" ".join(rng.choice(PIECES[5:], 5 + i % 4)) for i in range(number)],
            "label": [i % 2 if label is None else label for i in range(number)],
            "kind": [kinds[i % len(kinds)] for i in range(number)]}
    return Dataset.from_dict(rows, features=features)


def save_small_bert(folder: Path, words: Iterable[str] = ()) -> None:
    """Write a random BERT of 16 dimensions in Hugging Face's format, with its word pieces and these words besides."""
    pieces = list(dict.fromkeys([*PIECES, *words]))
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=6, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=192)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")

NOUNS = {"dog": "chien", "cat": "chat", "boy": "garçon", "man": "homme", "tree": "arbre", "hat": "chapeau"}
VERBS = {"sees": "voit", "holds": "tient", "wants": "veut", "paints": "peint"}


def made_translations(number: int, seed: int, longest: int = 4) -> tuple[list[str], list[str]]:
    """So many English sentences of 1 to `longest` clauses of 5 words, and their French, word by word (but *l'homme*)."""
    rng = np.random.default_rng(seed)

    def the(noun: str) -> tuple[str, str]:
        french = NOUNS[noun]
        return f"the {noun}", f"l'{french}" if french[0] in "ah" else f"le {french}"

    english, french = [], []
    for i in range(number):
        parts = [[the(rng.choice(list(NOUNS))), (verb := rng.choice(list(VERBS)), VERBS[verb]), the(rng.choice(list(NOUNS)))]
                 for _ in range(1 + i % longest)]
        for texts, side in ((english, 0), (french, 1)):
            text = f" {('and', 'et')[side]} ".join(" ".join(part[side] for part in three) for three in parts)
            texts.append(f"{text[0].upper()}{text[1:]}.")
    return english, french
