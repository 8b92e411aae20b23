"""Loops that change elements of memory in place and write fragments, of which several threads hold each element."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_written, read_by_itself
from tile2cu.analysis.dependence import is_among
from tile2cu.analysis.lifetimes import begins_by_writing
from tile2cu.analysis.uses import outside_of
from tile2cu.core.program import Buffer, Copy, Launch, Parallel, Scope
from tile2cu.core.rebuild import under_comments, with_buffer, with_instead
from tile2cu.passes.tiles import fresh, whole

_ABOUT = "Each element has one thread here, so that no other reads its store: `{}` through shared memory"


def by_one_thread_each(launch: Launch, op: Parallel) -> Launch:
    """The launch whose loop writes shared tiles in place of the fragments, so that one thread does all of an element.

    for i in T.Parallel(64):                    for i in T.Parallel(64):
        scale[i] = before[i] - now[i]   is          scale_shared[i] = before[i] - now[i]
        before[i] = now[i]                          before[i] = now[i]
                                                T.copy(scale_shared, scale)
    """
    alone, first, last = op, [], []
    for tile in _fragments(op):
        held = replace(tile, name=fresh(launch, f"{tile.name}_shared"), scope=Scope.SHARED, comment="")
        launch = replace(launch, tiles=(*launch.tiles, held))
        if not begins_by_writing(op, tile):
            first.append(Copy(src=whole(tile, op), dst=whole(held, op), span=op.span))
        last.append(Copy(src=whole(held, op), dst=whole(tile, op), span=op.span))
        alone = with_buffer(alone, tile, held)
    about = _ABOUT.format("`, `".join(tile.name for tile in _fragments(op)))
    stmts = under_comments(replace(op, comments=(*op.comments, about)), (*first, alone, *last))
    return replace(launch, body=with_instead(launch.body, {id(op): stmts}))


def only_it_reads(op: Parallel, launch: Launch) -> bool:
    """Whether nothing but the loop reads the fragments that it writes: threads that store nothing may skip it."""
    others = [read_by_itself(stmt) for stmt in outside_of((op,), launch.body)]
    return not any(is_among(tile, read) for read in others for tile in _fragments(op))


def _fragments(op: Parallel) -> list[Buffer]:
    found = (tile for tile in buffers_written(op) if tile.scope is Scope.FRAGMENT)
    return sorted(found, key=lambda tile: tile.name)
