"""Which integers are provably never negative: where tiles begin, and how many iterations a loop has."""

from tile2cu.analysis.bounds import Bounds, factors, same_factors, without_factors
from tile2cu.core.expr import Binary, Call, Expr, children


def never_negative(index: Expr, bounds: Bounds, given: tuple[Expr, ...] = ()) -> bool:
    """Whether an index is provably at least 0 where the conditions `given` hold."""
    return _Signs(bounds, given).never_negative(bounds.expanded(index))


class _Signs:
    """Proofs about expressions without names, where conditions hold."""

    def __init__(self, bounds: Bounds, given: tuple[Expr, ...]) -> None:
        self._bounds = bounds
        self._given = tuple(map(bounds.expanded, given))
        self._ends = {lhs: factors(rhs) for condition in self._given for lhs, rhs in _less_than(condition)}

    def never_negative(self, index: Expr) -> bool:
        low = self._bounds.interval(index).low
        if (low is not None and low >= 0) or self._bounds.follows(index, self._given):
            return True
        match index:
            case Binary(op="+" | "*" | "//") | Call(function="min" | "ceildiv"):
                return all(map(self.never_negative, children(index)))
            case Binary(op="%", rhs=rhs):  # it has the sign of its divisor
                return self.never_negative(rhs)
            case Binary(op="-", lhs=lhs, rhs=rhs):
                own = factors(lhs)
                return same_factors(self._end_of(rhs), own) and all(map(self.never_negative, own))
            case Call(function="if_then_else", args=(_, then, orelse)):
                return self.never_negative(then) and self.never_negative(orelse)
            case Call(function="max"):
                return any(map(self.never_negative, children(index)))
            case _:
                return False

    def _end_of(self, index: Expr) -> list[Expr] | None:
        """Factors of a number that is greater than an index."""
        match index:
            case Binary(op="*", lhs=lhs, rhs=rhs):
                return self._end_of_multiple(lhs, rhs) or self._end_of_multiple(rhs, lhs)
            case _:
                return self._bounds.end_of(index, self._ends)

    def _end_of_multiple(self, quotient: Expr, factor: Expr) -> list[Expr] | None:
        """The same of the first row of a group of rows: n // (p * c) * p <= n // c, for positive p and c."""
        match quotient:
            case Binary(op="//", lhs=index, rhs=divisor) if self.never_negative(factor):
                rest = without_factors(factors(divisor), factors(factor))
                if rest is not None and all(map(self.never_negative, rest)):
                    return without_factors(self._end_of(index), rest)
            case _:
                pass
        return None


def _less_than(condition: Expr) -> list[tuple[Expr, Expr]]:
    """The pairs of integers that a condition states to be less than one another."""
    match condition:
        case Binary(op="and", lhs=lhs, rhs=rhs):
            return [*_less_than(lhs), *_less_than(rhs)]
        case Binary(op="<", lhs=lhs, rhs=rhs):
            return [(lhs, rhs)]
        case Binary(op=">", lhs=lhs, rhs=rhs):
            return [(rhs, lhs)]
        case _:
            return []
