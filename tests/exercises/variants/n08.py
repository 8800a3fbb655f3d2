"""Other right answers to the exercises of notebook 08, which a check must accept."""

import copy
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.attention import padding_mask

from course_exercises.n08.answers import RIGHT, WRONG


def _queries_in_loops(queries, x, attention_mask):
    rows, all_weights = [], []
    for vectors, real in zip(x, attention_mask):
        pooled, weights = [], []
        for query in queries:
            row = torch.zeros(len(vectors))
            words = vectors[real]
            row[real] = (words @ query / math.sqrt(len(query))).softmax(dim=0)
            pooled.append(row[real] @ words)
            weights.append(row)
        rows.append(torch.cat(pooled))
        all_weights.append(torch.stack(weights))
    return torch.stack(rows), torch.stack(all_weights)


def _queries_einsum(queries, x, attention_mask):
    scores = torch.einsum("qd,bsd->bqs", queries / len(queries[0]) ** 0.5, x)
    real = attention_mask[:, None]
    largest = scores.detach().masked_fill(~real, -1e30).amax(-1, keepdim=True)
    exponentials = torch.where(real, scores - largest, -torch.inf).exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-9)
    return torch.einsum("bqs,bsd->bqd", weights, x).reshape(len(x), -1), weights


def _queries_nan_to_zero(queries, x, attention_mask):
    scores = (queries.double() @ x.double().mT / x.size(2) ** 0.5).masked_fill(~attention_mask[:, None], -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return (weights @ x.double()).view(x.size(0), -1), weights


def _queries_vmap(queries, x, attention_mask):
    def one(query, words, real):
        scores = words @ query / len(query) ** 0.5
        largest = torch.where(real, scores, -1e30).max()
        exponentials = torch.where(real, scores - largest, -torch.inf).exp()
        weights = exponentials / exponentials.sum().clamp(min=1e-9)
        return weights @ words, weights
    each_query = torch.func.vmap(one, in_dims=(0, None, None))
    pooled, weights = torch.func.vmap(each_query, in_dims=(None, 0, 0))(queries, x, attention_mask)
    return list(pooled.flatten(1)), weights


def _forward_by_name(parts, token_ids, attention_mask):
    words = parts.embedding.weight[token_ids].mul(parts.scale)
    encoded = parts.encoder(x=parts.positions.add(words), mask=padding_mask(attention_mask), rotary=parts.positions.rotate,
                            bias=parts.positions.bias(token_ids.size(1)))
    return parts.output(parts.pooling(encoded.x, attention_mask=attention_mask)[0])


def _forward_one_by_one(parts, token_ids, attention_mask):
    """Each review by itself, at the positions that it has in the batch."""
    rows = []
    for ids, mask in zip(token_ids, attention_mask):
        x = parts.positions.add((parts.embedding(ids) * parts.scale)[None])
        x = parts.encoder(x, padding_mask(mask[None]), parts.positions.bias(len(ids)), parts.positions.rotate)[0]
        rows.append(parts.output(parts.pooling(x, mask[None])[0])[0])
    return torch.stack(rows)


def _forward_mask_by_hand(parts, token_ids, attention_mask):
    x = parts.positions.add(F.embedding(token_ids, parts.embedding.weight * parts.scale))
    x = parts.encoder(x, attention_mask[:, None, None, :], parts.positions.bias(x.shape[-2]), parts.positions.rotate).x
    pooled = parts.pooling(x, attention_mask)[0]
    return pooled @ parts.output.weight.T + parts.output.bias


def _loss_by_hand(logits, labels):
    shifted = logits - logits.amax(dim=1, keepdim=True)
    logarithms = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
    return -logarithms[torch.arange(len(labels)), labels].mean(), logarithms.exp()


def _loss_of_logarithms(logits, labels):
    logarithms = F.log_softmax(logits.double(), dim=-1)
    return F.nll_loss(logarithms, labels), logarithms.exp()


def _loss_one_hot(logits, labels):
    targets = F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return nn.CrossEntropyLoss()(logits, targets), nn.Softmax(dim=1)(logits)


def _loss_of_log(logits, labels):
    probabilities = logits.double().softmax(dim=-1)
    return F.cross_entropy(probabilities.log(), labels), probabilities    # its softmax changes nothing any more


def _loss_gathered(logits, labels):
    probabilities = logits.double().softmax(dim=1)
    return -probabilities.gather(1, labels[:, None]).log().mean(dim=0), probabilities.detach().numpy()


def _loss_loop(logits, labels):
    total = 0.0
    for row, label in zip(logits, labels):
        total = total + row.logsumexp(dim=0) - row[label]
    return [total / len(labels), F.softmax(logits, dim=-1)]


def _share_inference(model, several):
    mode = model.training
    try:
        with torch.inference_mode():
            model.train(False)
            hits = torch.cat([model(batch.token_ids, batch.attention_mask).logits.argmax(-1).eq(batch.labels)
                              for batch in several])
    finally:
        model.train(mode)
    return hits.float().mean()


@torch.no_grad()
def _share_of_a_copy(model, several):
    still = copy.deepcopy(model).eval()
    hits = []
    for batch in several:
        hits += (still(batch.token_ids, batch.attention_mask).logits.max(dim=1)[1] == batch.labels).tolist()
    return np.mean(hits)


@torch.no_grad()
def _share_if(model, several):
    was = model.training
    model.eval()
    wrong = sum((model(b.token_ids, b.attention_mask)[0].softmax(-1).max(-1).indices != b.labels).sum() for b in several)
    if was:
        model.train()
    return 1 - wrong / sum(len(b.labels) for b in several)


def _share_weighted(model, several):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    shares, sizes = [], []
    for batch in several:
        with torch.no_grad():
            logits = model(token_ids=batch.token_ids, attention_mask=batch.attention_mask).logits
        shares.append((logits.argmax(dim=-1) == batch.labels).float().mean())
        sizes.append(len(batch.labels))
    for module, training in modes.items():
        module.training = training
    return sum(share * size for share, size in zip(shares, sizes)) / sum(sizes)


@torch.no_grad()
def _share_all_at_once(model, several):
    """Batches of the same length put into one; the model finds the padding itself."""
    was_training = model.training
    model.eval()
    chosen = model(torch.cat([batch.token_ids for batch in several])).logits.sort(dim=-1).indices[:, -1]
    model.train(was_training)
    return np.mean((chosen == torch.cat([batch.labels for batch in several])).tolist())


VARIANTS = {
    "8.1": {"loops": _queries_in_loops, "einsum": _queries_einsum, "nan to zero": _queries_nan_to_zero,
            "vmap": _queries_vmap},
    "8.2": {"by name": _forward_by_name, "one review at a time": _forward_one_by_one, "mask by hand": _forward_mask_by_hand},
    "8.3": {"by hand": _loss_by_hand, "logarithms": _loss_of_logarithms, "one hot": _loss_one_hot,
            "of the log": _loss_of_log, "a loop": _loss_loop, "gathered": _loss_gathered},
    "8.4": {"exact": lambda: 0.55 * RIGHT + 0.45 * WRONG, "two decimals": lambda: 1.09, "a text": lambda: "1,094",
            "a tensor": lambda: torch.tensor(1.0941)},
    "8.5": {"inference mode": _share_inference, "a copy": _share_of_a_copy, "only if it was": _share_if,
            "weighted": _share_weighted, "all at once": _share_all_at_once},
}
