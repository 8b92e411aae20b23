"""Helpers for tiles that several rewrites need."""

from msgspec.structs import replace

from tile2cu.analysis.uses import names_of, unused
from tile2cu.core.expr import static_value
from tile2cu.core.program import Buffer, Launch, Region, Stmt


def whole(tile: Buffer, op: Stmt) -> Region:
    """All of a tile."""
    kept = tuple(dim for dim, extent in enumerate(tile.shape) if static_value(extent) != 1 or tile.rank == 1)
    return replace(Region.all_of(tile, op.span), kept=kept or (tile.rank - 1,))


def fresh(launch: Launch, wish: str) -> str:
    """A name that nothing in the launch has: no tile, tensor, number or variable."""
    return unused(wish, names_of(launch), first=2)
