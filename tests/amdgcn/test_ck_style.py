"""The style ck, executed: clang compiles it against ck_tile's headers, and the simulator checks every access.

A build takes some 6 to 40 s of a core; all but one run nightly.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import inputs
import references
import tile2cu
from tests import style_forms
from tests.amdgcn.build import run
from tests.amdgcn.chips import require_compiler
from tests.amdgcn.code import assert_fits, assert_well_compiled
from tests.host.example_calls import EXAMPLES, RAGGED, Example
from tests.host.more_calls import MORE, Case
from tests.quick_simulator import users_way
from tile2cu_runtime import binding
from tile2cu_runtime.amdgcn import CodeObject
from tile2cu_runtime.hip import CODE_OBJECT, code_object_commands

pytestmark = pytest.mark.needs("ck")

ROOT = Path(__file__).resolve().parents[2]
EACH_TIME = ("vector_add",)
OTHER_FP8 = {"float8_e4m3fn", "float8_e5m2"}  # gfx942 has no type for these in ck_tile
CASES = [
    pytest.param(example, marks=() if str(example) in EACH_TIME else pytest.mark.nightly, id=f"{number} {example}")
    for number, example in enumerate(RAGGED)
]


def load(example: Example, style: str, chip: str = "gfx942") -> tile2cu.Kernel:
    path, target = EXAMPLES / example.file, f"hip:{chip}"
    loaded = partial(tile2cu.load, path, example.kernel, target=target, device="sim", style=style)
    return loaded(check=True, options={"statistics": True}, **example.bindings)


@pytest.mark.parametrize("example", CASES)
def test_example(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    if str(example) in EACH_TIME:  # in others clang does not read the kernel for the host
        monkeypatch.setattr(binding, "build_library", users_way)
    kernel = load(example, "ck")
    assert "#include <tl/ck.h>" in kernel.source
    assert_well_compiled(kernel)
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


BY_COLUMNS = re.compile(
    r"// for example, \(k, n\) = \((\d+), (\d+)\): .*?, byte ([\d,]+)\n(?:  +//.*\n)* +tl::LdsTile<.*> (\w+)[\[;]"
)
TRANSPOSED = [
    path for path in sorted((ROOT / "emitted/ck").rglob("*.hip")) if BY_COLUMNS.search(path.read_text(encoding="utf-8"))
]


@pytest.mark.nightly
@pytest.mark.parametrize("path", TRANSPOSED, ids=lambda path: path.stem)
def test_tiles_are_stored_where_a_comment_computes(path: Path, tmp_path: Path) -> None:
    """ck_tile's descriptor of a tile that is stored by columns has the byte of the example."""
    text = path.read_text(encoding="utf-8")
    for k, n, byte, name in BY_COLUMNS.findall(text):
        tile, at = f"std::remove_all_extents_t<decltype(Shared::{name})>", f"ck_tile::make_tuple({k}, {n})"
        offset = f"{tile}::descriptor().calculate_offset({at}) * sizeof({tile}::Element)"
        behind = text.index("static_assert(sizeof(Shared) ==", text.index(f"> {name}["))
        text = f"{text[:behind]}static_assert({offset} == {byte.replace(',', '')});\n{text[behind:]}"
    source = tmp_path / path.name
    source.write_text(text, encoding="utf-8")
    (command, *_) = code_object_commands(str(source), architecture="gfx942", needs=("composable_kernel",))
    run([*command, "-w", "-I", str(path.parent), "-fsyntax-only"])


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted((ROOT / "emitted/ck").rglob("*.hip")), ids=lambda path: path.stem)
def test_no_emitted_source_spills(path: Path, tmp_path: Path) -> None:
    """Also of operands of 8 bits, whose bytes would be in registers of their own."""
    (command, *_) = code_object_commands(str(path), architecture="gfx942", needs=("composable_kernel",))
    run([*command[:-1], str(tmp_path / CODE_OBJECT)])
    assert_fits(tmp_path / CODE_OBJECT)
    code = CodeObject.load(tmp_path / CODE_OBJECT)
    assert not [name for name in code.kernel_names if code.kernel(name).spills]


