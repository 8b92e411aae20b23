"""Boxes of a buffer as expressions: how they widen over a loop, and whether two of them can overlap."""

from collections.abc import Mapping

from tile2cu.analysis.bounds import Linear, linear_of
from tile2cu.core.expr import Address, Call, Expr, Load, Role, Var, binary, int_const, static_value, substitute, walk

Extent = tuple[Expr, Expr] | None  # (start, length) along one dimension, in elements; None: anywhere in it
Box = tuple[Extent, ...]  # one Extent per dimension

# A variable of one of these roles has one value for as long as it is in scope; a mutable one may change in between.
_FIXED = frozenset((Role.SIZE, Role.SCALAR, Role.BLOCK, Role.LOOP, Role.PARALLEL, Role.LET))


def is_fixed(expr: Expr) -> bool:
    """Whether an expression has one value wherever its variables are in scope: no memory, no state, no thread in it."""
    return all(
        part.role in _FIXED if isinstance(part, Var) else not isinstance(part, Load | Address | Call) or _is_pure(part)
        for part in walk(expr)
    )


def _is_pure(part: Expr) -> bool:
    return isinstance(part, Call) and part.function in ("min", "max", "ceildiv", "abs", "cast", "if_then_else")


def names(expr: Expr) -> frozenset[Var]:
    """The variables of an expression."""
    return frozenset(part for part in walk(expr) if isinstance(part, Var))


def without(extent: Extent, local: frozenset[Var], values: Mapping[Expr, Expr]) -> Extent:
    """An extent as it is known where `local` names are not: with their `values` in their place, else anywhere."""
    if extent is None:
        return None
    for _ in range(len(values) + 1):
        if not any(part in values for end in extent for part in walk(end)):
            break
        extent = (substitute(extent[0], values), substitute(extent[1], values))
    if any(names(end) & local or not is_fixed(end) for end in extent):
        return None
    return extent


def over(extent: Extent, var: Var, start: Expr, count: Expr) -> Extent:
    """An extent widened over a variable that takes `count` values from `start`, by steps of 1; in elements."""
    if extent is None or not any(var in walk(end) for end in extent):
        return extent
    first, length = extent
    found = linear_of(first)
    factor = found.terms.get(var, 0)
    hidden = any(var in walk(atom) for atom in found.terms if atom != var)
    if var in walk(length) or hidden or factor <= 0 or var in walk(start) or var in walk(count):
        return None
    more = binary("*", int_const(factor), binary("-", count, int_const(1)))
    return substitute(first, {var: start}), binary("+", length, more)


def disjoint(a: Extent, b: Extent) -> bool:
    """Whether two extents of one dimension provably share no element; both are read in one scope."""
    if a is None or b is None or not all(is_fixed(end) for extent in (a, b) for end in extent):
        return False
    return _ends_before(a, b) or _ends_before(b, a)


def _ends_before(a: tuple[Expr, Expr], b: tuple[Expr, Expr]) -> bool:
    gap = linear_of(b[0]).plus(linear_of(a[0]), -1).plus(linear_of(a[1]), -1)
    return not gap.terms and gap.constant >= 0


def disjoint_in_other_iterations(a: Extent, b: Extent, var: Var, step: int) -> bool:
    """Whether extents provably share no element where `var`, which moves by `step`, has one value in `a` and another
    in `b`."""
    if a is None or b is None or not all(is_fixed(end) for extent in (a, b) for end in extent):
        return False
    one, other = linear_of(a[0]), linear_of(b[0])
    rest = one.plus(other, -1)
    lengths = [static_value(extent[1]) for extent in (a, b)]
    if rest.terms or any(length is None for length in lengths) or any(_hides(part, var) for part in (one, other)):
        return False
    stride = abs(one.terms.get(var, 0) * step)
    first, second = (int(length or 0) for length in lengths)
    return stride > 0 and stride >= max(first + rest.constant, second - rest.constant)


def _hides(sum_: Linear, var: Var) -> bool:
    return any(var in walk(atom) for atom in sum_.terms if atom != var)
