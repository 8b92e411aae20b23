"""Scalar instructions against Python integers, jumps, and what s_waitcnt lets through."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.amdgcn.state import cohort, execute
from tile2cu_runtime.amdgcn.cohort import Transfer
from tile2cu_runtime.amdgcn.instruction import EXEC, Operand, parse_instruction, parse_operand

M, MM = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
EDGES = [0, 1, 2, 31, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678]


def signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def overflows(value: int) -> bool:
    return not -(2**31) <= value < 2**31


# Of s10 and s11: the result, and SCC (None: it stays 1).
SCALAR: dict[str, Callable[[int, int], tuple[int, bool | None]]] = {
    "s_add_u32 s0, s10, s11": lambda a, b: (a + b, a + b > M),
    "s_sub_u32 s0, s10, s11": lambda a, b: (a - b, b > a),
    "s_addc_u32 s0, s10, s11": lambda a, b: (a + b + 1, a + b + 1 > M),
    "s_subb_u32 s0, s10, s11": lambda a, b: (a - b - 1, b + 1 > a),
    "s_add_i32 s0, s10, s11": lambda a, b: (a + b, overflows(signed(a) + signed(b))),
    "s_sub_i32 s0, s10, s11": lambda a, b: (a - b, overflows(signed(a) - signed(b))),
    "s_mul_i32 s0, s10, s11": lambda a, b: (a * b, None),
    "s_mul_hi_u32 s0, s10, s11": lambda a, b: (a * b >> 32, None),
    "s_mul_hi_i32 s0, s10, s11": lambda a, b: (signed(a) * signed(b) >> 32, None),
    "s_and_b32 s0, s10, s11": lambda a, b: (a & b, a & b != 0),
    "s_andn2_b32 s0, s10, s11": lambda a, b: (a & ~b, a & ~b & M != 0),
    "s_lshl_b32 s0, s10, s11": lambda a, b: (a << (b & 31), a << (b & 31) & M != 0),
    "s_lshr_b32 s0, s10, s11": lambda a, b: (a >> (b & 31), a >> (b & 31) != 0),
    "s_ashr_i32 s0, s10, s11": lambda a, b: (signed(a) >> (b & 31), signed(a) >> (b & 31) != 0),
    "s_lshl2_add_u32 s0, s10, s11": lambda a, b: ((a << 2) + b, (a << 2) + b > M),
    "s_max_i32 s0, s10, s11": lambda a, b: (max(signed(a), signed(b)), signed(a) > signed(b)),
    "s_min_u32 s0, s10, s11": lambda a, b: (min(a, b), a < b),
    "s_bfe_u32 s0, s10, 0x80004": lambda a, b: (a >> 4 & 255, a >> 4 & 255 != 0),
    "s_bfe_i32 s0, s10, 0x80004": lambda a, b: (signed(a >> 4 & 255, 8), a >> 4 & 255 != 0),
    "s_pack_ll_b32_b16 s0, s10, s11": lambda a, b: (a & 0xFFFF | b << 16, None),
    "s_not_b32 s0, s10": lambda a, b: (~a, ~a & M != 0),
    "s_brev_b32 s0, s10": lambda a, b: (int(f"{a:032b}"[::-1], 2), None),
    "s_bcnt1_i32_b32 s0, s10": lambda a, b: (bin(a).count("1"), a != 0),
    "s_ff1_i32_b32 s0, s10": lambda a, b: ((a & -a).bit_length() - 1, None),
    "s_flbit_i32_b32 s0, s10": lambda a, b: (32 - a.bit_length() if a else M, None),
    "s_flbit_i32 s0, s10": lambda a, b: (32 - (a ^ M if a >> 31 else a).bit_length() if a not in (0, M) else M, None),
    "s_sext_i32_i8 s0, s10": lambda a, b: (signed(a & 255, 8), None),
    "s_abs_i32 s0, s10": lambda a, b: (abs(signed(a)), a != 0),
    "s_cselect_b32 s0, s10, s11": lambda a, b: (a, None),
    "s_movk_i32 s0, 0xfff0": lambda a, b: (-16, None),
    "s_mov_b32 s0, 0x3f800000": lambda a, b: (0x3F800000, None),
    "s_mov_b32 s0, 1.0": lambda a, b: (0x3F800000, None),
}


@pytest.mark.parametrize("text", SCALAR)
def test_scalar_instruction(text: str) -> None:
    """All pairs of edge values at once, a wave each."""
    pairs = [(a, b) for a in EDGES for b in EDGES]
    state = cohort(waves=len(pairs))
    state.sgpr[10, :, 0], state.sgpr[11, :, 0] = np.array(pairs, np.uint32).T
    state.scc[:] = True
    execute(state, text)
    for wave, (a, b) in enumerate(pairs):
        value, scc = SCALAR[text](a, b)
        assert state.sgpr[0, wave, 0] == value & M, (hex(a), hex(b))
        assert state.scc[wave, 0] == (True if scc is None else scc), (hex(a), hex(b))


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "s_cmp_eq_u32 s10, s11": lambda a, b: a == b,
    "s_cmp_lt_i32 s10, s11": lambda a, b: signed(a) < signed(b),
    "s_cmp_ge_u32 s10, s11": lambda a, b: a >= b,
    "s_cmpk_gt_i32 s10, 0xffff": lambda a, b: signed(a) > -1,
    "s_cmpk_lg_u32 s10, 0x1f": lambda a, b: a != 31,
    "s_bitcmp1_b32 s10, s11": lambda a, b: bool(a >> (b & 31) & 1),
}


@pytest.mark.parametrize("text", COMPARISONS)
def test_comparison(text: str) -> None:
    pairs = [(a, b) for a in EDGES for b in EDGES]
    state = cohort(waves=len(pairs))
    state.sgpr[10, :, 0], state.sgpr[11, :, 0] = np.array(pairs, np.uint32).T
    execute(state, text)
    assert state.scc[:, 0].tolist() == [COMPARISONS[text](a, b) for a, b in pairs]


def test_64_bits_and_exec() -> None:
    state = cohort(waves=2)
    state.sgpr[10, :, 0], state.sgpr[11, :, 0] = [0xF0F0, 1], [0x80000000, 0]
    execute(
        state, "s_lshl_b64 s[0:1], s[10:11], 4\ns_ashr_i64 s[2:3], s[10:11], 4\ns_and_saveexec_b64 s[4:5], s[10:11]"
    )
    values = [
        [int(state.sgpr[n, wave, 0]) | int(state.sgpr[n + 1, wave, 0]) << 32 for n in (0, 2, 4)] for wave in (0, 1)
    ]
    first = 0x80000000_0000F0F0
    assert values == [[first << 4 & MM, signed(first, 64) >> 4 & MM, MM], [16, 0, MM]]
    assert state.exec[0].tolist() == [bool(first >> lane & 1) for lane in range(64)]
    assert state.exec[1].tolist() == [True] + [False] * 63
    assert not state.full
    execute(state, "s_mov_b64 exec, -1")
    assert state.full and int(state.sgpr[EXEC, 0, 0]) == M


# ---- text -------------------------------------------------------------------------------------------------------


def test_operands() -> None:
    assert parse_operand("v[4:7]") == Operand("v[4:7]", "v", 4, 4)
    assert parse_operand("-|v1|") == Operand("v1", "v", 1, 1, negate=True, absolute=True)
    assert (parse_operand("vcc").index, parse_operand("vcc").count, parse_operand("exec_hi").index) == (106, 2, 127)
    assert parse_operand("-16").constant() & M == M - 15
    assert parse_operand("0.5").constant(16) == 0x3800
    assert parse_operand("-4.0").constant(64) == 0xC010 << 48


def test_modifiers_and_branches() -> None:
    load = parse_instruction("global_load_dwordx4 v[0:3], v4, s[2:3] offset:-16 sc0", 0x100, 8)
    assert (load.number("offset"), "sc0" in load.modifiers, len(load.operands)) == (-16, True, 3)
    packed = parse_instruction("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1]", 0, 8)
    assert packed.numbers("op_sel_hi") == [1, 0, 1] and packed.numbers("op_sel") == []
    assert parse_instruction("s_cbranch_scc1 65534", 0x100, 4).branch_target() == 0x104 - 8
    assert parse_instruction("s_branch 4", 0x100, 4).branch_target() == 0x114


# ---- waits ------------------------------------------------------------------------------------------------------


def issued(unordered: tuple[bool, ...]) -> tuple[list[int], Callable[[int], list[int]]]:
    """Operations in lgkmcnt's queue; gives what has landed, and a function that waits and gives it again."""
    state, landed = cohort(), []
    instruction = parse_instruction("s_nop 0", 0, 4)
    for number, free in enumerate(unordered):
        transfer = Transfer(instruction=instruction, registers=1 << number, unordered=free)
        transfer.land = lambda _, each: landed.append(each.registers.bit_length() - 1)
        state.issue(transfer, state.lgkm)

    def wait(left: int) -> list[int]:
        state.wait(None, left)
        assert state.pending == sum(1 << number for number in range(len(unordered)) if number not in landed)
        return landed

    return landed, wait


def test_in_order_operations_land_oldest_first() -> None:
    landed, wait = issued((False, False, False))
    assert landed == [] and wait(3) == [] and wait(1) == [0, 1] and wait(0) == [0, 1, 2]


def test_a_scalar_load_is_only_sure_at_zero() -> None:
    """With one operation that returns in any order outstanding, a count of one says nothing about the LDS read."""
    _, wait = issued((False, True))
    assert wait(1) == [] and wait(0) == [0, 1]


def test_flat_loads_need_both_counters() -> None:
    state, landed = cohort(), []
    transfer = Transfer(instruction=parse_instruction("s_nop 0", 0, 4), registers=1)
    transfer.land = lambda _, each: landed.append(each)
    state.issue(transfer, state.vm, state.lgkm)
    state.wait(0, None)
    assert not landed and state.pending == 1
    state.wait(None, 0)
    assert landed == [transfer] and state.pending == 0
