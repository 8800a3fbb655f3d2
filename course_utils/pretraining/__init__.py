"""BERT in the parts of 03 to 08: hidden words, word pieces, the encoder, real weights, and ways to fine-tune them.

Does: `mask_tokens` hides words (`masking`); `WordPieceTokenizer` gives the ids of BERT's (`word_pieces`); `BertEncoder`
and `MaskedLanguageModel` compute what BERT does, `load_bert` fills them from its files, `MaskedTokenLoss` pretrains them
with `course_utils.training.fit` (`bert`); `BertClassifier`, `freeze`, `layer_rates` and low-rank adapters fine-tune
(`fine_tuning`). Does not: learn a vocabulary, or write models for other libraries.

    encoder, tokenizer = load_bert("bert-base-uncased")
    x = encoder(torch.tensor([tokenizer.encode("Not dull.")])).x           # (1, seq_len, d_model)
"""

from course_utils.pretraining.bert import (
    BERT_NAMES,
    MASKED_NAMES,
    OTHER_HEADS,
    BertConfig,
    BertEncoder,
    BertResult,
    MaskedLanguageModel,
    MaskedTokenLoss,
    bert_config,
    bert_weights,
    load_bert,
)
from course_utils.pretraining.fine_tuning import (
    ADAPTABLE,
    ADAPTED,
    BERT_POOLINGS,
    BertClassifier,
    BertClassifierResult,
    LowRankAdapter,
    add_adapters,
    freeze,
    layer_rates,
    layers_of,
    merge_adapters,
)
from course_utils.pretraining.masking import MaskedTokens, mask_tokens
from course_utils.pretraining.word_pieces import TextCleaning, WordPieceTokenizer, cut_at_spaces, longest_pieces, split_at

__all__ = ["MaskedTokens", "mask_tokens", "longest_pieces", "TextCleaning", "cut_at_spaces", "split_at",
           "WordPieceTokenizer", "BertConfig", "BertResult", "BertEncoder", "MaskedLanguageModel", "MaskedTokenLoss",
           "BERT_NAMES", "MASKED_NAMES", "OTHER_HEADS", "bert_config", "bert_weights", "load_bert", "BERT_POOLINGS",
           "BertClassifierResult", "BertClassifier", "layers_of", "freeze", "layer_rates", "LowRankAdapter", "ADAPTED",
           "ADAPTABLE", "add_adapters", "merge_adapters"]
