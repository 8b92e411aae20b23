"""Ranges and divisors of an index that are known before the kernel runs.

A range is that of the integer that an expression denotes. C++ computes in 32 bits: a sum that overflows has an
unspecified value, or wraps (docs/coverage.md, "Integers"), so that a choice between two correct ways may assume that
none does. Memory safety may not: `Bounds.inside` takes C++'s value, which is equal modulo 2**32 for sums, for any
run-time values. An extent of a tensor or of the grid that overflows is rejected by the launcher.
"""

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cache, cached_property
from math import gcd
from types import MappingProxyType

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.linear import Linear, is_not_negative, is_wide, linear_of
from tile2cu.core.dtype import INT32, DType
from tile2cu.core.expr import (
    Binary,
    Call,
    Expansion,
    Expr,
    Past,
    Role,
    Unary,
    Var,
    binary,
    buffers_loaded,
    children,
    int_const,
    negated,
    static_value,
    variables_in,
    walk,
    works_among_threads,
)
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Assign,
    Buffer,
    Copy,
    Declare,
    Launch,
    Let,
    Loop,
    Parallel,
)
from tile2cu.core.record import Record

_UNBOUNDED = 1 << 30  # "a multiple of everything": what zero is


class Interval(Record, frozen=True):
    """Inclusive ends; None where nothing is known."""

    low: int | None
    high: int | None


@kept
def bounds_of(launch: Launch) -> "Bounds":
    """The ranges of a launch's indices."""
    return Bounds(launch)


