"""Operands of a plan's operations: tiles and regions of tiles, threads, tensors as TMA sees them."""

from tile2cu.core.expr import Expr
from tile2cu.core.program import Buffer, Region
from tile2cu.core.record import Record


class Tile(Record, frozen=True, kw_only=True):
    """A fragment, a shared tile or a private array, or rows and columns of a shared tile.

    `transposed`: the operation reads columns as rows. `alignment`: the multiple, in bytes, that the start of a slice of
    one dimension is known to have; 0 where nothing is known.
    """

    region: Region
    transposed: bool = False
    alignment: int = 0

    @property
    def buffer(self) -> Buffer:
        return self.region.buffer


class TensorTile(Record, frozen=True, kw_only=True):
    """A box of a tensor. `along` are the dimensions that the other side of a copy runs along, the others are fixed.

    `ends`, one per dimension where there are any: elements from there on count as out of bounds; None where the
    tensor's own extent holds.
    """

    region: Region
    along: tuple[int, ...]
    ends: tuple[Expr | None, ...] = ()

    @property
    def buffer(self) -> Buffer:
        return self.region.buffer


Operand = Tile | TensorTile


class Threads(Record, frozen=True, kw_only=True):
    """The threads that share an operation: group `group`'s, or the block's (any group's, where all have one size)."""

    group: int | None = None
