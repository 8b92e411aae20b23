"""The producer of a kernel: what it loads, when, and what it shares with those that compute."""

from collections.abc import Iterator
from itertools import groupby

from msgspec.structs import replace

from tile2cu.analysis.accesses import expressions, parts_of
from tile2cu.analysis.prelude import (
    around,
    before,
    is_iteration,
    outermost,
    path_to,
    prelude,
    producer_loop,
    producer_loops,
    producer_pipelines,
)
from tile2cu.analysis.trips import runs_at_least_once
from tile2cu.core import schedule
from tile2cu.core.decisions import (
    MULTICAST_BLOCKS,
    PERSISTENT,
    PIPELINE,
    PROLOGUE_LOADS,
    REGISTER_SHARES,
    STORE_STAGING,
)
from tile2cu.core.expr import Load
from tile2cu.core.program import Buffer, Copy, Loop, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import handed_name
from tile2cu.plan.body import Lowering
from tile2cu.plan.copy_ops import GatherRows, TmaLoad
from tile2cu.plan.order import read_before_sum
from tile2cu.plan.ping_pong_ops import LoadSlabs
from tile2cu.plan.producer import iterations_of, rings_of
from tile2cu.plan.producer_ops import Iterations, Loads, Produce, Ring, VisitedWork
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.slabs import Slabs, parts_of_stage, ping_pong_of, slabs_of_stage
from tile2cu.plan.structure import Block, Paragraph, Statement, Where, mapped
from tile2cu.plan.traversal import operations

_LOADING = Where(loading=True)


class Prologue(Record, frozen=True, kw_only=True, eq=False):
    """What a producer loads once, before its loop; `used`: whether that provably has an iteration."""

    copies: tuple[Copy, ...]
    loads: Block
    used: bool
    rule: str


class SlabbedStages(Record, frozen=True, kw_only=True, eq=False):
    """The slabs of a stage of a ping-pong loop, in the order of their loads.

    `first` is the accumulator of an iteration's owner, whose MMAs are issued in order of their iterations, `last` the
    one whose columns both add to, and `handed` are the shared tiles by which the owner passes values on. By `exchanged`
    the warpgroups add a running sum, if there is one. `reuses` are staging tiles that are written in the memory of
    another tile: (staging, tile); the barriers of the sum suffice for those `summed_before`. All by name.
    """

    slabs: tuple[Slabs, ...]
    first: str
    last: str
    handed: tuple[str, ...]
    exchanged: str
    reuses: tuple[tuple[str, str], ...]
    summed_before: tuple[tuple[str, str], ...]

    @property
    def total(self) -> int:
        return self.slabs[-1].last + 1

    @property
    def gathered(self) -> bool:
        """Whether all threads of the producer's warpgroup load them."""
        return self.slabs[0].gathered

    @property
    def parts(self) -> tuple[range, range]:
        """The slabs that each warpgroup releases."""
        return parts_of_stage(self.slabs)

    @property
    def acquired(self) -> tuple[Slabs, Slabs]:
        """Those before which the producer waits for a warpgroup's release."""
        first, second = (next(each for each in self.slabs if each.part == part) for part in (0, 1))
        return first, second


class PathToLoop(Record, frozen=True, kw_only=True, eq=False):
    """The way to the producer's loop through those around it, which who loads and who computes go alike."""

    visiting: VisitedWork
    body: Block


class Fed(Record, frozen=True, kw_only=True, eq=False):
    """A loop that a producer loads `tiles` for, in one pipeline."""

    iterations: Iterations
    tiles: tuple[Buffer, ...]


class Producer(Record, frozen=True, kw_only=True, eq=False):
    """The producer's part of a kernel, which comes first and returns.

    `hoisted` are values that both parts see; of these `meanwhile` are read from memory while the first tiles load.
    `loads` are an iteration's where its one `loop` stands at the top of the body; else `nested` is what the producer
    does for each of its `pipelines`, in the loops around it, or on the `way`. `shares_rule` says why it hands registers
    over; empty where it does not.
    """

    loop: Loop
    iterations: Iterations
    pipelines: tuple[Fed, ...]
    threads: int
    hoisted: Block
    meanwhile: Block
    loads: Block
    nested: Block
    way: PathToLoop | None
    prologue: Prologue | None
    rings: tuple[Ring, ...]
    stages: SlabbedStages | None
    once: bool
    multicast: int
    multicast_rule: str
    persistent: schedule.Persistent | None
    persistent_rule: str
    shares_rule: str
    rule: str

    def fills(self, tile: Buffer) -> bool:
        """Whether it fills the stages of a shared tile, by TMA or with threads."""
        return any(tile.memory is each.memory for fed in self.pipelines for each in fed.tiles)

    @property
    def nested_by_one(self) -> bool:
        """Whether one thread goes through the loops around the loads, as no warp looks for active iterations there."""
        return all(op.how is Loads.LOOP for op in operations(self.nested) if isinstance(op, Produce))


