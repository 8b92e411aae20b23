"""Which tiles of a producer's loop have barriers of their own."""

from tile2cu.analysis.prelude import producer_loop
from tile2cu.core.decisions import PERSISTENT, SCHEDULE
from tile2cu.core.program import Buffer
from tile2cu.core.schedule import MmaOverlap
from tile2cu.plan.settled import Settled


def ring_tiles(settled: Settled) -> tuple[Buffer, ...]:
    """The tiles that are loaded by themselves, in the order of their MMAs; none where these do not overlap."""
    found = producer_loop(settled.launch, settled.facts)
    schedule = settled.facts.get(found[0], SCHEDULE) if found else None
    if found is None or not isinstance(schedule, MmaOverlap):
        return ()
    operands = (operand.buffer for mma in schedule.mmas for operand in (mma.a, mma.b))
    loaded = {id(tile) for tile in found[1].buffers}
    return tuple({id(tile): tile for tile in operands if id(tile) in loaded}.values())


def publishes_iteration(tile: Buffer, settled: Settled) -> bool:
    """Whether a producer publishes, with a tile, the iteration that it is of.

    It does with the tile of the first MMA, in a persistent kernel whose iterations may be skipped.
    """
    persistent = settled.facts.get(settled.launch, PERSISTENT)
    return persistent is not None and bool(persistent.iteration) and tile is ring_tiles(settled)[0]
