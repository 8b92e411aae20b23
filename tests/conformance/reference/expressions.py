"""Scalar expressions, for many elements side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tests.conformance.reference.lanes import VOTES_OF_BLOCK, among_lanes
from tests.conformance.reference.memory import Memory
from tests.conformance.reference.numbers import (
    Array,
    CannotInterpret,
    KernelFault,
    converted,
    numpy_dtype,
    reinterpreted,
    rounded,
    rounded_as,
    working_dtype,
)
from tests.conformance.reference.philox import Generators
from tile2cu.core.dtype import BOOL, DType
from tile2cu.core.expr import (
    OF_THREAD,
    ROUNDINGS,
    Address,
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Named,
    Unary,
    Var,
    is_weak,
    result_dtype,
)
from tile2cu.core.program import Buffer

_ERF = np.vectorize(__import__("math").erf, otypes=[np.float64])
_UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "round_away": lambda x: np.trunc(x + np.copysign(0.5, x)), "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "erf": _ERF, "isfinite": np.isfinite, "isnan": np.isnan, "isinf": np.isinf,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "<<": np.left_shift, ">>": np.right_shift,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "**": np.power,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "max": np.fmax, "min": np.fmin, "pow": np.power, "fmod": np.fmod, "copysign": np.copysign,
    "atan2": np.arctan2, "divide": np.divide,
    "saturating_add": lambda a, b: np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(np.int32),
}  # fmt: skip
_STATED: dict[str, Callable[..., Array]] = {  # T.ieee_add and its kin, before they round
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "fma": lambda x, y, z: x * y + z, "reciprocal": lambda x: 1 / x, "sqrt": np.sqrt, "rsqrt": _UNARY["rsqrt"],
}  # fmt: skip
_DIVISION: dict[str, Callable[[Array, Array], Array]] = {"//": np.floor_divide, "%": np.mod}

_QUOTIENTS: dict[str, Callable[[Array, Array], Array]] = {
    "ceildiv": lambda lhs, rhs: lhs // rhs + (lhs % rhs != 0),
    "truncdiv": lambda lhs, rhs: (lhs - np.fmod(lhs, rhs)) // rhs,
    "truncmod": np.fmod,
}


def _divisor(values: Array, mask: Array) -> Array:
    """What integers are divided by; where the mask is not set it may be zero."""
    if np.any((values == 0) & mask):
        raise KernelFault("a division by zero")
    return np.where(values == 0, 1, values)


def _nth_set(bits: int, base: int, nth: int) -> int:
    """The place of the n-th set bit from `base` on, upwards or, if n is negative, downwards; all bits if there is none.

    [CUDA Math API, Integer Intrinsics: __fns]
    """
    if nth == 0:
        return base if bits >> base & 1 else 0xFFFFFFFF
    places = range(base, 32) if nth > 0 else range(base, -1, -1)
    found = [place for place in places if bits >> place & 1]
    return found[abs(nth) - 1] if len(found) >= abs(nth) else 0xFFFFFFFF


class Values:
    """The values of variables, and of expressions of them. All are arrays of one dimension: one value for each of the
    elements that are computed side by side, or a single one for all of them."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.variables: dict[tuple[str, str], Array] = {}
        self.thread: Array | None = None
        self.random: Generators | None = None  # of the block's threads

    def copy(self, memory: Memory) -> Values:
        """Variables of a block or group with its own values, and the same memory."""
        found = Values(memory)
        found.variables, found.thread, found.random = dict(self.variables), self.thread, self.random
        return found

    def take(self, other: Values, mask: Array) -> None:
        """The variables that a group gave other values, for its threads."""
        for key, value in other.variables.items():
            old = self.variables.get(key)
            if old is not value:
                everywhere = old is None or mask.all()
                self.variables[key] = value if everywhere else np.where(mask, value, old)

    def __getitem__(self, var: Var) -> Array:
        key = (var.name, var.role.value)
        if key not in self.variables:
            raise CannotInterpret(f"the variable {var.name}, which has no value here")
        return self.variables[key]

    def set(self, var: Var, values: Array, mask: Array | None = None) -> None:
        """Gives a variable a value; with a mask, where it is set."""
        key, found = (var.name, var.role.value), rounded(values, var.dtype)
        old = self.variables.get(key)
        if mask is not None and old is not None and not mask.all():
            found = np.where(mask, found, old)
        self.variables[key] = found

    def of(self, expr: Expr, mask: Array) -> Array:
        """The values of an expression; what they are where the mask is not set is of no concern."""
        with np.errstate(all="ignore"):
            return self._of(expr, mask)

    def number(self, expr: Expr, mask: Array) -> int:
        """The value of an expression that is the same for all."""
        values = np.unique(np.broadcast_to(self.of(expr, mask), mask.shape)[mask])
        if len(values) != 1:
            raise CannotInterpret("an operation on tiles at another place for each thread")
        return int(values[0])

    def alike(self, expr: Expr, mask: Array) -> list[Array]:
        """The mask in parts, for each of which the value of an expression is the same."""
        values = np.broadcast_to(self.of(expr, mask), mask.shape)
        return [mask & (values == value) for value in np.unique(values[mask])]

    def elements(self, at: Expr, mask: Array) -> Iterator[Array]:
        """The elements from an address on, as many as it has."""
        assert isinstance(at, Address) and isinstance(at.buffer, Buffer)
        *of, first = (self.of(index, mask) for index in at.indices)
        for step in range(at.extent):
            yield np.broadcast_to(self.memory.load(at.buffer, [*of, first + step], mask), mask.shape)

    def _of(self, expr: Expr, mask: Array) -> Array:
        match expr:
            case Const() | Named():
                return np.array([expr.value]).astype(working_dtype(expr.dtype))
            case Var():
                return self[expr]
            case Load():
                assert isinstance(expr.buffer, Buffer)
                return self.memory.load(expr.buffer, [self._of(index, mask) for index in expr.indices], mask)
            case Unary():
                return self._unary(expr, mask)
            case Binary():
                return self._binary(expr, mask)
            case Call() if expr.function.startswith("atomic_load"):
                return self._of(expr.args[0], mask)
            case Call():
                exchanged = self._exchanged(expr, mask)
                return self._call(expr, mask) if exchanged is None else exchanged
        raise CannotInterpret(f"the expression {type(expr).__name__}")

    def _exchanged(self, expr: Call, mask: Array) -> Array | None:
        """The value of a function among lanes or of a vote of the block; None for other functions."""
        if expr.function == "::__match_any_sync":  # CUDA's own name of it
            return among_lanes("match_any", self._of(expr.args[1], mask), np.zeros(1), mask)
        known = expr.function.partition("<")[0] in OF_THREAD or expr.function in VOTES_OF_BLOCK
        if known and expr.args and self.thread is not None:
            values = [self._of(arg, mask) for arg in expr.args]
            return among_lanes(expr.function, values[0], values[-1], mask)
        if expr.function in ("any_of_block", "all_of_block"):  # nothing tells the threads apart: they vote alike
            return self._as(expr.args[0], BOOL, mask)
        return None

    def _as(self, expr: Expr, dtype: DType, mask: Array) -> Array:
        return converted(self._of(expr, mask), dtype)

    def _operand(self, expr: Expr, dtype: DType, mask: Array) -> Array:
        """A value as an operand: narrow integers are taken as int, as in C++, and what is kept of a result wraps."""
        if not dtype.is_int or dtype is BOOL or dtype.bits >= 32:
            return self._as(expr, dtype, mask)
        same = expr.dtype == dtype or is_weak(expr)
        return (self._of(expr, mask) if same else self._as(expr, dtype, mask)).astype(np.int32)

    def _unary(self, expr: Unary, mask: Array) -> Array:
        if expr.op == "not":
            return ~self._as(expr.operand, BOOL, mask)
        operand = self._operand(expr.operand, expr.dtype, mask)
        return np.negative(operand) if expr.op == "-" else np.invert(operand)

    def _binary(self, expr: Binary, mask: Array) -> Array:
        if expr.op in ("and", "or"):  # the second operand is evaluated where the first leaves it open
            lhs = self._as(expr.lhs, BOOL, mask)
            rest = mask & (lhs if expr.op == "and" else ~lhs)
            rhs = self._as(expr.rhs, BOOL, rest) if rest.any() else np.zeros(1, bool)
            return lhs & rhs if expr.op == "and" else lhs | rhs
        dtype = result_dtype(expr.lhs, expr.rhs) if expr.dtype is BOOL else expr.dtype
        lhs, rhs = self._operand(expr.lhs, dtype, mask), self._operand(expr.rhs, dtype, mask)
        if expr.op in _DIVISION:
            return _DIVISION[expr.op](lhs, rhs if dtype.is_float else _divisor(rhs, mask))
        if expr.op == "/":
            if not dtype.is_float:
                raise CannotInterpret("`/` of integers")
            return lhs / rhs
        return _ARITHMETIC[expr.op](lhs, rhs)

    def _call(self, expr: Call, mask: Array) -> Array:  # noqa: C901
        name, args = expr.function, expr.args
        match name:
            case _ if name in _UNARY:
                return _UNARY[name](self._of(args[0], mask))
            case "cast":
                return rounded(self._of(args[0], mask), expr.dtype)
            case "reinterpret":
                return reinterpreted(self._as(args[0], args[0].dtype, mask), args[0].dtype, expr.dtype)
            case _ if name.rpartition("_")[0] in _STATED and name.rpartition("_")[2] in ROUNDINGS:
                function, _, mode = name.rpartition("_")
                return rounded_as(
                    _STATED[function](*(self._as(arg, expr.dtype, mask) for arg in args)), expr.dtype, mode
                )
            case "infinity":
                return np.array([np.inf])
            case _ if name in _OF_TWO:
                return _OF_TWO[name](*(self._operand(arg, expr.dtype, mask) for arg in args))
            case _ if name in _QUOTIENTS:
                lhs, rhs = (self._as(arg, expr.dtype, mask) for arg in args)
                return _QUOTIENTS[name](lhs, _divisor(rhs, mask))
            case "popcount":
                bits = self._of(args[0], mask).astype(numpy_dtype(expr.dtype))
                return np.unpackbits(bits[:, None].view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
            case "first_set":
                return np.array([(int(bits) & -int(bits)).bit_length() for bits in self._of(args[0], mask)])
            case "nth_set":
                bits, base, nth = (np.broadcast_to(self._as(arg, arg.dtype, mask), mask.shape) for arg in args)
                return np.array([_nth_set(*map(int, each)) for each in zip(bits, base, nth, strict=True)])
            case "if_then_else":
                return self._select(expr, mask)
            case "dp4a":  # T.dp4a
                factors = [np.stack(list(self.elements(arg, mask))).astype(np.int32) for arg in args]
                return np.asarray(np.prod(factors, axis=0).sum(axis=0))
            case "thread" if self.thread is not None:
                return self.thread
            case "random.next" | "random.uniform" | "random.normal" if self.random is not None:
                return self.random.take(name.removeprefix("random."), mask)
        raise CannotInterpret(f"the function {name}")

    def _select(self, expr: Call, mask: Array) -> Array:
        """Only the arm that is taken is evaluated."""
        condition = self._as(expr.args[0], BOOL, mask)
        arms = []
        for arm, taken in ((expr.args[1], mask & condition), (expr.args[2], mask & ~condition)):
            none = np.zeros(1, working_dtype(expr.dtype))
            arms.append(self._operand(arm, expr.dtype, taken) if taken.any() else none)
        return np.where(condition, *arms)
