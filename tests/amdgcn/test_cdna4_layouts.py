"""gfx950's matrix instructions and transposing reads against what AMD's own tests say that the hardware does.

The layouts stand here as those tests have them, and share nothing with the simulator's or the targets' tables:

- ROCm/rocm-libraries, Composable Kernel's test/mx_mfma_op/mx_mfma_op.hpp: the register mappings of the products of 8-,
  6- and 4-bit floats, of their scales and of their results, compared with a CPU's product on gfx950;
- the same, ck_tile/core/arch/mma/mfma/mfma_gfx9.hpp: the elements of K that lie side by side in a lane; with
  triton-lang/triton, unittest/Dialect/TritonGPU/LinearLayoutConversionsTest.cpp, mfma16_dot_op and mfma32_dot_op;
- the same, rocRoller's TransposeLoads test, for ds_read_b64_tr_b16, _b8, _b4 and ds_read_b96_tr_b6.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from tests.amdgcn.state import cohort, execute
from tile2cu.targets import TARGETS, Mfma
from tile2cu_runtime.amdgcn import SimulatorError
from tile2cu_runtime.amdgcn.cost import mfma_cycles
from tile2cu_runtime.amdgcn.instruction import parse_instruction

Array = np.ndarray
RANDOM = np.random.default_rng(5)


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Which number (of K, or of a row of D) an element of a lane has: `first` gives, by the element that starts a run
    of `length`, the number in the lanes of each group; lane l is of group l // lines and of line l % lines."""

    lines: int
    length: int
    first: dict[int, tuple[int, ...]]

    @property
    def elements(self) -> int:
        return self.length * len(self.first)

    def number(self, lane: int, element: int) -> int:
        start = element // self.length * self.length
        return self.first[start][lane // self.lines] + element - start

    def numbers(self) -> Array:
        """(lane, element)."""
        return np.array([[self.number(lane, element) for element in range(self.elements)] for lane in range(64)])


# By the rows of A and the bits of an element, where 32 elements of K are in a lane.
F8F6F4 = {
    (16, 8): Runs(lines=16, length=16, first={0: (0, 16, 32, 48), 16: (64, 80, 96, 112)}),
    (32, 8): Runs(lines=32, length=16, first={0: (0, 16), 16: (32, 48)}),
    **{(16, bits): Runs(lines=16, length=32, first={0: (0, 32, 64, 96)}) for bits in (6, 4)},
    **{(32, bits): Runs(lines=32, length=32, first={0: (0, 32)}) for bits in (6, 4)},
}
# By the rows and the bytes that lie side by side in a lane, of the others.
DENSE = {(lines, run): Runs(lines=lines, length=run, first={0: tuple(range(0, 64 // lines * run, run))})
         for lines in (16, 32) for run in (1, 4, 8, 16)}  # fmt: skip
RESULT = {
    16: Runs(lines=16, length=4, first={0: (0, 4, 8, 12)}),
    32: Runs(lines=32, length=4, first={0: (0, 4), 4: (8, 12), 8: (16, 20), 12: (24, 28)}),
}

# Magnitudes by code. [OCP Microscaling Formats, "Element Data Types"]
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
FP6 = [k / 8 for k in range(8)] + [(1 + k / 8) * s for s in (1, 2, 4) for k in range(8)]
BF6 = [k / 16 for k in range(4)] + [(1 + k / 4) * 2.0**e for e in range(-2, 5) for k in range(4)]


def of_type(dtype: object) -> dict[int, float]:
    """Magnitudes of an 8-bit type whose products stay exact in a sum of float32."""
    values = np.arange(128, dtype=np.uint8).view(dtype).astype(np.float64)
    return {code: value for code, value in enumerate(values) if value <= 8 and value % 0.25 == 0}


# cbsz or blgp, bits, magnitudes.
TYPES: dict[str, tuple[int, int, dict[int, float]]] = {
    "fp8": (0, 8, of_type(ml_dtypes.float8_e4m3fn)),
    "bf8": (1, 8, of_type(ml_dtypes.float8_e5m2)),
    "fp6": (2, 6, dict(enumerate(FP6))),
    "bf6": (3, 6, dict(enumerate(BF6))),
    "fp4": (4, 4, dict(enumerate(FP4))),
}


def matrix(kind: str, rows: int, k: int) -> tuple[Array, Array]:
    """Random codes and their values, (rows, k)."""
    _, bits, values = TYPES[kind]
    index = RANDOM.integers(0, len(values), (rows, k))
    negative = RANDOM.integers(0, 2, (rows, k))
    magnitude = np.array(list(values.values()))[index]
    codes = np.array(list(values))[index] | negative << (bits - 1)
    return codes, np.where(negative, -magnitude, magnitude)


def in_registers(codes: Array, runs: Runs, bits: int) -> Array:
    """The registers, (words, lane), of an operand (line, k); elements are packed from the lowest bit."""
    lanes = codes[np.arange(64)[:, None] % runs.lines, runs.numbers()].astype(object)
    wholes = (lanes << bits * np.arange(runs.elements).astype(object)).sum(axis=1)
    words = runs.elements * bits // 32
    return np.array([[whole >> 32 * word & 0xFFFFFFFF for whole in wholes] for word in range(words)], np.uint32)


def result_of(registers: Array, size: int, dtype: type[np.generic] = np.float32) -> Array:
    """D (size, size) from the registers (element, lane)."""
    found = np.empty((size, size))
    rows = RESULT[size].numbers()
    found[rows, np.arange(64)[:, None] % size] = registers[: rows.shape[1]].T.copy().view(dtype)
    return found


# ---- 8-, 6- and 4-bit floats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("size", "k"), [(16, 128), (32, 64)])
def test_products_of_every_two_formats(size: int, k: int, scaled: bool) -> None:
    """Each scale is one exponent for 32 of K: that of line i and block b in lane i + size b, in the byte of op_sel."""
    for number, (a_kind, b_kind) in enumerate(product(TYPES, TYPES)):
        (a_codes, a), (b_codes, b) = matrix(a_kind, size, k), matrix(b_kind, size, k)
        (cbsz, a_bits, _), (blgp, b_bits, _) = TYPES[a_kind], TYPES[b_kind]
        state = cohort()
        a_words = in_registers(a_codes, F8F6F4[size, a_bits], a_bits)
        b_words = in_registers(b_codes, F8F6F4[size, b_bits], b_bits)
        state.vgpr[16 : 16 + len(a_words), 0], state.vgpr[24 : 24 + len(b_words), 0] = a_words, b_words
        exponents = RANDOM.integers(-3, 4, (2, size, k // 32))
        byte = number % 4, number // 4 % 4
        for side in range(2):
            noise = RANDOM.integers(0, 1 << 32, 64, dtype=np.uint32) & ~np.uint32(0xFF << 8 * byte[side])
            state.vgpr[32 + side, 0] = noise | (exponents[side].T.reshape(-1) + 127).astype(np.uint32) << 8 * byte[side]
        select = [f"[{byte[0] >> bit & 1},{byte[1] >> bit & 1},0]" for bit in range(2)]
        execute(
            state,
            f"v_mfma_{'scale_' if scaled else ''}f32_{size}x{size}x{k}_f8f6f4 v[0:{size * size // 64 - 1}], "
            f"v[16:{15 + len(a_words)}], v[24:{23 + len(b_words)}], 0"
            + (f", v32, v33 op_sel:{select[0]} op_sel_hi:{select[1]}" if scaled else "")
            + f" cbsz:{cbsz} blgp:{blgp}",
            "gfx950",
        )
        if scaled:
            a, b = (x * np.repeat(2.0**e, 32, axis=1) for x, e in zip((a, b), exponents, strict=True))
        found = result_of(state.vgpr[:, 0], size)
        np.testing.assert_array_equal(found, (a @ b.T).astype(np.float32), err_msg=f"{a_kind} x {b_kind}")


def test_narrow_operands_take_half_the_cycles() -> None:
    for size, k, cycles in ((16, 128, 32), (32, 64, 64)):
        for cbsz, blgp in product(range(5), range(5)):
            text = f"v_mfma_f32_{size}x{size}x{k}_f8f6f4 v[0:3], v[16:23], v[24:31], 0 cbsz:{cbsz} blgp:{blgp}"
            narrow = cbsz >= 2 and blgp >= 2
            assert mfma_cycles(parse_instruction(text, 0, 8), "gfx950") == (cycles // 2 if narrow else cycles)


# ---- 8 and 16 bits ------------------------------------------------------------------------------------------------

HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
EIGHT = {"i8": np.int8, "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
SHAPES = ("16x16x32", "32x32x16")
DENSE_PRODUCTS = [
    *((f"v_mfma_f32_{shape}_{kind}", kind, kind, 8) for shape, kind in product(SHAPES, HALVES)),
    *((f"v_mfma_i32_{shape}_i8", "i8", "i8", 16) for shape in ("16x16x64", "32x32x32")),
    *((f"v_mfma_f32_{shape}_{a}_{b}", a, b, 8) for shape, a, b in product(SHAPES, ("fp8", "bf8"), ("fp8", "bf8"))),
]


@pytest.mark.parametrize(("name", "a_kind", "b_kind", "run"), DENSE_PRODUCTS)
def test_products_of_8_and_16_bits(name: str, a_kind: str, b_kind: str, run: int) -> None:
    size, _, k = (int(number) for number in name.split("_")[3].split("x"))
    kinds = HALVES | EIGHT
    bits = 16 if a_kind in HALVES else 8
    a, b = (RANDOM.integers(-4, 5, (size, k)).astype(kinds[kind]) for kind in (a_kind, b_kind))
    codes = [each.view(np.uint16 if bits == 16 else np.uint8) for each in (a, b)]
    state = cohort()
    for first, operand in zip((16, 24), codes, strict=True):
        words = in_registers(operand, DENSE[size, run], bits)
        state.vgpr[first : first + len(words), 0] = words
    last = len(words) - 1
    execute(state, f"{name} v[0:{size * size // 64 - 1}], v[16:{16 + last}], v[24:{24 + last}], 0", "gfx950")
    found = result_of(state.vgpr[:, 0], size, np.int32 if a_kind == "i8" else np.float32)
    np.testing.assert_array_equal(found, a.astype(np.float64) @ b.astype(np.float64).T)


(GFX950,) = (target for target in TARGETS if target.arch == "gfx950")


@pytest.mark.parametrize("row", GFX950.mfma, ids=lambda row: f"{row.name}-{row.operand}")
def test_row_of_the_target(row: Mfma) -> None:
    """The table that emission goes by has the elements where the tests have them."""
    if row.accumulator.bits == 64:
        return  # the same on CDNA2 and CDNA3, where AMD's calculator knows it
    runs = F8F6F4[row.size, 8] if "f8f6f4" in row.name else DENSE[row.size, row.lane_elements]
    for lane, element in np.ndindex(64, runs.elements):
        assert row.place_of_a(lane % row.size, runs.number(lane, element)) == (element, lane)
    for lane, element in np.ndindex(64, RESULT[row.size].elements):
        assert row.place_of_d(RESULT[row.size].number(lane, element), lane % row.size) == (element, lane)


# ---- transposing reads --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "lane_bytes"), [(16, 8), (8, 8), (4, 8), (6, 12)])
def test_transposing_read(bits: int, lane_bytes: int) -> None:
    """Of each 16 lanes, lane l gets column l of the rows of 16 elements that their places hold one after the other."""
    each = 8 * lane_bytes // bits
    elements = RANDOM.integers(0, 1 << bits, (4, each, 16))  # by group of lanes, row, column
    stride = 16 if lane_bytes == 12 else 8
    state = cohort()
    state.vgpr[0, 0] = stride * np.arange(64)
    own = elements.reshape(64, each)  # what lies in each lane's place
    words = lane_bytes // 4
    state.vgpr[1 : 1 + words, 0] = in_registers(own, Runs(lines=64, length=each, first={0: (0,)}), bits)
    execute(state, f"ds_write_b{8 * lane_bytes} v0, v[1:{words}]", "gfx950")
    execute(state, f"ds_read_b{8 * lane_bytes}_tr_b{bits} v[4:{3 + words}], v0", "gfx950")
    columns = elements.transpose(0, 2, 1).reshape(64, each)
    expected = in_registers(columns, Runs(lines=64, length=each, first={0: (0,)}), bits)
    np.testing.assert_array_equal(state.vgpr[4 : 4 + words, 0], expected)


def test_96_bits_are_read_from_multiples_of_16_bytes() -> None:
    state = cohort()
    state.vgpr[0, 0] = 12 * np.arange(64)
    with pytest.raises(SimulatorError, match="multiples of 16 bytes"):
        execute(state, "ds_read_b96_tr_b6 v[4:6], v0", "gfx950")
