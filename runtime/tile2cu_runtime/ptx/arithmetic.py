"""Instructions on registers alone. [PTX ISA 9.0, "Instruction Set"]

Transcendentals are correctly rounded where the hardware approximates; .ftz is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import TYPES, elements, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import LOCAL_WINDOW, SHARED_WINDOW, Builder, Step, Threads

_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def _type(instruction: Instruction) -> str:
    """The last modifier that is a type."""
    return next(each for each in reversed(instruction.modifiers) if each in TYPES)


def _simple(function: Callable[..., Array]) -> Builder:
    """d = function(a, b, ...), all of the instruction's type."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        kind = TYPES[_type(instruction)]
        target, *rest = instruction.operands
        sources = [source(each, kind, kernel) for each in rest]
        return lambda t: t.write(target, function(*(each(t) for each in sources)).astype(kind, copy=False))

    return build


def _float_or(integer: Callable[..., Array], floating: Callable[..., Array]) -> Builder:
    """Of floats another function than of integers; bf16 and pairs of 16 bits are computed through float32."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        name = _type(instruction)
        if name in ("f16x2", "bf16x2", "bf16"):
            return _halves(instruction, kernel, name, floating)
        return _simple(floating if name.startswith("f") else integer)(instruction, kernel)

    return build


def _halves(instruction: Instruction, kernel: Kernel, name: str, function: Callable[..., Array]) -> Step:
    target, *rest = instruction.operands
    sources = [source(each, TYPES[name], kernel) for each in rest]

    def step(t: Threads) -> None:
        values = [unpacked(each(t), name) for each in sources]
        t.write(target, packed(np.asarray(function(*values)), name))

    return step


def unpacked(bits: Array, name: str) -> Array:
    """float32 values of f16x2, bf16x2 or bf16: (threads, 2), or (threads, 1)."""
    halves = np.ascontiguousarray(bits).view(np.uint16).reshape(len(bits), -1)
    if name.startswith("bf16"):
        wide: Array = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return wide
    result: Array = halves.view(np.float16).astype(np.float32)
    return result


def packed(values: Array, name: str) -> Array:
    """The inverse of unpacked, rounded to nearest even."""
    halves = to_bf16(values) if name.startswith("bf16") else values.astype(np.float16).view(np.uint16)
    whole: Array = np.ascontiguousarray(halves).view(np.uint32 if name.endswith("x2") else np.uint16).reshape(-1)
    return whole


def to_bf16(values: Array) -> Array:
    """bfloat16's bits of float32 values, to nearest even; NaN is 0x7fff."""
    bits = np.ascontiguousarray(values.astype(np.float32)).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    result: Array = np.where(np.isnan(values), np.uint16(0x7FFF), rounded.astype(np.uint16))
    return result


# ---- integers -----------------------------------------------------------------------------------------------


def _bits_of(values: Array) -> int:
    return 8 * values.dtype.itemsize


def _shift_left(a: Array, by: Array) -> Array:
    """Shifts by the width or more give 0."""
    shifted = a << np.minimum(by, _bits_of(a) - 1).astype(a.dtype)
    result: Array = np.where(by >= _bits_of(a), a.dtype.type(0), shifted)
    return result


def _shift_right(a: Array, by: Array) -> Array:
    """Signed types keep their sign; shifts by the width or more give nothing but it."""
    last = _bits_of(a) - 1
    shifted = a >> np.minimum(by, last).astype(a.dtype)
    result: Array = np.where((by > last) & (a.dtype.kind == "u"), a.dtype.type(0), shifted)
    return result


def _shift(function: Callable[[Array, Array], Array]) -> Builder:
    def build(instruction: Instruction, kernel: Kernel) -> Step:
        target, a, by = instruction.operands
        value, count = source(a, TYPES[_type(instruction)], kernel), source(by, np.uint32, kernel)
        return lambda t: t.write(target, function(value(t), count(t)))

    return build


