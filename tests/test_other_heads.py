"""Labels for words and spans for answers: the library's heads, names counted as whole names, no span that's nonsense."""

import itertools
import random

import pytest
import torch
from transformers import BertConfig as LibraryConfig
from transformers import BertForQuestionAnswering, BertForTokenClassification

from course_utils import other_heads as heads
from course_utils.data.marked_reviews import make_named_reviews, make_questions
from course_utils.pretraining import BertConfig, BertEncoder, WordPieceTokenizer, load_bert
from course_utils.recipes.name_finders import Rows, by_capitals, by_list, piece_vocabulary
from course_utils.training.word_piece_files import SPECIAL

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = [*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS), *".,?'", "the", "##ing"]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(PIECES)


def small_encoder(vocab_size=60, seed=0):
    torch.manual_seed(seed)
    return BertEncoder(BertConfig(vocab_size, d_model=12, num_heads=3, d_ff=20, num_layers=2, max_len=140)).eval()


# names

def names_by_letters(labels):
    """Another way to read BIO: cut wherever the kind changes, after O, and before every B."""
    found, pieces = set(), [("O", "")] + [(label[0], label[2:]) for label in labels]
    begins = [i for i in range(1, len(pieces)) if pieces[i][0] != "O"
              and (pieces[i][0] == "B" or pieces[i - 1][0] == "O" or pieces[i - 1][1] != pieces[i][1])]
    for i in begins:
        end = i + 1
        while end < len(pieces) and end not in begins and pieces[end][0] == "I":
            end += 1
        found.add((i - 1, end - 1, pieces[i][1]))
    return found


def test_names_are_read_from_any_row_of_labels():
    for length in range(5):
        for labels in itertools.product(heads.LABELS, repeat=length):
            assert heads.names_in(labels) == names_by_letters(labels), labels
    found = heads.names_in(["B-film", "B-film", "I-film", "I-person", "O"])
    assert found == {(0, 1, "film"), (1, 3, "film"), (3, 4, "person")}


def test_labels_of_reviews_give_back_the_names_that_the_generator_marked():
    for review in make_named_reviews(300, seed=7):
        words, labels = heads.words_and_labels(review)
        assert "".join(words) == review.text.replace(" ", "")
        marked = {(" ".join(words[start:end]), kind) for start, end, kind in heads.names_in(labels)}
        assert marked == {(review.text[name.start : name.end], name.kind) for name in review.names}


def test_f1_is_the_harmonic_mean_and_counts_whole_names_over_all_texts():
    precision, recall = 3 / 4, 3 / 6
    assert heads.f1(3, 4, 6) == pytest.approx(2 / (1 / precision + 1 / recall))
    assert heads.f1(0, 0, 0) == heads.f1(0, 5, 0) == 0
    right = [{(0, 2, "person"), (3, 4, "film")}, set(), {(1, 2, "person")}]
    found = [{(0, 1, "person"), (3, 4, "film")}, {(0, 1, "film")}, {(1, 2, "film")}]
    assert heads.name_f1(found, right) == pytest.approx(2 * 1 / (4 + 3))
    assert heads.name_f1(right, right) == 1
    with pytest.raises(ValueError):
        heads.name_f1(found, right[:2])


# pieces

def test_each_word_is_asked_for_once_at_its_first_piece(tokenizer):
    words, labels = ["the", "singing", "Zoe", ",", "the"], ["O", "B-film", "I-film", "O", "O"]
    ids, targets = heads.token_row(tokenizer, words, labels)
    assert ids == tokenizer.encode(" ".join(words)) and len(ids) == len(targets)
    asked = [(tokenizer.vocabulary[i], heads.LABELS[t]) for i, t in zip(ids, targets) if t != heads.IGNORE]
    assert asked == [("the", "O"), ("s", "B-film"), ("z", "I-film"), (",", "O"), ("the", "O")]
    with pytest.raises(ValueError):
        heads.token_row(tokenizer, words, labels[:-1])
    with pytest.raises(ValueError, match="the word ' ' has no word piece, so nothing could carry its label; leave it out"):
        heads.token_row(tokenizer, ["the", " "], ["O", "O"])
    with pytest.raises(ValueError, match="the word 'the' has the label 'B-place'; expected one of O, B-person"):
        heads.token_row(tokenizer, ["the"], ["B-place"])


