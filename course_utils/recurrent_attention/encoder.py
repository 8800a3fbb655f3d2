"""A recurrent encoder, and what it hands to the decoder."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_utils.options import check_options, one_of, whole
from course_utils.shapes import check_flags
from course_utils.training.pair_batches import PAD

__all__ = ["LAYERS", "Memory", "RecurrentEncoder", "check_source"]


LAYERS = {"GRU": nn.GRU, "LSTM": nn.LSTM}


class Memory(NamedTuple):
    """What an encoder knows of a batch: `states` (batch, source, d_hidden), one for each word, their `mask` (batch, source),
    and `summary` (batch, d_hidden), the one vector of a whole sentence.

    Taught in 16_recurrent_attention, '1. Four words, one vector'.
    """

    states: Tensor
    mask: Tensor
    summary: Tensor


class RecurrentEncoder(nn.Module):
    """(source_ids, source_mask), both (batch, source) -> Memory: a GRU or an LSTM that reads in both directions.

    Each direction is half as wide as d_hidden. A word's state is both directions' state at that word; the summary is the
    state of each after its last word. Padding changes nothing. Raises ValueError for a sentence without a word, and for
    padding that doesn't come after the words.

    Taught in 16_recurrent_attention, '1. Four words, one vector'.
    """

    def __init__(self, vocab_size: int, d_model: int, d_hidden: int, cell: str = "GRU", dropout: float = 0.0):
        super().__init__()
        check_options({"cell": cell, "d_hidden": d_hidden // 2}, {"cell": one_of(*LAYERS), "d_hidden": whole(1, 65_536)})
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=PAD)
        self.dropout = nn.Dropout(dropout)
        self.rnn = LAYERS[cell](d_model, d_hidden // 2, batch_first=True, bidirectional=True)

    def forward(self, source_ids: Tensor, source_mask: Tensor) -> Memory:
        check_source(source_ids, source_mask)
        lengths = source_mask.sum(dim=1)
        x = self.dropout(self.embedding(source_ids))                       # (batch, source, d_model)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source_ids.shape[1])
        last = last[0] if isinstance(last, tuple) else last                # (direction, batch, d_hidden / 2)
        return Memory(states, source_mask, last.transpose(0, 1).flatten(1))


def check_source(source_ids: Tensor, source_mask: Tensor) -> None:
    """Refuse what isn't a batch of sentences with padding after their words. Raises ValueError.

    Taught in 16_recurrent_attention, '1. Four words, one vector'.
    """
    if source_ids.dim() != 2:
        raise ValueError(f"source_ids have shape {tuple(source_ids.shape)}; they must be (batch, source). For a single "
                         "sentence, write source_ids[None]")
    check_flags(source_mask, *source_ids.shape)
    lengths = source_mask.sum(dim=1)
    if (lengths == 0).any():
        raise ValueError(f"sentence {int((lengths == 0).nonzero()[0])} of the batch has no word; leave empty sentences out")
    if (source_mask != (torch.arange(source_ids.shape[1], device=lengths.device) < lengths[:, None])).any():
        raise ValueError("a mask has False before True; padding must come after the words, as pad_batch puts it")
