"""Loops with a producer: what it loads, and what the loops that consume it do, in which order."""

from collections.abc import Callable

from msgspec.structs import replace

from tile2cu.analysis.accesses import (
    lets_for,
    variables,
    viewed,
    without_unused_lets,
)
from tile2cu.analysis.prelude import Walk, around, begins_pipeline, is_iteration, producer_loop, producer_loops
from tile2cu.analysis.signs import never_negative
from tile2cu.analysis.trips import runs_at_least_once
from tile2cu.analysis.uses import all_expressions
from tile2cu.core import schedule
from tile2cu.core.decisions import PERSISTENT, SCHEDULE
from tile2cu.core.expr import binary
from tile2cu.core.program import If, Loop, Stmt, While
from tile2cu.core.record import Record
from tile2cu.plan import ops, overlapped
from tile2cu.plan.ping_pong import ping_pong
from tile2cu.plan.pipelined import number_of
from tile2cu.plan.producer_ops import (
    Consume,
    EachActive,
    Iterations,
    Loads,
    Overlapped,
    Prefetch,
    PrefetchNext,
    Produce,
    Rescale,
    Ring,
    Visit,
    VisitedWork,
    Visits,
)
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.rings import are_loads_outstanding, loaded_by_threads, publishes_iteration, ring_tiles
from tile2cu.plan.slabs import slabs_of_stage
from tile2cu.plan.structure import Block, Lower, Statement, Where, mapped


class Producing(Record, frozen=True):
    """Lowers the loops of a launch with a producer; `lower` lowers blocks of statements, `single` one."""

    resolved: Resolved
    walk: Walk | None
    lower: Lower
    single: Callable[[Stmt, Where], Statement]

    def loop(self, op: Loop, pipeline: schedule.Pipeline, where: Where) -> ops.Op:
        """A loop whose loads a producer does: for who loads, or for the others."""
        iterations = iterations_of(op, pipeline, self.resolved, loading=where.loading)
        found = self.resolved.facts.get(op, SCHEDULE)
        if where.loading:
            once = _is_iteration(op, self.resolved)
            visited = isinstance(found, schedule.MmaOverlap) and once
            how = Loads.VISITED if visited else Loads.ONCE if once else Loads.LOOP
            loads, rings = self.lower(pipeline.loads, where), bool(rings_of(self.resolved))
            return Produce(source=op, iterations=iterations, rings=rings, loads=loads, how=how)
        match found:
            case schedule.MmaOverlap():
                return self._overlapped(op, found, iterations, where)
            case schedule.MmaInFlight():
                return self._in_flight(op, found, iterations, where)
            case schedule.PingPong():
                rule, slabs = self.resolved.facts.rule(op, SCHEDULE), slabs_of_stage(found, pipeline, self.resolved)
                return ping_pong(op, found, slabs, iterations, self.lower, where, rule)
            case _:
                return self._consume(op, pipeline, iterations, where)

    def visit(self, stmt: Stmt) -> Visit:
        """Where the way has led to a loop."""
        return Visit(source=stmt, visiting=self.visiting())

    def visits(self, stmt: Stmt, where: Where) -> Visits:
        """What those who load, or the others, do at each tile of work or iteration."""
        assert self.walk is not None
        body = self.lower(self.walk.loading if where.loading else self.walk.computing, where)
        visiting = self.visiting()

        def visited(each: Statement) -> Statement:
            if not visiting.iterations or not isinstance(each.op, Overlapped):
                return each
            return replace(each, op=replace(each.op, visiting=visiting))

        return Visits(source=stmt, visiting=visiting, body=mapped(body, visited))

    def each_active(self, op: Loop, where: Where) -> EachActive:
        """A loop of which memory tells the active iterations."""
        assert self.walk is not None
        branch = op.body[-1]
        assert isinstance(branch, If), "the loop's last statement says which iterations are active"
        return EachActive(
            source=op,
            var=op.var,
            start=op.start,
            stop=op.stop,
            asked=self.lower(lets_for(variables(branch.condition), op.body), where),
            condition=branch.condition,
            branch=branch,
            visited=self.lower(lets_for(set(self.walk.values), op.body), where),
            visit=self.visit(branch),
        )

    def visiting(self) -> VisitedWork:
        """What is visited."""
        assert self.walk is not None
        found = producer_loop(self.resolved.launch, self.resolved.facts)
        iterations = found is not None and _is_iteration(found[0], self.resolved)
        persistent = self.resolved.facts.get(self.resolved.launch, PERSISTENT) is not None
        return VisitedWork(iterations=iterations, within_tile=iterations and persistent, values=self.walk.values)

    def _consume(self, op: Loop, pipeline: schedule.Pipeline, iterations: Iterations, where: Where) -> Consume:
        """A loop that waits for each stage and releases it."""
        found = self.resolved.facts.get(op, SCHEDULE)
        body = pipeline.body
        if not isinstance(found, schedule.InOrder) or not found.copies:
            lowered, prefetch = self.lower(body, where), None
        else:
            copies = frozenset(id(copy) for copy in found.copies)
            loads = replace(where, to_registers=where.to_registers | copies)
            prefetch = Prefetch(
                copies=found.copies,
                loads=tuple(self.single(stmt, loads) for stmt in (*found.lets, *found.copies)),
                rule=self.resolved.facts.rule(op, SCHEDULE),
            )
            body = without_unused_lets(body, but=found.copies)  # the loads have values of their own
            lowered = self.lower(body, replace(where, from_registers=where.from_registers | copies))
            lowered = _behind(lowered, found.copies[-1], PrefetchNext(source=found.copies[-1], prefetch=prefetch))
        return Consume(
            source=op,
            iterations=iterations,
            body=lowered,
            once=_is_iteration(op, self.resolved),
            waits_for_loads=are_loads_outstanding(pipeline.buffers, pipeline.body, self.resolved),
            reads_var=op.var in variables(*all_expressions(pipeline.body)),
            prefetch=prefetch,
        )

    def _in_flight(self, op: Loop, found: schedule.MmaInFlight, iterations: Iterations, where: Where) -> Overlapped:
        """A loop whose last MMAs are in flight while the next iteration writes their operand."""
        phases = overlapped.Lowering(self.lower, self.single, where, iteration=(op.var,), copied=found.copied).phases(
            found
        )
        return Overlapped(
            source=op,
            iterations=iterations,
            rings=(),
            phases=phases,
            first=(),
            second=tuple(mma.c.buffer for mma in found.last),
            written=found.written,
            rule=self.resolved.facts.rule(op, SCHEDULE),
        )

    def _overlapped(self, op: Loop, found: schedule.MmaOverlap, iterations: Iterations, where: Where) -> Overlapped:
        """A loop of two groups of MMAs that overlap."""
        facts, rings, factor = self.resolved.facts, rings_of(self.resolved), found.factor
        rule = facts.rule(op, SCHEDULE)
        lowering = overlapped.Lowering(
            self.lower,
            self.single,
            where,
            rings=rings,
            lets=found.lets,
            iteration=self.walk.values if self.walk is not None and _is_iteration(op, self.resolved) else (op.var,),
            mask=found.mask,
            rescale=(factor.op, *factor.scaled) if factor is not None else (),
        )
        rescale = None
        if factor is not None:
            compute, apply = self.lower((factor.op,), where), self.lower(factor.scaled, where)
            rescale = Rescale(factor=factor, compute=compute, apply=apply, rule=rule)
        return Overlapped(
            source=op,
            iterations=iterations,
            rings=rings,
            phases=lowering.phases(found),
            first=tuple(mma.c.buffer for mma in found.first),
            second=tuple(mma.c.buffer for mma in found.second),
            mask=lowering.masked(),
            rescale=rescale,
            trips=found.trips,
            running=found.running,
            runs=found.trips is None and runs_at_least_once(op, self.resolved.launch, self.resolved.bounds),
            rule=rule,
        )


