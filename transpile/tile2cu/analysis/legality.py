"""Whether a schedule of a loop is legal: it keeps the dependences of the loop's statements."""

from collections.abc import Iterator
from itertools import chain
from itertools import product as combinations

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_used
from tile2cu.analysis.dependence import Dependence, Kind, broken_by, conflicts
from tile2cu.analysis.effects import effects
from tile2cu.analysis.uses import read_in, written_in
from tile2cu.core.expr import Role, Var
from tile2cu.core.program import Gemm, Let, Loop, Stmt, Sync
from tile2cu.core.schedule import Action, By, PingPong, Pipeline, Schedule, Step


def why_no_pipeline(pipeline: Pipeline, loop: Loop) -> str:
    """The dependence that prefetching a loop's loads breaks; empty where it keeps all."""
    again = {id(let): replace(let) for let in pipeline.loads if isinstance(let, Let)}  # loads have values of their own
    loads = tuple(again.get(id(stmt), stmt) for stmt in pipeline.loads)
    body = tuple(_in_order(loop, (*loads, *pipeline.body), again))
    earlier, versions = _distance(pipeline)
    tiles = {tile.memory: versions for tile in pipeline.buffers}
    steps = _steps(loads, pipeline.body, earlier, last=_last_use(pipeline) if pipeline.producer else -1)
    return _first(each for each in broken_by(steps, body, loop, tiles) if not _is_own(each, loads))


def why_not(schedule: Schedule, body: tuple[Stmt, ...], loop: Loop) -> str:
    """The dependence that the schedule of a pipeline's body breaks; empty where it keeps all.

    Values that each part of an iteration computes for itself are no steps.
    """
    steps = schedule.steps
    scheduled = {id(step.stmt) for step in steps}
    own = tuple(stmt for stmt in body if id(stmt) in scheduled)
    early = tuple(step.stmt for step in steps if step.action is Action.START and not isinstance(step.stmt, Gemm))
    broken = broken_by(steps, own, loop, {tile.memory: 2 for tile in schedule.doubled})
    own_broken = (each for each in broken if not _is_own(each, early))
    if not isinstance(schedule, PingPong):
        return _first(own_broken)
    return _first(chain(own_broken, _concurrent(schedule, loop), _earlier(schedule, loop)))


def _concurrent(schedule: PingPong, loop: Loop) -> Iterator[str]:
    """Conflicts of what one warpgroup runs with what both run of the other one's iteration, concurrently.

    The two share nothing but the exchanged values, and values of which each thread has a copy.
    """
    own, both = ([step.stmt for step in schedule.steps if step.by is by] for by in (By.OWNER, By.ALL))
    row_values = {tile.memory for tile in (*schedule.row_values, schedule.tile)}
    copied = written_in(own) & read_in(both)
    for op, other in combinations(own, both):
        for kind, on in (*conflicts(effects(op), effects(other), loop), *conflicts(effects(other), effects(op), loop)):
            own_value = isinstance(on, Var) and on.role is Role.LET  # of each iteration
            if on is None or (on not in row_values and on not in copied and not own_value):
                what = f" of `{on.name}`" if on is not None else ""
                yield f"line {op.span.line} and line {other.span.line} run concurrently: {kind.value}{what}"


def _earlier(schedule: PingPong, loop: Loop) -> Iterator[str]:
    """Conflicts of what a warpgroup runs before its MMAs with values that it receives of the iteration before, later.

    These are the exchanged values, and those that both warpgroups read or compute with them.
    """
    both = (*schedule.recomputed, *schedule.late, schedule.second)
    tiles = (*schedule.row_values, *written_in(schedule.recomputed), *read_in(both))
    received = {tile.memory for tile in tiles}
    for other, op in combinations((step.stmt for step in schedule.steps), schedule.before):
        for kind, on in conflicts(effects(other), effects(op), loop):
            if on in received:
                where = f"line {op.span.line} runs before line {other.span.line} of the previous iteration"
                yield f"{where}: {kind.value} of `{on.name}`"


def _distance(pipeline: Pipeline) -> tuple[int, int]:
    """(how many iterations earlier loads run, of how many iterations tiles are held).

    A producer starts a load as soon as its stage is released, which may be within the iteration that read it last.
    """
    if pipeline.producer:
        return pipeline.stages, pipeline.stages
    return (pipeline.stages, pipeline.stages + 1) if pipeline.staged else (pipeline.stages - 1, pipeline.stages)


def _steps(loads: tuple[Stmt, ...], body: tuple[Stmt, ...], earlier: int, *, last: int) -> tuple[Step, ...]:
    """The loads, so many iterations `earlier`, behind the statement at place `last` of the body, or before all."""
    own = Step.each(*body, shift=earlier)
    return (*own[: last + 1], *Step.each(*loads), *own[last + 1 :])


def _last_use(pipeline: Pipeline) -> int:
    """The place of the last statement that uses a loaded tile, behind which its stage is released; -1 for none."""
    tiles = {tile.memory for tile in pipeline.buffers}
    used = (place for place, stmt in enumerate(pipeline.body) if tiles & {tile.memory for tile in buffers_used(stmt)})
    return max(used, default=-1)


def _in_order(loop: Loop, scheduled: tuple[Stmt, ...], again: dict[int, Let]) -> Iterator[Stmt]:
    """The scheduled statements in the order of the loop."""
    kept = {id(stmt) for stmt in scheduled}
    for stmt in loop.body:
        if id(stmt) in again:
            yield again[id(stmt)]
        if id(stmt) in kept:
            yield stmt


def _is_own(found: Dependence, loads: tuple[Stmt, ...]) -> bool:
    """Whether it is no dependence of prefetched loads, as those are on names, which both parts of an iteration compute.

    Nor are those on barriers, since the memory that a load reads and writes has its own dependences, and on what may
    end the loop: a load that no iteration uses changes only its stage.
    """
    if isinstance(found.on, Var) and found.on.role is Role.LET:
        return True
    ends = (found.first, found.second)
    synchronises = found.kind is Kind.ORDER and any(isinstance(stmt, Sync) for stmt in ends)
    return (synchronises or found.kind is Kind.CONTROL) and any(stmt is load for stmt in ends for load in loads)


def _first(found: Iterator[Dependence | str]) -> str:
    return str(next(found, ""))
