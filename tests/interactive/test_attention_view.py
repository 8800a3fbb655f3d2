"""The attention view: its data are the weights it was given, its words are true, and wrong input says what to do."""

import base64
import re

import numpy as np
import pytest
import small_classifiers
import torch

from course_utils.classifier import ReviewClassifier
from course_utils.interactive import Piece, attention_view
from course_utils.interactive.attention_data import pages, slack
from course_utils.interactive.coded import decode
from course_utils.tokenization import WordTokenizer

FOUR = ["not", "dull", "but", "moving"]
def weights(*shape, spread=2.0, seed=0):
    """Rows that sum to one."""
    return torch.softmax(spread * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def shown(view, side=0, kind=0):
    """{layer: (heads, query, key)} as the page decodes them."""
    given = view.data["sides"][side]["kinds"][kind]
    keys = len(given["keys"] or given["queries"])
    return {layer["number"]: decode(layer["weights"])[..., :keys] for layer in given["layers"]}


@pytest.fixture(scope="module")
def classifier():
    """A small random ReviewClassifier."""
    return small_review_classifier(0)


def small_review_classifier(seed):
    model = small_classifiers.make_model(seed=seed, vocab_size=6, num_layers=3)
    return ReviewClassifier(model, WordTokenizer(["<pad>", "<unk>", *FOUR]))


def test_a_classifier_shows_what_it_explains(classifier):
    view, told = attention_view(classifier, "not dull but moving"), classifier.explain("not dull but moving")
    assert view.data["sides"][0]["kinds"][0]["queries"] == FOUR
    for number, heads in shown(view).items():
        assert np.abs(heads - told.attentions[number].numpy()).max() <= 0.0005 + 1e-6
    pooled = decode(view.data["sides"][0]["pooling"])
    assert np.abs(pooled - told.weights.numpy()).max() <= 0.0005 + 1e-6
    assert view.data["sides"][0]["label"] == told.label
    assert f"Predicted: {told.label}, probability {told.probabilities[told.label]:.2f}." in view.alt
    best = int(told.weights.argmax())
    assert f"Pooling weights: largest '{FOUR[best]}' ({best}) {told.weights[best]:.3f};" in view.alt
    assert all(f">{weight:.2f}</text>" in view.still for weight in told.weights.tolist()) and ">pooling</text>" in view.still
    assert "3 layers of 2 heads" in view.alt.lower() and "Rows: not, dull, but, moving." in view.alt


@pytest.mark.parametrize(("given", "layers", "heads"), [
    (weights(4, 4), 1, 1), (weights(2, 3, 4, 4), 2, 3), (tuple(weights(2, 1, 3, 4, 4)), 2, 3),
    (weights(4, 4).tolist(), 1, 1),
])
def test_tensors_of_every_shape(given, layers, heads):
    view = attention_view(FOUR, given)
    assert list(shown(view)) == list(range(layers)) and all(len(part) == heads for part in shown(view).values())
    expected = np.stack([np.asarray(part) for part in given]) if isinstance(given, (list, tuple)) else np.asarray(given)
    assert np.allclose(np.concatenate(list(shown(view).values())).ravel(), expected.ravel(), atol=0.00051)


def test_layers_may_differ_in_heads_be_chosen_or_have_no_attention():
    given = [weights(2, 4, 4), None, weights(5, 4, 4)]
    assert {number: len(heads) for number, heads in shown(attention_view(FOUR, given)).items()} == {0: 2, 2: 5}
    assert list(shown(attention_view(FOUR, given, layers=[2]))) == [2]
    assert "2 layers of 2 or 5 heads" in attention_view(FOUR, given).alt
    with pytest.raises(ValueError, match=r"layers=\[1\]; expected some of \[0, 2\]"):
        attention_view(FOUR, given, layers=[1])


def test_padding_is_left_out():
    full = torch.zeros(2, 6, 6)
    full[:, :4, :4] = weights(2, 4, 4)
    mask = torch.tensor([True] * 4 + [False] * 2)
    view = attention_view([*FOUR, "<pad>", "<pad>"], full, attention_mask=mask, pooling=[0.1, 0.2, 0.3, 0.4, 0, 0])
    assert view.data["sides"][0]["kinds"][0]["queries"] == FOUR and shown(view)[0].shape == (2, 4, 4)
    assert decode(view.data["sides"][0]["pooling"]).round(3).tolist() == [0.1, 0.2, 0.3, 0.4]
    with pytest.raises(ValueError, match="to padding, which is left out here"):
        attention_view([*FOUR, "<pad>", "<pad>"], weights(2, 6, 6), attention_mask=mask)


def test_a_long_text_has_pages_and_a_rest_that_keeps_the_sum():
    """The rest that the page computes: the rounded weights it doesn't show, and what is coded beyond them."""
    length, given = 100, weights(2, 3, 100, 100, spread=0.3).double()
    view = attention_view([f"t{k}" for k in range(length)], given)
    kind = view.data["sides"][0]["kinds"][0]
    names = [page["name"] for page in kind["pages"]]
    assert names == ["first 20 and last 19", "0–38", "39–77", "78–99", "all"]
    full = decode(kind["layers"][1]["weights"])
    assert full.shape == (3, 100, 104)
    for k, page in enumerate(kind["pages"][:-1]):
        hidden = np.ones(length, dtype=bool)
        for start, end in page["ranges"]:
            hidden[start:end] = False
        rest = full[..., :length][..., hidden].sum(-1) + full[..., length + k] - 0.001 * slack(int(hidden.sum()))
        assert np.abs(rest - given[1].numpy()[..., hidden].sum(-1)).max() <= 0.0005 + 1e-6
    assert "'rest' adds up the" in view.alt


WORST = 0.0851 * np.ones(11)  # eleven weights that take two characters each


@pytest.mark.parametrize("kind", ["near uniform", "worst"])
def test_six_layers_of_twelve_heads_and_64_tokens_take_less_than_400_kb(kind):
    if kind == "worst":
        row = np.concatenate([WORST, np.tile([0.0023, 0.0004], 27)[:53]])
        row[11:] *= (1 - WORST.sum()) / row[11:].sum()
        given = np.broadcast_to(row, (6, 12, 64, 64))
    else:
        given = weights(6, 12, 64, 64, spread={"near uniform": 0.1, "sparse": 30, "random": 2}[kind]).numpy()
    view = attention_view(["extraordinarily"] * 64, given)
    assert len(view.html.encode()) < 400_000
    assert max(np.abs(part - given[k]).max() for k, part in shown(view).items()) <= 0.0005 + 1e-6


def test_the_still_picture_is_small_and_shows_the_picked_head():
    view = attention_view(FOUR, weights(2, 3, 4, 4), layer=1, head=2)
    assert isinstance(view, Piece) and base64.b64encode(view.still.encode()).decode() in view.html
    matrix = weights(2, 3, 4, 4)[1, 2]
    for value in matrix.flatten().tolist():
        assert f">{value:.2f}</text>" in view.still
    assert "layer 1, head 2" in view.still and "Layer 1, head 2:" in view.alt
    row, column = np.unravel_index(int(matrix.argmax()), (4, 4))
    assert f"Largest weights: '{FOUR[row]}' (query {row}) to '{FOUR[column]}' (key {column}) {matrix.max():.3f}" in view.alt
    assert view.data["start"] == {"layer": 1, "head": 2, "token": row}
    assert len(attention_view(["word"] * 300, weights(2, 300, 300)).still) < 10_000
    assert "mean of the heads" in attention_view(FOUR, weights(2, 3, 4, 4), head="mean").still


@pytest.mark.parametrize("given", [torch.eye(5), torch.eye(5).flip(0), torch.full((5, 5), 0.2)])
def test_the_still_picture_shades_the_cells_that_have_weight_and_no_others(given):
    shaded = torch.zeros(5, 5)
    for column, row, length in re.findall(r"M(\d+) (\d+)h(\d+)", attention_view(list("abcde"), given).still):
        shaded[int(row), int(column):int(column) + int(length)] += 1
    assert shaded.equal((given > 0).float())


def test_the_alternative_text_gives_the_row_of_a_picked_token():
    given = torch.tensor([[1.0, 0, 0, 0, 0], [0.25, 0.75, 0, 0, 0], [0.1, 0.2, 0.7, 0, 0],
                          [0.1, 0.55, 0.05, 0.3, 0], [0.02, 0.4, 0.05, 0.5, 0.03]])
    tokens = ["a", "b", "c", "b", "d"]
    last = attention_view(tokens, given, token=4)
    assert ("Layer 0, head 0: The picked row, 'd' (query 4), attends to 'b' (key 3) 0.500; 'b' (key 1) 0.400; 'c' (key 2) "
            "0.050; all other keys together 0.050. Heatmap of") in last.alt
    both = attention_view(tokens, given, token=4, compare=attention_view([*"bdbac"], given))
    assert "'d' (query 1), attends to 'd' (key 1) 0.750; 'b' (key 0) 0.250" in both.alt


def test_comparisons_share_one_scale(classifier):
    flat, sharp = torch.full((2, 4, 4), 0.25), weights(2, 4, 4, spread=9)
    both = attention_view(FOUR, flat, compare=attention_view(FOUR, sharp), names=("before", "after"))
    assert both.data["scale"] == 1.0 != attention_view(FOUR, flat).data["scale"]
    assert both.data["names"] == ["before", "after"] and "Before: " in both.alt and "After: " in both.alt
    assert np.allclose(shown(both, side=1)[0], sharp, atol=0.00051)
    other = small_review_classifier(1)
    text, twin = "not dull but moving", "not moving but dull"
    assert attention_view(classifier, text, compare=other).data["names"] == ["first model", "second model"]
    assert attention_view(classifier, text, compare=other).data["sides"][1] == attention_view(other, text).data["sides"][0]
    twins = attention_view(classifier, text, compare=twin)
    assert twins.data["sides"][1] == attention_view(classifier, twin).data["sides"][0]
    assert twins.data["match"] == [{"queries": [0, 3, 2, 1], "keys": [0, 3, 2, 1]}]


ROWS = weights(2, 4, 4)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: attention_view(), r"attention_view\(\); expected attention_view\(model, text\)"),
    (lambda: attention_view("not dull", ROWS), "split the text first"),
    (lambda: attention_view(FOUR[:3], ROWS), "tokens has 3 labels, but weights has 4 queries"),
    (lambda: attention_view(FOUR, ROWS[:, :2]), "give key_tokens="),
    (lambda: attention_view(FOUR, 2 * ROWS), r"\(layer 0, head 0\): row 0 \(query 'not'\) sums to 2"),
    (lambda: attention_view(FOUR, -ROWS), "never negative"),
    (lambda: attention_view(FOUR, ROWS / 0 * 0), "holds nan in row 0"),
    (lambda: attention_view(FOUR, weights(2, 2, 2, 4, 4)), r"expected \(layers, heads, query, key\)"),
    (lambda: attention_view(FOUR, [weights(2, 3, 4, 4)] * 2), r"take one text of the batch, \[layer\[0\] for layer"),
    (lambda: attention_view(["x"] * 2100, torch.eye(2100)), "4,410,000 numbers, too many"),
    (lambda: attention_view(FOUR, ROWS, pooling=[0.5, 0.5]), r"shape \(2,\); expected one weight for each token, \(4,\)"),
    (lambda: attention_view(FOUR, ROWS, target="x"), "target= is for an encoder-decoder"),
    (lambda: attention_view(FOUR, ROWS, layer=1), r"layer=1; expected one of \[0\]"),
    (lambda: attention_view(FOUR, ROWS, head=2), "head=2; expected a number from 0 to 1, or 'mean'"),
    (lambda: attention_view(FOUR, ROWS, vmax=0), "vmax=0; expected a number above 0"),
    (lambda: attention_view(FOUR, ROWS, compare=ROWS), r"compare= is of type Tensor; expected attention_view\(tokens"),
    ])
def test_wrong_arguments_say_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_arguments_for_a_classifier(classifier):
    for call, message in [
        (lambda: attention_view(classifier, ""), "has no tokens"),
        (lambda: attention_view(classifier.model, "not"), r"ReviewClassifier\(model, tokenizer\)"),
        (lambda: attention_view(classifier, "not", compare=3), "another text, another model"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_page_for_every_token():
    for length in (5, 40, 41, 80, 81, 300):
        found = pages(length, 40)
        assert bool(found) is (length > 40)
        if found:
            assert found[-1]["ranges"] == [[0, length]]
            assert all(len(range(*part)) <= 40 for page in found[:-1] for part in page["ranges"])
    middle = [k for page in pages(300, 40)[1:-1] for part in page["ranges"] for k in range(*part)]
    assert middle == list(range(300))
