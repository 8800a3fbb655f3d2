"""Other right answers to the exercises of notebook 05, which a check must accept."""

import numpy as np
import torch
from torch.nn import functional as F

from course_utils.multi_head_attention import MultiHeadAttention

from course_exercises.n05.answers import _sizes, into_heads, join_heads


def _split_loops(x, num_heads):
    batch, length, d_model = x.shape
    out = torch.zeros(batch, num_heads, length, d_model // num_heads)
    for b in range(batch):
        for h in range(num_heads):
            for position in range(length):
                for d in range(d_model // num_heads):
                    out[b, h, position, d] = x[b, position, h * (d_model // num_heads) + d]
    return out


def _split_recursively(x, num_heads):
    if num_heads == 1:
        return x[:, None]
    width = x.shape[-1] // num_heads
    return torch.cat([x[:, None, :, :width], _split_recursively(x[..., width:], num_heads - 1)], dim=1)


def _join_loops(x):
    batch, heads, length, d_head = x.shape
    out = torch.zeros(batch, length, heads * d_head)
    for h in range(heads):
        for position in range(length):
            out[:, position, h * d_head:(h + 1) * d_head] = x[:, h, position]
    return out


def _head_by_head(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    width = x.shape[-1] // num_heads
    total, maps = 0, []
    for h in range(num_heads):
        own = slice(h * width, (h + 1) * width)
        scores = (x @ W_query[:, own]) @ (x @ W_key[:, own]).mT * width**-0.5
        weights = torch.where(attention_mask[:, None, :], scores, torch.tensor(-1e9)).softmax(-1)
        total = total + weights @ (x @ W_value[:, own]) @ W_output[own]    # each head's own output map, added
        maps.append(weights)
    return total, torch.stack(maps, dim=1)


def _einsum(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    q, k, v = (torch.einsum("bld,dhe->bhle", x, W.reshape(len(W), num_heads, -1)) for W in (W_query, W_key, W_value))
    weights = torch.einsum("bhqe,bhke->bhqk", q, k).div(q.shape[-1] ** 0.5)
    weights = weights.add((~attention_mask[:, None, None, :]).float() * -1e9).softmax(-1)
    return [torch.einsum("bhqk,bhke,hed->bqd", weights, v, W_output.reshape(num_heads, -1, len(W_output))), weights]


def _fused(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    q, k, v = (into_heads(x @ W, num_heads) for W in (W_query, W_key, W_value))
    mask = attention_mask[:, None, None, :]
    bias = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)          # the mask as numbers to be added
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return join_heads(context) @ W_output, (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1)


def _text_by_text(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    contexts, maps = [], []
    for text, real in zip(x, attention_mask):
        words, context, rows = text[real], 0, []                           # padding is cut off, not masked
        parts = zip(*(W.chunk(num_heads, 1) for W in (W_query, W_key, W_value)), W_output.chunk(num_heads))
        for q, k, v, o in parts:
            row = torch.softmax(text @ q @ (words @ k).T / q.shape[1] ** 0.5, 1)
            context = context + row @ (words @ v) @ o
            rows.append(torch.nn.functional.pad(row, (0, len(text) - len(words))))
        contexts.append(context)
        maps.append(torch.stack(rows))
    return torch.stack(contexts), torch.stack(maps)


VARIANTS = {
    "5.1": {
      "view and permute": lambda x, n: x.view(*_sizes(x, n)).permute(0, 2, 1, 3),
      "chunks": lambda x, n: torch.stack(x.chunk(n, dim=-1), dim=1),
      "slices": lambda x, n: torch.stack([x[..., h * (x.shape[-1] // n):(h + 1) * (x.shape[-1] // n)]
                                          for h in range(n)]).transpose(0, 1),
      "loops": _split_loops,
      "numpy": lambda x, n: np.swapaxes(x.numpy().reshape(_sizes(x, n)), 1, 2),
      "list of heads": lambda x, n: [list(torch.stack(t.chunk(n, dim=-1))) for t in x],
      "cut off one by one": _split_recursively,
      "columns looked up": lambda x, n: x[:, :, torch.arange(x.shape[-1]).view(n, -1)].movedim(2, 1),
      "columns first": lambda x, n: x.transpose(1, 2).unflatten(1, (n, -1)).transpose(2, 3),
  },
    "5.2": {
      "contiguous view": lambda x: x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[2], -1),
      "reshape": lambda x: x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
      "side by side": lambda x: torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1),
      "numpy": lambda x: np.concatenate(list(x.double().numpy().swapaxes(0, 1)), axis=-1),
      "loops": _join_loops,
      "words in tuples": lambda x: tuple(tuple(torch.cat(tuple(t[:, word])) for word in range(t.shape[1])) for t in x),
      "vmap": torch.func.vmap(torch.func.vmap(torch.flatten, in_dims=1)),
  },
    "5.3": {
      "built": lambda: sum(p.numel() for p in MultiHeadAttention(512, 8).parameters()),
      "library": lambda: sum(p.numel() for p in torch.nn.MultiheadAttention(512, 8).parameters()),
      "head by head": lambda: 8 * 3 * (512 * 64 + 64) + 512 * 512 + 512,
      "a text": lambda: "1_050_624",
      "numpy": lambda: np.int64(1050624),
  },
    "5.4": {"head by head": _head_by_head, "einsum": _einsum,
            "fused": _fused, "text by text": _text_by_text},
    "5.5": {
      "all 25 pairs": lambda: torch.tensor([[float(i != j) for i in range(5)] for j in range(5)]).mean(),
      "a text": lambda: "0,8",
      "by entropies": lambda: (
          20 / 25 * (-2 * 0.5 * np.log(0.5)) / np.log(2)
      ),
  },
}