@pytest.mark.nightly
def test_kernels_against_what_the_style_assumes(tmp_path: Path) -> None:
    kernel = style_forms.load(tmp_path, "ck", "hip:gfx942", "sim")
    style_forms.check(kernel)
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
@pytest.mark.parametrize("block_M", [64, 128])
def test_attention_has_the_lds_clocks_of_the_style_tl(block_M: int) -> None:
    """P's registers give the order of keys in which V is stored: no bank conflicts, and results within rounding.

    128 queries take all but a few of 256 registers: windows on LDS must share addresses.
    """
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((1, 256, 2, 128)).astype(np.float16) for _ in range(3)]
    found = {}
    for style in ("ck", "tl"):
        kernel = tile2cu.load(
            EXAMPLES / "attention.py", target="hip:gfx942", device="sim", style=style, check=True,
            options={"statistics": True}, dim=128, block_M=block_M, threads=256, slack=0, is_causal=False,
        )  # fmt: skip
        assert_well_compiled(kernel)
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
@pytest.mark.parametrize("case", [each for each in MORE if not (OTHER_FP8 & set(each.types))], ids=str)
def test_more_examples(case: Case) -> None:
    """Also what reduces vectors across threads, dimensions of three, and halves."""
    kernel = case.load("hip:gfx942", "sim", "ck")
    assert_fits(kernel.library.parent / CODE_OBJECT)
    case.check(kernel)
    assert kernel.report is not None and kernel.report.is_clean


ONE_VALUE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def one_value(M, N=1000, threads=256):
    @T.prim_func
    def main(A: T.Tensor((M, N), "{dtype}"), C: T.Tensor((M, 4), "{dtype}")):
        with T.Kernel(M, threads=threads) as row:
            x = T.alloc_fragment((N,), "{dtype}")
            total = T.alloc_fragment((1,), "{dtype}")
            largest = T.alloc_fragment((1,), "{dtype}")
            smallest = T.alloc_fragment((1,), "{dtype}")
            magnitude = T.alloc_fragment((1,), "{dtype}")
            T.copy(A[row, 0], x)
            T.fill(total, 1)
            T.reduce_sum(x, total, dim=0, clear=False)
            T.reduce_max(x, largest, dim=0)
            T.reduce_min(x, smallest, dim=0)
            T.reduce_absmax(x, magnitude, dim=0)
            for i in T.Parallel(1):
                C[row, i] = total[0]
                C[row, i + 1] = largest[0]
                C[row, i + 2] = smallest[0]
                C[row, i + 3] = magnitude[0]

    return main
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n", "threads", "dtype"), [(1000, 256, "float32"), (40, 64, "float32"), (32, 128, "int32"), (1024, 128, "int32")]
)
def test_a_vector_becomes_one_value(n: int, threads: int, dtype: str, tmp_path: Path) -> None:
    """Of vectors with idle places, of fewer elements than threads, in one wave and in several."""
    path = tmp_path / "one_value.py"
    path.write_text(ONE_VALUE.replace("{dtype}", dtype), encoding="utf-8")
    a = np.random.default_rng(n).integers(-9, 10, (3, n)).astype(dtype)
    expected = np.stack([a.sum(1) + 1, a.max(1), a.min(1), abs(a).max(1)], 1)
    for style in ("ck", "tl"):
        kernel = tile2cu.load(
            path, target="hip:gfx942", device="sim", style=style, check=True, options={}, N=n, threads=threads
        )
        c = np.zeros((3, 4), dtype)
        kernel(a, c)
        np.testing.assert_array_equal(c, expected)
        assert kernel.report is not None and kernel.report.is_clean