def test_predicted_labels_are_one_a_word_whatever_else_is_in_the_batch(tokenizer):
    rows = [heads.words_and_labels(review) for review in make_named_reviews(9, seed=3)]
    texts = [words for words, _ in rows]
    tagger = heads.TokenTagger(small_encoder(tokenizer.vocab_size), len(heads.LABELS)).train()
    with torch.no_grad():
        tagger.output.weight.mul_(5)
    alone = [heads.predicted_labels(tagger, tokenizer, [words])[0] for words in texts]
    assert heads.predicted_labels(tagger, tokenizer, texts, size=4) == alone and tagger.training
    assert [len(labels) for labels in alone] == [len(words) for words in texts]
    assert len({label for labels in alone for label in labels}) > 1


def test_rows_are_all_in_the_batches_once_and_padded(tokenizer):
    rows = [([k] * length, [k + 100] * length) for k, length in enumerate((3, 9, 4, 4, 7), start=1)]
    data = Rows(rows, (0, heads.IGNORE), size=2)
    assert len(data) == 3
    for seed in (None, 0, 1):
        seen = []
        for batch in data.batches(seed):
            assert batch.shape[1] == 2
            for ids, targets in batch.tolist():
                real = [k for k in ids if k]
                assert ids == real + [0] * (len(ids) - len(real))
                assert targets == [k + 100 for k in real] + [heads.IGNORE] * (len(ids) - len(real))
                seen.append((real, targets[: len(real)]))
        assert sorted(seen) == sorted(rows)


# the two heads

@pytest.mark.parametrize("seed", range(3))
def test_both_heads_and_their_losses_are_the_library_s(tmp_path, seed):
    torch.manual_seed(seed)
    sizes = dict(vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=32)
    ids, types = torch.randint(1, 50, (4, 11)), torch.tensor([[0] * 5 + [1] * 6] * 4)
    ids[1, 8:], ids[3, 6:] = 0, 0                              # padding
    mask, types = ids != 0, types * (ids != 0)
    for kind, make, name, labels in ((BertForTokenClassification, lambda e: heads.TokenTagger(e, 5), "classifier", 5),
                                     (BertForQuestionAnswering, heads.SpanMarker, "qa_outputs", 2)):
        theirs = kind(LibraryConfig(**sizes, num_labels=labels)).eval()
        theirs.save_pretrained(tmp_path / name)
        ours = make(load_bert(tmp_path / name)[0]).eval()
        ours.output.load_state_dict(getattr(theirs, name).state_dict())
        with torch.no_grad():
            if labels == 5:
                targets = torch.randint(5, ids.shape).masked_fill((torch.rand(ids.shape) < 0.3) | ~mask, heads.IGNORE)
                expected = theirs(ids, attention_mask=mask.long(), labels=targets)
                loss, number = heads.token_loss(ours, torch.stack([ids, targets], dim=1))
                assert number == (targets != heads.IGNORE).sum()
                assert (ours(ids) - expected.logits)[mask].abs().max() < 1e-5
            else:
                starts, ends = torch.tensor([5, 6, 7, 5]), torch.tensor([6, 7, 9, 5])
                expected = theirs(ids, attention_mask=mask.long(), token_type_ids=types, start_positions=starts,
                                  end_positions=ends)
                one_hot = torch.nn.functional.one_hot
                batch = torch.stack([ids, types, one_hot(starts, 11), one_hot(ends, 11)], dim=1)
                loss, number = heads.span_loss(ours, batch)
                start, end = ours(ids, types)
                assert number == 4 and (start - expected.start_logits)[mask].abs().max() < 1e-5
                assert (end - expected.end_logits)[mask].abs().max() < 1e-5
        assert (loss - expected.loss).abs() < 1e-5


# spans

def best_by_loops(start, end, allowed, longest):
    length = len(start)
    spans = [(i, j) for i in range(length) for j in range(i, min(length, i + longest)) if allowed[i] and allowed[j]]
    return max(spans, key=lambda span: start[span[0]] + end[span[1]])


