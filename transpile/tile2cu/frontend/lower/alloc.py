"""Allocation: tiles in shared memory and registers, and mutable scalars."""

from collections.abc import Callable

from tile2cu.core.dtype import FLOAT32
from tile2cu.core.program import Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_dtype, as_number, as_shape, as_static_shape
from tile2cu.frontend.values import Allocation


def _tile(cx: Context, name: str, scope: Scope, shape: object, dtype: object) -> Allocation:
    cx.recorder.require_kernel(f"T.{name}")
    extents = as_static_shape(cx, shape, f"the shape of T.{name}")
    return Allocation(extents, as_dtype(dtype, f"the type of T.{name}"), scope)


def alloc_shared(
    cx: Context, shape: object, dtype: object, scope: object = "shared.dyn", layout: object = None
) -> object:
    """`T.alloc_shared(shape, dtype)`: a tile that all threads of the block see."""
    if scope not in ("shared", "shared.dyn"):
        raise Fault("T2C-F023", '`scope` of T.alloc_shared is "shared" or "shared.dyn"')
    return _tile(cx, "alloc_shared", Scope.SHARED, shape, dtype)


def alloc_fragment(cx: Context, shape: object, dtype: object, scope: object = "local.fragment") -> object:
    """`T.alloc_fragment(shape, dtype)`: a tile spread over the registers of the block's threads."""
    return _tile(cx, "alloc_fragment", Scope.FRAGMENT, shape, dtype)


def alloc_local(cx: Context, shape: object, dtype: object, scope: object = "local") -> object:
    """`T.alloc_local(shape, dtype)`: a private array in each thread."""
    return _tile(cx, "alloc_local", Scope.LOCAL, shape, dtype)


def alloc_global(cx: Context, shape: object, dtype: object) -> object:
    """`T.alloc_global(shape, dtype)`: memory that the kernels of one launcher share; the caller does not see it."""
    return Allocation(as_shape(cx, shape, "the shape of T.alloc_global"), as_dtype(dtype, "its type"), Scope.GLOBAL)


def alloc_buffer(cx: Context, shape: object, dtype: object = FLOAT32, *, scope: object = "global") -> object:
    """`T.alloc_buffer(shape, dtype, scope)`: any of the above, by its scope."""
    if scope == "global":
        return alloc_global(cx, shape, dtype)
    if not isinstance(scope, str) or scope not in _SCOPES:
        raise Fault("T2C-F023", f"`scope` of T.alloc_buffer is one of {', '.join(_SCOPES)}")
    return _tile(cx, "alloc_buffer", _SCOPES[scope], shape, dtype)


_SCOPES = {
    "global": Scope.GLOBAL,
    "shared": Scope.SHARED,
    "shared.dyn": Scope.SHARED,
    "local.fragment": Scope.FRAGMENT,
    "local": Scope.LOCAL,
}


def alloc_var(cx: Context, dtype: object, *arguments: object, init: object = None, scope: object = None) -> object:
    """`T.alloc_var(dtype, init)`: a scalar of each thread that can be assigned to; 0 where `init` is left out."""
    cx.recorder.require_kernel("T.alloc_var")
    values = [argument for argument in arguments if not isinstance(argument, str)]
    if len(values) > 1 or (values and init is not None):
        raise Fault("T2C-F017", "T.alloc_var takes one initial value")
    first = values[0] if values else init
    start = None if first is None else as_number(first, "the initial value of T.alloc_var")
    return Allocation((), as_dtype(dtype, "the type of T.alloc_var"), None, start)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "alloc_shared": alloc_shared,
    "alloc_fragment": alloc_fragment,
    "alloc_local": alloc_local,
    "alloc_var": alloc_var,
    "alloc_global": alloc_global,
    "alloc_buffer": alloc_buffer,
}
