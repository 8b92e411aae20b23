"""Which loops that turn a shared tile's rows to a fragment's columns are copies by ldmatrix.trans."""

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
    def body(X: T.Tensor((K, 64), "{dtype}"), B: T.Tensor((K, 64), "float16"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            X_shared = T.alloc_shared((64, 64), "{dtype}")
            B_shared = T.alloc_shared((64, 64), "float16")
            A = T.alloc_fragment((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.clear(C)
            for k in T.Pipelined(K // 64, num_stages=2):
                T.copy(X[k * 64, 0], X_shared)
                T.copy(B[k * 64, 0], B_shared)
                for i, j in T.Parallel(64, 64):
                    A[i, j] = {element}
                T.gemm(A, B_shared, C)
            T.copy(C, Y)
    return body
"""


def _emitted(element: str, dtype: str = "float16", target: str = "cuda:sm_90a") -> str:
    text = _KERNEL.format(element=element, dtype=dtype)
    (emitted,) = emit_text(Path("small.py"), kernel=None, target=find(target), bindings={}, text=text)
    return emitted.files["small.cu"]


def test_a_loop_that_only_transposes_is_one_copy() -> None:
    source = _emitted("X_shared[j, i]")
    assert "tl::copy(tl::transposed(X_shared[k % num_stages]), A);" in source
    assert "tl::parallel" not in source


@pytest.mark.parametrize(
    ("element", "dtype", "target"),
    [
        ("X_shared[j, i] * X_shared[j, i]", "float16", "cuda:sm_90a"),
        ("X_shared[j, 63 - i]", "float16", "cuda:sm_90a"),
        ("X_shared[i, j]", "float16", "cuda:sm_90a"),
        ("X_shared[j, i]", "float32", "cuda:sm_90a"),
        ("X_shared[j, i]", "float16", "cuda:sm_80"),
    ],
)
def test_other_loops_stay_loops(element: str, dtype: str, target: str) -> None:
    source = _emitted(element, dtype, target)
    assert "tl::parallel" in source and "tl::copy(tl::transposed" not in source
