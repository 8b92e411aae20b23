"""What kernels' comments claim of each style's own code: the order of elements, asynchronous copies, fences, loads."""

from pathlib import Path

import pytest

import tile2cu
from tile2cu.styles.ck.shared import _union

HEADING = """
import tilelang
import tilelang.language as T

@tilelang.jit
def kernel({sizes}):
    @T.prim_func
"""

NIBBLES = (
    HEADING.format(sizes="N, K")
    + """
    def main(X: T.Tensor((K,), "float16"), W: T.Tensor((N, K // 2), "uint8"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 8), threads=128) as bx:
            P = T.alloc_shared((8, 512), "uint8")
            x = T.alloc_shared((1024,), "float16")
            sums = T.alloc_fragment((8, 1024), "float32")
            total = T.alloc_fragment((8,), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(K, 1024), num_stages=2):
                T.copy(W[bx * 8, k * 512], P)
                T.copy(X[k * 1024], x)
                for i, j in T.Parallel(8, 1024):
                    nibble = T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15
                    sums[i, j] += T.cast(nibble, "float16") * x[j]
            T.reduce_sum(sums, total, dim=1)
            T.copy(total, Y[bx * 8])
    return main
"""
)

FROM_THE_SECOND = (
    HEADING.format(sizes="N")
    + """
    def main(A: T.Tensor((16, N), "TYPE"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=64) as bx:
            first = T.alloc_shared((16, 64), "TYPE")
            sums = T.alloc_fragment((16, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 16 + OFFSET], first)
                for i, j in T.Parallel(16, 64):
                    sums[i, j] += first[i, 63 - j]
            T.copy(sums, C)
    return main
"""
)


def source(tmp_path: Path, text: str, style: str, target: str = "cuda:sm_80") -> str:
    (tmp_path / "kernel.py").write_text(text, encoding="utf-8")
    return tile2cu.emit(tmp_path / "kernel.py", style=style, target=target)["kernel"].source


def test_elements_are_in_the_order_of_unpacking_only_where_they_are_unpacked_together(tmp_path: Path) -> None:
    in_tl, in_cute = (source(tmp_path, NIBBLES, style) for style in ("tl", "cute"))
    for claim in ("in which they are unpacked\n", "permutation-invariant"):
        assert claim in in_tl and claim not in in_cute
    assert "interleaved(" in in_tl and "interleaved(" not in in_cute


@pytest.mark.parametrize(("dtype", "offset", "width"), [("float32", 1, 4), ("float16", 1, 0), ("float32", 4, 16)])
def test_data_is_evicted_first_by_cp_async_where_a_copy_has_one(
    dtype: str, offset: int, width: int, tmp_path: Path
) -> None:
    text = FROM_THE_SECOND.replace("TYPE", dtype).replace("OFFSET", str(offset))
    in_tl, in_cute = (source(tmp_path, text, style) for style in ("tl", "cute"))
    assert (f"cp.async.c{'g' if width == 16 else 'a'} of {width} bytes" in in_tl) == (width > 0)
    assert ("evict_first in L2 by cp.async where" in in_tl) == (width > 0)
    assert ("evict_first in L2 by cp.async of 16 bytes" in in_cute) == (width == 16)
    assert ("tl::copy_tile_once" in in_cute) == (width == 16)


WIDENED = (
    HEADING.format(sizes="M, N, K")
    + """
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "int8"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=256) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            b8 = T.alloc_shared((64, 128), "int8")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[k * 64, bx * 128], b8)
                for i, j in T.Parallel(64, 128):
                    b[i, j] = T.cast(b8[i, j], "float16")
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])
    return main
"""
)


@pytest.mark.parametrize(("target", "fenced"), [("cuda:sm_90a", True), ("cuda:sm_100a", False)])
def test_consumers_fence_what_wgmma_reads_and_nothing_that_threads_alone_read(
    target: str, fenced: bool, tmp_path: Path
) -> None:
    text = source(tmp_path, WIDENED, "tl", target)
    assert "RAW: all threads have stored b before any reads it" in text and "tl::sync_readers<threads>()" in text
    assert ("tl::sync_consumers<threads>()" in text) == fenced
    assert ("fence.proxy.async before it, for wgmma and TMA" in text) == fenced


def test_loads_to_registers_are_as_wide_as_their_tensors_view_lets_them(tmp_path: Path) -> None:
    """ck_tile loads no more neighbours together than a view's vectors have, whatever the registers' layout is."""
    text = FROM_THE_SECOND.replace("TYPE", "float32").replace("(16, N)", "(16, 256)").replace("OFFSET", "1")
    text = " ".join(source(tmp_path, text, "ck", "hip:gfx942").replace("//", " ").split())
    assert "number<1>{}, number<1>{});" in text
    assert "A lane issues 16 loads of 4 bytes to first_next, 16 vector-memory loads in flight per wave" in text
    text = FROM_THE_SECOND.replace("TYPE", "float32").replace("(16, N)", "(16, 256)").replace("OFFSET", "4")
    text = " ".join(source(tmp_path, text, "ck", "hip:gfx942").replace("//", " ").split())
    assert "A lane issues 4 loads of 16 bytes to first_next, 4 vector-memory loads in flight per wave" in text


def test_a_union_is_as_large_and_as_aligned_as_any_of_its_members() -> None:
    assert _union([(24, 4), (16, 16)]) == (32, 16) and _union([]) == (0, 1)
