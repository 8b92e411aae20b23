"""Arguments of tile-language functions: buffers, shapes, types and regions from values."""

from collections.abc import Iterable, Sequence

from tile2cu.core.dtype import BY_NAME, DType
from tile2cu.core.expr import Call, Expr, Load, Named, Role, Var, int_const, static_value, substitute, walk
from tile2cu.core.program import Buffer, Let, Range, Region
from tile2cu.core.span import Span
from tile2cu.frontend import builtins
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Demand, Fault, did_you_mean
from tile2cu.frontend.linear import difference, number_of
from tile2cu.frontend.operators import static, static_int, truth, unknown
from tile2cu.frontend.values import Interval, NamedInt, Opaque, Placed, View, as_expr, describe


def place(cx: Context) -> Span:
    """The call that is being carried out."""
    assert cx.here is not None
    return cx.here


def as_dtype(value: object, what: str) -> DType:
    """An element type from a type object or its name."""
    match value:
        case DType():
            return value
        case str():
            if value not in BY_NAME:
                raise Fault("T2C-F018", f"{what}: {value[:40]!r} is no element type", help=did_you_mean(value, BY_NAME))
            return BY_NAME[value]
        case Var(role=Role.SIZE):
            raise Demand(what, (value.name,))
        case Opaque():
            raise unknown(value, what)
        case _:
            raise Fault("T2C-F018", f"{what} must be an element type, not {describe(value)}")


def as_word(value: object, what: str, words: Iterable[str]) -> str:
    """One of the words that an option takes."""
    if isinstance(value, Var) and value.role is Role.SIZE:
        raise Demand(what, (value.name,))
    listed = tuple(words)
    if not isinstance(value, str) or value not in listed:
        raise Fault("T2C-F023", f"{what} is one of {', '.join(listed)}, not {describe(value)}")
    return value


def as_number(value: object, what: str) -> Expr:
    """A number or expression."""
    if isinstance(value, Opaque):
        raise unknown(value, what)
    expr = as_expr(value)
    if expr is None:
        raise Fault("T2C-F023", f"{what} must be a number, not {describe(value)}")
    return expr


def as_integer(value: object, what: str) -> Expr:
    """An integer or integer expression."""
    expr = as_number(value, what)
    if expr.dtype.is_float:
        number = static_value(expr)
        if number is None or number != int(number):
            raise Fault("T2C-F023", f"{what} must be an integer, not {expr.dtype}")
        return int_const(int(number))
    return expr


def as_shape(cx: Context, value: object, what: str) -> tuple[Expr, ...]:
    """A shape from a tuple, a list or a single extent."""
    if isinstance(value, Opaque):
        raise unknown(value, what)
    extents = builtins.items(cx, value) if isinstance(value, tuple | list) else [value]
    if not extents:
        raise Fault("T2C-F023", f"{what} has no extents")
    shape = tuple(as_integer(extent, what) for extent in extents)
    for extent in shape:
        number = static_value(extent)
        if number is not None and number < 0:
            raise Fault("T2C-F023", f"{what} has the negative extent {number}")
        if number is not None and number >= 2**31:
            help_ = "extents and indices are of 32 bits; more elements need several dimensions"
            raise Fault("T2C-F023", f"{what} has the extent {number}, which int32 does not hold", help=help_)
    return shape


def as_static_shape(cx: Context, value: object, what: str) -> tuple[Expr, ...]:
    """A shape whose extents are all known at transpile time, and positive."""
    shape = as_shape(cx, value, what)
    for extent in shape:
        if static(extent, what) <= 0:
            raise Fault("T2C-F023", f"{what} has the extent {static_value(extent)}; a tile needs at least 1")
    return shape


def as_flag(value: object, what: str) -> bool:
    """A static bool."""
    return truth(value, what)


def as_count(value: object, what: str, least: int = 0) -> int:
    """A static integer of at least `least`."""
    number = int(static_int(value, what))
    if number < least:
        raise Fault("T2C-F023", f"{what} must be at least {least}, not {number}")
    return number


def argument_name(cx: Context, value: object) -> str:
    """The name of the kernel's argument that a static number is; empty for any other value."""
    named = value.expr if isinstance(value, NamedInt) else None
    found = cx.constants.by_name.get(named.name) if isinstance(named, Named) else None
    is_argument = found is not None and found.is_argument and found.name in cx.bindings.possible
    return found.name if found is not None and is_argument else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Expr)


