"""The small things to move: the page's numbers are Python's to 1e-6, by mouse, touch and keyboard, on every width."""

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.interactive import (
    dot_product_view,
    rotary_score,
    rotary_view,
    soft_lookup,
    softmax_row,
    temperature_view,
)

close = dict(rel=0, abs=1e-6)
ALL = {"temperature": temperature_view, "dot product": dot_product_view, "rotary": rotary_view}


@pytest.fixture
def page(browser, opened):
    """page(piece): a function that finds elements in it; `.numbers()` are those that it shows, unrounded."""
    def show(piece):
        host = opened(piece)

        def find(selector):
            return host.shadow_root.find_elements(By.CSS_SELECTOR, selector)
        find.numbers = lambda: browser.driver.execute_script("return arguments[0].numbers", host)
        find.said = lambda: find(".said")[0].get_attribute("textContent")
        return find
    return show


def press(element, *keys):
    for key in keys:
        element.send_keys(key)


@pytest.mark.parametrize(("steps", "divide", "hotter"), [
    (0, False, 0), (0, True, 0), (3, False, 4), (-6, False, 9), (-4, True, 20)])
def test_softmax_is_pythons(page, steps, divide, hotter):
    find = page(temperature_view((0.5, 1.0, 0.0, -1.0)))
    width, temperature, *scores = find("input[type=range]")
    press(width, *[Keys.ARROW_RIGHT if steps > 0 else Keys.ARROW_LEFT] * abs(steps))
    press(temperature, *[Keys.ARROW_RIGHT] * hotter)
    press(scores[2], Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    if divide:
        find("input[type=checkbox]")[0].click()
    row = softmax_row((0.5, 1.0, -0.2, -1.0), d_k=2 ** (6 + steps), divide=divide, temperature=1 + hotter / 10)
    numbers = find.numbers()
    for name, value in row._asdict().items():
        assert numbers[name] == pytest.approx(value, **close), name
    assert "Weights: not" in find.said()
    find("button")[0].click()
    assert find.numbers()["weights"] == pytest.approx(softmax_row((0.5, 1.0, 0.0, -1.0), d_k=64).weights, **close)


def vectors(find):
    """Query, then keys, as the boxes beside the plane show them."""
    shown = [float(box.get_attribute("value")) for box in find("input[type=number]")]
    return [shown[k : k + 2] for k in range(0, len(shown), 2)]


def agrees(find, values=None):
    query, *keys = vectors(find)
    for name, value in soft_lookup(query, keys, values or keys)._asdict().items():
        assert find.numbers()[name] == pytest.approx(value, **close), name
    return query


def test_an_arrow_can_be_dragged_pushed_by_keys_and_typed(browser, page):
    find = page(dot_product_view())
    assert agrees(find) == [-0.8, 0.1]
    ActionChains(browser.driver).drag_and_drop_by_offset(find(".query .grip")[0], -70, -50).perform()
    query = agrees(find)
    assert query[0] < -1.4 and query[1] > 0.6 and "The weighted mean" in find.said()
    ActionChains(browser.driver).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN).perform()
    assert agrees(find) == pytest.approx([query[0] + 0.1, query[1] - 0.1])
    box = find("input[type=number]")[4]                                    # the key 'dull' at (−1, 0)
    press(box, Keys.ARROW_UP, Keys.ARROW_UP)
    assert vectors(find)[2] == [-0.8, 0] and agrees(find)
    find("button")[0].click()
    assert agrees(find) == [-0.8, 0.1]


def test_a_goal_says_when_it_is_reached_and_stays_so(page):
    find = page(dot_product_view((-1, 0), name="dull", goals=[("more than half", "not", 0.5), ("the most", "but", None)]))

    def lines():
        return [line.text for line in find(".goals li")]

    assert lines() == ["○ more than half", "○ the most"]
    opinion, negates = find("input[type=number]")[:2]                      # the query's
    press(opinion, *[Keys.ARROW_UP] * 10)
    press(negates, *[Keys.ARROW_UP] * 12)
    assert vectors(find)[0] == [0, 1.2] and lines() == ["✓ done: more than half", "○ the most"]
    press(negates, *[Keys.ARROW_DOWN] * 20)                                # down: 'but' has as much as others, never more
    assert lines() == ["✓ done: more than half", "○ the most"]
    press(find("input[type=number]")[6], *[Keys.ARROW_UP] * 3)             # 'but' gets an arrow of its own
    press(negates, *[Keys.ARROW_UP] * 8)
    press(opinion, *[Keys.ARROW_UP] * 20)
    press(find("input[type=number]")[6], *[Keys.ARROW_UP] * 20)
    assert lines() == ["✓ done: more than half", "✓ done: the most"]
    find("button")[0].click()
    assert lines() == ["○ more than half", "○ the most"]


def test_a_finger_drags_too_and_values_of_their_own_stay(browser, page):
    values = {"a": (1, 1), "b": (-1, 1), "c": (0, -2)}
    find = page(dot_product_view((1, 1), {"a": (1, 0), "b": (0, 1), "c": (-1, 0)}, values=values))
    x, y = browser.driver.execute_script("var b = arguments[0].getBoundingClientRect();"
                                         "return [b.x + b.width / 2, b.y + b.height / 2]", find(".key .grip")[0])

    def touch(kind, *points):
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})
    touch("touchStart", {"x": x, "y": y})
    for k in range(1, 6):
        touch("touchMove", {"x": x + 15 * k, "y": y - 10 * k})
    touch("touchEnd")
    browser.wait(lambda: vectors(find)[1][0] > 1.3 and vectors(find)[1][1] > 0.2)
    agrees(find, list(values.values()))


@pytest.mark.parametrize("speeds", [(0.5,), (1.0, 0.01)])
def test_the_score_is_pythons_and_moving_both_changes_nothing(page, speeds):
    query, key = (1.0, 0.0) * len(speeds), (0.8, 0.6) * len(speeds)
    find = page(rotary_view(query, key, speeds=speeds))
    first = find.numbers()["score"]
    for button in (1, 1, 0, 1):
        find("button")[button].click()
    assert (find.numbers()["m"], find.numbers()["n"]) == (4, 7) and find.numbers()["score"] == pytest.approx(first, **close)
    m, n = find("input[type=range]")
    press(n, *[Keys.ARROW_RIGHT] * 9)
    press(m, Keys.HOME)
    turned = rotary_score(query, key, speeds, 0, 16)
    for name in ("query", "key", "score"):
        assert find.numbers()[name] == pytest.approx(getattr(turned, name), **close)
    assert "another score" in find.said()
    find("button")[0].click()                                              # m is at 0: both can't go back
    assert (find.numbers()["m"], find.numbers()["n"]) == (0, 16)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", ["phone", "tablet", "projector"])
def test_nothing_is_wider_than_the_page(browser, page, pictures, name, size):
    browser.resize(size)
    page(ALL[name]())
    for dark in (False, True):
        browser.prefer(dark=dark)
        browser.picture(pictures / f"{name.replace(' ', '-')}-{size}{'-dark' if dark else ''}.png")
    assert browser.too_wide() == 0
