"""docs/errors.md is the table of codes; every code that the sources raise is in it."""

from __future__ import annotations

import re
from pathlib import Path

from errors_doc import page

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "docs/errors.md"


def test_page_is_what_the_table_says(update_emitted: bool) -> None:
    if update_emitted:
        DOC.write_text(page(), encoding="utf-8")
    assert DOC.read_text(encoding="utf-8") == page(), "run: pytest tests/golden --update-emitted"


def test_every_code_raised_is_explained() -> None:
    sources = [path for folder in ("transpile", "runtime") for path in sorted((ROOT / folder).rglob("*.py"))]
    raised = {code for path in sources for code in re.findall(r'"(T2C-[A-Z]\d{3})"', path.read_text(encoding="utf-8"))}
    assert raised
    assert raised - set(re.findall(r"^### (\S+):", DOC.read_text(encoding="utf-8"), re.MULTILINE)) == set()
