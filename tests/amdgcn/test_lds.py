"""LDS instructions on bytes of the test's choice."""

from __future__ import annotations

import numpy as np

from tests.amdgcn.state import LDS_BYTES, cohort, execute
from tile2cu_runtime.amdgcn.cohort import Cohort

RANDOM = np.random.default_rng(11)
LANE = np.arange(64)


def with_lds(mask: int = (1 << 64) - 1) -> tuple[Cohort, np.ndarray]:
    """A wave whose LDS holds random bytes; the bytes are a view of the LDS."""
    state = cohort(mask=mask)
    state.vgpr[1, 0] = 16 * LANE
    state.vgpr[4:8, 0] = RANDOM.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
    content = state.batch.lds.store.bytes[:LDS_BYTES]
    content[:] = RANDOM.integers(0, 256, LDS_BYTES, dtype=np.uint8)
    state.batch.lds._written[:] = True
    return state, content


def words(content: np.ndarray, first: np.ndarray, count: int) -> np.ndarray:
    """`count` 32-bit words from each byte offset, (count, lanes)."""
    return np.array([content[start : start + 4 * count].view(np.uint32) for start in first]).T


def test_reads_of_all_widths() -> None:
    state, content = with_lds()
    execute(state, "ds_read_b128 v[8:11], v1 offset:32\nds_read_b64 v[12:13], v1 offset:8\nds_read_b96 v[14:16], v1")
    np.testing.assert_array_equal(state.vgpr[8:12, 0], words(content, 16 * LANE + 32, 4))
    np.testing.assert_array_equal(state.vgpr[12:14, 0], words(content, 16 * LANE + 8, 2))
    np.testing.assert_array_equal(state.vgpr[14:17, 0], words(content, 16 * LANE, 3))
    execute(state, "ds_read_u8 v8, v1 offset:3\nds_read_i8 v9, v1 offset:3\nds_read_u16 v10, v1 offset:2")
    np.testing.assert_array_equal(state.vgpr[8, 0], content[16 * LANE + 3])
    np.testing.assert_array_equal(state.vgpr[9, 0].view(np.int32), content[16 * LANE + 3].view(np.int8))
    np.testing.assert_array_equal(state.vgpr[10, 0], content.view(np.uint16)[8 * LANE + 1])


def test_reads_into_half_a_register() -> None:
    state, content = with_lds()
    state.vgpr[8:10, 0] = 0xAAAABBBB
    execute(state, "ds_read_u16_d16 v8, v1\nds_read_u16_d16_hi v9, v1")
    halves = content.view(np.uint16)[8 * LANE].astype(np.uint32)
    np.testing.assert_array_equal(state.vgpr[8, 0], halves | 0xAAAA0000)
    np.testing.assert_array_equal(state.vgpr[9, 0], halves << 16 | 0xBBBB)


def test_reads_and_writes_of_two_places() -> None:
    state, content = with_lds()
    execute(state, "ds_read2_b32 v[8:9], v1 offset0:1 offset1:3\nds_read2st64_b64 v[10:13], v1 offset1:2")
    np.testing.assert_array_equal(state.vgpr[8, 0], words(content, 16 * LANE + 4, 1)[0])
    np.testing.assert_array_equal(state.vgpr[9, 0], words(content, 16 * LANE + 12, 1)[0])
    np.testing.assert_array_equal(state.vgpr[12:14, 0], words(content, 16 * LANE + 2 * 64 * 8, 2))
    execute(state, "ds_write2_b32 v1, v4, v5 offset0:2")
    np.testing.assert_array_equal(words(content, 16 * LANE + 8, 1)[0], state.vgpr[4, 0])
    np.testing.assert_array_equal(words(content, 16 * LANE, 1)[0], state.vgpr[5, 0])


def test_writes_touch_only_active_lanes() -> None:
    state, content = with_lds(mask=0xFF)
    before = content.copy()
    execute(state, "ds_write_b128 v1, v[4:7]\nds_write_b16 v1, v4 offset:200")
    np.testing.assert_array_equal(words(content, 16 * LANE[:8], 4)[:, :3], state.vgpr[4:8, 0, :3])
    assert content[200:202].view(np.uint16)[0] == state.vgpr[4, 0, 0] & 0xFFFF
    np.testing.assert_array_equal(content[16 * 8 + 200 :], before[16 * 8 + 200 :])


def test_transposed_read_gives_columns() -> None:
    """Lanes 16 g to 16 g + 15 hold a 4x16 matrix of halves, 4 a lane; lane l gets column l % 16."""
    state, content = with_lds()
    place = RANDOM.permutation(64) * 8
    state.vgpr[1, 0] = place
    execute(state, "ds_read_b64_tr_b16 v[8:9], v1 offset:64", "gfx950")
    halves = content.view(np.uint16)
    got = np.ascontiguousarray(state.vgpr[8:10, 0].T).view(np.uint16)
    for lane in range(64):
        for row in range(4):
            source = lane & ~15 | 4 * row | lane >> 2 & 3
            assert got[lane, row] == halves[(place[source] + 64) // 2 + (lane & 3)]


def test_atomics_return_the_old_value() -> None:
    state, content = with_lds()
    content[:4].view(np.uint32)[0] = 10
    state.vgpr[1], state.vgpr[4] = 0, 2
    execute(state, "ds_add_rtn_u32 v8, v1, v4")
    assert sorted(state.vgpr[8, 0].tolist()) == list(range(10, 138, 2))
    state.vgpr[5], state.vgpr[6, 0] = 138, LANE
    execute(state, "ds_cmpst_rtn_b32 v8, v1, v5, v6")
    assert content[:4].view(np.uint32)[0] == 0
    assert state.vgpr[8, 0].tolist() == [138] + [0] * 63
