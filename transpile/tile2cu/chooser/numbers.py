"""Integer expressions of a program as Python functions: compiled once, evaluated for each configuration and size."""

from collections.abc import Callable
from functools import lru_cache

from tile2cu.core.expr import Binary, Call, Const, Expr, Named, Unary, Var

Values = dict[str, int]
Number = Callable[[Values], int]

_OPERATORS = frozenset(
    ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "and", "or")
)
_KEPT = 1 << 14
_DEEPEST = 40  # parentheses within one another; Python's parser takes some 200


class Unknown(Exception):
    """A count depends on values in memory, on the thread, or on a variable that nothing binds."""


def key_of(var: Var) -> str:
    """The key of a variable among values."""
    return f"{var.role.value}:{var.name}:{var.number}"


def parameter_key(name: str) -> str:
    """The key of a factory's parameter among values: it replaces the number that the program has."""
    return f"parameter:{name}"


def number(expr: Expr) -> Number:
    """A function that evaluates the expression; it raises Unknown where the values do not determine it."""
    parts: list[Number] = []
    return _compiled(_code(expr, parts, _DEEPEST), tuple(parts))


@lru_cache(maxsize=_KEPT)
def _compiled(code: str, parts: tuple[Number, ...]) -> Number:
    """The function of an expression in Python over the values `v`, and over functions of its `parts`."""
    evaluate: Number = eval(f"lambda v: {code}", {"unknown": _unknown, "parts": parts})

    def of(values: Values) -> int:
        try:
            return int(evaluate(values))
        except (KeyError, ZeroDivisionError, ValueError):
            raise Unknown from None

    return of


def _unknown() -> int:
    raise Unknown


def _code(expr: Expr, parts: list[Number], depth: int) -> str:
    """The expression in Python; `parts` get what is deeper."""
    if not depth:
        parts.append(number(expr))
        return f"parts[{len(parts) - 1}](v)"
    match expr:
        case Named():
            value = int(expr.value) if isinstance(expr.value, int) else 0
            return f"v.get({parameter_key(expr.name)!r}, {value})"
        case Const():
            return f"({int(expr.value) if isinstance(expr.value, int) else 0})"
        case Var():
            return f"v[{key_of(expr)!r}]"
        case Unary(op="-" | "not" | "~" as op):
            return f"({op} {_code(expr.operand, parts, depth - 1)})"
        case Binary():
            return _binary(expr.op, *(_code(each, parts, depth - 1) for each in (expr.lhs, expr.rhs)))
        case Call():
            return _call(expr.function, [_code(each, parts, depth - 1) for each in expr.args])
        case _:
            return "unknown()"


def _binary(op: str, lhs: str, rhs: str) -> str:
    if op == "/":
        return f"int({lhs} / {rhs})"
    return f"({lhs} {op} {rhs})" if op in _OPERATORS else "unknown()"


def _call(function: str, args: list[str]) -> str:
    match function, args:
        case "ceildiv", [dividend, divisor]:
            return f"(-(-{dividend} // {divisor}))"
        case "if_then_else", [condition, then, orelse]:
            return f"({then} if {condition} else {orelse})"
        case (("max" | "min"), [_, *_]):
            return f"{function}(({', '.join(args)},))"
        case "cast", [operand]:
            return operand
        case _:
            return "unknown()"
