"""Vector instructions, one by one, against what the manual says of each lane, in plain Python or NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.amdgcn.state import cohort, execute, vector
from tile2cu_runtime.amdgcn import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import VCC

RANDOM = np.random.default_rng(7)
WORDS = RANDOM.integers(0, 1 << 32, (3, 64), dtype=np.uint64).astype(np.uint32)
WORDS[:, :8] = [[0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]] * 3
WORDS[1, :8] = WORDS[1, 7::-1]
FLOATS = RANDOM.normal(0, 100, (3, 64)).astype(np.float32)
FLOATS[:, :4] = [[0.0, -0.0, 1.0, -2.5]] * 3
M = 0xFFFFFFFF


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# Integer instructions of v10, v11, v12 by their meaning on Python integers; the result is cut to 32 bits.
INTEGER: dict[str, Callable[..., int]] = {
    "v_add_u32_e32 v0, v10, v11": lambda a, b: a + b,
    "v_sub_u32_e32 v0, v10, v11": lambda a, b: a - b,
    "v_subrev_u32_e32 v0, v10, v11": lambda a, b: b - a,
    "v_and_b32_e32 v0, v10, v11": lambda a, b: a & b,
    "v_xnor_b32_e32 v0, v10, v11": lambda a, b: ~(a ^ b),
    "v_not_b32_e32 v0, v10": lambda a: ~a,
    "v_lshlrev_b32_e32 v0, v10, v11": lambda a, b: b << (a & 31),
    "v_lshrrev_b32_e32 v0, v10, v11": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32_e32 v0, v10, v11": lambda a, b: signed(b) >> (a & 31),
    "v_lshl_add_u32 v0, v10, v11, v12": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32 v0, v10, v11, v12": lambda a, b, c: (a + b & M) << (c & 31),
    "v_lshl_or_b32 v0, v10, v11, v12": lambda a, b, c: a << (b & 31) | c,
    "v_and_or_b32 v0, v10, v11, v12": lambda a, b, c: a & b | c,
    "v_or3_b32 v0, v10, v11, v12": lambda a, b, c: a | b | c,
    "v_add3_u32 v0, v10, v11, v12": lambda a, b, c: a + b + c,
    "v_xad_u32 v0, v10, v11, v12": lambda a, b, c: (a ^ b) + c,
    "v_bfi_b32 v0, v10, v11, v12": lambda a, b, c: (a & b) | (~a & c),
    "v_bfe_u32 v0, v10, v11, v12": lambda a, b, c: (a >> (b & 31)) & ((1 << (c & 31)) - 1),
    "v_bfe_i32 v0, v10, 4, 5": lambda a: signed(a >> 4 & 31, 5),
    "v_bfm_b32 v0, v10, v11": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_bfrev_b32_e32 v0, v10": lambda a: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32_e32 v0, v10": lambda a: 32 - a.bit_length() if a else M,
    "v_ffbh_i32_e32 v0, v10": lambda a: 32 - (a ^ M if a >> 31 else a).bit_length() if a not in (0, M) else M,
    "v_ffbl_b32_e32 v0, v10": lambda a: (a & -a).bit_length() - 1 if a else M,
    "v_bcnt_u32_b32 v0, v10, v11": lambda a, b: bin(a).count("1") + b,
    "v_alignbit_b32 v0, v10, v11, v12": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32 v0, v10, v11, v12": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_perm_b32 v0, v10, v11, v12": lambda a, b, c: sum(
        perm_byte(a << 32 | b, c >> 8 * k & 255) << 8 * k for k in range(4)
    ),
    "v_mul_lo_u32 v0, v10, v11": lambda a, b: a * b,
    "v_mul_hi_u32 v0, v10, v11": lambda a, b: a * b >> 32,
    "v_mul_hi_i32 v0, v10, v11": lambda a, b: signed(a) * signed(b) >> 32,
    "v_mul_u32_u24_e32 v0, v10, v11": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24_e32 v0, v10, v11": lambda a, b: signed(a, 24) * signed(b, 24),
    "v_mad_u32_u24 v0, v10, v11, v12": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_max_i32_e32 v0, v10, v11": lambda a, b: max(signed(a), signed(b)),
    "v_min_u32_e32 v0, v10, v11": min,
    "v_med3_i32 v0, v10, v11, v12": lambda *abc: sorted(map(signed, abc))[1],
    "v_max3_u32 v0, v10, v11, v12": max,
    "v_sad_u32 v0, v10, v11, v12": lambda a, b, c: abs(a - b) + c,
    "v_mul_lo_u16_e32 v0, v10, v11": lambda a, b: (a & 0xFFFF) * (b & 0xFFFF) & 0xFFFF,
    "v_lshlrev_b16_e32 v0, v10, v11": lambda a, b: (b << (a & 15)) & 0xFFFF,
    "v_add_u32_e32 v0, 0x12345, v10": lambda a: a + 0x12345,
    "v_add_u32_e32 v0, -16, v10": lambda a: a - 16,
    "v_add_u32_sdwa v0, v10, v11 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1": lambda a, b: (
        (a >> 8 & 255) + (b >> 16)
    ),
    "v_add_u32_sdwa v0, sext(v10), v11 dst_sel:WORD_1 src0_sel:BYTE_0": lambda a, b: (signed(a, 8) + b & 0xFFFF) << 16,
    "v_mad_legacy_u16 v0, v10, v11, v12": lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + (c & 0xFFFF) & 0xFFFF,
    "v_cvt_pk_u16_u32 v0, v10, v11": lambda a, b: min(a, 0xFFFF) | min(b, 0xFFFF) << 16,
    "v_dot4_i32_i8 v0, v10, v11, v12": lambda a, b, c: (
        sum(signed(a >> 8 * k, 8) * signed(b >> 8 * k, 8) for k in range(4)) + c
    ),
    "v_pk_add_u16 v0, v10, v11": lambda a, b: (a + b & 0xFFFF) | ((a >> 16) + (b >> 16) & 0xFFFF) << 16,
    "v_pk_add_u16 v0, v10, v11 op_sel:[1,0] op_sel_hi:[0,1]": lambda a, b: (
        ((a >> 16) + b & 0xFFFF) | (a + (b >> 16) & 0xFFFF) << 16
    ),
    "v_pk_max_i16 v0, v10, v11": lambda a, b: (
        (max(signed(a, 16), signed(b, 16)) & 0xFFFF) | (max(signed(a >> 16, 16), signed(b >> 16, 16)) & 0xFFFF) << 16
    ),
}


def perm_byte(pair: int, selector: int) -> int:
    """One byte of v_perm_b32. Selectors 8 to 11 replicate signs and are not modelled by the test."""
    if selector >= 13:
        return 255
    return 0 if selector == 12 else pair >> 8 * (selector & 7) & 255


@pytest.mark.parametrize("text", INTEGER)
def test_integer_instruction(text: str) -> None:
    state, meaning = cohort(), INTEGER[text]
    state.vgpr[10:13, 0] = WORDS
    if text.startswith("v_perm"):
        state.vgpr[12, 0] = selectors = np.where(WORDS[2] & 0x08080808 == 0, WORDS[2], WORDS[2] & 0x07070707)
        assert (selectors & 0x08080808 == 0).any()
    sources = state.vgpr[10 : 10 + sum(f"v{10 + k}" in text for k in range(3)), 0].copy()
    execute(state, text)
    for lane in range(64):
        expected = meaning(*(int(source[lane]) for source in sources)) & M
        assert state.vgpr[0, 0, lane] == expected, (lane, [hex(int(source[lane])) for source in sources])


# Float instructions of v10, v11, v12 on float32, in double precision and rounded.
FLOAT: dict[str, Callable[..., Any]] = {
    "v_add_f32_e32 v0, v10, v11": lambda a, b: a + b,
    "v_sub_f32_e32 v0, v10, v11": lambda a, b: a - b,
    "v_mul_f32_e64 v0, -v10, |v11|": lambda a, b: -a * abs(b),
    "v_fma_f32 v0, v10, v11, v12": lambda a, b, c: a * b + c,
    "v_fmac_f32_e32 v0, v10, v11": lambda a, b: a * b,
    "v_fmamk_f32 v0, v10, 0x40000000, v11": lambda a, b: a * 2 + b,
    "v_fmaak_f32 v0, v10, v11, 0x40000000": lambda a, b: a * b + 2,
    "v_max_f32_e32 v0, v10, v11": max,
    "v_med3_f32 v0, v10, v11, v12": lambda *abc: sorted(abc)[1],
    "v_exp_f32_e32 v0, v10": lambda a: 2.0**a,
    "v_floor_f32_e32 v0, v10": math.floor,
    "v_rndne_f32_e32 v0, v10": round,
    "v_fract_f32_e32 v0, v10": lambda a: a - math.floor(a),
    "v_ldexp_f32 v0, v10, 3": lambda a: a * 8,
    "v_mul_f32_e64 v0, v10, v11 mul:2": lambda a, b: 2 * float(np.float32(a * b)),
    "v_add_f32_e64 v0, v10, 1.0 clamp": lambda a: min(max(a + 1, 0), 1),
    "v_add_f32_e32 v0, 0.5, v10": lambda a: a + 0.5,
    "v_cvt_f32_ubyte1_e32 v0, 0x4200": lambda: 0x42,
}


@pytest.mark.parametrize("text", FLOAT)
def test_float_instruction(text: str) -> None:
    state, meaning = cohort(), FLOAT[text]
    state.vgpr[10:13, 0] = FLOATS.view(np.uint32)
    execute(state, text)
    sources = FLOATS[: sum(f"v{10 + k}" in text for k in range(3))].astype(np.float64)
    with np.errstate(over="ignore"):
        expected = np.array([meaning(*map(float, lane)) for lane in sources.T] or [meaning()] * 64, np.float32)
    np.testing.assert_array_equal(state.vgpr[0, 0].view(np.float32), expected)


def test_transcendentals_are_near() -> None:
    state = cohort()
    positive = np.abs(FLOATS[0]) + 1
    state.vgpr[10, 0] = positive.view(np.uint32)
    for name, function in {"rcp": lambda a: 1 / a, "rsq": lambda a: a**-0.5, "sqrt": np.sqrt, "log": np.log2}.items():
        execute(state, f"v_{name}_f32_e32 v0, v10")
        np.testing.assert_allclose(state.vgpr[0, 0].view(np.float32), function(positive), rtol=3e-7)


def test_conversions() -> None:
    state = cohort()
    values = np.array([0, 1.5, -1.5, 2.5, 1e10, -1e10, np.nan, 65504, 70000, 1e-8] + [3.0] * 54, np.float32)
    state.vgpr[10, 0] = values.view(np.uint32)
    execute(state, "v_cvt_i32_f32_e32 v0, v10\nv_cvt_u32_f32_e32 v1, v10")
    execute(state, "v_cvt_f16_f32_e32 v2, v10\nv_cvt_f64_f32_e32 v[4:5], v10")
    assert state.vgpr[0, 0, :8].view(np.int32).tolist() == [0, 1, -1, 2, 2**31 - 1, -(2**31), 0, 65504]
    assert state.vgpr[1, 0, :7].tolist() == [0, 1, 0, 2, 2**32 - 1, 0, 0]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(state.vgpr[2, 0].astype(np.uint16), values.astype(np.float16).view(np.uint16))
    np.testing.assert_array_equal(
        np.ascontiguousarray(state.vgpr[4:6, 0].T).view(np.float64)[:, 0], values.astype(np.float64)
    )


def test_round_towards_zero_packs_two_halves() -> None:
    state = cohort()
    state.vgpr[10, 0], state.vgpr[11, 0] = (
        vector(np.full(64, 2049.0), np.float32)[0],
        vector(np.full(64, -2051.0), np.float32)[0],
    )
    execute(state, "v_cvt_pkrtz_f16_f32 v0, v10, v11")
    halves = np.ascontiguousarray(state.vgpr[0, 0]).view(np.float16).reshape(64, 2)
    assert halves[0].tolist() == [2048.0, -2050.0]


def test_packed_halves() -> None:
    state = cohort()
    a, b = (RANDOM.normal(0, 4, (64, 2)).astype(np.float16) for _ in range(2))
    state.vgpr[10, 0], state.vgpr[11, 0] = a.view(np.uint32)[:, 0], b.view(np.uint32)[:, 0]
    execute(state, "v_pk_mul_f16 v0, v10, v11\nv_pk_add_f16 v1, v10, v11 neg_lo:[0,1] neg_hi:[0,0]")
    execute(state, "v_dot2_f32_f16 v2, v10, v11, 1.0\nv_fma_mix_f32 v3, v10, v11, 1.0 op_sel:[1,0,0] op_sel_hi:[1,1,0]")

    def halves(row: int) -> np.ndarray:
        return np.ascontiguousarray(state.vgpr[row, 0]).view(np.float16).reshape(64, 2)

    np.testing.assert_array_equal(halves(0), a * b)
    np.testing.assert_array_equal(halves(1), a + b * np.array([-1, 1], np.float16))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(state.vgpr[2, 0].view(np.float32), ((wide_a * wide_b).sum(1) + 1).astype(np.float32))
    np.testing.assert_array_equal(
        state.vgpr[3, 0].view(np.float32), (wide_a[:, 1] * wide_b[:, 0] + 1).astype(np.float32)
    )


def test_packed_floats_take_the_halves_they_are_told() -> None:
    state = cohort()
    state.vgpr[10:13, 0] = FLOATS.view(np.uint32)
    state.vgpr[13, 0] = FLOATS[0].view(np.uint32)
    execute(state, "v_pk_fma_f32 v[0:1], v[10:11], v[12:13], v[10:11] op_sel_hi:[1,0,1] neg_lo:[0,0,1]")
    wide = FLOATS.astype(np.float64)
    np.testing.assert_array_equal(state.vgpr[0, 0].view(np.float32), (wide[0] * wide[2] - wide[0]).astype(np.float32))
    np.testing.assert_array_equal(state.vgpr[1, 0].view(np.float32), (wide[1] * wide[2] + wide[1]).astype(np.float32))


def test_64_bits() -> None:
    state = cohort()
    state.vgpr[10:13, 0] = WORDS
    execute(
        state,
        """v_lshlrev_b64 v[0:1], 4, v[10:11]
        v_mad_u64_u32 v[2:3], vcc, v10, v11, v[11:12]
        v_lshl_add_u64 v[4:5], v[10:11], 2, v[11:12]
        v_ashrrev_i64 v[6:7], 4, v[10:11]""",
    )

    def wide(row: int, lane: int) -> int:
        return int(state.vgpr[row, 0, lane]) | int(state.vgpr[row + 1, 0, lane]) << 32

    mask = (1 << 64) - 1
    for lane in range(64):
        a, b, c = (int(word[lane]) for word in WORDS)
        assert wide(0, lane) == (a | b << 32) << 4 & mask
        assert wide(2, lane) == a * b + (b | c << 32) & mask
        assert wide(4, lane) == ((a | b << 32) << 2) + (b | c << 32) & mask
        assert wide(6, lane) == signed(a | b << 32, 64) >> 4 & mask


def test_carries_make_64_bit_sums() -> None:
    state = cohort()
    state.vgpr[10:13, 0] = WORDS
    execute(state, "v_add_co_u32_e32 v0, vcc, v10, v11\nv_addc_co_u32_e32 v1, vcc, v11, v12, vcc")
    for lane in range(64):
        a, b, c = (int(word[lane]) for word in WORDS)
        total = (a | b << 32) + (b | c << 32)
        assert (int(state.vgpr[0, 0, lane]), int(state.vgpr[1, 0, lane])) == (total & M, total >> 32 & M)
        carry = (int(state.sgpr[VCC, 0, 0]) | int(state.sgpr[VCC + 1, 0, 0]) << 32) >> lane & 1
        assert carry == total >> 64


def test_compare_select_and_mask() -> None:
    """Inactive lanes keep their registers and are 0 in a comparison's mask."""
    mask = 0x00FF_FF00_0FF0_F00F
    state = cohort(mask=mask)
    state.vgpr[10, 0] = FLOATS[0].view(np.uint32)
    state.vgpr[0] = 7
    execute(state, "v_cmp_lt_f32_e32 vcc, 0, v10\nv_cndmask_b32_e32 v0, 3, v10, vcc")
    found = int(state.sgpr[VCC, 0, 0]) | int(state.sgpr[VCC + 1, 0, 0]) << 32
    for lane in range(64):
        active, positive = mask >> lane & 1, FLOATS[0, lane] > 0
        assert found >> lane & 1 == (active and positive)
        expected = (FLOATS[0].view(np.uint32)[lane] if positive else 3) if active else 7
        assert state.vgpr[0, 0, lane] == expected


