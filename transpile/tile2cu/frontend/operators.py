"""Operators on values: Python's on what is static, expressions of the program on the rest."""

from tile2cu.core import expr as ex
from tile2cu.core.dtype import BOOL, BY_NAME, INT32, DType
from tile2cu.core.errors import Note
from tile2cu.core.expr import NATIVE, Expr, Role, Unary, Var, static_value, walk
from tile2cu.core.program import Buffer
from tile2cu.frontend.fault import Demand, Fault
from tile2cu.frontend.limits import MAX_DEPTH, MAX_NODES, Budget
from tile2cu.frontend.values import NamedFloat, NamedInt, Opaque, TileValue, TorchTensor, View, as_expr, describe

Number = int | float

COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def binary(budget: Budget, op: str, lhs: object, rhs: object) -> object:
    """`lhs op rhs` for any two values."""
    if isinstance(lhs, Opaque) or isinstance(rhs, Opaque):
        return lhs if isinstance(lhs, Opaque) else rhs
    if isinstance(lhs, TorchTensor) or isinstance(rhs, TorchTensor):
        return torch_result(lhs, rhs)
    if isinstance(lhs, Expr) or isinstance(rhs, Expr):
        return _symbolic(budget, op, lhs, rhs)
    if isinstance(lhs, int | float) and isinstance(rhs, int | float):
        return _numbers(budget, op, lhs, rhs)
    if op in ("==", "!="):
        return _equal(budget, lhs, rhs) == (op == "==")
    return _sequences(budget, op, lhs, rhs)


def torch_result(lhs: object, rhs: object) -> object:
    """The tensor that an operation on a driver's tensors gives; opaque where their shapes would broadcast."""
    tensors = [value for value in (lhs, rhs) if isinstance(value, TorchTensor)]
    if len(tensors) == 2 and len(tensors[0].shape) != len(tensors[1].shape):
        return Opaque("a result of tensors")
    return tensors[0]


def _numbers(budget: Budget, op: str, lhs: Number, rhs: Number) -> object:
    _bound_result(budget, op, lhs, rhs)
    value = native(op, _plain(lhs), _plain(rhs))
    if op in COMPARISONS or not (isinstance(lhs, NamedInt | NamedFloat) or isinstance(rhs, NamedInt | NamedFloat)):
        return value
    return _with_names(budget, op, lhs, rhs, value)


def _with_names(budget: Budget, op: str, lhs: Number, rhs: Number, value: object) -> object:
    """The number `value` that still knows that it is `lhs op rhs`, where the device would compute the same.

    Integers only: floating-point formulas are computed here in double precision and rounded once, and `/` and `**`
    of integers are other operations in C++.
    """
    if not isinstance(value, int) or op in ("/", "**") or value.bit_length() > 31:
        return value
    left, right = as_expr(lhs), as_expr(rhs)
    assert left is not None and right is not None
    written = ex.binary(op, left, right)
    nodes, depth = budget.measure(written)
    if nodes > MAX_NODES // 16 or depth > MAX_DEPTH // 4 or not written.dtype.is_int or static_value(written) != value:
        return value  # no reader gains from a name inside so large a formula
    return NamedInt(value, written)


def _bound_result(budget: Budget, op: str, lhs: Number, rhs: Number) -> None:
    """Reject an integer result that would be too large, before it is computed."""
    if not (isinstance(lhs, int) and isinstance(rhs, int)):
        return
    if op == "**" and rhs > 0:
        budget.integer(max(lhs.bit_length(), 1) * rhs if abs(lhs) > 1 else 1)
    elif op == "<<":
        budget.integer(lhs.bit_length() + max(rhs, 0))
    elif op == "*":
        budget.integer(lhs.bit_length() + rhs.bit_length())
    elif op in ("+", "-"):
        budget.integer(max(lhs.bit_length(), rhs.bit_length()) + 1)


def native(op: str, lhs: object, rhs: object) -> object:
    """Python's own operator; what it raises becomes a Fault."""
    try:
        value = NATIVE[op](lhs, rhs)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Fault("T2C-F014", f"`{op}` fails here: {error.args[-1] if error.args else error}") from None
    if isinstance(value, complex):
        raise Fault("T2C-F014", f"`{op}` gives a complex number here")
    return value


