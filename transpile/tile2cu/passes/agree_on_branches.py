"""Branches on tensors that the kernel writes: the threads of a block agree, so that all of them reach its barriers.

`if Flag[0] > 0: ...` is `if any_of_block(Flag[0] > 0): ...`, and one thread reads the bounds of a loop for all of them.
Another block may write the element while the threads of this one read it, each at its own time.
"""

from msgspec.structs import replace

from tile2cu.analysis.reach import decisions
from tile2cu.analysis.uniformity import BLOCK_MEMORY, MEMORY, Uniformity, uniformity_of
from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.dtype import BOOL, INT32
from tile2cu.core.expr import Call, Expr, Load, binary, int_const
from tile2cu.core.program import Buffer, If, Launch, Loop, Scope, Stmt, Store
from tile2cu.core.rebuild import with_instead

_ONCE = "One thread reads the loop's bounds for all of the block: another block may write meanwhile what they read"
_WHY = "All threads of the block go one way, also where another block writes meanwhile what they read"


def agreed_around(launch: Launch, stmt: Stmt) -> Launch | None:
    """The launch in which a block votes in the outermost branch or loop around a statement that needs it.

    None where none does, or where it is in code that some threads do not reach.
    """
    at_one_time, alone = uniformity_of(launch, MEMORY), uniformity_of(launch, BLOCK_MEMORY)
    for branch, asked in decisions(launch, stmt):
        if all(map(alone.holds, asked)):
            continue
        if not all(map(at_one_time.holds, asked)):
            return None
        if isinstance(branch, Loop):
            return _with_bounds_of_one_thread(launch, branch, alone)
        vote = Call(BOOL, "any_of_block", (branch.condition,))
        changed = replace(branch, condition=vote, comments=(*branch.comments, _WHY))
        return replace(launch, body=with_instead(launch.body, {id(branch): (changed,)}))
    return None


def _with_bounds_of_one_thread(launch: Launch, loop: Loop, alone: Uniformity) -> Launch:
    """The launch in which a loop's bounds pass through shared memory."""
    tiles, stores, names = list[Buffer](), list[Store](), names_of(launch)

    def through_shared(name: str, value: Expr) -> Expr:
        if alone.holds(value):
            return value
        own = unused(f"{loop.var.name}_{name}", names)
        tile = Buffer(name=own, shape=(int_const(1),), dtype=value.dtype, scope=Scope.SHARED, span=loop.span)
        tiles.append(tile)
        stores.append(Store(buffer=tile, indices=(int_const(0),), value=value, span=loop.span))
        return Load(tile.dtype, tile, (int_const(0),))

    start, stop, step = map(through_shared, ("start", "stop", "step"), (loop.start, loop.stop, loop.step))
    first = binary("==", Call(INT32, "thread", ()), int_const(0))
    reading = If(condition=first, then=tuple(stores), span=loop.span, comments=(_ONCE,))
    read = replace(loop, start=start, stop=stop, step=step)
    body = with_instead(launch.body, {id(loop): (reading, read)})
    return replace(launch, body=body, tiles=(*launch.tiles, *tiles))
