"""A reduction needs one barrier where the kernel computes it once, or others' barriers are between its exchanges."""

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
TWO_IN_A_LOOP = """
sums = T.alloc_var("float32", init=0)
most = T.alloc_fragment((1,), "float32")
for k in T.serial(4):
    for j in T.Parallel(2048):
        x[j] = T.if_then_else(j // 512 == k, A[bx, j], 0)
    T.reduce_sum(x, total, dim=0)
    T.reduce_max(x, most, dim=0)
    sums += total[0] + most[0] - most[0]
C[bx] = sums
"""
LEFT_EARLY = """
sums = T.alloc_var("float32", init=0)
most = T.alloc_fragment((1,), "float32")
for k in T.serial(9):
    for j in T.Parallel(2048):
        x[j] = T.if_then_else(j // 512 == k, A[bx, j], 0)
    T.reduce_sum(x, total, dim=0)
    sums += total[0]
    if k == 3:
        break
    T.reduce_max(x, most, dim=0)
    sums += most[0] - most[0]
C[bx] = sums
"""


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize(
    ("body", "ordered"),
    [
        (ONCE, True),
        (IN_A_BRANCH, True),
        (IN_A_LOOP, False),
        (TWICE, False),
        (TWO_IN_A_LOOP, True),
        (LEFT_EARLY, False),
    ],
    ids=["once", "in a branch", "in a loop", "twice", "two in a loop", "left early"],
)
def test_an_exchange_has_the_barriers_that_it_needs(tmp_path: Path, target: str, body: str, *, ordered: bool) -> None:
    kernel = load_body(tmp_path, TILES + body, PARAMS, grid="8", target=target)
    rows = np.random.default_rng(3).integers(-8, 8, (8, 2048)).astype(np.float32)
    assert np.array_equal(kernel(rows), rows.sum(axis=1))
    assert ("tl::ordered" in kernel.source) == ordered
