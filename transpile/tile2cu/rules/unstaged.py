"""Hopper and later: results that a kernel stages in shared memory by hand, on their way to a tensor."""

from collections.abc import Iterator
from dataclasses import replace

from tile2cu.core.accesses import buffers_read, buffers_written, viewed
from tile2cu.core.expr import static_value
from tile2cu.core.program import Buffer, Copy, Launch, Parallel, Scope, Stmt, walk_stmts
from tile2cu.rules.engine import Context, Decision, Phase, rule
from tile2cu.rules.hopper import is_specialised
from tile2cu.rules.rewrite.bounded import bounded
from tile2cu.rules.rewrite.replace import with_buffer
from tile2cu.rules.rewrite.tiles import whole
from tile2cu.rules.tma_store import leaves_by_tma


@rule(
    "epilogue.copy.unstaged",
    phase=Phase.SELECT,
    on=Launch,
    source="measured on an H200: benchmarks/RESULTS.md, attention of packed sequences",
)
def unstaged(launch: Launch, context: Context) -> Iterator[Decision]:
    """A shared tile that only takes a product's result to a tensor is left out where TMA stores the result.

        T.copy(C_local, C_shared)          T.copy(C_local, C[by * 128, bx * 128])
        T.copy(C_shared, C[...])     is

    TMA stores it from a tile that is laid out for it, without a barrier of the block, and blocks may stay.

    Gives: the launch without the tile, about which all is then decided anew.
    """
    if not is_specialised(context):
        return
    for staging in launch.body:
        if isinstance(staging, Copy) and _stages(staging, launch):
            user, stored = _stored(staging, launch)
            copy = bounded(stored, context.bounds) if isinstance(stored, Parallel) else stored
            copy = copy[0] if isinstance(copy, tuple) else copy
            if stored is not None and isinstance(copy, Copy) and _leaves(copy, staging, context):
                body = tuple(stored if stmt is user else stmt for stmt in launch.body if stmt is not staging)
                tiles = tuple(tile for tile in launch.tiles if tile is not staging.dst.buffer)
                yield launch, "unstaged", replace(launch, body=body, tiles=tiles)
                return


def _leaves(copy: Copy, staging: Copy, context: Context) -> bool:
    """Whether TMA stores the result, rounded once, wherever a run puts its rows."""
    dst = copy.dst.buffer
    given = static_value(dst.shape[-1]) is not None and dst.strides is None
    return given and dst.dtype == staging.dst.buffer.dtype and leaves_by_tma(copy, context)


def _stages(op: Copy, launch: Launch) -> bool:
    """Whether a copy fills a shared tile with a fragment."""
    src, dst = op.src, op.dst
    plain = not (op.transposed or op.reason or op.begun or op.barrier or op.block or op.remote or op.blocks)
    scopes = (src.buffer.scope, dst.buffer.scope) == (Scope.FRAGMENT, Scope.SHARED)
    return plain and scopes and src.whole and dst.whole and dst.buffer.of is None and not viewed(launch, dst.buffer)


def _stored(staging: Copy, launch: Launch) -> tuple[Stmt | None, Stmt | None]:
    """The only other statement that uses a tile, and the same with what was copied to it in its place."""
    tile, result = staging.dst.buffer, staging.src.buffer
    users = [stmt for stmt in launch.body if stmt is not staging and tile in _uses(stmt, written=True)]
    if len(users) != 1 or tile in _uses(users[0], written=True, read=False):
        return None, None
    (user,) = users
    order = [id(stmt) for stmt in launch.body]
    first, last = order.index(id(staging)), order.index(id(user))
    if first > last or any(result in _uses(stmt, written=True, read=False) for stmt in launch.body[first + 1 : last]):
        return None, None
    if isinstance(user, Copy) and user.src.buffer is tile and user.src.whole and not (user.begun or user.transposed):
        return user, replace(user, src=whole(result, user))
    return user, with_buffer(user, tile, result) if isinstance(user, Parallel) else None


def _uses(stmt: Stmt, *, written: bool = False, read: bool = True) -> set[Buffer]:
    """The tiles and tensors that a statement reads or writes, with all below it."""
    found: set[Buffer] = set()
    for part in walk_stmts((stmt,)):
        found |= buffers_read(part) if read else set()
        found |= buffers_written(part) if written else set()
    return found
