"""Program and facts to operations, in one place: what a statement becomes, and what orders it."""

from collections.abc import Iterator
from math import copysign

from tile2cu.core.decisions import (
    LAYOUT,
    NO_SETMAXNREG,
    REDUCTION_WARPS,
    SETMAXNREG,
    SLICE_ALIGNMENT,
)
from tile2cu.core.expr import static_value
from tile2cu.core.layout import Blocked
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    Break,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    Print,
    Reduce,
    Scan,
    Scope,
    SetRegisters,
    Stmt,
    Store,
    Sync,
    WgmmaWait,
)
from tile2cu.plan import copies, mma, ops, order
from tile2cu.plan.claims import Exchanged, LeftOut
from tile2cu.plan.exchanges import Reuse, reuse_of
from tile2cu.plan.operands import Threads, Tile
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.scalars import Scalar, scalar

OnTiles = Copy | AtomicTile | Fill | Reduce | Scan | Gemm
Lowered = OnTiles | Scalar | WgmmaWait | Sync | SetRegisters | Break | Continue | Assert | Print


def lower(stmt: Lowered, resolved: Resolved, group: int | None) -> ops.Op:
    """The operation of a statement that `group` of the block's threads runs, or all of them (None)."""
    match stmt:
        case Copy() | AtomicTile() | Fill() | Reduce() | Scan() | Gemm():
            return _on_tiles(stmt, resolved, group)
        case Assign() | Atomic() | Declare() | Store():
            return scalar(stmt)
        case WgmmaWait():
            return mma.wait_asked(stmt, resolved)
        case Sync():
            return order.barrier_asked(stmt, resolved, group)
        case SetRegisters():
            return _registers(stmt, resolved)
        case Break() | Continue():
            return ops.Leave(source=stmt, continues=isinstance(stmt, Continue))
        case Assert():
            return ops.Assert(source=stmt, condition=stmt.condition, message=stmt.message)
        case Print():
            return ops.Print(source=stmt, what=stmt.what, message=stmt.message)


def _on_tiles(stmt: OnTiles, resolved: Resolved, group: int | None) -> ops.Op:
    """One operation on whole tiles."""
    match stmt:
        case Copy():
            return copies.copy(stmt, resolved, _threads(resolved, group))
        case AtomicTile():
            return copies.atomic_update(stmt, resolved, _threads(resolved, group))
        case Fill():
            return _fill(stmt, resolved, _threads(resolved, group))
        case Reduce():
            return _reduce(stmt, resolved, _threads(resolved, group))
        case Scan():
            threads = _threads(resolved, group)
            return ops.Scan(
                source=stmt,
                kind=stmt.kind,
                src=stmt.src,
                dst=stmt.dst,
                dim=stmt.dim,
                reverse=stmt.reverse,
                threads=threads,
            )
        case Gemm():
            return mma.mma(stmt, resolved)


def before(stmt: Stmt, resolved: Resolved, group: int | None) -> Iterator[ops.Op]:
    """What orders a statement after those before it, in the order in which it is issued."""
    yield from order.fence_before(stmt, resolved)
    yield from order.barrier_before(stmt, resolved, group)
    yield from order.barrier_before_staging(stmt, resolved, group)
    yield from mma.wait_before(stmt, resolved)


def _threads(resolved: Resolved, group: int | None) -> Threads:
    """Those that share an operation: of groups of one size it need not be known which."""
    return Threads(group=(group or 0) if resolved.launch.shares else None)


def _fill(op: Fill, resolved: Resolved, threads: Threads) -> ops.Fill | ops.FillLocal:
    buffer = op.dst.buffer
    if buffer.scope is Scope.LOCAL and op.dst.whole and buffer.rank == 1:
        return ops.FillLocal(source=op, buffer=buffer, value=op.value)
    alignment = resolved.facts.get(op, SLICE_ALIGNMENT) if buffer.rank == 1 else None
    tile = Tile(region=op.dst, alignment=alignment or 0)
    return ops.Fill(source=op, tile=tile, value=op.value, clears=_is_zero(op), threads=threads)


def _is_zero(op: Fill) -> bool:
    """Whether all bits become 0."""
    value = static_value(op.value)
    return op.is_clear or (value is not None and value == 0 and copysign(1, value) > 0)


def _reduce(op: Reduce, resolved: Resolved, threads: Threads) -> ops.Reduce:
    facts = resolved.facts
    parts, reuse = facts[op, REDUCTION_WARPS], reuse_of(op.dst, resolved)
    exchanged = (_exchanged(op, parts, resolved, reuse),) if parts > 1 else ()
    return ops.Reduce(
        source=op,
        claims=exchanged,
        kind=op.kind,
        src=op.src,
        dst=op.dst,
        dim=op.dim,
        accumulates=not op.clear,
        keeps_nan=op.keeps_nan,
        parts=parts,
        ordered=reuse is not Reuse.BARRIER,
        thread_local=resolved.defers(op),
        threads=threads,
    )


def _exchanged(op: Reduce, parts: int, resolved: Resolved, reuse: Reuse) -> Exchanged:
    """Which threads hold a part each: warps, or lanes of one where its layout has several parts in it."""
    layout = resolved.facts[op.src, LAYOUT]
    within = isinstance(layout, Blocked) and layout.parts_within_warps(op.dim)
    lanes = layout.along(op.dim).lanes if isinstance(layout, Blocked) and within else None
    rule, waves = resolved.facts.rule(op, REDUCTION_WARPS), resolved.target.is_amd
    return Exchanged(parts=parts, lanes=lanes, waves=waves, reuse=reuse, rule=rule)


def _registers(stmt: SetRegisters, resolved: Resolved) -> ops.SetRegisters:
    left_out = not resolved.facts.get(stmt, SETMAXNREG)
    fact = resolved.facts.fact(stmt, NO_SETMAXNREG) if left_out else None
    claims = (LeftOut(because=str(fact.value), rule=fact.rule),) if fact is not None else ()
    return ops.SetRegisters(source=stmt, count=stmt.count, more=stmt.more, left_out=left_out, claims=claims)
