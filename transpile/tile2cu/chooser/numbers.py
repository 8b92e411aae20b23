"""Integer expressions of a program as Python closures: compiled once, evaluated for each configuration and size."""

from collections.abc import Callable, Mapping
from operator import add, and_, eq, floordiv, ge, gt, le, lshift, lt, mod, mul, ne, or_, rshift, sub, truediv, xor

from tile2cu.core.expr import Binary, Call, Const, Expr, Named, Unary, Var

Values = dict[str, int]
Number = Callable[[Values], int]

_OPERATORS: Mapping[str, Callable[[int, int], int | float]] = {
    "+": add, "-": sub, "*": mul, "//": floordiv, "%": mod, "/": truediv, "&": and_, "|": or_, "^": xor,
    "<<": lshift, ">>": rshift, "<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne,
}  # fmt: skip


class Unknown(Exception):
    """A count depends on values in memory, on the thread, or on a variable that nothing binds."""


def key_of(var: Var) -> str:
    """The key of a variable among values."""
    return f"{var.role.value}:{var.name}:{var.number}"


def parameter_key(name: str) -> str:
    """The key of a factory's parameter among values: it replaces the number that the program has."""
    return f"parameter:{name}"


def number(expr: Expr) -> Number:
    """A closure that evaluates the expression; it raises Unknown where the values do not determine it."""
    match expr:
        case Named():
            return _named(parameter_key(expr.name), expr.value)
        case Const():
            constant = int(expr.value) if isinstance(expr.value, int) else 0
            return lambda values: constant
        case Var():
            return _variable(key_of(expr))
        case Unary():
            return _unary(expr.op, number(expr.operand))
        case Binary(op="and" | "or" as op):
            return _logical(op, number(expr.lhs), number(expr.rhs))
        case Binary() if expr.op in _OPERATORS:
            return _binary(_OPERATORS[expr.op], number(expr.lhs), number(expr.rhs))
        case Call():
            return _call(expr.function, tuple(map(number, expr.args)))
        case _:
            return _unknown


def _unknown(values: Values) -> int:
    raise Unknown


def _named(key: str, default: int | float) -> Number:
    value = int(default) if isinstance(default, int) else 0
    return lambda values: values.get(key, value)


def _variable(key: str) -> Number:
    def of(values: Values) -> int:
        try:
            return values[key]
        except KeyError:
            raise Unknown from None

    return of


def _unary(op: str, operand: Number) -> Number:
    match op:
        case "-":
            return lambda values: -operand(values)
        case "not":
            return lambda values: int(not operand(values))
        case "~":
            return lambda values: ~operand(values)
        case _:
            return _unknown


def _logical(op: str, lhs: Number, rhs: Number) -> Number:
    if op == "and":
        return lambda values: lhs(values) and rhs(values)
    return lambda values: lhs(values) or rhs(values)


def _binary(operation: Callable[[int, int], int | float], lhs: Number, rhs: Number) -> Number:
    def of(values: Values) -> int:
        try:
            return int(operation(lhs(values), rhs(values)))
        except (ZeroDivisionError, ValueError):
            raise Unknown from None

    return of


def _call(function: str, args: tuple[Number, ...]) -> Number:
    match function, args:
        case "ceildiv", (dividend, divisor):
            return lambda values: -_binary(floordiv, lambda v: -dividend(v), divisor)(values)
        case "if_then_else", (condition, then, orelse):
            return lambda values: then(values) if condition(values) else orelse(values)
        case "max", _:
            return lambda values: max(arg(values) for arg in args)
        case "min", _:
            return lambda values: min(arg(values) for arg in args)
        case "cast", (operand,):
            return operand
        case _:
            return _unknown
