"""Quotients and remainders of an index by a number that vectors divide: the quotient is uniform over a vector."""

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Expr, Load, Role, Var, binary, int_const, rebuilt, static_value, walk


def of_vector(expr: Expr, last: Var, vector: int, bounds: Bounds) -> Expr:
    """The value of an expression for `vector` consecutive values of `last`, the first of them a multiple of `vector`.

    For j in 0..7, (32 * k + j) // 24 is one number, represented by a name independent of j, and (32 * k + j) % 24 is j
    and a multiple of 8.
    """
    names: dict[Expr, Var] = {}

    def change(part: Expr) -> Expr | None:
        if not (isinstance(part, Binary) and part.op in ("//", "%") and last in walk(part.lhs)):
            return None
        divisor = static_value(part.rhs)
        if not divisor or divisor < 0 or divisor % vector or not starts_vector(part.lhs, last, vector, bounds):
            return None
        shared = names.setdefault(part, Var(INT32, f"run {len(names)}", Role.LET))
        return shared if part.op == "//" else binary("+", last, binary("*", shared, int_const(vector)))

    return rebuilt(bounds.expanded(expr), change)


def starts_vector(index: Expr, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether an index grows by one with `last`, is at least 0, and its vectors start at multiples of `vector`."""
    offset = bounds.linear(index)
    terms = dict(offset.terms)
    low = bounds.interval(index).low
    if terms.pop(last, 0) != 1 or any(last in walk(atom) for atom in terms) or low is None or low < 0:
        return False
    parts = (offset.constant, *(bounds.multiple_of(atom) * factor for atom, factor in terms.items()))
    return all(part % vector == 0 for part in parts)


def is_run(expr: Expr, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether an index that no memory gives names `last`, and is uniform over a vector."""
    expanded = bounds.expanded(expr)
    if last not in walk(expanded) or any(isinstance(part, Load) for part in walk(expanded)):
        return False
    return last not in walk(of_vector(expr, last, vector, bounds))
