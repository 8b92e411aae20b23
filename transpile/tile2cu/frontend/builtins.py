"""Python's builtins that a file may use, on static values. What is not listed here does not exist for the file."""

import builtins
import inspect
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import Parameter
from types import FunctionType, MappingProxyType
from typing import NamedTuple

from tile2cu.core.dtype import DType
from tile2cu.core.expr import Call, Expr, Role, Var, result_dtype
from tile2cu.core.program import Buffer
from tile2cu.frontend import operators
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Demand, Fault, did_you_mean
from tile2cu.frontend.operators import static, static_int, truth
from tile2cu.frontend.values import (
    Arguments,
    Builtin,
    Function,
    Node,
    NodeKind,
    Opaque,
    TorchTensor,
    as_expr,
    describe,
    from_expr,
)

MISSING = object()


_signature = lru_cache(maxsize=1024)(inspect.signature)  # of Python functions, which the front end itself defines


def invoke(cx: Context, function: Builtin, arguments: Arguments) -> object:
    """Call a builtin; arguments that do not fit its signature are a Fault."""
    if not _fits(function.run, arguments):
        try:
            _signature(function.run).bind(cx, *arguments.positional, **arguments.named)
        except TypeError as error:
            _, *takes = _signature(function.run).parameters
            raise Fault("T2C-F017", f"{function.name}: {error}", help=_meant(arguments, takes)) from None
    try:
        return function.run(cx, *arguments.positional, **arguments.named)
    except (ArithmeticError, ValueError, LookupError) as error:
        raise Fault("T2C-F014", f"{function.name} fails here: {error.args[-1] if error.args else error}") from None


class _Taken(NamedTuple):
    """The arguments that a function takes by name or place, how many of them it needs, and whether it takes others."""

    names: tuple[str, ...]
    required: int
    others: bool = False
    named: bool = False


_ANY = _Taken((), 0)  # of a function that has other parameters, too: it is bound


@lru_cache(maxsize=1024)
def _parameters(run: Callable[..., object]) -> _Taken:
    found = tuple(_signature(run).parameters.values())
    own = any(each.kind is not each.POSITIONAL_OR_KEYWORD for each in found[1:])
    if own or not found or found[0].kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        return _ANY
    return _Taken(tuple(each.name for each in found), sum(each.default is each.empty for each in found))


def _taken(run: Callable[..., object]) -> _Taken:
    """A function that is made for each call, as for a method of a value, has the code of the others."""
    if not isinstance(run, FunctionType) or hasattr(run, "__wrapped__"):
        return _parameters(run)
    code = run.__code__
    if code.co_kwonlyargcount or code.co_posonlyargcount > 1 or not code.co_argcount:
        return _ANY
    required = code.co_argcount - len(run.__defaults__ or ())
    others, named = bool(code.co_flags & inspect.CO_VARARGS), bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return _Taken(code.co_varnames[: code.co_argcount], required, others, named)


def _fits(run: Callable[..., object], arguments: Arguments) -> bool:
    """Whether arguments fit a function, as far as that is quickly known: binding them takes longer than most calls."""
    taken, given, named = _taken(run), 1 + len(arguments.positional), arguments.named
    if given > len(taken.names) and not taken.others:
        return False
    if not named:
        return taken.required <= given
    left = taken.names[given:]
    known = all(name in left or (taken.named and name not in taken.names) for name in named)
    return known and all(name in named for name in taken.names[given : taken.required])


def _meant(arguments: Arguments, takes: list[str]) -> str:
    """What a name may be meant for that is no parameter's; else what the parameters are."""
    unknown = next((name for name in arguments.named if name not in takes), None)
    named = f"it takes {', '.join(takes)}" if takes else ""
    return named if unknown is None else did_you_mean(unknown, takes) or named


def invoke_with(cx: Context, function: Builtin, positional: tuple[object, ...]) -> object:
    """Call a builtin with positional arguments."""
    return invoke(cx, function, Arguments(positional))


