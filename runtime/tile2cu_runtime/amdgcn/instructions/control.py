"""Branches, barriers, the end of a kernel, waits, and no-ops. [MI300 ISA, "Program Flow Control"]"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile2cu_runtime.amdgcn.arrays import I64, U64, Array
from tile2cu_runtime.amdgcn.cohort import Cohort, Step
from tile2cu_runtime.amdgcn.errors import SimulatorError, UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import EXEC, VCC, Instruction
from tile2cu_runtime.amdgcn.instructions.registers import Context, pair, set_scalar_pair

# Instructions for scheduling, prefetching and cache coherence: without effect on results here. s_setreg writes the MODE
# register, whose rounding and denormal settings the simulator ignores.
WITHOUT_EFFECT = frozenset(
    (
        "s_nop", "s_sleep", "s_setprio", "s_setreg_imm32_b32", "s_setreg_b32", "s_icache_inv", "s_dcache_wb",
        "s_dcache_inv", "s_clause", "s_code_end", "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_inst_prefetch",
        "s_sethalt", "v_nop", "buffer_wbl2", "buffer_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2",
    )
)  # fmt: skip


@dataclass(frozen=True)
class End:
    """The end of a basic block. `jump` returns the next address: one for all waves, or (waves,) int64. None: no
    successor.
    """

    kind: str
    jump: Callable[[Cohort], int | Array] | None = None


JUMP, BARRIER, FINISH = "jump", "barrier", "finish"


def is_end(instruction: Instruction) -> bool:
    """Whether the instruction ends a basic block."""
    name = instruction.name
    return name in ("s_endpgm", "s_barrier", "s_setpc_b64", "s_swappc_b64", "s_trap") or bool(_BRANCH.fullmatch(name))


_BRANCH = re.compile(r"s_(?:c?branch)(?:_(\w+))?")


def build_end(instruction: Instruction, context: Context) -> End:
    """The block end for an instruction that is one."""
    name = instruction.name
    if name == "s_endpgm":
        return End(FINISH)
    if name == "s_barrier":
        return End(BARRIER, lambda c: instruction.next_address)
    if name == "s_trap":
        return End(JUMP, _trap)
    if name in ("s_setpc_b64", "s_swappc_b64"):
        return End(JUMP, _indirect(instruction, context))
    found = _BRANCH.fullmatch(name)
    target = instruction.branch_target()
    condition = found[1] if found else None
    if condition is None:
        return End(JUMP, lambda c: target)
    test = _CONDITIONS.get(condition)
    if test is None:
        raise UnsupportedInstruction(instruction.text)
    return End(JUMP, _conditional(test, target, instruction.next_address))


def fall_through(address: int) -> End:
    """The block end before a branch target."""
    return End(JUMP, lambda c: address)


def _trap(c: Cohort) -> int:
    raise SimulatorError("the kernel executes s_trap")


def _zero(index: int) -> Callable[[Cohort], Array]:
    return lambda c: (c.sgpr[index] | c.sgpr[index + 1]) == 0


_CONDITIONS: dict[str, Callable[[Cohort], Array]] = {
    "scc0": lambda c: ~c.scc,
    "scc1": lambda c: c.scc,
    "vccz": _zero(VCC),
    "vccnz": lambda c: ~_zero(VCC)(c),
    "execz": _zero(EXEC),
    "execnz": lambda c: ~_zero(EXEC)(c),
}


def _conditional(test: Callable[[Cohort], Array], target: int, following: int) -> Callable[[Cohort], int | Array]:
    def jump(c: Cohort) -> int | Array:
        taken = test(c)
        if taken.all():
            return target
        return np.where(taken[:, 0], I64(target), I64(following)) if taken.any() else following

    return jump


def _indirect(instruction: Instruction, context: Context) -> Callable[[Cohort], int | Array]:
    source = pair(instruction.operands[-1], context)
    link = instruction.operands[0].index if instruction.name == "s_swappc_b64" else None

    def jump(c: Cohort) -> int | Array:
        to = source(c)
        if link is not None:
            set_scalar_pair(c, link, np.full((len(c), 1), c.batch.code_base + instruction.next_address, U64))
        return np.asarray(to[:, 0].astype(I64) - c.batch.code_base)

    return jump


def build_wait(instruction: Instruction) -> Step:
    """s_waitcnt vmcnt(a) lgkmcnt(b); other counters are not modelled."""
    counts = {name: int(number) for name, number in re.findall(r"(\w+)\((\d+)\)", instruction.text)}
    if not counts:
        raise UnsupportedInstruction(instruction.text)
    vm, lgkm = counts.get("vmcnt"), counts.get("lgkmcnt")
    return lambda c: c.wait(vm, lgkm)


def build_nothing(instruction: Instruction, context: Context) -> Step:
    return lambda c: None