class Bounds:
    """The ranges of a launch's indices, and proofs with them.

    `expanded` gives an expression with the values of its immutable names in their place.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch, self._wrapping = launch, False
        self._ranges: dict[Var, tuple[Expr, Expr]] = {}
        self._steps: dict[Var, tuple[Expr, Expr]] = {}  # (start, step) of loops
        self.expanded = Expansion({})
        self._values = self.expanded.values
        self._threads = launch.block_threads
        self._written = frozenset(buffer.memory for stmt in launch.body for buffer in buffers_written(stmt))
        for let in launch.prelude:
            self.expanded.define(let.var, self._when_named(let))
        zero = int_const(0)
        for block, extent in zip(launch.blocks, launch.grid, strict=False):
            self._ranges[block] = (zero, extent)
        for stmt in launch.statements:
            match stmt:
                case Loop() if (step := static_value(stmt.step)) is not None and step > 0:
                    self._ranges[stmt.var] = (stmt.start, stmt.stop)
                    self._steps[stmt.var] = (stmt.start, stmt.step)
                case Parallel():
                    self._ranges |= {var: (zero, n) for var, n in zip(stmt.vars, stmt.extents, strict=True)}
                case Copy(row=Var() as row):
                    self._ranges[row] = (zero, stmt.dst.buffer.shape[0])
                case Let():
                    self.expanded.define(stmt.var, self._when_named(stmt))
                case _:
                    pass
        self._find_counters()

    @cached_property
    def of_values(self) -> "Bounds":
        """What holds of C++'s values, also where arithmetic overflows."""
        if self._wrapping:
            return self
        found = copy(self)
        found._wrapping = True
        found._find_counters()
        found._ranges = {var: ends for var, ends in self._ranges.items() if all(map(found.never_wraps, ends))}
        found._forget()
        return found

    def _find_counters(self) -> None:
        self._never_negative: frozenset[Var] = frozenset()
        self._forget()
        self._never_negative = self._counters(self.launch)
        self._forget()

    def _when_named(self, let: Let) -> Expr:
        """The value of a name, which later code may take for the name's only where nothing in it changes."""
        value = self.expanded(let.value)
        return Past(let.var.dtype, let.var, value) if self.may_change(value) else let.value

    def may_change(self, value: Expr) -> bool:
        """Whether a variable, an element or a call in a value may have another one later in the kernel."""
        return (
            works_among_threads(value)
            or any(var.role is Role.MUTABLE for var in variables_in(value))
            or any(isinstance(each, Buffer) and is_among(each, self._written) for each in buffers_loaded(value))
        )

    def _forget(self) -> None:
        """Forgets the answers about expressions, which depend on all ranges. A name has its value in many of them."""
        self._intervals: dict[Expr, Interval] = {}
        self._wrap_free: dict[Expr, bool] = {}
        self._multiples: dict[Expr, int] = {}
        self._sums: dict[Expr, Linear] = {}

    def _counters(self, launch: Launch) -> frozenset[Var]:
        """The mutable scalars that start at 0 or above and are only set to, or incremented by, non-negative values."""
        given: dict[Var, list[Expr]] = {}
        other: set[Var] = set()  # assigned otherwise, too, which products with itself may make wrap
        for stmt in launch.statements:
            match stmt:
                case Declare(var=var, init=value) | Assign(var=var, value=value, op="" | "+"):
                    given.setdefault(var, []).append(int_const(0) if value is None else value)
                case Assign(var=var):
                    other.add(var)
                case _:
                    pass
        steps = {
            var: [_step(value, var) for value in values]
            for var, values in given.items()
            if var not in other and is_wide(var.dtype)
        }
        return frozenset(var for var, values in steps.items() if all(map(self.never_negative, values)))

    def never_negative(self, value: Expr) -> bool:
        """Whether an integer is provably at least 0."""
        low = self.interval(value).low
        return low is not None and low >= 0

    def inside(self, start: Expr, length: Expr, extent: Expr, given: tuple[Expr, ...] = ()) -> bool:
        """Whether `start : start + length` is provably within `0 : extent` where the conditions `given` hold.

        It is for all run-time values, also where arithmetic overflows.
        """
        if not self._wrapping:
            return self.of_values.inside(start, length, extent, given)
        if not self.never_negative(start) and not self.follows(start, given):
            return False
        slack = self.linear(extent).plus(self.linear(length), -1).plus(self.linear(start), -1)
        return self._fits(start, length, extent) or self._follows(slack, given)

    def fits(self, expr: Expr) -> bool:
        """Whether an integer expression whose operands do not overflow does not either, for all run-time values."""
        return _within(self.of_values.interval(expr), _type_range(_computed_in(expr)))

    def is_of_its_type(self, expr: Expr) -> bool:
        """Whether an integer expression is in the range of its type, also where C++ computes it in int."""
        return _within(self.of_values.interval(expr), _type_range(expr.dtype))

    def implies(self, condition: Expr, other: Expr) -> bool:
        """Whether the comparison `other` of integers provably holds wherever a condition does."""
        wanted = (
            [self.linear(part) for part in self._not_negative(other)]
            if isinstance(other, Binary) and other.op != "and"
            else []
        )
        return len(wanted) == 1 and self._follows(wanted[0], (condition,))

    def follows(self, index: Expr, given: tuple[Expr, ...]) -> bool:
        """Whether an integer is at least 0 because of one of the conditions `given`."""
        return self._follows(self.linear(index), given)

    def never_holds(self, condition: Expr) -> bool:
        """Whether a comparison of integers provably holds in no thread, for all run-time values."""
        highest = (self.interval(part).high for part in self._not_negative(condition))
        return any(high is not None and high < 0 for high in highest)

    def _follows(self, sum_: Linear, given: tuple[Expr, ...]) -> bool:
        """Whether a sum is at least one that is not negative where the conditions `given` hold."""
        parts = (part for condition in given for part in self._not_negative(condition))
        rests = (sum_.plus(self.linear(part), -1) for part in parts)
        return any(not rest.terms and rest.constant >= 0 for rest in rests)

    def _not_negative(self, condition: Expr) -> Iterator[Expr]:
        """Integers that are not negative where the condition holds."""
        match condition:
            case Binary(op="and"):
                yield from self._not_negative(condition.lhs)
                yield from self._not_negative(condition.rhs)
            case Unary(op="not", operand=operand) if (turned := negated(operand)) != condition:
                yield from self._not_negative(turned)
            case Binary(op="<" | "<=" | ">" | ">=", lhs=lhs, rhs=rhs) if all(
                is_wide(side.dtype) and self.never_wraps(side) for side in (lhs, rhs)
            ):
                less, more = (lhs, rhs) if condition.op[0] == "<" else (rhs, lhs)
                difference = binary("-", more, less)
                yield difference if "=" in condition.op else binary("-", difference, int_const(1))
            case _:
                pass

    def never_wraps(self, expr: Expr) -> bool:
        """Whether C++ computes the integer that an expression denotes."""
        if not self._wrapping:
            return True
        found = self._wrap_free.get(expr)
        if found is None:
            found = self._wrap_free[expr] = self._fits_its_type(expr)
        return found

    def _fits_its_type(self, expr: Expr) -> bool:
        if _within(self.interval(expr), _type_range(_computed_in(expr))):
            return True
        own = factors(self.expanded(expr))  # some of a number's that fits, and is positive: without blocks nothing runs
        return any(without_factors(factors(number), own) is not None for number in self._of_grid())

    def _of_grid(self) -> Iterator[Expr]:
        """The extents of the grid, and what they are quotients of, rounded up: launchers reject those that overflow."""
        for extent in map(self.expanded, self.launch.grid):
            yield extent
            if isinstance(extent, Call) and extent.function == "ceildiv":
                yield extent.args[0]

    def _fits(self, start: Expr, length: Expr, extent: Expr) -> bool:
        """Whether an interval that begins at 0 or above ends within the extent."""
        count, available = static_value(length), static_value(extent)
        high = self.interval(start).high
        if count is not None and available is not None and high is not None and high + count <= available:
            return True
        return self._inside_symbolically(start, length, extent) or (count == 1 and self._counts_to(start, extent))

    def _counts_to(self, index: Expr, extent: Expr) -> bool:
        """Whether an index is below an extent because it is a remainder by it, or a quotient of one of its products.

        So are the indices that a block computes from one that counts several dimensions: `z % batch` and `z // batch`.
        """
        return same_factors(self.end_of(index), factors(self.expanded(extent)))

    def end_of(self, index: Expr, given: Mapping[Expr, list[Expr]] = MappingProxyType({})) -> list[Expr] | None:
        """Factors of a number that is greater than an index, if the divisors in it are positive; None where unknown.

        `given` are the factors for indices that a condition bounds, by the indices' values.
        """
        match index:
            case _ if (end := given.get(self.expanded(index))) is not None:
                return end
            case Var() if index in self._values:
                return self.end_of(self._values[index], given)
            case Var() if index in self._ranges:
                stop = self.expanded(self._ranges[index][1])
                return None if self.may_change(stop) else factors(stop)
            case Binary(op="%", rhs=rhs):
                return factors(self.expanded(rhs))
            case Binary(op="//", lhs=lhs, rhs=rhs):
                return without_factors(self.end_of(lhs, given), factors(self.expanded(rhs)))
            case _:
                return None

    def interval(self, expr: Expr) -> Interval:
        """The numeric range of an integer expression; unknown of others, whose numbers have fractions and round."""
        if expr.dtype.is_float:
            return Interval(None, None)
        value = static_value(expr)
        if value is not None:
            return Interval(int(value), int(value))
        found = self._intervals.get(expr)
        if found is None:
            found = self._intervals[expr] = self._interval_in_type(expr)
        return found

    def _interval_in_type(self, expr: Expr) -> Interval:
        found = self._interval(expr)
        if _is_sum(expr) or not expr.dtype.is_int:
            return found
        kept = _type_range(expr.dtype)
        if not is_wide(expr.dtype) or (isinstance(expr, Call) and expr.function == "cast"):
            return found if _within(found, kept) else kept
        return found if expr in self._values else _overlap(found, kept)

    def _operand(self, expr: Expr) -> Interval:
        """The range of the value that C++ computes with."""
        if not self._wrapping or not expr.dtype.is_int:
            return self.interval(expr)
        kept = _type_range(_computed_in(expr))
        return _common(self.interval(expr), kept) if self.never_wraps(expr) else kept

    def _term(self, expr: Expr, of: DType) -> Interval:
        """The range of a term of a sum or product of a type: one of a narrower type may have wrapped before."""
        return self._operand(expr) if expr.dtype.bits < of.bits else self.interval(expr)

    def _interval(self, expr: Expr) -> Interval:
        match expr:
            case Var() if expr in self._values:
                return self.interval(self._values[expr])
            case Past(value=value):
                return self.interval(value)
            case Var() if expr in self._ranges:
                start, stop = self._ranges[expr]
                low, high = self.interval(start).low, _type_range(expr.dtype).high
                ends = (end - 1 for end in (self.interval(stop).high, high) if end is not None)
                return Interval(low, min(ends))
            case Var() if expr.role is Role.SIZE or expr in self._never_negative:
                return Interval(0, _type_range(expr.dtype).high)
            case Binary(op="+" | "-" | "*"):
                return _combine(expr.op, self._term(expr.lhs, expr.dtype), self._term(expr.rhs, expr.dtype))
            case Binary():
                return _combine(expr.op, self._operand(expr.lhs), self._operand(expr.rhs))
            case Unary(op="-", operand=operand):
                return _combine("-", Interval(0, 0), self._term(operand, expr.dtype))
            case Call(function="thread"):
                return Interval(0, self._threads - 1)
            case Call():
                return _of_call(expr.function, [self._operand(arg) for arg in expr.args])
            case _:
                return Interval(None, None)

    def stop(self, var: Var) -> Expr | None:
        """The end of the range of an index, exclusive; None where it is not the index of a grid or of a loop."""
        return self._ranges[var][1] if var in self._ranges else None

    def never_falls(self, expr: Expr, var: Var) -> bool:
        """Whether an integer expression provably does not get smaller when `var` grows."""
        expr = self.expanded(expr)
        if expr == var or not any(part == var for part in walk(expr)):
            return True
        match expr:
            case Binary(op="+") | Call(function="min" | "max"):
                return all(self.never_falls(part, var) for part in children(expr))
            case Binary(op="-"):
                return self.never_falls(expr.lhs, var) and not any(part == var for part in walk(expr.rhs))
            case Binary(op="*" | "//") | Call(function="ceildiv"):
                lhs, rhs = children(expr)
                factor = self.interval(rhs).low
                constant = not any(part == var for part in walk(rhs))
                return constant and factor is not None and factor >= 0 and self.never_falls(lhs, var)
            case _:
                return False

    def multiple_of(self, expr: Expr) -> int:
        """The largest power of two that provably divides an integer expression; 1 for others, which have fractions."""
        if expr.dtype.is_float:
            return 1
        found = self._multiples.get(expr)
        if found is None:
            value = static_value(expr)
            found = self._multiples[expr] = self._multiple_of(expr) if value is None else _power_of_two(int(value))
        return found

    def _multiple_of(self, expr: Expr) -> int:
        match expr:
            case Var() if expr in self._values:
                return self.multiple_of(self._values[expr])
            case Past(value=value):
                return self.multiple_of(value)
            case Var() if expr in self._steps:
                return gcd(*map(self.multiple_of, self._steps[expr]))
            case Unary(op="-"):
                return self.multiple_of(expr.operand)
            case Call(function="min" | "max"):
                return gcd(*map(self.multiple_of, expr.args))
            case Call(function="if_then_else"):
                return gcd(*map(self.multiple_of, expr.args[1:]))
            case Call(function="cast") if expr.dtype.is_int and expr.args[0].dtype.is_int:
                return self.multiple_of(expr.args[0])  # a value that does not fit wraps by a power of two
            case Binary() | Call(function="ceildiv"):
                op = expr.op if isinstance(expr, Binary) else "//"  # without a remainder they are the same
                lhs, rhs = children(expr)
                return _multiple(op, self.multiple_of(lhs), self.multiple_of(rhs), static_value(rhs))
            case _:
                return 1

    def linear(self, expr: Expr) -> Linear:
        """An integer expression as a sum, with immutable names by their values."""
        found = self._sums.get(expr)
        if found is None:
            found = self._sums[expr] = linear_of(expr, self._values, self.never_wraps)
        return found

    def _inside_symbolically(self, start: Expr, length: Expr, extent: Expr) -> bool:
        """Whether extent - length - max(start) >= 0 once its run-time sizes cancel."""
        return is_not_negative(
            self.linear(extent).plus(self.linear(length), -1).plus(self.maximum(self.linear(start)), -1)
        )

    def maximum(self, sum_: Linear) -> Linear:
        """The sum with every index replaced by its last value (or first, where it counts down)."""
        for _ in range(16):  # ranges nest at most as deep as loops do
            index = next((atom for atom in sum_.terms if isinstance(atom, Var) and atom in self._ranges), None)
            if index is None:
                return sum_
            start, stop = self._ranges[index]
            coefficient = sum_.terms[index]
            rest = sum_.plus(Linear({index: 1}, 0), -coefficient)
            last = self.linear(stop).plus(Linear({}, 1), -1) if coefficient > 0 else self.linear(start)
            sum_ = rest.plus(last, coefficient)
        return sum_


