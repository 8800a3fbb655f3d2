"""The library's counterparts that the benchmark times ours against: PyTorch's encoder, Hugging Face's tokenizers.

Does: build them with our sizes, vocabularies and merges. Does not: time anything.
"""

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor, nn

from course_utils.byte_pairs import BPETokenizer
from course_utils.classifier import AttentionPooling
from course_utils.positional_encoding import SinusoidalPositions
from course_utils.tokenization import WordTokenizer

D_MODEL, NUM_HEADS, D_FF, DROPOUT = 128, 4, 512, 0.1


def library_layer(attention_dropout: float, d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=D_FF) -> nn.TransformerEncoderLayer:
    """The library's layer, pre-norm and with gelu as ours; its `dropout` acts on the attention weights, too."""
    layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, DROPOUT, "gelu", batch_first=True, norm_first=True)
    layer.self_attn.dropout = attention_dropout
    return layer


class LibraryClassifier(nn.Module):
    """The course's classifier with the library's encoder in place of its own."""

    def __init__(self, vocab_size: int, max_len: int, encoder: nn.TransformerEncoder):
        super().__init__()
        d_model = encoder.layers[0].linear1.in_features
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
        self.positions, self.dropout = SinusoidalPositions(d_model, max_len), nn.Dropout(DROPOUT)
        self.encoder, self.pooling, self.output = encoder, AttentionPooling(d_model), nn.Linear(d_model, 2)

    def forward(self, token_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.dropout(self.positions(self.embedding(token_ids)))
        x = self.encoder(x, src_key_padding_mask=~attention_mask)
        return self.output(self.pooling(x, attention_mask)[0])


def library_words(ours: WordTokenizer) -> Tokenizer:
    """A tokenizer of the library with the vocabulary and the rules of ours."""
    library = Tokenizer(models.WordLevel(ours.ids, unk_token="<unk>"))
    library.normalizer = normalizers.Sequence([normalizers.Replace(Regex(r"<br\s*/?>"), " "), normalizers.Lowercase()])
    library.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+(?:['’]\w+)*|[^\w\s]"), "removed", invert=True)
    return library


def library_bytes(ours: BPETokenizer) -> Tokenizer:
    """A byte-level tokenizer of the library with the merges of ours."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<pad>", *alphabet]
    for left, right in ours.merges:
        names.append(names[left] + names[right])
    merges = [(names[left], names[right]) for left, right in ours.merges]
    library = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, merges))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return library
