"""The scores of Bahdanau and Luong, and what becomes of them: weights, and a weighted mean."""

import torch
from torch import Tensor, nn

from course_utils.attention import AttentionResult
from course_utils.options import check_options, one_of, whole

__all__ = ["weighted_states", "AdditiveAttention", "LUONG_SCORES", "LuongAttention"]


def weighted_states(scores: Tensor, states: Tensor, mask: Tensor) -> AttentionResult:
    """Softmax of scores (batch, query, source) over the real words, mask (batch, source), and the mean of the states.

    A sentence without a real word gives zeros. Returns context (batch, query, d_states) and the weights.

    Taught in 16_recurrent_attention, '2. Look back'.
    """
    mask = mask[:, None]                                                   # (batch, 1, source)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1) * mask
    return AttentionResult(weights @ states, weights)


class AdditiveAttention(nn.Module):
    """score = v · tanh(W_q query + W_k state): Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473, appendix A.1.2.

    (query (batch, query, d_query), states (batch, source, d_states), mask (batch, source), keys) -> AttentionResult.
    `keys(states)` doesn't depend on the query: a decoder that asks word by word computes it once and hands it over.

    Taught in 16_recurrent_attention, '2. Look back'.
    """

    def __init__(self, d_query: int, d_states: int, d_attention: int):
        super().__init__()
        check_options({"d_query": d_query, "d_states": d_states, "d_attention": d_attention},
                      dict.fromkeys(("d_query", "d_states", "d_attention"), whole(1, 65_536)))
        self.W_q = nn.Linear(d_query, d_attention)
        self.W_k = nn.Linear(d_states, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """W_k times each state: (batch, source, d_attention)."""
        return self.W_k(states)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """One number for each query and key: (batch, query, source)."""
        both = self.W_q(query)[:, :, None] + keys[:, None]                 # (batch, query, source, d_attention)
        return self.v(both.tanh()).squeeze(-1)

    def forward(self, query: Tensor, states: Tensor, mask: Tensor, keys: Tensor | None = None) -> AttentionResult:
        keys = self.keys(states) if keys is None else keys
        return weighted_states(self.scores(query, keys), states, mask)


LUONG_SCORES = ("dot", "general", "concat")


class LuongAttention(nn.Module):
    """The scores of Luong et al. 2015, https://arxiv.org/abs/1508.04025, section 3.1, for a query q and a state h:

    "dot" q · h, "general" q · W h, "concat" v · tanh(W [q; h]). Used as `AdditiveAttention` is. Raises ValueError for
    another score, and for "dot" with a query of another width than the states.

    Taught in 16_recurrent_attention, '2. Look back'.
    """

    def __init__(self, score: str, d_query: int, d_states: int):
        super().__init__()
        check_options({"score": score, "d_query": d_query, "d_states": d_states},
                      {"score": one_of(*LUONG_SCORES), "d_query": whole(1, 65_536), "d_states": whole(1, 65_536)})
        if score == "dot" and d_query != d_states:
            raise ValueError(f"score='dot' with a query of {d_query} numbers and states of {d_states}; a dot product needs "
                             "equal widths: use score='general'")
        self.score = score
        if score == "general":
            self.W = nn.Linear(d_states, d_query, bias=False)
        if score == "concat":
            self.W_q = nn.Linear(d_query, d_states)                        # W in two halves: W [q; h] = W_q q + W_h h
            self.W_h = nn.Linear(d_states, d_states, bias=False)
            self.v = nn.Linear(d_states, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """What of the states meets a query: (batch, source, width)."""
        return {"dot": lambda: states, "general": lambda: self.W(states), "concat": lambda: self.W_h(states)}[self.score]()

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """One number for each query and key: (batch, query, source)."""
        if self.score == "concat":
            return self.v((self.W_q(query)[:, :, None] + keys[:, None]).tanh()).squeeze(-1)
        return query @ keys.mT

    def forward(self, query: Tensor, states: Tensor, mask: Tensor, keys: Tensor | None = None) -> AttentionResult:
        keys = self.keys(states) if keys is None else keys
        return weighted_states(self.scores(query, keys), states, mask)
