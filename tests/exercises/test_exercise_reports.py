"""Reports of a check as JSON: what was computed elsewhere is judged as if it had been computed here; nothing is believed."""

import json
import math

import numpy as np
import pytest
import torch

from course_utils.exercises import compare, wire
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.compare import Unreadable, plain_data
from course_utils.exercises.judge import judge
from course_utils.exercises.running import Handed


def there_and_back(value):
    """What is left of an output when it has been sent as JSON."""
    return wire.decode(json.loads(json.dumps(wire.encode(plain_data(value)), allow_nan=False)))


@pytest.mark.parametrize("kind", wire.TYPES)
def test_tensors_of_every_type_come_back_bit_by_bit(kind):
    tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(wire.TYPES[kind])
    for sent in (tensor, tensor[:, :0], tensor[0, 0], tensor.T):
        back = there_and_back(sent)
        assert back.dtype == sent.dtype and back.shape == sent.shape and torch.equal(back, sent)


def test_numbers_that_json_does_not_know_and_every_collection_come_back():
    given = {"a": [1.5, -math.inf, True, None], "b": (torch.tensor([math.nan, math.inf]), "text"), "c": 2**60}
    back = there_and_back(given)
    assert back["a"] == given["a"] and back["c"] == 2**60 and isinstance(back["b"], tuple)
    assert math.isnan(back["b"][0][0]) and back["b"][0][1] == math.inf
    assert there_and_back(np.float16(0.5)) == 0.5 and there_and_back({3, 1, 2}) == [1, 2, 3]
    assert there_and_back(object()) == Unreadable("an object")


def test_what_is_too_large_or_too_deep_is_said_so_instead_of_sent(monkeypatch):
    monkeypatch.setattr(compare, "MOST", 10_000)
    nested: list = []
    for _ in range(1000):
        nested = [nested]
    for thing in (torch.zeros(1).expand(10**9), nested, "x" * 10**5, 10**400, [0] * 10**5):
        assert isinstance(plain_data(thing), Unreadable)


def good() -> dict:
    return json.loads(wire.report(find_exercise("4.2"), answers_to("4.2").reference, 0))


@pytest.mark.parametrize("change", [
    lambda found: found.pop("runs"), lambda found: found.update(runs=3), lambda found: found["handed"].update(kind="right"),
    lambda found: found["runs"].extend([None]),
    lambda found: found["runs"][0].update(output={"tensor": "float32", "shape": [2, 2], "bytes": "AAAA"}),
    lambda found: found["runs"][0].update(output={"tensor": "object", "shape": [1], "bytes": "AAAA"}),
    lambda found: found["runs"][0].update(output={"tensor": "float32", "shape": [-1], "bytes": ""}),
    lambda found: found["runs"][0].update(output={"tensor": "float32", "shape": [0, 10**30], "bytes": ""}),
    lambda found: found["runs"][0].update(output={"tensor": "float32", "shape": [1], "bytes": "!"}),
    lambda found: found["runs"][0].update(output={"pickle": "gASVBQAAAA=="}),
    lambda found: found["runs"][0].update(error=["ValueError"]),
    lambda found: found["runs"][0].update(changed=["x"]),
    lambda found: found["runs"][0].update(printed=7),
])
def test_a_report_that_is_none_is_refused(change):
    found = good()
    wire.read_report(json.dumps(found))
    change(found)
    with pytest.raises(ValueError, match="no report of a check"):
        wire.read_report(json.dumps(found))


@pytest.mark.parametrize("text", ["", "[", "null", "[]", "{}", "7", '"right"', "[" * 10**5, '{"runs": NaN}', "1" * 5000])
def test_a_text_that_is_no_report_is_refused(text):
    with pytest.raises(ValueError):
        wire.read_report(text)


@pytest.mark.parametrize("change", [str.encode, lambda text: None, lambda text: text + " " * wire.LONGEST],
                         ids=["bytes", "None", "too long"])
def test_a_report_is_a_text_of_a_limited_length(change):
    text = json.dumps(good())
    wire.read_report(text)
    with pytest.raises(ValueError, match="expected a report of at most"):
        wire.read_report(change(text))


def test_a_report_cannot_claim_to_be_right_or_to_have_answered_everything():
    exercise, answers = find_exercise("4.2"), answers_to("4.2")
    found = good()
    assert judge(exercise, answers, wire.read_report(json.dumps(found)), 0).state == "right"
    assert judge(exercise, answers, wire.read_report(json.dumps(found)), 1).state == "wrong"        # of another seed
    found["runs"] = found["runs"][:1]
    assert judge(exercise, answers, wire.read_report(json.dumps(found)), 0).state == "wrong"
    found["runs"] = []
    assert judge(exercise, answers, wire.read_report(json.dumps(found)), 0).state == "wrong"
    found["handed"]["kind"] = "nothing"
    assert judge(exercise, answers, wire.read_report(json.dumps(found)), 0).state == "wrong"


@pytest.mark.parametrize("handed", [Handed("value", "float", 0.25), Handed("stub", "NoneType"), Handed("function", "f")])
def test_what_was_handed_in_comes_back_as_it_was_sent(handed):
    assert wire.decode_handed(json.loads(json.dumps(wire.encode_handed(handed)))) == handed
