"""Scalar expressions of a program, as frozen trees that still read as the user wrote them.

A static number keeps its name: `Named("block_M", 128)` is the value 128 and prints as `block_M`.
"""

import math
import operator
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from msgspec.structs import replace

from tile2cu.core.dtype import BOOL, INT32, DType, promote
from tile2cu.core.memo import kept
from tile2cu.core.record import Record

Number = int | float | bool


class Role(Enum):
    """The kind of a variable."""

    SIZE = "size"  # an extent left open until run time: an int argument of the kernel
    SCALAR = "scalar"  # a scalar parameter of the user's function
    BLOCK = "block"  # an index of the grid, a name of `with T.Kernel(...) as (bx, by)`
    THREAD = "thread"  # threadIdx
    LOOP = "loop"  # a serial or pipelined loop's variable: uniform over a block
    PARALLEL = "parallel"  # a T.Parallel variable: differs between threads
    LET = "let"  # an immutable value computed in the kernel
    MUTABLE = "mutable"  # T.alloc_var: a per-thread scalar that is assigned to


class Expr(Record, frozen=True):
    """Base of all expressions."""

    dtype: DType

    def __bool__(self) -> bool:
        raise TypeError("an expression of the program has no truth value at transpile time")

    def _children(self) -> "tuple[Expr, ...]":
        return ()


class Const(Expr, frozen=True):
    """A literal. `weak` literals came from Python without a type and take the other side's type."""

    value: Number
    weak: bool = True

    def __hash__(self) -> int:
        return hash(self.value)


class Named(Expr, frozen=True):
    """A static number that has a name in the user's file; declared by the Constant of that name."""

    name: str
    value: Number
    weak: bool = True

    def __hash__(self) -> int:
        return hash((self.name, self.value))


class Var(Expr, frozen=True):
    """A value known only at run time. Two variables are the same when name, role and number agree.

    `number` distinguishes variables of one name in different blocks of statements.
    """

    name: str
    role: Role
    number: int = 0

    def __hash__(self) -> int:
        return hash(self.name)


class _Compound(Expr, frozen=True, cache_hash=True):
    """An expression with operands, whose hash, parts and static value are computed once.

    Trees are the keys of many dictionaries, and analyses walk the same ones over and over.
    """


class Unary(_Compound, frozen=True):
    """`op` is one of - ~ not."""

    op: str
    operand: Expr

    def _children(self) -> tuple[Expr, ...]:
        return (self.operand,)


class Binary(_Compound, frozen=True):
    """`op` is Python's: + - * / // % ** << >> & | ^ < <= > >= == != and or.

    Division and remainder of integers round toward minus infinity, as in Python.
    """

    op: str
    lhs: Expr
    rhs: Expr

    def _children(self) -> tuple[Expr, ...]:
        return (self.lhs, self.rhs)


class Call(_Compound, frozen=True):
    """A call of a scalar function by its canonical name, without the `T.`.

    `max min abs exp exp2 log log2 sqrt rsqrt tanh sigmoid ceildiv if_then_else cast infinity ...`; `cast` has one
    argument and the target in `dtype`; `infinity` none. A name that begins with `::` is a function of inline user code.
    """

    function: str
    args: tuple[Expr, ...]

    def _children(self) -> tuple[Expr, ...]:
        return self.args


class Load(_Compound, frozen=True):
    """One element of a buffer."""

    buffer: "object"  # a program.Buffer; typed loosely since Buffer's shape holds expressions
    indices: tuple[Expr, ...]

    def _children(self) -> tuple[Expr, ...]:
        return self.indices


class Past(_Compound, frozen=True):
    """The value that a name was given, from what may have changed since.

    Analyses have it in the place of the name; rewritten programs and emitted text have the name (`without_past`).
    """

    name: Var
    value: Expr

    def _children(self) -> tuple[Expr, ...]:
        return (self.value,)


class Address(_Compound, frozen=True):
    """The address of an element, as an argument of a function.

    `access` is whether the function reads ("r"), writes ("w") or both, `extent` the number of elements from there on.
    `dtype` is the element's.
    """

    buffer: "object"  # a program.Buffer, as in Load
    indices: tuple[Expr, ...]
    access: str = "rw"
    extent: int = 1

    def _children(self) -> tuple[Expr, ...]:
        return self.indices


