"""Reshaped fragments: the same registers where a layout supports it, else a copy through shared memory."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_used,
    buffers_written,
    expressions,
    loads,
    overwrites,
)
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.uses import statements
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Copy, Gemm, If, Launch, Loop, Scope, Stmt, While
from tile2cu.core.rebuild import Body, under_comments, with_bodies, with_buffer
from tile2cu.passes.tiles import fresh, whole

_READS = "`{}` is a reshape of `{}` with a different distribution over threads: through shared memory"
_WRITES = "`{}`, a reshape of `{}`, was written: through shared memory"


def views_through_shared(launch: Launch) -> Launch:
    """The launch with fragments' views as tiles of their own, except those that may keep an accumulator's registers.

    A read of a view depends on every write of the fragment's storage, under any name: the copy to the view's own tile
    is between the two.
    """
    for tile in launch.tiles:
        if tile.scope is Scope.FRAGMENT and tile.of is not None and not _may_stay(tile, launch):
            launch = view_through_shared(launch, tile)
    return launch


def _may_stay(view: Buffer, launch: Launch) -> bool:
    """Whether the view groups the columns of an accumulator."""
    assert view.of is not None
    mmas = [*statements(launch.body, Gemm)]
    operands = [region.buffer for op in mmas for region in (op.a, op.b, op.c)]
    rows, *rest = view.of.static_shape
    return (
        any(op.c.buffer is view.of for op in mmas)
        and not any(tile is view for tile in operands)
        and view.dtype == view.of.dtype
        and view.rank == 3
        and view.static_shape[0] == rows
        and len(rest) == 1
    )


def view_through_shared(launch: Launch, view: Buffer) -> Launch:
    """The launch with one view of a fragment as a tile of its own, which is filled and emptied where it is used."""
    assert view.of is not None
    tiles = [tile for tile in launch.tiles if tile is not view]
    own = replace(view, of=None)
    staged = replace(view.of, name=fresh(launch, f"{view.of.name}_staged"), scope=Scope.SHARED, comment="")
    launch = replace(launch, tiles=(*tiles, own, staged))
    shown = replace(view, name=fresh(launch, f"{view.name}_staged"), scope=Scope.SHARED, of=staged)
    moves = _Moves(view, own, staged, shown)
    body, _ = moves.body(launch.body, fresh_view=False)
    return replace(launch, body=body, tiles=(*launch.tiles, shown))


class _Moves:
    """Emits the copies between a fragment and its view."""

    def __init__(self, view: Buffer, own: Buffer, staged: Buffer, shown: Buffer) -> None:
        assert view.of is not None
        self.view, self.of, self.own, self.staged, self.shown = view, view.of, own, staged, shown

    def body(self, body: Body, *, fresh_view: bool) -> tuple[Body, bool]:
        """The statements with the copies that they need, and whether the view equals the fragment at the end.
        `fresh_view` is the same for the beginning.
        """
        found: list[Stmt] = []
        for stmt in body:
            match stmt:
                case If() | Loop() | While() if any(
                    access.buffer is self.view for part in expressions(stmt) for access in loads(part, stmt.span)
                ):
                    raise _read_in_condition(self.view, stmt)
                case If():
                    inside, fresh_view = self.inside(stmt, fresh_view)
                    found.append(inside)
                case Loop() | While():
                    kept = fresh_view and not is_among(self.of, buffers_written(stmt))
                    inside, after = self.inside(stmt, kept)
                    found.append(inside)
                    fresh_view = kept and after
                case _:
                    found += self.moved(stmt, fresh_view)
                    fresh_view = self.is_fresh_after(stmt, fresh_view)
        return tuple(found), fresh_view

    def inside(self, stmt: Stmt, fresh_view: bool) -> tuple[Stmt, bool]:
        """The same for a loop or a branch, each of whose bodies begins so."""
        ends: list[bool] = []

        def moved(body: Body) -> Body:
            found, after = self.body(body, fresh_view=fresh_view)
            ends.append(after)
            return found

        return with_bodies(stmt, moved), all(ends)

    def moved(self, stmt: Stmt, fresh_view: bool) -> Body:
        """The statement on the view's own tile, after the copy to it and before the copy from it."""
        reads, writes = (any(b is self.view for b in found) for found in (buffers_read(stmt), buffers_written(stmt)))
        if not (reads or writes):
            return (stmt,)
        parts: list[Stmt] = []
        if not fresh_view and (reads or not overwrites(stmt, self.view)):
            parts += self._copies(stmt, self.of, self.staged, self.shown, self.own, _READS)
        parts.append(with_buffer(stmt, self.view, self.own))
        if writes:
            parts += self._copies(stmt, self.own, self.shown, self.staged, self.of, _WRITES)
        return under_comments(stmt, parts)

    def is_fresh_after(self, stmt: Stmt, fresh_view: bool) -> bool:
        if is_among(self.of, (buffer for buffer in buffers_written(stmt) if buffer is not self.view)):
            return False  # through another view, too
        return fresh_view or any(buffer is self.view for buffer in buffers_used(stmt))

    def _copies(self, op: Stmt, src: Buffer, by: Buffer, by_too: Buffer, dst: Buffer, reason: str) -> Body:
        """A tile to another in a different shape: through a shared tile that has both."""
        because = reason.format(self.view.name, self.of.name)
        return (
            Copy(src=whole(src, op), dst=whole(by, op), span=op.span, reason=because),
            Copy(src=whole(by_too, op), dst=whole(dst, op), span=op.span, reason=because),
        )


def _read_in_condition(view: Buffer, stmt: Stmt) -> Tile2CuError:
    return Tile2CuError(
        "T2C-L014",
        f"a condition or a loop's bound reads `{view.name}`, a reshape of a fragment",
        stmt.span,
        help="read the element into a T.alloc_var before, or keep the tile in shared memory",
    )
