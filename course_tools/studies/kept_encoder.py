"""The pretrained encoder that comes with the course: a part of MiniLM, small enough for a learner's processor.

Does: keep some of MiniLM's layers and the vectors of the most frequent word pieces, as they are, and write them to
data/checkpoints/encoder in 8 bits a weight, with a note and the licence. Does not: train anything. `course_tools models`
calls it where that folder is missing and MiniLM is there; it comes from where `pretrained` takes it.
"""

import copy
import dataclasses
from pathlib import Path

import torch
from torch import nn

from course_utils.files import write_text
from course_utils.files.paths import CHECKPOINTS
from course_utils.pretraining import BertEncoder, WordPieceTokenizer
from course_utils.training.saved_files import read_file
from course_utils.training.saved_models import write_model
from course_utils.training.saved_word_pieces import SavedWordPieces
from course_utils.training.word_piece_files import SPECIAL

LAYERS, PIECES, MAX_LEN = (0, 1, 2), 7_000, 128
LICENCE = CHECKPOINTS / "student" / "LICENSE-Apache-2.0.txt"


def frequent_pieces(number: int = PIECES) -> list[str]:
    """BERT's special tokens, single characters, and the pieces that the reader's training texts have most often."""
    about, _ = read_file(CHECKPOINTS / "reader" / "model.safetensors")
    pieces = about["vocabulary"]["vocabulary"]
    listed = pieces.split("\n") if isinstance(pieces, str) else pieces
    return list(dict.fromkeys([*SPECIAL, *listed]))[:number]


def part_of(encoder: BertEncoder, tokenizer: WordPieceTokenizer, layers: tuple[int, ...] = LAYERS,
            pieces: list[str] | None = None, max_len: int = MAX_LEN) -> tuple[BertEncoder, SavedWordPieces]:
    """A new encoder with some of the layers, word pieces and positions of `encoder`, and no pooler; nothing is changed.

    Raises KeyError for a piece that the tokenizer hasn't got.
    """
    kept = SavedWordPieces(frequent_pieces() if pieces is None else pieces)
    part = BertEncoder(dataclasses.replace(
        encoder.config, vocab_size=kept.vocab_size, num_layers=len(layers), max_len=max_len, pooler=False, pad_id=0))
    rows = [tokenizer.ids[piece] for piece in kept.vocabulary]
    with torch.no_grad():
        part.embedding.weight.copy_(encoder.embedding.weight[rows])
        part.positions.table.copy_(encoder.positions.table[:max_len])
    part.token_types.load_state_dict(encoder.token_types.state_dict())
    part.embedding_norm.load_state_dict(encoder.embedding_norm.state_dict())
    part.encoder.blocks = nn.ModuleList(copy.deepcopy(encoder.encoder.blocks[layer]) for layer in layers)
    return part.eval(), kept


def make_encoder(encoder: BertEncoder, tokenizer: WordPieceTokenizer, folder: Path = CHECKPOINTS / "encoder",
                 pieces: list[str] | None = None, layers: tuple[int, ...] = LAYERS, max_len: int = MAX_LEN) -> Path:
    """Write the part of this encoder to a folder, with a note and the licence; return the folder."""
    part, kept = part_of(encoder, tokenizer, layers, pieces, max_len)
    folder.mkdir(parents=True, exist_ok=True)           # note and licence go with the model
    write_model(folder, part, kept, {}, BertEncoder, eight_bits=True)
    write_text(folder / LICENCE.name, LICENCE.read_text(encoding="utf-8"))
    size = sum(p.numel() for p in part.parameters())
    named = ["first", "second", "third", "fourth", "fifth", "sixth"]
    chosen = ", ".join(named[layer] for layer in layers[:-1]) + f" and {named[layers[-1]]}"
    write_text(folder / "README.md", NOTE.format(size=size, pieces=kept.vocab_size, layers=chosen, max_len=max_len))
    return folder


NOTE = """\
# A small pretrained encoder

A `BertEncoder` of notebook 14 with {size:,} parameters and {pieces:,} word pieces, in 8 bits a weight, for texts of up to
{max_len} tokens. Its name is enough:

    encoder, tokenizer = load_bert("encoder")           # from course_utils.pretraining

It's a part of all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2): the {layers} of its
six layers, the vectors of {pieces:,} of its 30,522 word pieces, and its first {max_len} positions. `python -m course_tools
models` cut it out (course_tools/studies/kept_encoder.py). Nothing was trained after that.

## What it was trained on

Not on opinions, by us: no label of the course's texts or of any review ever reached these weights, and that's what notebook
14 needs it for. MiniLM (Wang et al. 2020, https://arxiv.org/abs/2002.10957) learned to imitate the attention of a larger
model, which had been pretrained on hidden words. all-MiniLM-L6-v2 was then trained on about a billion pairs of sentences,
to give sentences that belong together similar vectors. The pieces are those that the reader's training texts
(data/checkpoints/reader) have most often.

## Licence

MiniLM's weights come under the Apache License 2.0, a copy of which lies beside this file (`LICENSE-Apache-2.0.txt`).
These are changed: fewer layers, word pieces and positions, rounded.
"""
