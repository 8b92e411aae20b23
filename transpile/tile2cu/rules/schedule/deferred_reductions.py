"""Row sums over all iterations whose warp reduction is deferred past the loop."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_written, overwrites, used_by_itself, viewed
from tile2cu.analysis.prelude import before, outermost
from tile2cu.core.decisions import (
    DEFERRED_REDUCTION,
    LAYOUT,
    PIPELINE,
    SCHEDULE,
    THREAD_LOCAL_SUM,
    UNMASKED_ITERATIONS,
)
from tile2cu.core.expr import OF_THREAD, Binary, Call, Expr, Load, static_value, walk
from tile2cu.core.program import (
    Buffer,
    Fill,
    Loop,
    Parallel,
    Reduce,
    Reduction,
    Scope,
    Stmt,
    Store,
    operations,
    steps,
)
from tile2cu.core.schedule import DeferredReduction, MmaOverlap
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.schedule.pipeline import iterations_adjacent

_ATTENTION = """
Q_shared = T.alloc_shared((128, 64), "float16")
K_shared = T.alloc_shared((64, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((128, 64), "float32")
P = T.alloc_fragment((128, 64), "float16")
O = T.alloc_fragment((128, 64), "float32")
part = T.alloc_fragment((128,), "float32")
total = T.alloc_fragment((128,), "float32")
T.copy(Z[0, 0], Q_shared)
T.fill(total, 0)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], K_shared)
    T.copy(Z[k * 64, 64], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    if k * 64 + 63 >= m:
        for i, j in T.Parallel(128, 64):
            S[i, j] = T.if_then_else(k * 64 + j < m, S[i, j], -T.infinity('float32'))
    T.reduce_sum(S, part, dim=1)
    for i in T.Parallel(128):
        total[i] = total[i] * 0.5 + part[i]
    T.copy(S, P)
    T.gemm(P, V_shared, O)
"""


@rule(
    "pipeline.loop.deferred-reduction",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(LAYOUT, PIPELINE, SCHEDULE, UNMASKED_ITERATIONS),
    writes=(DEFERRED_REDUCTION, THREAD_LOCAL_SUM),
    source="measured on an H200: benchmarks/RESULTS.md, 1 % of attention with unmasked iterations or a skipped rescale",
    examples=(
        Example(_ATTENTION, 11, "deferred_reduction", "warp reduction of total after the loop", target="cuda:sm_90a"),
    ),
)
def deferred_reduction(op: Loop, context: Context) -> Iterator[Decision]:
    """In a loop with software-pipelined MMAs, the warp reduction of a running row sum is deferred past the loop.

    That needs iterations without a mask in a loop of their own, or a rescale that warps vote to skip
    (`pipeline.loop.overlap`). Each thread adds up its own elements, `total = total * factor + part`, from zero on; as
    that is linear and the factor is the same for all threads of a row, their partial sums add up to the row's sum.

    Gives: the sum, and that its reduction leaves a partial sum in each thread.
    """
    overlap, pipeline = context.facts.get(op, SCHEDULE), context.facts.get(op, PIPELINE)
    if not isinstance(overlap, MmaOverlap) or pipeline is None or not iterations_adjacent(op, pipeline, context):
        return  # a loop that runs again continues with sums of all threads
    if overlap.factor is None and context.facts.get(op, UNMASKED_ITERATIONS) is None:
        return
    for found in running_sums((*overlap.between, *overlap.late), op, context):
        if context.facts[found.reduce.src, LAYOUT].along(found.reduce.dim).warps == 1:
            yield op, DEFERRED_REDUCTION, found
            yield found.reduce, THREAD_LOCAL_SUM, True
            return


def running_sums(between: tuple[Stmt, ...], loop: Loop, context: Context) -> Iterator[DeferredReduction]:
    """Row sums that iterations only scale and add to: no lane or warpgroup needs the other partial sums before the end.

    `between` are statements of each iteration, a sum's reduction and its update among them. The sum starts from zero
    before the loop, as all partial sums do, and only these statements of the loop access it; nothing else reads the
    addend.
    """
    body = context.launch.body
    above = before(body, outermost(body, loop))
    for position, reduce in enumerate(between):
        if not isinstance(reduce, Reduce) or not _sums_rows(reduce):
            continue
        users = [op for op in steps(body) if reduce.dst in used_by_itself(op) and op is not reduce]
        update = next((op for op in between[position:] if isinstance(op, Parallel) and users == [op]), None)
        total = _adds_to(update, reduce.dst) if update is not None else None
        if update is None or total is None or any(viewed(context.launch, tile) for tile in (total, reduce.dst)):
            continue
        inside = [op for op in steps(loop.body) if total in used_by_itself(op)]
        starts = [op for op in operations(above) if total in buffers_written(op)]
        if inside == [update] and len(starts) == 1 and starts[0] in above and _is_zeroed(starts[0], total):
            yield DeferredReduction(reduce, update, total)


def _sums_rows(op: Reduce) -> bool:
    of_rows = op.src.scope is Scope.FRAGMENT and (op.src.rank, op.dim) == (2, 1)
    return of_rows and op.kind is Reduction.SUM and op.clear


def _is_zeroed(op: Stmt, tile: Buffer) -> bool:
    return isinstance(op, Fill) and overwrites(op, tile) and static_value(op.value) == 0


def _adds_to(op: Stmt, part: Buffer) -> Buffer | None:
    """The fragment t for which a loop over rows is t = t * f + part, or t = t + part; None for other loops.

    All threads that hold a row have the same f, which does not depend on their partial sums.
    """
    if not isinstance(op, Parallel) or len(op.body) != 1 or not isinstance(op.body[0], Store):
        return None
    store = op.body[0]
    total, added = store.buffer, Load(part.dtype, part, op.vars)
    if total.dtype != part.dtype or store.indices != op.vars:
        return None
    if any((tile.scope, tile.rank) != (Scope.FRAGMENT, 1) for tile in (total, part)):
        return None
    if store.op:
        return total if store.op == "+" and store.value == added else None
    if not isinstance(store.value, Binary) or store.value.op != "+" or added not in (store.value.lhs, store.value.rhs):
        return None
    scaled = store.value.lhs if store.value.rhs == added else store.value.rhs
    factors = [scaled.lhs, scaled.rhs] if isinstance(scaled, Binary) and scaled.op == "*" else [scaled]
    own = Load(total.dtype, total, op.vars)
    if own not in factors:
        return None
    factors.remove(own)
    return total if all(_is_of_row(factor, op, (total, part)) for factor in factors) else None


def _is_of_row(factor: Expr, adds: Parallel, sums: tuple[Buffer, ...]) -> bool:
    """Whether all threads that hold a row have the same factor, which does not depend on their partial sums."""
    return not any(
        (isinstance(part, Load) and (part.indices != adds.vars or part.buffer in sums))
        or (isinstance(part, Call) and part.function in OF_THREAD)
        for part in walk(factor)
    )
