"""The trained classifier in a browser: it says what Python says, and answers to typing, swapping, switches and undo."""

import json
import random

import numpy as np
import pytest
import torch
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.attention_maps import HeadGates
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.explain import occlusion
from course_utils.files.paths import CHECKPOINTS, DATA
from course_utils.interactive import classifier_view, gates_view
from course_utils.interactive.classifier_view import model_data
from course_utils.interactive.piece import _source, in_script
from course_utils.tokenization import WordTokenizer
from course_utils.training.plain_text import FORMS, PlainWords

MODELS = ("reviews", "reviews-seed-1", "reviews-without-positions", "reviews-pooling-mean-seed-0")
STRANGE = ["", " \n\t", "<br />two<br>lines", "it’s o'clock, 'quoted'", "İstanbul ΟΔΟΣ Straße ﬁne", "👩‍👩‍👧 🎬 naïve",
           "é é", "فيلم ممتع not dull", "x" * 3000, "a_b 12½ ²x ٣", "</script><b>&amp;",
           "\u2028\x1c\x85\xa0\ufeffend", "不错的电影!", "it isn’t ‘dull’, so—“what”… it‘dull’ don`t",
           "cafe\u0301 हिन्दी שָׁלוֹם ที่นี่", "do\u200bn\u2060´t 5′10″ «dull»"]


@pytest.fixture(scope="module")
def trained():
    return ReviewClassifier.load(CHECKPOINTS / "reviews")


@pytest.fixture
def in_page(browser, tmp_path):
    """in_page(classifier): a function that runs JavaScript in a page where `model` is the classifier."""
    def open_model(classifier):
        script = f"{_source('classifier_model.js')}\nvar model = classifierModel({in_script(model_data(classifier))});"
        (tmp_path / "model.html").write_text(f'<!doctype html><meta charset="utf-8"><script>{script}</script>', "utf-8")
        browser.open(tmp_path / "model.html")
        return browser.driver.execute_script
    return open_model


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_pythons_on_all_test_reviews(in_page, name):
    """On 2,336 texts: within 0.005, and the same label wherever Python isn't within 0.01 of one half."""
    classifier = ReviewClassifier.load(CHECKPOINTS / name)
    texts = [*load_reviews("reviews")["test"]["text"],
             *(json.loads(line)["text"] for line in (DATA / "handwritten.jsonl").read_text("utf-8").splitlines())]
    exact = classifier.predict(texts)[1][:, 1].numpy()
    page = np.array(in_page(classifier)(
        "return arguments[0].map(text => model.run(model.read(text).ids).probability)", texts))
    print(f"{name}: {len(texts)} texts, largest difference {abs(exact - page).max():.5f}")
    assert len(texts) == 2336 and abs(exact - page).max() < 0.005
    sure = abs(exact - 0.5) >= 0.01
    assert np.array_equal(exact[sure] > 0.5, page[sure] > 0.5)


@pytest.mark.parametrize("text", [*STRANGE, "dull film not moving , " * 60])
def test_strange_texts_are_read_as_python_reads_them(in_page, trained, text):
    seen = trained.explain(text)
    tokens, dropped, probability, pooling, maps = in_page(trained)("""
        var read = model.read(arguments[0]), result = model.run(read.ids, {weights: true});
        return [read.tokens.map(t => t.text), read.dropped, result.probability, Array.from(result.pooling),
                result.attentions.map(layer => layer.map(head => Array.from(head)))]""", text)
    assert tokens == [token.text for token in seen.tokens]
    assert dropped == len(trained.tokenizer.tokenize(text)) - len(tokens)
    assert probability == pytest.approx(seen.probabilities["positive"], abs=0.005)
    assert np.allclose(pooling, seen.weights[: len(tokens)], atol=0.005)
    assert np.allclose(np.array(maps).reshape(seen.attentions.shape), seen.attentions, atol=0.01)


@pytest.mark.parametrize("reads", [PlainWords, WordTokenizer])
def test_words_and_their_ranges_are_pythons_on_5000_strings(in_page, trained, reads):
    """Of a model that reads plain texts, and of one that reads texts as they are."""
    chooser = random.Random(0)
    signs = [*FORMS, *STRANGE[:8], *"‘‛´′‚‹›`'\"aeB .!", "n't", "don", "\u200b", "\u2060", "\xad", "\u200c",
             "\u0301", "\u0323", "\ufe0f", "क", "ि", "ท", "ี", "각", "\u1100", "\u1161", "👩", "\x96", "\u037e", "\u1fef"]
    texts = ["".join(chooser.choice(signs) for _ in range(chooser.randint(0, 20))) for _ in range(5000)]
    classifier = ReviewClassifier(trained.model, reads(trained.tokenizer.vocabulary))
    found = in_page(classifier)("return arguments[0].map(text => model.tokenize(text).map("
                                "t => [t.text, text.slice(t.start, t.end), text.slice(0, t.start)]))", texts)
    for text, words in zip(texts, found, strict=True):
        expected = [[t.text, text[t.start : t.end], text[: t.start]] for t in classifier.tokenizer.tokenize(text)]
        assert words == expected, ascii(text)


