"""Shape expressions of a manifest: `M`, `128`, `M // 2`, `(N + 127) // 128`, evaluated over integers."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tile2cu_runtime.errors import ManifestError

_LONGEST = 500
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class Extent:
    """An extent of a tensor, in elements: an expression over the sizes in `names`."""

    text: str
    names: frozenset[str]

    @property
    def is_plain(self) -> bool:
        """Whether the extent is a size, which a tensor's shape then determines."""
        return self.text in self.names

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The extent's value; `sizes` must contain every name in `names`."""
        if self.is_plain:
            return sizes[self.text]
        return _evaluate(_parse(self.text), sizes) if self.names else int(self.text)

    def __str__(self) -> str:
        return self.text


@functools.lru_cache
def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


Shape = tuple[Extent, ...]


def parse_extent(value: object, where: str) -> Extent:
    """An extent of the manifest. Errors: T2C-R002 when it is neither an integer nor a simple expression."""
    text = str(value).strip()
    # JSON numbers and strings; bool is a subclass of int in Python.
    if type(value) not in (int, str) or len(text) > _LONGEST:
        raise ManifestError("T2C-R002", f"{where}: {value!r} is not an extent")
    try:
        tree = _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ManifestError("T2C-R002", f"{where}: {value!r} is not an expression") from None
    names: set[str] = set()
    if not _is_simple(tree, names):
        help = "integers, sizes, + - * // %, ceildiv, min and max"
        raise ManifestError("T2C-R002", f"{where}: {value!r} is not a simple expression", help=help)
    if names:
        return Extent(text, frozenset(names))
    try:
        constant = _evaluate(tree, {})
    except ZeroDivisionError:
        constant = -1
    if constant < 0:
        raise ManifestError("T2C-R002", f"{where}: {value!r} is not a number of elements")
    return Extent(str(constant), frozenset())


def _is_simple(node: ast.expr, names: set[str]) -> bool:
    """Whether the node is in the expression language; collects the sizes it uses."""
    match node:
        case ast.Constant(value=int() as value):
            return not isinstance(value, bool)
        case ast.Name(id=name):
            names.add(name)
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_simple(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            return type(op) in _OPERATORS and _is_simple(left, names) and _is_simple(right, names)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]):
            return name in _FUNCTIONS and _is_simple(left, names) and _is_simple(right, names)
    return False


def _evaluate(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_evaluate(left, sizes), _evaluate(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            return _FUNCTIONS[name](_evaluate(left, sizes), _evaluate(right, sizes))
    raise AssertionError(f"not a simple expression: {ast.dump(node)}")
