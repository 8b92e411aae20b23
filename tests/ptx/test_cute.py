"""Kernels in CuTe's style: their launchers and nvcc's PTX, on the PTX machine, against NumPy and the style tl."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tests import style_forms
from tile2cu_runtime import DeviceError, Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RNG = np.random.default_rng(21)

pytestmark = pytest.mark.needs("cutlass", "nvcc")


def load(name: str, style: str = "cute", target: str = "cuda:sm_80", **bindings: object) -> Kernel:
    return tile2cu.load(EXAMPLES / f"{name}.py", device="ptx", style=style, target=target, **bindings)


def integers(*shape: int) -> np.ndarray:
    """Small integers: their products and sums are exact, in whatever order they are added."""
    return RNG.integers(-4, 5, shape)


# nvcc takes a third less for a tile of one warp than for the example's of four, whose loops it unrolls.
ONE_WARP = {"block_M": 32, "block_N": 32, "threads": 32}


@pytest.mark.nightly  # for each change: test_cute_kernel.py runs one text, tests/golden has all
@pytest.mark.parametrize("sizes", [(136, 264, 72), (131, 78, 46), (131, 78, 45), (131, 77, 45), (1, 8, 1), (5, 3, 0)])
@pytest.mark.parametrize("tile", [ONE_WARP, {}], ids=["one warp", "four"])
def test_gemm_relu(tile: dict[str, int], sizes: tuple[int, int, int]) -> None:
    """Rows that start at multiples of 16 bytes take one instance, of 4 bytes another, and others a third."""
    m, n, k = sizes
    a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
    found = load("gemm_relu", **tile)(a, b)
    np.testing.assert_array_equal(found, np.maximum(a.astype(float) @ b.astype(float), 0).astype(np.float16))
    assert found.tobytes() == load("gemm_relu", "tl", **tile)(a, b).tobytes()


TRANSPOSED = {"dtype": "bfloat16", "out_dtype": "float32", "transpose_A": True, "transpose_B": True, "bias": True}


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(136, 264, 72), (131, 77, 45)])
def test_gemm_of_transposed_operands_with_a_bias(sizes: tuple[int, int, int]) -> None:
    """Both operands through the other ldmatrix; the epilogue reads a tensor at the loop's own indices."""
    m, n, k = sizes
    a, b = (integers(*shape).astype(ml_dtypes.bfloat16) for shape in ((k, m), (n, k)))
    bias = integers(n).astype(np.float32)
    found = load("gemm", **TRANSPOSED)(a, b, bias)
    np.testing.assert_array_equal(found, a.astype(np.float32).T @ b.astype(np.float32).T + bias)
    assert found.tobytes() == load("gemm", "tl", **TRANSPOSED)(a, b, bias).tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(136, 144, 96), (131, 77, 45)])
def test_gemm_of_int8(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b = (integers(*shape).astype(np.int8) for shape in ((m, k), (n, k)))
    types = {"dtype": "int8", "out_dtype": "int32", "accum_dtype": "int32"}
    found = load("gemm", transpose_B=True, **types)(a, b)
    np.testing.assert_array_equal(found, a.astype(np.int32) @ b.astype(np.int32).T)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(70, 136, 256), (131, 77, 200)])
