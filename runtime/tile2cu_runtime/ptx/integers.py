"""Integer instructions. [PTX ISA 9.0, "Integer Arithmetic Instructions", "Logic and Shift Instructions"]"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx.elementwise import SIGNED, bits_of, simple, type_of
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import TYPES, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import Builder, Step, Threads


def _shift_left(a: Array, by: Array) -> Array:
    """Shifts by the width or more give 0."""
    shifted = a << np.minimum(by, bits_of(a) - 1).astype(a.dtype)
    result: Array = np.where(by >= bits_of(a), a.dtype.type(0), shifted)
    return result


def _shift_right(a: Array, by: Array) -> Array:
    """Signed types extend the sign; shifts by the width or more give only sign bits."""
    last = bits_of(a) - 1
    shifted = a >> np.minimum(by, last).astype(a.dtype)
    result: Array = np.where((by > last) & (a.dtype.kind == "u"), a.dtype.type(0), shifted)
    return result


def _shift(function: Callable[[Array, Array], Array]) -> Builder:
    def build(instruction: Instruction, kernel: Kernel) -> Step:
        target, a, by = instruction.operands
        value, count = source(a, TYPES[type_of(instruction)], kernel), source(by, np.uint32, kernel)
        return lambda t: t.write(target, function(value(t), count(t)))

    return build


def _multiply(instruction: Instruction, kernel: Kernel) -> Step:
    """mul and mad: .lo, .hi, .wide."""
    name = type_of(instruction)
    kind, part = TYPES[name], next(each for each in instruction.modifiers if each in ("lo", "hi", "wide"))
    bits, signed = int(name[1:]), name[0]
    wide = TYPES[f"{signed}{min(64, 2 * bits)}"]
    if bits == 64 and part != "lo":
        return _multiply_high_64(instruction, kernel, signed)
    target, *rest = instruction.operands
    a, b = (source(each, kind, kernel) for each in rest[:2])
    c = source(rest[2], wide if part == "wide" else kind, kernel) if len(rest) > 2 else None

    def step(t: Threads) -> None:
        product = a(t).astype(wide) * b(t).astype(wide)
        if part == "hi":
            product = product >> wide(bits)
        result = product if part == "wide" else product.astype(kind)
        t.write(target, result + c(t) if c else result)

    return step


def _multiply_high_64(instruction: Instruction, kernel: Kernel, signed: str) -> Step:
    target, *rest = instruction.operands
    a, b = (source(each, TYPES[f"{signed}64"], kernel) for each in rest[:2])

    def step(t: Threads) -> None:
        high = [(int(x) * int(y) >> 64) & (1 << 64) - 1 for x, y in zip(a(t), b(t), strict=True)]
        t.write(target, np.array(high, np.uint64))

    return step


def _divide(a: Array, b: Array) -> Array:
    """Truncating division; a division by zero is unspecified, here all ones."""
    unsigned = f"u{a.dtype.itemsize}"
    # The magnitude of the minimum is correct as an unsigned number.
    size, of = (np.abs(each).view(unsigned) for each in (a, np.where(b == 0, a.dtype.type(1), b)))
    quotient = (size // of).view(a.dtype)
    if a.dtype.kind == "i":
        quotient = np.where((a < 0) != (b < 0), -quotient, quotient)
    result: Array = np.where(b == 0, (~np.zeros_like(size)).view(a.dtype), quotient)
    return result


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - _divide(a, b) * b)


def _insert(instruction: Instruction, kernel: Kernel) -> Step:
    """bfi: inserts `length` bits of a into b at `start`."""
    target, *rest = instruction.operands
    kind = TYPES[type_of(instruction)]
    a, b = (source(each, kind, kernel) for each in rest[:2])
    start, length = (source(each, np.uint32, kernel) for each in rest[2:])

    def step(t: Threads) -> None:
        ones = _shift_left(np.full(t.count, ~np.zeros(1, kind)), length(t))
        field = _shift_left(~ones, start(t))
        t.write(target, (_shift_left(a(t), start(t)) & field) | (b(t) & ~field))

    return step


def _extract(instruction: Instruction, kernel: Kernel) -> Step:
    """bfe: `length` bits of a from `start`; signed types extend the field's highest bit."""
    target, *rest = instruction.operands
    name = type_of(instruction)
    bits = int(name[1:])
    a = source(rest[0], TYPES[f"u{bits}"], kernel)
    start, length = (source(each, np.uint32, kernel) for each in rest[1:])

    def step(t: Threads) -> None:
        first, count = start(t) & np.uint32(255), length(t) & np.uint32(255)
        # A field past the highest bit is truncated there, and takes that bit as its sign.
        up = np.where(first + count > bits, 0, bits - first.astype(np.int64) - count).astype(np.uint32)
        placed = _shift_left(a(t), up)
        field = _shift_right(placed.view(SIGNED[bits]) if name[0] == "s" else placed, first + up)
        t.write(target, np.where(count == 0, field.dtype.type(0), field))

    return step


