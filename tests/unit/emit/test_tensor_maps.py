"""Tensor maps: one for all tiles of one shape, and names that say for which tiles they are where there are several."""

from pathlib import Path

from tile2cu.api import emit_text
from tile2cu.targets import find

_KERNEL = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def halves(M, N, K):
    @T.prim_func
    def body(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 128 + RIGHT), T.ceildiv(M, 128), threads=256) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((128, 64), "float16")
            B_more = T.alloc_shared((RIGHT, 64), "float16")
            left = T.alloc_fragment((128, 128), "float32")
            right = T.alloc_fragment((128, RIGHT), "float32")
            T.clear(left)
            T.clear(right)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[by * 128, k * 64], A_shared)
                T.copy(B[bx * (128 + RIGHT), k * 64], B_shared)
                T.copy(B[bx * (128 + RIGHT) + 128, k * 64], B_more)
                T.gemm(A_shared, B_shared, left, transpose_B=True)
                T.gemm(A_shared, B_more, right, transpose_B=True)
            T.copy(left, C[by * 128, bx * (128 + RIGHT)])
            T.copy(right, C[by * 128, bx * (128 + RIGHT) + 128])
    return body


halves(1024, 1024, 1024)
"""


def _emitted(right: int) -> str:
    text = _KERNEL.replace("RIGHT", str(right))
    (emitted,) = emit_text(Path("halves.py"), kernel=None, target=find("cuda:sm_90a"), bindings={}, text=text)
    return emitted.files["halves.cu"]


def test_tiles_of_one_shape_have_one_map() -> None:
    text = _emitted(128)
    assert text.count("__grid_constant__ tl::TensorMap") == 3
    assert "tl::tma_store(left, left_staging, C_map," in text
    assert "tl::tma_store(right, right_staging, C_map," in text


def test_maps_of_one_tensor_are_named_for_their_tiles() -> None:
    text = _emitted(64)
    assert text.count("__grid_constant__ tl::TensorMap") == 5
    assert "tl::tma_store(right, right_staging, C_right_map," in text
    assert "tl::tma_load(B_B_more_map," in text
    assert "_map_1" not in text
