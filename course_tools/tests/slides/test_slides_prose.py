"""What a slide shows of a cell's prose: the rule, and the pointers."""

import pytest

from course_tools.slides.prose import parts, pointed, sentences, shown, unlinked

CELL = """## 2. A lookup

Attention is a kind of lookup. But `{"dull": -1.0}["drab"]` is an error, e.g. for a dictionary. Vectors can *nearly* match.
Here are the four words with three numbers each: their opinion, whether they negate, whether they contrast, and no more.

$$\\text{query} = x\\,W_q$$

| | not |
|---|---|
| score | 0 |

- The query is 4. It asks for the negator, and this sentence goes on for so long that the rule drops it from a slide.
- The key is 1.

**Try it first.** What is the score of 'dull'?
"""


def kinds(found):
    return [part.kind for part in found]


def test_a_cell_is_cut_into_its_parts():
    assert kinds(parts(CELL)) == ["heading", "paragraph", "formula", "table", "list", "question"]
    assert kinds(parts("> one\n>\n> two\n\n```\na\n\nb\n```\n\n<details>\nx\n</details>")) == ["quote", "code", "html"]


def test_sentences_end_where_they_end():
    text = "It is 0.5, i.e. half. Does $x. Y$ end? No: see [a. B](c.md). 'Yes.' `a. B` stays (as in p. 7). 1 or no. " \
        "'dull' is. Then"
    assert sentences(text) == ["It is 0.5, i.e. half.", "Does $x. Y$ end?", "No: see [a. B](c.md).", "'Yes.'",
                               "`a. B` stays (as in p. 7).", "1 or no.", "'dull' is.", "Then"]


def test_long_prose_gives_its_lead_and_all_that_is_no_prose():
    found = shown(CELL)
    assert kinds(found) == ["paragraph", "formula", "table", "list", "question"]
    assert found[0].text == "Attention is a kind of lookup."
    assert found[3].text == "- The query is 4.\n- The key is 1."
    assert found[4].text == "What is the score of 'dull'?"


def test_short_prose_stays_whole():
    assert shown("### Now\n\nOne sentence. And another.")[0].text == "One sentence. And another."


def test_a_pointer_chooses_sentences_and_stretches():
    found = shown(CELL, show=["Vectors can", "Here are … three numbers each", "The key"])
    assert kinds(found) == ["paragraph", "paragraph", "formula", "table", "list", "question"]
    assert [part.text for part in found[:2]] == ["Vectors can *nearly* match.",
                                                 "Here are the four words with three numbers each."]
    assert found[4].text == "- The key is 1."


def test_a_stretch_begins_with_a_capital_but_a_name_of_code_does_not():
    cell = "First, **zero_grad, backward.** One call, then the step."
    assert [part.text for part in pointed(["then the", "**zero_grad … One call"], cell)] == \
        ["Then the step.", "**zero_grad, backward.** One call."]


def test_a_sentence_that_runs_on_ends_in_a_colon_where_the_pointer_says_so():
    cell = "So the odds are\n\n$$x$$\n\nFour conditions hold:\n\n- one"
    assert [part.text for part in pointed(["the odds", "So the :", "Four :", "Four"], cell)] == \
        ["The odds are.", "So the odds are:", "Four conditions hold:", "Four conditions hold."]


def test_a_pointer_may_name_the_rest_of_the_section():
    assert pointed(["Elsewhere"], CELL, "Not here. Elsewhere it is.")[0].text == "Elsewhere it is."


@pytest.mark.parametrize("pointer, said", [("No such words", "matches no sentence"), ("The", "matches 2 places")])
def test_a_pointer_that_matches_nothing_or_too_much_is_named(pointer, said):
    with pytest.raises(ValueError, match=f"the pointer '{pointer}' {said}"):
        shown(CELL, show=[pointer])


def test_what_is_hidden_is_gone_and_must_have_been_there():
    assert kinds(shown(CELL, hide=("table", "$$"))) == ["paragraph", "list", "question"]
    with pytest.raises(ValueError, match="'hide' names 'quote'"):
        shown(CELL, hide=("quote",))


def test_links_into_the_course_become_words():
    assert unlinked("[04](04_attention.ipynb) and [a paper](https://doi.org/x)") == "04 and [a paper](https://doi.org/x)"
