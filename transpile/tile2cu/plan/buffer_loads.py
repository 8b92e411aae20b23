"""How tiles that wait in registers are loaded as buffers (headers/tl/common/cdna/staged.h)."""

from math import prod

from tile2cu.analysis.signs import never_negative
from tile2cu.core.decisions import BOUNDS_CHECKED, PERSISTENT
from tile2cu.core.expr import Binary, Call, Expr, Number, Var, static_value
from tile2cu.core.program import Buffer, Copy
from tile2cu.core.record import Record
from tile2cu.plan.operands import TensorTile
from tile2cu.plan.resolved import Resolved

_BUFFER_BYTES = 1 << 31
_MAX_GRID_YZ = 65535  # blocks: launchers check it


class BufferLoads(Record, frozen=True, kw_only=True):
    """A tile's buffer: `always`, where its condition provably holds for every tile; `clips_rows` and `clips_columns`,
    whether some tiles end past the tensor's rows or columns.

    Of buffers that are used always, offsets in a tile are less than `span` bytes.
    """

    always: bool
    span: int
    clips_rows: bool
    clips_columns: bool


def buffer_loads(op: Copy, src: TensorTile, resolved: Resolved) -> BufferLoads:
    """The buffer of a copy's tile."""
    checked = resolved.facts[src.buffer, BOUNDS_CHECKED]
    clipped = [checked[dim] for dim in src.along]
    span = _span(op, src, resolved)
    reached = span is not None and span < _BUFFER_BYTES
    return BufferLoads(
        always=reached and (not clipped[0] or _starts_inside(src, resolved)),
        span=span or 0,
        clips_rows=len(clipped) > 1 and clipped[0],
        clips_columns=clipped[-1],
    )


def _span(op: Copy, src: TensorTile, resolved: Resolved) -> int | None:
    """The bytes that any tile spans at most, of all sizes that the launcher accepts; None where that is not known."""
    tensor, extents = src.buffer, op.dst.buffer.static_shape
    if not resolved.target.is_amd or len(extents) < 2:  # vectors are loaded without a buffer
        return None
    if tensor.strides is not None or len(src.along) != len(extents) or src.ends:
        return None
    pitches = [_pitch(tensor, dim, resolved) for dim in src.along]
    offsets = [extent * pitch for extent, pitch in zip(extents, pitches, strict=True) if pitch is not None]
    return sum(offsets) * tensor.dtype.bytes if len(offsets) == len(extents) else None


def _pitch(tensor: Buffer, dim: int, resolved: Resolved) -> int | None:
    """The most elements between neighbours along a dimension; None where any number."""
    inner = [_most(extent, resolved) for extent in tensor.shape[dim + 1 :]]
    known = [each for each in inner if each is not None]
    return prod(known) if len(known) == len(inner) else None


def _most(extent: Expr, resolved: Resolved) -> int | None:
    """The largest value of an extent: a size that is the grid's along y or z has a limit; None where any."""
    value = static_value(extent)
    if value is not None:
        return int(value)
    launch = resolved.launch
    if isinstance(extent, Var) and extent in launch.grid[1:] and resolved.facts.get(launch, PERSISTENT) is None:
        return _MAX_GRID_YZ
    if isinstance(extent, Binary) and extent.op == "//":
        lhs, by = _most(extent.lhs, resolved), static_value(extent.rhs)
        return lhs // int(by) if lhs is not None and by is not None and by > 0 else None
    return None


def _starts_inside(src: TensorTile, resolved: Resolved) -> bool:
    """Whether every tile's first row is one of the tensor's, tile number v of v < ceildiv(extent, rows of a tile), and
    no first column is negative.
    """
    dim, bounds = src.along[0], resolved.bounds
    if not never_negative(src.region.ranges[src.along[-1]].start, bounds):
        return False
    start, extent = src.region.ranges[dim].start, bounds.expanded(src.buffer.shape[dim])
    if not (isinstance(start, Binary) and start.op == "*"):
        return static_value(start) == 0
    for var, rows in ((start.lhs, start.rhs), (start.rhs, start.lhs)):
        size, stop = static_value(rows), bounds.stop(var) if isinstance(var, Var) else None
        low = bounds.interval(var).low if stop is not None else None
        if stop is not None and size is not None and low is not None and low >= 0:
            return any(_is_count(end, extent, size) for end in _ends(bounds.expanded(stop)))
    return False


def _ends(stop: Expr) -> tuple[Expr, ...]:
    """The bounds of which a bound is the least."""
    return stop.args if isinstance(stop, Call) and stop.function == "min" else (stop,)


def _is_count(stop: Expr, extent: Expr, size: Number) -> bool:
    """Whether an expression is the number of tiles of so many rows that cover an extent."""
    match stop:
        case Call(function="ceildiv", args=(whole, rows)):
            return whole == extent and static_value(rows) == size
        case _:
            return False
