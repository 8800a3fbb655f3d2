"""Translation as it was done before the Transformer: a recurrent encoder and decoder, and the attention between them.

Does: `RecurrentEncoder` (`encoder`), `RecurrentDecoder` and `Seq2Seq` (`decoder`), with one vector between them or with
attention, which is additive (`AdditiveAttention`, Bahdanau et al. 2015) or one of the scores of Luong et al. 2015
(`LuongAttention`, both in `scores`); `teacher_forcing_loss` for `course_utils.training.fit`, `greedy`, `links_of` and
`alignment_error_rate` (`translating`). Does not: make batches (see `course_utils.training.pair_batches`), search with a
beam, or feed the context to the next step after an update.

Models read sentences as ids with a mask, True for a real word, and padding comes after the words. One that translates has

    memory = model.encode(source_ids, source_mask)       # all that's known of the source
    state = model.start(memory)                          # before the first word
    logits, state = model.step(last_ids, state)          # last_ids (batch,), BEGIN at first -> logits (batch, vocab)
    state = state.select(indices)                        # other rows, in another order: for a beam

Notebook 16 writes the additive half of it without options and checks, in the same names, and each learner a step of the
decoder; tests/test_recurrent_attention.py holds the two equal. What is here has more scores, cells and an order of the
step, for experiments (the set `recurrent_attention`) and for extras/luong_variants.
"""

from course_utils.recurrent_attention.decoder import (
    SCORES,
    DecoderState,
    RecurrentDecoder,
    Seq2Seq,
    Seq2SeqConfig,
    Seq2SeqResult,
)
from course_utils.recurrent_attention.encoder import LAYERS, Memory, RecurrentEncoder, check_source
from course_utils.recurrent_attention.scores import LUONG_SCORES, AdditiveAttention, LuongAttention, weighted_states
from course_utils.recurrent_attention.translating import (
    Translations,
    alignment_error_rate,
    greedy,
    links_of,
    teacher_forcing_loss,
)

__all__ = ["LAYERS", "Memory", "RecurrentEncoder", "check_source", "weighted_states", "AdditiveAttention", "LUONG_SCORES",
           "LuongAttention", "DecoderState", "RecurrentDecoder", "SCORES", "Seq2SeqConfig", "Seq2SeqResult", "Seq2Seq",
           "teacher_forcing_loss", "Translations", "greedy", "links_of", "alignment_error_rate"]
