"""Whether a copy into a tile may be prefetched in its loop, and why not."""

from tile2cu.analysis.accesses import buffers_read, buffers_written, lets_for, read_by_itself, variables_of
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.lifetimes import FirstUse, first_use
from tile2cu.analysis.prelude import around
from tile2cu.core.expr import Var
from tile2cu.core.memo import kept
from tile2cu.core.program import (
    Assign,
    Buffer,
    Copy,
    Declare,
    Launch,
    Loop,
    Scope,
    Stmt,
    While,
    bodies,
    walk_stmts,
)


def prefetchable(loop: Loop, launch: Launch) -> tuple[Copy, ...]:
    """The copies of a loop's body from tensors to whole shared tiles that earlier iterations can start."""
    copies = (stmt for stmt in loop.body if isinstance(stmt, Copy) and stmt.src.buffer.scope is Scope.GLOBAL)
    return tuple(copy for copy in copies if not unprefetchable(copy, loop, launch)[0])


@kept
def unprefetchable(stmt: Copy, loop: Loop, launch: Launch) -> tuple[str, str]:
    """(why, edit) of a copy from a tensor that cannot be prefetched; empty where it can."""
    tile = stmt.dst.buffer
    if stmt.barrier is not None:
        assert isinstance(stmt.barrier.buffer, Buffer)
        return (
            f"the iteration that starts it waits for it at `{stmt.barrier.buffer.name}`",
            "write T.copy without a barrier",
        )
    if tile.scope is not Scope.SHARED:
        return (
            f"`{tile.name}` is not in shared memory",
            f"copy into a T.alloc_shared tile, and from there to `{tile.name}`",
        )
    if not stmt.dst.whole:
        return f"it fills a part of `{tile.name}`", "give the part a tile of its own"
    position = next(number for number, other in enumerate(loop.body) if other is stmt)
    if tile.of is not None:
        return f"`{tile.name}` is a view of `{tile.of.name}` in another shape", f"copy into `{tile.of.name}`"
    if any(is_among(tile, buffers_written(other)) for other in loop.body if other is not stmt):
        return f"the loop writes `{tile.name}` elsewhere, too", "use a tile of its own for each"
    if any(is_among(tile, buffers_read(other)) for other in loop.body[:position]):
        return f"`{tile.name}` is read before it in the same iteration", "copy before the tile is read"
    if _is_read_later(loop, tile, launch):
        return (
            f"`{tile.name}` is read after the loop, where no stage is selected",
            "read it in the loop, or copy it again",
        )
    needed = (*lets_for(variables_of(stmt), loop.body), stmt)
    names = set().union(*map(variables_of, needed))
    changed = [name.name for name in sorted(names, key=lambda name: name.name) if not _pure(name, loop)]
    if changed:
        return (
            f"its coordinates depend on `{changed[0]}`, which the loop assigns to",
            "compute the coordinates from the loop's variable",
        )
    written = frozenset[Buffer]().union(*map(buffers_written, loop.body))
    both = sorted(part.name for each in needed for part in buffers_read(each) if is_among(part, written))
    return (f"the loop also writes `{both[0]}`", "write to another tensor") if both else ("", "")


def _is_read_later(loop: Loop, tile: Buffer, launch: Launch) -> bool:
    """Whether a statement outside of the loop may read the loop's last value of the tile."""
    inner: Stmt = loop
    for outer in reversed(around(launch.body, loop)):
        (body,) = (body for body in bodies(outer) if any(stmt is inner for stmt in body))
        position = next(at for at, stmt in enumerate(body) if stmt is inner)
        behind = first_use(body[position + 1 :], tile)
        if behind is not None:
            return behind is FirstUse.READ
        recomputed = is_among(tile, read_by_itself(outer)) or first_use(body[:position], tile) is FirstUse.READ
        if isinstance(outer, Loop | While) and recomputed:
            return True
        inner = outer
    position = next(at for at, stmt in enumerate(launch.body) if stmt is inner)
    return first_use(launch.body[position + 1 :], tile) is FirstUse.READ


def _pure(name: Var, loop: Loop) -> bool:
    """Whether a value can be computed earlier: it is not assigned to in the loop's body."""
    return not any(isinstance(stmt, Assign | Declare) and stmt.var == name for stmt in walk_stmts(loop.body))
