"""Layouts of tensors in global memory: where the user states that element (i, j, ...) of a tensor is.

The tensor keeps its shape for callers; its elements are in the order of the layout's coordinates. Every access is
translated: the place of an element, counted in the row-major order of the coordinates, is written as an index of the
tensor's own shape.
"""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from tile2cu.core.dtype import INT32, INT64
from tile2cu.core.expr import (
    Binary,
    Call,
    Expr,
    Load,
    Role,
    Var,
    binary,
    called,
    children,
    int_const,
    joined,
    static_value,
    walk,
)
from tile2cu.core.program import Buffer, If, Stmt
from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.values import Arguments, Layout, Padded, Placed, Placement, as_expr, describe


def placement(cx: Context, buffer: Buffer, layout: Layout) -> Placement:
    """The layout of a tensor, once its coordinates are known to count the tensor's elements."""
    places = tuple(Var(INT32, f"dimension {dim}", Role.LOOP) for dim in range(buffer.rank))
    coordinates = coordinates_of(cx, layout, places)
    ranges = dict(zip(places, buffer.shape, strict=True))
    extents = tuple(_extent(coordinate, ranges) for coordinate in coordinates)
    wanted, found = (_product(shape) for shape in (buffer.shape, extents))
    if wanted is not None and found is not None and wanted != found:
        raise Fault("T2C-F023", f"the layout of `{buffer.name}` has {found} places for {wanted} elements")
    return Placement(layout, extents, _unchanged(coordinates, places))


def physical(cx: Context, buffer: Buffer, found: Placement, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """The indices of the place where an element is, in the tensor's own shape."""
    coordinates, extents = [*coordinates_of(cx, found.layout, indices)], [*found.extents]
    shape, kept = [*buffer.shape], found.unchanged
    rest: list[Expr] = []
    while min(len(shape), len(extents)) > kept and extents[-1] == shape[-1]:  # it counts the last dimension itself
        extents.pop()
        shape.pop()
        rest.insert(0, coordinates.pop())
    offset: Expr = int_const(0)
    for coordinate, extent in zip(coordinates[kept:], extents[kept:], strict=True):
        offset = binary("+", binary("*", offset, extent), coordinate)
        offset = offset if offset.dtype == INT64 or _fits_int(extents[kept:]) else Call(INT64, "cast", (offset,))
    called(offset, "offset")
    for extent in reversed(shape[kept + 1 :]):
        rest.insert(0, binary("%", offset, extent))
        offset = binary("//", offset, extent)
    last = [offset] if kept < len(shape) else []
    return (*indices[:kept], *map(cx.expression, (*last, *rest)))


def _fits_int(extents: Sequence[Expr]) -> bool:
    """Whether an int has the place of each element, for all run-time sizes."""
    count = _product(extents)
    return count is not None and count <= 2**31


def element(cx: Context, buffer: Buffer, found: Placement, indices: tuple[Expr, ...]) -> Placed:
    """An element of a placed tensor by the user's indices."""
    tests = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        limit = cx.recorder.ranges.get(index) if isinstance(index, Var) else None
        if static_value(index) is None and limit != extent:
            tests.append(binary("<", index, extent))
    inside = joined("and", tests)
    return Placed(buffer.dtype, buffer, physical(cx, buffer, found, indices), indices, inside)


def element_or_else(cx: Context, buffer: Buffer, indices: tuple[Expr, ...]) -> Load:
    """An element of a tensor, with the value that T.annotate_safe_value gives it where there is none."""
    load = Load(buffer.dtype, buffer, indices)
    tests: list[Expr] = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not _is_not_negative(index):
            tests.append(binary(">=", index, int_const(0)))
        if static_value(index) is None and (not isinstance(index, Var) or cx.recorder.ranges.get(index) != extent):
            tests.append(binary("<", index, extent))
    inside = joined("and", tests)
    if inside is None:
        return load
    return Padded(buffer.dtype, buffer, indices, inside=inside, otherwise=cx.recorder.otherwise[buffer.name])


def _is_not_negative(index: Expr) -> bool:
    """Whether an index is made of what counts from 0, by sums, products, quotients and remainders."""
    value = static_value(index)
    if value is not None:
        return value >= 0
    match index:
        case Var(role=Role.BLOCK | Role.PARALLEL | Role.SIZE):
            return True
        case Call(function="thread"):
            return True
        case Binary(op="+" | "*" | "//" | "%"):
            return all(map(_is_not_negative, children(index)))
        case _:
            return False


def guarded(load: Load, stmt: Stmt) -> Stmt:
    """A statement that writes an element, kept from places that another element has."""
    if not isinstance(load, Placed) or load.inside is None:
        return stmt
    inner = replace(stmt, comments=(), trailing="")
    return If(condition=load.inside, then=(inner,), span=stmt.span, comments=stmt.comments, trailing=stmt.trailing)


def coordinates_of(cx: Context, layout: Layout, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """The layout's function of indices."""
    value = cx.call_function(cx, layout.function, Arguments(tuple(indices)))
    parts = builtins.items(cx, value) if isinstance(value, tuple | list) else [value]
    found = [as_expr(part) for part in parts]
    if any(part is None or part.dtype.is_float for part in found):
        raise Fault("T2C-F023", f"a layout gives integers, not {describe(value)}")
    return tuple(part for part in found if part is not None)


def _unchanged(coordinates: Sequence[Expr], places: Sequence[Var]) -> int:
    """How many of the first dimensions a layout leaves as they are."""
    count = 0
    for coordinate, place in zip(coordinates, places, strict=False):
        others = (part for other in coordinates[count + 1 :] for part in walk(other))
        if coordinate != place or any(part == place for part in others):
            break
        count += 1
    return count


def _extent(coordinate: Expr, ranges: dict[Var, Expr]) -> Expr:
    """How many values a coordinate has."""
    match coordinate:
        case Var() if coordinate in ranges:
            return ranges[coordinate]
        case Binary(op="//", lhs=Var() as place) if place in ranges and static_value(ranges[place]) is None:
            return Call(INT32, "ceildiv", (ranges[place], coordinate.rhs))
        case _:
            return int_const(_highest(coordinate, ranges) + 1)


def _highest(expr: Expr, ranges: dict[Var, Expr]) -> int:
    """The largest value of a coordinate; its parts are never negative."""
    number = static_value(ranges[expr]) if isinstance(expr, Var) and expr in ranges else None
    if number is not None:
        return int(number) - 1
    value = static_value(expr)
    if value is not None:
        return int(value)
    if isinstance(expr, Binary):
        divisor = static_value(expr.rhs)
        match expr.op:
            case "+":
                return _highest(expr.lhs, ranges) + _highest(expr.rhs, ranges)
            case "*":
                return _highest(expr.lhs, ranges) * _highest(expr.rhs, ranges)
            case "//" if divisor:
                return _highest(expr.lhs, ranges) // int(divisor)
            case "%" if divisor:
                return int(divisor) - 1
            case "^" | "|":
                return _all_ones(max(_highest(expr.lhs, ranges), _highest(expr.rhs, ranges)))
            case _:
                pass
    raise Fault(
        "T2C-F011",
        "a layout of a tensor in global memory with such a coordinate is not supported yet",
        help="use +, *, //, % and ^ of the indices with constants",
    )


def _all_ones(number: int) -> int:
    return (1 << number.bit_length()) - 1


def _product(shape: Sequence[Expr]) -> int | None:
    extents = [static_value(extent) for extent in shape]
    return None if None in extents else math.prod(int(extent) for extent in extents if extent is not None)
