"""The toy of token ranges, the sentiment axis and the learning curves: what is computed there is right, on small inputs."""

import itertools
import json
import random
import shutil
from collections import Counter

import pytest
import torch
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from course_tools.studies.runner import made_run
from course_tools.studies.sets import sentiment_axis as axis
from course_tools.studies.sets import token_range as toy
from course_utils.recipes import learning_curves as curves
from course_utils.results import add_run

GOOD, BAD, NEITHER = ["fine", "warm", "deft"], ["dull", "cold", "slow"], [f"word{i}" for i in range(20)]


def made_reviews(count: int, seed: int) -> Dataset:
    """Texts whose opinion words tell the label."""
    draw = random.Random(seed)
    labels = [i % 2 for i in range(count)]
    words = [[*draw.choices(NEITHER, k=12), *draw.choices(GOOD if label else BAD, k=3)] for label in labels]
    texts = [" ".join(draw.sample(chosen, len(chosen))) for chosen in words]
    names = ClassLabel(names=["negative", "positive"])
    return Dataset.from_dict({"text": texts, "label": labels}, features=Features({"text": Value("string"), "label": names}))


@pytest.fixture(scope="module")
def reviews() -> DatasetDict:
    """Three splits of made reviews."""
    return DatasetDict(train=made_reviews(200, 0), validation=made_reviews(60, 1), test=made_reviews(80, 2))


def upper(token: int) -> bool:
    """Whether a token is one of the upper half."""
    return token > toy.HALF


# The toy of token ranges.


def test_the_best_accuracy_is_that_of_the_likelier_label_over_all_sequences():
    for agrees, length in itertools.product([0.5, 0.65, 0.9, 1.0], [1, 2, 5, 6]):
        best = 0.0
        for halves in itertools.product([0, 1], repeat=length):            # every sequence of halves
            likelihoods = []
            for label in (0, 1):
                probability = 1.0
                for half in halves:
                    probability *= agrees if half == label else 1 - agrees
                likelihoods.append(probability)
            best += 0.5 * max(likelihoods)
        assert toy.majority_is_right(agrees, length) == pytest.approx(best, abs=1e-12)
    mean = (toy.majority_is_right(0.7, 2) + toy.majority_is_right(0.7, 3)) / 2
    assert toy.bayes_accuracy(0.7, [2, 3]) == pytest.approx(mean)


@pytest.mark.parametrize("rule", toy.RULES)
def test_a_split_is_balanced_reproducible_and_of_the_lengths_asked_for(rule):
    split = toy.draw_split(rule, 600, "test 0")
    assert Counter(split.labels) == {0: 300, 1: 300}
    assert {len(ids) for ids in split.ids} == set(toy.LENGTHS)
    assert all(1 <= i <= toy.MARKER for ids in split.ids for i in ids)
    assert split == toy.draw_split(rule, 600, "test 0")
    assert split != toy.draw_split(rule, 600, "test 1")
    assert split.ids != toy.draw_split(rule, 600, "train 0").ids


def test_each_rule_says_where_the_label_stands():
    for ids, label in zip(*toy.draw_split("one half", 300, 0)):
        assert all(upper(i) == label for i in ids)
    for ids, label in zip(*toy.draw_split("first token", 300, 0)):
        assert upper(ids[0]) == label
    for ids, label in zip(*toy.draw_split("after a marker", 300, 0)):
        assert ids.count(toy.MARKER) == 1 and upper(ids[ids.index(toy.MARKER) + 1]) == label
    noisy = toy.draw_split("noisy half", 2000, 0)
    agreeing = [upper(i) == label for ids, label in zip(*noisy) for i in ids]
    assert sum(agreeing) / len(agreeing) == pytest.approx(toy.AGREES, abs=0.015)    # 36,000 tokens: six standard errors


@pytest.mark.parametrize("rule", ["first token", "after a marker"])
def test_where_order_decides_which_tokens_there_are_says_nothing(rule):
    shares = {0: Counter(), 1: Counter()}
    split = toy.draw_split(rule, 6000, 3)
    for ids, label in zip(*split):
        shares[label][sum(upper(i) for i in ids if i != toy.MARKER) / len(ids) > 0.5] += 1
    assert abs(shares[0][True] - shares[1][True]) < 5 * (2 * 3000 * 0.25) ** 0.5
    if toy.RULES[rule].first == 0.5:                                          # nor does the first token alone
        assert sum(upper(ids[0]) == label for ids, label in zip(*split)) / 6000 == pytest.approx(0.5, abs=0.033)


@pytest.mark.parametrize("rule", [rule for rule in toy.RULES if toy.RULES[rule].train == 2000])
@pytest.mark.parametrize("network", toy.COUNTED)
def test_what_only_counts_reaches_what_is_possible_and_no_more(rule, network):
    result = made_run(toy.run, f"{rule}: {network}", 0, None)
    accuracy, possible = result["test"]["accuracy"], result["possible"]
    assert accuracy < possible + 0.04                                      # 4,000 sequences: five standard errors
    fitted = network != "majority vote"                                    # numbers fitted on 2,000 sequences cost a little
    assert accuracy > possible - (0.07 if fitted else 0.04)
    assert possible <= result["bayes"] <= 1


