"""AMD Instinct MI350.

https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/amd-instinct-cdna4-instruction-set-architecture.pdf
"""

from itertools import product

from msgspec.structs import replace

from tile2cu.core.dtype import BFLOAT16, FLOAT16, FLOAT32, INT8, INT32, OCP_FLOATS, TFLOAT32
from tile2cu.targets.gfx942 import FLOAT, GFX942, HALF, INTEGER, fp8, through_half
from tile2cu.targets.table import Mfma

# The wider shapes read 16 bytes per lane; those of gfx942 are for a K that is too short for them.
WIDE = (
    Mfma("v_mfma_f32_16x16x32_f16", FLOAT16, FLOAT32, size=16, k=32),
    Mfma("v_mfma_f32_32x32x16_f16", FLOAT16, FLOAT32, size=32, k=16),
    Mfma("v_mfma_f32_16x16x32_bf16", BFLOAT16, FLOAT32, size=16, k=32),
    Mfma("v_mfma_f32_32x32x16_bf16", BFLOAT16, FLOAT32, size=32, k=16),
    Mfma("v_mfma_i32_16x16x64_i8", INT8, INT32, size=16, k=64),
    Mfma("v_mfma_i32_32x32x32_i8", INT8, INT32, size=32, k=32),
)

# Twice the operations per cycle of gfx942's; without scales. [AMD, "Matrix Core Programming on AMD CDNA3 and CDNA4
# architecture", ROCm blogs, 2025: 32 cycles]
WIDE_FP8 = tuple(
    Mfma("v_mfma_f32_16x16x128_f8f6f4", a, FLOAT32, size=16, k=128, operand_b=b)
    for a, b in product(OCP_FLOATS, OCP_FLOATS)
)
# xf32 of gfx942 is gone, and its 8-bit format, FNUZ, no longer supported.
TF32 = (Mfma("v_mfma_f32_16x16x4_f32", TFLOAT32, FLOAT32, size=16, k=4, through=FLOAT32),)

# "Local Data Share": 160 KB, 64 banks.
GFX950 = replace(
    GFX942,
    name="hip:gfx950",
    arch="gfx950",
    shared_limit=160 * 1024,
    mfma=WIDE + HALF + INTEGER + WIDE_FP8 + fp8(*OCP_FLOATS) + through_half(OCP_FLOATS, 32, 16) + TF32 + FLOAT,
    load_lds=(4, 12, 16),
    transposing_reads=(1, 2),  # ds_read_b64_tr_b8, ds_read_b64_tr_b16
    fp8="ocp",
    banks=64,
    clang=22,
    lds_step=1280,
    source="https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/"
    "amd-instinct-cdna4-instruction-set-architecture.pdf",
    capability=(9, 5),
    multiprocessors=256,
)
