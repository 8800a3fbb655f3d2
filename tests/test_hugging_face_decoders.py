"""The course's language models in Hugging Face's format: its classes give the same logits, and write the same texts."""

import random

import pytest
import torch
from test_hugging_face import equal_states, shaken
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

from course_utils.byte_pairs import BPETokenizer
from course_utils.completion import CodeCompleter
from course_utils.hugging_face import library_decoder_config, save_language_model
from course_utils.language_model import LanguageModel, LanguageModelConfig, gpt2_config, load_gpt2
from course_utils.llama import Llama, LlamaConfig
from course_utils.tokenization import WordTokenizer


def drawn_config(seed, positions):
    """A configuration in which as much as possible is drawn by chance."""
    draw = random.Random(seed)
    heads = draw.randint(1, 4)
    return LanguageModelConfig(
        vocab_size=draw.randint(30, 90), d_model=heads * 2 * draw.randint(1, 6), num_heads=heads, d_ff=draw.randint(1, 60),
        num_layers=draw.randint(1, 4), max_len=draw.randint(24, 40), positions=positions,
        activation=draw.choice(["gelu", "gelu_tanh", "relu"]), tied=draw.choice([True, False]),
        layer_norm_eps=draw.choice([1e-5, 1e-2]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("positions, kind", [("rotary", "GPTNeoXForCausalLM"), ("learned", "GPT2LMHeadModel")])
def test_the_library_computes_and_writes_the_same(tmp_path, positions, kind, seed):
    config = drawn_config(seed, positions)
    model = shaken(LanguageModel(config), seed)
    save_language_model(model, None, tmp_path / "it")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "it").eval()
    assert type(theirs).__name__ == kind
    ids = torch.randint(1, config.vocab_size, (3, 9))
    with torch.no_grad():
        got, expected = theirs(ids).logits, model(ids).logits
    assert (got - expected).abs().max() < 1e-4 and expected.std() > 0.1
    written = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=config.max_len - 9, do_sample=False)
    assert written.shape == (3, config.max_len)
    assert torch.equal(written, model.generate(ids, config.max_len - 9, temperature=0))
    if positions == "learned":
        again, tokenizer = load_gpt2(tmp_path / "it")
        assert equal_states(again, model) and again.config == config and tokenizer is None
        assert gpt2_config(library_decoder_config(config)) == config


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """The course's code model, written for the library: (completer, folder)."""
    completer = CodeCompleter.load()
    return completer, save_language_model(completer.model, completer.tokenizer, tmp_path_factory.mktemp("code") / "it")


def test_the_code_model_goes_on_in_a_pipeline_as_it_does_here(code):
    completer, folder = code
    for text in ("for i in range(10):\n    pri", "class Shape:\n    def __init__(self, width):\n        self."):
        answer = pipeline("text-generation", str(folder), device="cpu")(text, max_new_tokens=20, do_sample=False)
        ids = torch.tensor([completer.tokenizer.encode(text)])
        mine = completer.model.generate(ids, 20, temperature=0)[0].tolist()
        assert answer[0]["generated_text"] == completer.tokenizer.decode(mine)


def test_byte_pairs_have_the_same_ids_there_for_any_text(code):
    completer, folder = code
    theirs = AutoTokenizer.from_pretrained(folder)
    assert theirs.model_max_length == completer.model.config.max_len and theirs.pad_token_id == 0
    draw = random.Random(0)
    kinds = [lambda: draw.randrange(9, 127), lambda: draw.randrange(128, 0x250), lambda: draw.randrange(0x2000, 0x3100),
             lambda: draw.randrange(0x1F300, 0x1F600)]
    texts = ["", " ", "\n\n  x = 1\t# it's", "_a__b 12,5 naïve ½ ٣ 映画", "I'll don't we've 're\u00a0x"]
    texts += ["".join(chr(draw.choice(kinds)()) for _ in range(40)) for _ in range(300)]
    for text in texts:
        assert theirs(text)["input_ids"] == completer.tokenizer.encode(text), ascii(text)
        assert theirs.decode(theirs(text)["input_ids"]) == text


def test_what_the_library_does_not_compute_is_refused(tmp_path):
    config = LanguageModelConfig(300, d_model=8, num_heads=2, d_ff=9, num_layers=1, max_len=12)
    model, tokenizer = LanguageModel(config), BPETokenizer()
    llama = Llama(LlamaConfig(300, d_model=8, num_heads=2, d_ff=9, num_layers=1, max_len=12))
    alibi = LanguageModel(LanguageModelConfig(300, d_model=8, num_heads=2, d_ff=9, num_layers=1, positions="alibi"))
    for error, words, what in (
        (TypeError, "the model is a Llama; save_language_model takes a LanguageModel", (llama, None)),
        (TypeError, "the tokenizer is a WordTokenizer; use a BPETokenizer", (model, WordTokenizer(["<pad>", "<unk>"]))),
        (ValueError, "the tokenizer has 257 tokens, and the model vocab_size=300", (model, tokenizer)),
        (ValueError, "positions='alibi'.*'learned' or 'rotary'", (alibi, None)),
    ):
        with pytest.raises(error, match=words):
            save_language_model(*what, tmp_path / "it")
    with pytest.raises(ValueError, match="two merges give the token"):
        twice = BPETokenizer([(98, 99), (99, 100), (98, 258), (257, 100)])
        small = LanguageModel(LanguageModelConfig(twice.vocab_size, d_model=8, num_heads=2, d_ff=9, num_layers=1))
        save_language_model(small, twice, tmp_path / "it")
    assert not (tmp_path / "it").exists()
