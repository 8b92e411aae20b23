"""Hopper: proxy fences between stores to shared memory and the wgmma and explicit TMA that read them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tile2cu.analysis.accesses import buffers_written, shared
from tile2cu.analysis.control import arms
from tile2cu.analysis.groups import group_of, with_groups
from tile2cu.core.decisions import BARRIER, ON_WGMMA, PIPELINE, PROXY_FENCE, WARP_SPECIALISED
from tile2cu.core.program import Buffer, CallStmt, Copy, Gemm, If, Launch, Loop, Region, Stmt, Sync, While
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.mma.hopper import is_specialised
from tile2cu.rules.mma.warps import runs_on_wgmma

_STORED = """\
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.wgmma_gemm(A_shared, A_shared, C_local, clear_accum=True)
T.wait_wgmma(0)"""
# Calls that let other threads proceed, and after which this thread sees the stores of others.
_DIVERGENT = (
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
    reads=(BARRIER, ON_WGMMA, PIPELINE, WARP_SPECIALISED),
    writes=(PROXY_FENCE,),
    source="PTX ISA, 'Async proxy': a fence.proxy.async orders stores before what wgmma reads",
    examples=(Example(_STORED, 4, "proxy_fence", "A_shared", target="cuda:sm_90a"),),
)
def proxy_fence(launch: Launch, context: Context) -> Iterator[Decision]:
    """Threads that store to tiles of wgmma or TMA fence their stores before they synchronise with the reader.

    Data of cp.async arrives when no thread waits for it at the store: the threads that multiply fence it, before the
    MMA; so do threads that copy it on by TMA.

    Gives: the tiles that a fence before a statement makes visible to the async proxy.
    """
    if is_specialised(context):
        return  # the barrier of a producer's consumers has a fence
    operands = {key for op in context.statements for key in _read_past_threads(op, context)}
    writers = _Writers(context, operands)
    writers.body(launch.body)
    readers = _Readers(context, writers.unfenced)
    readers.body(launch.body, fenced=False)
    for key, (stmt, tiles) in (writers.fences | readers.fences).items():
        _, others = writers.fences.get(key, (stmt, {}))
        yield stmt, PROXY_FENCE, ", ".join(sorted({tile.name for tile in (tiles | others).values()}))


@dataclass
class _Writers:
    """Searches, after each store to an operand, the statement that makes it known to other threads."""

    context: Context
    operands: set[int]
    fences: dict[int, tuple[Stmt, dict[int, Buffer]]] = field(default_factory=dict)
    unfenced: dict[int, Buffer] = field(default_factory=dict)  # tiles that the threads that store them do not fence
    group: int | None = None  # of threads that run a statement; None for all of the block

    def body(self, body: tuple[Stmt, ...], then: tuple[Stmt, ...] = (), later: tuple[Stmt, ...] = ()) -> None:
        """Statements; `then` follows them where control continues; `later` is all else that may follow."""
        for position, stmt in enumerate(body):
            after = (*body[position + 1 :], *then)
            match stmt:
                case If():
                    outside, own = self.group, group_of(stmt)
                    self.group = own if own is not None and not stmt.once else outside
                    for arm, _ in arms(stmt):
                        self.body(arm, after, later)
                    self.group = outside
                case Loop() | While():
                    self.body(self.without_prefetches(stmt), (), (*stmt.body, *after, *later))
                case _:
                    self.stores(stmt, after, later)

    def without_prefetches(self, stmt: Loop | While) -> tuple[Stmt, ...]:
        """The body of a loop without the copies that a pipeline issues before their iterations."""
        pipeline = self.context.facts.get(stmt, PIPELINE)
        if pipeline is None:
            return stmt.body
        ahead = {id(tile.memory): tile.memory for tile in pipeline.buffers}
        self.unfenced |= {key: tile for key, tile in ahead.items() if key in self.operands}
        return pipeline.body

    def stores(self, stmt: Stmt, after: tuple[Stmt, ...], later: tuple[Stmt, ...]) -> None:
        by_tma = isinstance(stmt, Copy) and stmt.barrier is not None
        tiles = {id(tile): tile for tile in shared(buffers_written(stmt)) if id(tile) in self.operands}
        tiles = {key: tile for key, tile in tiles.items() if self.is_read(tile, (*after, *later))}
        if by_tma or not tiles:
            return
        asynchronous = isinstance(stmt, CallStmt) and stmt.call.function.startswith("cp_async<")
        position = None if asynchronous else next((each for each in after if self.publishes(each)), None)
        if position is None:
            self.unfenced |= tiles
        elif not _is_fence(position):
            self.fences.setdefault(id(position), (position, {}))[1].update(tiles)

    def is_read(self, tile: Buffer, after: tuple[Stmt, ...]) -> bool:
        """Whether an MMA may read the stored data: one that follows, or one of threads that learn of the store."""
        for stmt in self.reached(after):
            if isinstance(stmt, Sync) or _calls(stmt, _DIVERGENT):
                return True
            if id(tile) in _read_past_threads(stmt, self.context):
                return True
        return False

    def reached(self, body: tuple[Stmt, ...]) -> Iterator[Stmt]:
        """The statements that the group runs, including those in loops and branches."""
        return (stmt for stmt, group in with_groups(body) if self.group is None or group in (None, self.group))

    def publishes(self, stmt: Stmt) -> bool:
        """Whether it is a fence, or lets other threads proceed."""
        met = isinstance(stmt, If | Loop | While | Sync) or _calls(stmt, _DIVERGENT)
        reads = bool(_read_past_threads(stmt, self.context))
        return met or reads or _is_fence(stmt) or self.context.facts.get(stmt, BARRIER) is not None


@dataclass
class _Readers:
    """Searches MMAs that read data that no thread has fenced for the async proxy."""

    context: Context
    unfenced: dict[int, Buffer]
    fences: dict[int, tuple[Stmt, dict[int, Buffer]]] = field(default_factory=dict)

    def body(self, body: tuple[Stmt, ...], *, fenced: bool) -> bool:
        """Whether all data that this thread knows of is fenced after the statements, if it is before them."""
        for stmt in body:
            fenced = self.statement(stmt, fenced=fenced)
        return fenced

    def statement(self, stmt: Stmt, *, fenced: bool) -> bool:
        if self.context.facts.get(stmt, BARRIER) is not None:
            fenced = False
        match stmt:
            case If():
                ends = [self.body(arm, fenced=fenced) for arm, _ in arms(stmt)]
                return all(ends)
            case Loop() | While():
                self.body(stmt.body, fenced=False)
                return False
            case _ if operands := _read_past_threads(stmt, self.context):
                return self.reader(stmt, operands, fenced=fenced)
            case _:
                stored = any(id(tile) in self.unfenced for tile in shared(buffers_written(stmt)))
                synchronises = isinstance(stmt, Sync) or _calls(stmt, _ARRIVALS)
                return _is_fence(stmt) or (fenced and not stored and not synchronises)

    def reader(self, stmt: Stmt, operands: Mapping[int, Buffer], *, fenced: bool) -> bool:
        """An MMA, or a copy by TMA."""
        tiles = {key: tile for key, tile in operands.items() if key in self.unfenced}
        if fenced or not tiles:
            return fenced
        self.fences[id(stmt)] = (stmt, tiles)
        return True


def _read_past_threads(stmt: Stmt, context: Context) -> Mapping[int, Buffer]:
    """The tiles that a statement reads through the async proxy, by their ids."""
    match stmt:
        case Gemm() if runs_on_wgmma(stmt, context):
            regions: tuple[Region, ...] = (stmt.a, stmt.b)
        case Copy(begun=True):
            regions = (stmt.src,)
        case _:
            return {}
    return {id(region.buffer.memory): region.buffer.memory for region in regions}


def _calls(stmt: Stmt, names: tuple[str, ...]) -> bool:
    """Whether a statement calls a function whose name starts with one of these."""
    return isinstance(stmt, CallStmt) and stmt.call.function.startswith(names)


def _is_fence(stmt: Stmt) -> bool:
    return _calls(stmt, ("fence_async_proxy",))
