"""The page of `tile2cu review` in a browser: hovers, clicks, tabs and keys work, and the console stays empty."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import demand
from tile2cu.cli import main

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
pytestmark = [pytest.mark.nightly, pytest.mark.needs("browser")]

# Runs behind the page's own script, and leaves what it finds in an element that --dump-dom prints.
SCRIPT = """
<script>
const found = {errors: []};
addEventListener("error", (event) => found.errors.push(event.message));
const one = (selector) => document.querySelector(selector);
const fire = (element, kind, more) =>
  element.dispatchEvent(new MouseEvent(kind, {bubbles: true, cancelable: true, ...more}));
const python = [...document.querySelectorAll("#k1 .python li")].find((each) => each.querySelector("a.n"));
const other = one(python.querySelector("a.n").getAttribute("href"));
fire(python, "mouseenter");
found.hit = other.classList.contains("hit");
fire(python, "mouseleave");
found.left = other.classList.contains("hit");
const last = [...document.querySelectorAll("#k1 .python li")].filter((each) => each.querySelector("a.n")).pop();
const pane = one("#k1 .emitted").closest(".pane");
fire(last, "click", {detail: 1});
found.scrolled = pane.scrollTop > 0;
const place = one(last.querySelector("a.n").getAttribute("href")).getBoundingClientRect();
found.visible = place.top >= pane.getBoundingClientRect().top && place.bottom <= pane.getBoundingClientRect().bottom;
found.pinned = document.querySelectorAll("#k1 .emitted .pin").length > 0;
fire(python.querySelector("a.n"), "click", {detail: 0});
found.focused = document.activeElement.closest(".emitted") !== null;
const [first, second] = document.querySelectorAll('[role="tab"]');
first.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true, cancelable: true}));
found.tab = [one("#k1").hidden, one("#k2").hidden, document.activeElement === second, first.tabIndex, second.tabIndex];
fire(first, "click");
found.back = [one("#k1").hidden, one("#k2").hidden];
const why = one("#k1 details.why");
fire(why.querySelector("summary"), "click");
found.open = why.open;
found.unnamed = [...document.querySelectorAll("a, button, summary, svg, [role]")]
  .filter((each) => each.checkVisibility() && !each.computedName && !["TABLE", "MAIN"].includes(each.tagName))
  .map((each) => each.outerHTML.slice(0, 120));
found.network = performance.getEntriesByType("resource").map((each) => each.name);
found.wide = document.documentElement.scrollWidth > innerWidth;
const result = document.createElement("pre");
result.id = "result";
result.textContent = JSON.stringify(found);
document.body.append(result);
</script>
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What the script finds, and what the browser logs."""
    place = tmp_path_factory.mktemp("browser") / "page.html"
    targets = ["--target", "cuda:sm_80", "--target", "hip:gfx942"]
    assert main(["review", str(EXAMPLES / "gemm_relu.py"), *targets, "--no-compile", "-o", str(place)]) == 0
    place.write_text(place.read_text(encoding="utf-8").replace("</body>", SCRIPT + "</body>"), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1400,900"]
    flags += ["--enable-blink-features=ComputedAccessibilityInfo", f"--user-data-dir={place.parent / 'profile'}"]
    command = [demand("browser"), *flags, "--dump-dom", place.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    result = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert result is not None, done.stderr
    return json.loads(unescape(result[1])), done.stderr


Run = tuple[dict[str, Any], str]


def test_nothing_is_logged_or_fetched(run: Run) -> None:
    found, log = run
    assert found["errors"] == [] and found["network"] == []
    assert [line for line in log.splitlines() if "CONSOLE" in line] == []


def test_a_pointer_marks_the_lines_of_both_sources(run: Run) -> None:
    assert run[0]["hit"] and not run[0]["left"]


def test_a_click_scrolls_the_other_source_to_the_line(run: Run) -> None:
    found = run[0]
    assert found["scrolled"] and found["visible"] and found["pinned"]


def test_the_keyboard_follows_a_line(run: Run) -> None:
    assert run[0]["focused"] and run[0]["open"]


def test_tabs(run: Run) -> None:
    assert run[0]["tab"] == [True, False, True, -1, 0]
    assert run[0]["back"] == [False, True]


def test_everything_has_a_name_for_screen_readers(run: Run) -> None:
    assert run[0]["unnamed"] == []


def test_the_page_is_as_wide_as_the_window(run: Run) -> None:
    assert not run[0]["wide"]
