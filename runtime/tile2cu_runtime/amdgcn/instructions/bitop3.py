"""v_bitop3 (gfx950): any function of three bits, by a truth table. [AMD CDNA4 ISA, "V_BITOP3_B32"]"""

from __future__ import annotations

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Step
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions.registers import Context
from tile2cu_runtime.amdgcn.instructions.vector import source, writer


def build(instruction: Instruction, context: Context) -> Step:
    """The step. Bit 4 a + 2 b + c of the table is the result for the source bits a, b and c."""
    letter = "w" if instruction.name == "v_bitop3_b16" else "u"
    sources = [source(instruction, number, letter, context) for number in range(3)]
    write, table = writer(instruction, letter, context), instruction.number("bitop3")
    rows = [row for row in range(8) if table >> row & 1]

    def step(c: Cohort) -> None:
        values = [get(c) for get in sources]
        result: Array = np.zeros_like(values[0] | values[1] | values[2])
        for row in rows:
            first, second, third = (value if row >> 2 - place & 1 else ~value for place, value in enumerate(values))
            result |= first & second & third
        write(c, result)

    return step
