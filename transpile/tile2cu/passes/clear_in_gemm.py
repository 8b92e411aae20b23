"""Accumulators that an iteration clears for the next iteration's MMA: the MMA overwrites them instead."""

from dataclasses import replace

from tile2cu.analysis.accesses import used_by_itself, viewed
from tile2cu.analysis.uses import has, outside_of, statements, using
from tile2cu.core.expr import static_value
from tile2cu.core.program import (
    Buffer,
    Continue,
    Fill,
    Gemm,
    Launch,
    Loop,
    Scope,
    Stmt,
)
from tile2cu.core.rebuild import Body, with_instead

OVERWRITES = "rewrite.gemm.clears"
_ABOUT = "It overwrites {}, which was zero here: nothing else reads the zeros  [{}]"


def overwriting_gemms(launch: Launch) -> Launch:
    """The launch whose GEMMs overwrite accumulators that the previous iteration would have cleared.

        T.clear(S)                                  for k in ...:
        for k in ...:                                   T.gemm(A, B, S, clear_accum=True)
            T.gemm(A, B, S)                 is          ...
            ...
            T.clear(S)

    Nothing else uses the tile. Some compilers find this themselves; others clear registers in each iteration.
    """
    for loop in statements(launch.body, Loop):
        for mma in statements(loop.body, Gemm, below=False):
            cleared = _cleared(mma, loop, launch)
            if cleared is not None:
                about = _ABOUT.format(mma.c.buffer.name, OVERWRITES)
                overwriting = replace(mma, clear=True, comments=(*mma.comments, about))
                by = {id(stmt): () for stmt in cleared} | {id(mma): (overwriting,)}
                return overwriting_gemms(replace(launch, body=with_instead(launch.body, by)))
    return launch


def _cleared(mma: Gemm, loop: Loop, launch: Launch) -> Body | None:
    """The two statements that clear the accumulator, before the loop and at the end of an iteration."""
    tile = mma.c.buffer
    if mma.clear or mma.clear_if is not None or tile.scope is not Scope.FRAGMENT or not mma.c.whole:
        return None
    if viewed(launch, tile) or has(loop.body, Continue):
        return None  # another tile aliases it; or an iteration may end before the tile is cleared
    outside = [op for op in outside_of((loop,), launch.body) if tile in used_by_itself(op)]
    first, *others = using(loop.body, tile)
    if first is not mma or not others or len(outside) != 1:
        return None
    cleared = (outside[0], others[-1])
    before = loop in launch.body and outside[0] in launch.body[: launch.body.index(loop)]
    return cleared if before and all(_clears(op, tile) for op in cleared) else None


def _clears(op: Stmt, tile: Buffer) -> bool:
    return isinstance(op, Fill) and op.dst.buffer is tile and op.dst.whole and static_value(op.value) == 0
