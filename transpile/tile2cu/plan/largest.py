"""The largest values of a kernel's indices, as numbers of sizes: launchers reject those that int lacks."""

from collections.abc import Iterator
from enum import Enum

from tile2cu.analysis.accesses import expressions
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.executed import executed, is_of_sizes
from tile2cu.analysis.linear import Linear, linear_of
from tile2cu.analysis.wrapping import operands_by_bits
from tile2cu.core.dtype import INT32
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import (
    Address,
    Binary,
    Call,
    Expr,
    Load,
    Number,
    Role,
    Unary,
    Var,
    binary,
    int_const,
    static_value,
    variables_in,
    walk,
    walk_evaluated,
)
from tile2cu.core.memo import kept
from tile2cu.core.program import Atomic, AtomicTile, BindTensor, Copy, Fill, Gemm, Launch, Loop, Stmt, Store
from tile2cu.core.record import Record
from tile2cu.core.span import Span

_COUNTED = {Role.SIZE, Role.BLOCK, Role.LOOP, Role.PARALLEL}


class _Use(Enum):
    """What an integer is for."""

    VALUE = "value"  # data, whose sums may overflow
    INDEX = "index"  # it places an element or a tile, or counts iterations
    COMPARED = "compared"  # a condition compares it


class Largest(Record, frozen=True):
    """The largest value of an index, and the trip counts that are positive where it is computed."""

    most: Linear
    counts: tuple[Expr, ...]


def overflowing_indices(launch: Launch, bounds: Bounds, known: tuple[Linear, ...] = ()) -> tuple[Largest, ...]:
    """The largest values of a kernel's sums and multiples that int may not hold, as sums of terms of sizes.

    They are of sizes, and of blocks, iterations and elements of tiles where sizes alone say how many there are. One
    that is at most another one, or one that is `known` to fit, is left out. Errors: T2C-F024 for one without a size,
    which no call could change.
    """
    kept: list[Largest] = []
    for (part, counts), span in _always_placing(launch, bounds).items():
        most = _largest(part, bounds) if _may_overflow(part, bounds) else None
        if most is None or bounds.of_values.never_wraps(most.expression()):
            continue
        if not most.terms:
            _assert_not_reached(part, most.constant, launch, span)
            continue
        found = Largest(most, counts)
        if not any(_implies(other, found) for other in (*(Largest(each, ()) for each in known), *kept)):
            kept = [*(other for other in kept if not _implies(found, other)), found]
    return tuple(kept)


def _assert_not_reached(part: Expr, most: int, launch: Launch, span: Span) -> None:
    """Fails where iterations give an index the value `most`: without remainders and steps it grows by each."""
    strided = {stmt.var for stmt in launch.statements if isinstance(stmt, Loop) and static_value(stmt.step) != 1}
    if not any((isinstance(each, Binary) and each.op == "%") or each in strided for each in walk(part)):
        message = f"a part of an index is up to {most:,}, which int32 does not hold"
        raise Tile2CuError("T2C-F024", message, span, help='compute it in 64 bits: T.cast(bx, "int64") * ...')


def _implies(one: Largest, other: Largest) -> bool:
    """Whether the limit of one value has that of another one."""
    return set(one.counts) <= set(other.counts) and _covers(one.most, other.most)


@kept
def _always_placing(launch: Launch, bounds: Bounds) -> dict[tuple[Expr, tuple[Expr, ...]], Span]:
    """The parts of indices that are computed in each block, iteration and thread, with trip counts that may be 0, and
    the place of a statement that does.

    No condition is around them, which might bound them. What a condition compares counts where it is part of an index
    in the same form: `i < n` guards `X[i]`, but `hash(i) % 2 == 1` computes data.
    """
    placing = {
        part
        for stmt in (*launch.prelude, *launch.statements)
        for expr, use in _own(stmt)
        for part, used in _uses(bounds.expanded(expr), use)
        if used is _Use.INDEX
    }
    always: dict[tuple[Expr, tuple[Expr, ...]], Span] = {}
    for each in executed(launch, bounds):
        for expr, use in _own(each.stmt):
            for part, used in _uses(bounds.expanded(expr), use, always=True):
                if used is _Use.INDEX or (used is _Use.COMPARED and part in placing):
                    always.setdefault((part, each.counts), each.stmt.span)
    return always


def _own(stmt: Stmt) -> Iterator[tuple[Expr, _Use]]:
    """The expressions that a statement itself evaluates, with what they are for."""
    indices = list(expressions(stmt))
    match stmt:
        case Store() | Atomic() | Fill():
            values: tuple[Expr | None, ...] = (stmt.value,)
        case Gemm():
            values = (stmt.clear_if,)
        case Copy():
            values = (stmt.when,)
        case Loop() | AtomicTile() | BindTensor():
            values = ()
        case _:
            values = tuple(indices)
    for value in values:
        if value is not None:
            indices.remove(value)
            yield value, _Use.VALUE
    yield from ((index, _Use.INDEX) for index in indices)


