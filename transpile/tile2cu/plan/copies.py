"""Copies and tile atomics: by which mechanism, between which operands, in whose stage they arrive."""

from tile2cu.core.decisions import (
    CALL,
    MULTICAST_MASK,
    PROLOGUE_LOADS,
    SHARED_LAYOUT,
    SLICE_ALIGNMENT,
    STAGING_TILE,
    STORE_OUTSTANDING,
    STREAMING,
    TMA_IF,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import static_value
from tile2cu.core.program import AtomicTile, Copy, Region, Scope
from tile2cu.plan import copy_ops, ops
from tile2cu.plan.buffer_loads import buffer_loads
from tile2cu.plan.claims import AddedByTma, AddressableByTma, Claim
from tile2cu.plan.copy_claims import copy_claims
from tile2cu.plan.operands import Operand, TensorTile, Threads, Tile
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.rings import publishes_iteration, ring_tiles

BY_TMA = ("tma_load", "tma_store", "tma_add_start", "tma_copy")  # what goes through tensor maps, by the fact `call`
_WIDEST = 16  # bytes of an access
_MECHANISMS = {"copy": copy_ops.CopyMechanism.THREADS, "copy_async": copy_ops.CopyMechanism.CP_ASYNC}


def copy(op: Copy, resolved: Resolved, threads: Threads) -> ops.Op:
    """The operation of a copy that `threads` run."""
    facts, claims = resolved.facts, tuple(copy_claims(op, resolved))
    if facts.get(op, CALL) in BY_TMA:
        return _by_tma(op, resolved, claims)
    if op.row is not None:
        coordinates = tuple(part.start for part in op.src.ranges)
        return copy_ops.GatherRows(
            source=op,
            claims=claims,
            tensor=op.src.buffer,
            coordinates=coordinates,
            row=op.row,
            when=op.when,
            dst=Tile(region=op.dst),
            threads=threads,
        )
    if op.block is not None:
        src, dst = operand(op.src, op.dst), operand(op.dst, op.src)
        return copy_ops.CopyToBlock(
            source=op, claims=claims, src=src, dst=dst, block=op.block, arrives_at=op.remote, threads=threads
        )
    scopes = (op.src.buffer.scope, op.dst.buffer.scope)
    return copy_ops.Copy(
        source=op,
        claims=claims,
        src=_side(op.src, op.dst, op, resolved),
        dst=_side(op.dst, op.src, op, resolved),
        mechanism=_MECHANISMS[facts[op, CALL]],
        threads=None if Scope.FRAGMENT in scopes else threads,
        evict=op.evict if scopes == (Scope.GLOBAL, Scope.FRAGMENT) else "",
        streaming=facts.get(op, STREAMING),
    )


def load_registers(op: Copy, resolved: Resolved) -> copy_ops.LoadRegisters:
    """What loads a tile that waits in registers."""
    src = _side(op.src, op.dst, op, resolved)
    assert isinstance(src, TensorTile)
    buffer = buffer_loads(op, src, resolved)
    return copy_ops.LoadRegisters(source=op, claims=tuple(copy_claims(op, resolved)), src=src, buffer=buffer)


def store_registers(op: Copy, resolved: Resolved) -> copy_ops.StoreRegisters:
    """What stores a tile that waited in registers."""
    rows = resolved.facts[op.dst.buffer, SHARED_LAYOUT].rows_interleaved
    aligned = resolved.row_alignment(op.src.buffer) >= _WIDEST
    claims = tuple(copy_claims(op, resolved))
    src = _side(op.src, op.dst, op, resolved)
    assert isinstance(src, TensorTile)
    buffer, dst = buffer_loads(op, src, resolved), Tile(region=op.dst)
    return copy_ops.StoreRegisters(source=op, claims=claims, dst=dst, rows=rows, aligned=aligned, buffer=buffer)


def atomic_update(
    op: AtomicTile, resolved: Resolved, threads: Threads
) -> copy_ops.TmaReduceAdd | copy_ops.AtomicUpdate:
    """A tile atomic: by TMA, or by the threads that hold the tile or share it."""
    if resolved.facts.get(op, CALL) in BY_TMA:
        claim = AddedByTma(rule=resolved.facts.rule(op, CALL))
        staging = resolved.facts[op, STAGING_TILE]
        return copy_ops.TmaReduceAdd(source=op, claims=(claim,), src=op.src.buffer, staging=staging, dst=op.dst)
    return copy_ops.AtomicUpdate(
        source=op,
        kind=op.kind,
        src=operand(op.src, op.dst),
        dst=operand(op.dst, op.src),
        threads=None if op.src.buffer.scope is Scope.FRAGMENT else threads,
    )


def operand(region: Region, other: Region) -> Operand:
    """One side of a copy, whose other side is `other`."""
    if region.buffer.scope is not Scope.GLOBAL:
        return Tile(region=region)
    return TensorTile(region=region, along=_dimensions_along(region, other))


def _side(region: Region, other: Region, op: Copy, resolved: Resolved) -> Operand:
    """The same with what is known of it: how a slice is aligned, and where a source ends."""
    found = operand(region, other)
    if isinstance(found, Tile):
        alignment = resolved.facts.get(op, SLICE_ALIGNMENT) if region.buffer.rank == 1 else None
        return Tile(region=region, alignment=alignment or 0)
    return TensorTile(region=region, along=found.along, ends=op.ends if region is op.src else ())


def _by_tma(op: Copy, resolved: Resolved, claims: tuple[Claim, ...]) -> ops.Op:
    facts = resolved.facts
    if facts[op, CALL] == "tma_store":
        return _store(op, resolved, claims)
    if op.begun:
        return copy_ops.TmaStoreShared(source=op, claims=claims, src=Tile(region=op.src), dst=op.dst)
    if op.barrier is not None:
        return copy_ops.TmaCopy(
            source=op,
            claims=claims,
            src=op.src,
            dst=Tile(region=op.dst),
            barrier=op.barrier,
            blocks=op.blocks,
            awaited=op.awaited,
        )
    tile, first = op.dst.buffer, facts.get(resolved.launch, PROLOGUE_LOADS)
    own = any(tile is each for each in ring_tiles(resolved))
    return copy_ops.TmaLoad(
        source=op,
        claims=claims,
        src=op.src,
        dst=tile,
        own_ring=own,
        prologue=first is not None and any(op is load for load in first.loads),
        publishes=own and publishes_iteration(tile, resolved),
        multicast=facts.get(op, MULTICAST_MASK) or 0,
    )


def _store(op: Copy, resolved: Resolved, claims: tuple[Claim, ...]) -> copy_ops.TmaStore | copy_ops.StoreByInstance:
    """A store by TMA; of rows that it may not be able to address, where it can."""
    by_tma = copy_ops.TmaStore(
        source=op,
        claims=claims,
        src=op.src.buffer,
        staging=resolved.facts[op, STAGING_TILE],
        transposed=op.transposed,
        outstanding=bool(resolved.facts.get(op, STORE_OUTSTANDING)),
        dst=op.dst,
    )
    if resolved.facts.get(op, TMA_IF) is None:
        return by_tma
    by_threads = copy_ops.Copy(
        source=op,
        src=Tile(region=op.src, transposed=op.transposed),
        dst=operand(op.dst, op.src),
        mechanism=copy_ops.CopyMechanism.THREADS,
        threads=None,
    )
    claim = AddressableByTma(rule=resolved.facts.rule(op, TMA_IF))
    return copy_ops.StoreByInstance(source=op, claims=(claim,), by_tma=by_tma, by_threads=by_threads)


def _dimensions_along(region: Region, other: Region) -> tuple[int, ...]:
    """The tensor's dimensions that the other side's dimensions run along, aligned from the right. Raises T2C-E003."""
    own = other.ranges[-2:] if other.buffer.scope is Scope.SHARED else other.ranges  # of a plane, its rows and columns
    wanted = [static_value(part.extent) for part in own] if other.buffer.scope is not Scope.GLOBAL else []
    if not wanted or len(wanted) == len(region.kept):
        return region.kept
    kept: list[int] = []
    dim = len(region.ranges) - 1
    for extent in reversed(wanted):
        while dim >= 0 and static_value(region.ranges[dim].extent) != extent:
            dim -= 1
        kept.insert(0, dim)
        dim -= 1
    if kept and kept[0] < 0:
        raise Tile2CuError(
            "T2C-E003",
            f"`{region.buffer.name}` and `{other.buffer.name}` do not line up",
            region.span,
            help="give both sides the same number of dimensions that are larger than 1",
        )
    return tuple(kept)