def _multiply(instruction: Instruction, kernel: Kernel) -> Step:
    """mul and mad: .lo, .hi, .wide of integers; mad of floats is fma."""
    name = _type(instruction)
    if name.startswith(("f", "b")):
        return _FLOATS["fma" if instruction.operation == "mad" else "mul"](instruction, kernel)
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
    """Towards zero; by zero the machine may give anything, here all ones."""
    unsigned = f"u{a.dtype.itemsize}"
    # The magnitude of the smallest number is right without its sign.
    size, of = (np.abs(each).view(unsigned) for each in (a, np.where(b == 0, a.dtype.type(1), b)))
    quotient = (size // of).view(a.dtype)
    if a.dtype.kind == "i":
        quotient = np.where((a < 0) != (b < 0), -quotient, quotient)
    result: Array = np.where(b == 0, (~np.zeros_like(size)).view(a.dtype), quotient)
    return result


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - _divide(a, b) * b)


def _insert(instruction: Instruction, kernel: Kernel) -> Step:
    """bfi: bits of a into b, from `start`, so many."""
    target, *rest = instruction.operands
    kind = TYPES[_type(instruction)]
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
    name = _type(instruction)
    bits = int(name[1:])
    a = source(rest[0], TYPES[f"u{bits}"], kernel)
    start, length = (source(each, np.uint32, kernel) for each in rest[1:])

    def step(t: Threads) -> None:
        first, count = start(t) & np.uint32(255), length(t) & np.uint32(255)
        # A field that reaches past the highest bit ends there, and has that bit as its sign.
        up = np.where(first + count > bits, 0, bits - first.astype(np.int64) - count).astype(np.uint32)
        placed = _shift_left(a(t), up)
        field = _shift_right(placed.view(_SIGNED[bits]) if name[0] == "s" else placed, first + up)
        t.write(target, np.where(count == 0, field.dtype.type(0), field))

    return step


def _permute(instruction: Instruction, kernel: Kernel) -> Step:
    """prmt.b32, default mode: each nibble of c picks a byte of {b, a}; its high bit asks for the byte's sign."""
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
    """lop3: the truth table's bit number a * 4 + b * 2 + c."""
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


def _to_u32(function: Callable[[Array], Array]) -> Builder:
    def build(instruction: Instruction, kernel: Kernel) -> Step:
        target, a = instruction.operands
        value = source(a, TYPES[_type(instruction)], kernel)
        return lambda t: t.write(target, function(value(t)))

    return build


# ---- floats -------------------------------------------------------------------------------------------------


def _rounded(instruction: Instruction, exact: Array, kind: type[np.generic]) -> Array:
    """A float64 as the type, to nearest or as .rm, .rp, .rz say; .sat into 0 ... 1."""
    result = exact.astype(kind)
    modifiers = instruction.modifiers
    if "rm" in modifiers or "rz" in modifiers:
        high = (result > exact) & (("rm" in modifiers) | (exact > 0))
        result = np.where(high, np.nextafter(result, kind(-np.inf)), result)
    if "rp" in modifiers or "rz" in modifiers:
        result = np.where(
            (result < exact) & (("rp" in modifiers) | (exact < 0)), np.nextafter(result, kind(np.inf)), result
        )
    if "sat" in modifiers:
        result = np.where(np.isnan(result), kind(0), np.clip(result, 0, 1))
    return result.astype(kind)


