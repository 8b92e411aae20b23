"""Scalar functions of the tile language. Numbers stay numbers where the result is exact; the rest is program."""

from collections.abc import Callable
from functools import partial

from tile2cu.core.dtype import BOOL, FLOAT32, INT32, UINT32, DType
from tile2cu.core.expr import Call, Const, Expr, Role, Var, as_value, binary, is_weak, result_dtype, static_value
from tile2cu.frontend import builtins, operators
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Demand, Fault
from tile2cu.frontend.lower.operand import as_dtype, as_number, as_shape, as_word
from tile2cu.frontend.operators import truth
from tile2cu.frontend.values import Builtin, Opaque, as_expr, describe, from_expr


def cast_to(dtype: DType) -> Builtin:
    """`T.float32(x)`: the conversion that a type is when it is called."""

    def run(cx: Context, value: object) -> object:
        return cast(cx, value, dtype)

    return Builtin(f"T.{dtype.name}", run)


def cast(cx: Context, value: object, dtype: object, **options: object) -> object:
    """`T.cast(value, dtype)`: the value converted in the program."""
    to = as_dtype(dtype, "the type of T.cast")
    written = as_number(value, "the value of T.cast")
    if isinstance(written, Const):
        of_type = written.dtype.is_float and not written.weak
        number = as_value(written.value, written.dtype) if of_type else written.value
        found = number if number is None or to.is_float else as_value(number, to)
        if found is not None:
            return Const(to, float(found) if to.is_float else found, weak=False)
    if written.dtype == to and not is_weak(written):
        return written
    return cx.expression(Call(to, "cast", (written,)))


def ceildiv(cx: Context, a: object, b: object) -> object:
    """`T.ceildiv(a, b)`: the quotient rounded up."""
    left, right = as_number(a, "an argument of T.ceildiv"), as_number(b, "an argument of T.ceildiv")
    if static_value(right) == 0:
        raise Fault("T2C-F014", "T.ceildiv divides by zero")
    if left.dtype.is_float or right.dtype.is_float:
        raise Fault("T2C-F014", f"T.ceildiv takes integers, not {left.dtype} and {right.dtype}")
    return from_expr(cx.expression(Call(result_dtype(left, right), "ceildiv", (left, right))))


def infinity(cx: Context, dtype: object = FLOAT32) -> object:
    """`T.infinity(dtype)`."""
    to = as_dtype(dtype, "the type of T.infinity")
    if not to.is_float:
        raise Fault("T2C-F018", f"{to} has no infinity")
    return Call(to, "infinity", ())


def if_then_else(cx: Context, condition: object, then: object, orelse: object) -> object:
    """`T.if_then_else(c, a, b)`: a select; the arm not taken is not evaluated."""
    written = as_expr(condition)
    if written is None:
        return then if truth(condition, "the condition of T.if_then_else") else orelse
    if isinstance(written, Var) and written.role is Role.SIZE:
        raise Demand("the condition of T.if_then_else", (written.name,))
    number = static_value(written)
    if number is not None:
        return then if number else orelse
    return select(cx, written, then, orelse)


def select(cx: Context, condition: Expr, then: object, orelse: object) -> object:
    """`then if condition else orelse` in the program; both arms get one type."""
    left, right = as_expr(then), as_expr(orelse)
    if left is None or right is None:
        wrong = then if left is None else orelse
        raise Fault("T2C-F007", f"a run-time condition cannot choose {describe(wrong)}")
    return cx.expression(Call(result_dtype(left, right), "if_then_else", (condition, left, right)))


def _extreme(name: str, cx: Context, /, a: object, b: object) -> object:
    """`T.max(a, b)` and `T.min(a, b)`."""
    return builtins.extreme(cx, name, [a, b])


def clamp(cx: Context, dst: object, min_val: object, max_val: object) -> object:
    """`T.clamp(x, low, high)`."""
    return builtins.extreme(cx, "min", [builtins.extreme(cx, "max", [dst, min_val]), max_val])


_HALVES = {"ties-to-even": "round", "ties-away-from-zero": "round_away"}


def round_to_integer(cx: Context, value: object, rounding_mode: object = "ties-to-even") -> object:
    """`T.round(x, rounding_mode)`: halves to even, or away from zero."""
    mode = as_word(rounding_mode, "`rounding_mode` of T.round", _HALVES)
    return _function(_HALVES[mode], cx, value)


