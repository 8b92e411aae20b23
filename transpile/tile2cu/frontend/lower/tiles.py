"""Tile-level expressions: `O *= scale`, `T.exp(S - m)`, `T.max(S, axis=1)`, with NumPy's broadcasting.

An expression of tiles is a value of its own until it is assigned, reduced, copied or multiplied; then it becomes a
T.Parallel loop that writes its elements to a tile. So the rest of the program knows tiles and loops only. Tensors, and
slices of tensors and tiles, take part like tiles; of what each thread has for itself, each thread runs a loop.
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest

from msgspec.structs import replace

from tile2cu.core.dtype import FLOAT32, DType
from tile2cu.core.expr import Call, Expr, Load, Role, Var, int_const, is_of_thread, static_value, walk
from tile2cu.core.expr import binary as binary_of
from tile2cu.core.program import (
    Buffer,
    Loop,
    LoopKind,
    Parallel,
    Reduce,
    Reduction,
    Region,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.span import Span
from tile2cu.frontend import operators, placement
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower import elementwise
from tile2cu.frontend.lower.operand import as_dtype, region_of
from tile2cu.frontend.operators import static_int
from tile2cu.frontend.values import Interval, TileValue, Transposed, View, as_expr, describe

Shape = tuple[Expr, ...]


def is_tile(value: object) -> bool:
    """Whether a value is a tile, or an expression of tiles."""
    return isinstance(value, TileValue) or (isinstance(value, Buffer) and value.scope is not Scope.GLOBAL)


def takes_part(value: object) -> bool:
    """Whether a value denotes many elements in an expression."""
    return isinstance(value, TileValue | Buffer | View)


def compares(op: str, lhs: object, rhs: object) -> bool:
    """Whether `lhs op rhs` compares elements; `==` of two tiles that have names asks whether they are one tile."""
    many = [side for side in (lhs, rhs) if takes_part(side)]
    if not many or any(as_expr(side) is None for side in (lhs, rhs) if not takes_part(side)):
        return False
    return op not in ("==", "!=") or len(many) == 1 or any(isinstance(side, TileValue) for side in many)


def as_tile(cx: Context, value: object) -> TileValue:
    """A tile, or a number that is the same for all elements."""
    if isinstance(value, TileValue):
        return value
    if isinstance(value, Buffer | View):
        region = region_of(cx, value, cx.recorder.peek().span)
        of_rows = isinstance(value, Buffer) and value.rank == 1 and value.name in cx.recorder.row_values
        return elements(cx, region, of_rows=of_rows)
    number = as_expr(value)
    if number is None:
        raise Fault("T2C-F023", f"{describe(value)} cannot be part of an expression of tiles")
    return TileValue((), number.dtype, lambda at: number)


def elements(cx: Context, region: Region, *, of_rows: bool = False) -> TileValue:
    """The elements of a tensor or tile, or of a slice of one."""
    return TileValue(_shape(region), region.buffer.dtype, lambda at: _element(cx, region, at), of_rows)


def _shape(region: Region) -> Shape:
    for extent in region.extents:
        if static_value(extent) is None:
            operators.demand_sizes(f"the extent of `{region.buffer.name}` in an expression of tiles", extent)
            raise Fault(
                "T2C-F034",
                f"an expression of tiles needs the extents of `{region.buffer.name}` as numbers",
                help="take a slice of it: A[start : start + 64]",
            )
    return region.extents


def _element(cx: Context, region: Region, at: Shape) -> Load:
    """The element of a region at these steps along the dimensions that it keeps."""
    along = dict(zip(region.kept, at, strict=True))
    indices = tuple(
        cx.expression(binary_of("+", part.start, along[dim])) if dim in along else part.start
        for dim, part in enumerate(region.ranges)
    )
    placed = cx.recorder.placements.get(region.buffer.name)
    if placed is not None and region.buffer.scope is Scope.GLOBAL:
        return placement.element(cx, region.buffer, placed, indices)
    if region.buffer.name in cx.recorder.otherwise and region.buffer.scope is Scope.GLOBAL:
        return placement.element_or_else(cx, region.buffer, indices)
    return Load(region.buffer.dtype, region.buffer, indices)


def _is_of_each_thread(cx: Context, *elements: Expr) -> bool:
    """Whether elements are each thread's own: in private arrays, at its own places, or within T.Parallel."""
    parts = tuple(part for element in elements for part in walk(element))
    private = any(isinstance(part, Load) and getattr(part.buffer, "scope", None) is Scope.LOCAL for part in parts)
    threads = any(isinstance(part, Var) and part.role is Role.THREAD for part in parts)
    return bool(cx.recorder.parallel) or private or threads or any(map(is_of_thread, elements))


