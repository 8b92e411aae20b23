"""Which copies of a pipelined loop run ahead of it, and how far."""

from collections.abc import Callable, Iterator
from enum import Enum

from tile2cu.core.accesses import (
    buffers_read,
    buffers_written,
    expressions,
    lets_for,
    overwrites,
    read_by_itself,
    touches,
    variables,
    without_unused_lets,
)
from tile2cu.core.effects import syncs_grid
from tile2cu.core.expr import Expr, Load, Var, walk
from tile2cu.core.facts import rejected
from tile2cu.core.prelude import around, taken_turns
from tile2cu.core.program import (
    Assign,
    Break,
    Buffer,
    Continue,
    Copy,
    Declare,
    If,
    Launch,
    Loop,
    LoopKind,
    Parallel,
    Scope,
    Stmt,
    Store,
    While,
    bodies,
    steps,
    walk_stmts,
)
from tile2cu.core.schedule import Dealt, Pipeline, Specialised
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule

_GEMM = """
A_shared = T.alloc_shared((64, 32), "float16")
B_shared = T.alloc_shared((32, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
for k in T.Pipelined(4, num_stages=3):
    T.copy(X[0, k * 32], A_shared)
    T.copy(X[k * 32, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
"""


@rule(
    "pipeline.loop.cp-async",
    phase=Phase.PIPELINE,
    on=Loop,
    source="PTX ISA, 'cp.async' and 'cp.async.wait_group'",
    examples=(
        Example(_GEMM, 4, "pipeline", "3 stages of A_shared, B_shared"),
        Example(_GEMM, "A_shared", "slots", "3"),
    ),
)
def cp_async(op: Loop, context: Context) -> Iterator[Decision]:
    """The copies from global to shared memory of a pipelined loop run num_stages - 1 turns ahead.

    A copy may run ahead when it depends on the loop's variable and on nothing that the body computes, when nothing else
    writes its tile, and when the tile is not read before it in the same turn. T.tma_copy stays in its turn: the user
    waits for it.

    Gives: the pipeline of the loop, and the number of slots of each tile that is loaded ahead; why others are not.
    """
    yield from _not_ahead(op, context.launch)
    pipeline = pipeline_of(op, context.launch, producer=False) if context.target.cp_async else None
    specialised: Specialised | None = context.facts.get(context.launch, "specialised")
    if pipeline is not None and not (specialised and specialised.producer):
        yield op, "pipeline", pipeline
        for buffer in pipeline.buffers:
            yield buffer, "slots", slots_of(buffer, context.launch, ahead_pipeline)


def ahead_pipeline(loop: Loop, launch: Launch) -> Pipeline | None:
    """The pipeline of a loop whose threads load by themselves."""
    return pipeline_of(loop, launch, producer=False)


def slots_of(tile: Buffer, launch: Launch, made: Callable[[Loop, Launch], Pipeline | None]) -> int:
    """As many slots as the deepest of the pipelines has that load the tile."""
    found = (made(loop, launch) for loop in walk_stmts(launch.body) if isinstance(loop, Loop))
    return max(pipeline.stages for pipeline in found if pipeline is not None and tile in pipeline.buffers)


def pipeline_of(loop: Loop, launch: Launch, *, producer: bool) -> Pipeline | None:
    """The pipeline that a loop asks for; None when it asks for none, or nothing can run ahead."""
    parts = _parts(loop, launch, by_tma=producer)
    return Pipeline(loop.num_stages, *parts, producer=producer) if parts else None


def is_at_top(loop: Stmt, context: Context) -> bool:
    """Whether a loop stands in no other: then a producer's ring is its alone, and empty before and after it."""
    return any(op is loop for op in context.launch.body)


def turns_follow_alone(loop: Loop, pipeline: Pipeline, context: Context) -> bool:
    """Whether nothing comes between a loop's turns: it stands at the top, or is a turn there that is not skipped."""
    return is_at_top(loop, context) or taken_turns(loop, pipeline, context.launch.body) is not None


