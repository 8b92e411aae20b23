"""The page of `tile2cu review` about a small kernel is the same, byte for byte.

After a deliberate change: pytest tests/golden --update-emitted, and look at the page in a browser.
"""

from __future__ import annotations

from pathlib import Path

from tests.golden.cases import ROOT
from tile2cu.api import one_resolved_kernel
from tile2cu.core.origin import EmitOptions, Tool
from tile2cu.review.kernel import reviewed
from tile2cu.review.page import page
from tile2cu.targets import find

PAGE = Path(__file__).with_name("pages") / "row_softmax.html"


def test_the_page_is_current(update_emitted: bool) -> None:
    path = ROOT / "examples" / "row_softmax.py"
    launches = one_resolved_kernel(path, None, target=find("cuda:sm_80"), bindings={})
    kernel = reviewed(launches, label="row_softmax", tool=Tool(version="0"), options=EmitOptions())
    text = page([kernel])
    if update_emitted:
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "run: pytest tests/golden --update-emitted"
