"""Dense MFMAs compute A B + C with every element where the manuals say, and take as long as they say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.amdgcn.mfma_tables import ALL, Mfma
from tests.amdgcn.state import ACCUMULATION_OFFSET, cohort, execute
from tile2cu_runtime.amdgcn.instruction import parse_instruction
from tile2cu_runtime.amdgcn.instructions.mfma_layout import cycles, parse_shape

BITS = {"f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "f32": 32, "xf32": 32, "f64": 64, "i32": 32}
# The codes of -2 .. 2 in 8-bit floats, by hand. [MI300 ISA, "Data Formats"; OCP 8-bit Floating Point Specification]
FNUZ = {"fp8": {0: 0x00, 1: 0x40, 2: 0x48}, "bf8": {0: 0x00, 1: 0x40, 2: 0x44}}
OCP = {"fp8": {0: 0x00, 1: 0x38, 2: 0x40}, "bf8": {0: 0x00, 1: 0x3C, 2: 0x40}}


def code_of(value: int, element: str, target: str) -> int:
    """A small integer's bits in an element type."""
    match element:
        case "f16":
            return int(np.float16(value).view(np.uint16))
        case "bf16":
            return int(np.float32(value).view(np.uint32)) >> 16
        case "f32" | "xf32":
            return int(np.float32(value).view(np.uint32))
        case "f64":
            return int(np.float64(value).view(np.uint64))
        case "fp8" | "bf8":
            codes = (OCP if target == "gfx950" else FNUZ)[element]
            return codes[abs(value)] | (0x80 if value < 0 else 0)
    return value & ((1 << BITS[element]) - 1)


def put(registers: np.ndarray, item: int, lane: int, bits: int, code: int) -> None:
    """Writes an item of a lane: items are packed into the registers from the lowest bit."""
    for part in range(max(1, bits // 32)):
        row, shift = divmod(item * bits + 32 * part, 32)
        registers[row, lane] |= np.uint32((code >> 32 * part & 0xFFFFFFFF) << shift & 0xFFFFFFFF)


def get(registers: np.ndarray, item: int, lane: int, kind: str) -> float:
    """Reads an item of C or D."""
    if kind == "f64":
        return float(np.ascontiguousarray(registers[2 * item : 2 * item + 2, lane]).view(np.float64)[0])
    word = registers[item, lane : lane + 1]
    return float(word.view(np.int32 if kind == "i32" else np.float32)[0])


def indices(*extents: int) -> list[tuple[int, ...]]:
    return list(np.ndindex(*extents))


@pytest.mark.parametrize("mfma", ALL, ids=lambda mfma: f"{mfma.target}-{mfma.name}")
def test_product_with_the_manuals_layout(mfma: Mfma) -> None:
    random = np.random.default_rng(1)
    a, b, c = (
        random.integers(-2, 3, (mfma.blocks, *extents))
        for extents in ((mfma.m, mfma.k), (mfma.k, mfma.n), (mfma.m, mfma.n))
    )
    operands = mfma.m * mfma.k * mfma.blocks * BITS[mfma.a] // 64 // 32
    results = mfma.m * mfma.n * mfma.blocks * BITS[mfma.d] // 64 // 32
    state = cohort()
    file = state.vgpr[:, 0]
    for block, i, k in indices(mfma.blocks, mfma.m, mfma.k):
        put(file[64:], *mfma.place_of_a(i, k, block), BITS[mfma.a], code_of(int(a[block, i, k]), mfma.a, mfma.target))
    for block, k, j in indices(mfma.blocks, mfma.k, mfma.n):
        put(file[96:], *mfma.place_of_a(j, k, block), BITS[mfma.b], code_of(int(b[block, k, j]), mfma.b, mfma.target))
    accumulators = file[ACCUMULATION_OFFSET:]
    for block, i, j in indices(mfma.blocks, mfma.m, mfma.n):
        put(
            accumulators, *mfma.place_of_d(i, j, block), BITS[mfma.d], code_of(int(c[block, i, j]), mfma.d, mfma.target)
        )

    execute(state, instruction_text(mfma, operands, results), mfma.target)

    expected = a @ b + c
    for block, i, j in indices(mfma.blocks, mfma.m, mfma.n):
        assert get(file, *mfma.place_of_d(i, j, block), mfma.d) == expected[block, i, j], (block, i, j)


def instruction_text(mfma: Mfma, operands: int, results: int) -> str:
    """D in v0.., A in v64.., B in v96.., C in a0.."""

    def registers(kind: str, first: int, count: int) -> str:
        return f"{kind}[{first}:{first + count - 1}]" if count > 1 else f"{kind}{first}"

    return (
        f"{mfma.name} {registers('v', 0, results)}, {registers('v', 64, operands)}, "
        f"{registers('v', 96, operands)}, {registers('a', 0, results)}"
    )


@pytest.mark.parametrize("mfma", ALL, ids=lambda mfma: f"{mfma.target}-{mfma.name}")
def test_shape_and_cycles(mfma: Mfma) -> None:
    operands = mfma.m * mfma.k * mfma.blocks * BITS[mfma.a] // 64 // 32
    shape = parse_shape(mfma.name, operands)
    assert shape is not None
    assert (shape.m, shape.n, shape.k, shape.blocks) == (mfma.m, mfma.n, mfma.k, mfma.blocks)
    assert (shape.a, shape.b, shape.result) == (mfma.a, mfma.b, mfma.d)
    assert cycles(shape, mfma.target) == mfma.cycles


def test_waves_are_independent() -> None:
    state = cohort(waves=3)
    one = int(np.float32(1).view(np.uint32))
    state.vgpr[64] = state.vgpr[65] = one
    state.vgpr[66, 1] = int(np.float32(5).view(np.uint32))
    execute(state, "v_mfma_f32_32x32x2_f32 v[0:15], v64, v65, v[66:81]")
    values = state.vgpr[0].view(np.float32)
    assert [set(wave) for wave in values.tolist()] == [{2.0}, {7.0}, {2.0}]


def test_inactive_lanes_take_part() -> None:
    state = cohort(mask=1)
    state.vgpr[64] = state.vgpr[65] = int(np.float32(1).view(np.uint32))
    execute(state, "v_mfma_f32_32x32x2_f32 v[0:15], v64, v65, 0")
    assert set(state.vgpr[0, 0].view(np.float32).tolist()) == {2.0}


def test_constant_accumulator() -> None:
    state = execute(cohort(), "v_mfma_f64_16x16x4_f64 v[0:7], v[64:65], v[66:67], 1.0")
    assert set(np.ascontiguousarray(state.vgpr[:2, 0].T).view(np.float64).ravel().tolist()) == {1.0}


def test_small_products_are_not_lost_before_the_sum() -> None:
    """1 + 2**-12 * 2**-12 four times: each product alone is less than half an ulp of 1, their sum with 1 is not."""
    state = cohort()
    state.vgpr[64] = state.vgpr[65] = int(np.float16(2.0**-12).view(np.uint16)) * 0x10001
    state.vgpr[66] = state.vgpr[67] = state.vgpr[64]
    execute(state, "v_mfma_f32_16x16x16_f16 v[0:3], v[64:65], v[66:67], 1.0")
    assert state.vgpr[0, 0].view(np.float32)[0] == np.float32(1 + 16 * 2.0**-24)


def test_mnemonic_is_parsed_without_its_encoding() -> None:
    instruction = parse_instruction("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 0, 8)
    assert instruction.name == "v_mfma_f32_32x32x8_f16"
