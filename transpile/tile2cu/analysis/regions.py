"""Boxes of a buffer as expressions: how they widen over a loop, and whether two of them can overlap."""

import functools

from tile2cu.analysis.linear import Linear, linear_of
from tile2cu.core.expr import (
    ARITHMETIC,
    Address,
    Call,
    Expr,
    Load,
    Role,
    Var,
    binary,
    children,
    int_const,
    static_value,
    substitute,
    variables_in,
    walk,
)
from tile2cu.core.record import Record

Extent = tuple[Expr, Expr] | None  # (start, length) along one dimension, in elements; None: anywhere in it
Box = tuple[Extent, ...]  # one Extent per dimension

# A variable of one of these roles has one value for as long as it is in scope; a mutable one may change in between.
_FIXED = frozenset((Role.SIZE, Role.SCALAR, Role.BLOCK, Role.LOOP, Role.PARALLEL, Role.LET))


@functools.lru_cache(maxsize=1 << 14)
def is_fixed(expr: Expr) -> bool:
    """Whether an expression has one value wherever its variables are in scope: no memory, no state, no thread in it."""
    return _keeps_its_value(expr) and all(map(is_fixed, children(expr)))


def _keeps_its_value(part: Expr) -> bool:
    match part:
        case Var():
            return part.role in _FIXED
        case Call():
            return part.function in ARITHMETIC
        case _:
            return not isinstance(part, Load | Address)


def without(extent: Extent, local: frozenset[Var]) -> Extent:
    """An extent as it is known where `local` names are not: anywhere, if it depends on one."""
    if extent is None or any(not variables_in(end).isdisjoint(local) or not is_fixed(end) for end in extent):
        return None
    return extent


def over(extent: Extent, var: Var, start: Expr, count: Expr) -> Extent:
    """An extent widened over a variable that takes `count` values from `start`, by steps of 1; in elements."""
    if extent is None or not any(var in variables_in(end) for end in extent):
        return extent
    first, length = extent
    found = linear_of(first)
    factor = found.terms.get(var, 0)
    hidden = any(var in variables_in(atom) for atom in found.terms if atom != var)
    if hidden or factor <= 0 or any(var in variables_in(each) for each in (length, start, count)):
        return None
    more = binary("*", int_const(factor), binary("-", count, int_const(1)))
    return substitute(first, {var: start}), binary("+", length, more)


class _Sums(Record, frozen=True):
    """The ends of an extent as sums: where it starts, how long it is, and where it ends."""

    start: Linear
    length: Linear
    stop: Linear


@functools.lru_cache(maxsize=1 << 14)  # pairs of accesses ask for each extent again
def _sums(extent: tuple[Expr, Expr]) -> _Sums | None:
    """The sums of an extent; None where it is not fixed."""
    if not all(map(is_fixed, extent)):
        return None
    start, length = map(linear_of, extent)
    return _Sums(start, length, start.plus(length))


def disjoint(a: Extent, b: Extent) -> bool:
    """Whether two extents of one dimension provably share no element; both are read in one scope."""
    if a is None or b is None:
        return False
    one, other = _sums(a), _sums(b)
    return one is not None and other is not None and (_ends_before(one, other) or _ends_before(other, one))


def _ends_before(a: _Sums, b: _Sums) -> bool:
    return a.stop.constant <= b.start.constant and a.stop.terms == b.start.terms


def disjoint_in_other_iterations(a: Extent, b: Extent, var: Var | None, step: int, changing: frozenset[Var]) -> bool:
    """Whether extents provably share no element where `var`, which moves by `step`, has one value in `a` and another
    in `b`. So have `changing` variables.
    """
    if a is None or b is None:
        return False
    moves = changing if var is None else changing | {var}
    if all(variables_in(end).isdisjoint(moves) for end in (*a, *b)):
        return disjoint(a, b)  # of all iterations
    one, other = _sums(a), _sums(b)
    if var is None or one is None or other is None or one.start.terms != other.start.terms:
        return False
    lengths = [static_value(extent[1]) for extent in (a, b)]
    stride = abs(one.start.terms.get(var, 0) * step)
    moving = variables_in(a[0]) & changing or any(var in walk(atom) for atom in one.start.terms if atom != var)
    if stride == 0 or None in lengths or moving:
        return False
    first, second = (int(length or 0) for length in lengths)
    shift = one.start.constant - other.start.constant
    return stride >= max(first + shift, second - shift)
