"""The code of a notebook's cells, for tests that run what a lesson builds."""

import math
from types import SimpleNamespace

import nbformat
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to
from course_utils.files.paths import NOTEBOOKS


def cells_of(name: str) -> dict[str, str]:
    """The source of each cell by its id, such as cells_of("03_embeddings")["export-mean"]."""
    return {cell.id: cell.source for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells}


def cells_of_the_blocks() -> dict:
    """What the learner's cells of 04 to 07 define: attention, heads, turned as in 06, blocks; nothing from the package."""
    names = {"torch": torch, "math": math, "nn": nn, "F": F,
             "FeedForward": answers_to("7.6").reference, "one_block": answers_to("7.8").reference}
    exec(cells_of("04_attention")["export-attention"], names)
    names["scaled_dot_product_attention"] = names["attention"]             # the name that 05 gives it
    exec(cells_of("05_multi_head_attention")["export-multi-head-attention"], names)
    exec(cells_of("06_positional_encoding")["export-rotary"], names)
    rotate = names["rotate"]

    class Turned(names["MultiHeadAttention"]):                             # what exercise 6.6 does, where 07 asks for it
        def forward(self, x, mask, rotary):
            query, key, value = self.project(x)
            context, weights = self.attend(rotary(query), rotary(key), value, mask)
            return SimpleNamespace(context=self.output_projection(self.merge(context)), weights=weights)

    class Turns(nn.Module):
        def __init__(self, d_head):
            super().__init__()
            self.rotate = rotate

    names |= {"MultiHeadAttention": Turned, "RotaryPositions": Turns}
    for cell in ("export-encoder-block", "export-encoder"):
        exec(cells_of("07_transformer_blocks")[cell], names)
    return names