def test_gemm_of_float8_as_half(sizes: tuple[int, int, int]) -> None:
    """ldmatrix loads pairs of bytes, which become the operands of two MMAs."""
    m, n, k = sizes
    a, b = (integers(*shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((m, k), (n, k)))
    scales = [RNG.integers(1, 3, shape).astype(np.float32) for shape in ((m, 2), (-(-n // 128), 2))]
    found = load("gemm_fp8_scaled")(a, b, *scales)
    wide = [each.astype(np.float32) for each in (a, b)]
    rows, columns = scales[0].repeat(128, axis=1)[:, :k], scales[1].repeat(128, axis=0)[:n].repeat(128, axis=1)[:, :k]
    np.testing.assert_array_equal(found, ((wide[0] * rows) @ (wide[1] * columns).T).astype(ml_dtypes.bfloat16))
    assert found.tobytes() == load("gemm_fp8_scaled", "tl")(a, b, *scales).tobytes()


@pytest.mark.nightly
def test_batched_gemm() -> None:
    a, b = (integers(*shape).astype(np.float16) for shape in ((3, 72, 40), (3, 40, 136)))
    found = load("gemm_batched", kernel="gemm_batched")(a, b)
    np.testing.assert_array_equal(found, (a.astype(float) @ b.astype(float)).astype(np.float16))


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ["gemm_splitk", "gemm_splitk_atomic"])
def test_split_k(kernel: str) -> None:
    """Partial results in a workspace, which a second launch adds; or added atomically."""
    a, b = (integers(*shape).astype(np.float16) for shape in ((72, 520), (520, 136)))
    split = load("gemm_splitk", kernel=kernel)
    found = np.zeros((72, 136), np.float32)
    if kernel == "gemm_splitk":
        found = split(a, b)
    else:
        split(a, b, found)
    np.testing.assert_array_equal(np.asarray(found, np.float32), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("size", [1024, 1027, 5, 0])
@pytest.mark.nightly
def test_vector_add(size: int) -> None:
    """The last vector of a tensor may end outside of it."""
    a, b = (RNG.standard_normal(size).astype(np.float32) for _ in range(2))
    np.testing.assert_array_equal(load("vector_add")(a, b), a + b)


SHIFTED = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def shifted(M, N):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 4), threads=64) as (bx, by):
            tile = T.alloc_shared((4, 64), "float32")
            T.copy(X[by * 4 - 1, bx * 64 - 3], tile)
            T.copy(tile, Y[by * 4, bx * 64])

    return main
"""


@pytest.mark.nightly
def test_a_box_that_begins_outside_of_its_tensor(tmp_path: Path) -> None:
    """Coordinates below zero are out of bounds as well: they load zeros."""
    (tmp_path / "shifted.py").write_text(SHIFTED, encoding="utf-8")
    x = RNG.standard_normal((6, 77)).astype(np.float32)
    found = tile2cu.load(tmp_path / "shifted.py", device="ptx", style="cute")(x)
    np.testing.assert_array_equal(found, np.pad(x, ((1, 0), (3, 0)))[:6, :77])


THROUGH_SHARED = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def through_shared(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_shared = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 64, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C_shared)
            T.copy(C_shared, C[by * 64, bx * 64])

    return main
"""


@pytest.mark.nightly
def test_warps_whose_instructions_alternate(tmp_path: Path) -> None:
    """4 warps share 192 columns: no swizzled tile has an offset of 48 columns."""
    wide = THROUGH_SHARED.replace("threads=128", "threads=256").replace("N, 64)", "N, 192)").replace("M, 64)", "M, 32)")
    for old, new in (("(64, 32)", "(32, 32)"), ("(32, 64)", "(32, 192)"), ("(64, 64)", "(32, 192)")):
        wide = wide.replace(old, new)
    wide = wide.replace("by * 64", "by * 32").replace("bx * 64", "bx * 192")
    (tmp_path / "through_shared.py").write_text(wide, encoding="utf-8")
    kernel = tile2cu.load(tmp_path / "through_shared.py", device="ptx", style="cute")
    for m, n, k in ((40, 200, 40), (67, 77, 45)):
        a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
        np.testing.assert_array_equal(kernel(a, b), (a.astype(float) @ b.astype(float)).astype(np.float16))


@pytest.mark.nightly
def test_an_accumulator_stored_through_a_swizzled_shared_tile(tmp_path: Path) -> None:
    """The shape of a tile that repeats an atom is hierarchical; coordinates in it have one number per dimension."""
    (tmp_path / "through_shared.py").write_text(THROUGH_SHARED, encoding="utf-8")
    kernel = tile2cu.load(tmp_path / "through_shared.py", device="ptx", style="cute")
    for m, n, k in ((72, 136, 40), (67, 77, 45)):
        a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
        np.testing.assert_array_equal(kernel(a, b), (a.astype(float) @ b.astype(float)).astype(np.float16))


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [6, 1])
def test_row_softmax(rows: int) -> None:
    """The partition overhangs the tile of 1000 columns: reductions leave its elements outside out."""
    x = RNG.standard_normal((rows, 1000)).astype(np.float32) - 5  # zeros outside would be the maximum
    wanted = np.exp(x - x.max(axis=1, keepdims=True))
    found = load("row_softmax", N=1000)(x)
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), rtol=2e-5)