def items(cx: Context, value: object) -> list[object]:
    """The items of something that Python can iterate over."""
    match value:
        case list() | tuple() | str() | range() | dict():
            cx.budget.sequence(len(value))
            return list(value)
        case DType():
            return list(value.name)
        case Opaque():
            raise operators.unknown(value, "this loop")
        case Var(role=Role.SIZE):
            raise Demand("this loop", (value.name,))
        case _:
            raise Fault("T2C-F014", f"{describe(value)} has no items to go through")


def key(cx: Context, value: object) -> object:
    """The value as a key of a dict."""
    if isinstance(value, Opaque):
        return value  # a key of its own
    if isinstance(value, Expr):
        return static(value, "this key")
    cx.budget.structure(value)
    try:
        hash(value)
    except TypeError:
        raise Fault("T2C-F014", f"{describe(value)} cannot be a key") from None
    return value


def identical(left: object, right: object) -> bool:
    """`left is right`, for the values that it is used with: None, bools and named objects."""
    if isinstance(left, DType) and isinstance(right, DType):
        return left == right
    return left is right


def contains(cx: Context, item: object, container: object) -> bool:
    """`item in container`."""
    match container:
        case range() if isinstance(item, int) and not isinstance(item, bool):
            return int(item) in container
        case str() if isinstance(item, str):
            return item in container
        case dict():
            return key(cx, item) in container
        case list() | tuple() | range():
            return any(operators.same(cx.budget, item, other) for other in items(cx, container))
        case _:
            raise Fault("T2C-F014", f"`in` does not go with {describe(item)} and {describe(container)}")


def formatted(cx: Context, value: object, spec: str = "", conversion: str = "") -> str:
    """A value as text, as an f-string shows it."""
    cx.budget.structure(value)
    text = repr(text_of(cx, value)) if conversion == "r" and isinstance(value, str) else text_of(cx, value)
    if not spec:
        return text
    if any(len(run) > 2 for run in "".join(c if c.isdigit() else " " for c in spec).split()):
        raise Fault("T2C-F016", f"the format {spec!r} is too wide")
    plain = text if not isinstance(value, int | float) or isinstance(value, bool) else value + 0
    try:
        return format(plain, spec)
    except ValueError as error:
        raise Fault("T2C-F014", f"the format fails here: {error}") from None


def text_of(cx: Context, value: object) -> str:
    """`str(value)` for static values."""
    match value:
        case str() | DType():
            return str(value)
        case None | bool():
            return str(value)
        case int():
            cx.budget.text(int(value).bit_length())
            return int.__repr__(value)
        case float():
            return float.__repr__(value)
        case tuple() | list():
            inner = ", ".join(repr(part) if isinstance(part, str) else text_of(cx, part) for part in items(cx, value))
            cx.budget.text(len(inner))
            comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
            return f"({inner}{comma})" if isinstance(value, tuple) else f"[{inner}]"
        case Buffer():
            return value.name
        case _:
            raise Fault("T2C-F007", f"{describe(value)} cannot be made into text at transpile time")


def _fold(cx: Context, name: str, values: tuple[object, ...], default: object = MISSING) -> object:
    """min or max: Python's on numbers, the program's when one is known only at run time."""
    parts = items(cx, values[0]) if len(values) == 1 else list(values)
    if not parts and len(values) == 1 and default is not MISSING:
        return default
    if not parts:
        raise Fault("T2C-F014", f"{name}() of nothing")
    opaque = next((part for part in parts if isinstance(part, Opaque)), None)
    if opaque is not None:
        return opaque
    if all(isinstance(part, str) for part in parts):
        return (max if name == "max" else min)(str(part) for part in parts)
    return extreme(cx, name, parts)


def extreme(cx: Context, name: str, parts: list[object]) -> object:
    """The smallest or largest of numbers and expressions; keeps the names of numbers."""
    found = parts[0]
    for part in parts[1:]:
        left, right = as_expr(found), as_expr(part)
        if left is None or right is None:
            raise Fault("T2C-F014", f"{name}() takes numbers, not {describe(found if left is None else part)}")
        found = from_expr(cx.expression(Call(result_dtype(left, right), name, (left, right))))
    return found


def _min(cx: Context, *values: object, key: object = None, default: object = MISSING) -> object:
    _refuse(key, "min() with `key`")
    return _fold(cx, "min", values, default)


