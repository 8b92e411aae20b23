"""Which loops provably have an iteration in every block that runs."""

from pathlib import Path

import pytest

from tile2cu.analysis.trips import runs_at_least_once
from tile2cu.analysis.uses import statements
from tile2cu.api import resolved_kernels
from tile2cu.core.program import Loop
from tile2cu.targets import find

FILE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, M, block=64):
    @T.prim_func
    def main(A: T.Tensor((N, M), "float32"), n: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            tile = T.alloc_fragment((block,), "float32")
            T.clear(tile)
            for k in T.serial({trips}):
                for i in T.Parallel(block):
                    tile[i] += 1.0
            T.copy(tile, A[bx, 0:block])
    return main
"""


@pytest.mark.parametrize(
    ("trips", "runs"),
    [
        ("T.ceildiv(N, 32)", True),
        ("N", True),
        ("T.min(T.ceildiv(N, 32), T.ceildiv((bx + 1) * block, 32))", True),
        ("4", True),
        ("bx + 1", True),
        ("bx", False),
        ("M", False),
        ("T.ceildiv(M, 32)", False),
        ("N // 32", False),
        ("N - 1", False),
        ("T.min(N, M)", False),
        ("n[bx]", False),
        ("1, N", False),
    ],
)
def test_a_loop_runs_where_the_grid_has_blocks(tmp_path: Path, trips: str, runs: bool) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(FILE.format(trips=trips))
    ((found,),) = resolved_kernels(path, kernel=None, target=find("cuda:sm_80"), bindings={})
    (loop,) = statements(found.launch.body, Loop)
    assert runs_at_least_once(loop, found.launch, found.bounds) is runs
