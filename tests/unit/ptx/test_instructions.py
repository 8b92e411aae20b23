"""Single PTX instructions on edge values against Python's own arithmetic."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tile2cu_runtime.amdgcn import SimulatorError
from tile2cu_runtime.ptx import Module, PtxError

THREADS = 64
# Loads a, b and c of a thread, executes TEXT, stores d.
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry op(.param .u64 op_0, .param .u64 op_1, .param .u64 op_2, .param .u64 op_3)
{{
  .reg .pred %p<4>;
  .reg .b16 %h<8>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<16>;
  .reg .b{of} %a, %b, %c;
  .reg .b{to} %d;
  ld.param.u64 %rd0, [op_0];
  ld.param.u64 %rd1, [op_1];
  ld.param.u64 %rd2, [op_2];
  ld.param.u64 %rd3, [op_3];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd4, %r0, {of_bytes};
  add.s64 %rd0, %rd0, %rd4;
  add.s64 %rd1, %rd1, %rd4;
  add.s64 %rd2, %rd2, %rd4;
  mad.wide.u32 %rd3, %r0, {to_bytes}, %rd3;
  ld.global.b{of} %a, [%rd0];
  ld.global.b{of} %b, [%rd1];
  ld.global.b{of} %c, [%rd2];
  {text}
  st.global.b{to} [%rd3], %d;
  ret;
}}
"""


def execute(text: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, to: type[np.generic]) -> np.ndarray:
    """d of every thread."""
    of, d = 8 * a.itemsize, np.zeros(THREADS, to)
    filled = KERNEL.format(text=text, of=of, to=8 * d.itemsize, of_bytes=a.itemsize, to_bytes=d.itemsize)
    Module(filled).launch("op", (1,), (THREADS,), [a, b, c, d])
    return d


def edges(bits: int) -> list[int]:
    top = 1 << bits - 1
    return [0, 1, 2, 3, 31, 32, 33, top - 1, top, 2 * top - 1, 0x1234567890ABCDEF % (2 * top)]


