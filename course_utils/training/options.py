"""What a training may be told: the rules for `fit`, for batches and for a recipe, and NAME=VALUE on the command line.

Does: check by name and range, read a setting, name the option that was probably meant. Does not: hold defaults (the
recipes do), or check what depends on several options at once (the model does when it's built).
"""

import difflib
import json
import numbers

from course_utils.options import MODEL_RULES, Rule, check_options, one_of, positive, whole, yes_or_no

__all__ = ["FIT_RULES", "BATCH_RULES", "PART_OF", "RECIPE_RULES", "RUN_RULES", "check_recipe_option", "parse_setting"]


def between(low: float, high: float) -> Rule:
    """A number from `low` to `high`, both included."""
    def allows(value):
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and low <= value <= high

    return Rule(allows, f"a number from {low:g} to {high:g}")


def or_none(rule: Rule) -> Rule:
    """What the rule allows, or None."""
    return Rule(lambda value: value is None or rule.allows(value), f"{rule.words}, or None")


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
# the data and the tokenizer decide the other options of a model
DECIDED = ("vocab_size", "num_classes", "pad_id", "unk_id")
RECIPE_RULES = {
    "model": {
        **{name: rule for name, rule in MODEL_RULES.items() if name not in DECIDED},
        "positions": one_of("none", "sinusoidal", "learned", "rotary", "alibi"),
        "pooling": one_of("attention", "mean"),
    },
    "fit": FIT_RULES,
    "batches": {name: rule for name, rule in BATCH_RULES.items() if name != "max_len"},  # the model's max_len is theirs too
    "vocabulary": {"max_size": whole(3, 10_000_000), "min_freq": whole(1, 1_000_000)},
}


PART_OF = {option: part for part, rules in RECIPE_RULES.items() for option in rules}


def check_recipe_option(name: str, value) -> None:
    """Raise ValueError for a name that no part of a recipe has, or a value that the option can't have."""
    if name not in PART_OF:
        raise ValueError(f"{name!r:.60} isn't an option of a recipe; use {_names_like(name)}")
    check_options({name: value}, RECIPE_RULES[PART_OF[name]])


def parse_setting(setting: str):
    """(name, value) of NAME=VALUE, as Python values: parse_setting("num_layers=1") -> ("num_layers", 1).

    Raises ValueError for a name that no part of a recipe has, with the names that look like it, and for a value that the
    option can't have.
    """
    shown = setting if len(setting) <= 60 else setting[:57] + "..."
    name, sign, text = (part.strip() for part in setting.partition("="))
    if not sign or name not in PART_OF:
        raise ValueError(f"--set {shown}: expected NAME=VALUE with {_names_like(name)}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):                # a word without quotation marks, or as Python writes it
        value = {"True": True, "False": False, "None": None}.get(text, text)
    try:
        check_recipe_option(name, value)
    except ValueError as error:
        raise ValueError(f"--set {shown}: {error}") from None
    return name, value


def _names_like(name: str) -> str:
    """The names that there are, and which of them was probably meant."""
    close = difflib.get_close_matches(name.lower(), PART_OF, n=2) or [known for known in PART_OF if name and name in known]
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"one of the names {', '.join(sorted(PART_OF))}{hint}"
