"""`value[...]`: elements and slices of buffers, and Python's own subscripts on static values."""

from collections.abc import Sequence

from tile2cu.core.expr import Expr, Load, Role, Var, binary, int_const, static_value
from tile2cu.core.program import Buffer, Scope
from tile2cu.frontend import builtins, placement, torch
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Demand, Fault
from tile2cu.frontend.lower import lanes, tiles
from tile2cu.frontend.operators import static_int
from tile2cu.frontend.values import Builtin, Interval, Lanes, Opaque, TorchTensor, View, as_expr, describe, from_expr


def subscript(cx: Context, base: object, items: tuple[object, ...]) -> object:
    """The value of `base[items]`."""
    match base:
        case Buffer():
            return element_or_view(cx, base, items)
        case View() | Lanes():
            return _of_elements(cx, base, items)
        case Var(role=Role.MUTABLE):
            _require_zero(base, items)
            return base
        case Var(role=Role.SIZE):
            raise Demand("this subscript", (base.name,))
        case str() | tuple() | list() | range():
            return _of_sequence(cx, base, items)
        case dict():
            return _of_dict(cx, base, items)
        case Opaque():
            return base
        case TorchTensor():
            return torch.element(cx, base, items)
        case Builtin(name="T.Tensor" | "T.Buffer" | "T.StridedTensor"):
            return builtins.invoke_with(cx, base, items)
        case _:
            raise Fault("T2C-F014", f"{describe(base)} cannot be indexed")


def _of_elements(cx: Context, base: View | Lanes, items: tuple[object, ...]) -> object:
    if isinstance(base, View):
        raise Fault("T2C-F012", f"{describe(base)} cannot be indexed again", help="index the buffer in one step")
    return lanes.element(cx, base, items)


def element_or_view(cx: Context, buffer: Buffer, items: tuple[object, ...]) -> object:
    """One element of a buffer if all indices are numbers, else a View."""
    cx.recorder.require_owned(buffer)
    if any(isinstance(item, Lanes) for item in items):
        return _elements(cx, buffer, items)
    if any(item is None for item in items):
        return tiles.with_new_dimensions(cx, buffer, items)
    items = _completed(buffer, items)
    if len(items) != buffer.rank:
        shape = extents_text(buffer.shape)
        raise Fault("T2C-F024", f"`{buffer.name}` of shape {shape} takes {buffer.rank} indices, not {len(items)}")
    if any(isinstance(item, Interval) for item in items):
        return View(buffer, tuple(_side(buffer, dim, item) for dim, item in enumerate(items)))
    indices = tuple(_in_range(buffer, dim, _index(buffer, item)) for dim, item in enumerate(items))
    found = cx.recorder.placements.get(buffer.name)
    if found is not None and buffer.scope is Scope.GLOBAL:
        return placement.element(cx, buffer, found, indices)
    if buffer.name in cx.recorder.otherwise and buffer.scope is Scope.GLOBAL:
        return placement.element_or_else(cx, buffer, indices)
    return Load(buffer.dtype, buffer, indices)


def _elements(cx: Context, buffer: Buffer, items: tuple[object, ...]) -> Lanes:
    """The elements at a vector of indices."""
    found = lanes.lifted(lambda cx, *indices: element_or_view(cx, buffer, indices))(cx, *items)
    assert isinstance(found, Lanes)
    return found


def _side(buffer: Buffer, dim: int, item: object) -> Expr | Interval:
    """One dimension of a slice."""
    return item if isinstance(item, Interval) else _from_end(buffer, dim, _index(buffer, item))


def _completed(buffer: Buffer, items: tuple[object, ...]) -> tuple[object, ...]:
    """The items with `...` written out: as many `:` as dimensions are left."""
    at = next((at for at, item in enumerate(items) if isinstance(item, Opaque) and item.what == "..."), None)
    if at is None:
        return items
    rest = (Interval(None, None),) * max(0, buffer.rank - len(items) + 1)
    return (*items[:at], *rest, *items[at + 1 :])


def _index(buffer: Buffer, item: object) -> Expr:
    index = as_expr(item)
    if index is None:
        raise Fault("T2C-F024", f"an index of `{buffer.name}` must be an integer, not {describe(item)}")
    if index.dtype.is_float:
        raise Fault("T2C-F024", f"an index of `{buffer.name}` must be an integer, not {index.dtype}")
    return index


def _in_range(buffer: Buffer, dim: int, index: Expr) -> Expr:
    """The index, if it is not a number outside of the buffer; from -1 on down it counts from the end.

    A dimension without elements is accessed in loops without iterations.
    """
    index = _from_end(buffer, dim, index)
    value, extent = static_value(index), static_value(buffer.shape[dim])
    if value is not None and (value < 0 or (extent is not None and value >= max(extent, 1))):
        bound = "" if extent is None else f" of {extent} elements"
        raise Fault("T2C-F024", f"index {value} is outside of dimension {dim} of `{buffer.name}`{bound}")
    return index


def _from_end(buffer: Buffer, dim: int, index: Expr) -> Expr:
    """The index, counted from the start where it is a number that counts from the end."""
    value = static_value(index)
    if value is None or value >= 0:
        return index
    extent = static_value(buffer.shape[dim])
    if extent is None:
        return binary("-", buffer.shape[dim], int_const(-int(value)))
    return int_const(int(extent) + int(value)) if extent + value >= 0 else index


def _require_zero(var: Var, items: tuple[object, ...]) -> None:
    if len(items) != 1 or items[0] != 0:
        raise Fault("T2C-F024", f"`{var.name}` holds one value; write `{var.name}` or `{var.name}[0]`")


def _of_sequence(
    cx: Context, base: str | tuple[object, ...] | list[object] | range, items: tuple[object, ...]
) -> object:
    if len(items) != 1:
        raise Fault("T2C-F014", f"{describe(base)} takes one index, not {len(items)}")
    (item,) = items
    if isinstance(item, Opaque):
        return item
    if isinstance(item, Interval):
        start, stop = (None if end is None else int(static_int(end, "a slice")) for end in (item.start, item.stop))
        cx.budget.sequence(len(base))
        return base[start:stop]
    index = int(static_int(item, "the index of a sequence"))
    try:
        return base[index]
    except IndexError:
        raise Fault("T2C-F014", f"index {index} is outside of {describe(base)} of {len(base)} items") from None


def _of_dict(cx: Context, base: dict[object, object], items: tuple[object, ...]) -> object:
    wanted = builtins.key(cx, items[0] if len(items) == 1 else items)
    if wanted not in base:
        raise Fault("T2C-F014", f"the dict has no key {wanted!r}"[:200])
    return base[wanted]


def extents_text(extents: Sequence[Expr]) -> str:
    """Extents as diagnostics show them: `(128, 32)`; a name denotes what is open."""
    shown = [_extent_text(extent) for extent in extents]
    return "(" + ", ".join(shown) + ("," if len(shown) == 1 else "") + ")"


def _extent_text(extent: Expr) -> str:
    number = static_value(extent)
    if number is not None:
        return str(number)
    return extent.name if isinstance(extent, Var) else "?"


def shape_value(buffer: Buffer) -> tuple[object, ...]:
    """`buffer.shape` as a value: numbers where they are static."""
    return tuple(from_expr(extent) for extent in buffer.shape)
