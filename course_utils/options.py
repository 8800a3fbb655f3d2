"""Which values an option can have, a range or a choice, and the error message for any other.

    RULES = {"num_layers": whole(0, 1000), "dropout": fraction(), "pooling": one_of("attention", "mean")}
    check_options({"num_layers": 2, "dropout": 1.5}, RULES)
    # ValueError: dropout=1.5; use a number from 0 up to, but not including, 1

Does: check one value after another, by name; the rules for models, trainings, batches, sampling and beams; texts, and the
vocabulary they're read with. Does not: hold defaults, or build a model.
"""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

__all__ = ["BATCH_RULES", "BEAM_RULES", "FIT_RULES", "MODEL_RULES", "RUN_RULES", "SAMPLING_RULES", "Rule", "between",
           "check_groups", "check_model_options", "check_options", "check_text", "check_vocabulary", "fraction",
           "list_of_texts", "one_of", "or_none", "positive", "whole", "yes_or_no"]


class Rule(NamedTuple):
    """`allows(value)` says whether a value will do; `words` say what does, after 'use'."""

    allows: Callable[[object], bool]
    words: str


def whole(low: int, high: int) -> Rule:
    """A whole number from `low` to `high`, both included."""
    def allows(value):
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and low <= value <= high

    return Rule(allows, f"a whole number from {low:,} to {high:,}")


def _is_number(value) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and abs(value) < math.inf  # nor NaN


def fraction() -> Rule:
    """A number from 0 up to, but not including, 1: a dropout."""
    return Rule(lambda value: _is_number(value) and 0 <= value < 1, "a number from 0 up to, but not including, 1")


def positive(high: float) -> Rule:
    """A number above 0, at most `high`."""
    return Rule(lambda value: _is_number(value) and 0 < value <= high, f"a number above 0, at most {high:,g}")


def between(low: float, high: float) -> Rule:
    """A number from `low` to `high`, both included."""
    return Rule(lambda value: _is_number(value) and low <= value <= high, f"a number from {low:g} to {high:g}")


def yes_or_no() -> Rule:
    """True or False."""
    return Rule(lambda value: isinstance(value, bool), "True or False")


def one_of(*words: str) -> Rule:
    """One of some words."""
    return Rule(lambda value: isinstance(value, str) and value in words, f"one of {', '.join(words)}")


def or_none(rule: Rule) -> Rule:
    """What the rule allows, or None."""
    return Rule(lambda value: value is None or rule.allows(value), f"{rule.words}, or None")


def check_options(options: Mapping[str, object], rules: Mapping[str, Rule]) -> None:
    """Raise ValueError for the first option that breaks its rule: what it is, and what to use instead."""
    for name, rule in rules.items():
        if name in options and not rule.allows(options[name]):
            value = repr(options[name])
            raise ValueError(f"{name}={value if len(value) <= 60 else value[:57] + '...'}; use {rule.words}")


# of any model's configuration, whichever of these it has
MODEL_RULES = {
    "vocab_size": whole(2, 10_000_000),
    "source_vocab_size": whole(2, 10_000_000),
    "num_token_types": whole(1, 1000),
    "num_classes": whole(2, 100_000),
    "d_model": whole(1, 65_536),
    "num_heads": whole(1, 1024),
    "d_ff": whole(1, 1_000_000),
    "num_layers": whole(0, 1000),
    "max_len": whole(1, 1_000_000),
    "dropout": fraction(),
    "attention_dropout": fraction(),
    "word_dropout": fraction(),
    "pooled_dropout": fraction(),
    "norm_first": yes_or_no(),
    "zero_init": yes_or_no(),
    "pooler": yes_or_no(),
    "layer_norm_eps": positive(1),
    "embedding_std": positive(1000),
    "embedding_scale": positive(1_000_000),
    "pad_id": whole(0, 10_000_000),
    "unk_id": whole(0, 10_000_000),
}
RUN_RULES = {
    "seed": whole(0, 2**32 - 1),                        # what NumPy takes
    "threads": whole(1, 1024),
}
FIT_RULES = {
    "epochs": whole(1, 100_000),
    "learning_rate": positive(100),
    "weight_decay": between(0, 100),
    "warmup": between(0, 1),
    "clip": positive(1_000_000),
    "patience": or_none(whole(1, 100_000)),
    "precision": Rule(lambda value: value in ("auto", "fp32", "bf16"), "'auto', 'fp32' or 'bf16'"),
}
BATCH_RULES = {
    "batch_size": whole(1, 100_000),
    "max_len": or_none(whole(1, 1_000_000)),
    "truncation": one_of("head", "head_tail"),
    "multiple_of": whole(1, 100_000),
    "bucketed": yes_or_no(),
}
SAMPLING_RULES = {
    "temperature": between(0, 100),
    "top_k": or_none(whole(1, 10_000_000)),
    "top_p": or_none(positive(1)),
    "max_new_tokens": whole(0, 1_000_000),
}
BEAM_RULES = {"beam": whole(1, 1000), "alpha": between(0, 2), "max_len": whole(1, 100_000)}


