"""When a result counts as right: the tolerance, from the types that a program rounds to and how much it adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tile2cu.analysis.accesses import expressions
from tile2cu.core.dtype import TFLOAT32, DType
from tile2cu.core.expr import Binary, Call, Load, static_value, walk
from tile2cu.core.program import (
    Assign,
    Atomic,
    AtomicTile,
    Buffer,
    Copy,
    Gemm,
    If,
    Loop,
    Parallel,
    Program,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
    While,
    walk_stmts,
)

# Unit roundoffs: half the distance from 1 to the next number.
_ROUNDOFF = {
    "float64": 2.0**-53, "float32": 2.0**-24, "tfloat32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3, "float8_e4m3fnuz": 2.0**-4, "float8_e5m2fnuz": 2.0**-3,
    "float8_e8m0fnu": 1.0, "float4_e2m1fn": 2.0**-2,
}  # fmt: skip
# wgmma truncates float8 products 13 bits after the leading bit of the largest of 32, or of the accumulator.
# [DeepSeek-V3 Technical Report, 3.3.2; results of an H200 match this model, and not one with 12 or 14 bits]
_FLOAT8_SUM = 2.0**-13


@dataclass(frozen=True)
class Tolerance:
    """The tolerated deviation of a program's results from exact ones.

    `inner` is the coarsest type of intermediate values (tf32 if float32 is multiplied), `length` the largest number of
    values that one float32 accumulation adds, or of roundings of one variable in loops. An element may deviate by 2
    roundoffs of its own type, and by 8 of `inner` and one of float32 per accumulated value, relative to the tensor's
    largest element; `narrow`: sums in a type of 16 bits are rounded at each step, which errors in both directions
    partly cancel. The root mean square error, which is small for rounding and large for a wrong element, may be a
    quarter of that.
    """

    inner: float
    length: int
    narrow: bool = False

    def faults(self, actual: np.ndarray, expected: np.ndarray, dtype: DType) -> str:
        """What is wrong with a result, or nothing."""
        if not dtype.is_float:
            wrong = np.flatnonzero(actual != expected)
            return f"{len(wrong)} of {actual.size} integers differ" if len(wrong) else ""
        wide, exact = actual.astype(np.float64), expected.astype(np.float64)
        if not np.array_equal(np.isnan(wide), np.isnan(exact)):
            return f"NaN at other places: {np.isnan(wide).sum()} for {np.isnan(exact).sum()}"
        finite = np.isfinite(exact)
        if not np.array_equal(wide[~finite], exact[~finite], equal_nan=True):
            return "infinities at other places"
        wide, exact = wide[finite], exact[finite]
        if not exact.size:
            return ""
        own, scale = 2 * _ROUNDOFF[dtype.name] * np.abs(exact), np.max(np.abs(exact))
        steps = max(8.0, 2 * self.length**0.5) if self.narrow else 8.0
        through = (steps * self.inner + self.length * _ROUNDOFF["float32"]) * scale
        error = np.abs(wide - exact)
        if np.any(error > own + through + 1e-30):
            worst = int(np.argmax(error - own))
            count = int(np.sum(error > own + through))
            return f"{count} of {error.size} elements are off, one by {error[worst]:.3g} of {exact[worst]:.6g}"
        mean, allowed = np.sqrt(np.mean(error**2)), np.sqrt(np.mean((own + through) ** 2)) / 4
        return "" if mean <= allowed + 1e-30 else f"the mean error is {mean:.3g}, allowed is {allowed:.3g}"


def tolerance(program: Program, arguments: Mapping[str, object], *, wgmma: bool = False) -> Tolerance:
    """The tolerance of a program's results; `wgmma`: GEMMs may run on Hopper's tensor cores."""
    inner = max((_ROUNDOFF[dtype.name] for dtype in _rounded_to(program)), default=_ROUNDOFF["float32"])
    if wgmma and any(_multiplies_float8(stmt) for launch in program.launches for stmt in walk_stmts(launch.body)):
        inner = max(inner, _FLOAT8_SUM)
    extents = [extent for value in arguments.values() for extent in np.shape(value)]
    chains = (_roundings(launch.body) for launch in program.launches)
    narrow = any(_sums_in_16_bits(stmt) for launch in program.launches for stmt in walk_stmts(launch.body))
    return Tolerance(inner, max([*extents, *chains], default=1), narrow)


def _sums_in_16_bits(stmt: Stmt) -> bool:
    match stmt:
        case Reduce(kind=Reduction.SUM):
            return stmt.dst.dtype.is_float and stmt.dst.dtype.bits <= 16
        case (
            Store(buffer=Buffer(scope=Scope.FRAGMENT)) | Atomic(kind=Reduction.SUM, buffer=Buffer(scope=Scope.FRAGMENT))
        ):
            return stmt.buffer.reducer is not None and stmt.buffer.dtype.is_float and stmt.buffer.dtype.bits <= 16
        case _:
            return False


def _roundings(body: tuple[Stmt, ...]) -> int:
    """The roundings of the longest chain of updates of one variable, in loops whose trip counts are known."""
    longest = 0
    for stmt in body:
        if isinstance(stmt, Loop):
            trips = [static_value(end) for end in (stmt.start, stmt.stop)]
            count = trips[1] - trips[0] if isinstance(trips[0], int) and isinstance(trips[1], int) else 1
            longest = max(longest, count * _roundings(stmt.body))
        elif isinstance(stmt, Parallel | While):
            longest = max(longest, _roundings(stmt.body))
        elif isinstance(stmt, If):
            longest = max(longest, _roundings(stmt.then), _roundings(stmt.orelse))
        elif isinstance(stmt, Assign):
            parts = (part for part in walk(stmt.value) if isinstance(part, Binary | Call) and part.dtype.is_float)
            longest = max(longest, sum(1 for _ in parts))
    return longest


def _rounded_to(program: Program) -> Iterator[DType]:
    """The types that values are rounded to before they are a result."""
    kept = _read_back(program)
    for launch in program.launches:
        for stmt in walk_stmts(launch.body):
            match stmt:
                case Copy() if stmt.dst.buffer.scope is not Scope.GLOBAL or stmt.dst.buffer.memory.name in kept:
                    if stmt.src.buffer.dtype != stmt.dst.buffer.dtype:
                        yield from _float(stmt.dst.buffer)
                case Store() | Atomic() if stmt.buffer.scope is not Scope.GLOBAL or stmt.buffer.memory.name in kept:
                    yield from _float(stmt.buffer)
                case Gemm():
                    yield from _float(stmt.c.buffer)
                    if stmt.a.buffer.dtype.name == "float32":
                        yield TFLOAT32
                case Reduce():
                    yield from _float(stmt.dst)
                case _:
                    pass
            for expr in expressions(stmt):
                # Conversions round, and so does arithmetic of narrow types: float16 * float16 is a float16.
                parts = (part for part in walk(expr) if isinstance(part, Binary | Call))
                yield from (part.dtype for part in parts if part.dtype.is_float)


def _multiplies_float8(stmt: Stmt) -> bool:
    return isinstance(stmt, Gemm) and stmt.a.buffer.dtype.name.startswith("float8")


def _read_back(program: Program) -> set[str]:
    """The tensors that a kernel reads: what it writes to them may be a value on its way."""
    stmts = [stmt for launch in program.launches for stmt in walk_stmts(launch.body)]
    found = {stmt.src.buffer.memory.name for stmt in stmts if isinstance(stmt, Copy | AtomicTile)}
    parts = (part for stmt in stmts for expr in expressions(stmt) for part in walk(expr))
    return found | {part.buffer.memory.name for part in parts if isinstance(part, Load)}


def _float(buffer: Buffer) -> Iterator[DType]:
    if buffer.dtype.is_float:
        yield buffer.dtype