def integers(bits: int) -> list[np.ndarray]:
    random = np.random.default_rng(bits)
    rows = random.choice(np.array(edges(bits), np.uint64), (3, THREADS))
    rows[:, ::3] = random.integers(0, 1 << bits, (3, len(rows[0, ::3])), dtype=np.uint64, endpoint=False)
    return [row.astype(f"u{bits // 8}") for row in rows]


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def truncated(a: int, b: int) -> int:
    """C's division."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def s32(function: Callable[..., int]) -> Callable[..., int]:
    return lambda *values: function(*(signed(value, 32) for value in values))


def bit_field(a: int, start: int, length: int, is_signed: bool) -> int:
    """The manual's loop: bits past the end repeat the field's highest bit, or bit 31, if it is signed."""
    start, length = start & 255, length & 255
    top = min(start + length - 1, 31)
    sign = (a >> top & 1) if is_signed and length else 0
    bits = [(a >> start + i & 1) if i < length and start + i <= 31 else sign for i in range(32)]
    return sum(bit << i for i, bit in enumerate(bits))


def insert(a: int, b: int, start: int, length: int) -> int:
    for i in range(length):
        if start + i <= 31:
            b = b & ~(1 << start + i) | (a >> i & 1) << start + i
    return b


def permuted(a: int, b: int, selectors: int) -> int:
    both = struct.pack("<II", a, b)
    result = 0
    for i in range(4):
        selector = selectors >> 4 * i & 15
        byte = both[selector & 7]
        result |= (255 * (byte >> 7) if selector & 8 else byte) << 8 * i
    return result


def table(a: int, b: int, c: int, immediate: int) -> int:
    return sum((immediate >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


@dataclass(frozen=True)
class Case:
    text: str
    expected: Callable[[int, int, int], int]
    of: int = 32
    to: int = 32


CASES = (
    Case("add.s32 %d, %a, %b;", lambda a, b, c: a + b),
    Case("sub.u32 %d, %a, %b;", lambda a, b, c: a - b),
    Case("mul.lo.s32 %d, %a, %b;", lambda a, b, c: a * b),
    Case("mul.hi.s32 %d, %a, %b;", s32(lambda a, b, c: a * b >> 32)),
    Case("mul.hi.u32 %d, %a, %b;", lambda a, b, c: a * b >> 32),
    Case("mul.hi.u64 %d, %a, %b;", lambda a, b, c: a * b >> 64, 64, 64),
    Case("mul.wide.s32 %d, %a, %b;", s32(lambda a, b, c: a * b), 32, 64),
    Case("mad.wide.u16 %d, %a, %b, 7;", lambda a, b, c: a * b + 7, 16, 32),
    Case("mad.lo.s32 %d, %a, %b, %c;", lambda a, b, c: a * b + c),
    Case("div.s32 %d, %a, 7;", s32(lambda a, b, c: truncated(a, 7))),
    Case("rem.s32 %d, %a, -7;", s32(lambda a, b, c: a - truncated(a, -7) * -7)),
    Case("div.u64 %d, %a, 10;", lambda a, b, c: a // 10, 64, 64),
    Case("min.s32 %d, %a, %b;", s32(lambda a, b, c: min(a, b))),
    Case("max.u32 %d, %a, %b;", lambda a, b, c: max(a, b)),
    Case("abs.s32 %d, %a;", s32(lambda a, b, c: abs(a))),
    Case("neg.s32 %d, %a;", lambda a, b, c: -a),
    Case("not.b32 %d, %a;", lambda a, b, c: ~a),
    Case("shl.b32 %d, %a, %b;", lambda a, b, c: a << b if b < 32 else 0),
    Case("shr.u32 %d, %a, %b;", lambda a, b, c: a >> b if b < 32 else 0),
    Case("shr.s32 %d, %a, %b;", lambda a, b, c: signed(a, 32) >> min(b, 31)),
    Case("shr.u64 %d, %a, 33;", lambda a, b, c: a >> 33, 64, 64),
    Case("bfe.u32 %d, %a, 5, 9;", lambda a, b, c: bit_field(a, 5, 9, False)),
    Case("bfe.s32 %d, %a, 20, 20;", lambda a, b, c: bit_field(a, 20, 20, True)),
    Case("bfe.s32 %d, %a, 3, 7;", lambda a, b, c: bit_field(a, 3, 7, True)),
    Case("bfi.b32 %d, %a, %b, 29, 8;", lambda a, b, c: insert(a, b, 29, 8)),
    Case("bfi.b32 %d, %a, %b, 4, 8;", lambda a, b, c: insert(a, b, 4, 8)),
    Case("prmt.b32 %d, %a, %b, %c;", permuted),
    Case("lop3.b32 %d, %a, %b, %c, 0xCA;", lambda a, b, c: table(a, b, c, 0xCA)),
    Case("popc.b32 %d, %a;", lambda a, b, c: bin(a).count("1")),
    Case("clz.b32 %d, %a;", lambda a, b, c: 32 - a.bit_length()),
    Case("bfind.u32 %d, %a;", lambda a, b, c: (a.bit_length() - 1) % 2**32),
    Case("bfind.shiftamt.u32 %d, %a;", lambda a, b, c: 32 - a.bit_length() if a else 2**32 - 1),
    Case("brev.b32 %d, %a;", lambda a, b, c: int(f"{a:032b}"[::-1], 2)),
    Case("setp.lt.s32 %p1, %a, %b; selp.b32 %d, %a, %b, %p1;", s32(lambda a, b, c: a if a < b else b)),
    Case("setp.hi.u32 %p1|%p2, %a, %b; selp.b32 %d, 1, 0, %p2;", lambda a, b, c: int(a <= b)),
    Case(
        "setp.eq.u32 %p1, %a, %b; setp.ne.and.u32 %p2, %a, 0, %p1; selp.u32 %d, 1, 0, %p2;",
        lambda a, b, c: int(a == b != 0),
    ),
    Case("mov.u32 %d, 9; setp.lt.u32 %p1, %a, %b; @!%p1 mov.u32 %d, 5;", lambda a, b, c: 9 if a < b else 5),
    Case("mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};", lambda a, b, c: a >> 16 | (a & 0xFFFF) << 16),
    Case("cvt.s64.s32 %d, %a;", lambda a, b, c: signed(a, 32), 32, 64),
    Case("cvt.u32.u64 %d, %a;", lambda a, b, c: a, 64, 32),
    Case("cvt.sat.s8.s32 %d, %a;", s32(lambda a, b, c: max(-128, min(127, a)))),
    Case("{ .reg .b32 t; add.s32 t, %a, 1; mov.b32 %d, t; }", lambda a, b, c: a + 1),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text.split(";")[0])
def test_integers(case: Case) -> None:
    a, b, c = integers(case.of)
    found = execute(case.text, a, b, c, np.dtype(f"u{case.to // 8}").type)
    bits = 8 if ".s8." in case.text else case.to
    for thread in range(THREADS):
        expected = case.expected(int(a[thread]), int(b[thread]), int(c[thread]))
        assert int(found[thread]) & (1 << bits) - 1 == expected & (1 << bits) - 1, (a[thread], b[thread], c[thread])


FLOATS = [0.0, -0.0, 1.0, -1.5, 3.25, 1e-40, 1e38, -3e38, math.inf, -math.inf, math.nan, 0.1, 65504.0, 2.5, -2.5, 1e10]


def floats() -> list[np.ndarray]:
    return [np.random.default_rng(seed).choice(np.array(FLOATS, np.float32), THREADS) for seed in range(3)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.f32 %d, %a, %b;", lambda a, b, c: a + b),
        ("mul.rn.f32 %d, %a, %b;", lambda a, b, c: a * b),
        ("min.f32 %d, %a, %b;", np.fmin),
        ("max.f32 %d, %a, %b;", np.fmax),
        ("max.NaN.f32 %d, %a, %b;", np.maximum),
        ("neg.f32 %d, %a;", lambda a, b, c=None: -a),
        ("cvt.rni.f32.f32 %d, %a;", lambda a, b, c=None: np.rint(a)),
        ("cvt.sat.f32.f32 %d, %a;", lambda a, b, c=None: np.where(np.isnan(a), 0, np.clip(a, 0, 1))),
        ("setp.lt.f32 %p1, %a, %b; selp.f32 %d, 0f3F800000, 0f00000000, %p1;", lambda a, b, c: (a < b) * 1.0),
        ("setp.geu.f32 %p1, %a, %b; selp.f32 %d, 0f3F800000, 0f00000000, %p1;", lambda a, b, c: ~(a < b) * 1.0),
        ("setp.ne.f32 %p1, %a, %b; selp.f32 %d, 0f3F800000, 0f00000000, %p1;",
         lambda a, b, c: ((a < b) | (a > b)) * 1.0),
        ("{ cvt.rn.f16.f32 %h0, %a; cvt.f32.f16 %d, %h0; }", lambda a, b, c=None: a.astype(np.float16)),
    ],
)  # fmt: skip
def test_floats(text: str, expected: Callable[..., np.ndarray]) -> None:
    a, b, c = floats()
    with np.errstate(all="ignore"):
        wanted = expected(a, b) if expected in (np.fmin, np.fmax, np.maximum) else expected(a, b, c)
    np.testing.assert_array_equal(execute(text, a, b, c, np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cvt.rzi.s32.f32 %d, %a;", lambda v: int(max(-(2**31), min(2**31 - 1, math.trunc(v))))),
        ("cvt.rni.s32.f32 %d, %a;", lambda v: int(max(-(2**31), min(2**31 - 1, round(v))))),
        ("cvt.rmi.s32.f32 %d, %a;", lambda v: int(max(-(2**31), min(2**31 - 1, math.floor(v))))),
    ],
)
def test_floats_to_integers(text: str, expected: Callable[[float], int]) -> None:
    a, b, c = floats()
    found = execute(text, a, b, c, np.int32)
    for value, result in zip(a.tolist(), found.tolist(), strict=True):
        limit = 2**31 - 1 if value > 0 else -(2**31)
        assert result == (0 if math.isnan(value) else limit if math.isinf(value) else expected(value)), value


@pytest.mark.parametrize(("of", "to", "expected"), [
    ("f32", "s32", 0), ("f64", "s32", -(2**31)), ("f64", "u32", 2**31), ("f32", "s64", -(2**63)), ("f32", "u64", 2**63),
    ("f64", "s64", -(2**63)), ("f64", "u64", 2**63),
])  # fmt: skip
def test_an_integer_of_no_number(of: str, to: str, expected: int) -> None:
    """As an H100 converts NaN. [PTX ISA, cvt]"""
    kind = np.dtype(f"{to.replace('s', 'i')[0]}{int(to[1:]) // 8}").type
    values = np.full(THREADS, np.nan, f"f{int(of[1:]) // 8}")
    found = execute(f"cvt.rzi.{to}.{of} %d, %a;", values, values, values, kind)
    assert set(found.tolist()) == {expected}


def test_fused_multiply_adds_round_as_they_say() -> None:
    a, b, c = (np.full(THREADS, value, np.float32) for value in (1 + 2**-12, 1 + 2**-12, -1))
    exact = (1 + 2**-12) ** 2 - 1
    assert execute("fma.rn.f32 %d, %a, %b, %c;", a, b, c, np.float32)[0] == np.float32(exact)
    a, b, c = (np.full(THREADS, value, np.float32) for value in (1.0, 1 / 3, 1.0))
    exact = 1.0 + float(np.float32(1 / 3))
    down, up = (execute(f"fma.{way}.f32 %d, %a, %b, %c;", a, b, c, np.float32)[0] for way in ("rm", "rp"))
    assert float(down) <= exact <= float(up) and up == np.nextafter(down, np.float32(2))


def test_pairs_of_halves() -> None:
    random = np.random.default_rng(1)
    x, y = random.standard_normal((2, THREADS, 2)).astype(np.float16)
    a, b = (np.ascontiguousarray(each).view(np.uint32).reshape(-1) for each in (x, y))
    found = execute("add.f16x2 %d, %a, %b;", a, b, b, np.uint32).view(np.float16).reshape(THREADS, 2)
    np.testing.assert_array_equal(found, x + y)
    floats_of = [each[:, 0].astype(np.float32).copy() for each in (x, y)]
    found = execute("cvt.rn.f16x2.f32 %d, %a, %b;", *floats_of, floats_of[0], np.uint32)
    np.testing.assert_array_equal(found.view(np.float16).reshape(THREADS, 2), np.stack((y[:, 0], x[:, 0]), axis=1))


def test_constants_are_decimal_hexadecimal_or_binary() -> None:
    a, b, c = integers(32)
    text = "and.b32 %d, %a, 0b10000001110000001000000111000000;\n xor.b32 %d, %d, 0x7E;\n add.u32 %d, %d, 9;"
    np.testing.assert_array_equal(execute(text, a, b, c, np.uint32), ((a & 0x81C081C0) ^ 0x7E) + np.uint32(9))


def test_shuffles() -> None:
    a = np.arange(THREADS, dtype=np.uint32) + 100
    lane, warp = np.arange(THREADS) % 32, np.arange(THREADS) // 32 * 32 + 100
    for text, of in (
        ("shfl.sync.bfly.b32 %d|%p1, %a, 5, 31, -1;", lane ^ 5),
        ("shfl.sync.idx.b32 %d, %a, 3, 31, -1;", 0 * lane + 3),
        ("shfl.sync.up.b32 %d, %a, 2, 0, -1;", np.where(lane >= 2, lane - 2, lane)),
        ("shfl.sync.down.b32 %d, %a, 4, 31, -1;", np.where(lane < 28, lane + 4, lane)),
        ("shfl.sync.idx.b32 %d, %a, 1, 6175, -1;", lane // 8 * 8 + 1),  # segments of 8 lanes: c = 0x181f
    ):
        np.testing.assert_array_equal(execute(text, a, a, a, np.uint32), warp + of, text)


def test_threads_that_part_meet_again() -> None:
    """Every fourth thread takes a longer way; a vote behind it sees all lanes."""
    text = """and.b32 %r1, %r0, 3; mov.u32 %r2, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra meet;
    more: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r0; @%p2 bra more;
    meet: setp.eq.u32 %p3, %r1, 0; vote.sync.ballot.b32 %d, %p3, -1;"""
    a = np.zeros(THREADS, np.uint32)
    np.testing.assert_array_equal(execute(text, a, a, a, np.uint32), np.full(THREADS, 0x11111111, np.uint32))


def test_a_warp_that_is_not_whole_is_a_fault() -> None:
    text = "setp.lt.u32 %p1, %r0, 7; @%p1 bra out; shfl.sync.idx.b32 %r3, %a, 3, 31, -1; out: mov.b32 %d, %a;"
    a = np.zeros(THREADS, np.uint32)
    with pytest.raises(PtxError, match="waits for threads of its warp that do not arrive"):
        execute(text, a, a, a, np.uint32)


def test_what_it_has_not_is_named() -> None:
    a = np.zeros(THREADS, np.uint32)
    with pytest.raises(PtxError, match="the instruction tcgen05.wait::ld.sync.aligned"):
        execute("tcgen05.wait::ld.sync.aligned;", a, a, a, np.uint32)


def test_each_instruction_keeps_its_line() -> None:
    """In every kernel of a text, behind labels and blocks, and where several statements share a line."""
    text = KERNEL.format(
        text="{ mov.b32 %d, 1;\n\n again: mov.b32 %d, 2; mov.b32 %d,\n 3; }", of=32, to=32, of_bytes=4, to_bytes=4
    )
    kernels = Module(text + text.replace(" op(", " other(")).kernels
    for name, before in (("op", 0), ("other", text.count("\n"))):
        lines = [each.line for each in kernels[name].instructions if each.operation == "mov" and "%d" in each.operands]
        first = text[: text.index("mov.b32 %d")].count("\n") + 1 + before
        assert lines == [first, first + 2, first + 2], name


def test_arrays_with_gaps_are_refused() -> None:
    a = np.zeros((THREADS, 2), np.uint32)
    with pytest.raises(SimulatorError, match="argument 1 must be a contiguous array"):
        execute("mov.b32 %d, %a;", a[:, 0].copy(), a[:, 0], a[:, 0].copy(), np.uint32)
