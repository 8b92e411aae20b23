"""Which copies read what nothing reads again."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.api import resolve_launches
from tile2cu.core.decisions import STREAMING
from tile2cu.core.program import Copy
from tile2cu.frontend import programs
from tile2cu.rules import Context
from tile2cu.targets import find

_LOOP = """
S = T.alloc_shared((64, 32), "float32")
L = T.alloc_fragment((64, 32), "float32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(X[{start}], S)
    T.copy(S, L)
{after}
"""
_GRID = """
import tilelang.language as T

M, N, K = T.dynamic("M, N, K")

@T.prim_func
def example(X: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "float16"), Y: T.Tensor((M, N), "float32")):
    with T.Kernel({grid}, threads=128) as (bn, m):
        x = T.alloc_shared((256,), "float16")
        w = T.alloc_shared((8, 256), "float16")
        sums = T.alloc_fragment((8, 256), "float32")
        total = T.alloc_fragment((8,), "float32")
        T.clear(sums)
        for k in T.Pipelined(T.ceildiv(K, 256), num_stages=2):
            T.copy(X[m, k * 256], x)
            T.copy(W[bn * 8, k * 256], w)
            for i, j in T.Parallel(8, 256):
                sums[i, j] += T.cast(w[i, j], "float32") * T.cast(x[j], "float32")
        T.reduce_sum(sums, total, dim=1)
        T.copy(total, Y[m, bn * 8])
"""


def once(context: Context) -> dict[str, list[str]]:
    """For each tensor that is read once: the sizes that must be 1."""
    copies = [stmt for stmt in context.statements if isinstance(stmt, Copy)]
    found = {copy.src.buffer.name: context.facts.get(copy, STREAMING) for copy in copies}
    return {name: [size.name for size in sizes] for name, sizes in found.items() if sizes is not None}


@pytest.mark.parametrize(
    ("start", "after", "alone"),
    [
        ("bx * 64, k * 32", "", True),
        ("0, k * 32", "", False),  # all blocks read the same
        ("bx * 64, 0", "", False),  # all turns do
        ("bx * 64, k * 32", "T.copy(X[bx * 64, 0], L)", False),
        ("bx * 64, k * 32", "T.copy(L, X[bx * 64, 0])", False),
    ],
)
def test_each_block_and_turn_has_a_part_of_its_own(start: str, after: str, alone: bool) -> None:
    assert ("X" in once(resolved(_LOOP.format(start=start, after=after)))) == alone


def test_what_a_product_reads_is_left_to_its_blocks() -> None:
    product = "T.gemm(S, S, C, transpose_B=True)"
    body = _LOOP.format(start="bx * 64, k * 32", after="").replace("float32", "float16").replace("X[", "Z[")
    assert once(resolved(body)) == {}, "rows of 64 bytes are half a line"
    body = body.replace("32", "64")
    assert once(resolved(body)) == {"Z": []}
    body = 'C = T.alloc_fragment((64, 64), "float32")' + body.replace("T.copy(S, L)", product)
    assert once(resolved(body)) == {}


@pytest.mark.parametrize(
    ("grid", "found"),
    [
        ("T.ceildiv(N, 8), M", {"W": ["M"]}),  # rows of X share W, and blocks of W share X
        ("T.ceildiv(N, 8), 1", {"W": []}),
        ("T.ceildiv(N, 8), 2", {}),
    ],
)
def test_a_size_that_must_be_1_is_asked_at_run_time(grid: str, found: dict[str, list[str]]) -> None:
    (program,) = programs(None, _GRID.format(grid=grid), kernel=None, bindings={})
    (context,) = resolve_launches(program, find("cuda:sm_80"))
    assert once(context) == found
