"""Arithmetic whose rounding is stated: T.ieee_add and its kin."""

from collections.abc import Callable
from functools import partial, reduce

from tile2cu.core.dtype import FLOAT32, FLOAT64, promote
from tile2cu.core.expr import ROUNDINGS, Call, is_weak
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_number, as_word

_OF_ONE = {"frcp": "reciprocal", "fsqrt": "sqrt"}
_OF_TWO = {"add": "add", "sub": "subtract", "mul": "multiply", "fdiv": "divide"}


def _rounded(cx: Context, name: str, function: str, operands: tuple[object, ...], mode: object) -> object:
    """A function of floating-point numbers of one type, rounded once."""
    mode = as_word(mode, f"`rounding_mode` of T.{name}", ROUNDINGS)
    numbers = [as_number(each, f"an operand of T.{name}") for each in operands]
    wrong = next((each.dtype for each in numbers if not (each.dtype.is_float or is_weak(each))), None)
    if wrong is not None:
        raise Fault("T2C-F018", f"T.{name} takes floating-point numbers, not {wrong}")
    typed = [each.dtype for each in numbers if not is_weak(each)]
    common = reduce(promote, typed) if typed else FLOAT32
    if common not in (FLOAT32, FLOAT64) and mode != "rn":
        raise Fault("T2C-F023", f"T.{name} of {common} rounds to nearest only", help="convert to float32 first")
    return cx.expression(Call(common, f"{function}_{mode}", tuple(numbers)))


def ieee_frsqrt(cx: Context, x: object) -> object:
    """`T.ieee_frsqrt(x)`: 1 / sqrt(x), rounded to nearest."""
    if as_number(x, "the operand of T.ieee_frsqrt").dtype == FLOAT64:
        raise Fault("T2C-F018", "T.ieee_frsqrt takes float32, not float64", help="write 1.0 / T.sqrt(x)")
    return _rounded(cx, "ieee_frsqrt", "rsqrt", (x,), "rn")


def _of_one(name: str, function: str, cx: Context, /, x: object, rounding_mode: object = "rn") -> object:
    return _rounded(cx, name, function, (x,), rounding_mode)


def _of_two(name: str, function: str, cx: Context, /, x: object, y: object, rounding_mode: object = "rn") -> object:
    return _rounded(cx, name, function, (x, y), rounding_mode)


def _of_three(
    name: str, function: str, cx: Context, /, x: object, y: object, z: object, rounding_mode: object = "rn"
) -> object:
    return _rounded(cx, name, function, (x, y, z), rounding_mode)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "ieee_frsqrt": ieee_frsqrt,
    **{f"ieee_{name}": partial(_of_two, f"ieee_{name}", function) for name, function in _OF_TWO.items()},
    **{f"ieee_{name}": partial(_of_one, f"ieee_{name}", function) for name, function in _OF_ONE.items()},
    "ieee_fmaf": partial(_of_three, "ieee_fmaf", "fma"),
}
