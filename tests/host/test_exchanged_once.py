"""A reduction that a kernel computes once needs one barrier; one that repeats, or shares its memory, needs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

PARAMS = 'A: T.Tensor((8, 2048), "float32"), C: T.Tensor((8,), "float32")'
TILES = """
x = T.alloc_fragment((2048,), "float32")
total = T.alloc_fragment((1,), "float32")
"""
ONCE = """
T.copy(A[bx, 0:2048], x)
T.reduce_sum(x, total, dim=0)
C[bx] = total[0]
"""
IN_A_BRANCH = """
T.copy(A[bx, 0:2048], x)
T.fill(total, 0)
if bx < 8:
    T.reduce_sum(x, total, dim=0)
C[bx] = total[0]
"""
IN_A_LOOP = """
sums = T.alloc_var("float32", init=0)
for k in T.serial(4):
    for j in T.Parallel(2048):
        x[j] = T.if_then_else(j // 512 == k, A[bx, j], 0)
    T.reduce_sum(x, total, dim=0)
    sums += total[0]
C[bx] = sums
"""
TWICE = """
first = T.alloc_var("float32", init=0)
for j in T.Parallel(2048):
    x[j] = T.if_then_else(j < 1000, A[bx, j], 0)
T.reduce_sum(x, total, dim=0)
first += total[0]
for j in T.Parallel(2048):
    x[j] = T.if_then_else(j < 1000, 0, A[bx, j])
T.reduce_sum(x, total, dim=0)
C[bx] = first + total[0]
"""


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize(
    ("body", "once"),
    [(ONCE, True), (IN_A_BRANCH, True), (IN_A_LOOP, False), (TWICE, False)],
    ids=["once", "in a branch", "in a loop", "twice"],
)
def test_a_repeated_reduction_keeps_both_barriers(tmp_path: Path, target: str, body: str, *, once: bool) -> None:
    kernel = load_body(tmp_path, TILES + body, PARAMS, grid="8", target=target)
    rows = np.random.default_rng(3).integers(-8, 8, (8, 2048)).astype(np.float32)
    assert np.array_equal(kernel(rows), rows.sum(axis=1))
    assert ("tl::used_once" in kernel.source) == once
