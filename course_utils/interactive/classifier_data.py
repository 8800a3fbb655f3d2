"""The course's classifier as data for a page: its words, and its weights as 16-bit floats in the order that
`classifier_model.js` reads them.

Does: refuse models that the script can't run, round the weights, decode them again. Does not: run or draw anything.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from course_utils.classifier import ClassifierConfig, ReviewClassifier
from course_utils.tokenization import WordTokenizer
from course_utils.training.plain_text import PLAIN, page_rules
from course_utils.training.plain_tokenizers import PlainWords

MOST_BYTES = 1_000_000                                                     # of weights in one page, before base64


def model_data(classifier: ReviewClassifier, texts: Iterable[str] | None = None) -> dict:
    """What `classifierModel` needs: config, words, and all weights in base64. With `texts` only the words in these.

    For a model that reads plain texts also their rules (see `training.plain_text`). A weight is off by one part in 2,048 at
    most; for the course's models that moves a probability by less than 0.001.
    Raises TypeError for anything but a ReviewClassifier, ValueError for a model that the script can't run.
    """
    _check(classifier)
    config, words = classifier.model.config, classifier.tokenizer.vocabulary
    if texts is not None:
        used = {token.text for text in texts for token in classifier.tokenizer.tokenize(text)}
        words = words[:2] + [word for word in words[2:] if word in used]
    weights = _rounded(classifier, words)
    if weights.nbytes > MOST_BYTES:
        raise ValueError(f"the model's weights would take {weights.nbytes:,} bytes in the page; at most {MOST_BYTES:,} do. "
                         "Use a model with fewer words or a smaller d_model")
    block = classifier.model.encoder.blocks[0]
    rules = {"plain": page_rules()} if classifier.tokenizer.texts == PLAIN else {}
    kept = ("d_model", "num_heads", "d_ff", "num_layers", "max_len", "positions", "pooling", "embedding_scale", "unk_id")
    return {
        "config": {**{name: getattr(config, name) for name in kept}, "eps": block.attention_norm.eps,
                   "base": getattr(classifier.model.positions, "base", 10000.0)},
        **rules, "words": words, "labels": classifier.label_names, "weights": base64.b64encode(weights.tobytes()).decode(),
    }


def decoded(data: dict) -> np.ndarray:
    """The weights that a page gets, in one row, float32."""
    return np.frombuffer(base64.b64decode(data["weights"]), dtype="<f2").astype(np.float32)


def weight_names(config: ClassifierConfig) -> list[str]:
    """The parameters in the order in which `classifier_model.js` reads them; a linear layer's weight before its bias."""
    layers = [f"attention.{which}_projection" for which in ("query", "key", "value", "output")]
    layers += ["feed_forward.expand", "feed_forward.contract", "attention_norm", "feed_forward_norm"]
    modules = [f"encoder.blocks.{i}.{layer}" for i in range(config.num_layers) for layer in layers] + ["encoder.norm"]
    pooling = ["pooling.query"] if config.pooling == "attention" else []
    both = [f"{module}.{kind}" for module in modules for kind in ("weight", "bias")]
    return ["embedding.weight", *both, *pooling, "output.weight", "output.bias"]


def _rounded(classifier: ReviewClassifier, words: list[str]) -> np.ndarray:
    """All weights in one row of 16-bit floats, the embedding's rows for `words` only."""
    state: dict[str, Tensor] = classifier.model.state_dict()
    names = weight_names(classifier.model.config)
    if sorted(names) != sorted(state):
        raise ValueError(f"the model has other weights than a SelfAttentionClassifier: {sorted(set(names) ^ set(state))}")
    rows = [classifier.tokenizer.ids[word] for word in words]
    parts = [state[name][rows] if name == "embedding.weight" else state[name] for name in names]
    every = np.concatenate([part.detach().cpu().float().numpy().ravel() for part in parts])
    if not np.all(np.abs(every) < 65504):                                  # NaN isn't either
        raise ValueError("a weight of the model is NaN or above 65,504, where 16-bit floats end; train it again")
    return every.astype("<f2")


def _check(classifier: ReviewClassifier) -> None:
    """Raises TypeError or ValueError for what classifier_model.js does not implement."""
    if not isinstance(classifier, ReviewClassifier):
        raise TypeError(f"classifier is a {type(classifier).__name__}; expected a ReviewClassifier, such as trained_model()")
    config, tokenizer = classifier.model.config, classifier.tokenizer
    wanted = {"positions": ("rotary", "none"), "norm_first": (True,), "num_classes": (2,), "unk_id": (1,)}
    for name, allowed in wanted.items():
        if getattr(config, name) not in allowed:
            raise ValueError(f"the model has {name}={getattr(config, name)!r}; in the browser it runs with "
                             f"{' or '.join(f'{name}={value!r}' for value in allowed)} only")
    if type(tokenizer) not in (WordTokenizer, PlainWords) or tokenizer.pattern != type(tokenizer).pattern:
        raise ValueError(f"the tokenizer is a {type(tokenizer).__name__}; in the browser only the course's WordTokenizer "
                         "runs")
    if any(block.feed_forward.activation is not F.gelu for block in classifier.model.encoder.blocks):
        raise ValueError("the feed-forward layers don't use gelu; in the browser they must")
