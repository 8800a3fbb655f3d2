"""The model of 'Attention in an hour': the cell as it stands, completed, and with each mistake that people make."""

import ast
import json
import re

import pytest
import torch

from course_tools.studies.sets.hour import KNOWN
from course_utils.data import load_reviews
from course_utils.exercises import one_head
from course_utils.exercises.catalogue import answers_to
from course_utils.exercises.one_head import OneHeadReader, check_reader
from course_utils.files.paths import NOTEBOOKS
from course_utils.results import by_model, read_runs
from course_utils.tokenization import WordTokenizer
from course_utils.training import accuracy_by, encode_reviews

WRITTEN = json.loads((NOTEBOOKS / "attention_in_an_hour.ipynb").read_text(encoding="utf-8"))["cells"]
CELLS = {cell["id"]: "".join(cell["source"]) for cell in WRITTEN}
PRINTED = {cell["id"]: ["".join(output.get("text", "")) for output in cell.get("outputs", ())] for cell in WRITTEN}
BLANKS = {
    "query, key = ...": "query, key = turn(query, self.speeds), turn(key, self.speeds)",
    "scores = ...": "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])",
    "weights = ...": "weights = scores.softmax(dim=-1)",
    "x = ...": "x = x + weights @ value",
}
MISTAKES = [                                             # an edit of the right answer, and what the verdict speaks of
    ("turn(key, self.speeds)", "key", "keys aren't turned"),
    ("query, key = turn(query, self.speeds)", "query, key = query", "queries aren't turned"),
    ("query, key = turn(query, self.speeds), turn(key, self.speeds)", "pass", "neither queries nor keys"),
    ("turn(key, self.speeds)", "turn(key, self.speeds); value = turn(value, self.speeds)", "values are turned"),
    (" / math.sqrt(query.shape[-1])", "", "aren't divided"),
    (" / math.sqrt(query.shape[-1])", " / query.shape[-1]", "divided by d_k itself"),
    ("math.sqrt(query.shape[-1])", "math.sqrt(32)", "divided by √32"),
    ("weights = scores.softmax(dim=-1)", "weights = scores.softmax(dim=-2)", "wrong axis"),
    ("weights = scores.softmax(dim=-1)", "weights = scores.softmax(dim=0)", "over the batch"),
    ("weights = scores.softmax(dim=-1)", "weights = scores.exp()", "should sum to one"),
    ("weights = scores.softmax(dim=-1)", "weights = (2 * scores).softmax(dim=-1)", "first attention weight"),
    (".masked_fill(~mask[:, None, :], -math.inf)    # none", "  # none", "padding gets a weight"),
    ("weights = scores.softmax(dim=-1)", "weights = scaled_attention(query, key, value)[1]", "must use `scores`"),
    ("x = x + weights @ value", "x = x + scaled_attention(query, key, value)[0]", "takes something from padding"),
    ("x = x + weights @ value", "x = x + scaled_attention(query, key, value)", "returns two things"),
    ("weights = scores.softmax(dim=-1)", "weights = scaled_attention(query, key, value)", "returns two things"),
    ("x = x + weights @ value", "x = x + weights", "has the shape of x"),
    ("math.sqrt(query.shape[-1])", "math.sqrt(d_k)", "In forward, d_k is query.shape[-1]"),
    ("math.sqrt(query.shape[-1])", "math.sqrt(512)", "left over from section 3"),
    ("math.sqrt(query.shape[-1])", "math.sqrt(query.shape[-2])", "number of tokens"),
    ("turn(query, self.speeds), turn(key, self.speeds)", "turn(query, torch.tensor([1.0])), turn(key, torch.tensor([1.0]))",
     "left over from section 4"),
    ("turn(query, self.speeds), turn(key, self.speeds)", "turn(key, self.speeds), turn(query, self.speeds)",
     "have changed places"),
    ("turn(key, self.speeds)", "turn(query, self.speeds)", "the query is turned twice"),
    ("math.sqrt(query.shape[-1])", "math.sqrt(len(self.speeds))", "number of pairs"),
    ("query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])", "scaled_attention(query, key, value)[1]",
     "softmax runs twice"),
    ("x = x + weights @ value", "x = value + weights @ value", "added to the values"),
    ("x = x + weights @ value", "x = weights @ value", "own vector is lost"),
    ("x = x + weights @ value", "pass", "never reaches"),
    ("x = x + weights @ value", "x = x + weights @ x", "not the values"),
    ("x = x + weights @ value", "x = x + value", "its own value"),
    ("x = x + weights @ value", "x = x + weights.transpose(-2, -1) @ value", "transposed"),
    ("x = x + weights @ value", "x = x - weights @ value", "first logit"),
    ("key.transpose(-2, -1)", "key", "which .T can't"),
    ("turn(key, self.speeds)", "turn(key)", "missing 1 required positional argument: 'speeds'."),
    ("return self.output(review), weights, pooling", "return self.output(review)", "return logits, weights, pooling"),
    ("return self.output(review), weights, pooling", "return self.output(x), weights, pooling", "logits has the shape"),
    ("self.W_v = nn.Linear(d_model, d_model, bias=False)", "self.W_v = nn.Linear(d_model, d_model)", "can't be built"),
]


