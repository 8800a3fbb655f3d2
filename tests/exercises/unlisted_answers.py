"""Wrong answers that no exercise lists among its mistakes, and calls of what should be written out."""

import math
import re
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F

from course_utils import attention, classifier, multi_head_attention, pretraining
from course_utils.exercises.catalogue import answers_to

RIGHT = {number: answers_to(number).reference for number in (
    "1.1 1.3 1.4 2.2 2.3 2.4 2.6 3.1 3.2 3.4 3.5 4.2 4.3 4.4 4.5 5.1 5.2 5.4 6.1 6.4 7.2 7.4 8.1 8.3 8.5 9.1 9.3 9.4 10.2 "
    "10.3 10.4 11.1 11.2 11.3 11.5 12.1 12.2 12.3 12.4 13.2 13.3 13.6").split()}


def changed(number: str, how):
    """The right answer with its output changed."""
    return lambda *inputs: how(RIGHT[number](*inputs))


def on(number: str, how):
    """The right answer on other inputs: `how` gets the inputs and gives new ones."""
    return lambda *inputs: RIGHT[number](*how(*inputs))


def both(how):
    return lambda pair: tuple(how(part) for part in pair)


def spans_at_the_next_character(marked):
    text, spans, start, end = "", [], None, None
    for sign in marked:
        if sign == "[":
            start = len(text)
        elif sign == "]":
            end = len(text)
        else:
            if end is not None:
                spans.append((start, end))
                end = None
            text += sign
    return text, spans


def spans_of_letters_only(marked):
    text, spans = RIGHT["1.1"]("".join(re.findall(r"[A-Za-z \[\],;.]", marked)))
    return text, spans


def filled(number, value):
    """Attention of 4.3 or 8.1 with a number that is not low enough."""
    def masked(query, key, value_, mask):
        scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~mask, value)
        return scores.softmax(-1) @ value_, scores.softmax(-1)

    def queries(queries, x, attention_mask):
        real = attention_mask[:, None]
        weights = (queries @ x.mT / math.sqrt(x.shape[-1])).masked_fill(~real, value).softmax(-1)
        weights = weights * attention_mask.any(dim=1)[:, None, None]
        return (weights @ x).flatten(1), weights

    def heads(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
        q, k, v = (RIGHT["5.1"](x @ W, num_heads) for W in (W_query, W_key, W_value))
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~attention_mask[:, None, None], value).softmax(-1)
        return RIGHT["5.2"](weights @ v) @ W_output, weights
    return {"4.3": masked, "8.1": queries, "5.4": heads}[number]


def padded_with(value):
    def pool(x, attention_mask):
        mask = attention_mask[..., None]
        largest = x.masked_fill(~mask, value).amax(1) * mask.any(1)
        return torch.cat([(x * mask).sum(1) / mask.sum(1).clamp(min=1), largest], dim=-1)
    return pool


def softmax_in_place(query, key, value, mask):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~mask, -1e9).softmax(-1)
    weights[~mask.expand_as(weights)] = 0
    return weights @ value, weights


