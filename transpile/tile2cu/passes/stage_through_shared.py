"""Staging through shared memory: fragments of which an operation needs elements in other threads."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read, covers, element_accesses
from tile2cu.analysis.dependence import is_among, keeps, may_repeat
from tile2cu.analysis.effects import effects
from tile2cu.analysis.prelude import above
from tile2cu.analysis.uses import readers, statements, writers
from tile2cu.core.expr import static_value, walk
from tile2cu.core.program import (
    Buffer,
    Copy,
    Fill,
    Gemm,
    Launch,
    Parallel,
    Reduce,
    Scope,
    Stmt,
    Store,
)
from tile2cu.core.rebuild import Body, under_comments, with_buffer, with_instead
from tile2cu.passes.elements_of_iterations import held_index, indices_read, indices_written, reading_before
from tile2cu.passes.reshape_fragments import view_through_shared
from tile2cu.passes.tiles import fresh, whole


def through_shared(launch: Launch, op: Stmt, tile: Buffer, why: str = "") -> Launch | None:
    """The launch with `op` reading or writing the fragment `tile` through shared memory; None if that is impossible.

    `why` is given for a GEMM's operand that is staged for another reason than other threads. A fragment that is a copy
    of a shared tile with the same contents is not copied again.
    """
    if tile.of is not None:
        return view_through_shared(launch, tile)
    match op:
        case Parallel():
            return _loop(launch, op, tile)
        case Copy():
            return _copy(launch, op)
        case Reduce():
            return _reduction(launch, op, tile)
        case Gemm():
            return _operand(launch, op, tile, why or _READS)
        case _:
            return None


def _loop(launch: Launch, op: Parallel, tile: Buffer) -> Launch | None:
    repeated = [var for var, extent in zip(op.vars, op.extents, strict=True) if static_value(extent) != 1]
    sums = [stmt for stmt in statements(op.body, Store) if stmt.buffer is tile and stmt.op]
    if any(not {*repeated} <= {part for index in stmt.indices for part in walk(index)} for stmt in sums):
        return None  # a sum over elements of other threads: T.reduce_sum
    read, written = indices_read(op, tile), indices_written(op, tile)
    updated = {access.indices for access in element_accesses(op.body) if access.buffer is tile and access.atomic}
    over_all = tuple(static_value(extent) for extent in op.extents) == tile.static_shape  # else it has another layout
    own = held_index(written | updated, op) if over_all or len(op.vars) != tile.rank else None
    if (own is not None and not read - {own}) or (updated and (read or written)):
        return None  # another thread would have to read the written element in the same iteration
    if own is not None:
        before, load = _before(launch, op, tile)
        return _replaced(launch, op, (*load, reading_before(op, tile, before, tile)), (before,))
    if written or updated:
        return _written_through(launch, op, tile)
    source = _same_in_shared(launch, op, tile)
    if source is not None:
        return _without_unread(_replaced(launch, op, (with_buffer(op, tile, source),), ()), tile)
    staged = _staged(launch, tile)
    return _replaced(launch, op, (_moved(op, tile, staged, _READS), with_buffer(op, tile, staged)), (staged,))


def _written_through(launch: Launch, op: Parallel, tile: Buffer) -> Launch:
    """A loop that writes elements of other threads writes to a shared tile, which then goes to the fragment."""
    staged = _staged(launch, tile)
    back = _moved(op, staged, tile, _WRITES)
    read = indices_read(op, tile)
    if not indices_written(op, tile):
        return _replaced(launch, op, (_moved(op, tile, staged, _READS), with_buffer(op, tile, staged), back), (staged,))
    before, load = (tile, ()) if not read or held_index(read, op) else _before(launch, op, tile)
    through = reading_before(op, tile, before, staged)
    if before is not tile and before not in buffers_read(through):
        before, load = tile, ()  # it reads its own stores only
    covered = covers(op, tile) and not is_among(staged, buffers_read(through))
    kept = () if covered else (_moved(op, tile, staged, _READS),)
    return _replaced(launch, op, (*kept, *load, through, back), (staged, before))


def _before(launch: Launch, op: Parallel, tile: Buffer) -> tuple[Buffer, tuple[Stmt, ...]]:
    """A shared tile with the fragment's contents before the loop, and the copy that fills it."""
    source = _same_in_shared(launch, op, tile)
    if source is not None:
        return source, ()
    before = _staged(launch, tile, "_before")
    return before, (_moved(op, tile, before, _BEFORE),)


