"""emitted/ is what tile2cu emits now.

After a deliberate change: pytest tests/golden --update-emitted, and review the diff.
"""

import difflib
import re
from pathlib import Path

import pytest

from tests.golden.cases import EMITTED, GOLDEN, ROOT, Golden

of_goldens = pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden.folder}/{golden.example}")


@of_goldens
def test_emitted_is_current(golden: Golden, update_emitted: bool) -> None:
    """What heads state of other values of tile parameters is only decided anew where emitted/ is rewritten."""
    emitted = golden.current if update_emitted else golden.quickly_emitted()
    assert [warning.render() for one in emitted for warning in one.warnings] == [], "no example has a warning"
    for name, text in golden.files_of(emitted).items():
        place = EMITTED / name
        if update_emitted:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        assert place.exists(), f"emitted/{name} is missing: run pytest tests/golden --update-emitted"
        assert place.read_text(encoding="utf-8") == text, _difference(place, text)
    assert update_emitted or golden.written().keys() == golden.files_of(emitted).keys()


@pytest.mark.sweep(every=16)
@of_goldens
def test_heads_state_what_other_values_give_now(golden: Golden, update_emitted: bool) -> None:
    if not update_emitted:
        for name, text in golden.files().items():
            place = EMITTED / name
            assert place.read_text(encoding="utf-8") == text, _difference(place, text)


def test_nothing_else_lies_in_emitted(update_emitted: bool) -> None:
    """test_emitted_is_current checks that an example's manifests list what is emitted: here nothing is."""
    known = {
        name for golden in GOLDEN for name in (golden.files_of(golden.current) if update_emitted else golden.written())
    }
    found = {str(path.relative_to(EMITTED)) for path in EMITTED.rglob("*") if path.is_file()}
    if update_emitted:
        for name in found - known:
            (EMITTED / name).unlink()
        found &= known
    assert found == known


@pytest.mark.parametrize(
    "path",
    sorted(path for kind in ("cu", "hip", "h") for path in EMITTED.rglob(f"*.{kind}")),
    ids=lambda path: str(path.relative_to(EMITTED)),
)
def test_a_reviewer_can_read_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.isascii()
    assert max(len(line) for line in text.splitlines()) <= 120
    assert "asm" not in text and "reinterpret_cast" not in text
    macros = re.findall(r"#define (\w+)", text)
    assert macros in ([], ["TL_GROUP"]), "tl/threads.h reads one macro: the threads of each group"
    products = re.findall(r"tl::gemm\w*\([^;]*;", text)
    assert len(products) == len(set(products)), "a loop body appears once"


def _difference(place: Path, text: str) -> str:
    lines = difflib.unified_diff(
        place.read_text(encoding="utf-8").splitlines(),
        text.splitlines(),
        str(place.relative_to(ROOT)),
        "emitted now",
        lineterm="",
    )
    return "\n".join(["what is emitted has changed; if that is meant, run with --update-emitted:", *list(lines)[:60]])
