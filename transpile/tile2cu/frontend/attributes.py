"""`value.name`: members of the modules, buffers, types and containers that the front end knows.

Each is written out here; no attribute of a real Python object is ever read by a name from the file.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.core.dtype import BY_NAME, DType
from tile2cu.core.expr import Expr, Role, Var
from tile2cu.core.program import Buffer, Policy
from tile2cu.frontend import builtins, classes, ir_passes, modules, operators, schedule, torch
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Demand, Fault
from tile2cu.frontend.limits import MAX_TEXT
from tile2cu.frontend.lower import elementwise, tiles
from tile2cu.frontend.operators import demand_sizes, static_int
from tile2cu.frontend.schedule import TileScheduler
from tile2cu.frontend.subscript import shape_value
from tile2cu.frontend.values import (
    Arguments,
    Builtin,
    Class,
    Function,
    Instance,
    Namespace,
    Node,
    Opaque,
    TileValue,
    TorchTensor,
    View,
    describe,
)


def attribute(cx: Context, value: object, name: str, text: str) -> object:
    """The value of `value.name`; `text` is how the file writes it."""
    match value:
        case Namespace():
            return modules.member(value, name, text)
        case Buffer() | TileValue() | View() if name in tiles.METHODS:
            return Builtin(text, tiles.method(cx, value, name))
        case Buffer():
            return _of_buffer(value, name)
        case DType():
            return _of_dtype(value, name)
        case Builtin(name="T.GemmWarpPolicy"):
            return policy(name)
        case str() | list() | dict() | tuple() | int() | float():
            return _method(value, name)
        case Node() | Class() | Instance() | Function() | TorchTensor() | TileScheduler():
            return _of_object(cx, value, name, text)
        case Expr() if name in ("dtype", "astype"):
            return value.dtype if name == "dtype" else _astype(value)
        case Expr():
            demand_sizes(f"`{text}`", value)
            raise Fault("T2C-F013", f"{describe(value)} has no attribute `{name}` that tile2cu knows")
        case _:
            raise Fault("T2C-F013", f"{describe(value)} has no attribute `{name}` that tile2cu knows")


def _of_buffer(buffer: Buffer, name: str) -> object:
    match name:
        case "shape":
            return shape_value(buffer)
        case "dtype":
            return buffer.dtype
        case "ndim":
            return buffer.rank
        case "name":
            return buffer.name
        case "data":
            return buffer
        case _:
            raise Fault(
                "T2C-F013", f"`{buffer.name}` has no attribute `{name}`", help="shape, dtype, ndim and name are known"
            )


def _of_object(
    cx: Context, value: Node | Class | Instance | Function | TorchTensor | TileScheduler, name: str, text: str
) -> object:
    match value:
        case Node():
            return ir_passes.of_node(value, name)
        case TileScheduler():
            return schedule.attribute(cx, value, name, text)
        case TorchTensor():
            return torch.attribute(value, name, text)
        case Function():
            return _of_function(value, name, text)
        case _:
            return classes.attribute(cx, value, name, text)


def _astype(value: Expr) -> Builtin:
    return Builtin("astype", lambda cx, dtype: elementwise.cast(cx, value, dtype))


def _of_function(function: Function, name: str, text: str) -> object:
    """`kernel.compile(...)` and its kin call the kernel's function; what else it has is known only by running it."""
    of_tvm = ir_passes.of_prim_func(function, name)
    if of_tvm is not None:
        return of_tvm
    if name in ("compile", "get_tir", "get_kernel_source", "__wrapped__"):
        return Builtin(text, lambda cx, *args, **named: cx.call_function(cx, function, Arguments(args, named)))
    if name.startswith("__"):
        raise Fault("T2C-F013", f"`{name}` of a function is not available")
    return Opaque(text)


def _of_dtype(dtype: DType, name: str) -> object:
    match name:
        case "bits":
            return dtype.bits
        case "bytes" | "itemsize":
            return dtype.bytes
        case "as_torch":
            return Builtin("as_torch", lambda cx: dtype)
        case _:
            raise Fault("T2C-F013", f"the type {dtype} has no attribute `{name}`", help="bits and bytes are known")


def policy(name: str) -> Policy:
    """`T.GemmWarpPolicy.NAME`."""
    for each in Policy:
        if each.value == name:
            return each
    known = [each.value for each in Policy if each.value]
    raise Fault("T2C-F010", f"`T.GemmWarpPolicy.{name}` does not exist", help=f"there are {', '.join(known)}")


def _bound_method(run: Callable[..., object], value: object) -> Callable[..., object]:
    return lambda cx, *args, **named: run(cx, value, *args, **named)


def _method(value: object, name: str) -> object:
    """A method of a string, list, tuple, dict or number; of a type's name, as -D gives it, what the type has."""
    if isinstance(value, str) and value in BY_NAME and name in ("bits", "bytes", "itemsize", "as_torch"):
        return _of_dtype(BY_NAME[value], name)
    for kind, methods in _METHODS.items():
        if isinstance(value, kind) and name in methods:
            return Builtin(f".{name}", _bound_method(methods[name], value))
    is_of_tensors = isinstance(value, int | float) and name in ("shape", "dtype", "ndim")
    help = "the parameter of a tensor is annotated, as in `A: T.Tensor(shape, dtype)`" if is_of_tensors else ""
    raise Fault("T2C-F013", f"{describe(value)} has no method `{name}` that tile2cu knows", help=help)


def _text(cx: Context, value: object, what: str) -> str:
    if not isinstance(value, str):
        raise Fault("T2C-F014", f"{what} takes a string, not {describe(value)}")
    return value


