"""The result set on maps of better and worse readers: its measures are notebook 11's, on texts of every corpus."""

import numpy as np
import pytest
import torch

from course_tools.studies.sets import reader_maps
from course_tools.studies.sets.explanations import Scored
from course_utils import explain
from course_utils.data import load_reviews
from course_utils.recipes.trained_models import trained_model
from course_utils.training import encode_reviews


@pytest.fixture
def few(monkeypatch):
    reader_maps.corpora.cache_clear()
    whole = reader_maps.corpora()
    small = {name: split.select(range(3)) for name, split in whole.items()}
    monkeypatch.setattr(reader_maps, "corpora", lambda: small)
    return whole, small


def test_the_measures_are_those_of_the_functions_of_notebook_11(few):
    split = few[1]["ordinary"]
    run, classifier = reader_maps.run("reviews", 0, None)["ordinary"], trained_model(0)
    labels = classifier.predict(split["text"])[0]
    right = [said == split.features["label"].names[label] for said, label in zip(labels, split["label"], strict=True)]
    assert run["accuracy"] == pytest.approx(np.mean(right), abs=1e-4)
    agreed, needed = [], []
    encoded = encode_reviews(split, classifier.tokenizer).ids
    for text, spans, ids in zip(split["text"], split["evidence"], encoded, strict=True):
        scores = explain.score_texts(classifier, [text], "occlusion")[0]
        agreed.append(explain.agreement(scores.scores, explain.evidence_flags(scores.tokens, spans)).average_precision)
        token_ids = torch.tensor([ids])
        needed.append(explain.comprehensiveness(classifier.model, token_ids, token_ids == token_ids,
                                                torch.as_tensor(scores.scores)[None]).item())
    assert run["occlusion"]["average_precision"][0] == pytest.approx(np.mean(agreed), abs=1e-3)
    assert run["occlusion"]["comprehensiveness"][0] == pytest.approx(np.mean(needed), abs=1e-3)
    read = [value for value, was_right in zip(needed, right, strict=True) if was_right]
    assert 0 < len(read) < len(needed) and abs(np.mean(read) - np.mean(needed)) > 5e-3, "choose texts that tell them apart"
    assert run["occlusion"]["comprehensiveness_right"][0] == pytest.approx(np.mean(read), abs=1e-3)


def test_texts_too_long_for_the_reader_are_cut_as_it_cuts_them():
    reader, texts = reader_maps.classifier_of("reader", 0), reader_maps.corpora()["handwritten"]
    lengths = [len(reader.tokenizer.tokenize(text)) for text in texts["text"]]
    longest = texts.select([int(np.argmax(lengths)), int(np.argmin(lengths))])
    train = load_reviews("reviews")["train"].select(range(50))
    scored = Scored(reader, longest, explain.count_words(train["text"], train["label"], reader.tokenizer))
    assert max(lengths) > 192 == len(scored.tokens[0]) and len(scored.tokens[1]) == min(lengths)
    assert scored.tokens[0][0].start == 0 and scored.tokens[0][-1].end == len(longest["text"][0])   # both ends are there
    said = {i: int(target) for batch, targets in zip(scored.batches, scored.targets, strict=True)
            for i, target in zip(batch.indices, targets, strict=True)}
    assert [longest.features["label"].names[said[i]] for i in range(2)] == reader.predict(longest["text"])[0]