def check_model_options(options: Mapping[str, object], **choices: Iterable[str]) -> None:
    """Check the options of a model's configuration by `MODEL_RULES`, by `choices` (positions=(...)), and against each other.

    Raises ValueError that names the option, its value and what to use instead.
    """
    check_options(options, {**MODEL_RULES, **{name: one_of(*words) for name, words in choices.items()}})
    _check_heads(options["d_model"], options["num_heads"], options.get("positions"))
    for name in ("pad_id", "unk_id"):
        if name in options and options[name] >= options["vocab_size"]:
            raise ValueError(
                f"{name}={options[name]}, but vocab_size={options['vocab_size']}; use an id below the size of the vocabulary"
            )


def _check_heads(d_model: int, num_heads: int, positions: str | None) -> None:
    if d_model % num_heads != 0:
        divisors = [n for n in range(1, d_model + 1) if d_model % n == 0]
        nearest = [n for n in divisors if n < num_heads][-1:] + [n for n in divisors if n > num_heads][:1]
        raise ValueError(
            f"d_model={d_model} is not divisible by num_heads={num_heads}; try {' or '.join(map(str, nearest))}"
        )
    if positions == "sinusoidal" and d_model % 2 != 0:
        raise ValueError(f"d_model={d_model} is odd; sines and cosines come in pairs: use {d_model + 1}")
    if positions == "rotary" and (d_model // num_heads) % 2 != 0:
        raise ValueError(
            f"d_model={d_model} with num_heads={num_heads} gives each head {d_model // num_heads} numbers; rotary positions "
            "turn pairs of them: make d_model / num_heads even"
        )


def check_groups(num_heads: int, num_kv_heads: int) -> None:
    """Raise ValueError for heads of queries that can't be shared out to as many heads of keys and values."""
    check_options({"num_kv_heads": num_kv_heads}, {"num_kv_heads": whole(1, num_heads)})
    if num_heads % num_kv_heads != 0:
        divisors = [n for n in range(1, num_heads + 1) if num_heads % n == 0]
        raise ValueError(f"num_heads={num_heads} can't be shared out to num_kv_heads={num_kv_heads}; use one of "
                         f"{', '.join(map(str, divisors))}")


def check_text(text) -> None:
    """Raise TypeError for anything but one text, a string."""
    if not isinstance(text, str):
        raise TypeError(f"explain() reads one text, a string; it got {type(text).__name__}")


def check_vocabulary(model, tokenizer) -> None:
    """Raise ValueError for a tokenizer that has more or fewer ids than the model's configuration."""
    if model.config.vocab_size != tokenizer.vocab_size:
        raise ValueError(f"the model knows {model.config.vocab_size} ids and the tokenizer {tokenizer.vocab_size}; "
                         "use the vocabulary that the model was trained with")


def list_of_texts(texts) -> list[str]:
    """The texts of a list, a tuple, a pandas Series, a column of a dataset or a NumPy array, as a list of strings.

    Raises TypeError that says what it got and what to write, for one string, a table or anything else.
    """
    if isinstance(texts, str):
        raise TypeError("expected a list of texts and got one string; for one text write [text]")
    for columns in ("columns", "column_names"):         # of a pandas DataFrame; of a Dataset or DatasetDict
        if hasattr(texts, columns):
            names = getattr(texts, columns)
            name = "text" if "text" in names or isinstance(names, dict) else next(iter(names), "text")
            kind = type(texts).__name__
            raise TypeError(f"expected a list of texts and got a {kind}; choose the column with the texts: table[{name!r}]")
    if isinstance(texts, Mapping | set | frozenset | bytes) or not isinstance(texts, Iterable):
        raise TypeError(f"expected a list of texts and got {_a(texts)}; write [text, text]")
    texts = list(texts)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"expected a list of texts, and number {i} is {_a(text)}; for one text write [text]")
    return texts


def _a(value) -> str:
    if value is None:
        return "None"
    shown = repr(value)
    return f"{shown if len(shown) <= 40 else shown[:37] + '...'} (of the type {type(value).__name__})"
