"""docs/rules.md has every pass and every rule as they are now."""

from pathlib import Path

from rules_doc import page
from tile2cu.passes import PASSES
from tile2cu.rules import RULES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_catalogue_is_current(update_emitted: bool) -> None:
    path = DOCS / "rules.md"
    if update_emitted:
        path.write_text(page(), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert text == page(), "run: pytest tests/golden --update-emitted"
    for name in (*PASSES, *(rule.id for rule in RULES)):
        assert f"\n### {name}\n" in text
