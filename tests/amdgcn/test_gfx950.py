"""What only gfx950 has, and code objects from the ziglang wheel; its matrix layouts are in test_cdna4_layouts.py."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.amdgcn.build import KERNELS, compile_hip, compile_text
from tests.amdgcn.state import cohort, execute
from tile2cu.targets import find
from tile2cu_runtime.amdgcn import CodeObject, SimulatorError, simulate
from tile2cu_runtime.hip import CODE_OBJECT, find_clang

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RANDOM = np.random.default_rng(5)


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


@pytest.mark.nightly
def test_loops_add_no_addresses_of_transposing_reads(ziglang: str) -> None:
    """Reads share registers with addresses, and have offsets of their own: 384 vector instructions per 128 keys."""
    attention = tile2cu.load(
        EXAMPLES / "attention.py", target="hip:gfx950", device="sim", check=True, options={"statistics": True},
        dim=128, block_M=128, block_N=64, threads=256, is_causal=False,
    )  # fmt: skip
    found = []
    for keys in (128, 256):
        attention(*(RANDOM.standard_normal((1, keys, 1, 128)).astype(np.float16) for _ in range(3)))
        cost = attention.costs[0]
        found.append(cost.count("vector") / cost.waves)
    assert found[1] - found[0] <= 400


def test_reads_of_operands_are_those_that_are_stated(ziglang: str) -> None:
    """K is read along its rows, V across them; clang of the stated version moves no value to AccVGPRs."""
    attention = tile2cu.load(
        EXAMPLES / "attention.py", target="hip:gfx950", device="sim",
        dim=128, block_M=128, block_N=64, threads=256, is_causal=False,
    )  # fmt: skip
    attention(*(RANDOM.standard_normal((1, 64, 1, 128)).astype(np.float16) for _ in range(3)))
    stated = re.findall(r"B from LDS through VGPRs by (ds_read\w+)", re.sub(r"\n *// ", " ", attention.source))
    assert stated == ["ds_read_b128", "ds_read_b64_tr_b16"]
    names = set(CodeObject.load(attention.library.parent / CODE_OBJECT).listing.names())
    assert {name for name in names if name.startswith("ds_read")} == set(stated)
    assert not any(name.startswith("v_accvgpr") for name in names)


def test_stated_versions_of_clang_are_those_that_compile_here(ziglang: str) -> None:
    for target in ("hip:gfx942", "hip:gfx950"):
        found = find(target)
        assert re.search(rf"clang version {found.clang}\.", find_clang(found.arch).version)


def test_without_its_assembly_a_gfx950_file_is_refused(wide: Path, tmp_path: Path) -> None:
    lonely = tmp_path / "lonely.hsaco"
    lonely.write_bytes(wide.read_bytes())
    with pytest.raises(SimulatorError, match="lonely.s beside it"):
        simulate(lonely, "product", 1, 64, [np.zeros(1)] * 3)