def _zeros(shape: Shape) -> Shape:
    return tuple(int_const(0) for _ in shape)


def apply(cx: Context, function: Callable[..., object], *values: object) -> TileValue:
    """A function of numbers, element by element."""
    tiles = [as_tile(cx, value) for value in values]
    tiles = _as_columns(tiles)
    shape = _broadcast([tile.shape for tile in tiles])

    def element(at: Shape) -> Expr:
        parts = (tile.element(_indices_of(tile.shape, at)) for tile in tiles)
        found = as_expr(function(*parts))
        assert found is not None
        return found

    dtype = element(_zeros(shape)).dtype
    return TileValue(shape, dtype, element, len(shape) == 1 and any(tile.of_rows for tile in tiles))


def binary(cx: Context, op: str, lhs: object, rhs: object) -> TileValue:
    """`lhs op rhs`."""
    return apply(cx, lambda a, b: operators.binary(cx.budget, op, a, b), lhs, rhs)


def lifted(run: Callable[..., object]) -> Callable[..., object]:
    """A function of numbers that takes tiles, too; named arguments stay as they are."""

    @functools.wraps(run)
    def call(cx: Context, *values: object, **options: object) -> object:
        if not any(map(takes_part, values)):
            return run(cx, *values, **options)
        numbers = [at for at, value in enumerate(values) if takes_part(value) or as_expr(value) is not None]

        def element(*parts: Expr) -> object:  # what is no number stays where it is: the type in T.cast(tile, "float16")
            given: list[object] = list(values)
            for at, part in zip(numbers, parts, strict=True):
                given[at] = part
            return run(cx, *given, **options)

        return apply(cx, element, *(values[at] for at in numbers))

    return call


def _as_columns(tiles: list[TileValue]) -> list[TileValue]:
    """One-dimensional tiles next to two-dimensional ones: a value per row is a column.

    A vector is one of rows when a reduction of rows made it, or when only the rows are as many as its elements.
    """
    rank = max(len(tile.shape) for tile in tiles)
    wide = next((tile for tile in tiles if len(tile.shape) == 2), None)
    if rank != 2 or wide is None:
        return tiles
    rows, columns = (static_value(extent) for extent in wide.shape)
    return [_column(tile) if len(tile.shape) == 1 and _is_column(tile, rows, columns) else tile for tile in tiles]


def _is_column(tile: TileValue, rows: object, columns: object) -> bool:
    length = static_value(tile.shape[0])
    if rows == columns == length and not tile.of_rows:
        raise Fault(
            "T2C-F034",
            f"a vector of {length} elements next to a tile of ({rows}, {columns}) could be one of rows or of columns",
            help="write v[:, None] for one value per row, v[None, :] for one value per column",
        )
    return tile.of_rows or (length == rows and length != columns)


def _column(tile: TileValue) -> TileValue:
    return TileValue((tile.shape[0], int_const(1)), tile.dtype, lambda at: tile.element(at[:1]))


