"""A chat model for the notebooks about real ones: published weights where there are any, else random numbers in their place.

Does: `find_chat_model` loads SmolLM2-135M-Instruct into the course's `Llama` if this machine has it (or may download it),
and else makes a Llama of about 200,000 random numbers with a tokenizer trained here and a chat template, so that every
cell runs without weights; `checkpoint_of` gives the folder that either comes from, in Hugging Face's format. Does not:
train. What random numbers write is nonsense, the same on every machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from course_utils.chat import load_chat
from course_utils.files.paths import DATA
from course_utils.llama import LLAMA_NAMES, Llama, LlamaConfig
from course_utils.training.hugging_face import find_if_allowed

if TYPE_CHECKING:                                       # imported where it's needed: it takes seconds
    from transformers import PreTrainedTokenizerBase

__all__ = ["SMOLLM2", "TEMPLATE", "ChatModel", "checkpoint_of", "find_chat_model", "random_llama", "random_tokenizer"]

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
# ChatML, as SmolLM2 writes it: a turn is opened and closed by special tokens, and a system turn is put in where none is
TEMPLATE = ("{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
            "{{ '<|im_start|>system\nAnswer what you are asked.<|im_end|>\n' }}{% endif %}"
            "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


class ChatModel(NamedTuple):
    """A `model` in the course's class, its `tokenizer`, whether the weights are real, and the folder that has them."""

    model: Llama
    tokenizer: PreTrainedTokenizerBase
    real: bool
    folder: Path | None = None


def random_tokenizer(vocab_size: int = 1024) -> PreTrainedTokenizerBase:
    """A byte-level BPE tokenizer with ChatML's special tokens, trained on the course's ordinary and written reviews.

    `vocab_size` counts the 256 bytes and three special tokens, too.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    texts = [json.loads(line)["text"] for name in ("ordinary.jsonl", "handwritten.jsonl")
             for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    pieces = Tokenizer(models.BPE(unk_token=None))
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    pieces.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, bos_token=special[1], eos_token=special[2],
                                        pad_token=special[2], unk_token=special[0],
                                        additional_special_tokens=special[1:], clean_up_tokenization_spaces=False)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def random_llama(seed: int = 0, max_len: int = 2048) -> ChatModel:
    """A Llama of about 200,000 random numbers: 3 layers, 4 heads of queries on 2 of keys and values, d_model 64."""
    tokenizer = random_tokenizer()
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        model = Llama(LlamaConfig(len(tokenizer), d_model=64, num_heads=4, num_kv_heads=2, d_ff=160, num_layers=3,
                                  max_len=max_len, dropout=0.0))
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:                             # matrices; the norms' scales stay 1
                nn.init.normal_(p, std=0.3 if p.shape[0] == len(tokenizer) else 0.15, generator=generator)
    return ChatModel(model.eval(), tokenizer, real=False)


def find_chat_model() -> ChatModel:
    """SmolLM2 where this machine has it or may fetch it, else `random_llama()` after three lines on how to get it.

    Looked for as 'smollm2' or by its full name in the folder that COURSE_MODELS names, among earlier downloads, and, with
    COURSE_DOWNLOAD=1, on the hub (270 MB).
    """
    folder = find_if_allowed("smollm2", SMOLLM2, megabytes=270, tokenizer=True)
    if folder is None:
        print("Until then a Llama of random numbers stands in: every cell runs, and what it writes is nonsense.")
        return random_llama()
    return ChatModel(*load_chat(str(folder)), real=True, folder=Path(folder))


def checkpoint_of(chat: ChatModel, folder: str | Path) -> Path:
    """The folder in Hugging Face's format from which the model comes; one of random numbers is written into `folder`."""
    if chat.folder:
        return chat.folder
    import transformers

    c, theirs = chat.model.config, {}
    d_head = c.d_model // c.num_heads
    for name, tensor in chat.model.state_dict().items():
        if "query_projection" in name or "key_projection" in name:         # the pairs of rows, back into halves
            tensor = tensor.unflatten(0, (-1, d_head // 2, 2)).transpose(1, 2).flatten(0, 2)
        for their, our in LLAMA_NAMES.items():
            name = name.replace(our, their)
        theirs[name] = tensor
    library = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=c.vocab_size, hidden_size=c.d_model, intermediate_size=c.d_ff, num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads, num_key_value_heads=c.num_kv_heads, max_position_embeddings=c.max_len,
        rms_norm_eps=c.layer_norm_eps, tie_word_embeddings=True, bos_token_id=chat.tokenizer.bos_token_id,
        eos_token_id=chat.tokenizer.eos_token_id, pad_token_id=chat.tokenizer.pad_token_id,
        rope_parameters={"rope_type": "default", "rope_theta": c.rotary_base}))
    library.load_state_dict(theirs | {"lm_head.weight": theirs["model.embed_tokens.weight"]})
    library.save_pretrained(folder)
    chat.tokenizer.save_pretrained(folder)
    return Path(folder)
