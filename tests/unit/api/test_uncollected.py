"""Cycles are collected after a transpilation, not during it; what a server froze is counted after much work only."""

import gc

import pytest

from tile2cu import uncollected


def frozen(monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """What is asked of the garbage collector, in which so many objects are frozen."""
    asked: list[str] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append("count") or count)
    monkeypatch.setattr(gc, "freeze", lambda: asked.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: asked.append("unfreeze"))
    return asked


@pytest.mark.parametrize(
    ("objects", "already", "expected"),
    [(10, 0, []), (30_000, 0, ["count", "freeze", "unfreeze"]), (30_000, 400_000, ["count"])],
)
def test_what_was_frozen_stays_so(
    objects: int, already: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = frozen(monkeypatch, already)
    with uncollected.uncollected():
        assert not gc.isenabled()
        kept = [[] for _ in range(objects)]
    assert asked == expected and gc.isenabled() and len(kept) == objects
