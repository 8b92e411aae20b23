"""Binding names in Python's way: what loops of helpers, comprehensions and factories do with their targets."""

import libcst as cst

from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Instance, Opaque, TorchTensor, describe


def bind_target(cx: Context, target: cst.BaseExpression, value: object, env: Env) -> None:
    """Bind a name, or the names of a tuple, to a value."""
    match target:
        case cst.Name(value=name):
            env.bind(name, value, cx.source.span(target))
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element, part in zip(elements, unpack(cx, value, len(elements)), strict=True):
                bind_target(cx, element.value, part, env)
        case _:
            raise Fault("T2C-F012", f"`{cx.source.code(target)}` cannot be bound here")


def unpack(cx: Context, value: object, count: int) -> list[object]:
    """The parts of a value that is assigned to `count` targets."""
    if isinstance(value, Opaque):
        return [value] * count
    if isinstance(value, TorchTensor) or (isinstance(value, Instance) and value.of is None):
        return [Opaque("a part of a result")] * count
    parts = builtins.items(cx, value)
    if len(parts) != count:
        raise Fault("T2C-F014", f"{describe(value)} of {len(parts)} parts is assigned to {count} names")
    return parts
