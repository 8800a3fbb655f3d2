"""`CodeCompleter`: any text and any cursor, long texts, the cache, files; what it suggests and what it refuses."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_code_models import CODE, Table, counted, counts, table, tokenizer, transformer

from course_utils.byte_pairs import BPETokenizer
from course_utils.completion import CodeCompleter, Completion
from course_utils.completion.names import last_word
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.tokenization import WordTokenizer

anything = st.one_of(
    st.text(max_size=80), st.text(" \t\r\n'\"._([{:=#éß日\u0301\U0001f600xvalue_", max_size=300),
    st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.tuples(st.sampled_from(CODE), st.integers(0, 200)).map(lambda pair: pair[0][: pair[1]]),
    st.tuples(st.sampled_from(["x", "é", " ", "\n", "_", "ab ", "'", "\r\n", "\ud800"]), st.integers(0, 3000)).map(
        lambda pair: pair[0] * pair[1]),
)
SMALL = {max_len: transformer(max_len) for max_len in (8, 9, 64)} | {"table": table()}


def check(completer, text, number=5):
    found, word = completer.complete(text, number), last_word(text)
    assert len(found) <= number and len({c.text for c in found}) == len(found)
    assert all(type(c) is Completion and c.text.startswith(word) and c.text for c in found)
    chances = [c.probability for c in found]
    assert chances == sorted(chances, reverse=True) and all(0 <= chance <= 1 for chance in chances)
    assert sum(chances) <= 1 + 1e-6
    for item in found:
        item.text.encode()                               # whole characters only
        assert word or last_word(item.text) in (item.text.strip(" \t"), "")
    rest = completer.continue_line(text, 6)
    assert not {"\n", "\r"} & set(rest) and rest == rest.rstrip()
    rest.encode()
    return found


@settings(max_examples=40, deadline=None)
@given(anything, st.sampled_from(list(SMALL)), st.integers(1, 8))
def test_any_text_gives_ranked_suggestions_that_begin_with_what_was_typed(text, size, number):
    check(SMALL[size], text, number)


@settings(max_examples=8, deadline=None)
@given(st.lists(anything, min_size=2, max_size=4))
def test_the_answers_are_the_same_whatever_was_asked_before(texts):
    """Up to rounding: a name that is found in one case and not in the other has to be one of the least probable."""
    fresh = CodeCompleter(SMALL[64].model, SMALL[64].tokenizer)
    for text in texts:
        SMALL[64].complete(text)
    for text in texts:
        alone = CodeCompleter(fresh.model, fresh.tokenizer)
        same(alone.complete(text), SMALL[64].complete(text))
        assert alone.continue_line(text) == SMALL[64].continue_line(text)


def same(left, right):
    chances = {c.text: c.probability for c in right}
    least = min(chances.values(), default=0)
    for name, chance in left:
        assert chances.get(name, least) == pytest.approx(chance, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("positions", ["rotary", "learned", "alibi"])
def test_every_kind_of_positions_can_read_a_text_of_any_length(positions):
    completer = transformer(max_len=24, positions=positions)
    for length in range(0, 120, 7):
        assert check(completer, (CODE[0] * 3)[:length])


def test_typing_letter_by_letter_reads_only_what_is_new():
    completer = table()
    model, text = completer.model, CODE[0][:100]
    completer.complete(text + "self.va")
    read = model.read
    completer._reader.read([0, *completer.tokenizer.encode(text + "self.val")], [])
    assert model.read - read <= 8


def test_a_long_text_costs_no_more_than_the_model_can_read():
    completer = table()
    completer.complete("x" * 100_000)
    completer.complete("value = self.path\n" * 20_000 + "self.v")
    assert completer.model.read < 2 * (64 + 400)


def test_a_trained_table_of_names_is_completed_as_anybody_would():
    """The same by a table and by a Transformer of the same answers, which can be saved."""
    byte_pairs = tokenizer()
    for completer in (CodeCompleter(Table(counts()), byte_pairs), counted()):
        assert [c.text for c in completer.complete("x = self.pa", 1)] == ["path"]
        assert "value" in [c.text for c in completer.complete("x = self.va", 3)]
        assert completer.complete("import o", 1)[0].text == "os"
        assert completer.complete("def __i", 1)[0].text == "__init__"
        assert completer.continue_line("impo").startswith("rt os")


def test_it_leaves_random_numbers_gradients_and_the_model_as_they_were():
    completer = transformer()
    before, state = torch.get_rng_state(), {k: v.clone() for k, v in completer.model.state_dict().items()}
    completer.complete("self.va")
    completer.continue_line("self.va")
    assert torch.equal(torch.get_rng_state(), before) and torch.is_grad_enabled()
    assert all(torch.equal(v, state[k]) for k, v in completer.model.state_dict().items())
    completer.model(torch.tensor([[0, 1]])).logits.sum().backward()      # nothing of it is an inference tensor


# files

def test_saved_and_loaded_it_answers_the_same(tmp_path):
    completer = transformer()
    completer.save(tmp_path / "code")
    loaded = CodeCompleter.load(tmp_path / "code")
    assert loaded.complete("self.va") == completer.complete("self.va")
    assert loaded.tokenizer.merges == completer.tokenizer.merges


@pytest.mark.parametrize("make, error, says", [
    (lambda path: path / "no", FileNotFoundError, "there is no model in .*no.safetensors; give the name"),
    (lambda path: 3, TypeError, "the name of a model"),
    (lambda path: "", ValueError, "expected the name of a model and got ''"),
    ])
def test_what_cannot_be_loaded_is_named(tmp_path, make, error, says):
    with pytest.raises(error, match=says):
        CodeCompleter.load(make(tmp_path))


# what is refused

def test_wrong_arguments_are_named():
    completer = table()
    for wrong in (None, b"x"):
        for call in (completer.complete, completer.continue_line):
            with pytest.raises(TypeError, match="has to be a string"):
                call(wrong)
    for number in (0, 101, True):
        with pytest.raises(ValueError, match="number="):
            completer.complete("x", number)
    with pytest.raises(ValueError, match="max_tokens=0"):
        completer.continue_line("x", 0)
    model = transformer().model
    with pytest.raises(TypeError, match="WordTokenizer; use a BPETokenizer"):
        CodeCompleter(model, WordTokenizer(["<pad>", "<unk>"]))
    with pytest.raises(ValueError, match="330 ids and the tokenizer 257"):
        CodeCompleter(model, BPETokenizer())
    with pytest.raises(ValueError, match="8 or more"):
        CodeCompleter(LanguageModel(LanguageModelConfig(257, d_model=8, num_heads=2, max_len=7)), BPETokenizer())
