"""Hide some tokens of a text, so that a model can be asked for them."""

from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.options import check_options, fraction

__all__ = ["MaskedTokens", "mask_tokens"]


class MaskedTokens(NamedTuple):
    """`inputs` (batch, seq_len): what the model reads; `chosen` (batch, seq_len) bool: the positions that it's asked for.
    """

    inputs: Tensor
    chosen: Tensor


def mask_tokens(
    token_ids: Tensor, can_hide: Tensor, mask_id: int, vocab_size: int, rate: float = 0.15,
    generator: torch.Generator | None = None,
) -> MaskedTokens:
    """Choose tokens to be asked for, and hide most of them (Devlin et al. 2019, section 3.1).

    token_ids (batch, seq_len); can_hide (batch, seq_len) bool, False for padding and special tokens. Each token that can be
    hidden is chosen with probability `rate`. Of the chosen, 80 % become `mask_id`, 10 % a random id below `vocab_size`, and
    10 % stay. Raises ValueError for a rate that isn't a fraction, or shapes that differ.

    Taught in 14_pretraining, '1. Hide a word, and ask only there'.
    """
    check_options({"rate": rate}, {"rate": fraction()})
    if token_ids.shape != can_hide.shape:
        raise ValueError(f"token_ids have shape {tuple(token_ids.shape)}, can_hide {tuple(can_hide.shape)}; give equal ones")
    where, device = token_ids.shape, token_ids.device
    chosen = (torch.rand(where, generator=generator, device=device) < rate) & can_hide
    fate = torch.rand(where, generator=generator, device=device)           # of each token, if it's chosen
    others = torch.randint(vocab_size, where, generator=generator, device=device)
    inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)
    return MaskedTokens(torch.where(chosen & (fate >= 0.8) & (fate < 0.9), others, inputs), chosen)
