"""Animations in a browser: played, paused, stepped through, and still for readers who ask for less motion."""

import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.interactive import animation_view
from course_utils.interactive.animations import ANIMATIONS, drawn, state_at

OPACITY = "return getComputedStyle(arguments[0]).opacity"


@pytest.fixture
def player(browser, opened):
    """player(name): the piece's root, and a function that gives what it says of itself."""
    def show(name):
        host = opened(animation_view(name))
        return host.shadow_root, lambda: browser.driver.execute_script("return arguments[0].numbers", host)
    return show


@pytest.mark.parametrize("name", ANIMATIONS)
def test_each_step_shows_what_python_says(browser, player, pictures, name):
    animation = ANIMATIONS[name]()
    root, numbers = player(name)
    slider = root.find_element(By.CSS_SELECTOR, "input[type=range]")
    for step, caption in enumerate(animation.captions):
        assert numbers()["step"] == step and not numbers()["playing"]
        assert root.find_element(By.CSS_SELECTOR, ".caption").text == caption
        drawn_shapes = root.find_elements(By.CSS_SELECTOR, "svg > *")
        opacities = browser.driver.execute_script(
            "return arguments[0].map(function (one) { return Number(getComputedStyle(one).opacity); })", drawn_shapes)
        assert opacities == [state_at(shape, step, 1).opacity for shape in animation.shapes]
        slider.send_keys(Keys.ARROW_RIGHT)
    for size in ("phone", "projector"):
        browser.resize(size)
        browser.prefer(dark=size == "phone")
        assert browser.too_wide() == 0
        browser.picture(pictures / f"{name}-{size}.png")


def test_it_plays_only_when_asked_and_can_be_paused_at_any_time(browser, player):
    root, numbers = player("heads")
    first = numbers()["time"]
    time.sleep(0.4)
    assert numbers()["time"] == first
    button = root.find_element(By.CSS_SELECTOR, "button")
    assert button.text == "Play"
    button.click()
    browser.wait(lambda: numbers()["time"] > first + 0.3)
    assert button.text == "Pause"
    button.send_keys(Keys.SPACE)
    held = numbers()["time"]
    time.sleep(0.4)
    assert numbers()["time"] == held and button.text == "Play"


def test_with_less_motion_it_goes_from_step_to_step_without_a_way_between(browser, player):
    browser.prefer(still=True)
    root, numbers = player("heads")
    root.find_element(By.CSS_SELECTOR, "button").click()
    moments = set()
    browser.wait(lambda: moments.add(round(numbers()["moment"], 6)) or numbers()["step"] == 1, every=0.05)
    assert len(moments) == 2
    browser.prefer()


@pytest.mark.parametrize("name", ANIMATIONS)
def test_the_exported_file_moves_unless_less_motion_is_asked_for(browser, tmp_path, name):
    animation = ANIMATIONS[name]()
    (tmp_path / "moving.svg").write_text(drawn(animation), encoding="utf-8")
    for still in (False, True):
        browser.prefer(still=still)
        browser.open(tmp_path / "moving.svg")
        running = browser.driver.execute_script("return document.getAnimations().length")
        assert (running == 0) == still
    texts = browser.driver.find_elements(By.CSS_SELECTOR, "text")
    seen = [text.get_attribute("textContent") for text in texts if browser.driver.execute_script(OPACITY, text) == "1"]
    assert animation.captions[animation.still] in seen and len(set(seen) & set(animation.captions)) == 1
    browser.prefer()
