"""The style ck, executed: clang compiles it against ck_tile's headers, and the simulator checks every access.

A build takes some 10 to 40 s of a core; all but a few run nightly.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import inputs
import references
import tile2cu
from tests.amdgcn.chips import require_compiler
from tests.amdgcn.code import assert_well_compiled
from tests.host.example_calls import EXAMPLES, RAGGED, Example

pytestmark = pytest.mark.needs("ck")

EACH_TIME = ("vector_add", "gemm_relu")
UNSUPPORTED = ("gemv",)
CASES = [
    pytest.param(example, marks=() if str(example) in EACH_TIME else pytest.mark.nightly, id=f"{number} {example}")
    for number, example in enumerate(RAGGED)
    if str(example) not in UNSUPPORTED
]


def load(example: Example, style: str, chip: str = "gfx942") -> tile2cu.Kernel:
    path, target = EXAMPLES / example.file, f"hip:{chip}"
    loaded = partial(tile2cu.load, path, example.kernel, target=target, device="sim", style=style)
    return loaded(check=True, options={"statistics": True}, **example.bindings)


@pytest.mark.parametrize("example", CASES)
def test_example(example: Example) -> None:
    kernel = load(example, "ck")
    assert "#include <tl/ck.h>" in kernel.source
    assert_well_compiled(kernel)
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


SCALED_ROWS = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled_rows(M, block_M=16, N=64):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"), S: T.Tensor((M,), "float32"), C: T.Tensor((M, N), "float32"),
        total: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            scales = T.alloc_shared((block_M,), "float32")
            rows = T.alloc_fragment((block_M, N), "float32")
            sums = T.alloc_fragment((N,), "float32")
            T.copy(S[bx * block_M], scales)
            T.copy(A[bx * block_M, 0], rows)
            for i, j in T.Parallel(block_M, N):
                rows[i, j] = rows[i, j] * scales[i]
            T.copy(rows, C[bx * block_M, 0])
            T.reduce_sum(rows, sums, dim=0)
            for j in T.Parallel(N):
                T.atomic_add(total[j], sums[j])

    return main
"""


@pytest.mark.nightly
def test_fewer_elements_than_threads(tmp_path: Path) -> None:
    """One of the threads that hold an element stores it, or adds it; sums of columns are of warps, too."""
    (tmp_path / "scaled_rows.py").write_text(SCALED_ROWS, encoding="utf-8")
    kernel = tile2cu.load(
        tmp_path / "scaled_rows.py", target="hip:gfx942", device="sim", style="ck", check=True, options={}
    )
    generator = np.random.default_rng(5)
    a = generator.integers(-9, 10, (37, 64)).astype(np.float32)
    s = generator.integers(-9, 10, 37).astype(np.float32)
    c, total = np.zeros_like(a), np.zeros(64, np.float32)
    kernel(a, s, c, total)
    np.testing.assert_array_equal(c, a * s[:, None])
    np.testing.assert_array_equal(total, c.sum(0))
    assert kernel.report is not None and kernel.report.is_clean


WIDE = ("vector_add", "row_softmax", "attention")


@pytest.mark.nightly
@pytest.mark.parametrize("example", [each for each in RAGGED if str(each) in WIDE], ids=str)
def test_example_on_gfx950(ziglang: str, example: Example) -> None:
    kernel = load(example, "ck", "gfx950")
    assert_well_compiled(kernel)
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


INT8 = {"dtype": "int8", "out_dtype": "int32", "accum_dtype": "int32", "transpose_B": True}
FP8 = {"dtype": "float8_e4m3fnuz", "out_dtype": "float32", "transpose_B": True}
BF8 = {"dtype": "float8_e5m2fnuz", "out_dtype": "float32"}
OCP = {"dtype": "float8_e4m3fn", "out_dtype": "float32", "transpose_B": True, "block_K": 128}
SMALL_INTEGERS = [
    ("gfx942", "gemm.py", "gemm", "int8", ((70, 96), (45, 96)), INT8),
    ("gfx942", "gemm.py", "gemm", "float8_e4m3fnuz", ((70, 144), (48, 144)), FP8),
    ("gfx942", "gemm.py", "gemm", "float8_e5m2fnuz", ((70, 144), (144, 48)), BF8),
    ("gfx950", "gemm.py", "gemm", "float8_e4m3fn", ((70, 144), (48, 144)), OCP),
    ("gfx950", "gemm.py", "gemm", "int8", ((70, 144), (45, 144)), INT8),
    ("gfx942", "gemm_batched.py", "gemm_batched", "float16", ((3, 70, 48), (3, 48, 45)), {}),
    ("gfx942", "gemm_splitk.py", "gemm_splitk", "float16", ((70, 520), (520, 48)), {}),
    ("gfx942", "gemm_splitk.py", "gemm_splitk_atomic", "float16", ((70, 520), (520, 48)), {}),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("chip", "file", "name", "dtype", "shapes", "bindings"), SMALL_INTEGERS)
