"""The tables of these tests against AMD's matrix instruction calculator, where that is at hand.

TILE2CU_MATRIX_CALCULATOR names its matrix_calculator.py (github.com/ROCm/amd_matrix_instruction_calculator, MIT; it
needs the package tabulate).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.amdgcn.mfma_tables import CDNA2, CDNA3, Mfma
from tests.amdgcn.test_mfma import BITS

CALCULATOR = os.environ.get("TILE2CU_MATRIX_CALCULATOR")
ARCHITECTURES = {"gfx90a": "cdna2", "gfx942": "cdna3"}
# v0{5}, v[1:0]{5}, v1{5}.[31:16]
_PLACE = re.compile(r"v(?:(\d+)|\[\d+:(\d+)\])\{(\d+)\}(?:\.\[\d+:(\d+)\])?")

pytestmark = pytest.mark.skipif(not CALCULATOR, reason="TILE2CU_MATRIX_CALCULATOR names no calculator")


def ask(mfma: Mfma, *options: str) -> str:
    architecture = ["-a", ARCHITECTURES[mfma.target], "-i", mfma.name]
    command = [sys.executable, str(CALCULATOR), *architecture, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def places(mfma: Mfma, matrix: str, bits: int) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    """Block, row, column, and (item, lane) of every element, as the calculator prints them."""
    block = 0
    for line in ask(mfma, f"-{matrix}", "--register-layout", "--csv").splitlines():
        if line.startswith("Block "):
            block = int(line.split()[1])
        elif re.match(r"\d+,", line):
            row, *cells = line.split(",")
            for column, cell in enumerate(cells):
                found = _PLACE.match(cell)
                assert found, cell
                first_bit = 32 * int(found[1] or found[2]) + int(found[4] or 0)
                yield block, int(row), column, (first_bit // bits, int(found[3]))


@pytest.mark.parametrize("mfma", [*CDNA2, *CDNA3], ids=lambda mfma: f"{mfma.target}-{mfma.name}")
def test_table_is_the_calculators(mfma: Mfma) -> None:
    seen = 0
    for block, i, k, place in places(mfma, "A", BITS[mfma.a]):
        assert mfma.place_of_a(i, k, block) == place
        seen += 1
    for block, k, j, place in places(mfma, "B", BITS[mfma.b]):
        assert mfma.place_of_a(j, k, block) == place
        seen += 1
    for block, i, j, place in places(mfma, "D", BITS[mfma.d]):
        assert mfma.place_of_d(i, j, block) == place
        seen += 1
    assert seen == mfma.blocks * (mfma.m * mfma.k + mfma.k * mfma.n + mfma.m * mfma.n)
    cycles = re.search(r"Execution cycles: (\d+)", ask(mfma, "-d"))
    assert cycles and int(cycles[1]) == mfma.cycles