def align_up(cx: Context, value: object, alignment: object) -> object:
    """`T.align_up(x, n)`: the least multiple of n that is no less than x."""
    return operators.binary(cx.budget, "*", ceildiv(cx, value, alignment), alignment)


def _connective(name: str, word: str, cx: Context, /, a: object, b: object) -> object:
    """`T.And(a, b)` and `T.Or(a, b)`: a part that is known now leaves the other, or decides."""
    left, right = as_number(a, f"an argument of T.{name}"), as_number(b, f"an argument of T.{name}")
    for known, other in ((left, right), (right, left)):
        value = static_value(known)
        if value is not None:
            return from_expr(other) if bool(value) == (word == "and") else word == "or"
    return operators.binary_logical(cx.budget, word, left, right)


def negation(cx: Context, value: object) -> object:
    """`T.Not(a)`."""
    condition = as_number(value, "T.Not")
    known = static_value(condition)
    return operators.negation(cx.budget, condition) if known is None else not known


def _operator(name: str, op: str, cx: Context, /, a: object, b: object) -> object:
    """A function that is the same as an operator."""
    as_number(a, f"an argument of T.{name}")
    as_number(b, f"an argument of T.{name}")
    return operators.binary(cx.budget, op, a, b)


def _function(name: str, cx: Context, /, value: object) -> object:
    """A function of one number; integers are converted to float32 first."""
    argument = as_number(value, f"an argument of T.{name}")
    dtype = argument.dtype if argument.dtype.is_float else FLOAT32
    if not argument.dtype.is_float and not is_weak(argument):
        argument = Call(FLOAT32, "cast", (argument,))
    return cx.expression(Call(dtype, name, (argument,)))


def _function_of_two(name: str, cx: Context, /, a: object, b: object) -> object:
    """A function of two floating-point numbers."""
    left, right = as_number(a, f"an argument of T.{name}"), as_number(b, f"an argument of T.{name}")
    dtype = result_dtype(left, right)
    return cx.expression(Call(dtype if dtype.is_float else FLOAT32, name, (left, right)))


def _test(name: str, cx: Context, /, value: object) -> object:
    """A question about a floating-point number."""
    return cx.expression(Call(BOOL, name, (as_number(value, f"an argument of T.{name}"),)))


def reinterpret(cx: Context, value: object, dtype: object) -> object:
    """`T.reinterpret(value, dtype)`: the same bits as another type; the older order is read, too."""
    if dtype == "handle":
        return Opaque("a handle")
    if isinstance(value, str | DType) and not isinstance(dtype, str | DType):
        value, dtype = dtype, value
    to, written = as_dtype(dtype, "the type of T.reinterpret"), as_number(value, "the value of T.reinterpret")
    if to.bits != written.dtype.bits:
        raise Fault("T2C-F023", f"T.reinterpret of {written.dtype} as {to}: they differ in width")
    return written if to == written.dtype else cx.expression(Call(to, "reinterpret", (written,)))


def _power(cx: Context, base: object, exponent: object) -> object:
    """`T.pow(x, y)`; of integers, an integer."""
    left, right = as_number(base, "an argument of T.pow"), as_number(exponent, "an argument of T.pow")
    return operators.binary(cx.budget, "**", left, right)


def absolute(cx: Context, value: object) -> object:
    """`T.abs(x)`."""
    argument = as_number(value, "an argument of T.abs")
    return cx.expression(Call(argument.dtype, "abs", (argument,)))


def bitwise_not(cx: Context, value: object) -> object:
    """`T.bitwise_not(x)`."""
    return operators.unary(cx.budget, "~", value)


def index_to_coordinates(cx: Context, index: object, shape: object) -> object:
    """`T.index_to_coordinates(i, shape)`: the coordinates of the i-th element in row-major order."""
    rest = as_number(index, "the index of T.index_to_coordinates")
    found: list[object] = []
    for extent in reversed(as_shape(cx, shape, "the shape of T.index_to_coordinates")[1:]):
        found.insert(0, from_expr(cx.expression(binary("%", rest, extent))))
        rest = binary("//", rest, extent)
    return [from_expr(cx.expression(rest)), *found]


def _cast_to_first(cx: Context, dtype: object, value: object) -> object:
    """`T.Cast(dtype, value)`, the older order."""
    return cast(cx, value, dtype)


def first_set(cx: Context, value: object) -> object:
    """`T.__ffs(x)`: the number of the lowest bit that is set, from 1 on; 0 where none is."""
    bits = _bits(value, "__ffs")
    return cx.expression(Call(INT32, "first_set", (bits,)))