@pytest.mark.nightly
def test_rmsnorm() -> None:
    """Warps that share a row exchange their sums through shared memory."""
    x, w = RNG.standard_normal((3, 4096)).astype(np.float16), RNG.standard_normal(4096).astype(np.float16)
    wide = x.astype(np.float32)
    wanted = wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-5) * w.astype(np.float32)
    found = np.asarray(load("rmsnorm", dim=4096)(x, w), np.float32)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-3)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, is_causal: bool) -> np.ndarray:
    """softmax(Q @ K^T / sqrt(dim)) @ V of (batch, seq_len, heads, dim) in float32."""
    q, k, v = (each.astype(np.float32).transpose(0, 2, 1, 3) for each in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray((weights / weights.sum(axis=-1, keepdims=True) @ v).transpose(0, 2, 1, 3))


@pytest.mark.parametrize("shape", [(1, 150, 2, 128), (2, 64, 1, 128), (1, 1, 1, 128)])
@pytest.mark.nightly
@pytest.mark.parametrize("is_causal", [True, False])
def test_attention(shape: tuple[int, ...], is_causal: bool) -> None:
    """The first MMA's accumulator is the second's A operand, from lane to lane the same registers."""
    q, k, v = (RNG.standard_normal(shape).astype(np.float16) for _ in range(3))
    found = np.asarray(load("attention", dim=128, is_causal=is_causal)(q, k, v), np.float32)
    np.testing.assert_allclose(found, attention(q, k, v, is_causal=is_causal), atol=4e-3)


def test_the_cpu_engine_does_not_take_it() -> None:
    with pytest.raises(DeviceError, match="includes cutlass, which g\\+\\+ cannot compile"):
        tile2cu.load(EXAMPLES / "gemm_relu.py", device="cpu", style="cute")


@pytest.mark.nightly
def test_cross_entropy() -> None:
    """All threads reduce a fragment to one value each, through a workspace; a masked row is ignored."""
    logits = RNG.standard_normal((3, 1100)).astype(np.float16)
    labels = np.array([0, 1099, -1], np.int32)
    loss, grad = load("cross_entropy", block_N=512)(logits, labels)
    wide = np.exp(logits.astype(np.float64))
    chosen, kept = np.maximum(labels, 0), (labels >= 0)[:, None]
    wanted = np.log(wide.sum(axis=1)) - logits[np.arange(3), chosen]
    np.testing.assert_allclose(loss, wanted * kept[:, 0], rtol=1e-5)
    one_hot = np.arange(1100)[None] == labels[:, None]
    np.testing.assert_allclose(grad, (wide / wide.sum(axis=1, keepdims=True) - one_hot) * kept, atol=2e-3)


@pytest.mark.nightly
def test_flash_decoding() -> None:
    """Threads that all hold a part's results reduce them; the kernel that combines the parts has no MMA."""
    group, dim, lengths = 8, 64, np.array([200, 77], np.int32)
    q = RNG.standard_normal((2, 2, group, dim)).astype(np.float16)
    k, v = (RNG.standard_normal((2, 200, 2, dim)).astype(np.float16) for _ in range(2))
    found = np.asarray(load("flash_decoding", dim=dim, group=group, num_split=3)(q, k, v, lengths), np.float32)
    for batch, length in enumerate(lengths):
        for head in range(2):
            keys, values = (each[batch, :length, head].astype(np.float32) for each in (k, v))
            weights = np.exp(q[batch, head].astype(np.float32) @ keys.T / np.sqrt(dim))
            wanted = weights / weights.sum(axis=1, keepdims=True) @ values
            np.testing.assert_allclose(found[batch, head], wanted, atol=4e-3)


@pytest.mark.nightly
def test_gemv() -> None:
    """A reduction of the last of three dimensions, of which each thread has all."""
    b, a = integers(13, 1000).astype(np.float16), integers(1000).astype(np.float16)
    np.testing.assert_array_equal(
        load("gemv", block_K=256)(a, b), (b.astype(float) @ a.astype(float)).astype(np.float16)
    )


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(2, 40, 4096), (3, 13, 1040)])
def test_dot_products_of_2_bits_and_int8(sizes: tuple[int, int, int]) -> None:
    """Four products an instruction; the row of X is swizzled in 16 bytes."""
    m, n, k = sizes
    x, packed = RNG.integers(-128, 128, (m, k)).astype(np.int8), RNG.integers(0, 256, (n, k // 4)).astype(np.uint8)
    weights = np.stack([packed >> 2 * part & 3 for part in range(4)], axis=-1).reshape(n, k).astype(int) - 1
    np.testing.assert_array_equal(load("w2a8", kernel="w2a8_gemv")(x, packed), x.astype(int) @ weights.T)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(2, 40, 4096), (1, 13, 1024)])
