"""What orders a statement after others: barriers, proxy fences."""

from collections.abc import Iterator

from tile2cu.analysis.prelude import producer_loop
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import (
    BARRIER,
    BLOCK_BARRIER,
    EXIT_BARRIER,
    PART_BARRIER,
    PROXY_FENCE,
    STAGING_TILE,
    STORE_STAGING,
    WAR_ONLY,
)
from tile2cu.core.program import Copy, Stmt, Sync
from tile2cu.plan.claims import Ends, MadeVisible, OutlivesUse, ReachedElsewhere, Reuses
from tile2cu.plan.ops import Barrier, BarrierScope, Proxy, ProxyFence
from tile2cu.plan.settled import Settled


def fence_before(stmt: Stmt, settled: Settled) -> Iterator[ProxyFence]:
    """The fence that makes stores visible to wgmma, or to TMA."""
    found = settled.facts.get(stmt, PROXY_FENCE)
    if found is not None:
        tiles = tuple(found.split(", "))
        begun = (op for op in statements(settled.launch.body, Copy) if op.begun)
        reader = Proxy.TMA if {op.src.buffer.memory.name for op in begun} >= set(tiles) else Proxy.WGMMA
        claim = MadeVisible(rule=settled.facts.rule(stmt, PROXY_FENCE))
        yield ProxyFence(source=stmt, tiles=tiles, reader=reader, claims=(claim,))


def barrier_before(stmt: Stmt, settled: Settled, group: int | None) -> Iterator[Barrier]:
    """The barrier that ends a statement's hazards; `group` runs it, or all threads do."""
    hazards = settled.facts.get(stmt, BARRIER)
    if hazards is not None:
        claim = Ends(hazards=hazards, rule=settled.facts.rule(stmt, BARRIER))
        war_only = bool(settled.facts.get(stmt, WAR_ONLY))
        yield Barrier(source=stmt, scope=_scope(settled, group), war_only=war_only, claims=(claim,))
    part = settled.facts.get(stmt, PART_BARRIER)
    if part is not None:
        ends = Ends(hazards=part.hazards, threads=part.threads, rule=settled.facts.rule(stmt, PART_BARRIER))
        yield Barrier(source=stmt, scope=BarrierScope.PART, part=part, claims=(ends,))


def barrier_before_staging(stmt: Stmt, settled: Settled, group: int | None) -> Iterator[Barrier]:
    """The barrier before a copy that stages its fragment in the memory of another tile."""
    name = settled.facts.get(stmt, STAGING_TILE) if isinstance(stmt, Copy) else None
    found = next((each for each in settled.facts.get(settled.launch, STORE_STAGING) or () if each.name == name), None)
    if found is not None and found.where is not None:
        claim = Reuses(staging=found.name, where=found.where, rule=settled.facts.rule(stmt, STAGING_TILE))
        yield Barrier(source=stmt, scope=_scope(settled, group), war_only=True, claims=(claim,))


def barrier_asked(stmt: Sync, settled: Settled, group: int | None) -> Barrier:
    """T.sync_threads(), at which the block's threads may arrive from several statements."""
    if not settled.facts.get(stmt, BLOCK_BARRIER):
        return Barrier(source=stmt, scope=_scope(settled, group))
    claim = ReachedElsewhere(rule=settled.facts.rule(stmt, BLOCK_BARRIER))
    return Barrier(source=stmt, scope=BarrierScope.MEETING, claims=(claim,))


def exit_barrier(settled: Settled) -> Iterator[Barrier]:
    """The barrier behind which no other block of the cluster uses this one's shared memory."""
    body = settled.launch.body
    if settled.facts.get(settled.launch, EXIT_BARRIER) is not None:
        claim = OutlivesUse(rule=settled.facts.rule(settled.launch, EXIT_BARRIER))
        yield Barrier(source=body[-1], scope=BarrierScope.CLUSTER, claims=(claim,))


def _scope(settled: Settled, group: int | None) -> BarrierScope:
    if settled.launch.groups > 1 and group is None:
        return BarrierScope.BLOCK
    has_producer = producer_loop(settled.launch, settled.facts) is not None
    return BarrierScope.CONSUMERS if has_producer else BarrierScope.PARTICIPANTS
