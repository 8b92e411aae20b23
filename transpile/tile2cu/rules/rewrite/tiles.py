"""Small facts about tiles that several rewrites need."""

from tile2cu.core.expr import int_const, static_value
from tile2cu.core.program import Buffer, Copy, Fill, Gemm, Launch, Parallel, Range, Reduce, Region, Stmt, Store


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


def covers(op: Parallel, tile: Buffer) -> bool:
    """Whether the loop writes every element of the tile: each is a place of its variables."""
    stores = [stmt for stmt in op.body if isinstance(stmt, Store) and stmt.buffer is tile and not stmt.op]
    extents = dict(zip(op.vars, op.extents, strict=True))
    return any(
        len(set(stmt.indices)) == tile.rank
        and all(
            index in extents and static_value(extents[index]) == static_value(extent)
            for index, extent in zip(stmt.indices, tile.shape, strict=True)
        )
        for stmt in stores
    )


def overwrites(stmt: Stmt, tile: Buffer) -> bool:
    """Whether a statement that writes the tile writes all of it."""
    match stmt:
        case Copy() | Fill():
            return stmt.dst.whole and stmt.dst.buffer is tile
        case Reduce():
            return stmt.clear and stmt.dst is tile
        case Gemm():
            return stmt.clear and stmt.c.whole and stmt.c.buffer is tile
        case Parallel():
            return covers(stmt, tile)
        case _:
            return False