def learner(source: str, capsys) -> tuple[type, str, dict]:
    """What the cell leaves as `Reader`, what it prints, and all its names; `turn` is the notebook's."""
    names = {}
    exec("import math\nimport torch\nfrom torch import nn", names)
    names |= {"check_reader": check_reader, "scaled_attention": answers_to("4.2").reference}
    (turn,) = [node for node in ast.parse(CELLS["turn-code"]).body if getattr(node, "name", "") == "turn"]
    exec(ast.unparse(turn), names)
    exec(source, names)
    return names["Reader"], capsys.readouterr().out, names


def completed() -> str:
    source = CELLS["reader"]
    for blank, line in BLANKS.items():
        assert source.count(blank) == 1
        source = source.replace(blank, line)
    return source


def test_as_it_stands_it_says_that_blanks_are_left_and_the_course_goes_on(capsys):
    found, said, _ = learner(CELLS["reader"], capsys)
    assert found is OneHeadReader and said.startswith("○") and "blanks" in said


@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_left_is_no_mistake(blank, capsys):
    found, said, _ = learner(completed().replace(BLANKS[blank], blank), capsys)
    assert found is OneHeadReader and said.startswith("○") and "blanks" in said


def test_completed_it_is_the_learners_and_the_same_model_as_the_courses(capsys):
    found, said, _ = learner(completed(), capsys)
    assert found is not OneHeadReader and said.startswith("✓")
    torch.manual_seed(0)
    ours, theirs = OneHeadReader(50), found(50)
    theirs.load_state_dict(ours.state_dict())
    token_ids = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 3, 2, 0, 0, 0]])
    for one, other in zip(ours(token_ids, token_ids > 0), theirs(token_ids, token_ids > 0), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)
    torch.manual_seed(7)
    first = ours.__class__(50).state_dict()
    torch.manual_seed(7)
    second = found(50).state_dict()
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("right, wrong, words", MISTAKES, ids=[words for _, _, words in MISTAKES])
def test_a_mistake_is_named(right, wrong, words, capsys):
    source = completed()
    assert source.count(right) == 1
    found, said, _ = learner(source.replace(right, wrong), capsys)
    assert found is OneHeadReader and said.startswith("✗") and words in said


def test_two_mistakes_are_both_named(capsys):
    source = completed().replace(" / math.sqrt(query.shape[-1])", "").replace("turn(key, self.speeds)", "key")
    _, said, _ = learner(source, capsys)
    assert "keys aren't turned" in said and "aren't divided" in said


def test_a_second_run_of_the_check_says_whose_class_it_is(capsys):
    assert check_reader(OneHeadReader) is OneHeadReader
    assert "the course's, not yours" in capsys.readouterr().out