def test_gates_and_occlusion_are_the_courses(in_page, trained):
    run = in_page(trained)
    for text in load_reviews("reviews")["test"]["text"][:1000:100]:
        ids, mask = trained.encode([text])
        for gates in ([[0, 1], [1, 1]], [[1, 1], [1, 0]], [[0, 0], [0, 0]]):
            with torch.no_grad(), HeadGates(trained.model, torch.tensor(gates)):
                exact = trained.model(ids, mask).logits.softmax(dim=-1)[0, 1].item()
            page = run("return model.run(model.read(arguments[0]).ids, {gates: arguments[1]}).probability", text, gates)
            assert page == pytest.approx(exact, abs=0.005)
        for how in ("delete", "unk"):
            exact = occlusion(trained.model, ids, mask, torch.tensor([1]), how)[0]
            page = run("""var ids = model.read(arguments[0]).ids, whole = model.run(ids).probability;
                return ids.map((_, i) => whole - model.occlusion(ids, i, {how: arguments[1]}))""", text, how)
            assert np.allclose(page, exact, atol=0.005)


class Live:
    """A piece on its page, and what a reader does with it."""

    def __init__(self, browser, host):
        self.browser, self.root = browser, host.shadow_root

    def all(self, selector):
        return self.root.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.root.find_element(By.CSS_SELECTOR, selector).get_property("textContent")

    @property
    def written(self):
        return self.all("textarea")[0].get_property("value")

    def write(self, text):
        """Put a whole text into the box at once, as pasting does."""
        self.browser.driver.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
            self.all("textarea")[0], text)

    @property
    def probability(self):
        return float(self.text(".answer .number").split()[-1])

    def word(self, i):
        return self.all(".words button")[i]

    def press(self, name):
        next(button for button in self.all("button") if button.text == name).click()


@pytest.fixture
def live(browser, opened, trained):
    def open_view(text="A moving film.", **options):
        return Live(browser, opened(classifier_view(trained, text, **options)))
    return open_view


def probability(trained, text):
    """What Python says, and the shown number may be: three decimals of a probability within 0.005."""
    return pytest.approx(trained.predict([text])[1][0, 1].item(), abs=0.0055)


def test_typing_changes_answer_words_and_map(live, trained):
    view = live()
    before = view.all("canvas")[0].screenshot_as_png
    view.all("textarea")[0].send_keys(Keys.END, " Dull, dull!")
    assert view.probability == probability(trained, "A moving film. Dull, dull!")
    assert [word.find_element(By.CSS_SELECTOR, ".word").text for word in view.all(".words button")] == [
        "a", "moving", "film", ".", "dull", ",", "dull", "!"]
    assert view.all("canvas")[0].screenshot_as_png != before


def test_two_words_picked_are_swapped_and_undo_brings_them_back(live, trained):
    view = live("A dull story, but a moving film.")
    view.word(1).click()
    assert view.word(1).get_attribute("aria-pressed") == "true"
    view.word(6).click()
    assert view.written == "A moving story, but a dull film."
    assert view.probability == probability(trained, view.written)
    view.press("Undo")
    assert view.written == "A dull story, but a moving film." and not view.all(".words .picked")


def test_a_word_is_changed_moved_and_left_out_by_keyboard_alone(live):
    view = live("Not a dull film.")
    keys = ActionChains(view.browser.driver)
    view.all("textarea")[0].click()
    keys.send_keys(Keys.TAB, Keys.TAB, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.F2, "moving", Keys.ENTER).perform()
    assert view.written == "Not a moving film."
    keys.send_keys(Keys.ENTER).perform()                                   # the focus is on the word again: pick it
    view.press("⇄ word before")
    assert view.written == "Not moving a film."
    view.press("⇄ word after")
    view.press("Leave out")
    assert view.written == "Not a film."
    view.press("Reset")
    assert view.written == "Not a dull film."


def test_words_that_would_run_together_are_kept_apart(live):
    view = live("x 'y z")
    view.word(0).click()
    view.word(1).click()
    assert view.written == "' x y z"