def test_gemv_of_4_bits_with_partial_sums_of_half(sizes: tuple[int, int, int]) -> None:
    """Numbers are unpacked in another order than theirs, the row of X likewise; sums are added in pairs."""
    m, n, k = sizes
    x, packed = RNG.integers(-1, 2, (m, k)).astype(np.float16), RNG.integers(0, 256, (n, k // 2)).astype(np.uint8)
    scale, zero = (
        RNG.integers(1, 3, (n, k // 32)).astype(np.float16),
        RNG.integers(0, 16, (n, k // 32)).astype(np.uint8),
    )
    number = np.stack((packed & 15, packed >> 4), axis=-1).reshape(n, k).astype(float)
    wanted = x.astype(float) @ ((number - zero.repeat(32, axis=1)) * scale.repeat(32, axis=1)).T
    found = load("dequant", kernel="dequant_gemv")(x, packed, scale, zero)
    np.testing.assert_array_equal(found, wanted.astype(np.float16))
    assert found.tobytes() == load("dequant", "tl", kernel="dequant_gemv")(x, packed, scale, zero).tobytes()


@pytest.mark.nightly
def test_kernels_against_what_the_style_assumes(tmp_path: Path) -> None:
    style_forms.check(style_forms.load(tmp_path, "cute", "cuda:sm_80", "ptx"))


# ---- sm_90a ---------------------------------------------------------------------------------------------------------

HOPPER = "cuda:sm_90a"
WIDE = {"block_N": 256, "block_K": 64, "threads": 256}


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(136, 264, 72), (1, 8, 8), (200, 520, 136), (128, 256, 0)])
def test_gemm_relu_by_tma_and_wgmma(sizes: tuple[int, int, int]) -> None:
    """A producer warp loads, warpgroups multiply operands in shared memory, warps store by TMA."""
    m, n, k = sizes
    a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
    found = load("gemm_relu", target=HOPPER, **WIDE)(a, b)
    np.testing.assert_array_equal(found, np.maximum(a.astype(float) @ b.astype(float), 0).astype(np.float16))
    assert found.tobytes() == load("gemm_relu", "tl", HOPPER, **WIDE)(a, b).tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(136, 264, 72), (70, 80, 144)])
def test_wgmma_of_transposed_operands(sizes: tuple[int, int, int]) -> None:
    """Both operands are contiguous along the other dimension than in gemm_relu."""
    m, n, k = sizes
    a, b = (integers(*shape).astype(ml_dtypes.bfloat16) for shape in ((k, m), (n, k)))
    bias = integers(n).astype(np.float32)
    found = load("gemm", target=HOPPER, **TRANSPOSED)(a, b, bias)
    np.testing.assert_array_equal(found, a.astype(np.float32).T @ b.astype(np.float32).T + bias)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn"])
def test_wgmma_of_8_bits(dtype: str) -> None:
    a, b = (integers(*shape).astype(dtype) for shape in ((136, 160), (264, 160)))
    results = {"out_dtype": "int32", "accum_dtype": "int32"} if dtype == "int8" else {"out_dtype": "float32"}
    found = load("gemm", target=HOPPER, dtype=dtype, transpose_B=True, block_K=128, **results)(a, b)
    np.testing.assert_array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T)


@pytest.mark.nightly
def test_batched_gemm_of_persistent_blocks() -> None:
    """Producer and consumers visit the same tiles; the stages count on from tile to tile."""
    a, b = (integers(*shape).astype(np.float16) for shape in ((3, 200, 136), (3, 136, 264)))
    found = load("gemm_batched", target=HOPPER, kernel="gemm_batched", block_K=64, programs=5)(a, b)
    np.testing.assert_array_equal(found, (a.astype(float) @ b.astype(float)).astype(np.float16))


@pytest.mark.nightly
def test_weights_that_are_written_while_an_mma_is_in_flight() -> None:
    """Dequantised weights have two stages; where rows are none of TMA's, the other instance stores them."""
    for n in (136, 77):
        x = integers(70, 96).astype(np.float16)
        weights, scale = RNG.integers(0, 256, (n, 48)).astype(np.uint8), RNG.integers(1, 3, (n, 3)).astype(np.float16)
        zero = RNG.integers(0, 16, (n, 3)).astype(np.float16)
        number = np.stack((weights & 15, weights >> 4), axis=-1).reshape(n, 96).astype(float)
        wanted = x.astype(float) @ ((number - zero.repeat(32, axis=1)) * scale.repeat(32, axis=1)).T
        found = load("dequant", target=HOPPER, kernel="dequant_gemm")(x, weights, scale, zero)
        np.testing.assert_array_equal(found, wanted.astype(np.float16))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("shape", "is_causal"),
    [
        ((1, 150, 2, 128), False),
        ((2, 300, 1, 128), True),
        ((1, 1, 1, 128), True),
    ],
)
def test_attention_whose_mmas_overlap(shape: tuple[int, ...], is_causal: bool) -> None:
    """A persistent kernel: Q in registers, a ring of stages for K and one for V, both MMAs in flight at once."""
    q, k, v = (RNG.standard_normal(shape).astype(np.float16) for _ in range(3))
    sizes = {"dim": 128, "block_M": 128, "block_N": 128, "threads": 256}
    found = np.asarray(load("attention", target=HOPPER, is_causal=is_causal, **sizes)(q, k, v), np.float32)
    np.testing.assert_allclose(found, attention(q, k, v, is_causal=is_causal), atol=4e-3)


