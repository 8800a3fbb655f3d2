"""Word pairs add what they should, where they should, and nothing where there are none."""

import itertools
import types

import numpy as np
import pytest
import torch

from course_tools.studies.sets import imdb_better as module
from course_tools.studies.word_pairs import WordPairClassifier, frequent_pairs
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.recipes import RECIPES
from course_utils.training import BatchOptions, EncodedReviews, evaluate, fit, seed_everything

SMALL = dict(vocab_size=10, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=16, dropout=0.0)
REVIEWS = [[2, 3, 4, 2, 3], [2, 3, 1, 4], [5, 4], [0, 4], []]


def test_pairs_are_counted_once_a_review_and_never_with_unknown_words_or_padding():
    assert frequent_pairs(REVIEWS, 10, min_reviews=2).tolist() == [23]      # 2 3 stands in two reviews, twice in one
    assert frequent_pairs(REVIEWS, 10, min_reviews=1).tolist() == [23, 34, 42, 54]
    assert frequent_pairs([np.array(ids) for ids in REVIEWS], 10, 1).tolist() == [23, 34, 42, 54]
    assert frequent_pairs([], 10).tolist() == []
    assert frequent_pairs([[2, 3, 2, 3]], 10, min_reviews=2).tolist() == []
    assert frequent_pairs([[99_998, 99_999]], 100_000, 1).tolist() == [9_999_899_999]  # more than 32 bits hold


def test_a_pair_stands_at_the_word_that_ends_it():
    net = WordPairClassifier(ClassifierConfig(**SMALL), torch.tensor([23, 34, 54]))
    ids = torch.tensor([[2, 3, 4, 2, 3], [9, 9, 5, 4, 0]])
    assert net.pair_ids(ids).tolist() == [[0, 1, 2, 0, 1], [0, 0, 0, 3, 0]]
    assert net.pair_ids(ids[:, :1]).tolist() == [[0], [0]]


@pytest.mark.parametrize("pairs", [[], [23, 34]])
def test_before_training_it_computes_what_the_lessons_classifier_does(pairs):
    seed_everything(0)
    plain = SelfAttentionClassifier(ClassifierConfig(**SMALL)).eval()
    paired = WordPairClassifier(plain.config, torch.tensor(pairs, dtype=torch.int64)).eval()
    missing = paired.load_state_dict(plain.state_dict(), strict=False).missing_keys
    assert missing == ["pairs", "pair_embedding.weight"]
    ids = torch.tensor([[2, 3, 4, 2, 3], [5, 4, 0, 0, 0]])
    torch.testing.assert_close(paired(ids).logits, plain(ids).logits)


def test_a_dropped_word_takes_its_pairs_along():
    net = WordPairClassifier(ClassifierConfig(**SMALL, word_dropout=1 - 1e-9, positions="none"), torch.tensor([23]))
    torch.nn.init.ones_(net.pair_embedding.weight)
    with torch.no_grad():
        net.pair_embedding.weight[0] = 0
        expected = net.embedding(torch.tensor(1)).expand(1, 2, 8)           # both words unknown, and no pair
        torch.testing.assert_close(net.train().embed(torch.tensor([[2, 3]])), expected)
        assert not torch.allclose(net.eval().embed(torch.tensor([[2, 3]]))[0, 1], expected[0, 1])


def test_a_vector_is_the_words_and_the_pairs_each_times_its_scale():
    config = ClassifierConfig(**{**SMALL, "dropout": 0.5}, positions="none", embedding_scale=3.0)
    net = WordPairClassifier(config, torch.tensor([23]), pair_scale=7.0).eval()
    with torch.no_grad():
        net.pair_embedding.weight[1].normal_()
    ids, word, pair = torch.tensor([[2, 3, 4]]), net.embedding.weight, net.pair_embedding.weight
    expected = torch.stack([3 * word[2], 3 * word[3] + 7 * pair[1], 3 * word[4]])[None]
    torch.testing.assert_close(net.embed(ids), expected)
    dropped = net.train().embed(ids)
    kept = dropped != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(dropped[kept], 2 * expected[kept])
    net.eval().embed(ids).sum().backward()
    assert pair.grad[1].tolist() == [7.0] * 8 and not pair.grad[0].any()    # "no pair" has no vector to learn


def opposite_orders(count: int) -> EncodedReviews:
    """Reviews of the same four words, told apart by which two of them are neighbours."""
    return EncodedReviews([[2, 3, 5, 4], [2, 4, 5, 3]] * count, [0, 1] * count)


