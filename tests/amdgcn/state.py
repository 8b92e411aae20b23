"""One instruction on registers of the test's choice, without a code object."""

from __future__ import annotations

import types

import numpy as np

from tile2cu_runtime.amdgcn.cohort import Cohort
from tile2cu_runtime.amdgcn.instruction import EXEC, VCC, parse_instruction
from tile2cu_runtime.amdgcn.instructions.decode import build_step
from tile2cu_runtime.amdgcn.instructions.registers import Context
from tile2cu_runtime.amdgcn.lds import Lds

ACCUMULATION_OFFSET = 256
ALL_LANES = (1 << 64) - 1
LDS_BYTES = 8192


def cohort(waves: int = 1, mask: int = ALL_LANES) -> Cohort:
    """Waves of one workgroup whose registers are zero, with these lanes active."""
    sgpr = np.zeros((128, waves, 1), np.uint32)
    sgpr[EXEC], sgpr[EXEC + 1] = mask & 0xFFFFFFFF, mask >> 32
    vgpr = np.zeros((2 * ACCUMULATION_OFFSET, waves, 64), np.uint32)
    lds = Lds(LDS_BYTES, 1, waves, granule=1, check=True)
    batch = types.SimpleNamespace(code_base=0, lds=lds)
    return Cohort(batch, np.arange(waves), vgpr, sgpr, np.zeros((waves, 1), bool), 0)  # type: ignore[arg-type]


def execute(state: Cohort, text: str, target: str = "gfx942") -> Cohort:
    """Performs instructions, one a line, and waits for what they load."""
    with np.errstate(all="ignore"):
        for line in text.strip().splitlines():
            build_step(parse_instruction(line.strip(), 0, 4), Context(target, ACCUMULATION_OFFSET))(state)
        state.wait(0, 0)
    return state


def vector(values: object, kind: type[np.generic]) -> np.ndarray:
    """Values of 4 or 8 bytes as rows of a register file: (1 or 2, lanes) uint32; of 2 bytes in the low half."""
    array = np.asarray(values, kind)
    if array.itemsize == 2:
        return array.view(np.uint16).astype(np.uint32)[None]
    return np.ascontiguousarray(array).view(np.uint32).reshape(*array.shape, -1).T.reshape(-1, *array.shape)


__all__ = ["ACCUMULATION_OFFSET", "VCC", "cohort", "execute", "vector"]
