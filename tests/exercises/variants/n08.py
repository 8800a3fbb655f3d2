"""Other right answers to the exercises of notebook 08, which a check must accept."""


import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.attention import padding_mask

from course_exercises.n08.answers import RIGHT, WRONG


def _queries_einsum(queries, x, attention_mask):
    scores = torch.einsum("qd,bsd->bqs", queries / len(queries[0]) ** 0.5, x)
    real = attention_mask[:, None]
    largest = scores.detach().masked_fill(~real, -1e30).amax(-1, keepdim=True)
    exponentials = torch.where(real, scores - largest, -torch.inf).exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-9)
    return torch.einsum("bqs,bsd->bqd", weights, x).reshape(len(x), -1), weights


def _forward_by_name(parts, token_ids, attention_mask):
    words = parts.embedding.weight[token_ids].mul(parts.scale)
    encoded = parts.encoder(x=parts.positions.add(words), mask=padding_mask(attention_mask), rotary=parts.positions.rotate,
                            bias=parts.positions.bias(token_ids.size(1)))
    return parts.output(parts.pooling(encoded.x, attention_mask=attention_mask)[0])


def _loss_one_hot(logits, labels):
    targets = F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return nn.CrossEntropyLoss()(logits, targets), nn.Softmax(dim=1)(logits)


@torch.no_grad()
def _share_all_at_once(model, several):
    """Batches of the same length put into one; the model finds the padding itself."""
    was_training = model.training
    model.eval()
    chosen = model(torch.cat([batch.token_ids for batch in several])).logits.sort(dim=-1).indices[:, -1]
    model.train(was_training)
    return np.mean((chosen == torch.cat([batch.labels for batch in several])).tolist())


VARIANTS = {
    "8.1": {"einsum": _queries_einsum},
    "8.2": {"by name": _forward_by_name},
    "8.3": {"one hot": _loss_one_hot},
    "8.4": {"exact": lambda: 0.55 * RIGHT + 0.45 * WRONG, "a text": lambda: "1,094"},
    "8.5": {"all at once": _share_all_at_once},
}
