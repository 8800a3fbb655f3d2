"""The result set on pretrained vectors: every row can be made, with a small random BERT, and planted knowledge is found."""

import re

import numpy as np
import pytest
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel

from course_tools.studies.sets import other_heads
from course_tools.studies.sets import pretrained_vectors as made
from course_utils.data.marked_reviews import make_named_reviews
from course_utils.data.meanings import load_pronouns, load_senses
from course_utils.other_heads import words_and_labels
from course_utils.pretrained_vectors import pair_shift
from course_utils.training.word_piece_files import SPECIAL

LAYERS, HEADS = 2, 4


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A small BERT that knows every word of the sentences as one piece."""
    texts = [one.text for one in load_senses()] + [text for pair in load_pronouns() for text in pair.texts]
    texts += made.FAMOUS
    words = sorted({word for text in texts for word in re.findall(r"[a-z]+|[^\sa-z]", text.lower())})
    vocabulary, folder = [*SPECIAL, *words], tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                         intermediate_size=24, max_position_embeddings=32)).save_pretrained(folder / "minilm")
    BertWordPieceTokenizer(vocab={word: i for i, word in enumerate(vocabulary)}).save(str(folder / "minilm/tokenizer.json"))
    patch = pytest.MonkeyPatch()
    patch.setattr(made, "NAME", str(folder / "minilm"))
    cached = (made.base, made.settings)
    for function in cached:
        function.cache_clear()
    yield made.base()
    patch.undo()
    for function in cached:
        function.cache_clear()


@pytest.fixture(scope="module")
def runs(encoder):
    return {model: made.run(model, 0, None) for model in (made.REAL, made.RANDOM, made.SHUFFLED)}


def test_cosines_of_the_bank_are_those_of_one_text_at_a_time(runs, encoder):
    model, tokenizer = encoder
    told = made.decoded(runs[made.REAL]["bank"]["cosines"], 5, 5)          # (layer + 1, text, text)
    vectors = []
    for text in made.BANK:
        pieces = [token.text for token in tokenizer.tokenize(text)]
        states = model(torch.tensor([tokenizer.encode(text)]), need_weights=True).hidden_states
        vectors.append(torch.stack(list(states))[:, 0, pieces.index("bank")])            # (layers + 1, d_model)
    for layer in range(LAYERS + 1):
        for i in range(5):
            for j in range(5):
                cosine = torch.cosine_similarity(vectors[i][layer], vectors[j][layer], dim=0).item()
                assert told[layer, i, j] == pytest.approx(cosine, abs=1e-3)
    assert told[0, 0, 1] == told[0, 0, 3] == 1 > told[0, 0, 2]             # the same word in the same position, or not


def test_controls_are_where_they_must_be_by_construction(runs):
    for run in runs.values():
        for word in run["senses"].values():
            assert word["static"] == {"ordinary": [0.5], "misleading": [0.5]}            # the same vector in every sentence
        assert np.abs(made.decoded(run["pronouns"]["vectors"]["it"], LAYERS + 1)[:, 0]).max() == 0  # nothing read


def test_shuffled_weights_are_the_same_numbers(encoder):
    real, shuffled = made.encoder_of(made.REAL, 0), made.encoder_of(made.SHUFFLED, 1)
    for one, other in zip(real.parameters(), shuffled.parameters()):
        assert torch.equal(one.flatten().sort().values, other.flatten().sort().values)
    assert not torch.equal(real.embedding.weight, shuffled.embedding.weight)
    assert made.weights_of(made.encoder_of(made.RANDOM, 1)) != made.weights_of(made.encoder_of(made.RANDOM, 2))
    assert made.weights_of(real) == made.weights_of(made.encoder_of(made.REAL, 5))


def test_words_whose_neighbours_are_alike_are_found_in_the_bag(encoder):
    """A vector that points to its sense is found, one that points to the other sense in the misleading sentences, too."""
    senses, odd = ["a"] * 4 + ["b"] * 4, [False, False, False, True] * 2
    knows = torch.tensor([[1.0, 0.1 * i] for i in range(4)] + [[0.1 * i, 1.0] for i in range(4)])
    fooled = knows[[0, 1, 2, 7, 4, 5, 6, 3]]
    scores = made.sense_scores(torch.stack([knows, fooled], dim=1), senses, odd)
    assert scores == {"ordinary": [1, 1], "misleading": [1, 0]}


def test_static_lean_sees_a_noun_that_resembles_its_adjective(encoder):
    net, tokenizer = encoder
    pairs, kept = load_pronouns()[:6], net.embedding.weight.detach().clone()
    pair = pairs[0]
    with torch.no_grad():
        for k in (0, 1):                                       # sofa and 'wide' point one way, elevator and 'narrow' another
            net.embedding.weight[[tokenizer.ids[pair.nouns[k]], tokenizer.ids[pair.adjectives[k]]]] = torch.eye(16)[k]
        found = pair_shift(made.static_lean(net, tokenizer, pairs))
        net.embedding.weight.copy_(kept)
    assert found[:2].tolist() == pytest.approx([1, 1])


def test_numbers_are_written_to_thousandths_and_read_again():
    values = np.array([[[0.1234, -0.5], [0, 1]], [[0.9999, 0.0004], [-0.0006, 2]]])
    rows = made.coded(values)
    assert rows[0] == "123 -500 0 1000" and np.abs(made.decoded(rows, 2, 2) - values).max() <= 0.0005


def test_names_and_words_are_counted_apart():
    reviews = [review for review in make_named_reviews(60) if review.both_ways]
    right = [words_and_labels(review)[1] for review in reviews]
    assert other_heads.both_ways(reviews, right) == {"names": 1, "words": 1}
    nothing = [["O"] * len(labels) for labels in right]
    assert other_heads.both_ways(reviews, nothing) == {"names": 0, "words": 1}
