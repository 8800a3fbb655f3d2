"""A recurrent language model, an LSTM, for comparison with `course_utils.language_model.LanguageModel`.

Does: take token ids and give logits for the next token, as `LanguageModel` does, and carry its state from one call to the
next. Does not: train (`course_utils.training.fit` does, with `next_token_loss`), or generate.
"""

import dataclasses
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.options import MODEL_RULES, check_options, whole
from course_utils.shapes import check_token_ids

__all__ = ["RecurrentLanguageModel", "RecurrentLanguageModelConfig", "RecurrentResult"]

RULES = {**MODEL_RULES, "num_layers": whole(1, 1000), "d_hidden": whole(1, 65_536)}


@dataclasses.dataclass(frozen=True)
class RecurrentLanguageModelConfig:
    """Everything that fixes a `RecurrentLanguageModel` but its weights. `pad_id` fills up batches and is never asked for.

    Raises ValueError that names the option for a value outside its range.
    """

    vocab_size: int
    d_model: int = 128
    d_hidden: int = 256
    num_layers: int = 2
    dropout: float = 0.0
    pad_id: int = 0

    def __post_init__(self):
        check_options(vars(self), RULES)
        check_options(vars(self), {"pad_id": whole(0, self.vocab_size - 1)})


class RecurrentResult(NamedTuple):
    """`logits` (batch, seq_len, vocab): position i scores the candidates for token i + 1. `state`: the LSTM's after the
    last token, for the call that continues these texts."""

    logits: Tensor
    state: tuple[Tensor, Tensor]


class RecurrentLanguageModel(nn.Module):
    """Token ids to logits for the token that follows each of them: an LSTM (Hochreiter and Schmidhuber 1997), tied as
    `LanguageModel` is: the matrix that looks tokens up also scores them (Press and Wolf 2017).

    (token_ids (batch, seq_len), state) -> RecurrentResult. With the `state` of an earlier result, token_ids are those that
    come next, so a text of any length can be read piece by piece. Padding after a text never changes its logits (but it
    does change the state). `config` holds the arguments. The options are those of `RecurrentLanguageModelConfig`.
    """

    def __init__(
        self, vocab_size: int, d_model: int = 128, d_hidden: int = 256, num_layers: int = 2, dropout: float = 0.0,
        pad_id: int = 0,
    ):
        super().__init__()
        self.config = RecurrentLanguageModelConfig(vocab_size, d_model, d_hidden, num_layers, dropout, pad_id)
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)                   # as in LanguageModel
        self.dropout = nn.Dropout(dropout)
        between = dropout if num_layers > 1 else 0.0
        self.lstm = nn.LSTM(d_model, d_hidden, num_layers, batch_first=True, dropout=between)
        self.projection = nn.Linear(d_hidden, d_model)

    def forward(self, token_ids: Tensor, state: tuple[Tensor, Tensor] | None = None) -> RecurrentResult:
        check_token_ids(token_ids)
        states, state = self.lstm(self.dropout(self.embedding(token_ids)), state)  # (batch, seq_len, d_hidden)
        x = self.projection(self.dropout(states))                          # (batch, seq_len, d_model)
        return RecurrentResult(F.linear(x, self.embedding.weight), state)  # (batch, seq_len, vocab)

    @staticmethod
    def detached(state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The same state without its history, so that training on the next piece stops there (truncated backpropagation)."""
        return tuple(part.detach() for part in state)
