"""What only gfx950 has: scaled products of 8-, 6- and 4-bit floats; and code objects from the ziglang wheel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import KERNELS, compile_hip, compile_text
from tests.amdgcn.state import cohort, execute
from tile2cu_runtime.amdgcn import SimulatorError, simulate

# Values of every code without its sign bit. [OCP Microscaling Formats, "Element Data Types"]
FP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
FP6 = [k / 8 for k in range(8)] + [(1 + k / 8) * s for s in (1, 2, 4) for k in range(8)]
BF6 = [k / 16 for k in range(4)] + [(1 + k / 4) * 2.0**e for e in range(-2, 5) for k in range(4)]
# cbsz or blgp, bits an element, magnitudes by code; of the 8-bit types codes below 1.0 and few above.
TYPES = {
    "fp8": (0, 8, {0x38 + k: 1 + k / 8 for k in range(8)} | {0x40: 2.0, 0x48: 4.0, 0: 0.0}),
    "bf8": (1, 8, {0x3C + k: 1 + k / 4 for k in range(4)} | {0x40: 2.0, 0x44: 4.0, 0: 0.0}),
    "fp6": (2, 6, dict(enumerate(FP6))),
    "bf6": (3, 6, dict(enumerate(BF6))),
    "fp4": (4, 4, dict(enumerate(FP4))),
}
RANDOM = np.random.default_rng(5)


def matrix(kind: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Random codes and their values, (rows, k)."""
    _, bits, values = TYPES[kind]
    codes = RANDOM.choice(list(values), (rows, k))
    negative = RANDOM.integers(0, 2, (rows, k))
    magnitude = np.vectorize(values.get, otypes=[np.float64])(codes)
    return codes | negative << (bits - 1), np.where(negative, -magnitude, magnitude)


