"""What is counted of a launch, as data."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tile2cu.chooser.numbers import Values
from tile2cu.core.record import Record


@dataclass(kw_only=True)
class Counts:
    """The work of one block. Bytes are those inside of the tensors; `mma` has M, N, K of a tile and how many there are.

    `iterations` are those of loops with GEMMs, or else of pipelined loops; `loaded` are the bytes that they load,
    `narrow` those of them in rows of less than a cache line, `straddling` those in `straddling_rows` that begin inside
    of sectors of 32 bytes, as with a pitch of odd multiples of 16, and `filled` the bytes of their boxes outside of the
    tensors, which become zero. `prologue` bytes are loaded outside of loops, `stored` ones stored,
    `stored_wide` those of them that have over 16 bits an element. `exchanged` bytes go to other blocks of the cluster,
    `gathered` ones of each block to the same one. `elementwise` are the operations of loops over elements in those
    iterations, in instructions of a lane.
    """

    mma: dict[tuple[int, int, int], int] = field(default_factory=dict)
    iterations: int = 0
    loaded: float = 0.0
    filled: float = 0.0
    straddling: float = 0.0
    straddling_rows: float = 0.0
    narrow: float = 0.0
    prologue: float = 0.0
    stored: float = 0.0
    stored_wide: float = 0.0
    exchanged: float = 0.0
    gathered: float = 0.0
    elementwise: float = 0.0

    def adding(self) -> Callable[["Counts", int], None]:
        """A function that adds this work to another block's, so many times."""
        mma = tuple(self.mma.items())
        amounts = tuple((name, amount) for name, amount in vars(self).items() if amount and name != "mma")

        def add(other: Counts, times: int) -> None:
            for shape, repeated in mma:
                other.mma[shape] = other.mma.get(shape, 0) + times * repeated
            own = vars(other)
            for name, amount in amounts:
                own[name] += times * amount

        return add

    @property
    def amount(self) -> tuple[float, ...]:
        """By which blocks are compared."""
        return self.iterations, self.loaded, self.stored + self.exchanged + self.gathered


class Work(Record, frozen=True, kw_only=True):
    """The work of a launch: `blocks` in clusters of `cluster`, the counts of the longest of them.

    `threads` compute. `stages` are those of each pipelined loop, `staged_bytes` the shared memory of one stage of it;
    `fixed_bytes` are those of other shared tiles, without what rules add. `fragment_bytes` are those of tiles in
    registers, of which the largest has `tile_elements`; `operand_bits` are those of the MMAs' operands. The mean block
    has `mean` of the iterations of the longest.
    """

    blocks: int
    cluster: int
    threads: int
    stages: tuple[int, ...]
    staged_bytes: tuple[int, ...]
    fixed_bytes: int
    fragment_bytes: int
    tile_elements: int
    operand_bits: int
    longest: Counts
    mean: float = 1.0

    @property
    def shared_bytes(self) -> int:
        return self.fixed_bytes + sum(max(n, 1) * each for n, each in zip(self.stages, self.staged_bytes, strict=True))

    @property
    def most_stages(self) -> int:
        return max(self.stages, default=1) or 1


Count = Callable[[Values, Counts, int], None]
Counter = Callable[[Values], Work]
