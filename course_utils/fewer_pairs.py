"""Draft."""
import torch
from torch import Tensor
from torch.nn import functional as F

def near_blocks(num_blocks, reach=1):
    i = torch.arange(num_blocks)
    return (i[:, None] - i).abs() <= reach

def with_global_blocks(kept, number=1):
    kept = kept.clone()
    kept[:number] = True
    kept[:, :number] = True
    return kept

def with_random_blocks(kept, number, generator):
    kept = kept.clone()
    for row in kept:
        free = (~row).nonzero().flatten()
        row[free[torch.randperm(len(free), generator=generator)[:number]]] = True
    return kept

def block_attention(query, key, value, kept, size):
    contexts = []
    for row, q in zip(kept, query.split(size, dim=-2)):
        j = row.nonzero()*size + torch.arange(size)
        j = j.flatten()
        contexts.append(F.scaled_dot_product_attention(q, key[..., j, :], value[..., j, :]))
    return torch.cat(contexts, dim=-2)

def dilated_attention(query, key, value, kept, size, step):
    def apart(x):     # (..., n, d) -> (..., step, n / step, d)
        return x.unflatten(-2, (-1, step)).transpose(-3, -2)
    context = block_attention(*map(apart, (query, key, value)), kept, size)
    return context.transpose(-3, -2).flatten(-3, -2)
