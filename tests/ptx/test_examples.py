"""The examples' own launchers and nvcc's PTX of their texts, on the PTX machine, against NumPy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.test_launches import SPLIT
from tile2cu_runtime import Kernel, LaunchError, SimulationError, load_kernel
from tile2cu_runtime.ptx import Module

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
RNG = np.random.default_rng(7)


def load(name: str, **bindings: object) -> Kernel:
    return tile2cu.load(EXAMPLES / f"{name}.py", device="ptx", **bindings)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*shape: int) -> np.ndarray:
    """Small integers: their products and sums are exact."""
    return RNG.integers(-4, 5, shape).astype(np.float16)


def relu_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0).astype(np.float16)


@pytest.mark.parametrize("n", [0, 1, 1024, 3001])
def test_vector_add(n: int) -> None:
    a, b = numbers(n), numbers(n)
    np.testing.assert_array_equal(load("vector_add")(a, b), a + b)


def test_row_softmax() -> None:
    x = numbers(9, 1000)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(load("row_softmax", N=1000)(x), exact / exact.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 5])
def test_loads_that_say_what_caches_should_do(rows: int) -> None:
    x, w = (numbers(*shape).astype(np.float16) for shape in ((rows, 640), (640,)))
    exact = x.astype(np.float64)
    exact = exact / np.sqrt((exact**2).mean(axis=1, keepdims=True) + 1e-5) * w
    kernel = load("rmsnorm", dim=640, read_twice=True)
    assert "tl::evict_last(X" in kernel.source and "tl::evict_first(X" in kernel.source
    np.testing.assert_allclose(kernel(x, w), exact, rtol=2e-3, atol=1e-6)


@pytest.mark.binding
@pytest.mark.parametrize("sizes", [(136, 264, 72), (131, 77, 45), (1, 8, 1)])
def test_gemm_is_exact(sizes: tuple[int, int, int]) -> None:
    """Rows that start at multiples of 16 bytes take one kernel, others another; the launcher chooses."""
    m, n, k = sizes
    a, b = integers(m, k), integers(k, n)
    np.testing.assert_array_equal(load("gemm_relu")(a, b), relu_product(a, b))


@pytest.mark.nightly  # for each change: decoding, below
def test_causal_attention() -> None:
    q, k, v = (numbers(1, 100, 2, 128).astype(np.float16) for _ in range(3))
    wide = [each.astype(np.float64) for each in (q, k, v)]
    scores = np.einsum("bshd,bthd->bhst", wide[0], wide[1]) / np.sqrt(128)
    scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = np.einsum("bhst,bthd->bshd", weights / weights.sum(axis=-1, keepdims=True), wide[2])
    np.testing.assert_allclose(load("attention", dim=128, is_causal=True)(q, k, v), expected, atol=2e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(1, 19, 2048), (2, 8, 1100)])
def test_copies_of_what_is_read_once(sizes: tuple[int, int, int]) -> None:
    """One row of X alone reads W: then the copies have a cache policy."""
    m, n, k = sizes
    x = RNG.integers(-128, 128, (m, k)).astype(np.int8)
    weights = RNG.integers(0, 3, (n, k))
    packed = (weights.reshape(n, k // 4, 4) << np.array([0, 2, 4, 6])).sum(axis=-1).astype(np.uint8)
    kernel = tile2cu.load(EXAMPLES / "w2a8.py", kernel="w2a8_gemv", device="ptx")
    assert "tl::copy_async_once<" in kernel.source
    np.testing.assert_array_equal(kernel(x, packed), x.astype(int) @ (weights - 1).T)


@pytest.mark.nightly  # for each change: tests/host/test_launches.py
def test_launches_of_one_call_share_the_workspace(tmp_path: Path) -> None:
    path = tmp_path / "total.py"
    path.write_text(SPLIT.format(between=""), encoding="utf-8")
    a = numbers(5, 200).round()
    np.testing.assert_array_equal(tile2cu.load(path, device="ptx")(a), a.sum(axis=1))


# ---- what the machine is for: faults in headers/tl/cuda, which the CPU engine does not read ------------------

FAULTS = {
    "operands of B swapped": ("mma.h", '"r"(a[3]), "r"(b[0]), "r"(b[1])', '"r"(a[3]), "r"(b[1]), "r"(b[0])'),
    "rows of A swapped": ("mma.h", '"r"(a[0]), "r"(a[1]), "r"(a[2])', '"r"(a[1]), "r"(a[0]), "r"(a[2])'),
    "a matrix not transposed": ("warp.h", "ldmatrix.sync.aligned.m8n8.x4.trans", "ldmatrix.sync.aligned.m8n8.x4"),
    "a wait for one group too few": ("cp_async.h", '"n"(n)', '"n"(n + 1)'),
}


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("fault", [pytest.param(None, marks=pytest.mark.nightly), *FAULTS])
def test_a_fault_in_an_asm_statement_is_seen(fault: str | None, tmp_path: Path, nvcc: str) -> None:
    """One block of the text with fixed sizes; without a fault it is right."""
    headers = Path(shutil.copytree(ROOT / "headers", tmp_path / "headers"))
    if fault:
        name, right, wrong = FAULTS[fault]
        file = headers / "tl" / "cuda" / name
        text = file.read_text(encoding="utf-8")
        assert right in text
        file.write_text(text.replace(right, wrong), encoding="utf-8")
    out = tmp_path / "gemm.ptx"
    flags = ["-O3", "-std=c++17", "-gencode", "arch=compute_80,code=compute_80", f"-I{headers}"]
    source = ROOT / "emitted" / "cuda" / "sm_80" / "static" / "gemm_relu.cu"
    subprocess.run([nvcc, *flags, "-ptx", str(source), "-o", str(out)], check=True)
    module = Module.load(out)
    a, b, c = integers(1024, 1024), integers(1024, 1024), np.zeros((1024, 1024), np.float16)
    module.launch(module.find("kernel"), (1,), (128,), [a, b, c], shared_bytes=49152)
    assert np.array_equal(c[:128, :128], relu_product(a[:128], b[:, :128])) == (fault is None)
    assert not c[128:].any() and not c[:, 128:].any()


def test_an_access_out_of_bounds_is_refused_with_its_place(tmp_path: Path) -> None:
    for ending in ("cu", "h", "json"):
        shutil.copy(ROOT / "emitted" / "cuda" / "sm_80" / f"vector_add.{ending}", tmp_path)
    text = (tmp_path / "vector_add.cu").read_text(encoding="utf-8")
    (tmp_path / "vector_add.cu").write_text(
        text.replace("A_data, tl::predicated(N)", "A_data, tl::predicated(N + 4)"), encoding="utf-8"
    )
    kernel = load_kernel(tmp_path, device="ptx")
    with pytest.raises(SimulationError, match="byte 4000 of `A`, which has 4000 are out of bounds") as raised:
        kernel(numbers(1000), numbers(1000))
    assert raised.value.code == "T2C-R210" and "ld.global" in str(raised.value) and "thread " in str(raised.value)


@pytest.mark.binding
def test_the_launchers_own_refusal_is_raised() -> None:
    """The emitted host code decides, with what it is told of the device."""
    kernel = load("gemm_relu")
    with pytest.raises(LaunchError, match="TL_INVALID_SIZE"):
        kernel(np.zeros((65536 * 128, 0), np.float16), np.zeros((0, 0), np.float16))


@pytest.fixture(scope="module")
def decoding() -> Kernel:
    sizes = {"kv_heads": 1, "group": 8, "block_H": 16, "threads": 32, "max_len": 100, "dim": 64, "num_split": 1}
    return load("flash_decoding", zero_tail=True, batch=1, **sizes)


def decoded(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q @ k^T / 8) @ v in double precision."""
    scores = q.astype(np.float64) @ k.astype(np.float64).T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)


