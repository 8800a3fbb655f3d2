"""START's referee: which of a learner's sentences fool the classifier."""

import pytest

from course_utils.copies.fooling import count_fooled
from course_utils.recipes.trained_models import trained_model


@pytest.fixture(scope="module")
def classifier():
    return trained_model()


def said(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_sentence_fools_it_if_it_knows_the_words_and_says_the_opposite(classifier, capsys):
    assert count_fooled(classifier, ["The film was not at all dull.", "The film was moving."],
                        ["The film was as moving as a tram timetable."]) == 2
    first, second, third, total = said(capsys)
    assert first.startswith("negative 0.985") and "✓" in first and first.endswith("The film was not at all dull.")
    assert second.startswith("positive") and "✗" in second
    assert third.startswith("positive") and "✓" in third and total.startswith("2 ")


def test_a_sentence_with_words_that_it_never_met_does_not_count(classifier, capsys):
    assert count_fooled(classifier, ["I loved every minute, every minute."]) == 0
    line, _ = said(capsys)
    assert line.startswith("negative") and line.count("'loved'") == line.count("'minute'") == 1 and "✓" not in line


def test_the_same_sentence_counts_once(classifier, capsys):
    text = "The film was not at all dull."
    assert count_fooled(classifier, [text, "the film was not at all dull ."], [text]) == 1


def test_one_word_changed_added_or_left_out_is_the_same_trick(classifier, capsys):
    same = ["The film was not at all boring.", "The story was not at all dull.", "The main film was not at all dull."]
    assert count_fooled(classifier, ["The film was not at all dull.", *same, "It was a good film."]) == 2
    first, *others, last, _ = said(capsys)
    assert "✓" in first and "✓" in last and all(line.startswith("negative") and "○" in line for line in others)


@pytest.mark.parametrize(("first", "same"), [
    ("The film was not at all dull.", "not at all dreary"),
    ("The film was not at all dull.", "This movie was not at all clumsy."),
    ("It was a good film.", "The acting was a good picture."),
])
def test_other_words_around_it_are_the_same_trick(classifier, capsys, first, same):
    assert count_fooled(classifier, [first, same]) == 1
    assert "✓" in said(capsys)[0]


def test_what_makes_it_the_same_trick_is_said(classifier, capsys):
    count_fooled(classifier, ["The film was not at all dull.", "The film was not at all boring.",
                              "This movie was not at all clumsy.", "It was a good film.", "The acting was a good picture."])
    _, one, three, _, near, _ = said(capsys)
    assert "differs in at most one word from 'The film was not at all dull.'" in one
    assert "shares three words in a row, 'not at all', with 'The film was not at all dull.'" in three
    assert "leans on the same two words, 'a good', as 'It was a good film.'" in near


@pytest.mark.parametrize("word", [".", "Film", "all", "banana", "Dull!"])
def test_a_single_word_is_no_sentence(classifier, capsys, word):
    assert count_fooled(classifier, [word], [word]) == 0
    assert all("doesn't count" in line for line in said(capsys)[:2])


def test_the_same_comparison_or_the_same_could_have_been_is_one_trick(classifier, capsys):
    assert count_fooled(classifier, [], ["The script could have been moving.", "The plot could have been splendid.",
                                         "The film was as moving as a tram timetable.",
                                         "This story was as splendid as a tram timetable."]) == 2
    assert ["✓" in line for line in said(capsys)[:4]] == [True, False, True, False]


def test_a_plain_opinion_in_the_wrong_list_does_not_count(classifier, capsys):
    assert count_fooled(classifier, ["The film was dull.", "I found it dreary.", "It was a good film."],
                        ["The story was moving."]) == 1
    first, second, good, other, _ = said(capsys)
    assert all("○" in line and "wrong list" in line for line in (first, second, other)) and "✓" in good
    assert "'dull'" in first and "'moving'" in other


def test_a_word_that_only_holds_the_sentence_together_is_not_blamed(classifier, capsys):
    count_fooled(classifier, [], ["Nobody was moved."])
    assert "leans on 'moved'" in said(capsys)[0]
    count_fooled(classifier, [], ["I could have watched it for another two hours."])
    assert "leans" not in said(capsys)[0]


def test_a_variation_that_is_answered_right_is_said_to_be_right(classifier, capsys):
    assert count_fooled(classifier, ["The film was not at all dull.", "The film was not at dull."]) == 1
    assert "✗" in said(capsys)[1]


def test_the_word_that_the_answer_depends_on_is_named(classifier, capsys):
    count_fooled(classifier, ["The film was not at all dull.", "I found the film moving."])
    first, second, _ = said(capsys)
    assert "'all'" in first and "'moving'" in second


def test_a_narrow_miss_is_said_to_be_close(classifier, capsys):
    count_fooled(classifier, ["The film was moving."], ["I could have watched it for another two hours."])
    clear, narrow, _ = said(capsys)
    assert narrow.startswith("negative 0.585") and "close" in narrow and "close" not in clear


def test_what_start_says_of_the_five_models(capsys):
    texts = ["Nobody was moved.", "The script could have been moving.", "The film was as moving as a tram timetable."]
    answers = [trained_model(seed).predict([*texts, "It was a good film."])[0] for seed in range(5)]
    assert [column.count("positive") for column in zip(*answers)] == [4, 5, 5, 3]


@pytest.mark.parametrize("blank", [[], ["", "  "]])
def test_blanks_are_skipped(classifier, capsys, blank):
    assert count_fooled(classifier, blank, blank) == 0
    (total,) = said(capsys)
    assert total.startswith("0 ") and "3" in total


def test_three_are_enough(classifier, capsys):
    hints = ["Nobody was moved.", "The script could have been moving.",                   # START gives them
             "The film was as moving as a tram timetable."]
    assert count_fooled(classifier, ["It was a good film."], hints) == 4
    assert "more" not in said(capsys)[-1]


@pytest.mark.parametrize("given", ["The film was moving.", None, 3, [None], [("The film was moving.", "positive")]])
def test_what_is_no_list_of_sentences_is_said(classifier, given):
    with pytest.raises(TypeError, match="complaints .*expected .*quotes"):
        count_fooled(classifier, [], given)
