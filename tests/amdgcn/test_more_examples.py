"""The examples whose inputs and references are tools/'s, for gfx942: executed as code, right, and nothing found."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import inputs
import references
import tile2cu
from tests.host.example_calls import EXAMPLES, Array, assert_close
from tests.host.examples import halves, run

RNG = np.random.default_rng(1)
HALF = "float16"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel of examples/, what it is loaded with, its inputs in float64 with their types, and what they give."""

    file: str
    data: list[Array]
    types: tuple[str, ...]
    expected: object
    kernel: str | None = None
    bindings: dict[str, object] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    tolerance: float = 2e-3

    def __str__(self) -> str:
        return self.kernel or self.file.removesuffix(".py")


PACKED = halves(inputs.packed(RNG, [(100, 4, 64), *[(130, 2, 64)] * 2, (4,), (4,)]))
CACHE = halves(inputs.cache(RNG, [(2, 1, 5, 64), *[(2, 100, 1, 64)] * 2, (2,)]))
PAGED = halves(inputs.paged_cache(RNG, [(2, 16, 128), (2, 16, 32), (9, 32, 128), (9, 32, 32), (2, 3), (2,)]))
GROUPED = halves(inputs.grouped(RNG, [(70, 72), (3, 72, 104), (4,)]))
PARTS = inputs.small_integers(RNG, [(70, 100), (100, 72)])
TERNARY = inputs.two_bits(RNG, [(70, 320), (72, 80)])
TALL = halves(inputs.normals(RNG, [(70, 1000)]))
X, PACKED_WEIGHTS, SCALES = inputs.four_bits(RNG, [(5, 192), (72, 96), (72, 3)])
FOUR_BITS = [*halves([X]), PACKED_WEIGHTS, *halves([SCALES])]
ROWS = halves(inputs.normals(RNG, [(5, 1000), (1000,), (1000,)]))
LINEAR = halves(inputs.normals(RNG, [(1, 150, 1, 64)] * 2 + [(1, 150, 1, 136)]))
QKV = halves(inputs.normals(RNG, [(1, 70, 1, 64)] * 4))
FORWARD = [*halves(references.attention_forward(QKV[:3], {"is_causal": True})[:1])]
BACKWARD = [*QKV[:3], *FORWARD, references.attention_forward(QKV[:3], {"is_causal": True})[1], QKV[3]]

CASES = (
    Case(
        file="attention_varlen.py",
        data=PACKED,
        types=(HALF, HALF, HALF, "int32", "int32"),
        expected=references.attention_varlen(PACKED, {"is_causal": False}),
        bindings={"dim": 64, "group": 2, "is_causal": False},
        sizes={"batch": 3, "max_seqlen": 100},
    ),
    Case(
        file="attention_backward.py",
        kernel="attention_backward",
        data=BACKWARD,
        types=(HALF, HALF, HALF, HALF, "float32", HALF),
        expected=references.attention_backward(BACKWARD, {"is_causal": True}),
        bindings={"dim": 64, "is_causal": True},
        tolerance=4e-3,
    ),
    Case(
        file="flash_decoding.py",
        data=CACHE,
        types=(HALF, HALF, HALF, "int32"),
        expected=references.flash_decoding(CACHE, {}),
        bindings={"dim": 64, "group": 5, "num_split": 8},
    ),
    Case(
        file="mla_decode.py",
        data=PAGED,
        types=(HALF, HALF, HALF, HALF, "int32", "int32"),
        expected=references.mla_decode(PAGED, {}),
        bindings={"dim": 128, "pe_dim": 32, "block_N": 32, "num_split": 1, "page_size": 32},
    ),
    Case(
        file="gemm_batched.py",
        kernel="gemm_grouped",
        data=GROUPED,
        types=(HALF, HALF, "int32"),
        expected=references.gemm_grouped(GROUPED, {}),
        bindings={"block_N": 64, "block_K": 64},
        sizes={"groups": 3},
    ),
    Case(
        file="gemm_splitk.py",
        kernel="gemm_splitk",
        data=PARTS,
        types=(HALF, HALF),
        expected=PARTS[0] @ PARTS[1],
        bindings={"splits": 3, "block_M": 64, "block_N": 64},
        tolerance=0.0,
    ),
    Case(
        file="w2a8.py",
        kernel="w2a8_gemm",
        data=TERNARY,
        types=("int8", "uint8"),
        expected=references.w2a8(TERNARY, {}),
        tolerance=0.0,
    ),
    Case(
        file="w2a8.py",
        kernel="w2a8_gemv",
        data=TERNARY,
        types=("int8", "uint8"),
        expected=references.w2a8(TERNARY, {}),
        tolerance=0.0,
    ),
    Case(
        file="reduce_rows.py",
        data=TALL,
        types=(HALF,),
        expected=TALL[0].astype(np.float64).sum(axis=1),
        bindings={"block_N": 256},
    ),
    Case(
        file="dequant.py",
        kernel="dequant_gemm",
        data=FOUR_BITS,
        types=(HALF, "uint8", HALF),
        expected=references.dequant(FOUR_BITS, {"weights": "fp4", "group": 64}),
        bindings={"weights": "fp4", "group": 64},
    ),
    Case(
        file="layernorm.py",
        data=ROWS,
        types=(HALF, HALF, HALF),
        expected=references.layernorm(ROWS, {}),
        bindings={"dim": 1000, "block_M": 2},
    ),
    Case(
        file="linear_attention.py",
        data=LINEAR,
        types=(HALF, HALF, HALF),
        expected=references.linear_attention(LINEAR, {}),
        bindings={"dim": 64},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_example(case: Case) -> None:
    kernel = tile2cu.load(
        EXAMPLES / case.file, case.kernel, target="hip:gfx942", device="sim", check=True, options={}, **case.bindings
    )
    expected = case.expected if isinstance(case.expected, tuple | list) else [case.expected]
    for found, array in zip(run(kernel, case.data, case.types, **case.sizes), expected, strict=True):
        assert_close(found, array, case.tolerance)
    assert kernel.report is not None and kernel.report.is_clean


def test_stream_k_adds_to_what_c_holds() -> None:
    """C is in and out, by atomics: five programs for six tiles."""
    bindings = {"programs": 5, "block_M": 64, "block_N": 64}
    kernel = tile2cu.load(
        EXAMPLES / "gemm_splitk.py",
        "gemm_streamk",
        target="hip:gfx942",
        device="sim",
        check=True,
        options={},
        **bindings,
    )
    a, b, c = inputs.small_integers(RNG, [(130, 200), (200, 72), (130, 72)])
    sums = c.astype(np.float32)
    kernel(a.astype(np.float16), b.astype(np.float16), sums)
    np.testing.assert_array_equal(sums, a @ b + c)
    assert kernel.report is not None and kernel.report.is_clean
