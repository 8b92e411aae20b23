"""gfx950: tiles that go to shared memory past the registers, on the CPU engine and as code objects."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, paths

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(params=["cpu", "sim"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "sim":
        request.getfixturevalue("ziglang")
    return str(request.param)


def load(path: str, device: str, **bindings: object) -> Kernel:
    return tile2cu.load(EXAMPLES / path, target="hip:gfx950", device=device, check=True, options={}, **bindings)


def assert_loads(kernel: Kernel, *, direct: bool) -> None:
    """The launch found nothing, and brought its tiles the one way or the other."""
    assert kernel.report is not None and not kernel.report.findings
    for cost in kernel.costs:
        assert (cost.direct_to_lds > 0, cost.executed("ds_write") == 0) == (direct, direct)


@pytest.mark.sweep
@pytest.mark.parametrize("stages", [1, 3, *(pytest.param(each, marks=pytest.mark.nightly) for each in (2, 4))])
def test_product(stages: int, device: str) -> None:
    """Each depth, with fewer turns than stages, too; ragged in all three sizes; rows that start anywhere are stored."""
    kernel = load("gemm_relu.py", device, block_M=64, block_N=64, block_K=32, threads=128, num_stages=stages)
    assert "tl::copy_async<threads>(A.tile(" in kernel.source and "tl::Staged" not in kernel.source
    for m, n, k in ((100, 72, 168), (64, 64, 32), (1, 8, 8), (33, 71, 45)):
        random = np.random.default_rng(m)
        a, b = random.integers(-3, 4, (m, k)).astype(np.float16), random.integers(-3, 4, (k, n)).astype(np.float16)
        expected = np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0).astype(np.float16)
        np.testing.assert_array_equal(kernel(a, b), expected)
        assert_loads(kernel, direct=n % 8 == 0)


def test_attention(device: str) -> None:
    """Tiles of two swizzles, and one without: K and V in the loop, Q in registers' way."""
    kernel = load("attention.py", device, dim=64, block_M=64, block_N=64, threads=256)
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((1, 150, 2, 64)).astype(np.float16) for _ in range(3))
    wide = [each.astype(np.float64) for each in (q, k, v)]
    weights = np.exp(np.einsum("bshd,bthd->bhst", wide[0], wide[1]) / 8)
    expected = np.einsum("bhst,bthd->bshd", weights / weights.sum(axis=-1, keepdims=True), wide[2])
    np.testing.assert_allclose(kernel(q, k, v), expected, atol=2e-3)
    assert kernel.report is not None and not kernel.report.findings
    assert all(cost.direct_to_lds > 0 for cost in kernel.costs)


LINES = """
    S = T.alloc_shared((512,), "float16")
    W = T.alloc_shared((8, 192), "float16")
    for k in T.Pipelined(T.ceildiv(N, 512), num_stages=3):
        T.copy(X[k * 512], S)
        T.copy(Z[k * 8, 0], W)
        for i in T.Parallel(512):
            Y[k * 512 + i] = S[i] + W[i % 8, i % 192]
"""


def test_tiles_that_the_threads_do_not_divide(device: str, tmp_path: Path) -> None:
    """One dimension, of which some waves bring nothing; rows of 384 bytes in panels; stores between the turns."""
    params = 'X: T.Tensor((N,), "float16"), Z: T.Tensor((M, 192), "float16"), Y: T.Tensor((N,), "float16")'
    kernel = load_body(tmp_path, LINES, params, target="hip:gfx950", device=device, arguments="M, N", threads=128)
    assert "constexpr int loads_per_iteration = 1;" in kernel.source
    for n, m in ((1600, 27), (512, 8), (8, 1)):
        random = np.random.default_rng(n)
        x, z = random.standard_normal(n).astype(np.float16), random.standard_normal((m, 192)).astype(np.float16)
        at = np.arange(n)
        rows = at // 512 * 8 + at % 512 % 8
        expected = x + np.where(rows < m, z[np.minimum(rows, m - 1), at % 512 % 192], np.float16(0))
        np.testing.assert_array_equal(kernel(x, z), expected)
        assert kernel.report is not None and not kernel.report.findings
        assert all(cost.direct_to_lds > 0 for cost in kernel.costs)


@pytest.mark.parametrize(
    ("tile", "tensor"), [('(8, 24), "float16"', "24"), ('(64, 32), "float32"', "32"), ('(64, 32), "float16"', "36")]
)
def test_what_does_not_go_past_the_registers(tile: str, tensor: str, tmp_path: Path) -> None:
    """Less than a wave's load, another type, rows at multiples of 8 bytes: by registers, as on gfx942."""
    rows, cols = tile[1 : tile.index(")")].split(", ")
    body = f"""
        S = T.alloc_shared({tile})
        for k in T.Pipelined(2, num_stages=3):
            T.copy(X[k * {rows}, 0], S)
            for i, j in T.Parallel({rows}, {cols}):
                Y[k * {rows} + i, j] = S[i, j]
    """
    params = f'X: T.Tensor((M, {tensor}), "float16"), Y: T.Tensor((M, {cols}), "float16")'
    kernel = load_body(tmp_path, body, params, target="hip:gfx950", device="cpu", arguments="M")
    assert "Register-staged pipeline" in kernel.source
    x = np.random.default_rng(0).standard_normal((2 * int(rows) - 3, int(tensor))).astype(np.float16)
    np.testing.assert_array_equal(kernel(x), x[:, : int(cols)])


@pytest.mark.nightly
@pytest.mark.parametrize("stages", [2, 3])
def test_a_missing_wait_is_found(stages: int, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that wait for one tile less: the products meet bytes that have not come yet."""
    shutil.copytree(paths.headers_dir(), tmp_path / "headers")
    header = tmp_path / "headers" / "tl" / "common" / "cdna" / "direct.h"
    waits = "wait_vector_memory<tiles * loads>"
    assert waits in header.read_text(encoding="utf-8")
    header.write_text(
        header.read_text(encoding="utf-8").replace(waits, "wait_vector_memory<(tiles + 1) * loads>"), encoding="utf-8"
    )
    monkeypatch.setattr(paths, "headers_dir", lambda: tmp_path / "headers")
    kernel = load("gemm_relu.py", device, block_M=64, block_N=64, block_K=32, threads=128, num_stages=stages)
    with pytest.raises(CheckError, match="read of in-flight async copy" if device == "cpu" else "lds-race"):
        kernel(np.zeros((64, 160), np.float16), np.zeros((160, 64), np.float16))