def producer(lowering: Lowering) -> Producer | None:
    """The producer of a launch; None without one."""
    resolved, facts = lowering.resolved, lowering.facts
    launch, found = resolved.launch, producer_loop(resolved.launch, facts)
    if found is None:
        return None
    loop, pipeline = found
    first, persistent = facts.get(launch, PROLOGUE_LOADS), facts.get(launch, PERSISTENT)
    loops = producer_loops(launch, facts)
    rings, at_top = rings_of(resolved), len(loops) == 1 and not around(launch.body, loop)
    multicast = facts.get(loop, MULTICAST_BLOCKS)
    late = () if rings or not at_top or persistent is not None or multicast else _behind_prologue(lowering, loop)
    stages = _slabbed(resolved, pipeline)
    loads = lowering.body(pipeline.loads, Where()) if at_top else ()
    return Producer(
        loop=loop,
        iterations=iterations_of(loop, pipeline, resolved, loading=False),
        pipelines=tuple(
            Fed(iterations=iterations_of(op, of, resolved, loading=False), tiles=of.buffers)
            for op, of in producer_pipelines(launch, facts)
        ),
        threads=launch.threads,
        hoisted=lowering.paragraphs(tuple(stmt for stmt in lowering.hoisted if stmt not in late), Where()),
        meanwhile=lowering.paragraphs(late, Where()),
        loads=loads if stages is None else _by_slabs(loads, stages, pipeline.stages),
        nested=() if at_top else tuple(_nested(lowering, loops)),
        way=_way(lowering),
        prologue=None
        if first is None
        else Prologue(
            copies=first.loads,
            loads=lowering.paragraphs(first.loads, Where()),
            used=runs_at_least_once(loop, launch, resolved.bounds),
            rule=facts.rule(launch, PROLOGUE_LOADS),
        ),
        rings=rings,
        stages=stages,
        once=is_iteration(loop, resolved.launch.body),
        multicast=multicast or 0,
        multicast_rule=facts.rule(loop, MULTICAST_BLOCKS) if multicast is not None else "",
        persistent=persistent,
        persistent_rule=facts.rule(launch, PERSISTENT) if persistent is not None else "",
        shares_rule=facts.rule(launch, REGISTER_SHARES) if facts.get(launch, REGISTER_SHARES) is not None else "",
        rule=facts.rule(loop, PIPELINE),
    )


def _way(lowering: Lowering) -> PathToLoop | None:
    """The way to the loop, where it can be told apart from what is done there."""
    if lowering.walk is None:
        return None
    body = lowering.paragraphs((lowering.walk.way,), replace(_LOADING, walking=True))
    return PathToLoop(visiting=lowering.producing.visiting(), body=body)


def _nested(lowering: Lowering, loops: tuple[tuple[Loop, schedule.Pipeline], ...]) -> Iterator[Paragraph]:
    """What the producer does in the statements around its loops, one after another, or where the way leads."""
    if lowering.walk is not None:
        (loop, _), *_ = loops
        visits = lowering.producing.visits(loop, _LOADING)
        yield Paragraph(statements=(Statement(source=loop, op=visits),), heading=False)
        return
    body = lowering.resolved.launch.body
    for _, found in groupby(loops, lambda each: id(outermost(body, each[0]))):
        yield from lowering.paragraphs((path_to(tuple(found), body),), _LOADING)


def _by_slabs(loads: Block, stages: SlabbedStages, count: int) -> Block:
    """Loads of tiles slab by slab, behind the waits for the warpgroups that have used the stage."""

    def change(each: Statement) -> Statement:
        if not isinstance(each.op, TmaLoad | GatherRows):
            return each
        load = each.op
        tile = load.dst if isinstance(load, TmaLoad) else load.dst.region.buffer
        slabs = tuple(part for part in stages.slabs if part.tile is tile)
        acquires = tuple(part for part in slabs if part in stages.acquired)
        alone = replace(load, claims=())
        own = LoadSlabs(
            source=load.source, claims=load.claims, load=alone, stages=count, slabs=slabs, acquires=acquires
        )
        return replace(each, op=own)

    return mapped(loads, change)


def _slabbed(resolved: Resolved, pipeline: schedule.Pipeline) -> SlabbedStages | None:
    found = ping_pong_of(resolved)
    if found is None:
        return None
    staged = [each for each in resolved.facts.get(resolved.launch, STORE_STAGING) or () if each.where is not None]
    reuses = {(each.name, each.where.name): read_before_sum(each.where, resolved) for each in staged if each.where}
    return SlabbedStages(
        slabs=slabs_of_stage(found, pipeline, resolved),
        first=found.own_mmas[0].c.buffer.name,
        last=found.second.c.buffer.name,
        handed=(found.tile.name, *(handed_name(tile) for tile in found.row_values)),
        exchanged=handed_name(found.running.total) if found.running is not None else "",
        reuses=tuple(pair for pair, summed_before in reuses.items() if not summed_before),
        summed_before=tuple(pair for pair, summed_before in reuses.items() if summed_before),
    )


def _behind_prologue(lowering: Lowering, loop: Loop) -> tuple[Stmt, ...]:
    """The values that the loop needs and the prologue does not, where memory is read for them: a wait that the first
    loads need not share.
    """
    if not lowering.prologue:
        return ()
    needed = tuple(expr for load in lowering.prologue for expr in expressions(load))
    sooner = prelude(needed, before(lowering.resolved.launch.body, loop))
    later = tuple(stmt for stmt in lowering.hoisted if stmt not in sooner)
    parts = parts_of(later)
    return later if any(isinstance(part, Load) for part in parts) else ()
