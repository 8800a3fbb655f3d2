"""Each measure of attention maps equals a slow loop and a case worked by hand; gates equal zeroed weights."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import proof, randomise
from torch import nn
from torch.nn import functional as F

from course_utils.attention_maps import (
    HeadGates,
    attention_distance,
    attention_entropy,
    head_importance,
    key_targets,
    offset_targets,
    role_scores,
    twin_order,
    uniform_attentions,
)
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.exercises.catalogue import answers_to
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.tokenization import pad_batch
from course_utils.training import Batch

# the head of notebook 10, section 1: four words, each row a few sixteenths, sixths or tenths
BY_HAND = torch.tensor([[3 / 16, 9 / 16, 3 / 16, 1 / 16], [1 / 2, 1 / 6, 1 / 6, 1 / 6],
                        [3 / 16, 1 / 16, 3 / 16, 9 / 16], [1 / 10, 3 / 10, 3 / 10, 3 / 10]])
FOUR = torch.ones(1, 4, dtype=torch.bool)
shapes = given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=4), layers=st.integers(1, 3),
               heads=st.integers(1, 3), width=st.integers(1, 3), seed=st.integers(0, 10**6))


def ragged(lengths, width) -> torch.Tensor:
    """(batch, seq_len) with these numbers of real tokens, and `width` columns more than the longest."""
    return torch.arange(max(lengths) + width) < torch.tensor(lengths)[:, None]


def random_attentions(layers, heads, mask, seed) -> list[torch.Tensor]:
    """What a model gives: every row a softmax over the real keys, rows of padding too; no key, zeros."""
    torch.manual_seed(seed)
    batch, seq_len = mask.shape
    scores = torch.randn(layers, batch, heads, seq_len, seq_len, dtype=torch.float64) * 2
    keys = mask[None, :, None, None, :]
    return list(scores.masked_fill(~keys, -1e9).softmax(dim=-1) * keys)


def model(num_layers=2, num_heads=2, dropout=0.1, seed=0) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    config = ClassifierConfig(vocab_size=20, d_model=12, num_heads=num_heads, d_ff=16, num_layers=num_layers, max_len=320,
                              positions="rotary", dropout=dropout)
    made = SelfAttentionClassifier(config).eval()
    randomise(made)
    return made


def some_batch(seed=0) -> Batch:
    torch.manual_seed(seed)
    ids = [torch.randint(2, 20, (length,)).tolist() for length in (3, 7, 5)]
    token_ids, mask = pad_batch(ids, 0, multiple_of=4)
    return Batch(token_ids, mask, torch.tensor([0, 1, 1]), [0, 1, 2])


# by hand

def test_the_numbers_worked_out_by_hand():
    one = [BY_HAND[None, None]]
    previous = role_scores(one, offset_targets(FOUR, -1))
    assert previous.mass.shape == (1, 1, 1) and previous.queries.tolist() == [3]
    assert previous.mass.item() == pytest.approx((1 / 2 + 1 / 16 + 3 / 10) / 3)
    assert previous.hits.item() == pytest.approx((1 + 0 + 1 / 3) / 3)          # 'moving' has three largest weights
    assert attention_distance(one, FOUR).item() == pytest.approx((9 / 8 + 1 + 1 + 6 / 5) / 4)
    row = BY_HAND[1].expand(4, 4)[None, None]
    assert attention_entropy([row], FOUR).item() == pytest.approx((math.log(2) / 2 + math.log(6) / 2) / math.log(4))


@pytest.mark.parametrize("n", [1, 2, 5, 300])
def test_the_uniform_control_looks_a_third_of_the_text_far(n):
    mask = torch.arange(n + 3)[None] < n
    uniform = uniform_attentions(mask)
    assert attention_distance(uniform, mask).item() == pytest.approx((n * n - 1) / (3 * n), rel=1e-5)
    assert uniform[0][0, 0, :n, :n].sum(dim=-1).allclose(torch.ones(n)) and uniform[0][0, 0, n:].abs().sum() == 0
    if n > 1:
        assert attention_entropy(uniform, mask).item() == pytest.approx(1, rel=1e-5)


# slow loops

@proof
@shapes
def test_role_scores_equal_a_loop(lengths, layers, heads, width, seed):
    mask = ragged(lengths, width)
    attentions = random_attentions(layers, heads, mask, seed)
    targets = (torch.rand(*mask.shape, mask.shape[1]) < 0.3) & mask[:, :, None] & mask[:, None, :]
    scores = role_scores(attentions, targets)
    for b in range(len(lengths)):
        queries = [q for q in range(mask.shape[1]) if targets[b, q].any()]
        assert scores.queries[b] == len(queries)
        for layer in range(layers):
            for head in range(heads):
                mass, hits = [], []
                for q in queries:
                    row = attentions[layer][b, head, q]
                    mass.append(sum(row[k].item() for k in range(mask.shape[1]) if targets[b, q, k]))
                    hits.append(float(targets[b, q, row.argmax()]))
                for score, values in ((scores.mass, mass), (scores.hits, hits)):
                    got = score[b, layer, head].item()
                    assert math.isnan(got) if not values else got == pytest.approx(sum(values) / len(values), abs=1e-6)


@proof
@shapes
def test_distance_and_entropy_equal_a_loop(lengths, layers, heads, width, seed):
    mask = ragged(lengths, width)
    attentions = random_attentions(layers, heads, mask, seed)
    distance, entropy = attention_distance(attentions, mask), attention_entropy(attentions, mask)
    assert distance.shape == entropy.shape == (len(lengths), layers, heads)
    for b, n in enumerate(lengths):
        for layer in range(layers):
            for head in range(heads):
                far, spread = [], []
                for q in range(n):
                    row = attentions[layer][b, head, q].tolist()
                    far.append(sum(w * abs(q - k) for k, w in enumerate(row)))
                    spread.append(-sum(w * math.log(w) for w in row if w > 0))
                got = distance[b, layer, head].item()
                assert math.isnan(got) if n == 0 else got == pytest.approx(sum(far) / n)
                got = entropy[b, layer, head].item()
                assert math.isnan(got) if n < 2 else got == pytest.approx(sum(spread) / n / math.log(n))


@proof
@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=3), offset=st.integers(-8, 8), seed=st.integers(0, 10**6))
def test_targets_equal_a_loop(lengths, offset, seed):
    torch.manual_seed(seed)
    mask = ragged(lengths, 2)
    flags = torch.rand(mask.shape) < 0.5
    by_offset, by_key = offset_targets(mask, offset), key_targets(flags, mask)
    for b, n in enumerate(lengths):
        for q in range(mask.shape[1]):
            for k in range(mask.shape[1]):
                assert by_offset[b, q, k] == (k - q == offset and q < n and 0 <= k < n)
                assert by_key[b, q, k] == (q < n and k < n and bool(flags[b, k]))


def test_cross_attention_has_roles_but_no_distance():
    weights = torch.tensor([[[[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]]]])              # (batch, heads, query 2, key 3)
    targets = torch.tensor([[[True, False, False], [False, False, True]]])
    scores = role_scores([weights], targets)
    assert scores.mass.item() == pytest.approx(0.6) and scores.hits.item() == pytest.approx(0.75)
    for measure in (attention_distance, attention_entropy):
        with pytest.raises(ValueError, match="2 queries and 3 keys"):
            measure([weights], torch.ones(1, 3, dtype=torch.bool))


@pytest.mark.parametrize(("attentions", "message"), [
    ([BY_HAND], "one \\(batch, heads, query, key\\) for each layer"),
    ([], "shapes \\[\\]"),
    ([BY_HAND[None, None], BY_HAND[None, None, :2, :2]], "all of one shape"),
    ([BY_HAND[None, None].log()], "after the softmax"),
    ([BY_HAND[None, None] * math.nan], "non-finite"),
    ([BY_HAND.T[None, None]], "transposed"),
])
def test_what_cannot_be_weights_is_refused(attentions, message):
    for measure in (lambda a: role_scores(a, offset_targets(FOUR, 1)), lambda a: attention_distance(a, FOUR),
                    lambda a: attention_entropy(a, FOUR)):
        with pytest.raises(ValueError, match=message):
            measure(attentions)


def test_targets_and_masks_of_another_shape_are_refused():
    one = [BY_HAND[None, None]]
    with pytest.raises(ValueError, match="\\(1, 4, 4\\)"):
        role_scores(one, torch.ones(4, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="torch.bool"):
        role_scores(one, torch.ones(1, 4, 4))
    with pytest.raises(ValueError, match="\\(1, 4\\)"):
        attention_distance(one, torch.ones(1, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="True for a real token"):
        offset_targets(torch.ones(1, 4), 1)


# twins

def test_each_word_finds_its_place_in_the_twin():
    tokens, twin = "the film was dull ; the book was moving".split(), "the book was dull ; the film was moving".split()
    order = twin_order(tokens, twin)
    assert [twin[place] for place in order] == tokens and sorted(order) == list(range(9))
    assert order == [0, 6, 2, 3, 4, 5, 1, 7, 8]                               # the first 'the' to the first 'the'
    weights = torch.rand(9, 9)
    turned = weights[order][:, order]
    assert turned[1, 3] == weights[twin.index("film"), twin.index("dull")]


@pytest.mark.parametrize("twin", [["not", "dull"], ["not", "not", "dull", "but"], ["not", "dull", "but", "dull"]])
def test_other_words_are_no_twins(twin):
    with pytest.raises(ValueError, match="not twins"):
        twin_order(["not", "dull", "but"], twin)


# gates

def test_a_gate_scales_the_context_of_its_own_head():
    torch.manual_seed(0)
    attention = MultiHeadAttention(6, 3)
    randomise(attention)
    x, gates = torch.randn(2, 5, 6), torch.tensor([[0.5, 2.0, 0.0]])
    query, key, value = attention.project(x, x, x)
    context = attention.attend(query, key, value).context                     # (batch, heads, query, d_head)
    for head in range(3):
        context[:, head] *= gates[0, head]
    expected = attention.output_projection(attention.merge(context))
    with HeadGates(attention, gates):
        for need_weights in (False, True):
            torch.testing.assert_close(attention(x, need_weights=need_weights).context, expected, atol=1e-5, rtol=1e-5)


def test_gates_leave_nothing_behind_even_after_an_error():
    made, batch = model(), some_batch()
    with torch.no_grad():
        before = made(batch.token_ids, batch.attention_mask).logits
        with pytest.raises(RuntimeError, match="on purpose"), HeadGates(made, torch.zeros(2, 2)):
            raise RuntimeError("on purpose")
        assert torch.equal(before, made(batch.token_ids, batch.attention_mask).logits)
        with HeadGates(made):
            assert torch.equal(before, made(batch.token_ids, batch.attention_mask).logits)
    assert not any(module._forward_pre_hooks for module in made.modules())


def test_gates_within_gates_multiply_and_may_differ_by_text():
    made, batch = model(), some_batch()
    first, second = torch.rand(2, 2), torch.rand(3, 2, 2)
    with torch.no_grad():
        with HeadGates(made, first), HeadGates(made, second):
            nested = made(batch.token_ids, batch.attention_mask).logits
        for i in range(3):
            with HeadGates(made, first * second[i]):
                alone = made(batch.token_ids[i : i + 1], batch.attention_mask[i : i + 1]).logits
            torch.testing.assert_close(nested[i : i + 1], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("broken", "gates", "message"), [
    (nn.Linear(2, 2), None, "no heads"),
    (model(num_layers=0), None, "no heads"),
    (nn.ModuleList([MultiHeadAttention(4, 2), MultiHeadAttention(4, 4)]), None, "\\[2, 4\\] heads"),
    (model(), torch.ones(4), "\\(2, 2\\), \\(layers, heads\\)"),
    (model(), torch.ones(2, 3), "\\(2, 2\\), \\(layers, heads\\)"),
])
def test_models_without_heads_and_gates_of_another_shape_are_refused(broken, gates, message):
    with pytest.raises(ValueError, match=message):
        HeadGates(broken, gates)


def test_gates_for_another_number_of_texts_are_refused():
    made, batch = model(), some_batch()
    with pytest.raises(ValueError, match="gates for 2 texts"), HeadGates(made, torch.ones(2, 2, 2)):
        made(batch.token_ids, batch.attention_mask)


def test_importance_equals_finite_differences_text_by_text():
    made, batch = model().double(), some_batch()
    importance = head_importance(made, [batch])
    step = 1e-5
    for layer in range(2):
        for head in range(2):
            slopes = []
            for i in range(3):
                losses = []
                for side in (1 + step, 1 - step):
                    gates = torch.ones(2, 2, dtype=torch.float64)
                    gates[layer, head] = side
                    with torch.no_grad(), HeadGates(made, gates):
                        logits = made(batch.token_ids[i : i + 1], batch.attention_mask[i : i + 1]).logits
                    losses.append(F.cross_entropy(logits, batch.labels[i : i + 1]).item())
                slopes.append(abs(losses[0] - losses[1]) / (2 * step))
            assert importance[layer, head].item() == pytest.approx(sum(slopes) / 3, rel=1e-4, abs=1e-7)


def test_importance_leaves_mode_and_gradients_as_they_were():
    made, batch = model(), some_batch()
    made.train()
    before = made.state_dict()
    first, second = head_importance(made, [batch]), head_importance(made, [batch])
    assert torch.equal(first, second)                                          # dropout was off
    assert made.training and all(parameter.grad is None for parameter in made.parameters())
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict().items())
    with torch.no_grad():
        assert torch.equal(head_importance(made, [batch]), first)
    with pytest.raises(ValueError, match="no batches"):
        head_importance(made, [])


# the notebook's cells beside the package

@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 10 define, with the course's answers for what the learner writes."""
    cells = cells_of("10_attention_maps")
    names = {"torch": torch, "math": math, "edited": answers_to("10.7").reference, "claim": lambda *_: None,
             "patched": answers_to("10.9").reference, "head_push": answers_to("10.6").reference, "weights": BY_HAND}
    for cell in ("tiny-loop", "export-roles", "inputs-of", "readings", "pushes"):
        exec(cells[cell], names)
    exec(cells["export-twins"].partition("\n\norder = ")[0], names)
    return names