def test_the_networks_have_about_equal_parameters_and_learn_one_half(monkeypatch):
    sizes = [sum(p.numel() for p in make().parameters()) for make, _ in toy.NETWORKS.values()]
    assert max(sizes) < 1.05 * min(sizes)
    monkeypatch.setattr(toy, "SCORED", {"validation": 100, "test": 200})
    monkeypatch.setitem(toy.RULES, "one half", toy.RULES["one half"]._replace(train=400, epochs=4))
    for network in toy.NETWORKS:
        result = made_run(toy.run, f"one half: {network}", 0, None)
        assert result["sizes"] == {"train": 400, "validation": 100, "test": 200}
        assert result["test"]["accuracy"] > 0.9 and result["test"]["reviews"] == 200
        assert len(result["history"]) == 4 and result["parameters"] in sizes


# The sentiment axis.


def test_shares_of_the_variance_are_those_of_a_matrix_made_for_it():
    x = torch.tensor([[3.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]]) + torch.tensor([5.0, 0, 0])
    assert axis.share_along(x, torch.eye(3)).tolist() == pytest.approx([0.9, 0.1, 0.0])
    shares, directions = axis.principal(x, centre=True)
    assert shares[:2].tolist() == pytest.approx([0.9, 0.1], abs=1e-6) and abs(directions[0, 0]) == pytest.approx(1)
    assert axis.principal(x, centre=False)[0][0] > 0.95                    # now the mean counts as well
    assert axis.without(x, torch.tensor([[2.0, 0, 0]]))[:, 0].abs().max() < 1e-6


def test_a_new_reader_reads_only_the_directions_it_may():
    draw = torch.Generator().manual_seed(0)
    labels = [i % 2 for i in range(200)]
    x = torch.randn(200, 4, generator=draw)
    x[:, 2] += 6 * (torch.tensor(labels) - 0.5)
    x[:, 2] *= 0.2                                                         # smaller than the others, and yet to be read
    told = axis.read_anew(1e-4 * x, labels, 1e-4 * x)[0]                   # the size of all of them does not matter
    assert sum(a == b for a, b in zip(told, labels)) > 190
    rest = axis.the_rest_of(torch.tensor([[0.0, 0, 1, 0]]))
    assert rest.shape == (3, 4) and torch.allclose(rest @ rest.T, torch.eye(3), atol=1e-6) and rest[:, 2].abs().max() < 1e-6
    told, direction = axis.read_anew(x, labels, x, rest)
    assert sum(a == b for a, b in zip(told, labels)) < 130 and abs(direction[0, 2]) < 1e-6


def test_cutting_the_readout_direction_leaves_one_answer_and_keeping_it_alone_changes_none(reviews):
    case = axis.Case("made", 150, 2, 4, 0.02)
    result = axis.measure(reviews, case, seed=0)
    assert result["test"]["accuracy"] > 0.95 and result["data"] == {"train": 150, "validation": 60, "test": 80}
    assert result["cut"]["readout direction alone"] == result["test"]
    assert result["cut"]["readout direction deleted"]["accuracy"] == 0.5   # one label for all, and labels are balanced
    assert result["read_anew"]["all directions"]["accuracy"] > 0.95
    assert len(result["variance"]["components"]) == axis.DIMENSIONS
    assert sum(result["variance"]["components"]) == pytest.approx(1, abs=0.001)
    assert set(GOOD) <= set(result["most_positive"]) and set(BAD) <= set(result["most_negative"])
    assert set(result["rank_correlation"]) == {"other start", "other reviews"}
    json.dumps(result)


def test_a_bag_agrees_with_itself(reviews):
    bag = axis.trained(axis.draw(reviews, None, 0), axis.Case("made", None, 1, 1, 0.02), 0)
    assert axis.rank_correlation(bag, bag)["spearman"] == pytest.approx(1)


# The learning curves.


def test_curves_join_only_what_was_made_alike(tmp_path):
    sizes = {"train": 1000, "validation": 2500, "test": 5000}
    recipe = {"fit": {"epochs": 6}}
    few = {
        "model": "BiLSTM, 1,000 reviews", "order": 0, "seed": 0, "data": sizes, "recipe": recipe,
        "change": {"network": "BiLSTM", "reviews": 1000},
    }
    bag = {**few, "model": "bag of embeddings, 1,000 reviews", "change": {"network": "bag of embeddings"}, "order": 1}
    for run in (few, bag):
        add_run("learning_curves", run, tmp_path)
    full = {
        "model": "bag of embeddings", "order": 0, "seed": 0, "data": {**sizes, "train": 22500}, "recipe": recipe,
    }
    add_run("imdb", full, tmp_path)
    add_run("imdb", {**full, "model": "another model", "order": 1}, tmp_path)
    joined = curves.curves(tmp_path)
    sizes_of = {model: list(by_size) for model, by_size in joined.items()}
    assert sizes_of == {"BiLSTM": [1000], "bag of embeddings": [1000, 22500]}
    assert joined["bag of embeddings"][22500] == [full]
    add_run("imdb", {**full, "recipe": {"fit": {"epochs": 2}}}, tmp_path)
    assert 22500 not in curves.curves(tmp_path)["bag of embeddings"]
    shutil.rmtree(tmp_path)
    assert curves.curves(tmp_path) == {}
