"""The headers that styles include are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STYLES = ROOT / "transpile/tile2cu/styles"
NAMED = sorted(
    {name for path in STYLES.rglob("*.py") for name in re.findall(r'"([a-z0-9_/]+\.h)"', path.read_text("utf-8"))}
)


def test_some_are_named() -> None:
    assert {"tl.h", "sm90/wgmma_half.h"} <= set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_a_header_exists(name: str) -> None:
    assert (ROOT / "headers/tl" / name).is_file()