def test_the_best_span_is_the_one_that_loops_find():
    rng = random.Random(0)
    for _ in range(60):
        batch, length, longest = rng.randint(1, 4), rng.randint(1, 12), rng.randint(1, 9)
        start, end = torch.randn(2, batch, length)
        allowed = torch.rand(batch, length) < 0.5
        allowed[torch.arange(batch), torch.randint(length, (batch,))] = True
        found = heads.best_spans(start, end, allowed, longest).tolist()
        for k in range(batch):
            assert tuple(found[k]) == best_by_loops(start[k].tolist(), end[k].tolist(), allowed[k].tolist(), longest)


def test_scores_that_don_t_fit_and_rows_without_a_place_are_refused():
    scores = torch.zeros(2, 5)
    with pytest.raises(ValueError, match=r"shapes \(2, 5\), \(2, 4\) and \(2, 5\); expected \(batch, seq_len\) for all"):
        heads.best_spans(scores, scores[:, 1:], scores > 0)
    with pytest.raises(ValueError, match="allowed is torch.float32; expected torch.bool"):
        heads.best_spans(scores, scores, scores)
    with pytest.raises(ValueError, match="longest is 0; a span has at least 1 position"):
        heads.best_spans(scores, scores, scores > 0, longest=0)
    with pytest.raises(ValueError, match=r"expected \(batch, seq_len\)"):
        heads.best_spans(scores[0], scores[0], scores[0] == 0)
    allowed = torch.tensor([[True] * 5, [False] * 5])
    with pytest.raises(ValueError, match="in row 1 no position is allowed; allow the text's"):
        heads.best_spans(scores, scores, allowed)


def test_span_rows_mark_the_answer_and_marked_texts_read_it_back(tokenizer):
    questions = make_questions(4, seed=5)
    for q in questions:
        ids, types, is_start, is_end = heads.span_row(tokenizer, q)
        assert len(ids) == len(types) == len(is_start) == len(is_end) and sum(is_start) == sum(is_end) == 1
        text = tokenizer.tokenize(q.text)[1:]
        first, last = is_start.index(1) - types.index(1), is_end.index(1) - types.index(1)
        assert q.text[text[first].start : text[last].end] == q.text[slice(*q.answer)]

    class Knows(torch.nn.Module):                              # scores that are the right answer's
        def forward(self, ids, types):
            rows = {tuple(row[0]): row for row in (heads.span_row(tokenizer, q) for q in questions)}
            real = (ids != tokenizer.pad_id).sum(dim=1).tolist()
            found = [rows[tuple(row[:length])] for row, length in zip(ids.tolist(), real)]
            width = ids.shape[1]
            return tuple(torch.tensor([row[k] + [0] * (width - len(row[k])) for row in found]).float() for k in (2, 3))

    short = [q for q in questions if len(tokenizer.tokenize(q.text[slice(*q.answer)])) - 2 <= 8]
    assert heads.marked_texts(Knows(), tokenizer, short, size=3) == [q.text[slice(*q.answer)] for q in short]


def test_answers_are_compared_as_squad_does():
    assert heads.exact_match("the last scene", "The last scene.") == 1
    assert heads.exact_match("scene last", "last scene") == 0
    assert heads.overlap_f1("the last scene bored", "The last scene.") == pytest.approx(0.8)
    assert heads.overlap_f1("the music", "the last scene") == 0


def test_finders_without_a_network():
    people, films = {"Grace", "Ostwick"}, {("The", "Storm"), ("Red", "Road")}
    assert heads.f1(1, 1, 1) == 1
    assert by_list("I saw Red Road with Grace Ostwick".split(), people, films) == {(2, 4, "film"), (5, 7, "person")}
    assert by_capitals("Rain fell . We saw The Storm with Ostwick .".split()) == {(5, 7, "film"), (8, 9, "person")}
    made = piece_vocabulary(["Ostwick", "Ostwin", "ostwig", "Ostwil", *["rain"] * 9], at_least=9)
    assert {"ostw", "##ostw", "rain"} <= {*made} and "wick" not in made
