"""Hopper: MMAs of one iteration that are in flight concurrently, and during statements that do not depend on them."""

from collections.abc import Iterator

from tile2cu.analysis.dependence import depends
from tile2cu.analysis.effects import effects
from tile2cu.analysis.lifetimes import Lifetimes
from tile2cu.analysis.uses import statements, without, written_in
from tile2cu.core.decisions import LAYOUT
from tile2cu.core.program import AtomicTile, Buffer, Copy, Fill, Gemm, Let, Parallel, Reduce, Scope, Stmt
from tile2cu.core.schedule import InOrder, Retirement, WaitForMmas
from tile2cu.rules.engine import Context
from tile2cu.rules.mma.warps import runs_on_wgmma

_KNOWN = Copy | Fill | Gemm | Let | Parallel | Reduce | AtomicTile
_FEWEST = 3  # two concurrent MMAs gain nothing: 1.000 to 1.002 of three kernels on an H200, 2026-11-23


def concurrent_mmas(body: tuple[Stmt, ...], context: Context) -> Iterator[tuple[WaitForMmas, ...]]:
    """Where the MMAs of an iteration are awaited, at best first; none for fewer than three, or other statements.

    An MMA's operand in registers is a copy of a live fragment: awaited immediately, it is live for the shortest time.
    """
    mmas = [stmt for stmt in body if isinstance(stmt, Gemm)]
    known = all(isinstance(stmt, _KNOWN) for stmt in body)
    if len(mmas) < _FEWEST or not known or not all(runs_on_wgmma(each, context) for each in mmas):
        return
    copied = [op for op in mmas if _operands(op, Scope.FRAGMENT)]
    for count in range(len(copied) + 1):
        yield tuple(_waits(body, mmas[-1], copied[:count]))


def _waits(body: tuple[Stmt, ...], last: Gemm, awaited: list[Gemm]) -> Iterator[WaitForMmas]:
    """Follows an iteration's statements with the MMAs in flight, the oldest first; those of `awaited` never are."""
    in_flight: list[Gemm] = []
    written = written_in(body)
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
            own = (stmt,) if alone and isinstance(stmt, Gemm) else ()
            yield WaitForMmas(stmt, Retirement((*landed, *own), left), behind=alone)
        if isinstance(stmt, Gemm) and not alone:
            in_flight.append(stmt)


def most_alive(schedule: InOrder, context: Context) -> int:
    """The most registers per thread that live fragments occupy before a statement that is no MMA.

    Such a statement needs further registers. It may write where it has read; operands of MMAs are live until these
    retire.
    """
    lifetimes = Lifetimes(context.launch, {})
    ends = {
        tile: lifetimes.end(wait.at) - (not wait.behind)
        for wait in schedule.waits
        for mma in wait.retirement.mmas
        for tile in _operands(mma, Scope.FRAGMENT)
    }
    spans: list[tuple[int, int, int]] = []
    for tile in context.launch.tiles:
        found, layout = lifetimes.of(tile), context.facts.get(tile, LAYOUT)
        if tile.scope is Scope.FRAGMENT and found is not None and layout is not None:
            spans.append((found.first, max(found.last, ends.get(tile, 0)), layout.words(tile.dtype.bytes)))
    positions = [lifetimes.end(stmt) for stmt in without(schedule.body, statements(schedule.body, Gemm))]
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