def _replace(cx: Context, text: str, old: object, new: object) -> object:
    old, new = _text(cx, old, ".replace()"), _text(cx, new, ".replace()")
    cx.budget.text(len(text) + (text.count(old) + 1) * len(new))
    return text.replace(old, new)


def _join(cx: Context, text: str, parts: object) -> object:
    strings = [_text(cx, part, ".join()") for part in builtins.items(cx, parts)]
    cx.budget.text(sum(map(len, strings)) + len(text) * len(strings))
    return text.join(strings)


def _split(cx: Context, text: str, separator: object = None) -> object:
    cx.budget.text(len(text))
    return text.split() if separator is None else text.split(_text(cx, separator, ".split()"))


def _affix(name: str) -> Callable[..., object]:
    def run(cx: Context, text: str, affix: object) -> object:
        wanted = tuple(_text(cx, part, name) for part in (affix if isinstance(affix, tuple) else (affix,)))
        return text.startswith(wanted) if name == ".startswith()" else text.endswith(wanted)

    return run


def _strip(cx: Context, text: str, characters: object = None) -> object:
    return text.strip(None if characters is None else _text(cx, characters, ".strip()"))


def _position(cx: Context, values: object, item: object) -> object:
    for at, other in enumerate(builtins.items(cx, values)):
        if operators.same(cx.budget, item, other):
            return at
    raise Fault("T2C-F014", f"{describe(item)} is not in {describe(values)}")


def _occurrences(cx: Context, values: object, item: object) -> object:
    if isinstance(values, str):
        return values.count(_text(cx, item, ".count()"))
    return sum(operators.same(cx.budget, item, other) for other in builtins.items(cx, values))


def _append(cx: Context, values: list[object], item: object) -> None:
    cx.budget.sequence(1)
    _grow(values, 1)
    values.append(item)


def _extend(cx: Context, values: list[object], more: object) -> None:
    added = builtins.items(cx, more)
    _grow(values, len(added))
    values.extend(added)


def _grow(values: list[object], count: int) -> None:
    if len(values) + count > MAX_TEXT:
        raise Fault("T2C-F016", f"a list of {len(values) + count:,} items is too large")


def _insert(cx: Context, values: list[object], at: object, item: object) -> None:
    cx.budget.sequence(len(values) + 1)
    values.insert(int(static_int(at, ".insert()")), item)


def _pop(cx: Context, values: list[object], at: object = -1) -> object:
    cx.budget.step(len(values) // 16)
    return values.pop(int(static_int(at, ".pop()")))


def _reverse(cx: Context, values: list[object]) -> None:
    cx.budget.sequence(len(values))
    values.reverse()


def _sort(cx: Context, values: list[object], *, key: object = None, reverse: object = False) -> None:
    values[:] = builtins.sort(cx, list(values), key, reverse)


def _get(cx: Context, table: dict[object, object], wanted: object, default: object = None) -> object:
    return table.get(builtins.key(cx, wanted), default)


def _setdefault(cx: Context, table: dict[object, object], wanted: object, default: object = None) -> object:
    return table.setdefault(builtins.key(cx, wanted), default)


def _update(cx: Context, table: dict[object, object], more: object = None, **named: object) -> None:
    if isinstance(more, dict):
        table.update(more)
    table.update(named)
    cx.budget.sequence(len(table))


def _dict_pop(cx: Context, table: dict[object, object], wanted: object, *default: object) -> object:
    return table.pop(builtins.key(cx, wanted), *default)


def _dict_copy(cx: Context, table: dict[object, object]) -> object:
    cx.budget.sequence(len(table))
    return dict(table)


_METHODS: Mapping[type, Mapping[str, Callable[..., object]]] = MappingProxyType(
    {
        str: {
            "upper": lambda cx, text: text.upper(),
            "lower": lambda cx, text: text.lower(),
            "strip": _strip,
            "split": _split,
            "join": _join,
            "replace": _replace,
            "startswith": _affix(".startswith()"),
            "endswith": _affix(".endswith()"),
            "count": _occurrences,
            "isdigit": lambda cx, text: text.isdigit(),
        },
        list: {
            "append": _append,
            "extend": _extend,
            "insert": _insert,
            "pop": _pop,
            "reverse": _reverse,
            "sort": _sort,
            "index": _position,
            "count": _occurrences,
            "copy": lambda cx, values: builtins.items(cx, values),
        },
        tuple: {"index": _position, "count": _occurrences},
        dict: {
            "get": _get,
            "setdefault": _setdefault,
            "update": _update,
            "pop": _dict_pop,
            "keys": lambda cx, table: builtins.items(cx, table),
            "values": lambda cx, table: builtins.items(cx, tuple(table.values())),
            "items": lambda cx, table: builtins.items(cx, tuple(table.items())),
            "copy": _dict_copy,
        },
        float: {"is_integer": lambda cx, value: float(value).is_integer()},
        int: {"bit_length": lambda cx, value: int(value).bit_length()},
    }
)


def _getattr(cx: Context, value: object, name: object, *default: object) -> object:
    """`getattr(value, name, default)`: as `value.name` is; what tile2cu does not know is not there."""
    if isinstance(name, Var) and name.role is Role.SIZE:
        raise Demand("getattr()", (name.name,))
    if not isinstance(name, str) or len(default) > 1:
        raise Fault("T2C-F017", "getattr() takes a value, a name and one default at most")
    try:
        return attribute(cx, value, name, f"{describe(value)}.{name}" if isinstance(value, Expr) else name)
    except Fault as fault:
        if not default or isinstance(fault, Demand) or fault.code not in ("T2C-F010", "T2C-F013"):
            raise
        return default[0]


BUILTINS: Mapping[str, Builtin] = MappingProxyType({"getattr": Builtin("getattr", _getattr)})
