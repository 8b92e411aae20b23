"""Explicitly staged results: shared tiles of the user between a fragment and a tensor."""

from collections.abc import Iterator

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written, viewed
from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.dependence import keeps
from tile2cu.analysis.effects import effects
from tile2cu.analysis.prelude import before, behind
from tile2cu.analysis.uses import statements, using
from tile2cu.core.program import Buffer, Copy, Launch, Parallel, Scope, Stmt
from tile2cu.core.rebuild import with_buffer, with_instead
from tile2cu.core.record import Record
from tile2cu.passes.predicated_copies import bounded
from tile2cu.passes.tiles import whole


class Unstaged(Record, frozen=True):
    """The `launch` without a shared `tile`, and the `copy` that then stores the result to its tensor.

    A loop may store some rows only: the copy is in a branch then. `user` is the statement that stores the tile now.
    """

    tile: Buffer
    copy: Copy
    user: Stmt
    launch: Launch
    in_branch: bool


def unstaged(launch: Launch, bounds: Bounds) -> Iterator[Unstaged]:
    """The launch without each shared tile that only takes a fragment to a tensor of the tile's type.

    T.copy(C_local, C_shared)          T.copy(C_local, C[by * 128, bx * 128])
    T.copy(C_shared, C[...])     is
    """
    for staging in statements(launch.body, Copy, below=False):
        if not _stages(staging, launch):
            continue
        user, stored = _stored(staging, launch)
        found = bounded(stored, bounds) if isinstance(stored, Parallel) else None
        copy = found[0] if found is not None else stored
        tile = staging.dst.buffer
        if user is not None and stored is not None and isinstance(copy, Copy) and copy.dst.buffer.dtype == tile.dtype:
            body = with_instead(launch.body, {id(user): (stored,), id(staging): ()})
            tiles = tuple(each for each in launch.tiles if each is not tile)
            yield Unstaged(tile, copy, user, replace(launch, body=body, tiles=tiles), found is not None)


def _stages(op: Copy, launch: Launch) -> bool:
    """Whether a copy fills a shared tile with a fragment."""
    src, dst = op.src, op.dst
    scopes = (src.buffer.scope, dst.buffer.scope) == (Scope.FRAGMENT, Scope.SHARED)
    return op.plain and scopes and src.whole and dst.whole and dst.buffer.of is None and not viewed(launch, dst.buffer)


def _stored(staging: Copy, launch: Launch) -> tuple[Stmt | None, Stmt | None]:
    """The only other statement that uses a tile, and the same with the copied fragment in its place."""
    tile, result = staging.dst.buffer, staging.src.buffer
    first, *users = using(launch.body, tile)
    if first is not staging or len(users) != 1 or tile in buffers_written(users[0]):
        return None, None
    (user,) = users
    if not keeps(before(behind(launch.body, staging), user), of=effects(staging)):
        return None, None
    if isinstance(user, Copy) and user.src.buffer is tile and user.src.whole and not (user.begun or user.transposed):
        return user, replace(user, src=whole(result, user))
    return user, with_buffer(user, tile, result) if isinstance(user, Parallel) else None
