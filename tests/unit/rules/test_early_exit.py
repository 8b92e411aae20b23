"""Blocks that would write nothing end at once, where memory decides that."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import EARLY_EXIT

KERNEL = """
{above}
for i, j in T.Parallel(64, 64):
    if {condition}:
        X[bx * 64 + i, j] = A[bx * 64 + i, j]
{below}
"""
LENGTH = 'length = T.cast(A[m, 0], "int32")'


def ends_at_once(condition: str = "bx * 64 + i < length", above: str = LENGTH, below: str = "") -> bool:
    context = resolved(KERNEL.format(condition=condition, above=above, below=below))
    return context.facts.get(context.launch, EARLY_EXIT) is not None


@pytest.mark.parametrize(
    "condition", ["bx * 64 + i < length", "i < length - bx * 64 and j < 32", "bx * 64 + 7 < length"]
)
def test_a_block_past_the_end_leaves(condition: str) -> None:
    assert ends_at_once(condition)


def test_a_length_may_be_found_by_a_loop() -> None:
    found = """
length = T.alloc_var("int32", 0)
for b in T.serial(m):
    if A[b, 0] > 0:
        length = b
last = length
"""
    assert ends_at_once("bx * 64 + i < last", above=found)
    assert not ends_at_once("bx * 64 + i < length", above=found), "it might change"


@pytest.mark.parametrize(
    "case",
    [
        {"below": "X[bx, 0] = 1.0"},
        {"below": "T.atomic_add(X[bx, 0], 1.0)"},
        {"below": "T.print(bx)"},
        {"above": 'length = T.cast(X[m, 0], "int32")'},
        {"above": "length = m"},
        {"condition": "bx * 64 + i < length or j < 5"},
        {"condition": "i + T.get_thread_binding() < length"},
        {"condition": "bx * 64 + i < m"},
    ],
)
def test_others_stay(case: dict[str, object]) -> None:
    assert not ends_at_once(**case)  # type: ignore[arg-type]