def test_gemms_have_the_bytes_of_the_style_tl(
    chip: str, file: str, name: str, dtype: str, shapes: tuple[tuple[int, ...], ...], bindings: dict[str, object],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """Small integers have exact sums, in any order."""
    require_compiler(chip, request)
    generator = np.random.default_rng(1)
    element = getattr(ml_dtypes, dtype, dtype)
    a, b = (generator.integers(-4, 5, shape).astype(element) for shape in shapes)
    expected = a.astype(float) @ (b.T if bindings.get("transpose_B") else b).astype(float)
    found = []
    for style in ("ck", "tl"):
        kernel = tile2cu.load(
            EXAMPLES / file, name, target=f"hip:{chip}", device="sim", style=style, check=True, options={}, threads=256,
            **bindings,
        )  # fmt: skip
        c = np.zeros(expected.shape, np.float32)
        found.append(np.asarray(kernel(a, b, c) if name == "gemm_splitk_atomic" else kernel(a, b)))
        found[-1] = c if name == "gemm_splitk_atomic" else found[-1]
        np.testing.assert_array_equal(found[-1].astype(float), expected)
        assert kernel.report is not None and kernel.report.is_clean
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.nightly
def test_attention_has_the_lds_clocks_of_the_style_tl() -> None:
    """P's registers give the order of keys in which V is stored: no bank conflicts, and results within rounding."""
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((1, 256, 2, 128)).astype(np.float16) for _ in range(3)]
    found = {}
    for style in ("ck", "tl"):
        kernel = tile2cu.load(
            EXAMPLES / "attention.py", target="hip:gfx942", device="sim", style=style, check=True,
            options={"statistics": True}, dim=128, threads=256, slack=0, is_causal=False,
        )  # fmt: skip
        found[style] = (np.asarray(kernel(*inputs)).astype(float), kernel.costs[0].measured)
    (ours, cost), (theirs, other) = found["ck"], found["tl"]
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert cost is not None and other is not None
    assert cost.lds.cycles == cost.lds.ideal <= other.lds.cycles


@pytest.mark.nightly
@pytest.mark.parametrize("style", ["ck", "tl"])
def test_flash_decoding(style: str) -> None:
    """The second launch combines what every thread holds."""
    kernel = tile2cu.load(
        EXAMPLES / "flash_decoding.py", target="hip:gfx942", device="sim", style=style, check=True, options={},
        dim=64, group=5, num_split=4, threads=256,
    )  # fmt: skip
    caches = [(2, 130, 2, 64)] * 2
    shapes = [(2, 2, 5, 64), *caches, (2,)]
    data = inputs.cache(np.random.default_rng(130), shapes)
    q, k, v = (each.astype(np.float16) for each in data[:3])
    expected = references.flash_decoding([q, k, v, data[3]], {})
    found = np.asarray(kernel(q, k, v, data[3].astype(np.int32))).astype(float)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.nightly
def test_gfx90a() -> None:
    example = next(each for each in RAGGED if str(each) == "gemm_relu")
    kernel = load(example, "ck", "gfx90a")
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.parametrize(("m", "n", "k"), [(256, 256, 128), (77, 45, 51)])
def test_gemm_has_the_bytes_and_the_lds_clocks_of_the_style_tl(m: int, n: int, k: int) -> None:
    """Small integers have exact sums. Rows that are whole vectors take as many LDS and matrix clocks."""
    example = next(each for each in RAGGED if str(each) == "gemm_relu")
    generator = np.random.default_rng(3)
    a = generator.integers(-4, 5, (m, k)).astype(np.float16)
    b = generator.integers(-4, 5, (k, n)).astype(np.float16)
    found = {}
    for style in ("tl", "ck"):
        kernel = load(example, style)
        found[style] = (np.asarray(kernel(a, b)).tobytes(), kernel.costs[0])
    assert found["tl"][0] == found["ck"][0]
    ours, theirs = found["ck"][1], found["tl"][1]
    assert ours.count("mfma") == theirs.count("mfma")
    if k % 8 == 0:
        assert ours.measured is not None and theirs.measured is not None
        assert ours.measured.lds.cycles == ours.measured.lds.ideal <= theirs.measured.lds.cycles
