"""Small language models that notebook 13b looks into: what they read, and where they are kept.

Does: `repeated_tokens`, random tokens that repeat, and what heads do with them; `kept_model`, which reads a trained model
from data/checkpoints or outputs/models; generated programs as tokens. Does not: train (studies do).
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from course_utils.data.programs import Program, make_programs
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.tokenization import Tokenizer, WordTokenizer, pad_batch
from course_utils.training.saved_models import holds_model, read_model, write_model


def repeated_tokens(periods: Sequence[int], length: int, vocab_size: int, generator: torch.Generator) -> Tensor:
    """Random rows (len(periods), length) of ids from 2 up: row i begins with periods[i] different ones, which then repeat.

    With a period of `length` nothing repeats: the control, in which there is nothing to find. Raises ValueError for a
    period that the vocabulary has too few ids for (0 and 1 are <pad> and <unk>).
    """
    if max(periods, default=0) > vocab_size - 2:
        raise ValueError(f"a period of {max(periods)} needs as many different ids, and there are {vocab_size - 2}; "
                         "ask for shorter ones")
    drawn = torch.rand(len(periods), vocab_size - 2, generator=generator).argsort(dim=1) + 2
    return drawn.gather(1, torch.arange(length) % torch.tensor(periods, dtype=torch.long)[:, None])


def head_scores(attentions: Sequence[Tensor], period: int) -> dict[str, Tensor]:
    """What each head does in rows of 2 · period tokens: {"induction", "previous"}, each (layers, heads).

    attentions: one (rows, heads, 2 · period, 2 · period) for each layer. induction: the weight that a token of the second
    half gives to the token after its own first occurrence; previous: the weight that it gives to the token before it.
    """
    query = torch.arange(period, 2 * period - 1)
    stacked = torch.stack(list(attentions))                                # (layers, rows, heads, query, key)
    return {name: stacked[..., query, key].mean(dim=(1, 3))
            for name, key in (("induction", query - period + 1), ("previous", query - 1))}


def model_names(name: str, seed: int) -> tuple[Path, Path]:
    """Where a model can be: among those that come with the course, and those made here."""
    return CHECKPOINTS / f"{name}-seed-{seed}", output_folder() / "models" / f"{name}-seed-{seed}"


def keep_model(name: str, seed: int, model: LanguageModel, tokenizer: Tokenizer) -> None:
    """Save a trained model in outputs/models; moved to data/checkpoints, it comes with the course."""
    write_model(model_names(name, seed)[1], model, tokenizer, {}, LanguageModel)


def kept_model(name: str, seed: int) -> tuple[LanguageModel, Tokenizer]:
    """The trained model of this name and seed with its tokenizer.

    Raises FileNotFoundError if there is none, and as `read_model` does for a file that is damaged.
    """
    path = next(filter(holds_model, model_names(name, seed)), None)
    if path is None:
        raise FileNotFoundError(f"there is no model {name!r} of seed {seed}; seeds 0 to 4 come with the course in "
                                "data/checkpoints, and python -m course_tools models makes those again")
    saved = read_model(path, LanguageModel, LanguageModelConfig)
    return saved.model, saved.tokenizer


def induction_model(seed: int) -> tuple[LanguageModel, Tokenizer]:
    """The model of two layers that continues repeated tokens, and its tokenizer (seeds 0 to 4 come with the course)."""
    return kept_model("induction", seed)


def model_without_help(seed: int) -> tuple[LanguageModel, Tokenizer]:
    """The same network on the same data, from the usual initialisation and for 4,000 steps: it has no induction head."""
    return kept_model("induction-without-help", seed)


def import_model(seed: int) -> LanguageModel:
    """A model that completes imports under another name (seeds 0 to 4 come with the course)."""
    return kept_model("imports", seed)[0]


@functools.cache
def program_tokenizer() -> WordTokenizer:
    """The words and marks of the generated programs; none of theirs is unknown to it."""
    return WordTokenizer.train([program.text for program in make_programs(4000, gap=(50, 100), seed=1_000_000)], min_freq=1)


def program_ids(program: Program) -> list[int]:
    """The ids of a program up to its answer, which is the last of them, and one token."""
    return program_tokenizer().encode(program.text[: program.answer[1]])


def padded(rows: list[list[int]]) -> Tensor:
    """Rows of ids in one tensor, (rows, longest), padding at their ends."""
    return pad_batch(rows, pad_id=0)[0]
