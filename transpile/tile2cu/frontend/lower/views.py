"""T.view and T.reshape: a tensor or tile in another shape, and read as another type."""

from collections.abc import Callable
from math import prod

from tile2cu.core.dtype import DType
from tile2cu.core.expr import Expr, static_value
from tile2cu.core.program import Buffer, Scope
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.operand import as_buffer, as_dtype, as_shape, as_static_shape
from tile2cu.frontend.subscript import extents_text

_PLANE_BYTES = 16  # planes of a shared tile start at multiples of this: headers/tl/common/shared_tile.h


def view(cx: Context, src: object, shape: object = None, dtype: object = None) -> object:
    """`T.view(src, shape, dtype)`: the same bits in another shape, and as elements of another type."""
    return _shown(cx, "T.view", src, shape, dtype)


def reshape(cx: Context, src: object, shape: object) -> object:
    """`T.reshape(src, shape)`: the same elements in another shape."""
    return _shown(cx, "T.reshape", src, shape, None)


def _shown(cx: Context, name: str, src: object, shape: object, dtype: object) -> Buffer:
    cx.recorder.require_kernel(name)
    buffer = as_buffer(cx, src, f"the source of {name}")
    to = buffer.dtype if dtype is None else as_dtype(dtype, f"the type of {name}")
    as_extents = as_shape if buffer.scope is Scope.GLOBAL else as_static_shape
    extents = _rescaled(name, buffer, to) if shape is None else as_extents(cx, shape, f"the shape of {name}")
    _require_same_bits(name, buffer, extents, to)
    _require_in_order(name, buffer, extents, to)
    return cx.recorder.show(f"{buffer.name}_view", extents, buffer, cx.recorder.peek().span, to)


def _rescaled(name: str, buffer: Buffer, to: DType) -> tuple[Expr, ...]:
    """The buffer's own shape, with as many elements in the last dimension as its bits make."""
    if to.bits == buffer.dtype.bits:
        return buffer.shape
    raise Fault(
        "T2C-F035",
        f"{name}: {to} has {to.bits} bits, and elements of `{buffer.name}` have {buffer.dtype.bits}",
        help="give the shape, too",
    )


def _require_same_bits(name: str, buffer: Buffer, extents: tuple[Expr, ...], to: DType) -> None:
    """Both are of one size; sizes known at run time only are believed."""
    sides = (buffer.shape, buffer.dtype), (extents, to)
    known = [_bits(shape, dtype) for shape, dtype in sides]
    if None not in known and known[0] != known[1]:
        shown = " and ".join(f"{extents_text(shape)} of {dtype}" for shape, dtype in sides)
        raise Fault(
            "T2C-F035",
            f"{name} of `{buffer.name}`: {shown} are {known[0]:,} and {known[1]:,} bits",
            help="the new shape needs the same number of bits",
        )


def _bits(shape: tuple[Expr, ...], dtype: DType) -> int | None:
    extents = [static_value(extent) for extent in shape]
    return None if None in extents else prod(int(extent) for extent in extents if extent is not None) * dtype.bits


def _require_in_order(name: str, buffer: Buffer, extents: tuple[Expr, ...], to: DType) -> None:
    """The elements lie one after the other, without gaps."""
    if buffer.strides is not None:
        raise Fault("T2C-F035", f"{name}: `{buffer.name}` is strided", help="index it as it is")
    if buffer.scope is Scope.LOCAL and to != buffer.dtype:
        raise Fault(
            "T2C-F035",
            f"{name}: `{buffer.name}` is private to each thread and holds {buffer.dtype}",
            help="write T.reinterpret of its elements",
        )
    for shape, dtype in ((buffer.shape, buffer.dtype), (extents, to)):
        if buffer.scope is Scope.SHARED and len(shape) > 2 and (_bits(shape[-2:], dtype) or 0) % (8 * _PLANE_BYTES):
            raise Fault(
                "T2C-F035",
                f"{name} of `{buffer.name}`: a plane {extents_text(shape[-2:])} of {dtype} is no multiple of "
                f"{_PLANE_BYTES} bytes, so that planes do not follow one another",
                help="make the planes larger, or use two dimensions",
            )


FUNCTIONS: dict[str, Callable[..., object]] = {"view": view, "reshape": reshape}