def test_a_head_that_is_off_and_on_again(live, trained):
    view = live("This was a pointless film, and a chore too.")
    whole = view.probability
    view.all(".switch")[0].click()
    with torch.no_grad(), HeadGates(trained.model, torch.tensor([[0, 1], [1, 1]])):
        shut = trained.model(*trained.encode([view.written])).logits.softmax(dim=-1)[0, 1].item()
    assert view.probability == pytest.approx(shut, abs=0.0055) and "With all heads on" in view.text(".gates")
    assert view.all(".switch")[0].get_attribute("aria-checked") == "false"
    assert "switched off" in view.text(".map .row")
    view.all(".switch")[0].click()
    assert view.probability == whole


def test_unknown_words_no_words_and_too_many(live, trained):
    view = live("A zzyx film, qqq.")
    assert "2 of 4 words unknown: don’t trust this" in view.text(".notes") and "‘zzyx’, ‘qqq’" in view.text(".notes")
    assert len(view.all(".words .unknown")) == 2
    view.write("")
    assert "No words" in view.text(".notes") and view.probability == probability(trained, "")
    view.write("dull film " * 150)
    assert "first 64 and the last 192" in view.text(".notes") and "skips 44" in view.text(".notes")
    assert len(view.all(".words button")) == 256
    view.write("<b>bold</b><img src=x>")
    assert not view.all(".words b, .words img")


def test_words_that_an_input_method_composes(live):
    view = live("dull")
    view.all("textarea")[0].click()
    compose = view.browser.driver.execute_cdp_cmd
    view.all("textarea")[0].send_keys(Keys.END, " ")
    compose("Input.imeSetComposition", {"text": "えい", "selectionStart": 2, "selectionEnd": 2})
    assert view.written == "dull えい" and "‘えい’" in view.text(".notes")
    compose("Input.insertText", {"text": "映画"})
    assert view.written == "dull 映画" and "‘映画’" in view.text(".notes")


def test_words_from_right_to_left_keep_their_order(live):
    view = live("שלום עולם dull")
    assert "‘\u2068שלום\u2069’, ‘\u2068עולם\u2069’" in view.text(".notes")


def test_what_was_said_is_said_to_a_screen_reader(live):
    view = live()
    view.write("A dull film.")
    view.browser.wait(lambda: "negative, probability of positive 0.0" in view.text(".said"))


def test_occlusion_is_shown_for_both_ways_to_take_a_word_away(live, trained):
    view = live("Not a dull film.", how="unk")
    ids, mask = trained.encode(["Not a dull film."])

    def shown():
        found = [word.text.replace("−", "-") for word in view.all(".words .occlusion")]
        return None if "…" in found else [float(value) for value in found]

    for how, name in (("unk", "replaced by <unk>"), ("delete", "left out")):
        view.all("select")[0].send_keys(name)
        exact = occlusion(trained.model, ids, mask, torch.tensor([1]), how)[0]
        assert np.allclose(view.browser.wait(shown), exact, atol=0.011)


def test_examples_and_parts(live):
    view = live(None, parts=["strip"], examples=[("one", "A dull film.", "Look at dull."), ("two", "Not a dull film.")])
    assert view.written == "A dull film." and view.text(".look") == "Look at dull."
    view.press("two")
    assert view.written == "Not a dull film." and not view.all("canvas, .switch, select")
    assert [word.text for word in view.all(".words .changed .word")] == ["not"]


def test_a_prepared_sentence_begins_with_all_heads_on(live):
    """Whatever was switched off for the sentence before it; the same button, pressed again, begins anew."""
    view = live(None, examples=[("one", "A dull film."), ("two", "Not a dull film.")])
    whole = view.probability

    def off():
        return [switch.get_attribute("aria-checked") for switch in view.all(".switch")].count("false")

    view.all(".switch")[0].click()
    view.press("two")
    assert off() == 0
    view.press("Undo")
    assert off() == 1 and view.written == "A dull film."
    view.press("one")
    assert off() == 0 and view.probability == whole


def test_without_positions_the_order_makes_no_difference(live):
    """START: the two sentences of its first button get 0.012 each."""
    view = live("The film was not dull but moving.", parts=["strip", "map", "heads", "positions"])
    switch = view.all(".gating .layer .switch")[-1]
    assert "Positions of words on" in switch.text and view.probability > 0.99
    switch.click()
    assert view.probability == 0.012 and "off" in switch.text
    assert "With all heads and positions on 0.99" in view.text(".gates")
    view.word(4).click()
    view.word(6).click()
    assert view.written == "The film was not moving but dull." and view.probability == 0.012
    view.press("Undo")
    view.press("Undo")
    assert view.probability > 0.99 and switch.get_attribute("aria-checked") == "true"


