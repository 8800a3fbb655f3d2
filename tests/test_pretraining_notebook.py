"""Notebook 14 where there are real weights, which the other tests don't have; and its cells, run a second time."""

from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig as LibraryConfig
from transformers import BertModel

from course_utils.training.word_piece_files import SPECIAL

SLOW = {"article", "count", "forgetting"}                                  # what trains is trained below, for one step


@pytest.fixture
def code(root: Path) -> dict[str, str]:
    """The code cells by their ids, without the slow ones, the exercises, and the quiz."""
    notebook = nbformat.read(root / "notebooks" / "14_pretraining.ipynb", as_version=4)
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.id not in SLOW
            and "exercise" not in cell.metadata.get("tags", []) and not cell.source.startswith(("quiz(", "progress("))}


def weights_in(folder: Path) -> None:
    """A small random BERT with more tokens than the notebook's own small models have, and its tokenizer."""
    torch.manual_seed(0)
    vocabulary = [*SPECIAL, *map(str, range(300)), *map(chr, range(33, 127)), *(f"##{chr(i)}" for i in range(97, 123))]
    vocabulary = list(dict.fromkeys(vocabulary))
    model = BertModel(LibraryConfig(vocab_size=len(vocabulary), hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                                    intermediate_size=40, max_position_embeddings=500))
    model.save_pretrained(folder)
    BertWordPieceTokenizer(vocab={token: i for i, token in enumerate(vocabulary)}).save(str(folder / "tokenizer.json"))


def test_every_cell_runs_with_real_weights_and_once_more(tmp_path, monkeypatch, capsys, code):
    weights_in(tmp_path / "minilm")
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setattr(plt, "show", plt.close)
    names = {"__name__": "__main__"}
    for source in [*code.values(), *code.values()]:
        exec(compile(source, "cell", "exec"), names)
    said = capsys.readouterr().out
    assert said.count("✓ every hidden state of the real encoder is the library's") == 2 and "✗" not in said
    sizes = dict(d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=6)
    model = names["MaskedLanguageModel"](names["BertConfig"](names["words"].vocab_size, **sizes))
    assert names["trained"](model, names["MaskedTokenLoss"](names["HIDE"]), steps=1) is model
