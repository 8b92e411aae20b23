"""Instructions that look across lanes: DPP, swizzles, permutations, reading and writing one lane."""

from __future__ import annotations

import numpy as np
import pytest

from tests.amdgcn.state import cohort, execute

WORDS = np.random.default_rng(9).integers(0, 1 << 32, (2, 64), dtype=np.uint64).astype(np.uint32)

DPP = {
    "quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf": lambda lane: lane ^ 1,
    "row_shr:1 row_mask:0xf bank_mask:0xf": lambda lane: lane - 1 if lane % 16 else None,
    "row_shl:4 row_mask:0xf bank_mask:0xf": lambda lane: lane + 4 if lane % 16 < 12 else None,
    "row_ror:8 row_mask:0xf bank_mask:0xf": lambda lane: lane // 16 * 16 + (lane - 8) % 16,
    "row_mirror row_mask:0xf bank_mask:0xf": lambda lane: lane // 16 * 16 + 15 - lane % 16,
    "row_half_mirror row_mask:0xf bank_mask:0xf": lambda lane: lane // 8 * 8 + 7 - lane % 8,
    "row_bcast:15 row_mask:0xa bank_mask:0xf": lambda lane: lane // 16 * 16 - 1 if lane // 16 in (1, 3) else None,
    "row_bcast:31 row_mask:0xc bank_mask:0xf": lambda lane: 31 if lane >= 32 else None,
    "row_newbcast:5 row_mask:0xf bank_mask:0xf": lambda lane: lane // 16 * 16 + 5,
    "wave_shr:1 row_mask:0xf bank_mask:0xf": lambda lane: lane - 1 if lane else None,
}


@pytest.mark.parametrize("control", DPP)
def test_dpp(control: str) -> None:
    """A lane without a source keeps its value."""
    state = cohort()
    state.vgpr[10, 0] = WORDS[0]
    state.vgpr[0] = 42
    execute(state, f"v_mov_b32_dpp v0, v10 {control}")
    for lane in range(64):
        source = DPP[control](lane)
        assert state.vgpr[0, 0, lane] == (42 if source is None else WORDS[0, source]), lane


def test_dpp_bound_control_writes_zero() -> None:
    state = cohort()
    state.vgpr[10, 0], state.vgpr[0] = WORDS[0], 42
    execute(state, "v_mov_b32_dpp v0, v10 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0")
    assert state.vgpr[0, 0, ::16].tolist() == [0] * 4


def test_lane_access() -> None:
    state = cohort(waves=2, mask=0xF0)
    state.vgpr[10, 0], state.vgpr[10, 1] = WORDS[0], WORDS[1]
    state.sgpr[4] = [[3], [9]]
    execute(state, "v_readfirstlane_b32 s0, v10\nv_readlane_b32 s1, v10, s4\nv_writelane_b32 v0, s0, s4")
    assert state.sgpr[0, :, 0].tolist() == [WORDS[0, 4], WORDS[1, 4]]
    assert state.sgpr[1, :, 0].tolist() == [WORDS[0, 3], WORDS[1, 9]]
    assert (state.vgpr[0, 0, 3], state.vgpr[0, 1, 9]) == (WORDS[0, 4], WORDS[1, 4])


def test_mask_bit_count_numbers_the_lanes() -> None:
    state = execute(cohort(), "v_mbcnt_lo_u32_b32 v0, -1, 0\nv_mbcnt_hi_u32_b32 v0, -1, v0")
    assert state.vgpr[0, 0].tolist() == list(range(64))


SWIZZLES = {
    'swizzle(BITMASK_PERM,"00p1i")': lambda lane: lane & 32 | (lane & 4) | 2 | (~lane & 1),
    "swizzle(QUAD_PERM,0,0,2,2)": lambda lane: lane & ~1,
    "swizzle(SWAP,8)": lambda lane: lane ^ 8,
    "swizzle(REVERSE,4)": lambda lane: lane ^ 3,
    "swizzle(BROADCAST,16,5)": lambda lane: lane & ~15 | 5,
    "0x041f": lambda lane: lane & 32 | ((lane & 31) ^ 1),
}


@pytest.mark.parametrize("offset", SWIZZLES)
def test_swizzle(offset: str) -> None:
    state = cohort()
    state.vgpr[10, 0] = WORDS[0]
    execute(state, f"ds_swizzle_b32 v0, v10 offset:{offset}")
    assert state.vgpr[0, 0].tolist() == [WORDS[0, SWIZZLES[offset](lane)] for lane in range(64)]


def test_bpermute_pulls_and_permute_pushes() -> None:
    state = cohort()
    target = (np.arange(64) * 5 + 3) % 64
    state.vgpr[10, 0], state.vgpr[11, 0] = 4 * target, WORDS[0]
    execute(state, "ds_bpermute_b32 v0, v10, v11\nds_permute_b32 v1, v10, v11")
    np.testing.assert_array_equal(state.vgpr[0, 0], WORDS[0, target])
    np.testing.assert_array_equal(state.vgpr[1, 0, target], WORDS[0])