@pytest.mark.nightly
def test_attention_whose_warpgroups_hold_the_same_operand() -> None:
    """Two warpgroups share the columns of both MMAs; each has all of the second's A operand in registers."""
    q, k, v = (RNG.standard_normal((1, 150, 2, 128)).astype(np.float16) for _ in range(3))
    sizes = {"dim": 128, "block_M": 64, "block_N": 64, "threads": 256, "is_causal": True}
    found = load("attention", target=HOPPER, **sizes)(q, k, v)
    assert found.tobytes() == load("attention", "tl", HOPPER, **sizes)(q, k, v).tobytes()
    np.testing.assert_allclose(np.asarray(found, np.float32), attention(q, k, v, is_causal=True), atol=4e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["gemm_clusters", "gemm_few_rows"])
def test_blocks_of_a_cluster_add_their_parts(name: str) -> None:
    """Each block copies its sums, or other blocks' rows of them, to the shared memory of another block."""
    for m, n, k in ((136, 264, 200), (5, 80, 136)):
        a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
        found = load(name, target=HOPPER)(a, b)
        np.testing.assert_array_equal(found, np.maximum(a.astype(float) @ b.astype(float), 0).astype(np.float16))
        assert found.tobytes() == load(name, "tl", HOPPER)(a, b).tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(70, 136, 192), (300, 77, 64), (1, 8, 64)])