def _floating(function: Callable[..., Array]) -> Builder:
    """d = function(a, ...) in float64, rounded once."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        name = _type(instruction)
        if name in ("f16x2", "bf16x2", "bf16"):
            return _halves(instruction, kernel, name, lambda *values: function(*(v.astype(np.float64) for v in values)))
        kind = TYPES[name]
        target, *rest = instruction.operands
        sources = [source(each, kind, kernel) for each in rest]

        def step(t: Threads) -> None:
            exact = function(*(each(t).astype(np.float64) for each in sources))
            t.write(target, _rounded(instruction, np.asarray(exact), kind))

        return step

    return build


def _either(floats: Builder, integers: Builder) -> Builder:
    """By the type."""
    return lambda instruction, kernel: (floats if "f" in _type(instruction)[:2] else integers)(instruction, kernel)


_FLOATS: dict[str, Builder] = {
    "add": _floating(lambda a, b: a + b),
    "sub": _floating(lambda a, b: a - b),
    "mul": _floating(lambda a, b: a * b),
    "fma": _floating(lambda a, b, c: a * b + c),
    "div": _floating(lambda a, b: a / b),
}

# ---- moving and comparing -----------------------------------------------------------------------------------


def _move(instruction: Instruction, kernel: Kernel) -> Step:
    """mov, also of a register from parts {a, b} and into them."""
    target, value = instruction.operands
    if target.startswith("{"):
        return _unpack(elements(target), value, kernel)
    if value.startswith("{"):
        return _pack(target, elements(value), kernel)
    kind = TYPES[_type(instruction)]
    get = source(value, kind, kernel)
    return lambda t: t.write(target, get(t))


def _unpack(targets: list[str], value: str, kernel: Kernel) -> Step:
    size = sum(kernel.registers[name] for name in targets)
    get, part = source(value, TYPES[f"u{8 * size}"], kernel), size // len(targets)

    def step(t: Threads) -> None:
        parts = np.ascontiguousarray(get(t)).view(f"u{part}").reshape(t.count, -1)
        for name, column in zip(targets, parts.T, strict=True):
            t.write(name, column)

    return step


def _pack(target: str, values: list[str], kernel: Kernel) -> Step:
    part = kernel.registers[target] // len(values)
    sources = [source(value, TYPES[f"u{8 * part}"], kernel) for value in values]

    def step(t: Threads) -> None:
        columns = np.stack([each(t) for each in sources], axis=1)
        t.write(target, np.ascontiguousarray(columns).view(f"u{part * len(values)}").reshape(-1))

    return step


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


_COMBINATIONS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _compared(name: str, a: Array, b: Array) -> Array:
    """A comparison; with NaN the ordered ones are false, `ne` too, and those that end in u are true."""
    if name in ("num", "nan"):
        odd = np.isnan(a) | np.isnan(b)
        return odd if name == "nan" else ~odd
    unordered = name not in _COMPARISONS
    result = _COMPARISONS[name[:-1] if unordered else name](a, b)
    if a.dtype.kind == "f":
        odd = np.isnan(a) | np.isnan(b)
        result = np.where(odd, unordered, result)
    return result


def _set_predicate(instruction: Instruction, kernel: Kernel) -> Step:
    """setp: p, or p|q with q its opposite; with .and, .or, .xor combined with a third operand."""
    name = _type(instruction)
    kind = TYPES[name]
    comparison = instruction.modifiers[0]
    combine = next((each for each in instruction.modifiers if each in ("and", "or", "xor")), None)
    targets = instruction.operands[0].split("|")
    a, b = (source(each, kind, kernel) for each in instruction.operands[1:3])
    other = source(instruction.operands[3], np.bool_, kernel) if combine else None

    def step(t: Threads) -> None:
        x, y = a(t), b(t)
        if name == "bf16":
            x, y = (unpacked(each, name)[:, 0] for each in (x, y))
        result = _compared(comparison, x, y)
        for number, target in enumerate(targets):
            value = ~result if number else result
            if other is not None:
                value = _COMBINATIONS[str(combine)](value, other(t))
            t.write(target.strip(), value)

    return step


def _select(instruction: Instruction, kernel: Kernel) -> Step:
    target, *rest = instruction.operands
    kind = TYPES[_type(instruction)]
    a, b = (source(each, kind, kernel) for each in rest[:2])
    which = source(rest[2], np.bool_, kernel)
    return lambda t: t.write(target, np.where(which(t), a(t), b(t)))


# ---- conversions --------------------------------------------------------------------------------------------

_TO_INTEGER = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def _convert(instruction: Instruction, kernel: Kernel) -> Step:
    """cvt between integers and floats; with two sources the first becomes the high half."""
    to, *rest = [each for each in instruction.modifiers if each in TYPES]
    of = rest[0]
    target, *values = instruction.operands
    sources = [source(each, TYPES[of], kernel) for each in values]
    if to in ("f16x2", "bf16x2"):
        high, low = sources
        return lambda t: t.write(target, packed(np.stack((low(t), high(t)), axis=1), to))
    if to == "tf32":
        return lambda t: t.write(target, _to_tf32(sources[0](t)))
    (get,) = sources

    def step(t: Threads) -> None:
        value = unpacked(get(t), "bf16")[:, 0] if of == "bf16" else get(t)
        t.write(target, _converted(instruction, value, to))

    return step


def _converted(instruction: Instruction, value: Array, to: str) -> Array:
    if to == "bf16":
        return to_bf16(value.astype(np.float32))
    kind: Any = TYPES[to]
    if to.startswith("f"):
        rounding = next((each for each in instruction.modifiers if each in _TO_INTEGER), None)
        return _rounded(instruction, (_TO_INTEGER[rounding](value) if rounding else value).astype(np.float64), kind)
    if value.dtype.kind == "f":
        rounding = next(each for each in instruction.modifiers if each in _TO_INTEGER)
        return _clamped(_TO_INTEGER[rounding](value.astype(np.float64)), kind)
    if "sat" in instruction.modifiers:
        limits = np.iinfo(kind)
        value = np.clip(value.astype(object), int(limits.min), int(limits.max))
    result: Array = value.astype(kind)
    return result


def _clamped(value: Array, kind: Any) -> Array:
    """Floats to integers: NaN is 0, what is too large the largest."""
    limits = np.iinfo(kind)
    inside = np.clip(np.nan_to_num(value, nan=0.0), float(limits.min), float(limits.max))
    plain = np.where(inside >= float(limits.max), 0.0, inside).astype(kind)
    result: Array = np.where(inside >= float(limits.max), kind(limits.max), plain)
    return result


def _to_tf32(value: Array) -> Array:
    """10 bits of mantissa, ties away from zero (cvt.rna.tf32.f32)."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    result: Array = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return result


