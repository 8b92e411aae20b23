"""The slabs of a ping-pong loop's stages: which tile each is of, and which warpgroup releases it."""

from collections.abc import Iterator

from tile2cu.analysis.prelude import producer_loop
from tile2cu.core import schedule
from tile2cu.core.decisions import SCHEDULE, SHARED_LAYOUT
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan.resolved import Resolved


class Slabs(Record, frozen=True, kw_only=True, eq=False):
    """`count` neighbouring slabs of `tile`, from its slab `start` on, which warpgroup `part` releases.

    In the stage they are slabs `first` to `last`, in the order of the loads. `columns` of the tile are in one slab.
    The last MMA reads those that are `shared`, each warpgroup its own, the first MMAs read all. Their rows are
    `gathered` by all threads of the producer's warpgroup, or loaded by TMA.
    """

    tile: Buffer
    first: int
    start: int
    count: int
    part: int
    columns: int
    shared: bool
    gathered: bool

    @property
    def last(self) -> int:
        return self.first + self.count - 1


def ping_pong_of(resolved: Resolved) -> schedule.PingPong | None:
    """How two warpgroups alternate in the producer's loop; None where they do not."""
    loop = producer_loop(resolved.launch, resolved.facts)
    found = resolved.facts.get(loop[0], SCHEDULE) if loop else None
    return found if isinstance(found, schedule.PingPong) else None


def slabs_of_stage(found: schedule.PingPong, pipeline: schedule.Pipeline, resolved: Resolved) -> tuple[Slabs, ...]:
    """The slabs of a stage in the order of the loads.

    Warpgroup 1 releases those from the second half of the last MMA's tile on: it computes that MMA's columns of the
    second half. Slabs of other tiles are read by the first MMAs alone, which both have awaited before either releases.
    """
    return tuple(_slabs(found.second.b.buffer, pipeline, resolved))


def parts_of_stage(slabs: tuple[Slabs, ...]) -> tuple[range, range]:
    """The slabs of a stage that each warpgroup releases."""
    second = next(each.first for each in slabs if each.part == 1)
    return range(second), range(second, slabs[-1].last + 1)


def _slabs(shared: Buffer, pipeline: schedule.Pipeline, resolved: Resolved) -> Iterator[Slabs]:
    first, part = 0, 0
    for tile in pipeline.buffers:
        layout = resolved.facts[tile, SHARED_LAYOUT]
        total, start = layout.slabs, 0
        counts = (total // 2, total - total // 2) if tile is shared else (total,)
        for half, count in enumerate(counts):
            part = half if tile is shared else part
            columns = layout.extents[-1] // total
            yield Slabs(
                tile=tile,
                first=first,
                start=start,
                count=count,
                part=part,
                columns=columns,
                shared=tile is shared,
                gathered=bool(pipeline.gathers),
            )
            first, start = first + count, start + count
