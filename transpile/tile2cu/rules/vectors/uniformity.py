"""Conditions that are uniform over a vector: they hold for all of its elements, or for none."""

from collections.abc import Mapping

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.expr import Binary, Call, Expr, Unary, Var, is_of_thread, walk


def uniform_over_vector(condition: Expr, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether a condition is uniform over all aligned runs of `vector` consecutive values of `last`.

    `last` occurs on one side of a comparison; the difference of the sides is a multiple of the vector where a vector
    starts.
    """
    condition = bounds.expanded(condition)
    parts = tuple(walk(condition))
    if any(isinstance(part, Call) and is_of_thread(part) for part in parts):
        return False
    if last not in parts:
        return True
    match condition:
        case Binary(op="and" | "or"):
            return all(uniform_over_vector(side, last, vector, bounds) for side in (condition.lhs, condition.rhs))
        case Unary(op="not"):
            return uniform_over_vector(condition.operand, last, vector, bounds)
        case Binary(op="<" | ">="):
            return _in_steps(condition.lhs, condition.rhs, last, vector, bounds)
        case Binary(op=">" | "<="):
            return _in_steps(condition.rhs, condition.lhs, last, vector, bounds)
        case _:
            return False


def _in_steps(moved: Expr, end: Expr, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether `moved` grows by one with `last`, and vectors start at multiples of their size from `end`."""
    distance = bounds.linear(moved).plus(bounds.linear(end), -1)
    terms = dict(distance.terms)
    if terms.pop(last, 0) != 1 or any(last in walk(atom) for atom in terms):
        return False
    return sum_is_multiple(vector, distance.constant, terms, bounds)


def sum_is_multiple(vector: int, constant: int, terms: Mapping[Expr, int], bounds: Bounds) -> bool:
    """Whether a sum is always a multiple of `vector`."""
    parts = (constant, *(bounds.multiple_of(atom) * factor for atom, factor in terms.items()))
    return all(part % vector == 0 for part in parts)