def _to_space(instruction: Instruction, kernel: Kernel) -> Step:
    """cvta: between generic addresses and those of a state space. Those of global memory are generic."""
    target, value = instruction.operands
    get = source(value, np.uint64, kernel)
    window = np.uint64(SHARED_WINDOW if "shared" in instruction.modifiers else 0)
    if "local" in instruction.modifiers:
        window = np.uint64(LOCAL_WINDOW)
    if "to" in instruction.modifiers:
        return lambda t: t.write(target, get(t) - window)
    return lambda t: t.write(target, get(t) + window)


def _minimum_or_maximum(plain: Callable[..., Array], with_nan: Callable[..., Array]) -> Builder:
    """Of a number and NaN the number, unless .NaN asks for NaN."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        function = with_nan if "NaN" in instruction.modifiers else plain
        return _float_or(function, function)(instruction, kernel)

    return build


BUILDERS: dict[str, Builder] = {
    "add": _either(_FLOATS["add"], _simple(lambda a, b: a + b)),
    "sub": _either(_FLOATS["sub"], _simple(lambda a, b: a - b)),
    "mul": _multiply,
    "mad": _multiply,
    "fma": _FLOATS["fma"],
    "div": _either(_FLOATS["div"], _simple(_divide)),
    "rem": _simple(_remainder),
    "abs": _float_or(np.abs, np.abs),
    "neg": _float_or(lambda a: (-a.view(_SIGNED[_bits_of(a)])).view(a.dtype), np.negative),
    "min": _minimum_or_maximum(np.fmin, np.minimum),
    "max": _minimum_or_maximum(np.fmax, np.maximum),
    "and": _simple(np.bitwise_and),
    "or": _simple(np.bitwise_or),
    "xor": _simple(np.bitwise_xor),
    "not": _simple(np.invert),
    "shl": _shift(_shift_left),
    "shr": _shift(_shift_right),
    "bfi": _insert,
    "bfe": _extract,
    "prmt": _permute,
    "lop3": _logic3,
    "popc": _to_u32(_count_bits),
    "clz": _to_u32(_leading_zeros),
    "mov": _move,
    "setp": _set_predicate,
    "selp": _select,
    "cvt": _convert,
    "cvta": _to_space,
    "ex2": _floating(np.exp2),
    "lg2": _floating(np.log2),
    "rcp": _floating(lambda a: 1 / a),
    "rsqrt": _floating(lambda a: 1 / np.sqrt(a)),
    "sqrt": _floating(np.sqrt),
    "sin": _floating(np.sin),
    "cos": _floating(np.cos),
    "tanh": _floating(np.tanh),
}


def build_arithmetic(instruction: Instruction, kernel: Kernel) -> Step:
    """The step of an instruction of this file. Errors: PtxError for another."""
    builder = BUILDERS.get(instruction.operation)
    if builder is None:
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    return builder(instruction, kernel)