def dealt_of(context: Context) -> Dealt | None:
    """How two warpgroups take the turns of the producer's loop in alternation; None where they do not."""
    found = (context.facts.get(op, "dealt") for op in context.launch.body if isinstance(op, Loop))
    return next(filter(None, found), None)


def lines_ahead(loop: Loop, launch: Launch) -> tuple[Copy, ...]:
    """The loads that could run ahead, of tiles of one dimension."""
    return tuple(
        stmt for stmt in loop.body if isinstance(stmt, Copy) and _is_line(stmt) and _runs_ahead(stmt, loop, launch)
    )


def staged_pipeline_of(loop: Loop, launch: Launch) -> Pipeline | None:
    """The same where one of the tiles waits in registers: one slot less, and no more than two."""
    parts = _parts(loop, launch)
    return Pipeline(min(max(1, loop.num_stages - 1), 2), *parts, staged=True) if parts else None


def _parts(loop: Loop, launch: Launch, *, by_tma: bool = False) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]] | None:
    """(what runs ahead, the rest) of a pipelined loop's body."""
    if loop.kind is not LoopKind.PIPELINED or loop.num_stages < 1 or syncs_grid(loop.body):
        return None
    loads = tuple(stmt for stmt in loop.body if _runs_ahead(stmt, loop, launch) and not (by_tma and _is_line(stmt)))
    if not loads:
        return None
    rest = tuple(stmt for stmt in loop.body if stmt not in loads)
    return (*lets_for(set().union(*map(_names, loads)), loop.body), *loads), without_unused_lets(rest)


def _is_line(stmt: Stmt) -> bool:
    """Whether a copy fills a tile of one dimension."""
    return isinstance(stmt, Copy) and stmt.dst.buffer.rank == 1


def _not_ahead(loop: Loop, launch: Launch) -> Iterator[Decision]:
    """Why copies from tensors of a pipelined loop, or all of a loop's, do not run ahead, or less far than asked for."""
    copies = [stmt for stmt in loop.body if isinstance(stmt, Copy) and stmt.src.buffer.scope is Scope.GLOBAL]
    if loop.kind is LoopKind.PIPELINED and loop.num_stages < 1 and copies:
        yield rejected(loop, "pipeline", "num_stages is 0", "num_stages=2 or more")
    if loop.stages_asked:
        yield rejected(
            loop, f"{loop.stages_asked} stages", "their tiles do not fit into shared memory", "smaller tiles"
        )
    if loop.kind is LoopKind.PIPELINED and loop.num_stages > 0:
        for copy in copies:
            because, edit = _stays(copy, loop, launch)
            if because:
                yield rejected(copy, "ahead of its loop", because, edit)
        for op in loop.body:
            if isinstance(op, Parallel) and (because := _fills_by_elements(op)):
                yield rejected(
                    op, "ahead of its loop", because, "T.copy of whole boxes of the tensor, where it has them"
                )


def _fills_by_elements(op: Parallel) -> str:
    """Why a loop that fills shared tiles from tensors stays in its turn; empty for loops that do no such thing."""
    for store in op.body:
        if isinstance(store, Store) and store.buffer.scope is Scope.SHARED:
            read = [part for part in _loads(store.value) if part.scope is Scope.GLOBAL]
            places = [part for load in walk(store.value) if isinstance(load, Load) for part in _loads(*load.indices)]
            if read and places:
                return f"it gathers what `{places[0].name}` says"
            if read:
                return f"it computes `{store.buffer.name}` element by element from `{read[0].name}`"
    return ""


def _loads(*values: Expr) -> list[Buffer]:
    """The buffers of which values take elements, in order."""
    parts = (part for value in values for part in walk(value))
    return [part.buffer for part in parts if isinstance(part, Load) and isinstance(part.buffer, Buffer)]


def _runs_ahead(stmt: Stmt, loop: Loop, launch: Launch) -> bool:
    """Whether the statement is a copy from global to a whole shared tile that only needs the loop's variable."""
    if not isinstance(stmt, Copy) or stmt.src.buffer.scope is not Scope.GLOBAL:
        return False
    return not _stays(stmt, loop, launch)[0]


