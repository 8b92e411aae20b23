"""The page of `tile2cu review` in a browser: hovers, clicks, tabs and keys work, and all of it is legible."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import demand
from tile2cu.cli import main

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
pytestmark = [pytest.mark.nightly, pytest.mark.needs("browser", "webdriver")]
CASES = [("attention", "cuda:sm_90a"), ("gemm_relu", "cuda:sm_80"), ("attention", "hip:gfx942")]
# Texts whose contrast with what is behind them is less than WCAG's 4.5.
FAINT = """
const luminance = ([r, g, b]) => [r, g, b].map((each) => each / 255)
  .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
  .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
const colour = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = colour(getComputedStyle(each).backgroundColor);
    if (found.length < 4 || found[3] === 1) return found.slice(0, 3);
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll("body *:not(script, style, svg rect, svg circle)")].filter((element) => {
  const own = [...element.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
  const label = element.closest("svg") && !element.matches(".axis, .note");  // on a bright rectangle
  if (!own || label || element.closest("title, desc, .sr, .skip") || !element.checkVisibility()) return false;
  const style = getComputedStyle(element);
  const front = luminance(colour(element.closest("svg") ? style.fill : style.color));
  const back = luminance(behind(element));
  return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05) < 4.5;
}).map((element) => element.outerHTML.slice(0, 120));
"""
# Texts of pictures that are cut at the edge of their picture.
CUT = """
return [...document.querySelectorAll("svg text")].filter((text) => {
  const box = text.getBoundingClientRect(), around = text.closest("svg").getBoundingClientRect();
  return box.left < around.left - 1 || box.right > around.right + 1 || box.bottom > around.bottom + 1;
}).map((text) => text.textContent);
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = importlib.import_module("selenium.webdriver")
    options, service = webdriver.ChromeOptions(), webdriver.ChromeService(demand("webdriver"))
    options.binary_location = demand("browser")
    profile = tmp_path_factory.mktemp("profile")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=service)
    found.set_window_size(1440, 900)
    yield found
    found.quit()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("browser") / "page.html"
    targets = ["--target", "cuda:sm_80", "--target", "hip:gfx942"]
    assert main(["review", str(EXAMPLES / "gemm_relu.py"), *targets, "--no-compile", "-o", str(place)]) == 0
    return place


@pytest.fixture
def page(driver: Any, place: Path) -> Any:
    """The driver, with the page as it is when it is opened."""
    driver.get(place.as_uri())
    return driver


def one(page: Any, selector: str) -> Any:
    return page.find_element("css selector", selector)


def linked(page: Any) -> list[Any]:
    """The links of the Python lines that have lines in the emitted source."""
    found: list[Any] = page.find_elements("css selector", "#k1 .python a.n")
    return found


def other_line(page: Any, link: Any) -> Any:
    return one(page, "#" + link.get_attribute("href").partition("#")[2])


def keys(page: Any, *names: str) -> None:
    chain = importlib.import_module("selenium.webdriver").ActionChains(page)
    words = importlib.import_module("selenium.webdriver").Keys
    for name in names:
        chain.send_keys(getattr(words, name))
    chain.perform()


def test_nothing_is_logged_or_fetched(page: Any) -> None:
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_a_pointer_marks_the_lines_of_both_sources(page: Any) -> None:
    chain = importlib.import_module("selenium.webdriver").ActionChains(page)
    link = linked(page)[0]
    chain.move_to_element(link).perform()
    assert "hit" in other_line(page, link).get_attribute("class")
    chain.move_to_element(one(page, "h1")).perform()
    assert "hit" not in other_line(page, link).get_attribute("class")


def test_a_click_scrolls_the_other_source_to_the_line(page: Any) -> None:
    link = linked(page)[-1]
    link.click()
    line, pane = other_line(page, link).rect, one(page, "#k1 .pane:nth-child(2)").rect
    assert pane["y"] <= line["y"] and line["y"] + line["height"] <= pane["y"] + pane["height"]
    assert page.find_elements("css selector", "#k1 .emitted .pin")


def test_the_keyboard_follows_a_line_and_opens_decisions(page: Any) -> None:
    page.execute_script("arguments[0].focus()", linked(page)[0])
    keys(page, "ENTER")
    assert page.execute_script("return document.activeElement.closest('.emitted') !== null")
    page.execute_script("arguments[0].focus()", one(page, "#k1 details.why summary"))
    keys(page, "ENTER")
    assert one(page, "#k1 details.why").get_attribute("open")


def test_tabs(page: Any) -> None:
    def shown() -> list[bool]:
        return [one(page, name).is_displayed() for name in ("#k1", "#k2")]

    first, second = page.find_elements("css selector", '[role="tab"]')
    assert shown() == [True, False]
    first.click()
    keys(page, "ARROW_RIGHT")
    assert shown() == [False, True] and page.switch_to.active_element == second
    assert [tab.get_attribute("aria-selected") for tab in (first, second)] == ["false", "true"]
    keys(page, "HOME")
    assert shown() == [True, False] and page.switch_to.active_element == first


def test_a_link_into_another_tab_opens_it(driver: Any, place: Path) -> None:
    driver.get(place.as_uri() + "#k2-resources")
    driver.refresh()
    assert one(driver, "#k2").is_displayed() and not one(driver, "#k1").is_displayed()


def test_everything_has_a_name_for_screen_readers(page: Any) -> None:
    selectors = 'a, button, summary, svg, [role="region"], [role="tab"], [role="tabpanel"], nav, table'
    for element in page.find_elements("css selector", selectors):
        assert not element.is_displayed() or element.accessible_name, element.get_attribute("outerHTML")[:120]


@pytest.mark.parametrize("width", [1440, 900, 500])
def test_the_page_is_as_wide_as_the_window(page: Any, width: int) -> None:
    page.set_window_size(width, 900)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.set_window_size(1440, 900)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_three_kernels_are_legible(driver: Any, tmp_path: Path, name: str, target: str) -> None:
    """In bright and dark colours; no label of a picture is cut."""
    place = tmp_path / "page.html"
    command = ["review", str(EXAMPLES / f"{name}.py"), "--target", target, "--no-compile"]
    assert main([*command, "-o", str(place)]) == 0
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        driver.get(place.as_uri())
        assert driver.execute_script(FAINT) == []
        assert driver.execute_script(CUT) == []


def test_a_print_has_all_tabs_and_whole_sources(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert all(one(page, name).is_displayed() for name in ("#k1", "#k2"))
        for pane in page.find_elements("css selector", ".pane"):
            assert page.execute_script("return arguments[0].scrollHeight <= arguments[0].clientHeight + 2", pane)
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
