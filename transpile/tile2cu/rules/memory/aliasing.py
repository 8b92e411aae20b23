"""Shared-memory aliasing: shared tiles with disjoint lifetimes share memory, where all of them do not fit."""

from collections.abc import Iterator, Mapping

from tile2cu.analysis.accesses import parts_of
from tile2cu.analysis.lifetimes import Lifetime, Lifetimes
from tile2cu.analysis.prelude import outermost
from tile2cu.analysis.sync_calls import is_cluster_barrier
from tile2cu.core.decisions import (
    ALIASING,
    BLOCK_VOTE,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REDUCTION_WARPS,
    SCHEDULE,
    SHARED_LAYOUT,
    STAGES,
)
from tile2cu.core.expr import Address
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    Break,
    Buffer,
    CallStmt,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Launch,
    Let,
    Loop,
    Parallel,
    Print,
    Reduce,
    Scan,
    Scope,
    Stmt,
    Store,
    Swizzle,
    Sync,
    While,
)
from tile2cu.core.schedule import Pipeline
from tile2cu.core.shared_memory import Aliasing, Part
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.memory.storage import shared_budget_of, shared_tiles, workspaces_of

# Statements whose accesses to shared tiles the barrier rule orders; others may synchronise in other ways.
_ORDERED = (
    Assert | Assign | Atomic | AtomicTile | Break | Continue | Copy | Declare | Fill | Gemm | If | Let | Loop | Parallel
    | Print | Reduce | Scan | Store | Swizzle | Sync | While
)  # fmt: skip
_MOST_PARTS = 6


@rule(
    "storage.shared.aliasing",
    phase=Phase.SYNC,
    on=Launch,
    reads=(
        ALIASING,
        BLOCK_VOTE,
        PERSISTENT,
        PIPELINE,
        PROLOGUE_LOADS,
        REDUCTION_WARPS,
        SCHEDULE,
        SHARED_LAYOUT,
        STAGES,
    ),
    writes=(ALIASING,),
    source="CUDA C++ Programming Guide, 'Compute Capabilities': shared memory per block",
    examples=(
        Example(
            'S = T.alloc_shared((256, 128), "float32")\n'
            'R = T.alloc_shared((256, 128), "float32")\n'
            'L = T.alloc_fragment((256, 128), "float32")\n'
            "T.copy(X[0, 0], S)\n"
            "for i, j in T.Parallel(256, 128):\n"
            "    L[i, j] = S[255 - i, j]\n"
            "T.copy(L, R)\n"
            "for i, j in T.Parallel(256, 128):\n"
            "    X[i, j] = R[255 - i, j]",
            "launch",
            "aliasing",
            "S, then R",
        ),
    ),
)
def shared_aliasing(launch: Launch, context: Context) -> Iterator[Decision]:
    """Where the shared tiles do not all fit, tiles with disjoint lifetimes share memory.

    A tile is live from its first statement to its last; within a loop if each iteration begins by overwriting it. One
    that other blocks of the cluster write is live between the cluster's barriers around that as well. The body is cut
    where that saves most, until the tiles fit; reductions share their workspaces too, and first.

    Gives: the parts that share memory, in order of time.
    """
    workspaces = workspaces_of(context)
    plain = shared_budget_of(launch, context, workspaces, ())
    if plain.total <= plain.limit or launch.groups > 1:
        return
    joined = Aliasing((), workspaces=True)
    total, *_ = _sizes(joined, launch, context)
    if total <= plain.limit:
        yield launch, ALIASING, joined
    if total <= plain.limit or not all(map(_is_ordered, context.statements)):
        return
    for lifetimes, earliest in _lifetimes(launch, context):
        cuts: tuple[int, ...] = ()
        best: tuple[int, ...] = (plain.total,)
        candidates = sorted({life.first for _, life in lifetimes if life.first >= earliest})
        while best[0] > plain.limit and len(cuts) < _MOST_PARTS:
            tried = [tuple(sorted((*cuts, cut))) for cut in candidates if cut not in cuts]
            sizes = {more: _sizes(_aliasing(lifetimes, more), launch, context) for more in tried}
            if not sizes or min(sizes.values()) >= best:
                break
            cuts = min(sizes, key=lambda more: (sizes[more], more))
            best = sizes[cuts]
        if best[0] <= plain.limit:
            yield launch, ALIASING, _aliasing(lifetimes, cuts)
            return