def test_weights_in_registers_of_the_mma_in_flight(sizes: tuple[int, int, int]) -> None:
    """An MMA reads the stage before that of the weights that are prepared; the result is stored transposed."""
    m, n, k = sizes
    x, packed = integers(m, k).astype(np.float16), RNG.integers(0, 256, (n, k // 2)).astype(np.uint8)
    scale = RNG.integers(1, 3, (n, k // 32)).astype(np.float16)
    number = np.stack((packed & 15, packed >> 4), axis=-1).reshape(n, k).astype(float) - 8
    found = load("linear_int4_prefill", target=HOPPER)(x, packed, scale)
    wanted = x.astype(float) @ (number * scale.repeat(32, axis=1)).T
    np.testing.assert_array_equal(found, wanted.astype(np.float16))
    assert found.tobytes() == load("linear_int4_prefill", "tl", HOPPER)(x, packed, scale).tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("blocks", [{"block_M": 128, "block_N": 128, "threads": 256}, {}], ids=["persistent", "grid"])
def test_attention_whose_iterations_are_skipped(blocks: dict[str, object]) -> None:
    """A persistent kernel's producer publishes the active ones with the stages; else all threads find them."""
    shape, block = (1, 2, 300, 128), int(str(blocks.get("block_M", 64)))
    q, k, v = (RNG.standard_normal(shape).astype(np.float16) for _ in range(3))
    kept = RNG.integers(0, 2, (1, 2, -(-300 // block), -(-300 // block))).astype(bool)
    kept[0, 0, 0] = False  # queries that see no key
    sizes = {"dim": 128, "is_causal": True} | blocks
    found = load("attention_block_sparse", target=HOPPER, **sizes)(q, k, v, kept)
    assert found.tobytes() == load("attention_block_sparse", "tl", HOPPER, **sizes)(q, k, v, kept).tobytes()
    seen = kept.repeat(block, axis=2).repeat(block, axis=3)[:, :, :300, :300] & np.tril(np.ones((300, 300), bool))
    scores = q.astype(np.float32) @ k.astype(np.float32).transpose(0, 1, 3, 2) / np.sqrt(128)
    weights = np.where(seen, np.exp(np.minimum(scores, 80)), 0)
    total = weights.sum(axis=-1, keepdims=True)
    wanted = weights / np.where(total > 0, total, 1) @ v.astype(np.float32)
    np.testing.assert_allclose(np.asarray(found, np.float32), wanted, atol=4e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(136, 512, 200), (5, 1024, 64)])
def test_multicast_and_barriers_of_the_users(sizes: tuple[int, int, int]) -> None:
    """One block of a cluster loads A for both; each consumer warp frees the stage in both blocks."""
    m, n, k = sizes
    a, b = integers(m, k).astype(np.float16), integers(k, n).astype(np.float16)
    found = load("gemm_cluster", target=HOPPER)(a, b)
    np.testing.assert_array_equal(found, (a.astype(float) @ b.astype(float)).astype(np.float16))
    assert found.tobytes() == load("gemm_cluster", "tl", HOPPER)(a, b).tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("splits", [1, 3])
def test_mla_decode_whose_warpgroups_alternate(splits: int) -> None:
    """Each has its own iterations' scores, passes them to the other, and has half of the columns of the output."""
    heads, lengths = 70, np.array([130, 77], np.int32)
    shapes = ((2, heads, 128), (2, heads, 32), (2, 130, 128), (2, 130, 32))
    q, q_pe, kv, k_pe = (RNG.standard_normal(shape).astype(np.float16) for shape in shapes)
    sizes = {"dim": 128, "pe_dim": 32, "block_N": 32, "num_split": splits}
    kernel, other = (load("mla_decode", style, HOPPER, **sizes) for style in ("cute", "tl"))
    assert "NamedBarrier::sync" in kernel.source
    result = kernel(q, q_pe, kv, k_pe, lengths)
    assert result.tobytes() == other(q, q_pe, kv, k_pe, lengths).tobytes()
    found = np.asarray(result, np.float32)
    for batch, length in enumerate(lengths):
        values = kv[batch, :length].astype(np.float32)
        keys = np.concatenate((values, k_pe[batch, :length]), axis=1)
        scores = np.concatenate((q[batch], q_pe[batch]), axis=1).astype(np.float32) @ keys.T / np.sqrt(160)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        wanted = weights / weights.sum(axis=1, keepdims=True) @ values
        np.testing.assert_allclose(found[batch], wanted, atol=4e-3)
