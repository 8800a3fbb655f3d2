"""The whole model and the texts-in, labels-out wrapper: padding, odd texts, saving, explanations."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from library_twins import proof
from torch.nn import functional as F

from course_utils.classifier import (
    POOLINGS,
    POSITIONS,
    AttentionPooling,
    ClassifierConfig,
    ReviewClassifier,
    SelfAttentionClassifier,
)
from course_utils.embeddings import masked_mean
from course_utils.tokenization import BPETokenizer, WordTokenizer, pad_batch

TEXTS = [
    "A moving film, and never a dull minute.",
    "Not moving but dull.",
    "The acting is wooden; the story, however, is a small wonder that grows on you. Go and see it twice!",
]
ODD_TEXTS = {
    "empty": "",
    "white space": " \n\t ",
    "markup only": "<br /><br />",
    "unknown words only": "zzyzx qwertz",
    "longer than the maximum": "a dull film " * 40,
    "NUL bytes": "a dull\x00 film\x00\x00",
    "emoji": "👍🏽 moving 🎬👨‍👩‍👧",
    "right to left": "סרט מרגש מאוד. فيلم ممل",
    "lone surrogate": "dull \ud800 film",
}
HUGE_TEXTS = {
    "100,000 characters of words": "dull film. " * 9091,
    "100,000 characters in one word": "x" * 100_000,
    "100,000 punctuation marks": "!" * 100_000,
    "100,000 unfinished tags": "<br " * 25_000,
}


def make_model(positions="sinusoidal", pooling="attention", seed=0, **options) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    settings = dict(vocab_size=20, d_model=16, num_heads=2, d_ff=24, num_layers=2, max_len=24) | options
    return SelfAttentionClassifier(ClassifierConfig(positions=positions, pooling=pooling, **settings)).eval()


def make_classifier(positions="sinusoidal", pooling="attention", **options) -> ReviewClassifier:
    tokenizer = WordTokenizer.train(TEXTS, min_freq=1)
    return ReviewClassifier(make_model(positions, pooling, vocab_size=tokenizer.vocab_size, **options), tokenizer)


MODELS = [(positions, pooling) for positions in POSITIONS for pooling in POOLINGS]
each_model = pytest.mark.parametrize(("positions", "pooling"), MODELS)


# padding

@each_model
def test_logits_alone_and_in_a_padded_batch_agree(positions, pooling):
    model = make_model(positions, pooling)

    @settings(proof, max_examples=6)
    @given(rows=st.lists(st.lists(st.integers(1, 19), min_size=1, max_size=16), min_size=2, max_size=4),
           extra=st.integers(0, 8))
    @torch.no_grad()
    def agree(rows, extra):
        alone = torch.cat([model(torch.tensor([row])).logits for row in rows])
        ids, mask = pad_batch(rows, 0, multiple_of=max(len(row) for row in rows) + extra)
        for given_mask, need_weights in ((mask, True), (mask, False), (None, False)):  # without a mask, id 0 is padding
            together = model(ids, given_mask, need_weights=need_weights).logits
            torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)

    agree()


@each_model
def test_what_stands_at_a_padded_place_does_not_matter(positions, pooling):
    model, mask = make_model(positions, pooling), torch.tensor([[True] * 4 + [False] * 3])
    one, other = torch.tensor([[3, 5, 7, 9, 0, 0, 0]]), torch.tensor([[3, 5, 7, 9, 11, 13, 15]])
    torch.testing.assert_close(model(one, mask).logits, model(other, mask).logits, atol=1e-5, rtol=0)
    assert (model(one, mask).logits - model(other).logits).abs().max() > 1e-4


@each_model
def test_a_review_without_a_token_gives_finite_logits_and_gradients(positions, pooling):
    model = make_model(positions, pooling).train()
    ids = torch.tensor([[3, 5, 7], [0, 0, 0]])
    for need_weights in (True, False):
        logits = model(ids, need_weights=need_weights).logits
        torch.testing.assert_close(logits[1], model.output.bias)
        F.cross_entropy(logits, torch.tensor([0, 1])).backward()
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@each_model
def test_the_model_runs_in_float64(positions, pooling):
    model, ids = make_model(positions, pooling), torch.tensor([[3, 5, 7, 0]])
    single = model(ids).logits
    for need_weights in (True, False):
        double = model.double()(ids, need_weights=need_weights).logits
        assert double.dtype == torch.float64
        torch.testing.assert_close(double.float(), single, atol=1e-5, rtol=0)


# pooling and weights

def test_pooling_weights_sum_to_one_and_are_zero_on_padding():
    torch.manual_seed(0)
    pooling, x = AttentionPooling(8), torch.randn(3, 5, 8)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False], [False] * 5])
    pooled, weights = pooling(x, mask)
    assert pooled.shape == (3, 8) and weights.shape == (3, 5)
    torch.testing.assert_close(weights.sum(-1), torch.tensor([1.0, 1.0, 0.0]))
    assert (weights[~mask] == 0).all() and (weights[mask] > 0).all()
    torch.testing.assert_close(pooled, (weights[:, :, None] * x).sum(1))
    scores = x[0] @ pooling.query[0] / 8**0.5
    torch.testing.assert_close(weights[0], scores.softmax(-1))


@each_model
def test_weights_come_only_when_asked_for(positions, pooling):
    model, ids = make_model(positions, pooling), torch.tensor([[3, 5, 7, 0]])
    plain, full = model(ids), model(ids, need_weights=True)
    assert plain.pooling_weights is None and plain.attentions is None
    assert [tuple(w.shape) for w in full.attentions] == [(1, 2, 4, 4)] * 2
    assert all((w[..., 3] == 0).all() for w in full.attentions)
    if pooling == "attention":
        assert full.pooling_weights.shape == (1, 4) and full.pooling_weights[0, 3] == 0
    else:
        assert full.pooling_weights is None
    torch.testing.assert_close(plain.logits, full.logits, atol=1e-6, rtol=0)


def test_mean_pooling_is_the_mean_of_the_real_tokens():
    model, ids = make_model("none", "mean", num_layers=0), torch.tensor([[3, 5, 0]])
    vectors = model.encoder.norm(model.embedding.weight[[3, 5]])
    torch.testing.assert_close(model(ids).logits[0], model.output(vectors.mean(0)))


# configuration

WRONG = {
    "vocab_size": [0, 1, -5, 2.5, "20", None, True, 10**12], "num_classes": [1, 0], "d_model": [0, -8, 16.0],
    "num_heads": [0, -2, None], "d_ff": [0], "num_layers": [-1, 20_000], "max_len": [0, 10**9],
    "dropout": [1, 1.5, -0.1, float("nan"), "0.1", None], "attention_dropout": [1.0], "word_dropout": [2],
    "pooled_dropout": [-1],
    "norm_first": [1, "yes"], "zero_init": [None], "embedding_std": [0, -1.0, float("inf")], "embedding_scale": [0, 10**400],
    "pad_id": [-1, 20], "unk_id": [1.0, 20],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_an_option_out_of_its_range_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^{name}=.*; use .*\w") as raised:
        ClassifierConfig(**{"vocab_size": 20, name: value})
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(("options", "message"), [
    (dict(d_model=16, num_heads=3), "d_model=16 is not divisible by num_heads=3; try 2 or 4"),
    (dict(d_model=15, num_heads=3), "d_model=15 is odd; .* use 16"),
    (dict(d_model=15, num_heads=3, positions="rotary"), "gives each head 5 numbers; .* even"),
])
def test_widths_that_do_not_fit_are_refused_before_a_model_is_built(options, message):
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(vocab_size=20, **options)


def test_unknown_options_are_named():
    with pytest.raises(ValueError, match="positions='sine'; use one of none, sinusoidal, learned, rotary, alibi"):
        ClassifierConfig(vocab_size=5, positions="sine")
    with pytest.raises(ValueError, match="pooling='max'; use one of attention, mean"):
        ClassifierConfig(vocab_size=5, pooling="max")
    with pytest.raises(TypeError, match="heads"):
        ClassifierConfig(vocab_size=5, heads=2)
    with pytest.raises(ValueError, match="d_model=16 is not divisible by num_heads=3; try .*[24]"):
        make_model(num_heads=3)


def test_every_option_reaches_the_model():
    model = make_model(
        num_layers=3, num_heads=4, d_ff=7, dropout=0.31, attention_dropout=0.32, pooled_dropout=0.33, norm_first=False,
        num_classes=5, max_len=9,
    )
    assert len(model.encoder.blocks) == 3 and model.output.out_features == 5 and len(model.positions.table) == 9
    for block in model.encoder.blocks:
        assert block.attention.num_heads == 4 and block.feed_forward.expand.out_features == 7
        assert block.dropout.p == block.feed_forward.dropout.p == 0.31
        assert block.attention.attention_dropout == 0.32 and not block.norm_first
    assert model.dropout.p == 0.31 and model.pooled_dropout.p == 0.33
    assert isinstance(model.encoder.norm, torch.nn.Identity)
    assert make_model("rotary", num_heads=4).positions.d_head == 4          # the columns of one head, not of the model


@pytest.mark.parametrize(("positions", "pooling"), MODELS)
def test_the_hidden_vectors_are_those_that_are_pooled(positions, pooling):
    model, (ids, mask) = make_model(positions, pooling), pad_batch([[3, 5, 7, 9], [11, 4]], 0)
    x = model.hidden(ids, mask)
    assert x.shape == (2, 4, 16)
    pooled = masked_mean(x, mask) if pooling == "mean" else model.pooling(x, mask)[0]
    assert torch.equal(model.output(pooled), model(ids, mask).logits)
    alone = model.hidden(ids[1:, :2], mask[1:, :2])
    torch.testing.assert_close(x[1:, :2], alone, atol=1e-5, rtol=0)        # padding moves no word's vector


@pytest.mark.parametrize(("positions", "pooling"), MODELS)
def test_nothing_stays_behind_when_a_model_moves_to_another_device(positions, pooling):
    model, ids = make_model(positions, pooling).to("meta"), torch.ones(2, 5, dtype=torch.long, device="meta")
    for need_weights in (False, True):
        result = model(ids, need_weights=need_weights)
        assert result.logits.device.type == "meta" and result.logits.shape == (2, 2)


def test_hidden_refuses_a_mask_of_another_shape():
    with pytest.raises(ValueError, match=r"token_ids have shape \(1, 3\), attention_mask \(1, 2\)"):
        make_model().hidden(torch.tensor([[3, 5, 7]]), torch.ones(1, 2, dtype=torch.bool))


def test_positions_differ_by_the_option():
    ids = torch.tensor([[3, 5, 7, 9, 11]])
    logits = [make_model(positions)(ids).logits for positions in POSITIONS]
    for i, one in enumerate(logits):
        assert all((one - other).abs().max() > 1e-5 for other in logits[:i])


def test_the_padding_row_of_the_embedding_is_zero():
    assert (make_model().embedding.weight[0] == 0).all()


def test_zero_init_starts_every_block_as_the_identity():
    model, x = make_model(zero_init=True, dropout=0.0), torch.randn(1, 4, 16)
    # the bias of the feed-forward layer's last map is what is left
    block = model.encoder.blocks[0]
    torch.testing.assert_close(block(x).x, x + block.feed_forward.contract.bias)
    assert (make_model().encoder.blocks[0](x).x - x).abs().max() > 0.1


@pytest.mark.parametrize("option", ["dropout", "attention_dropout", "word_dropout", "pooled_dropout"])
def test_each_dropout_is_off_in_evaluation_and_on_in_training(option):
    model = make_model(**({"dropout": 0.0} | {option: 0.5}))
    ids = torch.tensor([[3, 5, 7, 9, 11, 13]])
    assert torch.equal(model(ids).logits, model(ids).logits)
    model.train()
    assert len({tuple(model(ids).logits[0].tolist()) for _ in range(8)}) > 1


def test_dropout_acts_on_the_embeddings():
    model = make_model(dropout=1 - 1e-9).train()
    assert (model.embed(torch.tensor([[3, 5, 7]])) == 0).all()


def test_word_dropout_puts_the_unknown_word_in_place():
    model = make_model("none", dropout=0.0, word_dropout=1 - 1e-9).train()
    embedded = model.embed(torch.tensor([[3, 5, 7]]))
    torch.testing.assert_close(embedded, model.embedding.weight[1].expand(1, 3, 16))


def test_a_text_longer_than_the_positions_is_a_clear_error():
    with pytest.raises(ValueError, match="25 tokens.*max_len=24.*truncate"):
        make_model()(torch.ones(1, 25, dtype=torch.long))


# texts in, labels out

@pytest.mark.parametrize("name", [*ODD_TEXTS, *HUGE_TEXTS])
def test_an_odd_text_has_a_finite_answer(name):
    for positions, pooling in MODELS if name in ODD_TEXTS else MODELS[:1]:
        check_odd_text(make_classifier(positions, pooling), (ODD_TEXTS | HUGE_TEXTS)[name])


def check_odd_text(classifier, text):
    labels, probabilities = classifier.predict([text])
    assert labels[0] in ("negative", "positive")
    assert probabilities.isfinite().all() and abs(probabilities.sum().item() - 1) < 1e-5
    explanation = classifier.explain(text)
    n = len(explanation.tokens)
    assert n <= 24 and explanation.weights.shape == (n,) and explanation.attentions.shape == (2, 2, n, n)
    assert explanation.attentions.isfinite().all()
    if n:
        assert explanation.weights.sum().item() == pytest.approx(1, abs=1e-5)
    assert explanation.label == labels[0]
    assert list(explanation.probabilities.values()) == pytest.approx(probabilities[0].tolist(), abs=1e-5)


def test_odd_texts_beside_others_change_nothing():
    classifier, every = make_classifier(), [*ODD_TEXTS.values(), *TEXTS]
    _, together = classifier.predict(every)
    for text, row in zip(every, together):
        torch.testing.assert_close(classifier.predict([text])[1][0], row, atol=1e-5, rtol=0)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_answers_come_in_the_order_of_the_texts(batch_size):
    classifier, every = make_classifier(), [TEXTS[2], TEXTS[1], "", TEXTS[0], TEXTS[1]]
    labels, probabilities = classifier.predict(every, batch_size=batch_size)
    assert len(labels) == 5 and probabilities.shape == (5, 2)
    for text, label, row in zip(every, labels, probabilities):
        alone, alone_row = classifier.predict([text])
        assert alone == [label]
        torch.testing.assert_close(alone_row[0], row, atol=1e-5, rtol=0)
    assert (probabilities[0] - probabilities[3]).abs().max() > 1e-3


def test_no_texts_give_no_answers():
    labels, probabilities = make_classifier().predict([])
    assert labels == [] and probabilities.shape == (0, 2)


@pytest.mark.parametrize("several", [
    tuple(TEXTS), pd.Series(TEXTS, index=[7, 7, 9]), np.array(TEXTS), np.array(TEXTS, dtype=object), iter(TEXTS),
    Dataset.from_dict({"text": TEXTS})["text"], pd.Series(TEXTS, dtype="string"), dict.fromkeys(TEXTS).keys(),
], ids=["tuple", "Series", "array", "array of objects", "iterator", "column of a dataset", "Series of strings", "keys"])
def test_every_kind_of_list_of_texts_gives_the_same(several):
    classifier = make_classifier()
    (labels, probabilities), (expected_labels, expected) = classifier.predict(several), classifier.predict(TEXTS)
    assert labels == expected_labels and probabilities.equal(expected)


@pytest.mark.parametrize(("table", "column"), [
    (pd.DataFrame({"label": [0] * 3, "text": TEXTS}), "text"), (pd.DataFrame({"label": [0] * 3, "review": TEXTS}), "label"),
    (pd.DataFrame(), "text"), (Dataset.from_dict({"label": [0] * 3, "text": TEXTS}), "text"),
])
def test_a_table_is_refused_and_the_message_says_which_column_to_take(table, column):
    kind = type(table).__name__
    with pytest.raises(TypeError, match=rf"list of texts and got a {kind}; choose the column.*table\['{column}'\]"):
        make_classifier().predict(table)


@pytest.mark.parametrize("wrong", [{"text": TEXTS[0]}, set(TEXTS), None, 3, b"bytes", pd.Series(["a", None])],
                         ids=["dict", "set", "None", "number", "bytes", "Series with a gap"])
def test_what_is_no_list_of_texts_is_refused(wrong):
    with pytest.raises(TypeError, match=r"expected a list of texts.*write \["):
        make_classifier().predict(wrong)


@pytest.mark.parametrize("batch_size", [0, -1, -64, 2.0, "2", None, True, float("nan")])
def test_a_batch_size_that_is_none_is_refused(batch_size):
    with pytest.raises(ValueError, match=rf"batch_size={batch_size!r}; use a whole number from 1"):
        make_classifier().predict(TEXTS, batch_size=batch_size)
    with pytest.raises(ValueError, match="batch_size"):
        make_classifier().predict([], batch_size=batch_size)


def test_a_model_left_in_training_mode_predicts_and_explains_the_same():
    classifier = make_classifier(dropout=0.5, word_dropout=0.5, pooled_dropout=0.5, attention_dropout=0.5)
    expected, explained = classifier.predict(TEXTS)[1], classifier.explain(TEXTS[0])
    classifier.model.train()
    assert classifier.predict(TEXTS)[1].equal(expected)
    classifier.model.train()
    again = classifier.explain(TEXTS[0])
    assert again.weights.equal(explained.weights) and again.probabilities == explained.probabilities


def test_predicting_draws_no_random_number():
    classifier = make_classifier(dropout=0.5)
    before = torch.get_rng_state()
    classifier.predict(TEXTS)
    classifier.explain(TEXTS[0])
    assert torch.get_rng_state().equal(before)


def test_something_else_than_texts_is_a_clear_error():
    classifier = make_classifier()
    for wrong in ("one text", ["a text", None], [float("nan")], [["a", "b"]]):
        with pytest.raises(TypeError, match=r"list of texts.*\[text\]"):
            classifier.predict(wrong)
    with pytest.raises(TypeError, match=r"list of texts.*\[text\]"):
        classifier.encode("one text")
    for wrong in (None, ["a text"]):
        with pytest.raises(TypeError, match="one text, a string"):
            classifier.explain(wrong)


def test_predicting_leaves_no_gradients_and_is_repeatable():
    classifier = make_classifier(dropout=0.5)
    one, other = (classifier.predict(TEXTS)[1] for _ in range(2))
    assert torch.equal(one, other) and not one.requires_grad
    assert not classifier.model.training


def test_a_long_text_keeps_its_first_quarter_and_last_three_quarters():
    classifier = make_classifier(max_len=8)
    text = "A moving film dull wooden acting story small wonder minute never"
    explanation = classifier.explain(text)
    tokens = classifier.tokenizer.tokenize(text)
    assert explanation.tokens == tokens[:2] + tokens[-6:]
    ids, mask = classifier.encode([text])
    assert classifier.tokenizer.decode(ids[0].tolist()).split() == [t.text for t in explanation.tokens]
    assert mask.all()
    assert all(text[t.start : t.end].lower() == t.text for t in explanation.tokens)


def test_an_explanation_holds_what_the_model_computed():
    classifier = make_classifier()
    result = classifier.model(*classifier.encode([TEXTS[0]]), need_weights=True)
    explanation = classifier.explain(TEXTS[0])
    torch.testing.assert_close(explanation.weights, result.pooling_weights[0])
    for layer, weights in zip(explanation.attentions, result.attentions):
        torch.testing.assert_close(layer, weights[0])
    assert explanation.label == max(explanation.probabilities, key=explanation.probabilities.get)
    mean = make_classifier(pooling="mean").explain(TEXTS[1])
    torch.testing.assert_close(mean.weights, torch.full((5,), 0.2))


# saving and loading

@each_model
def test_a_saved_classifier_gives_the_same_probabilities(positions, pooling, tmp_path):
    classifier = make_classifier(positions, pooling, norm_first=False, max_len=17)
    classifier.save(tmp_path / "new" / "folder")
    loaded = ReviewClassifier.load(tmp_path / "new" / "folder")
    assert loaded.model.config == classifier.model.config and loaded.label_names == classifier.label_names
    (labels, probabilities), (loaded_labels, loaded_probabilities) = (c.predict(TEXTS) for c in (classifier, loaded))
    assert labels == loaded_labels and torch.equal(probabilities, loaded_probabilities)


def test_nothing_saved_is_a_pickle(tmp_path):
    make_classifier().save(tmp_path)
    files = {path.name.partition("-")[0]: path.read_bytes() for path in tmp_path.iterdir() if path.name[0] != "."}
    assert sorted(files) == ["config", "model.json", "vocabulary", "weights"]
    for name in ("config", "model.json", "vocabulary"):
        json.loads(files[name])
    header_length = int.from_bytes(files["weights"][:8], "little")
    assert "embedding.weight" in json.loads(files["weights"][8 : 8 + header_length])


def test_a_model_a_vocabulary_and_labels_must_fit():
    classifier = make_classifier()
    with pytest.raises(ValueError, match=r"the model knows \d+ ids and the tokenizer 3"):
        ReviewClassifier(classifier.model, WordTokenizer(["<pad>", "<unk>", "a"]))
    with pytest.raises(ValueError, match="the model has 2 classes"):
        ReviewClassifier(classifier.model, classifier.tokenizer, ["bad", "middling", "good"])
    for names in ("no", ["same", "same"], ["one", None], {"bad": 0, "good": 1}, 2):
        with pytest.raises(ValueError, match="label_names.*(use a list|give each)"):
            ReviewClassifier(classifier.model, classifier.tokenizer, names)


def test_label_names_are_in_the_order_of_the_logits():
    classifier = make_classifier()
    with torch.no_grad():
        classifier.model.output.weight.zero_()
        classifier.model.output.bias.copy_(torch.tensor([0.0, 1.0]))
    labels, probabilities = classifier.predict(["dull"])
    assert labels == ["positive"]
    torch.testing.assert_close(probabilities[0], torch.tensor([0.0, 1.0]).softmax(0))
    assert classifier.explain("dull").probabilities["positive"] == pytest.approx(probabilities[0, 1].item())


@pytest.mark.parametrize("positions", ["rotary", "sinusoidal", "none"])
@pytest.mark.parametrize(("ids", "mask"), [((3,), None), ((1, 2, 3), None), ((1, 3), (5, 3)), ((2, 3), (2, 1)),
                                           ((2, 3), (3,)), ((3, 3), (1, 3)), ((2, 3), (2, 1, 1, 3))])
def test_token_ids_and_mask_are_batches_of_one_shape(ids, mask, positions):
    model = make_model(positions, num_heads=2)
    with pytest.raises(ValueError, match=r"both must be \(batch, seq_len\).*write token_ids\[None\]"):
        model(torch.ones(ids, dtype=torch.long), None if mask is None else torch.ones(mask, dtype=torch.bool))


def test_a_classifier_of_byte_pairs_is_saved_loaded_and_explained_like_one_of_words(tmp_path):
    tokenizer = BPETokenizer.train(TEXTS, 300)
    classifier = ReviewClassifier(make_model(vocab_size=300), tokenizer)
    classifier.save(tmp_path)
    loaded = ReviewClassifier.load(tmp_path)
    texts = [*TEXTS, *ODD_TEXTS.values()]
    (labels, probabilities), again = classifier.predict(texts), loaded.predict(texts)
    assert type(loaded.tokenizer) is BPETokenizer and again[0] == labels and torch.equal(again[1], probabilities)
    text = "Not dull, naïve."
    before, after = classifier.explain(text), loaded.explain(text)
    assert before.tokens == after.tokens and torch.equal(before.weights, after.weights)
    assert "".join(text[token.start : token.end] for token in before.tokens).replace("ïï", "ï") == text
