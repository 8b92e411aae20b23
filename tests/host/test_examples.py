"""Every example's own text on the CPU engine against float64, ragged sizes included, and with every check on."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import Kernel, LaunchError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Array = np.ndarray


def load(name: str, *, check: bool = False, **bindings: object) -> Kernel:
    options = {"statistics": True, "schedules": ("round-robin", "shuffle")} if check else {}
    return tile2cu.load(EXAMPLES / name, device="cpu", check=check, options=options, **bindings)


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: object = np.float16) -> Array:
    """Small integers: their products and sums are exact."""
    return rng.integers(-4, 5, shape).astype(dtype)


def normals(rng: np.random.Generator, shape: tuple[int, ...], dtype: object = np.float16) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    """Largest error relative to the largest value; NaN never passes."""
    error = np.max(np.abs(actual.astype(np.float64) - expected), initial=0.0)
    assert error <= tolerance * np.max(np.abs(expected), initial=1e-30), error


def assert_clean(kernel: Kernel) -> None:
    """Nothing found, and no bank conflict where a product reads its operands."""
    assert kernel.report is not None
    assert not kernel.report.findings
    products = [
        access for access in kernel.report.shared if "tl::gemm" in access.place.text and access.access == "read"
    ]
    assert all(access.worst_ways == 1 for access in products), products


def relu_product(a: Array, b: Array) -> Array:
    return np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)


def softmax(x: Array) -> Array:
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return np.einsum("bhst,bthd->bshd", softmax(scores), v)


@pytest.mark.parametrize("n", [0, 1, 3, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_vector_add(n: int, check: bool) -> None:
    rng = np.random.default_rng(n)
    kernel = load("vector_add.py", check=check)
    a, b = normals(rng, (n,), np.float32), normals(rng, (n,), np.float32)
    np.testing.assert_array_equal(kernel(a, b), a + b)
    if check:
        assert_clean(kernel)


@pytest.mark.parametrize("columns", [32, 100, 1000, 1024, 4096])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_row_softmax(columns: int, check: bool) -> None:
    rng = np.random.default_rng(columns)
    kernel = load("row_softmax.py", check=check, N=columns)
    for rows in (1, 7, 16):
        x = normals(rng, (rows, columns), np.float32)
        assert_close(kernel(x), softmax(x), 1e-5)
        if check:
            assert_clean(kernel)


GEMM_SIZES = [
    (128, 128, 64),
    (256, 128, 96),
    (100, 72, 64),
    (130, 257, 100),
    (33, 1, 7),
    (1, 1, 1),
    (0, 5, 5),
    (64, 64, 0),
]


@pytest.mark.parametrize("example", ["gemm_relu.py", "gemm_relu_eager.py"])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_gemm_relu(example: str, check: bool) -> None:
    kernel = load(example, check=check)
    rng = np.random.default_rng(0)
    for m, n, k in GEMM_SIZES:
        a, b = integers(rng, (m, k)), integers(rng, (k, n))
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), relu_product(a, b))
        a, b = normals(rng, (m, k)), normals(rng, (k, n))
        assert_close(kernel(a, b), relu_product(a, b), 1e-3)
        if check:
            assert_clean(kernel)


@pytest.mark.parametrize("sizes", [(256, 256, 128), (200, 136, 100)])
def test_gemm_relu_with_static_sizes(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(1)
    kernel = load("gemm_relu.py", check=True, M=m, N=n, K=k)
    a, b = integers(rng, (m, k)), integers(rng, (k, n))
    np.testing.assert_array_equal(kernel(a, b).astype(np.float64), relu_product(a, b))
    assert_clean(kernel)


def test_gemm_relu_in_bfloat16() -> None:
    rng = np.random.default_rng(2)
    kernel = load("gemm_relu.py", check=True, dtype="bfloat16")
    a, b = (integers(rng, shape, ml_dtypes.bfloat16) for shape in ((70, 90), (90, 50)))
    expected = relu_product(a, b).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(kernel(a, b).view(np.uint16), expected.view(np.uint16))
    assert_clean(kernel)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_attention(causal: bool, check: bool) -> None:
    kernel = load("attention.py", check=check, dim=64, is_causal=causal)
    for batch, heads, length in ((1, 2, 128), (2, 1, 100), (1, 1, 1), (1, 1, 65), (2, 3, 200)):
        rng = np.random.default_rng(length)
        q, k, v = (normals(rng, (batch, length, heads, 64)) for _ in range(3))
        assert_close(kernel(q, k, v), attention(q, k, v, causal=causal), 2e-3)
        if check:
            assert_clean(kernel)


def test_attention_with_static_sizes_and_wide_heads() -> None:
    rng = np.random.default_rng(3)
    kernel = load("attention.py", check=True, batch=1, heads=1, seq_len=192, dim=128, is_causal=True)
    q, k, v = (normals(rng, (1, 192, 1, 128)) for _ in range(3))
    assert_close(kernel(q, k, v), attention(q, k, v, causal=True), 2e-3)
    assert_clean(kernel)


def test_attention_survives_large_scores() -> None:
    rng = np.random.default_rng(4)
    kernel = load("attention.py", dim=64, is_causal=True)
    q, k, v = (30 * normals(rng, (1, 96, 1, 64)) for _ in range(3))
    actual = kernel(q, k, v)
    assert np.all(np.isfinite(actual.astype(np.float64)))
    assert_close(actual, attention(q, k, v, causal=True), 1e-2)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def test_rmsnorm() -> None:
    kernel = load("rmsnorm.py", check=True, dim=256)
    rng = np.random.default_rng(6)
    for rows in (1, 4, 7):
        x, w = normals(rng, (rows, 256)), normals(rng, (256,))
        wide = x.astype(np.float64)
        expected = wide / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + 1e-5) * w
        assert_close(kernel(x, w), expected, 1e-3)
        assert_clean(kernel)


def test_linear() -> None:
    plain, residual = (
        tile2cu.load(EXAMPLES / "linear.py", name, device="cpu", check=True) for name in ("linear", "linear_residual")
    )
    rng = np.random.default_rng(7)
    for m, n, k in ((64, 128, 64), (70, 80, 72), (1, 9, 7)):
        x, w, r = normals(rng, (m, k)), normals(rng, (n, k)), normals(rng, (m, n))
        product = x.astype(np.float64) @ w.astype(np.float64).T
        assert_close(plain(x, w), product, 1e-3)
        assert_close(residual(x, w, r), product + r, 1e-3)
        assert residual.report is not None and not residual.report.findings


@pytest.mark.parametrize("activation", [False, True], ids=["plain", "gelu"])
def test_linear_of_int4_weights(activation: bool) -> None:
    kernel = load("linear_int4.py", check=True, gelu=activation)
    rng = np.random.default_rng(8)
    for m, n, k in ((64, 64, 64), (33, 72, 96), (1, 5, 32)):
        x, scales = normals(rng, (m, k)), (rng.random((n, k // 32)) / 8).astype(np.float16)
        packed = rng.integers(0, 256, (n, k // 2)).astype(np.uint8)
        nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(n, k).astype(np.float64)
        product = x.astype(np.float64) @ ((nibbles - 8) * np.repeat(scales.astype(np.float64), 32, axis=1)).T
        assert_close(kernel(x, packed, scales), gelu(product) if activation else product, 1e-3)
        assert kernel.report is not None and not kernel.report.findings


def test_rope() -> None:
    kernel = load("rope.py", check=True, dim=64)
    rng = np.random.default_rng(9)
    for batch, length, heads in ((1, 64, 2), (2, 70, 3), (1, 1, 1)):
        qkv = normals(rng, (batch, length, 3, heads, 64))
        angle = np.arange(length)[:, None] * 1e4 ** (-np.arange(32) / 32)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        *turned, v = kernel(qkv, cos, sin)
        for index, found in enumerate(turned):
            low, high = np.split(qkv[:, :, index].astype(np.float64), 2, axis=-1)
            c, s = cos[None, :, None], sin[None, :, None]
            assert_close(found, np.concatenate([low * c - high * s, high * c + low * s], axis=-1), 1e-3)
        np.testing.assert_array_equal(v, qkv[:, :, 2])
        assert_clean(kernel)


HOPPER = {"target": "cuda:sm_90a", "threads": 256}


@pytest.mark.parametrize("block", [(128, 128, 64), (128, 256, 64), (256, 64, 32)])
def test_gemm_relu_on_hopper(block: tuple[int, int, int]) -> None:
    m, n, k = block
    kernel = load("gemm_relu.py", check=True, block_M=m, block_N=n, block_K=k, **HOPPER)
    assert "pipeline.produce(turns, load)" in kernel.source
    rng = np.random.default_rng(5)
    for m, n, k in ((256, 256, 128), (200, 136, 104), (1, 8, 8), (130, 264, 1000), (64, 64, 0), (0, 8, 8)):
        a, b = integers(rng, (m, k)), integers(rng, (k, n))
        np.testing.assert_array_equal(kernel(a, b).astype(np.float64), relu_product(a, b))
        assert_clean(kernel)


def test_hopper_refuses_rows_that_tma_cannot_reach() -> None:
    kernel = load("gemm_relu.py", **HOPPER)
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED"):
        kernel(np.zeros((8, 4), np.float16), np.zeros((4, 8), np.float16))


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_attention_on_hopper(causal: bool) -> None:
    kernel = load("attention.py", check=True, dim=64, block_M=128, is_causal=causal, **HOPPER)
    for batch, heads, length in ((1, 2, 128), (2, 1, 100), (1, 1, 1), (1, 1, 200)):
        rng = np.random.default_rng(length)
        q, k, v = (normals(rng, (batch, length, heads, 64)) for _ in range(3))
        assert_close(kernel(q, k, v), attention(q, k, v, causal=causal), 2e-3)
        assert_clean(kernel)


@pytest.mark.parametrize("check", [False, True], ids=["fast", "checked"])
def test_gemv(check: bool) -> None:
    kernel = load("gemv.py", check=check, block_K=256)
    for n, k in ((16, 512), (13, 1000), (1, 1), (9, 257)):
        rng = np.random.default_rng(n)
        a, b = integers(rng, (k,)), integers(rng, (n, k))
        np.testing.assert_array_equal(kernel(a, b), (b.astype(np.float64) @ a.astype(np.float64)).astype(np.float16))
        if check:
            assert_clean(kernel)


def mamba(rng: np.random.Generator, batch: int, seqlen: int, heads: int, chunk: int) -> dict[str, Array]:
    """Inputs of a chunked scan: one group, 64 channels a head, a state of 128. dA_cumsum falls along a chunk."""
    chunks = -(-seqlen // chunk)
    per_token = (batch, heads, chunks, chunk)
    return {
        "x": normals(rng, (batch, seqlen, heads, 64)),
        "B": normals(rng, (batch, seqlen, 1, 128)),
        "C": normals(rng, (batch, seqlen, 1, 128)),
        "dt": rng.uniform(0.1, 0.5, per_token).astype(np.float16),
        "dA": -np.cumsum(rng.uniform(0, 0.02, per_token), axis=-1).astype(np.float16),
        "CB": normals(rng, (batch, chunks, 1, chunk, chunk)),
        "states": normals(rng, (batch, chunks, heads, 64, 128)),
        "D": normals(rng, (heads,)),
    }


def by_chunk(tokens: Array, chunk: int) -> Array:
    """(batch, tokens, ...) as (batch, chunks, chunk, ...) in float64, zeros after the last token."""
    missing = -tokens.shape[1] % chunk
    padded = np.pad(tokens.astype(np.float64), [(0, 0), (0, missing)] + [(0, 0)] * (tokens.ndim - 2))
    return padded.reshape(tokens.shape[0], -1, chunk, *tokens.shape[2:])


@pytest.mark.parametrize(("batch", "seqlen", "heads"), [(1, 256, 2), (2, 512, 1), (1, 384, 1)])
def test_chunk_state(batch: int, seqlen: int, heads: int) -> None:
    data = mamba(np.random.default_rng(seqlen), batch, seqlen, heads, 128)
    kernel = load("chunk_state.py", check=True, groups=1, chunk_size=128, headdim=64, dstate=128)
    x, b = by_chunk(data["x"], 128), by_chunk(data["B"], 128)[:, :, :, 0]
    dt, decay = data["dt"].astype(np.float64), data["dA"].astype(np.float64)
    scale = dt * np.exp(decay[..., -1:] - decay)
    expected = np.einsum("bctn,bcthp,bhct->bchpn", b, x, scale)
    assert_close(kernel(data["B"], data["x"], data["dt"], data["dA"]), expected, 2e-3)
    assert_clean(kernel)


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(("batch", "seqlen", "heads"), [(1, 256, 2), (2, 128, 1), (1, 200, 1)])
def test_chunk_scan(batch: int, seqlen: int, heads: int, target: str) -> None:
    data = mamba(np.random.default_rng(seqlen), batch, seqlen, heads, 128)
    sizes = {"groups": 1, "chunk_size": 128, "headdim": 64, "dstate": 128}
    kernel = load("chunk_scan.py", check=True, target=target, **sizes)
    names = ("CB", "x", "dt", "dA", "C", "states", "D")
    x, c = by_chunk(data["x"], 128), by_chunk(data["C"], 128)[:, :, :, 0]
    dt, decay, cb = (data[name].astype(np.float64) for name in ("dt", "dA", "CB"))
    seen = np.tril(np.ones((128, 128), bool))
    weights = np.where(seen, np.exp(decay[..., :, None] - decay[..., None, :]) * dt[..., None, :], 0)
    own = np.einsum("bcmt,bhcmt,bcthp->bcmhp", cb[:, :, 0], weights, x)
    before = np.einsum("bcmn,bchpn,bhcm->bcmhp", c, data["states"].astype(np.float64), np.exp(decay))
    expected = own + before + x * data["D"].astype(np.float64)[:, None]
    expected = expected.reshape(batch, -1, heads, 64)[:, :seqlen]
    assert_close(kernel(*(data[name] for name in names)), expected, 4e-3)
    assert_clean(kernel)
