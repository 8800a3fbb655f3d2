"""A model with its two word lists: English text in, French text out; saved in a folder."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from course_utils.data.translations import join_french, split_english
from course_utils.encoder_decoder.decoding import Candidate, CutOff, beam_search
from course_utils.encoder_decoder.model import Transformer, TransformerConfig
from course_utils.tokenization import pad_batch
from course_utils.training.pair_batches import PAD, WordList
from course_utils.training.plain_text import as_read
from course_utils.training.saved_models import read_model, write_model

__all__ = ["warn_of_cuts", "Translator"]


def warn_of_cuts(best: Sequence[Candidate], sources: Sequence[str]) -> None:
    """Warn (`CutOff`) of the translations that didn't end, by their sources: three of them at most.

    Taught in 17_encoder_decoder, '4. It translates your captions'.
    """
    cut = [source for one, source in zip(best, sources) if not one.ended]
    if cut:
        named = ", ".join(repr(source if len(source) < 60 else f"{source[:57]}...") for source in cut[:3])
        whose = "its" if len(cut) == 1 else "their"
        warnings.warn(f"{len(cut)} of {len(best)} translations hadn't ended at {whose} maximum length: {named}"
                      f"{', ...' * (len(cut) > 3)}", CutOff, stacklevel=3)


class Translator(NamedTuple):
    """A trained `Transformer`, with the word lists of both sides.

    Taught in 17_encoder_decoder, '4. It translates your captions'.
    """

    model: Transformer
    source_words: WordList
    target_words: WordList

    def encode(self, list_of_tokens: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Split sentences as source_ids and source_mask (batch, source). Raises ValueError for one without tokens."""
        empty = [i for i, tokens in enumerate(list_of_tokens) if not len(tokens)]
        if empty or not len(list_of_tokens):
            which = f"sentence {empty[0]} is empty" if empty else "the list has no sentence"
            raise ValueError(f"{which}; there is nothing to translate: leave it out")
        longest = max(map(len, list_of_tokens))
        if longest > self.model.config.max_len:
            raise ValueError(f"a sentence has {longest} tokens, and the model reads at most {self.model.config.max_len}; "
                             "translate its parts one by one")
        device = next(self.model.parameters()).device
        ids, mask = pad_batch([self.source_words.encode(tokens) for tokens in list_of_tokens], PAD)
        return ids.to(device), mask.to(device)

    def tokens(self, list_of_tokens: Sequence[Sequence[str]], beam: int = 1, alpha: float = 0.6) -> list[list[str]]:
        """The French tokens for English tokens; greedy with beam=1. Warns (`CutOff`) of translations that didn't end."""
        ids, mask = self.encode(list_of_tokens)
        best = [found[0] for found in beam_search(self.model, ids, mask, beam, alpha if beam > 1 else 0.0)]
        warn_of_cuts(best, [" ".join(tokens) for tokens in list_of_tokens])
        return [self.target_words.decode(one.ids) for one in best]

    def translate(self, texts: Sequence[str], beam: int = 5, alpha: float = 0.6) -> list[str]:
        """English texts to French texts; warns as `tokens` does."""
        sources = [split_english(as_read(text, self.target_words)) for text in texts]
        return [join_french(tokens) for tokens in self.tokens(sources, beam, alpha)]

    def save(self, name) -> None:
        """Write model and word lists into name.safetensors, as `course_utils.training.saved_models` says."""
        write_model(name, self.model, self.target_words, {"source_words": self.source_words.words}, Transformer)

    @classmethod
    def load(cls, name) -> "Translator":
        """Read what `save` wrote. Raises as `read_model` does for a file that is damaged or missing."""
        saved = read_model(name, Transformer, TransformerConfig, extra=("source_words",))
        return cls(saved.model.float(), WordList(saved.extra["source_words"]), saved.tokenizer)
