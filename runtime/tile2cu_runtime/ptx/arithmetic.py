"""Register-only instructions. [PTX ISA 9.0, "Instruction Set"]

Transcendental functions are correctly rounded, where the hardware approximates; .ftz is ignored.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile2cu_runtime.amdgcn.arrays import Array
from tile2cu_runtime.ptx import conversions, integers
from tile2cu_runtime.ptx.elementwise import SIGNED, bits_of, float_or, floating, simple, type_of, unpacked
from tile2cu_runtime.ptx.errors import PtxError
from tile2cu_runtime.ptx.operands import TYPES, elements, source
from tile2cu_runtime.ptx.parse import Instruction, Kernel
from tile2cu_runtime.ptx.state import Builder, Step, Threads


def _either(floats: Builder, integers: Builder) -> Builder:
    """Selects the function by the type."""
    return lambda instruction, kernel: (floats if "f" in type_of(instruction)[:2] else integers)(instruction, kernel)


_FLOATS: dict[str, Builder] = {
    "add": floating(lambda a, b: a + b),
    "sub": floating(lambda a, b: a - b),
    "mul": floating(lambda a, b: a * b),
    "fma": floating(lambda a, b, c: a * b + c),
    "div": floating(lambda a, b: a / b),
}


def _move(instruction: Instruction, kernel: Kernel) -> Step:
    """mov, also from a register to parts {a, b} and back."""
    target, value = instruction.operands
    if target.startswith("{"):
        return _unpack(elements(target), value, kernel)
    if value.startswith("{"):
        return _pack(target, elements(value), kernel)
    kind = TYPES[type_of(instruction)]
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
    """A comparison; with NaN ordered ones are false, also `ne`, and unordered ones (suffix u) are true."""
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
    """setp: p, or p|q with q its negation; .and, .or, .xor combine it with a third operand."""
    name = type_of(instruction)
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
    kind = TYPES[type_of(instruction)]
    a, b = (source(each, kind, kernel) for each in rest[:2])
    which = source(rest[2], np.bool_, kernel)
    return lambda t: t.write(target, np.where(which(t), a(t), b(t)))


def _minimum_or_maximum(plain: Callable[..., Array], with_nan: Callable[..., Array]) -> Builder:
    """The number if one operand is NaN, unless .NaN propagates NaN."""

    def build(instruction: Instruction, kernel: Kernel) -> Step:
        function = with_nan if "NaN" in instruction.modifiers else plain
        return float_or(function, function)(instruction, kernel)

    return build


BUILDERS: dict[str, Builder] = {
    **integers.BUILDERS,
    **conversions.BUILDERS,
    "add": _either(_FLOATS["add"], integers.BUILDERS["add"]),
    "sub": _either(_FLOATS["sub"], integers.BUILDERS["sub"]),
    "mul": _either(_FLOATS["mul"], integers.BUILDERS["mul"]),
    "mad": _either(_FLOATS["fma"], integers.BUILDERS["mad"]),
    "fma": _FLOATS["fma"],
    "div": _either(_FLOATS["div"], integers.BUILDERS["div"]),
    "abs": float_or(np.abs, np.abs),
    "neg": float_or(lambda a: (-a.view(SIGNED[bits_of(a)])).view(a.dtype), np.negative),
    "min": _minimum_or_maximum(np.fmin, np.minimum),
    "max": _minimum_or_maximum(np.fmax, np.maximum),
    "copysign": simple(lambda sign, value: np.copysign(value, sign)),
    "mov": _move,
    "setp": _set_predicate,
    "selp": _select,
    "ex2": floating(np.exp2),
    "lg2": floating(np.log2),
    "rcp": floating(lambda a: 1 / a),
    "rsqrt": floating(lambda a: 1 / np.sqrt(a)),
    "sqrt": floating(np.sqrt),
    "sin": floating(np.sin),
    "cos": floating(np.cos),
    "tanh": floating(np.tanh),
}


def build_arithmetic(instruction: Instruction, kernel: Kernel) -> Step:
    """The step of an instruction of this module. Errors: PtxError for others."""
    builder = BUILDERS.get(instruction.operation)
    if builder is None:
        raise PtxError(f"line {instruction.line}: the instruction {instruction.name}")
    return builder(instruction, kernel)
