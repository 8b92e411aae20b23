"""Accumulators that are cleared for the next MMA of them: the MMA overwrites them instead."""

from msgspec.structs import replace

from tile2cu.analysis.accesses import used_by_itself, viewed
from tile2cu.analysis.effects import may_leave
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
from tile2cu.core.rebuild import Body, in_body, with_instead
from tile2cu.passes.shared_operands import share_columns

OVERWRITES = "rewrite.gemm.clears"
_ABOUT = "It overwrites {}, which was zero here: nothing else reads the zeros  [{}]"


def overwriting_gemms(launch: Launch) -> Launch:
    """The launch whose GEMMs overwrite accumulators that a statement before them, or an iteration, would have cleared.

        T.clear(S)                      is      T.gemm(A, B, S, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
        T.gemm(A, B, S, policy=T.GemmWarpPolicy.FullCol)

        T.clear(S)                                  for k in ...:
        for k in ...:                                   T.gemm(A, B, S, clear_accum=True)
            T.gemm(A, B, S)                 is          ...
            ...
            T.clear(S)

    Nothing else uses the tile. Some compilers find this themselves; others clear registers in each iteration. In one
    body it is done where warpgroups share the columns, as these may alternate then (`pipeline.loop.ping-pong`):
    elsewhere an attention backward of five GEMMs had 0.60 of its speed, decoding 1.00 (H200, nvcc 13.0).
    """
    for loop in statements(launch.body, Loop):
        for mma in statements(loop.body, Gemm, below=False):
            cleared = _cleared(mma, loop, launch)
            if cleared is not None:
                by = {id(stmt): () for stmt in cleared} | {id(mma): (_overwriting(mma),)}
                return overwriting_gemms(replace(launch, body=with_instead(launch.body, by)))
    return _of_the_same_body(launch)


def _overwriting(mma: Gemm, *others: str) -> Gemm:
    """The GEMM that overwrites its accumulator, with the comments of `others` before its own."""
    about = _ABOUT.format(mma.c.buffer.name, OVERWRITES)
    return replace(mma, clear=True, comments=(*others, *mma.comments, about))


def _of_the_same_body(launch: Launch) -> Launch:
    """The launch whose GEMMs overwrite accumulators that an earlier statement of the same body clears."""
    instead: dict[int, Body] = {}

    def change(body: Body, position: int) -> Body | None:
        clear = body[position]
        mma = _next_user(clear, body[position + 1 :], launch)
        if mma is not None:
            instead[id(clear)], instead[id(mma)] = (), (_overwriting(mma, *clear.comments),)
        return instead.get(id(clear))

    return replace(launch, body=in_body(launch.body, change))


def _next_user(clear: Stmt, behind: Body, launch: Launch) -> Gemm | None:
    """The GEMM that accumulates to what a statement clears, and runs whenever that does; None for any other user."""
    if not isinstance(clear, Fill) or not _clears(clear, clear.dst.buffer) or viewed(launch, clear.dst.buffer):
        return None
    tile = clear.dst.buffer
    mma = next(iter(using(behind, tile)), None)
    if not isinstance(mma, Gemm) or tile in (mma.a.buffer, mma.b.buffer) or not _accumulates(mma):
        return None
    if not share_columns(mma, launch):
        return None
    return None if may_leave(behind[: behind.index(mma)]) else mma


def _accumulates(mma: Gemm) -> bool:
    """Whether a GEMM adds to a whole fragment, in every case."""
    return not mma.clear and mma.clear_if is None and mma.c.buffer.scope is Scope.FRAGMENT and mma.c.whole


def _cleared(mma: Gemm, loop: Loop, launch: Launch) -> Body | None:
    """The two statements that clear the accumulator, before the loop and at the end of an iteration."""
    tile = mma.c.buffer
    if not _accumulates(mma) or viewed(launch, tile) or has(loop.body, Continue):
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