def _max(cx: Context, *values: object, key: object = None, default: object = MISSING) -> object:
    _refuse(key, "max() with `key`")
    return _fold(cx, "max", values, default)


def _refuse(value: object, what: str) -> None:
    if value is not None:
        raise Fault("T2C-F012", f"{what} is not supported")


def _range(cx: Context, *bounds: object) -> object:
    numbers = [int(static_int(bound, "a bound of this range")) for bound in bounds]
    if any(abs(number) > 2**40 for number in numbers):
        raise Fault("T2C-F016", "the bounds of this range are too large")
    if not 1 <= len(numbers) <= 3:
        raise Fault("T2C-F017", f"range() takes 1 to 3 arguments, not {len(numbers)}")
    return range(*numbers)


def _len(cx: Context, value: object) -> object:
    if isinstance(value, str | tuple | list | dict | range):
        return len(value)
    if isinstance(value, Buffer):
        return from_expr(value.shape[0])
    if isinstance(value, TorchTensor):
        return value.shape[0] if value.shape else Opaque("the length of a tensor")
    if isinstance(value, Opaque):
        return value
    if isinstance(value, Var) and value.role is Role.SIZE:
        raise Demand("len()", (value.name,))
    raise Fault("T2C-F014", f"{describe(value)} has no length")


def _int(cx: Context, value: object = 0) -> object:
    if isinstance(value, Opaque):
        return value
    if isinstance(value, str):
        if len(value) > MAX_DIGITS:
            raise Fault("T2C-F016", f"a number of {len(value)} digits is too large")
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = static(value, "int()")
    if isinstance(number, float):
        cx.budget.integer(math.frexp(number)[1] if math.isfinite(number) else 0)
    return int(number)


MAX_DIGITS = 1000


def _float(cx: Context, value: object = 0.0) -> object:
    if isinstance(value, Opaque):
        return value
    if isinstance(value, str):
        return float(value[:MAX_DIGITS])
    return float(static(value, "float()"))


def _bool(cx: Context, value: object = False) -> object:
    return value if isinstance(value, Opaque) else truth(value, "bool()")


def _str(cx: Context, value: object = "") -> object:
    return value if isinstance(value, Opaque) else formatted(cx, value)


def _abs(cx: Context, value: object) -> object:
    if isinstance(value, Expr):
        return cx.expression(Call(value.dtype, "abs", (value,)))
    number = static(value, "abs()")
    return value if number >= 0 else operators.unary(cx.budget, "-", value)


def _round(cx: Context, value: object, digits: object = None) -> object:
    number = static(value, "round()")
    return round(number) if digits is None else round(number, int(static_int(digits, "round()")))


def _sum(cx: Context, values: object, start: object = 0) -> object:
    total = start
    for part in items(cx, values):
        total = operators.binary(cx.budget, "+", total, part)
    return total


def _pow(cx: Context, base: object, exponent: object) -> object:
    return operators.binary(cx.budget, "**", base, exponent)


def _divmod(cx: Context, left: object, right: object) -> object:
    return tuple(operators.binary(cx.budget, op, left, right) for op in ("//", "%"))


def _tuple(cx: Context, values: object = ()) -> object:
    return values if isinstance(values, Opaque) else tuple(items(cx, values))


def _list(cx: Context, values: object = ()) -> object:
    return values if isinstance(values, Opaque) else items(cx, values)


def _dict(cx: Context, values: object = (), **named: object) -> object:
    if isinstance(values, dict):
        found = dict(values)
    else:
        found = {}
        for pair in items(cx, values):
            parts = items(cx, pair)
            if len(parts) != 2:
                raise Fault("T2C-F014", "dict() takes pairs")
            found[key(cx, parts[0])] = parts[1]
    found.update(named)
    return found


def _enumerate(cx: Context, values: object, start: object = 0) -> object:
    first = int(static_int(start, "enumerate()"))
    return [(first + count, value) for count, value in enumerate(items(cx, values))]


def _zip(cx: Context, *sequences: object) -> object:
    return list(zip(*(items(cx, values) for values in sequences), strict=False))


