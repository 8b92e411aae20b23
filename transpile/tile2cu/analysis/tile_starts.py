"""Whether tiles begin within a tensor: proofs that hold for all run-time values, also where arithmetic overflows."""

from collections.abc import Iterator
from functools import partial, reduce

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.linear import Linear, is_not_negative
from tile2cu.core.expr import Binary, Call, Expr, binary, int_const, static_value


def begins_inside(start: Expr, extent: Expr, bounds: Bounds) -> bool:
    """Whether 0 <= start < extent: tile number v of v < ceildiv(extent, rows of a tile) begins so."""
    if bounds.inside(start, int_const(1), extent):
        return True
    most = _most(start, bounds.of_values)
    return most is not None and is_not_negative(bounds.of_values.linear(extent).plus(most, -1).plus(Linear({}, -1)))


def begins_near(start: Expr, extent: Expr, bounds: Bounds) -> bool:
    """Whether 0 <= start <= extent: a tile of packed elements may begin where a tensor of odd rows ends."""
    if static_value(start) == 0 or begins_inside(start, extent, bounds):
        return True
    most = _most(start, bounds.of_values)
    if most is None:
        return False
    return is_not_negative(_rounded_up(bounds.of_values.linear(extent)).plus(most, -1))


def _most(start: Expr, values: Bounds) -> Linear | None:
    """The most that a tile's start may be, without quotients that a multiplication cancels; None if below 0."""
    low = values.interval(start).low
    if low is None or low < 0:
        return None
    most = values.maximum(values.linear(start))
    while (less := next(_replaced(most, values), None)) is not None:
        most = less
    return most


def _replaced(sum_: Linear, values: Bounds) -> Iterator[Linear]:
    """Upper bounds of a sum in which a term has become a simpler one."""
    for atom, factor in sum_.terms.items():
        for most in _upper_bound(atom, factor, values):
            yield sum_.plus(Linear({atom: 1}, 0), -factor).plus(most)


def _upper_bound(atom: Expr, factor: int, values: Bounds) -> Iterator[Linear]:
    """What `factor` times a quotient or a remainder never exceeds."""
    match atom:
        case Binary(op="//" | "%") if factor > 0 and (end := values.end_of(atom)) is not None:
            product = reduce(partial(binary, "*"), end)
            yield values.linear(product).plus(Linear({}, -1)).scaled(factor)
        case Binary(op="//", lhs=dividend, rhs=rhs) | Call(function="ceildiv", args=(dividend, rhs)):
            divisor, rounds_up = static_value(rhs), isinstance(atom, Call)
            if not isinstance(divisor, int) or divisor <= 0 or factor <= 0 or not values.never_wraps(dividend):
                return
            if factor % divisor == 0:
                more = Linear({}, divisor - 1 if rounds_up else 0)
                yield values.linear(dividend).plus(more).scaled(factor // divisor)
            elif rounds_up and divisor % factor == 0 and factor > 1:  # f ceil(x / fd) <= ceil(x / d) + f - 1
                yield Linear({_quotient(dividend, divisor // factor): 1}, factor - 1)
        case _:
            pass


def _rounded_up(sum_: Linear) -> Linear:
    """A lower bound of a sum: x // d is at least ceil(x / d) - 1."""
    for atom, factor in sum_.terms.items():
        match atom:
            case Binary(op="//", lhs=dividend, rhs=rhs) if factor > 0 and isinstance(static_value(rhs), int):
                less = Linear({_quotient(dividend, int(static_value(rhs) or 0)): factor}, -factor)
                return _rounded_up(sum_.plus(Linear({atom: 1}, 0), -factor).plus(less))
            case _:
                pass
    return sum_


def _quotient(dividend: Expr, divisor: int) -> Expr:
    return Call(dividend.dtype, "ceildiv", (dividend, int_const(divisor)))
