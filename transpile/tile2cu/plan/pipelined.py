"""Loops whose loads all threads run ahead: by cp.async, or through registers."""

import functools

from msgspec.structs import replace

from tile2cu.analysis.accesses import buffers_read, shared, viewed
from tile2cu.analysis.effects import may_leave
from tile2cu.analysis.prelude import begins_pipeline
from tile2cu.analysis.uses import statements, without, written_in
from tile2cu.core.decisions import ITERATION_HAZARDS, PIPELINE
from tile2cu.core.program import Buffer, Loop, Stmt
from tile2cu.core.record import Record
from tile2cu.core.schedule import MmaInFlight, Pipeline
from tile2cu.plan.copies import store_registers
from tile2cu.plan.resolved import Resolved
from tile2cu.plan.structure import Lower, PipelinedLoop, Where


def pipelined(op: Loop, pipeline: Pipeline, resolved: Resolved, where: Where, lower: Lower) -> PipelinedLoop:
    """The loop; `lower` lowers its parts."""
    staged = frozenset(id(copy) for copy in pipeline.copies) if pipeline.staged else frozenset()
    return PipelinedLoop(
        source=op,
        var=op.var,
        start=op.start,
        stop=op.stop,
        stages=pipeline.stages,
        tiles=tuple(view for tile in pipeline.buffers for view in (tile, *viewed(resolved.launch, tile))),
        loads=lower(pipeline.loads, replace(where, to_registers=where.to_registers | staged)),
        body=lower(_without_names_of_loads(pipeline), where),
        stores=tuple(store_registers(copy, resolved) for copy in pipeline.copies) if pipeline.staged else (),
        direct=pipeline.direct,
        reads=_read_before(pipeline),
        ended=resolved.facts.get(op, ITERATION_HAZARDS) or (),
        number=number_of(op, resolved),
        threads=resolved.launch.threads,
        may_leave=may_leave(pipeline.body),
        rule=resolved.facts.rule(op, PIPELINE),
    )


def _without_names_of_loads(pipeline: Pipeline) -> tuple[Stmt, ...]:
    """The body; with one stage it follows the loads in the same scope, and has their names."""
    if pipeline.stages > 1 or pipeline.staged:
        return pipeline.body
    return without(pipeline.body, pipeline.loads)


def number_of(op: Loop, resolved: Resolved) -> int:
    """The place of a loop's pipeline among the kernel's, from 1."""
    first = begins_pipeline(op, resolved.launch, resolved.facts)
    return next(number for number, (loop, _) in enumerate(resolved.pipelines, 1) if loop is first)


def _read_before(pipeline: Pipeline) -> tuple[str, ...]:
    """Shared tiles that the iterations read and do not load: the pipeline's barrier covers them too."""
    own = {buffer.name for buffer in (*pipeline.buffers, *shared(written_in(pipeline.body)))}
    read = (shared(buffers_read(stmt)) for stmt in statements(pipeline.body, Stmt, below=False))
    return tuple(
        dict.fromkeys(name for tiles in read for name in sorted(tile.name for tile in tiles) if name not in own)
    )


class Depths(Record, frozen=True):
    """Of a launch's pipelines, in their order: how many `stages` they have, and how many loads past the registers.

    `in_registers`: a tile of one waits in registers. `written`: tiles with stages because an MMA in flight reads one.
    """

    stages: tuple[int, ...]
    direct: tuple[int, ...]
    in_registers: bool
    written: tuple[Buffer, ...]


@functools.lru_cache(maxsize=8)  # asked for every tile
def depths(resolved: Resolved) -> Depths:
    """The depths of a launch's pipelines."""
    found = [pipeline for _, pipeline in resolved.pipelines]
    return Depths(
        stages=tuple(dict.fromkeys(each.stages for each in found)),
        direct=tuple(dict.fromkeys(each.direct for each in found if each.direct is not None)),
        in_registers=any(each.staged for each in found),
        written=tuple(tile for each in resolved.schedules if isinstance(each, MmaInFlight) for tile in each.written),
    )
