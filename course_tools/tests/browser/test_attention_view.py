"""The attention view in a browser: picked by mouse, finger and key, it shows Python's weights, quickly and on any screen."""

import statistics

import numpy as np
import pytest
import small_language_models as small
import torch
import transformers
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.interactive import attention_view

FOUR = ["not", "dull", "but", "moving"]
SLOWEST = 100  # milliseconds from a hover to the redrawn view
HOVERS = """
var done = arguments[arguments.length - 1], root = arguments[0].shadowRoot, times = [];
var chips = Array.from(root.querySelectorAll('.flow:not(.pooling) button.token:not(.rest)'));
function step(k) {
  if (k === 50) return done(times);
  var begun = performance.now();
  chips[(7 * k + 3) % chips.length].dispatchEvent(new PointerEvent('pointerover', {bubbles: true, pointerType: 'mouse'}));
  requestAnimationFrame(function () { setTimeout(function () {
    times.push(performance.now() - begun);
    setTimeout(step, 10, k + 1);
  }, 0); });
}
step(0);"""


def weights(*shape, spread=2.0, seed=0):
    return torch.softmax(spread * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


class View:
    """The parts of a live view that a test touches and reads."""

    def __init__(self, browser, host):
        self.browser, self.host, self.root = browser, host, host.shadow_root

    def all(self, selector):
        return self.root.find_elements(By.CSS_SELECTOR, selector)

    def tokens(self, flow=0):
        return self.all(".flow:not(.pooling)")[flow].find_elements(By.CSS_SELECTOR, "button.token:not(.rest)")

    def numbers(self, flow=0):
        return [token.find_element(By.CSS_SELECTOR, ".weight").text for token in self.tokens(flow)]

    def choose(self, label):
        next(button for button in self.all(".choice button") if button.get_attribute("aria-label") == label).click()

    def picked(self):
        return [token.text.split("\n")[0] for token in self.all(".token.picked")]

    def read(self, side=0):
        return self.all(".read")[side].text

    def focus(self):
        return self.browser.driver.execute_script("return arguments[0].shadowRoot.activeElement", self.host)

    def press(self, *keys):
        ActionChains(self.browser.driver).send_keys(*keys).perform()


@pytest.fixture
def shown(browser, opened):
    return lambda *what, **options: View(browser, opened(attention_view(*what, **options)))


def written(row):
    """Weights as the page prints them: rounded to three decimals, then to two."""
    return [f"{np.floor(np.floor(1000 * float(value) + 0.5) / 10 + 0.5 + 1e-6) / 100:.2f}" for value in row]


def test_hovering_tapping_and_keys_pick_a_token_and_show_its_weights(shown):
    given = weights(2, 3, 4, 4)
    view = shown(FOUR, given)
    for token in (0, 3):
        ActionChains(view.browser.driver).move_to_element(view.tokens()[token]).perform()
        assert view.picked() == [FOUR[token]] and view.numbers() == written(given[0, 0, token])
    view.choose("layer 1")
    view.choose("head 2")
    assert view.numbers() == written(given[1, 2, 3])
    view.choose("what attends to it: its column")
    assert view.numbers() == written(given[1, 2, :, 3]) and "‘moving’ (3) is attended to most by" in view.read()
    view.choose("mean of the heads")
    means = [float(number) for number in view.numbers()]  # of weights that were rounded before
    assert means == pytest.approx(given[1, :, :, 3].mean(0).tolist(), abs=0.0061) and "mean of the heads" in view.read()
    view.tokens()[1].click()
    ActionChains(view.browser.driver).move_to_element(view.tokens()[2]).perform()
    assert view.picked() == ["dull"] and "Pinned" in view.read()
    view.press(Keys.ESCAPE)
    assert "Pinned" not in view.read()


def test_every_control_is_reached_by_keys(shown):
    given = weights(2, 3, 4, 4)
    view, seen = shown(FOUR, given, token=1), []
    for _ in range(12):
        view.press(Keys.TAB)
        focus = view.focus()
        if focus is None:
            break
        seen.append(focus.get_attribute("aria-label") or focus.text.split("\n")[0])
    assert seen == ["layer 0", "head 0", "what it attends to: its row", "one scale for all heads", "dull", "layer 0, head 0"]
    view.press(Keys.SHIFT, Keys.TAB)
    ActionChains(view.browser.driver).key_up(Keys.SHIFT).perform()
    while view.focus() is None or "token" not in view.focus().get_attribute("class"):
        ActionChains(view.browser.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    view.press(Keys.ARROW_RIGHT)
    assert view.picked() == ["but"] and view.numbers() == written(given[0, 0, 2])
    assert view.all(".said")[0].get_attribute("textContent").startswith("‘but’ (2) attends most to")
    view.press(Keys.END)
    assert view.picked() == ["moving"]
    view.press(Keys.TAB, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert view.focus().get_attribute("aria-label") == "layer 1, head 1" and view.numbers() == written(given[1, 1, 3])


def test_the_heatmap_is_picked_too_and_says_its_number(shown):
    given = weights(4, 4)
    view = shown(FOUR, given)
    canvas = view.all(".map canvas")[0]
    box, left = canvas.rect, view.browser.driver.execute_script(
        "return arguments[0].getContext('2d').measureText('moving').width", canvas)
    cell = 44
    for row, column in ((1, 2), (3, 0)):
        ActionChains(view.browser.driver).move_to_element_with_offset(
            canvas, int(left + 12 + (column + 0.5) * cell - box["width"] / 2),
            int(8 + (row + 0.5) * cell - box["height"] / 2)).perform()
        said = f"‘{FOUR[row]}’ ({row}) attends to ‘{FOUR[column]}’ ({column}) with weight {given[row, column]:.3f}"
        assert said in view.read()


def test_cross_attention_has_two_texts(shown):
    given = weights(2, 3, 5)
    view = shown(["<s>", "c'est", "bien"], given, key_tokens=["it", "'s", "fine", ".", "</s>"])
    view.tokens(0)[2].click()
    assert view.numbers(1) == written(given[0, 2]) and view.numbers(0) == [""] * 3
    view.tokens(1)[4].click()
    assert view.numbers(0) == written(given[0, :, 4]) and view.numbers(1) == [""] * 5


def test_two_texts_have_a_switch_to_what_one_gives_the_other(shown):
    model, tokenizer = small.bert_of_pairs()
    texts = ("the film was moving", "it is not dull")
    kinds = attention_view(model, tokenizer, texts, by="word").side.kinds
    view = shown(model, tokenizer, texts, by="word")
    note = view.all(".panel > .caption")[0]
    assert len(view.all(".flow")) == 1 and not note.is_displayed()
    one, two = (text.split() for text in texts)
    for kind, tokens, others in ((kinds[1], one, two), (kinds[2], two, one)):
        view.choose(kind.name)
        assert [token.text.split("\n")[0] for token in view.tokens(0)] == tokens
        assert [token.text.split("\n")[0] for token in view.tokens(1)] == others
        assert note.is_displayed() and note.text == kind.note
        view.choose("layer 1")
        view.choose("head 2")
        view.tokens(0)[2].click()
        assert view.numbers(1) == written(kind.layers[1][2, 2]) and view.numbers(0) == [""] * 4
        view.tokens(1)[3].click()
        assert view.numbers(0) == written(kind.layers[1][2, :, 3])
    view.choose("both texts")
    assert len(view.tokens(0)) == 11 and not note.is_displayed()


def test_a_text_that_gives_nothing_to_the_other_says_so(shown):
    """In a decoder no token looks at a later one, so the first text gives nothing to the second."""
    _, tokenizer = small.bert_of_pairs()
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2)
    model = small.random_model(transformers.GPT2Model, config)
    view = shown(model, tokenizer, ("the film was moving", "it is not dull"))
    view.choose("first → second")
    view.tokens(0)[1].click()
    assert "‘film’ (1) gives nothing to these tokens in layer 0, head 0." in view.read()
    view.choose("second → first")
    view.tokens(1)[1].click()
    assert "‘film’ (1) is attended to most by" in view.read()


def test_every_class_of_a_multi_label_model_is_named(shown):
    model, tokenizer = small.bert()
    model.config.problem_type = "multi_label_classification"
    view = shown(model, tokenizer, "the film was not dull")
    answer = attention_view(model, tokenizer, "the film was not dull").side.answer
    assert view.all(".answer")[0].text == answer and answer.startswith("Probability of each class by itself: ")


def test_a_saved_picture_opens(browser, tmp_path, pictures):
    model, tokenizer = small.bert_of_pairs()
    path = tmp_path / "one.svg"
    attention_view(model, tokenizer, ("the film was moving", "it is not dull"), by="word").save_svg(path, layer=1, token=4)
    browser.open(path)
    root = browser.driver.find_element(By.CSS_SELECTOR, "svg")
    assert "‘moving’ (4) attends to" in root.text and root.size["width"] == 900
    browser.picture(pictures / "attention-saved.png")


def test_twins_are_picked_together(shown):
    twin = ["not", "moving", "but", "dull"]
    one, two = weights(2, 2, 4, 4), weights(2, 2, 4, 4, seed=1)
    view = shown(FOUR, one, compare=attention_view(twin, two), names=("first", "twin"))
    view.tokens(0)[1].click()
    assert view.picked() == ["dull", "dull"]
    assert view.numbers(0) == written(one[0, 0, 1]) and view.numbers(1) == written(two[0, 0, 3])
    view.tokens(1)[1].click()
    assert view.picked() == ["moving", "moving"] and view.numbers(0) == written(one[0, 0, 3])


def test_models_of_different_sizes_have_controls_of_their_own(shown):
    view = shown(FOUR, weights(3, 4, 4, 4), compare=attention_view(FOUR, weights(1, 2, 4, 4)))
    groups = [group.text.split("\n") for group in view.all(".panel .choice")]
    assert groups == [["Layer", "0", "1", "2"], ["Head", "0", "1", "2", "3", "mean"],
                      ["Layer", "0"], ["Head", "0", "1", "mean"]]


def test_a_long_text_shows_the_rest_and_all(shown):
    words, given = [f"t{k}" for k in range(100)], weights(1, 100, 100, spread=1)
    view = shown(words, given)
    view.tokens()[4].click()
    rest = view.all(".token.rest .weight")[0].text
    hidden = given[0, 4, 20:81].sum()
    assert len(view.tokens()) == 39 and float(rest) == pytest.approx(float(hidden), abs=0.0056)
    view.choose("39–77 tokens")
    assert [token.text.split("\n")[0] for token in view.tokens()] == words[39:78]
    view.all(".token.rest")[0].click()
    assert len(view.tokens()) == 100 and view.numbers() == written(given[0, 4])


@pytest.mark.parametrize("page", ["first 20 and last 19 tokens", "all tokens"])
def test_it_follows_a_hover_in_less_than_a_tenth_of_a_second(shown, page):
    """Six layers of twelve heads and 64 tokens."""
    view = shown(["extraordinary"] * 64, weights(6, 12, 64, 64))
    view.choose(page)
    times = view.browser.driver.execute_async_script(HOVERS, view.host)
    print(f"50 hovers: median {statistics.median(times):.0f} ms, at most {max(times):.0f} ms")
    assert statistics.median(times) < SLOWEST


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", ["phone", "tablet", "projector"])
def test_it_fits_every_screen(shown, browser, pictures, size, dark):
    browser.resize(size)
    browser.prefer(dark=dark)
    hostile = ["</script>", "<br />", "$x$", "🙂", "", "a\nb", "Donaudampfschifffahrtsgesellschaft", "dull"]
    view = shown(hostile, weights(3, 4, 8, 8), compare=attention_view(FOUR, weights(3, 4, 4, 4)), names=("one", "two"))
    assert browser.too_wide() == 0
    assert [token.text.split("\n")[0] for token in view.tokens()][:5] == ["</script>", "<br />", "$x$", "🙂", "(empty)"]
    browser.picture(pictures / f"attention-view-{size}-{'dark' if dark else 'light'}.png")