def _permute(instruction: Instruction, kernel: Kernel) -> Step:
    """prmt.b32, default mode: each nibble of c selects a byte of {b, a}; its high bit replicates the byte's sign."""
    target, *rest = instruction.operands
    a, b, c = (source(each, np.uint32, kernel) for each in rest)

    def step(t: Threads) -> None:
        both = (b(t).astype(np.uint64) << np.uint64(32)) | a(t)
        result = np.zeros(t.count, np.uint32)
        for byte in range(4):
            selector = (c(t) >> np.uint32(4 * byte)) & np.uint32(15)
            chosen = (both >> (8 * (selector & np.uint32(7))).astype(np.uint64)).astype(np.uint8)
            sign = np.where(chosen & 0x80, np.uint8(0xFF), np.uint8(0))
            result |= np.where(selector & 8, sign, chosen).astype(np.uint32) << np.uint32(8 * byte)
        t.write(target, result)

    return step


def _logic3(instruction: Instruction, kernel: Kernel) -> Step:
    """lop3: bit a * 4 + b * 2 + c of the truth table."""
    target, *rest = instruction.operands
    a, b, c = (source(each, np.uint32, kernel) for each in rest[:3])
    table = int(rest[3], 0)

    def step(t: Threads) -> None:
        values = a(t), b(t), c(t)
        result = np.zeros(t.count, np.uint32)
        for row in (number for number in range(8) if table >> number & 1):
            picked = [value if row >> 2 - place & 1 else ~value for place, value in enumerate(values)]
            result |= picked[0] & picked[1] & picked[2]
        t.write(target, result)

    return step


def _count_bits(a: Array) -> Array:
    bits = np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1), axis=1)
    result: Array = bits.sum(axis=1).astype(np.uint32)
    return result


def _leading_zeros(a: Array) -> Array:
    bits = np.unpackbits(
        np.ascontiguousarray(a.astype(f">u{a.dtype.itemsize}")).view(np.uint8).reshape(len(a), -1), axis=1
    )
    result: Array = np.where(bits.any(axis=1), bits.argmax(axis=1), bits.shape[1]).astype(np.uint32)
    return result


def _find_bit(instruction: Instruction, kernel: Kernel) -> Step:
    """bfind of unsigned integers: the position of the highest set bit, or its distance from the top; ~0 if there is
    none.
    """
    if not type_of(instruction).startswith("u"):
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    target, a = instruction.operands
    value, from_top = source(a, TYPES[type_of(instruction)], kernel), "shiftamt" in instruction.modifiers

    def step(t: Threads) -> None:
        bits = value(t)
        top, zeros = np.uint32(8 * bits.dtype.itemsize - 1), _leading_zeros(bits)
        t.write(target, np.where(bits == 0, np.uint32(0xFFFFFFFF), zeros if from_top else top - zeros))

    return step


def _reversed_bits(a: Array) -> Array:
    """brev: reverses the bits."""
    bits = np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1), axis=1, bitorder="little")
    result: Array = np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(a.dtype).reshape(-1)
    return result


def _to_u32(function: Callable[[Array], Array]) -> Builder:
    def build(instruction: Instruction, kernel: Kernel) -> Step:
        target, a = instruction.operands
        value = source(a, TYPES[type_of(instruction)], kernel)
        return lambda t: t.write(target, function(value(t)))

    return build


def _dot_4(instruction: Instruction, kernel: Kernel) -> Step:
    """dp4a: c plus the dot product of four bytes, signed or unsigned by the types."""
    target, *rest = instruction.operands
    kinds = [np.int8 if each == "s32" else np.uint8 for each in instruction.modifiers[-2:]]
    a, b, c = (source(each, np.uint32, kernel) for each in rest)

    def step(t: Threads) -> None:
        left, right = (
            np.ascontiguousarray(get(t)).view(kind).reshape(t.count, 4).astype(np.int64)
            for get, kind in zip((a, b), kinds, strict=True)
        )
        t.write(target, ((left * right).sum(axis=1) + c(t)).astype(np.uint32))

    return step


BUILDERS: dict[str, Builder] = {
    "mul": _multiply,
    "mad": _multiply,
    "add": simple(lambda a, b: a + b),
    "sub": simple(lambda a, b: a - b),
    "div": simple(_divide),
    "rem": simple(_remainder),
    "and": simple(np.bitwise_and),
    "or": simple(np.bitwise_or),
    "xor": simple(np.bitwise_xor),
    "not": simple(np.invert),
    "shl": _shift(_shift_left),
    "shr": _shift(_shift_right),
    "bfi": _insert,
    "bfe": _extract,
    "prmt": _permute,
    "lop3": _logic3,
    "popc": _to_u32(_count_bits),
    "clz": _to_u32(_leading_zeros),
    "bfind": _find_bit,
    "brev": simple(_reversed_bits),
    "dp4a": _dot_4,
}