# Functions whose value or effect differs between threads. Votes of a block give all its threads one value.
_OF_THREAD = (
    "thread lane shuffle shuffle_xor shuffle_up shuffle_down ballot any_of_warp all_of_warp match_any match_all "
    "warp_sum warp_max warp_min warp_bitand warp_bitor random.next random.uniform random.normal "
    "atomic_load atomic_load_acquire atomic_load_seq_cst"  # another value may arrive between two threads' loads
)
OF_THREAD = frozenset(_OF_THREAD.split())

# Functions whose rounding is stated: the name ends with it, as in `add_rz`.
ROUNDED = ("add", "subtract", "multiply", "divide", "fma", "reciprocal", "sqrt")
ROUNDINGS = ("rn", "rz", "ru", "rd")  # to nearest even, toward zero, up, down

_NUMBERS = frozenset(("thread", "lane"))  # of a thread: no other participates
_AMONG = OF_THREAD - _NUMBERS


def is_of_thread(expr: Expr) -> bool:
    """Whether an expression depends on the thread that computes it, or exchanges values in a warp."""
    return works_among_threads(expr) or any(isinstance(part, Call) and part.function in _NUMBERS for part in walk(expr))


def depends_on_thread(value: Expr) -> bool:
    """Whether a value depends on which thread computes it, also through a name or an index."""
    return is_of_thread(value) or any(var.role is Role.THREAD for var in variables_in(value))


@kept
def works_among_threads(expr: Expr) -> bool:
    """Whether other threads may participate in an expression, or it has a side effect."""
    return _is_among_threads(expr) or any(map(works_among_threads, children(expr)))


def _is_among_threads(part: Expr) -> bool:
    if isinstance(part, Call):
        return part.function.partition("<")[0] in _AMONG or part.function[0] == ":"
    return isinstance(part, Address)


ARITHMETIC = frozenset(("min", "max", "ceildiv", "saturating_add", "abs", "cast", "if_then_else"))  # of arguments alone

_DIVISIONS = frozenset(("//", "%", "ceildiv", "floordiv", "floormod", "truncdiv", "truncmod"))


def may_trap(expr: Expr) -> bool:
    """Whether an expression divides integers by a value that may be zero: it may not be evaluated where it was not."""
    return any(map(divisors, walk(expr)))


def divisors(expr: Expr) -> tuple[Expr, ...]:
    """What an expression itself divides integers by, if that may be zero; such a value's factors are zero only then."""
    if not isinstance(expr, Binary | Call) or expr.dtype.is_float:
        return ()
    if (expr.op if isinstance(expr, Binary) else expr.function) not in _DIVISIONS or static_value(children(expr)[1]):
        return ()
    return tuple(_factors(children(expr)[1]))


def _factors(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Binary) and expr.op == "*":
        yield from _factors(expr.lhs)
        yield from _factors(expr.rhs)
    else:
        yield expr


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    return expr._children()


