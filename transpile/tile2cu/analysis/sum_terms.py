"""Sums, maxima and minima as expressions: calls of (variable, extent, term)."""

from collections.abc import Iterator
from itertools import product
from math import inf

from msgspec.structs import replace

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import (
    Binary,
    Call,
    Expr,
    Load,
    Unary,
    Var,
    binary,
    children,
    fold,
    int_const,
    static_value,
    substitute,
    walk,
)
from tile2cu.core.program import Buffer

SUM, MAX, MIN = "sum over", "max over", "min over"
_TRIPS = range(3)  # iterations of a loop that are tried


def total(kind: str, var: Var, extent: Expr, term: Expr) -> Call:
    """The sum, maximum or minimum of a term for `var` from 0 to `extent`."""
    return Call(term.dtype, kind, (var, extent, term))


def merged(value: Call) -> Expr:
    """A sum over tiles of a sum over a tile's elements as one sum, where the two indices are only used as one."""
    tile, tiles, inner = value.args
    if not (isinstance(inner, Call) and inner.function == value.function and isinstance(tile, Var)):
        return value
    element, size, term = inner.args
    width = static_value(size)
    assert isinstance(element, Var)
    extent = _extent_of(tiles, width)
    if extent is None or width is None:
        return value
    found = _with_one(term, tile, element, int(width))
    if {tile, element} & set(walk(found)) or not _ends_with(found, extent, int(width)):
        return value
    return total(value.function, element, extent, substitute(found, {_WHOLE: element}))


_WHOLE = Call(INT32, "whole index", ())  # placeholder of tile * width + element


def _extent_of(tiles: Expr, width: object) -> Expr | None:
    """The extent that so many tiles of a width cover."""
    match tiles:
        case Call(function="ceildiv", args=(extent, size)) if static_value(size) == width:
            return extent
        case Binary(op="//", lhs=lhs, rhs=rhs) if static_value(rhs) == width:
            whole = static_value(lhs)
            return lhs if whole is not None and whole % int(static_value(rhs) or 1) == 0 else None
        case _:
            count = static_value(tiles)
            return None if count is None or not isinstance(width, int) else int_const(int(count) * width)


def _with_one(expr: Expr, tile: Var, element: Var, width: int) -> Expr:
    """The expression with `_WHOLE` for tile * width + element, and quotients and remainders of it."""
    names = {part for part in walk(expr) if isinstance(part, Var)}
    if names and names <= {tile, element} and (found := _of_whole(expr, tile, element, width)) is not None:
        return found
    parts = tuple(_with_one(part, tile, element, width) for part in children(expr))
    match expr:
        case Unary():
            return replace(expr, operand=parts[0])
        case Binary():
            return binary(expr.op, *parts)
        case Call():
            return replace(expr, args=parts)
        case Load():
            return replace(expr, indices=parts)
        case _:
            return expr


def _of_whole(expr: Expr, tile: Var, element: Var, width: int) -> Expr | None:
    """The expression as a function of tile * width + element, where trials agree: it, its quotient or remainder."""
    values = [(part, value) for part in walk(expr) if (value := static_value(part)) is not None]
    numbers = {int(value): part for part, value in values if 1 < value < inf}
    trials = []
    for t in _TRIPS:
        for e in sorted({*range(min(width, 16)), *range(0, width, max(1, width // 16)), width - 1}):
            value = static_value(substitute(expr, {tile: int_const(t), element: int_const(e)}))
            if value is None:
                return None
            trials.append((t * width + e, value))
    if all(whole == value for whole, value in trials):
        return _WHOLE
    for op, number in product(("//", "%"), sorted(numbers)):
        if all(fold(op, whole, number) == value for whole, value in trials):
            return Binary(INT32, op, _WHOLE, numbers[number])
    return None


def _ends_with(term: Expr, extent: Expr, width: int) -> bool:
    """Whether a term is zero beyond the extent, in the last tile: a factor is an element of a tensor out of bounds."""
    whole = static_value(extent)
    if whole is not None and int(whole) % width == 0:
        return True
    return any(
        isinstance(factor, Load)
        and isinstance(factor.buffer, Buffer)
        and any(
            index == _WHOLE and size == extent for index, size in zip(factor.indices, factor.buffer.shape, strict=True)
        )
        for factor in _factors(term)
    )


def _factors(term: Expr) -> Iterator[Expr]:
    if isinstance(term, Binary) and term.op == "*":
        yield from (*_factors(term.lhs), *_factors(term.rhs))
    else:
        yield term


def bounded(value: Expr) -> bool:
    """Whether each sum runs over a dimension of a tensor that it indexes, from its first element to its last."""
    for part in walk(value):
        if isinstance(part, Call) and part.function in (SUM, MAX, MIN):
            var, extent, term = part.args
            sizes = [
                size
                for load in walk(term)
                if isinstance(load, Load) and isinstance(load.buffer, Buffer)
                for index, size in zip(load.indices, load.buffer.shape, strict=True)
                if index == var
            ]
            same = [size == extent or (static_value(size) == static_value(extent) is not None) for size in sizes]
            if not sizes or not all(same):
                return False
    return True
