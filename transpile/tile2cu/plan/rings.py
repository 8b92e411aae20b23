"""Which tiles of a producer's loop have barriers of their own."""

from tile2cu.analysis.prelude import producer_loop
from tile2cu.core.decisions import MMA_OVERLAP, PERSISTENT
from tile2cu.core.program import Buffer
from tile2cu.plan.settled import Settled


def ring_tiles(settled: Settled) -> tuple[Buffer, ...]:
    """The tiles that are loaded by themselves, one per MMA, where the loop's MMAs overlap; none where they do not."""
    found = producer_loop(settled.launch, settled.facts)
    overlap = settled.facts.get(found[0], MMA_OVERLAP) if found else None
    return () if overlap is None else tuple(mma.b.buffer for mma in overlap.mmas)


def publishes_iteration(tile: Buffer, settled: Settled) -> bool:
    """Whether a producer publishes, with a tile, the iteration that it is of.

    It does with the tile of the first MMA, in a persistent kernel whose iterations may be skipped.
    """
    found, persistent = producer_loop(settled.launch, settled.facts), settled.facts.get(settled.launch, PERSISTENT)
    if found is None or persistent is None or not persistent.iteration:
        return False
    return tile is settled.facts[found[0], MMA_OVERLAP].first.b.buffer
