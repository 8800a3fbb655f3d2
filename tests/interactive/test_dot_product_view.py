"""A query and its keys in the plane: the numbers are the notebook's, and wrong arguments are refused."""

import xml.etree.ElementTree as ET

import pytest
import torch
from test_small_views import data_of

from course_utils.attention import scaled_dot_product_attention
from course_utils.interactive import dot_product_view, soft_lookup


def test_the_standard_keys_give_the_answer_of_notebook_04():
    """There, with the third number of each word, the soft lookup of 'drab' at sharpness 1 gives an opinion of −0.372."""
    data = data_of(dot_product_view())
    found = soft_lookup(data["query"], data["keys"], data["keys"])
    x = torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1], [1, 0, 0]])
    scores = x @ torch.tensor([-0.8, 0.1, 0.0])
    assert found.scores == pytest.approx(scores.tolist())
    assert found.weights == pytest.approx(scores.softmax(0).tolist(), abs=1e-6)
    assert found.answer[0] == pytest.approx(float(scores.softmax(0) @ x[:, 0]), abs=1e-6)
    assert f"{found.answer[0]:.3f}" == "-0.372" and "(-0.37, 0.23)" in dot_product_view().alt


def test_any_vectors_give_what_attention_gives():
    query, keys, values = (torch.randn(length, 2, dtype=torch.float64) for length in (1, 3, 3))
    found = soft_lookup((query[0] * 2**0.5).tolist(), keys.tolist(), values.tolist())
    whole = scaled_dot_product_attention(2 * query, keys, values)          # divides by the root of two
    assert found.weights == pytest.approx(whole.weights[0].tolist())
    assert found.answer == pytest.approx(whole.context[0].tolist())


def test_values_of_their_own_are_shown_and_the_plane_holds_every_arrow():
    keys, values = {"a": (1, 0), "b": (0, 1)}, {"a": (5, 5), "b": (-5, 5)}
    piece = dot_product_view((3, 4), keys, values=values, name="q", features=["x", "y"])
    data = data_of(piece)
    assert data["values"] == [[5, 5], [-5, 5]] and data["limit"] == 6 and data["features"] == ["x", "y"]
    answer = soft_lookup((3, 4), [(1, 0), (0, 1)], [(5, 5), (-5, 5)]).answer
    assert f"({answer[0]:.2f}, 5.00)" in piece.alt


def test_a_second_still_picture_shows_the_query_elsewhere():
    plain, piece = (dot_product_view((-1, 0), name="dull", **more) for more in ({}, {"still": (0, 1.5)}))
    assert piece.name == plain.name and piece.alt.startswith(plain.alt)
    assert "'not' (0, 1): dot product 1.50, weight 0.60" in piece.alt and ">0.60</text>" in piece.still
    assert piece.still.count("weighted mean: ") == 2 and ET.fromstring(piece.still).get("height") == "630"


@pytest.mark.parametrize(("given", "message"), [
    (dict(query=(1, 2, 3)), "expected two numbers from -9 to 9"), (dict(keys={"a": (1, 0)}), "1 keys; expected 2 to 6"),
    (dict(keys={"a": (1, 0), "b": (10, 0)}), "key 'b'"),
    (dict(keys={"a": (1, 0), "b": (0, 1)}, values={"b": (1, 0), "a": (0, 1)}), "same names in the same order"),
    (dict(goals=[("more than half", "nobody", 0.5)]), "a goal is about 'nobody'; expected one of not, dull, but, moving"),
    ])
def test_wrong_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        dot_product_view(**given)