def test_compare_class() -> None:
    state = cohort()
    values = np.array([np.nan, -np.inf, -1, -1e-40, -0.0, 0.0, 1e-40, 1, np.inf] + [5.0] * 55, np.float32)
    state.vgpr[10, 0] = values.view(np.uint32)
    for kind in range(1, 10):
        execute(state, f"v_cmp_class_f32_e64 s[0:1], v10, {1 << kind}")
        found = {lane for lane in range(9) if int(state.sgpr[0, 0, 0]) >> lane & 1}
        assert found == {kind - 1}


# 8-bit floats by hand: value, code. [MI300 ISA, "FP8 and BF8" (FNUZ); OCP 8-bit Floating Point Specification]
FP8 = [
    ("gfx942", "fp8", [(1.0, 0x40), (-2.0, 0xC8), (240.0, 0x7F), (0.0009765625, 0x01)]),
    ("gfx942", "bf8", [(1.0, 0x40), (57344.0, 0x7F), (-1.5, 0xC2)]),
    ("gfx950", "fp8", [(1.0, 0x38), (448.0, 0x7E), (-2.0, 0xC0), (0.001953125, 0x01)]),
    ("gfx950", "bf8", [(1.0, 0x3C), (57344.0, 0x7B), (-1.5, 0xBE)]),
]


