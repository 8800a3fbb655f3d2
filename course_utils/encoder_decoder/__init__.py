"""The whole Transformer: an encoder, a decoder with two kinds of attention, and what turns them into a translator.

Does: `DecoderBlock` and `Decoder` from the parts of 04 to 07 (`blocks`), `Transformer` with step-by-step decoding over a
cache (`model`), `SmoothedLoss` for `course_utils.training.fit` (`smoothing`), `beam_search` for any model that has `encode`,
`start` and `step` (`decoding`), `bleu` (`scoring`), and a `Translator` for plain text, saved in a file
(`translator`). Notebook 17 writes block, model and search in their shortest form, without checks, dropout and batches;
tests/test_encoder_decoder.py holds them equal. Does not: make batches (`course_utils.training.pair_batches`), or learn a
vocabulary of word pieces.

    translator = Translator.load("outputs/mine")
    print(translator.translate(["The film was too long."])[0])
"""

from course_utils.encoder_decoder.blocks import CrossAttention, Decoder, DecoderBlock, DecoderBlockResult, DecoderResult
from course_utils.encoder_decoder.decoding import (
    Beam,
    Candidate,
    CutOff,
    beam_search,
    default_lengths,
    length_penalty,
    next_log_probabilities,
)
from course_utils.encoder_decoder.model import (
    Attentions,
    DecodingState,
    Memory,
    Transformer,
    TransformerConfig,
    TransformerResult,
)
from course_utils.encoder_decoder.scoring import Bleu, bleu, ngrams
from course_utils.encoder_decoder.smoothing import SmoothedLoss, smoothed_cross_entropy
from course_utils.encoder_decoder.translator import Translator, warn_of_cuts

__all__ = ["CrossAttention", "DecoderBlockResult", "DecoderBlock", "DecoderResult", "Decoder", "TransformerConfig",
           "Attentions", "Memory", "TransformerResult", "DecodingState", "Transformer", "smoothed_cross_entropy",
           "SmoothedLoss", "next_log_probabilities", "default_lengths", "Candidate", "length_penalty", "CutOff", "Beam",
           "beam_search", "warn_of_cuts", "Translator", "ngrams", "Bleu", "bleu"]
