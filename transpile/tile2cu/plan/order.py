"""What orders a statement after others: barriers, proxy fences."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import buffers_used, buffers_written, shared
from tile2cu.analysis.prelude import producer_loop
from tile2cu.analysis.uses import read_in, statements
from tile2cu.core.decisions import (
    BARRIER,
    BLOCK_BARRIER,
    CALL,
    EXIT_BARRIER,
    INSTRUCTION,
    PART_BARRIER,
    PROXY_FENCE,
    SCHEDULE,
    STAGING_TILE,
    STORE_STAGING,
    WAR_ONLY,
)
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.memo import kept
from tile2cu.core.program import AtomicTile, Buffer, Copy, Gemm, If, Loop, Stmt, Sync, While
from tile2cu.core.schedule import PingPong
from tile2cu.plan.claims import Ends, MadeVisible, OutlivesUse, ReachedElsewhere, Reuses
from tile2cu.plan.copies import BY_TMA
from tile2cu.plan.ops import Barrier, BarrierScope, Proxy, ProxyFence
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.shared import overlay_of


def fence_before(stmt: Stmt, resolved: Resolved) -> Iterator[ProxyFence]:
    """The fence that makes stores visible to wgmma, or to TMA."""
    found = resolved.facts.get(stmt, PROXY_FENCE)
    if found is not None:
        tiles = tuple(found.split(", "))
        begun = (op for op in statements(resolved.launch.body, Copy) if op.begun)
        reader = Proxy.TMA if {op.src.buffer.memory.name for op in begun} >= set(tiles) else Proxy.WGMMA
        claim = MadeVisible(rule=resolved.facts.rule(stmt, PROXY_FENCE))
        yield ProxyFence(source=stmt, tiles=tiles, reader=reader, claims=(claim,))


def barrier_before(stmt: Stmt, resolved: Resolved, group: int | None) -> Iterator[Barrier]:
    """The barrier that ends a statement's hazards; `group` runs it, or all threads do."""
    hazards = resolved.facts.get(stmt, BARRIER)
    if hazards is not None:
        scope = _scope(resolved, group)
        fenced = _publishes(scope, resolved) and not resolved.facts.get(stmt, WAR_ONLY)
        claim = Ends(hazards=hazards, fenced=fenced, rule=resolved.facts.rule(stmt, BARRIER))
        yield Barrier(source=stmt, scope=scope, fenced=fenced, claims=(claim,))
    part = resolved.facts.get(stmt, PART_BARRIER)
    if part is not None:
        ends = Ends(hazards=part.hazards, threads=part.threads, rule=resolved.facts.rule(stmt, PART_BARRIER))
        yield Barrier(source=stmt, scope=BarrierScope.PART, part=part, claims=(ends,))


def barrier_before_staging(stmt: Stmt, resolved: Resolved, group: int | None) -> Iterator[Barrier]:
    """The barrier before a copy that stages its fragment in the memory of another tile."""
    name = resolved.facts.get(stmt, STAGING_TILE) if isinstance(stmt, Copy) else None
    found = next((each for each in resolved.facts.get(resolved.launch, STORE_STAGING) or () if each.name == name), None)
    if found is not None and found.where is not None and not read_before_sum(found.where, resolved):
        claim = Reuses(staging=found.name, where=found.where, rule=resolved.facts.rule(stmt, STAGING_TILE))
        yield Barrier(source=stmt, scope=_scope(resolved, group), claims=(claim,))


def read_before_sum(tile: Buffer, resolved: Resolved) -> bool:
    """Whether the barriers by which two alternating warpgroups add a running sum follow all reads of a tile.

    They are behind the loop; so none of the statements there reads the tile.
    """
    loop = producer_loop(resolved.launch, resolved.facts)
    found = resolved.facts.get(loop[0], SCHEDULE) if loop else None
    body = resolved.launch.body
    if loop is None or not isinstance(found, PingPong) or found.running is None or loop[0] not in body:
        return False
    behind = body[body.index(loop[0]) + 1 :]
    return all(each.memory is not tile.memory for each in read_in(behind))


def barrier_asked(stmt: Sync, resolved: Resolved, group: int | None) -> Barrier:
    """T.sync_threads(), at which the block's threads may arrive from several statements."""
    if not resolved.facts.get(stmt, BLOCK_BARRIER):
        scope = _scope(resolved, group)
        return Barrier(source=stmt, scope=scope, fenced=_publishes(scope, resolved))
    claim = ReachedElsewhere(rule=resolved.facts.rule(stmt, BLOCK_BARRIER))
    return Barrier(source=stmt, scope=BarrierScope.MEETING, claims=(claim,))


def exit_barrier(resolved: Resolved) -> Iterator[Barrier]:
    """The barrier behind which no other block of the cluster uses this one's shared memory."""
    body = resolved.launch.body
    if resolved.facts.get(resolved.launch, EXIT_BARRIER) is not None:
        claim = OutlivesUse(rule=resolved.facts.rule(resolved.launch, EXIT_BARRIER))
        yield Barrier(source=body[-1], scope=BarrierScope.CLUSTER, claims=(claim,))


def _publishes(scope: BarrierScope, resolved: Resolved) -> bool:
    """Whether consumers fence their writes before a barrier: wgmma or TMA accesses what threads of the launch write.

    That is what wgmma reads or TMA stores, and what TMA loads to where threads write as well.
    """
    return scope is BarrierScope.CONSUMERS and _goes_past_threads(resolved)


@kept
def _goes_past_threads(resolved: Resolved) -> bool:
    """Whether wgmma or TMA accesses shared memory that threads of the launch write.

    Staging tiles of TMA's stores are such memory; tiles in one place count as one.
    """
    facts, stmts = resolved.facts, resolved.launch.statements
    if facts.get(resolved.launch, STORE_STAGING) or overlay_of(resolved).parts:
        return True
    written, accessed = set[Buffer](), set[Buffer]()
    for stmt in stmts:
        match stmt:
            case Gemm() if facts[stmt, INSTRUCTION].unit is MmaUnit.WARPGROUP:
                accessed |= shared((stmt.a.buffer, stmt.b.buffer))
            case Copy() | AtomicTile() if facts.get(stmt, CALL) in BY_TMA:
                accessed |= shared(buffers_used(stmt))
            case Loop() | While() | If():
                pass
            case _:
                written |= shared(buffers_written(stmt))
    return not written.isdisjoint(accessed)


def _scope(resolved: Resolved, group: int | None) -> BarrierScope:
    if resolved.launch.groups > 1 and group is None:
        return BarrierScope.BLOCK
    has_producer = producer_loop(resolved.launch, resolved.facts) is not None
    return BarrierScope.CONSUMERS if has_producer else BarrierScope.PARTICIPANTS