def with_new_dimensions(cx: Context, buffer: Buffer, items: tuple[object, ...]) -> TileValue:
    """`v[:, None]`, `v[None, :]` and `A[row, 0:64, None]`."""
    given = tuple(item for item in items if item is not None)
    if len(given) != buffer.rank:
        raise Fault("T2C-F024", f"`{buffer.name}` has {buffer.rank} dimensions", help="write v[:, None]")
    tile = as_tile(cx, View(buffer, tuple(item if isinstance(item, Interval) else as_expr(item) for item in given)))
    sides = [item for item in items if item is None or isinstance(item, Interval)]
    kept = [at for at, item in enumerate(sides) if item is not None]
    shape = tuple(int_const(1) if item is None else tile.shape[kept.index(at)] for at, item in enumerate(sides))
    return TileValue(shape, tile.dtype, lambda at: tile.element(tuple(at[dim] for dim in kept)))


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    """NumPy's rule: aligned from the right, an extent of 1 goes with any other."""
    found: list[Expr] = []
    for extents in zip_longest(*(reversed(shape) for shape in shapes)):
        wide = [extent for extent in extents if extent is not None and static_value(extent) != 1]
        if len({static_value(extent) for extent in wide}) > 1:
            shown = " and ".join(str(tuple(static_value(extent) for extent in shape)) for shape in shapes if shape)
            raise Fault("T2C-F034", f"tiles of shape {shown} do not go together element by element")
        found.append(wide[0] if wide else int_const(1))
    return tuple(reversed(found))


def _indices_of(shape: Shape, at: Shape) -> Shape:
    """The element of a tile of this shape that goes with element `at` of the result."""
    aligned = at[len(at) - len(shape) :]
    return tuple(
        int_const(0) if static_value(extent) == 1 else index for extent, index in zip(shape, aligned, strict=True)
    )


def store(cx: Context, target: Buffer | View, value: object, op: str) -> None:
    """`target op= value`, element by element, as a loop of the program."""
    region = region_of(cx, target, cx.recorder.peek().span)

    def stored(place: Load, read: Expr, span: Span) -> Stmt:
        return Store(buffer=region.buffer, indices=place.indices, value=read, op=op, span=span)

    tile = each_element(cx, region, value, stored)
    if tile.of_rows and isinstance(target, Buffer):
        cx.recorder.row_values.add(target.name)


def each_element(cx: Context, region: Region, value: object, change: Callable[[Load, Expr, Span], Stmt]) -> TileValue:
    """A loop over what `change` makes of each element of a region and of the value's; gives the value."""
    at = cx.recorder.take()
    shape, tile = _shape(region), as_tile(cx, value)
    if len(tile.shape) == 1 and len(shape) == 2:
        (tile, _) = _as_columns([tile, elements(cx, region)])
    _require_fits(region.buffer, shape, _broadcast([shape, tile.shape]))
    first = (_element(cx, region, _zeros(shape)), tile.element(_zeros(tile.shape)))
    alone = _is_of_each_thread(cx, *first)
    indices = cx.recorder.indices(shape, Role.LOOP if alone else Role.PARALLEL)
    place, read = _element(cx, region, indices), tile.element(_indices_of(tile.shape, indices))
    body = (placement.guarded(place, change(place, read, at.span)),)
    if not alone:
        cx.recorder.emit(Parallel(vars=indices, extents=shape, body=body, **at.fields))
    else:
        cx.recorder.emit(replace(in_each_thread(indices, shape, body, at.span), **at.fields))
    return tile


def in_each_thread(indices: Sequence[Var], shape: Sequence[Expr], body: tuple[Stmt, ...], span: Span) -> Stmt:
    """The loops over the elements that each thread runs for itself."""
    for index, extent in zip(reversed(indices), reversed(shape), strict=True):
        zero, one = int_const(0), int_const(1)
        body = (Loop(kind=LoopKind.UNROLL, var=index, start=zero, stop=extent, step=one, body=body, span=span),)
    return body[0]


def _require_fits(target: Buffer, shape: Shape, broadcast: Shape) -> None:
    if [static_value(extent) for extent in broadcast] != [static_value(extent) for extent in shape]:
        wanted, found = (tuple(static_value(extent) for extent in each) for each in (shape, broadcast))
        raise Fault("T2C-F034", f"`{target.name}` has the shape {wanted}, and the value {found}")


def written(cx: Context, value: object, name: str, dtype: DType | None = None) -> Buffer:
    """The value as a tile of its own in registers; a tile that has a name is that."""
    if isinstance(value, Buffer) and value.scope is not Scope.GLOBAL:
        return value
    cx.recorder.require_tile_operation("an expression of tiles")
    tile = as_tile(cx, value)
    scope = Scope.LOCAL if _is_of_each_thread(cx, tile.element(_zeros(tile.shape))) else Scope.FRAGMENT
    buffer = cx.recorder.allocate_at(cx.recorder.peek(), name, tile.shape, dtype or tile.dtype, scope)
    store(cx, buffer, tile, "")
    return buffer


