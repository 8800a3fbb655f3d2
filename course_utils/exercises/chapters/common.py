"""What the exercises of several notebooks use: random draws for probes, and the words of messages."""

import torch


def drawn(generator: torch.Generator, bank: list[str], how_many: int) -> list[str]:
    """Different words of a bank, in a random order."""
    return [bank[i] for i in torch.randperm(len(bank), generator=generator)[:how_many].tolist()]


def what(thing) -> str:
    """A thing for an error message: its type and its beginning."""
    return f"{type(thing).__name__} {' '.join(repr(thing).split())[:40]}"


def spread(values: torch.Tensor) -> str:
    """The range of some numbers: '1.000', or '0.084 to 0.950'."""
    low, high = values.min().item(), values.max().item()
    return f"{low:.3f}" if abs(high - low) < 5e-4 else f"{low:.3f} to {high:.3f}"


def listed(values: torch.Tensor, digits: str = ".3f") -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{value:{digits}}" for value in values.tolist())


def no_module(made):
    """What an `observe` hands on if an answer made no module: None, or a thing whose type says what it was."""
    return made if made is None else type(f"{type(made).__name__}, not a module", (), {})()