def test_pairs_tell_what_a_model_without_order_cannot():
    train, options = opposite_orders(32), BatchOptions(batch_size=8, max_len=16)
    seed_everything(0)
    config = ClassifierConfig(**SMALL, positions="none")
    for net, accuracy in (
        (SelfAttentionClassifier(config), 0.5),
        (WordPairClassifier(config, frequent_pairs(train.ids, 10)), 1.0),
    ):
        fit(net, train, train, epochs=4, learning_rate=1e-2, options=options, progress=False)
        assert evaluate(net, train, options).accuracy == accuracy


def test_imdb_fast_is_a_classifier_of_ordinary_options():
    recipe = RECIPES["imdb-fast"]
    config = ClassifierConfig(vocab_size=recipe.max_size, **recipe.model)
    assert config.max_len == recipe.batches["max_len"] and config.num_layers == 1


@pytest.fixture
def imdb_better(monkeypatch, tmp_path):
    """The set of runs with a handful of reviews in the place of IMDb, and its files in a temporary folder."""
    from datasets import Dataset, DatasetDict

    texts = ["a good and funny film", "a bad and dull film"] * 40
    rows = {"text": texts, "label": [1, 0] * 40}
    splits = {split: Dataset.from_dict(rows) for split in ("train", "validation", "test")}
    splits["unsupervised"] = Dataset.from_dict({"text": texts[:10], "label": [-1] * 10})
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    monkeypatch.setattr(module, "reviews", lambda: DatasetDict(splits))
    cached = (module.settings, module.encoded)
    for function in cached:
        function.cache_clear()
    yield module
    for function in cached:
        function.cache_clear()


@pytest.mark.slow
def test_every_row_can_be_made_and_counts_the_cost_of_what_it_needs(imdb_better, tmp_path, monkeypatch):
    ticks = itertools.count()                                               # each look at a clock is a second later
    clock = types.SimpleNamespace(perf_counter=lambda: next(ticks), process_time=lambda: next(ticks))
    monkeypatch.setattr(imdb_better, "time", clock)
    runs = {}
    wanted = imdb_better.SET.wanted([0, 1, 2])
    for model, seed in [run for run in wanted if run[1] == 0]:
        runs[model] = imdb_better.run(model, seed)
        assert runs[model]["test"]["reviews"] == 80 and 0 <= runs[model]["validation_accuracy"] <= 1
    assert runs[imdb_better.TFIDF]["test"]["accuracy"] == 1.0
    for model, members in imdb_better.AVERAGES.items():
        seeds = [3 if row in imdb_better.ATTEMPTS else 1 for row in members]
        for cost in ("seconds", "cpu_seconds"):
            assert runs[model][cost] == sum(n * runs[row][cost] for n, row in zip(seeds, members)) > 0, model
    for model, attempt in imdb_better.ATTEMPTS.items():
        if attempt.teacher:
            for cost in ("seconds", "cpu_seconds"):                         # its own, and the teacher's
                assert runs[model][cost] >= runs[imdb_better.PAIRS][cost] + runs[attempt.teacher][cost], model
    made = len(list(tmp_path.rglob("*.npz")))
    again = imdb_better.run(imdb_better.PAIRS, 0)
    assert again == runs[imdb_better.PAIRS] and len(list(tmp_path.rglob("*.npz"))) == made, "it was made twice"


def test_an_average_is_the_mean_of_its_members(imdb_better):
    said = imdb_better.predictions(imdb_better.PAIRS_AVERAGED, 0).probabilities
    members = [imdb_better.predictions(imdb_better.PAIRS, seed).probabilities for seed in imdb_better.MEMBERS]
    for split in ("validation", "test"):
        np.testing.assert_allclose(said[split], np.mean([one[split] for one in members], axis=0), rtol=1e-6)


def test_a_teacher_of_kept_weights_says_what_its_members_say(imdb_better):
    labels = imdb_better.taught(imdb_better.PAIRS_AVERAGED, 0).probabilities["unsupervised"]
    said = imdb_better.predictions(imdb_better.PAIRS_AVERAGED, 0).probabilities["test"]
    np.testing.assert_allclose(labels, said[:10], rtol=1e-4)                # the same texts stand in both splits


def test_a_teacher_labels_only_what_has_no_label(imdb_better):
    labelled, unlabelled = EncodedReviews([[2], [3]], [0, 1]), EncodedReviews([[4]], [-1])
    joined = imdb_better.with_teacher(labelled, unlabelled, np.array([0.75]))
    assert joined.ids == [[2], [3], [4]]
    assert joined.labels == [[1.0, 0.0], [0.0, 1.0], [0.25, 0.75]]


def test_reviews_are_cut_as_batches_are(imdb_better):
    from course_utils.tokenization import pad_batch

    max_len = imdb_better.RECIPE.batches["max_len"]
    for length in (1, max_len, max_len + 1, 3 * max_len):
        ids = np.arange(length)
        rows, _ = pad_batch([ids.tolist()], 0, max_len, "head_tail")
        assert rows[0].tolist() == imdb_better.cut(ids).tolist()