def iterations_of(op: Loop, pipeline: schedule.Pipeline, resolved: Resolved, *, loading: bool) -> Iterations:
    """How the iterations of a producer's loop count."""
    tiles = tuple(view for tile in pipeline.buffers for view in (tile, *viewed(resolved.launch, tile)))
    path, loops = around(resolved.launch.body, op), producer_loops(resolved.launch, resolved.facts)
    interleaved = isinstance(resolved.facts.get(op, SCHEDULE), schedule.MmaOverlap | schedule.MmaInFlight)
    firsts = [begins_pipeline(loop, resolved.launch, resolved.facts) for loop, _ in loops]
    again = bool(path) or firsts.count(begins_pipeline(op, resolved.launch, resolved.facts)) > 1
    return Iterations(
        var=op.var,
        start=op.start,
        stop=op.stop,
        stages=pipeline.stages,
        number=number_of(op, resolved),
        tiles=tiles,
        published=tuple(tile for tile in ring_tiles(resolved) if publishes_iteration(tile, resolved)),
        inside=bool(path) or len(loops) > 1,
        continues=again and not interleaved,
        counted=interleaved
        and not _is_iteration(op, resolved)
        and any(isinstance(outer, Loop | While) for outer in path),
        persistent=resolved.facts.get(resolved.launch, PERSISTENT) is not None,
        loading=loading,
        may_be_negative=not never_negative(binary("-", op.stop, op.start), resolved.bounds),
    )


def _is_iteration(op: Loop, resolved: Resolved) -> bool:
    """Whether a loop is one iteration of a loop around it that skips some."""
    return is_iteration(op, resolved.launch.body)


def rings_of(resolved: Resolved) -> tuple[Ring, ...]:
    """The rings of the producer's loop, one for each MMA; none where its MMAs do not overlap."""
    found = producer_loop(resolved.launch, resolved.facts)
    if found is None:
        return ()
    _, pipeline = found
    return tuple(
        Ring(
            tile=tile,
            stages=pipeline.stages,
            publishes=publishes_iteration(tile, resolved),
            loaded=bool(loaded_by_threads((tile,), pipeline.body, resolved)),
        )
        for tile in ring_tiles(resolved)
    )


def _behind(block: Block, stmt: Stmt, op: ops.Op) -> Block:
    """A block with an operation directly behind a statement."""

    def add(each: Statement) -> Statement:
        return replace(each, after=(op, *each.after)) if each.source is stmt else each

    return mapped(block, add)