def registers(kind: str, codes: np.ndarray) -> np.ndarray:
    """The words of a lane's 32 elements. For 8-bit types lane group g holds k = 16 g .. and k = K / 2 + 16 g ..; for
    the others k = 32 g .. [CDNA4 ISA, "Matrix Arithmetic Instructions"; ROCm blog "Matrix Core Programming on CDNA3
    and CDNA4", 5.4]"""
    rows, k = codes.shape
    bits, lanes = TYPES[kind][1], []
    for lane in range(64):
        row, group = lane % rows, lane // rows
        runs = ((16 * group, 16), (k // 2 + 16 * group, 16)) if bits == 8 else ((32 * group, 32),)
        elements = [int(code) for start, count in runs for code in codes[row, start : start + count]]
        whole = sum(code << bits * number for number, code in enumerate(elements))
        lanes.append([whole >> 32 * word & 0xFFFFFFFF for word in range(bits)])
    return np.array(lanes, np.uint32).T


@pytest.mark.parametrize("shape", [(32, 64), (16, 128)])
@pytest.mark.parametrize(("a_kind", "b_kind"), [("fp8", "fp8"), ("bf8", "fp4"), ("fp6", "bf6"), ("fp4", "fp4")])
@pytest.mark.parametrize("scaled", [False, True])
def test_scaled_product(shape: tuple[int, int], a_kind: str, b_kind: str, scaled: bool) -> None:
    m, k = shape
    (a_codes, a), (b_codes, b) = matrix(a_kind, m, k), matrix(b_kind, m, k)
    exponents = RANDOM.integers(-3, 4, (2, m, k // 32))
    state = cohort()
    for first, kind, codes in ((16, a_kind, a_codes), (24, b_kind, b_codes)):
        content = registers(kind, codes)
        state.vgpr[first : first + len(content), 0] = content
    for number in range(2):
        # Lane 32-block * m + row; A's scale in byte 1, B's in byte 2.
        scale = (exponents[number].T.reshape(-1) + 127).astype(np.uint32)
        state.vgpr[32 + number, 0] = scale << (8, 16)[number] | 0xFF0000FF & ~(0xFF << (8, 16)[number])
    text = (
        f"v_mfma_{'scale_' if scaled else ''}f32_{m}x{m}x{k}_f8f6f4 v[0:{m * m // 64 - 1}], "
        f"v[16:{15 + TYPES[a_kind][1]}], v[24:{23 + TYPES[b_kind][1]}], 0"
        + (", v32, v33 op_sel:[1,0,0] op_sel_hi:[0,1,0]" if scaled else "")
        + f" cbsz:{TYPES[a_kind][0]} blgp:{TYPES[b_kind][0]}"
    )
    execute(state, text, "gfx950")
    if scaled:
        a, b = (value * np.repeat(2.0**exponent, 32, axis=1) for value, exponent in zip((a, b), exponents, strict=True))
    expected = a @ b.T
    for i, j in np.ndindex(m, m):
        lane, item = (j + 32 * (i // 4 % 2), i % 4 + 4 * (i // 8)) if m == 32 else (j + 16 * (i // 4), i % 4)
        assert state.vgpr[item, 0].view(np.float32)[lane] == np.float32(expected[i, j]), (i, j)


def test_lane_groups_swap() -> None:
    state = cohort()
    state.vgpr[0, 0], state.vgpr[1, 0] = np.arange(64), np.arange(64) + 100
    execute(state, "v_permlane32_swap_b32_e32 v0, v1", "gfx950")
    assert state.vgpr[0, 0].tolist() == [*range(32), *range(100, 132)]
    assert state.vgpr[1, 0].tolist() == [*range(32, 64), *range(132, 164)]


WIDE = """
#include "standalone.h"
using int2v = int __attribute__((ext_vector_type(2)));
using short4v = short __attribute__((ext_vector_type(4)));
extern "C" __global__ void product(const _Float16* a, const _Float16* b, float* c) {
  half8 x = *(const half8*)&a[thread() % 32 * 16 + thread() / 32 * 8];
  half8 y = *(const half8*)&b[thread() % 32 * 16 + thread() / 32 * 8];
  float16v d = {};
  d = __builtin_amdgcn_mfma_f32_32x32x16_f16(x, y, d, 0, 0, 0);
  for (int r = 0; r < 16; ++r) c[(8 * (r / 4) + 4 * (thread() / 32) + r % 4) * 32 + thread() % 32] = d[r];
}
extern "C" __global__ void dma(int* a, int* c) {
  __shared__ int s[256];
  using Global = __attribute__((address_space(1))) void;
  using Lds = __attribute__((address_space(3))) void;
  __builtin_amdgcn_global_load_lds((Global*)(a + 4 * thread()), (Lds*)s, 16, 0, 0);
  sync();
  c[thread()] = s[thread()] + s[255 - thread()];
}
extern "C" __global__ void transpose(const short* a, short* c) {
  __shared__ short s[256];
  for (int i = 0; i < 4; ++i) s[thread() * 4 + i] = a[thread() * 4 + i];
  sync();
  auto v = __builtin_amdgcn_ds_read_tr16_b64_v4i16((__attribute__((address_space(3))) short4v*)&s[thread() * 4]);
  for (int i = 0; i < 4; ++i) c[thread() * 4 + i] = v[i];
}
"""


@pytest.mark.parametrize("table", [0x48, 0xF0, 0xCC, 0xAA, 0x17, 0xFF, 0])
def test_any_function_of_three_bits(table: int) -> None:
    """The table's bit number 4 a + 2 b + c; 0xf0, 0xcc and 0xaa are the sources themselves."""
    state = cohort()
    a, b, c = state.vgpr[1:4, 0] = RANDOM.integers(0, 1 << 32, (3, 64), dtype=np.uint64).astype(np.uint32)
    execute(state, f"v_bitop3_b32 v0, v1, v2, v3 bitop3:{table:#x}", "gfx950")
    for bit in range(32):
        rows = 4 * (a >> bit & 1) + 2 * (b >> bit & 1) + (c >> bit & 1)
        np.testing.assert_array_equal(state.vgpr[0, 0] >> bit & 1, table >> rows & 1)


def test_two_floats_become_halves() -> None:
    state = cohort()
    values = RANDOM.standard_normal((2, 64)).astype(np.float32)
    state.vgpr[1:3, 0] = values.view(np.uint32)
    execute(state, "v_cvt_pk_f16_f32 v0, v1, v2", "gfx950")
    np.testing.assert_array_equal(state.vgpr[0, 0].view(np.float16).reshape(64, 2), values.T.astype(np.float16))


def transposed_lanes(bits: int) -> np.ndarray:
    """Which element of the 64 lanes' own, (64 * n), each lane gets as its n-th, by the two sources' words: of 16 bits
    halfword l % 4 of lane l / 4 % 4 + 4 n of the 16; of 8 bits two 8x8 transposes, of even and of odd lanes."""
    count = 64 // bits
    source = np.empty((64, count), int)
    for lane, number in np.ndindex(64, count):
        group, within = lane & ~15, lane & 15
        if bits == 16:
            source[lane, number] = (group + within // 4 + 4 * number) * count + within % 4
        else:
            source[lane, number] = (group + 2 * number + within // 8) * count + within % 8
    return source


@pytest.mark.parametrize("bits", [16, 8])
def test_transposed_read(bits: int) -> None:
    state, code = cohort(), {16: np.uint16, 8: np.uint8}[bits]
    content = RANDOM.integers(0, 1 << bits, 512 * 8 // bits).astype(code)
    state.vgpr[0, 0] = 8 * np.arange(64)
    for number, word in enumerate(content.view(np.uint32).reshape(64, 2).T):
        state.vgpr[1 + number, 0] = word
    execute(state, "ds_write_b64 v0, v[1:2]", "gfx950")
    execute(state, f"ds_read_b64_tr_b{bits} v[4:5], v0", "gfx950")
    found = np.ascontiguousarray(state.vgpr[4:6, 0].T).view(code)
    np.testing.assert_array_equal(found, content[transposed_lanes(bits)])


@pytest.fixture(scope="module")
def wide(ziglang: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_text(WIDE, "wide", "gfx950", tmp_path_factory.mktemp("gfx950"))


def test_wide_product(wide: Path) -> None:
    a, b = (RANDOM.integers(-4, 5, (32, 16)).astype(np.float16) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    assert simulate(wide, "product", 1, 64, [a, b, c]).is_clean
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_16_byte_loads_to_lds(wide: Path) -> None:
    a, c = RANDOM.integers(0, 1000, 256, dtype=np.int32), np.zeros(64, np.int32)
    result = simulate(wide, "dma", 1, 64, [a, c])
    assert result.is_clean, [str(finding) for finding in result.findings]
    np.testing.assert_array_equal(c, a[:64] + a[::-1][:64])


def test_transposed_read_of_a_compiled_kernel(wide: Path) -> None:
    a, c = np.arange(256, dtype=np.int16), np.zeros(256, np.int16)
    assert simulate(wide, "transpose", 1, 64, [a, c]).is_clean
    np.testing.assert_array_equal(c.reshape(4, 16, 4), a.reshape(4, 4, 16).swapaxes(1, 2))


def test_gemm_for_gfx950(ziglang: str, tmp_path: Path) -> None:
    code = compile_hip(KERNELS / "gemm.hip", "gfx950", tmp_path)
    a, b = (RANDOM.integers(-4, 5, (128, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((128, 128), np.float32)
    assert simulate(code, "gemm", 1, 256, [a, b, c, 128, 128, 64]).is_clean
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_without_its_assembly_a_gfx950_file_is_refused(wide: Path, tmp_path: Path) -> None:
    lonely = tmp_path / "lonely.hsaco"
    lonely.write_bytes(wide.read_bytes())
    with pytest.raises(SimulatorError, match="lonely.s beside it"):
        simulate(lonely, "product", 1, 64, [np.zeros(1)] * 3)