@proof
@shapes
def test_the_notebooks_mass_and_distance_are_the_packages(taught, lengths, layers, heads, width, seed):
    for n in filter(None, lengths):
        real = torch.ones(1, n, dtype=torch.bool)
        attentions = random_attentions(layers, heads, real, seed)
        one = torch.cat(attentions)                                            # (layers, heads, query, key): one text
        torch.testing.assert_close(taught["distance_of"](one), attention_distance(attentions, real)[0])
        torch.manual_seed(seed)
        targets = torch.rand(n, n) < 0.4
        torch.testing.assert_close(taught["mass"](one, targets), role_scores(attentions, targets[None]).mass[0],
                                   equal_nan=True)
        assert torch.equal(taught["before"](n), offset_targets(real, -1)[0])


@given(st.permutations("the film was good the book was not".split()))
def test_the_notebooks_order_of_words_is_the_packages(taught, twin):
    words = "the film was good the book was not".split()
    assert taught["word_order"](words, twin) == twin_order(words, twin)


def test_the_learners_hook_is_a_gate_on_one_head(taught):
    made, batch = model(), some_batch()
    with torch.no_grad():
        for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
            gates = torch.ones(2, 2)
            gates[layer, head] = 0.3
            with HeadGates(made, gates):
                expected = made(batch.token_ids, batch.attention_mask).logits
            found = taught["edited"](made.encoder.blocks[layer].attention, head, lambda z: 0.3 * z,
                                     lambda: made(batch.token_ids, batch.attention_mask).logits)
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_the_pushes_of_all_parts_add_up_to_the_log_odds(taught):
    for seed in (0, 3):
        classifier = ReviewClassifier.load(f"reviews-seed-{seed}")
        for text in ("Not dull, but truly moving.", "The film was wearisome; the book was superb."):
            logits = classifier.model(*classifier.encode([text])).logits[0]
            parts = taught["pushes"](classifier, text)
            assert sum(parts.values()) == pytest.approx((logits[1] - logits[0]).item(), abs=1e-3)
