"""Vector comparisons: a lane mask in a pair of scalar registers. [MI300 ISA, "VOPC"]"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import U32, Array, pair_of_lanes
from tile2cu_runtime.amdgcn.cohort import Cohort, Getter, Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import EXEC, Instruction
from tile2cu_runtime.amdgcn.instructions.registers import Context
from tile2cu_runtime.amdgcn.instructions.vector import operand_source

_NAME = re.compile(r"v_cmp(x?)_(\w+)_([fiu])(16|32|64)")
_LETTERS = {
    "f16": "h", "f32": "f", "f64": "d", "i16": "x", "i32": "i", "i64": "l", "u16": "w", "u32": "u", "u64": "q",
}  # fmt: skip


def _ordered(a: Array, b: Array) -> Array:
    return ~(np.isnan(a) | np.isnan(b))


COMPARISONS: dict[str, Any] = {
    "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "ne": np.not_equal,
    "lg": lambda a, b: (a < b) | (a > b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "o": _ordered,
    "u": lambda a, b: ~_ordered(a, b),
    "t": lambda a, b: np.ones((1, 1), bool),
    "f": lambda a, b: np.zeros((1, 1), bool),
}  # fmt: skip


def build(instruction: Instruction, context: Context) -> Step:
    """v_cmp_* and v_cmpx_*."""
    found = _NAME.fullmatch(instruction.name)
    if not found:
        raise UnsupportedInstruction(instruction.text)
    letter = _LETTERS[found[3] + found[4]]
    # Source k follows the destination, which VOPC disassembly always prints.
    first = operand_source(instruction, instruction.operands[1], 0, letter, context)
    is_class = found[2] == "class"
    second = operand_source(instruction, instruction.operands[2], 1, "u" if is_class else letter, context)
    function = _class if is_class else COMPARISONS[found[2]]
    return _masked(function, first, second, instruction.operands[0].index, bool(found[1]))


def _masked(function: Any, first: Getter, second: Getter, index: int, sets_exec: bool) -> Step:
    def step(c: Cohort) -> None:
        set_lane_mask(c, index, function(first(c), second(c)))
        if sets_exec and index != EXEC:
            c.sgpr[EXEC], c.sgpr[EXEC + 1] = c.sgpr[index], c.sgpr[index + 1]
            c.exec_changed()

    return step


def set_lane_mask(c: Cohort, index: int, lanes: Array) -> None:
    """Writes a condition, broadcastable to (waves, 64), to a pair of scalar registers; inactive lanes are 0."""
    c.sgpr[index], c.sgpr[index + 1] = pair_of_lanes(lanes & c.exec)
    if index >= EXEC:
        c.exec_changed()


def _class(value: Array, wanted: Array) -> Array:
    """v_cmp_class: bit k of `wanted` selects class k. [MI300 ISA, "V_CMP_CLASS_F32"]"""
    negative, magnitude = np.signbit(value), np.abs(value)
    normal, zero, infinite = np.isfinite(value) & (magnitude >= np.finfo(value.dtype).tiny), value == 0, np.isinf(value)
    denormal = np.isfinite(value) & ~normal & ~zero
    result: Array = np.isnan(value) & ((wanted & U32(3)) != 0)
    for kind, below, above in ((infinite, 2, 9), (normal, 3, 8), (denormal, 4, 7), (zero, 5, 6)):
        bit = np.where(negative, U32(below), U32(above))
        result = result | (kind & ((wanted >> bit) & U32(1) == 1))
    return result
