"""Rescales of an online softmax that a wave skips where no row's maximum changes."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import LAYOUT, VOTED_RESCALE
from tile2cu.core.layout import Slice
from tile2cu.core.mfma_layout import MfmaAccumulator
from tile2cu.core.program import Loop, Parallel
from tile2cu.core.schedule import RowFactor, VotedRescale
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.schedule.rescale_factors import keeps_earlier, row_factor

_RESCALED = """
A = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
O = T.alloc_fragment((64, 64), "float32")
top = T.alloc_fragment((64,), "float32")
old = T.alloc_fragment((64,), "float32")
factor = T.alloc_fragment((64,), "float32")
T.copy(Z[0, 0], A)
T.fill(O, 0)
T.fill(top, -T.infinity("float32"))
for k in T.serial(4):
    T.gemm(A, A, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
    T.copy(top, old)
    T.reduce_max(S, top, dim=1, clear=False)
    for i in T.Parallel(64):
        top[i] = T.if_then_else(top[i] - old[i] > 8, top[i], old[i])
    for i in T.Parallel(64):
        factor[i] = T.exp2(old[i] - top[i])
    for i, j in T.Parallel(64, 64):
        O[i, j] *= factor[i]
    T.gemm(A, A, O, policy=T.GemmWarpPolicy.FullRow)
"""


@rule(
    "schedule.rescale.voted",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT,),
    writes=(VOTED_RESCALE,),
    source="the AMD simulator: docs/amd_cost.md, vector instructions of attention's loop",
    examples=(Example(_RESCALED, 18, "voted_rescale", "where top changes", target="hip:gfx942"),),
)
def voted_rescale(op: Loop, context: Context) -> Iterator[Decision]:
    """Waves skip the rescale of an accumulator in iterations that keep the reference of all of their rows.

    The factor of a row is a power of the difference of two values of it, of which the user keeps the older one in most
    iterations, as in an online softmax with slack. One vote of the wave (`tl::any_changed`, a compare of each value and
    a scalar branch) replaces a multiplication of each element by 1.

    Gives: the loop over the accumulator, and whose change it waits for.
    """
    if not context.target.mfma:
        return
    body = op.body
    loops = [loop for loop in statements(body, Parallel) if loop in body]
    for position, computed in enumerate(loops):
        factor = row_factor(computed, tuple(loops[position + 1 :]))
        if factor is None or not any(keeps_earlier(each, factor) for each in loops[:position]):
            continue
        for scaled in factor.scaled:
            if isinstance(scaled, Parallel) and len(scaled.vars) == 2 and _holds_at(scaled, factor, op, context):
                yield scaled, VOTED_RESCALE, VotedRescale(factor.before, factor.after)


def _holds_at(scaled: Parallel, factor: RowFactor, loop: Loop, context: Context) -> bool:
    """Whether the values are still those of the factor, and a lane has the factors of its MFMA accumulator's rows."""
    rows = (factor.before, factor.after, factor.tile)
    between = loop.body[loop.body.index(factor.op) + 1 : loop.body.index(scaled)]
    kept = not any(buffers_written(stmt) & set(rows) for stmt in between)
    layouts = {context.facts[tile, LAYOUT] for tile in rows}
    of_rows, of_tile = layouts.pop(), context.facts[scaled, LAYOUT]
    if not kept or layouts or not isinstance(of_rows, Slice) or of_rows.kept != (0,):
        return False
    of = of_rows.of
    if not isinstance(of, MfmaAccumulator) or not isinstance(of_tile, MfmaAccumulator):
        return False
    return (of.rows, of.warps.m, of.size, 4) == (of_tile.rows, of_tile.warps.m, of_tile.size, of_tile.run)
