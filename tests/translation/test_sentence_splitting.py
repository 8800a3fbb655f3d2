"""Texts are cut into sentences by a plain rule, translated one by one, and put together again as they were."""

import re
from types import SimpleNamespace

import pytest

from course_utils.translation.sentences import split_sentences, translate_texts


@pytest.mark.parametrize("sentences", [
    ["The film was too long.", "The box was empty."], ["Who came?", "Nobody!", "The end."], ["No.", "No!?", "Yes …", "So?"],
    ["Dr. Lee and Mrs. O'Hara met Mr. T. at St. Pancras.", "They left."], ["J. R. R. Tolkien wrote it.", "I read it."],
    ["So did I.", "He left."], ["The U.S. Army came.", "It stayed."], ["It cost 3.50 pounds.", "That's cheap."],
    ['"Why?" she asked.', '"Because!"', "'Tis so.", "“Well.”", "Good."], ["He left (at last.)", "(Nobody cried.)", "Then?"],
    ["Il est parti.", "À demain !", "Était-ce vrai ?", "« Oui. »"], ["a. b. c"], ["It was 5. 3 came."], ["?"], ["No end"],
    ["He saw Dr.\tNo twice."],
])
def test_a_text_is_cut_where_its_sentences_end(sentences):
    for between in (" ", "  ", "\n", "\u00a0\t"):
        assert split_sentences(f" {between.join(sentences)}{between}") == sentences
    assert split_sentences(" \n ") == []


class Made:
    """A translator that writes capitals for words; `given` is what it was given. With word lists, it can look back."""

    def __init__(self, looks_back: bool, max_len: int = 40, change=str.upper):
        self.model, self.change, self.given = SimpleNamespace(config=SimpleNamespace(max_len=max_len)), change, []
        if looks_back:
            self.source_words = SimpleNamespace(ids={})

    def translate(self, texts, beam):
        assert beam == 3 and all(text.strip() for text in texts) and len(set(texts)) == len(texts)
        self.given += texts
        return [self.change(text) for text in texts]


@pytest.mark.parametrize("looks_back", [False, True])
def test_every_sentence_is_translated_and_lines_stay_lines(looks_back):
    texts = ["A man ran. A dog ran. A cat sat.", "One.\n\n  Two. Three.\nFour", "Five."]
    made = Made(looks_back)
    assert translate_texts(made, texts, 3) == ["A MAN RAN. A DOG RAN. A CAT SAT.", "ONE.\n\nTWO. THREE.\nFOUR", "FIVE."]
    assert made.given == ["A man ran.", "A dog ran.", "A cat sat.", "One.", "Two.", "Three.", "Four", "Five."]


def test_many_sentences_come_in_batches():
    sizes, made = [], Made(True, change=lambda text: text)
    plain = made.translate
    made.translate = lambda texts, beam: sizes.append(len(texts)) or plain(texts, beam)
    text = " ".join(f"Word {i}." for i in range(450))
    assert translate_texts(made, [text], 3) == [text] and sizes == [200, 200, 50]


def test_a_line_break_that_a_model_writes_is_no_line_break_of_the_text():
    assert translate_texts(Made(False, change=lambda text: f"x\n{text}"), ["A. B\nC"], 3) == ["x A. B\nx C"]


TEXT = "The man left. The box fell. The dog barked. It was loud."


def gendered(text):
    """'It' becomes 'il', or 'elle' where the text has a box."""
    return re.sub("It was", "Elle était" if "box" in text else "Il était", text)


def test_a_pronoun_sees_the_two_sentences_before_it_and_only_its_own_sentence_is_kept():
    made = Made(True, change=gendered)
    assert translate_texts(made, [TEXT], 3) == ["The man left. The box fell. The dog barked. Elle était loud."]
    assert "The box fell. The dog barked. It was loud." in made.given and TEXT not in made.given
    assert translate_texts(made, ["The box fell.\nIt was loud."], 3) == ["The box fell.\nIl était loud."]   # another line
    assert translate_texts(Made(False, change=gendered), [TEXT], 3)[0].endswith("Il était loud.")     # it never looks back


def test_where_sentences_get_lost_a_pronoun_is_translated_alone():
    def forgetful(text):
        return gendered(text) if len(split_sentences(text)) < 2 else "The box fell."

    assert translate_texts(Made(True, change=forgetful), [TEXT], 3)[0].endswith("barked. Il était loud.")


def test_no_more_is_seen_than_the_model_can_read():
    made = Made(True, max_len=8, change=gendered)      # with the box's sentence 12 tokens, without it 8
    assert translate_texts(made, [TEXT], 3)[0].endswith("Il était loud.")
    assert "The dog barked. It was loud." in made.given and max(len(text.split()) for text in made.given) == 6
