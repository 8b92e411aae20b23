"""Decisions about shared memory: what is in it besides the user's tiles, what is aliased, and the budget."""

from enum import Enum
from math import prod

from tile2cu.core.dtype import DType
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.core.span import Span


class Staging(Record, frozen=True):
    """A shared tile through which a fragment, or its transpose, is stored by TMA. Shape in elements.

    It may alias another tile, `where`, that is not live any more.
    """

    name: str
    like: Buffer
    dtype: DType
    layout: SharedLayout
    where: Buffer | None = None
    transposed: bool = False


class Workspace(Record, frozen=True):
    """Shared memory in which warps exchange partial results of a reduction or a scan, or the votes of a block.

    `extents` is the shape of the exchanged values of `dtype`; a reduction has one set from each of `warps` warps, a
    vote of the block one count from each, a scan (`warps` 0) holds its tile once. That of `row_values` holds the
    exchanged values of a fragment. No name of the user's is the `name`.
    """

    name: str
    dtype: DType
    extents: tuple[int, ...]
    warps: int
    row_values: Buffer | None = None

    @property
    def bytes(self) -> int:
        return prod(self.extents) * max(1, self.warps) * self.dtype.bytes

    @property
    def row(self) -> str:
        """Its row in the budget."""
        return self.name.removeprefix("__")

    @property
    def holds_votes(self) -> bool:
        return self.name == VOTES


class BlockVote(Enum):
    """How the threads of a block vote."""

    BARRIER = "by a barrier with a reduction"
    WAVE = "by a ballot of the block's wave"
    LDS = "by the waves' ballots, through LDS"

    def __str__(self) -> str:
        return self.value


VOTES = "__block_votes"  # the workspace of votes: an int of each wave


def workspace_name(result: str) -> str:
    """The name of the workspace of a reduction or a scan with this result."""
    return f"__{result}_workspace"


class Part(Record, frozen=True):
    """Shared tiles that are live between two lines of the user's file."""

    tiles: tuple[str, ...]
    first_line: int
    last_line: int


class Aliasing(Record, frozen=True):
    """Aliased parts of shared memory: their tiles have disjoint lifetimes.

    No tile of one part is live while one of another is. The workspaces of reductions, each of which begins with a
    barrier, are then aliased, too, or alone where there are no parts.
    """

    parts: tuple[Part, ...]
    workspaces: bool = False

    @property
    def joins_workspaces(self) -> bool:
        return bool(self.parts) or self.workspaces

    def mates(self, name: str) -> tuple[str, ...]:
        """The tiles of other parts, which alias this one."""
        if not any(name in part.tiles for part in self.parts):
            return ()
        return tuple(other for part in self.parts if name not in part.tiles for other in part.tiles)

    def __str__(self) -> str:
        if not self.parts:
            return "workspaces of reductions"
        return ", then ".join(" and ".join(part.tiles) for part in self.parts)


SCHEDULED_ROW = "drawn_tiles"  # the budget's row for published tiles
ACTIVE_ROW = "active_iterations"  # the same for the active iterations that a producer publishes
BARRIERS = "barriers"  # the budget's row for the barriers of a producer's pipeline


class SharedBudget(Record, frozen=True, repr_omit_defaults=True):
    """The shared-memory budget of a block, in bytes: each tile with all its stages, and the total.

    `aliased`: first and last offset of the memory that tiles of several lifetimes share; empty without aliasing.
    """

    tiles: tuple[tuple[str, int], ...]
    total: int
    limit: int
    aliased: tuple[int, ...] = ()


class TooLarge(Tile2CuError):
    """Tiles need more shared memory than a block of a target has: the diagnostic of that budget."""

    def __init__(self, budget: SharedBudget, arch: str, span: Span, help: str = "") -> None:
        width = max(len(name) for name, _ in budget.tiles)
        table = "\n".join(f"{name:{width}}  {bytes_:>9,} bytes" for name, bytes_ in budget.tiles)
        needed = f"the tiles need {budget.total:,} bytes of shared memory; {arch} has {budget.limit:,} per block"
        super().__init__("T2C-L020", needed, span, notes=(Note(table),), help=help)
        self.budget, self.arch, self.at = budget, arch, span

    def __reduce__(self) -> tuple[object, ...]:
        return TooLarge, (self.budget, self.arch, self.at, self.help)
