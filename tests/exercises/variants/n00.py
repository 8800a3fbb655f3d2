"""Other right answers to the exercises of notebook 00, which a check must accept."""


import numpy as np
import torch
from torch.nn import functional as F


def _weights(opinions, is_token):
    weights = is_token / is_token.sum(dim=1, keepdim=True)
    return (weights * opinions).sum(dim=1)


def _numpy_softmax(scores):
    scores = scores.numpy()
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def _one_hot(scores, true_class):
    y = F.one_hot(true_class, num_classes=scores.shape[1])
    return -(y * scores.log_softmax(dim=-1)).sum() / len(scores)


def _by_autograd(W, x, true_class, learning_rate):
    W = W.clone().requires_grad_()
    F.cross_entropy(x @ W, true_class).backward()
    with torch.no_grad():
        return W - learning_rate * W.grad


VARIANTS = {
    "0.1": {"list": lambda opinions, is_token: _weights(opinions, is_token).tolist()},
    "0.2": {"array": _numpy_softmax},
    "0.3": {"one-hot": _one_hot},
    "0.4": {"autograd": _by_autograd},
}