_READS = "elements of `{}` that other threads hold are read: through shared memory"
_WRITES = "elements of `{}` that other threads hold are written: through shared memory"
_BEFORE = "elements of `{}` from before the loop are read by other threads: through shared memory"


def _copy(launch: Launch, op: Copy) -> Launch | None:
    if not (op.src.whole and op.dst.whole):
        return None
    staged = _staged(launch, op.src.buffer)
    first = replace(op, dst=whole(staged, op), reason=_READS.format(op.src.buffer.name))
    return _replaced(launch, op, (first, replace(op, src=whole(staged, op))), (staged,))


def _reduction(launch: Launch, op: Reduce, tile: Buffer) -> Launch | None:
    """The result keeps its own layout, and is copied; a reduction without a register layout is in shared memory."""
    if tile is op.src:
        staged = _staged(launch, tile)
        parts = (_moved(op, tile, staged, _READS), replace(op, src=staged))
        return _replaced(launch, op, parts, (staged,))
    result = replace(op.dst, name=fresh(launch, f"{op.dst.name}_reduced"))
    staged = _staged(launch, op.dst)
    before = () if op.clear else (_moved(op, op.dst, staged, _READS), _moved(op, staged, result, ""))
    after = (_moved(op, result, staged, _READS), _moved(op, staged, op.dst, ""))
    return _replaced(launch, op, (*before, replace(op, dst=result), *after), (result, staged))


def _operand(launch: Launch, op: Gemm, tile: Buffer, why: str) -> Launch | None:
    if tile is op.c.buffer:
        return None
    staged = _staged(launch, tile)
    a, b = (replace(region, buffer=staged) if region.buffer is tile else region for region in (op.a, op.b))
    return _replaced(launch, op, (_moved(op, tile, staged, why), replace(op, a=a, b=b)), (staged,))


def _staged(launch: Launch, tile: Buffer, suffix: str = "_staged") -> Buffer:
    return replace(tile, name=fresh(launch, tile.name + suffix), scope=Scope.SHARED, comment="", reducer=None)


def _moved(op: Stmt, src: Buffer, dst: Buffer, reason: str) -> Copy:
    fragment = src if src.scope is Scope.FRAGMENT else dst
    return Copy(src=whole(src, op), dst=whole(dst, op), span=op.span, reason=reason.format(fragment.name))


def _replaced(launch: Launch, op: Stmt, by: Body, tiles: tuple[Buffer, ...]) -> Launch:
    """The launch with `by` in the place of `op`, and more tiles. The user's comments stay above the first statement."""
    by = under_comments(op, by)
    body = with_instead(launch.body, {id(op): by})
    new = tuple(tile for tile in tiles if all(tile is not other for other in launch.tiles))
    return replace(launch, body=body, tiles=(*launch.tiles, *new))


def _same_in_shared(launch: Launch, op: Parallel, tile: Buffer) -> Buffer | None:
    """The shared tile that the fragment is a copy of, if it still has the same contents at the loop.

    The copy then depends on no statement between the two that writes either tile, under any name, and the loop does not
    change the shared tile.
    """
    behind: Body = ()
    for stmt in reversed(above(launch.body, op)):
        if isinstance(stmt, Copy) and _is_copy_to(stmt, tile):
            same = may_repeat(stmt, behind) and keeps((op,), of=effects(stmt))
            return stmt.src.buffer if same else None
        behind = (stmt, *behind)
    return None


def _is_copy_to(stmt: Stmt, tile: Buffer) -> bool:
    """Whether the statement makes the fragment equal to a shared tile of its type and shape."""
    if not isinstance(stmt, Copy) or stmt.dst.buffer is not tile or not (stmt.src.whole and stmt.dst.whole):
        return False
    source = stmt.src.buffer
    same = source.dtype == tile.dtype and source.static_shape == tile.static_shape
    return source.scope is Scope.SHARED and same


def _without_unread(launch: Launch, tile: Buffer) -> Launch:
    """The launch without a tile that is not read any more, and without the copy that fills it."""
    filling = writers(launch.body, tile)
    if readers(launch.body, tile) or not all(isinstance(stmt, Copy | Fill) for stmt in filling):
        return launch
    body = with_instead(launch.body, {id(stmt): () for stmt in filling})
    return replace(launch, body=body, tiles=tuple(other for other in launch.tiles if other is not tile))