def nth_set(cx: Context, value: object, base: object, offset: object) -> object:
    """`T.__fns(mask, base, n)`: the place of the n-th bit that is set, from `base` on."""
    arguments = zip((value, base, offset), (UINT32, UINT32, INT32), strict=True)
    parts = (as_number(cast(cx, _bits(each, "__fns"), to), "an argument of T.__fns") for each, to in arguments)
    return cx.expression(Call(UINT32, "nth_set", tuple(parts)))


def popcount(cx: Context, value: object) -> object:
    """`T.popcount(x)`: how many bits are set, in the type of x."""
    bits = _bits(value, "popcount")
    return cx.expression(Call(bits.dtype, "popcount", (bits,)))


def _truncating(name: str, rounded: Callable[[int, int], int], cx: Context, /, a: object, b: object) -> object:
    """`T.truncdiv(a, b)` and `T.truncmod(a, b)`: the quotient rounded toward zero, and what it leaves."""
    left, right = _bits(a, name), _bits(b, name)
    if static_value(right) == 0:
        raise Fault("T2C-F014", f"T.{name} divides by zero")
    if isinstance(a, int) and isinstance(b, int):
        return rounded(int(a), int(b))
    return cx.expression(Call(result_dtype(left, right), name, (left, right)))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def largest(cx: Context, dtype: object) -> object:
    """`T.max_value(dtype)`: the largest finite number of a type."""
    return _limit(as_dtype(dtype, "the type of T.max_value"), lowest=False)


def smallest(cx: Context, dtype: object) -> object:
    """`T.min_value(dtype)`: the lowest finite number of a type."""
    return _limit(as_dtype(dtype, "the type of T.min_value"), lowest=True)


def _limit(of: DType, *, lowest: bool) -> object:
    """A plain number, which takes the type of what it is computed with; one that needs 64 bits has its own."""
    if of.is_float:
        return -of.largest if lowest else of.largest
    signed = of.kind == "int"
    value = (-(2 ** (of.bits - 1)) if signed else 0) if lowest else 2 ** (of.bits - signed) - 1
    return value if of.bits < 64 else Const(of, value, weak=False)


def _bits(value: object, name: str) -> Expr:
    found = as_number(value, f"an argument of T.{name}")
    if found.dtype.is_float:
        raise Fault("T2C-F018", f"T.{name} takes integers, not {found.dtype}")
    return found


_OPERATORS = {
    "floordiv": "//",
    "floormod": "%",
    "indexdiv": "//",
    "indexmod": "%",
    "shift_left": "<<",
    "shift_right": ">>",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_UNARY = (
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "sigmoid", "floor", "ceil",
    "trunc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "erf",
)  # fmt: skip
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")  # T.__exp and so on

FUNCTIONS: dict[str, Callable[..., object]] = {
    "cast": cast,
    "Cast": _cast_to_first,
    "ceildiv": ceildiv,
    "infinity": infinity,
    "if_then_else": if_then_else,
    "max": partial(_extreme, "max"),
    "min": partial(_extreme, "min"),
    "clamp": clamp,
    "round": round_to_integer,
    "nearbyint": partial(_function, "round"),
    "align_up": align_up,
    "abs": absolute,
    "index_to_coordinates": index_to_coordinates,
    "bitwise_not": bitwise_not,
    "And": partial(_connective, "And", "and"),
    "Or": partial(_connective, "Or", "or"),
    "Not": negation,
    **{name: partial(_operator, name, op) for name, op in _OPERATORS.items()},
    "Select": if_then_else,
    "reinterpret": reinterpret,
    "pow": _power,
    "power": _power,
    "fmod": partial(_function_of_two, "fmod"),
    "copysign": partial(_function_of_two, "copysign"),
    "atan2": partial(_function_of_two, "atan2"),
    "__ffs": first_set,
    "__fns": nth_set,
    "popcount": popcount,
    "truncdiv": partial(_truncating, "truncdiv", _quotient),
    "truncmod": partial(_truncating, "truncmod", lambda a, b: a - b * _quotient(a, b)),
    "max_value": largest,
    "min_value": smallest,
    **{name: partial(_test, name) for name in ("isfinite", "isnan", "isinf")},
    **{name: partial(_function, name) for name in _UNARY},
    **{f"__{name}": partial(_function, name) for name in _FAST},
}
