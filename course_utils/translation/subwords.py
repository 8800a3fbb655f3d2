"""A translator that reads and writes byte pairs: any English text in, French text out, saved in a folder.

    translator = SubwordTranslator.load("data/checkpoints/multi30k")
    print(translator.translate(["Two dogs run along the beach."])[0])

Does: what notebook 17's `Translator` does with word lists, for `SharedBytePairs`, so that no word is unknown. Does not:
train (the set `multi30k` does), or cut a text into sentences (`course_utils.translation.sentences` does).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from course_utils.encoder_decoder import Candidate, Transformer, TransformerConfig, beam_search, warn_of_cuts
from course_utils.tokenization import pad_batch
from course_utils.training.pair_batches import PAD
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.training.plain_text import as_read
from course_utils.training.saved_models import read_model, write_model

__all__ = ["SubwordTranslator"]

LONGEST = 1000                                          # pieces of a text, for a model that sets no limit itself


class SubwordTranslator(NamedTuple):
    """A trained model that has `encode`, `start` and `step`, with the byte pairs of both languages."""

    model: nn.Module
    pieces: SharedBytePairs

    def encode(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Texts as source_ids and source_mask (batch, source). Raises ValueError for an empty text, or one too long."""
        texts = [as_read(text, self.pieces) for text in texts]
        ids = [self.pieces.encode(text) for text in texts]
        empty = [i for i, text in enumerate(texts) if not text.strip()]
        if empty or not ids:
            which = f"text {empty[0]} is empty" if empty else "the list has no text"
            raise ValueError(f"{which}; there is nothing to translate: leave it out")
        limit = getattr(self.model.config, "max_len", LONGEST)
        if max(map(len, ids)) > limit:
            raise ValueError(f"a text has {max(map(len, ids))} byte pairs, and the model reads at most {limit}; cut it "
                             "into shorter sentences")
        device = next(self.model.parameters()).device
        source_ids, mask = pad_batch(ids, PAD)
        return source_ids.to(device), mask.to(device)

    def translate(self, texts: Sequence[str], beam: int = 5, alpha: float = 0.6, batch_size: int = 50) -> list[str]:
        """English texts to French texts; see `candidates`."""
        return [self.pieces.decode(one.ids) for one in self.candidates(texts, beam, alpha, batch_size)]

    def candidates(
        self, texts: Sequence[str], beam: int = 5, alpha: float = 0.6, batch_size: int = 50
    ) -> list[Candidate]:
        """The best translation of each text with its log-probability, texts of similar length together; greedy with beam=1.

        A translation may get twice as long as its text and ten byte pairs longer (`default_lengths`), whatever it's
        translated with. Warns (`CutOff`) of those that didn't end.
        """
        texts = [as_read(text, self.pieces) for text in texts]
        self.encode(texts)                              # whatever is wrong is said before the first is translated
        order, found = sorted(range(len(texts)), key=lambda i: len(self.pieces.encode(texts[i]))), {}
        for rows in (order[first : first + batch_size] for first in range(0, len(order), batch_size)):
            ids, mask = self.encode([texts[i] for i in rows])
            best = beam_search(self.model, ids, mask, beam, alpha if beam > 1 else 0.0)
            found |= {i: candidates[0] for i, candidates in zip(rows, best, strict=True)}
        best = [found[i] for i in range(len(texts))]
        warn_of_cuts(best, texts)
        return best

    def save(self, name) -> None:
        """Write a Transformer and its byte pairs into name.safetensors, as `course_utils.training.saved_models` says."""
        write_model(name, self.model, self.pieces, {}, Transformer)

    @classmethod
    def load(cls, name) -> SubwordTranslator:
        """Read what `save` wrote. Raises as `read_model` does for a file that is damaged or missing."""
        saved = read_model(name, Transformer, TransformerConfig)
        return cls(saved.model.float(), saved.tokenizer)
