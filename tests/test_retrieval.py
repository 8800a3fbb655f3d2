"""Search in passages, the course's pages as passages, and the command that says where a question is answered."""

import json
import math

import pytest
import torch

from course_utils import asking
from course_utils.asking import course_index, course_passages, course_questions, judged, main
from course_utils.retrieval import BM25, combined, cut, grounded_prompt, mean_vectors, sections_of, words_of

LINES = ["dull dull dull dull", "dull but moving", "not dull but moving but not dull but not moving", "not moving"]


def cell(text: str, kind: str = "markdown") -> dict:
    return {"cell_type": kind, "source": text.splitlines(keepends=True)}


def test_bm25_is_its_formula_written_out():
    documents = [line.split() for line in LINES]
    mean = sum(map(len, documents)) / 4
    for query in (["dull", "moving"], ["not"], ["gripping"], []):
        expected = []
        for document in documents:
            score = 0.0
            for word in set(query):
                n, count = sum(word in other for other in documents), document.count(word)
                score += math.log(1 + (4 - n + 0.5) / (n + 0.5)) * count * 2.2 / (
                    count + 1.2 * (0.25 + 0.75 * len(document) / mean))
            expected.append(score)
        assert torch.allclose(BM25(documents).scores(query), torch.tensor(expected), atol=1e-5)
    assert BM25(documents).scores(["dull", "moving"]).argmax() == 1
    assert BM25(documents).share(["gripping"]) == BM25(documents).share([]) == 0


def test_passages_are_cut_at_headings_and_leave_out_exercises_and_folded_answers():
    cells = [cell("# 99 A title\n\nAn opening."), cell("## 1. One\n\nFirst words."), cell("x = 1", "code"),
             cell("### Exercise 99.1 Secret\n\nThe task."), cell("Still section one.\n\n<details>hidden</details>"),
             cell("## Check yourself\n\nOpen an option."), cell("## 2. Two\n\n" + "\n\n".join(["word " * 30] * 4))]
    found = cut("99_title", cells)
    assert [one.key for one in found] == ["99_title/Opening", "99_title/1", "99_title/1", "99_title/2", "99_title/2"]
    assert found[2].place == "99 A title, 1. One" and found[2].text == "Still section one."
    assert not any(word in one.text for one in found for word in ("task", "hidden", "option"))
    assert all(len(one.text.split()) <= 80 for one in found)


def test_words_lose_small_ones_and_endings():
    assert words_of("The weights are weighted.") == ["weight", "weight"] and words_of("what is it") == []
    assert words_of("What's a mask?") == words_of("What’s a mask?") == ["mask"], "an 's is no word"


def test_ranks_are_added_and_sections_named_once():
    assert combined(torch.tensor([9.0, 5.0, 1.0]), torch.tensor([0.1, 0.6, 0.3])).argmax() == 1
    passages = cut("a", [cell("# A\n\nfirst"), cell("second"), cell("## 1. B\n\nthird")])
    assert [one.text for one in sections_of(torch.tensor([1.0, 3.0, 2.0]), passages, 5)] == ["second", "third"]


def test_a_vector_does_not_depend_on_its_batch():
    from course_utils.pretraining import load_bert

    encoder, pieces = load_bert("encoder")
    texts = ["The film was dull.", "A pot of tea, and a very long sentence about it.", "Moving."]
    together, alone = mean_vectors(encoder, pieces, texts), [mean_vectors(encoder, pieces, [text])[0] for text in texts]
    assert torch.allclose(together, torch.stack(alone), atol=1e-5) and torch.allclose(together.norm(dim=1), torch.ones(3))


def test_the_prompt_has_whole_texts_and_the_question_last():
    prompt = grounded_prompt("Why?", ["one two", "three " * 9, "four"], room=5)
    assert "[1] one two" in prompt and "three" not in prompt and "four" not in prompt and prompt.endswith("Question: Why?")


def test_the_questions_are_a_hundred_and_their_sections_are_there():
    """A heading may change; nine of ten of the sections must still be found."""
    questions, there = course_questions(), {one.key for one in course_passages()}
    named = {key for one in questions for key in one["sections"]}
    assert len(questions) == 100 and sum(not one["sections"] for one in questions) == 16
    assert len({one["question"] for one in questions}) == 100
    assert all(bool(one["sections"]) == bool(one["accepted"]) for one in questions)
    assert len(named & there) > 0.9 * len(named)
    asked = {one["question"] for one in course_questions("for_settings")}
    assert asked.isdisjoint(one["question"] for one in questions)


@pytest.mark.parametrize("reply, accepted, verdict", [
    ("The variance would grow.", ["variance"], "right"), ("I don't know.", ["know"], "refused"), ("", ["a"], "refused"),
    ("Nothing like it.", ["no"], "right"), ("Bananas.", ["no"], "wrong"), ("The pages do not mention it.", [], "refused")])
def test_a_reply_is_judged_by_rule(reply, accepted, verdict):
    assert judged(reply, accepted) == ("refused" if verdict == "refused" else verdict)


def test_the_command_names_the_section_and_says_when_it_found_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COURSE_MODELS", "/nowhere")
    assert main(["What is a causal mask for, in attention?"]) == 0
    said = capsys.readouterr().out
    assert "04 Attention, 5." in said and "notebooks/04_attention.ipynb" in said
    assert main(["Who sells zebras in Uzbekistan?"]) == 1
    assert "found nothing good" in capsys.readouterr().out
    assert main(["--no-model", "What is a causal qwertymask in attention?"]) == 0
    assert "No page of the course has 'qwertymask'" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["what is it"])


def test_a_word_is_not_called_unknown_for_its_ending():
    index = BM25([words_of(text) for text in ("What you get is a wave.", "Its size and its class.")])
    assert asking.on_no_page("getting waves, sizes, classes", index) == []
    assert asking.on_no_page("getting zebras", index) == ["zebras"]


def test_the_command_lets_a_model_answer_and_says_that_it_may_be_wrong(capsys, monkeypatch):
    from course_utils.random_llama import random_llama

    model, tokenizer, *_ = random_llama()
    monkeypatch.setattr(asking, "chat_model_here", lambda: (model, tokenizer))
    assert main(["--places", "1", "What is a causal mask?"]) == 0
    said = capsys.readouterr().out
    assert "It may be wrong" in said and said.count("reading") >= 1
    assert main(["--places", "1", "What is a causal qwertymask in attention?"]) == 0
    assert "It may be wrong" not in capsys.readouterr().out, "where a word is on no page, no model is asked"


def test_a_damaged_notebook_is_left_out(tmp_path, monkeypatch):
    good = {"cells": [cell("# 01 Good\n\nabout masks")]}
    (tmp_path / "01_good.ipynb").write_text(json.dumps(good))
    (tmp_path / "02_bad.ipynb").write_text("{")
    monkeypatch.setattr(asking, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(asking, "extras", list)
    assert [one.notebook for one in course_passages()] == ["01_good"]
    assert course_index(course_passages()).scores(["mask"])[0] > 0
