"""How many blocks T.annotate_min_blocks_per_sm has fit a multiprocessor."""

from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.targets import find

_KERNEL = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def small(K=256):
    @T.prim_func
    def body(A: T.Tensor((128, K), "float16"), B: T.Tensor((K, 64), "float16"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            T.annotate_min_blocks_per_sm(3)
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((128, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(K // 64, num_stages=2):
                T.copy(A[0, k * 64], A_shared)
                T.copy(B[k * 64, 0], B_shared)
                T.gemm(A_shared, B_shared, sums)
            T.copy(sums, C)
    return body
"""


@pytest.mark.parametrize(
    ("target", "bounds"),
    [
        ("cuda:sm_80", "__launch_bounds__(threads, least_blocks)"),
        ("cuda:sm_90a", "__launch_bounds__(threads + tl::producer_threads, least_blocks)"),
        ("hip:gfx942", "__launch_bounds__(threads, waves_per_simd_by_registers)"),
    ],
)
def test_blocks_that_fit_a_multiprocessor(target: str, bounds: str) -> None:
    (emitted,) = emit_text(Path("small.py"), kernel=None, target=find(target), bindings={}, text=_KERNEL)
    text = emitted.files["small.hip" if target.startswith("hip") else "small.cu"]
    assert bounds in text and ("constexpr int least_blocks = 3;" in text) == target.startswith("cuda")
    assert "one block on a multiprocessor will do" not in text