def _is_ordered(stmt: Stmt) -> bool:
    """Whether the barrier rule sees all accesses of the statement to shared tiles.

    Inline user code accesses the tiles whose addresses it is given.
    """
    parts = [*parts_of((stmt,))]
    addressed = (part.buffer for part in parts if isinstance(part, Address))
    of_user = isinstance(stmt, CallStmt) and stmt.call.function.startswith("::")
    known = isinstance(stmt, _ORDERED) or of_user or is_cluster_barrier(stmt)
    return known and not any(isinstance(buffer, Buffer) and buffer.scope is Scope.SHARED for buffer in addressed)


_Lives = list[tuple[Buffer, Lifetime]]


def _lifetimes(launch: Launch, context: Context) -> Iterator[tuple[_Lives, int]]:
    """The tiles with their lifetimes, and the first point where memory may be reused.

    A producer warp takes part in no block barrier: memory that it fills is reused only after its loop. Or its tiles
    keep their own memory, and the other threads' tiles share memory wherever their lifetimes are disjoint.
    """
    pipelines: Mapping[int, Pipeline] = {
        id(op): each for op in context.statements if (each := context.facts.get(op, PIPELINE)) is not None
    }
    loops = [op for op in context.statements if id(op) in pipelines and pipelines[id(op)].producer]
    filling = {id(op): outermost(launch.body, op) for op in loops if isinstance(op, Loop)}
    ahead: dict[int, tuple[Buffer, ...]] = {}
    for loop, each in pipelines.items():
        at = id(filling[loop]) if loop in filling else loop
        ahead[at] = (*ahead.get(at, ()), *each.buffers)
    lifetimes = Lifetimes(launch, ahead)
    found = [(tile, life) for tile in shared_tiles(launch) if (life := lifetimes.of(tile)) is not None]
    yield found, max((lifetimes.end(stmt) + 1 for stmt in filling.values()), default=0)
    filled = {buffer for op in loops for buffer in pipelines[id(op)].buffers}
    first = context.facts.get(launch, PROLOGUE_LOADS)
    filled |= {load.dst.buffer for load in first.loads} if first is not None else set()
    if filled and filled != {tile for tile, _ in found}:
        yield [(tile, life) for tile, life in found if tile not in filled], 0


def _aliasing(lifetimes: list[tuple[Buffer, Lifetime]], cuts: tuple[int, ...]) -> Aliasing:
    """The tiles between neighbouring cuts share memory; those across a cut do not."""
    ends = zip((0, *cuts), (*cuts, max(life.last for _, life in lifetimes) + 1), strict=True)
    parts = []
    for start, end in ends:
        inside = [(tile, life) for tile, life in lifetimes if start <= life.first and life.last < end]
        if inside:
            lines = [line for _, life in inside for line in (life.first_line, life.last_line)]
            parts.append(Part(tuple(tile.name for tile, _ in inside), min(lines), max(lines)))
    return Aliasing(tuple(parts) if len(parts) > 1 else ())


def _sizes(aliasing: Aliasing, launch: Launch, context: Context) -> tuple[int, ...]:
    """Bytes of all shared memory, then of each part, the largest first: of two equal parts, a cut makes one smaller."""
    budget = shared_budget_of(launch, context, workspaces_of(context), (), aliasing)
    bytes_of = dict(budget.tiles)
    parts = (sum(bytes_of[name] for name in part.tiles) for part in aliasing.parts)
    return budget.total, *sorted(parts, reverse=True)
