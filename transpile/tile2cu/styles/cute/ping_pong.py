"""A loop whose iterations two warpgroups take in alternation, in CuTe's and CUTLASS's calls."""

from dataclasses import dataclass

from tile2cu.core.program import Buffer
from tile2cu.core.schedule import RowFactor
from tile2cu.core.span import Span
from tile2cu.plan.copy_ops import TmaLoad
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
from tile2cu.styles.base.claims import comment
from tile2cu.styles.base.ping_pong import NEXT_ISSUED, OTHERS, PingPongLoop
from tile2cu.styles.base.pipelined import release_method
from tile2cu.styles.base.slabs import slab_loads, slab_mmas
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.base.vocabulary import FRAGMENT_STORED, MMA_STARTED
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.consumers import skipped
from tile2cu.styles.cute.maps import Maps
from tile2cu.styles.cute.mma import Mmas
from tile2cu.styles.cute.parts import Parts
from tile2cu.styles.cute.producer import Role
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import in_cute
from tile2cu.styles.cute.wgmma import fences

_EVENTS = {Event.MMAS_ISSUED: MMA_STARTED, Event.STORED: FRAGMENT_STORED}


def ping_pong(op: PingPong, role: Role, kernel: Parts, warpgroup: str) -> StatementView:
    """The view of the loop; `warpgroup` is the number of a thread's."""
    barriers = role.barriers(op.iterations.tiles[0])
    with role.iterations(op.iterations) as loop:
        return CutePingPong(
            op=op,
            body=kernel,
            k=loop.k,
            count=loop.count,
            variable=loop.variable,
            barriers=barriers,
            warpgroup=warpgroup,
        ).view()


def load_slabs(op: LoadSlabs, role: Role, kernel: Parts, maps: Maps) -> StatementView:
    """A load of a tile slab by slab, each behind the wait for the warpgroup that releases it."""
    if not isinstance(op.load, TmaLoad):
        raise unsupported("a producer that gathers rows", op.source.span)
    load_of, barriers, k = op.load, role.barriers(op.load.dst), role.k
    stages, names = kernel.constants.stages(op.stages), kernel.printer.names

    def acquire(part: int) -> str:
        return f"{barriers}.producer_acquire({k}, {part});"

    def load(slab: str, in_stage: str) -> str:
        return maps.load_slab(load_of, f"{barriers}.full({k}, {in_stage})", slab)

    views = slab_loads(op, names, k, stages, acquire, load)
    return StatementView("block", {}, body=views, comments=tuple(comment(each, names) for each in op.claims))


def mma_of_slabs(op: MmaOfSlabs, role: Role, kernel: Parts, mma: Mmas) -> StatementView:
    """An MMA slab by slab, each behind the wait for its arrival."""
    barriers, names = role.barriers(op.mma.b.buffer), kernel.printer.names
    whole = (text_line(mma.text(op.mma), op.source.span.line),)

    def wait(slab: str) -> str:
        return f"{barriers}.consumer_wait({role.k}, {slab});"

    views = slab_mmas(op, names, wait, whole, mma.of_slab(op.mma, names(SLAB)))
    return StatementView("block", {}, body=views, comments=tuple(comment(each, names) for each in op.mma.claims))


@dataclass(frozen=True, kw_only=True)
class CutePingPong(PingPongLoop):
    """Prints the loop."""

    body: Parts
    barriers: str

    def exchange(self, op: Exchange, k: str) -> str:
        """What the warpgroups exchange of iteration `k`."""
        names, span = self.names, op.source.span
        match op:
            case Signal():
                first = NEXT_ISSUED.format(names(self.op.first.name))
                about = f"// {first}\n" if op.event is Event.MMAS_ISSUED else ""
                return f"{about}cutlass::arch::NamedBarrier::arrive(threads, {self._event(op, k)});"
            case AwaitSignal():
                return f"cutlass::arch::NamedBarrier::sync(threads, {self._event(op, k)});"
            case FenceGathered():
                raise unsupported("a producer that gathers rows", span)
            case HandOver():
                return self._handed(op.fragment, names(op.through), span)
            case TakeOver():
                return self._taken(op.fragment, names(op.through), span)
            case CopyRegisters():
                return f"copy({names(op.src.name)}, {names(op.dst.name)});"
            case ClearPartial():
                return f"clear({names(op.tile.name)});  // {OTHERS}"
            case AddUp():
                given = f"{names(op.total.name)}, {self._rows(op.total, span)}, {names(op.through)}"
                return f"{words.ALLREDUCE_SUM}<threads>({given});"

    @staticmethod
    def _event(op: Signal | AwaitSignal, k: str) -> str:
        """The named barrier of an event."""
        return f"{words.EVENT_BARRIER}({_EVENTS[op.event]}, {k})"

    def _handed(self, fragment: Buffer, through: str, span: Span) -> str:
        """The store of a fragment, by stmatrix, or of values of rows."""
        name = self.names(fragment.name)
        if fragment.rank == 1:
            return f"{words.STORE_ROWS}({name}, {self._rows(fragment, span)}, {through});"
        return f"{words.STORE_FRAGMENT}({self._atom('SM90_U32x4_STSM_N', fragment, span)}, {name}, {through});"

    def _taken(self, fragment: Buffer, through: str, span: Span) -> str:
        """The load of the same, by ldmatrix."""
        name = self.names(fragment.name)
        if fragment.rank == 1:
            return f"{words.LOAD_ROWS}({through}, {self._rows(fragment, span)}, {name});"
        return f"{words.LOAD_OPERAND_A}({self._atom('SM75_U32x4_LDSM_N', fragment, span)}, {through}, {name});"

    def _atom(self, kind: str, fragment: Buffer, span: Span) -> str:
        """The copy atom of a fragment, and the TiledMMA of whose C it has the layout."""
        fragments = self.body.fragments
        partition = fragments.partition(fragments.layout(fragment), span)
        return f"Copy_Atom<{kind}, {in_cute(fragment.dtype.cpp)}>{{}}, {partition.name}{{}}"

    def _rows(self, fragment: Buffer, span: Span) -> str:
        """The coordinates of the rows whose values a fragment has."""
        fragments = self.body.fragments
        return fragments.at_rowcol(fragments.partition(fragments.layout(fragment), span))

    def awaited(self, do: AwaitMmas) -> str:
        """The wait for MMAs."""
        return f"warpgroup_wait<{len(do.pending)}>();\n{fences(tuple(self.names(tile.name) for tile in do.results))}"

    def released(self, k: str, do: ReleaseStage) -> str:
        """The release of the stage of iteration `k`."""
        return f"{self.barriers}.{release_method(waits_for_loads=do.waits_for_loads)}({k});"

    def changed(self, factor: RowFactor) -> tuple[str, str]:
        """(what fills a factor of rows with 1, the condition that a row of the warp has another)."""
        return skipped(factor, self.names)
