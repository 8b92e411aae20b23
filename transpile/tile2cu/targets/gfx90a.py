"""AMD Instinct MI200.

https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/instinct-mi200-cdna2-instruction-set-architecture.pdf
"""

from itertools import product

from tile2cu.core.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, FLOATS_OF_8_BITS, INT8, INT32, TFLOAT32
from tile2cu.targets.table import Mfma, Target

# 16x16 comes before 32x32: the same operations per cycle, fewer registers in flight, less power.
# [ROCm documentation, "Optimizing Triton kernels": matrix_instr_nonkdim]
FLOAT = (
    Mfma("v_mfma_f32_16x16x4f32", TFLOAT32, FLOAT32, size=16, k=4, through=FLOAT32),
    Mfma("v_mfma_f32_16x16x4f32", FLOAT32, FLOAT32, size=16, k=4),
    Mfma("v_mfma_f32_32x32x2f32", FLOAT32, FLOAT32, size=32, k=2),
    Mfma("v_mfma_f64_16x16x4f64", FLOAT64, FLOAT64, size=16, k=4),
)
MFMA = (
    Mfma("v_mfma_f32_16x16x16f16", FLOAT16, FLOAT32, size=16, k=16),
    Mfma("v_mfma_f32_32x32x8f16", FLOAT16, FLOAT32, size=32, k=8),
    Mfma("v_mfma_f32_16x16x16bf16_1k", BFLOAT16, FLOAT32, size=16, k=16),
    Mfma("v_mfma_f32_32x32x8bf16_1k", BFLOAT16, FLOAT32, size=32, k=8),
    Mfma("v_mfma_i32_16x16x16i8", INT8, INT32, size=16, k=16),
    Mfma("v_mfma_i32_32x32x8i8", INT8, INT32, size=32, k=8),
)
# No instruction for 8-bit floating point, whose values halves hold exactly: MMAs of every two formats.
FP8 = tuple(
    Mfma("v_mfma_f32_16x16x16f16", a, FLOAT32, size=16, k=16, through=FLOAT16, operand_b=b)
    for a, b in product(FLOATS_OF_8_BITS, FLOATS_OF_8_BITS)
)

# "Local Data Share": 64 KB, 32 banks of 4 bytes; "Program Organization": waves of 64, up to 1024 work-items.
GFX90A = Target(
    name="hip:gfx90a",
    arch="gfx90a",
    clang=19,
    shared_limit=64 * 1024,
    warp_size=64,
    max_threads=1024,
    max_registers=512,
    registers_of_block=4 * 512 * 64,  # of four SIMDs
    cp_async=False,
    mma=(),
    mfma=MFMA + FP8 + FLOAT,
    fp8="",
    source="https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/"
    "instinct-mi200-cdna2-instruction-set-architecture.pdf",
    capability=(9, 0),
    multiprocessors=104,
)