def factors(expr: Expr) -> list[Expr]:
    """The factors of an expression."""
    if isinstance(expr, Binary) and expr.op == "*":
        return [*factors(expr.lhs), *factors(expr.rhs)]
    return [expr]


def without_factors(factors: list[Expr] | None, divisors: list[Expr]) -> list[Expr] | None:
    """A product's factors without those that a division cancels; None where it cancels others."""
    if factors is None:
        return None
    rest = list(factors)
    for divisor in divisors:
        if divisor not in rest:
            return None
        rest.remove(divisor)
    return rest


def same_factors(one: list[Expr] | None, other: list[Expr]) -> bool:
    """Whether the factors are the same, in any order."""
    return without_factors(one, other) == []


def _step(value: Expr, var: Var) -> Expr:
    """The increment of the variable by `var = value`, or the value itself."""
    match value:
        case Binary(op="+", lhs=lhs, rhs=rhs) if var in (lhs, rhs):
            return rhs if lhs == var else lhs
        case _:
            return value


def _is_sum(expr: Expr) -> bool:
    """Whether an expression is a sum or multiple, or of narrow integers, which C++ does not keep in their type."""
    narrow = isinstance(expr, Binary) and expr.dtype.bits < INT32.bits
    return narrow or isinstance(expr, Unary) or (isinstance(expr, Binary) and expr.op in ("+", "-", "*"))


