"""AMD Instinct MI300.

https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/amd-instinct-mi300-cdna3-instruction-set-architecture.pdf
"""

from itertools import product

from msgspec.structs import replace

from tile2cu.core.dtype import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FLOATS_OF_8_BITS,
    FNUZ_FLOATS,
    INT8,
    INT32,
    TFLOAT32,
    DType,
)
from tile2cu.targets.gfx90a import GFX90A
from tile2cu.targets.table import Mfma

# xf32 reads the 10 digits that a tfloat32 has. GEMMs of float do not use it: they keep all digits.
XF32 = (
    Mfma("v_mfma_f32_16x16x8_xf32", TFLOAT32, FLOAT32, size=16, k=8),
    Mfma("v_mfma_f32_32x32x4_xf32", TFLOAT32, FLOAT32, size=32, k=4),
)
FLOAT = (
    Mfma("v_mfma_f32_16x16x4_f32", FLOAT32, FLOAT32, size=16, k=4),
    Mfma("v_mfma_f32_32x32x2_f32", FLOAT32, FLOAT32, size=32, k=2),
    Mfma("v_mfma_f64_16x16x4_f64", FLOAT64, FLOAT64, size=16, k=4),
)
HALF = (
    Mfma("v_mfma_f32_16x16x16_f16", FLOAT16, FLOAT32, size=16, k=16),
    Mfma("v_mfma_f32_32x32x8_f16", FLOAT16, FLOAT32, size=32, k=8),
    Mfma("v_mfma_f32_16x16x16_bf16", BFLOAT16, FLOAT32, size=16, k=16),
    Mfma("v_mfma_f32_32x32x8_bf16", BFLOAT16, FLOAT32, size=32, k=8),
)
INTEGER = (
    Mfma("v_mfma_i32_16x16x32_i8", INT8, INT32, size=16, k=32),
    Mfma("v_mfma_i32_32x32x16_i8", INT8, INT32, size=32, k=16),
)


def fp8(e4m3: DType, e5m2: DType) -> tuple[Mfma, ...]:
    """MFMAs of every two of a target's own 8-bit formats. The name's first is that of B: it goes first (Mfma)."""
    kinds = {e4m3: "fp8", e5m2: "bf8"}
    return tuple(
        Mfma(f"v_mfma_f32_{shape}_{kinds[b]}_{kinds[a]}", a, FLOAT32, size=size, k=k, operand_b=b)
        for a, b in product(kinds, kinds)
        for shape, size, k in (("16x16x32", 16, 32), ("32x32x16", 32, 16))
    )


def through_half(own: tuple[DType, ...], *depths: int) -> tuple[Mfma, ...]:
    """MFMAs of two 8-bit floats of which one is not the target's own: as halves, which hold their values exactly."""
    return tuple(
        Mfma(f"v_mfma_f32_16x16x{k}_f16", a, FLOAT32, size=16, k=k, through=FLOAT16, operand_b=b)
        for a, b in product(FLOATS_OF_8_BITS, FLOATS_OF_8_BITS)
        if not {a, b} <= set(own)
        for k in depths
    )


# AMD CDNA 3 white paper, "XCD": 8 XCDs in an MI300X, each with 4 MB of L2; workgroups go to them round-robin.
GFX942 = replace(
    GFX90A,
    name="hip:gfx942",
    arch="gfx942",
    mfma=HALF + INTEGER + fp8(*FNUZ_FLOATS) + through_half(FNUZ_FLOATS, 16) + XF32 + FLOAT,
    load_lds=(4,),
    fp8="fnuz",
    source="https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/"
    "amd-instinct-mi300-cdna3-instruction-set-architecture.pdf",
    capability=(9, 4),
    multiprocessors=304,
    dies=8,
)
