"""Which tiles of a producer's loop have barriers of their own, and how they are read."""

from collections.abc import Sequence

from tile2cu.analysis.prelude import behind, producer_loop
from tile2cu.analysis.uses import readers
from tile2cu.core.decisions import BARRIER, INSTRUCTION, PERSISTENT, SCHEDULE
from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import Buffer, Gemm, Stmt
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
    loading = loaded_by_threads(tiles, body, resolved)
    return bool(loading) and not any(resolved.facts.get(stmt, BARRIER) for stmt in behind(body, loading[-1]))


def loaded_by_threads(tiles: Sequence[Buffer], body: tuple[Stmt, ...], resolved: Resolved) -> list[Stmt]:
    """The statements of a body that read one of the tiles by loads of its threads: wgmma reads shared memory itself."""

    def loads(stmt: Stmt) -> bool:
        own = (each for tile in tiles for each in readers((stmt,), tile))
        units = (resolved.facts[each, INSTRUCTION].unit if isinstance(each, Gemm) else None for each in own)
        return any(unit is not MmaUnit.WARPGROUP for unit in units)

    return list(filter(loads, body))
