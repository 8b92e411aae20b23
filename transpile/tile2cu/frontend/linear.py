"""Differences of index expressions: `(by + 1) * block_M - by * block_M` is `block_M`."""

from collections.abc import Mapping

from tile2cu.core import expr as ex
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Binary, Const, Expr, Named, Unary, int_const, static_value

Monomial = tuple[Expr, ...]  # a product of atoms, in a canonical order
Sum = Mapping[Monomial, int]
MAX_TERMS = 64


def difference(stop: Expr, start: Expr) -> Expr:
    """`stop - start`, simplified: a number or a product of names where the rest cancels."""
    if static_value(start) == 0:
        return stop
    for atoms in (True, False):  # first with names kept, then with their values
        terms = _add(_expand(stop, atoms), _expand(start, atoms), -1)
        if len(terms) <= 1 or all(not monomial for monomial in terms):
            return _written(terms)
        if all(static_value(atom) is not None for monomial in terms for atom in monomial):
            return _written(terms)
    return ex.binary("-", stop, start)


def number_of(expr: Expr) -> int | None:
    """The number that a sum is where all else in it cancels."""
    terms = _expand(expr, atoms=False)
    return terms.get((), 0) if all(not monomial for monomial in terms) else None


def _expand(expr: Expr, atoms: bool) -> Sum:
    """The expression as a sum of products. `atoms`: whether a named number stays a name."""
    value = static_value(expr)
    match expr:
        case Const() if isinstance(value, int):
            return {(): value} if value else {}
        case Named() if atoms:
            return {(expr,): 1}
        case Unary(op="-"):
            return _add({}, _expand(expr.operand, atoms), -1)
        case Binary(op="+" | "-"):
            sign = 1 if expr.op == "+" else -1
            return _add(_expand(expr.lhs, atoms), _expand(expr.rhs, atoms), sign)
        case Binary(op="*"):
            product = _multiply(_expand(expr.lhs, atoms), _expand(expr.rhs, atoms))
            return {(expr,): 1} if product is None else product
        case _ if isinstance(value, int) and not atoms:
            return {(): value} if value else {}
        case _:
            return {(expr,): 1}


def _add(a: Sum, b: Sum, sign: int) -> Sum:
    terms = dict(a)
    for monomial, count in b.items():
        terms[monomial] = terms.get(monomial, 0) + sign * count
    return {monomial: count for monomial, count in terms.items() if count}


def _multiply(a: Sum, b: Sum) -> Sum | None:
    """The product of two sums; None if it would be unreasonably long."""
    if len(a) * len(b) > MAX_TERMS:
        return None
    terms: dict[Monomial, int] = {}
    for left, left_count in a.items():
        for right, right_count in b.items():
            monomial = tuple(sorted(left + right, key=repr))
            terms[monomial] = terms.get(monomial, 0) + left_count * right_count
    return {monomial: count for monomial, count in terms.items() if count}


def _written(terms: Sum) -> Expr:
    """The sum as an expression again."""
    total: Expr = Const(INT32, 0)
    for monomial, count in terms.items():
        product: Expr = int_const(count)
        for atom in monomial:
            product = ex.binary("*", product, atom)
        total = ex.binary("+", total, product)
    return total