def test_a_covered_map_waits_until_it_is_asked_for(live):
    view = live(None, examples=[("one", "Not dull but moving."), ("two", "The film was dull.", "Guess.")], covered=["two"])

    def seen():
        return view.all("canvas")[0].is_displayed()

    assert seen() and not view.all(".cover")[0].is_displayed()
    view.press("two")
    assert not seen() and view.text(".look") == "Guess."
    view.all(".switch")[0].click()
    assert not seen()
    view.press("Show the map")
    assert seen() and not view.all(".cover")[0].is_displayed()
    view.press("one")
    assert seen()


def test_a_covered_map_stays_covered_while_words_are_swapped_and_opens_for_other_words(live):
    """START's first button: its map would answer the second one's question."""
    view = live(None, parts=["words", "map", "heads"], covered=["one"],
                examples=[("one", "Not dull but moving."), ("two", "Dull.")])
    cover = view.all(".cover")[0]
    assert cover.is_displayed() and not view.all(".pooling") and not view.all(".legend")
    view.word(1).click()
    view.word(3).click()
    assert view.written == "Not moving but dull." and cover.is_displayed()
    view.press("Undo")
    assert view.written == "Not dull but moving." and cover.is_displayed()
    view.write("A dull film.")
    assert not cover.is_displayed() and view.all("canvas")[0].is_displayed()
    view.press("one")
    assert cover.is_displayed()
    view.press("Show the map")
    view.press("two")
    view.press("one")
    assert not cover.is_displayed()


def test_a_question_stays_while_its_sentence_is_changed_and_another_sentence_is_no_change(live):
    view = live(None, examples=[("one", "Not dull but moving.", "What now?"), ("two", "The film was dull.", "And now?")])
    view.word(1).click()
    view.word(3).click()
    assert view.text(".look").startswith("What now?") and "before this change" in view.text(".answer .change")
    view.press("two")
    assert view.text(".look") == "And now?" and view.text(".answer .change") == ""
    view.all("textarea")[0].send_keys(Keys.END, " It moved me.")
    assert view.text(".look").startswith("Your own words.") and "before this change" in view.text(".answer .change")


@pytest.mark.parametrize("size", ["phone", "tablet", "projector"])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_looks_right(browser, live, pictures, size, dark):
    browser.resize(size)
    browser.prefer(dark=dark)
    examples = [("one", "Dull.", "Look."), ("two", "Not dull.")]
    view = live("I expected a dull film with zzyx, but it was moving.", examples=examples)
    view.word(3).click()
    browser.picture(pictures / f"classifier_view_{size}_{'dark' if dark else 'light'}.png")
    assert browser.too_wide() == 0
    view.write("word " * 200 + "x" * 2000)
    assert browser.too_wide() == 0


def test_time_for_a_keystroke(live, trained):
    """12 and 120 tokens: printed; the bound is wide, for slow machines (a few times what was measured)."""
    view, reviews = live(), " ".join(load_reviews("reviews")["test"]["text"][:12])
    tokens = [token.text for token in trained.tokenizer.tokenize(reviews)]
    for count, most in ((12, 100), (120, 250)):
        times = view.browser.driver.execute_script("""
            var field = arguments[0], times = [];
            for (var i = 0; i < 15; i++) {
              field.value = arguments[1] + (i % 2 ? " a" : " the");
              var start = performance.now();
              field.dispatchEvent(new Event("input"));
              document.body.offsetHeight;
              times.push(performance.now() - start);
            }
            return times.sort((a, b) => a - b);""", view.all("textarea")[0], " ".join(tokens[: count - 1]))
        print(f"{count} tokens: median {times[7]:.0f} ms a keystroke")
        assert len(view.all(".words button")) == count and times[7] < most


def test_gates_move_the_labels_of_all_stored_reviews(browser, opened, trained):
    texts = ["This was a pointless film, and a chore too.", "The photography was gorgeous."]
    view = Live(browser, opened(gates_view(trained, texts, [0, 1])))
    assert view.text(".counts").startswith("Right: 2 of 2.")
    view.all(".switch")[0].click()
    with torch.no_grad(), HeadGates(trained.model, torch.tensor([[0, 1], [1, 1]])):
        shut = trained.predict(texts)[1][:, 1].numpy()
    numbers = [float(number.text) for number in view.all(".review .number")]
    assert np.allclose(numbers, shut, atol=0.0055)
    assert view.text(".counts").startswith(f"Right: {int(shut[0] < 0.5) + int(shut[1] > 0.5)} of 2.")
    view.all(".review")[1].click()
    assert view.text(".full") == texts[1] and view.probability == pytest.approx(shut[1], abs=0.0055)
    view.press("All on")
    assert view.text(".counts").startswith("Right: 2 of 2.")
    browser.resize("phone")
    assert browser.too_wide() == 0
