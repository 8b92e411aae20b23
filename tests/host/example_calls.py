"""Calls of the examples: random inputs, and the results of a float64 reference. Used for every device."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np

import references
from tile2cu_runtime import Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Call:
    """Inputs, expected outputs, and their largest error as a part of their largest value; 0 asks for the same bits."""

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    tolerance: float = 0.0

    def check(self, kernel: Kernel) -> None:
        """Calls the kernel and compares; NaN never passes."""
        found = kernel(*self.inputs)
        outputs = found if isinstance(found, tuple) else (found,)
        for actual, expected in zip(outputs, self.expected, strict=True):
            assert actual.shape == expected.shape
            if self.tolerance:
                assert_close(actual, expected, self.tolerance)
            else:
                np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(actual.dtype).astype(float))


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    """Largest error relative to the largest value; NaN never passes."""
    error = np.max(np.abs(actual.astype(np.float64) - expected), initial=0.0)
    assert error <= tolerance * np.max(np.abs(expected), initial=1e-30), error


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: object = np.float16) -> Array:
    """Small integers: their products and sums are exact."""
    return rng.integers(-4, 5, shape).astype(dtype)


def normals(rng: np.random.Generator, shape: tuple[int, ...], dtype: object = np.float16) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def wide(*arrays: Array) -> tuple[Array, ...]:
    return tuple(array.astype(np.float64) for array in arrays)


def vector_add(n: int) -> Call:
    rng = np.random.default_rng(n)
    a, b = normals(rng, (n,), np.float32), normals(rng, (n,), np.float32)
    return Call(inputs=(a, b), expected=(a + b,))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def row_softmax(rows: int, columns: int) -> Call:
    x = normals(np.random.default_rng(columns), (rows, columns), np.float32)
    return Call(inputs=(x,), expected=(softmax(*wide(x)),), tolerance=1e-5)


def gemm_relu(m: int, n: int, k: int, dtype: object = np.float16, *, exact: bool = True) -> Call:
    """C = max(A @ B, 0); exact for small integers."""
    rng = np.random.default_rng(m + n + k)
    draw = integers if exact else normals
    a, b = draw(rng, (m, k), dtype), draw(rng, (k, n), dtype)
    wide_a, wide_b = wide(a, b)
    return Call(inputs=(a, b), expected=(np.maximum(wide_a @ wide_b, 0),), tolerance=0 if exact else 1e-3)


def attention(
    batch: int, heads: int, length: int, dim: int, *, causal: bool, scale: int = 1, tolerance: float = 2e-3
) -> Call:
    rng = np.random.default_rng(length)
    inputs = tuple(scale * normals(rng, (batch, length, heads, dim)) for _ in range(3))
    q, k, v = wide(*inputs)
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(dim)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    expected = np.einsum("bhst,bthd->bshd", softmax(scores), v)
    return Call(inputs=inputs, expected=(expected,), tolerance=tolerance)


def rmsnorm(rows: int, dim: int) -> Call:
    rng = np.random.default_rng(rows)
    x, w = normals(rng, (rows, dim)), normals(rng, (dim,))
    wide_x, wide_w = wide(x, w)
    expected = wide_x / np.sqrt(np.mean(wide_x**2, axis=1, keepdims=True) + 1e-5) * wide_w
    return Call(inputs=(x, w), expected=(expected,), tolerance=1e-3)


def linear(m: int, n: int, k: int, *, residual: bool = False) -> Call:
    rng = np.random.default_rng(m)
    x, w, r = normals(rng, (m, k)), normals(rng, (n, k)), normals(rng, (m, n))
    wide_x, wide_w, wide_r = wide(x, w, r)
    product = wide_x @ wide_w.T
    if residual:
        return Call(inputs=(x, w, r), expected=(product + wide_r,), tolerance=1e-3)
    return Call(inputs=(x, w), expected=(product,), tolerance=1e-3)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def linear_int4(m: int, n: int, k: int, *, activation: bool, weights: str = "int4") -> Call:
    rng = np.random.default_rng(n)
    x, scales = normals(rng, (m, k)), (rng.random((n, k // 32)) / 8).astype(np.float16)
    packed = rng.integers(0, 256, (n, k // 2)).astype(np.uint8)
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(n, k).astype(np.float64)
    wide_x, wide_scales = wide(x, scales)
    values = references.FP4[nibbles.astype(int)] if weights == "fp4" else nibbles - 8
    product = wide_x @ (values * np.repeat(wide_scales, 32, axis=1)).T
    return Call(inputs=(x, packed, scales), expected=(gelu(product) if activation else product,), tolerance=1e-3)


def rope(batch: int, length: int, heads: int, dim: int) -> Call:
    rng = np.random.default_rng(length)
    qkv = normals(rng, (batch, length, 3, heads, dim))
    angle = np.arange(length)[:, None] * 1e4 ** (-np.arange(dim // 2) / (dim // 2))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    c, s = cos[None, :, None], sin[None, :, None]
    turned = []
    for index in range(2):
        low, high = np.split(qkv[:, :, index].astype(np.float64), 2, axis=-1)
        turned.append(np.concatenate([low * c - high * s, high * c + low * s], axis=-1))
    return Call(inputs=(qkv, cos, sin), expected=(*turned, qkv[:, :, 2].astype(np.float64)), tolerance=1e-3)


def gemv(n: int, k: int) -> Call:
    rng = np.random.default_rng(n)
    a, b = integers(rng, (k,)), integers(rng, (n, k))
    wide_a, wide_b = wide(a, b)
    return Call(inputs=(a, b), expected=(wide_b @ wide_a,))


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


# What both kernels of a chunked scan are loaded with, for the inputs of mamba.
MAMBA = {"groups": 1, "chunk_size": 128, "headdim": 64, "dstate": 128}


def by_chunk(tokens: Array, chunk: int) -> Array:
    """(batch, tokens, ...) as (batch, chunks, chunk, ...) in float64, zeros after the last token."""
    missing = -tokens.shape[1] % chunk
    padded = np.pad(tokens.astype(np.float64), [(0, 0), (0, missing)] + [(0, 0)] * (tokens.ndim - 2))
    return padded.reshape(tokens.shape[0], -1, chunk, *tokens.shape[2:])


def chunk_state(batch: int, seqlen: int, heads: int) -> Call:
    data = mamba(np.random.default_rng(seqlen), batch, seqlen, heads, 128)
    x, b = by_chunk(data["x"], 128), by_chunk(data["B"], 128)[:, :, :, 0]
    dt, decay = wide(data["dt"], data["dA"])
    scale = dt * np.exp(decay[..., -1:] - decay)
    expected = np.einsum("bctn,bcthp,bhct->bchpn", b, x, scale)
    return Call(inputs=tuple(data[name] for name in ("B", "x", "dt", "dA")), expected=(expected,), tolerance=2e-3)


def chunk_scan(batch: int, seqlen: int, heads: int) -> Call:
    data = mamba(np.random.default_rng(seqlen), batch, seqlen, heads, 128)
    x, c = by_chunk(data["x"], 128), by_chunk(data["C"], 128)[:, :, :, 0]
    dt, decay, cb = wide(data["dt"], data["dA"], data["CB"])
    seen = np.tril(np.ones((128, 128), bool))
    weights = np.where(seen, np.exp(decay[..., :, None] - decay[..., None, :]) * dt[..., None, :], 0)
    own = np.einsum("bcmt,bhcmt,bcthp->bcmhp", cb[:, :, 0], weights, x)
    before = np.einsum("bcmn,bchpn,bhcm->bcmhp", c, data["states"].astype(np.float64), np.exp(decay))
    expected = own + before + x * data["D"].astype(np.float64)[:, None]
    names = ("CB", "x", "dt", "dA", "C", "states", "D")
    return Call(
        inputs=tuple(data[name] for name in names),
        expected=(expected.reshape(batch, -1, heads, 64)[:, :seqlen],),
        tolerance=4e-3,
    )


@dataclass(frozen=True, kw_only=True)
class Example:
    """A file of examples/ with what it is loaded with, and calls of ragged sizes; small enough for a simulator."""

    file: str
    calls: tuple[Call, ...]
    kernel: str | None = None
    bindings: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        flags = [name for name, value in self.bindings.items() if value is True]
        words = [self.kernel or self.file.removesuffix(".py"), *flags, str(self.bindings.get("dtype", ""))]
        return " ".join(filter(None, words))


RAGGED = (
    Example(file="vector_add.py", calls=(vector_add(1), vector_add(1027))),
    Example(file="row_softmax.py", calls=(row_softmax(7, 1000),), bindings={"N": 1000}),
    Example(  # a row over four waves of 64
        file="row_softmax.py",
        calls=(row_softmax(2, 4096),),
        bindings={"N": 4096, "block_M": 1, "threads": 256},
    ),
    Example(file="rmsnorm.py", calls=(rmsnorm(7, 256),), bindings={"dim": 256}),
    Example(file="rope.py", calls=(rope(2, 70, 3, 64),), bindings={"dim": 64}),
    Example(file="gemv.py", calls=(gemv(9, 257), gemv(13, 1000)), bindings={"block_K": 256}),
    Example(
        file="gemm_relu.py",
        calls=(gemm_relu(130, 136, 40), gemm_relu(5, 3, 7, exact=False)),
        bindings={"threads": 256},
    ),
    Example(
        file="gemm_relu.py",
        calls=(gemm_relu(70, 50, 90, ml_dtypes.bfloat16),),
        bindings={"dtype": "bfloat16", "block_M": 64, "block_N": 64},
    ),
    Example(
        file="gemm_relu_eager.py", calls=(gemm_relu(100, 72, 64, exact=False),), bindings={"block_M": 64, "block_N": 64}
    ),
    Example(file="linear.py", kernel="linear", calls=(linear(70, 80, 72),)),
    Example(file="linear.py", kernel="linear_residual", calls=(linear(1, 9, 7, residual=True),)),
    Example(file="linear_int4.py", calls=(linear_int4(33, 72, 96, activation=True),), bindings={"gelu": True}),
    Example(
        file="attention.py",
        calls=(attention(2, 1, 100, 64, causal=False),),
        bindings={"dim": 64, "is_causal": False},
    ),
    Example(
        file="attention.py",
        calls=(attention(1, 2, 130, 64, causal=True),),
        bindings={"dim": 64, "is_causal": True},
    ),
    Example(file="chunk_state.py", calls=(chunk_state(1, 200, 1),), bindings=MAMBA | {"block_K": 64, "num_stages": 2}),
    Example(file="chunk_scan.py", calls=(chunk_scan(1, 200, 1),), bindings=MAMBA),
)
