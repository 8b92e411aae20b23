"""The dense MFMA instructions of CDNA2, CDNA3 and CDNA4, and their register layouts from the manuals.

Layouts: AMD Instinct MI300 ISA, "Dense Matrix Layouts": the formulas for A, B and D in terms of H, B_I, M_I and G. The
result of the float64 4x4x4 is an exception; its layout is the output of AMD's matrix instruction calculator. CDNA4 ISA,
same chapter, for the wider shapes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mfma:
    """A mnemonic and its sizes. `a`, `b`, `d` are element types."""

    name: str
    target: str
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    d: str
    cycles: int

    def place_of_a(self, i: int, k: int, block: int) -> tuple[int, int]:
        """Item and lane of A[i][k], and of B[k][i]."""
        per_lane = self.k * self.m * self.blocks // 64
        return k % per_lane, i + self.m * (block + self.blocks * (k // per_lane))

    def place_of_d(self, i: int, j: int, block: int) -> tuple[int, int]:
        """Item and lane of D[i][j]."""
        if self.d == "f64" and self.m == 4:
            return 0, j + 4 * (block + 4 * i)
        h = 1 if self.d == "f64" else 4
        b_i = -(-64 // (self.n * self.m // h))
        m_i = 64 // b_i // self.n
        g = self.m // (h * m_i)
        item = i % h + h * (i // (h * m_i) % g + g * (block // b_i))
        return item, j + self.n * (i // h % m_i + m_i * (block % b_i))


def _rows(target: str, text: str) -> list[Mfma]:
    """Lines of: mnemonic, m n k blocks, type of A and B, type of D, cycles."""
    rows = []
    for line in text.strip().splitlines():
        name, m, n, k, blocks, types, d, cycles = line.split()
        a, _, b = types.partition("/")
        rows.append(Mfma(name, target, int(m), int(n), int(k), int(blocks), a, b or a, d, int(cycles)))
    return rows


CDNA2 = _rows(
    "gfx90a",
    """
    v_mfma_f32_32x32x1f32       32 32  1  2 f32  f32 64
    v_mfma_f32_16x16x1f32       16 16  1  4 f32  f32 32
    v_mfma_f32_4x4x1f32          4  4  1 16 f32  f32  8
    v_mfma_f32_32x32x2f32       32 32  2  1 f32  f32 64
    v_mfma_f32_16x16x4f32       16 16  4  1 f32  f32 32
    v_mfma_f32_32x32x4f16       32 32  4  2 f16  f32 64
    v_mfma_f32_16x16x4f16       16 16  4  4 f16  f32 32
    v_mfma_f32_4x4x4f16          4  4  4 16 f16  f32  8
    v_mfma_f32_32x32x8f16       32 32  8  1 f16  f32 64
    v_mfma_f32_16x16x16f16      16 16 16  1 f16  f32 32
    v_mfma_i32_32x32x4i8        32 32  4  2 i8   i32 64
    v_mfma_i32_16x16x4i8        16 16  4  4 i8   i32 32
    v_mfma_i32_4x4x4i8           4  4  4 16 i8   i32  8
    v_mfma_i32_32x32x8i8        32 32  8  1 i8   i32 64
    v_mfma_i32_16x16x16i8       16 16 16  1 i8   i32 32
    v_mfma_f32_32x32x4bf16_1k   32 32  4  2 bf16 f32 64
    v_mfma_f32_16x16x4bf16_1k   16 16  4  4 bf16 f32 32
    v_mfma_f32_4x4x4bf16_1k      4  4  4 16 bf16 f32  8
    v_mfma_f32_32x32x8bf16_1k   32 32  8  1 bf16 f32 64
    v_mfma_f32_16x16x16bf16_1k  16 16 16  1 bf16 f32 32
    v_mfma_f32_32x32x2bf16      32 32  2  2 bf16 f32 64
    v_mfma_f32_16x16x2bf16      16 16  2  4 bf16 f32 32
    v_mfma_f32_4x4x2bf16         4  4  2 16 bf16 f32  8
    v_mfma_f32_32x32x4bf16      32 32  4  1 bf16 f32 64
    v_mfma_f32_16x16x8bf16      16 16  8  1 bf16 f32 32
    v_mfma_f64_16x16x4f64       16 16  4  1 f64  f64 32
    v_mfma_f64_4x4x4f64          4  4  4  4 f64  f64 16
    """,
)
CDNA3 = _rows(
    "gfx942",
    """
    v_mfma_f32_16x16x8_xf32     16 16  8  1 xf32 f32 16
    v_mfma_f32_32x32x4_xf32     32 32  4  1 xf32 f32 32
    v_mfma_f32_32x32x1_2b_f32   32 32  1  2 f32  f32 64
    v_mfma_f32_16x16x1_4b_f32   16 16  1  4 f32  f32 32
    v_mfma_f32_4x4x1_16b_f32     4  4  1 16 f32  f32  8
    v_mfma_f32_32x32x2_f32      32 32  2  1 f32  f32 64
    v_mfma_f32_16x16x4_f32      16 16  4  1 f32  f32 32
    v_mfma_f32_32x32x4_2b_f16   32 32  4  2 f16  f32 64
    v_mfma_f32_16x16x4_4b_f16   16 16  4  4 f16  f32 32
    v_mfma_f32_4x4x4_16b_f16     4  4  4 16 f16  f32  8
    v_mfma_f32_32x32x8_f16      32 32  8  1 f16  f32 32
    v_mfma_f32_16x16x16_f16     16 16 16  1 f16  f32 16
    v_mfma_i32_32x32x4_2b_i8    32 32  4  2 i8   i32 64
    v_mfma_i32_16x16x4_4b_i8    16 16  4  4 i8   i32 32
    v_mfma_i32_4x4x4_16b_i8      4  4  4 16 i8   i32  8
    v_mfma_i32_32x32x16_i8      32 32 16  1 i8   i32 32
    v_mfma_i32_16x16x32_i8      16 16 32  1 i8   i32 16
    v_mfma_f32_32x32x4_2b_bf16  32 32  4  2 bf16 f32 64
    v_mfma_f32_16x16x4_4b_bf16  16 16  4  4 bf16 f32 32
    v_mfma_f32_4x4x4_16b_bf16    4  4  4 16 bf16 f32  8
    v_mfma_f32_32x32x8_bf16     32 32  8  1 bf16 f32 32
    v_mfma_f32_16x16x16_bf16    16 16 16  1 bf16 f32 16
    v_mfma_f64_16x16x4_f64      16 16  4  1 f64  f64 32
    v_mfma_f64_4x4x4_4b_f64      4  4  4  4 f64  f64 16
    v_mfma_f32_16x16x32_bf8_bf8 16 16 32  1 bf8  f32 16
    v_mfma_f32_16x16x32_bf8_fp8 16 16 32  1 bf8/fp8 f32 16
    v_mfma_f32_16x16x32_fp8_bf8 16 16 32  1 fp8/bf8 f32 16
    v_mfma_f32_16x16x32_fp8_fp8 16 16 32  1 fp8  f32 16
    v_mfma_f32_32x32x16_bf8_bf8 32 32 16  1 bf8  f32 32
    v_mfma_f32_32x32x16_bf8_fp8 32 32 16  1 bf8/fp8 f32 32
    v_mfma_f32_32x32x16_fp8_bf8 32 32 16  1 fp8/bf8 f32 32
    v_mfma_f32_32x32x16_fp8_fp8 32 32 16  1 fp8  f32 32
    """,
)
CDNA4 = _rows(
    "gfx950",
    """
    v_mfma_f32_16x16x32_f16     16 16 32  1 f16  f32 16
    v_mfma_f32_32x32x16_f16     32 32 16  1 f16  f32 32
    v_mfma_f32_16x16x32_bf16    16 16 32  1 bf16 f32 16
    v_mfma_f32_32x32x16_bf16    32 32 16  1 bf16 f32 32
    v_mfma_i32_16x16x64_i8      16 16 64  1 i8   i32 16
    v_mfma_i32_32x32x32_i8      32 32 32  1 i8   i32 32
    v_mfma_f32_16x16x32_fp8_fp8 16 16 32  1 fp8  f32 16
    v_mfma_f32_32x32x16_bf8_fp8 32 32 16  1 bf8/fp8 f32 32
    """,
)


@dataclass(frozen=True)
class Long(Mfma):
    """Of 32 bytes a lane: 16 in each half of k. [ROCm blog "Matrix Core Programming on CDNA3 and CDNA4", 5.4]"""

    def place_of_a(self, i: int, k: int, block: int) -> tuple[int, int]:
        half, within = divmod(k, self.k // 2)
        return within % 16 + 16 * half, i + self.m * (within // 16)


LONG = [Long("v_mfma_f32_16x16x128_f8f6f4", "gfx950", 16, 16, 128, 1, kind, kind, "f32", 32) for kind in ("fp8", "bf8")]
ALL = [*CDNA2, *CDNA3, *CDNA4]
