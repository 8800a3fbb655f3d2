"""Small random models of Hugging Face's kinds with tokenizers of a few words, made without a network."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors  # noqa: E402
from transformers import (  # noqa: E402
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

WORDS = "the film was not dull but moving it and nobody could call".split()


def _words(begin: str, end: str, pad: str) -> PreTrainedTokenizerFast:
    """Whole words between two special tokens, or before one where `begin` is ''."""
    special = [token for token in (pad, "[UNK]", begin, end) if token]
    vocabulary = {token: i for i, token in enumerate([*special, *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}".strip(), special_tokens=[(token, vocabulary[token]) for token in (begin, end) if token])
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", pad_token=pad, eos_token=end,
                                   model_input_names=["input_ids", "attention_mask"], model_max_length=24)


def _made(model_class: type, config, kept: bool):
    """A model with random weights; `kept` where it keeps its attention weights."""
    torch.manual_seed(0)
    return model_class._from_config(config, attn_implementation="eager" if kept else "sdpa").eval()


def bert(kept: bool = True, layers: int = 3, heads: int = 4) -> tuple:
    """An encoder with a classifier of two labels, and its tokenizer."""
    tokenizer = _words("[CLS]", "[SEP]", "[PAD]")
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=layers, num_attention_heads=heads,
                        intermediate_size=16, max_position_embeddings=24, initializer_range=0.7,
                        id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
    return _made(BertForSequenceClassification, config, kept), tokenizer


def gpt2(kept: bool = True) -> tuple:
    """A decoder, with a tokenizer of bytes."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "f"), ("i", "l"), ("il", "m"), ("Ġf", "ilm")]
    tokens = [*symbols, *("".join(pair) for pair in merges), "<|endoftext|>"]
    inner = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=48, initializer_range=0.7,
                        bos_token_id=len(tokens) - 1, eos_token_id=len(tokens) - 1)
    return _made(GPT2LMHeadModel, config, kept), tokenizer


def bart(kept: bool = True) -> tuple:
    """An encoder-decoder: two layers of two heads, and three layers of four."""
    tokenizer = _words("<s>", "</s>", "<pad>")
    config = BartConfig(vocab_size=len(tokenizer), d_model=16, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2,
                        decoder_attention_heads=4, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=24,
                        init_std=0.7, pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=3,
                        forced_eos_token_id=3)
    return _made(BartForConditionalGeneration, config, kept), tokenizer


def t5(kept: bool = True) -> tuple:
    """An encoder-decoder with relative positions, whose decoder starts with padding."""
    tokenizer = _words("", "</s>", "<pad>")
    config = T5Config(vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, pad_token_id=0,
                      eos_token_id=2, decoder_start_token_id=0)
    return _made(T5ForConditionalGeneration, config, kept), tokenizer


def words() -> PreTrainedTokenizerFast:
    """A tokenizer of whole words between [CLS] and [SEP]."""
    return _words("[CLS]", "[SEP]", "[PAD]")


def random_model(model_class: type, config):
    """A model of this configuration with random weights, which keeps its attention weights."""
    return _made(model_class, config, kept=True)


def french() -> PreTrainedTokenizerFast:
    """The words of another language, with ids that `words` gives to other words."""
    vocabulary = {word: i for i, word in enumerate("<pad> <unk> <s> </s> le film n' était pas ennuyeux mais il".split())}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>", pad_token="<pad>", eos_token="</s>")


def bert_of_pairs(layers: int = 2) -> tuple:
    """A BERT that was made for two texts, and its tokenizer of word pieces."""
    pieces = "[PAD] [UNK] [CLS] [SEP] the film was mov ##ing . it is not bor ##ed ##om dull".split()
    inner = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
                                        sep_token="[SEP]")
    config = BertConfig(vocab_size=len(pieces), hidden_size=16, num_hidden_layers=layers, num_attention_heads=4,
                        intermediate_size=16, max_position_embeddings=48, initializer_range=0.7)
    return _made(BertForSequenceClassification, config, kept=True), tokenizer
