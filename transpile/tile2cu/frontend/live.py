"""A call of a kernel from a running program: the values of global names, and the shapes of the call's tensors.

The program runs anyway; the kernel's functions are still read, not run. What is known of the call replaces what would
be read from the file's own driver.
"""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from types import FunctionType, ModuleType

from msgspec import field

from tile2cu.core.dtype import BY_NAME, DType
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.frontend import language, modules
from tile2cu.frontend.attributes import policy
from tile2cu.frontend.context import Found
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.given import Written
from tile2cu.frontend.values import Builtin, Namespace, Opaque

MISSING = object()
LANGUAGE = "tilelang.language"
POLICY = f"{LANGUAGE}.GemmWarpPolicy"
_TORCH_DTYPE = ("torch", "dtype")
_SCALARS = (bool, int, float, str, type(None))


class Live(Record, frozen=True, kw_only=True):
    """What a running program knows of a call.

    `shapes` are those of the call's tensors, by parameter; `names` the global names of the kernel's module, as Python
    objects. `out_idx` is that of the call which compiles the kernel, None where its decorator has it. With
    `own_barriers` the user writes all barriers.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    names: Mapping[str, object] = field(default_factory=dict)
    out_idx: object = None
    own_barriers: bool = False

    def variable(self, name: str, span: Span) -> Found | None:
        """The value of a global name as the front end has it, if it can have it."""
        found = as_static(self.names[name]) if name in self.names else MISSING
        return None if found is MISSING else Found(found, span, "variable")

    def datum(self, name: str, span: Span) -> Found | None:
        """The same of a number, a text, a type, or a list of these: what differs from run to run."""
        found = self.variable(name, span)
        return None if found is None or isinstance(found.value, Namespace | Builtin) else found


def as_static(value: object) -> object:
    """A Python object as the front end has it; MISSING where it has no such values."""
    named = getattr(type(value), "tile2cu_name", None)  # of tile2cu.tilelang's own objects
    qualified = named.fget(value) if isinstance(named, property) and named.fget is not None else ""
    if qualified:
        return _member(qualified)
    if isinstance(value, FunctionType) and value.__module__.startswith(f"{modules.DROP_IN}."):
        return _member(f"tilelang.{value.__name__}")
    if isinstance(value, ModuleType):
        return modules.module(value.__name__) or MISSING
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list | tuple):
        parts = [as_static(part) for part in value]
        return MISSING if MISSING in parts else tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, dict):
        items = {name: as_static(part) for name, part in value.items()}
        return MISSING if MISSING in items.values() else items
    if (type(value).__module__, type(value).__name__) == _TORCH_DTYPE:
        return BY_NAME.get(str(value).removeprefix("torch."), MISSING)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return Written(repr(value))
    return MISSING


def as_argument(name: str, value: object) -> object:
    """The value of a factory's argument; what cannot be read is opaque."""
    found = as_static(value)
    return Opaque(name) if found is MISSING else found


def as_data(value: object) -> object:
    """A value as the manifest records it: types and policies by their names."""
    match value:
        case DType():
            return str(value)
        case Enum():
            return value.value
        case list():
            return [as_data(part) for part in value]
        case tuple():
            return tuple(as_data(part) for part in value)
        case dict():
            return {str(as_data(name)): as_data(part) for name, part in value.items()}
        case _:
            return value


def _member(qualified: str) -> object:
    """The language's or a module's member of that name: tilelang.language.gemm, tilelang.jit."""
    module, _, name = qualified.rpartition(".")
    if module == POLICY:
        return policy(name)
    if module == LANGUAGE:
        try:
            return language.lookup(name)
        except Fault:
            return MISSING
    return modules.MODULES.get(module, {}).get(name, MISSING)
