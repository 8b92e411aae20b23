"""`import tile2cu.tilelang.language as T`: the tile language's names, for files that are run.

Kernels are read from their text. As objects, the names serve annotations, defaults and decorators; the functions that
programs call on the host, with numbers, are here.
"""

import builtins
import math
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tile2cu.core.dtype import BY_NAME
from tile2cu.frontend import language as read_language
from tile2cu.frontend.fault import did_you_mean
from tile2cu.tilelang import layout as layouts
from tile2cu.tilelang.primfunc import PrimFunc
from tile2cu.tilelang.symbols import DType, Symbol

_QUALIFIED = "tilelang.language"


def prim_func(func: FunctionType | None = None, **options: Any) -> Any:
    """`@T.prim_func`: the function is read when it is compiled."""
    frame = sys._getframe(1)
    return PrimFunc(func, frame) if func is not None else lambda function: PrimFunc(function, frame)


def macro(func: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`@T.macro`: the function as it is, which is read where a kernel calls it."""
    return func if func is not None else lambda function: function


def dtype(value: Any) -> DType:
    """`T.dtype("float16")`, also of torch's types."""
    return DType(value)


def dynamic(names: str, dtype: Any = "int32") -> Any:
    """`T.dynamic("m, n")`: one symbol, or a tuple of them."""
    found = tuple(Symbol(name) for name in names.replace(",", " ").split())
    return found[0] if len(found) == 1 else found


symbolic = dynamic


def _of_numbers(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def called(*values: Any, **options: Any) -> Any:
        symbolic = any(isinstance(value, Symbol) for value in values)
        return Symbol(f"T.{name}(...)") if symbolic else run(*values, **options)

    return called


_HOST: dict[str, Callable[..., Any]] = {
    "ceildiv": lambda a, b: -(-a // b),
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "max": builtins.max,
    "min": builtins.min,
    "log2": math.log2,
    "exp2": lambda value: 2.0**value,
    "sqrt": math.sqrt,
    "infinity": lambda dtype: math.inf,
}


def __getattr__(name: str) -> Any:
    """Every name of the language; AttributeError for others, as TileLang has it."""
    if name in BY_NAME:
        return DType(name)
    if name in ("Layout", "Fragment"):
        return getattr(layouts, name)
    if name in _HOST:
        return _of_numbers(name, _HOST[name])
    if read_language.is_name(name):
        return Symbol(f"T.{name}", f"{_QUALIFIED}.{name}")
    hint = did_you_mean(name, [*BY_NAME], "T.")
    raise AttributeError(f"the tile language has no name {name!r}" + (f": {hint}" if hint else ""))