def as_buffer(cx: Context, value: object, what: str) -> Buffer:
    """A whole buffer; a slice that covers all of it counts as whole."""
    if isinstance(value, View) and all(item == Interval(None, None) for item in value.items):
        value = value.buffer
    if isinstance(value, Opaque):
        raise unknown(value, what)
    if not isinstance(value, Buffer):
        help = "T.fill(tile, value) fills a tile; `=` only gives the name another meaning" if _is_number(value) else ""
        raise Fault("T2C-F023", f"{what} must be a buffer, not {describe(value)}", help=help)
    cx.recorder.require_owned(value)
    return value


def as_region(cx: Context, value: object, what: str) -> Region:
    """A whole buffer or a slice of one; indices fix their dimensions, slices keep theirs."""
    if not isinstance(value, View):
        return Region.all_of(as_buffer(cx, value, what), place(cx))
    return region_of(cx, value, place(cx))


def region_of(cx: Context, value: Buffer | View, span: Span) -> Region:
    """A whole buffer or a slice of one."""
    buffer = value if isinstance(value, Buffer) else value.buffer
    cx.recorder.require_owned(buffer)
    if isinstance(value, Buffer):
        return Region.all_of(value, span)
    ranges = tuple(_resolved(cx, slice_range(buffer, dim, item)) for dim, item in enumerate(value.items))
    kept = tuple(dim for dim, item in enumerate(value.items) if isinstance(item, Interval))
    return Region(buffer=buffer, ranges=ranges, kept=kept, whole=_covers(buffer, ranges), span=span)


def _resolved(cx: Context, found: Range) -> Range:
    """The range with its extent as a number where names of values hide it: `first:last` with `last = first + 64`."""
    if static_value(found.extent) is not None or not any(isinstance(part, Var) for part in walk(found.extent)):
        return found
    lets = [stmt for stmt in cx.recorder.statements if isinstance(stmt, Let) and _never_changes(stmt.value)]
    values: dict[Expr, Expr] = {let.var: let.value for let in lets}
    extent = found.extent
    while any(part in values for part in walk(extent)):
        extent = substitute(extent, values)
    number = number_of(extent)
    return found if number is None else Range(start=found.start, extent=int_const(number))


def _never_changes(value: Expr) -> bool:
    """Whether an expression has the same value wherever it is written in the kernel."""
    return not any(isinstance(part, Load | Call) or getattr(part, "role", None) is Role.MUTABLE for part in walk(value))


def slice_range(buffer: Buffer, dim: int, item: object) -> Range:
    """One dimension of a slice: `start:stop`, `:` or an index."""
    if not isinstance(item, Interval):
        assert isinstance(item, Expr)
        return Range(start=item, extent=int_const(1))
    start = int_const(0) if item.start is None else as_integer(item.start, "the start of a slice")
    if item.stop is None:
        return Range(start=start, extent=difference(buffer.shape[dim], start))
    stop = as_integer(item.stop, "the end of a slice")
    extent = difference(stop, start)
    number = static_value(extent)
    if number is not None and number <= 0:
        raise Fault("T2C-F023", f"a slice of `{buffer.name}` has {number} elements in dimension {dim}")
    return Range(start=start, extent=extent)


def _covers(buffer: Buffer, ranges: Sequence[Range]) -> bool:
    return all(
        static_value(found.start) == 0 and same_extent(found.extent, extent)
        for found, extent in zip(ranges, buffer.shape, strict=True)
    )


def same_extent(a: Expr, b: Expr) -> bool:
    """Whether two extents are known to be equal."""
    left, right = static_value(a), static_value(b)
    return left == right if left is not None and right is not None else a == b


def point(load: Load, extents: Sequence[Expr], span: Span) -> Region:
    """The box at `buffer[i, j]` with the other side's extents, right-aligned; missing leading ones are 1."""
    buffer = load.buffer
    assert isinstance(buffer, Buffer)
    missing = buffer.rank - len(extents)
    boxes = (*(int_const(1) for _ in range(missing)), *extents)
    starts = load.logical if isinstance(load, Placed) else load.indices
    ranges = tuple(Range(start=start, extent=extent) for start, extent in zip(starts, boxes, strict=True))
    return Region(
        buffer=buffer, ranges=ranges, kept=tuple(range(missing, buffer.rank)), whole=_covers(buffer, ranges), span=span
    )
