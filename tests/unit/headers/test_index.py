"""docs/tl.md is the index of the names in emitted text."""

from __future__ import annotations

import re
from pathlib import Path

NAME = re.compile(r"\btl::(\w+)")


def test_each_name_in_emitted_text_is_in_the_index(root: Path) -> None:
    texts = list((root / "emitted" / "cuda" / "sm_80").rglob("*.cu"))
    assert texts
    index = set(re.findall(r"\w+", (root / "docs" / "tl.md").read_text(encoding="utf-8")))
    used = {name for text in texts for name in NAME.findall(text.read_text(encoding="utf-8"))}
    assert used - index == set()


def test_each_name_in_the_index_is_declared(root: Path) -> None:
    headers = "\n".join(header.read_text(encoding="utf-8") for header in (root / "headers" / "tl").rglob("*.h"))
    declared = set(re.findall(r"\w+", headers))
    assert set(NAME.findall((root / "docs" / "tl.md").read_text(encoding="utf-8"))) - declared == set()