def _computed_in(expr: Expr) -> DType:
    """The type that C++ computes an integer expression in: narrow operands are promoted to int."""
    narrow = isinstance(expr, Binary | Unary) and expr.dtype.bits < INT32.bits
    return INT32 if narrow else expr.dtype


@cache
def _type_range(dtype: DType) -> Interval:
    """The numbers that an integer type has."""
    count = 1 << dtype.bits
    return Interval(0, count - 1) if dtype.kind == "uint" else Interval(-count // 2, count // 2 - 1)


def _within(inner: Interval, outer: Interval) -> bool:
    assert outer.low is not None and outer.high is not None
    return inner.low is not None and inner.high is not None and outer.low <= inner.low and inner.high <= outer.high


def _multiple(op: str, a: int, b: int, rhs: float | None) -> int:
    """The power of two that divides a result of operands that `a` and `b` divide; `rhs` is the second where known."""
    match op:
        case "+" | "-" | "%" | "|" | "^":
            return gcd(a, b)
        case "&":
            return max(a, b)
        case "*":
            return min(a * b, _UNBOUNDED)
        case "//" if rhs == b:
            return max(1, a // b)
        case "<<" | ">>" if rhs is not None and 0 <= rhs < 31:
            return min(a << int(rhs), _UNBOUNDED) if op == "<<" else max(1, a >> int(rhs))
        case _:
            return 1


def _power_of_two(value: int) -> int:
    return _UNBOUNDED if value == 0 else min(value & -value, _UNBOUNDED)


def _overlap(found: Interval, kept: Interval) -> Interval:
    """A range that is known in part, with the ends of its type where it has none."""
    return Interval(kept.low if found.low is None else found.low, kept.high if found.high is None else found.high)


def _common(found: Interval, kept: Interval) -> Interval:
    """A range whose numbers a type has."""
    ends = _overlap(found, kept)
    assert ends.low is not None and ends.high is not None and kept.low is not None and kept.high is not None
    return Interval(max(ends.low, kept.low), min(ends.high, kept.high))


def _union(a: Interval, b: Interval) -> Interval:
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    return Interval(low, high)


def _of_call(function: str, args: list[Interval]) -> Interval:
    match function, args:
        case "ceildiv", [lhs, rhs]:
            return _combine("//", lhs, rhs) if lhs.high is None else _ceildiv(lhs, rhs)
        case "min" | "max", _:
            return _extremum(function, args)
        case "cast", [value]:
            return value  # one that does not fit wraps: `Bounds.interval` handles it
        case "if_then_else", [_, then, orelse]:
            return _union(then, orelse)
        case _:
            return Interval(None, None)


def _extremum(name: str, parts: list[Interval]) -> Interval:
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    known_lows, known_highs = len(lows) == len(parts), len(highs) == len(parts)
    if name == "min":
        return Interval(min(lows) if known_lows else None, min(highs, default=None))
    return Interval(max(lows, default=None), max(highs) if known_highs else None)


def _ceildiv(a: Interval, b: Interval) -> Interval:
    signless = a.low is not None and a.low >= 0
    if b.low is None or b.low <= 0:
        return Interval(0 if signless else None, None)
    if b.low != b.high and not signless:
        return Interval(None, None)
    low = None if a.low is None else -(-a.low // b.low) if b.low == b.high else 0
    high = None if a.high is None else -(-a.high // b.low)
    return Interval(low, high)


def _combine(op: str, a: Interval, b: Interval) -> Interval:
    """Interval arithmetic for the operators of indices."""
    match op:
        case "+":
            low = None if a.low is None or b.low is None else a.low + b.low
            high = None if a.high is None or b.high is None else a.high + b.high
            return Interval(low, high)
        case "-":
            low = None if a.low is None or b.high is None else a.low - b.high
            high = None if a.high is None or b.low is None else a.high - b.low
            return Interval(low, high)
        case "*":
            return _product(a, b)
        case "//" if b.low is not None and b.low == b.high and b.low > 0:
            return Interval(*(None if end is None else end // b.low for end in (a.low, a.high)))
        case "%" if b.high is not None and b.low is not None and b.low > 0:
            return Interval(0, b.high - 1)
        case "//" | "%" if all(end is not None and end >= 0 for end in (a.low, b.low)):
            return Interval(0, a.high)
        case "&" if any(side.low is not None and side.low >= 0 for side in (a, b)):
            signless = (side.high for side in (a, b) if side.low is not None and side.low >= 0)
            return Interval(0, min((high for high in signless if high is not None), default=None))
        case ">>" if a.low is not None and a.low >= 0 and b.low is not None and b.low >= 0:
            return Interval(0, None if a.high is None else a.high >> b.low)
        case _:
            return Interval(None, None)


def _product(a: Interval, b: Interval) -> Interval:
    ends = (a.low, a.high, b.low, b.high)
    if all(end is not None for end in ends):
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high) if x is not None and y is not None]
        return Interval(min(corners), max(corners))
    if a.low is not None and b.low is not None and a.low >= 0 and b.low >= 0:
        return Interval(a.low * b.low, None)
    return Interval(None, None)