@torch.no_grad()
def test_without_the_turn_it_reads_a_bag_and_with_it_a_sequence():
    torch.manual_seed(0)
    model = OneHeadReader(50)
    token_ids = torch.tensor([[3, 4, 5, 6], [3, 6, 5, 4]])
    for vectors in model.parameters():
        torch.nn.init.normal_(vectors)
    first, twin = model(token_ids, token_ids > 0)[0]
    assert (first - twin).abs().max() > 1e-3
    model.speeds.zero_()
    first, twin = model(token_ids, token_ids > 0)[0]
    assert (first - twin).abs().max() < 1e-4


@torch.no_grad()
def test_padding_never_matters():
    torch.manual_seed(0)
    model = OneHeadReader(50)
    alone, padded = torch.tensor([[3, 4, 5]]), torch.tensor([[3, 4, 5, 0, 0]])
    torch.testing.assert_close(model(alone, alone > 0)[0], model(padded, padded > 0)[0], atol=1e-5, rtol=0)


def test_the_check_leaves_the_random_numbers_of_the_notebook_alone(capsys):
    torch.manual_seed(3)
    before = torch.rand(1)
    torch.manual_seed(3)
    one_head.check_reader(OneHeadReader)
    learner(completed(), capsys)
    assert torch.equal(before, torch.rand(1))


def test_strictly_a_wrong_class_is_an_error(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(AssertionError, match="keys aren't turned"):
        learner(completed().replace("turn(key, self.speeds)", "key"), capsys)


def test_the_text_quotes_the_runs_of_the_result_file_and_the_notebooks_own_is_the_first_of_them():
    runs = by_model(read_runs("hour"))["as in the notebook"]
    assert [run["seed"] for run in runs] == list(range(9))
    printed = "".join(PRINTED["fit"])
    assert [int(right) for right in re.findall(r"order (\d+) of 250", printed)] == runs[0]["validation_order"]

    def span(numbers) -> str:
        return f"{min(numbers)} to {max(numbers)}"

    assert f"from {span([run['without_head']['plain'] for run in runs])} of the 500" in CELLS["worth-after"]
    found = [round(100 * run["left_out"]["product_costly"] / run["left_out"]["costly"]) for run in runs]
    assert f"On our nine seeds it's {span(found)} %" in CELLS["occluded-after"]
    assert f"{found[0]} %" in CELLS["occluded-after"]
    right = [[(positive > 0.5) == bool(KNOWN[text]) for text, positive in run["known"].items()] for run in runs]
    pairs = [[sum(one[i:i + 2]) for one in right] for i in (0, 2, 4)]
    assert [pair.count(2) for pair in pairs] == [0, 6, 4] and pairs[0].count(0) == 4      # 'limits' says so in words
    changed = by_model(read_runs("hour"))["without the residual"]
    for rows in (runs, changed):
        assert span([run["right"]["negation"] for run in rows]) in CELLS["settings"]
    assert sum(run["sentences"]["heaviest"] == "first" for run in runs[1:]) == 6
    first, asked = runs[0]["order_patterns"], runs[0]["left_out"]
    assert f"{first['new']['right']} of these {first['new']['reviews']}" in CELLS["scores-after"]
    assert f"{first['known']['right']} of the other {first['known']['reviews']}" in CELLS["scores-after"]
    assert f"{asked['product_costly']} of {asked['costly']} reviews" in CELLS["occluded-after"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_on_five_seeds_it_learns_order_as_the_notebook_says(seed, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_TRAINING_SEED", str(seed))
    reviews = load_reviews("reviews")
    tokenizer = WordTokenizer.train(reviews["train"]["text"])
    names = {"reviews": reviews, "tokenizer": tokenizer, "Reader": OneHeadReader,
             "encoded": {split: encode_reviews(reviews[split], tokenizer) for split in reviews}}
    imports = [node for node in ast.parse(CELLS["setup"]).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec("\n".join(map(ast.unparse, imports)), names)
    exec(CELLS["fit"], names)
    predicted = names["predict_labels"](names["model"], names["encoded"]["test"])
    right = accuracy_by(reviews["test"]["kind"], predictions=predicted, labels=reviews["test"]["label"])
    assert 0.8 < right["order"] < 0.92 and right["plain"] > 0.93, right
