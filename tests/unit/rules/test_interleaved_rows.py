"""Which operands of MFMAs are transposed by the copies that write them to the LDS."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved, subject
from tile2cu.core.decisions import LAYOUT, SHARED_LAYOUT
from tile2cu.core.layout import SharedLayout

BODY = """
A_shared = T.alloc_shared({a}, "float16")
B_shared = T.alloc_shared(({depth}, {columns}), "float16")
C_local = T.alloc_fragment((128, {columns}), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    {load}
    {before}
    T.gemm(A_shared, B_shared, C_local{options})
{after}
T.copy(C_local, X[0, 0])
"""
USUAL = {
    "a": "(128, 64)", "depth": "64", "columns": "128", "load": "T.copy(Z[k * 64, 128], B_shared)", "before": "",
    "options": "", "after": "",
}  # fmt: skip


def stored(name: str, *, target: str = "hip:gfx942", threads: int = 256, **changed: str) -> SharedLayout:
    """How a tile is stored."""
    context = resolved(BODY.format(**USUAL | changed), threads=threads, target=target)
    return context.facts[subject(context, name), SHARED_LAYOUT]


@pytest.mark.parametrize("target", ["hip:gfx942", "hip:gfx90a"])
def test_k_across_the_rows(target: str) -> None:
    assert str(stored("B_shared", target=target)) == "rows interleaved by 4"
    assert str(stored("A_shared", target=target)) == "128-byte swizzle"
    of_8_bytes = {"depth": "32", "a": "(128, 32)"}
    assert str(stored("B_shared", target=target, **of_8_bytes)) == "rows interleaved by 4"
    transposed = {"a": "(64, 128)", "options": ", transpose_A=True"}
    assert str(stored("A_shared", target=target, **transposed)) == "rows interleaved by 4"


def test_a_lane_has_neighbouring_columns_of_two_mfmas() -> None:
    context = resolved(BODY.format(**USUAL), threads=256, target="hip:gfx942")
    assert "interleave=2" in str(context.facts[subject(context, "C_local"), LAYOUT])


KEPT = {
    "reads that transpose": {"target": "hip:gfx950"},
    "pieces that threads have not equally": {"depth": "16", "a": "(128, 16)"},
    "columns that are no whole pieces of 4 lanes": {"columns": "48", "threads": 64},
    "one wave along M": {"options": ", policy=T.GemmWarpPolicy.FullCol"},
    "converted": {"load": "T.copy(X[k * 64, 128], B_shared)"},
    "written by a loop": {"before": "for i, j in T.Parallel(64, 128):\n        B_shared[i, j] = B_shared[i, j] * 2"},
    "read by a copy": {"after": "T.copy(B_shared, Z[0, 0])"},
    "read as its transpose, too": {
        "columns": "64", "a": "(128, 64)",
        "after": 'D = T.alloc_fragment((128, 64), "float32")\nT.gemm(A_shared, B_shared, D, transpose_B=True)',
    },
}  # fmt: skip


@pytest.mark.parametrize("change", KEPT.values(), ids=KEPT.keys())
def test_others_are_stored_row_by_row(change: dict[str, object]) -> None:
    assert stored("B_shared", **change).rows_interleaved == 1  # type: ignore[arg-type]


def test_tiles_with_equal_columns_have_one_layout_of_accumulators() -> None:
    """One that cannot be transposed keeps the other from it: both GEMMs interleave as many MFMAs."""
    second = """
D_shared = T.alloc_shared((64, 128), "float16")
D_local = T.alloc_fragment((128, 128), "float32")
T.copy({source}[0, 256], D_shared)
T.gemm(A_shared, D_shared, D_local)
"""
    for source, rows in (("Z", 4), ("X", 1)):
        after = second.format(source=source)
        assert [stored(name, after=after).rows_interleaved for name in ("B_shared", "D_shared")] == [rows, rows]
