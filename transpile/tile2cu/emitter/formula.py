"""A kernel's formula in the head of its file."""

from collections import Counter
from collections.abc import Iterator
from math import isinf

from tile2cu.analysis.formula import Formula, formulas
from tile2cu.analysis.sum_terms import MAX, MIN, SUM
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Named, Unary, Var, static_value, substitute, walk
from tile2cu.core.program import Buffer, Program
from tile2cu.styles.base.expressions import PRECEDENCE
from tile2cu.styles.base.names import ascii_name

_LONGEST = 230  # characters: two lines; a longer one explains nothing
_OVER = {SUM: "sum", MAX: "max", MIN: "min"}
_UNARY, _PRIMARY = 11, 12


def formula_lines(program: Program) -> tuple[str, ...]:
    """`C[m, n] = sum_k(A[m, k] * B[k, n])` for each output; none where one is unknown, or too long to read."""
    lines = tuple(map(_line, formulas(program)))
    return lines if all(len(line) <= _LONGEST for line in lines) else ()


def _line(formula: Formula) -> str:
    """The formula, with names for sums that it has more than once."""
    value, where = _named_sums(formula.value)
    text = f"{_element(formula.output, formula.indices)} = {_text(value, 0)}"
    return text + "".join(f", where {name.name} = {_text(each, 0)}" for name, each in where)


def _named_sums(value: Expr) -> tuple[Expr, list[tuple[Named, Expr]]]:
    """The expression with a name for each sum that occurs more than once, the shortest first, and the sums."""
    taken = {part.name for part in walk(value) if isinstance(part, Var | Named)}
    bound = set(_bound(value))
    where: list[tuple[Named, Expr]] = []
    for name in sorted(set("stuvw") - taken):
        parts = [value, *(each for _, each in where)]
        counted = Counter(each for part in parts for each in _sums(part))
        repeated = [each for each, times in counted.items() if times > 1 and not _free(each) & bound]
        if not repeated:
            break
        chosen = min(repeated, key=lambda each: len(_text(each, 0)))
        named = Named(chosen.dtype, name, 0)
        value = substitute(value, {chosen: named})
        where = [*((other, substitute(each, {chosen: named})) for other, each in where), (named, chosen)]
    return value, where[::-1]


def _free(value: Call) -> set[Var]:
    """The variables of an expression that no sum in it binds."""
    return {part for part in walk(value) if isinstance(part, Var)} - set(_bound(value))


def _bound(value: Expr) -> Iterator[Var]:
    """The variables of the sums in an expression."""
    for each in _sums(value):
        if isinstance(each.args[0], Var):
            yield each.args[0]


def _sums(value: Expr) -> Iterator[Call]:
    """The sums, maxima and minima in an expression, each time that they occur."""
    yield from (part for part in walk(value) if isinstance(part, Call) and part.function in _OVER)


def _element(buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    return f"{ascii_name(buffer.name)}[{', '.join(_text(index, 0) for index in indices)}]"


def _text(expr: Expr, outer: int) -> str:
    """An expression as Python has it, in brackets where it binds less tightly than `outer`."""
    match expr:
        case Named(name=name) | Var(name=name):
            return ascii_name(name)
        case Const(value=value):
            return f"{'-' * (value < 0)}infinity" if isinstance(value, float) and isinf(value) else f"{value:.8g}"
        case Load(buffer=buffer, indices=indices) if isinstance(buffer, Buffer):
            return _element(buffer, indices)
        case Unary(op=op, operand=operand):
            return _bracketed(f"{op}{' ' * (op == 'not')}{_text(operand, _UNARY)}", _UNARY, outer)
        case Binary(op="**", lhs=lhs, rhs=rhs):
            return _bracketed(f"{_text(lhs, _PRIMARY)}**{_text(rhs, _PRIMARY)}", _UNARY, outer)
        case Binary(op=op, lhs=lhs, rhs=rhs):
            inner = PRECEDENCE[op]
            return _bracketed(f"{_text(lhs, inner)} {op} {_text(rhs, inner + 1)}", inner, outer)
        case Call():
            return _called(expr, outer)
        case _:
            return str(static_value(expr))


def _called(call: Call, outer: int) -> str:
    match call:
        case Call(function="if_then_else", args=(condition, then, other)):
            return _bracketed(f"{_text(then, 1)} if {_text(condition, 1)} else {_text(other, 0)}", 0, outer + 1)
        case Call(function="infinity"):
            return "infinity"
        case Call(function=function, args=(var, _, term)) if function in _OVER:
            return f"{_OVER[function]}_{_text(var, 0)}({_text(term, 0)})"
        case _:
            return f"{call.function}({', '.join(_text(arg, 0) for arg in call.args)})"


def _bracketed(text: str, inner: int, outer: int) -> str:
    return f"({text})" if inner < outer else text
