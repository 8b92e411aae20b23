"""Loops with a producer: what it loads, and what the loops that consume it do, in which order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from tile2cu.analysis.accesses import (
    buffers_written,
    lets_for,
    variables,
    viewed,
    without_unused_lets,
)
from tile2cu.analysis.effects import effects_of
from tile2cu.analysis.prelude import Walk, around, begins_pipeline, is_iteration, producer_loop, producer_loops
from tile2cu.analysis.uses import all_expressions, read_in, written_in
from tile2cu.core import schedule
from tile2cu.core.decisions import PERSISTENT, SCHEDULE, SHARED_LAYOUT
from tile2cu.core.program import Buffer, Copy, If, Loop, Region, Stmt, While
from tile2cu.plan import ops, overlapped
from tile2cu.plan.claims import Executes
from tile2cu.plan.copy_ops import Copy as CopyOp
from tile2cu.plan.operands import Tile
from tile2cu.plan.pipelined import number_of
from tile2cu.plan.producer_ops import (
    Consume,
    EachActive,
    Iterations,
    Loads,
    Overlapped,
    PingPong,
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
from tile2cu.plan.structure import Block, Statement, Where

Lower = Callable[[tuple[Stmt, ...], Where], Block]


@dataclass(frozen=True)
class Producing:
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
            visited = isinstance(found, schedule.MmaOverlap) and is_iteration(op)
            how = Loads.VISITED if visited else Loads.ONCE if is_iteration(op) else Loads.LOOP
            loads, rings = self.lower(pipeline.loads, where), bool(rings_of(self.resolved))
            return Produce(source=op, iterations=iterations, rings=rings, loads=loads, how=how)
        match found:
            case schedule.MmaOverlap():
                return self._overlapped(op, found, iterations, where)
            case schedule.MmaInFlight():
                return self._in_flight(op, found, iterations, where)
            case schedule.PingPong():
                return self._ping_pong(op, found, iterations, where)
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

        return Visits(source=stmt, visiting=visiting, body=_mapped(body, visited))

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
        iterations = found is not None and is_iteration(found[0])
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
            once=is_iteration(op),
            waits_for_loads=are_loads_outstanding(pipeline.buffers, pipeline.body, self.resolved),
            reads_var=op.var in variables(*all_expressions(pipeline.body)),
            prefetch=prefetch,
        )

    def _in_flight(self, op: Loop, found: schedule.MmaInFlight, iterations: Iterations, where: Where) -> Overlapped:
        """A loop whose last MMAs are in flight while the next iteration writes their operand."""
        phases = overlapped.Lowering(self.lower, self.single, where, copied=found.copied).phases(found)
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
            iteration=self.walk.values if self.walk is not None and is_iteration(op) else (op.var,),
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
            rule=rule,
        )

    def _ping_pong(self, op: Loop, found: schedule.PingPong, iterations: Iterations, where: Where) -> PingPong:
        """A loop whose iterations two warpgroups take in alternation."""
        own, now = operands_of(found)
        factor, late, rescale, rule = found.factor, found.late, None, self.resolved.facts.rule(op, SCHEDULE)
        if factor is not None:
            branch = (factor.op, *factor.scaled)
            late = tuple(stmt for stmt in late if stmt not in branch)
            rescale = Rescale(factor=factor, compute=self.lower(branch, where), apply=(), rule=rule)
        handing = self.lower((*found.between, found.store), where)
        running = found.running

        def asks(*body: Stmt) -> bool:
            return op.var in effects_of(body).scalars_read

        return PingPong(
            source=op,
            iterations=iterations,
            products=_started(self.lower(found.own_mmas, where), found.own_mmas, paced=True),
            store_fragment=_to_registers(handing, found.store, own),
            handed=found.row_values,
            taken=tuple(self._taken(found, where)),
            taken_asks=asks(*found.recomputed),
            running=() if running is None else self.lower((running.reduce,), where),
            sums=None if running is None else running.reduce.dst,
            total=None if running is None else running.total,
            late=self.lower(late, where),
            rescale=rescale,
            second=_from_registers(self.lower((found.second,), where), now),
            second_asks=asks(found.second),
            kept=values_kept(found),
            tile=found.tile,
            own=own,
            now=now,
            accumulators=(found.own_mmas[0].c.buffer, found.second.c.buffer),
            has_late=bool(found.late),
            late_asks=asks(*found.late),
            rule=rule,
        )

    def _taken(self, found: schedule.PingPong, where: Where) -> Iterator[Block | Buffer]:
        """What a warpgroup takes over of an iteration of the other: values, and what it computes of them, in order."""
        for place, op in enumerate(found.between):
            if op in found.recomputed:
                yield self.lower((op,), where)
            later = written_in(found.between[place + 1 :])
            yield from (tile for tile in found.row_values if tile in buffers_written(op) - later)


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
        counted=interleaved and not is_iteration(op) and any(isinstance(outer, Loop | While) for outer in path),
        persistent=resolved.facts.get(resolved.launch, PERSISTENT) is not None,
        loading=loading,
    )


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


def operands_of(found: schedule.PingPong) -> tuple[Buffer, Buffer]:
    """The fragments of the last MMA's operand: of a warpgroup's own iteration, and of the one that it is at."""
    base = found.tile.name.removesuffix("_shared")
    like = replace(found.store.src.buffer, dtype=found.tile.dtype)
    return replace(like, name=f"{base}_own"), replace(like, name=f"{base}_now")


def values_kept(found: schedule.PingPong) -> tuple[Buffer, ...]:
    """What the end of an iteration reads and the next, which begins before, computes anew."""
    sums = (found.running.reduce,) if found.running is not None else ()
    written = written_in((*found.between, *sums))
    wanted = read_in(found.late)
    return tuple(sorted(wanted & written, key=lambda tile: tile.name))


def _started(block: Block, mmas: tuple[Stmt, ...], *, paced: bool = False) -> Block:
    """A block whose MMAs are only started."""

    def start(each: Statement) -> Statement:
        if not isinstance(each.op, ops.Mma) or all(each.source is not mma for mma in mmas):
            return each
        return replace(each, op=replace(each.op, starts=True, paced=paced))

    return _mapped(block, start)


def _behind(block: Block, stmt: Stmt, op: ops.Op) -> Block:
    """A block with an operation directly behind a statement."""

    def add(each: Statement) -> Statement:
        return replace(each, after=(op, *each.after)) if each.source is stmt else each

    return _mapped(block, add)


def _to_registers(block: Block, store: Copy, fragment: Buffer) -> Block:
    """A block whose copy to shared memory goes to registers."""

    def change(each: Statement) -> Statement:
        if each.source is not store:
            return each
        assert isinstance(each.op, CopyOp)
        return replace(each, op=replace(each.op, dst=Tile(region=Region.all_of(fragment, store.span)), threads=None))

    return _mapped(block, change)


def _from_registers(block: Block, fragment: Buffer) -> Block:
    """A block of one MMA, which starts and reads its first operand from registers."""

    def change(each: Statement) -> Statement:
        assert isinstance(each.op, ops.Mma)
        claims = (replace(c, a_in_registers=True) if isinstance(c, Executes) else c for c in each.op.claims)
        a = Tile(region=Region.all_of(fragment, each.source.span))
        return replace(each, op=replace(each.op, a=a, starts=True, claims=tuple(claims)))

    return _mapped(block, change)


def _mapped(block: Block, change: Callable[[Statement], Statement]) -> Block:
    """A block with each of its statements changed."""
    return tuple(replace(each, statements=tuple(map(change, each.statements))) for each in block)


def ping_pong_of(resolved: Resolved) -> schedule.PingPong | None:
    """How two warpgroups alternate in the producer's loop; None where they do not."""
    loop = producer_loop(resolved.launch, resolved.facts)
    found = resolved.facts.get(loop[0], SCHEDULE) if loop else None
    return found if isinstance(found, schedule.PingPong) else None


def second_part(found: schedule.PingPong, pipeline: schedule.Pipeline, resolved: Resolved) -> int:
    """With which panel of a stage the second warpgroup's columns of the last MMA start, in the order of the loads.

    Panels of other tiles are read by the first MMAs alone, which are done when either warpgroup releases an iteration.
    """
    panels: dict[int, int] = {id(tile): resolved.facts[tile, SHARED_LAYOUT].slabs for tile in pipeline.buffers}
    shared = found.second.b.buffer
    before = takewhile(lambda tile: tile is not shared, pipeline.buffers)
    return sum(panels[id(tile)] for tile in before) + panels[id(shared)] // 2