def _stays(stmt: Copy, loop: Loop, launch: Launch) -> tuple[str, str]:
    """(why, edit) of a copy from a tensor that cannot run ahead; empty where it can."""
    tile = stmt.dst.buffer
    if stmt.barrier is not None:
        assert isinstance(stmt.barrier.buffer, Buffer)
        return f"the turn that begins it waits for it at `{stmt.barrier.buffer.name}`", "write T.copy without a barrier"
    if tile.scope is not Scope.SHARED:
        return (
            f"`{tile.name}` is not in shared memory",
            f"copy into a T.alloc_shared tile, and from there to `{tile.name}`",
        )
    if not stmt.dst.whole:
        return f"it fills a part of `{tile.name}`", "give the part a tile of its own"
    place = next(number for number, other in enumerate(loop.body) if other is stmt)
    if tile.of is not None:
        return f"`{tile.name}` shows `{tile.of.name}` in another shape", f"copy into `{tile.of.name}`"
    if any(touches(buffers_written(other), tile) for other in loop.body if other is not stmt):
        return f"the loop writes `{tile.name}` elsewhere, too", "use a tile of its own for each"
    if any(touches(buffers_read(other), tile) for other in loop.body[:place]):
        return f"`{tile.name}` is read before it in the same turn", "copy before the tile is read"
    if _is_read_later(loop, tile, launch):
        return f"`{tile.name}` is read after the loop, which knows no slots", "read it in the loop, or copy it again"
    needed = (*lets_for(_names(stmt), loop.body), stmt)
    names = set().union(*map(_names, needed))
    changed = [name.name for name in sorted(names, key=lambda name: name.name) if not _pure(name, loop)]
    if changed:
        return (
            f"its place depends on `{changed[0]}`, which the loop assigns to",
            "compute the place from the loop's variable",
        )
    written = {buffer.memory for other in walk_stmts(loop.body) for buffer in buffers_written(other)}
    both = sorted(part.name for each in needed for part in buffers_read(each) if part.memory in written)
    return (f"the loop also writes `{both[0]}`", "write to another tensor") if both else ("", "")


def _is_read_later(loop: Loop, tile: Buffer, launch: Launch) -> bool:
    """Whether a statement outside of the loop may read what the loop leaves in the tile."""
    inner: Stmt = loop
    for outer in reversed(around(launch.body, loop)):
        (body,) = (body for body in bodies(outer) if any(stmt is inner for stmt in body))
        place = next(at for at, stmt in enumerate(body) if stmt is inner)
        behind = _first_use(body[place + 1 :], tile)
        if behind is not None:
            return behind is _Use.READ
        again = touches(read_by_itself(outer), tile) or _first_use(body[:place], tile) is _Use.READ
        if isinstance(outer, Loop | While) and again:
            return True
        inner = outer
    place = next(at for at, stmt in enumerate(launch.body) if stmt is inner)
    return _first_use(launch.body[place + 1 :], tile) is _Use.READ


class _Use(Enum):
    READ = "read"
    OVERWRITTEN = "overwritten"


def _first_use(body: tuple[Stmt, ...], tile: Buffer) -> _Use | None:
    """What a body may do first of all to what a tile holds: read it, or else, whichever way it goes, overwrite it."""
    stays = True  # no break or continue leaves the body before
    for stmt in body:
        uses = [_first_use(below, tile) for below in bodies(stmt)]
        reads = touches(read_by_itself(stmt), tile) or _Use.READ in uses
        everywhere = isinstance(stmt, If) and uses.count(_Use.OVERWRITTEN) == len(uses)
        overwritten = everywhere or overwrites(stmt, tile)
        if reads:
            return _Use.READ
        stays &= not any(isinstance(step, Break | Continue) for step in steps((stmt,)))
        if overwritten and stays:
            return _Use.OVERWRITTEN
    return None


def _names(stmt: Stmt) -> set[Var]:
    return variables(*expressions(stmt))


def _pure(name: Var, loop: Loop) -> bool:
    """Whether a value can be computed ahead: it is not assigned to in the loop's body."""
    return not any(isinstance(stmt, Assign | Declare) and stmt.var == name for stmt in walk_stmts(loop.body))
