"""Which tiles of a producer's loop have barriers of their own, and how they are read."""

from collections.abc import Sequence

from tile2cu.analysis.accesses import read_by_itself, touches
from tile2cu.analysis.prelude import producer_loop
from tile2cu.core.decisions import BARRIER, INSTRUCTION, PERSISTENT, SCHEDULE
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import Buffer, Gemm, Stmt, steps
from tile2cu.core.schedule import MmaOverlap
from tile2cu.plan.resolved import Resolved


def ring_tiles(resolved: Resolved) -> tuple[Buffer, ...]:
    """The tiles that are loaded by themselves, in the order of their MMAs; none where these do not overlap."""
    found = producer_loop(resolved.launch, resolved.facts)
    schedule = resolved.facts.get(found[0], SCHEDULE) if found else None
    if found is None or not isinstance(schedule, MmaOverlap):
        return ()
    operands = (operand.buffer for mma in schedule.mmas for operand in (mma.a, mma.b))
    loaded = {id(tile) for tile in found[1].buffers}
    return tuple({id(tile): tile for tile in operands if id(tile) in loaded}.values())


def publishes_iteration(tile: Buffer, resolved: Resolved) -> bool:
    """Whether a producer publishes, with a tile, the iteration that it is of.

    It does with the tile of the first MMA, in a persistent kernel whose iterations may be skipped.
    """
    persistent = resolved.facts.get(resolved.launch, PERSISTENT)
    return persistent is not None and bool(persistent.iteration) and tile is ring_tiles(resolved)[0]


def are_loads_outstanding(tiles: Sequence[Buffer], body: tuple[Stmt, ...], resolved: Resolved) -> bool:
    """Whether loads of these tiles by the consumers' threads may not have completed at the end of `body`.

    wgmma has been waited for, and a barrier of the consumers has a fence, which waits for loads.
    """
    readers = [at for at, stmt in enumerate(body) if any(_loads(each, tiles, resolved) for each in steps((stmt,)))]
    return bool(readers) and not any(resolved.facts.get(stmt, BARRIER) for stmt in body[readers[-1] + 1 :])


def _loads(stmt: Stmt, tiles: Sequence[Buffer], resolved: Resolved) -> bool:
    """Whether a statement reads one of the tiles by loads of its threads."""
    if isinstance(stmt, Gemm) and resolved.facts[stmt, INSTRUCTION].unit is MmaUnit.WARPGROUP:
        return False
    return any(touches(read_by_itself(stmt), tile) for tile in tiles)
