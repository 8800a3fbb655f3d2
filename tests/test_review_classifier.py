"""Texts in, labels out: odd texts, every kind of list, explanations, saving and loading."""


import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from small_classifiers import MODELS, make_model

from course_utils.classifier import ReviewClassifier
from course_utils.tokenization import WordTokenizer

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
    "100,000 punctuation marks": "!" * 100_000,
    "100,000 unfinished tags": "<br " * 25_000,
}


def make_classifier(positions="sinusoidal", pooling="attention", **options) -> ReviewClassifier:
    tokenizer = WordTokenizer.train(TEXTS, min_freq=1)
    return ReviewClassifier(make_model(positions, pooling, vocab_size=tokenizer.vocab_size, **options), tokenizer)


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


@pytest.mark.parametrize("batch_size", [0, 2.0, True])
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

def test_a_model_a_vocabulary_and_labels_must_fit():
    classifier = make_classifier()
    with pytest.raises(ValueError, match=r"the model knows \d+ ids and the tokenizer 3"):
        ReviewClassifier(classifier.model, WordTokenizer(["<pad>", "<unk>", "a"]))
    with pytest.raises(ValueError, match="the model has 2 classes"):
        ReviewClassifier(classifier.model, classifier.tokenizer, ["bad", "middling", "good"])
    for names in ("no", ["same", "same"], ["one", None], {"bad": 0, "good": 1}, 2):
        with pytest.raises(ValueError, match="label_names.*(use a list|give each)"):
            ReviewClassifier(classifier.model, classifier.tokenizer, names)


@pytest.mark.parametrize(("ids", "mask"), [((3,), None), ((1, 3), (5, 3)), ((2, 3), (2, 1)), ((2, 3), (2, 1, 1, 3))])
def test_token_ids_and_mask_are_batches_of_one_shape(ids, mask):
    model = make_model(num_heads=2)
    with pytest.raises(ValueError, match=r"both must be \(batch, seq_len\).*write token_ids\[None\]"):
        model(torch.ones(ids, dtype=torch.long), None if mask is None else torch.ones(mask, dtype=torch.bool))
