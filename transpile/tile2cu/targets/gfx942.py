"""AMD Instinct MI300.

https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/amd-instinct-mi300-cdna3-instruction-set-architecture.pdf
"""

from dataclasses import replace

from tile2cu.core.dtype import (
    BFLOAT16,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2FNUZ,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    OCP_FLOATS,
    TFLOAT32,
)
from tile2cu.targets.gfx90a import GFX90A
from tile2cu.targets.table import Mfma

# xf32 reads the 10 digits that a tfloat32 has. Products of float do without it: they stay exact to their last digit.
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
# The chip's own 8-bit floating point is FNUZ; the OCP's goes through halves, which hold its values exactly.
FP8 = (
    Mfma("v_mfma_f32_16x16x32_fp8_fp8", FLOAT8_E4M3FNUZ, FLOAT32, size=16, k=32),
    Mfma("v_mfma_f32_32x32x16_fp8_fp8", FLOAT8_E4M3FNUZ, FLOAT32, size=32, k=16),
    Mfma("v_mfma_f32_16x16x32_bf8_bf8", FLOAT8_E5M2FNUZ, FLOAT32, size=16, k=32),
    Mfma("v_mfma_f32_32x32x16_bf8_bf8", FLOAT8_E5M2FNUZ, FLOAT32, size=32, k=16),
)
FP8_THROUGH_HALF = tuple(
    Mfma("v_mfma_f32_16x16x16_f16", operand, FLOAT32, size=16, k=16, through=FLOAT16) for operand in OCP_FLOATS
)

# AMD CDNA 3 white paper, "XCD": 8 dies in an MI300X, each with 4 MB of L2; workgroups go to them in turn.
GFX942 = replace(
    GFX90A,
    name="hip:gfx942",
    arch="gfx942",
    mfma=HALF + INTEGER + FP8 + FP8_THROUGH_HALF + XF32 + FLOAT,
    load_lds=(4,),
    fp8="fnuz",
    source="https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/"
    "amd-instinct-mi300-cdna3-instruction-set-architecture.pdf",
    capability=(9, 4),
    multiprocessors=304,
    dies=8,
)
