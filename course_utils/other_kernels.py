"""Attention with other kernels: by features of query and key, by random features, or over a few mixtures of the keys.

Does: `linear_attention` in its parallel form, also causal, and its step as a recurrence (`linear_step`);
`random_feature_attention`, which approaches the softmax; `low_rank_attention`, over mixed keys; `LinearAttention`, the first
as a layer. Does not: know padding, or return weights, which these forms never compute.

Exported from notebooks/extras/other_kernels.ipynb: edit it there.
"""

from torch import Tensor
from torch.nn import functional as F

from course_utils.attention import AttentionResult
from course_utils.multi_head_attention import MultiHeadAttention

__all__ = ["elu_features", "linear_attention", "LinearAttention", "linear_step", "random_feature_attention",
           "low_rank_attention"]


def elu_features(x: Tensor) -> Tensor:
    """elu(x) + 1: positive, e^x below zero (Katharopoulos et al. 2020, equation 7).

    Taught in extras/other_kernels, '2. Features'.
    """
    return F.elu(x) + 1


def linear_attention(
    query: Tensor, key: Tensor, value: Tensor, features=elu_features,
    causal: bool = False,
) -> Tensor:
    """Weights in proportion to features(query) · features(key), none of them computed.

    query, key (..., n, d), value (..., n, d_value) -> context (..., n, d_value).
    `causal`: each query with itself and what came before, all at once, for which the
    sums up to every position are kept: (..., n, features, d_value).

    Taught in extras/other_kernels, '2. Features'.
    """
    q, k = features(query), features(key)                 # (..., n, features)
    if causal:
        memory = (k[..., None] * value[..., None, :]).cumsum(dim=-3)
        total = k.cumsum(dim=-2)                          # (..., n, features)
        above = (q[..., None, :] @ memory).squeeze(-2)    # (..., n, d_value)
        return above / (q * total).sum(dim=-1, keepdim=True)
    memory = k.transpose(-2, -1) @ value                  # (..., features, d_value)
    total = k.sum(dim=-2, keepdim=True)                   # (..., 1, features)
    return (q @ memory) / (q @ total.transpose(-2, -1))


class LinearAttention(MultiHeadAttention):
    """Multi-head attention by features; takes no mask but the causal order.

    As `MultiHeadAttention`; raises ValueError for a mask, a bias or `need_weights`.

    Taught in extras/other_kernels, '2. Features'.
    """

    def __init__(self, d_model: int, num_heads: int, causal: bool = False):
        super().__init__(d_model, num_heads)
        self.causal = causal

    def attend(self, query, key, value, mask=None, bias=None, need_weights=False):
        if mask is not None or bias is not None or need_weights:
            raise ValueError("LinearAttention takes neither mask nor bias, and has no "
                             "table of weights to return")
        return AttentionResult(
            linear_attention(query, key, value, causal=self.causal), None)


def linear_step(S: Tensor, z: Tensor, q: Tensor, k: Tensor, v: Tensor):
    """One word more: S (..., features, d_value) and z (..., features) -> S, z, context.

    q and k (..., features) are features of the query and the key, v (..., d_value).

    Taught in extras/other_kernels, '3. Attention as a recurrence'.
    """
    S = S + k[..., :, None] * v[..., None, :]
    z = z + k
    context = (q[..., None, :] @ S).squeeze(-2) / (q * z).sum(dim=-1, keepdim=True)
    return S, z, context


def random_feature_attention(
    query: Tensor, key: Tensor, value: Tensor, directions: Tensor
) -> Tensor:
    """Softmax attention, approximately, by positive random features.

    Choromanski et al. 2020, lemma 1. directions (m, d): standard normal. query, key
    (..., n, d), value (..., n, d_value) -> context. The query's |q|²/2 cancels in its
    row, and largest exponents are subtracted as in any softmax.

    Taught in extras/other_kernels, '5. Random features'.
    """
    fourth_root = query.shape[-1] ** 0.25
    query, key = query / fourth_root, key / fourth_root
    q = query @ directions.T                              # (..., n, m)
    k = key @ directions.T - key.square().sum(dim=-1, keepdim=True) / 2
    q = (q - q.amax(dim=-1, keepdim=True)).exp() + 1e-6
    k = (k - k.amax(dim=(-2, -1), keepdim=True)).exp() + 1e-6
    return linear_attention(q, k, value, features=lambda x: x)


def low_rank_attention(
    query: Tensor, key: Tensor, value: Tensor, mix: Tensor
) -> Tensor:
    """Softmax attention to mix @ keys (Wang et al. 2020, equation 7).

    query, key (..., n, d), value (..., n, d_value), mix (m, n) -> context. The columns
    of `mix` belong to positions: it fits texts of n tokens alone, and isn't causal.

    Taught in extras/other_kernels, '6. A few mixtures of the keys'.
    """
    return F.scaled_dot_product_attention(query, mix @ key, mix @ value)
