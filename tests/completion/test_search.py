"""The search for names against sums over all ways to write them in tokens; the reader against a model without a cache."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_code_models import CODE, exact, table, tokenizer, transformer

from course_utils.completion.names import TokenTable, decoded, last_word, make_prompt, next_item
from course_utils.completion.search import Reader

PLACES = ["", "self.val", "    return self.", "import o", "x = values[", "it's'r", "value_", "class A:\n    ", "é"]


# where words end

@pytest.mark.parametrize("text, within, item, ended", [
    ("ue = 3", True, "ue", True), (" = 3", True, "", True), ("", True, "", False),
    ("name(", False, "name", True), (" (a", False, " (", True), ("(a", False, "(", True),
    ("\n   x", False, "\n", True), ("  ", False, "  ", False), ("\u0301e ", True, "\u0301e", True)])
def test_the_next_word_ends_where_a_name_ends(text, within, item, ended):
    assert next_item(text, within) == (item, ended)


@pytest.mark.parametrize("text, word", [("self.val", "val"), ("x = ", ""), ("_a1", "_a1"), ("a-b", "b"), ("né", "né"),
                                        ("", ""), ("a\u0301", "a\u0301"), ("x\ud800", ""), ("日本", "日本")])
def test_the_word_at_the_end(text, word):
    assert last_word(text) == word


def test_bytes_become_text_as_far_as_they_are_whole():
    assert decoded("né".encode()[:-1]) == "n" and decoded(b"\xff") is None and decoded(b"\xa9a") is None
    assert decoded("né".encode()) == "né" and decoded("\ud800".encode("utf-8", "surrogatepass")) is None


# what the model gets

@given(st.text(max_size=60) | st.sampled_from(CODE) | st.text(" \n\t'abrelvs_(", max_size=40), st.text(max_size=3))
def test_what_comes_after_changes_none_of_the_tokens_that_stay(text, more):
    """Except for '\\r\\n', which is read as '\\n'."""
    byte_pairs = tokenizer()
    text, more = text.replace("\r", ""), more.replace("\r", "")
    prompt = make_prompt(text, byte_pairs, 400)
    if len(byte_pairs.encode(text)) - len(prompt.ids) + 1 < 8:           # the whole last chunk could be taken back
        assert byte_pairs.encode(text + more)[: len(prompt.ids) - 1] == prompt.ids[1:]
    data = b"".join(byte_pairs.tokens[i] for i in prompt.ids + prompt.chain)
    assert data == text.encode("utf-8", "surrogatepass") and data.endswith(prompt.typed)


@given(st.text("ab .\n", max_size=2000), st.integers(8, 40))
def test_of_a_long_text_the_model_gets_the_end_and_no_more_than_it_can_read(text, max_len):
    byte_pairs = tokenizer()
    prompt = make_prompt(text, byte_pairs, max_len)
    data = b"".join(byte_pairs.tokens[i] for i in prompt.ids + prompt.chain)
    assert 1 <= len(prompt.ids) and len(prompt.ids + prompt.chain) <= max_len - 4
    assert text.encode().endswith(data)
    if 0 not in prompt.ids:
        assert len(prompt.ids + prompt.chain) > (max_len - 8) / 3


def test_tokens_agree_with_bytes_that_they_begin_with_or_that_begin_with_them():
    byte_pairs = tokenizer()
    asked = TokenTable(byte_pairs)
    for data in (b" val", b"v", b"\xff", b"zz", b"\n    ", "é".encode()):
        found = asked.agreeing(data)
        everything = range(1, byte_pairs.vocab_size)
        assert sorted(found.beyond.tolist()) == [i for i in everything if byte_pairs.tokens[i].startswith(data)]
        assert sorted(found.within) == [i for i in everything
                                        if data.startswith(byte_pairs.tokens[i]) and data != byte_pairs.tokens[i]]


# the reader

@pytest.mark.parametrize("positions", ["rotary", "sinusoidal", "alibi"])
def test_the_reader_answers_as_a_model_that_reads_everything_anew(positions):
    model = transformer(positions=positions).model
    reader = Reader(model)
    asked = ([0, 5, 6], [7]), ([0, 5, 6], [8, 9]), ([0, 5], []), ([0, 5, 6, 8, 9, 10], [11]), ([3], [4]), ([0], [])
    for prompt, chain in asked:
        found = reader.read(prompt, chain)
        expected = fresh(model, prompt + chain)[len(prompt) - 1 :]
        assert torch.allclose(found, expected, atol=1e-4)
        branches = reader.branches([(5,), (6, 7, 8), (9, 9)])
        for row, suffix in zip(branches, ([5], [6, 7, 8], [9, 9])):
            assert torch.allclose(row, fresh(model, prompt + suffix)[-1], atol=1e-4)
        assert torch.allclose(reader.follow(12), fresh(model, prompt + chain + [12])[-1], atol=1e-4)


def fresh(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    logits[:, 0] = -torch.inf
    return logits.log_softmax(dim=-1)


def test_only_what_is_new_is_read():
    completer = table()
    model, reader = completer.model, Reader(completer.model)
    reader.read([0, *range(1, 50)], [50])
    assert model.read == 51
    reader.read([0, *range(1, 50)], [60])
    assert model.read == 51 + 2                          # the last token of the prompt, whose answer is asked for, and 60


def test_an_interruption_in_the_middle_of_a_reading_spoils_nothing(monkeypatch):
    model = transformer().model
    reader = Reader(model)
    reader.read([0, 1, 2], [3])
    right = reader.read([0, 1, 4], [5])

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for reading in (lambda: reader.read([0, 1, 2, 3], []), lambda: reader.follow(7)):
        with monkeypatch.context() as patch:
            patch.setattr(model.decoder.blocks[1], "forward", interrupted)
            with pytest.raises(KeyboardInterrupt):
                reading()
        assert torch.allclose(reader.read([0, 1, 4], [5]), right, atol=1e-5)


# names and probabilities

@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("text", PLACES)
def test_a_probability_is_a_lower_bound_of_the_sum_over_all_ways_to_write_the_name(text, seed):
    completer = table(seed)
    prompt, word = make_prompt(text, completer.tokenizer, 64), last_word(text)
    found = [(c.text[len(word) :], c.probability) for c in completer.complete(text, 5)]
    assert found
    for item, probability in found:
        if word or not next_item(item, False)[1]:
            whole = exact(completer, prompt.ids[-1], prompt.typed, item, bool(word))
            assert 0 < probability <= whole + 1e-9
            assert probability > 0.5 * whole, (item, probability, whole)


def test_with_enough_work_the_bound_is_the_sum(monkeypatch):
    from course_utils.completion import search

    for name, value in (("BATCHES", 60), ("TOKENS", 20000), ("WIDEST", 400), ("NEGLIGIBLE", -60)):
        monkeypatch.setattr(search, name, value)
    completer = table(4)
    prompt = make_prompt("self.val", completer.tokenizer, 64)
    for name, probability in completer.complete("self.val", 4):
        assert probability == pytest.approx(exact(completer, prompt.ids[-1], prompt.typed, name[3:], True), rel=0.02)