def int_const(value: int) -> Const:
    return Const(INT32, value)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all below it, outermost first."""
    if not isinstance(expr, _Compound):
        return iter((expr,))
    kept = expr.__dict__
    if "_parts" not in kept:
        kept["_parts"] = tuple(_below(expr))
    parts: tuple[Expr, ...] = kept["_parts"]
    return iter((expr, *parts))


def variables_in(expr: Expr) -> frozenset[Var]:
    """The variables that an expression mentions."""
    if not isinstance(expr, _Compound):
        return frozenset((expr,)) if isinstance(expr, Var) else _NO_VARIABLES
    kept = expr.__dict__
    if "_variables" not in kept:
        kept["_variables"] = _NO_VARIABLES.union(*map(variables_in, children(expr)))
    found: frozenset[Var] = kept["_variables"]
    return found


_NO_VARIABLES: frozenset[Var] = frozenset()


@kept
def buffers_loaded(expr: Expr) -> frozenset[object]:
    """The buffers of which an expression reads elements."""
    own = (expr.buffer,) if isinstance(expr, Load) else ()
    return frozenset[object]().union(own, *map(buffers_loaded, children(expr)))


def _below(expr: Expr) -> Iterator[Expr]:
    """All below an expression, outermost first."""
    pending = [*children(expr)[::-1]]
    while pending:
        part = pending.pop()
        yield part
        if operands := children(part):
            pending += operands[::-1]


def walk_evaluated(expr: Expr) -> Iterator[Expr]:
    """The expression and the parts of it that are always evaluated with it.

    Those of an arm of `if_then_else`, and of what follows the first operand of `and` and `or`, are not.
    """
    pending = [expr]
    while pending:
        part = pending.pop()
        yield part
        lazy = (isinstance(part, Call) and part.function == "if_then_else") or (
            isinstance(part, Binary) and part.op in ("and", "or")
        )
        pending += children(part)[: 1 if lazy else None][::-1]


def quotient_of(index: Expr, last: Var) -> tuple[Expr, int] | None:
    """(the dividend, the divisor) where an index is the quotient, by a number, of one that `last` moves."""
    if not (isinstance(index, Binary) and index.op == "//" and last in walk(index.lhs)):
        return None
    divisor = static_value(index.rhs)
    return (index.lhs, int(divisor)) if divisor is not None and divisor > 1 else None


def nibbles_of(expr: Expr, last: Var) -> Load | None:
    """The bytes of which each step of `last` takes a nibble: those of packed[last // 2] >> 4 * (last % 2) & 15."""
    if not (isinstance(expr, Binary) and expr.op == "&" and static_value(with_its_byte(expr.rhs)) == 15):
        return None
    shift = with_its_byte(expr.lhs)
    if not (isinstance(shift, Binary) and shift.op == ">>"):
        return None
    packed, amount = with_its_byte(shift.lhs), with_its_byte(shift.rhs)
    if not isinstance(packed, Load) or packed.dtype.name != "uint8" or not isinstance(amount, Binary):
        return None
    factor, half = (amount.lhs, amount.rhs) if static_value(amount.lhs) is not None else (amount.rhs, amount.lhs)
    odd = isinstance(half, Binary) and half.op == "%" and half.lhs == last and static_value(half.rhs) == 2
    quotient = quotient_of(packed.indices[-1], last)
    if amount.op == "*" and static_value(factor) == 4 and odd and quotient is not None and quotient[1] == 2:
        return packed
    return None


def uncast(expr: Expr) -> Expr:
    """The operand of a conversion to an integer type that has all values of its own."""
    while isinstance(expr, Call) and expr.function == "cast" and expr.dtype.has_all_of(expr.args[0].dtype):
        expr = expr.args[0]
    return expr


def with_its_byte(expr: Expr) -> Expr:
    """The operand of conversions from one integer type to another that keep its low eight bits."""
    while isinstance(expr, Call) and expr.function == "cast" and expr.args[0].dtype.is_int and expr.dtype.is_int:
        if expr.dtype.bits < 8:
            break
        expr = expr.args[0]
    return expr


def rebuilt(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with each part replaced for which `change` returns another, innermost first.

    Unchanged parts stay the same object; operators whose operands change are folded as `binary` folds them.
    """
    expr = with_changed_operands(expr, lambda operand: rebuilt(operand, change))
    found = change(expr)
    return expr if found is None else found


def without_past(expr: Expr) -> Expr:
    """The expression with names for their past values."""
    return expr.name if isinstance(expr, Past) else with_changed_operands(expr, without_past)


def with_changed_operands(expr: Expr, changed: Callable[[Expr], Expr]) -> Expr:
    """The expression with what its operands are changed to; the same object if they stay, else folded."""
    operands = children(expr)
    parts = tuple(map(changed, operands))
    return _with_operands(expr, parts) if any(map(operator.is_not, parts, operands)) else expr


def substitute(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """The expression with every occurrence of a key replaced by its value."""
    names = frozenset(key for key in values if isinstance(key, Var))
    if len(names) == len(values):  # of most: the hash of another expression visits all below it
        return _with_values(expr, values, names)
    kinds = set(map(type, values))
    return rebuilt(expr, lambda part: values.get(part) if type(part) in kinds else None)


def _with_values(expr: Expr, values: Mapping[Expr, Expr], names: frozenset[Var]) -> Expr:
    """The same where all keys are `names` of variables: parts without one of them stay the same."""
    if isinstance(expr, Var):
        return values.get(expr, expr)
    if names.isdisjoint(variables_in(expr)):
        return expr
    return with_changed_operands(expr, lambda operand: _with_values(operand, values, names))


class Expansion:
    """Expressions with the `values` of names in their place, and of the names in these: each part is expanded once.

    Stepwise substitution rebuilds what values share once for each of its uses, which doubles with each name.
    """

    def __init__(self, values: Mapping[Var, Expr]) -> None:
        self.values: dict[Expr, Expr] = {}
        self._names: set[Var] = set()
        self._found: dict[Expr, Expr] = {}
        for name, value in values.items():
            self.define(name, value)

    def define(self, name: Var, value: Expr) -> None:
        """The value of another name, which no expression that was expanded so far has."""
        self.values[name] = value
        self._names.add(name)

    def __call__(self, expr: Expr) -> Expr:
        if isinstance(expr, Var):
            if expr not in self._names:
                return expr
        elif self._names.isdisjoint(variables_in(expr)):
            return expr
        found = self._found.get(expr)
        if found is None:
            if isinstance(expr, Var):
                self._found[expr] = expr  # where a value has its own name
                found = self(self.values[expr])
            else:
                found = with_changed_operands(expr, self)
            self._found[expr] = found
        return found


def _with_operands(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    found = _remade(expr, parts)
    name = user_name(expr)
    if name and not any(found is part for part in parts):
        called(found, name)
    return found


def called(value: Expr, name: str) -> None:
    """Notes the name that the user gave a value which no statement names; the first one is kept.

    It is no part of the expression: two that are equal may have other names. One that is computed anew, from other
    operands, keeps it.
    """
    if isinstance(value, _Compound):
        value.__dict__.setdefault(_USER_NAME, name)


def user_name(value: Expr) -> str:
    """The name that the user gave a value; empty where there is none."""
    found: str = value.__dict__.get(_USER_NAME, "") if isinstance(value, _Compound) else ""
    return found


_USER_NAME = "_user_name"


def _remade(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    match expr:
        case Binary():
            return binary(expr.op, *parts)
        case Unary():
            return replace(expr, operand=parts[0])
        case Call():
            return replace(expr, args=parts)
        case Load() | Address():
            return replace(expr, indices=parts)
        case Past():
            return replace(expr, value=parts[0])
        case _:
            raise TypeError(f"{type(expr).__name__} has no operands")


NATIVE: Mapping[str, Callable[[Any, Any], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}
_NEGATE: Mapping[str, Callable[[Any], Number]] = {"-": operator.neg, "~": operator.invert, "not": operator.not_}
COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "and", "or"))


def fold(op: str, lhs: Number, rhs: Number) -> Number | None:
    """`lhs op rhs` of numbers; None where there is no such number, as for a division by zero or a negative shift."""
    try:
        return NATIVE[op](lhs, rhs)
    except (ArithmeticError, ValueError):
        return None


_FORMATS = {"float16": "e", "float32": "f", "float64": "d"}  # of module struct


def as_value(number: Number, dtype: DType) -> Number | None:
    """A number as a value of a type, as a conversion in a kernel gives it; None where that is not known here.

    Integers wrap. Floats saturate in integers of 32 or 64 bits, of which narrower ones have the lower bits.
    """
    if dtype == BOOL:
        return bool(number)
    if dtype.is_int:
        whole = _truncated(number, dtype) if isinstance(number, float) else int(number)
        low = whole & ((1 << dtype.bits) - 1)
        return low - (1 << dtype.bits) if dtype.kind == "int" and low >> (dtype.bits - 1) else low
    if dtype.name not in _FORMATS:
        return None
    try:
        found: float = struct.unpack(_FORMATS[dtype.name], struct.pack(_FORMATS[dtype.name], number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return found


def _truncated(number: float, dtype: DType) -> int:
    """The integer of 32 or 64 bits that a float becomes."""
    bits, signed = (64 if dtype.bits == 64 else 32), dtype.kind == "int"
    if math.isnan(number):
        return 1 << (bits - 1) if bits == 64 else 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return low if number <= low else high if number >= high else int(number)


def static_value(expr: Expr) -> Number | None:
    """The number an expression is known to be at transpile time, or None."""
    if not isinstance(expr, _Compound):
        return expr.value if isinstance(expr, (Const, Named)) else None
    kept = expr.__dict__
    if "_static" not in kept:
        kept["_static"] = _static_value(expr)
    found: Number | None = kept["_static"]
    return found


def _static_value(expr: Expr) -> Number | None:
    match expr:
        case Unary():
            value = static_value(expr.operand)
            if value is None:
                return None
            return _NEGATE[expr.op](value)
        case Binary():
            lhs, rhs = static_value(expr.lhs), static_value(expr.rhs)
            return None if lhs is None or rhs is None else fold(expr.op, lhs, rhs)
        case Call(function="ceildiv"):
            lhs, rhs = (static_value(arg) for arg in expr.args)
            return None if lhs is None or not rhs else -(-lhs // rhs)
        case Call(function="infinity"):
            return math.inf
        case Call(function="max" | "min" as name):
            values = [value for value in map(static_value, expr.args) if value is not None]
            if len(values) < len(expr.args):
                return None
            return (max if name == "max" else min)(values)
        case _:
            return None


def binary(op: str, lhs: Expr, rhs: Expr) -> Expr:
    """`lhs op rhs` with the language's promotion; literals are folded, named numbers kept."""
    dtype = BOOL if op in COMPARISONS else result_dtype(lhs, rhs)
    expr = Binary(dtype, op, lhs, rhs)
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        value, weak = _folded(op, lhs, rhs, dtype), lhs.weak and rhs.weak
        if value is not None:
            return Const(dtype, value, weak=weak)
    if dtype.is_int:
        return _without_neutral(expr)
    return expr


def _folded(op: str, lhs: Const, rhs: Const, dtype: DType) -> Number | None:
    """`lhs op rhs` of literals: where one has a type, as a kernel computes it, narrow integers in int."""
    if lhs.weak and rhs.weak:
        return fold(op, lhs.value, rhs.value)
    common = _computed(result_dtype(lhs, rhs))
    a, b = (as_value(each.value, common) for each in (lhs, rhs))
    value = None if a is None or b is None else fold(op, a, b)
    return None if value is None else as_value(value, _computed(dtype))


def _computed(dtype: DType) -> DType:
    """The type in which C++ computes with values of a type."""
    return INT32 if dtype.is_int and dtype.bits < INT32.bits else dtype


_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def negated(condition: Expr) -> Expr:
    """The opposite of a condition, with comparisons turned round."""
    match condition:
        case Binary(op="and" | "or"):
            other = "or" if condition.op == "and" else "and"
            return binary(other, negated(condition.lhs), negated(condition.rhs))
        case Binary(lhs=lhs, rhs=rhs) if condition.op in _NEGATED and not (lhs.dtype.is_float or rhs.dtype.is_float):
            return binary(_NEGATED[condition.op], condition.lhs, condition.rhs)
        case Unary(op="not"):
            return condition.operand
        case _:
            return Unary(BOOL, "not", condition)


def joined(op: str, parts: Iterable[Expr]) -> Expr | None:
    """`a op b op c`, from the left; None for no parts."""
    found: Expr | None = None
    for part in parts:
        found = part if found is None else binary(op, found, part)
    return found


def result_dtype(lhs: Expr, rhs: Expr) -> DType:
    """The promoted type. A weak literal takes the other side's, but a float not an int's, nor a number a bool's."""
    if is_weak(lhs) and not is_weak(rhs) and _kind(lhs.dtype) <= _kind(rhs.dtype):
        return rhs.dtype
    if is_weak(rhs) and not is_weak(lhs) and _kind(rhs.dtype) <= _kind(lhs.dtype):
        return lhs.dtype
    return promote(lhs.dtype, rhs.dtype)


def _kind(dtype: DType) -> int:
    return 2 if dtype.is_float else int(dtype != BOOL)


def is_weak(expr: Expr) -> bool:
    """Whether the expression is built of untyped Python numbers alone."""
    match expr:
        case Const() | Named():
            return expr.weak
        case Unary():
            return is_weak(expr.operand)
        case Binary():
            return is_weak(expr.lhs) and is_weak(expr.rhs)
        case _:
            return False


def _without_neutral(expr: Binary) -> Expr:
    """x + 0, x - 0, x * 1, 0 + x, 1 * x, x // 1 are x, so that emitted indices stay short."""
    match expr:
        case Binary(op="+" | "-", rhs=Const(value=0)) | Binary(op="*" | "//", rhs=Const(value=1)):
            return expr.lhs
        case Binary(op="+", lhs=Const(value=0)) | Binary(op="*", lhs=Const(value=1)):
            return expr.rhs
        case Binary(op="*", rhs=Const(value=0)) | Binary(op="*", lhs=Const(value=0)):
            return Const(expr.dtype, 0)
        case _:
            return expr
