"""Sentences unlike captions are said to be so, and captions hardly ever are; the captions here are our own."""

import re
import sys

import pytest
from called import called

from course_tools.studies.captions import measure, other_sentences
from course_utils.files.paths import CHECKPOINTS
from course_utils.training.saved_models import read_note, write_note
from course_utils.translation import command as translate
from course_utils.translation.command import BEAMS, TITLE, Watched, threshold_for
from course_utils.translation.subwords import SubwordTranslator

pytestmark = pytest.mark.slow

FOLDER = CHECKPOINTS / "multi30k"
CAPTION, FILM = "A little girl is playing with a red ball.", "The film was too long."
CAPTIONS = [
    CAPTION, "A man in a green apron is washing a small boat.", "Three girls in yellow boots jump over a puddle.",
    "An old woman is feeding ducks beside a lake.", "Two men carry a long table across the street.",
    "A waiter is pouring water into a glass.", "A brown horse is standing behind a white fence.",
    "Four cyclists are riding up a steep hill.", "A woman with red hair is painting a door.",
    "A farmer is driving a tractor through a field.", "Five friends are eating pizza around a table.",
]
OTHERS = [
    FILM, "Where is the station?", "I love you.", "The parliament has adopted the report.", "Hello.",
    "She didn't like the book at all.", "My computer doesn't work any more.", "This restaurant is much too expensive.",
    "We would like to thank the committee for its excellent work.", "What time does the shop close on Sundays?",
]


@pytest.fixture(scope="module")
def translator() -> SubwordTranslator:
    return SubwordTranslator.load(FOLDER)


@pytest.fixture(autouse=True)
def named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["python -m course_utils translate"])


def test_other_sentences_are_found_and_captions_left_alone(translator):
    beam = 1
    def found(texts):
        watched = Watched(translator)
        assert watched.translate(texts, beam) == translator.translate(texts, beam)
        return len(watched.unlike(threshold_for(FOLDER, beam))) / len(texts)

    assert found(CAPTIONS) <= 0.1
    assert found(OTHERS) >= 0.9
    measured, groups = read_note(FOLDER, TITLE), other_sentences()
    for name, step in (("films", 30), ("everyday", 10)):      # a part of what was measured, again
        assert abs(found(groups[name][::step]) - measured[f"{name}_beam_{beam}"]) < 0.2, name


def test_the_rates_that_come_with_the_weights_are_good_enough_and_told_where_the_weights_are():
    measured = read_note(FOLDER, TITLE)
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    for beam in BEAMS:
        assert measured[f"validation_beam_{beam}"] <= 0.035 and measured[f"test_beam_{beam}"] <= 0.05
        assert measured[f"films_beam_{beam}"] >= 0.9 and measured[f"everyday_beam_{beam}"] >= 0.75
        row = [f"{measured[f'threshold_beam_{beam}']:.3f}",
               *(f"{100 * measured[f'{name}_beam_{beam}']:.1f} %" for name in ("test", "films", "everyday", "course"))]
        assert " | ".join([f"| {beam}", *row]) in told


def test_the_threshold_is_a_quantile_of_the_validation_captions_and_is_that_of_the_next_narrower_search():
    class Sure:                                         # as sure as its text says
        pieces = None

        def candidates(self, texts, beam):
            return [type("C", (), {"log_probability": -2 * float(text), "ids": [0]}) for text in texts]

    numbers = [str(i / 100) for i in range(101)]
    found = measure(Sure(), {"validation": numbers, "test": ["0.5", "0.98"]}, {"films": ["2", "0.1"]}, [5])
    assert found == {"threshold_beam_5": -0.97, "validation_beam_5": round(3 / 101, 4), "test_beam_5": 0.5,
                     "films_beam_5": 0.5}
    assert threshold_for(CHECKPOINTS / "translation", 5) is None
    assert {threshold_for(FOLDER, beam) for beam in (2, 3, 4)} == {threshold_for(FOLDER, 2)}
    assert threshold_for(FOLDER, 100) == threshold_for(FOLDER, 5) > threshold_for(FOLDER, 1)


def test_the_command_says_which_sentences_are_unlike_captions(capsys):
    status, printed, said = called(translate.main, [CAPTION], capsys)
    assert (status, printed) == (0, "Une petite fille joue avec un ballon rouge.\n") and "unlike" not in said
    status, printed, said = called(translate.main, [f"{CAPTION} {FILM}", *OTHERS[1:5]], capsys)
    assert status == 0 and len(printed.splitlines()) == 5
    assert f"unlike captions, 5 of 6: '{FILM}', 'Where is the station?', 'I love you.' and 2 more. This model was" in said
    assert "don't trust it. --from translation takes" in said
    status, printed, said = called(translate.main, [FILM, "--from", "translation"], capsys)
    assert (status, printed) == (0, "Le film était trop long.\n") and "unlike" not in said


def test_a_threshold_that_is_no_number_is_said_and_stops_nothing(capsys, translator, tmp_path):
    translator.save(tmp_path / "mine")
    write_note(tmp_path / "mine", TITLE, {"threshold_beam_5": "high"})
    status, printed, said = called(translate.main, [CAPTION, "--from", tmp_path / "mine"], capsys)
    assert status == 0 and printed and "which sentences are unlike captions can't be said: " in said
    assert "threshold_beam_5 is 'high'" in said


def test_the_example_of_the_readme_is_a_caption_and_its_french_is_what_the_command_prints(root, capsys):
    readme = (root / "README.md").read_text(encoding="utf-8")
    english, french = re.search(r'translate "([^"]+)"`.*?: \*([^*]+)\*', readme).groups()
    status, printed, said = called(translate.main, [english], capsys)
    assert (status, printed) == (0, f"{french}\n") and "unlike" not in said
