"""Loops with a producer: what it loads, and what the loops that consume it do, in which order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from tile2cu.analysis.accesses import (
    buffers_read,
    buffers_written,
    expressions,
    lets_for,
    variables,
    viewed,
    without_unused_lets,
)
from tile2cu.analysis.prelude import Walk, around, is_iteration, producer_loop
from tile2cu.core import schedule
from tile2cu.core.decisions import (
    DEFERRED_REDUCTION,
    MMA_IN_FLIGHT,
    MMA_OVERLAP,
    PERSISTENT,
    PING_PONG,
    PREFETCHED_VECTORS,
    SHARED_LAYOUT,
    UNMASKED_ITERATIONS,
    WARPGROUP_TRIP_COUNT,
)
from tile2cu.core.expr import Var
from tile2cu.core.program import Buffer, Copy, If, Let, Loop, Region, Stmt, walk_stmts
from tile2cu.plan import ops
from tile2cu.plan.copy_ops import Copy as CopyOp
from tile2cu.plan.operands import Tile
from tile2cu.plan.pipelined import number_of
from tile2cu.plan.producer_ops import (
    AwaitStage,
    Consume,
    DeferredSum,
    EachActive,
    InFlight,
    InFlightFromRegisters,
    Iterations,
    Loads,
    Mask,
    Overlapped,
    Part,
    PingPong,
    Prefetch,
    PrefetchNext,
    Produce,
    Rescale,
    Ring,
    Visit,
    Visiting,
    Visits,
)
from tile2cu.plan.rings import publishes_iteration, ring_tiles
from tile2cu.plan.settled import Settled
from tile2cu.plan.structure import Block, Statement, Where

Lower = Callable[[tuple[Stmt, ...], Where], Block]


@dataclass(frozen=True)
class Producing:
    """Lowers the loops of a launch with a producer; `lower` lowers blocks of statements, `single` one."""

    settled: Settled
    walk: Walk | None
    lower: Lower
    single: Callable[[Stmt, Where], Statement]

    def loop(self, op: Loop, pipeline: schedule.Pipeline, where: Where) -> ops.Op:
        """A loop whose loads a producer does: for who loads, or for the others."""
        facts, iterations = self.settled.facts, iterations_of(op, pipeline, self.settled, loading=where.loading)
        overlap = facts.get(op, MMA_OVERLAP)
        if where.loading:
            how = Loads.VISITED if overlap is not None else Loads.ONCE if is_iteration(op) else Loads.LOOP
            return Produce(source=op, iterations=iterations, loads=self.lower(pipeline.loads, where), how=how)
        if overlap is not None:
            return self._overlapped(op, overlap, iterations, where)
        ping_pong, in_flight = facts.get(op, PING_PONG), facts.get(op, MMA_IN_FLIGHT)
        if ping_pong is not None:
            return self._ping_pong(op, ping_pong, iterations, where)
        if in_flight is not None:
            return self._in_flight(op, in_flight, iterations, where)
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
            return replace(each, op=replace(each.op, visiting=visiting)) if isinstance(each.op, Overlapped) else each

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

    def visiting(self) -> Visiting:
        """What is visited."""
        assert self.walk is not None
        found = producer_loop(self.settled.launch, self.settled.facts)
        iterations = found is not None and is_iteration(found[0])
        persistent = self.settled.facts.get(self.settled.launch, PERSISTENT) is not None
        return Visiting(iterations=iterations, within_tile=iterations and persistent, values=self.walk.values)

    def _consume(self, op: Loop, pipeline: schedule.Pipeline, iterations: Iterations, where: Where) -> Consume:
        """A loop that waits for each stage and releases it."""
        found = self.settled.facts.get(op, PREFETCHED_VECTORS)
        body = pipeline.body
        if found is None:
            lowered, prefetch = self.lower(body, where), None
        else:
            copies = frozenset(id(copy) for copy in found.copies)
            loads = replace(where, to_registers=where.to_registers | copies)
            prefetch = Prefetch(
                copies=found.copies,
                loads=tuple(self.single(stmt, loads) for stmt in (*found.lets, *found.copies)),
                rule=self.settled.facts.rule(op, PREFETCHED_VECTORS),
            )
            body = without_unused_lets(body, but=found.copies)  # the loads have values of their own
            lowered = self.lower(body, replace(where, from_registers=where.from_registers | copies))
            lowered = _behind(lowered, found.copies[-1], PrefetchNext(source=found.copies[-1], prefetch=prefetch))
        return Consume(
            source=op,
            iterations=iterations,
            body=lowered,
            once=is_iteration(op),
            reads_var=any(op.var in variables(*expressions(stmt)) for stmt in walk_stmts(pipeline.body)),
            prefetch=prefetch,
        )

    def _in_flight(self, op: Loop, found: schedule.MmaInFlight, iterations: Iterations, where: Where) -> ops.Op:
        """A loop whose MMA is in flight while the next iteration writes its operand."""
        rule = self.settled.facts.rule(op, MMA_IN_FLIGHT)
        if found.copied is None:
            return InFlight(
                source=op,
                iterations=iterations,
                body=_started(self.lower((*found.before, *found.mmas), where), found.mmas),
                accumulators=tuple(each.c.buffer for each in found.mmas),
                written=found.written,
                rule=rule,
            )
        return InFlightFromRegisters(
            source=op,
            iterations=iterations,
            start=_started(self.lower((found.mma,), where), (found.mma,)),
            prepare=self.lower(found.before, where),
            copied=self.single(found.copied, where),
            tile=found.copied.src.buffer,
            accumulator=found.mma.c.buffer,
            rule=rule,
        )

    def _overlapped(self, op: Loop, found: schedule.MmaOverlap, iterations: Iterations, where: Where) -> Overlapped:
        """A loop of two MMAs that overlap."""
        facts, rings = self.settled.facts, rings_of(self.settled)
        plain, factor = facts.get(op, UNMASKED_ITERATIONS), found.factor
        between, late = found.between[plain is not None :], found.late
        told_by = (op.var,) if self.walk is None else self.walk.values
        lower = _Parts(self.lower, where, found.lets, told_by)
        rescale = None
        if factor is not None:
            between, late = between[:-1], tuple(stmt for stmt in late if stmt not in factor.scaled)
            rescale = Rescale(
                factor=factor,
                compute=self.lower((factor.op,), where),
                apply=self.lower(factor.scaled, where),
                rule=facts.rule(op, MMA_OVERLAP),
            )
        deferred, trips = facts.get(op, DEFERRED_REDUCTION), facts.get(op, WARPGROUP_TRIP_COUNT)
        return Overlapped(
            source=op,
            iterations=iterations,
            rings=(rings[0], rings[1]),
            accumulators=(found.first.c.buffer, found.second.c.buffer),
            first=lower.starting((*found.before, found.first), rings[0]),
            mask=None if plain is None else lower.mask(plain.mask, facts.rule(op, UNMASKED_ITERATIONS)),
            between=lower.part(between, *((factor.op,) if factor is not None else ())),
            late=lower.part(late, *(factor.scaled if factor is not None else ())),
            second=lower.starting((found.second,), rings[1]),
            rescale=rescale,
            visiting=None,
            trips=trips,
            trips_rule=facts.rule(op, WARPGROUP_TRIP_COUNT) if trips is not None else "",
            deferred=None
            if deferred is None
            else DeferredSum(
                total=deferred.total,
                source=deferred.reduce.src,
                dim=deferred.reduce.dim,
                rule=facts.rule(op, DEFERRED_REDUCTION),
            ),
            rule=facts.rule(op, MMA_OVERLAP),
        )

    def _ping_pong(self, op: Loop, found: schedule.PingPong, iterations: Iterations, where: Where) -> PingPong:
        """A loop whose iterations two warpgroups take in alternation."""
        own, now = operands_of(found)
        factor, late, rescale, rule = found.factor, found.late, None, self.settled.facts.rule(op, PING_PONG)
        if factor is not None:
            branch = (factor.op, *factor.scaled)
            late = tuple(stmt for stmt in late if stmt not in branch)
            rescale = Rescale(factor=factor, compute=self.lower(branch, where), apply=(), rule=rule)
        handing = self.lower((*found.between, found.store), where)
        running = found.running
        return PingPong(
            source=op,
            iterations=iterations,
            products=_started(self.lower(found.mmas, where), found.mmas, paced=True),
            store_fragment=_to_registers(handing, found.store, own),
            handed=found.row_values,
            taken=tuple(self._taken(found, where)),
            running=() if running is None else self.lower((running.reduce,), where),
            sums=None if running is None else running.reduce.dst,
            total=None if running is None else running.total,
            late=self.lower(late, where),
            rescale=rescale,
            second=_from_registers(self.lower((found.second,), where), now),
            kept=values_kept(found),
            tile=found.tile,
            own=own,
            now=now,
            accumulators=(found.mmas[0].c.buffer, found.second.c.buffer),
            has_late=bool(found.late),
            rule=rule,
        )

    def _taken(self, found: schedule.PingPong, where: Where) -> Iterator[Block | Buffer]:
        """What a warpgroup takes over of an iteration of the other: values, and what it computes of them, in order."""
        for place, op in enumerate(found.between):
            if op in found.recomputed:
                yield self.lower((op,), where)
            later = frozenset().union(*(buffers_written(each) for each in found.between[place + 1 :]))
            yield from (tile for tile in found.row_values if tile in buffers_written(op) - later)


@dataclass(frozen=True)
class _Parts:
    """Lowers the parts of an iteration, each with the `lets` that it names; `told_by` are the iteration's variables."""

    lower: Lower
    where: Where
    lets: tuple[Let, ...]
    told_by: tuple[Var, ...]

    def part(self, body: tuple[Stmt, ...], *others: Stmt) -> Part:
        """Statements behind the values that they, or `others` in their part, name."""
        named = self._with_names(body, *others)
        return Part(block=self.lower(named, self.where), asks=self._asks(named))

    def starting(self, body: tuple[Stmt, ...], ring: Ring) -> Part:
        """The part that ends with the start of an MMA, as soon as its tile is there."""
        part = self.part(body)
        *others, last = part.block
        *before, mma = last.statements
        assert isinstance(mma.op, ops.Mma)
        start = replace(mma, op=replace(mma.op, starts=True))
        if not ring.publishes:  # else who knows the iteration has waited for its tile
            wait = AwaitStage(source=mma.source, ring=ring, claims=mma.op.claims)
            start = replace(mma, op=replace(mma.op, starts=True, claims=()), first=(wait,))
        last = replace(last, statements=(*before, start))
        return replace(part, block=(*others, last))

    def mask(self, mask: If, rule: str) -> Mask:
        """The mask, and what it names."""
        *lets, branch = self.lower(self._with_names((mask,)), self.where)
        return Mask(lets=tuple(lets), condition=mask.condition, branch=(branch,), rule=rule)

    def _with_names(self, body: tuple[Stmt, ...], *others: Stmt) -> tuple[Stmt, ...]:
        used = variables(*(expr for op in walk_stmts((*body, *others)) for expr in expressions(op)))
        return (*lets_for(used, self.lets), *body)

    def _asks(self, body: tuple[Stmt, ...]) -> bool:
        parts = (var for op in walk_stmts(body) for expr in expressions(op) for var in variables(expr))
        return any(var in self.told_by for var in parts)


