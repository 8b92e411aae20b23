"""The MFMA tables of the AMD targets say what AMD's own tables say, as tests/amdgcn/mfma_tables.py has them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.amdgcn.mfma_tables import ALL, LONG
from tests.amdgcn.mfma_tables import Mfma as AmdRow
from tile2cu.core.dtype import FLOAT16, FLOAT32
from tile2cu.targets import TARGETS, Mfma, Target

AMD = [target for target in TARGETS if target.mfma]
ROWS = [
    pytest.param(target, row, id="-".join((target.arch, row.name, *map(str, row.operands))))
    for target in AMD
    for row in target.mfma
]
TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "int32": "i32"}
TYPES |= {
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "bf8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "bf8",
    "tfloat32": "xf32",
}


def amd_row(target: Target, row: Mfma) -> AmdRow:
    """AMD's row of that mnemonic; what gfx950 takes over from gfx942 stands there."""
    kind = TYPES[(row.through or row.operands[1]).name]
    of_chip = [each for each in LONG if each.name == row.name and each.a == kind]
    of_chip += [each for each in ALL if each.name == row.name and each.target == target.arch]
    return next(iter([*of_chip, *(each for each in ALL if each.name == row.name)]))


@pytest.mark.parametrize(("target", "row"), ROWS)
def test_row_is_amds(target: Target, row: Mfma) -> None:
    amd = amd_row(target, row)
    assert (amd.m, amd.n, amd.k, amd.blocks) == (row.size, row.size, row.k, 1)
    first, second = (TYPES[(row.through or operand).name] for operand in reversed(row.operands))
    assert (amd.a, amd.d) == (first, TYPES[row.accumulator.name])
    assert amd.b == second or "f8f6f4" in row.name  # which says in two modifiers what it multiplies
    for i in range(row.size):
        for k in range(row.k):
            assert row.place_of_a(i, k) == amd.place_of_a(i, k, 0)
        for j in range(row.size):
            assert row.place_of_d(i, j) == amd.place_of_d(i, j, 0)


@pytest.mark.parametrize("target", AMD, ids=lambda target: target.arch)
def test_no_instruction_of_32_rows_does_more_a_cycle(target: Target) -> None:
    """So the rule takes 16 x 16, which needs fewer registers at a time."""

    def rate(row: Mfma) -> float:
        return row.size**2 * row.k / amd_row(target, row).cycles

    for wide in (row for row in target.mfma if row.size == 32):
        assert rate(wide) <= max(rate(row) for row in target.mfma if row.size == 16 and row.operands == wide.operands)


def test_a_chip_multiplies_its_own_8_bit_floats_only() -> None:
    (gfx942,) = (target for target in AMD if target.arch == "gfx942")
    with pytest.raises(ValueError, match="own format"):
        replace(gfx942, fp8="ocp")


def test_a_row_that_no_hardware_has_is_refused() -> None:
    with pytest.raises(ValueError, match="16 or 32"):
        Mfma("v_mfma_f32_4x4x4_f16", FLOAT16, FLOAT32, size=4, k=4)
    with pytest.raises(ValueError, match="registers"):
        Mfma("v_mfma_f32_16x16x4_f16", FLOAT16, FLOAT32, size=16, k=4)