_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _uses(expr: Expr, use: _Use, *, always: bool = False) -> Iterator[tuple[Expr, _Use]]:
    """The parts of an expression, with what they are for; `always`: those that are evaluated whenever it is.

    Those that may wrap, as the expression takes them modulo a power of two, are left out.
    """
    evaluated = set(walk_evaluated(expr)) if always else None
    pending: list[tuple[Expr, _Use, int | None]] = [(expr, use, None)]
    seen = set[tuple[Expr, _Use, int | None]]()  # several names may have a value
    while pending:
        part, use, bits = pending.pop()
        if (part, use, bits) in seen:
            continue
        seen.add((part, use, bits))
        if bits is None:
            yield part, use
        match part:
            case Load() | Address():
                use = _Use.INDEX
            case Binary(op=op) if op in _COMPARISONS:
                use = _Use.COMPARED
            case _:
                pass
        operands = operands_by_bits(part, bits)
        pending += [(each, use, of_it) for each, of_it in operands if evaluated is None or each in evaluated]


def _covers(one: Linear, other: Linear) -> bool:
    """Whether a sum of terms that are not negative is at least another one."""
    rests = (one.plus(each, -1) for each in (other, _rounded(other)))
    return any(more.constant >= 0 and all(factor >= 0 for factor in more.terms.values()) for more in rests)


def _rounded(sum_: Linear) -> Linear:
    """At least a sum, without roundings to whole tiles: `ceildiv(n, 64) * 64` is at most n + 63."""
    for atom, factor in sum_.terms.items():
        match atom:
            case Call(function="ceildiv", args=(n, tile)) | Binary(op="//", lhs=n, rhs=tile):
                size = int(static_value(tile) or 0)
                if size > 0 and factor > 0 and factor % size == 0:
                    times, up = factor // size, isinstance(atom, Call)
                    sum_ = sum_.plus(Linear({atom: 1}, 0), -factor).plus(linear_of(n), times)
                    sum_ = sum_.plus(Linear({}, factor - times if up else 0))
            case _:
                pass
    return sum_


def _may_overflow(part: Expr, bounds: Bounds) -> bool:
    if not isinstance(part, Binary) or part.op not in ("+", "-", "*") or part.dtype != INT32:
        return False
    counted = all(var.role in _COUNTED for var in variables_in(bounds.expanded(part)))
    return counted and not bounds.of_values.never_wraps(part)


def _largest(expr: Expr, bounds: Bounds) -> Linear | None:
    """The largest value, as a sum of terms of sizes; None where it is not known."""
    value = static_value(expr)
    if value is not None:
        return Linear({}, int(value))
    if is_of_sizes(expr):
        return bounds.linear(expr) if all(map(_is_short, walk(expr))) else None
    match expr:
        case Var():
            stop = bounds.stop(expr)
            most = None if stop is None else _largest(bounds.expanded(stop), bounds)
            return None if most is None else most.plus(Linear({}, -1))
        case Binary(op="+", lhs=lhs, rhs=rhs):
            one, other = _largest(lhs, bounds), _largest(rhs, bounds)
            return None if one is None or other is None else one.plus(other)
        case Binary(op="-", lhs=lhs, rhs=rhs) if (less := static_value(rhs)) is not None:
            one = _largest(lhs, bounds)
            return None if one is None else one.plus(Linear({}, -int(less)))
        case Binary(op="%", rhs=rhs) if (divisor := static_value(rhs)) is not None and divisor > 0:
            return Linear({}, int(divisor) - 1)
        case Binary(op="*" | "//" as op, lhs=lhs, rhs=rhs) if all(map(bounds.never_negative, (lhs, rhs))):
            return _of_two(op, _largest(lhs, bounds), _largest(rhs, bounds), static_value(rhs))
        case _:
            return None


def _is_short(part: Expr) -> bool:
    """Whether a head can state a limit with a part of an expression: no choice, nor a quotient by a run-time size."""
    match part:
        case Binary(op="//", rhs=divisor) | Call(function="ceildiv", args=(_, divisor)):
            return static_value(divisor) is not None
        case Binary():
            return part.op in ("+", "-", "*")
        case _:
            return not isinstance(part, Call | Unary)


def _of_two(op: str, one: Linear | None, other: Linear | None, divisor: Number | None) -> Linear | None:
    """The largest multiple or quotient of numbers that are not negative."""
    if one is None or other is None:
        return None
    if op == "*":
        return one.times(other) or _term(binary("*", one.expression(), other.expression()))
    if not divisor:
        return None
    return one.divided(divisor) or _term(binary("//", one.expression(), int_const(int(divisor))))


def _term(expr: Expr) -> Linear:
    value = static_value(expr)
    return Linear({expr: 1}, 0) if value is None else Linear({}, int(value))