MATRIX_VECTOR = [
    ("gemv.py", "gemv", {"block_K": 256}, [((1000,), "float16"), ((13, 1000), "float16")]),
    ("w2a8.py", "w2a8_gemv", {}, [((3, 2040), "int8"), ((21, 510), "uint8")]),
    (
        "dequant.py",
        "dequant_gemv",
        {"weights": "fp4", "group": 64, "block_K": 512},
        [((2, 1536), "float16"), ((21, 768), "uint8"), ((21, 24), "float16")],
    ),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("file", "name", "bindings", "given"), MATRIX_VECTOR, ids=[each[1] for each in MATRIX_VECTOR])
def test_products_with_vectors_have_the_bytes_of_the_style_tl(
    file: str, name: str, bindings: dict[str, object], given: list[tuple[tuple[int, ...], str]]
) -> None:
    """Sums of small integers are exact, also those of 32 products in float16."""
    generator = np.random.default_rng(2)
    data = []
    for shape, dtype in given:
        low, high = (0, 256) if dtype == "uint8" else (-1, 2)
        data.append(generator.integers(low, high, shape).astype(dtype))
    found = []
    for style in ("ck", "tl"):
        kernel = tile2cu.load(
            EXAMPLES / file, name, target="hip:gfx942", device="sim", style=style, check=True, options={}, **bindings
        )
        found.append(np.asarray(kernel(*data)))
        assert kernel.report is not None and kernel.report.is_clean
    assert found[0].any() and found[0].tobytes() == found[1].tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize(("chip", "dtype"), [("gfx942", "float8_e4m3fnuz"), ("gfx950", "float8_e4m3fn")])
def test_operands_that_are_parts_of_a_tile(chip: str, dtype: str, request: pytest.FixtureRequest) -> None:
    """Both halves of B's tile, each with its scales; scales are powers of two, so that sums are exact."""
    require_compiler(chip, request)
    generator, found = np.random.default_rng(4), []
    m, n, k = 70, 300, 272
    a, b = (generator.integers(-3, 4, shape).astype(getattr(ml_dtypes, dtype)) for shape in ((m, k), (n, k)))
    scales = [2.0 ** generator.integers(-1, 2, shape).astype(np.float32) for shape in ((m, 3), (3, 3))]
    wide = [np.pad(each.astype(float), ((0, 0), (0, 112))).reshape(-1, 3, 128) for each in (a, b)]
    of_b = np.repeat(scales[1], 128, 0)[:n]
    expected = np.einsum("mgk,ngk,mg,ng->mn", *wide, scales[0], of_b)
    for style in ("ck", "tl"):
        kernel = tile2cu.load(
            EXAMPLES / "gemm_fp8_scaled.py", target=f"hip:{chip}", device="sim", style=style, check=True, options={},
            dtype=dtype, out_dtype="float32",
        )  # fmt: skip
        found.append(np.asarray(kernel(a, b, *scales)))
        np.testing.assert_array_equal(found[-1], expected)
        assert kernel.report is not None and kernel.report.is_clean
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.nightly
def test_the_loop_of_a_gemm_has_as_few_vector_instructions_as_that_of_ck_tile() -> None:
    """13 per iteration in ck_tile's pipeline with its default policy, of the same tiles (docs/lab/amd.md)."""
    kernel = tile2cu.load(
        ROOT / "benchmarks/kernels/gemm_nt.py", target="hip:gfx942", device="sim", style="ck", check=True,
        options={"statistics": True},
    )  # fmt: skip
    found = []
    for k in (256, 512):
        a, b = (np.random.default_rng(k).integers(-2, 3, (128, k)).astype(np.float16) for _ in range(2))
        np.testing.assert_array_equal(kernel(a, b), (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))
        cost = kernel.costs[0]
        found.append(cost.count("vector") / cost.waves)
    assert (found[1] - found[0]) / (256 // 32) <= 13


@pytest.mark.nightly
def test_gfx90a() -> None:
    example = next(each for each in RAGGED if str(each) == "gemm_relu")
    kernel = load(example, "ck", "gfx90a")
    for call in example.calls:
        call.check(kernel)
        assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.nightly
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
