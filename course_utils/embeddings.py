"""A review as the mean of its word vectors, and a classifier on top of it.

Does: `masked_mean`, `BagOfEmbeddings`, as notebook 03 writes them, with a check of shapes and a mask where none is given;
tests/test_embeddings.py holds them equal to the notebook's. Does not: know the order of the words.
"""

import torch
from torch import nn

__all__ = ["masked_mean", "BagOfEmbeddings"]


def masked_mean(x: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """Mean over the real tokens only: x (batch, seq_len, d_model), mask (batch, seq_len) True = real.

    A row without a real token gives zeros. Returns (batch, d_model).

    Taught in 03_embeddings, '2. Padding, and the mean that forgets its mask'.
    """
    if x.dim() != 3 or x.shape[:2] != attention_mask.shape:
        raise ValueError(f"x has shape {tuple(x.shape)} and attention_mask {tuple(attention_mask.shape)}; they must be "
                         "(batch, seq_len, d_model) and (batch, seq_len). For a single text, write token_ids[None]")
    mask = attention_mask.unsqueeze(-1).to(x.dtype)                        # (batch, seq_len, 1)
    return (x * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)            # (batch, d_model)


class BagOfEmbeddings(nn.Module):
    """Look up a vector for each word, average them, and read the class off the average.

    (token_ids (batch, seq_len), attention_mask or None) -> logits (batch, num_classes).
    Without a mask, every id but `pad_id` counts as real.

    Taught in 03_embeddings, '3. You write the classifier'.
    """

    def __init__(self, vocab_size: int, d_model: int = 16, num_classes: int = 2, pad_id: int = 0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.output = nn.Linear(d_model, num_classes)

    def forward(self, token_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        if attention_mask is None:
            attention_mask = token_ids != self.pad_id                      # (batch, seq_len)
        vectors = self.embedding(token_ids)                                # (batch, seq_len, d_model)
        return self.output(masked_mean(vectors, attention_mask))           # (batch, num_classes)
