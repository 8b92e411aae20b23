"""One source in CuTe's style that runs for each change, as nvcc takes 20 s for CuTe's templates; others run each night.

It is the one that nvcc takes least for, and its launcher is not compiled. Each night: a product on Hopper; the example
of attention, stored somewhere in a matrix, and a second launch with pieces of kernels.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.ptx.test_cute import EXAMPLES, HOPPER, attention, integers
from tests.ptx.test_tiles_outside import AT, at
from tile2cu_runtime import Kernel
from tile2cu_runtime.compile import OBJECT, ptx_build
from tile2cu_runtime.ptx import Module

pytestmark = pytest.mark.needs("cutlass", "nvcc")


def test_vectors_are_added(tmp_path: Path) -> None:
    """The emitted text, with a last block that ends outside of the tensors."""
    text = EXAMPLES.parent / "emitted/cute/sm_80/vector_add.cu"
    build = ptx_build(str(text), architecture="sm_80", needs=("cutlass",))
    other = {"-c": "-ptx", OBJECT: "kernel.ptx"}
    subprocess.run([other.get(word, word) for word in build.compile if word != "--keep"], cwd=tmp_path, check=True)
    n = 1027
    module = Module.load(tmp_path / "kernel.ptx")
    a, b, c = integers(n).astype(np.float32), integers(n).astype(np.float32), np.zeros(n, np.float32)
    module.launch(module.find("kernel"), (2,), (256,), [a, b, c, n])
    np.testing.assert_array_equal(c, a + b)


PRODUCT = """
import tilelang
import tilelang.language as T


@tilelang.jit
def product(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[by * 64, k * 64], A_shared)
                T.copy(B[k * 64, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 64, bx * 64])

    return main
"""


@pytest.mark.nightly
def test_a_ragged_product(tmp_path: Path) -> None:
    """A ring of two stages that TMA fills by a producer, wgmma, TMA stores; sizes are known: one instance of each."""
    (tmp_path / "product.py").write_text(PRODUCT, encoding="utf-8")
    m, n, k = 70, 72, 264
    kernel = tile2cu.load(tmp_path / "product.py", device="ptx", target=HOPPER, style="cute", M=m, N=n, K=k)
    assert "tl::tma_store" in kernel.source
    a, b, c = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16), np.zeros((m, n), np.float16)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, (a.astype(float) @ b.astype(float)).astype(np.float16))


CHANGED = {
    "@tilelang.jit(out_idx=[-1])": "@tilelang.jit",
    "def attention(\n": "def attention(\n    rows, columns, M, N,\n",
    "        Output: T.Tensor(shape, dtype),\n": """\
        Output: T.Tensor((rows, columns), dtype),
        row: T.int32,
        vector: T.int32,
        X: T.Tensor((M, N), "float32"),
        Keep: T.Tensor((M, N), "bool"),
        Columns: T.Tensor((4,), "int32"),
        Sum: T.Tensor((N,), "float32"),
        Total: T.Tensor((8, 64), "float32"),
        Count: T.Tensor((4,), "int32"),
""",
    "T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])\n": """\
T.copy(acc_o, Output[row + bx * block_M, vector * 8 + by * dim])

        with T.Kernel(T.ceildiv(M, 8), T.ceildiv(N, 64), threads=64) as (bx, by):
            tile = T.alloc_shared((8, 64), "float32")
            kept = T.alloc_fragment((8, 64), "float32")
            column = T.alloc_fragment((8,), "float32")
            chosen = T.alloc_fragment((4,), "int32")
            largest = T.alloc_fragment((1,), "int32")
            T.fill(tile, 1.0)
            for i, j in T.Parallel(8, 64):
                kept[i, j] = T.if_then_else(Keep[bx * 8 + i, by * 64 + j], X[bx * 8 + i, by * 64 + j], 0.0)
            for i, j in T.Parallel(8, 64):
                tile[i, j] = tile[i, j] + kept[i, j]
            T.atomic_add(Total[0, 0], tile)
            T.copy(Columns, chosen)
            T.reduce_max(chosen, largest, dim=0)
            T.copy(X[bx * 8 : bx * 8 + 8, largest[0]], column)
            for i in T.Parallel(8):
                T.atomic_add(Sum[largest[0]], column[i])
            for i in T.Parallel(4):
                T.atomic_max(Count[i], chosen[i] + by)
""",
}
WIDTH = 264  # of the matrix


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory, quick_simulators: None) -> Kernel:
    text = (EXAMPLES / "attention.py").read_text(encoding="utf-8")
    for old, new in CHANGED.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    source = tmp_path_factory.mktemp("cute") / "attention.py"
    source.write_text(text, encoding="utf-8")
    sizes = {"columns": WIDTH, "dim": 128, "block_M": 128, "block_N": 128, "threads": 256, "is_causal": False}
    return tile2cu.load(source, device="ptx", target=HOPPER, style="cute", **sizes)


@pytest.mark.nightly
@pytest.mark.parametrize(("row", "column", "seq_len", "heads"), [(0, 0, 150, 2), *((*at, 33, 1) for at in AT)])
def test_attention_that_is_stored_at_any_place(kernel: Kernel, row: int, column: int, seq_len: int, heads: int) -> None:
    """Persistent: Q in registers, a ring of stages for K and one for V, both MMAs in flight at once.

    TMA stores a tile that begins inside of the matrix, all threads store others.
    """
    assert "    if (tl::wrapping_add(row, work.bx * block_M) >= 0 &&" in kernel.source
    assert "tl::tma_store_start" in kernel.source
    rng = np.random.default_rng(seq_len)
    q, k, v = (rng.standard_normal((1, seq_len, heads, 128)).astype(np.float16) for _ in range(3))
    result = np.full((160, WIDTH), -1, np.float16)
    x, keep, columns, sums, total, count = pieces(1, 1)
    kernel(q, k, v, result, row, column // 8, x, keep, columns, sums, total, count)
    padded = np.pad(q, ((0, 0), (0, -seq_len % 128), (0, 0), (0, 0)))  # rows behind the last query are stored, too
    tile = attention(padded, k, v, is_causal=False)[0].reshape(-1, heads * 128)
    np.testing.assert_allclose(result, at(tile, row, column, result.shape), atol=4e-3)


def pieces(m: int, n: int) -> tuple[np.ndarray, ...]:
    """X, Keep, Columns, Sum, Total and Count."""
    keep = np.random.default_rng(n).integers(0, 2, (m, n)).astype(bool)
    columns, zeros = np.array([3, 70, 5, 8], np.int32), np.zeros(n, np.float32)
    return integers(m, n).astype(np.float32), keep, columns, zeros, np.zeros((8, 64), np.float32), np.zeros(4, np.int32)


@pytest.mark.nightly
def test_pieces_of_a_kernel(kernel: Kernel) -> None:
    """Fills and atomic sums of shared tiles, bool, columns of a tensor, fragments that every thread holds."""
    x, keep, columns, sums, total, count = pieces(11, 77)
    q, result = np.zeros((1, 1, 1, 128), np.float16), np.zeros((8, WIDTH), np.float16)
    kernel(q, q, q, result, 0, 0, x, keep, columns, sums, total, count)
    wanted = np.pad(x * keep, ((0, 5), (0, 51))).reshape(2, 8, 2, 64).sum(axis=(0, 2)) + 4
    np.testing.assert_array_equal(total, wanted)
    np.testing.assert_array_equal(sums, np.where(np.arange(77) == 70, 2 * x[:, 70].sum(), 0))
    np.testing.assert_array_equal(count, columns + 1)