def _plain(value: Number) -> Number:
    """The number without its name, so that Python's operators give plain numbers."""
    if isinstance(value, NamedInt):
        return int(value)
    return float(value) if isinstance(value, NamedFloat) else value


def _symbolic(budget: Budget, op: str, lhs: object, rhs: object) -> object:
    left, right = as_expr(lhs), as_expr(rhs)
    if left is None or right is None:
        if op in ("==", "!="):
            demand_sizes("this comparison", *(side for side in (left, right) if side is not None))
            return op == "!="  # a run-time number is no string, no None, ...
        raise Fault("T2C-F014", f"`{op}` does not go with {describe(rhs if left is not None else lhs)}")
    if op == "/" and not left.dtype.is_float and not right.dtype.is_float:
        demand_sizes("this division", left, right)
        raise Fault(
            "T2C-F033", "`/` of two integers is not allowed in a kernel", help="write `//`, or cast with T.float32(...)"
        )
    if op in ("&", "|", "^", "<<", ">>") and (left.dtype.is_float or right.dtype.is_float):
        raise Fault("T2C-F014", f"`{op}` takes integers, not {left.dtype} and {right.dtype}")
    known = static_value(right)
    if op in ("//", "%", "/") and known == 0 and not isinstance(known, float):
        raise Fault("T2C-F014", "division by zero")
    bits = max(left.dtype.bits, INT32.bits)
    if op in ("<<", ">>") and known is not None and not 0 <= known < bits:
        raise Fault("T2C-F014", f"a shift of {left.dtype} is by 0 to {bits - 1} bits, not by {known}")
    return budget.expression(ex.binary(op, left, right))


def demand_sizes(what: str, *values: Expr) -> None:
    """Ask for the values of open sizes, if expressions depend on nothing else."""
    variables = [part for value in values for part in walk(value) if isinstance(part, Var | ex.Load)]
    if variables and all(isinstance(part, Var) and part.role is Role.SIZE for part in variables):
        raise Demand(what, tuple(dict.fromkeys(part.name for part in variables if isinstance(part, Var))))


def _equal(budget: Budget, lhs: object, rhs: object) -> bool:
    if isinstance(lhs, DType) or isinstance(rhs, DType):
        return _dtype_or_self(lhs) == _dtype_or_self(rhs)
    parts = [*budget.structure(lhs), *budget.structure(rhs)]
    if lhs == rhs:
        return True
    for part in parts:
        if isinstance(part, Expr):
            static(part, "this comparison")  # raises: equal or not is known only at run time
    return False


def same(budget: Budget, lhs: object, rhs: object) -> bool:
    """Whether two values are equal, as `in` and `.index()` ask; raises where that is known only at run time."""
    return truth(binary(budget, "==", lhs, rhs), "this comparison")


def _dtype_or_self(value: object) -> object:
    return BY_NAME.get(value, value) if isinstance(value, str) else value


def _sequences(budget: Budget, op: str, lhs: object, rhs: object) -> object:
    match op, lhs, rhs:
        case "+", str(), str():
            budget.text(len(lhs) + len(rhs))
        case "+", list(), list():
            budget.sequence(len(lhs) + len(rhs))
        case "+", tuple(), tuple():
            budget.sequence(len(lhs) + len(rhs))
        case ("*", str() | list() | tuple(), int()):
            _bound_repetition(budget, lhs, rhs)
        case ("*", int(), str() | list() | tuple()):
            _bound_repetition(budget, rhs, lhs)
        case ("|", dict(), dict()):
            budget.sequence(len(lhs) + len(rhs))
        case ("<" | "<=" | ">" | ">=", str(), str()) | ("<" | "<=" | ">" | ">=", list() | tuple(), list() | tuple()):
            budget.structure((lhs, rhs))
        case _:
            whole = any(isinstance(side, Buffer) for side in (lhs, rhs))
            help = "write a T.Parallel loop over the elements" if whole else ""
            raise Fault("T2C-F014", f"`{op}` does not go with {describe(lhs)} and {describe(rhs)}", help=help)
    return native(op, lhs, rhs)