def reduced(cx: Context, kind: Reduction, value: object, axis: object) -> Buffer:
    """`T.max(S, axis=1)`: one value for each row, in a tile of its own; 16-bit floats are summed in float32."""
    src = written(cx, value, "value")
    if src.rank != 2:
        raise Fault("T2C-F022", f"`{src.name}` has {src.rank} dimensions; rows or columns of two are reduced")
    axis = int(static_int(axis, "`axis`"))
    if not -2 <= axis < 2:
        raise Fault("T2C-F022", f"`{src.name}` has no dimension {axis}", help="its axes are 0 and 1, or -2 and -1")
    dim = axis % 2
    wide = src.dtype.is_float and src.dtype.bits < 32 and kind in (Reduction.SUM, Reduction.ABSSUM)
    name, here = f"{src.name}_{kind.value}", cx.recorder.peek()
    dst = cx.recorder.allocate_at(here, name, (src.shape[1 - dim],), FLOAT32 if wide else src.dtype, Scope.FRAGMENT)
    cx.recorder.emit(Reduce(kind=kind, src=src, dst=dst, dim=dim, **cx.recorder.take().fields))
    if dim == 1:
        cx.recorder.row_values.add(dst.name)
    return dst


def softmax(cx: Context, value: object, axis: object = -1) -> object:
    """`T.softmax(S)`: each row shifted by its maximum, raised to e, and divided by its sum."""
    if not takes_part(value):
        raise Fault("T2C-F023", f"T.softmax takes a tile, not {describe(value)}")
    src = written(cx, value, "value")
    largest = reduced(cx, Reduction.MAX, src, axis)
    shifted = method(cx, binary(cx, "-", src, largest), "exp")(cx)
    powers = written(cx, shifted, f"{src.name}_exp")
    return binary(cx, "/", powers, reduced(cx, Reduction.SUM, powers, axis))


def _extreme(name: str, cx: Context, /, a: object, b: object = None, axis: object = None) -> object:
    """`T.max(a, b)`, and `T.max(S, axis=1)` of a tile."""
    of_numbers = lifted(elementwise.FUNCTIONS[name])
    if b is None:
        return reduced(cx, Reduction(name), a, -1 if axis is None else axis)
    return of_numbers(cx, a, b)


def total(cx: Context, value: object, axis: object = -1, dim: object = None) -> object:
    """`T.sum(S, axis=1)` of a tile."""
    return reduced(cx, Reduction.SUM, value, axis if dim is None else dim)


def method(cx: Context, value: object, name: str) -> Callable[..., object]:
    """`tile.exp()` and `tile.astype(dtype)`."""
    if name == "astype":
        return lambda cx, dtype: apply(cx, lambda x: Call(as_dtype(dtype, "its type"), "cast", (x,)), value)
    return lambda cx: apply(cx, lambda x: elementwise.FUNCTIONS[name](cx, x), value)


def transpose(cx: Context, value: object, dst: object = None) -> object:
    """`T.transpose(tile)`, as an operand of T.gemm; `T.transpose(src, dst)`: a tile becomes another's transpose."""
    if dst is None:
        return Transposed(value)
    source = as_tile(cx, value)
    if not isinstance(dst, Buffer | View) or len(source.shape) != 2:
        raise Fault("T2C-F023", "T.transpose takes two tiles of two dimensions", help="write a T.Parallel loop")
    cx.recorder.require_tile_operation("T.transpose")
    target = region_of(cx, dst, cx.recorder.peek().span)
    turned = TileValue(source.shape[::-1], source.dtype, lambda at: source.element(at[::-1]))
    _require_fits(target.buffer, _shape(target), turned.shape)
    store(cx, dst, turned, "")
    return None


FUNCTIONS: dict[str, Callable[..., object]] = {
    "max": partial(_extreme, "max"),
    "min": partial(_extreme, "min"),
    "sum": total,
    "softmax": softmax,
    "transpose": transpose,
}
METHODS = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "astype")
