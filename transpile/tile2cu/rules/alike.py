"""Conditions that all elements of a packet meet, or none of them does."""

from collections.abc import Mapping

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.expr import Binary, Call, Expr, Unary, Var, is_of_thread, walk


def alike(condition: Expr, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether a condition has one answer for each `vector` consecutive values of `last` that start at a multiple of it.

    `last` moves one side of a comparison, whose sides are apart by a multiple of the packet where a packet starts.
    """
    condition = bounds.expanded(condition)
    parts = tuple(walk(condition))
    if any(isinstance(part, Call) and is_of_thread(part) for part in parts):
        return False
    if last not in parts:
        return True
    match condition:
        case Binary(op="and" | "or"):
            return all(alike(side, last, vector, bounds) for side in (condition.lhs, condition.rhs))
        case Unary(op="not"):
            return alike(condition.operand, last, vector, bounds)
        case Binary(op="<" | ">="):
            return _in_steps(condition.lhs, condition.rhs, last, vector, bounds)
        case Binary(op=">" | "<="):
            return _in_steps(condition.rhs, condition.lhs, last, vector, bounds)
        case _:
            return False


def _in_steps(moved: Expr, end: Expr, last: Var, vector: int, bounds: Bounds) -> bool:
    """Whether `last` moves the first of these, by one, and packets start at multiples of their size from the other."""
    distance = bounds.linear(moved).plus(bounds.linear(end), -1)
    terms = dict(distance.terms)
    if terms.pop(last, 0) != 1 or any(last in walk(atom) for atom in terms):
        return False
    return starts_at(vector, distance.constant, terms, bounds)


def starts_at(vector: int, constant: int, terms: Mapping[Expr, int], bounds: Bounds) -> bool:
    """Whether a sum is always a multiple of `vector`."""
    parts = (constant, *(bounds.multiple_of(atom) * factor for atom, factor in terms.items()))
    return all(part % vector == 0 for part in parts)