def iterations_of(op: Loop, pipeline: schedule.Pipeline, settled: Settled, *, loading: bool) -> Iterations:
    """How the iterations of a producer's loop count."""
    tiles = tuple(view for tile in pipeline.buffers for view in (tile, *viewed(settled.launch, tile)))
    overlapped = settled.facts.get(op, MMA_OVERLAP) is not None
    return Iterations(
        var=op.var,
        start=op.start,
        stop=op.stop,
        stages=pipeline.stages,
        number=number_of(op, settled),
        tiles=tiles,
        published=tuple(tile for tile in ring_tiles(settled) if publishes_iteration(tile, settled)),
        continues=bool(around(settled.launch.body, op)) and not overlapped,
        persistent=settled.facts.get(settled.launch, PERSISTENT) is not None,
        loading=loading,
    )


def rings_of(settled: Settled) -> tuple[Ring, ...]:
    """The rings of the producer's loop, one for each MMA; none where its MMAs do not overlap."""
    found = producer_loop(settled.launch, settled.facts)
    stages = found[1].stages if found is not None else 0
    tiles = ring_tiles(settled)
    return tuple(Ring(tile=each, stages=stages, publishes=publishes_iteration(each, settled)) for each in tiles)


def operands_of(found: schedule.PingPong) -> tuple[Buffer, Buffer]:
    """The fragments of the last MMA's operand: of a warpgroup's own iteration, and of the one that it is at."""
    base = found.tile.name.removesuffix("_shared")
    like = replace(found.store.src.buffer, dtype=found.tile.dtype)
    return replace(like, name=f"{base}_own"), replace(like, name=f"{base}_now")


