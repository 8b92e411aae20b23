"""What a chip is: the shape of every target's table."""

from dataclasses import dataclass

from tile2cu.core.dtype import DType


@dataclass(frozen=True)
class Mma:
    """One shape of mma.sync: `m`, `n`, `k` in elements of `operand`.

    `transposable` says that ldmatrix can hand over an operand whose K is not contiguous: it
    transposes 16-bit elements only (PTX ISA, "ldmatrix", .trans).
    """

    operand: DType
    accumulator: DType
    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        if self.k * self.operand.bits != 256:
            raise ValueError("mma.sync reads 256 bits of K from each row")

    @property
    def transposable(self) -> bool:
        return self.operand.bits == 16


@dataclass(frozen=True)
class Wgmma:
    """One row of wgmma.mma_async: 64 rows, N in eights up to 256, `k` in elements of `operand`."""

    operand: DType
    accumulator: DType
    k: int

    def __post_init__(self) -> None:
        if self.k * self.operand.bits != 256:
            raise ValueError("wgmma reads 256 bits of K from each row")


@dataclass(frozen=True)
class Target:
    """A chip. `shared_limit` is the bytes a block may use; `name` is spelled as on the command line."""

    name: str
    arch: str
    shared_limit: int
    warp_size: int
    max_threads: int
    cp_async: bool
    mma: tuple[Mma, ...]
    source: str
    capability: tuple[int, int] = (8, 0)
    multiprocessors: int = 108  # what a driver that asks for their number is told
    wgmma: tuple[Wgmma, ...] = ()
    tma: bool = False

    def instruction(self, operand: DType, accumulator: DType) -> Mma | None:
        """The row of the table for these types, or None."""
        rows = (row for row in self.mma if (row.operand, row.accumulator) == (operand, accumulator))
        return next(rows, None)
