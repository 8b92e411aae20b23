"""Hopper: MMAs of one iteration that are in flight concurrently, and during statements that do not depend on them."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_written
from tile2cu.analysis.dependence import depends
from tile2cu.analysis.effects import effects
from tile2cu.analysis.lifetimes import Lifetimes
from tile2cu.core.decisions import (
    AWAITED_AT,
    LAYOUT,
    NO_MMA_IN_FLIGHT,
    ON_WGMMA,
    PIPELINE,
    RETIRED,
    RETIRED_BEFORE,
    SCHEDULE,
    WARP_SPECIALISED,
)
from tile2cu.core.facts import Key, rejected
from tile2cu.core.program import AtomicTile, Buffer, Copy, Fill, Gemm, Let, Loop, Parallel, Reduce, Scope, Stmt
from tile2cu.core.schedule import Retirement
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.hopper import is_specialised, iterations_in_sequence
from tile2cu.rules.mma.warps import runs_on_wgmma
from tile2cu.rules.schedule.register_budget import fit

_THREE = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
P = T.alloc_fragment((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
D = T.alloc_fragment((64, 64), "float32")
T.clear(D)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.copy(Z[0, k * 64], B_shared)
    T.gemm(A_shared, B_shared, S, clear_accum=True)
    T.gemm(B_shared, A_shared, C, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, A_shared, D)
    for i, j in T.Parallel(64, 64):
        D[i, j] += C[i, j]
"""
_KNOWN = Copy | Fill | Gemm | Let | Parallel | Reduce | AtomicTile
_Place = tuple[Stmt, Key[Retirement], Retirement]  # MMAs retire after a statement (RETIRED), or before it
_FEWEST = 3  # two concurrent MMAs gain nothing: 1.000 to 1.002 of three kernels on an H200, 2026-11-23


@rule(
    "pipeline.loop.concurrent-mmas",
    phase=Phase.PIPELINE,
    on=Loop,
    reads=(ON_WGMMA, LAYOUT, PIPELINE, SCHEDULE, WARP_SPECIALISED),
    writes=(AWAITED_AT, NO_MMA_IN_FLIGHT, RETIRED, RETIRED_BEFORE),
    source="measured on an H200: benchmarks/RESULTS.md, attention backward",
    examples=(
        Example(_THREE, 13, "retired_before", "S", target="cuda:sm_90a"),
        Example(_THREE, 14, "retired", "C", target="cuda:sm_90a"),
    ),
)
def concurrent_mmas(op: Loop, context: Context) -> Iterator[Decision]:
    """In an iteration of three MMAs or more, each stays in flight until a statement needs its result or its operands.

    The last MMA waits for itself and all earlier ones, so that none is in flight when the iteration's stages are
    released. Operands in shared memory are tiles that the producer loads: other tiles are written behind barriers that
    do not wait for MMAs. Loops with software-pipelined MMAs or alternating warpgroups have schedules of their own.
    Fragments that are live together, operands of MMAs in flight included, must fit a thread's registers: otherwise MMAs
    with an operand in registers are awaited immediately, the first ones first.

    Gives: which MMAs stay in flight, and before which statements the others are awaited.
    """
    pipeline = iterations_in_sequence(op, context)
    if pipeline is None or not is_specialised(context):
        return
    mmas = [stmt for stmt in pipeline.body if isinstance(stmt, Gemm)]
    known = all(isinstance(stmt, _KNOWN) for stmt in pipeline.body)
    if len(mmas) < _FEWEST or not known or not all(runs_on_wgmma(each, context) for each in mmas):
        return
    # An MMA's operand in registers is a copy of a live fragment: awaited immediately, it is live for the shortest time.
    copied = [op for op in mmas if _operands(op, Scope.FRAGMENT)]
    for count in range(len(copied) + 1):
        retirements = tuple(_retirements(pipeline.body, mmas[-1], copied[:count]))
        alive = _most_alive(pipeline.body, retirements, context)
        if fit(alive, context.launch):
            yield from _decisions(retirements)
            return
    because = f"up to {alive} registers per thread of fragments would be live together, too many with all other values"
    yield rejected(op, NO_MMA_IN_FLIGHT, because, "choose smaller tiles")


def _decisions(retirements: tuple[_Place, ...]) -> Iterator[Decision]:
    for stmt, key, retirement in retirements:
        yield stmt, key, retirement
        for each in retirement.mmas:
            yield each, AWAITED_AT, f"until line {stmt.span.line}"


def _retirements(body: tuple[Stmt, ...], last: Gemm, awaited: list[Gemm]) -> Iterator[_Place]:
    """Follows an iteration's statements with the MMAs in flight, the oldest first; those of `awaited` never are."""
    in_flight: list[Gemm] = []
    written = frozenset().union(*(buffers_written(stmt) for stmt in body))
    for stmt, following in zip(body, (*body[1:], last), strict=True):
        needed = max((number for number, each in enumerate(in_flight, 1) if _needs(stmt, each)), default=0)
        alone = isinstance(stmt, Gemm) and (
            stmt is last
            or any(stmt is each for each in awaited)
            or _needs(following, stmt)
            or bool(_operands(stmt, Scope.SHARED) & written)
        )
        landed, in_flight = (in_flight, []) if alone else (in_flight[:needed], in_flight[needed:])
        if landed:
            left = tuple(each.c.buffer for each in in_flight)
            yield stmt, RETIRED if alone else RETIRED_BEFORE, Retirement(tuple(landed), left)
        if isinstance(stmt, Gemm) and not alone:
            in_flight.append(stmt)


def _most_alive(body: tuple[Stmt, ...], retirements: tuple[_Place, ...], context: Context) -> int:
    """The most registers per thread that live fragments occupy before a statement that is no MMA.

    Such a statement needs further registers. It may write where it has read; operands of MMAs are live until these
    retire.
    """
    lifetimes = Lifetimes(context.launch, {})
    ends = {
        tile: lifetimes.end(stmt) - (key is RETIRED_BEFORE)
        for stmt, key, retirement in retirements
        for mma in retirement.mmas
        for tile in _operands(mma, Scope.FRAGMENT)
    }
    spans: list[tuple[int, int, int]] = []
    for tile in context.launch.tiles:
        found, layout = lifetimes.of(tile), context.facts.get(tile, LAYOUT)
        if tile.scope is Scope.FRAGMENT and found is not None and layout is not None:
            spans.append((found.first, max(found.last, ends.get(tile, 0)), layout.words(tile.dtype.bytes)))
    positions = [lifetimes.end(stmt) for stmt in body if not isinstance(stmt, Gemm)]
    return max((sum(words for start, end, words in spans if start < at <= end) for at in positions), default=0)


def _needs(stmt: Stmt, mma: Gemm) -> bool:
    """Whether a statement conflicts with an MMA in flight: it accesses its result, or writes one of its operands.

    Accesses to tensors bring branches for their bounds, and addresses: with MMAs in flight ptxas 13.0 ran out of
    registers for them, and then awaits every MMA immediately (C7512).
    """
    accesses_tensors = any(access.root.scope is Scope.GLOBAL for access in effects(stmt).accesses)
    return accesses_tensors or depends(mma, stmt)


def _operands(mma: Gemm, scope: Scope) -> frozenset[Buffer]:
    return frozenset(region.buffer for region in (mma.a, mma.b) if region.buffer.scope is scope)