def values_kept(found: schedule.PingPong) -> tuple[Buffer, ...]:
    """What the end of an iteration reads and the next, which begins before, computes anew."""
    sums = (found.running.reduce,) if found.running is not None else ()
    written = frozenset().union(*(buffers_written(op) for op in (*found.between, *sums)))
    wanted = frozenset().union(*(buffers_read(op) for op in found.late))
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
        return replace(each, op=replace(each.op, a=Tile(region=Region.all_of(fragment, each.source.span)), starts=True))

    return _mapped(block, change)


def _mapped(block: Block, change: Callable[[Statement], Statement]) -> Block:
    """A block with each of its statements changed."""
    return tuple(replace(each, statements=tuple(map(change, each.statements))) for each in block)


def ping_pong_of(settled: Settled) -> schedule.PingPong | None:
    """How two warpgroups alternate in the producer's loop; None where they do not."""
    found = producer_loop(settled.launch, settled.facts)
    return settled.facts.get(found[0], PING_PONG) if found else None


def second_part(found: schedule.PingPong, pipeline: schedule.Pipeline, settled: Settled) -> int:
    """With which panel of a stage the second warpgroup's columns of the last MMA start, in the order of the loads.

    Panels of other tiles are read by the first MMAs alone, which are done when either warpgroup releases an iteration.
    """
    panels: dict[int, int] = {id(tile): settled.facts[tile, SHARED_LAYOUT].slabs for tile in pipeline.buffers}
    shared = found.second.b.buffer
    before = takewhile(lambda tile: tile is not shared, pipeline.buffers)
    return sum(panels[id(tile)] for tile in before) + panels[id(shared)] // 2
