"""Attention on some of the pairs, computed on what it keeps: near, global and random blocks, and dilation.

Does: says by a table of blocks which keys each block of queries sees (`near_blocks`, and on top of it
`with_global_blocks` and `with_random_blocks`), and attends to these alone (`block_attention`, `dilated_attention`,
`SparseAttention`). Does not: know padding or a causal order, or return weights. A text must have a whole number of blocks.

Exported from notebooks/extras/fewer_pairs.ipynb: edit it there.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.attention import AttentionResult
from course_utils.multi_head_attention import MultiHeadAttention

__all__ = ["near_blocks", "with_global_blocks", "with_random_blocks", "block_attention", "dilated_attention",
           "SparseAttention"]


def near_blocks(num_blocks: int, reach: int = 1) -> Tensor:
    """Each block sees itself and `reach` blocks on each side: (query, key), bool.

    Taught in extras/fewer_pairs, '4. A few drawn at random'.
    """
    at = torch.arange(num_blocks)
    return (at[:, None] - at).abs() <= reach


def with_global_blocks(kept: Tensor, number: int = 1) -> Tensor:
    """The first blocks see all, and all see them (Beltagy et al. 2020, section 3.1).

    Taught in extras/fewer_pairs, '4. A few drawn at random'.
    """
    kept = kept.clone()
    kept[:number] = True
    kept[:, :number] = True
    return kept


def with_random_blocks(kept: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """Each row gets `number` blocks more, drawn from those that it doesn't see yet.

    Zaheer et al. 2020, section 2. A row that has fewer left gets these.

    Taught in extras/fewer_pairs, '4. A few drawn at random'.
    """
    kept = kept.clone()
    for row in kept:
        free = (~row).nonzero().flatten()
        order = torch.randperm(len(free), generator=generator)
        row[free[order[:number]]] = True
    return kept


def block_attention(
    query: Tensor, key: Tensor, value: Tensor, kept: Tensor, size: int
) -> Tensor:
    """Attention to the blocks of keys that `kept` (blocks, blocks) has for each block.

    query, key, value (..., n, d) -> context (..., n, d), with n = blocks · size. Raises
    ValueError for a text of another length.

    Taught in extras/fewer_pairs, '5. Computed on what it keeps'.
    """
    if query.shape[-2] != len(kept) * size:
        raise ValueError(f"{query.shape[-2]} tokens; expected {len(kept)} blocks of "
                         f"{size}, {len(kept) * size} tokens: pad or cut the text")
    contexts = []
    for row, asking in zip(kept, query.split(size, dim=-2)):
        j = (row.nonzero() * size + torch.arange(size)).flatten()    # positions of keys
        contexts.append(F.scaled_dot_product_attention(
            asking, key[..., j, :], value[..., j, :]))               # (..., size, d)
    return torch.cat(contexts, dim=-2)


def dilated_attention(
    query: Tensor, key: Tensor, value: Tensor, kept: Tensor, size: int, step: int
) -> Tensor:
    """`block_attention` in each of the `step` texts made of every step-th token.

    query, key, value (..., n, d) -> context (..., n, d), with n = blocks · size · step.

    Taught in extras/fewer_pairs, '5. Computed on what it keeps'.
    """
    def dealt(x):                              # (..., n, d) -> (..., step, n / step, d)
        return x.unflatten(-2, (-1, step)).transpose(-3, -2)

    context = block_attention(dealt(query), dealt(key), dealt(value), kept, size)
    return context.transpose(-3, -2).flatten(-3, -2)


class SparseAttention(MultiHeadAttention):
    """Multi-head attention on the blocks that `kept` (blocks, blocks) keeps.

    As `MultiHeadAttention`, for texts of blocks · size tokens; takes no mask and no
    bias and returns no weights: raises ValueError where these are asked for.

    Taught in extras/fewer_pairs, '5. Computed on what it keeps'.
    """

    def __init__(self, d_model: int, num_heads: int, kept: Tensor, size: int):
        super().__init__(d_model, num_heads)
        self.kept, self.size = kept, size

    def attend(self, query, key, value, mask=None, bias=None, need_weights=False):
        if mask is not None or bias is not None or need_weights:
            raise ValueError("SparseAttention takes neither mask nor bias, and has no "
                             "table of weights to return")
        return AttentionResult(
            block_attention(query, key, value, self.kept, self.size), None)
