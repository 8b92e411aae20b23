"""Integer expressions as sums of terms."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.core.dtype import INT32, DType
from tile2cu.core.expr import Binary, Call, Expr, Role, Unary, Var, binary, int_const, static_value, walk
from tile2cu.core.record import Record


class Linear(Record, frozen=True):
    """`constant` plus the sum of coefficient x atom. Atoms are variables or opaque expressions."""

    terms: Mapping[Expr, int]
    constant: int

    def plus(self, other: "Linear", factor: int = 1) -> "Linear":
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * coefficient
        return Linear(
            {atom: coefficient for atom, coefficient in terms.items() if coefficient},
            self.constant + factor * other.constant,
        )

    def scaled(self, factor: int) -> "Linear":
        return Linear({}, 0).plus(self, factor)

    def times(self, other: "Linear") -> "Linear | None":
        """The sum times another one, where one of them is a number."""
        if not other.terms:
            return self.scaled(other.constant)
        return None if self.terms else other.scaled(self.constant)

    def divided(self, divisor: int | float | None) -> "Linear | None":
        """The sum divided by a positive number that divides every coefficient; None where it does not."""
        numbers = (*self.terms.values(), self.constant)
        if not isinstance(divisor, int) or divisor <= 0 or any(number % divisor for number in numbers):
            return None
        return Linear({atom: factor // divisor for atom, factor in self.terms.items()}, self.constant // divisor)

    def expression(self) -> Expr:
        """The sum as an expression."""
        found: Expr = int_const(0)
        for atom, factor in self.terms.items():
            found = binary("+", found, binary("*", atom, int_const(factor)))
        return binary("-" if self.constant < 0 else "+", found, int_const(abs(self.constant)))


def _always(_: Expr) -> bool:
    return True


def linear_of(
    expr: Expr,
    values: Mapping[Expr, Expr] = MappingProxyType({}),
    never_wraps: Callable[[Expr], bool] = _always,
) -> Linear:
    """An integer expression as a sum; a nonlinear term is an atom. Names with `values` are replaced by them.

    Sums are those of C++ modulo 2**32, as long as none is of a wider type than its terms: where one is, and where a
    division is exact for each term, terms and dividends that may wrap are atoms. A number with a fraction is no
    integer, and rounds: an expression of a floating-point type is an atom.
    """

    def of(part: Expr) -> Linear:
        known = never_wraps(part) or not _is_widened(part, expr.dtype)
        return linear_of(part, values, never_wraps) if known else Linear({part: 1}, 0)

    value = static_value(expr)
    if value is not None and not expr.dtype.is_float:
        return Linear({}, int(value))
    match expr:
        case Var() if expr in values:
            return of(values[expr])
        case _ if expr.dtype.is_float:
            pass
        case Binary(op="+"):
            return of(expr.lhs).plus(of(expr.rhs))
        case Binary(op="-"):
            return of(expr.lhs).plus(of(expr.rhs), -1)
        case Binary(op="*"):
            return of(expr.lhs).times(of(expr.rhs)) or Linear({expr: 1}, 0)
        case Unary(op="-"):
            return of(expr.operand).scaled(-1)
        case Binary(op="//", lhs=dividend, rhs=divisor) | Call(function="ceildiv", args=(dividend, divisor)) if (
            is_wide(expr.dtype) and never_wraps(dividend)  # narrow types wrap, as C++ defines
        ):
            return of(dividend).divided(static_value(divisor)) or Linear({expr: 1}, 0)
        case _:
            pass
    return Linear({expr: 1}, 0)


def _is_widened(term: Expr, dtype: DType) -> bool:
    """Whether a term is converted to a wider type, after it may have wrapped; narrower ones than an int are computed
    in one.
    """
    return INT32.bits <= term.dtype.bits < dtype.bits


def is_not_negative(sum_: Linear) -> bool:
    """Whether a sum is one of sizes and of numbers that are not negative."""
    sizes = all(isinstance(atom, Var) and atom.role is Role.SIZE and n > 0 for atom, n in sum_.terms.items())
    return sizes and sum_.constant >= 0


def is_wide(dtype: DType) -> bool:
    return dtype.kind == "int" and dtype.bits >= 32


def rest_of_sum(expr: Expr, var: Var) -> Expr | None:
    """What is added to a variable; None where the expression is no sum with it."""
    if expr == var:
        return int_const(0)
    if not isinstance(expr, Binary) or expr.op not in ("+", "-"):
        return None
    in_left = var in walk(expr.lhs)
    rest = rest_of_sum(expr.lhs if in_left else expr.rhs, var) if in_left or expr.op == "+" else None
    if rest is None:
        return None
    if static_value(rest) == 0 and expr.op == "+":
        return expr.rhs if in_left else expr.lhs
    return binary(expr.op, rest, expr.rhs) if in_left else binary("+", expr.lhs, rest)
