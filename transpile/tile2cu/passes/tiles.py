"""Helpers for tiles that several rewrites need."""

from msgspec.structs import replace

from tile2cu.core.expr import static_value
from tile2cu.core.program import Buffer, Launch, Region, Stmt


def whole(tile: Buffer, op: Stmt) -> Region:
    """All of a tile."""
    kept = tuple(dim for dim, extent in enumerate(tile.shape) if static_value(extent) != 1 or tile.rank == 1)
    return replace(Region.all_of(tile, op.span), kept=kept or (tile.rank - 1,))


def fresh(launch: Launch, wish: str) -> str:
    """A name that no tile of the launch has."""
    names = {tile.name for tile in launch.tiles}
    return (
        wish
        if wish not in names
        else next(name for number in range(2, len(names) + 3) if (name := f"{wish}_{number}") not in names)
    )
