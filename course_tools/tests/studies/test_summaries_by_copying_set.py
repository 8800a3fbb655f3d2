"""The result set on copied summaries: one change between its rows, twins that differ in a name, the file that was made."""



from course_tools.studies.sets import summaries_by_copying as made
from course_utils.recipes import copied_summaries as shared


def some(rows, number):
    return {key: column[:number] for key, column in rows.items()}


def test_twins_differ_in_one_name_that_nobody_has_read():
    own, new = made.name_twins()
    everything = {word for split in made.corpus().values() for tokens in split["source_tokens"] for word in tokens}
    assert not everything & set(made.NEW_NAMES) and len(own["kind"]) == len(new["source_tokens"]) > 100
    for key in shared.BOTH:
        for before, after in zip(own[key], new[key], strict=True):
            changed = {(a, b) for a, b in zip(before, after, strict=True) if a != b}
            assert len(changed) == 1
            (a, b), = changed
            assert a in made.names() and a in made.words().ids and b in made.NEW_NAMES
    assert not {"I", "My", "The", "Friday", "In"} & made.names() and {"Kofi", "Thandiwe"} <= made.names()


def test_written_words_are_sorted_into_known_unknown_and_made_up():
    rows = {"source_tokens": [["the", "film", "was", "good"], ["Tove", "was", "right"]],
            "target_tokens": [["film", "was", "good"], ["Tove", "was", "right"]], "kind": ["plain", "distant"]}
    score = made.scored([["film", "was", "good"], ["<unk>", "was", "wrong", "right"]], rows)
    assert score["accuracy"] == 0.5 and score["unknown"] == score["made_up"] == round(1 / 7, 4)
    assert score["by_words"] == {"known": 1.0, "unknown": 0.0} and score["reviews_by_words"] == {"known": 1, "unknown": 1}
    assert score["by_kind"] == {"distant": 0.0, "plain": 1.0} and score["rouge_1"] == round((1 + 4 / 7) / 2, 4)


def test_an_even_spread_is_measured_as_even(monkeypatch):
    rows = some(made.corpus()["test"], 30)
    model = made.new_model(True, 0)
    for block in model.decoder.blocks:                                     # every score is 0
        block.cross_attention.query_projection.weight.data.zero_()
        block.cross_attention.query_projection.bias.data.zero_()
    found = made.attention_scores(model, rows)
    for value in [share for layer in found["written"] + found["read"] for share in layer]:
        assert abs(value - found["even"]) < 2e-4
