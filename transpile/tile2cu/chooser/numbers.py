"""Integer expressions of a program as Python functions: compiled once, evaluated for each configuration and size."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tile2cu.core.expr import Binary, Call, Const, Expr, Named, Unary, Var

Values = dict[str, int]
Number = Callable[[Values], int]

_OPERATORS = frozenset(
    ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "and", "or")
)
_KEPT = 1 << 14
_FUNCTION = """def of(v):
    try:
        return {}
    except (KeyError, ZeroDivisionError, ValueError):
        raise Unknown from None
"""
_ASSIGNMENT = """
    try:
        v[{0!r}] = {1}
    except (Unknown, KeyError, ZeroDivisionError, ValueError):
        v.pop({0!r}, None)
"""
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


def assignments(values: Sequence[tuple[str, Expr]]) -> Callable[[Values], None]:
    """A function that adds these values by their keys, one after the other, and removes those that are Unknown."""
    parts: list[Number] = []
    lines = [_ASSIGNMENT.format(key, _code(value, parts, _DEEPEST)) for key, value in values]
    names = _NAMES | {"parts": parts}
    exec("def assign(v):\n    pass\n" + "".join(lines), names)
    function: Callable[[Values], None] = names["assign"]
    return function


@lru_cache(maxsize=_KEPT)
def _compiled(code: str, parts: tuple[Number, ...]) -> Number:
    """The function of an expression in Python over the values `v`, and over functions of its `parts`."""
    names = _NAMES | {"parts": parts}
    exec(_FUNCTION.format(code), names)  # one call, with what turns its errors into Unknown
    function: Number = names["of"]
    return function


def _unknown() -> int:
    raise Unknown


_NAMES: dict[str, Any] = {"unknown": _unknown, "Unknown": Unknown}


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
        case "saturating_add", [lhs, rhs]:
            return f"({lhs} + {rhs})"
        case "if_then_else", [condition, then, orelse]:
            return f"({then} if {condition} else {orelse})"
        case (("max" | "min"), [_, *_]):
            return f"{function}(({', '.join(args)},))"
        case "cast", [operand]:
            return operand
        case _:
            return "unknown()"
