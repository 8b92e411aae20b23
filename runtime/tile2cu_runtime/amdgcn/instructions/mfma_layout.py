"""Register layouts of MFMA operands, and cycles of MFMAs, as data.

Source: AMD Instinct MI200 and MI300 ISA, "Matrix Arithmetic Instructions", and AMD's matrix instruction calculator
(github.com/ROCm/amd_matrix_instruction_calculator); for gfx950 the AMD CDNA4 ISA, same chapter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tile2cu_runtime.amdgcn.arrays import WAVE_SIZE

# Bits per element; an operand's registers hold consecutive k, lowest first.
ELEMENT_BITS = {"f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f32": 32, "xf32": 32, "f64": 64}
# The element types of f8f6f4 are given by modifiers.
F8F6F4 = "f8f6f4"
_NAME = re.compile(
    r"v_mfma_(?P<scale>scale_)?(?P<result>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:\d+b_)?(?P<of>\w+)"
)


@dataclass(frozen=True)
class ResultLayout:
    """The register layout of C and D, as letters.

    `rows` has the factors of a row index, most significant first, with their sizes; b is the block, c the column.
    `registers` and `lanes` select the factors of register and lane indices.
    """

    rows: tuple[tuple[str, int], ...]
    registers: str
    lanes: str


# By M and whether the result is float64. Example for 32: row = 8 q + 4 h + s is in register 16 b + 4 q + s, lane 32 h +
# c.
RESULT_LAYOUTS = {
    (32, False): ResultLayout((("q", 4), ("h", 2), ("s", 4)), "bqs", "hc"),
    (16, False): ResultLayout((("h", 4), ("s", 4)), "bs", "hc"),
    (4, False): ResultLayout((("s", 4),), "s", "bc"),
    (16, True): ResultLayout((("s", 4), ("h", 4)), "bs", "hc"),
    (4, True): ResultLayout((("h", 4),), "", "hbc"),
}


@dataclass(frozen=True)
class MfmaShape:
    """One instruction: D (m, n) = A (m, k) B (k, n) + C, `blocks` times. `a` and `b` are element types."""

    m: int
    n: int
    k: int
    blocks: int
    result: str
    a: str
    b: str
    scaled: bool = False

    @property
    def operand_elements(self) -> int:
        """Elements of A (and of B) per lane."""
        return self.m * self.k * self.blocks // WAVE_SIZE

    @property
    def k_groups(self) -> int:
        """The number of lanes that share a row of A: lane = (k group, block, row), row fastest."""
        return WAVE_SIZE // (self.m * self.blocks)

    @property
    def result_layout(self) -> ResultLayout:
        return RESULT_LAYOUTS[self.m, self.result == "f64"]


def parse_shape(name: str, operand_registers: int) -> MfmaShape | None:
    """The shape of a mnemonic, with the number of A's registers; None if it is not a dense MFMA of these types.

    The number of blocks follows from A's size; gfx90a's mnemonics do not contain it.
    """
    found = _NAME.fullmatch(name)
    if not found:
        return None
    m, n, k = int(found["m"]), int(found["n"]), int(found["k"])
    a, _, b = found["of"].removesuffix("_1k").partition("_")
    if a == F8F6F4:
        return MfmaShape(m, n, k, 1, "f32", a, a, bool(found["scale"]))
    if a not in ELEMENT_BITS:
        return None
    blocks = WAVE_SIZE * operand_registers * 32 // ELEMENT_BITS[a] // (m * k)
    return MfmaShape(m, n, k, blocks, found["result"], a, b or a)


# ---- time -------------------------------------------------------------------------------------------------------

# Cycles of the shapes with one block, by architecture and bits per element: (32x32, 16x16).
# Source: MI200 and MI300 ISA, "Dependency Resolution: Required Independent Instructions" (4 cycles per pass); the same
# in the calculator's "Execution cycles". For gfx950 from its peak rates (CDNA4 white paper): f16 4096 FLOP per cycle
# and compute unit, 8 bits twice, 6 and 4 bits four times that.
_CYCLES_BY_BITS = {
    "gfx90a": {8: (64, 32), 16: (64, 32), 32: (64, 32)},
    "gfx942": {8: (32, 16), 16: (32, 16), 32: (64, 32)},
    "gfx950": {8: (32, 16), 16: (32, 16), 32: (64, 32)},
}


def cycles(shape: MfmaShape, target: str, *, is_narrow: bool = False) -> int:
    """Cycles that one MFMA occupies the matrix core of a SIMD; `is_narrow` if no operand of f8f6f4 has 8 bits."""
    if shape.result == "f64":
        return 32 if shape.m == 16 else 16
    if shape.blocks > 1:
        return {32: 64, 16: 32, 4: 8}[shape.m]
    if shape.a == F8F6F4:
        return (64 if shape.m == 32 else 32) // (2 if is_narrow else 1)
    bits = 16 if shape.a == "xf32" else ELEMENT_BITS[shape.a]
    return _CYCLES_BY_BITS[target][bits][shape.m == 16]