def mean_without_gradient(x, weight, bias, eps):
    deviations = x - x.mean(-1, keepdim=True)
    with torch.no_grad():
        return deviations / (deviations.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


def weights_cut_off(query, key, value):
    weights = RIGHT["4.2"](query, key, value)[1].detach()
    return weights @ value, weights


class TableCut(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x, offset=0):
        return x.detach() + self.table[offset : offset + x.shape[-2]]


class LastRowsMissing(TableCut):
    def forward(self, x, offset=0):
        return x + self.table[:-1][offset : offset + x.shape[-2]]


class StackCut(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.blocks = nn.ModuleList(make_block() for _ in range(num_layers))

    def forward(self, x):
        x = x.detach()
        for block in self.blocks:
            x = block(x)
        return x


class StackSqueezed(StackCut):
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.squeeze(0)


def ids_by_length(train, texts, min_freq):
    counts = Counter(" ".join(train).split())
    ids = {word: i for i, word in enumerate(sorted(counts, key=lambda w: (-counts[w], len(w), w)), 2)}
    return [[ids.get(word, 1) if counts[word] >= min_freq else 1 for word in text.split()] for text in texts]


def library_masked(query, key, value, mask):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask), RIGHT["4.3"](query, key, value, mask)[1]


def library_heads(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    layer = nn.MultiheadAttention(x.shape[-1], num_heads, bias=False, batch_first=True)
    layer.in_proj_weight.data = torch.cat([W_query.T, W_key.T, W_value.T])
    layer.out_proj.weight.data = W_output.T
    return layer(x, x, x, key_padding_mask=~attention_mask, average_attn_weights=False)


def course_heads(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    layer = multi_head_attention.MultiHeadAttention(x.shape[-1], num_heads, projection_bias=False)
    names = ("query_projection", "key_projection", "value_projection", "output_projection")
    for name, W in zip(names, (W_query, W_key, W_value, W_output)):
        getattr(layer, name).load_state_dict({"weight": W.T})
    return layer(x, mask=attention_mask[:, None, None, :], need_weights=True)


def queries_by_library(queries, x, attention_mask):
    mask = attention_mask[:, None].expand(-1, len(queries), -1)
    found = F.scaled_dot_product_attention(queries.expand(len(x), -1, -1), x, x, attn_mask=mask)
    return found.flatten(1), RIGHT["8.1"](queries, x, attention_mask)[1]


def queries_by_course(queries, x, attention_mask):
    context, weights = attention.scaled_dot_product_attention(queries.expand(len(x), -1, -1), x, x, attention_mask[:, None])
    return context.flatten(1), weights


def adapter_by_class(weight, rank):
    adapter = pretraining.LowRankAdapter(torch.nn.Linear(*weight.shape[::-1]), rank)
    return adapter.down, adapter.up


def queries_by_class(queries, x, attention_mask):
    found = []
    for query in queries:
        module = classifier.AttentionPooling(len(query))
        module.query.data = query.reshape(module.query.shape)
        found.append(module(x, attention_mask))
    return torch.cat([one for one, _ in found], dim=1), torch.stack([weights for _, weights in found], dim=1)


def norm_by_module(x, weight, bias, eps):
    norm = nn.LayerNorm(x.shape[-1], eps=eps).to(x.dtype)
    norm.weight.data, norm.bias.data = weight, bias
    return norm(x)


def swallowing(query, key, value):
    try:
        return F.scaled_dot_product_attention(query, key, value), RIGHT["4.2"](query, key, value)[1]
    except Exception:
        return None


def spans_of_one_line(marked):
    spans = [(m.start(1) - 2 * i - 1, m.end(1) - 2 * i - 1) for i, m in enumerate(re.finditer(r"\[(.*?)\]", marked))]
    return re.sub(r"\[(.*?)\]", r"\1", marked), spans


def log_of_a_product(texts, labels, text):
    counts = {label: Counter(" ".join(one for one, own in zip(texts, labels) if own == label).split()) for label in (0, 1)}
    words = set(counts[0]) | set(counts[1])
    odds = sum(labels) / (len(labels) - sum(labels))
    for word in text.split():
        if word in words:
            odds *= (counts[1][word] + 1) / (counts[1].total() + len(words))
            odds /= (counts[0][word] + 1) / (counts[0].total() + len(words))
    return math.log(odds)


def words_glued(train, test):
    def glued(text):
        return "".join(sorted(re.findall(r"\w+|[^\w\s]", text.lower())))
    return [text for text in train if glued(text) not in [glued(other) for other in test]]


def pooled_by_hand(low, empty):
    def pool(x, attention_mask):
        mask = attention_mask[..., None]
        largest = low(x, mask).amax(1)
        return torch.cat([(x * mask).sum(1) / mask.sum(1).clamp(min=1), empty(largest, mask)], dim=-1)
    return pool


def naive_softmax(query, key, value):
    exps = (query @ key.mT / math.sqrt(query.shape[-1])).exp()
    weights = exps / exps.sum(-1, keepdim=True)
    return weights @ value, weights


def shared_out_again(query, key, value, mask):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1).masked_fill(~mask, 0)
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ value, weights


def never_quite_zero(query, key, value, mask):
    weights = RIGHT["4.3"](query, key, value, mask)[1].clamp(min=1e-6)
    return weights @ value, weights


def exps_and_a_little(query, key, value, mask):
    exps = (query @ key.mT / math.sqrt(query.shape[-1])).exp() * mask
    weights = exps / (exps.sum(-1, keepdim=True) + 1e-9)
    return weights @ value, weights


def two_means(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / (x.square().mean(-1, keepdim=True) - mean**2 + eps).sqrt() * weight + bias


def statistics_without_gradient(x, weight, bias, eps):
    with torch.no_grad():
        mean, deviation = x.mean(-1, keepdim=True), (x.var(-1, keepdim=True, correction=0) + eps).sqrt()
    return (x - mean) / deviation * weight + bias


def log_of_softmax(logits, labels):
    probabilities = logits.softmax(-1)
    return F.nll_loss(probabilities.log(), labels), probabilities


def log_and_a_little(logits, labels):
    probabilities = logits.softmax(-1)
    return F.nll_loss((probabilities + 1e-8).log(), labels), probabilities


def nonzero_ids(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for row, n in zip(shuffled, (token_ids != 0).sum(dim=1).tolist()):
        row[:n] = row[torch.randperm(n)]
    return shuffled


def two_words_exchanged(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for row, n in zip(shuffled, attention_mask.sum(dim=1).tolist()):
        if n > 1:
            places = torch.randperm(n)[:2]
            row[places] = row[places.flip(0)]
    return shuffled


def at_its_bar(p_values, level):
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    verdicts = [False] * len(order)
    for step, i in enumerate(order):
        if p_values[i] > level / (len(order) - step):
            break
        verdicts[i] = True
    return verdicts


def widths_up_to(most):
    def width(vocab_size, d_model, budget):
        counts = {w: vocab_size * d_model + 4 * w * (d_model + w + 2) + 2 * w + 2 for w in range(1, most)}
        return max((w, count) for w, count in counts.items() if count <= budget)
    return width


sdpa = F.scaled_dot_product_attention                   # under another name
