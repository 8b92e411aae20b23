"""Copy forwarding: shared tiles that only pass data of a copy to the next statement are left out."""

from math import prod

from msgspec.structs import replace

from tile2cu.analysis.accesses import (
    buffers_used,
    element_accesses,
    used_by_itself,
    viewed,
)
from tile2cu.analysis.dependence import keeps
from tile2cu.analysis.effects import effects
from tile2cu.analysis.uses import has_mma, outside_of, pipelined_loops, readers
from tile2cu.core.expr import Expr, Load, binary, static_value
from tile2cu.core.program import (
    Buffer,
    Copy,
    Launch,
    Parallel,
    Scope,
    Stmt,
)
from tile2cu.core.rebuild import Body, in_body, with_expressions

COPY_FORWARDING = "rewrite.copy.forwarded"
_MOST_BYTES = 128  # of a tile per thread, in registers


def forwarded_copies(launch: Launch) -> Launch:
    """The launch without shared tiles that only pass a tensor's tile to registers, or registers to a tensor.

        T.copy(X[bx * 4, 0], shared)            T.copy(X[bx * 4, 0], local)
        T.copy(shared, local)           is
        for i, j in T.Parallel(4, N):           for i, j in T.Parallel(4, N):
            local[i, j] *= 2                        local[i, j] *= 2
        T.copy(local, shared)                   T.copy(local, Y[bx * 4, 0])
        T.copy(shared, Y[bx * 4, 0])

    This removes two barriers, and no thread waits for the slowest load of the block. The fragment's layout must be
    coalesced, so launches with GEMMs are unchanged. Tiles of more than 128 bytes per thread that are read twice use
    shared memory, as loads would wait for registers (on an H200 log(sum(exp(x))) of 4096 halves in 32 threads has 0.87
    of the speed with forwarding).
    """
    if launch.groups > 1 or has_mma(launch):
        return launch
    for tile in launch.tiles:
        if tile.scope is Scope.SHARED and tile.of is None and not viewed(launch, tile):
            launch = _without(tile, launch) or launch
    return launch


def _without(tile: Buffer, launch: Launch) -> Launch | None:
    """The launch without the tile; None where it is used otherwise."""
    staged = tile.dtype.bytes_of(prod(tile.static_shape)) > _MOST_BYTES * launch.threads and _is_kept(tile, launch)
    instead: dict[int, Body] = {}
    joined: list[Stmt] = []

    def change(body: Body, position: int) -> Body | None:
        here = body[position : position + 2]
        both = _forwarded(*here, tile) if len(here) == 2 else None
        if both is not None:
            joined.extend(here)
            if not (staged and here[0].src.buffer.scope is Scope.GLOBAL):  # type: ignore[attr-defined]
                instead[id(here[0])], instead[id(here[1])] = (both,), ()
        return instead.get(id(body[position]))

    body = in_body(launch.body, change)
    in_loops = any(tile in buffers_used(loop) for loop in pipelined_loops(launch) if loop.num_stages > 0)
    others = any(tile in used_by_itself(op) for op in outside_of(joined, launch.body))
    if not joined or in_loops or others:
        return None
    tiles = launch.tiles if staged else tuple(each for each in launch.tiles if each is not tile)
    return replace(launch, body=body, tiles=tiles)


def _is_kept(tile: Buffer, launch: Launch) -> bool:
    """Whether the tile's data is read from registers: several statements read a fragment of its shape."""
    like = (each for each in launch.tiles if each.scope is Scope.FRAGMENT and each.static_shape == tile.static_shape)
    return any(len(readers(launch.body, each)) > 1 for each in like)


def _forwarded(first: Stmt, second: Stmt, tile: Buffer) -> Stmt | None:
    """The replacement of a statement that writes the tile and one that reads it; None where there is none."""
    if not isinstance(first, Copy) or not _is_plain(first) or first.dst.buffer is not tile or not first.dst.whole:
        return None
    if not keeps((second,), of=effects(first)):
        return None  # it would read data that the other statement has already changed
    about = f"`{tile.name}` would only carry it  [{COPY_FORWARDING}]"
    comments = (*first.comments, *second.comments, about)
    loads = first.src.buffer.scope is Scope.GLOBAL and first.src.buffer.dtype == tile.dtype
    match second:
        case Copy(dst=to) if _is_plain(second) and second.src.buffer is tile and second.src.whole:
            if loads and to.buffer.scope is Scope.FRAGMENT and to.whole and to.buffer.shape == tile.shape:
                return replace(first, dst=to, comments=comments)
            stores = to.buffer.scope is Scope.GLOBAL and to.buffer.dtype == tile.dtype and not second.evict
            if stores and first.src.buffer.scope is Scope.FRAGMENT and first.src.whole:
                return replace(second, src=first.src, comments=comments)
        case Parallel() if loads and not first.evict:
            return _reading(second, first, tile, comments)
        case _:
            pass
    return None


def _is_plain(copy: Copy) -> bool:
    elsewhere = any(part is not None for part in (copy.barrier, copy.block, copy.remote))
    return not (elsewhere or copy.begun or copy.blocks or copy.transposed or copy.laid_out)


def _reading(loop: Parallel, copy: Copy, tile: Buffer, comments: tuple[str, ...]) -> Parallel | None:
    """The loop that reads each element of the tile once, at its own index, with the tensor's element instead."""
    accesses = [access for access in element_accesses(loop.body) if access.buffer is tile]
    whole = tuple(map(static_value, loop.extents)) == tile.static_shape
    each_once = len(accesses) == 1 and not accesses[0].is_store and accesses[0].indices == loop.vars
    region, tensor = copy.src, copy.src.buffer
    before = len(region.ranges) - tile.rank
    fitting = before >= 0 and all(static_value(part.extent) == 1 for part in region.ranges[:before])
    extents = tuple(static_value(part.extent) for part in region.ranges[before:])
    if not (whole and each_once and fitting and extents == tile.static_shape):
        return None
    starts = tuple(part.start for part in region.ranges)
    within = (binary("+", start, var) for start, var in zip(starts[before:], loop.vars, strict=True))
    position = (*starts[:before], *within)

    def element(expr: Expr) -> Expr | None:
        return Load(tensor.dtype, tensor, position) if isinstance(expr, Load) and expr.buffer is tile else None

    return replace(with_expressions(loop, element), comments=comments)