@pytest.mark.parametrize(
    ("target", "form", "pairs"), FP8, ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_fp8_both_ways(target: str, form: str, pairs: list[tuple[float, int]]) -> None:
    for value, code in pairs:
        state = cohort()
        state.vgpr[10, 0] = np.float32(value).view(np.uint32)
        state.vgpr[0] = 0xABCD1234
        execute(state, f"v_cvt_pk_{form}_f32 v0, v10, v10", target)
        assert state.vgpr[0, 0, 0] == 0xABCD0000 | code << 8 | code
        execute(state, f"v_cvt_f32_{form}_sdwa v1, v0 src0_sel:BYTE_1\nv_cvt_pk_f32_{form}_e32 v[2:3], v0", target)
        assert state.vgpr[1:4, 0, 0].view(np.float32).tolist() == [value] * 3


def test_fp8_saturates_and_rounds_to_even() -> None:
    state = cohort()
    values = np.array([1e6, 17.0, 19.0, -1e6] + [0.0] * 60, np.float32)
    state.vgpr[10, 0] = values.view(np.uint32)
    execute(state, "v_cvt_pk_fp8_f32 v0, v10, v10\nv_cvt_f32_fp8_e32 v1, v0", "gfx942")
    assert state.vgpr[1, 0, :4].view(np.float32).tolist() == [240.0, 16.0, 20.0, -240.0]


@pytest.mark.parametrize(
    "text", ["v_add_u32_e64 v0, v1, v2 clamp", "v_frobnicate_b32 v0, v1", "image_load v0, v1, s[0:7]"]
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction):
        execute(cohort(), text)
