"""Calls of the examples whose inputs and references are tools/'s, on AMD targets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import inputs
import references
import tile2cu
from tests.host.example_calls import EXAMPLES, Array, assert_close
from tests.host.examples import halves, run
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(1)
HALF = "float16"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel of examples/, what it is loaded with, its inputs in float64 with their types, and what they give."""

    file: str
    data: list[Array] = field(default_factory=list)
    types: tuple[str, ...] = ()
    expected: object = None
    kernel: str | None = None
    bindings: dict[str, object] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    tolerance: float = 2e-3

    def __str__(self) -> str:
        name = self.kernel or self.file.removesuffix(".py")
        return f"{name} {dtype}" if (dtype := self.bindings.get("dtype")) else name

    def load(self, target: str, device: str, style: str = "tl", **options: object) -> Kernel:
        path, given = EXAMPLES / self.file, {"device": device, "style": style, "check": True, "options": options}
        return tile2cu.load(path, self.kernel, target=target, **given, **self.bindings)

    def check(self, kernel: Kernel) -> None:
        expected = self.expected if isinstance(self.expected, tuple | list) else [self.expected]
        for found, array in zip(run(kernel, self.data, self.types, **self.sizes), expected, strict=True):
            assert_close(found, array, self.tolerance)


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
NARROW = halves(inputs.normals(RNG, [(7, 96), (96,)]))
PRODUCT = inputs.small_integers(RNG, [(152, 208), (136, 208), (136,)])
LINEAR = halves(inputs.normals(RNG, [(1, 150, 1, 64)] * 2 + [(1, 150, 1, 136)]))
QKV = halves(inputs.normals(RNG, [(1, 70, 1, 64)] * 4))
FORWARD = [*halves(references.attention_forward(QKV[:3], {"is_causal": True})[:1])]
LOGITS = inputs.logits(RNG, [(5, 1100), (5,)])
BATCHED = inputs.small_integers(RNG, [(2, 70, 40), (2, 40, 72)])
BACKWARD = [*QKV[:3], *FORWARD, references.attention_forward(QKV[:3], {"is_causal": True})[1], QKV[3]]

MORE = (
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
        file="attention_backward.py",
        kernel="attention_forward",
        data=QKV[:3],
        types=(HALF, HALF, HALF),
        expected=references.attention_forward(QKV[:3], {"is_causal": True}),
        bindings={"dim": 64, "is_causal": True},
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
        file="gemm_batched.py",
        kernel="gemm_batched",
        data=BATCHED,
        types=(HALF, HALF),
        expected=BATCHED[0] @ BATCHED[1],
        bindings={"block_M": 64, "block_N": 64},
        tolerance=0.0,
    ),
    *(
        Case(
            file="gemm.py",
            data=PRODUCT,
            types=(dtype, dtype, accumulator),
            expected=references.gemm(PRODUCT, {"transpose_B": True}),
            bindings={
                "transpose_B": True,
                "bias": True,
                "dtype": dtype,
                "accum_dtype": accumulator,
                "out_dtype": accumulator,
            },
            tolerance=0.0,
        )
        for dtype, accumulator in (("int8", "int32"), ("float8_e4m3fn", "float32"), ("float8_e5m2fnuz", "float32"))
    ),
    Case(
        file="gemm_persistent.py",
        data=PARTS,
        types=(HALF, HALF),
        expected=np.maximum(PARTS[0] @ PARTS[1], 0),
        bindings={"programs": 3, "block_M": 64, "block_N": 64, "block_K": 32},
        tolerance=0.0,
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
    *(
        Case(
            file="w2a8.py",
            kernel=kernel,
            data=TERNARY,
            types=("int8", "uint8"),
            expected=references.w2a8(TERNARY, {}),
            tolerance=0.0,
        )
        for kernel in ("w2a8_gemm", "w2a8_gemv")
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
        file="dequant.py",
        kernel="dequant_gemv",
        data=FOUR_BITS,
        types=(HALF, "uint8", HALF),
        expected=references.dequant(FOUR_BITS, {"weights": "fp4", "group": 64}),
        bindings={"weights": "fp4", "group": 64},
    ),
    Case(
        file="cross_entropy.py",
        data=LOGITS,
        types=(HALF, "int32"),
        expected=references.cross_entropy([*halves(LOGITS[:1]), LOGITS[1]], {}),
        bindings={"block_N": 512},
    ),
    Case(
        file="rmsnorm_silu.py",
        data=NARROW,
        types=(HALF, HALF),
        expected=references.rmsnorm_silu(NARROW, {}),
        bindings={"dim": 96},
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
