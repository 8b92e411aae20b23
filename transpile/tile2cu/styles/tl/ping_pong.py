"""A loop whose iterations two warpgroups take in alternation, in the calls of headers/tl."""

from dataclasses import dataclass

from msgspec.structs import replace

from tile2cu.core.schedule import RowFactor
from tile2cu.plan.copy_ops import GatherRows
from tile2cu.plan.ping_pong_ops import (
    AddUp,
    AwaitSignal,
    ClearPartial,
    CopyRegisters,
    Event,
    Exchange,
    FenceGathered,
    HandOver,
    LoadSlabs,
    MmaOfSlabs,
    PingPong,
    Signal,
    TakeOver,
)
from tile2cu.plan.producer_ops import AwaitMmas, ReleaseStage
from tile2cu.styles.base.barriers import SLAB
from tile2cu.styles.base.ping_pong import NEXT_ISSUED, OTHERS, PingPongLoop
from tile2cu.styles.base.pipelined import release_method
from tile2cu.styles.base.slabs import slab_loads, slab_mmas
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.iterations import Texts
from tile2cu.styles.tl.overlap import skipped
from tile2cu.styles.tl.parts import Parts

_FENCE = f"{tl.FENCE_ASYNC_PROXY}();  // cp.async has written it by the generic proxy; wgmma reads by the async one"
_EVENTS = {Event.MMAS_ISSUED: tl.MMA_STARTED, Event.STORED: tl.FRAGMENT_STORED}


def ping_pong(op: PingPong, texts: Texts, body: Parts) -> StatementView:
    """The view of the loop."""
    warpgroup = f"{tl.WARPGROUP}()"
    return TlPingPong(
        op=op, body=body, k=texts.k, count=texts.count, variable=texts.variable, warpgroup=warpgroup
    ).view()


def load_slabs(op: LoadSlabs, body: Parts) -> StatementView:
    """A load of a tile slab by slab, each behind the wait for the warpgroup that releases it."""
    assert body.texts is not None, "slabs are of a producer's loop"
    k, stages = body.texts.k, body.constants.stages(op.stages)

    def acquire(part: int) -> str:
        return f"pipeline.producer_acquire({k}, {part});"

    copies, names = body.operations.copies, body.printer.names
    rows: tuple[StatementView, ...] = ()
    if isinstance(gather := op.load, GatherRows):
        name = names.fresh(f"{gather.dst.region.buffer.name}_rows")
        about = "16 bytes per thread; each thread has the same rows of all slabs"
        rows = (text_line(f"const auto {name} = {copies.gathered(gather)};  // {about}", op.source.span.line),)

    def load(slab: str, in_stage: str) -> str:
        full = f"pipeline.full({k}, {in_stage})"
        if isinstance(op.load, GatherRows):
            return f"{tl.GATHER_SLAB}({name}, {copies.operands.tile(op.load.dst)}, {slab}, {full});"
        return f"{tl.TMA_LOAD_SLAB}({copies.by_slab(op.load, slab, full)});"

    views = (*rows, *slab_loads(op, names, k, stages, acquire, load))
    return StatementView("block", {}, body=views, comments=body.operations.claims(op))


def mma_of_slabs(op: MmaOfSlabs, body: Parts) -> StatementView:
    """An MMA slab by slab, each behind the wait for its arrival."""
    assert body.texts is not None, "slabs are of a producer's loop"
    k, names, call = body.texts.k, body.printer.names, body.operations.view(op.mma)
    start = f"{tl.GEMM_START_SLAB}({body.operations.mma_of_slab(op.mma, names(SLAB))});"
    whole = (replace(call, comments=()),)
    views = slab_mmas(op, names, lambda slab: f"pipeline.consumer_wait({k}, {slab});", whole, start, _FENCE)
    return StatementView("block", {}, body=views, comments=body.operations.claims(op.mma))


@dataclass(frozen=True, kw_only=True)
class TlPingPong(PingPongLoop):
    """Prints the loop."""

    def exchange(self, op: Exchange, k: str) -> str:
        """What the warpgroups exchange of iteration `k`, as a call of headers/tl."""
        names = self.names
        match op:
            case Signal():
                first = NEXT_ISSUED.format(names(self.op.first.name))
                after = f"  // {first}" if op.event is Event.MMAS_ISSUED else ""
                return f"{tl.NAMED_BARRIER_ARRIVE}<threads>({_EVENTS[op.event]}, {k});{after}"
            case AwaitSignal():
                return f"{tl.NAMED_BARRIER_SYNC}<threads>({_EVENTS[op.event]}, {k});"
            case FenceGathered():
                return _FENCE
            case HandOver():
                return f"{tl.STORE_FRAGMENT}({names(op.fragment.name)}, {names(op.through)});"
            case TakeOver():
                return f"{tl.LOAD_FRAGMENT}({names(op.through)}, {names(op.fragment.name)});"
            case CopyRegisters():
                return f"{tl.COPY}({names(op.src.name)}, {names(op.dst.name)});"
            case ClearPartial():
                return f"{tl.CLEAR}({names(op.tile.name)});  // {OTHERS}"
            case AddUp():
                return f"{tl.ALLREDUCE_SUM}<threads>({names(op.total.name)}, {names(op.through)});"

    def awaited(self, do: AwaitMmas) -> str:
        """The wait for MMAs."""
        results = ", ".join(self.names(tile.name) for tile in do.results)
        return f"{tl.GEMM_WAIT}<{len(do.pending)}>({results});"

    def released(self, k: str, do: ReleaseStage) -> str:
        """The release of the stage of iteration `k`."""
        return f"pipeline.{release_method(waits_for_loads=do.waits_for_loads)}({k});"

    def changed(self, factor: RowFactor) -> tuple[str, str]:
        """(what fills a factor of rows with 1, the condition that a row of the warp has another)."""
        return skipped(factor, self.names)
