"""The chat model of the last notebooks: random numbers, the same each time, or real weights where there are any."""

import json

import pandas
import pytest
import torch
from lesson_cells import cells_of
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from course_utils.chat import Conversation, chat_ids, load_chat
from course_utils.claims import claim
from course_utils.random_llama import checkpoint_of, find_chat_model, random_llama

MESSAGES = [{"role": "user", "content": "Was the film good?"}]


def test_it_is_the_same_each_time_and_about_200_000_numbers():
    state = torch.get_rng_state()
    one, other = random_llama(), random_llama()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
    assert 180_000 < sum(p.numel() for p in one.model.parameters()) < 220_000
    assert one.tokenizer.get_vocab() == other.tokenizer.get_vocab() and not one.real
    assert not torch.equal(random_llama(seed=1).model.embedding.weight, one.model.embedding.weight)


def test_its_template_is_chatml_with_a_system_turn():
    tokenizer = random_llama().tokenizer
    written = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert [line.partition("<|im_end|>")[0] for line in written.splitlines()] == [
        "<|im_start|>system", "Answer what you are asked.", "<|im_start|>user", "Was the film good?",
        "<|im_start|>assistant"]
    theirs = tokenizer.apply_chat_template(MESSAGES, tokenize=True, return_dict=False, add_generation_prompt=True)
    assert chat_ids(tokenizer, MESSAGES) == theirs
    with_system = [{"role": "system", "content": "Be brief."}, *MESSAGES]
    assert tokenizer.apply_chat_template(with_system, tokenize=False).count("system\n") == 1
    assert tokenizer.decode(tokenizer.encode("élan 你好 🙂")) == "élan 你好 🙂"


def test_without_weights_it_says_how_to_get_them_and_goes_on(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    found = find_chat_model()
    assert not found.real and "COURSE_MODELS" in (said := capsys.readouterr().out) and "random numbers" in said
    assert "".join(Conversation(found.model, found.tokenizer, max_new_tokens=10).reply("And then?"))


def test_a_folder_with_weights_is_taken(monkeypatch, tmp_path):
    tokenizer = random_llama().tokenizer
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_attention_heads=4,
                                 num_key_value_heads=2, num_hidden_layers=1, max_position_embeddings=300, bos_token_id=1,
                                 eos_token_id=2, pad_token_id=2)).save_pretrained(tmp_path / "smollm2")
    tokenizer.save_pretrained(tmp_path / "smollm2")
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    found = find_chat_model()
    assert found.real and found.folder == tmp_path / "smollm2" == checkpoint_of(found, tmp_path)
    assert found.model.config.d_model == 32 and found.tokenizer.chat_template == tokenizer.chat_template


@pytest.mark.slow
def test_the_published_weights_answer(published_models):
    found = find_chat_model()
    if not found.real:
        pytest.skip("no SmolLM2 in COURSE_MODELS")
    talk = Conversation(found.model, found.tokenizer, max_new_tokens=20)
    assert "Paris" in "".join(talk.reply("Which city is the capital of France?"))
    assert checkpoint_of(found, "nowhere") == found.folder == published_models / "smollm2"


def test_random_numbers_go_through_a_folder_of_the_library(tmp_path):
    one = random_llama()
    again, tokenizer = load_chat(str(checkpoint_of(one, tmp_path / "it")))
    assert vars(again.config) == vars(one.model.config) | {"pad_id": again.config.pad_id}
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), again.parameters(), strict=True))
    assert tokenizer.chat_template == one.tokenizer.chat_template
    ids = torch.tensor([chat_ids(tokenizer, MESSAGES)])
    theirs = LlamaForCausalLM.from_pretrained(tmp_path / "it").eval()
    with torch.no_grad():
        assert torch.allclose(again(ids).logits, theirs(input_ids=ids).logits, atol=1e-4)


def test_the_notebook_reads_a_folder_as_the_hub_has_it(tmp_path):
    """SmolLM2's config.json there has rope_theta beside the sizes, and its weights have 16 bits."""
    one = random_llama()
    folder = checkpoint_of(one, tmp_path / "it")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"rope_theta": config.pop("rope_parameters")["rope_theta"], "rope_scaling": None, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = {name: tensor.bfloat16() for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    names = {"folder": folder, "config": config, "load_file": load_file, "pd": pandas, "tokenizer": one.tokenizer,
             "claim": claim,
             "our_order": lambda d_head: [row for pair in range(d_head // 2) for row in (pair, pair + d_head // 2)]}
    cells = cells_of("20_real_language_model")
    for cell in ("export-imports", "imports", "export-rms", "export-swiglu", "export-grouped", "export-config",
                 "export-names", "tensors", "by-hand", "equal"):
        exec(cells[cell], names)
    assert names["gap"] < 1e-3 < 1 < names["wrong"] and names["model"].config.rotary_base == config["rope_theta"]