def _map(cx: Context, function: object, values: object) -> object:
    found = items(cx, values)
    if isinstance(function, Function):
        return [cx.call_function(cx, function, Arguments((value,))) for value in found]
    if isinstance(function, Builtin):
        return [invoke_with(cx, function, (value,)) for value in found]
    raise Fault("T2C-F014", f"map() does not go with {describe(function)}")


def _reversed(cx: Context, values: object) -> object:
    return items(cx, values)[::-1]


def _sorted(cx: Context, values: object, *, key: object = None, reverse: object = False) -> object:
    return sort(cx, items(cx, values), key, reverse)


def sort(cx: Context, values: list[object], by: object, reverse: object) -> list[object]:
    """`sorted(values, key=by, reverse=reverse)` of static values."""
    ranks = [cx.call_function(cx, by, Arguments((value,))) for value in values] if isinstance(by, Function) else values
    if by is not None and not isinstance(by, Function):
        raise Fault("T2C-F012", f"a key of {describe(by)} is not supported")
    cx.budget.structure(ranks)
    cx.budget.step(len(values) * 16)
    if any(isinstance(rank, Expr | Opaque | dict) for rank in ranks):
        raise Fault("T2C-F007", "values known only at run time cannot be sorted")
    try:
        order = sorted(range(len(values)), key=lambda at: ranks[at], reverse=truth(reverse))  # type: ignore[arg-type, return-value]
    except TypeError as error:
        raise Fault("T2C-F014", f"sorting fails here: {error}") from None
    return [values[at] for at in order]


def _any(cx: Context, values: object) -> object:
    return any([truth(value, "any()") for value in items(cx, values)])


def _all(cx: Context, values: object) -> object:
    return all([truth(value, "all()") for value in items(cx, values)])


def _print(cx: Context, *values: object, **named: object) -> None:
    if cx.recorder.tracing and cx.here is not None:
        cx.recorder.dropped.setdefault(cx.here, "print")


def _isinstance(cx: Context, value: object, types: object) -> object:
    if isinstance(value, Opaque):
        return value
    wanted = types if isinstance(types, tuple) else (types,)
    names = [part.name for part in wanted if isinstance(part, Builtin)]
    if isinstance(value, Var) and value.role is Role.SIZE:
        if not _NUMBERS.issuperset(names):
            raise Demand("isinstance()", (value.name,))
        cx.bindings.said_open[value.name] = None
    kinds = [part.name for part in wanted if isinstance(part, NodeKind)]
    if isinstance(value, Node) and value.kind in kinds:
        return True
    return any(_CLASSES[name](value) for name in names if name in _CLASSES)


# An open size is none of these, as T.dynamic's are not: a file may ask whether it knows a size.
_NUMBERS = frozenset({"int", "float", "bool"})
_CLASSES: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        "int": lambda value: isinstance(value, int),
        "float": lambda value: isinstance(value, float),
        "bool": lambda value: isinstance(value, bool),
        "str": lambda value: isinstance(value, str),
        "tuple": lambda value: isinstance(value, tuple),
        "list": lambda value: isinstance(value, list),
        "dict": lambda value: isinstance(value, dict),
    }
)

_FUNCTIONS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "range": _range, "len": _len, "min": _min, "max": _max, "int": _int, "float": _float, "bool": _bool,
        "str": _str, "abs": _abs, "round": _round, "sum": _sum, "pow": _pow, "divmod": _divmod, "tuple": _tuple,
        "list": _list, "dict": _dict, "enumerate": _enumerate, "zip": _zip, "reversed": _reversed, "map": _map,
        "sorted": _sorted, "isinstance": _isinstance, "any": _any, "all": _all, "print": _print,
    }
)  # fmt: skip
_TABLE: Mapping[str, Builtin] = MappingProxyType({name: Builtin(name, run) for name, run in _FUNCTIONS.items()})
NAMES = tuple(_TABLE)
PYTHON = frozenset(dir(builtins))  # what Python has, for the diagnostic of what is left out here
_LITERALS: Mapping[str, object] = MappingProxyType({"True": True, "False": False, "None": None})


def lookup(name: str) -> object:
    """The builtin of that name, or MISSING. LibCST reads `True`, `False` and `None` as names."""
    return _LITERALS[name] if name in _LITERALS else _TABLE.get(name, MISSING)
