"""Summaries by a rule, ROUGE by its definition, and a pointer that equals See et al.'s formula word by word."""

import itertools

import pytest
import torch

from course_utils.data import load_reviews
from course_utils.data.translations import split_english
from course_utils.encoder_decoder import Transformer, TransformerConfig
from course_utils.summaries_by_copying import (
    PointerTransformer,
    copy_ids,
    decode_copies,
    encode_copies,
    mixture,
    rouge_1,
    rouge_l,
    summaries,
    summary_of,
)
from course_utils.training import seed_everything
from course_utils.training.pair_batches import BEGIN, END, PAD, SPECIAL, UNKNOWN, WordList

VOCAB = 10
SOURCE = torch.tensor([[4, 10, 5, 11, 10, 7], [10, 4, 5, PAD, PAD, PAD], [5, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[BEGIN, 10, 5, 11, 10], [BEGIN, 4, 10, 4, 6], [BEGIN, 5, 9, 9, 4]])


def pointing(**changes) -> PointerTransformer:
    """A small one in float64, with biases that aren't zero."""
    seed_everything(0)
    config = TransformerConfig(VOCAB, VOCAB, d_model=8, num_heads=2, d_ff=12, num_layers=2, **changes)
    model = PointerTransformer(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


# the rule

def test_the_summary_is_every_sentence_with_evidence():
    text = "It was long. I liked it! Did my aunt? She was right, e.g. about the end."
    found, chosen = summary_of(text, [[text.index(word), text.index(word) + 5] for word in ("liked", "right")])
    assert found == ["It was long.", "I liked it!", "Did my aunt?", "She was right, e.g.", "about the end."]
    assert chosen == [1, 3]


@pytest.mark.parametrize("evidence", [[], [[8, 16]], [[0, 99]]])
def test_evidence_that_is_in_no_sentence_is_refused(evidence):
    with pytest.raises(ValueError, match="expected at least one span, and each within a sentence"):
        summary_of("It was long. I liked it.", evidence)


def test_in_the_corpus_each_summary_is_made_of_the_reviews_words_and_holds_all_evidence():
    split = load_reviews("reviews")["validation"].select(range(200))
    rows = summaries(split)
    kept = [i for i in range(len(split)) if len(set(summary_of(split["text"][i], split["evidence"][i])[1]))
            < len(summary_of(split["text"][i], split["evidence"][i])[0])]
    assert len(kept) == len(rows["kind"]) > 100 and rows["kind"] == [split["kind"][i] for i in kept]
    for row, i in enumerate(kept):
        source, target, places = rows["source_tokens"][row], rows["target_tokens"][row], rows["places"][row]
        assert source == split_english(split["text"][i]) == list(itertools.chain(*rows["sentences"][row]))
        assert target == [source[place] for place in places] and places == sorted(set(places)) and len(places) < len(source)
        said = " ".join(target)
        for start, end in split["evidence"][i]:
            assert " ".join(split_english(split["text"][i][start:end])) in said


# ROUGE

def longest_common(a, b):
    """The longest common subsequence, by trying all of the shorter one's."""
    return max(n for n in range(len(a) + 1) for kept in itertools.combinations(a, n)
               if all(word in rest for rest in [iter(b)] for word in kept))


def test_rouge_by_hand_and_by_trying_everything():
    assert rouge_1("a b b c".split(), "b b b d".split()) == pytest.approx(2 * 2 / 8)
    assert rouge_l("c a b".split(), "a x b y".split()) == pytest.approx(2 * 2 / 7)
    assert rouge_1([], ["a"]) == rouge_l([], ["a"]) == rouge_1([], []) == 0 and rouge_l(["a"], ["a"]) == 1
    seed_everything(3)
    for _ in range(60):
        a, b = (torch.randint(0, 3, (int(torch.randint(1, 7, ())),)).tolist() for _ in range(2))
        assert rouge_l(a, b) == pytest.approx(2 * longest_common(a, b) / (len(a) + len(b)))
        assert rouge_l(a, b) == rouge_l(b, a) <= rouge_1(a, b) + 1e-12


# ids

def test_unknown_words_get_ids_of_their_own_and_come_back():
    words = WordList([*SPECIAL, "was", "right"])
    source = ["Quinn", "was", "right", "Tove", "Quinn"]
    assert copy_ids(source, source, words) == [6, 4, 5, 7, 6]
    assert copy_ids(["Tove", "else"], source, words) == [7, UNKNOWN]
    pairs = encode_copies({"source_tokens": [source], "target_tokens": [["Tove", "was"]]}, words)
    assert pairs.source == [[6, 4, 5, 7, 6]] and pairs.target == [[BEGIN, 7, 4, END]]
    assert decode_copies([BEGIN, 7, 4, UNKNOWN, 6, END], source, words) == ["Tove", "was", "<unk>", "Quinn"]
    with pytest.raises(ValueError, match="id 8 is not in the word list"):
        decode_copies([8], source, words)


# the model

def test_the_mixture_is_the_papers_formula():
    seed_everything(1)
    p_gen, p_words = torch.rand(2, 3, 1), torch.rand(2, 3, 5).softmax(dim=-1)
    source = torch.tensor([[4, 6, 5, 6], [1, 4, 4, PAD]])
    weights = torch.rand(2, 3, 4)
    weights[1, :, 3] = 0
    weights /= weights.sum(dim=-1, keepdim=True)
    p = mixture(p_gen, p_words, weights, source)
    assert p.shape == (2, 3, 7)
    for row, step, word in itertools.product(range(2), range(3), range(7)):
        expected = p_gen[row, step, 0] * (p_words[row, step, word] if word < 5 else 0)
        for i in range(4):
            if source[row, i] == word:
                expected = expected + (1 - p_gen[row, step, 0]) * weights[row, step, i]
        torch.testing.assert_close(p[row, step, word], expected)
    torch.testing.assert_close(p.sum(dim=-1), torch.ones(2, 3))


def test_with_p_gen_1_it_is_the_transformer_of_notebook_17_and_with_0_it_only_copies():
    model = pointing()
    known = Transformer(model.config).double().eval()
    known.load_state_dict(model.state_dict(), strict=False)
    source, target = (ids.where(ids < VOCAB, UNKNOWN) for ids in (SOURCE, TARGET))
    with torch.no_grad():
        expected = known(source, SOURCE != PAD, target).logits.softmax(dim=-1)
        for gate, p_gen in ((60.0, 1.0), (-60.0, 0.0)):
            model.gate.weight.zero_()
            model.gate.bias.fill_(gate)
            result = model(SOURCE, SOURCE != PAD, TARGET)
            torch.testing.assert_close(result.p_gen, torch.full_like(result.p_gen, p_gen), rtol=0, atol=1e-12)
            p = result.logits.exp()
            if p_gen:
                torch.testing.assert_close(p[..., :VOCAB], expected, rtol=0, atol=1e-8)
            else:
                copied = [{int(i) for i in row if i != PAD} for row in SOURCE]
                for row, can in enumerate(copied):
                    others = [i for i in range(p.shape[-1]) if i not in can]
                    assert p[row][:, others].max() < 1e-8
                    torch.testing.assert_close(p[row].sum(dim=-1), torch.ones(5).double(), rtol=0, atol=1e-7)


def test_word_by_word_padding_and_selecting_change_nothing():
    model = pointing()
    with torch.no_grad():
        whole = model(SOURCE, SOURCE != PAD, TARGET, need_weights=True)
        assert whole.weights.cross[1].shape == (3, 2, 5, 6) and whole.copied.shape == (3, 5, 6)
        state = model.start(model.encode(SOURCE, SOURCE != PAD))
        for i, last_ids in enumerate(TARGET.T):
            if i == 3:                                                     # rows in another order, one of them twice
                state = state.select(torch.tensor([1, 0, 0]))
            logits, state = model.step(last_ids if i < 3 else last_ids[[1, 0, 0]], state)
            expected = whole.logits[:, i] if i < 3 else whole.logits[[1, 0, 0], i]
            torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)
        for row, length in enumerate((6, 3, 1)):
            ids = SOURCE[row : row + 1, :length]
            alone = model(ids, ids != PAD, TARGET[row : row + 1].clamp(max=VOCAB)).logits
            if row:                                                        # the first row's target has another unknown word
                torch.testing.assert_close(alone, whole.logits[row : row + 1, :, : alone.shape[-1]], rtol=0, atol=1e-10)
            assert whole.copied[row, :, length:].sum() == 0


def test_two_vocabularies_are_refused():
    with pytest.raises(ValueError, match="vocab_size=9 and source_vocab_size=12; a pointer needs one list of words"):
        PointerTransformer(TransformerConfig(9, 12, d_model=8, num_heads=2, d_ff=12, num_layers=1))
