"""Who holds what in the matrix instructions, against tables typed from the manuals: not from the engine's formulas.

Every table gives, for each lane (or thread) and element, the (row, column) that the manual states. The engine is given
fragments that are filled by the table and must return the product where the table for the result says.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels_under_test import Bench

Place = tuple[int, int]
Table = Callable[[int, int], Place]

# ---- PTX ISA 8.5, "Matrix Fragments for mma.m16n8k16 with floating point type" ---------------------------------------
# groupID = %laneid >> 2, threadID_in_group = %laneid % 4


def a_m16k16(lane: int, i: int) -> Place:
    """row = groupID for ai where 0 <= i < 2 || 4 <= i < 6, groupID + 8 otherwise; col = (threadID_in_group * 2) +
    (i & 0x1) for ai where i < 4, (threadID_in_group * 2) + (i & 0x1) + 8 for ai where i >= 4."""
    group, thread = lane >> 2, lane % 4
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def b_k16n8(lane: int, i: int) -> Place:
    """row = (threadID_in_group * 2) + (i & 0x1) for bi where i < 2, + 8 for bi where i >= 2; col = groupID."""
    return lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0), lane >> 2


def c_m16n8(lane: int, i: int) -> Place:
    """row = groupID for ci where i < 2, groupID + 8 for ci where i >= 2; col = (threadID_in_group * 2) + (i & 0x1)."""
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


# ---- "Matrix Fragments for mma.m16n8k8", .tf32 -----------------------------------------------------------------------


def a_m16k8_tf32(lane: int, i: int) -> Place:
    """row = groupID for a0 and a2, groupID + 8 for a1 and a3; col = threadID_in_group for a0 and a1,
    threadID_in_group + 4 for a2 and a3."""
    return (lane >> 2) + (0 if i in (0, 2) else 8), lane % 4 + (0 if i in (0, 1) else 4)


def b_k8n8_tf32(lane: int, i: int) -> Place:
    """row = threadID_in_group for b0, threadID_in_group + 4 for b1; col = groupID."""
    return lane % 4 + (4 if i == 1 else 0), lane >> 2


# ---- "Matrix Fragments for mma.m16n8k32", .s8 ------------------------------------------------------------------------


def a_m16k32_int8(lane: int, i: int) -> Place:
    """row = groupID for ai where 0 <= i < 4 || 8 <= i < 12, groupID + 8 otherwise; col = (threadID_in_group * 4) +
    (i & 0x3) for ai where i < 8, + 16 for ai where i >= 8."""
    row = (lane >> 2) + (0 if 0 <= i < 4 or 8 <= i < 12 else 8)
    return row, lane % 4 * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_k32n8_int8(lane: int, i: int) -> Place:
    """row = (threadID_in_group * 4) + (i & 0x3) for bi where i < 4, + 16 for bi where i >= 4; col = groupID."""
    return lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), lane >> 2


# ---- "Matrix Fragments for mma.m16n8k64", .s4 ------------------------------------------------------------------------


def a_m16k64_int4(lane: int, i: int) -> Place:
    """row = groupID for ai where 0 <= i < 8 || 16 <= i < 24, groupID + 8 otherwise; col = (threadID_in_group * 8) +
    (i & 0x7) for ai where i < 16, + 32 for ai where i >= 16."""
    row = (lane >> 2) + (0 if 0 <= i < 8 or 16 <= i < 24 else 8)
    return row, lane % 4 * 8 + (i & 7) + (32 if i >= 16 else 0)


def b_k64n8_int4(lane: int, i: int) -> Place:
    """row = (threadID_in_group * 8) + (i & 0x7) for bi where i < 8, + 32 for bi where i >= 8; col = groupID."""
    return lane % 4 * 8 + (i & 7) + (32 if i >= 8 else 0), lane >> 2


def halves_of_bytes(items: np.ndarray) -> np.ndarray:
    """Integers of 4 bits, two a byte, the first one in bits 0 to 3."""
    codes = items.astype(np.uint8) & 15
    return codes[:, ::2] | codes[:, 1::2] << 4


def fragment(matrix: np.ndarray, table: Table, lanes: int, elements: int) -> np.ndarray:
    """The registers of all lanes, one row a lane."""
    return np.array([[matrix[table(lane, i)] for i in range(elements)] for lane in range(lanes)], matrix.dtype)


def matrix_of(registers: np.ndarray, table: Table, shape: Place) -> np.ndarray:
    """The matrix that lies in the registers; every element has to be held once."""
    matrix, held = np.zeros(shape, registers.dtype), np.zeros(shape, int)
    for lane, row in enumerate(registers):
        for i, value in enumerate(row):
            matrix[table(lane, i)] = value
            held[table(lane, i)] += 1
    assert (held == 1).all()
    return matrix


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def same(values: np.ndarray) -> np.ndarray:
    return values


# number of the instruction in kernels/primitives.cu, k, table and elements of A and of B, dtype of a register's
# elements, how small integers become such elements, dtype of the accumulators
MMA = {
    "half": (0, 16, a_m16k16, 8, b_k16n8, 4, np.float16, same, np.float32),
    "bfloat16": (1, 16, a_m16k16, 8, b_k16n8, 4, np.uint16, bfloat16_bits, np.float32),
    "half accumulators": (2, 16, a_m16k16, 8, b_k16n8, 4, np.float16, same, np.float16),
    "tf32": (3, 8, a_m16k8_tf32, 4, b_k8n8_tf32, 2, np.float32, same, np.float32),
    "int8": (4, 32, a_m16k32_int8, 16, b_k32n8_int8, 8, np.int8, same, np.int32),
}


@pytest.mark.parametrize(("is_signed", "low"), [(True, -8), (False, 0)])
def test_mma_fragments_of_4_bits(bench: Bench, is_signed: bool, low: int) -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(low, low + 16, shape) for shape in ((16, 64), (64, 8)))
    c = random.integers(-99, 99, (16, 8)).astype(np.int32)
    outcome = bench.launch(
        "primitives",
        "mma_run",
        5 if is_signed else 6,
        halves_of_bytes(fragment(a, a_m16k64_int4, 32, 32)),
        halves_of_bytes(fragment(b, b_k64n8_int4, 32, 16)),
        fragment(c, c_m16n8, 32, 4),
        check=True,
    )
    assert outcome.findings == []
    np.testing.assert_array_equal(matrix_of(outcome.arrays[2], c_m16n8, (16, 8)), a @ b + c)


@pytest.mark.parametrize("name", MMA)
def test_mma_fragments(bench: Bench, name: str) -> None:
    instruction, k, a_table, a_elements, b_table, b_elements, dtype, encode, accumulator = MMA[name]
    random = np.random.default_rng(1)
    a, b, c = (random.integers(-3, 4, shape) for shape in ((16, k), (k, 8), (16, 8)))
    outcome = bench.launch(
        "primitives",
        "mma_run",
        instruction,
        fragment(encode(a).astype(dtype), a_table, 32, a_elements),
        fragment(encode(b).astype(dtype), b_table, 32, b_elements),
        fragment(c.astype(accumulator), c_m16n8, 32, 4),
        check=True,
    )
    assert outcome.findings == []
    np.testing.assert_array_equal(matrix_of(outcome.arrays[2], c_m16n8, (16, 8)), a @ b + c)


def test_tf32_ignores_the_low_13_bits(bench: Bench) -> None:
    """PTX ISA, "Alternate floating point data formats": .tf32 has the range of .f32 and 10 bits of mantissa."""
    a = np.full((16, 8), np.nextafter(np.float32(1.0), np.float32(2.0)), np.float32)
    registers = fragment(a, a_m16k8_tf32, 32, 4)
    ones = np.ones((32, 2), np.float32)
    outcome = bench.launch("primitives", "mma_run", 3, registers, ones, np.zeros((32, 4), np.float32))
    np.testing.assert_array_equal(outcome.arrays[2], np.full((32, 4), 8.0))


def test_ldmatrix(bench: Bench) -> None:
    """PTX ISA, ldmatrix: thread t holds of each 8x8 matrix row t / 4, elements 2 * (t % 4) and the next; the rows of
    matrix m are at the addresses of threads 8 * m .. 8 * m + 7 (x2: of threads 0 .. 15)."""
    tile = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    outcome = bench.launch("primitives", "ldmatrix_run", tile, np.zeros((32, 12, 2), np.uint16), check=True)
    assert outcome.findings == []
    registers = outcome.arrays[1]
    for lane in range(32):
        row, columns = lane // 4, slice(2 * (lane % 4), 2 * (lane % 4) + 2)
        for matrix in range(4):
            assert registers[lane, matrix].tolist() == tile[matrix][row, columns].tolist()
            assert registers[lane, 4 + matrix].tolist() == tile[matrix].T[row, columns].tolist()
        for matrix in range(2):
            assert registers[lane, 8 + matrix].tolist() == tile[matrix][row, columns].tolist()
            assert registers[lane, 10 + matrix].tolist() == tile[matrix].T[row, columns].tolist()


# ---- wgmma and TMA ---------------------------------------------------------------------------------------------------


def swizzle_128(matrix: np.ndarray) -> np.ndarray:
    """A K-major tile of 128-byte rows as it lies in shared memory: in each 8 rows x 128 bytes, the 16-byte chunk c of
    row r lies at chunk c xor r.  [PTX ISA, "Shared Memory Matrix Layout", 128B swizzling; "Tensor swizzling modes"]"""
    chunks = matrix.reshape(matrix.shape[0], 8, 8)
    out = np.empty_like(chunks)
    for row in range(matrix.shape[0]):
        for chunk in range(8):
            out[row, chunk ^ (row % 8)] = chunks[row, chunk]
    return out.reshape(matrix.shape)


def d_wgmma(thread: int, i: int) -> Place:
    """PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", D: warp w of the warpgroup holds rows 16 * w ..
    16 * w + 15; in a warp row = lane / 4 + 8 * ((i / 2) % 2), col = 8 * (i / 4) + 2 * (lane % 4) + (i % 2)."""
    warp, lane = divmod(thread, 32)
    return 16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2


@pytest.mark.parametrize("n", [64, 128, 256])
def test_wgmma_operands_and_accumulators(bench: Bench, n: int) -> None:
    random = np.random.default_rng(2)
    a, b = (random.integers(-3, 4, (rows, 64)).astype(np.float16) for rows in (64, n))
    d = np.zeros((4, 128, n // 2), np.float32)
    outcome = bench.launch("primitives", "wgmma_run", n, swizzle_128(a), swizzle_128(b), d, check=True)
    assert outcome.findings == []
    for quarter in range(4):
        part = slice(16 * quarter, 16 * quarter + 16)
        product = a[:, part].astype(np.float32) @ b[:, part].astype(np.float32).T
        before = np.tile(np.arange(n // 2, dtype=np.float32), (128, 1)) if quarter % 2 else np.zeros((128, n // 2))
        expected = product + matrix_of(before, d_wgmma, (64, n))
        np.testing.assert_array_equal(matrix_of(outcome.arrays[2][quarter], d_wgmma, (64, n)), expected)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (60, 160), (-4, -8)])
def test_tma_box_with_128_byte_swizzle(bench: Bench, row: int, column: int) -> None:
    """A box of 64 x 64 elements; what lies outside of the tensor reads zero and is not written."""
    tensor = np.arange(100 * 200, dtype=np.uint16).reshape(100, 200) % 40000 + 1
    padded = np.zeros((300, 400), np.uint16)
    padded[100:200, 100:300] = tensor
    box = padded[100 + row : 164 + row, 100 + column : 164 + column]
    stored = np.zeros((300, 400), np.uint16)
    store_row, store_column = max(row, 0), max(column, 0)
    stored[100 + store_row : 164 + store_row, 100 + store_column : 164 + store_column] = box
    outcome = bench.launch(
        "primitives", "tma_run", tensor, np.zeros((100, 200), np.uint16), np.zeros((64, 64), np.uint16),
        100, 200, row, column, check=True,
    )  # fmt: skip
    assert outcome.findings == []
    np.testing.assert_array_equal(outcome.arrays[2], swizzle_128(box))
    np.testing.assert_array_equal(outcome.arrays[1], stored[100:200, 100:300])


# ---- AMD -------------------------------------------------------------------------------------------------------------
# amd_matrix_instruction_calculator (MIT), --architecture CDNA3 --instruction v_mfma_f32_{32x32x8,16x16x16}_f16
# --register-layout: row of the result register v of lane l. Columns are l % 32 and l % 16.

MFMA_32_ROWS = {0: [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27],
                1: [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31]}  # fmt: skip
MFMA_16_ROWS = {0: [0, 1, 2, 3], 1: [4, 5, 6, 7], 2: [8, 9, 10, 11], 3: [12, 13, 14, 15]}


@pytest.mark.parametrize(("size", "k", "rows"), [(32, 8, MFMA_32_ROWS), (16, 16, MFMA_16_ROWS)])
def test_mfma_operands_and_result(bench: Bench, size: int, k: int, rows: dict[int, list[int]]) -> None:
    """Operand: lane l holds row (A) or column (B) l % size, k = 4 * (l / size) .. + 3."""
    random = np.random.default_rng(3)
    a, b = random.integers(-3, 4, (size, k)).astype(np.float16), random.integers(-3, 4, (k, size)).astype(np.float16)
    a_lanes = np.array([[a[lane % size, lane // size * 4 + e] for e in range(4)] for lane in range(64)])
    b_lanes = np.array([[b[lane // size * 4 + e, lane % size] for e in range(4)] for lane in range(64)])
    registers = size * size // 64
    outcome = bench.launch("wave64", "mfma_run", size, a_lanes, b_lanes, np.zeros((64, registers), np.float32))
    result = matrix_of(outcome.arrays[2], lambda lane, v: (rows[lane // size][v], lane % size), (size, size))
    np.testing.assert_array_equal(result, a.astype(np.float32) @ b.astype(np.float32))