def test_cp_async_fills_the_tail_of_a_cache_with_zeros(decoding: Kernel) -> None:
    q, k, v = (numbers(rows, 64).astype(np.float16) for rows in (8, 100, 100))
    k[70:], v[70:] = np.nan, np.nan
    found = decoding(q[None, None], k[None, :, None], v[None, :, None], np.array([70], np.int32))
    np.testing.assert_allclose(found[0, 0].astype(np.float64), decoded(q, k[:70], v[:70]), atol=2e-3)


def test_weights_are_bounded_up_to_the_scores_that_the_docstring_states(decoding: Kernel) -> None:
    """Scores close to 2**23, where their products with log2(e) have no fraction: with an FMA none passes 2**(1/2).

    Two keys have the maximum, the others no weight.
    """
    q, k = np.zeros((8, 64), np.float16), np.zeros((100, 64), np.float16)
    q[:, 0] = 32000 + 16 * np.arange(8)
    k[:, 0], k[1, 0], k[5, 0] = 0, 2000, 2000
    v = numbers(100, 64).astype(np.float16)
    assert 2**22 < (q.astype(np.float64) @ k.astype(np.float64).T / 8).max() < 2**23
    found = decoding(q[None, None], k[None, :, None], v[None, :, None], np.array([100], np.int32))
    np.testing.assert_allclose(found[0, 0].astype(np.float64), decoded(q, k, v), atol=4e-3)