def _bound_repetition(budget: Budget, value: object, count: object) -> None:
    """Account for `value * count` before it is made."""
    assert isinstance(count, int)
    if isinstance(value, str):
        budget.text(len(value) * max(int(count), 0))
    elif isinstance(value, list | tuple):
        budget.sequence(len(value) * max(int(count), 0))


def unary(budget: Budget, op: str, value: object) -> object:
    """`-value`, `+value`, `~value`; `not` is in the evaluator, since it asks for truth."""
    if isinstance(value, Opaque) or op == "+":
        return value
    if isinstance(value, NamedInt | NamedFloat):
        result = -_plain(value) if op == "-" else ~int(value)
        written = budget.expression(Unary(value.expr.dtype, op, value.expr))
        return NamedInt(result, written) if isinstance(result, int) else NamedFloat(result, written)
    if isinstance(value, int) or (isinstance(value, float) and op == "-"):
        return -value if op == "-" else ~int(value)
    value = as_expr(value) if isinstance(value, Expr) else value
    if isinstance(value, Expr):
        if op == "~" and value.dtype == BOOL:
            return negation(budget, value)
        if op == "~" and not value.dtype.is_int:
            raise Fault("T2C-F014", f"`~` takes an integer, not {value.dtype}")
        return budget.expression(Unary(value.dtype, op, value))
    raise Fault("T2C-F014", f"`{op}` does not go with {describe(value)}")


def negation(budget: Budget, value: Expr) -> Expr:
    """`not value` in the program."""
    return budget.expression(Unary(BOOL, "not", value))


def binary_logical(budget: Budget, word: str, lhs: Expr, rhs: Expr) -> Expr:
    """`lhs and rhs` or `lhs or rhs` in the program."""
    return budget.expression(ex.binary(word, lhs, rhs))


def truth(value: object, what: str = "this condition") -> bool:
    """Whether a static value is true. Raises for what is known only at run time."""
    if isinstance(value, Expr):
        return bool(static(value, what))
    if isinstance(value, Opaque):
        raise unknown(value, what)
    if isinstance(value, Buffer | View | TileValue):
        raise Fault("T2C-F014", f"{describe(value)} has no truth value", help="compare an element of it")
    return bool(value)


def static(value: object, what: str) -> Number:
    """The number that `value` is at transpile time. Asks for open sizes that it depends on."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, Opaque):
        raise unknown(value, what)
    if not isinstance(value, Expr):
        raise Fault("T2C-F014", f"{what} must be a number, not {describe(value)}")
    number = static_value(value)
    if number is not None:
        return number
    open_sizes = dict.fromkeys(part.name for part in walk(value) if isinstance(part, Var) and part.role is Role.SIZE)
    if open_sizes:
        raise Demand(what, tuple(open_sizes))
    causes = [part for part in walk(value) if isinstance(part, Var)]
    cause = f": it depends on `{causes[0].name}`" if causes else ""
    raise Fault("T2C-F007", f"{what} must be known at transpile time{cause}")


def static_int(value: object, what: str) -> int:
    """`static`, for a value that must be an integer; named numbers keep their names."""
    number = static(value, what)
    if isinstance(number, float):
        if not number.is_integer():
            raise Fault("T2C-F014", f"{what} must be an integer, not {number}")
        return int(number)
    return number


def unknown(value: Opaque, what: str) -> Fault:
    """The fault of needing a value that only running the file would give."""
    notes: tuple[Note, ...] = ()
    if value.reason is not None:
        place = value.reason.span or value.span
        notes = (Note(f"it could not be evaluated: {value.reason.message}", place),)
    elif value.span is not None:
        notes = (Note("it comes from here", value.span),)
    return Fault(
        "T2C-F008",
        f"{what} needs `{value.what}`, which is known only by running the file",
        notes=notes,
        help=value.help or "tile2cu reads the file without running it; make the value a parameter and bind it with -D",
    )
