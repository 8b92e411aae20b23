"""Small facts about tiles that several rewrites need."""

from tile2cu.core.expr import int_const, static_value
from tile2cu.core.program import Buffer, Launch, Range, Region, Stmt


def whole(tile: Buffer, op: Stmt) -> Region:
    """All of a tile."""
    ranges = tuple(Range(start=int_const(0), extent=extent) for extent in tile.shape)
    kept = tuple(dim for dim, extent in enumerate(tile.shape) if static_value(extent) != 1 or tile.rank == 1)
    return Region(buffer=tile, ranges=ranges, kept=kept or (tile.rank - 1,), whole=True, span=op.span)


def fresh(launch: Launch, wish: str) -> str:
    """A name that no tile of the launch has."""
    names = {tile.name for tile in launch.tiles}
    return (
        wish
        if wish not in names
        else next(name for number in range(2, len(names) + 3) if (name := f"{wish}_{number}") not in names)
    )
