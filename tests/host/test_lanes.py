"""Short vectors of one thread: T.Ramp, T.Broadcast, T.float16x2, T.fma2 and explicit loads and stores of words."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(0)


def integers(*shape: int, dtype: object = np.float32) -> np.ndarray:
    return RNG.integers(-9, 10, shape).astype(dtype)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_arithmetic_of_pairs(dtype: str, target: str, tmp_path: Path) -> None:
    statements = """
        i = bx * 128 + T.get_thread_binding()
        idx = T.Ramp(i * 2, 1, 2)
        if i * 2 + 1 < N:
            v = A[idx]
            A[idx] = T.max2(v, T.Broadcast(T.cast(3, DTYPE), 2))
            C[idx] = T.fma2(v, B[idx], T.abs2(T.sub2(B[idx], v))) + 1
            T.atomic_addx2(S[T.Ramp(0, 1, 2)], B[idx])
    """
    params = (
        "A: T.Tensor((N,), DTYPE), B: T.Tensor((N,), DTYPE), S: T.Tensor((2,), DTYPE), C: T.Tensor((N,), DTYPE)"
    ).replace("DTYPE", repr(dtype))
    kernel = load_body(
        tmp_path,
        statements.replace("DTYPE", repr(dtype)),
        params,
        grid="T.ceildiv(N, 256)",
        arguments="N",
        target=target,
    )
    numpy = np.dtype(dtype)
    a, b = integers(300, dtype=numpy), integers(300, dtype=numpy)
    before, sums = a.copy(), np.zeros(2, numpy)
    expected = before.astype(np.float64) * b + np.abs(b.astype(np.float64) - before) + 1
    np.testing.assert_array_equal(kernel(a, b, sums), expected)
    np.testing.assert_array_equal(a, np.maximum(before, 3))
    np.testing.assert_array_equal(sums, b.astype(np.float64).reshape(-1, 2).sum(axis=0))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("dtype", "elements"), [("float32", 4), ("float16", 8), ("int8", 16)])
def test_words_of_memory(dtype: str, elements: int, tmp_path: Path) -> None:
    """Words from a tensor to a tile and back, as they are and as numbers; where the predicate fails nothing is read."""
    statements = f"""
        S = T.alloc_shared((64, {elements}), {dtype!r})
        tx = T.get_thread_binding()
        row = bx * 64 + tx
        words = T.ldg128(X[row * {elements}], row < M)
        T.sts128(S[tx, 0], words)
        T.sync_threads()
        turned = T.lds128(S[63 - tx, 0])
        last = T.Shuffle([turned], [3, 2, 1, 0])
        W[row, 0] = T.extract_lane(words, 0)
        W[row, 1] = last[0]
        T.stg128(Y[(bx * 64 + 63 - tx) * {elements}], turned, pred=bx * 64 + 63 - tx < M)
    """
    params = (
        f"X: T.Tensor((M * {elements},), {dtype!r}), W: T.Tensor((128, 2), 'uint32'), "
        f"Y: T.Tensor((M * {elements},), {dtype!r})"
    )
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 64)", arguments="M", threads=64, M=100)
    x = RNG.integers(0, 256, (128, 16)).astype(np.uint8)
    x[:, 1::2] &= 0x3B  # no NaN
    x[100:] = 0
    words = np.zeros((128, 2), np.uint32)
    given = x[:100].copy().view(np.dtype(dtype)).ravel()
    np.testing.assert_array_equal(kernel(given, words), given)
    as_words = x.view(np.uint32)
    np.testing.assert_array_equal(words[:, 0], as_words[:, 0])
    np.testing.assert_array_equal(words[:, 1], as_words.reshape(2, 64, 4)[:, ::-1, 3].ravel())


def test_bits_as_other_elements(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        v = T.reinterpret(T.ldg32(X[tx * 2 : tx * 2 + 2]), T.float16x2)
        H[tx * 2 : tx * 2 + 2] = v * 2
        w = T.float16x2(v[1], v[0])
        Y[tx] = T.reinterpret(w, "uint32")
    """
    params = 'X: T.Tensor((64,), "int16"), H: T.Tensor((64,), "float16"), Y: T.Tensor((32,), "uint32")'
    kernel = load_body(tmp_path, statements, params, threads=32)
    halves = integers(64, dtype=np.float16)
    h = np.zeros(64, np.float16)
    swapped = halves.reshape(32, 2)[:, ::-1].copy().view(np.uint32).ravel()
    np.testing.assert_array_equal(kernel(halves.view(np.int16), h), swapped)
    np.testing.assert_array_equal(h, halves * 2)


def test_elements_are_read_before_they_are_written(tmp_path: Path) -> None:
    statements = """
        tx = T.get_thread_binding()
        line = T.alloc_local((6,), "int32")
        line[T.Ramp(0, 1, 6)] = T.Ramp(tx, 10, 6)
        line[T.Ramp(1, 1, 4)] = line[T.Ramp(0, 1, 4)]
        line[0:2] += 100
        Y[tx, T.Ramp(0, 1, 6)] = line[T.Ramp(5, -1, 6)]
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((32, 6), "int32")', threads=32)
    expected = np.arange(32)[:, None] + np.array([50, 30, 20, 10, 100, 100])
    np.testing.assert_array_equal(kernel(), expected)
