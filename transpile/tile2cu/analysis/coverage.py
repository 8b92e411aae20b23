"""Which part of each tensor a launch covers: tails that no tile reaches, and block indices of other dimensions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.control import operations
from tile2cu.analysis.effects import effects
from tile2cu.analysis.linear import Linear
from tile2cu.core.expr import Binary, Call, Expr, Var, static_value
from tile2cu.core.program import Buffer, Launch, Scope
from tile2cu.core.record import Record
from tile2cu.core.span import Span


class Tile(Record, frozen=True):
    """`start : start + length` along one dimension of a tensor, as an operation accesses it."""

    tensor: Buffer
    dim: int
    start: Linear
    length: int
    end: int | None  # one past the last element of all blocks and iterations, where it is known
    span: Span

    @property
    def extent(self) -> Expr:
        """The extent of the dimension."""
        return self.tensor.shape[self.dim]

    @property
    def step(self) -> Var | None:
        """The only variable of the start, if tiles of its values adjoin: `k` of k * 64 : k * 64 + 64."""
        if len(self.start.terms) != 1 or self.start.constant:
            return None
        ((var, factor),) = self.start.terms.items()
        return var if isinstance(var, Var) and factor == self.length else None


class Tail(Record, frozen=True):
    """Elements at the end of a dimension that no tile covers: `count` of them, or None where sizes decide."""

    tile: Tile
    count: int | None


class Swapped(Record, frozen=True):
    """`block` indexes a dimension whose tiles `other`, another index of the grid, counts."""

    tile: Tile
    block: Var
    other: Var


def tiles_by_dimension(launch: Launch, bounds: Bounds) -> Iterator[tuple[Tile, ...]]:
    """The tiles of each dimension of each tensor that is accessed in tiles alone."""
    return (tuple(tiles) for tiles in _by_dimension(launch, bounds).values() if tiles)


def tails(dimensions: Iterable[tuple[Tile, ...]], bounds: Bounds) -> Iterator[Tail]:
    """The tails, shorter than a tile, of dimensions that tiles cover from their start; one per dimension."""
    for tiles in dimensions:
        if all(tile.end is not None for tile in tiles) and (size := static_value(tiles[0].extent)) is not None:
            last = max(tiles, key=lambda tile: tile.end or 0)
            rest = int(size) - (last.end or 0)
            if 0 < rest < last.length and last.step is not None:
                yield Tail(last, rest)
        elif all(_counts_whole_tiles(tile, bounds) for tile in tiles):
            yield Tail(tiles[0], None)


def swapped_indices(dimensions: Iterable[tuple[Tile, ...]], launch: Launch) -> Iterator[Swapped]:
    """The tiles at a block index whose range is that of another dimension, where another block index would fit."""
    grid = dict(zip(launch.blocks, launch.grid, strict=False))
    for tile in chain.from_iterable(dimensions):
        block = tile.step
        if block is None or block not in grid or tile.length == 1 or _fits(grid[block], tile):
            continue
        other = next((var for var, extent in grid.items() if var is not block and _fits(extent, tile)), None)
        if other is not None:
            yield Swapped(tile, block, other)


def _by_dimension(launch: Launch, bounds: Bounds) -> dict[tuple[Buffer, int], list[Tile] | None]:
    """The tiles of each dimension of each tensor; None where an access is anywhere in it."""
    found: dict[tuple[Buffer, int], list[Tile] | None] = defaultdict(list)
    for op in operations(launch.body):
        done = effects(op)
        for access in (*done.reads, *done.writes):
            if access.buffer.scope is not Scope.GLOBAL:
                continue
            viewed = access.buffer is not access.root
            for dim, extent in enumerate(access.box):
                key = (access.root, dim)
                length = None if extent is None else static_value(extent[1])
                tiles = found[key]
                if viewed or extent is None or length is None or tiles is None:
                    found[key] = None
                    continue
                high = bounds.interval(extent[0]).high
                end = None if high is None else high + int(length)
                tiles.append(Tile(access.buffer, dim, bounds.linear(extent[0]), int(length), end, op.span))
    return found


def _counts_whole_tiles(tile: Tile, bounds: Bounds) -> bool:
    """Whether the tile's variable counts to `extent // length`, of an extent that is known only at run time."""
    stop = bounds.stop(tile.step) if tile.step is not None else None
    if not isinstance(stop, Binary) or stop.op != "//" or static_value(tile.extent) is not None or tile.length == 1:
        return False
    return static_value(stop.rhs) == tile.length and stop.lhs == tile.extent


def _fits(count: Expr, tile: Tile) -> bool:
    """Whether so many tiles cover the dimension, and no fewer do."""
    size, number = static_value(tile.extent), static_value(count)
    if size is not None and number is not None:
        return int(number) == -(-int(size) // tile.length)
    match count:
        case Call(function="ceildiv", args=(lhs, rhs)) | Binary(op="//", lhs=lhs, rhs=rhs):
            return lhs == tile.extent and static_value(rhs) == tile.length
        case _:
            return False
