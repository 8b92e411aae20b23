"""Hopper: fences between stores to shared memory and the products and copies by hand that read it past the threads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tile2cu.analysis.accesses import buffers_written, shared
from tile2cu.core.decisions import BARRIER, EXPLICIT_WGMMA, PIPELINE, PROXY_FENCE, WARP_SPECIALISED
from tile2cu.core.expr import Call
from tile2cu.core.program import Buffer, Copy, Effect, Gemm, If, Launch, Loop, Region, Stmt, Sync, While, group_of
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.hopper import is_specialised, multiplies_on_wgmma

_STORED = """\
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.wgmma_gemm(A_shared, A_shared, C_local, clear_accum=True)
T.wait_wgmma(0)"""
# Calls after which other threads may go on, and after which this one sees what others stored.
_MEETINGS = (
    "barrier_",
    "mbarrier_arrive",
    "cp_async_arrive",
    "sync_cluster",
    "cluster_arrive",
)
_ARRIVALS = (
    "barrier_sync",
    "mbarrier_wait",
    "cp_async_wait",
    "sync_cluster",
    "cluster_wait",
)


@rule(
    "sync.shared.proxy-fence",
    phase=Phase.SYNC,
    on=Launch,
    reads=(BARRIER, EXPLICIT_WGMMA, PIPELINE, WARP_SPECIALISED),
    writes=(PROXY_FENCE,),
    source="PTX ISA, 'Async proxy': a fence.proxy.async orders stores before what wgmma reads",
    examples=(Example(_STORED, 4, "fence", "A_shared", target="cuda:sm_90a"),),
)
def proxy_fence(launch: Launch, context: Context) -> Iterator[Decision]:
    """What threads stored for wgmma or TMA to read is shown to it: by those who stored, before they tell the others.

    What cp.async brings is stored when nobody waits at the place: who multiplies shows it, before the product; so does
    who copies it on.

    Gives: the tiles that a fence before a statement shows.
    """
    if is_specialised(context):
        return  # the barrier of a producer's consumers has a fence
    operands = {key for op in context.statements for key in _read_past_threads(op, context)}
    writers = _Writers(context, operands)
    writers.body(launch.body)
    readers = _Readers(context, writers.unshown)
    readers.body(launch.body, shown=False)
    for key, (stmt, tiles) in (writers.fences | readers.fences).items():
        _, others = writers.fences.get(key, (stmt, {}))
        yield stmt, PROXY_FENCE, ", ".join(sorted({tile.name for tile in (tiles | others).values()}))


@dataclass
class _Writers:
    """Looks after each store to an operand for the place where others learn of it."""

    context: Context
    operands: set[int]
    fences: dict[int, tuple[Stmt, dict[int, Buffer]]] = field(default_factory=dict)
    unshown: dict[int, Buffer] = field(default_factory=dict)  # tiles that those who store them do not show
    group: int | None = None  # of threads that come to a statement; None for all of the block

    def body(self, body: tuple[Stmt, ...], then: tuple[Stmt, ...] = (), later: tuple[Stmt, ...] = ()) -> None:
        """Statements; what follows them where control goes on to it; and all else that may come `later`."""
        for place, stmt in enumerate(body):
            after = (*body[place + 1 :], *then)
            match stmt:
                case If():
                    outside, own = self.group, group_of(stmt)
                    self.group = own if own is not None and not stmt.once else outside
                    self.body(stmt.then, after, later)
                    self.body(stmt.orelse, after, later)
                    self.group = outside
                case Loop() | While():
                    self.body(self.without_ahead(stmt), (), (*stmt.body, *after, *later))
                case _:
                    self.stores(stmt, after, later)

    def without_ahead(self, stmt: Loop | While) -> tuple[Stmt, ...]:
        """The body of a loop without the copies that a pipeline starts ahead of their turns."""
        pipeline = self.context.facts.get(stmt, PIPELINE)
        if pipeline is None:
            return stmt.body
        ahead = {id(tile.memory): tile.memory for tile in pipeline.buffers}
        self.unshown |= {key: tile for key, tile in ahead.items() if key in self.operands}
        return pipeline.body

    def stores(self, stmt: Stmt, after: tuple[Stmt, ...], later: tuple[Stmt, ...]) -> None:
        by_tma = isinstance(stmt, Copy) and stmt.barrier is not None
        tiles = {id(tile): tile for tile in shared(buffers_written(stmt)) if id(tile) in self.operands}
        tiles = {key: tile for key, tile in tiles.items() if self.is_read(tile, (*after, *later))}
        if by_tma or not tiles:
            return
        asynchronous = isinstance(stmt, Effect) and stmt.call.function.startswith("cp_async<")
        place = None if asynchronous else next((each for each in after if self.tells(each)), None)
        if place is None:
            self.unshown |= tiles
        elif not _is_fence(place):
            self.fences.setdefault(id(place), (place, {}))[1].update(tiles)

    def is_read(self, tile: Buffer, after: tuple[Stmt, ...]) -> bool:
        """Whether a product may read what was stored: one that follows, or one of others who learn of it."""
        for stmt in self.reached(after):
            if isinstance(stmt, Sync) or _calls(stmt, _MEETINGS):
                return True
            if id(tile) in _read_past_threads(stmt, self.context):
                return True
        return False

    def reached(self, body: tuple[Stmt, ...]) -> Iterator[Stmt]:
        """The statements that the group comes to, those of loops and branches included."""
        for stmt in body:
            if self.group is None or group_of(stmt) in (None, self.group):
                yield stmt
                arms = (*stmt.then, *stmt.orelse) if isinstance(stmt, If) else getattr(stmt, "body", ())
                yield from self.reached(arms)

    def tells(self, stmt: Stmt) -> bool:
        """Whether it is a fence, or others may go on after it."""
        met = isinstance(stmt, If | Loop | While | Sync) or _calls(stmt, _MEETINGS)
        reads = bool(_read_past_threads(stmt, self.context))
        return met or reads or _is_fence(stmt) or self.context.facts.get(stmt, BARRIER) is not None


@dataclass
class _Readers:
    """Looks for products that read what nobody has shown to wgmma."""

    context: Context
    unshown: dict[int, Buffer]
    fences: dict[int, tuple[Stmt, dict[int, Buffer]]] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...], *, shown: bool) -> bool:
        """Whether all that this thread knows of is shown after the statements, if it is before them."""
        for stmt in body:
            shown = self.statement(stmt, shown=shown)
        return shown

    def statement(self, stmt: Stmt, *, shown: bool) -> bool:
        if self.context.facts.get(stmt, BARRIER) is not None:
            shown = False
        match stmt:
            case If():
                arms = [self.body(arm, shown=shown) for arm in (stmt.then, stmt.orelse)]
                return all(arms)
            case Loop() | While():
                self.body(stmt.body, shown=False)
                return False
            case _ if operands := _read_past_threads(stmt, self.context):
                return self.reader(stmt, operands, shown=shown)
            case _:
                stored = any(id(tile) in self.unshown for tile in shared(buffers_written(stmt)))
                meets = isinstance(stmt, Sync) or _calls(stmt, _ARRIVALS)
                return _is_fence(stmt) or (shown and not stored and not meets)

    def reader(self, stmt: Stmt, operands: Mapping[int, Buffer], *, shown: bool) -> bool:
        """A product, or a copy by TMA."""
        tiles = {key: tile for key, tile in operands.items() if key in self.unshown}
        if shown or not tiles:
            return shown
        self.fences[id(stmt)] = (stmt, tiles)
        return True


def _read_past_threads(stmt: Stmt, context: Context) -> Mapping[int, Buffer]:
    """The tiles that wgmma or TMA reads in a statement, by their ids."""
    match stmt:
        case Gemm() if multiplies_on_wgmma(stmt, context):
            regions: tuple[Region, ...] = (stmt.a, stmt.b)
        case Copy(begun=True):
            regions = (stmt.src,)
        case _:
            return {}
    return {id(region.buffer.memory): region.buffer.memory for region in regions}


def _calls(stmt: Stmt, names: tuple[str, ...]) -> bool:
    """Whether a statement calls one of the functions whose names begin so."""
    return isinstance(stmt, Effect) and isinstance(stmt.call, Call) and stmt.call.function.startswith(names)


def _is_fence(stmt: Stmt) -> bool:
    return _calls(stmt, ("fence_async_proxy",))
